"""Input files at paths and URLs. fsspec is imported for the first URL; local paths do without it."""

from __future__ import annotations

import contextlib
import errno
import glob
import io
import itertools
import os
import posixpath
import stat
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

from graphprep.model.errors import GraphprepError, StorageError, UsageError
from graphprep.storage.drivers import LOCAL_PROTOCOLS, URL, Drivers, parse_options, protocol_of, refuse_malformed
from graphprep.storage.faults import display_url, plain_words, raise_plain, storage_error
from graphprep.storage.private import TMP_DIR_OPTION, PrivateFolder
from graphprep.storage.read.streams import Decompressed, LocalFile, Sequential, Source, find_codec

if TYPE_CHECKING:
    from graphprep.storage.read.pins import Pin
    from graphprep.storage.read.ranges import Fetchers
    from graphprep.storage.read.spool import Spool

STDIN = "-"
_BOM = b"\xef\xbb\xbf"
_COPY_BYTES = 1 << 20
_LOCAL_BUFFER_BYTES = 1 << 17
_REMOTE_BUFFER_BYTES = 1 << 20
_RANGED_BUFFER_BYTES = 1 << 18  # what looking at a file's beginning fetches
_AHEAD_BYTES = 16 << 20
_RECORD_BYTES = 1 << 28


class Expanded(NamedTuple):
    """The files that a command line names, in order, and what to tell the user about the choice."""

    files: tuple[str, ...]
    messages: tuple[str, ...] = ()


class DirEntry(NamedTuple):
    """A file or folder in a folder: its own name, and its URL."""

    name: str
    url: str
    is_dir: bool


def local_path(url: str) -> str | None:
    """Return the path of a local file, None for a URL of another place."""
    match = URL.match(url)
    if match is None:
        return url
    if match[1] in LOCAL_PROTOCOLS and not match[2]:
        return url[match.end() :]
    return None


@lru_cache(maxsize=4096)
def _join_local(folder: str, path: str) -> str:
    """Join local paths; the files of a store, time and again."""
    return str(Path(folder) / path)


