"""Blocks of a text edge list to raw rows."""

from __future__ import annotations

import dataclasses
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.columns import RELATION, EdgeLayout, IdKind, Reading, Relations, edge_rows
from graphprep.decoders.cells.faults import HEADER_AGAIN, Wording, id_words, relation_words
from graphprep.decoders.cells.text import (
    Fields,
    after_header,
    further,
    names,
    null_warnings,
    number_chunk,
    parse_ids,
    split_cells,
    times,
    weight_key,
    weights,
)
from graphprep.kernels.cpu.text import delimited, numbers
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawIds, RawRows, RawTexts
from graphprep.storage.read.spans import record_ends_of

Ints = NDArray[np.int64]

_FLOATS = ("float16", "float32", "float64")
_LF, _CR = 10, 13
_FIRST_BYTES = 1 << 12  # of a block, among which its first record is, mostly


def decode_text(block: TextBlock, layout: EdgeLayout, reading: Reading, places: bool) -> RawRows:
    """Decode whole lines.

    Raises DecodeError for the first faulty record.
    """
    with block.held() as buf:
        at = after_header(block, layout.header_line)
        if layout.is_plain and not places and reading.src_ids == reading.dst_ids == "uint":
            rows = _decode_plain(buf, at, layout, reading)
            if rows is not None:
                return rows
        return _decode_cells(_split(buf, at, layout), block, layout, reading, places)


def _decode_cells(cells: Fields, block: TextBlock, layout: EdgeLayout, reading: Reading, places: bool) -> RawRows:
    """Decode fields of any kind."""
    src, dst, named, columns = _parse(cells, block, layout, reading)
    cells.faults.raise_first()
    if named is not None and layout.relation_as == "column":
        columns = [relation_column(named), *columns]
    relation = layout.relation if named is None or layout.relation_as == "column" else Relations.named(named, layout.relation)
    at_ends = (cells.of(layout.src)[0], cells.of(layout.dst)[0]) if places else None
    warnings = null_warnings(columns)
    rows = edge_rows(relation, src, dst, tuple(columns), at_ends)
    return dataclasses.replace(rows, warnings=warnings) if warnings else rows


def _parse(
    cells: Fields, block: TextBlock, layout: EdgeLayout, reading: Reading
) -> tuple[RawIds | RawTexts, RawIds | RawTexts, RawTexts | None, list[ColumnChunk]]:
    """Parse the ends, the names of relations and all further columns."""
    starts_file = block.is_first and not layout.header_line
    src = _ids(cells, "src", layout.src, reading.src_ids, layout.index_base, starts_file)
    dst = _ids(cells, "dst", layout.dst, reading.dst_ids, layout.index_base, starts_file)
    if reading.src_ids == reading.dst_ids == "string":
        _refuse_header(cells, layout)
    named = None if layout.relation_col is None else names(cells, layout.relation_col, relation_words)
    columns = []
    if layout.weight is not None:
        columns.append(weights(cells, layout.weight, layout.weight_dtype))
    if layout.time is not None:
        columns.append(times(cells, layout.time, layout.time_unit))
    for column in layout.further:
        dtype = column.dtype or reading.declared.get(column.name)
        columns.append(further(cells, column.name, column.position, dtype))
    return src, dst, named, columns


def find_text_faults(block: TextBlock, layout: EdgeLayout, reading: Reading) -> list[DecodeError]:
    """Return what is wrong with each faulty record, in input order."""
    with block.held() as buf:
        cells = _split(buf, after_header(block, layout.header_line), layout, record_ends_of(block))
        _parse(cells, block, layout, reading)
        return cells.faults.of_records()


def relation_column(texts: RawTexts) -> ColumnChunk:
    """Return the relation of every edge as a column of texts."""
    counts = np.diff(texts.offsets)
    return ColumnChunk(ColumnKey(RELATION, "binary", "uint8"), np.arange(texts.size), counts, texts.values)


