"""What an order of nodes is worth: the gaps between neighbours, with the old IDs and with the new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Array, Workspace
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.orders.gaps import fill_gaps
from graphprep.model.options.reorder import GapCost
from graphprep.rewrite.order import NodePlaces
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays, StoredItems, check_ids, outside, read_offsets
from graphprep.store.paths import LayoutPaths, edge_folder

_STEP = 1 << 17  # gaps whose logarithms are taken at once
_MOST_EDGES = 1 << 21  # of about so many the mean is good to the second digit; all would take longer than moving them
_BLOCK_ROWS = 256


def measure_gaps(store: StoredArrays, places: Mapping[str, NodePlaces], room: Workspace) -> tuple[GapCost, GapCost]:
    """Return what the rows of the primary layouts cost before and after nodes went to their places.

    Of more than 2^21 edges, every k-th block of 256 rows is measured, k the least that leaves no more. Raises DataError where
    the store's arrays are faulty.
    """
    costs = [_Cost(), _Cost()]
    stride = -(-sum(store.metadata.num_edges_per_type) // _MOST_EDGES)
    for number in range(len(store.metadata.edge_types)):
        for found in _costs(store, number, places, stride, room):
            costs = [one.plus(more) for one, more in zip(costs, found, strict=True)]
    return costs[0].mean(), costs[1].mean()


def type_gaps(store: StoredArrays, number: int, room: Workspace) -> GapCost:
    """Return what the rows of an edge type cost as they are; of more than 2^21 edges as ``measure_gaps`` has it."""
    cost = _Cost()
    for (found,) in _costs(store, number, None, -(-store.metadata.num_edges_per_type[number] // _MOST_EDGES), room):
        cost = cost.plus(found)
    return cost.mean()


def _costs(
    store: StoredArrays, number: int, places: Mapping[str, NodePlaces] | None, stride: int, room: Workspace
) -> Iterator[tuple[_Cost, ...]]:
    """Yield the costs of pieces of an edge type, before and, where there are ``places``, after."""
    for part in range(store.metadata.num_parts):
        with room.scratch.inner() as scratch:
            rows = _Rows(store, number, part, places, replace(room, scratch=scratch))
            yield from map_ordered(rows.measure, rows.pieces(stride), room.threads)


@dataclass(frozen=True)
class _Cost:
    num_gaps: int = 0
    log2: float = 0.0
    bits: int = 0

    def plus(self, more: _Cost) -> _Cost:
        return _Cost(self.num_gaps + more.num_gaps, self.log2 + more.log2, self.bits + more.bits)

    def mean(self) -> GapCost:
        count = max(1, self.num_gaps)
        return GapCost(round(self.log2 / count, 4), round(self.bits / count, 4))


@dataclass(frozen=True)
class _Piece:
    """Rows [low, high) and their neighbours; ``scratch`` is what sorting may take, closed by who sorts."""

    low: int
    high: int
    others: Array
    scratch: Scratch


class _Rows:
    """The rows of the primary layout of an edge type in a partition."""

    def __init__(
        self, store: StoredArrays, number: int, part: int, places: Mapping[str, NodePlaces] | None, room: Workspace
    ) -> None:
        metadata = store.metadata
        src, _, dst = metadata.edge_types[number]
        owner, other = (dst, src) if metadata.primary_layout == "csc" else (src, dst)
        paths = LayoutPaths(f"{edge_folder(metadata.edge_types[number])}/{metadata.primary_layout}")
        self._room = room
        self._indices = StoredItems(store.array(part, paths.indices))
        self._bounds = read_offsets(store.array(part, paths.indptr), self._indices.size, room.scratch)
        numbers = {name: at for at, name in enumerate(metadata.node_types)}
        self._first = sum(metadata.num_nodes_per_chunk[numbers[owner]][:part])
        self._num_others = metadata.num_nodes_per_type[numbers[other]]
        self._is_one_type = owner == other
        self._new_ids = None if places is None else places[other].new_ids

    def pieces(self, stride: int) -> Iterator[_Piece]:
        """Yield the rows of each ``stride``-th block, as many as fit a piece; a row that does not lies in mapped files."""
        num_rows = self._bounds.size - 1
        block = max(1, num_rows) if stride <= 1 else _BLOCK_ROWS
        for first in range(0, num_rows, block * max(1, stride)):
            yield from self._cut(first, min(first + block, num_rows))

    def _cut(self, low: int, end: int) -> Iterator[_Piece]:
        most, bounds = self._room.fit(8 * self._indices.item_bytes), self._bounds
        while low < end:
            high = max(low + 1, int(np.searchsorted(bounds, bounds[low] + most, side="right")) - 1)
            high = min(high, low + _STEP, end)
            start, stop = int(bounds[low]), int(bounds[high])
            scratch = self._room.scratch.inner()
            make = np.empty if stop - start <= most else scratch.zeros
            others = make(stop - start, self._indices.reader.dtype)
            for at in range(start, stop, most):
                others[at - start : min(at + most, stop) - start] = self._indices.read(at, min(at + most, stop))
            yield _Piece(low, high, others, scratch)
            low = high

    def measure(self, piece: _Piece) -> tuple[_Cost, ...]:
        """Return what rows cost under old and, where there are some, new IDs."""
        with piece.scratch:
            most, others = self._room.fit(8 * self._indices.item_bytes), piece.others
            make = np.empty if others.size <= most else piece.scratch.zeros
            bounds = self._bounds[piece.low : piece.high + 1] - self._bounds[piece.low]
            rows = np.arange(self._first + piece.low, self._first + piece.high) * self._is_one_type
            sides = [(others, rows)]
            if self._new_ids is None:
                check_ids(self._indices, int(self._bounds[piece.low]), others, self._num_others)
            else:
                new = make(others.size, others.dtype)
                bad = self._room.kernels.relabel_ids(others, self._new_ids, new)
                if bad >= 0:
                    raise outside(self._indices, int(self._bounds[piece.low]) + bad, int(others[bad]), self._num_others)
                sides.append((new, self._new_ids[rows].astype(np.int64) if self._is_one_type else rows))
            inner, spare, spare_inner = (make(others.size, kind) for kind in (np.int32, others.dtype, np.int32))
            if others.size >= 2**31:
                inner, spare_inner = (piece.scratch.zeros(others.size, np.int64) for _ in range(2))
            gaps = make(others.size, np.int64)
            costs = []
            for values, of_rows in sides:
                self._room.kernels.sort_rows(values, bounds, inner, spare, spare_inner)
                fill_gaps(values, bounds, of_rows, gaps)
                costs.append(_sum_up(gaps))
            return tuple(costs)


def _sum_up(gaps: NDArray[np.int64]) -> _Cost:
    cost = _Cost()
    for start in range(0, gaps.size, _STEP):
        some = gaps[start : start + _STEP].astype(np.float64)
        floors = np.frexp(some)[1] - 1
        cost = cost.plus(_Cost(some.size, float(np.log2(some).sum()), int(2 * floors.sum(dtype=np.int64)) + some.size))
    return cost
