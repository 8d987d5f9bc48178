"""JSON lines to a tape of tokens. A kernel never raises: it says ``(code, position)``.

A token is two 64-bit words: the kind in the top byte of ``words`` with the position of the value's first byte below it,
and what is known of the value in ``extra``: the integer, the bits of the float, the position of a text's closing quote,
or the token behind a list or object. Members of an object stand as key, value, key, value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.numbers import OVERFLOW, parse_float

# Kinds. Numbers come last; NESTED is ARRAY with a list or object among its elements, one bit apart.
NULL, FALSE, TRUE, TEXT, ESCAPED, OBJECT, ARRAY, NESTED = range(8)
UINT, NEGATIVE, BIG, FLOAT, HUGE, NAN, INFINITE = range(8, 15)

# Faults.
OK = 0
EXPECTED_VALUE, EXPECTED_KEY, EXPECTED_COLON, EXPECTED_IN_OBJECT, EXPECTED_IN_ARRAY = range(1, 6)
OPEN_DOCUMENT, OPEN_TEXT, CONTROL, BAD_ESCAPE, BAD_UTF8, BAD_NUMBER, TOO_DEEP, TRAILING = range(6, 14)

MAX_DEPTH = 100
_WINDOW = 8
KIND_SHIFT = 56
_POSITION = (1 << KIND_SHIFT) - 1
_NESTED_BIT = 1 << KIND_SHIFT

_TAB, _LF, _CR, _SPACE, _QUOTE, _PLUS, _COMMA, _MINUS, _POINT, _ZERO = 9, 10, 13, 32, 34, 43, 44, 45, 46, 48
_NULL, _TRUE, _FALSE, _NAN, _INFINITY = (
    np.frombuffer(word, np.uint8) for word in (b"null", b"true", b"false", b"NaN", b"Infinity")
)
_COLON, _OPEN_ARRAY, _BACKSLASH, _CLOSE_ARRAY, _OPEN_OBJECT, _CLOSE_OBJECT = 58, 91, 92, 93, 123, 125
_EXACT_POWERS = 10.0 ** np.arange(23)  # those that a float64 holds exactly
_EXACT_MANTISSA = np.uint64(1 << 53)
_UINT64_TENTH = np.uint64(0xFFFFFFFFFFFFFFFF // 10)
_INT64_MIN = np.uint64(1 << 63)


def _text_classes() -> NDArray[np.uint8]:
    """Class every byte inside a text: 0 plain, 1 to be looked at."""
    classes = np.zeros(256, np.uint8)
    classes[:32] = 1
    classes[128:] = 1
    classes[[_QUOTE, _BACKSLASH]] = 1
    return classes


_CLASSES = _text_classes()


class Tape(NamedTuple):
    """The bytes (uint8, the last one a line feed) and their tokens (int64, int64)."""

    buf: NDArray[np.uint8]
    words: NDArray[np.int64]
    extra: NDArray[np.int64]


class Tokens(NamedTuple):
    """A tape, the first token of every record (a line that is JSON), and code and position of each line that is none."""

    tape: Tape
    roots: NDArray[np.int64]
    faults: NDArray[np.int64]


def tokenize(data: bytes, every: bool = False) -> Tokens:
    """Check lines of JSON and list their tokens. ``data`` ends with a line feed.

    Unless ``every`` line is wanted, this ends at the first fault.
    """
    if len(data) < 2 * _WINDOW:
        data += b"\n" * 2 * _WINDOW  # blank lines, so that eight bytes follow wherever kernels look
    buf = np.frombuffer(data, np.uint8)
    # Every token but the innermost opening ones of a faulty line takes two bytes with its comma, colon or bracket.
    capacity = buf.size // 2 + 2 * MAX_DEPTH + 2
    tape = Tape(buf, np.empty(capacity, np.int64), np.empty(capacity, np.int64))
    roots = np.empty(data.count(b"\n"), np.int64)
    faults = np.empty((roots.size + 1 if every else 1, 2), np.int64)
    num_records, num_faults = _tokenize(*tape, roots, np.empty(MAX_DEPTH, np.int64), faults)
    return Tokens(tape, roots[:num_records], faults[:num_faults])


@njit(cache=True, nogil=True)
def kind_of(words, token):
    """Return the kind of a token."""
    return words[token] >> KIND_SHIFT


@njit(cache=True, nogil=True)
def start_of(words, token):
    """Return the position of a value's first byte: of a text, its opening quote."""
    return words[token] & _POSITION


@njit(cache=True, nogil=True)
def after(words, extra, token):
    """Return the token behind a value and all that is in it."""
    kind = words[token] >> KIND_SHIFT
    return extra[token] if OBJECT <= kind <= NESTED else token + 1


