"""Columns of two stores, matched by name, and a hash for the cell of every row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.kernels.cpu.ids.sums import Hashes, mix_hashes
from graphprep.kernels.cpu.text.texts import hash_texts
from graphprep.model.rows import RawTexts
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.stored import read_cells, read_present
from graphprep.store.items import StoredArrays
from graphprep.store.paths import ColumnPaths, num_slots_path

Ints = NDArray[np.int64]
_SHOWN = 60  # characters of a value
_NUM_SLOTS = ColumnSchema("num_slots", "dense", "int32")


@dataclass(frozen=True)
class HashedColumn:
    """A column of a type whose arrays lie in ``folder`` of a partition; cells are hashed as ``dtype``."""

    column: ColumnSchema
    folder: str
    dtype: str

    @property
    def name(self) -> str:
        """Return the column's name."""
        return self.column.name

    @cached_property
    def stem(self) -> str:
        """Return the path that its files share."""
        if self.column is _NUM_SLOTS:
            return num_slots_path(self.folder).removesuffix(".npy")
        return f"{self.folder}/{self.column.path}"

    @property
    def rows_path(self) -> str:
        """Return the path of the array that has a row of the column, or its borders, at each row."""
        paths = {"dense": f"{self.stem}.npy", "temporal": ColumnPaths(self.stem).entry_offsets}
        return paths.get(self.column.kind, ColumnPaths(self.stem).offsets)

    @cached_property
    def _categories(self) -> Hashes | None:
        if self.column.categories is None:
            return None
        names = RawTexts.of([name.encode() for name in self.column.categories])
        return np.asarray(hash_texts(names.offsets, names.values))

    def hash_rows(
        self, store: StoredArrays, part: int, low: int, high: int, most_bytes: int
    ) -> tuple[Hashes, NDArray[np.bool_] | None]:
        """Return the hashes of the cells of rows [low, high), and which rows have one (None: all).

        Values are read ``most_bytes`` at a time, or a row.
        """
        found = [
            self._hash(read_cells(store, part, self.stem, self.column, *some))
            for some in self._slices(store, part, low, high, most_bytes)
        ]
        return np.concatenate([np.zeros(0, np.uint64), *found]), read_present(store, part, self.stem, self.column, low, high)

    def show(self, store: StoredArrays, part: int, row: int) -> str:
        """Return the cell of a row as messages show it."""
        present = read_present(store, part, self.stem, self.column, row, row + 1)
        if present is not None and not present[0]:
            return "absent"
        cells = read_cells(store, part, self.stem, self.column, row, row + 1)
        if self.column.kind == "binary":
            text = repr(cells.values.tobytes().decode(errors="replace"))
        elif self.column.kind == "dense" and not self.column.item_shape:
            value = cells.flat[0]
            names = self.column.categories
            text = repr(names[int(value)]) if names is not None and 0 <= value < len(names) else str(value)
        else:
            parts = [some.tolist() for some in (cells.start, cells.end, cells.coords, cells.flat) if some is not None]
            text = " ".join(map(str, parts))
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"

    def _slices(self, store: StoredArrays, part: int, low: int, high: int, most_bytes: int) -> Iterator[tuple[int, int]]:
        if low >= high:
            return
        if high - low == 1 or self._num_bytes(store, part, low, high) <= most_bytes:
            yield low, high
            return
        middle = (low + high) // 2
        yield from self._slices(store, part, low, middle, most_bytes)
        yield from self._slices(store, part, middle, high, most_bytes)

    def _num_bytes(self, store: StoredArrays, part: int, low: int, high: int) -> int:
        size = np.dtype(self.column.dtype).itemsize
        if self.column.kind == "dense":
            return (high - low) * size * prod(self.column.item_shape)
        paths, items = ColumnPaths(self.stem), 0
        if self.column.kind == "temporal":
            low, high = _borders(store, part, paths.entry_offsets, low, high)
            items = 16 * (high - low)
        elif self.column.kind == "sparse":
            size += 8 * prod(self.column.item_shape)
        first, last = _borders(store, part, paths.offsets, low, high)
        return items + size * (last - first)

    def _hash(self, cells: Cells) -> Hashes:
        if self._categories is not None:
            codes = cells.flat.astype(np.int64)
            known = (codes >= 0) & (codes < self._categories.size)
            return (
                np.where(known, self._categories[np.where(known, codes, 0)], hash_ints(codes))
                if self._categories.size
                else np.asarray(hash_ints(codes))
            )
        values = cells.flat.astype(self.dtype, copy=False)
        found = _hash_lists(cells.value_counts, values)
        if cells.coords is not None:
            width = cells.coords.size // max(1, values.size)
            found = mix_hashes(found, _hash_lists(width * cells.item_counts, cells.coords))
        if cells.entry_counts is not None and cells.start is not None and cells.end is not None:
            for items in (cells.start, cells.end, cells.item_counts):
                found = mix_hashes(found, _hash_lists(cells.entry_counts, items))
        return found


