"""``graphprep partition``: a store with its nodes in other partitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, types_lines, work_line, wrapped_text
from graphprep.cli.printed.words import count, table
from graphprep.model.options.partition import PartitionOptions
from graphprep.model.shown.results import MOST_TYPES
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.partition import PartitionSummary


@with_groups()
def partition(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of what is written.", show_default=False)],
    *,
    options: PartitionOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Put a store's nodes, and all else, into other partitions.

    The new store is what convert would have written with these partitions. The report tells how many edges they cut, and what
    hash would have cut.

    Example: graphprep partition karate-store karate-parts --by hash --partitions 2
    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    with reporting(report_flags) as reporter:
        summary = api.partition(store, out, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: PartitionSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all types, however many."""
    head = f"{display_url(summary.out)}: {summary.sizes_words()} by {summary.by}"
    types = types_lines(summary.num_nodes, summary.num_edges, every=every)
    lines = [head, *types, *_report_lines(summary, every=every), work_line(summary)]
    return wrapped_text(lines + note_lines(summary.notes, every=every))


def _report_lines(summary: PartitionSummary, *, every: bool) -> list[str]:
    """Return a table of the partitions, unless ``every`` of the first, and one of what they cost, beside hash."""
    report = summary.report
    columns = [[sum(one) for one in zip(*counts.values(), strict=True)] for counts in (report.nodes, report.edges, report.halo)]
    columns = [column or [0] * summary.num_parts for column in columns]
    shown = summary.num_parts if every else min(summary.num_parts, MOST_TYPES)
    rows = [(str(part), *(f"{column[part]:,}" for column in columns)) for part in range(shown)]
    lines = table([("part", "nodes", "edges", "halo"), *rows], right=(0, 1, 2, 3))
    if shown < summary.num_parts:
        lines.append(f"  ... and {summary.num_parts - shown:,} more; -v shows all")
    costs = [(summary.by, report.total)] + ([("hash", report.hash)] if summary.by != "hash" else [])
    return lines + table(
        [
            ("", *(name for name, _ in costs)),
            ("edges cut", *(f"{cut.cut_edges:,} ({cut.cut_share:.1%})" for _, cut in costs)),
            (f"halo of {count(report.halo_hops, 'hop')}", *(f"{cut.halo_nodes:,}" for _, cut in costs)),
            ("communication volume", *(f"{cut.communication_volume:,}" for _, cut in costs)),
            ("imbalance of nodes", *(f"{cut.node_imbalance:.3f}" for _, cut in costs)),
            ("imbalance of edges", *(f"{cut.edge_imbalance:.3f}" for _, cut in costs)),
        ],
        right=(1, 2),
    )