@njit(cache=True, nogil=True)
def float_of(extra, token):
    """Return the value of a FLOAT, BIG, HUGE, NAN or INFINITE."""
    return np.int64(extra[token]).view(np.float64)


@njit(cache=True, nogil=True)
def bits_of(value):
    """Return the bits of a float64 as int64."""
    return np.float64(value).view(np.int64)


@njit(cache=True, nogil=True)
def _tokenize(buf, words, extra, roots, stack, faults):
    """Fill all, up to the fault that fills ``faults``. Returns (records, faults)."""
    at = token = num_records = num_faults = 0
    while at < buf.size:
        at = _skip_blanks(buf, at)
        if buf[at] != _LF:
            code, at, end = _document(buf, words, extra, at, token, stack)
            if code == OK:
                at = _skip_blanks(buf, at)
                code = OK if buf[at] == _LF else TRAILING
            if code == OK:
                roots[num_records] = token
                num_records += 1
                token = end
            else:
                faults[num_faults, 0] = code
                faults[num_faults, 1] = at
                num_faults += 1
                if num_faults == faults.shape[0]:
                    break
                while buf[at] != _LF:
                    at += 1
        at += 1
    return num_records, num_faults


@njit(cache=True, nogil=True, inline="always")
def _skip_blanks(buf, at):
    while buf[at] == _SPACE or buf[at] == _TAB or buf[at] == _CR:
        at += 1
    return at


@njit(cache=True, nogil=True)
def _document(buf, words, extra, at, token, stack):
    """Read the document at ``at``: ``(code, position, token)`` behind it. The line feed at the end stops every loop."""
    depth = 0
    in_object = False
    while True:
        # A value begins here.
        byte = buf[at]
        opened = False
        if byte == _QUOTE:
            code, stop, kind = _text(buf, at + 1)
            if code != OK:
                return code, stop, token
            words[token] = (kind << KIND_SHIFT) | at
            extra[token] = stop
            token += 1
            at = stop + 1
        elif byte in (_OPEN_OBJECT, _OPEN_ARRAY):
            if depth == MAX_DEPTH:
                return TOO_DEEP, at, token
            if depth > 0 and not in_object:
                words[stack[depth - 1]] |= _NESTED_BIT
            in_object = byte == _OPEN_OBJECT
            words[token] = ((OBJECT if in_object else ARRAY) << KIND_SHIFT) | at
            stack[depth] = token
            depth += 1
            token += 1
            at += 1
            opened = True
        elif byte == _MINUS or 0 <= np.int64(byte) - _ZERO <= 9:
            code, stop, kind, integer, value = _number(buf, at)
            if code != OK:
                return code, stop, token
            words[token] = (kind << KIND_SHIFT) | at
            if kind <= NEGATIVE:
                extra[token] = np.int64(integer)
            else:
                extra[token] = bits_of(value)
            token += 1
            at = stop
        else:
            kind, size = _word(buf, at)
            if size == 0:
                return OPEN_DOCUMENT if byte == _LF else EXPECTED_VALUE, at, token
            words[token] = (kind << KIND_SHIFT) | at
            extra[token] = bits_of(np.nan if kind == NAN else np.inf)
            token += 1
            at += size
        # Behind a value, or just inside a list or object.
        while True:
            if depth == 0:
                return OK, at, token
            at = _skip_blanks(buf, at)
            byte = buf[at]
            if byte == (_CLOSE_OBJECT if in_object else _CLOSE_ARRAY):
                depth -= 1
                extra[stack[depth]] = token
                in_object = depth > 0 and (words[stack[depth - 1]] >> KIND_SHIFT) == OBJECT
                opened = False
                at += 1
                continue
            if not opened:
                if byte != _COMMA:
                    fault = EXPECTED_IN_OBJECT if in_object else EXPECTED_IN_ARRAY
                    return OPEN_DOCUMENT if byte == _LF else fault, at, token
                at = _skip_blanks(buf, at + 1)
            if in_object:
                if buf[at] != _QUOTE:
                    return OPEN_DOCUMENT if buf[at] == _LF else EXPECTED_KEY, at, token
                code, stop, kind = _text(buf, at + 1)
                if code != OK:
                    return code, stop, token
                words[token] = (kind << KIND_SHIFT) | at
                extra[token] = stop
                token += 1
                at = _skip_blanks(buf, stop + 1)
                if buf[at] != _COLON:
                    return OPEN_DOCUMENT if buf[at] == _LF else EXPECTED_COLON, at, token
                at = _skip_blanks(buf, at + 1)
            break


