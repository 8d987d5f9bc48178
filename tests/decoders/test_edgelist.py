"""EdgeList: what is written is read, for every dtype, delimiter and default; what is wrong is said, and where."""

from __future__ import annotations

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.decoded import as_found, edges_of, nodes_of
from reference.readers import edgelist_line
from reference.records import Edge, Node, Numbers, Sparse, Text

from graphprep.decoders.deepgnn.edgelist import EdgeListDecoder
from graphprep.decoders.registry import bid_of
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.protocols import SniffedFile, Span, TextBlock

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
DTYPES = ("bool", *INTS, *FLOATS, "complex64", "complex128")


def decode(data: str | bytes, places=False, **options):
    text = data.encode() if isinstance(data, str) else data
    return EdgeListDecoder(**options).decode(TextBlock(text, Span("x")), places)


def fault_of(data: str | bytes, **options) -> tuple[str, str, str]:
    """The message, the fix, and the text from the blamed byte on."""
    with pytest.raises(DecodeError) as caught:
        decode(data, **options)
    text = data.encode() if isinstance(data, str) else data
    return caught.value.message, caught.value.fix, text[caught.value.at :].decode("utf-8", "replace")


def slot_values(data: str, slot: int = 0, **options) -> list:
    column = next(column for column in decode(data, **options).nodes.columns if column.key.slot == slot)
    return column.values.tolist()


# ------------------------------------------------------------------------------------------------ decode inverts write

ids = st.integers(0, 2**64 - 1)
types = st.integers(0, 3) | st.integers(0, 2**31 - 1)
times = st.integers(-(2**63), 2**63 - 1)


def number(dtype: str):
    """(text, value) of one number."""
    kind = np.dtype(dtype).kind
    if kind == "b":
        return st.sampled_from([("0", False), ("1", True), ("true", True), ("False", False), (" TRUE ", True)])
    if kind in "iu":
        info = np.iinfo(dtype)
        values = st.integers(int(info.min), int(info.max))
        return st.tuples(values, st.sampled_from(["{}", " {}", "{}  ", "{:+}", "{:022}"])).map(
            lambda one: (one[1].format(one[0]), one[0])
        )
    if kind == "c":
        parts = st.tuples(*[st.floats(width=32, allow_nan=False)] * 2)
        return parts.map(lambda one: complex(*one)).map(lambda value: (str(value), value))
    width = np.dtype(dtype).itemsize * 8
    values = st.floats(width=width)
    texts = st.sampled_from(["{!r}", " {!r} ", "{:.3f}", "{:e}", "{:.30g}", "{:+}"])
    return (
        st.tuples(values, texts)
        .map(lambda one: one[1].format(one[0]))
        .filter(lambda text: fits(text, dtype))
        .map(lambda text: (text, float(text)))
    )


def fits(text: str, dtype: str) -> bool:
    with np.errstate(over="ignore"):
        return np.isinf(float(text)) or not np.isinf(np.array(float(text)).astype(dtype))


def text_value(delimiter: str):
    """A text that the escape rule can write: a run of escapes before a delimiter, or at the end, is even."""
    characters = st.characters(exclude_characters="\n\r" + delimiter, exclude_categories=["Cs"])
    pieces = st.text(characters | st.just("\\"), max_size=6).map(
        lambda piece: piece if (len(piece) - len(piece.rstrip("\\"))) % 2 == 0 else piece + "\\"
    )
    return st.lists(pieces, min_size=1, max_size=3).map(delimiter.join)


@st.composite
def slots(draw, delimiter: str, slash: str):
    """(columns, value or None) of one slot."""
    dtype = draw(st.sampled_from((*DTYPES, "binary", "binary")))
    if dtype == "binary":
        if draw(st.booleans()):
            return ["binary", "0"], None
        text = draw(text_value(delimiter))
        return ["binary", "1", text.replace(delimiter, "\\" + delimiter)], Text(text.encode())
    shape = draw(st.sampled_from(["empty", "dense", "flat", "wide"]))
    if shape == "empty":
        return [f" {dtype} ", draw(st.sampled_from(["0", f"0{slash}0", f"0{slash}2", " 0"]))], None
    pairs = draw(st.lists(number(dtype), min_size=1, max_size=4))
    values = tuple(value for _, value in pairs)
    texts = [text for text, _ in pairs]
    if shape == "dense":
        return [dtype, str(len(pairs)), *texts], Numbers(dtype, (len(pairs),), values)
    width = 0 if shape == "flat" else draw(st.integers(1, 3))
    coords = draw(
        st.lists(st.integers(-(2**63), 2**63 - 1), min_size=len(pairs) * max(width, 1), max_size=len(pairs) * max(width, 1))
    )
    value = Sparse(dtype, width, tuple(coords), values)
    return [dtype, f"{len(pairs)}{slash}{width}", *map(str, coords), *texts], value


