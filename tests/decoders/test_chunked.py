"""Chunked graphs written by an independent, naive writer, and read back in batches of any size."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from decoders.chunked_graphs import CSV, NPY, PARQUET, edges_of, feature_of, load, null_vectors, rows_of, shop, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from graphprep.decoders.chunked.decoder import ChunkedDecoder
from graphprep.decoders.chunked.plan import Chunk
from graphprep.decoders.registry import bid_of
from graphprep.model.errors import DecodeError, StorageError, UsageError
from graphprep.model.protocols import DeclaredNodes, Decoder, SniffedFile, Span, TextBlock
from graphprep.model.rows import ColumnKey, Relation
from graphprep.storage.read.spans import text_blocks
from graphprep.storage.read.urls import Storage
from graphprep.testing.contract import DecoderContract

# ----------------------------------------------------------------------------------------------------- the happy path


def test_a_small_graph(tmp_path):
    shop(tmp_path)
    with Storage() as storage:
        sources = ChunkedDecoder().plan(storage, [str(tmp_path)])
        again = ChunkedDecoder().plan(storage, [str(tmp_path / "metadata.json")])
    assert again == sources
    assert isinstance(ChunkedDecoder(), Decoder)
    assert sources.nodes == "identity"
    assert sources.graph_name == "shop"
    assert sources.node_types == (DeclaredNodes("user", 2), DeclaredNodes("item", 3))
    assert sources.edge_types == (Relation("buys", "user", "item"),)
    assert sources.num_edges == (2,)
    assert [(column.owner, column.key, column.item_shape) for column in sources.columns] == [
        ("user", ColumnKey("age", "numbers", "int8"), ())
    ]
    assert [(span.kind, span.role, span.expect_rows, span.expect_by) for span in sources.spans] == [
        ("text", "edges", 2, f"{tmp_path}/metadata.json: num_edges_per_type[0]"),
        ("table", "node_data", None, ""),
    ]
    edges, features = load(tmp_path)
    assert edges[Relation("buys", "user", "item")].tolist() == [[0, 2], [1, 0]]
    assert features == {("user", "age"): {0: np.int8(30), 1: np.int8(40)}}


def test_optional_keys_may_be_absent(tmp_path):
    metadata = shop(tmp_path, graph_name=None, node_data=None, edge_data=None, num_edges_per_type=None)
    metadata["edges"] = edges_of({"name": "csv"}, "buys.csv")
    metadata["something_else"] = {"x": [1.5, None]}
    write(tmp_path, metadata)
    with Storage() as storage:
        sources = ChunkedDecoder().plan(storage, [str(tmp_path)])
    assert (sources.graph_name, sources.num_edges) == (None, (None,))
    assert load(tmp_path)[0][Relation("buys", "user", "item")].tolist() == [[0, 2], [1, 0]]


@pytest.mark.parametrize(
    ("format_", "text"),
    [
        ({"name": "csv"}, "0,2\n1,0\n"),
        ({"name": "csv"}, "\ufeff0\t2\r\n1\t0\r\n"),
        ({"name": "csv"}, "\n\n0 2\n\n1   0"),
        ({"name": "csv", "delimiter": " "}, "  0 \t 2  \n1 0\n\n  \n"),
        ({"name": "csv", "delimiter": "\t"}, "0\t2\n 1 \t 0 \n"),
        ({"name": "csv", "delimiter": ";"}, '"0";"2"\n+1;-0\n'),
        ({"name": "csv", "delimiter": "||"}, "0||2\n1||0"),
        ({"name": "csv", "delimiter": "→"}, "0→2\n1 → 0"),
    ],
)
@pytest.mark.parametrize("block_bytes", [1, 7, 1 << 20])
def test_any_delimiter(tmp_path, format_, text, block_bytes):
    shop(tmp_path, edges=edges_of(format_, "e.csv"))
    (tmp_path / "e.csv").write_bytes(text.encode())
    assert load(tmp_path, block_bytes)[0][Relation("buys", "user", "item")].tolist() == [[0, 2], [1, 0]]


def test_paths_may_be_absolute_urls_and_outside_of_the_folder(tmp_path):
    (tmp_path / "else").mkdir()
    for name, text in (("a.csv", "0,0\n"), ("b.csv", "1,1\n"), ("c.csv", "1,2\n")):
        (tmp_path / "else" / name).write_text(text)
    paths = ["../else/a.csv", str(tmp_path / "else" / "b.csv"), f"file://{tmp_path}/else/c.csv"]
    shop(tmp_path / "graph", edges=edges_of(CSV, *paths), num_edges_per_type=[3])
    assert load(tmp_path / "graph")[0][Relation("buys", "user", "item")].tolist() == [[0, 0], [1, 1], [1, 2]]


def test_a_graph_in_memory():
    import fsspec

    fs = fsspec.filesystem("memory")
    fs.pipe("/chunked-test/metadata.json", json.dumps({
        "node_type": ["a"], "num_nodes_per_chunk": [[1, 1]], "edge_type": ["a:r:a"],
        "edges": {"a:r:a": {"format": {"name": "csv"}, "data": ["e/0.csv"]}},
    }).encode())  # fmt: skip
    fs.pipe("/chunked-test/e/0.csv", b"0 1\n")
    for url in ("memory://chunked-test", "memory://chunked-test/metadata.json"):
        assert load(url)[0] == {Relation("r", "a", "a"): pytest.approx(np.array([[0, 1]]))}


def test_compressed_files_are_read(tmp_path):
    shop(tmp_path, node_data=feature_of(NPY, "age.npy.gz"), edges=edges_of(PARQUET, "e.gz"))
    (tmp_path / "age.npy.gz").write_bytes(gzip.compress((tmp_path / "age.npy").read_bytes()))
    pq.write_table(pa.table({"s": [0, 1], "d": [2, 0]}), tmp_path / "e.parquet")
    (tmp_path / "e.gz").write_bytes(gzip.compress((tmp_path / "e.parquet").read_bytes()))
    edges, features = load(tmp_path, max_rows=1)
    assert edges[Relation("buys", "user", "item")].tolist() == [[0, 2], [1, 0]]
    assert features[("user", "age")] == {0: 30, 1: 40}


def test_percent_encoded_edge_types(tmp_path):
    shop(tmp_path, edge_type=["user:a%3Ab:item"], edges={"user:a%3ab:item": {"format": CSV, "data": ["buys.csv"]}})
    assert list(load(tmp_path)[0]) == [Relation("a:b", "user", "item")]


def test_places_are_given_when_asked_for(tmp_path):
    shop(tmp_path, edges=edges_of(CSV, "e.csv"), node_data={})
    (tmp_path / "e.csv").write_text("0, 2\n\n1,0\n")
    ((_, rows),) = rows_of(tmp_path, places=True)
    assert rows.edges.at_src.tolist() == [0, 6]
    assert rows.edges.at_dst.tolist() == [3, 8]
    assert rows.edges.record.tolist() == [-1, -1]
    np.save(tmp_path / "e.npy", np.array([[0, 2], [1, 0]]))
    shop(tmp_path, edges=edges_of(NPY, "e.npy"), node_data={})
    ((_, rows),) = rows_of(tmp_path, places=True)
    assert (rows.edges.at_src.tolist(), rows.edges.at_dst.tolist()) == ([0, 1], [0, 1])


# ------------------------------------------------------------------------------------------------------------- features


def one_feature(tmp_path, num_rows, format_, *paths, **kwargs):
    shop(tmp_path, num_nodes_per_type=[num_rows, 3], node_data=feature_of(format_, *paths), edges=edges_of(CSV), **{
        "num_edges_per_type": [0], **kwargs})  # fmt: skip
    with Storage() as storage:
        (column,) = ChunkedDecoder().plan(storage, [str(tmp_path)]).columns
    seen = [aligned.chunk for _, rows in rows_of(tmp_path, 9, 2) for aligned in rows.aligned]
    return column, seen, load(tmp_path, 9, 2)[1].get(("user", "age"), {})


DTYPES = ["bool", "i1", "u1", ">i2", "<u2", ">i4", "u4", "i8", ">u8", "f2", ">f2", "f4", ">f4", "f8", ">f8", "c8", ">c16"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3), (5, 2, 3), (5, 2, 2, 2), (5, 0)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_features_keep_dtype_and_shape(tmp_path, dtype, shape, order):
    array = np.asarray(np.arange(np.prod(shape)).reshape(shape) % 7, dtype, order=order)
    np.save(tmp_path / "f.npy", array)
    column, seen, found = one_feature(tmp_path, 5, NPY, "f.npy")
    native = np.dtype(dtype).newbyteorder("=")
    assert (column.key, column.item_shape, column.settled) == (ColumnKey("age", "numbers", native.name), shape[1:], True)
    assert all(chunk.item_shape == shape[1:] and chunk.values.dtype == native for chunk in seen)
    assert np.array_equal(np.stack([found[i] for i in range(5)]), array)


@pytest.mark.parametrize(
    ("table", "key", "item_shape", "values"),
    [
        (pa.table({"x": pa.array([1, 2], pa.int16())}), "int16", (1,), [[1], [2]]),
        (pa.table({"x": [1, 2]}).replace_schema_metadata({"shape": "(2,)"}), "int64", (), [1, 2]),
        (pa.table({"x": [1, 2]}).replace_schema_metadata({"shape": "(2, 1)"}), "int64", (1,), [[1], [2]]),
        (pa.table({"0": [1.0, 2.0], "1": [3.0, 4.0]}), "float64", (2,), [[1, 3], [2, 4]]),
        (pa.table({"0": [True, False]}), "bool", (1,), [[True], [False]]),
        (
            pa.table({str(i): [i, 10 * i] for i in range(4)}).replace_schema_metadata({"shape": "(2, 2, 2)"}),
            "int64", (2, 2), [[[0, 1], [2, 3]], [[0, 10], [20, 30]]],
        ),
        (pa.table({"x": pa.array(np.array([1, 2], np.float16))}), "float16", (1,), [[1], [2]]),
        (pa.table({"x": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32()))}), "float32", None, [[1, 2], [3, 4]]),
        (pa.table({"x": pa.array([[1], [3, 4]], pa.large_list(pa.int32()))}), "int32", None, [[1], [3, 4]]),
        (pa.table({"x": pa.array([[1, 2], [3, 4]], pa.list_(pa.float32(), 2))}), "float32", (2,), [[1, 2], [3, 4]]),
        (
            pa.table({"x": pa.array([[[1], [2]], [[3], [4]]], pa.list_(pa.list_(pa.int8(), 1), 2))}),
            "int8", (2, 1), [[[1], [2]], [[3], [4]]],
        ),
        (
            pa.table({"x": pa.array([[1, 2], [3, 4]], pa.list_(pa.int8()))}).replace_schema_metadata({"shape": "(2, 2, 1)"}),
            "int8", (2, 1), [[[1], [2]], [[3], [4]]],
        ),
        (pa.table({"x": pa.array([7, 8], pa.timestamp("us"))}), "int64", (1,), [[7], [8]]),
        (pa.table({"x": pa.array([7, 8], pa.date32())}), "int32", (1,), [[7], [8]]),
        (pa.table({"x": pa.array([7, 8], pa.time32("ms"))}), "int32", (1,), [[7], [8]]),
        (pa.table({"x": pa.array([7, 9]).dictionary_encode()}), "int64", (1,), [[7], [9]]),
        (pa.table({"x": [7, 9], "__index_level_0__": [0, 1]}), "int64", (1,), [[7], [9]]),
        (pa.table({"x": pa.array([None, 5], pa.int64())}), "int64", (1,), [None, [5]]),
        (pa.table({"x": pa.array([None, [5, 6]], pa.list_(pa.int64()))}), "int64", None, [None, [5, 6]]),
        pytest.param(
            *(pa.table({"x": pa.array([None, [5, 6]], pa.list_(pa.int64(), 2))}), "int64", (2,), [None, [5, 6]]),
            marks=null_vectors,
        ),
    ],
)  # fmt: skip
def test_parquet_features(tmp_path, table, key, item_shape, values):
    pq.write_table(table, tmp_path / "f.parquet", row_group_size=1)
    column, seen, found = one_feature(tmp_path, 2, PARQUET, "f.parquet")
    assert column.key == ColumnKey("age", "numbers", key)
    assert (column.item_shape, column.settled) == (((0,), False) if item_shape is None else (item_shape, True))
    assert all(chunk.values.dtype == key for chunk in seen)
    assert [found[i].tolist() if i in found else None for i in range(2)] == values


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.dictionary(pa.int8(), pa.string())])
def test_parquet_texts_are_binary(tmp_path, kind):
    pq.write_table(pa.table({"x": pa.array(["é", None, "", "abc"]).cast(kind)}), tmp_path / "f.parquet", row_group_size=3)
    column, _, found = one_feature(tmp_path, 4, PARQUET, "f.parquet")
    assert column.key == ColumnKey("age", "binary", "uint8")
    assert {row: bytes(value) for row, value in found.items()} == {0: "é".encode(), 2: b"", 3: b"abc"}


@pytest.mark.parametrize(
    ("text", "dtype", "values"),
    [
        ("1\n-2\n+3", "int64", [1, -2, 3]),
        ("1\n-2.5\nnan\n", "float64", [1, -2.5, np.nan]),
        ("1,2\n3,4\n5,6\n\n  \n", "int64", [[1, 2], [3, 4], [5, 6]]),
        ("1,2\r\n3,4e2\r\n5,inf\r\n", "float64", [[1, 2], [3, 400], [5, np.inf]]),
        ("9223372036854775808\n0\n0\n", "float64", [2.0**63, 0, 0]),
        ('"1"\n" 2"\n3', "int64", [1, 2, 3]),
    ],
)
def test_csv_features(tmp_path, text, dtype, values):
    (tmp_path / "f.csv").write_text(text)
    column, _, found = one_feature(tmp_path, 3, CSV, "f.csv")
    assert not column.settled
    whole = [aligned.chunk for _, rows in rows_of(tmp_path) for aligned in rows.aligned]
    assert {chunk.values.dtype.name for chunk in whole} == {dtype}
    assert np.array_equal(np.array([found[i] for i in range(3)]), np.array(values), equal_nan=True)
    decoder = ChunkedDecoder().widen({"age": "float64"})
    with Storage() as storage:
        (span,) = decoder.plan(storage, [str(tmp_path)]).spans
        block, *_ = text_blocks(storage, span, 1 << 20)
    assert decoder.decode(block).aligned[0].chunk.values.dtype == np.float64


def test_rows_of_csv_chunks_follow_each_other(tmp_path):
    # Three files where two chunks are counted: lines are counted; two files: the metadata says where the second begins.
    for name, text in (("a", "1\n2\n"), ("b", ""), ("c", "3\n\n\n"), ("bc", "3\n")):
        (tmp_path / name).write_text(text)
    more = {"num_nodes_per_chunk": [[2, 1], [3, 0]]}
    for paths in (("a", "b", "c"), ("a", "bc")):
        _, _, found = one_feature(tmp_path, 3, CSV, *paths, **more)
        assert {row: int(value) for row, value in found.items()} == {0: 1, 1: 2, 2: 3}


def test_skipping_a_line_does_not_shift_the_others(tmp_path):
    shop(tmp_path, num_nodes_per_type=[3, 3], node_data=feature_of(CSV, "f.csv"))
    (tmp_path / "f.csv").write_text("1\nx\n3\n")
    with Storage() as storage:
        span = ChunkedDecoder().plan(storage, [str(tmp_path)]).spans[1]
    rows = ChunkedDecoder().decode(TextBlock(b"3\n", span, first_line=3, is_first=False))
    assert rows.aligned[0].start + rows.aligned[0].chunk.rows[0] == 2


# ---------------------------------------------------------------------------------------------------- empty of all kinds


def test_everything_may_be_empty(tmp_path):
    (tmp_path / "zero.csv").write_bytes(b"")
    np.save(tmp_path / "e.npy", np.zeros((0, 2)))
    np.save(tmp_path / "f.npy", np.zeros((0, 4), np.float32))
    pq.write_table(pa.table({"s": pa.array([], pa.int64()), "d": pa.array([], pa.int64())}), tmp_path / "e.parquet")
    pq.write_table(pa.table({"x": pa.array([], pa.list_(pa.int8()))}), tmp_path / "f.parquet")
    blocks = {
        "n:a:n": {"format": CSV, "data": ["zero.csv", "zero.csv"]},
        "n:b:n": {"format": NPY, "data": ["e.npy"]},
        "n:c:n": {"format": PARQUET, "data": ["e.parquet"]},
        "n:d:n": {"format": PARQUET, "data": []},
    }
    features = {
        "csv": {"format": CSV, "data": ["zero.csv"]},
        "npy": {"format": NPY, "data": ["f.npy", "f.npy"]},
        "lists": {"format": PARQUET, "data": ["f.parquet"]},
        "none": {"format": PARQUET, "data": []},
    }
    write(tmp_path, {
        "node_type": ["n"], "num_nodes_per_type": [0], "edge_type": list(blocks), "edges": blocks,
        "node_data": {"n": features}, "edge_data": {"n:a:n": features},
    })  # fmt: skip
    with Storage() as storage:
        sources = ChunkedDecoder().plan(storage, [str(tmp_path)])
    assert sources.num_edges == (0, 0, 0, 0)
    expected = [
        (ColumnKey("csv", "numbers", "int64"), ()),
        (ColumnKey("npy", "numbers", "float32"), (4,)),
        (ColumnKey("lists", "numbers", "int8"), (0,)),
        (ColumnKey("none", "numbers", "int64"), ()),
    ]
    assert [(column.owner, column.key, column.item_shape) for column in sources.columns] == [
        (owner, *rest) for owner in ("n", ("n", "a", "n")) for rest in expected
    ]
    edges, found = load(tmp_path)
    assert all(array.size == 0 for array in edges.values())
    assert found == {}


def test_no_types_at_all(tmp_path):
    write(tmp_path, {"node_type": [], "edge_type": [], "edges": {}})
    assert load(tmp_path) == ({}, {})


def test_empty_chunks_do_not_take_part_in_agreement(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros(0))
    np.save(tmp_path / "b.npy", np.ones((2, 3), np.int8))
    column, _, found = one_feature(tmp_path, 2, NPY, "a.npy", "b.npy", "a.npy")
    assert (column.key.dtype, column.item_shape) == ("int8", (3,))
    assert len(found) == 2


# ------------------------------------------------------------------------------------------------ random graphs, differential


@st.composite
def splits(draw: st.DrawFn, total: int) -> list[int]:
    cuts = sorted(draw(st.lists(st.integers(0, total), max_size=3)))
    return np.diff([0, *cuts, total]).tolist()


def write_ids(path: Path, array: np.ndarray, format_: str, delimiter: str, variant: int) -> None:
    if format_ == "csv":
        path.write_text("".join(f"{s}{delimiter}{d}\n" for s, d in array.tolist()))
    elif format_ == "numpy":
        np.save(path.with_suffix(".npy"), np.asarray(array, [np.int64, ">u4", np.int16][variant], order="CF"[variant % 2]))
        path.with_suffix(".npy").rename(path)
    else:
        kind = [pa.int64(), pa.uint32(), pa.int16()][variant]
        table = pa.table({"a": pa.array(array[:, 0], kind), "b": pa.array(array[:, 1], kind)})
        pq.write_table(table, path, row_group_size=3)


def write_values(path: Path, array: np.ndarray, format_: str, delimiter: str) -> None:
    flat = array.reshape(len(array), -1) if len(array) else array.reshape(0, int(np.prod(array.shape[1:])))
    if format_ == "csv":
        path.write_text("".join(delimiter.join(map(repr, row)) + "\n" for row in flat.tolist()))
    elif format_ == "numpy":
        np.save(path.with_suffix(".npy"), array)
        path.with_suffix(".npy").rename(path)
    else:
        table = pa.table({str(i): pa.array(flat[:, i]) for i in range(flat.shape[1])})
        pq.write_table(table.replace_schema_metadata({"shape": str(array.shape)}), path, row_group_size=2)


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_random_graphs_agree_with_their_arrays(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("graph")
    draw = data.draw
    formats, delimiters = st.sampled_from(["csv", "numpy", "parquet"]), st.sampled_from([" ", ",", "\t", ";", "::"])
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    node_types = [f"t{i}" for i in range(draw(st.integers(1, 3)))]
    num_nodes = [draw(st.integers(0, 6)) for _ in node_types]
    full = [i for i, n in enumerate(num_nodes) if n]
    metadata: dict = {"node_type": node_types, "edge_type": [], "edges": {}, "node_data": {}, "edge_data": {}}
    want_edges, want_features = {}, {}
    num_edges = []

    def features(owner, total, side):
        block = {}
        for name in ("x", "y")[: draw(st.integers(0, 2))]:
            format_, delimiter = draw(formats), draw(delimiters)
            shape = draw(st.sampled_from([(), (1,), (3,), (2, 2)] if format_ != "csv" else [(), (3,)]))
            dtype = draw(st.sampled_from(["int64", "float64"] if format_ == "csv" else ["uint8", "float32", "bool", "int64"]))
            values = np.asarray(random.integers(-5, 5, (total, *shape)), dtype)
            if dtype == "float64":
                values += 0.5
            paths, at = [], 0
            for i, size in enumerate(draw(splits(total))):
                paths.append(f"{side}-{owner if isinstance(owner, str) else owner.name}-{name}-{i}")
                write_values(folder / paths[-1], values[at : at + size], format_, delimiter)
                at += size
            block[name] = {"format": {"name": format_, "delimiter": delimiter}, "data": paths}
            if total:
                want_features[(owner, name)] = values
        return block

    for i, name in enumerate(node_types):
        metadata["node_data"][name] = features(name, num_nodes[i], "n")
    for number in range(draw(st.integers(0, 3))):
        src, dst = (draw(st.sampled_from(full or [0])) for _ in range(2))
        total = draw(st.integers(0, 12)) if full else 0
        text = f"{node_types[src]}:r{number}:{node_types[dst]}"
        pairs = np.stack([random.integers(0, max(num_nodes[end], 1), total) for end in (src, dst)], axis=1)
        format_, delimiter, paths, at = draw(formats), draw(delimiters), [], 0
        for i, size in enumerate(draw(splits(total))):
            paths.append(f"e-{number}-{i}")
            write_ids(folder / paths[-1], pairs[at : at + size], format_, delimiter, draw(st.integers(0, 2)))
            at += size
        relation = Relation(f"r{number}", node_types[src], node_types[dst])
        metadata["edge_type"].append(text)
        metadata["edges"][text] = {"format": {"name": format_, "delimiter": delimiter}, "data": paths}
        metadata["edge_data"][text] = features(relation, total, "e")
        want_edges[relation] = pairs
        num_edges.append(total)
    for side, counts in (("nodes", num_nodes), ("edges", num_edges)):
        spelling = draw(st.sampled_from(["type", "chunk", "both"] if side == "nodes" else ["type", "chunk", "both", "none"]))
        if spelling in ("type", "both"):
            metadata[f"num_{side}_per_type"] = counts
        if spelling in ("chunk", "both"):
            metadata[f"num_{side}_per_chunk"] = [[count] for count in counts]
    write(folder, metadata)
    edges, found = load(folder, draw(st.sampled_from([1, 5, 1 << 20])), draw(st.sampled_from([1, 2, 1 << 20])))
    assert edges.keys() == want_edges.keys()
    assert all(np.array_equal(edges[relation], want_edges[relation]) for relation in edges)
    assert found.keys() == want_features.keys()
    for key, values in want_features.items():
        assert sorted(found[key]) == list(range(len(values)))
        assert np.array_equal(np.stack([found[key][i] for i in range(len(values))]), values)


# --------------------------------------------------------------------------------------------------------------- sniffing


@pytest.mark.parametrize(
    ("url", "head", "complete", "confidence"),
    [
        ("g/metadata.json", b'{"node_type": [], "edge_type": []}', True, 1.0),
        ("x.json", b' {"node_type": [], "edge_type": [], "edges": {}}', True, 1.0),
        ("g/metadata.json", b'{"node_type": ["a", "b', False, 0.9),
        ("other.json", b'{"node_type": ["a", "b', False, None),
        ("g/metadata.json", b'{"format": "graphprep-store", "node_type": [], "edge_type": []}', True, None),
        ("g/metadata.json", b'{"format": "graphprep-store", "node_type": [', False, None),
        ("g/metadata.json", b'{"node_type": []}', True, None),
        ("g/metadata.json", b'{"node_type": ', True, None),
        ("g/e.csv", b"0 1\n", True, None),
        ("g/list.json", b"[1]", True, None),
    ],
)
def test_sniff(url, head, complete, confidence):
    found = bid_of("chunked", SniffedFile(url, head, complete))
    assert (found.confidence if found else None) == confidence


def test_one_input_only(tmp_path):
    with Storage() as storage, pytest.raises(UsageError) as caught:
        ChunkedDecoder().plan(storage, [str(tmp_path), str(tmp_path)])
    assert str(caught.value) == ("a chunked graph is one folder, found 2 inputs\n  fix: name the folder, or its metadata.json")


def test_missing_files_are_storage_errors(tmp_path):
    with Storage() as storage, pytest.raises(StorageError):
        ChunkedDecoder().plan(storage, [str(tmp_path / "nowhere")])
    shop(tmp_path, edges=edges_of(CSV, "gone.csv"))
    with Storage() as storage, pytest.raises(StorageError) as caught:
        ChunkedDecoder().plan(storage, [str(tmp_path)])
    assert str(caught.value) == f"{tmp_path}/gone.csv: no such file or folder\n  fix: check the spelling of the path"


# ------------------------------------------------------------------------------------------------------- decided dtypes


@pytest.mark.parametrize(
    ("dtype", "text", "values"),
    [
        ("float32", "0.1\n-0\n", [0.1, -0.0]),
        ("float16", "1\n65519\n", [1, 65504]),
        ("uint64", "18446744073709551615\n0\n", [2**64 - 1, 0]),
        ("int8", "-128\n127\n", [-128, 127]),
        ("bool", "true\n0\n", [True, False]),
    ],
)
def test_a_dtype_may_be_decided(tmp_path, dtype, text, values):
    shop(tmp_path, node_data=feature_of(CSV, "f.csv"))
    (tmp_path / "f.csv").write_text(text)
    for decoder in (ChunkedDecoder(columns=(f"age={dtype}",)), ChunkedDecoder().widen({"age": dtype, "other": "binary"})):
        with Storage() as storage:
            span = ChunkedDecoder().plan(storage, [str(tmp_path)]).spans[1]
            (block,) = text_blocks(storage, span, 1 << 20)
        (aligned,) = decoder.decode(block).aligned
        assert aligned.chunk.key == ColumnKey("age", "numbers", dtype)
        assert aligned.chunk.values.tobytes() == np.array(values, dtype).tobytes()


@pytest.mark.parametrize(
    ("dtype", "text", "message"),
    [
        ("float16", "1\n1e5\n", "value 0 does not fit float16: '1e5'"),
        ("int8", "1\n128\n", "value 0 does not fit int8: '128'"),
        ("uint8", "-1\n2\n", "value 0 does not fit uint8: '-1'"),
        ("int64", "1.5\n2\n", "value 0 must be an integer, found '1.5'"),
        ("bool", "1\n2\n", "value 0 must be 0, 1, true or false, found '2'"),
    ],
)
def test_values_fit_the_decided_dtype(tmp_path, dtype, text, message):
    shop(tmp_path, node_data=feature_of(CSV, "f.csv"))
    (tmp_path / "f.csv").write_text(text)
    with Storage() as storage:
        span = ChunkedDecoder().plan(storage, [str(tmp_path)]).spans[1]
        (block,) = text_blocks(storage, span, 1 << 20)
    with pytest.raises(DecodeError) as caught:
        ChunkedDecoder(columns=(f"age={dtype}",)).decode(block)
    assert caught.value.message == message


def test_only_csv_features_have_a_dtype_to_decide(tmp_path):
    shop(tmp_path)
    with Storage() as storage, pytest.raises(UsageError) as caught:
        ChunkedDecoder(columns=("age=int8",)).plan(storage, [str(tmp_path)])
    assert str(caught.value) == ("--column age: there is no csv feature of that name\n  fix: name a csv feature, or drop it")


# ---------------------------------------------------------------------------------------------------------- the contract


class TestEdgesContract(DecoderContract):
    lines = (b"0,9", b"00001,+2", b'"3", 0', b"9,9", b"7,-0")
    bad_lines = (
        (b"1", "expected 2 columns separated by ',', found 1"),
        (b"1,2,3", "expected 2 columns separated by ',', found 3"),
        (b"1,x", "the destination id must be an integer, found 'x'"),
        (b"1,", "the destination id is empty"),
        (b"10,1", "source id 10 of type 'n' is out of range: valid ids are in [0, 10)"),
    )
    at_ids = False

    def make(self):
        return ChunkedDecoder()

    def span(self):
        chunk = Chunk(Relation("r", "n", "n"), None, "csv", delimiter=b",", num_ends=(10, 10), end_types=("n", "n"))
        return Span("input", role="edges", detail=chunk)
