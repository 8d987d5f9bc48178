"""Stable radix sort of keys, with or without a payload, by a range of bits: eight bits a pass, the lowest first.

A pass reads the keys to count digits by block, scans the counts, then each block takes its share of the tiles in turn: it sorts
a tile by one half of the digit after the other in shared memory, and writes runs of equal digits. So 24 bytes move for a key of
eight bytes, 40 with a payload of eight, where a one-pass sort moves 16 and 32. Source: Satish, Harris, Garland (2009).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numba import int32, int64, uint16

from graphprep.kernels.cuda.frontend import (
    DIGIT_BITS,
    HALF,
    HALF_BITS,
    ITEMS,
    RADIX,
    THREADS,
    TILE,
    TWICE_THREADS,
    U,
    blocks_for,
    cuda,
    device_function,
    device_kernel,
    launch,
)
from graphprep.kernels.cuda.scan import exclusive_scan, lesser, scan_threads, share_of

_COLUMNS = THREADS + 2 * (THREADS // HALF)  # a word is left out behind so many counters: else threads that read HALF each meet
_NUM_COUNTERS = HALF * _COLUMNS


@device_function
def digit_of(key, shift, mask):
    """Return a digit of a key."""
    return np.int64((U(key) >> U(shift)) & U(mask))


@device_function
def scan_counters(counters, sums):
    """Turn counts, by value and then by thread, into where each begins; a thread takes HALF of them, all of one value."""
    thread = np.int64(cuda.threadIdx.x)
    first = thread // (THREADS // HALF) * _COLUMNS + thread % (THREADS // HALF) * (HALF + 2)
    own = np.int64(0)
    for k in range(HALF):
        own += counters[U(first + k)]
    at, _ = scan_threads(own, sums)
    for k in range(HALF):
        count = np.int64(counters[U(first + k)])
        counters[U(first + k)] = at
        at += count


@device_kernel
def count_digits(keys, shift, mask, table):
    """Count each block's digits: ``table`` (int64[(mask + 1) * blocks]) is by digit, then by block."""
    counts = cuda.shared.array(RADIX, int32)
    thread = np.int64(cuda.threadIdx.x)
    for digit in range(thread, RADIX, THREADS):
        counts[U(digit)] = 0
    cuda.syncthreads()
    first, stop = share_of(keys.size)
    for i in range(first + thread, stop, THREADS):
        cuda.atomic.add(counts, digit_of(keys[U(i)], shift, mask), 1)
    cuda.syncthreads()
    for digit in range(thread, mask + 1, THREADS):
        table[U(digit * np.int64(cuda.gridDim.x) + cuda.blockIdx.x)] = counts[U(digit)]


