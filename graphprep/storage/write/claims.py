"""Claims on outputs: of two runs that write to one place, the second is told so when it begins, not when it is done."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from graphprep.model.errors import StorageError, UsageError
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.write.conditional import create_object, replace_object

_ATTEMPTS = 20
_WAIT = "wait for it, or choose another name"
_held: set[str] = set()  # tokens of the claims of this process
_locks: set[LocalClaim] = set()  # likewise


class LocalClaim:
    """A locked file beside a local output. The lock ends with its process, however that ends.

    Where the file system knows no locks there is none, and the one that is done later learns it at the end.
    """

    def __init__(self, target: Path) -> None:
        self._target = target
        self._file = target.with_name(f".graphprep-lock-{target.name[:100]}")
        self._lock: int | None = None

    def take(self) -> None:
        """Claim the output, whose folder is there.

        Raises UsageError where another run has, OSError where the disk is full or broken.
        """
        for _ in range(_ATTEMPTS if sys.platform != "win32" else 0):
            descriptor = self._open()
            if descriptor is None:
                return
            if not self._lock_file(descriptor):
                os.close(descriptor)
                return
            if _is_same(self._file, descriptor):  # else its owner removed it before we had the lock
                self._lock = descriptor
                _locks.add(self)
                with contextlib.suppress(OSError):  # another user's, left by a killed run: locked all the same
                    os.ftruncate(descriptor, 0)
                    os.write(descriptor, str(os.getpid()).encode())
                return
            os.close(descriptor)

    def release(self) -> None:
        """Give the claim up."""
        lock, self._lock = self._lock, None
        _locks.discard(self)
        if lock is not None:
            with contextlib.suppress(OSError):
                self._file.unlink()
            os.close(lock)

    def _open(self) -> int | None:
        """Open the file; one of another user, which only that one may write to, for reading, and None where that cannot be."""
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            return os.open(self._file, os.O_RDWR | os.O_CREAT | flags, 0o666)
        except PermissionError:
            with contextlib.suppress(OSError):
                return os.open(self._file, os.O_RDONLY | flags)
            return None

    def _lock_file(self, descriptor: int) -> bool:
        """Lock the file; False where locks are not to be had."""
        import fcntl

        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 20).decode(errors="replace")
            os.close(descriptor)
            who = f"process {owner}" if owner.isdecimal() else "another run"
            raise UsageError(f"{who} is writing this output", place=display_url(str(self._target)), fix=_WAIT) from None
        except OSError:
            return False
        return True


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


def release_all() -> None:
    """Give up all local claims of this process, which is about to end without more ado."""
    for claim in list(_locks):
        claim.release()


class RemoteClaim:
    """An object at a URL that names the run which writes the output. Others respect it while that may be alive.

    On this machine one can tell. Of another machine's run nobody knows whether it was killed, so that ``takes_over`` says
    whether its claim is void.
    """

    def __init__(self, fs: Any, path: str, out: str, *, takes_over: bool) -> None:
        self._fs = fs
        self.path = path
        self._out = out
        self._takes_over = takes_over
        self._token = ""

    def take(self) -> None:
        """Claim the output.

        Raises UsageError where another run has, and what the file system raises where it cannot be written to.
        """
        token = secrets.token_hex(8)
        claim = {"host": socket.gethostname(), "pid": os.getpid(), "token": token, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        data = json.dumps(claim).encode()
        found = self._read()
        if found is not None or not self._put(data, is_new=True):
            self._refuse(self._read() or {} if found is None else found)
            self._put(data)
        self._token = token
        _held.add(token)

    def check(self) -> None:
        """Raise StorageError where another run took the output over."""
        if self._token and (self._read() or {}).get("token") != self._token:
            self._forget()
            raise StorageError(
                "another run has taken this output over", place=display_url(self._out), fix="let that one end, or run again"
            )

    def release(self) -> None:
        """Give the claim up, where it is ours."""
        if self._token:
            self._forget()
            with contextlib.suppress(Exception):
                self._fs.rm_file(self.path)

    def _forget(self) -> None:
        _held.discard(self._token)
        self._token = ""

    def _put(self, data: bytes, *, is_new: bool = False) -> bool:
        """Put the claim; False where it is to be new, and another one is there by now."""
        try:
            (create_object if is_new else replace_object)(self._fs, self.path, data)
        except FileExistsError:
            if not is_new:
                raise
            return False
        except BaseException:
            with contextlib.suppress(Exception):  # half of it may be there
                self._fs.rm_file(self.path)
            raise
        return True

    def _read(self) -> dict[str, Any] | None:
        """Return the claim that is there; None where there is none, and an empty one where it cannot be read."""
        with contextlib.suppress(AttributeError):
            self._fs.invalidate_cache()
        try:
            value = json.loads(self._fs.cat_file(self.path))
        except FileNotFoundError:
            return None
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    def _refuse(self, found: dict[str, Any]) -> None:
        """Raise UsageError where the run that has the claim is alive, or may be."""
        place, since = display_url(self._out), f" since {found.get('time')}" if found.get("time") else ""
        if found.get("host") == socket.gethostname():
            if _is_alive(found):
                raise UsageError(f"process {found['pid']} is writing this output{since}", place=place, fix=_WAIT)
        elif not self._takes_over:
            who = f"a run on {found['host']}" if found.get("host") else "another run"
            raise UsageError(
                f"{who} is writing this output{since}, or was killed",
                place=place,
                fix="wait for it; where it is gone, --overwrite takes the output over",
            )


def _is_alive(claim: dict[str, Any]) -> bool:
    """Return whether the process of a claim of this machine is still at it."""
    pid = claim.get("pid")
    if not isinstance(pid, int) or pid <= 0:
        return False
    if pid == os.getpid():
        return claim.get("token") in _held
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def _is_same(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except OSError:
        return False
