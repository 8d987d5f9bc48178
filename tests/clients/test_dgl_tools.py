"""Chunked graphs, partitioned by the tools of DGL's repository, whose parts DGL loads. ``make test-clients`` runs these."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, id_map, store_edges, store_nodes
from clients.dgl_environment import GRAPHBOLT
from clients.graphs import GRAPHS, make_store

import graphprep

pytestmark = [pytest.mark.client("dgl tools"), pytest.mark.xdist_group("graphbolt")]

# Name: (graph, options of the export, partitions, ranks). DGL's tools fail where an edge type has no edges (empty_type,
# no_edges) or a partition has no nodes (few_nodes), and read no edges from numpy files.
CASES = {
    "homogeneous": ("homogeneous", {}, 3, 1),
    "homogeneous-csv": ("homogeneous", {"edges": "csv", "chunks": 4}, 2, 1),
    "heterogeneous": ("heterogeneous", {"chunks": 3}, 2, 1),
    "heterogeneous-csv": ("heterogeneous", {"edges": "csv", "data": "parquet"}, 3, 1),
    "heterogeneous-ranks": ("heterogeneous", {"edges": "csv", "chunks": 5}, 4, 2),
    "multi_edge": ("multi_edge", {"chunks": 2, "edges": "csv"}, 2, 1),
    "empty_partition": ("empty_partition", {"chunks": 2}, 2, 1),
    "sparse_ids": ("sparse_ids", {"edges": "csv"}, 2, 1),
    "string_ids": ("string_ids", {"data": "parquet", "chunks": 2}, 2, 1),
    "temporal": ("temporal", {"masks": False}, 2, 1),
    "temporal-ranks": ("temporal", {"chunks": 2, "data": "parquet"}, 2, 2),
}
# Cases whose nodes are assigned by our own `partition --assignment-only`, not by DGL's random_partition.py: its method.
ASSIGNED = {"homogeneous-ldg": "ldg", "heterogeneous-fennel": "fennel", "string_ids-hash": "hash"}
CASES |= {
    "homogeneous-ldg": ("homogeneous", {"chunks": 3}, 3, 1),
    "heterogeneous-fennel": ("heterogeneous", {"edges": "csv", "chunks": 2}, 2, 2),
    "string_ids-hash": ("string_ids", {"chunks": 2}, 2, 1),
}
_SEED = 3  # with it, each partition has nodes and edges of all types, which DGL 2.1 asks for
_MASKS = ("train_mask", "val_mask", "test_mask")


def _find_tools() -> str:
    folder = os.environ.get("GRAPHPREP_DGL_TOOLS", "")
    if not folder:
        pytest.skip(
            "GRAPHPREP_DGL_TOOLS is not set: git clone -b v2.1.0 https://github.com/dmlc/dgl, "
            "make test-clients GRAPHPREP_DGL_TOOLS=dgl/tools"
        )
    assert (Path(folder) / "distpartitioning/data_proc_pipeline.py").exists(), f"GRAPHPREP_DGL_TOOLS: no DGL tools in {folder}"
    return str(Path(folder).resolve())


@pytest.fixture(scope="module")
def dispatched(tmp_path_factory):
    """Return store, chunked graph, DGL's parts and ours by case, and what DGL read of all parts in one process."""
    tools = _find_tools()
    GRAPHBOLT.find_python()
    root = tmp_path_factory.mktemp("dgl-tools")
    made, jobs = {}, []
    for case, (name, options, parts, ranks) in CASES.items():
        store, chunked = make_store(GRAPHS[name](), root / f"{case}-store"), root / f"{case}-chunked"
        graphprep.export(str(store), str(chunked), "dgl-chunked", **options)
        made[case] = store, chunked, root / case, root / f"{case}-ours"
        job = {"chunked": str(chunked), "out": str(root / case), "parts": parts, "ranks": ranks, "seed": _SEED}
        jobs.append({**job, "port": _free_port(), "is_assigned": case in ASSIGNED})
        if case in ASSIGNED:
            balance = {"balance": ("type",)} if ASSIGNED[case] != "hash" else {}
            given = {"by": ASSIGNED[case], "partitions": parts, "assignment_only": True, **balance}
            graphprep.partition(store, root / f"{case}.assigned", **given)
    (root / "jobs.json").write_text(json.dumps(jobs))
    GRAPHBOLT.run("dgl_tools_client.py", tools, root / "jobs.json")
    for case, (store, _, parts, ours) in made.items():
        assigned = f"{parts}.assigned"
        graphprep.export(str(store), str(ours), "distdgl", partitions=CASES[case][2], partition_by=assigned)
    GRAPHBOLT.run("dgl_client.py", root / "seen.npz", *(out for *_, parts, ours in made.values() for out in (parts, ours)))
    with np.load(root / "seen.npz") as seen:
        return made, dict(seen)


