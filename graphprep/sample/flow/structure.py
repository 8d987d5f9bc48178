"""The structure of a flow: sizes, IDs within it and in the parent, edges and matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.graph import Graph
from graphprep.graph.libraries import load_library
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.export import Side
from graphprep.model.ids import EdgeTypeLike, IdLike, NodeTypeLike, TypeNames, as_ids
from graphprep.model.schema import EdgeType, edge_type_text
from graphprep.model.shown.texts import count
from graphprep.sample.arrays import FlowArrays
from graphprep.sample.flow.columns import FlowColumns, ParentColumns

Ints = NDArray[np.int64]
_NONE = np.zeros(0, np.int64)
_EMPTY = FlowArrays(
    ("_N",), (), "in", np.zeros(1, np.int64), _NONE, np.zeros(1, np.int64), _NONE.astype(np.int32), _NONE, _NONE
)


class FlowSource(Protocol):
    """Files that flows are read from."""

    def check_parent(self, graph: Graph) -> None:
        """Refuse a store whose IDs are not those of the flows. Raises DataError."""


class FlowStructure:
    """What ``NodeFlow`` knows of its structure: see there.

    ``held``: columns that were set, by side, number of the layer or block, number of the type, and name. ``source`` knows the
    parent of a flow from files.
    """

    def __init__(
        self,
        arrays: FlowArrays = _EMPTY,
        parent: Graph | None = None,
        columns: FlowColumns | None = None,
        source: FlowSource | None = None,
    ) -> None:
        self.source = source
        self.arrays = arrays
        self.parent = parent
        self.columns = ParentColumns(parent, arrays) if columns is None and parent is not None else columns
        self.held: dict[tuple[Side, int, int, str], Any] = {}

    @property
    def num_layers(self) -> int:
        """Return the number of layers."""
        return self.arrays.num_layers

    @property
    def num_blocks(self) -> int:
        """Return the number of blocks: flows between layers."""
        return max(0, self.arrays.num_blocks)

    @property
    def layer_sizes(self) -> list[int]:
        """Return the number of nodes of each layer."""
        return [self.layer_size(layer) for layer in range(self.num_layers)]

    @property
    def flow_sizes(self) -> list[int]:
        """Return the number of edges of each flow."""
        return [self.block_size(block) for block in range(self.num_blocks)]

    @property
    def node_mapping(self) -> Ints:
        """Return the parent's ID of every node: int64[N], typed IDs."""
        return self.arrays.node_mapping

    @property
    def edge_mapping(self) -> Ints:
        """Return the parent's ID of every edge: int64[M], of its edge type; -1 for loops that were added."""
        return self.arrays.edge_mapping

    # ---- types

    @property
    def node_types(self) -> tuple[str, ...]:
        """Return the node types."""
        return self.arrays.node_types

    @cached_property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """Return the edge types in the direction of the flow; those met against theirs are (dst, ``rev_`` + relation, src)."""
        found: list[EdgeType] = []
        taken = {one.edge_type for one in self.arrays.block_types if not one.is_reversed}
        for one in self.arrays.block_types:
            name = one.edge_type
            if one.is_reversed:
                name = (name[2], f"rev_{name[1]}", name[0])
                while name in taken:
                    name = (name[0], f"rev_{name[1]}", name[2])
            taken.add(name)
            found.append(name)
        return tuple(found)

    def layer_number(self, layer: int) -> int:
        """Return the number of a layer, from 0 on."""
        return _number(layer, self.num_layers, "layer")

    def _block_number(self, block: int) -> int:
        return _number(block, self.num_blocks, "block")

    def _node_type(self, node_type: NodeTypeLike) -> int:
        return TypeNames.of_nodes(self.node_types).id(node_type)

    def edge_type_number(self, edge_type: EdgeTypeLike) -> int:
        """Return the number of an edge type of the flow, named as a triple, as text or by its relation."""
        same = [number for number, (_, relation, _) in enumerate(self.edge_types) if relation == edge_type]
        if len(same) > 1:
            names = [edge_type_text(self.edge_types[number]) for number in same]
            raise DataError(f"{edge_type!r} is several edge types", fix=one_of(names))
        return same[0] if same else TypeNames.of_edges(self.edge_types).id(edge_type)

    # ---- sizes and IDs, by the names of DGL 0.4

    def _nodes(self, layer: int, node_type: NodeTypeLike | None = None) -> tuple[int, int]:
        """Return where the nodes of a layer begin and end."""
        at, width = self.layer_number(layer) * len(self.node_types), len(self.node_types)
        first, stop = (at, at + width) if node_type is None else (at + (t := self._node_type(node_type)), at + t + 1)
        return int(self.arrays.layer_offsets[first]), int(self.arrays.layer_offsets[stop])

    def _edges(self, block: int, edge_type: EdgeTypeLike | None = None) -> tuple[int, int]:
        """Return where the edges of a block begin and end."""
        at, width = self._block_number(block) * len(self.edge_types), len(self.edge_types)
        first, stop = (at, at + width) if edge_type is None else (at + (e := self.edge_type_number(edge_type)), at + e + 1)
        return int(self.arrays.block_offsets[first]), int(self.arrays.block_offsets[stop])

    def layer_size(self, layer_id: int, node_type: NodeTypeLike | None = None) -> int:
        """Return the number of nodes of a layer."""
        start, stop = self._nodes(layer_id, node_type)
        return stop - start

    def block_size(self, block_id: int, edge_type: EdgeTypeLike | None = None) -> int:
        """Return the number of edges of a block."""
        start, stop = self._edges(block_id, edge_type)
        return stop - start

    def layer_nid(self, layer_id: int, node_type: NodeTypeLike | None = None) -> Ints:
        """Return the IDs of a layer's nodes within the flow: int64[n]."""
        return np.arange(*self._nodes(layer_id, node_type))

    def block_eid(self, block_id: int, edge_type: EdgeTypeLike | None = None) -> Ints:
        """Return the IDs of a block's edges within the flow: int64[m]."""
        return np.arange(*self._edges(block_id, edge_type))

    def layer_parent_nid(self, layer_id: int, node_type: NodeTypeLike | None = None) -> Ints:
        """Return the parent's IDs of a layer's nodes: int64[n]. Those of layer -1 are the seeds."""
        return self.node_mapping[slice(*self._nodes(layer_id, node_type))]

    def block_parent_eid(self, block_id: int, edge_type: EdgeTypeLike | None = None) -> Ints:
        """Return the parent's IDs of a block's edges: int64[m]; -1 for loops that were added (which DGL refused to tell)."""
        return self.edge_mapping[slice(*self._edges(block_id, edge_type))]

    def map_to_parent_nid(self, nid: IdLike) -> Any:
        """Return the parent's IDs of nodes of the flow."""
        return _lookup(self.node_mapping, nid, "node")

    def map_to_parent_eid(self, eid: IdLike) -> Any:
        """Return the parent's IDs of edges of the flow; -1 for loops that were added."""
        return _lookup(self.edge_mapping, eid, "edge")

    def map_from_parent_nid(
        self, layer_id: int, parent_nids: IdLike, remap_local: bool = False, node_type: NodeTypeLike | None = None
    ) -> Any:
        """Return the IDs within the flow of nodes of the parent, in a layer; with ``remap_local`` their positions in the layer.

        Raises DataError for a node that the layer lacks, UsageError without a type where there are several.
        """
        if node_type is None and len(self.node_types) > 1:
            raise UsageError("there are several node types", fix=one_of(self.node_types, "pass node_type, one of"))
        mapping, asked = self.layer_parent_nid(layer_id, node_type), as_ids(parent_nids)
        order = np.argsort(mapping, kind="stable")
        at = np.searchsorted(mapping, asked, sorter=order)
        missing = np.append(mapping[order], -1)[at] != asked if mapping.size else np.ones(asked.shape, np.bool_)
        if missing.any():
            which = int(asked.ravel()[np.argmax(missing)])
            raise DataError(f"node {which} is not in layer {layer_id}", fix="layer_parent_nid tells which are")
        found = order[at] + (0 if remap_local else self._nodes(layer_id, node_type)[0])
        return int(found) if asked.ndim == 0 else found

    # ---- edges

    def block_edges(
        self, block_id: int, remap_local: bool = False, edge_type: EdgeTypeLike | None = None
    ) -> tuple[Ints, Ints, Ints]:
        """Return (sources, destinations, edge IDs) of a block: int64[m] each, by edge type, then by destination.

        IDs are those within the flow; with ``remap_local`` sources are positions in layer ``block_id``, destinations in layer
        ``block_id + 1``, and edges positions in the block.
        """
        block, pieces = self._block_number(block_id), []
        for number in self._edge_numbers(edge_type):
            one = self.arrays.block_types[number]
            offsets, sources, _ = self.arrays.block(block, number)
            firsts = self.arrays.layer_start(block + 1, one.destination)
            dst = np.repeat(np.arange(firsts, firsts + offsets.size - 1), np.diff(offsets))
            pieces.append((sources + self.arrays.layer_start(block), dst))
        src, dst = (np.concatenate([_NONE, *some]) for some in zip(*pieces, strict=True)) if pieces else (_NONE, _NONE)
        eid = self.block_eid(block, edge_type)
        if not remap_local:
            return src, dst, eid
        ends = self._end_types(edge_type)
        low_src, low_dst = self._nodes(block, ends[0])[0], self._nodes(block + 1, ends[1])[0]
        return src - low_src, dst - low_dst, eid - self._edges(block, edge_type)[0]

    def layer_in_degree(self, layer_id: int, edge_type: EdgeTypeLike | None = None) -> Ints:
        """Return how many edges enter each node of a layer: int64[n]; 0 in layer 0."""
        return self._degrees(self.layer_number(layer_id), -1, 1, edge_type)

    def layer_out_degree(self, layer_id: int, edge_type: EdgeTypeLike | None = None) -> Ints:
        """Return how many edges leave each node of a layer: int64[n]; 0 in the last one."""
        return self._degrees(self.layer_number(layer_id), 0, 0, edge_type)

    def block_adjacency_matrix(
        self, block_id: int, form: Literal["scipy", "torch"] = "scipy", edge_type: EdgeTypeLike | None = None
    ) -> Any:
        """Return the matrix of a block, [destinations, sources], with ones (float32) for edges.

        ``form``: ``scipy`` (``csr_array``) or ``torch`` (a sparse COO tensor). Edges between the same pair add up.
        """
        src, dst, _ = self.block_edges(block_id, remap_local=True, edge_type=edge_type)
        return _matrix(dst, src, self._shape(block_id, edge_type)[::-1], form)

    def block_incidence_matrix(
        self,
        block_id: int,
        typestr: Literal["in", "out"],
        form: Literal["scipy", "torch"] = "scipy",
        edge_type: EdgeTypeLike | None = None,
    ) -> Any:
        """Return the incidence matrix of a block: [nodes, edges], 1 (float32) where an edge enters or leaves a node.

        ``typestr``: ``in`` for the nodes that edges enter, those of layer ``block_id + 1``; ``out`` for those that they leave,
        in layer ``block_id``. ``form``: ``scipy`` (``csr_array``) or ``torch`` (a sparse COO tensor).
        """
        if typestr not in ("in", "out"):
            raise UsageError(f"there is no incidence matrix {typestr!r} of a block", fix=one_of(("in", "out"), found=typestr))
        src, dst, eid = self.block_edges(block_id, remap_local=True, edge_type=edge_type)
        size = self._shape(block_id, edge_type)[typestr == "in"]
        return _matrix(dst if typestr == "in" else src, eid, (size, eid.size), form)

    def _edge_numbers(self, edge_type: EdgeTypeLike | None) -> Sequence[int]:
        return range(len(self.edge_types)) if edge_type is None else [self.edge_type_number(edge_type)]

    def _end_types(self, edge_type: EdgeTypeLike | None) -> tuple[int | None, int | None]:
        """Return the node types of an edge type's ends; None: all."""
        if edge_type is None:
            return None, None
        one = self.arrays.block_types[self.edge_type_number(edge_type)]
        return one.source, one.destination

    def _shape(self, block: int, edge_type: EdgeTypeLike | None) -> tuple[int, int]:
        """Return the numbers of (sources, destinations) of a block."""
        block, (src, dst) = self._block_number(block), self._end_types(edge_type)
        return self.layer_size(block, src), self.layer_size(block + 1, dst)

    def _degrees(self, layer: int, step: int, end: int, edge_type: EdgeTypeLike | None) -> Ints:
        size, block = self.layer_size(layer, self._end_types(edge_type)[end]), layer + step
        if not 0 <= block < self.num_blocks:
            return np.zeros(size, np.int64)
        return np.bincount(self.block_edges(block, remap_local=True, edge_type=edge_type)[end], minlength=size)


