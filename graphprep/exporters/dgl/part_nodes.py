"""The nodes and edges of partitions as DGL numbers them: partition after partition, inside it type after type."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.exporters.view.graph import StoredGraph, slices
from graphprep.kernels.cpu.ids.bitmap import Ranks, members
from graphprep.kernels.cpu.ids.group import mark_bits
from graphprep.kernels.cpu.ids.part_graph import number_rows, to_part_ids
from graphprep.model.errors import DataError
from graphprep.model.ids import PartSpace, TypeNames
from graphprep.store.items import FIX

Ints = NDArray[np.int64]
HaloEdges = tuple[Ints, Ints, Ints]  # part IDs of sources, destinations and edges
_MOST = 1 << 17  # nodes or edges of a piece
_ITEM_BYTES = 32  # what is computed of one


class PartBook:
    """Part IDs of a graph: ``nodes``, and ``edges`` in the row order of CSC, types in the order of the metadata.

    An edge belongs to the partition of its destination.
    """

    def __init__(self, graph: StoredGraph) -> None:
        metadata = graph.metadata
        self.nodes = PartSpace.of(
            TypeNames.of_nodes(metadata.node_types), metadata.num_nodes_per_chunk, metadata.num_parts, "node"
        )
        parts = range(metadata.num_parts)
        counts = [[graph.num_edges(edge, "csc", part) for part in parts] for edge in range(len(metadata.edge_types))]
        self.edges = PartSpace.of(TypeNames.of_edges(metadata.edge_types), counts, metadata.num_parts, "edge")
        starts = self.nodes.part_starts[:-1].reshape(metadata.num_parts, -1)
        self._shifts = np.ascontiguousarray(starts.T - self.nodes.typed_starts[:, :-1])

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes of all types."""
        return int(self.nodes.part_starts[-1])

    @property
    def num_edges(self) -> int:
        """Return the number of edges of all types."""
        return int(self.edges.part_starts[-1])

    def part_ids(self, number: int, typed: NDArray[Any]) -> Ints:
        """Return the part IDs (int64[k]) of typed IDs (int32 or int64 [k]) of a node type.

        Raises DataError where one is out of range.
        """
        found, wrong = to_part_ids(typed, self.nodes.typed_starts[number], self._shifts[number])
        if wrong >= 0:
            raise out_of_range(int(typed[wrong]), self.nodes.types.names[number])
        return found

    def range_of(self, part: int) -> tuple[int, int]:
        """Return [low, high) of the part IDs of a partition's nodes."""
        width = len(self.nodes.types.names)
        return int(self.nodes.part_starts[part * width]), int(self.nodes.part_starts[(part + 1) * width])


