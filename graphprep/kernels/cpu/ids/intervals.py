"""Find the intervals in which numbers lie. The public functions allocate; the jitted ones fill what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit


def find_intervals(values: Any, borders: Any) -> Any:
    """Return the interval in which each value lies: int64[k].

    ``borders``: int64[n + 1], ascending from 0, interval i is ``[borders[i], borders[i + 1])``; ``values``: int32[k] or
    int64[k] in ``[0, borders[-1])``.
    """
    out = np.empty(values.size, np.int64)
    _find_all(np.ascontiguousarray(values), borders, out)
    return out


def count_intervals(values: Any, borders: Any) -> Any:
    """Return how many values lie in each interval: int64[n]. Arguments are those of ``find_intervals``."""
    counts = np.zeros(borders.size - 1, np.int64)
    _count_all(np.ascontiguousarray(values), borders, counts)
    return counts


@njit(cache=True, nogil=True)
def _find(value, borders, scale):
    """Guess as if all intervals were of one size, which mostly is right, and search where it is not."""
    high = borders.size - 1
    guess = min(np.int64(value * scale), high - 1)
    if borders[guess] <= value < borders[guess + 1]:
        return guess
    low = 0
    while high - low > 1:
        middle = (low + high) >> 1
        if borders[middle] <= value:
            low = middle
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _find_all(values, borders, out):
    scale = (borders.size - 1) / max(borders[-1], 1)
    for i in range(values.size):
        out[i] = _find(values[i], borders, scale)


@njit(cache=True, nogil=True)
def _count_all(values, borders, counts):
    scale = (borders.size - 1) / max(borders[-1], 1)
    for i in range(values.size):
        counts[_find(values[i], borders, scale)] += 1
