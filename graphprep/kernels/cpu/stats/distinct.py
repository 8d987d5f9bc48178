"""Count distinct words: exactly in a hash table, and by HyperLogLog. The caller allocates; the jitted function fills."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.ids.hash import splitmix64

_REGISTER_BITS = uint64(14)
NUM_REGISTERS = 1 << int(_REGISTER_BITS)
MOST_EXACT = 1 << 16
NUM_SLOTS = 2 * MOST_EXACT


def note_words(words: Any, registers: Any, slots: Any, counts: Any) -> None:
    """Note words (uint64[k]). ``registers``: uint8[NUM_REGISTERS]; ``slots``: uint64[NUM_SLOTS], both 0 at first.

    ``counts``: int64[1], the number of distinct words up to ``MOST_EXACT``, then ``MOST_EXACT + 1``. A register holds the
    most leading zeros, and one more, of the hashes that fall to it. Source: Flajolet, Fusy, Gandouet, Meunier, "HyperLogLog",
    AofA 2007, with hashes of 64 bits.
    """
    _note_words(np.ascontiguousarray(words).view(np.uint64), registers, slots, counts)


@njit(cache=True, nogil=True)
def _note_words(words, registers, slots, counts):
    """A word and its hash are one to one: a slot holds the hash. That of 0 stands for an empty slot, and is kept as another."""
    mask = uint64(slots.size - 1)
    num = counts[0]
    for i in range(words.size):
        mixed = splitmix64(words[i])
        register = mixed >> uint64(50)
        rest = (mixed << uint64(14)) | uint64(8192)  # a bit that ends the run of zeros
        rank = 1
        while rest < uint64(0x8000000000000000):
            rest = rest << uint64(1)
            rank += 1
        registers[register] = max(registers[register], rank)
        if num > MOST_EXACT:
            continue
        kept = mixed if mixed != uint64(0) else uint64(1)
        slot = kept & mask
        while slots[slot] != uint64(0) and slots[slot] != kept:
            slot = (slot + uint64(1)) & mask
        if slots[slot] == uint64(0):
            num += 1
            if num <= MOST_EXACT:
                slots[slot] = kept
    counts[0] = num
