"""metadata.json and manifest.json as frozen dataclasses. Checking raw JSON against the JSON Schemas is storage's work."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any, NamedTuple

from graphprep.model.schema import (
    NEGATIVE_ROLES,
    ColumnSchema,
    EdgeType,
    EdgeTypeSchema,
    Layout,
    NodeTypeSchema,
    edge_type_text,
    parse_edge_type,
)

STORE_FORMAT = "graphprep-store"
MANIFEST_FORMAT = "graphprep-manifest"
FORMAT_VERSION = 1
METADATA_NAME = "metadata.json"
MANIFEST_NAME = "manifest.json"
PROVENANCE_NAME = "provenance.json"
RECORD_NAME = "export.json"  # of an export; its first key is its format
EXPORT_FORMAT = "graphprep-export"


def dump_json(value: object) -> bytes:
    """Write JSON as every file of a store has it: UTF-8, two spaces, final newline.

    Bytes of a file's name that are no UTF-8 (lone surrogates in Python) are written as JSON's own escapes.
    """
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode(errors="backslashreplace")


def dump_store_json(value: object) -> bytes:
    """Write what ``dump_json`` writes, a hundred times as fast: for metadata.json and manifests, which hold no floats.

    orjson writes some floats and NaN otherwise. What it refuses (lone surrogates, integers of more than 64 bits) is left to
    ``dump_json``.
    """
    import orjson

    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
    except orjson.JSONEncodeError:
        return dump_json(value)


def part_name(part: int, num_parts: int) -> str:
    """Return a partition's folder: ``part-00000``; at least five digits, the same number for all."""
    return f"part-{part:0{max(5, len(str(num_parts - 1)))}d}"


class ArrayEntry(NamedTuple):
    """One array of a partition: ``path`` is relative to the partition's folder, ``num_bytes`` the file's size."""

    path: str
    dtype: str
    shape: tuple[int, ...]
    num_bytes: int
    xxh3: str

    def to_json(self) -> dict[str, Any]:
        """Return the entry of ``arrays``."""
        return {"path": self.path, "dtype": self.dtype, "shape": list(self.shape), "bytes": self.num_bytes, "xxh3": self.xxh3}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ArrayEntry:
        """Read an entry of ``arrays``."""
        return cls(value["path"], value["dtype"], tuple(value["shape"]), value["bytes"], value["xxh3"])