class PartGraph:
    """A partition's own graph: its nodes, the nodes of other partitions that its edges come from, and its edges.

    Local IDs: own nodes in the order of their part IDs, then the others in that order; own edges in the order of theirs, then
    those of others, which end at nodes fewer than ``hops`` hops away.
    """

    def __init__(self, graph: StoredGraph, book: PartBook, part: int, bits: NDArray[np.uint8], hops: int = 1) -> None:
        """Find the others, up to ``hops`` hops away.

        ``bits``: a bitmap of all nodes, which is overwritten; empty where there is one partition.
        """
        self.graph = graph
        self.book = book
        self.part = part
        self.low, self.high = book.range_of(part)
        self.num_edge_types = len(graph.edge_names)
        self.step = step_of(graph)
        self.indptrs = [graph.indptr(edge, "csc", part) for edge in range(self.num_edge_types)]
        self._indices = [graph.indices(edge, "csc", part) for edge in range(self.num_edge_types)]
        self.edge_starts = book.edges.part_starts[part * self.num_edge_types : (part + 1) * self.num_edge_types + 1]
        self._bits = bits
        bits[:] = 0
        for edge in range(self.num_edge_types) if bits.size else ():
            for others in self._on_threads(self._other_sources, edge):
                mark_bits(bits, others.view(np.uint64))
        self._near: Ranks | None = None  # of the other nodes whose in-edges are there
        for _ in range(hops - 1 if bits.size else 0):
            near = bits.copy()
            self._near = Ranks(near)
            for sources, _, _ in self.halo_edges():
                mark_bits(bits, sources[(sources < self.low) | (sources >= self.high)].view(np.uint64))
            if np.array_equal(near, bits):
                break  # no edge leads on
        self._ranks = Ranks(bits)
        counts = [sum(ids.size for _, _, ids in self._halo_block(*block)) for block in self._halo_blocks()]
        self._halo_starts = np.cumsum([0, *counts])  # of the edges of each (partition, edge type)

    @property
    def num_owned(self) -> int:
        """Return the number of own nodes."""
        return self.high - self.low

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes, with those of other partitions."""
        return self.num_owned + self._ranks.count

    @property
    def num_edges(self) -> int:
        """Return the number of own edges."""
        return int(self.edge_starts[-1] - self.edge_starts[0])

    @property
    def num_halo_edges(self) -> int:
        """Return the number of other partitions' edges."""
        return int(self._halo_starts[-1])

    @property
    def num_all_edges(self) -> int:
        """Return the number of edges, with those of other partitions."""
        return self.num_edges + self.num_halo_edges

    def halo_edges(self) -> Iterator[HaloEdges]:
        """Yield other partitions' edges, ascending by part ID."""
        for block in self._halo_blocks():
            yield from self._halo_block(*block)

    def halo_of_type(self, edge: int) -> Iterator[tuple[int, Iterator[HaloEdges]]]:
        """Yield each other partition's edges of a type, with the local ID of the first."""
        for number, (part, found) in enumerate(self._halo_blocks()):
            if found == edge:
                yield self.num_edges + int(self._halo_starts[number]), self._halo_block(part, edge)

    def _halo_block(self, part: int, edge: int) -> Iterator[HaloEdges]:
        """Yield the edges of a type of another partition, ascending."""
        if part == self.part or self._near is None:
            return
        book = self.book
        number = self.graph.ends_of(edge)[1]
        first, stop = book.nodes.part_range(part, number)
        indptr, indices = self.graph.indptr(edge, "csc", part), self.graph.indices(edge, "csc", part)
        edge_start = int(book.edges.part_starts[part * self.num_edge_types + edge])
        for low, high in slices(stop - first, self.step):
            rows = np.flatnonzero(self._near.find(np.arange(first + low, first + high).view(np.uint64)) >= 0) + low
            for owners, at in _entries(indptr, rows, self.step):
                yield book.part_ids(self.graph.ends_of(edge)[0], indices.reader.take(at)), owners + first, at + edge_start

    def _halo_blocks(self) -> Iterator[tuple[int, int]]:
        num_parts = 0 if self._near is None else self.graph.metadata.num_parts
        return itertools.product(range(num_parts), range(self.num_edge_types))

    def to_local(self, ids: Ints) -> Ints:
        """Return the local IDs of nodes of this graph."""
        if not self._bits.size:
            return ids - self.low
        ranks = self._ranks.find(ids.view(np.uint64))  # -1 for own ones
        return np.where(ranks < 0, ids - self.low, ranks + self.num_owned)

    def others(self) -> Iterator[Ints]:
        """Yield the part IDs of other partitions' nodes, ascending."""
        for low, high in slices(self._bits.size, -(-self.step // 8)):
            yield members(self._bits, low, high).view(np.int64)

    def node_ids(self) -> Iterator[Ints]:
        """Yield the part ID of every node, by local ID."""
        yield from counted(self.low, self.high, self.step)
        yield from self.others()

    def node_types(self) -> Iterator[Ints]:
        """Yield the number of every node's type, by local ID."""
        starts, width = self.book.nodes.part_starts, len(self.book.nodes.types.names)
        for ids in self.node_ids():
            yield (np.searchsorted(starts, ids, side="right") - 1) % width

    def is_own(self) -> Iterator[NDArray[np.uint8]]:
        """Yield 1 for own nodes and 0 for others, by local ID."""
        for ids in self.node_ids():
            yield ((ids >= self.low) & (ids < self.high)).astype(np.uint8)

    def sources(self, edge: int) -> Iterator[Ints]:
        """Yield the local IDs of the sources of a type's edges."""
        return self._on_threads(self.sources_at, edge)

    def sources_at(self, edge: int, low: int, high: int) -> Ints:
        """Return the local IDs of the sources of a type's edges [low, high)."""
        return self.to_local(self._part_sources(edge, low, high))

    def destinations(self, edge: int) -> Iterator[Ints]:
        """Yield the local IDs of the destinations of a type's edges."""
        return self._on_threads(self.destinations_at, edge)

    def destinations_at(self, edge: int, low: int, high: int) -> Ints:
        """Return the local IDs of the destinations of a type's edges [low, high)."""
        first = self.book.nodes.part_range(self.part, self.graph.ends_of(edge)[1])[0] - self.low
        return number_rows(self.indptrs[edge], first, low, high)

    def edge_types(self) -> Iterator[NDArray[np.int32]]:
        """Yield the number of every edge's type, by local ID."""
        for edge in range(self.num_edge_types):
            for low, high in slices(int(self.indptrs[edge][-1]), self.step):
                yield np.full(high - low, edge, np.int32)

    def types_of(self, part_ids: Ints) -> NDArray[np.int32]:
        """Return the numbers of the types of edges of any partition."""
        starts = self.book.edges.part_starts
        return ((np.searchsorted(starts, part_ids, side="right") - 1) % self.num_edge_types).astype(np.int32)

    def local_edges(self, edge: int, low: int, high: int) -> Ints:
        """Return the local IDs of a type's edges [low, high)."""
        return np.arange(low, high) + int(self.edge_starts[edge] - self.edge_starts[0])

    def _on_threads(self, read: Callable[[int, int, int], Ints], edge: int) -> Iterator[Ints]:
        """Yield what ``read`` returns of pieces of a type's edges, in order."""
        cuts = slices(int(self.indptrs[edge][-1]), self.step)
        return map_ordered(lambda cut: read(edge, *cut), cuts, self.graph.room.threads)

    def _other_sources(self, edge: int, low: int, high: int) -> Ints:
        ids = self._part_sources(edge, low, high)
        return ids[(ids < self.low) | (ids >= self.high)]

    def _part_sources(self, edge: int, low: int, high: int) -> Ints:
        return self.book.part_ids(self.graph.ends_of(edge)[0], self._indices[edge].read(low, high))


def _entries(indptr: Ints, rows: Ints, most: int) -> Iterator[tuple[Ints, Ints]]:
    """Yield the entries of chosen rows, at most ``most`` at a time: (their rows, their positions), both int64[k]."""
    counts = indptr[rows + 1] - indptr[rows]
    ends = np.cumsum(counts)
    for low, high in slices(int(ends[-1]) if ends.size else 0, most):
        at = np.arange(low, high)
        number = np.searchsorted(ends, at, side="right")
        yield rows[number], indptr[rows[number]] + at - (ends - counts)[number]


def node_bits(graph: StoredGraph) -> NDArray[np.uint8]:
    """Return scratch for ``PartGraph``: a bit for every node, none where no partition has sources in another."""
    if graph.metadata.num_parts == 1:
        return np.zeros(0, np.uint8)
    words = -(-sum(graph.metadata.num_nodes_per_type) // 64)
    return np.asarray(graph.room.scratch.zeros(8 * words, np.uint8))


def out_of_range(typed: int, name: str) -> DataError:
    """Return the error of a neighbour that is no node."""
    return DataError(f"node {typed} of type {name!r} is out of range", place="the store's indices", fix=FIX)


def step_of(graph: StoredGraph) -> int:
    """Return of how many nodes or edges a piece is."""
    return min(_MOST, graph.room.fit(_ITEM_BYTES))


def counted(low: int, high: int, step: int) -> Iterator[Ints]:
    """Yield low, low + 1, … high - 1 in pieces."""
    for start in range(low, high, step):
        yield np.arange(start, min(start + step, high))


def repeated(value: int, size: int, dtype: str, step: int) -> Iterator[NDArray[Any]]:
    """Yield a value again and again, in pieces."""
    for low, high in slices(size, step):
        yield np.full(high - low, value, dtype)