@st.composite
def records(draw, delimiter=",", slash="/", temporal=False):
    """(line, record)."""
    is_node = draw(st.booleans())
    weight_text, weight = draw(number("float32"))
    stated = draw(st.lists(slots(delimiter, slash), max_size=4))
    when = (draw(times), draw(times)) if temporal else (None, None)
    kind = draw(types)
    common = {"weight": weight, "created_at": when[0], "removed_at": when[1], "num_slots": len(stated)}
    common["slots"] = {i: value for i, (_, value) in enumerate(stated) if value is not None}
    src, dst = draw(ids), draw(ids)
    head = [src, -1, kind] if is_node else [src, kind, dst]
    columns = [*map(str, head), weight_text, *(str(time) for time in when if time is not None)]
    columns += [column for found, _ in stated for column in found]
    if draw(st.booleans()):
        columns.append("")  # a blank dtype ends the list
    record = Node(src, str(kind), **common) if is_node else Edge(src, dst, str(kind), **common)
    return delimiter.join(columns), record


def check(found, expected, **options):
    node_records = [as_found(one, **options) for one in expected if isinstance(one, Node)]
    edge_records = [as_found(one, **options) for one in expected if isinstance(one, Edge)]
    assert nodes_of(found.nodes) == node_records
    assert edges_of(found.edges) == edge_records
    assert found.num_records == len(expected)


GRAMMARS = [(",", "/", False), (",", "/", True), ("\t", ":", False), ("||", "::", False), ("; ", "x", True)]


@pytest.mark.parametrize(("delimiter", "slash", "temporal"), GRAMMARS)
@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_decode_inverts_write(delimiter, slash, temporal, data):
    lines = data.draw(st.lists(records(delimiter, slash, temporal), max_size=8))
    end = data.draw(st.sampled_from(["\n", "\r\n", "\n\n", "\n \t\n"]))
    text = "".join(line + end for line, _ in lines)
    if data.draw(st.booleans()):
        text = text.removesuffix("\n")
    options = {"delimiter": delimiter, "length_delimiter": slash, "temporal": temporal}
    found = decode(text, **options)
    check(found, [record for _, record in lines], dated=temporal)


@given(data=st.data())
@settings(deadline=None, max_examples=60)
def test_any_cut_between_lines_gives_the_same_rows(data):
    lines = data.draw(st.lists(records(), min_size=1, max_size=8))
    cut = data.draw(st.integers(0, len(lines)))
    texts = [line + "\n" for line, _ in lines]
    whole = decode("".join(texts))
    parts = [decode("".join(texts[:cut])), decode("".join(texts[cut:]))]
    assert nodes_of(whole.nodes) == [one for part in parts for one in nodes_of(part.nodes)]
    assert edges_of(whole.edges) == [one for part in parts for one in edges_of(part.edges)]


DEFAULTS = {
    "default_node_type": 7,
    "default_node_weight": 0.25,
    "default_node_feature_types": "int8, -,binary,f4,bool",
    "default_node_feature_lens": "2,3/0,-,2/1,0",
    "default_edge_type": 2,
    "default_edge_weight": -1.5,
    "default_edge_feature_types": "-,uint64",
    "default_edge_feature_lens": "-,1",
    "default_created_at": 5,
    "default_removed_at": 9,
    "temporal": True,
}
# Of each default, a line with what it leaves out, and one without.
DEFAULT_LINES = "3,-1,1,2,float64,4,5,6,.1,.2,.3,1,a\\,b,8,9,1.5,2.5,int16,1,-1\n4,5,binary,1,text,77\n4,5\n6,7,,\n6,-1,1,2,\n"


