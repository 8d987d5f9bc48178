"""DeepGNN's JSON: what its lines mean, and every message."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.decoders.deepgnn.json_lines import JsonDecoder
from graphprep.decoders.registry import bid_of
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Sniffed, SniffedFile, Span, TextBlock
from graphprep.model.rows import ColumnChunk, RawRows

INTS = {f"{sign}int{bits}": (0 if sign else -(2 ** (bits - 1)), 2 ** (bits - (0 if sign else 1)) - 1)
        for sign in ("u", "") for bits in (8, 16, 32, 64)}  # fmt: skip
FLOATS = {"float": "float32", "double": "float64", "float16": "float16", "float32": "float32", "float64": "float64"}
DTYPES = {**FLOATS, **{name: name for name in INTS}}


def node(number=0, **more):
    return {"node_id": number, "node_type": 0, "node_weight": 1.0, "edge": [], **more}


def edge(src=0, dst=1, **more):
    return {"src_id": src, "dst_id": dst, "edge_type": 0, "weight": 1.0, **more}


def as_line(record) -> bytes:
    return (record if isinstance(record, str) else json.dumps(record)).encode()


def decode(*records, places=False, **options) -> RawRows:
    data = b"".join(as_line(record) + b"\n" for record in records)
    return JsonDecoder(**options).decode(TextBlock(data, Span("graph.json")), places)


def column(rows, name, family=None) -> ColumnChunk:
    (found,) = [c for c in rows.columns if c.key.name == name and (family is None or c.key.family == family)]
    return found


def names(rows) -> list[str]:
    return [chunk.key.name for chunk in rows.columns]


# ------------------------------------------------------------------------------------------------ ids, types, weights, times


def test_reads_a_record():
    rows = decode(
        node(
            2**64 - 1,
            node_type=7,
            node_weight=0.1,
            edge=[edge(5, 2**63, edge_type=2**31 - 1, weight=-1e-3), edge(2**64 - 1, 0)],
        ),
        node(3, node_type=1, edge=[edge(3, 4, weight=2)]),
        places=True,
    )
    nodes, edges = rows.nodes, rows.edges
    assert nodes.ids.tolist() == [2**64 - 1, 3]
    assert [nodes.type_names[code] for code in nodes.types] == ["7", "1"]
    assert edges.src.tolist() == [5, 2**64 - 1, 3]  # an edge's source need not be its record's node
    assert edges.dst.tolist() == [2**63, 0, 4]
    assert [edges.relation_names[code].name for code in edges.relations] == [str(2**31 - 1), "0", "0"]
    assert edges.record.tolist() == [0, 0, 1]
    assert column(nodes, "weight").values.tolist() == [np.float32(0.1), 1]
    assert column(edges, "weight").values.tolist() == [np.float32(-1e-3), 1, 2]
    assert column(decode(node(node_weight=0.1), weight_dtype="float64").nodes, "weight").values.tolist() == [0.1]
    assert names(nodes) == names(edges) == ["weight"]
    assert (rows.num_records, rows.warnings) == (2, {})


def read_or_fault(line, places):
    """Return all that a line says of edges; with places, nothing but the reader of any line takes part."""
    try:
        edges = decode(line, places=places).edges
    except DecodeError as error:
        return str(error), error.at
    columns = [(one.key, one.rows.tolist(), one.counts.tolist(), list(map(str, one.values))) for one in edges.columns]
    ends = [part.tolist() for part in (edges.src, edges.dst, edges.relations, edges.num_slots)]
    return ends, edges.relation_names, columns


NUMBERS = ["0", "7", "12345678", "123456789", "98765432109876543210", "007", "-1", "1.5", "0.1234567", "12.345678", "1.", ".5"]
NUMBERS += ["1e3", "-0.0", "NaN", "null", '"7"', "", "1 ", "2147483648", "3.4028235677973366e38"]


@pytest.mark.parametrize("place", ["src_id", "dst_id", "edge_type", "weight"])
@pytest.mark.parametrize("behind", ["", ', "float_feature": {"0": [1.5]}', ', "weight": 2', " ", ', "other": 1'])
def test_edges_as_they_are_mostly_written_are_read_like_all_others(place, behind):
    """There is a way of its own for them. It must not be taken where something is written in another way."""
    for number in NUMBERS:
        values = {"src_id": "1", "dst_id": "2", "edge_type": "3", "weight": "0.25"} | {place: number}
        edge = ", ".join(f'"{key}": {value}' for key, value in values.items()) + behind
        line = f'{{"node_id": 1, "node_type": 0, "node_weight": 1, "edge": [{{{edge}}}, {{{edge}}}]}}'
        assert read_or_fault(line, places=False) == read_or_fault(line, places=True), line


def test_types_are_named_in_the_order_of_their_numbers():
    rows = decode(*(node(i, node_type=kind) for i, kind in enumerate([70000, 3, 70000, 12])))
    assert rows.nodes.type_names == ("3", "12", "70000")
    assert rows.nodes.types.tolist() == [2, 0, 2, 1]


def test_keys_may_be_escaped_and_stand_in_any_order():
    line = (
        r'{"edge":[{"weight":1,"\u0065dge_type":2,"dst_id":4,"src_id":3}],"node\u005ftype":0,"node_weight":1,"\u006eode_id":-0}'
    )
    rows = decode(line)
    assert rows.nodes.ids.tolist() == [0]
    assert (rows.edges.src.tolist(), rows.edges.dst.tolist(), rows.edges.relation_names[0].name) == ([3], [4], "2")
    rows = decode('{"node_id":0,"node_type":0,"node_weight":1,"edge":[],"float\\u005ffeature":{"\\u0031":[5]}}')
    assert column(rows.nodes, "feat_1").values.tolist() == [5]


@pytest.mark.parametrize(("text", "value"), [("NaN", math.nan), ("Infinity", math.inf), ("-Infinity", -math.inf), ("-0", -0.0)])
def test_weights_may_be_special(text, value):
    rows = decode(f'{{"node_id":0,"node_type":0,"node_weight":{text},"edge":[]}}')
    assert repr(column(rows.nodes, "weight").values.tolist()) == repr([value])


def test_an_edge_takes_the_times_of_its_records_node():
    rows = decode(
        node(0, created_at=5, edge=[edge(), edge(created_at=7), edge(removed_at=0)]),
        node(1, edge=[edge(), edge(removed_at=-1)]),
        node(2, created_at=-(2**63), removed_at=2**63 - 1, neighbor={"0": {"1": 1}}),
    )
    created, removed = column(rows.edges, "created_at"), column(rows.edges, "removed_at")
    assert (created.rows.tolist(), created.values.tolist()) == ([0, 1, 2], [5, 7, 5])
    assert (removed.rows.tolist(), removed.values.tolist()) == ([2, 4], [0, -1])
    assert column(rows.nodes, "created_at").values.tolist() == [5, -(2**63)]
    assert column(rows.nodes, "removed_at").values.tolist() == [2**63 - 1]


def test_edges_keep_their_order():
    ends = [(3, 1), (1, 9), (3, 0), (0, 5)]
    rows = decode(node(edge=[edge(0, dst, edge_type=kind) for kind, dst in ends]))
    assert rows.edges.dst.tolist() == [dst for _, dst in ends]


# ------------------------------------------------------------------------------------------------ neighbor


def test_neighbor_is_used_where_edge_is_absent():
    record = node(4, neighbor={"2": {"9": 0.5, "1": 2}, "0": {"18446744073709551615": 1}})
    del record["edge"]
    rows = decode(record, places=True)
    assert rows.edges.src.tolist() == [4, 4, 4]
    assert rows.edges.dst.tolist() == [9, 1, 2**64 - 1]
    assert [rows.edges.relation_names[code].name for code in rows.edges.relations] == ["2", "2", "0"]
    assert column(rows.edges, "weight").values.tolist() == [0.5, 2, 1]
    assert rows.edges.num_slots.tolist() == [0, 0, 0]
    line = json.dumps(record)
    assert rows.edges.at_src.tolist() == [line.index("4")] * 3
    assert rows.edges.at_dst.tolist() == [line.index('"9"'), line.index('"1"'), line.index('"1844')]


@pytest.mark.parametrize(
    ("edges", "neighbor", "differs"),
    [
        ([(1, 0, 1)], {"0": {"1": 1}}, False),
        ([(1, 0, 1)], {"0": {"1": 1.0}}, False),
        ([(2, 3, 0.5), (1, 0, 1)], {"0": {"1": 1}, "3": {"2": 0.5}}, False),
        ([], {}, False),
        ([(1, 0, 0.0)], {"0": {"1": -0.0}}, False),
        ([(1, 0, math.nan)], {"0": {"1": math.nan}}, False),
        ([(1, 0, 1)], {}, True),
        ([], {"0": {"1": 1}}, True),
        ([(1, 0, 1)], {"0": {"1": 2}}, True),
        ([(1, 0, 1)], {"0": {"2": 1}}, True),
        ([(1, 0, 1)], {"1": {"1": 1}}, True),
        ([(1, 0, 1), (1, 0, 1)], {"0": {"1": 1}}, True),
    ],
)
def test_edge_and_neighbor_are_compared(edges, neighbor, differs):
    record = node(7, edge=[edge(7, dst, edge_type=kind, weight=weight) for dst, kind, weight in edges], neighbor=neighbor)
    same = node(8, edge=[edge(8, 1)], neighbor={"0": {"1": 1}})
    rows = decode(same, record, same, node(9), record)
    warning = {"'edge' and 'neighbor' of a record differ; 'edge' is used": 2}
    assert rows.warnings == (warning if differs else {})
    assert rows.edges.num_rows == 2 * len(edges) + 2
    if not differs:
        decode(same, record, strict=True)
        return
    with pytest.raises(DecodeError) as caught:
        decode(same, record, same, strict=True)
    assert str(caught.value) == (
        "fields 'edge' and 'neighbor' of a record differ\n  fix: drop 'neighbor', or convert without --strict"
    )
    data = as_line(same) + b"\n" + as_line(record)
    assert data[caught.value.at :] == json.dumps(neighbor).encode() + b"}"


def test_another_source_differs_from_neighbor():
    rows = decode(node(7, edge=[edge(8, 1)], neighbor={"0": {"1": 1}}))
    assert len(rows.warnings) == 1


# ------------------------------------------------------------------------------------------------ features


@pytest.mark.parametrize("group", DTYPES)
def test_numbers_of_every_group(group):
    dtype = DTYPES[group]
    values = list(INTS[group]) if group in INTS else [1.5, -0.0, 1e-8, 6e4]
    expected = np.array(values, dtype)
    rows = decode(node(**{f"{group}_feature": {"3": values}}, edge=[edge(**{f"{group}_feature": {"0": values}})]))
    for owner, name in ((rows.nodes, "feat_3"), (rows.edges, "feat_0")):
        found = column(owner, name)
        assert (found.key.family, found.key.dtype, found.values.dtype) == ("numbers", dtype, np.dtype(dtype))
        assert found.values.tobytes() == expected.tobytes()
        assert found.item_shape == (len(values),)
    assert (rows.nodes.num_slots.tolist(), rows.edges.num_slots.tolist()) == ([4], [1])


def test_a_scalar_is_one_value_and_null_is_nan():
    rows = decode(
        node(0, float_feature={"0": 5, "1": None, "2": [1, None]}, int8_feature={"3": -5}),
        node(1, float_feature={"0": [6]}),
    )
    assert (column(rows.nodes, "feat_0").values.tolist(), column(rows.nodes, "feat_0").item_shape) == ([5, 6], (1,))
    assert np.isnan(column(rows.nodes, "feat_1").values).tolist() == [True]
    assert np.isnan(column(rows.nodes, "feat_2").values).tolist() == [False, True]
    assert column(rows.nodes, "feat_3").values.tolist() == [-5]


def test_integers_beyond_64_bits_are_numbers_in_float_groups():
    rows = decode(node(double_feature={"0": [2**64, -(2**70), 10**25]}))
    assert column(rows.nodes, "feat_0").values.tolist() == [float(2**64), float(-(2**70)), 1e25]


def test_nested_numbers_keep_their_shape():
    rows = decode(
        node(0, float_feature={"0": [[1, 2], [3, 4]]}),
        node(1, float_feature={"0": [[5, 6], [7, 8]]}),
        node(2, float_feature={"0": [1, 2, 3, 4]}),
        node(3, float_feature={"0": [[[9]]]}),
    )
    found = {chunk.item_shape: (chunk.rows.tolist(), chunk.values.tolist()) for chunk in rows.nodes.columns[1:]}
    assert found == {(4,): ([2], [1, 2, 3, 4]), (2, 2): ([0, 1], [1, 2, 3, 4, 5, 6, 7, 8]), (1, 1, 1): ([3], [9])}
    assert {chunk.key for chunk in rows.nodes.columns[1:]} == {rows.nodes.columns[1].key}


def test_lists_of_several_lengths_are_ragged():
    found = column(decode(node(0, int8_feature={"0": [1]}), node(1, int8_feature={"0": [2, 3]})).nodes, "feat_0")
    assert (found.counts.tolist(), found.item_shape) == ([1, 2], None)


def test_absent_features_count_as_slots():
    empty = {"coordinates": [], "values": []}
    rows = decode(
        node(
            float_feature={"0": [], "1": [[], []], "2": [[[]]]},
            sparse_int8_feature={"3": empty, "4": {"coordinates": [[], []], "values": []}},
            binary_feature={"9": []},
            double_feature=None,
            uint8_feature={},
        ),
        node(edge=[edge(float_feature={"5": []})]),
    )
    assert names(rows.nodes) == names(rows.edges) == ["weight"]
    assert (rows.nodes.num_slots.tolist(), rows.edges.num_slots.tolist()) == ([10, 0], [6])


def test_slots_are_numbers():
    rows = decode(node(float_feature={"007": [1], " 8": [2], "2147483646": [3]}), node(float_feature={"7": [4]}))
    assert column(rows.nodes, "feat_7").values.tolist() == [1, 4]
    assert column(rows.nodes, "feat_8").values.tolist() == [2]
    assert column(rows.nodes, "feat_2147483646").values.tolist() == [3]
    assert rows.nodes.num_slots.tolist() == [2**31 - 1, 8]


def test_one_slot_may_have_several_kinds():
    rows = decode(
        node(0, float_feature={"0": [1]}),
        node(1, double_feature={"0": [2]}),
        node(2, sparse_float_feature={"0": {"coordinates": [3], "values": [4]}}),
        node(3, sparse_float_feature={"0": {"coordinates": [[3, 1]], "values": [4]}}),
        node(4, binary_feature={"0": "x"}),
        node(5, float32_feature={"0": [5]}),
        node(6, float_feature={"0": [{"values": 1, "created_at": 0}]}),
    )
    found = {(c.key.family, c.key.dtype, c.key.width): c.rows.tolist() for c in rows.nodes.columns[1:]}
    assert found == {
        ("numbers", "float32", 0): [0, 5],
        ("numbers", "float64", 0): [1],
        ("sparse", "float32", 0): [2],
        ("sparse", "float32", 2): [3],
        ("binary", "uint8", 0): [4],
        ("temporal", "float32", 0): [6],
    }


def test_sparse_values_have_coordinates():
    rows = decode(
        node(0, sparse_double_feature={"0": {"coordinates": [5, 2**63 - 1], "values": [1, None]}}),
        node(1, sparse_double_feature={"0": {"values": 7, "coordinates": [0]}}),
        node(2, sparse_double_feature={"1": {"coordinates": [[1, 2, 3]], "values": [4]}}),
    )
    flat, wide = column(rows.nodes, "feat_0"), column(rows.nodes, "feat_1")
    assert (flat.key.width, flat.coords.tolist(), flat.counts.tolist()) == (0, [5, 2**63 - 1, 0], [2, 1])
    assert repr(flat.values.tolist()) == "[1.0, nan, 7.0]"
    assert (wide.key.width, wide.coords.tolist(), wide.values.tolist()) == (3, [1, 2, 3], [4])


@pytest.mark.parametrize("ascii_only", [True, False])
def test_texts_are_their_utf8_bytes(ascii_only):
    texts = ["", "plain", 'a"b\\c/\b\f\n\r\t\x00\x1f', "é€😀\u2028\x85\x0b", "\x7f\ud7ff\ue000"]
    lines = [json.dumps(node(i, binary_feature={"0": text}), ensure_ascii=ascii_only) for i, text in enumerate(texts)]
    found = column(decode(*lines).nodes, "feat_0")
    expected = [text.encode() for text in texts]
    assert (found.counts.tolist(), found.values.tobytes()) == ([len(text) for text in expected], b"".join(expected))


def test_temporal_features_keep_their_entries_in_input_order():
    rows = decode(
        node(0, int16_feature={"0": [{"values": [1, 2], "created_at": 9}, {"created_at": 3, "values": 4, "removed_at": 0}]}),
        node(1, int16_feature={"0": [{"values": [], "created_at": -5, "removed_at": -1}]}, binary_feature={"1": [{"values": "é", "created_at": 0}]}),
        node(2, float_feature={"0": [{"values": [[1, None], [2, 3]], "created_at": 1}]}),
    )  # fmt: skip
    by_dtype = {c.key.dtype: c for c in rows.nodes.columns if c.key.family == "temporal"}
    found = by_dtype["int16"]
    assert (found.rows.tolist(), found.entry_counts.tolist(), found.counts.tolist()) == ([0, 1], [2, 1], [2, 1, 0])
    assert (found.start.tolist(), found.end.tolist(), found.values.tolist()) == ([9, 3, -5], [-1, 0, -1], [1, 2, 4])
    assert by_dtype["uint8"].values.tobytes() == "é".encode()
    assert repr(by_dtype["float32"].values.tolist()) == "[1.0, nan, 2.0, 3.0]"
    assert "created_at" not in names(rows.nodes)


# ------------------------------------------------------------------------------------------------ keys and lines


def test_unknown_keys_are_counted():
    dated = {"values": 1, "created_at": 0, "why": {}}
    rows = decode(
        node(0, foo=1, weight=2, edge=[edge(foo=[{"a": [1]}], my_features={}), edge(node_id=5)]),
        node(1, foo=None, float_feature={"0": [dated, dated]}, sparse_int8_feature={"1": {"coordinates": [0], "values": [1], "shape": 3}}),
        '{"node_id": 2, "node_type": 0, "node_weight": 1, "edge": [], "\\u0066oo": 1, "\\ud800": 2, "": 3}',
    )  # fmt: skip
    counts = {"foo": 4, "weight": 1, "my_features": 1, "node_id": 1, "why": 2, "shape": 1, "\ud800": 1, "": 1}
    assert rows.warnings == {f"unknown key {name!r} ignored": count for name, count in counts.items()}


def test_lines_end_at_lf_only():
    texts = ["a\u2028b", "a\x85b", "a\x0bb", "a\x0cb", "a\x1cb", "a\rb"]
    lines = [
        json.dumps(node(i, binary_feature={"0": text}), ensure_ascii=i % 2 == 0 or text < "a\x20")
        for i, text in enumerate(texts)
    ]
    data = "\r\n".join(lines).encode()
    rows = JsonDecoder().decode(TextBlock(b"\n \t\r\n" + data, Span("x")), True)
    assert rows.num_records == len(texts)
    assert column(rows.nodes, "feat_0").values.tobytes() == "".join(texts).encode()


def test_blank_blocks_have_no_rows():
    for data in (b"", b"\n", b" \r\n\t\n", b"  "):
        rows = JsonDecoder().decode(TextBlock(data, Span("x")), True)
        assert (rows.num_records, rows.nodes.num_rows, rows.edges.num_rows) == (0, 0, 0)


def test_depth_100_is_fine_where_the_value_is_ignored():
    def nested(depth):
        return json.dumps(node(foo="@")).replace('"@"', "[" * depth + "]" * depth)

    assert decode(nested(99)).num_records == 1
    with pytest.raises(DecodeError, match="the document is nested beyond 100 levels"):
        decode(nested(100))


def test_many_neighbors_and_slots():
    record = node(0, neighbor={"0": {str(i): i for i in range(3000)}}, int32_feature={str(i): [i] for i in range(6000)})
    del record["edge"]
    rows = decode(record)
    assert rows.edges.dst.tolist() == list(range(3000))
    assert [c.values.tolist() for c in rows.nodes.columns[1:]] == [[i] for i in range(6000)]
    text = json.dumps(record)
    with pytest.raises(DecodeError, match='key "17" stands twice in one object'):
        decode(text.replace('"2999":', '"17":', 1))
    with pytest.raises(DecodeError, match='feature slot "17" stands twice'):
        decode(text.replace('"5999": [', '"17": ['))
    with pytest.raises(DecodeError, match='feature slot "5000" stands twice'):
        decode(text.replace('"5999": [', '"5000": ['))


# ------------------------------------------------------------------------------------------------ property: decode inverts write

_NUMBER = st.floats(width=32)
FEATURE_SETS = st.dictionaries(
    st.integers(0, 20),
    st.one_of(
        st.tuples(st.sampled_from(sorted(INTS)), st.just("dense"), st.integers(0, 4), st.integers(0, 10**6)),
        st.tuples(st.sampled_from(["float", "double"]), st.just("values"), st.lists(_NUMBER, min_size=1, max_size=4)),
        st.tuples(st.sampled_from(["int8", "float"]), st.just("sparse"), st.integers(0, 3), st.integers(1, 3)),
        st.tuples(st.just("binary"), st.just("text"), st.text(st.characters(codec="utf-8"), max_size=6)),
        st.tuples(st.just("int64"), st.just("dated"), st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=1, max_size=3)),
    ),
    max_size=5,
)  # fmt: skip


def write_features(features) -> tuple[dict, dict]:
    """Groups as JSON has them, and what each slot should decode to."""
    groups: dict[str, dict] = {}
    expected = {}
    for slot, (kind, shape, *rest) in features.items():
        group, dtype = f"{kind}_feature", DTYPES.get(kind, "uint8")
        if shape == "dense":
            low, high = INTS[kind]
            value = [low + (rest[1] * (i + 1)) % (high - low + 1) for i in range(rest[0])]
            found = ("numbers", dtype, repr(value)) if value else None
        elif shape == "values":
            value = rest[0]
            found = ("numbers", dtype, repr(np.array(value, dtype).tolist()))
        elif shape == "sparse":
            width, count = rest
            coords = [[i * 7 + j for j in range(width)] if width else i * 7 for i in range(count)]
            group = f"sparse_{group}"
            value = {"values": list(range(count)), "coordinates": coords}
            flat = np.array(coords).ravel().tolist()
            found = ("sparse", dtype, repr(np.arange(count).astype(dtype).tolist()), flat)
        elif shape == "text":
            value = rest[0]
            found = ("binary", "uint8", value.encode())
        else:
            value = [{"values": [end, 1], "created_at": start, "removed_at": end} for start, end in rest[0]]
            found = ("temporal", dtype, [(start, end, [end, 1]) for start, end in rest[0]])
        groups.setdefault(group, {})[str(slot)] = value
        if found is not None:
            expected[slot] = found
    return groups, expected


def read_features(rows) -> list[dict]:
    """What each row's slots decoded to, one value at a time."""
    out: list[dict] = [{} for _ in range(rows.num_rows)]
    for chunk in rows.columns:
        if chunk.key.slot is not None:
            for row, value in zip(chunk.rows.tolist(), _values(chunk), strict=True):
                out[row][chunk.key.slot] = value
    return out


