"""Stored columns as cells: some rows of any kind of column, however its arrays lie."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells
from graphprep.store.items import StoredArrays
from graphprep.store.paths import ColumnPaths

Ints = NDArray[np.int64]


def read_cells(store: StoredArrays, part: int, stem: str, column: ColumnSchema, low: int, high: int) -> Cells:
    """Read rows [low, high) of a column whose arrays have the path ``stem`` in a partition.

    A dense column gives values [k, items a row]; rows without a value are zeros, or have no items: see ``read_present``.
    Raises DataError where an array is missing or is not what the manifest says.
    """
    if column.kind == "dense":
        rows = store.array(part, f"{stem}.npy").read(low, high)
        return Cells(None, rows.reshape(high - low, int(np.prod(column.item_shape, dtype=np.int64))))
    if column.kind == "temporal":
        return _read_temporal(store, part, stem, column, low, high)
    first, last, counts = _read_counts(store, part, ColumnPaths(stem).offsets, low, high)
    values = store.array(part, ColumnPaths(stem).values).read(first, last)
    if column.kind != "sparse":
        return Cells(counts, values)
    coords = store.array(part, ColumnPaths(stem).coords).read(first, last)
    return Cells(counts, values, np.asarray(coords.reshape(-1), np.int64))


def read_present(
    store: StoredArrays, part: int, stem: str, column: ColumnSchema, low: int, high: int
) -> NDArray[np.bool_] | None:
    """Return which of the rows [low, high) have the column: bool[k]; None: all."""
    if not column.optional:
        return None
    return np.asarray(store.array(part, ColumnPaths(stem).present).read(low, high), np.bool_)


def _read_temporal(store: StoredArrays, part: int, stem: str, column: ColumnSchema, low: int, high: int) -> Cells:
    """Read entries with their values; without stored ends there is none: -1."""
    first, last, entry_counts = _read_counts(store, part, ColumnPaths(stem).entry_offsets, low, high)
    value_first, value_last, counts = _read_counts(store, part, ColumnPaths(stem).offsets, first, last)
    end = store.array(part, ColumnPaths(stem).end).read(first, last) if column.end else np.full(last - first, -1, np.int64)
    return Cells(
        counts=counts,
        values=store.array(part, ColumnPaths(stem).values).read(value_first, value_last),
        entry_counts=entry_counts,
        start=store.array(part, ColumnPaths(stem).start).read(first, last),
        end=end,
    )


def _read_counts(store: StoredArrays, part: int, path: str, low: int, high: int) -> tuple[int, int, Ints]:
    """Read offsets [low, high]: the first, the last, and the counts between them."""
    offsets = store.array(part, path).read(low, high + 1)
    return int(offsets[0]), int(offsets[-1]), np.diff(offsets)
