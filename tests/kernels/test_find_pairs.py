"""Edges found by both their ends, against a naive loop."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.find_pairs import count_pairs, find_pairs

rows_of_neighbors = st.lists(st.lists(st.integers(0, 5), max_size=6), min_size=1, max_size=5)


@settings(max_examples=60, deadline=None)
@given(rows_of_neighbors, st.data(), st.sampled_from(["int32", "int64"]))
def test_pairs_are_found_where_a_loop_finds_them(rows, data, dtype):
    indptr = np.cumsum([0, *(len(row) for row in rows)]).astype(np.int64)
    indices = np.array([one for row in rows for one in row], dtype)
    wanted = sorted(data.draw(st.sets(st.tuples(st.integers(0, len(rows) - 1), st.integers(0, 7)))))
    groups = sorted({row for row, _ in wanted})
    starts = [next(i for i, (row, _) in enumerate(wanted) if row == group) for group in groups] + [len(wanted)]
    arguments = (
        indptr,
        indices,
        np.array(groups, np.int64),
        np.array(starts),
        np.array([other for _, other in wanted], np.int64),
    )
    counts = count_pairs(*arguments)
    assert counts.tolist() == [rows[row].count(other) for row, other in wanted]
    expected = [at for row, other in wanted for at in range(indptr[row], indptr[row + 1]) if indices[at] == other]
    assert find_pairs(*arguments, counts).tolist() == expected
