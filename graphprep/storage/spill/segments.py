"""Segments: files that grow at their end, known by name, size and checksum, in a folder of the run or one that outlives it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

import numpy as np
import xxhash
from numpy.typing import NDArray

from graphprep.storage.faults import plain_words
from graphprep.storage.private import TMP_DIR_OPTION, PrivateFolder

_BUFFER_BYTES = 1 << 20
_HASHED_BYTES = 1 << 22  # read at a time


class Segment(NamedTuple):
    """What a segment is known by: the name of its file, the size in bytes, and the xxh3 of these bytes."""

    name: str
    num_bytes: int
    checksum: str


class BrokenSegmentError(Exception):
    """A segment is not what it was when it was written; the argument is its path."""


class SegmentFolder(Protocol):
    """Where segments lie. ``is_kept``: they are to be read by another process, after this one or beside it."""

    is_kept: bool

    def new_path(self) -> Path:
        """Return the path of a file yet to be made."""

    def path_of(self, name: str) -> Path:
        """Return the path of a segment by its name."""

    def drop(self, path: Path) -> None:
        """Let go of a file that is of no more use."""

    def remove(self) -> None:
        """Remove what is of no use to anybody else."""


class TemporaryFolder:
    """Segments of one process, in a private folder in ``parent`` that is made when it is first needed."""

    is_kept = False

    def __init__(self, parent: str | None = None) -> None:
        self._private = PrivateFolder(parent)
        self._num_files = 0

    def new_path(self) -> Path:
        """See ``SegmentFolder``. Raises StorageError."""
        self._num_files += 1
        return self.path_of(f"runs-{self._num_files}")

    def path_of(self, name: str) -> Path:
        """See ``SegmentFolder``."""
        return Path(self._private.make()) / name

    def drop(self, path: Path) -> None:
        """See ``SegmentFolder``."""
        with contextlib.suppress(OSError):
            path.unlink()

    def remove(self) -> None:
        """See ``SegmentFolder``."""
        self._private.remove()


def open_private(path: Path, mode: str) -> IO[bytes]:
    """Open a file for writing that nobody else may read, whatever the umask."""
    return open(path, mode, buffering=_BUFFER_BYTES, opener=lambda name, flags: os.open(name, flags, 0o600))


class SegmentFile:
    """The file of a segment, made with the first bytes. What an append that fails has written is no part of it."""

    def __init__(self, folder: SegmentFolder) -> None:
        self.path: Path | None = None
        self.num_bytes = 0
        self._folder = folder
        self._hash = xxhash.xxh3_64() if folder.is_kept else None
        self._descriptor = -1

    @contextlib.contextmanager
    def appending(self) -> Iterator[Appender]:
        """Hand out what writes at the end. Raises StorageError."""
        self.path = self.path or self._folder.new_path()
        with plain_words(str(self.path.parent), TMP_DIR_OPTION), open_private(self.path, "ab") as file:
            file.truncate(self.num_bytes)
            appender = Appender(file, self.num_bytes, None if self._hash is None else self._hash.copy())
            yield appender
        self.num_bytes, self._hash = appender.num_bytes, appender.hash

    def descriptor(self) -> int:
        """Return a descriptor to read from, which stays open. Raises StorageError."""
        if self._descriptor < 0:
            with plain_words(str(self.path)):
                self._descriptor = os.open(str(self.path), os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        return self._descriptor

    def drop(self) -> None:
        """Let go of the file; the next append makes another."""
        path, self.path, self.num_bytes = self.path, None, 0
        if self._hash is not None:
            self._hash = xxhash.xxh3_64()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if path is not None:
            self._folder.drop(path)

    @property
    def segment(self) -> Segment | None:
        """Return what the file is known by; None while there is none. The folder is one that is kept."""
        assert self._hash is not None
        return None if self.path is None else Segment(self.path.name, self.num_bytes, self._hash.hexdigest())

    def hash(self) -> Any:
        """Return the xxh3 of what was written, for others to go on with. The folder is one that is kept."""
        assert self._hash is not None
        return self._hash.copy()

    @classmethod
    def open(cls, folder: SegmentFolder, segment: Segment | None) -> SegmentFile:
        """Return the file of a segment, which is read and compared.

        Raises BrokenSegmentError where it is not what it was, StorageError where it cannot be read.
        """
        file = cls(folder)
        if segment is None:
            return file
        file.path = folder.path_of(segment.name)
        file._hash = hash_file(file.path, segment.num_bytes)
        if file._hash is None or file._hash.hexdigest() != segment.checksum:
            raise BrokenSegmentError(str(file.path))
        file.num_bytes = segment.num_bytes
        return file


class Appender:
    """Writes at the end of a segment's file. ``num_bytes`` is the size that it will have."""

    def __init__(self, file: IO[bytes], num_bytes: int, hash: Any) -> None:
        self.num_bytes = num_bytes
        self.hash = hash
        self._file = file

    def write(self, array: NDArray[Any]) -> None:
        """Write the elements of a contiguous array."""
        if array.size:
            view = array.reshape(-1).view(np.uint8).data
            self._file.write(view)
            self.num_bytes += len(view)
            if self.hash is not None:
                self.hash.update(view)


def hash_file(path: Path, num_bytes: int) -> Any:
    """Return the xxh3 of the first bytes of a file; None where it has fewer, or is not there. Raises StorageError."""
    found = xxhash.xxh3_64()
    with plain_words(str(path)), contextlib.suppress(FileNotFoundError), path.open("rb", buffering=0) as file:
        while num_bytes and (piece := file.read(min(_HASHED_BYTES, num_bytes))):
            found.update(piece)
            num_bytes -= len(piece)
        return None if num_bytes else found
    return None
