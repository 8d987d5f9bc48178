"""Text files as blocks of whole records. Those of local files are read when they are needed, on any thread."""

from __future__ import annotations

import contextlib
import functools
import itertools
import os
import stat
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, GraphprepError, MemoryLimitError
from graphprep.model.protocols import InputStorage, Span, TextBlock
from graphprep.storage.faults import display_url, raise_plain

BOM = b"\xef\xbb\xbf"
MORE_BYTES = 1 << 20  # read at a time of a line that is longer than a block
COUNT_BYTES = 1 << 18  # fits L2 together with the booleans that comparing makes
_LF = 10
_TAIL_BYTES = 1 << 12  # looked at first for the last line feed of a block
_STORED_AHEAD = 2  # blocks asked of the system before anybody reads them
BLOCK_BYTES = 1 << 20  # of a text that is gone through block by block on one thread
_AHEAD_BLOCKS = 8  # of a remote file, fetched while a block is decoded: little beside what decoding it takes


def text_blocks(
    storage: InputStorage, span: Span, block_bytes: int = BLOCK_BYTES, limit_bytes: int | None = None
) -> Iterator[TextBlock]:
    """Read a text span as blocks of about ``block_bytes``, each cut after a record, in order.

    A record ends with a line feed, unless the span says otherwise. A block grows to hold one that is longer than it. Raises
    MemoryLimitError where that would take more than ``limit_bytes``, DataError where a quote is open then. A UTF-8 BOM at the
    beginning is dropped; an empty file has no block. What lies in a local file as it is, is read by who looks into the blocks.
    """
    with storage.open(span.url, _AHEAD_BLOCKS * block_bytes) as handle:
        text = None if span.record_ends else StoredText.of(handle, span.url)
        if text is not None:
            yield from _stored_blocks(text, span, block_bytes, limit_bytes)
        elif span.piece is not None:
            yield from _piece_blocks(storage, handle, span, block_bytes, limit_bytes)
        else:
            yield from read_blocks(handle, span, block_bytes, limit_bytes)


def read_blocks(
    handle: BinaryIO, span: Span, block_bytes: int = BLOCK_BYTES, limit_bytes: int | None = None
) -> Iterator[TextBlock]:
    """Read an open text file like ``text_blocks``."""
    cutter = _Cutter(handle, span, block_bytes, limit_bytes)
    while data := cutter.next_records():
        yield TextBlock(data, span, cutter.line, is_first=cutter.line == 1)
        cutter.line += count_lines(data)


def _piece_blocks(
    storage: InputStorage, handle: BinaryIO, span: Span, block_bytes: int, limit_bytes: int | None
) -> Iterator[TextBlock]:
    """Read a piece of an open text file like ``read_blocks``. Lines before it are counted only when they are asked for."""
    assert span.piece is not None
    begin, end = (_line_from(handle, place) for place in span.piece)
    handle.seek(begin)
    before = functools.cache(lambda: _lines_before(storage, span.url, begin))
    cutter = _Cutter(_Part(handle, end - begin), span, block_bytes, limit_bytes, before if begin else None)
    while data := cutter.next_records():
        yield _PieceBlock(data, span, cutter.line, before) if begin else TextBlock(data, span, cutter.line, cutter.line == 1)
        cutter.line += count_lines(data)


def _line_from(handle: BinaryIO, place: int) -> int:
    """Return where the first line begins that begins at a place or behind it."""
    if place <= 0:
        return 0
    handle.seek(place - 1)
    while (piece := handle.readline(MORE_BYTES)) and not piece.endswith(b"\n"):
        pass
    return handle.tell()


def _lines_before(storage: InputStorage, url: str, stop: int) -> int:
    lines = 0
    with storage.open(url) as handle:
        while stop > 0 and (piece := handle.read(min(MORE_BYTES, stop))):
            lines += count_lines(piece)
            stop -= len(piece)
    return lines


class _Part:
    """So many bytes of an open file."""

    def __init__(self, handle: BinaryIO, num_bytes: int) -> None:
        self._handle = handle
        self._left = num_bytes

    def read(self, num_bytes: int) -> bytes:
        data = self._handle.read(min(num_bytes, self._left))
        self._left -= len(data)
        return data


