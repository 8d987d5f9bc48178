"""Which column of a table is what: its IDs, its type, its features and their dtypes."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from graphprep.decoders.cells.columns import IdKind, refuse_twins
from graphprep.decoders.looks.text_head import find_ends
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import EdgeTable, NodeTable, TableConfig
from graphprep.model.rows import Relation

_POSITION = re.compile(r"(?:col_)?([0-9]+)", re.ASCII)
_LIST = re.compile(r"list<(.+)>(?:\[([0-9]+)\])?", re.ASCII)
_TIMESTAMP = re.compile(r"timestamp\[(s|ms|us|ns)\]")
_DTYPES = "bool, int8 to int64, uint8 to uint64, float16 to float64, binary, date, timestamp[s|ms|us|ns], or list<dtype>"


@dataclass(frozen=True)
class ColumnType:
    """A column's dtype: NumPy's name, or ``binary`` for text.

    With a ``unit``, texts are dates (``day``) or timestamps, stored as int64. ``is_list``: each cell holds several values,
    ``size`` of them where that is fixed.
    """

    dtype: str
    unit: str | None = None
    is_list: bool = False
    size: int | None = None


def parse_type(name: str, text: str) -> ColumnType:
    """Read a dtype as ``--column NAME=dtype`` and configs have it.

    Raises UsageError.
    """
    if text in ("binary", "string"):
        return ColumnType("binary")
    if text == "date":
        return ColumnType("int64", "day")
    if stamp := _TIMESTAMP.fullmatch(text):
        return ColumnType("int64", stamp[1])
    if (listed := _LIST.fullmatch(text)) and "<" not in listed[1]:
        item = parse_type(name, listed[1])
        if item.dtype != "binary" and item.unit is None:
            return ColumnType(item.dtype, is_list=True, size=None if listed[2] is None else int(listed[2]))
    try:
        found = np.dtype(text)
    except (TypeError, ValueError):
        found = np.dtype(object)
    if found.kind not in "biuf" or found.itemsize > 8:
        raise UsageError(f"--column {name}: no dtype named {text!r}", fix=f"use {_DTYPES}")
    return ColumnType(found.name)


@dataclass(frozen=True)
class FeatureColumn:
    """A column that is stored. ``source`` is its name in the file; ``type`` None: found in the data."""

    name: str
    source: str
    position: int
    type: ColumnType | None = None


@dataclass(frozen=True)
class IdField:
    """Where raw IDs stand. ``position`` None: they are the rows' numbers, from ``first`` on."""

    name: str
    position: int | None
    kind: IdKind = "uint"
    first: int = 0


@dataclass(frozen=True)
class NodeOwner:
    """Whose rows a node table holds.

    ``type`` None: ``type_col`` names each row's, or what stands before ``type_delimiter`` in its cell. ``declares`` False:
    others declare the nodes.
    """

    type: str | None
    type_delimiter: str | None = None
    declares: bool = True


@dataclass(frozen=True)
class TableLayout:
    """Where everything stands in one file. Positions count from 0.

    ``ids`` are the node's ID, or the source and the destination. ``owner`` is a relation for edges; where ``label`` is a
    position, it is that of the column which names each row's type or relation. ``names`` are the columns' names, in the order
    of the file. ``nulls`` are spellings of an absent cell beside the empty one.
    """

    owner: NodeOwner | Relation
    ids: tuple[IdField, ...]
    features: tuple[FeatureColumn, ...]
    names: tuple[str, ...]
    label: int | None = None
    weight: int | None = None
    time: FeatureColumn | None = None
    time_unit: str | None = None
    weight_dtype: str = "float32"
    nulls: tuple[bytes, ...] = ()
    list_delimiter: str | None = None

    @property
    def used(self) -> list[int]:
        """Return the positions of the columns that are read, ascending."""
        places = [*(field.position for field in self.ids), self.label, self.weight, self.time.position if self.time else None]
        places += [column.position for column in self.features]
        return sorted({place for place in places if place is not None})

    def with_types(self, types: Mapping[str, ColumnType]) -> TableLayout:
        """Return the layout with the dtypes of some stored columns decided, by name."""
        features = (dataclasses.replace(column, type=types.get(column.name, column.type)) for column in self.features)
        return dataclasses.replace(self, features=tuple(features))


@dataclass(frozen=True)
class Header:
    """The columns of a file: their names, and whether these are its own or only ``col_<position>``."""

    url: str
    names: tuple[str, ...]
    named: bool

    def find(self, option: str, selector: str, place: str) -> int:
        """Return the position of the column that an option names.

        Raises UsageError where there is none, or several.
        """
        if self.names.count(selector) == 1:
            return self.names.index(selector)
        if self.names.count(selector) > 1:
            raise UsageError(
                f"{option} {selector}: {self.url} has several columns of this name",
                place=place,
                fix="give the column's position, from 0",
            )
        position = _POSITION.fullmatch(selector)
        if position and int(position[1]) < len(self.names):
            return int(position[1])
        known = f"its columns are {', '.join(self.names)}"
        if not self.named:
            known = f"it has no header, so name its columns by position, 0 to {len(self.names) - 1}, or pass --header yes"
        raise UsageError(f"{option} {selector}: {self.url} has no such column", place=place, fix=known)

    def has(self, selector: str) -> bool:
        """Return whether a name or position is that of a column."""
        position = _POSITION.fullmatch(selector)
        return selector in self.names or (position is not None and int(position[1]) < len(self.names))


def names_a_column(selector: str | None) -> bool:
    """Return whether an option names a column by its name, so that there must be a header."""
    return selector is not None and not _POSITION.fullmatch(selector)


