"""The edges of a partition's graph in the orders of CSC and CSR: own ones, and those of other partitions in its halo."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.device.find import find_kernels
from graphprep.exporters.dgl.part_nodes import HaloEdges, Ints, PartGraph
from graphprep.exporters.formats.dgl_files import CompressedMatrix
from graphprep.exporters.formats.torch_pickle import TensorPieces, tensor
from graphprep.exporters.view.graph import slices
from graphprep.exporters.view.joined_rows import JoinedBlock, JoinedRows, SingleGraph
from graphprep.kernels.cpu.ids.part_graph import number_rows, scatter_rows
from graphprep.storage.spill.scratch import Scratch


class InEdges:
    """The edges of a partition's graph by (destination, edge type): own ones, then other partitions'.

    ``scratch`` takes three numbers for each edge of other partitions, and one for each of their nodes.
    """

    def __init__(self, local: PartGraph, scratch: Scratch) -> None:
        self._local = local
        self._scratch = scratch
        self._own = _own_edges(local)
        self._num_others = local.num_nodes - local.num_owned if local.num_halo_edges else 0
        self._indptr = scratch.zeros(self._num_others + 1, np.int64)
        self._sources, self._order, self._part_ids = (scratch.zeros(local.num_halo_edges, np.int64) for _ in range(3))
        self._sort()

    def indptr(self) -> TensorPieces:
        """Return the offsets of all nodes. Those of the outermost hop have no edges."""
        local = self._local

        def pieces() -> Iterator[Ints]:
            yield from self._own.indptr()
            for low, high in slices(local.num_nodes - local.num_owned, local.step):
                ends = self._indptr[low + 1 : high + 1] if self._num_others else np.zeros(high - low, np.int64)
                yield ends + local.num_edges

        return TensorPieces("int64", (local.num_nodes + 1,), pieces)

    def sources(self) -> TensorPieces:
        """Return the local IDs of the sources."""
        return self._tensor("int64", self._local.sources_at, lambda low, high: self._sources[low:high])

    def destinations(self) -> TensorPieces:
        """Return the local IDs of the destinations."""
        first = self._local.num_owned
        return self._tensor("int64", self._local.destinations_at, lambda low, high: number_rows(self._indptr, first, low, high))

    def local_ids(self) -> TensorPieces:
        """Return the local IDs of the edges."""
        first = self._local.num_edges
        return self._tensor("int64", self._local.local_edges, lambda low, high: self._order[low:high] + first)

    def part_ids(self) -> TensorPieces:
        """Return the part IDs of the edges."""
        first = int(self._local.edge_starts[0])
        return self._tensor(
            "int64",
            lambda *at: self._local.local_edges(*at) + first,
            lambda low, high: self._part_ids[self._order[low:high]],
        )

    def types(self) -> TensorPieces:
        """Return the number of the type of each edge."""
        return self._tensor(
            "int32",
            lambda edge, low, high: np.full(high - low, edge, np.int32),
            lambda low, high: self._local.types_of(self._part_ids[self._order[low:high]]),
        )

    def positions(self) -> TensorPieces:
        """Return where each edge stands in this order, by local ID."""
        return TensorPieces("int64", (self._local.num_all_edges,), self._positions)

    def _positions(self) -> Iterator[Ints]:
        local = self._local
        for edge in range(local.num_edge_types):
            yield from _own_positions(self._own, local, edge)
        found = self._scratch.zeros(self._order.size, np.int64)
        for low, high in slices(found.size, local.step):
            found[self._order[low:high]] = np.arange(low, high) + local.num_edges
        yield found

    def _tensor(
        self, dtype: str, own: Callable[[int, int, int], NDArray[Any]], others: Callable[[int, int], NDArray[Any]]
    ) -> TensorPieces:
        """Return numbers of all edges: ``own(edge type, low, high)`` of own ones, ``others(low, high)`` of others."""

        def pieces() -> Iterator[NDArray[Any]]:
            yield from self._own.items(lambda _, *at: own(*at))
            for low, high in slices(self._order.size, self._local.step):
                yield others(low, high)

        return TensorPieces(dtype, (self._local.num_all_edges,), pieces)

    def _sort(self) -> None:
        """Sort other partitions' edges: a stable counting sort, so that those of a node lie by edge type."""
        local, first = self._local, self._local.num_owned
        _count((ends[1] - first for ends in _local_ends(local, local.halo_edges())), self._indptr, local.step)
        cursors = self._scratch.zeros(self._num_others, np.int64)
        cursors[:] = self._indptr[:-1]
        done = 0
        for sources, destinations, part_ids in _local_ends(local, local.halo_edges()):
            scatter_rows(destinations - first, sources, done, cursors, self._sources, self._order)
            self._part_ids[done : done + part_ids.size] = part_ids
            done += part_ids.size


