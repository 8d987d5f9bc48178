"""Packed records of consecutive buckets to the order of their rows, from where they lie in memory.

Records are those of ``records.Packing``; a segment has its own. The public functions allocate; the jitted ones fill.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import load_word
from graphprep.model.dataclass import dataclass

_WORD_BYTES = 8
_MOST_DIGIT_BITS = 11  # 2048 cursors of 8 bytes: half of L1
_U = np.uint64


@dataclass(frozen=True)
class Stretch:
    """Where the records of some buckets lie, segment by segment.

    ``bounds`` (int64[segments, buckets + 1]) are addresses: the records of segment k in bucket b lie in [bounds[k, b],
    bounds[k, b + 1]). ``bases`` (int64[segments]) are to be added to their edge IDs; ``packings`` (int64[segments, 2]) hold
    ``row_bits``, of which there may be more than ``shift``, or fewer where rows of the segment need no more, and
    ``other_bits``. Buckets have 2^``shift`` rows, all together ``num_rows``: the last one has what is left.
    """

    bounds: Any
    bases: Any
    packings: Any
    shift: int
    num_rows: int

    def bucket_sizes(self) -> Any:
        """Count the records of every bucket: int64[buckets]."""
        return np.diff(self.bounds, axis=1).sum(axis=0) // _WORD_BYTES


def place_stretch(stretch: Stretch, index_dtype: str, id_dtype: str | None, *, ascending: bool) -> tuple[Any, Any, Any]:
    """Put records in the order of their rows; within a row they keep their order, or go by the other end where ``ascending``.

    Returns (lengths of the rows int64[num_rows], others, edge IDs or None).
    """
    sizes = stretch.bucket_sizes()
    lengths = np.empty(stretch.num_rows, np.int64)
    others = np.empty(int(sizes.sum()), index_dtype)
    ids = np.empty(others.size if id_dtype else 0, id_dtype or "int32")
    cursors = np.empty(min(stretch.num_rows, 1 << stretch.shift), np.uint64)
    where = (stretch.bounds, stretch.bases, stretch.packings, stretch.shift)
    if ascending:
        bits = int(stretch.packings[:, 1].max(initial=1))
        digits = -(-bits // _MOST_DIGIT_BITS)
        counts = np.empty((digits, 1 << -(-bits // digits)), np.uint64)
        most = int(sizes.max(initial=0))
        keys, key_ids = np.empty((2, most), np.uint64), np.empty((2, most if id_dtype else 0), ids.dtype)
        _place_ascending(*where, lengths, cursors, counts, keys, key_ids, others, ids)
    else:
        _place(*where, lengths, cursors, others, ids)
    return lengths, others, ids if id_dtype else None


@njit(cache=True, nogil=True)
def _place(bounds, bases, packings, shift, lengths, cursors, others, ids):
    end = _U(0)
    for bucket in range(bounds.shape[1] - 1):
        first_row = bucket << shift
        num_rows = min(cursors.size, lengths.size - first_row)
        for row in range(num_rows):
            cursors[row] = _U(0)
        for k in range(bounds.shape[0]):
            row_mask = (_U(1) << _U(min(shift, packings[k, 0]))) - _U(1)
            for at in range(bounds[k, bucket], bounds[k, bucket + 1], _WORD_BYTES):
                cursors[load_word(at) & row_mask] += _U(1)
        for row in range(num_rows):
            count = cursors[row]
            lengths[first_row + row] = np.int64(count)
            cursors[row] = end
            end += count
        for k in range(bounds.shape[0]):
            base, other_shift = _U(bases[k]), _U(packings[k, 0])
            row_mask = (_U(1) << _U(min(shift, packings[k, 0]))) - _U(1)
            id_shift = other_shift + _U(packings[k, 1])
            other_mask = (_U(1) << _U(packings[k, 1])) - _U(1)
            for at in range(bounds[k, bucket], bounds[k, bucket + 1], _WORD_BYTES):
                word = load_word(at)
                row = word & row_mask
                to = cursors[row]
                cursors[row] = to + _U(1)
                others[to] = (word >> other_shift) & other_mask
                if ids.size:
                    ids[to] = base + (word >> id_shift)


@njit(cache=True, nogil=True)
def _place_ascending(bounds, bases, packings, shift, lengths, cursors, counts, keys, key_ids, others, ids):
    """Sort a bucket by the digits of the other ends, the lowest first, then by row: each step keeps the order before it."""
    digit_bits = 0
    while 1 << digit_bits < counts.shape[1]:
        digit_bits += 1
    end = _U(0)
    for bucket in range(bounds.shape[1] - 1):
        first_row = bucket << shift
        num_rows = min(cursors.size, lengths.size - first_row)
        cursors[:num_rows] = _U(0)
        counts[:] = _U(0)
        size = _count_digits(bounds, packings, shift, bucket, digit_bits, cursors, counts)
        for row in range(num_rows):
            count = cursors[row]
            lengths[first_row + row] = np.int64(count)
            cursors[row] = end
            end += count
        for digit in range(counts.shape[0]):
            start = _U(0)
            for value in range(counts.shape[1]):
                count = counts[digit, value]
                counts[digit, value] = start
                start += count
        _gather(bounds, bases, packings, shift, bucket, counts[0], keys[0], key_ids[0])
        now = 0
        for digit in range(1, counts.shape[0]):
            skip = _U(shift + digit * digit_bits)
            _scatter(keys[now], key_ids[now], size, skip, counts[digit], keys[1 - now], key_ids[1 - now])
            now = 1 - now
        _scatter_to_rows(keys[now], key_ids[now], size, shift, cursors, others, ids)


@njit(cache=True, nogil=True)
def _count_digits(bounds, packings, shift, bucket, digit_bits, cursors, counts):
    """Count the records of every row of a bucket, and those of every digit. Returns how many records there are."""
    mask = _U(counts.shape[1] - 1)
    size = 0
    for k in range(bounds.shape[0]):
        row_mask = (_U(1) << _U(min(shift, packings[k, 0]))) - _U(1)
        other_mask = (_U(1) << _U(packings[k, 1])) - _U(1)
        size += (bounds[k, bucket + 1] - bounds[k, bucket]) // _WORD_BYTES
        for at in range(bounds[k, bucket], bounds[k, bucket + 1], _WORD_BYTES):
            word = load_word(at)
            cursors[word & row_mask] += _U(1)
            other = (word >> _U(packings[k, 0])) & other_mask
            for digit in range(counts.shape[0]):
                counts[digit, (other >> _U(digit * digit_bits)) & mask] += _U(1)
    return size


@njit(cache=True, nogil=True)
def _gather(bounds, bases, packings, shift, bucket, cursors, keys, key_ids):
    """Move a bucket's records to the cursors of their lowest digit, as keys: the other end, below it the row."""
    mask = _U(cursors.size - 1)
    for k in range(bounds.shape[0]):
        base, other_shift = _U(bases[k]), _U(packings[k, 0])
        id_shift = other_shift + _U(packings[k, 1])
        row_mask = (_U(1) << _U(min(shift, packings[k, 0]))) - _U(1)
        other_mask = (_U(1) << _U(packings[k, 1])) - _U(1)
        for at in range(bounds[k, bucket], bounds[k, bucket + 1], _WORD_BYTES):
            word = load_word(at)
            other = (word >> other_shift) & other_mask
            to = cursors[other & mask]
            cursors[other & mask] = to + _U(1)
            keys[to] = (other << _U(shift)) | (word & row_mask)
            if key_ids.size:
                key_ids[to] = base + (word >> id_shift)


@njit(cache=True, nogil=True)
def _scatter(keys, key_ids, size, skip, cursors, new_keys, new_ids):
    mask = _U(cursors.size - 1)
    for i in range(_U(size)):
        key = keys[i]
        digit = (key >> skip) & mask
        to = cursors[digit]
        cursors[digit] = to + _U(1)
        new_keys[to] = key
        if key_ids.size:
            new_ids[to] = key_ids[i]


@njit(cache=True, nogil=True)
def _scatter_to_rows(keys, key_ids, size, shift, cursors, others, ids):
    row_mask = (_U(1) << _U(shift)) - _U(1)
    for i in range(_U(size)):
        key = keys[i]
        row = key & row_mask
        to = cursors[row]
        cursors[row] = to + _U(1)
        others[to] = key >> _U(shift)
        if key_ids.size:
            ids[to] = key_ids[i]
