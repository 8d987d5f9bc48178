"""Sums over rows that do not depend on their order: two of 64 bits for each range of hashes, and how many rows there are."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.ids.hash import splitmix64

Hashes = NDArray[np.uint64]
_SECOND = np.uint64(0x9FB21C651E98DF25)  # makes the second sum of a row independent of the first


@njit(cache=True, nogil=True)
def _add_rows(hashes, values, shift, counts, sums):
    """Add two mixtures of every value to the pair of sums that the highest bits of its row's hash choose."""
    for i in range(hashes.size):
        at = hashes[i] >> shift
        counts[at] += 1
        sums[at, 0] += values[i]
        sums[at, 1] += splitmix64(values[i] ^ _SECOND)


@njit(cache=True, nogil=True)
def _mix(first, second, out):
    for i in range(first.size):
        out[i] = splitmix64(first[i] ^ splitmix64(second[i]))


class RowSums:
    """How many rows there are, and their sums, by the highest ``bits`` bits of their hashes: int64[b] and uint64[b, 2].

    Equal sums mean the same rows, each as often, but for a chance of about 2^-64: that of two rows with the same hash.
    """

    def __init__(self, bits: int) -> None:
        self.bits = max(1, bits)
        self.counts = np.zeros(1 << self.bits, np.int64)
        self.sums = np.zeros((1 << self.bits, 2), np.uint64)

    def add(self, hashes: Hashes, values: Hashes) -> None:
        """Add ``values`` (uint64[k]) of rows with these hashes (uint64[k])."""
        _add_rows(hashes, values, np.uint64(64 - self.bits), self.counts, self.sums)

    def differs(self, other: RowSums) -> NDArray[np.bool_]:
        """Return which ranges are not those of other sums of as many bits: bool[b]."""
        return np.asarray((self.counts != other.counts) | (self.sums != other.sums).any(axis=1), np.bool_)

    @property
    def checksum(self) -> int:
        """Return the sum of all values, modulo 2^64."""
        return int(self.sums[:, 0].sum(dtype=np.uint64))


def mix_hashes(first: Hashes, second: Hashes) -> Hashes:
    """Return one hash a pair, uint64[k]: of those of two ends the hash of an edge in the checksum of docs/store.md."""
    out = np.empty(first.size, np.uint64)
    _mix(first, second, out)
    return out
