"""Messages between processes: every array arrives as it was, and numbers that count up take next to nothing."""

from __future__ import annotations

import io

import numpy as np
import pytest

from graphprep.engine.worker import pack, receive, receive_parts

ARRAYS = {
    "counts up": (np.arange(5, 200, dtype=np.uint64), True),
    "ends at the top": (np.arange(2**64 - 100, 2**64 - 1, dtype=np.uint64), True),
    "all the same": (np.full(99, -7, np.int32), True),
    "one stands for all": (np.broadcast_to(np.int32(3), 90), True),
    "wraps around": (np.arange(300).astype(np.uint8), False),
    "counts up by two": (np.arange(0, 200, 2), False),
    "same ends, other within": (np.array([1, *range(98), 1]), False),
    "ends as if it counted": (np.array([0, *range(7, 105), 99]), False),
    "floats": (np.arange(100.0), False),
    "rows and columns": (np.zeros((20, 20), np.int64), False),
    "few": (np.arange(9), False),
    "none": (np.zeros(0, np.int32), False),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_arrive_as_they_were(name):
    array, is_short = ARRAYS[name]
    data = b"".join(pack({"one": array, "two": [array, "x"]}))
    found = receive(io.BufferedReader(io.BytesIO(data)))
    for one in (found["one"], found["two"][0]):
        assert (one.dtype, one.shape) == (array.dtype, array.shape)
        np.testing.assert_array_equal(one, array)
    assert (len(data) < min(array.nbytes, 300)) == is_short


@pytest.mark.parametrize(
    "harm", [lambda data: data[:-1], lambda data: b"\xff" * 8 + data[8:], lambda data: data[:7], lambda _: b""]
)
def test_what_was_cut_or_has_other_sizes_is_no_message(harm):
    data = b"".join(pack(np.arange(1000.0)))
    with pytest.raises(EOFError):
        receive_parts(io.BufferedReader(io.BytesIO(harm(data))), len(data))
