"""Merge lists of rows that several sources have, source after source within each row. The kernels fill what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit


def rows_ascend(values: Any, bounds: Any) -> bool:
    """Return whether values (uint64[m]) do not fall within rows.

    ``bounds`` (int64[k + 1]) says where rows begin, counted from the first one: row r is bounds[r] - bounds[0] and on.
    """
    return bool(_rows_ascend(values, bounds))


def interleave(counts: Any, numbers: Any, values: Any) -> tuple[Any, Any, Any, Any]:
    """Put the items of all sources in the order of their rows, those of one row source after source.

    ``counts``: int64[p, k], items of each source in each row; ``numbers``: int32[p]; ``values``: uint64[m], those of the first
    source, row by row, then those of the next one. Returns for every item in the new order its row (int64[m]), value and
    source's number, and then, in the old order, its new place (int64[m]).
    """
    rows, places = np.empty(values.size, np.int64), np.empty(values.size, np.int64)
    out, types = np.empty(values.size, np.uint64), np.empty(values.size, np.int32)
    totals = counts.sum(axis=1)
    _interleave(counts, numbers, values, np.cumsum(totals) - totals, rows, out, types, places)
    return rows, out, types, places


@njit(cache=True, nogil=True)
def _rows_ascend(values, bounds):
    first = bounds[0]
    for row in range(bounds.size - 1):
        for i in range(bounds[row] - first + 1, bounds[row + 1] - first):
            if values[i] < values[i - 1]:
                return False
    return True


@njit(cache=True, nogil=True)
def _interleave(counts, numbers, values, cursors, rows, out, types, places):
    at = 0
    for row in range(counts.shape[1]):
        for source in range(counts.shape[0]):
            first = cursors[source]
            stop = first + counts[source, row]
            cursors[source] = stop
            for i in range(first, stop):
                rows[at] = row
                out[at] = values[i]
                types[at] = numbers[source]
                places[i] = at
                at += 1
