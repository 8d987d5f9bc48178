"""Kernels of ``stats`` against naive loops."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.stats.distinct import MOST_EXACT, NUM_REGISTERS, NUM_SLOTS, note_words
from graphprep.kernels.cpu.stats.pairs import NO_ROW, count_pairs
from graphprep.kernels.cpu.stats.triangles import count_triangles, drop_repeats, has_edges, keep_higher

PAIRS = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), max_size=40)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS, cuts=st.lists(st.integers(0, 40), max_size=3))
def test_pairs_in_pieces(dtype, pairs, cuts):
    """Rows are cut anywhere, also in the middle."""
    turned = sorted((min(u, v), 2 * max(u, v) + (u > v)) for u, v in pairs)
    found = np.array([NO_ROW, NO_ROW, 0, 0, 0])
    borders = [0, *sorted(min(cut, len(turned)) for cut in cuts), len(turned)]
    for low, high in pairwise(borders):
        piece = turned[low:high]
        first = piece[0][0] if piece else 0
        lengths = np.bincount([row - first for row, _ in piece], minlength=3) if piece else np.zeros(2, np.int64)
        count_pairs(first, lengths, np.array([other for _, other in piece], dtype), True, found)
    single = {(u, v) for u, v in pairs if u != v}
    assert found[2:].tolist() == [len(pairs) - len(set(pairs)), len(single), sum((v, u) in single for u, v in single)]


def test_pairs_between_two_types_are_only_looked_at_for_repeats():
    found = np.array([NO_ROW, NO_ROW, 0, 0, 0])
    count_pairs(0, np.array([3, 0, 2]), np.array([1, 1, 2, 2, 3]), False, found)
    assert found[2] == 1


def adjacency(pairs, size=8):
    rows = [sorted([v for u, v in pairs if u == row] + [u for u, v in pairs if v == row and u != v]) for row in range(size)]
    return np.cumsum([0, *map(len, rows)]), np.array([one for row in rows for one in row], np.int32)


@settings(max_examples=60, deadline=None)
@given(pairs=PAIRS, cut=st.integers(0, 8))
def test_triangles(pairs, cut):
    simple = {frozenset(pair) for pair in pairs if pair[0] != pair[1]}
    indptr, indices = adjacency([pair for pair in pairs if pair[0] != pair[1]])
    size = drop_repeats(indptr, indices)
    rows = [sorted(set(indices[low:high].tolist())) for low, high in pairwise(indptr)]
    assert size == indptr[-1] == 2 * len(simple)
    assert rows == [sorted(v for v in range(8) if {u, v} in simple and u != v) for u in range(8)]
    every = np.array([(u, v) for u in range(8) for v in range(8)])
    out = np.zeros(64, np.bool_)
    has_edges(indptr, indices, every[:, 0].copy(), every[:, 1].copy(), out)
    assert out.tolist() == [frozenset((u, v)) in simple and u != v for u, v in every.tolist()]
    assert keep_higher(indptr, indices, np.diff(indptr)) == len(simple)
    counts, marks = np.zeros(8, np.int64), np.zeros(8, np.bool_)
    for low, high in ((0, cut), (cut, 8)):
        count_triangles(indptr, indices, low, high, counts, marks)
    assert not marks.any()
    closed = [three for three in combinations(range(8), 3) if all(frozenset(two) in simple for two in combinations(three, 2))]
    assert counts.tolist() == [sum(node in three for three in closed) for node in range(8)]


@settings(max_examples=30, deadline=None)
@given(words=st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), max_size=60))
def test_distinct_words(words):
    registers, slots, counts = np.zeros(NUM_REGISTERS, np.uint8), np.zeros(NUM_SLOTS, np.uint64), np.zeros(1, np.int64)
    note_words(np.array(words[:20], np.uint64), registers, slots, counts)
    note_words(np.array(words[20:], np.uint64), registers, slots, counts)
    assert counts[0] == len(set(words))


@pytest.mark.parametrize("size", [MOST_EXACT, MOST_EXACT + 1, 4 * MOST_EXACT])
def test_many_distinct_words(size):
    registers, slots, counts = np.zeros(NUM_REGISTERS, np.uint8), np.zeros(NUM_SLOTS, np.uint64), np.zeros(1, np.int64)
    for _ in range(2):
        note_words(np.arange(size), registers, slots, counts)
    assert counts[0] == min(size, MOST_EXACT + 1)
    assert registers.max() <= 51


def test_kernels_of_stats_stay_inside_their_arrays(pytestconfig):
    """The tests of this file with bounds checks, in a process and with a cache of its own."""
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(pytestconfig.cache.mkdir("numba-bounds"))}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "not inside"]
    done = subprocess.run(command, env=env, cwd=pytestconfig.rootpath, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
