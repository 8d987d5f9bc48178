"""Where the records of delimited text end, where a quoted field may hold line breaks (RFC 4180). A kernel never raises.

A quote opens a field only as its first byte; inside, two quotes are one, and a single one closes. So a quote in the middle of a
field, which is a fault, never hides the ends of the records behind it. An escape, where there is one, makes text of the byte
behind it, or of a CR LF. ``split_fields`` of ``delimited`` reads by the same rules.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.delimited import is_one_of
from graphprep.kernels.cpu.text.numbers import find_byte

# What stands before a byte. A piece of a file is read on from the state behind the piece before; a file begins with the first
# one. In the first three, nothing but blanks stands before it on its line, so that a comment may begin.
LINE_START, BLANK_FIELD, BLANKS, FIELD_START, PLAIN, QUOTED, AFTER_QUOTE, COMMENT = range(8)

_MATCHED_SHIFT = 3  # above the state: how many bytes of the delimiter stand before; or, with an escape, one of these
_UNESCAPED, _ESCAPED, _ESCAPED_CR = range(3)
_STATE = 7
_TAB, _LF, _CR, _SPACE, _QUOTE = 9, 10, 13, 32, 34


@dataclass(frozen=True)
class RecordRules:
    """What bytes mean. ``comments`` are the bytes that begin a comment.

    With ``keep_tabs`` a tab that separates is no blank, so that no comment begins behind it. With ``escape`` (empty: none) the
    delimiter is one byte, and quotes mean something only where ``quoted``.
    """

    delimiter: bytes
    comments: bytes = b""
    keep_tabs: bool = False
    escape: bytes = b""
    quoted: bool = True


def scan_records(piece: bytes, rules: RecordRules, state: int) -> tuple[int, int]:
    """Return the position behind the last end of a record in a piece, 0 where none ends, and the state behind the piece."""
    hides_ends = b'"' in piece or state & _STATE == QUOTED
    if rules.escape:
        hides_ends = (hides_ends and rules.quoted) or rules.escape in piece or state >> _MATCHED_SHIFT != _UNESCAPED
    if not hides_ends:
        end = piece.rfind(b"\n") + 1
        _, _, state = _scan(piece[end:], rules, LINE_START if end else state, np.empty(0, np.int64))
        return end, state
    _, end, state = _scan(piece, rules, state, np.empty(0, np.int64))
    return end, state


def list_record_ends(data: bytes, rules: RecordRules) -> NDArray[np.int64]:
    """Return the position behind every record of a block, lines that are none included: int64[n], the last one its size."""
    ends = np.empty(data.count(b"\n") + 1, np.int64)
    count, end, _ = _scan(data, rules, LINE_START, ends)
    if end < len(data):
        ends[count] = len(data)
        count += 1
    return ends[:count]


def _scan(data: bytes, rules: RecordRules, state: int, ends: NDArray[np.int64]) -> tuple[int, int, int]:
    """Fill ``ends`` as far as it has room. Returns (records, position behind the last one, state)."""
    buf, delimiter, comments = (np.frombuffer(text, np.uint8) for text in (data, rules.delimiter, rules.comments))
    tabbed = rules.keep_tabs and rules.delimiter == b"\t"
    if rules.escape:
        count, last, state = _scan_escaped(
            buf, delimiter[0], comments, tabbed, rules.quoted, rules.escape[0], state & _STATE, state >> _MATCHED_SHIFT, ends
        )
    else:
        count, last, state = _scan_quoted(buf, delimiter, comments, tabbed, state, ends)
    return count, last, int(state)


@njit(cache=True, nogil=True)
def _scan_quoted(buf, delimiter, comments, tabbed, state, ends):
    """See ``_scan``."""
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
        elif state <= BLANKS and is_one_of(byte, comments):
            state = COMMENT
        else:
            only_blanks = state <= BLANKS and (byte == _SPACE or (byte == _TAB and not tabbed))
            matched = matched + 1 if byte == delimiter[matched] else int(byte == delimiter[0])
            if matched == delimiter.size:
                state = BLANK_FIELD if only_blanks else FIELD_START
                matched = 0
            else:
                state = BLANKS if only_blanks else PLAIN
    return count, last, state | (matched << _MATCHED_SHIFT)


@njit(cache=True, nogil=True)
def _scan_escaped(buf, delimiter, comments, tabbed, quoted, escape, state, escaped, ends):
    """See ``_scan``."""
    count = 0
    last = 0
    for at in range(buf.size):
        byte = buf[at]
        if escaped == _ESCAPED:
            escaped = _ESCAPED_CR if byte == _CR else _UNESCAPED
            continue
        if escaped == _ESCAPED_CR:
            escaped = _UNESCAPED
            if byte == _LF:
                continue
        if state == QUOTED:
            if byte == _QUOTE:
                state = AFTER_QUOTE
            elif byte == escape:
                escaped = _ESCAPED
        elif byte == _LF:
            if count < ends.size:
                ends[count] = at + 1
            count += 1
            last = at + 1
            state = LINE_START
        elif state == COMMENT:
            continue
        elif byte == escape:
            escaped = _ESCAPED
            state = PLAIN
        elif quoted and byte == _QUOTE:
            state = QUOTED if state in (LINE_START, BLANK_FIELD, FIELD_START, AFTER_QUOTE) else PLAIN
        elif state <= BLANKS and is_one_of(byte, comments):
            state = COMMENT
        else:
            only_blanks = state <= BLANKS and (byte == _SPACE or (byte == _TAB and not tabbed))
            blank, other = (BLANK_FIELD, FIELD_START) if byte == delimiter else (BLANKS, PLAIN)
            state = blank if only_blanks else other
    return count, last, state | (escaped << _MATCHED_SHIFT)
