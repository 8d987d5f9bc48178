"""TSV: what is written is read, for every code, quotes included; what is wrong is said, and where."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.decoded import as_found, edges_of, nodes_of
from reference.readers import tsv_line
from reference.records import Edge, Node, Numbers, Text

from graphprep.decoders.deepgnn.tsv import TsvDecoder
from graphprep.decoders.registry import bid_of
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.protocols import SniffedFile, Span, TextBlock

CODES = {"f": "float32", "d": "float64", "double": "float64", "i": "int64", "u": "uint64", "b": "binary", "binary": "binary"}
CODES |= {f"f{bits}": f"float{bits}" for bits in (16, 32, 64)}
CODES |= {f"{letter}{bits}": f"{name}{bits}" for letter, name in (("i", "int"), ("u", "uint")) for bits in (8, 16, 32, 64)}


def decode(data: str | bytes, places=False, **options):
    text = data.encode() if isinstance(data, str) else data
    return TsvDecoder(**options).decode(TextBlock(text, Span("x")), places)


def fault_of(data: str | bytes, **options) -> tuple[str, str, str]:
    """The message, the fix, and the text from the blamed byte on."""
    with pytest.raises(DecodeError) as caught:
        decode(data, **options)
    text = data.encode() if isinstance(data, str) else data
    return caught.value.message, caught.value.fix, text[caught.value.at :].decode("utf-8", "replace")


def check(found, nodes, edges, **options):
    assert nodes_of(found.nodes) == [as_found(one, **options) for one in nodes]
    assert edges_of(found.edges) == [as_found(one, **options) for one in edges]
    assert found.num_records == len(nodes)


# ------------------------------------------------------------------------------------------------ decode inverts write

ids = st.integers(0, 2**64 - 1)
types = st.integers(0, 3) | st.integers(0, 2**31 - 1)


def number(dtype: str):
    """(text, value) of one number."""
    if np.dtype(dtype).kind in "iu":
        info = np.iinfo(dtype)
        texts = st.sampled_from(["{}", "{:+}", "{:022}"])
        return st.tuples(st.integers(int(info.min), int(info.max)), texts).map(lambda one: (one[1].format(one[0]), one[0]))
    return st.floats(width=np.dtype(dtype).itemsize * 8).map(lambda value: (repr(value), float(repr(value))))


@st.composite
def entries(draw, refused: str):
    """(text, value or None) of one feature; texts hold none of the characters that the format has no escape for."""
    code = draw(st.sampled_from(("", *CODES)))
    if code == "":
        return "", None
    if CODES[code] == "binary":
        text = draw(st.text(st.characters(exclude_characters="\n\r;" + refused, exclude_categories=["Cs"]), max_size=6))
        return f"{code}:{text}", Text(text.encode())
    pairs = draw(st.lists(number(CODES[code]), min_size=1, max_size=4))
    blank = draw(st.sampled_from(["", " "]))
    value = Numbers(CODES[code], (len(pairs),), tuple(value for _, value in pairs))
    return f"{code}:{blank}" + " ".join(text for text, _ in pairs), value


def features(refused=""):
    """(text, slots, number of slots)."""

    def joined(found):
        slots = {i: value for i, (_, value) in enumerate(found) if value is not None}
        text = ";".join(text for text, _ in found)
        return text, slots, len(found) if text else 0

    return st.lists(entries(refused), max_size=4).map(joined)


@st.composite
def neighbors(draw, src: int):
    """(text, edge), in the form that the decoder of DeepGNN reads or in the manual's."""
    dst, kind = draw(ids), draw(types)
    weight_text, weight = draw(number("float32") | st.just(("", 0.0)))
    text, slots, num_slots = draw(features("|,"))
    blank = draw(st.sampled_from(["", " "]))
    edge = Edge(src, dst, str(kind), weight=weight, slots=slots, num_slots=num_slots)
    if draw(st.booleans()):
        return ",".join((str(src), f" {dst}", weight_text, str(kind), blank + text)), edge
    if not text and draw(st.booleans()):
        return f"{dst},{kind}" + (f",{weight_text}" if weight_text else ""), edge
    return f"{dst},{blank}{kind},{weight_text},{blank}{text}", edge


