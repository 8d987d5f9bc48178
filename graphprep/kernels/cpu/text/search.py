"""Find texts among sorted ones. Text r is ``values[offsets[r]:offsets[r + 1]]``, order is that of the bytes."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.texts import compare_bytes


def find_texts(offsets: Any, values: Any, wanted_offsets: Any, wanted_values: Any) -> Any:
    """Return the position of every wanted text among strictly ascending ones, -1 where it is not there: int64[k].

    The wanted texts ascend, so that all of them are found in one walk.
    """
    out = np.empty(wanted_offsets.size - 1, np.int64)
    _find_texts(offsets, values, wanted_offsets, wanted_values, out)
    return out


def rank_texts(offsets: Any, values: Any, wanted_offsets: Any, wanted_values: Any) -> Any:
    """Return how many of ascending texts are not behind each of the wanted ones, which ascend: int64[k]."""
    out = np.empty(wanted_offsets.size - 1, np.int64)
    _rank_texts(offsets, values, wanted_offsets, wanted_values, out)
    return out


def copy_ranges(values: Any, starts: Any, stops: Any) -> tuple[Any, Any]:
    """Return (offsets int64[k + 1], values) of the texts that lie at ``values[starts[i]:stops[i]]``."""
    offsets = np.zeros(starts.size + 1, np.int64)
    np.cumsum(stops - starts, out=offsets[1:])
    out = np.empty(int(offsets[-1]), np.uint8)
    _copy_ranges(values, starts, offsets, out)
    return offsets, out


@njit(cache=True, nogil=True)
def _count_before(offsets, values, at, wanted, start, stop, equal):
    """Return how many texts stand before a wanted one (with ``equal``: or equal it); at least ``at`` do."""
    num_texts = offsets.size - 1
    low, high, step = at, num_texts, 1
    while low + step <= num_texts:  # ever longer steps, as the wanted texts lie close together where they are many
        last = low + step - 1
        order = compare_bytes(values, offsets[last], offsets[last + 1], wanted, start, stop)
        if order > 0 or (order == 0 and not equal):
            high = last
            break
        low = last + 1
        step *= 2
    while low < high:
        middle = (low + high) >> 1
        order = compare_bytes(values, offsets[middle], offsets[middle + 1], wanted, start, stop)
        if order < 0 or (order == 0 and equal):
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _find_texts(offsets, values, wanted_offsets, wanted, out):
    at = 0
    for i in range(out.size):
        start, stop = wanted_offsets[i], wanted_offsets[i + 1]
        at = _count_before(offsets, values, at, wanted, start, stop, False)
        out[i] = -1
        if at + 1 < offsets.size and compare_bytes(values, offsets[at], offsets[at + 1], wanted, start, stop) == 0:
            out[i] = at


@njit(cache=True, nogil=True)
def _rank_texts(offsets, values, wanted_offsets, wanted, out):
    at = 0
    for i in range(out.size):
        at = _count_before(offsets, values, at, wanted, wanted_offsets[i], wanted_offsets[i + 1], True)
        out[i] = at


@njit(cache=True, nogil=True)
def _copy_ranges(values, starts, offsets, out):
    for i in range(starts.size):
        start, to = starts[i], offsets[i]
        for k in range(offsets[i + 1] - to):
            out[to + k] = values[start + k]
