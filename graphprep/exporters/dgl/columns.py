"""Columns as the tensors that DGL knows by name: features, labels, and masks of a split."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.unsupported import WhyNot, all_columns, list_unsupported, why_no_array
from graphprep.exporters.view.column_rows import Rows
from graphprep.model.errors import UsageError
from graphprep.model.export import Side, Unsupported
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeType
from graphprep.store.columns.torch_rows import WIDER, fit, in_part, read_labels, read_present
from graphprep.store.columns.trainers import MASKS, labels_of


@dataclass(frozen=True)
class Feature:
    """A tensor that is made of a column: its values, who has it, or which rows are in a part of a split.

    ``is_exact``: in the column's own dtype, else bool becomes uint8, and there is no unsigned one beyond that. Rows that lack
    one of the ``labels`` are in no part of a split.
    """

    name: str
    column: ColumnSchema
    what: Literal["values", "present"] | int = "values"
    is_exact: bool = False
    labels: tuple[ColumnSchema, ...] = ()

    @property
    def dtype(self) -> str:
        """Return the dtype in files."""
        dtype = self.column.dtype if self.what == "values" else "bool"
        if self.is_exact:
            return dtype
        return "uint8" if dtype == "bool" else WIDER.get(dtype, dtype)

    @property
    def item_shape(self) -> tuple[int, ...]:
        """Return the shape of a row."""
        return self.column.item_shape if self.what == "values" else ()

    def tensor(self, rows: Rows) -> TensorPieces:
        """Return the values of all rows; zeros for rows without the column."""
        return rows.tensor(self.dtype, self.item_shape, self.read)

    def read(self, rows: Rows, low: int, high: int) -> NDArray[Any]:
        """Return the values of rows [low, high)."""
        if self.what == "present":
            return read_present(rows, self.column, low, high).astype(self.dtype, copy=False)
        if self.what != "values":
            return in_part(rows, self.column, self.what, self.labels, low, high).astype(self.dtype, copy=False)
        if self.column.role == "label":
            return np.ascontiguousarray(read_labels(rows, self.column, low, high).astype(self.dtype, copy=False))
        values = fit(rows.cells(self.column, low, high).values, self.dtype, self.column.name, low)
        return np.ascontiguousarray(values).reshape(high - low, *self.item_shape)


def features_of(
    columns: Sequence[ColumnSchema], *, masks: bool = True, exact: bool = False, labels: tuple[ColumnSchema, ...] = ()
) -> list[Feature]:
    """Return the tensors of a type's dense columns.

    Each by its name, with ``<name>_present`` beside where rows may lack it; a split as its masks, unless these are not wanted.
    ``exact``: names and dtypes are those of the columns. ``labels`` are those of the type, by default the ones among columns.
    """
    found: list[Feature] = []
    labels = labels or labels_of(columns)
    for column in columns:
        if column.role == "split":
            found += [Feature(name, column, part, exact, labels) for part, name in enumerate(MASKS)] if masks else []
            continue
        stem = column.name if exact else dgl_name(column.name)
        found.append(Feature(stem, column, is_exact=exact))
        if column.optional:
            found.append(Feature(f"{stem}_present", column, "present", exact))
    return found


def find_unsupported(metadata: GraphMetadata) -> tuple[Unsupported, ...]:
    """Return the columns that are no tensors: texts, and rows of different lengths."""
    return list_unsupported(metadata, _why_not)


def plan_notes(metadata: GraphMetadata) -> tuple[str, ...]:
    """Say which columns and types are called or stored otherwise than in the store.

    Raises UsageError where two tensors of a type would have one name.
    """
    notes = [
        f"{side} column {name} {column.name!r}: {column.dtype} is written as {WIDER[column.dtype]}"
        for side, name, column in all_columns(metadata)
        if column.dtype in WIDER and _why_not(side, column) is None
    ]
    named = [*metadata.node_types, *(relation for _, relation, _ in metadata.edge_types)]
    named += [column.name for *_, column in all_columns(metadata)]
    if renamed := sorted({name for name in named if dgl_name(name) != name}):
        listed = ", ".join(f"{name!r} is {dgl_name(name)!r}" for name in renamed)
        notes.append(f"names without ':', '/' and '%', which DGL's own names of tensors cannot have: {listed}")
    check_names(metadata, _why_not, lambda columns: [feature.name for feature in features_of(columns)])
    return tuple(notes)


def dgl_name(name: str) -> str:
    """Encode what ends a name where DGL puts names together: ``:``, ``/``, and ``%`` itself."""
    return name.replace("%", "%25").replace(":", "%3A").replace("/", "%2F")


def dgl_edge_type(edge_type: EdgeType) -> str:
    """Return ``src:rel:dst`` of encoded names."""
    return ":".join(map(dgl_name, edge_type))


def _why_not(side: Side, column: ColumnSchema) -> str | None:
    reason = why_no_array(side, column)
    return "DGL has no complex numbers" if reason is None and np.dtype(column.dtype).kind == "c" else reason


def check_names(metadata: GraphMetadata, why_not: WhyNot, names: Callable[[Sequence[ColumnSchema]], list[str]]) -> None:
    """Raise UsageError where two of the ``names`` of what is made of a type's columns are the same."""
    carried: dict[tuple[Side, str], list[ColumnSchema]] = defaultdict(list)
    for side, name, column in all_columns(metadata):
        if why_not(side, column) is None:
            carried[side, name].append(column)
    for (side, name), columns in carried.items():
        if twice := [one for one, count in Counter(names(columns)).items() if count > 1]:
            raise UsageError(
                f"{side} type {name!r} has a column {twice[0]!r}, the name of what is made of another column",
                fix="rename it in the input, or leave it out with --drop-column",
            )
