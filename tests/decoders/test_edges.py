"""Plain edge lists as text: against a naive reader, and every error to the letter."""

import csv
import io
import itertools
import math
import os
import re
import subprocess
import sys
import textwrap

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.decoders.registry import bid_of
from graphprep.model.errors import DataError, DecodeError, UsageError
from graphprep.model.protocols import Decoder, Sniffed, SniffedFile, TextBlock
from graphprep.model.rows import Relation
from graphprep.storage.read.spans import place_of

relaxed = settings(deadline=None, max_examples=120)


class Files:
    """Just enough storage: files in a dict."""

    record_bytes = 1 << 28

    def __init__(self, files):
        self.files = files

    def head(self, url, num_bytes):
        return self.files[url][:num_bytes].removeprefix(b"\xef\xbb\xbf")

    def open(self, url):
        return io.BytesIO(self.files[url])


def plan(decoder, *files):
    """Plan files given as their contents; they are called 0.txt, 1.txt …"""
    contents = {f"{i}.txt": data if isinstance(data, bytes) else data.encode() for i, data in enumerate(files)}
    return decoder.plan(Files(contents), list(contents))


def cut(data, sizes):
    """Cut bytes into blocks of whole lines, each of about the next of ``sizes``."""
    blocks = []
    at, line = 0, 1
    for i in range(len(data) + 1):
        if at == len(data):
            break
        end = data.find(b"\n", min(at + sizes[i % len(sizes)], len(data)) - 1) + 1 or len(data)
        blocks.append((data[at:end], line))
        line += data.count(b"\n", at, end)
        at = end
    return blocks


def decode(decoder, text, sizes=(1 << 20,), places=False):
    """Decode a text in blocks, as the decode stage would. Returns src, dst, and {column: (dtype, {row: value})}."""
    data = text if isinstance(text, bytes) else text.encode()
    span = plan(decoder, data).spans[0]
    while True:
        batches = [decoder.decode(TextBlock(part, span, line, line == 1), places) for part, line in cut(data, sizes)]
        families = {}
        for batch in batches:
            for chunk in batch.edges.columns:
                if chunk.rows.size or chunk.key.family == "binary":
                    families.setdefault(chunk.key.name, set()).add(chunk.key.family)
        mixed = {name: "binary" for name, found in families.items() if len(found) > 1}
        if not mixed:
            return join(batches)
        decoder = decoder.widen(mixed)


def join(batches):
    src, dst, columns = [], [], {}
    for batch in batches:
        edges = batch.edges
        assert batch.num_records == edges.num_rows == edges.dst.size == edges.relations.size
        assert edges.src.dtype == edges.dst.dtype
        assert edges.src.dtype in (np.uint32, np.uint64)
        for chunk in edges.columns:
            join_chunk(columns.setdefault((chunk.key.name, chunk.key.role), {}), chunk, len(src))
        src += edges.src.tolist()
        dst += edges.dst.tolist()
    return src, dst, {key: (widest(found), found) for key, found in columns.items()}


def join_chunk(found, chunk, offset):
    assert chunk.rows.dtype == chunk.counts.dtype == np.int64
    assert (np.diff(chunk.rows) > 0).all()
    stops = np.cumsum(chunk.counts)
    assert (stops[-1] if stops.size else 0) == chunk.values.size
    for row, stop, count in zip(chunk.rows, stops, chunk.counts, strict=True):
        value = chunk.values[stop - count : stop]
        if chunk.key.family == "binary":
            assert chunk.values.dtype == np.uint8
            found[offset + int(row)] = ("binary", value.tobytes())
        else:
            assert chunk.item_shape == () and count == 1 and chunk.values.dtype.name == chunk.key.dtype
            found[offset + int(row)] = (chunk.key.dtype, value[0].item())
    return found


def widest(found):
    dtypes = {dtype for dtype, _ in found.values()}
    return "binary" if "binary" in dtypes else "float64" if "float64" in dtypes else (dtypes or {"int64"}).pop()


# A naive reader: the csv module, str.split, int() and float().


def naive(text, delimiter, has_header, options):
    rows = []
    for line in (line.removesuffix("\r") for line in text.split("\n")):
        if not line.strip(" \t") or line.lstrip(" \t")[0] in "#%":
            continue
        if delimiter is None:
            rows.append(re.split("[ \t]+", line.strip(" \t")))
        elif len(delimiter) > 1:
            rows.append(line.split(delimiter))
        else:
            rows.append(next(csv.reader([line], delimiter=delimiter, strict=True)))
    names = [f"col_{i}" for i in range(len(rows[0]) if rows else 0)]
    if has_header:
        names = [name.strip(" \t") for name in rows.pop(0)]
    base = options.get("index_base", 0)
    src = [int(row[0]) - base for row in rows]
    dst = [int(row[1]) - base for row in rows]
    columns = {}
    for position, name in enumerate(names[2:], 2):
        cells = [row[position] for row in rows]
        if options.get("weight_col") in (name, str(position)):
            values = {i: ("float32", np.float32(float(cell)).item()) for i, cell in enumerate(cells) if cell.strip(" \t")}
            columns["weight", "weight"] = ("float32" if values else "int64", values)
        else:
            columns[name, None] = naive_column(cells)
    return src, dst, columns


