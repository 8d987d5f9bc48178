"""Partitions as GraphLearn-for-PyTorch loads them: its own ``load_partition`` and ``DistDataset.load``, against the store."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from clients.checksums import Rows, checksum, graph_edges, graph_nodes, id_map, store_edges, store_nodes
from clients.glt_client import load_glt
from clients.graphs import GRAPHS, Edges, Graph, homogeneous, make_store, shared_store

import graphprep

pytestmark = pytest.mark.client("graphlearn-torch")

torch = pytest.importorskip("torch", reason="torch is not installed")
glt = load_glt()

LAYOUTS = [("COO", "by_src"), ("COO", "by_dst"), ("CSR", "by_src"), ("CSC", "by_dst")]


class Client:
    """An export as GLT sees it, all partitions together. Homogeneous graphs have the type None."""

    def __init__(self, out, store, num_parts, layout):
        self.out, self.store, self.layout = out, store, layout
        self.parts = [glt.partition.load_partition(str(out), part) for part in range(num_parts)]
        assert [part[:2] for part in self.parts] == [(num_parts, number) for number in range(num_parts)]

    def of(self, name, index):
        """Return what each partition has of a type."""
        return [part[index].get(name) if isinstance(part[index], dict) else part[index] for part in self.parts]

    def edges(self, name, columns, by_src):
        """Return the edges of all partitions in raw IDs; each must be in the partition that the books say."""
        found = []
        src_ids, dst_ids = (id_map(self.out, self.store, end) for end in (name[0], name[2]))
        edge_book = self.of(name, 6)[0].numpy()
        node_book = self.of(name[0] if by_src else name[2], 5)[0].numpy()
        for part, (graph, feats) in enumerate(zip(self.of(name, 2), self.of(name, 4), strict=True)):
            src, dst = self._ends(graph.edge_index)
            eids = graph.eids.numpy()
            assert (edge_book[eids] == part).all()
            assert (node_book[src if by_src else dst] == part).all()
            values = {}
            if "weight" in columns:
                assert graph.weights.dtype == torch.float32
                values["weight"] = graph.weights.numpy()
            if "feat" in columns and len(edge_book):
                values["feat"] = _by_id(feats, eids, edge_book.size)
            found.append((src_ids[src], dst_ids[dst], eids, values))
        assert sorted(np.concatenate([one[2] for one in found]).tolist()) == list(range(edge_book.size))
        return _joined(found, columns)

    def _ends(self, edge_index):
        one, other = (ends.numpy() for ends in edge_index)
        assert one.dtype == other.dtype == np.int64
        if self.layout == "COO":
            return one, other
        indptr, indices = (one, other) if self.layout == "CSR" else (other, one)
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        return (rows, indices) if self.layout == "CSR" else (indices, rows)

    def nodes(self, name):
        """Return the features of all nodes, each from the partition that owns it."""
        book = self.of(name, 5)[0].numpy()
        ids, values = id_map(self.out, self.store, name), None
        assert ids.size == book.size
        for part, feats in enumerate(self.of(name, 3)):
            mine = np.flatnonzero(book == part)
            if feats is not None:
                found = _by_id(feats, mine, book.size)
                values = np.zeros((book.size, *found.shape[1:]), found.dtype) if values is None else values
                values[mine] = found
        return Rows(ids, columns={} if values is None else {"feat": values})


def _by_id(feats, ids, size):
    """Look features up as ``Feature`` does: by the index of each ID."""
    _, values, index, _ = glt.partition.cat_feature_cache(0, feats, torch.zeros(size, dtype=torch.int64))
    assert np.isin(ids, feats.ids.numpy()).all()
    return values[index[torch.from_numpy(ids)]].numpy()


def _joined(found, columns):
    src, dst, eids = (np.concatenate([one[number] for one in found]) for number in range(3))
    values = {key: np.concatenate([one[3][key] for one in found]) for key in columns if all(key in one[3] for one in found)}
    return Rows(src, dst, eids, values)


def export(store, out, **given):
    return graphprep.export(str(store), str(out), "glt", drop_unsupported=True, features="feat", **given)


@pytest.mark.parametrize(("layout", "assign"), LAYOUTS)
@pytest.mark.parametrize("name", GRAPHS)
def test_partitions_hold_the_graph(name, layout, assign, tmp_path):
    graph, store = shared_store(name, partitions=3, partition_by="hash")
    num_parts = graph.options.get("partitions", 3)
    export(store, tmp_path / "out", layout=layout, edge_assign=assign)
    client = Client(tmp_path / "out", store, num_parts, layout)
    for edge_type in graph.edges:
        columns = [key for key in ("weight", "feat") if key in graph_edges(graph, edge_type).columns]
        if not graph.edges[edge_type].src:
            columns = [key for key in columns if key == "weight"]
        found = client.edges(edge_type, columns, assign == "by_src")
        assert checksum(edge_type, found) == checksum(edge_type, store_edges(store, edge_type).only(columns).trained())
        assert checksum(edge_type, found) == checksum(edge_type, graph_edges(graph, edge_type).only(columns).trained())
    for node_type, some in graph.nodes.items():
        columns = ["feat"] if "feat" in some.columns and some.ids else []
        found = client.nodes(node_type)
        assert checksum(node_type, found) == checksum(node_type, store_nodes(store, node_type).only(columns).trained())
        assert checksum(node_type, found) == checksum(node_type, graph_nodes(graph, node_type).only(columns).trained())


@pytest.mark.parametrize("graph_class", ["homo", "hetero"])
@pytest.mark.parametrize(("layout", "assign"), LAYOUTS)
def test_datasets_load(layout, assign, graph_class, tmp_path):
    """``DistDataset.load`` makes graphs, features and labels of the files; with CSR and CSC, empty partitions, too."""
    graph = homogeneous(12, 60)
    num_parts = 2 if layout == "COO" else 14  # more than nodes
    store = make_store(graph, tmp_path, partitions=num_parts, partition_by="random")
    export(store, tmp_path / "out", layout=layout, edge_assign=assign, graph_class=graph_class, cache_ratio=0.2)
    homo, edge_type = graph_class == "homo", ("paper", "cites", "paper")
    found = []
    for part in range(num_parts):
        dataset = glt.distributed.DistDataset(edge_dir="out" if assign == "by_src" else "in")
        label = str(tmp_path / "out" / "label" / ("label.pt" if homo else "paper.pt"))
        dataset.load(
            str(tmp_path / "out"), part, graph_mode="CPU", input_layout=layout, feature_with_gpu=False,
            whole_node_label_file=label if homo else {"paper": label},
        )  # fmt: skip
        topology = (dataset.graph if homo else dataset.graph[edge_type]).topo
        src, dst, eids, weights = (one.numpy() for one in topology.to_coo())
        features = dataset.node_features if homo else dataset.node_features["paper"]
        feats = dataset.edge_features if homo else dataset.edge_features[edge_type]
        values = {"weight": weights, "feat": feats[torch.from_numpy(eids)].numpy()}
        found.append((src, dst, eids, values))
        labels = dataset.node_labels if homo else dataset.node_labels["paper"]
        np.testing.assert_array_equal(labels, _by_raw_id(graph, "y"))
        book = dataset.node_feat_pb if homo else dataset.node_feat_pb["paper"]
        local = torch.where(book == part)[0]
        np.testing.assert_array_equal(features[local].numpy(), _by_raw_id(graph, "feat")[local])
        assert local.numel() >= 2  # a fifth of 12, cached
    rows = _joined(found, ["weight", "feat"])
    assert checksum(edge_type, rows) == checksum(edge_type, graph_edges(graph, edge_type))


def test_coo_is_loaded_as_sorted_as_csr(tmp_path):
    """What GLT sorts while it loads, and what it is given sorted, are the same graph."""
    _, store = shared_store("heterogeneous", partitions=3, partition_by="hash")
    topologies = {}
    for layout in ("COO", "CSR"):
        export(store, tmp_path / layout, layout=layout)
        dataset = glt.distributed.DistDataset(edge_dir="out")
        dataset.load(str(tmp_path / layout), 0, graph_mode="CPU", input_layout=layout, feature_with_gpu=False)
        for edge_type, one in dataset.graph.items():
            src, dst, eids, weights = one.topo.to_coo()
            order = np.lexsort((eids, dst, src))
            columns = [src, dst, eids] + ([] if weights is None else [weights])
            topologies[layout, edge_type] = [values.numpy()[order].tolist() for values in columns]
    assert {layout for layout, _ in topologies} == {"COO", "CSR"}
    for (layout, edge_type), rows in topologies.items():
        assert rows == topologies["COO", edge_type], (layout, edge_type)


def _by_raw_id(graph, column):
    nodes = graph.nodes["paper"]
    values = np.asarray(nodes.columns[column])
    out = np.empty_like(values)
    out[nodes.ids] = values
    return out


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous", "string_ids"])
@pytest.mark.parametrize("layout", ["COO", "CSR", "CSC"])
def test_the_whole_graph_can_be_in_every_partition(layout, name, tmp_path):
    """``graph_caching``: with edge IDs that lead to the features of edges, which GLT's own writer loses."""
    graph, store = shared_store(name, partitions=3, partition_by="range")
    export(store, tmp_path / "out", layout=layout, graph_caching=True)
    for part in range(3):
        found = glt.partition.load_partition(str(tmp_path / "out"), part, graph_caching=True)
        client = Client.__new__(Client)
        client.out, client.store, client.layout, client.parts = tmp_path / "out", store, layout, [found]
        for edge_type in graph.edges:
            [one] = client.of(edge_type, 2)
            src, dst = client._ends(one.edge_index)
            src_ids, dst_ids = (id_map(tmp_path / "out", store, end) for end in (edge_type[0], edge_type[2]))
            weight = {} if one.weights is None else {"weight": one.weights.numpy()}
            rows = Rows(src_ids[src], dst_ids[dst], one.eids.numpy(), weight)
            assert checksum(edge_type, rows) == checksum(edge_type, graph_edges(graph, edge_type).only(weight))


