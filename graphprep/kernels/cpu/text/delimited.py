"""Lines of delimited text to columns, on the CPU.

``split_fields`` finds where the fields of every record stand; the column functions then parse one column each, from the
``start`` and ``stop`` (int64[n]) of its fields. ``parse_plain`` does both at once for clean ``src dst [weight]`` lines.

A delimiter is given by its bytes (uint8), where none means runs of blanks (space, tab). A record is a line that is neither
blank nor a comment (by default ``#`` or ``%``, blanks before it). A column function notes a code for every field (uint8[n],
OK where all is well) and goes on behind a faulty one, whose value means nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.memory import copy_bytes, is_ascii
from graphprep.kernels.cpu.bytes.words import (
    MOST_DIGITS,
    WINDOW,
    address_of,
    digits_at,
    load_byte,
    marks,
    non_digits,
    trailing_zeros,
)
from graphprep.kernels.cpu.text.numbers import (
    DECIMAL_REACH,
    EMPTY,
    INVALID,
    NEGATIVE,
    OK,
    OVERFLOW,
    find_byte,
    find_line,
    parse_bool,
    parse_float,
    parse_int,
    parse_scaled_int,
    parse_uint,
    read_decimal,
    round_to,
    skip_blanks,
)
from graphprep.kernels.cpu.text.pairs import TOO_WIDE, count_lines, parse_pairs, parse_weighted_pairs

Codes = NDArray[np.uint8]
Ints = NDArray[np.int64]

# Codes of split_fields: what is wrong with a record.
TOO_FEW = 11
TOO_MANY = 12
UNCLOSED_QUOTE = 13
AFTER_QUOTE = 14  # something else than a delimiter follows a closing quote
STRAY_QUOTE = 15  # a quote in a field that does not begin with one
ESCAPED_END = 16  # nothing follows an escape

# Codes of the columns, beside those of ``numbers``.
BELOW_BASE = 21
NOT_UTF8 = 22

_TAB, _LF, _CR, _SPACE, _QUOTE, _MINUS = 9, 10, 13, 32, 34, 45
_LEAST_INT64, _MOST_INT64, _MOST_UINT64 = -(2**63), 2**63 - 1, np.uint64(2**64 - 1)


def parse_plain(
    buf: NDArray[np.uint8], at: int, delimiter: NDArray[np.uint8], weighted: bool, narrow: bool = False
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]] | None:
    """Parse lines of two IDs, and a weight where ``weighted``, from ``at`` on.

    Returns (src, dst, weight) in input order: IDs as uint64 (with ``narrow``, uint32 where all fit), float64. None where a
    record is anything but digits in its IDs and a number in its weight: then the general way decides whether it is wrong.
    """
    most_rows = count_lines(buf, at, buf.size)
    separator = delimiter.tobytes()
    weight = np.empty(most_rows if weighted else 0, np.float64)
    for dtype in (np.uint32, np.uint64) if narrow else (np.uint64,):
        src, dst = np.empty(most_rows, dtype), np.empty(most_rows, dtype)
        if weighted:
            num_rows, code, _ = parse_weighted_pairs(buf, at, buf.size, separator, src, dst, weight)
        else:
            num_rows, code, _ = parse_pairs(buf, at, buf.size, separator, src, dst)
        if code == OK:
            return src[:num_rows], dst[:num_rows], weight[:num_rows]
        if code != TOO_WIDE:
            return None
    return None


def split_fields(
    buf: NDArray[np.uint8],
    at: int,
    delimiter: NDArray[np.uint8],
    quoted: bool,
    slots: NDArray[np.int64],
    *,
    across_lines: bool = False,
    comments: bytes = b"#%",
    keep_tabs: bool = False,
    escape: int | None = None,
    texts: NDArray[np.uint8] | None = None,
    ends: NDArray[np.int64] | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Find the fields of every record from ``at`` on; each has ``slots.size`` columns.

    Returns start and stop (int64[k, n]), where column c is found in row ``slots[c]`` unless that is -1, and int64[m, 3]: code,
    position in ``buf`` and number of columns found of each faulty record. Without ``ends`` (int64, where records end), that is
    the first, before which all n records stand. With ``quoted``, a field
    that begins with a double quote ends at the next single one (RFC 4180), on a later line only ``across_lines``; its positions
    are inside the quotes, and its stop is written as ``~stop`` where it has doubled quotes. ``comments`` are the bytes that
    begin a comment. With ``keep_tabs``, tabs that separate are no blanks: a line of nothing but them is a record.

    With ``escape`` (a byte) the byte behind it is text, and so is a line break, in quotes or without. The fields
    then stand in ``texts``, a copy of ``buf``, at the returned positions: without escapes, doubled quotes as one.
    """
    num_lines = count_lines(buf, at, buf.size)
    num_kept = int(slots.max(initial=-1)) + 1
    start = np.empty((num_kept, num_lines), np.int64)
    stop = np.empty((num_kept, num_lines), np.int64)
    marks = np.frombuffer(comments, np.uint8)
    tabbed = keep_tabs and delimiter.size > 0 and delimiter[0] == _TAB
    ends = np.empty(0, np.int64) if ends is None else ends
    bad = np.empty((max(ends.size, 1), 3), np.int64)
    num_rows, num_bad = _split_records(
        buf, at, delimiter, quoted, across_lines, marks, tabbed, escape, texts, slots, start, stop, ends, bad
    )
    return start[:, :num_rows], stop[:, :num_rows], bad[:num_bad]


