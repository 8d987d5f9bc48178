"""Remote files by ranges: several at a time, fetched ahead of who reads, from one and the same state of the file."""

from __future__ import annotations

import contextlib
import io
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, TypeVar

from graphprep.model.errors import StorageError
from graphprep.storage.drivers import protocol_of, protocols_of
from graphprep.storage.faults import display_url, error_code, plain_words
from graphprep.storage.read.pins import AGAIN, CHANGED, Pin, check_same
from graphprep.storage.retries import retried

MOST_FETCHES = 8  # at a time: where one connection gives 80 MB/s, eight fill a fast network
_LEAST_PIECE = 256 << 10  # a request costs tens of milliseconds whatever it brings
_MOST_PIECE = 4 << 20
_SLACK_BYTES = 1 << 18  # by which the pieces of one buffered read may end later than it

Item = TypeVar("Item")
Result = TypeVar("Result")


class RemoteFile:
    """A file that ranges are read of, on any number of threads."""

    def __init__(self, fs: Any, target: str, url: str) -> None:
        self.url = url
        self._fs = fs
        self._target = target
        self._handles: list[Any] = []
        first = fs.open(target, "rb", block_size=_MOST_PIECE, cache_type="none") if _is_ranged(fs) else None
        self._by_range: Callable[[int, int], bytes] | None = getattr(first, "_fetch_range", None)
        self._is_pinned = "IfMatch" in getattr(first, "read_kw", ())  # the server compares the tag at every request
        self.pin = Pin.of(getattr(first, "details", None) or fs.info(target))

    def fetch(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop), all of them. Raises StorageError where the file has changed or ends before."""

        def fetch() -> bytes:
            data = bytes(self._by_range(start, stop) if self._by_range else self._by_handle(start, stop))
            if len(data) != stop - start:
                raise ShortReadError(start + len(data))
            return data

        try:
            with plain_words(self.url):
                return whole_range(fetch, self.url, self.pin.size)
        except StorageError as error:
            if error_code(error.__cause__ or error) not in ("PreconditionFailed", "412"):
                raise
            raise StorageError(CHANGED, place=error.place, fix=AGAIN) from error

    def check(self) -> None:
        """Raise StorageError where the file is no longer what it was when it was opened."""
        if not self._is_pinned:
            with plain_words(self.url):
                self._fs.invalidate_cache(self._target)
                check_same(self.pin, Pin.of(self._fs.info(self._target)), self.url)

    def close(self) -> None:
        """Close what was opened."""
        while self._handles:
            with contextlib.suppress(Exception):
                self._handles.pop().close()

    def _by_handle(self, start: int, stop: int) -> bytes:
        """Read through an open file that no other thread uses."""
        try:
            handle = self._handles.pop()
        except IndexError:
            handle = self._fs.open(self._target, "rb")
        try:
            handle.seek(start)
            data = read_fully(handle, stop - start)
        except Exception:
            with contextlib.suppress(Exception):
                handle.close()
            raise
        self._handles.append(handle)
        return data


class ShortReadError(ConnectionError):
    """A range of a file that came to its end at byte ``args[0]`` of the file, before the range's own."""


def whole_range(fetch: Callable[[], bytes], url: str, size: int) -> bytes:
    """Return what ``fetch`` does, which is tried again where a range comes short. Raises StorageError where it always does."""
    try:
        return retried(fetch)
    except ShortReadError as error:
        message = f"the file ended after {error.args[0]} of {size} bytes"
        raise StorageError(message, place=display_url(url), fix=AGAIN) from None


def can_range(fs: Any, url: str) -> bool:
    """Return whether several ranges of a file can be read at a time."""
    return len(protocols_of(url)) == 1 and (_is_ranged(fs) or protocol_of(url) in ("hdfs", "webhdfs"))


def _is_ranged(fs: Any) -> bool:
    """Return whether the driver is one of the asynchronous ones, whose open files fetch ranges without a state of their own."""
    return bool(getattr(fs, "async_impl", False))


def is_past_end(error: BaseException) -> bool:
    """Return whether a store refused a range because the file ends before it."""
    return error_code(error) in ("InvalidRange", "416")


def cut_range(start: int, stop: int) -> list[tuple[int, int]]:
    """Cut a range into pieces that are fetched one by one: at least one."""
    return [(at, min(at + _MOST_PIECE, stop)) for at in range(start, stop, _MOST_PIECE)] or [(start, stop)]