def naive_column(cells):
    full = {i: cell for i, cell in enumerate(cells) if cell.strip(" \t")}
    if all(is_int64(cell) for cell in full.values()):
        return "int64", {i: ("int64", int(cell)) for i, cell in full.items()}
    if all(is_float64(cell) for cell in full.values()):
        return "float64", {i: ("float64", float(cell)) for i, cell in full.items()}
    return "binary", {i: ("binary", cell.encode()) for i, cell in full.items()}


def is_int64(cell):
    text = cell.strip(" \t")
    return bool(re.fullmatch("[+-]?[0-9]+", text)) and -(2**63) <= int(text) < 2**63 and not re.fullmatch("-0+", text)


def is_float64(cell):
    try:
        return "_" not in cell and cell.isascii() and (math.isfinite(float(cell)) or bool(re.search("inf|nan", cell, re.I)))
    except ValueError:
        return False


def same(left, right):
    """Compare decoded graphs; numbers by value and sign, NaN equal to NaN, int64 in a float64 column as its float."""
    assert left[:2] == right[:2]
    assert left[2].keys() == right[2].keys()
    for key, (dtype, found) in left[2].items():
        want_dtype, want = right[2][key]
        assert (dtype, found.keys()) == (want_dtype, want.keys()), key
        for row in found:
            a, b = found[row][1], want[row][1]
            if dtype.startswith("float"):
                a, b = float(a), float(b)
                assert (math.copysign(1, a) == math.copysign(1, b) and a == b) or (math.isnan(a) and math.isnan(b))
            else:
                assert a == b


ids = st.integers(0, 99) | st.integers(0, 2**64 - 1)
weights = st.just("") | st.integers(-99, 99).map(str) | st.floats(width=32).map(repr)
letters = st.characters(exclude_characters="\n\r", exclude_categories=["Cs", "Cc"])
columns = {
    "int": st.just("") | st.just(" ") | st.integers(-(2**63), 2**63 - 1).map(str) | st.just("+7"),
    "float": st.sampled_from(["", "-0", "1", "7.25", "1e300", "nan", "-inf", "99999999999999999999", " .5 "])
    | st.floats().map(repr),
    "text": st.sampled_from(["", " ", "a", ' "', '"', '""', "1", "-0", "1e999", " b ", "é☃", "a,b", "#x"])
    | st.text(letters, max_size=6),
    "empty": st.just(""),
}
words = st.text(st.characters(codec="utf-8", exclude_categories=["Z", "C"], exclude_characters='"'), min_size=1, max_size=5)


@st.composite
def edge_lists(draw):
    """Draw a text with its delimiter (None: blanks), whether it has a header, and options."""
    delimiter = draw(st.sampled_from([",", "\t", None, ";", "|", "::", "§"]))
    kinds = draw(st.lists(st.sampled_from(["weight", *columns]), max_size=3).filter(lambda kinds: kinds.count("weight") < 2))
    if delimiter is None or delimiter == "::":
        kinds = ["float" if kind in ("text", "empty") else kind for kind in kinds]
    options = {}
    if "weight" in kinds:
        options["weight_col"] = str(2 + kinds.index("weight"))
    base = draw(st.sampled_from([0, 0, 1]))
    if base:
        options["index_base"] = 1
    rows = []
    for _ in range(draw(st.integers(0, 8))):
        row = [str(min(draw(ids) + base, 2**64 - 1)), str(min(draw(ids) + base, 2**64 - 1))]
        row += [draw(weights if kind == "weight" else columns[kind]) for kind in kinds]
        rows.append([cell.strip() or "0" for cell in row] if delimiter is None else row)
    header = draw(st.booleans()) and rows
    end = draw(st.sampled_from(["\n", "\r\n"]))
    lines = [write_line(draw, row, delimiter) for row in rows]
    if header:
        lines.insert(0, write_line(draw, [f"name{i}" for i in range(2 + len(kinds))], delimiter))
    for _ in range(draw(st.integers(0, 3))):
        noise = draw(st.sampled_from(["", " ", "# 1,2", "  % x", "\t", "#", '# "']))
        lines.insert(draw(st.integers(0, len(lines))), noise)
    text = end.join(lines) + (end if draw(st.booleans()) else "")
    if delimiter in (";", "|", "::", "§") or len(rows) == 0:
        options["delimiter"] = delimiter or " "
    elif draw(st.booleans()):
        options["delimiter"] = {None: " ", "\t": "\\t"}.get(delimiter, delimiter)
    return text, delimiter, bool(header), options