def _decode_plain(buf: NDArray[np.uint8], at: int, layout: EdgeLayout, reading: Reading) -> RawRows | None:
    """Decode lines of two IDs and perhaps a float, all of them clean; None where one is not."""
    has_value = len(layout.names) == 3
    key = _value_key(buf, at, layout, reading) if has_value else None
    if has_value and key is None:
        return None
    delimiter = np.frombuffer(layout.delimiter, np.uint8)
    found = delimited.parse_plain(buf, at, delimiter, has_value, narrow=True)
    if found is None:
        return None
    first, second, values = found
    if layout.index_base:
        base = first.dtype.type(layout.index_base)
        if first.size and min(first.min(), second.min()) < base:
            return None
        first -= base
        second -= base
    src, dst = (first, second) if layout.src == 0 else (second, first)
    if key is None:
        return edge_rows(layout.relation, src, dst)
    rounded, bad = numbers.round_to(values, np.dtype(key.dtype))
    if bad >= 0:
        return None
    return edge_rows(layout.relation, src, dst, (number_chunk(key, np.arange(src.size, dtype=np.int64), rounded),))


def _value_key(buf: NDArray[np.uint8], at: int, layout: EdgeLayout, reading: Reading) -> ColumnKey | None:
    """Return the key of the third column where it is one of floats; None where it may be something else."""
    if layout.weight is not None:
        return weight_key(layout.weight_dtype)
    column = layout.further[0]
    dtype = column.dtype or reading.declared.get(column.name)
    if dtype is None and _begins_with_float(buf, at, layout):
        dtype = "float64"
    return ColumnKey(column.name, "numbers", dtype) if dtype in _FLOATS else None


def _begins_with_float(buf: NDArray[np.uint8], at: int, layout: EdgeLayout) -> bool:
    """Return whether the third field of the first record is no integer: then no column of integers can hold the block's."""
    lines = buf[at : at + _FIRST_BYTES].tobytes()
    cells = _split(np.frombuffer(lines[: lines.rfind(b"\n") + 1], np.uint8), 0, layout)
    start, stop = cells.of(2)
    return bool(delimited.parse_column("int64", cells.buf, start[:1], stop[:1], keep_sign=True)[2].any())


def _split(buf: NDArray[np.uint8], at: int, layout: EdgeLayout, ends: Ints | None = None) -> Fields:
    """See ``split_cells``."""
    kept = [layout.src, layout.dst, *map(attrgetter("position"), layout.further)]
    for position in (layout.relation_col, layout.weight, layout.time):
        kept += [] if position is None else [position]
    return split_cells(buf, at, layout.dialect, len(layout.names), kept, ends)


def _ids(cells: Fields, name: str, position: int, kind: IdKind, base: int, starts_file: bool) -> RawIds | RawTexts:
    ids, codes = parse_ids(kind, *cells.cells(position), base)

    def say(row: int, code: int, found: str) -> Wording:
        return id_words(name, code, found, base, kind, may_be_header=starts_file and row == 0)

    cells.blame_coded(position, codes, say)
    return ids


def _refuse_header(cells: Fields, layout: EdgeLayout) -> None:
    """Blame each record that is the file's header again, to the byte: between texts it would pass for an edge."""
    header = np.frombuffer(layout.header, np.uint8)
    own = _split(header, 0, layout) if header.size else None
    if own is None or own.faults.found:
        return
    (src, _), (dst, _) = (cells.of(position) for position in (layout.src, layout.dst))
    (own_src, _), (own_dst, _) = (own.of(position) for position in (layout.src, layout.dst))
    rows = np.flatnonzero(dst - src == own_dst[0] - own_src[0])
    begins = src[rows] - own_src[0]
    is_inside = (begins >= 0) & (begins + header.size <= cells.buf.size)
    rows, begins = rows[is_inside], begins[is_inside]
    for at, byte in enumerate(header):
        is_equal = cells.buf[begins + at] == byte
        rows, begins = rows[is_equal], begins[is_equal]
    for row, begin in zip(rows.tolist(), begins.tolist(), strict=True):
        end = begin + header.size
        if (begin == 0 or cells.buf[begin - 1] == _LF) and (end == cells.buf.size or cells.buf[end] in (_LF, _CR)):
            cells.faults.add(row, begin, layout.src, HEADER_AGAIN)
