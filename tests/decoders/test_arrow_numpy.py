"""Arrow arrays by their buffers: the same as pyarrow's own ways to NumPy."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.decoders.cells import row_numbers
from graphprep.decoders.cells.arrow_numpy import list_lengths, null_mask, numbers_of, valid_rows, without_nulls

_TYPES = [pa.int8(), pa.uint16(), pa.int32(), pa.uint64(), pa.float32(), pa.float64(), pa.bool_(), pa.float16()]


@st.composite
def _slices(draw, kind):
    values = draw(st.lists(st.none() | st.integers(0, 1), max_size=40))
    some = [
        None if v is None else bool(v) if kind == pa.bool_() else np.float16(v) if kind == pa.float16() else v for v in values
    ]
    start = draw(st.integers(0, len(some)))
    return pa.array(some, kind).slice(start, draw(st.integers(0, len(some))))


@pytest.mark.parametrize("kind", _TYPES, ids=str)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_numbers_and_nulls_are_those_of_pyarrow(kind, data):
    array = data.draw(_slices(kind))
    mask = array.is_null().to_numpy(zero_copy_only=False)
    assert np.array_equal(null_mask(array), mask)
    assert np.array_equal(valid_rows(array), np.flatnonzero(~mask))
    present = without_nulls(array)
    expected = array.drop_null().to_numpy(zero_copy_only=False)
    found = numbers_of(present)
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)


@pytest.mark.parametrize("kind", [pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 2)], ids=str)
@pytest.mark.parametrize("start", [0, 1, 3, 4])
def test_lengths_of_lists(kind, start):
    lists = [[1, 2]] * 4 if pa.types.is_fixed_size_list(kind) else [[1, 2], [], [3], [4, 5, 6]]
    array = pa.array(lists, kind).slice(start)
    assert list_lengths(array).tolist() == [len(one) for one in lists[start:]]


def test_arrays_of_nulls_and_other_types():
    nulls = pa.nulls(3)
    assert null_mask(nulls).tolist() == [True] * 3
    assert valid_rows(nulls).size == 0
    decimals = pa.array([1, 2], pa.decimal128(5, 1))
    assert [str(value) for value in numbers_of(decimals)] == ["1.0", "2.0"]


def test_neither_pandas_nor_compute_is_imported():
    code = """
import sys
import pyarrow as pa
from graphprep.decoders.cells import row_numbers
from graphprep.decoders.cells.arrow_numpy import list_lengths, null_mask, numbers_of, valid_rows, without_nulls
buffer = pa.py_buffer(bytes(range(16)))  # pyarrow.array would import them
numbers = pa.Array.from_buffers(pa.int64(), 2, [None, buffer])
some = pa.Array.from_buffers(pa.int64(), 2, [buffer.slice(1), buffer])
lists = pa.Array.from_buffers(pa.list_(pa.int64()), 1, [None, pa.py_buffer(bytes([0, 0, 0, 0, 2, 0, 0, 0]))], children=[numbers])
numbers_of(numbers), null_mask(some), valid_rows(some), list_lengths(lists), without_nulls(numbers)
assert not {"pandas", "pyarrow.compute"} & sys.modules.keys()
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@settings(max_examples=30, deadline=None)
@given(sizes=st.lists(st.integers(0, 50), max_size=6))
def test_row_numbers_are_shared(sizes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_numbers, "_shared", (np.arange(0), np.ones(0, np.int64)))
        patch.setattr(row_numbers, "_MOST_ROWS", 20)
        for size in sizes:
            rows, ones = row_numbers.every_row(size), row_numbers.one_a_row(size)
            assert rows.tolist() == list(range(size))
            assert ones.tolist() == [1] * size
            assert not size or not (rows.flags.writeable or ones.flags.writeable)
        assert row_numbers._shared[0].size <= 20
