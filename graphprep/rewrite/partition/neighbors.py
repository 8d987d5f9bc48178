"""The nodes of all types as one graph without directions: numberings of the nodes, and each node's neighbors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import EdgeRows
from graphprep.edges.build import LayoutBuilder, settle_index_dtype
from graphprep.edges.moves import Workspace
from graphprep.edges.tasks import EdgeRuns, cut_tasks
from graphprep.engine.ledger import EDGE_BYTES
from graphprep.engine.local import map_ordered
from graphprep.model.schema import NeighborOrder
from graphprep.rewrite.stored_edges import EdgeSpan, bucket_bytes, end_types, make_buckets, map_edges
from graphprep.store.items import StoredArrays
from graphprep.store.raw_merge import nodes_by_raw_id

Ints = NDArray[np.int64]
_SLICES = 1024  # of each type's nodes: a slice of every type, then the next one of each


@dataclass(frozen=True)
class Neighbors:
    """For each node what it has an edge to or from, once for each of these, without itself.

    ``indptr``: int64[n + 1]; ``indices``: int32 or int64.
    """

    indptr: Ints
    indices: NDArray[Any]

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes."""
        return self.indptr.size - 1


def alternate_types(store: StoredArrays, room: Workspace) -> tuple[Ints, ...]:
    """Number the nodes of all types: int64[n] for each type, by typed ID.

    Of n nodes by raw ID, those from ⌊n·i/1024⌋ on are slice i; the first slices of all types come first, type after type, then
    the second ones.
    """
    sizes = store.metadata.num_nodes_per_type
    borders = np.array([[size * at // _SLICES for at in range(_SLICES + 1)] for size in sizes], np.int64)
    borders = borders.reshape(len(sizes), _SLICES + 1)
    widths = np.diff(borders, axis=1)
    firsts = borders[:, :-1].sum(axis=0) + np.cumsum(widths, axis=0) - widths  # of each slice, by type

    def place(number: int, ranks: Ints) -> Ints:
        at = np.searchsorted(borders[number], ranks, side="right") - 1
        return np.asarray(firsts[number][at] + ranks - borders[number][at])

    return tuple(_number(store, number, partial(place, number), room) for number in range(len(sizes)))


def number_by_type(store: StoredArrays, room: Workspace) -> tuple[Ints, ...]:
    """Number the nodes of all types one type after another, by raw ID: int64[n] for each type, by typed ID."""
    firsts = np.cumsum([0, *store.metadata.num_nodes_per_type]).tolist()
    return tuple(_number(store, number, partial(np.add, firsts[number]), room) for number in range(len(firsts) - 1))


def _number(store: StoredArrays, number: int, place: Callable[[Ints], Ints], room: Workspace) -> Ints:
    """Return what ``place`` makes of the ranks of a type's nodes by raw ID: int64[n], by typed ID."""
    numbers, rank = room.scratch.zeros(store.metadata.num_nodes_per_type[number], np.int64), 0
    for nodes in nodes_by_raw_id(store, number, room.piece_bytes):
        numbers[nodes.typed] = place(np.arange(rank, rank + nodes.typed.size))
        rank += nodes.typed.size
    return numbers


def join_neighbors(store: StoredArrays, numbers: Sequence[Ints], room: Workspace, order: NeighborOrder = "input") -> Neighbors:
    """Put the edges of all types into the rows of both ends; ``numbers`` (int64[n] by type) are those of the nodes.

    Raises DataError where the store's arrays are faulty.
    """
    metadata = store.metadata
    num_nodes, num_entries = sum(metadata.num_nodes_per_type), 2 * sum(metadata.num_edges_per_type)
    buckets = make_buckets(room, num_nodes, num_entries, num_nodes)
    first = 0
    for number in range(len(metadata.edge_types)):
        row_type, other_type = end_types(metadata, number, metadata.primary_layout)

        def turn(
            span: EdgeSpan, of_rows: Ints = numbers[row_type], of_others: Ints = numbers[other_type]
        ) -> tuple[NDArray[Any], NDArray[Any]]:
            rows, others = of_rows[span.rows], of_others[span.others]
            kept = rows != others
            both = np.concatenate([rows[kept], others[kept]]), np.concatenate([others[kept], rows[kept]])
            return both[0].astype(buckets.dtype), both[1].astype(buckets.dtype)

        with room.scratch.inner() as scratch:
            for owners, others in map_edges(store, number, room, scratch, turn):
                buckets.add(EdgeRows(owners, others, first))
                first += owners.size
    buckets.flush()
    return _build(EdgeRuns(buckets, order, None), num_nodes, first, room)


def _build(edges: EdgeRuns, num_nodes: int, num_entries: int, room: Workspace) -> Neighbors:
    dtype = settle_index_dtype("auto", num_nodes)
    made = Neighbors(room.scratch.zeros(num_nodes + 1, np.int64), room.scratch.zeros(num_entries, dtype))
    builder, row, at = LayoutBuilder(edges, dtype, None), 0, 0
    tasks = cut_tasks(edges, max(1, bucket_bytes(room) // EDGE_BYTES))
    for piece in map_ordered(lambda task: builder.build(task, positions=False), tasks, room.threads):
        made.indptr[row + 1 : row + 1 + piece.counts.size] = piece.counts
        made.indices[at : at + piece.others.size] = piece.others
        row, at = row + piece.counts.size, at + piece.others.size
    for start in range(0, num_nodes, room.fit(8)):
        ends = made.indptr[start + 1 : start + 1 + room.fit(8)]
        ends[:] = np.cumsum(ends) + made.indptr[start]
    edges.buckets.runs.close()
    return made
