"""Scatter edges and their columns: resolve their ends, find their types, number them; a few batches at a time, on threads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import RoleFlag, match_types
from graphprep.convert.columns.routes import EdgeRoute, batch_columns, excess_slots
from graphprep.convert.decoded.amounts import Amounts
from graphprep.convert.decoded.rows import Batch, BatchCells, Decoded, EndHashes, RawBatchEdges, wide_ids
from graphprep.convert.index.nodes import Indexed
from graphprep.convert.index.resolve import Finders, FindIds, FindQuickly, Found, NodeMap, Resolved
from graphprep.convert.run import Run
from graphprep.convert.shuffle.adopt_edges import adopt_edges
from graphprep.convert.shuffle.aligned_edges import AlignedCursor, aligned_edges
from graphprep.convert.shuffle.edge_faults import MissingEnds, check_edges, find_kept, report_missing, without_dropped_records
from graphprep.convert.shuffle.random_splits import split_edges
from graphprep.convert.shuffle.route import BatchEdges, Routing, TypeKey
from graphprep.edges.buckets import LEAST_SCATTERED, EdgeRows, ScatteredRows, WriteBuffer, scatter_rows
from graphprep.edges.order_keys import missing_order_key, order_role, time_keys, weight_keys
from graphprep.engine.ledger import MemoryPlan, Need
from graphprep.engine.local import map_ordered, num_in_flight
from graphprep.model.rows import Relation
from graphprep.model.schema import NeighborOrder
from graphprep.storage.spill.runs import SpillPool
from graphprep.store.assign import count_parts
from graphprep.store.columns.cells import Cells, empty_cells

Ints = NDArray[np.int64]
Words = NDArray[Any]
Aligned = dict[Relation, list[AlignedCursor]]
# A group is as large as is worth a piece of memory for every bucket, if memory allows: some are on their way at a time.
_MOST_GROUP = 1 << 20
_LEAST_GROUP = 1 << 14
_LEAST_GROUP_BYTES = 4 << 20  # of edges with many columns, fewer are enough
_WORK_BYTES = (
    72  # of an edge while it is scattered, beside what comes in: codes and positions of types, typed IDs, keys, records
)
_END_BYTES = 24  # of an edge as it comes in, at most: ends and relation
_TYPED_WORK_BYTES = 24  # where its type goes without saying, and so does its order


def route_needs(amounts: Amounts, memory: MemoryPlan, spaces: Mapping[str, NodeMap], *, has_roles: bool) -> Iterator[Need]:
    """Declare what scattering nodes and edges takes, whose raw IDs are looked up in ``spaces``."""
    are_same = {None}.issuperset(map(attrgetter("rows"), spaces.values()))
    maps = 0 if are_same else Finders.held_bytes(spaces, memory.cap_bytes)
    yield Need("maps", maps, "from raw to typed IDs; of those that do not fit, blocks")
    group, threads = group_bytes(memory), memory.threads
    num_groups = num_in_flight(threads, threads + 1)
    edges = amounts.num_edges * (_END_BYTES + _WORK_BYTES) + 2 * amounts.column_bytes
    yield Need("groups", min(edges, num_groups * group), f"{num_groups} of edges at a time, of {{}}", (group,))
    yield Need("write buffers", WriteBuffer.cap_of(memory.bucket_bytes), "rows that wait for others of their bucket")
    if amounts.has_aligned:
        yield Need("columns", memory.cap_bytes, "edge columns that are read beside the edges")
    if has_roles:
        yield Need("roles", 2 * memory.cap_bytes, "labels, splits and seeds, while they are numbered or looked up")


def shuffle(run: Run, indexed: Indexed) -> Routing:
    """Scatter all rows to their buckets."""
    plan, decoded, index, memory = indexed.plan, indexed.decoded, indexed.index, run.memory
    flags, roles = (*plan.flags, *_format_flags(decoded)), plan.roles
    if flags and plan.fixed is None:
        roles = match_types(flags, index.type_names)
    routing = Routing(run, indexed, roles)
    amounts = routing.amounts
    needs = route_needs(amounts, memory, index.spaces, has_roles=bool(roles.owners))
    run.ledger.begin("shuffle", (*needs, memory.runs(amounts.most_bytes)), total_records=amounts.num_edges)
    if decoded.num_nodes or decoded.aligned:
        from graphprep.convert.shuffle.route_nodes import route_nodes

        route_nodes(routing)
    route_edges(routing)
    return routing


def _format_flags(decoded: Decoded) -> tuple[RoleFlag, ...]:
    """Say of each edge type that a column is its split or holds categories, where the format says so of all."""
    split, category = decoded.sources.edge_split, decoded.sources.edge_category
    if split is None and category is None:
        return ()
    kinds = dict.fromkeys((str(one.src_type), one.name, str(one.dst_type)) for one in decoded.relations)
    flags = [] if split is None else [RoleFlag("split", "the names of the files", kind, (split,)) for kind in kinds]
    flags += [] if category is None else [RoleFlag("category", "--relation-as column", kind, (category,)) for kind in kinds]
    return tuple(flags)


def route_edges(routing: Routing) -> None:
    """Scatter all edges and their columns, unless the edges are scattered already and have none."""
    decoded = routing.decoded
    if decoded.early is not None and adopt_edges(routing):
        return
    ends = Ends(decoded, routing.index.spaces, routing.pool, routing.memory.cap_bytes)
    scatterer = EdgeScatterer(routing, ends)
    aligned = aligned_edges(decoded, routing.memory.cap_bytes) if decoded.aligned else {}
    threads = routing.memory.threads
    for group in map_ordered(scatterer.scatter, _groups(routing, ends), threads, threads + 1):
        _add_group(routing, group, aligned)
    routing.factory.write_buffer.clear()


def _groups(routing: Routing, ends: Ends) -> Iterator[list[BatchEdges]]:
    """Yield batches, a few at a time: scattering few edges to many buckets costs as much as scattering many."""
    decoded = routing.decoded
    most_bytes = group_bytes(routing.memory)
    cells, hashes = decoded.edge_columns.read(0), None if decoded.hashes is None else decoded.hashes.read(0)
    group: list[BatchEdges] = []
    num_edges = num_bytes = 0
    for batch, edges in decoded.edge_batches(consume=ends.fit_in_memory):
        one = BatchEdges(
            batch,
            edges,
            next(cells) if batch.edge_columns else BatchCells(),
            None if hashes is None else next(hashes),
            without_dropped_records(routing, batch) if routing.dropped_nodes.size else None,
            None if ends.fit_in_memory else ends.resolve_in_order(batch, edges),
        )
        taken = _bytes_of(one)
        beyond = num_edges + batch.num_edges > _MOST_GROUP or num_bytes + taken > most_bytes
        is_enough = num_edges + batch.num_edges > _LEAST_GROUP or num_bytes + taken > _LEAST_GROUP_BYTES
        if group and is_enough and beyond:
            yield group
            group, num_edges, num_bytes = [], 0, 0
        group.append(one)
        num_edges += batch.num_edges
        num_bytes += taken
    if group:
        yield group


def group_bytes(memory: MemoryPlan) -> int:
    """Return the bytes of edges that are scattered at once: all that are under way take half of what there is to work with."""
    return 4 * memory.cap_bytes // (3 * memory.threads + 2)  # cap_bytes is a quarter of it


def _bytes_of(one: BatchEdges) -> int:
    """Return about how many bytes a batch takes while it is scattered."""
    plain = one.batch.relation is not None and one.ends is None and not one.cells.columns
    num_bytes = one.batch.num_edges * (_TYPED_WORK_BYTES if plain else _WORK_BYTES)
    for array in (*one.raw, *one.cells, *(one.hashes or ()), *chain(*(one.ends or ()))):
        num_bytes += 0 if array is None else int(array.nbytes)
    return num_bytes


class Ends:
    """Resolves the ends of all edges, batch after batch.

    ``fit_in_memory``: all maps do, so that batches can be resolved in any order, on any thread, and edges are read but once.
    """

    def __init__(self, decoded: Decoded, spaces: Mapping[str, NodeMap], pool: SpillPool, cap_bytes: int) -> None:
        self._decoded = decoded
        self._pool = pool
        self._names: dict[tuple[int, ...], tuple[str, str]] = {}  # of both ends' ID spaces, by the relations of a batch
        for batch in decoded.batches:
            if batch.num_edges and batch.codes not in self._names:
                (src, _), (dst, _) = decoded.end_spaces(batch.codes)
                self._names[batch.codes] = src, dst
        self._find: dict[str, FindIds | None] = {}
        self._quick: dict[str, FindQuickly | None] = {}
        for name, space in spaces.items():
            if space.rows is None:  # raw IDs are typed IDs: there is nothing to look up
                self._find[name], self._quick[name] = space.find_same, partial(_find_same, space)
        if not self._find.keys() >= set(chain.from_iterable(self._names.values())):
            self._look_up(spaces, cap_bytes)
        self.fit_in_memory = None not in self._find.values()
        self._streams: dict[tuple[int, str], Iterator[Resolved]] = {}

    def _look_up(self, spaces: Mapping[str, NodeMap], cap_bytes: int) -> None:
        """Get ready to look up the ends in spaces whose raw IDs are no typed IDs."""
        self._maps = Finders(spaces, cap_bytes)
        for name in chain.from_iterable(self._names.values()):
            self._find[name] = self._find.get(name) or self._maps.find(name)
        for codes, (src, dst) in self._names.items():
            if len(codes) == 1 and self._find[src] is not None and self._find[dst] is not None:
                for name in (src, dst):
                    self._quick[name] = self._quick[name] if name in self._quick else self._maps.find_quickly(name)

    def find_quickly(self, batch: Batch, edges: RawBatchEdges) -> tuple[Found, Found] | None:
        """Look the ends up where they are of one type each and that is quick; None where it is not, or an end is not there."""
        if batch.relation is None:
            return None
        src_name, dst_name = self._names[batch.codes]
        src, dst = self._quick.get(src_name), self._quick.get(dst_name)
        if src is None or dst is None:
            return None
        found = src(edges.src)
        other = None if found is None else dst(edges.dst)
        return None if found is None or other is None else (found, other)

    def resolve(self, batch: Batch, edges: RawBatchEdges) -> tuple[Resolved, Resolved] | None:
        """Resolve the ends of a batch whose maps fit in memory; None where one does not."""
        src, dst = (self._find[name] for name in self._names[batch.codes])
        return None if src is None or dst is None else (src(wide_ids(edges.src)), dst(wide_ids(edges.dst)))

    def resolve_in_order(self, batch: Batch, edges: RawBatchEdges) -> tuple[Resolved, Resolved] | None:
        """Resolve the ends of a batch where a map does not fit in memory, else None; batches must come in order."""
        if None not in [self._find[name] for name in self._names[batch.codes]]:
            return None
        return self._resolve_side(0, batch, edges.src), self._resolve_side(1, batch, edges.dst)

    def _resolve_side(self, side: int, batch: Batch, ids: NDArray[np.generic]) -> Resolved:
        name = self._names[batch.codes][side]
        find = self._find[name]
        if find is not None:
            return find(wide_ids(ids))
        if (side, name) not in self._streams:
            self._streams[side, name] = self._maps.join(name, self._chunks(side, name), self._pool)
        return next(self._streams[side, name])

    def text_keys(self, batch: Batch, edges: RawBatchEdges) -> EndHashes:
        """Return the ends of a batch's edges where they are keys of texts, which are their hashes."""
        src, dst = (name in self._decoded.texts for name in self._names[batch.codes])
        return EndHashes(wide_ids(edges.src) if src else None, wide_ids(edges.dst) if dst else None)

    def _chunks(self, side: int, name: str) -> Iterator[NDArray[np.uint64]]:
        """Yield the ends in one space: a map that does not fit is joined with all of them at once."""
        for batch, edges in self._decoded.edge_batches():
            if self._names[batch.codes][side] == name:
                yield wide_ids(edges.dst if side else edges.src)


