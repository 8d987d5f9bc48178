"""Tables of delimited text: CSV, TSV and their like."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.faults import Wording
from graphprep.decoders.cells.text import (
    TIME_KEY,
    FieldFaults,
    Fields,
    after_header,
    further,
    has_null,
    names,
    parse_ids,
    split_cells,
    times,
    weights,
    without_nulls,
)
from graphprep.decoders.looks.quoted_records import Dialect
from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, IdField, TableLayout
from graphprep.decoders.tables.faults import key_words, name_words
from graphprep.decoders.tables.rows import RecordReader, parse_columns, table_rows
from graphprep.decoders.tables.values import Faulty, parse_texts
from graphprep.kernels.cpu.text.lists import blank_cells
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import Span, TextBlock
from graphprep.model.rows import ColumnChunk, RawIds, RawRows, RawTexts
from graphprep.storage.read.spans import read_blocks, record_ends_of

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class TextReader(RecordReader):
    """Reads one file of delimited text. ``header_line`` is the last line of its header, 0 where it has none."""

    grammar: Dialect
    header_line: int = 0

    def count(self, handle: BinaryIO, span: Span) -> int:
        """Count the records of a file, up to the first that cannot be split."""
        grammar, num_columns = self.grammar, len(self.layout.names)
        total = 0
        for block in read_blocks(handle, span):
            buf = np.frombuffer(block.data, np.uint8)
            total += split_cells(buf, after_header(block, self.header_line), grammar, num_columns, []).num_rows
        return total

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return what ``decode`` would raise for each faulty record on its own, in input order."""
        cells = self._cells(block, record_ends_of(block))
        parse_columns(self._batch(block, cells, 0), self.layout)
        return cells.faults.of_records()

    def _cells(self, block: TextBlock, ends: Ints | None = None) -> Fields:
        layout, at = self.layout, after_header(block, self.header_line)
        buf = np.frombuffer(block.data, np.uint8)
        cells = split_cells(buf, at, self.grammar, len(layout.names), layout.used, ends)
        for slot in range(cells.start.shape[0] if layout.nulls else 0):
            cells.stop[slot] = blank_cells(cells.buf, cells.start[slot], cells.stop[slot], layout.nulls)
        return cells

    def _batch(self, block: TextBlock, cells: Fields, first_row: int) -> TextBatch:
        return TextBatch(cells, self.layout, first_row, block.is_first and not self.header_line)

    def _rows(self, block: TextBlock, first_row: int, places: bool) -> RawRows:
        return table_rows(self._batch(block, self._cells(block), first_row), self.layout, places)


@dataclass(frozen=True)
class TextBatch:
    """The records of a block. See ``tables_rows.Batch``."""

    cells: Fields
    layout: TableLayout
    first_row: int
    starts_file: bool

    @property
    def faults(self) -> FieldFaults:
        """Return what is wrong so far."""
        return self.cells.faults

    @property
    def num_rows(self) -> int:
        """Return the number of records before the first that cannot be split."""
        return self.cells.num_rows

    def ids(self, field: IdField) -> RawIds | RawTexts:
        """Parse raw IDs, or number the rows."""
        if field.position is None:
            return np.arange(self.first_row, self.first_row + self.num_rows, dtype=np.uint64)
        ids, codes = parse_ids(field.kind, *self.cells.cells(field.position), 0)

        def say(row: int, code: int, found: str) -> Wording:
            return key_words(field.name, code, found, field.kind, may_be_header=self.starts_file and row == 0)

        self.cells.blame_coded(field.position, codes, say)
        return ids

    def texts(self, position: int) -> RawTexts:
        """Copy a column of names."""
        return names(self.cells, position, partial(name_words, self.layout.names[position]))

    def weights(self, position: int, dtype: str) -> ColumnChunk:
        """Parse weights."""
        return weights(self.cells, position, dtype)

    def times(self, column: FeatureColumn, unit: str | None) -> ColumnChunk:
        """Parse times: numbers in seconds, or dates and timestamps where that is declared."""
        if column.type is None or column.type.unit is None:
            return times(self.cells, column.position, unit, column.source)
        return dataclasses.replace(self._parse(column, column.type), key=dataclasses.replace(TIME_KEY, unit=column.type.unit))

    def feature(self, column: FeatureColumn) -> ColumnChunk:
        """Parse a column that is stored."""
        if column.type is None or column.type.dtype == "binary":
            dtype = column.type.dtype if column.type else None
            return further(self.cells, column.name, column.position, dtype)
        return self._parse(column, column.type)

    def places(self, field: IdField) -> Ints:
        """Return the positions of the IDs in the block; of rows that are numbered, their numbers in the batch."""
        if field.position is None:
            return np.arange(self.num_rows, dtype=np.int64)
        return self.cells.of(field.position)[0]

    def _parse(self, column: FeatureColumn, kind: ColumnType) -> ColumnChunk:
        (buf, start, stop), separator = self.cells.cells(column.position), self.layout.list_delimiter
        chunk, iterator = parse_texts(column, kind, buf, start, stop, separator)
        faulty = self._wanted(iterator)
        if not kind.is_list and has_null(buf, start, stop, np.array([row for row, _ in faulty], np.int64)):
            ends, nulls = without_nulls(buf, start, stop)
            chunk, iterator = parse_texts(column, kind, buf, start, ends, separator)
            chunk = dataclasses.replace(chunk, nulls=nulls)
            faulty = self._wanted(iterator)
        for row, words in faulty:
            self.cells.blame(column.position, row, words)
        return chunk

    def _wanted(self, faulty: Iterator[Faulty]) -> list[Faulty]:
        return list(islice(faulty, None if self.cells.finds_all else 1))
