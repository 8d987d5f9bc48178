"""The generated users and items to files: tables with a graph.yaml, DeepGNN's formats, the chunked format."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.generate.files import Advance, ParquetPieces, Pieces
from graphprep.generate.hetero import (
    EDGE_TYPES,
    NODE_TYPES,
    NUM_FEATURE_VALUES,
    RELATIONS,
    EdgeBlock,
    HeteroGraph,
    NodeBlock,
    blocks_of,
)
from graphprep.kernels.cpu.text import write_text
from graphprep.kernels.cpu.text.write_text import EDGES, EIGHTHS, FEATURE_BYTES, FEATURES, INTEGER, Template
from graphprep.storage.write.outputs import FileOutput, FolderOutput
from graphprep.storage.write.publish import npy_header

Ints = NDArray[np.int64]

_NODE_FIELDS = {"id": (INTEGER, 0), "type": (INTEGER, 1), "weight": (EIGHTHS, 2), "label": (INTEGER, 3)}
_NODE_FIELDS |= {"features": (FEATURES, 0), "edges": (EDGES, 0)}
_EDGE_FIELDS = {"src": (INTEGER, 0), "relation": (INTEGER, 1), "dst": (INTEGER, 2), "weight": (EIGHTHS, 3)}
_NODE_LINES = {
    "edgelist": "<id>,-1,<type>,<weight>,float32,{},<features:,>\n<edges:>",
    "json": '{{"node_id": <id>, "node_type": <type>, "node_weight": <weight>, "float_feature": {{"0": [<features:, >]}}, '
    '"edge": [<edges:, >]}}\n',
    "tsv": "<id>\t<type>\t<weight>\tf:<features: >\t<edges:|>\n",
}
_EDGE_LINES = {
    "edgelist": "<src>,<relation>,<dst>,<weight>\n",
    "json": '{"src_id": <src>, "dst_id": <dst>, "edge_type": <relation>, "weight": <weight>}',
    "tsv": "<dst>,<relation>,<weight>",
}
_NO_EDGES = EdgeBlock(np.empty((4, 0), np.int64), np.empty(0, np.int64))
_TABLES = {"user": "users", "item": "items", "user:follows:user": "follows", "user:buys:item": "buys"}


@dataclass
class Counts:
    """How many edges of each type were written."""

    num_edges: Ints = field(default_factory=lambda: np.zeros(len(RELATIONS), np.int64))

    def add(self, block: EdgeBlock) -> None:
        """Count those of a block."""
        self.num_edges += np.bincount(block.columns[1], minlength=len(RELATIONS))

    def by_type(self) -> dict[str, int]:
        """Return them by edge type."""
        return dict(zip(EDGE_TYPES, self.num_edges.tolist(), strict=True))


# ---- DeepGNN's formats


def deepgnn_text(graph: HeteroGraph, format: str, threads: int, advance: Advance, counts: Counts) -> Pieces:
    """Yield the lines of all nodes, each with its edges; items come after users and count on from them."""
    node = Template.parse(_NODE_LINES[format].format(graph.num_features), _NODE_FIELDS)
    edge = Template.parse(_EDGE_LINES[format], _EDGE_FIELDS)

    def write(work: tuple[int, tuple[int, int]]) -> tuple[EdgeBlock, memoryview]:
        type_number, (first, stop) = work
        nodes = graph.nodes(type_number, first, stop)
        edges = graph.edges(first, stop) if type_number == 0 else _NO_EDGES
        offsets = edges.offsets if type_number == 0 else np.zeros(stop - first + 1, np.int64)
        nodes.columns[0] += type_number * graph.num_users
        edges.columns[2] += edges.columns[1] * graph.num_users
        return edges, _node_lines(node, nodes, edge, edges.columns, offsets)

    work = [(number, block) for number, count in enumerate(graph.counts) for block in blocks_of(0, count)]
    for edges, piece in map_ordered(write, work, threads):
        counts.add(edges)
        yield piece
        advance(edges.columns.shape[1], len(piece))


def _node_lines(node: Template, nodes: NodeBlock, edge: Template, edges: Ints, offsets: Ints) -> memoryview:
    row_bytes = node.row_bytes + nodes.features.shape[1] * (FEATURE_BYTES + 2)
    size = nodes.columns.shape[1] * row_bytes + edges.shape[1] * (edge.row_bytes + 2) + write_text.SLACK_BYTES
    out = np.empty(size, np.uint8)
    return out[: write_text.write_nodes(node, nodes.columns, nodes.features, edge, edges, offsets, out)].data


# ---- tables


def write_tables(graph: HeteroGraph, format: str, folder: FolderOutput, threads: int, advance: Advance, counts: Counts) -> None:
    """Write a table a type, and a graph.yaml that says which is which."""
    for number, name in enumerate(NODE_TYPES):
        pieces = (_csv_nodes if format == "csv" else _parquet_nodes)(graph, number, threads)
        folder.write(f"{_TABLES[name]}.{format}", _counted(pieces, advance))
    outputs = [_EdgeTable(folder.open(f"{_TABLES[name]}.{format}"), format) for name in EDGE_TYPES]
    for block in _edge_blocks(graph, 0, graph.num_users, threads):
        counts.add(block)
        for relation, output in enumerate(outputs):
            output.add(block.columns[:, block.columns[1] == relation])
        advance(block.columns.shape[1], 0)
    for output in outputs:
        output.close()
    folder.write("graph.yaml", [_graph_yaml(graph, format).encode()])


def _csv_nodes(graph: HeteroGraph, number: int, threads: int) -> Pieces:
    template = Template.parse("<id>,<weight>,<label>,<features:;>\n", _NODE_FIELDS)

    def write(block: tuple[int, int]) -> memoryview:
        nodes = graph.nodes(number, *block)
        return _node_lines(template, nodes, template, _NO_EDGES.columns, np.zeros(block[1] - block[0] + 1, np.int64))

    yield memoryview(b"id,weight,label,feat\n")
    yield from map_ordered(write, blocks_of(0, graph.counts[number]), threads)


def _parquet_nodes(graph: HeteroGraph, number: int, threads: int) -> Pieces:
    writer = ParquetPieces()
    for nodes in map_ordered(lambda block: graph.nodes(number, *block), blocks_of(0, graph.counts[number]), threads):
        ids, _, weights, labels = nodes.columns
        yield from writer.add({"id": ids, "weight": _eighths(weights), "label": labels, "feat": _features(nodes)})
    yield from writer.close()


class _EdgeTable:
    """The file of an edge type: csv with a header, or Parquet."""

    def __init__(
        self,
        file: FileOutput,
        format: str,
        line: str = "<src>,<dst>,<weight>\n",
        header: bytes = b"src,dst,weight\n",
        names: Sequence[str] = ("src", "dst", "weight"),
    ) -> None:
        self._file = file
        self._names = names
        self._template = Template.parse(line, _EDGE_FIELDS)
        self._parquet = ParquetPieces() if format == "parquet" else None
        if self._parquet is None:
            file.write(header)

    def add(self, columns: Ints) -> None:
        """Write edges: int64[4, k], as in ``EdgeBlock.columns``."""
        if self._parquet is not None:
            values = {"src": columns[0], "dst": columns[2], "weight": _eighths(columns[3])}
            self._write(self._parquet.add({name: values[name] for name in self._names}))
            return
        out = np.empty(columns.shape[1] * self._template.row_bytes + write_text.SLACK_BYTES, np.uint8)
        self._file.write(out[: write_text.write_rows(self._template, columns, columns.shape[1], out)].data)

    def close(self) -> None:
        """Finish the file."""
        if self._parquet is not None:
            self._write(self._parquet.close())
        self._file.commit()

    def _write(self, pieces: Pieces) -> None:
        for piece in pieces:
            self._file.write(piece)


def _graph_yaml(graph: HeteroGraph, format: str) -> str:
    lines = ["# Written by graphprep generate hetero.", "labels: [user:label, item:label]", "nodes:"]
    for name in NODE_TYPES:
        lines += [f"  - type: {name}", f"    files: {_TABLES[name]}.{format}", "    id_col: id", "    weight_col: weight"]
        if format == "csv":
            columns = f"    columns: {{feat: 'list<float32>[{graph.num_features}]', label: int64}}"
            lines += [columns, '    list_delimiter: ";"', "    header: yes"]
    lines.append("edges:")
    for name in EDGE_TYPES:
        lines += [f"  - type: {name}", f"    files: {_TABLES[name]}.{format}", "    weight_col: weight"]
        lines += ["    header: yes"] if format == "csv" else []
    return "\n".join(lines) + "\n"


# ---- the chunked format


def write_chunked(
    graph: HeteroGraph, chunks: int, folder: FolderOutput, threads: int, advance: Advance, counts: Counts
) -> None:
    """Write DGL's chunked format: edges as csv with a blank between, features as npy, weights as Parquet.

    A chunk of edges holds those that leave a chunk of the users.
    """
    node_chunks = [_cut(count, chunks) for count in graph.counts]
    node_data = {
        name: _write_features(graph, number, node_chunks[number], folder, threads) for number, name in enumerate(NODE_TYPES)
    }
    edge_chunks: list[list[int]] = []
    low = 0
    for chunk, size in enumerate(node_chunks[0]):
        before = counts.num_edges.copy()
        _write_edge_chunk(graph, chunk, (low, low + size), folder, threads, advance, counts)
        edge_chunks.append((counts.num_edges - before).tolist())
        low += size
    edge_columns = [list(column) for column in zip(*edge_chunks, strict=True)]
    metadata = {
        "graph_name": "shop",
        "node_type": list(NODE_TYPES),
        "num_nodes_per_type": [sum(sizes) for sizes in node_chunks],  # DGL's tools need what its description does not name
        "num_nodes_per_chunk": node_chunks,
        "edge_type": list(EDGE_TYPES),
        "num_edges_per_type": [sum(sizes) for sizes in edge_columns],
        "num_edges_per_chunk": edge_columns,
        "edges": {name: _chunk_entry(name, "", ".csv", chunks, {"name": "csv", "delimiter": " "}) for name in EDGE_TYPES},
        "node_data": node_data,
        "edge_data": {
            name: {"weight": _chunk_entry(name, "-weight", ".parquet", chunks, {"name": "parquet"})} for name in EDGE_TYPES
        },
    }
    folder.write("metadata.json", [(json.dumps(metadata, indent=2) + "\n").encode()])


def _write_features(graph: HeteroGraph, number: int, sizes: list[int], folder: FolderOutput, threads: int) -> dict[str, object]:
    name, low = NODE_TYPES[number], 0
    for chunk, size in enumerate(sizes):
        file = folder.open(f"{name}-feat-{chunk}.npy", size * graph.num_features * 4)
        file.write(npy_header("float32", (size, graph.num_features)))
        for features in map_ordered(lambda block: _features(graph.nodes(number, *block)), blocks_of(low, low + size), threads):
            file.write(features.reshape(-1).view(np.uint8).data)
        file.commit()
        low += size
    return {"feat": {"format": {"name": "numpy"}, "data": [f"{name}-feat-{chunk}.npy" for chunk in range(len(sizes))]}}


def _write_edge_chunk(
    graph: HeteroGraph,
    chunk: int,
    users: tuple[int, int],
    folder: FolderOutput,
    threads: int,
    advance: Advance,
    counts: Counts,
) -> None:
    stems = [name.replace(":", "-") for name in EDGE_TYPES]
    ends = [_EdgeTable(folder.open(f"{stem}-{chunk}.csv"), "csv", "<src> <dst>\n", b"") for stem in stems]
    weights = [_EdgeTable(folder.open(f"{stem}-weight-{chunk}.parquet"), "parquet", names=("weight",)) for stem in stems]
    for block in _edge_blocks(graph, *users, threads):
        counts.add(block)
        for relation in range(len(RELATIONS)):
            columns = block.columns[:, block.columns[1] == relation]
            ends[relation].add(columns)
            weights[relation].add(columns)
        advance(block.columns.shape[1], 0)
    for table in (*ends, *weights):
        table.close()


def _chunk_entry(name: str, what: str, suffix: str, chunks: int, format: dict[str, str]) -> dict[str, object]:
    stem = name.replace(":", "-")
    return {"format": format, "data": [f"{stem}{what}-{chunk}{suffix}" for chunk in range(chunks)]}


def _cut(count: int, chunks: int) -> list[int]:
    return [count // chunks + (chunk < count % chunks) for chunk in range(chunks)]


# ---- what they share


def _edge_blocks(graph: HeteroGraph, first: int, stop: int, threads: int) -> Iterator[EdgeBlock]:
    """Yield the edges of users, block by block; an empty block where there is no user."""
    return map_ordered(lambda block: graph.edges(*block), blocks_of(first, stop) or [(first, first)], threads)


def _features(nodes: NodeBlock) -> NDArray[np.float32]:
    """Return features as binary formats hold them: the float32 that is nearest to the decimal."""
    return (nodes.features / NUM_FEATURE_VALUES).astype(np.float32)


def _eighths(values: Ints) -> NDArray[np.float32]:
    return (values / 8).astype(np.float32)


def _counted(pieces: Pieces, advance: Advance) -> Pieces:
    for piece in pieces:
        yield piece
        advance(0, len(piece))
