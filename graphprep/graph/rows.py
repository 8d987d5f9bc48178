"""The rows of an edge type, partition after partition, as they are mapped: looked up without joining them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.adjacency import Adjacency
from graphprep.edges.device.find import find_kernels
from graphprep.graph.columns import join_offsets
from graphprep.kernels.cpu.ids.find_pairs import count_pairs, find_pairs
from graphprep.kernels.edges import as_input

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class PartedRows:
    """The adjacency of every partition. A position counts entries over all of them, partition after partition.

    ``row_starts`` and ``entry_starts`` (int64[P + 1]) are the typed ID of each partition's first row, and the position of its
    first entry. Rows that come as arguments are typed IDs that exist.
    """

    parts: tuple[Adjacency, ...]
    row_starts: Ints
    entry_starts: Ints

    @classmethod
    def of(cls, parts: tuple[Adjacency, ...]) -> PartedRows:
        """Lay partitions one after another."""
        rows, entries = ([0, *(getattr(part, name) for part in parts)] for name in ("num_rows", "num_edges"))
        return cls(parts, np.cumsum(rows, dtype=np.int64), np.cumsum(entries, dtype=np.int64))

    @property
    def num_edges(self) -> int:
        """Return the number of entries."""
        return int(self.entry_starts[-1])

    @property
    def has_ids(self) -> bool:
        """Return whether entries have edge IDs."""
        return self.parts[0].edge_ids is not None

    def join(self) -> Adjacency:
        """Return all rows as one adjacency: a copy in memory where there are several partitions."""
        first = self.parts[0]
        if len(self.parts) == 1:
            return first
        indptr = join_offsets([part.indptr for part in self.parts])
        return Adjacency(first.layout, indptr, self.entries("indices"), self.edge_ids(), first.num_neighbors)

    def entries(self, name: str) -> NDArray[Any]:
        """Return ``indices`` or ``edge_ids`` of all entries."""
        arrays = [getattr(part, name) for part in self.parts]
        return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)

    def edge_ids(self) -> NDArray[Any] | None:
        """Return the edge IDs of all entries, None where none are stored."""
        return self.entries("edge_ids") if self.has_ids else None

    def take(self, name: str, positions: Ints) -> Ints:
        """Return ``indices`` or ``edge_ids`` at positions (int64[k], any order): int64[k]."""
        return _by_part(self.entry_starts, positions, lambda part, at: getattr(self.parts[part], name)[at])

    def rows_at(self, positions: Ints) -> Ints:
        """Return the rows in which entries stand: int64[k]."""

        def find(part: int, at: Ints) -> Ints:
            rows = np.searchsorted(self.parts[part].indptr, at, side="right") - 1
            return np.asarray(rows + self.row_starts[part], np.int64)

        return _by_part(self.entry_starts, positions, find)

    def all_rows(self) -> Ints:
        """Return the row of every entry: int64[m]."""
        pieces = [
            np.repeat(np.arange(start, start + part.num_rows), np.diff(part.indptr))
            for start, part in zip(self.row_starts.tolist(), self.parts, strict=False)
        ]
        return np.concatenate(pieces)

    def starts_of(self, rows: Ints) -> Ints:
        """Return the position of each row's first entry: int64[k]."""
        return _by_part(self.row_starts, rows, lambda part, at: self.parts[part].indptr[at] + self.entry_starts[part])

    def degrees(self, rows: Ints | None = None) -> Ints:
        """Return the number of entries of each row, or of all rows: int64[k]."""
        if rows is None:
            return np.concatenate([np.diff(part.indptr) for part in self.parts])
        return _by_part(self.row_starts, rows, lambda part, at: np.asarray(_lengths(self.parts[part].indptr, at)))

    def positions_of(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return (offsets int64[k + 1], the positions of the entries of row after row: int64)."""
        counts = self.degrees(rows)
        offsets = np.zeros(rows.size + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        return offsets, np.repeat(self.starts_of(rows) - offsets[:-1], counts) + np.arange(offsets[-1])

    def neighbors(self, rows: Ints) -> tuple[Ints, Ints]:
        """Return (offsets int64[k + 1], the neighbors of row after row: int64)."""
        offsets, positions = self.positions_of(rows)
        return offsets, self.take("indices", positions)

    def reach(self, rows: Ints, radius: int) -> tuple[Ints, Ints]:
        """Return (offsets int64[k + 1], what each row reaches over 1 to ``radius`` entries: distinct, ascending, int64).

        Rows and neighbors are the same nodes.
        """
        num_nodes = max(1, self.parts[0].num_neighbors)
        found = np.zeros(0, np.int64)  # pairs of a question and a node, as one number each
        asked, nodes = np.arange(rows.size), rows
        for _ in range(radius):
            offsets, neighbors = self.neighbors(nodes)
            pairs = np.unique(np.repeat(asked, np.diff(offsets)) * num_nodes + neighbors)
            fresh = np.setdiff1d(pairs, found, assume_unique=True)
            if not fresh.size:
                break
            found = np.union1d(found, fresh)
            asked, nodes = np.divmod(fresh, num_nodes)
        return np.searchsorted(found, np.arange(rows.size + 1) * num_nodes), found % num_nodes

    def count_neighbors(self) -> Ints:
        """Return how often each node is a neighbor, by reading all entries: int64[num_neighbors]."""
        counts = np.zeros(self.parts[0].num_neighbors, np.int64)
        for part in self.parts:
            find_kernels().count_ids(as_input(part.indices), counts)
        return counts

    def find(self, rows: Ints, others: Ints) -> tuple[Ints, Ints]:
        """Find all entries of (row, neighbor) pairs, which are distinct and ascend by row, then by neighbor.

        Returns (how many each has: int64[k], their positions pair after pair, ascending for each: int64).
        """
        counts = np.zeros(rows.size, np.int64)
        found = []
        for part, low, high in _runs(self.row_starts, rows):
            rows_of_part, starts = np.unique(rows[low:high] - self.row_starts[part], return_index=True)
            adjacency = self.parts[part]
            wanted = (rows_of_part, np.append(starts, high - low), others[low:high])
            arrays = as_input(adjacency.indptr), as_input(adjacency.indices)
            counts[low:high] = count_pairs(*arrays, *wanted)
            found.append(find_pairs(*arrays, *wanted, counts[low:high]) + self.entry_starts[part])
        return counts, np.concatenate([np.zeros(0, np.int64), *found])


def _lengths(indptr: Ints, rows: Ints) -> Ints:
    return indptr[rows + 1] - indptr[rows]


def _by_part(starts: Ints, ids: Ints, look: Callable[[int, Ints], NDArray[Any]]) -> Ints:
    """Look up each partition's IDs there: ``look`` gets the partition, and IDs that count from its start."""
    if starts.size == 2:
        return look(0, ids).astype(np.int64, copy=False)
    out = np.empty(ids.size, np.int64)
    parts = np.searchsorted(starts[1:], ids, side="right")
    for part in np.unique(parts).tolist():
        mine = np.flatnonzero(parts == part)
        out[mine] = look(part, ids[mine] - starts[part])
    return out


def _runs(starts: Ints, ids: Ints) -> Iterator[tuple[int, int, int]]:
    """Yield (partition, low, high): ``ids[low:high]``, which ascend, are in the partition."""
    cuts = np.searchsorted(ids, starts).tolist()
    for part, (low, high) in enumerate(pairwise(cuts)):
        if low < high:
            yield part, low, high
