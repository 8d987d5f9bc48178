"""The types and columns of the store: settled once all rows are scattered, those included that no row brought a value for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from graphprep.convert.build.write import Settled, TypedEdges, TypedNodes
from graphprep.convert.columns.routes import CREATED_KEY, NUM_SLOTS, ColumnRoute, EdgeRoute, StoredColumn
from graphprep.convert.columns.schema_guard import key_of
from graphprep.convert.decoded.rows import BatchColumn, Decoded
from graphprep.convert.index.node_index import NodeIndex
from graphprep.convert.run import Run
from graphprep.convert.shuffle.route import Routed, Routing
from graphprep.convert.shuffle.route_nodes import count_left
from graphprep.model.errors import DataError
from graphprep.model.graph_schema import GraphSchema, OwnerSchema
from graphprep.model.protocols import DeclaredColumn
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import ColumnSchema, EdgeType, Kind, edge_type_text
from graphprep.store.assign import order_types
from graphprep.store.columns.cells import scalar_cells
from graphprep.store.columns.densify import DenseNames, dense_shape

_ROLE_ORDER = ("weight", "time", "created_at", "removed_at", "created")
InputColumns = dict[ColumnKey, BatchColumn]  # in input order
Columns = dict[ColumnKey, ColumnRoute]


def columns(run: Run, routing: Routing) -> Settled:
    """Settle the types and columns of the rows that were scattered, and give columns their roles."""
    plan, decoded, index, roles = routing.plan, routing.decoded, routing.index, routing.roles
    complete(routing)
    decoded.close()
    nodes, edges = settle(decoded, index, routing.routed, plan.schema, run.options.densify)
    if run.options.edge_id_col:
        from graphprep.store.columns.edge_ids import check_edge_id_columns

        found = {edge.name: [column.schema for column in edge.columns] for edge in edges}
        check_edge_id_columns(found, run.options.edge_id_col, "--edge-id-col")
    made = Settled(plan, decoded, index, nodes, edges, routing.amounts.most_bytes, routing.routed.num_dropped_edges)
    if not roles.owners:
        return made
    from graphprep.convert.roles.role_columns import give_roles

    return give_roles(run, routing, made)


# ---------------------------------------------------------------------------------------------------- room for columns


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
        keys.append(ColumnKey("weight", "numbers", routing.options.weight_dtype, role="weight"))
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
    _order_input_columns(routing)
    if routing.schema is not None:
        _declare_schema(routing, routing.schema)
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
    routes: list[tuple[str | EdgeType, Columns]]
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


def _order_input_columns(routing: Routing) -> None:
    """Order the columns that blocks of the input bring as the input does, and give those of one name one dtype.

    A block's numbers are the narrowest that hold all of its cells, those of other types and of dropped edges too; so what the
    rows of one type are decoded to, and when a column has its first value, depends on how the input is cut into blocks.
    """
    decoded = routing.decoded
    nodes: dict[str, InputColumns] = {}  # by role of spans
    edges: dict[str, InputColumns] = {}
    roles: dict[int | None, set[str]] = {None: set()}
    for batch in decoded.batches:
        role = decoded.sources.spans[batch.span].role
        roles.setdefault(batch.relation, set()).add(role)
        _collect(nodes.setdefault(role, {}), batch.node_columns)
        _collect(edges.setdefault(role, {}), batch.edge_columns)
    empty = {"time"} if decoded.sources.always_weighted else {"weight", "time"}
    for number, node_route in enumerate(routing.routed.nodes):
        name = f"nodes {routing.index.type_names[number]}"
        for key, column in nodes.get(name, {}).items():
            routing.node_column(number, key, column.scalar)
        drops = None if name in nodes else empty
        _order(node_route.columns, nodes, {"nodes", name}, drops, partial(routing.node_column, number))
    for route in routing.routed.edges.values():
        drops = None if decoded.relations[route.relation] in decoded.sources.edge_types else empty
        own = roles.get(route.relation, set()) | roles[None]
        _order(route.columns, edges, own, drops, partial(routing.edge_column, route))


def _collect(found: InputColumns, columns: Iterable[BatchColumn]) -> None:
    for column in columns:
        if column.key.slot is None and column.key.role is None:
            known = found.get(column.key, column)
            has_values, scalar = known.has_values or column.has_values, known.scalar or column.scalar
            found[column.key] = column._replace(has_values=has_values, scalar=scalar)


def _order(
    columns: Columns,
    found: Mapping[str, InputColumns],
    roles: set[str],
    drops: set[str] | None,
    column_of: Callable[[ColumnKey], ColumnRoute],
) -> None:
    """Put a type's columns into the order in which spans of these roles have them, with all dtypes that have values there.

    Others stay behind, as they are. ``drops`` is None where the input declares the type; of one that only the data names,
    columns of the input, and of these roles, go where it has no value of them.
    """
    if not columns:
        return
    own: InputColumns = {}
    for role, some in found.items():
        if role in roles:
            _collect(own, some.values())
    if drops is not None:
        filled = {(key.role, key.name) for key, column in columns.items() if column.stats.rows.any()}
        for key in [key for key in columns if (key in own or key.role in drops) and (key.role, key.name) not in filled]:
            del columns[key]
    names = set(map(attrgetter("name"), columns))
    by_name: dict[str, list[tuple[ColumnKey, ColumnRoute]]] = {}
    for key, column in own.items():
        by_name.setdefault(key.name, [])
        if column.has_values and key.name in names:
            (columns.get(key) or column_of(key)).stats.is_seen = True
    for item in columns.items():
        by_name.setdefault(item[0].name, []).append(item)
    columns.clear()
    columns.update(chain.from_iterable(by_name.values()))


def _mark_created(routing: Routing) -> None:
    for number, created in routing.index.created.items():
        column = routing.node_column(number, CREATED_KEY)
        for (typed,) in created.read(0):
            column.add(typed, None, scalar_cells(np.ones(typed.size, bool)), routing.index.part_offsets[number])


# ---------------------------------------------------------------------------------------------------- kinds and shapes


class _Owner(NamedTuple):
    """A node or edge type, and what is known of its columns. ``densify``: sparse ones that are stored dense."""

    words: str
    num_rows: int
    columns: Columns
    decoded: Decoded
    created_weight: float
    densify: DenseNames | None


def settle(
    decoded: Decoded, index: NodeIndex, routed: Routed, schema: GraphSchema | None, densify: Sequence[str]
) -> tuple[list[TypedNodes], list[TypedEdges]]:
    """Settle all columns, and the order of the edge types: the schema's, else by (relation, source type, destination type).

    ``densify`` names sparse columns that are stored dense.
    """
    types, sources, relations = index.type_names, decoded.sources, list(map(attrgetter("name"), decoded.relations))
    dense = DenseNames(densify) if densify else None
    nodes, edges = [], []
    for number, name in enumerate(types):
        node = routed.nodes[number]
        named = dense and dense.of(name)
        owner = _Owner(f"node type {name!r}", node.num_rows, node.columns, decoded, sources.created_weight, named)
        stored = _settle_owner(owner) if schema is None else _settle_by_schema(owner, schema.nodes[name], schema.place)
        nodes.append(TypedNodes(name, number, node, stored))
    found: list[tuple[EdgeType, EdgeRoute]] = []
    for code, src, dst in sorted(routed.edges):
        found.append(((types[src], relations[code], types[dst]), routed.edges[code, src, dst]))
    if schema is not None:
        found.sort(key=lambda one: schema.edge_types.index(one[0]))
    elif len(found) > 1 and not sources.edge_types:
        order = order_types(sorted(set(relations)))
        found.sort(key=lambda one: (order.index(one[0][1]), one[1].src_type, one[1].dst_type))
    for edge_type, edge in found:
        name = edge_type_text(edge_type)
        owner = _Owner(f"edge type {name!r}", edge.num_edges, edge.columns, decoded, 0.0, dense and dense.of(name))
        stored = _settle_owner(owner) if schema is None else _settle_by_schema(owner, schema.edges[edge_type], schema.place)
        edges.append(TypedEdges(edge_type, name, edge, stored))
    if dense is not None:
        dense.check()
    return nodes, edges


def _settle_owner(owner: _Owner) -> tuple[StoredColumn, ...]:
    """Decide a type's stored columns: kinds, shapes, names. Order and names are those of docs/store.md, "Columns"."""
    plain: dict[str, list[ColumnKey]] = {}
    slots: dict[int, list[ColumnKey]] = {}
    roles: dict[str, list[ColumnKey]] = {}
    for key in owner.columns:
        if key == NUM_SLOTS:
            continue
        if key.role is not None:
            roles.setdefault(key.role, []).append(key)
        elif key.slot is not None:
            slots.setdefault(key.slot, []).append(key)
        else:
            plain.setdefault(key.name, []).append(key)
    stored = []
    for role in _ROLE_ORDER:
        stored += [_role_column(owner, role, roles[role])] if role in roles else []
    for slot in sorted(slots):
        stored += _slot_columns(owner, slots[slot])
    for name, keys in plain.items():
        stored.append(_settle_column(owner, name, keys))
    return tuple(stored)


