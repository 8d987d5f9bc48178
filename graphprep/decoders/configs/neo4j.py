"""CSV files with the headers of ``neo4j-admin database import``."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from graphprep.decoders.looks.formats import is_neo4j_header
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.graph_config import EdgeTable, GraphConfig, IdType, NodeTable, TableConfig
from graphprep.storage.faults import display_url

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_SPACE = "global"  # the ID space of headers that name none
_HEAD_BYTES = 1 << 16  # holds a header, and shows whether there is more
_FIELD = re.compile(r"(?P<name>.*?)(?::(?P<kind>[A-Za-z_]+(?:\[\])?)(?:\((?P<space>[^()]*)\))?(?:\{(?P<options>.*)\})?)?", re.S)
_KEYS = ("ID", "START_ID", "END_ID", "LABEL", "TYPE", "IGNORE")
_HEADER_NAME = re.compile(r"[-_. ]?headers?[-_. ]?", re.I)
_SUFFIX = re.compile(r"(?:\.(?:csv|tsv|txt|gz|gzip|bz2|xz|zst))+$", re.I)
_ID_TYPE = re.compile(r"\bid-type\s*:\s*['\"]?(\w+)")
_DTYPES = {
    "int": "int32",
    "long": "int64",
    "short": "int16",
    "byte": "int8",
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "date": "date",
    "localdatetime": "timestamp[us]",
    "datetime": "timestamp[us]",
    **dict.fromkeys(("string", "char", "point", "time", "localtime", "duration"), "binary"),
}


@dataclass(frozen=True)
class Neo4jTables:
    """Reads folders and files for ``neo4j-admin database import``; also its ``LABEL=header.csv,part1.csv,part2.csv``.

    A file whose only line is a header belongs to the files that are called like it, less ``header``. The type of a node is its
    first label, that of files without ``:LABEL`` or ``:TYPE`` their name. Every row is a node, whichever columns other files of
    its type have. The ID is the raw ID, whether it has a name or not; ``id_type`` is that of headers that say none.
    ``delimiter`` stands between columns.

    Source: Neo4j Operations Manual, "CSV header format".
    """

    id_type: Literal["int", "uint", "string", "auto"] = "auto"
    delimiter: str = ","
    quote: bool | None = None

    name: ClassVar[str] = "neo4j"
    takes_folder: ClassVar[bool] = True

    def read_config(self, storage: Storage, urls: Sequence[str]) -> GraphConfig:
        """Read the headers.

        Raises DataError at a header's field that means nothing, UsageError for files without a header.
        """
        delimiter = self.delimiter.replace("\\t", "\t").replace("TAB", "\t")
        groups = [group for url in urls for group in _groups(storage, url, delimiter)]
        dialect = TableConfig(format="csv", delimiter=delimiter, quote=self.quote, list_delimiter=";")
        tables = [table for group in groups for table in _tables(group, dialect)]
        nodes = [table for table in tables if isinstance(table, NodeTable)]
        types = _types_by_space(nodes)
        edges = [_settle_ends(table, types) for table in tables if isinstance(table, EdgeTable)]
        if not tables:
            raise UsageError("no file has a header with :ID or :START_ID", place=", ".join(map(display_url, urls)))
        return GraphConfig(tuple(nodes), tuple(edges), id_type=self.id_type, place=groups[0].header.place)


# ---------------------------------------------------------------------------------------------------- headers


@dataclass(frozen=True)
class _Field:
    """A field of a header: ``name:kind(space){options}``. ``at`` is its position among the columns."""

    name: str
    kind: str
    space: str | None
    options: str
    at: int

    @property
    def selector(self) -> str:
        """Return what selects the column, whatever it is called."""
        return f"col_{self.at}"


@dataclass(frozen=True)
class _Header:
    """A file's first line. ``is_alone``: there is no other."""

    url: str
    fields: tuple[_Field, ...]
    is_alone: bool

    @property
    def place(self) -> str:
        """Return where the header stands."""
        return f"{display_url(self.url)}:1:1"

    def all_of(self, kind: str) -> list[_Field]:
        """Return the fields of a kind."""
        return [field for field in self.fields if field.kind == kind]

    def one_of(self, kind: str) -> _Field | None:
        """Return the only field of a kind, None where there is none.

        Raises DataError where there are several.
        """
        found = self.all_of(kind)
        if len(found) > 1:
            fix = "join them in one column" if kind in ("ID", "START_ID", "END_ID") else "leave one"
            raise DataError(f"{len(found)} fields are :{kind}", place=self.place, fix=fix)
        return found[0] if found else None


