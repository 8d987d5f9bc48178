"""Records of edges against plain loops: scattering, taking apart, placing, sorting."""

from __future__ import annotations

import dataclasses
import doctest
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphprep.kernels.edges
from graphprep.edges.buckets import scatter_all
from graphprep.kernels.cpu.edges import kernels
from graphprep.kernels.cpu.edges.kernels import count_rows, gather_edges, has_repeats, place_edges, sort_records, unpack_edges
from graphprep.kernels.cpu.edges.place import plan_digits
from graphprep.kernels.edges import Packing, Rows, Segments, one_segment, pack_bits
from graphprep.model.buffers import hold_buffers

NUM_ROWS = 90
DTYPES = [np.uint32, np.uint64, np.int32, np.int64]
LAYOUTS = [(), ("id",), ("key",), ("id", "key", "edge_row")]


def _edges(seed: int, size: int, dtype, num_rows: int = NUM_ROWS, other_bits: int = 20):
    rng = np.random.default_rng(seed)
    return rng.integers(0, num_rows, size).astype(dtype), rng.integers(0, 2**other_bits, size).astype(dtype)


def _scattered(sizes, travels, shift, seed, *, stated=False, dtype=np.uint32, id_bits=20):
    """Scatter pieces; return (packing, records, borders, edges in the wanted order as lists of what stands in a record)."""
    rng = np.random.default_rng(seed)
    packing = Packing(20, 0 if "id" in travels else id_bits, travels)
    pieces = [_edges(seed + at, size, dtype) for at, size in enumerate(sizes)]
    ids = [rng.integers(0, 2**16, size).astype(np.uint64) for size in sizes] if stated else None
    num_more = len(travels) - ("id" in travels)
    more = [rng.integers(0, 2**64, (size, num_more), np.uint64) for size in sizes] if num_more else None
    records, starts = scatter_all(kernels, pieces, packing, shift, (NUM_ROWS - 1 >> shift) + 1, ids, more)
    owners, others = (np.concatenate(column).tolist() for column in zip(*pieces, strict=True))
    numbers = np.concatenate(ids).tolist() if stated else range(len(owners))
    words = np.concatenate(more).tolist() if num_more else [[]] * len(owners)
    edges = [[*edge, *some] for *edge, some in zip(owners, others, numbers, words, strict=True)]
    return packing, records, starts, sorted(edges, key=lambda edge: edge[0] >> shift)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("travels", LAYOUTS)
@pytest.mark.parametrize("stated", [False, True])
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=4), shift=st.integers(0, 7), seed=st.integers(0, 99))
@settings(max_examples=15, deadline=None)
def test_scattering_is_a_stable_sort_by_bucket(dtype, travels, stated, sizes, shift, seed):
    packing, records, starts, wanted = _scattered(sizes, travels, shift, seed, stated=stated, dtype=dtype)
    owners, others, ids = np.empty((3, len(records)), np.uint64)
    unpack_edges(records, packing, shift, starts, owners, others, ids)
    more = records[:, 1 + ("id" in travels) :]
    assert np.column_stack([owners, others, ids, more]).tolist() == wanted
    for bucket, (start, stop) in enumerate(itertools.pairwise(starts.tolist())):
        assert all(edge[0] >> shift == bucket for edge in wanted[start:stop])


@given(size=st.integers(0, 60), shift=st.integers(0, 7), spare=st.integers(0, 20), seed=st.integers(0, 9))
@settings(max_examples=40, deadline=None)
def test_what_was_scattered_comes_back_in_order(size, shift, spare, seed):
    ends = _edges(seed, size, np.uint32)
    packing = Packing(20, 44 - max(1, shift) - spare)
    records, starts = scatter_all(kernels, [ends], packing, shift, (NUM_ROWS - 1 >> shift) + 1)
    found = np.empty((2, size), np.uint32)
    gather_edges(records, packing, shift, starts, *found)
    assert all((one == other).all() for one, other in zip(found, ends, strict=True))


def _place(segments, first, stop, num_rows, dtypes, **options):
    size, index_dtype, id_dtype = int(segments.sizes(first, stop).sum()), *dtypes
    ids = np.empty(size if id_dtype else 0, id_dtype or "int32")
    rows = Rows(np.full(num_rows + 1, -7), np.empty(size, index_dtype), ids)
    place_edges(segments, first, stop, rows, most=int(segments.sizes(first, stop).max(initial=0)), **options)
    return np.diff(rows.indptr, prepend=0)[1:] if rows.indptr[0] == 0 else np.diff([0, *rows.indptr[1:]]), rows.indices, ids


