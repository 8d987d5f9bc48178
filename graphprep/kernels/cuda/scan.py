"""Exclusive sums: of the threads of a block, and of an array. Three kernels: sums of shares, their sums, shares again."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import int64

from graphprep.kernels.cuda.frontend import (
    ITEMS,
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


@device_function
def lesser(one, other):
    """Return the lesser of two int64; Numba's own CUDA target compiles no ``min``."""
    return one if one < other else other


@device_function
def greater(one, other):
    """Return the greater of two int64."""
    return one if one > other else other


@device_function
def share_of(size):
    """Return which items [first, stop) are this block's: whole tiles, as many as others have."""
    block, blocks = np.int64(cuda.blockIdx.x), np.int64(cuda.gridDim.x)
    tiles = (np.int64(size) + TILE - 1) // TILE
    first = tiles * block // blocks * TILE
    stop = tiles * (block + 1) // blocks * TILE
    return first, lesser(stop, np.int64(size))


@device_function
def scan_threads(value, sums):
    """Return the sum over the threads before this one, and over all of them.

    ``sums``: shared, two numbers a thread; a barrier must lie between two calls. Source: Hillis and Steele (1986).
    """
    thread = np.int64(cuda.threadIdx.x)
    sums[U(thread)] = value
    now = 0
    step = 1
    while step < THREADS:
        cuda.syncthreads()
        total = sums[U(now + thread)]
        if thread >= step:
            total += sums[U(now + thread - step)]
        now = THREADS - now
        sums[U(now + thread)] = total
        step *= 2
    cuda.syncthreads()
    return sums[U(now + thread)] - value, sums[U(now + THREADS - 1)]


@device_kernel
def sum_shares(values, sums):
    """Write the sum of each block's share."""
    partial = cuda.shared.array(TWICE_THREADS, int64)
    thread = np.int64(cuda.threadIdx.x)
    first, stop = share_of(values.size)
    own = np.int64(0)
    for i in range(first + thread, stop, THREADS):
        own += values[U(i)]
    _, total = scan_threads(own, partial)
    if thread == 0:
        sums[U(cuda.blockIdx.x)] = total


@device_kernel
def scan_sums(sums):
    """Scan the sums of shares, where they lie, on one block."""
    partial = cuda.shared.array(TWICE_THREADS, int64)
    thread = np.int64(cuda.threadIdx.x)
    carry = np.int64(0)
    for first in range(0, sums.size, THREADS):
        at = first + thread
        value = np.int64(0)
        if at < sums.size:
            value = sums[U(at)]
        before, total = scan_threads(value, partial)
        if at < sums.size:
            sums[U(at)] = carry + before
        carry += total
        cuda.syncthreads()


@device_kernel
def scan_shares(values, sums, out):
    """Scan each block's share, from what comes before it on; ``out`` may be ``values``."""
    held = cuda.shared.array(TILE, int64)
    partial = cuda.shared.array(TWICE_THREADS, int64)
    thread = np.int64(cuda.threadIdx.x)
    first, stop = share_of(values.size)
    carry = sums[U(cuda.blockIdx.x)]
    while first < stop:
        size = lesser(np.int64(TILE), stop - first)
        for i in range(thread, TILE, THREADS):
            held[U(i)] = values[U(first + i)] if i < size else np.int64(0)
        cuda.syncthreads()
        own = np.int64(0)
        for j in range(ITEMS):
            own += held[U(thread * ITEMS + j)]
        before, total = scan_threads(own, partial)
        at = carry + before
        for j in range(ITEMS):
            value = held[U(thread * ITEMS + j)]
            held[U(thread * ITEMS + j)] = at
            at += value
        cuda.syncthreads()
        for i in range(thread, size, THREADS):
            out[U(first + i)] = held[U(i)]
        carry += total
        first += TILE


def exclusive_scan(room: Any, values: Any, out: Any) -> None:
    """Set ``out[i]`` to the sum of ``values[:i]``: int64[n] both, on the device; they may be one array."""
    if room.fast is not None and values.size and room.fast.scan(room, values, out):
        return
    blocks = blocks_for(values.size)
    sums = room.take("sums", blocks, np.int64)
    launch(sum_shares, blocks, room.stream, values, sums)
    launch(scan_sums, 1, room.stream, sums)
    launch(scan_shares, blocks, room.stream, values, sums, out)
