"""Write one edge type again: rows move as wholes, the IDs of other ends become new ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from graphprep.edges.move_rows import SortedRows, sort_entries
from graphprep.edges.moves import Array, Blocks, Ints, Then, Workspace, move
from graphprep.model.schema import NEGATIVE_ROLES, Layout
from graphprep.rewrite.move_parts import PartMover, RowFiles, array_pieces
from graphprep.rewrite.order import NodePlaces
from graphprep.store.files import StoredFile, column_files
from graphprep.store.items import StoredArrays, StoredItems, check_ids, outside, read_offsets
from graphprep.store.paths import ColumnPaths, LayoutPaths, edge_folder

_STEP = 1 << 17


class EdgeTypeMover:
    """Writes an edge type in all partitions: the layouts that are wanted, the primary one first, with its columns.

    ``files_of(part, node type)`` writes what belongs to the nodes of a type, in a partition that the store is read as.

    A row keeps the order of its entries, which follows from what moves with them, unless they are ordered by the other ends'
    IDs. Where entries of the other layout name edge rows, the primary one leaves where these went: by owner how far the edges
    of its row moved, or, where rows were sorted again, by edge row.
    """

    def __init__(
        self,
        store: StoredArrays,
        files_of: Callable[[int, str], RowFiles],
        number: int,
        places: Mapping[str, NodePlaces],
        room: Workspace,
        layouts: Collection[Layout],
        *,
        columns: bool = True,
    ) -> None:
        self._store = store
        self._metadata = store.metadata
        self._files_of = files_of
        self._number = number
        self._places = places
        self._room = room
        self._layouts = layouts
        self._with_columns = columns
        self._schema = store.metadata.edge_schemas[number]
        self._folder = edge_folder(store.metadata.edge_types[number])
        self._src, _, self._dst = store.metadata.edge_types[number]
        self._is_sorted = self._schema.neighbor_order == "id"
        self._moves = self._make_moves()

    def _make_moves(self) -> Ints | None:
        metadata = self._metadata
        other = "csr" if metadata.primary_layout == "csc" else "csc"
        if other not in self._layouts or not self._store.has(0, LayoutPaths(f"{self._folder}/{other}").edge_rows):
            return None
        owner = self._dst if metadata.primary_layout == "csc" else self._src
        size = metadata.num_edges_per_type[self._number] if self._is_sorted else self._places[owner].num_nodes
        return np.asarray(self._room.scratch.zeros(size, np.int64))

    def write(self) -> None:
        """Write all arrays."""
        primary = self._metadata.primary_layout
        for layout in sorted(self._layouts, key=lambda one: one != primary):
            first_edge = 0
            for part in range(self._metadata.num_parts):
                with self._room.scratch.inner() as scratch:
                    self._write_part(layout, part, first_edge, replace(self._room, scratch=scratch))
                first_edge += self._metadata.num_edges_per_chunk[self._number][part]

    def _write_part(self, layout: Layout, part: int, first_edge: int, room: Workspace) -> None:
        folder = f"{self._folder}/{layout}"
        owner, other = (self._dst, self._src) if layout == "csc" else (self._src, self._dst)
        indices = StoredItems(self._store.array(part, LayoutPaths(folder).indices))
        bounds = read_offsets(self._store.array(part, LayoutPaths(folder).indptr), indices.size, room.scratch)
        blocks = Blocks.of(self._places[owner].local_order(part), bounds, room.scratch)
        files = self._write_offsets(folder, blocks, self._files_of(part, owner))
        rows = self._write_others(folder, indices, blocks, self._places[other], files, room)
        mover = PartMover(self._store, files, part, blocks, room, rows)
        if self._schema.edge_id_dtype is not None:
            mover.write([StoredFile(LayoutPaths(folder).edge_ids)])
        if layout == self._metadata.primary_layout:
            if self._with_columns:
                columns = column_files(self._folder, self._schema.columns, num_slots=self._schema.num_slots)
                mover.write(columns, self._relabeled(part))
            self._note_moves(blocks, rows, self._places[owner].bounds(part)[0], first_edge)
        elif self._moves is not None:
            path = LayoutPaths(folder).edge_rows
            pieces = self._moved_edge_rows(StoredItems(self._store.array(part, path)), indices, mover)
            files.write(path, "int64", (indices.size,), pieces)

    def _write_offsets(self, folder: str, blocks: Blocks, files: RowFiles) -> RowFiles:
        """Write where rows begin; return what writes their entries."""
        path, bounds = LayoutPaths(folder).indptr, blocks.new_bounds
        assert bounds is not None
        counts = (np.diff(bounds[low : low + _STEP + 1]) for low in range(0, bounds.size - 1, _STEP))
        files.write_offsets(path, bounds.size - 1, counts)
        return files.below(path)

    def _write_others(
        self, folder: str, indices: StoredItems, blocks: Blocks, others: NodePlaces, files: RowFiles, room: Workspace
    ) -> SortedRows | None:
        """Write the other ends; return where entries went if rows were sorted again."""

        def relabel(ids: Array) -> Array:
            out = np.empty_like(ids)
            bad = room.kernels.relabel_ids(ids, others.new_ids, out)
            if bad >= 0:
                raise outside(indices, None, int(ids[bad]), others.num_nodes)
            return out

        rows, pieces = None, move(indices, blocks, room, relabel)
        if self._is_sorted:
            rows = sort_entries(pieces, blocks, self._schema.index_dtype, room)
            pieces = array_pieces(rows.others)
        files.write(LayoutPaths(folder).indices, self._schema.index_dtype, (indices.size,), pieces)
        return rows

    def _relabeled(self, part: int) -> dict[str, Then]:
        """Return what becomes of columns of typed IDs, by the path of their values."""
        found: dict[str, Then] = {}
        for column in self._schema.columns:
            if column.role in NEGATIVE_ROLES:
                path = ColumnPaths(f"{self._folder}/{column.path}").values
                places = self._places[self._src if column.role == "negative_src" else self._dst]
                found[path] = partial(_relabel_negatives, StoredItems(self._store.array(part, path)), places)
        return found

    def _note_moves(self, blocks: Blocks, rows: SortedRows | None, first_node: int, first_edge: int) -> None:
        """Note where the edge rows of a partition of the primary layout went."""
        if self._moves is None:
            return
        assert blocks.bounds is not None
        assert blocks.new_bounds is not None
        if rows is None:
            for low in range(0, blocks.order.size, _STEP):
                old = blocks.order[low : low + _STEP]
                self._moves[first_node + old] = blocks.new_bounds[low : low + old.size] - blocks.bounds[old]
            return
        for piece in blocks.pieces(_STEP):
            old = rows.old_positions(piece)
            first = first_edge + rows.first_entry(piece)
            self._moves[first_edge + old] = np.arange(first, first + old.size)

    def _moved_edge_rows(self, edge_rows: StoredItems, indices: StoredItems, mover: PartMover) -> Iterator[Array]:
        """Yield the new edge rows of the other layout's entries."""
        assert self._moves is not None
        if not self._is_sorted:
            for others, old in _side_by_side(mover.move(indices), mover.move(edge_rows)):
                yield old + self._moves[others]
            return
        for old in mover.move(edge_rows):
            check_ids(edge_rows, None, old, self._moves.size, "edge row")
            yield self._moves[old]


def _relabel_negatives(items: StoredItems, places: NodePlaces, ids: Array) -> Array:
    """Return the new typed IDs of negatives; -1 stands for none."""
    if ids.size and not -1 <= ids.min() <= ids.max() < places.num_nodes:
        bad = ids[(ids < -1) | (ids >= places.num_nodes)]
        raise outside(items, None, int(bad[0]), places.num_nodes)
    return np.where(ids < 0, -1, places.new_ids[np.maximum(ids, 0)]).astype(ids.dtype)


def _side_by_side(first: Iterator[Array], second: Iterator[Array]) -> Iterator[tuple[Array, Array]]:
    """Yield pieces of equal length of two sequences that are equally long, however each is cut."""
    left, right = next(first, None), next(second, None)
    while left is not None and right is not None:
        size = min(left.size, right.size)
        yield left[:size], right[:size]
        left, right = left[size:], right[size:]
        left = left if left.size else next(first, None)
        right = right if right.size else next(second, None)
