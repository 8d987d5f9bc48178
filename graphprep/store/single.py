"""A store as if it had one partition: every array is that of all partitions, one behind the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.bytes.blocks import copy_blocks
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.ids.intervals import find_intervals
from graphprep.model.metadata import ArrayEntry, PartEntry
from graphprep.store.items import StoredArray, StoredArrays

Ints = NDArray[np.int64]
Array = NDArray[Any]
_OFFSETS = ("indptr.npy", "offsets.npy")  # how the paths of offsets end: a dot in a column's name is encoded
_MOST_OPEN = 16  # parts of a joined array: each holds a file descriptor


class ConcatenatedArray:
    """Arrays of the same dtype and item shape, one behind the other. Those of local files are read through their maps.

    ``open_part`` opens one of ``num_parts``, again and again: some of them stay open.
    """

    is_local = False  # there is no one map of all

    def __init__(self, open_part: Callable[[int], StoredArray], num_parts: int, num_more: int = 0) -> None:
        """Join arrays; each ends with ``num_more`` rows that are not counted."""
        entries = [open_part(part).entry for part in range(num_parts)]
        sizes, first = [entry.shape[0] - num_more for entry in entries], open_part(0)
        self._part = lru_cache(_MOST_OPEN)(open_part)
        self._sizes = sizes
        self._borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
        self._num_more = num_more
        self.url = first.url
        self.dtype: np.dtype[Any] = first.dtype
        self.shape = (int(self._borders[-1]) + num_more, *first.shape[1:])
        self.entry = ArrayEntry(first.entry.path, first.entry.dtype, self.shape, sum(one.num_bytes for one in entries), "")

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """See ``StoredArray``."""
        start, stop, _ = slice(start, stop).indices(self.shape[0])
        out = np.empty((max(0, stop - start), *self.shape[1:]), self.dtype)
        low = min(max(0, int(np.searchsorted(self._borders, start, side="right")) - 1), len(self._sizes) - 1)
        for part in range(low, len(self._sizes)):
            first = int(self._borders[part])
            if first >= stop and part > low:
                break
            begin, end = max(start - first, 0), min(stop - first, self._sizes[part] + self._num_more)
            if begin < end:
                out[first + begin - start : first + end - start] = self._of_part(part, self._part(part).read(begin, end))
        return out

    def take(self, rows: Ints) -> Array:
        """See ``StoredArray``."""
        return self.gather(rows, rows + 1)

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """See ``StoredArray``."""
        parts, last = self._parts_of(starts), self._parts_of(np.maximum(stops - 1, starts))
        if not np.array_equal(parts, last):
            starts, stops, parts = self._cut(starts, stops, parts, last - parts + 1)
        counts = stops - starts
        ends = np.cumsum(counts)
        out = np.empty((int(ends[-1]) if ends.size else 0, *self.shape[1:]), self.dtype)
        indptr, order = group_by_key(parts, len(self._sizes))
        for part in np.flatnonzero(np.diff(indptr)).tolist():
            chosen = order[indptr[part] : indptr[part + 1]]
            first = self._borders[part]
            found = self._of_part(part, _gather(self._part(part), starts[chosen] - first, stops[chosen] - first))
            if chosen.size == starts.size:
                return found
            at = np.cumsum(counts[chosen])
            inner = np.arange(len(found)) - np.repeat(at - counts[chosen], counts[chosen])
            out[np.repeat((ends - counts)[chosen], counts[chosen]) + inner] = found
        return out

    def _cut(self, starts: Ints, stops: Ints, parts: Ints, num_parts: Ints) -> tuple[Ints, Ints, Ints]:
        """Cut runs at the borders of the parts over which they go: starts, stops and the part of each."""
        run, ends = np.repeat(np.arange(starts.size), num_parts), np.cumsum(num_parts)
        part = parts[run] + np.arange(run.size) - np.repeat(ends - num_parts, num_parts)
        high = np.where(part == parts[run] + num_parts[run] - 1, stops[run], self._borders[part + 1])
        return np.maximum(starts[run], self._borders[part]), high, part

    def map(self) -> Array:
        """Return a copy of all."""
        return self.read()

    def _parts_of(self, rows: Ints) -> Ints:
        """Return the part in which each row lies; what stands behind the last one belongs to it."""
        if not self._borders[-1]:
            return np.zeros(rows.size, np.int64)
        return np.asarray(find_intervals(np.minimum(rows, self._borders[-1] - 1), self._borders), np.int64)

    def _of_part(self, part: int, values: Array) -> Array:
        return values


class ConcatenatedOffsets(ConcatenatedArray):
    """Offsets, each from 0, as the offsets of all: int64[n + 1]."""

    def __init__(self, open_part: Callable[[int], StoredArray], num_parts: int) -> None:
        super().__init__(open_part, num_parts, num_more=1)
        totals = [int(open_part(part).read(size)[0]) for part, size in enumerate(self._sizes)]
        self._bases = np.cumsum([0, *totals], dtype=np.int64)

    def _of_part(self, part: int, values: Array) -> Array:
        return values + self._bases[part] if part else values


class SlicedArray:
    """Rows [low, high) of an array."""

    def __init__(self, array: StoredArray, low: int, high: int) -> None:
        self._array = array
        self._low = low
        self.url = array.url
        self.dtype: np.dtype[Any] = array.dtype
        self.shape: tuple[int, ...] = (high - low, *array.shape[1:])
        num_bytes = self.dtype.itemsize * int(np.prod(self.shape, dtype=np.int64))
        self.entry = ArrayEntry(array.entry.path, array.entry.dtype, self.shape, num_bytes, "")

    @property
    def is_local(self) -> bool:
        """See ``StoredArray``: a part of the map."""
        return self._array.is_local

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """See ``StoredArray``."""
        start, stop, _ = slice(start, stop).indices(self.shape[0])
        return self._array.read(self._low + start, self._low + max(start, stop))

    def take(self, rows: Ints) -> Array:
        """See ``StoredArray``."""
        return self._array.take(rows + self._low)

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """See ``StoredArray``."""
        return self._array.gather(starts + self._low, stops + self._low)

    def map(self) -> Array:
        """See ``StoredArray``."""
        return self._array.map()[self._low : self._low + self.shape[0]] if self.is_local else self.read()


class SlicedOffsets(SlicedArray):
    """Offsets of rows [low, high) of those that an array of offsets has, from 0: int64[high - low + 1]."""

    is_local = False  # they are not those of the file

    def __init__(self, array: StoredArray, low: int, high: int) -> None:
        super().__init__(array, low, high + 1)
        self._base = int(array.read(low, low + 1)[0])

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """See ``StoredArray``."""
        return super().read(start, stop) - self._base

    def take(self, rows: Ints) -> Array:
        """See ``StoredArray``."""
        return super().take(rows) - self._base

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """See ``StoredArray``."""
        return super().gather(starts, stops) - self._base


class CountingArray:
    """The numbers from 0 on, as an array that takes no room: int64[size]."""

    is_local = False

    def __init__(self, path: str, size: int) -> None:
        self.url = path
        self.dtype: np.dtype[Any] = np.dtype(np.int64)
        self.shape: tuple[int, ...] = (size,)
        self.entry = ArrayEntry(path, "int64", self.shape, 8 * size, "")

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """See ``StoredArray``."""
        return np.arange(*slice(start, stop).indices(self.shape[0])[:2], dtype=np.int64)

    def take(self, rows: Ints) -> Array:
        """See ``StoredArray``."""
        return np.array(rows, np.int64)

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """See ``StoredArray``."""
        counts = stops - starts
        inner = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return np.asarray(np.repeat(starts, counts) + inner, np.int64)

    def map(self) -> Array:
        """Return all of them."""
        return self.read()


class WholeStore:
    """A store as if it had one partition."""

    def __init__(self, store: StoredArrays) -> None:
        metadata = store.metadata
        self._store = store
        self._num_parts = metadata.num_parts
        self.metadata = replace(
            metadata,
            num_parts=1,
            num_nodes_per_chunk=tuple((size,) for size in metadata.num_nodes_per_type),
            num_edges_per_chunk=tuple((size,) for size in metadata.num_edges_per_type),
            parts=(PartEntry("", 0, ""),),
        )

    def has(self, part: int, path: str) -> bool:
        """See ``StoredArrays``."""
        return self._store.has(part, path)

    def array(self, part: int, path: str) -> StoredArray:
        """See ``StoredArrays``."""
        if self._num_parts == 1:
            return self._store.array(0, path)

        def open_part(number: int) -> StoredArray:
            return self._store.array(number, path)

        join = ConcatenatedOffsets if path.endswith(_OFFSETS) else ConcatenatedArray
        return join(open_part, self._num_parts)


def _gather(array: StoredArray, starts: Ints, stops: Ints) -> Array:
    if not array.is_local:
        return array.gather(starts, stops)
    out = np.empty((int((stops - starts).sum()), *array.shape[1:]), array.dtype)
    copy_blocks(np.asarray(array.map()), starts, stops, out)
    return out