@pytest.mark.parametrize("most_ids", [5_000, 2**60])
@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("dtypes", [("int32", "int32"), ("int32", "int64"), ("int64", None)])
@given(
    shift=st.integers(0, 7),
    sizes=st.lists(st.integers(0, 60), max_size=4),
    cuts=st.tuples(*[st.integers(0, NUM_ROWS - 1)] * 2),
    other_bits=st.integers(1, 20),
    noted=st.booleans(),
)
@settings(max_examples=30, deadline=None)
def test_buckets_are_placed_from_where_they_lie(most_ids, ascending, dtypes, shift, sizes, cuts, other_bits, noted):
    """Segments may be packed differently, lie in one buffer or several, and have spare words or bits."""
    first, stop = (cut + more for cut, more in zip(sorted(cut >> shift for cut in cuts), (0, 1), strict=True))
    num_rows, low = min(stop << shift, NUM_ROWS) - (first << shift), first << shift
    every, edges = [], []
    for number, size in enumerate(sizes):
        owners, others = _edges(number, size, np.uint32, other_bits=other_bits)
        travels = LAYOUTS[number]
        packing = Packing(other_bits + number, 0 if "id" in travels else 16, travels)
        more = [np.zeros((size, packing.words - 1 - ("id" in travels)), np.uint64)] if packing.words > 1 else None
        records, starts = scatter_all(kernels, [(owners, others)], packing, shift, (NUM_ROWS - 1 >> shift) + 1, None, more)
        every.append((np.concatenate([np.zeros(number, np.uint64), records.reshape(-1)]), number, starts, packing))
        edges += [(int(o) - low, int(t), 1000 * number + i) for i, (o, t) in enumerate(zip(owners, others, strict=True))]
    segments = Segments(
        hold_buffers(words for words, *_ in every),
        np.arange(len(every)),
        np.array([offset for _, offset, *_ in every], np.int64),
        np.array([starts for _, _, starts, _ in every], np.uint32).reshape(len(every), -1 if every else stop + 1),
        1000 * np.arange(len(every)),
        np.concatenate([np.zeros((0, 3), np.int64), *(pack_bits(packing, 1) for *_, packing in every)]),
        shift,
    )
    inside = [edge for edge in edges if 0 <= edge[0] < num_rows]
    order = sorted(range(len(inside)), key=lambda i: inside[i][:2] if ascending else inside[i][:1])
    wanted = [inside[i] for i in order]
    options = {"sort_bits": other_bits + 3} if ascending else {}
    arrival = position = None
    if noted and not ascending:
        arrival, position = np.empty((2, len(inside)), np.int64)
    lengths, others, ids = _place(
        segments, first, stop, num_rows, dtypes, most_ids=most_ids, arrival=arrival, position=position, **options
    )
    assert lengths.tolist() == np.bincount([row for row, *_ in wanted], minlength=num_rows).tolist()
    assert (others.dtype, others.tolist()) == (dtypes[0], [other for _, other, _ in wanted])
    if dtypes[1] is not None:
        assert (ids.dtype, ids.tolist()) == (dtypes[1], [edge for *_, edge in wanted])
    if position is not None:
        by_bucket = sorted(inside, key=lambda edge: (edge[0] >> shift, edge[2]))
        assert arrival.tolist() == [edge for *_, edge in by_bucket]
        assert sorted(position.tolist()) == list(range(len(inside)))
        assert [wanted[at] for at in position.tolist()] == by_bucket


def test_rows_may_need_fewer_bits_than_buckets_have():
    """Where a segment has only low rows, its records may lack the high bits of buckets that others made wide."""
    packing = Packing(2, 60)  # two bits of the row, two of the other end, then the edge ID
    words = np.array([[2 << 62 | 3], [1 << 62 | 1 << 60 | 1]], np.uint64)
    for options in ({}, {"sort_bits": 2}):
        lengths, others, ids = _place(
            dataclasses.replace(one_segment(words, packing, 20), bases=np.array([5])),
            0,
            1,
            4,
            ("int32", "int32"),
            most_ids=2**60,
            **options,
        )
        assert (lengths.tolist(), others.tolist(), ids.tolist()) == ([0, 1, 1, 0], [1, 0], [6, 8])


def test_some_rows_of_a_bucket_are_placed():
    packing, records, _, edges = _scattered([80], (), 7, 3)
    some = [edge for edge in edges if 20 <= edge[0] < 50]
    mine = records[[20 <= edge[0] < 50 for edge in edges]]
    lengths, others, ids = _place(one_segment(mine, packing, 7), 0, 1, 30, ("int32", "int32"), most_ids=80, low=20)
    wanted = sorted(some, key=lambda edge: edge[0])
    assert lengths.tolist() == [sum(edge[0] == row for edge in some) for row in range(20, 50)]
    assert list(zip(others.tolist(), ids.tolist(), strict=True)) == [(edge[1], edge[2]) for edge in wanted]
    counts = np.zeros(30, np.int64)
    count_rows(records, packing, 7, 20, counts)
    assert counts.tolist() == lengths.tolist()


@given(num_bits=st.integers(0, 63), num_records=st.integers(0, 1 << 20))
def test_digits_reach_over_all_bits(num_bits, num_records):
    digits, bits = plan_digits(num_bits, num_records)
    assert digits * bits >= num_bits
    assert 1 <= bits <= 12


@pytest.mark.parametrize("words", [1, 3])
@given(values=st.lists(st.integers(0, 2**64 - 1), max_size=60), low=st.integers(0, 63), bits=st.integers(1, 64))
@settings(max_examples=40, deadline=None)
def test_sorting_records_by_some_bits_is_stable(words, values, low, bits):
    high = min(64, low + bits)
    rows = np.column_stack([np.array(values, np.uint64)] + [np.arange(len(values), dtype=np.uint64)] * (words - 1)).reshape(
        -1, words
    )
    found = sort_records(rows.copy(), 0, low, high)
    assert found.tolist() == sorted(rows.tolist(), key=lambda row: row[0] >> low & (1 << high - low) - 1)


@given(rows=st.lists(st.lists(st.integers(0, 3), max_size=4), max_size=8))
@settings(max_examples=60, deadline=None)
def test_repeats_are_found_within_rows_alone(rows):
    counts = np.array([len(row) for row in rows], np.int64)
    others = np.array([value for row in rows for value in row], np.int32)
    wanted = any(a == b for row in rows for a, b in itertools.pairwise(row))
    assert has_repeats(counts, others) == wanted


def test_the_protocol_opens_with_an_example_that_runs():
    found = doctest.testmod(graphprep.kernels.edges)
    assert found.attempted > 5
    assert not found.failed
