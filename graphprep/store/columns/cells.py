"""The values of a column for some rows, while they travel from decoding to their place in the store."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.bytes.blocks import copy_blocks
from graphprep.model.rows import ColumnChunk, ColumnKey

Ints = NDArray[np.int64]


class Cells(NamedTuple):
    """What ``ColumnChunk`` holds for its rows, without the rows.

    A part is None where a kind of column has none. Where all rows are known to have the same number of values, ``counts`` is
    None and ``values`` 2-D: one row a row. Most columns are like that, and a count for each weight would cost more than the
    weights.

    ``shapes`` (int32[k], None while every value so far is 0-D or 1-D) holds for each row 0, or 1 + the position of its
    N-D shape in the column's list of shapes.
    """

    counts: Ints | None
    values: NDArray[np.generic]
    coords: Ints | None = None
    entry_counts: Ints | None = None
    start: Ints | None = None
    end: Ints | None = None
    shapes: NDArray[np.int32] | None = None

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        if self.entry_counts is not None:
            return int(self.entry_counts.size)
        return int(self.values.shape[0] if self.counts is None else self.counts.size)

    @property
    def flat(self) -> NDArray[np.generic]:
        """Return the values of all rows, one after another."""
        return self.values.reshape(-1)

    @property
    def item_counts(self) -> Ints:
        """Return the number of values of every row, of every entry where the column is temporal: int64."""
        return np.full(self.values.shape[0], self.values.shape[1], np.int64) if self.counts is None else self.counts

    @property
    def value_counts(self) -> Ints:
        """Return the number of values of every row: int64[k]."""
        counts = self.item_counts
        if self.entry_counts is None:
            return counts
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        return np.asarray(np.diff(bounds[np.concatenate([np.zeros(1, np.int64), np.cumsum(self.entry_counts)])]), np.int64)

    @property
    def num_bytes(self) -> int:
        """Return the size of all parts in bytes."""
        return sum(array.nbytes for array in self if array is not None)

    def take(self, rows: Ints) -> Cells:
        """Return the cells of ``rows`` (int64[j], any order)."""
        shapes = None if self.shapes is None else self.shapes[rows]
        if self.counts is None:
            return Cells(None, self.values.take(rows, axis=0), shapes=shapes)
        if self.entry_counts is not None:
            return self._take_temporal(rows, shapes)
        coords = None
        if self.coords is not None:
            total = int(self.counts.sum())
            width = self.coords.size // total if total else 1
            coords = take_ragged(self.counts, self.coords, rows, scale=width)
        return Cells(self.counts[rows], take_ragged(self.counts, self.values, rows), coords, shapes=shapes)

    def slice(self, start: int, stop: int) -> Cells:
        """Return the cells of rows [start, stop), where that can be without a copy."""
        if self.counts is not None:
            return self.take(np.arange(start, stop))
        return Cells(None, self.values[start:stop], shapes=None if self.shapes is None else self.shapes[start:stop])

    def _take_temporal(self, rows: Ints, shapes: NDArray[np.int32] | None) -> Cells:
        assert self.entry_counts is not None
        assert self.start is not None
        assert self.end is not None
        entries = self.entry_counts
        return Cells(
            counts=take_ragged(entries, self.item_counts, rows),
            values=take_ragged(self.value_counts, self.values, rows),
            entry_counts=entries[rows],
            start=take_ragged(entries, self.start, rows),
            end=take_ragged(entries, self.end, rows),
            shapes=shapes,
        )

    def cast(self, dtype: str) -> Cells:
        """Return the cells with values of another dtype."""
        if self.values.dtype == np.dtype(dtype):
            return self
        return self._replace(values=self.values.astype(dtype))


def cells_of(chunk: ColumnChunk, shape_code: int) -> Cells:
    """Take the cells out of a decoded chunk; ``shape_code`` is what ``Cells.shapes`` is to hold for all its rows."""
    shapes = np.full(chunk.rows.size, shape_code, np.int32) if shape_code else None
    if chunk.item_shape is not None and chunk.key.family == "numbers":
        return Cells(None, chunk.values.reshape(chunk.rows.size, prod(chunk.item_shape)), shapes=shapes)
    return Cells(chunk.counts, chunk.values, chunk.coords, chunk.entry_counts, chunk.start, chunk.end, shapes)


def scalar_cells(values: NDArray[np.generic]) -> Cells:
    """Return cells of one value a row."""
    return Cells(None, values.reshape(-1, 1))


def empty_cells(key: ColumnKey) -> Cells:
    """Return cells of no rows."""
    none = np.zeros(0, np.int64)
    temporal = key.family == "temporal"
    return Cells(
        counts=none,
        values=np.zeros(0, np.dtype(key.dtype)),
        coords=none if key.family == "sparse" else None,
        entry_counts=none if temporal else None,
        start=none if temporal else None,
        end=none if temporal else None,
    )


def concat_cells(pieces: Sequence[Cells]) -> Cells:
    """Put cells of one column one after another; values take the dtype that holds all (int64 with float64: float64)."""
    pieces = [piece for piece in pieces if piece.num_rows] or pieces[:1]
    if len(pieces) == 1:
        return pieces[0]
    shapes = None
    if any(piece.shapes is not None for piece in pieces):
        shapes = np.concatenate([np.zeros(p.num_rows, np.int32) if p.shapes is None else p.shapes for p in pieces])
    if all(piece.counts is None for piece in pieces) and len({piece.values.shape[1] for piece in pieces}) == 1:
        return Cells(None, np.concatenate([piece.values for piece in pieces]), shapes=shapes)
    return Cells(
        counts=np.concatenate([piece.item_counts for piece in pieces]),
        values=np.concatenate([piece.flat for piece in pieces]),
        coords=_concat([piece.coords for piece in pieces]),
        entry_counts=_concat([piece.entry_counts for piece in pieces]),
        start=_concat([piece.start for piece in pieces]),
        end=_concat([piece.end for piece in pieces]),
        shapes=shapes,
    )


def _concat(parts: Sequence[Ints | None]) -> Ints | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


def take_ragged(counts: NDArray[np.int64], values: NDArray[Any], rows: NDArray[np.int64], scale: int = 1) -> NDArray[Any]:
    """Return the values of chosen rows, one behind the other; row i owns ``counts[i] * scale`` of ``values``."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    starts, stops = scale * offsets[rows], scale * offsets[rows + 1]
    out = np.empty(int((stops - starts).sum()), values.dtype)
    copy_blocks(values, starts, stops, out)
    return out
