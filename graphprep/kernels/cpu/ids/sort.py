"""Sort integers with a radix sort. The public function allocates; the jitted ones fill what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit

_DIGIT_BITS = 11  # 2048 cursors fit L1
_FEW_ROWS = 1 << 10  # below that, clearing the cursors costs more than comparing


def stable_order(keys: Any) -> Any:
    """Return the row numbers that put keys in ascending order, rows of equal keys ascending: int64[n].

    ``keys``: integers of any dtype, n < 2^31. Takes one pass for every 11 bits between the lowest and the highest key.
    """
    if keys.size < _FEW_ROWS:
        return np.argsort(keys, kind="stable")
    low, high = keys.min(), keys.max()
    span = int(high) - int(low)
    narrow = np.uint32 if span < 2**32 else np.uint64
    keys = (keys - low).astype(narrow)
    rows = np.arange(keys.size, dtype=np.int32)
    more_keys, more_rows = np.empty_like(keys), np.empty_like(rows)
    for shift in range(0, span.bit_length(), _DIGIT_BITS):
        cursors = _find_cursors(keys, narrow(0), shift)
        if cursors is not None:
            _scatter_by_digit(keys, rows, shift, cursors, more_keys, more_rows)
            keys, rows, more_keys, more_rows = more_keys, more_rows, keys, rows
    return rows.astype(np.int64)


def order_by_key(keys: Any, order: Any, more: Any) -> Any:
    """Order rows by a key, rows of equal keys as they are: the new order, which is one of the two arrays given.

    ``keys``: uint64 of every row; ``order``: int64[n], rows in any order; ``more``: int64[n], anything. For rows beyond memory:
    all arrays may be maps of files, and nothing else is taken. Takes one pass for every 11 bits between lowest and highest key.
    """
    if not order.size:
        return order
    low = keys.min()
    for shift in range(0, (int(keys.max()) - int(low)).bit_length(), _DIGIT_BITS):
        cursors = _find_cursors(keys, low, shift)
        if cursors is not None:
            _scatter_rows(keys, low, order, shift, cursors, more)
            order, more = more, order
    return order


def _find_cursors(keys: Any, low: Any, shift: int) -> Any:
    """Return where the rows of each digit of ``keys`` less ``low`` begin; None where all have the same."""
    counts = np.zeros(1 << _DIGIT_BITS, np.int64)
    _count_digits(keys, low, shift, counts)
    return None if counts.max() == keys.size else np.cumsum(counts) - counts


@njit(cache=True, nogil=True)
def _count_digits(keys, low, shift, counts):
    mask = np.uint64(counts.size - 1)
    for i in range(keys.size):
        counts[(np.uint64(keys[i] - low) >> np.uint64(shift)) & mask] += 1


@njit(cache=True, nogil=True)
def _scatter_rows(keys, low, rows, shift, cursors, out):
    mask = np.uint64(cursors.size - 1)
    for i in range(rows.size):
        digit = ((keys[rows[i]] - low) >> np.uint64(shift)) & mask
        out[cursors[digit]] = rows[i]
        cursors[digit] += 1


@njit(cache=True, nogil=True)
def _scatter_by_digit(keys, rows, shift, cursors, sorted_keys, sorted_rows):
    """Move keys and rows to their digit's cursor, in order: that keeps the sort stable."""
    mask = np.uint64(cursors.size - 1)
    for i in range(keys.size):
        digit = (np.uint64(keys[i]) >> np.uint64(shift)) & mask
        at = cursors[digit]
        sorted_keys[at] = keys[i]
        sorted_rows[at] = rows[i]
        cursors[digit] = at + 1
