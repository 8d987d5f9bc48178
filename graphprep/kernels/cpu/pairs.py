"""Clean ``src dst`` and ``src dst weight`` lines to columns, at the speed of the machine. A kernel never raises.

A line is plain where it holds two runs of 1 to 19 digits (and a number, where weights are asked for), one delimiter between
them, blanks around them, and ends with LF or CR LF. Blank lines and comments (``#``, ``%``, blanks before them) are skipped.
What is not plain may still be right (a sign, quotes, more digits): ``delimited`` decides.

The usual line, digits, one byte, digits, LF, is told in one look at the 32 bytes from its beginning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from graphprep.kernels.cpu.numbers import OK, find_byte, parse_float
from graphprep.kernels.cpu.words import (
    MOST_DIGITS,
    WINDOW,
    WORD,
    digits_at,
    digits_of_word,
    load_word,
    non_digits,
    trailing_zeros,
)

# Codes beside OK: why the parser stopped, at the beginning of a line.
NOT_PLAIN = 31  # the line is not plain
TOO_WIDE = 32  # an ID is too large for the arrays
IS_FULL = 33  # there is a line left, and no place for it

_TAB, _LF, _CR, _SPACE, _HASH, _PERCENT, _ZERO = 9, 10, 13, 32, 35, 37, 48
_BLANKS = -1  # the delimiter where fields are separated by runs of blanks
_REACH = 2 * WINDOW  # bytes behind a line's beginning that may be looked at before its end is known
_U = np.uint64


def count_lines(buf: NDArray[np.uint8], start: int, stop: int) -> int:
    """Count the lines of [start, stop); the last may lack its line feed. Returns at least 1: how many rows there may be."""
    return int(_count_lines(_read_only(buf), start, stop))


def parse_pairs(
    buf: NDArray[np.uint8], start: int, stop: int, delimiter: bytes, src: NDArray[Any], dst: NDArray[Any]
) -> tuple[int, int, int]:
    """Parse plain lines of two IDs from ``start`` on, which begins a line, up to ``stop``, which ends one.

    ``delimiter`` is one byte, or none for runs of blanks. Fills ``src`` and ``dst`` (both uint32 or both uint64, contiguous)
    from their beginning, in input order. Returns (rows, code, at): OK and ``stop``; or NOT_PLAIN, TOO_WIDE (an ID does not fit
    the arrays' type) or IS_FULL, and where the line begins that this is said of. The rows before it are there: a caller may
    deal with them and go on from ``at``.
    """
    rows, code, at = _parse_pairs(_read_only(buf), start, stop, _code_of(delimiter), _U(np.iinfo(src.dtype).max), src, dst)
    return int(rows), int(code), int(at)


def parse_weighted_pairs(
    buf: NDArray[np.uint8],
    start: int,
    stop: int,
    delimiter: bytes,
    src: NDArray[Any],
    dst: NDArray[Any],
    weight: NDArray[np.float64],
) -> tuple[int, int, int]:
    """Parse plain lines of two IDs and a weight like ``parse_pairs``.

    Weights are correctly rounded: bit for bit what ``float()`` makes of the text.
    """
    high = _U(np.iinfo(src.dtype).max)
    rows, code, at = _parse_weighted(_read_only(buf), start, stop, _code_of(delimiter), high, src, dst, weight)
    return int(rows), int(code), int(at)


def _read_only(buf: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return a view that cannot be written: one type of argument, one compiled kernel."""
    view = np.asarray(buf).view()
    view.flags.writeable = False
    return view


def _code_of(delimiter: bytes) -> int:
    return delimiter[0] if delimiter else _BLANKS


@njit(cache=True, nogil=True)
def _count_lines(buf, start, stop):
    """Count the line feeds, and one more."""
    count = 1
    for byte in buf[start:stop]:  # not by index: this loop is compiled to vector instructions, ten times faster
        count += byte == _LF
    return count


@njit(cache=True, nogil=True)
def _parse_pairs(buf, at, stop, delimiter, high, src, dst):
    """Fill ``src`` and ``dst``. Returns (rows, code, position)."""
    row = 0
    between = _U(_SPACE if delimiter == _BLANKS else delimiter)
    end = _U(_LF)
    after = 1  # bytes from ``end`` to the next line
    safe = stop - _REACH
    while at < stop:
        if at <= safe and row < src.size:
            others = non_digits(buf, at)
            first = trailing_zeros(others)
            second = trailing_zeros(others & (others - _U(1)))
            # As unsigned numbers, sizes of 0 are large, too; where the window shows no end, one of them is beyond it.
            if (_U(first - 1) | _U(second - first - 2)) < _U(WORD) and (
                (buf[_U(at + first)] ^ between) | (buf[_U(at + second)] ^ end) | (buf[_U(at + second + after - 1)] ^ _U(_LF))
            ) == _U(0):
                src[_U(row)] = digits_of_word(load_word(buf, at), first)
                dst[_U(row)] = digits_of_word(load_word(buf, at + first + 1), second - first - 1)
                row += 1
                at += second + after
                continue
        begin = _begin_record(buf, at, stop, delimiter)
        if begin < 0:
            at = ~begin
            continue
        if row == src.size:
            return row, IS_FULL, at
        code, src_id, stop_src, dst_id, behind = _two_ids(buf, begin, stop, delimiter, high)
        if code == OK:
            code, following = _end_line(buf, behind, stop, delimiter)
        if code != OK:
            return row, code, at
        src[row] = src_id
        dst[row] = dst_id
        row += 1
        if delimiter == _BLANKS:  # so will the next line be
            between = _U(buf[stop_src])
        if following - behind == 2:
            end, after = _U(_CR), 2
        else:
            end, after = _U(_LF), 1
        at = following
    return row, OK, at


@njit(cache=True, nogil=True)
def _parse_weighted(buf, at, stop, delimiter, high, src, dst, weight):
    """Fill ``src``, ``dst`` and ``weight``. Returns (rows, code, position)."""
    row = 0
    while at < stop:
        begin = _begin_record(buf, at, stop, delimiter)
        if begin < 0:
            at = ~begin
            continue
        if row == src.size:
            return row, IS_FULL, at
        code, src_id, _, dst_id, behind = _two_ids(buf, begin, stop, delimiter, high)
        if code != OK:
            return row, code, at
        begin = _pass_delimiter(buf, behind, stop, delimiter)
        if begin < 0:
            return row, NOT_PLAIN, at
        line_end = find_byte(buf, begin, stop, _LF)
        field_end = line_end - 1 if line_end > begin and buf[line_end - 1] == _CR else line_end
        code, number = parse_float(buf, begin, field_end)
        if code != OK or (delimiter != _BLANKS and find_byte(buf, begin, field_end, delimiter) < field_end):
            return row, NOT_PLAIN, at
        src[row] = src_id
        dst[row] = dst_id
        weight[row] = number
        row += 1
        at = min(line_end + 1, stop)
    return row, OK, at


@njit(cache=True, nogil=True)
def _is_blank(byte, delimiter):
    """Return whether a byte is a blank: a space, or a tab unless that separates."""
    return byte == _SPACE or (byte == _TAB and delimiter != _TAB)


@njit(cache=True, nogil=True)
def _begin_record(buf, at, stop, delimiter):
    """Return where the record of the line at ``at`` begins, behind blanks; ``~following`` for a line that holds none."""
    while at < stop and _is_blank(buf[at], delimiter):
        at += 1
    if at == stop:
        return ~at
    byte = buf[at]
    if byte == _LF:
        return ~(at + 1)
    if byte == _CR and (at + 1 == stop or buf[at + 1] == _LF):
        return ~min(at + 2, stop)
    if byte == _HASH or byte == _PERCENT:
        return ~min(find_byte(buf, at, stop, _LF) + 1, stop)
    return at


@njit(cache=True, nogil=True)
def _two_ids(buf, at, stop, delimiter, high):
    """Parse two IDs from ``at`` on. Returns (code, first, its end, second, its end)."""
    code, first, stop_first = _id(buf, at, stop, high)
    if code != OK:
        return code, first, at, first, at
    at = _pass_delimiter(buf, stop_first, stop, delimiter)
    if at < 0:
        return NOT_PLAIN, first, at, first, at
    code, second, stop_second = _id(buf, at, stop, high)
    return code, first, stop_first, second, stop_second


@njit(cache=True, nogil=True)
def _id(buf, at, stop, high):
    """Parse the digits at ``at`` to (code, uint64, their end)."""
    value = _U(0)
    if at + WINDOW <= stop:
        size = trailing_zeros(non_digits(buf, at))
        if size < 1 or size > MOST_DIGITS:
            return NOT_PLAIN, value, at
        value = digits_at(buf, at, size)
    else:
        size = 0
        while at + size < stop and size <= MOST_DIGITS:
            digit = np.int64(buf[at + size]) - _ZERO
            if digit < 0 or digit > 9:
                break
            value = value * _U(10) + _U(digit)
            size += 1
        if size < 1 or size > MOST_DIGITS:
            return NOT_PLAIN, value, at
    return TOO_WIDE if value > high else OK, value, at + size


@njit(cache=True, nogil=True)
def _pass_delimiter(buf, at, stop, delimiter):
    """Return the position after one delimiter and the blanks around it, -1 where there is none."""
    first = at
    while at < stop and _is_blank(buf[at], delimiter):
        at += 1
    if delimiter == _BLANKS:
        return at if at > first else -1
    if at == stop or buf[at] != delimiter:
        return -1
    at += 1
    while at < stop and _is_blank(buf[at], delimiter):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _end_line(buf, at, stop, delimiter):
    """Return (code, where the next line begins) behind the last field of a line: blanks and one CR may stand before the LF."""
    while at < stop and _is_blank(buf[at], delimiter):
        at += 1
    if at < stop and buf[at] == _CR:
        at += 1
    if at < stop and buf[at] != _LF:
        return NOT_PLAIN, at
    return OK, min(at + 1, stop)
