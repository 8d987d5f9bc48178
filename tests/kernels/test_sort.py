"""The radix sort against NumPy's stable sort."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.sort import stable_order

DTYPES = (np.int32, np.int64, np.uint32, np.uint64)


@pytest.mark.parametrize("dtype", DTYPES)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 5000), bits=st.integers(1, 64), shift=st.integers(0, 40))
def test_order_agrees_with_argsort(dtype, seed, size, bits, shift):
    rng = np.random.default_rng(seed)
    limits = np.iinfo(dtype)
    wide = rng.integers(0, 2**64, size, np.uint64) >> np.uint64(64 - bits) << np.uint64(shift)
    keys = wide.astype(dtype) if seed % 2 else np.clip(wide, 0, limits.max).astype(dtype)
    order = stable_order(keys)
    assert order.dtype == np.int64
    assert (order == np.argsort(keys, kind="stable")).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_whole_range_of_a_dtype(dtype):
    limits = np.iinfo(dtype)
    keys = np.tile(np.array([limits.max, limits.min, 0, 1, limits.max - 1], dtype), 1000)
    assert (stable_order(keys) == np.argsort(keys, kind="stable")).all()


def test_equal_keys_keep_their_order():
    assert (stable_order(np.full(4000, 7)) == np.arange(4000)).all()
