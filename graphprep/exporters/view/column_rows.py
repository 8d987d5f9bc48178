"""The columns of nodes or edges, row by row, in the order in which an exporter writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.graph import StoredGraph, slices
from graphprep.model.export import EdgeOrder
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells

Array = NDArray[Any]
Present = NDArray[np.bool_] | None


@dataclass(frozen=True)
class Rows:
    """The rows of one type's columns: ``cells`` and ``present`` read rows [low, high) of a column."""

    size: int
    cells: Callable[[ColumnSchema, int, int], Cells]
    present: Callable[[ColumnSchema, int, int], Present]
    piece_bytes: int

    @classmethod
    def of_nodes(cls, graph: StoredGraph, number: int, part: int) -> Rows:
        """Return the rows of a partition's nodes."""
        return cls(
            graph.metadata.num_nodes_per_chunk[number][part],
            lambda column, low, high: graph.node_cells(number, part, column, low, high),
            lambda column, low, high: graph.node_present(number, part, column, low, high),
            graph.room.piece_bytes,
        )

    @classmethod
    def of_edges(cls, graph: StoredGraph, edge: int, order: EdgeOrder, part: int) -> Rows:
        """Return the rows of a partition's edges in the row order of a layout; ``input``: of all edges, by edge ID."""
        size = graph.metadata.num_edges_per_type[edge] if order == "input" else graph.num_edges(edge, order, part)
        return cls(
            size,
            lambda column, low, high: graph.edge_cells(edge, order, part, column, low, high),
            lambda column, low, high: graph.edge_present(edge, order, part, column, low, high),
            graph.room.piece_bytes,
        )

    @classmethod
    def by_node_id(cls, graph: StoredGraph, number: int) -> list[Rows]:
        """Return the nodes of a type in the order of the IDs that trainers see, run by run. Needs ``input_order``."""
        if graph.ids_are_typed(number):
            return [cls.of_nodes(graph, number, part) for part in range(graph.metadata.num_parts)]
        size = graph.metadata.num_nodes_per_type[number]
        cells, present = partial(graph.ordered_node_cells, number), partial(graph.ordered_node_present, number)
        return [cls(size, cells, present, graph.room.piece_bytes)]

    def tensor(
        self,
        dtype: str,
        item_shape: tuple[int, ...],
        read: Callable[[Rows, int, int], Array],
        low: int = 0,
        high: int | None = None,
    ) -> TensorPieces:
        """Return what ``read(rows, low, high)`` makes of rows [low, high), by default all: [k, *item_shape]."""
        high = self.size if high is None else high
        step = max(1, self.piece_bytes // max(1, TensorPieces(dtype, item_shape, tuple).num_bytes))

        def pieces() -> Iterator[Array]:
            return (read(self, low + start, low + stop) for start, stop in slices(high - low, step))

        return TensorPieces(dtype, (high - low, *item_shape), pieces)

    def slices(self, row_bytes: int) -> Iterator[tuple[int, int]]:
        """Cut the rows into pieces."""
        return slices(self.size, max(1, self.piece_bytes // max(1, row_bytes)))
