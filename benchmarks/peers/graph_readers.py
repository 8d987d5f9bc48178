"""Edge lists into a library's own graph: ``graph_readers.py networkit|igraph|pyg INPUT OUT``, and ``… versions``.

Nothing but the counts is written: the graph stays in memory. ``pyg`` is what torch-geometric's users do: pandas, then
``to_torch_csc_tensor``.
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

_PACKAGES = {"networkit": ("networkit",), "igraph": ("igraph",), "pyg": ("torch", "torch-geometric", "pandas")}


def main() -> None:
    """Read, or print the versions."""
    reader, source, *rest = sys.argv[1:]
    if source == "versions":
        for package in _PACKAGES[reader]:
            __import__(package.replace("-", "_"))
        print(json.dumps({package: version(package) for package in _PACKAGES[reader]}))
        return
    num_edges = {"networkit": by_networkit, "igraph": by_igraph, "pyg": by_pyg}[reader](source)
    Path(rest[0]).mkdir(parents=True)
    (Path(rest[0]) / "counts.json").write_text(json.dumps({"num_edges": num_edges}))


def by_networkit(source: str) -> int:
    """Read a directed graph."""
    import networkit

    reader = networkit.graphio.EdgeListReader(" ", 0, continuous=True, directed=True)
    return int(reader.read(source).numberOfEdges())


def by_igraph(source: str) -> int:
    """Read a directed graph."""
    import igraph

    return int(igraph.Graph.Read_Edgelist(source, directed=True).ecount())


def by_pyg(source: str) -> int:
    """Read with pandas and turn the edges into a CSC tensor."""
    import pandas as pd
    import torch
    from torch_geometric.utils import to_torch_csc_tensor

    torch.set_num_threads(2)
    frame = pd.read_csv(source, sep=" ", header=None, dtype="int64")
    edges = torch.from_numpy(frame.to_numpy().T.copy())
    ids = torch.arange(edges.shape[1], dtype=torch.float64)  # else repeated edges would be one
    size = int(edges.max()) + 1
    return int(to_torch_csc_tensor(edges, ids, size=(size, size), is_coalesced=True).row_indices().numel())


if __name__ == "__main__":
    main()
