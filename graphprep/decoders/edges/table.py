"""Parquet files of edges to raw rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from graphprep.decoders.cells.arrow import (
    ArrowCells,
    damaged,
    is_date,
    is_key,
    is_number,
    is_readable,
    parquet_batches,
    plain_type,
    read_schema,
    wrong_type,
)
from graphprep.decoders.cells.columns import EdgeLayout, HeldIds, IdKind, Reading, Relations, edge_rows
from graphprep.decoders.cells.faults import NAME_ENDS, TEXT_TIMES, Wording, id_words, relation_words
from graphprep.decoders.edges.text import relation_column
from graphprep.model.errors import UsageError
from graphprep.model.protocols import Span
from graphprep.model.rows import RawRows
from graphprep.storage.faults import display_url

_LOOK_ROWS = 1 << 13
_CAST_TIME = f"cast it to int64 or timestamp; {TEXT_TIMES}"


def check_schema(schema: pa.Schema, layout: EdgeLayout, url: str) -> tuple[HeldIds, HeldIds]:
    """Refuse columns whose type cannot be what the layout makes of them. Returns what holds the IDs of both ends.

    Raises DataError, UsageError where a flag asks for it.
    """
    for position in (layout.src, layout.dst):
        if not is_key(schema.types[position]):
            words = "IDs must be integers or strings"
            raise wrong_type(schema, position, url, words, _other_ends(schema, position))
    if layout.relation_col is not None and not is_key(schema.types[layout.relation_col]):
        words = "relations must be strings or integers"
        raise wrong_type(schema, layout.relation_col, url, words, "cast it to string")
    if layout.weight is not None and not is_number(plain_type(schema.types[layout.weight])):
        raise wrong_type(schema, layout.weight, url, "weights must be numbers", "cast it to float64")
    if layout.time is not None:
        kind = plain_type(schema.types[layout.time])
        if not (is_number(kind) or is_date(kind)):
            raise wrong_type(schema, layout.time, url, "times must be numbers, timestamps or dates", _CAST_TIME)
        if is_date(kind) and layout.time_unit is not None and kind != pa.timestamp("s"):
            raise UsageError(
                f"--time-unit is for times in seconds, but column {schema.names[layout.time]!r} of {url} holds {kind}",
                fix="leave out --time-unit: timestamps and dates are stored as they are",
            )
    types = schema.types  # a list made anew each time
    for column in layout.further:
        if not is_readable(types[column.position]):
            words = "features must be numbers, bools, texts, timestamps, dates, or lists of numbers"
            raise wrong_type(schema, column.position, url, words, f"cast it, or pass --drop-column {column.name}")
    return _held(schema.types[layout.src]), _held(schema.types[layout.dst])


def _other_ends(schema: pa.Schema, position: int) -> str:
    """Say which columns may be the ends in place of one that is none."""
    cast = "cast it to int64, uint64 or string"
    others = [name for name, kind in zip(schema.names, schema.types, strict=True) if is_key(kind)]
    if len(others) < 2 or not (is_date(plain_type(schema.types[position])) or pa.types.is_floating(schema.types[position])):
        return cast
    return f"{NAME_ENDS}, of {', '.join(others[:8])}; or {cast}"


def first_ids(handle: BinaryIO, url: str, wanted: Callable[[list[str]], bool]) -> tuple[list[str], list[object]]:
    """Return the names of a Parquet file's columns and, where they are ``wanted``, the first column's first values.

    Raises DataError where the file is damaged.
    """
    schema, _ = read_schema(handle, url, parquet=True)
    if not wanted(schema.names) or not is_key(schema.types[0]):
        return [], []
    try:
        batches = pq.ParquetFile(handle).iter_batches(_LOOK_ROWS, columns=[schema.names[0]])
        first = next(batches, None)
    except (pa.ArrowException, OSError) as error:
        raise damaged(url, error) from None
    return schema.names, [] if first is None else first.column(0).to_pylist()


def _held(kind: pa.DataType) -> HeldIds:
    return "integers" if pa.types.is_integer(plain_type(kind)) else "texts"


def read_table(handle: BinaryIO, span: Span, reading: Reading, *, max_rows: int, places: bool) -> Iterator[RawRows]:
    """Read the rows of a span in batches of at most ``max_rows`` rows, of which one row group is in memory.

    Raises DecodeError for the first faulty row of a batch, DataError where the file is damaged.
    """
    layout: EdgeLayout = span.detail
    used = [layout.src, layout.dst, layout.relation_col, layout.weight, layout.time]
    used += [column.position for column in layout.further]
    names = [layout.names[position] for position in used if position is not None]
    try:
        for batch in parquet_batches(handle, span, max_rows, names):
            yield _decode(ArrowCells(batch, layout.names), layout, reading, places)
    except (pa.ArrowException, OSError) as error:
        raise damaged(display_url(span.url), error) from None


def _decode(cells: ArrowCells, layout: EdgeLayout, reading: Reading, places: bool) -> RawRows:
    """Turn a batch into raw rows.

    Raises DecodeError for the first faulty row.
    """
    ends = []
    for name, position, kind in (("src", layout.src, reading.src_ids), ("dst", layout.dst, reading.dst_ids)):
        say = partial(_id_words, name, layout.index_base, kind)
        ends.append(cells.ids(position, kind, layout.index_base, say))
    names = None if layout.relation_col is None else cells.texts(layout.relation_col, relation_words)
    columns = [relation_column(names)] if names is not None and layout.relation_as == "column" else []
    if layout.weight is not None:
        columns.append(cells.weights(layout.weight, layout.weight_dtype))
    if layout.time is not None:
        columns.append(cells.times(layout.time, layout.time_unit))
    columns += [
        cells.feature(column.name, column.position, column.dtype or reading.declared.get(column.name))
        for column in layout.further
    ]
    cells.faults.raise_first()
    rows = np.arange(cells.num_rows, dtype=np.int64)
    relation = layout.relation if names is None or layout.relation_as == "column" else Relations.named(names, layout.relation)
    return edge_rows(relation, ends[0], ends[1], tuple(columns), (rows, rows) if places else None)


def _id_words(name: str, base: int, kind: IdKind, code: int, found: str) -> Wording:
    return id_words(name, code, found, base, kind)
