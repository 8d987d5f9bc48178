"""Bytes that are put in places, and written in place of others, against slices and ``bytes.replace``."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.bytes.place import add_by_type, place_bytes, replace_bytes
from graphprep.kernels.cpu.ids.sort import order_by_key


@settings(deadline=None)
@given(data=st.binary(min_size=1, max_size=50), spans=st.lists(st.tuples(st.integers(0, 49), st.integers(0, 9)), max_size=9))
def test_places(data, spans):
    source = np.frombuffer(data, np.uint8)
    starts = np.array([start % len(data) for start, _ in spans], np.int64)
    sizes = np.array([min(size, len(data) - start) for (_, size), start in zip(spans, starts, strict=True)], np.int64)
    ats = np.cumsum(sizes + 1) - sizes - 1
    out = np.full(int((sizes + 1).sum()), 7, np.uint8)
    place_bytes(source, starts, sizes, out, ats)
    wanted = b"".join(data[start : start + size] + b"\7" for start, size in zip(starts, sizes, strict=True))
    assert out.tobytes() == wanted


@settings(deadline=None)
@given(texts=st.lists(st.text('ab"\\\n,é名\x85\u2028\u2029\u2027', max_size=8), max_size=6), escape=st.booleans())
def test_replacements(texts, escape):
    replaced = {b'"': b'\\"', b"\\": b"\\\\", b"\n": b"\\n", b",": b"\\,"}
    table, widths = np.zeros((256, 6), np.uint8), np.ones(256, np.int64)
    table[:, 0] = np.arange(256)
    for one, text in replaced.items():
        table[ord(one), : len(text)], widths[ord(one)] = list(text), len(text)
    ends = ["\\u0085", "\\u2028", "\\u2029"] if escape else []
    line_ends = np.array([list(end.encode()) for end in ends], np.uint8).reshape(-1, 6)
    source = np.frombuffer("".join(texts).encode(), np.uint8)
    sizes = np.array([len(text.encode()) for text in texts], np.int64)
    offsets, out = replace_bytes(source, np.cumsum(sizes) - sizes, sizes, table, widths, line_ends)
    wanted = []
    for text in texts:
        data = text.encode().replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n").replace(b",", b"\\,")
        for one in ("\x85", "\u2028", "\u2029") if escape else ():
            data = data.replace(one.encode(), f"\\u{ord(one):04x}".encode())
        wanted.append(data)
    assert [out[a:b].tobytes() for a, b in itertools.pairwise(offsets)] == wanted


@settings(deadline=None)
@given(items=st.lists(st.tuples(st.integers(-1, 3), st.floats(-1e6, 1e6)), max_size=50))
def test_sums_are_those_of_a_loop(items):
    sums, counts = np.zeros(4), np.zeros(4, np.int64)
    add_by_type(np.array([one for one, _ in items], np.int32), np.array([w for _, w in items], np.float64), sums, counts)
    for number in range(4):
        total, size = 0, 0
        for one, weight in items:
            if one == number:
                total, size = total + weight, size + 1
        assert (sums[number], counts[number]) == (total, size)


@settings(deadline=None)
@given(keys=st.lists(st.integers(0, 2**64 - 1) | st.integers(2**40, 2**40 + 3), max_size=60), seed=st.integers(0, 99))
def test_rows_are_ordered_by_one_key_after_another(keys, seed):
    order = np.random.default_rng(seed).permutation(len(keys)).astype(np.int64)
    wanted = sorted(order.tolist(), key=lambda row: keys[row])
    found = order_by_key(np.array(keys, np.uint64), order, np.empty_like(order))
    assert found.tolist() == wanted
