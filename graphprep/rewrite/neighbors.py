"""The neighbours of all nodes of a store, whichever way edges point, in one array: what walks read at random."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Array, Ints, Workspace
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.orders.walk import place_neighbors
from graphprep.store.items import StoredArrays, StoredItems, outside, read_offsets
from graphprep.store.paths import LayoutPaths, edge_folder

_STEP = 1 << 18


@dataclass(frozen=True)
class Neighbors:
    """Label i has the neighbours [indptr[i], indptr[i + 1]) of ``labels`` (int32 or int64), ascending; a loop is there twice.

    ``indptr``: int64[n + 1].
    """

    indptr: Ints
    labels: NDArray[np.int32] | NDArray[np.int64]


def find_neighbors(store: StoredArrays, edge_types: Sequence[int], degrees: Ints, labels: Ints, room: Workspace) -> Neighbors:
    """Build it of the edges of some types. ``degrees`` and ``labels``, a permutation: int64[n], by homogeneous ID.

    What does not fit the room lies in a mapped file, and is filled window after window, each of which reads all edges. Raises
    DataError where the store's arrays are faulty.
    """
    scratch, size = room.scratch, degrees.size
    indptr = scratch.zeros(size + 1, np.int64)
    for start in range(0, size, _STEP):
        indptr[1 + labels[start : start + _STEP]] = degrees[start : start + _STEP]
    np.cumsum(indptr, out=indptr)
    found = scratch.zeros(int(indptr[-1]), np.int32 if size < 2**31 else np.int64)
    with scratch.inner() as inner:
        cursors = inner.zeros(size, np.int64)
        cursors[:] = indptr[:-1]
        most, low = max(1, room.held_bytes // found.itemsize), 0
        while low < size:
            high = max(low + 1, int(np.searchsorted(indptr, indptr[low] + most, side="right")) - 1)
            high = size if found.nbytes <= scratch.cap_bytes else min(high, size)
            for number in edge_types:
                for rows in _edge_pieces(store, number, labels, replace(room, scratch=inner)):
                    rows.place(cursors, low, high, found)
            low = high
    _sort(Neighbors(indptr, found), room)
    return Neighbors(indptr, found)


@dataclass(frozen=True)
class _EdgePiece:
    """The entries from ``first`` on of rows that begin at ``bounds``, and the labels of rows and of other ends."""

    items: StoredItems
    others: Array
    first: int
    bounds: Ints
    owners: Ints
    neighbors_of: Ints

    def place(self, cursors: Ints, low: int, high: int, out: Array) -> None:
        """Write the ends that stand in the rows of labels [low, high) to these. Raises DataError for an ID that is none."""
        given = (self.bounds, self.others, self.first, self.owners, self.neighbors_of, cursors, low, high, out)
        bad = place_neighbors(*given)
        if bad >= 0:
            raise outside(self.items, self.first + bad, int(self.others[bad]), self.neighbors_of.size)


def _edge_pieces(store: StoredArrays, number: int, labels: Ints, room: Workspace) -> Iterator[_EdgePiece]:
    """Yield the edges of a type, piece by piece."""
    metadata = store.metadata
    layout, edge_type = metadata.primary_layout, metadata.edge_types[number]
    offsets = np.cumsum([0, *metadata.num_nodes_per_type]).tolist()
    src, dst = (metadata.node_types.index(name) for name in (edge_type[0], edge_type[2]))
    owner, other = (dst, src) if layout == "csc" else (src, dst)
    paths, at = LayoutPaths(f"{edge_folder(edge_type)}/{layout}"), offsets[owner]
    for part, num_rows in enumerate(metadata.num_nodes_per_chunk[owner]):
        items = StoredItems(store.array(part, paths.indices))
        with room.scratch.inner() as scratch:
            bounds = read_offsets(store.array(part, paths.indptr), items.size, scratch)
            step = room.fit(items.item_bytes)
            for start in range(0, items.size, step):
                others = items.read(start, min(start + step, items.size))
                low = int(np.searchsorted(bounds, start, side="right")) - 1
                owners = labels[at + low : at + num_rows]
                yield _EdgePiece(items, others, start, bounds[low:], owners, labels[offsets[other] : offsets[other + 1]])
        at += num_rows


def _sort(found: Neighbors, room: Workspace) -> None:
    """Sort the neighbours of each label."""
    most = room.fit(4 * found.labels.itemsize)

    def pieces() -> Iterator[tuple[int, int]]:
        low = 0
        while low < found.indptr.size - 1:
            high = max(low + 1, int(np.searchsorted(found.indptr, found.indptr[low] + most, side="right")) - 1)
            high = min(high, low + _STEP)
            yield low, high
            low = high

    def sort(rows: tuple[int, int]) -> None:
        start, stop = int(found.indptr[rows[0]]), int(found.indptr[rows[1]])
        values = found.labels[start:stop]
        with room.scratch.inner() as spare:
            make = np.empty if stop - start <= most else spare.zeros
            kind = np.int32 if stop - start < 2**31 else np.int64
            inner, spare_inner, spare_values = (make(stop - start, one) for one in (kind, kind, values.dtype))
            bounds = found.indptr[rows[0] : rows[1] + 1] - start
            room.kernels.sort_rows(values, bounds, inner, spare_values, spare_inner)

    for _ in map_ordered(sort, pieces(), room.threads):
        pass