def _role_column(owner: _Owner, role: str, keys: Sequence[ColumnKey]) -> StoredColumn:
    fill = {"weight": owner.created_weight, "removed_at": -1.0}.get(role, 0.0)
    may_lack = role == "time" or (role == "weight" and not owner.decoded.sources.always_weighted)
    optional = may_lack and _num_present(owner, keys) < owner.num_rows
    schema = ColumnSchema(role, "dense", keys[0].dtype, (), optional, role=role, unit=_unit(role, keys))
    return StoredColumn(schema, tuple(keys), 0.0 if optional else fill)


def _unit(name: str, keys: Sequence[ColumnKey]) -> str | None:
    """Return the unit of a column's dates and times.

    Raises DataError where there are several.
    """
    units = set(map(attrgetter("unit"), keys))
    if len(units) > 1:
        named = ", ".join(sorted(unit or "none" for unit in units))
        raise DataError(
            f"column {name!r} has several units: {named}", fix="write all its values in one unit, or drop the column"
        )
    return keys[0].unit


def _num_present(owner: _Owner, keys: Iterable[ColumnKey]) -> int:
    present = 0
    for key in keys:
        present += int(owner.columns[key].stats.rows.sum())
    return present


def _kind(owner: _Owner, keys: Sequence[ColumnKey]) -> tuple[Kind, tuple[int, ...]]:
    """Settle the kind and item shape of values that lie under some keys of one family.

    Numbers are dense where all present rows have one length, else ragged.
    """
    key, family = keys[0], keys[0].family
    if family == "sparse":
        return "sparse", (key.width,) if key.width else ()
    if family in ("binary", "temporal"):
        return ("binary" if family == "binary" else "temporal"), ()
    lengths: set[int] = set()
    codes: set[int] = set()
    for one in keys:
        stats = owner.columns[one].stats
        if stats.scalar:
            return "dense", ()
        if stats.max_count >= 0:
            lengths |= {stats.min_count, stats.max_count}
            codes |= stats.shape_codes
    if not lengths:
        declared = owner.columns[key].stats.declared_shape
        return "dense", (0,) if declared is None else declared
    if len(lengths) > 1:
        return "ragged", ()
    code = codes.pop() if len(codes) == 1 else 0
    return "dense", owner.decoded.shapes[key].shapes[code - 1] if code else (lengths.pop(),)


