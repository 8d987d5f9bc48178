"""Plain lines of DeepGNN's formats, read in one go: against Python's own json, split() and float(), and against the walkers."""

from __future__ import annotations

import dataclasses
import json
import math
import random
import struct

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference.decoded import edges_of, nodes_of

from graphprep.decoders.deepgnn import plain
from graphprep.decoders.deepgnn.edgelist import EdgeListDecoder
from graphprep.decoders.deepgnn.json_lines import JsonDecoder
from graphprep.decoders.deepgnn.pieces import join_rows
from graphprep.decoders.deepgnn.tsv import TsvDecoder
from graphprep.kernels.cpu.deepgnn import plain_rows
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import Span, TextBlock

SOME = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
MANY = settings(deadline=None, max_examples=200)
DECODERS = {"edgelist": EdgeListDecoder, "json": JsonDecoder, "tsv": TsvDecoder}
INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")


def decode(name: str, text: str, **options):
    return DECODERS[name](**options).decode(TextBlock(text.encode(), Span("x")))


def is_plain(name: str, text: str, **options) -> bool:
    """Whether the scanner reads all of a text, without the walker's help."""
    decoder = DECODERS[name](**options)

    class Walked(Exception):
        """The walker was called."""

    def walk(*_):
        raise Walked

    object.__setattr__(decoder, "_decode_any", walk)
    try:
        decoder.decode(TextBlock(text.encode(), Span("x")))
    except Walked:
        return False
    return True


# ---- spellings of numbers


def halfway(bits: int) -> str:
    """The decimal text in the middle of two neighbouring float64: all of its digits decide."""
    low, high = (struct.unpack("<d", struct.pack("<Q", one))[0] for one in (bits, bits + 1))
    (a, b), (c, d) = low.as_integer_ratio(), high.as_integer_ratio()
    numerator, denominator = a * d + c * b, 2 * b * d
    shift = denominator.bit_length() - 1  # the denominator is a power of two
    digits = str(numerator * 5**shift).rjust(shift + 1, "0")
    return f"{digits[:-shift]}.{digits[-shift:]}" if shift else digits


finite = st.floats(allow_nan=False, allow_infinity=False)
json_numbers = st.one_of(
    finite.map(repr),
    st.floats(-1e6, 1e6, width=32).map(repr),
    st.tuples(st.floats(-1e9, 1e9), st.integers(1, 25)).map(lambda one: f"{one[0]:.{one[1]}f}"),
    st.tuples(finite, st.integers(0, 25)).map(lambda one: f"{one[0]:.{one[1]}e}"),
    st.tuples(finite, st.integers(0, 25)).map(lambda one: f"{one[0]:.{one[1]}E}"),
    st.integers(0, 2**70).map(str),
    st.integers(-(2**63), 0).map(str),
    st.integers(0, 10**20).map(lambda one: f"0.{one:020d}"),
    st.integers(1, 0x0010_0000_0000_0100).map(lambda bits: repr(struct.unpack("<d", struct.pack("<Q", bits))[0])),
    st.integers(0x3C00 << 48, 0x4400 << 48).map(halfway),
    st.sampled_from(["0", "-0", "-0.0", "0.0", "5e-324", "2.5e-324", "1e-400", "9007199254740993", "1e22", "1e23", "0e999"]),
)
# What Python's float() takes and JSON does not.
loose_numbers = st.one_of(
    json_numbers,
    st.sampled_from(["nan", "NaN", "inf", "-Infinity", ".5", "5.", "+1", "-.5", "00012.5", "1.e3", "+.5e-3", "007"]),
)


def fits(text: str, dtype: str) -> bool:
    """Whether a number stays finite in a dtype (or is infinite as it is written)."""
    with np.errstate(over="ignore"):
        return "inf" in text.lower() or not np.isinf(np.float64(float(text)).astype(dtype))


