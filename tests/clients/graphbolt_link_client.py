"""Run by an environment that has GraphBolt: learns to tell edges from negatives, by the sets of an exported dataset.

``graphbolt_link_client.py DATASET``: prints, as JSON, the loss of each epoch, and what queries the validation set has: the edges
and the negatives of each.
"""

from __future__ import annotations

import json
import os
import sys

os.environ["DGLBACKEND"] = "pytorch"

import dgl.graphbolt as gb
import torch
from dgl.nn import SAGEConv

dataset = gb.OnDiskDataset(sys.argv[1], include_original_edge_id=True, force_preprocess=False).load()
(task,) = dataset.tasks
torch.manual_seed(0)
table = torch.nn.Embedding(dataset.graph.total_num_nodes, 16)
layer = SAGEConv(16, 16, "mean")
optimizer = torch.optim.Adam([*table.parameters(), *layer.parameters()], lr=0.05)


def scores(batch):
    """Return the score of each pair of a batch."""
    (block,) = batch.blocks
    hidden = layer(block, table(batch.input_nodes.long()))
    src, dst = batch.compacted_seeds.T
    return (hidden[src] * hidden[dst]).sum(1)


def batches(items, size, *, shuffle=False):
    """Load batches with GraphBolt's own pipeline, without its sampler of negatives."""
    pipe = gb.ItemSampler(items, batch_size=size, shuffle=shuffle).sample_neighbor(dataset.graph, [5])
    return gb.DataLoader(pipe)


losses = []
for _ in range(12):
    total = 0.0
    for batch in batches(task.train_set, 60):
        loss = torch.nn.functional.binary_cross_entropy_with_logits(scores(batch), batch.labels.float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += float(loss)
    losses.append(total)
found = [(batch.seeds, batch.labels, batch.indexes) for batch in batches(task.validation_set, 60)]
seeds, labels, indexes = (torch.cat(one) for one in zip(*found, strict=True))
queries = [seeds[(indexes == number) & labels].tolist() for number in indexes.unique().tolist()]
negatives = [seeds[(indexes == number) & ~labels].tolist() for number in indexes.unique().tolist()]
print(json.dumps({"losses": losses, "queries": queries, "negatives": negatives}))
