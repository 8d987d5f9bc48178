"""Graphs in memory against NumPy's sorts and SciPy, for any number of threads and any integers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.edges import array_rows
from graphprep.edges import arrays as graph_arrays
from graphprep.edges.adjacency import Adjacency
from graphprep.edges.arrays import build_adjacency, degrees, reorder_by_degree, transpose
from graphprep.model.errors import DataError, UsageError

THREADS = (1, 2, 4)


@pytest.fixture(params=["usual", "small"])
def sizes(request, monkeypatch):
    """Buckets, chunks and runs of a few edges, too, so that small graphs have many."""
    if request.param == "small":
        monkeypatch.setattr(array_rows, "_BUCKET_BITS", 2)
        monkeypatch.setattr(array_rows, "CHUNK", 64)
        monkeypatch.setattr(graph_arrays, "_SORT_EDGES", 8)
        monkeypatch.setattr(graph_arrays, "_SLICE", 8)


def naive(src, dst, num_rows, layout, sort_neighbors):
    """Return indptr, indices and edge IDs by a stable sort of NumPy."""
    rows, others = (dst, src) if layout == "csc" else (src, dst)
    order = np.lexsort((others, rows)) if sort_neighbors else np.argsort(rows, kind="stable")
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=num_rows))])
    return indptr, others[order], order


def same(adjacency, indptr, indices, edge_ids):
    assert adjacency.indptr.dtype == np.int64
    assert adjacency.indptr.tolist() == indptr.tolist()
    assert adjacency.indices.tolist() == indices.tolist()
    if edge_ids is None:
        assert adjacency.edge_ids is None
    else:
        assert adjacency.edge_ids.tolist() == edge_ids.tolist()


def edges_of(seed, num_nodes, num_edges, skew):
    """Draw edges; with skew, a third of all ends are one node."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, num_nodes, (2, num_edges))
    if skew:
        hub = rng.integers(0, num_nodes)
        src[rng.random(num_edges) < 0.3] = hub
        dst[rng.random(num_edges) < 0.3] = hub
    return src, dst


graphs = st.builds(
    edges_of, st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 7, 100, 5000]), st.integers(0, 600), st.booleans()
)


@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("sort_neighbors", [False, True])
@settings(deadline=None, max_examples=20)
@given(graph=graphs, extra=st.sampled_from([None, 0, 1, 3000]))
def test_rows_are_those_of_a_stable_sort(layout, sort_neighbors, graph, extra):
    src, dst = graph
    high = int(max(src.max(), dst.max())) + 1 if src.size else 0
    num_nodes = None if extra is None else high + extra
    expected = naive(src, dst, high + (extra or 0), layout, sort_neighbors)
    for edge_ids in (True, False):
        built = build_adjacency(
            src, dst, num_nodes, layout, sort_neighbors=sort_neighbors, edge_ids=edge_ids, threads=1 + src.size % 3
        )
        same(built, *expected[:2], expected[2] if edge_ids else None)
        assert (built.layout, built.num_rows, built.num_neighbors) == (layout, high + (extra or 0), high + (extra or 0))
        assert built.num_edges == src.size


@pytest.mark.parametrize("apart", [False, True])
def test_many_buckets_chunks_and_threads(sizes, apart, monkeypatch):
    if apart:  # edge IDs beside the records, as with very many nodes
        monkeypatch.setattr(array_rows, "_RECORD_BITS", 14)
    src, dst = edges_of(3, 300, 4_000, skew=True)
    packing = array_rows.plan_records(300, 300, src.size, src.size).packing
    assert (packing.travels == ("id",)) == apart
    for layout in ("csc", "csr"):
        for sort_neighbors in (False, True):
            expected = naive(src, dst, 300, layout, sort_neighbors)
            for threads in THREADS:
                built = build_adjacency(src, dst, 300, layout, sort_neighbors=sort_neighbors, threads=threads)
                same(built, *expected)
                assert built.indices.dtype == built.edge_ids.dtype == np.int32
    csr = build_adjacency(src, dst, 300, "csr")
    for threads in THREADS:
        in_rows = naive(src[csr.edge_ids], dst[csr.edge_ids], 300, "csc", True)
        same(transpose(csr, threads=threads), *in_rows[:2], csr.edge_ids[np.argsort(csr.indices, kind="stable")])
        check_reordered(csr, src, dst, threads)