@pytest.mark.parametrize("graph_class", ["homo", "hetero"])
def test_edge_ids_can_be_left_out(graph_class, tmp_path):
    """Where an edge type has no features, nothing is looked up by them; where it has, they stay."""
    graph = homogeneous(12, 60)
    edge_type, homo = ("paper", "cites", "paper"), graph_class == "homo"
    edges = graph.edges[edge_type]
    plain = Edges(edges.src, edges.dst, {"weight": edges.columns["weight"]}, "weight")
    for name, some, has_ids in (("plain", plain, False), ("features", edges, True)):
        one = Graph(graph.nodes, {edge_type: some})
        store = make_store(one, tmp_path / name, partitions=2)
        export(store, tmp_path / name / "out", layout="CSR", graph_class=graph_class, edge_ids=False)
        assert (tmp_path / name / "out" / ("edge_pb.pt" if homo else "edge_pb")).exists() == (homo or has_ids)
        found = []
        for part in range(2):
            dataset = glt.distributed.DistDataset(edge_dir="out")
            dataset.load(str(tmp_path / name / "out"), part, graph_mode="CPU", input_layout="CSR", feature_with_gpu=False)
            src, dst, eids, weights = (dataset.graph if homo else dataset.graph[edge_type]).topo.to_coo()
            found.append((src.numpy(), dst.numpy(), eids.numpy(), {"weight": weights.numpy()}))
            assert has_ids or eids.tolist() == list(range(src.numel()))
        rows = _joined(found, ["weight"]).only(["weight"], edge_ids=has_ids)
        assert checksum(edge_type, rows) == checksum(edge_type, graph_edges(one, edge_type).only(["weight"], edge_ids=has_ids))


