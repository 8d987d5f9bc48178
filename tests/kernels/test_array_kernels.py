"""Kernels over arrays in memory, against naive loops: packing, dealing, building, degrees, sorting and ranking."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.edges import partition
from graphprep.kernels.cpu.edges.coo import plan_digits
from graphprep.kernels.cpu.edges.degree import count_ids, order_by_degree
from graphprep.kernels.cpu.edges.pair_sort import BucketSort, DealtKeys, deal_keys, first_of_runs
from graphprep.kernels.cpu.edges.partition import as_input, bits_below, deal_pairs, find_limits, plan_packing
from graphprep.kernels.cpu.edges.transpose import deal_columns
from graphprep.kernels.cpu.ids.rank_ids import DealtIds, collect_ranks, deal_ids, number_bucket, rank_bucket

TESTS = Path(__file__).resolve().parent.parent
COUNTS = st.one_of(st.integers(0, 100), st.sampled_from([2**e + d for e in range(1, 62) for d in (-1, 0, 1)]))


@settings(max_examples=200, deadline=None)
@given(num_rows=COUNTS, num_others=COUNTS, num_edges=COUNTS, edge_ids=st.booleans())
def test_a_packing_holds_all_it_must(num_rows, num_others, num_edges, edge_ids):
    packing = plan_packing(num_rows, num_others, num_edges, edge_ids=edge_ids)
    if packing is None:
        assert max(1, bits_below(num_rows) - 10) + bits_below(num_others) > 64
        return
    assert 1 <= packing.num_buckets <= 1 << 10
    assert packing.num_buckets << packing.row_bits >= num_rows
    assert 1 << packing.other_bits >= num_others
    assert packing.apart <= edge_ids
    assert packing.other_bits + packing.id_bits < 64
    assert packing.row_bits + packing.other_bits + packing.id_bits <= 64
    if edge_ids:
        assert packing.apart or 1 << packing.id_bits >= num_edges
        assert np.iinfo(packing.id_dtype).max >= num_edges - 1


@given(num_bits=st.integers(0, 63), num_records=st.integers(0, 1 << 20))
def test_digits_reach_over_all_bits(num_bits, num_records):
    digits, bits = plan_digits(num_bits, num_records)
    assert digits * bits >= num_bits
    assert 1 <= bits <= 12


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("edge_ids", [False, True])
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), num_rows=st.sampled_from([1, 3, 40, 5000]), size=st.integers(0, 300), wide=st.booleans())
def test_buckets_keep_the_order_of_edges(apart, edge_ids, seed, num_rows, size, wide):
    rng = np.random.default_rng(seed)
    dtype = np.int64 if wide else np.int32
    rows, others = (rng.integers(0, high, size).astype(dtype) for high in (num_rows, 70))
    first = 1000
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partition, "_BUCKET_BITS", 2)
        patch.setattr(partition, "_RECORD_BITS", 20 if apart else 64)
        packing = plan_packing(num_rows, 70, size, edge_ids=edge_ids, num_ids=first + size)
    if packing.apart != (apart and edge_ids):
        return
    records, starts = np.empty(size, np.uint64), np.full(packing.num_buckets + 2, -1, np.int32)
    ids = np.empty(size if packing.apart else 0, packing.id_dtype)
    deal_pairs(as_input(rows), as_input(others), first, packing, records, ids, starts)
    order = np.argsort(rows >> packing.row_bits, kind="stable")
    counts = np.bincount(rows >> packing.row_bits, minlength=packing.num_buckets)
    assert starts[:-1].tolist() == [0, *np.cumsum(counts).tolist()]
    row_mask, other_mask = (1 << packing.row_bits) - 1, (1 << packing.other_bits) - 1
    parts = [int(record) for record in records]
    assert [part >> packing.id_bits & other_mask for part in parts] == others[order].tolist()
    in_bucket = rows[order] & row_mask
    assert [part >> packing.id_bits >> packing.other_bits & row_mask for part in parts] == in_bucket.tolist()
    if edge_ids:
        found = ids.tolist() if packing.apart else [part & ((1 << packing.id_bits) - 1) for part in parts]
        assert found == (order + first).tolist()


def test_any_piece_of_rows_can_be_dealt():
    rng = np.random.default_rng(1)
    counts = rng.integers(0, 4, 50)
    indptr = np.concatenate([[0], np.cumsum(counts)])
    columns = rng.integers(0, 30, indptr[-1]).astype(np.int32)
    rows = np.repeat(np.arange(50), counts)
    packing = plan_packing(30, 50, columns.size, edge_ids=True)
    for first, stop in ((0, columns.size), (0, 1), (7, 30), (columns.size - 1, columns.size), (5, 5)):
        records, starts = np.empty(stop - first, np.uint64), np.empty(packing.num_buckets + 2, np.int32)
        none = columns[:0]
        deal_columns(as_input(indptr), as_input(columns), none, first, stop, packing, records, none, starts)
        found = [(part >> packing.id_bits + packing.other_bits, part >> packing.id_bits & 63) for part in map(int, records)]
        assert found == list(zip(columns[first:stop].tolist(), rows[first:stop].tolist(), strict=True))
        assert [int(part) & ((1 << packing.id_bits) - 1) for part in records] == list(range(first, stop))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_limits_and_counts(dtype):
    for values in ([], [5], [3, -7, 3, 9], [np.iinfo(dtype).min, np.iinfo(dtype).max]):
        ids = as_input(np.array(values, dtype))
        assert find_limits(ids) == (min(values, default=0), max(values, default=-1))
    counts = np.zeros(4, np.uint32)
    count_ids(as_input(np.array([3, 0, 3], dtype)), counts)
    count_ids(as_input(np.array([3], dtype)), counts)
    assert counts.tolist() == [1, 0, 0, 3]


@settings(deadline=None)
@given(degrees=st.lists(st.one_of(st.integers(0, 5), st.integers(0, 10**7)), max_size=60))
def test_nodes_by_descending_degree_ties_by_id(degrees):
    expected = sorted(range(len(degrees)), key=lambda node: (-degrees[node], node))
    assert order_by_degree(np.array(degrees, np.int64)).tolist() == expected


def deal_all(keys, low, shift, num_buckets, with_payload):
    """Deal keys in chunks of 50."""
    chunks = range(-(-keys.size // 50))
    dealt = DealtKeys(
        low,
        np.empty(keys.size, np.uint64),
        np.empty(keys.size if with_payload else 0, np.int32),
        np.arange(len(chunks)) * 50,
        np.empty((len(chunks), num_buckets + 2), np.int32),
    )
    for chunk in chunks:
        at = slice(chunk * 50, chunk * 50 + 50)
        payload = dealt.payload[at] if with_payload else dealt.payload
        deal_keys(as_input(keys[at]), chunk * 50, low, shift, dealt.keys[at], payload, dealt.starts[chunk])
    return dealt


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 400),
    bits=st.integers(1, 64),
    gap=st.integers(0, 40),
    ordered=st.booleans(),
)
def test_buckets_are_sorted_with_what_travels_along(seed, size, bits, gap, ordered):
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, size, np.uint64) >> np.uint64(64 - bits) >> np.uint64(gap) << np.uint64(gap)
    low, span = int(keys.min()), int(keys.max() - keys.min())
    shift = max(0, span.bit_length() - 3)
    dealt = deal_all(keys, low, shift, (span >> shift) + 1, ordered)
    found, payload = [], []
    for bucket in range((span >> shift) + 1):
        count = int((dealt.starts[:, bucket + 1] - dealt.starts[:, bucket]).sum())
        out = np.empty(count, np.uint64), np.empty(count if ordered else 0, np.int32)
        BucketSort(dealt, count).sort(bucket, *out)
        found += out[0].tolist()
        payload += out[1].tolist()
    assert found == sorted(keys.tolist())
    if ordered:
        assert payload == np.argsort(keys, kind="stable").tolist()


@given(keys=st.lists(st.integers(0, 4), max_size=20), before=st.integers(0, 4), is_first=st.booleans())
def test_first_of_runs(keys, before, is_first):
    keys = sorted(keys)
    firsts = np.empty(len(keys), np.int64)
    count = first_of_runs(as_input(np.array(keys, np.uint64)), before, is_first, firsts)
    expected = [at for at, key in enumerate(keys) if (key != keys[at - 1] if at else is_first or key != before)]
    assert firsts[:count].tolist() == expected


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 300), hash_bits=st.integers(0, 4))
def test_ids_are_numbered_by_bucket_and_come_back_in_order(seed, size, hash_bits):
    rng = np.random.default_rng(seed)
    ids = rng.choice(rng.integers(0, 2**64, max(1, size // 3), np.uint64), size)
    dealt = DealtIds(np.empty(size, np.uint64), hash_bits, np.zeros(1, np.int64), np.empty((1, (1 << hash_bits) + 2), np.int32))
    deal_ids(as_input(ids), hash_bits, dealt.ids, dealt.starts[0])
    sizes = np.diff(dealt.starts[0, :-1])
    value_of = {}
    for bucket, count in enumerate(sizes.tolist()):
        distinct = number_bucket(dealt, bucket, count)
        assert np.unique(distinct).size == distinct.size
        names = np.arange(distinct.size, dtype=np.int32) + 1000 * bucket
        value_of |= dict(zip(names.tolist(), distinct.tolist(), strict=True))
        rank_bucket(dealt, bucket, names)
    ranks = np.empty(size, np.int32)
    collect_ranks(as_input(ids), hash_bits, dealt.ids, dealt.starts[0], ranks)
    assert [value_of[rank] for rank in ranks.tolist()] == ids.tolist()
    assert len(value_of) == np.unique(ids).size


@pytest.mark.slow
def test_kernels_stay_inside_their_arrays(pytestconfig):
    """In a process and with a cache of its own: kernels compiled without the checks have none."""
    cache = pytestconfig.cache.mkdir("numba-bounds-arrays")
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(cache)}
    tests = [str(TESTS / "stages" / f"test_{name}_arrays.py") for name in ("graph", "sorted")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "-p",
        "no:cacheprovider",
        "-k",
        "many_buckets or hub or grow",
        *tests,
    ]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
