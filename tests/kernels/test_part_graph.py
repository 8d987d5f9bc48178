"""Kernels of partitions' graphs, against naive loops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.part_graph import interleave_rows, number_rows, scatter_rows, to_part_ids

_SIZES = st.lists(st.integers(0, 4), min_size=1, max_size=8)


def _offsets(sizes):
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


@settings(deadline=None, max_examples=80)
@given(sizes=_SIZES, seed=st.integers(0, 99), dtype=st.sampled_from([np.int32, np.int64]))
def test_part_ids_agree_with_a_search(sizes, seed, dtype):
    rng = np.random.default_rng(seed)
    borders, shifts = _offsets(sizes), rng.integers(-50, 50, len(sizes))
    typed = rng.permutation(np.repeat(np.arange(borders[-1]), 2)).astype(dtype)
    part_of = [part for part, size in enumerate(sizes) for _ in range(size)]
    found, bad = to_part_ids(typed, borders, shifts)
    assert (found.tolist(), bad) == ([one + int(shifts[part_of[one]]) for one in typed.tolist()], -1)


@pytest.mark.parametrize("wrong", [-1, 5, 2**40])
def test_part_ids_name_the_first_id_out_of_range(wrong):
    typed = np.array([0, 4, wrong, 2, wrong])
    assert to_part_ids(typed, _offsets([2, 0, 3]), np.zeros(3, np.int64))[1] == 2


@settings(deadline=None, max_examples=80)
@given(sizes=_SIZES, data=st.data())
def test_rows_of_items(sizes, data):
    indptr = _offsets(sizes) + 7
    low = data.draw(st.integers(7, int(indptr[-1])))
    high = data.draw(st.integers(low, int(indptr[-1])))
    every = [100 + row for row, size in enumerate(sizes) for _ in range(size)]
    assert number_rows(indptr, 100, low, high).tolist() == every[low - 7 : high - 7]


@settings(deadline=None, max_examples=80)
@given(tables=st.lists(st.lists(st.integers(0, 3), min_size=5, max_size=5), min_size=1, max_size=4))
def test_interleaved_rows_agree_with_lists(tables):
    rows = [[] for _ in range(5)]
    for table, sizes in enumerate(tables):
        for row, size in enumerate(sizes):
            rows[row] += [(table, row, item) for item in range(size)]
    cursors = _offsets(np.sum(tables, axis=0))[:-1].copy()
    joined = [None] * sum(map(sum, tables))
    for table, sizes in enumerate(tables):
        items = [(table, row, item) for row, size in enumerate(sizes) for item in range(size)]
        for at, item in zip(interleave_rows(_offsets(sizes) + 3, cursors).tolist(), items, strict=True):
            joined[at] = item
    assert joined == [item for row in rows for item in row]


@settings(deadline=None, max_examples=60)
@given(rows=st.lists(st.integers(0, 4), max_size=30), cut=st.integers(0, 30))
def test_scattered_edges_agree_with_a_stable_sort(rows, cut):
    rows = np.array(rows, np.int64)
    others = rows * 7 + np.arange(rows.size)
    cursors = _offsets(np.bincount(rows, minlength=5))[:-1].copy()
    out, ids = np.zeros(rows.size, np.int64), np.zeros(rows.size, np.int64)
    for low, high in ((0, min(cut, rows.size)), (min(cut, rows.size), rows.size)):
        scatter_rows(rows[low:high], others[low:high], 10 + low, cursors, out, ids)
    order = np.argsort(rows, kind="stable")
    assert (out.tolist(), ids.tolist()) == (others[order].tolist(), (order + 10).tolist())
