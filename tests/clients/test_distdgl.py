"""Partitions for DGL, read by ``dgl.distributed.load_partition``, which verifies them, and sampled by ``DistGraph``."""

from __future__ import annotations

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, id_map, store_edges, store_nodes
from clients.dgl_environment import DGL
from clients.graphs import GRAPHS, Edges, Graph, make_store

import graphprep

pytestmark = [pytest.mark.client("dgl"), pytest.mark.xdist_group("dgl")]  # together: DGL takes seconds to begin

# Name: (graph, options of convert, options of the target)
CASES = {
    **{name: (name, {}, {}) for name in GRAPHS if name not in ("few_nodes", "empty_partition")},
    "few_nodes": ("few_nodes", {}, {"formats": "coo,csc"}),
    "empty_partition": ("empty_partition", {}, {"formats": "csc"}),
    "homogeneous-csc": ("homogeneous", {}, {"formats": "csc"}),
    "heterogeneous-csc": ("heterogeneous", {}, {"formats": "csc"}),
    "homogeneous-hash": ("homogeneous", {"partitions": 3, "partition_by": "hash"}, {"formats": "csc"}),
    "heterogeneous-coo": ("heterogeneous", {"partitions": 3, "partition_by": "random"}, {}),
    "heterogeneous-csr": ("heterogeneous", {"partitions": 2, "layout": "csr"}, {"formats": "csr"}),
    "heterogeneous-all": ("heterogeneous", {"partitions": 4, "layout": "both"}, {"formats": "coo,csr,csc"}),
    "multi_edge-parts": ("multi_edge", {"partitions": 2}, {"formats": "csc"}),
    "empty_type-parts": ("empty_type", {"partitions": 3}, {"formats": "csr"}),
    "string_ids-parts": ("string_ids", {"partitions": 3, "partition_by": "hash"}, {}),
    "sparse_ids-parts": ("sparse_ids", {"partitions": 2}, {"formats": "csc"}),
    "temporal-parts": ("temporal", {"partitions": 2}, {}),
    "heterogeneous-far": (
        "heterogeneous",
        {"partitions": 4, "partition_by": "hash"},
        {"formats": "coo,csr,csc", "halo_hops": 2},
    ),
    "multi_edge-far": ("multi_edge", {"partitions": 3}, {"formats": "csc", "halo_hops": 3}),
}


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
    """Return (store, export) by case, and what DGL read of all of them in one process."""
    DGL.find_python()
    root = tmp_path_factory.mktemp("distdgl")
    made = {}
    for case, (name, options, target) in CASES.items():
        store = make_store(GRAPHS[name](), root / f"{case}-store", **options)
        graphprep.export(str(store), str(root / case), "distdgl", **target)
        made[case] = store, root / case
    DGL.run("dgl_client.py", root / "seen.npz", *(out for _, out in made.values()))
    with np.load(root / "seen.npz") as seen:
        return made, dict(seen)


def _rows(seen, case, key, ids, *, is_node):
    found = {name.removeprefix(f"{case}|{key} "): values for name, values in seen.items() if name.startswith(f"{case}|{key} ")}
    if is_node:
        return Rows(ids[0][found.pop("raw")], columns=found)
    return Rows(ids[0][found.pop("src")], ids[1][found.pop("dst")], found.pop("id"), found)


@pytest.mark.parametrize("case", CASES)
def test_dgl_reads_what_the_store_holds(exports, case):
    made, seen = exports
    store, out = made[case]
    graph = GRAPHS[CASES[case][0]]()
    maps = {name: id_map(out, store, name) for name in graph.nodes}
    for name, some in graph.nodes.items():
        found = _rows(seen, case, f"node {name}", [maps[name]], is_node=True)
        wanted, stored = graph_nodes(graph, name), store_nodes(store, name)
        if some.split:
            part = np.ma.filled(some.columns[some.split], 3)
            masks = {
                mask: (part == number).astype(np.uint8) for number, mask in enumerate(("train_mask", "val_mask", "test_mask"))
            }
            assert checksum(name, found.only(masks)) == checksum(name, Rows(wanted.ids, columns=masks))
        columns = [column for column in wanted.columns if column != some.split]
        assert (
            checksum(name, found.only(columns))
            == checksum(name, wanted.only(columns).trained())
            == checksum(name, stored.only(columns).trained())
        )
        seeds = ["seeds"] if some.seeds else []
        assert set(found.columns) == {*columns, *seeds, *(("train_mask", "val_mask", "test_mask") if some.split else ())}
        assert checksum(name, found.only(seeds)) == checksum(name, stored.only(seeds).cast({"seeds": np.uint8}))
    for name in graph.edges:
        found = _rows(seen, case, f"edge {':'.join(name)}", [maps[name[0]], maps[name[2]]], is_node=False)
        assert checksum(name, found) == checksum(name, graph_edges(graph, name).trained())
        assert checksum(name, found) == checksum(name, store_edges(store, name).trained())


