"""The columns of Arrow record batches as chunks. Used by the decoders of edge lists and tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphprep.decoders.cells.arrow_numpy import list_lengths, null_mask, numbers_of, valid_rows, without_nulls
from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.cells.faults import Wording, column_words, time_words, weight_words
from graphprep.decoders.cells.text import (
    TIME_KEY,
    TIME_SCALES,
    FieldFaults,
    TextFields,
    found_in,
    number_chunk,
    parse_ids,
    weight_key,
)
from graphprep.decoders.wide_groups import RowGroup, leaf_columns, read_wide
from graphprep.kernels.cpu.text import delimited, numbers
from graphprep.kernels.cpu.text.delimited import Codes
from graphprep.model.errors import DataError
from graphprep.model.protocols import ReadingRoom, Span
from graphprep.model.rows import ColumnChunk, ColumnKey, RawIds, RawTexts
from graphprep.storage.read.arrow_arrays import arrow_array, arrow_text

Ints = NDArray[np.int64]
Say = Callable[[int, str], Wording]  # what is wrong, by a kernel's code and what was found
ARROW_MAGIC = b"ARROW1"
_LEAST_BATCH_BYTES = 1 << 16
_MOST_ROW_BYTES = 32  # on average, in a batch of as many rows as there may be
_NULL_IN_LIST = Wording("a null inside a list", "fill the value, or leave the whole list out")


def damaged(url: str, error: Exception, format_name: str = "Parquet") -> DataError:
    """Say that a file cannot be read."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(
        f"this {format_name} file cannot be read: {reason}", place=url, fix="write the file again; it may be cut off"
    )


def read_schema(handle: BinaryIO, url: str, *, parquet: bool) -> tuple[pa.Schema, int]:
    """Read a file's schema and its number of rows, -1 where only reading all of it would tell.

    Raises DataError where the file is damaged.
    """
    try:
        if parquet:
            file = pq.ParquetFile(handle)
            schema, num_rows = file.schema_arrow, file.metadata.num_rows
        else:
            schema, num_rows = open_arrow(handle).schema, -1
        schema.names  # noqa: B018 - decoded when they are asked for
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise damaged(url, error, "Parquet" if parquet else "Arrow") from None
    return schema, num_rows


def open_arrow(handle: BinaryIO) -> pa.ipc.RecordBatchFileReader | pa.ipc.RecordBatchStreamReader:
    """Open an Arrow file or stream."""
    handle.seek(0)
    is_file = handle.read(len(ARROW_MAGIC)) == ARROW_MAGIC
    handle.seek(0)
    return pa.ipc.open_file(handle) if is_file else pa.ipc.open_stream(handle)


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind a dictionary or an extension."""
    while True:
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def is_number(kind: pa.DataType) -> bool:
    """Return whether values are integers or floats."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def is_date(kind: pa.DataType) -> bool:
    """Return whether values are dates, timestamps, times of the day or durations: integers with a unit."""
    return unit_of(kind) is not None


def unit_of(kind: pa.DataType) -> str | None:
    """Return the unit of dates and times."""
    if pa.types.is_date32(kind):
        return "day"
    if pa.types.is_date64(kind):
        return "ms"
    if pa.types.is_timestamp(kind) or pa.types.is_time(kind) or pa.types.is_duration(kind):
        return str(kind.unit)
    return None


def is_list(kind: pa.DataType) -> bool:
    """Return whether values are lists, of fixed size or not."""
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def is_sparse(kind: pa.DataType) -> bool:
    """Return whether values are lists of numbers at coordinates, as our own tables have them: ``{at, value}``."""
    fields = record_fields(kind)
    at = fields.get("at", pa.null())
    at = at.value_type if pa.types.is_fixed_size_list(at) else at
    return fields.keys() == {"at", "value"} and bool(pa.types.is_integer(at)) and _is_value(fields["value"])


def is_temporal(kind: pa.DataType) -> bool:
    """Return whether values are lists of dated values, as our own tables have them: ``{start, end, values}``."""
    fields = record_fields(kind)
    dates = (fields.get(name, pa.null()) for name in ("start", "end"))
    values = fields.get("values", pa.null())
    return fields.keys() == {"start", "end", "values"} and (
        all(map(pa.types.is_integer, dates)) and is_list(values) and _is_value(values.value_type)
    )


