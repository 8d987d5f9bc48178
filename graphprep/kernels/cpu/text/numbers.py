"""Text to numbers. A kernel never raises: it says ``(code, value)``.

Every parser takes ``buf`` (uint8), and the field's ``start`` and ``stop``. Blanks (space, tab) around the number are fine,
inside they are not. The jitted functions are made to be called from other kernels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import (
    MOST_DIGITS,
    SCRATCH_WORDS,
    WINDOW,
    WORD,
    address_of,
    digits_at,
    digits_of_word,
    leading_zeros,
    load_byte,
    load_word,
    multiply,
    non_digits,
    scratch,
    trailing_zeros,
)

OK = 0
EMPTY = 1  # nothing but blanks
INVALID = 2  # not a number
OVERFLOW = 3  # a number, but too large for its type
NEGATIVE = 4  # an integer below 0 where none may be
FRACTION = 5  # a number with a fraction where none may be

_TAB, _SPACE, _PLUS, _MINUS, _POINT, _ZERO = 9, 32, 43, 45, 46, 48
_TRUE, _FALSE = np.frombuffer(b"true", np.uint8), np.frombuffer(b"false", np.uint8)
_UINT64_MAX = np.uint64(0xFFFFFFFFFFFFFFFF)
_TENTH_OF_UINT64 = np.uint64(0xFFFFFFFFFFFFFFFF // 10)
_INT64_MAX = np.uint64(0x7FFFFFFFFFFFFFFF)
_SAFE_DIGITS = 19  # 10^19 - 1 < 2^64
_MAX_EXPONENT = 10**15  # where exponents saturate: beyond any length of a field

_NAN_BITS = np.uint64(0x7FF8000000000000)
_INF_BITS = np.uint64(0x7FF0000000000000)
_HIDDEN_BIT = np.uint64(1 << 52)
_FRACTION = np.uint64((1 << 52) - 1)
_LOW_32 = np.uint64(0xFFFFFFFF)

_MIN_POWER, _MAX_POWER = -342, 308  # below: 0 for every 64-bit mantissa; above: infinite for every one
EXACT_POWERS = 10.0 ** np.arange(23)  # those that a float64 holds exactly
INTEGER_POWERS = np.uint64(10) ** np.arange(20, dtype=np.uint64)
DECIMAL_REACH = 2 * WINDOW  # bytes that ``read_decimal`` may look at: a sign and 20 others, an exponent's window
_MAX_DIGITS = 800  # more than the 767 that can tell a number from the middle of two float64
_NUM_LIMBS = SCRATCH_WORDS  # 5,120 bits; the longest product is 10^1142 times 2^54


def _powers_of_five() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Tabulate the upper and the lower half of 5^q, normalised to 128 bits, for q in -342..308.

    Truncated where q >= 0; reciprocals are rounded up. Source: Lemire, Number parsing at a gigabyte per second (2021).
    """
    mask = (1 << 64) - 1
    rows = []
    for q in range(_MIN_POWER, _MAX_POWER + 1):
        power = 5 ** abs(q)
        if q >= 0:
            bits = power << 128 >> power.bit_length()
        else:
            width = (power - 1).bit_length()
            bits = (1 << (width + 127 if q >= -27 else 2 * width + 128)) // power + 1
            bits >>= max(bits.bit_length() - 128, 0)
        rows.append((bits >> 64, bits & mask))
    table = np.array(rows, np.uint64)
    return table[:, 0].copy(), table[:, 1].copy()


_POWER_HIGH, _POWER_LOW = _powers_of_five()


@njit(cache=True, nogil=True)
def skip_blanks(buf, start, stop):
    """Return the first position in [start, stop) that is not a space or tab, else ``stop``."""
    while start < stop and (buf[start] == _SPACE or buf[start] == _TAB):
        start += 1
    return start


@njit(cache=True, nogil=True)
def trim_blanks(buf, start, stop):
    """Return the position after the last byte of [start, stop) that is not a space or tab, else ``start``."""
    while stop > start and (buf[stop - 1] == _SPACE or buf[stop - 1] == _TAB):
        stop -= 1
    return stop


@njit(cache=True, nogil=True)
def find_byte(buf, start, stop, byte):
    """Return the first position of ``byte`` in [start, stop), else ``stop``."""
    while start < stop and buf[start] != byte:
        start += 1
    return start


