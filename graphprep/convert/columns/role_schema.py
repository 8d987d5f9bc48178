"""Labels, splits and seeds where a schema is fixed beforehand: what the input must look like for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from graphprep.convert.columns.roles import Owner, OwnerRoles, RoleFlag, Roles, owner_words
from graphprep.model.errors import DataError
from graphprep.model.graph_schema import GraphSchema, OwnerSchema
from graphprep.model.schema import ColumnSchema

_MADE = ("split", "seeds")  # roles of columns that are not in the input


def input_schema(schema: GraphSchema, roles: Roles) -> tuple[GraphSchema, Roles]:
    """Return the schema of the input, before its columns get roles, and all roles: those of flags and those of the schema.

    A column with the role ``split`` in what is returned may have any values that name parts. Raises DataError where flags and
    schema contradict each other.
    """
    all_roles: dict[Owner, OwnerRoles] = {}
    owners: list[tuple[Owner, OwnerSchema]] = [*schema.nodes.items(), *schema.edges.items()]
    for owner, columns in owners:
        own = _with_schema_roles(owner, columns, roles.of(owner), schema.place)
        _check_flags(owner, columns, own, schema.place)
        all_roles[owner] = own
    for owner in roles.owners:
        all_roles.setdefault(owner, roles.of(owner))
    nodes = {name: _as_input(columns, all_roles[name]) for name, columns in schema.nodes.items()}
    edges = {name: _as_input(columns, all_roles[name]) for name, columns in schema.edges.items()}
    return replace(schema, nodes=nodes, edges=edges), Roles({owner: own for owner, own in all_roles.items() if own.flags})


def _with_schema_roles(owner: Owner, columns: OwnerSchema, own: OwnerRoles, place: str) -> OwnerRoles:
    """Add the roles that only the schema states."""
    asked = {name for flag in own.flags for name in flag.columns}
    for column in columns.columns:
        flag_place = f"{place}: column {column.name!r} of {owner_words(owner)}"
        if column.role == "label" and column.name not in asked:
            own = replace(own, labels=(*own.labels, RoleFlag("label", flag_place, owner, (column.name,))))
        elif column.role is None and column.categories is not None and column.name not in asked:
            own = replace(own, categories=(*own.categories, RoleFlag("category", flag_place, owner, (column.name,))))
        elif column.role == "split" and own.split is None:
            own = replace(own, split=RoleFlag("split", flag_place, owner, (column.name,)))
        elif column.role == "seeds" and not own.seeds:
            message = f"{owner_words(owner)} has seeds, but no file of them is named"
            raise DataError(message, place=place, fix="add --seeds, or drop the column from the schema")
    return own


def _check_flags(owner: Owner, columns: OwnerSchema, own: OwnerRoles, place: str) -> None:
    """Raise DataError for a flag whose column the schema does not have in that role."""
    for flag in own.flags:
        for name in _stored_names(flag):
            found = next((column for column in columns.columns if column.name == name), None)
            if flag.role == "category":
                _check_category(owner, name, found, flag, place)
            elif found is None or found.role != flag.role:
                what = "is not there" if found is None else f"has the role {found.role or 'none'}"
                raise DataError(
                    f"column {name!r} of {owner_words(owner)} {what}, but {flag.place} asks for the role {flag.role}",
                    place=place,
                    fix=f'say "role": "{flag.role}" in the schema, or leave out the flag',
                )


def _check_category(owner: Owner, name: str, found: ColumnSchema | None, flag: RoleFlag, place: str) -> None:
    if found is None or found.role is not None or found.categories is None:
        what = "is not there" if found is None else "has no categories of its own"
        raise DataError(
            f"column {name!r} of {owner_words(owner)} {what}, but {flag.place} asks for them",
            place=place,
            fix='list the names as its "categories" in the schema, or leave out the flag',
        )


def _stored_names(flag: RoleFlag) -> tuple[str, ...]:
    """Return the names in the store of the columns that a flag makes."""
    return (flag.role,) if flag.role in _MADE and len(flag.columns) != 1 else flag.columns


def _as_input(columns: OwnerSchema, own: OwnerRoles) -> OwnerSchema:
    return replace(columns, columns=tuple(found for column in columns.columns for found in _input_columns(column, own)))


def _input_columns(column: ColumnSchema, own: OwnerRoles) -> Iterator[ColumnSchema]:
    """Yield the columns of the input that a column of the store is made of."""
    if column.role == "label":
        is_text = column.categories is not None
        yield replace(column, role=None, kind="binary", dtype="uint8") if is_text else replace(column, role=None)
    elif column.role == "split" and own.split is not None:
        for name in filter(None, own.split.columns):
            slot = column.slot if own.split.columns == (column.name,) else None
            yield ColumnSchema(name, "dense", "int8", optional=True, slot=slot, role="split")
    elif column.role is None and column.categories is not None:
        yield replace(column, kind="binary", dtype="uint8")
    elif column.role != "seeds":
        yield column