def write_line(draw, row, delimiter):
    if delimiter is None:
        gaps = st.sampled_from([" ", "\t", "  ", " \t"])
        line = "".join(cell + draw(gaps) for cell in row)
        return line if draw(st.booleans()) else line.rstrip(" \t")
    if delimiter == "::":
        return delimiter.join(row)
    return delimiter.join(write_cell(draw, cell, delimiter) for cell in row)


def write_cell(draw, cell, delimiter):
    if delimiter in cell or '"' in cell or draw(st.integers(0, 5)) == 0:
        return '"' + cell.replace('"', '""') + '"'
    return f" {cell} " if cell.isdigit() and draw(st.integers(0, 5)) == 0 else cell


def detectable(text, delimiter, header, options):
    """Say whether the rule finds the delimiter: not where a tab lies among blanks, or a comma in a text between tabs."""
    lines = [line for line in text.split("\n") if line.strip(" \t\r") and line.lstrip(" \t")[0] not in "#%"]
    first = re.sub('"[^"]*"', "", "".join(lines[header : header + 1]))
    return "delimiter" in options or delimiter == ("," if "," in first else "\t" if "\t" in first else None)


@relaxed
@given(edge_lists(), st.lists(st.integers(1, 60), min_size=1, max_size=4), st.booleans())
def test_agrees_with_the_naive_reader_for_any_cut_into_blocks(drawn, sizes, places):
    text, delimiter, header, options = drawn
    if not detectable(text, delimiter, header, options):
        options = options | {"delimiter": delimiter or " "}
    decoder = EdgesDecoder(**options)
    want = naive(text, delimiter, header, options)
    if not want[0]:
        return
    same(decode(decoder, text, places=places), want)
    same(decode(decoder, text, sizes, places=places), want)


@relaxed
@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1), st.floats(width=32)), min_size=1, max_size=9),
    st.sampled_from([" ", ",", "\t"]),
    st.booleans(),
    st.lists(st.integers(1, 60), min_size=1, max_size=4),
)
def test_plain_lines_round_trip(rows, delimiter, weighted, sizes):
    lines = [delimiter.join([str(src), str(dst)] + ([repr(weight)] if weighted else [])) for src, dst, weight in rows]
    options = {"weight_col": "2"} if weighted else {}
    src, dst, found = decode(EdgesDecoder(**options), "\n".join(lines), sizes)
    assert src == [row[0] for row in rows]
    assert dst == [row[1] for row in rows]
    if weighted:
        values = [value for _, value in found["weight", "weight"][1].values()]
        np.testing.assert_array_equal(values, [row[2] for row in rows])


def test_what_a_decoder_is():
    assert isinstance(EdgesDecoder(), Decoder)


def test_relations_and_types():
    def sources(relation):
        found = plan(EdgesDecoder(relation=relation), "1 2\n")
        return [node.name for node in found.node_types], found.edge_types

    assert sources(None) == (["_N"], (Relation("_E", "_N", "_N"),))
    assert sources("likes") == (["_N"], (Relation("likes", "_N", "_N"),))
    assert sources("user:buys:item") == (["user", "item"], (Relation("buys", "user", "item"),))
    assert sources("b:c%3Ad:a") == (["b", "a"], (Relation("c:d", "b", "a"),))
    assert sources("a:b:a") == (["a"], (Relation("b", "a", "a"),))
    assert plan(EdgesDecoder(), "1 2\n").nodes == "ends"


def test_places_point_at_the_fields():
    data = b'# x\n 10,20\n\n"5", 6\r\n'
    decoder = EdgesDecoder()
    rows = decoder.decode(TextBlock(data, plan(decoder, data).spans[0]), places=True)
    assert [data[at : at + 2] for at in rows.edges.at_src] == [b" 1", b'5"']
    assert rows.edges.at_dst.tolist() == [8, 16]
    assert rows.edges.record.tolist() == [-1, -1]


def test_columns_by_name_position_and_default():
    text = "when,to,from,note,gain\n5,2,1,hello,0.5\n,4,3,,\n"
    decoder = EdgesDecoder(src_col="from", dst_col="1", weight_col="gain", time_col="col_0")
    assert decode(decoder, text) == (
        [1, 3],
        [2, 4],
        {
            ("weight", "weight"): ("float32", {0: ("float32", 0.5)}),
            ("time", "time"): ("int64", {0: ("int64", 5)}),
            ("note", None): ("binary", {0: ("binary", b"hello")}),
        },
    )


