"""Make what an exporter needs of a store and the store lacks: layouts, orders, another partitioning, in a private folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from graphprep.model.export import StoreNeed
from graphprep.model.protocols import Reporter
from graphprep.model.schema import Layout
from graphprep.stages.moves import Room
from graphprep.stages.ready_columns import move_edge_columns
from graphprep.stages.ready_layouts import make_layout
from graphprep.stages.ready_store import ReadyFiles, ReadyStore
from graphprep.stages.stored_items import check_arrays
from graphprep.storage.arrays import StoreReader
from graphprep.storage.private import PrivateFolder
from graphprep.storage.publish import StoreWriter
from graphprep.storage.urls import Storage

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
        ready = ReadyStore(store.metadata, store)
        maker = _Maker(storage, room, reporter, tmp_dir, stack)
        layouts = _missing_layouts(ready, need)
        for number, num_edges in enumerate(ready.metadata.num_edges_per_type):
            for layout in layouts:
                make_layout(ready, maker.files(ready), number, layout, room)
                reporter.advance(records=num_edges)
            if need.edge_columns in ("csc", "csr") and need.edge_columns != ready.metadata.primary_layout:
                move_edge_columns(ready, maker.files(ready), number, need.edge_columns, room)
                reporter.advance(records=num_edges)
        yield ready


def _missing_layouts(ready: ReadyStore, need: StoreNeed) -> list[Layout]:
    wanted = {*need.layouts, *([need.edge_columns] if need.edge_columns in ("csc", "csr") else [])}
    return [layout for layout in ("csc", "csr") if layout in wanted and layout not in ready.metadata.layouts]


class _Maker:
    """Opens the private folder when it is first needed."""

    def __init__(
        self, storage: Storage, room: Room, reporter: Reporter, tmp_dir: str | None, stack: contextlib.ExitStack
    ) -> None:
        self._storage = storage
        self._stack = stack
        self._folder = PrivateFolder(tmp_dir)
        self._writer: StoreWriter | None = None

    def files(self, ready: ReadyStore) -> ReadyFiles:
        """Return what writes arrays of the store's partitions."""
        if self._writer is None:
            self._stack.callback(self._folder.remove)
            self._writer = self._stack.enter_context(StoreWriter(self._storage, f"{self._folder.make()}/ready"))
        return ReadyFiles(self._storage, self._writer, "store", ready.metadata.num_parts)
