"""A flow as PyG's ``Data`` or ``HeteroData``: all layers in one graph, as ``NeighborLoader`` yields mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.clients import as_tensor, read_tensors
from graphprep.graph.libraries import load_library
from graphprep.model.export import Side
from graphprep.model.schema import edge_type_text
from graphprep.sample.arrays import WALKED
from graphprep.sample.flow.columns import FlowRows
from graphprep.sample.flow.identity import number_nodes
from graphprep.sample.flow.structure import FlowStructure
from graphprep.store.columns.trainers import (
    check_pyg_names,
    check_wanted,
    feature_names,
    pyg_attributes,
    trainer_columns,
    why_not_pyg,
)

Ints = NDArray[np.int64]


@dataclass
class _Nodes:
    """The nodes of one type as they are met: IDs within the flow, how many in each hop, and where each number stands."""

    numbers: Ints
    found: Ints
    counts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.places = np.full(int(self.numbers.max(initial=-1)) + 1, -1, np.int64)
        self.places[self.numbers[self.found]] = np.arange(self.found.size)
        self.counts = [self.found.size]

    def add(self, nodes: Ints) -> None:
        """Add the nodes of a hop that are new, in their order."""
        numbers = self.numbers[nodes]
        fresh = np.flatnonzero(self.places[numbers] < 0)
        _, firsts = np.unique(numbers[fresh], return_index=True)
        fresh = fresh[np.sort(firsts)]
        self.places[numbers[fresh]] = np.arange(self.found.size, self.found.size + fresh.size)
        self.found = np.concatenate([self.found, nodes[fresh]])
        self.counts.append(fresh.size)

    def at(self, nodes: Ints) -> Ints:
        """Return where nodes stand; -1 where they were not met."""
        return self.places[self.numbers[nodes]]


@dataclass
class _Edges:
    """The edges of one type: their ends' places, IDs within the flow, and how many there are in each hop."""

    ends: list[Ints] = field(default_factory=list)
    ids: list[Ints] = field(default_factory=list)

    def add(self, src: Ints, dst: Ints, ids: Ints) -> None:
        """Add those of a hop."""
        self.ends.append(np.stack([src, dst]))
        self.ids.append(ids)


def to_pyg(flow: FlowStructure, features: str | Sequence[str], *, added_self_loops: bool) -> Any:
    """See ``NodeFlow.to_pyg``."""
    data = load_library("torch_geometric.data")
    nodes, edges = _unite(flow, added_self_loops)
    wanted = features.split(",") if isinstance(features, str) and features else list(features)
    homo = (len(flow.node_types), len(flow.edge_types)) == (1, 1)
    tensors = _tensors(flow, wanted, nodes, edges, homo=homo)
    values: dict[Any, dict[str, Any]] = {}
    for number, name in enumerate(flow.node_types):
        some = nodes[number]
        seeds = (
            {"input_id": as_tensor(np.arange(some.counts[0])), "batch_size": some.counts[0]} if some.counts[0] or homo else {}
        )
        own = {"num_nodes": some.found.size, "n_id": as_tensor(flow.node_mapping[some.found])}
        if flow.arrays.node_times is not None:
            own["node_times"] = as_tensor(flow.arrays.node_times[some.found])
        values[name] = {**own, **tensors["node", number], "num_sampled_nodes": some.counts, **seeds}
    for number, edge_type in enumerate(flow.edge_types):
        values[edge_type] = {**_edge_values(flow, edges[number]), **tensors["edge", number]}
    if homo:
        return data.Data.from_dict({name: one for some in values.values() for name, one in some.items()})
    return data.HeteroData.from_dict(values)


def _unite(flow: FlowStructure, added_self_loops: bool) -> tuple[list[_Nodes], list[_Edges]]:
    """Walk from the seeds outwards; a node's edges are those of the hop after it was first met."""
    kinds = range(len(flow.node_types))
    nodes = [_Nodes(number_nodes(flow, kind), flow.layer_nid(-1, kind)) for kind in kinds]
    edges = [_Edges() for _ in flow.edge_types]
    fresh = [0] * len(nodes)  # where the nodes of the last hop begin
    for block in reversed(range(flow.num_blocks)):
        stops = [some.found.size for some in nodes]
        kept, sources = [], [[np.zeros(0, np.int64)] for _ in kinds]
        for number, one in enumerate(flow.arrays.block_types):
            src, dst, ids = flow.block_edges(block, edge_type=number)
            wanted = nodes[one.destination].at(dst) >= fresh[one.destination]
            if not added_self_loops and one.number != WALKED:
                wanted &= flow.edge_mapping[ids] >= 0
            kept.append((src[wanted], dst[wanted], ids[wanted]))
            sources[one.source].append(src[wanted])
        for some, met in zip(nodes, sources, strict=True):
            some.add(np.concatenate(met))
        for one, own, (src, dst, ids) in zip(flow.arrays.block_types, edges, kept, strict=True):
            own.add(nodes[one.source].at(src), nodes[one.destination].at(dst), ids)
        fresh = stops
    return nodes, edges


def _edge_values(flow: FlowStructure, edges: _Edges) -> dict[str, Any]:
    ids = np.concatenate([np.zeros(0, np.int64), *edges.ids])
    found = {
        "edge_index": as_tensor(np.concatenate([np.zeros((2, 0), np.int64), *edges.ends], axis=1)),
        "e_id": as_tensor(flow.edge_mapping[ids]),
        "num_sampled_edges": [some.size for some in edges.ids],
    }
    if flow.arrays.edge_weights is not None:
        found["edge_weights"] = as_tensor(flow.arrays.edge_weights[ids])
    return found


def _tensors(
    flow: FlowStructure, features: Sequence[str], nodes: Sequence[_Nodes], edges: Sequence[_Edges], *, homo: bool
) -> dict[tuple[Side, int], dict[str, Any]]:
    """Return the columns of every type as PyG's tensors.

    Raises UsageError for features that are not there, and where two tensors would have one name.
    """
    names: list[tuple[Side, int, str, Ints]] = [
        ("node", number, name, nodes[number].found) for number, name in enumerate(flow.node_types)
    ]
    names += [
        ("edge", number, edge_type_text(name), np.concatenate([np.zeros(0, np.int64), *edges[number].ids]))
        for number, name in enumerate(flow.edge_types)
    ]
    if flow.columns is None:
        return {(side, number): {} for side, number, _, _ in names}
    schemas = [
        [column for column in flow.columns.schemas(side, number) if not why_not_pyg(column)] for side, number, _, _ in names
    ]
    check_wanted(features, [(name, some) for (_, _, name, _), some in zip(names, schemas, strict=True)])
    chosen = [
        feature_names(name, some, features, flow.node_types) for (_, _, name, _), some in zip(names, schemas, strict=True)
    ]
    found = [
        pyg_attributes(side, trainer_columns(some, own), own)
        for (side, *_), some, own in zip(names, schemas, chosen, strict=True)
    ]
    check_pyg_names([(name, some) for (_, _, name, _), some in zip(names, found, strict=True)], homo=homo)
    return {
        (side, number): read_tensors(some, FlowRows(flow.columns, side, number, at))
        for (side, number, _, at), some in zip(names, found, strict=True)
    }