def _number(number: int, total: int, what: str) -> int:
    """Return a number that may count from the end. Raises UsageError where there is none."""
    found = number + total if number < 0 else number
    if not 0 <= found < total:
        raise UsageError(f"there is no {what} {number}: the flow has {count(total, what)}", fix=f"count {what}s from 0")
    return found


def _lookup(mapping: Ints, ids: IdLike, what: str) -> Any:
    asked = as_ids(ids)
    bad = (asked < 0) | (asked >= mapping.size)
    if bad.any():
        raise UsageError(f"there is no {what} {asked.ravel()[np.argmax(bad)]} in the flow, which has {mapping.size}")
    return int(mapping[asked]) if asked.ndim == 0 else mapping[asked]


def _matrix(rows: Ints, columns: Ints, shape: tuple[int, int], form: str) -> Any:
    """Return a sparse matrix with a one at each place."""
    if form == "scipy":
        sparse = load_library("scipy.sparse")
        return sparse.csr_array(sparse.coo_array((np.ones(rows.size, np.float32), (rows, columns)), shape=shape))
    if form != "torch":
        raise UsageError(f"there is no form {form!r} of a matrix", fix=one_of(("scipy", "torch"), found=form))
    torch = load_library("torch")
    places = torch.from_numpy(np.stack([rows, columns]))
    return torch.sparse_coo_tensor(places, torch.ones(rows.size), shape, check_invariants=True).coalesce()
