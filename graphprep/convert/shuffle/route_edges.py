"""Scatter edges and their columns: resolve their ends, find their types, number them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.routes import EdgeRoute
from graphprep.convert.columns.schema_guard import find_misfit
from graphprep.convert.columns.split_values import find_split_misfit
from graphprep.convert.decoded.rows import Batch
from graphprep.convert.index.resolve import Finders
from graphprep.convert.read.locate import Located, id_words
from graphprep.convert.shuffle.adopt_edges import adopt_edges
from graphprep.convert.shuffle.ends import AlignedEdges, Ends, text_hashes
from graphprep.convert.shuffle.random_splits import split_edges
from graphprep.convert.shuffle.route import Routing
from graphprep.convert.shuffle.scatter_edges import (
    BatchEdges,
    BatchInput,
    EdgeScatterer,
    MissingEnds,
    ScatteredBatch,
    ScatteredGroup,
    TypeKey,
    TypeTotal,
    excess_slots,
)
from graphprep.engine.budget import format_size
from graphprep.engine.ledger import Need
from graphprep.engine.local import map_ordered, num_in_flight
from graphprep.model.errors import DataError
from graphprep.model.graph_schema import OwnerSchema
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import edge_type_text
from graphprep.store.columns.cells import Cells, empty_cells

Ints = NDArray[np.int64]
# A group is as large as is worth a piece of memory for every bucket, if memory allows: some are on their way at a time.
_MOST_GROUP = 1 << 20
_LEAST_GROUP = 1 << 14
_LEAST_GROUP_BYTES = 4 << 20  # of edges with many columns, fewer are enough
_WORK_BYTES = (
    72  # of an edge while it is scattered, beside what comes in: codes and positions of types, typed IDs, keys, records
)
_END_BYTES = 24  # of an edge as it comes in, at most: ends and relation
_TYPED_WORK_BYTES = 24  # where its type goes without saying, and so does its order


def route_needs(routing: Routing) -> Iterator[Need]:
    """Declare what scattering nodes and edges takes."""
    rules, decoded = routing.rules, routing.decoded
    maps = Finders.held_bytes(routing.index.spaces, rules.cap_bytes)
    yield Need("maps", maps, "from raw to typed IDs; of those that do not fit, blocks")
    group, threads = _group_bytes(routing), rules.threads
    num_groups = num_in_flight(threads, threads + 1)
    edges = decoded.num_edges * (_END_BYTES + _WORK_BYTES) + 2 * sum(decoded.column_bytes.values())
    yield Need("groups", min(edges, num_groups * group), f"{num_groups} of edges at a time, of {format_size(group)}")
    yield Need("write buffers", routing.factory.write_buffer.cap_bytes, "rows that wait for others of their bucket")
    if decoded.aligned:
        yield Need("columns", rules.cap_bytes, "edge columns that are read beside the edges")
    if routing.roles.owners:
        yield Need("roles", 2 * rules.cap_bytes, "labels, splits and seeds, while they are numbered or looked up")


def route_edges(routing: Routing) -> None:
    """Scatter all edges and their columns, unless the edges are scattered already and have none."""
    decoded = routing.decoded
    if decoded.are_scattered and adopt_edges(routing):
        return
    ends = Ends(decoded, routing.index, routing.pool, routing.rules.cap_bytes)
    scatterer = EdgeScatterer(routing, ends)
    aligned = AlignedEdges(decoded, routing.rules.cap_bytes)
    threads = routing.rules.threads
    for group in map_ordered(scatterer.scatter, _groups(routing, ends), threads, threads + 1):
        _add_group(routing, group, aligned)
    routing.factory.write_buffer.clear()


def _groups(routing: Routing, ends: Ends) -> Iterator[list[BatchInput]]:
    """Yield batches, a few at a time: scattering few edges to many buckets costs as much as scattering many."""
    decoded = routing.decoded
    most_bytes = _group_bytes(routing)
    edges = decoded.raw_edges(consume=ends.fit_in_memory())
    streams = (decoded.batches, edges, decoded.edge_columns.read(0), text_hashes(decoded))
    group: list[BatchInput] = []
    num_edges = num_bytes = 0
    for batch, chunk, columns, hashes in zip(*streams, strict=True):
        if not batch.num_edges:
            continue
        keep = _without_dropped_records(routing, batch)
        one = BatchInput(batch, chunk, columns, hashes, keep, ends.resolve_in_order(batch, chunk))
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


def _group_bytes(routing: Routing) -> int:
    """Return the bytes of edges that are scattered at once: all that are under way take half of what there is to work with."""
    return 4 * routing.rules.cap_bytes // (3 * routing.rules.threads + 2)  # cap_bytes is a quarter of it


def _bytes_of(one: BatchInput) -> int:
    """Return about how many bytes a batch takes while it is scattered."""
    came = sum(int(array.nbytes) for array in (*one.chunk, *one.columns, *(one.hashes or ())) if array is not None)
    plain = one.batch.relation is not None and one.resolved is None and not one.columns.columns
    resolved = 0 if one.resolved is None else sum(end.types.nbytes + end.typed.nbytes for end in one.resolved)
    return came + resolved + one.batch.num_edges * (_TYPED_WORK_BYTES if plain else _WORK_BYTES)


def _add_group(routing: Routing, group: ScatteredGroup, aligned: AlignedEdges) -> None:
    """Number the edges of a group, and scatter their columns; what is wrong with them is told in input order."""
    added: dict[TypeKey, int] = {}
    for scattered in group.batches:
        if scattered.missing is not None:
            _report_missing(routing, scattered.edges, scattered.missing)
        for share in scattered.shares:
            route = routing.edge_route(share.key, scattered.edges.batch, share.chosen)
            if share.key not in added:
                added[share.key] = _add_edges(routing, route, group.totals[share.key])
        _add_columns(routing, scattered, added, aligned)
        routing.reporter.advance(records=scattered.edges.num_edges)


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
            buckets.add(replace(rows, ids=first + rows.ids))
    route.num_edges += total.num_edges
    route.checksum = (route.checksum + total.checksum) % 2**64
    csc = routing.rules.primary == "csc"
    route.primary_counts += total.dst_counts if csc else total.src_counts
    route.second_counts += total.src_counts if csc else total.dst_counts
    return first


def _add_columns(routing: Routing, scattered: ScatteredBatch, first_ids: dict[TypeKey, int], aligned: AlignedEdges) -> None:
    """Scatter the columns of a batch's edges, type after type; ``first_ids`` are the group's first edge IDs."""
    edges = scattered.edges
    columns = list(edges.columns())
    excess = excess_slots([(c.key, rows) for c, rows, _ in columns], edges.num_slots, edges.num_edges)
    for share in scattered.shares:
        route, chosen = routing.routed.edges[share.key], share.chosen
        route.extra_slots = route.extra_slots or bool((excess if chosen is None else excess[chosen]).any())
        if not columns and not routing.roles.owners and not aligned.has(routing.decoded.relations[route.relation]):
            continue
        first = first_ids[share.key] + share.start
        ids: NDArray[Any] = np.arange(first, first + share.owners.size, dtype=routing.edge_dtype)
        owners: NDArray[Any] = share.owners.astype(routing.row_dtype)
        if routing.roles.owners:
            _split_edges(routing, route, edges, chosen, owners, ids)
        offsets = _owner_offsets(routing, route)
        for column, rows, cells in columns:
            picked = pick_cells(rows, chosen, edges.num_edges)
            if picked is None:
                continue
            of_cells, of_edges = picked
            some = cells if of_cells is None else cells.take(of_cells)
            _check_edges(routing, route, column.key, some, edges.batch, rows if of_cells is None else rows[of_cells])
            routing.edge_column(route, column.key, column.scalar).add(owners[of_edges], ids[of_edges], some, offsets)
        _route_aligned_edges(routing, route, aligned, ids, owners)


def _split_edges(
    routing: Routing, route: EdgeRoute, edges: BatchEdges, chosen: Ints | None, owners: NDArray[Any], ids: NDArray[Any]
) -> None:
    """Scatter the parts of edges of one type, where it has a random split."""
    split = routing.roles.of(routing.edge_type(route)).split
    if split is not None and split.rule is not None:
        hashes = (edges.raw_hashes(0, chosen), edges.raw_hashes(1, chosen))
        split_edges(routing, route, split.rule, hashes, owners, ids)


def _check_edges(routing: Routing, route: EdgeRoute, key: ColumnKey, cells: Cells, batch: Batch | None, rows: Ints) -> None:
    """Raise for the first edge whose value does not fit the schema, or its role."""
    schema = routing.rules.schema
    if schema is None and not routing.roles.owners:
        return
    edge_type = routing.edge_type(route)
    misfit = None if batch is None else find_split_misfit(routing.roles.of(edge_type), key, cells)
    if schema is not None and misfit is None:
        owner = schema.edges.get(edge_type, OwnerSchema(()))
        misfit = find_misfit(owner, f"edge type {edge_type_text(edge_type)!r}", key, cells)
    if misfit is not None:
        place = "" if batch is None else routing.locator.edge_place(batch.first_edge + int(rows[misfit.row]), "src")
        raise DataError(misfit.message, place=place, fix=misfit.fix)


def _owner_offsets(routing: Routing, route: EdgeRoute) -> Ints:
    return routing.index.part_offsets[route.dst_type if routing.rules.primary == "csc" else route.src_type]


def _route_aligned_edges(routing: Routing, route: EdgeRoute, aligned: AlignedEdges, ids: Ints, owners: Ints) -> None:
    relation = routing.decoded.relations[route.relation]
    for key, cursor in aligned.of(relation):
        rows, cells = cursor.take(int(ids[0]), int(ids[-1]) + 1) if ids.size else (ids, empty_cells(key))
        at = slice(None) if rows.size == ids.size else rows - int(ids[0])  # rows are among the edge IDs
        _check_edges(routing, route, key, cells, None, rows)
        target = routing.edge_column(route, key, (relation, key) in routing.decoded.aligned_scalars)
        target.add(owners[at], ids[at], cells, _owner_offsets(routing, route))


def _report_missing(routing: Routing, edges: BatchEdges, missing: MissingEnds) -> None:
    """Count edges whose ends are missing, where they are to be dropped; else raise for the first, or reject all."""
    if routing.rules.on_missing == "drop":
        routing.routed.num_dropped_edges += int(missing.edges.sum())
    else:
        _missing_ends(routing, edges, missing.edges, missing.wrong)


def _missing_ends(
    routing: Routing,
    edges: BatchEdges,
    missing: NDArray[np.bool_],
    wrong: tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None],
) -> None:
    located = None
    for at in np.flatnonzero(missing).tolist():
        is_wrong = [mask is not None and bool(mask[at]) for mask in wrong]
        side = 0 if edges.src.typed[at] < 0 or is_wrong[0] else 1
        located = located or routing.locator.locate(edges.batch)
        error = _end_error(routing, edges, located, at, side, is_wrong[side])
        if not routing.rules.skip:
            raise error
        routing.routed.num_dropped_edges += 1
        routing.reject(error)


def _end_error(routing: Routing, edges: BatchEdges, located: Located, at: int, side: int, is_wrong: bool) -> DataError:
    """Word an end that is no node, or one of another type."""
    rows = located.rows.edges
    positions = None if rows is None else rows.at_dst if side else rows.at_src
    place = located.url if positions is None else located.place(int(positions[at]), side)
    code = edges.batch.codes[0] if edges.relations is None else int(edges.relations[at])
    relation = routing.decoded.relations[code]
    name = relation.dst_type if side else relation.src_type
    is_signed = routing.decoded.spaces.of_end(relation, side) in routing.decoded.sources.signed_ids
    words = id_words(edges.raw_dst if side else edges.raw_src, rows, at, side, is_signed)
    end = f"the edge's {'destination' if side else 'source'} {words}"
    if is_wrong:
        found = routing.index.type_names[int((edges.dst if side else edges.src).types[at])]
        return DataError(f"{end} is a node of type {found!r}, not {name!r}", place=place, fix="correct the edge, or its type")
    of_type = f" of type {name!r}" if name is not None and routing.decoded.sources.nodes == "tables" else ""
    fix = "add its record, or use --on-missing-node create or drop"
    return DataError(f"{end} is not a node{of_type}", place=place, fix=fix)


def _without_dropped_records(routing: Routing, batch: Batch) -> NDArray[np.bool_] | None:
    """Drop the edges that stand on the record of a node that was rejected as a duplicate; None: there are none."""
    keep = routing.kept_nodes(batch)
    if keep is None:
        return None
    rows = routing.locator.locate(batch).rows.edges
    if rows is None or rows.record is None:
        return None
    own = rows.record
    kept = np.where(own < 0, True, keep[np.maximum(own, 0)])
    routing.routed.num_dropped_edges += int((~kept).sum())
    return kept


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
