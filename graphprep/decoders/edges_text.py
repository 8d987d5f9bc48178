"""Blocks of a text edge list to raw rows."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.edges_columns import EdgeLayout, FurtherColumn, IdKind, Reading
from graphprep.decoders.edges_faults import (
    Words,
    column_words,
    id_words,
    record_words,
    relation_words,
    show,
    time_words,
    weight_words,
)
from graphprep.kernels.cpu import delimited, numbers
from graphprep.kernels.cpu.text_codes import text_codes
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawEdges, RawIds, RawRows, RawTexts, Relation

Ints = NDArray[np.int64]
TIME_SCALES = {None: 0, "s": 0, "ms": 3, "us": 6, "ns": 9}


def decode_text(block: TextBlock, layout: EdgeLayout, reading: Reading, places: bool) -> RawRows:
    """Decode whole lines.

    Raises DecodeError for the first faulty record.
    """
    buf = np.frombuffer(block.data, np.uint8)
    at = _after_header(block, layout.header_line)
    delimiter = np.frombuffer(layout.delimiter, np.uint8)
    if layout.is_plain and not places and reading.src_ids == reading.dst_ids == "uint":
        rows = _decode_plain(buf, at, delimiter, layout)
        if rows is not None:
            return rows
    cells = _split(buf, at, delimiter, layout)
    starts_file = block.is_first and not layout.header_line
    src, dst = (_ids(cells, layout, name, reading, starts_file) for name in ("src", "dst"))
    relations = None if layout.relation_col is None else _relations(cells, layout, layout.relation_col)
    columns = []
    if layout.weight is not None:
        columns.append(_weights(cells, layout.weight, layout.weight_dtype))
    if layout.time is not None:
        columns.append(_times(cells, layout.time, layout.time_unit))
    columns += [_further(cells, column, column.dtype or reading.declared.get(column.name)) for column in layout.further]
    cells.raise_first()
    at_ends = (cells.of(layout.src)[0], cells.of(layout.dst)[0]) if places else None
    return as_rows(layout, src, dst, tuple(columns), places=at_ends, relations=relations)


@dataclass(frozen=True)
class Relations:
    """The relation of every edge (int32[m], into ``names``)."""

    codes: NDArray[np.int32]
    names: tuple[Relation, ...]


def name_relations(layout: EdgeLayout, texts: RawTexts) -> Relations:
    """Give every edge the relation that its text names, between the node types of the layout's relation."""
    codes, rows = text_codes(texts.offsets, texts.values)
    return Relations(codes, tuple(dataclasses.replace(layout.relation, name=texts.text(int(row))) for row in rows))


def as_rows(
    layout: EdgeLayout,
    src: RawIds | RawTexts,
    dst: RawIds | RawTexts,
    columns: tuple[ColumnChunk, ...],
    *,
    places: tuple[Ints, Ints] | None = None,
    relations: Relations | None = None,
) -> RawRows:
    """Put edges together; ``places`` are those of the sources and of the destinations.

    Without ``relations``, all edges are of the layout's.
    """
    edges = RawEdges(
        src=src,
        dst=dst,
        relations=np.zeros(src.size, np.int32) if relations is None else relations.codes,
        relation_names=(layout.relation,) if relations is None else relations.names,
        columns=columns,
        at_src=places[0] if places else None,
        at_dst=places[1] if places else None,
        record=np.full(src.size, -1, np.int64) if places else None,
    )
    return RawRows(edges=edges, num_records=src.size)


def number_chunk(key: ColumnKey, rows: Ints, values: NDArray[np.generic]) -> ColumnChunk:
    """Make a chunk of one number a row."""
    return ColumnChunk(key, rows, np.ones(rows.size, np.int64), values, item_shape=())


def weight_key(dtype: str) -> ColumnKey:
    """Return the key of weights."""
    return ColumnKey("weight", "numbers", dtype, role="weight")


TIME_KEY = ColumnKey("time", "numbers", "int64", role="time")


def _after_header(block: TextBlock, header_line: int) -> int:
    """Return the position after the header's line: 0 where the block begins after it."""
    at = 0
    for _ in range(header_line - block.first_line + 1):
        at = block.data.find(b"\n", at) + 1
        if at == 0:
            return len(block.data)
    return at


