"""Kernels that move rows, against naive loops."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.edges import kernels as move

few = settings(max_examples=40, deadline=None)
DTYPES = ("int8", "bool", "int16", "float16", "int32", "float32", "int64", "float64", "complex128")


@few
@given(st.lists(st.integers(-3, 9)), st.sampled_from(["int32", "int64"]))
def test_count_ids_counts_up_to_the_first_that_is_none(ids, dtype):
    counts = np.zeros(6, np.int64)
    bad = next((i for i, one in enumerate(ids) if not 0 <= one < 6), -1)
    assert move.count_ids(np.array(ids, dtype), counts) == bad
    good = ids if bad < 0 else ids[:bad]
    assert counts.tolist() == [good.count(node) for node in range(6)]


@few
@given(st.lists(st.integers(-2, 8)), st.permutations(range(7)), st.sampled_from([("int32", "int32"), ("int64", "int32")]))
def test_relabel_ids_gives_new_ids_up_to_the_first_that_is_none(ids, new_ids, dtypes):
    out = np.full(len(ids), -9, dtypes[0])
    bad = next((i for i, one in enumerate(ids) if not 0 <= one < 7), -1)
    assert move.relabel_ids(np.array(ids, dtypes[0]), np.array(new_ids, dtypes[1]), out) == bad
    stop = len(ids) if bad < 0 else bad
    assert out.tolist() == [new_ids[one] for one in ids[:stop]] + [-9] * (len(ids) - stop)


@few
@given(st.lists(st.one_of(st.integers(0, 5), st.integers(0, 2**40))))
def test_order_descending_keeps_ties_in_order(values):
    order, spare = np.empty((2, len(values)), np.int64)
    got = move.order_descending(np.array(values, np.int64), order, spare)
    assert got.tolist() == sorted(range(len(values)), key=lambda i: (-values[i], i))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("item_shape", [(), (3,), (2, 2), (0,)])
def test_copy_blocks_copies_items_of_any_kind(dtype, item_shape):
    rng = np.random.default_rng(1)
    values = rng.integers(0, 2, (20, *item_shape)).astype(dtype)
    values.flags.writeable = False
    starts = rng.integers(0, 20, 9)
    stops = np.minimum(starts + rng.integers(0, 5, 9), 20)
    wanted = np.concatenate([values[start:stop] for start, stop in zip(starts, stops, strict=True)])
    out = np.empty_like(wanted)
    move.copy_blocks(values, starts, stops, out)
    np.testing.assert_array_equal(out, wanted)


@few
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1), st.data())
def test_scatter_blocks_sorts_items_by_bucket(rows, data):
    """Items of a slice, which may cut rows, in the order of their rows' buckets."""
    bounds = np.concatenate([[0], np.cumsum([size for size, _ in rows])])
    first, stop = sorted(data.draw(st.tuples(st.integers(0, bounds[-1]), st.integers(0, bounds[-1]))))
    owners = np.repeat(np.arange(len(rows)), [size for size, _ in rows])
    low = int(np.searchsorted(bounds, first, side="right")) - 1
    high = max(low, int(np.searchsorted(bounds, stop)))
    buckets = np.array([bucket for _, bucket in rows], np.int32)
    values = np.arange(first, stop, dtype=np.float32)
    counts = np.zeros(4, np.int64)
    own = (bounds[low : high + 1], buckets[low:high])
    if first < stop:
        move.count_blocks(first, stop, *own, counts)
    wanted = sorted(range(first, stop), key=lambda item: buckets[owners[item]])
    assert counts.tolist() == [sum(buckets[owners[item]] == bucket for item in range(first, stop)) for bucket in range(4)]
    out = np.empty_like(values)
    move.scatter_blocks(values, first, *own, np.cumsum(counts) - counts, out)
    assert out.tolist() == wanted


@few
@given(
    st.lists(st.lists(st.integers(0, 8), max_size=90), max_size=5),
    st.sampled_from(["int32", "int64"]),
    st.sampled_from(["int32", "int64"]),
)
def test_sort_rows_sorts_each_row_and_is_stable(rows, dtype, inner_dtype):
    values = np.array([one for row in rows for one in row], dtype)
    bounds = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    inner = np.empty(values.size, inner_dtype)
    move.sort_rows(values, bounds, inner, np.empty(90, dtype), np.empty(90, inner_dtype))
    assert values.tolist() == [one for row in rows for one in sorted(row)]
    assert inner.tolist() == [i for row in rows for i in sorted(range(len(row)), key=row.__getitem__)]


@pytest.mark.parametrize("dtype", ["int32", "int64"])
@pytest.mark.parametrize("highest", [0, 1, 200, 300, 70_000, 2**31 - 1])
def test_sort_rows_sorts_long_rows(dtype, highest):
    rng = np.random.default_rng(highest)
    counts = [255, 256, 0, 5_000, 1, (1 << 14) - 1, 1 << 14, 20_000]
    values = rng.integers(0, highest + 1, sum(counts)).astype(dtype)
    if dtype == "int64":
        values += (values > 100) * 2**40
    rows = np.split(values.copy(), np.cumsum(counts)[:-1])
    inner = np.empty(values.size, np.int32)
    bounds = np.concatenate([[0], np.cumsum(counts)])
    move.sort_rows(values, bounds, inner, np.empty(20_000, dtype), np.empty(20_000, np.int32))
    wanted = [np.argsort(row, kind="stable") for row in rows]
    np.testing.assert_array_equal(inner, np.concatenate(wanted))
    np.testing.assert_array_equal(values, np.concatenate([row[order] for row, order in zip(rows, wanted, strict=True)]))


def test_kernels_that_move_rows_stay_inside_their_arrays(pytestconfig):
    """Once more with Numba's bounds checks, in a process and with a cache of its own."""
    cache = pytestconfig.cache.mkdir("numba-bounds")
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_OPT": "0", "NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", "not stay"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
