"""``parquet``: pyarrow reads the graph, and ``convert`` makes the same store of it again."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes
from clients.graphs import GRAPHS, make_store

import graphprep
from graphprep.exporters.plain import parquet_files
from graphprep.model.errors import DataError
from graphprep.testing.export_contract import ExporterContract

pytestmark = pytest.mark.usefixtures("flags_named")

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
HASHED = {"partitions": 3, "partition_by": "hash"}


class TestParquetContract(ExporterContract):
    target = "parquet"


def store_files(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and path.name != "provenance.json"
    }


def ids_of(column) -> np.ndarray:
    return np.array(column.to_pylist(), object) if column.type == "string" else column.to_numpy()


def values_of(column, dtype) -> np.ndarray:
    return np.array(column.to_pylist(), dtype)


@pytest.mark.parametrize("name", GRAPHS)
def test_tables_are_the_graph(name, tmp_path):
    graph, out = GRAPHS[name](**HASHED), tmp_path / "out"
    graphprep.export(str(make_store(graph, tmp_path)), str(out), "parquet")
    for edge_type in graph.edges:
        table, wanted = pq.read_table(out / "edges" / f"{'__'.join(edge_type)}.parquet"), graph_edges(graph, edge_type)
        columns = {one: values_of(table[one], values.dtype).reshape(values.shape) for one, values in wanted.columns.items()}
        found = Rows(ids_of(table["src"]), ids_of(table["dst"]), table["edge_id"].to_numpy(), columns)
        assert checksum(edge_type, found) == checksum(edge_type, wanted)
    for node_type, nodes in graph.nodes.items():
        table, wanted = pq.read_table(out / "nodes" / f"{node_type}.parquet"), graph_nodes(graph, node_type)
        names = [one for one in wanted.columns if one != nodes.split]
        columns = {one: values_of(table[one], wanted.columns[one].dtype).reshape(wanted.columns[one].shape) for one in names}
        assert checksum(node_type, Rows(ids_of(table["id"]), columns=columns)) == checksum(node_type, wanted.only(names))
        typed = graphprep.load(str(tmp_path / "store")).ids(node_type)
        assert table["id"].to_pylist() == typed.tolist()


@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_store_comes_back(name, tmp_path):
    graph = GRAPHS[name](layout="both", **HASHED)
    store = make_store(graph, tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "parquet")
    graphprep.convert(str(tmp_path / "out" / "graph.yaml"), str(tmp_path / "again"), **graph.options)
    assert store_files(tmp_path / "again") == store_files(store)


@pytest.mark.parametrize("case", ["people_tables", "people_tables_hash", "names_parquet", "edges_parquet"])
def test_golden_stores_come_back(case, tmp_path):
    store = GOLDEN / case / "store"
    options = json.loads((GOLDEN / case / "case.json").read_text())["options"]
    kept = ("partitions", "partition_by", "layout", "neighbor_order", "weight_dtype", "seed")
    graphprep.export(str(store), str(tmp_path / "out"), "parquet")
    again = {key: value for key, value in options.items() if key in kept}
    graphprep.convert(str(tmp_path / "out" / "graph.yaml"), str(tmp_path / "again"), **again)
    again = store_files(tmp_path / "again")
    assert again.keys() == store_files(store).keys()
    assert [name for name, data in store_files(store).items() if data != again[name]] == []


def test_sparse_and_dated_columns_come_back(tmp_path):
    """All files but num_slots.npy, which with the slots of features is DeepGNN's; its times are columns as others are."""
    store = GOLDEN / "shop_temporal_json" / "store"
    graphprep.export(str(store), str(tmp_path / "out"), "parquet")
    graphprep.convert(str(tmp_path / "out" / "graph.yaml"), str(tmp_path / "again"), partitions=2)
    first, again = graphprep.load(str(store)), graphprep.load(str(tmp_path / "again"))
    kinds = set()
    for name in (*first.node_types, *first.edge_types):
        assert [one.name for one in again.columns(name)] == [one.name for one in first.columns(name)]
        for column, found in zip(first.columns(name), again.columns(name), strict=True):
            kinds.add(column.kind)
            wanted = (column.kind, column.dtype, column.item_shape, column.optional)
            assert (found.kind, found.dtype, found.item_shape, found.optional) == wanted
            assert plain(cells(again, name, column.name)) == plain(cells(first, name, column.name))
    assert kinds == {"dense", "ragged", "sparse", "binary", "temporal"}


