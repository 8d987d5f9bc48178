"""The texts of nodes and edges from which DGL's ``pm_dglpart`` has ParMETIS partition a graph of several types.

Source: DGL, ``tools/write_mag.py``; ParMETIS, ``programs/dglpart.c``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.text_lines import LineWriter, TextColumn
from graphprep.exporters.view.graph import EdgePiece, StoredGraph, slices
from graphprep.kernels.cpu.ids.check import mark_ids
from graphprep.rewrite.partition.neighbors import Neighbors
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FolderOutput

Ints = NDArray[np.int64]
_LINE_BYTES = 96  # of a node or an edge while its line is made


def write_parmetis(
    graph: StoredGraph, out: FolderOutput, numbers: Sequence[Ints], neighbors: Neighbors, scratch: Scratch
) -> None:
    """Write ``graph_nodes.txt``, ``graph_edges.txt``, ``graph_removed_edges.txt`` and ``graph_stats.txt``.

    ``numbers`` (int64[n] by type) are the nodes' homogeneous IDs, ``neighbors`` those of each, ascending. Of edges with the
    same ends the first stays, by type and edge ID; the others, and loops, are removed, since ParMETIS takes none.
    """
    metadata = graph.metadata
    with out.open("graph_nodes.txt") as file:
        for number in range(len(metadata.node_types)):
            for lines in _nodes(graph, number):
                file.write(lines)
    kept = [0, 0]
    for which, name in enumerate(("graph_edges.txt", "graph_removed_edges.txt")):
        with out.open(name) as file, scratch.inner() as inner:
            bits = inner.zeros(-(-neighbors.indices.size // 64), np.uint64)
            for edge in range(len(metadata.edge_types)):
                for piece in graph.input_edges(edge):
                    rows = _sorted_out(graph, edge, piece, numbers, neighbors, bits)[which]
                    kept[which] += rows.shape[1]
                    file.write(_lines(rows))
    out.write("graph_stats.txt", f"{neighbors.num_nodes} {kept[0]} {len(metadata.node_types)}\n".encode())


def _nodes(graph: StoredGraph, number: int) -> Iterator[memoryview]:
    """Yield the lines of a type's nodes: its number, a weight for each type, and the node's number in it, by raw ID."""
    num_types = len(graph.metadata.node_types)
    for low, high in slices(graph.metadata.num_nodes_per_type[number], graph.room.fit(_LINE_BYTES + 8 * num_types)):
        same = partial(np.full, high - low)
        weights = [same(int(other == number)) for other in range(num_types)]
        yield _lines([same(number), *weights, np.arange(low, high)])


def _sorted_out(
    graph: StoredGraph, edge: int, piece: EdgePiece, numbers: Sequence[Ints], neighbors: Neighbors, bits: NDArray[np.uint64]
) -> tuple[Ints, Ints]:
    """Return the edges that stay, and those that are removed: int64[4, k] of source, destination, edge ID and type."""
    src_type, dst_type = graph.ends_of(edge)
    src, dst = numbers[src_type][piece.src], numbers[dst_type][piece.dst]
    rows = np.stack([src, dst, piece.edge_ids, np.full(src.size, edge)])
    is_kept = src != dst
    others = np.flatnonzero(is_kept)
    at = _find(neighbors, src[others], dst[others])
    is_kept[others[mark_ids(at, 0, neighbors.indices.size, bits)]] = False
    return rows[:, is_kept], rows[:, ~is_kept]


def _find(neighbors: Neighbors, nodes: Ints, others: Ints) -> Ints:
    """Return where each other node first stands among a node's neighbors, which it is one of: binary searches, side by side."""
    low, high = neighbors.indptr[nodes], neighbors.indptr[nodes + 1] - 1
    while (low < high).any():
        middle = (low + high) >> 1
        is_behind = neighbors.indices[middle] < others
        low = np.where(is_behind, middle + 1, low)
        high = np.where(is_behind, high, middle)
    return np.asarray(low)


def _lines(columns: Ints | list[Ints]) -> memoryview:
    return LineWriter(" ").lines([TextColumn(column) for column in columns])