def read_fully(file: Any, num_bytes: int) -> bytes:
    """Read ``num_bytes``; fewer only at the end of the file."""
    pieces: list[bytes] = []
    while num_bytes > 0 and (piece := file.read(num_bytes)):
        pieces.append(bytes(piece))
        num_bytes -= len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


class Fetchers:
    """The threads that fetch. They start with the first fetch, and end with ``close``."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    def submit(self, work: Callable[..., Result], *args: Any) -> Future[Result]:
        """Begin ``work(*args)`` on a thread."""
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(MOST_FETCHES, thread_name_prefix="graphprep-fetch")
            return self._pool.submit(work, *args)

    def run_all(self, work: Callable[[Item], object], items: Sequence[Item]) -> None:
        """Do ``work(item)`` for every item, several at a time. A failure is raised when nothing is under way any more."""
        pending = [self.submit(work, item) for item in items]
        try:
            for future in pending:
                future.result()
        finally:
            for future in pending:
                future.cancel()
            wait(pending)

    def fetch_all(self, fetch: Callable[[int, int], bytes], ranges: Sequence[tuple[int, int]]) -> Iterator[bytes]:
        """Yield the bytes of ranges, in order, fetched several at a time. What is fetched and not yet taken is bounded."""
        pending: deque[Future[bytes]] = deque()
        try:
            for start, stop in ranges:
                pending.append(self.submit(fetch, start, stop))
                if len(pending) > 2 * MOST_FETCHES:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            for future in pending:
                future.cancel()

    def close(self) -> None:
        """Drop what has not begun; what has ends with its request."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown(wait=False, cancel_futures=True)


class RangeSource(io.RawIOBase):
    """A remote file as a stream that can seek.

    Reading on and on fetches up to ``ahead_bytes`` ahead of the reader, more the longer it goes on; a read elsewhere fetches
    what it asks for, a large one in several pieces at a time. Bytes that were fetched and not yet read count as memory.
    """

    def __init__(self, file: RemoteFile, fetchers: Fetchers, ahead_bytes: int) -> None:
        super().__init__()
        self._file = file
        self._fetchers = fetchers
        self._piece_bytes = min(_MOST_PIECE, max(_LEAST_PIECE, ahead_bytes // MOST_FETCHES))
        self._most_pieces = max(1, min(MOST_FETCHES, ahead_bytes // self._piece_bytes))
        self._size = file.pin.size
        self._at = 0
        self._data = memoryview(b"")  # what was fetched and not yet read, from _at on
        self._pending: deque[Future[bytes]] = deque()  # what comes after it
        self._frontier = 0  # where that ends
        self._depth = 0  # pieces to fetch ahead
        self._asked = -1  # where the last read ends, -1 after a jump

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the current byte."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte."""
        target = offset + (self._at if whence == io.SEEK_CUR else self._size if whence == io.SEEK_END else 0)
        if target < 0:
            raise ValueError("negative seek position")
        if self._at <= target <= self._at + len(self._data):
            self._data = self._data[target - self._at :]
        elif target != self._at:
            self._forget()
            self._frontier = target
        self._at = target
        return target

    def readinto(self, buffer: Any) -> int:
        """Read at most ``len(buffer)`` bytes; 0 at the end."""
        wanted = min(len(buffer), self._size - self._at)
        if wanted <= 0:
            return 0
        if not self._data:
            self._fetch(wanted)
            self._data = memoryview(self._pending.popleft().result())
        count = min(wanted, len(self._data))
        buffer[:count] = self._data[:count]
        self._data = self._data[count:]
        self._at += count
        if self._at == self._size and self._size > self._piece_bytes:
            self._file.check()
        return count

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._forget()
            self._file.close()
        super().close()

    def _fetch(self, wanted: int) -> None:
        """Have the next ``wanted`` bytes fetched, and what lies behind them where one read follows on another."""
        end = self._at + wanted
        if self._asked < 0:
            self._asked = end
        elif end > self._asked + _SLACK_BYTES:  # not the rest of a read that comes in pieces
            self._asked = end
            self._depth = min(self._most_pieces, 2 * self._depth or 1)
        stop = min(self._size, max(end, self._at + self._depth * self._piece_bytes))
        while self._frontier < stop and len(self._pending) < self._most_pieces:
            piece_stop = min(self._frontier + self._piece_bytes, self._size if self._depth else stop)
            self._pending.append(self._fetchers.submit(self._file.fetch, self._frontier, piece_stop))
            self._frontier = piece_stop

    def _forget(self) -> None:
        for future in self._pending:
            future.cancel()
        self._pending.clear()
        self._data = memoryview(b"")
        self._depth, self._asked = 0, -1
