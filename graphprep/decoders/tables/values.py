"""Texts to the values of a column whose dtype is declared: numbers, dates, timestamps and lists."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.faults import Words, column_words, show
from graphprep.decoders.cells.text import number_chunk, parse_as
from graphprep.decoders.tables.columns import ColumnType, FeatureColumn
from graphprep.decoders.tables.faults import size_words, type_words
from graphprep.kernels.cpu.text import numbers
from graphprep.kernels.cpu.text.dates import parse_dates
from graphprep.kernels.cpu.text.lists import split_lists
from graphprep.model.rows import ColumnChunk, ColumnKey

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Faulty = tuple[int, Words]  # the first faulty row, -1 where there is none, and what to say


def parse_texts(
    column: FeatureColumn, kind: ColumnType, buf: Bytes, start: Ints, stop: Ints, separator: str | None = None
) -> tuple[ColumnChunk, Faulty]:
    """Parse cells, of which the empty ones are absent. ``separator`` is what separates the values of lists."""
    if kind.is_list:
        return _parse_lists(column, kind, (buf, start, stop), separator)
    if kind.unit is None:
        rows, values, code, row = parse_as(kind.dtype, buf, start, stop)
        words = column_words(column.source, code, _found(buf, start, stop, row), kind.dtype) if row >= 0 else Words("", "")
    else:
        rows, values, code, row = parse_dates(buf, start, stop, kind.unit)
        words = type_words(column.source, code, _found(buf, start, stop, row), kind)
    return number_chunk(ColumnKey(column.name, "numbers", kind.dtype, unit=kind.unit), rows, values), (row, words)


def _parse_lists(
    column: FeatureColumn, kind: ColumnType, cells: tuple[Bytes, Ints, Ints], separator: str | None
) -> tuple[ColumnChunk, Faulty]:
    buf = cells[0]
    rows, counts, starts, stops = split_lists(*cells, ord(separator) if separator else None)
    found, values, code, bad = parse_as(kind.dtype, buf, starts, stops)
    num_seen = starts.size if bad < 0 else bad
    if found.size < num_seen:  # a value is missing
        gaps = np.flatnonzero(found != np.arange(found.size))
        bad, code = int(gaps[0]) if gaps.size else found.size, numbers.INVALID
    faulty: Faulty = (-1, Words("", ""))
    if bad >= 0:
        row = int(rows[np.searchsorted(np.cumsum(counts), bad, side="right")])
        faulty = row, type_words(column.source, code, _found(*cells, row), kind)
    other = check_size(column, kind, rows, counts)
    if other[0] >= 0 and (bad < 0 or other[0] < faulty[0]):
        faulty = other
    key = ColumnKey(column.name, "numbers", kind.dtype)
    return ColumnChunk(key, rows, counts, values, common_shape(counts, kind.size)), faulty


def check_size(column: FeatureColumn, kind: ColumnType, rows: Ints, counts: Ints) -> Faulty:
    """Find the first list that has another length than declared."""
    if kind.size is None or not (counts != kind.size).any():
        return -1, Words("", "")
    wrong = int((counts != kind.size).argmax())
    return int(rows[wrong]), size_words(column.source, kind.size, int(counts[wrong]))


def common_shape(counts: Ints, size: int | None = None) -> tuple[int, ...] | None:
    """Return the shape that all lists share, None where they differ; ``size`` is that of lists of a declared one."""
    if size is not None:
        return (size,)
    sizes = np.unique(counts)
    return (int(sizes[0]),) if sizes.size == 1 else None


def _found(buf: Bytes, start: Ints, stop: Ints, row: int) -> str:
    if row < 0:
        return ""
    end = int(stop[row])
    return show(buf[int(start[row]) : ~end if end < 0 else end].tobytes())