@njit(cache=True, nogil=True)
def find_line(buf, start):
    """Return ``(stop, next)`` of the line at ``start``: its end without LF and one CR before it, and where the next begins.

    The last line may lack its LF (then a CR at its end is taken off, too).
    """
    size = buf.size
    stop = find_byte(buf, start, size, 10)
    following = min(stop + 1, size)
    if stop > start and buf[stop - 1] == 13:
        stop -= 1
    return stop, following


@njit(cache=True, nogil=True)
def _magnitude(buf, start, stop):
    """Parse a run of digits, nothing else, to ``(code, uint64)``."""
    value = np.uint64(0)
    if start >= stop:
        return INVALID, value
    safe = min(stop, start + _SAFE_DIGITS)
    at = start
    while at < safe:
        digit = np.int64(buf[at]) - _ZERO
        if digit < 0 or digit > 9:
            return INVALID, np.uint64(0)
        value = value * np.uint64(10) + np.uint64(digit)
        at += 1
    overflow = False
    while at < stop:
        digit = np.int64(buf[at]) - _ZERO
        if digit < 0 or digit > 9:
            return INVALID, np.uint64(0)
        if value > _TENTH_OF_UINT64 or (value == _TENTH_OF_UINT64 and digit > 5):
            overflow = True
        if not overflow:
            value = value * np.uint64(10) + np.uint64(digit)
        at += 1
    if overflow:
        return OVERFLOW, _UINT64_MAX
    return OK, value


@njit(cache=True, nogil=True)
def parse_uint(buf, start, stop):
    """Parse an unsigned integer to ``(code, uint64)``: decimal digits, a sign before them; ``-0`` is 0, ``-1`` NEGATIVE."""
    start = skip_blanks(buf, start, stop)
    stop = trim_blanks(buf, start, stop)
    if start == stop:
        return EMPTY, np.uint64(0)
    negative = buf[start] == _MINUS
    if negative or buf[start] == _PLUS:
        start += 1
    code, value = _magnitude(buf, start, stop)
    if negative and (code == OVERFLOW or value != 0):
        return NEGATIVE, np.uint64(0)
    return code, value


@njit(cache=True, nogil=True)
def parse_int(buf, start, stop):
    """Parse a signed integer to ``(code, int64)``: decimal digits, a sign before them."""
    start = skip_blanks(buf, start, stop)
    stop = trim_blanks(buf, start, stop)
    if start == stop:
        return EMPTY, np.int64(0)
    negative = buf[start] == _MINUS
    if negative or buf[start] == _PLUS:
        start += 1
    code, value = _magnitude(buf, start, stop)
    if code != OK:
        return code, np.int64(0)
    if negative:
        if value > _INT64_MAX + np.uint64(1):
            return OVERFLOW, np.int64(0)
        return OK, np.int64(~value + np.uint64(1))
    if value > _INT64_MAX:
        return OVERFLOW, np.int64(0)
    return OK, np.int64(value)


@njit(cache=True, nogil=True)
def read_decimal(at):
    """Read the usual kind of number at an address: a minus, digits, a point with digits, an exponent of up to three digits.

    Returns (float64, the address behind it), correctly rounded; the address is -1 where the number is of another kind, has more
    than 19 digits, or is infinite. ``DECIMAL_REACH`` bytes must be there.
    """
    negative = load_byte(at) == _MINUS
    at += np.int64(negative)
    others = non_digits(at)
    num_whole = trailing_zeros(others)
    end = at + num_whole
    power = 0
    if num_whole < 1 or num_whole > MOST_DIGITS:
        return 0.0, -1
    if load_byte(end) == _POINT:
        num_fraction = trailing_zeros(others & (others - np.uint64(1))) - num_whole - 1
        if num_fraction < 1 or num_whole + num_fraction > MOST_DIGITS:
            return 0.0, -1
        if num_whole <= WORD and num_fraction <= WORD:
            whole = digits_of_word(load_word(at), num_whole)
            fraction = digits_of_word(load_word(end + 1), num_fraction)
        else:
            whole, fraction = digits_at(at, num_whole), digits_at(end + 1, num_fraction)
        mantissa = whole * INTEGER_POWERS[num_fraction] + fraction
        end += 1 + num_fraction
        power = -num_fraction
    else:
        mantissa = digits_at(at, num_whole)
    if (load_byte(end) | 32) == 101:  # e
        falls = load_byte(end + 1) == _MINUS
        end += 1 + np.int64(falls or load_byte(end + 1) == _PLUS)
        size = trailing_zeros(non_digits(end))
        if size < 1 or size > 3:
            return 0.0, -1
        exponent = np.int64(digits_at(end, size))
        power += -exponent if falls else exponent
        end += size
    if mantissa <= (_HIDDEN_BIT << np.uint64(1)) and -22 <= power <= 22:
        # Clinger's fast path: both numbers are exact, so one operation rounds once.
        value = np.float64(mantissa)
        value = value / EXACT_POWERS[-power] if power < 0 else value * EXACT_POWERS[power]
    else:
        bits = _round_decimal(mantissa, power)
        if bits == _INF_BITS:
            return 0.0, -1
        value = _to_float(bits)
    return -value if negative else value, end