@pytest.mark.parametrize("stored", ["csc", "csr", "both"])
@pytest.mark.parametrize("assign", ["by_src", "by_dst"])
def test_edges_without_ids_are_numbered(assign, stored, tmp_path):
    """In a store without edge IDs: features and weights belong to the edges by the numbers that these get."""
    graph = GRAPHS["heterogeneous"]()
    store = make_store(graph, tmp_path, partitions=2, edge_ids=False, layout=stored)
    export(store, tmp_path / "out", edge_assign=assign)
    client = Client(tmp_path / "out", store, 2, "COO")
    for edge_type in graph.edges:
        wanted = graph_edges(graph, edge_type)
        columns = [key for key in ("weight", "feat") if key in wanted.columns]
        found = client.edges(edge_type, columns, assign == "by_src")
        assert checksum(edge_type, found.only(columns, edge_ids=False)) == checksum(
            edge_type, wanted.only(columns, edge_ids=False)
        )


# ---------------------------------------------------------------------------------------------- caches


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous", "string_ids", "empty_partition"])
def test_caches_hold_the_nodes_of_the_highest_degrees(name, tmp_path):
    graph, store = shared_store(name, partitions=2)
    export(store, tmp_path / "out", cache_ratio=0.3)
    client = Client(tmp_path / "out", store, 2, "COO")
    for node_type, some in graph.nodes.items():
        if "feat" not in some.columns:
            assert client.of(node_type, 3) == [None, None]
            continue
        ids = id_map(tmp_path / "out", store, node_type)
        degrees = dict.fromkeys(ids.tolist(), 0)
        for edge_type, edges in graph.edges.items():
            for end in edges.dst if edge_type[2] == node_type else []:
                degrees[end] += 1
        number_of = {raw: number for number, raw in enumerate(store_nodes(store, node_type).ids.tolist())}
        wanted = sorted(degrees, key=lambda raw: (-degrees[raw], number_of[raw]))[: int(len(ids) * 0.3)]
        features = dict(zip(some.ids, np.asarray(some.columns["feat"]).tolist(), strict=True))
        for feats in client.of(node_type, 3):
            assert ids[feats.cache_ids.numpy()].tolist() == wanted
            assert feats.cache_feats.tolist() == [features[raw] for raw in wanted]