def test_defaults_are_those_of_the_naive_reader():
    expected = []
    for line in DEFAULT_LINES.replace(",,\n", ",\n").splitlines():
        nodes, edges = edgelist_line(line, DEFAULTS)
        expected += nodes + edges
    check(decode(DEFAULT_LINES, **DEFAULTS), expected, dated=True)


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name.endswith(("_type", "_weight", "_at"))])
def test_a_default_takes_its_column_away(name):
    node = {"default_node_type": "9", "default_node_weight": "0.5", "default_created_at": "100", "default_removed_at": "-1"}
    edge = {"default_edge_type": "9", "dst": "8", "default_edge_weight": "0.5"}
    edge |= {"default_created_at": "100", "default_removed_at": "-1"}
    lines = ["1,-1," + ",".join(text for key, text in node.items() if key != name)]
    lines += ["1," + ",".join(text for key, text in edge.items() if key != name)]
    options = {name: DEFAULTS[name], "temporal": True}
    expected = []
    for line in lines:
        nodes, edges = edgelist_line(line, options)
        expected += nodes + edges
    check(decode("\n".join(lines), **options), expected, dated=True)


def test_defaults_as_lists_as_an_options_file_has_them():
    lists = EdgeListDecoder(
        default_node_feature_types=["int8", None, "f4"],  # type: ignore[arg-type]
        default_node_feature_lens=[[2], None, [2, 1]],  # type: ignore[arg-type]
    )
    assert lists == EdgeListDecoder(default_node_feature_types="int8,-,f4", default_node_feature_lens="2,-,2/1")


def test_default_times_make_the_columns_without_temporal():
    (node,) = nodes_of(decode("1,-1,0,1\n", default_removed_at=4).nodes)
    assert (node["created_at"], node["removed_at"]) == (np.int64(0).tobytes(), np.int64(4).tobytes())
    assert EdgeListDecoder(default_removed_at=4).plan(None, ["a", "b"]).has_times  # type: ignore[arg-type]
    sources = EdgeListDecoder().plan(None, ["a", "b"])  # type: ignore[arg-type]
    assert (sources.has_times, sources.always_weighted, sources.nodes) == (False, True, "records")
    assert [span.url for span in sources.spans] == ["a", "b"]


def test_weights_in_float64():
    (column,) = decode("1,-1,0,0.1\n", weight_dtype="float64").nodes.columns
    assert (column.key.dtype, column.values.tolist()) == ("float64", [0.1])


@pytest.mark.parametrize(
    ("word", "dtype"),
    [
        ("float", "float64"),
        ("int", "int64"),
        ("f4", "float32"),
        (">i2", "int16"),
        ("?", "bool"),
        ("uint", "uint64"),
        ("F", "complex64"),
    ],
)
def test_every_name_that_numpy_has_for_a_dtype(word, dtype):
    columns = decode(f"1,-1,0,1,{dtype},1,1\n2,-1,0,1,{word},1,0\n").nodes.columns
    assert [(column.key.dtype, column.values.tolist()) for column in columns[1:]] == [(dtype, [1, 0])]


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("a\\,b", "a,b"),
        ("a\\\\", "a\\\\"),
        ("a\\\\\\,b", "a\\\\,b"),
        ("a\\b", "a\\b"),
        (" test ", " test "),
        ("", ""),
        ("\\,", ","),
        ("\\,\\,", ",,"),
        ("a\u2028b\x0bc\x0cd\x85e\x1cf\rg", "a\u2028b\x0bc\x0cd\x85e\x1cf\rg"),
        ('"a', '"a'),
        ("\x00é😀", "\x00é😀"),
    ],
)
def test_texts(written, text):
    found = decode(f"1,-1,0,1,binary,1,{written},int8,1,5\n2,-1,0,1,int8,1,5,binary,1,{written}\n")
    assert bytes(slot_values(f"1,-1,0,1,binary,1,{written}\n")) == text.encode()
    (first, second) = nodes_of(found.nodes)
    assert first["slots"] == {0: ("binary", "uint8", 0, None, text.encode()), 1: ("numbers", "int8", 0, None, b"\x05")}
    assert second["slots"] == {1: ("binary", "uint8", 0, None, text.encode()), 0: ("numbers", "int8", 0, None, b"\x05")}


def test_half_a_delimiter_at_the_end_is_text():
    for text in ("|", "a|", "a|b|"):
        assert slot_values(f"0||-1||0||1||binary||1||{text}", delimiter="||") == list(text.encode())
    message, _, blamed = fault_of("0||-1||0||1||int8||1||5|", delimiter="||")
    assert (message, blamed) == ("feature slot 0 must hold int8 values (-128 to 127), found '5|'", "5|")


