"""The edges of a type in the row order of the primary layout, over all partitions, with both ends and edge IDs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import ROW_BYTES, EdgeBuckets, WriteBuffer, plan_buckets
from graphprep.edges.moves import Workspace
from graphprep.engine.budget import format_size
from graphprep.engine.ledger import EDGE_BYTES, Need
from graphprep.engine.local import map_ordered, num_in_flight
from graphprep.kernels.cpu.ids.part_graph import number_rows
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import Layout
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays, StoredItems, check_ids, part_borders, read_offsets
from graphprep.store.paths import LayoutPaths, edge_folder

Ints = NDArray[np.int64]
Made = TypeVar("Made")
_TASK_PIECES = 4  # a bucket takes as many pieces: it is built at once


@dataclass(frozen=True)
class EdgeSpan:
    """Edges in a row: entries [start, stop) of a partition; the first has the edge row ``first_row`` among all of the type.

    ``rows`` are the nodes by which the layout is compressed, ``others`` the other ends: typed IDs, int64 and as stored.
    ``ids`` are edge IDs as stored; without, or where they are not wanted, edge rows stand in for them: int64.
    """

    part: int
    start: int
    stop: int
    first_row: int
    rows: Ints
    others: NDArray[Any]
    ids: NDArray[Any]

    @property
    def edge_rows(self) -> Ints:
        """Return where the edges stand in the primary layout."""
        return np.arange(self.first_row, self.first_row + self.rows.size)


def map_edges(
    store: StoredArrays,
    number: int,
    room: Workspace,
    scratch: Scratch,
    make: Callable[[EdgeSpan], Made],
    num_ids: int | None = None,
    *,
    ids: bool = True,
) -> Iterator[Made]:
    """Yield what is made of an edge type's edges, on the threads, in the row order of the primary layout.

    ``ids``: whether edge IDs are wanted. Raises DataError for an end that is no node, and for an edge ID that is not below
    ``num_ids``, where that is given.
    """
    first_row = 0
    for part in range(store.metadata.num_parts):
        reader = _PartEdges(store, number, part, first_row, scratch, num_ids, ids=ids)
        size, step = reader.indices.size, room.fit(EDGE_BYTES)
        spans = ((start, min(start + step, size)) for start in range(0, size, step))
        for start, made in enumerate(map_ordered(partial(_make, make, reader), spans, room.threads)):
            room.advance(min(step, size - start * step))
            yield made
        first_row += size


def _make(make: Callable[[EdgeSpan], Made], reader: _PartEdges, span: tuple[int, int]) -> Made:
    return make(reader.read(*span))


class _PartEdges:
    """Reads the edges of a partition."""

    def __init__(
        self,
        store: StoredArrays,
        number: int,
        part: int,
        first_row: int,
        scratch: Scratch,
        num_ids: int | None,
        *,
        ids: bool,
    ) -> None:
        metadata = store.metadata
        layout = metadata.primary_layout
        folder = f"{edge_folder(metadata.edge_types[number])}/{layout}"
        row_type, other_type = end_types(metadata, number, layout)
        has_ids = ids and metadata.edge_schemas[number].edge_id_dtype is not None
        self._part = part
        self._first_row = first_row
        self._first_node = int(part_borders(metadata, row_type)[part])
        self._num_others = metadata.num_nodes_per_type[other_type]
        self.indices = StoredItems(store.array(part, LayoutPaths(folder).indices))
        self.indptr = read_offsets(store.array(part, LayoutPaths(folder).indptr), self.indices.size, scratch)
        self._num_ids = num_ids
        self._ids = StoredItems(store.array(part, LayoutPaths(folder).edge_ids)) if has_ids else None

    def read(self, start: int, stop: int) -> EdgeSpan:
        """Read entries [start, stop)."""
        others, first_row = self.indices.read(start, stop), self._first_row + start
        check_ids(self.indices, start, others, self._num_others)
        rows = number_rows(self.indptr, self._first_node, start, stop)
        if self._ids is None:
            ids = np.arange(first_row, first_row + rows.size)
        else:
            ids = self._ids.read(start, stop)
            if self._num_ids is not None:
                check_ids(self._ids, start, ids, self._num_ids, "edge ID")
        return EdgeSpan(self._part, start, stop, first_row, rows, others, ids)


def end_types(metadata: GraphMetadata, number: int, layout: Layout) -> tuple[int, int]:
    """Return the numbers of the node types at both ends: that whose nodes are the layout's rows, and the other."""
    src, _, dst = metadata.edge_types[number]
    row, other = (dst, src) if layout == "csc" else (src, dst)
    return metadata.node_types.index(row), metadata.node_types.index(other)


def make_buckets(room: Workspace, num_rows: int, num_edges: int, num_others: int) -> EdgeBuckets:
    """Make buckets for the edges of so many rows, with other ends below ``num_others``."""
    plan = plan_buckets(num_rows, num_edges * EDGE_BYTES + num_rows * ROW_BYTES, bucket_bytes(room))
    write_buffer = WriteBuffer(WriteBuffer.cap_of(bucket_bytes(room)))
    return EdgeBuckets(room.kernels, room.pool, plan, write_buffer, num_others)


def derive_needs(room: Workspace) -> Iterator[Need]:
    """Declare what making what a store lacks takes."""
    yield from room.needs()
    num_buckets, size = num_in_flight(room.threads), bucket_bytes(room)
    yield Need("buckets", num_buckets * size, f"{num_buckets} at a time, of {format_size(size)}")


def bucket_bytes(room: Workspace) -> int:
    """Return what a bucket may take while it is built."""
    return _TASK_PIECES * room.piece_bytes