class Storage:
    """Reads files wherever they are: paths, ``file://``, ``-`` (stdin), and every URL that fsspec has a driver for.

    ``options`` are those of ``--storage-option``: ``key`` for every URL, ``<protocol>.key`` for URLs of one protocol
    (``s3.endpoint_url``); further dots nest (``s3.client_kwargs.region_name``). What can be read once only (stdin, FIFOs) is
    spooled into a private folder in ``tmp_dir`` while it is read; ``close`` removes it.
    """

    def __init__(self, options: Mapping[str, str] | None = None, tmp_dir: str | None = None) -> None:
        self.ahead_bytes = _AHEAD_BYTES
        self.record_bytes = _RECORD_BYTES
        self._given = (options, tmp_dir)
        self._options = parse_options(options) if options else {}
        if tmp_dir is not None:  # refused now where it cannot hold files, not when the first is needed, perhaps hours later
            try:
                os.scandir(tmp_dir).close()
                if not os.access(tmp_dir, os.W_OK | os.X_OK):
                    raise PermissionError
            except Exception as error:
                raise_plain(error, tmp_dir, TMP_DIR_OPTION)
        self._private = PrivateFolder(tmp_dir)
        self._spools: dict[str, Spool] = {}
        self._paths: dict[str, str] = {}  # of what is read from another path than its own
        self.origins: dict[str, str] = {}  # what was in memory, by the name that stands for its file
        self._pins: dict[str, Pin] = {}
        self._opened: set[str] = set()

    def __enter__(self) -> Storage:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as a fresh one with the same options: workers of a trainer have their own."""
        return (Storage, self._given)

    def close(self) -> None:
        """Remove the spooled files, and let no fetch begin any more."""
        if "fetchers" in self.__dict__:
            self.fetchers.close()
        for spool in self._spools.values():
            spool.close()
        self._spools.clear()
        self._paths.clear()
        self._private.remove()

    @cached_property
    def fetchers(self) -> Fetchers:
        """Return what fetches ranges of remote files."""
        from graphprep.storage.read.ranges import Fetchers

        return Fetchers()

    @cached_property
    def _drivers(self) -> Drivers:
        return Drivers(self._options)

    @property
    def tmp_dir(self) -> str:
        """Return the folder for temporary files."""
        return self._private.parent

    def add_private(self, url: str, origin: str) -> str:
        """Return the path of a file yet to be written, private and gone with ``close``, that is read as ``url``.

        ``origin`` says what its content was.
        """
        path = str(Path(self._private.make()) / f"memory-{len(self.origins)}")
        self._paths[url], self.origins[url] = path, origin
        return path

    # ---- reading ----

    def open(self, url: str, ahead_bytes: int | None = None) -> BinaryIO:
        """Open for reading, seekable, decompressed where the content is compressed.

        Of a remote file up to ``ahead_bytes`` (default: ``self.ahead_bytes``), as stored, are fetched ahead of who reads on and
        on. Raises StorageError where the file cannot be opened or read, DataError where its compressed stream is truncated or
        corrupt.
        """
        handle = self.open_stored(url, ahead_bytes)
        if handle.seekable() or not isinstance(handle, io.BufferedReader):
            head = handle.read(16)
            handle.seek(0)
        else:
            head = handle.peek(16)
        codec = find_codec(head[:16])
        if codec is None:
            return handle
        first: list[BinaryIO] = [handle]

        def begin() -> Decompressed:
            return Decompressed(first.pop() if first else self.open_stored(url, ahead_bytes), codec, url)

        def settle() -> BinaryIO:
            return self._spool_stream(io.BufferedReader(begin(), _COPY_BYTES), url)

        return io.BufferedReader(Sequential(begin, settle), _COPY_BYTES)

    def open_stored(self, url: str, ahead_bytes: int | None = None) -> BinaryIO:
        """Open for reading the bytes as stored. What comes through a pipe can be read while it comes."""
        path = self._readable_path(url)
        spool = self._spools.get(url)
        if spool is not None and not spool.is_complete:
            return spool.open()
        if path is not None:
            with plain_words(url):
                file = LocalFile(path, url)
            self._pin_opened(url, os.fstat(file.fileno()))
            return io.BufferedReader(file, _LOCAL_BUFFER_BYTES)
        fs, target = self.filesystem(url)
        with plain_words(url):
            return self._open_remote(fs, target, url, self.ahead_bytes if ahead_bytes is None else ahead_bytes)

    def size(self, url: str) -> int:
        """Return the size in bytes as stored; -1 where a server does not say. Waits for the end of a pipe."""
        path = self._readable_path(url, is_whole=True)
        try:
            if path is not None:
                return Path(path).stat().st_size
            from graphprep.storage.read.pins import Pin

            fs, target = self.filesystem(url)
            info = fs.info(target)
            if info.get("type") != "directory":
                self._pin(url, Pin.of(info))
        except Exception as error:
            raise_plain(error, url)
        return -1 if info.get("size") is None else int(info["size"])

    def stamp(self, url: str) -> str:
        """Return what changes when a file does, for people: its size, and when it was changed or what a server tells."""
        num_bytes, path = self.size(url), self._readable_path(url)
        changed = self._pins[url].tag if path is None and url in self._pins else ""
        if path is not None:
            with plain_words(url):
                seconds, rest = divmod(Path(path).stat().st_mtime_ns, 10**9)
            changed = f"{time.strftime('%Y-%m-%d %H:%M:%S', time.gmtime(seconds))}.{rest:09} UTC"
        return f"{num_bytes:,} bytes" + (f" ({changed})" if changed else "")

    def head(self, url: str, num_bytes: int) -> bytes:
        """Return the first bytes, decompressed, without a UTF-8 BOM."""
        with self.open(url) as handle:
            data = handle.read(num_bytes + len(_BOM))
        return data.removeprefix(_BOM)[:num_bytes]

    def read_bytes(self, url: str) -> bytes:
        """Return the whole content, decompressed."""
        with self.open(url) as handle:
            return handle.read()

    def read_aside(self, url: str) -> bytes:
        """Return the whole content of a file that is no input: whether it changes later counts for nothing."""
        was_opened = url in self._opened
        try:
            return self.read_bytes(url)
        finally:
            if not was_opened:
                self._opened.discard(url)

    @property
    def opened(self) -> frozenset[str]:
        """Return the files that were read so far."""
        return frozenset(self._opened)

    def read_range(self, url: str, start: int, stop: int) -> bytes:
        """Return bytes [start, stop) of a file as stored; fewer where it ends before."""
        return self.read_ranges(url, [(start, stop)])[0]

    def read_ranges(self, url: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Return several ranges of bytes [start, stop) of a file as stored, fetched several at a time where it is remote.

        A range is shorter where the file ends before.
        """
        from graphprep.storage.read.ranges import ShortReadError, cut_range, read_fully, whole_range

        path = self._readable_path(url, is_whole=True)
        if path is not None:
            found = []
            with plain_words(url), Path(path).open("rb", buffering=0) as file:
                for start, stop in ranges:
                    file.seek(start)
                    found.append(read_fully(file, stop - start))
            return found
        fs, target = self.filesystem(url)

        size = self._pins[url].size if url in self._pins else 0

        def fetch_once(start: int, stop: int) -> bytes:
            data = _fetch_range(fs, target, start, stop)
            if start + len(data) < min(stop, size):
                raise ShortReadError(start + len(data))
            return data

        def fetch(start: int, stop: int) -> bytes:
            with plain_words(url):
                return whole_range(partial(fetch_once, start, stop), url, size)

        pieces = [cut_range(start, stop) for start, stop in ranges]
        if len(pieces) == 1 and len(pieces[0]) == 1:
            return [fetch(*ranges[0])]
        fetched = self.fetchers.fetch_all(fetch, [piece for cut in pieces for piece in cut])
        return [b"".join(itertools.islice(fetched, len(cut))) for cut in pieces]

    # ---- looking ----

    def exists(self, url: str) -> bool:
        """Return whether there is a file or folder, or a link to nothing. Raises StorageError where nobody may look."""
        path = self._local(url)
        if url == STDIN:
            return True
        if path is None:
            with plain_words(url):
                fs, target = self.filesystem(url)
                return bool(fs.exists(target))
        try:
            os.lstat(path)
        except (OSError, ValueError) as error:
            if isinstance(error, PermissionError) or getattr(error, "errno", None) == errno.ELOOP:
                raise_plain(error, url)
            return False
        return True

    def is_taken(self, url: str) -> bool:
        """Return whether there is more than an empty folder, which an output may fill. Raises StorageError like ``exists``."""
        if not self.exists(url):
            return False
        path = self._local(url)
        try:
            if url == STDIN:
                return True
            if path is not None:
                return not Path(path).is_dir() or bool(os.listdir(path))  # noqa: PTH208
            fs, target = self.filesystem(url)
            return not (fs.isdir(target) and not fs.find(target))
        except Exception as error:
            raise_plain(error, url)

    def is_dir(self, url: str) -> bool:
        """Return whether there is a folder. An HTTP URL is one when it ends with a slash."""
        path = self._local(url)
        if path is None and protocol_of(url) == "http":
            return url.endswith("/")
        try:
            if path is not None:
                return Path(path).is_dir()
            fs, target = self.filesystem(url)
            return bool(fs.isdir(target))
        except Exception as error:
            raise_plain(error, url)

    def is_file(self, url: str) -> bool:
        """Return whether there is a file, readable or not, or a link to one. Raises StorageError where nobody may look."""
        path = local_path(url)
        with plain_words(url):
            if path is not None:
                return Path(path).is_file()
            fs, target = self.filesystem(url)
            return bool(fs.isfile(target))

    def refuse_stream(self, url: str) -> None:
        """Raise StorageError where a pipe, a socket or a device stands for a stored file: reading it might never end."""
        if self._is_stream(url):
            raise StorageError(
                "is a pipe, a socket or a device, not a file",
                place=display_url(url),
                fix="put the file back, or make the folder again",
            )

    def is_local(self, url: str) -> bool:
        """Return whether the bytes lie in a local file (stdin does, once spooled)."""
        return self._local(url) is not None

    def local_path(self, url: str) -> str | None:
        """Return the path of the local file that holds the bytes as stored, None for other URLs and while a pipe is read."""
        path = self._readable_path(url)
        return None if self.is_arriving(url) else path

    def is_arriving(self, url: str) -> bool:
        """Return whether a stream is still on its way: nobody knows its size yet."""
        self._readable_path(url)
        return url in self._spools and not self._spools[url].is_complete

    def is_spooled(self, url: str) -> bool:
        """Return whether what is read could be read but once, or was in memory, and was copied."""
        return url in self._spools or url in self.origins

    def list_dir(self, url: str) -> tuple[DirEntry, ...]:
        """List a folder, not recursively, in the order of the names' UTF-8 bytes."""
        path = self._local(url)
        with plain_words(url):
            if path is not None:
                entries = [DirEntry(entry.name, self.join(url, entry.name), entry.is_dir()) for entry in os.scandir(path)]
            else:
                fs, target = self.filesystem(url)
                entries = [_remote_entry(fs, info) for info in fs.ls(target, detail=True) if not _is_same(info, target)]
        return tuple(sorted(entries, key=lambda entry: os.fsencode(entry.name)))

    def join(self, base: str, path: str) -> str:
        """Resolve a relative path (or absolute path, or URL) against the folder ``base``.

        An absolute path stays in the file system of ``base``: ``/b`` against ``hdfs://host/a`` is ``hdfs://host/b``.
        """
        match = URL.match(base)
        if path in self._paths:
            return path
        if URL.match(path) or match is None:
            return path if URL.match(path) else _join_local(base, path)
        rest = base[match.end() :]
        if match[1] in (*LOCAL_PROTOCOLS, "memory"):
            host, folder = "", rest
        else:
            host, _, folder = rest.partition("/")
            folder = f"/{folder}"
        joined = posixpath.normpath(posixpath.join(folder, path))
        return f"{match[0]}{host}{joined}"

    # ---- expanding ----

    def expand(self, inputs: Sequence[str]) -> Expanded:
        """Find the files that inputs name: files, folders (not recursive), globs, ``-`` for stdin.

        They stand in the given order, those of a folder or glob by the UTF-8 bytes of their paths. Raises StorageError where an
        input does not exist, or where there is no file at all; UsageError where stdin is named twice.
        """
        files: list[str] = []
        messages: list[str] = []
        for url in inputs:
            found, notes = self._expand_one(url)
            files += found
            messages += notes
        if files and self._local(files[0]) is None:
            self._refuse_empty(files)
        if list(inputs).count(STDIN) > 1:
            raise UsageError("standard input can be read once only", place=STDIN, fix="name '-' once")
        if not files:
            places = ", ".join(display_url(url) for url in inputs)
            raise StorageError("there is no file to read", place=places, fix="name files, or folders that hold files")
        return Expanded(tuple(files), tuple(messages))

    def _refuse_empty(self, files: Sequence[str]) -> None:
        """Refuse files of HDFS that are all empty: it shows a file before anything is in it, so writing it may have failed."""
        if all(protocol_of(url) == "hdfs" and self.size(url) == 0 for url in files):
            raise StorageError(
                "the file is empty (0 bytes): writing it failed, or is still under way",
                place=display_url(files[0]),
                fix="write it again, or run again when it is complete",
            )

    def _expand_one(self, url: str) -> tuple[list[str], list[str]]:
        if url == STDIN or self._is_stream(url):
            self._readable_path(url)
            return [url], []
        if self.is_dir(url):
            return _choose(url, self.list_dir(url))
        if self.exists(url):
            return [url], []
        if not _has_magic(url):
            raise self._why_missing(url)
        entries = self._glob(url)
        if not entries:
            raise StorageError("no file matches the pattern", place=display_url(url), fix="check the pattern, and quote it")
        return _choose(url, entries)

    def match(self, pattern: str) -> list[str]:
        """Return the files and folders that a pattern names."""
        return [entry.url for entry in self._glob(pattern)]

    def _why_missing(self, url: str) -> StorageError:
        """Tell a missing file from a folder that may not be searched, or a server that does not answer."""
        path = local_path(url)
        try:
            if path is not None:
                Path(path).stat()
            else:
                fs, target = self.filesystem(url)
                fs.info(target)
        except GraphprepError:
            raise
        except Exception as error:
            return storage_error(error, url)
        return storage_error(FileNotFoundError(), url)

    def _glob(self, pattern: str) -> list[DirEntry]:
        path = local_path(pattern)
        if path is not None:
            prefix = pattern[: len(pattern) - len(path)]
            names = sorted(glob.glob(path, recursive=True, include_hidden=True), key=os.fsencode)  # noqa: PTH207 - absolute, too
            return [DirEntry(Path(name).name, prefix + name, Path(name).is_dir()) for name in names]
        fs, target = self.filesystem(pattern)
        with plain_words(pattern):
            infos = fs.glob(target, detail=True)
        entries = [_remote_entry(fs, info) for info in infos.values()]
        return sorted(entries, key=lambda entry: entry.url.encode("utf-8", "surrogateescape"))

    def _is_stream(self, url: str) -> bool:
        """Return whether a local path names a FIFO, a socket or a device, which can be read once only."""
        path = self._local(url)
        if path is None or url in self._paths:
            return False
        try:
            mode = os.stat(path).st_mode  # noqa: PTH116 - before every read
        except (OSError, ValueError):  # the latter for a NUL in the path
            return False
        return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))

    # ---- places ----

    def _local(self, url: str) -> str | None:
        """Return the local path, that of the spooled copy where there is one."""
        return self._paths.get(url) or local_path(url)

    def _readable_path(self, url: str, *, is_whole: bool = False) -> str | None:
        """Return a local path that can be read from its beginning as often as needed, None for other URLs.

        ``is_whole``: when nothing is missing there any more.
        """
        if url not in self._paths and (url == STDIN or self._is_stream(url)):
            self._paths[url] = self._spool(url)
        if is_whole and url in self._spools:
            self._spools[url].wait()
        return self._local(url)

    def _spool(self, url: str) -> str:
        """Begin to copy stdin or a FIFO into a file; return its path."""
        from graphprep.storage.read.spool import Spool, stored_stdin

        if url == STDIN and sys.stdin is None:
            raise StorageError("standard input is closed", place=STDIN, fix="pipe the data in, or name a file")
        if url == STDIN and (stored := stored_stdin(sys.stdin.buffer)) is not None:
            return stored
        path = Path(self._private.make()) / f"stream-{len(self._spools)}"
        with plain_words(url):
            owned = url != STDIN
            source: Any = open(cast(str, local_path(url)), "rb", buffering=0) if owned else sys.stdin.buffer  # noqa: SIM115, PTH123
        self._spools[url] = Spool(source, url, path, owned=owned)
        return self._spools[url].path

    def _spool_stream(self, source: BinaryIO, url: str) -> BinaryIO:
        """Copy a stream into a file without a name, and return it, at its beginning."""
        folder = self._private.make()
        with plain_words(folder, TMP_DIR_OPTION):
            target = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 - the caller closes it
        try:
            with source:
                _copy(source, target, url, folder)
            target.seek(0)
        except BaseException:
            target.close()
            raise
        return cast(BinaryIO, target)

    # ---- drivers ----

    def filesystem(self, url: str) -> tuple[Any, str]:
        """Return the fsspec file system of a URL, and the path in it.

        Raises UsageError where the driver is not installed or not known.
        """
        return self._drivers.open(url)

    def load_drivers(self, urls: Sequence[str]) -> None:
        """Load what the URLs need, so that a driver that is missing is told at once, and the memory of the others is known.

        Raises UsageError, also for what is meant as a URL and is none.
        """
        for url in urls:
            if ":" in url:
                refuse_malformed(url)
            if local_path(url) is None:
                fs, _ = self.filesystem(url)
                if protocol_of(url) == "s3" and hasattr(fs, "connect"):
                    with plain_words(url):
                        fs.connect()

    def _pin(self, url: str, pin: Pin) -> None:
        """Hold a file against what it was when it was first looked at."""
        from graphprep.storage.read.pins import check_same

        check_same(self._pins.setdefault(url, pin), pin, url)

    def _pin_opened(self, url: str, found: os.stat_result) -> None:
        """Hold a local file that is read from now on against what it was; nothing where that is a copy of what was piped."""
        if url not in self._paths and stat.S_ISREG(found.st_mode):
            from graphprep.storage.read.pins import Pin

            self._opened.add(url)
            self._pin(url, Pin.of_local(found))

    def watch(self, url: str) -> None:
        """Let ``check_unchanged`` look at a file that others read; nothing where that is a copy of what was piped."""
        if url in self._paths or url == STDIN:
            return
        found = self._state(url)
        if found is not None:
            self._opened.add(url)
            self._pin(url, found)

    def check_unchanged(self) -> None:
        """Raise StorageError where a file that was read is no longer what it was then; expect nothing of any from here on.

        One that was removed does not count: what was open of it stayed whole.
        """
        from graphprep.storage.read.pins import check_same

        read = [(url, self._pins[url]) for url in sorted(self._opened & self._pins.keys())]
        self._pins, self._opened = {}, set()

        def check(one: tuple[str, Pin]) -> None:
            found = self._state(one[0])
            if found is not None:
                check_same(one[1], found, one[0])

        for one in read:
            if self.is_local(one[0]):
                check(one)
        remote = [one for one in read if not self.is_local(one[0])]
        if remote:
            self.fetchers.run_all(check, remote)

    def _state(self, url: str) -> Pin | None:
        """Return what a file is now, None where it is gone."""
        from graphprep.storage.read.pins import Pin

        path = local_path(url)
        with plain_words(url):
            try:
                if path is not None:
                    return Pin.of_local(Path(path).stat())
                fs, target = self.filesystem(url)
                fs.invalidate_cache(target)
                return Pin.of(fs.info(target))
            except FileNotFoundError:
                return None

    def forget(self, url: str) -> None:
        """Expect nothing any more of the files below ``url``, which were written meanwhile."""
        for old in [one for one in self._pins if one.startswith(url)]:
            del self._pins[old]

    def _open_remote(self, fs: Any, target: str, url: str, ahead_bytes: int) -> BinaryIO:
        from graphprep.storage.read.pins import Pin
        from graphprep.storage.read.ranges import RangeSource, RemoteFile, can_range

        self._opened.add(url)
        protocol = protocol_of(url)
        if protocol == "memory":
            self._pin(url, Pin.of(fs.info(target)))
            # The file system hands all openers the same object, position included.
            return io.BytesIO(fs.cat_file(target))
        if protocol != "http" and can_range(fs, url):
            file = RemoteFile(fs, target, url)
            self._pin(url, file.pin)
            return io.BufferedReader(RangeSource(file, self.fetchers, ahead_bytes), _RANGED_BUFFER_BYTES)
        if protocol != "http":
            return io.BufferedReader(Source(fs.open(target, "rb"), url), _REMOTE_BUFFER_BYTES)

        def begin() -> Source:
            with plain_words(url):
                return Source(fs.open(target, "rb", block_size=0), url)

        def settle() -> BinaryIO:
            with plain_words(url), contextlib.suppress(ValueError):  # how fsspec says that the server knows no ranges
                file = fs.open(target, "rb")
                if file.seekable():
                    file.seek(-1, io.SEEK_END)
                    file.read(1)
                    return io.BufferedReader(Source(file, url), _REMOTE_BUFFER_BYTES)
            return self._spool_stream(io.BufferedReader(begin(), _COPY_BYTES), url)

        return io.BufferedReader(Sequential(begin, settle), _REMOTE_BUFFER_BYTES)


