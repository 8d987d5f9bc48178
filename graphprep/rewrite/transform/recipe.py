"""What a new store is made of: nodes and edges of another one, and columns that an operation computed."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.schema import ColumnSchema, EdgeType, Layout, NeighborOrder
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays, StoredItems, outside, read_offsets
from graphprep.store.paths import LayoutPaths, edge_folder

Ints = NDArray[np.int64]
Ids = NDArray[Any]  # int32 or int64
STEP = 1 << 18  # edges or nodes looked at at once
NO_ROW = -1


@dataclass(frozen=True)
class MadeColumn:
    """A dense column that was computed: ``values`` [m, …] by new typed ID or edge ID; ``present`` bool[m], None: all."""

    schema: ColumnSchema
    values: NDArray[Any]
    present: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class NodeRecipe:
    """A node type: those of its nodes that stay (old typed IDs, ascending: int64[k]), None: all as they are."""

    kept: Ints | None = None


@dataclass(frozen=True)
class EdgeRecipe:
    """An edge type of the new store, its edges by edge ID.

    ``number`` is the old type whose columns go along, ``rows`` (int64[m]) the old row of each edge, ``NO_ROW`` for one that is
    new. ``src`` and ``dst`` (int32[m] or int64[m]) are old typed IDs. ``made`` are columns in place of old ones of their names,
    or beside them. ``old_ids`` (int64[m]): which edge of the old store each was, ``NO_ROW``: none.
    """

    edge_type: EdgeType
    number: int
    src: Ids
    dst: Ids
    rows: Ints
    old_ids: Ints
    made: tuple[MadeColumn, ...] = ()

    def take(self, kept: Ints, scratch: Scratch) -> EdgeRecipe:
        """Return some of the edges, in this order."""
        src, dst, rows, old_ids = (take(one, kept, scratch) for one in (self.src, self.dst, self.rows, self.old_ids))
        return replace(self, src=src, dst=dst, rows=rows, old_ids=old_ids)

    @property
    def size(self) -> int:
        """Return the number of edges."""
        return self.src.size


@dataclass(frozen=True)
class Recipe:
    """A store: ``nodes`` by old node type number, and its edge types. ``maps``: old edge ID → new, -1: none, by old number.

    ``with_parents``: nodes get a column of the typed ID that they had, edges of their old ID. ``store``: what it is made of,
    where that is another one than the operation was given.
    """

    nodes: tuple[NodeRecipe, ...]
    edges: tuple[EdgeRecipe, ...]
    layouts: tuple[Layout, ...]
    neighbor_order: NeighborOrder | None = None
    index_dtype: str | None = None
    dropped: tuple[tuple[str | EdgeType, str], ...] = ()
    maps: dict[int, Ints] = field(default_factory=dict)
    with_parents: bool = False
    store: StoredArrays | None = None


def take(values: NDArray[Any], rows: Ints, scratch: Scratch) -> NDArray[Any]:
    """Return ``values[rows]`` as an array of the scratch, a slice at a time."""
    out = scratch.zeros(rows.size, values.dtype)
    for start in range(0, rows.size, STEP):
        out[start : start + STEP] = values[rows[start : start + STEP]]
    return out


def positions(mask: NDArray[np.bool_], scratch: Scratch) -> Ints:
    """Return where a mask is true, as an array of the scratch."""
    out = scratch.zeros(int(np.count_nonzero(mask)), np.int64)
    at = 0
    for start in range(0, mask.size, STEP):
        found = np.flatnonzero(mask[start : start + STEP])
        out[at : at + found.size] = found + start
        at += found.size
    return out


def ranks(kept: Ints, size: int, scratch: Scratch) -> Ints:
    """Return where each of 0..size-1 stands among those that are kept, -1 where it does not: int64[size]."""
    out = scratch.zeros(size, np.int64)
    for start in range(0, size, STEP):
        out[start : start + STEP] = -1
    for start in range(0, kept.size, STEP):
        some = kept[start : start + STEP]
        out[some] = np.arange(start, start + some.size)
    return out


def as_it_is(store: StoredArrays, scratch: Scratch) -> Recipe:
    """Return the recipe of a store as it is: operations change parts of it. Raises DataError for faulty arrays."""
    metadata = store.metadata
    edges = [read_edges(store, number, scratch) for number in range(len(metadata.edge_types))]
    return Recipe(tuple(NodeRecipe() for _ in metadata.node_types), tuple(edges), metadata.layouts)


def read_edges(store: StoredArrays, number: int, scratch: Scratch) -> EdgeRecipe:
    """Read the edges of a type by edge ID; without edge IDs, as rows lie."""
    metadata = store.metadata
    num_edges, layout = metadata.num_edges_per_type[number], metadata.primary_layout
    src_type, _, dst_type = metadata.edge_types[number]
    own_type, other_type = (dst_type, src_type) if layout == "csc" else (src_type, dst_type)
    sizes = dict(zip(metadata.node_types, metadata.num_nodes_per_type, strict=True))
    dtype = np.int32 if max(sizes[src_type], sizes[dst_type]) < 2**31 else np.int64
    owners, others = scratch.zeros(num_edges, dtype), scratch.zeros(num_edges, dtype)
    rows, old_ids = scratch.zeros(num_edges, np.int64), scratch.zeros(num_edges, np.int64)
    first_row, first_node = 0, 0
    for part in range(metadata.num_parts):
        with scratch.inner() as inner:
            for start, some, own, ids in _entries(store, number, part, first_row, inner):
                _check(some, start, sizes[other_type])
                values = some.values
                owners[ids], others[ids] = own + first_node, values
                rows[ids] = np.arange(first_row + start, first_row + start + values.size)
        first_row += metadata.num_edges_per_chunk[number][part]
        first_node += metadata.num_nodes_per_chunk[metadata.node_types.index(own_type)][part]
    for start in range(0, num_edges, STEP):
        old_ids[start : start + STEP] = np.arange(start, min(start + STEP, num_edges))
    src, dst = (others, owners) if layout == "csc" else (owners, others)
    return EdgeRecipe(metadata.edge_types[number], number, src, dst, rows, old_ids)


@dataclass(frozen=True)
class _Slice:
    items: StoredItems
    values: NDArray[Any]


def _entries(store: StoredArrays, number: int, part: int, first_row: int, scratch: Scratch) -> Any:
    """Yield (start, other ends, local owners, edge IDs) of slices of a partition's entries."""
    metadata = store.metadata
    paths = LayoutPaths(f"{edge_folder(metadata.edge_types[number])}/{metadata.primary_layout}")
    indices = StoredItems(store.array(part, paths.indices))
    indptr = read_offsets(store.array(part, paths.indptr), indices.size, scratch)
    has_ids = metadata.edge_schemas[number].edge_id_dtype is not None
    ids = StoredItems(store.array(part, paths.edge_ids)) if has_ids else None
    for start in range(0, indices.size, STEP):
        stop = min(start + STEP, indices.size)
        low = int(np.searchsorted(indptr, start, "right")) - 1
        high = int(np.searchsorted(indptr, stop, "left"))
        bounds = np.clip(indptr[low : high + 1], start, stop)
        own = np.repeat(np.arange(low, high), np.diff(bounds))
        found = np.arange(first_row + start, first_row + stop) if ids is None else ids.read(start, stop)
        if ids is not None:
            _check(_Slice(ids, found), start, metadata.num_edges_per_type[number], "edge ID")
        yield start, _Slice(indices, indices.read(start, stop)), own, found


def _check(some: _Slice, start: int, limit: int, what: str = "typed ID") -> None:
    bad = (some.values < 0) | (some.values >= limit)
    if bad.any():
        at = int(np.argmax(bad))
        raise outside(some.items, start + at, int(some.values[at]), limit, what)
