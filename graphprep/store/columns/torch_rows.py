"""Rows of stored columns as values that torch computes with: side by side, labels, masks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells

# Unsigned dtypes that torch 2.1 lacks and later ones hardly compute with, and what has room for all but the largest uint64.
WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}


class ColumnRows(Protocol):
    """The rows of one type's columns."""

    def cells(self, column: ColumnSchema, low: int, high: int, /) -> Cells:
        """Return rows [low, high) of a column; zeros where it is absent."""

    def present(self, column: ColumnSchema, low: int, high: int, /) -> NDArray[np.bool_] | None:
        """Return which of the rows [low, high) have the column; None: all."""


@dataclass(frozen=True)
class Matrix:
    """Dense columns side by side: one tensor of two dimensions, or a single column of more in its own shape."""

    columns: tuple[ColumnSchema, ...]

    @property
    def array_dtype(self) -> np.dtype[Any]:
        """Return the dtype that holds all columns."""
        return np.result_type(*(np.dtype(torch_dtype(column)) for column in self.columns))

    @property
    def item_shape(self) -> tuple[int, ...]:
        """Return the shape of a row."""
        if len(self.columns) == 1 and len(self.columns[0].item_shape) > 1:
            return self.columns[0].item_shape
        return (sum(math.prod(column.item_shape) for column in self.columns),)

    def read(self, rows: ColumnRows, low: int, high: int) -> NDArray[Any]:
        """Return rows [low, high): [k, *item_shape]; zeros where a column is absent."""
        return self.join([read_values(rows, column, low, high) for column in self.columns])

    def join(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Put the values of the columns for some rows side by side."""
        flat = [some.reshape(len(some), math.prod(some.shape[1:])) for some in values]
        joined = flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)
        return joined.reshape(len(joined), *self.item_shape)


def torch_dtype(column: ColumnSchema) -> str:
    """Return the dtype of a column in torch."""
    return WIDER.get(column.dtype, column.dtype)


def label_dtype(column: ColumnSchema) -> str:
    """Return the dtype of a label: whole numbers are int64, as losses over classes want them."""
    return column.dtype if np.dtype(column.dtype).kind in "fc" else "int64"


def read_values(rows: ColumnRows, column: ColumnSchema, low: int, high: int) -> NDArray[Any]:
    """Return rows [low, high) of a dense column: [k, *item_shape]; zeros where it is absent.

    Raises DataError for a number that torch has no dtype for.
    """
    values = fit(rows.cells(column, low, high).values, torch_dtype(column), column.name, low)
    return values.reshape(high - low, *column.item_shape)


def read_labels(rows: ColumnRows, column: ColumnSchema, low: int, high: int) -> NDArray[Any]:
    """Return the labels of rows [low, high); -1, or NaN among floats, where there is none."""
    values = fit(rows.cells(column, low, high).values, label_dtype(column), column.name, low)
    values = values.reshape(high - low, *column.item_shape)
    return fill_labels(values, rows.present(column, low, high) if column.optional else None)


def fill_labels(values: NDArray[Any], present: NDArray[np.bool_] | None) -> NDArray[Any]:
    """Return labels with -1, or NaN among floats, where there is none; as they are where users asked for another dtype."""
    if present is None or present.all() or values.dtype.kind in "bu":
        return values
    filled = values.copy()
    filled[~present] = -1 if values.dtype.kind == "i" else np.nan
    return filled


def read_present(rows: ColumnRows, column: ColumnSchema, low: int, high: int) -> NDArray[np.bool_]:
    """Return which of the rows [low, high) have a column."""
    found = rows.present(column, low, high)
    return np.ones(high - low, np.bool_) if found is None else found


def equals(rows: ColumnRows, column: ColumnSchema, value: int, low: int, high: int) -> NDArray[np.bool_]:
    """Return which rows [low, high) have a value in a column; those without the column have none."""
    mask = rows.cells(column, low, high).values.reshape(-1) == value
    present = rows.present(column, low, high) if column.optional else None
    return np.asarray(mask if present is None else mask & present)


def in_part(
    rows: ColumnRows, split: ColumnSchema, part: int, labels: Sequence[ColumnSchema], low: int, high: int
) -> NDArray[np.bool_]:
    """Return which rows [low, high) are in a part of a split: those that lack one of the labels are in none."""
    found = equals(rows, split, part, low, high)
    for label in labels:
        if found.any():
            found = found & has_label(rows, label, low, high)
    return found


def has_label(rows: ColumnRows, column: ColumnSchema, low: int, high: int) -> NDArray[np.bool_]:
    """Return which of the rows [low, high) have a label: a value, and among floats one that is a number."""
    found = read_present(rows, column, low, high)
    if np.dtype(column.dtype).kind == "f":
        values = rows.cells(column, low, high).values.reshape(high - low, math.prod(column.item_shape))
        found = found & ~np.isnan(values).all(axis=1)
    return found


def fit(values: NDArray[Any], dtype: str, name: str, first: int) -> NDArray[Any]:
    """Return the values of column ``name`` with a dtype that torch has; ``first`` is the row where they begin.

    Raises DataError for what int64 has no room for.
    """
    if values.dtype == np.uint64 and dtype == "int64" and values.size and int(values.max()) >= 2**63:
        row = first + int(np.argmax((values >= 2**63).reshape(len(values), -1).any(axis=1)))
        raise DataError(
            f"{values.max()} does not fit int64, the widest integer of torch",
            place=f"column {name!r} [{row}]",
            fix=f"export it as floats: --feature-dtype {name}=float64",
        )
    with np.errstate(over="ignore"):
        cast = values.astype(dtype, copy=False)
    if dtype == "float32" and values.dtype == np.float64 and (lost := np.isinf(cast) & np.isfinite(values)).any():
        row = first + int(np.argmax(lost.reshape(len(lost), -1).any(axis=1)))
        fix = f"export it with --feature-dtype {name}=float64, or leave the column out"
        raise DataError(f"{values[lost].flat[0]} does not fit float32", place=f"column {name!r} [{row}]", fix=fix)
    return cast