@st.composite
def rows(draw):
    """(line, node, edges)."""
    src = draw(ids)
    kind = draw(st.just("") | types.map(str))
    weight_text, weight = draw(number("float32") | st.just(("", 0.0)))
    text, slots, num_slots = draw(features())
    ends = draw(st.lists(neighbors(src), max_size=4))
    cells = [str(src), kind, weight_text, text, "|".join(end for end, _ in ends)]
    while len(cells) > 1 and not cells[-1] and draw(st.booleans()):
        cells.pop()
    quoted = [cell if not must_quote(cell) and draw(st.booleans()) else quote(cell) for cell in cells]
    node = Node(src, kind or "0", weight, slots=slots, num_slots=num_slots)
    return "\t".join(quoted), node, [edge for _, edge in ends]


def must_quote(cell: str) -> bool:
    return "\t" in cell or cell.startswith('"')


def quote(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


@given(lines=st.lists(rows(), max_size=6), end=st.sampled_from(["\n", "\r\n", "\n\n", "\n \t\n"]), torn=st.booleans())
@settings(deadline=None, max_examples=80)
def test_decode_inverts_write(lines, end, torn):
    text = "".join(line + end for line, _, _ in lines)
    if torn:
        text = text.removesuffix("\n")
    found = decode(text)
    check(found, [node for _, node, _ in lines], [edge for _, _, edges in lines for edge in edges])


@given(lines=st.lists(rows(), min_size=1, max_size=6), cut=st.integers(0, 6))
@settings(deadline=None, max_examples=60)
def test_any_cut_between_lines_gives_the_same_rows(lines, cut):
    texts = [line + "\n" for line, _, _ in lines]
    whole = decode("".join(texts))
    parts = [decode("".join(texts[:cut])), decode("".join(texts[cut:]))]
    assert nodes_of(whole.nodes) == [one for part in parts for one in nodes_of(part.nodes)]
    assert edges_of(whole.edges) == [one for part in parts for one in edges_of(part.edges)]


def test_the_manual_s_example():
    features = "f:0.1 0.2;b:str_feat;i:1 2 3"
    found = decode(f"1\t0\t0.1\t{features}\t1, 2, 0.3, 1, {features}\n")
    (node,), (edge,) = nodes_of(found.nodes), edges_of(found.edges)
    assert (edge["src"], edge["dst"], edge["type"], edge["weight"]) == (1, 2, "1", np.float32(0.3).tobytes())
    assert node["slots"] == edge["slots"] and node["num_slots"] == 3
    assert node["slots"][2] == ("numbers", "int64", 0, None, np.array([1, 2, 3]).tobytes())


def test_five_fields_are_the_manual_s_only_where_they_can_be_nothing_else():
    (edge,) = edges_of(decode("7\t\t\t\t7,8,0.5,3,b:x\n").edges)
    assert (edge["dst"], edge["type"]) == (8, "3")
    (edge,) = edges_of(decode("7\t\t\t\t7,8,0.5,\n").edges)  # four: dst, type, weight, no features
    assert (edge["dst"], edge["type"]) == (7, "8")
    assert fault_of("7\t\t\t\t6,8,0.5,3,b:x\n")[0] == (
        "a neighbour of five fields (source, destination, weight, type, features) must name its row's node first, found '6'"
    )
    assert fault_of("7\t\t\t\t7,8,0.5,b:x,y\n")[0] == "a neighbour has up to four fields, found 5: '7,8,0.5,b:x,y'"


def test_edges_keep_the_order_of_the_record():
    found = decode("1\t\t\t\t9,1|2,0|5,1\n2\n3\t\t\t\t0,0\n", places=True)
    assert found.edges.dst.tolist() == [9, 2, 5, 0]
    assert found.edges.record.tolist() == [0, 0, 0, 2]
    assert [one["type"] for one in edges_of(found.edges)] == ["1", "0", "1", "0"]


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        ("b:", ""),
        ("b: a:b ", " a:b "),
        ("b:a,b|c", "a,b|c"),
        ('"b:a\tb"', "a\tb"),
        ('"b:""a"""', '"a"'),
        ('b:a"b', 'a"b'),
        ("b:a\u2028b\x0bc\x0cd\x85e\x1cf\rg", "a\u2028b\x0bc\x0cd\x85e\x1cf\rg"),
        ("b:\x00é😀", "\x00é😀"),
    ],
)
def test_texts(cell, text):
    expected = {0: ("binary", "uint8", 0, None, text.encode())}
    found = nodes_of(decode(f"1\t0\t1\t{cell}\n2\t0\t1\t{cell}\t\r\n3\t0\t1\t{cell}").nodes)
    assert [one["slots"] for one in found] == [expected] * 3


