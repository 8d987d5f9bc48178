"""The tables of a folder, as far as their beginnings show them: columns, and values that may be IDs."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from graphprep.decoders.looks.text_head import HeaderGuess, guess_header
from graphprep.model.errors import GraphprepError
from graphprep.storage.read.urls import DirEntry

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

SAMPLE_ROWS = 100_000
_SAMPLE_BYTES = 16 << 20
_ROW_BYTES = 1 << 12  # that are read for each row that is asked for, at most
_MAX_FILES = 1000
_TABLE_NAME = re.compile(
    r"\.(?:csv|tsv|tab|psv|txt|parquet|pq|arrow|feather|ipc|jsonl|ndjson)(?:\.(?:gz|gzip|bz2|xz|zst))*$|^part-[0-9]", re.I
)
_PART = re.compile(r"[-_. ]?[0-9]+$")
_DELIMITERS = (",", "\t", ";", "|")
_INTEGER = re.compile(r"[ \t]*[+-]?[0-9]{1,20}[ \t]*", re.ASCII)
_NO_HEADER = HeaderGuess(False)
_MAX_KEY = 200  # characters of a text that may be an ID

Kind = Literal["int", "text", "other"]


@dataclass(frozen=True)
class SampleColumn:
    """A column: its name, what its cells are, and their values (of integers and texts), None where a cell is empty."""

    name: str
    kind: Kind
    values: tuple[str | None, ...] = ()

    @cached_property
    def distinct(self) -> frozenset[str]:
        """Return the values that occur."""
        return frozenset(value for value in self.values if value is not None)

    @cached_property
    def is_unique(self) -> bool:
        """Return whether every row has a value, and no two the same."""
        return bool(self.values) and None not in self.values and len(self.distinct) == len(self.values)


@dataclass(frozen=True)
class Dialect:
    """What text has beside RFC 4180: a character that escapes, one that begins lines of comments."""

    escape: str | None = None
    comment: str | None = None


@dataclass(frozen=True)
class SampleTable:
    """A table: a file, or a folder of part files. ``path`` is relative to the folder; ``header`` None: not a text file.

    ``is_whole``: the sample holds all rows. ``first_line`` are the cells of a text file's first line, ``dialect`` is how it is
    cut, and ``guess`` says whether its first line is a header.
    """

    path: str
    columns: tuple[SampleColumn, ...]
    is_whole: bool
    header: bool | None = None
    first_line: tuple[str, ...] = ()
    dialect: Dialect = Dialect()
    guess: HeaderGuess = _NO_HEADER

    @property
    def stem(self) -> str:
        """Return the name without folder and endings."""
        return re.sub(r"(?:\.[A-Za-z]\w*)+$", "", self.path.rstrip("/").rpartition("/")[2])

    @property
    def num_rows(self) -> int:
        """Return the number of rows in the sample."""
        return max((len(column.values) for column in self.columns), default=0)


@dataclass
class SampledFolder:
    """A folder's tables, in the order of their names, and what in it is none, with the reason."""

    tables: list[SampleTable] = field(default_factory=list)
    others: dict[str, str] = field(default_factory=dict)

    @property
    def differs(self) -> bool:
        """Return whether the tables cannot be the parts of one: their columns are not the same."""
        widths = {len(table.columns) for table in self.tables}
        named = [table for table in self.tables if table.header is not False]
        kinds = {tuple(column.kind for column in table.columns[:2]) for table in self.tables}
        names = {tuple(sorted(column.name for column in table.columns)) for table in named}
        return len(widths) > 1 or len(names) > 1 or (len(kinds) > 1 and self.is_several)

    @property
    def is_several(self) -> bool:
        """Return whether the tables are called otherwise than the parts of one are: by numbers at the end."""
        return len({part_name(table.stem) for table in self.tables}) > 1


def part_name(stem: str) -> str:
    """Return a file's name without the number at its end."""
    return _PART.sub("", stem)


def sample_folder(storage: Storage, url: str, rows: int = SAMPLE_ROWS, most_files: int = _MAX_FILES) -> SampledFolder:
    """Look at the files of a folder, the first ones where there are many, and at its subfolders of part files; or at a file."""
    found = SampledFolder()
    raw: list[SampleTable] = []
    if storage.is_dir(url):
        entries: Sequence[DirEntry] = [e for e in storage.list_dir(url) if not e.name.startswith((".", "_"))]
    else:
        entries = [DirEntry(url.rpartition("/")[2], url, False)]
    found.others = {entry.name: "not looked at: there are too many files" for entry in entries[most_files:]}
    for entry in entries[:most_files]:
        table = _sample(storage, entry, rows)
        if isinstance(table, str):
            found.others[entry.name + ("/" if entry.is_dir else "")] = table
        else:
            raw.append(table)
    found.tables = [_settle_header(table, raw) for table in raw]
    return found


