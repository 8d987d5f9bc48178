"""Neighbourhoods of seeds, drawn in memory: ``neighbor_samples.py PEER STORE SEEDS FANOUTS BATCH``, and ``… PEER versions``.

STORE is a store of one type and one partition, whose CSC arrays and edge IDs every peer reads; SEEDS a text of node IDs. Every
batch is drawn with its nodes numbered and the IDs of its edges, and dropped. Printed are the edges that were drawn and what it
took, from the graph in memory on: seconds on the clock and of CPU.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

EDGES = "part-00000/edges/_N___E___N/csc"
PACKAGES = {"graphbolt": ("dgl", "torch"), "pyg": ("torch-geometric", "torch")}


def main() -> None:
    """Draw, or print the versions."""
    peer, store, *rest = sys.argv[1:]
    draw = {"graphbolt": graphbolt, "pyg": pyg}[peer]
    if store == "versions":
        extra = next(draw(np.array([0, 1]), *np.zeros((3, 1), np.int64), [1], 1))
        print(json.dumps({name: version(name) for name in PACKAGES[peer]} | ({"draws with": extra} if extra else {})))
        return
    indptr, indices, ids = (np.load(Path(store) / EDGES / f"{name}.npy") for name in ("indptr", "indices", "edge_ids"))
    seeds, fanouts, batch = np.loadtxt(rest[0], np.int64, ndmin=1), list(map(int, rest[1].split(","))), int(rest[2])
    found = draw(indptr, indices, ids, seeds, fanouts, batch)
    first = next(found)  # what is made once
    begin, cpu = time.perf_counter(), time.process_time()
    num_edges = sum(found)
    told = {"sample_s": time.perf_counter() - begin, "sample_cpu_s": time.process_time() - cpu}
    print(json.dumps({"num_edges": num_edges, "draws_with": first, **told}))


def graphbolt(indptr: Any, indices: Any, ids: Any, seeds: Any, fanouts: list[int], batch: int) -> Iterator[Any]:
    """Yield how it draws, then the number of edges of every batch."""
    import torch
    from dgl import graphbolt as gb

    attributes = {gb.ORIGINAL_EDGE_ID: torch.from_numpy(ids)}
    graph = gb.fused_csc_sampling_graph(torch.from_numpy(indptr), torch.from_numpy(indices), edge_attributes=attributes)
    yield f"{torch.get_num_threads()} threads"
    shuffled = torch.from_numpy(seeds)[torch.randperm(len(seeds))].to(torch.from_numpy(indices).dtype)
    items = gb.ItemSampler(gb.ItemSet(shuffled, names="seed_nodes"), batch_size=batch)
    for flow in items.sample_neighbor(graph, fanouts):
        yield sum(len(one.sampled_csc.indices) for one in flow.sampled_subgraphs)


def pyg(indptr: Any, indices: Any, ids: Any, seeds: Any, fanouts: list[int], batch: int) -> Iterator[Any]:
    """Yield how it draws, then the number of edges of every batch."""
    import torch
    import torch_geometric.typing as have
    from torch_geometric.data import Data
    from torch_geometric.loader import NeighborLoader

    if not (have.WITH_PYG_LIB or have.WITH_TORCH_SPARSE):
        raise ImportError("torch-geometric draws neighbours with pyg-lib or torch-sparse, and neither is installed")
    sources = torch.from_numpy(indices.astype(np.int64))
    destinations = torch.from_numpy(np.repeat(np.arange(indptr.size - 1), np.diff(indptr)))
    data = Data(edge_index=torch.stack([sources, destinations]), num_nodes=indptr.size - 1)
    nodes = torch.from_numpy(seeds.astype(np.int64))
    loader = NeighborLoader(data, fanouts, nodes, batch_size=batch, shuffle=True)
    yield "pyg-lib" if have.WITH_PYG_LIB else "torch-sparse"
    for flow in loader:
        yield flow.edge_index.shape[1]


if __name__ == "__main__":
    main()
