"""Records of edges against plain loops: dealing out, putting in the order of rows, sorting."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.edges import records

DTYPES = [np.uint32, np.uint64]


def _edges(seed: int, size: int, num_rows: int, dtype):
    rng = np.random.default_rng(seed)
    return rng.integers(0, num_rows, size).astype(dtype), rng.integers(0, 2**20, size).astype(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4), shift=st.integers(0, 6), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_dealing_is_a_stable_sort_by_bucket(dtype, sizes, shift, seed):
    pieces = [_edges(seed + at, size, 50, dtype) for at, size in enumerate(sizes)]
    found, offsets = records.deal_records(pieces, (), None, shift, (49 >> shift) + 1)
    edges = [(int(o), int(t)) for owners, others in pieces for o, t in zip(owners, others, strict=True)]
    wanted = sorted(((o, t, i) for i, (o, t) in enumerate(edges)), key=lambda edge: edge[0] >> shift)
    assert found.tolist() == [list(edge) for edge in wanted]
    assert found.dtype == dtype
    for bucket in range(offsets.size - 1):
        assert all(row[0] >> shift == bucket for row in found[offsets[bucket] : offsets[bucket + 1]])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("num_extra", [0, 1, 2])
@pytest.mark.parametrize("stated", [False, True])
def test_what_travels_along_stays_with_its_edge(dtype, num_extra, stated):
    rng = np.random.default_rng(5)
    pieces = [_edges(at, size, 64, dtype) for at, size in enumerate((30, 0, 20))]
    extra = [rng.integers(0, 2**64, 50, np.uint64, endpoint=False) for _ in range(num_extra)]
    ids = rng.permutation(50).astype(np.uint64) if stated else None
    found, _ = records.deal_records(pieces, extra, ids, 3, 8)
    owners, others = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(owners >> 3, kind="stable")
    assert (found[:, records.OWNER] == owners[order]).all()
    assert (found[:, records.OTHER] == others[order]).all()
    assert (found[:, records.EDGE_ID] == (np.arange(50) if ids is None else ids)[order]).all()
    for number, one in enumerate(extra):
        assert (records.carried(found, number) == one[order]).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("id_dtype", ["int32", "int64", None])
@pytest.mark.parametrize("noted", [False, True])
def test_placing_is_a_stable_sort_by_row(dtype, id_dtype, noted):
    low, num_rows = 100, 17
    owners, others = _edges(3, 200, num_rows, dtype)
    found, _ = records.deal_records([(owners + dtype(low), others)], (), None, 20, 1)
    blocks = [records.Block(found, np.array([0, 150, 200]), np.array([7, 1000]))]
    position = np.empty(200, np.int64) if noted else None
    counts, placed, ids = records.place_records(blocks, low, num_rows, "int32", id_dtype, position)
    order = np.argsort(owners, kind="stable")
    assert (counts == np.bincount(owners, minlength=num_rows)).all()
    assert (placed == others[order]).all()
    assert placed.dtype == np.int32
    if id_dtype is None:
        assert ids is None
    else:
        wanted = np.arange(200) + np.where(np.arange(200) < 150, 7, 1000)
        assert (ids == wanted[order]).all()
        assert ids.dtype == id_dtype
    if position is not None:
        assert (position[order] == np.arange(200)).all()


def test_no_records_make_empty_rows():
    counts, others, ids = records.place_records([], 5, 3, "int32", "int32", None)
    assert counts.tolist() == [0, 0, 0]
    assert others.size == ids.size == 0


@pytest.mark.parametrize("dtype", DTYPES)
@given(values=st.lists(st.integers(0, 2**32 - 1), max_size=60))
@settings(max_examples=40, deadline=None)
def test_sorting_records_is_stable(dtype, values):
    rows = np.column_stack([np.arange(len(values)), values, np.arange(len(values))[::-1]]).astype(dtype).reshape(-1, 3)
    found = records.sort_records(rows.copy(), records.OTHER)
    assert found.tolist() == sorted(rows.tolist(), key=lambda row: row[1])


@given(rows=st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=8))
@settings(max_examples=60, deadline=None)
def test_repeats_are_found_within_rows_alone(rows):
    counts = np.array([len(row) for row in rows], np.int64)
    others = np.array([value for row in rows for value in row], np.int32)
    wanted = any(a == b for row in rows for a, b in itertools.pairwise(row))
    assert records.has_repeats(counts, others) == wanted


@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_are_counted(dtype):
    owners, others = _edges(9, 100, 12, dtype)
    found, _ = records.deal_records([(owners, others)], (), None, 5, 1)
    assert (
        records.count_rows(records.Block(found, np.array([0, 100]), np.zeros(1, np.int64)), 0, 12)
        == np.bincount(owners, minlength=12)
    ).all()


@pytest.mark.parametrize("dtype", DTYPES)
@given(shift=st.integers(0, 7), size=st.integers(0, 200), seed=st.integers(0, 99))
@settings(max_examples=40, deadline=None)
def test_packed_records_say_what_plain_ones_do(dtype, shift, size, seed):
    pieces = [_edges(seed, size, 90, dtype), _edges(seed + 1, 7, 90, dtype)]
    packing = records.find_packing(shift, 2**20)
    num_buckets = (89 >> shift) + 1
    packed, offsets = records.deal_packed(pieces, packing, num_buckets)
    plain, plain_offsets = records.deal_records(pieces, (), None, shift, num_buckets)
    assert (offsets == plain_offsets).all()
    for bucket in range(num_buckets):
        start, stop = offsets[bucket : bucket + 2]
        low, num_rows = bucket << shift, 1 << shift
        cut = (stop - start) // 2
        segments = (np.array([0, cut, stop - start]), np.array([3, 2**33]))
        block = records.Block(packed[start:stop], *segments, packing, low)
        wanted = records.Block(plain[start:stop], *segments)
        assert (block.unpacked(dtype).records == wanted.records).all()
        assert (records.count_rows(block, low, num_rows) == records.count_rows(wanted, low, num_rows)).all()
        for position in (None, np.empty(stop - start, np.int64)):
            other_position = None if position is None else np.empty_like(position)
            found = records.place_records([block], low, num_rows, "int64", "int64", position)
            expected = records.place_records([wanted], low, num_rows, "int64", "int64", other_position)
            assert all((one == other).all() for one, other in zip(found, expected, strict=True))
            assert position is None or (position == other_position).all()


def test_what_takes_more_than_a_word_is_not_packed():
    assert records.find_packing(12, 2**22) == records.Packing(12, 22)
    assert records.find_packing(24, 2**24) == records.Packing(24, 24)
    assert records.find_packing(24, 2**24 + 1) is None
    assert records.Packing(12, 22).most_records == 2**30


def test_blocks_lose_the_records_that_are_masked():
    rows = np.arange(18, dtype=np.uint32).reshape(6, 3)
    block = records.Block(rows, np.array([0, 2, 6]), np.array([100, 200]))
    some = block.take(np.array([False, True, True, False, False, True]))
    assert some.records.tolist() == rows[[1, 2, 5]].tolist()
    assert some.edge_ids().tolist() == [105, 208, 217]