def cells(graph, name, column) -> list:
    """Return a column, of edges by edge ID."""
    return list(graph.column(name, column, order=None if name in graph.node_types else "ids"))


def plain(value):
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def test_names_of_categories_come_back(tmp_path):
    """As text, by which the store is made again: of labels and of features."""
    (tmp_path / "users.csv").write_text("id,country,level\na,UK,high\nb,,low\nc,DE,\n")
    (tmp_path / "links.csv").write_text("src,dst\na,b\nb,c\n")
    tables = {"nodes": {"user": str(tmp_path / "users.csv")}, "edges": {("user", "to", "user"): str(tmp_path / "links.csv")}}
    graphprep.convert(
        **tables, out=str(tmp_path / "store"), labels=["country"], categories=["level"], decoder_options={"id_type": "string"}
    )
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "parquet")
    assert pq.read_table(tmp_path / "out/nodes/user.parquet").to_pydict() == {
        "id": ["a", "b", "c"],
        "country": ["UK", None, "DE"],
        "level": ["high", "low", None],
    }
    graphprep.convert(str(tmp_path / "out/graph.yaml"), str(tmp_path / "again"))
    assert store_files(tmp_path / "again") == store_files(tmp_path / "store")


def test_relations_come_back(tmp_path):
    (tmp_path / "links.tsv").write_text("a\tlikes\tb\nb\tknows, well\tc\nc\tlikes\ta\n")
    given = {"format": "triples", "decoder_options": {"relation_as": "column"}}
    graphprep.convert(str(tmp_path / "links.tsv"), str(tmp_path / "store"), **given)
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "parquet")
    (table,) = (tmp_path / "out/edges").iterdir()
    assert pq.read_table(table)["relation"].to_pylist() == ["likes", "knows, well", "likes"]
    graphprep.convert(str(tmp_path / "out/graph.yaml"), str(tmp_path / "again"))
    assert store_files(tmp_path / "again") == store_files(tmp_path / "store")


@pytest.mark.parametrize(
    ("rows", "row"),
    [
        ([[{"at": 1, "value": 0.5}], [{"at": None, "value": 1.0}]], 1),
        ([[None], [{"at": 0, "value": 1.0}]], 0),
        ([[{"at": 1, "value": None}]], 0),
    ],
)
def test_a_null_among_sparse_values_is_told(rows, row, tmp_path):
    kind = pa.list_(pa.struct([("at", pa.int64()), ("value", pa.float32())]))
    pq.write_table(pa.table({"id": list(range(len(rows))), "s": pa.array(rows, kind)}), tmp_path / "n.parquet")
    pq.write_table(pa.table({"src": [0], "dst": [0]}), tmp_path / "e.parquet")
    (tmp_path / "graph.yaml").write_text(
        "nodes: [{type: n, files: n.parquet, id_col: id}]\n"
        "edges: [{type: 'n:to:n', files: e.parquet, src_col: src, dst_col: dst}]\n"
    )
    with pytest.raises(DataError) as caught:
        graphprep.convert(str(tmp_path / "graph.yaml"), str(tmp_path / "store"))
    assert str(caught.value).splitlines() == [
        f"{tmp_path}/n.parquet: row {row}, column 's': a null inside a list",
        "  fix: fill the value, or leave the whole list out",
    ]


