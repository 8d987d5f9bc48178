"""Dates and timestamps as text (ISO 8601) to integers, on the CPU. A kernel never raises: see ``delimited``.

A date is ``YYYY-MM-DD``, of the years 0001 to 9999. A timestamp is a date, and after ``T`` or a blank ``hh:mm``, ``hh:mm:ss``
or ``hh:mm:ss.fraction``; then ``Z``, ``+hh``, ``+hhmm`` or ``+hh:mm`` (also with ``-``), without which it is UTC. Blanks
around are fine.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.delimited import Codes, Ints, without_empty
from graphprep.kernels.cpu.text.numbers import EMPTY, FRACTION, INVALID, OK, OVERFLOW, skip_blanks, trim_blanks

UNITS = {"day": -1, "s": 0, "ms": 3, "us": 6, "ns": 9}  # the digits of a second's fraction; -1: whole days

_PLUS, _COMMA, _MINUS, _POINT, _ZERO, _COLON, _UPPER_T, _UPPER_Z, _LOWER_T, _LOWER_Z = 43, 44, 45, 46, 48, 58, 84, 90, 116, 122
_SPACE = 32
_INT64_MAX = np.iinfo(np.int64).max


def parse_dates(buf: NDArray[np.uint8], start: Ints, stop: Ints, unit: str) -> tuple[Ints, Ints, Codes]:
    """Parse the cells that are not empty as dates (``unit`` day) or timestamps, counted from 1970-01-01.

    Returns (rows, int64 values, codes). What is finer than the unit is FRACTION, what does not fit int64 OVERFLOW.
    """
    values, codes = np.empty(start.size, np.int64), np.empty(start.size, np.uint8)
    _parse_dates(buf, start, stop, UNITS[unit], values, codes)
    return without_empty(values, codes)


@njit(cache=True, nogil=True)
def _parse_dates(buf, start, stop, digits, values, codes):
    """Fill ``values`` and ``codes``."""
    for row in range(start.size):
        end = stop[row] if stop[row] >= 0 else ~stop[row]
        first = skip_blanks(buf, start[row], end)
        end = trim_blanks(buf, first, end)
        code, value = _parse_date(buf, first, end, digits) if first < end else (EMPTY, 0)
        values[row] = value
        codes[row] = code


@njit(cache=True, nogil=True)
def _parse_date(buf, at, stop, digits):
    """Parse one date or timestamp. Returns (code, value)."""
    day = _day(buf, at, stop)
    if day == _INT64_MAX:
        return INVALID, 0
    at += 10
    if digits < 0:
        return (OK, day) if at == stop else (INVALID, 0)
    second, numerator, scale = np.int64(0), np.int64(0), 0
    if at < stop:
        if buf[at] not in (_SPACE, _UPPER_T, _LOWER_T):
            return INVALID, 0
        second, at = _clock(buf, at + 1, stop)
        if second < 0:
            return INVALID, 0
        if at < stop and buf[at] in (_POINT, _COMMA):
            first = at + 1
            at = first
            while at < stop and 0 <= np.int64(buf[at]) - _ZERO <= 9:
                digit = np.int64(buf[at]) - _ZERO
                at += 1
                if scale < digits:
                    numerator = numerator * 10 + digit
                    scale += 1
                elif digit != 0:
                    return FRACTION, 0
            if at == first:
                return INVALID, 0
        shift = _offset(buf, at, stop)
        if shift == _INT64_MAX:
            return INVALID, 0
        second -= shift
    for _ in range(digits - scale):
        numerator *= 10
    return _scale(day * 86400 + second, numerator, digits)


@njit(cache=True, nogil=True, error_model="numpy")
def _scale(seconds, numerator, digits):
    """Return (code, seconds in units plus the fraction)."""
    factor = np.int64(10) ** digits
    if seconds < 0 and numerator > 0:  # so that the product alone never leaves int64 where the sum would not
        seconds += 1
        numerator -= factor
    limit = _INT64_MAX // factor
    if seconds > limit or seconds < -limit:
        return OVERFLOW, 0
    value = seconds * factor
    if (numerator > 0 and value > _INT64_MAX - numerator) or (numerator < 0 and value < -_INT64_MAX - 1 - numerator):
        return OVERFLOW, 0
    return OK, value + numerator


@njit(cache=True, nogil=True)
def _two(buf, at, stop):
    """Parse two digits, -1 where they are none."""
    if at + 2 > stop:
        return -1
    high, low = np.int64(buf[at]) - _ZERO, np.int64(buf[at + 1]) - _ZERO
    if high < 0 or high > 9 or low < 0 or low > 9:
        return -1
    return high * 10 + low


@njit(cache=True, nogil=True)
def _day(buf, at, stop):
    """Return the days from 1970-01-01 of ``YYYY-MM-DD``, the largest int64 where it is none. Source: Hinnant's algorithms."""
    if at + 10 > stop or buf[at + 4] != _MINUS or buf[at + 7] != _MINUS:
        return _INT64_MAX
    century, year, month, day = _two(buf, at, stop), _two(buf, at + 2, stop), _two(buf, at + 5, stop), _two(buf, at + 8, stop)
    if century < 0 or year < 0 or month < 1 or month > 12 or day < 1:
        return _INT64_MAX
    year += 100 * century
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    last = 30 if month in (4, 6, 9, 11) else 31
    if month == 2:
        last = 29 if is_leap else 28
    if year < 1 or day > last:
        return _INT64_MAX
    if month <= 2:
        year -= 1
    era = year // 400
    of_era = year - era * 400
    of_year = (153 * (month - 3 if month > 2 else month + 9) + 2) // 5 + day - 1
    return era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + of_year - 719468


@njit(cache=True, nogil=True)
def _clock(buf, at, stop):
    """Parse ``hh:mm`` or ``hh:mm:ss``. Returns (second of the day, position behind it), second -1 where it is none."""
    hour = _two(buf, at, stop)
    if hour < 0 or hour > 23 or at + 5 > stop or buf[at + 2] != _COLON:
        return np.int64(-1), at
    minute = _two(buf, at + 3, stop)
    if minute < 0 or minute > 59:
        return np.int64(-1), at
    at += 5
    second = np.int64(0)
    if at < stop and buf[at] == _COLON:
        second = _two(buf, at + 1, stop)
        if second < 0 or second > 59:
            return np.int64(-1), at
        at += 3
    elif at < stop and buf[at] in (_POINT, _COMMA):
        return np.int64(-1), at
    return hour * 3600 + minute * 60 + second, at


@njit(cache=True, nogil=True)
def _offset(buf, at, stop):
    """Return the seconds by which a zone is ahead of UTC; the largest int64 where something else stands there."""
    if at == stop:
        return np.int64(0)
    if buf[at] in (_UPPER_Z, _LOWER_Z):
        return np.int64(0) if at + 1 == stop else _INT64_MAX
    if buf[at] not in (_PLUS, _MINUS):
        return _INT64_MAX
    sign = -1 if buf[at] == _MINUS else 1
    hour = _two(buf, at + 1, stop)
    at += 3
    minute = np.int64(0)
    if at < stop:
        at += buf[at] == _COLON
        minute = _two(buf, at, stop)
        at += 2
    if hour < 0 or hour > 23 or minute < 0 or minute > 59 or at != stop:
        return _INT64_MAX
    return np.int64(sign * (hour * 3600 + minute * 60))
