"""Claims on outputs at URLs: of two runs that write to one place, the second is told so when it begins."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import time
from typing import Any

from graphprep.model.errors import StorageError, UsageError
from graphprep.storage.faults import display_url
from graphprep.storage.private import WAIT
from graphprep.storage.write.conditional import create_object, replace_object

_held: set[str] = set()  # tokens of the claims of this process


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
