"""Deal out the columns of nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError
from graphprep.model.graph_schema import OwnerSchema
from graphprep.model.rows import ColumnKey
from graphprep.stages.batch_edges import excess_slots, slots_column
from graphprep.stages.cells import Cells, cells_from
from graphprep.stages.decode import Batch
from graphprep.stages.route import Routing
from graphprep.stages.schema_guard import find_misfit
from graphprep.stages.shuffle import (
    batch_columns,
)
from graphprep.stages.split_values import find_split_misfit
from graphprep.storage.runs import Runs

Ints = NDArray[np.int64]


def route_nodes(routing: Routing) -> None:
    """Deal out the columns of all nodes."""
    if routing.decoded.sources.nodes == "records":
        _check_duplicates(routing)
        _route_node_records(routing)
    for (owner, key), runs in routing.decoded.aligned.items():
        if isinstance(owner, str):
            _route_aligned_nodes(routing, routing.index.type_names.index(owner), key, runs)


def _check_duplicates(routing: Routing) -> None:
    """Raise for the first node that is declared twice; with ``skip``, list them all."""
    records = routing.dropped_nodes if routing.rules.skip else routing.dropped_nodes[:1]
    if not records.size:
        return
    raw, firsts = _first_declarations(routing, records)
    places = routing.locator.node_places(np.unique(np.concatenate([records, firsts])))
    for record, node, first in zip(records.tolist(), raw.tolist(), firsts.tolist(), strict=True):
        error = DataError(
            f"node {node} is declared twice, first at {places[first]}",
            place=places[record],
            fix="keep one record for each node, or use --on-error skip to keep the first",
        )
        if not routing.rules.skip:
            raise error
        routing.reject(error)


def _first_declarations(routing: Routing, records: Ints) -> tuple[NDArray[np.uint64], Ints]:
    """Return the raw IDs of node records, and the records that declare them first."""
    decoded = routing.decoded
    raw = np.empty(records.size, np.uint64)
    for batch, (ids, *_) in zip(decoded.batches, decoded.nodes.read(0), strict=True):
        low, high = np.searchsorted(records, [batch.first_node, batch.first_node + batch.num_nodes])
        raw[low:high] = ids[records[low:high] - batch.first_node]
    nodes, position = np.unique(raw, return_inverse=True)
    firsts = np.full(nodes.size, -1, np.int64)
    for batch, (ids, *_) in zip(decoded.batches, decoded.nodes.read(0), strict=True):
        rows = np.flatnonzero(np.isin(ids, nodes))[::-1]  # the last write wins: that of the first row
        at = np.searchsorted(nodes, ids[rows])
        unset = firsts[at] < 0
        firsts[at[unset]] = rows[unset] + batch.first_node
    return raw, firsts[position]


def _route_node_records(routing: Routing) -> None:
    decoded = routing.decoded
    ids = (chunk[0] for chunk in decoded.nodes.read(0))
    places = routing.index.space(None).resolve(ids, routing.pool, routing.rules.cap_bytes)
    parts = zip(decoded.batches, decoded.nodes.read(0), decoded.node_columns.read(0), places, strict=True)
    for batch, (_, codes, num_slots), arrays, place in parts:
        if not batch.num_nodes:
            continue
        numbers = routing.index.numbers_of_codes[codes]
        keep = routing.kept_nodes(batch)
        columns = list(batch_columns(batch.node_columns, arrays, batch.num_nodes))
        if num_slots is not None:
            columns.append(slots_column(num_slots))
        excess = excess_slots([(c.key, rows) for c, rows, _ in columns], num_slots, batch.num_nodes)
        for number in np.flatnonzero(np.bincount(numbers)).tolist():
            route = routing.routed.nodes[number]
            route.extra_slots = route.extra_slots or bool((excess & (numbers == number)).any())
        for column, rows, cells in columns:
            for number, chosen in _by_type(numbers, rows, keep):
                offsets = routing.index.part_offsets[number]
                target = routing.node_column(number, column.key, column.scalar)
                some = cells if chosen is None else cells.take(chosen)
                own = rows if chosen is None else rows[chosen]
                _check_nodes(routing, number, column.key, some, batch, own)
                target.add(place.typed[own], None, some, offsets)


def _check_nodes(routing: Routing, number: int, key: ColumnKey, cells: Cells, batch: Batch | None, rows: Ints) -> None:
    """Raise for the first node whose value does not fit the schema, or its role."""
    schema, name = routing.rules.schema, routing.index.type_names[number]
    misfit = None if batch is None else find_split_misfit(routing.roles.of(name), key, cells)
    if schema is not None and misfit is None:
        misfit = find_misfit(schema.nodes.get(name, OwnerSchema(())), f"node type {name!r}", key, cells)
    if misfit is not None:
        place = "" if batch is None else routing.locator.node_place(batch.first_node + int(rows[misfit.row]))
        raise DataError(misfit.message, place=place, fix=misfit.fix)


def _route_aligned_nodes(routing: Routing, number: int, key: ColumnKey, runs: Runs) -> None:
    rows = (chunk[0].astype(np.uint64) for chunk in runs.read(0))
    space = routing.index.space(number)
    for place, (_, *parts) in zip(space.resolve(rows, routing.pool, routing.rules.cap_bytes), runs.read(0), strict=True):
        cells = cells_from(parts)
        _check_nodes(routing, number, key, cells, None, place.typed)
        target = routing.node_column(number, key, (routing.index.type_names[number], key) in routing.decoded.aligned_scalars)
        target.add(place.typed, None, cells, routing.index.part_offsets[number])


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
