"""Draws in-neighbours of nodes again and again, in GraphBolt's environment: with DGL's sampling, and with GraphBolt's.

``draws_client.py EDGES.npz OUT.npz FANOUT TIMES``: edges are ``src`` and ``dst``; what is drawn are edge IDs, [TIMES, nodes, …].
"""

from __future__ import annotations

import sys

import dgl
import dgl.graphbolt as gb
import numpy as np
import torch

edges, out, fanout, times = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with np.load(edges) as found:
    src, dst, num_nodes = torch.from_numpy(found["src"]), torch.from_numpy(found["dst"]), int(found["num_nodes"])
    seeds = torch.from_numpy(found["seeds"])
dgl.seed(1)
torch.manual_seed(1)
graph = dgl.graph((src, dst), num_nodes=num_nodes)
order = torch.argsort(dst, stable=True)
indptr = torch.zeros(num_nodes + 1, dtype=torch.int64)
indptr[1:] = torch.bincount(dst, minlength=num_nodes).cumsum(0)
csc = gb.fused_csc_sampling_graph(indptr, src[order])
drawn = {"dgl": [], "graphbolt": []}
for _ in range(times):
    some = dgl.sampling.sample_neighbors(graph, seeds, fanout)
    ids, ends = some.edata[dgl.EID], some.edges(order="eid")[1]
    drawn["dgl"].append(torch.stack([ids[ends == seed].sort().values for seed in seeds]))
    some = csc._sample_neighbors(seeds, torch.LongTensor([fanout]), return_eids=True)
    ids = order[some.original_edge_ids]
    drawn["graphbolt"].append(torch.stack([ids[dst[ids] == seed].sort().values for seed in seeds]))
np.savez(out, **{name: torch.stack(some).numpy() for name, some in drawn.items()})