def test_a_column_called_weight_is_ordinary():
    assert decode(EdgesDecoder(), "a,b,weight\n1,2,3\n")[2] == {("weight", None): ("int64", {0: ("int64", 3)})}


def test_columns_without_values_exist():
    block = TextBlock(b"a,b,c,d\n1,2,,\n", plan(EdgesDecoder(), "a,b,c,d\n").spans[0])
    chunks = EdgesDecoder(weight_col="d", columns=("c=uint8",)).decode(block).edges.columns
    assert [(chunk.key.name, chunk.key.dtype, chunk.rows.size, chunk.values.dtype) for chunk in chunks] == [
        ("c", "uint8", 0, np.uint8),
        ("d", "int64", 0, np.int64),
    ]


@pytest.mark.parametrize(
    ("dtype", "cells", "want"),
    [
        ("int8", "-128 127 +1 -0", [-128, 127, 1, 0]),
        ("uint64", "18446744073709551615 0 1 -0", [2**64 - 1, 0, 1, 0]),
        ("bool", "true 0 FALSE 1", [True, False, False, True]),
        ("float16", "0.1 65519 inf 3", [np.float16(0.1), 65504.0, math.inf, 3.0]),
        ("float", "0.1 -0 1e-400 3", [0.1, -0.0, 0.0, 3.0]),
        ("binary", "1 x nan -0", [b"1", b"x", b"nan", b"-0"]),
    ],
)
def test_declared_dtypes(dtype, cells, want):
    text = "".join(f"1 2 {cell}\n" for cell in cells.split())
    found = decode(EdgesDecoder(columns=(f"col_2={dtype}",)), text)[2]["col_2", None][1]
    assert [value for _, value in found.values()] == want
    assert {name for name, _ in found.values()} == {np.dtype(dtype).name if dtype != "binary" else "binary"}


@pytest.mark.parametrize(
    ("unit", "cell", "want"),
    [
        (None, "5.0", 5),
        (None, "1e3", 1000),
        ("s", "5.0", 5),
        ("us", "1307526243.273450", 1307526243273450),
        ("ns", "0.1", 100000000),
        ("ms", "-7", -7000),
    ],
)
def test_times(unit, cell, want):
    assert decode(EdgesDecoder(time_col="2", time_unit=unit), f"1 2 {cell}\n")[2]["time", "time"][1] == {0: ("int64", want)}


DIGITS_TIP = "write IDs as decimal digits, or declare string IDs with --id-type string"
HEADER_TIP = DIGITS_TIP + "; where this line names the columns, pass --header yes"
SIGNED_TIP = "give every node an ID of 0 or more, or declare signed IDs with --id-type int"
WIDTH_TIP = "give every line as many columns as the first, empty ones where there is no value"
QUOTE_TIP = "write the whole field in double quotes and double those inside it"
REPAIR_TIP = "repair the field, or declare another dtype with --column"


