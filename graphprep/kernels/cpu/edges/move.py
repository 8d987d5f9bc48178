"""Move rows of arrays to other places, and what that takes: degrees, their order, new IDs for old ones."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit

_DIGIT_BITS = 11  # 2048 cursors fit L1
_SHORT_ROW = 16  # sorted by insertion, and so are the pieces from which longer ones are merged
_LONG_ROW = 128  # sorted by digits of 8 bits: guessing where merging goes on costs more
_HUGE_ROW = 1 << 14  # by digits of 11 bits: clearing their cursors no longer counts
_UNITS = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}


def count_ids(ids: Any, counts: Any) -> int:
    """Add the number of times that each ID occurs to ``counts`` (int64[n]).

    ``ids``: int32[k] or int64[k]. Returns -1, or the position of the first ID outside [0, n); then counting ends there.
    """
    return int(_count_ids(ids, counts))


def relabel_ids(ids: Any, new_ids: Any, out: Any) -> int:
    """Write the new ID of every ID to ``out``.

    ``ids``: int32[k] or int64[k]; ``new_ids``: int32[n] or int64[n], by old ID; ``out``: [k], dtype of ``ids``. Returns -1, or
    the position of the first ID outside [0, n); then nothing is written from there on.
    """
    return int(_relabel_ids(ids, new_ids, out))


def order_descending(values: Any, order: Any, spare: Any) -> Any:
    """Put the positions of ``values`` in the order of descending values, ties ascending.

    ``values``: int64[n], at least 0; ``order`` and ``spare``: int64[n], overwritten. Returns the one that holds the result.
    Takes one pass for every 11 bits of the highest value.
    """
    _count_up(order)
    highest = int(values.max()) if values.size else 0
    for shift in range(0, highest.bit_length(), _DIGIT_BITS):
        counts = np.zeros(1 << _DIGIT_BITS, np.int64)
        _count_digits(values, shift, counts)
        behind = np.cumsum(counts[::-1])[::-1] - counts  # how many have a higher digit: they stand before
        _scatter_digits(values, order, shift, behind, spare)
        order, spare = spare, order
    return order


def copy_blocks(values: Any, starts: Any, stops: Any, out: Any) -> None:
    """Copy blocks of rows [start, stop), one behind the other.

    ``values`` and ``out``: contiguous arrays of one dtype and item shape; ``starts`` and ``stops``: int64[k], inside of
    ``values``, and together as many rows as ``out`` has.
    """
    item_bytes = values.dtype.itemsize * int(np.prod(values.shape[1:], dtype=np.int64))
    if not item_bytes or not out.size:
        return
    unit = next(size for size in _UNITS if item_bytes % size == 0)
    flat, target = (_flat(array).view(_UNITS[unit]) for array in (values, out))
    _copy_blocks(flat, starts, stops, item_bytes // unit, target)


def deal_blocks(values: Any, first: int, bounds: Any, buckets: Any, cursors: Any, out: Any) -> None:
    """Copy consecutive items to their rows' buckets, inside a bucket in the order in which they stand.

    ``values``: items [first, first + k) of an array whose row r owns the items [bounds[r], bounds[r + 1]); ``bounds``:
    int64[r + 1] of the rows that these items belong to; ``buckets``: int32[r]; ``cursors``: int64[buckets], where each
    begins in ``out``, moved on. ``out``: as ``values``.
    """
    item_bytes = values.dtype.itemsize * int(np.prod(values.shape[1:], dtype=np.int64))
    if not item_bytes or not out.size:
        return
    unit = next(size for size in _UNITS if item_bytes % size == 0)
    flat, target = (_flat(array).view(_UNITS[unit]) for array in (values, out))
    _deal_blocks(flat, first, first + len(values), bounds, buckets, cursors, item_bytes // unit, target)


def count_blocks(first: int, stop: int, bounds: Any, buckets: Any, counts: Any) -> None:
    """Add the number of items of [first, stop) in each bucket to ``counts``; see ``deal_blocks``."""
    _count_blocks(first, stop, bounds, buckets, counts)


def sort_rows(values: Any, bounds: Any, inner: Any, spare_values: Any, spare_inner: Any) -> None:
    """Sort each row's values, ascending and stable, and tell where each stood in its row.

    ``values``: int32[m] or int64[m], at least 0; ``bounds``: int64[n + 1], from 0 to m; ``inner``: int32[m] or int64[m], the
    position inside its row where each value stood. The spares are of the same dtypes, as long as the longest row or longer.
    """
    _sort_rows(values, bounds, inner, spare_values, spare_inner, np.empty(1 << _DIGIT_BITS, np.int64))


def _flat(array: Any) -> Any:
    return np.asarray(array).reshape(-1)


@njit(cache=True, nogil=True)
def _count_ids(ids, counts):
    for i in range(ids.size):
        one = ids[i]
        if one < 0 or one >= counts.size:
            return i
        counts[one] += 1
    return -1


@njit(cache=True, nogil=True)
def _relabel_ids(ids, new_ids, out):
    for i in range(ids.size):
        one = ids[i]
        if one < 0 or one >= new_ids.size:
            return i
        out[i] = new_ids[one]
    return -1


@njit(cache=True, nogil=True)
def _count_up(order):
    for i in range(order.size):
        order[i] = i


@njit(cache=True, nogil=True)
def _count_digits(values, shift, counts):
    mask = counts.size - 1
    for i in range(values.size):
        counts[(values[i] >> shift) & mask] += 1


@njit(cache=True, nogil=True)
def _scatter_digits(values, rows, shift, cursors, out):
    """Move rows to their digit's cursor, in order: that keeps the sort stable."""
    mask = cursors.size - 1
    for i in range(rows.size):
        digit = (values[rows[i]] >> shift) & mask
        at = cursors[digit]
        out[at] = rows[i]
        cursors[digit] = at + 1


@njit(cache=True, nogil=True)
def _copy_blocks(values, starts, stops, scale, out):
    at = 0
    for i in range(starts.size):
        for j in range(starts[i] * scale, stops[i] * scale):
            out[at] = values[j]
            at += 1


@njit(cache=True, nogil=True)
def _count_blocks(first, stop, bounds, buckets, counts):
    for row in range(buckets.size):
        counts[buckets[row]] += min(bounds[row + 1], stop) - max(bounds[row], first)


@njit(cache=True, nogil=True)
def _deal_blocks(values, first, stop, bounds, buckets, cursors, scale, out):
    for row in range(buckets.size):
        start = max(bounds[row], first)
        size = min(bounds[row + 1], stop) - start
        at = cursors[buckets[row]]
        cursors[buckets[row]] = at + size
        source = (start - first) * scale
        target = at * scale
        for j in range(size * scale):
            out[target + j] = values[source + j]


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
        _deal_digits(values, inner, start, stop, spare_values, spare_inner, 0, cursors, bits, shift)
        shift += bits
        if highest >> shift:
            _deal_digits(spare_values, spare_inner, 0, stop - start, values, inner, start, cursors, bits, shift)
        else:
            for i in range(stop - start):
                values[start + i], inner[start + i] = spare_values[i], spare_inner[i]
        shift += bits


@njit(cache=True, nogil=True)
def _deal_digits(values, inner, start, stop, out_values, out_inner, out_start, cursors, bits, shift):
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
