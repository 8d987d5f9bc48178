"""One partition as DeepGNN's files want it: batches of rows, their edges, and the columns of both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.edges import EdgeBatch, EdgeOrdering, PartEdges
from graphprep.exporters.deepgnn.ids import EngineIds, TypeNumbers, feature_slots
from graphprep.exporters.deepgnn.long import LongRow
from graphprep.exporters.deepgnn.rows import PartRows, RowBatch, Run
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.export import Side
from graphprep.model.schema import ColumnSchema
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.columns.cells import Cells, concat_cells
from graphprep.store.columns.stored import read_cells

Ints = NDArray[np.int64]
Rows = TypeVar("Rows", Cells, NDArray[np.bool_], Ints)

_MOST_BATCH = 32 << 20  # with those of a piece, threads wait for each other's calls: a fifth of the CPU time
_ROW_BYTES = 96  # what is computed of a row, its columns apart
_EDGE_BYTES = 128  # of an edge
_SLOT_BYTES = 32  # of a slot, its content apart
_NUM_SLOTS = ColumnSchema("num_slots", "dense", "int32", role="weight")  # lies beside data/, as weights do


class PartReader:
    """Reads one partition. Everything but ``batches`` may be called by several threads at a time."""

    def __init__(self, graph: StoredGraph, part: int, ids: EngineIds, numbers: TypeNumbers, ordering: EdgeOrdering) -> None:
        self.graph = graph
        self.part = part
        self._numbers = numbers
        self._edges = PartEdges(graph, part, ids, numbers, ordering)
        self._rows = PartRows(graph, part, ids, numbers, self._edges.indptr)
        self._row_bytes = _ROW_BYTES + max(map(self._node_bytes, range(len(numbers.nodes))), default=0)
        self._bytes_per_edge = _EDGE_BYTES + max(map(self._edge_bytes, range(len(numbers.edges))), default=0)
        self._batch_bytes = max(graph.room.piece_bytes, min(_MOST_BATCH, graph.room.held_bytes // (8 * graph.room.threads)))
        self._most_edges = max(1, int(self._batch_bytes // self._bytes_per_edge))

    def num_nodes_by_type(self) -> Ints:
        """Return the number of nodes of every number of a type, created ones too."""
        return _by_number(self._numbers.nodes, [chunk[self.part] for chunk in self.graph.metadata.num_nodes_per_chunk])

    def num_edges_by_type(self) -> Ints:
        """Return the number of edges of every number of a type."""
        edges = range(len(self._numbers.edges))
        return _by_number(self._numbers.edges, [self.graph.num_edges(edge, "csr", self.part) for edge in edges])

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows in batches: of the size of a piece, or larger ones where there is room."""
        for window in self._rows.windows():
            yield from window.cut(self._bytes_per_edge, self._row_bytes, self._batch_bytes)

    def is_long(self, batch: RowBatch) -> bool:
        """Return whether a batch, which is one row then, has too many edges to be read at once."""
        return batch.ids.size == 1 and batch.num_edges > 2 * self._most_edges

    def edges(self, batch: RowBatch) -> EdgeBatch:
        """Read the edges of a batch that is not long, in order."""
        return self._edges.read(batch)

    def long_edges(self, batch: RowBatch, scratch: Scratch) -> Iterator[EdgeBatch]:
        """Read the edges of a long row, in order, in pieces."""
        return LongRow(self._edges, batch, self._most_edges, scratch).pieces()

    # ------------------------------------------------------------------------------------------ columns

    def columns(self, side: Side, number: int) -> tuple[ColumnSchema, ...]:
        """Return the columns of a node or edge type."""
        return self.graph.node_columns(number) if side == "node" else self.graph.edge_columns(number)

    def cells(self, side: Side, run: Run, column: ColumnSchema) -> Cells:
        """Return a column of the items of a run."""
        if side == "node":
            return self.graph.node_cells(run.number, self.part, column, run.low, run.high)
        return self._read(
            lambda low, high: self.graph.edge_cells(run.number, "csr", self.part, column, low, high), run, concat_cells
        )

    def present(self, side: Side, run: Run, column: ColumnSchema) -> NDArray[np.bool_] | None:
        """Return which items of a run have a column; None: all, as with labels: the engine has 0 for what is not there."""
        if not column.optional or column.role == "label":
            return None
        if side == "node":
            return self.graph.node_present(run.number, self.part, column, run.low, run.high)
        found: NDArray[np.bool_] = self._read(
            lambda low, high: np.asarray(self.graph.edge_present(run.number, "csr", self.part, column, low, high)),
            run,
            np.concatenate,
        )
        return found

    def times(self, run: Run) -> Ints:
        """Return when the edges of a run were created and removed: int64[k, 2]."""

        def read(low: int, high: int) -> Cells:
            return Cells(None, np.stack(self._edges.times(run.number, low, high), axis=1))

        return np.asarray(self._read(read, run, concat_cells).values, np.int64)

    def _stated_slots(self, side: Side, run: Run) -> Ints | None:
        """Return how many slots the items of a run have at least; None: as many as they fill."""
        metadata, store = self.graph.metadata, self.graph.store
        if not (metadata.node_schemas if side == "node" else metadata.edge_schemas)[run.number].num_slots:
            return None
        if side == "node":
            stem = f"{store.node_folder(run.number)}/{_NUM_SLOTS.path}"
        else:
            stem = store.edge_column_stem(run.number, "csr", _NUM_SLOTS)
        cells = self._read(lambda low, high: read_cells(store, self.part, stem, _NUM_SLOTS, low, high), run, concat_cells)
        return cells.flat.astype(np.int64)

    def chosen(self, side: Side, run: Run, column: ColumnSchema) -> Ints:
        """Return which items of a run have a column and are not left out."""
        present = self.present(side, run, column)
        kept = run.kept
        if isinstance(kept, slice):
            return np.arange(run.at.size) if present is None else np.flatnonzero(present)
        return kept if present is None else kept[present[kept]]

    def stated(self, side: Side, runs: Sequence[Run], size: int) -> Ints | None:
        """Return how many slots the elements of a batch have at least; None: as many as they fill."""
        out: Ints | None = None
        for run in runs:
            given = self._stated_slots(side, run)
            if given is not None:
                out = np.zeros(size, np.int64) if out is None else out
                out[run.target] = given[run.kept]
        return out

    def weights(self, side: Side, runs: Sequence[Run], size: int) -> NDArray[np.float64]:
        """Return the weight of every element of a batch; 1 in types without weights."""
        out = np.ones(size)
        for run in runs:
            column = next((one for one in self.columns(side, run.number) if one.role == "weight"), None)
            if column is not None:
                out[run.target] = self.cells(side, run, column).flat[run.kept]
        return out

    def _read(self, read: Callable[[int, int], Rows], run: Run, join: Callable[[list[Rows]], Rows]) -> Rows:
        """Read the items of a run; of single ones, which lie anywhere, windows in which some are."""
        if run.items is None:
            return read(run.low, run.high)
        order = np.argsort(run.items, kind="stable")
        items = run.items[order]
        found, at = [], 0
        while at < items.size:
            end = int(np.searchsorted(items, items[at] + self._most_edges))
            first = int(items[at])
            found.append(read(first, int(items[end - 1]) + 1).take(items[at:end] - first))
            at = end
        back = np.empty_like(order)
        back[order] = np.arange(order.size)
        return join(found).take(back)

    # ------------------------------------------------------------------------------------------ sizes

    def _node_bytes(self, number: int) -> float:
        folder, size = self.graph.store.node_folder(number), self.graph.metadata.num_nodes_per_chunk[number][self.part]
        columns = self.graph.node_columns(number)
        return _index_bytes(columns) + sum(self._value_bytes(one, f"{folder}/{one.path}", size) for one in columns)

    def _edge_bytes(self, number: int) -> float:
        stem, size = self.graph.store.edge_column_stem, self.graph.num_edges(number, "csr", self.part)
        columns = self.graph.edge_columns(number)
        return _index_bytes(columns) + sum(self._value_bytes(one, stem(number, "csr", one), size) for one in columns)

    def _value_bytes(self, column: ColumnSchema, stem: str, size: int) -> float:
        """Return about how many bytes of a column one of ``size`` items has."""
        if column.kind == "dense":
            return np.dtype(column.dtype).itemsize * float(np.prod(column.item_shape))
        names = ("values", "coords", "start")
        arrays = [
            self.graph.store.array(self.part, f"{stem}.{one}.npy")
            for one in names
            if self.graph.store.has(self.part, f"{stem}.{one}.npy")
        ]
        return sum(array.entry.num_bytes for array in arrays) / max(1, size)


def _index_bytes(columns: Sequence[ColumnSchema]) -> int:
    """Return what the slots of an item take, filled or not, what they hold apart."""
    return _SLOT_BYTES * max((one.slot + 1 for one in feature_slots(columns)), default=0)


def _by_number(numbers: tuple[int, ...], sizes: Sequence[int]) -> Ints:
    """Add up sizes of types by the number of the type."""
    found = np.zeros(1 + max(numbers, default=-1), np.int64)
    np.add.at(found, np.array(numbers, np.int64), np.array(sizes, np.int64))
    return found
