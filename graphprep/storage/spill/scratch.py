"""Arrays that a run fills and reads in any order: in memory while they fit, and in mapped files beyond."""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphprep.storage.faults import plain_words
from graphprep.storage.private import TMP_DIR_OPTION, PrivateFolder

_LOCK = threading.Lock()  # one thread makes the folder


class Scratch:
    """Makes arrays: at most ``cap_bytes`` of memory, then files, which take page cache only.

    The files stand in a private folder, made in ``folder`` (or the system's place for temporary files) when first needed, and
    removed on leaving the context.
    """

    def __init__(self, cap_bytes: int, folder: str | None = None) -> None:
        self.cap_bytes = cap_bytes
        self._held_bytes = 0
        self._files: list[Path] = []
        self._folder = PrivateFolder(folder)
        self._is_inner = False

    def __enter__(self) -> Scratch:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Remove the files. Arrays that are still in use stay readable."""
        for path in self._files:
            with contextlib.suppress(OSError):
                path.unlink()
        self._files.clear()
        if not self._is_inner:
            self._folder.remove()

    def inner(self) -> Scratch:
        """Return a scratch for a step of the run, which may hold what this one does not. Close it before this one."""
        inner = Scratch(max(0, self.cap_bytes - self._held_bytes))
        inner._folder, inner._is_inner = self._folder, True
        return inner

    def zeros(self, size: int, dtype: DTypeLike) -> NDArray[Any]:
        """Return an array of zeros.

        Raises StorageError where there is no room for its file.
        """
        num_bytes = size * np.dtype(dtype).itemsize
        if self._held_bytes + num_bytes <= self.cap_bytes:
            self._held_bytes += num_bytes
            return np.zeros(size, dtype)
        with _LOCK:
            path = Path(self._folder.make()) / f"array-{os.urandom(8).hex()}"
        self._files.append(path)
        with plain_words(self._folder.parent, TMP_DIR_OPTION):
            _make_file(path, num_bytes)
            return np.asarray(np.memmap(path, dtype, "r+", shape=(size,)))


def _make_file(path: Path, num_bytes: int) -> None:
    """Make a file of zeros, whose blocks the system sets aside: else a full disk would kill the process at some write."""
    with path.open("xb") as file:
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, num_bytes)
        else:
            file.truncate(num_bytes)
