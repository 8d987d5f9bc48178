"""Random numbers by counter: each is a function of a key and its number, so that they are the same in any order of work."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit

_LOW = uint64(0xFFFFFFFF)
_MULTIPLY_0, _MULTIPLY_1 = uint64(0xD2511F53), uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = uint64(0x9E3779B9), uint64(0xBB67AE85)
_ROUNDS = 10


@njit(cache=True, nogil=True, inline="always")
def philox_words(a, b, c, d, key):
    """Return the four words of a counter of four, under a key: all uint64, words of 32 bits.

    Philox4x32-10; the key's low half is its first word. Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy
    as 1, 2, 3", SC 2011.
    """
    low, high = uint64(key) & _LOW, uint64(key) >> uint64(32)
    for _ in range(_ROUNDS):
        one, other = _MULTIPLY_0 * a, _MULTIPLY_1 * c
        a, b, c, d = (other >> uint64(32)) ^ b ^ low, other & _LOW, (one >> uint64(32)) ^ d ^ high, one & _LOW
        low, high = (low + _WEYL_0) & _LOW, (high + _WEYL_1) & _LOW
    return a, b, c, d


@njit(cache=True, nogil=True, inline="always")
def philox(key, first, second):
    """Return 64 random bits, for a key and a counter of two words: all uint64.

    The counter is (low, high of ``first``; low, high of ``second``); the first of its words is the low half of the result, the
    second one the high half.
    """
    a, b = uint64(first) & _LOW, uint64(first) >> uint64(32)
    c, d = uint64(second) & _LOW, uint64(second) >> uint64(32)
    words = philox_words(a, b, c, d, key)
    return words[0] | (words[1] << uint64(32))


@njit(cache=True, nogil=True, inline="always")
def below(random, size):
    """Return floor(random * size / 2^64) of 64 random bits and a size (uint64): a number below it.

    Each number is as likely as any other to within size / 2^64. Source: Lemire, "Fast random integer generation in an
    interval", 2019, without its rejection.
    """
    low, high = uint64(random) & _LOW, uint64(random) >> uint64(32)
    size_low, size_high = uint64(size) & _LOW, uint64(size) >> uint64(32)
    middle = high * size_low + ((low * size_low) >> uint64(32))
    other = low * size_high + (middle & _LOW)
    return high * size_high + (middle >> uint64(32)) + (other >> uint64(32))


def random_words(key: int, firsts: Any, second: int) -> Any:
    """Return ``philox`` of a key, each of ``firsts`` (uint64[k]), and ``second``: uint64[k]."""
    out = np.empty(firsts.size, np.uint64)
    _fill(uint64(key), np.ascontiguousarray(firsts), uint64(second), out)
    return out


@njit(cache=True, nogil=True)
def _fill(key, firsts, second, out):
    for i in range(firsts.size):
        out[i] = philox(key, firsts[i], second)
