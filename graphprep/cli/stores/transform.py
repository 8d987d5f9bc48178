"""``graphprep transform``: a store made of another by operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, types_lines, work_line, wrapped_text
from graphprep.model.options.transform import TransformOptions
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.transform import TransformSummary


@with_groups()
def transform(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the new store.", show_default=False)],
    operations: Annotated[
        list[str], typer.Argument(metavar="OP...", help="Operations with their arguments, in order.", show_default=False)
    ],
    *,
    options: TransformOptions,
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

    with reporting(report_flags) as reporter:
        summary = api.transform(store, out, operations, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: TransformSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    head = f"{display_url(summary.out)}: {summary.sizes_words()}; {', '.join(summary.operations)}"
    lines = [head, *types_lines(summary.num_nodes, summary.num_edges, every=every), work_line(summary)]
    return wrapped_text(lines + note_lines(summary.notes, every=every))
