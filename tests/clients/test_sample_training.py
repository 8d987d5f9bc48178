"""A GraphSAGE on Cora, trained from samples and by DGL's live sampling: the same model, from the same weights."""

from __future__ import annotations

import json
import sysconfig

import numpy as np
import pytest
from clients.dgl_environment import GRAPHBOLT, ROOT

import graphprep

pytestmark = [pytest.mark.client("graphbolt"), pytest.mark.xdist_group("graphbolt"), pytest.mark.slow]
FANOUTS, EPOCHS, RUNS = (10, 5), 30, 5


def test_samples_train_as_well_as_live_sampling(real_samples, tmp_path):
    GRAPHBOLT.find_python()
    source = real_samples / "gnnbench_npz/cora.npz"
    store = tmp_path / "store"
    graphprep.convert(str(source), str(store), undirected=True)
    with np.load(source, allow_pickle=False) as cora:
        labels = cora["labels"].astype(np.int64)
        features = np.zeros(cora["attr_shape"], np.float32)
        features[np.repeat(np.arange(len(features)), np.diff(cora["attr_indptr"])), cora["attr_indices"]] = 1
    order = np.random.default_rng(0).permutation(labels.size)
    train = np.concatenate([order[labels[order] == kind][:20] for kind in range(labels.max() + 1)])
    test = np.setdiff1d(order, train)[:1500]
    np.savez(tmp_path / "nodes.npz", features=features, labels=labels, train=train, test=test)
    np.save(tmp_path / "train.npy", train)
    for run in range(RUNS):
        options = {"fanouts": list(FANOUTS), "add_self_loop": True, "batch_size": 32, "epochs": EPOCHS, "seed": run}
        out = str(tmp_path / f"flows-{run}")
        graphprep.sample(str(store), out, seeds=str(tmp_path / "train.npy"), typed_ids=True, **options)
    arguments = [
        ROOT,
        sysconfig.get_paths()["purelib"],
        store,
        tmp_path / "nodes.npz",
        tmp_path / "flows-{}",
        *map(str, FANOUTS),
    ]
    found = {name: np.array(some) for name, some in json.loads(GRAPHBOLT.run("sage_client.py", *arguments)).items()}
    error = np.sqrt(sum(some.var(ddof=1) / RUNS for some in found.values()))
    assert found["live"].mean() > 0.7
    assert found["samples"].mean() > found["live"].mean() - max(0.01, 2 * error)