def test_delimiters_that_are_parts_of_numbers():
    assert slot_values("1~-1~0~1~float32~2~5~6", delimiter="~") == [5, 6]
    assert slot_values("2.-1.0.3.float32.2.5.6", delimiter=".") == [5, 6]
    assert slot_values("2 x -1 x 0 x 3 x float32 x 2 x 5 x 6", delimiter=" x ") == [5, 6]


def test_blanks_around_everything_but_texts():
    text = "\t1 , -1 ,\t0, 1 , int8\t, 1 / 0 , 5 ,\t6 , float32,1,\t1.5 , bool ,1, TRUE\t,binary , 1 , a ,\t\n"
    (node,) = nodes_of(decode(text).nodes)
    assert node["slots"] == {
        0: ("sparse", "int8", 0, [5], b"\x06"),
        1: ("numbers", "float32", 0, None, np.float32(1.5).tobytes()),
        2: ("numbers", "bool", 0, None, b"\x01"),
        3: ("binary", "uint8", 0, None, b" a "),
    }


def test_places():
    found = decode("\n 7,-1,0,1\r\n7,0, 8,1\n", places=True)
    assert (found.nodes.at.tolist(), found.edges.at_src.tolist(), found.edges.at_dst.tolist()) == ([1], [12], [16])
    assert found.edges.record.tolist() == [-1]
    assert decode("1,-1,0,1\n1,0,2,1\n").nodes.at is None


def test_nothing():
    for text in ("", "\n", "\r\n", " \t\n\n"):
        found = decode(text)
        assert (found.nodes, found.edges, found.num_records) == (None, None, 0)


def test_many_columns_and_slots_make_room():
    line = "1,-1,0,1," + ",".join(f"int8,1,{i % 100}" for i in range(1000))
    found = nodes_of(decode("\n".join([line] * 3)).nodes)
    assert found[2]["num_slots"] == 1000
    assert found[2]["slots"] == {i: ("numbers", "int8", 0, None, bytes([i % 100])) for i in range(1000)}


@given(
    values=st.lists(st.floats(), max_size=20), texts=st.sampled_from(["{!r}", "{:.17f}", "{:.4f}", "{:.1f}", "{:g}", "{:.0f}"])
)
@settings(deadline=None, max_examples=150)
def test_floats_are_pythons(values, texts):
    written = [texts.format(value) for value in [0.5, *values]]
    found = slot_values(f"1,-1,0,1,float64,{len(written)}," + ",".join(written))
    expected = [float(text) for text in written]
    assert np.array(found).tobytes() == np.where(np.isnan(expected), np.nan, expected).tobytes()


COMPLEX_TEXTS = st.text(st.sampled_from("0123456789.+-eEjJ() naif"), max_size=9) | st.complex_numbers().map(str)


@given(text=COMPLEX_TEXTS)
@settings(deadline=None, max_examples=300)
def test_complex_numbers_are_pythons(text):
    try:
        expected = complex(text)
    except ValueError:
        expected = None
    overflows = expected is not None and "inf" not in text.lower() and math.inf in (abs(expected.real), abs(expected.imag))
    if expected is None or overflows:
        message, _, _ = fault_of(f"1,-1,0,1,complex128,1,{text}\n")
        assert message == f"feature slot 0 must hold complex128 values, found {text!r}"
        return
    (found,) = slot_values(f"1,-1,0,1,complex128,1,{text}\n")
    same = [a == b or (a != a and b != b) for a, b in ((found.real, expected.real), (found.imag, expected.imag))]
    assert all(same)


# ------------------------------------------------------------------------------------------------------ what is wrong

ID = "an integer from 0 to 18446744073709551615"
TYPE = "an integer from 0 to 2147483647"
COLUMN = "correct the field"
VALUE = "correct the value, or the slot's dtype or length"
WORDS = (
    "bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float32, float64, complex64, complex128, binary"
)


def or_default(name: str) -> str:
    return f"correct the field, or name --default-{name} where the lines have no such column"


