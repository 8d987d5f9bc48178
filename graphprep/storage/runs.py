"""Runs: chunks of arrays in append order, in memory while they fit and in spill files beyond."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.storage.faults import plain_words

Chunk = tuple[Any, ...]  # arrays, or None: what stands where is a matter between writer and reader
_Layout = tuple[tuple[str, tuple[int, ...]] | None, ...]

_TMP_DIR = "--tmp-dir"  # the option that chooses the folder
_ARRAY_BYTES = 128  # what an array takes beside its data; with many small chunks that is most of it
_BUFFER_BYTES = 1 << 20
_EXTENT_BYTES = 8 << 20  # small chunks are joined up to here, so that what a reader gets stays bounded
_LEAST_EXTENT_BYTES = 256 << 10
_EXTENT_SHARE = 8  # of the pool: readers make several times an extent of it


@dataclass(frozen=True)
class _Extent:
    """A chunk in a spill file: where its first array begins, and what the arrays are. They lie one behind the other."""

    offset: int
    layout: _Layout
    lengths: tuple[int, ...]
    num_bytes: int


class SpillPool:
    """Memory that ``Runs`` share: at most about ``cap_bytes`` of it, what goes beyond lies in files.

    The files stand in a private folder, made in ``folder`` (or the system's place for temporary files) when first needed, and
    removed on leaving the context.
    """

    def __init__(self, cap_bytes: int, folder: str | None = None) -> None:
        self.cap_bytes = cap_bytes
        self.in_memory_bytes = 0
        self.spilled_bytes = 0
        self._parent = folder
        self._folder: str | None = None
        self._num_files = 0
        self._runs: set[Runs] = set()
        self._lock = threading.RLock()

    def __enter__(self) -> SpillPool:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Free all runs and remove the files."""
        for runs in list(self._runs):
            runs.close()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def _account(self, num_bytes: int) -> None:
        """Count bytes in memory, and spill the largest runs until they are within the cap."""
        self.in_memory_bytes += num_bytes
        while self.in_memory_bytes > self.cap_bytes:
            largest = max(self._runs, key=lambda runs: runs.in_memory_bytes)
            if not largest.in_memory_bytes:
                return
            largest._spill()

    def _new_file(self) -> Path:
        if self._folder is None:
            with plain_words(self._parent or tempfile.gettempdir(), _TMP_DIR):
                self._folder = tempfile.mkdtemp(prefix=".graphprep-spill-", dir=self._parent)
        self._num_files += 1
        return Path(self._folder) / f"runs-{self._num_files}"


class Runs:
    """Chunks in buckets.

    A chunk is a tuple of 1-D or 2-D arrays of any dtypes and lengths; None stands for an array that is not there.
    Reading a bucket gives its chunks in append order. Chunks that were spilled may come back joined: consecutive ones of equal
    dtypes, array by array. So a chunk must mean the same when it is concatenated to the next (counts, not offsets). Arrays that
    are contiguous are not copied: the caller gives them away.
    """

    def __init__(self, pool: SpillPool, num_buckets: int = 1, coalesce: bool = True) -> None:
        """Open empty runs; without ``coalesce``, chunks come back exactly as they were appended."""
        self.in_memory_bytes = 0
        self._pool = pool
        self._extent_bytes = _extent_bytes(pool.cap_bytes) if coalesce else -1
        self._memory: list[list[Chunk]] = [[] for _ in range(num_buckets)]
        self._extents: list[list[_Extent]] = [[] for _ in range(num_buckets)]
        self._num_bytes = [0] * num_buckets
        self._path: Path | None = None
        self._file_bytes = 0
        pool._runs.add(self)

    @property
    def num_buckets(self) -> int:
        """Return the number of buckets."""
        return len(self._memory)

    def append(self, bucket: int, arrays: Chunk) -> None:
        """Add a chunk to a bucket. Raises StorageError where spilling fails."""
        chunk = tuple(None if array is None else np.ascontiguousarray(array) for array in arrays)
        num_bytes = sum(array.nbytes for array in chunk if array is not None)
        with self._pool._lock:
            self._memory[bucket].append(chunk)
            self._num_bytes[bucket] += num_bytes
            held = num_bytes + _ARRAY_BYTES * len(chunk)
            self.in_memory_bytes += held
            self._pool._account(held)

    def read(self, bucket: int) -> Iterator[Chunk]:
        """Yield a bucket's chunks in append order; as often as asked."""
        with self._pool._lock:
            extents, memory, path = list(self._extents[bucket]), list(self._memory[bucket]), self._path
        if extents and path is not None:
            with plain_words(str(path)):
                file = path.open("rb", buffering=0)
            with file:
                for extent in extents:
                    yield _read_extent(file.fileno(), extent, str(path))
        yield from memory

    def num_chunks(self, bucket: int) -> int:
        """Return how many chunks ``read`` would yield."""
        return len(self._extents[bucket]) + len(self._memory[bucket])

    def num_bytes(self, bucket: int) -> int:
        """Return the bytes of a bucket's arrays, wherever they lie."""
        return self._num_bytes[bucket]

    def free(self, bucket: int) -> None:
        """Drop a bucket's chunks. The spill file goes with the last one that lies in it."""
        with self._pool._lock:
            freed = sum(_chunk_bytes(chunk) + _ARRAY_BYTES * len(chunk) for chunk in self._memory[bucket])
            self._memory[bucket], self._extents[bucket] = [], []
            self._num_bytes[bucket] = 0
            self.in_memory_bytes -= freed
            self._pool.in_memory_bytes -= freed
            if self._path is not None and not any(self._extents):
                self._remove_file()

    def close(self) -> None:
        """Drop everything."""
        with self._pool._lock:
            self._pool._runs.discard(self)
            self._pool.in_memory_bytes -= self.in_memory_bytes
            self.in_memory_bytes = 0
            self._memory = [[] for _ in self._memory]
            self._extents = [[] for _ in self._extents]
            self._num_bytes = [0] * len(self._num_bytes)
            self._remove_file()

    def _remove_file(self) -> None:
        path, self._path, self._file_bytes = self._path, None, 0
        if path is not None:
            with contextlib.suppress(OSError):
                path.unlink()

    def _spill(self) -> None:
        """Write all chunks in memory to the file, bucket after bucket."""
        if self._path is None:
            self._path = self._pool._new_file()
        written: list[tuple[int, list[_Extent]]] = []
        offset = self._file_bytes
        # A failure leaves the bytes behind offset unnamed, and everything in memory.
        with plain_words(str(self._path.parent), _TMP_DIR), self._path.open("ab", buffering=_BUFFER_BYTES) as file:
            file.truncate(offset)
            for bucket, chunks in enumerate(self._memory):
                if chunks:
                    extents = []
                    for group in _group_chunks(chunks, self._extent_bytes):
                        extents.append(_write_extent(file, offset, group))
                        offset += extents[-1].num_bytes
                    written.append((bucket, extents))
        for bucket, extents in written:
            self._extents[bucket] += extents
            self._memory[bucket] = []
        self._pool.spilled_bytes += offset - self._file_bytes
        self._file_bytes = offset
        self._pool.in_memory_bytes -= self.in_memory_bytes
        self.in_memory_bytes = 0


def _extent_bytes(cap_bytes: int) -> int:
    return max(_LEAST_EXTENT_BYTES, min(_EXTENT_BYTES, cap_bytes // _EXTENT_SHARE))


def _chunk_bytes(chunk: Chunk) -> int:
    return sum(array.nbytes for array in chunk if array is not None)


def _layout_of(chunk: Chunk) -> _Layout:
    return tuple(None if array is None else (array.dtype.str, array.shape[1:]) for array in chunk)


def _group_chunks(chunks: list[Chunk], extent_bytes: int) -> Iterator[list[Chunk]]:
    """Yield runs of consecutive chunks that can be stored as one."""
    group: list[Chunk] = []
    group_layout: _Layout = ()
    group_bytes = 0
    for chunk in chunks:
        layout, num_bytes = _layout_of(chunk), _chunk_bytes(chunk)
        if group and (layout != group_layout or group_bytes + num_bytes > extent_bytes):
            yield group
            group, group_bytes = [], 0
        group.append(chunk)
        group_layout = layout
        group_bytes += num_bytes
    yield group


def _write_extent(file: Any, offset: int, chunks: list[Chunk]) -> _Extent:
    layout = _layout_of(chunks[0])
    lengths = []
    num_bytes = 0
    for i in range(len(layout)):
        length = 0
        for chunk in chunks:
            array = chunk[i]
            if array is not None:
                length += array.shape[0]
                num_bytes += array.nbytes
                if array.size:
                    file.write(array.reshape(-1).view(np.uint8).data)
        lengths.append(length)
    return _Extent(offset, layout, tuple(lengths), num_bytes)


def _read_extent(descriptor: int, extent: _Extent, path: str) -> Chunk:
    arrays: list[NDArray[Any] | None] = []
    offset = extent.offset
    for kind, length in zip(extent.layout, extent.lengths, strict=True):
        if kind is None:
            arrays.append(None)
            continue
        array = np.empty((length, *kind[1]), np.dtype(kind[0]))
        _read_into(descriptor, array, offset, path)
        offset += array.nbytes
        arrays.append(array)
    return tuple(arrays)


def _read_into(descriptor: int, array: NDArray[Any], offset: int, path: str) -> None:
    view = array.reshape(-1).view(np.uint8).data
    done = 0
    with plain_words(path):
        while done < len(view):  # one call gives at most 2 GiB
            count = os.preadv(descriptor, [view[done:]], offset + done)
            if not count:
                raise OSError("the spill file became shorter")
            done += count
