"""``graphprep generate``: test graphs, from a seed."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from graphprep.cli.help.groups import with_groups
from graphprep.cli.options import AsJson, ReportFlags, StorageFlags, Threads, option
from graphprep.cli.summaries import summary_json, types_lines, wrapped_text
from graphprep.model.shown.texts import display_url

if TYPE_CHECKING:
    from graphprep.model.options.generate import GenerateSummary

_OUTPUT = "Output"
_EDGES = "R-MAT and grid"
_RMAT = "R-MAT"
_GRID = "Grid"
_HETERO = "Users and items"
_STDOUT = "-"


@dataclass(frozen=True, eq=False, repr=False)
class OutputFlags:
    """How the graph is written."""

    format: Annotated[
        Literal["edges", "csv", "parquet", "npy", "edgelist", "json", "tsv", "chunked"] | None,
        option(
            "--format -f",
            "R-MAT and grid: edges (src dst; the default), csv, parquet, npy (a folder). Hetero: csv (the default) or parquet "
            "(a folder with graph.yaml), edgelist, json, tsv, chunked. OUT may end in .csv or .parquet instead.",
            group=_OUTPUT,
            metavar="NAME",
        ),
    ] = None
    seed: Annotated[int, option("--seed", "Seed; the same one gives the same bytes.", group=_OUTPUT, metavar="N")] = 0
    overwrite: Annotated[
        bool, option("--overwrite", "Replace OUT; the old one stays until the new one is whole.", group=_OUTPUT, default=False)
    ] = False


@dataclass(frozen=True)
class GraphFlags:
    """What the graph is like; None means: not given. Field names are those of ``GenerateOptions``."""

    scale: Annotated[int | None, option("--scale", "2^N nodes.  [default: 16]", group=_RMAT, metavar="N")] = None
    edge_factor: Annotated[int | None, option("--edge-factor", "Edges a node.  [default: 16]", group=_RMAT, metavar="N")] = None
    edges: Annotated[
        int | None,
        option("--edges", "Edges in all, instead of --edge-factor; of hetero, too: 100,000.", group=_RMAT, metavar="N"),
    ] = None
    a: Annotated[float | None, option("--a", "Share of the upper left quarter.  [default: 0.57]", group=_RMAT, metavar="X")] = (
        None
    )
    b: Annotated[
        float | None, option("--b", "Share of the upper right quarter.  [default: 0.19]", group=_RMAT, metavar="X")
    ] = None
    c: Annotated[
        float | None,
        option("--c", "Share of the lower left quarter; the rest is the fourth's.  [default: 0.19]", group=_RMAT, metavar="X"),
    ] = None
    no_permute: Annotated[
        bool, option("--no-permute", "Leave nodes in the order of their quarters: hubs first.", group=_RMAT, default=False)
    ] = False
    rows: Annotated[int | None, option("--rows", "Rows of nodes.  [default: 1000]", group=_GRID, metavar="N")] = None
    cols: Annotated[int | None, option("--cols", "Columns of nodes.  [default: 1000]", group=_GRID, metavar="N")] = None
    torus: Annotated[bool, option("--torus", "Link the borders to those on the other side.", group=_GRID, default=False)] = (
        False
    )
    weights: Annotated[bool, option("--weights", "Add a weight of six decimals, 0 <= w < 1.", group=_EDGES, default=False)] = (
        False
    )
    times: Annotated[bool, option("--times", "Add a time in seconds, in the year 2020.", group=_EDGES, default=False)] = False
    nodes: Annotated[
        int | None, option("--nodes", "Nodes: 60 % users, the rest items.  [default: 10,000]", group=_HETERO, metavar="N")
    ] = None
    features: Annotated[int | None, option("--features", "Features of a node.  [default: 16]", group=_HETERO, metavar="N")] = (
        None
    )
    chunks: Annotated[
        int | None, option("--chunks", "Files a type, of --format chunked.  [default: 4]", group=_HETERO, metavar="N")
    ] = None

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
    text = summary_json(summary) if as_json else summary_text(summary)
    if out != _STDOUT or not report_flags.quiet:
        typer.echo(text, err=out == _STDOUT)


def summary_text(summary: GenerateSummary) -> str:
    """Write the summary for people."""
    from graphprep.cli.words import count, duration, quantity, size

    nodes, edges = sum(summary.num_nodes.values()), sum(summary.num_edges.values())
    seconds = max(summary.elapsed_s, 1e-3)
    lines = [f"{display_url(summary.out)}: {summary.format}, {count(nodes, 'node')}, {count(edges, 'edge')}"]
    if len(summary.num_nodes) > 1:
        lines += types_lines(summary.num_nodes, summary.num_edges)
    lines.append(f"  wrote {size(summary.output_bytes)} in {duration(summary.elapsed_s)}: {quantity(edges / seconds)} edges/s")
    return wrapped_text(lines)
