"""Operations on edges: turned round, merged, added, dropped; nodes stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import EdgeRows
from graphprep.edges.build import LayoutBuilder, settle_index_dtype
from graphprep.edges.moves import Workspace
from graphprep.edges.tasks import BuildTask, EdgeRuns, cut_tasks
from graphprep.engine.ledger import EDGE_BYTES
from graphprep.engine.local import map_ordered
from graphprep.model.errors import UsageError
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.rewrite.stored_edges import bucket_bytes, make_buckets
from graphprep.rewrite.transform.merge_columns import merged_columns
from graphprep.rewrite.transform.names import MadeNames
from graphprep.rewrite.transform.recipe import (
    NO_ROW,
    EdgeRecipe,
    Ids,
    Ints,
    MadeColumn,
    Recipe,
    count_up,
    narrow,
    positions,
    slices,
    take,
)
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArrays

Merge = Literal["first", "last", "sum", "max", "count"]
WEIGHTS = ("sum", "max", "keep")  # what becomes of the weights of an edge and its reverse
COUNT = "count"
Made = TypeVar("Made")


def reverse(recipe: Recipe) -> Recipe:
    """Turn every edge round; relations keep their names. Source: DGL's ``reverse``."""
    return replace(recipe, edges=tuple(_turned(edges, edges.edge_type[1]) for edges in recipe.edges), changed=True)


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
        added.append(replace(turned, reverse_of=edges.edge_type))
    return replace(recipe, edges=(*recipe.edges, *added))


def _turned(edges: EdgeRecipe, relation: str) -> EdgeRecipe:
    src, _, dst = edges.edge_type
    return replace(edges, edge_type=(dst, relation, src), src=edges.dst, dst=edges.src)


def symmetrize(
    store: StoredArrays,
    recipe: Recipe,
    room: Workspace,
    weights: str,
    chosen: Collection[int],
    *,
    with_maps: bool,
) -> Recipe:
    """Add the reverse of every edge but loops, behind all edges, and merge those that then have the same ends.

    With ``keep`` that is DGL's ``to_bidirected``: the first of the merged edges stays. ``chosen`` are the numbers of the edge
    types that are changed. Raises UsageError for one whose ends are of two node types.
    """
    both = []
    for edges in recipe.edges:
        src, _, dst = edges.edge_type
        if edges.number not in chosen:
            both.append(edges)
            continue
        if src != dst:
            raise UsageError(
                f"edges of type {edge_type_text(edges.edge_type)!r} lead from one node type to another",
                fix="use graphprep transform with add-reverse, which adds a type of their reverses",
            )
        both.append(_with_reverses(edges, room.scratch))
    merge: Merge = "sum" if weights == "sum" else "max" if weights == "max" else "first"
    simple = to_simple(store, replace(recipe, edges=tuple(both)), room, merge, chosen, with_maps=with_maps)
    known = (replace(one, reverse_of=one.edge_type) if one.number in chosen else one for one in simple.edges)
    return replace(simple, edges=tuple(known))


def _with_reverses(edges: EdgeRecipe, scratch: Scratch) -> EdgeRecipe:
    """Put the reverse of every edge but loops behind all edges."""
    end = edges.size + sum(int(np.count_nonzero(edges.src[at] != edges.dst[at])) for at in slices(edges.size))
    src, dst = (scratch.zeros(end, one.dtype) for one in (edges.src, edges.dst))
    rows = None if edges.rows is None else scratch.zeros(end, edges.rows.dtype)
    old_ids = scratch.zeros(end, narrow(edges.size) if edges.old_ids is None else edges.old_ids.dtype)
    end = edges.size
    for at in slices(edges.size):
        back = np.flatnonzero(edges.src[at] != edges.dst[at])
        behind, end = slice(end, end + back.size), end + back.size
        ids = edges.ids(at)
        src[at], dst[at], old_ids[at] = edges.src[at], edges.dst[at], ids
        src[behind], dst[behind], old_ids[behind] = edges.dst[at][back], edges.src[at][back], ids[back]
        if rows is not None and edges.rows is not None:
            rows[at], rows[behind] = edges.rows[at], edges.rows[at][back]
    return replace(edges, src=src, dst=dst, rows=rows, old_ids=old_ids)


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
        nodes = positions(lacking, scratch)
        none = np.full(nodes.size, NO_ROW)
        src, dst = (_behind(ends, nodes, scratch) for ends in (one.src, one.dst))
        rows = None if one.rows is None else _behind(one.rows, none, scratch)
        old_ids = _behind(count_up(one.size, scratch) if one.old_ids is None else one.old_ids, none, scratch)
        edges.append(replace(one, src=src, dst=dst, rows=rows, old_ids=old_ids))
    return replace(recipe, edges=tuple(edges), changed=True)


