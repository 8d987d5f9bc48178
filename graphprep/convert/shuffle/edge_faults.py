"""Edges that are left out or at fault: ends that are no nodes, records that were dropped, values that fit no schema."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.routes import EdgeRoute
from graphprep.convert.columns.schema_guard import find_misfit
from graphprep.convert.columns.split_values import find_split_misfit
from graphprep.convert.decoded.rows import Batch
from graphprep.convert.read.locate import Located, id_words
from graphprep.convert.shuffle.route import BatchEdges, Routing
from graphprep.model.errors import DataError
from graphprep.model.graph_schema import OwnerSchema
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import edge_type_text
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]


class MissingEnds(NamedTuple):
    """The edges of a batch whose ends are no nodes, or for ``wrong`` (of sources, of destinations) nodes of another type."""

    edges: NDArray[np.bool_]
    wrong: tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]


def find_kept(routing: Routing, edges: BatchEdges) -> tuple[NDArray[np.bool_] | None, MissingEnds | None]:
    """Return which edges of a batch are kept (None: all), and which are not because of an end."""
    keep = edges.keep
    found = (edges.end(0).typed >= 0) & (edges.end(1).typed >= 0)
    wrong = (_wrong_types(routing, edges, 0), _wrong_types(routing, edges, 1))
    for mask in wrong:
        if mask is not None:
            found &= ~mask
    if found.all():
        return keep, None
    missing = ~found if keep is None else ~found & keep
    return found if keep is None else found & keep, MissingEnds(missing, wrong)


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
    expected = wanted[edges.batch.codes[0] if edges.raw.relations is None else edges.raw.relations]
    ends = edges.end(side)
    return np.asarray((ends.types != expected) & (expected >= 0) & (ends.typed >= 0))


def report_missing(routing: Routing, edges: BatchEdges, missing: MissingEnds) -> None:
    """Count edges whose ends are missing, where they are to be dropped; else raise for the first, or reject all."""
    if routing.options.on_missing_node == "drop":
        routing.routed.num_dropped_edges += int(missing.edges.sum())
        return
    located = None
    for at in np.flatnonzero(missing.edges).tolist():
        is_wrong = [mask is not None and bool(mask[at]) for mask in missing.wrong]
        side = 0 if edges.end(0).typed[at] < 0 or is_wrong[0] else 1
        located = located or routing.locator.locate(edges.batch)
        error = _end_error(routing, edges, located, at, side, is_wrong[side])
        if not routing.skips:
            raise error
        routing.routed.num_dropped_edges += 1
        routing.reject(error)


def _end_error(routing: Routing, edges: BatchEdges, located: Located, at: int, side: int, is_wrong: bool) -> DataError:
    """Word an end that is no node, or one of another type."""
    rows = located.rows.edges
    positions = None if rows is None else rows.at_dst if side else rows.at_src
    place = located.url if positions is None else located.place(int(positions[at]), side)
    code = edges.batch.codes[0] if edges.raw.relations is None else int(edges.raw.relations[at])
    relation = routing.decoded.relations[code]
    name = relation.dst_type if side else relation.src_type
    is_signed = routing.decoded.spaces.of_end(relation, side) in routing.decoded.sources.signed_ids
    words = id_words(edges.raw_ids(side), rows, at, side, is_signed)
    end = f"the edge's {'destination' if side else 'source'} {words}"
    if is_wrong:
        found = routing.index.type_names[int(edges.end(side).types[at])]
        return DataError(f"{end} is a node of type {found!r}, not {name!r}", place=place, fix="correct the edge, or its type")
    of_type = f" of type {name!r}" if name is not None and routing.decoded.sources.nodes == "tables" else ""
    fix = "add its record, or use --on-missing-node create or drop"
    return DataError(f"{end} is not a node{of_type}", place=place, fix=fix)


def without_dropped_records(routing: Routing, batch: Batch) -> NDArray[np.bool_] | None:
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


def check_edges(routing: Routing, route: EdgeRoute, key: ColumnKey, cells: Cells, batch: Batch | None, rows: Ints) -> None:
    """Raise for the first edge whose value does not fit the schema, or its role."""
    schema = routing.schema
    edge_type = routing.edge_type(route)
    misfit = None if batch is None else find_split_misfit(routing.roles.of(edge_type), key, cells)
    if schema is not None and misfit is None:
        owner = schema.edges.get(edge_type, OwnerSchema(()))
        misfit = find_misfit(owner, f"edge type {edge_type_text(edge_type)!r}", key, cells)
    if misfit is not None:
        place = "" if batch is None else routing.locator.edge_place(batch.first_edge + int(rows[misfit.row]), "src")
        raise DataError(misfit.message, place=place, fix=misfit.fix)
