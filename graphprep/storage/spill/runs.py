"""Runs: chunks of arrays in append order, in memory while they fit and in spill files beyond."""

from __future__ import annotations

import itertools
import os
import threading
from array import array as packed
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.storage.faults import plain_words
from graphprep.storage.spill.segments import Appender, SegmentFile, SegmentFolder, TemporaryFolder

Chunk = TypeVar("Chunk", bound=Iterable[Any])
_Arrays = tuple[Any, ...]  # of a chunk
_Layout = tuple[tuple[str, tuple[int, ...]] | None, ...]
_Extent = tuple[_Layout, int, Sequence[int]]  # its layout, where it begins, and the lengths of the arrays that are there

_ARRAY_BYTES = 128  # what an array takes beside its data; with many small chunks that is most of it
_EXTENT_BYTES = 8 << 20  # small chunks are joined up to here, so that what a reader gets stays bounded
_LEAST_EXTENT_BYTES = 256 << 10
_EXTENT_SHARE = 8  # of the pool: readers make several times an extent of it


class _Extents:
    """Where a bucket's chunks lie in the spill file, in append order.

    Each is a few numbers: its layout's, the offset of its first array (the others lie behind it), and the lengths of all that
    are there. With hundreds of edge types there are hundreds of thousands of extents, of some hundred bytes of data each; with
    thousands of columns an extent has as many arrays, and four times as many that are not there.
    """

    def __init__(self) -> None:
        self._numbers = packed("q")
        self.count = 0

    def add(self, layout: int, offset: int, lengths: Sequence[int]) -> None:
        """Add an extent."""
        self._numbers.extend((layout, offset, *lengths))
        self.count += 1

    def extend(self, other: _Extents) -> None:
        """Add all of another's extents."""
        self._numbers.extend(other._numbers)
        self.count += other.count

    def read(self, layouts: list[_Layout]) -> Iterator[_Extent]:
        """Yield (layout, offset, lengths) of the extents that are there now."""
        at, numbers = 0, self._numbers[:]
        while at < len(numbers):
            layout = layouts[numbers[at]]
            stop = at + 2 + sum(kind is not None for kind in layout)
            yield layout, numbers[at + 1], numbers[at + 2 : stop]
            at = stop


class Spillable(Protocol):
    """What shares a pool's memory, and can be told to free its own."""

    in_memory_bytes: int

    def spill(self) -> None:
        """Write what is in memory to a file; ``pool.lock`` is held."""

    def close(self) -> None:
        """Drop everything."""


class SpillPool:
    """Memory that ``Runs`` share: at most about ``cap_bytes`` of it, what goes beyond lies in files.

    The files stand in ``folder``; a path (None: the system's place for temporary files) is where one for this run alone is made
    when it is first needed, and removed on leaving the context. ``runs`` are those that share it; who adds or removes one holds
    ``lock``.
    """

    def __init__(self, cap_bytes: int, folder: str | SegmentFolder | None = None) -> None:
        self.cap_bytes = cap_bytes
        self.folder = TemporaryFolder(folder) if folder is None or isinstance(folder, str) else folder
        self.in_memory_bytes = 0
        self.spilled_bytes = 0
        self.runs: set[Spillable] = set()
        self.lock = threading.RLock()

    def __enter__(self) -> SpillPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for runs in list(self.runs):
            runs.close()
        self.folder.remove()

    def account(self, num_bytes: int) -> None:
        """Count bytes in memory, and spill the largest runs until they are within the cap; ``lock`` is held."""
        self.in_memory_bytes += num_bytes
        while self.in_memory_bytes > self.cap_bytes:
            largest = max(self.runs, key=attrgetter("in_memory_bytes"))
            if not largest.in_memory_bytes:
                return
            largest.spill()


