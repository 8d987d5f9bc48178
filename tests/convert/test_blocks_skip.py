"""Faulty records are found one by one, or all at once by decoders that can: the report and what is left are the same."""

from __future__ import annotations

import itertools
import random
import re
import time

import pytest

import graphprep
from graphprep.convert.read import blocks
from graphprep.decoders.deepgnn.edgelist import EdgeListDecoder
from graphprep.decoders.deepgnn.json_lines import JsonDecoder
from graphprep.decoders.deepgnn.tsv import TsvDecoder
from graphprep.decoders.edges.decoder import EdgesDecoder
from graphprep.decoders.edges.triples import TriplesDecoder
from graphprep.decoders.tables.decoder import TablesDecoder
from graphprep.model.errors import DecodeError
from graphprep.model.graph_config import EdgeTable, GraphConfig, TableConfig
from graphprep.model.protocols import Span, TextBlock
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import merge_rows

ODD = ["x", "-1", "", "9" * 23, "1e5", '"3"', '"a', '3"4', "\xff", "NA", "1.5", "#"]


class OneByOne:
    """A decoder that tells the first fault of a block only."""

    def __init__(self, decoder):
        self.decode = decoder.decode


def draw_lines(rng, delimiter, good, odd=ODD):
    """Return lines of which the first three are sound, and many are not."""
    lines = [delimiter.join(good)] * 3
    for _ in range(rng.randint(3, 40)):
        fields = list(good)
        for _ in range(rng.choice([0, 0, 0, 1, 1, 2])):
            fields[rng.randrange(len(fields))] = rng.choice(odd)
        fields = fields[: rng.randrange(len(fields) + 1)] if rng.random() < 0.15 else fields
        lines.append(delimiter.join([*fields, *(["9"] if rng.random() < 0.1 else [])]))
    return lines


def edges_span(folder, delimiter, good, **options):
    path = folder / "e.txt"
    path.write_text(delimiter.join(good) + "\n")
    decoder = EdgesDecoder(header="no", delimiter=delimiter.strip() or None, **options)
    return decoder, decoder.plan(Storage(), [str(path)]).spans[0]


def tables_span(folder, delimiter, good, **options):
    path = folder / "t.csv"
    path.write_text(delimiter.join(good) + "\n")
    table = TableConfig((str(path),), header="no", delimiter=delimiter, columns=(("col_2", "float32"),), **options)
    decoder = TablesDecoder()
    return decoder, decoder.plan_graph(Storage(), GraphConfig(edges=(EdgeTable("a", "r", "a", table),))).spans[0]


def triples_span(folder, delimiter, good):
    path = folder / "train.tsv"
    path.write_text("".join(delimiter.join([*good[:1], "likes", *good[1:2]]) + "\n" for _ in range(3)))
    decoder = TriplesDecoder()
    return decoder, decoder.plan(Storage(), [str(path)]).spans[0]


ODD_TEXTS = [
    "2020-02-30",
    "2020-01-02",
    "2020-01-02T03:04:05.5",
    "1;x",
    "1,2",
    "[3",
    "1;300",
    "\\",
    'a\\"b',
    "\\x",
    "na",
    "1e39",
]


def declared_span(folder, delimiter, good, **options):
    """Plan a table with dates, timestamps and lists."""
    path = folder / "t.csv"
    path.write_text(delimiter.join(good) + "\n")
    columns = (("col_2", "date"), ("col_3", "timestamp[s]"), ("col_4", "list<uint8>"), ("col_5", "list<float32>[2]"))
    table = TableConfig((str(path),), header="no", delimiter=delimiter, columns=columns, **options)
    decoder = TablesDecoder()
    return decoder, decoder.plan_graph(Storage(), GraphConfig(edges=(EdgeTable("a", "r", "a", table),))).spans[0]


