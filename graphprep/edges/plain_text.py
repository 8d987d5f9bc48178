"""A plain text edge list in memory or mapped: cut into blocks of whole lines, and parsed."""

from __future__ import annotations

import itertools
import mmap
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.numbers import OK
from graphprep.kernels.cpu.text.pairs import TOO_WIDE, count_lines, parse_pairs, parse_weighted_pairs
from graphprep.model.errors import DataError, UsageError
from graphprep.storage.faults import display_url, plain_words
from graphprep.storage.read.streams import find_codec
from graphprep.storage.read.urls import STDIN, Storage, local_path

Ints = NDArray[Any]

BLOCK_BYTES = 4 << 20  # some 2^18 edges, see ``array_rows.CHUNK``
_BOM = b"\xef\xbb\xbf"
_MAGIC_BYTES = 16
_SHOWN = 40  # bytes of a faulty line
_FIRST_LINE = re.compile(rb"(?:[ \t]*(?:[#%][^\n]*)?\r?\n)*[ \t]*\d+[ \t]*([^\d\s])?")


@dataclass(frozen=True)
class PlainText:
    """A text, whose edges begin at ``start``; ``delimiter`` as ``pairs.parse_pairs`` takes it; ``name`` for messages."""

    data: bytes | mmap.mmap
    buf: NDArray[np.uint8]
    start: int
    delimiter: bytes
    name: str

    @property
    def num_bytes(self) -> int:
        """Return the size without what stands in front."""
        return self.buf.size - self.start

    def spans(self, block_bytes: int | None = None) -> list[tuple[int, int]]:
        """Cut the text into blocks [start, stop) of whole lines, all but the last of about ``block_bytes``."""
        size = block_bytes or BLOCK_BYTES
        cuts = [self.start]
        while cuts[-1] < self.buf.size:
            cuts.append(self.line_end(cuts[-1] + size - 1))
        return list(itertools.pairwise(cuts))

    def line_end(self, at: int) -> int:
        """Return the position behind the line that holds a byte."""
        found = self.data.find(b"\n", at)
        return self.buf.size if found < 0 else found + 1

    def parse(self, span: tuple[int, int], src: Ints, dst: Ints, weight: NDArray[np.float64] | None = None) -> int | None:
        """Parse a block into unsigned columns that have room for its lines. Returns how many rows there are.

        None: an ID is too wide for the columns. Raises DataError for a line that is not plain.
        """
        if weight is None:
            rows, code, at = parse_pairs(self.buf, *span, self.delimiter, src, dst)
        else:
            rows, code, at = parse_weighted_pairs(self.buf, *span, self.delimiter, src, dst, weight)
        if code == OK:
            return rows
        if code == TOO_WIDE:
            return None
        raise self._fault(at, weight is not None)

    def place(self, at: int) -> str:
        """Return the file and line of a byte."""
        return f"{self.name}:{count_lines(self.buf, 0, at)}"

    def _fault(self, at: int, weighted: bool) -> DataError:
        line = bytes(self.buf[at : min(at + _SHOWN, self.line_end(at))]).decode("utf-8", "replace").rstrip("\r\n")
        wanted = "two IDs and a weight" if weighted else "two IDs"
        between = f"{self.delimiter.decode()!r} between them" if self.delimiter else "blanks between them"
        return DataError(
            f"expected {wanted}, {between}, found {line!r}",
            place=self.place(at),
            fix="convert the file with graphprep convert, which reads other texts, too",
        )


def open_plain_text(path: str | os.PathLike[str], delimiter: str | None, skip_lines: int) -> PlainText:
    """Map a local file, or read one that is compressed or remote, and find where its edges begin.

    ``delimiter``: one character, empty: runs of blanks, None: what stands in the first line. Raises UsageError, StorageError.
    """
    url = os.fspath(path)
    data = _map(url) or _read(url)
    text = PlainText(data, np.frombuffer(data, np.uint8), 0, b"", display_url(url))
    start = len(_BOM) if data[: len(_BOM)] == _BOM else 0
    for _ in range(skip_lines):
        start = text.line_end(start) if start < len(data) else start
    if delimiter is None:
        match = _FIRST_LINE.match(data, start)
        between = match[1] or b"" if match else b""
    else:
        between = delimiter.encode()
        if len(between) > 1 or between in (b"\n", b"\r") or between.isdigit():
            raise UsageError(f"delimiter must be one ASCII character, found {delimiter!r}", fix='pass "," or "" for blanks')
        between = b"" if between == b" " else between
    return PlainText(data, text.buf, start, between, text.name)


def _map(url: str) -> mmap.mmap | None:
    """Map a local, uncompressed file; None for all else."""
    path = local_path(url)
    if path is None or url == STDIN or not Path(path).is_file():
        return None
    with plain_words(url), Path(path).open("rb") as handle:
        if find_codec(handle.read(_MAGIC_BYTES)) or not os.fstat(handle.fileno()).st_size:
            return None
        return mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def _read(url: str) -> bytes:
    with Storage() as storage:
        return storage.read_bytes(url)
