"""Private folders for temporary files: gone at the end of the run, and after a kill with the next run that looks there."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import socket
import stat
import sys
import tempfile
import weakref
from collections.abc import Iterator
from pathlib import Path

from graphprep.storage.faults import plain_words

TMP_DIR_OPTION = "--tmp-dir"  # what chooses the folder
_PREFIX = ".graphprep-tmp-"
_ATTEMPTS = 20
_in_use: weakref.WeakSet[PrivateFolder] = weakref.WeakSet()
_WHOLE = "metadata.json"  # a store that has it; its module would load NumPy


class PrivateFolder:
    """A folder of this process in ``parent`` (None: the system's place for temporary files), made when it is first needed.

    Its name begins with ``prefix``. While it is in use it is locked, so that others can tell it from what a killed run left.
    """

    def __init__(self, parent: str | None = None, prefix: str = _PREFIX, mode: int = 0o700) -> None:
        self.parent = parent or tempfile.gettempdir()
        self._prefix = prefix
        self._mode = mode
        self._path: str | None = None
        self._lock: int | None = None
        _in_use.add(self)

    def make(self) -> str:
        """Return the path like ``create``; a failure names the folder's parent, and the option that chooses it.

        Raises StorageError.
        """
        with plain_words(self.parent, TMP_DIR_OPTION):
            return self.create()

    def create(self) -> str:
        """Return the folder's path. The first time the folder is made, and what dead runs left beside it is removed.

        Raises OSError.
        """
        if self._path is None:
            remove_leftovers(self.parent, self._prefix)
        for _ in range(_ATTEMPTS):
            if self._path is not None:
                return self._path
            self._make_one()
        raise OSError(errno.EBUSY, "temporary folders are removed as soon as they are made")

    def remove(self) -> None:
        """Remove the folder and all in it, where it was made."""
        if self._path is not None:
            shutil.rmtree(self._path, ignore_errors=True)
        self.release()

    def release(self) -> None:
        """Give the folder up: it stays, or has another name by now."""
        lock, self._path, self._lock = self._lock, None, None
        if lock is not None:
            os.close(lock)

    def _make_one(self) -> None:
        # Named before it is made: an interrupt in between finds what to remove.
        self._path = str(Path(self.parent) / f"{_own(self._prefix)}{os.urandom(6).hex()}")
        try:
            os.mkdir(self._path, self._mode)  # noqa: PTH102
        except OSError:
            self._path = None
            raise
        if not self._take(self._path):
            self._path = None

    def _take(self, path: str) -> bool:
        """Lock the folder. False: another process took it for a leftover before it was locked."""
        lock = _lock(path, wait=True)
        if lock is None:  # the file system knows no locks: nobody will take it for one
            return Path(path).is_dir()
        if _is_same(path, lock):
            self._lock = lock
            return True
        os.close(lock)
        return False


def remove_all() -> None:
    """Remove the folders of this process, which ends at once: nobody closes what uses them."""
    for folder in list(_in_use):
        folder.remove()


def remove_leftovers(parent: str, prefix: str = _PREFIX) -> int:
    """Remove the private folders in ``parent`` whose processes are dead. Returns how many there were.

    Only those of this user and of this machine: others may see no locks. A store that is whole stays, whatever its name.
    """
    count = 0
    for path in find_private(parent, prefix):
        lock = None if Path(path, _WHOLE).exists() else _lock(path, wait=False)
        if lock is not None:
            shutil.rmtree(path, ignore_errors=True)
            os.close(lock)
            count += not os.path.lexists(path)
    return count


def find_private(parent: str, prefix: str = _PREFIX) -> Iterator[str]:
    """Yield the private folders in ``parent`` that this user made on this machine, in use or not."""
    own = _own(prefix)
    with contextlib.suppress(OSError):
        for name in os.listdir(parent):  # noqa: PTH208 - most have another name
            if name.startswith(own):
                path = os.path.join(parent, name)  # noqa: PTH118
                with contextlib.suppress(OSError):
                    found = os.lstat(path)
                    if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid():
                        yield path


def _own(prefix: str) -> str:
    """Return how the names of this machine's folders begin: on a shared disk, locks may be seen on one machine only."""
    return f"{prefix}{hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]}-"


def _lock(path: str, *, wait: bool) -> int | None:
    """Lock a folder, until the descriptor that is returned is closed or the process ends, however it ends.

    None where it is locked, where it is gone, or where locks are not to be had.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _is_same(path: str, descriptor: int) -> bool:
    """Return whether a path still leads to the folder that is open."""
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))  # noqa: PTH116
    except OSError:
        return False
