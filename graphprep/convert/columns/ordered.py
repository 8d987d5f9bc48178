"""The values of a column that came in the order of its rows: kept one behind the other, not scattered to buckets."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]


class OrderedValues:
    """The values of rows 0, 1 … of a column, as long as every row has one and all are alike: of one width, dtype and shape.

    The first row that is missing, out of turn, or different ends it; what comes then is somebody else's. Rows are those of a
    node type, or the edge IDs of an edge type. At most ``most_bytes`` are taken.
    """

    def __init__(self, pool: SpillPool, most_bytes: int = sys.maxsize) -> None:
        self.num_rows = 0
        self.width = 0
        self.shape_code = 0
        self.dtype: np.dtype[Any] | None = None
        self.file: FileColumn | None = None
        self._runs: Runs[tuple[NDArray[Any]]] = Runs(pool)
        self._room = most_bytes
        self._closed = False

    def take_in(self, rows: Ints, cells: Cells) -> bool:
        """Append the cells of some rows; return False where they are not the next ones. Rows are distinct."""
        if not rows.size:
            return True
        self._closed = self._closed or not self._fits(rows, cells)
        if self._closed:
            return False
        if self.dtype is None:
            self.dtype, self.width, self.shape_code = cells.values.dtype, cells.values.shape[1], _shape_code(cells)
        self._runs.append(0, (cells.values,))
        self._room -= cells.values.nbytes
        self.num_rows += int(rows.size)
        return True

    def adopt(self, column: FileColumn) -> bool:
        """Let all values stay in their files; return False where there are others, or too many."""
        if self.num_rows or self._closed or column.num_rows * column.row_bytes > self._room:
            return False
        self.file, self._closed, column.is_left = column, True, True
        self.num_rows, self.width, self.dtype, self.shape_code = column.num_rows, column.width, column.dtype, column.shape_code
        return True

    def _fits(self, rows: Ints, cells: Cells) -> bool:
        if cells.counts is not None or cells.values.nbytes > self._room or not is_range(rows, self.num_rows):
            return False
        code = _shape_code(cells)
        if self.dtype is None:
            return code >= 0
        return cells.values.dtype == self.dtype and cells.values.shape[1] == self.width and code == self.shape_code

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Yield the values [k, width] of all rows, in order."""
        if self.file is not None:
            yield from self.file.chunks()
        for (values,) in self._runs.read(0):
            yield values

    def cells(self) -> Iterator[tuple[Ints, Cells]]:
        """Yield (rows, cells) of all rows, in order."""
        row = 0
        for values in self.chunks():
            stop = row + len(values)
            shapes = np.full(len(values), self.shape_code, np.int32) if self.shape_code else None
            yield np.arange(row, stop), Cells(None, values, shapes=shapes)
            row = stop

    def load(self, dtype: str) -> NDArray[Any]:
        """Return the values of all rows, [num_rows, width], of a dtype."""
        values = np.empty((self.num_rows, self.width), dtype)
        row = 0
        for some in self.chunks():
            values[row : row + len(some)] = some
            row += len(some)
        return values

    def close(self) -> None:
        """Drop the values."""
        self._runs.close()
        self.file = None
        self.num_rows = 0
        self._closed = True


def is_range(rows: NDArray[Any], first: int) -> bool:
    """Return whether distinct numbers are ``first``, ``first + 1`` … in this order."""
    if int(rows[0]) != first or int(rows[-1]) != first + rows.size - 1:
        return False
    return bool((rows[1:] > rows[:-1]).all())


def _shape_code(cells: Cells) -> int:
    """Return the code of the shape that all cells have; -1 where there are several."""
    if cells.shapes is None:
        return 0
    return int(cells.shapes[0]) if (cells.shapes == cells.shapes[0]).all() else -1
