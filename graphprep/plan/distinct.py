"""How many different IDs an input has, told from pieces of it.

A piece is taken for one catch, as in capture-recapture: what counts is in how many pieces an ID occurs, not how often, since
inputs are often sorted by one end, so that an ID's edges stand together. From that follows how many IDs b of the pieces have on
average, for every b up to their number (rarefaction), and a curve through these is followed up to the whole input.

Curve: D(b) = A ((1 + c b)^g - 1) / g. It is that of IDs whose frequencies follow a gamma distribution (g < 0: D ends at -A/g;
g -> 0: Fisher's logarithmic series) and, for 0 < g < 1, that of a power law, where D grows like b^g (Heaps' law).
Source: Good and Toulmin 1956; Engen 1978; Colwell and others 2012, for the bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphprep.model.options.plan import Estimate

Floats = NDArray[np.float64]
_SHAPES = np.concatenate([np.linspace(-20, -2.1, 60), np.linspace(-1.995, 0.985, 299)])  # g; 0 itself is not among them
_ROUGH = 0.0005  # by which the curve may miss what was seen
_SHARED = 0.1  # of the errors of counting, what parts of the sample do not share with all of it
_SURE = 1.96  # standard errors


def estimate_distinct(pieces: Sequence[NDArray[np.uint64]], times: float, most: float) -> Estimate:
    """Estimate how many different IDs an input has that is ``times`` as large as ``pieces`` of it, and ``most`` at most.

    Each piece is uint64[k]: its different IDs, in any order. The bounds are Chao's lower bound, and the line along which new
    IDs came in the last of the pieces: growth only slows down.
    """
    seen = np.unique(np.concatenate([*pieces, np.zeros(0, np.uint64)]), return_counts=True)[1]
    num_seen, num_pieces = seen.size, len(pieces)
    if times <= 1 or not num_seen:
        return Estimate.exactly(num_seen)
    if num_pieces < 2:
        return Estimate(int(min(most, num_seen * times)), num_seen, int(min(most, num_seen * times)))
    once, twice = int((seen == 1).sum()), int((seen == 2).sum())
    more = num_pieces * (times - 1)
    high = min(most, num_seen + once / num_pieces * more)
    low = min(high, _chao(num_seen, once, twice, num_pieces, more))
    value = _follow(np.bincount(seen, minlength=num_pieces + 1), num_pieces, times) if once else num_seen
    return Estimate(*(round(one) for one in (min(max(value, low), high), low, high)))


def _chao(num_seen: int, once: int, twice: int, num_pieces: int, more: float) -> float:
    """Return how many IDs there are at least after ``more`` pieces, less two standard errors of what was seen."""
    unseen = once**2 / (2 * twice) if twice else once * (once - 1) / 2
    if not unseen:
        return float(num_seen)
    found = num_seen + unseen * (1 - math.exp(-more / num_pieces * once / unseen))
    return max(float(num_seen), found - _SURE * math.sqrt(found))


def _follow(counts: NDArray[np.int64], num_pieces: int, times: float) -> float:
    """Fit the curve to what some of the pieces have, and follow it; ``counts[k]`` IDs occur in k pieces.

    For each shape the speed is that with which the curve rises at the end as the pieces say; shapes count by how well they then
    fit what an eighth, a quarter and a half of the pieces have, whose errors are those of counting.
    """
    num_seen = float(counts.sum())
    slope = num_pieces * (num_seen - _rarefied(counts, num_pieces, num_pieces - 1)) / num_seen
    speeds = _speeds(slope)
    misfits = np.zeros(_SHAPES.size)
    for size in sorted({max(1, num_pieces // part) for part in (2, 4, 8)}):
        found = _rarefied(counts, num_pieces, size)
        expected = num_seen * _curve(_SHAPES, speeds, size / num_pieces)
        misfits += (expected - found) ** 2 / (_SHARED * found + (_ROUGH * found) ** 2)
    weights = np.exp(-0.5 * (misfits - misfits.min()))
    ends = np.log(_curve(_SHAPES, speeds, times))
    return float(num_seen * np.exp((weights * ends).sum() / weights.sum()))


def _speeds(slope: float) -> Floats:
    """Return for each shape the speed with which d log D / d log b is ``slope`` at the end of what was seen."""
    low, high = np.full(_SHAPES.size, -30.0), np.full(_SHAPES.size, 30.0)
    for _ in range(60):
        middle = (low + high) / 2
        speed = np.exp(middle)
        rise = _SHAPES * speed * (1 + speed) ** (_SHAPES - 1) / np.expm1(_SHAPES * np.log1p(speed))
        low, high = np.where(rise > slope, middle, low), np.where(rise > slope, high, middle)
    found: Floats = np.exp((low + high) / 2)
    return found


def _curve(shape: Floats, speed: Floats, size: float) -> Floats:
    """Return D(size) / D(1)."""
    curve: Floats = np.expm1(shape * np.log1p(speed * size)) / np.expm1(shape * np.log1p(speed))
    return curve


def _rarefied(counts: NDArray[np.int64], num_pieces: int, size: int) -> float:
    """Return how many different IDs ``size`` of the pieces have on average."""
    every = math.comb(num_pieces, size)
    missed = [math.comb(num_pieces - k, size) / every for k in range(counts.size)]
    return float((counts * (1 - np.array(missed))).sum())
