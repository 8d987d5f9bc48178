"""How integers are distributed: tallied a slice at a time, then percentiles, a histogram by powers of two, and a power law."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.model.options.stats import Bin, Distribution
from graphprep.stats.power_law import fit_power_law

Ints = NDArray[np.int64]
_STEP = 1 << 16
_PERCENTILES = ("25", "50", "75", "90", "99", "99.9")
_COUNTED_BELOW = 1 << 18  # values that are counted in an array; larger ones are sorted


class Tally(NamedTuple):
    """Values, ascending, each once, and how often each is there: int64[k] both.

    The degrees of m edges have at most about sqrt(2 m) values.
    """

    values: Ints
    counts: Ints

    @property
    def num(self) -> int:
        """Return how many were tallied."""
        return int(self.counts.sum())


def tally(pieces: Iterable[Ints]) -> Tally:
    """Tally integers, 0 or more each."""
    found = Tally(np.zeros(0, np.int64), np.zeros(0, np.int64))
    for piece in pieces:
        if piece.size and int(piece.max()) < _COUNTED_BELOW:
            counts = np.bincount(piece)
            values = np.flatnonzero(counts)
            found = _merge(found, Tally(values, counts[values]))
        else:
            found = _merge(found, Tally(*np.unique(piece, return_counts=True)))
    return found


def slices(array: Ints) -> Iterator[Ints]:
    """Yield an array in slices."""
    for start in range(0, array.size, _STEP):
        yield array[start : start + _STEP]


def _merge(one: Tally, other: Tally) -> Tally:
    values = np.union1d(one.values, other.values)
    counts = np.zeros(values.size, np.int64)
    for some in (one, other):
        counts[np.searchsorted(values, some.values)] += some.counts
    return Tally(values, counts)


def describe(found: Tally, *, power_law: bool = False) -> Distribution:
    """Describe what was tallied; all is 0 where nothing was."""
    num, ends = found.num, np.cumsum(found.counts)
    if not num:
        return Distribution(0, 0, 0.0, 0, dict.fromkeys(_PERCENTILES, 0), ())
    places = [min(num, max(1, -(-num * round(10 * float(one)) // 1000))) for one in _PERCENTILES]
    values = found.values[np.searchsorted(ends, places)]
    return Distribution(
        count=num,
        min=int(found.values[0]),
        mean=int((found.values * found.counts).sum()) / num,
        max=int(found.values[-1]),
        percentiles=dict(zip(_PERCENTILES, values.tolist(), strict=True)),
        histogram=tuple(_bins(found)),
        power_law=fit_power_law(found.values, found.counts) if power_law else None,
    )


def _bins(found: Tally) -> Iterator[Bin]:
    """Yield 0, 1, 2-3, 4-7 and so on, up to the largest value."""
    num_bits = np.frexp(found.values.astype(np.float64))[1]
    counts = np.bincount(num_bits, found.counts).astype(np.int64)
    for bits, number in enumerate(counts.tolist()):
        low = 1 << bits >> 1
        yield Bin(low, max(low, 2 * low - 1), number)
