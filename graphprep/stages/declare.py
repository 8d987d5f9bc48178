"""Make room for types and columns that exist although no row brought a value."""

from __future__ import annotations

import numpy as np

from graphprep.model.graph_schema import GraphSchema, OwnerSchema
from graphprep.model.protocols import DeclaredColumn
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import ColumnSchema
from graphprep.stages.cells import scalar_cells
from graphprep.stages.observe import CREATED_KEY
from graphprep.stages.route import Routing
from graphprep.stages.schema_guard import key_of


def complete(routing: Routing, has_times: bool) -> None:
    """Add the columns that types have although no row brought a value."""
    sources = routing.decoded.sources
    for code, relation in enumerate(sources.edge_types):
        if relation.src_type is not None and relation.dst_type is not None:
            names = routing.index.type_names
            routing.edge_route((code, names.index(relation.src_type), names.index(relation.dst_type)))
    keys = []
    if sources.always_weighted:
        keys.append(ColumnKey("weight", "numbers", routing.rules.weight_dtype, role="weight"))
    if has_times:
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
    _declare_empty(routing)
    if routing.rules.schema is not None:
        _declare_schema(routing, routing.rules.schema)
    _mark_created(routing)
    routing.factory.desk.clear()


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


def _declare_empty(routing: Routing) -> None:
    """Make room for the columns of files that have a header but no edges."""
    names = routing.index.type_names
    for batch in routing.decoded.batches:
        relation = None if batch.relation is None else routing.decoded.relations[batch.relation]
        if batch.num_edges or relation is None or relation.src_type is None or relation.dst_type is None:
            continue
        key = (batch.relation or 0, names.index(relation.src_type), names.index(relation.dst_type))
        for column in batch.edge_columns:
            routing.edge_column(routing.edge_route(key), column.key, column.scalar)


def _mark_created(routing: Routing) -> None:
    for number, created in routing.index.created.items():
        column = routing.node_column(number, CREATED_KEY)
        for (typed,) in created.read(0):
            column.add(typed, None, scalar_cells(np.ones(typed.size, bool)), routing.index.part_offsets[number])
