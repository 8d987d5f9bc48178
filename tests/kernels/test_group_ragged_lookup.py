"""The kernels of the stages against naive loops."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.ids import group, hash, lookup
from graphprep.store.columns.cells import take_ragged

FEW = settings(max_examples=60, deadline=None)
U64 = st.integers(0, 2**64 - 1)


@FEW
@given(keys=st.lists(st.integers(0, 6)))
def test_group_by_key_agrees_with_the_naive_loop(keys):
    indptr, rows = group.group_by_key(np.array(keys, np.int64), 7)
    for key in range(7):
        assert rows[indptr[key] : indptr[key + 1]].tolist() == [row for row, one in enumerate(keys) if one == key]


@FEW
@given(ids=st.lists(st.integers(0, 99)))
def test_mark_bits(ids):
    bits = np.zeros(13, np.uint8)
    group.mark_bits(bits, np.array(ids, np.uint64))
    assert np.flatnonzero(np.unpackbits(bits, bitorder="little")).tolist() == sorted(set(ids))


@FEW
@given(
    rows=st.lists(st.lists(st.integers(-9, 9), max_size=4), min_size=1, max_size=9),
    data=st.data(),
    dtype=st.sampled_from("fbdqH"),
)
def test_take_ragged_gathers_rows(rows, data, dtype):
    rows = [[abs(value) for value in row] for row in rows] if dtype == "H" else rows
    picked = data.draw(st.lists(st.integers(0, len(rows) - 1)))
    counts = np.array([len(row) for row in rows], np.int64)
    flat = np.array([value for row in rows for value in row], dtype)
    expected = [value for row in picked for value in rows[row]]
    assert take_ragged(counts, flat, np.array(picked, np.int64)).tolist() == expected


def test_take_ragged_with_several_numbers_a_value():
    coords = np.array([0, 1, 10, 11, 20, 21])
    got = take_ragged(np.array([1, 2]), coords, np.array([1, 0, 1]), scale=2)
    assert got.tolist() == [10, 11, 20, 21, 0, 1, 10, 11, 20, 21]


@FEW
@given(ids=st.sets(U64, min_size=1), others=st.lists(U64), near=st.booleans())
def test_find_sorted_agrees_with_a_dict(ids, others, near):
    ids = sorted({one % 1000 for one in ids} if near else ids)
    wanted = [*ids, *others, *(one + 1 for one in ids if one < 2**64 - 1), 0, 2**64 - 1]
    position = {one: at for at, one in enumerate(ids)}
    array = np.array(ids, np.uint64)
    found = lookup.find_sorted(array, lookup.bucket_index(array), np.array(wanted, np.uint64))
    assert found.tolist() == [position.get(one, -1) for one in wanted]


MASK = 2**64 - 1


def splitmix64(x):
    z = (x + 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def test_hash_vectors():
    assert hash.hash_ints(np.array([0, 1])).tolist() == [0xE220A8397B1DCDAF, 0x910A2DEC89025CC1]


@FEW
@given(ids=st.lists(st.tuples(U64, U64)))
def test_hash_and_checksum_agree_with_python(ids):
    src, dst = (np.array([pair[i] for pair in ids], np.uint64) for i in (0, 1))
    assert hash.hash_ints(src).tolist() == [splitmix64(int(one)) for one in src]
    total = sum(splitmix64(splitmix64(a) ^ splitmix64(splitmix64(b))) for a, b in ids) & MASK
    assert hash.edge_checksum(src, dst) == total
    assert hash.edge_checksum(src[::-1].copy(), dst[::-1].copy()) == total


def test_permutation_vector():
    assert hash.permute_range(0, 10, 10, 0, 0).tolist() == [5, 3, 8, 4, 6, 2, 9, 7, 1, 0]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 16, 17, 1000])
def test_permutation_is_one_and_can_be_asked_in_pieces(size):
    whole = hash.permute_range(0, size, size, seed=2**70 + 3, type_number=5)
    assert sorted(whole.tolist()) == list(range(size))
    pieces = [hash.permute_range(at, 1, size, seed=2**70 + 3, type_number=5)[0] for at in range(size)]
    assert whole.tolist() == pieces


def test_kernels_stay_inside_their_arrays(tmp_path):
    """Once more with Numba's bounds checks, in a process of its own."""
    code = """
import numpy as np
from graphprep.kernels.cpu.ids import group, hash, lookup
from graphprep.store.columns.cells import take_ragged
rng = np.random.default_rng(1)
for size in (0, 1, 7, 1000):
    keys = rng.integers(0, 5, size)
    group.group_by_key(keys, 5)
    group.mark_bits(np.zeros(1, np.uint8), keys.astype(np.uint64))
    counts = rng.integers(0, 4, size)
    if size:
        take_ragged(counts, np.arange(counts.sum()), rng.integers(0, size, 50))
        ids = np.unique(rng.integers(0, 2**63, size).astype(np.uint64))
        wanted = np.concatenate([ids, ids + np.uint64(1), np.array([0, 2**64 - 1], np.uint64)])
        lookup.find_sorted(ids, lookup.bucket_index(ids), wanted)
        hash.permute_range(0, size, size, 1, 2)
    hash.edge_checksum(keys.astype(np.uint64), keys.astype(np.uint64))
print("fine")
"""
    # Cached kernels have no checks in them: a cache of its own makes sure that these are compiled with them.
    env = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "fine\n", done.stderr


@FEW
@given(
    first=U64.filter(lambda one: one < 2**64 - 20),
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 9)), min_size=1, max_size=9),
    wanted=st.lists(st.integers(-3, 20)),
    flip=st.sampled_from([0, 2**63]),
)
def test_take_dense_agrees_with_a_dict(first, rows, wanted, flip):
    ids = [first + row for row in range(len(rows))]
    types, typed = np.array([one for one, _ in rows], np.int32), np.array([one for _, one in rows], np.int64)
    asked = [max(0, first + one) for one in wanted]
    some = np.array([one ^ flip for one in asked], np.uint64)
    found = lookup.take_dense(np.array(ids, np.uint64), some, flip, types, typed)
    beside = dict(zip(ids, rows, strict=True))
    assert found[1].tolist() == [beside[one][1] if one in beside else -1 for one in asked]
    assert [int(one) for one, own in zip(found[0], asked, strict=True) if own in beside] == [
        beside[one][0] for one in asked if one in beside
    ]
