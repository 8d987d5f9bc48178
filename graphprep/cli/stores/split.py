"""``graphprep split``: a store that says which rows are train, valid and test."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_DEVICES, AsJson, ReportFlags
from graphprep.cli.printed.summaries import (
    kind_lines,
    note_lines,
    print_result,
    summary_json,
    types_lines,
    work_line,
    wrapped_text,
)
from graphprep.model.options.split import SplitOptions
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.split import SplitSummary


@with_groups(without=OF_DEVICES)
def split(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the new store.", show_default=False)],
    shares: Annotated[
        str,
        typer.Argument(
            metavar="[SHARES]",
            help="TRAIN/VALID/TEST or TRAIN/TEST: shares such as 0.8/0.1/0.1, or counts such as 140/500/1000.",
            show_default=False,
        ),
    ] = "",
    *,
    options: SplitOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Say which rows of a store are train, valid and test.

    The store is written again with a column, split, which exports turn into masks and sets; everything else stays.

    Example: graphprep split karate-store karate-split 0.8/0.1/0.1 --by random --of edges --symmetric
    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    with reporting(report_flags) as reporter:
        summary = api.split(store, out, shares, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: SplitSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    head = f"{display_url(summary.out)}: {summary.sizes_words()}, split by {summary.by}"
    lines = [head, *types_lines(summary.num_nodes, summary.num_edges, every=every), work_line(summary)]
    lines += kind_lines(summary.split_lines(), "split", every=every)
    return wrapped_text(lines + note_lines(summary.notes, every=every))
