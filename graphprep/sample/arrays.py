"""The arrays of one mini-batch: layers of nodes, blocks of edges between them, and where both stand in the parent graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphprep.model.errors import UsageError, one_of
from graphprep.model.schema import EdgeType

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class BlockType:
    """Edges of one type of the parent as they lie in blocks: from a node type to another, by their numbers.

    ``source`` and ``destination`` are those of the flow, whose edges all lead towards the seeds. Where ``is_reversed``, they
    are met against their direction: the flow's destinations are the parent's sources.
    """

    edge_type: EdgeType
    number: int
    source: int
    destination: int
    is_reversed: bool


@dataclass(frozen=True)
class FlowArrays:
    """A layered graph (NodeFlow) of L layers and B = L - 1 blocks, of T node types and E block types.

    Layer 0 is the outermost, the last one holds the seeds; block b leads from layer b to layer b + 1. A node may stand in
    several layers, but in one only once (with ``node_times``: once for each time). Within a layer nodes stand by type, those of
    a type in the order in which they were first met.

    - ``block_types``: those of the parent's edge types whose edges are in the flow: with direction ``in`` as they are, with
      ``out`` reversed, with ``both`` all as they are and then all reversed
    - ``layer_offsets`` int64[L * T + 1]: nodes of type t in layer l begin at ``[l * T + t]``
    - ``node_mapping`` int64[N]: their typed IDs in the parent, layer after layer
    - ``block_offsets`` int64[B * E + 1]: edges of block type e in block b begin at ``[b * E + e]``
    - ``sources`` int32[M]: an edge's source, as its position in layer b over all types. Edges are sorted by destination
    - ``indptr`` int64: for every block and block type the offsets of its destinations' edges, each from 0, one after another:
      as many as layer b + 1 has nodes of the destination's type, and one. ``indptr_offsets`` says where they begin
    - ``edge_mapping`` int64[M]: parent edge IDs, of the block type's edge type; -1 for loops that were added, and for visits
    - ``node_times`` int64[N]: in a temporal flow the time that nodes have from their seed; else None
    - ``edge_weights`` float32[M]: of layer-wise sampling, what makes sums over the sample unbiased, of random walks the number
      of visits; else None
    """

    node_types: tuple[str, ...]
    block_types: tuple[BlockType, ...]
    direction: str
    layer_offsets: Ints
    node_mapping: Ints
    block_offsets: Ints
    sources: NDArray[np.int32]
    indptr: Ints
    edge_mapping: Ints
    node_times: Ints | None = None
    edge_weights: NDArray[np.float32] | None = None

    @classmethod
    def from_edges(
        cls,
        layers: Sequence[Mapping[str, ArrayLike]],
        blocks: Sequence[Mapping[EdgeType, tuple[ArrayLike, ArrayLike, ArrayLike]]],
        edge_types: Sequence[EdgeType],
        direction: str = "in",
    ) -> FlowArrays:
        """Make the arrays of a flow by hand, of a graph of these edge types, in its order.

        ``layers``: typed IDs by node type, of every one of them, the outermost layer first. ``blocks``: by edge type, for each
        edge the position of its source among the layer's nodes of its type, that of its destination in the next layer, and its
        edge ID. With direction ``out`` sources and destinations are those of the flow, not of the graph. Raises UsageError.
        """
        if not layers or len(blocks) != len(layers) - 1:
            raise UsageError(
                f"{len(layers)} layers and {len(blocks)} blocks", fix="give a block between each layer and the next"
            )
        if direction not in ("in", "out"):
            raise UsageError(f"there is no direction {direction!r} by hand", fix=one_of(("in", "out"), found=direction))
        node_types = tuple(layers[0])
        if any(tuple(layer) != node_types for layer in layers) or any(
            end not in node_types for one in edge_types for end in one[::2]
        ):
            raise UsageError("layers have other node types", fix="give all node types of the graph in each layer, in its order")
        kinds = block_types(node_types, tuple(edge_types), direction)
        for number, block in enumerate(blocks):
            for edge_type in block:
                if edge_type not in edge_types:
                    raise UsageError(f"block {number}: there is no edge type {edge_type!r}", fix="name it among edge_types")
        nodes = [[_ints(ids) for ids in layer.values()] for layer in layers]
        made = [[block.get(one.edge_type, ((), (), ())) for one in kinds] for block in blocks]
        return join_blocks(node_types, kinds, direction, nodes, made)

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """Return the parent's edge types that the blocks have, each once."""
        return tuple(dict.fromkeys(one.edge_type for one in self.block_types))

    @property
    def num_layers(self) -> int:
        """Return L."""
        return (self.layer_offsets.size - 1) // len(self.node_types)

    @property
    def num_seeds(self) -> int:
        """Return the number of nodes of the last layer."""
        return int(self.layer_offsets[-1] - self.layer_offsets[-1 - len(self.node_types)])

    @property
    def num_blocks(self) -> int:
        """Return B."""
        return self.num_layers - 1

    @cached_property
    def indptr_offsets(self) -> Ints:
        """Return where in ``indptr`` the offsets of block type e in block b begin, at ``[b * E + e]``: int64[B * E + 1]."""
        return indptr_offsets(self.layer_offsets, len(self.node_types), self.block_types)

    def layer_start(self, layer: int, node_type: int = 0) -> int:
        """Return the position of a layer's first node (of a type) in ``node_mapping``."""
        return int(self.layer_offsets[layer * len(self.node_types) + node_type])

    def block(self, block: int, block_type: int) -> tuple[Ints, NDArray[np.int32], Ints]:
        """Return offsets, sources and edge IDs of a block's edges of a block type: views."""
        at = block * len(self.block_types) + block_type
        edges = slice(int(self.block_offsets[at]), int(self.block_offsets[at + 1]))
        offsets = slice(int(self.indptr_offsets[at]), int(self.indptr_offsets[at + 1]))
        return self.indptr[offsets], self.sources[edges], self.edge_mapping[edges]


