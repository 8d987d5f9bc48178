"""Write the store that a recipe describes: arrays of rows that stay are gathered, layouts are built anew."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import EdgeBuckets, EdgeRows
from graphprep.edges.build import (
    BuildRules,
    LayoutBuilder,
    LayoutFiles,
    SecondLayout,
    settle_index_dtype,
    write_layout,
)
from graphprep.edges.move_rows import move_entries
from graphprep.edges.moves import Blocks, MovePiece, Workspace
from graphprep.edges.order_keys import missing_order_key, order_keys, order_role
from graphprep.edges.tasks import EdgeRuns
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.bytes.blocks import copy_blocks
from graphprep.kernels.cpu.ids.hash import pair_checksum
from graphprep.model.metadata import GraphMetadata
from graphprep.model.protocols import Reporter
from graphprep.model.schema import ColumnSchema, EdgeTypeSchema, Layout, NeighborOrder, NodeTypeSchema, RawIdKind
from graphprep.rewrite.move_parts import CutFiles
from graphprep.rewrite.stored_edges import bucket_bytes, make_buckets
from graphprep.rewrite.transform.blank import ALWAYS, BlankRow
from graphprep.rewrite.transform.parents import Parents
from graphprep.rewrite.transform.recipe import (
    NO_ROW,
    STEP,
    EdgeRecipe,
    Ids,
    Ints,
    MadeColumn,
    Recipe,
    copied,
    count_up,
    narrow,
    ranks,
    slices,
)
from graphprep.rewrite.transform.tight import raw_id_kind, tight_columns
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.assign import ORDERED, ROUND_ROBIN, count_parts, cut_sizes
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.stored import read_cells, read_present
from graphprep.store.files import StoredFile, column_files, raw_id_files
from graphprep.store.items import Items, StoredArrays, StoredCounts, StoredItems, part_borders, read_offsets
from graphprep.store.paths import ColumnPaths, NodePaths, edge_folder, node_folder
from graphprep.store.raw_merge import nodes_by_typed_id
from graphprep.store.single import WholeStore
from graphprep.store.write import PartList, finish_store

PARENT = "parent_id"


@dataclass(frozen=True)
class _Nodes:
    """The nodes of a type: ``order`` (old typed ID of each, None: all as they are), partition sizes, ``new_ids`` by old ID."""

    order: Ints | None
    sizes: Ints
    new_ids: Ints | None

    @property
    def borders(self) -> Ints:
        """Return the borders of the partitions: int64[P + 1]."""
        return np.concatenate([np.zeros(1, np.int64), np.cumsum(self.sizes)])

    def relabel(self, ids: Ids) -> Ids:
        """Return new typed IDs."""
        return ids if self.new_ids is None else self.new_ids[ids]


@dataclass(frozen=True)
class Selected:
    """Rows of an array in a new order, any of them any number of times: what ``move_entries`` asks of rows."""

    order: Ints

    @property
    def blocks(self) -> Blocks:
        """Return the rows, one item each."""
        return Blocks(self.order)

    def old_positions(self, piece: MovePiece) -> Ints:
        """Return the old rows of a piece."""
        return self.order[piece.low : piece.high]


class RecipeWriter:
    """Writes a store: ``write_nodes``, ``write_edges``, ``finish``. With ``parents`` it has a column of them.

    Raises DataError where the old store's arrays are faulty.
    """

    def __init__(
        self,
        store: StoredArrays,
        recipe: Recipe,
        writer: StoreWriter,
        room: Workspace,
        reporter: Reporter,
        parents: Parents | None = None,
    ) -> None:
        self._store = store
        self._whole = WholeStore(store)
        self._recipe = recipe
        self._parents = parents
        self._writer = writer
        self._files = PartList(writer, store.metadata.num_parts)
        self._room = room
        self._reporter = reporter
        self._nodes: dict[str, _Nodes] = {}
        self._node_schemas: list[NodeTypeSchema] = []
        self._edge_schemas: list[EdgeTypeSchema] = []
        self._edge_counts: list[tuple[int, ...]] = []
        self.row_orders: list[Ids | None] = []  # of each edge type without IDs: the recipe's edges in the order of the rows

    # ---- nodes

    def write_nodes(self) -> None:
        """Write raw IDs and columns of all node types."""
        metadata = self._store.metadata
        for number, name in enumerate(metadata.node_types):
            self._nodes[name] = nodes = self._place(number)
            schema, folder = metadata.node_schemas[number], node_folder(name)
            files = CutFiles(self._files, nodes.sizes)
            columns = self._kept_columns(name, schema.columns)
            if nodes.order is not None:
                columns = tight_columns(self._whole, folder, columns, partial(_slices, nodes.order))
            kind, moved = self._write_raw_ids(number, nodes.order, files)
            moved += column_files(folder, columns, num_slots=schema.num_slots)
            if nodes.order is None:
                if schema.node_order is not None:
                    moved += [StoredFile(NodePaths(folder).previous_ids), StoredFile(NodePaths(folder).raw_order)]
                if schema.num_hot is not None:
                    moved.append(StoredFile(NodePaths(folder).id2index))
                order = count_up(metadata.num_nodes_per_type[number], self._room.scratch)
            else:
                order, schema = nodes.order, replace(schema, node_order=None, num_hot=None)
            if self._parents is not None and all(column.name != PARENT for column in columns):
                parents = self._parents.of_nodes(self._recipe, number, nodes.order, self._room.scratch)
                if parents is not None:
                    made = MadeColumn(ColumnSchema(PARENT, "dense", "int64"), parents)
                    columns = (*columns, made.schema)
                    write_made(files, folder, made, None)
            copy_rows(self._whole, files, moved, order, self._room)
            self._node_schemas.append(replace(schema, raw_ids=kind, columns=columns))
            self._reporter.advance(records=order.size)

    @property
    def orders(self) -> dict[str, Ints | None]:
        """Return the old typed IDs of each node type's nodes, in their new order; None: all are as they were."""
        return {name: nodes.order for name, nodes in self._nodes.items()}

    def _write_raw_ids(self, number: int, order: Ints | None, files: CutFiles) -> tuple[RawIdKind, list[StoredFile]]:
        """Write the raw IDs of a type where they are not stored as they were; return how they are, and what is to be moved."""
        schema, folder = self._store.metadata.node_schemas[number], node_folder(self._store.metadata.node_types[number])
        path, kind = NodePaths(folder).raw_ids, schema.raw_ids
        is_as_it_was = order is None and (self._recipe.store is None or schema.node_order is not None)
        if is_as_it_was or kind == "string":
            return kind, list(raw_id_files(folder, kind))
        if order is None:
            order = count_up(self._store.metadata.num_nodes_per_type[number], self._room.scratch)
        if kind == "identity":
            if _counts_up(order):
                return kind, []
            files.write(path, "int64", order.shape, _slices(order))
            return "int64", []
        found = raw_id_kind(self._whole, path, order)
        if found == kind:
            return kind, list(raw_id_files(folder, kind))
        if found != "identity":
            raw = self._whole.array(0, path)
            files.write(path, found, order.shape, (raw.take(some).astype(found) for some in _slices(order)))
        return found, []

    def new_ids(self, node_type: str) -> Ints | None:
        """Return the new typed ID of every old one, -1 for those that are gone; None: all are as they were."""
        return self._nodes[node_type].new_ids

    def _place(self, number: int) -> _Nodes:
        """Find the new order of a type's nodes: by raw ID in every partition, unless all stay as they are."""
        metadata, scratch, kept = self._store.metadata, self._room.scratch, self._recipe.nodes[number].kept
        sizes = np.array(metadata.num_nodes_per_chunk[number], np.int64)
        if kept is None:
            return _Nodes(None, sizes, None)
        borders = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        counts = np.zeros(sizes.size, np.int64)
        for some in _slices(kept):
            counts += count_parts(some, borders)
        size = int(borders[-1])
        if metadata.node_schemas[number].node_order is None:
            return _Nodes(kept, counts, ranks(kept, size, scratch))
        mask, order, at = scratch.zeros(size, np.bool_), scratch.zeros(kept.size, np.int64), 0
        mask[kept] = True
        paths = NodePaths(node_folder(metadata.node_types[number]))
        for part, first in enumerate(borders[:-1].tolist()):
            raw_order = StoredItems(self._store.array(part, paths.raw_order))
            for start in range(0, raw_order.size, STEP):
                typed = raw_order.read(start, min(start + STEP, raw_order.size)) + first
                found = typed[mask[typed]]
                order[at : at + found.size] = found
                at += found.size
        return _Nodes(order, counts, ranks(order, size, scratch))

    def _kept_columns(self, owner: Any, columns: tuple[ColumnSchema, ...]) -> tuple[ColumnSchema, ...]:
        dropped = {name for of, name in self._recipe.dropped if of == owner}
        return tuple(column for column in columns if column.name not in dropped)

    # ---- edges

    def write_edges(self) -> None:
        """Write layouts and columns of all edge types."""
        for edges in self._recipe.edges:
            with self._room.scratch.inner() as scratch:
                room = replace(self._room, scratch=scratch)
                parents = None
                if self._parents is not None:
                    parents = self._parents.of_edges(self._recipe, edges, scratch)
                    parents = count_up(edges.size, scratch) if parents is None else parents
                writer = _EdgeWriter(self._store, edges, self._recipe, self._nodes, self._files, room, parents)
                self._edge_counts.append(tuple(writer.write(self._edge_schemas).tolist()))
                self.row_orders.append(copied(writer.row_order, self._room.scratch))
            self._reporter.advance(records=edges.size)

    def _partition_by(self) -> tuple[str, str | None]:
        """Return the method that gives every node its partition, and what it was before nodes were ordered across them.

        Where nodes are gone, ``range`` and ``random`` would not.
        """
        old = self._store.metadata
        if self._are_all_there or old.partition_by not in ("range", "random", ROUND_ROBIN, ORDERED):
            return old.partition_by, old.previous_partition_by if old.partition_by == ORDERED else None
        if old.partition_by == ORDERED and any(map(self._has_left, range(len(old.node_types)))):
            return ORDERED, "file"
        cut = all(np.array_equal(one.sizes, cut_sizes(int(one.sizes.sum()), one.sizes.size)) for one in self._nodes.values())
        return "range" if cut and old.partition_by == "range" else "file", None

    def _has_left(self, number: int) -> bool:
        """Return whether some node of a type, of which all are there, stands in another partition than at first."""
        old = self._store.metadata
        name, borders = old.node_types[number], part_borders(old, number)
        if self._nodes[name].order is not None or old.node_schemas[number].node_order is None:
            return False
        for part, low in enumerate(borders[:-1].tolist()):
            previous = StoredItems(self._store.array(part, NodePaths(node_folder(name)).previous_ids))
            for at in slices(previous.size):
                first = previous.read(at.start, at.stop)
                if first.size and not low <= first.min() <= first.max() < borders[part + 1]:
                    return True
        return False

    @property
    def _are_all_there(self) -> bool:
        return all(nodes.order is None for nodes in self._nodes.values())

    def finish(self, provenance: Callable[[], object]) -> GraphMetadata:
        """Write the manifests, provenance.json and metadata.json; that publishes the store."""
        old, (partition_by, previous) = self._store.metadata, self._partition_by()
        metadata = replace(
            old,
            edge_types=tuple(edges.edge_type for edges in self._recipe.edges),
            num_nodes_per_chunk=tuple(tuple(self._nodes[name].sizes.tolist()) for name in old.node_types),
            num_edges_per_chunk=tuple(self._edge_counts),
            layouts=tuple(sorted(self._recipe.layouts)),
            partition_by=partition_by,
            previous_partition_by=previous,
            node_schemas=tuple(self._node_schemas),
            edge_schemas=self._with_reverses(),
            parts=(),
        )
        return finish_store(self._writer, self._files.entries, metadata, provenance)

    def _with_reverses(self) -> tuple[EdgeTypeSchema, ...]:
        """Return the schemas of edge types with what is still known of reverses: of types that have the edges that they had."""
        old, types = self._store.metadata, [edges.edge_type for edges in self._recipe.edges]
        before = {name: (one.checksum, one.reverse_of) for name, one in zip(old.edge_types, old.edge_schemas, strict=True)}
        same = {name for name, one in zip(types, self._edge_schemas, strict=True) if before.get(name, ("",))[0] == one.checksum}
        found = []
        for name, edges, schema in zip(types, self._recipe.edges, self._edge_schemas, strict=True):
            known = before[name][1] if name in same else None
            found.append(replace(schema, reverse_of=edges.reverse_of or (known if known in same else None)))
        return tuple(found)