def _values(chunk: ColumnChunk) -> Iterator[tuple]:
    key, at, entry = chunk.key, 0, 0
    for i in range(chunk.rows.size):
        if key.family == "temporal":
            entries = []
            for j in range(entry, entry + int(chunk.entry_counts[i])):
                stop = at + int(chunk.counts[j])
                entries.append((int(chunk.start[j]), int(chunk.end[j]), chunk.values[at:stop].tolist()))
                at = stop
            entry += int(chunk.entry_counts[i])
            yield "temporal", key.dtype, entries
            continue
        stop = at + int(chunk.counts[i])
        values, width = chunk.values[at:stop], max(key.width, 1)
        if key.family == "binary":
            yield "binary", "uint8", values.tobytes()
        elif key.family == "sparse":
            yield "sparse", key.dtype, repr(values.tolist()), chunk.coords[at * width : stop * width].tolist()
        else:
            yield "numbers", key.dtype, repr(values.tolist())
        at = stop


@settings(deadline=None, max_examples=80)
@given(
    st.lists(st.tuples(st.integers(0, 2**64 - 1), FEATURE_SETS, st.lists(FEATURE_SETS, max_size=3)), max_size=5), st.booleans()
)
def test_decode_inverts_write(graph, ascii_only):
    lines, node_slots, edge_slots, counts = [], [], [], []
    for number, features, edges in graph:
        groups, expected = write_features(features)
        node_slots.append(expected)
        counts.append(max(features, default=-1) + 1)
        written = []
        for one in edges:
            more, found = write_features(one)
            written.append(edge(number, 1, **more))
            edge_slots.append(found)
        lines.append(json.dumps(node(number, **groups, edge=written), ensure_ascii=ascii_only))
    rows = decode(*lines)
    assert rows.nodes.ids.tolist() == [number for number, *_ in graph]
    assert rows.nodes.num_slots.tolist() == counts
    assert read_features(rows.nodes) == node_slots
    assert read_features(rows.edges) == edge_slots


