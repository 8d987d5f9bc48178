"""Tell new IDs from those met before, by a hash table. The class allocates; the jitted ones fill what they are given."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit

_EMPTY = np.uint64(2**64 - 1)  # an ID may be that, too: it is kept apart
_LEAST_SLOTS = 1 << 12


class SeenIds:
    """A set of uint64 IDs. ``num_bytes`` is the size of its table."""

    def __init__(self) -> None:
        self._slots = np.full(_LEAST_SLOTS, _EMPTY)
        self._count = 0
        self._has_empty = False

    @property
    def num_bytes(self) -> int:
        """Return the size of the table."""
        return int(self._slots.nbytes)

    def add(self, ids: Any) -> Any:
        """Add IDs (uint64[k]); return those that were not there, each once, in the order in which they were met."""
        self._grow(self._count + ids.size)
        new = np.empty(ids.size, np.uint64)
        count, met_empty = _add(self._slots, np.ascontiguousarray(ids), new)
        self._count += count
        if met_empty >= 0 and not self._has_empty:
            self._has_empty = True
            return np.insert(new[:count], met_empty, _EMPTY)
        return new[:count].copy()

    def _grow(self, most: int) -> None:
        """Make the table at least twice as large as what it may have to hold."""
        size = max(_LEAST_SLOTS, 1 << (2 * most - 1).bit_length())
        if size > self._slots.size:
            old, self._slots = self._slots, np.full(size, _EMPTY)
            _rehash(self._slots, old)


@njit(cache=True, nogil=True)
def _slot(slots, value):
    """Return where a value stands, or the empty slot where it belongs."""
    mask = np.uint64(slots.size - 1)
    mixed = value * np.uint64(0x9E3779B97F4A7C15)
    at = (mixed ^ (mixed >> np.uint64(32))) & mask
    while slots[at] != _EMPTY and slots[at] != value:
        at = (at + np.uint64(1)) & mask
    return at


@njit(cache=True, nogil=True)
def _add(slots, ids, new):
    """Return how many IDs are new, and how many of them stand before the first _EMPTY (-1: there is none)."""
    count = 0
    met_empty = -1
    for i in range(ids.size):
        value = ids[i]
        if value == _EMPTY:
            if met_empty < 0:
                met_empty = count
            continue
        at = _slot(slots, value)
        if slots[at] == _EMPTY:
            slots[at] = value
            new[count] = value
            count += 1
    return count, met_empty


@njit(cache=True, nogil=True)
def _rehash(slots, old):
    for i in range(old.size):
        if old[i] != _EMPTY:
            slots[_slot(slots, old[i])] = old[i]
