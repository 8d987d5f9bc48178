"""A flow as DGL's blocks (message flow graphs), whose first source nodes are the destination nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.clients import as_tensor, read_tensors
from graphprep.graph.libraries import load_library
from graphprep.model.errors import UsageError
from graphprep.model.export import Side
from graphprep.sample.arrays import WALKED
from graphprep.sample.flow.columns import FlowRows
from graphprep.sample.flow.identity import number_nodes
from graphprep.sample.flow.structure import FlowStructure
from graphprep.store.columns.trainers import Attribute, dgl_attributes

Ints = NDArray[np.int64]


def to_dgl_blocks(flow: FlowStructure, columns: Sequence[str] | None, *, added_self_loops: bool) -> list[Any]:
    """See ``NodeFlow.to_dgl_blocks``."""
    dgl, blocks = load_library("dgl"), []
    wanted = _attributes(flow, columns)
    numbers = [number_nodes(flow, node_type) for node_type in range(len(flow.node_types))]
    dst_nodes = [flow.layer_nid(-1, node_type) for node_type in range(len(flow.node_types))]
    for block in reversed(range(flow.num_blocks)):
        src_nodes = [_with_layer(flow, block, *some) for some in zip(range(len(numbers)), numbers, dst_nodes, strict=True)]
        blocks.append(_make_block(flow, block, (src_nodes, dst_nodes), numbers, added_self_loops, wanted["edge"], dgl))
        dst_nodes = src_nodes
    blocks.reverse()
    for made, side, at in ((blocks[0], "srcnodes", dst_nodes), (blocks[-1], "dstnodes", None)) if blocks else ():
        for number, name in enumerate(flow.node_types):
            own = flow.layer_nid(-1, number) if at is None else at[number]
            rows = FlowRows(flow.columns, "node", number, own) if flow.columns else None
            if rows is not None:
                getattr(made, side)[name].data.update(read_tensors(wanted["node"][number], rows))
    return blocks


def _attributes(flow: FlowStructure, columns: Sequence[str] | None) -> dict[Side, list[list[Attribute]]]:
    """Return the tensors of each type. Raises UsageError for a column that no type has."""
    found: dict[Side, list[list[Attribute]]] = {"node": [], "edge": []}
    known: set[str] = set()
    totals: dict[Side, int] = {"node": len(flow.node_types), "edge": len(flow.edge_types)}
    for side, total in totals.items():
        for number in range(total):
            schemas = flow.columns.schemas(side, number) if flow.columns else ()
            known |= {one.name for one in schemas}
            found[side].append(dgl_attributes([one for one in schemas if columns is None or one.name in columns]))
    for name in columns or ():
        if name not in known:
            raise UsageError(f"the flow has no column {name!r}", fix=f"use some of {', '.join(sorted(known)) or 'none'}")
    return found


def _with_layer(flow: FlowStructure, layer: int, node_type: int, numbers: Ints, dst_nodes: Ints) -> Ints:
    """Return the destination nodes, and then those of the layer that are not among them: IDs within the flow."""
    own = flow.layer_nid(layer, node_type)
    return np.concatenate([dst_nodes, own[~np.isin(numbers[own], numbers[dst_nodes])]])


def _make_block(
    flow: FlowStructure,
    block: int,
    nodes: tuple[list[Ints], list[Ints]],
    numbers: list[Ints],
    added_self_loops: bool,
    attributes: list[list[Attribute]],
    dgl: Any,
) -> Any:
    edges, ids = {}, {}
    for number, edge_type in enumerate(flow.edge_types):
        one = flow.arrays.block_types[number]
        src, dst, eid = flow.block_edges(block, edge_type=number)
        kept = slice(None) if added_self_loops or one.number == WALKED else flow.edge_mapping[eid] >= 0
        ends = (
            _places(numbers[kind], some[kind], end[kept])
            for kind, some, end in zip((one.source, one.destination), nodes, (src, dst), strict=True)
        )
        edges[edge_type], ids[edge_type] = tuple(map(as_tensor, ends)), eid[kept]
    counts = ({name: some[i].size for i, name in enumerate(flow.node_types)} for some in nodes)
    made = dgl.create_block(edges, *counts)
    for side, some in zip((made.srcnodes, made.dstnodes), nodes, strict=True):
        for number, name in enumerate(flow.node_types):
            side[name].data[dgl.NID] = as_tensor(flow.node_mapping[some[number]])
            if flow.arrays.node_times is not None:
                side[name].data["node_times"] = as_tensor(flow.arrays.node_times[some[number]])
    for number, (edge_type, own) in enumerate(ids.items()):
        data = made.edges[edge_type].data
        data[dgl.EID] = as_tensor(flow.edge_mapping[own])
        if flow.arrays.edge_weights is not None:
            data["edge_weights"] = as_tensor(flow.arrays.edge_weights[own])
        if flow.columns is not None:
            data.update(read_tensors(attributes[number], FlowRows(flow.columns, "edge", number, own)))
    return made


def _places(numbers: Ints, nodes: Ints, ends: Ints) -> Ints:
    """Return where the nodes at the ends of edges stand among ``nodes``; both are IDs within the flow."""
    places = np.empty(int(numbers[nodes].max(initial=-1)) + 1, np.int64)
    places[numbers[nodes]] = np.arange(nodes.size)
    return places[numbers[ends]]
