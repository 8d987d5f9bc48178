"""Columns of a store as arrays: dense ones are arrays, the others a few arrays together. Local ones are memory maps."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.libraries import load_library
from graphprep.model.schema import ColumnSchema, Kind
from graphprep.storage.read.arrays import StoreReader
from graphprep.store.columns.cells import Cells
from graphprep.store.paths import ColumnPaths

Ints = NDArray[np.int64]
Array = NDArray[Any]
Rows = slice | Sequence[int] | NDArray[Any]  # a slice, numbers of rows, or a mask
Row = TypeVar("Row")
_MOST_SHOWN = 3  # rows of a column
_MOST_CHARS = 32  # of a row


class _Rows(Generic[Row]):
    """What the columns have in common: a row by its number, rows by a slice, by their numbers or by a mask."""

    _kind: ClassVar[Kind]
    offsets: Ints
    values: Array

    @property
    def _bounds(self) -> Ints:
        """Return where rows begin."""
        return self.offsets

    def __len__(self) -> int:
        return self._bounds.size - 1

    def _row(self, row: int) -> Row:
        raise NotImplementedError

    def _take(self, rows: slice | Ints) -> Any:
        """Return a column of some rows: ``rows`` is a slice of step 1 within the column, or int64[k] from 0 on."""
        raise NotImplementedError

    @property
    def schema(self) -> ColumnSchema:
        """Return what metadata.json would say of the column's kind and values."""
        return ColumnSchema("column", self._kind, self.values.dtype.name)

    def cells(self) -> Cells:
        """Return all values as cells."""
        return Cells(np.diff(self.offsets), self.values)

    @overload
    def __getitem__(self, key: int) -> Row: ...
    @overload
    def __getitem__(self, key: Rows) -> Self: ...
    def __getitem__(self, key: int | Rows) -> Any:
        size = len(self)
        if isinstance(key, int | np.integer):
            if not -size <= key < size:
                raise IndexError(f"row {key} of {size}")
            return self._row(int(key) % size)
        if isinstance(key, slice):
            start, stop, step = key.indices(size)
            return self._take(slice(start, max(start, stop)) if step == 1 else np.arange(start, stop, step))
        return self._take(_numbers(key, size))

    def to_arrow(self) -> Any:
        """Return a ``pyarrow.ChunkedArray``: strings (bytes where one is not UTF-8), or lists."""
        from graphprep.graph.arrow import arrow_column

        return arrow_column(self.schema, self, None)

    def to_pandas(self) -> Any:
        """Return a ``pandas.Series``. Needs pandas."""
        load_library("pandas")
        return self.to_arrow().to_pandas()

    def __repr__(self) -> str:
        return show_column(self, len(self))

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


@dataclass(frozen=True, repr=False)
class RaggedColumn(_Rows[Array]):
    """Several values a row: ``column[r]`` is ``values[offsets[r]:offsets[r + 1]]``; ``offsets``: int64[n + 1].

    ``column[2:5]``, ``column[rows]`` and ``column[mask]`` are columns of these rows.
    """

    _kind: ClassVar[Kind] = "ragged"

    offsets: Ints
    values: Array

    def _row(self, row: int) -> Array:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    def _take(self, rows: slice | Ints) -> RaggedColumn:
        offsets, at = _pick(self.offsets, rows)
        return RaggedColumn(offsets, self.values[at])


@dataclass(frozen=True, repr=False)
class TextColumn(_Rows[str]):
    """A text a row: UTF-8 ``values[offsets[r]:offsets[r + 1]]`` (uint8, int64[n + 1]); ``column[r]`` is the str.

    ``column[2:5]``, ``column[rows]`` and ``column[mask]`` are columns of these rows.
    """

    _kind: ClassVar[Kind] = "binary"

    offsets: Ints
    values: NDArray[np.uint8]

    def _row(self, row: int) -> str:
        return self.values[self.offsets[row] : self.offsets[row + 1]].tobytes().decode(errors="replace")

    def _take(self, rows: slice | Ints) -> TextColumn:
        offsets, at = _pick(self.offsets, rows)
        return TextColumn(offsets, self.values[at])

    def tolist(self) -> list[str]:
        """Return all texts."""
        data, ends = self.values.tobytes(), self.offsets.tolist()
        return [data[start:stop].decode(errors="replace") for start, stop in pairwise(ends)]


