"""Scatter the columns of nodes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.routes import batch_columns, excess_slots
from graphprep.convert.columns.schema_guard import find_misfit
from graphprep.convert.columns.split_values import find_split_misfit
from graphprep.convert.decoded.aligned import AlignedRuns
from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.convert.decoded.rows import Batch, BatchCells
from graphprep.convert.index.resolve import Finders, Resolved
from graphprep.convert.shuffle.route import Routing
from graphprep.kernels.cpu.ids.group import mark_bits
from graphprep.model.errors import DataError, one_of
from graphprep.model.graph_schema import OwnerSchema
from graphprep.model.rows import ColumnKey, Relation
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]


def route_nodes(routing: Routing) -> None:
    """Scatter the columns of all nodes."""
    if any(batch.num_nodes for batch in routing.decoded.batches):
        _check_duplicates(routing)
        _route_node_records(routing)
    for (owner, key), runs in routing.decoded.aligned.items():
        if isinstance(owner, str):
            if owner not in routing.index.type_names:
                fix = one_of(routing.index.type_names, found=owner)
                raise DataError(f"column {key.name!r} is for node type {owner!r}, which does not occur", fix=fix)
            _route_aligned_nodes(routing, routing.index.type_names.index(owner), key, runs)
        elif isinstance(runs, FileColumn):
            _leave_edge_column(routing, owner, key, runs)


def _check_duplicates(routing: Routing) -> None:
    """Raise for the first node that is declared twice; with ``skip``, list them all."""
    records = routing.dropped_nodes if routing.skips else routing.dropped_nodes[:1]
    if not records.size:
        return
    firsts = _first_declarations(routing, records)
    found = routing.locator.describe_nodes(np.unique(np.concatenate([records, firsts])))
    for record, first in zip(records.tolist(), firsts.tolist(), strict=True):
        place, node = found[record]
        error = DataError(
            f"node {node} is declared twice, first at {found[first][0]}",
            place=place,
            fix="keep one record for each node, or use --on-error skip to keep the first",
        )
        if not routing.skips:
            raise error
        routing.reject(error)


def _first_declarations(routing: Routing, records: Ints) -> Ints:
    """Return the records that first declare the nodes of some records, which ascend."""
    spaces = _space_codes(routing)
    raw = np.empty((records.size, 2), np.uint64)
    for batch, ids, codes in _declared(routing):
        low, high = np.searchsorted(records, [batch.first_node, batch.first_node + batch.num_nodes])
        rows = records[low:high] - batch.first_node
        raw[low:high] = np.stack([spaces[codes[rows]].astype(np.uint64), ids[rows]], axis=1)
    nodes, position = np.unique(raw, axis=0, return_inverse=True)
    wanted = {(int(space), int(node)): at for at, (space, node) in enumerate(nodes)}
    firsts = np.full(len(nodes), -1, np.int64)
    for batch, ids, codes in _declared(routing):
        rows = np.flatnonzero(np.isin(ids, nodes[:, 1]))
        for row, space, node in zip(rows.tolist(), spaces[codes[rows]].tolist(), ids[rows].tolist(), strict=True):
            at = wanted.get((space, node), -1)
            if at >= 0 and firsts[at] < 0:
                firsts[at] = row + batch.first_node
    return np.asarray(firsts[position.reshape(-1)])


def _declared(routing: Routing) -> Iterator[tuple[Batch, NDArray[np.uint64], NDArray[np.int32]]]:
    """Yield (batch, keys, codes of types) of all nodes that records declare."""
    for batch, (ids, codes, _) in routing.decoded.node_batches():
        if batch.declares:
            yield batch, ids, codes


def _space_codes(routing: Routing) -> Ints:
    """Return a number for the ID space of every type, by the type's code: int64."""
    names = [routing.decoded.spaces.of_type(name) for name in routing.decoded.node_types]
    return np.array([names.index(name) for name in names], np.int64)


