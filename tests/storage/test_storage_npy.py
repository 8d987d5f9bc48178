"""Headers of .npy files, held against NumPy's own."""

import io
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import DataError
from graphprep.storage.read.npy import parse_npy_header
from graphprep.storage.write.publish import npy_header

DTYPES = [
    "bool",
    "int8",
    "uint8",
    "int16",
    "uint16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (1234,), (3, 0), (2, 3), (1, 2, 3, 4), (1,) * 32])
def test_the_bytes_are_those_of_numpy_save(dtype, shape):
    file = io.BytesIO()
    np.save(file, np.zeros(shape, dtype))
    header = npy_header(dtype, shape)
    assert file.getvalue() == header + bytes(math.prod(shape) * np.dtype(dtype).itemsize)
    parsed = parse_npy_header(file.getvalue(), "a.npy")
    assert (parsed.dtype, parsed.shape, parsed.fortran_order) == (np.dtype(dtype), shape, False)
    assert parsed.num_bytes == len(file.getvalue())


@settings(deadline=None, max_examples=200)
@given(shape=st.lists(st.integers(0, 2**62), max_size=12).map(tuple), dtype=st.sampled_from(DTYPES))
def test_headers_of_shapes_that_no_machine_holds(shape, dtype):
    file = io.BytesIO()
    descr = np.dtype(dtype).str
    np.lib.format.write_array_header_1_0(file, {"descr": descr, "fortran_order": False, "shape": shape})
    assert npy_header(dtype, shape) == file.getvalue()


def test_big_endian_dtypes_are_written_little_endian():
    assert npy_header(">i4", (3,)) == npy_header("<i4", (3,))


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_what_others_wrote(version):
    file = io.BytesIO()
    array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        np.lib.format.write_array(file, array, version)
    parsed = parse_npy_header(file.getvalue(), "a.npy")
    assert (parsed.dtype, parsed.shape, parsed.fortran_order) == (np.dtype(">i4"), (2, 3), True)
    assert file.getvalue()[parsed.data_start :] == array.tobytes("F")


@pytest.mark.parametrize(
    ("array", "descr"),
    [
        (np.array([None, {}], object), "'|O'"),
        (np.array(["a", "b"]), "'<U1'"),
        (np.array([b"a"]), "'|S1'"),
        (np.array(["2020-01-01"], "datetime64[D]"), "'<M8[D]'"),
        (np.zeros(1, np.longdouble), f"'{np.dtype(np.longdouble).str}'"),
        (np.zeros(1, [("a", "i4")]), "[('a', '<i4')]"),
    ],
)
def test_dtypes_that_are_refused(array, descr):
    file = io.BytesIO()
    np.save(file, array, allow_pickle=True)
    with pytest.raises(DataError) as caught:
        parse_npy_header(file.getvalue(), "a.npy")
    assert str(caught.value) == (
        f"a.npy: the array has dtype {descr}, which is not read\n  fix: store numbers or booleans of at most 64 bits"
    )


def test_what_is_no_npy_file():
    for head in (b"", b"\x93NUMP", b"PAR1" * 10, b"\x93NUMPY\x07\x00\x00\x00"):
        with pytest.raises(DataError, match=r"^a\.npy: not a \.npy file\n  fix: write it with numpy\.save$"):
            parse_npy_header(head, "a.npy")


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_mutated_headers_end_in_words(data):
    head = bytearray(npy_header("int64", (12, 3)))
    for _ in range(data.draw(st.integers(1, 4))):
        head[data.draw(st.integers(6, len(head) - 1))] = data.draw(st.integers(0, 255))
    try:
        parse_npy_header(bytes(head), "a.npy")
    except DataError as error:
        assert error.place == "a.npy"


def test_a_truncated_header():
    with pytest.raises(DataError, match="truncated or absurdly long"):
        parse_npy_header(npy_header("int64", (12, 3))[:60], "a.npy")
    with pytest.raises(DataError, match="truncated or absurdly long"):
        parse_npy_header(b"\x93NUMPY\x02\x00\xff\xff\xff\x7f" + b" " * 1000, "a.npy")


def crafted(fields):
    return b"\x93NUMPY\x01\x00" + len(fields).to_bytes(2, "little") + fields.encode()


HUGE = "0x" + "f" * 6000  # Python reads it, and writes no decimals of so many digits
CRAFTED = {
    f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({HUGE},)}}": "the .npy header has shape that is absurdly long",
    f"{{'descr': '<i8', 'fortran_order': False, 'shape': {HUGE}}}": "the .npy header has shape that is absurdly long",
    f"{{'descr': '<i8', 'fortran_order': {HUGE}, 'shape': (2,)}}": "the .npy header has shape (2,)",
    f"{{'descr': {HUGE}, 'fortran_order': False, 'shape': (2,)}}": "the array has dtype that is absurdly long, which is not read",
    f"{{'descr': '{'x' * 60000}', 'fortran_order': False, 'shape': (2,)}}": (
        f"the array has dtype '{'x' * 59}…, which is not read"
    ),
    "{'descr': '<i8', 'fortran_order': False, 'shape': (0, 2305843009213693952, 4)}": (
        "the .npy header has shape (0, 2305843009213693952, 4), which no file can hold"
    ),
    f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({'1, ' * 33})}}": (f"the .npy header has shape ({'1, ' * 19}1,…"),
    f"{'-' * 5000}1": "the .npy header cannot be read",
}


@pytest.mark.parametrize(("fields", "message"), CRAFTED.items(), ids=range(len(CRAFTED)))
def test_crafted_headers_end_in_short_words(fields, message):
    with pytest.raises(DataError) as caught:
        parse_npy_header(crafted(fields), "a.npy")
    assert (caught.value.place, caught.value.message) == ("a.npy", message)
