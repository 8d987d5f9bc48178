"""The schema of a graph as a user fixes it beforehand: types in their order, and every type's columns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphprep.model.rows import ColumnKey
from graphprep.model.schema import NEGATIVE_ROLES, ColumnSchema, EdgeType, parse_edge_type

_FAMILIES = {"dense": "numbers", "ragged": "numbers", "sparse": "sparse", "binary": "binary", "temporal": "temporal"}


@dataclass(frozen=True)
class OwnerSchema:
    """The columns of one node or edge type; ``num_slots`` allows records that state more slots than they fill."""

    columns: tuple[ColumnSchema, ...]
    num_slots: bool = False

    def column_for(self, key: ColumnKey) -> ColumnSchema | None:
        """Return the column in which values under a key belong, None where there is none."""
        return next((column for column in self.columns if _takes(column, key)), None)


@dataclass(frozen=True)
class GraphSchema:
    """Node types and edge types in the order of their numbers, with their columns."""

    place: str
    node_types: tuple[str, ...]
    edge_types: tuple[EdgeType, ...]
    nodes: Mapping[str, OwnerSchema]
    edges: Mapping[EdgeType, OwnerSchema]

    @classmethod
    def from_json(cls, value: Mapping[str, Any], place: str) -> GraphSchema:
        """Read a schema file, or a store's metadata.json; the JSON Schema was checked before."""
        edge_types = tuple(parse_edge_type(text) for text in value["edge_type"])
        return cls(
            place=place,
            node_types=tuple(value["node_type"]),
            edge_types=edge_types,
            nodes={name: _owner(value["node_schema"].get(name)) for name in value["node_type"]},
            edges={
                kind: _owner(value["edge_schema"].get(text)) for kind, text in zip(edge_types, value["edge_type"], strict=True)
            },
        )


def _owner(value: Mapping[str, Any] | None) -> OwnerSchema:
    if value is None:
        return OwnerSchema(())
    columns = (ColumnSchema.from_json(column) for column in value["columns"] if column.get("role") not in NEGATIVE_ROLES)
    return OwnerSchema(tuple(columns), bool(value.get("num_slots")))


def _takes(column: ColumnSchema, key: ColumnKey) -> bool:
    """Return whether a column's values travel under a key. What becomes a split may have any form."""
    if column.role == "split":
        return key.role is None and column.slot == key.slot and (key.slot is not None or column.name == key.name)
    if column.slot != key.slot or column.role != key.role or _FAMILIES[column.kind] != key.family:
        return False
    if (key.slot is None and column.name != key.name) or column.unit != key.unit:
        return False
    if key.family == "sparse" and (column.item_shape[0] if column.item_shape else 0) != key.width:
        return False
    widened = key.slot is None and key.role is None and (column.dtype, key.dtype) == ("float64", "int64")
    return column.dtype == key.dtype or widened