@dataclass
class Choice:
    """The columns of one file while it is settled what they are; ``used`` says for each position what it is used for."""

    header: Header
    table: TableConfig
    place: str
    used: dict[int, str]

    @classmethod
    def of(cls, header: Header, table: TableConfig, place: str) -> Choice:
        """Begin with no column used."""
        return cls(header, table, place, {})

    def take(self, option: str, selector: str, use: str) -> int:
        """Find a column and note what it is used for.

        Raises UsageError where it is not there, or used already.
        """
        position = self.header.find(self.option(option), selector, self.table.place)
        if position in self.used:
            raise UsageError(
                f"{self.option(option)} {selector}: this column of {self.header.url} is {self.used[position]} already",
                place=self.table.place,
                fix="use each column once",
            )
        self.used[position] = use
        return position

    def take_if(self, option: str, selector: str | None, use: str) -> int | None:
        """Take a column that may be left out."""
        return None if selector is None else self.take(option, selector, use)

    def take_key(self, option: str, selector: str | None, default: int | None, use: str) -> int:
        """Take a key column: the one that is named, else the default where it is free, else the first that is.

        Raises DataError where no column is left.
        """
        if selector is not None:
            return self.take(option, selector, use)
        free = [place for place in range(len(self.header.names)) if place not in self.used]
        if not free:
            is_text = self.place != self.header.url
            fix = "name the character between the columns with --delimiter, or add the column" if is_text else "add the column"
            raise DataError(f"no column is left for {use}", place=self.place, fix=fix)
        position = default if default is not None and default in free else free[0]
        self.used[position] = use
        return position

    def option(self, name: str) -> str:
        """Return an option as it was given: a flag, or a key of a config."""
        is_flag = not self.table.place or self.table.place.startswith("--")
        return f"--{name.replace('_', '-')}" if is_flag else name


def node_layout(choice: Choice, nodes: NodeTable, weight_dtype: str) -> TableLayout:
    """Settle a node table's columns.

    Raises UsageError, DataError.
    """
    label = choice.take_if("type_col", nodes.type_col, "the type") if nodes.type is None else None
    weight = choice.take_if("weight_col", nodes.weight_col, "the weight")
    key = None
    if not nodes.row_ids:
        key = choice.take_key("id_col", nodes.id_col, _place_of(choice.header.names, "id"), "the ID")
    ids = (IdField("id" if key is None else choice.header.names[key], key),)
    owner = NodeOwner(nodes.type, nodes.type_delimiter)
    return _layout(choice, owner, ids, label=label, weight=weight, weight_dtype=weight_dtype)


def _place_of(names: tuple[str, ...], *wanted: str) -> int | None:
    """Return the position of the first wanted name that is there."""
    return next((names.index(name) for name in wanted if name in names), None)


def edge_layout(choice: Choice, edges: EdgeTable, weight_dtype: str) -> TableLayout:
    """Settle an edge table's columns.

    Raises UsageError, DataError.
    """
    label = choice.take_if("relation_col", edges.relation_col, "the relation") if edges.relation is None else None
    weight = choice.take_if("weight_col", edges.weight_col, "the weight")
    time = choice.take_if("time_col", edges.time_col, "the time")
    if edges.dst_col is not None:
        choice.take("dst_col", edges.dst_col, "the destination")
    names = choice.header.names
    ends = find_ends(names) or (_place_of(names, "src", "source"), _place_of(names, "dst", "target"))
    src = choice.take_key("src_col", edges.src_col, ends[0], "the source")
    dst = [place for place, use in choice.used.items() if use == "the destination"]
    last = dst[0] if dst else choice.take_key("dst_col", None, ends[1], "the destination")
    ids = tuple(IdField(choice.header.names[place], place) for place in (src, last))
    owner = Relation(edges.relation or "", edges.src_type, edges.dst_type, edges.src_space, edges.dst_space)
    layout = _layout(choice, owner, ids, label=label, weight=weight, weight_dtype=weight_dtype)
    if time is None:
        return layout
    name = choice.header.names[time]
    refuse_twins([*(column.name for column in layout.features), "time"], choice.place)
    stamp = FeatureColumn(name, name, time, _declared(choice).get(time))
    return dataclasses.replace(layout, time=stamp, time_unit=edges.time_unit)


def _layout(
    choice: Choice,
    owner: NodeOwner | Relation,
    ids: tuple[IdField, ...],
    *,
    label: int | None,
    weight: int | None,
    weight_dtype: str,
) -> TableLayout:
    features = _features(choice)
    refuse_twins([column.name for column in features] + ["weight"] * (weight is not None), choice.place)
    return TableLayout(
        owner=owner,
        ids=ids,
        features=features,
        names=choice.header.names,
        label=label,
        weight=weight,
        weight_dtype=weight_dtype,
        nulls=tuple(text.encode() for text in choice.table.nulls),
        list_delimiter=choice.table.list_delimiter,
    )


def _features(choice: Choice) -> tuple[FeatureColumn, ...]:
    """List the columns that are stored: what is left, less those that are dropped."""
    header, table = choice.header, choice.table
    dropped = {header.find("", name, "") for name in table.dropped if header.has(name)}
    kept = None if table.kept is None else {header.find("kept", name, table.place) for name in table.kept}
    renamed = {header.find("", old, ""): new for old, new in table.renamed if header.has(old)}
    declared = _declared(choice)
    return tuple(
        FeatureColumn(renamed.get(place, name), name, place, declared.get(place))
        for place, name in enumerate(header.names)
        if place not in choice.used and place not in dropped and (kept is None or place in kept)
    )


def _declared(choice: Choice) -> dict[int, ColumnType]:
    """Return the dtypes that are asked for, by position; a later one wins."""
    header = choice.header
    return {header.find("", name, ""): parse_type(name, dtype) for name, dtype in choice.table.columns if header.has(name)}