FAULTS = [
    ("x,-1,0,1", f"field 'node_id' must be {ID}, found 'x'", COLUMN, "x,-1"),
    ("x", f"field 'node_id' must be {ID}, found 'x'", COLUMN, "x"),
    ("-1,-1,0,1", f"field 'node_id' must be {ID}, found '-1'", COLUMN, "-1,-1"),
    ("nan,-1,0,1", f"field 'node_id' must be {ID}, found 'nan'", COLUMN, "nan"),
    ("1.0,-1,0,1", f"field 'node_id' must be {ID}, found '1.0'", COLUMN, "1.0"),
    ("1_0,-1,0,1", f"field 'node_id' must be {ID}, found '1_0'", COLUMN, "1_0"),
    ("18446744073709551616,0,1,1", f"field 'src' must be {ID}, found '18446744073709551616'", COLUMN, "18446744073709551616"),
    (",0,1,1", f"field 'src' must be {ID}, found ''", COLUMN, ",0"),
    ("5", "the line has only one column", "separate columns by ',', or name the delimiter with --delimiter", "\n"),
    ("5\t-1\t0\t1", f"field 'node_id' must be {ID}, found '5\\t-1\\t0\\t1'", COLUMN, "5\t"),
    ("5,-1", "field 'node_type' is missing: the line ends before it", or_default("node-type"), "\n"),
    ("5,-1,-1,1", f"field 'node_type' must be {TYPE}, found '-1'", or_default("node-type"), "-1,1"),
    ("5,-1,2147483648,1", f"field 'node_type' must be {TYPE}, found '2147483648'", or_default("node-type"), "2147483648"),
    ("5,-1,0", "field 'node_weight' is missing: the line ends before it", or_default("node-weight"), "\n"),
    ("5,-1,0,", "field 'node_weight' must be a number that fits float32, found ''", or_default("node-weight"), "\n"),
    ("5,-1,0,a", "field 'node_weight' must be a number that fits float32, found 'a'", or_default("node-weight"), "a"),
    ("5,-1,0,1e39", "field 'node_weight' must be a number that fits float32, found '1e39'", or_default("node-weight"), "1e39"),
    ("5,-2,3,1", f"field 'edge_type' must be {TYPE}, found '-2'", or_default("edge-type"), "-2"),
    ("5,a,3,1", f"field 'edge_type' must be {TYPE}, found 'a'", or_default("edge-type"), "a"),
    ("5,0", "field 'dst' is missing: the line ends before it", "complete the line", "\n"),
    ("5,0,-1,1", f"field 'dst' must be {ID}, found '-1'", COLUMN, "-1,1"),
    ("5,0,1,", "field 'edge_weight' must be a number that fits float32, found ''", or_default("edge-weight"), "\n"),
    ("5,0,1", "field 'edge_weight' is missing: the line ends before it", or_default("edge-weight"), "\n"),
    (
        "5,-1,0,1,float33,1,2",
        "feature slot 0: unknown dtype 'float33'",
        f"use one of {WORDS}, and check the length of the slot before",
        "float33",
    ),
    (
        "5,-1,0,1,int8,1,2,3",
        "feature slot 1: unknown dtype '3'",
        f"use one of {WORDS}, and check the length of the slot before",
        "3\n",
    ),
    ("5,-1,0,1,int8", "feature slot 0 (int8): its length is missing: the line ends before it", "complete the line", "\n"),
    ("5,-1,0,1,binary,1", "feature slot 0 (binary): its text is missing: the line ends before it", "complete the line", "\n"),
    (
        "5,-1,0,1,int8,1",
        "feature slot 0 (int8) needs 1 column for its length 1, the line has 0 left",
        "write as many values as the length says",
        "1\n",
    ),
    (
        "5,-1,0,1,int8,2,3",
        "feature slot 0 (int8) needs 2 columns for its length 2, the line has 1 left",
        "write as many values as the length says",
        "2,3",
    ),
    (
        "5,-1,0,1,int8,2/3,3",
        "feature slot 0 (int8) needs 8 columns for its length 2/3, the line has 1 left",
        "write as many values as the length says",
        "2/3",
    ),
    (
        "5,-1,0,1,int8,9223372036854775807/9223372036854775807,3",
        f"feature slot 0 (int8) needs {2**63 * (2**63 - 1)} columns for its length "
        "9223372036854775807/9223372036854775807, the line has 1 left",
        "write as many values as the length says",
        "9223372036854775807/",
    ),
    ("5,-1,0,1,int8,1,300", "feature slot 0 must hold int8 values (-128 to 127), found '300'", VALUE, "300"),
    ("5,-1,0,1,int8,0,uint8,1,-1", "feature slot 1 must hold uint8 values (0 to 255), found '-1'", VALUE, "-1\n"),
    ("5,-1,0,1,int8,2,1, x ", "feature slot 0 must hold int8 values (-128 to 127), found ' x '", VALUE, " x "),
    ("5,-1,0,1,int8,1,1.0", "feature slot 0 must hold int8 values (-128 to 127), found '1.0'", VALUE, "1.0"),
    ("5,-1,0,1,int8,1,", "feature slot 0 must hold int8 values (-128 to 127), found ''", VALUE, "\n"),
    (
        "5,-1,0,1,int64,1,9223372036854775808",
        "feature slot 0 must hold int64 values (-9223372036854775808 to 9223372036854775807), found '9223372036854775808'",
        VALUE,
        "9223372036854775808",
    ),
    (
        "5,-1,0,1,uint64,1,18446744073709551616",
        "feature slot 0 must hold uint64 values (0 to 18446744073709551615), found '18446744073709551616'",
        VALUE,
        "18446744073709551616",
    ),
    ("5,-1,0,1,float32,1,1e39", "feature slot 0 must hold float32 values, found '1e39'", VALUE, "1e39"),
    ("5,-1,0,1,float16,1,65520", "feature slot 0 must hold float16 values, found '65520'", VALUE, "65520"),
    ("5,-1,0,1,float64,1,1e309", "feature slot 0 must hold float64 values, found '1e309'", VALUE, "1e309"),
    ("5,-1,0,1,complex64,1,1e39j", "feature slot 0 must hold complex64 values, found '1e39j'", VALUE, "1e39j"),
    ("5,-1,0,1,bool,1,2", "feature slot 0 must hold bool values (0, 1, true, false), found '2'", VALUE, "2\n"),
    (
        "5,-1,0,1,int8,1/2,0,-9223372036854775809,3",
        "feature slot 0 must have integers from -2^63 to 2^63-1 as coordinates, found '-9223372036854775809'",
        VALUE,
        "-9223372036854775809,3",
    ),
    ("5,-1,0,1,int8,1/0,0,300", "feature slot 0 must hold int8 values (-128 to 127), found '300'", VALUE, "300"),
    (
        "5,-1,0,1,int8,-1,3",
        "feature slot 0 (int8): length must be n, or n/d for sparse values, found '-1'",
        "write the number of values, 0 for a missing slot",
        "-1,3",
    ),
    (
        "5,-1,0,1,int8,1/2/3,3",
        "feature slot 0 (int8): length must be n, or n/d for sparse values, found '1/2/3'",
        "write the number of values, 0 for a missing slot",
        "1/2/3",
    ),
    (
        "5,-1,0,1,int8,1/-1,3",
        "feature slot 0 (int8): length must be n, or n/d for sparse values, found '1/-1'",
        "write the number of values, 0 for a missing slot",
        "1/-1",
    ),
    (
        "5,-1,0,1,binary,2,a,b",
        "feature slot 0 (binary): length must be 1, or 0 for a missing slot, found '2'",
        "write each text as binary,1,text",
        "2,a",
    ),
    (
        "5,-1,0,1,binary,1/0,a,b",
        "feature slot 0 (binary): length must be 1, or 0 for a missing slot, found '1/0'",
        "write each text as binary,1,text",
        "1/0",
    ),
    (
        "5,-1,0,1,binary,1,a\\",
        "feature slot 0 (binary): the text ends with an open escape '\\\\'",
        "double the escape, or remove it",
        "a\\",
    ),
    (
        "5,-1,0,1,, ,x,1",
        "feature slot 0: a blank dtype ends the features, but 'x' follows",
        "remove what follows, or write length 0 to skip a slot",
        "x,1",
    ),
]