@pytest.mark.parametrize(
    ("text", "options", "message", "place", "fix"),
    [
        ("1 2\n3 x\n", {}, "field 'dst' must be an integer, found 'x'", "2:3", DIGITS_TIP),
        ("1 2\n3 5.0\n", {}, "field 'dst' must be an integer, found '5.0'", "2:3", DIGITS_TIP),
        ("1 2\n3 nan\n", {}, "field 'dst' must be an integer, found 'nan'", "2:3", DIGITS_TIP),
        ("1 2\n-1 2\n", {}, "field 'src' must not be negative, found '-1'", "2:1", SIGNED_TIP),
        (
            "1,2\n3,18446744073709551616\n",
            {},
            "field 'dst' must be below 2^64, found '18446744073709551616'",
            "2:3",
            "give every node an ID below 2^64, or declare string IDs with --id-type string",
        ),
        ("1,2\n,2\n", {}, "field 'src' is empty", "2:1", "give every edge a source and a destination"),
        (
            "1,2\n0,2\n",
            {"index_base": 1},
            "field 'src' must be at least 1, found '0'",
            "2:1",
            "leave out --index-base where IDs count from 0",
        ),
        ("1 2\n3 4 5\n", {}, "expected 2 columns, found 3", "2:5", WIDTH_TIP),
        ("1 2\n# x\n\n3\n", {}, "expected 2 columns, found 1", "4:2", WIDTH_TIP),
        ("1,2,3\n3,4\n", {}, "expected 3 columns, found 2", "2:4", WIDTH_TIP),
        ("1,2,x\n3,4,x,5\n", {}, "expected 3 columns, found 4", "2:7", WIDTH_TIP),
        (
            '1,2,x\n3,4,"x\n',
            {},
            "a quote does not close on its line",
            "2:5",
            "close it and double the quotes inside it; --quote allows line breaks, --no-quote takes quotes as they are",
        ),
        ('1,2,x\n3,4,"x"y\n', {}, "text follows a closing quote", "2:8", QUOTE_TIP),
        ('1,2,x\n3,4,x"y\n', {}, "a quote inside an unquoted field", "2:6", QUOTE_TIP),
        (
            "1 2 1\n3 4 x\n",
            {"weight_col": "2"},
            "field 'weight' must be a number, found 'x'",
            "2:5",
            "repair the field, or leave it empty",
        ),
        (
            "1 2 1\n3 4 1e39\n",
            {"weight_col": "2"},
            "field 'weight' is too large for float32, found '1e39'",
            "2:5",
            "pass --weight-dtype float64",
        ),
        (
            "1 2 1\n3 4 -1e309\n",
            {"weight_col": "2", "weight_dtype": "float64"},
            "field 'weight' is too large for float64, found '-1e309'",
            "2:5",
            "scale the weights",
        ),
        (
            "1 2 5.5\n",
            {"time_col": "2"},
            "field 'time' must be a whole number, found '5.5'",
            "1:5",
            "pass --time-unit ms, us or ns to multiply times in seconds",
        ),
        (
            "1 2 0.0005\n",
            {"time_col": "2", "time_unit": "ms"},
            "field 'time' is finer than one ms, found '0.0005'",
            "1:5",
            "take a finer --time-unit: ms, us or ns",
        ),
        (
            "1 2 9223372036854775808\n",
            {"time_col": "2"},
            "field 'time' does not fit int64, found '9223372036854775808'",
            "1:5",
            "take a coarser --time-unit, or repair the field",
        ),
        (
            "1 2 inf\n",
            {"time_col": "2"},
            "field 'time' must be a number, found 'inf'",
            "1:5",
            "repair the field or leave it empty; times that are text are read in tables: --edges SRC:REL:DST=FILE, "
            "with --time-col COL --column 'COL=timestamp[s]'",
        ),
        (
            "a,b,c\n1,2,300\n",
            {"columns": ("c=uint8",)},
            "field 'c' does not fit uint8, found '300'",
            "2:5",
            "declare a wider dtype: --column c=…",
        ),
        (
            "a,b,c\n1,2,-1\n",
            {"columns": ("c=uint8",)},
            "field 'c' does not fit uint8, found '-1'",
            "2:5",
            "declare a wider dtype: --column c=…",
        ),
        ("1,2,1.5\n", {"columns": ("col_2=int32",)}, "field 'col_2' must be an integer, found '1.5'", "1:5", REPAIR_TIP),
        ("1,2,x\n", {"columns": ("2=float64",)}, "field 'col_2' must be a number, found 'x'", "1:5", REPAIR_TIP),
        (
            "1,2,70000\n",
            {"columns": ("2=float16",)},
            "field 'col_2' does not fit float16, found '70000'",
            "1:5",
            "declare a wider dtype: --column col_2=…",
        ),
        ("1,2,yes\n", {"columns": ("2=bool",)}, "field 'col_2' must be 0, 1, true or false, found 'yes'", "1:5", REPAIR_TIP),
        (
            b"1,2,\xff\n",
            {},
            "field 'col_2' is not UTF-8, found '\ufffd'",
            "1:5",
            "convert the file to UTF-8, or leave the column out",
        ),
        (
            b"1,2,\xed\xa0\x80\n",
            {"columns": ("2=binary",)},
            "field 'col_2' is not UTF-8, found '\ufffd\ufffd\ufffd'",
            "1:5",
            "convert the file to UTF-8, or leave the column out",
        ),
        # The first faulty record counts, whatever is wrong with it; in a record, the first field.
        ("1,2,3\n4,x,y\n5\n", {"weight_col": "2"}, "field 'dst' must be an integer, found 'x'", "2:3", DIGITS_TIP),
        ("1,2,3\n5\n4,x,y\n", {"weight_col": "2"}, "expected 3 columns, found 1", "2:2", WIDTH_TIP),
        (
            "1,2,3\n1,2,y\nx,2,3\n",
            {"weight_col": "2"},
            "field 'weight' must be a number, found 'y'",
            "2:5",
            "repair the field, or leave it empty",
        ),
        ("é,b\n1,2\n", {"header": "no"}, "field 'src' must be an integer, found 'é'", "1:1", HEADER_TIP),
        ("1,2\n" + "9" * 70 + "x,3", {}, f"field 'src' must be an integer, found '{'9' * 60}…'", "2:1", DIGITS_TIP),
    ],
)
def test_faulty_records(text, options, message, place, fix):
    data = text if isinstance(text, bytes) else text.encode()
    decoder = EdgesDecoder(**options)
    block = TextBlock(data, plan(decoder, data).spans[0])
    with pytest.raises(DecodeError) as caught:
        decoder.decode(block)
    assert (caught.value.message, caught.value.fix) == (message, fix)
    assert place_of(block, caught.value.at) == f"0.txt:{place}"


