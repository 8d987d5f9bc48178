"""Texts as offsets into bytes: hash, copy, compare, sort, and tell new ones from those met before.

Everywhere, text r is ``values[offsets[r]:offsets[r + 1]]``: int64[n + 1] offsets, uint8 values. Order is that of the bytes, a
prefix before what it begins.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.memory import AHEAD, are_same, copy_bytes, prefetch
from graphprep.kernels.cpu.bytes.words import WORD, address_of, load_byte, load_word
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.ids.hash import splitmix64
from graphprep.kernels.cpu.text.numbers import OK, parse_int

_WORD_BYTES = 7  # of a text in a sort word; the eighth says how many bytes were left
_FEW_ROWS = 20  # below that, insertion beats partition
_STACK = 256  # of (start, stop, depth): the larger parts wait, so that it grows with the logarithm of the rows
_SAMPLES = 64  # of a part, from which it is told where parts begin
_LEAST_SLOTS = 1 << 10
_SLOT_BYTES = 16
_SIZE_BITS = np.uint64(24)  # of a slot's second word; the others are 1 + where its text begins
_MOST_SIZE = np.uint64((1 << 24) - 1)  # this size and larger ones are looked up


def hash_texts(offsets: Any, values: Any, seed: int = 0) -> Any:
    """Return a 64-bit hash of every text: uint64[n]. With seed 0 it is h of STORE.md, "Hashes"."""
    out = np.empty(offsets.size - 1, np.uint64)
    _hash_texts(offsets, values, np.uint64(0 if seed == 0 else int(splitmix64(np.uint64(seed)))), out)
    return out


@njit(cache=True, nogil=True)
def _hash_texts(offsets, values, seed, out):
    base = address_of(values)
    for row in range(out.size):
        start = offsets[row]
        size = offsets[row + 1] - start
        mixed = splitmix64(uint64(size) ^ seed)
        at = 0
        while at + WORD <= size:
            mixed = splitmix64(mixed ^ load_word(base + start + at))
            at += WORD
        if at < size:
            word = uint64(0)
            for i in range(size - at):
                word |= uint64(values[start + at + i]) << uint64(8 * i)
            mixed = splitmix64(mixed ^ word)
        out[row] = mixed


def take_texts(offsets: Any, values: Any, rows: Any) -> tuple[Any, Any]:
    """Return (offsets, values) of chosen texts, in the order of ``rows`` (int64[k])."""
    rows = np.ascontiguousarray(rows, np.int64)
    taken = np.empty(rows.size + 1, np.int64)
    _measure_rows(offsets, rows, taken)
    out = np.empty(int(taken[-1]), np.uint8)
    _copy_rows(offsets, values, rows, taken, out)
    return taken, out


@njit(cache=True, nogil=True)
def _measure_rows(offsets, rows, taken):
    at = 0
    taken[0] = 0
    for i in range(rows.size):
        at += offsets[rows[i] + 1] - offsets[rows[i]]
        taken[i + 1] = at


@njit(cache=True, nogil=True)
def _copy_rows(offsets, values, rows, taken, out):
    source, target = address_of(values), address_of(out)
    for i in range(rows.size):
        if i + AHEAD < rows.size:
            prefetch(source + offsets[rows[i + AHEAD]])
        copy_bytes(source + offsets[rows[i]], target + taken[i], taken[i + 1] - taken[i])


def concat_texts(parts: list[tuple[Any, Any]]) -> tuple[Any, Any]:
    """Return (offsets, values) of several lists of texts, one after another."""
    counts = [np.diff(offsets) for offsets, _ in parts]
    joined = np.zeros(1 + sum(count.size for count in counts), np.int64)
    if counts:
        np.cumsum(np.concatenate(counts), out=joined[1:])
    return joined, np.concatenate([values[offsets[0] : offsets[-1]] for offsets, values in parts] or [np.empty(0, np.uint8)])


# ------------------------------------------------------------------------------------------------------ order


@njit(cache=True, nogil=True)
def compare_bytes(a, a_start, a_stop, b, b_start, b_stop):
    """Return a negative number, 0 or a positive one: how one text stands to another."""
    size = min(a_stop - a_start, b_stop - b_start)
    for i in range(size):
        one, other = a[a_start + i], b[b_start + i]
        if one != other:
            return np.int64(one) - np.int64(other)
    return (a_stop - a_start) - (b_stop - b_start)


def sort_texts(offsets: Any, values: Any) -> Any:
    """Return the row numbers that put texts in ascending order, rows of equal texts ascending: int64[n].

    Multikey quicksort with cached words. Source: Bentley and Sedgewick 1997; Ng and Kakehi 2007 (caching).
    """
    rows = np.arange(offsets.size - 1, dtype=np.int64)
    words = np.empty(rows.size, np.uint64)
    _sort(offsets, values, rows, words, np.empty((_STACK, 3), np.int64))
    return rows


def scatter_texts(offsets: Any, values: Any, part_rows: int) -> tuple[Any, Any]:
    """Scatter texts to parts of about ``part_rows``, each behind the one before it in order, so that they may be sorted apart.

    Returns ``indptr`` int64[p + 1] and ``rows`` int64[n]: part k has the rows ``rows[indptr[k]:indptr[k + 1]]``, ascending.
    Texts that agree in eight bytes behind what all have in common share a part, however many there are.
    """
    num_rows = offsets.size - 1
    num_parts = -(-num_rows // part_rows)
    common = int(_common_size(offsets, values)) if num_parts > 1 else 0
    words = np.empty(num_rows, np.uint64)
    _leading_words(offsets, values, common, words)
    sample = np.sort(words[:: max(1, num_rows // (_SAMPLES * max(1, num_parts)))])
    firsts = np.unique(sample[np.arange(1, num_parts) * sample.size // max(1, num_parts)])
    parts = np.empty(num_rows, np.int32)
    _place(words, firsts, parts)
    return group_by_key(parts, firsts.size + 1)


@njit(cache=True, nogil=True)
def _common_size(offsets, values):
    """Return with how many bytes all texts begin alike."""
    base = address_of(values)
    first = base + offsets[0]
    common = offsets[1] - offsets[0]
    for row in range(1, offsets.size - 1):
        start = base + offsets[row]
        common = min(common, offsets[row + 1] - offsets[row])
        if not are_same(first, start, common):
            at = np.int64(0)
            while load_byte(first + at) == load_byte(start + at):
                at += 1
            common = at
    return common


@njit(cache=True, nogil=True)
def _leading_words(offsets, values, skip, words):
    """Fill ``words`` with eight bytes of each text from ``skip`` on, the first one highest, zeros behind its end."""
    for row in range(words.size):
        start, stop = offsets[row] + skip, offsets[row + 1]
        words[row] = (_word(values, start, stop) & ~uint64(0xFF)) | uint64(
            values[start + _WORD_BYTES] if stop - start > _WORD_BYTES else 0
        )


@njit(cache=True, nogil=True)
def _place(words, firsts, parts):
    """Fill ``parts`` with how many of ``firsts``, ascending, are not behind a word."""
    for row in range(words.size):
        low, high = 0, firsts.size
        while low < high:
            middle = (low + high) >> 1
            if firsts[middle] <= words[row]:
                low = middle + 1
            else:
                high = middle
        parts[row] = low


@njit(cache=True, nogil=True)
def _word(values, start, stop):
    """Return up to seven bytes, the first one highest, and in the lowest byte how many were left (8: more than seven)."""
    left = stop - start
    word = uint64(0)
    for i in range(min(left, _WORD_BYTES)):
        word |= uint64(values[start + i]) << uint64(56 - 8 * i)
    return word | uint64(min(left, _WORD_BYTES + 1))


@njit(cache=True, nogil=True)
def _sort(offsets, values, rows, words, stack):
    for i in range(rows.size):
        words[i] = _word(values, offsets[rows[i]], offsets[rows[i] + 1])
    height = _push(stack, 0, 0, rows.size, 0, 0)
    while height:
        height -= 1
        start, stop, depth = stack[height, 0], stack[height, 1], stack[height, 2]
        if stop - start < _FEW_ROWS:
            _insert(offsets, values, rows, words, start, stop, depth)
            continue
        pivot = _middle_word(words, start, stop)
        low, high = _partition(rows, words, start, stop, pivot)
        deeper = depth
        if pivot & uint64(0xFF) <= uint64(_WORD_BYTES):  # equal words are equal texts: only their rows are left to be ordered
            _sort_rows(rows, low, high)
            middle_stop = low
        else:
            deeper = depth + _WORD_BYTES
            for i in range(low, high):
                words[i] = _word(values, offsets[rows[i]] + deeper, offsets[rows[i] + 1])
            middle_stop = high
        height = _push_parts(stack, height, start, low, middle_stop, high, stop, depth, deeper)


@njit(cache=True, nogil=True)
def _push_parts(stack, height, start, low, middle_stop, high, stop, depth, deeper):
    """Push the three parts that are left to be sorted, the largest one first."""
    smaller, equal, larger = low - start, middle_stop - low, stop - high
    if smaller >= equal and smaller >= larger:
        height = _push(stack, height, start, low, depth, 0)
        height = _push(stack, height, low, middle_stop, deeper, 1)
        return _push(stack, height, high, stop, depth, 1)
    if equal >= larger:
        height = _push(stack, height, low, middle_stop, deeper, 0)
        height = _push(stack, height, start, low, depth, 1)
        return _push(stack, height, high, stop, depth, 1)
    height = _push(stack, height, high, stop, depth, 0)
    height = _push(stack, height, start, low, depth, 1)
    return _push(stack, height, low, middle_stop, deeper, 1)


@njit(cache=True, nogil=True)
def _push(stack, height, start, stop, depth, least):
    """Push a part of more than ``least`` rows."""
    if stop - start <= least:
        return height
    stack[height, 0], stack[height, 1], stack[height, 2] = start, stop, depth
    return height + 1


@njit(cache=True, nogil=True)
def _sort_rows(rows, start, stop):
    """Sort rows[start:stop] in place by sifting: equal texts may be many, and may come in any order."""
    size = stop - start
    for top in range(size // 2 - 1, -1, -1):
        _sift(rows, start, top, size)
    for last in range(size - 1, 0, -1):
        rows[start], rows[start + last] = rows[start + last], rows[start]
        _sift(rows, start, 0, last)


@njit(cache=True, nogil=True)
def _sift(rows, start, top, size):
    """Let rows[start + top] sink to its place in the heap of ``size`` rows."""
    row = rows[start + top]
    child = 2 * top + 1
    while child < size:
        if child + 1 < size and rows[start + child + 1] > rows[start + child]:
            child += 1
        if rows[start + child] <= row:
            break
        rows[start + top] = rows[start + child]
        top = child
        child = 2 * top + 1
    rows[start + top] = row


@njit(cache=True, nogil=True)
def _middle_word(words, start, stop):
    """Return the median of three medians of three."""
    step = (stop - start) // 9
    return _median(
        _median(words[start], words[start + step], words[start + 2 * step]),
        _median(words[start + 3 * step], words[start + 4 * step], words[start + 5 * step]),
        _median(words[start + 6 * step], words[start + 7 * step], words[start + 8 * step]),
    )


@njit(cache=True, nogil=True, inline="always")
def _median(a, b, c):
    if a < b:
        return b if b < c else (c if a < c else a)
    return a if a < c else (c if b < c else b)


@njit(cache=True, nogil=True)
def _partition(rows, words, start, stop, pivot):
    """Move smaller words to the front and larger ones to the back; return where the equal ones begin and end."""
    low, at, high = start, start, stop
    while at < high:
        word = words[at]
        if word < pivot:
            row = rows[at]
            words[at], rows[at] = words[low], rows[low]
            words[low], rows[low] = word, row
            low += 1
            at += 1
        elif word > pivot:
            high -= 1
            row = rows[at]
            words[at], rows[at] = words[high], rows[high]
            words[high], rows[high] = word, row
        else:
            at += 1
    return low, high


@njit(cache=True, nogil=True)
def _insert(offsets, values, rows, words, start, stop, depth):
    for i in range(start + 1, stop):
        row, word = rows[i], words[i]
        at = i
        while at > start and _is_before(offsets, values, row, word, rows[at - 1], words[at - 1], depth):
            rows[at], words[at] = rows[at - 1], words[at - 1]
            at -= 1
        rows[at], words[at] = row, word


@njit(cache=True, nogil=True)
def _is_before(offsets, values, row, word, other, other_word, depth):
    """Return whether a row belongs before another one; both begin with the same ``depth`` bytes."""
    if word != other_word:
        return word < other_word
    if word & uint64(0xFF) <= uint64(_WORD_BYTES):
        return row < other
    skip = depth + _WORD_BYTES
    order = compare_bytes(values, offsets[row] + skip, offsets[row + 1], values, offsets[other] + skip, offsets[other + 1])
    return order < 0 or (order == 0 and row < other)


def repeats_of_sorted(offsets: Any, values: Any) -> Any:
    """Return which texts equal the one before them, of texts in ascending order: bool[n]."""
    return repeats_in_order(offsets, values, np.arange(offsets.size - 1))


def repeats_in_order(offsets: Any, values: Any, order: Any) -> Any:
    """Return which texts equal the one before them, when gone through in ``order`` (int64[n]), which ascends: bool[n]."""
    out = np.zeros(order.size, np.bool_)
    _mark_repeats(offsets, values, order, out)
    return out


@njit(cache=True, nogil=True)
def _mark_repeats(offsets, values, order, out):
    for i in range(1, out.size):
        one, other = order[i - 1], order[i]
        same = compare_bytes(values, offsets[one], offsets[one + 1], values, offsets[other], offsets[other + 1]) == 0
        out[i] = same


def count_up_to(offsets: Any, values: Any, bound: bytes) -> int:
    """Return how many texts, in ascending order, are not behind ``bound``."""
    limit = np.frombuffer(bound, np.uint8) if bound else np.empty(0, np.uint8)
    return int(_count_up_to(offsets, values, limit))


@njit(cache=True, nogil=True)
def _count_up_to(offsets, values, bound):
    low, high = 0, offsets.size - 1
    while low < high:
        middle = (low + high) >> 1
        if compare_bytes(values, offsets[middle], offsets[middle + 1], bound, 0, bound.size) <= 0:
            low = middle + 1
        else:
            high = middle
    return low


# -------------------------------------------------------------------------------------------------- distinct


def distinct_texts(keys: Any, offsets: Any, values: Any) -> tuple[Any, int]:
    """Return the rows (int64[d], ascending) at which texts stand for the first time, and the row of a collision, -1 without.

    ``keys``: uint64[n], a hash of each text. Texts are compared; two that differ under one key are a collision.
    """
    slots = np.full(max(_LEAST_SLOTS, 1 << (2 * keys.size).bit_length()), -1, np.int32)
    rows = np.empty(keys.size, np.int64)
    count, collision = _distinct(slots, keys, offsets, values, rows)
    return rows[:count], int(collision)


@njit(cache=True, nogil=True, inline="always")
def _first_slot(key, mask):
    mixed = key * uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> uint64(32))) & mask


@njit(cache=True, nogil=True)
def _distinct(slots, keys, offsets, values, rows):
    base = address_of(values)
    mask = uint64(slots.size - 1)
    count = 0
    for row in range(keys.size):
        at = _first_slot(keys[row], mask)
        while slots[at] >= 0 and keys[slots[at]] != keys[row]:
            at = (at + uint64(1)) & mask
        other = slots[at]
        if other < 0:
            slots[at] = row
            rows[count] = row
            count += 1
        else:
            size = offsets[row + 1] - offsets[row]
            if size != offsets[other + 1] - offsets[other] or not are_same(base + offsets[other], base + offsets[row], size):
                return count, row
    return count, -1


class SeenTexts:
    """A set of texts with their keys. ``num_bytes`` is what it holds."""

    def __init__(self) -> None:
        # Key, and where its text lies (0: free), so that comparing it costs no look into the offsets.
        self._slots = np.zeros((_LEAST_SLOTS, 2), np.uint64)
        self._keys = np.empty(_LEAST_SLOTS, np.uint64)
        self._offsets = np.zeros(_LEAST_SLOTS + 1, np.int64)
        self._values = np.empty(1 << 14, np.uint8)
        self.count = 0

    @property
    def num_bytes(self) -> int:
        """Return the size of the arrays."""
        return int(self._slots.nbytes + self._keys.nbytes + self._offsets.nbytes + self._values.nbytes)

    def texts(self) -> tuple[Any, Any, Any]:
        """Return (keys, offsets, values) of all texts, in the order in which they were met; valid until the next ``add``."""
        offsets = self._offsets[: self.count + 1]
        return self._keys[: self.count], offsets, self._values[: offsets[-1]]

    def add(self, keys: Any, offsets: Any, values: Any, rows: Any | None = None) -> int:
        """Add texts, of which ``rows`` (int64[k]; None: all) says which.

        Returns a row whose key stands for another text, -1 where there is none. Each step is a loop of its own: their cache
        misses do not wait for one another.
        """
        rows = np.arange(keys.size) if rows is None else np.ascontiguousarray(rows)
        found = np.empty(rows.size, np.uint64)
        _probe(self._slots, keys, rows, found)
        known = self._offsets[: self.count + 1]
        collision = int(_compare_found(found, known, self._values, offsets, values, rows))
        new = rows[found == 0]
        if new.size and collision < 0:
            self._grow(self.count + new.size, int(known[-1]) + int((offsets[new + 1] - offsets[new]).sum()))
            self.count, collision = _insert_texts(
                self._slots, self._keys, self._offsets, self._values, self.count, new, keys, offsets, values
            )
        return int(collision)

    def _grow(self, most: int, num_bytes: int) -> None:
        if 2 * most > len(self._slots):
            self._slots = np.zeros((1 << (2 * most - 1).bit_length(), 2), np.uint64)
            _rehash_texts(self._slots, self._keys[: self.count], self._offsets)
        if most > self._keys.size:
            room = max(most, 2 * self._keys.size)
            self._keys = np.concatenate([self._keys[: self.count], np.empty(room - self.count, np.uint64)])
            self._offsets = np.concatenate([self._offsets[: self.count + 1], np.empty(room - self.count, np.int64)])
        if num_bytes > self._values.size:
            used = int(self._offsets[self.count])
            room = max(num_bytes, 2 * self._values.size)
            self._values = np.concatenate([self._values[:used], np.empty(room - used, np.uint8)])


@njit(cache=True, nogil=True, inline="always")
def _slot_of(slots, key):
    """Return where a key stands, or the free slot where it belongs."""
    mask = uint64(slots.shape[0] - 1)
    at = _first_slot(key, mask)
    while slots[at, 1] != 0 and slots[at, 0] != key:
        at = (at + uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def _probe(slots, keys, rows, found):
    base = address_of(slots)
    mask = uint64(slots.shape[0] - 1)
    for i in range(rows.size):
        if i + AHEAD < rows.size:
            prefetch(base + _SLOT_BYTES * np.int64(_first_slot(keys[rows[i + AHEAD]], mask)))
        found[i] = slots[_slot_of(slots, keys[rows[i]]), 1]


@njit(cache=True, nogil=True, inline="always")
def _extent(start, stop):
    """Return where a text lies, as one number that is not 0."""
    return (uint64(start + 1) << _SIZE_BITS) | min(uint64(stop - start), _MOST_SIZE)


@njit(cache=True, nogil=True)
def _size_at(extent, set_offsets):
    """Return the size of the text at an extent."""
    size = np.int64(extent & _MOST_SIZE)
    if size < np.int64(_MOST_SIZE):
        return size
    start = np.int64(extent >> _SIZE_BITS) - 1
    return set_offsets[np.searchsorted(set_offsets, start, side="right")] - start


@njit(cache=True, nogil=True)
def _compare_found(found, set_offsets, set_values, offsets, values, rows):
    """Return the first row that differs from the text that has its key, -1 where there is none."""
    base, set_base = address_of(values), address_of(set_values) - 1
    for i in range(found.size):
        if i + AHEAD < found.size:
            prefetch(set_base + np.int64(found[i + AHEAD] >> _SIZE_BITS))
            prefetch(base + offsets[rows[i + AHEAD]])
        if found[i] != 0:
            start = offsets[rows[i]]
            size = offsets[rows[i] + 1] - start
            place = set_base + np.int64(found[i] >> _SIZE_BITS)
            if size != _size_at(found[i], set_offsets) or not are_same(place, base + start, size):
                return rows[i]
    return -1


@njit(cache=True, nogil=True)
def _rehash_texts(slots, keys, offsets):
    base = address_of(slots)
    mask = uint64(slots.shape[0] - 1)
    for row in range(keys.size):
        if row + AHEAD < keys.size:
            prefetch(base + _SLOT_BYTES * np.int64(_first_slot(keys[row + AHEAD], mask)))
        at = _first_slot(keys[row], mask)
        while slots[at, 1] != 0:
            at = (at + uint64(1)) & mask
        slots[at, 0] = keys[row]
        slots[at, 1] = _extent(offsets[row], offsets[row + 1])


@njit(cache=True, nogil=True)
def _insert_texts(slots, set_keys, set_offsets, set_values, count, new, keys, offsets, values):
    """Add the rows in ``new``, which may repeat; return the new count, and the row of a collision or -1."""
    base, set_base, slot_base = address_of(values), address_of(set_values), address_of(slots)
    mask = uint64(slots.shape[0] - 1)
    for i in range(new.size):
        if i + AHEAD < new.size:
            prefetch(slot_base + _SLOT_BYTES * np.int64(_first_slot(keys[new[i + AHEAD]], mask)))
            prefetch(base + offsets[new[i + AHEAD]])
        key = keys[new[i]]
        start = offsets[new[i]]
        size = offsets[new[i] + 1] - start
        at = _slot_of(slots, key)
        if slots[at, 1] == 0:
            to = set_offsets[count]
            copy_bytes(base + start, set_base + to, size)
            set_keys[count] = key
            count += 1
            set_offsets[count] = to + size
            slots[at, 0] = key
            slots[at, 1] = _extent(to, to + size)
        else:
            place = set_base + np.int64(slots[at, 1] >> _SIZE_BITS) - 1
            if size != _size_at(slots[at, 1], set_offsets[: count + 1]) or not are_same(place, base + start, size):
                return count, new[i]
    return count, -1


def first_non_integer(offsets: Any, values: Any) -> int:
    """Return the first row that is not a whole number of int64 (STORE.md, "Numbers in text"), -1 where all are."""
    return int(_first_non_integer(offsets, values))


@njit(cache=True, nogil=True)
def _first_non_integer(offsets, values):
    for row in range(offsets.size - 1):
        code, _ = parse_int(values, offsets[row], offsets[row + 1])
        if code != OK:
            return row
    return -1
