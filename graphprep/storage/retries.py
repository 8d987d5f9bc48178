"""File systems whose requests are tried again, a little later each time, where a connection was lost or a server is busy."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from graphprep.storage.faults import error_code

_WAITS_S = (0.1, 0.3, 0.9, 2.7)  # before the second try, the third, ...; S3's own client has tried by then, too
_REPEATED = frozenset(
    {"info", "ls", "find", "glob", "cat_file", "cat", "cat_ranges", "pipe", "makedirs", "cp_file", "rm_file", "rm"}
)
_CODES = frozenset(("SlowDown", "ServiceUnavailable", "InternalError", "RequestTimeout", "429", "500", "502", "503", "504"))
_STATUSES = frozenset({408, 429, 500, 502, 503, 504})  # of HTTP
_NUMBERS = frozenset(
    {errno.ECONNRESET, errno.ECONNABORTED, errno.EPIPE, errno.ETIMEDOUT, errno.ENETUNREACH, errno.EHOSTUNREACH}
)
_CLASSES = frozenset(
    (
        *("ConnectionClosedError", "ReadTimeoutError", "ClientPayloadError", "ServerDisconnectedError", "IncompleteRead"),
        *("FSTimeoutError", "ResponseStreamingError", "IncompleteReadError"),
    )
)
_MAGIC = re.compile(r"[*?[]")
Result = TypeVar("Result")


def retried(work: Callable[[], Result]) -> Result:
    """Return what ``work`` does, which may be done any number of times. Raises what the last try did."""
    for wait_s in _WAITS_S:
        try:
            return work()
        except Exception as error:
            if not is_passing(error):
                raise
        time.sleep(wait_s)
    return work()


def is_passing(error: BaseException) -> bool:
    """Return whether the same request may succeed a little later."""
    if isinstance(error, ConnectionRefusedError):  # there is no server
        return False
    if isinstance(error, FileNotFoundError):  # fsspec says so of every failure of HTTP
        return error.__cause__ is not None and is_passing(error.__cause__)
    return (
        isinstance(error, ConnectionError | TimeoutError)
        or getattr(error, "errno", None) in _NUMBERS
        or getattr(error, "status", None) in _STATUSES
        or error_code(error) in _CODES
        or any(one.__name__ in _CLASSES for one in type(error).__mro__)
    )


class Retrying:
    """A file system of fsspec, of which requests that can be repeated are. All else is its own."""

    def __init__(self, fs: Any) -> None:
        self._fs = fs

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fs, name)
        if name not in _REPEATED:
            return found
        return lambda *args, **options: retried(lambda: found(*args, **options))

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        """Open a file; one that is read is opened again where that fails."""
        if "r" in mode:
            return retried(lambda: self._fs.open(path, mode, **options))
        return self._fs.open(path, mode, **options)

    def find(self, path: str, **options: Any) -> Any:
        """Return the files below a folder; fsspec's own way leaves out folders that could not be listed."""
        if options or hasattr(type(self._fs), "_find"):  # drivers with a way of their own
            return retried(lambda: self._fs.find(path, **options))
        return sorted(name for name, info in self._below(path).items() if info.get("type") != "directory")

    def glob(self, pattern: str, **options: Any) -> Any:
        """Return what matches a pattern, like ``find``; with ``detail=True``, as the driver describes it."""
        if hasattr(type(self._fs), "_find"):
            return retried(lambda: self._fs.glob(pattern, **options))
        from fsspec.utils import glob_translate

        root, folders = pattern[: _MAGIC.search(pattern).start()].rpartition("/")[0], pattern.count("/")  # type: ignore[union-attr]
        matches = re.compile(glob_translate(pattern.rstrip("/"))).match
        below = self._below(root or "/", None if "**" in pattern else folders - root.count("/"))
        found = {name: info for name, info in sorted(below.items()) if matches(name)}
        return found if options.get("detail") else list(found)

    def _below(self, path: str, most_deep: int | None = None) -> dict[str, dict[str, Any]]:
        """Return what lies below a folder, as the driver describes it, by path; nothing where there is none."""
        found: dict[str, dict[str, Any]] = {}
        folders = [(path, 1)]
        while folders:
            folder, depth = folders.pop()
            try:
                infos = self.ls(folder, detail=True)
            except (FileNotFoundError, NotADirectoryError):
                continue
            for info in infos:
                name = str(info["name"]).rstrip("/")
                if (name not in found and name != folder.rstrip("/")) or info.get("type") == "file":
                    found[name] = info
                    if info.get("type") == "directory" and (most_deep is None or depth < most_deep):
                        folders.append((name, depth + 1))
        return found

    def exists(self, path: str) -> bool:
        """Return whether there is a file or folder; fsspec's own says no, too, where nobody could tell."""
        return self._look(path) is not None

    def isdir(self, path: str) -> bool:
        """Return whether there is a folder."""
        return (self._look(path) or {}).get("type") == "directory"

    def isfile(self, path: str) -> bool:
        """Return whether there is a file."""
        return (self._look(path) or {}).get("type") == "file"

    def pipe_file(self, path: str, data: bytes, **options: Any) -> Any:
        """Put an object; one that is to be new and is there with the same bytes after a lost answer is ours."""
        failed: list[Exception] = []

        def put() -> Any:
            try:
                return self._fs.pipe_file(path, data, **options)
            except FileExistsError:
                if not failed or self.cat_file(path) != data:
                    raise
            except Exception as error:
                failed.append(error)
                raise

        return retried(put)

    def _look(self, path: str) -> dict[str, Any] | None:
        try:
            found: dict[str, Any] = retried(lambda: self._fs.info(path))
        except (FileNotFoundError, NotADirectoryError):
            return None
        return found