@pytest.mark.parametrize(
    ("files", "options", "kind", "text"),
    [
        (
            ["1 2\n"],
            {"weight_col": "w"},
            UsageError,
            "--weight-col w: 0.txt has no such column\n"
            "  fix: its columns have positions 0 to 1, and no names; where its first line names them, pass --header yes",
        ),
        (
            ["a,b\n1,2\n"],
            {"weight_col": "2"},
            UsageError,
            "--weight-col 2: 0.txt has no such column\n  fix: its columns have positions 0 to 1, and a, b",
        ),
        (
            ["a,b,a\n1,2,3\n"],
            {"weight_col": "a"},
            UsageError,
            "--weight-col a: 0.txt has several columns of this name\n  fix: give the column's position, from 0",
        ),
        (
            ["1 2 3\n"],
            {"src_col": "1"},
            UsageError,
            "--dst-col 1: this column of 0.txt is the source already\n"
            "  fix: use each column once; without flags, column 0 is the source and column 1 the destination",
        ),
        (
            ["a,b,c\n1,2,3\n"],
            {"columns": ("c=int8",), "drop_columns": ("c",)},
            UsageError,
            "--drop-column c: this column of 0.txt is a feature already\n"
            "  fix: use each column once; without flags, column 0 is the source and column 1 the destination",
        ),
        (
            ["\n# x\n7\n8\n"],
            {},
            DataError,
            "0.txt:3:1: 1 column; an edge needs two\n"
            "  fix: name the character between the columns with --delimiter, or the format with --format",
        ),
        (
            ["ID\n8\n"],
            {},
            DataError,
            "0.txt:1:1: 1 column, found 'ID'; an edge needs two\n"
            "  fix: name the character between the columns with --delimiter, or the format with --format",
        ),
        (
            ["1,2\n3,\x004\n"],
            {},
            DataError,
            "0.txt:2:3: this is binary data, found byte 0x00\n  fix: give text or Parquet, or name the format with --format",
        ),
        (
            ["%%MatrixMarket matrix coordinate real general\n% c\n3 3 2\n1 2 1\n"],
            {},
            DataError,
            "0.txt:1:1: this is a Matrix Market file, not an edge list\n  fix: convert it with --format mtx",
        ),
        (
            ["a,b\n1,2\n", "a,c\n1,2\n"],
            {},
            DataError,
            "1.txt:1:1: the header differs from that of 0.txt\n  fix: convert files with other columns on their own",
        ),
        (
            ["a,b,c\n1,2,3\n", "1,2\n"],
            {},
            DataError,
            "1.txt:1:1: 2 columns, but 0.txt has 3\n  fix: convert files with other columns on their own",
        ),
        (
            ["1,2\n", "1,2,3\n"],
            {},
            DataError,
            "1.txt:1:1: its further columns are col_2, but those of 0.txt are none\n"
            "  fix: convert files with other columns on their own, or leave columns out with --drop-column",
        ),
        (
            ["a,b,c,c\n1,2,3,4\n"],
            {},
            DataError,
            "0.txt:1:1: two columns are called 'c'\n  fix: rename one, or pass --drop-column with its position",
        ),
        (
            ["a,b,w,weight\n1,2,3,4\n"],
            {"weight_col": "w"},
            DataError,
            "0.txt:1:1: two columns are called 'weight'\n  fix: rename one, or pass --drop-column with its position",
        ),
        (
            ["a,b,\n1,2,3\n"],
            {},
            DataError,
            "0.txt:1:1: a column has no name\n  fix: name it, or pass --drop-column with its position",
        ),
        (
            ['a,"b\n1,2\n'],
            {},
            DataError,
            "0.txt:1:3: a quote does not close, or stands inside a field\n"
            "  fix: write the whole field in double quotes and double those inside it; --quote allows line breaks, --no-quote takes quotes as they are",
        ),
        (
            [b"a,\xff\n1,2\n"],
            {},
            DataError,
            "0.txt:1:1: the header is not UTF-8: invalid start byte\n  fix: convert the file to UTF-8",
        ),
    ],
)
def test_faulty_files(files, options, kind, text):
    with pytest.raises(DataError if kind is DataError else UsageError) as caught:
        plan(EdgesDecoder(**options), *files)
    assert type(caught.value) is kind
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"delimiter": ""}, "--delimiter '' cannot separate columns\n  fix: give characters such as ',' or '\\t'"),
        ({"header": "maybe"}, "--header: no choice named 'maybe'\n  fix: use one of auto, yes, no"),
        ({"index_base": 2}, "--index-base: no choice named 2\n  fix: use one of 0, 1"),
        ({"time_unit": "h", "time_col": "2"}, "--time-unit: no choice named 'h'\n  fix: use one of s, ms, us, ns"),
        ({"time_unit": "ms"}, "--time-unit needs --time-col\n  fix: name the column of the time with --time-col"),
        ({"weight_dtype": "int8"}, "--weight-dtype: no choice named 'int8'\n  fix: use one of float32, float64"),
        ({"relation_as": "row"}, "--relation-as: no choice named 'row'\n  fix: use one of types, column"),
        (
            {"relation": "a:b"},
            "--relation: expected 'source:relation:destination', found 'a:b'\n"
            "  fix: write NAME or SRC:REL:DST; a ':' inside a name is %3A",
        ),
        ({"columns": ("c",)}, "--column: expected NAME=dtype, found 'c'\n  fix: write, for example, --column age=float32"),
        (
            {"columns": ("c=U3",)},
            "--column c: no dtype named 'U3'\n"
            "  fix: use bool, int8 to int64, uint8 to uint64, float16 to float64, or binary for text",
        ),
    ],
)
def test_faulty_options(options, text):
    with pytest.raises(UsageError) as caught:
        EdgesDecoder(**options)
    assert str(caught.value) == text


