"""Records in buckets, scattered many buckets at a time: in memory while they fit, in a spill file beyond."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.model.buffers import Buffers
from graphprep.storage.faults import plain_words
from graphprep.storage.spill.runs import SpillPool, read_into
from graphprep.storage.spill.segments import SegmentFile

Records = NDArray[np.uint64]  # [n, words]
_WORD_BYTES = 8


class RecordPiece(NamedTuple):
    """Records of a bucket that are laid out alike, segment after segment: those of segment k lie in [starts[k], starts[k + 1]).

    ``bases[k]`` (int64) is to be added to their edge IDs; ``layout`` says what they are.
    """

    records: Records
    starts: NDArray[np.int64]
    bases: NDArray[np.int64]
    layout: Any

    def take(self, mask: NDArray[np.bool_]) -> RecordPiece:
        """Return some of the records."""
        counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])
        return RecordPiece(self.records[mask], counts[self.starts], self.bases, self.layout)


class BucketRange(NamedTuple):
    """Where records of some consecutive buckets lie, those of a segment side by side.

    The records of segment k begin at word ``offsets[k]`` of the buffer ``numbers[k]`` (int64 both); those of bucket b are
    [starts[k, b], starts[k, b + 1]) of these. ``bases`` (int64) go by segment: see ``RecordPiece``.
    """

    buffers: Buffers
    numbers: NDArray[np.int64]
    offsets: NDArray[np.int64]
    starts: NDArray[np.int64] | NDArray[np.uint32]
    bases: NDArray[np.int64]


@dataclass(eq=False)
class _Segment:
    """Records of all buckets, bucket after bucket: bucket b holds [offsets[b], offsets[b + 1])."""

    offsets: NDArray[np.int64] | NDArray[np.uint32]
    base: int
    layout: Hashable
    words: int
    records: Records | None
    at: int = -1  # where in the file they begin

    def is_like(self, other: _Segment) -> bool:
        """Return whether records are laid out alike."""
        return self.layout == other.layout and self.words == other.words

    def bounds(self, bucket: int) -> tuple[int, int]:
        """Return where a bucket's records lie."""
        return int(self.offsets[bucket]), int(self.offsets[bucket + 1])


class _Table(NamedTuple):
    """Segments as arrays with an entry for each; ``buffers`` has none of those that lie in the file."""

    offsets: NDArray[np.int64] | NDArray[np.uint32]
    buffers: Buffers
    places: NDArray[np.int64]
    words: NDArray[np.int64]
    bases: NDArray[np.int64]


_Part = tuple[_Segment, Records | None, int, int]  # records [start, stop) of a segment, which are in memory or not


