"""Columns of tables do not depend on how the input is cut into blocks, nor on which edges are kept."""

from __future__ import annotations

import json

import pytest

from graphprep.convert.pipeline import convert
from graphprep.model.options.convert import ConvertOptions

NUMBERS = {"id_type": "string"}


def columns_of(tmp_path, name, block_bytes, **options):
    """Convert a file of ``tmp_path``; return [(column, dtype, optional)] by type."""
    store = tmp_path / f"store{block_bytes}"
    convert([str(tmp_path / name)], str(store), ConvertOptions(block_bytes=block_bytes, **options))
    metadata = json.loads((store / "metadata.json").read_text())
    types = {**metadata["node_schema"], **metadata["edge_schema"]}
    return {
        name: [(column["name"], column["dtype"], column["optional"]) for column in schema["columns"]]
        for name, schema in types.items()
    }


def write_graph(tmp_path, **tables):
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text)
    config = {
        "id_type": "string",
        "nodes": [{"type": "user", "files": "user.csv", "id_col": "k"}],
        "edges": [{"type": "user:r:user", "files": "r.csv"}],
    }
    (tmp_path / "graph.json").write_text(json.dumps(config))


@pytest.mark.parametrize("block_bytes", [0, 1])
def test_relations_of_one_file_share_their_dtypes(tmp_path, block_bytes):
    """Relation r has whole numbers only, but the column has a fraction elsewhere."""
    (tmp_path / "t.tsv").write_text("a\tr\tb\t1\nb\ts\tc\t0.5\nb\tt\tc\t\n")
    options = {"format": "edges", "decoder_options": {"id_type": "string", "relation_col": "1"}}
    assert columns_of(tmp_path, "t.tsv", block_bytes, **options) == {
        "_N": [],
        "_N:r:_N": [("col_3", "float64", False)],
        "_N:s:_N": [("col_3", "float64", False)],
        "_N:t:_N": [],
    }


@pytest.mark.parametrize("block_bytes", [0, 1])
def test_columns_stand_in_the_order_of_the_file(tmp_path, block_bytes):
    """The first row has no value in the first column; a column without any value is one of int64."""
    write_graph(tmp_path, user="k,c0,c1,c2\na,,x,\nb,y,,\n", r="src,dst,d0,d1\na,b,,2\na,b,1,\n")
    assert columns_of(tmp_path, "graph.json", block_bytes, format="graph") == {
        "user": [("c0", "uint8", True), ("c1", "uint8", True), ("c2", "int64", True)],
        "user:r:user": [("d0", "int64", True), ("d1", "int64", True)],
    }


@pytest.mark.parametrize("block_bytes", [0, 1])
def test_dropped_edges_count_for_columns(tmp_path, block_bytes):
    write_graph(tmp_path, user="k\na\nb\n", r="src,dst,n,t\na,b,1,\na,x,0.5,\na,x,,text\n")
    assert columns_of(tmp_path, "graph.json", block_bytes, format="graph", on_missing_node="drop") == {
        "user": [],
        "user:r:user": [("n", "float64", False), ("t", "uint8", True)],
    }


@pytest.mark.parametrize("flag", ["weight_col", "time_col"])
@pytest.mark.parametrize("block_bytes", [0, 1])
def test_relations_without_weights_have_no_column_of_them(tmp_path, flag, block_bytes):
    """Relation s has no weight at all: in a block of its own, too, it does not get a column for that."""
    (tmp_path / "t.csv").write_text("src,rel,dst,w\na,r,b,1\nb,s,a,\nb,s,b,\n")
    table = {"src_type": "n", "dst_type": "n", "relation_col": "rel", "files": "t.csv", "id_type": "string", flag: "w"}
    (tmp_path / "graph.json").write_text(json.dumps({"edges": [{**table, "src_col": "src", "dst_col": "dst"}]}))
    found = columns_of(tmp_path, "graph.json", block_bytes, format="graph")
    assert [len(found[name]) for name in ("n:r:n", "n:s:n")] == [1, 0]


@pytest.mark.parametrize("block_bytes", [0, 1])
def test_types_without_weights_have_no_column_of_them(tmp_path, block_bytes):
    (tmp_path / "n.csv").write_text("id,kind,w\na,x,1\nb,y,\n")
    table = {"type_col": "kind", "id_col": "id", "weight_col": "w", "files": "n.csv", "id_type": "string"}
    (tmp_path / "graph.json").write_text(json.dumps({"nodes": [table]}))
    assert columns_of(tmp_path, "graph.json", block_bytes, format="graph") == {
        "x": [("weight", "float32", False)],
        "y": [],
    }