def as_bytes(texts: list[str], dtype: str) -> bytes:
    """What Python's float() and int() make of texts, as a dtype."""
    read = float if dtype.startswith("float") else int
    return np.array([read(text) for text in texts], np.float64 if read is float else dtype).astype(dtype).tobytes()


def values_for(dtype: str, numbers):
    """Texts of numbers that a dtype holds."""
    if dtype in INTS:
        bounds = np.iinfo(dtype)
        return st.integers(int(bounds.min), int(bounds.max)).map(str)
    return numbers.filter(lambda text: fits(text, dtype))


@st.composite
def slots(draw, numbers, dtypes=("float16", "float32", "float64", *INTS)):
    """(dtype, texts of its values) of some slots; None for an empty one."""
    chosen = draw(st.lists(st.sampled_from([*dtypes, None]), max_size=4))
    return [dtype and (dtype, draw(st.lists(values_for(dtype, numbers), min_size=1, max_size=24))) for dtype in chosen]


def expected_slots(found) -> dict:
    return {slot: ("numbers", one[0], 0, None, as_bytes(one[1], one[0])) for slot, one in enumerate(found) if one is not None}


weights = loose_numbers.filter(lambda text: fits(text, "float32"))
ids = st.integers(0, 2**64 - 1) | st.integers(0, 10**8)
types = st.integers(0, 2**31 - 1) | st.integers(0, 3)


# ---- EdgeList and TSV


@SOME
@given(data=st.data())
def test_edgelist_is_split_and_float(data):
    delimiter = data.draw(st.sampled_from([",", "\t", ";", " "]))
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    nodes, edges, lines = [], [], []
    for _ in range(data.draw(st.integers(1, 6))):
        is_node = data.draw(st.booleans())
        src, kind, dst, weight = data.draw(ids), data.draw(types), data.draw(ids), data.draw(weights)
        found = data.draw(slots(loose_numbers))
        columns = [src, -1, kind, weight] if is_node else [src, kind, dst, weight]
        for one in found:
            columns += ["int8", 0] if one is None else [one[0], len(one[1]), *one[1]]
        lines.append(delimiter.join(map(str, columns)))
        record = {"type": str(kind), "weight": as_bytes([weight], "float32"), "num_slots": len(found)}
        record["slots"] = expected_slots(found)
        (nodes if is_node else edges).append(record | ({"id": src} if is_node else {"src": src, "dst": dst}))
    text = end.join(lines) + data.draw(st.sampled_from(["", end]))
    rows = decode("edgelist", text, delimiter=delimiter)
    assert nodes_of(rows.nodes) == nodes
    assert edges_of(rows.edges) == edges
    assert is_plain("edgelist", text, delimiter=delimiter)


def tsv_features(found) -> str:
    code = {f"{name}{bits}": f"{name[0]}{bits}" for name in ("float", "int", "uint") for bits in (8, 16, 32, 64)}
    return ";".join("" if one is None else f"{code[one[0]]}:{' '.join(one[1])}" for one in found)


@SOME
@given(data=st.data())
def test_tsv_is_split_and_float(data):
    end = data.draw(st.sampled_from(["\n", "\r\n"]))
    nodes, edges, lines = [], [], []
    some_slots = slots(loose_numbers).filter(lambda found: found != [None])  # an empty cell has no slots
    for _ in range(data.draw(st.integers(1, 4))):
        number, kind, weight, found = data.draw(ids), data.draw(types), data.draw(weights), data.draw(some_slots)
        neighbors = []
        for _ in range(data.draw(st.integers(0, 3))):
            dst, relation, strength, more = data.draw(ids), data.draw(types), data.draw(weights), data.draw(some_slots)
            neighbors.append(f"{dst},{relation},{strength}" + (f",{tsv_features(more)}" if more else ""))
            record = {"type": str(relation), "weight": as_bytes([strength], "float32"), "num_slots": len(more)}
            edges.append(record | {"slots": expected_slots(more), "src": number, "dst": dst})
        lines.append(f"{number}\t{kind}\t{weight}\t{tsv_features(found)}\t{'|'.join(neighbors)}")
        record = {"type": str(kind), "weight": as_bytes([weight], "float32"), "num_slots": len(found)}
        nodes.append(record | {"slots": expected_slots(found), "id": number})
    text = end.join(lines) + data.draw(st.sampled_from(["", end]))
    rows = decode("tsv", text)
    assert nodes_of(rows.nodes) == nodes
    assert edges_of(rows.edges) == edges
    assert is_plain("tsv", text)