def test_messages_pass_over_train_edges_alone(tmp_path):
    """DGL's own loader finds train edges and those in no part, under their edge IDs, and the pairs of each part."""
    DGL.find_python()
    graph = GRAPHS["heterogeneous"]()
    (name,) = [name for name in graph.edges if name[1] == "buys"]
    edges = graph.edges[name]
    part = np.arange(len(edges.src)) % 4
    split = Edges(edges.src, edges.dst, {**edges.columns, "set": np.ma.masked_equal(part, 3)}, edges.weight)
    made = Graph(graph.nodes, {**graph.edges, name: split})
    store = make_store(made, tmp_path / "split", partitions=3, partition_by="hash", splits=(f"{':'.join(name)}:set",))
    graphprep.export(str(store), str(tmp_path / "out"), "distdgl")
    DGL.run("dgl_client.py", tmp_path / "seen.npz", tmp_path / "out")
    with np.load(tmp_path / "seen.npz") as seen:
        found = {key.partition("|")[2]: values for key, values in seen.items()}
    key, src, dst = ":".join(name), np.array(edges.src), np.array(edges.dst)
    assert sorted(found[f"edge {key} id"].tolist()) == np.flatnonzero((part == 0) | (part == 3)).tolist()
    assert found[f"edge {key} src"].tolist() == src[found[f"edge {key} id"]].tolist()
    for number, short in enumerate(("train", "val", "test")):
        assert found[f"set {key}/{short} src"].tolist() == src[part == number].tolist()
        assert found[f"set {key}/{short} dst"].tolist() == dst[part == number].tolist()


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_halos_are_those_that_dgl_makes(name, tmp_path):
    """What DGL's ``partition_graph(num_hops)`` has is what ours have, own or not, and the out-edges of own nodes."""
    DGL.find_python()
    store, all_hops, parts = make_store(GRAPHS[name](), tmp_path / "store"), ("1", "2", "3"), 4
    with graphprep.load(store) as graph:
        counts = {kind: graph.num_nodes(kind) for kind in sorted(graph.metadata.node_types)}
        by_name = {":".join(kind): np.stack(graph.edges(kind)[:2]) for kind in sorted(graph.metadata.edge_types)}
    np.savez(tmp_path / "graph.npz", **counts, **by_name)
    ends, node_numbers = list(by_name.values()), {kind: number for number, kind in enumerate(counts)}
    kinds = [(node_numbers[name.split(":")[0]], node_numbers[name.split(":")[2]]) for name in by_name]
    DGL.run("dgl_halo_client.py", "make", tmp_path, tmp_path / "graph.npz", str(parts), *all_hops)
    given = {"partition_by": str(tmp_path / "assigned"), "partitions": parts, "formats": "coo,csr,csc", "ids": "raw"}
    for hops in all_hops:
        graphprep.export(store, tmp_path / f"ours-{hops}", "distdgl", halo_hops=int(hops), **given)
    DGL.run("dgl_halo_client.py", "read", tmp_path, *all_hops)
    with np.load(tmp_path / "seen.npz") as arrays:
        seen = {key: set(map(tuple, rows.T.tolist())) for key, rows in arrays.items()}
    for hops in all_hops:
        for part in range(parts):
            own = {(kind, one) for kind, one, inner in seen[f"ours-{hops} {part} node"] if inner}
            leaving = {
                (number, edge)
                for number, ((src_kind, _), some) in enumerate(zip(kinds, ends, strict=True))
                for edge, src in enumerate(some[0].tolist())
                if (src_kind, src) in own
            }
            theirs, ours = (seen[f"{which}-{hops} {part} edge"] for which in ("dgl", "ours"))
            assert ours <= theirs
            assert {one[:2] for one in theirs} == {one[:2] for one in ours} | leaving
            assert {one for one in theirs if one[2]} == {one for one in ours if one[2]}
            led_to = {(kinds[number][1], int(ends[number][1, edge])) for number, edge in leaving}
            theirs, ours = (seen[f"{which}-{hops} {part} node"] for which in ("dgl", "ours"))
            assert ours <= theirs
            assert {one[:2] for one in theirs} == {one[:2] for one in ours} | led_to
    assert any(not one[2] for one in seen[f"ours-2 {part} edge"])


@pytest.mark.slow
def test_servers_answer_a_trainer(tmp_path):
    """Two servers, each with a partition, and a trainer that samples from both."""
    DGL.find_python()
    graph = GRAPHS["heterogeneous"]()
    store = make_store(graph, tmp_path, partitions=2, partition_by="hash")
    graphprep.export(str(store), str(tmp_path / "out"), "distdgl", formats="csc")
    DGL.run("dgl_servers.py", tmp_path / "seen.npz", tmp_path / "out")
    with np.load(tmp_path / "seen.npz") as seen:
        for name in graph.edges:
            found = Rows(*(seen[f"{':'.join(name)} {end}"] for end in ("src", "dst", "id")))
            assert checksum(name, found) == checksum(name, graph_edges(graph, name).only([]))