def _behind(first: Ids, second: Ids, scratch: Scratch) -> Ids:
    """Put an array behind another one."""
    out = scratch.zeros(first.size + second.size, first.dtype)
    for at in slices(first.size):
        out[at] = first[at]
    out[first.size :] = second
    return out


def keep_edges(edges: EdgeRecipe, wanted: Any, scratch: Scratch) -> EdgeRecipe:
    """Return the edges for which ``wanted(slice)`` is true."""
    mask = scratch.zeros(edges.size, np.bool_)
    for at in slices(edges.size):
        mask[at] = wanted(at)
    if mask.all():
        return edges
    return edges.take(positions(mask, scratch, narrow(edges.size)), scratch)


# ---- edges with the same ends


@dataclass(frozen=True)
class Groups:
    """Edges with the same ends: which are a group's first, the ``first`` of each edge's group; ``last`` and ``sizes`` by that.

    What nobody asked for is empty.
    """

    is_first: NDArray[np.bool_]
    first: Ids
    last: Ids
    sizes: Ids


def to_simple(
    store: StoredArrays,
    recipe: Recipe,
    room: Workspace,
    merge: Merge,
    chosen: Collection[int] | None = None,
    *,
    with_maps: bool,
    names: MadeNames | None = None,
) -> Recipe:
    """Make one edge of those that have the same ends and type, in the place of the first of them.

    Its columns are those of the first (``last``: of the last) of them; ``sum`` and ``max`` are taken of columns that
    ``is_merged`` names, of values that are there; ``count`` adds a column of how many they were, as DGL's ``to_simple`` does.
    The recipe's ``maps``, ``with_maps``, lead from old edge IDs to new ones. ``chosen`` are the numbers of the edge types that
    are changed, None: all.
    """
    edges, maps = [], dict(recipe.maps)
    for one in recipe.edges:
        if chosen is not None and one.number not in chosen:
            edges.append(one)
            continue
        groups = group_edges(store, one, room, merge, with_first=with_maps or merge in ("sum", "max"))
        kept: Ids = positions(groups.is_first, room.scratch, narrow(one.size))
        new_ids = _new_ids(groups.first, kept, room.scratch)
        made = []
        if merge in ("sum", "max") and one.rows is not None:
            made = list(merged_columns(store, one, merge, new_ids, kept.size, room))
        if merge == "count":
            made = [_counted(store, recipe, one, kept, groups, names or MadeNames(), room.scratch)]
        simple = one.take(take(groups.last, kept, room.scratch) if merge == "last" else kept, room.scratch)
        edges.append(replace(simple, made=(*simple.made, *made)))
        if with_maps:
            maps[one.number] = _by_old_id(store, one, new_ids, room.scratch)
    return replace(recipe, edges=tuple(edges), maps=maps, merged=True)


def _new_ids(first: Ids, kept: Ids, scratch: Scratch) -> Ids:
    """Return the new ID of each edge, that of the first of its group."""
    out = scratch.zeros(first.size, narrow(first.size))
    if first.size:
        for at in slices(kept.size):
            out[kept[at]] = np.arange(at.start, at.stop)
    for at in slices(first.size):
        out[at] = out[first[at]]
    return out