@njit(cache=True, nogil=True)
def parse_float(buf, start, stop):
    """Parse to ``(code, float64)``, correctly rounded: what Python's ``float()`` makes of the text, bit for bit.

    Takes decimal digits with a point and an exponent, ``inf``, ``infinity`` and ``nan`` in any case, a sign before each; no
    ``_``. A finite text that becomes infinite is OVERFLOW (the value is infinite). NaN is the positive quiet one.
    """
    start = skip_blanks(buf, start, stop)
    stop = trim_blanks(buf, start, stop)
    if start == stop:
        return EMPTY, 0.0
    if start + DECIMAL_REACH <= buf.size:
        first = address_of(buf)
        value, end = read_decimal(first + start)
        if end == first + stop:
            return OK, value
    negative = buf[start] == _MINUS
    if negative or buf[start] == _PLUS:
        start += 1
    at = start
    mantissa = np.uint64(0)
    num_kept = 0  # digits in the mantissa, from the first that is not zero
    num_dropped = 0  # digits of the integer part that did not fit
    num_fraction = 0  # digits of the fraction in the mantissa, or zeros before it
    truncated = False
    num_digits = 0
    while at < stop:
        digit = np.int64(buf[at]) - _ZERO
        if digit < 0 or digit > 9:
            break
        if num_kept < _SAFE_DIGITS:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
            num_kept += mantissa != 0
        else:
            num_dropped += 1
            truncated |= digit != 0
        at += 1
    num_digits = at - start
    if at < stop and buf[at] == _POINT:
        at += 1
        first = at
        while at < stop:
            digit = np.int64(buf[at]) - _ZERO
            if digit < 0 or digit > 9:
                break
            if num_kept < _SAFE_DIGITS:
                mantissa = mantissa * np.uint64(10) + np.uint64(digit)
                num_kept += mantissa != 0
                num_fraction += 1
            else:
                truncated |= digit != 0
            at += 1
        num_digits += at - first
    if num_digits == 0:
        return _parse_special(buf, start, stop, negative)
    end_of_digits = at
    exponent = 0
    if at < stop and (buf[at] | 32) == 101:  # e
        at += 1
        exponent_negative = at < stop and buf[at] == _MINUS
        if at < stop and (exponent_negative or buf[at] == _PLUS):
            at += 1
        first = at
        while at < stop:
            digit = np.int64(buf[at]) - _ZERO
            if digit < 0 or digit > 9:
                break
            exponent = min(exponent * 10 + digit, _MAX_EXPONENT)
            at += 1
        if at == first:
            return INVALID, 0.0
        if exponent_negative:
            exponent = -exponent
    if at < stop:
        return INVALID, 0.0
    power = exponent + num_dropped - num_fraction
    if not truncated and mantissa <= (_HIDDEN_BIT << np.uint64(1)) and -22 <= power <= 22:
        # Clinger's fast path: both numbers are exact, so one operation rounds once.
        value = np.float64(mantissa)
        value = value / EXACT_POWERS[-power] if power < 0 else value * EXACT_POWERS[power]
        return OK, -value if negative else value
    bits = _round_decimal(mantissa, power)
    if truncated:
        above = _round_decimal(mantissa + np.uint64(1), power)
        if above != bits and _is_at_least_middle(buf, start, end_of_digits, exponent, bits):
            bits = above
    value = _to_float(bits)
    if negative:
        value = -value
    if bits == _INF_BITS:
        return OVERFLOW, value
    return OK, value


