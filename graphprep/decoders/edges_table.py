"""Parquet files of edges to raw rows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from graphprep.decoders.edges_columns import EdgeLayout, FurtherColumn, HeldIds, IdKind, Reading
from graphprep.decoders.edges_faults import (
    Words,
    column_words,
    id_words,
    relation_words,
    show,
    time_words,
    weight_words,
)
from graphprep.decoders.edges_text import Relations, as_rows, name_relations
from graphprep.decoders.text_cells import TIME_KEY, TIME_SCALES, number_chunk, parse_as, parse_ids, weight_key
from graphprep.kernels.cpu import delimited, numbers
from graphprep.model.errors import DataError, DecodeError, UsageError
from graphprep.model.protocols import Span
from graphprep.model.rows import ColumnChunk, ColumnKey, RawIds, RawRows, RawTexts
from graphprep.storage.faults import display_url

Ints = NDArray[np.int64]
_NULL_IN_LIST = Words("a null inside a list", "fill the value, or leave the whole list out")


def read_schema(handle: BinaryIO, url: str) -> tuple[pa.Schema, int]:
    """Read a file's Arrow schema and its number of rows.

    Raises DataError where the file is damaged.
    """
    try:
        file = pq.ParquetFile(handle)
        return file.schema_arrow, file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise damaged(url, error) from None


def damaged(url: str, error: Exception) -> DataError:
    """Say that a file cannot be read as Parquet."""
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return DataError(f"this Parquet file cannot be read: {reason}", place=url, fix="write the file again; it may be cut off")


def check_schema(schema: pa.Schema, layout: EdgeLayout, url: str) -> tuple[HeldIds, HeldIds]:
    """Refuse columns whose type cannot be what the layout makes of them. Returns what holds the IDs of both ends.

    Raises DataError, UsageError where a flag asks for it.
    """
    for position in (layout.src, layout.dst):
        if not _is_key(schema.types[position]):
            words = "IDs must be integers or strings"
            raise _wrong_type(schema, position, url, words, "cast it to int64, uint64 or string")
    if layout.relation_col is not None and not _is_key(schema.types[layout.relation_col]):
        words = "relations must be strings or integers"
        raise _wrong_type(schema, layout.relation_col, url, words, "cast it to string")
    if layout.weight is not None and not _is_number(_plain(schema.types[layout.weight])):
        raise _wrong_type(schema, layout.weight, url, "weights must be numbers", "cast it to float64")
    if layout.time is not None:
        kind = _plain(schema.types[layout.time])
        if not (_is_number(kind) or _is_date(kind)):
            raise _wrong_type(schema, layout.time, url, "times must be numbers, timestamps or dates", "cast it to int64")
        if _is_date(kind) and layout.time_unit is not None and kind != pa.timestamp("s"):
            raise UsageError(
                f"--time-unit is for times in seconds, but column {schema.names[layout.time]!r} of {url} holds {kind}",
                fix="leave out --time-unit: timestamps and dates are stored as they are",
            )
    for column in layout.further:
        if not _is_readable(schema.types[column.position]):
            words = "features must be numbers, bools, texts, timestamps, dates, or lists of numbers"
            raise _wrong_type(schema, column.position, url, words, f"cast it, or pass --drop-column {column.name}")
    return _held(schema.types[layout.src]), _held(schema.types[layout.dst])


def _held(kind: pa.DataType) -> HeldIds:
    return "integers" if pa.types.is_integer(_plain(kind)) else "texts"


def _is_key(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(_plain(kind)) or _is_text(_plain(kind)))


def _wrong_type(schema: pa.Schema, position: int, url: str, words: str, fix: str) -> DataError:
    return DataError(f"{words}, found {schema.types[position]}", place=f"{url}: column {schema.names[position]!r}", fix=fix)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type of the values behind a dictionary or an extension."""
    while True:
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        elif isinstance(kind, pa.BaseExtensionType):
            kind = kind.storage_type
        else:
            return kind


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_date(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) or pa.types.is_date(kind))


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _is_text(kind: pa.DataType) -> bool:
    tests = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view, pa.types.is_binary)
    more = (pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in (*tests, *more))


