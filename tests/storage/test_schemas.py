"""JSON Schemas and strict JSON: every message with its key path."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
import time
from dataclasses import replace

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import DataError
from graphprep.model.metadata import ArrayEntry, GraphMetadata, Manifest, PartEntry, dump_json, dump_store_json
from graphprep.model.schema import ColumnSchema, EdgeTypeSchema, NodeTypeSchema
from graphprep.storage.read.arrays import read_metadata
from graphprep.storage.read.fitting import make_check
from graphprep.storage.read.schemas import at_path, check_json, find_json_errors, key_path, load_schema, parse_json

NAMES = ("metadata", "manifest", "chunked", "schema-file")
COLUMNS = (
    ColumnSchema("weight", "dense", "float32", role="weight"),
    ColumnSchema("feat_0", "dense", "float32", (16,), optional=True, slot=0),
    ColumnSchema("words", "temporal", "int64", end=True),
    ColumnSchema("born", "dense", "int64", unit="day"),
    ColumnSchema("colour", "dense", "int64", role="label", categories=("blue", "red")),
)
STORE = GraphMetadata(
    graph_name="",
    node_types=("user", "a b"),
    edge_types=(("user", "x:y", "a b"),),
    num_nodes_per_chunk=((3, 2), (0, 1)),
    num_edges_per_chunk=((4, 3),),
    num_parts=2,
    partition_by="range",
    layouts=("csc", "csr"),
    node_schemas=(
        NodeTypeSchema("int64", COLUMNS, num_slots=True, node_order="degree", num_hot=(1, 0)),
        NodeTypeSchema("string"),
    ),
    edge_schemas=(EdgeTypeSchema("id", "int64", None, False, "0123456789abcdef", COLUMNS),),
    parts=(PartEntry("part-00000", 12, "0" * 16), PartEntry("part-00001", 12, "f" * 16)),
)
MANIFEST = Manifest(
    1,
    (
        ArrayEntry("nodes/a%20b/raw_ids.offsets.npy", "int64", (2,), 144, "0" * 16),
        ArrayEntry("nodes/user/data/feat_0.npy", "float32", (2, 16), 256, "0" * 16),
        ArrayEntry("edges/user__x%3Ay__a%20b/csc/indptr.npy", "int64", (3,), 152, "0" * 16),
        ArrayEntry("edges/_N___E___N/data/_w.npy", "int64", (3,), 152, "0" * 16),
    ),
)


@pytest.mark.parametrize("name", NAMES)
def test_schemas_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(load_schema(name))
    assert load_schema(name)["$id"] == f"{name}.schema.json"


def test_what_we_write_is_valid():
    for value in (STORE.to_json(), GraphMetadata.from_json(STORE.to_json()).to_json()):
        check_json(parse_json(dump_json(value), "metadata.json"), "metadata", "metadata.json")
        check_json(value, "schema-file", "metadata.json")
    check_json(MANIFEST.to_json(), "manifest", "manifest.json")


def test_the_schema_names_exactly_the_keys_that_are_written():
    value = STORE.to_json()
    schema = load_schema("metadata")
    assert schema["required"] == list(value)
    ordered = replace(STORE, partition_by="order", previous_partition_by="range")
    assert list(schema["properties"]) == list(ordered.to_json())
    assert GraphMetadata.from_json(ordered.to_json()) == ordered
    sometimes = {"num_slots", "reverse_of"}
    assert set(schema["$defs"]["edge_schema"]["properties"]) == value["edge_schema"]["user:x%3Ay:a b"].keys() | sometimes
    assert set(schema["$defs"]["node_schema"]["properties"]) == set(value["node_schema"]["user"])
    columns = value["node_schema"]["user"]["columns"]
    assert set(schema["$defs"]["column"]["properties"]) == set().union(*columns)
    arrays = load_schema("manifest")["properties"]["arrays"]["items"]
    assert list(arrays["properties"]) == arrays["required"] == list(MANIFEST.to_json()["arrays"][0])


def change(value: object, path: tuple, new: object) -> object:
    value = copy.deepcopy(value)
    inner = value
    for step in path[:-1]:
        inner = inner[step]
    if new is KeyError:
        del inner[path[-1]]
    else:
        inner[path[-1]] = new
    return value


@pytest.mark.parametrize(
    ("path", "new", "message"),
    [
        (("format",), "x", 'm: format: expected "graphprep-store", found "x"'),
        (
            ("node_schema", "user", "node_order"),
            "size",
            'm: node_schema.user.node_order: expected one of '
            'degree, in-degree, out-degree, hub-sort, hub-cluster, dbg, bfs, rcm, llp, random, score, permutation, found "size"',
        ),
        (("num_nodes_per_chunk", 1, 1), "12", 'm: num_nodes_per_chunk[1][1]: expected an integer >= 0, found "12"'),
        (("num_nodes_per_chunk", 1, 1), -1, "m: num_nodes_per_chunk[1][1]: expected an integer >= 0, found -1"),
        (("num_nodes_per_chunk", 1, 1), 1.0, "m: num_nodes_per_chunk[1][1]: expected an integer >= 0, found 1.0"),
        (("num_nodes_per_chunk", 1, 1), True, "m: num_nodes_per_chunk[1][1]: expected an integer >= 0, found true"),
        (
            ("num_nodes_per_chunk", 1, 1), 2**63,
            "m: num_nodes_per_chunk[1][1]: expected an integer <= 9223372036854775807, found 9223372036854775808",
        ),
        (("num_parts",), 0, "m: num_parts: expected an integer >= 1, found 0"),
        (("layouts",), [], "m: layouts: expected a list that is not empty, found an empty list"),
        (("layouts", 0), "coo", 'm: layouts[0]: expected one of csc, csr, found "coo"'),
        (("layouts", 0), "csr", 'm: layouts[1]: "csr" is listed twice'),
        (("parts",), KeyError, "m: key 'parts' is missing"),
        (("parts",), {}, "m: parts: expected a list, found an object"),
        (("parts", 0, "path"), "part-0", "m: parts[0].path: expected 'part-' and at least five digits, found \"part-0\""),
        (("extra",), 1, "m: unknown key 'extra'"),
        (("edge_type", 0), "a:b", "m: edge_type[0]: expected 'source:relation:destination', found \"a:b\""),
        (("node_schema", "a b", "raw_ids"), "int32", 'm: node_schema["a b"].raw_ids: expected one of identity, int64, uint64, string, found "int32"'),
        (("node_schema", "user", "columns", 1, "name"), "", 'm: node_schema.user.columns[1].name: expected a text that is not empty, found ""'),
        (("node_schema", "user", "columns", 1, "optional"), 0, "m: node_schema.user.columns[1].optional: expected true or false, found 0"),
        (("edge_schema", "user:x%3Ay:a b", "multigraph"), 0, 'm: edge_schema["user:x%3Ay:a b"].multigraph: expected true or false or null, found 0'),
        (("edge_schema", "user:x%3Ay:a b", "checksum"), "x" * 99, f'm: edge_schema["user:x%3Ay:a b"].checksum: expected 16 hex digits, found "{"x" * 59}…'),
    ],
)  # fmt: skip
def test_messages(path, new, message):
    value = change(STORE.to_json(), path, new)
    with pytest.raises(DataError) as caught:
        check_json(value, "metadata", "m")
    assert str(caught.value) == message
    assert [str(error) for error in find_json_errors(value, "metadata", "m")] == [message]


@pytest.mark.parametrize(
    ("version", "message", "fix"),
    [
        (7, "a newer one wrote version 7", "install the graphprep that wrote it, or a newer one"),
        (0, "an older one wrote version 0", "convert the graph again"),
    ],
)
def test_another_format_version_is_told_alone(version, message, fix):
    """Its other keys are no faults: that version may have other ones."""
    value = {**STORE.to_json(), "format_version": version, "new_key": 1}
    del value["parts"]
    (error,) = find_json_errors(value, "metadata", "m")
    assert str(error) == f"m: format_version: this graphprep reads format version 1; {message}\n  fix: {fix}"


def test_every_fault_is_found():
    value = change(change(STORE.to_json(), ("num_parts",), "x"), ("parts", 1, "manifest_bytes"), -1)
    assert [str(error) for error in find_json_errors(value, "metadata", "m")] == [
        'm: num_parts: expected an integer >= 1, found "x"',
        "m: parts[1].manifest_bytes: expected an integer >= 0, found -1",
    ]


@pytest.mark.parametrize(
    "path", ["../x.npy", "/etc/x.npy", "nodes/../x.npy", "nodes/user/x.txt", "nodes/x.npy", "edges//x.npy"]
)
def test_manifests_name_only_arrays_inside(path):
    value = change(MANIFEST.to_json(), ("arrays", 0, "path"), path)
    with pytest.raises(DataError) as caught:
        check_json(value, "manifest", "m")
    assert str(caught.value) == f'm: arrays[0].path: expected the path of a .npy file below nodes/ or edges/, found "{path}"'


def test_schema_files_need_columns_only():
    column = {"name": "x", "kind": "dense", "dtype": "float32", "item_shape": [], "optional": False}
    value = {
        "node_type": ["a"],
        "edge_type": ["a:r:a"],
        "node_schema": {"a": {"columns": [column]}},
        "edge_schema": {"a:r:a": {"columns": []}},
    }
    check_json(value, "schema-file", "s")
    with pytest.raises(DataError) as caught:
        check_json(change(value, ("node_schema", "a", "columns", 0, "dtype"), "float"), "schema-file", "s")
    assert str(caught.value) == (
        "s: node_schema.a.columns[0].dtype: expected one of bool, int8, int16, int32, int64, uint8, uint16, uint32, uint64, "
        'float16, float32, float64, complex64, complex128, found "float"'
    )
    with pytest.raises(DataError) as caught:
        check_json(change(value, ("edge_schema", "a:r:a", "columns"), KeyError), "schema-file", "s")
    assert str(caught.value) == "s: edge_schema.a:r:a: key 'columns' is missing"


# --------------------------------------------------------------------------------------------------------------- parsing

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def is_utf8(text: str) -> bool:
    return not any("\ud800" <= char <= "\udfff" for char in text)


@settings(deadline=None, max_examples=100)
@given(value=VALUES, ascii_only=st.booleans(), bom=st.booleans())
def test_parse_json_reads_what_json_writes(value, ascii_only, bom):
    text = json.dumps(value, ensure_ascii=ascii_only)
    if is_utf8(json.dumps(value, ensure_ascii=False)):
        assert parse_json(b"\xef\xbb\xbf" * bom + text.encode(), "x") == value


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "x: expected JSON, found an empty file"),
        (b"\xef\xbb\xbf \n", "x: expected JSON, found an empty file"),
        (b'\n{"a":1,}', "x:2:8: invalid JSON: Expecting property name enclosed in double quotes"),
        (b"{} {}", "x:1:4: invalid JSON: Extra data"),
        (b'{"a": "b', "x:1:7: invalid JSON: Unterminated string"),
        (b'{"a":\n "\xc3("}', "x:2:3: invalid UTF-8 byte 0xc3"),
        (b'{"a":1,"b":{"c":[0,{"d e":1,"d e":2}]}}', 'x: b.c[1]["d e"]: the key stands twice in its object'),
        (b'{"a":1,"a":1,"b":NaN}', "x: a: the key stands twice in its object"),
        (b"[-Infinity]", "x: [0]: -Infinity is not a JSON number"),
        (b"NaN", "x: NaN is not a JSON number"),
        (b'{"a":["\\ud800"]}', "x: a[0]: a text holds half a surrogate pair"),
        (b'{"\\ud800":1}', "x: a text holds half a surrogate pair"),
        (b"1" * 5000, "x: an integer has too many digits"),
        (b"[" * 200_000, "x: JSON is nested too deeply"),
    ],
)
def test_parse_json_is_strict(data, message):
    with pytest.raises(DataError) as caught:
        parse_json(data, "x")
    assert str(caught.value) == message


@settings(deadline=None, max_examples=200)
@given(data=st.binary(max_size=40) | st.text('{}[]",:\\u0ed8 \n', max_size=30).map(str.encode))
def test_parse_json_ends_in_our_error_only(data):
    try:
        parse_json(data, "x")
    except DataError as error:
        assert str(error).startswith("x")


def test_key_paths():
    assert key_path(("num_nodes_per_chunk", 1, 2)) == "num_nodes_per_chunk[1][2]"
    assert key_path(("edges", "user:buys:item", "data", 0)) == "edges.user:buys:item.data[0]"
    assert key_path(("a b", "c.d", 'q"')) == '["a b"]["c.d"]["q\\""]'
    assert at_path("file", ()) == "file"


def test_jsonschema_is_imported_late():
    code = "import sys, graphprep.storage.read.schemas as s; s.parse_json(b'{}', 'x'); sys.exit('jsonschema' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


# ---- the fast check


SCHEMAS = ("metadata", "manifest", "chunked", "schema-file", "graph", "graphbolt", "graphstorm", "decoder-options")
VALUES = st.sampled_from(
    [None, True, False, 0, 1, -1, 2**63, 1.0, 1.5, "", "a", "a:b:c", "int32", [], [1], ["a", "a"], {}, {"a": 1}]
)


TEXTS = st.text(st.characters() | st.sampled_from('\ud800\udcff\0\x7f\u2028"\\:é😀'))
LEAVES = st.none() | st.booleans() | st.integers() | st.integers(-(2**66), 2**66) | TEXTS
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner) | st.tuples(inner), max_leaves=12
)


def written_by_python(value) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(errors="backslashreplace")


@settings(deadline=None, max_examples=500)
@given(DOCUMENTS)
def test_documents_have_the_bytes_of_the_standard_library(value):
    assert dump_store_json(value) == dump_json(value) == written_by_python(value)


def test_metadata_and_manifests_have_the_bytes_of_the_standard_library():
    for name in ("größe 图", "half a pair \ud83d"):
        for value in (STORE.to_json(), MANIFEST.to_json()):
            document = value | {"graph_name": name, "num_nodes_per_type": [2**63 - 1, 2**64]}
            assert dump_store_json(document) == written_by_python(document)


def test_metadata_and_manifests_hold_no_floats():
    """Whose digits are not the standard library's: provenance, which has them, keeps its writer."""
    for name in ("metadata", "manifest"):
        assert '"number"' not in json.dumps(load_schema(name))
    value = {"seconds": [0.1, 1e-5, 1e22, float("nan")]}
    assert dump_json(value) == written_by_python(value)


