"""Feature slots of a text block: what stands where, and its values. A kernel never raises.

A format's walker writes down every slot that has values as a row of ``slots`` (int64[k, 5]: GROUP, ROW, COUNT, START, STOP):
its group, the node or edge that owns it, its number of values (of bytes, for a text), and the bytes they stand in. A group is
what becomes one column: a row of ``groups`` (int64[g, 4]: OWNER, SLOT, DTYPE, WIDTH), found again through ``buckets``.
"""

from __future__ import annotations

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.numbers import (
    OK,
    find_byte,
    find_line,
    parse_float,
    parse_int,
    parse_uint,
    skip_blanks,
    trim_blanks,
)

GROUP, ROW, COUNT, START, STOP = range(5)
OWNER, SLOT, DTYPE, WIDTH = range(4)
NODE, EDGE = np.int64(0), np.int64(1)  # plain integers would have every function compiled once for each
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
TEXT_DTYPE = np.int64(len(DTYPES))  # the DTYPE of texts; that of numbers is their dtype's position
NOT_SPARSE = -1  # a group's WIDTH; 0 is flat

_MAX_EXACT = 1 << 53  # float64 holds every integer up to here, and the powers of ten up to 10^22
_EXACT_POWERS = 10.0 ** np.arange(23)
_MIX = np.uint64(0x9E3779B97F4A7C15)


@njit(cache=True, nogil=True)
def matches(buf, at, stop, text):
    """Say whether ``text`` (uint8) stands at ``at`` and ends by ``stop``."""
    if at + text.size > stop:
        return False
    for i in range(text.size):
        if buf[at + i] != text[i]:
            return False
    return True


@njit(cache=True, nogil=True)
def note_fault(buf, progress, faults, pos, number):
    """Copy a walker's ``progress`` to ``faults`` and go on with the next line, unless it is full then: say so.

    ``pos`` and ``number`` are where ``progress`` has the position of the line, and the number of faults.
    """
    for field in range(progress.size):  # an assignment of rows could raise
        faults[progress[number], field] = progress[field]
    progress[number] += 1
    if progress[number] == faults.shape[0]:
        return True
    progress[pos] = find_line(buf, progress[pos])[1]
    return False


@njit(cache=True, nogil=True)
def find_text(buf, start, stop, text):
    """Return the first position of ``text`` (uint8, not empty) in [start, stop), else ``stop``."""
    if text.size == 1:
        return find_byte(buf, start, stop, text[0])
    while start < stop:
        start = find_byte(buf, start, stop, text[0])
        if matches(buf, start, stop, text):
            return start
        start += 1
    return stop


@njit(cache=True, nogil=True)
def find_word(buf, start, stop, words, word_stops):
    """Return which of the words the text [start, stop) is, else -1.

    ``words``: uint8, the words one after another; ``word_stops``: int64, where each ends.
    """
    size = stop - start
    first = 0
    for i in range(word_stops.size):
        if word_stops[i] - first == size:
            k = 0
            while k < size and buf[start + k] == words[first + k]:
                k += 1
            if k == size:
                return i
        first = word_stops[i]
    return -1


@njit(cache=True, nogil=True)
def find_group(groups, num_groups, buckets, owner, slot, dtype, width):
    """Return the group of these four; ``num_groups`` where it is new (then it was entered), -1 without room."""
    key = np.uint64(owner) + (np.uint64(slot) << np.uint64(1)) + (np.uint64(dtype) << np.uint64(40))
    key = (key ^ (np.uint64(width) << np.uint64(46))) * _MIX
    mask = buckets.size - 1
    bucket = np.int64(key >> np.uint64(32)) & mask
    while buckets[bucket] >= 0:
        group = buckets[bucket]
        if (
            groups[group, SLOT] == slot
            and groups[group, DTYPE] == dtype
            and groups[group, OWNER] == owner
            and groups[group, WIDTH] == width
        ):
            return group
        bucket = (bucket + 1) & mask
    if num_groups == groups.shape[0]:
        return -1
    buckets[bucket] = num_groups
    groups[num_groups, OWNER] = owner
    groups[num_groups, SLOT] = slot
    groups[num_groups, DTYPE] = dtype
    groups[num_groups, WIDTH] = width
    return num_groups


@njit(cache=True, nogil=True)
def mark_numbers(numbers, present):
    """Mark which int32 numbers >= 0 there are in ``present`` (bool). Returns False where one is beyond its end."""
    for i in range(numbers.size):
        if numbers[i] >= present.size:
            return False
        present[numbers[i]] = True
    return True