@njit(cache=True, nogil=True)
def _word(buf, at):
    """Recognise a bare word: ``(kind, size)``, size 0 for none. ``NaN`` and the infinities as Python's parser takes them."""
    if _spells(buf, at, _NULL):
        return NULL, 4
    if _spells(buf, at, _TRUE):
        return TRUE, 4
    if _spells(buf, at, _FALSE):
        return FALSE, 5
    if _spells(buf, at, _NAN):
        return NAN, 3
    if _spells(buf, at, _INFINITY):
        return INFINITE, 8
    return NULL, 0


@njit(cache=True, nogil=True)
def _spells(buf, at, word):
    for i in range(word.size):  # a line feed differs from every letter, so this stays inside
        if buf[at + i] != word[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _text(buf, at):
    """Check a text from behind its opening quote: ``(code, position of the closing quote or fault, kind)``."""
    kind = TEXT
    while True:
        while _CLASSES[buf[at]] == 0:
            at += 1
        byte = buf[at]
        if byte == _QUOTE:
            return OK, at, kind
        if byte == _BACKSLASH:
            size = _escape_size(buf, at)
            if size == 0:
                return OPEN_TEXT if buf[at + 1] == _LF else BAD_ESCAPE, at, kind
            kind = ESCAPED
            at += size
        elif byte < 32:
            return OPEN_TEXT if byte == _LF else CONTROL, at, kind
        else:
            size = _utf8_size(buf, at)
            if size == 0:
                return BAD_UTF8, at, kind
            at += size


@njit(cache=True, nogil=True)
def _escape_size(buf, at):
    """Return the bytes of the escape at ``at``, 0 when it is none."""
    letter = buf[at + 1]
    if letter == 117:  # u
        for i in range(at + 2, at + 6):
            if hex_digit(buf[i]) < 0:
                return 0
        return 6
    # " / \ b f n r t
    if letter in (34, 47, 92, 98, 102, 110, 114, 116):
        return 2
    return 0


@njit(cache=True, nogil=True)
def hex_digit(byte):
    """Return the value of a hexadecimal digit, -1 for another byte."""
    if 48 <= byte <= 57:
        return np.int64(byte) - 48
    lower = byte | 32
    if 97 <= lower <= 102:
        return np.int64(lower) - 87
    return -1


@njit(cache=True, nogil=True)
def _utf8_size(buf, at):
    """Return the bytes of the UTF-8 letter at ``at`` (2 to 4), 0 when it is malformed. Source: RFC 3629."""
    lead = buf[at]
    second = buf[at + 1]  # there is one: a line feed ends the buffer
    if second & 0xC0 != 0x80 or lead < 0xC2 or lead > 0xF4:
        return 0
    if lead < 0xE0:
        return 2
    if buf[at + 2] & 0xC0 != 0x80:
        return 0
    if lead < 0xF0:
        overlong = lead == 0xE0 and second < 0xA0
        surrogate = lead == 0xED and second >= 0xA0
        return 0 if overlong or surrogate else 3
    if buf[at + 3] & 0xC0 != 0x80:
        return 0
    overlong = lead == 0xF0 and second < 0x90
    beyond = lead == 0xF4 and second >= 0x90
    return 0 if overlong or beyond else 4


@njit(cache=True, nogil=True, error_model="numpy")
def _number(buf, start):
    """Read a number: ``(code, stop or fault, kind, integer, float)``.

    UINT and NEGATIVE give the magnitude as uint64, every other kind the correctly rounded float64; BIG is an integer that
    fits neither uint64 nor int64, HUGE a number that is infinite as float64.
    """
    at = start
    negative = buf[at] == _MINUS
    if negative:
        at += 1
        if buf[at] == 73:  # I
            size = _word(buf, at)[1]
            return OK if size else BAD_NUMBER, at + size if size else start, INFINITE, np.uint64(0), -np.inf
    first = at
    mantissa = np.uint64(0)
    digit = np.int64(buf[at]) - _ZERO
    while 0 <= digit <= 9:
        mantissa = mantissa * np.uint64(10) + np.uint64(digit)  # may wrap: looked at below
        at += 1
        digit = np.int64(buf[at]) - _ZERO
    num_digits = at - first
    if num_digits == 0 or (num_digits > 1 and buf[first] == _ZERO):
        return BAD_NUMBER, start, FLOAT, np.uint64(0), 0.0
    is_integer = True
    power = 0
    if buf[at] == _POINT:
        is_integer = False
        at += 1
        point = at
        digit = np.int64(buf[at]) - _ZERO
        while 0 <= digit <= 9:
            mantissa = mantissa * np.uint64(10) + np.uint64(digit)
            at += 1
            digit = np.int64(buf[at]) - _ZERO
        power = point - at
        num_digits -= power
        if power == 0:
            return BAD_NUMBER, start, FLOAT, np.uint64(0), 0.0
    if buf[at] | 32 == 101:  # e
        is_integer = False
        at += 1
        down = buf[at] == _MINUS
        if down or buf[at] == _PLUS:
            at += 1
        mark = at
        exponent = 0
        digit = np.int64(buf[at]) - _ZERO
        while 0 <= digit <= 9:
            exponent = min(exponent * 10 + digit, 1 << 40)
            at += 1
            digit = np.int64(buf[at]) - _ZERO
        if at == mark:
            return BAD_NUMBER, start, FLOAT, np.uint64(0), 0.0
        power += -exponent if down else exponent
    if is_integer and (num_digits < 20 or (num_digits == 20 and _fits_uint64(buf, first, at))):
        if not negative:
            return OK, at, UINT, mantissa, 0.0
        if mantissa <= _INT64_MIN:
            return OK, at, NEGATIVE, mantissa, 0.0
    if num_digits < 20 and mantissa <= _EXACT_MANTISSA and -22 <= power <= 22:
        # Clinger's fast path: both numbers are exact, so one operation rounds once.
        value = np.float64(mantissa)
        value = value / _EXACT_POWERS[-power] if power < 0 else value * _EXACT_POWERS[power]
        return OK, at, FLOAT, np.uint64(0), -value if negative else value
    code, value = parse_float(buf, start, at)
    kind = HUGE if code == OVERFLOW else (BIG if is_integer else FLOAT)
    return OK, at, kind, np.uint64(0), value


@njit(cache=True, nogil=True)
def _fits_uint64(buf, start, stop):
    """Return whether the digits, without a leading zero, are below 2^64."""
    value = np.uint64(0)
    for at in range(start, stop):
        digit = np.uint64(buf[at] - _ZERO)
        if value > _UINT64_TENTH or (value == _UINT64_TENTH and digit > 5):
            return False
        value = value * np.uint64(10) + digit
    return True


@njit(cache=True, nogil=True)
def unescape(buf, start, stop, out, at):
    """Write what the text between the quotes stands for to ``out`` from ``at``: ``(end, lone)``.

    ``out`` has room for ``stop - start`` bytes. A lone surrogate is written as three bytes, and ``lone`` says so.
    """
    lone = False
    while start < stop:
        byte = buf[start]
        if byte != _BACKSLASH:
            out[at] = byte
            at += 1
            start += 1
            continue
        letter = buf[start + 1]
        if letter != 117:
            out[at] = _plain_escape(letter)
            at += 1
            start += 2
            continue
        point = _hex_word(buf, start + 2)
        start += 6
        if 0xD800 <= point < 0xE000:
            low = 0
            if point < 0xDC00 and start + 6 <= stop and buf[start] == _BACKSLASH and buf[start + 1] == 117:
                low = _hex_word(buf, start + 2)
            if 0xDC00 <= low < 0xE000:
                point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00)
                start += 6
            else:
                lone = True
        at = _put_utf8(out, at, point)
    return at, lone


