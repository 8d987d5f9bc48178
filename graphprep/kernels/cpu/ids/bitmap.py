"""Sets of small integers as bits: which are there, and how many stand before one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit

_BLOCK_WORDS = 8  # of 64 bits: a block is a cache line, and its count a 64th of what it counts


class Ranks:
    """The ranks of the members of a set: how many members are smaller.

    ``bits`` (uint8[8 k]) has bit ``i & 7`` of byte ``i >> 3`` set where i is a member. ``num_bytes`` is what it holds in all.
    Source: Jacobson 1989.
    """

    def __init__(self, bits: Any) -> None:
        self._words = bits.view(np.uint64)
        self._before = np.zeros(-(-self._words.size // _BLOCK_WORDS) + 1, np.int64)
        _count_blocks(self._words, self._before)
        np.cumsum(self._before, out=self._before)

    @property
    def count(self) -> int:
        """Return the number of members."""
        return int(self._before[-1])

    @property
    def num_bytes(self) -> int:
        """Return the size of the bits and their counts."""
        return int(self._words.nbytes + self._before.nbytes)

    def find(self, wanted: Any) -> Any:
        """Return the rank of each wanted number (uint64[k]), -1 for what is no member: int64[k]."""
        out = np.empty(wanted.size, np.int64)
        _find_ranks(self._words, self._before, np.ascontiguousarray(wanted), out)
        return out

    def find_all(self, wanted: Any, dtype: Any) -> Any | None:
        """Return the rank of each wanted number (uint32[k] or uint64[k]) in a dtype; None where one is no member."""
        out = np.empty(wanted.size, dtype)
        return out if _find_members(self._words, self._before, np.ascontiguousarray(wanted), out) else None


@njit(cache=True, nogil=True, inline="always")
def _popcount(word):
    word = word - ((word >> uint64(1)) & uint64(0x5555555555555555))
    word = (word & uint64(0x3333333333333333)) + ((word >> uint64(2)) & uint64(0x3333333333333333))
    word = (word + (word >> uint64(4))) & uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * uint64(0x0101010101010101)) >> uint64(56))


@njit(cache=True, nogil=True)
def _count_blocks(words, counts):
    """Count the members of every block one place to the right, so that a running sum gives those before it."""
    for i in range(words.size):
        counts[i // _BLOCK_WORDS + 1] += _popcount(words[i])


@njit(cache=True, nogil=True, inline="always")
def _rank(words, before, value):
    """Return how many members are smaller than one of them; -1 of what is none."""
    if value >= uint64(64) * uint64(words.size):
        return -1
    at = np.int64(value >> uint64(6))
    bit = uint64(1) << (value & uint64(63))
    if not words[at] & bit:
        return -1
    block = at // _BLOCK_WORDS
    rank = before[block]
    for k in range(block * _BLOCK_WORDS, at):
        rank += _popcount(words[k])
    return rank + _popcount(words[at] & (bit - uint64(1)))


@njit(cache=True, nogil=True)
def _find_ranks(words, before, wanted, out):
    for i in range(wanted.size):
        out[i] = _rank(words, before, wanted[i])


@njit(cache=True, nogil=True)
def _find_members(words, before, wanted, out):
    """Find ranks; return whether all are members."""
    for i in range(wanted.size):
        rank = _rank(words, before, uint64(wanted[i]))
        if rank < 0:
            return False
        out[i] = rank
    return True


def members(bits: Any, start: int, stop: int) -> Any:
    """Return the members whose bytes are ``bits[start:stop]``, ascending: uint64[k]."""
    return (np.flatnonzero(np.unpackbits(bits[start:stop], bitorder="little")) + 8 * start).astype(np.uint64)
