"""Make room for types and columns that exist although no row brought a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter

import numpy as np

from graphprep.convert.columns.observe import CREATED_KEY
from graphprep.convert.columns.routes import ColumnRoute
from graphprep.convert.columns.schema_guard import key_of
from graphprep.convert.decoded.rows import BatchColumn
from graphprep.convert.shuffle.route import Routing
from graphprep.convert.shuffle.route_nodes import count_left
from graphprep.model.graph_schema import GraphSchema, OwnerSchema
from graphprep.model.protocols import DeclaredColumn, Sources
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import ColumnSchema, EdgeType
from graphprep.store.columns.cells import scalar_cells


def complete(routing: Routing) -> None:
    """Add the columns that types have although no row brought a value."""
    if routing.decoded.aligned:
        count_left(routing)
    sources = routing.decoded.sources
    for code, relation in enumerate(sources.edge_types):
        if relation.src_type is not None and relation.dst_type is not None:
            names = routing.index.type_names
            routing.edge_route((code, names.index(relation.src_type), names.index(relation.dst_type)))
    keys = []
    if sources.always_weighted:
        keys.append(ColumnKey("weight", "numbers", routing.rules.weight_dtype, role="weight"))
    # Either time, on any row, makes both on all types.
    roles = set(map(attrgetter("role"), routing.decoded.column_bytes))
    if sources.has_times or roles & {"created_at", "removed_at"}:
        keys += [
            ColumnKey("created_at", "numbers", "int64", role="created_at"),
            ColumnKey("removed_at", "numbers", "int64", role="removed_at"),
        ]
    for key in keys:
        for number in range(len(routing.routed.nodes)):
            routing.node_column(number, key)
        for route in routing.routed.edges.values():
            routing.edge_column(route, key)
    for declared in sources.columns:
        _declare(routing, declared)
    if sources.columns:
        _order_declared(routing)
    _declare_empty(routing)
    _settle_input_columns(routing)
    if routing.rules.schema is not None:
        _declare_schema(routing, routing.rules.schema)
    if routing.index.created:
        _mark_created(routing)
    routing.factory.write_buffer.clear()


def _declare_schema(routing: Routing, schema: GraphSchema) -> None:
    """Make room for every type and column of the schema, also where no row has it."""
    names = routing.index.type_names
    for name, owner in schema.nodes.items():
        for column in _with_values(owner):
            routing.node_column(names.index(name), key_of(column))
    for (src, relation, dst), owner in schema.edges.items():
        route = routing.edge_route((_relation_code(routing, relation, src, dst), names.index(src), names.index(dst)))
        for column in _with_values(owner):
            routing.edge_column(route, key_of(column))


def _with_values(owner: OwnerSchema) -> tuple[ColumnSchema, ...]:
    """Return the columns whose values are known to travel under one key."""
    return tuple(column for column in owner.columns if column.role != "split")


def _relation_code(routing: Routing, name: str, src: str, dst: str) -> int:
    for relation in (Relation(name, src, dst), Relation(name)):
        if relation in routing.decoded.relations:
            return routing.decoded.relations.index(relation)
    routing.decoded.relations.append(Relation(name))
    return len(routing.decoded.relations) - 1


def _declare(routing: Routing, declared: DeclaredColumn) -> None:
    names = routing.index.type_names
    if isinstance(declared.owner, str):
        column = routing.node_column(names.index(declared.owner), declared.key)
    else:
        src, name, dst = declared.owner
        relation = routing.decoded.relations.index(Relation(name, src, dst))
        column = routing.edge_column(routing.edge_route((relation, names.index(src), names.index(dst))), declared.key)
    column.stats.declared_shape = declared.item_shape


def _order_declared(routing: Routing) -> None:
    """Put declared columns into the order of their declarations, in the places that they have together."""
    names = routing.index.type_names
    ranks: dict[str | EdgeType, dict[str, int]] = {}
    for declared in routing.decoded.sources.columns:
        own = ranks.setdefault(declared.owner, {})
        own.setdefault(declared.key.name, len(own))
    routes: list[tuple[str | EdgeType, dict[ColumnKey, ColumnRoute]]]
    routes = [(names[number], route.columns) for number, route in enumerate(routing.routed.nodes)]
    routes += [(routing.edge_type(route), route.columns) for route in routing.routed.edges.values()]
    for owner, columns in routes:
        rank = ranks.get(owner, {})
        ordered = iter(sorted((key for key in columns if key.name in rank), key=lambda key: rank[key.name]))
        keys = [next(ordered) if key.name in rank else key for key in columns]
        items = [(key, columns[key]) for key in keys]
        columns.clear()
        columns.update(items)


def _declare_empty(routing: Routing) -> None:
    """Make room for the columns of files that have a header but no edges, or whose edges were all dropped."""
    names = routing.index.type_names
    declared = set(routing.decoded.sources.edge_types)
    for batch in routing.decoded.batches:
        relation = None if batch.relation is None else routing.decoded.relations[batch.relation]
        if relation is None or relation.src_type is None or relation.dst_type is None:
            continue
        if batch.num_edges and relation not in declared:
            continue
        key = (batch.relation or 0, names.index(relation.src_type), names.index(relation.dst_type))
        for column in batch.edge_columns:
            routing.edge_column(routing.edge_route(key), column.key, column.scalar)


InputColumns = dict[ColumnKey, BatchColumn]  # in input order


def _settle_input_columns(routing: Routing) -> None:
    """Order the columns that blocks of the input bring as the input does, and give those of one name one dtype.

    A block's numbers are the narrowest that hold all of its cells, those of other types and of dropped edges too; so what the
    rows of one type are decoded to, and when a column has its first value, depends on how the input is cut into blocks.
    """
    decoded = routing.decoded
    nodes: dict[str, InputColumns] = {}  # by role of spans
    edges: dict[str, InputColumns] = {}
    roles: dict[int | None, set[str]] = {}
    for batch in decoded.batches:
        role = decoded.sources.spans[batch.span].role
        roles.setdefault(batch.relation, set()).add(role)
        _collect(nodes.setdefault(role, {}), batch.node_columns)
        _collect(edges.setdefault(role, {}), batch.edge_columns)
    for number, node_route in enumerate(routing.routed.nodes):
        name = f"nodes {routing.index.type_names[number]}"
        for key, column in nodes.get(name, {}).items():
            routing.node_column(number, key, column.scalar)
        if node_route.columns:
            own = _of_roles(nodes, {"nodes", name})
            if name not in nodes:
                _drop_empty(node_route.columns, own, decoded.sources)
            _settle_columns(node_route.columns, own, partial(routing.node_column, number))
    for edge_route in routing.routed.edges.values():
        if edge_route.columns:
            own = _of_roles(edges, roles.get(edge_route.relation, set()) | roles.get(None, set()))
            if decoded.relations[edge_route.relation] not in decoded.sources.edge_types:
                _drop_empty(edge_route.columns, own, decoded.sources)
            _settle_columns(edge_route.columns, own, partial(routing.edge_column, edge_route))


def _collect(found: InputColumns, columns: Iterable[BatchColumn]) -> None:
    for column in columns:
        if column.key.slot is None and column.key.role is None:
            known = found.get(column.key, column)
            has_values, scalar = known.has_values or column.has_values, known.scalar or column.scalar
            found[column.key] = column._replace(has_values=has_values, scalar=scalar)


def _of_roles(found: dict[str, InputColumns], roles: set[str]) -> InputColumns:
    own: InputColumns = {}
    for role, columns in found.items():
        if role in roles:
            _collect(own, columns.values())
    return own


def _drop_empty(columns: dict[ColumnKey, ColumnRoute], found: InputColumns, sources: Sources) -> None:
    """Take away the input's columns, weights and times too, that a type, which only the data names, has no value of."""
    filled = {(key.role, key.name) for key, column in columns.items() if column.stats.rows.any()}
    roles = {"time"} if sources.always_weighted else {"weight", "time"}
    for key in [key for key in columns if (key in found or key.role in roles) and (key.role, key.name) not in filled]:
        del columns[key]


def _settle_columns(
    columns: dict[ColumnKey, ColumnRoute], found: InputColumns, column_of: Callable[[ColumnKey], ColumnRoute]
) -> None:
    """Put columns into the order of the input, with all dtypes that have values there; others stay behind, as they are."""
    names = set(map(attrgetter("name"), columns))
    ranks: dict[str, int] = {}
    for key, column in found.items():
        ranks.setdefault(key.name, len(ranks))
        if column.has_values and key.name in names:
            column_of(key).stats.is_seen = True
    ordered = sorted(columns.items(), key=lambda item: ranks.get(item[0].name, len(ranks)))
    columns.clear()
    columns.update(ordered)


def _mark_created(routing: Routing) -> None:
    for number, created in routing.index.created.items():
        column = routing.node_column(number, CREATED_KEY)
        for (typed,) in created.read(0):
            column.add(typed, None, scalar_cells(np.ones(typed.size, bool)), routing.index.part_offsets[number])
