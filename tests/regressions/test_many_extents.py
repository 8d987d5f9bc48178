"""What a run remembers of its spill file: hundreds of edge types make hundreds of thousands of small extents."""

from __future__ import annotations

import tracemalloc

import numpy as np

from graphprep.storage.spill.runs import Runs, SpillPool


def test_an_extent_takes_a_few_numbers(tmp_path):
    with SpillPool(0, str(tmp_path)) as pool:
        runs = Runs(pool, 2)
        runs.append(0, (np.arange(3), None, np.zeros(3, np.int8)))  # what is made once
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        for i in range(2000):
            runs.append(1, (np.array([i]), None, np.zeros(i % 3, np.int8)))
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert after - before < 2000 * 130
        chunks = list(runs.read(1))
    assert [chunk[0].tolist() for chunk in chunks] == [[i] for i in range(2000)]
    assert [(chunk[1], chunk[2].size, chunk[2].dtype) for chunk in chunks] == [(None, i % 3, "int8") for i in range(2000)]


def test_layouts_may_change_from_chunk_to_chunk(tmp_path):
    given = [
        (np.arange(3), None),
        (None, np.zeros((2, 4), np.float32)),
        (np.zeros(0, np.uint8), np.arange(5.0)),
        (np.arange(2), None),
        (None, None),
    ]
    with SpillPool(0, str(tmp_path)) as pool:
        runs = Runs(pool)
        for chunk in given:
            runs.append(0, chunk)
        assert runs.num_chunks(0) == 5
        reader = runs.read(0)
        first = next(reader)
        runs.append(0, (np.arange(9), None))  # a reader sees what was there when it began
        found = [first, *reader]
    for chunk, expected in zip(found, given, strict=True):
        for one, other in zip(chunk, expected, strict=True):
            assert (one is None) == (other is None)
            assert one is None or (one.dtype == other.dtype and np.array_equal(one, other))
