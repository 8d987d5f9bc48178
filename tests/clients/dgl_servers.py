"""Run by an environment that has DGL: a server for each of two partitions, and a trainer that samples from both.

``dgl_servers.py OUT.npz EXPORT`` saves all in-edges by type, in raw IDs. Features are not asked for: servers of two partitions
would overwrite each other's on one machine, where DGL keeps them in shared memory under the same names.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import types
from pathlib import Path

graphbolt = types.ModuleType("dgl.graphbolt")  # its compiled part wants another torch
graphbolt.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
sys.modules["dgl.graphbolt"] = graphbolt

_PATIENCE_S = 120


def serve(rank: int, addresses: str, config: str) -> None:
    """Serve a partition until the trainer leaves."""
    import dgl

    dgl.distributed.DistGraphServer(rank, addresses, 1, 1, config, disable_shared_mem=True, graph_format=["csc", "coo"]).start()


def train(addresses: str, config: str, out: str) -> None:
    """Sample all in-edges."""
    import dgl
    import numpy as np
    import torch
    from dgl.distributed.partition import load_partition_book

    dgl.distributed.initialize(addresses)
    graph = dgl.distributed.DistGraph("graph", gpb=load_partition_book(config, 0)[0])
    nodes, edges = (_originals(Path(config).parent, name) for name in ("orig_nids", "orig_eids"))
    found = {}
    for name in graph.ntypes:
        sampled = dgl.distributed.sample_etype_neighbors(graph, {name: torch.arange(graph.num_nodes(name))}, -1)
        for kind in graph.canonical_etypes:
            if kind[2] == name:
                src, dst, ids = sampled.edges(form="all", etype=kind)
                key, rows = ":".join(kind), sampled.edges[kind].data["_ID"][ids]
                ends = {"src": nodes[kind[0]][src], "dst": nodes[name][dst], "id": edges[key][rows]}
                found |= {f"{key} {end}": values for end, values in ends.items()}
    np.savez(out, **{name: values.numpy() for name, values in found.items()})
    dgl.distributed.exit_client()


def _originals(folder: Path, name: str):
    import torch
    from dgl.data.utils import load_tensors

    parts = [load_tensors(str(folder / f"part{part}" / f"{name}.dgl")) for part in range(2)]
    return {key: torch.cat([one[key] for one in parts]) for key in parts[0]}


def main(out: str, folder: str) -> int:
    """Start servers and the trainer; return the trainer's exit code."""
    config, addresses = str(Path(folder) / "metadata.json"), f"{out}.addresses"
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    Path(addresses).write_text("".join(f"127.0.0.1 {one.getsockname()[1]}\n" for one in sockets))
    for one in sockets:
        one.close()
    os.environ |= {"DGLBACKEND": "pytorch", "DGL_DIST_MODE": "distributed", "DGL_NUM_SERVER": "1", "DGL_NUM_SAMPLER": "0"}
    os.environ |= {"DGL_NUM_CLIENT": "1", "DGL_IP_CONFIG": addresses, "DGL_CONF_PATH": config}
    context = multiprocessing.get_context("spawn")
    servers = [context.Process(target=serve, args=(rank, addresses, config)) for rank in range(2)]
    trainer = context.Process(target=train, args=(addresses, config, out))
    for process in (*servers, trainer):
        process.start()
    trainer.join(_PATIENCE_S)
    for process in (trainer, *servers):
        process.join(10 if trainer.exitcode == 0 else 0)
        process.kill()
    return 0 if trainer.exitcode == 0 else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