class _NodeRows:
    """Looks up the typed IDs of the nodes of every batch, ID space by ID space."""

    def __init__(self, routing: Routing) -> None:
        self._routing = routing
        self._spaces = _space_codes(routing)
        self._maps = Finders(routing.index.spaces, routing.memory.cap_bytes)
        self._streams: dict[int, Iterator[Resolved]] = {}

    def resolve(self, ids: NDArray[np.uint64], codes: NDArray[np.int32]) -> Resolved:
        """Look up all nodes of a batch; every batch with nodes must be asked for, in order."""
        spaces = self._spaces[codes]
        own = np.flatnonzero(np.bincount(spaces)).tolist()
        if len(own) == 1:
            return self._find(own[0], ids)
        types, typed = np.zeros(ids.size, np.int32), np.full(ids.size, -1, np.int64)
        for space in own:
            rows = np.flatnonzero(spaces == space)
            found = self._find(space, ids[rows])
            types[rows], typed[rows] = found.types, found.typed
        return Resolved(types, typed)

    def _find(self, space: int, ids: NDArray[np.uint64]) -> Resolved:
        routing = self._routing
        name = routing.decoded.spaces.of_type(routing.decoded.node_types[space])
        find = self._maps.find(name)
        if find is not None:
            return find(ids)
        if space not in self._streams:
            self._streams[space] = self._maps.join(name, self._chunks(space), routing.pool)
        return next(self._streams[space])

    def _chunks(self, space: int) -> Iterator[NDArray[np.uint64]]:
        """Yield the IDs of one space: a map that does not fit is joined with all of them at once."""
        for _, (ids, codes, _) in self._routing.decoded.node_batches():
            rows = np.flatnonzero(self._spaces[codes] == space)
            if rows.size:
                yield ids if rows.size == ids.size else ids[rows]


def _route_node_records(routing: Routing) -> None:
    decoded = routing.decoded
    nodes = _NodeRows(routing)
    met: dict[tuple[int, ColumnKey], NDArray[np.uint8]] = {}
    held = decoded.node_columns.read(0)
    for batch, (ids, codes, num_slots) in decoded.node_batches():
        cells_of_batch = next(held) if batch.node_columns else BatchCells()
        place = nodes.resolve(ids, codes)
        numbers = routing.index.numbers_of_codes[codes]
        keep = routing.kept_nodes(batch)
        if not batch.declares:
            keep = _known_nodes(routing, batch, numbers, place)
        columns = batch_columns(batch.node_columns, cells_of_batch, batch.num_nodes, num_slots)
        if num_slots is not None:
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
                if not batch.declares:
                    _check_repeated(routing, met, (number, column.key), batch, own, place.typed[own])
                target.add(place.typed[own], None, some, offsets)


def _known_nodes(routing: Routing, batch: Batch, numbers: NDArray[np.int32], place: Resolved) -> NDArray[np.bool_] | None:
    """Return which rows that bring columns alone belong to a node of their type; None: all.

    Raises DataError for one that does not, where that is an error.
    """
    known = np.asarray((place.typed >= 0) & (place.types == numbers))
    if known.all():
        return None
    if routing.options.on_missing_node == "drop":
        return known
    for row in np.flatnonzero(~known).tolist():
        record = batch.first_node + row
        where, node = routing.locator.describe_nodes(np.array([record], np.int64))[record]
        error = DataError(
            f"{node} is not a node of type {routing.index.type_names[int(numbers[row])]!r}",
            place=where,
            fix="declare the node, drop the row, or use --on-missing-node drop",
        )
        if not routing.skips:
            raise error
        routing.reject(error)
    return known


