"""The other layout, made of the finished primary one: edge IDs and edge rows beyond 32 bits stay what they are."""

from __future__ import annotations

import numpy as np
import pytest

from graphprep.edges.buckets import EdgeBuckets, WriteBuffer, plan_buckets
from graphprep.edges.build import BuiltTask, LayoutBuilder, SecondLayout
from graphprep.edges.device.find import find_kernels
from graphprep.edges.tasks import BuildTask, EdgeRuns, cut_tasks
from graphprep.storage.spill.runs import SpillPool

NUM_ROWS = 20


@pytest.mark.parametrize("order", ["input", "id"])
@pytest.mark.parametrize("first", [0, 2**32 - 25, 3 * 2**32])
def test_edge_ids_and_rows_of_any_size(first, order, tmp_path):
    rng = np.random.default_rng(first % 97)
    rows, others = np.sort(rng.integers(0, NUM_ROWS, 50)), rng.integers(0, NUM_ROWS, 50)
    ids = first + rng.permutation(50)
    counts = np.bincount(rows, minlength=NUM_ROWS)
    with SpillPool(1 << 20, str(tmp_path)) as pool:
        primary = EdgeBuckets(find_kernels(), pool, plan_buckets(NUM_ROWS, 0, 1), WriteBuffer(1), NUM_ROWS)
        second = SecondLayout(primary, first + 50, NUM_ROWS, pool, 1 << 10, edge_rows=True)
        second.add(BuiltTask(BuildTask(0, 0, NUM_ROWS), counts, counts, others, ids), first)
        second.finish()
        runs = EdgeRuns(second.buckets, order, None, by_arrival=False)
        builder = LayoutBuilder(runs, "int32", "int64", edge_rows=True)
        built = [builder.build(task, positions=False) for task in cut_tasks(runs, 1000)]
    found = [np.concatenate([getattr(one, name) for one in built]) for name in ("others", "edge_ids", "edge_rows")]
    edges = sorted(zip(others, rows if order == "id" else ids, ids, rows, range(first, first + 50), strict=True))
    assert np.concatenate([one.lengths for one in built]).tolist() == np.bincount(others, minlength=NUM_ROWS).tolist()
    assert [each.tolist() for each in found] == [[edge[at] for edge in edges] for at in (3, 2, 4)]