def check_reordered(adjacency, src, dst, threads):
    for by, count in (("out-degree", [src]), ("in-degree", [dst]), ("degree", [src, dst])):
        degree = np.bincount(np.concatenate(count), minlength=adjacency.num_rows)
        order = np.lexsort((np.arange(degree.size), -degree))
        new_ids = np.empty_like(order)
        new_ids[order] = np.arange(order.size)
        for sort_neighbors in (False, True):
            built, found = reorder_by_degree(adjacency, by=by, sort_neighbors=sort_neighbors, threads=threads)
            assert found.dtype == np.int64
            assert found.tolist() == new_ids.tolist()
            rows = [slice(*adjacency.indptr[row : row + 2]) for row in order]
            for new, old in enumerate(rows):
                neighbors, ids = new_ids[adjacency.indices[old]], adjacency.edge_ids[old]
                keep = np.argsort(neighbors, kind="stable") if sort_neighbors else np.arange(ids.size)
                at = slice(*built.indptr[new : new + 2])
                assert built.indices[at].tolist() == neighbors[keep].tolist()
                assert built.edge_ids[at].tolist() == ids[keep].tolist()
            bare, _ = reorder_by_degree(
                dataclasses.replace(adjacency, edge_ids=None), by=by, sort_neighbors=sort_neighbors, threads=threads
            )
            assert bare.edge_ids is None
            assert bare.indices.tobytes() == built.indices.tobytes()


@settings(deadline=None, max_examples=10)
@given(graph=graphs, layout=st.sampled_from(["csc", "csr"]), threads=st.sampled_from(THREADS))
def test_reordered_rows_are_the_old_ones_under_new_ids(graph, layout, threads):
    src, dst = graph
    keep = np.maximum(src, dst) < 150
    check_reordered(build_adjacency(src[keep], dst[keep], 150, layout), src[keep], dst[keep], threads)


@settings(deadline=None, max_examples=30)
@given(graph=graphs, threads=st.sampled_from(THREADS))
def test_transpose_agrees_with_scipy(graph, threads, scipy):
    src, dst = graph
    csr = build_adjacency(src, dst, (5000, 6000), "csr")
    assert (csr.num_rows, csr.num_neighbors) == (5000, 6000)
    theirs = scipy.sparse.csr_array((np.arange(src.size), csr.indices, csr.indptr), (5000, 6000)).tocsc()
    rows = transpose(csr, edge_ids="rows", threads=threads)
    same(rows, theirs.indptr, theirs.indices, theirs.data)
    assert (rows.layout, rows.num_rows, rows.num_neighbors) == ("csc", 6000, 5000)
    same(transpose(csr, threads=threads), theirs.indptr, theirs.indices, csr.edge_ids[theirs.data])
    same(transpose(csr, edge_ids="drop", threads=threads), theirs.indptr, theirs.indices, None)
    twice = transpose(transpose(csr), threads=threads)
    same(twice, *naive(src, dst, 5000, "csr", True))


@settings(deadline=None, max_examples=25)
@given(graph=graphs, threads=st.sampled_from(THREADS))
def test_degrees_agree_with_bincount(graph, threads):
    src, dst = graph
    out, into = degrees(src, dst, 5000, threads=threads)
    assert out.dtype == into.dtype == np.int64
    assert out.tolist() == np.bincount(src, minlength=5000).tolist()
    assert into.tolist() == np.bincount(dst, minlength=5000).tolist()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", ">i8", ">i4"])
def test_integers_of_any_kind(dtype):
    src, dst = edges_of(1, 100, 500, skew=False)
    built = build_adjacency(src.astype(dtype), dst.astype(dtype), 100)
    same(built, *naive(src, dst, 100, "csc", False))
    mixed = build_adjacency(src.astype(dtype), dst, 100)
    assert mixed.indices.tobytes() == built.indices.tobytes()


def test_arrays_as_they_come():
    src, dst = edges_of(2, 100, 500, skew=False)
    expected = naive(src, dst, 100, "csc", False)
    table = np.stack([src, dst], axis=1)
    same(build_adjacency(table[:, 0], table[:, 1], 100), *expected)  # strided
    frozen = src.copy()
    frozen.flags.writeable = False
    same(build_adjacency(frozen, dst, 100), *expected)
    shifted = np.frombuffer(b"x" + src.tobytes(), np.uint8)[1:].view(np.int64)  # not aligned
    same(build_adjacency(shifted, dst[::-1][::-1], 100), *expected)
    same(build_adjacency(src.tolist(), tuple(dst.tolist()), 100), *expected)
    assert (frozen == src).all()


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_no_edges_and_no_nodes(layout):
    for num_nodes in (None, 0, 3):
        built = build_adjacency([], [], num_nodes, layout, sort_neighbors=True)
        assert built.indptr.tolist() == [0] * ((num_nodes or 0) + 1)
        assert built.indices.size == built.edge_ids.size == 0
        assert transpose(built).indptr.tolist() == built.indptr.tolist()
        reordered, new_ids = reorder_by_degree(built)
        assert reordered.indptr.tolist() == built.indptr.tolist()
        assert new_ids.tolist() == list(range(num_nodes or 0))
    assert [each.tolist() for each in degrees([], [], 2)] == [[0, 0], [0, 0]]


