"""Sorting, ranking and deduplicating arrays against NumPy, for any number of threads and any integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.edges import sorted_arrays
from graphprep.edges.sorted_arrays import dedup_edges, rank_ids, sort_edges, sort_keys
from graphprep.kernels.cpu.ids import rank_ids as rank_kernels
from graphprep.model.errors import UsageError

THREADS = (1, 2, 4)
INTEGERS = ("int8", "uint8", "int32", "uint32", "int64", "uint64", ">i8")


@pytest.fixture(params=["usual", "small"])
def sizes(request, monkeypatch):
    """Buckets and chunks of a few keys, too, so that small arrays have many, and some are scattered again."""
    if request.param == "small":
        monkeypatch.setattr(sorted_arrays, "_BUCKET_BITS", 3)
        monkeypatch.setattr(sorted_arrays, "CHUNK", 32)
        monkeypatch.setattr(sorted_arrays, "_LARGE_BUCKET", 16)


def drawn(dtype, seed, size, spread):
    """Draw integers: few, over a narrow or the whole range, in clusters, or both ends of the range."""
    rng = np.random.default_rng(seed)
    bounds = np.iinfo(dtype)
    native = np.dtype(dtype).newbyteorder("=")
    if spread == "few":
        return rng.choice(rng.integers(bounds.min, bounds.max, 5, native, endpoint=True), size).astype(dtype)
    if spread == "narrow":
        low = min(bounds.max - 100, 1000)
        return rng.integers(low, low + 100, size, native).astype(dtype)
    if spread == "clusters":
        shift = rng.integers(0, bounds.bits - 1, size)
        return (rng.integers(0, bounds.max, size, native) >> shift.astype(native)).astype(dtype)
    ends = rng.integers(bounds.min, bounds.max, size, native, endpoint=True)
    ends[: size // 3] = bounds.min
    ends[size // 3 : size // 2] = bounds.max
    return rng.permutation(ends).astype(dtype)


arrays = st.builds(
    drawn,
    st.sampled_from(INTEGERS),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1, 2, 33, 1000]),
    st.sampled_from(["few", "narrow", "clusters", "ends"]),
)


@settings(deadline=None, max_examples=60)
@given(keys=arrays, threads=st.sampled_from(THREADS))
def test_keys_are_sorted_as_numpy_sorts_them(keys, threads):
    before = keys.copy()
    found = sort_keys(keys, threads=threads)
    assert found.dtype == keys.dtype
    assert found.tolist() == sorted(before.tolist())
    assert (keys == before).all()


@settings(deadline=None, max_examples=60)
@given(ids=arrays, threads=st.sampled_from(THREADS))
def test_ranks_are_those_of_unique(ids, threads):
    distinct, ranks = rank_ids(ids, threads=threads)
    expected, inverse = np.unique(ids, return_inverse=True)
    assert distinct.dtype == ids.dtype
    assert ranks.dtype == np.int32
    assert distinct.tolist() == expected.tolist()
    assert ranks.tolist() == inverse.tolist()


@pytest.mark.parametrize("spread", ["few", "narrow", "clusters", "ends"])
def test_many_buckets_chunks_and_threads(sizes, spread):
    for dtype in ("int64", "uint64"):
        keys = drawn(dtype, 4, 3000, spread)
        expected, inverse = np.unique(keys, return_inverse=True)
        for threads in THREADS:
            assert sort_keys(keys, threads=threads).tolist() == sorted(keys.tolist())
            distinct, ranks = rank_ids(keys, threads=threads)
            assert distinct.tolist() == expected.tolist()
            assert ranks.tolist() == inverse.tolist()
    check_edges(*drawn("int64", 5, 6000, spread).reshape(2, 3000))


def check_edges(src, dst):
    order = np.lexsort((dst, src))
    is_first = np.ones(src.size, bool)
    is_first[1:] = (np.diff(src[order]) != 0) | (np.diff(dst[order]) != 0)
    for threads in THREADS:
        for found, expected in ((sort_edges, order), (dedup_edges, order[is_first])):
            new_src, new_dst, at = found(src, dst, threads=threads)
            assert new_src.dtype == new_dst.dtype == src.dtype
            assert at.dtype == np.int32
            assert at.tolist() == expected.tolist()
            assert new_src.tolist() == src[expected].tolist()
            assert new_dst.tolist() == dst[expected].tolist()


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.sampled_from([0, 1, 40, 2000]),
    src_bits=st.integers(1, 63),
    dst_bits=st.integers(1, 63),
    low=st.sampled_from([0, 0, -7]),
)
def test_edges_are_sorted_and_deduplicated_as_by_lexsort(seed, size, src_bits, dst_bits, low):
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(low, 2**src_bits, size), rng.integers(low, 2**dst_bits, size)
    if size > 1:
        src[size // 2 :], dst[size // 2 :] = src[: size - size // 2], dst[: size - size // 2]
    check_edges(src, dst)


def test_int32_edges_stay_int32():
    check_edges(*np.random.default_rng(1).integers(0, 50, (2, 500), np.int32))


def test_tables_of_ids_grow_as_they_fill(monkeypatch):
    ids = np.random.default_rng(2).integers(0, 2**63, 60_000)
    ids[::3] = ids[0]
    distinct, ranks = rank_ids(ids)
    assert distinct.size > 4 * rank_kernels._FIRST_SLOTS
    assert (distinct == np.unique(ids)).all()
    assert (distinct[ranks] == ids).all()


def test_ids_that_a_hash_could_mistake():
    for ids in (np.arange(50_000) << 32, np.arange(50_000) << 40, np.arange(50_000) * 0x9E3779B9, np.zeros(50_000, int)):
        distinct, ranks = rank_ids(ids)
        assert (distinct == np.unique(ids)).all()
        assert (distinct[ranks] == ids).all()


@pytest.mark.parametrize("call", [sort_keys, rank_ids])
@pytest.mark.parametrize("values", [[0.5], [[1]], ["a"]])
def test_only_integers_in_one_dimension(call, values):
    with pytest.raises(UsageError, match="must be integers in one dimension"):
        call(values)


def test_readonly_strided_and_empty_arrays():
    keys = np.arange(20)[::-2]
    keys.flags.writeable = False
    assert sort_keys(keys).tolist() == sorted(keys.tolist())
    assert sort_keys([]).size == 0
    assert [each.size for each in rank_ids([])] == [0, 0]
    assert [each.size for each in dedup_edges([], [])] == [0, 0, 0]
    assert [each.tolist() for each in dedup_edges([1, 0, 1], (2, 9, 2))] == [[0, 1], [9, 2], [1, 0]]
