"""The values of a column that stands apart from its nodes or edges, as they were decoded."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.rows import AlignedColumn
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.columns.cells import Cells, cells_of

Ints = NDArray[np.int64]
_LEAST_BYTES = 1 << 14  # of a column: each piece is read on its own
_MOST_BYTES = 1 << 22


def column_share(cap_bytes: int, num_columns: int) -> int:
    """Return how many bytes of each column may be held where so many are read side by side."""
    return min(_MOST_BYTES, max(_LEAST_BYTES, cap_bytes // max(1, num_columns)))


@dataclass(frozen=True, eq=False)
class AlignedCells:
    """Cells of rows that ascend; where these have no gaps, ``rows`` is None, and ``first`` says where they begin."""

    first: Ints
    rows: Ints | None
    cells: Cells

    def __iter__(self) -> Iterator[NDArray[Any] | None]:
        return iter((self.first, self.rows, *self.cells))

    @classmethod
    def _make(cls, arrays: Iterable[Any]) -> AlignedCells:
        first, rows, *parts = arrays
        return cls(first, rows, Cells._make(parts))


class AlignedRuns:
    """Cells of rows that ascend. Where a batch has no gaps, and most have none, its first row stands for all.

    What is appended is cut into pieces of about ``most_bytes``.
    """

    def __init__(self, pool: SpillPool, most_bytes: int = sys.maxsize) -> None:
        self._runs: Runs[AlignedCells] = Runs(pool, 1, coalesce=False)
        self._most_bytes = most_bytes

    def append(self, aligned: AlignedColumn, shape_code: int) -> None:
        """Take the next rows."""
        cells = cells_of(aligned.chunk, shape_code)
        rows = aligned.chunk.rows + aligned.start if aligned.chunk.rows.size < aligned.num_rows else None
        step = max(1, cells.num_rows * self._most_bytes // max(1, cells.num_bytes))
        for low in range(0, max(1, cells.num_rows), step):
            high = min(low + step, cells.num_rows)
            first = np.array([aligned.start + low])
            self._runs.append(0, AlignedCells(first, None if rows is None else rows[low:high], cells.slice(low, high)))

    def read(self, most_bytes: int = 0) -> Iterator[tuple[Ints, Cells]]:
        """Yield (rows, cells), piece by piece; they were cut when they came, whatever ``most_bytes`` says.

        No file stays open meanwhile: there may be many such columns, all of which are read side by side.
        """
        for first, rows, cells in ((one.first[0], one.rows, one.cells) for one in self._runs.read(0, stays_open=False)):
            yield np.arange(first, first + cells.num_rows) if rows is None else rows, cells

    def close(self) -> None:
        """Drop the values."""
        self._runs.close()
