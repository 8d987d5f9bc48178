"""Chunked graphs: what DGL's tools would read of them, and the way back through our own decoder."""

from __future__ import annotations

import json
from ast import literal_eval
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow.parquet as pq
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, id_map
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store
from golden.golden_cases import load_cases, read_store

import graphprep
from graphprep.model.errors import UsageError
from graphprep.testing.export_contract import ExporterContract


class TestContract(ExporterContract):
    target = "dgl-chunked"
    options: ClassVar = {"chunks": 3, "data": "parquet"}


def _export(tmp_path, store, **given):
    graphprep.export(str(store), str(tmp_path / "chunked"), "dgl-chunked", **given)
    return tmp_path / "chunked", json.loads((tmp_path / "chunked/metadata.json").read_text())


def _read_block(folder, block):
    """Read the files of a block as DGL's tools do."""
    found = []
    for path in block["data"]:
        name = block["format"]["name"]
        if name == "csv":
            assert block["format"]["delimiter"] == " "
            text = (folder / path).read_text()
            found.append(np.array([line.split(" ") for line in text.splitlines()], np.int64).reshape(-1, 2))
        elif name == "numpy":
            found.append(np.load(folder / path))
        else:
            table = pq.read_table(folder / path)
            values = np.stack([column.to_numpy() for column in table.columns], axis=1)
            shape = (table.schema.metadata or {}).get(b"shape")
            found.append(values if shape is None else values.reshape(literal_eval(shape.decode())))
    return found


FORMATS = [("csv", "numpy", 1), ("parquet", "parquet", 3), ("numpy", "numpy", 7)]


@pytest.mark.parametrize(("edges", "data", "chunks"), FORMATS)
@pytest.mark.parametrize("name", GRAPHS)
def test_chunks_hold_what_the_graph_holds(name, edges, data, chunks, tmp_path):
    graph = GRAPHS[name]()
    store = make_store(graph, tmp_path)
    out, value = _export(tmp_path, store, edges=edges, data=data, chunks=chunks)
    maps = {key: id_map(out, store, key) for key in graph.nodes}
    for kind in ("node", "edge"):
        for total, sizes in zip(value[f"num_{kind}s_per_type"], value[f"num_{kind}s_per_chunk"], strict=True):
            assert sum(sizes) == total
            assert len(sizes) == max(1, min(chunks, total))
            assert max(sizes) - min(sizes) <= 1
    for number, (key, some) in enumerate(graph.nodes.items()):
        columns = _columns(out, value["node_data"][key], value["num_nodes_per_chunk"][value["node_type"].index(key)])
        wanted = graph_nodes(graph, key)
        if some.split:
            part = some.columns[some.split].filled(3)
            masks = {mask: part == number for number, mask in enumerate(("train_mask", "val_mask", "test_mask"))}
            found = Rows(maps[key], columns={mask: columns.pop(mask) for mask in masks})
            assert checksum(key, found) == checksum(key, Rows(wanted.ids, columns=masks))
        names = [column for column in wanted.columns if column != some.split]
        assert set(columns) == {*names, *(["seeds"] if some.seeds else [])}
        assert checksum(key, Rows(maps[key], columns=columns).only(names)) == checksum(key, wanted.only(names))
    for key in graph.edges:
        text = ":".join(key)
        sizes = value["num_edges_per_chunk"][value["edge_type"].index(text)]
        pairs = _read_block(out, value["edges"][text])
        assert [len(some) for some in pairs] == sizes
        src, dst = np.concatenate(pairs).T
        columns = _columns(out, value["edge_data"][text], sizes)
        found = Rows(maps[key[0]][src], maps[key[2]][dst], np.arange(src.size), columns)
        assert checksum(key, found) == checksum(key, graph_edges(graph, key))


def _columns(folder, blocks, sizes):
    found = {}
    for name, block in blocks.items():
        chunks = _read_block(folder, block)
        assert [len(some) for some in chunks] == sizes
        found[name] = np.concatenate(chunks)
    return found


CHUNKED = {case.name: case for case in load_cases() if (Path(case.input_paths[0]) / "metadata.json").is_file()}


@pytest.mark.parametrize(("edges", "data", "chunks"), FORMATS)
@pytest.mark.parametrize("name", sorted(CHUNKED))
def test_stores_of_chunked_graphs_come_back(name, edges, data, chunks, tmp_path):
    case = CHUNKED[name]
    out, _ = _export(tmp_path, case.store, edges=edges, data=data, chunks=chunks, masks=False)
    graphprep.convert([str(out)], str(tmp_path / "again"), **case.resolved_options())
    assert read_store(tmp_path / "again") == read_store(case.store)


