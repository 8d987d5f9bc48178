"""Arrays that a run fills and reads in any order: in memory while they fit, and in mapped files beyond."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphprep.storage.faults import plain_words
from graphprep.storage.private import TMP_DIR_OPTION, PrivateFolder


class Scratch:
    """Makes arrays: at most ``cap_bytes`` of memory, then files, which take page cache only.

    The files stand in a private folder, made in ``folder`` (or the system's place for temporary files) when first needed, and
    removed on leaving the context.
    """

    def __init__(self, cap_bytes: int, folder: str | None = None) -> None:
        self._cap_bytes = cap_bytes
        self._held_bytes = 0
        self._parent = folder
        self._folder = PrivateFolder(folder)
        self._num_files = 0

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Remove the files. Arrays that are still in use stay readable."""
        self._folder.remove()

    def inner(self) -> Scratch:
        """Return a scratch for a step of the run, which may hold what this one does not."""
        return Scratch(max(0, self._cap_bytes - self._held_bytes), self._parent)

    def zeros(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros.

        Raises StorageError where there is no room for its file.
        """
        num_bytes = size * np.dtype(dtype).itemsize
        if self._held_bytes + num_bytes <= self._cap_bytes:
            self._held_bytes += num_bytes
            return np.zeros(size, dtype)
        path = Path(self._folder.make()) / f"array-{self._num_files}"
        self._num_files += 1
        with plain_words(self._folder.parent, TMP_DIR_OPTION):
            with path.open("xb") as file:
                os.posix_fallocate(file.fileno(), 0, num_bytes)  # else a full disk would kill the process at some write
            return np.asarray(np.memmap(path, dtype, "r+", shape=(size,)))