CASES = {
    "plain": (edges_span, ["1", "2"], [{}, {"quote": True}, {"id_type": "int"}, {"id_type": "string"}]),
    "weight": (edges_span, ["1", "2", "0.5"], [{"weight_col": "2"}, {"weight_col": "2", "quote": False}]),
    "time": (edges_span, ["1", "2", "77"], [{"time_col": "2"}, {"columns": ("col_2=int32",)}]),
    "table": (tables_span, ["1", "2", "0.5"], [{}, {"quote": False}, {"nulls": ("x",)}, {"id_type": "int"}]),
    "escape": (tables_span, ["1", "2", "0.5", "a\\,b"], [{"escape": "\\"}, {"escape": "\\", "quote": False}]),
    "declared": (
        declared_span,
        ["1", "2", "2020-01-02", "2020-01-02T03:04:05", "[1;2]", "0.5;1"],
        [{}, {"escape": "\\"}, {"nulls": ("x",)}, {"list_delimiter": ";"}],
    ),
    "triples": (triples_span, ["1", "2", "3"], [{}]),
}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", CASES)
def test_all_faults_at_once_are_those_found_one_by_one(name, seed, tmp_path):
    rng = random.Random(seed)
    span_of, good, choices = CASES[name]
    num_bad = 0
    odd = ODD + ODD_TEXTS if name in ("escape", "declared") else ODD
    for options in choices:
        delimiter = "\t" if name == "triples" else rng.choice([",", "\t"])
        decoder, span = span_of(tmp_path, delimiter, good, **options)
        for _ in range(4):
            data = ("\n".join(draw_lines(rng, delimiter, good, odd)) + rng.choice(["", "\n"])).encode("latin1")
            block = TextBlock(data, span, first_line=3, is_first=rng.random() < 0.5)
            (found, bad), (other, wanted) = (blocks.decode_block(one, block, skip=True) for one in (decoder, OneByOne(decoder)))
            assert bad == wanted
            assert found.cuts is None or found.cuts.original(0) == other.cuts.original(0)
            assert found.rows.num_records == other.rows.num_records
            if found.rows.edges is not None:
                assert found.rows.edges.num_rows == other.rows.edges.num_rows
            num_bad += len(bad)
    assert num_bad > 10


EDGELIST = [
    "1,-1,0,1.0,float32,2,0.5,1.5,int8,1,7,binary,1,a\\,b",
    "1,0,2,1.0",
    "1,0,3,2.5,float32,2/2,0,1,3,4,0.5,1.5,uint64,1,8",
    "2,-1,1,0.5,bool,2,true,0,complex64,1,1+2j,f4,1,3",
    "",
    "3,1,2,1,float16,2/0,0,3,0.25,1,binary,1,é",
]
TSV = [
    "1\t0\t1.0\tf:0.5 1.5;b:te xt\t2,0,1.0,i8:7 8|3,1,,d:1",
    "2\t1\t\t\t",
    '3\t\t0.5\t"b:say ""hi"", you;u8:255;f16:1"\t"1,0,2.0,b:""q"""',
    "4",
    "5\t0\t1\tu:18446744073709551615;i32:-5\t1,0|2,0|5,2,0.5,1,f:3",
]
JSON = [
    '{"node_id": 1, "node_type": 0, "node_weight": 1.0, "neighbor": {"0": {"2": 1.0, "3": 2}}, '
    '"float_feature": {"0": [0.5, 1.5], "2": [[1, 2], [3, 4]]}, "binary_feature": {"1": "té\\u00e9"}, "edge": '
    '[{"src_id": 1, "dst_id": 2, "edge_type": 0, "weight": 1.0, "int8_feature": {"0": [1, -2]}}, '
    '{"src_id": 1, "dst_id": 3, "edge_type": 0, "weight": 2, "int8_feature": {"0": [4]}}]}',
    '{"node_id": 2, "node_type": 1, "node_weight": 0, "edge": [], "sparse_float_feature": '
    '{"0": {"coordinates": [0, 5], "values": [1, 2.5]}, "1": {"coordinates": [[0, 5], [1, 7]], "values": [1, 2]}}}',
    "",
    '{"node_id": 3, "node_type": 1, "node_weight": 1, "neighbor": {}, "uint8_feature": {"0": [{"values": [1, 2], '
    '"created_at": 0}], "7": 5}, "binary_feature": {"4": [{"values": "x", "created_at": 1}]}, "what": 1}',
    '{"node_id": 4, "node_type": 1, "node_weight": 1, "neighbor": {"1": {"9": 0.5}}, "edge": [{"src_id": 4, "dst_id": 8, '
    '"edge_type": 1, "weight": 0.5}]}',
]
PIECES = [
    "x",
    "-1",
    "",
    "300",
    "9" * 23,
    "1e39",
    '"',
    '""',
    "\xff",
    "\xc3",
    "nan",
    ",",
    "/2",
    ";",
    "|",
    "}",
    "]",
    ",}",
    "\\",
    "\\ud800",
]
VALUES = ["-1", "300", "1e39", "1e999", "2.5", "null", '"x"', '"\\ud800"', "[1, 2]", "{}", "9" * 23, str(2**63)]
DEEPGNN = {
    "edgelist": (
        EDGELIST,
        [EdgeListDecoder(), EdgeListDecoder(default_edge_weight=1.0), EdgeListDecoder(weight_dtype="float64")],
    ),
    "tsv": (TSV, [TsvDecoder(), TsvDecoder(weight_dtype="float64")]),
    "json": (JSON, [JsonDecoder(), JsonDecoder(strict=True)]),
}


