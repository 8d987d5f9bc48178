"""Option groups: dataclasses whose fields become the options of a command, which shows them in its help."""

from __future__ import annotations

import dataclasses
import difflib
import functools
import inspect
import re
import sys
from collections.abc import Callable
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from typer.core import TyperCommand, TyperGroup

from graphprep.cli.help.pages import FIRST, LATER, PAGE_OPTIONS, format_of_page, write_format_text, write_options
from graphprep.cli.printed.colors import painted

_TEXTS = (str, str | None)
_TEXT_LISTS = (list[str], list[str] | None)
_NUMBERS = (int, int | None)
_NUMBER = re.compile("[0-9]{1,18}")


def with_groups(*, later: tuple[type, ...] = ()) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Spread every parameter that is a dataclass into its fields, as options of their own.

    ``def info(path: Path, *, run: RunFlags)`` thus gets ``--memory-limit``, ``--threads`` and so on, which are declared once.
    Of the groups ``later`` the first screen of the help shows what is marked ``FIRST``; other options show the other pages.
    """

    def wrap(command: Callable[..., Any]) -> Callable[..., Any]:
        hints = get_type_hints(command, include_extras=True)
        groups: dict[str, Any] = {name: hint for name, hint in hints.items() if dataclasses.is_dataclass(hint)}
        parameters: list[inspect.Parameter] = []
        for parameter in inspect.signature(command).parameters.values():
            group = groups.get(parameter.name)
            parameters += _spread(group, group in later) if group else [parameter.replace(annotation=hints[parameter.name])]
        pages = PAGE_OPTIONS if later else ()

        @functools.wraps(command)
        def spread(**given: Any) -> Any:
            for page in pages:
                given.pop(page.name)
            for name, group in groups.items():
                given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
            return command(**given)

        del spread.__wrapped__  # else its signature hides ours
        spread.__signature__ = inspect.Signature([*parameters, *pages])  # type: ignore[attr-defined]
        spread.__annotations__ = {parameter.name: parameter.annotation for parameter in (*parameters, *pages)}
        return spread

    return wrap


def _spread(group: Any, is_later: bool) -> list[inspect.Parameter]:
    """Return one keyword parameter a field, with the field's default."""
    hints = get_type_hints(group, include_extras=True)
    if is_later:
        hints = {name: hint if FIRST in hint.__metadata__ else Annotated[hint, LATER] for name, hint in hints.items()}
    return [
        inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=_default(field), annotation=hints[field.name])
        for field in dataclasses.fields(group)
    ]


def _default(field: dataclasses.Field[Any]) -> Any:
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory()
    return inspect.Parameter.empty if field.default is dataclasses.MISSING else field.default


def _spare_conversions(command: Any, context: Any) -> None:
    """Let values that need no conversion, defaults and texts, be taken as they are: what converts takes long to load."""
    declared = inspect.signature(command.callback).parameters if command.callback else {}
    for param in command.get_params(context):
        param.process_value = _sparing(param, declared.get(param.name))


def _sparing(param: Any, declared: inspect.Parameter | None) -> Callable[[Any, Any], Any]:
    """Return what makes the value of a parameter, of which ``declared`` says what ours are; None: it is typer's own."""
    convert, default = param.process_value, declared.default if declared else None
    kind = getattr(declared.annotation, "__origin__", declared.annotation) if declared else None
    words = _words(kind)

    def process(context: Any, value: Any) -> Any:
        if context.get_parameter_source(param.name).name == "DEFAULT":
            return convert(context, value) if param.required else default  # with the former, it is missing
        if param.callback is None and isinstance(value, str) and (kind in _TEXTS or value in words):
            return value
        if param.callback is None and kind in _NUMBERS and isinstance(value, str) and _NUMBER.fullmatch(value):
            return int(value)
        if param.callback is None and kind in _TEXT_LISTS and isinstance(value, list | tuple) and value:
            return list(value)
        return convert(context, value)

    return process


def _words(kind: Any) -> tuple[Any, ...]:
    """Return the words that a parameter of this type takes: those of its Literal."""
    for one in (kind, *get_args(kind)):
        if get_origin(one) is Literal:
            return get_args(one)
    return ()


# What options of other tools, and of other commands, are called here.
_ELSEWHERE = {
    "--by": "--partition-by",
    "--force": "--overwrite",
    "--jobs": "--threads",
    "--num-parts": "--partitions",
    "--num-partitions": "--partitions",
    "--num-workers": "--threads",
    "--partition-by": "--by",
    "--sep": "--delimiter",
    "--separator": "--delimiter",
    "--workers": "--threads",
}
_EDGES = "leave it out: edges are stored as they are given; convert --undirected adds the reverse of each"
_ADVICE = dict.fromkeys(("--directed", "--bidirected", "--symmetric", "--add-reverse"), _EDGES)
_ADVICE |= dict.fromkeys(("--output", "--out", "-o"), "the output is no option, but the last argument")
_ADVICE |= dict.fromkeys(("--input", "--inputs", "-i"), "inputs are no options, but arguments")
_LIKE = 0.75  # of a likeness of 1: --fromat is like --format, and --undirected not like --quiet


def near_option(name: str, context: Any, help: str) -> str:
    """Return the remedy for an option that a command does not have: one that is like it, else ``help``."""
    own = context.command if context is not None else None
    flags = [flag for param in own.params for flag in (*param.opts, *param.secondary_opts)] if own is not None else []
    if any(LATER in marks for marks in _marks(own).values()) if own is not None else False:
        help = f"{help}-all"
    if name in _ADVICE and own is not None and own.params:
        return _ADVICE[name]
    if _ELSEWHERE.get(name) in flags:
        return f"did you mean {_ELSEWHERE[name]}?"
    bare = {flag.lstrip("-"): flag for flag in flags if flag.startswith("--")}
    word = name.lstrip("-")
    found = difflib.get_close_matches(word, bare, 1, _LIKE) or [one for one in bare if word and one.startswith(word)][:1]
    return f"did you mean {bare[found[0]]}?" if found else help


def _marks(command: Any) -> dict[str, tuple[Any, ...]]:
    """Return what stands in the annotations of a command's parameters, by their names."""
    declared = inspect.signature(command.callback).parameters if command.callback else {}
    return {name: getattr(one.annotation, "__metadata__", ()) for name, one in declared.items()}


class Commands(TyperGroup):
    """The commands, with options of their own."""

    def get_help(self, ctx: Any) -> str:
        """Return the page of the help."""
        return painted(super().get_help(ctx), sys.stdout, is_help=True)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        _spare_conversions(self, ctx)
        return super().parse_args(ctx, args)


class GroupedCommand(TyperCommand):
    """A command whose help lists its options by ``rich_help_panel``, in plain text that reads well when piped."""

    def get_help(self, ctx: Any) -> str:
        """Return the page of the help."""
        return painted(super().get_help(ctx), sys.stdout, is_help=True)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the command line."""
        _spare_conversions(self, ctx)
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return ``[OPTIONS] INPUT... OUT``: the arguments as their metavars say."""
        return ["[OPTIONS]", *(str(param.metavar) for param in self.get_params(ctx) if param.param_type_name == "argument")]

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command is for, or on a format's page what is on it."""
        if format_of_page(ctx):
            write_format_text(ctx, formatter)
            return
        text = inspect.cleandoc(self.help or "")
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(text.replace("Examples:\n", "\b\nExamples:\n"))  # lines that stay as they are

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and options that the page of the help has."""
        write_options(ctx, formatter, self.get_params(ctx), _marks(self))
