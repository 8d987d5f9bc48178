"""Sort 64-bit keys, with or without what travels along: scatter by the highest bits, then radix sort each bucket in cache.

The public functions allocate what they need beside the output; the jitted ones fill what they are given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.edges import WORD_BITS, ScatteredKeys

Ints = NDArray[np.int64]

_LEAST_DIGIT_BITS = 4
_MOST_DIGIT_BITS = 12  # 4096 cursors of 4 bytes: half of L1, and as many open lines fit L2


def scatter_keys(
    keys: NDArray[np.uint64],
    first: int,
    low: int,
    shift: int,
    scattered: NDArray[np.uint64],
    payload: NDArray[Any],
    starts: NDArray[np.int32],
) -> None:
    """See ``Kernels.scatter_keys``."""
    _scatter_chunk(keys, first, np.uint64(low), np.uint64(shift), scattered, payload, starts)


def sort_buckets(
    scattered: ScatteredKeys, buckets: Sequence[int], offsets: Ints, keys: NDArray[np.uint64], payload: NDArray[Any]
) -> None:
    """See ``Kernels.sort_buckets``."""
    most = max((int(offsets[bucket + 1] - offsets[bucket]) for bucket in buckets), default=0)
    digit_bits = min(_MOST_DIGIT_BITS, max(_LEAST_DIGIT_BITS, most.bit_length() - 2))
    digits = -(-WORD_BITS // _LEAST_DIGIT_BITS)
    shifts, counts = np.empty(digits, np.int64), np.empty((digits, 1 << digit_bits), np.int32 if most < 2**31 else np.int64)
    more_keys = np.empty(most, np.uint64)
    more_payload = np.empty(most if payload.size else 0, payload.dtype)
    for bucket in buckets:
        at = slice(offsets[bucket], offsets[bucket + 1])
        size = at.stop - at.start
        _sort_bucket(
            np.uint64(scattered.low),
            scattered.keys,
            scattered.payload,
            scattered.chunk_at,
            scattered.starts,
            bucket,
            digit_bits,
            shifts,
            counts,
            more_keys[:size],
            more_payload[:size],
            keys[at],
            payload[at],
        )


def gather_bucket(scattered: ScatteredKeys, bucket: int, keys: NDArray[np.uint64], payload: NDArray[Any]) -> None:
    """See ``Kernels.gather_bucket``."""
    _gather(scattered.keys, scattered.payload, scattered.chunk_at, scattered.starts, bucket, keys, payload)


def first_of_runs(keys: NDArray[np.uint64], before: int | None, firsts: Ints) -> int:
    """See ``Kernels.first_of_runs``."""
    return int(_first_of_runs(keys, np.uint64(before or 0), before is None, firsts))


@njit(cache=True, nogil=True)
def _scatter_chunk(keys, first, low, shift, scattered, payload, starts):
    starts[:] = 0
    for i in range(keys.size):
        starts[((keys[i] - low) >> shift) + np.uint64(2)] += 1
    for bucket in range(2, starts.size):
        starts[bucket] += starts[bucket - 1]
    has_payload = payload.size > 0
    for i in range(keys.size):
        key = keys[i] - low
        bucket = (key >> shift) + np.uint64(1)
        at = starts[bucket]
        starts[bucket] = at + 1
        scattered[np.uint64(at)] = key
        if has_payload:
            payload[np.uint64(at)] = first + i


@njit(cache=True, nogil=True)
def _gather(scattered, scattered_payload, chunk_at, starts, bucket, keys, payload):
    """Return which bits differ among the keys."""
    at = 0
    some = np.uint64(0)
    every = ~np.uint64(0)
    has_payload = payload.size > 0
    for chunk in range(chunk_at.size):
        begin = chunk_at[chunk] + starts[chunk, bucket]
        size = starts[chunk, bucket + 1] - starts[chunk, bucket]
        for i in range(size):
            key = scattered[np.uint64(begin + i)]
            keys[np.uint64(at + i)] = key
            some |= key
            every &= key
        if has_payload:
            for i in range(size):
                payload[np.uint64(at + i)] = scattered_payload[np.uint64(begin + i)]
        at += size
    return some & ~every


@njit(cache=True, nogil=True)
def _plan_digits(differ, width, shifts):
    """Lay digits over the bits that differ, from the lowest on; bits that do not differ are left out. Returns their number."""
    count = 0
    bit = 0
    while bit < WORD_BITS:
        if (differ >> np.uint64(bit)) & np.uint64(1):
            shifts[count] = bit
            count += 1
            bit += width
        else:
            bit += 1
    return count


@njit(cache=True, nogil=True)
def _sort_bucket(
    low,
    scattered,
    scattered_payload,
    chunk_at,
    starts,
    bucket,
    width,
    shifts,
    counts,
    more_keys,
    more_payload,
    keys,
    payload,
):
    """Gather the bucket, sort it by digit after digit, to and fro, so that the last ends in ``keys``, and add ``low``."""
    differ = _gather(scattered, scattered_payload, chunk_at, starts, bucket, more_keys, more_payload)
    digits = _plan_digits(differ, width, shifts)
    while width > _LEAST_DIGIT_BITS and _plan_digits(differ, width - 1, shifts) == digits:
        width -= 1  # fewer cursors, and no more digits
    _plan_digits(differ, width, shifts)
    mask = (np.uint64(1) << np.uint64(width)) - np.uint64(1)
    counts[:digits] = 0
    for i in range(more_keys.size):
        key = more_keys[i]
        for digit in range(digits):
            counts[digit, (key >> np.uint64(shifts[digit])) & mask] += 1
    is_there = digits & 1 == 0  # in ``keys``
    if is_there:
        for i in range(keys.size):
            keys[i] = more_keys[i]
        for i in range(payload.size):
            payload[i] = more_payload[i]
    for digit in range(digits):
        at = 0
        for value in range(1 << width):
            count = counts[digit, value]
            counts[digit, value] = at
            at += count
        shift = np.uint64(shifts[digit])
        if is_there:
            _scatter(keys, payload, shift, mask, counts[digit], more_keys, more_payload)
        else:
            _scatter(more_keys, more_payload, shift, mask, counts[digit], keys, payload)
        is_there = not is_there
    for i in range(keys.size):
        keys[i] += low


@njit(cache=True, nogil=True)
def _scatter(keys, payload, shift, mask, cursors, new_keys, new_payload):
    has_payload = payload.size > 0
    for i in range(keys.size):
        key = keys[i]
        digit = (key >> shift) & mask
        at = cursors[digit]
        cursors[digit] = at + 1
        new_keys[np.uint64(at)] = key
        if has_payload:
            new_payload[np.uint64(at)] = payload[i]


@njit(cache=True, nogil=True)
def _first_of_runs(keys, before, is_first, firsts):
    count = 0
    for i in range(keys.size):
        key = keys[i]
        firsts[np.uint64(count)] = i
        count += is_first or key != before
        before = key
        is_first = False
    return count