def _slot_columns(owner: _Owner, keys: Sequence[ColumnKey]) -> list[StoredColumn]:
    """Name the columns of one slot; several kinds, dtypes or widths of it become several columns."""
    groups: dict[tuple[str, str, int], ColumnKey] = {(key.family, key.dtype, key.width): key for key in keys}
    kinds = {(family, dtype) for family, dtype, _ in groups}
    widths = {width for family, _, width in groups if family == "sparse"}
    stored = []
    for (_, dtype, width), key in groups.items():
        kind, shape = _kind(owner, [key])
        name = key.name
        if len(kinds) > 1:
            name += f"_{kind}_{dtype}"
        if kind == "sparse" and len(widths) > 1:
            name += f"_w{width}"
        stored.append(StoredColumn(_schema(owner, name, kind, dtype, shape, [key]), (key,)))
    return sorted(stored, key=lambda column: column.schema.name)


def _settle_column(owner: _Owner, name: str, keys: Sequence[ColumnKey]) -> StoredColumn:
    """Settle an input column: int64 with float64 becomes float64, a column without values takes what the others are."""
    used = []
    for key in keys:
        stats = owner.columns[key].stats
        used += [key] if stats.is_seen or stats.rows.any() else []
    used = used or list(keys[:1])
    _unit(name, used)
    dtypes = set(map(attrgetter("dtype"), used))
    dtype = used[0].dtype if len(dtypes) == 1 else "float64"
    kind, shape = _kind(owner, used)
    return StoredColumn(_schema(owner, name, kind, dtype, shape, used), tuple(used))


def _schema(
    owner: _Owner, name: str, kind: Kind, dtype: str, shape: tuple[int, ...], keys: Sequence[ColumnKey]
) -> ColumnSchema:
    if kind == "sparse" and owner.densify is not None and owner.densify.has(name):
        kind, shape = "dense", dense_shape(name, dtype, shape, [owner.columns[key].stats.bounds for key in keys])
    optional = _num_present(owner, keys) < owner.num_rows
    end = (any(owner.columns[key].stats.any_end for key in keys) or None) if kind == "temporal" else None
    return ColumnSchema(name, kind, dtype, shape, optional, slot=keys[0].slot, end=end, unit=keys[0].unit)


def _settle_by_schema(owner: _Owner, schema: OwnerSchema, place: str) -> tuple[StoredColumn, ...]:
    """Return a type's stored columns as the schema states them.

    Raises DataError where a column that is not optional is missing from rows.
    """
    stored = []
    for column in schema.columns:
        keys = [key for key in owner.columns if schema.column_for(key) == column]
        if column.role == "split":
            stored += [_settle_column(owner, column.name, keys)] if keys else []
            continue
        present = _num_present(owner, keys)
        fill = {"weight": owner.created_weight, "removed_at": -1.0}.get(column.role or "", 0.0)
        filled = column.role in ("weight", "created_at", "removed_at", "created")
        if present < owner.num_rows and not column.optional and not filled:
            raise DataError(
                f"column {column.name!r} of {owner.words} is missing from {owner.num_rows - present} of {owner.num_rows} rows",
                place=place,
                fix='add the values, or say "optional": true in the schema',
            )
        stored.append(StoredColumn(column, tuple(keys), 0.0 if column.optional else fill))
    created = [key for key in owner.columns if key.role == "created"]
    if created and not any(column.role == "created" for column in schema.columns):
        stored.append(StoredColumn(ColumnSchema("created", "dense", "bool", role="created"), tuple(created)))
    return tuple(stored)
