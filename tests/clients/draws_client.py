"""Draws in-neighbours of nodes again and again, in GraphBolt's environment: with DGL's sampling, and with GraphBolt's.

``draws_client.py EDGES.npz OUT.npz FANOUT TIMES``: edges are ``src`` and ``dst``, and ``seeds`` whose in-neighbours are drawn. What
is drawn are edge IDs: ``dgl``, ``graphbolt`` [TIMES, seeds, FANOUT], ascending for each seed, and with replacement the same.
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
drawn = {name: [] for name in ("dgl", "graphbolt", "dgl_replace", "graphbolt_replace")}


def by_seed(ids):
    """Return the edge IDs of each seed, ascending."""
    return torch.stack([ids[dst[ids] == seed].sort().values for seed in seeds])


for _ in range(times):
    for end, replace in (("", False), ("_replace", True)):
        drawn["dgl" + end].append(by_seed(dgl.sampling.sample_neighbors(graph, seeds, fanout, replace=replace).edata[dgl.EID]))
        some = csc._sample_neighbors(seeds, torch.LongTensor([fanout]), replace=replace, return_eids=True)
        drawn["graphbolt" + end].append(by_seed(order[some.original_edge_ids]))
np.savez(out, **{name: torch.stack(some).numpy() for name, some in drawn.items()})
