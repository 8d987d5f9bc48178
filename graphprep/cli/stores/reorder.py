"""``graphprep reorder``: a store with its nodes in another order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, types_lines, work_line, wrapped_text
from graphprep.model.options.reorder import ReorderOptions
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.reorder import ReorderSummary


@with_groups()
def reorder(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the new store.", show_default=False)],
    *,
    options: ReorderOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Relabel each partition's nodes: by degree, or in another order.

    Every type for itself, ties by ID. Everything follows: edges, columns, raw IDs. graphprep ids converts between old and new
    IDs (previous, typed).

    Example: graphprep reorder karate-store karate-hot --by degree
    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    with reporting(report_flags) as reporter:
        summary = api.reorder(store, out, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: ReorderSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    head = f"{display_url(summary.out)}: {summary.sizes_words()}, nodes by {summary.by}"
    lines = [head, *types_lines(summary.num_nodes, summary.num_edges, every=every)]
    lines += [work_line(summary), f"  {summary.gaps_line()}"]
    lines += [f"  hot nodes of type {name!r}: {number:,}" for name, number in summary.num_hot.items() if number]
    return wrapped_text(lines + note_lines(summary.notes, every=every))