@dataclass(frozen=True, repr=False)
class SparseColumn(_Rows[tuple[Ints, Array]]):
    """Values at coordinates: row r has ``values[s]`` at ``coords[s]``, where s is ``offsets[r]:offsets[r + 1]``.

    ``offsets``: int64[n + 1]; ``coords``: int64[k, width], or int64[k] where flat; ``values``: [k]. ``column[r]`` is
    (coordinates, values).
    """

    _kind: ClassVar[Kind] = "sparse"

    offsets: Ints
    coords: Ints
    values: Array

    def _row(self, row: int) -> tuple[Ints, Array]:
        run = slice(int(self.offsets[row]), int(self.offsets[row + 1]))
        return self.coords[run], self.values[run]

    def _take(self, rows: slice | Ints) -> SparseColumn:
        offsets, at = _pick(self.offsets, rows)
        return SparseColumn(offsets, self.coords[at], self.values[at])

    @property
    def schema(self) -> ColumnSchema:
        """See ``_Rows``."""
        return ColumnSchema("column", self._kind, self.values.dtype.name, self.coords.shape[1:])

    def cells(self) -> Cells:
        """See ``_Rows``."""
        return Cells(np.diff(self.offsets), self.values, self.coords)


@dataclass(frozen=True, repr=False)
class TemporalColumn(_Rows[list[tuple[int, int, Array]]]):
    """Dated values, several entries a row: row r has the entries ``entry_offsets[r]:entry_offsets[r + 1]``, oldest first.

    Entry e is there from ``start[e]`` on, up to ``end[e]`` (int64, -1: no end; None: no entry has one), and has
    ``values[offsets[e]:offsets[e + 1]]``. ``column[r]`` is a list of (start, end, values).
    """

    _kind: ClassVar[Kind] = "temporal"

    entry_offsets: Ints
    start: Ints
    end: Ints | None
    offsets: Ints
    values: Array

    @property
    def _bounds(self) -> Ints:
        return self.entry_offsets

    def _row(self, row: int) -> list[tuple[int, int, Array]]:
        ends = self.end
        return [
            (int(self.start[e]), -1 if ends is None else int(ends[e]), self.values[self.offsets[e] : self.offsets[e + 1]])
            for e in range(int(self.entry_offsets[row]), int(self.entry_offsets[row + 1]))
        ]

    def _take(self, rows: slice | Ints) -> TemporalColumn:
        entry_offsets, entries = _pick(self.entry_offsets, rows)
        offsets, at = _pick(self.offsets, entries)
        end = None if self.end is None else self.end[entries]
        return TemporalColumn(entry_offsets, self.start[entries], end, offsets, self.values[at])

    def cells(self) -> Cells:
        """See ``_Rows``."""
        end = np.full(self.start.size, -1) if self.end is None else self.end
        counts = np.diff(self.entry_offsets)
        return Cells(np.diff(self.offsets), self.values, entry_counts=counts, start=self.start, end=end)


Column = Array | RaggedColumn | TextColumn | SparseColumn | TemporalColumn


def map_array(store: StoreReader, part: int, path: str) -> Array:
    """Return an array of a partition: a read-only memory map of a local store, else a copy."""
    return store.array(part, path).map().view(np.ndarray)


