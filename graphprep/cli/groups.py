"""Option groups: dataclasses whose fields become the options of a command, and help that shows them by group."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

from typer.core import TyperCommand


def with_groups(command: Callable[..., Any]) -> Callable[..., Any]:
    """Spread every parameter that is a dataclass into its fields, as options of their own.

    ``def info(path: Path, *, run: RunFlags)`` thus gets ``--memory-limit``, ``--threads`` and so on, which are declared once.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for parameter in inspect.signature(command).parameters.values():
        group = groups.get(parameter.name)
        parameters += _spread(group) if group else [parameter.replace(annotation=hints[parameter.name])]

    @functools.wraps(command)
    def spread(**given: Any) -> Any:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        return command(**given)

    del spread.__wrapped__  # else its signature hides ours
    spread.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return spread


def _spread(group: Any) -> list[inspect.Parameter]:
    """Return one keyword parameter a field, with the field's default."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name])
        for field in dataclasses.fields(group)
    ]


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by ``rich_help_panel``, in plain text that reads well when piped."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return ``[OPTIONS] INPUT... OUT``: the arguments as their metavars say."""
        return ["[OPTIONS]", *(str(param.metavar) for param in self.get_params(ctx) if param.param_type_name == "argument")]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, then one section a group, groups in the order of their first option."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            if param.param_type_name == "argument":
                sections.setdefault("Arguments", []).append((str(param.metavar), getattr(param, "help", "") or ""))
                continue
            record = param.get_help_record(ctx)
            if record is not None:
                title = getattr(param, "rich_help_panel", None) or "Other options"
                sections.setdefault(title, []).append(record)
        for title, records in sections.items():
            with formatter.section(title):
                formatter.write_dl(records, col_max=28)
