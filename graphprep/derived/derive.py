"""Make what an exporter needs of a store and the store lacks: layouts, orders, another partitioning, in a private folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace

from graphprep.derived.columns import move_edge_columns
from graphprep.derived.input_order import order_edges, order_nodes
from graphprep.derived.layouts import make_layout
from graphprep.derived.messages import MessageEdgeFilter
from graphprep.derived.need import (
    check_room,
    is_held_out,
    is_partitioned,
    kept_layouts,
    made_layouts,
    moves_columns,
    partition_method,
    reads_by_id,
    reads_columns,
    reads_split,
)
from graphprep.derived.store import DerivedFiles, DerivedStore
from graphprep.edges.moves import Workspace
from graphprep.model.errors import StorageError
from graphprep.model.export import StoreNeed
from graphprep.model.protocols import Reporter
from graphprep.rewrite.partition.assign import assign_nodes
from graphprep.rewrite.partition.mover import StorePartitioner
from graphprep.storage.faults import display_url, storage_error
from graphprep.storage.private import TMP_DIR_OPTION, PrivateFolder
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.items import check_arrays
from graphprep.store.room import num_part_files, refuse_parts

__all__ = ["DerivedStore", "derived_store"]


@contextlib.contextmanager
def derived_store(
    store: StoreReader, need: StoreNeed, storage: Storage, room: Workspace, reporter: Reporter, tmp_dir: str | None = None
) -> Iterator[DerivedStore]:
    """Yield the store with all that ``need`` names; what is made for it lies in ``tmp_dir`` until the context is left.

    Arrays are those that ``convert`` would have written for the same input. Raises DataError where the store is faulty,
    UsageError for a partitioning that cannot be, StorageError where there is no room.
    """
    for part in range(store.metadata.num_parts):
        check_arrays(store, part)
    check_room(store, need, tmp_dir, reporter)
    with contextlib.ExitStack() as stack:
        maker = _Maker(storage, room, reporter, tmp_dir, stack)
        with maker.naming_tmp_dir():
            ready = maker.partition(store, need)
            maker.order_edges(ready, need)
            if need.input_order:
                maker.order_nodes(ready)
            ready = maker.hold_out(ready, need)
            maker.make_edges(ready, need)
        yield ready


class _Maker:
    """Makes what is missing, type after type, in a private folder that is made when it is first needed."""

    def __init__(
        self, storage: Storage, room: Workspace, reporter: Reporter, tmp_dir: str | None, stack: contextlib.ExitStack
    ) -> None:
        self._storage = storage
        self._room = room
        self._reporter = reporter
        self._stack = stack
        self._folder = PrivateFolder(tmp_dir)
        self._writer: StoreWriter | None = None

    @contextlib.contextmanager
    def naming_tmp_dir(self) -> Iterator[None]:
        """Let failures in the private folder name its parent, and the option that chooses it."""
        try:
            yield
        except StorageError as error:
            if not error.place.startswith(self._folder.make()):
                raise
            raise storage_error(error.__cause__ or error, self._folder.parent, TMP_DIR_OPTION) from error

    def partition(self, store: StoreReader, need: StoreNeed) -> DerivedStore:
        """Return the store in the partitioning that is needed.

        One that is partitioned so already stays as it is, its nodes in the order in which they are.
        """
        metadata = store.metadata
        if is_partitioned(metadata, need):
            return DerivedStore(metadata, store)
        partition = partition_method(metadata, need, self._storage)
        if partition.method == "file" and need.num_parts is None:
            refuse_parts(
                partition.num_parts, display_url(str(need.partition_by)), num_part_files(metadata), self._room.held_bytes
            )
        if partition.num_parts == metadata.num_parts == 1 and all(one.node_order is None for one in metadata.node_schemas):
            return DerivedStore(replace(metadata, partition_by=partition.method), store)
        files = DerivedFiles(self._storage, self._open(), "parts", partition.num_parts)
        layouts = kept_layouts(metadata, need)
        columns = [number for number in range(len(metadata.edge_types)) if reads_columns(metadata, need, number)]
        with self._room.scratch.inner() as scratch:
            room = replace(self._room, scratch=scratch)
            assignment = assign_nodes(store, partition, room, self._reporter)
            mover = StorePartitioner(store, files, assignment, layouts, columns, room, self._reporter)
            mover.write_nodes()
            made = mover.write_edges()
        ready = DerivedStore(made.metadata, None)
        files.show(ready)
        for (part, path), open_array in made.cut.items():
            ready.add(part, path, open_array)
        return ready

    def order_edges(self, ready: DerivedStore, need: StoreNeed) -> None:
        """Make edges by edge ID: all of them, whatever messages pass over."""
        for number in range(len(ready.metadata.edge_types)):
            ends = reads_by_id(ready.metadata, need, number)
            columns = need.edge_columns == "input" or reads_split(ready.metadata, need, number)
            if ends or columns:
                order_edges(ready, self._files(ready), number, self._room, ends=ends, columns=columns)

    def hold_out(self, ready: DerivedStore, need: StoreNeed) -> DerivedStore:
        """Return the store without the edges that messages do not pass over, in its primary layout."""
        metadata = ready.metadata
        numbers = [number for number in range(len(metadata.edge_types)) if is_held_out(metadata, need, number)]
        if not numbers:
            return ready
        files = DerivedFiles(self._storage, self._open(), "messages", metadata.num_parts)
        return MessageEdgeFilter(ready, files, need, self._room, self._reporter).write(numbers)

    def make_edges(self, ready: DerivedStore, need: StoreNeed) -> None:
        """Make layouts, and columns in the order of a layout."""
        columns = need.edge_columns
        for number, num_edges in enumerate(ready.metadata.num_edges_per_type):
            for layout in made_layouts(ready.metadata, need, number):
                make_layout(ready, self._files(ready), number, layout, self._room)
            if columns is not None and columns != "input" and moves_columns(ready.metadata, need):
                move_edge_columns(ready, self._files(ready), number, columns, self._room)
                self._reporter.advance(records=num_edges)

    def order_nodes(self, ready: DerivedStore) -> None:
        """Make nodes by raw ID."""
        for number, num_nodes in enumerate(ready.metadata.num_nodes_per_type):
            order_nodes(ready, self._files(ready), number, self._room)
            self._reporter.advance(records=num_nodes)

    def _files(self, ready: DerivedStore) -> DerivedFiles:
        """Return what writes arrays of the store's partitions."""
        return DerivedFiles(self._storage, self._open(), "store", ready.metadata.num_parts)

    def _open(self) -> StoreWriter:
        if self._writer is None:
            self._stack.callback(self._folder.remove)
            self._writer = self._stack.enter_context(StoreWriter(self._storage, f"{self._folder.make()}/ready"))
            self._writer.on_write = lambda num_bytes: self._reporter.advance(num_bytes=num_bytes)
        return self._writer
