"""What ``info`` finds: stores, chunked graphs and raw files."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from tiny_store import sample_store

import graphprep
from graphprep.info.inspect import ColumnInfo, Head
from graphprep.model.errors import DataError, StorageError
from graphprep.model.options.convert import ConvertOptions

ROOT = Path(__file__).resolve().parent.parent.parent
SAMPLES = ROOT / "sample_data"


@pytest.fixture
def shop(tmp_path):
    return sample_store().write(tmp_path / "shop")


def by_name(types):
    return {one.name: one for one in types}


def test_a_store(shop):
    found = graphprep.info(str(shop), head=4)
    files = [path for path in shop.rglob("*") if path.is_file()]
    assert dataclasses.replace(found, node_types=(), edge_types=()) == dataclasses.replace(
        found,
        path=str(shop),
        kind="store",
        format="graphprep-store 1",
        num_bytes=sum(path.stat().st_size for path in files) - (shop / "metadata.json").stat().st_size,
        num_files=len(files),
        graph_name="shop",
        num_parts=2,
        partition_by="range",
        layouts=("csc", "csr"),
        node_types=(),
        edge_types=(),
    )
    user, item = found.node_types
    assert (user.name, user.count, user.per_part, user.raw_ids) == ("user", 5, (3, 2), "int64")
    assert user.columns[:2] == (
        ColumnInfo("weight", "dense", "float32", (), role="weight"),
        ColumnInfo("feat_0", "dense", "float32", (2,), optional=True),
    )
    assert user.head.names == ("raw ID", "weight", "feat_0", "feat_1", "feat_2", "feat_3", "feat_4", "label")
    assert user.head.rows == (
        (3, 1.0, [1.5, 1.5], [0, 1], [[[1, 1], 1.0], [[1, 1], 1.0]], "AA", [[5, -1, [0.0] * 3], [9, -1, [0.0] * 3]], True),
        (7, 1.0, None, None, None, "", [], False),
        (8, 1.0, [1.5, 1.5], [2, 3], [[[1, 1], 1.0], [[1, 1], 1.0]], "AA", [[5, -1, [0.0] * 3], [9, -1, [0.0] * 3]], True),
        (10, 1.0, [1.5, 1.5], [0, 1], [[[1, 1], 1.0], [[1, 1], 1.0]], "AA", [[5, -1, [0.0] * 3], [9, -1, [0.0] * 3]], True),
    )
    assert item.head == Head(("raw ID",), ((100,), (200,), (300,)))


def test_edges_of_a_store_across_partitions(shop):
    buys = by_name(graphprep.info(str(shop), head=9).edge_types)["user:buys:item"]
    assert (buys.count, buys.per_part, buys.neighbor_order, buys.index_dtype, buys.edge_id_dtype) == (
        7,
        (5, 2),
        "input",
        "int32",
        "int32",
    )
    assert buys.head == Head(
        ("source", "destination", "edge ID", "weight"),
        (
            (3, 100, 0, 1.0),
            (7, 100, 2, 3.0),
            (8, 100, 4, None),
            (3, 200, 3, 4.0),
            (10, 200, 6, 7.0),
            (20, 300, 1, 2.0),
            (20, 300, 5, 6.0),
        ),
    )


def test_edges_of_a_csr_store(tmp_path):
    folder = sample_store(("csr",)).write(tmp_path)
    likes = by_name(graphprep.info(str(folder), head=2).edge_types)["user:likes:user"]
    assert likes.head == Head(("source", "destination", "edge ID"), ((3, 7, 0), (7, 8, 1)))


def test_without_head_there_is_none(shop):
    found = graphprep.info(str(shop))
    assert {one.head for one in (*found.node_types, *found.edge_types)} == {None}


def test_a_plain_edge_list():
    found = graphprep.info(str(SAMPLES / "karate" / "karate.csv"), head=2)
    assert (found.kind, found.format, found.num_files) == ("raw", "edges", 1)
    assert " ".join(found.flags) == "--format edges"
    (edges,) = found.edge_types
    assert (edges.name, edges.count, edges.seen) == ("_N:_E:_N", None, 78)
    assert edges.columns == (ColumnInfo("weight", "dense", "int64", ()),)
    assert edges.head == Head(("source", "destination", "weight"), ((0, 1, 4), (0, 2, 5)))


def test_the_sniffed_options_and_ones_own(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("1;2\n3;4\n")
    options = ConvertOptions(format="edges", decoder_options={"delimiter": ";"})
    (edges,) = graphprep.info(str(path), head=5, options=options).edge_types
    assert edges.head.rows == ((1, 2), (3, 4))


@pytest.mark.parametrize(("name", "format_"), [("shop.edgelist", "edgelist"), ("shop.jsonl", "json"), ("shop.tsv", "tsv")])
def test_the_deepgnn_formats(name, format_):
    found = graphprep.info(str(SAMPLES / "shop" / name), head=1)
    assert (found.kind, found.format) == ("raw", format_)
    assert found.node_types and found.edge_types
    for one in found.node_types:
        assert one.seen > 0
        assert one.head.names[0] == "raw ID"
        assert len(one.head.rows) == 1
    weights = [column for column in found.node_types[0].columns if column.role == "weight"]
    assert [column.dtype for column in weights] == ["float32"]


def test_a_chunked_graph():
    found = graphprep.info(str(SAMPLES / "shop" / "chunked"), head=2)
    assert (found.kind, found.format) == ("chunked", "chunked")
    assert all(one.count is not None for one in (*found.node_types, *found.edge_types))
    assert any(one.columns for one in found.node_types)
    assert all(one.head is not None for one in found.edge_types if one.count)


def test_a_faulty_file_tells_its_place(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,x\n")
    with pytest.raises(DataError) as caught:
        graphprep.info(str(path), options=ConvertOptions(format="edges"))
    assert caught.value.place == f"{path}:2:3"


def test_nothing_there(tmp_path):
    with pytest.raises(StorageError):
        graphprep.info(str(tmp_path / "nothing"))


def test_a_large_beginning_is_all_that_is_read(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("".join(f"{i},{i + 1}\n" for i in range(300_000)))
    (edges,) = graphprep.info(str(path)).edge_types
    assert edges.count is None
    assert 0 < edges.seen < 200_000


def test_an_edge_that_leads_nowhere(shop):
    path = shop / "part-00000" / "edges" / "user__likes__user" / "csc" / "indices.npy"
    array = np.load(path)
    array[0] = 77
    np.save(path, array)
    with pytest.raises(DataError) as caught:
        graphprep.info(str(shop), head=1)
    assert caught.value.fix == "run graphprep validate on the store"


def test_a_faulty_row_of_a_table_is_told_with_its_place(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"src": [0, 1, 2], "dst": [1, 2, None]}), tmp_path / "e.parquet")
    with pytest.raises(DataError) as caught:
        graphprep.info(str(tmp_path / "e.parquet"))
    assert caught.value.place == f"{tmp_path}/e.parquet: row 2, column 'dst'"
