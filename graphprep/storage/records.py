"""Records in buckets, dealt out many buckets at a time: in memory while they fit, in a spill file beyond."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.storage.faults import plain_words
from graphprep.storage.private import TMP_DIR_OPTION
from graphprep.storage.runs import SpillPool, read_into

Records = NDArray[Any]  # uint32[n, words] or uint64[n, words]


@dataclass(frozen=True)
class Piece:
    """Records of a bucket that are laid out alike, segment after segment: those of segment k lie in [starts[k], starts[k + 1]).

    ``bases[k]`` (int64) is to be added to their edge IDs; ``tag`` says what they are.
    """

    records: Records
    starts: NDArray[np.int64]
    bases: NDArray[np.int64]
    tag: int


@dataclass
class _Segment:
    """Records of all buckets, bucket after bucket: bucket b holds [offsets[b], offsets[b + 1])."""

    offsets: NDArray[np.int64] | NDArray[np.uint32]
    base: int
    tag: int
    dtype: np.dtype[Any]
    words: int
    records: Records | None
    at: int = -1  # where in the file they begin

    @property
    def layout(self) -> tuple[int, str, int]:
        """Say how records are laid out: tag, dtype, words."""
        return self.tag, self.dtype.str, self.words

    def bounds(self, bucket: int) -> tuple[int, int]:
        """Return where a bucket's records lie."""
        return int(self.offsets[bucket]), int(self.offsets[bucket + 1])


_Part = tuple[_Segment, Records | None, int, int]  # records [start, stop) of a segment, which are in memory or not


class RecordRuns:
    """Records in buckets. Reading a bucket gives its pieces in append order.

    A segment, what is appended at a time, holds records of all buckets: with a thousand buckets, arrays for each would take
    more time than the records in them. Segments share the memory of a pool; the largest runs are spilled first.
    """

    def __init__(self, pool: SpillPool, num_buckets: int) -> None:
        self.in_memory_bytes = 0
        self.num_records = np.zeros(num_buckets, np.int64)
        self._pool = pool
        self._segments: list[_Segment] = []
        self._path: Path | None = None
        self._file_bytes = 0
        pool.join(self)

    @property
    def num_buckets(self) -> int:
        """Return the number of buckets."""
        return self.num_records.size

    def append(self, records: Records, offsets: NDArray[np.int64], base: int = 0, tag: int = 0) -> None:
        """Add a segment; the caller gives its arrays away. Raises StorageError where spilling fails."""
        if not len(records):
            return
        narrow = offsets.astype(np.uint32) if len(records) < 2**32 else offsets
        segment = _Segment(narrow, base, tag, records.dtype, records.shape[1], records)
        with self._pool.lock:
            self._segments.append(segment)
            self.num_records += np.diff(offsets)
            self.in_memory_bytes += records.nbytes
            self._pool.account(records.nbytes)

    def read(self, bucket: int, ids: tuple[int, int] | None = None, most_records: int = 1 << 62) -> Iterator[Piece]:
        """Yield a bucket's pieces in append order, as often as asked: consecutive segments that are laid out alike are joined.

        ``ids`` [first, last) leaves out segments without such edge IDs, for runs whose edge IDs ascend from each ``base``.
        Segments are joined up to ``most_records``.
        """
        with self._pool.lock:
            segments, path = [(one, one.records) for one in self._segments], self._path
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

    @staticmethod
    def _may_hold(segments: list[tuple[_Segment, Records | None]], number: int, ids: tuple[int, int]) -> bool:
        """Return whether a segment may have an edge ID in [first, last)."""
        behind = segments[number + 1][0].base if number + 1 < len(segments) else ids[1]
        return segments[number][0].base < ids[1] and behind > ids[0]

    def spill(self) -> None:
        """Write the oldest segments in memory to the file, a good part of them: little by little, memory is used again."""
        if self._path is None:
            self._path = self._pool.new_file()
        least = max(self.in_memory_bytes // 4, self._pool.cap_bytes // 8)
        offset, freed = self._file_bytes, 0
        written: list[tuple[_Segment, int]] = []
        # A failure leaves the bytes behind offset unnamed, and everything in memory.
        with plain_words(str(self._path.parent), TMP_DIR_OPTION), self._path.open("ab", buffering=0) as file:
            file.truncate(offset)
            for segment in self._segments:
                if segment.records is not None and freed < least:
                    written.append((segment, offset))
                    offset += _write_all(file, segment.records)
                    freed += segment.records.nbytes
        for segment, at in written:
            segment.at, segment.records = at, None
        self._pool.spilled_bytes += offset - self._file_bytes
        self._file_bytes = offset
        self._pool.in_memory_bytes -= freed
        self.in_memory_bytes -= freed

    def close(self) -> None:
        """Drop everything."""
        with self._pool.lock:
            self._pool.leave(self)
            self._pool.in_memory_bytes -= self.in_memory_bytes
            self.in_memory_bytes = 0
            self._segments = []
            self.num_records = np.zeros(self.num_records.size, np.int64)
            path, self._path, self._file_bytes = self._path, None, 0
            if path is not None:
                with contextlib.suppress(OSError):
                    path.unlink()


def _alike(parts: list[_Part], most_records: int) -> Iterator[list[_Part]]:
    """Yield consecutive parts of segments that are laid out alike, of up to ``most_records`` together."""
    group: list[_Part] = []
    size = 0
    for part in parts:
        segment, _, start, stop = part
        if group and (group[0][0].layout != segment.layout or size + stop - start > most_records):
            yield group
            group, size = [], 0
        group.append(part)
        size += stop - start
    if group:
        yield group


def _join(parts: list[_Part], descriptor: int, path: str) -> Piece:
    """Put the records [start, stop) of segments that are laid out alike one after another; a single one is not copied."""
    first, records, start, stop = parts[0]
    bases = np.array([segment.base for segment, *_ in parts], np.int64)
    starts = np.cumsum([0, *(stop - start for _, _, start, stop in parts)])
    if len(parts) == 1 and records is not None:
        return Piece(records[start:stop], starts, bases, first.tag)
    joined = np.empty((int(starts[-1]), first.words), first.dtype)
    if all(part[1] is not None for part in parts):  # one call for all: threads wait for each other between calls
        np.concatenate([records[start:stop] for _, records, start, stop in parts if records is not None], out=joined)
        return Piece(joined, starts, bases, first.tag)
    record_bytes = joined.itemsize * first.words
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
    return Piece(joined, starts, bases, first.tag)


def _write_all(file: Any, records: Records) -> int:
    view = records.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(view):  # one call takes at most 2 GiB
        done += file.write(view[done:])
    return done
