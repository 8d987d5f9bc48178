"""The binary files of a chunked graph: what a ``.npy`` or Parquet file holds, and the rows of the latter in batches.

Nothing here trusts a header: sizes are compared with the file, pickles and object arrays are never loaded.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.arrays_files import ArraySource, find_array
from graphprep.decoders.cells.row_numbers import batch_rows, every_row
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.protocols import InputStorage
from graphprep.model.rows import ColumnChunk, ColumnKey
from graphprep.storage.faults import display_url

PARQUET_MAGIC = b"PAR1"
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_SHAPE = re.compile(r"\(\s*\d+\s*(,\s*\d+\s*)*,?\s*\)")

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TableInfo:
    """What a binary file says of itself.

    ``dtype`` is NumPy's name (``uint8`` for texts), ``item_shape`` the shape of a row's value, None where it is found in the
    data (Parquet lists). ``array`` is there for ``.npy`` files only.
    """

    num_rows: int
    dtype: str
    item_shape: tuple[int, ...] | None
    family: str = "numbers"
    array: ArraySource | None = None


# ------------------------------------------------------------------------------------------------------------ .npy


def inspect_npy(storage: InputStorage, url: str) -> TableInfo:
    """Read the header of a ``.npy`` file and compare it with the file's size.

    Raises DataError for other files, object arrays, truncated data, and bytes behind the array.
    """
    array = find_array(storage, url, "file")
    if not array.shape:
        raise DataError("the array is a scalar; expected one row a node or edge", place=array.place)
    return TableInfo(array.shape[0], array.dtype.name, array.shape[1:], array=array)


# --------------------------------------------------------------------------------------------------------- Parquet


@contextlib.contextmanager
def _parquet_faults(fail: Callable[[str], Exception]) -> Iterator[None]:
    """Turn pyarrow's complaints about a file's content into ``fail(words)``."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, ValueError) as error:
        # Corrupt content is an OSError without a number; one with a number is the file system's.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise fail(lines[0]) from error


def _open_parquet(handle: BinaryIO) -> Any:
    import pyarrow.parquet as pq

    return pq.ParquetFile(handle)


def inspect_parquet(storage: InputStorage, url: str, *, edges: bool) -> TableInfo:
    """Read the footer of a Parquet file.

    Raises DataError for other files, and for columns that hold neither IDs (``edges``) nor a feature.
    """
    place = display_url(url)
    with storage.open(url) as handle:
        if handle.read(len(PARQUET_MAGIC)) != PARQUET_MAGIC:
            raise DataError("not a Parquet file", place=place)
        with _parquet_faults(lambda words: DataError(f"not a readable Parquet file: {words}", place=place)):
            file = _open_parquet(handle)
            num_rows, schema = int(file.metadata.num_rows), file.schema_arrow
    fields = value_fields(schema)
    if edges:
        return TableInfo(num_rows, _check_edge_fields(schema, fields, place), (2,))
    if not fields:
        raise DataError("the table has no column", place=place)
    family, dtype, item_shape = _feature_type(schema, fields, place)
    stated = _stated_shape(schema, place)
    if stated is not None and family == "numbers":
        _check_shape(stated, num_rows, item_shape, place)
        item_shape = stated[1:]
    return TableInfo(num_rows, dtype, item_shape, family)


def value_fields(schema: Any) -> list[int]:
    """Return the positions of a table's columns, without those that pandas writes for a data frame's index."""
    return [i for i, name in enumerate(schema.names) if not _PANDAS_INDEX.fullmatch(name)]


def _check_edge_fields(schema: Any, fields: list[int], place: str) -> str:
    import pyarrow.types as pt

    if len(fields) != 2:
        raise DataError(
            f"edges need exactly two columns, found {len(fields)}", place=place, fix="keep the source and the destination"
        )
    for i in fields:
        field = schema.field(i)
        if not pt.is_integer(field.type):
            message = f"ids must be integers, found {field.type}"
            raise DataError(message, place=f"{place}: column {field.name!r}", fix="store them as int64")
    return str(np.dtype(schema.field(fields[0]).type.to_pandas_dtype()).name)


def _feature_type(schema: Any, fields: list[int], place: str) -> tuple[str, str, tuple[int, ...] | None]:
    """Return (family, dtype, item shape or None) of a feature's columns."""
    import pyarrow.types as pt

    first = schema.field(fields[0])
    for i in fields:
        field = schema.field(i)
        if len(fields) > 1 and _plain_type(field.type) != _plain_type(first.type):
            message = f"columns of one feature must have one type: {first.name!r} has {first.type}, {field.name!r} {field.type}"
            raise DataError(message, place=place, fix="store all columns in one type")
    kind = _plain_type(first.type)
    if pt.is_fixed_size_list(kind) or pt.is_list(kind) or pt.is_large_list(kind):
        shape, value_type = _list_shape(kind)
        dtype = _dtype_name(value_type)
        if dtype is not None and len(fields) == 1:
            return "numbers", dtype, shape
    elif _is_text(kind) and len(fields) == 1:
        return "binary", "uint8", None
    else:
        dtype = _dtype_name(kind)
        if dtype is not None:
            return "numbers", dtype, (len(fields),)
    raise DataError(
        f"a feature cannot have type {first.type}",
        place=f"{place}: column {first.name!r}",
        fix="store numbers, booleans, one text column, or one column of lists of numbers",
    )