def grow_groups(groups, num_groups: int):
    """Return ``groups`` with twice the room, and new ``buckets`` (int64, four for each group, a power of two)."""
    larger = np.empty((2 * groups.shape[0], 4), np.int64)
    buckets = np.full(4 * larger.shape[0], -1, np.int64)
    _enter_groups(groups[:num_groups], larger, buckets)
    return larger, buckets


@njit(cache=True, nogil=True)
def _enter_groups(groups, larger, buckets):
    for i in range(groups.shape[0]):
        find_group(larger, i, buckets, groups[i, OWNER], groups[i, SLOT], groups[i, DTYPE], groups[i, WIDTH])


# The parsers below go through ``slots``, the rows of one group, and write the values one after another to ``out``. ``bad``
# (int64, -1 for each row of ``slots``) gets the byte of a row's first value that is wrong; ``out`` then is not to be used.


@njit(cache=True, nogil=True)
def parse_coordinates(buf, delimiter, slots, width, out, bad):
    """Parse the coordinates in front of sparse values to int64; moves each START behind them."""
    k = 0
    for row in range(slots.shape[0]):
        at, stop = slots[row, START], slots[row, STOP]
        for _ in range(slots[row, COUNT] * max(width, 1)):
            end = find_text(buf, at, stop, delimiter)
            code, value = parse_int(buf, at, end)
            if code != OK:
                bad[row] = at
                break
            out[k] = value
            k += 1
            at = end + delimiter.size
        slots[row, START] = at


@njit(cache=True, nogil=True)
def parse_ints(buf, delimiter, slots, low, high, out, bad):
    """Parse int64 values in [low, high]."""
    k = 0
    for row in range(slots.shape[0]):
        at, stop = slots[row, START], slots[row, STOP]
        for _ in range(slots[row, COUNT]):
            end = find_text(buf, at, stop, delimiter)
            code, value = parse_int(buf, at, end)
            if code != OK or value < low or value > high:
                bad[row] = at
                break
            out[k] = value
            k += 1
            at = end + delimiter.size


@njit(cache=True, nogil=True)
def parse_uints(buf, delimiter, slots, out, bad):
    """Parse uint64 values."""
    k = 0
    for row in range(slots.shape[0]):
        at, stop = slots[row, START], slots[row, STOP]
        for _ in range(slots[row, COUNT]):
            end = find_text(buf, at, stop, delimiter)
            code, value = parse_uint(buf, at, end)
            if code != OK:
                bad[row] = at
                break
            out[k] = value
            k += 1
            at = end + delimiter.size


@njit(cache=True, nogil=True)
def is_too_large(value, limit):
    """Say whether a finite float64 is at or beyond ``limit``, from where on a narrower float is infinite."""
    return abs(value) >= limit and not np.isinf(value)


@njit(cache=True, nogil=True)
def parse_floats(buf, delimiter, slots, limit, out, bad):
    """Parse floats below ``limit`` in magnitude, or infinite, to a float32 or float64 ``out``."""
    k = 0
    is_plain = _is_no_part_of_numbers(delimiter)
    for row in range(slots.shape[0]):
        at, stop = slots[row, START], slots[row, STOP]
        for _ in range(slots[row, COUNT]):
            end, value = at, 0.0
            if is_plain:
                end, value = _read_plain_float(buf, at, stop)
            if end == at or (end < stop and not matches(buf, end, stop, delimiter)):
                end = find_text(buf, at, stop, delimiter)
                code, value = parse_float(buf, at, end)
                if code != OK:
                    bad[row] = at
                    break
            if is_too_large(value, limit):
                bad[row] = at
                break
            out[k] = value
            k += 1
            at = end + delimiter.size


@njit(cache=True, nogil=True)
def _is_no_part_of_numbers(delimiter):
    """Say whether a number can be read to its end before the delimiter is looked for."""
    for byte in delimiter:
        if 48 <= byte <= 57 or byte in (45, 46):
            return False
    return True


@njit(cache=True, nogil=True)
def _read_plain_float(buf, start, stop):
    """Read ``-12.345``, as most floats are written, to (end, float64); end is ``start`` where it takes more than that.

    One multiplication or division by an exact power of ten rounds correctly. What follows the number is not looked at.
    """
    at = start
    negative = at < stop and buf[at] == 45
    at += negative
    mantissa = np.int64(0)
    first = at
    last = min(stop, at + 18)  # digits and a point, below 10^18
    while at < last and np.uint8(buf[at] - np.uint8(48)) < 10:
        mantissa = mantissa * 10 + (np.int64(buf[at]) - 48)
        at += 1
    num_fraction = 0
    if at < last and at > first and buf[at] == 46:
        at += 1
        point = at
        while at < last and np.uint8(buf[at] - np.uint8(48)) < 10:
            mantissa = mantissa * 10 + (np.int64(buf[at]) - 48)
            at += 1
        num_fraction = at - point
    if at == first or mantissa > _MAX_EXACT:
        return start, 0.0
    value = np.float64(mantissa) / _EXACT_POWERS[num_fraction]
    return at, -value if negative else value


