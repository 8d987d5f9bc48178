"""Rows of sorted keys and back: where rows begin, which row an entry is of, runs of equal keys, limits."""

from __future__ import annotations

import numpy as np
from numba import int64

from graphprep.kernels.cuda.frontend import LONG_GAP, THREADS, U, cuda, device_function, device_kernel
from graphprep.kernels.cuda.scan import greater, lesser, share_of


@device_function
def last_at_most(offsets, number, wanted):
    """Return the last of the first ``number`` offsets, which ascend from 0 on, that is at most ``wanted``."""
    low, high = np.int64(0), np.int64(number)
    while high - low > 1:
        middle = (low + high) // 2
        if offsets[U(middle)] <= wanted:
            low = middle
        else:
            high = middle
    return low


@device_function
def row_of(keys, i, shift):
    """Return the row of a key: what is left without its low bits, of which there are at most 63 or there is one row."""
    return np.int64(U(keys[U(i)]) >> U(shift))


@device_kernel
def fill_value(array, value):
    """Set every item."""
    for i in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        array[U(i)] = value


@device_kernel
def count_up(array):
    """Set every item to its position."""
    for i in range(cuda.grid(1), array.size, cuda.gridsize(1)):
        array[U(i)] = i


@device_kernel
def find_starts(keys, shift, indptr):
    """Write where each row begins: at each key for the rows since the one before, ``LONG_GAP`` at most; -1 stays elsewhere."""
    num_rows = np.int64(indptr.size) - 1
    for i in range(cuda.grid(1), np.int64(keys.size) + 1, cuda.gridsize(1)):
        before = row_of(keys, i - 1, shift) if i > 0 else np.int64(-1)
        here = row_of(keys, i, shift) if i < keys.size else num_rows
        for row in range(before + 1, lesser(here, before + LONG_GAP) + 1):
            indptr[U(row)] = i


@device_kernel
def fill_gaps(keys, shift, indptr):
    """Write where the rows begin that ``find_starts`` left out: many empty rows in a line, found by bisection."""
    for row in range(cuda.grid(1), indptr.size, cuda.gridsize(1)):
        if indptr[U(row)] < 0:
            low, high = np.int64(0), np.int64(keys.size)
            while low < high:
                middle = (low + high) // 2
                if row_of(keys, middle, shift) < row:
                    low = middle + 1
                else:
                    high = middle
            indptr[U(row)] = low


@device_kernel
def expand_rows(indptr, rows):
    """Write the row of every entry."""
    for i in range(cuda.grid(1), rows.size, cuda.gridsize(1)):
        rows[U(i)] = last_at_most(indptr, indptr.size, np.int64(i) + indptr[U(0)])


@device_kernel
def count_rows(indptr, counts):
    """Write how many entries each row has."""
    for row in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        counts[U(row)] = indptr[U(row + 1)] - indptr[U(row)]


@device_kernel
def mark_lasts(keys, lasts):
    """Write 1 where a key differs from the next, 0 elsewhere: the sum before a key is the number of its run."""
    end = np.int64(keys.size) - 1
    for i in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        is_last = i == end
        if i < end:
            is_last = keys[U(i)] != keys[U(i + 1)]
        lasts[U(i)] = 1 if is_last else 0


@device_kernel
def take_firsts(keys, payload, places, new_keys, new_payload):
    """Put each run's first key, and its payload if there is one, where it belongs: ``places`` are the numbers of runs."""
    for i in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        is_first = i == 0
        if i > 0:
            is_first = keys[U(i)] != keys[U(i - 1)]
        if is_first:
            new_keys[U(places[U(i)])] = keys[U(i)]
            if payload.size > 0:
                new_payload[U(places[U(i)])] = payload[U(i)]


@device_kernel
def find_limits(ids, lows, highs):
    """Write the lowest and the highest ID of each block's share; a block without any writes its own bounds."""
    low_of = cuda.shared.array(THREADS, int64)
    high_of = cuda.shared.array(THREADS, int64)
    thread = np.int64(cuda.threadIdx.x)
    first, stop = share_of(ids.size)
    low, high = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-0x8000000000000000)
    for i in range(first + thread, stop, THREADS):
        one = np.int64(ids[U(i)])
        low, high = lesser(low, one), greater(high, one)
    low_of[U(thread)], high_of[U(thread)] = low, high
    cuda.syncthreads()
    if thread == 0:
        for other in range(1, THREADS):
            low, high = lesser(low, low_of[U(other)]), greater(high, high_of[U(other)])
        lows[U(cuda.blockIdx.x)] = low
        highs[U(cuda.blockIdx.x)] = high


@device_kernel
def find_outside(ids, count, firsts):
    """Write the first position in each block's share of an ID outside [0, count), or how many IDs there are."""
    first_of = cuda.shared.array(THREADS, int64)
    thread = np.int64(cuda.threadIdx.x)
    first, stop = share_of(ids.size)
    found = np.int64(ids.size)
    for i in range(first + thread, stop, THREADS):
        one = np.int64(ids[U(i)])
        if (one < 0 or one >= count) and i < found:
            found = np.int64(i)
    first_of[U(thread)] = found
    cuda.syncthreads()
    if thread == 0:
        for other in range(1, THREADS):
            found = lesser(found, first_of[U(other)])
        firsts[U(cuda.blockIdx.x)] = found