def _plain_type(kind: Any) -> Any:
    """Return the type of the values, also where they are dictionary-encoded."""
    import pyarrow.types as pt

    return kind.value_type if pt.is_dictionary(kind) else kind


def _is_text(kind: Any) -> bool:
    import pyarrow.types as pt

    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_binary(kind) or pt.is_large_binary(kind))


def _list_shape(kind: Any) -> tuple[tuple[int, ...] | None, Any]:
    """Return (shape, type of the numbers) of a list type; the shape is None where lists may have any length."""
    import pyarrow.types as pt

    if not pt.is_fixed_size_list(kind):
        return None, kind.value_type
    shape: tuple[int, ...] = ()
    while pt.is_fixed_size_list(kind):
        shape, kind = (*shape, kind.list_size), kind.value_type
    return shape, kind


def _dtype_name(kind: Any) -> str | None:
    """Return NumPy's name of a number's type; dates and times are their stored integers. None for other types."""
    import pyarrow.types as pt

    if pt.is_boolean(kind) or pt.is_integer(kind) or pt.is_floating(kind):
        return str(np.dtype(kind.to_pandas_dtype()).name)
    if pt.is_temporal(kind):
        return f"int{kind.bit_width}"
    return None


def _stated_shape(schema: Any, place: str) -> tuple[int, ...] | None:
    """Read the schema's key ``shape``, ``(rows, …)``, as DGL's tools write it."""
    text = (schema.metadata or {}).get(b"shape")
    if text is None:
        return None
    words = text.decode("utf-8", "replace")
    if not _SHAPE.fullmatch(words.strip()):
        raise DataError(f"the schema's key 'shape' must be a tuple of integers, found {words!r:.60}", place=place)
    return tuple(int(size) for size in re.findall(r"\d+", words))


def _check_shape(stated: tuple[int, ...], num_rows: int, item_shape: tuple[int, ...] | None, place: str) -> None:
    """Compare the stated shape with the rows and, where their number is known, the values of a row."""
    fits = item_shape is None or math.prod(item_shape) == math.prod(stated[1:])
    if stated[0] != num_rows or not fits:
        found = f"{num_rows} row{'' if num_rows == 1 else 's'}" + (
            "" if item_shape is None else f" of {math.prod(item_shape)} values"
        )
        raise DataError(f"the schema's key 'shape' says {stated}, but the table has {found}", place=place)


def read_parquet_edges(handle: BinaryIO, max_rows: int) -> Iterator[tuple[NDArray[Any], NDArray[Any], tuple[str, str]]]:
    """Read (sources, destinations, column names) in batches. Raises DecodeError at the first null."""
    from graphprep.decoders.cells.arrow_numpy import null_mask, numbers_of

    for batch, fields in _batches(handle, max_rows, 2 * 8):
        names = [batch.schema.names[i] for i in fields]
        nulls = [(int(null_mask(batch.column(i)).argmax()), j) for j, i in enumerate(fields) if batch.column(i).null_count]
        if nulls:
            row, j = min(nulls)
            raise DecodeError("an id is null", at=row, column=names[j], fix="drop the row, or supply the id")
        src, dst = (numbers_of(batch.column(i)) for i in fields)
        yield src, dst, (names[0], names[1])


def read_parquet_feature(
    handle: BinaryIO, key: ColumnKey, item_shape: tuple[int, ...] | None, max_rows: int
) -> Iterator[tuple[int, ColumnChunk]]:
    """Read (number of rows, chunk) in batches. A null, or a null list, is a row without the column.

    Raises DecodeError for nulls among several columns or inside a list, and for lists that do not fit ``item_shape``.
    """
    row_bytes = math.prod(item_shape or (1,)) * np.dtype(key.dtype).itemsize
    for batch, fields in _batches(handle, max_rows, row_bytes):
        if len(fields) > 1:
            chunk = _flat_chunk(batch, fields, key, cast("tuple[int, ...]", item_shape))
        elif key.family == "binary":
            chunk = _text_chunk(batch.column(fields[0]), key)
        else:
            chunk = _single_chunk(batch, fields[0], key, item_shape)
        yield batch.num_rows, chunk


