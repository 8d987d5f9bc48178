"""A graph config to spans: looks at every file of every table, and settles what its columns are."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphprep.decoders.cells.arrays_files import ArraySource, is_npz
from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.looks.text_head import refuse_wide
from graphprep.decoders.tables.columns import (
    Choice,
    ColumnType,
    Header,
    NodeOwner,
    TableLayout,
    edge_layout,
    names_a_column,
    node_layout,
)
from graphprep.decoders.tables.head import FileKind, TableHead, kind_of, look_at_text
from graphprep.decoders.tables.types import OtherKeys, StoredType, settle_types
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.graph_config import EdgeTable, NodeTable, TableConfig
from graphprep.model.protocols import Span
from graphprep.storage.faults import display_url

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage


@dataclass(frozen=True)
class TableFile:
    """A file that was looked at. ``layout`` is None where it has no records.

    ``stored`` are the types of its columns by name where the file has any, ``held`` those of its IDs. ``num_rows`` is -1
    where it is not known. ``others`` says what becomes of keys that only later JSON lines have; ``arrays`` are
    those of an archive, by name.
    """

    url: str
    kind: FileKind
    layout: TableLayout | None = None
    head: TableHead | None = None
    stored: Mapping[str, StoredType] = field(default_factory=dict)
    held: tuple[IdKind | None, ...] = ()
    num_rows: int = -1
    doubt: str = ""
    others: OtherKeys | None = None
    arrays: tuple[tuple[str, ArraySource], ...] = ()

    @property
    def shown(self) -> str:
        """Return the file's name for messages."""
        return display_url(self.url)


@dataclass(frozen=True)
class PlannedTable:
    """A table and its files. ``role`` groups tables in which a column of one name has one dtype."""

    table: NodeTable | EdgeTable
    config: TableConfig
    role: str
    files: tuple[TableFile, ...]
    messages: tuple[str, ...] = ()

    @property
    def layouts(self) -> list[TableLayout]:
        """Return the layouts of the files that have records."""
        return [file.layout for file in self.files if file.layout is not None]


def look_at_table(
    storage: Storage, table: NodeTable | EdgeTable, config: TableConfig, role: str, base: str, weight_dtype: str
) -> PlannedTable:
    """Look at all files of a table, and settle their columns.

    Raises DataError where files disagree, UsageError for columns that are not there, StorageError for missing files.
    """
    expanded = storage.expand([url if url == "-" else storage.join(base, url) for url in config.files])
    look = _Look(storage, table, config, weight_dtype)
    files = tuple(look.file(url) for url in expanded.files)
    _refuse_other_columns(files)
    doubts = tuple(file.doubt for file in files if file.doubt)
    return PlannedTable(table, config, role, files, (*expanded.messages, *doubts))