def _sample(storage: Storage, entry: DirEntry, rows: int) -> SampleTable | str:
    """Look at one table; say what it is where it is none."""
    path, file = entry.name, entry.url
    if entry.is_dir:
        parts = [part for part in storage.list_dir(entry.url) if not part.is_dir and not part.name.startswith((".", "_"))]
        if not parts or not all(_TABLE_NAME.search(part.name) for part in parts):
            return "a folder, not of part files"
        path, file = f"{entry.name}/", parts[0].url
    elif not _TABLE_NAME.search(entry.name):
        return "not called like a table"
    try:
        head = storage.head(file, 8)
        if head.startswith(b"PAR1"):
            return _sample_batches(path, storage, file, rows, _parquet_batches)
        if head.startswith(b"ARROW1"):
            return _sample_batches(path, storage, file, rows, _arrow_batches)
        limit = min(_SAMPLE_BYTES, rows * _ROW_BYTES)
        data = storage.head(file, limit + 1)
    except GraphprepError as error:
        return error.message
    return _sample_text(path, data[:limit], rows, is_whole=len(data) <= limit)


# ---------------------------------------------------------------------------------------------------- Parquet, Arrow


def _sample_batches(path: str, storage: Storage, url: str, rows: int, batches: Any) -> SampleTable:
    import pyarrow as pa

    with storage.open(url) as handle:
        schema, found, is_whole = batches(pa, handle, rows)
    columns = []
    for i, item in enumerate(schema):
        kind = _arrow_kind(pa, item.type)
        values = [value for batch in found for value in _texts(batch.column(i))] if kind != "other" else []
        columns.append(SampleColumn(item.name, kind, tuple(values)))
    return SampleTable(path, tuple(columns), is_whole)


def _parquet_batches(pa: Any, handle: Any, rows: int) -> tuple[Any, list[Any], bool]:
    import pyarrow.parquet as pq

    file = pq.ParquetFile(handle)
    names = [item.name for item in file.schema_arrow if _arrow_kind(pa, item.type) != "other"]
    batches = []
    for batch in file.iter_batches(rows, columns=names) if names else ():
        batches.append(_padded(pa, batch, file.schema_arrow))
        break
    return file.schema_arrow, batches, file.metadata.num_rows <= rows


def _padded(pa: Any, batch: Any, schema: Any) -> Any:
    """Return a batch with the columns of a schema, empty where they were not read."""
    arrays = [batch.column(item.name) if item.name in batch.schema.names else pa.nulls(batch.num_rows) for item in schema]
    return pa.record_batch(arrays, names=[item.name for item in schema])


def _arrow_batches(pa: Any, handle: Any, rows: int) -> tuple[Any, list[Any], bool]:
    from pyarrow import ipc

    reader = ipc.open_file(handle)
    batches, count, number = [], 0, 0
    while number < reader.num_record_batches and count < rows:
        batches.append(reader.get_batch(number))
        count += batches[-1].num_rows
        number += 1
    return reader.schema, batches, number == reader.num_record_batches


def _arrow_kind(pa: Any, kind: Any) -> Kind:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_integer(kind):
        return "int"
    return "text" if pa.types.is_string(kind) or pa.types.is_large_string(kind) else "other"


def _texts(column: Any) -> Iterator[str | None]:
    for value in column.to_pylist():
        yield None if value is None else str(value)[:_MAX_KEY]


# ---------------------------------------------------------------------------------------------------- text


def _sample_text(path: str, data: bytes, rows: int, *, is_whole: bool) -> SampleTable | str:
    text = data.decode("utf-8-sig", "replace")
    if not text.strip() or "\0" in text:
        return "binary data" if text.strip() else "empty"
    if text.lstrip()[:1] == "{":
        return _sample_json(path, text, is_whole, rows)
    found = []
    for dialect in _dialects(text):
        found.append(_cut_text(path, text, rows, dialect, is_whole=is_whole))
        if isinstance(found[-1], SampleTable) and len(found[-1].columns) > 1:
            return found[-1]
    return next((table for table in found if isinstance(table, SampleTable)), found[0])


def _dialects(text: str) -> Iterator[Dialect]:
    """Yield how a text may be cut, the likeliest first."""
    escapes = (None, "\\") if "\\" in text else (None,)
    for comment in (None, "#") if text.startswith("#") or "\n#" in text else (None,):
        yield from (Dialect(escape, comment) for escape in escapes)