def _batches(handle: BinaryIO, max_rows: int, row_bytes: int) -> Iterator[tuple[Any, list[int]]]:
    """Read record batches, and the positions of their columns."""
    from graphprep.decoders.cells.arrow import row_group_batches

    rows = 0
    with _parquet_faults(lambda words: DecodeError(f"the Parquet file is corrupt: {words}", at=0)):
        file = _open_parquet(handle)
        fields = value_fields(file.schema_arrow)
        groups = range(file.metadata.num_row_groups)
        batches = row_group_batches(file, batch_rows(max_rows, row_bytes), groups, use_threads=False)
    while True:
        with _parquet_faults(lambda words: DecodeError(f"the Parquet file is corrupt: {words}", at=0)):
            batch = next(batches, None)
        if batch is None:
            break
        rows += batch.num_rows
        if batch.num_rows:
            yield _decode_dictionaries(batch), fields
    if rows != file.metadata.num_rows:
        raise DecodeError(f"the Parquet file is corrupt: {rows} rows of {file.metadata.num_rows}", at=0)


def _decode_dictionaries(batch: Any) -> Any:
    import pyarrow as pa

    if not any(pa.types.is_dictionary(field.type) for field in batch.schema):
        return batch
    arrays = [array.dictionary_decode() if pa.types.is_dictionary(array.type) else array for array in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _numbers(array: Any, dtype: str) -> NDArray[Any]:
    """Return an array without nulls as NumPy's; dates and times as their stored integers."""
    import pyarrow.types as pt

    from graphprep.decoders.cells.arrow_numpy import numbers_of

    return np.asarray(numbers_of(array.view(dtype) if pt.is_temporal(array.type) else array), dtype)


def _flat_chunk(batch: Any, fields: list[int], key: ColumnKey, item_shape: tuple[int, ...]) -> ColumnChunk:
    """Join the columns "0", "1", … of a flat table to [rows, columns], which is reshaped to [rows, *item_shape]."""
    from graphprep.decoders.cells.arrow_numpy import null_mask

    nulls = [(int(null_mask(batch.column(i)).argmax()), i) for i in fields if batch.column(i).null_count]
    if nulls:
        row, i = min(nulls)
        raise DecodeError("a value is null", at=row, column=batch.schema.names[i], fix="supply the value, NaN for instance")
    values = np.stack([_numbers(batch.column(i), key.dtype) for i in fields], axis=1)
    return dense_chunk(key, values.reshape(batch.num_rows, *item_shape))


def _single_chunk(batch: Any, field: int, key: ColumnKey, item_shape: tuple[int, ...] | None) -> ColumnChunk:
    """Take one column of numbers or of lists."""
    from graphprep.decoders.cells.arrow_numpy import null_mask, valid_rows, without_nulls

    array, name = batch.column(field), batch.schema.names[field]
    valid = valid_rows(array)
    flat, counts = _flatten(without_nulls(array))
    if flat.null_count:
        ends = np.cumsum(counts)
        row = valid[np.searchsorted(ends, int(null_mask(flat).argmax()), side="right")]
        raise DecodeError("a list holds a null", at=int(row), column=name, fix="supply the value, NaN for instance")
    if item_shape is not None:
        width = math.prod(item_shape)
        wrong = np.flatnonzero(counts != width)
        if wrong.size:
            message = f"expected a list of {width}, found one of {int(counts[wrong[0]])}"
            raise DecodeError(message, at=int(valid[wrong[0]]), column=name)
    elif counts.size and (counts == counts[0]).all():
        item_shape = (int(counts[0]),)
    return ColumnChunk(key, valid, counts, _numbers(flat, key.dtype), item_shape)


def _flatten(array: Any) -> tuple[Any, Ints]:
    """Return the numbers of an array without nulls, and how many each row has."""
    import pyarrow.types as pt

    from graphprep.decoders.cells.arrow_numpy import list_lengths

    if pt.is_list(array.type) or pt.is_large_list(array.type):
        return array.flatten(), list_lengths(array)
    num_rows, width = len(array), 1
    while pt.is_fixed_size_list(array.type) and not array.null_count:  # nulls inside are the caller's to refuse
        width *= array.type.list_size
        array = array.flatten()
    return array, same_counts(num_rows, width)


def _text_chunk(array: Any, key: ColumnKey) -> ColumnChunk:
    """Take a column of texts as their bytes."""
    import pyarrow as pa

    from graphprep.decoders.cells.arrow_numpy import valid_rows, without_nulls

    valid = valid_rows(array)
    texts = without_nulls(array).cast(pa.large_binary())
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = texts.buffers()[2]
    values = np.frombuffer(data or b"", np.uint8)[offsets[0] : offsets[-1]]
    return ColumnChunk(key, valid, np.diff(offsets), values)


def dense_chunk(key: ColumnKey, values: NDArray[Any]) -> ColumnChunk:
    """Make a chunk of values [k, *item_shape] that all rows have."""
    num_rows, item_shape = values.shape[0], values.shape[1:]
    counts = same_counts(num_rows, math.prod(item_shape))
    return ColumnChunk(key, every_row(num_rows), counts, values.reshape(-1), item_shape)


def same_counts(num_rows: int, count: int) -> Ints:
    """Return the same count for every row, in the memory of one."""
    return np.broadcast_to(np.int64(count), (num_rows,))
