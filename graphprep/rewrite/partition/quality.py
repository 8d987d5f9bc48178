"""How good a partitioning is: cut edges, what partitions own, their halos, imbalance and communication volume."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.options.partition import PartitionCut, PartitionReport
from graphprep.model.schema import edge_type_text
from graphprep.rewrite.partition.assignment import Assignment
from graphprep.rewrite.stored_edges import EdgeSpan, end_types, map_edges
from graphprep.store.items import StoredArrays

Ints = NDArray[np.int64]
Masks = list[NDArray[np.uint64]]  # for each node type a bit for each of 64 partitions
_BITS = 64
_STEP = 1 << 16


@dataclass(frozen=True)
class Quality:
    """What a partitioning is like. By type and partition: ``nodes``, ``edges``, ``halo`` (int64[types][P]).

    ``cut``: edges between partitions, by edge type. ``volume``: for every node, in how many other partitions neighbors of it
    lie, added up.
    """

    nodes: Ints
    edges: Ints
    cut: Ints
    halo: Ints
    volume: int

    def summary(self) -> PartitionCut:
        """Return sums, and how much more than the mean the largest partition has."""
        num_edges = int(self.edges.sum())
        cut = int(self.cut.sum())
        return PartitionCut(
            cut_edges=cut,
            cut_share=cut / num_edges if num_edges else 0.0,
            halo_nodes=int(self.halo.sum()),
            communication_volume=self.volume,
            node_imbalance=_imbalance(self.nodes),
            edge_imbalance=_imbalance(self.edges),
        )


def _imbalance(counts: Ints) -> float:
    """Return what the largest partition has over the mean; 1 where there is nothing."""
    totals = counts.sum(axis=0)
    return float(totals.max() * totals.size / totals.sum()) if totals.sum() else 1.0


def make_report(store: StoredArrays, quality: Quality, of_hash: Quality, halo_hops: int) -> PartitionReport:
    """Return the report, by types' names."""
    nodes, edges = store.metadata.node_types, [edge_type_text(one) for one in store.metadata.edge_types]
    return PartitionReport(
        nodes=by_name(nodes, quality.nodes),
        edges=by_name(edges, quality.edges),
        cut_edges=dict(zip(edges, quality.cut.tolist(), strict=True)),
        halo=by_name(nodes, quality.halo),
        halo_hops=halo_hops,
        total=quality.summary(),
        hash=of_hash.summary(),
    )


def by_name(names: Sequence[str], counts: Ints) -> dict[str, tuple[int, ...]]:
    """Return the rows of ``counts`` (int64[types][P]) by types' names."""
    return {name: tuple(row) for name, row in zip(names, counts.tolist(), strict=True)}


def measure(store: StoredArrays, assignment: Assignment, halo_hops: int, room: Workspace) -> Quality:
    """Measure a partitioning of a store.

    The halo of a partition are the nodes of others within ``halo_hops`` hops along in-edges of what it owns, along out-edges
    where edges lie by source alone (CSR). Memory: three words a node, whatever the number of partitions, of which 64 are looked
    at in one pass over the edges for each hop. Raises DataError where the store's arrays are faulty.
    """
    with room.scratch.inner() as scratch:
        return _Measuring(store, assignment, replace(room, scratch=scratch)).measure(halo_hops)


@dataclass(frozen=True)
class _Ends:
    """Some edges: partitions of their owners and others, and positions of those that are cut."""

    span: EdgeSpan
    owners: NDArray[np.int32]
    cut: Ints


