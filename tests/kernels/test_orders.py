"""Kernels of orders against naive loops."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.orders.communities import choose_labels
from graphprep.kernels.cpu.orders.gaps import fill_gaps
from graphprep.kernels.cpu.orders.walk import breadth_first, place_neighbors

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


@settings(max_examples=60, deadline=None)
@given(rows=st.lists(st.lists(st.integers(0, 6), max_size=5), min_size=1, max_size=8), data=st.data())
def test_neighbors_either_way(rows, data):
    """The labels of rows and of other ends; entries in pieces, labels in windows."""
    num_rows, bounds = len(rows), np.cumsum([0, *map(len, rows)])
    labels = np.array(data.draw(st.permutations(range(num_rows + 7))))
    owners, others = labels[:num_rows], labels[num_rows:]
    expected = [[] for _ in labels]
    for row, ends in enumerate(rows):
        for end in ends:
            expected[owners[row]].append(others[end])
            expected[others[end]].append(owners[row])
    indptr = np.cumsum([0, *map(len, expected)])
    entries, out = np.array([end for row in rows for end in row], np.int32), np.full(indptr[-1], -1, np.int32)
    cut, piece = data.draw(st.integers(0, labels.size)), data.draw(st.integers(1, 4))
    cursors = indptr[:-1].copy()
    for low, high in ((0, cut), (cut, labels.size)):
        for first in range(0, entries.size, piece):
            some = entries[first : first + piece]
            assert place_neighbors(bounds, some, first, owners, others, cursors, low, high, out) == -1
    assert [out[low:high].tolist() for low, high in pairwise(indptr)] == expected


@pytest.mark.parametrize("bad", [-1, 3])
def test_a_neighbor_that_is_none(bad):
    out, labels = np.full(4, -1), np.arange(3)
    entries = np.array([1, bad])
    cursors = np.array([0, 1, 2])
    assert place_neighbors(np.array([0, 1, 2, 2]), entries, 0, labels, labels, cursors, 0, 3, out) == 1
    assert out.tolist() == [1, 0, -1, -1]


def test_breadth_first():
    """Two components; a loop and an edge that is there twice."""
    neighbors = [[2, 3, 3], [4], [0, 2, 2], [0, 0], [1]]
    indptr = np.cumsum([0, *map(len, neighbors)])
    places, queue = np.full(5, -1), np.zeros(5, np.int64)
    breadth_first(indptr, np.array([one for row in neighbors for one in row], np.int32), places, queue)
    assert (queue.tolist(), places.tolist()) == ([0, 2, 3, 1, 4], [0, 3, 1, 2, 4])


def test_labels_spread_where_they_are_worth_most():
    """A triangle with a tail: 0-1, 0-2, 1-2, 2-3. With no price on large communities all join; with a high one, pairs do."""
    neighbors = [[1, 2], [0, 2], [0, 1, 3], [2]]
    indptr, flat = np.cumsum([0, *map(len, neighbors)]), np.array([one for row in neighbors for one in row], np.int32)
    for shift, expected in ((8, [1, 1, 1, 1]), (0, [1, 1, 1, 3])):
        labels, sizes, counts = np.arange(4, dtype=np.int32), np.ones(4, np.int64), np.zeros(4, np.int32)
        while choose_labels(indptr, flat, np.array([0]), 64, shift, labels, sizes, counts):
            pass
        assert labels.tolist() == expected
        assert sizes.tolist() == np.bincount(expected, minlength=4).tolist()
        assert not counts.any()


def test_kernels_of_orders_stay_inside_their_arrays(pytestconfig):
    """The tests of this file with bounds checks, in a process and with a cache of its own."""
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(pytestconfig.cache.mkdir("numba-bounds"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "not inside"]
    done = subprocess.run(command, env=env, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
