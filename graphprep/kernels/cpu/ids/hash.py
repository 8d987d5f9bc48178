"""Hashes and the seeded permutation of STORE.md, "Hashes" and "Partition functions". All arithmetic is modulo 2^64."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX2 = np.uint64(0x94D049BB133111EB)


@njit(cache=True, nogil=True, inline="always")
def splitmix64(x):
    """Mix 64 bits. Source: Steele, Lea, Flood 2014 (SplittableRandom), the finaliser with its increment."""
    z = uint64(x) + _GOLDEN
    z = (z ^ (z >> uint64(30))) * _MIX1
    z = (z ^ (z >> uint64(27))) * _MIX2
    return z ^ (z >> uint64(31))


@njit(cache=True, nogil=True)
def _hash_ints(ids, out):
    for i in range(ids.size):
        out[i] = splitmix64(ids[i])


@njit(cache=True, nogil=True)
def _edge_checksum(src, dst):
    total = uint64(0)
    for i in range(src.size):
        total += splitmix64(splitmix64(src[i]) ^ splitmix64(splitmix64(dst[i])))
    return total


@njit(cache=True, nogil=True)
def _permute_range(first, keys, half_bits, size, out):
    """Fill ``out`` with perm(first), perm(first + 1) …: a 4-round Feistel network, walked until the result is < size."""
    mask = (uint64(1) << half_bits) - uint64(1)
    for i in range(out.size):
        value = uint64(first) + uint64(i)
        while True:
            left = value >> half_bits
            right = value & mask
            for r in range(4):
                left, right = right, left ^ (splitmix64(keys[r] ^ right) & mask)
            value = (left << half_bits) | right
            if value < size:
                break
        out[i] = value


def hash_ints(ids: Any) -> Any:
    """Return h of every integer: uint64[n] of uint64[n] (int64 is taken by its bits)."""
    ids = np.ascontiguousarray(ids).view(np.uint64)
    out = np.empty(ids.size, np.uint64)
    _hash_ints(ids, out)
    return out


def edge_checksum(raw_src: Any, raw_dst: Any) -> int:
    """Return the order-free checksum of edges given by integer raw IDs, as a Python int below 2^64.

    ``raw_src``, ``raw_dst``: uint32[m] or uint64[m], int64 being taken by its bits.
    """
    src, dst = np.ascontiguousarray(raw_src), np.ascontiguousarray(raw_dst)
    if src.dtype == dst.dtype == np.uint32:
        return int(_edge_checksum(src, dst))
    return int(_edge_checksum(_bits(src), _bits(dst)))


def _bits(ids: Any) -> Any:
    """Return 64-bit integers, or wider ones of uint32, as uint64."""
    return ids.astype(np.uint64) if ids.dtype == np.uint32 else ids.view(np.uint64)


@njit(cache=True, nogil=True)
def _pair_checksum(src, dst):
    total = uint64(0)
    for i in range(src.size):
        total += splitmix64(src[i] ^ splitmix64(dst[i]))
    return total


def pair_checksum(hash_src: Any, hash_dst: Any) -> int:
    """Return the order-free checksum of edges given by the hashes of their ends (uint64[m] each)."""
    return int(_pair_checksum(np.ascontiguousarray(hash_src), np.ascontiguousarray(hash_dst)))


def permute_range(first: int, count: int, size: int, seed: int, type_number: int) -> Any:
    """Return perm(first), …, perm(first + count - 1) of the permutation of 0..size-1 that STORE.md calls ``random``.

    uint64[count]. The permutation depends on size, seed and the node type's number only.
    """
    half_bits = 1
    while 4**half_bits < size:
        half_bits += 1
    inner = int(splitmix64(np.uint64(seed % 2**64)))
    keys = np.array([int(splitmix64(np.uint64(inner ^ (256 * type_number + r)))) for r in range(4)], np.uint64)
    out = np.empty(count, np.uint64)
    _permute_range(np.uint64(first), keys, np.uint64(half_bits), np.uint64(size), out)
    return out
