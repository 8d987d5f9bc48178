"""Kernels over arrays in memory, against naive loops: planning, degrees, sorting and ranking."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.edges.array_rows import CHUNK, plan_records
from graphprep.kernels.cpu.edges.degree import count_ids, find_limits
from graphprep.kernels.cpu.edges.sort_keys import first_of_runs, gather_bucket, scatter_keys, sort_buckets
from graphprep.kernels.cpu.ids.rank_ids import ScatteredIds, collect_ranks, number_bucket, rank_bucket, scatter_ids
from graphprep.kernels.edges import ScatteredKeys, as_input, bits_below
from graphprep.model.errors import DataError

TESTS = Path(__file__).resolve().parent.parent
COUNTS = st.one_of(st.integers(0, 100), st.sampled_from([2**e + d for e in range(1, 62) for d in (-1, 0, 1)]))


@settings(max_examples=200, deadline=None)
@given(num_rows=COUNTS, num_others=COUNTS, num_edges=COUNTS, num_ids=COUNTS, count_up=st.booleans())
def test_a_plan_of_records_holds_all_it_must(num_rows, num_others, num_edges, num_ids, count_up):
    try:
        plan = plan_records(num_rows, num_others, num_edges, num_ids, count_up=count_up)
    except DataError:
        assert max(1, bits_below(num_rows) - 10) + bits_below(num_others) > 64
        return
    packing = plan.packing
    assert 1 <= plan.num_buckets <= 1 << 10
    assert plan.num_buckets << plan.shift >= num_rows
    assert 1 << packing.other_bits >= num_others
    assert packing.row_bits >= max(1, plan.shift)
    assert (packing.id_bits > 0) + (packing.travels == ("id",)) == (num_ids > 0)
    assert not packing.id_bits or 1 << packing.id_bits >= (min(num_ids, CHUNK) if count_up else num_ids)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_limits_and_counts(dtype):
    for values in ([], [5], [3, -7, 3, 9], [np.iinfo(dtype).min, np.iinfo(dtype).max]):
        ids = as_input(np.array(values, dtype))
        assert find_limits(ids) == (min(values, default=0), max(values, default=-1))
    counts = np.zeros(4, np.uint32)
    count_ids(as_input(np.array([3, 0, 3], dtype)), counts)
    count_ids(as_input(np.array([3], dtype)), counts)
    assert counts.tolist() == [1, 0, 0, 3]


def scatter_all(keys, low, shift, num_buckets, with_payload):
    """Scatter keys in chunks of 50."""
    chunks = range(-(-keys.size // 50))
    scattered = ScatteredKeys(
        low,
        np.empty(keys.size, np.uint64),
        np.empty(keys.size if with_payload else 0, np.int32),
        np.arange(len(chunks)) * 50,
        np.empty((len(chunks), num_buckets + 2), np.int32),
    )
    for chunk in chunks:
        at = slice(chunk * 50, chunk * 50 + 50)
        out = scattered.keys[at], scattered.payload[at], scattered.starts[chunk]
        scatter_keys(as_input(keys[at]), chunk * 50, low, shift, *out)
    return scattered


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
    scattered = scatter_all(keys, low, shift, (span >> shift) + 1, ordered)
    offsets = scattered.starts[:, :-1].astype(np.int64).sum(axis=0)
    buckets = rng.permutation((span >> shift) + 1).tolist()
    found, payload = np.empty(size, np.uint64), np.empty(size if ordered else 0, np.int32)
    sort_buckets(scattered, buckets[1:], offsets, found, payload)
    sort_buckets(scattered, buckets[:1], offsets, found, payload)
    assert found.tolist() == sorted(keys.tolist())
    if ordered:
        assert payload.tolist() == np.argsort(keys, kind="stable").tolist()
    which = (keys - np.uint64(low)) >> np.uint64(shift) == buckets[0]
    some = np.empty(which.sum(), np.uint64), np.empty(which.sum() if ordered else 0, np.int32)
    gather_bucket(scattered, buckets[0], *some)
    assert some[0].tolist() == (keys[which] - np.uint64(low)).tolist()
    assert some[1].tolist() == (np.flatnonzero(which).tolist() if ordered else [])


@given(keys=st.lists(st.integers(0, 4), max_size=20), before=st.none() | st.integers(0, 4))
def test_first_of_runs(keys, before):
    keys = sorted(keys)
    firsts = np.empty(len(keys), np.int64)
    count = first_of_runs(as_input(np.array(keys, np.uint64)), before, firsts)
    expected = [at for at, key in enumerate(keys) if key != (keys[at - 1] if at else before)]
    assert firsts[:count].tolist() == expected


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), size=st.integers(0, 300), hash_bits=st.integers(0, 4))
def test_ids_are_numbered_by_bucket_and_come_back_in_order(seed, size, hash_bits):
    rng = np.random.default_rng(seed)
    ids = rng.choice(rng.integers(0, 2**64, max(1, size // 3), np.uint64), size)
    scattered = ScatteredIds(
        np.empty(size, np.uint64), hash_bits, np.zeros(1, np.int64), np.empty((1, (1 << hash_bits) + 2), np.int32)
    )
    scatter_ids(as_input(ids), hash_bits, scattered.ids, scattered.starts[0])
    sizes = np.diff(scattered.starts[0, :-1])
    value_of = {}
    for bucket, count in enumerate(sizes.tolist()):
        distinct = number_bucket(scattered, bucket, count)
        assert np.unique(distinct).size == distinct.size
        names = np.arange(distinct.size, dtype=np.int32) + 1000 * bucket
        value_of |= dict(zip(names.tolist(), distinct.tolist(), strict=True))
        rank_bucket(scattered, bucket, names)
    ranks = np.empty(size, np.int32)
    collect_ranks(as_input(ids), hash_bits, scattered.ids, scattered.starts[0], ranks)
    assert [value_of[rank] for rank in ranks.tolist()] == ids.tolist()
    assert len(value_of) == np.unique(ids).size


@pytest.mark.heavy
def test_kernels_stay_inside_their_arrays(pytestconfig):
    """In a process and with a cache of its own: kernels compiled without the checks have none."""
    cache = pytestconfig.cache.mkdir("numba-bounds-arrays")
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(cache)}
    tests = [str(TESTS / "edges" / f"test_{name}_arrays.py") for name in ("graph", "sorted")]
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
