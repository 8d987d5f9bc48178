"""A store as exporters read it: edges in the order that they need, columns with the wanted dtypes, IDs that trainers see."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphprep.derived.derive import DerivedStore
from graphprep.edges.moves import Workspace
from graphprep.exporters.view.exported_columns import ExportedColumns, cast_cells, find_lost
from graphprep.exporters.view.ids import TrainerIds
from graphprep.kernels.cpu.ids.part_graph import number_rows
from graphprep.model.export import EdgeOrder, Side
from graphprep.model.metadata import GraphMetadata
from graphprep.model.protocols import Reporter
from graphprep.model.schema import ColumnSchema, Layout, edge_type_text
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.densify import dense_cells
from graphprep.store.columns.stored import read_cells, read_present
from graphprep.store.columns.torch_rows import fill_labels
from graphprep.store.items import StoredItems, part_borders, read_offsets
from graphprep.store.paths import LayoutPaths, edge_folder, node_folder
from graphprep.store.raw_ids import RawIds

Ints = NDArray[np.int64]
_EDGE_BYTES = 24  # of an edge in a piece: both ends and its edge ID


@dataclass(frozen=True)
class EdgePiece:
    """Edges in a row: int64[k] each, typed ends; the first is number ``first`` of its partition (of all, in edge-ID order)."""

    first: int
    src: Ints
    dst: Ints
    edge_ids: Ints

    @property
    def last(self) -> int:
        """Return the number behind the last edge."""
        return self.first + self.src.size


class StoredGraph:
    """What an exporter reads. Types are numbers, their positions in ``metadata``.

    ``notes`` takes what is to be said of the files in the summary.
    Everything comes in pieces of ``room.piece_bytes`` or by ranges of rows, so that no graph is too large.
    """

    def __init__(
        self, store: DerivedStore, ids: TrainerIds, columns: ExportedColumns, room: Workspace, reporter: Reporter
    ) -> None:
        self.store = store
        self.ids = ids
        self.room = room
        self.reporter = reporter
        self.notes: list[str] = []
        self._columns = columns
        self._entry_starts: dict[tuple[int, Layout], list[int]] = {}

    @property
    def metadata(self) -> GraphMetadata:
        """Return what is exported, without columns that users leave out, in the partitioning in which it is."""
        return self._columns.metadata

    @cached_property
    def all_edges(self) -> StoredGraph:
        """Return the graph with all edges of the store, those too that messages do not pass over.

        They are read by edge ID, and that only where a plan asked for them: ``split_edges``, ``input_order``, columns by
        ``input``.
        """
        store = self.store.all_edges
        if store is self.store:
            return self
        schemas = zip(self.metadata.edge_schemas, store.metadata.edge_schemas, strict=True)
        metadata = replace(
            self.metadata,
            num_edges_per_chunk=store.metadata.num_edges_per_chunk,
            edge_schemas=tuple(replace(one, edge_id_dtype=stored.edge_id_dtype) for one, stored in schemas),
        )
        return StoredGraph(store, self.ids, replace(self._columns, metadata=metadata), self.room, self.reporter)

    @cached_property
    def edge_names(self) -> tuple[str, ...]:
        """Return the canonical edge types as ``src:rel:dst``."""
        return tuple(edge_type_text(edge_type) for edge_type in self.metadata.edge_types)

    def ends_of(self, edge: int) -> tuple[int, int]:
        """Return the numbers of an edge type's source and destination types."""
        src, _, dst = self.metadata.edge_types[edge]
        return self.metadata.node_types.index(src), self.metadata.node_types.index(dst)

    # ------------------------------------------------------------------------------------------ nodes

    def node_offsets(self, number: int) -> Ints:
        """Return the borders of the partitions among typed IDs: int64[P + 1]."""
        return part_borders(self.metadata, number)

    def to_ids(self, number: int, typed: NDArray[np.int32] | Ints) -> Ints:
        """Return the IDs that a trainer sees (int64[k]) of typed ones (int32 or int64 [k])."""
        return self.ids.of(number, typed)

    def ids_are_typed(self, number: int) -> bool:
        """Return whether trainers see typed IDs."""
        return self.ids.is_typed(number)

    def ids_in_part(self, number: int, part: int) -> Iterator[Ints]:
        """Yield the IDs that a trainer sees of a partition's nodes, in typed order."""
        return self.ids.in_part(number, part)

    def raw_ids(self, number: int, part: int) -> RawIds:
        """Return the raw IDs of a partition's nodes, as stored."""
        return RawIds(self.store, number, part)

    def raw_order(self, number: int) -> StoredItems:
        """Return the typed ID of the i-th node by raw ID, over all partitions: int64[n]. Needs ``input_order``."""
        return StoredItems(self.store.raw_order(number))

    def node_columns(self, number: int) -> tuple[ColumnSchema, ...]:
        """Return the columns to write, with the dtypes in which they are written."""
        return self._columns.nodes[number]

    def node_cells(self, number: int, part: int, column: ColumnSchema, low: int, high: int) -> Cells:
        """Return a column of the partition's nodes [low, high)."""
        cells = self._read("node", number, part, self._node_stem(number, column), column, low, high)
        return with_labels(cells, column, lambda: self.node_present(number, part, column, low, high))

    def node_present(self, number: int, part: int, column: ColumnSchema, low: int, high: int) -> NDArray[np.bool_] | None:
        """Return which of the partition's nodes [low, high) have the column; None: all."""
        return read_present(self.store, part, self._node_stem(number, column), column, low, high)

    def ordered_node_cells(self, number: int, column: ColumnSchema, low: int, high: int) -> Cells:
        """Return a column of nodes [low, high) in the order of their raw IDs. Needs ``input_order``."""
        part, stem = 0, self.store.node_column_stem(number, column)
        cells = self._read("node", number, part, stem, column, low, high)
        return with_labels(cells, column, lambda: self.ordered_node_present(number, column, low, high))

    def ordered_node_present(self, number: int, column: ColumnSchema, low: int, high: int) -> NDArray[np.bool_] | None:
        """Return which nodes [low, high), in the order of their raw IDs, have the column; None: all."""
        return read_present(self.store, 0, self.store.node_column_stem(number, column), column, low, high)

    def _node_stem(self, number: int, column: ColumnSchema) -> str:
        return f"{node_folder(self.metadata.node_types[number])}/{column.path}"

    # ------------------------------------------------------------------------------------------ edges

    def indptr(self, edge: int, layout: Layout, part: int) -> Ints:
        """Return where the partition's rows begin among its edges: int64[n + 1], mapped where the file is local."""
        reader = self.store.array(part, LayoutPaths(self._edge_folder(edge, layout)).indptr)
        return read_offsets(reader, self.indices(edge, layout, part).size, self.room.scratch)

    def indices(self, edge: int, layout: Layout, part: int) -> StoredItems:
        """Return the typed IDs of the other ends, in the layout's row order."""
        return StoredItems(self.store.array(part, LayoutPaths(self._edge_folder(edge, layout)).indices))

    def edge_ids(self, edge: int, layout: Layout, part: int) -> StoredItems | None:
        """Return edge IDs in the layout's row order; None where the store has none."""
        if self.metadata.edge_schemas[edge].edge_id_dtype is None:
            return None
        return StoredItems(self.store.array(part, LayoutPaths(self._edge_folder(edge, layout)).edge_ids))

    def edge_numbers(self, edge: int, layout: Layout, part: int, low: int, high: int) -> Ints:
        """Return the edge IDs of entries [low, high) of the layout; where the store has none edge rows, or their positions."""
        ids = self._row_ids(edge, layout, part)
        if ids is not None:
            return ids.read(low, high).astype(np.int64, copy=False)
        first = self._first_entries(edge, layout)[part]
        return np.arange(first + low, first + high)

    def num_edges(self, edge: int, layout: Layout, part: int) -> int:
        """Return the number of edges that a partition owns in a layout."""
        return self.indices(edge, layout, part).size

    def edges(self, edge: int, layout: Layout, part: int) -> Iterator[EdgePiece]:
        """Yield a partition's edges in the layout's row order. Without stored edge IDs, edge rows stand in for them."""
        src, dst = self.ends_of(edge)
        owner = dst if layout == "csc" else src
        first_node = int(self.node_offsets(owner)[part])
        indptr, indices = self.indptr(edge, layout, part), self.indices(edge, layout, part)
        for low, high in slices(indices.size, self.room.fit(_EDGE_BYTES)):
            owners = number_rows(indptr, first_node, low, high)
            others = indices.read(low, high).astype(np.int64)
            edge_ids = self.edge_numbers(edge, layout, part, low, high)
            yield EdgePiece(low, others, owners, edge_ids) if layout == "csc" else EdgePiece(low, owners, others, edge_ids)

    def input_edges(self, edge: int) -> Iterator[EdgePiece]:
        """Yield all edges of a type by edge ID. Needs ``input_order``."""
        src, dst = (StoredItems(reader) for reader in self.store.input_ends(edge))
        step = self.room.fit(_EDGE_BYTES)
        for low in range(0, src.size, step):
            high = min(low + step, src.size)
            yield EdgePiece(
                low, src.read(low, high).astype(np.int64), dst.read(low, high).astype(np.int64), np.arange(low, high)
            )

    def edge_columns(self, edge: int) -> tuple[ColumnSchema, ...]:
        """Return the columns to write, with the dtypes in which they are written."""
        return self._columns.edges[edge]

    def negatives(self, edge: int) -> tuple[ColumnSchema, ...]:
        """Return the columns of negatives of an edge type, which hold typed IDs."""
        return self._columns.negatives[edge]

    def edge_cells(self, edge: int, order: EdgeOrder, part: int, column: ColumnSchema, low: int, high: int) -> Cells:
        """Return a column of the edges [low, high) of a partition in the row order of a layout (``input``: of all)."""
        cells = self._read("edge", edge, part, self.store.edge_column_stem(edge, order, column), column, low, high)
        if column.role == "label":
            return with_labels(cells, column, lambda: self.edge_present(edge, order, part, column, low, high))
        return self.with_times(cells, edge, column, self.edge_present(edge, order, part, column, low, high))

    def with_times(self, cells: Cells, edge: int, column: ColumnSchema, present: NDArray[np.bool_] | None) -> Cells:
        """Return cells of an edge column with the time that stands for a missing one, if it is that of times."""
        if column.role != "time" or present is None or edge not in self._columns.times:
            return cells
        return cells._replace(values=np.where(present[:, None], cells.values, self._columns.times[edge]))

    def edge_present(
        self, edge: int, order: EdgeOrder, part: int, column: ColumnSchema, low: int, high: int
    ) -> NDArray[np.bool_] | None:
        """Return which of the edges [low, high) have the column; None: all."""
        return read_present(self.store, part, self.store.edge_column_stem(edge, order, column), column, low, high)

    def input_edge_cells(self, edge: int, column: ColumnSchema, low: int, high: int) -> Cells:
        """Return a column of the edges [low, high) by edge ID."""
        return self.edge_cells(edge, "input", 0, column, low, high)

    def _first_entries(self, edge: int, layout: Layout) -> list[int]:
        """Return how many entries of a layout lie in the partitions before each."""
        if (edge, layout) not in self._entry_starts:
            sizes = (self.num_edges(edge, layout, part) for part in range(self.metadata.num_parts))
            self._entry_starts[edge, layout] = list(itertools.accumulate(sizes, initial=0))
        return self._entry_starts[edge, layout]

    def _row_ids(self, edge: int, layout: Layout, part: int) -> StoredItems | None:
        """Return what identifies the layout's entries: edge IDs, else edge rows; None: their own positions do."""
        ids = self.edge_ids(edge, layout, part)
        path = LayoutPaths(self._edge_folder(edge, layout)).edge_rows
        if ids is None and layout != self.metadata.primary_layout and self.store.has(part, path):
            return StoredItems(self.store.array(part, path))
        return ids

    def _edge_folder(self, edge: int, layout: Layout) -> str:
        return f"{edge_folder(self.metadata.edge_types[edge])}/{layout}"

    # ------------------------------------------------------------------------------------------ columns

    def _read(self, side: Side, number: int, part: int, stem: str, column: ColumnSchema, low: int, high: int) -> Cells:
        stored = self._stored(side, number, column)
        cells = read_cells(self.store, part, stem, stored, low, high)
        if stored.kind != column.kind:
            cells = dense_cells(cells, column.item_shape, stem, low)
        if stored.dtype == column.dtype:
            return cells
        owner = self.metadata.node_types[number] if side == "node" else self.edge_names[number]
        rounds = (side, owner, column.name) in self._columns.rounded
        cast = cast_cells(cells, column.dtype, stem, low, rounds=rounds)
        if rounds and find_lost(cells.values, cast.values).any():
            note = f"{side} type {owner!r}: {column.name!r} has whole numbers that {column.dtype} rounds"
            note += f"; --feature-dtype {column.name}=float64 keeps them"
            self.notes += [] if note in self.notes else [note]
        return cast

    def _stored(self, side: Side, number: int, column: ColumnSchema) -> ColumnSchema:
        """Return a column as it is stored."""
        metadata = self.store.metadata
        schemas = metadata.node_schemas if side == "node" else metadata.edge_schemas
        return next(one for one in schemas[number].columns if one.name == column.name and one.role == column.role)


def slices(size: int, step: int) -> Iterator[tuple[int, int]]:
    """Cut [0, size) into pieces."""
    for low in range(0, size, step):
        yield low, min(low + step, size)


def with_labels(cells: Cells, column: ColumnSchema, present: Callable[[], NDArray[np.bool_] | None]) -> Cells:
    """Return cells of a label with -1, or NaN, where there is none; cells of other columns as they are."""
    if column.role != "label" or column.kind != "dense" or not column.optional:
        return cells
    return cells._replace(values=fill_labels(cells.values, present()))