@dataclass
class _Look:
    """Looks at the files of one table; ``known`` is the header of the first that has one."""

    storage: Storage
    table: NodeTable | EdgeTable
    config: TableConfig
    weight_dtype: str
    known: Header | None = None

    def file(self, url: str) -> TableFile:
        """Look at one file."""
        kind = kind_of(self.storage, url, self.config)
        if kind in ("parquet", "arrow"):
            return self._arrow(url, kind)
        if kind == "jsonl":
            return self._json(url)
        if kind == "text":
            return self._text(url)
        if is_npz(self.storage.head(url, 4)):
            return self._archive(url)
        raise DataError(
            "this file holds an array, not a table",
            place=display_url(url),
            fix="attach arrays with --node-data TYPE:NAME=FILE or --edge-data SRC:REL:DST:NAME=FILE",
        )

    def _text(self, url: str) -> TableFile:
        head = look_at_text(self.storage, url, self.config, self._named(), self.known)
        if head.header is None:
            return TableFile(url, "text", head=head)
        if head.header.named and self.known is None:
            self.known = head.header
        layout = self._layout(head.header, f"{display_url(url)}:{head.first_line}:1")
        return TableFile(url, "text", layout, head, doubt=head.doubt, held=(None,) * len(layout.ids))

    def _arrow(self, url: str, kind: FileKind) -> TableFile:
        from graphprep.decoders.cells.arrow import read_schema
        from graphprep.decoders.tables.arrow import check_keys, check_schema, held_ids, stored_types

        shown = display_url(url)
        with self.storage.open(url) as handle:
            schema, num_rows = read_schema(handle, shown, parquet=kind == "parquet")
        refuse_wide(self.storage, shown, len(schema.names))
        header = Header(shown, tuple(schema.names), True)
        self.known = self.known or header
        layout = self._layout(header, shown)
        with self.storage.open(url) as handle:
            check_keys(handle, schema, layout, shown, parquet=kind == "parquet")
        check_schema(schema, layout, shown)
        held = tuple(held_ids(schema, field) for field in layout.ids)
        return TableFile(url, kind, layout, None, stored_types(schema, layout), held, num_rows)

    def _archive(self, url: str) -> TableFile:
        from graphprep.decoders.tables.arrays import find_columns, schema_of
        from graphprep.decoders.tables.arrow import check_schema, held_ids, stored_types

        shown = display_url(url)
        sources = find_columns(self.storage, url, self.config.dropped)
        schema = schema_of(sources)
        if isinstance(self.table, NodeTable) and self.table.id_col is None and "id" not in sources:
            self.table = dataclasses.replace(self.table, row_ids=True)
        layout = self._layout(Header(shown, tuple(sources), True), shown)
        check_schema(schema, layout, shown)
        held = tuple(held_ids(schema, field) for field in layout.ids)
        num_rows = max((source.shape[0] for source in sources.values()), default=0)
        return TableFile(
            url,
            "arrays",
            layout,
            stored=stored_types(schema, layout),
            held=held,
            num_rows=num_rows,
            arrays=tuple(sources.items()),
        )

    def _json(self, url: str) -> TableFile:
        from graphprep.decoders.tables.json import look_at_json

        found = look_at_json(self.storage, url)
        if found is None:
            return TableFile(url, "jsonl")
        refuse_wide(self.storage, f"{display_url(url)}:1:1", len(found.names))
        header = Header(display_url(url), found.names, True)
        self.known = self.known or header
        layout = self._layout(header, f"{display_url(url)}:1:1")
        held = tuple(None if field.position is None else found.held(field.name) for field in layout.ids)
        others = OtherKeys.of(self.config)
        return TableFile(url, "jsonl", layout, held=held, stored=found.stored(layout), others=others)

    def _layout(self, header: Header, place: str) -> TableLayout:
        choice = Choice.of(header, self.config, place)
        if isinstance(self.table, NodeTable):
            return node_layout(choice, self.table, self.weight_dtype)
        return edge_layout(choice, self.table, self.weight_dtype)

    def _named(self) -> list[str]:
        """Return what options call by name: keys, and columns of this table alone."""
        table, config = self.table, self.config
        if isinstance(table, NodeTable):
            given = [table.id_col, table.type_col, table.weight_col]
        else:
            given = [table.src_col, table.dst_col, table.relation_col, table.weight_col, table.time_col]
        given += [name for name, _ in config.renamed]
        return [name for name in given if name is not None and names_a_column(name)]


def _refuse_other_columns(files: Sequence[TableFile]) -> None:
    """Raise DataError where a file of a table has other columns than the first one; those of JSON lines may be missing."""
    found = [file for file in files if file.layout is not None and file.kind != "jsonl"]
    for file in found[1:]:
        names, expected = ({column.source for column in item.layout.features} for item in (file, found[0]) if item.layout)
        if names == expected:
            continue
        extra, missing = sorted(names - expected), sorted(expected - names)
        what = f"column {extra[0]!r} is here, but not" if extra else f"column {missing[0]!r} is not here, but"
        raise DataError(
            f"{what} in {found[0].shown}",
            place=file.shown,
            fix=f"give all files of a table the same columns, or pass --drop-column {(extra or missing)[0]}",
        )


def settle_group(tables: Sequence[PlannedTable], widened: Mapping[str, str]) -> list[PlannedTable]:
    """Settle the dtypes of the columns that all tables of a role share.

    Declared dtypes win; then what files store holds for text, too; ``widened`` (by name) comes last. Raises DataError where
    two files disagree.
    """
    stored = [(file.shown, file.stored) for table in tables for file in table.files]
    types = settle_types(stored)
    types.update((name, ColumnType(dtype)) for name, dtype in widened.items() if name not in types)
    settled = []
    for table in tables:
        files = [_with_types(file, types) for file in table.files]
        settled.append(dataclasses.replace(table, files=tuple(files)))
    return settled


def _with_types(file: TableFile, types: Mapping[str, ColumnType]) -> TableFile:
    if file.layout is None:
        return file
    open_types = {
        column.name: types[column.name] for column in file.layout.features if not column.type and column.name in types
    }
    others = None if file.others is None else file.others.with_types(types)
    return dataclasses.replace(file, layout=file.layout.with_types(open_types), others=others)


