"""Columns as the tensors that DGL knows by name: features, labels, and masks of a split."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.graph import StoredGraph
from graphprep.exporters.torch_files import TensorPieces
from graphprep.model.errors import DataError, UsageError
from graphprep.model.export import EdgeOrder, Side, Uncarried
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeType, edge_type_text
from graphprep.stages.cells import Cells

MASKS = ("train_mask", "val_mask", "test_mask")  # of the parts 0, 1, 2 of a split
# Unsigned dtypes that torch 2.1 lacks, and what holds their values; those of uint64 are looked at.
_WIDER = {"uint16": "int32", "uint32": "int64", "uint64": "int64"}

Present = NDArray[np.bool_] | None


@dataclass(frozen=True)
class Rows:
    """The rows of one type's columns: ``cells`` and ``present`` read rows [low, high) of a column."""

    size: int
    cells: Callable[[ColumnSchema, int, int], Cells]
    present: Callable[[ColumnSchema, int, int], Present]
    piece_bytes: int

    @classmethod
    def of_nodes(cls, graph: StoredGraph, number: int, part: int) -> Rows:
        """Return the rows of a partition's nodes."""
        return cls(
            graph.metadata.num_nodes_per_chunk[number][part],
            lambda column, low, high: graph.node_cells(number, part, column, low, high),
            lambda column, low, high: graph.node_present(number, part, column, low, high),
            graph.room.piece_bytes,
        )

    @classmethod
    def of_edges(cls, graph: StoredGraph, edge: int, order: EdgeOrder, part: int) -> Rows:
        """Return the rows of a partition's edges in the row order of a layout; ``input``: of all edges, by edge ID."""
        size = graph.metadata.num_edges_per_type[edge] if order == "input" else graph.num_edges(edge, order, part)
        return cls(
            size,
            lambda column, low, high: graph.edge_cells(edge, order, part, column, low, high),
            lambda column, low, high: graph.edge_present(edge, order, part, column, low, high),
            graph.room.piece_bytes,
        )

    def slices(self, row_bytes: int) -> Iterator[tuple[int, int]]:
        """Cut the rows into pieces."""
        step = max(1, self.piece_bytes // max(1, row_bytes))
        for low in range(0, self.size, step):
            yield low, min(low + step, self.size)


@dataclass(frozen=True)
class Feature:
    """A tensor that is made of a column: its values, who has it, or which rows are in a part of a split."""

    name: str
    column: ColumnSchema
    what: Literal["values", "present"] | int = "values"

    @property
    def dtype(self) -> str:
        """Return the dtype in files: bool as uint8, and no unsigned one beyond that."""
        dtype = self.column.dtype if self.what == "values" else "bool"
        return "uint8" if dtype == "bool" else _WIDER.get(dtype, dtype)

    @property
    def item_shape(self) -> tuple[int, ...]:
        """Return the shape of a row."""
        return self.column.item_shape if self.what == "values" else ()

    def pieces(self, rows: Rows) -> Iterator[NDArray[Any]]:
        """Yield the values: [k, *item_shape]; zeros for rows without the column."""
        row_bytes = np.dtype(self.dtype).itemsize * int(np.prod(self.item_shape, dtype=np.int64))
        for low, high in rows.slices(row_bytes):
            yield self.read(rows, low, high)

    def tensor(self, rows: Rows) -> TensorPieces:
        """Return it as what files take."""
        return TensorPieces(self.dtype, (rows.size, *self.item_shape), lambda: self.pieces(rows))

    def read(self, rows: Rows, low: int, high: int) -> NDArray[Any]:
        """Return the values of rows [low, high)."""
        present = None if self.what == "values" else rows.present(self.column, low, high)
        if self.what == "present":
            return np.ones(high - low, np.uint8) if present is None else present.astype(np.uint8)
        values = rows.cells(self.column, low, high).values
        if self.what != "values":
            mask = values.reshape(-1) == self.what
            return np.asarray(mask if present is None else mask & present, np.uint8)
        if values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63:
            raise DataError(
                f"{values.max()} is too large for int64, the widest integer of torch",
                place=f"column {self.column.name!r}",
                fix=f"write it as floats: --feature-dtype {self.column.name}=float64",
            )
        return np.ascontiguousarray(values, self.dtype).reshape(-1, *self.item_shape)


def features_of(columns: Sequence[ColumnSchema], *, masks: bool = True) -> list[Feature]:
    """Return the tensors of a type's columns.

    Each dense column by its name, with ``<name>_present`` (uint8) beside where rows may lack it; a split as its masks, unless
    these are not wanted.
    """
    found: list[Feature] = []
    for column in columns:
        if column.role == "split":
            found += [Feature(name, column, part) for part, name in enumerate(MASKS)] if masks else []
            continue
        found.append(Feature(dgl_name(column.name), column))
        if column.optional:
            found.append(Feature(dgl_name(f"{column.name}_present"), column, "present"))
    return found


def find_uncarried(metadata: GraphMetadata) -> tuple[Uncarried, ...]:
    """Return the columns that are no tensors: texts, and rows of different lengths."""
    return tuple(
        Uncarried(side, name, column.name, reason)
        for side, name, column in _columns(metadata)
        if (reason := _why_not(column)) is not None
    )


def plan_notes(metadata: GraphMetadata) -> tuple[str, ...]:
    """Say which columns and types are called or stored otherwise than in the store.

    Raises UsageError where two tensors of a type would have one name.
    """
    notes = [
        f"{side} column {name} {column.name!r}: {column.dtype} is written as {_WIDER[column.dtype]}"
        for side, name, column in _columns(metadata)
        if column.dtype in _WIDER and _why_not(column) is None
    ]
    named = [
        *metadata.node_types,
        *(edge_type[1] for edge_type in metadata.edge_types),
        *(c.name for *_, c in _columns(metadata)),
    ]
    if renamed := sorted({name for name in named if dgl_name(name) != name}):
        listed = ", ".join(f"{name!r} is {dgl_name(name)!r}" for name in renamed)
        notes.append(f"names without ':', '/' and '%', which DGL's own names of tensors cannot have: {listed}")
    _check_names(metadata)
    return tuple(notes)


def dgl_name(name: str) -> str:
    """Encode what ends a name where DGL puts names together: ``:``, ``/``, and ``%`` itself."""
    return name.replace("%", "%25").replace(":", "%3A").replace("/", "%2F")


def dgl_edge_type(edge_type: EdgeType) -> str:
    """Return ``src:rel:dst`` of encoded names."""
    return ":".join(map(dgl_name, edge_type))


def _columns(metadata: GraphMetadata) -> Iterator[tuple[Side, str, ColumnSchema]]:
    for name, schema in zip(metadata.node_types, metadata.node_schemas, strict=True):
        yield from (("node", name, column) for column in schema.columns)
    for edge_type, edge_schema in zip(metadata.edge_types, metadata.edge_schemas, strict=True):
        yield from (("edge", edge_type_text(edge_type), column) for column in edge_schema.columns)


def _why_not(column: ColumnSchema) -> str | None:
    if column.kind != "dense":
        return {
            "ragged": "rows differ in length",
            "sparse": "its values are sparse",
            "binary": "it holds texts or bytes",
            "temporal": "rows have several dated values",
        }[column.kind]
    return "torch files here hold no complex numbers" if np.dtype(column.dtype).kind == "c" else None


def _check_names(metadata: GraphMetadata) -> None:
    carried: dict[tuple[Side, str], list[ColumnSchema]] = defaultdict(list)
    for side, name, column in _columns(metadata):
        if _why_not(column) is None:
            carried[side, name].append(column)
    for (side, name), columns in carried.items():
        counts = Counter(feature.name for feature in features_of(columns))
        if twice := [feature for feature, count in counts.items() if count > 1]:
            raise UsageError(
                f"{side} type {name!r} has a column {twice[0]!r}, the name of what is made of another column",
                fix="rename it in the input, or leave it out",
            )
