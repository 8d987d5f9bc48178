"""Distinct IDs from pieces of an input, against those of all of it."""

import numpy as np
import pytest

from graphprep.model.options.plan import Estimate
from graphprep.plan.distinct import estimate_distinct

EDGES = 1_000_000


def estimate(edges, num_pieces=64, rows=1600):
    """Estimate from pieces at the same distances."""
    starts = ((np.arange(num_pieces) + 0.5) * len(edges) / num_pieces).astype(int)
    pieces = [np.unique(edges[start : start + rows]).astype(np.uint64) for start in starts]
    return estimate_distinct(pieces, len(edges) / (num_pieces * rows), edges.size)


def even(most):
    return np.random.default_rng(0).integers(0, most, (EDGES, 2))


def power_law(exponent):
    return np.minimum(np.random.default_rng(0).zipf(exponent, (EDGES, 2)), 10**9)


def skewed():
    rng = np.random.default_rng(0)
    weights = rng.lognormal(0, 1.5, 300_000)
    return rng.choice(300_000, (EDGES, 2), p=weights / weights.sum())


@pytest.mark.parametrize(
    ("edges", "within"),
    [
        pytest.param(even(20_000), 0.01, id="few"),
        pytest.param(even(300_000), 0.15, id="even"),
        pytest.param(even(300_000)[np.argsort(even(300_000)[:, 0])], 0.3, id="even, by source"),
        pytest.param(power_law(1.3), 0.1, id="power law of 1.3"),
        pytest.param(power_law(1.8), 0.15, id="power law of 1.8"),
        pytest.param(skewed(), 0.3, id="lognormal"),
    ],
)
def test_near_and_within_its_bounds(edges, within):
    true, found = np.unique(edges).size, estimate(edges)
    assert found.value == pytest.approx(true, rel=within)
    assert found.low * 0.95 <= true <= found.high  # the lower bound is one of edges in any order


def test_all_that_was_seen_is_known():
    pieces = [np.array([1, 2, 3], np.uint64), np.array([3, 4], np.uint64)]
    assert estimate_distinct(pieces, 1.0, 99) == Estimate.exactly(4)
    assert estimate_distinct([], 5.0, 99) == Estimate.exactly(0)


def test_where_nothing_new_comes_nothing_is_added():
    pieces = [np.arange(10, dtype=np.uint64)] * 8
    assert estimate_distinct(pieces, 100.0, 10**6) == Estimate.exactly(10)


def test_where_all_is_new_growth_goes_on_until_there_can_be_no_more():
    pieces = [np.arange(10 * k, 10 * k + 10, dtype=np.uint64) for k in range(8)]
    found = estimate_distinct(pieces, 10.0, 10**6)
    assert found.value == pytest.approx(800, rel=0.05)
    assert estimate_distinct(pieces, 10.0, 300).value == 300