def map_column(store: StoreReader, part: int, folder: str, column: ColumnSchema) -> Column:
    """Return a column of a partition; ``folder`` is that of its node type or edge type."""
    stem, get = f"{folder}/{column.path}", partial(map_array, store, part)
    if column.kind == "dense":
        return get(f"{stem}.npy")
    paths = ColumnPaths(stem)
    if column.kind == "ragged":
        return RaggedColumn(get(paths.offsets), get(paths.values))
    if column.kind == "binary":
        return TextColumn(get(paths.offsets), get(paths.values))
    if column.kind == "sparse":
        return SparseColumn(get(paths.offsets), get(paths.coords), get(paths.values))
    end = get(paths.end) if column.end else None
    return TemporalColumn(get(paths.entry_offsets), get(paths.start), end, get(paths.offsets), get(paths.values))


def join_columns(pieces: Sequence[Any]) -> Any:
    """Put a column of several partitions together: a copy in memory, a single one as it is."""
    first = pieces[0]
    if len(pieces) == 1:
        return first
    if isinstance(first, np.ndarray):
        return np.concatenate(pieces)
    offsets = join_offsets([piece.offsets for piece in pieces])
    values = np.concatenate([piece.values for piece in pieces])
    if isinstance(first, SparseColumn):
        return SparseColumn(offsets, np.concatenate([piece.coords for piece in pieces]), values)
    if isinstance(first, TemporalColumn):
        entries = join_offsets([piece.entry_offsets for piece in pieces])
        start, end = (_concat([getattr(piece, name) for piece in pieces]) for name in ("start", "end"))
        return TemporalColumn(entries, start, end, offsets, values)
    return type(first)(offsets, values)


def join_offsets(pieces: Sequence[Ints]) -> Ints:
    """Join offsets that begin at 0 each."""
    out = np.zeros(sum(piece.size - 1 for piece in pieces) + 1, np.int64)
    at = 0
    for piece in pieces:
        out[at + 1 : at + piece.size] = piece[1:] + out[at]
        at += piece.size - 1
    return out


def _concat(pieces: Sequence[Array | None]) -> Any:
    found = [piece for piece in pieces if piece is not None]
    return np.concatenate(found) if found else None


def _pick(offsets: Ints, rows: slice | Ints) -> tuple[Ints, slice | Ints]:
    """Return the offsets of some rows, and where their values lie: a slice for a slice, else int64[k]."""
    if isinstance(rows, slice):
        first, last = int(offsets[rows.start]), int(offsets[rows.stop])
        return np.asarray(offsets[rows.start : rows.stop + 1]) - first, slice(first, last)
    counts = offsets[rows + 1] - offsets[rows]
    out = np.zeros(rows.size + 1, np.int64)
    np.cumsum(counts, out=out[1:])
    return out, np.repeat(offsets[rows] - out[:-1], counts) + np.arange(out[-1])


def _numbers(key: Any, size: int) -> Ints:
    """Return the rows, from 0 on, that numbers (from the end on where negative) or a mask name. Raises IndexError."""
    keys = np.asarray(key)
    if keys.dtype == np.bool_:
        if keys.shape != (size,):
            raise IndexError(f"a mask of shape {keys.shape} for {size} rows")
        return np.flatnonzero(keys)
    if keys.ndim != 1 or (keys.size and keys.dtype.kind not in "iu"):
        raise IndexError(f"rows are named by integers, a slice or a mask, found {keys.dtype} of shape {keys.shape}")
    rows = keys.astype(np.int64)
    outside = (rows < -size) | (rows >= size)
    if outside.any():
        raise IndexError(f"row {rows[outside.argmax()]} of {size}")
    return np.where(rows < 0, rows + size, rows)


def show_column(column: Any, size: int) -> str:
    """Write a column's class, its length and its first rows, cut where they are long."""
    rows = [_cut(f"{column[row]!r}") for row in range(min(size, _MOST_SHOWN))]
    more = [f"… {size - len(rows):,} more"] if size > len(rows) else []
    count = f"{size:,} row{'' if size == 1 else 's'}"
    return f"{type(column).__name__}({', '.join([count, *rows, *more])})"


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _MOST_CHARS else text[: _MOST_CHARS - 1] + "…"
