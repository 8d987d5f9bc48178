"""Sparse columns as dense ones: how wide they are, and their rows with zeros between the values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.model.dataclass import dataclass
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.export import Side
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeTypeSchema, NodeTypeSchema, edge_type_path, edge_type_text, path_name
from graphprep.stages.cells import Cells
from graphprep.stages.stored_items import StoredArray, StoredArrays
from graphprep.storage.faults import display_url

Schema = TypeVar("Schema", NodeTypeSchema, EdgeTypeSchema)
Shape = tuple[int, ...]
_STEP = 1 << 17  # coordinates looked at at once
_MOST_ROW_BYTES = 1 << 26  # 64 MiB: coordinates are hashes rather than positions where a row would be larger


@dataclass(frozen=True)
class DenseShapes:
    """The shapes of a row that sparse columns have as dense ones, by side, type and name."""

    shapes: Mapping[tuple[Side, str, str], Shape]

    def apply(self, metadata: GraphMetadata) -> GraphMetadata:
        """Return metadata in which these columns are dense."""

        def dense(side: Side, name: str, schema: Schema) -> Schema:
            return replace(schema, columns=tuple(self._column(side, name, column) for column in schema.columns))

        nodes = zip(metadata.node_types, metadata.node_schemas, strict=True)
        edges = zip(map(edge_type_text, metadata.edge_types), metadata.edge_schemas, strict=True)
        return replace(
            metadata,
            node_schemas=tuple(dense("node", name, schema) for name, schema in nodes),
            edge_schemas=tuple(dense("edge", name, schema) for name, schema in edges),
        )

    @property
    def notes(self) -> list[str]:
        """Say how wide each is."""
        return [
            f"{side} column {name} {column!r}: dense rows of {' x '.join(map(str, shape))}"
            for (side, name, column), shape in self.shapes.items()
        ]

    def _column(self, side: Side, name: str, column: ColumnSchema) -> ColumnSchema:
        shape = self.shapes.get((side, name, column.name))
        return column if shape is None else replace(column, kind="dense", item_shape=shape)


def find_dense_shapes(store: StoredArrays, metadata: GraphMetadata, names: Sequence[str]) -> DenseShapes:
    """Find the shapes of sparse columns (``name``, or ``type:name``): one more than their largest coordinates.

    Raises UsageError for a name that no sparse column has, DataError for a coordinate that is no position.
    """
    found: dict[tuple[Side, str, str], Shape] = {}
    known: set[str] = set()
    used: set[str] = set()
    for side, name, folder, columns in _all_columns(metadata):
        for column in columns:
            keys = {column.name, f"{name}:{column.name}"}
            known |= {column.name} if column.kind == "sparse" else set()
            if column.kind == "sparse" and not keys.isdisjoint(names):
                used |= keys
                found[side, name, column.name] = _shape(store, f"{folder}/{column.path}.coords.npy", column)
    for name in names:
        if name not in used:
            raise UsageError(
                f"--densify: there is no sparse column {name!r}", fix=one_of(sorted(known)) if known else "leave it out"
            )
    return DenseShapes(found)


def dense_cells(cells: Cells, shape: Shape, place: str, first: int) -> Cells:
    """Return sparse cells as dense ones, values at one coordinate added up; ``first`` is the row at ``place`` where they begin.

    Raises DataError for a coordinate beyond the shape.
    """
    counts = cells.item_counts
    coords = np.asarray(cells.coords, np.int64).reshape(cells.flat.size, len(shape))
    rows = np.repeat(np.arange(counts.size), counts)
    bad = ((coords < 0) | (coords >= np.array(shape, np.int64))).any(axis=1)
    if bad.any():
        worst = int(np.argmax(bad))
        raise _no_position(coords[worst], f"{place} [{first + int(rows[worst])}]")
    width = math.prod(shape)
    values = np.zeros(counts.size * width, cells.values.dtype)
    at = rows * width + (coords @ _strides(shape))
    if values.dtype == np.bool_:
        np.logical_or.at(values, at, cells.flat)
    else:
        np.add.at(values, at, cells.flat)
    return Cells(None, values.reshape(counts.size, width))


def _strides(shape: Shape) -> NDArray[np.int64]:
    """Return how far apart the items of each dimension are."""
    return np.array([math.prod(shape[axis + 1 :]) for axis in range(len(shape))], np.int64)


def _all_columns(metadata: GraphMetadata) -> Iterator[tuple[Side, str, str, tuple[ColumnSchema, ...]]]:
    """Yield (side, type, folder, columns) of all types."""
    for name, schema in zip(metadata.node_types, metadata.node_schemas, strict=True):
        yield "node", name, f"nodes/{path_name(name)}", schema.columns
    for edge_type, edge_schema in zip(metadata.edge_types, metadata.edge_schemas, strict=True):
        yield "edge", edge_type_text(edge_type), f"edges/{edge_type_path(edge_type)}", edge_schema.columns


def _shape(store: StoredArrays, path: str, column: ColumnSchema) -> Shape:
    top = np.full(column.item_shape[0] if column.item_shape else 1, -1, np.int64)
    for part in range(store.metadata.num_parts):
        array = store.array(part, path)
        for low in range(0, array.shape[0], _STEP):
            some = np.asarray(array.read(low, low + _STEP), np.int64).reshape(-1, top.size)
            if some.size and int(some.min()) < 0:
                raise _no_position(some[int(np.argmax((some < 0).any(axis=1)))], _place(array))
            top = np.maximum(top, some.max(axis=0, initial=-1))
    shape = tuple((top + 1).tolist())
    if math.prod(shape) * np.dtype(column.dtype).itemsize > _MOST_ROW_BYTES:
        raise UsageError(
            f"--densify: a row of column {column.name!r} would have {' x '.join(map(str, shape))} numbers",
            fix="leave the column out, or number its coordinates from 0 on",
        )
    return shape


def _place(array: StoredArray) -> str:
    return display_url(array.url)


def _no_position(coordinate: NDArray[Any], place: str) -> DataError:
    found = ", ".join(map(str, coordinate.tolist()))
    return DataError(f"the coordinate {found} is no position in a dense row", place=place, fix="leave the column sparse")
