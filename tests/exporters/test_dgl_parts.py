"""Partitions for DGL against what naive code makes of the store; tests/clients has DGL's own loaders."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import ClassVar

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, id_map
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store
from exporters.dgl_reader import read_graph, read_tensors

import graphprep
from graphprep.exporters.dgl import part_nodes
from graphprep.model.errors import DataError, UsageError
from graphprep.testing.export_contract import ExporterContract


class TestContract(ExporterContract):
    target = "distdgl"
    options: ClassVar = {"formats": "coo,csr,csc"}


def _export(tmp_path, graph, target=None, **options):
    store = make_store(graph, tmp_path, **options)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "distdgl", **(target or {}))
    return tmp_path / "out", summary


def _ranges(config, side):
    return {name: [tuple(some) for some in ranges] for name, ranges in config[f"{side}_map"].items()}


CASES = ["homogeneous", "heterogeneous", "multi_edge", "empty_type", "few_nodes", "empty_partition"]


@pytest.mark.parametrize("name", CASES)
def test_partitions_are_as_dgl_defines_them(name, tmp_path):
    graph = GRAPHS[name]()
    parts = graph.options.get("partitions", 3)
    out, _ = _export(tmp_path, graph, {"formats": "coo,csr,csc"}, partitions=parts)
    config = json.loads((out / "metadata.json").read_text())
    nodes, edges = _ranges(config, "node"), _ranges(config, "edge")
    for ranges, total in ((nodes, config["num_nodes"]), (edges, config["num_edges"])):
        flat = [some[part] for part in range(parts) for some in ranges.values()]
        assert [end for _, end in flat[:-1]] == [start for start, _ in flat[1:]]
        assert (flat[0][0], flat[-1][1]) == (0, total)
    raw = np.concatenate(  # of every part ID
        [
            id_map(out, tmp_path / "store", name)[read_tensors((out / f"part{part}/orig_nids.dgl").read_bytes())[name]]
            for part in range(parts)
            for name in nodes
        ]
    )
    seen = {name: [] for name in edges}
    for part in range(parts):
        found = read_graph((out / f"part{part}/graph.dgl").read_bytes())
        _check_nodes(found, nodes, part)
        src, dst = _check_formats(found)
        _check_edges(found, src, dst, nodes, edges, part)
        ids = read_tensors((out / f"part{part}/orig_eids.dgl").read_bytes())
        for number, edge_type in enumerate(edges):
            mine = found.edge_data["_TYPE"] == number
            ends = (raw[found.node_data["_ID"][some[mine]]] for some in (src, dst))
            seen[edge_type].append((*ends, ids[edge_type]))
    for edge_type, rows in seen.items():
        key = tuple(edge_type.split(":"))
        wanted = graph_edges(graph, key).only([])
        assert checksum(key, Rows(*map(np.concatenate, zip(*rows, strict=True)))) == checksum(key, wanted)


def _all_edges(out, parts):
    """(source, destination, edge, type) of all edges, by part IDs: those that partitions own."""
    found = []
    for part in range(parts):
        graph = read_graph((out / f"part{part}/graph.dgl").read_bytes())
        nodes, (src, dst, _) = graph.node_data["_ID"], graph.matrices["coo"]
        found += zip(
            *(one.tolist() for one in (nodes[src], nodes[dst], graph.edge_data["_ID"], graph.edge_data["_TYPE"])), strict=True
        )
    return found


@pytest.mark.parametrize("hops", [2, 3, 10**12])
@pytest.mark.parametrize("name", [*CASES, "temporal"])
def test_halos_of_several_hops(name, hops, tmp_path, monkeypatch):
    """In-edges of all nodes fewer hops away, after own ones; naive sets over the edges of an export with one hop."""
    graph = GRAPHS[name]()
    parts = graph.options.get("partitions", 3)
    store = make_store(graph, tmp_path, partitions=parts)
    graphprep.export(str(store), str(tmp_path / "near"), "distdgl", drop_unsupported=True)
    edges = _all_edges(tmp_path / "near", parts)
    monkeypatch.setattr(part_nodes, "_MOST", 5)
    graphprep.export(str(store), str(tmp_path / "far"), "distdgl", halo_hops=hops, formats="coo,csr,csc", drop_unsupported=True)
    config = json.loads((tmp_path / "far" / "metadata.json").read_text())
    assert config["halo_hops"] == hops
    for part in range(parts):
        own = {one for ranges in config["node_map"].values() for one in range(*ranges[part])}
        inside, reached = set(own), set(own)
        for _ in range(min(hops, 100)):
            inside = set(reached)
            reached |= {src for src, dst, _, _ in edges if dst in inside}
        mine = sorted((one for one in edges if one[1] in own), key=lambda one: one[2])
        others = sorted((one for one in edges if one[1] in inside - own), key=lambda one: one[2])
        found = read_graph((tmp_path / f"far/part{part}/graph.dgl").read_bytes())
        ids = found.node_data["_ID"]
        assert ids.tolist() == [*sorted(own), *sorted(reached - own)]
        assert found.node_data["inner_node"].tolist() == [1] * len(own) + [0] * (len(reached) - len(own))
        src, dst = _check_formats(found)
        ends = (ids[src], ids[dst], found.edge_data["_ID"], found.edge_data["_TYPE"])
        assert list(zip(*(one.tolist() for one in ends), strict=True)) == mine + others
        assert found.edge_data["inner_edge"].tolist() == [1] * len(mine) + [0] * len(others)


def test_halos_have_a_hop_at_least(tmp_path):
    store = make_store(GRAPHS["multi_edge"](), tmp_path, partitions=2)
    with pytest.raises(UsageError, match="distdgl: halo_hops must be 1 or more, found 0"):
        graphprep.export(str(store), str(tmp_path / "out"), "distdgl", halo_hops=0)


def _check_nodes(found, nodes, part):
    """Own nodes by part ID, then other partitions' sources by part ID."""
    ids, inner = found.node_data["_ID"], found.node_data["inner_node"]
    low, high = min(some[part][0] for some in nodes.values()), max(some[part][1] for some in nodes.values())
    assert ids[: high - low].tolist() == list(range(low, high))
    assert inner.tolist() == [1] * (high - low) + [0] * (found.num_nodes - (high - low))
    others = ids[high - low :]
    assert (np.diff(others) > 0).all()
    assert not ((others >= low) & (others < high)).any()
    types = [next(i for i, some in enumerate(nodes.values()) if any(a <= one < b for a, b in some)) for one in ids.tolist()]
    assert found.node_data["_TYPE"].tolist() == types


