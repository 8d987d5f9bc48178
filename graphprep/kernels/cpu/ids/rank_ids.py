"""Rank IDs without a search for each: scatter them by a hash, number the distinct ones of a bucket in cache, sort only those.

The caller allocates; the jitted functions fill what they are given.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit

_MIX = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio: multiplied, neighbours fall into distant buckets
_FIRST_SLOTS = 1 << 12


@dataclass(frozen=True)
class ScatteredIds:
    """IDs by their hash, chunk after chunk, as in ``ScatteredKeys``. ``hash_bits``: there are 2**hash_bits buckets."""

    ids: NDArray[np.uint64]
    hash_bits: int
    chunk_at: NDArray[np.int64]
    starts: NDArray[np.int32]


def scatter_ids(ids: NDArray[np.uint64], hash_bits: int, scattered: NDArray[np.uint64], starts: NDArray[np.int32]) -> None:
    """Scatter a chunk of IDs, from ``as_input``, to 2**hash_bits buckets by a hash, in input order within a bucket."""
    _scatter(ids, np.uint64(64 - hash_bits), scattered, starts)


def number_bucket(scattered: ScatteredIds, bucket: int, size: int) -> NDArray[np.uint64]:
    """Replace each of a bucket's ``size`` IDs by the number of its first occurrence; return the distinct ones by number."""
    slots = max(_FIRST_SLOTS, 1 << (2 * size - 1).bit_length())
    distinct = np.empty(size, np.uint64)
    table = np.empty(slots, np.int32 if size < 2**31 else np.int64)
    count = _number(
        scattered.ids, scattered.chunk_at, scattered.starts, bucket, np.uint64(scattered.hash_bits), table, distinct
    )
    return distinct[:count].copy()


def rank_bucket(scattered: ScatteredIds, bucket: int, ranks: NDArray[Any]) -> None:
    """Replace each number of a bucket by its rank: ``ranks`` int32[distinct] or int64[distinct], by number."""
    _rank(scattered.ids, scattered.chunk_at, scattered.starts, bucket, ranks)


def collect_ranks(
    ids: NDArray[np.uint64],
    hash_bits: int,
    scattered: NDArray[np.uint64],
    starts: NDArray[np.int32],
    ranks: NDArray[Any],
) -> None:
    """Bring the ranks of a chunk back into input order: ``ranks`` [n]. The rest as for ``scatter_ids``; uses up ``starts``."""
    _collect(ids, np.uint64(64 - hash_bits), scattered, starts, ranks)


@njit(cache=True, nogil=True)
def _mixed(value):
    return (value ^ (value >> np.uint64(32))) * np.uint64(_MIX)


@njit(cache=True, nogil=True)
def _bucket_of(value, shift):
    """A shift of 64 is none that a processor has: all in one bucket."""
    return _mixed(value) >> shift if shift < np.uint64(64) else np.uint64(0)


@njit(cache=True, nogil=True)
def _scatter(ids, shift, scattered, starts):
    starts[:] = 0
    for i in range(ids.size):
        starts[_bucket_of(ids[i], shift) + np.uint64(2)] += 1
    for bucket in range(2, starts.size):
        starts[bucket] += starts[bucket - 1]
    for i in range(ids.size):
        value = ids[i]
        bucket = _bucket_of(value, shift) + np.uint64(1)
        at = starts[bucket]
        starts[bucket] = at + 1
        scattered[np.uint64(at)] = value


@njit(cache=True, nogil=True)
def _slot(value, hash_bits, table_bits):
    """Take the hash's bits below those that chose the bucket."""
    return _mixed(value) << hash_bits >> (np.uint64(64) - table_bits)


@njit(cache=True, nogil=True)
def _number(ids, chunk_at, starts, bucket, hash_bits, table, distinct):
    """Look each ID up in a table of numbers that grows as it fills, and write its number in its place."""
    count = 0
    slots = _FIRST_SLOTS
    bits = np.uint64(12)
    table[:slots] = -1
    for chunk in range(chunk_at.size):
        begin = chunk_at[chunk] + starts[chunk, bucket]
        end = chunk_at[chunk] + starts[chunk, bucket + 1]
        for i in range(begin, end):
            value = ids[i]
            at = _slot(value, hash_bits, bits)
            number = np.int64(table[at])
            while number >= 0 and distinct[number] != value:
                at = (at + np.uint64(1)) & np.uint64(slots - 1)
                number = np.int64(table[at])
            if number < 0:
                number = count
                table[at] = count
                distinct[count] = value
                count += 1
                if 2 * count > slots:
                    slots *= 4
                    bits += np.uint64(2)
                    if slots > table.size:
                        slots, bits = slots >> 1, bits - np.uint64(1)
                    _refill(distinct[:count], hash_bits, bits, table[:slots])
            ids[i] = np.uint64(number)
    return count


@njit(cache=True, nogil=True)
def _refill(distinct, hash_bits, bits, table):
    table[:] = -1
    last = np.uint64(table.size - 1)
    for number in range(distinct.size):
        at = _slot(distinct[number], hash_bits, bits)
        while table[at] >= 0:
            at = (at + np.uint64(1)) & last
        table[at] = number


@njit(cache=True, nogil=True)
def _rank(ids, chunk_at, starts, bucket, ranks):
    for chunk in range(chunk_at.size):
        begin = chunk_at[chunk] + starts[chunk, bucket]
        end = chunk_at[chunk] + starts[chunk, bucket + 1]
        for i in range(begin, end):
            ids[i] = np.uint64(ranks[ids[i]])


@njit(cache=True, nogil=True)
def _collect(ids, shift, scattered, starts, ranks):
    """Walk the IDs as they were scattered: each bucket hands out its ranks in that order."""
    for i in range(ids.size):
        bucket = _bucket_of(ids[i], shift)
        at = starts[bucket]
        starts[bucket] = at + 1
        ranks[i] = scattered[np.uint64(at)]