def parse_ids(
    buf: NDArray[np.uint8], start: Ints, stop: Ints, base: int, signed: bool = False
) -> tuple[NDArray[np.uint64], Codes]:
    """Parse IDs, less ``base``; where they are ``signed``, they are int64, and none may be below a base that is not 0.

    Returns (uint64[n], of signed ones their bits, codes).
    """
    codes = np.empty(start.size, np.uint8)
    if signed:
        ints = np.empty(start.size, np.int64)
        _parse_ints(buf, start, stop, base if base else _LEAST_INT64, _MOST_INT64, False, ints, codes)
        ids = ints.view(np.uint64)
    else:
        ids = np.empty(start.size, np.uint64)
        _parse_uints(buf, start, stop, np.uint64(base), _MOST_UINT64, ids, codes)
    if base:
        ids -= np.uint64(base)
    return ids, codes


def gather_ids(buf: NDArray[np.uint8], start: Ints, stop: Ints) -> tuple[Ints, NDArray[np.uint8], Codes]:
    """Copy the cells, doubled quotes as one. Returns (offsets int64[n + 1], uint8 values, codes).

    A cell that holds nothing but blanks is EMPTY, one that is not UTF-8 NOT_UTF8. Where there is one, only the codes count.
    """
    _, counts, values, codes = gather_texts(buf, start, stop)
    offsets = np.zeros(start.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1 : counts.size + 1])
    return offsets, values, codes


def parse_numbers(
    dtype: str, buf: NDArray[np.uint8], start: Ints, stop: Ints, *, keep_sign: bool = False
) -> tuple[NDArray[Any], Codes]:
    """Parse cells to numbers of a dtype (NumPy's name of a bool, integer or float); bools are 0, 1, true or false.

    Returns (values, codes). A cell that holds nothing but blanks is EMPTY, a number that does not fit is OVERFLOW. With
    ``keep_sign`` a ``-0`` is INVALID, as no integer keeps its sign.
    """
    target = np.dtype(dtype)
    codes = np.empty(start.size, np.uint8)
    values: NDArray[Any]
    if target.kind == "b":
        values = np.empty(start.size, np.bool_)
        _parse_bools(buf, start, stop, values, codes)
    elif target.kind == "i":
        values = np.empty(start.size, np.int64)
        limits = np.iinfo(target)
        _parse_ints(buf, start, stop, int(limits.min), int(limits.max), keep_sign, values, codes)
        codes[codes == BELOW_BASE] = OVERFLOW
    elif target.kind == "u":
        values = np.empty(start.size, np.uint64)
        _parse_uints(buf, start, stop, np.uint64(0), np.uint64(np.iinfo(target).max), values, codes)
        codes[codes == NEGATIVE] = OVERFLOW
    else:
        values = np.empty(start.size, np.float64)
        _parse_floats(buf, start, stop, values, codes)
        rounded, lost = round_to(values, target)
        if lost >= 0:
            codes[np.isinf(rounded) & np.isfinite(values)] = OVERFLOW
        values = rounded
    return values.astype(target, copy=False), codes


