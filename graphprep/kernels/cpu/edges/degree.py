"""Count IDs, and order nodes by their counts. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.edges.sort import stable_order


def count_ids(ids: NDArray[Any], counts: NDArray[Any]) -> None:
    """Add one to ``counts[id]`` for every ID: int32[k] or int64[k] from ``as_input``; ``counts`` uint32[n] or int64[n]."""
    _count_ids(ids, counts)


def find_limits(ids: NDArray[Any]) -> tuple[int, int]:
    """Return the lowest and the highest ID of int32[n] or int64[n], (0, -1) where there is none."""
    low, high = _limits(ids)
    return int(low), int(high)


def order_by_degree(degrees: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nodes by descending degree, ties by ascending ID: int64[n]. ``degrees`` are at least 0.

    A counting sort; where there are far more degrees than nodes, a radix sort.
    """
    if not degrees.size:
        return np.zeros(0, np.int64)
    most = int(degrees.max())
    if most > 4 * degrees.size + (1 << 16):
        return stable_order(most - degrees)
    nodes = np.empty(degrees.size, np.int64)
    _order(degrees, np.zeros(most + 2, np.int64), nodes)
    return nodes


@njit(cache=True, nogil=True)
def _count_ids(ids, counts):
    for i in range(ids.size):
        counts[np.uint64(ids[i])] += 1


@njit(cache=True, nogil=True)
def _limits(ids):
    low = np.int64(0)
    high = np.int64(-1)
    if ids.size:
        low = high = np.int64(ids[0])
    for i in range(ids.size):
        low = min(low, np.int64(ids[i]))
        high = max(high, np.int64(ids[i]))
    return low, high


@njit(cache=True, nogil=True)
def _order(degrees, cursors, nodes):
    """Count each degree from the top, one place to the right; a running sum gives where its nodes begin."""
    most = cursors.size - 2
    for node in range(degrees.size):
        cursors[most - degrees[node] + 1] += 1
    for key in range(1, cursors.size):
        cursors[key] += cursors[key - 1]
    for node in range(degrees.size):
        key = most - degrees[node]
        nodes[cursors[key]] = node
        cursors[key] += 1