# ------------------------------------------------------------------------------------------------ faults

GOOD = '{"node_id": 0, "node_type": 0, "node_weight": 1, "edge": []}'
ONE_DOCUMENT = "write one JSON document a line, strictly as RFC 8259 has it"
IN_NODE = '{"node_id": 0, "node_type": 0, "node_weight": 1, "edge": [], @}'
IN_EDGE = (
    '{"node_id": 0, "node_type": 0, "node_weight": 1, "edge": [{"src_id": 0, "dst_id": 1, "edge_type": 0, "weight": 1, @}]}'
)
NEEDS_NODE = "add it: a record has node_id, node_type, node_weight and edge"
NEEDS_EDGE = "add it: an edge has src_id, dst_id, edge_type and weight"
GROUPS = (
    "use int8, int16, int32, int64, uint8, uint16, uint32, uint64, float16, float, float32, double or float64 before '_feature', "
    "or 'binary_feature'; put 'sparse_' before the numeric ones for sparse features"
)


def in_node(text):
    return IN_NODE.replace("@", text)


def in_edge(text):
    return IN_EDGE.replace("@", text)


def group(text, name="float"):
    return in_node(f'"{name}_feature": {text}')


def swapped(old, new):
    return in_edge("@").replace(", @", "").replace(old, new, 1)