def parse_column(
    dtype: str, buf: NDArray[np.uint8], start: Ints, stop: Ints, *, keep_sign: bool = False
) -> tuple[Ints, NDArray[Any], Codes]:
    """Parse the cells that are not empty like ``parse_numbers``. Returns (rows, values, codes), that of empty ones OK."""
    return without_empty(*parse_numbers(dtype, buf, start, stop, keep_sign=keep_sign))


def parse_times(buf: NDArray[np.uint8], start: Ints, stop: Ints, scale: int) -> tuple[Ints, Ints, Codes]:
    """Parse the cells that are not empty as whole multiples of ``10 ** -scale``. Returns what ``parse_column`` does."""
    values, codes = np.empty(start.size, np.int64), np.empty(start.size, np.uint8)
    _parse_times(buf, start, stop, scale, values, codes)
    return without_empty(values, codes)


def without_empty(values: NDArray[Any], codes: Codes) -> tuple[Ints, NDArray[Any], Codes]:
    """Return the rows whose code is OK, their values, and the codes with EMPTY as OK (the same array)."""
    if not codes.any():
        return np.arange(codes.size), values, codes
    rows = np.flatnonzero(codes == OK)
    codes[codes == EMPTY] = OK
    return rows, values[rows], codes


def gather_texts(
    buf: NDArray[np.uint8], start: Ints, stop: Ints, *, drop_empty: bool = True, check: bool = True
) -> tuple[Ints, Ints, NDArray[np.uint8], Codes]:
    """Copy the cells, doubled quotes as one.

    Returns (rows, counts, uint8 values, codes). With ``drop_empty``, cells that hold nothing but blanks are EMPTY and left out;
    with ``check``, those that are not UTF-8 are NOT_UTF8.
    """
    rows, counts, codes = np.empty(start.size, np.int64), np.empty(start.size, np.int64), np.zeros(start.size, np.uint8)
    count, num_bytes = _measure_texts(buf, start, stop, drop_empty, check, rows, counts, codes)
    values = np.empty(num_bytes, np.uint8)
    _copy_texts(buf, start, stop, rows[:count], values)
    return rows[:count], counts[:count], values, codes


@njit(cache=True, nogil=True)
def find_other(buf, start, stop, byte):
    """Return the first position in [start, stop) that holds another byte, else ``stop``."""
    while start < stop and buf[start] == byte:
        start += 1
    return start


@njit(cache=True, nogil=True)
def is_one_of(byte, marks):
    """Return whether a byte is one of a few."""
    for mark in marks:
        if byte == mark:
            return True
    return False