def _by_old_id(store: StoredArrays, edges: EdgeRecipe, new_ids: Ids, scratch: Scratch) -> Ints:
    """Return the new ID of each old edge, -1 where it is gone; of one that stands there twice, the first."""
    out: Ints = scratch.zeros(store.metadata.num_edges_per_type[edges.number], np.int64)
    for at in slices(out.size):
        out[at] = NO_ROW
    for at in reversed(list(slices(edges.size))):
        old, new = edges.ids(at)[::-1], new_ids[at][::-1]
        out[old[old >= 0]] = new[old >= 0]
    return out


def group_edges(store: StoredArrays, edges: EdgeRecipe, room: Workspace, merge: Merge, *, with_first: bool) -> Groups:
    """Find the edges that have the same ends: sorted by these, out of core."""
    scratch, dtype = room.scratch, narrow(edges.size)

    def ids(wanted: bool) -> Ids:
        return scratch.zeros(edges.size if wanted else 0, dtype)

    is_first = scratch.zeros(edges.size, np.bool_)
    groups = Groups(is_first, ids(with_first), ids(merge == "last"), ids(merge == "count"))
    last: tuple[int, int, int] | None = None
    for rows, others, found, heads in sorted_edges(store, edges, room, _heads):
        if not found.size:
            continue
        firsts = found[heads]
        if last is not None and (rows[0], others[0]) == last[:2]:  # a long row was cut between equal edges
            firsts[0] = last[2]
        groups.is_first[firsts] = True
        sizes = np.diff(np.append(heads, found.size))
        if groups.first.size:
            groups.first[found] = np.repeat(firsts, sizes)
        if groups.last.size:
            groups.last[firsts] = found[heads + sizes - 1]
        if groups.sizes.size:
            groups.sizes[firsts] += sizes.astype(dtype)
        last = int(rows[-1]), int(others[-1]), int(firsts[-1])
    return groups


def _heads(rows: Ints, others: Ids, ids: Ids) -> tuple[Ints, Ids, Ids, Ints]:
    """Return also where other ends begin."""
    starts = np.ones(ids.size, np.bool_)
    np.not_equal(rows[1:], rows[:-1], out=starts[1:])
    starts[1:] |= others[1:] != others[:-1]
    return rows, others, ids, np.flatnonzero(starts)


def sorted_edges(
    store: StoredArrays, edges: EdgeRecipe, room: Workspace, make: Callable[[Ints, Ids, Ids], Made]
) -> Iterator[Made]:
    """Yield what is made, on the threads, of (sources, destinations, positions) of edges, ascending by these."""
    sizes = store.metadata.num_nodes_by_type()
    num_src, num_dst = sizes[edges.edge_type[0]], sizes[edges.edge_type[2]]
    buckets = make_buckets(room, num_src, edges.size, num_dst)
    for at in slices(edges.size):
        buckets.add(EdgeRows(edges.src[at].astype(buckets.dtype), edges.dst[at].astype(buckets.dtype), at.start))
    buckets.flush()
    runs = EdgeRuns(buckets, "id", None)
    builder = LayoutBuilder(runs, settle_index_dtype("auto", num_dst), settle_index_dtype("auto", edges.size))

    def build(task: BuildTask) -> Made:
        piece = builder.build(task, positions=False)
        assert piece.edge_ids is not None
        return make(piece.rows(), piece.others, piece.edge_ids)

    tasks = cut_tasks(runs, max(1, bucket_bytes(room) // EDGE_BYTES))
    try:
        yield from map_ordered(build, tasks, room.threads)
    finally:
        runs.buckets.runs.close()


def _counted(
    store: StoredArrays, recipe: Recipe, edges: EdgeRecipe, kept: Ids, groups: Groups, names: MadeNames, scratch: Scratch
) -> MadeColumn:
    """Return the column that says of how many edges each one is made."""
    edge_type = store.metadata.edge_types[edges.number]
    columns = store.metadata.edge_schemas[edges.number].columns
    there = [column for column in columns if (edge_type, column.name) not in recipe.dropped]
    counts = scratch.zeros(kept.size, np.int64)
    for at in slices(kept.size):
        counts[at] = groups.sizes[kept[at]]
    return MadeColumn(ColumnSchema(names.of(COUNT, edge_type_text(edges.edge_type), there), "dense", "int64"), counts)