# A line, the text that its fault stands at, and the message with its remedy.
FAULTS = [
    ("[1]", "[1]", "a record must be a JSON object, found [1]", "write one node as an object a line"),
    ('"x"', '"x"', 'a record must be a JSON object, found "x"', "write one node as an object a line"),
    ("nul", "nul", "expected a JSON value, found 'n'", ONE_DOCUMENT),
    (GOOD + " {", "{\n", "expected the end of the line behind the document, found '{'", ONE_DOCUMENT),
    (GOOD.replace(",", "", 1), '"node_type', "expected ',' or '}', found '\"'", ONE_DOCUMENT),
    (GOOD.replace(":", "", 1), "0, ", "expected ':' after a key, found '0'", ONE_DOCUMENT),
    (GOOD.replace('"node_id"', "node_id"), "node_id", "expected a key in double quotes, found 'n'", ONE_DOCUMENT),
    (GOOD.replace("[]", "[1 2]"), "2]", "expected ',' or ']', found '2'", ONE_DOCUMENT),
    (GOOD[:-1], "\n", "the line ends inside a JSON document", "write one document a line, and check that the file is whole"),
    (GOOD[:5], "\n", "the line ends inside a text", "close the text, write line breaks inside as \\n, and check that the file is whole"),
    (in_node('"a": "b\tc"'), "\t", "a text holds the control character 0x09", "write it as an escape such as \\t or \\u0001"),
    (in_node('"a": "b\\xc"'), "\\x", "a text holds the invalid escape '\\\\x'", "write a backslash as \\\\"),
    (in_node('"a": 01'), "01", "malformed number 01", "write numbers without leading zeros, with digits on both sides of a point"),
    (in_node('"a": 1.'), "1.", "malformed number 1.", "write numbers without leading zeros, with digits on both sides of a point"),
    (in_node('"a": ' + "[" * 100 + "]" * 100), "[]", "the document is nested beyond 100 levels", "flatten it"),
    (in_node('"edge": []'), '"edge": []}', 'key "edge" stands twice in one object', "keep one of them"),
    (in_node('"foo": 1, "f\\u006fo": 2'), '"f\\u006fo"', 'key "f\\u006fo" stands twice in one object', "keep one of them"),
    (in_node('"foo": [{"a": 1, "b": {"": 0, "": 1}}]'), '"": 1', 'key "" stands twice in one object', "keep one of them"),
    (in_edge('"weight": 1'), '"weight": 1}', 'key "weight" stands twice in one object', "keep one of them"),
    (in_node('"neighbor": {"0": {"1": 1, "1": 1}}'), '"1": 1}', 'key "1" stands twice in one object', "keep one of them"),
    (in_node('"neighbor": {"0": {}, "0": {}}'), '"0": {}}', 'key "0" stands twice in one object', "keep one of them"),
    ("{}", "{}", "key 'node_id' is missing", NEEDS_NODE),
    (GOOD.replace('"node_weight"', '"weight"'), "{", "key 'node_weight' is missing", NEEDS_NODE),
    (GOOD.replace('"edge"', '"edges"'), "{", "key 'edge' is missing", NEEDS_NODE),
    (swapped('"dst_id": 1, ', ""), '{"src', "key 'dst_id' is missing", NEEDS_EDGE),
    (in_node('"bool_feature": {}'), '"bool', 'unknown feature group "bool_feature"', GROUPS),
    (in_edge('"sparse_binary_feature": null'), '"sparse', 'unknown feature group "sparse_binary_feature"', GROUPS),
    (swapped('"node_id": 0', '"node_id": -1'), "-1", "field 'node_id' must be an integer from 0 to 2^64-1, found -1", "write IDs as JSON integers"),
    (swapped('"node_id": 0', '"node_id": "0"'), '"0"', "field 'node_id' must be an integer from 0 to 2^64-1, found \"0\"", "write IDs as JSON integers"),
    (swapped('"node_id": 0', '"node_id": 1.0'), "1.0", "field 'node_id' must be an integer from 0 to 2^64-1, found 1.0", "write IDs as JSON integers"),
    (swapped('"node_id": 0', '"node_id": NaN'), "NaN", "field 'node_id' must be an integer from 0 to 2^64-1, found NaN", "write IDs as JSON integers"),
    (swapped('"src_id": 0', '"src_id": 18446744073709551616'), "184", "field 'src_id' must be an integer from 0 to 2^64-1, found 18446744073709551616", "write IDs as JSON integers"),
    (swapped('"dst_id": 1', '"dst_id": null'), "null", "field 'dst_id' must be an integer from 0 to 2^64-1, found null", "write IDs as JSON integers"),
    (swapped('"node_type": 0', '"node_type": 2147483648'), "214", "field 'node_type' must be an integer from 0 to 2147483647, found 2147483648", "number the types"),
    (swapped('"edge_type": 0', '"edge_type": true'), "true", "field 'edge_type' must be an integer from 0 to 2147483647, found true", "number the types"),
    (swapped('"edge_type": 0', '"edge_type": 18446744073709551615'), "184", "field 'edge_type' must be an integer from 0 to 2147483647, found 18446744073709551615", "number the types"),
    (swapped('"weight": 1', '"weight": "1"'), '"1"', "field 'weight' must be a number, found \"1\"", "write weights as JSON numbers"),
    (swapped('"node_weight": 1', '"node_weight": [1]'), "[1]", "field 'node_weight' must be a number, found [1]", "write weights as JSON numbers"),
    (swapped('"weight": 1', '"weight": 3.5e38'), "3.5", "field 'weight' is too large for its dtype, found 3.5e38", "use --weight-dtype float64, or a smaller weight"),
    (in_node('"created_at": 1.5'), "1.5", "field 'created_at' must be a time as an integer that fits int64, found 1.5", "write whole numbers, or leave the key out"),
    (in_edge('"removed_at": 9223372036854775808'), "922", "field 'removed_at' must be a time as an integer that fits int64, found 9223372036854775808", "write whole numbers, or leave the key out"),
    (GOOD.replace("[]", "{}"), "{}}", "field 'edge' must be a list, found {}", "write [] for a node without edges"),
    (GOOD.replace("[]", "[[]]"), "[]]", "an edge must be a JSON object, found []", "give it src_id, dst_id, edge_type and weight"),
    (in_node('"neighbor": []'), "[]}", "field 'neighbor' must hold objects, found []", 'write {"<edge type>": {"<dst>": weight}}'),
    (in_node('"neighbor": {"0": 1}'), "1}}", "field 'neighbor' must hold objects, found 1", 'write {"<edge type>": {"<dst>": weight}}'),
    (in_node('"neighbor": {"a": {}}'), '"a"', "a key of 'neighbor' must be an edge type from 0 to 2147483647, found \"a\"", "number the types"),
    (in_node('"neighbor": {"0": {"-1": 1}}'), '"-1"', "a key below 'neighbor' must be a node ID from 0 to 2^64-1, found \"-1\"", "write IDs as decimal digits"),
    (in_node('"neighbor": {"0": {"1": "1"}}'), '"1"}', "field 'neighbor' must be a number, found \"1\"", "write weights as JSON numbers"),
    (group("[1]"), "[1]", "group 'float_feature' must be an object of slots, found [1]", 'write {"<slot>": value}, or null for no features'),
    (group('{"a": [1]}'), '"a"', "group 'float_feature' must have slots from 0 to 2147483646 as keys, found \"a\"", "number the features"),
    (group('{"2147483647": [1]}'), '"2147', "group 'float_feature' must have slots from 0 to 2147483646 as keys, found \"2147483647\"", "number the features"),
    (group('{"7": 1, "007": 2}'), '"007"', "feature slot \"007\" stands twice, the second time in group 'float_feature'", "give every feature a slot of its own"),
    (in_node('"binary_feature": {"1": "x"}, "int8_feature": {"1": []}'), '"1": "x"', "feature slot \"1\" stands twice, the second time in group 'binary_feature'", "give every feature a slot of its own"),
    (group('{"0": {}}'), "{}}", "group 'float_feature' must hold numbers or lists of numbers, found {}", "write a feature as [1, 2, 3]"),
    (group('{"0": ["1"]}'), '"1"', "group 'float_feature' must hold numbers, found \"1\"", "write a feature as [1, 2, 3]"),
    (group('{"0": [1, true]}'), "true", "group 'float_feature' must hold numbers, found true", "write a feature as [1, 2, 3]"),
    (group('{"0": [[1, 2], [3]]}'), "[3]", "the nested lists of a feature in group 'float_feature' differ in length at [3]", "fill them up, or write one flat list"),
    (group('{"0": [[1], 2]}'), "2]", "the nested lists of a feature in group 'float_feature' differ in length at 2", "fill them up, or write one flat list"),
    (group('{"0": ' + "[" * 32 + "1" + "]" * 32 + "}"), "[" * 32, "a feature in group 'float_feature' has more than 31 dimensions", "flatten it"),
    (group('{"0": [65520]}', "float16"), "65520", "65520 does not fit float16", "use a group of a wider dtype, or correct the value"),
    (group('{"0": [-3.4028235677973366e+38]}'), "-3.4", "-3.4028235677973366e+38 does not fit float32", "use a group of a wider dtype, or correct the value"),
    (group('{"0": 1e999}', "double"), "1e999", "1e999 does not fit float64", "use a group of a wider dtype, or correct the value"),
    (group('{"0": [1, 1.5]}', "int8"), "1.5", "group 'int8_feature' must hold integers, found 1.5", "use a group of floats, or whole numbers without a fraction"),
    (group('{"0": [1.0]}', "uint64"), "1.0", "group 'uint64_feature' must hold integers, found 1.0", "use a group of floats, or whole numbers without a fraction"),
    (group('{"0": [null]}', "int32"), "null", "group 'int32_feature' must hold integers, found null", "use a group of floats, or whole numbers without a fraction"),
    (group('{"0": [NaN]}', "int32"), "NaN", "group 'int32_feature' must hold integers, found NaN", "use a group of floats, or whole numbers without a fraction"),
    (group('{"0": [128]}', "int8"), "128", "128 does not fit int8 (-128 to 127)", "use a group of a wider dtype, or correct the value"),
    (group('{"0": [-129]}', "int8"), "-129", "-129 does not fit int8 (-128 to 127)", "use a group of a wider dtype, or correct the value"),
    (group('{"0": [-1]}', "uint8"), "-1", "-1 is negative, which uint8 (0 to 255) cannot be", "use a signed group, or correct the value"),
    (group('{"0": [-1]}', "uint64"), "-1", "-1 is negative, which uint64 (0 to 18446744073709551615) cannot be", "use a signed group, or correct the value"),
    (group('{"0": [18446744073709551616]}', "uint64"), "184", "18446744073709551616 does not fit uint64 (0 to 18446744073709551615)", "use a group of a wider dtype, or correct the value"),
    (group('{"0": [9223372036854775808]}', "int64"), "922", "9223372036854775808 does not fit int64 (-9223372036854775808 to 9223372036854775807)", "use a group of a wider dtype, or correct the value"),
    (group('{"0": [1]}', "binary"), "[1]", "group 'binary_feature' must hold texts, found [1]", 'write a text as "…", or use a group of numbers'),
    (group('{"0": null}', "binary"), "null", "group 'binary_feature' must hold texts, found null", 'write a text as "…", or use a group of numbers'),
    (group('{"0": "a\\udc00b"}', "binary"), '"a\\udc', 'a text holds half a surrogate pair, which UTF-8 cannot write: "a\\udc00b"', "write both halves, or drop it"),
    (group('{"0": [1]}', "sparse_int8"), "[1]", "group 'sparse_int8_feature' must hold objects with coordinates and values, found [1]", 'write {"coordinates": [0, 5], "values": [1, 2]}'),
    (group('{"0": {"values": []}}', "sparse_int8"), '{"values', "group 'sparse_int8_feature' must hold objects with coordinates and values, found {\"values\": []}", 'write {"coordinates": [0, 5], "values": [1, 2]}'),
    (group('{"0": {"coordinates": 5, "values": [1]}}', "sparse_int8"), "5,", "sparse coordinates must be a list of integers or of lists of integers, found 5", 'write "coordinates": [0, 5] or [[0, 5], [1, 7]]'),
    (group('{"0": {"coordinates": [[[5]]], "values": [1]}}', "sparse_int8"), "[[[5", "sparse coordinates must be a list of integers or of lists of integers, found [[[5]]]", 'write "coordinates": [0, 5] or [[0, 5], [1, 7]]'),
    (group('{"0": {"coordinates": [5], "values": [[1]]}}', "sparse_int8"), "[[1]]", "sparse values must be a list of numbers, found [[1]]", "write one value for each coordinate"),
    (group('{"0": {"coordinates": [5, 13], "values": [1.0]}}', "sparse_float"), "[1.0]", "a sparse feature in group 'sparse_float_feature' has another number of values than of coordinates", "write one value for each coordinate"),
    (group('{"0": {"coordinates": [[]], "values": [1.0]}}', "sparse_float"), "[1.0]", "a sparse feature in group 'sparse_float_feature' has another number of values than of coordinates", "write one value for each coordinate"),
    (group('{"0": {"coordinates": [1.5], "values": [1.0]}}', "sparse_float"), "1.5", "a sparse coordinate must be an integer, found 1.5", "write whole numbers"),
    (group('{"0": {"coordinates": [9223372036854775808], "values": [1.0]}}', "sparse_float"), "922", "9223372036854775808 does not fit a coordinate (-9223372036854775808 to 9223372036854775807)", "correct the value"),
    (group('{"0": [{"values": 1}]}'), '{"values": 1}', "a temporal feature must hold objects with values and created_at, found {\"values\": 1}", 'write [{"values": [1, 2], "created_at": 0}]'),
    (group('{"0": [{"values": 1, "created_at": 0}, 5]}'), "5]", "a temporal feature must hold objects with values and created_at, found 5", 'write [{"values": [1, 2], "created_at": 0}]'),
    (group('{"0": [{"values": 1, "created_at": "x"}]}'), '"x"', "created_at and removed_at of a temporal feature must be integers that fit int64, found \"x\"", "write whole numbers"),
    (group('{"0": [{"values": 1, "created_at": 0}]}', "sparse_int8"), "[{", "group 'sparse_int8_feature' cannot hold temporal features", "only dense and binary features can be temporal"),
]  # fmt: skip


