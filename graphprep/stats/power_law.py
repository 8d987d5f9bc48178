"""Fit a discrete power law to values, all of an array of distinct ones at a time.

Source: Clauset, Shalizi, Newman, "Power-law distributions in empirical data", SIAM Review 51 (2009): the exponent by maximum
likelihood (section 3.1), and the least value from which on the law holds by the Kolmogorov-Smirnov distance (section 3.3).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from graphprep.model.options.stats import PowerLaw

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_MOST_STARTS = 512  # least values that are tried: all up to so many, then some at even steps of their logarithm
_LEAST_STARTS = 64
_MOST_COMPARED = 1 << 21  # values that are compared with a law, over all that are tried
_LEAST_SLOPE, _MOST_SLOPE = math.log(1e-4), math.log(1e4)  # of alpha - 1, as logarithms
_GOLDEN = (math.sqrt(5) - 1) / 2
_SEARCH_STEPS = 64  # the interval shrinks to 1e-12 of its length
_TERMS = 8  # of the zeta function that are added up; the rest is Euler's and Maclaurin's
# B(2j) / (2j)! of Bernoulli's numbers.
_BERNOULLI = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600)
_DIGITS = 6


def fit_power_law(values: Ints, counts: Ints) -> PowerLaw | None:
    """Fit a law to positive values: ``values`` (int64[k]) ascend, ``counts`` say how often each is there.

    Returns the law of the least distance; of equal ones that of the lowest ``xmin``. None where fewer than two differ.
    """
    positive = values > 0
    values, counts = values[positive], counts[positive]
    if values.size < 2:
        return None
    starts = _starts(values)
    tails = np.cumsum(counts[::-1])[::-1].astype(np.float64)
    logs = np.cumsum((counts * np.log(values))[::-1])[::-1]
    alphas = _most_likely(values[starts].astype(np.float64), logs[starts] / tails[starts])
    distances = [_distance(values[at:], counts[at:], alpha) for at, alpha in zip(starts.tolist(), alphas.tolist(), strict=True)]
    best = int(np.argmin(distances))
    at, alpha = int(starts[best]), float(alphas[best])
    xmin, num_tail = int(values[at]), int(tails[at])
    error = 1 / math.sqrt(num_tail * _variance(alpha, float(xmin)))
    return PowerLaw(round(alpha, _DIGITS), round(error, _DIGITS), xmin, round(distances[best], _DIGITS), num_tail)


def _starts(values: Ints) -> Ints:
    """Return the positions of the least values that are tried: all but the last, or some of them."""
    most = min(_MOST_STARTS, max(_LEAST_STARTS, _MOST_COMPARED // values.size))
    if values.size - 1 <= most:
        return np.arange(values.size - 1)
    wanted = np.geomspace(values[0], values[-2], most)
    return np.unique(np.searchsorted(values[:-1], np.minimum(wanted, values[-2])))


def scaled_zeta(alpha: Floats, least: Floats) -> Floats:
    """Return the sum of (1 + k / q)^-alpha over k = 0, 1, 2 …: Hurwitz's zeta function at q = ``least``, times q^alpha.

    That does not underflow. Source: the Euler-Maclaurin formula behind the first terms.
    """
    total = sum((1 + k / least) ** -alpha for k in range(_TERMS))
    rest = least + _TERMS
    shrunk = (rest / least) ** -alpha
    factor = alpha / rest
    tail = rest / (alpha - 1) + 0.5
    for j, bernoulli in enumerate(_BERNOULLI):
        tail = tail + bernoulli * factor
        factor = factor * (alpha + 2 * j + 1) * (alpha + 2 * j + 2) / rest**2
    return np.asarray(total + shrunk * tail)


def _most_likely(least: Floats, mean_logs: Floats) -> Floats:
    """Return the exponent of most likelihood for each tail, by golden section: the likelihood has one maximum."""

    def likelihood(slopes: Floats) -> Floats:
        alpha = 1 + np.exp(slopes)
        return np.asarray(-np.log(scaled_zeta(alpha, least)) - alpha * (mean_logs - np.log(least)))

    low, high = np.full(least.size, _LEAST_SLOPE), np.full(least.size, _MOST_SLOPE)
    for _ in range(_SEARCH_STEPS):
        width = _GOLDEN * (high - low)
        left, right = high - width, low + width
        rises = likelihood(left) < likelihood(right)
        low, high = np.where(rises, left, low), np.where(rises, high, right)
    return np.asarray(1 + np.exp((low + high) / 2))


def _distance(values: Ints, counts: Ints, alpha: float) -> float:
    """Return the largest difference between the shares of the tail and of the law up to any integer."""
    least, ends = values[0], np.cumsum(counts) / counts.sum()

    def beyond(last: Ints) -> Floats:
        """Return the law's share of what is larger, times a constant."""
        next_ones = (last + 1).astype(np.float64)
        return np.asarray((next_ones / least) ** -alpha * scaled_zeta(np.full(last.size, alpha), next_ones))

    whole = beyond(least[None] - 1)
    law_at, law_before = 1 - beyond(values) / whole, 1 - beyond(values[1:] - 1) / whole
    # Between two values the law rises, and the shares do not.
    return float(max(np.abs(ends - law_at).max(), np.abs(ends[:-1] - law_before).max()))


def _variance(alpha: float, least: float) -> float:
    """Return the second derivative of the logarithm of Hurwitz's zeta function, the variance of ln x: section 3.5's."""
    step = 1e-3 * min(1.0, alpha - 1)
    at = np.array([alpha - step, alpha, alpha + step])
    low, middle, high = np.log(scaled_zeta(at, np.full(3, least))).tolist()
    return max(float((low - 2 * middle + high) / step**2), 1e-12)
