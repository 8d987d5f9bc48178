"""What a run has for itself in the file system: private folders for temporary files, and claims on local outputs.

Folders are gone at the end of the run, and after a kill with the next run that looks there. Of two runs that write to one
place, the second is told so when it begins, not when it is done.
"""

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
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from graphprep.model.errors import UsageError
from graphprep.storage.faults import display_url, plain_words, raise_plain

TMP_DIR_OPTION = "--tmp-dir"  # what chooses the folder
WAIT = "wait for it, or choose another name"
LOCK_PREFIX = ".graphprep-lock-"
_PREFIX = ".graphprep-tmp-"
_ATTEMPTS = 20
_in_use: weakref.WeakSet[PrivateFolder] = weakref.WeakSet()
_claims: set[LocalClaim] = set()  # of this process
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
        try:
            return self.create()
        except Exception as error:
            raise_plain(error, self.parent, TMP_DIR_OPTION)

    def create(self) -> str:
        """Return the folder's path. The first time the folder is made, and what dead runs left beside it is removed.

        Raises OSError.
        """
        if self._path is not None:
            return self._path
        remove_leftovers(self.parent, self._prefix)
        for _ in range(_ATTEMPTS):
            # Named before it is made: an interrupt in between finds what to remove.
            self._path = str(Path(self.parent) / f"{_own(self._prefix)}{os.urandom(6).hex()}")
            try:
                os.mkdir(self._path, self._mode)  # noqa: PTH102
            except OSError:
                self._path = None
                raise
            lock = _lock(self._path, wait=True)
            # Without one, the file system knows no locks, and nobody takes the folder for a leftover; else somebody may have.
            if Path(self._path).is_dir() if lock is None else is_same(self._path, lock):
                self._lock = lock
                return self._path
            if lock is not None:
                os.close(lock)
            self._path = None
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


class LocalClaim:
    """A locked file beside a local output. The lock ends with its process, however that ends.

    Where the file system knows no locks there is none, and the one that is done later learns it at the end.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._file = target.with_name(f"{LOCK_PREFIX}{target.name[:100]}")
        self._lock: int | None = None

    def take(self) -> None:
        """Claim the output, whose folder is there.

        Raises UsageError where another run has, OSError where the disk is full or broken.
        """
        if sys.platform == "win32":
            return
        import fcntl

        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        for _ in range(_ATTEMPTS):
            try:
                descriptor = os.open(self._file, os.O_RDWR | os.O_CREAT | flags, 0o666)
            except PermissionError:  # another user's, which only that one may write to
                try:
                    descriptor = os.open(self._file, os.O_RDONLY | flags)
                except OSError:
                    return
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                owner = os.read(descriptor, 20).decode(errors="replace")
                os.close(descriptor)
                who = f"process {owner}" if owner.isdecimal() else "another run"
                raise UsageError(f"{who} is writing this output", place=display_url(str(self._target)), fix=WAIT) from None
            except OSError:  # locks are not to be had
                os.close(descriptor)
                return
            if is_same(str(self._file), descriptor):  # else its owner removed it before we had the lock
                self._lock = descriptor
                _claims.add(self)
                with contextlib.suppress(OSError):  # left by a killed run of another user: locked all the same
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, str(os.getpid()).encode())
                return
            os.close(descriptor)

    def release(self) -> None:
        """Give the claim up."""
        lock, self._lock = self._lock, None
        _claims.discard(self)
        if lock is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()
            os.close(lock)


@contextlib.contextmanager
def claim_places(places: Sequence[str]) -> Iterator[Callable[[str], None]]:
    """Claim local places that a long run writes to at its end, and give a function that gives one up to who writes there.

    Raises UsageError where another run has one. Places in a folder that is not there yet are not claimed.
    """
    with contextlib.ExitStack() as stack:
        claims: dict[str, LocalClaim] = {}
        for place in places:
            path = Path(place)
            target = path.resolve() if path.is_symlink() else path.absolute()
            if target.parent.is_dir():
                claims[place] = LocalClaim(target)
                stack.callback(claims[place].release)
                with plain_words(place):
                    claims[place].take()
        yield lambda place: claims[place].release() if place in claims else None


def let_go() -> None:
    """Remove the folders and give up the claims of this process, which ends at once: nobody closes what uses them."""
    for folder in list(_in_use):
        folder.remove()
    for claim in list(_claims):
        claim.release()


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
                    if stat.S_ISDIR(found.st_mode) and is_own(found):
                        yield path


def is_own(found: os.stat_result) -> bool:
    """Return whether a file is this user's, as far as the system tells."""
    return not hasattr(os, "geteuid") or found.st_uid == os.geteuid()


def _own(prefix: str) -> str:
    """Return how the names of this machine's folders begin: on a shared disk, locks may be seen on one machine only."""
    return f"{prefix}{_machine()}-"


def is_of_this_machine(machine: str) -> bool:
    """Return whether the eight digits in a private folder's name are those of this machine."""
    return machine == _machine()


def _machine() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _lock(path: str, *, wait: bool) -> int | None:
    """Lock a folder, until the descriptor that is returned is closed or the process ends, however it ends.

    None where it is locked, where it is gone, or where locks are not to be had.
    """
    try:
        return hold(path, wait=wait)
    except BlockingIOError:
        return None


def hold(path: str, *, wait: bool = False, shared: bool = False) -> int | None:
    """Lock a folder, or the file of a claim, until the descriptor that is returned is closed.

    None where it is gone, or where locks are not to be had. Raises BlockingIOError where others have it and we do not ``wait``;
    those that hold it ``shared`` do not keep each other out.
    """
    if sys.platform == "win32":
        return None
    import fcntl

    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB))
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            raise
        return None
    return descriptor


def is_same(path: str, descriptor: int) -> bool:
    """Return whether a path still leads to the file or folder that is open."""
    try:
        return os.path.samestat(os.lstat(path), os.fstat(descriptor))
    except OSError:
        return False
