"""Columns of nodes and edges, whichever way they take through a run: in order, scattered, or one after the other."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from graphprep import context
from graphprep.convert import pipeline
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.run_options import RunOptions

_NODES, _EDGES, _FILES = 500, 6000, 3


@dataclasses.dataclass(frozen=True)
class _Input:
    folder: Path
    src: np.ndarray
    dst: np.ndarray
    nodes: dict[str, np.ndarray]
    edges: dict[str, np.ndarray]
    lists: list[list[int]]


def _save(folder, stem, values, kind):
    """Write a column in some files; NaN stands for a null in Parquet files."""
    paths = []
    for number, part in enumerate(np.array_split(values, _FILES)):
        paths.append(f"{stem}-{number}.{kind}")
        path = folder / paths[-1]
        if kind == "npy":
            np.save(path, part)
        elif kind == "csv":
            path.write_text("".join(f"{value:g}\n" for value in part))
        else:
            pa.parquet.write_table(pa.table({"v": pa.array(part, from_pandas=True)}), path)
    return {"format": {"name": {"npy": "numpy"}.get(kind, kind)}, "data": paths}


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    folder = tmp_path_factory.mktemp("chunked")
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, _NODES, _EDGES), (rng.random(_EDGES) ** 3 * _NODES).astype(np.int64)
    late, holes = rng.random(_EDGES), rng.random(_NODES)
    late[_EDGES // 2 :][rng.random(_EDGES - _EDGES // 2) < 0.3] = np.nan  # whole at first, then with gaps
    holes[rng.random(_NODES) < 0.4] = np.nan
    mixed = np.floor(rng.random(_EDGES) * 9) + np.where(np.arange(_EDGES) < _EDGES // 3, 0, 0.5)  # integers, then floats
    nodes = {"x": rng.random((_NODES, 4)).astype(np.float32), "holes": holes, "c": np.floor(rng.random(_NODES) * 9)}
    edges = {
        "w": rng.random(_EDGES).astype(np.float32),
        "wide": rng.integers(0, 99, (_EDGES, 3)).astype(np.int16),
        "late": late,
        "mixed": mixed,
    }
    lists = [list(range(row % 4)) for row in range(_EDGES)]
    kinds = {"x": "npy", "holes": "parquet", "c": "csv", "w": "parquet", "wide": "npy", "late": "parquet", "mixed": "csv"}
    edge_data = {name: _save(folder, f"e-{name}", values, kinds[name]) for name, values in edges.items()}
    pa.parquet.write_table(pa.table({"v": pa.array(lists, pa.list_(pa.int32()))}), folder / "lists.parquet")
    edge_data["lists"] = {"format": {"name": "parquet"}, "data": ["lists.parquet"]}
    (folder / "edges.csv").write_text("".join(f"{a} {b}\n" for a, b in zip(src, dst, strict=True)))
    metadata = {
        "graph_name": "g",
        "node_type": ["n"],
        "num_nodes_per_chunk": [[_NODES]],
        "edge_type": ["n:e:n"],
        "num_edges_per_chunk": [[_EDGES]],
        "edges": {"n:e:n": {"format": {"name": "csv", "delimiter": " "}, "data": ["edges.csv"]}},
        "node_data": {"n": {name: _save(folder, f"n-{name}", values, kinds[name]) for name, values in nodes.items()}},
        "edge_data": {"n:e:n": edge_data},
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return _Input(folder, src, dst, nodes, edges, lists)


def _joined(store, name):
    return np.concatenate([np.load(path) for path in sorted(store.glob(f"part-*/{name}.npy"))])


def _check_dense(store, stem, expected):
    """Compare with values in the order of the store, NaN where a row has none."""
    found = _joined(store, stem)
    found, expected = found.reshape(len(found), -1), expected.reshape(len(expected), -1)
    assert found.shape == expected.shape
    absent = np.isnan(expected[:, 0])
    assert np.array_equal(found[~absent], expected[~absent])
    if absent.any():
        assert np.array_equal(_joined(store, f"{stem}.present"), ~absent)
        assert not found[absent].any()


# Bytes of a column that may be gathered, of runs in memory, of a bucket: nothing, some of each, all.
_LIMITS = [(1, 1, 1 << 12), (9_000, 1, 1 << 12), (9_000, 1 << 30, 1 << 16), (1 << 20, 1, 1 << 14), (1 << 30, 1 << 30, 1 << 25)]


@pytest.mark.parametrize("limits", _LIMITS, ids=str)
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize(("partition_by", "layout", "edge_ids"), [("range", "csc", True), ("hash", "both", True)], ids=str)
def test_columns_are_those_of_the_input(graph, tmp_path, monkeypatch, limits, threads, partition_by, layout, edge_ids):
    plan_memory = context.plan_memory

    def limited(*given, **more):
        cap, pool, bucket = limits
        return plan_memory(*given, **more)._replace(cap_bytes=cap, pool_bytes=pool, bucket_bytes=bucket, block_bytes=4096)

    monkeypatch.setattr(context, "plan_memory", limited)
    out = tmp_path / "out"
    run = RunOptions(threads=threads)
    options = ConvertOptions(partitions=3, partition_by=partition_by, layout=layout, edge_ids=edge_ids, run=run)
    pipeline.convert([str(graph.folder)], str(out), options)

    raw = np.arange(_NODES) if partition_by == "range" else _joined(out, "nodes/n/raw_ids")
    for name, values in graph.nodes.items():
        _check_dense(out, f"nodes/n/data/{name}", values[raw])
    ids = _joined(out, "edges/n__e__n/csc/edge_ids")
    assert np.array_equal(np.sort(ids), np.arange(_EDGES))
    assert np.array_equal(raw[_joined(out, "edges/n__e__n/csc/indices")], graph.src[ids])
    for name, values in graph.edges.items():
        _check_dense(out, f"edges/n__e__n/data/{name}", values[ids])
    flat = [value for edge in ids.tolist() for value in graph.lists[edge]]
    assert _joined(out, "edges/n__e__n/data/lists.values").tolist() == flat


def test_columns_are_gathered_also_where_edge_ids_are_not_stored(graph, tmp_path):
    stores = {}
    for edge_ids in (True, False):
        stores[edge_ids] = tmp_path / str(edge_ids)
        pipeline.convert([str(graph.folder)], str(stores[edge_ids]), ConvertOptions(partitions=2, edge_ids=edge_ids))
    for name in ("w", "wide", "late", "mixed", "lists.values"):
        stem = f"edges/n__e__n/data/{name}"
        assert np.array_equal(_joined(stores[True], stem), _joined(stores[False], stem))
    assert not list(stores[False].rglob("edge_ids.npy"))


def _roles_graph(folder, rng):
    """Write a graph whose masks, labels and features lie in ``.npy`` files."""
    part = rng.integers(0, 4, _NODES)
    nodes = {name: part == number for number, name in enumerate(("tr", "va", "te"))}
    nodes |= {"y": rng.integers(0, 9, _NODES), "x": rng.random((_NODES, 2))}
    kinds = rng.integers(0, 3, 40)
    np.save(folder / "edges.npy", rng.integers(0, _NODES, (40, 2)))
    metadata = {
        "graph_name": "g",
        "node_type": ["n"],
        "num_nodes_per_chunk": [[_NODES]],
        "edge_type": ["n:e:n"],
        "num_edges_per_chunk": [[40]],
        "edges": {"n:e:n": {"format": {"name": "numpy"}, "data": ["edges.npy"]}},
        "node_data": {"n": {name: _save(folder, f"n-{name}", values, "npy") for name, values in nodes.items()}},
        "edge_data": {"n:e:n": {"kind": _save(folder, "e-kind", kinds, "npy")}},
    }
    (folder / "metadata.json").write_text(json.dumps(metadata))
    return part, nodes, kinds


@pytest.mark.parametrize("partition_by", ["range", "hash"])
def test_columns_that_stay_in_files_take_roles(tmp_path, partition_by):
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    part, nodes, kinds = _roles_graph(folder, np.random.default_rng(3))
    roles = {"splits": ("n:tr,va,te", "n:e:n:kind"), "labels": ("n:y",)}
    options = ConvertOptions(partitions=2, partition_by=partition_by, **roles)
    pipeline.convert([str(folder)], str(out), options)
    raw = np.arange(_NODES) if partition_by == "range" else _joined(out, "nodes/n/raw_ids")
    for name in ("y", "x"):
        assert np.array_equal(_joined(out, f"nodes/n/data/{name}"), nodes[name][raw])
    split = np.where(_joined(out, "nodes/n/data/split.present"), _joined(out, "nodes/n/data/split"), 3)
    assert np.array_equal(split, part[raw])
    ids = _joined(out, "edges/n__e__n/csc/edge_ids")
    assert np.array_equal(_joined(out, "edges/n__e__n/data/kind"), kinds[ids])
    schema = json.loads((out / "metadata.json").read_text())["node_schema"]["n"]["columns"]
    assert [(column["name"], column.get("role")) for column in schema] == [("split", "split"), ("y", "label"), ("x", None)]