@pytest.mark.parametrize(
    ("text", "options", "want"),
    [
        ("", {}, ([], [])),
        ("# only\n\n", {}, ([], [])),
        ("a b\n", {}, ([], [])),
        ("# x\n\nsrc dst\n# y\n1 2\n", {}, ([1], [2])),
        ("\ufeff1 2\n", {}, ([1], [2])),
        ("1 2", {}, ([1], [2])),
        ("1 2\r", {}, ([1], [2])),
        ("\r\n1 2\r\n\r\n", {}, ([1], [2])),
        ("nan inf\n1 2\n", {"header": "yes"}, ([1], [2])),
        ("source\ttarget, kg\n1\t2\n", {}, ([1], [2])),
        ("source target\n1\t2\n", {}, ([1], [2])),
        ("+1 -0\n", {}, ([1], [0])),
        ("  1\t 2  \n", {"delimiter": " "}, ([1], [2])),
        ("1::2\n3::4\n", {"delimiter": "::"}, ([1, 3], [2, 4])),
        ("1,2\n3,4\n", {"src_col": "1", "dst_col": "0"}, ([2, 4], [1, 3])),
        ("1,x,2\n3,y,4\n", {"dst_col": "2", "drop_columns": ("1",)}, ([1, 3], [2, 4])),
        (b"1,2,\xff\n", {"drop_columns": ("2",)}, ([1], [2])),
    ],
)
def test_small_files(text, options, want):
    data = text if isinstance(text, bytes) else text.encode()
    decoder = EdgesDecoder(**options)
    span = plan(decoder, data).spans[0]
    for sizes in ((1 << 20,), (1,)):
        batches = [decoder.decode(TextBlock(part, span, line)) for part, line in cut(data.removeprefix(b"\xef\xbb\xbf"), sizes)]
        assert join(batches)[:2] == want


def test_files_with_and_without_header_go_together():
    decoder = EdgesDecoder(weight_col="w")
    spans = plan(decoder, "a,b,w\n1,2,3\n", "", "4,5,6\n").spans
    assert [span.detail.header_line for span in spans] == [1, 0, 0]
    assert [span.detail.weight for span in spans] == [2, None, 2]


def test_the_head_grows_until_there_is_a_record():
    decoder = EdgesDecoder()
    data = b"# comment\n" * 20000 + b"1,2\n"
    assert plan(decoder, data).spans[0].detail.delimiter == b","


@pytest.mark.parametrize(
    ("head", "confidence"),
    [
        (b"1 2\n3 4\n", 0.9),
        (b"1\t2\n3\t4", 0.9),
        (b"# SNAP\n1\t2\t3\n", 0.9),
        (b"src,dst,w\n1,2,3\n", 0.9),
        (b"1,2,3\n", 0.6),
        (b"1,0,2,0.5\n", 0.55),
        (b"1,0,2020-01-01,x\n1,0,,\n", 0.8),
        (b"1\t2\t3\n", 0.8),
        (b"1\t0\t1.0\tf:1 2\t2,0,0.5|3,0,1\n", None),
        (b"1\t0\t1.0\tf:1 2\t\n", 0.1),
        (b"1,-1,0,1.0\n1,0,2,0.5\n", None),
        (b'{"node_id": 1}\n', None),
        (b"0 1 {'weight': 4}\n", 0.9),
        (b"a,b\nc,d\n", None),
        (b"a b c\nd e f\n", None),
        (b"name\ttown\nann\tulm\nbob\tulm\n", None),
        (b"a 1\nb 2\n", None),
        (b"key: value\nnode [\n", None),
        (b"\x00\x01", None),
        (b"", None),
        (b"7\n", None),
        (b"PAR1\x15\x04", 0.7),
        (b"%%MatrixMarket matrix coordinate\n", 0.5),
    ],
)
def test_sniff(head, confidence):
    found = bid_of("edges", SniffedFile("x", head, complete=True))
    assert (found and found.confidence) == confidence
    if found:
        assert (found.decoder, found.flags) == ("edges", ("--format", "edges"))