class RecordRuns:
    """Records in buckets. Reading a bucket gives its pieces in append order.

    A segment, what is appended at a time, holds records of all buckets: with a thousand buckets, arrays for each would take
    more time than the records in them. Segments share the memory of a pool; the largest runs are spilled first.
    """

    def __init__(self, pool: SpillPool, num_buckets: int) -> None:
        """Open empty runs; with 0 buckets every segment has as many as it likes, until ``regroup``."""
        self.in_memory_bytes = 0
        self.num_buckets = num_buckets
        self.num_records = np.zeros(num_buckets, np.int64)
        self.num_ids = 0  # what edge IDs are below, where those of each segment count up from its base
        self.layouts: list[Any] = []  # of every segment
        self._pool = pool
        self._segments: list[_Segment] = []
        self._file = SegmentFile(pool.folder)
        self._table: _Table | None = None
        self._offsets: NDArray[Any] = np.zeros((0, num_buckets + 1), np.uint32)  # of all segments, once they are asked for
        self._buffers: list[NDArray[np.uint64]] = []
        with pool.lock:
            pool.runs.add(self)

    def append(self, records: Records, offsets: NDArray[Any], base: int = 0, layout: Hashable = None) -> None:
        """Add a segment; the caller gives its arrays away. Raises StorageError where spilling fails."""
        if not len(records):
            return
        narrow: NDArray[Any] = offsets.astype(np.uint32 if len(records) < 2**32 else np.int64)
        segment = _Segment(narrow, base, layout, records.shape[1], records)
        with self._pool.lock:
            self._segments.append(segment)
            self.layouts.append(layout)
            self.num_ids = max(self.num_ids, base + len(records))
            self._table = None
            if self.num_buckets:
                self.num_records += narrow[1:] - narrow[:-1]
            self.in_memory_bytes += records.nbytes
            self._pool.account(records.nbytes)

    def regroup(self, num_buckets: int, widths: Sequence[int]) -> None:
        """Let every segment have ``num_buckets`` buckets, each of ``widths[k]`` of its own ones, side by side."""
        with self._pool.lock:
            self.num_buckets = num_buckets
            self.num_records = np.zeros(num_buckets, np.int64)
            for segment, width in zip(self._segments, widths, strict=True):
                ends = np.minimum(np.arange(num_buckets + 1) * width, segment.offsets.size - 1)
                segment.offsets = segment.offsets[ends]
                borders = segment.offsets.astype(np.int64)
                self.num_records += borders[1:] - borders[:-1]
            self._table, self._offsets = None, np.zeros((0, num_buckets + 1), np.uint32)

    def segment(self, number: int) -> tuple[Records, NDArray[np.int64]]:
        """Return a segment's records and the borders of its buckets."""
        with self._pool.lock:
            segment = self._segments[number]
            records, offsets = segment.records, segment.offsets.astype(np.int64)
        if records is None:
            records = np.empty((int(offsets[-1]), segment.words), np.uint64)
            read_into(self._reader()[0], records, segment.at, str(self._file.path))
        return records, offsets

    def read(self, bucket: int, ids: tuple[int, int] | None = None, most_records: int = 1 << 62) -> Iterator[RecordPiece]:
        """Yield a bucket's pieces in append order, as often as asked: consecutive segments that are laid out alike are joined.

        ``ids`` [first, last) leaves out segments without such edge IDs, for runs whose edge IDs ascend from each ``base``.
        Segments are joined up to ``most_records``.
        """
        with self._pool.lock:
            segments, path = [(one, one.records) for one in self._segments], self._file.path
        wanted = [
            (segment, records, *segment.bounds(bucket))
            for number, (segment, records) in enumerate(segments)
            if ids is None or self._may_hold(segments, number, ids)
        ]
        filled = [one for one in wanted if one[2] < one[3]]
        with contextlib.ExitStack() as stack:
            descriptor = -1
            if path is not None and any(records is None for _, records, _, _ in filled):
                with plain_words(str(path)):
                    descriptor = stack.enter_context(path.open("rb", buffering=0)).fileno()
            for group in _alike(filled, most_records):
                yield _join(group, descriptor, str(path))

    @contextlib.contextmanager
    def bucket_range(self, first: int, stop: int) -> Iterator[BucketRange]:
        """Hold the records of buckets [first, stop) where they lie; those in the file are read."""
        with self._pool.lock:
            table = self._table = self._table or self._tabulate()
        starts, ends = table.offsets[:, first] * table.words, table.offsets[:, stop] * table.words
        numbers, offsets, sizes = np.arange(starts.size), np.zeros(starts.size, np.int64), ends - starts
        in_file = np.flatnonzero((table.places >= 0) & (sizes > 0))
        if not in_file.size:
            yield BucketRange(table.buffers, numbers, offsets, table.offsets, table.bases)
            return
        buffer = self._take_buffer(int(sizes[in_file].sum()))
        numbers[in_file] = starts.size
        offsets[in_file] = np.cumsum(sizes[in_file]) - sizes[in_file] - starts[in_file]
        self._read(table.places[in_file] + starts[in_file] * _WORD_BYTES, sizes[in_file], buffer)
        try:
            yield BucketRange(table.buffers.with_one_more(buffer), numbers, offsets, table.offsets, table.bases)
        finally:
            self._buffers.append(buffer)

    def _tabulate(self) -> _Table:
        """Note where all segments are, and let them share one array of offsets."""
        if len(self._offsets) != len(self._segments):
            every = np.array(list(map(attrgetter("offsets"), self._segments)))
            self._offsets = every.reshape(-1, self.num_buckets + 1)
            for segment, offsets in zip(self._segments, self._offsets, strict=True):
                segment.offsets = offsets
        numbers, buffers = np.empty((4, len(self._segments)), np.int64), []
        for number, one in enumerate(self._segments):
            address = 0 if one.records is None else one.records.ctypes.data
            numbers[:, number] = one.at, one.words, one.base, address
            buffers.append(one.records)
        return _Table(self._offsets, Buffers(tuple(buffers), numbers[3]), *numbers[:3])

    def _take_buffer(self, num_words: int) -> NDArray[np.uint64]:
        with contextlib.suppress(IndexError):
            buffer = self._buffers.pop()
            if buffer.size >= num_words:
                return buffer
        return np.empty(num_words, np.uint64)

    def _read(self, places: NDArray[np.int64], sizes: NDArray[np.int64], buffer: NDArray[np.uint64]) -> None:
        """Read records, one run after another: ``sizes[i]`` from the place ``places[i]`` of the file."""
        descriptor, path = self._reader()
        view, at = buffer.view(np.uint8).data, 0
        with plain_words(path):
            for place, num_bytes in zip(places.tolist(), (sizes * _WORD_BYTES).tolist(), strict=True):
                if os.preadv(descriptor, (view[at : at + num_bytes],), place) < num_bytes:  # rarely less than all at once
                    read_into(descriptor, buffer[at // _WORD_BYTES : (at + num_bytes) // _WORD_BYTES], place, path)
                at += num_bytes

    def _reader(self) -> tuple[int, str]:
        """Return the descriptor and the path of the file."""
        with self._pool.lock:
            return self._file.descriptor(), str(self._file.path)

    @staticmethod
    def _may_hold(segments: list[tuple[_Segment, Records | None]], number: int, ids: tuple[int, int]) -> bool:
        """Return whether a segment may have an edge ID in [first, last)."""
        behind = segments[number + 1][0].base if number + 1 < len(segments) else ids[1]
        return segments[number][0].base < ids[1] and behind > ids[0]

    def spill(self) -> None:
        """Write the oldest segments in memory to the file, a good part of them: little by little, memory is used again."""
        self._write(max(self.in_memory_bytes // 4, self._pool.cap_bytes // 8))

    def _write(self, least_bytes: int) -> None:
        """Write the oldest segments in memory, so many bytes of them."""
        before, freed = self._file.num_bytes, 0
        written: list[tuple[_Segment, int]] = []
        with self._file.appending() as file:  # a failure leaves everything in memory
            for segment in self._segments:
                if segment.records is not None and freed < least_bytes:
                    written.append((segment, file.num_bytes))
                    file.write(segment.records)
                    freed += segment.records.nbytes
        for segment, at in written:
            segment.at, segment.records = at, None
        self._table = None
        self._pool.spilled_bytes += self._file.num_bytes - before
        self._pool.in_memory_bytes -= freed
        self.in_memory_bytes -= freed

    def close(self) -> None:
        """Drop everything."""
        with self._pool.lock:
            self._pool.runs.discard(self)
            self._pool.in_memory_bytes -= self.in_memory_bytes
            self.in_memory_bytes = 0
            self._segments, self._table, self._buffers = [], None, []
            self._offsets = self._offsets[:0]
            self.num_records = np.zeros(self.num_records.size, np.int64)
            self._file.drop()

    def __getstate__(self) -> dict[str, Any]:
        """Return what these runs are known by once all records lie in their file."""
        with self._pool.lock:
            if self.in_memory_bytes:
                self._write(self.in_memory_bytes)
            none = np.zeros((0, self.num_buckets + 1), np.uint32)
            return self.__dict__ | {"_file": self._file.segment, "_table": None, "_offsets": none, "_buffers": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the file. Raises what ``SegmentFile.open`` raises."""
        self.__dict__ |= state
        self._file = SegmentFile.open(self._pool.folder, state["_file"])
        with self._pool.lock:
            self._pool.runs.add(self)


def _alike(parts: list[_Part], most_records: int) -> Iterator[list[_Part]]:
    """Yield consecutive parts of segments that are laid out alike, of up to ``most_records`` together."""
    group: list[_Part] = []
    size = 0
    for part in parts:
        segment, _, start, stop = part
        if group and (not group[0][0].is_like(segment) or size + stop - start > most_records):
            yield group
            group, size = [], 0
        group.append(part)
        size += stop - start
    if group:
        yield group


def _join(parts: list[_Part], descriptor: int, path: str) -> RecordPiece:
    """Put the records [start, stop) of segments that are laid out alike one after another; a single one is not copied."""
    first, records, start, stop = parts[0]
    bases = np.array([segment.base for segment, *_ in parts], np.int64)
    starts = np.cumsum([0, *(stop - start for _, _, start, stop in parts)])
    if len(parts) == 1 and records is not None:
        return RecordPiece(records[start:stop], starts, bases, first.layout)
    joined = np.empty((int(starts[-1]), first.words), np.uint64)
    if all(part[1] is not None for part in parts):  # one call for all: threads wait for each other between calls
        np.concatenate([records[start:stop] for _, records, start, stop in parts if records is not None], out=joined)
        return RecordPiece(joined, starts, bases, first.layout)
    record_bytes = _WORD_BYTES * first.words
    view = joined.reshape(-1).view(np.uint8).data
    at = 0
    with plain_words(path):
        for segment, records, start, stop in parts:
            behind = at + stop - start
            if records is not None:
                joined[at:behind] = records[start:stop]
            else:
                offset, wanted = segment.at + start * record_bytes, view[at * record_bytes : behind * record_bytes]
                if os.preadv(descriptor, (wanted,), offset) < len(wanted):  # rarely less than all at once
                    read_into(descriptor, joined[at:behind], offset, path)
            at = behind
    return RecordPiece(joined, starts, bases, first.layout)
