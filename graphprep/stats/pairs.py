"""Repeated edges and those whose reverse is there: both directions of a pair of nodes come to one row, bucket by bucket."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import EdgeBuckets, EdgeRows
from graphprep.edges.build import LayoutBuilder, settle_index_dtype
from graphprep.edges.moves import Workspace
from graphprep.edges.tasks import EdgeRuns, cut_tasks
from graphprep.engine.ledger import EDGE_BYTES
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.stats.pairs import NO_ROW, count_pairs
from graphprep.rewrite.stored_edges import EdgeSpan, bucket_bytes, end_types, make_buckets, map_edges
from graphprep.store.items import StoredArrays


class PairCounts(NamedTuple):
    """Edges with the ends of another one before them; of those that are no loops, each pair of ends once, how many there are.

    ``num_returned`` of these lead back where another one leads.
    """

    num_repeated: int
    num_single: int
    num_returned: int

    @property
    def reciprocity(self) -> float | None:
        """Return the share of edges whose reverse is there; None without any."""
        return self.num_returned / self.num_single if self.num_single else None


def pair_edges(store: StoredArrays, number: int, room: Workspace) -> PairCounts:
    """Count in an edge type. Raises DataError where the store's arrays are faulty."""
    metadata = store.metadata
    row_type, other_type = end_types(metadata, number, metadata.primary_layout)
    turned, num_rows = row_type == other_type, metadata.num_nodes_per_type[row_type]
    num_others = metadata.num_nodes_per_type[other_type] << turned
    if not metadata.num_edges_per_type[number]:
        return PairCounts(0, 0, 0)
    with room.scratch.inner() as scratch:
        room = replace(room, scratch=scratch)
        buckets = make_buckets(room, num_rows, metadata.num_edges_per_type[number], num_others)
        _fill(store, number, buckets, room, turned=turned)
        counts = _count(EdgeRuns(buckets, "id", None), settle_index_dtype("auto", num_others), room, turned=turned)
        buckets.runs.close()
    return counts


def _fill(store: StoredArrays, number: int, buckets: EdgeBuckets, room: Workspace, *, turned: bool) -> None:
    """Scatter the edges to buckets, those within a node type by their lower ends: see ``count_pairs``."""

    def turn(span: EdgeSpan) -> tuple[NDArray[Any], NDArray[Any]]:
        rows, others = span.rows, span.others.astype(np.int64, copy=False)
        if turned:
            rows, others = np.minimum(rows, others), 2 * np.maximum(rows, others) + (rows > others)
        return rows.astype(buckets.dtype), others.astype(buckets.dtype)

    first = 0
    for owners, others in map_edges(store, number, room, room.scratch, turn, ids=False):
        buckets.add(EdgeRows(owners, others, first))
        first += owners.size
    buckets.flush()


def _count(edges: EdgeRuns, dtype: str, room: Workspace, *, turned: bool) -> PairCounts:
    builder, found = LayoutBuilder(edges, dtype, None), np.array([NO_ROW, NO_ROW, 0, 0, 0], np.int64)
    tasks = cut_tasks(edges, max(1, bucket_bytes(room) // EDGE_BYTES))
    for piece in map_ordered(lambda task: builder.build(task, positions=False), tasks, room.threads):
        count_pairs(piece.task.low, piece.lengths, piece.others, turned, found)
    return PairCounts(*found[2:].tolist())
