"""Sparse columns as dense ones: how wide they are, and their rows with zeros between the values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeTypeSchema, NodeTypeSchema, edge_type_text
from graphprep.store.columns.cells import Cells
from graphprep.store.paths import ColumnPaths, edge_folder, node_folder

if TYPE_CHECKING:
    from graphprep.model.export import Side
    from graphprep.store.items import StoredArrays

Schema = TypeVar("Schema", NodeTypeSchema, EdgeTypeSchema)
Ints = NDArray[np.int64]
Shape = tuple[int, ...]
_STEP = 1 << 17  # coordinates looked at at once
_MOST_ROW_BYTES = 1 << 26  # 64 MiB: coordinates are hashes rather than positions where a row would be larger


class DenseShapes(NamedTuple):
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


class DenseNames:
    """The names (``name``, or ``type:name``) of sparse columns that are to be dense, and which of them there are."""

    def __init__(self, names: Sequence[str], type_name: str = "", parent: DenseNames | None = None) -> None:
        self._names = names
        self._type_name = type_name
        self._known: set[str] = parent._known if parent else set()
        self._used: set[str] = parent._used if parent else set()

    def of(self, type_name: str) -> DenseNames:
        """Return the names as columns of a type have them."""
        return DenseNames(self._names, type_name, self)

    def has(self, name: str) -> bool:
        """Return whether a sparse column of the type is to be dense."""
        keys = {name, f"{self._type_name}:{name}"}.intersection(self._names)
        self._known.add(name)
        self._used |= keys
        return bool(keys)

    def check(self) -> None:
        """Raise UsageError for a name that no sparse column has."""
        for name in self._names:
            if name not in self._used:
                fix = one_of(sorted(self._known), found=name) if self._known else "leave it out"
                raise UsageError(f"--densify: there is no sparse column {name!r}", fix=fix)


def find_dense_shapes(store: StoredArrays, metadata: GraphMetadata, names: Sequence[str]) -> DenseShapes:
    """Find the shapes of sparse columns (``name``, or ``type:name``): one more than their largest coordinates.

    Raises UsageError for a name that no sparse column has, DataError for a coordinate that is no position.
    """
    found: dict[tuple[Side, str, str], Shape] = {}
    wanted = DenseNames(names)
    for side, name, folder, columns in _all_columns(metadata):
        for column in columns:
            if column.kind == "sparse" and wanted.of(name).has(column.name):
                bounds = _bounds(store, ColumnPaths(f"{folder}/{column.path}").coords, column)
                found[side, name, column.name] = dense_shape(column.name, column.dtype, column.item_shape, [bounds])
    wanted.check()
    return DenseShapes(found)


def dense_shape(name: str, dtype: str, item_shape: Shape, bounds: Sequence[Ints | None]) -> Shape:
    """Return the shape of a row: one more than the largest coordinates; 0 where there are none.

    ``bounds`` (int64[2, width] each, or None) are the least and the largest ones. Raises DataError where one is negative,
    UsageError where a row would be too large.
    """
    seen = [one for one in bounds if one is not None]
    if not seen:
        return (0,) * (item_shape[0] if item_shape else 1)
    least, largest = (np.stack([one[end] for one in seen]) for end in range(2))
    if least.min() < 0:
        raise _no_position(least.min(axis=0), f"column {name!r}")
    shape = tuple((largest.max(axis=0) + 1).tolist())
    if math.prod(shape) * np.dtype(dtype).itemsize > _MOST_ROW_BYTES:
        raise UsageError(
            f"--densify: a row of column {name!r} would have {' x '.join(map(str, shape))} numbers",
            fix="leave the column out, or number its coordinates from 0 on",
        )
    return shape


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
        yield "node", name, node_folder(name), schema.columns
    for edge_type, edge_schema in zip(metadata.edge_types, metadata.edge_schemas, strict=True):
        yield "edge", edge_type_text(edge_type), edge_folder(edge_type), edge_schema.columns


def _bounds(store: StoredArrays, path: str, column: ColumnSchema) -> Ints | None:
    width = column.item_shape[0] if column.item_shape else 1
    found: list[Ints] = []
    for part in range(store.metadata.num_parts):
        array = store.array(part, path)
        for low in range(0, array.shape[0], _STEP):
            some = np.asarray(array.read(low, low + _STEP), np.int64).reshape(-1, width)
            found.append(np.stack([some.min(axis=0), some.max(axis=0)]))
    return np.stack([np.min(found, axis=0)[0], np.max(found, axis=0)[1]]) if found else None


def _no_position(coordinate: NDArray[Any], place: str) -> DataError:
    found = ", ".join(map(str, coordinate.tolist()))
    return DataError(f"the coordinate {found} is no position in a dense row", place=place, fix="leave the column sparse")
