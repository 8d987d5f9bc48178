"""The trainers' own partitioners: ``trainer_parts.py glt|pyg|dgl ARRAYS OUT PARTITIONS``, and ``… glt check OUT|versions``.

ARRAYS is a folder as inputs.py makes it: the ends of every edge type and a feature of every node type as ``.npy``, mapped and
copied to tensors here. Nodes are assigned at random, as all three can. What is missing for that on a machine without
accelerator or METIS is replaced: the compiled module of GraphLearn, which its partitioner does not call, torch_sparse, which it
does not either, and METIS in PyTorch Geometric, by a random assignment, which is quicker.
"""

from __future__ import annotations

import json
import sys
import types
from importlib.metadata import version
from pathlib import Path

import numpy as np

_PACKAGES = {"glt": ("graphlearn-torch", "torch"), "pyg": ("torch-geometric", "torch"), "dgl": ("dgl", "torch")}


def main() -> None:
    """Partition, or print the versions."""
    peer, *args = sys.argv[1:]
    if args == ["versions"]:
        {"glt": _import_glt, "pyg": _import_pyg, "dgl": _import_dgl}[peer]()
        print(json.dumps({name: version(name) for name in _PACKAGES[peer]}))
        return
    if args[0] == "check":
        {"glt": check_glt, "pyg": check_pyg, "dgl": check_dgl}[peer](Path(args[1]))
        return
    arrays, out, num_parts = Path(args[0]), Path(args[1]), int(args[2])
    {"glt": partition_glt, "pyg": partition_pyg, "dgl": partition_dgl}[peer](arrays, out, num_parts)


def partition_glt(arrays: Path, out: Path, num_parts: int) -> None:
    """Run GraphLearn's RandomPartitioner with chunks of a million edges, which is faster than its default."""
    partition, torch = _import_glt()
    num_nodes, feats, edges = _load(arrays, torch)
    partition.RandomPartitioner(
        str(out), num_parts, num_nodes, edges, node_feat=feats, edge_assign_strategy="by_src", chunk_size=1_000_000
    ).partition()


def partition_pyg(arrays: Path, out: Path, num_parts: int) -> None:
    """Run PyTorch Geometric's Partitioner."""
    hetero_data, partitioner, torch = _import_pyg()
    num_nodes, feats, edges = _load(arrays, torch)
    data = hetero_data()
    for name, count in num_nodes.items():
        data[name].num_nodes, data[name].x = count, feats[name]
    for name, ends in edges.items():
        data[name].edge_index = ends
    partitioner(data, num_parts, str(out)).generate_partition()


def partition_dgl(arrays: Path, out: Path, num_parts: int) -> None:
    """Run dgl.distributed.partition_graph; its pipeline for larger graphs is a script of its repository."""
    dgl, torch = _import_dgl()
    num_nodes, feats, edges = _load(arrays, torch)
    graph = dgl.heterograph({name: (ends[0], ends[1]) for name, ends in edges.items()}, num_nodes)
    for name, rows in feats.items():
        graph.nodes[name].data["feat"] = rows
    dgl.distributed.partition_graph(graph, "shop", num_parts, str(out), part_method="random", graph_formats=["csc"])


# ---- what is in partitions, whoever wrote them: edges of each type, and the sum of a hash of their ends


def check_glt(out: Path) -> None:
    """Print the edges of all partitions."""
    import torch

    found: dict[str, list] = {}
    for folder in sorted(out.glob("part*/graph/*")):
        rows, cols = (torch.load(folder / f"{name}.pt").numpy() for name in ("rows", "cols"))
        found.setdefault(folder.name.replace("__", ":"), []).append((rows, cols))
    _print_edges(found)


def check_pyg(out: Path) -> None:
    """Print the edges of all partitions."""
    import torch

    found: dict[str, list] = {}
    for path in sorted(out.glob("part_*/graph.pt")):
        for name, edges in torch.load(path, weights_only=False).items():
            found.setdefault(":".join(name), []).append((edges["row"].numpy(), edges["col"].numpy()))
    _print_edges(found)


def check_dgl(out: Path) -> None:
    """Print the edges that partitions own. Their ends go by new IDs, so that these are only counted."""
    dgl, _ = _import_dgl()
    (config,) = out.glob("*.json") if not (out / "metadata.json").exists() else [out / "metadata.json"]
    types = json.loads(config.read_text())["etypes"]
    counts = dict.fromkeys(types, 0)
    for part in range(json.loads(config.read_text())["num_parts"]):
        graph = dgl.distributed.load_partition(str(config), part)[0]
        owned = graph.edata["inner_edge"].bool()
        kinds = graph.edata[dgl.ETYPE][owned] if dgl.ETYPE in graph.edata else None
        for name, number in types.items():
            counts[name] += int(owned.sum() if kinds is None else (kinds == number).sum())
    print(json.dumps({"num_edges": counts}))


def _print_edges(found: dict[str, list]) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from inputs import edge_checksum

    checksums = {name: f"{sum(edge_checksum(*ends) for ends in parts) % 2**64:016x}" for name, parts in found.items()}
    print(
        json.dumps(
            {"num_edges": {name: sum(len(ends[0]) for ends in parts) for name, parts in found.items()}, "checksum": checksums}
        )
    )


# ---- their parts


def _load(arrays: Path, torch: object) -> tuple[dict, dict, dict]:
    counts = json.loads((arrays / "counts.json").read_text())
    feats = {name: torch.from_numpy(np.load(arrays / f"{name}-feat.npy")) for name in counts["nodes"]}
    edges = {}
    for name in counts["edges"]:
        ends = [torch.from_numpy(np.load(arrays / f"{name.replace(':', '-')}-{end}.npy")) for end in ("src", "dst")]
        edges[tuple(name.split(":"))] = torch.stack(ends)
    return counts["nodes"], feats, edges


def _import_glt() -> tuple[object, object]:
    import torch
    import torch_geometric.loader  # noqa: F401 (looks whether torch_sparse is there, before a stand-in is)

    compiled = types.ModuleType("graphlearn_torch.py_graphlearn_torch")
    compiled.QueueTimeoutError = type("QueueTimeoutError", (Exception,), {})
    compiled.__getattr__ = lambda name: type(name, (), {})
    sparse = types.ModuleType("torch_sparse")
    sparse.SparseTensor = type("SparseTensor", (), {})
    sys.modules |= {"graphlearn_torch.py_graphlearn_torch": compiled, "torch_sparse": sparse}
    device = torch.device
    torch.device = types.SimpleNamespace  # defaults say device 0, which needs an accelerator
    torch.device = type("Device", (), {"__new__": lambda cls, *given: device("cpu") if given == (0,) else device(*given)})
    from graphlearn_torch import partition

    torch.device = device
    return partition, torch


def _import_pyg() -> tuple[object, object, object]:
    import torch
    from torch_geometric.data import HeteroData
    from torch_geometric.distributed import Partitioner
    from torch_geometric.loader import ClusterData

    def assign(self: object, edge_index: object, num_nodes: int) -> object:
        return torch.randint(self.num_parts, (num_nodes,), generator=torch.Generator().manual_seed(1))

    ClusterData._metis = assign
    return HeteroData, Partitioner, torch


def _import_dgl() -> tuple[object, object]:
    import torch

    graphbolt = types.ModuleType("dgl.graphbolt")  # its library is for older torch
    graphbolt.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
    sys.modules["dgl.graphbolt"] = graphbolt
    import dgl

    return dgl, torch


if __name__ == "__main__":
    main()
