"""What ``validate`` counts over edges: IDs that repeat or are missing, and sums that do not depend on order."""

from __future__ import annotations

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.ids.hash import splitmix64

Ints = NDArray[np.int64]

_SECOND = np.uint64(0xD1B54A32D192ED03)  # makes the second sum of an edge independent of the first


@njit(cache=True, nogil=True)
def _mark_ids(ids, first, size, bits, repeats):
    """Set the bit of every ID in [first, first + size); write the positions of those that had it, return their number."""
    found = 0
    for i in range(ids.size):
        at = ids[i] - first
        if at < 0 or at >= size:
            continue
        word = at >> 6
        bit = uint64(1) << uint64(at & 63)
        if bits[word] & bit:
            repeats[found] = i
            found += 1
        else:
            bits[word] |= bit
    return found


@njit(cache=True, nogil=True)
def _find_unset(bits, size, out):
    """Write the first numbers below ``size`` whose bit is not set; return how many there are in all."""
    found = 0
    for at in range(size):
        if not (bits[at >> 6] >> uint64(at & 63)) & uint64(1):
            if found < out.size:
                out[found] = at
            found += 1
    return found


@njit(cache=True, nogil=True)
def _add_edge_sums(keys, edge_ids, src, dst, rows, sums):
    """Add two mixtures of every edge to the pair of sums that its key chooses."""
    mask = uint64(sums.shape[0] - 1)
    for i in range(src.size):
        mixed = splitmix64(uint64(src[i]) ^ splitmix64(uint64(dst[i])))
        mixed = splitmix64(mixed ^ splitmix64(uint64(edge_ids[i]) ^ splitmix64(uint64(rows[i]) ^ _SECOND)))
        bucket = splitmix64(uint64(keys[i])) & mask
        sums[bucket, 0] += mixed
        sums[bucket, 1] += splitmix64(mixed ^ _SECOND)


@njit(cache=True, nogil=True)
def _hash_pairs(src, dst, out):
    for i in range(src.size):
        out[i] = splitmix64(uint64(src[i]) ^ splitmix64(uint64(dst[i])))


@njit(cache=True, nogil=True)
def _choose_buckets(keys, wanted, out):
    """Say of every key whether its bucket is wanted (bool[buckets], a power of two)."""
    mask = uint64(wanted.size - 1)
    for i in range(keys.size):
        out[i] = wanted[splitmix64(uint64(keys[i])) & mask]


def mark_ids(ids: Ints, first: int, size: int, bits: NDArray[np.uint64]) -> Ints:
    """Set the bits of IDs (int64[k]) in [first, first + size) and return the positions of IDs whose bit was set before.

    ``bits``: uint64[ceil(size / 64)]; IDs outside the range are passed over. Positions: int64, ascending.
    """
    repeats = np.empty(ids.size, np.int64)
    found = _mark_ids(np.ascontiguousarray(ids, np.int64), first, size, bits, repeats)
    return repeats[:found]


def find_unset(bits: NDArray[np.uint64], size: int, limit: int) -> tuple[int, Ints]:
    """Return (how many of 0..size-1 have no bit set, the first ``limit`` of them as int64)."""
    out = np.empty(limit, np.int64)
    found = _find_unset(bits, size, out)
    return int(found), out[: min(found, limit)]


def add_edge_sums(keys: Ints, edge_ids: Ints, src: Ints, dst: Ints, rows: Ints, sums: NDArray[np.uint64]) -> None:
    """Add edges (int64[k] each) to ``sums`` (uint64[buckets, 2], buckets a power of two), edge i to the bucket of keys[i].

    Equal sums mean the same multiset of (edge ID, source, destination, row), but for a chance of about 2^-128 a bucket.
    """
    _add_edge_sums(*(np.ascontiguousarray(values, np.int64) for values in (keys, edge_ids, src, dst, rows)), sums)


def hash_pairs(src: Ints, dst: Ints) -> Ints:
    """Return one number a pair of ends, as int64[k]."""
    out = np.empty(src.size, np.uint64)
    _hash_pairs(np.ascontiguousarray(src, np.int64), np.ascontiguousarray(dst, np.int64), out)
    return out.view(np.int64)


def choose_buckets(keys: Ints, wanted: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return bool[k]: whether the bucket of each key (int64[k]) is among the wanted (bool[buckets])."""
    out = np.empty(keys.size, np.bool_)
    _choose_buckets(np.ascontiguousarray(keys, np.int64), wanted, out)
    return out