@pytest.mark.parametrize(
    "text", ["7\n", "7\t\n", "7\t1\t\t\t\n", "7\t\t2.5\tf:1;;\t3,1|4,0,|5,2,1,\n", "7\t1\t1\tb:;b:a|b\t\r\n"]
)
def test_cells_may_be_missing_or_empty(text):
    assert is_plain("tsv", text)
    assert_same(decode("tsv", text), TsvDecoder()._decode_any(text.encode()))


# ---- JSON

blanks = st.sampled_from(["", "", "", " ", "  ", "\t", " \r "])


@st.composite
def json_text(draw, value) -> str:
    """Write a value; texts of numbers as they are, objects with blanks and keys in any order, some spelled with escapes."""
    gap = lambda: draw(blanks)  # noqa: E731
    if isinstance(value, Raw):
        return value.text
    if isinstance(value, dict):
        keys = draw(st.permutations(sorted(value)))
        members = [f"{gap()}{json.dumps(key)}{gap()}:{gap()}{draw(json_text(value[key]))}{gap()}" for key in keys]
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{gap()}{draw(json_text(one))}{gap()}" for one in value) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@dataclasses.dataclass(frozen=True)
class Raw:
    """A number as it is written."""

    text: str


json_weights = json_numbers.filter(lambda text: fits(text, "float32")).map(Raw)
GROUPS = {"float": "float32", "double": "float64", "float16": "float16", **{name: name for name in INTS}}


@st.composite
def json_groups(draw) -> dict:
    """Feature groups, each slot in one of them; texts too, with what must be escaped."""
    groups: dict = {}
    for slot in range(draw(st.integers(0, 4))):
        name = draw(st.sampled_from([*GROUPS, "binary"]))
        if name == "binary":
            value = draw(st.text(st.characters(codec="utf-8"), max_size=6))
        else:
            numbers = values_for(GROUPS[name], json_numbers)
            value = [Raw(text) for text in draw(st.lists(numbers, max_size=20))]
        groups.setdefault(f"{name}_feature", {})[str(slot)] = value
    return groups


@st.composite
def json_records(draw) -> dict:
    small = st.integers(0, 5)
    edges = []
    number = draw(ids)
    for _ in range(draw(st.integers(0, 3))):
        edge = {
            "src_id": draw(st.just(number) | small),
            "dst_id": draw(ids),
            "edge_type": draw(small),
            "weight": draw(json_weights),
        }
        edges.append(edge | draw(json_groups()))
    record = {"node_id": number, "node_type": draw(types), "node_weight": draw(json_weights), **draw(json_groups())}
    how = draw(st.sampled_from(["edge", "edge", "both", "neighbor"]))
    if how != "neighbor":
        record["edge"] = edges
    if how != "edge":
        entries = st.dictionaries(ids.map(str), json_weights, max_size=4)
        record["neighbor"] = draw(st.dictionaries(small.map(str), entries, max_size=3))
    return record