@njit(cache=True, nogil=True)
def parse_scaled_int(buf, start, stop, scale):
    """Parse a decimal number times ``10 ** scale`` to ``(code, int64)``, exactly; FRACTION where the product is not whole.

    Takes what ``parse_float`` takes, except infinities and NaN.
    """
    code, _ = parse_float(buf, start, stop)
    if code in (EMPTY, INVALID):
        return code, np.int64(0)
    at = skip_blanks(buf, start, stop)
    stop = trim_blanks(buf, at, stop)
    negative = buf[at] == _MINUS
    if negative or buf[at] == _PLUS:
        at += 1
    if (buf[at] | 32) == 105 or (buf[at] | 32) == 110:  # inf, nan
        return INVALID, np.int64(0)
    end = at
    num_whole = 0
    seen_point = False
    while end < stop and (buf[end] | 32) != 101:  # e
        seen_point |= buf[end] == _POINT
        num_whole += 0 if seen_point else 1
        end += 1
    exponent = scale
    if end < stop:
        step = 1
        first = end + 1
        if buf[first] == _MINUS or buf[first] == _PLUS:
            step = -1 if buf[first] == _MINUS else 1
            first += 1
        size = 0
        for i in range(first, stop):
            size = min(size * 10 + np.int64(buf[i]) - _ZERO, _MAX_EXPONENT)
        exponent += step * size
    value = np.uint64(0)
    power = num_whole + exponent  # of ten, of the digit before the next one
    for i in range(at, end):
        if buf[i] == _POINT:
            continue
        power -= 1
        digit = np.uint64(buf[i] - _ZERO)
        if power < 0:
            if digit != 0:
                return FRACTION, np.int64(0)
            continue
        # Where it saturates, it stays beyond any int64.
        value = value * np.uint64(10) + digit if value < _TENTH_OF_UINT64 else _UINT64_MAX
    while power > 0 and value != 0 and value <= _INT64_MAX:
        value = value * np.uint64(10) if value < _TENTH_OF_UINT64 else _UINT64_MAX
        power -= 1
    if negative:
        if value > _INT64_MAX + np.uint64(1):
            return OVERFLOW, np.int64(0)
        return OK, np.int64(~value + np.uint64(1))
    if value > _INT64_MAX:
        return OVERFLOW, np.int64(0)
    return OK, np.int64(value)


@njit(cache=True, nogil=True)
def parse_bool(buf, start, stop):
    """Parse ``0``, ``1``, ``true`` or ``false`` in any case to ``(code, bool)``."""
    start = skip_blanks(buf, start, stop)
    stop = trim_blanks(buf, start, stop)
    size = stop - start
    if size == 0:
        return EMPTY, False
    if size == 1 and (buf[start] == _ZERO or buf[start] == _ZERO + 1):
        return OK, buf[start] != _ZERO
    if size not in (_TRUE.size, _FALSE.size):
        return INVALID, False
    word = _TRUE if size == _TRUE.size else _FALSE
    for i in range(size):
        if (buf[start + i] | 32) != word[i]:
            return INVALID, False
    return OK, size == _TRUE.size


@njit(cache=True, nogil=True)
def _to_float(bits):
    """Reinterpret 64 bits as a float64."""
    return np.uint64(bits).view(np.float64)


@njit(cache=True, nogil=True)
def _parse_special(buf, start, stop, negative):
    """Parse ``inf``, ``infinity`` or ``nan`` in any case."""
    size = stop - start
    if size == 3 and (buf[start] | 32) == 110 and (buf[start + 1] | 32) == 97 and (buf[start + 2] | 32) == 110:
        return OK, _to_float(_NAN_BITS)
    word = (105, 110, 102, 105, 110, 105, 116, 121)  # infinity
    if size not in (3, 8):
        return INVALID, 0.0
    for i in range(size):
        if (buf[start + i] | 32) != word[i]:
            return INVALID, 0.0
    value = _to_float(_INF_BITS)
    return OK, -value if negative else value


