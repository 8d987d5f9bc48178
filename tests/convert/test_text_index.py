"""Texts of an ID space, sorted in memory and starved of it, against a dictionary."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert.decoded import texts as texts_stage
from graphprep.convert.decoded.texts import KeyCollisionError, TextIndexer
from graphprep.kernels.cpu.text.texts import hash_texts
from graphprep.storage.spill.runs import SpillPool

_TEXT = st.one_of(st.binary(max_size=3), st.integers(0, 30).map(lambda n: b"a long common prefix/" + str(n).encode()))
_STEP = st.one_of(
    st.tuples(st.just("declare"), st.lists(st.tuples(_TEXT, st.integers(0, 2)), max_size=8)),
    st.tuples(st.integers(-1, 2), st.lists(_TEXT, max_size=8)),
)


def _pack(rows):
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(rows), np.uint8)


@settings(deadline=None, max_examples=120)
@given(
    steps=st.lists(_STEP, max_size=8),
    cap=st.sampled_from([1, 3000, 10**9]),
    chunk=st.sampled_from([1, 60, 1 << 20]),
    most_runs=st.sampled_from([2, 3, 64]),
    shards=st.sampled_from([1, 4]),
    part=st.sampled_from([1, 5, 1 << 15]),
)
def test_sorted_texts_are_unique_and_duplicates_are_told(steps, cap, chunk, most_runs, shards, part):
    records: dict[bytes, tuple[int, int]] = {}
    ends: dict[bytes, list[int]] = {}
    duplicates = []
    record = 0
    with pytest.MonkeyPatch.context() as patch, SpillPool(cap) as pool:
        patch.setattr(texts_stage, "_LEAST_CHUNK_BYTES", chunk)
        patch.setattr(texts_stage, "_MOST_CHUNK_BYTES", chunk)
        patch.setattr(texts_stage, "_MOST_RUNS", most_runs)
        patch.setattr(texts_stage, "_PART_ROWS", part)
        patch.setattr(texts_stage, "_LARGE_PART", 4 * part)
        indexer = TextIndexer(pool, cap, shards, threads=2)
        for kind, rows in steps:
            if kind == "declare":
                packed = _pack([text for text, _ in rows])
                types = np.array([code for _, code in rows], np.int32)
                numbers = np.arange(record, record + len(rows))
                indexer.add_declared(hash_texts(*packed), *packed, types, numbers)
                for text, code in rows:
                    if text in records:
                        duplicates.append(record)
                    records.setdefault(text, (code, record))
                    record += 1
            else:
                packed = _pack(rows)
                indexer.add_ends(hash_texts(*packed), *packed, kind)
                for text in rows:
                    ends.setdefault(text, []).append(kind)
        found = {}
        for part in indexer.sorted():
            for row in range(part.keys.size):
                assert part.keys[row] == hash_texts(*_pack([part.text(row)]))[0]
                found[part.text(row)] = (int(part.types[row]), int(part.records[row]))
        assert indexer.duplicates.tolist() == duplicates
    wanted = {text: (min(codes, key=lambda code: (code < 0, code)), -1) for text, codes in ends.items()} | records
    assert list(found.items()) == sorted(wanted.items())


@pytest.mark.parametrize("shards", [1, 16])
@pytest.mark.parametrize("cap", [1, 1 << 20, 10**9])
def test_threads_may_add_ends_side_by_side(shards, cap):
    """With little room, they write runs side by side, too, of a pool that spills all of them."""
    draw = np.random.default_rng(cap % 1009 + shards)
    batches = [[b"%d/%d" % (code, n) for n in draw.integers(0, 4000, 300)] for code in (-1, 0, 1) for _ in range(8)]
    with SpillPool(cap // 8) as pool:
        indexer = TextIndexer(pool, cap, shards)

        def add(rows):
            packed = _pack(rows)
            chosen = np.arange(len(rows))[::-1].copy()
            indexer.add_ends(hash_texts(*packed), *packed, int(rows[0].partition(b"/")[0]), chosen)

        with ThreadPoolExecutor(4) as threads:
            list(threads.map(add, batches * 2))
        found = [(part.text(row), int(part.types[row])) for part in indexer.sorted() for row in range(part.keys.size)]
    wanted = {text: int(text.partition(b"/")[0]) for batch in batches for text in batch}
    assert found == sorted(wanted.items())


def test_two_texts_under_one_key_are_told():
    with SpillPool(1 << 20) as pool:
        indexer = TextIndexer(pool, 1 << 20)
        packed = _pack([b"one", b"two"])
        with pytest.raises(KeyCollisionError):
            indexer.add_ends(np.zeros(2, np.uint64), *packed, 0)
