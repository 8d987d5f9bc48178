"""Stores on remote file systems with folders (HDFS, SFTP): a hidden folder beside the target, renamed at the end."""

from __future__ import annotations

import contextlib
import posixpath
import secrets
import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, wait
from typing import Any

from graphprep.model.errors import StorageError
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.claims import RemoteClaim
from graphprep.storage.write.owned import refuse_foreign

_MOST_CLOSING = 32  # files: no more are open on the servers


class FolderTarget:
    """A hidden folder beside the target.

    Such file systems show a file as soon as it is created, and rename a folder in one step. While the run lasts, another file
    beside the target claims it; ``takes_over``: see ``RemoteClaim``.
    """

    def __init__(self, storage: Storage, out: str, *, replaces: frozenset[str] | None, takes_over: bool = False) -> None:
        self._storage = storage
        self._out = out.rstrip("/")
        self._replaces = replaces
        self._fs, path = storage.filesystem(self._out)
        self._path = path.rstrip("/")
        suffix = f"graphprep-{secrets.token_hex(4)}"
        self._stage = posixpath.join(posixpath.dirname(self._path), f".{posixpath.basename(self._path)}.{suffix}")
        self._stage_url = f"{posixpath.dirname(self._out)}/{posixpath.basename(self._stage)}"
        claim = posixpath.join(posixpath.dirname(self._path), f".{posixpath.basename(self._path)}.graphprep-claim")
        self._claim = RemoteClaim(self._fs, claim, self._out, takes_over=takes_over)
        self._made: list[str] = []
        self._folders: set[str] = set()
        self._closing: deque[Future[None]] = deque()
        self._lock = threading.Lock()

    def begin(self) -> None:
        """See ``Target.begin``."""
        folder = posixpath.dirname(self._path)
        missing = []
        while folder.strip("/") and not self._fs.exists(folder):
            missing.append(folder)
            folder = posixpath.dirname(folder)
        self._made = missing
        try:
            if missing:
                self._fs.makedirs(missing[0], exist_ok=True)
            self._claim.take()
            self._fs.makedirs(self._stage, exist_ok=True)
        except BaseException:
            self.remove()
            raise

    @property
    def dead_host(self) -> str | None:
        """See ``Target.dead_host``."""
        return self._claim.dead_host

    def open(self, path: str, num_bytes: int) -> FileSink:
        """See ``Target.open``."""
        full = f"{self._stage}/{path}"
        folder = posixpath.dirname(full)
        if folder not in self._folders:
            self._fs.makedirs(folder, exist_ok=True)
            self._folders.add(folder)
        return _FolderSink(self, self._fs, full)

    def close_soon(self, close: Callable[[], None]) -> None:
        """Finish a file while others are written: HDFS takes a third of a second for it."""
        self._closing.append(self._storage.fetchers.submit(close))
        self._wait(_MOST_CLOSING)

    def _wait(self, most: int = 0) -> None:
        """Wait until at most so many files are not finished. Raises what finishing one of the others did."""
        with self._lock:
            while len(self._closing) > most:
                self._closing.popleft().result()

    def link(self, path: str, source: str, *, own: bool = False) -> bool:
        """See ``Target.link``."""
        return False

    def url(self, path: str) -> str:
        """See ``Target.url``."""
        self._wait()
        return f"{self._stage_url}/{path}"

    def show(self) -> None:
        """Rename the folder to its name; the one that stands there goes aside first, and is then removed."""
        self._wait()
        self._storage.forget(self._out)
        self._claim.check()
        self._fs.invalidate_cache()
        if self._replaces is None:
            if self._fs.exists(self._path):
                if self._fs.find(self._path) or not self._fs.isdir(self._path):  # it was not there when the run began
                    raise FileExistsError
                self._fs.rmdir(self._path)
            self._fs.mv(self._stage, self._path, recursive=True)
            self._claim.release()
            return
        refuse_foreign(self._storage, self._out, self._replaces)  # hours may have gone by
        aside = f"{self._stage}-old"
        self._fs.mv(self._path, aside, recursive=True)
        try:
            self._fs.mv(self._stage, self._path, recursive=True)
        except BaseException:
            self._fs.mv(aside, self._path, recursive=True)
            raise
        with contextlib.suppress(Exception):
            self._fs.rm(aside, recursive=True)
        self._claim.release()

    def remove(self) -> None:
        """Remove the hidden folder, and the folders above it that were made."""
        with contextlib.suppress(Exception):
            wait(self._closing)
        self._claim.release()
        with contextlib.suppress(Exception):
            self._fs.rm(self._stage, recursive=True)
        for folder in self._made:
            with contextlib.suppress(Exception):
                if not self._fs.ls(folder, detail=False):  # else someone else uses it
                    self._fs.rmdir(folder)


def write_beside(fs: Any, path: str, pieces: Iterable[bytes | memoryview]) -> None:
    """Write a file under another name, and rename it when it is whole; what has the name is replaced."""
    folder, name = posixpath.split(path)
    fs.makedirs(folder, exist_ok=True)
    beside = posixpath.join(folder, f".{name}.graphprep-{secrets.token_hex(4)}")
    sink = FileSink(fs, beside)
    try:
        for piece in pieces:
            sink.write(piece)
        sink.commit()
        with contextlib.suppress(FileNotFoundError):
            fs.rm_file(path)
        fs.mv(beside, path)
    except BaseException:
        sink.discard()
        with contextlib.suppress(Exception):
            fs.rm_file(beside)
        raise


class FileSink:
    """A file that is seen while it is written, so under a name that nobody reads."""

    def __init__(self, fs: Any, full: str) -> None:
        self._fs = fs
        self._full = full
        self._file = fs.open(full, "wb")
        self._num_bytes = 0

    def write(self, data: bytes | memoryview) -> None:
        """Add bytes."""
        self._file.write(bytes(data))
        self._num_bytes += len(data)

    def commit(self) -> None:
        """Finish the file. Raises StorageError where it does not hold what was written."""
        self._file.close()
        found = self._fs.info(self._full).get("size")
        if found != self._num_bytes:
            message = f"{self._num_bytes} bytes were written, and {found} are there"
            raise StorageError(message, place=display_url(self._full), fix="check the file system, then run again")

    def discard(self) -> None:
        """Close the file; it goes with its folder."""
        with contextlib.suppress(Exception):
            self._file.close()


class _FolderSink(FileSink):
    """A file of a folder that is not shown yet, so that it need not be finished at once."""

    def __init__(self, target: FolderTarget, fs: Any, full: str) -> None:
        super().__init__(fs, full)
        self._target = target

    def commit(self) -> None:
        """Have the file finished before the folder is shown."""
        self._target.close_soon(super().commit)