def _find_same(space: NodeMap, ids: NDArray[Any]) -> Found | None:
    """Look up IDs (uint32 or uint64) where raw IDs are typed IDs; None where one is not there."""
    if ids.size and int(ids.max()) >= space.num_nodes:
        return None
    dtype = np.uint32 if space.num_nodes < 2**32 else np.uint64
    return Found(space.type_number, ids.astype(dtype, copy=False))


class TypeShare(NamedTuple):
    """The edges of one canonical type in one batch: their positions in it (None: all), and owners.

    The first is number ``start`` among the edges of its type in the group.
    """

    key: TypeKey
    chosen: Ints | None
    owners: Words
    start: int


class ScatteredBatch(NamedTuple):
    """A batch with the types of its edges."""

    edges: BatchEdges
    shares: tuple[TypeShare, ...]
    missing: MissingEnds | None


@dataclass(eq=False)
class TypeTotal:
    """What a group holds of one canonical type: its edges, scattered unless there are few, and sums over them.

    ``rows`` and ``scattered`` hold them for the primary layout and, where it does not wait for that one, for the second.
    """

    rows: tuple[list[EdgeRows], list[EdgeRows]]
    scattered: list[ScatteredRows | None]
    num_edges: int = 0
    checksum: int = 0
    dst_counts: Ints | int = 0
    src_counts: Ints | int = 0


