"""Lines of numbers to arrays: pairs of IDs, and tables of integers or floats. A kernel never raises.

``delimiter`` is what separates fields, as bytes; empty means runs of blanks (then blanks at both ends of a line are fine).
One pair of double quotes around a number is taken off. Lines end at LF; one CR before it is taken off.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import address_of, digits_at, load_byte, non_digits, trailing_zeros
from graphprep.kernels.cpu.text import pairs as plain
from graphprep.kernels.cpu.text.delimited import TOO_FEW, TOO_MANY, Codes, Ints, parse_ids, parse_numbers
from graphprep.kernels.cpu.text.numbers import (
    DECIMAL_REACH,
    OK,
    OVERFLOW,
    find_byte,
    find_line,
    parse_float,
    read_decimal,
    round_to,
    skip_blanks,
    trim_blanks,
)
from graphprep.kernels.cpu.text.pairs import count_lines

# Codes beyond those of ``numbers`` and ``delimited``. Of TOO_FEW fields the position is the end of the line, of TOO_MANY the
# first that is too many.
OUT_OF_RANGE = 33  # an ID that its type does not have
BLANK = 34  # a blank line where a row must stand
SURPLUS = 35  # a row behind the last that may stand

_LF, _CR, _SPACE, _TAB, _QUOTE = 10, 13, 32, 9, 34
_MINUS = np.uint8(ord("-"))
_SAFE_DIGITS = 18  # 10^18 - 1 < 2^63
_LEAST_BYTES = 4 * DECIMAL_REACH  # of a text that is worth the plain way
_IN_NUMBERS = b"+-.eE"  # delimiters that numbers may hold


@dataclass(frozen=True)
class Fault:
    """The first faulty field: why (a code), its column, and its bytes [start, stop) in the block."""

    code: int
    column: int
    start: int
    stop: int


Uints = NDArray[np.uint64]


def parse_pairs(data: bytes, delimiter: bytes, num_src: int, num_dst: int) -> tuple[Uints, Uints, Ints, Ints] | Fault:
    """Parse lines of exactly two IDs, the first below ``num_src``, the second below ``num_dst``; skip blank lines.

    Returns (src, dst, byte of each src, byte of each dst), or the first fault.
    """
    buf = np.frombuffer(data, np.uint8)
    starts, stops, rows, more, fault = _split(buf, delimiter, 2, count_lines(buf, 0, buf.size), blanks_are_rows=False)
    fields = rows * 2 + more  # those of a faulty line before its fault
    ids, codes = parse_ids(buf, starts[:fields], stops[:fields], 0)
    limits = np.resize(np.array([num_src, num_dst], np.uint64), fields)
    codes[(codes == OVERFLOW) | ((codes == OK) & (ids >= limits))] = OUT_OF_RANGE
    fault = _first_fault(codes, starts, stops, 2) or fault
    if fault is not None:
        return fault
    return ids[::2].copy(), ids[1::2].copy(), starts[:fields:2].copy(), starts[1:fields:2].copy()


def parse_plain_pairs(
    buf: NDArray[np.uint8], delimiter: bytes, num_src: int, num_dst: int
) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """Parse like ``parse_pairs`` lines that are plain without exception; None where one is not, or where an ID is out of range.

    Returns (src, dst), uint32 where IDs fit that, else uint64.
    """
    if len(delimiter) > 1:
        return None
    most = count_lines(buf, 0, buf.size)
    dtype = np.uint32 if max(num_src, num_dst) <= 1 << 32 else np.uint64
    src, dst = np.empty(most, dtype), np.empty(most, dtype)
    rows, code, _ = plain.parse_pairs(buf, 0, buf.size, delimiter, src, dst)
    src, dst = src[:rows], dst[:rows]
    num_lines = most - (not buf.size or buf[-1] == _LF)
    # Where a line is no row, it may be a comment, which is none here.
    if code != OK or rows < num_lines or (rows and (src.max() >= num_src or dst.max() >= num_dst)):
        return None
    return src, dst


def parse_table(
    data: bytes | NDArray[np.uint8], delimiter: bytes, width: int, most_rows: int, dtype: str | None = None
) -> NDArray[Any] | Fault:
    """Parse lines of ``width`` numbers each; the first ``most_rows`` lines must be rows, those behind must be blank.

    Returns [rows, width] of ``dtype`` (NumPy's name of a bool, integer or float), by default int64 where every field is an
    integer of 64 bits other than ``-0``, else float64; or the first fault.
    """
    buf = np.frombuffer(data, np.uint8) if isinstance(data, bytes) else data
    top, at = _parse_plain(buf, delimiter, width, most_rows, dtype)
    rest = _parse_any(buf[at:], delimiter, width, most_rows - top.shape[0], dtype)
    if isinstance(rest, Fault):
        return replace(rest, start=rest.start + at, stop=rest.stop + at)
    # Integers of 64 bits become the same floats in two steps as in one.
    return np.concatenate([top, rest]) if top.size and rest.size else top if top.size else rest


def _parse_plain(
    buf: NDArray[np.uint8], delimiter: bytes, width: int, most_rows: int, dtype: str | None
) -> tuple[NDArray[Any], int]:
    """Parse plain lines (one delimiter between fields, nothing around them) from the top. Returns rows, and where they end."""
    target = np.dtype(dtype or np.int64)
    if len(delimiter) > 1 or (delimiter and delimiter in _IN_NUMBERS) or target.kind == "b" or buf.size < _LEAST_BYTES:
        return np.empty((0, width), target), 0
    between = delimiter[0] if delimiter else _SPACE
    most = min(count_lines(buf, 0, buf.size), most_rows) * width
    if target.kind != "f":
        ints = np.empty(most, np.int64)
        rows, at = _plain_numbers(buf, between, width, False, ints)
        found = ints[: rows * width].reshape(rows, width)
        if dtype is None and not _is_integers(buf, at, delimiter, width):
            return _parse_plain(buf, delimiter, width, most_rows, "float64")
        limits = np.iinfo(target)
        fits = target == np.int64 or not rows or (found.min() >= limits.min and found.max() <= limits.max)
        return (found.astype(target, copy=False), at) if fits else (found[:0].astype(target), 0)
    floats = np.empty(most, np.float64)
    rows, at = _plain_numbers(buf, between, width, True, floats.view(np.int64))
    rounded, lost = round_to(floats[: rows * width], target)
    return (rounded.reshape(rows, width), at) if lost < 0 else (rounded[:0].reshape(0, width), 0)


def _is_integers(buf: NDArray[np.uint8], at: int, delimiter: bytes, width: int) -> bool:
    """Return whether the line at ``at`` gives no reason to read floats: it has integers, is at fault, or is not there."""
    line = buf[at : find_line(buf, at)[1]] if at < buf.size else buf[:0]
    row = _parse_any(line, delimiter, width, 1, None)
    return isinstance(row, Fault) or not row.size or row.dtype == np.int64


def _parse_any(buf: NDArray[np.uint8], delimiter: bytes, width: int, most_rows: int, dtype: str | None) -> NDArray[Any] | Fault:
    """Parse lines of any kind like ``parse_table``."""
    most = min(count_lines(buf, 0, buf.size), most_rows)
    starts, stops, rows, _, fault = _split(buf, delimiter, width, most, blanks_are_rows=True)
    where = (buf, starts[: rows * width], stops[: rows * width])
    # No integer keeps the sign of -0; a float does, wherever the column is cut into blocks.
    values, codes = parse_numbers(dtype or "int64", *where, keep_sign=dtype is None)
    if dtype is None and codes.any():
        values, codes = parse_numbers("float64", *where)
    # A fault in a field comes before that of its line's end or of a later line.
    return _first_fault(codes, starts, stops, width) or fault or values.reshape(rows, width)


def _first_fault(codes: Codes, starts: Ints, stops: Ints, width: int) -> Fault | None:
    if not codes.any():
        return None
    at = int(np.flatnonzero(codes)[0])
    return Fault(int(codes[at]), at % width, int(starts[at]), int(stops[at]))


def _split(
    buf: NDArray[np.uint8], delimiter: bytes, width: int, most_rows: int, *, blanks_are_rows: bool
) -> tuple[Ints, Ints, int, int, Fault | None]:
    """Find the fields of every line, up to a fault.

    Returns their starts and stops, the number of whole rows, that of fields in a faulty line before its fault, and the fault.
    """
    starts, stops = np.empty(most_rows * width, np.int64), np.empty(most_rows * width, np.int64)
    delim = np.frombuffer(delimiter, np.uint8)
    rows, more, code, column, start, stop = _find_fields(buf, delim, width, most_rows, blanks_are_rows, starts, stops)
    return starts, stops, rows, more, None if code == OK else Fault(code, column, start, stop)


@njit(cache=True, nogil=True, error_model="numpy")
def _plain_numbers(buf, between, width, are_floats, values):
    """Fill ``values`` (int64) with rows of integers, or the bits of floats. Returns (rows, position behind them)."""
    base = address_of(buf)
    safe = base + buf.size - DECIMAL_REACH
    at = base
    field = 0
    while field + width <= values.size:
        line = at
        for column in range(width):
            if at > safe:
                return field // width, line - base
            if are_floats:
                end, value = _plain_float(buf, base, at, safe, between)
                values[field + column] = np.float64(value).view(np.int64)
            else:
                end, values[field + column] = _plain_int(at)
            at = _behind_plain(end, between, column + 1 == width) if end >= 0 else end
            if at < 0:
                return field // width, line - base
        field += width
    return field // width, at - base


@njit(cache=True, nogil=True, forceinline=True)
def _plain_int(at):
    """Read an integer of up to 18 digits, no -0: (end, int64); the end is -1 where there is none."""
    negative = load_byte(at) == _MINUS
    at += np.int64(negative)
    size = trailing_zeros(non_digits(at))
    if size < 1 or size > _SAFE_DIGITS:
        return np.int64(-1), np.int64(0)
    value = np.int64(digits_at(at, size))
    return np.int64(-1) if negative and value == 0 else at + size, -value if negative else value


@njit(cache=True, nogil=True, forceinline=True)
def _plain_float(buf, base, at, safe, between):
    """Read a number that ends before ``safe``: (end, float64); the end is -1 where there is none."""
    value, end = read_decimal(at)
    if end < 0:
        end = _find_end(at, base + buf.size, between)
        code, value = parse_float(buf, at - base, end - base)
        if code != OK or end > safe:
            return np.int64(-1), value
    return end, value


@njit(cache=True, nogil=True, inline="always")
def _behind_plain(end, between, is_last):
    """Return the address behind the delimiter or the end of the line that follows a field, -1 where something else does."""
    byte = load_byte(end)
    if not is_last:
        return end + 1 if byte == between else -1
    if byte == _CR:
        end += 1
        byte = load_byte(end)
    return end + 1 if byte == _LF else -1


@njit(cache=True, nogil=True)
def _find_end(at, stop, between):
    """Return where a field ends: at its delimiter, at the end of its line, or at ``stop``."""
    while at < stop and load_byte(at) != between and load_byte(at) != _LF and load_byte(at) != _CR:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _field_stop(buf, start, stop, delim):
    """Return where the field at ``start`` ends: at the next delimiter, else at the end of the line."""
    if delim.size == 1:
        return find_byte(buf, start, stop, delim[0])
    at = start
    if delim.size == 0:
        while at < stop and buf[at] != _SPACE and buf[at] != _TAB:
            at += 1
        return at
    while at + delim.size <= stop:
        i = 0
        while i < delim.size and buf[at + i] == delim[i]:
            i += 1
        if i == delim.size:
            return at
        at += 1
    return stop


@njit(cache=True, nogil=True)
def _unquote(buf, start, stop):
    """Return the field without blanks and one pair of quotes around it."""
    start = skip_blanks(buf, start, stop)
    stop = trim_blanks(buf, start, stop)
    if stop - start >= 2 and buf[start] == _QUOTE and buf[stop - 1] == _QUOTE:
        return start + 1, stop - 1
    return start, stop


@njit(cache=True, nogil=True)
def _line(buf, at, delim):
    """Return ``(start, stop, next, blank)`` of the line at ``at``, without outer blanks where they delimit."""
    stop, following = find_line(buf, at)
    first = skip_blanks(buf, at, stop)
    if delim.size == 0:
        return first, trim_blanks(buf, first, stop), following, first == stop
    return at, stop, following, first == stop


@njit(cache=True, nogil=True)
def _find_fields(buf, delim, width, most_rows, blanks_are_rows, starts, stops):
    """Fill ``starts`` and ``stops``; return ``(whole rows, further fields, code, column, start, stop)``."""
    row = 0
    at = 0
    while at < buf.size:
        start, stop, following, blank = _line(buf, at, delim)
        at = following
        if blank and (row == most_rows or not blanks_are_rows):
            continue
        if row == most_rows:
            return row, 0, SURPLUS, 0, start, stop
        if blank:
            return row, 0, BLANK, 0, start, start
        for column in range(width):
            end = _field_stop(buf, start, stop, delim)
            starts[row * width + column], stops[row * width + column] = _unquote(buf, start, end)
            last = column == width - 1
            if last and end < stop:
                return row, width, TOO_MANY, width, skip_blanks(buf, end + max(delim.size, 1), stop), stop
            if not last and end == stop:
                return row, column + 1, TOO_FEW, column + 1, stop, stop
            start = end + max(delim.size, 1)
            if delim.size == 0:
                start = skip_blanks(buf, start, stop)
        row += 1
    return row, 0, OK, 0, 0, 0