def _check_formats(found):
    """All formats have the same edges; those of a column lie by type. Return ends by local ID."""
    src, dst, data = found.matrices["coo"]
    assert data.size == 0
    for name, rows, others in (("csr", src, dst), ("csc", dst, src)):
        indptr, indices, order = found.matrices[name]
        order = order if order.size else np.arange(indices.size)
        row = np.repeat(np.arange(found.num_nodes), np.diff(indptr))
        assert np.array_equal(np.sort(order), np.arange(src.size))
        assert np.array_equal(row, rows[order])
        assert np.array_equal(indices, others[order])
        key = row * 100 + found.edge_data["_TYPE"][order]
        assert (np.diff(key) >= 0).all()
    return src, dst


def _check_edges(found, src, dst, nodes, edges, part):
    ids, kinds = found.edge_data["_ID"], found.edge_data["_TYPE"]
    flat = [(one, number) for number, some in enumerate(edges.values()) for one in range(*some[part])]
    assert list(zip(ids.tolist(), kinds.tolist(), strict=True)) == flat
    assert (found.edge_data["inner_edge"] == 1).all()
    inner = found.node_data["inner_node"] == 1
    assert inner[dst].all()
    assert set(np.flatnonzero(~inner).tolist()) <= set(src.tolist())
    names = list(nodes)
    for number, edge_type in enumerate(edges):
        mine = kinds == number
        source, _, destination = edge_type.split(":")
        for some, name in ((src, source), (dst, destination)):
            assert (found.node_data["_TYPE"][some[mine]] == names.index(name)).all()


@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_partitions_made_on_the_way_are_those_of_convert(layout, tmp_path):
    graph, target = GRAPHS["heterogeneous"](), {"formats": "coo,csc"}
    wanted = {"partitions": 3, "partition_by": "hash"}
    direct, _ = _export(tmp_path / "direct", graph, target, layout=layout, **wanted)
    again, _ = _export(tmp_path / "again", graph, {**target, **wanted}, layout=layout, partitions=2)
    files = [{path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()} for out in (direct, again)]
    assert files[0] == files[1]


def _table(**columns):
    ids = list(range(4))
    return Graph({"n": Nodes(ids, columns)}, {("n", "to", "n"): Edges([0, 1], [1, 2])})


def test_columns_with_gaps_say_who_has_them(tmp_path):
    graph = _table(x=np.ma.masked_array([1.5, 2.5, 3.5, 4.5], [0, 1, 0, 0]))
    out, _ = _export(tmp_path, graph)
    found = read_tensors((out / "part0/node_feat.dgl").read_bytes())
    assert {name: some.tolist() for name, some in found.items()} == {"n/x": [1.5, 0, 3.5, 4.5], "n/x_present": [1, 0, 1, 1]}