def _decode_plain(buf: NDArray[np.uint8], at: int, delimiter: NDArray[np.uint8], layout: EdgeLayout) -> RawRows | None:
    """Decode lines of two IDs and perhaps a weight, all of them clean; None where one is not."""
    found = delimited.parse_plain(buf, at, delimiter, layout.weight is not None)
    if found is None:
        return None
    first, second, weight = found
    if layout.index_base:
        base = np.uint64(layout.index_base)
        if first.size and min(first.min(), second.min()) < base:
            return None
        first -= base
        second -= base
    src, dst = (first, second) if layout.src == 0 else (second, first)
    if layout.weight is None:
        return as_rows(layout, src, dst, ())
    values, bad = numbers.round_to(weight, np.dtype(layout.weight_dtype))
    if bad >= 0:
        return None
    chunk = number_chunk(weight_key(layout.weight_dtype), np.arange(src.size, dtype=np.int64), values)
    return as_rows(layout, src, dst, (chunk,))


@dataclass(frozen=True)
class _Fault:
    """A faulty field: its record, where it begins, and what to say."""

    row: int
    at: int
    words: Words


@dataclass(frozen=True)
class _Cells:
    """Where the fields of a block's records stand, one row of ``start`` and ``stop`` a kept column; faults are collected."""

    buf: NDArray[np.uint8]
    start: Ints
    stop: Ints
    slots: Ints
    faults: list[_Fault] = field(default_factory=list)

    def of(self, position: int) -> tuple[Ints, Ints]:
        """Return start and stop of a column's fields."""
        slot = int(self.slots[position])
        return self.start[slot], self.stop[slot]

    def found(self, position: int, row: int) -> str:
        """Show a field."""
        start, stop = (int(ends[row]) for ends in self.of(position))
        return show(self.buf[start : ~stop if stop < 0 else stop].tobytes())

    def blame(self, position: int, row: int, words: Words) -> None:
        """Note a faulty field."""
        self.faults.append(_Fault(row, int(self.of(position)[0][row]), words))

    def raise_first(self) -> None:
        """Raise DecodeError for the first faulty record, and its first field, if there is any."""
        if self.faults:
            first = min(self.faults, key=lambda fault: (fault.row, fault.at))
            raise DecodeError(first.words.message, at=first.at, fix=first.words.fix)


def _split(buf: NDArray[np.uint8], at: int, delimiter: NDArray[np.uint8], layout: EdgeLayout) -> _Cells:
    """Find the fields of all records up to the first that cannot be split."""
    kept = [layout.src, layout.dst, layout.relation_col, layout.weight, layout.time]
    kept += [column.position for column in layout.further]
    slots = np.full(len(layout.names), -1, np.int64)
    for slot, position in enumerate(position for position in kept if position is not None):
        slots[position] = slot
    start, stop, (code, fault, found) = delimited.split_fields(buf, at, delimiter, layout.is_quoted, slots)
    cells = _Cells(buf, start, stop, slots)
    if code != numbers.OK:
        cells.faults.append(_Fault(start.shape[1], fault, record_words(code, slots.size, found)))
    return cells


def _ids(cells: _Cells, layout: EdgeLayout, name: str, reading: Reading, starts_file: bool) -> RawIds | RawTexts:
    position = layout.src if name == "src" else layout.dst
    kind = reading.ids(name)
    ids, code, row = parse_ids(kind, cells.buf, *cells.of(position), layout.index_base)
    if row >= 0:
        found = cells.found(position, row)
        words = id_words(name, code, found, layout.index_base, kind, may_be_header=starts_file and row == 0)
        cells.blame(position, row, words)
    return ids


def parse_ids(kind: IdKind, buf: NDArray[np.uint8], start: Ints, stop: Ints, base: int) -> tuple[RawIds | RawTexts, int, int]:
    """Parse cells as IDs of a kind. Returns (IDs, code, row), row -1 where all is well."""
    if kind == "string":
        offsets, values, code, row = delimited.gather_ids(buf, start, stop)
        return RawTexts(offsets, values), code, row
    return delimited.parse_signed_ids(buf, start, stop, base) if kind == "int" else delimited.parse_ids(buf, start, stop, base)


