"""What a user can ask of ``convert``, and what it answers."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Annotated, Any, Literal

from graphprep.model.errors import UsageError
from graphprep.model.graph_config import GraphConfig
from graphprep.model.option import OVERWRITE, PLAIN, TABLES, Option
from graphprep.model.run_options import RunOptions
from graphprep.model.schema import Layout, NeighborOrder
from graphprep.model.shown.results import Card, RunResult

_of_input = partial(Option, "Input")
_of_roles = partial(Option, "Columns from files, labels, splits, seeds")
_of_store = partial(Option, "Store")
_of_faults = partial(Option, "Faulty input")
_of_resources = partial(Option, "Resources")

HEAD = Option(
    "Output of the command",
    "Show the first N nodes and edges of each type.",
    metavar="N",
    is_first=True,
    least=0,
    hint="give the number of rows to show",
)
MAX_FAULTS = Option(
    "Output of the command",
    "Print at most N faults of a store; all are counted.",
    metavar="N",
    is_first=True,
    least=0,
    most=1_000_000,
    hint="give the number of faults to print",
)


def read_counts(flag: str, texts: Sequence[str]) -> Mapping[str, int]:
    """Read repeated ``[TYPE=]N``; the type is ``""`` where none is named.

    Raises UsageError where N is no number >= 0, or a type comes twice.
    """
    values: dict[str, int] = {}
    for text in texts:
        node_type, _, number = text.rpartition("=")
        if not (number.isascii() and number.isdigit()):
            raise UsageError(f"{flag} must be N or TYPE=N, found {text!r}", fix="write N as decimal digits")
        if node_type in values:
            what = f"for type {node_type!r} twice" if node_type else "twice"
            raise UsageError(f"{flag} is given {what}", fix="give it once")
        values[node_type] = int(number)
    return values


def read_limit(_flag: str, texts: Sequence[str]) -> int | str:
    """Return a number where one is written; a share stays the text that it is."""
    (text,) = texts
    return int(text) if text.isascii() and text.isdigit() else text


@dataclass(frozen=True, eq=False, repr=False)
class InputOptions:
    """How an input is read.

    ``format`` None means: sniff. ``decoder_options`` are the decoder's own fields, as given. ``graph`` says which files are the
    tables of which types (``--nodes``, ``--edges``). ``num_nodes`` maps a node type (``""`` for the only one) to its number.
    """

    format: Annotated[
        str | None,
        _of_input(
            "Format of the input: edges, triples, arrays, mtx, metis, edgelist, json, tsv, chunked, graph (a config of "
            "tables), neo4j, graphstorm, graphbolt, ogb or an installed decoder.  [default: found in the data]",
            flags="--format -f",
            metavar="NAME",
            is_first=True,
            words="edges|triples|arrays|mtx|metis|edgelist|json|tsv|chunked|graph|neo4j|graphstorm|graphbolt|ogb",
        ),
    ] = None
    decoder: Annotated[str | None, _of_input("Decoder class to use instead: package.module:Class.", metavar="MODULE:CLASS")] = (
        None
    )
    decoder_options: Mapping[str, Any] = field(default_factory=dict)
    schema: Annotated[
        str | None,
        _of_input("Schema file; data that does not fit it is an error.  [default: found in the data]", metavar="FILE"),
    ] = None
    ids: Annotated[
        Literal["auto", "dense", "sparse"] | None,
        _of_input(
            "Nodes of an edge list: all of 0..max (dense), or only the IDs that occur (sparse).  [default: auto, dense "
            "where max ID + 1 <= 2 x edges]",
            formats=PLAIN,
        ),
    ] = None
    num_nodes: Annotated[
        Mapping[str, int],
        _of_input(
            "Number of nodes, of TYPE where there are several; may be repeated.",
            metavar="[TYPE=]N",
            formats=("tables", *PLAIN),
            read=read_counts,
        ),
    ] = field(default_factory=dict)
    node_data: Annotated[
        tuple[str, ...],
        _of_roles(
            "Column NAME of the nodes of TYPE, from a file of its own (npy, Parquet, CSV): row r is that of the node with "
            "raw ID r; with @COL, each row is that of the raw ID in column COL.",
            metavar="[TYPE:]NAME=FILE[@COL]",
            formats=TABLES,
        ),
    ] = ()
    edge_data: Annotated[
        tuple[str, ...],
        _of_roles(
            "Column NAME of edges: row r is that of the edge with edge ID r.", metavar="[SRC:REL:DST:]NAME=FILE", formats=TABLES
        ),
    ] = ()
    labels: Annotated[
        tuple[str, ...], _of_roles("Column that is the label; texts become numbers.", metavar="[TYPE:]COL", flags="--label")
    ] = ()
    splits: Annotated[
        tuple[str, ...],
        _of_roles(
            "Column that is the split (0, 1, 2 or train, valid, test), three masks, shares to draw it by (0.8/0.1/0.1), or "
            "TYPE=TRAIN,VALID,TEST: files of raw IDs.",
            metavar="[TYPE:]SPLIT",
            flags="--split",
        ),
    ] = ()
    seeds: Annotated[tuple[str, ...], _of_roles("File of raw IDs of nodes to mark as seeds.", metavar="[TYPE=]FILE")] = ()
    categories: Annotated[
        tuple[str, ...],
        _of_roles(
            "Column of texts to store as numbers 0, 1 ... in the order of the texts, which stand in the schema.",
            metavar="[TYPE:]COL",
            flags="--category",
        ),
    ] = ()
    graph: GraphConfig | None = None


@dataclass(frozen=True, eq=False, repr=False)
class StoreOptions:
    """What the store looks like. ``drop_self_loops``, ``dedup``, ``undirected``, ``largest_component`` come in this order."""

    partitions: Annotated[
        int | None,
        _of_store(
            "Number of partitions.  [default: 1]",
            flags="--partitions -p",
            metavar="N",
            is_first=True,
            least=1,
            hint="give the number of partitions",
        ),
    ] = None
    partition_by: Annotated[
        str,
        _of_store(
            "How nodes are assigned to partitions: range, hash, modulo, random, round-robin, ldg, fennel, metis, a file of "
            "assignments, or python:MODULE:FUNCTION.",
            metavar="METHOD",
            words="range|hash|modulo|random|round-robin|ldg|fennel|metis",
        ),
    ] = "range"
    layout: Annotated[
        Literal["csc", "csr", "both"], _of_store("Arrays by destination (csc), by source (csr), or both.", is_first=True)
    ] = "csc"
    neighbor_order: Annotated[
        NeighborOrder, _of_store("Order of a node's neighbours: as in the input, by ID, oldest first, or heaviest first.")
    ] = "input"
    edge_ids: Annotated[bool, _of_store("Leave out the edge IDs (an edge's place in the input).", flags="--no-edge-ids")] = True
    edge_id_col: Annotated[
        tuple[str, ...],
        _of_store(
            "Column of edge IDs of your own: a whole number for each edge, kept for --edge-id-col of export. May be repeated.",
            metavar="[SRC:REL:DST:]COL",
        ),
    ] = ()
    index_dtype: Annotated[
        Literal["auto", "int32", "int64"], _of_store("dtype of neighbours and edge IDs; auto takes int32 where they fit.")
    ] = "auto"
    weight_dtype: Annotated[Literal["float32", "float64"], _of_store("dtype of weights.")] = "float32"
    densify: Annotated[
        tuple[str, ...],
        _of_store(
            "Store a sparse column as a dense one, as wide as its largest coordinate says; may be repeated.",
            metavar="[TYPE:]COL",
        ),
    ] = ()
    undirected: Annotated[
        bool,
        _of_store("Add the reverse of every edge, and keep one edge of those with the same ends (transform to-bidirected)."),
    ] = False
    dedup: Annotated[bool, _of_store("Keep the first of edges with the same ends (transform to-simple).")] = False
    drop_self_loops: Annotated[bool, _of_store("Drop edges from a node to itself.")] = False
    largest_component: Annotated[bool, _of_store("Keep the nodes of the largest weakly connected component only.")] = False
    graph_name: Annotated[str | None, _of_store("Name of the graph.  [default: the input's, else graph]", metavar="NAME")] = (
        None
    )
    seed: Annotated[int, _of_store("Seed of --partition-by random, and of the shares of --split.", metavar="N")] = 0
    overwrite: Annotated[bool, dataclasses.replace(OVERWRITE, is_first=True)] = False
    resume: Annotated[
        bool,
        _of_store(
            "Go on where an interrupted run of this command stopped; what is finished is kept until OUT is whole.",
            is_recorded=False,
        ),
    ] = False
    allow_empty: Annotated[bool, _of_store("With --overwrite, let an empty input replace a store, too.", is_recorded=False)] = (
        False
    )


@dataclass(frozen=True, eq=False, repr=False)
class FaultOptions:
    """What is done with records that are wrong. ``max_errors`` is a number of records, or a share (``"5%"``)."""

    on_error: Annotated[
        Literal["stop", "skip"], _of_faults("At a faulty record: stop, or skip and count it.", is_first=True)
    ] = "stop"
    bad_records: Annotated[
        str | None,
        _of_faults(
            "File for skipped records: their place and reason, one JSON object a line.", metavar="FILE", is_recorded=False
        ),
    ] = None
    max_errors: Annotated[
        int | str | None,
        _of_faults(
            "Fail where more records than this were skipped: a number, at once, or a share of all, at the end.  [default: "
            "never]",
            metavar="N|P%",
            read=read_limit,
        ),
    ] = None
    min_nodes: Annotated[
        int, _of_faults("Fail where there are fewer nodes in all.", metavar="N", least=0, hint="give the least number of nodes")
    ] = 0
    min_edges: Annotated[
        int, _of_faults("Fail where there are fewer edges in all.", metavar="N", least=0, hint="give the least number of edges")
    ] = 0
    on_missing_node: Annotated[
        Literal["error", "create", "drop"],
        _of_faults("At an edge whose node has no record: fail, create the node, or drop the edge."),
    ] = "error"
    missing_node_type: Annotated[str | None, _of_faults("Type of nodes that are created.", metavar="TYPE")] = None


@dataclass(frozen=True, eq=False, repr=False)
class EngineOptions:
    """Who decodes."""

    engine: Annotated[
        Literal["threads", "processes", "dask", "ray"],
        _of_resources("Who decodes: threads; as many processes, for decoders written in Python; or workers of dask or Ray."),
    ] = "threads"
    scheduler: Annotated[
        str | None,
        _of_resources(
            "Address of dask's scheduler, such as tcp://host:8786, or of Ray's head, such as ray://host:10001.  [default: "
            "one that is started here]",
            metavar="ADDRESS",
            is_recorded=False,
        ),
    ] = None
    worker_index: Annotated[
        int | None,
        _of_resources(
            "Decode the share of worker N (from 0) only; graphprep merge OUT makes the store when all are done.",
            metavar="N",
            least=0,
            hint="number the workers from 0",
            is_recorded=False,
        ),
    ] = None
    worker_count: Annotated[
        int | None,
        _of_resources(
            "How many workers share the input.",
            metavar="N",
            least=1,
            most=1_000_000,
            hint="give the number of workers",
            is_recorded=False,
        ),
    ] = None


@dataclass(frozen=True)
class ConvertOptions(EngineOptions, FaultOptions, StoreOptions, InputOptions):
    """Options of ``convert``; the command line names each of them in its help."""

    block_bytes: int = 0
    run: RunOptions = field(default_factory=RunOptions)

    @property
    def on_cluster(self) -> bool:
        """Return whether the workers of a cluster decode."""
        return self.engine in ("dask", "ray")

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """Return the layouts of the edges, the primary one first."""
        return ("csc", "csr") if self.layout == "both" else (self.layout,)

    def operations(self) -> list[str]:
        """Return the operations of ``transform`` that the graph goes through, as words."""
        words = ["self-loops", "drop"] * self.drop_self_loops + ["to-simple", "first"] * self.dedup
        return words + ["to-bidirected"] * self.undirected + ["largest-component"] * self.largest_component


@dataclass(frozen=True, repr=False, kw_only=True)
class ConvertSummary(RunResult):
    """What ``convert`` did. Sizes in bytes, times in seconds; ``notes`` are sentences for the user.

    ``splits`` counts nodes or edges of a type by part: train, valid, test, none. ``spilled_bytes`` is what went through
    temporary files, as it was beyond the memory limit.
    """

    out: str
    format: str
    format_flags: tuple[str, ...]
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    num_records: int = 0
    num_skipped: int = 0
    num_dropped_edges: int = 0
    num_created_nodes: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    elapsed_s: float
    peak_memory_bytes: int
    splits: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        lost = [f"{self.num_skipped:,} records skipped"] if self.num_skipped else []
        lost += [f"{self.num_dropped_edges:,} edges dropped"] if self.num_dropped_edges else []
        lost += [f"{self.num_created_nodes:,} nodes created"] if self.num_created_nodes else []
        return self.card_of(f"{self.out}: {self.sizes_words()}", self.work_words(), *lost)