def test_there_are_chunked_cases():
    assert len(CHUNKED) >= 3


def _all_kinds():
    rng = np.random.default_rng(0)
    return Graph(
        {
            "n": Nodes(
                list(range(9)), {"x": rng.random((9, 3)), "half": rng.random(9).astype(np.float16), "flag": rng.random(9) < 0.5}
            )
        },
        {
            ("n", "to", "n"): Edges(
                [0, 8, 3, 3], [1, 2, 3, 3], {"w": np.arange(4, dtype=np.uint16), "one": np.arange(4.0).reshape(4, 1)}
            )
        },
    )


@pytest.mark.parametrize("partition_by", ["range", "hash"])
@pytest.mark.parametrize("data", ["numpy", "parquet"])
def test_a_store_made_of_chunks_comes_back(data, partition_by, tmp_path):
    """Dtypes that are not the usual ones, [rows, 1] beside [rows], and another number of partitions."""
    store = make_store(_all_kinds(), tmp_path)
    _, value = _export(tmp_path, store, data=data, chunks=4)
    assert value["num_nodes_per_chunk"] == [[3, 2, 2, 2]]
    options = {"partitions": 3, "partition_by": partition_by, "layout": "both"}
    graphprep.convert(str(tmp_path / "chunked"), str(tmp_path / "first"), **options)
    graphprep.export(str(tmp_path / "first"), str(tmp_path / "again"), "dgl-chunked", chunks=2, data=data, edges="csv")
    graphprep.convert(str(tmp_path / "again"), str(tmp_path / "second"), **options)
    assert read_store(tmp_path / "first") == read_store(tmp_path / "second")
    schema = json.loads((tmp_path / "second/metadata.json").read_text())["node_schema"]["n"]
    assert {column["name"]: column["dtype"] for column in schema["columns"]} == {
        "x": "float64",
        "half": "float16",
        "flag": "bool",
    }


def test_lists_texts_and_gaps_come_back(tmp_path):
    lines = "id,name,x\n0,a,1.5\n1,,2.5\n2,Zoë,\n"
    (tmp_path / "n.csv").write_text(lines)
    (tmp_path / "e.csv").write_text("src,dst\n0,1\n2,2\n")
    flags = {"graph": None}
    from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable, TableConfig

    flags["graph"] = GraphConfig(
        (NodeTable("n", TableConfig((str(tmp_path / "n.csv"),), place="n")),),
        (EdgeTable("n", "to", "n", table=TableConfig((str(tmp_path / "e.csv"),), place="e")),),
    )
    graphprep.convert([], str(tmp_path / "store"), **flags)
    out, value = _export(tmp_path, tmp_path / "store")
    assert {name: block["format"]["name"] for name, block in value["node_data"]["n"].items()} == {
        "name": "parquet", "x": "numpy", "x_present": "numpy"
    }  # fmt: skip
    assert pq.read_table(out / value["node_data"]["n"]["name"]["data"][0])["name"].to_pylist() == [b"a", None, "Zoë".encode()]
    assert np.load(out / value["node_data"]["n"]["x_present"]["data"][0]).tolist() == [True, True, False]
    graphprep.convert(str(out), str(tmp_path / "again"))
    path = "part-00000/nodes/n/data/name.values.npy"
    assert np.load(tmp_path / "again" / path).tobytes() == np.load(tmp_path / "store" / path).tobytes() == "aZoë".encode()


def test_chunks_are_one_or_more(tmp_path):
    store = make_store(GRAPHS["multi_edge"](), tmp_path)
    with pytest.raises(UsageError, match="chunks must be 1 or more, found 0"):
        _export(tmp_path, store, chunks=0)


def test_reordered_nodes_are_put_back_by_raw_id(tmp_path):
    store = make_store(GRAPHS["heterogeneous"](), tmp_path, partitions=2, partition_by="hash")
    graphprep.reorder(str(store), str(tmp_path / "reordered"), by="degree")
    found = []
    for name in ("store", "reordered"):
        graphprep.export(str(tmp_path / name), str(tmp_path / f"{name}-out"), "dgl-chunked", chunks=2)
        out = tmp_path / f"{name}-out"
        files = {str(path.relative_to(out)): path.read_bytes() for path in out.rglob("*") if path.is_file()}
        found.append({path: data for path, data in files.items() if path != "export.json"})
    assert found[0] == found[1]