@pytest.mark.parametrize("before", [0, 1, 20])
@pytest.mark.parametrize(
    ("line", "at", "message", "fix"), FAULTS, ids=[f"{i}: {fault[2][:50]}" for i, fault in enumerate(FAULTS)]
)
def test_faults(line, at, message, fix, before):
    data = (GOOD + "\n") * before
    with pytest.raises(DecodeError) as caught:
        JsonDecoder().decode(TextBlock(f"{data}{line}\n{GOOD}\n{{\n".encode(), Span("x")))
    assert str(caught.value) == f"{message}\n  fix: {fix}"
    found = f"{line}\n"[caught.value.at - len(data) :]
    assert found.startswith(at), (found, at)


def test_a_fault_of_a_value_comes_before_one_of_a_later_record():
    bad_value = json.dumps(node(uint8_feature={"0": [1], "5": [256]}, int8_feature={"1": [1.5]}))
    for other in ("{", "[]", json.dumps(node(uint8_feature={"0": [-1]}))):
        with pytest.raises(DecodeError) as caught:
            decode(GOOD, bad_value, other)
        start = len(GOOD) + 1
        assert start <= caught.value.at < start + len(bad_value)


@pytest.mark.parametrize(
    ("head", "complete", "confidence"),
    [
        (f"\n{GOOD}\n{{".encode(), False, 0.95),
        (GOOD.encode(), True, 0.95),
        (GOOD[:40].encode(), False, 0.9),
        (GOOD[:40].encode() + b"\n", False, 0.6),
        (b'{"num_nodes": 1}\n', True, None),
        (b"1 2\n", True, None),
        (b"[1]\n", True, None),
        (f"[{GOOD}]".encode(), True, 0.9),
        (json.dumps(json.loads(GOOD), indent=1).encode(), True, 0.9),
        (b"", True, None),
    ],
)
def test_sniff(head, complete, confidence):
    bid = None if confidence is None else Sniffed("json", confidence, ("--format", "json"))
    assert bid_of("json", SniffedFile("x", head, complete)) == bid


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\n[{GOOD},\n{GOOD}]\n", "2:1: the records stand in one array\n  fix: write one record a line; jq -c '.[]' FILE does"),
        (json.dumps([json.loads(GOOD)], indent=2), "1:1: the records stand in one array\n  fix: write one record a line; jq -c '.[]' FILE does"),
        (json.dumps(json.loads(GOOD), indent=2), "1:1: a record goes over several lines\n  fix: write one record a line; jq -c . FILE does"),
        (GOOD.replace(", ", ",\n", 1), "1:1: a record goes over several lines\n  fix: write one record a line; jq -c . FILE does"),
    ],
)  # fmt: skip
def test_documents_that_are_no_lines(tmp_path, text, expected):
    path = tmp_path / "g.json"
    path.write_text(text)
    for options in (ConvertOptions(), ConvertOptions(format="json")):
        with pytest.raises(DataError) as caught:
            graphprep.info(str(path), options=options)
        assert str(caught.value) == f"{path}:{expected}, where the JSON is valid"