@dataclass(frozen=True)
class Manifest:
    """manifest.json of one partition; arrays ascend by path."""

    part: int
    arrays: tuple[ArrayEntry, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the file's value."""
        return {
            "format": MANIFEST_FORMAT,
            "format_version": FORMAT_VERSION,
            "part": self.part,
            "arrays": list(map(ArrayEntry.to_json, sorted(self.arrays, key=attrgetter("path")))),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Manifest:
        """Read the file's value."""
        return cls(value["part"], tuple(ArrayEntry.from_json(entry) for entry in value["arrays"]))


class PartEntry(NamedTuple):
    """Where a partition lies and what its manifest must be."""

    path: str
    manifest_bytes: int
    manifest_xxh3: str


@dataclass(frozen=True)
class GraphMetadata:
    """metadata.json of a store. Lists over types follow ``node_types`` and ``edge_types``; chunks are partitions.

    ``previous_partition_by`` is set where nodes changed partitions as their order wants it (``partition_by`` is ``order``).
    """

    graph_name: str
    node_types: tuple[str, ...]
    edge_types: tuple[EdgeType, ...]
    num_nodes_per_chunk: tuple[tuple[int, ...], ...]
    num_edges_per_chunk: tuple[tuple[int, ...], ...]
    num_parts: int
    partition_by: str
    layouts: tuple[Layout, ...]
    node_schemas: tuple[NodeTypeSchema, ...]
    edge_schemas: tuple[EdgeTypeSchema, ...]
    parts: tuple[PartEntry, ...]
    previous_partition_by: str | None = None

    # Kept, since loops over types and partitions ask for them: adding up each time would make those quadratic.
    @cached_property
    def num_nodes_per_type(self) -> tuple[int, ...]:
        """Return the number of nodes of each type."""
        return tuple(map(sum, self.num_nodes_per_chunk))

    @cached_property
    def num_edges_per_type(self) -> tuple[int, ...]:
        """Return the number of edges of each type."""
        return tuple(map(sum, self.num_edges_per_chunk))

    def num_nodes_by_type(self) -> dict[str, int]:
        """Return the number of nodes of each type, by its name."""
        return dict(zip(self.node_types, self.num_nodes_per_type, strict=True))

    def num_edges_by_type(self) -> dict[str, int]:
        """Return the number of edges of each type, by its name."""
        return dict(zip(map(edge_type_text, self.edge_types), self.num_edges_per_type, strict=True))

    def without_negatives(self) -> tuple[GraphMetadata, tuple[tuple[ColumnSchema, ...], ...]]:
        """Return what is left without the columns that hold IDs of nodes, and these, by edge type."""
        columns = [schema.columns for schema in self.edge_schemas]
        negatives = tuple(tuple(one for one in some if one.role in NEGATIVE_ROLES) for some in columns)
        kept = (tuple(one for one in some if one.role not in NEGATIVE_ROLES) for some in columns)
        schemas = (replace(schema, columns=own) for schema, own in zip(self.edge_schemas, kept, strict=True))
        return replace(self, edge_schemas=tuple(schemas)), negatives

    @property
    def primary_layout(self) -> Layout:
        """Return CSC where the store has it, else CSR."""
        return "csc" if "csc" in self.layouts else "csr"

    def to_json(self) -> dict[str, Any]:
        """Return the file's value, keys in the order of the schema."""
        edge_names = list(map(edge_type_text, self.edge_types))
        return {
            "format": STORE_FORMAT,
            "format_version": FORMAT_VERSION,
            "graph_name": self.graph_name,
            "node_type": list(self.node_types),
            "num_nodes_per_type": list(self.num_nodes_per_type),
            "num_nodes_per_chunk": list(map(list, self.num_nodes_per_chunk)),
            "edge_type": edge_names,
            "num_edges_per_type": list(self.num_edges_per_type),
            "num_edges_per_chunk": list(map(list, self.num_edges_per_chunk)),
            "num_parts": self.num_parts,
            "partition_by": self.partition_by,
            **({} if self.previous_partition_by is None else {"previous_partition_by": self.previous_partition_by}),
            "layouts": list(self.layouts),
            "node_schema": dict(zip(self.node_types, map(NodeTypeSchema.to_json, self.node_schemas), strict=True)),
            "edge_schema": dict(zip(edge_names, map(EdgeTypeSchema.to_json, self.edge_schemas), strict=True)),
            "parts": list(map(PartEntry._asdict, self.parts)),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> GraphMetadata:
        """Read the file's value; the JSON Schema was checked before."""
        return cls(
            graph_name=value["graph_name"],
            node_types=tuple(value["node_type"]),
            edge_types=tuple(parse_edge_type(text) for text in value["edge_type"]),
            num_nodes_per_chunk=tuple(tuple(chunk) for chunk in value["num_nodes_per_chunk"]),
            num_edges_per_chunk=tuple(tuple(chunk) for chunk in value["num_edges_per_chunk"]),
            num_parts=value["num_parts"],
            partition_by=value["partition_by"],
            layouts=tuple(value["layouts"]),
            node_schemas=tuple(NodeTypeSchema.from_json(value["node_schema"][name]) for name in value["node_type"]),
            edge_schemas=tuple(EdgeTypeSchema.from_json(value["edge_schema"][name]) for name in value["edge_type"]),
            parts=tuple(PartEntry(part["path"], part["manifest_bytes"], part["manifest_xxh3"]) for part in value["parts"]),
            previous_partition_by=value.get("previous_partition_by"),
        )
