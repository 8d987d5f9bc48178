"""Tables in Parquet and Arrow files (IPC files, streams, Feather)."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphprep.decoders.cells.arrow import (
    ArrowCells,
    batch_bytes,
    cut_batch,
    damaged,
    is_date,
    is_key,
    is_list,
    is_number,
    is_readable,
    is_text,
    open_arrow,
    parquet_batches,
    plain_type,
    record_fields,
    unit_of,
    wrong_type,
)
from graphprep.decoders.cells.arrow_numpy import numbers_of
from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.cells.faults import Wording
from graphprep.decoders.cells.text import TIME_KEY, FieldFaults
from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, IdField, TableLayout
from graphprep.decoders.tables.faults import key_words, name_words
from graphprep.decoders.tables.rows import table_rows
from graphprep.decoders.tables.types import StoredType
from graphprep.decoders.tables.values import check_size, parse_texts
from graphprep.model.errors import DataError, UsageError
from graphprep.model.protocols import Span
from graphprep.model.rows import ColumnChunk, RawIds, RawRows, RawTexts
from graphprep.storage.faults import display_url

Ints = NDArray[np.int64]
_SCAN_ROWS = 1 << 16


@dataclass(frozen=True)
class ArrowReader:
    """Reads one Parquet or Arrow file. Only the columns of ``layout`` are read."""

    layout: TableLayout
    parquet: bool

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read rows [start, stop) in batches of at most ``max_rows`` rows.

        Raises DecodeError for the first faulty row of a batch, DataError where the file is damaged.
        """
        row = max(span.start, 0)
        try:
            for batch in self._batches(handle, span, max_rows):
                yield table_rows(ArrowBatch(ArrowCells(batch, self.layout.names), self.layout, row), self.layout, places)
                row += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise damaged(display_url(span.url), error, "Parquet" if self.parquet else "Arrow") from None

    def count(self, handle: BinaryIO, span: Span) -> int:
        """Count the rows of a file."""
        if self.parquet:
            return int(pq.ParquetFile(handle).metadata.num_rows)
        return sum(batch.num_rows for batch in _all_batches(open_arrow(handle)))

    def _batches(self, handle: BinaryIO, span: Span, max_rows: int) -> Iterator[pa.RecordBatch]:
        names = [self.layout.names[position] for position in self.layout.used]
        if self.parquet:
            return parquet_batches(handle, span, max_rows, names)
        return _arrow_batches(handle, span, max_rows, names)


