"""Index, assign and resolve: in memory and starved of it, against dictionaries."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert.index import ranks as index_stage
from graphprep.convert.index import resolve
from graphprep.convert.index.ranks import CREATED, SpaceIndexer
from graphprep.convert.index.resolve import Finders, NodeMap
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.assign import PartitionFunction, RawBatch, TypedCounter, cut_sizes, order_types, part_of_position

FEW = settings(max_examples=60, deadline=None)
IDS = st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1))


def read_sorted(indexer):
    chunks = list(indexer.sorted())
    ids = [int(one) for chunk in chunks for one in chunk.ids]
    types = [int(one) for chunk in chunks for one in chunk.types]
    return ids, types


@FEW
@given(
    declared=st.lists(st.lists(st.tuples(IDS, st.integers(0, 3)), max_size=9), max_size=6),
    ends=st.lists(st.lists(IDS, max_size=9), max_size=5),
    cap=st.sampled_from([1, 100, 10**9]),
    chunk=st.sampled_from([1, 2, 1 << 16]),
    most_runs=st.sampled_from([2, 3, 64]),
)
def test_sorted_ids_are_unique_and_duplicates_are_told(declared, ends, cap, chunk, most_runs):
    first: dict[int, int] = {}
    duplicates = []
    row = 0
    with pytest.MonkeyPatch.context() as patch, SpillPool(cap) as pool:
        patch.setattr(index_stage, "_CHUNK_ROWS", chunk)
        patch.setattr(index_stage, "_LEAST_CHUNK_ROWS", 1)
        patch.setattr(index_stage, "_MOST_RUNS", most_runs)
        indexer = SpaceIndexer(pool, cap)
        for batch in declared:
            ids, types = np.array([one for one, _ in batch], np.uint64), np.array([kind for _, kind in batch], np.int32)
            indexer.add_declared(ids, types, row)
            for one, kind in batch:
                if one in first:
                    duplicates.append(row)
                first.setdefault(one, kind)
                row += 1
        for batch in ends:
            indexer.add_ends(np.array(batch, np.uint64))
            for one in batch:
                first.setdefault(one, int(CREATED))
        ids, types = read_sorted(indexer)
        assert ids == sorted(first)
        assert types == [first[one] for one in ids]
        assert indexer.duplicates.tolist() == duplicates


@FEW
@given(
    known=st.dictionaries(IDS, st.tuples(st.integers(0, 3), st.integers(0, 9)), min_size=1, max_size=40),
    batches=st.lists(st.lists(IDS, max_size=20), max_size=6),
    chunk=st.sampled_from([1, 3, 100]),
    cap=st.sampled_from([1, 100, 500, 10**9]),
)
def test_resolve_agrees_with_a_dict(known, batches, chunk, cap):
    ids = sorted(known)
    with pytest.MonkeyPatch.context() as patch, SpillPool(64) as pool:
        patch.setattr(resolve, "_LEAST_ROWS", 2)
        table = Runs(pool, 1, coalesce=False)
        for at in range(0, len(ids), chunk):
            some = ids[at : at + chunk]
            types = np.array([known[one][0] for one in some], np.int32)
            typed = np.array([known[one][1] for one in some], np.int64)
            table.append(0, (np.array(some, np.uint64), types, typed))
        wanted = [np.array(batch, np.uint64) for batch in batches]
        got = list(NodeMap(len(ids), 0, lambda: table.read(0)).resolve(wanted, pool, cap))
    assert [one.typed.tolist() for one in got] == [[known.get(one, (0, -1))[1] for one in batch] for batch in batches]
    for batch, one in zip(batches, got, strict=True):
        assert [t for t, ok in zip(one.types.tolist(), one.typed >= 0, strict=True) if ok] == [
            known[raw][0] for raw in batch if raw in known
        ]


def sparse_map(ids):
    """A map of IDs far apart, to typed IDs in their order."""
    rows = (np.array(ids, np.uint64), np.zeros(len(ids), np.int32), np.arange(len(ids)))
    return NodeMap(len(ids), 0, lambda: iter([rows]))


def test_maps_are_in_memory_up_to_two_shares_and_the_others_are_joined():
    """A map of 100 IDs takes 2,800 bytes: three fit twice 5,000, two fit twice 4,000, and one of 200 IDs fits neither share."""
    spaces = {
        name: sparse_map(range(5, count * 10**9, 10**9)) for name, count in {"a": 100, "b": 100, "c": 100, "d": 200}.items()
    }
    maps = Finders({**spaces, "e": NodeMap(7)}, 5000)
    wanted = np.array([5, 3 * 10**9 + 5, 6], np.uint64)
    assert [maps.find(name) is not None for name in "abcdef"] == [True, True, True, False, True, True]
    assert maps.find("a")(wanted).typed.tolist() == [0, 3, -1]
    assert Finders.held_bytes(spaces, 5000) == 15_000
    maps = Finders(spaces, 4000)
    assert [maps.find(name) is not None for name in "abcd"] == [True, True, False, False]
    with SpillPool(1 << 20) as pool:
        joined = list(maps.join("c", [wanted, wanted[:1]], pool))
    assert [one.typed.tolist() for one in joined] == [[0, 3, -1], [0]]


def test_a_table_is_made_of_what_the_maps_leave():
    """A map of 100 IDs takes 2,800 bytes, and a table of them 4,096."""
    spaces = {name: sparse_map(range(5, 100 * 10**9, 10**9)) for name in "abc"}
    maps = Finders(spaces, 7000)
    assert all(maps.find(name) for name in "abc")
    assert [maps.find_quickly(name) is not None for name in "abc"] == [True, False, False]
    maps = Finders(spaces, 20_000)
    assert [maps.find_quickly(name) is not None for name in "abc"] == [True] * 3
    assert maps.find_quickly("b")(np.array([10**9 + 5, 5], np.uint64)).typed.tolist() == [1, 0]


def test_identity_map_tells_ids_beyond_the_end():
    got = next(NodeMap(3, 7).resolve([np.array([0, 2, 3, 2**64 - 1], np.uint64)], None, 1))
    assert got.typed.tolist() == [0, 2, -1, -1]
    assert got.types.tolist() == [7] * 4


@FEW
@given(n=st.integers(0, 30), parts=st.integers(1, 9))
def test_cut_into_runs(n, parts):
    sizes = cut_sizes(n, parts)
    assert sizes.sum() == n
    assert sizes.tolist() == [n // parts + (p < n % parts) for p in range(parts)]
    expected = [p for p in range(parts) for _ in range(sizes[p])]
    assert part_of_position(np.arange(n), n, parts).tolist() == expected


@FEW
@given(parts=st.lists(st.integers(0, 4), max_size=40), cut=st.integers(1, 7))
def test_typed_counter_numbers_part_after_part(parts, cut):
    counter = TypedCounter(np.bincount(parts, minlength=5))
    got = [one for at in range(0, len(parts), cut) for one in counter.take(np.array(parts[at : at + cut], np.int64)).tolist()]
    order = sorted(range(len(parts)), key=lambda row: (parts[row], row))
    assert [order[one] for one in got] == list(range(len(parts)))


def test_partition_functions_on_plain_integers():
    ids = np.array([3, 10, 2**63], np.uint64)
    assert PartitionFunction("modulo", 4).parts(RawBatch(ids), 0, 3, 0, "t").tolist() == [3, 2, 0]
    assert PartitionFunction("range", 2).parts(RawBatch(ids), 0, 3, 0, "t").tolist() == [0, 0, 1]


def test_types_that_are_all_integers_go_by_value():
    assert order_types(["10", "9", "2"]) == ["2", "9", "10"]
    assert order_types(["10", "9", "a"]) == ["10", "9", "a"]


@FEW
@given(
    ids=st.one_of(
        st.sets(st.integers(0, 60), min_size=1, max_size=40),
        st.sets(st.integers(0, 2**64 - 1), min_size=1, max_size=40),
    ),
    wanted=st.lists(st.one_of(st.integers(0, 70), st.integers(0, 2**64 - 1)), max_size=20),
    ranks=st.booleans(),
    cap=st.sampled_from([400, 1 << 20]),
    flip=st.booleans(),
    seed=st.integers(0, 9),
)
def test_ids_of_one_type_are_found_by_every_way_alike(ids, wanted, ranks, cap, flip, seed):
    """Bits, tables, hash tables and searches against a dictionary; the quick ways say no where an ID is not there."""
    sign = np.uint64(1 << 63 if flip else 0)
    raw = np.array(sorted(ids, key=lambda one: one ^ int(sign)), np.uint64)
    typed = np.arange(raw.size) if ranks else np.random.default_rng(seed).permutation(raw.size)
    known = dict(zip(raw.tolist(), typed.tolist(), strict=True))
    highest = -1 if flip else int(raw[-1])
    rows = lambda: iter([(raw, np.full(raw.size, 3, np.int32), typed)])  # noqa: E731
    nodes = NodeMap(raw.size, rows=rows, flip=sign, highest=highest, are_ranks=ranks)
    find = nodes.finder(cap)
    if find is None:
        return
    asked = np.array(wanted + raw.tolist()[::3], np.uint64)
    got = find(asked)
    assert got.typed.tolist() == [known.get(one, -1) for one in asked.tolist()]
    assert (got.types[got.typed >= 0] == 3).all()
    quick = nodes.quick_finder(cap, find)
    for one in (asked, asked[asked < 2**32].astype(np.uint32)):
        found = None if quick is None else quick(one)
        if found is not None:
            assert found.type_number == 3
            assert found.typed.tolist() == [known[at] for at in one.tolist()]
        elif quick is not None and one.size:
            assert any(at not in known for at in one.tolist())
