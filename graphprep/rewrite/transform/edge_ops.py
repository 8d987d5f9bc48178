"""Operations on edges: turned round, merged, added, dropped; nodes stay as they are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import EdgeRows
from graphprep.edges.build import LayoutBuilder, settle_index_dtype
from graphprep.edges.moves import Workspace
from graphprep.edges.tasks import EdgeRuns, cut_tasks
from graphprep.engine.ledger import EDGE_BYTES
from graphprep.engine.local import map_ordered
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import ColumnSchema, EdgeType, edge_type_text
from graphprep.rewrite.stored_edges import bucket_bytes, make_buckets
from graphprep.rewrite.transform.recipe import NO_ROW, EdgeRecipe, Ids, Ints, MadeColumn, Recipe, positions, slices, take
from graphprep.rewrite.transform.write import column_values
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays
from graphprep.store.paths import edge_folder
from graphprep.store.single import WholeStore

Merge = Literal["first", "last", "sum", "max", "count"]
COUNT = "count"


def reverse(recipe: Recipe) -> Recipe:
    """Turn every edge round; relations keep their names. Source: DGL's ``reverse``."""
    return replace(recipe, edges=tuple(_turned(edges, edges.edge_type[1]) for edges in recipe.edges))


def add_reverse(recipe: Recipe) -> Recipe:
    """Add an edge type ``rev_<rel>`` of every edge turned round, columns included. Source: DGL's and PyG's transforms."""
    have = {edges.edge_type for edges in recipe.edges}
    added = []
    for edges in recipe.edges:
        turned = _turned(edges, f"rev_{edges.edge_type[1]}")
        if turned.edge_type in have:
            raise UsageError(
                f"there is an edge type {edge_type_text(turned.edge_type)!r} already",
                place="add-reverse",
                fix="leave the operation out, or drop that type",
            )
        added.append(turned)
    return replace(recipe, edges=(*recipe.edges, *added))


def _turned(edges: EdgeRecipe, relation: str) -> EdgeRecipe:
    src, _, dst = edges.edge_type
    return replace(edges, edge_type=(dst, relation, src), src=edges.dst, dst=edges.src)


def symmetrize(store: StoredArrays, recipe: Recipe, room: Workspace, weights: Literal["sum", "max", "keep"]) -> Recipe:
    """Add the reverse of every edge but loops, behind all edges, and merge those that then have the same ends.

    With ``keep`` that is DGL's ``to_bidirected``: the first of the merged edges stays. Raises UsageError for edge types whose
    ends are of two node types.
    """
    both = []
    for edges in recipe.edges:
        src, _, dst = edges.edge_type
        if src != dst:
            raise UsageError(
                f"edges of type {edge_type_text(edges.edge_type)!r} lead from one node type to another",
                place="symmetrize",
                fix="use graphprep transform with add-reverse, which adds a type of their reverses",
            )
        mask = room.scratch.zeros(edges.size, np.bool_)
        for at in slices(edges.size):
            mask[at] = edges.src[at] != edges.dst[at]
        back = edges.take(positions(mask, room.scratch), room.scratch)
        both.append(join(edges, replace(back, src=back.dst, dst=back.src), room.scratch))
    return to_simple(store, replace(recipe, edges=tuple(both)), room, "first" if weights == "keep" else weights)


def join(first: EdgeRecipe, second: EdgeRecipe, scratch: Scratch) -> EdgeRecipe:
    """Put edges of one type behind others."""

    def concat(one: NDArray[Any], other: NDArray[Any]) -> NDArray[Any]:
        out = scratch.zeros(one.size + other.size, one.dtype)
        for start, array in ((0, one), (one.size, other)):
            for at in slices(array.size):
                out[start + at.start : start + at.stop] = array[at]
        return out

    names = ("src", "dst", "rows", "old_ids")
    src, dst, rows, old_ids = (concat(getattr(first, name), getattr(second, name)) for name in names)
    return replace(first, src=src, dst=dst, rows=rows, old_ids=old_ids)


def drop_loops(recipe: Recipe, scratch: Scratch) -> Recipe:
    """Drop edges from a node to itself."""

    def without(edges: EdgeRecipe) -> EdgeRecipe:
        if edges.edge_type[0] != edges.edge_type[2]:
            return edges
        return keep_edges(edges, lambda at: edges.src[at] != edges.dst[at], scratch)

    return replace(recipe, edges=tuple(map(without, recipe.edges)))


