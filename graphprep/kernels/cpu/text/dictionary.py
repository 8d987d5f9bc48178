"""Number distinct texts across many lists of them: a dictionary that grows, and finds texts again."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.texts import compare_bytes, hash_texts

_LEAST_SLOTS = 1 << 10
_LEAST_BYTES = 1 << 14


class TextDictionary:
    """Texts with their numbers 0, 1, … in the order in which they were met. Texts are compared, never told by a hash alone.

    Text r is ``values[offsets[r]:offsets[r + 1]]``: int64[n + 1] offsets, uint8 values. ``num_bytes`` is the size of all texts.
    """

    def __init__(self) -> None:
        self.count = 0
        self._slots = np.full(_LEAST_SLOTS, -1, np.int32)
        self._hashes = np.empty(_LEAST_SLOTS // 2, np.uint64)
        self._offsets = np.zeros(_LEAST_SLOTS // 2 + 1, np.int64)
        self._values = np.empty(_LEAST_BYTES, np.uint8)

    @classmethod
    def of(cls, texts: list[bytes]) -> TextDictionary:
        """Return a dictionary of distinct texts, numbered as listed."""
        made = cls()
        offsets = np.zeros(len(texts) + 1, np.int64)
        np.cumsum([len(text) for text in texts], out=offsets[1:])
        made.add(offsets, np.frombuffer(b"".join(texts), np.uint8))
        assert made.count == len(texts), "a text is there twice"
        return made

    @property
    def num_bytes(self) -> int:
        """Return the size of all texts."""
        return int(self._offsets[self.count])

    def texts(self) -> list[bytes]:
        """Return all texts, in the order of their numbers."""
        ends = self._offsets[: self.count + 1].tolist()
        data = self._values[: self.num_bytes].tobytes()
        return [data[start:stop] for start, stop in pairwise(ends)]

    def add(self, offsets: Any, values: Any) -> Any:
        """Return the number of every text, new ones added: int32[n]."""
        codes = np.empty(offsets.size - 1, np.int32)
        hashes = hash_texts(offsets, values)
        row = 0
        while True:
            arrays = (self._slots, self._hashes, self._offsets, self._values)
            row, self.count, done = _add(*arrays, self.count, hashes, offsets, values, row, codes)
            if done:
                return codes
            self._grow(int(offsets[row + 1] - offsets[row]))

    def find(self, offsets: Any, values: Any) -> Any:
        """Return the number of every text, -1 where it is not there: int32[n]."""
        codes = np.empty(offsets.size - 1, np.int32)
        _find(self._slots, self._hashes, self._offsets, self._values, hash_texts(offsets, values), offsets, values, codes)
        return codes

    def _grow(self, num_bytes: int) -> None:
        """Make room for at least one more text of ``num_bytes``."""
        if self.count == self._hashes.size:
            self._slots = np.full(2 * self._slots.size, -1, np.int32)
            _rehash(self._slots, self._hashes[: self.count])
            self._hashes = np.concatenate([self._hashes, np.empty(self.count, np.uint64)])
            self._offsets = np.concatenate([self._offsets, np.empty(self.count, np.int64)])
        used = self.num_bytes
        if used + num_bytes > self._values.size:
            room = max(used + num_bytes, 2 * self._values.size)
            self._values = np.concatenate([self._values[:used], np.empty(room - used, np.uint8)])


@njit(cache=True, nogil=True)
def _slot_of(slots, own_hashes, own_offsets, own_values, hashed, values, start, stop):
    """Return the slot in which a text stands, or belongs."""
    mask = uint64(slots.size - 1)
    at = hashed & mask
    while slots[at] >= 0:
        other = slots[at]
        same_hash = own_hashes[other] == hashed
        if same_hash and compare_bytes(own_values, own_offsets[other], own_offsets[other + 1], values, start, stop) == 0:
            break
        at = (at + uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def _add(slots, own_hashes, own_offsets, own_values, count, hashes, offsets, values, row, codes):
    """Fill ``codes`` from ``row`` on. Returns (row at which there was no room, number of texts, whether all rows are done)."""
    while row < codes.size:
        start, stop = offsets[row], offsets[row + 1]
        at = _slot_of(slots, own_hashes, own_offsets, own_values, hashes[row], values, start, stop)
        if slots[at] < 0:
            to = own_offsets[count]
            if count == own_hashes.size or to + stop - start > own_values.size:
                return row, count, False
            slots[at] = count
            own_hashes[count] = hashes[row]
            for i in range(stop - start):
                own_values[to + i] = values[start + i]
            count += 1
            own_offsets[count] = to + stop - start
        codes[row] = slots[at]
        row += 1
    return row, count, True


@njit(cache=True, nogil=True)
def _find(slots, own_hashes, own_offsets, own_values, hashes, offsets, values, codes):
    for row in range(codes.size):
        at = _slot_of(slots, own_hashes, own_offsets, own_values, hashes[row], values, offsets[row], offsets[row + 1])
        codes[row] = slots[at]


@njit(cache=True, nogil=True)
def _rehash(slots, hashes):
    mask = uint64(slots.size - 1)
    for row in range(hashes.size):
        at = hashes[row] & mask
        while slots[at] >= 0:
            at = (at + uint64(1)) & mask
        slots[at] = row