def test_names_are_sniffed():
    for head in (b"ann bob\nbob cy\n", b"ann\tbob ray\nbob ray\tcy\n", "josé åsa".encode()):
        found = bid_of("edges", SniffedFile("x", head, complete=True))
        assert found == Sniffed("edges", 0.6, ("--format", "edges", "--id-type", "string"), {"id_type": "string"})


def test_dictionaries_of_networkx(tmp_path):
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=4)
    graph.add_edge(1, 2, weight=0.5, note="a, b")
    for i, (delimiter, attributes) in enumerate(itertools.product((" ", "\t", ","), ("all", "none", "named"))):
        path = tmp_path / f"{i}.txt"
        data = {"all": True, "none": False, "named": ["weight"]}[attributes]
        nx.write_edgelist(graph, path, delimiter=delimiter, data=data)
        if attributes != "all":
            assert dict(graphprep.convert(str(path), str(tmp_path / f"{i}")).num_edges) == {"_N:_E:_N": 2}
            continue
        with pytest.raises(DataError) as caught:
            graphprep.convert(str(path), str(tmp_path / "out"))
        assert str(caught.value) == (
            f"{path}:1:5: a dictionary stands behind the ends of the edge, as networkx.write_edgelist writes its data\n"
            "  fix: name the attributes: networkx.write_edgelist(graph, path, data=['weight']), or data=False for none"
        )
    empty = tmp_path / "empty.txt"
    nx.write_edgelist(nx.path_graph(3), empty)
    assert empty.read_text() == "0 1 {}\n1 2 {}\n"
    with pytest.raises(DataError, match="a dictionary stands behind"):
        graphprep.convert(str(empty), str(tmp_path / "out"), format="edges")
    options = {"drop_columns": ["2"]}
    assert dict(graphprep.convert(str(empty), str(tmp_path / "out"), decoder_options=options).num_edges) == {"_N:_E:_N": 2}


@relaxed
@given(
    st.binary(max_size=60) | st.text('0123456789 ,\t"\n\r#xé.-e', max_size=60).map(str.encode),
    st.sampled_from([None, ",", " ", "::"]),
)
def test_any_bytes_give_rows_or_a_documented_error(data, delimiter):
    bid_of("edges", SniffedFile("x", data, complete=True))
    try:
        decoder = EdgesDecoder(delimiter=delimiter, weight_col="2") if b"3" in data else EdgesDecoder(delimiter=delimiter)
        span = plan(decoder, data).spans[0]
        rows = decoder.decode(TextBlock(data, span))
    except (DataError, UsageError):
        return
    assert rows.edges.src.size == rows.num_records


@pytest.mark.heavy
def test_kernels_stay_inside_their_arrays(pytestconfig):
    code = textwrap.dedent('''
        from graphprep.decoders.edges.decoder import EdgesDecoder
        from graphprep.model.errors import DataError
        from graphprep.model.protocols import Span, TextBlock
        texts = [
            b"1 2", b"1 2\\n#", b"1,2,0.1234567890123456789012345678\\r\\n", b'1,2,"a""b"', b'1,2,"a', b"1,2,\\xe2\\x82",
            b"1\\t2\\t1e", b"1,", b"1,2,-", b"1,2,1e-330\\n3,4,x", b'1,2,""""', b"1,2,t\\n", b"1 2 7\\n1 2", b" \\n#\\n%",
        ]
        options = [{}, {"weight_col": "2"}, {"time_col": "2", "time_unit": "ms"}, {"columns": ("2=bool",)},
                   {"columns": ("2=uint8",)}, {"columns": ("2=binary",)}]
        for text in texts:
            for each in options:
                for places in (False, True):
                    try:
                        EdgesDecoder(**each).decode(TextBlock(text, Span("x")), places)
                    except DataError:
                        pass
                    except Exception as error:
                        if type(error).__name__ != "UsageError":
                            raise
        print("inside")
    ''')
    kept = str(pytestconfig.cache.mkdir("numba-boundscheck"))  # compiled code of the usual kind does not check
    environment = dict(os.environ, NUMBA_BOUNDSCHECK="1", NUMBA_OPT="0", NUMBA_CACHE_DIR=kept)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("inside\n", 0), done.stderr