class Runs(Generic[Chunk]):
    """Chunks of one kind, in buckets.

    A chunk is a NamedTuple of 1-D or 2-D arrays of any dtypes and lengths, None for each that is not there; or what else yields
    them, and has ``_make`` as NamedTuples have.
    Reading a bucket gives its chunks in append order. Chunks that were spilled may come back joined: consecutive ones of equal
    dtypes, array by array. So a chunk must mean the same when it is concatenated to the next (counts, not offsets). Arrays that
    are contiguous are not copied: the caller gives them away.
    """

    def __init__(self, pool: SpillPool, num_buckets: int = 1, coalesce: bool = True) -> None:
        """Open empty runs; without ``coalesce``, chunks come back exactly as they were appended."""
        self.in_memory_bytes = 0
        self.num_buckets = num_buckets
        self._leaving_bytes = 0
        self._pool = pool
        self._coalesce = coalesce
        self._make: Callable[[_Arrays], Chunk]
        self._memory: defaultdict[int, list[_Arrays]] = defaultdict(list)
        self._extents: dict[int, _Extents] = {}  # of the buckets that lie in the file, at least in part
        self._layouts: dict[_Layout, int] = {}
        self._num_bytes = [0] * num_buckets
        self._file = SegmentFile(pool.folder)
        with pool.lock:  # another thread may be looking for the largest ones
            pool.runs.add(self)

    def append(self, bucket: int, arrays: Chunk) -> None:
        """Add a chunk to a bucket. Raises StorageError where spilling fails."""
        chunk: list[NDArray[Any] | None] = []
        num_bytes = 0
        for array in arrays:
            chunk.append(None if array is None else np.ascontiguousarray(array))
            num_bytes += 0 if array is None else array.nbytes
        make: Any = getattr(type(arrays), "_make", tuple)
        self._make = make
        held = num_bytes + _ARRAY_BYTES * len(chunk)
        with self._pool.lock:
            self._memory[bucket].append(tuple(chunk))
            self._num_bytes[bucket] += num_bytes
            self.in_memory_bytes += held
            self._pool.account(held)

    def read(self, bucket: int, *, consume: bool = False, stays_open: bool = True) -> Iterator[Chunk]:
        """Yield a bucket's chunks in append order, as often as asked; with ``consume`` for the last time.

        Then memory is free again as soon as the reader lets go of a chunk. Without ``stays_open`` the spill file is opened for
        each chunk that lies there, for readers of many runs side by side.
        """
        with self._pool.lock:
            memory, path = list(self._memory.get(bucket, ())), self._file.path
            spilled = self._extents[bucket].read(list(self._layouts)) if bucket in self._extents else iter(())
            extent = next(spilled, None)  # the list as it is now
            if consume:  # what is left to the reader is not worth being spilled any more
                leaving = sum(map(_held_bytes, memory))
                self._memory.pop(bucket, None)
                self.in_memory_bytes -= leaving
                self._leaving_bytes += leaving
        if extent is not None and path is not None:
            yield from map(self._make, _read_extents(path, itertools.chain([extent], spilled), stays_open))
        if memory and not consume:
            yield from map(self._make, memory)
            return
        memory.reverse()
        while memory:
            chunk = memory.pop()
            freed = _held_bytes(chunk)
            with self._pool.lock:
                freed = min(freed, self._leaving_bytes)  # nothing is left once these runs are closed
                self._leaving_bytes -= freed
                self._pool.in_memory_bytes -= freed
            yield self._make(chunk)

    def num_chunks(self, bucket: int) -> int:
        """Return how many chunks ``read`` would yield."""
        return (self._extents[bucket].count if bucket in self._extents else 0) + len(self._memory.get(bucket, ()))

    def num_bytes(self, bucket: int) -> int:
        """Return the bytes of a bucket's arrays, wherever they lie."""
        return self._num_bytes[bucket]

    def free(self, bucket: int) -> None:
        """Drop a bucket's chunks. The spill file goes with the last one that lies in it."""
        with self._pool.lock:
            freed = sum(map(_held_bytes, self._memory.pop(bucket, ())))
            self._num_bytes[bucket] = 0
            self.in_memory_bytes -= freed
            self._pool.in_memory_bytes -= freed
            if self._extents.pop(bucket, None) is not None and not self._extents:
                self._file.drop()

    def close(self) -> None:
        """Drop everything."""
        with self._pool.lock:
            self._pool.runs.discard(self)
            self._pool.in_memory_bytes -= self.in_memory_bytes + self._leaving_bytes
            self.in_memory_bytes = self._leaving_bytes = 0
            self._memory.clear()
            self._extents.clear()
            self._num_bytes = [0] * len(self._num_bytes)
            self._file.drop()

    def spill(self) -> None:
        """Write all chunks in memory to the file, bucket after bucket."""
        written: list[tuple[int, _Extents]] = []
        before = self._file.num_bytes
        most = min(_EXTENT_BYTES, max(_LEAST_EXTENT_BYTES, self._pool.cap_bytes // _EXTENT_SHARE)) if self._coalesce else -1
        with self._file.appending() as file:  # a failure leaves everything in memory
            for bucket, chunks in sorted(self._memory.items()):
                extents = _Extents()
                for layout, group in _group_chunks(chunks, most):
                    offset = file.num_bytes
                    extents.add(self._layouts.setdefault(layout, len(self._layouts)), offset, _write_group(file, group))
                written.append((bucket, extents))
        for bucket, extents in written:
            self._extents.setdefault(bucket, _Extents()).extend(extents)
        self._memory.clear()
        self._pool.spilled_bytes += self._file.num_bytes - before
        self._pool.in_memory_bytes -= self.in_memory_bytes
        self.in_memory_bytes = 0

    def __getstate__(self) -> dict[str, Any]:
        """Return what these runs are known by once all chunks lie in their file."""
        with self._pool.lock:
            if self._memory:
                self.spill()
            return self.__dict__ | {"_file": self._file.segment, "_leaving_bytes": 0}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the file. Raises what ``SegmentFile.open`` raises."""
        self.__dict__ |= state
        self._file = SegmentFile.open(self._pool.folder, state["_file"])
        with self._pool.lock:
            self._pool.runs.add(self)


def _held_bytes(chunk: _Arrays) -> int:
    """Return what a chunk in memory counts."""
    held = _ARRAY_BYTES * len(chunk)
    for array in chunk:
        held += 0 if array is None else array.nbytes
    return held


def _layout_of(chunk: _Arrays) -> _Layout:
    return tuple(None if array is None else (array.dtype.str, array.shape[1:]) for array in chunk)


def _group_chunks(chunks: list[_Arrays], extent_bytes: int) -> Iterator[tuple[_Layout, list[_Arrays]]]:
    """Yield runs of consecutive chunks that can be stored as one, with their layout."""
    group: list[_Arrays] = []
    group_layout: _Layout = ()
    group_bytes = 0
    for chunk in chunks:
        layout, num_bytes = _layout_of(chunk), _held_bytes(chunk) - _ARRAY_BYTES * len(chunk)
        if group and (layout != group_layout or group_bytes + num_bytes > extent_bytes):
            yield group_layout, group
            group, group_bytes = [], 0
        group.append(chunk)
        group_layout = layout
        group_bytes += num_bytes
    yield group_layout, group


def _write_group(file: Appender, chunks: list[_Arrays]) -> list[int]:
    """Write chunks as one, array by array; return the lengths of those that are there."""
    lengths = []
    for arrays in zip(*chunks, strict=True):
        if arrays[0] is not None:
            lengths.append(sum(map(len, arrays)))
            for one in arrays:
                file.write(one)
    return lengths


def _read_extents(path: Path, extents: Iterator[_Extent], stays_open: bool) -> Iterator[_Arrays]:
    """Read extents of a spill file, which is opened once, or for each of them."""
    while True:
        with plain_words(str(path)):
            file = path.open("rb", buffering=0)
        with file:
            for extent in extents:
                chunk = _read_extent(file.fileno(), *extent, str(path))
                if not stays_open:
                    break
                yield chunk
            else:
                return
        yield chunk


def _read_extent(descriptor: int, layout: _Layout, offset: int, lengths: Sequence[int], path: str) -> _Arrays:
    arrays: list[NDArray[Any] | None] = []
    there = iter(lengths)
    for kind in layout:
        if kind is None:
            arrays.append(None)
            continue
        one = np.empty((next(there), *kind[1]), np.dtype(kind[0]))
        read_into(descriptor, one, offset, path)
        offset += one.nbytes
        arrays.append(one)
    return tuple(arrays)


def read_into(descriptor: int, target: NDArray[Any], offset: int, path: str) -> None:
    """Fill an array from a place in a file. Raises StorageError."""
    view = target.reshape(-1).view(np.uint8).data
    done = 0
    with plain_words(path):
        while done < len(view):  # one call gives at most 2 GiB
            count = os.preadv(descriptor, [view[done:]], offset + done)
            if not count:
                raise OSError("the spill file became shorter")
            done += count
