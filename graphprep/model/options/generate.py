"""What a user can ask of ``generate``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count, duration, size

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

    format: GenerateFormat | None = None
    seed: int = 0
    overwrite: bool = False
    scale: int | None = None
    edge_factor: int | None = None
    edges: int | None = None
    a: float | None = None
    b: float | None = None
    c: float | None = None
    permute: bool | None = None
    rows: int | None = None
    cols: int | None = None
    torus: bool | None = None
    nodes: int | None = None
    features: int | None = None
    chunks: int | None = None
    weights: bool | None = None
    times: bool | None = None
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
