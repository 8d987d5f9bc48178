"""Sparse columns written as dense ones: each value at its coordinate, zeros between, whatever the pieces and partitions."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exporters.dgl_reader import read_tensors
from exporters.torch_reader import read_naively

import graphprep
from graphprep.convert.build import columns
from graphprep.model.errors import DataError, UsageError
from graphprep.rewrite import run as store_run

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

NUM_NODES = 40


def random_matrix(dtype: Any = np.float32) -> scipy.sparse.csr_array:
    matrix = scipy.sparse.random_array((NUM_NODES, 23), density=0.2, rng=3, format="csr")
    matrix.data = (matrix.data * 100).astype(dtype)
    return matrix


def make_store(folder: Path, matrix: scipy.sparse.csr_array, **options: Any) -> Path:
    """Convert an archive of gnn-benchmark's, of which ``attr`` is a sparse column."""
    adjacency = scipy.sparse.random_array((NUM_NODES, NUM_NODES), density=0.1, rng=4, format="csr")
    parts = {"adj": adjacency, "attr": matrix}
    arrays = {
        f"{name}_{key}": getattr(one, key) for name, one in parts.items() for key in ("data", "indices", "indptr", "shape")
    }
    np.savez(folder / "graph.npz", labels=np.arange(NUM_NODES) % 3, **arrays)
    graphprep.convert(str(folder / "graph.npz"), str(folder / "store"), labels=("labels",), **options)
    return folder / "store"


def export(store: Path, out: Path, target: str, **given: Any) -> graphprep.ExportSummary:
    return graphprep.export(str(store), str(out), target, densify=["attr"], **given)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.bool_])
def test_trainers_get_the_matrix(tmp_path, dtype):
    matrix = random_matrix(dtype)
    store, wanted = make_store(tmp_path, matrix), matrix.toarray()
    for target in ("pyg", "distdgl", "graphbolt", "npy"):
        summary = export(store, tmp_path / target, target)
        assert "node column _N 'attr': dense rows of 23" in summary.notes
    found = {
        "pyg": read_naively((tmp_path / "pyg/data.pt").read_bytes(), "data")["x"],
        "distdgl": read_tensors((tmp_path / "distdgl/part0/node_feat.dgl").read_bytes())["_N/attr"],
        "graphbolt": np.load(tmp_path / "graphbolt/preprocessed/node_data/_N/attr.npy"),
        "npy": np.load(tmp_path / "npy/nodes/_N/data/attr.npy"),
    }
    for target, values in found.items():
        assert np.array_equal(values, wanted), target
    assert found["npy"].dtype == dtype
    (schema,) = [
        one for one in json.loads((tmp_path / "npy/export.json").read_text())["node_columns"]["_N"] if one["name"] == "attr"
    ]
    assert (schema["kind"], schema["item_shape"]) == ("dense", [23])


def test_pieces_partitions_and_dtypes(tmp_path, monkeypatch):
    matrix = random_matrix()
    store = make_store(tmp_path, matrix, partitions=3, partition_by="hash")
    real = store_run.room_for

    def starved(*given: Any) -> Any:
        return dataclasses.replace(real(*given), piece_bytes=64, held_bytes=0, mapped_bytes=0)

    monkeypatch.setattr(store_run, "room_for", starved)
    export(store, tmp_path / "out", "distdgl", feature_dtypes={"attr": "float64"}, partitions=2, partition_by="random")
    parts = [tmp_path / f"out/part{part}" for part in range(2)]
    ids = np.concatenate([read_tensors((part / "orig_nids.dgl").read_bytes())["_N"] for part in parts])
    found = np.concatenate([read_tensors((part / "node_feat.dgl").read_bytes())["_N/attr"] for part in parts])
    assert found.dtype == np.float64
    assert np.array_equal(found, matrix.toarray()[ids])


def test_what_refuses_a_sparse_column_names_the_way(tmp_path):
    with pytest.raises(UsageError) as caught:
        graphprep.export(str(make_store(tmp_path, random_matrix())), str(tmp_path / "out"), "distdgl")
    assert caught.value.message == "target 'distdgl' does not support all columns:"
    assert list(caught.value.items) == ["node column _N 'attr': its values are sparse"]
    assert caught.value.fix == "write sparse ones as dense ones with densify attr, or leave them out with drop_unsupported=True"


def edge_list(folder: Path, lines: str) -> Path:
    (folder / "graph.csv").write_text(lines)
    graphprep.convert(str(folder / "graph.csv"), str(folder / "store"), format="edgelist")
    return folder / "store"


def test_values_at_one_coordinate_add_up_and_edges_and_pairs_do(tmp_path):
    """Coordinates of two numbers make rows of two dimensions; rows without values are zeros."""
    lines = "0,-1,0,1,float32,3/0,5,1,5,0.5,1,2\n1,-1,0,1\n0,0,1,1,float32,2/2,0,3,1,0,7,8\n0,0,1,2\n"
    store = edge_list(tmp_path, lines)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "npy", densify=["0:feat_0", "feat_0"])
    assert summary.notes[-2:] == (
        "node column 0 'feat_0': dense rows of 6",
        "edge column 0:0:0 'feat_0': dense rows of 2 x 4",
    )
    nodes = np.load(tmp_path / "out/nodes/0/data/feat_0.npy")
    assert nodes.tolist() == [[0, 1, 0, 0, 0, 2.5], [0] * 6]
    edges = np.load(tmp_path / "out/edges/0__0__0/data/feat_0.npy")
    assert edges.tolist() == [[[0, 0, 0, 7], [8, 0, 0, 0]], [[0] * 4] * 2]


