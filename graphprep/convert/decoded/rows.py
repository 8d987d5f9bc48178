"""All rows of an input as they were decoded, batch by batch, in runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.aligned import AlignedRuns
from graphprep.convert.decoded.early_edges import EarlyEdges
from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.convert.decoded.texts import UNKNOWN, TextIndexer
from graphprep.model.protocols import Decoder, Sources
from graphprep.model.rows import ColumnKey, Relation
from graphprep.storage.spill.runs import Runs
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]


class BatchNodes(NamedTuple):
    """The nodes of a batch: raw IDs (uint64[n]), codes of their types (int32[n]), and how many slots they state (int32[n])."""

    ids: RawIds
    types: NDArray[np.int32]
    num_slots: NDArray[np.int32] | None


class RawBatchEdges(NamedTuple):
    """The edges of a batch: raw IDs of both ends, uint32[m] where all are below 2^32, else uint64[m].

    ``relations`` are codes (int32[m]), None where there is but one; ``num_slots`` (int32[m]) is what the edges state, if
    anything.
    """

    src: NDArray[Any]
    dst: NDArray[Any]
    relations: NDArray[np.int32] | None = None
    num_slots: NDArray[np.int32] | None = None


class EndHashes(NamedTuple):
    """h of the raw IDs of sources and of destinations, None where these are numbers."""

    src: RawIds | None = None
    dst: RawIds | None = None


@dataclass(frozen=True, eq=False)
class BatchCells:
    """The rows (None: all of the batch) and cells of each column of a batch."""

    columns: tuple[tuple[Ints | None, Cells], ...] = ()

    def __iter__(self) -> Iterator[NDArray[Any] | None]:
        arrays: list[NDArray[Any] | None] = []
        for rows, cells in self.columns:
            arrays += (rows, *cells)
        return iter(arrays)

    @classmethod
    def _make(cls, arrays: Iterable[Any]) -> BatchCells:
        columns: list[tuple[Ints | None, Cells]] = []
        left = iter(arrays)
        for rows in left:
            columns += [(rows, Cells._make(islice(left, len(Cells._fields))))]
        return cls(tuple(columns))


class BatchColumn(NamedTuple):
    """One column chunk of a batch: its key, the code of its N-D shape (0: 0-D or 1-D), and whether its values are 0-D."""

    key: ColumnKey
    shape_code: int
    scalar: bool
    has_values: bool


class IdRange(NamedTuple):
    """The lowest and highest raw ID of a column; of texts those of their keys, which tell no more than that two differ."""

    low: int
    high: int

    def join(self, other: IdRange) -> IdRange:
        """Take in the range of more IDs."""
        return IdRange(min(self.low, other.low), max(self.high, other.high))


@dataclass(frozen=True, eq=False)
class Batch:
    """Where a batch came from and what it holds. Node and edge numbers count all records of the input.

    ``relation`` is the code of the only relation, None where there are several; ``codes`` are those of all. ``declares``: its
    nodes are declared by it. ``is_scattered``: its edges are among ``Decoded.early``. ``ranges`` are those of sources and of
    destinations, None without edges.
    """

    span: int
    block: int
    first_node: int
    num_nodes: int
    first_edge: int
    num_edges: int
    node_columns: tuple[BatchColumn, ...]
    edge_columns: tuple[BatchColumn, ...]
    relation: int | None
    codes: tuple[int, ...] = ()
    declares: bool = True
    is_scattered: bool = False
    ranges: tuple[IdRange, IdRange] | None = None


@dataclass(eq=False)
class IdColumns:
    """Two columns of IDs, of sources and destinations, that are read as one ID space although they are called otherwise."""

    names: tuple[str, str]
    are_texts: bool
    ranges: tuple[IdRange, IdRange]

    @property
    def note(self) -> str | None:
        """Say that these may be two kinds of nodes; None where both have the same range."""
        if self.ranges[0] == self.ranges[1]:
            return None
        shown = [
            repr(name) if self.are_texts else f"{name!r} ({found.low} to {found.high})"
            for name, found in zip(self.names, self.ranges, strict=True)
        ]
        return (
            f"columns {' and '.join(shown)} were read as IDs of one node type: what stands in both is one node; "
            "if they are two kinds of things, name two types, with --relation SRC:REL:DST or --edges SRC:REL:DST=FILE; "
            "if one holds no IDs, name those that do, with --src-col and --dst-col, or give a table of nodes with --nodes"
        )


@dataclass(eq=False)
class ShapeList:
    """The N-D shapes that a column's values take, in the order in which they were met."""

    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def code(self, shape: tuple[int, ...] | None) -> int:
        """Return 0 for a scalar or a list, else 1 + the shape's position."""
        if shape is None or len(shape) < 2:
            return 0
        if shape not in self.shapes:
            self.shapes.append(shape)
        return 1 + self.shapes.index(shape)


