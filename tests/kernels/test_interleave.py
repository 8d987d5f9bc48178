"""Lists of rows, merged, against Python's lists."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.interleave import interleave, rows_ascend

lists = st.lists(st.lists(st.integers(0, 2**64 - 1), max_size=3), min_size=4, max_size=4)


@settings(deadline=None)
@given(sources=st.lists(lists, min_size=1, max_size=3))
def test_items_go_row_by_row(sources):
    counts = np.array([[len(row) for row in source] for source in sources], np.int64)
    numbers = np.arange(7, 7 + len(sources), dtype=np.int32)
    values = np.array([value for source in sources for row in source for value in row], np.uint64)
    rows, out, types, places = interleave(counts, numbers, values)
    wanted = [(row, value, 7 + s) for row in range(4) for s, source in enumerate(sources) for value in source[row]]
    assert list(zip(rows.tolist(), out.tolist(), types.tolist(), strict=True)) == wanted
    assert sorted(places.tolist()) == list(range(values.size))
    assert out[places].tolist() == values.tolist()


@settings(deadline=None)
@given(rows=lists, first=st.integers(0, 9))
def test_rows_that_ascend(rows, first):
    values = np.array([value for row in rows for value in row], np.uint64)
    bounds = first + np.cumsum([0, *map(len, rows)])
    assert rows_ascend(values, bounds) == all(row == sorted(row) for row in rows)
    assert rows_ascend(np.sort(values), bounds)