def _free_port() -> int:
    with socket.socket() as some:
        some.bind(("127.0.0.1", 0))
        return some.getsockname()[1]


def _columns(seen, name, key):
    start = f"{name}|{key} "
    return {column.removeprefix(start): values for column, values in seen.items() if column.startswith(start)}


@pytest.mark.parametrize("case", CASES)
def test_dgl_dispatches_what_the_store_holds(dispatched, case):
    made, seen = dispatched
    store, chunked, *_ = made[case]
    graph = GRAPHS[CASES[case][0]]()
    raw = {name: id_map(chunked, store, name) for name in graph.nodes}
    for name, some in graph.nodes.items():
        columns = _columns(seen, case, f"node {name}")
        found = Rows(raw[name][columns.pop("raw")], columns=columns)
        wanted, stored = graph_nodes(graph, name), store_nodes(store, name)
        split = {some.split} - {None}
        if split and CASES[case][1].get("masks", True):
            number = np.ma.filled(some.columns[some.split], 3)
            masks = {mask: (number == which).astype(np.uint8) for which, mask in enumerate(_MASKS)}
            assert checksum(name, found.only(masks)) == checksum(name, Rows(wanted.ids, columns=masks))
        plain = [column for column in wanted.columns if column not in split]
        assert checksum(name, found.only(plain)) == checksum(name, wanted.only(plain)) == checksum(name, stored.only(plain))
    for name in graph.edges:
        columns = _columns(seen, case, f"edge {':'.join(name)}")
        ends = [raw[node_type][columns.pop(end)] for end, node_type in (("src", name[0]), ("dst", name[2]))]
        found = Rows(*ends, columns.pop("id"), columns)
        assert checksum(name, found) == checksum(name, graph_edges(graph, name)) == checksum(name, store_edges(store, name))


@pytest.mark.parametrize("case", CASES)
def test_ours_are_the_parts_that_dgl_dispatches(dispatched, case):
    made, seen = dispatched
    *_, parts, ours = made[case]
    theirs, own = (json.loads((folder / "metadata.json").read_text()) for folder in (parts, ours))
    for key in ("num_parts", "num_nodes", "num_edges", "halo_hops", "ntypes", "etypes", "node_map", "edge_map"):
        assert own[key] == theirs[key], key
    raw = {name: id_map(made[case][1], made[case][0], name) for name in theirs["ntypes"]}
    maps = {name: id_map(ours, made[case][0], name) if (ours / "id_map").exists() else None for name in theirs["ntypes"]}
    for name, ranges in theirs["node_map"].items():
        found = [_columns(seen, out.name, f"node {name}")["raw"] for out in (parts, ours)]
        mine = found[1] if maps[name] is None else maps[name][found[1]]
        assert raw[name][found[0]].tolist() == mine.tolist()  # in this order, part by part
        assert sum(stop - start for start, stop in ranges) == len(mine)
    for name, ranges in theirs["edge_map"].items():
        cuts = np.cumsum([stop - start for start, stop in ranges])
        found = [np.split(_columns(seen, out.name, f"edge {name}")["id"], cuts) for out in (parts, ours)]
        assert [sorted(some.tolist()) for some in found[0]] == [sorted(some.tolist()) for some in found[1]]