class IdSpaces:
    """Which ID space a node type, or an end of a relation, belongs to. Spaces go by name."""

    def __init__(self, sources: Sources) -> None:
        self._declared: dict[str, str] = {}
        for node in sources.node_types:
            self._declared[node.name] = node.space or node.name
        self._default = sources.default_space
        self._is_one = sources.nodes == "records"

    def of_type(self, name: str) -> str:
        """Return the ID space of a node type."""
        if self._is_one:
            return ""
        return self._declared.get(name) or self._default or name

    def of_end(self, relation: Relation, side: int) -> str:
        """Return the ID space of a relation's sources (side 0) or destinations (1)."""
        name, space = (relation.dst_type, relation.dst_space) if side else (relation.src_type, relation.src_space)
        if name is not None:
            return self.of_type(name)
        return "" if self._is_one else space or self._default or ""


@dataclass(eq=False)
class Decoded:
    """All rows of the input, as decoded.

    Runs hold what batches have: nothing of one without nodes, edges, or columns of them. Edges of batches that were scattered
    while they were decoded are in ``early`` instead; ``edge_batches`` has all. ``aligned`` holds columns that stand apart, by
    owner and key.

    Raw IDs that are texts stand as keys; ``texts`` has them by ID space. With a ``text_seed`` the keys are not h of
    docs/store.md: then ``hashes`` has those.
    """

    sources: Sources
    decoder: Decoder
    nodes: Runs[BatchNodes]
    edges: Runs[RawBatchEdges]
    node_columns: Runs[BatchCells]
    edge_columns: Runs[BatchCells]
    early: EarlyEdges | None = None
    aligned: dict[tuple[str | Relation, ColumnKey], AlignedRuns | FileColumn] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    node_types: list[str] = field(default_factory=list)
    relations: list[Relation] = field(default_factory=list)
    shapes: dict[ColumnKey, ShapeList] = field(default_factory=dict)
    column_bytes: dict[ColumnKey, int] = field(default_factory=dict)
    aligned_scalars: set[tuple[str | Relation, ColumnKey]] = field(default_factory=set)
    text_seed: int = 0
    texts: dict[str, TextIndexer] = field(default_factory=dict)
    hashes: Runs[EndHashes] | None = None
    num_nodes: int = 0
    num_edges: int = 0
    num_records: int = 0
    input_bytes: int = 0
    warnings: dict[str, int] = field(default_factory=dict)
    id_columns: dict[tuple[str, str], IdColumns] = field(default_factory=dict)
    _end_spaces: dict[tuple[int, ...], tuple[tuple[str, int], ...]] = field(default_factory=dict)

    @cached_property
    def spaces(self) -> IdSpaces:
        """Return the ID spaces of types and relations."""
        return IdSpaces(self.sources)

    def end_spaces(self, codes: tuple[int, ...]) -> tuple[tuple[str, int], ...]:
        """Return for both ends of a batch's relations the ID space, and the code of the type (UNKNOWN: it is not known)."""
        known = self._end_spaces.get(codes)
        if known is None:
            ends = []
            for side in range(2):
                names = set(map(attrgetter("dst_type" if side else "src_type"), map(self.relations.__getitem__, codes)))
                name = names.pop() if len(names) == 1 else None
                code = self.node_types.index(name) if name in self.node_types else UNKNOWN
                ends.append((self.spaces.of_end(self.relations[codes[0]], side), code))
            known = self._end_spaces[codes] = tuple(ends)
        return known

    @property
    def are_scattered(self) -> bool:
        """Return whether all edges were scattered while they were decoded."""
        return self.early is not None and self.early.num_edges == self.num_edges

    def node_batches(self) -> Iterator[tuple[Batch, BatchNodes]]:
        """Yield every batch that has nodes, with these."""
        nodes = self.nodes.read(0)
        return ((batch, next(nodes)) for batch in self.batches if batch.num_nodes)

    def edge_batches(self, *, consume: bool = False) -> Iterator[tuple[Batch, RawBatchEdges]]:
        """Yield every batch that has edges, with these; with ``consume`` for the last time."""
        scattered = iter(()) if self.early is None else self.early.read()
        edges = self.edges.read(0, consume=consume)
        for batch in self.batches:
            if batch.num_edges:
                yield batch, RawBatchEdges(*next(scattered)) if batch.is_scattered else next(edges)

    def close(self) -> None:
        """Drop all rows."""
        for runs in (self.nodes, self.edges, self.node_columns, self.edge_columns, *self.aligned.values()):
            runs.close()
        if self.hashes is not None:
            self.hashes.close()
        if self.early is not None:
            self.early.runs.close()
        for texts in self.texts.values():
            texts.close()


def wide_ids(ids: NDArray[Any]) -> RawIds:
    """Return IDs as uint64."""
    return ids.astype(np.uint64, copy=False)
