"""Negatives against naive loops: the candidates of a row in a list, and the numbers that fall on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.sample.negatives import Rows, Wanted, draw_others, draw_walks
from graphprep.kernels.cpu.sample.philox import random_words

NUM_ROWS, NUM_OTHERS = 5, 7
PAIRS = st.lists(st.tuples(st.integers(0, NUM_ROWS - 1), st.integers(0, NUM_OTHERS - 1)), max_size=30)


def rows_of(pairs, num_rows, dtype=np.int32):
    """Return the adjacency of edges with IDs 0 …, sorted as the kernels want it."""
    order = sorted(range(len(pairs)), key=lambda edge: (*pairs[edge], edge))
    counts = np.bincount([row for row, _ in pairs], minlength=num_rows)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return Rows(indptr, np.array([pairs[edge][1] for edge in order], dtype), np.array(order, dtype))


def wanted_of(pairs, counts, key):
    parts = np.array([edge % 4 - 1 for edge in range(len(pairs))], np.int8)
    sizes = [0 if part < 0 else counts[part] for part in parts]
    return Wanted(parts, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64), np.array(counts, np.int64), key)


def number(key, edge, counter, size):
    return int(random_words(key, np.array([edge], np.uint64), counter)[0]) * size >> 64


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@settings(max_examples=80, deadline=None)
@given(
    pairs=PAIRS,
    key=st.integers(0, 2**64 - 1),
    weights=st.none() | st.lists(st.integers(0, 3), min_size=NUM_OTHERS, max_size=NUM_OTHERS),
    is_one_type=st.booleans(),
)
def test_draws_are_those_of_a_list_of_candidates(dtype, pairs, key, weights, is_one_type):
    rows, wanted = rows_of(pairs, NUM_ROWS, dtype), wanted_of(pairs, (1, 2, 3), key)
    out = np.full(int(wanted.starts[-1]), -7, dtype)
    before = None if weights is None else np.concatenate([[0], np.cumsum(weights)]).astype(np.int64)
    given = {"num_others": NUM_OTHERS, "is_one_type": is_one_type, "before": before, "out": out}
    missing = draw_others(rows, 0, 2, wanted, **given) + draw_others(rows, 2, NUM_ROWS, wanted, **given)
    expected = []
    for edge, (row, _) in enumerate(pairs):
        own = {other for one, other in pairs if one == row} | ({row} if is_one_type else set())
        candidates = [other for other in range(NUM_OTHERS) if other not in own for _ in range((weights or [1] * 7)[other])]
        draws = range(int(wanted.starts[edge + 1] - wanted.starts[edge]))
        size = len(candidates)
        expected += [candidates[number(key, edge, draw, size)] if size else -1 for draw in draws]
    assert out.tolist() == expected
    assert missing == expected.count(-1)


@settings(max_examples=80, deadline=None)
@given(pairs=PAIRS, key=st.integers(0, 2**64 - 1), hops=st.integers(2, 5), is_one_type=st.booleans())
def test_walks_are_those_of_a_naive_loop(pairs, key, hops, is_one_type):
    if is_one_type:
        pairs = [(row, other % NUM_ROWS) for row, other in pairs]
    hops = hops if is_one_type else max(3, hops)
    rows, back = rows_of(pairs, 7), rows_of([(other, row) for row, other in pairs], 7)
    wanted = wanted_of(pairs, (1, 2, 3), key)
    out = np.full(int(wanted.starts[-1]), -7, np.int32)
    missing = draw_walks(rows, back, 0, 7, wanted, hops=hops, is_one_type=is_one_type, out=out)
    ahead, behind = ([one.others[one.indptr[i] : one.indptr[i + 1]].tolist() for i in range(7)] for one in (rows, back))
    lengths = range(2, hops + 1) if is_one_type else range(3, hops + 1, 2)
    expected = []
    for edge, (row, _) in enumerate(pairs):
        own = {*ahead[row], *([row] if is_one_type else [])}
        for draw in range(int(wanted.starts[edge + 1] - wanted.starts[edge])):
            for attempt in range(64):
                node, counter = row, draw | attempt << 40
                for step in range(lengths[number(key, edge, counter, len(lengths))]):
                    steps = ahead[node] + behind[node] if is_one_type else (behind if step % 2 else ahead)[node]
                    node = steps[number(key, edge, counter + (step + 1 << 32), len(steps))]
                if node not in own:
                    break
            expected.append(-1 if node in own else node)
    assert out.tolist() == expected
    assert missing == expected.count(-1)
