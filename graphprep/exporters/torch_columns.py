"""The columns of a type as the named tensors that PyTorch Geometric knows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.column_rows import Rows
from graphprep.exporters.dgl_columns import MASKS
from graphprep.exporters.graph import StoredGraph, slices
from graphprep.exporters.torch_features import FeatureMatrix
from graphprep.exporters.torch_files import TensorPieces
from graphprep.exporters.torch_graph import by_id, equals, label_dtype, read_labels
from graphprep.exporters.torch_pickle import BFLOAT16
from graphprep.model.dataclass import dataclass
from graphprep.model.schema import ColumnSchema


@dataclass(frozen=True)
class Attribute:
    """A tensor with a row for each node or edge; ``read(rows, low, high)`` returns some of them: [k, *item_shape]."""

    name: str
    dtype: str
    item_shape: tuple[int, ...]
    read: Callable[[Rows, int, int], NDArray[Any]]

    def tensor(self, rows: Rows) -> TensorPieces:
        """Return all rows, in their order."""
        row_bytes = TensorPieces(self.dtype, self.item_shape, tuple).num_bytes
        step = max(1, rows.piece_bytes // max(1, row_bytes))

        def pieces() -> Iterator[NDArray[Any]]:
            for low, high in slices(rows.size, step):
                yield self.read(rows, low, high)

        return TensorPieces(self.dtype, (rows.size, *self.item_shape), pieces)

    def by_id(self, graph: StoredGraph, number: int) -> TensorPieces:
        """Return the rows of all nodes of a type, by the IDs that trainers see."""
        parts = [Rows.of_nodes(graph, number, part) for part in range(graph.metadata.num_parts)]
        held = "float32" if self.dtype == BFLOAT16 else self.dtype
        found = by_id(graph, number, held, self.item_shape, lambda part, low, high: self.read(parts[part], low, high))
        return TensorPieces(self.dtype, found.shape, found.pieces)


def node_attributes(columns: Sequence[ColumnSchema], features: Sequence[ColumnSchema], *, bfloat16: bool) -> list[Attribute]:
    """Return the tensors of a node type: ``x`` of its features, ``y``, masks of split and seeds, other columns by name."""
    return _attributes(columns, features, "x", "y", "", bfloat16=bfloat16)


def edge_attributes(columns: Sequence[ColumnSchema], features: Sequence[ColumnSchema], *, bfloat16: bool) -> list[Attribute]:
    """Return the tensors of an edge type: ``edge_attr``, ``edge_label``, ``edge_weight``, ``edge_time`` and so on.

    In a graph without types, names that begin with ``edge`` are how PyG tells them from those of nodes.
    """
    return _attributes(columns, features, "edge_attr", "edge_label", "edge_", bfloat16=bfloat16)


def _attributes(
    columns: Sequence[ColumnSchema],
    features: Sequence[ColumnSchema],
    matrix_name: str,
    label_name: str,
    prefix: str,
    *,
    bfloat16: bool,
) -> list[Attribute]:
    found: list[Attribute] = []
    if features:
        matrix = FeatureMatrix(tuple(features), bfloat16)
        found.append(Attribute(matrix_name, matrix.dtype, matrix.item_shape, matrix.read))
    labels = [column for column in columns if column.role == "label"]
    for column in columns:
        own = column.name if column.name.startswith(prefix) else f"{prefix}{column.name}"
        if column.role == "label":
            found.append(_label(column, label_name if column == labels[0] else own))
        elif column.role == "split":
            found += [_mask(column, f"{prefix}{mask}", value) for value, mask in enumerate(MASKS)]
        elif column.role == "seeds":
            found.append(_mask(column, f"{prefix}seed_mask", 1))
        else:
            found += [] if column in features else [_plain(column, own)]
            found += [_present(column, f"{own}_present")] if column.optional else []
    return found


def _plain(column: ColumnSchema, name: str) -> Attribute:
    matrix = FeatureMatrix((column,))
    return Attribute(
        name,
        matrix.dtype,
        column.item_shape,
        lambda rows, low, high: matrix.read(rows, low, high).reshape(high - low, *column.item_shape),
    )


def _label(column: ColumnSchema, name: str) -> Attribute:
    def read(rows: Rows, low: int, high: int) -> NDArray[Any]:
        return read_labels(rows, column, low, high)

    return Attribute(name, label_dtype(column), column.item_shape, read)


def _mask(column: ColumnSchema, name: str, value: int) -> Attribute:
    return Attribute(name, "bool", (), lambda rows, low, high: equals(rows, column, value, low, high))


def _present(column: ColumnSchema, name: str) -> Attribute:
    def read(rows: Rows, low: int, high: int) -> NDArray[np.bool_]:
        found = rows.present(column, low, high)
        return np.ones(high - low, np.bool_) if found is None else found

    return Attribute(name, "bool", (), read)