def by_destination(local: PartGraph, scratch: Scratch) -> CompressedMatrix:
    """Return the edges by destination, those of a node by edge type."""
    edges = InEdges(local, scratch)
    ids = None if local.num_edge_types == 1 else edges.local_ids()
    return CompressedMatrix(local.num_nodes, edges.indptr(), edges.sources(), ids)


def by_source(local: PartGraph, scratch: Scratch) -> CompressedMatrix:
    """Return the edges by source: a stable counting sort, so that those of a node lie by edge type."""
    indptr = scratch.zeros(local.num_nodes + 1, np.int64)
    _count((sources for _, sources, _ in _by_type(local)), indptr, local.step)
    cursors = scratch.zeros(local.num_nodes, np.int64)
    cursors[:] = indptr[:-1]
    indices, ids = (scratch.zeros(local.num_all_edges, np.int64) for _ in range(2))
    for first, sources, destinations in _by_type(local):
        scatter_rows(sources, destinations, first, cursors, indices, ids)
    return CompressedMatrix(local.num_nodes, tensor(indptr), tensor(indices), tensor(ids))


def _by_type(local: PartGraph) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield (local ID of the first, sources, destinations) of edges in a row, in local IDs, type by type."""
    done = 0
    for edge in range(local.num_edge_types):
        for sources, destinations in zip(local.sources(edge), local.destinations(edge), strict=True):
            yield done, sources, destinations
            done += sources.size
        for start, block in local.halo_of_type(edge):
            number = start
            for sources, destinations, _ in _local_ends(local, block):
                yield number, sources, destinations
                number += sources.size


def _local_ends(local: PartGraph, edges: Iterator[HaloEdges]) -> Iterator[HaloEdges]:
    """Yield edges of other partitions with the local IDs of their ends."""
    for sources, destinations, part_ids in edges:
        yield local.to_local(sources), local.to_local(destinations), part_ids


def _count(rows: Iterator[Ints], indptr: Ints, step: int) -> None:
    """Fill the offsets of the rows (int64[rows + 1], zeros) of so many edges."""
    for some in rows:
        find_kernels().count_ids(some, indptr[1:])
    for low, high in slices(indptr.size - 1, step):
        np.cumsum(indptr[low : high + 1], out=indptr[low : high + 1])


def _own_edges(local: PartGraph) -> SingleGraph:
    """Return the in-edges of a partition's own nodes by (destination, edge type)."""
    graph, blocks = local.graph, []
    for number in range(len(graph.metadata.node_types)):
        edges = tuple(edge for edge in range(local.num_edge_types) if graph.ends_of(edge)[1] == number)
        size = graph.metadata.num_nodes_per_chunk[number][local.part]
        rows = JoinedRows(size, [local.indptrs[edge] for edge in edges], local.step, graph.room.threads)
        blocks.append(JoinedBlock(local.part, edges, rows))
    return SingleGraph(tuple(blocks))


def _own_positions(own: SingleGraph, local: PartGraph, edge: int) -> Iterator[Ints]:
    """Yield where each own edge of a type stands among the joined ones."""
    first = 0
    for block in own.blocks:
        if edge in block.edges:
            for low, high in slices(int(local.indptrs[edge][-1]), local.step):
                yield block.rows.positions(block.edges.index(edge), low, high) + first
        first += block.rows.num_items