def walk(line: str) -> tuple[dict, list[dict]]:
    """A node and its edges, in the form of ``nodes_of`` and ``edges_of``, by Python's own parser."""
    record = json.loads(line, parse_float=Raw, parse_int=Raw)
    number = int(record["node_id"].text)

    def common(one: dict, weight: str, kind: str) -> dict:
        found, most = {}, 0
        for name, group in one.items():
            if not name.endswith("_feature"):
                continue
            for key, value in group.items():
                most = max(most, int(key) + 1)
                dtype = GROUPS.get(name.removesuffix("_feature"))
                if dtype is None:
                    found[int(key)] = ("binary", "uint8", 0, None, value.encode())
                elif value:
                    found[int(key)] = ("numbers", dtype, 0, None, as_bytes([one.text for one in value], dtype))
        return {"type": kind, "weight": as_bytes([weight], "float32"), "num_slots": most, "slots": found}

    node = common(record, record["node_weight"].text, record["node_type"].text) | {"id": number}
    if "edge" in record:
        return node, [
            common(one, one["weight"].text, one["edge_type"].text)
            | {"src": int(one["src_id"].text), "dst": int(one["dst_id"].text)}
            for one in record["edge"]
        ]
    return node, [
        common({}, weight.text, str(int(kind))) | {"src": number, "dst": int(dst)}
        for kind, ends in record["neighbor"].items()
        for dst, weight in ends.items()
    ]


@SOME
@given(data=st.data())
def test_json_is_pythons(data):
    lines = [data.draw(json_text(record)) for record in data.draw(st.lists(json_records(), min_size=1, max_size=4))]
    rows = decode("json", "\n".join(lines) + "\n")
    walked = [walk(line) for line in lines]
    assert nodes_of(rows.nodes) == [node for node, _ in walked]
    assert edges_of(rows.edges) == [edge for _, edges in walked for edge in edges]


@MANY
@given(texts=st.lists(json_numbers.filter(lambda text: fits(text, "float64")), min_size=1, max_size=30), gap=blanks)
def test_json_numbers_are_those_of_python_and_orjson(texts, gap):
    values = f"[{gap}{f'{gap},{gap}'.join(texts)}{gap}]"
    line = f'{{"node_id": 1, "node_type": 0, "node_weight": 1, "edge": [], "double_feature": {{"0": {values}}}}}\n'
    (column,) = [one for one in decode("json", line).nodes.columns if one.key.slot == 0]
    assert column.values.tobytes() == as_bytes(texts, "float64")
    peers = np.array([float(one) for one in orjson.loads(values)])
    assert (column.values + 0.0).tobytes() == (peers + 0.0).tobytes()  # -0 is an integer there: 0
    assert is_plain("json", line)


@pytest.mark.parametrize(
    "number", ["01", "-01.5", "1.", ".5", "+1", "1e", "1e+", "-", "0x1", "1_0", "00", "-Inf", "nul", "1.5.2"]
)
def test_what_python_reads_and_json_does_not_is_a_fault(number):
    for field in (
        f'"node_weight": {number}, "float_feature": {{}}',
        f'"node_weight": 1, "float_feature": {{"0": [1, {number}]}}',
    ):
        line = f'{{"node_id": 1, "node_type": 0, "edge": [], {field}}}\n'
        with pytest.raises(DecodeError):
            decode("json", line)


RECORD = '{"node_id": 5, "node_type": 0, "node_weight": 1, "neighbor": %s, "edge": [%s]}\n'
EDGE = '{"src_id": 5, "dst_id": %d, "edge_type": %d, "weight": %s}'


