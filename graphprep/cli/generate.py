"""``graphprep generate``: test graphs, from a seed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags, StorageFlags, Threads, option
from graphprep.cli.printed.summaries import print_result, print_told, summary_json, types_lines, wrapped_text
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.generate import GenerateSummary

_of_output = partial(option, "Output")
_of_edges = partial(option, "R-MAT and grid")
_of_rmat = partial(option, "R-MAT")
_of_grid = partial(option, "Grid")
_of_hetero = partial(option, "Users and items")
_STDOUT = "-"


@dataclass(frozen=True, eq=False, repr=False)
class OutputFlags:
    """How the graph is written."""

    format: Annotated[
        Literal["edges", "csv", "parquet", "npy", "edgelist", "json", "tsv", "chunked"] | None,
        _of_output(
            "R-MAT and grid: edges (src dst; the default), csv, parquet, npy (a folder). Hetero: csv (the default) or parquet "
            "(a folder with graph.yaml), edgelist, json, tsv, chunked. OUT may end in .csv or .parquet instead.",
            "--format -f",
            metavar="NAME",
        ),
    ] = None
    seed: Annotated[int, _of_output("Seed; the same one gives the same bytes.", metavar="N")] = 0
    overwrite: Annotated[
        bool, _of_output("Replace OUT; the old one stays until the new one is whole.", "--overwrite", default=False)
    ] = False


@dataclass(frozen=True)
class GraphFlags:
    """What the graph is like; None means: not given. Field names are those of ``GenerateOptions``."""

    scale: Annotated[int | None, _of_rmat("2^N nodes.  [default: 16]", metavar="N")] = None
    edge_factor: Annotated[int | None, _of_rmat("Edges a node.  [default: 16]", metavar="N")] = None
    edges: Annotated[int | None, _of_rmat("Edges in all, instead of --edge-factor; of hetero, too: 100,000.", metavar="N")] = (
        None
    )
    a: Annotated[float | None, _of_rmat("Share of the upper left quarter.  [default: 0.57]", metavar="X")] = None
    b: Annotated[float | None, _of_rmat("Share of the upper right quarter.  [default: 0.19]", metavar="X")] = None
    c: Annotated[
        float | None, _of_rmat("Share of the lower left quarter; the rest is the fourth's.  [default: 0.19]", metavar="X")
    ] = None
    no_permute: Annotated[
        bool, _of_rmat("Leave nodes in the order of their quarters: hubs first.", "--no-permute", default=False)
    ] = False
    rows: Annotated[int | None, _of_grid("Rows of nodes.  [default: 1000]", metavar="N")] = None
    cols: Annotated[int | None, _of_grid("Columns of nodes.  [default: 1000]", metavar="N")] = None
    torus: Annotated[bool, _of_grid("Link the borders to those on the other side.", "--torus", default=False)] = False
    weights: Annotated[bool, _of_edges("Add a weight of six decimals, 0 <= w < 1.", "--weights", default=False)] = False
    times: Annotated[bool, _of_edges("Add a time in seconds, in the year 2020.", "--times", default=False)] = False
    nodes: Annotated[int | None, _of_hetero("Nodes: 60 % users, the rest items.  [default: 10,000]", metavar="N")] = None
    features: Annotated[int | None, _of_hetero("Features of a node.  [default: 16]", metavar="N")] = None
    chunks: Annotated[int | None, _of_hetero("Files a type, of --format chunked.  [default: 4]", metavar="N")] = None

    def given(self) -> dict[str, Any]:
        """Return the library's options that the flags give."""
        values = {name: value for name, value in dataclasses.asdict(self).items() if value is not None and value is not False}
        if values.pop("no_permute", False):
            values["permute"] = False
        return values


@with_groups()
def generate(
    *,
    kind: Annotated[str, typer.Argument(metavar="KIND", help="rmat, grid or hetero (users and items).", show_default=False)],
    out: Annotated[str, typer.Argument(metavar="OUT", help="File, folder or URL; - is stdout.", show_default=False)],
    output_flags: OutputFlags,
    graph_flags: GraphFlags,
    threads: Threads = 0,
    storage_flags: StorageFlags,
    report_flags: ReportFlags,
    as_json: AsJson = False,
) -> None:
    """Generate a test graph: R-MAT, a grid, or users and items.

    Any number of threads writes the same bytes.

    Example: graphprep generate rmat rmat.txt --scale 10
    """
    from graphprep import api
    from graphprep.cli.options import RunFlags
    from graphprep.cli.progress import reporting
    from graphprep.model.options.generate import GenerateOptions

    run = RunFlags(threads=threads).to_options(storage_flags)
    options = GenerateOptions(**dataclasses.asdict(output_flags), **graph_flags.given(), run=run)
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
