"""A flow as PyG's graph of a mini-batch, against a loop that meets each node once."""

from __future__ import annotations

import numpy as np
import pytest
from clients.graphs import shared_store

import graphprep

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")

from torch_geometric.data import HeteroData  # noqa: E402

pytestmark = pytest.mark.client("torch-geometric")
SEEDS = {"homogeneous": {"paper": [7, 3, 20]}, "heterogeneous": {"user": [3, 5], "tag": [1]}}


def naive(flow):
    """Return the nodes of each type as they are met, the edges of each, and how many of both in each hop."""
    nodes = {kind: flow.layer_parent_nid(-1, kind).tolist() for kind in flow.node_types}
    fresh = {kind: set(some) for kind, some in nodes.items()}
    edges = {kind: [] for kind in flow.edge_types}
    counts = {kind: [len(some)] for kind, some in nodes.items()} | {kind: [] for kind in edges}
    for block in reversed(range(flow.num_blocks)):
        met = {kind: [] for kind in nodes}
        for kind in edges:
            src, dst, eid = flow.block_edges(block, edge_type=kind)
            found = zip(
                *(flow.map_to_parent_nid(end).tolist() for end in (src, dst)), flow.map_to_parent_eid(eid).tolist(), strict=True
            )
            kept = [one for one in found if one[1] in fresh[kind[2]]]
            edges[kind] += kept
            counts[kind].append(len(kept))
            met[kind[0]] += [src for src, _, _ in kept]
        fresh = {kind: set(some) - set(nodes[kind]) for kind, some in met.items()}
        for kind, some in met.items():
            added = [node for node in dict.fromkeys(some) if node in fresh[kind]]
            nodes[kind] += added
            counts[kind].append(len(added))
    return nodes, edges, counts


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_pyg_has_each_node_once(name):
    graph = graphprep.load(str(shared_store(name)[1]))
    flow = graphprep.create_full_node_flow(graph, 3, SEEDS[name])
    data, (nodes, edges, counts) = flow.to_pyg(), naive(flow)
    data.validate()
    whole = graph.to_pyg()
    part = (lambda kind: data[kind]) if isinstance(data, HeteroData) else lambda _: data
    of_whole = (lambda kind: whole[kind]) if isinstance(data, HeteroData) else lambda _: whole
    for kind, some in nodes.items():
        own = part(kind)
        assert (own.n_id.tolist(), own.num_nodes, own.num_sampled_nodes) == (some, len(some), counts[kind])
        if kind in SEEDS[name]:
            assert (own.batch_size, own.input_id.tolist()) == (len(SEEDS[name][kind]), list(range(len(SEEDS[name][kind]))))
        else:
            assert "batch_size" not in own
        for column in ("x", "y", "train_mask", "val_mask"):
            assert (column in own) == (column in of_whole(kind))
            if column in own:
                assert torch.equal(own[column], of_whole(kind)[column][own.n_id])
    for kind, some in edges.items():
        own = part(kind)
        ends = (part(end).n_id[own.edge_index[i]].tolist() for i, end in enumerate((kind[0], kind[2])))
        assert list(zip(*ends, own.e_id.tolist(), strict=True)) == some
        assert own.num_sampled_edges == counts[kind]
        if "edge_attr" in of_whole(kind):
            every = torch.empty_like(of_whole(kind).edge_attr)
            every[of_whole(kind).edge_id] = of_whole(kind).edge_attr
            assert torch.equal(own.edge_attr, every[own.e_id])


def test_pyg_runs_a_model_that_trims_what_is_no_longer_needed():
    """``trim_to_layer`` gives the seeds what a model on the whole graph gives them: the full flow is exact for them."""
    from torch_geometric.nn import SAGEConv
    from torch_geometric.utils import trim_to_layer

    graph = graphprep.load(str(shared_store("homogeneous")[1]))
    whole = graph.to_pyg()
    torch.manual_seed(0)
    layers = [SAGEConv(whole.num_features, 8), SAGEConv(8, 8), SAGEConv(8, 3)]
    wanted = whole.x
    for layer in layers:
        wanted = layer(wanted, whole.edge_index).relu()
    data = graphprep.create_full_node_flow(graph, 3, [7, 3, 20]).to_pyg()
    found, edges = data.x, data.edge_index
    for number, layer in enumerate(layers):
        found, edges, _ = trim_to_layer(number, data.num_sampled_nodes, data.num_sampled_edges, found, edges)
        found = layer(found, edges).relu()
    np.testing.assert_allclose(found[:3].detach(), wanted[[7, 3, 20]].detach(), rtol=1e-4, atol=1e-6)


def test_in_a_temporal_flow_a_node_stands_once_for_each_time():
    graph = graphprep.load(str(shared_store("temporal")[1]))
    edge_type = graph.edge_types[0]
    time = next(one.name for one in graph.columns(edge_type) if one.role == "time")
    stamps = np.sort(graph.column(edge_type, time))
    seeds = np.arange(min(6, graph.num_nodes(edge_type[2])))
    options = {"fanouts": [-1, -1], "time_column": time, "batch_size": 6, "shuffle": False}
    times = np.resize(stamps[[-1, stamps.size // 2]] + 1, seeds.size)
    flow = graphprep.neighbor_sampling(graph, {edge_type[2]: seeds}, seed_times={edge_type[2]: times}, **options)[0]
    data = flow.to_pyg()
    part = (lambda kind: data[kind]) if isinstance(data, HeteroData) else lambda _: data
    for kind in graph.node_types:
        found = list(zip(part(kind).n_id.tolist(), part(kind).node_times.tolist(), strict=True))
        assert len(set(found)) == len(found)
    for kind in flow.edge_types:
        own = part(kind)
        src, dst = (part(end).node_times[own.edge_index[i]] for i, end in enumerate((kind[0], kind[2])))
        assert src.tolist() == dst.tolist()
        assert (graph.take(kind, time, own.e_id.numpy()) < dst.numpy()).all()
    assert sum(part(kind).e_id.numel() for kind in flow.edge_types) > 0


def test_copied_columns_have_their_roles(tmp_path):
    _, store = shared_store("homogeneous")
    np.save(tmp_path / "seeds.npy", np.arange(8))
    columns = {"copy_columns": ["paper:feat", "paper:y", "paper:part"]}
    graphprep.sample(str(store), str(tmp_path / "flows"), seeds=str(tmp_path / "seeds.npy"), typed_ids=True, full=2, **columns)
    own = graphprep.open_samples(tmp_path / "flows")[0].to_pyg()
    whole = graphprep.open_samples(tmp_path / "flows", graph=store)[0].to_pyg(features="feat")
    for name in ("x", "y", "train_mask", "val_mask", "test_mask", "edge_index"):
        assert torch.equal(own[name], whole[name]), name
    assert "edge_attr" not in own
