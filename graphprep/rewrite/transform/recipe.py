"""What a new store is made of: nodes and edges of another one, and columns that an operation computed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.schema import ColumnSchema, EdgeType, Layout, NeighborOrder
from graphprep.rewrite.stored_edges import EdgeSpan, end_types, map_edges
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays

Ints = NDArray[np.int64]
Ids = NDArray[Any]  # int32 or int64
STEP = 1 << 18  # edges or nodes looked at at once
NO_ROW = -1


@dataclass(frozen=True)
class MadeColumn:
    """A column that was computed: ``values`` [m, …] by new typed ID or edge ID; ``present`` bool[m], None: all.

    Of a ragged one, row i has the values from ``offsets[i]`` to ``offsets[i + 1]`` (int64[m + 1]).
    """

    schema: ColumnSchema
    values: NDArray[Any]
    present: NDArray[np.bool_] | None = None
    offsets: Ints | None = None

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return len(self.values) if self.offsets is None else self.offsets.size - 1


@dataclass(frozen=True)
class NodeRecipe:
    """A node type: those of its nodes that stay (old typed IDs, ascending: int64[k]), None: all as they are."""

    kept: Ints | None = None


@dataclass(frozen=True)
class EdgeRecipe:
    """An edge type of the new store, its edges by edge ID.

    ``number`` is the old type whose columns go along, ``rows`` the old row of each edge, ``NO_ROW`` for one that is new; None
    where there are no columns. ``src`` and ``dst`` are old typed IDs. ``made`` are columns in place of old ones of their names,
    or beside them. ``old_ids``: which edge of the old store each was, ``NO_ROW``: none; None: edge i is that of ID i. All [m].
    ``reverse_of``: an operation has made them of that edge type's, turned round.
    """

    edge_type: EdgeType
    number: int
    src: Ids
    dst: Ids
    rows: Ids | None
    old_ids: Ids | None
    made: tuple[MadeColumn, ...] = ()
    reverse_of: EdgeType | None = None

    def take(self, kept: Ids, scratch: Scratch) -> EdgeRecipe:
        """Return some of the edges, in this order."""
        src, dst = (take(one, kept, scratch) for one in (self.src, self.dst))
        rows = None if self.rows is None else take(self.rows, kept, scratch)
        old_ids = kept if self.old_ids is None else take(self.old_ids, kept, scratch)
        return replace(self, src=src, dst=dst, rows=rows, old_ids=old_ids, reverse_of=None)

    def ids(self, at: slice) -> Ids:
        """Return the old IDs of some edges."""
        return np.arange(at.start, at.stop) if self.old_ids is None else self.old_ids[at]

    @property
    def size(self) -> int:
        """Return the number of edges."""
        return self.src.size


@dataclass(frozen=True)
class Origin:
    """What the nodes or edges of a type of a view were: of ``ids`` (-1: none) of the old types ``types[kinds]``, by number.

    ``kinds`` None: all were of the first.
    """

    ids: Ids
    types: tuple[int, ...] = (0,)
    kinds: Ids | None = None
    is_node: bool = False


@dataclass(frozen=True)
class Recipe:
    """A store: ``nodes`` by old node type number, and its edge types. ``maps``: old edge ID → new, -1: none, by old number.

    ``merged``: some edges stand for others, and are the only ones from here on; ``maps`` are there where they are asked for.
    ``changed``: edges are others, and what comes next takes the store that is made. ``with_parents``: nodes get a column of the
    typed ID that they had, edges of their old ID. ``store``: what it is made of, where that is another one than the operation
    was given; then ``origins`` say what its nodes (None: as they were) and edges were.
    """

    nodes: tuple[NodeRecipe, ...]
    edges: tuple[EdgeRecipe, ...]
    layouts: tuple[Layout, ...]
    neighbor_order: NeighborOrder | None = None
    index_dtype: str | None = None
    dropped: tuple[tuple[str | EdgeType, str], ...] = ()
    merged: bool = False
    changed: bool = False
    maps: dict[int, Ints] = field(default_factory=dict)
    with_parents: bool = False
    store: StoredArrays | None = None
    origins: tuple[Sequence[Origin] | None, Sequence[Origin]] = (None, ())


def slices(size: int) -> Iterator[slice]:
    """Yield slices of a few hundred thousand rows."""
    for start in range(0, size, STEP):
        yield slice(start, min(start + STEP, size))


def take(values: NDArray[Any], rows: Ids, scratch: Scratch) -> NDArray[Any]:
    """Return ``values[rows]`` as an array of the scratch, a slice at a time."""
    out = scratch.zeros(rows.size, values.dtype)
    for at in slices(rows.size):
        out[at] = values[rows[at]]
    return out


def copied(values: Ids | None, scratch: Scratch) -> Ids | None:
    """Copy numbers to another scratch, which outlives the one that they lie in."""
    if values is None:
        return None
    out: Ids = scratch.zeros(values.size, values.dtype)
    for at in slices(values.size):
        out[at] = values[at]
    return out


def narrow(size: int) -> type[np.signedinteger[Any]]:
    """Return the dtype of numbers below ``size``, and ``NO_ROW``."""
    return np.int32 if size < 2**31 else np.int64


def count_up(size: int, scratch: Scratch) -> Ints:
    """Return 0..size-1 as an array of the scratch."""
    out: Ints = scratch.zeros(size, np.int64)
    for at in slices(size):
        out[at] = np.arange(at.start, at.stop)
    return out


def positions(mask: NDArray[np.bool_], scratch: Scratch, dtype: DTypeLike = np.int64) -> Any:
    """Return where a mask is true, as an array of the scratch."""
    out = scratch.zeros(int(np.count_nonzero(mask)), dtype)
    end = 0
    for at in slices(mask.size):
        found = np.flatnonzero(mask[at])
        out[end : end + found.size] = found + at.start
        end += found.size
    return out


def ranks(kept: Ids, size: int, scratch: Scratch) -> Ints:
    """Return where each of 0..size-1 stands among those that are kept, -1 where it does not: int64[size]."""
    out: Ints = scratch.zeros(size, np.int64)
    for at in slices(size):
        out[at] = NO_ROW
    for at in slices(kept.size):
        out[kept[at]] = np.arange(at.start, at.stop)
    return out


def as_it_is(store: StoredArrays, room: Workspace) -> Recipe:
    """Return the recipe of a store as it is: operations change parts of it. Raises DataError for faulty arrays."""
    metadata = store.metadata
    edges = [read_edges(store, number, room) for number in range(len(metadata.edge_types))]
    return Recipe(tuple(NodeRecipe() for _ in metadata.node_types), tuple(edges), metadata.layouts)


def read_edges(store: StoredArrays, number: int, room: Workspace, *, with_rows: bool = False) -> EdgeRecipe:
    """Read the edges of a type by edge ID; without edge IDs, as rows lie. ``with_rows``: also where there are no columns."""
    metadata, scratch = store.metadata, room.scratch
    num_edges, schema = metadata.num_edges_per_type[number], metadata.edge_schemas[number]
    most = max(metadata.num_nodes_per_type[end] for end in end_types(metadata, number, metadata.primary_layout))
    owners, others = (scratch.zeros(num_edges, narrow(most)) for _ in range(2))
    rows = scratch.zeros(num_edges, narrow(num_edges)) if with_rows or schema.columns or schema.num_slots else None

    def place(span: EdgeSpan) -> None:
        owners[span.ids], others[span.ids] = span.rows, span.others
        if rows is not None:
            rows[span.ids] = span.edge_rows

    with scratch.inner() as inner:
        for _ in map_edges(store, number, room, inner, place, num_edges):
            pass
    src, dst = (others, owners) if metadata.primary_layout == "csc" else (owners, others)
    return EdgeRecipe(metadata.edge_types[number], number, src, dst, rows, None)
