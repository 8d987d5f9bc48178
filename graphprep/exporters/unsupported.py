"""Which columns a target does not support, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from graphprep.model.export import Side, Unsupported
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.features import KINDS
from graphprep.store.columns.trainers import all_types

WhyNot = Callable[[Side, ColumnSchema], str | None]


def list_unsupported(metadata: GraphMetadata, why_not: WhyNot) -> tuple[Unsupported, ...]:
    """List the columns for which ``why_not`` gives a reason."""
    found = ((side, name, column, why_not(side, column)) for side, name, column in all_columns(metadata))
    return tuple(Unsupported(side, name, column.name, reason) for side, name, column, reason in found if reason is not None)


def why_no_array(side: Side, column: ColumnSchema) -> str | None:
    """Say why a column is no array of numbers; None where it is one."""
    return None if column.kind == "dense" else KINDS[column.kind]


def why_no_cell(side: Side, column: ColumnSchema) -> str | None:
    """Say why a column's values are no cells of a text; None where they are."""
    if column.kind == "binary":
        return None
    if column.kind == "dense" and column.item_shape:
        return "a row has several values"
    if column.kind == "dense" and np.dtype(column.dtype).kind == "c":
        return "its numbers are complex"
    return why_no_array(side, column)


def count_types(metadata: GraphMetadata) -> str:
    """Say how many types a graph has, for targets that know only some graphs."""
    nodes, edges = len(metadata.node_types), len(metadata.edge_types)
    return f"{nodes} node type{'s' * (nodes != 1)} and {edges} edge type{'s' * (edges != 1)}"


def all_columns(metadata: GraphMetadata) -> Iterator[tuple[Side, str, ColumnSchema]]:
    """Yield (side, type, column) of all types, as they are listed."""
    return ((side, name, column) for side, name, columns in all_types(metadata) for column in columns)
