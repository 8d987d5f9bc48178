"""Blocks of items to other places, whatever their dtype and item shape. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit

_UNITS = {8: np.uint64, 4: np.uint32, 2: np.uint16, 1: np.uint8}


def copy_blocks(values: Any, starts: Any, stops: Any, out: Any) -> None:
    """See ``Kernels.copy_blocks``."""
    item_bytes = values.dtype.itemsize * int(np.prod(values.shape[1:], dtype=np.int64))
    if not item_bytes or not out.size:
        return
    unit = next(size for size in _UNITS if item_bytes % size == 0)
    flat, target = (_flat(array).view(_UNITS[unit]) for array in (values, out))
    _copy_blocks(flat, starts, stops, item_bytes // unit, target)


def scatter_blocks(values: Any, first: int, bounds: Any, buckets: Any, cursors: Any, out: Any) -> None:
    """See ``Kernels.scatter_blocks``."""
    item_bytes = values.dtype.itemsize * int(np.prod(values.shape[1:], dtype=np.int64))
    if not item_bytes or not out.size:
        return
    unit = next(size for size in _UNITS if item_bytes % size == 0)
    flat, target = (_flat(array).view(_UNITS[unit]) for array in (values, out))
    _scatter_blocks(flat, first, first + len(values), bounds, buckets, cursors, item_bytes // unit, target)


def count_blocks(first: int, stop: int, bounds: Any, buckets: Any, counts: Any) -> None:
    """See ``Kernels.count_blocks``."""
    _count_blocks(first, stop, bounds, buckets, counts)


def _flat(array: Any) -> Any:
    return np.asarray(array).reshape(-1)


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
def _scatter_blocks(values, first, stop, bounds, buckets, cursors, scale, out):
    for row in range(buckets.size):
        start = max(bounds[row], first)
        size = min(bounds[row + 1], stop) - start
        at = cursors[buckets[row]]
        cursors[buckets[row]] = at + size
        source = (start - first) * scale
        target = at * scale
        for j in range(size * scale):
            out[target + j] = values[source + j]
