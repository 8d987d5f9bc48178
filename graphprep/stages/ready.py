"""Make what an exporter needs of a store and the store lacks: layouts, orders, another partitioning, in a private folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from graphprep.model.errors import UsageError
from graphprep.model.export import StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.protocols import Reporter
from graphprep.model.schema import Layout
from graphprep.stages.assign import PARTITION_METHODS, PartitionFunction
from graphprep.stages.moves import Room
from graphprep.stages.partition_file import read_partition_file
from graphprep.stages.ready_columns import move_edge_columns
from graphprep.stages.ready_input import order_edges, order_nodes
from graphprep.stages.ready_layouts import make_layout
from graphprep.stages.ready_parts import StorePartitioner
from graphprep.stages.ready_store import ReadyFiles, ReadyStore
from graphprep.stages.stored_items import check_arrays
from graphprep.storage.arrays import StoreReader
from graphprep.storage.private import PrivateFolder
from graphprep.storage.publish import StoreWriter
from graphprep.storage.urls import Storage

_LAYOUTS: tuple[Layout, ...] = ("csc", "csr")
__all__ = ["ReadyStore", "ready_store"]


@contextlib.contextmanager
def ready_store(
    store: StoreReader, need: StoreNeed, storage: Storage, room: Room, reporter: Reporter, tmp_dir: str | None = None
) -> Iterator[ReadyStore]:
    """Yield the store with all that ``need`` names; what is made for it lies in ``tmp_dir`` until the context is left.

    Arrays are those that ``convert`` would have written for the same input. Raises DataError where the store is faulty,
    UsageError for a partitioning that cannot be, StorageError where there is no room.
    """
    for part in range(store.metadata.num_parts):
        check_arrays(store, part)
    with contextlib.ExitStack() as stack:
        maker = _Maker(storage, room, reporter, tmp_dir, stack)
        ready = maker.partition(store, need)
        maker.make_edges(ready, need)
        if need.input_order:
            maker.order_nodes(ready)
        yield ready


def _wanted_layouts(need: StoreNeed) -> set[Layout]:
    return {*need.layouts, *(layout for layout in _LAYOUTS if layout == need.edge_columns)}


def _is_partitioned(metadata: GraphMetadata, need: StoreNeed) -> bool:
    """Return whether a store is partitioned as needed. What seed or file another method took is not known."""
    if need.num_parts is None and need.partition_by is None:
        return True
    method = need.partition_by or metadata.partition_by
    is_same = method == metadata.partition_by and need.num_parts in (None, metadata.num_parts)
    return is_same and method in ("range", "hash", "modulo")


def _partition_function(metadata: GraphMetadata, need: StoreNeed, storage: Storage) -> PartitionFunction:
    method = need.partition_by or metadata.partition_by
    if method in PARTITION_METHODS:
        return PartitionFunction(method, need.num_parts or metadata.num_parts, need.seed)
    if need.partition_by is None:
        fix = f"say how: --partition-by {', '.join(PARTITION_METHODS)}, or a file"
        raise UsageError("the store is partitioned by a file, which says nothing about other numbers of partitions", fix=fix)
    return read_partition_file(storage, method, metadata.node_types, need.num_parts, need.seed)


class _Maker:
    """Makes what is missing, type after type, in a private folder that is made when it is first needed."""

    def __init__(
        self, storage: Storage, room: Room, reporter: Reporter, tmp_dir: str | None, stack: contextlib.ExitStack
    ) -> None:
        self._storage = storage
        self._room = room
        self._reporter = reporter
        self._stack = stack
        self._folder = PrivateFolder(tmp_dir)
        self._writer: StoreWriter | None = None

    def partition(self, store: StoreReader, need: StoreNeed) -> ReadyStore:
        """Return the store in the partitioning that is needed.

        One that is partitioned so already stays as it is, its nodes in the order in which they are.
        """
        metadata = store.metadata
        if _is_partitioned(metadata, need):
            return ReadyStore(metadata, store)
        partition = _partition_function(metadata, need, self._storage)
        if partition.num_parts == metadata.num_parts == 1 and all(one.node_order is None for one in metadata.node_schemas):
            return ReadyStore(replace(metadata, partition_by=partition.method), store)
        files = ReadyFiles(self._storage, self._open(), "parts", partition.num_parts)
        layouts = {metadata.primary_layout, *_wanted_layouts(need)} & {*metadata.layouts}
        columns = need.edge_columns is not None
        step = StorePartitioner(store, files, partition, layouts, self._room, self._reporter, edge_columns=columns)
        return step.write()

    def make_edges(self, ready: ReadyStore, need: StoreNeed) -> None:
        """Make layouts, columns in the order of a layout, and edges by edge ID."""
        columns, stored = need.edge_columns, ready.metadata.layouts
        layouts = [one for one in _LAYOUTS if one in _wanted_layouts(need) and one not in stored]
        for number, num_edges in enumerate(ready.metadata.num_edges_per_type):
            for layout in layouts:
                make_layout(ready, self._files(ready), number, layout, self._room)
                self._reporter.advance(records=num_edges)
            if columns in ("csc", "csr") and columns != ready.metadata.primary_layout:
                move_edge_columns(ready, self._files(ready), number, columns, self._room)
                self._reporter.advance(records=num_edges)
            if need.input_order or columns == "input":
                files = self._files(ready)
                order_edges(ready, files, number, self._room, ends=need.input_order, columns=columns == "input")
                self._reporter.advance(records=num_edges)

    def order_nodes(self, ready: ReadyStore) -> None:
        """Make nodes by raw ID."""
        for number, num_nodes in enumerate(ready.metadata.num_nodes_per_type):
            order_nodes(ready, self._files(ready), number, self._room)
            self._reporter.advance(records=num_nodes)

    def _files(self, ready: ReadyStore) -> ReadyFiles:
        """Return what writes arrays of the store's partitions."""
        return ReadyFiles(self._storage, self._open(), "store", ready.metadata.num_parts)

    def _open(self) -> StoreWriter:
        if self._writer is None:
            self._stack.callback(self._folder.remove)
            self._writer = self._stack.enter_context(StoreWriter(self._storage, f"{self._folder.make()}/ready"))
        return self._writer