def test_columns_of_every_kind(tmp_path):
    store = GOLDEN / "shop_temporal_json" / "store"
    graphprep.export(str(store), str(tmp_path / "out"), "parquet")
    graph = graphprep.load(str(store))
    kinds = set()
    for node_type in graph.node_types:
        table = pq.read_table(tmp_path / "out" / "nodes" / f"{node_type}.parquet")
        for column in graph.columns(node_type):
            kinds.add(column.kind)
            stored, present = graph.column(node_type, column.name), graph.present(node_type, column.name)
            for row, cell in enumerate(table[column.name].to_pylist()):
                if present is not None and not present[row]:
                    assert cell is None
                elif column.kind in ("dense", "ragged"):
                    assert cell == stored[row].tolist()
                elif column.kind == "binary":
                    assert cell == stored[row]
                elif column.kind == "sparse":
                    assert [(item["at"], item["value"]) for item in cell] == list(
                        zip(stored[row][0].tolist(), stored[row][1].tolist(), strict=True)
                    )
                else:
                    ends = [(item["start"], -1 if item["end"] is None else item["end"], item["values"]) for item in cell]
                    assert ends == [(start, end, values.tolist()) for start, end, values in stored[row]]
    assert kinds == {"dense", "ragged", "sparse", "binary", "temporal"}


def test_row_groups_are_cut_by_the_schema_alone(tmp_path, monkeypatch):
    store = make_store(GRAPHS["homogeneous"](40, 200), tmp_path)
    monkeypatch.setattr(parquet_files, "_MOST_ROWS", 64)
    graphprep.export(str(store), str(tmp_path / "out"), "parquet")
    file = pq.ParquetFile(tmp_path / "out" / "edges" / "paper__cites__paper.parquet")
    assert [file.metadata.row_group(at).num_rows for at in range(file.num_row_groups)] == [64, 64, 64, 8]
    assert file.read()["edge_id"].to_pylist() == list(range(200))


def test_columns_called_as_ids_are(tmp_path):
    (tmp_path / "e.csv").write_text("a,b,src,edge_id\n1,2,7,9\n2,1,8,10\n")
    options = {"format": "edges", "decoder_options": {"src_col": "a", "dst_col": "b"}}
    graphprep.convert(str(tmp_path / "e.csv"), str(tmp_path / "store"), **options)
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "parquet")
    (path,) = (tmp_path / "out" / "edges").iterdir()
    assert pq.read_table(path).to_pydict() == {
        "_src": [1, 2],
        "dst": [2, 1],
        "_edge_id": [0, 1],
        "src": [7, 8],
        "edge_id": [9, 10],
    }


def test_texts_may_be_bytes(tmp_path):
    (tmp_path / "e.csv").write_text("0,1,red\n1,0,\n")
    graphprep.convert(str(tmp_path / "e.csv"), str(tmp_path / "store"), format="edges")
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "parquet", texts="binary", compression="none")
    (path,) = (tmp_path / "out" / "edges").iterdir()
    assert pq.read_table(path)["col_2"].to_pylist() == [b"red", None]
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "UNCOMPRESSED"


def test_texts_that_are_none_are_told(tmp_path):
    table = pa.table({"src": [0, 1], "dst": [1, 0], "b": pa.array([b"ok", b"a\xff"], pa.binary())})
    pq.write_table(table, tmp_path / "e.parquet")
    graphprep.convert(str(tmp_path / "e.parquet"), str(tmp_path / "store"), format="edges")
    with pytest.raises(DataError, match="column 'b': Invalid UTF8 sequence") as caught:
        graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "parquet")
    assert caught.value.fix == "write the bytes as they are: --option texts=binary"
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "parquet", texts="binary")
    graphprep.convert(str(tmp_path / "out" / "graph.yaml"), str(tmp_path / "again"))
    assert store_files(tmp_path / "again") == store_files(tmp_path / "store")
