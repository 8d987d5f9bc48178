"""Group rows by key with a stable counting sort. The public functions allocate; the jitted ones fill what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit


def group_by_key(keys: Any, num_keys: int) -> tuple[Any, Any]:
    """Group row numbers by key.

    ``keys``: int32[n] or int64[n] in [0, num_keys). Returns ``indptr`` int64[num_keys + 1] and ``rows`` int64[n]: the rows
    of key k are ``rows[indptr[k]:indptr[k + 1]]``, ascending (the sort is stable).
    """
    keys = np.ascontiguousarray(keys, np.int32 if keys.dtype == np.int32 else np.int64)
    indptr = np.zeros(num_keys + 1, np.int64)
    _count(keys, indptr)
    np.cumsum(indptr, out=indptr)
    rows = np.empty(keys.size, np.int64)
    _scatter(keys, indptr[:-1].copy(), rows)
    return indptr, rows


@njit(cache=True, nogil=True)
def _count(keys, indptr):
    """Count each key one place to the right, so that a running sum gives the offsets."""
    for i in range(keys.size):
        indptr[keys[i] + 1] += 1


@njit(cache=True, nogil=True)
def _scatter(keys, cursor, rows):
    """Write each row number at its key's cursor, in row order: that keeps the sort stable."""
    for row in range(keys.size):
        at = cursor[keys[row]]
        rows[at] = row
        cursor[keys[row]] = at + 1


@njit(cache=True, nogil=True)
def _mark(bitmap, ids):
    for i in range(ids.size):
        bitmap[np.uint64(ids[i]) >> np.uint64(3)] |= np.uint8(1) << np.uint8(ids[i] & np.uint64(7))


def mark_bits(bitmap: Any, ids: Any) -> None:
    """Set the bit of every ID. ``bitmap``: uint8[(n + 7) // 8]; ``ids``: uint32[k] or uint64[k] below n."""
    ids = np.ascontiguousarray(ids)
    _mark(bitmap, ids if ids.dtype == np.uint32 else ids.view(np.uint64))
