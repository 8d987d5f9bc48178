"""How many rows a batch has, and their numbers, which every batch shares: most columns have a value in every row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
_BATCH_BYTES = 1 << 24  # of all columns
_MOST_ROWS = 1 << 20  # beyond, they are made each time: what is kept stays small
_shared = (np.arange(0), np.ones(0, np.int64))


def batch_rows(max_rows: int, row_bytes: int) -> int:
    """Return the rows of a batch: at most ``max_rows``, fewer where rows are wide, and one at least."""
    return max(1, min(max_rows, _BATCH_BYTES // max(row_bytes, 1)))


def every_row(num_rows: int) -> Ints:
    """Return 0..num_rows-1, an array that cannot be written to."""
    return _of_size(num_rows)[0][:num_rows]


def one_a_row(num_rows: int) -> Ints:
    """Return ``num_rows`` times 1, an array that cannot be written to."""
    return _of_size(num_rows)[1][:num_rows]


def _of_size(num_rows: int) -> tuple[Ints, Ints]:
    global _shared
    if num_rows <= _shared[0].size:
        return _shared
    size = num_rows if num_rows > _MOST_ROWS else max(num_rows, min(2 * _shared[0].size, _MOST_ROWS))
    made = np.arange(size), np.ones(size, np.int64)
    for array in made:
        array.flags.writeable = False
    if num_rows <= _MOST_ROWS:
        _shared = made  # of two threads, either may be the last
    return made


def ranges(starts: Ints, counts: Ints) -> Ints:
    """Return start, start + 1 … for each start, ``counts`` of them."""
    before = np.cumsum(counts) - counts
    return np.repeat(starts - before, counts) + np.arange(int(counts.sum()))
