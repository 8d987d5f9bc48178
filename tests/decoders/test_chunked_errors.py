"""Every fault of a chunked graph: the whole message, with its place. What DGL's tools let through silently is here."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from decoders.chunked_graphs import CSV, NPY, PARQUET, edges_of, error_of, feature_of, null_vectors, rows_of, shop, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.model.errors import DataError, GraphprepError

FIX_COUNTS = "\n  fix: correct the counts in the metadata, or the file"
FIX_IDS = "\n  fix: write ids as decimal digits, without a header line, and set format.delimiter in the metadata"
FIX_VALUES = "\n  fix: write numbers only, without a header line, and set format.delimiter in the metadata"
FIX_PAIRS = "\n  fix: give every line a source and a destination, or set format.delimiter in the metadata"

# ------------------------------------------------------------------------------------------------------------- metadata


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"node_type": None}, "metadata.json: key 'node_type' is missing"),
        ({"edges": None}, "metadata.json: key 'edges' is missing"),
        ({"node_type": "user"}, 'metadata.json: node_type: expected a list, found "user"'),
        ({"node_type": ["user", "item", "user"]}, "metadata.json: node_type[2]: node type 'user' is listed twice"),
        ({"node_type": ["user", ""]}, 'metadata.json: node_type[1]: expected a text that is not empty, found ""'),
        (
            {"edge_type": ["user:buys:item", "user:buys:item"]},
            "metadata.json: edge_type[1]: edge type 'user:buys:item' is listed twice",
        ),
        (
            {"edge_type": ["user:buys"]},
            "metadata.json: edge_type[0]: expected 'source:relation:destination', found \"user:buys\"",
        ),
        (
            {"edge_type": ["user:buys:shop"]},
            "metadata.json: edge_type[0]: unknown node type 'shop'\n  fix: use one of user, item",
        ),
        (
            {"num_nodes_per_type": None},
            "metadata.json: neither num_nodes_per_type nor num_nodes_per_chunk is there\n"
            "  fix: state the number of nodes of each type in num_nodes_per_type",
        ),
        (
            {"num_nodes_per_type": [2]},
            "metadata.json: num_nodes_per_type: expected one entry for each of 2 types, found 1",
        ),
        (
            {"num_nodes_per_chunk": [[2, 0], [2, "12"]]},
            'metadata.json: num_nodes_per_chunk[1][1]: expected an integer >= 0, found "12"',
        ),
        ({"num_nodes_per_type": [2, -3]}, "metadata.json: num_nodes_per_type[1]: expected an integer >= 0, found -3"),
        ({"num_nodes_per_type": [2, 3.0]}, "metadata.json: num_nodes_per_type[1]: expected an integer >= 0, found 3.0"),
        (
            {"num_nodes_per_chunk": [[2], [2, 2]]},
            "metadata.json: num_nodes_per_type[1]: says 3, but num_nodes_per_chunk[1] adds up to 4\n"
            "  fix: correct one of the two, or leave one out",
        ),
        (
            {"num_edges_per_chunk": [[3]]},
            "metadata.json: num_edges_per_type[0]: says 2, but num_edges_per_chunk[0] adds up to 3\n"
            "  fix: correct one of the two, or leave one out",
        ),
        ({"edges": {}}, "metadata.json: edges: no files of edge type 'user:buys:item'"),
        (
            {"edges": {**edges_of(CSV, "buys.csv"), "user:sells:item": {"format": CSV, "data": []}}},
            "metadata.json: edges: unknown edge type 'user:sells:item'\n  fix: did you mean 'user:buys:item'?",
        ),
        (
            {"edges": {**edges_of(CSV, "buys.csv"), "sells": {"format": CSV, "data": []}}},
            "metadata.json: edges: expected 'source:relation:destination', found 'sells'",
        ),
        ({"edges": {"user:buys:item": {"data": []}}}, "metadata.json: edges.user:buys:item: key 'format' is missing"),
        (
            {"edges": edges_of({"name": "tsv"}, "buys.csv")},
            'metadata.json: edges.user:buys:item.format.name: expected one of csv, numpy, parquet, found "tsv"',
        ),
        (
            {"edges": edges_of({"name": "csv", "delimiter": ""}, "buys.csv")},
            "metadata.json: edges.user:buys:item.format.delimiter: "
            'expected a delimiter without digits, quotes and line breaks, found ""',
        ),
        (
            {"edges": {"user:buys:item": {"format": CSV, "data": [["buys.csv", 0, 2]]}}},
            "metadata.json: edges.user:buys:item.data[0]: expected a text that is not empty, found a list",
        ),
        ({"node_data": {"shop": {}}}, "metadata.json: node_data: unknown node type 'shop'\n  fix: use one of user, item"),
        ({"node_data": []}, "metadata.json: node_data: expected an object, found an empty list"),
        (
            {"node_data": {"user": {"": {"format": CSV, "data": []}}}},
            'metadata.json: node_data.user: expected a name that is not empty, found ""',
        ),
        (
            {"edge_data": {"user:sells:item": {}}},
            "metadata.json: edge_data: unknown edge type 'user:sells:item'\n  fix: did you mean 'user:buys:item'?",
        ),
    ],
)
def test_metadata(tmp_path, changes, message):
    shop(tmp_path, **changes)
    assert error_of(tmp_path) == message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "metadata.json: expected JSON, found an empty file"),
        (b"[1]", "metadata.json: expected an object, found a list"),
        (b'{"node_type": [],\n "edge_type": ]}', "metadata.json:2:15: invalid JSON: Expecting value"),
        (b'{"node_type": ["\xff"]}', "metadata.json:1:17: invalid UTF-8 byte 0xff"),
        (b'{"node_type": [], "node_type": []}', "metadata.json: node_type: the key stands twice in its object"),
        (b'{"node_type": [NaN]}', "metadata.json: node_type[0]: NaN is not a JSON number"),
        (b"[" * 100_000, "metadata.json: JSON is nested too deeply"),
    ],
)
def test_metadata_that_is_no_metadata(tmp_path, text, message):
    (tmp_path / "metadata.json").write_bytes(text)
    assert error_of(tmp_path) == message


def test_one_edge_type_in_two_spellings(tmp_path):
    metadata = shop(tmp_path, edge_type=["user:a%3Ab:item"])
    block = metadata["edges"]["user:buys:item"]
    shop(tmp_path, edge_type=["user:a%3Ab:item"], edges={"user:a%3Ab:item": block, "user:a%3ab:item": block})
    assert error_of(tmp_path) == "metadata.json: edges: edge type 'user:a%3ab:item' is there twice"


# -------------------------------------------------------------------------------------------------------------- csv edges


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"0,2\n0,3\n", "e.csv:2:3: destination id 3 of type 'item' is out of range: valid ids are in [0, 3)"),
        (b"2,0\n", "e.csv:1:1: source id 2 of type 'user' is out of range: valid ids are in [0, 2)"),
        (b"0,2\n-1,0\n", "e.csv:2:1: source id -1 of type 'user' is out of range: valid ids are in [0, 2)"),
        (
            b"99999999999999999999,0\n",
            "e.csv:1:1: source id 99999999999999999999 of type 'user' is out of range: valid ids are in [0, 2)",
        ),
        (b"src,dst\n0,2\n", f"e.csv:1:1: the source id must be an integer, found 'src'{FIX_IDS}"),
        (b"0,2\n1, 0x1\n", f"e.csv:2:4: the destination id must be an integer, found '0x1'{FIX_IDS}"),
        (b"0,1.0\n", f"e.csv:1:3: the destination id must be an integer, found '1.0'{FIX_IDS}"),
        (b"0,nan\n", f"e.csv:1:3: the destination id must be an integer, found 'nan'{FIX_IDS}"),
        (b"0,\n", "e.csv:1:3: the destination id is empty"),
        (b",1\n", "e.csv:1:1: the source id is empty"),
        (b"0 2\n1 0\n", f"e.csv:1:1: the source id must be an integer, found '0 2'{FIX_IDS}"),
        (b"0,2\n1", f"e.csv:2:2: expected 2 columns separated by ',', found 1{FIX_PAIRS}"),
        (b"0,2\n1,0,5\n", f"e.csv:2:5: expected 2 columns separated by ',', found 3{FIX_PAIRS}"),
        (b'0,"1\n', f"e.csv:1:3: the destination id must be an integer, found '\"1'{FIX_IDS}"),
        (b"0,2\n\xff\x00\x01\n", f"e.csv:2:1: the source id must be an integer, found '\ufffd\\x00\\x01'{FIX_IDS}"),
        (
            b"1" * 50 + b"x,2\n",
            f"e.csv:1:1: the source id must be an integer, found '{'1' * 40}…'{FIX_IDS}",
        ),
    ],
)
def test_csv_edges(tmp_path, text, message):
    shop(tmp_path, edges=edges_of(CSV, "e.csv"))
    (tmp_path / "e.csv").write_bytes(text)
    assert error_of(tmp_path) == message


def test_csv_edges_with_blanks(tmp_path):
    shop(tmp_path, edges=edges_of({"name": "csv", "delimiter": " "}, "e.csv"))
    (tmp_path / "e.csv").write_text("0 1\n 1  2  0 \n")
    assert error_of(tmp_path) == f"e.csv:2:8: expected 2 columns separated by blanks, found 3{FIX_PAIRS}"


def test_edges_of_a_type_without_nodes(tmp_path):
    shop(tmp_path, num_nodes_per_type=[2, 0])
    assert error_of(tmp_path) == "buys.csv:1:3: destination id 2 of type 'item' is out of range: the type has no node"


def test_the_first_fault_comes_first_in_any_block(tmp_path):
    shop(tmp_path, edges=edges_of(CSV, "e.csv"))
    (tmp_path / "e.csv").write_text("0,1\n0,9\nx,1\n")
    for block_bytes in (1, 5, 1000):
        with pytest.raises(GraphprepError) as caught:
            list(rows_of(tmp_path, block_bytes))
        assert "e.csv:2:3: destination id 9" in str(caught.value)


# ------------------------------------------------------------------------------------------------------------ csv features


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1\nx\n", f"f.csv:2:1: value 0 must be a number, found 'x'{FIX_VALUES}"),
        ("1,2\n3,4,5\n",
         "f.csv:2:5: expected 2 columns separated by ',', found 3\n"
         "  fix: give every line the same number of values, or set format.delimiter in the metadata"),
        ("1,2\n3\n",
         "f.csv:2:2: expected 2 columns separated by ',', found 1\n"
         "  fix: give every line the same number of values, or set format.delimiter in the metadata"),
        ("1,\n3,4\n", "f.csv:1:3: value 1 is empty"),
        ("1\n1e999\n", "f.csv:2:1: value 0 does not fit float64: '1e999'"),
        ("1\n\n2\n",
         "f.csv:2:1: a blank line where a row must stand; metadata.json: num_nodes_per_type[0] says 2 rows\n"
         "  fix: remove the line, or supply the values"),
        ("1\n2\n3\n",
         "f.csv:3:1: a row too many; metadata.json: num_nodes_per_type[0] says 2 rows\n"
         "  fix: correct the counts in the metadata, or remove the surplus rows"),
    ],
)  # fmt: skip
def test_csv_features(tmp_path, text, message):
    shop(tmp_path, node_data=feature_of(CSV, "f.csv"))
    (tmp_path / "f.csv").write_text(text)
    assert error_of(tmp_path) == message


def test_counted_csv_features(tmp_path):
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n\n3\n")
    shop(tmp_path, node_data=feature_of(CSV, "a", "b"))
    assert error_of(tmp_path) == (
        "metadata.json: node_data.user.age: the files have 4 rows, but metadata.json: num_nodes_per_type[0] says 2" + FIX_COUNTS
    )
    shop(tmp_path, num_nodes_per_type=[4, 3], node_data=feature_of(CSV, "a", "b"))
    assert error_of(tmp_path) == ("b:2:1: a blank line where a row must stand\n  fix: remove the line, or supply the values")


# --------------------------------------------------------------------------------------------------- counts against files


def test_counts_of_binary_files(tmp_path):
    np.save(tmp_path / "e.npy", np.array([[0, 0], [1, 1], [1, 2]]))
    np.save(tmp_path / "one.npy", np.array([1], np.int8))
    by_type, by_chunk = "metadata.json: num_edges_per_type[0]", "metadata.json: num_edges_per_chunk[0]"
    shop(tmp_path, edges=edges_of(NPY, "e.npy"))
    assert error_of(tmp_path) == f"e.npy: 3 rows, but {by_type} says 2{FIX_COUNTS}"
    shop(tmp_path, edges=edges_of(NPY, "e.npy", "e.npy"), num_edges_per_type=[5])
    assert error_of(tmp_path) == (
        f"metadata.json: edges.user:buys:item: the files have 6 rows, but {by_type} says 5{FIX_COUNTS}"
    )
    shop(tmp_path, edges=edges_of(NPY, "e.npy", "e.npy"), num_edges_per_type=None, num_edges_per_chunk=[[3, 2]])
    assert error_of(tmp_path) == f"e.npy: 3 rows, but {by_chunk}[1] says 2{FIX_COUNTS}"
    shop(tmp_path, edges=edges_of(NPY), num_edges_per_type=None, num_edges_per_chunk=[[3, 2]])
    assert error_of(tmp_path) == (
        f"metadata.json: edges.user:buys:item: the files have 0 rows, but {by_chunk} says 5{FIX_COUNTS}"
    )
    shop(tmp_path, node_data=feature_of(NPY, "one.npy"))
    assert error_of(tmp_path) == f"one.npy: 1 row, but metadata.json: num_nodes_per_type[0] says 2{FIX_COUNTS}"
    edge_data = {"user:buys:item": {"x": {"format": NPY, "data": ["one.npy"]}}}
    shop(tmp_path, edges=edges_of(NPY, "e.npy"), num_edges_per_type=None, edge_data=edge_data)
    assert error_of(tmp_path) == (f"one.npy: 1 row, but metadata.json: edges.user:buys:item (its files) says 3{FIX_COUNTS}")
    edge_data["user:buys:item"]["y"] = {"format": NPY, "data": ["age.npy"]}
    shop(tmp_path, num_edges_per_type=None, edge_data=edge_data)
    assert error_of(tmp_path) == (
        f"age.npy: 2 rows, but metadata.json: edge_data.user:buys:item.x (its files) says 1{FIX_COUNTS}"
    )


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"num_edges_per_type": [3]}, "buys.csv: 2 rows, but 3 were promised (metadata.json: num_edges_per_type[0])"),
        (
            {"num_edges_per_type": None, "num_edges_per_chunk": [[1]]},
            "buys.csv: 2 rows, but 1 were promised (metadata.json: num_edges_per_chunk[0][0])",
        ),
    ],
)
def test_counts_of_text_files(tmp_path, changes, says):
    shop(tmp_path / "in", **changes)
    with pytest.raises(DataError) as caught:
        graphprep.convert(tmp_path / "in", tmp_path / "out")
    assert str(caught.value).replace(f"{tmp_path}/in/", "") == (
        f"{says}\n  fix: correct the counts in the metadata, or supply the missing rows"
    )


def test_chunks_of_a_feature_agree(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((1, 3), np.float32))
    np.save(tmp_path / "b.npy", np.zeros((1, 3)))
    np.save(tmp_path / "c.npy", np.zeros((1, 2), np.float32))
    (tmp_path / "a.csv").write_text("1,2\n")
    (tmp_path / "b.csv").write_text("1\n")
    pq.write_table(pa.table({"x": [[1]]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": ["1"]}), tmp_path / "b.parquet")
    first = "float32 rows of shape (3,)"
    fix = "\n  fix: store all files of a feature in one dtype and shape"
    for format_, one, other, found, message in [
        (NPY, "a.npy", "b.npy", "float64 rows of shape (3,)", first),
        (NPY, "a.npy", "c.npy", "float32 rows of shape (2,)", first),
        (CSV, "a.csv", "b.csv", "1 column", "2 columns"),
        (PARQUET, "a.parquet", "b.parquet", "texts", "int64 lists"),
    ]:
        shop(tmp_path, node_data=feature_of(format_, one, other))
        assert error_of(tmp_path) == f"{other}: {found}, but {tmp_path}/{one} has {message}{fix}".replace(f"{tmp_path}/", "")


# ---------------------------------------------------------------------------------------------------------------- numpy


class Trap:
    """Unpickling it writes a file."""

    def __reduce__(self):
        return (open, ("trap-was-sprung", "w"))


def npy(header: str, data: bytes = b"") -> bytes:
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode("latin1") + data


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((2, 3), np.int64), "e.npy: edges must have shape (m, 2), found (2, 3)\n  fix: transpose the array"),
        (
            np.zeros((3, 3), np.int64),
            "e.npy: edges must have shape (m, 2), found (3, 3)\n  fix: store one row an edge: source, destination",
        ),
        (
            np.zeros(4, np.int64),
            "e.npy: edges must have shape (m, 2), found (4,)\n  fix: store one row an edge: source, destination",
        ),
        (np.zeros((2, 2)), "e.npy: ids must be integers, found float64\n  fix: store them as int64"),
        (np.zeros((2, 2), bool), "e.npy: ids must be integers, found bool\n  fix: store them as int64"),
        (np.int64(3), "e.npy: the array is a scalar; expected one row a node or edge"),
        (
            np.array([[0, 0], [0, 3]]),
            "e.npy: row 1, column '1': destination id 3 of type 'item' is out of range: valid ids are in [0, 3)",
        ),
        (
            np.array([[0, 0], [-1, 9]], np.int8),
            "e.npy: row 1, column '0': source id -1 of type 'user' is out of range: valid ids are in [0, 2)",
        ),
        (
            np.array([[0, 2**63], [0, 0]], ">u8"),
            f"e.npy: row 0, column '1': destination id {2**63} of type 'item' is out of range: valid ids are in [0, 3)",
        ),
    ],
)
def test_npy_edges(tmp_path, array, message):
    shop(tmp_path, edges=edges_of(NPY, "e.npy"))
    np.save(tmp_path / "e.npy", array)
    assert error_of(tmp_path) == message


def test_npy_files_that_are_none(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shop(tmp_path, node_data=feature_of(NPY, "f.npy"))
    good = (tmp_path / "age.npy").read_bytes()
    fix = "\n  fix: store numbers or booleans of at most 64 bits"
    objects = npy("{'descr': '|O', 'fortran_order': False, 'shape': (2,)}", pickle.dumps(Trap()))
    for data, message in [
        (b"", "f.npy: not a .npy file\n  fix: write it with numpy.save"),
        (pickle.dumps(Trap()), "f.npy: not a .npy file\n  fix: write it with numpy.save"),
        (objects, f"f.npy: the array has dtype '|O', which is not read{fix}"),
        (good[:-1], f"f.npy: the file is truncated: {len(good) - 1} bytes of {len(good)}\n  fix: write it again"),
        (good + b"xx", "f.npy: 2 bytes follow the array\n  fix: write the file again"),
    ]:
        (tmp_path / "f.npy").write_bytes(data)
        assert error_of(tmp_path) == message
    for dtype, shown in (("<M8[s]", "'<M8[s]'"), ("<U3", "'<U3'"), ([("a", "<i4")], "[('a', '<i4')]")):
        np.save(tmp_path / "f.npy", np.zeros(2, dtype))
        assert error_of(tmp_path) == f"f.npy: the array has dtype {shown}, which is not read{fix}"
    assert not (tmp_path / "trap-was-sprung").exists()


# --------------------------------------------------------------------------------------------------------------- Parquet


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pa.table({"a": [0, 1]}),
            "e.parquet: edges need exactly two columns, found 1\n  fix: keep the source and the destination",
        ),
        (
            pa.table({"a": [0, 1], "b": [0, 1], "w": [1, 2]}),
            "e.parquet: edges need exactly two columns, found 3\n  fix: keep the source and the destination",
        ),
        (
            pa.table({"a": [0, 1], "b": [0.0, 1.0]}),
            "e.parquet: column 'b': ids must be integers, found double\n  fix: store them as int64",
        ),
        (
            pa.table({"a": ["0", "1"], "b": [0, 1]}),
            "e.parquet: column 'a': ids must be integers, found string\n  fix: store them as int64",
        ),
        (
            pa.table({"a": [True, False], "b": [0, 1]}),
            "e.parquet: column 'a': ids must be integers, found bool\n  fix: store them as int64",
        ),
        (
            pa.table({"a": [0, 1], "b": [0, None]}),
            "e.parquet: row 1, column 'b': an id is null\n  fix: drop the row, or supply the id",
        ),
        (
            pa.table({"a": [0, 1], "b": [0, 7]}),
            "e.parquet: row 1, column 'b': destination id 7 of type 'item' is out of range: valid ids are in [0, 3)",
        ),
        (
            pa.table({"a": [0, 5], "b": [0, 7]}),
            "e.parquet: row 1, column 'a': source id 5 of type 'user' is out of range: valid ids are in [0, 2)",
        ),
    ],
)
def test_parquet_edges(tmp_path, table, message):
    shop(tmp_path, edges=edges_of(PARQUET, "e.parquet"))
    pq.write_table(table, tmp_path / "e.parquet", row_group_size=1)
    assert error_of(tmp_path) == message


def shaped(columns: dict, shape: str) -> pa.Table:
    return pa.table(columns).replace_schema_metadata({"shape": shape})


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            pa.table({"0": [1, 2], "1": [1.0, 2.0]}),
            "f.parquet: columns of one feature must have one type: '0' has int64, '1' double\n"
            "  fix: store all columns in one type",
        ),
        (
            pa.table({"0": [1, 2], "1": [1, None]}),
            "f.parquet: row 1, column '1': a value is null\n  fix: supply the value, NaN for instance",
        ),
        (
            pa.table({"x": [[1, 2], [3, None]]}),
            "f.parquet: row 1, column 'x': a list holds a null\n  fix: supply the value, NaN for instance",
        ),
        pytest.param(
            pa.table({"x": pa.array([[[1], [2]], [[3], None]], pa.list_(pa.list_(pa.int8(), 1), 2))}),
            "f.parquet: row 1, column 'x': a list holds a null\n  fix: supply the value, NaN for instance",
            marks=null_vectors,
        ),
        (
            pa.table({"x": [{"a": 1}, {"a": 2}]}),
            "f.parquet: column 'x': a feature cannot have type struct<a: int64>\n"
            "  fix: store numbers, booleans, one text column, or one column of lists of numbers",
        ),
        (
            pa.table({"x": ["a", "b"], "y": ["a", "b"]}),
            "f.parquet: column 'x': a feature cannot have type string\n"
            "  fix: store numbers, booleans, one text column, or one column of lists of numbers",
        ),
        (
            pa.table({"x": [["a"], ["b"]]}),
            "f.parquet: column 'x': a feature cannot have type list<element: string>\n"
            "  fix: store numbers, booleans, one text column, or one column of lists of numbers",
        ),
        (
            shaped({"0": [1, 2], "1": [1, 2]}, "(2, 3)"),
            "f.parquet: the schema's key 'shape' says (2, 3), but the table has 2 rows of 2 values",
        ),
        (
            shaped({"0": [1, 2]}, "(3, 1)"),
            "f.parquet: the schema's key 'shape' says (3, 1), but the table has 2 rows of 1 values",
        ),
        (
            shaped({"0": [1, 2]}, "__import__('os').abort()"),
            "f.parquet: the schema's key 'shape' must be a tuple of integers, found \"__import__('os').abort()\"",
        ),
        (
            shaped({"0": [[1, 2], [3]]}, "(2, 2)"),
            "f.parquet: row 1, column '0': expected a list of 2, found one of 1",
        ),
    ],
)
def test_parquet_features(tmp_path, table, message):
    shop(tmp_path, node_data=feature_of(PARQUET, "f.parquet"))
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=2)
    assert error_of(tmp_path) == message


def test_parquet_files_that_are_none(tmp_path):
    shop(tmp_path, node_data=feature_of(PARQUET, "f.parquet"))
    for data in (b"", b"1\n2\n"):
        (tmp_path / "f.parquet").write_bytes(data)
        assert error_of(tmp_path) == "f.parquet: not a Parquet file"
    (tmp_path / "f.parquet").write_bytes(b"PAR1" + b"\0" * 20)
    assert error_of(tmp_path).startswith("f.parquet: not a readable Parquet file: ")
    pq.write_table(pa.table({}), tmp_path / "f.parquet")
    assert error_of(tmp_path) == "f.parquet: the table has no column"


def test_the_content_decides_what_a_file_is(tmp_path):
    shop(tmp_path, node_data=feature_of(CSV, "age.npy"))
    assert error_of(tmp_path) == "age.npy: format.name is csv, but this is a .npy file\n  fix: set format.name to numpy"
    pq.write_table(pa.table({"a": [1, 2]}), tmp_path / "f.parquet")
    shop(tmp_path, node_data=feature_of(CSV, "f.parquet"))
    assert error_of(tmp_path) == (
        "f.parquet: format.name is csv, but this is a Parquet file\n  fix: set format.name to parquet"
    )


# ------------------------------------------------------------------------------------------------------------------ fuzz


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_mutated_files_end_in_our_errors_only(tmp_path, data):
    kind, seed = data.draw(st.sampled_from(["metadata.json", "buys.csv", "age.npy", "f.parquet", "f.csv"])), tmp_path / "f"
    metadata = shop(seed)
    pq.write_table(pa.table({"0": [1, 2], "1": [3, 4]}), seed / "f.parquet")
    (seed / "f.csv").write_text("1.5 2\n3 4\n")
    metadata["node_data"]["user"]["p"] = {"format": PARQUET, "data": ["f.parquet"]}
    metadata["node_data"]["user"]["c"] = {"format": {"name": "csv", "delimiter": " "}, "data": ["f.csv"]}
    write(seed, metadata)
    content = bytearray((seed / kind).read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(content)))
        content[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=3))
    (seed / kind).write_bytes(bytes(content))
    try:
        list(rows_of(seed, data.draw(st.integers(1, 50)), 1))
    except GraphprepError as error:
        assert str(error)
