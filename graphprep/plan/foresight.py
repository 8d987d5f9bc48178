"""The graph that an input will be, as far as samples show it: its types and columns, for what refuses some of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from graphprep.convert.columns.roles import OwnerRoles, match_types
from graphprep.convert.decoded.rows import IdSpaces
from graphprep.convert.read.plan import Plan
from graphprep.convert.run import Run
from graphprep.model.errors import GraphprepError, UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Sources
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import ColumnSchema, EdgeType, EdgeTypeSchema, Kind, NodeTypeSchema, edge_type_text
from graphprep.plan.sample import take_heads
from graphprep.plan.tally import ColumnTally, Tally, tally
from graphprep.store.assign import order_types
from graphprep.store.columns.densify import DenseNames

_ROLE_ORDER = ("weight", "time", "created_at", "removed_at")
Owner = str | EdgeType
Keys = dict[ColumnKey, ColumnTally]


def foresee(run: Run, known: Plan, num_parts: int) -> GraphMetadata | None:
    """Look at the beginning of each kind of file of an input that is about to be decoded.

    Returns None where that does not tell the types, where it is a stream, and where something is wrong there: decoding says
    what, and where.
    """
    whole: list[bool] = []
    try:
        if any(map(run.storage.is_arriving, {span.url for span in known.input.sources.spans})):
            return None
        found = tally(take_heads(run, known.input, whole), IdSpaces(known.input.sources).of_end)
    except GraphprepError:
        return None
    return foreseen_graph(run.options, known, found, num_parts, is_whole=all(whole))


def foreseen_graph(
    options: ConvertOptions, known: Plan, found: Tally, num_parts: int, *, is_whole: bool
) -> GraphMetadata | None:
    """Return the metadata of the store as samples have it, with a node and an edge of each type: its numbers are not known.

    Returns None where there may be types that samples do not show, so that nobody knows whether the graph has several.
    """
    columns: dict[Owner, Sequence[ColumnSchema]]
    if known.fixed is not None:
        columns = {name: own.columns for name, own in known.fixed.nodes.items()}
        columns |= {edge_type: own.columns for edge_type, own in known.fixed.edges.items()}
        node_types, edge_types = known.fixed.node_types, known.fixed.edge_types
    else:
        types = _types(options, known.input.sources, found, is_whole=is_whole)
        if types is None:
            return None
        node_types, edge_types = types
        try:
            roles = match_types(known.flags, node_types)
        except UsageError:  # of which ``convert`` knows more
            return None
        columns = {}
        counts: dict[Owner, float] = {}
        seen: list[tuple[str | Relation, float]] = [*found.node_rows.items(), *found.edges.items()]
        for of, number in seen:
            counts[_owner(of, node_types)] = counts.get(_owner(of, node_types), 0.0) + number
        owners: tuple[Owner, ...] = (*node_types, *edge_types)
        for owner in owners:
            keys = _keys(owner, node_types, known.input.sources, found)
            own = list(_columns(owner, keys, counts.get(owner, 0.0), options))
            columns[owner] = _with_roles(own, roles.of(owner), known.input.sources, is_edge=not isinstance(owner, str))
    chunks = (1, *[0] * (num_parts - 1))
    return GraphMetadata(
        graph_name="",
        node_types=node_types,
        edge_types=edge_types,
        num_nodes_per_chunk=(chunks,) * len(node_types),
        num_edges_per_chunk=(chunks,) * len(edge_types),
        num_parts=num_parts,
        partition_by=options.partition_by,
        layouts=options.layouts,
        node_schemas=tuple(NodeTypeSchema("identity", tuple(columns[name])) for name in node_types),
        edge_schemas=tuple(
            EdgeTypeSchema(
                options.neighbor_order, "int32", "int32" if options.edge_ids else None, None, "", tuple(columns[one])
            )
            for one in edge_types
        ),
        parts=(),
    )


def _types(
    options: ConvertOptions, sources: Sources, found: Tally, *, is_whole: bool
) -> tuple[tuple[str, ...], tuple[EdgeType, ...]] | None:
    """Return the node and edge types; None where these are not known, and not even that there are several."""
    declared = [node.name for node in sources.node_types]
    nodes = (*declared, *order_types(sorted(set(found.node_rows) - set(declared))))
    ends = nodes[0] if len(nodes) == 1 and is_whole else ""
    relations = dict.fromkeys((*sources.edge_types, *found.edges))
    edges = tuple(dict.fromkeys((one.src_type or ends, one.name, one.dst_type or ends) for one in relations))
    if any(not (src and dst) for src, _, dst in edges):
        return None
    are_all = is_whole or (sources.nodes != "records" and len(nodes) == len(declared) == len(sources.node_types))
    are_all = (are_all and set(found.edges) <= set(sources.edge_types)) or is_whole
    are_all = are_all and (options.missing_node_type is None or options.missing_node_type in nodes)
    return (nodes, edges) if are_all or len(nodes) > 1 or len(edges) > 1 else None


def _keys(owner: Owner, node_types: Sequence[str], sources: Sources, found: Tally) -> Keys:
    """Return the columns of a type as they travel, those first that the input declares."""
    keys: Keys = {}
    for declared in sources.columns:
        if declared.owner == owner:
            keys[declared.key] = ColumnTally(shapes={declared.item_shape})
    seen = {key.name for key in keys}
    for (of, key), column in found.columns.items():
        if not column.rows or _owner(of, node_types) != owner:
            continue
        if key.name in seen:  # what was declared of its dtype holds where there are no values
            keys = {one: had for one, had in keys.items() if one.name != key.name or had.rows}
        keys[key] = column
    roles = ["weight"] * sources.always_weighted + ["created_at", "removed_at"] * sources.has_times
    for role in roles:
        if all(key.role != role for key in keys):
            keys[ColumnKey(role, "numbers", "float32" if role == "weight" else "int64", role=role)] = ColumnTally()  # type: ignore[arg-type]
    return keys


def _owner(of: str | Relation, node_types: Sequence[str]) -> Owner:
    only = node_types[0] if len(node_types) == 1 else ""
    return of if isinstance(of, str) else (of.src_type or only, of.name, of.dst_type or only)


# ---------------------------------------------------------------------------------------------------- columns


def _columns(owner: Owner, keys: Keys, rows: float, options: ConvertOptions) -> Iterator[ColumnSchema]:
    """Yield a type's columns as ``settle`` names and orders them; ``rows`` are its nodes or edges, 0: nobody counts them."""
    dense = DenseNames(options.densify).of(owner if isinstance(owner, str) else edge_type_text(owner))
    for role in _ROLE_ORDER:
        for key, column in keys.items():
            if key.role == role:
                dtype = options.weight_dtype if role == "weight" else key.dtype
                optional = role in ("weight", "time") and 0 < column.rows < rows
                yield ColumnSchema(role, "dense", dtype, (), optional, role=role, unit=key.unit)
                break
    plain: dict[str, Keys] = {}
    slots: dict[int, Keys] = {}
    for key, column in keys.items():
        if key.role is None:
            own = plain.setdefault(key.name, {}) if key.slot is None else slots.setdefault(key.slot, {})
            own[key] = column
    of_slots = [one for slot in sorted(slots) for one in _slot_columns(slots[slot], rows)]
    for one in (*of_slots, *(_column(name, some, rows) for name, some in plain.items())):
        is_dense = one.kind == "sparse" and dense.has(one.name)
        yield replace(one, kind="dense", item_shape=(1,)) if is_dense else one


