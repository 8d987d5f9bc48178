"""What a user can ask of ``stats``, and what it answers. ``docs/stats.md`` says what each number means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal

from graphprep.model.option import Option
from graphprep.model.options.partition import PartitionCut
from graphprep.model.options.reorder import GapCost
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count, duration

_of_stats = partial(Option, "Statistics")

Number = int | float


@dataclass(frozen=True)
class StatsOptions:
    """Options of ``stats``.

    ``triangles``: count them (``exact``), estimate them from a sample (``sampled``), or count what fits in memory and sample
    what does not (``auto``); None: neither. ``seed`` is that of the sample. ``top``: how many hubs are named. ``histograms``:
    count the values of columns in bins, as ``plot`` does, a file that pictures are written to: ``.svg``, ``.png`` or ``.html``.
    ``overwrite``: replace it.
    """

    triangles: Annotated[
        Literal["auto", "exact", "sampled"] | None,
        _of_stats(
            "Find triangles and clustering: count them, estimate them from a sample, or (auto) count them where memory "
            "holds the graph."
        ),
    ] = None
    top: Annotated[
        int, _of_stats("Name the N nodes of the most edges.", metavar="N", least=0, hint="give the number of hubs to name")
    ] = 10
    seed: Annotated[int, _of_stats("Seed of the sample.", metavar="N")] = 0
    plot: Annotated[
        str | None,
        _of_stats("Write pictures to a file: .svg, .png, or .html, a report by itself. Needs the extra plots.", metavar="FILE"),
    ] = None
    overwrite: Annotated[bool, _of_stats("Replace the file of pictures.")] = False
    histograms: bool = False
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class Bin:
    """How many have a value in [low, high]; both included, but that of real numbers ends before ``high`` save the last."""

    low: Number
    high: Number
    count: int


@dataclass(frozen=True)
class PowerLaw:
    """A discrete power law fitted to values of ``xmin`` and more, of which there are ``num_tail``.

    ``ks`` is the Kolmogorov-Smirnov distance from it, ``alpha_error`` the standard error of the exponent ``alpha``.
    """

    alpha: float
    alpha_error: float
    xmin: int
    ks: float
    num_tail: int


@dataclass(frozen=True)
class Distribution:
    """How integers (degrees, sizes) are distributed.

    ``percentiles``: of p % of them no value is larger, by p. ``histogram``: bins 0, 1, 2-3, 4-7 and so on up to the largest
    value. ``power_law`` is None where fewer than two positive values differ.
    """

    count: int
    min: int
    mean: float
    max: int
    percentiles: Mapping[str, int]
    histogram: tuple[Bin, ...]
    power_law: PowerLaw | None = None


@dataclass(frozen=True)
class Hub:
    """A node of many edges."""

    raw_id: int | str
    typed_id: int
    degree: int


@dataclass(frozen=True)
class ColumnStats:
    """A column: of ``num_rows`` rows ``num_missing`` have none, and of its values ``num_nan`` are no numbers.

    ``min``, ``mean`` and ``max`` are those of all other values, of texts those of their lengths in bytes; None without any.
    ``num_distinct`` is exact up to 65,536, beyond that an estimate (``is_exact`` says which). ``counts``: how many rows have
    each value, of labels, splits and categories of at most 1,000 values. ``histogram`` is empty unless it is
    asked for and values differ. ``unit`` is that of times since 1970: ``day``, ``s``, ``ms``, ``us`` or ``ns``; of whole
    numbers without one that are times, or may be, it is found by their size. ``is_amount``: the values are no codes, keys or
    IDs, so that their mean says something; else ``mean`` is None.
    """

    name: str
    kind: str
    dtype: str
    item_shape: tuple[int, ...]
    role: str | None
    num_rows: int
    num_missing: int
    num_values: int
    num_nan: int
    min: Number | None
    mean: float | None
    max: Number | None
    num_distinct: int
    is_exact: bool
    counts: Mapping[str, int] | None = None
    histogram: tuple[Bin, ...] = ()
    unit: str | None = None
    is_amount: bool = True

    def words(self, value: Number | None) -> str | None:
        """Return a value as people read it: a time as a date; None where it says nothing, as that of a code."""
        if value is None or self.unit is None:
            return None if value is None else _amount(value)
        return time_text(value, self.unit)


def _amount(value: Number) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def time_text(value: Number, unit: str) -> str:
    """Return a time since 1970 as a date, with the time of the day where it has one; one beyond the calendar as the number."""
    from datetime import UTC, datetime, timedelta

    per_second = {"day": 1 / 86_400, "s": 1, "ms": 1e3, "us": 1e6, "ns": 1e9}[unit]
    try:
        at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=float(value) / per_second)
    except OverflowError:
        return _amount(value)
    return f"{at:%Y-%m-%d}" if (at.hour, at.minute, at.second) == (0, 0, 0) else f"{at:%Y-%m-%d %H:%M:%S}"


@dataclass(frozen=True)
class NodeTypeStats:
    """Nodes of a type; degrees count the edges of all types, self-loops as an in-edge and an out-edge."""

    name: str
    num_nodes: int
    num_isolated: int
    degrees: Distribution
    in_degrees: Distribution
    out_degrees: Distribution
    hubs: tuple[Hub, ...]
    columns: tuple[ColumnStats, ...] = ()


@dataclass(frozen=True)
class EdgeTypeStats:
    """Edges of a type. ``in_degrees`` are those of all nodes of the destination's type, ``out_degrees`` of the source's.

    ``num_repeated`` edges have the ends of another one before them. ``reciprocity`` is the share of ends of self-loops apart,
    each counted once, whose reverse is there too; None between two types, and without any.
    """

    name: str
    num_edges: int
    num_self_loops: int
    num_repeated: int
    reciprocity: float | None
    in_degrees: Distribution
    out_degrees: Distribution
    in_hubs: tuple[Hub, ...]
    out_hubs: tuple[Hub, ...]
    locality: GapCost
    columns: tuple[ColumnStats, ...] = ()


@dataclass(frozen=True)
class ComponentStats:
    """Weakly connected components over all types; ``sizes`` are their numbers of nodes."""

    count: int
    largest: int
    largest_share: float
    sizes: Distribution


@dataclass(frozen=True)
class TriangleStats:
    """Triangles of the graph of all types without directions, loops and repeated edges.

    ``global_clustering`` is the share of paths of two edges that a third closes, ``average_clustering`` the mean over all
    nodes of that share among the paths in their middle. Where it is not ``exact``, each number has its standard error, from
    ``num_samples`` paths and as many nodes.
    """

    exact: bool
    num_triangles: int
    num_paths: int
    global_clustering: float
    average_clustering: float
    num_triangles_error: float = 0.0
    global_clustering_error: float = 0.0
    average_clustering_error: float = 0.0
    num_samples: int = 0


@dataclass(frozen=True)
class PartStats:
    """The partitions. By type, a number for each: ``nodes``, ``edges`` (owned) and ``halo`` (nodes of others one hop away).

    ``cut_edges`` are by type those between partitions; ``cut_matrix[p][q]`` those from p to q, of at most 64 partitions.
    """

    partition_by: str
    nodes: Mapping[str, tuple[int, ...]]
    edges: Mapping[str, tuple[int, ...]]
    halo: Mapping[str, tuple[int, ...]]
    cut_edges: Mapping[str, int]
    cut_matrix: tuple[tuple[int, ...], ...]
    total: PartitionCut

    def sums(self) -> dict[str, list[int]]:
        """Return ``nodes``, ``edges`` and ``halo`` of each partition, those of all types together."""
        kinds = {"nodes": self.nodes, "edges": self.edges, "halo": self.halo}
        none = [0] * max((len(one) for counts in kinds.values() for one in counts.values()), default=0)
        return {name: [sum(one) for one in zip(*counts.values(), strict=True)] or none for name, counts in kinds.items()}


@dataclass(frozen=True, repr=False)
class StatsReport(Showable):
    """What ``stats`` found. Sizes in bytes, times in seconds.

    ``parts`` is None where there is one partition, ``triangles`` where they were not asked for, ``plot`` where there are no
    pictures.
    """

    path: str
    graph_name: str
    num_parts: int
    nodes: tuple[NodeTypeStats, ...]
    edges: tuple[EdgeTypeStats, ...]
    components: ComponentStats
    triangles: TriangleStats | None
    parts: PartStats | None
    plot: str | None
    elapsed_s: float
    peak_memory_bytes: int
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0

    @property
    def num_nodes(self) -> Mapping[str, int]:
        """Return the number of nodes of each type."""
        return {one.name: one.num_nodes for one in self.nodes}

    @property
    def num_edges(self) -> Mapping[str, int]:
        """Return the number of edges of each type."""
        return {one.name: one.num_edges for one in self.edges}

    def all_degrees(self) -> list[tuple[str, Distribution]]:
        """Return the degrees of all node types and, by direction, of all edge types, with their names."""
        of_edges = [(one.name, {"in": one.in_degrees, "out": one.out_degrees}) for one in self.edges]
        found = [(one.name, one.degrees) for one in self.nodes]
        return found + [(f"{name} {way}", degrees) for name, ways in of_edges for way, degrees in ways.items()]

    def all_columns(self) -> list[tuple[str, ColumnStats]]:
        """Return the columns of all types with the names of these."""
        found = [(one.name, column) for one in self.nodes for column in one.columns]
        return found + [(one.name, column) for one in self.edges for column in one.columns]

    def card(self) -> Card:
        """See ``Showable``."""
        nodes, edges = sum(self.num_nodes.values()), sum(self.num_edges.values())
        counts = (count(nodes, "node"), count(edges, "edge"), count(self.num_parts, "partition"))
        found = f"{count(self.components.count, 'component')}, the largest of {count(self.components.largest, 'node')}"
        done = f"looked at in {duration(self.elapsed_s)}"
        return Card(f"{self.path}: {', '.join(counts)}", type_rows(self.num_nodes, self.num_edges), (found, done))
