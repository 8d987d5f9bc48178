"""Walks over the neighbours of all nodes, whichever way edges point. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

from graphprep.kernels.compiler.jit import njit


def place_neighbors(
    bounds: Any, others: Any, first: int, owners: Any, neighbors_of: Any, cursors: Any, low: int, high: int, out: Any
) -> int:
    """Write both ends of edges to each other's rows, those of the labels [low, high) alone.

    ``bounds`` (int64[n + 1]): row r owns the entries [bounds[r], bounds[r + 1]), of which ``others`` (int32[k] or int64[k]) are
    those from ``first`` on; ``owners`` (int64[n]) and ``neighbors_of`` (int64[o]) are the labels of rows and of other ends.
    ``cursors`` (int64[labels]) say where in ``out`` (int32 or int64) the next neighbour of a label goes, and move on. Returns
    -1, or the position in ``others`` of the first one outside [0, o); then nothing is written from there on.
    """
    return int(_place_neighbors(bounds, others, first, owners, neighbors_of, cursors, low, high, out))


def breadth_first(indptr: Any, neighbors: Any, places: Any, queue: Any) -> None:
    """Number nodes in the order of a breadth-first search that begins at the lowest node not reached yet, again and again.

    ``indptr``: int64[n + 1], ``neighbors``: int32[m] or int64[m], taken as they stand; ``places``: int64[n], all -1, each
    node's number when done; ``queue``: int64[n], for each number its node.
    """
    _breadth_first(indptr, neighbors, places, queue)


@njit(cache=True, nogil=True)
def _place_neighbors(bounds, others, first, owners, neighbors_of, cursors, low, high, out):
    row = 0
    for i in range(others.size):
        while bounds[row + 1] <= first + i:
            row += 1
        other = others[i]
        if other < 0 or other >= neighbors_of.size:
            return i
        left, right = owners[row], neighbors_of[other]
        if low <= left < high:
            out[cursors[left]] = right
            cursors[left] += 1
        if low <= right < high:
            out[cursors[right]] = left
            cursors[right] += 1
    return -1


@njit(cache=True, nogil=True)
def _breadth_first(indptr, neighbors, places, queue):
    head, tail = 0, 0
    for seed in range(places.size):
        if places[seed] >= 0:
            continue
        places[seed] = tail
        queue[tail] = seed
        tail += 1
        while head < tail:
            node = queue[head]
            head += 1
            for i in range(indptr[node], indptr[node + 1]):
                other = neighbors[i]
                if places[other] < 0:
                    places[other] = tail
                    queue[tail] = other
                    tail += 1
