"""Datasets and partitions for GraphBolt, opened and sampled by GraphBolt itself. ``make test-clients`` runs these."""

from __future__ import annotations

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, id_map
from clients.dgl_environment import GRAPHBOLT
from clients.graphs import GRAPHS, make_store

import graphprep

pytestmark = [pytest.mark.client("graphbolt"), pytest.mark.xdist_group("graphbolt")]

# Name: (graph, options of convert, target, its options)
CASES = {
    **{name: (name, {}, "graphbolt", {}) for name in GRAPHS},
    "heterogeneous-hash": ("heterogeneous", {"partitions": 3, "partition_by": "hash"}, "graphbolt", {"in_memory": False}),
    "homogeneous-hashes": ("homogeneous", {}, "graphbolt", {"opened_as": True}),
    "temporal-csr": ("temporal", {"layout": "csr"}, "graphbolt", {}),
    **{f"{name}-parts": (name, {}, "distdgl", {"graphbolt": True}) for name in ("few_nodes", "empty_partition")},
    **{
        f"{name}-parts": (name, {"partitions": 3}, "distdgl", {"graphbolt": True})
        for name in ("homogeneous", "heterogeneous", "multi_edge", "empty_type")
    },
    **{
        f"{name}-far": (name, {"partitions": 3}, "distdgl", {"graphbolt": True, "halo_hops": 3})
        for name in ("homogeneous", "heterogeneous", "multi_edge")
    },
}


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Return (store, export) by case, and what GraphBolt read of all of them in one process."""
    GRAPHBOLT.find_python()
    root = tmp_path_factory.mktemp("graphbolt")
    made = {}
    for case, (name, options, target, given) in CASES.items():
        store, out = make_store(GRAPHS[name](), root / f"{case}-store", **options), root / case
        own = {"opened_as": str(out)} if "opened_as" in given else {}
        graphprep.export(str(store), str(out), target, **{**given, **own})
        made[case] = store, out
    GRAPHBOLT.run("graphbolt_client.py", root / "seen.npz", *(out for _, out in made.values()))
    with np.load(root / "seen.npz") as seen:
        return made, dict(seen)


def _find(seen, case, key):
    start = f"{case}|{key} "
    return {name.removeprefix(start): values for name, values in seen.items() if name.startswith(start)}


@pytest.mark.parametrize("case", CASES)
def test_graphbolt_reads_what_the_graph_holds(exports, case):
    made, seen = exports
    store, out = made[case]
    graph = GRAPHS[CASES[case][0]]()
    is_dataset = CASES[case][2] == "graphbolt"
    is_typed = not is_dataset or len(graph.nodes) > 1 or len(graph.edges) > 1
    for name in graph.edges:
        found = _find(seen, case, f"edge {':'.join(name) if is_typed else None}")
        ends, ids = [found.pop("src"), found.pop("dst")], found.pop("id").astype(np.int64)
        wanted = graph_edges(graph, name)
        ends = [id_map(out, store, kind)[some] for kind, some in zip((name[0], name[2]), ends, strict=True)]
        if not is_dataset:
            assert checksum(name, Rows(*ends, ids)) == checksum(name, wanted.only([]))
            continue
        columns = {key: values[ids] for key, values in found.items() if not key.startswith("graph-")}
        flat = {key: values[:, 0] if values.shape[1:] == (1,) else values for key, values in columns.items()}
        assert checksum(name, Rows(*ends, ids, flat)) == checksum(name, wanted.trained())
        for key in ("weight", "time"):
            if f"graph-{key}" in found:
                assert found[f"graph-{key}"].tolist() == flat[key].tolist()
    for name, some in graph.nodes.items() if is_dataset else ():
        found = _find(seen, case, f"node {name if is_typed else None}")
        flat = {key: values[:, 0] if values.shape[1:] == (1,) else values for key, values in found.items()}
        columns = [key for key in graph_nodes(graph, name).columns if key != some.split]
        rows = Rows(id_map(out, store, name), columns=flat)
        assert checksum(name, rows.only(columns)) == checksum(name, graph_nodes(graph, name).only(columns).trained())
        if some.split:
            _check_sets(seen, case, some, id_map(out, store, name), name if is_typed else None)


def _check_sets(seen, case, some, raw, kind):
    part = np.ma.filled(some.columns[some.split], 3)
    ids = np.array(some.ids, dtype=raw.dtype)
    for number, key in enumerate(("train_set", "validation_set", "test_set")):
        found = _find(seen, case, f"set node_classification {key} {kind}")
        wanted = dict(zip(ids[part == number].tolist(), some.columns["y"][part == number].tolist(), strict=True))
        seeds = raw[found["seeds"]].tolist() if found else []
        assert dict(zip(seeds, found["labels"].tolist() if found else [], strict=True)) == wanted
