"""``graphprep generate``: test graphs, from a seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import OF_DEVICES, AsJson, ReportFlags
from graphprep.cli.printed.summaries import print_result, print_told, summary_json, types_lines, wrapped_text
from graphprep.model.options.generate import GenerateOptions
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.generate import GenerateSummary

_STDOUT = "-"


@with_groups(without=("memory_limit", "tmp_dir", *OF_DEVICES))
def generate(
    *,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="rmat, grid or hetero (users and items).", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="File, folder or URL; - is stdout.", show_default=False)],
    options: GenerateOptions,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Generate a test graph: R-MAT, a grid, or users and items.

    Any number of threads writes the same bytes.

    Example: graphprep generate rmat rmat.txt --scale 10
    """
    from graphprep import api
    from graphprep.cli.progress import reporting

    with reporting(report_flags) as reporter:
        summary = api.generate(kind, out, options, reporter)
    if out != _STDOUT:
        print_result(summary, summary_json, lambda one, every: summary_text(one), report_flags, as_json=as_json)
    elif not report_flags.quiet:  # beside edges on stdout the summary is a message
        print_told(summary_json(summary) if as_json else summary_text(summary), report_flags)


def summary_text(summary: GenerateSummary) -> str:
    """Write the summary for people."""
    from graphprep.cli.printed.words import count, duration, quantity, size

    nodes, edges = sum(summary.num_nodes.values()), sum(summary.num_edges.values())
    seconds = max(summary.elapsed_s, 1e-3)
    lines = [f"{display_url(summary.out)}: {summary.format}, {count(nodes, 'node')}, {count(edges, 'edge')}"]
    if len(summary.num_nodes) > 1:
        lines += types_lines(summary.num_nodes, summary.num_edges)
    lines.append(f"  wrote {size(summary.output_bytes)} in {duration(summary.elapsed_s)}: {quantity(edges / seconds)} edges/s")
    return wrapped_text(lines)
