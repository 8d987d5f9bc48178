"""A store as an exporter needs it: the stored arrays, and over them those that were made for it in a private folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from graphprep.model.errors import DataError
from graphprep.model.export import EdgeOrder
from graphprep.model.metadata import GraphMetadata, part_name
from graphprep.model.schema import ColumnSchema
from graphprep.rewrite.move_parts import PartFiles
from graphprep.storage.read.arrays import ArrayReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.items import FIX, StoredArray, StoredArrays
from graphprep.store.paths import NodePaths, edge_folder, node_folder

_MOST_OPEN = 32  # each holds a file descriptor, some of those that are joined hold up to 16


class DerivedStore:
    """Reads a store's arrays and those that were made for it.

    ``metadata`` is that of the partitioning in use; its ``layouts`` are those that the store has, so its ``primary_layout`` is
    the one in whose rows stored edge columns lie. What is read by edge ID or raw ID has no partitions: it lies in partition 0.
    """

    def __init__(self, metadata: GraphMetadata, base: StoredArrays | None, all_edges: DerivedStore | None = None) -> None:
        """Take what shows the arrays that were not made; ``all_edges`` is the store whose edges this one has some of.

        ``held_out`` says of edge types how many edges of each part of their split it does not have.
        """
        self.metadata = metadata
        self.all_edges = all_edges or self
        self.held_out: dict[int, Mapping[str, int]] = {}
        self._base = base
        self._made: dict[tuple[int, str], Callable[[], StoredArray]] = {}
        self._open: dict[tuple[int, str], StoredArray] = {}

    def has(self, part: int, path: str) -> bool:
        """Return whether the partition has an array of this path."""
        return (part, path) in self._made or (self._base is not None and self._base.has(part, path))

    def array(self, part: int, path: str) -> StoredArray:
        """Open an array of a partition. Some stay open: to open one costs more than to read a piece of it.

        Raises DataError where there is none of this path.
        """
        array = self._open.get((part, path))
        if array is None:
            if len(self._open) >= _MOST_OPEN:
                self._open.clear()
            array = self._open[part, path] = self._open_array(part, path)
        return array

    def _open_array(self, part: int, path: str) -> StoredArray:
        made = self._made.get((part, path))
        if made is not None:
            return made()
        if self._base is None:
            raise DataError(f"the array {path} is missing", place=part_name(part, self.metadata.num_parts), fix=FIX)
        return self._base.array(part, path)

    def add(self, part: int, path: str, make: Callable[[], StoredArray]) -> None:
        """Show an array, which ``make`` opens, at a path of a partition, in place of what is stored there."""
        self._made[part, path] = make
        self._open.pop((part, path), None)

    # ---- where arrays lie

    def node_folder(self, number: int) -> str:
        """Return the folder of a node type in every partition."""
        return node_folder(self.metadata.node_types[number])

    def edge_folder(self, number: int) -> str:
        """Return the folder of an edge type in every partition."""
        return edge_folder(self.metadata.edge_types[number])

    def edge_column_stem(self, number: int, order: EdgeOrder, column: ColumnSchema) -> str:
        """Return the path stem of an edge column in the row order of a layout, or by edge ID (``input``)."""
        folder = self.edge_folder(number)
        return f"{folder}/{column.path}" if order == self.metadata.primary_layout else f"{folder}/{order}/{column.path}"

    def node_column_stem(self, number: int, column: ColumnSchema) -> str:
        """Return the path stem of a node column in the order of raw IDs."""
        return f"{self.node_folder(number)}/input/{column.path}"

    def input_ends(self, number: int) -> tuple[StoredArray, StoredArray]:
        """Return the typed sources and destinations of all edges, by edge ID."""
        folder = f"{self.edge_folder(number)}/input"
        return self.array(0, f"{folder}/src.npy"), self.array(0, f"{folder}/dst.npy")

    def raw_order(self, number: int) -> StoredArray:
        """Return the typed ID of the i-th node by raw ID, over all partitions: int64[n]."""
        return self.array(0, NodePaths(f"{self.node_folder(number)}/input").raw_order)


class DerivedFiles(PartFiles):
    """Writes arrays to a private folder, and shows them in a ready store."""

    def __init__(self, storage: Storage, writer: StoreWriter, folder: str, num_parts: int) -> None:
        """Take the folder of the writer in which the partitions are to lie."""
        super().__init__(writer, num_parts, f"{folder}/")
        self._storage = storage

    def show(self, ready: DerivedStore) -> None:
        """Show all arrays that are complete."""
        for part, entries in enumerate(self.entries):
            for entry in entries:
                url = self.writer.url_of(f"{self.paths[part]}/{entry.path}")
                ready.add(part, entry.path, partial(ArrayReader, self._storage, url, entry))
            entries.clear()
