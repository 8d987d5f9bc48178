"""Edges by edge ID and nodes by raw ID, over all partitions; where they stand so already, nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.derived.store import DerivedFiles, DerivedStore
from graphprep.edges.buckets import EdgeRows
from graphprep.edges.build import settle_index_dtype
from graphprep.edges.moves import Blocks, Workspace
from graphprep.edges.tasks import EdgeRuns
from graphprep.engine.local import map_ordered
from graphprep.model.errors import DataError
from graphprep.rewrite.move_parts import OnePart, PartMover, array_pieces
from graphprep.rewrite.stored_edges import EdgeSpan, bucket_bytes, end_types, make_buckets, map_edges
from graphprep.storage.faults import display_url
from graphprep.store.files import StoredFile, column_files
from graphprep.store.items import FIX, StoredItems, check_ids
from graphprep.store.paths import LayoutPaths, NodePaths
from graphprep.store.raw_merge import nodes_by_raw_id
from graphprep.store.single import CountingArray, WholeStore

Ints = NDArray[np.int64]
Array = NDArray[Any]
_STEP = 1 << 17
_EDGE_BYTES = 32  # of an edge while a range of edge IDs is put in order


def order_nodes(ready: DerivedStore, files: DerivedFiles, number: int, room: Workspace) -> None:
    """Write the nodes of a type in the order of their raw IDs: ``raw_order``, and their columns.

    Raises DataError where the store's arrays are faulty.
    """
    schema, folder = ready.metadata.node_schemas[number], ready.node_folder(number)
    with room.scratch.inner() as scratch:
        inner = replace(room, scratch=scratch)
        order, path = _raw_order(ready, number, inner), NodePaths(f"{folder}/input").raw_order
        if order is None:
            ready.add(0, path, partial(CountingArray, path, ready.metadata.num_nodes_per_type[number]))
        else:
            OnePart(files, 0).write(path, "int64", order.shape, array_pieces(order))
        columns = list(column_files(folder, schema.columns, num_slots=schema.num_slots))
        _write_columns(ready, files, folder, columns, order, inner)
    files.show(ready)


def order_edges(ready: DerivedStore, files: DerivedFiles, number: int, room: Workspace, *, ends: bool, columns: bool) -> None:
    """Write the edges of a type by edge ID, by edge row where none are stored: their ends, their columns.

    Raises DataError where the store's arrays are faulty.
    """
    schema, folder = ready.metadata.edge_schemas[number], ready.edge_folder(number)
    found = list(column_files(folder, schema.columns, num_slots=schema.num_slots)) if columns else []
    with room.scratch.inner() as scratch:
        inner, order = replace(room, scratch=scratch), None
        if not _is_in_order(ready, number):
            if found:
                order = scratch.zeros(ready.metadata.num_edges_per_type[number], np.int64)
            _EdgesById(ready, number, inner, order).write(files if ends else None)
        elif ends:
            _write_ends(ready, files, number, inner)
        _write_columns(ready, files, folder, found, order, inner)
    files.show(ready)


def _write_columns(
    ready: DerivedStore, files: DerivedFiles, folder: str, columns: list[StoredFile], order: Ints | None, room: Workspace
) -> None:
    """Write columns in an order, or show them where they stand so."""
    whole = WholeStore(ready)
    if order is not None:
        folders = (folder, f"{folder}/input")
        PartMover(whole, OnePart(files, 0), 0, Blocks(order), room, folders=folders).write(columns)
        return
    for column in columns:
        ready.add(0, f"{folder}/input{column.path[len(folder) :]}", partial(whole.array, 0, column.path))


def _raw_order(ready: DerivedStore, number: int, room: Workspace) -> Ints | None:
    """Return the typed ID of the i-th node by raw ID: int64[n]; None where these count up."""
    metadata = ready.metadata
    schema, size = metadata.node_schemas[number], metadata.num_nodes_per_type[number]
    in_order = schema.node_order is None and (metadata.partition_by == "range" or metadata.num_parts == 1)
    if schema.raw_ids == "identity" or in_order:
        return None
    order, at, is_same = room.scratch.zeros(size, np.int64), 0, True
    for nodes in nodes_by_raw_id(ready, number, room.piece_bytes):
        order[at : at + nodes.typed.size] = nodes.typed
        is_same = is_same and bool((nodes.typed == np.arange(at, at + nodes.typed.size)).all())
        at += nodes.typed.size
    return None if is_same else order


def _is_in_order(ready: DerivedStore, number: int) -> bool:
    """Return whether edge rows are edge IDs."""
    metadata = ready.metadata
    if metadata.edge_schemas[number].edge_id_dtype is None:
        return True
    items = _stored_ids(ready, number)
    for start in range(0, items.size, _STEP):
        ids = items.read(start, min(start + _STEP, items.size))
        if (ids != np.arange(start, start + ids.size)).any():
            return False
    return True


def _stored_ids(ready: DerivedStore, number: int) -> StoredItems:
    path = LayoutPaths(f"{ready.edge_folder(number)}/{ready.metadata.primary_layout}").edge_ids
    return StoredItems(WholeStore(ready).array(0, path))


def _write_ends(ready: DerivedStore, files: DerivedFiles, number: int, room: Workspace) -> None:
    """Write the ends of edges whose rows are in order: one of them stands so."""
    metadata = ready.metadata
    folder, layout = ready.edge_folder(number), metadata.primary_layout
    row_end, other_end = ("dst", "src") if layout == "csc" else ("src", "dst")
    dtype, num_edges = row_dtype(ready, number), metadata.num_edges_per_type[number]
    rows = map_edges(ready, number, room, room.scratch, lambda span: span.rows.astype(dtype))
    OnePart(files, 0).write(f"{folder}/input/{row_end}.npy", dtype, (num_edges,), rows)
    others = partial(WholeStore(ready).array, 0, LayoutPaths(f"{folder}/{layout}").indices)
    ready.add(0, f"{folder}/input/{other_end}.npy", others)


def row_dtype(ready: DerivedStore, number: int) -> str:
    """Return the dtype of the nodes whose edges are a row of the primary layout."""
    row_type, _ = end_types(ready.metadata, number, ready.metadata.primary_layout)
    return settle_index_dtype("auto", ready.metadata.num_nodes_per_type[row_type])


@dataclass(frozen=True)
class _Range:
    """The edges with IDs from ``low`` on: the nodes of their rows, their other ends, their edge rows."""

    low: int
    rows: Array
    others: Array
    edge_rows: Ints | None


class _EdgesById:
    """Scatters edges to ranges of edge IDs, and writes one range after another.

    ``order`` (int64[m]) is filled with the edge row of every edge ID, where it is wanted.
    """

    def __init__(self, ready: DerivedStore, number: int, room: Workspace, order: Ints | None) -> None:
        metadata = ready.metadata
        self._ready = ready
        self._number = number
        self._room = room
        self._order = order
        self._size = metadata.num_edges_per_type[number]
        self._dtypes = row_dtype(ready, number), metadata.edge_schemas[number].index_dtype
        ends = end_types(metadata, number, metadata.primary_layout)
        most = max(metadata.num_nodes_per_type[end] for end in ends)
        self._buckets = make_buckets(room, self._size, self._size, most)
        self._edges = EdgeRuns(self._buckets, "input", None, by_arrival=False)

    def write(self, files: DerivedFiles | None) -> None:
        """Write both ends, where there are files for them."""
        for rows in map_edges(self._ready, self._number, self._room, self._room.scratch, self._turn):
            self._buckets.add(rows)
        self._buckets.flush()
        try:
            if files is None:
                for _ in self._ranges():
                    pass
            else:
                self._write(files)
        finally:
            self._edges.buckets.runs.close()

    def _turn(self, span: EdgeSpan) -> EdgeRows:
        """Return edges as rows of edge IDs: the other end travels as what is an edge ID elsewhere."""
        dtype, ids = self._buckets.dtype, span.ids
        items = StoredItems(self._ready.array(span.part, self._ids_path))
        check_ids(items, span.start, ids, self._size, "edge ID")
        edge_rows = None if self._order is None else span.edge_rows
        return EdgeRows(ids.astype(dtype), span.rows.astype(dtype), span.others.astype(np.uint64), edge_rows=edge_rows)

    @property
    def _ids_path(self) -> str:
        return LayoutPaths(f"{self._ready.edge_folder(self._number)}/{self._ready.metadata.primary_layout}").edge_ids

    def _write(self, files: DerivedFiles) -> None:
        folder = f"{self._ready.edge_folder(self._number)}/input"
        names = ("dst", "src") if self._ready.metadata.primary_layout == "csc" else ("src", "dst")
        arrays = [
            files.open(0, f"{folder}/{name}.npy", np.dtype(dtype), (self._size,))
            for name, dtype in zip(names, self._dtypes, strict=True)
        ]
        for found in self._ranges():
            arrays[0].append(found.rows)
            arrays[1].append(found.others)
        files.entries[0] += [array.close() for array in arrays]

    def _ranges(self) -> Iterator[_Range]:
        """Yield the edges, range by range; fill in the order."""
        for found in map_ordered(lambda cut: self._gather(*cut), self._cuts(), self._room.threads):
            if self._order is not None and found.edge_rows is not None:
                self._order[found.low : found.low + found.edge_rows.size] = found.edge_rows
            yield found

    def _cuts(self) -> Iterator[tuple[int, int, int]]:
        """Yield (bucket, low, high): ranges of edge IDs that are put in order at once."""
        most = max(1, bucket_bytes(self._room) // _EDGE_BYTES)
        for bucket in range(self._buckets.plan.num_buckets):
            low, high = self._buckets.plan.bounds(bucket)
            for start in range(low, high, most):
                yield bucket, start, min(start + most, high)

    def _gather(self, bucket: int, low: int, high: int) -> _Range:
        """Put the edges [low, high) of a bucket in order."""
        size, whole = high - low, (low, high) == self._buckets.plan.bounds(bucket)
        rows, others = (np.empty(size, dtype) for dtype in self._dtypes)
        edge_rows = None if self._order is None else np.empty(size, np.int64)
        seen = np.zeros(size, bool)
        for piece in self._edges.buckets.runs.read(bucket, most_records=_STEP):
            fields = self._edges.fields_of(bucket, piece)
            if not whole:
                fields = fields.take((fields.owners >= low) & (fields.owners < high))
            at = fields.owners.astype(np.int64) - low
            seen[at] = True
            rows[at], others[at] = fields.others, fields.ids
            if edge_rows is not None and fields.edge_rows is not None:
                edge_rows[at] = fields.edge_rows
        if not seen.all():
            place = display_url(_stored_ids(self._ready, self._number).reader.url)
            raise DataError(f"edge ID {low + int(np.argmin(seen))} is missing", place=place, fix=FIX)
        return _Range(low, rows, others, edge_rows)
