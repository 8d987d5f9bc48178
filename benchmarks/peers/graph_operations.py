"""One operation on a graph in memory: ``graph_operations.py PEER OPERATION STORE OUT ARGUMENTS…``, and ``… PEER versions``.

STORE is a store of one type and one partition, whose arrays (CSC and edge IDs) every peer reads. OUT becomes a folder: arrays
like these from scipy, dgl and graphprep's own functions of arrays; from networkit and igraph a file in the format that they
write fastest; of partitioners ``parts.npy``; of statistics ``stats.json``. What the operation itself took, from the peer's
graph in memory to the peer's graph in memory, is printed: seconds of CPU on all threads. Edge IDs go along where the peer
carries them: in scipy as the matrix's values, in dgl.
"""

from __future__ import annotations

import json
import sys
import time
import types
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

PACKAGES = {
    "scipy": ("scipy", "numpy"),
    "networkit": ("networkit", "numpy"),
    "igraph": ("igraph", "numpy"),
    "dgl": ("dgl", "torch", "numpy"),
    "pymetis": ("pymetis", "numpy"),
    "arrays": ("graphprep", "numpy"),
}
EDGES = "part-00000/edges/_N___E___N/csc"


def main() -> None:
    """Run an operation, or print the versions."""
    peer, operation, *rest = sys.argv[1:]
    if operation == "versions":
        for package in PACKAGES[peer]:
            import_dgl() if package == "dgl" else __import__(package)
        print(json.dumps({package: version(package) for package in PACKAGES[peer]}))
        return
    if peer == "check":
        check(Path(rest[0]), Path(rest[1]), operation)
        return
    store, out, arguments = Path(rest[0]), Path(rest[1]), rest[2:]
    kind = {
        "scipy": Scipy,
        "networkit": NetworKit,
        "igraph": IGraph,
        "dgl": Dgl,
        "pymetis": PyMetis,
        "arrays": Arrays,
        "torch-geometric": PyG,
    }[peer]
    graph = kind(store)
    work: Callable[..., Any] = getattr(graph, operation.replace("-", "_"))
    begin = time.process_time()
    made = work(*arguments)
    alone_s = time.process_time() - begin
    out.mkdir()
    graph.write(made, out)
    print(json.dumps({"alone_s": alone_s}))


def read_csc(store: Path) -> tuple[Any, Any, Any]:
    """Return indptr, indices, edge IDs."""
    return tuple(np.load(store / EDGES / f"{name}.npy") for name in ("indptr", "indices", "edge_ids"))


def read_ids(path: str) -> Any:
    """Return the IDs in a text file, ascending."""
    return np.sort(np.loadtxt(path, np.int64, ndmin=1))


def expand(indptr: Any) -> Any:
    """Return the row of every entry."""
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


def write_csc(out: Path, indptr: Any, indices: Any, ids: Any = None, name: str = "") -> None:
    """Write the arrays as a store has them."""
    for stem, array in (("indptr", indptr), ("indices", indices), ("edge_ids", ids)):
        if array is not None:
            np.save(out / f"{name}{stem}.npy", array)


