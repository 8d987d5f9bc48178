"""A stored graph as if it had one partition: node i of a type is the one that trainers call i, rows are in that order."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Blocks, MovePiece, Workspace, move
from graphprep.exporters.view.exported_columns import cast_cells
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.schema import ColumnSchema, Layout
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.torch_rows import fill_labels
from graphprep.store.items import StoredItems, read_offsets
from graphprep.store.paths import ColumnPaths, LayoutPaths, edge_folder
from graphprep.store.single import CountingArray, WholeStore

Ints = NDArray[np.int64]
Array = NDArray[Any]
_STEP = 1 << 17


class WholeGraph:
    """Reads dense columns of nodes, and the rows of edges, in the order of the nodes' IDs."""

    def __init__(self, graph: StoredGraph) -> None:
        self.graph = graph
        self.store = WholeStore(graph.store)
        self._orders: dict[int, Ints | None] = {}

    def order(self, number: int) -> Ints | None:
        """Return the typed ID of every node, by its ID: int64[n]; None where the two are the same."""
        if number not in self._orders:
            self._orders[number] = None if self.graph.ids_are_typed(number) else self._find_order(number)
        return self._orders[number]

    def node_values(self, number: int, column: ColumnSchema) -> Iterator[Array]:
        """Yield a dense column of all nodes in pieces [k, *item_shape]; zeros where a node has none."""
        stem = f"{self.graph.store.node_folder(number)}/{column.path}"
        found = self.read(f"{stem}.npy", self.order(number), self.graph.room, column)
        return _with_labels(found, column, lambda: self.node_present(number, column))

    def node_values_of(self, number: int, column: ColumnSchema, low: int, high: int) -> Array:
        """Return a dense column of nodes [low, high): [k, *item_shape]."""
        path = f"{self.graph.store.node_folder(number)}/{column.path}.npy"
        items, order = StoredItems(self.store.array(0, path)), self.order(number)
        found = items.read(low, high) if order is None else items.gather(order[low:high], order[low:high] + 1)
        return as_column(found, column, path)

    def node_present(self, number: int, column: ColumnSchema) -> Iterator[Array]:
        """Yield which nodes have a column that is optional: bool."""
        stem = f"{self.graph.store.node_folder(number)}/{column.path}"
        return self.read(ColumnPaths(stem).present, self.order(number), self.graph.room)

    def rows(self, edge: int, layout: Layout, scratch: Scratch) -> WholeRows:
        """Return the rows of an edge type; what they hold comes from ``scratch``."""
        folder = f"{edge_folder(self.graph.metadata.edge_types[edge])}/{layout}"
        size = self.store.array(0, LayoutPaths(folder).indices).shape[0]
        indptr = read_offsets(self.store.array(0, LayoutPaths(folder).indptr), size, scratch)
        src, dst = self.graph.ends_of(edge)
        owner, other = (dst, src) if layout == "csc" else (src, dst)
        order = self.order(owner)
        blocks = None if order is None else Blocks.of(order, indptr, scratch)
        room = replace(self.graph.room, scratch=scratch)
        return WholeRows(self, edge, layout, other, indptr, blocks, folder, room)

    def read(
        self, path: str, order: Ints | Blocks | None, room: Workspace, column: ColumnSchema | None = None
    ) -> Iterator[Array]:
        """Yield an array of all partitions in pieces, its rows in an order; as ``column`` has it where that is given."""
        items = StoredItems(self.store.array(0, path))
        for piece in self.pieces(items, order, room):
            yield piece if column is None else as_column(piece, column, path)

    def pieces(self, items: StoredItems, order: Ints | Blocks | None, room: Workspace) -> Iterator[Array]:
        """Yield items in pieces, in an order."""
        if order is not None:
            yield from move(items, order if isinstance(order, Blocks) else Blocks(order), room)
            return
        step = room.fit(items.item_bytes)
        for low in range(0, items.size, step):
            yield items.read(low, min(low + step, items.size))

    def _find_order(self, number: int) -> Ints | None:
        size = self.graph.metadata.num_nodes_per_type[number]
        order, is_same = self.graph.room.scratch.zeros(size, np.int64), True
        for low in range(0, size, _STEP):
            typed = np.arange(low, min(low + _STEP, size))
            ids = self.graph.to_ids(number, typed)
            order[ids] = typed
            is_same = is_same and bool((ids == typed).all())
        return None if is_same else order