@pytest.mark.parametrize(("line", "message", "fix", "blamed"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_what_is_wrong_is_said(line, message, fix, blamed):
    # A whole line before, a faulty one behind: neither changes what is said.
    found = fault_of(f"1,-1,0,1,int8,1,1\n{line}\r\ny,y,y\n")
    if blamed == "\n":
        blamed = "\r\n"
    assert found[:2] == (message, fix)
    assert found[2].startswith(blamed.replace("\n", "\r\n") if not blamed.startswith("\r") else blamed)


@pytest.mark.parametrize(
    "word", ["longdouble", "float128", "datetime64[s]", "m8", "object", "O", "U3", "S", "a", "V4", "str", "f4,i4", "é"]
)
def test_dtypes_that_are_none(word):
    message, _, _ = fault_of(f"1;-1;0;1;{word};1;1", delimiter=";")
    assert message == f"feature slot 0: unknown dtype {word!r}"


def test_times_that_are_none():
    assert fault_of("1,-1,0,1,x,0\n", temporal=True)[0] == "field 'created_at' must be an integer, found 'x'"
    assert fault_of("1,0,2,1,5,1.5\n", temporal=True)[0] == "field 'removed_at' must be an integer, found '1.5'"
    message, fix, _ = fault_of("1,0,2,1,5\n", temporal=True)
    assert (message, fix) == ("field 'removed_at' is missing: the line ends before it", or_default("removed-at"))


def test_text_that_is_not_utf8():
    message, fix, blamed = fault_of(b"1,-1,0,1,binary,1,ok\n2,-1,0,1,binary,1,a\xff\n")
    assert (message, fix) == ("feature slot 0 must hold UTF-8 text, found 'a\\\\xff'", "write the file in UTF-8")
    assert blamed == "a\ufffd\n"
    # Two halves of one character, in two texts: each is wrong.
    assert fault_of(b"1,-1,0,1,binary,1,a\xc3\n2,-1,0,1,binary,1,\xa9\n")[0].endswith("found 'a\\\\xc3'")


def test_long_values_are_shown_cut():
    message, _, _ = fault_of("1,-1,0,1,int8,1," + "9" * 100)
    assert message == f"feature slot 0 must hold int8 values (-128 to 127), found '{'9' * 60}…'"


def test_the_first_fault_of_the_block_wins():
    # The kernel sees the missing weight at once, the value of the line before only later.
    assert fault_of("1,-1,0,1,int8,1,x\n2,-1,0\n")[0] == "feature slot 0 must hold int8 values (-128 to 127), found 'x'"
    assert fault_of("1,-1,0,1,int8,1,1,int16,1,y\n2,-1,0,1,int8,1,x\n")[0].endswith("found 'y'")
    assert fault_of("1,-1,0,1,int8,1/0,0,z\n2,-1,0,1,int8,1/0,y,1\n")[0].endswith("found 'z'")
    assert fault_of("1,-1,0,1,int8,1,q,binary,1,\\\n")[0].endswith("found 'q'")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"delimiter": ""}, "--delimiter must be one or more characters without line breaks, found ''"),
        ({"binary_escape": "\n"}, "--binary-escape must be one or more characters without line breaks, found '\\n'"),
        (
            {"length_delimiter": ","},
            "--delimiter ',', --length-delimiter ',' and --binary-escape '\\\\' must differ from each other",
        ),
        ({"weight_dtype": "float16"}, "--weight-dtype must be float32 or float64, found 'float16'"),
        ({"default_node_type": -1}, "--default-node-type must be an integer from 0 to 2147483647, found -1"),
        ({"default_edge_type": "1"}, "--default-edge-type must be an integer from 0 to 2147483647, found '1'"),
        ({"default_edge_weight": "1"}, "--default-edge-weight must be a number, found '1'"),
        ({"default_node_weight": 1e39}, "--default-node-weight 1e+39 does not fit float32"),
        (
            {"default_created_at": 2**63},
            "--default-created-at must be an integer from -9223372036854775808 to 9223372036854775807, found 9223372036854775808",
        ),
        ({"default_node_feature_lens": "3"}, "--default-node-feature-lens needs --default-node-feature-types"),
        (
            {"default_edge_feature_types": "int8,-", "default_edge_feature_lens": "3"},
            "--default-edge-feature-types has 2 entries and --default-edge-feature-lens has 1",
        ),
        ({"default_node_feature_types": "int9"}, "--default-node-feature-types: unknown dtype 'int9'"),
        (
            {"default_node_feature_types": "int8", "default_node_feature_lens": "-1"},
            "--default-node-feature-lens: '-1' is no feature length",
        ),
        (
            {"default_node_feature_types": "int8", "default_node_feature_lens": "1/2/3"},
            "--default-node-feature-lens: '1/2/3' is no feature length",
        ),
        (
            {"default_node_feature_types": "binary", "default_node_feature_lens": "2"},
            "--default-node-feature-lens: '2' is no length of a binary feature",
        ),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(UsageError) as caught:
        EdgeListDecoder(**options)
    assert caught.value.message == message


