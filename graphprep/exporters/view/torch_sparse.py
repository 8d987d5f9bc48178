"""Sparse columns as sparse tensors of torch: [rows, width], coordinates and values, values at one coordinate added up.

Source: torch 2.1, ``torch._utils._rebuild_sparse_tensor`` of the layout ``torch.sparse_coo``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_pickle import Call, Global, TensorPieces
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.densify import dense_shape
from graphprep.store.columns.torch_rows import fit, torch_dtype

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class SparseRows:
    """The rows of a sparse column: ``read`` yields (rows, cells), as often as it is called; ``size`` rows in all."""

    column: ColumnSchema
    size: int
    read: Callable[[], Iterator[tuple[Ints, Cells]]]

    def tensor(self, dtype: str = "") -> Call:
        """Return the tensor, of another dtype where one is named.

        Raises DataError for a coordinate that is no position, and UsageError where a row would be too wide.
        """
        column, (num_values, shape) = self.column, self._shape()
        values = TensorPieces(dtype or torch_dtype(column), (num_values,), self._values)
        indices = TensorPieces("int64", (1 + len(shape), num_values), self._indices)
        layout = Call(Global("torch.serialization", "_get_layout"), ("torch.sparse_coo",))
        size = Call(Global("torch", "Size"), ((self.size, *shape),))
        return Call(Global("torch._utils", "_rebuild_sparse_tensor"), (layout, (indices, values, size)))

    def _shape(self) -> tuple[int, tuple[int, ...]]:
        """Return the number of values, and the shape of a row."""
        num_values, bounds = 0, []
        for _, cells in self.read():
            coords = self._coords(cells)
            num_values += len(coords)
            bounds += [np.stack([coords.min(axis=0), coords.max(axis=0)])] if len(coords) else []
            bounds = [np.stack([np.min(bounds, axis=0)[0], np.max(bounds, axis=0)[1]])] if bounds else []
        return num_values, dense_shape(self.column.name, self.column.dtype, self.column.item_shape, bounds)

    def _coords(self, cells: Cells) -> Ints:
        width = self.column.item_shape[0] if self.column.item_shape else 1
        return np.asarray(cells.coords, np.int64).reshape(-1, width)

    def _indices(self) -> Iterator[Ints]:
        for rows, cells in self.read():
            yield np.repeat(rows, cells.item_counts)
        for axis in range(self.column.item_shape[0] if self.column.item_shape else 1):
            for _, cells in self.read():
                yield self._coords(cells)[:, axis]

    def _values(self) -> Iterator[NDArray[Any]]:
        return (fit(cells.flat, torch_dtype(self.column), self.column.name, 0) for _, cells in self.read())