def _borders(store: StoredArrays, part: int, path: str, low: int, high: int) -> tuple[int, int]:
    offsets = store.array(part, path)
    return int(offsets.read(low, low + 1)[0]), int(offsets.read(high, high + 1)[0])


def _hash_lists(counts: Ints, values: NDArray[Any]) -> Hashes:
    """Return a hash of every row's values: uint64[k]; ``counts`` (int64[k]) are how many there are."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts * values.itemsize, out=offsets[1:])
    return np.asarray(hash_texts(offsets, np.ascontiguousarray(values).view(np.uint8)))


def match_columns(
    folder: str, these: Sequence[ColumnSchema], those: Sequence[ColumnSchema], *, num_slots: tuple[bool, bool]
) -> tuple[list[tuple[HashedColumn, HashedColumn]], list[str]]:
    """Match the columns of a type in the store and in the input by name.

    Returns those whose cells can be compared, and what is to be said of the others. ``num_slots``: which have them.
    """
    here, there = ({one.name: one for one in some} for some in (these, those))
    here, there = (
        some | ({"num_slots": _NUM_SLOTS} if has else {}) for some, has in zip((here, there), num_slots, strict=True)
    )
    words = [f"column {name!r} is not in the input" for name in here if name not in there]
    words += [f"column {name!r} of the input is not in the store" for name in there if name not in here]
    pairs = []
    for name, own in here.items():
        other = there.get(name)
        if other is None:
            continue
        said = _difference(own, other)
        if said is not None:
            words.append(f"column {name!r} {said}")
        dtype = _common_dtype(own, other)
        if dtype is not None:
            pairs.append((HashedColumn(own, folder, dtype), HashedColumn(other, folder, dtype)))
    return pairs, words


def _difference(own: ColumnSchema, other: ColumnSchema) -> str | None:
    """Say in what two columns of one name differ as a whole; None: in nothing."""
    if (own.kind, own.item_shape) != (other.kind, other.item_shape):
        return f"is {_kind_words(own)}, in the input {_kind_words(other)}"
    for what in ("dtype", "role", "unit", "slot"):
        mine, its = getattr(own, what), getattr(other, what)
        if mine != its:
            return f"has {what} {mine or 'none'}, in the input {its or 'none'}"
    if own.categories != other.categories:
        return _category_words(own.categories, other.categories)
    return None


def _kind_words(column: ColumnSchema) -> str:
    shape = f" of shape {list(column.item_shape)}" if column.item_shape else ""
    return f"{column.kind}{shape}"


def _category_words(own: tuple[str, ...] | None, other: tuple[str, ...] | None) -> str:
    if own is None or other is None:
        return "has no categories, in the input it has" if own is None else "has categories, in the input none"
    lost = [name for name in other if name not in set(own)]
    if lost:
        return f"lacks the category {lost[0]!r} of the input"
    more = [name for name in own if name not in set(other)]
    return f"has the category {more[0]!r}, which the input lacks" if more else "has its categories in another order"


def _common_dtype(own: ColumnSchema, other: ColumnSchema) -> str | None:
    """Return the dtype in which cells of two columns can be compared; None where they cannot."""
    if (own.kind, own.item_shape, own.unit) != (other.kind, other.item_shape, other.unit):
        return None
    if (own.categories is None) != (other.categories is None):
        return None
    return np.result_type(own.dtype, other.dtype).name