def test_a_row_longer_than_any_limit_of_csv():
    many = "|".join(f"{i},0,1.5,f:{i}" for i in range(20_000))
    found = decode(f"1\t0\t1\t\t{many}\n")
    assert found.edges.dst.tolist() == list(range(20_000))
    assert found.edges.columns[1].values.tolist() == list(range(20_000))


def test_quoted_cells_are_read_again_where_room_is_made():
    line = '5\t0\t1\t"' + ";".join('b:""x""' for _ in range(600)) + '"\t"' + "|".join('6,0,1,b:""' for _ in range(300)) + '"\n'
    node, *_ = nodes_of(decode(line * 3).nodes)
    assert node["slots"] == dict.fromkeys(range(600), ("binary", "uint8", 0, None, b'"x"'))
    assert {one["slots"][0][4] for one in edges_of(decode(line * 3).edges)} == {b'"'}


def test_places_are_those_of_the_block():
    text = '1\t0\t1\t"b:"""""\t"2,0,1,b:""""""| 33,0"\n'
    found = decode("\n" + text, places=True)
    assert found.nodes.at.tolist() == found.edges.at_src[:1].tolist() == [1]
    assert [("\n" + text)[at:][:3] for at in found.edges.at_dst] == ["2,0", " 33"]
    assert decode(text).edges.at_dst is None


def test_nothing_and_defaults():
    assert decode("\n \t\n").num_records == 0 and decode("").nodes is None
    (node,) = nodes_of(decode("5\n").nodes)
    assert node == {"id": 5, "type": "0", "weight": np.float32(0).tobytes(), "num_slots": 0, "slots": {}}
    assert nodes_of(decode('5\t""\t\t""\t""\t\t""\n').nodes) == [node]
    (node,) = nodes_of(decode("5\t\t\t;;\n").nodes)
    assert (node["num_slots"], node["slots"]) == (3, {})
    assert decode("5\t0\t0.1\n", weight_dtype="float64").nodes.columns[0].values.tolist() == [0.1]
    sources = TsvDecoder().plan(None, ["a", "b"])  # type: ignore[arg-type]
    assert (sources.has_times, sources.always_weighted, sources.nodes, len(sources.spans)) == (False, True, "records", 2)


# ------------------------------------------------------------------------------------------------------ what is wrong

ID = "an integer from 0 to 18446744073709551615"
TYPE = "an integer from 0 to 2147483647"
FIELD = "correct the field"
VALUE = "correct the value, or the slot's dtype or length"
FORM = "write neighbours as dst_id,edge_type,edge_weight,features"
ENTRY = "write a code such as f or b and a colon before the values; a text holds no ';'"
SKIP = "leave the entry empty to skip the slot"
USE = "use one of f, f16, f32, f64, d, double, i, i8, i16, i32, i64, u, u8, u16, u32, u64, b, binary"

