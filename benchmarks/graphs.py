"""Generated graphs, written as every input format. One seed and size give the same bytes everywhere.

Two graphs: a heterogeneous one (users follow users and buy items; 16 float32 features a node, a weight on every node and edge)
for DeepGNN's formats and the chunked format, and a skewed homogeneous one for plain edge lists.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
from numpy.typing import NDArray

Ints = NDArray[np.int64]

NUM_FEATURES = 16
NUM_CHUNKS = 4
RELATIONS = ("follows", "buys")  # 0: user -> user, 1: user -> item
_USERS = 0.6  # of all nodes
_PIECE_EDGES = 1 << 21  # plain edges made and written at a time
_WEIGHTS = np.array([f"{eighth / 8:g}" for eighth in range(1, 65)])  # dyadic: sums are exact in any order


@dataclass(frozen=True)
class Size:
    """How large the graphs are. ``plain_edges`` is the number of lines of the plain edge lists."""

    nodes: int
    edges: int
    plain_edges: int
    seed: int = 1

    @property
    def key(self) -> str:
        """Return the name of the cache folder; it ends in the version of this file's output."""
        return f"n{self.nodes}-e{self.edges}-p{self.plain_edges}-s{self.seed}-v1"


@dataclass(frozen=True)
class Graph:
    """The heterogeneous graph. Nodes 0..users-1 are users, the others items; edges ascend by (source, relation, destination).

    ``features``: int64[nodes, 16], in hundred-thousandths; weights in eighths, as positions in ``_WEIGHTS``.
    """

    users: int
    features: Ints
    node_weights: Ints
    src: Ints
    dst: Ints
    relation: Ints
    edge_weights: Ints

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return int(self.node_weights.size)

    @property
    def types(self) -> Ints:
        """Return every node's type: 0 user, 1 item."""
        return (np.arange(self.nodes) >= self.users).astype(np.int64)


def write_graphs(folder: Path, size: Size) -> None:
    """Write all formats and ``expected.json`` into a folder; what is already whole stays."""
    if (folder / "expected.json").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    graph = make_graph(size)
    write_edgelist(graph, folder / "graph.edgelist")
    write_json(graph, folder / "graph.jsonl")
    write_tsv(graph, folder / "graph.tsv")
    write_chunked(graph, folder / "chunked")
    expected = {"deepgnn": _expected(graph), "chunked": _expected(graph, typed=True), "edges": write_plain(folder, size)}
    for entry in expected.values():
        entry["num_nodes"] = size.nodes
    expected["edges"]["num_nodes"] = plain_nodes(size)
    (folder / "expected.json").write_text(json.dumps(expected, indent=2) + "\n")


# ---- the graphs


def make_graph(size: Size) -> Graph:
    """Draw the heterogeneous graph: destinations are skewed, sources mildly."""
    rng = np.random.default_rng(size.seed)
    users = max(1, int(size.nodes * _USERS))
    src = (rng.random(size.edges) ** 1.5 * users).astype(np.int64)
    relation = (rng.random(size.edges) < 0.4).astype(np.int64)
    spread = rng.random(size.edges) ** 2
    dst = np.where(relation == 0, spread * users, users + spread * (size.nodes - users)).astype(np.int64)
    order = np.lexsort((dst, relation, src))
    return Graph(
        users=users,
        features=rng.integers(0, 100_000, (size.nodes, NUM_FEATURES)),
        node_weights=rng.integers(0, _WEIGHTS.size, size.nodes),
        src=src[order],
        dst=dst[order],
        relation=relation[order],
        edge_weights=rng.integers(0, _WEIGHTS.size, size.edges),
    )


