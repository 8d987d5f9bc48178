"""The raw IDs of a partition that are texts: by position, and by search, without reading all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.search import copy_ranges, find_texts, rank_texts
from graphprep.kernels.cpu.text.texts import take_texts
from graphprep.model.errors import DataError
from graphprep.model.rows import RawTexts
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import ArrayReader
from graphprep.store.items import FIX, StoredArray

Ints = NDArray[np.int64]

_BLOCK_ROWS = 1 << 10  # of a remote array: with names of 25 bytes, about what a request costs anyway
_SCAN_ROWS = 1 << 17
_MOST_BYTES = 16 << 20  # of texts held at a time
_FAN_OUT = 16  # ways that a search in a remote array takes at each level
_BATCH_BLOCKS = 64  # looked into at a time
_SEARCH_BYTES = 2 << 20  # of reading in a row take as long as to search for one text; where all take less, all are read


class TextSource:
    """Texts in two stored arrays: a local file is mapped, of a remote one only blocks are read. Those searched for ascend."""

    def __init__(self, offsets: StoredArray, values: StoredArray, *, is_local: bool) -> None:
        self._offsets = offsets
        self._values = values
        self._is_local = is_local
        self.size = offsets.shape[0] - 1

    def take(self, rows: Ints) -> RawTexts:
        """Return the texts at ``rows`` (any order)."""
        starts, stops = self._offsets.take(rows), self._offsets.take(rows + 1)
        self._check(starts, stops)
        if self._is_local:
            return RawTexts(*copy_ranges(self._values.map(), starts, stops))
        offsets = np.zeros(rows.size + 1, np.int64)
        np.cumsum(stops - starts, out=offsets[1:])
        return RawTexts(offsets, self._values.gather(starts, stops))

    def find(self, wanted: RawTexts) -> Ints:
        """Return the position of each wanted text (ascending), -1 where it is not there."""
        if self._is_local:
            if isinstance(self._offsets, ArrayReader):
                self._offsets.check_all()  # the kernel follows them
            return _find(RawTexts(self._offsets.map(), self._values.map()), wanted)
        if wanted.size * _SEARCH_BYTES > self._offsets.entry.num_bytes + self._values.entry.num_bytes:
            return self._find_by_scan(wanted)
        return self._find_by_search(wanted, -(-self.size // _BLOCK_ROWS))

    def _find_by_scan(self, wanted: RawTexts) -> Ints:
        """Find texts so many that nearly every block holds one: read all of them once."""
        out = np.full(wanted.size, -1, np.int64)
        done = 0
        for start, held in self.pieces(0, self.size):
            if done == wanted.size:
                break
            stop = done + int(_rank(slice_texts(wanted, done, wanted.size), slice_texts(held, held.size - 1, held.size))[0])
            at = _find(held, slice_texts(wanted, done, stop))
            out[done:stop] = np.where(at >= 0, at + start, -1)
            done = stop
        return out

    def _find_by_search(self, wanted: RawTexts, num_blocks: int) -> Ints:
        """Find a few texts: narrow down the blocks [low, high) where each must be, then read those."""
        out = np.full(wanted.size, -1, np.int64)
        low, high = np.zeros(wanted.size, np.int64), np.full(wanted.size, num_blocks, np.int64)
        while (wide := np.flatnonzero(high - low > 1)).size:
            probes = _probes(low[wide], high[wide])
            at = _rank(self.take(probes * _BLOCK_ROWS), take_rows(wanted, wide))
            fences = np.concatenate([[0], probes, [num_blocks]])
            low[wide] = np.maximum(low[wide], fences[at])
            high[wide] = np.minimum(high[wide], fences[at + 1])
        blocks = np.unique(low)
        for i in range(0, blocks.size, _BATCH_BLOCKS):
            batch = blocks[i : i + _BATCH_BLOCKS]
            first, last = np.searchsorted(low, [batch[0], batch[-1] + 1]).tolist()
            for rows, held in self._blocks(batch):
                at = _find(held, slice_texts(wanted, first, last))
                out[first:last] = np.where(at >= 0, rows[at], out[first:last])
        return out

    def _blocks(self, numbers: Ints) -> Iterator[tuple[Ints, RawTexts]]:
        """Yield the texts of blocks (ascending), and their rows, in pieces of a bounded number of bytes."""
        starts, stops = numbers * _BLOCK_ROWS, np.minimum((numbers + 1) * _BLOCK_ROWS, self.size)
        rows = np.concatenate([np.arange(start, stop) for start, stop in zip(starts, stops, strict=True)])
        offsets = self._offsets.gather(starts, stops + 1)  # with one entry more a block than it has rows
        inner = np.arange(rows.size) + np.repeat(np.arange(numbers.size), stops - starts)
        begins, ends = offsets[inner], offsets[inner + 1]
        self._check(begins, ends)
        sizes = np.concatenate([[0], np.cumsum(ends - begins)])
        at = 0
        while at < rows.size:
            end = max(int(np.searchsorted(sizes, sizes[at] + _MOST_BYTES, side="right")) - 1, at + 1)
            runs = np.flatnonzero(np.diff(rows[at:end], prepend=-2, append=self.size + 2) != 1)
            values = self._values.gather(begins[at:end][runs[:-1]], ends[at:end][runs[1:] - 1])
            yield rows[at:end], RawTexts(sizes[at : end + 1] - sizes[at], values)
            at = end

    def pieces(self, start: int, stop: int) -> Iterator[tuple[int, RawTexts]]:
        """Yield the texts [start, stop) in pieces of a bounded number of bytes, each with its first row."""
        for low in range(start, stop, _SCAN_ROWS):
            offsets = self._offsets.read(low, min(low + _SCAN_ROWS, stop) + 1)
            self._check(offsets[:-1], offsets[1:])
            at = 0
            while at < offsets.size - 1:
                end = int(np.searchsorted(offsets, offsets[at] + _MOST_BYTES, side="right")) - 1
                end = max(end, at + 1)
                values = self._values.read(int(offsets[at]), int(offsets[end]))
                yield low + at, RawTexts(offsets[at : end + 1] - offsets[at], values)
                at = end

    def _check(self, starts: Ints, stops: Ints) -> None:
        """Raise DataError where texts do not lie among the values, before a kernel or pyarrow follows their offsets."""
        if starts.size and (starts.min() < 0 or (stops < starts).any() or stops.max() > self._values.shape[0]):
            place, most = display_url(self._offsets.url), self._values.shape[0]
            raise DataError(f"offsets must not descend, nor go beyond {most}, the number of values", place=place, fix=FIX)


def take_rows(texts: RawTexts, rows: Ints) -> RawTexts:
    """Return chosen texts, in the order of ``rows``."""
    return RawTexts(*take_texts(texts.offsets, texts.values, rows))


def slice_texts(texts: RawTexts, start: int, stop: int) -> RawTexts:
    """Return the texts [start, stop)."""
    offsets = texts.offsets[start : stop + 1]
    return RawTexts(offsets - offsets[0], texts.values[offsets[0] : offsets[-1]])


def _find(held: RawTexts, wanted: RawTexts) -> Ints:
    found: Ints = find_texts(held.offsets, held.values, wanted.offsets, wanted.values)
    return found


def _rank(held: RawTexts, wanted: RawTexts) -> Ints:
    ranks: Ints = rank_texts(held.offsets, held.values, wanted.offsets, wanted.values)
    return ranks


def _probes(low: Ints, high: Ints) -> Ints:
    """Return blocks at which to look, ascending: some inside of each range [low, high)."""
    steps = np.arange(1, _FAN_OUT)
    probes = low[:, None] + (high - low)[:, None] * steps // _FAN_OUT
    return np.unique(probes[(probes > low[:, None]) & (probes < high[:, None])])