class _EdgeWriter:
    """Writes an edge type."""

    def __init__(
        self,
        store: StoredArrays,
        edges: EdgeRecipe,
        recipe: Recipe,
        nodes: dict[str, _Nodes],
        files: PartList,
        room: Workspace,
        parents: Ids | None,
    ) -> None:
        self._store, whole, metadata = store, WholeStore(store), store.metadata
        self._edges, self._nodes, self._files, self._room = edges, nodes, files, room
        self._layouts = sorted(recipe.layouts)  # csc, the primary one where it is there, comes first
        self._folder = edge_folder(edges.edge_type)
        self._old_folder = edge_folder(metadata.edge_types[edges.number])
        old = self._old = metadata.edge_schemas[edges.number]
        blank = edges.rows is not None and any((some == NO_ROW).any() for some in _slices(edges.rows))
        made = {column.schema.name: column for column in edges.made}
        dropped = {name for of, name in recipe.dropped if of == metadata.edge_types[edges.number]}
        stored = [column for column in old.columns if column.name not in {*made, *dropped}]
        if parents is not None and PARENT not in made and all(column.name != PARENT for column in stored):
            made[PARENT] = MadeColumn(ColumnSchema(PARENT, "dense", "int64"), parents)
        self._source: StoredArrays = BlankRow(whole, self._old_folder, tuple(stored)) if blank else whole
        columns = [replace(column, optional=column.optional or (blank and column.role not in ALWAYS)) for column in stored]
        if recipe.store is not None or edges.old_ids is not None:
            columns = list(
                tight_columns(self._source, self._old_folder, columns, lambda: map(self._old_rows, slices(edges.size)))
            )
        self._stored = columns
        self._made = [_tight(one) for one in made.values()]
        self._num_slots = old.num_slots
        self.row_order: Ids | None = None  # of edges without IDs
        final = {column.name: column for column in (*self._stored, *(one.schema for one in self._made))}
        places = [column.name for column in old.columns if column.name in final]
        self.columns = tuple(final[name] for name in dict.fromkeys([*places, *final]))
        order = recipe.neighbor_order or old.neighbor_order
        self._role = order_role(order, [column.role for column in self.columns if column.role is not None])
        self._order: NeighborOrder = "input" if self._role is None and order in ("time", "weight") else order
        self._dtypes = self._settle(recipe)

    def _settle(self, recipe: Recipe) -> tuple[str, str | None]:
        """Return the dtypes of other ends and of edge IDs: the wanted or the old ones, where they hold what there is."""
        src, _, dst = self._edges.edge_type
        most = max(self._num_nodes(dst if layout == "csr" else src) for layout in self._layouts)
        wanted: Any = recipe.index_dtype or ("int64" if self._old.index_dtype == "int64" else "auto")
        index = settle_index_dtype(wanted, most)
        if self._old.edge_id_dtype is None:
            return index, None
        wanted = recipe.index_dtype or ("int64" if self._old.edge_id_dtype == "int64" else "auto")
        return index, settle_index_dtype(wanted, self._edges.size)

    def _num_nodes(self, name: str) -> int:
        return int(self._nodes[name].sizes.sum())

    def write(self, schemas: list[EdgeTypeSchema]) -> Ints:
        """Write the layouts, then the columns in the order of the primary one; return each partition's edges: int64[P]."""
        edges, (index_dtype, id_dtype), room = self._edges, self._dtypes, self._room
        primary, *other = self._layouts
        buckets = self._scatter(primary)
        rules = BuildRules(bucket_bytes(room), room.threads)
        has_columns, counts = bool(self.columns) or self._num_slots, self._counts(primary)
        missing_key = None if self._role is None else missing_order_key(self._role)
        second = None
        if other:
            rows_of = self._owner(other[0])
            second = SecondLayout(
                buckets, edges.size, self._num_nodes(rows_of), room.pool, rules.task_bytes, edge_rows=has_columns
            )
        has_order = has_columns or id_dtype is None
        order = _RowOrder(room.scratch.zeros(edges.size if has_order else 0, narrow(edges.size)))
        built = write_layout(
            LayoutBuilder(
                EdgeRuns(buckets, self._order, missing_key),
                index_dtype,
                id_dtype or settle_index_dtype("auto", edges.size),
                keys=second is not None,
            ),
            LayoutFiles(f"{self._folder}/{primary}", index_dtype, id_dtype),
            self._files,
            self._nodes[self._owner(primary)].sizes,
            counts,
            rules,
            room.pool,
            keep_positions=False,
            second=second,
            columns=(order,) if has_order else (),
        )
        self.row_order = order.edge_ids if id_dtype is None else None
        buckets.runs.close()
        if second is not None:
            second.finish()
            found = EdgeRuns(second.buckets, self._order, missing_key, by_arrival=False)
            self._write_second(other[0], found, rules, edge_rows=has_columns)
        if has_columns:
            self._write_columns(order.edge_ids, counts)
        schemas.append(
            EdgeTypeSchema(
                neighbor_order=self._order,
                index_dtype=index_dtype,
                edge_id_dtype=id_dtype,
                multigraph=built.repeated if self._order == "id" else None,
                checksum=f"{self._checksum():016x}",
                columns=self.columns,
                num_slots=self._num_slots,
            )
        )
        return counts

    def _write_second(self, layout: Layout, found: EdgeRuns, rules: BuildRules, *, edge_rows: bool) -> None:
        """Write the other layout, of edges that the first one handed on."""
        index_dtype, id_dtype = self._dtypes
        write_layout(
            LayoutBuilder(found, index_dtype, id_dtype, edge_rows=edge_rows),
            LayoutFiles(f"{self._folder}/{layout}", index_dtype, id_dtype, edge_rows=edge_rows),
            self._files,
            self._nodes[self._owner(layout)].sizes,
            self._counts(layout),
            rules,
            self._room.pool,
            keep_positions=False,
        )
        found.buckets.runs.close()

    def _owner(self, layout: Layout) -> str:
        return self._edges.edge_type[2 if layout == "csc" else 0]

    def _ends(self, layout: Layout, at: slice) -> tuple[Ids, Ids]:
        """Return (rows, other ends) of some edges, as new typed IDs."""
        src, _, dst = self._edges.edge_type
        ends = self._nodes[src].relabel(self._edges.src[at]), self._nodes[dst].relabel(self._edges.dst[at])
        return ends[::-1] if layout == "csc" else ends

    def _counts(self, layout: Layout) -> Ints:
        """Count the edges of each partition's rows: int64[P]."""
        if self._files.num_parts == 1:
            return np.array([self._edges.size], np.int64)
        counts = np.zeros(self._files.num_parts, np.int64)
        nodes, ends = self._nodes[self._owner(layout)], self._edges.dst if layout == "csc" else self._edges.src
        for some in _slices(ends):
            counts += count_parts(nodes.relabel(some).astype(np.int64), nodes.borders)
        return counts

    def _scatter(self, layout: Layout) -> EdgeBuckets:
        """Scatter all edges to buckets of a layout's rows."""
        src, _, dst = self._edges.edge_type
        row_type, other_type = (dst, src) if layout == "csc" else (src, dst)
        buckets = make_buckets(self._room, self._num_nodes(row_type), self._edges.size, self._num_nodes(other_type))
        for at in slices(self._edges.size):
            owners, others = self._ends(layout, at)
            buckets.add(EdgeRows(owners.astype(buckets.dtype), others.astype(buckets.dtype), at.start, self._keys(at)))
        buckets.flush()
        return buckets

    def _keys(self, at: slice) -> NDArray[np.uint64] | None:
        """Return the order keys of some edges; None where they are ordered by their IDs or other ends."""
        if self._role is None:
            return None
        for made in self._made:
            if made.schema.role == self._role:
                return order_keys(self._role, made.values[at], None if made.present is None else made.present[at])
        column = next(column for column in self._stored if column.role == self._role)
        stem, rows = f"{self._old_folder}/{column.path}", self._old_rows(at)
        values = self._source.array(0, f"{stem}.npy").take(rows).reshape(-1)
        present = self._source.array(0, ColumnPaths(stem).present).take(rows) if column.optional else None
        return order_keys(self._role, values, present)

    def _old_rows(self, at: Any) -> Ints:
        """Return the old rows of some edges; new ones have the blank row, which is behind the last."""
        assert self._edges.rows is not None
        rows = self._edges.rows[at]
        return np.where(rows == NO_ROW, self._source.metadata.num_edges_per_type[self._edges.number], rows)

    def _write_columns(self, edge_ids: Ids, sizes: Ints) -> None:
        files = CutFiles(self._files, sizes)
        stored = list(column_files(self._old_folder, self._stored, num_slots=self._num_slots))
        if stored:
            order = self._room.scratch.zeros(edge_ids.size, np.int64)
            for at in slices(edge_ids.size):
                order[at] = self._old_rows(edge_ids[at])
            copy_rows(self._source, files, stored, order, self._room, (self._old_folder, self._folder))
        for made in self._made:
            write_made(files, self._folder, made, edge_ids)

    def _checksum(self) -> int:
        """Return the edge checksum: docs/store.md, "Hashes"."""
        src, _, dst = self._edges.edge_type
        hashes = {name: raw_hashes(self._store, name, self._room) for name in {src, dst}}

        def checksum(at: slice) -> int:
            return pair_checksum(hashes[src][self._edges.src[at]], hashes[dst][self._edges.dst[at]])

        return sum(map_ordered(checksum, slices(self._edges.size), self._room.threads)) % 2**64


