"""``graphprep sample``: neighbourhoods of seeds, drawn beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_DEVICES, AsJson, ReportFlags
from graphprep.cli.printed.summaries import note_lines, print_result, summary_json, wrapped_text
from graphprep.cli.printed.words import peak_memory, quantity
from graphprep.model.options.sample import SampleOptions
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.sample import SampleSummary


@with_groups(without=OF_DEVICES)
def sample(
    store: Annotated[str, typer.Argument(metavar="STORE", help="Store to read.", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="Folder or URL of the samples.", show_default=False)],
    *,
    options: SampleOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Draw neighbourhoods of seeds, mini-batch after mini-batch.

    Each becomes a flow (NodeFlow): layers of nodes, blocks of edges between them, and where both stand in the store. The same
    --seed gives the same files, whatever the threads, the memory limit and the number of range partitions.

    Example: graphprep sample karate-store flows --seeds ids.txt --fanouts 10,5
    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    with reporting(report_flags) as reporter:
        summary = api.sample(store, out, options, reporter)
    print_result(summary, summary_json, summary_text, report_flags, as_json=as_json)


def summary_text(summary: SampleSummary, *, every: bool = False) -> str:
    """Write the summary for people; ``every``: with all notes, however many."""
    lines = [f"{display_url(summary.out)}: {summary.flows_words()}"]
    rate = f"{quantity(summary.sampled_edges_per_s)} sampled edges/s"
    lines.append(f"  {summary.work_words()}: {rate}, {peak_memory(summary.peak_memory_bytes)}")
    return wrapped_text(lines + note_lines(summary.notes, every=every))