class _PieceBlock(TextBlock):
    """A block behind the first piece of its file; ``line`` counts from the beginning of its piece."""

    _line: int
    _before: Callable[[], int]

    def __init__(self, data: bytes, span: Span, line: int, before: Callable[[], int]) -> None:
        for name, value in (("data", data), ("span", span), ("is_first", False), ("_line", line), ("_before", before)):
            object.__setattr__(self, name, value)  # frozen, as all blocks are

    @cached_property
    def first_line(self) -> int:
        """Count the lines before."""
        return self._before() + self._line

    def __reduce__(self) -> tuple[Any, ...]:
        return TextBlock, (self.data, self.span, self.first_line, self.is_first)

    def begins_behind(self, line: int) -> bool:
        """Return whether the block begins behind a line: there is one at least before its piece."""
        return self._line >= line or self.first_line > line


def block_at(storage: InputStorage, span: Span, block_bytes: int, index: int) -> TextBlock:
    """Read again block number ``index`` of ``text_blocks(storage, span, block_bytes)``.

    Raises DataError where the file has become shorter meanwhile.
    """
    block = next(itertools.islice(text_blocks(storage, span, block_bytes), index, None), None)
    if block is None:
        raise DataError(
            "the file became shorter while it was read", place=display_url(span.url), fix="run again when it is complete"
        )
    return block


def place_of(block: TextBlock, at: int) -> str:
    """Return ``file:line:column`` of byte ``at`` of a block.

    The column counts characters from 1, bytes where the line is not UTF-8 up to there.
    """
    return _place(block, display_url(block.span.url), block.data.count(b"\n", 0, at), block.data.rfind(b"\n", 0, at) + 1, at)


def places_of(block: TextBlock) -> Callable[[int], str]:
    """Return ``place_of`` for many places of one block: its lines are counted once."""
    ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == _LF)
    url = display_url(block.span.url)

    def place(at: int) -> str:
        lines_before = int(ends.searchsorted(at))
        return _place(block, url, lines_before, int(ends[lines_before - 1]) + 1 if lines_before else 0, at)

    return place


def _place(block: TextBlock, url: str, lines_before: int, line_start: int, at: int) -> str:
    prefix = block.data[line_start:at]
    try:
        column = len(prefix.decode()) + 1
    except UnicodeDecodeError:
        column = len(prefix) + 1
    return f"{url}:{block.first_line + lines_before}:{column}"


def record_ends_of(block: TextBlock) -> NDArray[np.int64]:
    """Return the position behind every record of a block, the last one its size: int64[n]."""
    if block.span.record_ends is not None:
        return block.span.record_ends.ends(block.data)
    ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == _LF) + 1
    is_whole = not block.data or block.data.endswith(b"\n")
    return ends if is_whole else np.append(ends, len(block.data))


def count_lines(data: bytes) -> int:
    """Count the line feeds."""
    view = np.frombuffer(data, np.uint8)
    pieces = (view[start : start + COUNT_BYTES] for start in range(0, view.size, COUNT_BYTES))
    return sum(int(np.count_nonzero(piece == _LF)) for piece in pieces)


class _LineEnds:
    """Ends a record at every line feed."""

    def scan(self, piece: bytes, state: int) -> tuple[int, int]:
        return piece.rfind(b"\n") + 1, state


