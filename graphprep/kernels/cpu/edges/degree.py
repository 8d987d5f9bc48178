"""Count IDs, and order nodes by their counts. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit

_DIGIT_BITS = 11  # 2048 cursors fit L1


def find_limits(ids: Any) -> tuple[int, int]:
    """See ``Kernels.find_limits``."""
    low, high = _limits(ids)
    return int(low), int(high)


def count_ids(ids: Any, counts: Any) -> int:
    """See ``Kernels.count_ids``."""
    return int(_count_ids(ids, counts))


def order_descending(values: Any, order: Any, spare: Any) -> Any:
    """See ``Kernels.order_descending``. Takes one pass for every 11 bits of the highest value."""
    _count_up(order)
    highest = int(values.max()) if values.size else 0
    for shift in range(0, highest.bit_length(), _DIGIT_BITS):
        counts = np.zeros(1 << _DIGIT_BITS, np.int64)
        _count_digits(values, shift, counts)
        behind = np.cumsum(counts[::-1])[::-1] - counts  # how many have a higher digit: they stand before
        _scatter_digits(values, order, shift, behind, spare)
        order, spare = spare, order
    return order


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
def _count_ids(ids, counts):
    for i in range(ids.size):
        one = np.int64(ids[i])
        if one < 0 or one >= counts.size:
            return i
        counts[np.uint64(one)] += 1
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
