"""The rows of the highest scores, found in a few passes: nothing is held but those that are found."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
Read = Callable[[int, int], NDArray[np.float64]]
_STEP = 1 << 18  # rows at a time
_DIGIT_BITS = 16
_SIGN = np.uint64(1 << 63)


def find_top_rows(read: Read, size: int, count: int) -> Ints:
    """Find the ``count`` rows of the highest scores among ``size``: int64[count], highest first, of equal ones the lower first.

    ``read(low, high)`` returns the scores of rows [low, high) as float64; it is called for all rows five times. NaN is lowest.
    """
    count = min(count, size)
    if count <= 0:
        return np.zeros(0, np.int64)
    threshold, num_equal = _find_threshold(read, size, count)
    rows, keys = [], []
    for low, some in _pieces(read, size):
        equal = np.flatnonzero(some == threshold)[:num_equal]
        num_equal -= equal.size
        found = np.union1d(np.flatnonzero(some > threshold), equal)
        rows.append(found + low)
        keys.append(some[found])
    order = np.argsort(~np.concatenate(keys), kind="stable")
    return np.asarray(np.concatenate(rows)[order], np.int64)


def _find_threshold(read: Read, size: int, count: int) -> tuple[np.uint64, int]:
    """Return the lowest key among the ``count`` highest, and how many of these have it: digit by digit, from the top."""
    prefix = mask = np.uint64(0)
    for shift in range(64 - _DIGIT_BITS, -1, -_DIGIT_BITS):
        counts = np.zeros(1 << _DIGIT_BITS, np.int64)
        for _, keys in _pieces(read, size):
            digits = (keys[keys & mask == prefix] >> np.uint64(shift)) & np.uint64(counts.size - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=counts.size)
        above = np.cumsum(counts[::-1])
        place = int(np.searchsorted(above, count))
        count -= int(above[place] - counts[-1 - place])
        prefix |= np.uint64(counts.size - 1 - place) << np.uint64(shift)
        mask |= np.uint64(counts.size - 1) << np.uint64(shift)
    return prefix, count


def _pieces(read: Read, size: int) -> Iterator[tuple[int, Keys]]:
    """Yield the first row of each piece, and keys in the order of its scores."""
    for low in range(0, size, _STEP):
        scores = read(low, min(low + _STEP, size)) + 0.0  # -0.0 is 0.0
        bits = np.ascontiguousarray(scores, np.float64).view(np.uint64)
        keys = np.where(bits & _SIGN, ~bits, bits | _SIGN)
        keys[np.isnan(scores)] = 0
        yield low, keys
