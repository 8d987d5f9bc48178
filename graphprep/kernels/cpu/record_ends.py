"""Where the records of delimited text end, where a quoted field may hold line breaks (RFC 4180). A kernel never raises.

A quote opens a field only as its first byte; inside, two quotes are one, and a single one closes. So a quote in the middle of a
field, which is a fault, never hides the ends of the records behind it. ``split_fields`` of ``delimited`` reads by the same
rules.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphprep.kernels.cpu.numbers import find_byte

# What stands before a byte. A piece of a file is read on from the state behind the piece before; a file begins with the first
# one. In the first three, nothing but blanks stands before it on its line, so that a comment may begin.
LINE_START, BLANK_FIELD, BLANKS, FIELD_START, PLAIN, QUOTED, AFTER_QUOTE, COMMENT = range(8)

_MATCHED_SHIFT = 3  # above the state: how many bytes of the delimiter stand before
_STATE = 7
_TAB, _LF, _SPACE, _QUOTE, _HASH, _PERCENT = 9, 10, 32, 34, 35, 37


def is_open(state: int) -> bool:
    """Return whether a quoted field is open in a state."""
    return state & _STATE == QUOTED


def scan_records(piece: bytes, delimiter: bytes, comments: bool, state: int) -> tuple[int, int]:
    """Return the position behind the last end of a record in a piece, 0 where none ends, and the state behind the piece."""
    if b'"' not in piece and not is_open(state):
        end = piece.rfind(b"\n") + 1
        return end, _state_behind(piece, end, delimiter, comments, LINE_START if end else state)
    _, end, state = _scan(_bytes(piece), _bytes(delimiter), comments, state, np.empty(0, np.int64))
    return end, state


def list_record_ends(data: bytes, delimiter: bytes, comments: bool) -> NDArray[np.int64]:
    """Return the position behind every record of a block, lines that are none included: int64[n], the last one its size."""
    ends = np.empty(data.count(b"\n") + 1, np.int64)
    count, end, _ = _scan(_bytes(data), _bytes(delimiter), comments, LINE_START, ends)
    if end < len(data):
        ends[count] = len(data)
        count += 1
    return ends[:count]


def _bytes(data: bytes) -> NDArray[np.uint8]:
    return np.frombuffer(data, np.uint8)


def _state_behind(piece: bytes, start: int, delimiter: bytes, comments: bool, state: int) -> int:
    """Return the state behind the last line of a piece, in which nothing ends."""
    _, _, state = _scan(_bytes(piece)[start:], _bytes(delimiter), comments, state, np.empty(0, np.int64))
    return int(state)


@njit(cache=True, nogil=True)
def _scan(buf, delimiter, comments, state, ends):
    """Fill ``ends`` as far as it has room. Returns (records, position behind the last one, state)."""
    matched = state >> _MATCHED_SHIFT
    state &= _STATE
    single = delimiter.size == 1
    count = 0
    last = 0
    at = 0
    while at < buf.size:
        if state == QUOTED:
            at = find_byte(buf, at, buf.size, _QUOTE) + 1
            if at <= buf.size:
                state = AFTER_QUOTE
            continue
        if state == PLAIN and single:
            while at < buf.size and buf[at] != _LF and buf[at] != delimiter[0]:
                at += 1
            if at == buf.size:
                break
        byte = buf[at]
        at += 1
        if byte == _LF:
            if count < ends.size:
                ends[count] = at
            count += 1
            last = at
            state = LINE_START
            matched = 0
        elif state == COMMENT:
            continue
        elif byte == _QUOTE:
            state = QUOTED if state in (LINE_START, BLANK_FIELD, FIELD_START, AFTER_QUOTE) else PLAIN
            matched = 0
        elif comments and state <= BLANKS and byte in (_HASH, _PERCENT):
            state = COMMENT
        else:
            only_blanks = state <= BLANKS and byte in (_SPACE, _TAB)
            matched = matched + 1 if byte == delimiter[matched] else int(byte == delimiter[0])
            if matched == delimiter.size:
                state = BLANK_FIELD if only_blanks else FIELD_START
                matched = 0
            else:
                state = BLANKS if only_blanks else PLAIN
    return count, last, state | (matched << _MATCHED_SHIFT)