def _is_readable(kind: pa.DataType) -> bool:
    """Return whether a further column may have this type."""
    kind = _plain(kind)
    if _is_list(kind):
        while _is_list(kind):
            kind = _plain(kind.value_type)
        return _is_number(kind) or bool(pa.types.is_boolean(kind))
    return _is_number(kind) or _is_date(kind) or _is_text(kind) or bool(pa.types.is_boolean(kind) or pa.types.is_null(kind))


def read_table(handle: BinaryIO, span: Span, reading: Reading, *, max_rows: int, places: bool) -> Iterator[RawRows]:
    """Read the rows of a span in batches of at most ``max_rows`` rows, of which one row group is in memory.

    Raises DecodeError for the first faulty row of a batch, DataError where the file is damaged.
    """
    layout: EdgeLayout = span.detail
    used = [layout.src, layout.dst, layout.relation_col, layout.weight, layout.time]
    used += [column.position for column in layout.further]
    names = [layout.names[position] for position in used if position is not None]
    try:
        for batch in _batches(pq.ParquetFile(handle), span, max_rows, names):
            yield _Batch(batch, layout, reading).decode(places)
    except (pa.ArrowException, OSError) as error:
        raise damaged(display_url(span.url), error) from None


def _batches(file: pq.ParquetFile, span: Span, max_rows: int, names: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows [start, stop) of a span; row groups that lie outside are not read."""
    sizes = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
    bounds = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    stop = span.stop if span.stop >= 0 else int(bounds[-1])
    if not bounds[-1]:  # the columns exist all the same
        yield _no_rows(file, names)
        return
    groups = [group for group in range(len(sizes)) if bounds[group] < stop and bounds[group + 1] > span.start]
    at = int(bounds[groups[0]]) if groups else stop
    for batch in file.iter_batches(batch_size=max_rows, row_groups=groups, columns=names):
        low, high = max(span.start - at, 0), min(stop - at, batch.num_rows)
        at += batch.num_rows
        if low < high:
            yield batch.slice(low, high - low)


def _no_rows(file: pq.ParquetFile, names: list[str]) -> pa.RecordBatch:
    fields = [file.schema_arrow.field(name) for name in names]
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in fields], schema=pa.schema(fields))


class _Batch:
    """A record batch on its way to raw rows; collects faults, so that the first row's is raised."""

    def __init__(self, batch: pa.RecordBatch, layout: EdgeLayout, reading: Reading) -> None:
        self.batch = batch
        self.layout = layout
        self.reading = reading
        self.faults: list[tuple[int, int, Words]] = []

    def decode(self, places: bool) -> RawRows:
        """Turn the batch into raw rows.

        Raises DecodeError.
        """
        layout, declared = self.layout, self.reading.declared
        src, dst = self._ids("src", layout.src), self._ids("dst", layout.dst)
        relations = None if layout.relation_col is None else self._relations(layout.relation_col)
        columns = []
        if layout.weight is not None:
            columns.append(self._weights(layout.weight))
        if layout.time is not None:
            columns.append(self._times(layout.time))
        columns += [self._further(column, column.dtype or declared.get(column.name)) for column in layout.further]
        if self.faults:
            row, position, words = min(self.faults, key=lambda fault: fault[:2])
            raise DecodeError(words.message, at=row, fix=words.fix, column=layout.names[position])
        rows = np.arange(src.size, dtype=np.int64)
        return as_rows(layout, src, dst, tuple(columns), places=(rows, rows) if places else None, relations=relations)

    def _array(self, position: int) -> pa.Array:
        """Return a column without dictionaries and extensions."""
        array = self.batch.column(self.layout.names[position])
        while True:
            if isinstance(array, pa.DictionaryArray):
                array = array.dictionary_decode()
            elif isinstance(array, pa.ExtensionArray):
                array = array.storage
            else:
                return array

    def _ids(self, name: str, position: int) -> RawIds | RawTexts:
        array, base, kind = self._array(position), self.layout.index_base, self.reading.ids(name)
        if kind == "string" or not pa.types.is_integer(array.type):
            buf, start, stop = _key_cells(array)
            ids, code, row = parse_ids(kind, buf, start, stop, base)
            if row >= 0:
                found = show(buf[start[row] : stop[row]].tobytes())
                self.faults.append((row, position, id_words(name, code, found, base, kind)))
            return ids
        if array.null_count:
            row = int(np.flatnonzero(_is_null(array))[0])
            self.faults.append((row, position, id_words(name, numbers.EMPTY, "", base)))
            array = array.fill_null(base)
        values = array.to_numpy(zero_copy_only=False)
        for code, bad in _id_faults(values, base, kind):
            if bad.any():
                row = int(bad.argmax())
                self.faults.append((row, position, id_words(name, code, str(values[row]), base, kind)))
                break
        bits: RawIds = values.astype(np.int64 if kind == "int" else np.uint64).view(np.uint64)
        return bits - np.uint64(base)

    def _relations(self, position: int) -> Relations | None:
        buf, start, stop = _key_cells(self._array(position))
        offsets, values, code, row = delimited.gather_ids(buf, start, stop)
        if row >= 0:
            self.faults.append((row, position, relation_words(code, show(buf[start[row] : stop[row]].tobytes()))))
            return None
        return name_relations(self.layout, RawTexts(offsets, values))

    def _weights(self, position: int) -> ColumnChunk:
        rows, values = _present(self._array(position))
        dtype = self.layout.weight_dtype
        weights, code, bad = cast_numbers(values.astype(np.float64), np.dtype(dtype))
        if bad >= 0:
            self.faults.append((int(rows[bad]), position, weight_words(code, str(values[bad]), dtype)))
        return number_chunk(weight_key(dtype), rows, weights)

    def _times(self, position: int) -> ColumnChunk:
        rows, values = _present(self._array(position))
        unit = self.layout.time_unit
        times, code, bad = scale_times(values, TIME_SCALES[unit])
        if bad >= 0:
            self.faults.append((int(rows[bad]), position, time_words(code, str(values[bad]), unit)))
        return number_chunk(TIME_KEY, rows, times)

    def _further(self, column: FurtherColumn, dtype: str | None) -> ColumnChunk:
        array = self._array(column.position)
        if pa.types.is_null(array.type):
            return self._empty(column, dtype)
        if _is_text(array.type):
            return self._texts(column, array, dtype)
        rows = np.flatnonzero(~_is_null(array)).astype(np.int64)
        counts, values, item_shape = self._flatten(column, array.drop_null(), rows)
        if dtype == "binary":
            words = Words(f"field {column.name!r} must be text, found {array.type}", "declare a dtype of numbers with --column")
            self.faults.append((0, column.position, words))
        elif dtype is not None:
            found = values
            values, code, bad = cast_numbers(found, np.dtype(dtype))
            if bad >= 0:
                row = int(rows[np.searchsorted(np.cumsum(counts), bad, side="right")])
                self.faults.append((row, column.position, column_words(column.name, code, str(found[bad]), dtype)))
        return ColumnChunk(ColumnKey(column.name, "numbers", values.dtype.name), rows, counts, values, item_shape)

    def _empty(self, column: FurtherColumn, dtype: str | None) -> ColumnChunk:
        none = np.zeros(0, np.int64)
        if dtype == "binary":
            return ColumnChunk(ColumnKey(column.name, "binary", "uint8"), none, none, np.zeros(0, np.uint8))
        key = ColumnKey(column.name, "numbers", dtype or "int64")
        return number_chunk(key, none, np.zeros(0, dtype or "int64"))

    def _texts(self, column: FurtherColumn, array: pa.Array, dtype: str | None) -> ColumnChunk:
        is_string = not (pa.types.is_binary(array.type) or pa.types.is_large_binary(array.type))
        is_string &= not (pa.types.is_binary_view(array.type) or pa.types.is_fixed_size_binary(array.type))
        rows = np.flatnonzero(~_is_null(array)).astype(np.int64)
        buf, start, stop = _text_cells(array.drop_null())
        if dtype in (None, "binary"):
            found, counts, values, code, bad = delimited.gather_texts(buf, start, stop, drop_empty=False, check=is_string)
            chunk = ColumnChunk(ColumnKey(column.name, "binary", "uint8"), rows[found], counts, values)
        else:
            found, numbers_found, code, bad = parse_as(str(dtype), buf, start, stop)
            chunk = number_chunk(ColumnKey(column.name, "numbers", str(dtype)), rows[found], numbers_found)
        if bad >= 0:
            text = repr(buf[start[bad] : stop[bad]].tobytes().decode(errors="replace"))
            self.faults.append((int(rows[bad]), column.position, column_words(column.name, code, text, dtype or "binary")))
        return chunk

    def _flatten(
        self, column: FurtherColumn, array: pa.Array, rows: Ints
    ) -> tuple[Ints, NDArray[np.generic], tuple[int, ...] | None]:
        """Return counts a row, all values, and the shape that all rows share, None where they differ."""
        bounds = np.arange(len(array) + 1, dtype=np.int64)  # of each row, in items of the present level
        shape: tuple[int, ...] | None = ()
        while _is_list(array.type):
            lengths = _list_lengths(array)
            shape = None if shape is None or np.unique(lengths).size > 1 else (*shape, int(lengths[0]) if lengths.size else 0)
            bounds = np.concatenate([[0], np.cumsum(lengths)])[bounds]
            array = array.flatten()
            array = array.dictionary_decode() if isinstance(array, pa.DictionaryArray) else array
            if array.null_count:
                first = int(np.flatnonzero(_is_null(array))[0])
                row = int(rows[np.searchsorted(bounds, first, side="right") - 1])
                self.faults.append((row, column.position, _NULL_IN_LIST))
                array = array.drop_null()
                break
        _, values = _present(array) if not _is_list(array.type) else (None, np.zeros(int(bounds[-1]), np.int64))
        return np.diff(bounds), values, shape


def _id_faults(values: NDArray[Any], base: int, kind: IdKind) -> Iterator[tuple[int, NDArray[np.bool_]]]:
    """Yield what may be wrong with integer IDs: a code, and which of them are at fault."""
    if kind == "uint":
        yield numbers.NEGATIVE, values < 0
    elif values.dtype == np.uint64:
        yield numbers.OVERFLOW, values > np.uint64(2**63 - 1)
    if base:
        yield delimited.BELOW_BASE, values < base


def _key_cells(array: pa.Array) -> tuple[NDArray[np.uint8], Ints, Ints]:
    """Return the bytes of strings, or integers as decimal digits, and where each begins and ends; a null is empty."""
    kind = pa.string() if pa.types.is_integer(array.type) else pa.large_binary()
    return _text_cells(array.cast(kind).fill_null(pa.scalar("" if kind == pa.string() else b"", kind)))


def _text_cells(array: pa.Array) -> tuple[NDArray[np.uint8], Ints, Ints]:
    """Return the bytes of texts without nulls, and where each begins and ends."""
    texts = array.cast(pa.large_binary())
    _, offset_bytes, data = texts.buffers()
    offsets = np.frombuffer(offset_bytes or bytes(8), np.int64)[texts.offset : texts.offset + len(texts) + 1]
    return np.frombuffer(data or b"", np.uint8), offsets[:-1].copy(), offsets[1:].copy()


def _is_null(array: pa.Array) -> NDArray[np.bool_]:
    return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]


def _list_lengths(array: pa.Array) -> Ints:
    """Return the length of every list; there are no nulls among them."""
    if pa.types.is_fixed_size_list(array.type):
        return np.full(len(array), array.type.list_size, np.int64)
    return array.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]


def _present(array: pa.Array) -> tuple[Ints, NDArray[np.generic]]:
    """Return the rows that are not null, and their values; timestamps and dates as their stored integers."""
    rows = np.flatnonzero(~_is_null(array)).astype(np.int64)
    values = array.drop_null()
    if _is_date(values.type):
        values = values.view(pa.int32() if pa.types.is_date32(values.type) else pa.int64())
    return rows, values.to_numpy(zero_copy_only=False)


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