@pytest.mark.parametrize(
    ("neighbor", "edges", "differ"),
    [
        ('{"0": {"1": 0.5, "2": 1}, "1": {"1": 2}}', [(1, 0, "0.50"), (2, 0, "1.0"), (1, 1, "2")], False),
        ('{"0": {"2": 1, "1": 0.5}}', [(1, 0, "0.5"), (2, 0, "1")], False),
        ('{"1": {"1": 2}, "0": {"1": 0.5}}', [(1, 0, "0.5"), (1, 1, "2")], False),
        ('{"0": {"1": 0.0}}', [(1, 0, "-0.0")], False),
        ('{"0": {"1": 0.5}}', [(1, 0, "0.25")], True),
        ('{"0": {"1": 0.5}}', [(1, 1, "0.5")], True),
        ('{"0": {"1": 0.5}}', [], True),
        ("{}", [(1, 0, "0.5")], True),
    ],
)
def test_neighbors_are_compared_with_edges(neighbor, edges, differ):
    line = RECORD % (neighbor, ", ".join(EDGE % one for one in edges))
    rows = decode("json", line)
    assert list(rows.warnings.values()) == ([1] if differ else [])
    assert rows.edges.dst.tolist() == [dst for dst, _, _ in edges]


@pytest.mark.parametrize("size", [3, 40, 3000])
@pytest.mark.parametrize("twice", [False, True])
def test_a_neighbor_that_stands_twice_is_a_fault(size, twice):
    numbers = random.Random(1).sample(range(10**6), size)
    numbers += [numbers[size // 3]] if twice else []
    ends = ", ".join(f'"{number}": 1' for number in numbers)
    line = f'{{"node_id": 5, "node_type": 0, "node_weight": 1, "neighbor": {{"0": {{{ends}}}}}}}\n'
    if twice:
        with pytest.raises(DecodeError, match="stands twice in one object"):
            decode("json", line)
    else:
        assert decode("json", line).edges.dst.tolist() == numbers
        assert is_plain("json", line)


# ---- pieces: what is plain between what is not

LINES = {
    "edgelist": (
        ["1,-1,0,1.5,float32,3,0.25,0.5,1e-5,int8,2,1,-2", "1,0,2,0.5", "3,1,4,0.25,float32,1,7", "5,-1,2,nan,binary,1,abc"],
        ["6,-1,1,1,binary,1,a\\,b", "7,0,8,1,float32,1/0,3,0.5", " ", "9,-1,0,2,bool,2,1,true"],
        ["6,-1,1,x", "7,0,8,1,float32,2,1", "7,0,8,1,int8,1,300"],
    ),
    "json": (
        [
            '{"node_id": 1, "node_type": 0, "node_weight": 1.5, "edge": [], "float_feature": {"0": [1, 2.5], "1": [null, NaN]}}',
            '{"node_id":2,"node_type":1,"node_weight":1,"neighbor":{"0":{"9":1}},"binary_feature":{"2":"x"}}',
            '{"edge": [{"src_id": 3, "dst_id": 4, "edge_type": 7, "weight": 0.5, "int8_feature": {"0": [1]}}], "node_id": 3, '
            '"node_type": 0, "node_weight": 2}',
        ],
        [
            '{"node_id": 4, "node_type": 5, "node_weight": 1, "edge": [], "created_at": 3}',
            '{"node_id": 5, "node_type": 0, "node_weight": 1, "edge": [], "float_feature": {"0": [[1, 2], [3, 4]]}, "else": 1}',
            '{"node_id": 6, "node_type": 0, "node_weight": 1, "edge": [], "binary_feature": {"0": "\\u00e9", "2": "é"}}',
            '{"node_id": 6, "node_type": 0, "node_weight": 1, "edge": [], "sparse_int8_feature": {"4": '
            '{"coordinates": [1], "values": [2]}}}',
        ],
        [
            '{"node_id": 6, "node_type": 0, "node_weight": 1}',
            '{"node_id": 6, "node_type": 0, "node_weight": 1, "edge": [], "int8_feature": {"0": [300]}}',
        ],
    ),
    "tsv": (
        ["1\t0\t1.5\tf:0.25 0.5;;i8:3\t2,0,0.5|3,1,0.25,f:1 2", "2\t1\t\tb:abc", "3"],
        ['4\t0\t1\t"b:a""b"\t5,0,1', "5\t0\t1\t\t5,6,1,0,f:1\t", " "],
        ["4\t0\tx", "4\t0\t1\tf:1  2", "4\t0\t1\ti8:300"],
    ),
}


def assert_same(found, expected, path=""):
    """Compare rows, field by field; columns by key and shape, in any order."""
    if isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype and found.tobytes() == expected.tobytes(), path
    elif dataclasses.is_dataclass(expected):
        for field in dataclasses.fields(expected):
            one, other = getattr(found, field.name), getattr(expected, field.name)
            if field.name == "columns":
                one, other = (
                    sorted(some, key=lambda column: (repr(column.key), repr(column.item_shape))) for some in (one, other)
                )
            assert_same(one, other, f"{path}.{field.name}")
    elif isinstance(expected, tuple | list):
        assert len(found) == len(expected), path
        for i, (one, other) in enumerate(zip(found, expected, strict=True)):
            assert_same(one, other, f"{path}[{i}]")
    else:
        assert found == expected, path


@pytest.mark.parametrize("name", LINES)
def test_which_lines_are_plain(name):
    usual, others, faulty = LINES[name]
    assert all(is_plain(name, line + "\n") for line in usual)
    assert not any(is_plain(name, line + "\n") for line in others if line.strip())
    assert not any(is_plain(name, line + "\n") for line in faulty)


@pytest.mark.parametrize("name", LINES)
@given(data=st.data(), first=st.sampled_from([1, 200, 1 << 15]))
@SOME
def test_pieces_are_the_whole(name, data, first):
    usual, others, _ = LINES[name]
    lines = data.draw(st.lists(st.sampled_from([*usual, *usual, *others]), max_size=30))
    text = "\n".join(lines) + data.draw(st.sampled_from(["", "\n", "\n\n"]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plain, "_FIRST_WALK_BYTES", first)
        found = decode(name, text)
    assert_same(found, DECODERS[name]()._decode_any(text.encode()))


@pytest.mark.parametrize("name", LINES)
@given(data=st.data(), first=st.sampled_from([1, 1 << 15]))
@SOME
def test_faults_are_those_of_the_walker(name, data, first):
    usual, others, faulty = LINES[name]
    lines = data.draw(st.lists(st.sampled_from([*usual, *usual, *others, *faulty]), min_size=1, max_size=20))
    text = "\n".join([*lines, data.draw(st.sampled_from(faulty))]) + "\n"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(DecodeError) as found:
        patch.setattr(plain, "_FIRST_WALK_BYTES", first)
        decode(name, text)
    with pytest.raises(DecodeError) as expected:
        DECODERS[name]()._decode_any(text.encode())
    assert (str(found.value), found.value.at, found.value.fix) == (str(expected.value), expected.value.at, expected.value.fix)


@pytest.mark.parametrize("name", LINES)
def test_a_small_room_makes_pieces(name, monkeypatch):
    usual, _, _ = LINES[name]
    text = "\n".join(usual * 400) + "\n"
    whole = decode(name, text)
    sizes = []

    def join(pieces):
        sizes.append(len(pieces))
        return join_rows(pieces)

    monkeypatch.setattr(plain, "join_rows", join)
    monkeypatch.setattr(plain, "_rooms", Cramped())
    assert_same(decode(name, text), whole)
    assert sizes == [sizes[0]] and sizes[0] > 10


class Cramped:
    """A room for few rows, whatever is wanted."""

    def take(self, num_nodes, num_edges, num_values, num_texts, has_times):
        room = plain_rows.make_room(num_nodes, num_edges, num_values, num_texts, has_times)
        few = {"node_ids": 60, "edge_src": 50, "values": 90, "texts": 100, "slots": 70}
        return room._replace(**{field: getattr(room, field)[:size] for field, size in few.items()})


@pytest.mark.parametrize("name", LINES)
def test_a_line_larger_than_the_room_is_walked(name, monkeypatch):
    many = 300
    text = {
        "edgelist": f"1,-1,0,1,float32,{many},{','.join(map(str, range(many)))}\n1,0,2,1\n",
        "json": RECORD % ("{}", ", ".join(EDGE % (one, 0, one) for one in range(many))),
        "tsv": f"1\t0\t1\t\t{'|'.join(f'{one},0,{one}' for one in range(many))}\n",
    }[name]
    monkeypatch.setattr(plain, "_rooms", Cramped())
    assert_same(decode(name, text), DECODERS[name]()._decode_any(text.encode()))


def test_texts_that_are_not_utf8_are_a_fault():
    for decoder, text in ((EdgeListDecoder(), b"1,-1,0,1,binary,1,a\xff\n"), (TsvDecoder(), b"1\t0\t1\tb:\xc3\n")):
        with pytest.raises(DecodeError, match="must hold UTF-8 text"):
            decoder.decode(TextBlock(b"" + text, Span("x")))
    rows = EdgeListDecoder().decode(TextBlock("1,-1,0,1,binary,1,é\n".encode(), Span("x")))
    assert rows.nodes.columns[1].values.tobytes() == "é".encode()


@pytest.mark.parametrize("name", LINES)
@given(data=st.binary(max_size=60), cut=st.integers(0, 200))
@MANY
def test_mangled_lines_do_as_the_walker_does(name, data, cut):
    usual, _, _ = LINES[name]
    whole = ("\n".join(usual) + "\n").encode()
    text = whole[:cut] + data + whole[cut + len(data) :]
    found = expected = None
    try:
        found = DECODERS[name]().decode(TextBlock(text, Span("x")))
    except DecodeError as error:
        found = (str(error), error.at)
    try:
        expected = DECODERS[name]()._decode_any(text)
    except DecodeError as error:
        expected = (str(error), error.at)
    assert_same(found, expected)


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": "."},
        {"delimiter": "e"},
        {"length_delimiter": "0"},
        {"delimiter": "||"},
    ],
)
def test_grammars_that_are_not_plain(options):
    assert EdgeListDecoder(**options)._plain_grammar is None


@SOME
@given(data=st.data(), temporal=st.booleans())
def test_default_columns_and_times(data, temporal):
    options: dict = {"temporal": temporal, "default_node_type": data.draw(st.sampled_from([None, 3]))}
    options |= {"default_edge_type": data.draw(st.sampled_from([None, 4]))}
    options |= {"default_edge_weight": data.draw(st.sampled_from([None, 0.5]))}
    options |= {"default_node_feature_types": data.draw(st.sampled_from([None, "float32", "-,int8"]))}
    if options["default_node_feature_types"]:
        options["default_node_feature_lens"] = {"float32": "2", "-,int8": "-,1"}[options["default_node_feature_types"]]
    lines = []
    for number in range(data.draw(st.integers(1, 5))):
        times = ["3", "-1"] if temporal else []
        if data.draw(st.booleans()):
            columns = [number, -1] + ([2] if options["default_node_type"] is None else []) + [1.5, *times]
            features = {None: ["float64", 1, 0.5], "float32": [1, 2.5], "-,int8": ["float32", 1, 2, 7]}
            columns += features[options["default_node_feature_types"]]
        else:
            columns = [number] + ([1] if options["default_edge_type"] is None else []) + [8]
            columns += ([0.25] if options["default_edge_weight"] is None else []) + times
        lines.append(",".join(map(str, columns)) + "\n")
    text = "".join(lines)
    assert is_plain("edgelist", text, **options)
    assert_same(decode("edgelist", text, **options), EdgeListDecoder(**options)._decode_any(text.encode()))


def test_nan_stays_a_positive_quiet_one():
    rows = decode("edgelist", "1,-1,0,-nan,float64,2,nan,-nan\n")
    assert math.isnan(rows.nodes.columns[0].values[0])
    assert rows.nodes.columns[1].values.tobytes() == np.array([np.nan, np.nan]).tobytes()
