"""Write a store again with the nodes of every partition, or of all together, in another order. Everything follows.

``previous_ids`` leads to the nodes' first order, however often they were reordered, and is not there where they are back in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from graphprep.edges.moves import Array, Blocks, Ints, Workspace, move
from graphprep.model.errors import DataError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.reorder import GapCost
from graphprep.model.protocols import Reporter
from graphprep.model.schema import EdgeType, NodeTypeSchema
from graphprep.rewrite.gaps import measure_gaps
from graphprep.rewrite.keys import OrderRules
from graphprep.rewrite.move_parts import CutFiles, OnePart, PartFiles, PartMover, RowFiles, array_pieces
from graphprep.rewrite.order import NodePlaces, order_nodes
from graphprep.rewrite.reorder_edges import EdgeTypeMover
from graphprep.rewrite.walks import WALKS, walk_keys
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.assign import ORDERED, TypedCounter, parts_of_rows
from graphprep.store.files import column_files, raw_id_files
from graphprep.store.items import FIX, StoredArrays, StoredItems, check_arrays, check_ids, part_borders
from graphprep.store.paths import LayoutPaths, NodePaths, edge_folder, node_folder
from graphprep.store.raw_merge import nodes_by_raw_id
from graphprep.store.single import WholeStore
from graphprep.store.write import finish_store

_STEP = 1 << 19


class StoreReorderer:
    """Writes a store again, its nodes in the order of their keys.

    ``order``, ``measure``, ``write_nodes``, ``write_edges`` and ``finish`` are called one after another.
    """

    def __init__(self, store: StoreReader, writer: StoreWriter, rules: OrderRules, room: Workspace, reporter: Reporter) -> None:
        old, is_global = store.metadata, rules.is_global or (rules.by is None and store.metadata.partition_by == ORDERED)
        self._is_global = is_global and old.num_parts > 1
        self._stored = store
        self._store: StoredArrays = WholeStore(store) if self._is_global else store
        self._metadata = self._store.metadata
        self._rules = rules
        self._writer = writer
        self._room = room
        self._reporter = reporter
        self._files = PartFiles(writer, store.metadata.num_parts)
        self._places: dict[str, NodePlaces] = {}
        self._schemas: list[NodeTypeSchema] = []
        self.gaps = (GapCost(0.0, 0.0), GapCost(0.0, 0.0))

    def order(self) -> None:
        """Find the new order of all nodes.

        Raises DataError where the store's arrays are faulty.
        """
        for part in range(self._stored.metadata.num_parts):
            check_arrays(self._stored, part)
        walked, first = walk_keys(self._store, self._rules, self._room) if self._rules.by in WALKS else None, 0
        for number, (name, size) in enumerate(zip(self._metadata.node_types, self._metadata.num_nodes_per_type, strict=True)):
            keys = None if walked is None else walked[first : first + size]
            self._places[name] = order_nodes(self._room.kernels, self._store, number, self._rules, self._room.scratch, keys)
            first += size
            self._schemas.append(self._new_schema(number))
            self._reporter.advance(records=self._places[name].num_nodes)

    def _new_schema(self, number: int) -> NodeTypeSchema:
        """Say what becomes of the schema of a node type, which raw IDs, which order and which hot nodes it has."""
        schema, sizes = self._metadata.node_schemas[number], self._metadata.num_nodes_per_chunk[number]
        schema = replace(schema, num_hot=self._count_hot(number))
        parts, places = range(len(sizes)), self._places[self._metadata.node_types[number]]
        if _count_up(piece for part in parts for piece in places.previous_ids(part)):
            return schema  # nothing moves
        if not _count_up(piece for part in parts for piece in self._previous_ids(number, part)):
            raw_ids = "int64" if schema.raw_ids == "identity" else schema.raw_ids
            return replace(schema, raw_ids=raw_ids, node_order=self._rules.by or schema.node_order)
        is_new = schema.node_order is not None and schema.raw_ids == "int64"
        path = NodePaths(node_folder(self._metadata.node_types[number])).raw_ids
        if is_new and _count_up(piece for part in parts for piece in self._moved(number, part, path)):
            return replace(schema, raw_ids="identity", node_order=None)
        return replace(schema, node_order=None)

    def _count_hot(self, number: int) -> tuple[int, ...] | None:
        """Return how many of the first nodes of each partition are hot: of all, where they are ordered across partitions."""
        ratio, borders = self._rules.split_ratio, part_borders(self._stored.metadata, number)
        if ratio is None:
            return None
        if self._is_global:
            return tuple(np.diff(np.minimum(borders, int(borders[-1] * ratio))).tolist())
        return tuple(int(size * ratio) for size in np.diff(borders).tolist())

    def measure(self) -> None:
        """Find what the order is worth: ``gaps``, before and after."""
        self.gaps = measure_gaps(self._store, self._places, self._room)

    def write_nodes(self) -> None:
        """Write raw IDs and columns of all node types, and how their new IDs lead back."""
        for number, name in enumerate(self._metadata.node_types):
            folder, schema, new = node_folder(name), self._metadata.node_schemas[number], self._schemas[number]
            files = [*column_files(folder, schema.columns, num_slots=schema.num_slots)]
            files += raw_id_files(folder, new.raw_ids) if schema.raw_ids != "identity" else []
            if new.num_hot is not None:
                self._write_index(number, folder)
            for part, num_nodes in enumerate(self._metadata.num_nodes_per_chunk[number]):
                out = self._files_of(part, name)
                if new.node_order is not None:
                    self._write_places(number, part, folder, out)
                blocks = Blocks(self._places[name].local_order(part))
                with self._room.scratch.inner() as scratch:
                    room = replace(self._room, scratch=scratch)
                    PartMover(self._store, out, part, blocks, room).write(files)
                self._reporter.advance(records=num_nodes)

    def write_edges(self) -> None:
        """Write layouts and columns of all edge types."""
        for number, num_edges in enumerate(self._metadata.num_edges_per_type):
            with self._room.scratch.inner() as scratch:
                room = replace(self._room, scratch=scratch)
                EdgeTypeMover(self._store, self._files_of, number, self._places, room, self._metadata.layouts).write()
            self._reporter.advance(records=num_edges)

    def finish(self, provenance: Callable[[], object]) -> GraphMetadata:
        """Write the manifests, provenance.json and metadata.json; that publishes the store."""
        metadata = replace(self._stored.metadata, node_schemas=tuple(self._schemas))
        if self._is_global:
            first = metadata.previous_partition_by or metadata.partition_by
            has_left = any(map(self._has_left, range(len(metadata.node_types))))
            metadata = replace(
                metadata,
                num_edges_per_chunk=tuple(map(self._edge_counts, metadata.edge_types)),
                partition_by=ORDERED if has_left else first,
                previous_partition_by=first if has_left else None,
            )
        return finish_store(self._writer, self._files.entries, metadata, provenance)

    def _has_left(self, number: int) -> bool:
        """Return whether some node of a type is not in its first partition."""
        at, borders = 0, part_borders(self._stored.metadata, number)
        if self._schemas[number].node_order is None:
            return False
        for first in self._previous_ids(number, 0):
            if (parts_of_rows(first, borders) != parts_of_rows(np.arange(at, at + first.size), borders)).any():
                return True
            at += first.size
        return False

    def _edge_counts(self, edge_type: EdgeType) -> tuple[int, ...]:
        """Return how many edges each partition owns in the primary layout."""
        path = LayoutPaths(f"{edge_folder(edge_type)}/{self._metadata.primary_layout}").indices
        return tuple(next(entry.shape[0] for entry in entries if entry.path == path) for entries in self._files.entries)

    def _files_of(self, part: int, node_type: str) -> RowFiles:
        if not self._is_global:
            return OnePart(self._files, part)
        return CutFiles(self._files, np.diff(part_borders(self._stored.metadata, self._metadata.node_types.index(node_type))))

    def _write_places(self, number: int, part: int, folder: str, files: RowFiles) -> None:
        """Write which node each was at first, and the nodes in the order of their raw IDs."""
        places = self._places[self._metadata.node_types[number]]
        shape = (self._metadata.num_nodes_per_chunk[number][part],)
        files.write(NodePaths(folder).previous_ids, "int64", shape, self._previous_ids(number, part))
        if self._metadata.node_schemas[number].raw_ids == "identity":  # no longer
            files.write(NodePaths(folder).raw_ids, "int64", shape, places.previous_ids(part))
        path = NodePaths(folder).raw_order
        with self._room.scratch.inner() as scratch:
            if self._is_global:
                raw_order = array_pieces(self._global_raw_order(number, scratch))
            else:
                raw_order = places.new_locals(part, self._old_raw_order(number, part, path))
            files.write(path, "int64", shape, raw_order)

    def _write_index(self, number: int, folder: str) -> None:
        """Write the new typed ID of each previous one, which may be in another partition."""
        borders, at = part_borders(self._stored.metadata, number), 0
        with self._room.scratch.inner() as scratch:
            found = scratch.zeros(int(borders[-1]), np.int64)
            for part in range(self._metadata.num_parts):
                for first in self._previous_ids(number, part):
                    if first.size and not 0 <= first.min() <= first.max() < found.size:
                        words = f"expected typed IDs in [0, {found.size}), found {first.min()} to {first.max()}"
                        raise DataError(words, place=NodePaths(folder).previous_ids, fix=FIX)
                    found[first] = np.arange(at, at + first.size)
                    at += first.size
            CutFiles(self._files, np.diff(borders)).write(NodePaths(folder).id2index, "int64", found.shape, array_pieces(found))

    def _global_raw_order(self, number: int, scratch: Scratch) -> Ints:
        """Return the new local IDs of each partition's nodes, by raw ID, partition after partition: int64[n]."""
        borders, places = part_borders(self._stored.metadata, number), self._places[self._metadata.node_types[number]]
        counter, found = TypedCounter(np.diff(borders)), scratch.zeros(places.num_nodes, np.int64)
        for nodes in nodes_by_raw_id(self._stored, number, self._room.piece_bytes):
            new = places.new_ids[nodes.typed].astype(np.int64)
            parts = parts_of_rows(new, borders)
            found[counter.take(parts)] = new - borders[parts]
        return found

    def _previous_ids(self, number: int, part: int) -> Iterator[Array]:
        """Yield for every new local ID of a partition the first typed one."""
        name = self._metadata.node_types[number]
        if self._metadata.node_schemas[number].node_order is None:
            return self._places[name].previous_ids(part)
        return self._moved(number, part, NodePaths(node_folder(name)).previous_ids)

    def _moved(self, number: int, part: int, path: str) -> Iterator[Array]:
        """Yield what an array of nodes holds, in their new order."""
        order = self._places[self._metadata.node_types[number]].local_order(part)
        return move(StoredItems(self._store.array(part, path)), Blocks(order), self._room)

    def _old_raw_order(self, number: int, part: int, path: str) -> Iterator[Ints]:
        """Yield the old local IDs of a partition's nodes, by raw ID."""
        size = self._metadata.num_nodes_per_chunk[number][part]
        is_raw = self._metadata.node_schemas[number].node_order is None
        items = None if is_raw else StoredItems(self._store.array(part, path))
        for start in range(0, size, _STEP):
            stop = min(start + _STEP, size)
            rows = np.arange(start, stop) if items is None else items.read(start, stop)
            if items is not None:
                check_ids(items, start, rows, size, "local ID")
            yield rows


def _count_up(pieces: Iterator[Array]) -> bool:
    """Return whether the numbers are 0, 1, 2 and so on; all pieces are taken."""
    at, found = 0, True
    for piece in pieces:
        found = found and bool((piece == np.arange(at, at + piece.size)).all())
        at += piece.size
    return found
