"""Rows of several edge types as one: a node's in-edges by type, as samplers of heterogeneous graphs want them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.kernels.cpu.ids.part_graph import interleave_rows, number_rows

Ints = NDArray[np.int64]
Read = Callable[[int, int, int], NDArray[Any]]


class JoinedRows:
    """The rows of ``tables``, each an edge type's offsets (int64[num_rows + 1], from 0); row r of all stands together.

    A row has the items of the first table, then those of the second, and so on. A piece is of ``step`` items or rows; pieces of
    items are made on ``threads``.
    """

    def __init__(self, num_rows: int, tables: Sequence[Ints], step: int, threads: int = 1) -> None:
        self.num_rows = num_rows
        self.step = step
        self._threads = threads
        self._tables = tables

    @property
    def num_items(self) -> int:
        """Return the number of items of all tables."""
        return sum(int(table[-1]) for table in self._tables)

    def ends(self, first: int) -> Iterator[Ints]:
        """Yield where every row ends, counted from ``first``: int64, num_rows in all."""
        for low in range(0, self.num_rows, self.step):
            yield first + self._bounds(low + 1, min(low + self.step, self.num_rows) + 1)

    def items(self, read: Read) -> Iterator[NDArray[Any]]:
        """Yield the items in pieces [k, …]; ``read(table, low, high)`` returns those of a table, on any thread."""
        return map_ordered(lambda make: make(), self._pieces(read), self._threads)

    def positions(self, number: int, low: int, high: int) -> Ints:
        """Return where items [low, high) of a table stand among the joined ones: int64[high - low]."""
        table = self._tables[number]
        rows = number_rows(table, 0, low, high)
        found = np.arange(low, high)
        for other, behind in enumerate(self._tables):
            if other != number:
                found += behind[rows + (other < number)]
        return found

    def _pieces(self, read: Read) -> Iterator[Callable[[], NDArray[Any]]]:
        """Yield what makes each piece."""
        if len(self._tables) == 1:
            yield from self._in_order(0, 0, int(self._tables[0][-1]), read)
            return
        for low, high in self._cut():
            if high - low > 1:
                yield partial(self._join, low, high, read)
                continue
            for number, table in enumerate(self._tables):
                yield from self._in_order(number, int(table[low]), int(table[high]), read)

    def _in_order(self, number: int, start: int, stop: int, read: Read) -> Iterator[Callable[[], NDArray[Any]]]:
        for low in range(start, stop, self.step):
            yield partial(read, number, low, min(low + self.step, stop))

    def _join(self, low: int, high: int, read: Read) -> NDArray[Any]:
        bounds = self._bounds(low, high + 1)
        cursors = bounds[:-1] - bounds[0]
        out: NDArray[Any] | None = None
        for number, table in enumerate(self._tables):
            values = read(number, int(table[low]), int(table[high]))
            if out is None:
                out = np.empty((int(bounds[-1] - bounds[0]), *values.shape[1:]), values.dtype)
            out[interleave_rows(table[low : high + 1], cursors)] = values
        assert out is not None  # tables are two or more
        return out

    def _bounds(self, low: int, high: int) -> Ints:
        """Return offsets [low, high) of the joined rows."""
        total = np.zeros(high - low, np.int64)
        for table in self._tables:
            total += table[low:high]
        return total

    def _cut(self) -> Iterator[tuple[int, int]]:
        """Cut rows into ranges of some items; a row of more stands alone. Empty ranges are left out."""
        low = 0
        while low < self.num_rows:
            bounds = self._bounds(low, min(low + self.step, self.num_rows) + 1)
            high = low + max(1, int(np.searchsorted(bounds[1:], bounds[0] + self.step, side="right")))
            if bounds[high - low] > bounds[0]:
                yield low, high
            low = high


@dataclass(frozen=True)
class JoinedBlock:
    """The nodes of one type in one partition, and the edge types (numbers) that lead to them, as the tables of ``rows``."""

    part: int
    edges: tuple[int, ...]
    rows: JoinedRows


@dataclass(frozen=True)
class SingleGraph:
    """Blocks of rows, one behind the other: the in-edges of all nodes by (destination, edge type)."""

    blocks: tuple[JoinedBlock, ...]

    @property
    def num_rows(self) -> int:
        """Return the number of nodes."""
        return sum(block.rows.num_rows for block in self.blocks)

    @property
    def num_items(self) -> int:
        """Return the number of edges."""
        return sum(block.rows.num_items for block in self.blocks)

    def indptr(self) -> Iterator[Ints]:
        """Yield the offsets of all rows: int64, num_rows + 1."""
        first = 0
        yield np.zeros(1, np.int64)
        for block in self.blocks:
            yield from block.rows.ends(first)
            first += block.rows.num_items

    def items(self, read: Callable[[int, int, int, int], NDArray[Any]]) -> Iterator[NDArray[Any]]:
        """Yield the edges in pieces; ``read(part, edge, low, high)`` returns some of a partition's edges of a type."""
        for block in self.blocks:
            yield from block.rows.items(partial(_read_block, read, block))

    def tensor(self, dtype: str, read: Callable[[int, int, int, int], NDArray[Any]]) -> TensorPieces:
        """Return what ``items`` yields as a tensor of a dtype."""
        return TensorPieces(dtype, (self.num_items,), lambda: self.items(read))


def _read_block(
    read: Callable[[int, int, int, int], NDArray[Any]], block: JoinedBlock, table: int, low: int, high: int
) -> NDArray[Any]:
    return read(block.part, block.edges[table], low, high)