@njit(cache=True, nogil=True)
def _plain_escape(letter):
    if letter == 98:
        return 8
    if letter == 102:
        return 12
    if letter == 110:
        return 10
    if letter == 114:
        return 13
    return 9 if letter == 116 else np.int64(letter)


@njit(cache=True, nogil=True)
def _hex_word(buf, at):
    word = 0
    for i in range(at, at + 4):
        word = word * 16 + hex_digit(buf[i])
    return word


@njit(cache=True, nogil=True)
def _put_utf8(out, at, point):
    if point < 0x80:
        out[at] = point
        return at + 1
    if point < 0x800:
        out[at] = 0xC0 | point >> 6
        out[at + 1] = 0x80 | point & 0x3F
        return at + 2
    if point < 0x10000:
        out[at] = 0xE0 | point >> 12
        out[at + 1] = 0x80 | point >> 6 & 0x3F
        out[at + 2] = 0x80 | point & 0x3F
        return at + 3
    out[at] = 0xF0 | point >> 18
    out[at + 1] = 0x80 | point >> 12 & 0x3F
    out[at + 2] = 0x80 | point >> 6 & 0x3F
    out[at + 3] = 0x80 | point & 0x3F
    return at + 4


def positions(tape: Tape, tokens: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the position of the first byte of every token's value."""
    return np.bitwise_and(tape.words[tokens], _POSITION)
