"""Columns of a store as arrays: dense ones are arrays, the others a few arrays together. Local ones are memory maps."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.dataclass import dataclass
from graphprep.model.schema import ColumnSchema
from graphprep.storage.arrays import StoreReader

Ints = NDArray[np.int64]
Array = NDArray[Any]


@dataclass(frozen=True)
class RaggedColumn:
    """Several values a row: ``column[r]`` is ``values[offsets[r]:offsets[r + 1]]``; ``offsets``: int64[n + 1]."""

    offsets: Ints
    values: Array

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, row: int) -> Array:
        return self.values[slice(*_run(self.offsets, row))]


@dataclass(frozen=True)
class TextColumn:
    """A text a row: UTF-8 ``values[offsets[r]:offsets[r + 1]]`` (uint8, int64[n + 1]); ``column[r]`` is the str."""

    offsets: Ints
    values: NDArray[np.uint8]

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, row: int) -> str:
        return self.values[slice(*_run(self.offsets, row))].tobytes().decode(errors="replace")

    def tolist(self) -> list[str]:
        """Return all texts."""
        data, ends = self.values.tobytes(), self.offsets.tolist()
        return [data[start:stop].decode(errors="replace") for start, stop in pairwise(ends)]


@dataclass(frozen=True)
class SparseColumn:
    """Values at coordinates: row r has ``values[s]`` at ``coords[s]``, where s is ``offsets[r]:offsets[r + 1]``.

    ``offsets``: int64[n + 1]; ``coords``: int64[k, width], or int64[k] where flat; ``values``: [k]. ``column[r]`` is
    (coordinates, values).
    """

    offsets: Ints
    coords: Ints
    values: Array

    def __len__(self) -> int:
        return self.offsets.size - 1

    def __getitem__(self, row: int) -> tuple[Ints, Array]:
        run = slice(*_run(self.offsets, row))
        return self.coords[run], self.values[run]


@dataclass(frozen=True)
class TemporalColumn:
    """Dated values, several entries a row: row r has the entries ``entry_offsets[r]:entry_offsets[r + 1]``, oldest first.

    Entry e is there from ``start[e]`` on, up to ``end[e]`` (int64, -1: no end; None: no entry has one), and has
    ``values[offsets[e]:offsets[e + 1]]``. ``column[r]`` is a list of (start, end, values).
    """

    entry_offsets: Ints
    start: Ints
    end: Ints | None
    offsets: Ints
    values: Array

    def __len__(self) -> int:
        return self.entry_offsets.size - 1

    def __getitem__(self, row: int) -> list[tuple[int, int, Array]]:
        ends = self.end
        return [
            (int(self.start[e]), -1 if ends is None else int(ends[e]), self.values[self.offsets[e] : self.offsets[e + 1]])
            for e in range(*_run(self.entry_offsets, row))
        ]


Column = Array | RaggedColumn | TextColumn | SparseColumn | TemporalColumn


def map_array(store: StoreReader, part: int, path: str) -> Array:
    """Return an array of a partition: a read-only memory map of a local store, else a copy."""
    return store.array(part, path).map().view(np.ndarray)


def map_column(store: StoreReader, part: int, folder: str, column: ColumnSchema) -> Column:
    """Return a column of a partition; ``folder`` is that of its node type or edge type."""
    get = partial(_map_piece, store, part, f"{folder}/{column.path}")
    if column.kind == "dense":
        return get(".npy")
    if column.kind == "ragged":
        return RaggedColumn(get(".offsets.npy"), get(".values.npy"))
    if column.kind == "binary":
        return TextColumn(get(".offsets.npy"), get(".values.npy"))
    if column.kind == "sparse":
        return SparseColumn(get(".offsets.npy"), get(".coords.npy"), get(".values.npy"))
    end = get(".end.npy") if column.end else None
    return TemporalColumn(get(".entry_offsets.npy"), get(".start.npy"), end, get(".offsets.npy"), get(".values.npy"))


def _map_piece(store: StoreReader, part: int, stem: str, ending: str) -> Array:
    return map_array(store, part, stem + ending)


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


def _run(offsets: Ints, row: int) -> tuple[int, int]:
    """Return where a row begins and ends; negative rows count from the end. Raises IndexError."""
    size = offsets.size - 1
    if not -size <= row < size:
        raise IndexError(f"row {row} of {size}")
    row %= size
    return int(offsets[row]), int(offsets[row + 1])
