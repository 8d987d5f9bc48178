"""Exports as the last stage of ``convert``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from graphprep.model.option import Option

if TYPE_CHECKING:
    from graphprep.model.export import ExportOptions
    from graphprep.model.options.convert import ConvertOptions

_of_export = partial(Option, "Export")


@dataclass(frozen=True, eq=False, repr=False)
class LastStageFlags:
    """Exports as the last stage of another command."""

    export: Annotated[
        list[str],
        _of_export(
            "Export the finished store, too: targets as in export --list, each to OUT-TARGET or the folder that is named.",
            metavar="TARGET[=DIR],...",
            is_first=True,
        ),
    ] = field(default_factory=list)
    drop_unsupported: Annotated[bool, _of_export("--export leaves out columns that a target does not support.")] = False
    message_edges: Annotated[
        Literal["train", "train+valid", "all"] | None,
        _of_export(
            "Of edges with a split, those that exported graphs have; the store has all.  [default: train, of files all]",
        ),
    ] = None
    missing_time: Annotated[
        str,
        _of_export(
            "Edges without a time, for targets whose samplers draw by it: refuse them, drop them, or their time.",
            metavar="refuse|drop|TIME",
        ),
    ] = "refuse"

    def folders(self, out: str) -> list[tuple[str, str]]:
        """Return targets and where their files go.

        Raises UsageError for a target that is not there, and where there is none.
        """
        from graphprep.model.errors import UsageError

        if not self.export:
            given = {"--drop-unsupported": self.drop_unsupported, "--message-edges": self.message_edges}
            given["--missing-time"] = self.missing_time != "refuse"
            if name := next((name for name, is_given in given.items() if is_given), ""):
                raise UsageError(f"{name} is of --export, which is not given", fix="leave it out, or give both")
            return []  # and nothing of exporters is loaded
        from graphprep.exporters.registry import find_exporter

        named = [text.strip().partition("=") for given in self.export for text in given.split(",")]
        for target, _, _ in named:
            if not target:
                raise UsageError(f"--export {','.join(self.export)!r} lacks a target", fix="graphprep export --list shows all")
            find_exporter(target)
        return [(target, folder or f"{out.rstrip('/')}-{target}") for target, _, folder in named]

    def to_options(self, options: ConvertOptions) -> ExportOptions:
        """Return the library's form."""
        from graphprep.model.export import ExportOptions

        return ExportOptions(
            drop_unsupported=self.drop_unsupported,
            message_edges=self.message_edges,
            missing_time=self.missing_time,
            overwrite=options.overwrite,
            run=options.run,
        )