def _remote_entry(fs: Any, info: Mapping[str, Any]) -> DirEntry:
    name = str(info["name"]).rstrip("/")
    return DirEntry(posixpath.basename(name), str(fs.unstrip_protocol(info["name"])), info.get("type") == "directory")


def _is_same(info: Mapping[str, Any], target: str) -> bool:
    """Return whether a listing's entry is the folder itself, as object stores with folder markers have it."""
    return str(info["name"]).rstrip("/") == target.rstrip("/")


def _has_magic(url: str) -> bool:
    # In an HTTP URL a question mark begins the query.
    return any(char in url for char in ("*[" if protocol_of(url) == "http" else "*?["))


def _choose(url: str, entries: Sequence[DirEntry]) -> tuple[list[str], list[str]]:
    """Take the files; count what is skipped."""
    spelled = set(url.split("/"))  # what the user wrote out is wanted, whatever it begins with
    hidden, folders, files = 0, 0, []
    for entry in entries:
        parts = entry.url.rstrip("/").split("/")
        if any(part.startswith((".", "_")) for part in parts if part not in spelled):
            hidden += 1
        elif entry.is_dir:
            folders += 1
        else:
            files.append(entry.url)
    skipped = []
    if folders:
        skipped.append(f"{folders} subfolder{'s' if folders > 1 else ''}")
    if hidden:
        skipped.append(f"{hidden} name{'s that begin' if hidden > 1 else ' that begins'} with '.' or '_'")
    messages = [f"{display_url(url)}: skipped {' and '.join(skipped)}"] if skipped else []
    if not files:
        messages.append(f"{display_url(url)}: holds no file to read")
    return files, messages


def _fetch_range(fs: Any, target: str, start: int, stop: int) -> bytes:
    """Return a range of a remote file; what there is of it where the file ends before."""
    if start >= stop:
        return b""
    try:
        data = bytes(fs.cat_file(target, start=start, end=stop))
    except Exception as error:
        from graphprep.storage.read.ranges import is_past_end

        if is_past_end(error):
            return b""
        raise
    # A server that knows no ranges sends the whole file.
    return data if len(data) <= stop - start else data[start:stop]


def _pieces(source: Any, url: str) -> Iterator[bytes]:
    while True:
        with plain_words(url):
            piece = source.read(_COPY_BYTES)
        if not piece:
            return
        yield piece


def _copy(source: Any, target: Any, url: str, folder: str) -> None:
    """Copy a stream; a failure to read names ``url``, a failure to write the folder."""
    for piece in _pieces(source, url):
        with plain_words(folder, TMP_DIR_OPTION):
            target.write(piece)
    with plain_words(folder, TMP_DIR_OPTION):
        target.flush()
