"""The edges of a partition's rows in DeepGNN's order: by row, by the number of the type, then by destination or time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.ids import EngineIds, NodeIds, TypeNumbers
from graphprep.exporters.deepgnn.rows import RowBatch, Run
from graphprep.exporters.deepgnn.times import time_columns
from graphprep.exporters.view.graph import StoredGraph
from graphprep.kernels.cpu.ids.interleave import interleave, rows_ascend
from graphprep.kernels.cpu.ids.sort import stable_order
from graphprep.store.items import check_ids

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]
EdgeOrdering = Literal["destination", "time", "stored"]

_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class EdgeBatch:
    """Edges in order: ``rows`` is the row of each in the batch of rows. ``runs`` are those of each edge type."""

    rows: Ints
    dst: NodeIds
    types: Numbers
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class _Piece:
    """The edges of one edge type that nodes of a run have: row r of the run owns [bounds[r], bounds[r + 1])."""

    edge: int
    run: Run
    bounds: Ints
    dst: NodeIds

    @property
    def low(self) -> int:
        return int(self.bounds[0])

    @property
    def size(self) -> int:
        return self.dst.size

    @property
    def rows(self) -> Ints:
        """Return the row of each edge in the batch."""
        return np.repeat(self.run.at, np.diff(self.bounds))


class PartEdges:
    """The edges of one partition. Those of a row and a type are ordered as ``ordering`` says, else as they are stored."""

    def __init__(self, graph: StoredGraph, part: int, ids: EngineIds, numbers: TypeNumbers, ordering: EdgeOrdering) -> None:
        self._graph = graph
        self._part = part
        self._ids = ids
        self._numbers = numbers.edges
        self._ordering = ordering
        edges = range(len(graph.metadata.edge_types))
        self.indptr = {edge: graph.indptr(edge, "csr", part) for edge in edges if graph.num_edges(edge, "csr", part)}
        self._indices = {edge: graph.indices(edge, "csr", part) for edge in self.indptr}

    def read(self, batch: RowBatch) -> EdgeBatch:
        """Read the edges of a batch of rows, in order."""
        pieces = sorted(self._pieces(batch), key=lambda piece: self._numbers[piece.edge])
        if not pieces:
            none = np.zeros(0, np.int64)
            return EdgeBatch(none, none.view(np.uint64), none.astype(np.int32), ())
        dst = np.concatenate([piece.dst for piece in pieces])
        numbers = np.array([self._numbers[piece.edge] for piece in pieces], np.int32)
        if self._are_in_order(pieces):
            rows, dst, types, at = interleave(_counts(pieces, batch.ids.size), numbers, dst)
        else:
            rows, types = np.concatenate([piece.rows for piece in pieces]), np.repeat(numbers, [piece.size for piece in pieces])
            order, at = self._order(pieces, rows, types), np.empty(rows.size, np.int64)
            at[order] = np.arange(order.size)
            rows, dst, types = rows[order], dst[order], types[order]
        ends = np.cumsum([piece.size for piece in pieces]).tolist()
        runs = (
            Run(one.edge, one.low, one.low + one.size, at[end - one.size : end]) for one, end in zip(pieces, ends, strict=True)
        )
        return EdgeBatch(rows, dst, types, tuple(runs))

    def _pieces(self, batch: RowBatch) -> Iterator[_Piece]:
        for edge, low, high in self.spans(batch):
            run = next(one for one in batch.runs if one.number == self._graph.ends_of(edge)[0])
            yield _Piece(edge, run, self.indptr[edge][run.low : run.high + 1], self.destinations(edge, low, high))

    def _are_in_order(self, pieces: Sequence[_Piece]) -> bool:
        """Return whether the edges of each row and number are those of one piece, in their order."""
        if self._ordering == "time" or len({self._numbers[piece.edge] for piece in pieces}) < len(pieces):
            return False
        return self._ordering == "stored" or all(rows_ascend(piece.dst, piece.bounds) for piece in pieces)

    def _order(self, pieces: Sequence[_Piece], rows: Ints, types: Numbers) -> Ints:
        """Return the order of the edges of all pieces: by row, type and keys."""
        order: Ints | None = None
        all_keys = [self.keys(piece.edge, piece.low, piece.dst) for piece in pieces]
        for keys in reversed(list(zip(*all_keys, strict=True))):
            order = _then_by(order, np.concatenate(keys))
        return _then_by(_then_by(order, types), rows)

    def spans(self, batch: RowBatch) -> Iterator[tuple[int, int, int]]:
        """Yield which edges of each type a batch of rows has: the type, and [low, high)."""
        for edge, indptr in self.indptr.items():
            for run in batch.runs:
                if run.number == self._graph.ends_of(edge)[0]:
                    low, high = int(indptr[run.low]), int(indptr[run.high])
                    if low < high:
                        yield edge, low, high

    def number(self, edge: int) -> int:
        """Return the number that an edge type goes by."""
        return self._numbers[edge]

    def destinations(self, edge: int, low: int, high: int) -> NodeIds:
        """Return the IDs that edges [low, high) lead to.

        Raises DataError where one leads beyond the nodes of its type.
        """
        number, items = self._graph.ends_of(edge)[1], self._indices[edge]
        typed, size = items.read(low, high), self._graph.metadata.num_nodes_per_type[number]
        check_ids(items, low, typed, size)
        return self._ids.of(number, typed)

    def keys(self, edge: int, low: int, dst: NodeIds) -> tuple[NDArray[Any], ...]:
        """Return what orders edges from ``low`` on among those of their row and type, the first key first."""
        if self._ordering == "stored":
            return ()
        if self._ordering == "destination":
            return (dst,)
        created, removed = self.times(edge, low, low + dst.size)
        return created, np.where(removed == -1, _NEVER, removed), dst

    def times(self, edge: int, low: int, high: int) -> tuple[Ints, Ints]:
        """Return when edges were created and removed, 0 and -1 where no column says it; removed at 0 is never, as there.

        Edges go by times that are not written, too.
        """
        created, removed = (
            None if column is None else self._graph.edge_cells(edge, "csr", self._part, column, low, high).flat.astype(np.int64)
            for column in time_columns(self._graph.metadata.edge_schemas[edge].columns)
        )
        never = np.full(high - low, -1, np.int64)
        return (
            np.zeros(high - low, np.int64) if created is None else created,
            never if removed is None else np.where(removed == 0, never, removed),
        )


def ascend(keys: Sequence[NDArray[Any]]) -> bool:
    """Return whether rows ascend by keys, the first key first, of which one is there at least."""
    equal = np.ones(max(0, keys[0].size - 1), bool)
    for key in keys:
        if (equal & (key[1:] < key[:-1])).any():
            return False
        equal &= key[1:] == key[:-1]
    return True


def _then_by(order: Ints | None, key: NDArray[Any]) -> Ints:
    """Return an order by ``key``, rows of equal keys in the order that they have."""
    found: Ints = stable_order(key if order is None else key[order])
    return found if order is None else order[found]


def _counts(pieces: Sequence[_Piece], num_rows: int) -> Ints:
    """Return the number of edges of each piece in each row of the batch: int64[pieces, num_rows]."""
    found = np.zeros((len(pieces), num_rows), np.int64)
    for own, piece in zip(found, pieces, strict=True):
        own[piece.run.target] = np.diff(piece.bounds)[piece.run.kept]
    return found