# --------------------------------------------------------------------------------------------------------------- sniff


@pytest.mark.parametrize(
    ("head", "confidence", "flags"),
    [
        ("0,-1,0,1.0\n0,0,1,1.0\n", 0.95, ("--format", "edgelist")),
        ("0,-1,0,1.0,float32,1,2\n0,0,1,1.0,\n", 0.95, ("--format", "edgelist")),
        ("0;-1;0;1.0;float32;1;2\n", 0.95, ("--format", "edgelist", "--delimiter", ";")),
        (
            "0\t-1\t0\t1.0\t5\t-1\n0\t0\t1\t1.0\t5\t-1\tint8\t0\n",
            0.95,
            ("--format", "edgelist", "--delimiter", "\t", "--temporal"),
        ),
        ("0,-1,3\n", 0.5, ("--format", "edgelist")),
        ("0,0,1,1.0,int8,1,5\n", 0.8, ("--format", "edgelist")),
        ("0,0,1,1.0\n", 0.3, ("--format", "edgelist")),
        ("0,1\n", None, None),
        ("0\t1\t2.0\t5\n", None, None),
        ('{"node_id": 1}\n', None, None),
        ("", None, None),
        ("0,-1,0,1.0\nx,y\n", None, None),
    ],
)
def test_sniff(head, confidence, flags):
    for complete in (True, False):
        bid = bid_of("edgelist", SniffedFile("x", head.encode(), complete))
        assert (bid and bid.confidence, bid and bid.flags) == (confidence, flags)
        if bid is not None and confidence != 0.5:
            EdgeListDecoder(**bid.options).decode(TextBlock(head.encode(), Span("x")))


