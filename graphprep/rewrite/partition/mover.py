"""Another partitioning of a store: nodes get the typed IDs that ``convert`` would have given them, and everything follows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Blocks, Workspace
from graphprep.model.errors import DataError
from graphprep.model.metadata import GraphMetadata, PartEntry, part_name
from graphprep.model.protocols import Reporter
from graphprep.model.schema import Layout, RawIdKind
from graphprep.rewrite.move_parts import CutFiles, PartFiles, PartMover, array_pieces
from graphprep.rewrite.order import NodePlaces
from graphprep.rewrite.partition.assignment import Assignment
from graphprep.rewrite.reorder_edges import EdgeTypeMover
from graphprep.storage.faults import display_url
from graphprep.store.assign import TypedCounter
from graphprep.store.files import Chain, StoredFile, column_files, raw_id_files
from graphprep.store.items import FIX, Items, StoredArray, StoredArrays, StoredCounts, StoredItems
from graphprep.store.paths import LayoutPaths, NodePaths, edge_folder, node_folder
from graphprep.store.raw_merge import nodes_by_raw_id
from graphprep.store.single import SlicedArray, SlicedOffsets, WholeStore

Ints = NDArray[np.int64]
_STEP = 1 << 19


@dataclass(frozen=True)
class _NewNodes:
    """The nodes of a type in their new order: ``places`` are those among all of them, ``sizes`` (int64[P]) the partitions'.

    ``stays`` says that it is the old order: nothing moves, partitions are cut elsewhere.
    """

    places: NodePlaces
    sizes: Ints
    raw_ids: RawIdKind
    stays: bool

    @property
    def borders(self) -> Ints:
        """Return the borders of the partitions: int64[P + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])


@dataclass(frozen=True)
class Repartitioned:
    """A store in another partitioning: what its metadata is, and arrays that were not written, as stored ones are cut to them.

    ``cut`` opens these, by partition and path.
    """

    metadata: GraphMetadata
    cut: Mapping[tuple[int, str], Callable[[], StoredArray]]


