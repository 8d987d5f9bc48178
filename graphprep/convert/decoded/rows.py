"""All rows of an input as they were decoded, batch by batch, in runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.aligned import AlignedRuns
from graphprep.convert.decoded.batch_rows import BatchCells, BatchNodes, EndHashes, RawBatchEdges
from graphprep.convert.decoded.early_edges import EarlyEdges
from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.convert.decoded.texts import UNKNOWN, TextIndexer
from graphprep.model.protocols import Decoder, Sources
from graphprep.model.rows import ColumnKey, Relation
from graphprep.storage.spill.runs import Runs

RawIds = NDArray[np.uint64]


@dataclass(frozen=True)
class BatchColumn:
    """One column chunk of a batch: its key, the code of its N-D shape (0: 0-D or 1-D), and whether its values are 0-D."""

    key: ColumnKey
    shape_code: int
    scalar: bool
    has_values: bool


@dataclass(frozen=True)
class Batch:
    """Where a batch came from and what it holds. Node and edge numbers count all records of the input.

    ``relation`` is the code of the only relation, None where there are several; ``codes`` are those of all. ``declares``: its
    nodes are declared by it. ``is_scattered``: its edges are among ``Decoded.early``.
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


@dataclass
class IdRange:
    """The lowest and highest raw ID of a column; of texts those of their keys, which tell no more than that two differ."""

    low: int
    high: int

    @classmethod
    def of(cls, ids: NDArray[Any], *, are_signed: bool) -> IdRange:
        """Look at IDs, of which there are some."""
        ids = ids.view(np.int64) if are_signed and ids.dtype == np.uint64 else ids
        return cls(int(ids.min()), int(ids.max()))

    def add(self, other: IdRange) -> None:
        """Take in the range of more IDs."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)


@dataclass
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


@dataclass
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
        self._declared = {declared.name: declared.space or declared.name for declared in sources.node_types}
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


@dataclass
class Decoded:
    """All rows of the input, as decoded.

    Edges of batches that were scattered while they were decoded are in ``early`` instead; ``raw_edges`` has all, and
    ``edge_chunks`` their IDs as uint64. ``aligned`` holds columns that stand apart, by owner and key.

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

    def end_spaces(self, batch: Batch) -> tuple[tuple[str, int], ...]:
        """Return for both ends of a batch's edges the ID space, and the code of the type (UNKNOWN where it is not known)."""
        known = self._end_spaces.get(batch.codes)
        if known is None:
            relations = [self.relations[code] for code in batch.codes]
            ends = []
            for side in range(2):
                names = {relation.dst_type if side else relation.src_type for relation in relations}
                name = names.pop() if len(names) == 1 else None
                code = self.node_types.index(name) if name in self.node_types else UNKNOWN
                ends.append((self.spaces.of_end(relations[0], side), code))
            known = self._end_spaces[batch.codes] = tuple(ends)
        return known

    @property
    def are_scattered(self) -> bool:
        """Return whether all edges were scattered while they were decoded."""
        return self.early is not None and self.early.num_edges == self.num_edges

    def raw_edges(self, *, consume: bool = False) -> Iterator[RawBatchEdges]:
        """Yield the edges of every batch; with ``consume`` for the last time."""
        scattered = iter(()) if self.early is None else self.early.read()
        edges = self.edges.read(0, consume=consume)
        for batch in self.batches:
            yield next(scattered if batch.is_scattered else edges)

    def edge_chunks(self) -> Iterator[tuple[Batch, RawIds, RawIds]]:
        """Yield (batch, sources, destinations) of every batch."""
        for batch, edges in zip(self.batches, self.raw_edges(), strict=True):
            yield batch, wide_ids(edges.src), wide_ids(edges.dst)

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
