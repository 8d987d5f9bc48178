"""Stream all rows once more, in input order: resolve their ends, find their types, and deal them out to buckets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.group import group_by_key
from graphprep.kernels.cpu.hash import edge_checksum
from graphprep.model.errors import BadRecord, DataError
from graphprep.model.graph_schema import GraphSchema, OwnerSchema
from graphprep.model.protocols import DeclaredColumn, Reporter
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import EdgeType, NeighborOrder, edge_type_text
from graphprep.stages.assign import count_parts
from graphprep.stages.cells import Arrays, Cells, cells_from, empty_cells, scalar_cells
from graphprep.stages.decode import Batch, BatchColumn, Decoded
from graphprep.stages.locate import Locator
from graphprep.stages.nodes import NodeIndex
from graphprep.stages.observe import CREATED_KEY, NUM_SLOTS
from graphprep.stages.resolve import NodeMap, Resolved
from graphprep.stages.schema_guard import find_misfit, key_of
from graphprep.stages.shuffle import (
    BucketPlan,
    ColumnRoute,
    EdgeRoute,
    FlatRows,
    NodeRoute,
    RouteFactory,
    batch_columns,
    highest_slots,
    missing_order_key,
    order_role,
    plan_buckets,
    time_keys,
    weight_keys,
)
from graphprep.storage.runs import Runs, SpillPool

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]
_MOST_TYPE_CODES = 1 << 12  # with more canonical edge types than this, only those that occur in a batch are counted
_EDGE_BYTES = 64  # what building a bucket holds for each of its edges: rows, ends, IDs, keys, their sorted copies


@dataclass(frozen=True)
class RouteRules:
    """How rows are dealt out."""

    primary: Literal["csc", "csr"]
    neighbor_order: NeighborOrder
    weight_dtype: str
    on_missing: Literal["error", "create", "drop"]
    skip: bool
    max_errors: int | None
    bucket_bytes: int
    cap_bytes: int
    num_parts: int
    schema: GraphSchema | None = None


@dataclass
class Routed:
    """All rows in their buckets. ``edges`` goes by (relation, source type, destination type) in the order of discovery."""

    nodes: list[NodeRoute] = field(default_factory=list)
    edges: dict[tuple[int, int, int], EdgeRoute] = field(default_factory=dict)
    num_dropped_edges: int = 0
    bad_records: list[BadRecord] = field(default_factory=list)


class Router:
    """Deals out the rows of a decoded input."""

    def __init__(
        self, decoded: Decoded, index: NodeIndex, rules: RouteRules, pool: SpillPool, locator: Locator, reporter: Reporter
    ) -> None:
        self.decoded = decoded
        self.index = index
        self.rules = rules
        self.pool = pool
        self.locator = locator
        self.reporter = reporter
        self.routed = Routed(nodes=[NodeRoute(count) for count in index.num_nodes])
        self.factory = RouteFactory(pool, rules.bucket_bytes, decoded.column_bytes, rules.num_parts)
        self.node_dtype = np.int32 if max(index.num_nodes, default=0) < 2**31 else np.int64
        self.edge_dtype = np.int32 if decoded.num_edges < 2**31 else np.int64
        self.dropped_nodes = index.duplicates

    # Nodes

    def route_nodes(self) -> None:
        """Deal out the columns of all nodes."""
        if self.decoded.sources.nodes == "records":
            self._check_duplicates()
            self._route_node_records()
        for (owner, key), runs in self.decoded.aligned.items():
            if isinstance(owner, str):
                self._route_aligned_nodes(self.index.type_names.index(owner), key, runs)

    def _check_duplicates(self) -> None:
        """Raise for the first node that is declared twice; with ``skip``, list them all."""
        for record in self.dropped_nodes.tolist() if self.rules.skip else self.dropped_nodes[:1].tolist():
            raw, first = self._first_declaration(record)
            error = DataError(
                f"node {raw} is declared twice, first at {self.locator.node_place(first)}",
                place=self.locator.node_place(record),
                fix="keep one record for each node, or use --on-error skip to keep the first",
            )
            if not self.rules.skip:
                raise error
            self._reject(error)

    def _reject(self, error: DataError) -> None:
        bad = self.routed.bad_records
        bad.append(BadRecord(error.place, error.message))
        limit = self.rules.max_errors
        if limit is not None and len(bad) + len(self.decoded.bad_records) > limit:
            raise DataError(
                f"more than {limit} bad records; this one is one too many: {error.message}",
                place=error.place,
                fix="repair the input, or raise --max-errors",
            )

    def _first_declaration(self, record: int) -> tuple[int, int]:
        batch = self.locator.batch_of_node(record)
        for number, (ids, *_) in enumerate(self.decoded.nodes.read(0)):
            if self.decoded.batches[number] is batch:
                raw = int(ids[record - batch.first_node])
                break
        for other, (ids, *_) in zip(self.decoded.batches, self.decoded.nodes.read(0), strict=True):
            at = np.flatnonzero(ids == np.uint64(raw))
            if at.size:
                return raw, other.first_node + int(at[0])
        raise AssertionError("a repeated ID must stand somewhere")

    def _route_node_records(self) -> None:
        decoded = self.decoded
        ids = (chunk[0] for chunk in decoded.nodes.read(0))
        places = self.index.space(None).resolve(ids, self.pool, self.rules.cap_bytes)
        parts = zip(decoded.batches, decoded.nodes.read(0), decoded.node_columns.read(0), places, strict=True)
        for batch, (_, codes, num_slots), arrays, place in parts:
            if not batch.num_nodes:
                continue
            numbers = self.index.numbers_of_codes[codes]
            keep = self._kept_nodes(batch)
            columns = list(batch_columns(batch.node_columns, arrays, batch.num_nodes))
            if num_slots is not None:
                columns.append(_slots_column(num_slots))
            excess = _excess_slots([(c.key, rows) for c, rows, _ in columns], num_slots, batch.num_nodes)
            for number in np.flatnonzero(np.bincount(numbers)).tolist():
                route = self.routed.nodes[number]
                route.extra_slots = route.extra_slots or bool((excess & (numbers == number)).any())
            for column, rows, cells in columns:
                for number, chosen in _by_type(numbers, rows, keep):
                    offsets = self.index.part_offsets[number]
                    target = self._node_column(number, column.key, column.scalar)
                    some = cells if chosen is None else cells.take(chosen)
                    own = rows if chosen is None else rows[chosen]
                    self._check_nodes(number, column.key, some, batch, own)
                    target.add(place.typed[own], None, some, offsets)

    def _check_nodes(self, number: int, key: ColumnKey, cells: Cells, batch: Batch | None, rows: Ints) -> None:
        """Raise for the first node whose value does not fit the schema."""
        if self.rules.schema is None:
            return
        name = self.index.type_names[number]
        misfit = find_misfit(self.rules.schema.nodes.get(name, OwnerSchema(())), f"node type {name!r}", key, cells)
        if misfit is not None:
            place = "" if batch is None else self.locator.node_place(batch.first_node + int(rows[misfit.row]))
            raise DataError(misfit.message, place=place, fix=misfit.fix)

    def _check_edges(self, route: EdgeRoute, key: ColumnKey, cells: Cells, batch: Batch | None, rows: Ints) -> None:
        """Raise for the first edge whose value does not fit the schema."""
        if self.rules.schema is None:
            return
        edge_type = self.edge_type(route)
        owner = self.rules.schema.edges.get(edge_type, OwnerSchema(()))
        misfit = find_misfit(owner, f"edge type {edge_type_text(edge_type)!r}", key, cells)
        if misfit is not None:
            place = "" if batch is None else self.locator.edge_place(batch.first_edge + int(rows[misfit.row]), "src")
            raise DataError(misfit.message, place=place, fix=misfit.fix)

    def edge_type(self, route: EdgeRoute) -> EdgeType:
        """Return the names of a route's canonical edge type."""
        names = self.index.type_names
        return names[route.src_type], self.decoded.relations[route.relation].name, names[route.dst_type]

    def _kept_nodes(self, batch: Batch) -> NDArray[np.bool_] | None:
        """Return which nodes of a batch are kept; None: all."""
        low, high = np.searchsorted(self.dropped_nodes, [batch.first_node, batch.first_node + batch.num_nodes])
        if low == high:
            return None
        keep = np.ones(batch.num_nodes, bool)
        keep[self.dropped_nodes[low:high] - batch.first_node] = False
        return keep

    def _node_column(self, number: int, key: ColumnKey, scalar: bool = False) -> ColumnRoute:
        route = self.routed.nodes[number]
        column = self.factory.column(route.columns, key, route.num_rows)
        column.stats.scalar = column.stats.scalar or scalar
        return column

    def _route_aligned_nodes(self, number: int, key: ColumnKey, runs: Runs) -> None:
        rows = (chunk[0].astype(np.uint64) for chunk in runs.read(0))
        space = self.index.space(number)
        for place, (_, *parts) in zip(space.resolve(rows, self.pool, self.rules.cap_bytes), runs.read(0), strict=True):
            cells = cells_from(parts)
            self._check_nodes(number, key, cells, None, place.typed)
            target = self._node_column(number, key, (self.index.type_names[number], key) in self.decoded.aligned_scalars)
            target.add(place.typed, None, cells, self.index.part_offsets[number])

    # Edges

    def route_edges(self) -> None:
        """Deal out all edges and their columns."""
        decoded = self.decoded
        ends = _Ends(decoded, self.index, self.pool, self.rules.cap_bytes)
        aligned = _AlignedEdges(decoded)
        for batch, chunk, arrays in zip(decoded.batches, decoded.edges.read(0), decoded.edge_columns.read(0), strict=True):
            if not batch.num_edges:
                continue
            edges = _BatchEdges(batch, chunk, arrays, ends.resolve(0, batch, chunk[0]), ends.resolve(1, batch, chunk[1]))
            self._route_batch(edges, aligned)
            self.reporter.advance(records=batch.num_edges)

    def _route_batch(self, edges: _BatchEdges, aligned: _AlignedEdges) -> None:
        keep = self._kept_edges(edges)
        keys = _order_keys(edges, self.rules.neighbor_order)
        columns = list(edges.columns())
        excess = _excess_slots([(c.key, rows) for c, rows, _ in columns], edges.num_slots, edges.num_edges)
        order_keys = None if keys is None else keys.full(edges.num_edges)
        for key, chosen in edges.by_type(keep, len(self.decoded.relations), len(self.index.type_names)):
            route = self._edge_route(key, edges.batch, chosen)
            route.extra_slots = route.extra_slots or bool((excess if chosen is None else excess[chosen]).any())
            owners, ids = self._add_edges(route, edges, chosen, order_keys)
            offsets = self._owner_offsets(route)
            for column, rows, cells in columns:
                picked = _pick(rows, chosen, edges.num_edges)
                if picked is None:
                    continue
                of_cells, of_edges = picked
                some = cells if of_cells is None else cells.take(of_cells)
                self._check_edges(route, column.key, some, edges.batch, rows if of_cells is None else rows[of_cells])
                self._edge_column(route, column.key, column.scalar).add(owners[of_edges], ids[of_edges], some, offsets)
            self._route_aligned_edges(route, aligned, ids, owners)

    def _owner_offsets(self, route: EdgeRoute) -> Ints:
        return self.index.part_offsets[route.dst_type if self.rules.primary == "csc" else route.src_type]

    def _add_edges(
        self, route: EdgeRoute, edges: _BatchEdges, chosen: Ints | None, keys: NDArray[np.uint64] | None
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Add edges of one type; return their owners and edge IDs, in the narrow dtypes in which they travel."""
        pick = slice(None) if chosen is None else chosen
        src, dst = edges.src.typed[pick], edges.dst.typed[pick]
        csc = self.rules.primary == "csc"
        owner, other = (dst, src) if csc else (src, dst)
        ids = np.arange(route.num_edges, route.num_edges + src.size, dtype=self.edge_dtype)
        route.num_edges += src.size
        route.checksum = (route.checksum + edge_checksum(edges.raw_src[pick], edges.raw_dst[pick])) % 2**64
        offsets = self.index.part_offsets
        for ends, number, counts in (
            (dst, route.dst_type, route.primary_counts if csc else route.second_counts),
            (src, route.src_type, route.second_counts if csc else route.primary_counts),
        ):
            np.add(counts, count_parts(ends, offsets[number]), out=counts)
        rows = owner.astype(self.node_dtype)
        route.dealer.add(FlatRows((rows, other.astype(self.node_dtype), ids, None if keys is None else keys[pick])))
        return rows, ids

    def _edge_route(self, key: tuple[int, int, int], batch: Batch | None = None, chosen: Ints | None = None) -> EdgeRoute:
        """Return the route of a canonical edge type, made for its first edges: ``chosen`` of ``batch``."""
        route = self.routed.edges.get(key)
        if route is None:
            owner = key[2] if self.rules.primary == "csc" else key[1]
            route = EdgeRoute(*key, self.factory.dealer(self._edge_plan(owner)), self.rules.num_parts)
            self._check_edge_type(route, batch, chosen)
            self.routed.edges[key] = route
        return route

    def _check_edge_type(self, route: EdgeRoute, batch: Batch | None, chosen: Ints | None) -> None:
        schema = self.rules.schema
        edge_type = self.edge_type(route)
        if schema is None or edge_type in schema.edges:
            return
        first = 0 if chosen is None else int(chosen[0])
        raise DataError(
            f"edge type {edge_type_text(edge_type)!r} is not in the schema",
            place="" if batch is None else self.locator.edge_place(batch.first_edge + first, "src"),
            fix="correct the edge, or add the type to the schema",
        )

    def _edge_plan(self, owner_type: int) -> BucketPlan:
        widest = max(self.decoded.column_bytes.values(), default=0)
        need = max(self.decoded.num_edges * _EDGE_BYTES, 3 * widest)
        return plan_buckets(self.index.num_nodes[owner_type], need, self.rules.bucket_bytes)

    def _edge_column(self, route: EdgeRoute, key: ColumnKey, scalar: bool = False) -> ColumnRoute:
        column = self.factory.column(route.columns, key, route.plan.num_rows, route.plan)
        column.stats.scalar = column.stats.scalar or scalar
        return column

    def _route_aligned_edges(self, route: EdgeRoute, aligned: _AlignedEdges, ids: Ints, owners: Ints) -> None:
        relation = self.decoded.relations[route.relation]
        for key, cursor in aligned.of(relation):
            rows, cells = cursor.take(int(ids[0]), int(ids[-1]) + 1) if ids.size else (ids, empty_cells(key))
            at = rows - (int(ids[0]) if ids.size else 0)
            self._check_edges(route, key, cells, None, rows)
            target = self._edge_column(route, key, (relation, key) in self.decoded.aligned_scalars)
            target.add(owners[at], ids[at], cells, self._owner_offsets(route))

    # Missing ends

    def _kept_edges(self, edges: _BatchEdges) -> NDArray[np.bool_] | None:
        """Return which edges of a batch are kept; None: all. Raises for a missing end where that is an error."""
        keep = self._without_dropped_records(edges)
        found = (edges.src.typed >= 0) & (edges.dst.typed >= 0)
        if found.all():
            return keep
        missing = ~found if keep is None else ~found & keep
        if self.rules.on_missing == "drop":
            self.routed.num_dropped_edges += int(missing.sum())
        else:
            self._missing_ends(edges, missing)
        return found if keep is None else found & keep

    def _missing_ends(self, edges: _BatchEdges, missing: NDArray[np.bool_]) -> None:
        located = None
        for at in np.flatnonzero(missing).tolist():
            end = "src" if edges.src.typed[at] < 0 else "dst"
            raw = int((edges.raw_src if end == "src" else edges.raw_dst)[at])
            located = located or self.locator.locate(edges.batch)
            rows = located.rows.edges
            positions = None if rows is None else rows.at_src if end == "src" else rows.at_dst
            word = "source" if end == "src" else "destination"
            error = DataError(
                f"the edge's {word} {raw} is not a node",
                place=located.url if positions is None else located.place(int(positions[at])),
                fix="add its record, or use --on-missing-node create or drop",
            )
            if not self.rules.skip:
                raise error
            self.routed.num_dropped_edges += 1
            self._reject(error)

    def _without_dropped_records(self, edges: _BatchEdges) -> NDArray[np.bool_] | None:
        """Drop the edges that stand on the record of a node that was rejected as a duplicate."""
        keep = self._kept_nodes(edges.batch)
        if keep is None:
            return None
        rows = self.locator.locate(edges.batch).rows.edges
        if rows is None or rows.record is None:
            return None
        own = rows.record
        kept = np.where(own < 0, True, keep[np.maximum(own, 0)])
        self.routed.num_dropped_edges += int((~kept).sum())
        return kept

    # What exists without any value

    def complete(self, has_times: bool) -> None:
        """Add the columns that types have although no row brought a value."""
        sources = self.decoded.sources
        for code, relation in enumerate(sources.edge_types):
            if relation.src_type is not None and relation.dst_type is not None:
                names = self.index.type_names
                self._edge_route((code, names.index(relation.src_type), names.index(relation.dst_type)))
        keys = []
        if sources.always_weighted:
            keys.append(ColumnKey("weight", "numbers", self.rules.weight_dtype, role="weight"))
        if has_times:
            keys += [
                ColumnKey("created_at", "numbers", "int64", role="created_at"),
                ColumnKey("removed_at", "numbers", "int64", role="removed_at"),
            ]
        for key in keys:
            for number in range(len(self.routed.nodes)):
                self._node_column(number, key)
            for route in self.routed.edges.values():
                self._edge_column(route, key)
        for declared in sources.columns:
            self._declare(declared)
        self._declare_empty()
        if self.rules.schema is not None:
            self._declare_schema(self.rules.schema)
        self._mark_created()
        self.factory.desk.clear()

    def _declare_schema(self, schema: GraphSchema) -> None:
        """Make room for every type and column of the schema, also where no row has it."""
        names = self.index.type_names
        for name, owner in schema.nodes.items():
            for column in owner.columns:
                self._node_column(names.index(name), key_of(column))
        for (src, relation, dst), owner in schema.edges.items():
            route = self._edge_route((self._relation_code(relation, src, dst), names.index(src), names.index(dst)))
            for column in owner.columns:
                self._edge_column(route, key_of(column))

    def _relation_code(self, name: str, src: str, dst: str) -> int:
        for relation in (Relation(name, src, dst), Relation(name)):
            if relation in self.decoded.relations:
                return self.decoded.relations.index(relation)
        self.decoded.relations.append(Relation(name))
        return len(self.decoded.relations) - 1

    def _declare(self, declared: DeclaredColumn) -> None:
        names = self.index.type_names
        if isinstance(declared.owner, str):
            column = self._node_column(names.index(declared.owner), declared.key)
        else:
            src, name, dst = declared.owner
            relation = self.decoded.relations.index(Relation(name, src, dst))
            column = self._edge_column(self._edge_route((relation, names.index(src), names.index(dst))), declared.key)
        column.stats.declared_shape = declared.item_shape

    def _declare_empty(self) -> None:
        """Make room for the columns of files that have a header but no edges."""
        names = self.index.type_names
        for batch in self.decoded.batches:
            relation = None if batch.relation is None else self.decoded.relations[batch.relation]
            if batch.num_edges or relation is None or relation.src_type is None or relation.dst_type is None:
                continue
            key = (batch.relation or 0, names.index(relation.src_type), names.index(relation.dst_type))
            for column in batch.edge_columns:
                self._edge_column(self._edge_route(key), column.key, column.scalar)

    def _mark_created(self) -> None:
        if self.index.created is None:
            return
        number = next(number for number, count in enumerate(self.index.num_created) if count)
        column = self._node_column(number, CREATED_KEY)
        for (typed,) in self.index.created.read(0):
            column.add(typed, None, scalar_cells(np.ones(typed.size, bool)), self.index.part_offsets[number])


def _pick(rows: Ints, chosen: Ints | None, num_edges: int) -> tuple[Ints | None, Ints | slice] | None:
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


def _by_type(numbers: NDArray[np.int32], rows: Ints, keep: NDArray[np.bool_] | None) -> Iterator[tuple[int, Ints | None]]:
    """Yield (type number, positions in ``rows``) for every type among some rows; None stands for all positions."""
    own = numbers[rows]
    if not own.size:
        return
    if keep is None and (own == own[0]).all():
        yield int(own[0]), None
        return
    kept = np.ones(own.size, bool) if keep is None else keep[rows]
    for number in np.flatnonzero(np.bincount(own[kept])).tolist():
        yield number, np.flatnonzero(kept & (own == number))


def _slots_column(num_slots: NDArray[np.int32]) -> tuple[BatchColumn, Ints, Cells]:
    rows = np.arange(num_slots.size, dtype=np.int64)
    return BatchColumn(NUM_SLOTS, 0, scalar=True), rows, scalar_cells(num_slots)


def _excess_slots(
    columns: list[tuple[ColumnKey, Ints]], num_slots: NDArray[np.int32] | None, num_rows: int
) -> NDArray[np.bool_]:
    """Return which rows state more slots than their highest present one + 1."""
    if num_slots is None:
        return np.zeros(num_rows, bool)
    return np.asarray(num_slots > highest_slots(iter(columns), num_rows), np.bool_)


@dataclass(frozen=True)
class _OrderKeys:
    """The neighbour order's keys of the rows that have them."""

    role: str
    rows: Ints
    keys: NDArray[np.uint64]

    def full(self, num_rows: int) -> NDArray[np.uint64]:
        """Return the keys of all rows of the batch."""
        out = np.full(num_rows, missing_order_key(self.role), np.uint64)
        out[self.rows] = self.keys
        return out


def _order_keys(edges: _BatchEdges, order: NeighborOrder) -> _OrderKeys | None:
    columns: dict[str, tuple[Ints, Cells]] = {
        column.key.role: (rows, cells) for column, rows, cells in edges.columns() if column.key.role is not None
    }
    role = order_role(order, columns)
    if role is None:
        return None
    rows, cells = columns[role]
    return _OrderKeys(role, rows, weight_keys(cells.flat) if role == "weight" else time_keys(cells.flat))


class _Ends:
    """Resolves the ends of all edges, batch after batch."""

    def __init__(self, decoded: Decoded, index: NodeIndex, pool: SpillPool, cap_bytes: int) -> None:
        self._decoded = decoded
        self._index = index
        self._pool = pool
        self._cap = cap_bytes
        self._finders: dict[int, Callable[[RawIds], Resolved] | None] = {}
        self._streams: dict[tuple[int, int], Iterator[Resolved]] = {}

    def resolve(self, side: int, batch: Batch, ids: RawIds) -> Resolved:
        """Resolve one end (0: the source) of a batch's edges; every batch with edges must be asked for, in order."""
        number = self._type(batch, side)
        if number not in self._finders:
            self._finders[number] = self._space(number).finder(self._cap)
        find = self._finders[number]
        if find is not None:
            return find(ids)
        if (side, number) not in self._streams:
            self._streams[side, number] = self._space(number).resolve(self._chunks(side, number), self._pool, self._cap)
        return next(self._streams[side, number])

    def _type(self, batch: Batch, side: int) -> int:
        """Return the number of the end's type, -1 where all types share an ID space."""
        if -1 in self._index.spaces or batch.relation is None:
            return -1
        relation = self._decoded.relations[batch.relation]
        name = relation.dst_type if side else relation.src_type
        return self._index.type_names.index(name) if name is not None else -1

    def _space(self, number: int) -> NodeMap:
        return self._index.space(None if number < 0 else number)

    def _chunks(self, side: int, number: int) -> Iterator[RawIds]:
        """Yield the ends of one type: a map that does not fit is joined with all of them at once."""
        for batch, chunk in zip(self._decoded.batches, self._decoded.edges.read(0), strict=True):
            if batch.num_edges and self._type(batch, side) == number:
                yield chunk[side]


class _BatchEdges:
    """The edges of one batch, with resolved ends."""

    def __init__(
        self,
        batch: Batch,
        chunk: Arrays,
        arrays: Arrays,
        src: Resolved,
        dst: Resolved,
    ) -> None:
        self.batch = batch
        self.num_edges = batch.num_edges
        self.raw_src: NDArray[np.uint64] = chunk[0]
        self.raw_dst: NDArray[np.uint64] = chunk[1]
        self.relations: NDArray[np.int32] | None = chunk[2]
        self.num_slots: NDArray[np.int32] | None = chunk[3]
        self.src = src
        self.dst = dst
        self._arrays = arrays

    def columns(self) -> Iterator[tuple[BatchColumn, Ints, Cells]]:
        """Yield (column, rows in the batch, cells) of every column, the stated numbers of slots among them."""
        yield from batch_columns(self.batch.edge_columns, self._arrays, self.num_edges)
        if self.num_slots is not None:
            yield _slots_column(self.num_slots)

    def by_type(
        self, keep: NDArray[np.bool_] | None, num_relations: int, num_types: int
    ) -> Iterator[tuple[tuple[int, int, int], Ints | None]]:
        """Yield (relation, source type, destination type), ascending, and the positions of its edges; None stands for all."""
        types = (self.src.types, self.dst.types)
        relation = self.batch.relation
        uniform = relation is not None and all((side == side[0]).all() for side in types)
        if keep is None and uniform and relation is not None:
            yield (relation, int(types[0][0]), int(types[1][0])), None
            return
        kept = slice(None) if keep is None else np.flatnonzero(keep)
        codes = types[0][kept].astype(np.int64) * num_types + types[1][kept]
        codes += (relation or 0) * num_types**2 if self.relations is None else self.relations[kept] * np.int64(num_types**2)
        names: Ints | None = None
        num_codes = num_relations * num_types**2
        if num_codes > _MOST_TYPE_CODES:
            names, codes = np.unique(codes, return_inverse=True)
            num_codes = names.size
        indptr, order = group_by_key(codes, num_codes)
        for code in np.flatnonzero(np.diff(indptr)).tolist():
            rest, dst_type = divmod(code if names is None else int(names[code]), num_types)
            rel, src_type = divmod(rest, num_types)
            chosen = order[indptr[code] : indptr[code + 1]]
            yield (rel, src_type, dst_type), chosen if isinstance(kept, slice) else kept[chosen]


class _AlignedCursor:
    """Reads an edge column that stands apart from its edges, in the order of edge IDs."""

    def __init__(self, key: ColumnKey, runs: Runs) -> None:
        self.key = key
        self._chunks = runs.read(0)
        self._rows = np.zeros(0, np.int64)
        self._cells = empty_cells(key)

    def take(self, start: int, stop: int) -> tuple[Ints, Cells]:
        """Return the rows (edge IDs) in [start, stop) and their cells; calls go upwards."""
        from graphprep.stages.cells import concat_cells

        while not self._rows.size or self._rows[-1] < stop - 1:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._rows = np.concatenate([self._rows, chunk[0]])
            self._cells = concat_cells([self._cells, cells_from(chunk[1:])])
        cut = int(np.searchsorted(self._rows, stop))
        taken = self._rows[:cut], self._cells.take(np.arange(cut))
        self._cells = self._cells.take(np.arange(cut, self._rows.size))
        self._rows = self._rows[cut:]
        return taken


class _AlignedEdges:
    """All edge columns that stand apart from their edges."""

    def __init__(self, decoded: Decoded) -> None:
        self._cursors: dict[Relation, list[_AlignedCursor]] = {}
        for (owner, key), runs in decoded.aligned.items():
            if isinstance(owner, Relation):
                self._cursors.setdefault(owner, []).append(_AlignedCursor(key, runs))

    def of(self, relation: Relation) -> Iterator[tuple[ColumnKey, _AlignedCursor]]:
        """Yield the columns of one relation."""
        for cursor in self._cursors.get(relation, ()):
            yield cursor.key, cursor