@njit(cache=True, nogil=True)
def parse_bools(buf, delimiter, slots, out, bad):
    """Parse 0, 1, true and false, in any case, to bool."""
    k = 0
    for row in range(slots.shape[0]):
        at, stop = slots[row, START], slots[row, STOP]
        for _ in range(slots[row, COUNT]):
            end = find_text(buf, at, stop, delimiter)
            value = _parse_bool(buf, at, end)
            if value < 0:
                bad[row] = at
                break
            out[k] = value == 1
            k += 1
            at = end + delimiter.size


@njit(cache=True, nogil=True)
def _parse_bool(buf, start, stop):
    """Return 0 or 1, else -1."""
    start = skip_blanks(buf, start, stop)
    size = trim_blanks(buf, start, stop) - start
    if size == 1 and (buf[start] == 48 or buf[start] == 49):
        return np.int64(buf[start]) - 48
    false, true = (102, 97, 108, 115, 101), (116, 114, 117, 101)
    for i in range(size):
        if size == 4:
            wanted = true[i]
        elif size == 5:
            wanted = false[i]
        else:
            return -1
        if (buf[start + i] | 32) != wanted:
            return -1
    return 1 if size == 4 else 0 if size == 5 else -1


@njit(cache=True, nogil=True)
def parse_complexes(buf, delimiter, slots, limit, out, bad):
    """Parse complex numbers, both parts below ``limit`` in magnitude, or infinite, to float64[k, 2]."""
    k = 0
    for row in range(slots.shape[0]):
        at, stop = slots[row, START], slots[row, STOP]
        for _ in range(slots[row, COUNT]):
            end = find_text(buf, at, stop, delimiter)
            ok, real, imag = _parse_complex(buf, at, end)
            if not ok or is_too_large(real, limit) or is_too_large(imag, limit):
                bad[row] = at
                break
            out[k, 0] = real
            out[k, 1] = imag
            k += 1
            at = end + delimiter.size


@njit(cache=True, nogil=True)
def _parse_complex(buf, start, stop):
    """Parse what Python's ``complex()`` takes to (ok, real, imag): ``1``, ``2j``, ``1-2e3j``, ``(1+j)``."""
    start = skip_blanks(buf, start, stop)
    stop = trim_blanks(buf, start, stop)
    if stop - start >= 2 and buf[start] == 40 and buf[stop - 1] == 41:
        start = skip_blanks(buf, start + 1, stop - 1)
        stop = trim_blanks(buf, start, stop - 1)
    for i in range(start, stop):
        if buf[i] == 32 or buf[i] == 9:
            return False, 0.0, 0.0
    if start == stop or (buf[stop - 1] | 32) != 106:  # j
        code, real = parse_float(buf, start, stop)
        return code == OK, real, 0.0
    stop -= 1
    split = start
    for i in range(stop - 1, start, -1):
        if (buf[i] == 43 or buf[i] == 45) and (buf[i - 1] | 32) != 101:  # a sign, not that of an exponent
            split = i
            break
    real, code = 0.0, OK
    if split > start:
        code, real = parse_float(buf, start, split)
    if stop - split <= 1 and (split == stop or buf[split] == 43 or buf[split] == 45):
        # "j" has no number at all; after a real part there is a sign.
        return code == OK, real, -1.0 if split < stop and buf[split] == 45 else 1.0
    imag_code, imag = parse_float(buf, split, stop)
    return code == OK and imag_code == OK, real, imag


@njit(cache=True, nogil=True)
def copy_texts(buf, delimiter, escape, slots, out):
    """Copy texts, each COUNT bytes from START on; ``escape`` + ``delimiter`` stands for the delimiter (an empty one: no)."""
    k = 0
    for row in range(slots.shape[0]):
        at = slots[row, START]
        stop = k + slots[row, COUNT]
        while k < stop:
            end = find_text(buf, at, slots[row, STOP], delimiter) if escape.size else slots[row, STOP]
            goes_on = end < slots[row, STOP]
            for i in range(at, end - escape.size if goes_on else end):
                out[k] = buf[i]
                k += 1
            if goes_on:
                for i in range(delimiter.size):
                    out[k] = delimiter[i]
                    k += 1
            at = end + delimiter.size
