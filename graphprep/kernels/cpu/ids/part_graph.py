"""What a partition's own graph takes: part IDs of nodes, and rows of several tables as one. The public functions allocate."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit

Ints = NDArray[np.int64]


def to_part_ids(typed: NDArray[Any], borders: Ints, shifts: Ints) -> tuple[Ints, int]:
    """Add to every typed ID (int32[k] or int64[k]) what its partition is shifted by.

    ``borders``: int64[parts + 1], where partitions begin among typed IDs; ``shifts``: int64[parts]. Returns (int64[k], -1 or
    the position of the first ID that is out of range; then nothing is written from there on).
    """
    typed = np.ascontiguousarray(typed, np.int32 if typed.dtype == np.int32 else np.int64)
    out = np.empty(typed.size, np.int64)
    return out, int(_shift(typed, borders, shifts, out))


def number_rows(indptr: Ints, first: int, low: int, high: int) -> Ints:
    """Return the row of each of the items [low, high): int64[high - low].

    ``indptr``: ascending offsets of all rows, that of row i is row ``first + i``.
    """
    out = np.empty(high - low, np.int64)
    if out.size:
        row = int(np.searchsorted(indptr, low, side="right")) - 1
        _number(indptr, row, first, low, out)
    return out


def interleave_rows(indptr: Ints, cursors: Ints) -> Ints:
    """Return where the items of a table go that are joined to others row by row: int64[items].

    ``indptr``: int64[rows + 1], ascending. ``cursors``: int64[rows], where the next item of each row goes; they move on.
    """
    out = np.empty(int(indptr[-1] - indptr[0]), np.int64)
    _interleave(indptr, cursors, out)
    return out


@njit(cache=True, nogil=True)
def _shift(typed, borders, shifts, out):
    """Look into the partition of the ID before first: neighbours often lie together."""
    part = 0
    for i in range(typed.size):
        value = np.int64(typed[i])
        if value < borders[part] or value >= borders[part + 1]:
            if value < borders[0] or value >= borders[shifts.size]:
                return i
            low, high = 0, shifts.size
            while high - low > 1:
                middle = (low + high) >> 1
                if borders[middle] <= value:
                    low = middle
                else:
                    high = middle
            part = low
        out[i] = value + shifts[part]
    return -1


@njit(cache=True, nogil=True)
def _number(indptr, row, first, low, out):
    for i in range(out.size):
        while indptr[row + 1] <= low + i:
            row += 1
        out[i] = first + row


@njit(cache=True, nogil=True)
def _interleave(indptr, cursors, out):
    at = 0
    for row in range(cursors.size):
        cursor = cursors[row]
        for _ in range(indptr[row + 1] - indptr[row]):
            out[at] = cursor
            cursor += 1
            at += 1
        cursors[row] = cursor


def scatter_rows(rows: Ints, others: Ints, first_id: int, cursors: Ints, out_others: Ints, out_ids: Ints) -> None:
    """Put edges at the cursors of their rows, which move on: edge i is number ``first_id + i``. All int64, in range."""
    _scatter(rows, others, first_id, cursors, out_others, out_ids)


@njit(cache=True, nogil=True)
def _scatter(rows, others, first_id, cursors, out_others, out_ids):
    for i in range(rows.size):
        row = rows[i]
        at = cursors[row]
        cursors[row] = at + 1
        out_others[at] = others[i]
        out_ids[at] = first_id + i