def plain_nodes(size: Size) -> int:
    """Return the number of nodes of the plain graph: 16 edges a node."""
    return max(2, size.plain_edges // 16)


def plain_edges(size: Size) -> Iterator[tuple[Ints, Ints, Ints]]:
    """Yield (src, dst, weights) of the plain graph, piece by piece. The last node has an edge, so that the IDs are dense."""
    rng = np.random.default_rng(size.seed + 1)
    num_nodes = plain_nodes(size)
    labels = rng.permutation(num_nodes)
    for start in range(0, size.plain_edges, _PIECE_EDGES):
        count = min(_PIECE_EDGES, size.plain_edges - start)
        src, dst = (labels[(rng.random(count) ** 3 * num_nodes).astype(np.int64)] for _ in range(2))
        if start == 0:
            src[0] = num_nodes - 1
        yield src, dst, rng.integers(0, _WEIGHTS.size, count)


# ---- the formats


def write_edgelist(graph: Graph, path: Path) -> None:
    """Write DeepGNN EdgeList: each node's line, then those of its edges."""
    node_lines = _joined(
        _texts(np.arange(graph.nodes)), "-1", _texts(graph.types), _weights(graph.node_weights), f"float32,{NUM_FEATURES}",
        _features(graph, ","), sep=",",
    )  # fmt: skip
    edge_lines = _joined(_texts(graph.src), _texts(graph.relation), _texts(graph.dst), _weights(graph.edge_weights), sep=",")
    owners = np.concatenate([np.arange(graph.nodes), graph.src])
    lines = pa.concat_arrays([node_lines, edge_lines]).take(pa.array(np.argsort(owners, kind="stable")))
    with path.open("wb") as file:
        _write_lines(file, lines)


def write_json(graph: Graph, path: Path) -> None:
    """Write DeepGNN JSON, spaced as ``json.dumps`` does."""
    edges = _joined(
        '{"src_id": ', _texts(graph.src), ', "dst_id": ', _texts(graph.dst), ', "edge_type": ', _texts(graph.relation),
        ', "weight": ', _weights(graph.edge_weights), "}",
    )  # fmt: skip
    lines = _joined(
        '{"node_id": ', _texts(np.arange(graph.nodes)), ', "node_type": ', _texts(graph.types), ', "node_weight": ',
        _weights(graph.node_weights), ', "float_feature": {"0": [', _features(graph, ", "), ']}, "edge": [',
        _of_nodes(graph, edges, ", "), "]}",
    )  # fmt: skip
    with path.open("wb") as file:
        _write_lines(file, lines)


def write_tsv(graph: Graph, path: Path) -> None:
    """Write DeepGNN TSV: id, type, weight, features, neighbours."""
    neighbors = _joined(_texts(graph.dst), _texts(graph.relation), _weights(graph.edge_weights), sep=",")
    lines = _joined(
        _texts(np.arange(graph.nodes)), _texts(graph.types), _weights(graph.node_weights),
        _joined("f:", _features(graph, " ")), _of_nodes(graph, neighbors, "|"), sep="\t",
    )  # fmt: skip
    with path.open("wb") as file:
        _write_lines(file, lines)


def write_chunked(graph: Graph, folder: Path) -> None:
    """Write DGL's chunked format: edges as csv with a blank between, node features as npy, edge weights as Parquet."""
    folder.mkdir(exist_ok=True)
    counts = {"user": graph.users, "item": graph.nodes - graph.users}
    metadata = {
        "graph_name": "shop",
        "node_type": ["user", "item"],
        "num_nodes_per_chunk": [_cut(counts[name]) for name in ("user", "item")],
        "edge_type": ["user:follows:user", "user:buys:item"],
        "num_edges_per_chunk": [_cut(int((graph.relation == code).sum())) for code in (0, 1)],
        "edges": {},
        "node_data": {},
        "edge_data": {},
    }
    features = (graph.features / 100_000).astype(np.float32)
    for name, rows, chunks in zip(
        counts, (features[: graph.users], features[graph.users :]), metadata["num_nodes_per_chunk"], strict=True
    ):
        paths = [f"{name}-feat-{chunk}.npy" for chunk in range(NUM_CHUNKS)]
        for path, part in zip(paths, _pieces(rows, chunks), strict=True):
            np.save(folder / path, part)
        metadata["node_data"][name] = {"feat": {"format": {"name": "numpy"}, "data": paths}}
    for code, (name, chunks) in enumerate(zip(metadata["edge_type"], metadata["num_edges_per_chunk"], strict=True)):
        own = graph.relation == code
        src, dst, weights = graph.src[own], graph.dst[own] - code * graph.users, graph.edge_weights[own]
        stem = name.replace(":", "-")
        metadata["edges"][name] = {
            "format": {"name": "csv", "delimiter": " "},
            "data": [f"{stem}-{chunk}.csv" for chunk in range(NUM_CHUNKS)],
        }
        metadata["edge_data"][name] = {
            "weight": {"format": {"name": "parquet"}, "data": [f"{stem}-weight-{chunk}.parquet" for chunk in range(NUM_CHUNKS)]}
        }
        parts = zip(_pieces(src, chunks), _pieces(dst, chunks), _pieces(weights, chunks), strict=True)
        for chunk, (some_src, some_dst, some_weights) in enumerate(parts):
            with (folder / f"{stem}-{chunk}.csv").open("wb") as file:
                _write_lines(file, _joined(_texts(some_src), _texts(some_dst), sep=" "))
            table = pa.table({"weight": pa.array(((some_weights + 1) / 8).astype(np.float32))})
            pa.parquet.write_table(table, folder / f"{stem}-weight-{chunk}.parquet")
    (folder / "metadata.json").write_text(json.dumps(metadata, indent=2) + "\n")


def write_plain(folder: Path, size: Size) -> dict[str, object]:
    """Write the plain graph as ``src dst`` and ``src dst w``; return what is expected of its store."""
    checksum = 0
    with (folder / "edges.txt").open("wb") as plain, (folder / "edges-weighted.txt").open("wb") as weighted:
        for src, dst, weights in plain_edges(size):
            src_texts, dst_texts = _texts(src), _texts(dst)
            _write_lines(plain, _joined(src_texts, dst_texts, sep=" "))
            _write_lines(weighted, _joined(src_texts, dst_texts, _weights(weights), sep=" "))
            checksum = (checksum + edge_checksum(src, dst)) % 2**64
    name = "_N:_E:_N"
    return {"num_edges": {name: size.plain_edges}, "checksum": {name: f"{checksum:016x}"}}


# ---- what a store must hold


def _expected(graph: Graph, typed: bool = False) -> dict[str, object]:
    """Return counts and checksums by edge type; ``typed``: raw IDs count within their type."""
    num_edges, checksums = {}, {}
    for code, relation in enumerate(RELATIONS):
        own = graph.relation == code
        shift = code * graph.users if typed else 0
        name = f"user:{relation}:{'item' if code else 'user'}" if typed else f"0:{code}:{code}"
        num_edges[name] = int(own.sum())
        checksums[name] = f"{edge_checksum(graph.src[own], graph.dst[own] - shift):016x}"
    return {"num_edges": num_edges, "checksum": checksums}


def edge_checksum(src: Ints, dst: Ints) -> int:
    """Return a store's edge checksum: the sum of splitmix64(h(src) xor splitmix64(h(dst))), with h = splitmix64."""
    mixed = _splitmix64(_splitmix64(src.astype(np.uint64)) ^ _splitmix64(_splitmix64(dst.astype(np.uint64))))
    return int(mixed.sum(dtype=np.uint64))


def _splitmix64(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    z = x + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


# ---- text, by Arrow: whole columns at a time


def _texts(numbers: Ints) -> pa.Array:
    return pc.cast(pa.array(numbers), pa.string())


def _weights(eighths: Ints) -> pa.Array:
    return pa.array(_WEIGHTS.tolist()).take(pa.array(eighths))


def _joined(*columns: pa.Array | str, sep: str = "") -> pa.Array:
    return pc.binary_join_element_wise(*(pa.scalar(c) if isinstance(c, str) else c for c in columns), sep)


def _features(graph: Graph, sep: str) -> pa.Array:
    """Write every node's features with five decimals."""
    digits = pc.utf8_lpad(_texts(graph.features.ravel()), 5, "0")
    offsets = pa.array(np.arange(graph.nodes + 1, dtype=np.int32) * NUM_FEATURES)
    return pc.binary_join(pa.ListArray.from_arrays(offsets, _joined("0.", digits)), sep)


def _of_nodes(graph: Graph, edges: pa.Array, sep: str) -> pa.Array:
    """Join the texts of every node's edges."""
    offsets = np.searchsorted(graph.src, np.arange(graph.nodes + 1)).astype(np.int32)
    return pc.binary_join(pa.ListArray.from_arrays(pa.array(offsets), edges), sep)


def _write_lines(file, lines: pa.Array) -> None:
    """Write one text a line: the buffer of an Arrow array whose texts end in line feeds is the file."""
    ended = _joined(lines, "\n")
    offsets = np.frombuffer(ended.buffers()[1], np.int32)
    file.write(ended.buffers()[2][: int(offsets[len(ended)])])


def _cut(count: int) -> list[int]:
    return [count // NUM_CHUNKS + (chunk < count % NUM_CHUNKS) for chunk in range(NUM_CHUNKS)]


def _pieces(rows: NDArray[np.generic], sizes: list[int]) -> list[NDArray[np.generic]]:
    return np.split(rows, np.cumsum(sizes)[:-1])


def main() -> None:
    """Write the graphs: ``graphs.py FOLDER NODES EDGES PLAIN_EDGES SEED``."""
    folder, *numbers = sys.argv[1:]
    write_graphs(Path(folder), Size(*(int(number) for number in numbers)))


if __name__ == "__main__":
    main()
