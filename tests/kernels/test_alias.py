"""Alias tables against Vose's method in plain Python with NumPy's float32, and against the weights that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.alias import fill_alias, scale_weights, write_table


def naive(weights: np.ndarray) -> tuple[list[float], list[int]]:
    with np.errstate(all="ignore"):
        scaled = weights * (np.float32(len(weights)) / np.sum(weights))
    small = [i for i, weight in enumerate(scaled) if weight < 1]
    large = [i for i, weight in enumerate(scaled) if not weight < 1]
    aliases = [-1] * len(weights)
    while small and large:
        one, other = small.pop(), large.pop()
        aliases[one] = other
        scaled[other] = (scaled[other] + scaled[one]) - np.float32(1)
        (small if scaled[other] < 1 else large).append(other)
    for left in small + large:
        scaled[left] = 1
    return scaled.view(np.uint32).tolist(), aliases


def table(weights: np.ndarray, dtype=np.int32) -> tuple[np.ndarray, np.ndarray]:
    scaled = weights.copy()
    scale_weights(scaled)
    aliases, stack = np.empty(weights.size, dtype), np.empty(weights.size, dtype)
    fill_alias(scaled, aliases, stack)
    return scaled, aliases


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(0, 300),
    kind=st.sampled_from(["uniform", "eighths", "zero", "wide", "equal", "odd"]),
)
def test_tables_agree_with_the_plain_loop_bit_for_bit(dtype, seed, size, kind):
    rng = np.random.default_rng(seed)
    weights = {
        "uniform": rng.random(size),
        "eighths": rng.integers(0, 9, size) / 8,
        "zero": np.zeros(size),
        "wide": rng.pareto(0.5, size),
        "equal": np.full(size, 0.3),
        "odd": rng.choice([np.nan, np.inf, -1.0, 0.0, 2.0], size),
    }[kind].astype(np.float32)
    scaled, aliases = table(weights, dtype)
    assert (scaled.view(np.uint32).tolist(), aliases.tolist()) == naive(weights)


def test_a_table_stands_for_its_weights():
    weights = np.random.default_rng(0).pareto(1.5, 20_000).astype(np.float32)
    scaled, aliases = table(weights)
    implied = scaled.astype(np.float64)
    some = aliases >= 0
    np.add.at(implied, aliases[some], 1 - scaled[some].astype(np.float64))
    assert np.abs(implied / weights.size - weights / weights.sum(dtype=np.float64)).max() < 1e-5
    assert (scaled[~some] == 1).all()


@pytest.mark.parametrize("width", [1, 2])
def test_records(width):
    ids = np.arange(6 * width, dtype=np.uint64).reshape(6, width) + np.uint64(2**40)
    probabilities, aliases = np.linspace(0, 1, 6, dtype=np.float32), np.array([5, 3, -1, 0, 2, -1], np.int32)
    out = np.empty((3, 4 * width + 1), np.uint32)
    write_table(ids.view(np.uint32), probabilities, aliases, 2, out)
    wanted = b"".join(
        ids[i].tobytes() + (ids[aliases[i]].tobytes() if aliases[i] >= 0 else bytes(8 * width)) + probabilities[i].tobytes()
        for i in range(2, 5)
    )
    assert out.tobytes() == wanted
