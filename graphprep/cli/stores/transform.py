"""``graphprep transform``: a store made of another by operations."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, DeviceFlags, OverwriteStore, ReportFlags, StorageFlags, option, values_of
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, types_lines, work_line, wrapped_text
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.transform import TransformSummary

_of_store = partial(option, "Store")


@dataclass(frozen=True)
class OutputFlags:
    """What is written."""

    ids: Annotated[
        Literal["compact", "preserved"],
        _of_store("Where nodes go: the IDs of the others close up (compact), or all nodes stay and only edges go (preserved)."),
    ] = "compact"
    other_types: Annotated[
        Literal["keep", "drop"],
        _of_store("What node-subgraph and edge-subgraph do with what is of a type that is not named."),
    ] = "drop"
    into: Annotated[
        str | None,
        _of_store("flatten makes one edge type of this name, all nodes of one type, as to-homogeneous does.", metavar="NAME"),
    ] = None
    as_: Annotated[
        list[str],
        _of_store(
            "Call a column that an operation makes NAME; COLUMN says which, where it makes several. Repeatable.",
            "--as",
            metavar="[COLUMN=]NAME",
        ),
    ] = field(default_factory=list)
    maps: Annotated[
        str | None,
        _of_store(
            "Also write, for every type, where each old node and edge is now: .npy files of IDs, -1 for what is gone.",
            metavar="DIR",
        ),
    ] = None
    overwrite: OverwriteStore = False


@with_groups()
def transform(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the new store.", show_default=False)],
    operations: Annotated[
        list[str], typer.Argument(metavar="OP...", help="Operations with their arguments, in order.", show_default=False)
    ],
    *,
    output_flags: OutputFlags,
    run_flags: DeviceFlags,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Make a store of another: turn, merge, add, choose.

    OP is one of: reverse, add-reverse, to-bidirected [TYPE], symmetrize [sum|max|keep] [TYPE], to-simple
    [first|last|sum|max|count], self-loops drop|add, node-subgraph and edge-subgraph [TYPE=]FILE or [TYPE:]@COLUMN[=VALUE],
    khop-subgraph [TYPE=]FILE K, filter '[TYPE:] EXPRESSION', filter-degree MIN:MAX, largest-component, to-homogeneous,
    flatten RELATION, line-graph [no-backtracking], metagraph, layout csr|csc|both, index-dtype auto|int32|int64,
    sort-neighbors [id|weight|time|input], drop-columns [TYPE:]COLUMN.

    Example: graphprep transform karate-store karate-simple to-bidirected self-loops drop
    """
    from graphprep import api
    from graphprep.cli.progress import reporting
    from graphprep.model.options.transform import TransformOptions

    options = TransformOptions(**values_of(output_flags), run=run_flags.to_options(storage_flags))
    with reporting(report_flags) as reporter:
        summary = api.transform(store, out, operations, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: TransformSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    head = f"{display_url(summary.out)}: {summary.sizes_words()}; {', '.join(summary.operations)}"
    lines = [head, *types_lines(summary.num_nodes, summary.num_edges, every=every), work_line(summary)]
    return wrapped_text(lines + note_lines(summary.notes, every=every))