def draw_mutants(rng, lines):
    """Return sound lines and such as have other values, or bytes cut out and put in, as bytes."""
    mutants = []
    for _ in range(rng.randint(1, 30)):
        line = rng.choice(lines).encode()
        for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
            values = list(re.finditer(rb"(?<=[ [,:\t])[0-9.]+", line))
            if rng.random() < 0.6 and values:
                value = rng.choice(values)
                line = line[: value.start()] + rng.choice(VALUES).encode() + line[value.end() :]
                continue
            parts = re.split(rb"(\W)", line)
            at = rng.randrange(len(parts))
            if rng.random() < 0.7:
                parts[at] = rng.choice(PIECES).encode("latin1")
            else:
                del parts[at : at + rng.randint(1, 5)]
            line = b"".join(parts)
        mutants.append(line + rng.choice([b"\n", b"\n", b"\r\n"]))
    return mutants


def faults_alone(decoder, span, lines):
    """Yield where each faulty line is wrong, and how, decoded by itself."""
    start = 0
    for line in lines:
        try:
            decoder.decode(TextBlock(line, span))
        except DecodeError as error:
            yield start + error.at, error.message, error.fix
        start += len(line)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", DEEPGNN)
def test_faults_of_deepgnns_formats_are_those_of_their_lines(name, seed):
    rng = random.Random(seed)
    lines, decoders = DEEPGNN[name]
    num_bad = num_good = 0
    for decoder, _ in itertools.product(decoders, range(6)):
        mutants = draw_mutants(rng, lines)
        data = b"".join(mutants)
        data = data.removesuffix(b"\n") if rng.random() < 0.3 else data
        block = TextBlock(data, Span("file"), first_line=7)
        wanted = list(faults_alone(decoder, block.span, data.splitlines(keepends=True)))
        assert [(fault.at, fault.message, fault.fix) for fault in decoder.find_faults(block)] == wanted
        (found, bad), (other, wanted_bad) = (blocks.decode_block(one, block, skip=True) for one in (decoder, OneByOne(decoder)))
        assert bad == wanted_bad
        assert len(bad) == len(wanted)
        assert merge_rows([found.rows]) == merge_rows([other.rows])
        num_bad += len(bad)
        num_good += found.rows.num_records
    assert num_bad > 20
    assert num_good > 20