@dataclass(frozen=True)
class _Group:
    """A header, and the files without one that have its columns. ``labels`` are given beside the files."""

    header: _Header
    parts: tuple[str, ...]
    labels: tuple[str, ...]
    name: str


def _read_header(storage: Storage, url: str, delimiter: str) -> _Header | None:
    """Read a file's first line; None where it is no header.

    Raises DataError.
    """
    head = storage.head(url, _HEAD_BYTES)
    first, _, rest = head.partition(b"\n")
    if not is_neo4j_header(first):
        return None
    place = f"{display_url(url)}:1:1"
    try:
        cells = next(csv.reader([first.decode().rstrip("\r")], delimiter=delimiter))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"this header cannot be read: {error}", place=place, fix="write it as UTF-8 CSV") from None
    fields = tuple(_field(cell, i, place) for i, cell in enumerate(_with_options(cells, delimiter)))
    return _Header(url, fields, not rest.strip())


def _with_options(cells: Sequence[str], delimiter: str) -> list[str]:
    """Join what a delimiter between braces has cut: ``:ID{id-type:int,label:A}`` is one field."""
    joined: list[str] = []
    for cell in cells:
        if joined and joined[-1].count("{") > joined[-1].count("}"):
            joined[-1] += delimiter + cell
        else:
            joined.append(cell)
    return joined


def _field(text: str, at: int, place: str) -> _Field:
    found = _FIELD.fullmatch(text.strip())
    name, kind = (found["name"], found["kind"] or "string") if found else (text.strip(), "string")
    base = kind.removesuffix("[]")
    if kind not in _KEYS and base.lower() not in _DTYPES:
        fix = one_of((*_DTYPES, *_KEYS), found=kind)
        raise DataError(f"field {text!r}: no type named {kind!r}", place=place, fix=fix)
    kind = kind if kind in _KEYS else kind.lower()
    return _Field(name, kind, found["space"] if found else None, (found["options"] or "") if found else "", at)


# ---------------------------------------------------------------------------------------------------- files


def _groups(storage: Storage, url: str, delimiter: str) -> Iterator[_Group]:
    """Yield the headers of a folder or glob, of a file, or of ``LABELS=header,part,part``, with their files.

    Raises UsageError for files without a header.
    """
    if not storage.exists(url) and ("," in url or "=" in url):
        yield _listed_group(storage, url, delimiter)
        return
    headers: list[_Header] = []
    bare: list[str] = []
    for file in storage.expand([url]).files:
        header = _read_header(storage, file, delimiter)
        if header is None:
            bare.append(file)
        else:
            headers.append(header)
    parts = _parts_by_header(headers, bare)
    for header in headers:
        yield _Group(header, tuple(parts.get(header.url, ())), (), _stem(header.url))


def _listed_group(storage: Storage, text: str, delimiter: str) -> _Group:
    """Read ``[LABEL[:LABEL]=]FILE[,FILE...]``: the first file begins with the header of all."""
    labels, equals, rest = text.partition("=")
    files = (rest if equals else text).split(",")
    header = _read_header(storage, files[0], delimiter)
    if header is None:
        raise UsageError(
            "the first line is no header with :ID or :START_ID",
            place=f"{display_url(files[0])}:1:1",
            fix="name its header first",
        )
    names = tuple(name for name in labels.split(":") if name) if equals else ()
    parts = [file for name in files[1:] for file in storage.expand([name]).files]
    return _Group(header, tuple(parts), names, _stem(files[0]))


def _parts_by_header(headers: Sequence[_Header], bare: Sequence[str]) -> dict[str, list[str]]:
    """Give each file without a header the header file that it is called like; the longest name wins."""
    alone = {_stem(header.url): header for header in headers if header.is_alone}
    parts: dict[str, list[str]] = {}
    for file in bare:
        near = [stem for stem in alone if _stem(file).startswith(stem)]
        if not near:
            raise UsageError(
                "the first line is no header with :ID or :START_ID, and no header file is called like this",
                place=f"{display_url(file)}:1:1",
                fix="call the header file like it, with -header behind, or name both: header.csv,part.csv",
            )
        parts.setdefault(alone[max(near, key=len)].url, []).append(file)
    return parts


def _stem(url: str) -> str:
    """Return a file's name without its endings and without ``header``."""
    return _HEADER_NAME.sub("", _SUFFIX.sub("", url.rpartition("/")[2]))


# ---------------------------------------------------------------------------------------------------- tables