class _Measuring:
    """Counts over the edges of a store, as often as it takes."""

    def __init__(self, store: StoredArrays, assignment: Assignment, room: Workspace) -> None:
        self._store = store
        self._assignment = assignment
        self._room = room
        metadata, num_parts = store.metadata, assignment.num_parts
        self._nodes = np.zeros((len(metadata.node_types), num_parts), np.int64)
        self._edges = np.zeros((len(metadata.edge_types), num_parts), np.int64)
        self._cut = np.zeros(len(metadata.edge_types), np.int64)
        self._halo = np.zeros_like(self._nodes)
        self._volume = 0

    def measure(self, halo_hops: int) -> Quality:
        """Look at 64 partitions at a time."""
        for number, parts in enumerate(self._assignment.parts):
            for some in _slices(parts):
                self._nodes[number] += np.bincount(some, minlength=self._assignment.num_parts)
        for first in range(0, self._assignment.num_parts, _BITS):
            self._measure_some(first, halo_hops)
        return Quality(self._nodes, self._edges, self._cut, self._halo, self._volume)

    def _measure_some(self, first: int, halo_hops: int) -> None:
        own, reached, touched = self._masks(), self._masks(), self._masks()
        for parts, masks, copies in zip(self._assignment.parts, own, reached, strict=True):
            for start in range(0, parts.size, _STEP):
                masks[start : start + _STEP] = copies[start : start + _STEP] = _bits(parts[start : start + _STEP], first)
        self._first_hop(own, reached, touched, is_first=first == 0)
        for near, mine in zip(touched, own, strict=True):
            for start in range(0, near.size, _STEP):
                others = near[start : start + _STEP] & ~mine[start : start + _STEP]
                self._volume += int(_count_bits(others).sum())
        for _ in range(halo_hops - 1):
            for before, after in zip(touched, reached, strict=True):
                before[:] = after  # what one hop less has reached
            self._next_hop(touched, reached)
            if all(np.array_equal(before, after) for before, after in zip(touched, reached, strict=True)):
                break
        for number, (found, mine) in enumerate(zip(reached, own, strict=True)):
            for start in range(0, found.size, _STEP):
                others = found[start : start + _STEP] & ~mine[start : start + _STEP]
                counts = _count_bits(others)[: self._assignment.num_parts - first]
                self._halo[number, first : first + counts.size] += counts

    def _first_hop(self, own: Masks, reached: Masks, touched: Masks, *, is_first: bool) -> None:
        """Pass the partitions of owners on to the other ends; both ends touch the partitions of each other."""
        for number in range(len(self._edges)):
            row_type, other_type = self._end_types(number)
            for ends in self._ends(number):
                if is_first:
                    self._edges[number] += np.bincount(ends.owners, minlength=self._assignment.num_parts)
                    self._cut[number] += ends.cut.size
                rows, others = ends.span.rows[ends.cut], ends.span.others[ends.cut]
                owners = own[row_type][rows]
                np.bitwise_or.at(reached[other_type], others, owners)
                np.bitwise_or.at(touched[other_type], others, owners)
                np.bitwise_or.at(touched[row_type], rows, own[other_type][others])

    def _next_hop(self, before: Masks, after: Masks) -> None:
        for number in range(len(self._edges)):
            row_type, other_type = self._end_types(number)
            with self._room.scratch.inner() as scratch:
                for span in map_edges(self._store, number, self._room, scratch, lambda span: span):
                    np.bitwise_or.at(after[other_type], span.others, before[row_type][span.rows])

    def _ends(self, number: int) -> Iterable[_Ends]:
        row_parts, other_parts = (self._assignment.parts[one] for one in self._end_types(number))

        def compare(span: EdgeSpan) -> _Ends:
            owners = row_parts[span.rows]
            return _Ends(span, owners, np.flatnonzero(owners != other_parts[span.others]))

        with self._room.scratch.inner() as scratch:
            yield from map_edges(self._store, number, self._room, scratch, compare)

    def _end_types(self, number: int) -> tuple[int, int]:
        return end_types(self._store.metadata, number, self._store.metadata.primary_layout)

    def _masks(self) -> Masks:
        return [self._room.scratch.zeros(parts.size, np.uint64) for parts in self._assignment.parts]


def _bits(parts: NDArray[np.int32], first: int) -> NDArray[np.uint64]:
    """Return the bit of each node's partition, 0 where that is not one of the 64 from ``first`` on."""
    at = parts - first
    inside = (at >= 0) & (at < _BITS)
    return np.where(inside, np.uint64(1) << np.where(inside, at, 0).astype(np.uint64), np.uint64(0))


def _count_bits(masks: NDArray[np.uint64]) -> Ints:
    """Count the masks that have each bit: int64[64]."""
    bits = np.unpackbits(masks.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    return np.asarray(bits.sum(axis=0, dtype=np.int64))


def _slices(array: NDArray[Any]) -> Iterable[NDArray[Any]]:
    for start in range(0, array.size, _STEP):
        yield array[start : start + _STEP]