def _relations(cells: _Cells, layout: EdgeLayout, position: int) -> Relations | None:
    """Read the relation of every edge; None where one is at fault."""
    offsets, values, code, row = delimited.gather_ids(cells.buf, *cells.of(position))
    if row >= 0:
        cells.blame(position, row, relation_words(code, cells.found(position, row)))
        return None
    return name_relations(layout, RawTexts(offsets, values))


def _weights(cells: _Cells, position: int, dtype: str) -> ColumnChunk:
    rows, values, code, row = _floats(cells, position, dtype)
    if row >= 0:
        cells.blame(position, row, weight_words(code, cells.found(position, row), dtype))
    return number_chunk(weight_key(dtype), rows, values)


def _times(cells: _Cells, position: int, unit: str | None) -> ColumnChunk:
    rows, values, code, row = delimited.parse_times(cells.buf, *cells.of(position), TIME_SCALES[unit])
    if row >= 0:
        cells.blame(position, row, time_words(code, cells.found(position, row), unit))
    return number_chunk(TIME_KEY, rows, values)


def _further(cells: _Cells, column: FurtherColumn, dtype: str | None) -> ColumnChunk:
    """Parse a further column, to the narrowest of int64, float64 and binary where its dtype is open."""
    if dtype == "binary":
        return _texts(cells, column)
    if dtype is None:
        return _undecided(cells, column)
    rows, values, code, row = parse_as(dtype, cells.buf, *cells.of(column.position))
    if row >= 0:
        cells.blame(column.position, row, column_words(column.name, code, cells.found(column.position, row), dtype))
    return number_chunk(ColumnKey(column.name, "numbers", dtype), rows, values)


def _undecided(cells: _Cells, column: FurtherColumn) -> ColumnChunk:
    start, stop = cells.of(column.position)
    # A -0 counts as a float: where a later block makes the column float64, it must be the same -0.0 for any cut into blocks.
    rows, values, _, row = delimited.parse_ints(cells.buf, start, stop, keep_sign=True)
    if row < 0:
        return number_chunk(ColumnKey(column.name, "numbers", "int64"), rows, values)
    rows, floats, _, row = delimited.parse_floats(cells.buf, start, stop)
    if row < 0:
        return number_chunk(ColumnKey(column.name, "numbers", "float64"), rows, floats)
    return _texts(cells, column)


def _texts(cells: _Cells, column: FurtherColumn) -> ColumnChunk:
    rows, counts, values, code, row = delimited.gather_texts(cells.buf, *cells.of(column.position))
    if row >= 0:
        cells.blame(column.position, row, column_words(column.name, code, cells.found(column.position, row), "binary"))
    return ColumnChunk(ColumnKey(column.name, "binary", "uint8"), rows, counts, values)


def _floats(cells: _Cells, position: int, dtype: str) -> tuple[Ints, NDArray[np.generic], int, int]:
    return parse_as(dtype, cells.buf, *cells.of(position))


def parse_as(dtype: str, buf: NDArray[np.uint8], start: Ints, stop: Ints) -> tuple[Ints, NDArray[np.generic], int, int]:
    """Parse the cells that are not empty to numbers of a dtype. Returns (rows, values, code, row), row -1 where all is well."""
    target = np.dtype(dtype)
    if target.kind == "b":
        return delimited.parse_bools(buf, start, stop)
    if target.kind == "i":
        limits = np.iinfo(target)
        rows, ints, code, row = delimited.parse_ints(buf, start, stop, low=int(limits.min), high=int(limits.max))
        return rows, ints.astype(target, copy=False), code, row
    if target.kind == "u":
        rows, uints, code, row = delimited.parse_uints(buf, start, stop, high=int(np.iinfo(target).max))
        return rows, uints.astype(target, copy=False), code, row
    rows, floats, code, row = delimited.parse_floats(buf, start, stop)
    rounded, bad = numbers.round_to(floats, target)
    return (rows, rounded, code, row) if bad < 0 else (rows, rounded, numbers.OVERFLOW, int(rows[bad]))