def places_of(value, path=()):
    """Yield the path of every value in a JSON value."""
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_of(item, (*path, key))


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_what_the_fast_check_takes_jsonschema_takes(data):
    value = json.loads(dump_json(STORE.to_json()))
    validator = jsonschema.Draft202012Validator(load_schema("metadata"))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from([one for one in places_of(value) if one]))
        inner = value
        for key in path[:-1]:
            inner = inner[key]
        if isinstance(inner, dict) and data.draw(st.booleans()):
            inner[data.draw(st.sampled_from(["slot", "role", "other", path[-1]]))] = copy.deepcopy(data.draw(VALUES))
        else:
            inner[path[-1]] = copy.deepcopy(data.draw(VALUES))
    fits = make_check(load_schema("metadata"), load_schema)(value)
    strict = not list(find_json_errors(value, "metadata", "p"))
    assert fits == strict or (not fits and strict), "what it takes must be sound"
    assert not fits or validator.is_valid(value)


@pytest.mark.parametrize("name", SCHEMAS)
def test_the_fast_check_knows_every_keyword(name):
    check = make_check(load_schema(name), lambda file: load_schema(file.removesuffix(".schema.json")))
    assert not check([object()])
    assert not check("x" * 3) or name == "decoder-options"


def test_sound_documents_need_no_jsonschema():
    code = (
        "import json, sys\n"
        "from graphprep.storage.read.schemas import check_json\n"
        "check_json(json.loads(sys.stdin.read()), 'metadata', 'p')\n"
        "assert 'jsonschema' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], input=dump_json(STORE.to_json()), check=True)


def test_a_hundred_thousand_node_types_load_in_a_second():
    names = [f"t{i}" for i in range(100_000)]
    value = STORE.to_json() | {
        "num_parts": 1,
        "node_type": names,
        "num_nodes_per_type": list(range(len(names))),
        "num_nodes_per_chunk": [[i] for i in range(len(names))],
        "node_schema": {name: {"raw_ids": "identity", "columns": []} for name in names},
        "edge_type": [],
        "num_edges_per_type": [],
        "num_edges_per_chunk": [],
        "edge_schema": {},
        "parts": [{"path": "part-00000", "manifest_bytes": 12, "manifest_xxh3": "0" * 16}],
    }
    data = dump_json(value)
    began_s = time.process_time()
    metadata = read_metadata(data, "p")
    assert time.process_time() - began_s < 3, "a second, on a machine that does nothing else"
    assert metadata.num_nodes_per_type == tuple(range(len(names)))
