"""The names that DeepGNN has for nodes and types: one space of integers for all nodes, and numbers for types."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.times import TIME_ROLES
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.ids import TrainerIds
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.raw_ids import raw_numbers

Ints = NDArray[np.int64]
NodeIds = NDArray[np.uint64]
_NUMBER = re.compile(r"0|[1-9][0-9]*")
_MOST_TYPES = 1 << 12  # a list entry and a sampler's file for each number up to the highest one
NO_FEATURES = TIME_ROLES | {"weight", "created"}
_LEAST_HELD = 1 << 20
_MIX = np.uint64(0x9E3779B97F4A7C15)  # spreads neighbouring IDs over all values


@dataclass(frozen=True)
class TypeNumbers:
    """The number of every node type and edge type: the name where all names are small integers, else the position."""

    nodes: tuple[int, ...]
    edges: tuple[int, ...]
    nodes_by_name: bool
    edges_by_name: bool

    @classmethod
    def of(cls, metadata: GraphMetadata) -> TypeNumbers:
        """Number the types of a store. Edge types of one relation share its number, where that is an integer."""
        nodes = _numbers_in(metadata.node_types)
        edges = _numbers_in([relation for _, relation, _ in metadata.edge_types])
        return cls(
            tuple(range(len(metadata.node_types))) if nodes is None else nodes,
            tuple(range(len(metadata.edge_types))) if edges is None else edges,
            nodes is not None,
            edges is not None,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Say where types are numbered by position."""
        sides = [name for name, by_name in (("node", self.nodes_by_name), ("edge", self.edges_by_name)) if not by_name]
        return (f"{' and '.join(sides)} types go by their positions; types.json has the names",) if sides else ()


def _numbers_in(names: Any) -> tuple[int, ...] | None:
    """Return names as numbers, None where one is no integer, or too large."""
    if not all(_NUMBER.fullmatch(name) and len(name) < 10 and int(name) < _MOST_TYPES for name in names):
        return None
    return tuple(map(int, names))


@dataclass(frozen=True)
class FeatureSlot:
    """A column, and the slot that it fills."""

    slot: int
    column: ColumnSchema


def feature_slots(columns: Sequence[ColumnSchema]) -> tuple[FeatureSlot, ...]:
    """Give each column that is a feature its slot: its own, else the next one behind all of those, in the schema's order."""
    features = [column for column in columns if column.role not in NO_FEATURES]
    free = 1 + max((column.slot for column in features if column.slot is not None), default=-1)
    found = []
    for column in features:
        found.append(FeatureSlot(free if column.slot is None else column.slot, column))
        free += column.slot is None
    return tuple(found)


def unslotted(columns: Sequence[ColumnSchema]) -> bool:
    """Return whether a feature has no slot of its own."""
    return any(column.slot is None and column.role not in NO_FEATURES for column in columns)


def name_all(graph: StoredGraph, out: FolderOutput) -> tuple[EngineIds, TypeNumbers]:
    """Settle the IDs of nodes and the numbers of types, and write what these are: ``types.json``, and maps of IDs."""
    ids, numbers = EngineIds(graph), TypeNumbers.of(graph.metadata)
    if ids.are_homo:
        graph.ids.write_maps(out)
    document = _types_document(graph.metadata, numbers, graph, homo=ids.are_homo)
    out.write("types.json", (json.dumps(document, indent=2, ensure_ascii=False) + "\n").encode())
    return ids, numbers


def _types_document(metadata: GraphMetadata, numbers: TypeNumbers, graph: StoredGraph, *, homo: bool) -> dict[str, Any]:
    """Say what the numbers of types, the slots of columns and, where nodes have homo IDs, their first ones are."""
    nodes, edges, first = {}, {}, 0
    for i, name in enumerate(metadata.node_types):
        slots = {one.column.name: one.slot for one in feature_slots(graph.node_columns(i))}
        nodes[name] = {"number": numbers.nodes[i], **({"first_id": first} if homo else {}), "slots": slots}
        first += metadata.num_nodes_per_type[i]
    for i, edge_type in enumerate(metadata.edge_types):
        slots = {one.column.name: one.slot for one in feature_slots(graph.edge_columns(i))}
        edges[edge_type_text(edge_type)] = {"number": numbers.edges[i], "slots": slots}
    return {"node_types": nodes, "edge_types": edges}


class EngineIds:
    """The IDs of nodes: raw ones where all types share one space of integers from 0 on, else homo IDs, type after type."""

    def __init__(self, graph: StoredGraph) -> None:
        self._metadata = graph.metadata
        self._first = np.cumsum([0, *graph.metadata.num_nodes_per_type])
        self._raw: TrainerIds | None = None
        if _share_space(graph):
            self._raw = TrainerIds(graph.store, "auto", graph.room.scratch, any_raw=True)

    @property
    def are_homo(self) -> bool:
        """Return whether nodes go by homo IDs."""
        return self._raw is None

    @property
    def merge(self) -> bool:
        """Return whether the types of a partition are to be merged by ID, which needs that those of each ascend."""
        return self._raw is not None and all(schema.node_order is None for schema in self._metadata.node_schemas)

    def of(self, number: int, typed: Ints | NDArray[np.int32]) -> NodeIds:
        """Return the IDs of typed ones of a node type."""
        if self._raw is not None:
            return self._raw.of(number, typed).view(np.uint64)
        homo: Ints = typed.astype(np.int64, copy=False) + self._first[number]
        return homo.view(np.uint64)


def _share_space(graph: StoredGraph) -> bool:
    """Return whether all raw IDs are integers from 0 on, and no two nodes have the same."""
    metadata = graph.metadata
    some = [number for number, size in enumerate(metadata.num_nodes_per_type) if size]
    if any(metadata.node_schemas[number].raw_ids == "string" for number in some):
        return False
    bounds = sorted(_bounds(graph, number) for number in some)
    if any(low < 0 for low, _ in bounds):
        return False
    if all(one[1] < other[0] for one, other in pairwise(bounds)):
        return True
    return not _have_repeats(graph, some)


def _bounds(graph: StoredGraph, number: int) -> tuple[int, int]:
    found = [(int(ids.min()), int(ids.max())) for ids in raw_numbers(graph.store, number) if ids.size]
    return min(low for low, _ in found), max(high for _, high in found)


def _have_repeats(graph: StoredGraph, types: list[int]) -> bool:
    """Return whether two nodes have the same raw ID. IDs are looked at in groups that fit in memory."""
    total = sum(graph.metadata.num_nodes_per_type[number] for number in types)
    bits = (16 * total // max(_LEAST_HELD, graph.room.held_bytes)).bit_length()
    for group in range(1 << bits):
        own = []
        for number in types:
            for piece in raw_numbers(graph.store, number):
                ids = piece.astype(np.uint64, copy=False)
                own.append(ids if not bits else ids[(ids * _MIX) >> np.uint64(64 - bits) == group])
        held = np.sort(np.concatenate(own))
        if (held[1:] == held[:-1]).any():
            return True
    return False