@pytest.mark.parametrize("name", DEEPGNN)
def test_faults_of_a_sound_block(name):
    lines, decoders = DEEPGNN[name]
    assert decoders[0].find_faults(TextBlock("\n".join(lines).encode(), Span("file"))) == []


# Sound and faulty JSON of the columns of a table, by key.
MEMBERS = {
    "src": (["1", '"2"', '"\\u0033"', str(2**64 - 1)], ["-1", '"x"', "1.5", "null", "true", "[1]", '""', '"\\ud800"', str(2**64)]),
    "dst": (["4", '"5"'], ["{}", "1e2", '"-7"']),
    "rel": (['"likes"', '"é"', "7"], ['""', '" "', "null", "false", '"\\udc00x"']),
    "weight": (["0.5", '"1e3"', "2", "null", '""'], ["1e39", '"x"', "true", '"\\ud800"']),
    "time": (["77", '"5"', "1.5", "null"], ["1.2345", "1e40", '"2020-01-02"', '"\\ud800"']),
    "open": (["1", "-0", "2.5", "true", '"text"', '"\\n"', "9" * 23, "null"], ["1e999", "[1]", "{}", '"\\ud83d"']),
    "late": (["1", "2.5", "false"], ["-1e999", "[]", '"\\ud83d"']),
    "vector": (["[1, 2]", "[3, 4.5]", "[1, null]", "[]"], ["[1e999]", '["x"]', "[true]", "[[1]]", "5", '"1,2"', "{}"]),
    "narrow": (["-128", '"127"', "null", '""'], ["128", "2.5", '"x"', "true", "[1]", '"\\ud800"']),
    "real": (["1", '" 2.5 "', "NaN", "Infinity"], ["1e39", '"1_0"', "false"]),
    "day": (["5", "-7", '"2020-01-02"', '""'], ['"2020-02-30"', "2.5", "true", str(2**63), "[1]", '"\\ud800"']),
    "stamp": (["5", '"2020-01-02T03:04:05Z"'], ['"2020-01-02T03:04:05.5"', '"9"', str(2**63)]),
    "bytes": (["[1, 2]", "[]", '"3,4"', '"[5]"', '""', "null"], ["[256, -1]", "[null]", '"1,x"', '["a"]', "6", "[[1]]", '"\\ud800"']),
    "pair": (["[1, 2]", '"0.5,1"'], ["[1]", "[1, 1e39, 2]", '"1,2,3"', '"1e39,1"', '["a", 1]']),
    "flags": (["[true, 0]", '"1,false"', "[]"], ["[2]", "[null, 3]", '["true"]', '"2"', "[0.0]"]),
    "text": (['"a\\"b"', "5", "true", '""'], ["[1]", '"\\ud800"']),
}  # fmt: skip
WHOLE = [
    "[1]",
    "5",
    '"x"',
    "null",
    "{}",
    '{"src": 1',
    '{"src": 1}}',
    '{"src": 1, }',
    '{"src": "\xff"}',
    "{'src': 1}",
    "\ufeff{}",
    '{"a',
]
EXTRA = [
    '"src": 9',
    '"open": [1]',
    '"d\\u0073t": "x"',
    '"\\ud800": 1',
    '"\\ud800": 1, "\\uD800": 2',
    '"new": 1e999',
    '"new": 3',
    '"": [1]',
]


def draw_records(rng):
    """Return lines of JSON, many of them faulty in several ways."""
    lines = ["{" + ", ".join(f'"{key}": {good[0]}' for key, (good, _) in MEMBERS.items() if key != "late") + "}"]
    for _ in range(rng.randint(3, 40)):
        risk = rng.choice([0, 0, 0, 0.1, 0.3])
        members = [f'"{key}": {rng.choice(bad if rng.random() < risk else good)}' for key, (good, bad) in MEMBERS.items()]
        members = [member for member in members if rng.random() > 0.02]
        rng.shuffle(members)
        for _ in range(rng.choice([0, 0, 0, 0, 1, 2]) if risk else 0):
            members.insert(rng.randrange(len(members) + 1), rng.choice(EXTRA))
        lines.append("{" + ", ".join(members) + "}" if rng.random() > 0.1 else rng.choice(["", *WHOLE]))
    return [line.encode("utf-8", "surrogateescape") + rng.choice([b"\n", b"\r\n"]) for line in lines]