def test_unsigned_numbers_are_written_wider(tmp_path):
    graph = _table(a=np.arange(4, dtype=np.uint16), b=np.arange(4, dtype=np.uint32), c=np.arange(4, dtype=np.uint64))
    out, summary = _export(tmp_path, graph)
    found = read_tensors((out / "part0/node_feat.dgl").read_bytes())
    assert [found[f"n/{name}"].dtype.name for name in "abc"] == ["int32", "int64", "int64"]
    assert "node column n 'a': uint16 is written as int32" in summary.notes


def test_numbers_beyond_int64_are_refused(tmp_path):
    graph = _table(c=np.array([0, 2**63, 1, 2], np.uint64))
    with pytest.raises(DataError, match="9223372036854775808 does not fit int64"):
        _export(tmp_path, graph)
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "distdgl", feature_dtypes={"c": "float64"})
    found = read_tensors((tmp_path / "out/part0/node_feat.dgl").read_bytes())
    assert found["n/c"].tolist() == [0, 2.0**63, 1, 2]


def test_names_that_dgl_would_take_apart_are_encoded(tmp_path):
    ids = list(range(3))
    graph = Graph({"a:b": Nodes(ids, {"x/y": np.ones(3, np.float32)})}, {("a:b", "50%", "a:b"): Edges([0], [1])})
    out, summary = _export(tmp_path, graph)
    assert list(read_tensors((out / "part0/node_feat.dgl").read_bytes())) == ["a%3Ab/x%2Fy"]
    assert list(json.loads((out / "metadata.json").read_text())["edge_map"]) == ["a%3Ab:50%25:a%3Ab"]
    assert any("'a:b' is 'a%3Ab'" in note for note in summary.notes)


def test_a_column_that_is_called_like_a_mask_is_refused(tmp_path):
    ids = list(range(3))
    columns = {"part": np.array([0, 1, 2]), "train_mask": np.ones(3)}
    graph = Graph({"n": Nodes(ids, columns, split="part")}, {("n", "to", "n"): Edges([0], [1])})
    with pytest.raises(UsageError, match="node type 'n' has a column 'train_mask'"):
        _export(tmp_path, graph)


@pytest.mark.parametrize("formats", ["", "coo,csv"])
def test_formats_are_checked(formats, tmp_path):
    with pytest.raises(UsageError, match="formats must be some of coo, csr, csc"):
        _export(tmp_path, GRAPHS["multi_edge"](), {"formats": formats})


def test_original_ids_can_be_left_out(tmp_path):
    out, _ = _export(tmp_path, GRAPHS["multi_edge"](), {"save_orig_nids": "false", "save_orig_eids": "false"})
    assert sorted(path.name for path in (out / "part0").iterdir()) == ["edge_feat.dgl", "graph.dgl", "node_feat.dgl"]


def test_without_edge_ids_edge_rows_stand_in(tmp_path):
    out, _ = _export(tmp_path, GRAPHS["homogeneous"](), partitions=2, edge_ids=False)
    ids = [read_tensors((out / f"part{part}/orig_eids.dgl").read_bytes())["paper:cites:paper"] for part in range(2)]
    assert np.concatenate(ids).tolist() == list(range(200))


def test_edges_keep_ids_of_the_users_own(tmp_path):
    """Any whole numbers, in the order of edges that a reorder gave them; they are no feature then."""
    graph = GRAPHS["multi_edge"]()
    ((edge_type, edges),) = graph.edges.items()
    own = np.random.default_rng(5).integers(-(2**62), 2**62, len(edges.src))
    edges = replace(edges, columns={**edges.columns, "own": own})
    store = make_store(replace(graph, edges={edge_type: edges}), tmp_path, partitions=2)
    graphprep.reorder(str(store), str(tmp_path / "hot"), by="random", scope="graph")
    for given, shown in (({}, np.arange(60)), ({"edge_id_col": "own"}, own)):
        out = tmp_path / f"out-{len(given)}"
        graphprep.export(str(tmp_path / "hot"), str(out), "distdgl", **given)
        positions = [np.load(path) for path in sorted((tmp_path / "hot").glob("part-*/edges/*/csc/edge_ids.npy"))]
        for part in range(2):
            found = read_tensors((out / f"part{part}/orig_eids.dgl").read_bytes())["_N:_E:_N"]
            assert found.tolist() == shown[positions[part]].tolist()
            names = set(read_tensors((out / f"part{part}/edge_feat.dgl").read_bytes()))
            assert ("_N:_E:_N/own" in names) == (not given)


@pytest.mark.parametrize("target", ["distdgl", "graphbolt"])
def test_ids_out_of_range_are_refused(target, tmp_path):
    store = make_store(GRAPHS["multi_edge"](), tmp_path, partitions=2)
    indices = np.load(next(store.glob("part-00001/edges/*/csc/indices.npy")), mmap_mode="r+")
    indices[3] = 77
    indices.flush()
    with pytest.raises(DataError, match="77"):
        graphprep.export(str(store), str(tmp_path / "out"), target)
    assert not (tmp_path / "out").exists()
