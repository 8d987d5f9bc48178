"""Deal out edges and their columns: resolve their ends, find their types, number them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError
from graphprep.model.graph_schema import OwnerSchema
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import edge_type_text
from graphprep.stages.assign import count_parts
from graphprep.stages.batch_edges import BatchEdges, excess_slots, order_keys
from graphprep.stages.cells import Cells, empty_cells
from graphprep.stages.decoded import Batch
from graphprep.stages.ends import AlignedEdges, Ends, text_hashes
from graphprep.stages.locate import Located, id_words
from graphprep.stages.random_splits import split_edges
from graphprep.stages.route import Routing
from graphprep.stages.schema_guard import find_misfit
from graphprep.stages.shuffle import (
    EdgeRoute,
    FlatRows,
)
from graphprep.stages.split_values import find_split_misfit

Ints = NDArray[np.int64]


def route_edges(routing: Routing) -> None:
    """Deal out all edges and their columns."""
    decoded = routing.decoded
    ends = Ends(decoded, routing.index, routing.pool, routing.rules.cap_bytes)
    aligned = AlignedEdges(decoded)
    streams = (decoded.batches, decoded.edges.read(0), decoded.edge_columns.read(0), text_hashes(decoded))
    for batch, chunk, arrays, hashes in zip(*streams, strict=True):
        if not batch.num_edges:
            continue
        src, dst = ends.resolve(0, batch, chunk[0]), ends.resolve(1, batch, chunk[1])
        edges = BatchEdges(batch, chunk, arrays, src, dst, hashes or ends.text_keys(batch, chunk))
        _route_batch(routing, edges, aligned)
        routing.reporter.advance(records=batch.num_edges)


def _route_batch(routing: Routing, edges: BatchEdges, aligned: AlignedEdges) -> None:
    keep = _kept_edges(routing, edges)
    order = order_keys(edges, routing.rules.neighbor_order)
    columns = list(edges.columns())
    excess = excess_slots([(c.key, rows) for c, rows, _ in columns], edges.num_slots, edges.num_edges)
    keys = None if order is None else order.full(edges.num_edges)
    for key, chosen in edges.by_type(keep, len(routing.decoded.relations), len(routing.index.type_names)):
        route = routing.edge_route(key, edges.batch, chosen)
        route.extra_slots = route.extra_slots or bool((excess if chosen is None else excess[chosen]).any())
        owners, ids = _add_edges(routing, route, edges, chosen, keys)
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
    """Deal out the parts of edges of one type, where it has a random split."""
    split = routing.roles.of(routing.edge_type(route)).split
    if split is not None and split.rule is not None:
        hashes = (edges.raw_hashes(0, chosen), edges.raw_hashes(1, chosen))
        split_edges(routing, route, split.rule, hashes, owners, ids)


def _check_edges(routing: Routing, route: EdgeRoute, key: ColumnKey, cells: Cells, batch: Batch | None, rows: Ints) -> None:
    """Raise for the first edge whose value does not fit the schema, or its role."""
    schema, edge_type = routing.rules.schema, routing.edge_type(route)
    misfit = None if batch is None else find_split_misfit(routing.roles.of(edge_type), key, cells)
    if schema is not None and misfit is None:
        owner = schema.edges.get(edge_type, OwnerSchema(()))
        misfit = find_misfit(owner, f"edge type {edge_type_text(edge_type)!r}", key, cells)
    if misfit is not None:
        place = "" if batch is None else routing.locator.edge_place(batch.first_edge + int(rows[misfit.row]), "src")
        raise DataError(misfit.message, place=place, fix=misfit.fix)


def _owner_offsets(routing: Routing, route: EdgeRoute) -> Ints:
    return routing.index.part_offsets[route.dst_type if routing.rules.primary == "csc" else route.src_type]


def _add_edges(
    routing: Routing, route: EdgeRoute, edges: BatchEdges, chosen: Ints | None, keys: NDArray[np.uint64] | None
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Add edges of one type; return their owners and edge IDs, in the narrow dtypes in which they travel."""
    pick = slice(None) if chosen is None else chosen
    src, dst = edges.src.typed[pick], edges.dst.typed[pick]
    csc = routing.rules.primary == "csc"
    owner, other = (dst, src) if csc else (src, dst)
    ids = np.arange(route.num_edges, route.num_edges + src.size, dtype=routing.edge_dtype)
    route.num_edges += src.size
    route.checksum = (route.checksum + edges.checksum(chosen)) % 2**64
    offsets = routing.index.part_offsets
    for ends, number, counts in (
        (dst, route.dst_type, route.primary_counts if csc else route.second_counts),
        (src, route.src_type, route.second_counts if csc else route.primary_counts),
    ):
        np.add(counts, count_parts(ends, offsets[number]), out=counts)
    rows = owner.astype(routing.node_dtype)
    route.dealer.add(FlatRows((rows, other.astype(routing.node_dtype), ids, None if keys is None else keys[pick])))
    return rows, ids


