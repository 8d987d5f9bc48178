"""Intervals against NumPy's search."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.intervals import count_intervals, find_intervals


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(max_examples=100, deadline=None)
@given(sizes=st.lists(st.integers(0, 9) | st.sampled_from([100, 1000]), min_size=1, max_size=40))
def test_intervals_agree_with_searchsorted(dtype, sizes):
    borders = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    values = np.arange(borders[-1], dtype=dtype)
    expected = np.searchsorted(borders, values, side="right") - 1
    found = find_intervals(values, borders)
    assert found.dtype == np.int64
    assert found.tolist() == expected.tolist()
    assert count_intervals(values, borders).tolist() == sizes


def test_large_values_are_placed_exactly():
    borders = np.array([0, 2**53 + 1, 2**62, 2**63 - 1], np.int64)
    values = np.array([0, 2**53, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 2], np.int64)
    assert find_intervals(values, borders).tolist() == [0, 0, 1, 1, 2, 2]