def record_fields(kind: pa.DataType) -> dict[str, pa.DataType]:
    """Return the fields of the records that a column has lists of, none where these are no records."""
    if not is_list(kind) or not pa.types.is_struct(kind.value_type):
        return {}
    return {field.name: field.type for field in kind.value_type}


def _is_value(kind: pa.DataType) -> bool:
    return is_number(kind) or bool(pa.types.is_boolean(kind))


def is_text(kind: pa.DataType) -> bool:
    """Return whether values are strings or bytes."""
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary)
    more = (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in (*tests, *more))


def is_readable(kind: pa.DataType) -> bool:
    """Return whether a further column may have this type."""
    kind = plain_type(kind)
    if is_sparse(kind) or is_temporal(kind):
        return True
    if is_list(kind):
        while is_list(kind):
            kind = plain_type(kind.value_type)
        return is_number(kind) or bool(pa.types.is_boolean(kind))
    return is_number(kind) or is_date(kind) or is_text(kind) or bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))


def is_string(kind: pa.DataType) -> bool:
    """Return whether values are strings, so UTF-8."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_key(kind: pa.DataType) -> bool:
    """Return whether values may be raw IDs or names: integers or texts."""
    return bool(pa.types.is_integer(plain_type(kind)) or is_text(plain_type(kind)))


def wrong_type(schema: pa.Schema, position: int, url: str, words: str, fix: str) -> DataError:
    """Say that a column has a type that it may not have."""
    return DataError(f"{words}, found {schema.types[position]}", place=f"{url}: column {schema.names[position]!r}", fix=fix)


def parquet_batches(handle: BinaryIO, span: Span, max_rows: int, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows [start, stop) of a span; row groups that lie outside are not read."""
    file = pq.ParquetFile(handle)
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    stop = span.stop if span.stop >= 0 else int(bounds[-1])
    if not bounds[-1]:  # the columns exist all the same
        yield _no_rows(file, names)
        return
    groups = [group for group in range(len(sizes)) if bounds[group] < stop and bounds[group + 1] > span.start]
    at = int(bounds[groups[0]]) if groups else stop
    room = ReadingRoom(sys.maxsize, "") if span.room is None else span.room

    def wide(group: int, step: int) -> Iterator[pa.RecordBatch]:
        return read_wide(RowGroup(handle, file.metadata, group, stop - int(bounds[group])), names, step, room)

    for batch in row_group_batches(file, max_rows, groups, names, True, batch_bytes(max_rows), wide, room.most_bytes):
        low, high = max(span.start - at, 0), min(stop - at, batch.num_rows)
        at += batch.num_rows
        if low < high:
            yield batch.slice(low, high - low)