# ---------------------------------------------------------------------------------------------------- convert


@pytest.mark.parametrize("options", [{}, {"partitions": 3, "partition_by": "hash"}], ids=str)
def test_convert_stores_the_matrix(tmp_path, options):
    matrix = random_matrix()
    store = make_store(tmp_path, matrix, densify=("attr",), **options)
    graph = graphprep.load(str(store))
    (schema,) = [one for one in graph.columns("_N") if one.name == "attr"]
    assert (schema.kind, schema.dtype, schema.item_shape) == ("dense", "float32", (23,))
    assert np.array_equal(graph.column("_N", "attr"), matrix.toarray()[graph.ids("_N")])
    assert graphprep.validate(str(store)).num_faults == 0


def test_convert_stores_wide_rows_in_pieces(tmp_path, monkeypatch):
    """Rows of nodes and edges, some without values, one of two dimensions; the same bytes for any piece and thread."""
    lines = [f"{i},-1,0,1" + (f",float32,2/0,{i % 7},{3 * i % 7},{i},1" if i % 3 else "") + "\n" for i in range(30)]
    lines += [f"{i},0,{(i * 7 + 1) % 30},1,int16,1/2,{i % 4},{i % 5},{i}\n" for i in range(30)]
    lines.sort(key=lambda line: int(line.split(",")[0]))
    (tmp_path / "graph.csv").write_text("".join(lines))
    given = {"format": "edgelist", "densify": ("feat_0",), "partitions": 2}
    graphprep.convert(str(tmp_path / "graph.csv"), str(tmp_path / "store"), **given)
    graph = graphprep.load(str(tmp_path / "store"))
    nodes, edges = np.zeros((30, 7), np.float32), np.zeros((30, 4, 5), np.int16)
    for i in range(30):
        edges[i, i % 4, i % 5] = i
        if i % 3:
            nodes[i, i % 7] += i
            nodes[i, 3 * i % 7] += 1
    assert np.array_equal(graph.column("0", "feat_0"), nodes[graph.ids("0")])
    sources = graph.edges(order="ids")[0]
    assert np.array_equal(graph.column("0:0:0", "feat_0", order="ids"), edges[sources])
    assert graph.present("0", "feat_0").sum() == 20
    monkeypatch.setattr(columns, "_DENSE_BYTES", 1)
    graphprep.convert(str(tmp_path / "graph.csv"), str(tmp_path / "again"), **given, run=graphprep.RunOptions(threads=3))
    found, wanted = (
        {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*.npy")}
        for folder in (tmp_path / "again", tmp_path / "store")
    )
    assert found == wanted


def test_convert_refuses_what_it_cannot_make_dense(tmp_path):
    (tmp_path / "graph.csv").write_text("0,-1,0,1,float32,1/0,5,1\n0,0,0,1\n")
    schema = tmp_path / "schema.json"
    graphprep.convert(str(tmp_path / "graph.csv"), str(tmp_path / "sparse"), format="edgelist")
    schema.write_bytes((tmp_path / "sparse/metadata.json").read_bytes())
    for given, message in [
        ({"densify": ("x",)}, "densify: there is no sparse column 'x'"),
        ({"densify": ("feat_0",), "schema": str(schema)}, "densify: the schema says how columns are stored"),
    ]:
        with pytest.raises(UsageError) as caught:
            graphprep.convert(str(tmp_path / "graph.csv"), str(tmp_path / "store"), format="edgelist", **given)
        assert caught.value.message == message
        assert not (tmp_path / "store").exists()


# ---------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("names", "error", "message", "fix"),
    [
        (["x"], UsageError, "densify: there is no sparse column 'x'", "use one of feat_0, feat_1"),
        (
            ["feat_2"],
            UsageError,
            "densify: there is no sparse column 'feat_2'",
            "did you mean 'feat_1'? use one of feat_0, feat_1",
        ),
        (
            ["feat_1"],
            UsageError,
            "densify: a row of column 'feat_1' would have 9000000000000001 numbers",
            "leave the column out, or number its coordinates from 0 on",
        ),
    ],
)
def test_what_cannot_be_dense_is_told(names, error, message, fix, tmp_path):
    line = "0,-1,0,1,float32,1/0,5,1,float32,1/0,9000000000000000,1,float32,1,7\n0,0,0,1\n"
    store = edge_list(tmp_path, line)
    with pytest.raises(error) as caught:
        graphprep.export(str(store), str(tmp_path / "out"), "pyg", densify=names)
    assert (caught.value.message, caught.value.fix) == (message, fix)
    assert not (tmp_path / "out").exists()


def test_a_coordinate_that_is_no_position_is_told(tmp_path):
    store = edge_list(tmp_path, "0,-1,0,1,float32,1/0,5,1\n0,0,0,1\n")
    path = store / "part-00000/nodes/0/data/feat_0.coords.npy"
    np.save(path, np.full_like(np.load(path), -1))
    with pytest.raises(DataError) as caught:
        graphprep.export(str(store), str(tmp_path / "out"), "pyg", densify=["feat_0"])
    assert caught.value.message == "the coordinate -1 is no position in a dense row"
    assert caught.value.fix == "leave the column sparse"