@device_kernel
def move_by_digit(keys, payload, shift, mask, starts, new_keys, new_payload):
    """Move each block's pairs to where their digit's begin: ``starts`` is the scanned table. ``payload`` may be empty."""
    held = cuda.shared.array(TILE, keys.dtype)
    held_payload = cuda.shared.array(TILE, payload.dtype)
    counters = cuda.shared.array(_NUM_COUNTERS, uint16)
    sums = cuda.shared.array(TWICE_THREADS, int32)
    cursors = cuda.shared.array(RADIX, int64)
    begins = cuda.shared.array(RADIX, int32)
    own = cuda.local.array(ITEMS, keys.dtype)
    own_payload = cuda.local.array(ITEMS, payload.dtype)
    ranks = cuda.local.array(ITEMS, int32)
    thread = np.int64(cuda.threadIdx.x)
    column = thread + 2 * (thread >> HALF_BITS)
    has_payload = payload.size > 0
    num_halves = 2 if mask >= HALF else 1
    for digit in range(thread, mask + 1, THREADS):
        cursors[U(digit)] = starts[U(digit * np.int64(cuda.gridDim.x) + cuda.blockIdx.x)]
    first, stop = share_of(keys.size)
    while first < stop:
        size = lesser(np.int64(TILE), stop - first)
        for i in range(thread, size, THREADS):
            held[U(i)] = keys[U(first + i)]
            if has_payload:
                held_payload[U(i)] = payload[U(first + i)]
        cuda.syncthreads()
        for half in range(num_halves):
            low, some = shift + HALF_BITS * half, (mask >> HALF_BITS * half) & (HALF - 1)
            for value in range(HALF):
                counters[U(column + value * _COLUMNS)] = 0
            for j in range(ITEMS):
                i = thread * ITEMS + j
                if i < size:
                    own[j] = held[U(i)]
                    if has_payload:
                        own_payload[j] = held_payload[U(i)]
                    at = U(column + digit_of(own[j], low, some) * _COLUMNS)
                    ranks[j] = counters[at]
                    counters[at] += 1
            cuda.syncthreads()
            scan_counters(counters, sums)
            cuda.syncthreads()
            for j in range(ITEMS):
                if thread * ITEMS + j < size:
                    to = U(ranks[j] + counters[U(column + digit_of(own[j], low, some) * _COLUMNS)])
                    held[to] = own[j]
                    if has_payload:
                        held_payload[to] = own_payload[j]
            cuda.syncthreads()
        for i in range(thread, size, THREADS):
            digit = digit_of(held[U(i)], shift, mask)
            if i == 0 or digit_of(held[U(i - 1)], shift, mask) != digit:
                begins[U(digit)] = i
        cuda.syncthreads()
        for i in range(thread, size, THREADS):
            key = held[U(i)]
            digit = U(digit_of(key, shift, mask))
            to = U(cursors[digit] + (i - begins[digit]))
            new_keys[to] = key
            if has_payload:
                new_payload[to] = held_payload[U(i)]
        cuda.syncthreads()
        for i in range(thread, size, THREADS):
            digit = digit_of(held[U(i)], shift, mask)
            if i == size - 1 or digit_of(held[U(i + 1)], shift, mask) != digit:
                cursors[U(digit)] += i + 1 - begins[U(digit)]
        cuda.syncthreads()
        first += TILE


def plan_passes(low: int, high: int) -> list[tuple[int, int]]:
    """Return (shift, bits) of the passes over the bits [low, high): as few as can be, all about as wide."""
    passes = -(-(high - low) // DIGIT_BITS)
    cuts = [low + (high - low) * cut // passes for cut in range(passes + 1)] if passes > 0 else []
    return [(start, stop - start) for start, stop in itertools.pairwise(cuts)]


def sort_pairs(room: Any, keys: Any, payload: Any, *ranges: tuple[int, int]) -> tuple[Any, Any]:
    """Sort by the bits [low, high) of the keys, by one range after the other; equal ones stay in order.

    ``keys``: uint32[n] or uint64[n]; ``payload``: uint32[n] or uint64[n], or uint8[0] for none; on the device, overwritten.
    Returns the arrays that hold the result: these, or the room's, which the next sort overwrites.
    """
    passes = [one for low, high in ranges for one in plan_passes(low, high)] if keys.size > 1 else []
    if not passes:
        return keys, payload
    blocks = blocks_for(keys.size)
    more_keys = room.take("more keys", keys.size, keys.dtype)
    more_payload = room.take("more payload", payload.size, payload.dtype)
    if room.fast is not None and (found := room.fast.sort(room, keys, payload, (more_keys, more_payload), ranges)) is not None:
        return found
    for shift, bits in passes:
        mask = (1 << bits) - 1
        table = room.take("table", (mask + 1) * blocks, np.int64)
        launch(count_digits, blocks, room.stream, keys, shift, mask, table)
        exclusive_scan(room, table, table)
        launch(move_by_digit, blocks, room.stream, keys, payload, shift, mask, table, more_keys, more_payload)
        keys, more_keys, payload, more_payload = more_keys, keys, more_payload, payload
    return keys, payload