class Scipy:
    """A CSC matrix [sources, destinations] of edge IDs."""

    def __init__(self, store: Path) -> None:
        from scipy import sparse

        self.sparse = sparse
        indptr, indices, ids = read_csc(store)
        size = indptr.size - 1
        self.matrix = sparse.csc_array((ids, indices, indptr), shape=(size, size))

    def write(self, made: Any, out: Path) -> None:
        """Write a matrix, or several, or numbers."""
        if isinstance(made, dict):
            write_numbers(out, made)
            return
        for number, matrix in enumerate(made if isinstance(made, tuple) else (made,)):
            write_csc(out, matrix.indptr, matrix.indices, matrix.data, "" if not number else f"{number}-")

    def ones(self) -> Any:
        """Return the matrix with a 1 for every edge."""
        return self.sparse.csc_array(
            (np.ones(self.matrix.nnz, np.int32), self.matrix.indices, self.matrix.indptr), self.matrix.shape
        )

    def transpose(self) -> Any:
        return self.matrix.tocsr().T

    def add_reverse(self) -> Any:
        return self.matrix, self.transpose()

    def to_simple(self) -> Any:
        """Count parallel edges."""
        found = self.ones().copy()
        found.sum_duplicates()
        return found

    def to_bidirected(self) -> Any:
        ones = self.ones()
        return ones + ones.T

    def node_subgraph(self, path: str) -> Any:
        return self.induced(read_ids(path))

    def khop_subgraph(self, path: str, hops: str) -> Any:
        ones = self.ones()
        reached = np.zeros(ones.shape[0], np.bool_)
        reached[read_ids(path)] = True
        for _ in range(int(hops)):
            reached |= ones @ reached.astype(np.int32) > 0
        return self.induced(np.flatnonzero(reached))

    def largest_component(self) -> Any:
        from scipy.sparse.csgraph import connected_components

        _, labels = connected_components(self.ones(), directed=True, connection="weak")
        return self.induced(np.flatnonzero(labels == np.bincount(labels).argmax()))

    def stats_edges(self) -> dict[str, int]:
        """Count degrees, loops, repeated edges and components."""
        from scipy.sparse.csgraph import connected_components

        ones = self.ones()
        indptr, indices, size = ones.indptr, ones.indices, ones.shape[0]
        keys = np.sort(expand(indptr).astype(np.int64) * size + indices)
        _, labels = connected_components(ones, directed=True, connection="weak")
        sizes = np.bincount(labels)
        return {
            "max_in": int(np.diff(indptr).max()),
            "max_out": int(np.bincount(indices).max()),
            "self_loops": int((keys // size == keys % size).sum()),
            "repeated": int(keys.size - np.count_nonzero(np.diff(keys)) - 1),
            "components": sizes.size,
            "largest": int(sizes.max()),
        }

    def stats_triangles(self) -> dict[str, int]:
        """Count triangles by a product of matrices besides."""
        ones = self.ones()
        both = (ones + ones.T).tocsr()
        both.setdiag(0)
        both.eliminate_zeros()
        both.data = np.ones(both.nnz, np.int32)
        low = self.sparse.tril(both, format="csr")
        return self.stats_edges() | {"triangles": int((low @ low).multiply(low).sum())}

    def line_graph(self) -> Any:
        """Multiply the matrix of edges by ends with that of ends by edges; nodes of the result are edge IDs."""
        size, ids = self.matrix.nnz, self.matrix.data
        dst, src = expand(self.matrix.indptr), self.matrix.indices
        ones, shape = np.ones(size, np.int8), (size, self.matrix.shape[0])
        ends = self.sparse.csr_array((ones, (ids, dst)), shape)
        begins = self.sparse.csr_array((ones, (ids, src)), shape)
        line = (ends @ begins.T).tocoo()
        kept = line.row != line.col
        return self.sparse.csc_array((line.data[kept], (line.row[kept], line.col[kept])), line.shape)

    def induced(self, nodes: Any) -> Any:
        """Return the matrix of the edges between nodes."""
        return self.matrix[:, nodes].tocsr()[nodes].tocsc()

    def permuted(self, order: Any) -> Any:
        """Return the matrix of the nodes in another order."""
        return self.matrix[:, order].tocsr()[order].tocsc()

    def degrees(self) -> Any:
        size = self.matrix.shape[0]
        return np.bincount(self.matrix.indices, minlength=size) + np.diff(self.matrix.indptr)

    def degree(self) -> Any:
        return self.permuted(np.argsort(-self.degrees(), kind="stable"))

    def dbg(self) -> Any:
        """Group nodes by NumPy: SciPy has no such order."""
        degrees = self.degrees()
        bounds = degrees.mean() * np.array([32, 16, 8, 4, 2, 1, 0.5])
        return self.permuted(np.argsort((degrees[:, None] < bounds).sum(axis=1), kind="stable"))

    def rcm(self) -> Any:
        from scipy.sparse.csgraph import reverse_cuthill_mckee

        ones = self.ones()
        return self.permuted(reverse_cuthill_mckee((ones + ones.T).tocsr(), symmetric_mode=True))

    def bfs(self) -> Any:
        """Search from node 0 alone; what it does not reach comes last."""
        from scipy.sparse.csgraph import breadth_first_order

        found = breadth_first_order(self.ones(), 0, directed=False, return_predecessors=False)
        rest = np.ones(self.matrix.shape[0], np.bool_)
        rest[found] = False
        return self.permuted(np.concatenate([found, np.flatnonzero(rest)]))


class NetworKit(Scipy):
    """A directed graph; what comes of it is written in NetworKit's binary format, and matrices as SciPy's are."""

    def __init__(self, store: Path) -> None:
        import networkit

        self.networkit = networkit
        indptr, indices, _ = read_csc(store)
        if len(sys.argv) > 2 and sys.argv[2] == "llp":
            super().__init__(store)
        ends = indices.astype(np.uint64), expand(indptr).astype(np.uint64)
        self.graph = self.networkit.GraphFromCoo(ends, n=indptr.size - 1, directed=True)

    def write(self, made: Any, out: Path) -> None:
        if hasattr(made, "indptr") or isinstance(made, dict):
            super().write(made, out)
            return
        self.networkit.graphio.NetworkitBinaryWriter().write(made, str(out / "graph.nkb"))
        write_counts(out, made.numberOfNodes(), made.numberOfEdges())

    def transpose(self) -> Any:
        return self.networkit.graphtools.transpose(self.graph)

    def to_simple(self) -> Any:
        self.graph.removeMultiEdges()
        return self.graph

    def node_subgraph(self, path: str) -> Any:
        return self.networkit.graphtools.subgraphFromNodes(self.graph, read_ids(path).tolist(), compact=True)

    def largest_component(self) -> Any:
        found = self.networkit.components.WeaklyConnectedComponents(self.graph)
        found.run()
        largest = max(found.getComponents(), key=len)
        return self.networkit.graphtools.subgraphFromNodes(self.graph, largest, compact=True)

    def stats_edges(self) -> dict[str, int]:
        """Count degrees, loops and components; repeated edges it does not tell."""
        found = self.networkit.components.WeaklyConnectedComponents(self.graph)
        found.run()
        nodes = range(self.graph.numberOfNodes())
        return {
            "max_in": max(map(self.graph.degreeIn, nodes)),
            "max_out": max(map(self.graph.degreeOut, nodes)),
            "self_loops": self.graph.numberOfSelfLoops(),
            "components": found.numberOfComponents(),
            "largest": max(found.getComponentSizes().values()),
        }

    def stats_triangles(self) -> dict[str, int]:
        """Count triangles by edge besides, in a graph of NumPy's: see TRANSFORMS in rewrites.py for why."""
        numbers, size = self.stats_edges(), self.graph.numberOfNodes()
        ends = np.sort(np.array([*self.graph.iterEdges()], np.int64), axis=1)
        keys = np.unique(ends[ends[:, 0] < ends[:, 1]] @ [size, 1])
        pair = (keys // size).astype(np.uint64), (keys % size).astype(np.uint64)
        both = self.networkit.GraphFromCoo(pair, n=size, directed=False)
        both.indexEdges()
        found = self.networkit.sparsification.TriangleEdgeScore(both)
        found.run()
        return numbers | {"triangles": int(sum(found.scores())) // 3}

    def llp(self) -> Any:
        """Order by the communities of label propagation, in one layer, and permute by SciPy."""
        both = self.networkit.graphtools.toUndirected(self.graph)
        found = self.networkit.community.PLP(both)
        found.run()
        return self.permuted(np.argsort(found.getPartition().getVector(), kind="stable"))


class IGraph:
    """A directed graph; what comes of it is written as text."""

    def __init__(self, store: Path) -> None:
        import igraph

        indptr, indices, _ = read_csc(store)
        ends = np.column_stack([indices.astype(np.int64), expand(indptr)])
        self.graph = igraph.Graph(n=indptr.size - 1, edges=memoryview(ends), directed=True)

    def stats_edges(self) -> dict[str, int]:
        """Count degrees, loops, repeated edges and components."""
        sizes = self.graph.connected_components("weak").sizes()
        return {
            "max_in": max(self.graph.indegree()),
            "max_out": max(self.graph.outdegree()),
            "self_loops": sum(self.graph.is_loop()),
            "repeated": sum(self.graph.is_multiple()),
            "components": len(sizes),
            "largest": max(sizes),
        }

    def stats_triangles(self) -> dict[str, int]:
        """Count triangles by the transitivity besides."""
        numbers = self.stats_edges()
        both = self.graph.as_undirected(mode="collapse").simplify()
        degrees = np.array(both.degree(), np.int64)
        paths = int((degrees * (degrees - 1) // 2).sum())
        return numbers | {"triangles": round(both.transitivity_undirected() * paths / 3)}

    def write(self, made: Any, out: Path) -> None:
        if isinstance(made, dict):
            write_numbers(out, made)
            return
        made.write_edgelist(str(out / "edges.txt"))
        write_counts(out, made.vcount(), made.ecount())

    def transpose(self) -> Any:
        self.graph.reverse_edges()
        return self.graph

    def to_simple(self) -> Any:
        return self.graph.simplify(multiple=True, loops=False)

    def to_bidirected(self) -> Any:
        both = self.graph.as_undirected(mode="collapse").as_directed(mode="mutual")
        return both.simplify(multiple=True, loops=False)

    def node_subgraph(self, path: str) -> Any:
        return self.graph.induced_subgraph(read_ids(path))

    def khop_subgraph(self, path: str, hops: str) -> Any:
        found = self.graph.neighborhood(read_ids(path).tolist(), order=int(hops), mode="in")
        return self.graph.induced_subgraph(sorted(set().union(*found)))

    def largest_component(self) -> Any:
        return self.graph.connected_components(mode="weak").giant()

    def line_graph(self) -> Any:
        """A loop does not follow itself."""
        return self.graph.linegraph().simplify(multiple=False, loops=True)

    def degree(self) -> Any:
        return self._permuted(np.argsort(-np.array(self.graph.degree()), kind="stable"))

    def bfs(self) -> Any:
        """Search from node 0 alone; what it does not reach comes last."""
        found, *_ = self.graph.bfs(0, mode="all")
        rest = np.ones(self.graph.vcount(), np.bool_)
        rest[found] = False
        return self._permuted(np.concatenate([found, np.flatnonzero(rest)]))

    def _permuted(self, order: Any) -> Any:
        places = np.empty_like(order)
        places[order] = np.arange(order.size)
        return self.graph.permute_vertices(places.tolist())


class Dgl:
    """A graph of DGL; edges keep their IDs."""

    def __init__(self, store: Path) -> None:
        self.dgl, self.torch = import_dgl()
        indptr, indices, ids = map(self.torch.from_numpy, read_csc(store))
        self.graph = self.dgl.graph(("csc", (indptr, indices.long(), ids.long())), num_nodes=indptr.numel() - 1)

    def write(self, made: Any, out: Path) -> None:
        if not hasattr(made, "adj_tensors"):
            np.save(out / "parts.npy", made.numpy())
            return
        for number, name in enumerate(made.canonical_etypes):
            arrays = (array.numpy() for array in made.adj_tensors("csc", etype=name))
            write_csc(out, *arrays, "" if not number else f"{number}-")

    def transpose(self) -> Any:
        return self._with_csc(self.dgl.reverse(self.graph))

    def add_reverse(self) -> Any:
        return self._with_csc(self.dgl.AddReverse(sym_new_etype=True)(self.graph))

    def to_simple(self) -> Any:
        return self._with_csc(self.dgl.to_simple(self.graph, return_counts="count"))

    def to_bidirected(self) -> Any:
        return self._with_csc(self.dgl.to_bidirected(self.graph))

    def node_subgraph(self, path: str) -> Any:
        return self._with_csc(self.dgl.node_subgraph(self.graph, read_ids(path)))

    def khop_subgraph(self, path: str, hops: str) -> Any:
        return self._with_csc(self.dgl.khop_in_subgraph(self.graph, read_ids(path), k=int(hops))[0])

    def line_graph(self) -> Any:
        return self._with_csc(self.dgl.line_graph(self.graph, backtracking=True))

    def degree(self) -> Any:
        order = (-(self.graph.in_degrees() + self.graph.out_degrees())).argsort(stable=True)
        return self._reordered("custom", permute_config={"nodes_perm": order})

    def rcm(self) -> Any:
        return self._reordered("rcmk")

    def metis(self) -> Any:
        """Of the simple graph: loops and parallel edges end DGL's process."""
        simple = self.dgl.to_bidirected(self.dgl.remove_self_loop(self.graph))
        return self.dgl.metis_partition_assignment(simple, 8)

    def _reordered(self, how: str, **config: Any) -> Any:
        return self._with_csc(self.dgl.reorder_graph(self.graph, node_permute_algo=how, store_ids=False, **config))

    def _with_csc(self, graph: Any) -> Any:
        """Have the arrays made, which DGL would do when they are asked for."""
        for name in graph.canonical_etypes:
            graph.adj_tensors("csc", etype=name)
        return graph


class PyMetis(Scipy):
    """The graph as METIS takes it; making it undirected is part of the work."""

    def metis(self) -> Any:
        import pymetis

        ones = self.ones()
        both = (ones + ones.T).tocsr()
        both.setdiag(0)
        both.eliminate_zeros()
        options = pymetis.Options(ufactor=50, seed=0)  # k-way, as --by metis calls METIS
        graph = pymetis.CSRAdjacency(both.indptr, both.indices)
        return np.array(pymetis.part_graph(8, graph, eweights=both.data, recursive=False, options=options)[1])

    def write(self, made: Any, out: Path) -> None:
        np.save(out / "parts.npy", made)


class Arrays:
    """graphprep's functions of arrays in memory."""

    def __init__(self, store: Path) -> None:
        import graphprep

        self.graphprep = graphprep
        self.csc = graphprep.build_adjacency(np.array([0, 0]), np.array([0, 0]))
        for work in (self.transpose, self.to_simple, self.degree):  # loads what is compiled, as the others' imports do
            work()
        self.csc = graphprep.load(str(store)).adjacency()

    def write(self, made: Any, out: Path) -> None:
        write_csc(out, made.indptr, made.indices, made.edge_ids)

    def transpose(self) -> Any:
        return self.graphprep.transpose(self.csc)

    def to_simple(self) -> Any:
        src, dst, _ = self.graphprep.dedup_edges(self.csc.indices, expand(self.csc.indptr))
        return self.graphprep.build_adjacency(src, dst, self.csc.num_rows)

    def degree(self) -> Any:
        return self.graphprep.reorder_by_degree(self.csc, by="degree")[0]


class PyG:
    """Both ends of all edges as a tensor."""

    def __init__(self, store: Path) -> None:
        import torch
        from torch_geometric.data import Data

        indptr, indices, _ = read_csc(store)
        ends = torch.from_numpy(np.stack([indices, expand(indptr)]).astype(np.int64))
        self.data = Data(edge_index=ends, num_nodes=indptr.size - 1)

    def split_edges(self) -> Any:
        from torch_geometric.transforms import RandomLinkSplit

        return RandomLinkSplit(0.1, 0.1, add_negative_train_samples=False, neg_sampling_ratio=0.0)(self.data)

    def write(self, made: Any, out: Path) -> None:
        """Write the graph that messages pass over, and the edges of each part."""
        np.save(out / "messages.npy", made[0].edge_index.numpy())
        for name, data in zip(("train", "valid", "test"), made, strict=True):
            np.save(out / f"{name}.npy", data.edge_label_index.numpy())


# ---- what came of it


def check(out: Path, store: Path, what: str) -> None:
    """Print how large a graph is and the checksum of its edges; of an order bits a gap, of an assignment the cut."""
    if what == "partitioner":
        indptr, indices, _ = read_csc(store)
        parts = np.load(out / "parts.npy") if (out / "parts.npy").exists() else np.loadtxt(out / "_N.txt", np.int64)
        cut = np.count_nonzero(parts[indices] != parts[expand(indptr)]) / indices.size
        print(json.dumps({"cut_share": cut, "imbalance": float(np.bincount(parts).max() / parts.size * 8)}))
        return
    if what == "split":
        names = [out / f"{name}.npy" for name in ("train", "valid", "test")]
        theirs = sum(np.load(path).shape[1] for path in names if path.exists())
        print(json.dumps({"num_edges": theirs or sum(np.load(path).size for path in out.rglob("edges/*/data/split.npy"))}))
        return
    if what == "stats":
        print(json.dumps(read_numbers(out)))
        return
    if (out / "counts.json").exists():
        print((out / "counts.json").read_text())
        return
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    from inputs import edge_checksum

    found = {"num_nodes": 0, "num_edges": 0}
    checksum, bits = 0, 0.0
    for path in sorted(out.rglob("*indptr.npy")):
        indptr, indices = np.load(path), np.load(path.with_name(path.name.replace("indptr", "indices"))).astype(np.int64)
        rows = expand(indptr)
        found["num_nodes"] = indptr.size - 1
        found["num_edges"] += indices.size
        checksum += edge_checksum(indices, rows)
        keys = np.sort(rows * indptr.size + indices) % indptr.size
        first = np.zeros(keys.size, np.bool_)
        first[indptr[:-1][np.diff(indptr) > 0]] = True
        gaps = np.where(first, np.where(keys >= rows, 2 * (keys - rows) + 1, 2 * (rows - keys)), np.diff(keys, prepend=0) + 1)
        bits = float((2 * np.floor(np.log2(gaps)) + 1).mean())
    extra = {"bits": bits} if what == "order" else {"checksum": f"{checksum % 2**64:016x}"}
    print(json.dumps(found | extra))


def read_numbers(out: Path) -> dict[str, int]:
    """Return the numbers that a peer wrote, or the same ones of graphprep's report."""
    value = json.loads((out / "stats.json").read_text())
    if "edges" not in value:
        return value
    (edges,) = value["edges"]
    triangles = {} if value["triangles"] is None else {"triangles": value["triangles"]["num_triangles"]}
    return triangles | {
        "max_in": edges["in_degrees"]["max"],
        "max_out": edges["out_degrees"]["max"],
        "self_loops": edges["num_self_loops"],
        "repeated": edges["num_repeated"],
        "components": value["components"]["count"],
        "largest": value["components"]["largest"],
    }


def write_numbers(out: Path, numbers: dict[str, int]) -> None:
    """Write what was counted."""
    (out / "stats.json").write_text(json.dumps(numbers))


def write_counts(out: Path, num_nodes: int, num_edges: int) -> None:
    """Write how large a graph is whose file is not arrays."""
    (out / "counts.json").write_text(json.dumps({"num_nodes": num_nodes, "num_edges": num_edges}))


def import_dgl() -> tuple[Any, Any]:
    """Import DGL without GraphBolt, whose library is for older torch."""
    import torch

    graphbolt = types.ModuleType("dgl.graphbolt")
    graphbolt.FusedCSCSamplingGraph = type("FusedCSCSamplingGraph", (), {})
    sys.modules["dgl.graphbolt"] = graphbolt
    import dgl

    return dgl, torch


if __name__ == "__main__":
    main()
