"""Gather rows of ragged arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit


def take_ragged(counts: Any, values: Any, rows: Any, scale: int = 1) -> Any:
    """Gather ragged rows.

    ``counts``: int64[n], row i owns ``counts[i] * scale`` values; ``values``: any dtype, the rows one after another;
    ``rows``: int64[k]. Returns the values of ``rows``, one row after another, same dtype.
    """
    item = values.dtype.itemsize * scale
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    lengths = counts[rows]
    out = np.empty(int(lengths.sum()) * scale, values.dtype)
    # Bytes, not values: one compiled signature serves every dtype.
    _copy_rows(np.ascontiguousarray(values).view(np.uint8).ravel(), offsets * item, rows, out.view(np.uint8))
    return out


@njit(cache=True, nogil=True)
def _copy_rows(source, byte_offsets, rows, out):
    at = 0
    for i in range(rows.size):
        start = byte_offsets[rows[i]]
        size = byte_offsets[rows[i] + 1] - start
        for j in range(size):
            out[at + j] = source[start + j]
        at += size