class ScatteredGroup(NamedTuple):
    """Some batches, scattered."""

    batches: tuple[ScatteredBatch, ...]
    totals: dict[TypeKey, TypeTotal]


@dataclass(frozen=True, eq=False)
class EdgeScatterer:
    """Scatters groups of batches. ``scatter`` depends on nothing but its argument, so that threads can share it."""

    routing: Routing
    ends: Ends

    def scatter(self, inputs: Sequence[BatchEdges]) -> ScatteredGroup:
        """Resolve, sort by type and scatter the edges of some batches."""
        routing = self.routing
        totals: dict[TypeKey, TypeTotal] = {}
        batches = tuple(map(partial(self._scatter_batch, totals=totals), inputs))
        for key, total in totals.items():
            for number, rows in enumerate(total.rows):
                if not rows:
                    continue
                plan = routing.edge_plan(key, second=number == 1)
                # So many edges are worth being scattered without waiting for more.
                is_enough = total.num_edges >= max(LEAST_SCATTERED, 64 * plan.num_buckets)
                if is_enough and len({one.travels for one in rows}) == 1:
                    num_others = routing.num_others(key, second=number == 1)
                    total.scattered[number] = scatter_rows(routing.kernels, rows, plan, num_others)
                    rows.clear()
        return ScatteredGroup(batches, totals)

    def _scatter_batch(self, edges: BatchEdges, totals: dict[TypeKey, TypeTotal]) -> ScatteredBatch:
        routing, batch = self.routing, edges.batch
        if edges.hashes is None and routing.decoded.texts:
            edges = replace(edges, hashes=self.ends.text_keys(batch, edges.raw))
        found = None if edges.ends or edges.keep is not None else self.ends.find_quickly(batch, edges.raw)
        if found is not None:
            src, dst = found
            key = (batch.codes[0], src.type_number, dst.type_number)
            return ScatteredBatch(edges, (self._add(edges, key, None, src.typed, dst.typed, totals),), None)
        edges = replace(edges, ends=edges.ends or self.ends.resolve(batch, edges.raw))
        keep, missing = find_kept(routing, edges)
        shares = []
        for key, chosen in edges.by_type(keep, len(routing.decoded.relations), len(routing.index.type_names)):
            pick = slice(None) if chosen is None else chosen
            src_typed, dst_typed = (edges.end(side).typed[pick].astype(routing.record_dtype) for side in range(2))
            shares.append(self._add(edges, key, chosen, src_typed, dst_typed, totals))
        return ScatteredBatch(edges, tuple(shares), missing)

    def _add(
        self, edges: BatchEdges, key: TypeKey, chosen: Ints | None, src: Words, dst: Words, totals: dict[TypeKey, TypeTotal]
    ) -> TypeShare:
        routing = self.routing
        total = totals.setdefault(key, TypeTotal(([], []), [None, None]))
        owners, others = (dst, src) if routing.primary == "csc" else (src, dst)
        order = routing.options.neighbor_order
        keys = order_keys(edges, order) if order in ("time", "weight") else None
        start = total.num_edges
        total.rows[0].append(EdgeRows(owners, others, start, keys if keys is None or chosen is None else keys[chosen]))
        if routing.scatters_second:
            total.rows[1].append(EdgeRows(others, owners, start))
        total.num_edges += owners.size
        total.checksum = (total.checksum + edges.checksum(chosen)) % 2**64
        offsets = routing.index.part_offsets
        total.src_counts = total.src_counts + count_parts(src, offsets[key[1]])
        total.dst_counts = total.dst_counts + count_parts(dst, offsets[key[2]])
        return TypeShare(key, chosen, owners, start)