# ---------------------------------------------------------------------------------------------------------------- fuzz

SEEDS = ["5,-1,0,1,int8,2,3,4,binary,1,a\\,b,float32,1/2,3,4,5\n", "5,0,6,1,bool,1,true,complex64,1,1+2j,uint64,1/0,2,3\n"]


@st.composite
def mutated(draw):
    data = bytearray("".join(draw(st.lists(st.sampled_from(SEEDS), min_size=1, max_size=3))).encode())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        piece = draw(st.binary(max_size=2) | st.sampled_from([b",", b"\\", b"\n", b"/", b"-", b"9" * 20, b"\r", b'"']))
        data[at : at + draw(st.integers(0, 3))] = piece
    return bytes(data)


@given(data=mutated() | st.binary(max_size=60) | st.text("0123456789,-./\\\nint8float32binary", max_size=60).map(str.encode))
@settings(deadline=None, max_examples=300)
def test_only_decode_errors_come_out(data):
    for options in ({}, {"temporal": True}, DEFAULTS, {"delimiter": "-", "length_delimiter": "1"}):
        try:
            found = decode(data, **options)
        except DecodeError as error:
            assert 0 <= error.at <= len(data)
        else:
            lines = [line for line in data.split(b"\n") if line.removesuffix(b"\r").strip(b" \t")]
            assert found.num_records == len(lines)


@given(data=mutated())
@settings(deadline=None, max_examples=200)
def test_what_is_accepted_is_what_the_naive_reader_reads(data):
    try:
        found = decode(data)
    except DecodeError:
        return
    lines = [line.removesuffix("\r") for line in data.decode().split("\n")]
    expected = []
    for line in lines:
        if line.strip(" \t"):
            # Blank columns behind a blank dtype are nothing; the naive reader has one of them.
            nodes, edges = edgelist_line(re.sub(r",[ \t]*(,[ \t]*)+$", ",", line), {})
            expected += nodes + edges
    check(found, expected)


@pytest.mark.heavy
def test_no_kernel_leaves_its_arrays(pytestconfig):
    """The kernels with every index checked, on this file's own lines."""
    if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        pytest.skip("this is that run")
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(pytestconfig.cache.mkdir("numba_boundscheck"))}
    chosen = "test_what_is_wrong or test_only_decode or test_many_columns or test_texts or test_defaults"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen, str(Path(__file__))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
