"""Run by an environment that has DGL: partitions with halos of several hops, DGL's own and those that were exported.

``dgl_halo_client.py make OUT GRAPH.npz PARTS HOPS…``: GRAPH.npz has the number of nodes of each node type, and the ends of the
edges of each edge type, [2, edges]. DGL's partitions go to ``OUT/dgl-HOPS``, the assignment, the same each time, to
``OUT/assigned``. ``read OUT HOPS…`` writes to ``OUT/seen.npz`` what DGL loads from these and from ``OUT/ours-HOPS``.
"""

from __future__ import annotations

import os
import sys
import types
from pathlib import Path

os.environ |= {"DGLBACKEND": "pytorch", "DGL_DIST_DEBUG": "1"}  # the second: DGL verifies every partition that it loads
graphbolt = types.ModuleType("dgl.graphbolt")
graphbolt.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
sys.modules["dgl.graphbolt"] = graphbolt

import dgl  # noqa: E402
import numpy as np  # noqa: E402
import torch  # noqa: E402
from dgl.data.utils import load_tensors  # noqa: E402
from dgl.distributed import load_partition, partition, partition_graph  # noqa: E402
from dgl.distributed.partition import load_partition_book  # noqa: E402


def make(out: Path, path: str, num_parts: int, all_hops: list[str]) -> None:
    """Partition the graph for each number of hops."""
    with np.load(path) as arrays:
        counts = {name: int(arrays[name]) for name in arrays if ":" not in name}
        edges = {tuple(name.split(":")): tuple(torch.from_numpy(arrays[name])) for name in arrays if ":" in name}
    graph = dgl.heterograph(edges, num_nodes_dict=counts)
    # DGL draws from generators of its threads, and fails where a partition has no node or edge of a type
    partition.random_choice = lambda parts, size: torch.arange(size).numpy() % parts
    for hops in all_hops:
        folder = out / f"dgl-{hops}"
        given = {"num_hops": int(hops), "part_method": "random", "graph_formats": ["coo", "csc"], "return_mapping": True}
        nodes, edge_ids = partition_graph(graph, "graph", num_parts, str(folder), **given)
        if len(counts) == 1:
            nodes, edge_ids = {graph.ntypes[0]: nodes}, {graph.canonical_etypes[0]: edge_ids}
        by_name = {":".join(name): ids.numpy() for name, ids in edge_ids.items()}
        np.savez(folder / "original.npz", **{name: ids.numpy() for name, ids in nodes.items()}, **by_name)
    book = load_partition_book(str(folder / "graph.json"), 0)[0]
    (out / "assigned").mkdir()
    for name, ids in nodes.items():
        parts = np.zeros(len(ids), np.int64)
        parts[ids] = book.nid2partid(torch.arange(len(ids)), name).numpy()
        np.savetxt(out / "assigned" / f"{name}.txt", parts, "%d")


def read(out: Path, all_hops: list[str]) -> None:
    """Read all partitions: rows of (type by name, original ID, whether it is the partition's own) of nodes and edges."""
    found = {}
    for hops in all_hops:
        with np.load(out / f"dgl-{hops}/original.npz") as original:
            found |= read_parts(out / f"dgl-{hops}", "graph.json", dict(original))
        folder = out / f"ours-{hops}"
        files = [load_tensors(str(file)) for kind in ("nids", "eids") for file in sorted(folder.glob(f"part*/orig_{kind}.dgl"))]
        names = dict.fromkeys(name for file in files for name in file)
        ours = {name: np.concatenate([file[name].numpy() for file in files if name in file]) for name in names}
        found |= read_parts(folder, "metadata.json", ours)
    np.savez(out / "seen.npz", **found)


def read_parts(folder: Path, config: str, original: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Read the partitions of a folder."""
    found = {}
    num_parts = load_partition_book(str(folder / config), 0)[0].num_partitions()
    for part in range(num_parts):
        graph, _, _, book, _, node_types, edge_types = load_partition(str(folder / config), part, load_feats=False)
        assert torch.equal(graph.in_degrees(), torch.bincount(graph.edges()[1], minlength=graph.num_nodes()))  # of csc, of coo
        edge_names = [":".join(name) for name in edge_types]
        for key, data, names, split in (
            ("node", graph.ndata, list(node_types), book.map_to_per_ntype),
            ("edge", graph.edata, edge_names, book.map_to_per_etype),
        ):
            kinds, ids = (some.numpy() for some in split(data["_ID"]))
            known = np.array([original[names[kind]][one] for kind, one in zip(kinds, ids, strict=True)], np.int64)
            ranks = np.argsort(np.argsort(names))  # DGL's own types are in another order
            rows = np.stack([ranks[kinds], known, data[f"inner_{key}"].numpy()])
            found[f"{folder.name} {part} {key}"] = rows
    return found


if __name__ == "__main__":
    if sys.argv[1] == "make":
        make(Path(sys.argv[2]), sys.argv[3], int(sys.argv[4]), sys.argv[5:])
    else:
        read(Path(sys.argv[2]), sys.argv[3:])
