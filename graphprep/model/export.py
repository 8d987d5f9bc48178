"""What ``export`` asks of a store, what a user can ask of it, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

from graphprep.model.option import MISSING_TIME, Option, read_pairs
from graphprep.model.run_options import RunOptions
from graphprep.model.schema import Layout
from graphprep.model.shown.results import Card, RunResult
from graphprep.model.shown.texts import count, duration, size

_of_graph = partial(Option, "Graph")
_of_files = partial(Option, "Files")


def read_dtypes(flag: str, texts: Sequence[str]) -> Mapping[str, str]:
    """Read repeated ``[NAME=]DTYPE``; the name is ``*`` where none is given. Raises UsageError."""
    return read_pairs(flag, [one if "=" in one else f"*={one}" for one in texts])


EdgeOrder = Literal["csc", "csr", "input"]
Side = Literal["node", "edge"]
MessageEdges = Literal["train", "train+valid", "all"]
# Parts of a split (1 valid, 2 test) whose edges no message passes over.
HELD_OUT: Mapping[MessageEdges, tuple[int, ...]] = {"train": (1, 2), "train+valid": (2,), "all": ()}


@dataclass(frozen=True)
class StoreNeed:
    """What an exporter reads of a store.

    ``layouts`` are the adjacency layouts that must be there. ``edge_columns`` is the order in which edge columns are read: the
    rows of a layout, or ``input``, by edge ID; None: they are not read. ``input_order``: the ends of all edges are read by edge
    ID, and nodes with their columns by raw ID. ``num_parts``, ``partition_by`` (a method of ``convert``, or a file) and
    ``seed``: another partitioning; None stands for that of the store. ``is_fixed``: users cannot ask for another one.
    ``message_edges``: which edges of a type that has a split the layouts have, and columns in their order. ``split_edges``: all
    edges of such a type are read by edge ID, too, with their columns. ``timed_edges``: the numbers of edge types whose layouts
    have only edges with a time.
    """

    layouts: tuple[Layout, ...] = ()
    edge_columns: EdgeOrder | None = None
    input_order: bool = False
    num_parts: int | None = None
    partition_by: str | None = None
    seed: int = 0
    is_fixed: bool = False
    message_edges: MessageEdges = "all"
    split_edges: bool = False
    timed_edges: tuple[int, ...] = ()


@dataclass(frozen=True)
class Unsupported:
    """A column that a target does not support. ``type`` is a node type or ``src:rel:dst``."""

    side: Side
    type: str
    column: str
    reason: str

    @property
    def text(self) -> str:
        """Say it."""
        return f"{self.side} column {self.type} {self.column!r}: {self.reason}"


@dataclass(frozen=True)
class ExportPlan:
    """What an exporter says of a graph before anything is written: what it reads, which columns it does not support, notes.

    ``in_order``: the nodes of a reordered store are to be numbered in its order, unless ``--ids`` says otherwise.
    ``hands_times``: a sampler may draw by the times of edges, so that none of these may be missing.
    ``left_out`` are columns that are left out unasked, and told. ``features`` names, for each type with a feature matrix, the
    columns that stand in it, side by side. ``dtypes``: with ``trainer``, floats and features are float32 and whole labels
    int64, unless users ask for other dtypes; with ``labels``, whole labels are int64; all else is as it is in the store.
    ``files`` is ``labels`` for files that say themselves which rows lack a value, so that nobody is told.
    """

    need: StoreNeed
    unsupported: tuple[Unsupported, ...] = ()
    notes: tuple[str, ...] = ()
    in_order: bool = False
    hands_times: bool = False
    left_out: tuple[Unsupported, ...] = ()
    features: Mapping[tuple[Side, str], tuple[str, ...]] = field(default_factory=dict)
    dtypes: Literal["stored", "files", "labels", "trainer"] = "stored"


@dataclass(frozen=True)
class ExportOptions:
    """Options of ``export``.

    ``target_options`` are the exporter's own fields, as given. ``ids``: what trainers see of nodes. ``partitions``,
    ``partition_by`` and ``seed``: another partitioning on the way. ``feature_dtypes`` maps a column (``name``, or
    ``type:name``; ``*``: all features) to the dtype in which it is written. ``drop_columns`` (named likewise) are left out, the
    sparse columns of ``densify`` are written as dense ones, ``drop_unsupported`` leaves out what the target does not support.
    ``message_edges``: the edges of a split that messages pass over, so that the graph has them; None: as the target has it.
    ``missing_time``: of edges without a time, where samplers draw by it: ``refuse``, ``drop`` them, or the time that they get.
    ``link`` lets arrays of the store that the target takes as they are be hard links where OUT is on the same disk.
    """

    ids: Annotated[
        Literal["auto", "raw", "typed"],
        _of_graph("What nodes are called: raw IDs, 0..n-1 (typed), or raw where these are 0..n-1 (auto)."),
    ] = "auto"
    partitions: Annotated[
        int | None,
        _of_graph("Number of partitions.  [default: the store's]", metavar="N", least=1, hint="give the number of partitions"),
    ] = None
    partition_by: Annotated[
        str | None,
        _of_graph(
            "range, hash, modulo, random, round-robin, ldg, fennel, metis, a file, or python:MODULE:FUNCTION.  [default: "
            "as in the store]",
            metavar="METHOD",
            words="range|hash|modulo|random|round-robin|ldg|fennel|metis",
        ),
    ] = None
    seed: Annotated[int, _of_graph("Seed of --partition-by random.", metavar="N")] = 0
    feature_dtypes: Annotated[
        Mapping[str, str],
        _of_graph(
            "Write a column with this dtype, such as feat=float16, or without NAME all features; NAME may be TYPE:COLUMN. "
            "May be repeated.",
            metavar="[NAME=]DTYPE",
            flags="--feature-dtype",
            read=read_dtypes,
        ),
    ] = field(default_factory=dict)
    densify: Annotated[
        tuple[str, ...],
        _of_graph(
            "Write a sparse column as a dense one, as wide as its largest coordinate says; may be repeated.",
            metavar="[TYPE:]COL",
        ),
    ] = ()
    drop_columns: Annotated[
        tuple[str, ...], _of_graph("Column to leave out; may be repeated.", metavar="[TYPE:]COL", flags="--drop-column")
    ] = ()
    drop_unsupported: Annotated[bool, _of_graph("Leave out columns that the target does not support.")] = False
    message_edges: Annotated[
        MessageEdges | None,
        _of_graph(
            "Of edges with a split, those that the graph has; the others are seeds alone.  [default: train, of files all]"
        ),
    ] = None
    missing_time: Annotated[
        str,
        _of_graph(
            "pyg, graphbolt, deepgnn: edges without a time, where samplers draw by it: refuse them, drop them, or their time.",
            metavar="refuse|drop|TIME",
            words=MISSING_TIME,
        ),
    ] = "refuse"
    link: Annotated[
        bool,
        _of_files(
            "Hard links to the store's arrays where the target takes them as they are, or copies.", flags="--link/--copy"
        ),
    ] = False
    overwrite: Annotated[bool, _of_files("Replace OUT if it is an export; the old one stays until the new one is whole.")] = (
        False
    )
    target_options: Mapping[str, Any] = field(default_factory=dict)
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True, repr=False)
class ExportSummary(RunResult):
    """What ``export`` did. Sizes in bytes, times in seconds; ``ids`` says of each node type which IDs its nodes have.

    ``num_linked`` of the files are hard links to the store's. ``dropped`` are the columns that were left out, ``notes``
    sentences for the user. ``held_out`` tells of edge types how many valid and test edges, and edges without a time
    (``untimed``), the graph does not have.
    """

    out: str
    target: str
    loads_in: str
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    num_files: int
    ids: Mapping[str, str]
    input_bytes: int
    output_bytes: int
    elapsed_s: float
    peak_memory_bytes: int
    num_linked: int = 0
    dropped: tuple[str, ...] = ()
    message_edges: MessageEdges = "all"
    held_out: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        work = f"wrote {size(self.output_bytes)} in {count(self.num_files, 'file')} in {duration(self.elapsed_s)}"
        lost = [f"left out: {one}" for one in self.dropped]
        return self.card_of(f"{self.out}: {self.target}, {self.sizes_words()}", f"loads in {self.loads_in}", work, *lost)


@dataclass(frozen=True)
class TargetOption:
    """An option of a target: the values that it takes, as ``COO|CSR`` or ``N``, its default ("": none), and what it means."""

    name: str
    values: str
    default: str
    meaning: str = ""


@dataclass(frozen=True)
class TargetInfo:
    """A target as ``export --list`` shows it: what loads it, what it carries and not, what it needs of a store, its options.

    Of a store: ``makes`` is what is made on the way, ``unsupported`` the columns that would be left out, ``refusal`` why it
    cannot be exported at all ("": it can).
    """

    name: str
    loads_in: str
    carries: str
    needs: str
    options: tuple[TargetOption, ...]
    makes: tuple[str, ...] = ()
    unsupported: tuple[str, ...] = ()
    refusal: str = ""
