"""Feature slots of a text block: what stands where, and its values. A kernel never raises.

A format's walker writes down every slot that has values as a row of ``slots`` (int64[k, 5]: GROUP, ROW, COUNT, START, STOP):
its group, the node or edge that owns it, its number of values (of bytes, for a text), and the bytes they stand in. A group is
what becomes one column: a row of ``groups`` (int64[g, 4]: OWNER, SLOT, DTYPE, WIDTH), found again through ``buckets``.
"""

from __future__ import annotations

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.numbers import INVALID, OK, find_byte, parse_float, skip_blanks, trim_blanks

GROUP, ROW, COUNT, START, STOP = range(5)
OWNER, SLOT, DTYPE, WIDTH = range(4)
NODE, EDGE = np.int64(0), np.int64(1)  # plain integers would have every function compiled once for each
DTYPES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)
TEXT_DTYPE = np.int64(len(DTYPES))  # the DTYPE of texts; that of numbers is their dtype's position
NOT_SPARSE = -1  # a group's WIDTH; 0 is flat

# The least magnitude that rounds to infinity: half a unit in the last place above the largest finite number.
FLOAT_LIMITS = {"float16": 65520.0, "float32": 2.0**128 - 2.0**103, "float64": np.inf}

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


@njit(cache=True, nogil=True)
def is_too_large(value, limit):
    """Say whether a finite float64 is at or beyond ``limit``, from where on a narrower float is infinite."""
    return abs(value) >= limit and not np.isinf(value)


@njit(cache=True, nogil=True)
def find_values(buf, delimiter, slots, counts, starts, stops):
    """Fill ``starts`` and ``stops`` of ``counts[row]`` values a row of ``slots``, one after another."""
    k = 0
    for row in range(slots.shape[0]):
        at, stop = slots[row, START], slots[row, STOP]
        for _ in range(counts[row]):
            end = find_text(buf, at, stop, delimiter)
            starts[k] = at
            stops[k] = end
            k += 1
            at = end + delimiter.size


@njit(cache=True, nogil=True)
def parse_complexes(buf, starts, stops, limit, out, codes):
    """Parse complex numbers, both parts below ``limit`` in magnitude, or infinite, to float64[k, 2]; others are INVALID."""
    for k in range(starts.size):
        ok, real, imag = _parse_complex(buf, starts[k], stops[k])
        ok = ok and not is_too_large(real, limit) and not is_too_large(imag, limit)
        out[k, 0] = real if ok else 0.0
        out[k, 1] = imag if ok else 0.0
        codes[k] = OK if ok else INVALID


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
