"""One partition as DeepGNN's files want it: batches of rows, their edges, and the columns of both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn_edges import EdgeBatch, EdgeOrdering, PartEdges
from graphprep.exporters.deepgnn_ids import EngineIds, TypeNumbers
from graphprep.exporters.deepgnn_rows import PartRows, RowBatch, Run
from graphprep.exporters.graph import StoredGraph
from graphprep.model.export import Side
from graphprep.model.schema import ColumnSchema
from graphprep.stages.cells import Cells
from graphprep.stages.stored_cells import read_cells

Ints = NDArray[np.int64]

_ROW_BYTES = 96  # what is computed of a row, its columns apart
_EDGE_BYTES = 128  # of an edge
_SLOT_BYTES = 40  # of a slot, its content apart
_NUM_SLOTS = ColumnSchema("num_slots", "dense", "int32", role="weight")  # lies beside data/, as weights do


class PartReader:
    """Reads one partition. Everything but ``batches`` may be called by several threads at a time."""

    def __init__(self, graph: StoredGraph, part: int, ids: EngineIds, numbers: TypeNumbers, ordering: EdgeOrdering) -> None:
        self.graph = graph
        self.part = part
        self._numbers = numbers
        self._edges = PartEdges(graph, part, ids, numbers, ordering)
        self._rows = PartRows(graph, part, ids, numbers, self._edges.indptr)

    def num_nodes_by_type(self) -> Ints:
        """Return the number of nodes of every number of a type, created ones too."""
        return _by_number(self._numbers.nodes, [chunk[self.part] for chunk in self.graph.metadata.num_nodes_per_chunk])

    def num_edges_by_type(self) -> Ints:
        """Return the number of edges of every number of a type."""
        edges = range(len(self._numbers.edges))
        return _by_number(self._numbers.edges, [self.graph.num_edges(edge, "csr", self.part) for edge in edges])

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows in batches of about the size of a piece."""
        metadata = self.graph.metadata
        row_bytes = _ROW_BYTES + max(map(self._node_bytes, range(len(metadata.node_types))), default=0)
        edge_bytes = _EDGE_BYTES + max(map(self._edge_bytes, range(len(metadata.edge_types))), default=0)
        for window in self._rows.windows():
            yield from window.cut(edge_bytes, row_bytes, self.graph.room.piece_bytes)

    def edges(self, batch: RowBatch) -> EdgeBatch:
        """Read the edges of a batch, in order."""
        return self._edges.read(batch)

    def times(self, run: Run) -> Ints:
        """Return when the edges of a run were created and removed: int64[k, 2]."""
        return np.stack([self._edges.times(run.number, run.low, run.high, role) for role in ("created_at", "removed_at")], 1)

    # ------------------------------------------------------------------------------------------ columns

    def columns(self, side: Side, number: int) -> tuple[ColumnSchema, ...]:
        """Return the columns of a node or edge type."""
        return self.graph.node_columns(number) if side == "node" else self.graph.edge_columns(number)

    def cells(self, side: Side, run: Run, column: ColumnSchema) -> Cells:
        """Return a column of the items of a run."""
        if side == "node":
            return self.graph.node_cells(run.number, self.part, column, run.low, run.high)
        return self.graph.edge_cells(run.number, "csr", self.part, column, run.low, run.high)

    def present(self, side: Side, run: Run, column: ColumnSchema) -> NDArray[np.bool_] | None:
        """Return which items of a run have a column; None: all."""
        if side == "node":
            return self.graph.node_present(run.number, self.part, column, run.low, run.high)
        return self.graph.edge_present(run.number, "csr", self.part, column, run.low, run.high)

    def stated_slots(self, side: Side, run: Run) -> Ints | None:
        """Return how many slots the items of a run have at least; None: as many as they fill."""
        metadata, store = self.graph.metadata, self.graph.store
        if not (metadata.node_schemas if side == "node" else metadata.edge_schemas)[run.number].num_slots:
            return None
        stem = f"{store.node_folder(run.number)}/{_NUM_SLOTS.path}"
        if side == "edge":
            stem = store.edge_column_stem(run.number, "csr", _NUM_SLOTS)
        return read_cells(store, self.part, stem, _NUM_SLOTS, run.low, run.high).flat.astype(np.int64)

    def weights(self, side: Side, runs: Sequence[Run], size: int) -> NDArray[np.float64]:
        """Return the weight of every element of a batch; 1 in types without weights."""
        out = np.ones(size)
        for run in runs:
            column = next((one for one in self.columns(side, run.number) if one.role == "weight"), None)
            if column is not None:
                kept = np.flatnonzero(run.at >= 0)
                out[run.at[kept]] = self.cells(side, run, column).flat[kept]
        return out

    # ------------------------------------------------------------------------------------------ sizes

    def _node_bytes(self, number: int) -> float:
        folder, size = self.graph.store.node_folder(number), self.graph.metadata.num_nodes_per_chunk[number][self.part]
        return sum(self._value_bytes(one, f"{folder}/{one.path}", size) for one in self.graph.node_columns(number))

    def _edge_bytes(self, number: int) -> float:
        stem, size = self.graph.store.edge_column_stem, self.graph.num_edges(number, "csr", self.part)
        return sum(self._value_bytes(one, stem(number, "csr", one), size) for one in self.graph.edge_columns(number))

    def _value_bytes(self, column: ColumnSchema, stem: str, size: int) -> float:
        """Return about how many bytes of a column one of ``size`` items has."""
        if column.kind == "dense":
            return _SLOT_BYTES + np.dtype(column.dtype).itemsize * float(np.prod(column.item_shape))
        names = ("values", "coords", "start")
        arrays = [
            self.graph.store.array(self.part, f"{stem}.{one}.npy")
            for one in names
            if self.graph.store.has(self.part, f"{stem}.{one}.npy")
        ]
        return _SLOT_BYTES + sum(array.entry.num_bytes for array in arrays) / max(1, size)


def _by_number(numbers: tuple[int, ...], sizes: Sequence[int]) -> Ints:
    """Add up sizes of types by the number of the type."""
    found = np.zeros(1 + max(numbers, default=-1), np.int64)
    np.add.at(found, np.array(numbers, np.int64), np.array(sizes, np.int64))
    return found
