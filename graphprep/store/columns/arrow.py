"""Columns of a store as arrays of Arrow: numbers, dates and texts as they are, several values as lists, absent ones null."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError
from graphprep.model.rows import RawTexts
from graphprep.model.schema import ColumnSchema, RawIdKind
from graphprep.storage.read.arrow_arrays import arrow_array, arrow_null
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]
RawBlock = NDArray[np.int64] | NDArray[np.uint64] | RawTexts
Present = NDArray[np.bool_] | None

_STAMPS = ("ms", "us", "ns")  # units of Parquet's timestamps; others stay integers


def id_type(kind: RawIdKind) -> Any:
    """Return the type of raw IDs."""
    import pyarrow as pa

    return pa.string() if kind == "string" else pa.uint64() if kind == "uint64" else pa.int64()


def id_array(ids: RawBlock, kind: RawIdKind) -> Any:
    """Return raw IDs. Raises DataError for texts that are no UTF-8."""
    import pyarrow as pa

    if isinstance(ids, RawTexts):
        return _checked(text_array(ids), "raw IDs").cast(pa.string())
    return arrow_array(ids, id_type(kind))


def text_array(texts: RawTexts) -> Any:
    """Return texts as an array of pyarrow, without a copy."""
    import pyarrow as pa

    buffers = pa.py_buffer(np.ascontiguousarray(texts.offsets)), pa.py_buffer(np.ascontiguousarray(texts.values))
    return pa.LargeStringArray.from_buffers(texts.size, *buffers)


def column_type(column: ColumnSchema, *, texts: bool = True) -> Any:
    """Return the type of a column; without ``texts``, binary ones are bytes."""
    import pyarrow as pa

    if column.kind == "binary":
        return pa.string() if texts else pa.binary()
    number = pa.from_numpy_dtype(np.dtype(column.dtype))
    if column.kind == "dense":
        return _dense_type(column, number)
    if column.kind == "ragged":
        return pa.list_(number)
    if column.kind == "sparse":
        at = pa.list_(pa.int64(), column.item_shape[0]) if column.item_shape else pa.int64()
        return pa.list_(pa.struct([("at", at), ("value", number)]))
    return pa.list_(pa.struct([("start", pa.int64()), ("end", pa.int64()), ("values", pa.list_(number))]))


def column_array(column: ColumnSchema, cells: Cells, present: Present, *, texts: bool = True) -> Any:
    """Return a column of some rows. Raises DataError for texts that are no UTF-8."""
    import pyarrow as pa

    kind, missing = column_type(column, texts=texts), None if present is None else ~present
    if column.kind == "dense":
        return _dense_array(cells.values, kind, column.item_shape, missing)
    if column.kind == "binary":
        return _text_array(column, cells, kind, missing)
    if column.kind == "temporal":
        end = np.asarray(cells.end)
        values = _list_array(cells.item_counts, arrow_array(cells.flat), kind.value_type.field("values").type, None)
        items = [arrow_array(np.asarray(cells.start)), arrow_array(end, missing=end == -1), values]
        return _list_array(np.asarray(cells.entry_counts), _struct(items, kind.value_type), kind, missing)
    values = arrow_array(cells.flat)
    if column.kind == "sparse":
        at = arrow_array(np.asarray(cells.coords).reshape(-1))
        if column.item_shape:
            at = pa.FixedSizeListArray.from_arrays(at, type=kind.value_type.field("at").type)
        values = _struct([at, values], kind.value_type)
    return _list_array(cells.item_counts, values, kind, missing)


def has_names(column: ColumnSchema) -> bool:
    """Return whether a column's values are codes of names, one a row."""
    return column.categories is not None and column.kind == "dense" and not column.item_shape


def names_array(column: ColumnSchema, codes: Any) -> Any:
    """Return the names for codes, an array of integers: a dictionary of strings, null where the codes are."""
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(codes.cast(pa.int32()), pa.array(list(column.categories or ()), pa.string()))


def _dense_type(column: ColumnSchema, number: Any) -> Any:
    import pyarrow as pa

    if 0 in column.item_shape:
        return pa.list_(number)
    if column.item_shape:
        for size in reversed(column.item_shape):
            number = pa.list_(number, size)
        return number
    if column.dtype == "int64" and column.unit == "day":
        return pa.date32()
    return pa.timestamp(column.unit) if column.dtype == "int64" and column.unit in _STAMPS else number


def _dense_array(values: NDArray[Any], kind: Any, shape: tuple[int, ...], missing: Present) -> Any:
    import pyarrow as pa

    flat = np.ascontiguousarray(values).reshape(-1)
    if not shape:
        flat = flat.astype(np.int32) if pa.types.is_date32(kind) else flat
        return arrow_array(flat, kind, missing)
    if 0 in shape:
        return _list_array(np.zeros(len(values), np.int64), arrow_array(flat), kind, missing)
    kinds = [kind]
    for _ in shape[1:]:
        kinds.append(kinds[-1].value_type)
    array = arrow_array(flat)
    for inner in reversed(kinds):
        mask = None if missing is None or inner is not kind else arrow_array(missing)
        array = pa.FixedSizeListArray.from_arrays(array, type=inner, mask=mask)
    return array


def _text_array(column: ColumnSchema, cells: Cells, kind: Any, missing: Present) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = text_array(RawTexts(_offsets(cells.item_counts), np.asarray(cells.values).view(np.uint8)))
    found = _checked(found, f"column {column.name!r}") if pa.types.is_string(kind) else found.cast(pa.large_binary())
    found = found if missing is None else pc.if_else(arrow_array(missing), arrow_null(found.type), found)
    return found.cast(kind)


def _list_array(counts: Ints, values: Any, kind: Any, missing: Present) -> Any:
    import pyarrow as pa

    mask = None if missing is None else arrow_array(missing)
    offsets = arrow_array(_offsets(counts).astype(np.int32))
    return pa.ListArray.from_arrays(offsets, values, type=kind, mask=mask)


def _struct(arrays: list[Any], kind: Any) -> Any:
    import pyarrow as pa

    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _offsets(counts: Ints) -> Ints:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])


def _checked(texts: Any, what: str) -> Any:
    import pyarrow as pa

    try:
        texts.validate(full=True)
    except pa.ArrowInvalid as error:
        raise DataError(f"{what}: {error}", fix="write the bytes as they are: --option texts=binary") from None
    return texts
