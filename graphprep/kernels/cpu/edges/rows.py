"""Sort rows where they lie. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit

_DIGIT_BITS = 11  # 2048 cursors fit L1
_SHORT_ROW = 16  # sorted by insertion, and so are the pieces from which longer ones are merged
_LONG_ROW = 128  # sorted by digits of 8 bits: guessing where merging goes on costs more
_HUGE_ROW = 1 << 14  # by digits of 11 bits: clearing their cursors no longer counts


def sort_rows(values: Any, bounds: Any, inner: Any, spare_values: Any, spare_inner: Any) -> None:
    """See ``Kernels.sort_rows``."""
    _sort_rows(values, bounds, inner, spare_values, spare_inner, np.empty(1 << _DIGIT_BITS, np.int64))


@njit(cache=True, nogil=True)
def _sort_rows(values, bounds, inner, spare_values, spare_inner, cursors):
    for row in range(bounds.size - 1):
        start, stop = bounds[row], bounds[row + 1]
        for i in range(start, stop):
            inner[i] = i - start
        if stop - start < _LONG_ROW:
            _merge_sort(values, inner, start, stop, spare_values, spare_inner)
        else:
            bits = 8 if stop - start < _HUGE_ROW else _DIGIT_BITS
            _digit_sort(values, inner, start, stop, spare_values, spare_inner, cursors, bits)


@njit(cache=True, nogil=True)
def _merge_sort(values, inner, start, stop, spare_values, spare_inner):
    for low in range(start, stop, _SHORT_ROW):
        _insertion_sort(values, inner, low, min(low + _SHORT_ROW, stop))
    width = _SHORT_ROW
    while width < stop - start:
        for low in range(start, stop - width, 2 * width):
            _merge(values, inner, low, low + width, min(low + 2 * width, stop), spare_values, spare_inner)
        width *= 2


@njit(cache=True, nogil=True)
def _digit_sort(values, inner, start, stop, spare_values, spare_inner, cursors, bits):
    """Sort a row by digits, the lowest first; there and back, so that it ends where it began."""
    highest = values[start]
    for i in range(start + 1, stop):
        highest = max(highest, values[i])
    shift = 0
    while highest >> shift:
        _scatter_digits(values, inner, start, stop, spare_values, spare_inner, 0, cursors, bits, shift)
        shift += bits
        if highest >> shift:
            _scatter_digits(spare_values, spare_inner, 0, stop - start, values, inner, start, cursors, bits, shift)
        else:
            for i in range(stop - start):
                values[start + i], inner[start + i] = spare_values[i], spare_inner[i]
        shift += bits


@njit(cache=True, nogil=True)
def _scatter_digits(values, inner, start, stop, out_values, out_inner, out_start, cursors, bits, shift):
    """Put rows in the order of a digit, stable."""
    size = 1 << bits
    for digit in range(size):
        cursors[digit] = 0
    for i in range(start, stop):
        cursors[(values[i] >> shift) & (size - 1)] += 1
    at = out_start
    for digit in range(size):
        count = cursors[digit]
        cursors[digit] = at
        at += count
    for i in range(start, stop):
        digit = (values[i] >> shift) & (size - 1)
        at = cursors[digit]
        cursors[digit] = at + 1
        out_values[at], out_inner[at] = values[i], inner[i]


@njit(cache=True, nogil=True)
def _insertion_sort(values, inner, low, high):
    for i in range(low + 1, high):
        value, where = values[i], inner[i]
        j = i - 1
        while j >= low and values[j] > value:
            values[j + 1], inner[j + 1] = values[j], inner[j]
            j -= 1
        values[j + 1], inner[j + 1] = value, where


@njit(cache=True, nogil=True)
def _merge(values, inner, low, middle, high, spare_values, spare_inner):
    """Merge two sorted runs; the left one waits in the spare arrays."""
    if values[middle - 1] <= values[middle]:
        return
    size = middle - low
    for i in range(size):
        spare_values[i], spare_inner[i] = values[low + i], inner[low + i]
    left, right, at = 0, middle, low
    while left < size:
        if right < high and values[right] < spare_values[left]:
            values[at], inner[at] = values[right], inner[right]
            right += 1
        else:
            values[at], inner[at] = spare_values[left], spare_inner[left]
            left += 1
        at += 1
