"""Clean ``src dst`` and ``src dst weight`` lines to columns, at the speed of the machine. A kernel never raises.

A line is plain where it holds two runs of 1 to 19 digits (and a number, where weights are asked for), one delimiter between
them, blanks (space, tab; not what separates) around them, and ends with LF or CR LF. Blank lines and comments (``#``, ``%``,
blanks before them) are skipped. What is not plain may still be right (a sign, quotes, more digits): ``delimited`` decides.

The usual line, digits, one byte, digits, LF, is told in one look at the 32 bytes from its beginning.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import (
    MOST_DIGITS,
    WINDOW,
    WORD,
    address_of,
    digits_at,
    digits_of_word,
    load_byte,
    load_word,
    non_digits,
    trailing_zeros,
)
from graphprep.kernels.cpu.text.numbers import DECIMAL_REACH, EXACT_POWERS, INTEGER_POWERS, OK, parse_float, read_decimal

# Codes beside OK: why the parser stopped, at the beginning of a line.
NOT_PLAIN = 31  # the line is not plain
TOO_WIDE = 32  # an ID is too large for the arrays
IS_FULL = 33  # there is a line left, and no place for it

_TAB, _LF, _CR, _SPACE, _HASH, _PERCENT, _MINUS, _POINT, _ZERO = 9, 10, 13, 32, 35, 37, 45, 46, 48
_EXACT_DIGITS = 15  # any number of so many digits is exact as a float64
_IN_NUMBERS = b"+-.eE"  # delimiters that a weight may hold
_BLANKS = -1  # the delimiter where fields are separated by runs of blanks
_LEAST_HALVED = 1 << 12  # bytes; with fewer, finding the middle takes what it spares
_U = np.uint64


def parse_pairs(
    buf: NDArray[np.uint8], start: int, stop: int, delimiter: bytes, src: NDArray[Any], dst: NDArray[Any]
) -> tuple[int, int, int]:
    """Parse plain lines of two IDs from ``start`` on, which begins a line, up to ``stop``, which ends one.

    ``delimiter`` is one byte, or none for runs of blanks. Fills ``src`` and ``dst`` (both uint32 or both uint64, contiguous)
    from their beginning, in input order. Returns (rows, code, at): OK and ``stop``; or NOT_PLAIN, TOO_WIDE (an ID does not fit
    the arrays' type) or IS_FULL, and where the line begins that this is said of. The rows before it are there: a caller may
    deal with them and go on from ``at``.
    """
    high = _U(np.iinfo(src.dtype).max)
    rows, code, at = _parse_pairs(buf, start, stop, _code_of(delimiter), high, _LEAST_HALVED, src, dst)
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
    if delimiter and delimiter in _IN_NUMBERS:
        return 0, NOT_PLAIN, start
    high = _U(np.iinfo(src.dtype).max)
    rows, code, at = _parse_weighted(buf, start, stop, _code_of(delimiter), high, src, dst, weight)
    return int(rows), int(code), int(at)


def _code_of(delimiter: bytes) -> int:
    return delimiter[0] if delimiter else _BLANKS


@njit(cache=True, nogil=True)
def count_lines(buf, start, stop):
    """Count the lines of [start, stop); the last may lack its line feed. Returns at least 1: how many rows there may be."""
    count = 1
    for byte in buf[start:stop]:  # not by index: this loop is compiled to vector instructions, ten times faster
        count += byte == _LF
    return count


@njit(cache=True, nogil=True)
def _parse_pairs(buf, start, stop, delimiter, high, least, src, dst):
    """Fill ``src`` and ``dst``. Returns (rows, code, position).

    Where a line begins is known only behind the one before: lines of two places in turn, where there are ``least`` bytes,
    spare much of the waiting.
    """
    base = address_of(buf)
    at, stop = base + start, base + stop
    if stop - at < least:
        row, code, at = _parse_lines(at, stop, delimiter, high, src, dst, 0)
        return row, code, at - base
    half = min(_find(at + (stop - at) // 2, stop, _LF) + 1, stop)
    first_row = count_lines(buf, start, half - base) - 1
    at, row, second_at, second_row = _parse_in_turn(at, half, stop, delimiter, src, dst, first_row)
    row, code, at = _parse_lines(at, half, delimiter, high, src, dst, row)
    if code != OK:
        return row, code, at - base
    for i in range(first_row, second_row if row < first_row else first_row):  # some lines of the first half hold no row
        src[row + i - first_row] = src[i]
        dst[row + i - first_row] = dst[i]
    row, code, at = _parse_lines(second_at, stop, delimiter, high, src, dst, row + second_row - first_row)
    return row, code, at - base


@njit(cache=True, nogil=True)
def _parse_in_turn(at, half, stop, delimiter, src, dst, first_row):
    """Parse usual lines from ``at`` and from ``half`` on until one is not: rows from 0 and from ``first_row`` on.

    Returns (address, row) of both places where they stopped.
    """
    between, ending, after = _usual_line(at, stop, delimiter)
    safe = stop - 2 * WINDOW - 2
    row, second_at, second_row = 0, half, first_row
    while at < half and second_at <= safe and second_row < src.size:
        others, second_others = non_digits(at), non_digits(second_at)
        first = trailing_zeros(others)
        second = trailing_zeros(others & (others - _U(1)))
        third = trailing_zeros(second_others)
        fourth = trailing_zeros(second_others & (second_others - _U(1)))
        # See ``_parse_lines``.
        wrong = (load_byte(at + first) ^ between) | (load_byte(second_at + third) ^ between)
        wrong |= (load_byte(at + second) ^ ending) | (load_byte(second_at + fourth) ^ ending)
        wrong |= (load_byte(at + second + after - 1) ^ _LF) | (load_byte(second_at + fourth + after - 1) ^ _LF)
        sizes = _U(first - 1) | _U(second - first - 2) | _U(third - 1) | _U(fourth - third - 2)
        if sizes >= _U(WORD) or wrong != 0:
            break
        src[_U(row)] = digits_of_word(load_word(at), first)
        dst[_U(row)] = digits_of_word(load_word(at + first + 1), second - first - 1)
        src[_U(second_row)] = digits_of_word(load_word(second_at), third)
        dst[_U(second_row)] = digits_of_word(load_word(second_at + third + 1), fourth - third - 1)
        row += 1
        second_row += 1
        at += second + after
        second_at += fourth + after
    return at, row, second_at, second_row


@njit(cache=True, nogil=True)
def _usual_line(at, stop, delimiter):
    """Guess from a line what stands between IDs, behind them, and how far from there the next line is."""
    between = _SPACE if delimiter == _BLANKS else delimiter
    if stop - at < 2 * WINDOW + 2:
        return between, _LF, 1
    others = non_digits(at)
    if delimiter == _BLANKS and load_byte(at + trailing_zeros(others)) == _TAB:
        between = _TAB
    is_cr = load_byte(at + trailing_zeros(others & (others - _U(1)))) == _CR
    return between, _CR if is_cr else _LF, 2 if is_cr else 1


@njit(cache=True, nogil=True)
def _parse_lines(at, stop, delimiter, high, src, dst, row):
    """Parse the lines from an address on to rows from ``row`` on. Returns (rows, code, address)."""
    between = _SPACE if delimiter == _BLANKS else delimiter
    ending, after = _LF, 1  # what stands behind the second ID, and how far from there the next line is
    safe = stop - 2 * WINDOW - 2
    while at < stop:
        while at <= safe and row < src.size:
            others = non_digits(at)
            first = trailing_zeros(others)
            second = trailing_zeros(others & (others - _U(1)))
            # As an unsigned number, a size of 0 is large, too, and so is one whose end the window does not show.
            wrong = (
                (load_byte(at + first) ^ between)
                | (load_byte(at + second) ^ ending)
                | (load_byte(at + second + after - 1) ^ _LF)
            )
            if (_U(first - 1) | _U(second - first - 2)) >= _U(WORD) or wrong != 0:
                break
            src[_U(row)] = digits_of_word(load_word(at), first)
            dst[_U(row)] = digits_of_word(load_word(at + first + 1), second - first - 1)
            row += 1
            at += second + after
        begin = _begin_record(at, stop, delimiter)
        if begin < 0:
            at = -begin
            continue
        if row == src.size:
            return row, IS_FULL, at
        code, src_id, behind_src, dst_id, behind = _two_ids(begin, stop, delimiter, high)
        following = _end_line(behind, stop, delimiter) if code == OK else 0
        if code != OK or following < 0:
            return row, max(code, NOT_PLAIN), at
        src[row] = src_id
        dst[row] = dst_id
        row += 1
        at = following
        if at < stop and at - behind <= 2:  # as in this line, so in the next: LF, CR LF or a blank and LF
            ending, after = load_byte(behind), at - behind
        if delimiter == _BLANKS:
            between = load_byte(behind_src)
    return row, OK, at


@njit(cache=True, nogil=True)
def _parse_weighted(buf, start, stop, delimiter, high, src, dst, weight):
    """Fill ``src``, ``dst`` and ``weight``. Returns (rows, code, position)."""
    base = address_of(buf)
    at, stop = base + start, base + stop
    between = _SPACE if delimiter == _BLANKS else delimiter
    ending, after = _LF, 1
    safe = stop - WINDOW - DECIMAL_REACH
    row = 0
    while at < stop:
        while at <= safe and row < src.size:
            # The usual line, two short IDs and a short number with a point, is told in one look at 64 bytes.
            others = non_digits(at) | (non_digits(at + WINDOW) << _U(WINDOW))
            first = trailing_zeros(others)
            others = others & (others - _U(1))
            second = trailing_zeros(others)
            others = others & (others - _U(1))
            negative = np.int64(load_byte(at + second + 1) == _MINUS)
            others = others & ~(_U(negative) << _U((second + 1) & 63))
            point = trailing_zeros(others)
            third = trailing_zeros(others & (others - _U(1)))
            begin = second + 1 + negative
            sizes = _U(first - 1) | _U(second - first - 2) | _U(point - begin - 1) | _U(third - point - 2)
            wrong = (load_byte(at + first) ^ between) | (load_byte(at + second) ^ between) | (load_byte(at + point) ^ _POINT)
            wrong |= (load_byte(at + third) ^ ending) | (load_byte(at + third + after - 1) ^ _LF)
            if sizes < _U(WORD) and wrong == 0 and third - begin <= _EXACT_DIGITS + 1:
                places = third - point - 1
                whole = digits_of_word(load_word(at + begin), point - begin)
                fraction = digits_of_word(load_word(at + point + 1), places)
                number = np.float64(np.int64(whole * INTEGER_POWERS[places] + fraction)) / EXACT_POWERS[places]
                number = -number if negative else number
                end = at + third
            else:
                wrong = (load_byte(at + first) ^ between) | (load_byte(at + second) ^ between)
                if (_U(first - 1) | _U(second - first - 2)) >= _U(WORD) or wrong != 0:
                    break
                number, end = read_decimal(at + second + 1)
                if end < 0 or (load_byte(end) ^ ending) | (load_byte(end + after - 1) ^ _LF):
                    break
            src[_U(row)] = digits_of_word(load_word(at), first)
            dst[_U(row)] = digits_of_word(load_word(at + first + 1), second - first - 1)
            weight[_U(row)] = number
            row += 1
            at = end + after
        begin = _begin_record(at, stop, delimiter)
        if begin < 0:
            at = -begin
            continue
        if row == src.size:
            return row, IS_FULL, at - base
        code, src_id, behind_src, dst_id, behind = _two_ids(begin, stop, delimiter, high)
        begin = _pass_delimiter(behind, stop, delimiter) if code == OK else 0
        if code != OK or begin < 0:
            return row, max(code, NOT_PLAIN), at - base
        line_end = _find(begin, stop, _LF)
        field_end = line_end - 1 if line_end > begin and load_byte(line_end - 1) == _CR else line_end
        code, number = parse_float(buf, begin - base, field_end - base)
        if code != OK or (delimiter != _BLANKS and _find(begin, field_end, delimiter) < field_end):
            return row, NOT_PLAIN, at - base
        src[row] = src_id
        dst[row] = dst_id
        weight[row] = number
        row += 1
        at = min(line_end + 1, stop)
        if delimiter == _BLANKS:
            between = load_byte(behind_src)
        ending, after = (_CR, 2) if field_end < line_end else (_LF, 1)
    return row, OK, at - base


@njit(cache=True, nogil=True)
def _find(at, stop, byte):
    """Return the first address of a byte in [at, stop), else ``stop``."""
    while at < stop and load_byte(at) != byte:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _skip_blanks(at, stop, delimiter):
    """Return the first address in [at, stop) that holds no blank, else ``stop``. What separates is none."""
    while at < stop:
        byte = load_byte(at)
        if byte == delimiter or byte not in (_SPACE, _TAB):
            break
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def _begin_record(at, stop, delimiter):
    """Return where a line's record begins, behind blanks; where it has none, where the next line does, negated."""
    at = _skip_blanks(at, stop, delimiter)
    if at == stop:
        return -at
    byte = load_byte(at)
    if byte == _LF:
        return -(at + 1)
    if byte == _CR and (at + 1 == stop or load_byte(at + 1) == _LF):
        return -min(at + 2, stop)
    if byte in (_HASH, _PERCENT):
        return -min(_find(at, stop, _LF) + 1, stop)
    return at


@njit(cache=True, nogil=True, inline="always")
def _two_ids(at, stop, delimiter, high):
    """Parse two IDs. Returns (code, first, the address behind it, second, the address behind it)."""
    code, first, behind_first = _id(at, stop, high)
    begin = _pass_delimiter(behind_first, stop, delimiter) if code == OK else -1
    if begin < 0:
        return max(code, NOT_PLAIN), first, at, first, at
    code, second, behind = _id(begin, stop, high)
    return code, first, behind_first, second, behind


@njit(cache=True, nogil=True, inline="always")
def _id(at, stop, high):
    """Parse digits to (code, uint64, the address behind them)."""
    size = 0
    if at + WINDOW <= stop:
        size = trailing_zeros(non_digits(at))
    else:
        while at + size < stop and 0 <= load_byte(at + size) - _ZERO <= 9:
            size += 1
    if size < 1 or size > MOST_DIGITS:
        return NOT_PLAIN, _U(0), at
    value = _U(0)
    if at + WINDOW <= stop:
        value = digits_at(at, size)
    else:
        for i in range(size):
            value = value * _U(10) + _U(load_byte(at + i) - _ZERO)
    return TOO_WIDE if value > high else OK, value, at + size


@njit(cache=True, nogil=True, inline="always")
def _pass_delimiter(at, stop, delimiter):
    """Return the address behind one delimiter and the blanks around it, -1 where there is none."""
    behind = _skip_blanks(at, stop, delimiter)
    if delimiter == _BLANKS:
        return behind if behind > at else -1
    if behind == stop or load_byte(behind) != delimiter:
        return -1
    return _skip_blanks(behind + 1, stop, delimiter)


@njit(cache=True, nogil=True, inline="always")
def _end_line(at, stop, delimiter):
    """Return where the next line begins, behind blanks, one CR and the LF; -1 where something else stands before it."""
    at = _skip_blanks(at, stop, delimiter)
    if at < stop and load_byte(at) == _CR:
        at += 1
    if at < stop and load_byte(at) != _LF:
        return -1
    return min(at + 1, stop)
