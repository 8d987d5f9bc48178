"""What a store's partitions have, and what lies between them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.options.stats import PartStats
from graphprep.model.schema import edge_type_text
from graphprep.rewrite.partition.assignment import Assignment
from graphprep.rewrite.partition.quality import by_name, measure
from graphprep.rewrite.stored_edges import EdgeSpan, end_types, map_edges
from graphprep.store.items import StoredArrays, part_borders

Ints = NDArray[np.int64]
MOST_IN_MATRIX = 64  # partitions of which each pair is told


def describe_parts(store: StoredArrays, room: Workspace) -> PartStats | None:
    """Describe the partitions; None where there is but one. Raises DataError where the store's arrays are faulty."""
    metadata = store.metadata
    if metadata.num_parts == 1:
        return None
    assignment = _stored_assignment(store, room)
    found = measure(store, assignment, 1, room)
    nodes, edges = metadata.node_types, list(map(edge_type_text, metadata.edge_types))
    return PartStats(
        partition_by=metadata.partition_by,
        nodes=by_name(nodes, found.nodes),
        edges=by_name(edges, found.edges),
        halo=by_name(nodes, found.halo),
        cut_edges=dict(zip(edges, found.cut.tolist(), strict=True)),
        cut_matrix=_cut_matrix(store, assignment, room) if metadata.num_parts <= MOST_IN_MATRIX else (),
        total=found.summary(),
    )


def _stored_assignment(store: StoredArrays, room: Workspace) -> Assignment:
    """Return the partition that each node is in."""
    metadata, parts = store.metadata, []
    for number, size in enumerate(metadata.num_nodes_per_type):
        parts.append(room.scratch.zeros(size, np.int32))
        for part, (low, high) in enumerate(zip(*_bounds(part_borders(metadata, number)), strict=True)):
            parts[-1][low:high] = part
    return Assignment(metadata.partition_by, metadata.num_parts, tuple(parts))


def _bounds(borders: Ints) -> tuple[list[int], list[int]]:
    return borders[:-1].tolist(), borders[1:].tolist()


def _cut_matrix(store: StoredArrays, assignment: Assignment, room: Workspace) -> tuple[tuple[int, ...], ...]:
    """Count the edges of all types from each partition to each."""
    num_parts, metadata = assignment.num_parts, store.metadata
    found = np.zeros(num_parts * num_parts, np.int64)
    for number in range(len(metadata.edge_types)):
        row_type, other_type = end_types(metadata, number, metadata.primary_layout)

        def count(
            span: EdgeSpan,
            of_rows: NDArray[np.int32] = assignment.parts[row_type],
            of_others: NDArray[np.int32] = assignment.parts[other_type],
        ) -> Ints:
            owners, others = of_rows[span.rows], of_others[span.others]
            src, dst = (others, owners) if metadata.primary_layout == "csc" else (owners, others)
            return np.bincount(src * np.int64(num_parts) + dst, minlength=num_parts * num_parts)

        with room.scratch.inner() as scratch:
            for counts in map_edges(store, number, room, scratch, count, ids=False):
                found += counts
    return tuple(map(tuple, found.reshape(num_parts, num_parts).tolist()))