class StorePartitioner:
    """Writes a store again in another partitioning.

    ``layouts`` are those to write, the primary one among them, ``with_columns`` the numbers of the edge types whose columns are
    to be there. Raises DataError where the store's arrays are faulty.
    """

    def __init__(
        self,
        store: StoredArrays,
        files: PartFiles,
        assignment: Assignment,
        layouts: Collection[Layout],
        with_columns: Collection[int],
        room: Workspace,
        reporter: Reporter,
    ) -> None:
        self._store = store
        self._whole = WholeStore(store)
        self._files = files
        self._assignment = assignment
        self._layouts = layouts
        self._room = room
        self._reporter = reporter
        self._with_columns = with_columns
        self._nodes: dict[str, _NewNodes] = {}
        self._cut: dict[tuple[int, str], Callable[[], StoredArray]] = {}

    def write_nodes(self) -> None:
        """Place the nodes of all types, and write what belongs to them."""
        for number, name in enumerate(self._store.metadata.node_types):
            self._nodes[name] = _place_nodes(self._store, number, self._assignment, self._room)
            self._write_nodes(number, self._nodes[name])

    def write_edges(self) -> Repartitioned:
        """Write what belongs to the edges of all types; return the store that all is."""
        for number in range(len(self._store.metadata.edge_types)):
            self._write_edges(number)
        return Repartitioned(self._metadata(), self._cut)

    def _write_nodes(self, number: int, nodes: _NewNodes) -> None:
        metadata = self._store.metadata
        folder, schema = node_folder(metadata.node_types[number]), metadata.node_schemas[number]
        files, order = CutFiles(self._files, nodes.sizes), nodes.places.order
        moved = list(column_files(folder, schema.columns, num_slots=schema.num_slots))
        if nodes.raw_ids != "identity" and schema.raw_ids == "identity":
            files.write(NodePaths(folder).raw_ids, "int64", order.shape, array_pieces(order))
        elif nodes.raw_ids != "identity":
            moved += raw_id_files(folder, schema.raw_ids)
        if nodes.stays:
            self._cut_files(moved, nodes.borders)
            return
        with self._room.scratch.inner() as scratch:
            PartMover(self._whole, files, 0, Blocks(order), replace(self._room, scratch=scratch)).write(moved)
        self._reporter.advance(records=order.size)

    def _write_edges(self, number: int) -> None:
        metadata, columns = self._store.metadata, number in self._with_columns
        src, _, dst = metadata.edge_types[number]
        if self._nodes[src].stays and self._nodes[dst].stays:
            self._cut_edges(number, columns=columns)
            return
        places = {name: nodes.places for name, nodes in self._nodes.items()}

        def files_of(_: int, node_type: str) -> CutFiles:
            return CutFiles(self._files, self._nodes[node_type].sizes)

        with self._room.scratch.inner() as scratch:
            room = replace(self._room, scratch=scratch)
            EdgeTypeMover(self._whole, files_of, number, places, room, self._layouts, columns=columns).write()
        self._reporter.advance(records=metadata.num_edges_per_type[number])

    def _cut_edges(self, number: int, *, columns: bool) -> None:
        """Cut the layouts of an edge type, and its columns."""
        metadata = self._store.metadata
        (src, _, dst), schema = metadata.edge_types[number], metadata.edge_schemas[number]
        folder = edge_folder(metadata.edge_types[number])
        for layout in self._layouts:
            paths = LayoutPaths(f"{folder}/{layout}")
            indptr = StoredFile(paths.indptr, is_offsets=True)
            files = [StoredFile(path) for path in (paths.indices, paths.edge_ids, paths.edge_rows) if self._store.has(0, path)]
            if columns and layout == metadata.primary_layout:
                files += column_files(folder, schema.columns, num_slots=schema.num_slots)
            below = [replace(file, chain=(indptr.path, *file.chain)) for file in files]
            self._cut_files([indptr, *below], self._nodes[dst if layout == "csc" else src].borders)

    def _cut_files(self, files: Iterable[StoredFile], borders: Ints) -> None:
        """Cut arrays that stay as they are at the borders (int64[P + 1]) of their rows."""
        bounds: dict[Chain, Ints] = {(): borders}
        for file in files:
            array, at = self._whole.array(0, file.path), bounds[file.chain]
            items: Items = StoredCounts(array) if file.is_offsets else StoredItems(array)
            items.check_size(int(at[-1]))
            for part, (low, high) in enumerate(pairwise(at.tolist())):
                self._cut[part, file.path] = partial(_cut, self._whole, file, low, high)
            if file.is_offsets:
                found = bounds[*file.chain, file.path] = np.asarray(array.take(at), np.int64)
                if found[0] != 0 or (found[1:] < found[:-1]).any():
                    raise DataError("offsets must begin at 0 and not descend", place=display_url(array.url), fix=FIX)

    def _metadata(self) -> GraphMetadata:
        old, num_parts = self._store.metadata, self._assignment.num_parts
        nodes = [self._nodes[name] for name in old.node_types]
        return replace(
            old,
            num_nodes_per_chunk=tuple(tuple(one.sizes.tolist()) for one in nodes),
            num_edges_per_chunk=tuple(self._edge_counts(number) for number in range(len(old.edge_types))),
            num_parts=num_parts,
            partition_by=self._assignment.method,
            previous_partition_by=None,
            layouts=tuple(layout for layout in old.layouts if layout in self._layouts),
            node_schemas=tuple(
                replace(schema, raw_ids=one.raw_ids, node_order=None, num_hot=None)
                for schema, one in zip(old.node_schemas, nodes, strict=True)
            ),
            parts=tuple(PartEntry(part_name(part, num_parts), 0, "") for part in range(num_parts)),
        )

    def _edge_counts(self, number: int) -> tuple[int, ...]:
        """Return how many edges each partition owns in the primary layout."""
        metadata = self._store.metadata
        path = LayoutPaths(f"{edge_folder(metadata.edge_types[number])}/{metadata.primary_layout}").indices
        made = [{entry.path: entry.shape[0] for entry in entries} for entries in self._files.entries]
        return tuple(sizes[path] if path in sizes else self._cut[part, path]().shape[0] for part, sizes in enumerate(made))


def _cut(whole: WholeStore, file: StoredFile, low: int, high: int) -> StoredArray:
    array = whole.array(0, file.path)
    return SlicedOffsets(array, low, high) if file.is_offsets else SlicedArray(array, low, high)


def _place_nodes(store: StoredArrays, number: int, assignment: Assignment, room: Workspace) -> _NewNodes:
    """Find the new typed IDs of a type's nodes: their order by (partition, raw ID)."""
    metadata, scratch, parts = store.metadata, room.scratch, assignment.parts[number]
    kind, size = metadata.node_schemas[number].raw_ids, metadata.num_nodes_per_type[number]
    sizes = np.zeros(assignment.num_parts, np.int64)
    for start in range(0, size, _STEP):
        sizes += np.bincount(parts[start : start + _STEP], minlength=assignment.num_parts)
    order, new_ids = scratch.zeros(size, np.int64), scratch.zeros(size, np.int32 if size < 2**31 else np.int64)
    counter, is_identity, stays = TypedCounter(sizes), kind in ("identity", "int64"), True
    for nodes in nodes_by_raw_id(store, number, room.piece_bytes):
        typed = counter.take(parts[nodes.typed].astype(np.int64))
        order[typed] = nodes.typed
        new_ids[nodes.typed] = typed
        is_identity = is_identity and bool((nodes.raw.numbers.view(np.int64) == typed).all())
        stays = stays and bool((nodes.typed == typed).all())
    places = NodePlaces(np.array([0, size], np.int64), order, new_ids)
    return _NewNodes(places, sizes, "identity" if is_identity else "int64" if kind == "identity" else kind, stays)
