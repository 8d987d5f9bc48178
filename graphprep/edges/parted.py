"""Arrays that lie cut into partitions: pieces come in order, and go to the partition whose turn it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.model.metadata import ArrayEntry, part_name

if TYPE_CHECKING:
    from graphprep.storage.write.publish import ArrayWriter, StoreWriter

Ints = NDArray[np.int64]


class PartList:
    """Where the arrays of all partitions are written, and the manifest entries of those that are complete."""

    def __init__(self, writer: StoreWriter, num_parts: int) -> None:
        self.writer = writer
        self.num_parts = num_parts
        self.entries: list[list[ArrayEntry]] = [[] for _ in range(num_parts)]

    def open(self, part: int, path: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> ArrayWriter:
        """Begin an array of a partition."""
        return self.writer.open_array(part_name(part, self.num_parts), path, dtype, shape)


class PartedArray:
    """One array in every partition; ``sizes`` (int64[P]) are the lengths of the first axis."""

    def __init__(
        self, parts: PartList, path: str, dtype: np.dtype[np.generic] | str, sizes: Ints, item_shape: tuple[int, ...] = ()
    ) -> None:
        self._parts = parts
        self._path = path
        self._dtype = np.dtype(dtype)
        self._sizes = sizes
        self._item_shape = item_shape
        self._part = -1
        self._left = 0
        self._array: ArrayWriter | None = None
        self._advance()

    def _advance(self) -> None:
        """Close the partitions that are full and open the next that is not."""
        while self._left == 0:
            if self._array is not None:
                self._parts.entries[self._part].append(self._array.close())
                self._array = None
            self._part += 1
            if self._part >= self._sizes.size:
                return
            self._left = int(self._sizes[self._part])
            shape = (self._left, *self._item_shape)
            self._array = self._parts.open(self._part, self._path, self._dtype, shape)

    def append(self, values: NDArray[np.generic]) -> None:
        """Write the next values; the first axis counts."""
        at = 0
        while at < len(values):
            assert self._array is not None, "more values than the partitions hold"
            size = min(self._left, len(values) - at)
            self._array.append(np.ascontiguousarray(values[at : at + size], self._dtype))
            self._left -= size
            at += size
            self._advance()

    def close(self) -> None:
        """Check that every partition is complete."""
        assert self._part >= self._sizes.size, f"{self._path}: values are missing"


class PartedOffsets:
    """Offsets (``indptr`` and the like) in every partition: int64[n + 1], from 0 in each; ``sizes`` (int64[P]) are the n."""

    def __init__(self, parts: PartList, path: str, sizes: Ints) -> None:
        self._array = PartedArray(parts, path, np.dtype(np.int64), sizes + 1)
        self._sizes = sizes
        self._part = 0
        self._left = int(sizes[0])
        self._total = 0
        self._array.append(np.zeros(1, np.int64))
        self._skip_full()

    def _skip_full(self) -> None:
        while self._left == 0 and self._part + 1 < self._sizes.size:
            self._part += 1
            self._left = int(self._sizes[self._part])
            self._total = 0
            self._array.append(np.zeros(1, np.int64))

    def append(self, counts: Ints) -> None:
        """Write the offsets behind the next rows; ``counts`` are their lengths."""
        at = 0
        while at < counts.size:
            size = min(self._left, counts.size - at)
            assert size > 0, "more rows than the partitions hold"
            offsets = np.cumsum(counts[at : at + size]) + self._total
            self._array.append(offsets)
            self._total = int(offsets[-1])
            self._left -= size
            at += size
            self._skip_full()

    def close(self) -> None:
        """Check that every partition is complete."""
        self._array.close()
