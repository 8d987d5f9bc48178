"""Number the distinct texts of a list: a dictionary of few texts, such as names of relations."""

from __future__ import annotations

import numpy as np
from numba import njit, uint64
from numpy.typing import NDArray

from graphprep.kernels.cpu.hash import splitmix64
from graphprep.kernels.cpu.texts import compare_bytes

_LEAST_SLOTS = 1 << 10  # fits L1; few inputs have more relations
_MORE_SLOTS = 16


def text_codes(offsets: NDArray[np.int64], values: NDArray[np.uint8]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number distinct texts in the order in which they are met.

    Returns the number of every text (int32[n]) and the row at which each number stands first (int64[k], ascending). Texts are
    compared byte by byte.
    """
    num_texts = offsets.size - 1
    codes, rows = np.empty(num_texts, np.int32), np.empty(num_texts, np.int64)
    num_slots = _LEAST_SLOTS
    while True:
        count = _text_codes(offsets, values, np.full(num_slots, -1, np.int32), codes, rows)
        if count >= 0:
            return codes, rows[:count].copy()
        num_slots *= _MORE_SLOTS


@njit(cache=True, nogil=True)
def _mix_text(values, start, stop):
    """Hash a text by words of eight bytes."""
    mixed = splitmix64(uint64(stop - start))
    word, shift = uint64(0), 0
    for at in range(start, stop):
        word |= uint64(values[at]) << uint64(shift)
        shift += 8
        if shift == 64:
            mixed = splitmix64(mixed ^ word)
            word, shift = uint64(0), 0
    return splitmix64(mixed ^ word)


@njit(cache=True, nogil=True)
def _text_codes(offsets, values, slots, codes, rows):
    """Fill ``codes`` and ``rows``. Returns the number of distinct texts, -1 where they fill more than half of the slots."""
    mask = uint64(slots.size - 1)
    count = 0
    for row in range(codes.size):
        start, stop = offsets[row], offsets[row + 1]
        at = _mix_text(values, start, stop) & mask
        while slots[at] >= 0:
            other = rows[slots[at]]
            if compare_bytes(values, offsets[other], offsets[other + 1], values, start, stop) == 0:
                break
            at = (at + uint64(1)) & mask
        if slots[at] < 0:
            if 2 * (count + 1) > slots.size:
                return -1
            slots[at] = count
            rows[count] = row
            count += 1
        codes[row] = slots[at]
    return count