@dataclass(frozen=True)
class WholeRows:
    """The rows of an edge type in a layout. ``indptr`` (int64[n + 1]) is that of the stored rows, ``blocks`` moves them."""

    whole: WholeGraph
    edge: int
    layout: Layout
    other: int
    stored_indptr: Ints
    blocks: Blocks | None
    folder: str
    room: Workspace

    @property
    def indptr(self) -> Ints:
        """Return where the rows begin, in the order of the owners' IDs: int64[n + 1]."""
        moved = None if self.blocks is None else self.blocks.new_bounds
        return self.stored_indptr if moved is None else moved

    @property
    def num_edges(self) -> int:
        """Return the number of edges."""
        return int(self.stored_indptr[-1])

    def others(self) -> Iterator[Ints]:
        """Yield the IDs of the other ends, in row order: int64."""
        for piece in self.whole.read(LayoutPaths(self.folder).indices, self.blocks, self.room):
            yield self.whole.graph.to_ids(self.other, piece)

    def others_of(self, low: int, high: int, skip: int = 0, size: int = -1) -> Ints:
        """Return the IDs of the other ends in rows [low, high); of one row, perhaps only ``size`` from ``skip`` on."""
        return self.whole.graph.to_ids(
            self.other, self._take(LayoutPaths(self.folder).indices, MovePiece(low, high, skip, size))
        )

    def values_of(self, column: ColumnSchema, low: int, high: int, skip: int = 0, size: int = -1) -> Array:
        """Return a dense column of the entries that ``others_of`` returns."""
        path = f"{self._stem(column)}.npy"
        return as_column(self._take(path, MovePiece(low, high, skip, size)), column, path)

    def edge_ids(self) -> Iterator[Array]:
        """Yield edge IDs in row order, as they are stored. The store must have some."""
        return self.whole.read(LayoutPaths(self.folder).edge_ids, self.blocks, self.room)

    def edge_numbers(self) -> Iterator[Array] | None:
        """Yield edge IDs, where the store has none int64 edge rows, which stand in for them; None: these are not known."""
        graph = self.whole.graph
        if graph.metadata.edge_schemas[self.edge].edge_id_dtype is not None:
            return self.edge_ids()
        if self.layout == graph.metadata.primary_layout:
            return self.whole.pieces(StoredItems(CountingArray("", self.num_edges)), self.blocks, self.room)
        path = LayoutPaths(self.folder).edge_rows
        return self.whole.read(path, self.blocks, self.room) if self.whole.store.has(0, path) else None

    def values(self, column: ColumnSchema) -> Iterator[Array]:
        """Yield a dense column in row order, in pieces [k, *item_shape]; zeros where an edge has none."""
        found = self.whole.read(f"{self._stem(column)}.npy", self.blocks, self.room, column)
        return _with_labels(found, column, lambda: self.present(column))

    def present(self, column: ColumnSchema) -> Iterator[Array]:
        """Yield which edges have a column that is optional: bool, in row order."""
        return self.whole.read(ColumnPaths(self._stem(column)).present, self.blocks, self.room)

    def _take(self, path: str, piece: MovePiece) -> Array:
        items = StoredItems(self.whole.store.array(0, path))
        if self.blocks is not None:
            return items.gather(*self.blocks.spans(piece))
        start, stop = int(self.stored_indptr[piece.low]) + piece.skip, int(self.stored_indptr[piece.high])
        return items.read(start, stop if piece.size < 0 else start + piece.size)

    def _stem(self, column: ColumnSchema) -> str:
        return self.whole.graph.store.edge_column_stem(self.edge, self.layout, column)


def _with_labels(pieces: Iterator[Array], column: ColumnSchema, present: Callable[[], Iterator[Array]]) -> Iterator[Array]:
    """Yield a column's pieces, of labels with -1 or NaN where there is none; pieces of ``present`` may be cut otherwise."""
    if column.role != "label" or not column.optional:
        yield from pieces
        return
    more, known = present(), np.zeros(0, np.bool_)
    for piece in pieces:
        while known.size < len(piece):
            known = np.concatenate([known, next(more)])
        yield fill_labels(piece, known[: len(piece)])
        known = known[len(piece) :]


def as_column(values: Array, column: ColumnSchema, place: str) -> Array:
    """Return stored values of a dense column with the dtype in which it is written.

    Raises DataError where one does not fit.
    """
    if values.dtype == np.dtype(column.dtype):
        return values
    flat = values.reshape(len(values), math.prod(values.shape[1:]))
    return cast_cells(Cells(None, flat), column.dtype, place).values.reshape(values.shape)
