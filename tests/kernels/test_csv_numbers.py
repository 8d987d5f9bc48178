"""Tables of numbers and pairs of IDs: the plain way gives what Python's int() and float() do, and the faults of the general way."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from graphprep.kernels.cpu.text import csv_numbers
from graphprep.kernels.cpu.text.csv_numbers import Fault, parse_pairs, parse_plain_pairs, parse_table

INTS = st.one_of(
    st.integers(-(10**6), 10**6), st.integers(-(2**63), 2**63 - 1), st.sampled_from([10**18 - 1, 10**18, -(10**18)])
)
FLOATS = st.one_of(
    st.floats(width=32).map(repr), st.floats(-1e5, 1e5).map(lambda v: f"{v:.4f}"), st.floats().map(repr), INTS.map(str)
)
ODD = st.sampled_from(
    ["-0", "+1", "", " 5", "6 ", '"7"', '"8.5"', "x", "1e400", "1e39", "99999999999999999999", "nan", "-inf", "300"]
)
DTYPES = [None, None, "float64", "float32", "float16", "int64", "int8", "uint8", "uint64", "bool"]


@st.composite
def tables(draw):
    """Draw a delimiter, a width and rows of fields; a few are odd, and so may be the ends of lines."""
    delimiter = draw(st.sampled_from([",", "\t", ";", " ", "", "e", "-", "::"]))
    width = draw(st.integers(1, 4))
    fields = draw(st.sampled_from([INTS.map(str), st.integers(0, 200).map(str), FLOATS]))
    rows = [[draw(fields) for _ in range(width)] for _ in range(draw(st.integers(0, 30)))]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
        if rows:
            row = rows[draw(st.integers(0, len(rows) - 1))]
            row[draw(st.integers(0, len(row) - 1))] = draw(ODD)
    end = draw(st.sampled_from(["\n", "\n", "\r\n"]))
    lines = [(delimiter or " ").join(row) + end for row in rows]
    if lines and draw(st.integers(0, 5)) == 0:
        lines.insert(draw(st.integers(0, len(lines))), draw(st.sampled_from(["\n", "#\n", "1\n", "1,2,3,4,5\n", " \r\n"])))
    text = "".join(lines).encode()
    return text[: len(text) - draw(st.integers(0, 1))], delimiter.encode(), width


def general(text, delimiter, width, most_rows, dtype):
    return csv_numbers._parse_any(np.frombuffer(text, np.uint8), delimiter, width, most_rows, dtype)


@settings(deadline=None, max_examples=400)
@given(tables(), st.sampled_from(DTYPES), st.integers(0, 40))
@example((b"1,2\n" * 100 + b"1,2.5\n" + b"3,4\n" * 100, b",", 2), None, 1000)
@example((b"1,2\n" * 100 + b"-0,2\n" + b"3,4\n" * 100, b",", 2), None, 1000)
@example((b"1000000000000000000\n" + b"7\n" * 200, b",", 1), None, 1000)
@example((b"1.5\n" * 200 + b"x\n" + b"1.5\n" * 100, b",", 1), None, 1000)
@example((b"1.5 2\n" * 100 + b"1  nan\n" * 100, b"", 2), "float32", 1000)
@example((b"1e39\n" * 100, b",", 1), "float32", 1000)
@example((b"1e2\n" * 100, b"e", 2), None, 1000)
def test_the_plain_way_agrees_with_the_general_way(drawn, dtype, most_rows):
    text, delimiter, width = drawn
    found, expected = (way(text, delimiter, width, most_rows, dtype) for way in (parse_table, general))
    if isinstance(expected, Fault):
        assert found == expected
    else:
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.tobytes() == expected.tobytes()


@settings(deadline=None, max_examples=200)
@given(st.integers(1, 5), st.sampled_from([",", "\t", " "]), st.data())
def test_tables_are_what_python_reads(width, delimiter, data):
    fields = data.draw(st.sampled_from([INTS.map(str), FLOATS]))
    rows = data.draw(st.lists(st.lists(fields, min_size=width, max_size=width), min_size=1, max_size=40))
    text = "".join(delimiter.join(row) + "\n" for row in rows).encode()
    found = parse_table(text, delimiter.encode(), width, len(rows))
    is_int = all(field.lstrip("-").isdigit() and field != "-0" for row in rows for field in row)
    kind, dtype = (int, np.int64) if is_int else (float, np.float64)
    expected = np.array([[kind(field) for field in row] for row in rows], dtype)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, expected)
    assert (np.signbit(found) == np.signbit(expected)).all()


@settings(deadline=None, max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), max_size=40),
    st.sampled_from([b",", b"\t", b"", b"::"]),
    st.sampled_from([b"\n", b"\r\n"]),
    st.sampled_from([b"", b"#1,2\n", b"\n", b"1,2,3\n", b"+1,2\n", b'"1","2"\n', b"1"]),
    st.integers(0, 40),
)
def test_plain_pairs_are_pairs_or_nothing(edges, delimiter, end, odd, at):
    lines = [b"%d%s%d%s" % (src, delimiter or b" ", dst, end) for src, dst in edges]
    lines.insert(at, odd)
    text = b"".join(lines)
    plain = parse_plain_pairs(np.frombuffer(text, np.uint8), delimiter, 13, 12)
    found = parse_pairs(text, delimiter, 13, 12)
    if plain is not None:
        assert [column.tolist() for column in plain] == [column.tolist() for column in found[:2]]
    elif not odd and delimiter != b"::":
        assert isinstance(found, Fault)


@pytest.mark.parametrize(("most", "dtype"), [(2**32, np.uint32), (2**32 + 1, np.uint64), (2**63, np.uint64)])
def test_plain_pairs_are_as_wide_as_their_ids_may_be(most, dtype):
    src, dst = parse_plain_pairs(np.frombuffer(b"%d,1\n" % (most - 1), np.uint8), b",", most, 2)
    assert (src.dtype, dst.dtype, src.tolist(), dst.tolist()) == (dtype, dtype, [most - 1], [1])


@pytest.mark.parametrize("repeats", [1, 200])  # the general way, and the plain one
@pytest.mark.parametrize(("field", "dtype"), [("0", "int64"), ("-0", "float64"), ("-00", "float64"), ('"-0"', "float64")])
def test_minus_zero_among_integers_makes_floats(repeats, field, dtype):
    text = ("3\n" * repeats + f"{field}\n-5\n").encode()
    found = parse_table(text, b",", 1, repeats + 2)
    assert found.dtype == dtype
    assert found[:, 0].tolist() == [3] * repeats + [0, -5]
    assert np.signbit(found[-2, 0]) == (dtype == "float64")
