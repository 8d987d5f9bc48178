"""What a user can ask of ``generate``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Annotated, Any, Literal

from graphprep.model.option import Option
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count, duration, size

_of_output = partial(Option, "Output")
_of_edges = partial(Option, "R-MAT and grid")
_of_rmat = partial(Option, "R-MAT")
_of_grid = partial(Option, "Grid")
_of_hetero = partial(Option, "Users and items")

GraphKind = Literal["rmat", "grid", "hetero"]
GenerateFormat = Literal["edges", "csv", "parquet", "npy", "edgelist", "json", "tsv", "chunked"]

KINDS: tuple[GraphKind, ...] = ("rmat", "grid", "hetero")
EDGE_FORMATS: tuple[GenerateFormat, ...] = ("edges", "csv", "parquet", "npy")
HETERO_FORMATS: tuple[GenerateFormat, ...] = ("csv", "parquet", "edgelist", "json", "tsv", "chunked")
FOLDER_FORMATS: dict[GraphKind, tuple[GenerateFormat, ...]] = {
    "rmat": ("npy",),
    "grid": ("npy",),
    "hetero": ("csv", "parquet", "chunked"),
}

# The options of each kind, with their defaults; None: see docs/generate.md.
DEFAULTS: dict[GraphKind, dict[str, Any]] = {
    "rmat": {"scale": 16, "edge_factor": 16, "edges": None, "a": 0.57, "b": 0.19, "c": 0.19, "permute": True},
    "grid": {"rows": 1000, "cols": 1000, "torus": False},
    "hetero": {"nodes": 10_000, "edges": 100_000, "features": 16, "chunks": 4},
}
DEFAULTS["rmat"] |= {"weights": False, "times": False}
DEFAULTS["grid"] |= {"weights": False, "times": False}


@dataclass(frozen=True)
class GenerateOptions:
    """Options of ``generate``; None means: not given. The command line names each of them in its help."""

    format: Annotated[
        GenerateFormat | None,
        _of_output(
            "R-MAT and grid: edges (src dst; the default), csv, parquet, npy (a folder). Hetero: csv (the default) or "
            "parquet (a folder with graph.yaml), edgelist, json, tsv, chunked. OUT may end in .csv or .parquet instead.",
            flags="--format -f",
            metavar="NAME",
        ),
    ] = None
    seed: Annotated[int, _of_output("Seed; the same one gives the same bytes.", metavar="N")] = 0
    overwrite: Annotated[bool, _of_output("Replace OUT; the old one stays until the new one is whole.")] = False
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
    permute: Annotated[
        bool | None, _of_rmat("Leave nodes in the order of their quarters: hubs first.", flags="--no-permute")
    ] = None
    rows: Annotated[int | None, _of_grid("Rows of nodes.  [default: 1000]", metavar="N")] = None
    cols: Annotated[int | None, _of_grid("Columns of nodes.  [default: 1000]", metavar="N")] = None
    torus: Annotated[bool | None, _of_grid("Link the borders to those on the other side.")] = None
    weights: Annotated[bool | None, _of_edges("Add a weight of six decimals, 0 <= w < 1.")] = None
    times: Annotated[bool | None, _of_edges("Add a time in seconds, in the year 2020.")] = None
    nodes: Annotated[int | None, _of_hetero("Nodes: 60 % users, the rest items.  [default: 10,000]", metavar="N")] = None
    features: Annotated[int | None, _of_hetero("Features of a node.  [default: 16]", metavar="N")] = None
    chunks: Annotated[int | None, _of_hetero("Files a type, of --format chunked.  [default: 4]", metavar="N")] = None
    run: RunOptions = field(default_factory=RunOptions)

    def given(self) -> dict[str, Any]:
        """Return the options of a kind of graph that are given."""
        common = ("format", "seed", "overwrite", "run")
        values = {one.name: getattr(self, one.name) for one in fields(self) if one.name not in common}
        return {name: value for name, value in values.items() if value is not None}


@dataclass(frozen=True, repr=False)
class GenerateSummary(Showable):
    """What ``generate`` did. ``num_nodes`` and ``num_edges`` are by type."""

    out: str
    kind: GraphKind
    format: GenerateFormat
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    output_bytes: int
    elapsed_s: float

    def card(self) -> Card:
        """See ``Showable``."""
        nodes, edges = sum(self.num_nodes.values()), sum(self.num_edges.values())
        title = f"{self.out}: {self.kind}, {self.format}, {count(nodes, 'node')}, {count(edges, 'edge')}"
        work = f"wrote {size(self.output_bytes)} in {duration(self.elapsed_s)}"
        return Card(title, type_rows(self.num_nodes, self.num_edges), (work,))