def join_blocks(
    node_types: tuple[str, ...],
    kinds: tuple[BlockType, ...],
    direction: str,
    layers: Sequence[Sequence[Ints]],
    blocks: Sequence[Sequence[tuple[ArrayLike, ArrayLike, ArrayLike]]],
) -> FlowArrays:
    """Return a flow of layers, nodes by type, and of blocks, edges by block type: see ``FlowArrays.from_edges``."""
    sources, indptr, ids = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    sizes = []
    for number, block in enumerate(blocks):
        firsts = np.cumsum([0, *(some.size for some in layers[number])])
        for one, edges in zip(kinds, block, strict=True):
            src, dst, own = map(_ints, edges)
            ends = layers[number][one.source].size, layers[number + 1][one.destination].size
            if not src.size == dst.size == own.size:
                raise UsageError(f"block {number}: {src.size} sources, {dst.size} destinations, {own.size} edge IDs")
            for positions, size, what in ((src, ends[0], "source"), (dst, ends[1], "destination")):
                if positions.size and not 0 <= positions.min() <= positions.max() < size:
                    found = positions[(positions < 0) | (positions >= size)][0]
                    raise UsageError(f"block {number}: there is no {what} {found} of {size}", fix="give positions in the layer")
            order = np.argsort(dst, kind="stable")
            sources.append((src[order] + firsts[one.source]).astype(np.int32))
            indptr.append(np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(dst, minlength=ends[1]))]))
            ids.append(own[order])
            sizes.append(src.size)
    return FlowArrays(
        node_types,
        kinds,
        direction,
        np.cumsum([0, *(some.size for layer in layers for some in layer)], dtype=np.int64),
        np.concatenate([some for layer in layers for some in layer]),
        np.cumsum([0, *sizes], dtype=np.int64),
        np.concatenate(sources),
        np.concatenate(indptr),
        np.concatenate(ids),
    )


def _ints(values: ArrayLike) -> Ints:
    return np.asarray(values, np.int64).reshape(-1)


def indptr_offsets(layer_offsets: NDArray[Any], num_node_types: int, block_types: tuple[BlockType, ...]) -> Ints:
    """Return where the offsets of every block and block type begin: see ``FlowArrays.indptr_offsets``."""
    sizes = np.diff(layer_offsets).reshape(-1, num_node_types)[1:]
    counts = sizes[:, [one.destination for one in block_types]] + 1
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts.reshape(-1), dtype=np.int64)])


VISITS = "visits"  # the relation of edges that walks make
WALKED = -1  # the number of a block type whose edges are none of the store


def visit_type(node_types: tuple[str, ...], name: str) -> BlockType:
    """Return the block type of edges from visited nodes of a type to those that visited them."""
    number = node_types.index(name)
    return BlockType((name, VISITS, name), WALKED, number, number, is_reversed=False)


def block_types(node_types: tuple[str, ...], edge_types: tuple[EdgeType, ...], direction: str) -> tuple[BlockType, ...]:
    """Return the block types of a store's edge types, for direction ``in``, ``out`` or ``both``."""
    found = []
    for is_reversed in {"in": (False,), "out": (True,), "both": (False, True)}[direction]:
        for number, edge_type in enumerate(edge_types):
            ends = node_types.index(edge_type[0]), node_types.index(edge_type[2])
            source, destination = reversed(ends) if is_reversed else ends
            found.append(BlockType(edge_type, number, source, destination, is_reversed))
    return tuple(found)
