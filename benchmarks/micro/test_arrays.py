"""Arrays to arrays, on one thread."""

from __future__ import annotations

import numpy as np
import pytest

from graphprep.edges import arrays as graph_arrays
from graphprep.edges import sorted_arrays
from graphprep.edges.device.find import find_kernels
from graphprep.generate.streams import Stream, permutation_rounds, rmat_limits, stream_key
from graphprep.kernels.cpu.ids.hash import edge_checksum, hash_ints, permute_range

NUM_NODES = 1 << 18


@pytest.mark.parametrize("sort", [False, True], ids=["input-order", "sorted"])
@pytest.mark.parametrize("edge_ids", [False, True], ids=["plain", "edge-ids"])
def test_build_adjacency(timed, ends, sort, edge_ids):
    built = timed(
        lambda: graph_arrays.build_adjacency(
            *ends, num_nodes=NUM_NODES, layout="csr", sort_neighbors=sort, edge_ids=edge_ids, threads=1
        ),
        ends[0].size,
    )
    assert built.indptr[-1] == ends[0].size


def test_transpose(timed, ends):
    built = graph_arrays.build_adjacency(*ends, num_nodes=NUM_NODES, layout="csr", edge_ids=True, threads=1)
    turned = timed(lambda: graph_arrays.transpose(built, threads=1), ends[0].size)
    assert turned.layout == "csc"


def test_degrees(timed, ends):
    found = timed(lambda: graph_arrays.degrees(*ends, num_nodes=NUM_NODES, threads=1), ends[0].size)
    assert [counts.sum() for counts in found] == [ends[0].size] * 2


def test_reorder_by_degree(timed, ends):
    built = graph_arrays.build_adjacency(*ends, num_nodes=NUM_NODES, layout="csr", threads=1)
    found = timed(lambda: graph_arrays.reorder_by_degree(built, threads=1), ends[0].size)
    assert found is not None


def test_sort_keys(timed, ends):
    keys = ends[0] << 18 | ends[1]
    found = timed(lambda: sorted_arrays.sort_keys(keys, threads=1), keys.size)
    assert (found == np.sort(keys)).all()


def test_rank_ids(timed, ends):
    ids = hash_ints(ends[0]).view(np.int64) >> 1
    distinct, ranks = timed(lambda: sorted_arrays.rank_ids(ids, threads=1), ids.size)
    assert (distinct[ranks] == ids).all()


def test_edge_checksum(timed, ends):
    assert timed(lambda: edge_checksum(*ends), ends[0].size) > 0


def test_permute_range(timed):
    found = timed(lambda: permute_range(0, 1 << 18, 1 << 18, 1, 0), 1 << 18)
    assert np.unique(found).size == 1 << 18


def test_rmat_edges(timed, ends):
    kernels, key = find_kernels(), stream_key(0, Stream.QUADRANTS)
    limits, rounds = rmat_limits(0.57, 0.19, 0.19), permutation_rounds(0)
    src, dst = (np.empty_like(end) for end in ends)
    timed(lambda: kernels.rmat_edges(key, 0, 18, limits, rounds, src, dst), src.size)
    assert (src == ends[0]).all()