@njit(cache=True, nogil=True)
def _matches(buf, at, stop, delimiter):
    """Return whether the delimiter stands at ``at``."""
    if at + delimiter.size > stop:
        return False
    for i in range(delimiter.size):
        if buf[at + i] != delimiter[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _split_records(
    buf, at, delimiter, quoted, across_lines, comments, tabbed, escape, texts, slots, starts, stops, ends, bad
):  # fmt: skip
    """Fill ``starts``, ``stops`` and ``bad``. Returns (records, faulty records)."""
    row = 0
    end = 0
    for i in range(bad.shape[0]):
        row, code, fault, found = _split_fields(
            buf, at, delimiter, quoted, across_lines, comments, tabbed, escape, texts, slots, row, starts, stops
        )
        if code == OK:
            return row, i
        bad[i, 0] = code
        bad[i, 1] = fault
        bad[i, 2] = found
        while end + 1 < ends.size and ends[end] <= fault:
            end += 1
        if ends.size:
            at = ends[end]
    return row, bad.shape[0]


@njit(cache=True, nogil=True)
def _split_fields(buf, at, delimiter, quoted, across_lines, comments, tabbed, escape, texts, slots, row, starts, stops):
    """Fill ``starts`` and ``stops`` from ``row`` on. Returns (records, code, position, columns found)."""
    blanks = delimiter.size == 0
    while at < buf.size:
        if delimiter.size <= 1 and escape is None:
            first = _SPACE if blanks else np.int64(delimiter[0])
            second = _TAB if blanks else _QUOTE if quoted else _LF
            row, at = _split_plain(buf, at, first, second, blanks, comments, slots, row, starts, stops)
            if at == buf.size:
                break
        line = at
        stop, at = find_line(buf, line)
        cursor = find_other(buf, line, stop, _SPACE) if tabbed else skip_blanks(buf, line, stop)
        if cursor == stop or is_one_of(buf[cursor], comments):
            continue
        if not blanks:
            cursor = line
        column = 0
        extra = -1
        more = True
        while more:
            start = cursor
            end = cursor
            following = cursor
            if blanks:
                while end < stop and buf[end] != _SPACE and buf[end] != _TAB:
                    end += 1
                following = skip_blanks(buf, end, stop)
                more = following < stop
            elif escape is not None:  # settled when this is compiled
                code, end, following, stop, at = _unescape(buf, start, stop, at, delimiter[0], quoted, escape, texts)
                if code != OK:
                    return row, code, following, 0
                start += quoted and start < buf.size and buf[start] == _QUOTE
                more = following < stop
                following += 1
            elif quoted and start < stop and buf[start] == _QUOTE:
                start += 1
                end = start
                doubled = False
                limit = buf.size if across_lines else stop
                while True:
                    end = find_byte(buf, end, limit, _QUOTE)
                    if end + 1 >= limit or buf[end + 1] != _QUOTE:
                        break
                    doubled = True
                    end += 2
                if end == limit:
                    return row, UNCLOSED_QUOTE, start - 1, 0
                if end > stop:
                    stop, at = find_line(buf, end)
                following = end + 1
                more = following < stop
                if more and not _matches(buf, following, stop, delimiter):
                    return row, AFTER_QUOTE, following, 0
                following += delimiter.size
                if doubled:
                    end = ~end
            else:
                while end < stop and not (buf[end] == delimiter[0] and _matches(buf, end, stop, delimiter)):
                    if quoted and buf[end] == _QUOTE:
                        return row, STRAY_QUOTE, end, 0
                    end += 1
                more = end < stop
                following = end + delimiter.size
            if column < slots.size:
                if slots[column] >= 0:
                    starts[slots[column], row] = start
                    stops[slots[column], row] = end
            elif extra < 0:
                extra = start
            column += 1
            cursor = following
        if column < slots.size:
            return row, TOO_FEW, stop, column
        if column > slots.size:
            return row, TOO_MANY, extra, column
        row += 1
    return row, OK, np.int64(-1), 0


@njit(cache=True, nogil=True)
def _split_plain(buf, at, first, second, blanks, comments, slots, row, starts, stops):
    """Fill rows from ``row`` on, up to a line that is a comment, begins with a blank, has quotes, or too few or many fields.

    ``first`` separates, and so does ``second`` with ``blanks``, where fields are not empty; else it is the quote, or LF where
    there is none. Returns the next row, and where the line begins that is left to the general way.
    """
    base = address_of(buf)
    while at < buf.size:
        byte = load_byte(base + at)
        if byte in (_SPACE, _TAB, _LF, _CR) or is_one_of(byte, comments):
            return row, at
        start = window = at
        column = 0
        following = -1
        while following < 0:
            if window + WINDOW > buf.size:
                return row, at
            found = marks(base + window, first, second, _LF)
            while found != 0:
                stop = window + trailing_zeros(found)
                found = found & (found - np.uint64(1))
                byte = load_byte(base + stop)
                is_last = byte == _LF
                end = stop - np.int64(is_last and stop > start and load_byte(base + stop - 1) == _CR)
                is_quote = byte == second and not blanks and not is_last
                if is_quote or is_last != (column + 1 == slots.size) or (blanks and end == start):
                    return row, at
                if slots[column] >= 0:
                    starts[slots[column], row] = start
                    stops[slots[column], row] = end
                if is_last:
                    following = stop + 1
                    break
                start = stop + 1
                column += 1
            window += WINDOW
        row += 1
        at = following
    return row, at


@njit(cache=True, nogil=True)
def _unescape(buf, start, stop, at, delimiter, quoted, escape, texts):
    """Copy the field at ``start`` to its place in ``texts``, without escapes, doubled quotes as one.

    Returns (code, its end in ``texts``, the position of the delimiter behind it, stop of its last line, where the next line
    begins); with a code other than OK, the third is the position of the fault.
    """
    is_open = quoted and start < stop and buf[start] == _QUOTE
    first = start
    cursor = start + is_open
    to = cursor
    while is_open or cursor < stop:
        if cursor == buf.size:
            return UNCLOSED_QUOTE, to, first, stop, at
        byte = buf[cursor]
        if byte == escape:
            cursor += 1
            if cursor == buf.size:
                return ESCAPED_END, to, cursor - 1, stop, at
            if buf[cursor] == _CR and cursor + 1 < buf.size and buf[cursor + 1] == _LF:
                texts[to] = _CR
                to += 1
                cursor += 1
            byte = buf[cursor]
            if byte == _LF and not is_open:
                stop, at = find_line(buf, cursor + 1)
        elif is_open and byte == _QUOTE:
            if cursor + 1 == buf.size or buf[cursor + 1] != _QUOTE:
                break
            cursor += 1
        elif not is_open and byte == delimiter:
            break
        elif quoted and not is_open and byte == _QUOTE:
            return STRAY_QUOTE, to, cursor, stop, at
        texts[to] = byte
        to += 1
        cursor += 1
    if is_open:
        cursor += 1
        if cursor > stop:
            stop, at = find_line(buf, cursor)
        if cursor < stop and buf[cursor] != delimiter:
            return AFTER_QUOTE, to, cursor, stop, at
    return OK, to, cursor, stop, at


@njit(cache=True, nogil=True, inline="always")
def _plain_uint(buf, start, stop):
    """Parse a field of up to 18 digits and nothing else to (OK, uint64); another code where it is something else."""
    at = address_of(buf) + start
    size = stop - start
    if size < 1 or size >= MOST_DIGITS or start + WINDOW > buf.size or trailing_zeros(non_digits(at)) < size:
        return INVALID, np.uint64(0)
    return OK, digits_at(at, size)


# Each of these fills ``values`` and ``codes``.


@njit(cache=True, nogil=True)
def _parse_ints(buf, start, stop, low, high, keep_sign, values, codes):
    """Parse integers from ``low`` (below it: BELOW_BASE) to ``high``."""
    for row in range(start.size):
        code, digits = _plain_uint(buf, start[row], stop[row])
        value = np.int64(digits)
        if code != OK:
            code, value = parse_int(buf, start[row], stop[row])
        if code == OK and value < low:
            code = BELOW_BASE
        if code == OK and value > high:
            code = OVERFLOW
        if code == OK and value == 0 and keep_sign and buf[skip_blanks(buf, start[row], stop[row])] == _MINUS:
            code = INVALID
        values[row] = value
        codes[row] = code


@njit(cache=True, nogil=True)
def _parse_uints(buf, start, stop, low, high, values, codes):
    """Parse integers from ``low`` (below it: BELOW_BASE) to ``high``."""
    for row in range(start.size):
        code, value = _plain_uint(buf, start[row], stop[row])
        if code != OK:
            code, value = parse_uint(buf, start[row], stop[row])
        if code == OK and value < low:
            code = BELOW_BASE
        if code == OK and value > high:
            code = OVERFLOW
        values[row] = value
        codes[row] = code


@njit(cache=True, nogil=True)
def _parse_floats(buf, start, stop, values, codes):
    base = address_of(buf)
    for row in range(start.size):
        code, value, end = OK, 0.0, -1
        if start[row] + DECIMAL_REACH <= buf.size and start[row] < stop[row]:
            value, end = read_decimal(base + start[row])
        if end != base + stop[row]:
            code, value = parse_float(buf, start[row], stop[row])
        values[row] = value
        codes[row] = code


@njit(cache=True, nogil=True)
def _parse_bools(buf, start, stop, values, codes):
    for row in range(start.size):
        codes[row], values[row] = parse_bool(buf, start[row], stop[row])


@njit(cache=True, nogil=True)
def _parse_times(buf, start, stop, scale, values, codes):
    for row in range(start.size):
        code, digits = _plain_uint(buf, start[row], stop[row])
        value = np.int64(digits)
        if code != OK or scale != 0:
            code, value = parse_scaled_int(buf, start[row], stop[row], scale)
        values[row] = value
        codes[row] = code


@njit(cache=True, nogil=True)
def _measure_texts(buf, start, stop, drop_empty, check, rows, counts, codes):
    """Fill ``rows`` and ``counts`` (bytes), and the codes of cells that are left out. Returns (count, bytes)."""
    base = address_of(buf)
    count = 0
    num_bytes = 0
    for row in range(start.size):
        end = stop[row]
        size = end - start[row]
        if end < 0:  # has doubled quotes
            end = ~end
            size = end - start[row]
            for at in range(start[row], end):
                size -= buf[at] == _QUOTE
            size += (end - start[row] - size) // 2
        if drop_empty and skip_blanks(buf, start[row], end) == end:
            codes[row] = EMPTY
            continue
        if check and not is_ascii(base + start[row], end - start[row]) and not is_utf8(buf, start[row], end):
            codes[row] = NOT_UTF8
            continue
        rows[count] = row
        counts[count] = size
        num_bytes += size
        count += 1
    return count, num_bytes


@njit(cache=True, nogil=True)
def _copy_texts(buf, start, stop, rows, values):
    """Fill ``values`` with the cells of ``rows``, one after another."""
    base, target = address_of(buf), address_of(values)
    to = 0
    for row in rows:
        at, end = start[row], stop[row]
        if end >= 0:
            copy_bytes(base + at, target + to, end - at)
            to += end - at
            continue
        while at < ~end:  # has doubled quotes
            values[to] = buf[at]
            to += 1
            at += 2 if buf[at] == _QUOTE else 1


@njit(cache=True, nogil=True)
def is_utf8(buf, start, stop):
    """Return whether [start, stop) is UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF (RFC 3629)."""
    at = start
    while at < stop:
        byte = buf[at]
        at += 1
        if byte < 0x80:
            continue
        low, high = 0x80, 0xBF  # of the second byte
        if 0xC2 <= byte <= 0xDF:
            more = 1
        elif 0xE0 <= byte <= 0xEF:
            more = 2
            low = 0xA0 if byte == 0xE0 else low
            high = 0x9F if byte == 0xED else high
        elif 0xF0 <= byte <= 0xF4:
            more = 3
            low = 0x90 if byte == 0xF0 else low
            high = 0x8F if byte == 0xF4 else high
        else:
            return False
        if at + more > stop:
            return False
        for _ in range(more):
            if buf[at] < low or buf[at] > high:
                return False
            low, high = 0x80, 0xBF
            at += 1
    return True