def add_loops(store: StoredArrays, recipe: Recipe, scratch: Scratch) -> Recipe:
    """Add a loop to every node that has none, behind all edges; its weight is 1, other columns are missing."""
    edges = []
    for one in recipe.edges:
        if one.edge_type[0] != one.edge_type[2]:
            edges.append(one)
            continue
        lacking = scratch.zeros(store.metadata.num_nodes_per_type[store.metadata.node_types.index(one.edge_type[0])], np.bool_)
        lacking[:] = True
        for at in slices(one.size):
            lacking[one.src[at][one.src[at] == one.dst[at]]] = False
        nodes = positions(lacking, scratch).astype(one.src.dtype)
        none = np.full(nodes.size, NO_ROW)
        edges.append(join(one, replace(one, src=nodes, dst=nodes, rows=none, old_ids=none), scratch))
    return replace(recipe, edges=tuple(edges))


def keep_edges(edges: EdgeRecipe, wanted: Any, scratch: Scratch) -> EdgeRecipe:
    """Return the edges for which ``wanted(slice)`` is true."""
    mask = scratch.zeros(edges.size, np.bool_)
    for at in slices(edges.size):
        mask[at] = wanted(at)
    if mask.all():
        return edges
    return edges.take(positions(mask, scratch), scratch)


# ---- edges with the same ends


@dataclass(frozen=True)
class Groups:
    """Edges with the same ends: ``first`` (int64[m]) is the first of each edge's group, ``last`` and ``sizes`` are by that."""

    first: Ints
    last: Ints
    sizes: Ints


def to_simple(store: StoredArrays, recipe: Recipe, room: Workspace, merge: Merge) -> Recipe:
    """Make one edge of those that have the same ends and type, in the place of the first of them.

    Its columns are those of the first (``last``: of the last) of them; ``sum`` and ``max`` are taken of dense columns of
    numbers, of those that are there; ``count`` adds a column of how many they were, as DGL's ``to_simple`` does. The recipe's
    ``maps`` lead from old edge IDs to new ones.
    """
    edges, maps = [], dict(recipe.maps)
    for one in recipe.edges:
        groups = group_edges(store, one, room)
        mask = room.scratch.zeros(one.size, np.bool_)
        for at in slices(one.size):
            mask[at] = groups.first[at] == np.arange(at.start, at.stop)
        kept = positions(mask, room.scratch)
        new_ids = room.scratch.zeros(one.size, np.int64)
        new_ids[kept] = np.arange(kept.size)
        for at in slices(one.size):
            new_ids[at] = new_ids[groups.first[at]]
        made = _merged(store, one, merge, new_ids, kept, groups, room)
        simple = one.take(kept, room.scratch)
        if merge == "last":
            simple = replace(simple, rows=take(one.rows, take(groups.last, kept, room.scratch), room.scratch))
        edges.append(replace(simple, made=(*simple.made, *made)))
        maps[one.number] = _by_old_id(store, one, new_ids, room.scratch)
    return replace(recipe, edges=tuple(edges), maps=maps)


def _by_old_id(store: StoredArrays, edges: EdgeRecipe, new_ids: Ints, scratch: Scratch) -> Ints:
    """Return the new ID of each old edge, -1 where it is gone; of one that stands there twice, the first."""
    out: Ints = scratch.zeros(store.metadata.num_edges_per_type[edges.number], np.int64)
    for at in slices(out.size):
        out[at] = NO_ROW
    for at in reversed(list(slices(edges.size))):
        old, new = edges.old_ids[at][::-1], new_ids[at][::-1]
        out[old[old >= 0]] = new[old >= 0]
    return out


def group_edges(store: StoredArrays, edges: EdgeRecipe, room: Workspace) -> Groups:
    """Find the edges that have the same ends: sorted by these, out of core."""
    scratch = room.scratch
    groups = Groups(*(scratch.zeros(edges.size, np.int64) for _ in range(3)))
    last: tuple[int, int, int] | None = None
    for rows, others, ids in sorted_edges(store, edges, room):
        if not ids.size:
            continue
        starts = np.ones(ids.size, np.bool_)
        starts[1:] = (np.diff(rows) != 0) | (np.diff(others) != 0)
        heads = np.flatnonzero(starts)
        firsts = ids[heads].copy()
        if last is not None and (rows[0], others[0]) == last[:2]:  # a long row was cut between equal edges
            firsts[0] = last[2]
        sizes = np.diff(np.append(heads, ids.size))
        groups.first[ids] = np.repeat(firsts, sizes)
        groups.last[firsts] = ids[heads + sizes - 1]
        groups.sizes[firsts] += sizes
        last = int(rows[-1]), int(others[-1]), int(firsts[-1])
    return groups


