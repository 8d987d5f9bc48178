"""Kernels of orders against naive loops."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.orders.gaps import fill_gaps

ROWS = st.lists(st.lists(st.integers(0, 40), max_size=6), max_size=12)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(max_examples=60, deadline=None)
@given(rows=ROWS, low=st.integers(0, 40))
def test_gaps(dtype, rows, low):
    rows = [sorted(row) for row in rows]
    bounds = np.cumsum([0, *map(len, rows)])
    values, gaps = np.array([one for row in rows for one in row], dtype), np.full(bounds[-1], -1)
    fill_gaps(values, bounds, np.arange(low, low + len(rows)), gaps)
    expected = []
    for own, row in enumerate(rows, low):
        expected += [1 + 2 * (row[0] - own) if row[0] >= own else 2 * (own - row[0])] if row else []
        expected += [1 + high - one for one, high in pairwise(row)]
    assert gaps.tolist() == expected
    assert min(expected, default=1) >= 1