def _slot_columns(keys: Keys, rows: float) -> list[ColumnSchema]:
    """Settle the columns of one slot: several kinds, dtypes or widths of it become several columns."""
    kinds = {(key.family, key.dtype) for key in keys}
    widths = {key.width for key in keys if key.family == "sparse"}
    columns = []
    for key, column in keys.items():
        one = _column(key.name, {key: column}, rows)
        name = f"{one.name}_{one.kind}_{one.dtype}" if len(kinds) > 1 else one.name
        name += f"_w{key.width}" if one.kind == "sparse" and len(widths) > 1 else ""
        columns.append(replace(one, name=name))
    return sorted(columns, key=lambda one: one.name)


def _column(name: str, keys: Keys, rows: float) -> ColumnSchema:
    """Settle one column: texts where any are, float64 where dtypes differ."""
    optional = 0 < sum(one.rows for one in keys.values()) < rows
    guesses = set[str | None]().union(*(one.guesses for one in keys.values())) - {None, "nulls"}
    key = next(iter(keys))
    families = {one.family for one in keys}
    if len(guesses) > 1 or (len(families) > 1 and "binary" in families):
        return ColumnSchema(name, "binary", "uint8", (), optional)
    dtypes = {one.dtype for one in keys}
    kind, shape = _kind(key, list(keys.values()))
    return ColumnSchema(name, kind, key.dtype if len(dtypes) == 1 else "float64", shape, optional, key.slot, unit=key.unit)


def _kind(key: ColumnKey, columns: Sequence[ColumnTally]) -> tuple[Kind, tuple[int, ...]]:
    """Return the kind and item shape of values; numbers are dense where all rows have one length, else ragged."""
    if key.family != "numbers":
        return key.family, (key.width,) if key.family == "sparse" and key.width else ()
    shapes = set[tuple[int, ...] | None]().union(*(one.shapes for one in columns))
    lengths = set[int]().union(*(one.lengths for one in columns))
    if () in shapes:
        return "dense", ()
    if len(lengths) > 1:
        return "ragged", ()
    shape = shapes.pop() if len(shapes) == 1 else None
    return "dense", shape if shape is not None else tuple(lengths)


# ---------------------------------------------------------------------------------------------------- roles


def _with_roles(columns: list[ColumnSchema], roles: OwnerRoles, sources: Sources, *, is_edge: bool) -> list[ColumnSchema]:
    """Return columns with the roles that flags give them; texts that are to be labels or categories are whole numbers then."""
    labels = {flag.columns[0] for flag in roles.labels}
    coded = {flag.columns[0] for flag in roles.categories} | ({sources.edge_category} if is_edge else set())
    split = (
        roles.split.columns if roles.split is not None else (sources.edge_split,) if is_edge and sources.edge_split else None
    )
    found = []
    for one in columns:
        role = "label" if one.name in labels else one.role
        if one.name in labels | coded and one.kind == "binary":
            found.append(ColumnSchema(one.name, "dense", "int64", (), one.optional, one.slot, role, categories=()))
        elif split is not None and one.name in split:
            found += [ColumnSchema(one.name, "dense", "int8", (), one.optional, one.slot, "split")] * (len(split) == 1)
        else:
            found.append(replace(one, role=role))
    if split is not None and len(split) != 1:
        found.append(ColumnSchema("split", "dense", "int8", role="split"))
    return [*found, *[ColumnSchema("seeds", "dense", "bool", role="seeds")] * bool(roles.seeds)]