def _check_repeated(
    routing: Routing,
    met: dict[tuple[int, ColumnKey], NDArray[np.uint8]],
    owner: tuple[int, ColumnKey],
    batch: Batch,
    rows: Ints,
    typed: Ints,
) -> None:
    """Raise for a node that gets a second value of a column; ``met`` has a bit for each that has one."""
    number, key = owner
    bits = met.setdefault(owner, np.zeros((routing.index.num_nodes[number] + 7) // 8, np.uint8))
    again = (bits[typed >> 3] >> (typed & 7).astype(np.uint8)) & 1
    _, first = np.unique(typed, return_index=True)
    again = again.astype(bool)
    again[np.setdiff1d(np.arange(typed.size), first)] = True
    if again.any():
        record = batch.first_node + int(rows[np.argmax(again)])
        where, node = routing.locator.describe_nodes(np.array([record], np.int64))[record]
        raise DataError(f"node {node} has two values of {key.name!r}", place=where, fix="keep one row for each node")
    mark_bits(bits, typed.view(np.uint64))


def _check_nodes(routing: Routing, number: int, key: ColumnKey, cells: Cells, batch: Batch | None, rows: Ints) -> None:
    """Raise for the first node whose value does not fit the schema, or its role."""
    schema, name = routing.schema, routing.index.type_names[number]
    misfit = None if batch is None else find_split_misfit(routing.roles.of(name), key, cells)
    if schema is not None and misfit is None:
        misfit = find_misfit(schema.nodes.get(name, OwnerSchema(())), f"node type {name!r}", key, cells)
    if misfit is not None:
        place = "" if batch is None else routing.locator.node_place(batch.first_node + int(rows[misfit.row]))
        raise DataError(misfit.message, place=place, fix=misfit.fix)


def _route_aligned_nodes(routing: Routing, number: int, key: ColumnKey, runs: AlignedRuns | FileColumn) -> None:
    name = routing.index.type_names[number]
    if isinstance(runs, FileColumn) and _leave_aligned(routing, number, key, runs):
        return
    if routing.index.raw_kinds[number] == "string":
        raise DataError(
            f"column {key.name!r} goes by raw ID, but those of node type {name!r} are strings",
            fix=_by_id(name, key),
        )
    rows = (chunk[0].astype(np.uint64) for chunk in runs.read())
    space = routing.index.space(number)
    for place, (at, cells) in zip(space.resolve(rows, routing.pool, routing.memory.cap_bytes), runs.read(), strict=True):
        missing = (place.typed < 0) | (place.types != number)
        if missing.any():
            row = int(at[np.argmax(missing)])
            raise DataError(
                f"column {key.name!r}: row {row} is for the node with raw ID {row}, which is not a node of type {name!r}",
                fix=f"give it a row for each raw ID 0..n-1, or {_by_id(name, key)}",
            )
        _check_nodes(routing, number, key, cells, None, place.typed)
        target = routing.node_column(number, key, (name, key) in routing.decoded.aligned_scalars)
        target.add(place.typed, None, cells, routing.index.part_offsets[number])


def _leave_aligned(routing: Routing, number: int, key: ColumnKey, column: FileColumn) -> bool:
    """Leave a column in its files, where rows there are nodes in the order of the store; return whether they are."""
    space = routing.index.space(number)
    if space.rows is not None or space.num_nodes != column.num_rows:
        return False
    _check_nodes(routing, number, key, column.sample(), None, np.zeros(1, np.int64))
    target = routing.node_column(number, key, (routing.index.type_names[number], key) in routing.decoded.aligned_scalars)
    if target.ordered is None or not target.ordered.adopt(column):
        return False
    target.stats.add_all(column.sample(), np.diff(routing.index.part_offsets[number]))
    return True


def _leave_edge_column(routing: Routing, relation: Relation, key: ColumnKey, column: FileColumn) -> None:
    """Leave a column in its files where the rows there are all edges of one type, in the order of edge IDs.

    What is to be written while they are built must fit in memory; else the values are scattered with the edges.
    """
    sources, names = routing.decoded.sources, routing.index.type_names
    if sources.nodes != "identity" or relation not in sources.edge_types or routing.schema is not None:
        return  # edges may be dropped, or have several types
    code = sources.edge_types.index(relation)
    if sources.num_edges is None or sources.num_edges[code] != column.num_rows:
        return
    route = routing.edge_route((code, names.index(str(relation.src_type)), names.index(str(relation.dst_type))))
    target = routing.edge_column(route, key, (relation, key) in routing.decoded.aligned_scalars)
    if target.ordered is not None:
        target.ordered.adopt(column)


def count_left(routing: Routing) -> None:
    """Count the rows of edge columns that stay in their files, once edges are counted, and put them in the input's order."""
    ranks = {of: rank for rank, of in enumerate(routing.decoded.aligned)}
    for route in routing.routed.edges.values():
        files = [(column, column.ordered.file) for column in route.columns.values() if column.ordered is not None]
        left = [(column, file) for column, file in files if file is not None]
        for column, file in left:
            column.stats.add_all(file.sample(), route.primary_counts)
        relation = routing.decoded.relations[route.relation]
        if any((relation, key) in ranks for key in route.columns):  # also those that were asked first and did not stay
            order = sorted((ranks.get((relation, key), -1), at, key) for at, key in enumerate(route.columns))
            columns = [(key, route.columns[key]) for _, _, key in order]
            route.columns.clear()
            route.columns.update(columns)


def _by_id(name: str, key: ColumnKey) -> str:
    return f"attach it by the column of the file that holds IDs: --node-data {name}:{key.name}=FILE@COL"


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
