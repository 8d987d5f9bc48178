"""Datasets and partitions for GraphBolt against the graphs that they were made of; ``make test-clients`` has GraphBolt itself."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import yaml
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, id_map
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store
from exporters.dgl_reader import read_graph, read_tensors
from exporters.graphbolt_reader import read_fused

import graphprep
from graphprep.exporters.dgl import part_nodes
from graphprep.model.errors import UsageError
from graphprep.testing.export_contract import ExporterContract

FUSED = "preprocessed/fused_csc_sampling_graph.pt"


class TestContract(ExporterContract):
    target = "graphbolt"


class TestPartitionsContract(ExporterContract):
    target = "distdgl"
    options: ClassVar = {"graphbolt": True}


def _export(tmp_path, graph, target="graphbolt", given=None, **options):
    store = make_store(graph, tmp_path, **options)
    graphprep.export(str(store), str(tmp_path / "out"), target, **(given or {}))
    return store, tmp_path / "out"


def _edges_of(state):
    """Return (source, destination, type) of all edges in their order, and check what GraphBolt relies on."""
    tensors = state["independent_tensors"]
    assert tensors["version_number"].tolist() == [6199]
    indptr, indices = tensors["indptr"], tensors["indices"]
    assert indptr[0] == 0
    assert indptr[-1] == indices.size
    dst = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    kinds = tensors.get("type_per_edge", np.zeros(indices.size, np.uint8)).astype(np.int64)
    assert (np.diff(dst * 100 + kinds) >= 0).all()  # within a column types do not descend
    for values in state.get("edge_attributes", {}).values():
        assert len(values) == indices.size
    return indices.astype(np.int64), dst, kinds


CASES = {
    **{name: (name, {}) for name in GRAPHS},
    "heterogeneous-range": ("heterogeneous", {"partitions": 3}),
    "heterogeneous-hash": ("heterogeneous", {"partitions": 3, "partition_by": "hash"}),
    "homogeneous-random": ("homogeneous", {"partitions": 2, "partition_by": "random", "layout": "csr"}),
    "heterogeneous-csr": ("heterogeneous", {"layout": "csr"}),
    "temporal-csr": ("temporal", {"layout": "csr", "partitions": 2}),
    "string_ids-range": ("string_ids", {"partitions": 2}),
}


@pytest.mark.parametrize("case", CASES)
def test_the_dataset_holds_what_the_graph_holds(case, tmp_path):
    name, options = CASES[case]
    graph = GRAPHS[name]()
    store, out = _export(tmp_path, graph, **options)
    state = read_fused(out / FUSED)
    tensors = state["independent_tensors"]
    src, dst, kinds = _edges_of(state)
    is_typed = len(graph.nodes) > 1 or len(graph.edges) > 1
    nodes, edges = sorted(graph.nodes), sorted(graph.edges, key=":".join)
    offsets = np.concatenate([[0], np.cumsum([len(graph.nodes[name].ids) for name in nodes])])
    assert ("type_per_edge" in tensors) == ("node_type_offset" in tensors) == ("node_type_to_id" in state) == is_typed
    if is_typed:
        assert tensors["node_type_offset"].tolist() == offsets.tolist()
        assert {key: int(number) for key, number in state["node_type_to_id"].items()} == {key: i for i, key in enumerate(nodes)}
        names = {key: int(number) for key, number in state["edge_type_to_id"].items()}
        assert names == {":".join(key): i for i, key in enumerate(edges)}
        assert tensors["type_per_edge"].dtype == np.uint8
    assert tensors["indices"].dtype == tensors["indptr"].dtype == np.int32
    raw = {key: id_map(out, store, key) for key in nodes}
    listed = yaml.safe_load((out / "preprocessed/metadata.yaml").read_text())
    assert listed["graph_topology"] == {"type": "FusedCSCSamplingGraph", "path": FUSED}
    for number, edge_type in enumerate(edges):
        mine = kinds == number
        ends = (raw[key][some[mine] - offsets[nodes.index(key)]] for key, some in ((edge_type[0], src), (edge_type[2], dst)))
        wanted = graph_edges(graph, edge_type)
        ids = state["edge_attributes"]["_ORIGINAL_EDGE_ID"][mine].astype(np.int64)
        roles = {key: state["edge_attributes"][key][mine] for key in ("weight", "time") if key in state["edge_attributes"]}
        features = {key: values[ids] for key, values in _features(listed, out, "edge", ":".join(edge_type), is_typed).items()}
        for column in ("weight", "time"):
            assert (column in roles) == all(column in graph_edges(graph, some).columns for some in edges)
        found = Rows(*ends, ids, {**features, **roles})
        assert checksum(edge_type, found) == checksum(edge_type, wanted.trained())
    for name in nodes:
        wanted = graph_nodes(graph, name)
        columns = [column for column in wanted.columns if column != graph.nodes[name].split]
        found = Rows(raw[name], columns=_features(listed, out, "node", name, is_typed))
        assert set(found.columns) == {*columns, *(["seeds"] if graph.nodes[name].seeds else [])}
        assert checksum(name, found.only(columns)) == checksum(name, wanted.only(columns).trained())


def _features(listed, out, domain, name, is_typed):
    found = {}
    for one in listed["feature_data"]:
        if (one["domain"], one.get("type", name)) == (domain, name):
            assert ("type" in one) == is_typed
            values = np.load(out / one["path"])
            assert values.ndim > 1  # else GraphBolt refuses it
            found[one["name"]] = values[:, 0] if values.shape[1:] == (1,) else values
    return found


def test_sets_are_the_parts_of_splits(tmp_path):
    graph = GRAPHS["homogeneous"]()
    _, out = _export(tmp_path, graph)
    (task,) = yaml.safe_load((out / "preprocessed/metadata.yaml").read_text())["tasks"]
    some = graph.nodes["paper"]
    assert (task["name"], task["num_classes"]) == ("node_classification", int(some.columns["y"].max()) + 1)
    part, ids = some.columns["part"].filled(3), np.array(some.ids)
    for number, key in enumerate(("train_set", "validation_set", "test_set")):
        (found,) = task[key]
        seeds, labels = (np.load(out / one["path"]) for one in found["data"])
        assert [one["name"] for one in found["data"]] == ["seeds", "labels"]
        assert (seeds.dtype, labels.dtype) == (np.int32, np.int64)
        assert dict(zip(seeds.tolist(), labels.tolist(), strict=True)) == dict(
            zip(ids[part == number].tolist(), some.columns["y"][part == number].tolist(), strict=True)
        )


def _edge_split_graph():
    nodes = {"u": Nodes([2, 0, 1]), "v": Nodes([1, 0])}
    parts = np.ma.masked_array([0, 1, 0, 2, 0], [0, 0, 0, 0, 1])
    columns = {"part": parts, "r": np.array([0.5, 1.5, 2.5, 3.5, 4.5])}
    return Graph(nodes, {("u", "likes", "v"): Edges([2, 0, 1, 1, 0], [0, 1, 1, 0, 0], columns)})


def test_sets_of_edges_are_pairs_by_edge_id(tmp_path):
    store = make_store(_edge_split_graph(), tmp_path, splits=("u:likes:v:part",), labels=("u:likes:v:r",))
    graphprep.export(str(store), str(tmp_path / "out"), "graphbolt")
    (task,) = yaml.safe_load((tmp_path / "out/preprocessed/metadata.yaml").read_text())["tasks"]
    assert (task["name"], "num_classes" in task) == ("edge_regression", False)
    (found,) = task["train_set"]
    assert found["type"] == "u:likes:v"
    seeds, labels = (np.load(tmp_path / "out" / one["path"]) for one in found["data"])
    assert (seeds.tolist(), labels.tolist()) == ([[2, 0], [1, 1]], [0.5, 2.5])


def test_seeds_without_a_label_are_left_out(tmp_path, capsys):
    columns = {"part": np.zeros(4, np.int8), "y": np.ma.masked_array([3, 1, 2, 0], [1, 0, 0, 0])}
    graph = Graph({"n": Nodes([0, 1, 2, 3], columns, "y", "part")}, {("n", "to", "n"): Edges([0], [1])})
    _, out = _export(tmp_path, graph)
    (task,) = yaml.safe_load((out / "preprocessed/metadata.yaml").read_text())["tasks"]
    assert task["num_classes"] == 3
    assert [key for key in task if key.endswith("_set")] == ["train_set"]
    seeds, labels = (np.load(out / one["path"]) for one in task["train_set"][0]["data"])
    assert (seeds.tolist(), labels.tolist()) == ([1, 2, 3], [1, 2, 0])


def test_hashes_are_those_that_graphbolt_computes(tmp_path):
    """As ``calculate_dir_hash`` walks a folder: paths as the folder was named, all files but the list itself."""
    store = make_store(GRAPHS["string_ids"](), tmp_path)
    opened_as = str(tmp_path / "out")
    graphprep.export(str(store), opened_as, "graphbolt", opened_as=opened_as)
    listed = json.loads((tmp_path / "out/preprocessed/dataset_hash_value.txt").read_text())
    found = {}
    for folder, _, names in os.walk(opened_as):
        for name in names:
            path = f"{folder}/{name}"
            found[path] = hashlib.md5(Path(path).read_bytes()).hexdigest()
    del found[f"{opened_as}/preprocessed/dataset_hash_value.txt"]
    assert listed == found
    assert f"{opened_as}/export.json" in listed


def test_that_the_dataset_may_be_removed_is_said(tmp_path):
    store = make_store(GRAPHS["multi_edge"](), tmp_path)
    (note,) = graphprep.export(str(store), str(tmp_path / "out"), "graphbolt").notes
    assert "removes the folder preprocessed unless it is opened with force_preprocess=False" in note
    assert "opened_as=PATH" in note
    assert not graphprep.export(str(store), str(tmp_path / "known"), "graphbolt", opened_as="known").notes


def test_nodes_out_of_order_are_refused(tmp_path):
    store = make_store(GRAPHS["homogeneous"](), tmp_path, partitions=3, partition_by="hash")
    with pytest.raises(UsageError, match="not in the order of their raw IDs"):
        graphprep.export(str(store), str(tmp_path / "out"), "graphbolt", partitions=3, partition_by="hash")
    graphprep.export(str(store), str(tmp_path / "typed"), "graphbolt", partitions=3, partition_by="hash", ids="typed")
    assert read_fused(tmp_path / "typed" / FUSED)["independent_tensors"]["indptr"].size == 41


@pytest.mark.parametrize("hops", [1, 2])
@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous", "multi_edge", "empty_type", "few_nodes", "empty_partition"])
def test_partitions_are_those_of_dgl(name, hops, tmp_path, monkeypatch):
    monkeypatch.setattr(part_nodes, "_MOST", 5)
    graph = GRAPHS[name]()
    parts = graph.options.get("partitions", 3)
    store, out = _export(tmp_path, graph, "distdgl", {"graphbolt": True, "halo_hops": hops}, partitions=parts)
    graphprep.export(str(store), str(tmp_path / "dgl"), "distdgl", formats="coo,csc", halo_hops=hops)
    configs = [json.loads((folder / "metadata.json").read_text()) for folder in (out, tmp_path / "dgl")]
    for part in range(parts):
        files = [config[f"part-{part}"] for config in configs]
        assert files[0].pop("part_graph_graphbolt") == files[1].pop("part_graph").replace("graph.dgl", Path(FUSED).name)
        assert files[0] == files[1]
        state = read_fused(out / f"part{part}" / Path(FUSED).name)
        wanted = read_graph((tmp_path / "dgl" / f"part{part}/graph.dgl").read_bytes())
        src, dst, kinds = _edges_of(state)
        indptr, indices, order = wanted.matrices["csc"]
        order = order if order.size else np.arange(indices.size)
        rows, cols, _ = wanted.matrices["coo"]
        edges, nodes = state["edge_attributes"], state["node_attributes"]
        assert src.tolist() == indices.tolist() == rows[order].tolist()
        assert state["independent_tensors"]["indptr"].tolist() == indptr.tolist()
        assert edges["_ID"].tolist() == wanted.edge_data["_ID"][order].tolist()
        assert edges["inner_edge"].tolist() == wanted.edge_data["inner_edge"][order].tolist()
        assert edges["_gb_dst_id"].tolist() == dst.tolist() == cols[order].tolist()
        assert edges["_dgl2gb_eid"].tolist() == np.argsort(order).tolist()
        assert nodes["_ID"].tolist() == wanted.node_data["_ID"].tolist()
        assert nodes["inner_node"].tolist() == wanted.node_data["inner_node"].tolist()
        if len(graph.edges) > 1:
            assert kinds.tolist() == wanted.edge_data["_TYPE"][order].tolist()
    assert read_tensors((out / "part0/orig_nids.dgl").read_bytes()).keys() == graph.nodes.keys()


def test_reordered_nodes_are_put_back_by_raw_id(tmp_path):
    graph = GRAPHS["homogeneous"]()
    store = make_store(graph, tmp_path)
    graphprep.reorder(str(store), str(tmp_path / "reordered"), by="degree")
    states = []
    for name in ("store", "reordered"):
        graphprep.export(str(tmp_path / name), str(tmp_path / f"{name}-gb"), "graphbolt")
        states.append({path.name: path.read_bytes() for path in (tmp_path / f"{name}-gb/preprocessed").rglob("*.*")})
    assert states[0] == states[1]