FAULTS = [
    ("x\t0\t1", f"field 'node_id' must be {ID}, found 'x'", FIELD, "x\t"),
    ("\t0\t1", f"field 'node_id' must be {ID}, found ''", FIELD, "\t0"),
    ("-1\t0\t1", f"field 'node_id' must be {ID}, found '-1'", FIELD, "-1\t"),
    ("5\tx\t1", f"field 'node_type' must be {TYPE}, found 'x'", FIELD, "x\t"),
    ("5\t-1\t1", f"field 'node_type' must be {TYPE}, found '-1'", FIELD, "-1\t"),
    ("5\t0\tx", "field 'node_weight' must be a number that fits float32, found 'x'", FIELD, "x"),
    ("5\t0\t1e39", "field 'node_weight' must be a number that fits float32, found '1e39'", FIELD, "1e39"),
    ("5\t0\t1\tabc", "feature slot 0 must be 'code:values', found 'abc'", ENTRY, "abc"),
    ("5\t0\t1\tf:1; ", "feature slot 1 must be 'code:values', found ' '", ENTRY, " "),
    ("5\t0\t1\tf:1;q:1", "feature slot 1 has an unknown code 'q'", USE, "q:1"),
    ("5\t0\t1\t:1", "feature slot 0 has an unknown code ''", USE, ":1"),
    ("5\t0\t1\tf8:1", "feature slot 0 has an unknown code 'f8'", USE, "f8:1"),
    ("5\t0\t1\tf:;", "feature slot 0 has no values: 'f:'", SKIP, "f:;"),
    ("5\t0\t1\tf: ", "feature slot 0 has no values: 'f: '", SKIP, "f: "),
    ("5\t0\t1\tf:1  2", "feature slot 0 must hold float32 values, found ''", VALUE, " 2"),
    ("5\t0\t1\tf:  1", "feature slot 0 must hold float32 values, found ''", VALUE, " 1"),
    ("5\t0\t1\tf:1 ", "feature slot 0 must hold float32 values, found ''", VALUE, "\r"),
    ("5\t0\t1\ti8:1 300", "feature slot 0 must hold int8 values (-128 to 127), found '300'", VALUE, "300"),
    ("5\t0\t1\tu:-1", "feature slot 0 must hold uint64 values (0 to 18446744073709551615), found '-1'", VALUE, "-1"),
    ("5\t0\t1\ti:1.5", f"feature slot 0 must hold int64 values ({-(2**63)} to {2**63 - 1}), found '1.5'", VALUE, "1.5"),
    ("5\t0\t1\tf16:65520", "feature slot 0 must hold float16 values, found '65520'", VALUE, "65520"),
    ("5\t0\t1\t\t1", "a neighbour needs dst_id and edge_type, found '1'", FORM, "1"),
    ("5\t0\t1\t\t1,0|", "a neighbour is empty", "remove the '|' that is too many", "\r"),
    ("5\t0\t1\t\t1,0||2,0", "a neighbour is empty", "remove the '|' that is too many", "|2"),
    ("5\t0\t1\t\t,0", f"field 'dst_id' must be {ID}, found ''", FIELD, ",0"),
    ("5\t0\t1\t\t1,", f"field 'edge_type' must be {TYPE}, found ''", FIELD, "\r"),
    ("5\t0\t1\t\t1,2147483648", f"field 'edge_type' must be {TYPE}, found '2147483648'", FIELD, "2147483648"),
    ("5\t0\t1\t\t5,1,1,2147483648,f:1", f"field 'edge_type' must be {TYPE}, found '2147483648'", FIELD, "2147483648"),
    ("5\t0\t1\t\t1,0,x", "field 'edge_weight' must be a number that fits float32, found 'x'", FIELD, "x"),
    ("5\t0\t1\t\t1,0,1,x", "feature slot 0 must be 'code:values', found 'x'", ENTRY, "x"),
    ("5\t0\t1\t\t1,0,1,f:x", "feature slot 0 must hold float32 values, found 'x'", VALUE, "x"),
    (
        "5\t0\t1\t\t1,0,1,b:a,b",
        "a neighbour has up to four fields, found 5: '1,0,1,b:a,b'",
        FORM + "; a text holds no ','",
        "1,0,1,b",
    ),
    (
        "5\t0\t1\t\t5,0,1,1,b:a,b",
        "a neighbour has up to four fields, found 6: '5,0,1,1,b:a,b'",
        FORM + "; a text holds no ','",
        "5,0,1,1,b",
    ),
    ("5\t0\t1\t\t\tx", "a row has five columns, found a sixth: 'x'", "quote a cell that holds tabs", "x"),
    ('5\t0\t1\t\t\t\t"x"', "a row has five columns, found a sixth: 'x'", "quote a cell that holds tabs", 'x"'),
    (
        '5\t0\t1\t"b:a',
        "a quoted cell is not closed on its line: '\"b:a'",
        "close the quote, or double it and quote the cell; a cell has no line breaks",
        '"b:a',
    ),
    (
        '5\t0\t1\t"b:a"b',
        "a tab or the end of the line must follow a closing quote, found 'b'",
        "double the quotes inside a quoted cell",
        "b\r",
    ),
    ('5\t0\t1\t"b:"""""\t"1,0,1,b:""""|x,0"', f"field 'dst_id' must be {ID}, found 'x'", FIELD, 'x,0"'),
    ('5\t0\t1\t"b:"""";f:1"\t"1,0,1,b:"""";f:x"', "feature slot 1 must hold float32 values, found 'x'", VALUE, 'x"'),
]


