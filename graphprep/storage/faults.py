"""Failures of files, networks and drivers, in the user's words."""

from __future__ import annotations

import contextlib
import errno
import re
from collections.abc import Iterator

from graphprep.model.errors import GraphprepError, StorageError

_WORDS: dict[int, tuple[str, str]] = {
    errno.ENOENT: ("no such file or folder", "check the spelling of the path"),
    errno.EACCES: ("permission denied", "ask for access, or choose another place"),
    errno.EPERM: ("operation not permitted", "ask for access, or choose another place"),
    errno.EISDIR: ("is a folder, not a file", "name the files in it"),
    errno.ENOTDIR: ("a part of the path is a file, not a folder", "check the spelling of the path"),
    errno.EEXIST: ("exists already", "choose another place"),
    errno.ENOTEMPTY: ("exists already and is not empty", "choose another place"),
    errno.ENOSPC: ("no space left on device", "free some space, or choose another place"),
    errno.EDQUOT: ("disk quota exceeded", "free some space, or choose another place"),
    errno.EFBIG: ("the file grew beyond what the system allows", "raise the limit (ulimit -f), or choose another place"),
    errno.EROFS: ("read-only file system", "choose another place"),
    errno.EMFILE: ("too many open files", "raise the limit of open files (ulimit -n)"),
    errno.ENFILE: ("too many open files in the system", "close other programs"),
    errno.ENAMETOOLONG: ("the name is too long", "choose a shorter name"),
    errno.ELOOP: ("too many symbolic links", "check the links on the path"),
    errno.EIO: ("the device failed (input/output error)", "check the disk"),
    errno.ECONNREFUSED: ("connection refused", "check the address, and that the server runs"),
    errno.ETIMEDOUT: ("the connection timed out", "check the network, then run again"),
}

# Exceptions of drivers often carry no errno; their class tells as much.
_CLASSES: tuple[tuple[type[BaseException], int], ...] = (
    (FileNotFoundError, errno.ENOENT),
    (PermissionError, errno.EACCES),
    (IsADirectoryError, errno.EISDIR),
    (NotADirectoryError, errno.ENOTDIR),
    (FileExistsError, errno.EEXIST),
    (TimeoutError, errno.ETIMEDOUT),
    (ConnectionRefusedError, errno.ECONNREFUSED),
)

_STATUSES = {401: errno.EACCES, 403: errno.EACCES, 404: errno.ENOENT, 410: errno.ENOENT}  # of HTTP

_PASSWORD = re.compile(r"(?<=://)([^/@:\s]*):[^/@\s]*@")
_QUERY = re.compile(r"(https?://[^\s?]*)\?\S*")


def display_url(url: str) -> str:
    """Return the URL as messages print it: without passwords, and without the query of an HTTP URL (signatures)."""
    return _QUERY.sub(r"\1", _PASSWORD.sub(r"\1:…@", url))


def storage_error(error: BaseException, url: str, option: str = "") -> StorageError:
    """Put a failure of the file ``url`` into plain words; ``option`` is what chooses its place."""
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and cause is not None and (isinstance(cause, OSError) or hasattr(cause, "status")):
        error = cause  # fsspec says "not found" of every HTTP failure
    number = _find_number(error)
    if number is not None:
        message, fix = _WORDS[number]
    elif isinstance(error, NotImplementedError):
        message, fix = "not possible with this kind of URL", "use a local path or an object store"
    else:
        message, fix = _foreign(error), "check the URL, --storage-option and the network, then run again"
    if option and fix.endswith("choose another place"):
        fix = f"{fix} with {option}"
    return StorageError(message, place=display_url(url), fix=fix)


def _find_number(error: BaseException) -> int | None:
    """Return the errno that says what happened, None where the driver has its own words only."""
    number = getattr(error, "errno", None)
    if number in _WORDS:
        return int(number)
    status = getattr(error, "status", None)
    if status in _STATUSES:
        return _STATUSES[status]
    return next((code for cls, code in _CLASSES if isinstance(error, cls)), None)


def _foreign(error: BaseException) -> str:
    """Return one line of a driver's own words."""
    if isinstance(error, OSError) and error.strerror:
        return display_url(error.strerror)
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {display_url(lines[0])}" if lines else type(error).__name__


@contextlib.contextmanager
def plain_words(url: str, option: str = "") -> Iterator[None]:
    """Turn whatever fails inside into a ``StorageError`` that names ``url``; ``option`` is what chooses its place."""
    try:
        yield
    except (GraphprepError, MemoryError):
        raise
    except Exception as error:
        if getattr(error, "errno", None) == errno.ENOMEM:
            raise MemoryError(*error.args) from error
        raise storage_error(error, url, option) from error