def _tight(made: MadeColumn) -> MadeColumn:
    """Return a column that is optional only where some row lacks a value."""
    if made.present is None or not made.present.all():
        return made
    return replace(made, schema=replace(made.schema, optional=False), present=None)


@dataclass
class _RowOrder:
    """Takes the edge IDs of a layout in the order of its rows, as if they were a column."""

    edge_ids: Ids
    _at: int = 0

    def gather(self, edge_ids: NDArray[Any]) -> Cells:
        """See ``RowColumn``."""
        return Cells(None, edge_ids.reshape(-1, 1))

    def append(self, cells: Cells) -> None:
        """See ``RowColumn``."""
        self.edge_ids[self._at : self._at + len(cells.values)] = cells.values[:, 0]
        self._at += len(cells.values)


# ---- what others write with, too


def copy_rows(
    store: StoredArrays,
    files: CutFiles,
    stored: Iterable[StoredFile],
    order: Ints,
    room: Workspace,
    renamed: tuple[str, str] = ("", ""),
) -> None:
    """Write arrays with the rows ``order`` of what is stored; paths that begin with the first of ``renamed`` get the second."""
    old, new = renamed

    def rename(path: str) -> str:
        return new + path.removeprefix(old)

    with room.scratch.inner() as scratch:
        offsets: dict[str, Ints] = {}
        for file in stored:
            reader = store.array(0, file.path)
            items: Items = StoredCounts(reader) if file.is_offsets else StoredItems(reader)
            for path in file.chain:
                if path not in offsets:
                    offsets[path] = read_offsets(store.array(0, path), _num_items(store, path), scratch)
            pieces = move_entries(items, Selected(order), [offsets[path] for path in file.chain], room)
            chain = tuple(map(rename, file.chain))
            if file.is_offsets:
                files.write_offsets(rename(file.path), order.size, pieces, chain)
            else:
                files.write(rename(file.path), reader.entry.dtype, reader.shape, pieces, chain)


