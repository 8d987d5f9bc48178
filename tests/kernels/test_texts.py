"""Texts by offsets, against Python's bytes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.text import texts

_TEXTS = st.one_of(
    st.lists(st.binary(max_size=20), max_size=60),
    st.lists(st.sampled_from([b"", b"\0", b"a", b"a\0", b"a\0\0", b"abcdefg", b"abcdefgh", b"abcdefg\0"]), max_size=60),
    st.lists(st.integers(0, 40).map(lambda n: b"http://example.com/a/b/" + str(n).encode()), max_size=80),
    st.lists(st.tuples(st.integers(0, 30), st.binary(max_size=2)).map(lambda t: b"x" * t[0] + t[1]), max_size=80),
)


def _pack(rows: list[bytes]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(rows), np.uint8)


def _unpack(offsets: np.ndarray, values: np.ndarray) -> list[bytes]:
    return [bytes(values[offsets[i] : offsets[i + 1]]) for i in range(offsets.size - 1)]


def _mix(x: int) -> int:
    z = (x + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ z >> 30) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ z >> 27) * 0x94D049BB133111EB) % 2**64
    return z ^ z >> 31


def _hash(text: bytes) -> int:
    value = _mix(len(text))
    for at in range(0, len(text), 8):
        value = _mix(value ^ int.from_bytes(text[at : at + 8], "little"))
    return value


def test_hashes_are_those_of_the_store_format():
    offsets, values = _pack([b"a", b"abcdefghi"])
    assert texts.hash_texts(offsets, values).tolist() == [0x5E025F9ADE9EAF3E, 0xCBE0B0512E86AB3B]


@settings(deadline=None, max_examples=60)
@given(rows=_TEXTS)
def test_hashes_agree_with_the_naive_ones(rows):
    offsets, values = _pack(rows)
    assert texts.hash_texts(offsets, values).tolist() == [_hash(row) for row in rows]
    if rows:
        assert texts.hash_texts(offsets, values, 1).tolist() != [_hash(row) for row in rows]


@settings(deadline=None, max_examples=200)
@given(rows=_TEXTS)
def test_sort_agrees_with_sorted(rows):
    order = texts.sort_texts(*_pack(rows)).tolist()
    assert order == sorted(range(len(rows)), key=lambda row: (rows[row], row))


@pytest.mark.parametrize("size", [1, 19, 20, 21, 1000, 20_000])
@pytest.mark.parametrize("prefix", [b"", b"a common prefix that is longer than some words/"])
def test_sort_of_many_rows(size, prefix):
    rng = np.random.default_rng(size)
    rows = [prefix + str(n).encode() * (n % 3 + 1) for n in rng.integers(0, size, size).tolist()]
    assert texts.sort_texts(*_pack(rows)).tolist() == sorted(range(size), key=lambda row: (rows[row], row))


@settings(deadline=None, max_examples=150)
@given(rows=_TEXTS, part_rows=st.integers(1, 70))
def test_parts_stand_behind_each_other(rows, part_rows):
    indptr, order = texts.scatter_texts(*_pack(rows), part_rows)
    parts = [order[start:stop].tolist() for start, stop in itertools.pairwise(indptr.tolist())]
    assert all(part == sorted(part) for part in parts)
    by_parts = [row for part in parts for row in sorted(part, key=lambda row: (rows[row], row))]
    assert by_parts == sorted(range(len(rows)), key=lambda row: (rows[row], row))


def test_many_texts_are_scattered_out_evenly():
    rows = [b"user-%016x" % _mix(n) for n in range(20_000)]
    indptr, _ = texts.scatter_texts(*_pack(rows), 1000)
    assert indptr.size == 21
    assert np.diff(indptr).max() < 2000


@settings(deadline=None, max_examples=60)
@given(rows=_TEXTS, data=st.data())
def test_take_and_concat(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=20)) if rows else []
    taken = texts.take_texts(*_pack(rows), np.array(chosen, np.int64))
    assert _unpack(*taken) == [rows[i] for i in chosen]
    assert _unpack(*texts.concat_texts([_pack(rows), taken, _pack([])])) == rows + [rows[i] for i in chosen]
    assert _unpack(*texts.concat_texts([])) == []


@settings(deadline=None, max_examples=100)
@given(rows=_TEXTS)
def test_repeats_and_bounds_of_sorted_texts(rows):
    ordered = sorted(rows)
    packed = _pack(ordered)
    order = texts.sort_texts(*_pack(rows))
    repeats = [i > 0 and ordered[i] == ordered[i - 1] for i in range(len(rows))]
    assert texts.repeats_in_order(*_pack(rows), order).tolist() == repeats
    for bound in {*rows[:3], b"", b"zzz"}:
        assert texts.count_up_to(*packed, bound) == sum(row <= bound for row in ordered)


@settings(deadline=None, max_examples=100)
@given(rows=_TEXTS)
def test_distinct_texts_are_those_of_a_dict(rows):
    packed = _pack(rows)
    found, collision = texts.distinct_texts(texts.hash_texts(*packed), *packed)
    assert collision == -1
    assert [rows[i] for i in found.tolist()] == list(dict.fromkeys(rows))


def test_texts_under_one_key_are_compared():
    offsets, values = _pack([b"one", b"two", b"one", b"three"])
    keys = np.array([7, 8, 7, 8], np.uint64)
    assert texts.distinct_texts(keys, offsets, values)[1] == 3
    assert texts.distinct_texts(keys[:3], offsets[:4], values)[1] == -1


@settings(deadline=None, max_examples=100)
@given(batches=st.lists(_TEXTS, max_size=6), same_key=st.booleans())
def test_seen_texts_agree_with_a_dict(batches, same_key):
    seen = texts.SeenTexts()
    known: dict[bytes, None] = {}
    for rows in batches:
        packed = _pack(rows)
        keys = texts.hash_texts(*packed)
        if same_key:
            keys[:] = 2**64 - 1
        collision = seen.add(keys, *packed)
        wanted = next((i for i, row in enumerate(rows) if same_key and {*known, *rows[:i]} - {row}), -1)
        assert collision == wanted
        if collision >= 0:
            return
        known.update(dict.fromkeys(rows))
        assert _unpack(*seen.texts()[1:]) == list(known)
        assert seen.texts()[0].tolist() == ([2**64 - 1] * len(known) if same_key else [_hash(row) for row in known])


@pytest.mark.parametrize("last", [b"", b"b"])
def test_huge_texts_are_compared_whole(last):
    """The size of such a text does not fit what a slot says of it."""
    rows = [b"first", b"a" * (1 << 24), b"a" * (1 << 24) + last, b"behind"]
    seen = texts.SeenTexts()
    assert seen.add(np.array([1, 2, 3, 4], np.uint64), *_pack(rows)) == -1
    collision = seen.add(np.array([2, 2], np.uint64), *_pack([rows[1], rows[1][:-1] + last]))
    assert collision == 1
    assert seen.add(np.array([3, 4], np.uint64), *_pack(rows[2:])) == -1


def test_seen_texts_grow():
    rows = [str(n).encode() for n in range(50_000)]
    seen = texts.SeenTexts()
    for start in range(0, len(rows), 7000):
        packed = _pack(rows[max(0, start - 100) : start + 7000])
        assert seen.add(texts.hash_texts(*packed), *packed) == -1
    assert _unpack(*seen.texts()[1:]) == rows
    assert seen.num_bytes > seen.texts()[2].nbytes


def test_integers_among_texts():
    assert texts.first_non_integer(*_pack([b"1", b" -7 ", b"+0", b"9223372036854775807"])) == -1
    assert texts.first_non_integer(*_pack([b"1", b"1.0"])) == 1
    assert texts.first_non_integer(*_pack([b"9223372036854775808"])) == 0
    assert texts.first_non_integer(*_pack([b"007", b"", b"x"])) == 1


def test_endless_texts_are_told_apart():
    size = 1 << 24
    rows = [b"x", b"a" * size, b"a" * (size - 1), b"a" * (size + 3), b"y"]
    seen = texts.SeenTexts()
    packed = _pack(rows)
    keys = texts.hash_texts(*packed)
    assert seen.add(keys, *packed) == -1
    assert seen.add(keys, *packed) == -1
    assert seen.count == len(rows)
    other = _pack([b"x", b"a" * size, b"a" * (size - 2), b"y"])
    assert seen.add(keys[[0, 1, 2, 4]], *other) == 2
