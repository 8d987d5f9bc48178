"""Text files as blocks of whole records."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, GraphprepError, MemoryLimitError
from graphprep.model.protocols import InputStorage, Span, TextBlock
from graphprep.storage.faults import display_url
from graphprep.storage.read.stored_text import BOM, COUNT_BYTES, MORE_BYTES, StoredText, stored_blocks, too_long

_LF = 10
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
            yield from stored_blocks(text, span, block_bytes, limit_bytes)
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
    """Cuts a stream after records. ``line`` is the number of the next line."""

    def __init__(self, handle: BinaryIO, span: Span, block_bytes: int, limit_bytes: int | None) -> None:
        self.line = 1
        self._handle = handle
        self._span = span
        self._block_bytes = max(block_bytes, 1)
        self._more_bytes = min(self._block_bytes, MORE_BYTES)
        self._limit = None if limit_bytes is None else max(self._block_bytes, limit_bytes)
        self._head = handle.read(len(BOM)).removeprefix(BOM)
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
        return too_long(self._span.url, self.line, num_bytes, limit)
