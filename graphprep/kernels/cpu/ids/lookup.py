"""Find IDs in a sorted array, or in a hash table."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.memory import AHEAD, prefetch
from graphprep.kernels.cpu.bytes.words import address_of

_INDEX_BITS_MAX = 22  # an index of 4 M entries: 16 MiB
_SLOT_BYTES = 16


def bucket_index(ids: Any) -> tuple[int, Any]:
    """Return (shift, starts) that narrow a search in sorted ``ids`` (uint64[n], n > 0) to the entries of equal high bits.

    ``starts`` is int32[b + 1], int64 from 2^31 IDs on: IDs with ``(id - ids[0]) >> shift == k`` stand in
    ``[starts[k], starts[k + 1])``.
    """
    bits = min(_INDEX_BITS_MAX, max(1, int(ids.size).bit_length()))
    spread = int(ids[-1]) - int(ids[0])
    shift = max(0, spread.bit_length() - bits)
    num_buckets = (spread >> shift) + 1
    starts = np.zeros(num_buckets + 1, np.int32 if ids.size < 2**31 else np.int64)
    _count_buckets(ids, np.uint64(shift), starts)
    np.cumsum(starts, dtype=starts.dtype, out=starts)
    return shift, starts


@njit(cache=True, nogil=True, inline="always")
def search(ids, low, high, wanted):
    """Return where ``wanted`` stands among ascending ``ids[low:high]``, -1 where it does not."""
    end = high
    while low < high:
        middle = (low + high) >> 1
        if ids[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and ids[low] == wanted else -1


@njit(cache=True, nogil=True)
def _count_buckets(ids, shift, starts):
    first = ids[0]
    for i in range(ids.size):
        starts[((ids[i] - first) >> shift) + np.uint64(1)] += 1


@njit(cache=True, nogil=True)
def _find(ids, shift, starts, wanted, out):
    first = ids[0]
    last = ids[ids.size - 1]
    for i in range(wanted.size):
        value = wanted[i]
        out[i] = -1
        if value < first or value > last:
            continue
        bucket = (value - first) >> shift
        out[i] = search(ids, starts[bucket], starts[bucket + np.uint64(1)], value)


@njit(cache=True, nogil=True)
def _find_dense(first, size, wanted, out):
    for i in range(wanted.size):
        at = wanted[i] - first
        out[i] = np.int64(at) if wanted[i] >= first and at < size else -1


def find_sorted(ids: Any, index: tuple[int, Any], wanted: Any) -> Any:
    """Return the position in ``ids`` of every wanted ID, -1 where it is not there: int64[k].

    ``ids``: uint64[n], strictly ascending; ``index``: what ``bucket_index(ids)`` returned; ``wanted``: uint64[k].
    """
    out = np.empty(wanted.size, np.int64)
    if ids.size == 0:
        out[:] = -1
    elif ids.size == int(ids[-1]) - int(ids[0]) + 1:  # without gaps
        _find_dense(ids[0], np.uint64(ids.size), np.ascontiguousarray(wanted), out)
    else:
        _find(ids, np.uint64(index[0]), index[1], np.ascontiguousarray(wanted), out)
    return out


def take_dense(ids: Any, wanted: Any, flip: int, types: Any, typed: Any) -> tuple[Any, Any]:
    """Return what stands beside every wanted ID: (int32[k] of ``types``, int64[k] of ``typed``, -1 where it is not there).

    ``ids``: uint64[n], n > 0, each one more than that before it; ``wanted``: uint64[k], in which the bits ``flip`` are flipped
    first; ``types``: int32[n]; ``typed``: int64[n].
    """
    some_types, some_typed = np.empty(wanted.size, np.int32), np.empty(wanted.size, np.int64)
    _take_dense(ids[0], np.ascontiguousarray(wanted), np.uint64(flip), types, typed, some_types, some_typed)
    return some_types, some_typed


@njit(cache=True, nogil=True)
def _take_dense(first, wanted, flip, types, typed, some_types, some_typed):
    size = np.uint64(types.size)
    for i in range(wanted.size):
        at = (wanted[i] ^ flip) - first  # of an ID below the first: beyond all
        is_there = at < size
        at = at if is_there else np.uint64(0)
        some_types[i] = types[at]
        some_typed[i] = typed[at] if is_there else -1


class KeyTable:
    """The numbers of distinct keys, by open addressing: a look for a key costs one cache miss.

    ``keys``: uint64[n]; ``numbers``: int64[n], below 2^32 - 1.
    """

    def __init__(self, keys: Any, numbers: Any) -> None:
        # A key, and 1 + its number; 0: free.
        self._slots = np.zeros((self.num_bytes_of(keys.size) // _SLOT_BYTES, 2), np.uint64)
        _fill_slots(self._slots, np.ascontiguousarray(keys), np.ascontiguousarray(numbers))

    @staticmethod
    def num_bytes_of(num_keys: int) -> int:
        """Return the size of the table for so many keys: twice as many slots at least."""
        return _SLOT_BYTES << max(4, (2 * num_keys - 1).bit_length())

    def find_all(self, wanted: Any) -> Any | None:
        """Return the number of every wanted key (uint64[k]): uint32[k]; None where one is not there."""
        out = np.empty(wanted.size, np.uint32)
        return out if _find_slots(self._slots, np.ascontiguousarray(wanted), out) else None


@njit(cache=True, nogil=True, inline="always")
def _first_slot(key, mask):
    mixed = key * np.uint64(0x9E3779B97F4A7C15)
    return (mixed ^ (mixed >> np.uint64(32))) & mask


@njit(cache=True, nogil=True)
def _fill_slots(slots, keys, numbers):
    base = address_of(slots)
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(keys.size):
        if i + AHEAD < keys.size:
            prefetch(base + _SLOT_BYTES * np.int64(_first_slot(keys[i + AHEAD], mask)))
        at = _first_slot(keys[i], mask)
        while slots[at, 1] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at, 0] = keys[i]
        slots[at, 1] = np.uint64(numbers[i] + 1)


@njit(cache=True, nogil=True)
def _find_slots(slots, wanted, out):
    """Find numbers; return whether all are there."""
    base = address_of(slots)
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(wanted.size):
        if i + AHEAD < wanted.size:
            prefetch(base + _SLOT_BYTES * np.int64(_first_slot(wanted[i + AHEAD], mask)))
        key = wanted[i]
        at = _first_slot(key, mask)
        while slots[at, 0] != key and slots[at, 1] != 0:
            at = (at + np.uint64(1)) & mask
        if slots[at, 1] == 0:
            return False
        out[i] = slots[at, 1] - np.uint64(1)
    return True
