"""Packed records of some buckets, from where they lie, against sorted lists."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.edges.records import OTHER, OWNER, Packing, deal_records
from graphprep.kernels.cpu.edges.stretches import Stretch, place_stretch

NUM_ROWS = 90


def _segment(number: int, size: int, shift: int, other_bits: int):
    """Make edges, and what they are as packed records: (owners, others, packing, words, offsets of buckets)."""
    rng = np.random.default_rng(number)
    owners = rng.integers(0, NUM_ROWS, size).astype(np.uint32)
    others = rng.integers(0, min(2**other_bits, 2 ** (3 * number + 1)), size).astype(np.uint32)
    records, offsets = deal_records([(owners, others)], (), None, shift, (NUM_ROWS - 1 >> shift) + 1)
    packing = Packing(shift + number, other_bits)
    owner, other, edge = (records[:, at].astype(np.uint64) for at in (OWNER, OTHER, 2))
    owner &= np.uint64((1 << packing.row_bits) - 1)
    words = (edge << np.uint64(packing.other_bits) | other) << np.uint64(packing.row_bits) | owner
    return owners, others, packing, words, offsets


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize(("index_dtype", "id_dtype"), [("int32", "int32"), ("int32", "int64"), ("int64", None)])
@given(
    shift=st.integers(0, 7),
    sizes=st.lists(st.integers(0, 60), max_size=4),
    cuts=st.tuples(*[st.integers(0, NUM_ROWS - 1)] * 2),
    other_bits=st.integers(1, 31),
)
@settings(max_examples=40, deadline=None)
def test_buckets_are_placed_from_where_they_lie(index_dtype, id_dtype, ascending, shift, sizes, cuts, other_bits):
    """Segments may be packed differently, and keep more bits of an owner than its bucket needs."""
    first, stop = sorted(cut >> shift for cut in cuts)
    num_rows = min((stop + 1) << shift, NUM_ROWS) - (first << shift)
    segments = [_segment(number, size, shift, min(31, other_bits + number)) for number, size in enumerate(sizes)]
    bounds = np.array([words.ctypes.data + 8 * offsets[first : stop + 2] for *_, words, offsets in segments], np.int64)
    packings = np.array([(packing.row_bits, packing.other_bits) for _, _, packing, *_ in segments], np.int64)
    stretch = Stretch(
        bounds.reshape(len(segments), stop + 2 - first),
        1000 * np.arange(len(segments)),
        packings.reshape(-1, 2),
        shift,
        num_rows,
    )
    lengths, found, ids = place_stretch(stretch, index_dtype, id_dtype, ascending=ascending)
    edges = [
        (int(owner) - (first << shift), int(other), 1000 * number + edge)
        for number, (owners, others, *_) in enumerate(segments)
        for edge, (owner, other) in enumerate(zip(owners, others, strict=True))
    ]
    inside = [edge for edge in edges if 0 <= edge[0] < num_rows]
    wanted = sorted(inside, key=lambda edge: edge[:2] if ascending else edge[:1])
    assert lengths.tolist() == np.bincount([row for row, *_ in wanted], minlength=num_rows).tolist()
    assert (found.dtype, found.tolist()) == (index_dtype, [other for _, other, _ in wanted])
    assert ids is None if id_dtype is None else (ids.dtype, ids.tolist()) == (id_dtype, [edge for *_, edge in wanted])


def test_rows_may_need_fewer_bits_than_buckets_have():
    """Where a segment has only low rows, its records may lack the high bits of buckets that others made wide."""
    words = np.array([3 << 4 | 2, 1 << 4 | 1], np.uint64)  # two bits of the row, two of the other end, then the edge ID
    bounds = np.array([[words.ctypes.data, words.ctypes.data + 16]])
    stretch = Stretch(bounds, np.array([5]), np.array([[2, 2]]), 20, 4)
    for ascending in (False, True):
        lengths, others, ids = place_stretch(stretch, "int32", "int32", ascending=ascending)
        assert (lengths.tolist(), others.tolist(), ids.tolist()) == ([0, 1, 1, 0], [0, 0], [6, 8])