@pytest.mark.parametrize("sort_neighbors", [False, True])
@pytest.mark.parametrize("edge_ids", [False, True])
def test_neighbors_beyond_int32(sort_neighbors, edge_ids):
    rng = np.random.default_rng(5)
    src, dst = rng.integers(2**39, 2**40, 3000), rng.integers(0, 1000, 3000)
    built = build_adjacency(src, dst, (2**40, 1000), sort_neighbors=sort_neighbors, edge_ids=edge_ids)
    assert built.indices.dtype == np.int64
    indptr, indices, order = naive(src, dst, 1000, "csc", sort_neighbors)
    same(built, indptr, indices, order if edge_ids else None)


def test_the_type_of_indices_changes_at_2_to_the_31():
    for count, dtype in ((2**31, np.int32), (2**31 + 1, np.int64)):
        built = build_adjacency([count - 1], [0], (count, 1))
        assert built.indices.dtype == dtype
        assert built.indices.tolist() == [count - 1]


def test_edge_ids_beyond_int32_are_kept():
    ids = np.array([2**40, 5, 2**40 + 1])
    csr = Adjacency("csr", np.array([0, 2, 3]), np.array([1, 0, 1], np.int32), ids, 2)
    same(transpose(csr), np.array([0, 1, 3]), np.array([0, 0, 1]), np.array([5, 2**40, 2**40 + 1]))
    for sort_neighbors in (False, True):
        built, _ = reorder_by_degree(csr, sort_neighbors=sort_neighbors)
        assert sorted(built.edge_ids.tolist()) == sorted(ids.tolist())


def test_a_hub_and_rows_without_edges():
    num_nodes = 300_000
    rng = np.random.default_rng(8)
    src = np.where(rng.random(200_000) < 0.9, 77, rng.integers(0, num_nodes, 200_000))
    dst = rng.integers(0, num_nodes, 200_000)
    for sort_neighbors in (False, True):
        indptr, indices, order = naive(src, dst, num_nodes, "csr", sort_neighbors)
        built = build_adjacency(src, dst, num_nodes, "csr", sort_neighbors=sort_neighbors)
        assert (built.indptr == indptr).all()
        assert (built.indices == indices).all()
        assert (built.edge_ids == order).all()


@pytest.mark.parametrize(
    ("src", "dst", "num_nodes", "message"),
    [
        ([0, 5], [1, 1], 5, "src[1]: expected an ID in 0..4, found 5"),
        ([0, 1], [1, -3], None, "dst[1]: expected an ID in 0..1, found -3"),
        ([0], [3], (9, 2), "dst[0]: expected an ID in 0..1, found 3"),
        ([1], [0], 0, "src[0]: there are no nodes, found 1"),
        (np.array([2**63 + 1], np.uint64), [0], None, "past int64"),
    ],
)
def test_ids_out_of_range(src, dst, num_nodes, message):
    for call in (build_adjacency, degrees):
        with pytest.raises(DataError) as caught:
            call(src, dst, num_nodes)
        assert message in str(caught.value)
        assert "fix: " in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"src": [0, 1], "dst": [0]}, "src has 2 IDs, dst has 1"),
        ({"src": [0.5], "dst": [0]}, "src must be integers in one dimension, found float64 of shape (1,)"),
        ({"src": [0], "dst": [[0]]}, "dst must be integers in one dimension, found int64 of shape (1, 1)"),
        ({"src": [0], "dst": [0], "layout": "coo"}, "layout 'coo' has no rows: it is src and dst themselves"),
        ({"src": [0], "dst": [0], "threads": 0}, "threads must be at least 1, found 0"),
        ({"src": [0], "dst": [0], "num_nodes": -1}, "num_nodes must be 0 to 2^62, found -1"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(UsageError) as caught:
        build_adjacency(**arguments)
    assert caught.value.message == message


def test_ids_too_wide_to_pack():
    with pytest.raises(DataError, match="too wide"):
        build_adjacency([0], [2**61], (2**20, 2**62), "csr")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"indptr": np.array([0, 2, 1, 3])}, "indptr must ascend from 0 to 3"),
        ({"indptr": np.array([0, 1, 2])}, "indptr must ascend from 0 to 3"),
        ({"indptr": np.zeros(0, np.int64)}, "indptr must ascend from 0 to 3"),
        ({"indices": np.array([0, 1, 3])}, "indices must be in 0..2, found 3"),
        ({"indices": np.array([0, -1, 2])}, "indices must be in 0..2, found -1"),
        ({"edge_ids": np.array([0])}, "there are 3 edges and 1 edge IDs"),
        ({"edge_ids": np.array([0, -1, 2])}, "edge_ids must be at least 0, found -1"),
    ],
)
def test_an_adjacency_that_is_none(fields, message):
    sound = build_adjacency([0, 1, 2], [1, 2, 0])
    with pytest.raises(DataError) as caught:
        transpose(dataclasses.replace(sound, **fields))
    assert caught.value.message == message


def test_only_one_type_of_nodes_is_reordered():
    with pytest.raises(UsageError, match="two node types"):
        reorder_by_degree(build_adjacency([0], [1], (1, 2)))
    with pytest.raises(UsageError, match="by must be one of"):
        reorder_by_degree(build_adjacency([0], [1]), by="size")
