"""The edges of each part of a split, as trainers are taught and asked: pairs of nodes, with labels and times, by edge ID.

All of them are listed, whatever of them the graph has that messages pass over. Plans ask for them by ``split_edges``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.derived.messages import UNTIMED
from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.torch_rows import in_part, read_present
from graphprep.store.columns.trainers import EDGE_SETS, Attribute, labels_of
from graphprep.store.items import StoredItems

Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
ToIds = Callable[[int, Ints], Ints]
_ROW_BYTES = 64  # of an edge while it is looked at


@dataclass(frozen=True)
class EdgeSet:
    """The edges of a type that are in a part of its split, have its ``labels``, and a ``time`` if given; ``size`` of them."""

    name: str
    graph: StoredGraph
    edge: int
    column: ColumnSchema
    part: int
    size: int
    time: ColumnSchema | None = None
    labels: tuple[ColumnSchema, ...] = ()

    def ends(self, to_ids: ToIds) -> TensorPieces:
        """Return both ends, sources first: int64[2, size]; ``to_ids`` turns typed IDs of a node type into those of the file."""
        pairs = zip(self.graph.ends_of(self.edge), map(StoredItems, self.graph.store.input_ends(self.edge)), strict=True)
        ends = list(pairs)

        def pieces() -> Iterator[Ints]:
            for number, items in ends:
                for low, high, mask in self.masks():
                    yield to_ids(number, items.read(low, high)[mask].astype(np.int64))

        return TensorPieces("int64", (2, self.size), pieces)

    def edge_ids(self) -> TensorPieces:
        """Return their edge IDs: int64[size]."""
        return TensorPieces("int64", (self.size,), lambda: (np.flatnonzero(mask) + low for low, _, mask in self.masks()))

    def values(self, attribute: Attribute) -> TensorPieces:
        """Return a tensor of theirs: [size, *item_shape]."""
        rows = self.rows

        def pieces() -> Iterator[NDArray[Any]]:
            return (attribute.read(rows, low, high)[mask] for low, high, mask in self.masks())

        return TensorPieces(attribute.dtype, (self.size, *attribute.item_shape), pieces)

    @property
    def rows(self) -> Rows:
        """Return all edges of the type, by edge ID."""
        return Rows.of_edges(self.graph, self.edge, "input", 0)

    def masks(self, row_bytes: int = _ROW_BYTES) -> Iterator[tuple[int, int, Mask]]:
        """Yield (low, high, which of the edges [low, high) are in the part)."""
        return _masks(self.rows, self.column, self.part, self.labels, self.time, row_bytes)


def edge_sets(graph: StoredGraph, edge: int, *, timed: bool = False) -> list[EdgeSet]:
    """Return the sets of an edge type, train, valid and test; none where it has no split.

    ``timed``: where the graph is without edges that have no time, so are these.
    """
    is_timed = timed and UNTIMED in graph.store.held_out.get(edge, ())
    time = next((one for one in graph.edge_columns(edge) if one.role == "time"), None) if is_timed else None
    graph = graph.all_edges
    column = next((one for one in graph.edge_columns(edge) if one.role == "split"), None)
    if column is None:
        return []
    rows = Rows.of_edges(graph, edge, "input", 0)
    labels = labels_of(graph.edge_columns(edge))
    sizes = [sum(int(mask.sum()) for *_, mask in _masks(rows, column, part, labels, time)) for part in range(len(EDGE_SETS))]
    return [EdgeSet(name, graph, edge, column, part, sizes[part], time, labels) for part, name in enumerate(EDGE_SETS)]


def _masks(
    rows: Rows,
    column: ColumnSchema,
    part: int,
    labels: tuple[ColumnSchema, ...],
    time: ColumnSchema | None,
    row_bytes: int = _ROW_BYTES,
) -> Iterator[tuple[int, int, Mask]]:
    for low, high in rows.slices(row_bytes):
        mask = in_part(rows, column, part, labels, low, high)
        yield low, high, mask if time is None else mask & read_present(rows, time, low, high)