def order_keys(edges: BatchEdges, order: NeighborOrder) -> NDArray[np.uint64] | None:
    """Return the keys by which a batch's edges are ordered: uint64[m]; None where they have none."""
    columns: dict[str, tuple[Ints, Cells]] = {}
    for column, rows, cells in batch_columns(edges.batch.edge_columns, edges.cells, edges.batch.num_edges, None):
        if column.key.role is not None:
            columns[column.key.role] = rows, cells
    role = order_role(order, columns)
    if role is None:
        return None
    rows, cells = columns[role]
    keys = np.full(edges.batch.num_edges, missing_order_key(role), np.uint64)
    keys[rows] = weight_keys(cells.flat) if role == "weight" else time_keys(cells.flat)
    return keys


def _add_group(routing: Routing, group: ScatteredGroup, aligned: Aligned) -> None:
    """Number the edges of a group, and scatter their columns; what is wrong with them is told in input order."""
    added: dict[TypeKey, int] = {}
    for scattered in group.batches:
        if scattered.missing is not None:
            report_missing(routing, scattered.edges, scattered.missing)
        for share in scattered.shares:
            route = routing.edge_route(share.key, scattered.edges.batch, share.chosen)
            if share.key not in added:
                added[share.key] = _add_edges(routing, route, group.totals[share.key])
        edges = scattered.edges
        if edges.cells.columns or edges.raw.num_slots is not None or aligned or routing.roles.owners:
            _add_columns(routing, scattered, added, aligned)
        routing.reporter.advance(records=edges.batch.num_edges)