def _arrow_batches(handle: BinaryIO, span: Span, max_rows: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows [start, stop) of an Arrow file or stream, at least one batch, which may be empty."""
    at, is_empty = 0, True
    reader = open_arrow(handle)
    for batch in _all_batches(reader):
        low = max(span.start - at, 0)
        high = batch.num_rows if span.stop < 0 else min(span.stop - at, batch.num_rows)
        at += batch.num_rows
        if low < high:
            is_empty = False
            yield from cut_batch(batch.select(names).slice(low, high - low), max_rows, batch_bytes(max_rows))
        if 0 <= span.stop <= at:
            return
    if is_empty and span.start <= 0:
        schema = pa.schema([reader.schema.field(name) for name in names])
        yield pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def _all_batches(reader: pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.ipc.RecordBatchFileReader):
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)
    else:
        yield from reader


@dataclass(frozen=True)
class ArrowBatch:
    """Some rows of a file. See ``tables_rows.Batch``."""

    cells: ArrowCells
    layout: TableLayout
    first_row: int

    @property
    def faults(self) -> FieldFaults:
        """Return what is wrong so far."""
        return self.cells.faults

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return self.cells.num_rows

    def ids(self, field: IdField) -> RawIds | RawTexts:
        """Read raw IDs, or number the rows."""
        if field.position is None:
            first = field.first + self.first_row
            return np.arange(first, first + self.num_rows, dtype=np.uint64)
        return self.cells.ids(field.position, field.kind, 0, partial(_say_key, field))

    def texts(self, position: int) -> RawTexts:
        """Read a column of names."""
        return self.cells.texts(position, partial(name_words, self.layout.names[position]))

    def weights(self, position: int, dtype: str) -> ColumnChunk:
        """Read weights."""
        return self.cells.weights(position, dtype)

    def times(self, column: FeatureColumn, unit: str | None) -> ColumnChunk:
        """Read times."""
        array = self.cells.array(column.position)
        if is_text(array.type):
            chunk = self._parse(column, column.type or ColumnType("int64"))
            return dataclasses.replace(chunk, key=dataclasses.replace(TIME_KEY, unit=chunk.key.unit))
        chunk = self.cells.times(column.position, unit)
        declared = column.type.unit if column.type else None
        return dataclasses.replace(chunk, key=dataclasses.replace(chunk.key, unit=unit_of(array.type) or declared))

    def feature(self, column: FeatureColumn) -> ColumnChunk:
        """Read a column that is stored."""
        kind = column.type
        stored = self.cells.array(column.position).type
        if kind is not None and is_text(stored) and kind.dtype != "binary":
            return self._parse(column, kind)
        dtype = None if kind is None else kind.dtype
        chunk = self.cells.feature(column.name, column.position, dtype)
        if kind is None:
            return chunk
        for row, words in islice(check_size(column, kind, chunk.rows, chunk.counts), 1):
            self.cells.blame(column.position, row, words)
        return dataclasses.replace(chunk, key=dataclasses.replace(chunk.key, unit=kind.unit or chunk.key.unit))

    def places(self, field: IdField) -> Ints:
        """Return the rows of the batch."""
        return np.arange(self.num_rows, dtype=np.int64)

    def _parse(self, column: FeatureColumn, kind: ColumnType) -> ColumnChunk:
        present, (buf, start, stop) = self.cells.cells(column.position)
        chunk, faulty = parse_texts(column, kind, buf, start, stop, self.layout.list_delimiter)
        for row, words in islice(faulty, 1):
            self.cells.blame(column.position, int(present[row]), words)
        return dataclasses.replace(chunk, rows=present[chunk.rows])


def _say_key(field: IdField, code: int, found: str) -> Wording:
    return key_words(field.name, code, found, field.kind)


def held_ids(schema: pa.Schema, field: IdField) -> IdKind | None:
    """Return what a file's own types say of its IDs: whole numbers or strings."""
    if field.position is None:
        return "uint"
    return "uint" if pa.types.is_integer(plain_type(schema.types[field.position])) else "string"


def check_keys(handle: BinaryIO, schema: pa.Schema, layout: TableLayout, url: str, *, parquet: bool) -> None:
    """Say which row of a column of IDs has none, where that made floats of the others, as pandas does.

    Raises DataError for the first.
    """
    for field in layout.ids:
        if field.position is not None and pa.types.is_floating(plain_type(schema.types[field.position])):
            row = _first_null(handle, field.name, url, parquet=parquet)
            if row >= 0:
                raise DataError(
                    f"field {field.name!r} is empty, and floats stand in the other rows",
                    place=f"{url}: row {row}, column {field.name!r}",
                    fix="give every row its keys, or leave the row out; then cast the column to int64",
                )


def _first_null(handle: BinaryIO, name: str, url: str, *, parquet: bool) -> int:
    """Return the first row of a column that is null or NaN, -1 where there is none."""
    row, span = 0, Span(url, "table")
    handle.seek(0)
    read = parquet_batches if parquet else _arrow_batches
    for batch in read(handle, span, _SCAN_ROWS, [name]):
        missing = np.isnan(numbers_of(batch.column(0).fill_null(float("nan"))))
        if missing.any():
            return row + int(missing.argmax())
        row += batch.num_rows
    return -1


def _other_keys(schema: pa.Schema, position: int) -> str:
    """Say which columns may hold IDs in place of one with dates; "" where it has none."""
    others = [name for name, kind in zip(schema.names, schema.types, strict=True) if is_key(plain_type(kind))]
    if not others or not is_date(plain_type(schema.types[position])):
        return ""
    return f", or name another with --id-col, of edges with --src-col and --dst-col: {', '.join(others[:8])}"


def check_schema(schema: pa.Schema, layout: TableLayout, url: str) -> None:
    """Refuse columns whose type cannot be what the layout makes of them.

    Raises DataError, UsageError where an option asks for it.
    """
    kinds = [plain_type(kind) for kind in schema.types]
    for field in layout.ids:
        if field.position is not None and not is_key(kinds[field.position]):
            fix = f"cast it to int64 or string{_other_keys(schema, field.position)}"
            raise wrong_type(schema, field.position, url, "IDs must be integers or strings", fix)
    if layout.label is not None and not is_key(kinds[layout.label]):
        raise wrong_type(schema, layout.label, url, "names must be strings or integers", "cast it to string")
    if layout.weight is not None and not is_number(kinds[layout.weight]):
        raise wrong_type(schema, layout.weight, url, "weights must be numbers", "cast it to float64")
    if layout.time is not None:
        _check_time(schema, layout.time, layout.time_unit, url)
    for column in layout.features:
        if not is_readable(schema.types[column.position]):
            words = "a column must hold numbers, bools, texts, dates, times, or lists of numbers"
            remedy = "join the texts of a row to one" if _holds_texts(schema.types[column.position]) else "cast it"
            raise wrong_type(schema, column.position, url, words, f"{remedy}, or pass --drop-column {column.source}")
        _check_declared(schema, column, url)


def _holds_texts(kind: pa.DataType) -> bool:
    """Return whether a column holds lists of texts."""
    return is_list(kind) and is_text(plain_type(kind.value_type))


def _check_time(schema: pa.Schema, column: FeatureColumn, unit: str | None, url: str) -> None:
    kind = plain_type(schema.types[column.position])
    is_declared = is_text(kind) and column.type is not None and column.type.unit is not None
    if not (is_number(kind) or is_date(kind) or is_declared):
        words = "times must be numbers, timestamps or dates"
        raise wrong_type(
            schema,
            column.position,
            url,
            words,
            f"cast it to int64; where times are text, add --column '{column.source}=timestamp[s]' or {column.source}=date",
        )
    if is_date(kind) and unit is not None and unit_of(kind) != "s":
        raise UsageError(
            f"the time unit {unit} is for times in seconds, but column {column.source!r} of {url} holds {kind}",
            fix="leave out the unit: timestamps and dates are stored as they are",
        )


def _check_declared(schema: pa.Schema, column: FeatureColumn, url: str) -> None:
    """Refuse a declared dtype that the column's own type contradicts."""
    kind, declared = plain_type(schema.types[column.position]), column.type
    if declared is None or pa.types.is_null(kind):
        return
    unit = unit_of(kind)
    clash = (unit is not None and declared.unit != unit and declared.dtype != "int64") or (
        unit is not None and declared.unit is not None and declared.unit != unit
    )
    clash |= not is_text(kind) and declared.is_list != is_list(kind)
    clash |= not is_text(kind) and declared.dtype == "binary"
    if clash:
        raise DataError(
            f"column {column.source!r} is declared otherwise, but holds {schema.types[column.position]}",
            place=f"{url}: column {column.source!r}",
            fix="leave out the declaration, or write the column in the declared type",
        )


def stored_types(schema: pa.Schema, layout: TableLayout) -> dict[str, StoredType]:
    """Return what a file stores in each of the layout's features, by name."""
    return {column.name: _stored_type(schema.types[column.position]) for column in layout.features}


def _stored_type(kind: pa.DataType) -> StoredType:
    shown, kind = str(kind), plain_type(kind)
    if fields := record_fields(kind):
        value = fields["value"] if "value" in fields else fields["values"].value_type
        dtype = np.dtype(value.to_pandas_dtype()).name
        return StoredType(dtype, is_list=True, shown=shown, records=", ".join(fields))
    is_nested = is_list(kind)
    while is_list(kind):
        kind = plain_type(kind.value_type)
    if pa.types.is_null(kind):
        return StoredType("", is_list=is_nested, shown=shown)
    if is_text(kind):
        return StoredType("binary", shown=shown)
    unit = unit_of(kind)
    dtype = "int64" if unit is not None else str(np.dtype(kind.to_pandas_dtype()).name)
    return StoredType(dtype, unit, is_nested, shown)
