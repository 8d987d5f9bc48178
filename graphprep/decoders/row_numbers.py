"""The numbers of all rows of a batch, which every batch shares: most columns have a value in every row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_MOST_ROWS = 1 << 20  # beyond, they are made each time: what is kept stays small
_shared = np.arange(0)


def every_row(num_rows: int) -> NDArray[np.int64]:
    """Return 0..num_rows-1, an array that cannot be written to."""
    global _shared
    rows = _shared
    if num_rows > rows.size:
        rows = np.arange(num_rows if num_rows > _MOST_ROWS else max(num_rows, min(2 * rows.size, _MOST_ROWS)))
        rows.flags.writeable = False
        if num_rows <= _MOST_ROWS:
            _shared = rows  # of two threads, either may be the last
    return rows[:num_rows]
