"""Failures of files, networks and drivers, in the user's words."""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from typing import NoReturn

from graphprep.model.errors import GraphprepError, StorageError
from graphprep.model.shown.texts import display_url

_AFTER_WRITES = "run again when nothing writes to it"
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
    errno.ELOOP: ("a loop of symbolic links, or too many of them", "check the links on the path"),
    errno.EIO: ("the device failed (input/output error)", "check the disk"),
    errno.EFAULT: ("a mapped file became shorter while it was read", _AFTER_WRITES),
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

_MOST_CAUSES = 4  # of an error: s3fs fails over answers of Ceph that hold no words, behind what botocore and s3fs raise

_STATUSES = {401: errno.EACCES, 403: errno.EACCES, 404: errno.ENOENT, 410: errno.ENOENT}  # of HTTP

_KEYS = "check the credentials (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE)"
_BUCKET = "check the bucket's name, and which server is asked (AWS_ENDPOINT_URL or --storage-option s3.endpoint_url=URL)"
_ANSWER = "check the address (AWS_ENDPOINT_URL or --storage-option s3.endpoint_url=URL), and that the server runs"
_LATER = "wait a little, then run again"
# What object stores answer, by the code of their error.
_CODES: dict[str, tuple[str, str]] = {
    "NoSuchBucket": ("there is no such bucket", _BUCKET),
    "InvalidBucketName": ("this is no name for a bucket", _BUCKET),
    "AccessDenied": ("permission denied", f"{_KEYS}, and what they are allowed to do with the bucket"),
    "AllAccessDisabled": ("permission denied", f"{_KEYS}, and what they are allowed to do with the bucket"),
    "403": ("permission denied", f"{_KEYS}, and what they are allowed to do with the bucket"),
    "401": ("permission denied", f"{_KEYS}, and what they are allowed to do with the bucket"),
    "InvalidAccessKeyId": ("the server does not know the access key", _KEYS),
    "SignatureDoesNotMatch": ("the server refuses the signature: the secret key is wrong", _KEYS),
    "ExpiredToken": ("the credentials have expired", "renew them, then run again"),
    "InvalidToken": ("the server refuses the session token", _KEYS),
    "RequestTimeTooSkewed": ("this machine's clock is wrong", "set the clock, then run again"),
    "PermanentRedirect": ("the bucket is in another region", "set AWS_DEFAULT_REGION to the bucket's region"),
    "AuthorizationHeaderMalformed": ("the bucket is in another region", "set AWS_DEFAULT_REGION to the bucket's region"),
    "301": ("the bucket is in another region", "set AWS_DEFAULT_REGION to the bucket's region"),
    "SlowDown": ("the server asks for fewer requests", _LATER),
    "ServiceUnavailable": ("the server is not available", _LATER),
    "InternalError": ("the server failed", _LATER),
    "500": ("the server failed", _LATER),
    "503": ("the server is not available", _LATER),
    "QuotaExceeded": ("the server's quota is used up", "free some space, or choose another place"),
    "PreconditionFailed": ("exists already, or changed meanwhile", "choose another place, or run again"),
}
# Exceptions of S3 clients that carry no code, by the name of their class: their modules are not imported for this.
_CLASS_NAMES: dict[str, tuple[str, str]] = {
    "NoCredentialsError": (
        "there are no credentials",
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE; for public data --storage-option s3.anon=true",
    ),
    "PartialCredentialsError": ("the credentials are incomplete", _KEYS),
    "CredentialRetrievalError": ("the credentials cannot be had", _KEYS),
    "TokenRetrievalError": ("the credentials cannot be had", _KEYS),
    "ProfileNotFound": ("there is no such profile of credentials", "check AWS_PROFILE"),
    "EndpointConnectionError": ("the server does not answer", _ANSWER),
    "ConnectTimeoutError": ("the server does not answer", _ANSWER),
    "ReadTimeoutError": ("the server stopped answering", "check the network, then run again"),
    "ConnectionClosedError": ("the server closed the connection", "check the network, then run again"),
    "SSLError": ("the server's certificate or TLS was refused", "check the address; http:// and https:// differ"),
    "FileExpired": ("the file changed while it was read", "run again when it is complete"),
}


# What neither number nor class tells.
_PHRASES: dict[str, tuple[str, str]] = {
    "No NameNode hosts found": ("the name node is not known", "write hdfs://HOST:PORT/…, or set HADOOP_CONF_DIR"),
    "embedded null byte": ("no file's name holds a NUL", "correct the path"),
}


def lost_file(url: str) -> StorageError:
    """Say that a file of a store, whose size is known, ended before."""
    return StorageError("the file became shorter while it was read", place=display_url(url), fix=_AFTER_WRITES)


def storage_error(error: BaseException, url: str, option: str = "") -> StorageError:
    """Put a failure of the file ``url`` into plain words; ``option`` is what chooses its place."""
    cause = error.__cause__
    if isinstance(error, FileNotFoundError) and cause is not None and (isinstance(cause, OSError) or hasattr(cause, "status")):
        error = cause  # fsspec says "not found" of every HTTP failure
    message, fix = _words_of(error)
    if option and fix.endswith("choose another place"):
        fix = f"{fix} with {option}"
    return StorageError(message, place=display_url(url), fix=fix)


def _words_of(error: BaseException) -> tuple[str, str]:
    """Return what happened, and what to do about it."""
    code = error_code(error)
    if code in _CODES:
        return _CODES[code]
    for cls in type(error).__mro__:
        if cls.__name__ in _CLASS_NAMES:
            return _CLASS_NAMES[cls.__name__]
    number = _find_number(error)
    if number is not None and not (code and number == errno.EIO):  # s3fs says EIO of all that it has no word for
        return _WORDS[number]
    if isinstance(error, NotImplementedError):
        return "not possible with this kind of URL", "use a local path or an object store"
    for phrase, words in _PHRASES.items():
        if phrase in str(error):
            return words
    return _foreign(error), "check the URL, --storage-option and the network, then run again"


def error_code(error: BaseException) -> str:
    """Return the code of an object store's error (``NoSuchBucket``, ``403``), an empty text where there is none."""
    one: BaseException | None = error
    for _ in range(_MOST_CAUSES):
        response = getattr(one, "response", None)
        if isinstance(response, dict):
            return str(response.get("Error", {}).get("Code", ""))
        one = None if one is None else one.__cause__ or one.__context__
    return ""


def _find_number(error: BaseException) -> int | None:
    """Return the errno that says what happened, None where the driver has its own words only."""
    number = getattr(error, "errno", None)
    if number in _WORDS:
        return int(number)
    if number is None and "Connection refused" in str(error):  # hdfs-native
        return errno.ECONNREFUSED
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
    """Do what ``raise_plain`` does about whatever fails inside."""
    try:
        yield
    except Exception as error:
        raise_plain(error, url, option)


def raise_plain(error: Exception, url: str, option: str = "") -> NoReturn:
    """Raise a ``StorageError`` that names ``url`` for what failed there; ``option`` is what chooses its place.

    Mistakes of ours stay what they are: a file's name that was never defined is no fault of the network.
    """
    if isinstance(error, GraphprepError | MemoryError | NameError | AssertionError):
        raise error
    if "://" not in url and isinstance(error, AttributeError | LookupError | TypeError):
        raise error  # no driver had a hand in it
    if getattr(error, "errno", None) == errno.ENOMEM:
        raise MemoryError(*error.args) from error
    raise storage_error(error, url, option) from error


__all__ = ["display_url", "error_code", "plain_words", "raise_plain", "storage_error"]
