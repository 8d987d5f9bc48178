"""Samples as a Dataset of torch, read by the workers of a ``DataLoader``."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from clients.graphs import shared_store

import graphprep
from graphprep.model.errors import UsageError

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")

from torch.utils.data import DataLoader  # noqa: E402

pytestmark = pytest.mark.client("torch-geometric")


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    folder, (_, store) = tmp_path_factory.mktemp("samples"), shared_store("homogeneous")
    np.save(folder / "seeds.npy", np.arange(40))
    options = {"fanouts": [4, 3], "batch_size": 8, "epochs": 2}
    graphprep.sample(str(store), str(folder / "flows"), seeds=str(folder / "seeds.npy"), typed_ids=True, **options)
    return graphprep.open_samples(folder / "flows", graph=store)


@pytest.mark.parametrize(("workers", "how"), [(0, None), (2, "fork"), (2, "spawn")])
def test_workers_make_the_same_mini_batches(samples, workers, how):
    dataset = samples.epoch(1).to_torch("pyg", features=["feat"])
    assert isinstance(dataset, torch.utils.data.Dataset)
    loader = DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=how)
    found = list(loader)
    assert len(found) == len(dataset) == len(loader) == 5
    for data, flow in zip(found, samples.epoch(1), strict=True):
        wanted = flow.to_pyg(features=["feat"])
        assert data.keys() == wanted.keys()
        for name, value in wanted.to_dict().items():
            assert torch.equal(data[name], value) if torch.is_tensor(value) else data[name] == value, name


def test_shuffled_flows_come_once_each(samples):
    loader = DataLoader(samples.to_torch(), batch_size=None, shuffle=True, num_workers=2)
    found = [tuple(flow.layer_parent_nid(-1).tolist()) for flow in loader]
    assert sorted(found) == sorted(tuple(flow.layer_parent_nid(-1).tolist()) for flow in samples)
    assert next(iter(loader)).back.data["y"].size == 8


def test_drawn_flows_are_a_dataset_themselves(samples):
    flows = graphprep.neighbor_sampling(samples.graph, fanouts=[4, 3], batch_size=8)
    data = list(DataLoader(flows, batch_size=None, collate_fn=lambda flow: flow.to_pyg()))
    assert [one.batch_size for one in data] == [8] * 5
    again = pickle.loads(pickle.dumps(flows))
    assert [flow.edge_mapping.tolist() for flow in again] == [flow.edge_mapping.tolist() for flow in flows]


@pytest.mark.parametrize(("workers", "how"), [(0, None), (2, "fork")])
def test_drawn_flows_have_the_forms_of_those_from_files(samples, workers, how):
    """The flows drawn in the workers are those of the files of the same options, epoch after epoch."""
    drawn = graphprep.neighbor_sampling(samples.graph, fanouts=[4, 3], batch_size=8, epochs=2)
    assert drawn.num_epochs == samples.num_epochs
    for epoch in range(drawn.num_epochs):
        dataset = drawn.epoch(epoch).to_torch("pyg", features=["feat"])
        found = list(DataLoader(dataset, batch_size=None, num_workers=workers, multiprocessing_context=how))
        wanted = list(samples.epoch(epoch).to_torch("pyg", features=["feat"]))
        assert len(found) == len(wanted) == 5
        for one, other in zip(found, wanted, strict=True):
            assert torch.equal(one.n_id, other.n_id) and torch.equal(one.edge_index, other.edge_index)
            assert torch.equal(one.x, other.x)
    assert [flow.layer_sizes for flow in drawn.to_torch()] == [flow.layer_sizes for flow in samples]
    assert drawn.epoch(1)[1:3][0].edge_mapping.tolist() == samples.epoch(1)[1].edge_mapping.tolist()
    with pytest.raises(UsageError, match="there is no epoch 2: there are 2"):
        drawn.epoch(2)


def test_a_form_that_there_is_not_is_refused(samples):
    with pytest.raises(UsageError, match="there is no form 'nix'\n  fix: use one of flow, dgl, pyg"):
        samples.to_torch("nix")