def row_group_batches(
    file: pq.ParquetFile,
    max_rows: int,
    groups: Sequence[int],
    names: Sequence[str] | None = None,
    use_threads: bool = True,
    max_bytes: int = sys.maxsize,
    wide: Callable[..., Iterator[pa.RecordBatch]] | None = None,
    most_bytes: int = sys.maxsize,
) -> Iterator[pa.RecordBatch]:
    """Yield record batches of at most ``max_rows`` rows and about ``max_bytes`` bytes, a few row groups at a time.

    One reader over all row groups keeps what it read of each until its end: for a file of 800 MB that was 800 MB. Row groups of
    more than ``most_bytes`` are read by ``wide``, given the number of one and the rows of a batch.
    """
    at = 0
    while at < len(groups):
        stop, rows, num_bytes = at, 0, 0
        while stop < len(groups) and (stop == at or (rows < max_rows and num_bytes < max_bytes)):
            group = file.metadata.row_group(groups[stop])
            rows += group.num_rows
            num_bytes += _num_bytes(group, names)
            stop += 1
        some = list(groups[at:stop])
        step = max(1, min(max_rows, max_bytes * rows // max(1, num_bytes)))
        if wide is not None and num_bytes > most_bytes:
            batches = chain.from_iterable(wide(group=group, step=step) for group in some)
        else:
            batches = file.iter_batches(batch_size=step, row_groups=some, columns=names, use_threads=use_threads)
        for batch in batches:
            yield from cut_batch(batch, max_rows, max_bytes)
        at = stop


def _num_bytes(group: pq.RowGroupMetaData, names: Sequence[str] | None) -> int:
    """Return the bytes of columns in a row group, unpacked; values that a dictionary holds count once."""
    return sum(column.total_uncompressed_size for _, column in leaf_columns(group, names))


def batch_bytes(max_rows: int) -> int:
    """Return how many bytes a batch of at most ``max_rows`` rows may have: rows of long texts come in smaller batches."""
    return max(_LEAST_BATCH_BYTES, _MOST_ROW_BYTES * max_rows)


def cut_batch(batch: pa.RecordBatch, max_rows: int, max_bytes: int) -> Iterator[pa.RecordBatch]:
    """Yield a batch in pieces of at most ``max_rows`` rows, fewer where rows are long."""
    step = max(1, min(max_rows, max_bytes * batch.num_rows // max(1, batch.nbytes)))
    for start in range(0, batch.num_rows, step):
        yield batch.slice(start, step)


def _no_rows(file: pq.ParquetFile, names: Sequence[str]) -> pa.RecordBatch:
    fields = [file.schema_arrow.field(name) for name in names]
    return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=pa.schema(fields))


class ArrowCells:
    """The columns of a record batch, by their position in the file; ``faults`` collects what is wrong."""

    def __init__(self, batch: pa.RecordBatch, names: Sequence[str]) -> None:
        self.batch = batch
        self.names = names
        self.faults = FieldFaults(names)

    @property
    def num_rows(self) -> int:
        """Return the number of rows."""
        return int(self.batch.num_rows)

    def blame(self, position: int, row: int, words: Wording) -> None:
        """Note a faulty value."""
        self.faults.add(row, row, position, words)

    def array(self, position: int) -> pa.Array:
        """Return a column without dictionaries, extensions and views."""
        array = self.batch.column(self.names[position])
        while True:
            if isinstance(array, pa.DictionaryArray):
                array = array.dictionary_decode()
            elif isinstance(array, pa.ExtensionArray):
                array = array.storage
            elif pa.types.is_string_view(array.type) or pa.types.is_binary_view(array.type):  # few functions take them
                array = array.cast(pa.large_string() if pa.types.is_string_view(array.type) else pa.large_binary())
            else:
                return array

    def ids(self, position: int, kind: IdKind, base: int, say: Say) -> RawIds | RawTexts:
        """Read raw IDs, less ``base``."""
        array = self.array(position)
        if kind == "string" or not pa.types.is_integer(array.type):
            cells = _key_cells(array)
            ids, codes = parse_ids(kind, *cells, base)
            self._blame_coded(position, cells, codes, say)
            return ids
        if array.null_count:
            self.blame(position, int(np.flatnonzero(null_mask(array))[0]), say(numbers.EMPTY, ""))
            array = array.fill_null(arrow_array(np.array([base])).cast(array.type)[0])
        values = numbers_of(array)
        for code, bad in _id_faults(values, base, kind):
            if bad.any():
                row = int(bad.argmax())
                self.blame(position, row, say(code, str(values[row])))
                break
        bits: RawIds = values.astype(np.int64 if kind == "int" else np.uint64).view(np.uint64)
        return bits - np.uint64(base)

    def texts(self, position: int, say: Say) -> RawTexts:
        """Read a column of names, integers as decimal digits."""
        cells = _key_cells(self.array(position))
        offsets, values, codes = delimited.gather_ids(*cells)
        self._blame_coded(position, cells, codes, say)
        return RawTexts(offsets, values)

    def _blame_coded(self, position: int, cells: TextFields, codes: Codes, say: Say) -> None:
        """Note the first faulty text of a column without nulls."""
        for row in np.flatnonzero(codes)[:1].tolist():
            self.blame(position, row, say(int(codes[row]), found_in(*cells, row)))

    def weights(self, position: int, dtype: str) -> ColumnChunk:
        """Read weights."""
        rows, values = present(self.array(position))
        weights, code, bad = cast_numbers(values.astype(np.float64), np.dtype(dtype))
        if bad >= 0:
            self.blame(position, int(rows[bad]), weight_words(code, str(values[bad]), dtype))
        return number_chunk(weight_key(dtype), rows, weights)

    def times(self, position: int, unit: str | None) -> ColumnChunk:
        """Read times: numbers in seconds to multiples of ``unit``, dates and timestamps as they are."""
        rows, values = present(self.array(position))
        times, code, bad = scale_times(values, TIME_SCALES[unit])
        if bad >= 0:
            self.blame(position, int(rows[bad]), time_words(code, str(values[bad]), unit))
        return number_chunk(TIME_KEY, rows, times)

    def feature(self, name: str, position: int, dtype: str | None) -> ColumnChunk:
        """Read a column that is stored, numbers as ``dtype`` where that is given."""
        array = self.array(position)
        rows = valid_rows(array)
        if not is_number(array.type):  # most are numbers, and there may be thousands of columns
            if pa.types.is_null(array.type):
                return _no_values(name, dtype)
            if is_text(array.type):
                return self._texts(name, position, dtype)
            if is_sparse(array.type):
                return self._sparse(name, position, without_nulls(array), rows, dtype)
            if is_temporal(array.type):
                return self._temporal(name, position, without_nulls(array), rows, dtype)
        counts, values, item_shape = self._flatten(position, without_nulls(array), rows)
        if dtype == "binary":
            words = Wording(f"field {name!r} must be text, found {array.type}", "declare a dtype of numbers with --column")
            self.blame(position, 0, words)
        elif dtype is not None:
            found = values
            values, code, bad = cast_numbers(found, np.dtype(dtype))
            if bad >= 0:
                row = int(rows[np.searchsorted(np.cumsum(counts), bad, side="right")])
                self.blame(position, row, column_words(name, code, str(found[bad]), dtype))
        key = ColumnKey(name, "numbers", values.dtype.name, unit=unit_of(array.type))
        return ColumnChunk(key, rows, counts, values, item_shape)

    def cells(self, position: int) -> tuple[Ints, TextFields]:
        """Return the rows of a text column that are not null, and their bytes."""
        array = self.array(position)
        return valid_rows(array), _text_cells(without_nulls(array))

    def _texts(self, name: str, position: int, dtype: str | None) -> ColumnChunk:
        rows, (buf, start, stop) = self.cells(position)
        if dtype in (None, "binary"):
            check = is_string(self.array(position).type)
            found, counts, values, codes = delimited.gather_texts(buf, start, stop, drop_empty=False, check=check)
            chunk = ColumnChunk(ColumnKey(name, "binary", "uint8"), rows[found], counts, values)
        else:
            found, parsed, codes = delimited.parse_column(str(dtype), buf, start, stop)
            chunk = number_chunk(ColumnKey(name, "numbers", str(dtype)), rows[found], parsed)
        for bad in np.flatnonzero(codes)[:1].tolist():
            text = repr(buf[start[bad] : stop[bad]].tobytes().decode(errors="replace"))
            self.blame(position, int(rows[bad]), column_words(name, int(codes[bad]), text, dtype or "binary"))
        return chunk

    def _sparse(self, name: str, position: int, lists: pa.Array, rows: Ints, dtype: str | None) -> ColumnChunk:
        """Read numbers at coordinates. None of the lists is null."""
        counts = list_lengths(lists)
        at, value = self._fields(position, lists, np.repeat(rows, counts), ("at", "value"))
        width = at.type.list_size if pa.types.is_fixed_size_list(at.type) else 0
        coords = self._without_nulls(position, at.flatten() if width else at, np.repeat(rows, counts * max(width, 1)))
        values = numbers_of(value).astype(dtype or value.type.to_pandas_dtype(), copy=False)
        key = ColumnKey(name, "sparse", values.dtype.name, width=width)
        return ColumnChunk(key, rows, counts, values, coords=numbers_of(coords).astype(np.int64, copy=False))

    def _temporal(self, name: str, position: int, lists: pa.Array, rows: Ints, dtype: str | None) -> ColumnChunk:
        """Read dated values. None of the lists is null; an end that is null is none."""
        owners = np.repeat(rows, list_lengths(lists))
        start, entries = self._fields(position, lists, owners, ("start", "values"))
        counts, end = list_lengths(entries), _field(lists.flatten(), "end").fill_null(-1)
        flat = self._without_nulls(position, entries.flatten(), np.repeat(owners, counts))
        values = numbers_of(flat).astype(dtype or flat.type.to_pandas_dtype(), copy=False)
        return ColumnChunk(
            key=ColumnKey(name, "temporal", values.dtype.name),
            rows=rows,
            counts=counts,
            values=values,
            entry_counts=list_lengths(lists),
            start=numbers_of(start).astype(np.int64, copy=False),
            end=numbers_of(end).astype(np.int64, copy=False),
        )

    def _fields(self, position: int, lists: pa.Array, owners: Ints, names: tuple[str, str]) -> list[pa.Array]:
        """Return fields of all records in lists; ``owners`` are the rows that these belong to."""
        return [self._without_nulls(position, _field(lists.flatten(), name), owners) for name in names]

    def _without_nulls(self, position: int, array: pa.Array, owners: Ints) -> pa.Array:
        """Return values of which none may be null; ``owners`` are the rows that they belong to."""
        if array.null_count:
            self.blame(position, int(owners[np.flatnonzero(null_mask(array))[0]]), _NULL_IN_LIST)
            return array.drop_null()  # a faulty batch is not used
        return array

    def _flatten(self, position: int, array: pa.Array, rows: Ints) -> tuple[Ints, NDArray[np.generic], tuple[int, ...] | None]:
        """Return counts a row, all values, and the shape that all rows share, None where they differ."""
        if not is_list(array.type):
            return np.ones(len(array), np.int64), present(array)[1], ()
        bounds = np.arange(len(array) + 1, dtype=np.int64)  # of each row, in items of the present level
        shape: tuple[int, ...] | None = ()
        while is_list(array.type):
            lengths = list_lengths(array)
            shape = None if shape is None or np.unique(lengths).size > 1 else (*shape, int(lengths[0]) if lengths.size else 0)
            bounds = np.concatenate([[0], np.cumsum(lengths)])[bounds]
            array = array.flatten()
            array = array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
            if array.null_count:
                first = int(np.flatnonzero(null_mask(array))[0])
                row = int(rows[np.searchsorted(bounds, first, side="right") - 1])
                self.blame(position, row, _NULL_IN_LIST)
                array = array.drop_null()
                break
        _, values = present(array) if not is_list(array.type) else (None, np.zeros(int(bounds[-1]), np.int64))
        return np.diff(bounds), values, shape


def _field(records: pa.Array, name: str) -> pa.Array:
    """Return a field of records, null where a record is."""
    return records.flatten()[records.type.get_field_index(name)]


def _no_values(name: str, dtype: str | None) -> ColumnChunk:
    none = np.zeros(0, np.int64)
    if dtype == "binary":
        return ColumnChunk(ColumnKey(name, "binary", "uint8"), none, none, np.zeros(0, np.uint8))
    return number_chunk(ColumnKey(name, "numbers", dtype or "int64"), none, np.zeros(0, dtype or "int64"))


def _id_faults(values: NDArray[Any], base: int, kind: IdKind) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Yield what may be wrong with integer IDs: a code, and which of them are at fault."""
    if kind == "uint":
        yield numbers.NEGATIVE, values < 0
    elif values.dtype == np.uint64:
        yield numbers.OVERFLOW, values > np.uint64(2**63 - 1)
    if base:
        yield delimited.BELOW_BASE, values < base


def _key_cells(array: pa.Array) -> TextFields:
    """Return the bytes of strings, or integers as decimal digits, and where each begins and ends; a null is empty."""
    kind = pa.string() if pa.types.is_integer(array.type) else pa.large_binary()
    return _text_cells(array.cast(kind).fill_null(arrow_text("", kind)))


def _text_cells(array: pa.Array) -> TextFields:
    """Return the bytes of texts without nulls, and where each begins and ends."""
    texts = array.cast(pa.large_binary())
    _, offset_bytes, data = texts.buffers()
    offsets = np.frombuffer(offset_bytes or bytes(8), np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8), offsets[:-1].copy(), offsets[1:].copy()


def present(array: pa.Array) -> tuple[Ints, NDArray[np.generic]]:
    """Return the rows that are not null, and their values; dates and times as int64."""
    rows, values = valid_rows(array), without_nulls(array)
    if is_date(values.type):
        values = values.view(pa.int32() if values.type.bit_width == 32 else pa.int64()).cast(pa.int64())
    return rows, numbers_of(values)


def cast_numbers(values: NDArray[Any], dtype: np.dtype[Any]) -> tuple[NDArray[Any], int, int]:
    """Cast numbers where that loses nothing but the digits of a float.

    Returns (values, code, position of the first that does not fit), position -1 where all do.
    """
    if values.dtype == dtype:
        return values, numbers.OK, -1
    if dtype.kind == "f":
        rounded, at = numbers.round_to(values.astype(np.float64), dtype)
        return rounded, numbers.OVERFLOW, at
    broken = np.zeros(values.size, np.bool_)
    if values.dtype.kind == "f":
        broken = ~np.isfinite(values) | (values != np.trunc(values))
    low, high = (0, 1) if dtype.kind == "b" else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    bad = broken | _outside(values, low, high)
    at = int(bad.argmax()) if bad.any() else -1
    code = numbers.INVALID if at >= 0 and (broken[at] or dtype.kind == "b") else numbers.OVERFLOW
    return np.where(bad, 0, values).astype(dtype), code, at


def _outside(values: NDArray[Any], low: int, high: int) -> NDArray[np.bool_]:
    """Compare exactly: limits beyond the dtype of the values bind nothing, and float limits are the next power of two."""
    if values.dtype.kind == "f":
        return np.asarray((values < float(low)) | (values >= float(high + 1)))
    if values.dtype.kind == "b":
        return np.zeros(values.size, np.bool_)
    limits = np.iinfo(values.dtype)
    return np.asarray((values < max(low, int(limits.min))) | (values > min(high, int(limits.max))))


def scale_times(values: NDArray[Any], scale: int) -> tuple[Ints, int, int]:
    """Multiply times by ``10 ** scale``, exactly. Returns (int64 values, code, position of the first fault or -1).

    A float stands for the decimal number that it is nearest to: 1.1 is 1100 milliseconds.
    """
    if values.dtype.kind == "f":
        return _scale_floats(values, scale)
    factor = 10**scale
    limit = (2**63 - 1) // factor
    bad = _outside(values, -limit, limit)
    at = int(bad.argmax()) if bad.any() else -1
    return np.where(bad, 0, values).astype(np.int64) * factor, numbers.OVERFLOW, at


def _scale_floats(values: NDArray[Any], scale: int) -> tuple[Ints, int, int]:
    """Scale floats: most have few enough digits to be found in float64, the others go by their shortest decimal texts."""
    scaled = np.zeros(values.size, np.int64)
    is_open = np.ones(values.size, np.bool_)
    for digits in range(scale + 1):
        with np.errstate(invalid="ignore", over="ignore"):
            whole = np.rint(values.astype(np.float64) * 10.0**digits)
            # Below 2^53 the quotient is the float nearest to that decimal number, as both operands are exact.
            fits = is_open & (np.abs(whole) < min(2**53, 2**63 // 10 ** (scale - digits)))
            fits &= (whole / 10.0**digits).astype(values.dtype) == values
        scaled[fits] = whole[fits].astype(np.int64) * 10 ** (scale - digits)
        is_open &= ~fits
    for i in np.flatnonzero(is_open):
        if not np.isfinite(values[i]):
            return scaled, numbers.INVALID, int(i)
        exact = Decimal(str(values[i])) * 10**scale
        if exact != exact.to_integral_value():
            return scaled, numbers.FRACTION, int(i)
        if not -(2**63) <= exact < 2**63:
            return scaled, numbers.OVERFLOW, int(i)
        scaled[i] = int(exact)
    return scaled, numbers.OK, -1
