"""Find edges by both their ends in the rows of an adjacency. The public functions allocate; the jitted ones fill.

What is looked for comes in groups, a group for each row: ``rows`` int64[g] are distinct rows, and ``others`` (int64[k]) in
``[starts[i], starts[i + 1])`` are the neighbors to find in row ``rows[i]``, distinct and ascending. A row is walked once,
however many are looked for in it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.ids.lookup import search

Ints = NDArray[np.int64]


def count_pairs(indptr: Ints, indices: NDArray[Any], rows: Ints, starts: Ints, others: Ints) -> Ints:
    """Return how often each wanted neighbor stands in its row: int64[k].

    ``indptr``: int64[n + 1]; ``indices``: int32[m] or int64[m].
    """
    counts = np.zeros(others.size, np.int64)
    _count(indptr, indices, rows, starts, others, counts)
    return counts


def find_pairs(indptr: Ints, indices: NDArray[Any], rows: Ints, starts: Ints, others: Ints, counts: Ints) -> Ints:
    """Return the positions in ``indices`` where wanted neighbors stand: int64[sum of counts].

    ``counts`` is what ``count_pairs`` returned. Positions come wanted neighbor after wanted neighbor, ascending for each.
    """
    ends = np.cumsum(counts)
    positions = np.empty(int(ends[-1]) if ends.size else 0, np.int64)
    _fill(indptr, indices, rows, starts, others, ends - counts, positions)
    return positions


@njit(cache=True, nogil=True)
def _count(indptr, indices, rows, starts, others, counts):
    for group in range(rows.size):
        low, high = starts[group], starts[group + 1]
        for at in range(indptr[rows[group]], indptr[rows[group] + 1]):
            found = search(others, low, high, np.int64(indices[at]))
            if found >= 0:
                counts[found] += 1


@njit(cache=True, nogil=True)
def _fill(indptr, indices, rows, starts, others, cursors, positions):
    for group in range(rows.size):
        low, high = starts[group], starts[group + 1]
        for at in range(indptr[rows[group]], indptr[rows[group] + 1]):
            found = search(others, low, high, np.int64(indices[at]))
            if found >= 0:
                positions[cursors[found]] = at
                cursors[found] += 1