def _num_items(store: StoredArrays, path: str) -> int:
    """Return the length of the arrays to which offsets lead."""
    is_entries = path.endswith(".entry_offsets.npy")
    stem = path.removesuffix(".entry_offsets.npy" if is_entries else ".offsets.npy")
    return store.array(0, ColumnPaths(stem).start if is_entries else ColumnPaths(stem).values).shape[0]


def write_made(files: CutFiles, folder: str, made: MadeColumn, order: Ids | None) -> None:
    """Write a column that was computed, its rows in this order (None: as they are)."""
    values, offsets, stem = made.values, made.offsets, f"{folder}/{made.schema.path}"

    def rows() -> Iterator[Any]:
        return (at if order is None else order[at] for at in slices(made.size))

    if offsets is None:
        files.write(f"{stem}.npy", made.schema.dtype, values.shape, (values[some] for some in rows()))
    else:
        path = ColumnPaths(stem).offsets
        files.write_offsets(path, made.size, (stops - starts for starts, stops in _spans(offsets, rows())))
        files.write(ColumnPaths(stem).values, made.schema.dtype, values.shape, _ragged(values, offsets, rows()), (path,))
    if made.schema.optional and made.present is not None:
        present = made.present
        files.write(ColumnPaths(stem).present, "bool", present.shape, (present[some] for some in rows()))


