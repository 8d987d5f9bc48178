"""The items of stored arrays, as they lie in a partition: values, or the counts that stored offsets stand for."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError
from graphprep.model.metadata import ArrayEntry, GraphMetadata
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import VALIDATE
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.paths import expected_arrays

Ints = NDArray[np.int64]
Array = NDArray[Any]
FIX = VALIDATE
_STEP = 1 << 18  # offsets looked at at once: 2 MiB


class StoredArray(Protocol):
    """An array that is read in rows: ``ArrayReader``, and what stands for several of them."""

    url: str
    entry: ArrayEntry
    dtype: np.dtype[Any]
    shape: tuple[int, ...]

    @property
    def is_local(self) -> bool:
        """Return whether ``map`` maps a local file."""

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """Return rows [start, stop), clipped to the array, as an array of one's own."""

    def take(self, rows: Ints) -> Array:
        """Return the rows at these positions."""

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """Return many runs of rows [start, stop), one behind the other."""

    def map(self) -> Array:
        """Return the whole array: a memory map of a local file, else a copy."""


class StoredArrays(Protocol):
    """The arrays of a store: ``StoreReader``, and what stands for another arrangement of one."""

    metadata: GraphMetadata

    def has(self, part: int, path: str) -> bool:
        """Return whether the partition has an array of this path."""

    def array(self, part: int, path: str) -> StoredArray:
        """Open an array of a partition. Raises DataError where there is none of this path."""


class Items(Protocol):
    """Items in a row: ``size`` of them, each of ``item_bytes``. ``is_mapped``: to have all of them takes no memory."""

    size: int
    item_bytes: int
    is_mapped: bool

    @property
    def num_bytes(self) -> int:
        """Return the bytes of all items."""

    def read(self, start: int, stop: int) -> Array:
        """Return items [start, stop)."""

    def whole(self) -> Array:
        """Return all items."""

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """Return runs of items [start, stop), one behind the other."""

    def check_size(self, wanted: int) -> None:
        """Raise DataError where there are not ``wanted`` items."""


class StoredItems:
    """The rows of a stored array. All of a local file are a view of its memory map."""

    def __init__(self, reader: StoredArray) -> None:
        self.reader = reader
        self.size = reader.shape[0]
        self.item_bytes = reader.dtype.itemsize * int(np.prod(reader.shape[1:], dtype=np.int64))
        self.is_mapped = reader.is_local

    @property
    def num_bytes(self) -> int:
        """See ``Items``."""
        return self.size * self.item_bytes

    def read(self, start: int, stop: int) -> Array:
        """See ``Items``."""
        return self.reader.read(start, stop)

    def whole(self) -> Array:
        """See ``Items``."""
        return np.asarray(self.reader.map())

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """See ``Items``."""
        return self.reader.gather(starts, stops)

    def check_size(self, wanted: int) -> None:
        """See ``Items``."""
        if self.size != wanted:
            raise DataError(f"expected {wanted} rows, found {self.size}", place=display_url(self.reader.url), fix=FIX)


class StoredCounts:
    """The counts that stored offsets (int64[n + 1]) stand for: int64[n]."""

    def __init__(self, reader: StoredArray) -> None:
        self.reader = reader
        self.size = reader.shape[0] - 1
        self.item_bytes = 8
        self.is_mapped = False

    @property
    def num_bytes(self) -> int:
        """See ``Items``."""
        return self.size * self.item_bytes

    def read(self, start: int, stop: int) -> Array:
        """See ``Items``."""
        return self._counts(np.diff(StoredItems(self.reader).read(start, stop + 1)), start)

    def whole(self) -> Array:
        """See ``Items``."""
        return self.read(0, self.size)

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """See ``Items``."""
        found = np.diff(self.reader.gather(starts, stops + 1))
        borders = np.cumsum(stops - starts + 1)[:-1] - 1
        return self._counts(np.delete(found, borders), -1)

    def check_size(self, wanted: int) -> None:
        """See ``Items``."""
        if self.size != wanted:
            raise DataError(
                f"expected {wanted} rows and one more, found {self.size}", place=display_url(self.reader.url), fix=FIX
            )

    def _counts(self, counts: Ints, first: int) -> Ints:
        if counts.size and counts.min() < 0:
            place = display_url(self.reader.url) + (f"[{first + int(np.argmin(counts)) + 1}]" if first >= 0 else "")
            raise DataError("offsets must not descend", place=place, fix=FIX)
        return counts


def part_borders(metadata: GraphMetadata, node_type: int) -> Ints:
    """Return the borders of the partitions among a node type's IDs: int64[P + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(metadata.num_nodes_per_chunk[node_type], dtype=np.int64)])


def read_offsets(reader: StoredArray, num_items: int, scratch: Scratch) -> Ints:
    """Return stored offsets (int64[n + 1]), mapped where the file is local.

    Raises DataError where they do not go from 0 to ``num_items`` without descending.
    """
    items = StoredItems(reader)
    offsets = items.whole() if reader.is_local else scratch.zeros(items.size, np.int64)
    last = 0
    for start in range(0, items.size, _STEP):
        some = items.read(start, min(start + _STEP, items.size))
        if not reader.is_local:
            offsets[start : start + some.size] = some
        if (start == 0 and some[0] != 0) or some[0] < last or (some[1:] < some[:-1]).any():
            raise DataError("offsets must begin at 0 and not descend", place=display_url(reader.url), fix=FIX)
        last = int(some[-1])
    if last != num_items:
        raise DataError(f"expected the last offset to be {num_items}, found {last}", place=display_url(reader.url), fix=FIX)
    return offsets


def compose_offsets(bounds: Ints | None, offsets: Ints, scratch: Scratch) -> Ints:
    """Return the bounds of rows among the values of their items: int64[n + 1]; ``offsets`` are the bounds of the items."""
    if bounds is None:
        return offsets
    out = scratch.zeros(bounds.size, np.int64)
    for start in range(0, bounds.size, _STEP):
        some = slice(start, start + _STEP)
        out[some] = offsets[bounds[some]]
    return out


def check_arrays(store: StoredArrays, part: int) -> None:
    """Check that a partition has the arrays that the metadata promises.

    Raises DataError.
    """
    for path, wanted in expected_arrays(store.metadata, part).items():
        reader = store.array(part, path)
        if not wanted.agrees(reader.entry):
            found = f"{reader.entry.dtype}{list(reader.shape)}"
            raise DataError(f"expected {wanted}, by the metadata, found {found}", place=display_url(reader.url), fix=FIX)


def check_ids(items: StoredItems, first: int | None, ids: Array, limit: int | tuple[int, int], what: str = "typed ID") -> None:
    """Raise DataError where one of the IDs that stand from ``first`` on (None: that is lost) is not in ``limit``."""
    low, high = limit if isinstance(limit, tuple) else (0, limit)
    if ids.size and (int(ids.min()) < low or int(ids.max()) >= high):
        at = int(np.argmax((ids < low) | (ids >= high)))
        raise outside(items, None if first is None else first + at, int(ids[at]), limit, what)


def outside(items: StoredItems, at: int | None, found: int, limit: int | tuple[int, int], what: str = "typed ID") -> DataError:
    """Word an ID that is none; ``at`` is its position, None where that is lost; those in ``limit`` are some."""
    place = display_url(items.reader.url) + ("" if at is None else f"[{at}]")
    low, high = limit if isinstance(limit, tuple) else (0, limit)
    words = f"expected {'an' if what[0] == 'e' else 'a'} {what} in [{low}, {high}), found {found}"
    return DataError(words, place=place, fix=FIX)
