"""Trains the same GraphSAGE from samples and by DGL's live sampling, in GraphBolt's environment; prints both accuracies as JSON.

``sage_client.py ROOT PACKAGES STORE NODES.npz SAMPLES FANOUTS…``: ``ROOT`` has graphprep, ``PACKAGES`` what it needs; ``NODES`` has
``features``, ``labels``, and the IDs ``train`` and ``test``; ``SAMPLES`` has ``{}`` where the number of a run stands.
"""

from __future__ import annotations

import itertools
import json
import sys

import dgl
import numpy as np
import torch
from dgl.dataloading import DataLoader, NeighborSampler
from dgl.nn import SAGEConv

sys.path += sys.argv[1:3]  # what graphprep needs is found behind DGL's own packages
import graphprep

STORE, NODES, SAMPLES, FANOUTS = *sys.argv[3:6], list(map(int, sys.argv[6:]))  # from the seeds on
RUNS = 5
torch.set_num_threads(1)


class Sage(torch.nn.Module):
    """As many layers as there are fan-outs, the mean of neighbours, dropout between."""

    def __init__(self, num_features: int, num_classes: int) -> None:
        super().__init__()
        sizes = [num_features, *[64] * (len(FANOUTS) - 1), num_classes]
        self.layers = torch.nn.ModuleList(SAGEConv(*some, "mean") for some in itertools.pairwise(sizes))

    def forward(self, blocks, found):
        """Return the classes of the seeds."""
        for number, (layer, block) in enumerate(zip(self.layers, blocks, strict=True)):
            found = layer(block, torch.nn.functional.dropout(found, 0.5, self.training))
            found = found.relu() if number + 1 < len(self.layers) else found
        return found


def train(run, epochs):
    """Return the accuracy on the test nodes, with all neighbours, after training on mini-batches of blocks."""
    torch.manual_seed(run)
    model = Sage(features.shape[1], int(labels.max()) + 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for batches in epochs:
        model.train()
        for blocks in batches:
            found = model(blocks, features[blocks[0].srcdata[dgl.NID]])
            loss = torch.nn.functional.cross_entropy(found, labels[blocks[-1].dstdata[dgl.NID]])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    model.eval()
    with torch.no_grad():
        found = model([graph] * len(FANOUTS), features).argmax(dim=1)
    test = nodes["test"]
    return (found[test] == labels[test]).double().mean().item()


def live(run, num_epochs, batch_size):
    """Yield the mini-batches of each epoch, drawn by DGL."""
    dgl.seed(run)
    sampler = NeighborSampler(FANOUTS[::-1])
    for _ in range(num_epochs):
        yield (blocks for _, _, blocks in DataLoader(graph, nodes["train"], sampler, batch_size=batch_size, shuffle=True))


def sampled(samples):
    """Yield the mini-batches of each epoch, drawn beforehand; a node's own loop stays out of the mean of its neighbours."""
    for epoch in range(samples.num_epochs):
        yield (flow.to_dgl_blocks([], added_self_loops=False) for flow in samples.epoch(epoch))


store = graphprep.load(STORE)
graph = store.to_dgl()
with np.load(NODES) as arrays:
    nodes = {name: torch.from_numpy(arrays[name]) for name in arrays}
features, labels = nodes["features"], nodes["labels"]
found = {"live": [], "samples": []}
for run in range(RUNS):
    samples = graphprep.open_samples(SAMPLES.format(run), graph=store)
    size = samples.manifest.options["batch_size"]
    found["samples"].append(train(run, sampled(samples)))
    found["live"].append(train(run, live(run, samples.num_epochs, size)))
print(json.dumps(found))
