"""Negatives as trainers take them: GraphBolt and PyG learn from exported sets. ``make test-clients`` runs these."""

from __future__ import annotations

import json

import numpy as np
import pytest
from clients.dgl_environment import GRAPHBOLT

import graphprep


@pytest.fixture(scope="module")
def links(tmp_path_factory):
    """Return a store of eight communities, which are easy to learn, with a split and negatives."""
    folder, rng = tmp_path_factory.mktemp("links"), np.random.default_rng(0)
    side = rng.integers(0, 8, 600)
    pairs = np.stack([rng.integers(0, 25, 600) + 25 * side, rng.integers(0, 25, 600) + 25 * side], axis=1)
    (folder / "links.txt").write_text("".join(f"{u} {v}\n" for u, v in pairs if u != v))
    graphprep.convert(str(folder / "links.txt"), str(folder / "raw"), format="edges", num_nodes=200)
    given = {"by": "random", "of": ["edges"], "symmetric": True, "negatives": "train=2,val=9,test=9"}
    graphprep.split(str(folder / "raw"), str(folder / "links"), "0.8/0.1/0.1", **given)
    return folder / "links"


@pytest.mark.client("graphbolt")
@pytest.mark.xdist_group("graphbolt")
def test_graphbolt_learns_from_the_sets(links, tmp_path):
    GRAPHBOLT.find_python()
    graphprep.export(str(links), str(tmp_path / "out"), "graphbolt")
    said = json.loads(GRAPHBOLT.run("graphbolt_link_client.py", tmp_path / "out").splitlines()[-1])
    assert said["losses"][-1] < 0.8 * said["losses"][0]
    labels = np.load(tmp_path / "out/preprocessed/sets/link_prediction/_N___E___N-validation-labels.npy")
    assert len(said["queries"]) == labels.sum() > 40
    for edges, negatives in zip(said["queries"], said["negatives"], strict=True):
        ((src, _),) = edges
        assert [other for other, _ in negatives] == [src] * 9


@pytest.mark.client("torch-geometric")
def test_pyg_learns_edges_to_label(links, tmp_path):
    """On the whole graph at once: PyG's own loaders of neighbours need pyg-lib or torch-sparse, which are seldom to be had."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    from torch_geometric.data import Data
    from torch_geometric.nn import GCNConv

    graphprep.export(str(links), str(tmp_path / "out"), "pyg")
    data, sets = Data.from_dict(torch.load(tmp_path / "out/data.pt")), torch.load(tmp_path / "out/edge_sets.pt")
    assert data.validate()
    torch.manual_seed(0)
    first, second = torch.nn.Embedding(data.num_nodes, 16), GCNConv(16, 16)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
    losses = []
    for _ in range(30):
        found = second(first.weight, data.edge_index)
        src, dst = found[sets["train_edge_label_index"]]
        loss = torch.nn.functional.binary_cross_entropy_with_logits((src * dst).sum(1), sets["train_edge_label"].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.8 * losses[0]


@pytest.mark.client("torch-geometric")
def test_sets_are_like_those_of_random_link_split(links, tmp_path):
    """Names, dtypes and order of ``RandomLinkSplit``; its evaluators take them alike."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")
    from torch_geometric.data import Data
    from torch_geometric.transforms import RandomLinkSplit

    graphprep.export(str(links), str(tmp_path / "out"), "pyg")
    sets = torch.load(tmp_path / "out/edge_sets.pt")
    whole = Data(
        edge_index=torch.cat(
            [sets[f"{part}_edge_label_index"][:, : sets[f"{part}_edge_label_id"].numel()] for part in ("train", "val", "test")],
            dim=1,
        ),
        num_nodes=200,
    )
    theirs = RandomLinkSplit(num_val=0.1, num_test=0.1, neg_sampling_ratio=9.0)(whole)[1]
    assert sets["val_edge_label"].dtype == theirs.edge_label.dtype
    assert sets["val_edge_label_index"].dtype == theirs.edge_label_index.dtype
    num = sets["val_edge_label_id"].numel()
    assert sets["val_edge_label"].tolist() == [1.0] * num + [0.0] * 9 * num
    assert theirs.edge_label.diff().le(0).all()  # edges first there, too
    edges = set(map(tuple, whole.edge_index.T.tolist()))
    assert not edges & set(map(tuple, sets["val_edge_label_index"][:, num:].T.tolist()))


def test_ogb_evaluators_take_the_dictionaries(links, tmp_path):
    """``torch.load`` reads them as OGB does; the shapes are those of ogbl-citation2."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    graphprep.export(str(links), str(tmp_path / "out"), "ogb")
    split = {part: torch.load(tmp_path / f"out/split/{part}.pt") for part in ("train", "valid", "test")}
    num = split["test"]["source_node"].numel()
    assert split["test"]["target_node_neg"].shape == (num, 9)
    assert split["test"]["target_node"].shape == (num,)
