"""The set of seen IDs against Python's."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids.unique import SeenIds

IDS = st.integers(0, 20) | st.integers(0, 2**64 - 1) | st.sampled_from([2**64 - 1, 2**64 - 2, 2**63])


@settings(max_examples=60, deadline=None)
@given(batches=st.lists(st.lists(IDS, max_size=30), max_size=8))
def test_new_ids_come_once_and_in_order(batches):
    seen, known = SeenIds(), set()
    for batch in batches:
        expected = [raw for raw in dict.fromkeys(batch) if raw not in known]
        known.update(batch)
        found = seen.add(np.array(batch, np.uint64))
        assert found.dtype == np.uint64
        assert found.tolist() == expected


def test_the_table_grows():
    seen = SeenIds()
    ids = np.random.default_rng(1).integers(0, 2**63, 20_000).astype(np.uint64)
    for start in range(0, ids.size, 700):
        seen.add(ids[start : start + 700])
    assert seen.add(ids).size == 0
    assert seen.num_bytes >= 2 * np.unique(ids).size * 8
    assert np.array_equal(SeenIds().add(ids), ids[np.sort(np.unique(ids, return_index=True)[1])])