def with_kinds(layout: TableLayout, kinds: Sequence[IdKind]) -> TableLayout:
    """Return the layout with its IDs read as these kinds."""
    ids = tuple(dataclasses.replace(field, kind=kind) for field, kind in zip(layout.ids, kinds, strict=True))
    return dataclasses.replace(layout, ids=ids)


def spans_of(storage: Storage, table: PlannedTable, kinds: Sequence[IdKind], *, declares: bool) -> Iterator[Span]:
    """Scatter a span for each file of a table; ``declares``: its rows declare nodes."""
    first = 0
    for number, file in enumerate(table.files):
        if file.layout is None:
            continue
        layout = with_kinds(file.layout, kinds)
        if isinstance(layout.owner, NodeOwner):
            layout = dataclasses.replace(layout, owner=dataclasses.replace(layout.owner, declares=declares))
        is_numbered = layout.ids[0].position is None
        if is_numbered:
            layout = dataclasses.replace(layout, ids=(dataclasses.replace(layout.ids[0], first=first),))
        keys = tuple(None if field.position is None else field.name for field in layout.ids)
        span = dataclasses.replace(_span(file, layout, table.role, is_numbered=is_numbered), key_columns=keys)
        yield span
        if is_numbered and number + 1 < len(table.files):
            first += _count_rows(storage, file, span)


def _span(file: TableFile, layout: TableLayout, role: str, *, is_numbered: bool) -> Span:
    if file.kind in ("parquet", "arrow"):
        from graphprep.decoders.tables.arrow import ArrowReader

        reader: Any = ArrowReader(layout, file.kind == "parquet")
        return Span(file.url, "table", role, stop=file.num_rows, detail=reader)
    if file.kind == "arrays":
        from graphprep.decoders.tables.arrays import ArchiveReader

        return Span(file.url, "table", role, stop=file.num_rows, detail=ArchiveReader(layout, file.arrays))
    if file.kind == "jsonl":
        from graphprep.decoders.tables.json import JsonReader

        lists = frozenset(column.source for column in layout.features if _is_list(file.stored.get(column.name)))
        reader = JsonReader(layout, lists, file.others or OtherKeys())
        return Span(file.url, "table" if is_numbered else "text", role, detail=reader)
    from graphprep.decoders.tables.text import TextReader

    assert file.head is not None
    grammar = file.head.grammar
    reader = TextReader(layout, grammar, file.head.header_line)
    return Span(file.url, "table" if is_numbered else "text", role, detail=reader, record_ends=grammar.record_ends)


def _is_list(stored: StoredType | None) -> bool:
    return stored is not None and stored.is_list


def _count_rows(storage: Storage, file: TableFile, span: Span) -> int:
    """Count the rows of a file, reading it where it does not say."""
    if file.num_rows >= 0:
        return file.num_rows
    count: Callable[..., int] = span.detail.count
    with storage.open(span.url) as handle:
        return count(handle, span)


def check_mentioned(tables: Sequence[PlannedTable], everywhere: Mapping[str, Sequence[str]]) -> None:
    """Refuse columns that options name and that no file has: those of a table, and those of all tables (by option).

    Raises UsageError.
    """
    for table in tables:
        headers = _headers([table])
        for option, names in _mentioned(table.config).items():
            _refuse_unknown(option, names, headers, table.config.place)
    for option, columns in everywhere.items():
        _refuse_unknown(option, columns, _headers(tables), "")


def _headers(tables: Sequence[PlannedTable]) -> list[Header]:
    """Return the columns of all files, none where a file may have others: a later JSON line, or what was left out before."""
    files = [file for table in tables for file in table.files]
    if any(file.kind in ("jsonl", "arrays") for file in files):
        return []
    return [Header(file.shown, file.layout.names, True) for file in files if file.layout is not None]


def _refuse_unknown(option: str, names: Sequence[str], headers: Sequence[Header], place: str) -> None:
    for name in names:
        if headers and not any(header.has(name) for header in headers):
            known = dict.fromkeys(column for header in headers for column in header.names)
            where = headers[0].url if len(headers) == 1 else "the tables"
            verb = "has" if len(headers) == 1 else "have"
            raise UsageError(f"{option} {name}: {where} {verb} no such column", place=place, fix=one_of(known, found=name))


def _mentioned(config: TableConfig) -> dict[str, list[str]]:
    return {
        "column": [name for name, _ in config.columns],
        "drop": list(config.dropped),
        "rename": [name for name, _ in config.renamed],
    }
