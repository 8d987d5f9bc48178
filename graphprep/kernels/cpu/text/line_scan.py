"""Count lines, numbers and comments of a text, piece by piece, before it is decoded. A kernel never raises."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit

_LF, _SPACE, _PERCENT = 10, 32, 37
_BLANKS = bytes(range(33))
_MOST_RUNS = 1 << 20  # of comment lines that are remembered: 16 MiB


@dataclass
class LineScan:
    """Counts what goes by; feed it consecutive pieces of a text, cut anywhere.

    ``num_lines`` counts line feeds, ``num_words`` runs of bytes other than blanks outside comments. ``runs`` are the runs of
    comment lines (``%`` after blanks) as (first line, number of lines), lines from 0; ``is_full`` says that there are more than
    can be remembered. With ``records``, ``num_records`` counts the lines that are neither blank nor a comment; ``last_record``
    is the line of the last of them, ``surplus`` that of the first behind ``most_records``; -1 where there is none.
    """

    records: bool = True
    most_records: int = 2**63 - 1
    num_lines: int = 0
    num_words: int = 0
    num_records: int = 0
    last_record: int = -1
    surplus: int = -1
    runs: list[tuple[int, int]] = field(default_factory=list)
    is_full: bool = False
    _state: int = 0
    _last: int = _LF

    def feed(self, piece: bytes) -> None:
        """Count a piece."""
        buf = np.frombuffer(piece, np.uint8)
        if not buf.size:
            return
        lines, words, percents, blanks = _count_plain(buf, self._last)
        uneven = self.records and (blanks or self._state == _AFTER_BLANKS or self.num_records + lines >= self.most_records)
        if percents or uneven or self._state == _IN_COMMENT:
            self._feed_any(buf)
        else:
            self._feed_plain(piece, int(lines), int(words))
        self._last = piece[-1]

    def _feed_plain(self, piece: bytes, lines: int, words: int) -> None:
        """Count a piece without comments; where records are counted, each of its lines is one."""
        ends = piece[-1] == _LF
        if self.records:
            # A record counts where it begins: at the piece's start unless it goes on, and behind each line feed but the last.
            started = (self._state == _AT_START) + lines - ends
            self.last_record = self.num_lines + lines - ends if started else self.last_record
            self.num_records += started
        self.num_lines += lines
        self.num_words += words
        if lines:
            self._state = _AT_START
        rest = piece[piece.rfind(b"\n") + 1 :]
        if rest and self._state != _IN_RECORD:
            self._state = _IN_RECORD if rest.strip(_BLANKS) else _AFTER_BLANKS

    def _feed_any(self, buf: NDArray[np.uint8]) -> None:
        counts = np.array([self.num_lines, self.num_words, self.num_records, self.last_record, self.surplus], np.int64)
        comments = np.empty(np.count_nonzero(buf == _PERCENT), np.int64)
        self._state, num_comments = _count_any(buf, self._state, self._last, self.most_records, counts, comments)
        self.num_lines, self.num_words, self.num_records, self.last_record, self.surplus = counts.tolist()
        if num_comments:
            self._remember(comments[:num_comments])

    def _remember(self, lines: NDArray[np.int64]) -> None:
        bounds = np.concatenate([[0], np.flatnonzero(np.diff(lines) != 1) + 1, [lines.size]])
        for first, size in zip(lines[bounds[:-1]].tolist(), np.diff(bounds).tolist(), strict=True):
            if self.runs and sum(self.runs[-1]) == first:
                self.runs[-1] = (self.runs[-1][0], self.runs[-1][1] + size)
            elif len(self.runs) < _MOST_RUNS:
                self.runs.append((first, size))
            else:
                self.is_full = True


_AT_START, _AFTER_BLANKS, _IN_RECORD, _IN_COMMENT = 0, 1, 2, 3


@njit(cache=True, nogil=True)
def _count_plain(buf, last):
    """Return the numbers of line feeds, of beginnings of words, of percent signs, and of lines that begin with a blank."""
    first = buf[0]
    lines = np.int64(first == _LF)
    words = np.int64(first > _SPACE and last <= _SPACE)
    percents = np.int64(first == _PERCENT)
    blanks = np.int64(last == _LF and first <= _SPACE)
    before, byte = buf[:-1], buf[1:]
    for i in range(byte.size):  # without branches: compiled to vector instructions
        lines += byte[i] == _LF
        words += (byte[i] > _SPACE) & (before[i] <= _SPACE)
        percents += byte[i] == _PERCENT
        blanks += (before[i] == _LF) & (byte[i] <= _SPACE)
    return lines, words, percents, blanks


@njit(cache=True, nogil=True)
def _count_any(buf, state, last, most_records, counts, comments):
    """Go through a piece byte by byte; fill ``counts`` and the lines of comments. Returns (state, number of comments)."""
    line, words, records, last_record, surplus = counts[0], counts[1], counts[2], counts[3], counts[4]
    num_comments = 0
    for byte in buf:
        if byte == _LF:
            state = _AT_START
            line += 1
        elif byte <= _SPACE:
            if state == _AT_START:
                state = _AFTER_BLANKS
        elif state == _IN_COMMENT:
            pass
        elif state != _IN_RECORD and byte == _PERCENT:
            state = _IN_COMMENT
            comments[num_comments] = line
            num_comments += 1
        else:
            if state != _IN_RECORD:
                state = _IN_RECORD
                records += 1
                last_record = line
                if records == most_records + 1:
                    surplus = line
            if last <= _SPACE:
                words += 1
        last = byte
    counts[0], counts[1], counts[2], counts[3], counts[4] = line, words, records, last_record, surplus
    return state, num_comments
