"""The streams of random numbers that generated graphs are drawn from, and what R-MAT needs of them; see docs/generate.md."""

from __future__ import annotations

import enum

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.hash import splitmix64

Keys = NDArray[np.uint64]

_GOLDEN = 0x9E3779B97F4A7C15
_PERMUTATION_ROUNDS = 4


class Stream(enum.IntEnum):
    """What is drawn."""

    QUADRANTS = 0
    PERMUTATION = 1
    WEIGHTS = 2
    TIMES = 3
    SOURCES = 4
    RELATIONS = 5
    ENDS = 6
    NODE_WEIGHTS = 7
    LABELS = 8
    FEATURES = 9


def stream_key(seed: int, stream: Stream) -> int:
    """Return the key of a stream: h(h(seed) xor stream) with h = splitmix64."""
    return _mix(_mix(seed) ^ stream)


def permutation_rounds(seed: int) -> Keys:
    """Return the numbers that label R-MAT's nodes: uint64[8], an odd factor and a summand for each of four rounds."""
    key = stream_key(seed, Stream.PERMUTATION)
    draws = np.array([_mix(key + number * _GOLDEN) for number in range(2 * _PERMUTATION_ROUNDS)], np.uint64)
    draws[::2] |= np.uint64(1)
    return draws


def rmat_limits(a: float, b: float, c: float) -> Keys:
    """Return a, a + b and a + b + c in 2^-20: uint64[3]."""
    limits: Keys = np.rint(np.cumsum([a, b, c]) * (1 << 20)).astype(np.uint64)
    return limits


def _mix(value: int) -> int:
    return int(splitmix64(np.uint64(value % 2**64)))
