"""Records in buckets, dealt out many buckets at a time: in memory while they fit, in a spill file beyond."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.storage.faults import plain_words
from graphprep.storage.runs import SpillPool, read_into

Records = NDArray[Any]  # uint32[n, words] or uint64[n, words]
_TMP_DIR = "--tmp-dir"  # the option that chooses the folder


@dataclass(frozen=True)
class Piece:
    """The records of a bucket that came together. ``base`` is to be added to their edge IDs, ``tag`` says what they carry."""

    records: Records
    base: int
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

    def bounds(self, bucket: int) -> tuple[int, int]:
        """Return where a bucket's records lie."""
        return int(self.offsets[bucket]), int(self.offsets[bucket + 1])


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

    def read(self, bucket: int, ids: tuple[int, int] | None = None) -> Iterator[Piece]:
        """Yield a bucket's pieces in append order, as often as asked.

        ``ids`` [first, last) leaves out segments without such edge IDs, for runs whose edge IDs ascend from each ``base``.
        """
        with self._pool.lock:
            segments, path = [(one, one.records) for one in self._segments], self._path
        with contextlib.ExitStack() as stack:
            descriptor = -1
            for number, (segment, records) in enumerate(segments):
                start, stop = segment.bounds(bucket)
                if start == stop or (ids is not None and not self._may_hold(segments, number, ids)):
                    continue
                if records is not None:
                    yield Piece(records[start:stop], segment.base, segment.tag)
                    continue
                assert path is not None
                if descriptor < 0:
                    with plain_words(str(path)):
                        descriptor = stack.enter_context(path.open("rb", buffering=0)).fileno()
                some = np.empty((stop - start, segment.words), segment.dtype)
                read_into(descriptor, some, segment.at + start * some.itemsize * segment.words, str(path))
                yield Piece(some, segment.base, segment.tag)

    @staticmethod
    def _may_hold(segments: list[tuple[_Segment, Records | None]], number: int, ids: tuple[int, int]) -> bool:
        """Return whether a segment may have an edge ID in [first, last)."""
        behind = segments[number + 1][0].base if number + 1 < len(segments) else ids[1]
        return segments[number][0].base < ids[1] and behind > ids[0]

    def spill(self) -> None:
        """Write all segments in memory to the file."""
        if self._path is None:
            self._path = self._pool.new_file()
        offset = self._file_bytes
        written: list[tuple[_Segment, int]] = []
        # A failure leaves the bytes behind offset unnamed, and everything in memory.
        with plain_words(str(self._path.parent), _TMP_DIR), self._path.open("ab", buffering=0) as file:
            file.truncate(offset)
            for segment in self._segments:
                if segment.records is not None:
                    written.append((segment, offset))
                    offset += _write_all(file, segment.records)
        for segment, at in written:
            segment.at, segment.records = at, None
        self._pool.spilled_bytes += offset - self._file_bytes
        self._file_bytes = offset
        self._pool.in_memory_bytes -= self.in_memory_bytes
        self.in_memory_bytes = 0

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


def _write_all(file: Any, records: Records) -> int:
    view = records.reshape(-1).view(np.uint8).data
    done = 0
    while done < len(view):  # one call takes at most 2 GiB
        done += file.write(view[done:])
    return done
