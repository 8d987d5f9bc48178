"""Stores that ``split`` wrote as trainers see them: sets and masks are the parts, and no message tells a held-out edge."""

from __future__ import annotations

import collections
import json
from pathlib import Path

import numpy as np
import pytest
import yaml
from exporters.dgl_reader import read_graph, read_tensors
from exporters.graphbolt_reader import read_fused
from exporters.torch_reader import read_naively

import graphprep

NUM_USERS, NUM_ITEMS = 24, 9
FOLLOWS, BUYS, BOUGHT = ("user", "follows", "user"), ("user", "buys", "item"), ("item", "bought_by", "user")
TYPES = (FOLLOWS, BUYS, BOUGHT)
NAMES = ("train", "val", "test")
RULES = {
    "pairs": ("0.6/0.2/0.2", {"of": ["user:follows:user", "user:buys:item"], "symmetric": True}),
    "nodes": ("0.6/0.2/0.2", {"by": "nodes"}),
    "counts": ("20/10/10", {"of": ["user:follows:user", "user:buys:item"], "symmetric": True}),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A store of integer IDs, in which raw ones are typed ones: follows both ways, buys and their reverses."""
    folder, rng = tmp_path_factory.mktemp("whole"), np.random.default_rng(3)
    (folder / "user.csv").write_text("id,y\n" + "".join(f"{i},{i % 3}\n" for i in range(NUM_USERS)))
    (folder / "item.csv").write_text("id,y\n" + "".join(f"{i},{i % 2}\n" for i in range(NUM_ITEMS)))
    pairs = rng.integers(0, NUM_USERS, (40, 2))
    follows = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    buys = np.unique(np.stack([rng.integers(0, NUM_USERS, 70), rng.integers(0, NUM_ITEMS, 70)], axis=1), axis=0)
    for name, ends in (("follows", follows), ("buys", buys), ("bought_by", buys[::-1, ::-1])):
        (folder / f"{name}.csv").write_text("src,dst\n" + "".join(f"{u},{v}\n" for u, v in ends.tolist()))
    graphprep.convert(
        nodes={name: folder / f"{name}.csv" for name in ("user", "item")},
        edges={":".join(one): folder / f"{one[1]}.csv" for one in TYPES},
        out=folder / "store",
        labels=["user:y", "item:y"],
        partitions=2,
    )
    return folder / "store"


@pytest.fixture(scope="module", params=sorted(RULES))
def store(request, whole, tmp_path_factory):
    shares, options = RULES[request.param]
    out = tmp_path_factory.mktemp("split") / request.param
    more = {} if options.get("by") else {"reverse_types": ["user:buys:item=item:bought_by:user"]}
    graphprep.split(whole, out, shares, **{"by": "random", **options, **more})
    return out


class Parts:
    """The edges of a store by part: pairs of raw IDs, and which nodes are in a part."""

    def __init__(self, store: Path) -> None:
        graph = graphprep.load(str(store))
        self.edges = {}
        for name in TYPES:
            rows = graph.to_arrow(name, order="ids").to_pylist()
            pairs = [tuple(row[key] for key in list(row) if key != "edge_id")[:2] for row in rows]
            self.edges[name] = [(pair, row["split"]) for pair, row in zip(pairs, rows, strict=True)]
        self.nodes = {name: [row.get("split", 3) for row in graph.to_arrow(name).to_pylist()] for name in ("user", "item")}

    def pairs(self, name, part):
        return sorted(pair for pair, own in self.edges[name] if own == part)

    def messages(self, name):
        return sorted(pair for pair, own in self.edges[name] if own not in (1, 2))

    def secret(self):
        """Return the valid and test edges of all types, and their reverses: (type's ends, pair)."""
        found = {((name[0], name[2]), pair) for name in TYPES for part in (1, 2) for pair in self.pairs(name, part)}
        return found | {(ends[::-1], pair[::-1]) for ends, pair in found}


def check_messages(parts, found):
    """``found``: the edges of the graph by type. They are the train edges, and those in no part; none of them tells a secret."""
    assert {name: sorted(pairs) for name, pairs in found.items()} == {name: parts.messages(name) for name in TYPES}
    shown = {((name[0], name[2]), pair) for name, pairs in found.items() for pair in pairs}
    assert parts.secret()
    assert not shown & parts.secret()


def zipped(src, dst):
    return list(zip(np.asarray(src).tolist(), np.asarray(dst).tolist(), strict=True))


def test_pyg(store, tmp_path):
    parts = Parts(store)
    graphprep.export(store, tmp_path / "out", "pyg", partitions=1)
    data = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")
    check_messages(parts, {name: zipped(*data[name]["edge_index"]) for name in TYPES})
    sets = read_naively((tmp_path / "out/edge_sets.pt").read_bytes(), "edge_sets")
    for name in TYPES:
        for part, key in enumerate(NAMES):
            assert sorted(zipped(*sets[name][f"{key}_edge_label_index"])) == parts.pairs(name, part)
    for name, own in parts.nodes.items():
        for part, key in enumerate(NAMES):
            mask = data[name].get(f"{key}_mask")
            assert (mask is None) == (set(own) == {3})
            assert mask is None or mask.tolist() == [one == part for one in own]


def test_graphbolt(store, tmp_path):
    parts = Parts(store)
    graphprep.export(store, tmp_path / "out", "graphbolt")
    folder = tmp_path / "out/preprocessed"
    state = read_fused(folder / "fused_csc_sampling_graph.pt")
    tensors, types = state["independent_tensors"], state["edge_type_to_id"]
    first = {name: int(tensors["node_type_offset"][state["node_type_to_id"][name]]) for name in ("user", "item")}
    indptr = tensors["indptr"]
    dst = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
    found = {}
    for name in TYPES:
        own = tensors["type_per_edge"] == int(types[":".join(name)])
        found[name] = zipped(tensors["indices"][own] - first[name[0]], dst[own] - first[name[2]])
    check_messages(parts, found)
    tasks = yaml.safe_load((folder / "metadata.yaml").read_text())["tasks"]
    for part, key in enumerate(("train_set", "validation_set", "test_set")):
        sets = collections.defaultdict(list)
        for task in tasks:
            for one in task[key]:
                seeds = np.load(tmp_path / "out" / next(data["path"] for data in one["data"] if data["name"] == "seeds"))
                sets[one["type"]].append(sorted(map(tuple, seeds.tolist())) if seeds.ndim == 2 else sorted(seeds.tolist()))
        for name in TYPES:
            assert all(one == parts.pairs(name, part) for one in sets[":".join(name)])
            assert bool(sets[":".join(name)]) == any(own is not None for _, own in parts.edges[name])
        for name, own in parts.nodes.items():
            wanted = [node for node, one in enumerate(own) if one == part]
            assert all(one == wanted for one in sets[name])


def test_distdgl(store, tmp_path):
    parts = Parts(store)
    graphprep.export(store, tmp_path / "out", "distdgl")
    sets = read_tensors((tmp_path / "out/edge_sets.dgl").read_bytes())
    own_ids = [read_tensors((tmp_path / f"out/part{at}/orig_nids.dgl").read_bytes()) for at in range(2)]
    ranges = json.loads(next((tmp_path / "out").glob("*.json")).read_text())["node_map"]
    raw = np.full(NUM_USERS + NUM_ITEMS, -1)  # by DGL's IDs: partition after partition, in these type after type
    for name, borders in ranges.items():
        for ids, (low, high) in zip(own_ids, borders, strict=True):
            raw[low:high] = ids[name]
    for name in TYPES:
        for part, key in enumerate(NAMES):
            src, dst = raw[sets[f"{':'.join(name)}/{key}"]]
            assert sorted(zipped(src, dst)) == parts.pairs(name, part)
    sizes = [read_graph((tmp_path / f"out/part{at}/graph.dgl").read_bytes()).edge_data["_ID"].size for at in range(2)]
    assert sum(sizes) == sum(len(parts.messages(name)) for name in TYPES)
    for at in range(2):
        features = read_tensors((tmp_path / f"out/part{at}/node_feat.dgl").read_bytes())
        for name, own in parts.nodes.items():
            for part, key in enumerate(NAMES):
                mask = features.get(f"{name}/{key}_mask")
                assert (mask is None) == (set(own) == {3})
                assert mask is None or mask.astype(bool).tolist() == [own[node] == part for node in own_ids[at][name].tolist()]


def test_glt(store, tmp_path):
    parts = Parts(store)
    graphprep.export(store, tmp_path / "out", "glt", layout="CSR")
    for name in TYPES:
        kept = []
        for at in range(2):
            ids = read_naively((tmp_path / f"out/part{at}/graph/{'__'.join(name)}/eids.pt").read_bytes(), "eids")
            kept += [parts.edges[name][edge][0] for edge in ids.tolist()]
        assert sorted(kept) == parts.messages(name)
        assert not {((name[0], name[2]), pair) for pair in kept} & parts.secret()
        for part, key in enumerate(NAMES):
            found = read_naively((tmp_path / f"out/{key}-edges/{'__'.join(name)}.pt").read_bytes(), "__".join(name))
            assert sorted(zipped(*found)) == parts.pairs(name, part)


def test_valid_edges_become_messages_for_the_test(store, tmp_path):
    """``--message-edges train+valid`` adds what valid says, and nothing of test."""
    parts = Parts(store)
    graphprep.export(store, tmp_path / "out", "pyg", partitions=1, message_edges="train+valid")
    data = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")
    for name in TYPES:
        assert sorted(zipped(*data[name]["edge_index"])) == sorted(parts.messages(name) + parts.pairs(name, 1))


# ----------------------------------------------------------------------------------------- beside PyG's transforms


def test_sizes_and_leaks_are_those_of_random_link_split(whole, tmp_path):
    """PyG's own: sets are disjoint, an undirected edge is in one of them, and its message graph holds no other's edges."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    from torch_geometric.data import Data
    from torch_geometric.transforms import RandomLinkSplit

    graph = graphprep.load(str(whole))
    src, dst, _ = graph.edges(FOLLOWS)
    pairs = [pair for pair in zipped(src, dst) if pair[0] != pair[1]]
    (tmp_path / "e.csv").write_text("src,dst\n" + "".join(f"{u},{v}\n" for u, v in pairs))
    graphprep.convert(tmp_path / "e.csv", tmp_path / "store", edge_ids=True)
    graphprep.split(tmp_path / "store", tmp_path / "split", (0.8, 0.1, 0.1), by="random", of=["edges"], symmetric=True)
    graphprep.export(tmp_path / "split", tmp_path / "out", "pyg")
    ours = read_naively((tmp_path / "out/edge_sets.pt").read_bytes(), "edge_sets")
    theirs = RandomLinkSplit(0.1, 0.1, is_undirected=True, add_negative_train_samples=False, neg_sampling_ratio=0.0)(
        Data(edge_index=torch.tensor(pairs).T.contiguous(), num_nodes=NUM_USERS)
    )
    sizes, sets = [], []
    for key, data in zip(NAMES, theirs, strict=True):
        own = {frozenset(pair) for pair in zipped(*ours[f"{key}_edge_label_index"])}
        sizes.append((len(own), len({frozenset(pair) for pair in zipped(*data.edge_label_index.numpy())})))
        sets.append(own)
    assert all(abs(own - other) <= 1 for own, other in sizes)
    assert not sets[0] & sets[1] and not sets[0] & sets[2] and not sets[1] & sets[2]
    assert set.union(*sets) == {frozenset(pair) for pair in pairs}
    graph = read_naively((tmp_path / "out/data.pt").read_bytes(), "data")
    messages = zipped(*graph["edge_index"])
    assert {frozenset(pair) for pair in messages} == sets[0]
    assert len(messages) == 2 * len(sets[0])  # both directions, as in PyG's message graph
    assert abs(len(messages) - theirs[0].edge_index.shape[1]) <= 2