def sorted_edges(store: StoredArrays, edges: EdgeRecipe, room: Workspace) -> Iterator[tuple[Ints, Ids, Ints]]:
    """Yield (sources, destinations, positions) of edges, ascending by these."""
    sizes = dict(zip(store.metadata.node_types, store.metadata.num_nodes_per_type, strict=True))
    num_src, num_dst = sizes[edges.edge_type[0]], sizes[edges.edge_type[2]]
    buckets = make_buckets(room, num_src, edges.size, num_dst)
    for at in slices(edges.size):
        buckets.add(EdgeRows(edges.src[at].astype(buckets.dtype), edges.dst[at].astype(buckets.dtype), at.start))
    buckets.flush()
    runs = EdgeRuns(buckets, "id", None)
    builder = LayoutBuilder(runs, settle_index_dtype("auto", num_dst), settle_index_dtype("auto", edges.size))
    tasks = cut_tasks(runs, max(1, bucket_bytes(room) // EDGE_BYTES))
    try:
        for piece in map_ordered(lambda task: builder.build(task, positions=False), tasks, room.threads):
            assert piece.edge_ids is not None
            yield piece.rows(), piece.others, piece.edge_ids.astype(np.int64)
    finally:
        runs.buckets.runs.close()


def _merged(
    store: StoredArrays, edges: EdgeRecipe, merge: Merge, new_ids: Ints, kept: Ints, groups: Groups, room: Workspace
) -> Iterator[MadeColumn]:
    if merge == "count":
        yield MadeColumn(ColumnSchema(COUNT, "dense", "int64"), take(groups.sizes, kept, room.scratch))
    if merge not in ("sum", "max"):
        return
    whole, edge_type = WholeStore(store), store.metadata.edge_types[edges.number]
    for column in store.metadata.edge_schemas[edges.number].columns:
        if column.kind == "dense" and column.role in (None, "weight") and column.dtype != "bool" and not column.categories:
            with room.scratch.inner() as inner:
                held = column_values(whole, edge_folder(edge_type), column, inner)
                most = int(groups.sizes.max(initial=0))
                made = _merge_column(column, edges.rows, new_ids, kept.size, merge, held, most, room.scratch)
            yield replace(made, schema=_widened(made, edge_type))


def _merge_column(
    column: ColumnSchema,
    rows: Ints,
    new_ids: Ints,
    size: int,
    merge: Merge,
    held: tuple[NDArray[Any], NDArray[np.bool_] | None],
    most: int,
    scratch: Scratch,
) -> MadeColumn:
    """Add up, or take the highest of, the values of each new edge's old ones, ``most`` at most: with 64 bits."""
    values, present = held
    wide = {"f": np.float64, "u": np.uint64}.get(values.dtype.kind, np.int64)
    out = scratch.zeros(size * int(np.prod(column.item_shape, dtype=np.int64)), wide).reshape(size, *column.item_shape)
    seen = scratch.zeros(size, np.bool_)
    if merge == "sum" and wide != np.float64 and values.size:
        _check_sums(column, int(values.min()) * most, int(values.max()) * most, wide)
    for at in slices(new_ids.size):
        own, target = rows[at], new_ids[at]
        if present is not None:
            own, target = own[present[own]], target[present[own]]
        some = values[own].astype(wide)
        if merge == "sum":
            np.add.at(out, target, some)
        else:
            fresh = np.flatnonzero(~seen[target])
            fresh = fresh[np.unique(target[fresh], return_index=True)[1]]
            out[target[fresh]] = some[fresh]
            np.maximum.at(out, target, some)
        seen[target] = True
    return MadeColumn(column, out, seen if column.optional else None)


def _check_sums(column: ColumnSchema, low: int, high: int, dtype: Any) -> None:
    """Refuse sums of which one might be more than 64 bits hold."""
    if low < np.iinfo(dtype).min or high > np.iinfo(dtype).max:
        raise DataError(
            f"a sum of column {column.name!r} may be {high if high > np.iinfo(dtype).max else low}, more than 64 bits hold",
            fix="use first, last or max, or drop the column first, with drop-columns",
        )


def _widened(made: MadeColumn, edge_type: EdgeType) -> ColumnSchema:
    """Return the column's schema; raise DataError where a sum of integers is more than its dtype holds."""
    dtype = np.dtype(made.schema.dtype)
    if dtype.kind in "iu" and made.values.size:
        low, high = int(made.values.min()), int(made.values.max())
        if low < np.iinfo(dtype).min or high > np.iinfo(dtype).max:
            found = high if high > np.iinfo(dtype).max else low
            raise DataError(
                f"a sum of column {made.schema.name!r} is {found}, which {dtype} cannot hold",
                place=edge_type_text(edge_type),
                fix="use first, last or max, or convert the column with a wider dtype",
            )
    return made.schema
