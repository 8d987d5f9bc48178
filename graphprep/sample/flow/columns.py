"""Columns of a flow's nodes and edges: those of the parent graph, or copied with the sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.columns import Column
from graphprep.graph.graph import Graph
from graphprep.model.export import Side
from graphprep.model.schema import ColumnSchema
from graphprep.sample.arrays import WALKED, FlowArrays
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]


class FlowColumns(Protocol):
    """Where a flow has columns from. ``number`` is that of a node type or of a block type, ``at`` are IDs within the flow."""

    def schemas(self, side: Side, number: int) -> tuple[ColumnSchema, ...]:
        """Return what columns there are."""

    def values(self, side: Side, number: int, column: ColumnSchema, at: Ints) -> Column:
        """Return a row for each node or edge; 0 or empty where there is no value, and for loops that were added."""

    def present(self, side: Side, number: int, column: ColumnSchema, at: Ints) -> NDArray[np.bool_] | None:
        """Return which of them have a value: bool[k]; None: all."""


@dataclass(frozen=True)
class ParentColumns:
    """The columns of the parent graph."""

    graph: Graph
    arrays: FlowArrays

    def schemas(self, side: Side, number: int) -> tuple[ColumnSchema, ...]:
        """See ``FlowColumns``."""
        if side == "edge" and self.arrays.block_types[number].number == WALKED:
            return ()
        return self.graph.columns(self._type(side, number))

    def values(self, side: Side, number: int, column: ColumnSchema, at: Ints) -> Column:
        """See ``FlowColumns``."""
        ids = self._parent_ids(side, at)
        added = ids < 0
        if not added.any():
            return self.graph.take(self._type(side, number), column.name, ids)
        found: Column = _spread(self.graph.take(self._type(side, number), column.name, ids[~added]), added)
        return found

    def present(self, side: Side, number: int, column: ColumnSchema, at: Ints) -> NDArray[np.bool_] | None:
        """See ``FlowColumns``."""
        ids = self._parent_ids(side, at)
        found = ids >= 0
        some = self.graph.take_present(self._type(side, number), column.name, ids[found])
        if some is None:
            return None if found.all() else found
        found[found] = some
        return found

    def _type(self, side: Side, number: int) -> Any:
        return self.arrays.node_types[number] if side == "node" else self.arrays.block_types[number].edge_type

    def _parent_ids(self, side: Side, at: Ints) -> Ints:
        return (self.arrays.node_mapping if side == "node" else self.arrays.edge_mapping)[at]


@dataclass(frozen=True)
class FlowRows:
    """Some nodes or edges of a flow as the rows of one type's columns: see ``ColumnRows``."""

    columns: FlowColumns
    side: Side
    number: int
    at: Ints

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return self.at.size

    def cells(self, column: ColumnSchema, low: int, high: int, /) -> Cells:
        """See ``ColumnRows``."""
        values = np.asarray(self.columns.values(self.side, self.number, column, self.at[low:high]))
        return Cells(None, values.reshape(high - low, prod(column.item_shape)))

    def present(self, column: ColumnSchema, low: int, high: int, /) -> NDArray[np.bool_] | None:
        """See ``ColumnRows``."""
        return self.columns.present(self.side, self.number, column, self.at[low:high])


def by_name(schemas: tuple[ColumnSchema, ...]) -> Mapping[str, ColumnSchema]:
    """Return columns by their names."""
    return {column.name: column for column in schemas}


def _spread(found: Any, added: NDArray[np.bool_]) -> Any:
    """Put rows where ``added`` is false, and rows without a value elsewhere."""
    if isinstance(found, np.ndarray):
        out = np.zeros((added.size, *found.shape[1:]), found.dtype)
        out[~added] = found
        return out
    bounds = "entry_offsets" if hasattr(found, "entry_offsets") else "offsets"
    counts = np.zeros(added.size + 1, np.int64)
    counts[1:][~added] = np.diff(getattr(found, bounds))
    return replace(found, **{bounds: np.cumsum(counts)})