def test_caches_follow_files_of_scores(tmp_path):
    """One file for all partitions, or a row for each: as the frequency partitioner's probabilities."""
    _, store = shared_store("heterogeneous", partitions=3, partition_by="hash")
    rng = np.random.default_rng(0)
    users, items = rng.random(30), rng.integers(0, 4, (3, 20)).astype(np.float32)
    users[[3, 5]] = users[7]
    np.save(tmp_path / "users.npy", users)
    np.save(tmp_path / "items.npy", items)
    files = f"user={tmp_path / 'users.npy'},item={tmp_path / 'items.npy'}"
    export(store, tmp_path / "out", cache_ratio=0.5, cache_scores=files)
    client = Client(tmp_path / "out", store, 3, "COO")
    for node_type, scores in (("user", [users] * 3), ("item", items)):
        typed = {raw: number for number, raw in enumerate(store_nodes(store, node_type).ids.tolist())}
        for feats, some in zip(client.of(node_type, 3), scores, strict=True):
            order = sorted(range(len(some)), key=lambda node: (-some[node], typed[node]))
            assert feats.cache_ids.tolist() == order[: len(some) // 2]


# ---------------------------------------------------------------------------------------------- side files


@pytest.mark.parametrize("name", ["homogeneous", "empty_type", "string_ids", "few_nodes"])
def test_labels_splits_and_seeds_go_by_node(name, tmp_path):
    graph, store = shared_store(name, partitions=3, partition_by="hash")
    num_parts = graph.options.get("partitions", 3)
    out = tmp_path / "out"
    export(store, out)
    homo = name in ("homogeneous", "few_nodes")
    node_type = "paper" if homo else "user" if name == "string_ids" else "a"
    some, ids = graph.nodes[node_type], id_map(out, store, node_type)
    labels = torch.load(out / "label" / ("label.pt" if homo else f"{node_type}.pt"))
    assert labels.dtype == torch.int64
    assert dict(zip(ids.tolist(), labels.tolist(), strict=True)) == dict(zip(some.ids, some.columns["y"].tolist(), strict=True))
    book = torch.load(out / ("node_pb.pt" if homo else f"node_pb/{node_type}.pt"))
    splits = dict(zip(some.ids, some.columns["part"].tolist(), strict=True))
    for value, split in enumerate(("train", "val", "test")):
        found = []
        for part in range(num_parts):
            folder = out / f"{split}-partitions" / ("" if homo else node_type)
            seeds = torch.load(folder / f"partition{part}.pt")
            assert seeds.dtype == torch.int64
            assert (book[seeds] == part).all()
            found += ids[seeds.numpy()].tolist()
        assert sorted(found) == sorted(raw for raw, one in splits.items() if one == value)
    if some.seeds:
        seeds = [torch.load(out / "seeds-partitions" / f"partition{part}.pt").tolist() for part in range(num_parts)]
        assert sorted(ids[list(itertools.chain(*seeds))].tolist()) == sorted(some.seeds)


def test_bfloat16_features_load(tmp_path):
    graph, store = shared_store("homogeneous", partitions=2)
    export(store, tmp_path / "out", bfloat16=True)
    part = glt.partition.load_partition(str(tmp_path / "out"), 1)
    assert part[3].feats.dtype == part[4].feats.dtype == torch.bfloat16
    wanted = torch.from_numpy(_by_raw_id(graph, "feat"))[part[3].ids].bfloat16()
    assert torch.equal(part[3].feats, wanted)


def test_features_are_found_by_edge_ids_with_gaps(tmp_path):
    """GLT's own loader and look-up: edges keep IDs of the user's own, and their features."""
    rng = np.random.default_rng(5)
    ids = rng.choice(900, 60, replace=False)
    ends = rng.integers(0, 20, (60, 2))
    lines = (f"{u},{v},{own},{own / 4}\n" for (u, v), own in zip(ends.tolist(), ids.tolist(), strict=True))
    (tmp_path / "e.csv").write_text("src,dst,own,feat\n" + "".join(lines))
    graphprep.convert([], str(tmp_path / "store"), edges={"n:to:n": str(tmp_path / "e.csv")}, partitions=2)
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "glt", edge_id_col="own", features="feat", layout="CSR")
    seen = []
    for part in range(2):
        found = glt.partition.load_partition(str(tmp_path / "out"), part)
        graph, feats, book = found[2], found[4], found[6]
        assert (book[graph.eids] == part).all()
        index = glt.utils.id2idx(feats.ids)
        assert torch.equal(feats.feats[index[graph.eids]].reshape(-1), graph.eids.to(feats.feats.dtype) / 4)
        seen += graph.eids.tolist()
    assert sorted(seen) == sorted(ids.tolist())