@pytest.mark.parametrize(("line", "message", "fix", "blamed"), FAULTS, ids=[fault[0] for fault in FAULTS])
def test_what_is_wrong_is_said(line, message, fix, blamed):
    # A whole row before, a faulty one behind: neither changes what is said.
    found = fault_of(f'1\t0\t1\t"b:""1"\n{line}\r\ny\n')
    assert found[:2] == (message, fix)
    assert found[2].startswith(blamed)


def test_text_that_is_not_utf8():
    message, fix, blamed = fault_of(b"1\t0\t1\tb:ok\n2\t0\t1\tb:a\xff\n")
    assert (message, fix) == ("feature slot 0 must hold UTF-8 text, found 'a\\\\xff'", "write the file in UTF-8")
    assert blamed == "a\ufffd\n"


def test_the_first_fault_of_the_block_wins():
    assert fault_of("1\t0\t1\tf:x\n2\ty\n")[0] == "feature slot 0 must hold float32 values, found 'x'"
    assert fault_of("1\t0\t1\ti:1;f:y\n2\t0\t1\ti:x\n")[0].endswith("found 'y'")


def test_options_that_make_no_sense():
    with pytest.raises(UsageError) as caught:
        TsvDecoder(weight_dtype="int8")
    assert caught.value.message == "--weight-dtype must be float32 or float64, found 'int8'"


# --------------------------------------------------------------------------------------------------------------- sniff


@pytest.mark.parametrize(
    ("head", "confidence"),
    [
        ("0\t0\t1.0\tf:1 2;b:x\t1,0,1.0|2,0\n1\t\t\t\t\n", 0.95),
        ('0\t0\t1.0\t\t1,0,1.0,f:1|2,0\n1\t\t\t\t"2, 0"\n', 0.8),
        ("0\t0\t1.0\n", None),
        ("0\t1\t2.0\tx\n", None),
        ("0\t1\t2.0\t5\t6\n", None),
        ("a\t1\t2.0\tf:1\n", None),
        ("0,-1,0,1.0\n", None),
        ("", None),
    ],
)
def test_sniff(head, confidence):
    bid = bid_of("tsv", SniffedFile("x", head.encode(), True))
    assert (bid and bid.confidence, bid and bid.flags) == (confidence, confidence and ("--format", "tsv"))


def test_sniff_a_row_longer_than_the_head():
    head = ("0\t0\t1.0\t\t" + "17,0,1.0|" * 1000)[:5001]
    assert bid_of("tsv", SniffedFile("x", head.encode(), False)).confidence == 0.8


# ---------------------------------------------------------------------------------------------------------------- fuzz

SEEDS = ['5\t0\t1\t"f:1 2;b:a""b"\t6,0,1,f:1;b:x|7,1\n', "5\t\t\ti8: 1 2;;u:3\t5,6,0.5,1,d:1\n"]


@st.composite
def mutated(draw):
    data = bytearray("".join(draw(st.lists(st.sampled_from(SEEDS), min_size=1, max_size=3))).encode())
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(data) - 1, 0)))
        piece = draw(
            st.binary(max_size=2) | st.sampled_from([b"\t", b'"', b'""', b"\n", b"|", b",", b";", b":", b" ", b"9" * 20])
        )
        data[at : at + draw(st.integers(0, 3))] = piece
    return bytes(data)


@given(data=mutated() | st.binary(max_size=60) | st.text('012.-fiub:;,| \t\n"', max_size=60).map(str.encode))
@settings(deadline=None, max_examples=300)
def test_only_decode_errors_come_out(data):
    try:
        found = decode(data, places=True)
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
    nodes, edges = [], []
    for line in data.decode().split("\n"):
        if line.removesuffix("\r").strip(" \t") and "\r" not in line.removesuffix("\r"):
            more_nodes, more_edges = tsv_line(line.removesuffix("\r"))
            nodes += more_nodes
            edges += more_edges
        elif "\r" in line.removesuffix("\r"):
            return  # csv takes no CR in a cell
    check(found, nodes, edges)


@pytest.mark.heavy
def test_no_kernel_leaves_its_arrays(pytestconfig):
    """The kernels with every index checked, on this file's own lines."""
    if os.environ.get("NUMBA_BOUNDSCHECK") == "1":
        pytest.skip("this is that run")
    environment = os.environ | {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(pytestconfig.cache.mkdir("numba_boundscheck"))}
    chosen = "test_what_is_wrong or test_only_decode or test_quoted or test_texts or test_a_row"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen, str(Path(__file__))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