def test_a_comma_too_many():
    """DeepGNN's manual has some."""
    for line in (GOOD[:-1] + ",}", GOOD.replace("[]", "[1,]") if "[]" in GOOD else GOOD[:-1] + ', "x": [1,]}'):
        with pytest.raises(DecodeError) as caught:
            decode(line)
        assert str(caught.value) == f"a comma stands before {line[caught.value.at]!r}\n  fix: leave the comma out"


def test_coordinates_below_zero_are_those_of_edgelist(tmp_path):
    coordinates = [[-1, 3], [0, -(2**63)]]
    flat = ",".join(str(number) for pair in coordinates for number in pair)
    texts = {
        "edgelist": f"7,-1,1,0.5,uint16,2/2,{flat},40,50\n",
        "json": json.dumps(
            {"node_id": 7, "node_type": 1, "node_weight": 0.5, "edge": []}
            | {"sparse_uint16_feature": {"0": {"coordinates": coordinates, "values": [40, 50]}}}
        ),
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        graphprep.convert(str(tmp_path / name), str(tmp_path / f"{name}-store"), format=name)
        folder = tmp_path / f"{name}-store/part-00000/nodes/1/data"
        assert np.load(folder / "feat_0.coords.npy").tolist() == coordinates
        assert graphprep.validate(str(tmp_path / f"{name}-store")).sound