def _cut_text(path: str, text: str, rows: int, dialect: Dialect, *, is_whole: bool) -> SampleTable | str:
    """Cut a text into a table, or say why it is none."""
    records: list[list[str]] = []
    try:
        for record in _reader(text, _find_delimiter(text, dialect), dialect):
            if record and not (len(record) == 1 and not record[0].strip()):
                records.append(record)
            if len(records) > rows:
                break
    except csv.Error as error:
        if is_whole or "end of data" not in str(error):
            return f"record {len(records) + 1} is not quoted as CSV is"
        records.append([])
    if not is_whole and len(records) <= rows:
        records = records[:-1]  # it is cut off
    width = len(records[0]) if records else 0
    for number, record in enumerate(records, 1):
        if len(record) != width:
            return f"record {number} has {len(record)} columns, the first has {width}"
    whole = is_whole and len(records) <= rows
    columns = tuple(_text_column(f"col_{i}", [record[i] for record in records]) for i in range(width))
    if not records:
        return "empty"
    guess = guess_header(records, if_open=True, ends=range(width))
    return SampleTable(path, columns, whole, False, tuple(records[0]), dialect, guess)


def _reader(text: str, delimiter: str, dialect: Dialect) -> Iterator[list[str]]:
    """Yield the records of a text.

    Raises csv.Error for text behind a closing quote, and for a quote that does not close.
    """
    lines: Iterator[str] = io.StringIO(text, newline="")
    if dialect.comment is not None:
        lines = (line for line in lines if not line.startswith(dialect.comment or ""))
    return csv.reader(lines, delimiter=delimiter, escapechar=dialect.escape, strict=True)


def _find_delimiter(text: str, dialect: Dialect) -> str:
    """Return the first delimiter that cuts the first two records alike, into more than one cell."""
    for delimiter in _DELIMITERS:
        rows = _reader(text, delimiter, dialect)
        try:
            widths = [len(row) for row, _ in zip((row for row in rows if row), range(2), strict=False)]
        except csv.Error:
            continue
        if widths and widths[0] > 1 and widths[0] == widths[-1]:
            return delimiter
    return ","


def _text_column(name: str, cells: Iterable[str]) -> SampleColumn:
    values = tuple(cell[:_MAX_KEY] if cell.strip() else None for cell in cells)
    given = [value for value in values if value is not None]
    kind: Kind = "int" if given and all(map(_INTEGER.fullmatch, given)) else "text"
    if kind == "int":
        return SampleColumn(name, kind, tuple(None if value is None else str(int(value)) for value in values))
    if given and all(_is_float(value) for value in given):
        return SampleColumn(name, "other")
    return SampleColumn(name, kind, values)


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _sample_json(path: str, text: str, is_whole: bool, rows: int) -> SampleTable | str:
    cells: dict[str, list[Any]] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines[:rows]):
        try:
            value = json.loads(line) if line.strip() else {}
        except ValueError:
            if number + 1 < len(lines) or is_whole:
                return f"line {number + 1} is no JSON"
            break
        if not isinstance(value, dict):
            return f"line {number + 1} is no JSON object"
        for name in value:
            cells.setdefault(name, [None] * number)
        for name, found in cells.items():
            found.append(value.get(name))
    columns = []
    for name, found in cells.items():
        kinds = {type(value) for value in found if value is not None}
        kind: Kind = "int" if kinds == {int} else "text" if kinds == {str} else "other"
        texts = () if kind == "other" else tuple(None if value is None else str(value) for value in found)
        columns.append(SampleColumn(name, kind, texts))
    return SampleTable(path, tuple(columns), is_whole and len(lines) <= rows) if columns else "empty"


# ---------------------------------------------------------------------------------------------------- headers


def _settle_header(table: SampleTable, tables: Iterable[SampleTable]) -> SampleTable:
    """Say whether a text table's first line names its columns, and take it off if so."""
    if table.header is None or not _has_header(table, tables):
        return table
    columns = []
    for name, column in zip(table.first_line, table.columns, strict=True):
        cells = column.values[1:] if column.kind != "other" else ()
        columns.append(
            _text_column(name.strip(), [value or "" for value in cells]) if cells else SampleColumn(name, column.kind)
        )
    return replace(table, columns=tuple(columns), header=True)


def _has_header(table: SampleTable, tables: Iterable[SampleTable]) -> bool:
    """Return whether the first line is a header: by ``guess_header``, unless its words are values of other tables."""
    if table.guess.is_sure or not table.guess.is_header:
        return table.guess.is_header
    words = [cell.strip() for cell in table.first_line]
    if not all(words):
        return False
    others = [column for other in tables if other is not table and other.header is not None for column in other.columns]
    # In another table's first line, too, these may be names of columns.
    return not any(word in column.values[1:] for word in words for column in others)


__all__ = ["SAMPLE_ROWS", "Dialect", "SampleColumn", "SampleTable", "SampledFolder", "part_name", "sample_folder"]