@njit(cache=True, nogil=True)
def _round_decimal(mantissa, power):
    """Round ``mantissa * 10^power`` to the bits of the nearest float64, ties to even.

    Source: Lemire, Number parsing at a gigabyte per second (2021), and Mushtak & Lemire, Fast number parsing without
    fallback (2023): 128 bits of the power always suffice for a mantissa of 64.
    """
    if mantissa == 0 or power < _MIN_POWER:
        return np.uint64(0)
    if power > _MAX_POWER:
        return _INF_BITS
    shift = leading_zeros(mantissa)
    mantissa = mantissa << np.uint64(shift)
    high, low = multiply(mantissa, _POWER_HIGH[power - _MIN_POWER])
    undecided = np.uint64(0x1FF)  # the 9 bits below those that count
    if high & undecided == undecided:
        carry, _ = multiply(mantissa, _POWER_LOW[power - _MIN_POWER])
        low = low + carry
        if carry > low:
            high = high + np.uint64(1)
    upper_bit = np.int64(high >> np.uint64(63))
    kept = high >> np.uint64(upper_bit + 9)  # 53 bits and one to round by
    exponent = ((217706 * power) >> 16) + 63 + upper_bit - shift + 1023  # 217706 / 2^16 = log2(10), closely enough
    if exponent <= 0:
        if 1 - exponent >= 64:
            return np.uint64(0)
        kept = kept >> np.uint64(1 - exponent)
        return (kept + (kept & np.uint64(1))) >> np.uint64(1)  # a carry into the hidden bit makes it the least normal number
    if low <= 1 and -4 <= power <= 23 and kept & np.uint64(3) == 1 and (kept << np.uint64(upper_bit + 9)) == high:
        kept = kept & ~np.uint64(1)  # exactly in the middle: to even
    kept = (kept + (kept & np.uint64(1))) >> np.uint64(1)
    if kept >= (_HIDDEN_BIT << np.uint64(1)):
        kept = _HIDDEN_BIT
        exponent += 1
    if exponent >= 0x7FF:
        return _INF_BITS
    return (kept & _FRACTION) | (np.uint64(exponent) << np.uint64(52))


@njit(cache=True, nogil=True)
def _is_at_least_middle(buf, start, stop, exponent, bits):
    """Compare digits times 10^exponent with the middle of float64 ``bits`` and the next; a tie counts when ``bits`` is odd.

    Exact, in multiples of 2^32; the way of the few numbers whose first 19 digits do not decide.
    """
    ours = scratch()
    middle = scratch()
    num_digits = 0
    sticky = False
    after_point = False
    for at in range(start, stop):
        if buf[at] == _POINT:
            after_point = True
            continue
        digit = np.uint64(buf[at] - _ZERO)
        if num_digits >= _MAX_DIGITS:
            sticky |= digit != 0
            exponent += 0 if after_point else 1
            continue
        if num_digits > 0 or digit != 0:
            num_digits += 1
            _multiply_add(ours, np.uint64(10), digit)
        exponent -= 1 if after_point else 0
    if sticky:
        _multiply_add(ours, np.uint64(10), np.uint64(1))
        exponent -= 1
    fraction = bits & _FRACTION
    power_of_two = np.int64(bits >> np.uint64(52))
    if power_of_two > 0:
        fraction |= _HIDDEN_BIT
    power_of_two = max(power_of_two, 1) - 1075 - 1
    fraction = fraction * np.uint64(2) + np.uint64(1)
    middle[0] = fraction & _LOW_32
    middle[1] = fraction >> np.uint64(32)
    _multiply_power(ours if exponent > 0 else middle, np.uint64(10), abs(exponent))
    _multiply_power(middle if power_of_two > 0 else ours, np.uint64(2), abs(power_of_two))
    for i in range(_NUM_LIMBS - 1, -1, -1):
        if ours[i] != middle[i]:
            return ours[i] > middle[i]
    return bits & np.uint64(1) == 1


@njit(cache=True, nogil=True)
def _multiply_add(limbs, factor, term):
    """Multiply a number in 32-bit limbs, the lowest first, by ``factor`` < 2^32 and add ``term`` < 2^32, in place."""
    carry = term
    for i in range(_NUM_LIMBS):
        carry = limbs[i] * factor + carry
        limbs[i] = carry & _LOW_32
        carry = carry >> np.uint64(32)


@njit(cache=True, nogil=True)
def _multiply_power(limbs, base, power):
    """Multiply limbs by ``base ** power``, ``base`` at most 10, in place."""
    step = np.uint64(1)
    for _ in range(9):  # 10^9 < 2^32
        step = step * base
    while power >= 9:
        _multiply_add(limbs, step, np.uint64(0))
        power -= 9
    for _ in range(power):
        _multiply_add(limbs, base, np.uint64(0))


def round_to(values: NDArray[np.float64], dtype: np.dtype[np.floating]) -> tuple[NDArray[np.floating], int]:
    """Round float64 values to a floating dtype.

    Returns the rounded values (the same array where there is nothing to round) and the position of the first finite one that
    became infinite, else -1.
    """
    with np.errstate(over="ignore"):
        rounded = values.astype(dtype, copy=False)
    if dtype.itemsize >= values.dtype.itemsize:
        return rounded, -1
    bad = np.isinf(rounded) & np.isfinite(values)
    return rounded, int(bad.argmax()) if bad.any() else -1
