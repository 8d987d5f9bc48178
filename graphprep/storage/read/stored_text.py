"""Text in a local file, as blocks that are read when they are needed, on any thread, into buffers that are used again."""

from __future__ import annotations

import contextlib
import os
import stat
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, MemoryLimitError
from graphprep.model.protocols import Span, TextBlock
from graphprep.storage.faults import display_url, raise_plain

BOM = b"\xef\xbb\xbf"
MORE_BYTES = 1 << 20  # read at a time of a line that is longer than a block
_LF = 10
COUNT_BYTES = 1 << 18  # fits L2 together with the booleans that comparing makes
_TAIL_BYTES = 1 << 12  # looked at first for the last line feed of a block
_AHEAD_BLOCKS = 2  # asked of the system before anybody reads them


class StoredText:
    """A file that is read by ranges. Its descriptor is closed, and its buffers go, when the last block of it is dropped.

    ``wait`` is for a file that still grows: it returns how many bytes there are, once there are those it is asked for, at the
    end, or after so many seconds (None: however long that takes).
    """

    def __init__(self, descriptor: int, url: str, wait: Callable[[int, float | None], int] | None = None) -> None:
        self.url = url
        self._descriptor = os.dup(descriptor)
        weakref.finalize(self, os.close, self._descriptor)
        self._size = os.fstat(self._descriptor).st_size
        self._wait = wait
        self._buffers: list[NDArray[np.uint8]] = []
        self._lock = threading.Lock()
        self._starts, self._lines = [0], [0]  # line feeds before some positions, ascending

    @classmethod
    def of(cls, handle: Any, url: str) -> StoredText | None:
        """Return the regular file behind an open handle, or the one that a pipe is copied to; None where there is none."""
        growing = getattr(getattr(handle, "raw", None), "growing", None)
        if growing is not None:
            descriptor, wait = growing()
            return cls(descriptor, url, wait)
        with contextlib.suppress(OSError, AttributeError, ValueError):
            status = os.fstat(handle.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_size:
                return cls(handle.fileno(), url)
        return None

    def reach(self, stop: int) -> int:
        """Return ``stop`` once there are so many bytes, or the size where there will never be."""
        return min(stop, self._size if self._wait is None else self._wait(stop, None))

    def comes(self, stop: int, most_s: float) -> bool:
        """Return whether there are ``stop`` bytes, or will be soon; always where the file does not grow."""
        return self._wait is None or self._wait(stop, most_s) >= stop

    def read_into(self, target: NDArray[np.uint8], start: int) -> None:
        """Fill an array with what begins at ``start``. Raises DataError where the file ends before."""
        view, done = target.data, 0
        while done < len(view):
            try:
                count = os.preadv(self._descriptor, [view[done:]], start + done)
            except OSError as error:
                raise_plain(error, self.url)
            if not count:
                message = "the file became shorter while it was read"
                raise DataError(message, place=display_url(self.url), fix="run again when it is complete")
            done += count

    def read(self, start: int, stop: int) -> bytes:
        """Return bytes [start, stop)."""
        try:
            data = os.pread(self._descriptor, stop - start, start)
        except OSError as error:
            raise_plain(error, self.url)
        if len(data) == stop - start:
            return data
        rest = np.empty(stop - start - len(data), np.uint8)
        self.read_into(rest, start + len(data))
        return data + rest.tobytes()

    @contextlib.contextmanager
    def held(self, start: int, stop: int) -> Iterator[NDArray[np.uint8]]:
        """Hold bytes [start, stop) in one of the buffers, which are as many as were ever held at a time."""
        buffer = self._take_buffer(stop - start)
        try:
            data = buffer[: stop - start]
            self.read_into(data, start)
            data.flags.writeable = False
            yield data
        finally:
            self._buffers.append(buffer)

    def last_line_feed(self, start: int, stop: int) -> int:
        """Return the position behind the last line feed of [start, stop), ``start`` where there is none."""
        size = _TAIL_BYTES
        while stop > start:
            low = max(start, stop - size)
            found = self.read(low, stop).rfind(b"\n")
            if found >= 0:
                return low + found + 1
            stop, size = low, min(8 * size, COUNT_BYTES)
        return start

    def next_line_feed(self, start: int) -> int:
        """Return the position of the first line feed from ``start`` on, the size where there is none."""
        while (stop := self.reach(start + MORE_BYTES)) > start:
            found = self.read(start, stop).find(b"\n")
            if found >= 0:
                return start + found
            start = stop
        return start

    def lines_before(self, stop: int) -> int:
        """Count the line feeds before a position, from the nearest one below for which that was asked."""
        with self._lock:
            known = bisect_right(self._starts, stop) - 1
            at, lines = self._starts[known], self._lines[known]
            piece = np.empty(min(COUNT_BYTES, stop - at), np.uint8)
            while at < stop:
                data = piece[: stop - at]
                self.read_into(data, at)
                lines += int(np.count_nonzero(data == _LF))
                at += data.size
            if self._starts[known] < stop:
                self._starts.insert(known + 1, stop)
                self._lines.insert(known + 1, lines)
            return lines

    def expect(self, start: int, num_bytes: int) -> None:
        """Have the system read what will be needed soon."""
        if hasattr(os, "posix_fadvise"):
            with contextlib.suppress(OSError):
                os.posix_fadvise(self._descriptor, start, num_bytes, os.POSIX_FADV_WILLNEED)

    def _take_buffer(self, num_bytes: int) -> NDArray[np.uint8]:
        with contextlib.suppress(IndexError):
            buffer = self._buffers.pop()
            if buffer.size >= num_bytes:
                return buffer
        return np.empty(num_bytes, np.uint8)


class StoredBlock(TextBlock):
    """Bytes [start, stop) of a stored text: block number ``index`` of its file."""

    _text: StoredText
    _index: int
    _range: tuple[int, int]

    def __init__(self, text: StoredText, span: Span, index: int, start: int, stop: int) -> None:
        for name, value in (("span", span), ("is_first", index == 0), ("_text", text), ("_index", index)):
            object.__setattr__(self, name, value)  # frozen, as all blocks are
        object.__setattr__(self, "_range", (start, stop))

    @cached_property
    def data(self) -> bytes:
        """Read the bytes."""
        return self._text.read(*self._range)

    @cached_property
    def first_line(self) -> int:
        """Count the lines before."""
        return self._text.lines_before(self._range[0]) + 1

    @property
    def num_bytes(self) -> int:
        """Return the size of ``data``."""
        return self._range[1] - self._range[0]

    def begins_behind(self, line: int) -> bool:
        """Return whether the block begins behind a line: surely where more blocks than that lie before it."""
        return self._index >= line or self.first_line > line

    def next_comes(self, most_s: float) -> bool:
        """Return whether what follows is there, as much as this is, or will be soon."""
        return self._text.comes(self._range[1] + self.num_bytes, most_s)

    def held(self) -> AbstractContextManager[NDArray[np.uint8]]:
        """Hold ``data`` in a buffer."""
        return self._text.held(*self._range)


def stored_blocks(text: StoredText, span: Span, block_bytes: int, limit_bytes: int | None) -> Iterator[StoredBlock]:
    """Cut a text into blocks like ``spans.read_blocks``."""
    block_bytes = max(block_bytes, 1)
    limit = None if limit_bytes is None else max(block_bytes, limit_bytes)
    at = len(BOM) if text.read(0, text.reach(len(BOM))) == BOM else 0
    text.expect(at, _AHEAD_BLOCKS * block_bytes)
    index = 0
    while text.reach(at + 1) > at:
        text.expect(at + _AHEAD_BLOCKS * block_bytes, block_bytes)
        stop = _cut(text, at, block_bytes, limit)
        yield StoredBlock(text, span, index, at, stop)
        at, index = stop, index + 1


def _cut(text: StoredText, at: int, block_bytes: int, limit: int | None) -> int:
    """Return the position behind about a block of whole lines."""
    low, wanted = at, at + block_bytes
    stop = text.reach(wanted)
    while (cut := text.last_line_feed(low, stop)) == low:
        if limit is not None and stop - at > limit:
            line_end = text.next_line_feed(stop)
            raise too_long(text.url, text.lines_before(at) + 1, line_end - at, limit)
        if stop < wanted:
            return stop
        low, wanted = stop, stop + min(block_bytes, MORE_BYTES)
        stop = text.reach(wanted)
    return cut


def too_long(url: str, line: int, num_bytes: int, limit: int) -> MemoryLimitError:
    """Say that a line does not fit."""
    return MemoryLimitError(
        f"the line has {num_bytes} bytes, and the memory limit leaves {limit} for a line",
        place=f"{display_url(url)}:{line}:1",
        fix=f"raise --memory-limit {-(-num_bytes // limit)}-fold, or break the line",
    )
