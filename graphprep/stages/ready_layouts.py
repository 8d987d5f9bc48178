"""Make a layout that a store lacks, from the one that it has."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import EdgeTypeSchema, Layout
from graphprep.stages.assign import count_parts
from graphprep.stages.build import BuildRules, LayoutBuilder, LayoutFiles, settle_index_dtype, write_layout
from graphprep.stages.edge_buckets import EdgeBuckets, EdgeRows
from graphprep.stages.leaves import EdgeRuns
from graphprep.stages.moves import Room
from graphprep.stages.ready_store import ReadyFiles, ReadyStore
from graphprep.stages.reorder_order import outside
from graphprep.stages.shuffle import (
    MOST_HELD_BYTES,
    ROW_BYTES,
    Desk,
    missing_order_key,
    order_role,
    plan_buckets,
    time_keys,
    weight_keys,
)
from graphprep.stages.stored_cells import read_cells, read_present
from graphprep.stages.stored_items import StoredItems, read_offsets

Ints = NDArray[np.int64]
EDGE_BYTES = 64  # of an edge while it is dealt out or built
_LEAF_PIECES = 4  # a leaf takes as many pieces: it is built at once


def make_layout(ready: ReadyStore, files: ReadyFiles, number: int, layout: Layout, room: Room) -> None:
    """Write a layout of an edge type as ``convert`` would have, beside the primary one.

    Entries of a row follow the type's neighbour order, ties by edge ID, by edge row where none are stored. ``edge_rows`` are
    written where there are columns, or no edge IDs. Raises DataError where the store's arrays are faulty.
    """
    maker = _LayoutMaker(ready, number, layout, room)
    with room.scratch.inner() as scratch:
        maker.deal_all(scratch)
    maker.write(files)
    files.show(ready)


@dataclass(frozen=True)
class _Span:
    """Entries [start, stop) of rows [low, high) of a partition, all of them but those of a long row."""

    low: int
    high: int
    start: int
    stop: int


def entry_spans(indptr: Ints, most: int) -> Iterator[_Span]:
    """Cut rows into spans of at most ``most`` rows and entries; a longer row into several."""
    low, num_rows = 0, indptr.size - 1
    while low < num_rows:
        first, high = int(indptr[low]), min(low + most, num_rows)
        high = low + max(1, int(np.searchsorted(indptr[low + 1 : high + 1], first + most, side="right")))
        last = int(indptr[high])
        for start in range(first, last, most):
            yield _Span(low, high, start, min(start + most, last))
        low = high


class _LayoutMaker:
    """Deals the edges of the primary layout out to the rows of the other, and builds these."""

    def __init__(self, ready: ReadyStore, number: int, layout: Layout, room: Room) -> None:
        metadata = ready.metadata
        self._ready = ready
        self._metadata = metadata
        self._number = number
        self._schema = metadata.edge_schemas[number]
        self._layout = layout
        self._folder = ready.edge_folder(number)
        self._room = room
        src, _, dst = metadata.edge_types[number]
        self._owner, self._other = map(metadata.node_types.index, (src, dst) if layout == "csr" else (dst, src))
        self._offsets = _offsets(metadata, self._owner)
        self._first_nodes = _offsets(metadata, self._other)
        self._edge_sizes = np.zeros(metadata.num_parts, np.int64)
        self._role = order_role(self._schema.neighbor_order, [one.role for one in self._schema.columns if one.role is not None])
        self._has_ids = self._schema.edge_id_dtype is not None
        self._bucket_bytes = _LEAF_PIECES * room.piece_bytes
        self._buckets = self._make_buckets()

    def _make_buckets(self) -> EdgeBuckets:
        num_rows, num_edges = int(self._offsets[-1]), self._metadata.num_edges_per_type[self._number]
        plan = plan_buckets(num_rows, num_edges * EDGE_BYTES + num_rows * ROW_BYTES, self._bucket_bytes)
        wide = max(num_rows, int(self._first_nodes[-1]), num_edges) > 2**32
        desk = Desk(min(self._bucket_bytes, MOST_HELD_BYTES))
        return EdgeBuckets(self._room.pool, plan, desk, np.uint64 if wide else np.uint32)

    def deal_all(self, scratch: Any) -> None:
        """Deal out all partitions' edges."""
        first = 0
        for part in range(self._metadata.num_parts):
            first = self._deal(part, first, scratch)
        self._buckets.flush()

    def _deal(self, part: int, first: int, scratch: Any) -> int:
        """Deal out a partition's edges; the first has the edge row ``first``."""
        folder = f"{self._folder}/{self._metadata.primary_layout}"
        indices = StoredItems(self._ready.array(part, f"{folder}/indices.npy"))
        indptr = read_offsets(self._ready.array(part, f"{folder}/indptr.npy"), indices.size, scratch)
        ids = StoredItems(self._ready.array(part, f"{folder}/edge_ids.npy")) if self._has_ids else None
        first_node, dtype = int(self._first_nodes[part]), self._buckets.dtype

        def read(span: _Span) -> tuple[EdgeRows, Ints]:
            owners = indices.read(span.start, span.stop)
            self._check(indices, owners, span.start)
            bounds = np.clip(indptr[span.low : span.high + 1], span.start, span.stop)
            nodes = np.arange(first_node + span.low, first_node + span.high).astype(dtype)
            rows = EdgeRows(
                owners.astype(dtype),
                np.repeat(nodes, np.diff(bounds)),
                first + span.start if ids is None else ids.read(span.start, span.stop).astype(np.uint64),
                self._keys(part, span),
                np.arange(first + span.start, first + span.stop) if self._with_rows else None,
            )
            return rows, count_parts(owners, self._offsets)

        spans = entry_spans(indptr, max(1, self._room.piece_bytes // EDGE_BYTES))
        for rows, counts in map_ordered(read, spans, self._room.threads):
            self._edge_sizes += counts
            self._buckets.add(rows)
        return first + indices.size

    @property
    def _with_rows(self) -> bool:
        return bool(self._schema.columns) or not self._has_ids

    def _keys(self, part: int, span: _Span) -> NDArray[np.uint64] | None:
        """Return the order keys of entries; None where they are ordered by their IDs or other ends."""
        if self._role is None:
            return None
        column = next(one for one in self._schema.columns if one.role == self._role)
        stem = f"{self._folder}/{column.path}"
        values = read_cells(self._ready, part, stem, column, span.start, span.stop).flat
        keys = weight_keys(values) if self._role == "weight" else time_keys(values)
        present = read_present(self._ready, part, stem, column, span.start, span.stop)
        return keys if present is None else np.where(present, keys, np.uint64(missing_order_key(self._role)))

    def _check(self, indices: StoredItems, owners: NDArray[Any], start: int) -> None:
        num_nodes = int(self._offsets[-1])
        bad = (owners < 0) | (owners >= num_nodes)
        if bad.any():
            at = int(np.argmax(bad))
            raise outside(indices, start + at, int(owners[at]), num_nodes)

    def write(self, files: ReadyFiles) -> None:
        """Build the layout from the edges that were dealt out."""
        schema, room = self._schema, self._room
        index_dtype = _index_dtype(schema, int(self._first_nodes[-1]))
        missing_key = None if self._role is None else missing_order_key(self._role)
        edges = EdgeRuns(self._buckets, schema.neighbor_order, missing_key, by_arrival=False)
        write_layout(
            LayoutBuilder(edges, index_dtype, schema.edge_id_dtype, edge_rows=self._with_rows),
            LayoutFiles(f"{self._folder}/{self._layout}", index_dtype, schema.edge_id_dtype, edge_rows=self._with_rows),
            files,
            np.diff(self._offsets),
            self._edge_sizes,
            BuildRules(self._bucket_bytes, room.threads),
            room.pool,
            keep_positions=False,
        )
        edges.runs.close()


def _offsets(metadata: GraphMetadata, number: int) -> Ints:
    """Return the borders of the partitions among a node type's IDs: int64[P + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(metadata.num_nodes_per_chunk[number], dtype=np.int64)])


def _index_dtype(schema: EdgeTypeSchema, num_nodes: int) -> str:
    """Return the dtype of the layout's other ends: the type's own where they fit."""
    return schema.index_dtype if settle_index_dtype("auto", num_nodes) == "int32" else "int64"