class _Cutter:
    """Cuts a stream after records. ``line`` is the number of the next line, counted in the stream.

    ``before`` counts the lines of the file before the stream, None where that is its beginning.
    """

    def __init__(
        self,
        handle: BinaryIO | _Part,
        span: Span,
        block_bytes: int,
        limit_bytes: int | None,
        before: Callable[[], int] | None = None,
    ) -> None:
        self.line = 1
        self._handle = handle
        self._before = before
        self._span = span
        self._block_bytes = max(block_bytes, 1)
        self._more_bytes = min(self._block_bytes, MORE_BYTES)
        self._limit = None if limit_bytes is None else max(self._block_bytes, limit_bytes)
        self._head = handle.read(len(BOM)).removeprefix(BOM) if before is None else b""
        self._rest = b""
        self._ends = span.record_ends or _LineEnds()
        self._state = 0

    def next_records(self) -> bytes:
        """Return about a block of whole records, all that is left at the end of the file."""
        pieces, total = [self._rest], len(self._rest)
        wanted = max(self._block_bytes - total, 1)
        while piece := self._read(wanted):
            wanted = self._more_bytes
            cut, self._state = self._ends.scan(piece, self._state)
            if cut:
                self._rest = piece[cut:]
                return b"".join((*pieces, memoryview(piece)[:cut]))
            pieces.append(piece)
            total += len(piece)
            if self._limit is not None and total > self._limit:
                raise self._too_long(b"".join(pieces), self._limit)
        self._rest = b""
        return b"".join(pieces)

    def _read(self, num_bytes: int) -> bytes:
        head, self._head = self._head, b""
        return head + self._handle.read(max(0, num_bytes - len(head)))

    def _too_long(self, data: bytes, limit: int) -> GraphprepError:
        """Word that a record, of which ``data`` is the beginning, takes too much: most often a quote does not close."""
        if self._span.record_ends is not None:
            quote = self._span.record_ends.open_quote(data)
            if quote >= 0:
                return DataError(
                    f"a quote does not close in the {limit} bytes that the memory limit leaves for a record",
                    place=place_of(TextBlock(data, self._span, self.line), quote),
                    fix="close it; double the quotes inside a quoted field",
                )
            return MemoryLimitError(
                f"the record has more than the {limit} bytes that the memory limit leaves for one",
                place=f"{display_url(self._span.url)}:{self.line}:1",
                fix="raise --memory-limit",
            )
        num_bytes = len(data)  # and of the rest of the line, which is measured without being kept
        while piece := self._handle.read(MORE_BYTES):
            end = piece.find(b"\n")
            num_bytes += len(piece) if end < 0 else end
            if end >= 0:
                break
        before = 0 if self._before is None else self._before()
        return _too_long(self._span.url, before + self.line, num_bytes, limit)


# ---- local files


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

    def narrow(self, start: int, stop: int) -> int:
        """Let the text end where a line begins at ``stop`` or behind it; return where one begins at ``start`` or behind it."""
        begin, self._size = self._line_from(start), self._line_from(stop)
        return begin

    def _line_from(self, place: int) -> int:
        return 0 if place <= 0 else min(self._size, self.next_line_feed(min(place, self._size) - 1) + 1)

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
        buffer = None
        with contextlib.suppress(IndexError):
            buffer = self._buffers.pop()
        if buffer is None or buffer.size < stop - start:
            buffer = np.empty(stop - start, np.uint8)
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

    def __reduce__(self) -> tuple[Any, ...]:
        return TextBlock, (self.data, self.span, self.first_line, self.is_first)

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


def _stored_blocks(text: StoredText, span: Span, block_bytes: int, limit_bytes: int | None) -> Iterator[StoredBlock]:
    """Cut a text into blocks like ``read_blocks``."""
    block_bytes = max(block_bytes, 1)
    limit = None if limit_bytes is None else max(block_bytes, limit_bytes)
    at = 0 if span.piece is None else text.narrow(*span.piece)
    index = min(at, 1)  # of what is no beginning of a file, it only tells that
    if at == 0 and text.read(0, text.reach(len(BOM))) == BOM:
        at = len(BOM)
    text.expect(at, _STORED_AHEAD * block_bytes)
    while text.reach(at + 1) > at:
        text.expect(at + _STORED_AHEAD * block_bytes, block_bytes)
        low, wanted = at, at + block_bytes
        stop = text.reach(wanted)
        while (cut := text.last_line_feed(low, stop)) == low:
            if limit is not None and stop - at > limit:
                line_end = text.next_line_feed(stop)
                raise _too_long(text.url, text.lines_before(at) + 1, line_end - at, limit)
            if stop < wanted:
                cut = stop
                break
            low, wanted = stop, stop + min(block_bytes, MORE_BYTES)
            stop = text.reach(wanted)
        yield StoredBlock(text, span, index, at, cut)
        at, index = cut, index + 1


def _too_long(url: str, line: int, num_bytes: int, limit: int) -> MemoryLimitError:
    """Say that a line does not fit."""
    return MemoryLimitError(
        f"the line has {num_bytes} bytes, and the memory limit leaves {limit} for a line",
        place=f"{display_url(url)}:{line}:1",
        fix=f"raise --memory-limit {-(-num_bytes // limit)}-fold, or break the line",
    )