def _spans(offsets: Ints, rows: Iterator[Any]) -> Iterator[tuple[Ints, Ints]]:
    """Yield where some rows' values begin and end."""
    firsts, lasts = offsets[:-1], offsets[1:]
    return ((firsts[some], lasts[some]) for some in rows)


def _ragged(values: NDArray[Any], offsets: Ints, rows: Iterator[Any]) -> Iterator[NDArray[Any]]:
    """Yield the values of rows, a few hundred thousand at a time, or those of one row."""
    for starts, stops in _spans(offsets, rows):
        ends, low = np.cumsum(stops - starts), 0
        while low < starts.size:
            before = int(ends[low - 1]) if low else 0
            high = max(low + 1, int(np.searchsorted(ends, before + STEP, side="right")))
            out = np.empty(int(ends[high - 1]) - before, values.dtype)
            copy_blocks(values, starts[low:high], stops[low:high], out)
            yield out
            low = high


def raw_hashes(store: StoredArrays, node_type: str, room: Workspace) -> NDArray[np.uint64]:
    """Return h of the raw IDs of a type's nodes, by typed ID: uint64[n]."""
    number = store.metadata.node_types.index(node_type)
    out: NDArray[np.uint64] = room.scratch.zeros(store.metadata.num_nodes_per_type[number], np.uint64)
    for nodes in nodes_by_typed_id(store, number, room.piece_bytes):
        out[nodes.typed] = nodes.raw.hashes()
    return out


def _slices(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    for at in slices(len(array)):
        yield array[at]


def _counts_up(order: Ints) -> bool:
    return all(np.array_equal(order[at], np.arange(at.start, at.stop)) for at in slices(order.size))


def column_values(
    store: StoredArrays, folder: str, column: ColumnSchema, scratch: Scratch
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return all values of a dense column, and which rows have one (None: all), over all partitions of a whole store."""
    stem, size = f"{folder}/{column.path}", store.array(0, f"{folder}/{column.path}.npy").shape[0]
    width = int(np.prod(column.item_shape, dtype=np.int64))
    values = scratch.zeros(size * width, column.dtype).reshape(size, *column.item_shape)
    present = scratch.zeros(size, np.bool_) if column.optional else None
    for at in slices(size):
        values[at] = read_cells(store, 0, stem, column, at.start, at.stop).values.reshape(values[at].shape)
        found = read_present(store, 0, stem, column, at.start, at.stop)
        if present is not None and found is not None:
            present[at] = found
    return values, present
