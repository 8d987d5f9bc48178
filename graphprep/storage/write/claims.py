"""Claims on outputs at URLs: of two runs that write to one place, the second is told so when it begins."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import time
from collections.abc import Mapping, Sequence
from typing import Any

from graphprep.model.errors import StorageError, UsageError
from graphprep.model.metadata import METADATA_NAME
from graphprep.storage.faults import display_url
from graphprep.storage.private import WAIT
from graphprep.storage.write.conditional import create_object, replace_object

_held: set[str] = set()  # tokens of the claims of this process


class RemoteClaim:
    """An object at a URL that names the run which writes the output. Others respect it while that may be alive.

    On this machine one can tell. Of another machine's run nobody knows whether it was killed, so that ``takes_over`` says
    whether its claim is void. ``last`` is the file that is written after all others; it is told, as are the names of objects
    that could be anybody's, to whoever removes what a killed run left.
    """

    def __init__(self, fs: Any, path: str, out: str, *, takes_over: bool, last: str = METADATA_NAME) -> None:
        self._fs = fs
        self.path = path
        self._out = out
        self._takes_over = takes_over
        self._token = ""
        self._claim: dict[str, Any] = {"last": last, "names": []}
        self._before: dict[str, Any] | None = None  # a dead run's claim, which this one took the place of

    def take(self) -> None:
        """Claim the output.

        Raises UsageError where another run has, and what the file system raises where it cannot be written to.
        """
        token = secrets.token_hex(8)
        owner = {"host": socket.gethostname(), "pid": os.getpid(), "token": token, "time": time.strftime("%Y-%m-%dT%H:%M:%S%z")}
        self._claim |= owner
        found = self.read()
        if found is not None or not self._put(is_new=True):
            found = self.read() or {} if found is None else found
            self.refuse(found)
            self._claim["names"] = list(found.get("names", ()))  # what it left is still there
            self._put()
            self._before = found
        self._token = token
        _held.add(token)

    @property
    def dead_host(self) -> str | None:
        """Return the machine of the dead run whose place this one took; None where there was none, or nobody knows."""
        return None if self._before is None else self._before.get("host")

    def take_from(self, dead: Mapping[str, Any] | None) -> None:
        """Claim what the run of a claim has left, with all that this tells of it. Raises like ``take``."""
        told = dead or {}
        self._claim = {key: told.get(key, value) for key, value in self._claim.items()}
        self.take()

    def note(self, names: Sequence[str]) -> None:
        """Tell the names of objects before they are put. Raises StorageError like ``check``."""
        self.check()
        self._claim["names"] = list(names)
        self._put()

    def check(self) -> None:
        """Raise StorageError where another run took the output over."""
        if self._token and (self.read() or {}).get("token") != self._token:
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

    def restore(self) -> None:
        """Give the claim up, where it is ours, to the dead run that had it: what that left is still there."""
        if not self._token or self._before is None:
            self.release()
            return
        self._claim = self._before
        with contextlib.suppress(Exception):
            self._put()
        self._forget()

    def abandon(self) -> None:
        """Leave the claim there as that of a dead run."""
        self._forget()

    def _forget(self) -> None:
        _held.discard(self._token)
        self._token = ""

    def _put(self, *, is_new: bool = False) -> bool:
        """Put the claim; False where it is to be new, and another one is there by now."""
        data = json.dumps(self._claim).encode()
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

    def read(self) -> dict[str, Any] | None:
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

    def refuse(self, found: dict[str, Any]) -> None:
        """Raise UsageError where the run that has the claim is alive, or may be."""
        place, since = display_url(self._out), f" since {found.get('time')}" if found.get("time") else ""
        if found.get("host") == socket.gethostname():
            if _is_alive(found):
                raise UsageError(f"process {found['pid']} is writing this output{since}", place=place, fix=WAIT)
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