def _tables(group: _Group, dialect: TableConfig) -> Iterator[NodeTable | EdgeTable]:
    """Yield a table for the header's own file, where it has rows or is the only one, and one for the other files."""
    header = group.header
    table = replace(
        dialect,
        columns=tuple(_dtypes(header)),
        renamed=tuple((field.selector, field.name) for field in _properties(header)),
        dropped=tuple(field.selector for field in header.all_of("IGNORE")),
        place=header.place,
    )
    if not header.is_alone or not group.parts:
        yield _table(group, replace(table, files=(header.url,), header="yes"))
    if group.parts:
        names = tuple(field.name or f":{field.kind}" for field in header.fields)
        yield _table(group, replace(table, files=group.parts, header="no", names=names))


def _properties(header: _Header) -> list[_Field]:
    return [field for field in header.fields if field.kind not in _KEYS and field.name]


def _dtypes(header: _Header) -> Iterator[tuple[str, str]]:
    """Yield the dtypes of the properties; lists of texts stay texts."""
    for field in _properties(header):
        dtype = _DTYPES[field.kind.removesuffix("[]")]
        is_list = field.kind.endswith("[]") and not dtype.startswith(("binary", "date", "timestamp"))
        yield field.selector, f"list<{dtype}>" if is_list else dtype if not field.kind.endswith("[]") else "binary"


def _table(group: _Group, table: TableConfig) -> NodeTable | EdgeTable:
    """Make the table of a header's files.

    Raises DataError where the header has neither kind's fields, or both.
    """
    header = group.header
    start, end = header.one_of("START_ID"), header.one_of("END_ID")
    if (start is None) != (end is None):
        raise DataError(
            f"there is no field :{'END_ID' if start else 'START_ID'}", place=header.place, fix="add it to the header"
        )
    if start is None or end is None:
        return _node_table(group, table)
    kind = header.one_of("TYPE") if not group.labels else None
    dropped = tuple(field.selector for field in header.all_of("TYPE") if kind is None)
    id_types = {_id_type(field, header) for field in (start, end)} - {None}
    return EdgeTable(
        src_type=None,
        relation=(group.labels[0] if group.labels else group.name) if kind is None else None,
        dst_type=None,
        table=replace(table, dropped=table.dropped + dropped, id_type=id_types.pop() if len(id_types) == 1 else None),
        relation_col=None if kind is None else kind.selector,
        src_col=start.selector,
        dst_col=end.selector,
        src_space=start.space or _SPACE,
        dst_space=end.space or _SPACE,
    )


def _node_table(group: _Group, table: TableConfig) -> NodeTable:
    header = group.header
    key, label = header.one_of("ID"), header.one_of("LABEL")
    if key is None:
        raise DataError(
            "nodes without :ID have no edges", place=header.place, fix="name the column of the ID, or leave the file out"
        )
    is_typed = bool(group.labels) or label is None
    dropped = (label.selector,) if label is not None and group.labels else ()
    return NodeTable(
        type=(group.labels[0] if group.labels else group.name) if is_typed else None,
        table=replace(table, dropped=table.dropped + dropped, id_type=_id_type(key, header)),
        type_col=None if is_typed or label is None else label.selector,
        type_delimiter=None if is_typed else ";",
        id_col=key.selector,
        space=key.space or _SPACE,
        declares=True,
    )


def _id_type(field: _Field, header: _Header) -> IdType | None:
    """Return what a header's ``{id-type: …}`` says; None where it says nothing."""
    found = _ID_TYPE.search(field.options)
    if found is None:
        return None
    kinds: dict[str, IdType] = {"int": "int", "long": "int", "integer": "int", "string": "string", "actual": "uint"}
    if found[1].lower() not in kinds:
        raise DataError(f"no id-type named {found[1]!r}", place=header.place, fix="use int, long or string")
    return kinds[found[1].lower()]


def _types_by_space(nodes: Sequence[NodeTable]) -> dict[str, set[str | None]]:
    types: dict[str, set[str | None]] = {}
    for node in nodes:
        types.setdefault(node.space or _SPACE, set()).add(node.type)
    return types


def _settle_ends(edge: EdgeTable, types: dict[str, set[str | None]]) -> EdgeTable:
    """Give the ends their type where only one has IDs in their space.

    Raises DataError where none has.
    """
    found: list[str | None] = []
    for space in (edge.src_space or _SPACE, edge.dst_space or _SPACE):
        if space not in types:
            what = "without a space" if space == _SPACE else f"of the ID space {space!r}"
            raise DataError(f"there is no node file with IDs {what}", place=edge.table.place, fix="name the node files, too")
        found.append(next(iter(types[space])) if len(types[space]) == 1 else None)
    src, dst = found
    return replace(
        edge,
        src_type=src,
        dst_type=dst,
        src_space=edge.src_space if src is None else None,
        dst_space=edge.dst_space if dst is None else None,
    )


__all__ = ["Neo4jTables"]