def _route_aligned_edges(routing: Routing, route: EdgeRoute, aligned: AlignedEdges, ids: Ints, owners: Ints) -> None:
    relation = routing.decoded.relations[route.relation]
    for key, cursor in aligned.of(relation):
        rows, cells = cursor.take(int(ids[0]), int(ids[-1]) + 1) if ids.size else (ids, empty_cells(key))
        at = rows - (int(ids[0]) if ids.size else 0)
        _check_edges(routing, route, key, cells, None, rows)
        target = routing.edge_column(route, key, (relation, key) in routing.decoded.aligned_scalars)
        target.add(owners[at], ids[at], cells, _owner_offsets(routing, route))


def _kept_edges(routing: Routing, edges: BatchEdges) -> NDArray[np.bool_] | None:
    """Return which edges of a batch are kept; None: all. Raises for a missing end where that is an error."""
    keep = _without_dropped_records(routing, edges)
    found = (edges.src.typed >= 0) & (edges.dst.typed >= 0)
    wrong = [_wrong_types(routing, edges, side) for side in range(2)]
    for mask in wrong:
        if mask is not None:
            found &= ~mask
    if found.all():
        return keep
    missing = ~found if keep is None else ~found & keep
    if routing.rules.on_missing == "drop":
        routing.routed.num_dropped_edges += int(missing.sum())
    else:
        _missing_ends(routing, edges, missing, wrong)
    return found if keep is None else found & keep


def _wrong_types(routing: Routing, edges: BatchEdges, side: int) -> NDArray[np.bool_] | None:
    """Return which ends are nodes of another type than their relation says; None: none can be."""
    decoded, index = routing.decoded, routing.index
    relations = [decoded.relations[code] for code in edges.batch.codes]
    names = [relation.dst_type if side else relation.src_type for relation in relations]
    spaces = {decoded.spaces.of_type(name) for name in names if name is not None}
    if not any(index.space_of_type.count(space) > 1 for space in spaces):
        return None
    wanted = np.full(len(decoded.relations), -1, np.int32)
    wanted[list(edges.batch.codes)] = [-1 if name is None else index.type_names.index(name) for name in names]
    expected = wanted[edges.batch.codes[0]] if edges.relations is None else wanted[edges.relations]
    ends = edges.dst if side else edges.src
    return np.asarray((ends.types != expected) & (expected >= 0) & (ends.typed >= 0))


def _missing_ends(
    routing: Routing, edges: BatchEdges, missing: NDArray[np.bool_], wrong: list[NDArray[np.bool_] | None]
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
    place = located.url if positions is None else located.place(int(positions[at]))
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


def _without_dropped_records(routing: Routing, edges: BatchEdges) -> NDArray[np.bool_] | None:
    """Drop the edges that stand on the record of a node that was rejected as a duplicate."""
    keep = routing.kept_nodes(edges.batch)
    if keep is None:
        return None
    rows = routing.locator.locate(edges.batch).rows.edges
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
