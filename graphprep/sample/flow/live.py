"""Flows of a loaded store, without files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.graph import Graph
from graphprep.model.errors import UsageError
from graphprep.model.ids import IdLike
from graphprep.sample.arrays import FlowArrays, block_types
from graphprep.sample.flow.node_flow import NodeFlow

Ints = NDArray[np.int64]
Seeds = IdLike | Mapping[str, IdLike]
_NONE = np.zeros(0, np.int64)


def create_full_node_flow(graph: Graph, num_layers: int, seeds: Seeds | None = None) -> NodeFlow:
    """Return the complete flow of a model of ``num_layers`` layers: all edges that enter the seeds, and so on.

    It has ``num_layers`` blocks, and one layer of nodes more. ``seeds``: typed IDs, or typed IDs by node type; None: all nodes.
    Raises UsageError for a seed that is there twice. Source of name and meaning: DGL's ``create_full_nodeflow``.
    """
    if num_layers < 1:
        raise UsageError(f"num_layers must be at least 1, found {num_layers}", fix="count the layers of the model")
    layer = _seeds(graph, seeds)
    types = block_types(graph.node_types, graph.edge_types, "in")
    rows = [graph.adjacency(edge_type, layout="csc") for edge_type in graph.edge_types]
    layers, blocks = [layer], []
    for _ in range(num_layers):
        starts = np.cumsum([0, *(some.size for some in layer)])
        found = [_in_edges(rows[one.number], layer[one.destination]) for one in types]
        sources: list[list[Ints]] = [[_NONE] for _ in layer]
        for one, (_, some, _) in zip(types, found, strict=True):
            sources[one.source].append(some)
        layer = [_distinct(np.concatenate(some)) for some in sources]
        starts = np.cumsum([0, *(some.size for some in layer)])
        ends = [_places(layer[one.source], some) + starts[one.source] for one, (_, some, _) in zip(types, found, strict=True)]
        blocks.append([(indptr, src, ids) for (indptr, _, ids), src in zip(found, ends, strict=True)])
        layers.append(layer)
    layers.reverse()
    blocks.reverse()
    sizes = [some.size for layer in layers for some in layer]
    edges = [one for block in blocks for one in block]
    arrays = FlowArrays(
        graph.node_types,
        types,
        "in",
        np.cumsum([0, *sizes]),
        np.concatenate([_NONE, *(some for layer in layers for some in layer)]),
        np.cumsum([0, *(ids.size for _, _, ids in edges)]),
        np.concatenate([_NONE, *(src for _, src, _ in edges)]).astype(np.int32),
        np.concatenate([_NONE, *(indptr for indptr, _, _ in edges)]),
        np.concatenate([_NONE, *(ids for _, _, ids in edges)]),
    )
    return NodeFlow(arrays, graph)


def _seeds(graph: Graph, seeds: Seeds | None) -> list[Ints]:
    """Return the seeds of each node type."""
    if seeds is None:
        return [np.arange(graph.num_nodes(name)) for name in graph.node_types]
    if not isinstance(seeds, Mapping) and len(graph.node_types) > 1:
        raise UsageError("there are several node types", fix="pass seeds as a dict of IDs by node type")
    named = seeds if isinstance(seeds, Mapping) else {graph.node_types[0]: seeds}
    found = [_NONE] * len(graph.node_types)
    for name, ids in named.items():
        own = np.atleast_1d(np.asarray(ids, np.int64)) if np.size(ids) else _NONE
        if not np.all(graph.has_nodes(own, name)):
            wrong = own[~np.asarray(graph.has_nodes(own, name))][0]
            raise UsageError(f"there is no node {wrong} of type {name!r}", fix="pass typed IDs")
        if np.unique(own).size < own.size:
            raise UsageError(f"a seed of type {name!r} is there twice", fix="pass each seed once")
        found[graph.node_types.index(name)] = own
    return found


def _in_edges(rows: Any, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    """Return (offsets, sources, edge IDs) of the edges that enter nodes."""
    starts, stops = rows.indptr[nodes], rows.indptr[nodes + 1]
    offsets = np.cumsum(np.concatenate([[0], stops - starts]))
    at = np.repeat(starts - offsets[:-1], stops - starts) + np.arange(offsets[-1])
    return offsets, rows.indices[at].astype(np.int64), at if rows.edge_ids is None else rows.edge_ids[at].astype(np.int64)


def _distinct(nodes: Ints) -> Ints:
    """Return each node once, in the order of first meeting."""
    _, firsts = np.unique(nodes, return_index=True)
    return nodes[np.sort(firsts)]


def _places(layer: Ints, nodes: Ints) -> Ints:
    order = np.argsort(layer, kind="stable")
    return order[np.searchsorted(layer, nodes, sorter=order)]
