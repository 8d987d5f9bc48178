"""Operations that choose nodes; the edges between them stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.errors import UsageError
from graphprep.model.schema import RawIdKind
from graphprep.rewrite.components import Components
from graphprep.rewrite.transform.edge_ops import keep_edges
from graphprep.rewrite.transform.recipe import Ints, NodeRecipe, Recipe, positions, slices
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.assign import RawBatch
from graphprep.store.items import StoredArrays
from graphprep.store.raw_merge import nodes_by_raw_id

Mask = NDArray[np.bool_]
_MOST_DIGITS = 18


@dataclass(frozen=True)
class StoreIndex:
    """The raw IDs of a store's nodes, as files of raw IDs are looked up in them."""

    store: StoredArrays
    piece_bytes: int

    @property
    def raw_kinds(self) -> Sequence[RawIdKind]:
        """See ``RawIndex``."""
        return [schema.raw_ids for schema in self.store.metadata.node_schemas]

    @property
    def type_names(self) -> Sequence[str]:
        """See ``RawIndex``."""
        return self.store.metadata.node_types

    @property
    def num_nodes(self) -> Sequence[int]:
        """See ``RawIndex``."""
        return self.store.metadata.num_nodes_per_type

    def raw(self, number: int) -> Iterator[tuple[RawBatch, Ints]]:
        """See ``RawIndex``."""
        for nodes in nodes_by_raw_id(self.store, number, self.piece_bytes):
            yield nodes.raw, nodes.typed


def keep_nodes(store: StoredArrays, recipe: Recipe, masks: dict[int, Mask], scratch: Scratch, *, compact: bool) -> Recipe:
    """Return the subgraph that nodes induce: ``masks`` (bool[n]) by node type number, all nodes of types that have none.

    Without ``compact`` all nodes stay where they are, and only edges go.
    """
    names = store.metadata.node_types

    def induced(edges: Any) -> Any:
        src, dst = (masks.get(names.index(edges.edge_type[side])) for side in (0, 2))

        def inside(at: slice) -> Mask:
            kept = np.ones(at.stop - at.start, np.bool_)
            for mask, ends in ((src, edges.src), (dst, edges.dst)):
                kept &= True if mask is None else mask[ends[at]]
            return kept

        return edges if src is None and dst is None else keep_edges(edges, inside, scratch)

    recipe = replace(recipe, edges=tuple(map(induced, recipe.edges)))
    if not compact:
        return recipe
    nodes = tuple(
        NodeRecipe(positions(masks[number], scratch)) if number in masks and not masks[number].all() else NodeRecipe()
        for number in range(len(names))
    )
    return replace(recipe, nodes=nodes, with_parents=True)


def reach(store: StoredArrays, recipe: Recipe, masks: dict[int, Mask], hops: int, scratch: Scratch) -> dict[int, Mask]:
    """Grow sets of nodes by the nodes from which they are reached over at most ``hops`` edges: those of messages to them.

    All edges are looked through once for each hop, as long as one finds more.
    Source: DGL's ``khop_in_subgraph``, PyG's ``k_hop_subgraph``.
    """
    sizes, names = store.metadata.num_nodes_per_type, store.metadata.node_types
    found = {number: masks.get(number, scratch.zeros(size, np.bool_)) for number, size in enumerate(sizes)}
    for _ in range(hops):
        grown = {number: _copy(mask, scratch) for number, mask in found.items()}
        for edges in recipe.edges:
            src, dst = (names.index(edges.edge_type[side]) for side in (0, 2))
            for at in slices(edges.size):
                grown[src][edges.src[at][found[dst][edges.dst[at]]]] = True
        if all(np.array_equal(grown[number], mask) for number, mask in found.items()):
            break
        found = grown
    return found


def _copy(mask: Mask, scratch: Scratch) -> Mask:
    out: Mask = scratch.zeros(mask.size, np.bool_)
    out[:] = mask
    return out


def by_degree(store: StoredArrays, recipe: Recipe, low: int, high: int | None, room: Workspace) -> dict[int, Mask]:
    """Return the nodes to which so many edges lead, or from which they do: ``low`` to ``high``, both included."""
    metadata = store.metadata
    degrees = [room.scratch.zeros(size, np.int64) for size in metadata.num_nodes_per_type]
    for edges in recipe.edges:
        for name, ends in ((edges.edge_type[0], edges.src), (edges.edge_type[2], edges.dst)):
            for at in slices(edges.size):
                room.kernels.count_ids(np.ascontiguousarray(ends[at]), degrees[metadata.node_types.index(name)])
    return {
        number: _mask(
            found.size, lambda at, found=found: (found[at] >= low) & (high is None or found[at] <= high), room.scratch
        )
        for number, found in enumerate(degrees)
    }


def _mask(size: int, wanted: Any, scratch: Scratch) -> Mask:
    out: Mask = scratch.zeros(size, np.bool_)
    for at in slices(size):
        out[at] = wanted(at)
    return out


def largest_component(store: StoredArrays, recipe: Recipe, scratch: Scratch) -> dict[int, Mask]:
    """Return the nodes of the largest weakly connected component, over all types; of equal ones that with the first node.

    By union and find over the edges as they lie: 8 bytes a node.
    """
    components = Components(store.metadata, scratch)
    for edges in recipe.edges:
        src, dst = (store.metadata.node_types.index(edges.edge_type[side]) for side in (0, 2))
        for at in slices(edges.size):
            components.join(components.number(src, edges.src[at]), components.number(dst, edges.dst[at]))
    sizes, roots, offsets = components.find(scratch), components.roots, components.offsets
    largest = int(np.argmax(sizes)) if sizes.size else 0
    return {
        number: _mask(
            int(offsets[number + 1] - first),
            lambda at, first=first: roots[first + at.start : first + at.stop] == largest,
            scratch,
        )
        for number, first in enumerate(offsets[:-1].tolist())
    }


def mask_of(size: int, ids: Iterable[Ints], scratch: Scratch) -> Mask:
    """Return bool[size], true at IDs."""
    out: Mask = scratch.zeros(size, np.bool_)
    for some in ids:
        out[some] = True
    return out


def incident(store: StoredArrays, recipe: Recipe, scratch: Scratch) -> dict[int, Mask]:
    """Return the nodes at which there are edges."""
    metadata = store.metadata
    found = {number: scratch.zeros(size, np.bool_) for number, size in enumerate(metadata.num_nodes_per_type)}
    for edges in recipe.edges:
        for name, ends in ((edges.edge_type[0], edges.src), (edges.edge_type[2], edges.dst)):
            for at in slices(edges.size):
                found[metadata.node_types.index(name)][ends[at]] = True
    return found


def parse_degrees(text: str) -> tuple[int, int | None]:
    """Read ``MIN:MAX``, either of which may be left out. Raises UsageError."""
    low, colon, high = text.partition(":")
    least, most = parse_count(low or "0"), parse_count(high or "0")
    if not colon or least is None or most is None or (high and most < least):
        raise UsageError(f"{text!r} are no degrees", place="filter-degree", fix="write MIN:MAX, such as 5: or 1:1000")
    return least, most if high else None


def parse_count(text: str) -> int | None:
    """Read a number of at most 18 digits, as int64 holds it; None for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS else None