def json_span(folder, **options):
    (folder / "t.jsonl").write_bytes(draw_records(random.Random(0))[0])
    columns = {"narrow": "int8", "real": "float32", "day": "date", "stamp": "timestamp[s]", "bytes": "list<uint8>"}
    columns |= {"pair": "list<float32>[2]", "flags": "list<bool>", "text": "binary"}
    table = TableConfig((str(folder / "t.jsonl"),), columns=tuple(columns.items()), **options)
    decoder = TablesDecoder()
    edges = EdgeTable("a", None, "a", table, relation_col="rel", weight_col="weight", time_col="time", time_unit="ms")
    return decoder, decoder.plan_graph(Storage(), GraphConfig(edges=(edges,))).spans[0]


@pytest.mark.parametrize("seed", range(10))
def test_faults_of_json_tables_are_those_of_their_lines(seed, tmp_path):
    rng = random.Random(seed)
    num_bad = num_good = 0
    for id_type in ("uint", "int", "string"):
        decoder, span = json_span(tmp_path, id_type=id_type)
        for _ in range(4):
            lines = draw_records(rng)
            data = b"".join(lines)
            data = data.removesuffix(b"\n") if rng.random() < 0.3 else data
            block = TextBlock(data, span, first_line=7)
            wanted = list(faults_alone(decoder, span, data.splitlines(keepends=True)))
            assert [(fault.at, fault.message, fault.fix) for fault in decoder.find_faults(block)] == wanted
            (found, bad), (other, wanted_bad) = (
                blocks.decode_block(one, block, skip=True) for one in (decoder, OneByOne(decoder))
            )
            assert bad == wanted_bad
            assert len(bad) == len(wanted)
            assert merge_rows([found.rows]) == merge_rows([other.rows])
            num_bad += len(bad)
            num_good += found.rows.num_records
    assert num_bad > 20
    assert num_good > 20


class Stricter(EdgesDecoder):
    """A class of a stranger, which refuses more than the one that it is made of."""

    def decode(self, block, places=False):
        at = (b"\n" + block.data).find(b"\n13,")
        try:
            rows = super().decode(block, places)
        except DecodeError as error:
            if not 0 <= at < error.at:
                raise
        if at >= 0:
            raise DecodeError("13 is no node", at=at)
        return rows


def test_a_class_that_refuses_more_than_what_finds_all_faults(tmp_path):
    _, span = edges_span(tmp_path, ",", ["1", "2"])
    block = TextBlock(b"1,2\n13,1\nx,1\n2,3\n13,7\n4,5\n", span)
    found, bad = blocks.decode_block(Stricter(header="no"), block, skip=True)
    assert found.rows.edges.src.tolist() == [1, 2, 4]
    assert [record.place.rpartition("e.txt:")[2] for record in bad] == ["2:1", "3:1", "5:1"]


def test_200_000_bad_lines(tmp_path):
    """Linear, and far from the 0.7 ms a line that trying each on its own took."""
    path = tmp_path / "e.txt"
    path.write_text("".join(f"{i} {i + 1}\nx{i} 3\n" for i in range(200_000)))
    began = time.process_time()
    done = graphprep.convert(path, tmp_path / "out", format="edges", on_error="skip", bad_records=str(tmp_path / "bad"))
    assert time.process_time() - began < 30
    assert done.num_skipped == 200_000
    with (tmp_path / "bad").open() as lines:
        for number, line in enumerate(lines):
            if number % 9973 == 0:
                assert line == (
                    f'{{"place": "{path}:{2 * number + 2}:1", "reason": "field \'src\' must be an integer, '
                    f"found 'x{number}'\"}}\n"
                )
    assert number == 199_999