def _add_edges(routing: Routing, route: EdgeRoute, total: TypeTotal) -> int:
    """Add the edges of one type; return the edge ID of the first."""
    first = route.num_edges
    for buckets, scattered, some in zip((route.edges, route.second), total.scattered, total.rows, strict=True):
        if buckets is None:
            continue
        if scattered is not None:
            buckets.add_scattered(scattered, first)
        for rows in some:
            assert isinstance(rows.ids, int)
            buckets.add(rows._replace(ids=first + rows.ids))
    route.num_edges += total.num_edges
    route.checksum = (route.checksum + total.checksum) % 2**64
    csc = routing.primary == "csc"
    route.primary_counts += total.dst_counts if csc else total.src_counts
    route.second_counts += total.src_counts if csc else total.dst_counts
    return first


def _add_columns(routing: Routing, scattered: ScatteredBatch, first_ids: dict[TypeKey, int], aligned: Aligned) -> None:
    """Scatter the columns of a batch's edges, type after type; ``first_ids`` are the group's first edge IDs."""
    edges, num_edges = scattered.edges, scattered.edges.batch.num_edges
    num_slots = edges.raw.num_slots
    columns = batch_columns(edges.batch.edge_columns, edges.cells, num_edges, num_slots)
    excess = None if num_slots is None else excess_slots([(c.key, rows) for c, rows, _ in columns], num_slots, num_edges)
    is_checked = routing.schema is not None or bool(routing.roles.owners)
    for share in scattered.shares:
        route, chosen = routing.routed.edges[share.key], share.chosen
        if excess is not None:
            route.extra_slots = route.extra_slots or bool((excess if chosen is None else excess[chosen]).any())
        first = first_ids[share.key] + share.start
        ids: NDArray[Any] = np.arange(first, first + share.owners.size, dtype=routing.edge_dtype)
        owners: NDArray[Any] = share.owners.astype(routing.row_dtype)
        if routing.roles.owners:
            _split_edges(routing, route, edges, chosen, owners, ids)
        offsets = routing.index.part_offsets[share.key[2] if routing.primary == "csc" else share.key[1]]
        for column, rows, cells in columns:
            picked = pick_cells(rows, chosen, num_edges)
            if picked is None:
                continue
            of_cells, of_edges = picked
            some = cells if of_cells is None else cells.take(of_cells)
            if is_checked:
                check_edges(routing, route, column.key, some, edges.batch, rows if of_cells is None else rows[of_cells])
            routing.edge_column(route, column.key, column.scalar).add(owners[of_edges], ids[of_edges], some, offsets)
        relation = routing.decoded.relations[route.relation]
        for cursor in aligned.get(relation, ()):
            key = cursor.key
            rows, cells = cursor.take(int(ids[0]), int(ids[-1]) + 1) if ids.size else (ids, empty_cells(key))
            at = slice(None) if rows.size == ids.size else rows - int(ids[0])  # rows are among the edge IDs
            if is_checked:
                check_edges(routing, route, key, cells, None, rows)
            target = routing.edge_column(route, key, (relation, key) in routing.decoded.aligned_scalars)
            target.add(owners[at], ids[at], cells, offsets)


def _split_edges(
    routing: Routing, route: EdgeRoute, edges: BatchEdges, chosen: Ints | None, owners: NDArray[Any], ids: NDArray[Any]
) -> None:
    """Scatter the parts of edges of one type, where it has a random split."""
    split = routing.roles.of(routing.edge_type(route)).split
    if split is not None and split.rule is not None:
        hashes = (edges.raw_hashes(0, chosen), edges.raw_hashes(1, chosen))
        split_edges(routing, route, split.rule, hashes, owners, ids)


def pick_cells(rows: Ints, chosen: Ints | None, num_edges: int) -> tuple[Ints | None, Ints | slice] | None:
    """Intersect the rows that have a column with the edges of one type.

    Returns (positions in the column, None for all; positions among the type's edges), or None where nothing is left.
    """
    if chosen is None:
        return None, slice(None) if rows.size == num_edges else rows
    if rows.size == num_edges:
        return chosen, slice(None)
    position = np.full(num_edges, -1, np.int64)
    position[chosen] = np.arange(chosen.size)
    of_edges = position[rows]
    of_cells = np.flatnonzero(of_edges >= 0)
    return (of_cells, of_edges[of_cells]) if of_cells.size else None
