"""A column of a store as an array of Arrow, piece by piece."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.rows import RawTexts
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.arrow import column_array, column_type, has_names, names_array, text_array
from graphprep.store.columns.cells import Cells

_CHUNK_ROWS = 1 << 16  # of a column: lists and texts count their values with 32 bits
Present = NDArray[np.bool_] | None


def arrow_column(schema: ColumnSchema, column: Any, present: Present) -> Any:
    """Return a column as a chunked array: null where there is no value, names for the codes of a column that was text.

    Texts are strings, bytes where one of them is not UTF-8.
    """
    import pyarrow as pa

    texts = schema.kind != "binary" or _is_text(column)
    chunks = [
        column_array(schema, cells, None if present is None else np.asarray(present[low:high]), texts=texts)
        for low, high, cells in _pieces(schema, column)
    ]
    made = pa.chunked_array(chunks, column_type(schema, texts=texts))
    if not has_names(schema):
        return made
    return pa.chunked_array([names_array(schema, one) for one in made.chunks], pa.dictionary(pa.int32(), pa.string()))


def _pieces(schema: ColumnSchema, column: Any) -> Iterator[tuple[int, int, Cells]]:
    """Yield (first row, end, the values of these rows)."""
    for low in range(0, len(column), _CHUNK_ROWS):
        high = min(low + _CHUNK_ROWS, len(column))
        rows = column[low:high]
        yield low, high, _dense_cells(schema, rows) if isinstance(rows, np.ndarray) else rows.cells()


def _dense_cells(schema: ColumnSchema, rows: NDArray[Any]) -> Cells:
    return Cells(None, rows.reshape(len(rows), int(np.prod(schema.item_shape, dtype=np.int64))))


def _is_text(column: Any) -> bool:
    import pyarrow as pa

    try:
        text_array(RawTexts(column.offsets, column.values)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True
