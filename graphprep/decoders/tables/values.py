"""Texts to the values of a column whose dtype is declared: numbers, dates, timestamps and lists."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import replace
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.faults import Wording, column_words
from graphprep.decoders.cells.row_numbers import ranges
from graphprep.decoders.cells.text import found_in, number_chunk
from graphprep.decoders.tables.columns import ColumnType, FeatureColumn
from graphprep.decoders.tables.faults import size_words, type_words
from graphprep.kernels.cpu.text import numbers
from graphprep.kernels.cpu.text.dates import parse_dates
from graphprep.kernels.cpu.text.delimited import Codes, parse_column, parse_numbers
from graphprep.kernels.cpu.text.lists import split_lists
from graphprep.model.rows import ColumnChunk, ColumnKey

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]
Faulty = tuple[int, Wording]  # a row, and what to say of it; functions yield them by row


def parse_texts(
    column: FeatureColumn, kind: ColumnType, buf: Bytes, start: Ints, stop: Ints, separator: str | None = None
) -> tuple[ColumnChunk, Iterator[Faulty]]:
    """Parse cells, of which the empty ones are absent. ``separator`` is what separates the values of lists."""
    if kind.is_list:
        return _parse_lists(column, kind, (buf, start, stop), separator)
    if kind.unit is None:
        rows, values, codes = parse_column(kind.dtype, buf, start, stop)
    else:
        rows, values, codes = parse_dates(buf, start, stop, kind.unit)
    chunk = number_chunk(ColumnKey(column.name, "numbers", kind.dtype, unit=kind.unit), rows, values)
    return chunk, _say(column, kind, (buf, start, stop), np.flatnonzero(codes), codes)


def _say(column: FeatureColumn, kind: ColumnType, cells: tuple[Bytes, Ints, Ints], bad: Ints, codes: Codes) -> Iterator[Faulty]:
    """Say what is wrong with some cells."""
    for row in bad.tolist():
        found = found_in(*cells, row)
        if kind.is_list or kind.unit is not None:
            yield row, type_words(column.source, int(codes[row]), found, kind)
        else:
            yield row, column_words(column.source, int(codes[row]), found, kind.dtype)


def _parse_lists(
    column: FeatureColumn, kind: ColumnType, cells: tuple[Bytes, Ints, Ints], separator: str | None
) -> tuple[ColumnChunk, Iterator[Faulty]]:
    rows, counts, starts, stops = split_lists(*cells, ord(separator) if separator else None)
    values, codes = parse_numbers(kind.dtype, cells[0], starts, stops)
    codes[codes == numbers.EMPTY] = numbers.INVALID
    bad = np.flatnonzero(codes)[::-1]
    of_rows = np.zeros(cells[1].size, np.uint8)
    of_rows[rows[np.searchsorted(np.cumsum(counts), bad, side="right")]] = codes[bad]  # the first of a list is set last
    texts = _say(column, kind, cells, np.flatnonzero(of_rows), of_rows)
    sizes = ((row, words) for row, words in check_size(column, kind, rows, counts) if not of_rows[row])
    key = ColumnKey(column.name, "numbers", kind.dtype)
    faulty = heapq.merge(texts, sizes, key=itemgetter(0))
    return ColumnChunk(key, rows, counts, values, common_shape(counts, kind.size)), faulty


def check_size(column: FeatureColumn, kind: ColumnType, rows: Ints, counts: Ints) -> Iterator[Faulty]:
    """Yield the lists that have another length than declared."""
    if kind.size is not None:
        for wrong in np.flatnonzero(counts != kind.size).tolist():
            yield int(rows[wrong]), size_words(column.source, kind.size, int(counts[wrong]))


def interleave(one: ColumnChunk, other: ColumnChunk, shape: tuple[int, ...] | None) -> ColumnChunk:
    """Join by row what was read of a column's values in two ways; ``shape`` is that of all values."""
    order = np.argsort(np.concatenate((one.rows, other.rows)))
    counts = np.concatenate((one.counts, other.counts))
    starts = (np.cumsum(counts) - counts)[order]
    values = np.concatenate((one.values, other.values))[ranges(starts, counts[order])]
    rows = np.concatenate((one.rows, other.rows))[order]
    return replace(one, rows=rows, counts=counts[order], values=values, item_shape=shape)


def common_shape(counts: Ints, size: int | None = None) -> tuple[int, ...] | None:
    """Return the shape that all lists share, None where they differ; ``size`` is that of lists of a declared one."""
    if size is not None:
        return (size,)
    sizes = np.unique(counts)
    return (int(sizes[0]),) if sizes.size == 1 else None
