"""Arrow arrays as NumPy's, by their buffers: ``to_numpy`` and ``is_null`` import pandas and pyarrow.compute, half a second."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from graphprep.decoders.cells.row_numbers import every_row

Ints = NDArray[np.int64]

_FLOATS = {"halffloat": "float16", "float": "float32", "double": "float64"}  # Arrow's names that are not NumPy's


def null_mask(array: pa.Array) -> NDArray[np.bool_]:
    """Return which values are null: bool[n]."""
    if not array.null_count:
        return np.zeros(len(array), np.bool_)
    validity = array.buffers()[0]
    if validity is None:  # arrays of nulls, unions, runs
        return array.is_null().to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    return ~_bits(validity, array.offset, len(array))


def valid_rows(array: pa.Array) -> Ints:
    """Return the positions of the values that are not null: int64[k], ascending."""
    if not array.null_count:
        return every_row(len(array))
    return np.flatnonzero(~null_mask(array)).astype(np.int64, copy=False)


def without_nulls(array: pa.Array) -> pa.Array:
    """Return the values that are not null."""
    return array.drop_null() if array.null_count else array


def numbers_of(array: pa.Array) -> NDArray[Any]:
    """Return numbers or booleans without nulls, as they are; where that can be, as a view that cannot be written to."""
    kind = array.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)) or array.null_count:
        return array.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]
    dtype = np.dtype(_FLOATS.get(str(kind), str(kind)))  # to_pandas_dtype imports pandas where pyarrow is older
    data = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), dtype)
    if pa.types.is_boolean(kind):
        return _bits(data, array.offset, len(array))
    return np.frombuffer(data, dtype, len(array), array.offset * dtype.itemsize)


def list_lengths(array: pa.Array) -> Ints:
    """Return the lengths of lists, of which none is null: int64[n]."""
    kind = array.type
    if pa.types.is_fixed_size_list(kind):
        return np.full(len(array), kind.list_size, np.int64)
    width = np.int64 if pa.types.is_large_list(kind) else np.int32
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)) or array.null_count:
        return array.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)  # type: ignore[no-any-return]
    if not len(array):
        return np.zeros(0, np.int64)
    offsets = np.frombuffer(array.buffers()[1], width, len(array) + 1, array.offset * np.dtype(width).itemsize)
    return np.diff(offsets).astype(np.int64, copy=False)


def _bits(buffer: pa.Buffer, offset: int, size: int) -> NDArray[np.bool_]:
    """Return ``size`` bits from bit ``offset`` on, lowest of each byte first."""
    first = offset // 8
    data = np.frombuffer(buffer, np.uint8)[first : (offset + size + 7) // 8]
    return np.unpackbits(data, bitorder="little")[offset - 8 * first :][:size].view(np.bool_)
