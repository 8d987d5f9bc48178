"""The features of a type as one matrix of its dense columns, and what is asked of types before they are written."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.carried import cast_cells
from graphprep.exporters.column_rows import Rows
from graphprep.exporters.graph import slices
from graphprep.exporters.torch_files import TensorPieces
from graphprep.exporters.torch_pickle import BFLOAT16
from graphprep.exporters.uncarried import count_types
from graphprep.model.dataclass import dataclass
from graphprep.model.errors import UsageError
from graphprep.model.export import Side
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.stages.cells import Cells

# Unsigned dtypes that torch 2.1 lacks and later ones hardly compute with, and what has room for all but the largest uint64.
WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}


def _widen(cells: Cells, column: ColumnSchema, first: int) -> NDArray[Any]:
    """Return values in a dtype that torch computes with; ``first`` is their first row.

    Raises DataError where one does not fit.
    """
    wider = WIDER.get(column.dtype)
    return cells.values if wider is None else cast_cells(cells, wider, f"column {column.name!r}", first).values


@dataclass(frozen=True)
class FeatureMatrix:
    """Dense columns side by side: one tensor of two dimensions, or a single column of more in its own shape."""

    columns: tuple[ColumnSchema, ...]
    bfloat16: bool = False

    @property
    def array_dtype(self) -> np.dtype[Any]:
        """Return the dtype that holds all columns."""
        return np.result_type(*(np.dtype(WIDER.get(column.dtype, column.dtype)) for column in self.columns))

    @property
    def dtype(self) -> str:
        """Return the dtype in files: bfloat16 where floats are to be that."""
        found = self.array_dtype
        return BFLOAT16 if self.bfloat16 and found.kind == "f" else found.name

    @property
    def item_shape(self) -> tuple[int, ...]:
        """Return the shape of a row."""
        if len(self.columns) == 1 and len(self.columns[0].item_shape) > 1:
            return self.columns[0].item_shape
        return (sum(math.prod(column.item_shape) for column in self.columns),)

    @property
    def row_bytes(self) -> int:
        """Return the size of a row in bytes."""
        return TensorPieces(self.dtype, self.item_shape, tuple).num_bytes

    def read(self, rows: Rows, low: int, high: int) -> NDArray[Any]:
        """Return rows [low, high): [k, *item_shape]; zeros where a column is absent."""
        return self.join([_widen(rows.cells(column, low, high), column, low) for column in self.columns])

    def join(self, values: Sequence[NDArray[Any]]) -> NDArray[Any]:
        """Put the values of the columns for some rows side by side."""
        flat = [some.reshape(len(some), math.prod(some.shape[1:])) for some in values]
        joined = flat[0] if len(flat) == 1 else np.concatenate(flat, axis=1)
        return joined.reshape(len(joined), *self.item_shape)

    def tensor(self, rows: Rows, low: int = 0, high: int | None = None) -> TensorPieces:
        """Return rows [low, high) as a tensor."""
        high = rows.size if high is None else high
        step = max(1, rows.piece_bytes // max(1, self.row_bytes))

        def pieces() -> Iterator[NDArray[Any]]:
            for start, stop in slices(high - low, step):
                yield self.read(rows, low + start, low + stop)

        return TensorPieces(self.dtype, (high - low, *self.item_shape), pieces)


KINDS = {
    "dense": "it holds other things than numbers",
    "ragged": "rows differ in length",
    "sparse": "its values are sparse",
    "binary": "it holds texts or bytes",
    "temporal": "rows have several dated values",
}


def all_types(metadata: GraphMetadata) -> Iterator[tuple[Side, str, tuple[ColumnSchema, ...]]]:
    """Yield every node and edge type (``src:rel:dst``) with its columns."""
    for name, schema in zip(metadata.node_types, metadata.node_schemas, strict=True):
        yield "node", name, schema.columns
    for edge_type, edge_schema in zip(metadata.edge_types, metadata.edge_schemas, strict=True):
        yield "edge", edge_type_text(edge_type), edge_schema.columns


def is_homo(metadata: GraphMetadata, graph_class: str) -> bool:
    """Return whether files are those of a graph without types; ``graph_class`` is auto, homo or hetero."""
    return graph_class != "hetero" and (len(metadata.node_types), len(metadata.edge_types)) == (1, 1)


def check_homo(metadata: GraphMetadata, graph_class: str) -> None:
    """Raise UsageError where a graph of several types is to be one without."""
    if graph_class == "homo" and not is_homo(metadata, graph_class):
        raise UsageError(f"option graph_class=homo: the graph has {count_types(metadata)}", fix="leave it out")


def check_file_names(metadata: GraphMetadata, system: str) -> None:
    """Raise UsageError for names of types that cannot be file names as the system writes them."""
    for name in (*metadata.node_types, *(part for edge_type in metadata.edge_types for part in edge_type)):
        if "/" in name or "__" in name or name.startswith(".") or "\0" in name:
            raise UsageError(
                f"the type name {name!r} cannot be part of {system}'s file names: '/', '__' and a leading '.' are not possible",
                fix="rename the type in the input",
            )


def is_number(column: ColumnSchema) -> bool:
    """Return whether a column is a dense one that torch has tensors for."""
    return column.kind == "dense" and np.dtype(column.dtype).kind in "biufc"


def choose_features(
    name: str, columns: Sequence[ColumnSchema], wanted: Sequence[str], stored: Sequence[ColumnSchema] | None = None
) -> tuple[ColumnSchema, ...]:
    """Choose the columns of a type that make its feature matrix.

    ``wanted`` are names, perhaps of other types' columns (``column`` or ``type:column``), in the order in which columns stand
    side by side. Where none of them is of this type, it is all floats in the order of the schema, or where there are none
    all whole numbers: as they are ``stored``, if ``columns`` have the dtypes of files.
    """
    plain = [column for column in columns if column.role is None and is_number(column)]
    named = [column for key in wanted for column in plain if key in (column.name, f"{name}:{column.name}")]
    floats_stored = {column.name for column in stored or columns if column.role is None and np.dtype(column.dtype).kind == "f"}
    floats = [column for column in plain if column.name in floats_stored]
    return tuple(dict.fromkeys(named or floats or plain))


def check_wanted(wanted: Sequence[str], types: Iterable[tuple[str, Sequence[ColumnSchema]]]) -> None:
    """Raise UsageError where a name of ``choose_features`` is that of no type's feature."""
    known = {
        key
        for name, columns in types
        for column in columns
        if column.role is None and is_number(column)
        for key in (column.name, f"{name}:{column.name}")
    }
    for key in wanted:
        if key not in known:
            listed = ", ".join(sorted(key for key in known if ":" not in key)) or "(there is none)"
            raise UsageError(f"option features: there is no feature {key!r}", fix=f"use some of {listed}")
