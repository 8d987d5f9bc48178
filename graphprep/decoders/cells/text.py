"""The fields of delimited text, as in edge lists and tables: columns of them as chunks, and which of them are faulty."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.cells.faults import Wording, column_words, record_words, show, time_words, weight_words
from graphprep.decoders.looks.quoted_records import Dialect
from graphprep.decoders.looks.text_head import NULLS
from graphprep.kernels.cpu.text import delimited
from graphprep.kernels.cpu.text.delimited import Codes
from graphprep.kernels.cpu.text.lists import NO_WORD, find_words
from graphprep.kernels.cpu.text.numbers import EMPTY
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawIds, RawTexts

Ints = NDArray[np.int64]
TextFields = tuple[NDArray[np.uint8], Ints, Ints]  # bytes, and where each text begins and ends
Nulls = tuple[tuple[str, int], ...]  # see ``ColumnChunk``
_BACKSLASH = 92
_FEW_ROWS = 64  # that tell most columns of numbers from others
_NUM_BOOLS = 2  # words in front of the null ones
_WORDS = (b"true", b"false", *map(str.encode, map(str.lower, NULLS)))
TIME_SCALES = {None: 0, "s": 0, "ms": 3, "us": 6, "ns": 9}
TIME_KEY = ColumnKey("time", "numbers", "int64", role="time")


class FieldFault(NamedTuple):
    """What is wrong with a cell: its row, where it stands (a byte's position, or the row again), its column, and the words.

    ``position`` is -1 where the whole row is faulty.
    """

    row: int
    at: int
    position: int
    words: Wording


@dataclass(frozen=True)
class FieldFaults:
    """The faults of a batch, of which the first in input order is raised. ``names``: the columns, where messages name them."""

    names: Sequence[str] = ()
    found: list[FieldFault] = field(default_factory=list)

    def add(self, row: int, at: int, position: int, words: Wording) -> None:
        """Note a faulty cell."""
        self.found.append(FieldFault(row, at, position, words))

    def raise_first(self) -> None:
        """Raise DecodeError for the first faulty row, and its first cell, if there is any."""
        if self.found:
            first = min(self.found, key=lambda fault: (fault.row, fault.at, fault.position))
            raise DecodeError(first.words.message, at=first.at, fix=first.words.fix, column=self._name(first))

    def of_records(self) -> list[DecodeError]:
        """Return the first fault of every faulty record, in input order."""
        found: dict[tuple[int, int], FieldFault] = {}
        for fault in self.found:
            record = (fault.row, -1) if fault.position >= 0 else (-1, fault.at)
            known = found.setdefault(record, fault)
            if (fault.at, fault.position) < (known.at, known.position):
                found[record] = fault
        faults = sorted(found.values(), key=lambda fault: fault.at)
        return [DecodeError(fault.words.message, at=fault.at, fix=fault.words.fix) for fault in faults]

    def _name(self, fault: FieldFault) -> str:
        return self.names[fault.position] if self.names and fault.position >= 0 else ""


@dataclass(frozen=True, eq=False)
class Fields:
    """Where the fields of a block's records stand, one row of ``start`` and ``stop`` a kept column; faults are collected.

    ``slots`` holds for each column of the file its row, or -1. ``buf`` is the block, with its fields without escapes. With
    ``finds_all``, all faults of a column are told, not only the first.
    """

    buf: NDArray[np.uint8]
    start: Ints
    stop: Ints
    slots: Ints
    finds_all: bool = False
    faults: FieldFaults = field(default_factory=FieldFaults)

    @property
    def num_rows(self) -> int:
        """Return the number of records."""
        return int(self.start.shape[1])

    def of(self, position: int) -> tuple[Ints, Ints]:
        """Return start and stop of a column's fields."""
        slot = int(self.slots[position])
        return self.start[slot], self.stop[slot]

    def cells(self, position: int) -> TextFields:
        """Return what the functions of ``delimited`` parse of a column."""
        return self.buf, *self.of(position)

    def blame_coded(self, position: int, codes: Codes, say: Callable[[int, int, str], Wording]) -> None:
        """Note the faulty fields of a column, all or the first; ``say`` words one, given its row, code and text."""
        for row in np.flatnonzero(codes)[: None if self.finds_all else 1].tolist():
            self.blame(position, row, say(row, int(codes[row]), found_in(*self.cells(position), row)))

    def blame(self, position: int, row: int, words: Wording) -> None:
        """Note a faulty field."""
        self.faults.add(row, int(self.of(position)[0][row]), position, words)


def found_in(buf: NDArray[np.uint8], start: Ints, stop: Ints, row: int) -> str:
    """Show a field."""
    end = int(stop[row])
    return show(buf[int(start[row]) : ~end if end < 0 else end].tobytes())


def split_cells(
    buf: NDArray[np.uint8], at: int, grammar: Dialect, num_columns: int, kept: list[int], ends: Ints | None = None
) -> Fields:
    """Find the fields of all records from ``at`` on, up to the first that cannot be split; ``kept`` are the columns to keep.

    With ``ends``, where records end, all faults are found, and what follows a record that cannot be split, too.
    """
    slots = np.full(num_columns, -1, np.int64)
    slots[kept] = np.arange(len(kept))
    texts = buf.copy() if grammar.escape else buf
    start, stop, bad = _split(buf, at, grammar, slots, texts, ends)
    cells = Fields(texts, start, stop, slots, finds_all=ends is not None)
    for code, fault, found in bad.tolist():
        words = record_words(code, num_columns, found, grammar.across_lines)
        if code == delimited.AFTER_QUOTE and grammar.keep_tabs and not grammar.escape and buf[fault - 2] == _BACKSLASH:
            words = Wording(words.message, f"{words.fix}; or pass --escape '\\' where backslashes escape")
        cells.faults.add(start.shape[1], fault, -1, words)
    return cells


def split_record(record: bytes, grammar: Dialect) -> tuple[list[bytes], tuple[int, Wording] | None]:
    """Split one record of text with escapes, however many fields it has. Returns them, or the position and words of a fault."""
    buf = np.frombuffer(record, np.uint8)
    texts = buf.copy()
    *_, bad = _split(buf, 0, grammar, np.empty(0, np.int64), texts)
    code, fault, found = bad[0].tolist()
    if code != delimited.TOO_MANY:
        return [], (fault, record_words(code, 0, found, grammar.across_lines))
    start, stop, _ = _split(buf, 0, grammar, np.arange(found), texts)
    return [texts[first:last].tobytes() for first, last in zip(start[:, 0], stop[:, 0], strict=True)], None


def _split(
    buf: NDArray[np.uint8], at: int, grammar: Dialect, slots: Ints, texts: NDArray[np.uint8], ends: Ints | None = None
) -> tuple[Ints, Ints, Ints]:
    """See ``split_fields`` of ``delimited``."""
    return delimited.split_fields(
        buf,
        at,
        np.frombuffer(grammar.delimiter, np.uint8),
        grammar.quoted,
        slots,
        across_lines=grammar.across_lines,
        comments=grammar.comments,
        keep_tabs=grammar.keep_tabs,
        escape=grammar.escape[0] if grammar.escape else None,
        texts=texts if grammar.escape else None,
        ends=ends,
    )


def after_header(block: TextBlock, header_line: int) -> int:
    """Return the position after the header's (last) line: 0 where the block begins after it."""
    at = 0
    if block.begins_behind(header_line):
        return at
    for _ in range(header_line - block.first_line + 1):
        at = block.data.find(b"\n", at) + 1
        if at == 0:
            return len(block.data)
    return at


def number_chunk(key: ColumnKey, rows: Ints, values: NDArray[np.generic]) -> ColumnChunk:
    """Make a chunk of one number a row."""
    return ColumnChunk(key, rows, np.ones(rows.size, np.int64), values, item_shape=())


def weight_key(dtype: str) -> ColumnKey:
    """Return the key of weights."""
    return ColumnKey("weight", "numbers", dtype, role="weight")


def parse_ids(kind: IdKind, buf: NDArray[np.uint8], start: Ints, stop: Ints, base: int) -> tuple[RawIds | RawTexts, Codes]:
    """Parse cells as IDs of a kind. Returns IDs and codes: see ``delimited``."""
    if kind == "string":
        offsets, values, codes = delimited.gather_ids(buf, start, stop)
        return RawTexts(offsets, values), codes
    return delimited.parse_ids(buf, start, stop, base, signed=kind == "int")


def weights(cells: Fields, position: int, dtype: str) -> ColumnChunk:
    """Parse weights."""
    rows, values, codes = delimited.parse_column(dtype, *cells.cells(position))
    cells.blame_coded(position, codes, lambda _, code, found: weight_words(code, found, dtype))
    return number_chunk(weight_key(dtype), rows, values)


def times(cells: Fields, position: int, unit: str | None, column: str | None = None) -> ColumnChunk:
    """Parse times in seconds to multiples of ``unit``, as they are where it is None; ``column`` is their name in a table."""
    rows, values, codes = delimited.parse_times(*cells.cells(position), TIME_SCALES[unit])
    cells.blame_coded(position, codes, lambda _, code, found: time_words(code, found, unit, column))
    return number_chunk(TIME_KEY, rows, values)


def further(cells: Fields, name: str, position: int, dtype: str | None) -> ColumnChunk:
    """Parse a further column; where its dtype is open, to bools, or the narrowest of int64, float64 and binary."""
    if dtype == "binary":
        return texts(cells, name, position)
    nulls: Nulls = ()
    buf, start, stop = cells.cells(position)
    if dtype is None:
        found = _numbers(name, buf, start, stop)
        if isinstance(found, ColumnChunk):
            return found
        is_word = find_words(buf, start[found : found + 1], stop[found : found + 1], _WORDS)[0] != NO_WORD
        return _words_or_numbers(cells, name, position) if is_word else texts(cells, name, position)
    rows, values, codes = delimited.parse_column(dtype, buf, start, stop)
    if has_null(buf, start, stop, np.flatnonzero(codes)):
        ends, nulls = without_nulls(buf, start, stop)
        rows, values, codes = delimited.parse_column(dtype, buf, start, ends)
    cells.blame_coded(position, codes, lambda _, code, found: column_words(name, code, found, dtype))
    return replace(number_chunk(ColumnKey(name, "numbers", dtype), rows, values), nulls=nulls)


def _numbers(name: str, buf: NDArray[np.uint8], start: Ints, stop: Ints) -> ColumnChunk | int:
    """Parse to int64, or else float64; where neither holds all, return the first row that has no number."""
    row = 0
    for dtype in ("int64", "float64"):
        for some in (slice(_FEW_ROWS), slice(None)):
            # A -0 counts as a float: where a later block makes the column float64, it must be the same -0.0 for any cut
            # into blocks.
            rows, values, codes = delimited.parse_column(dtype, buf, start[some], stop[some], keep_sign=True)
            if codes.any():
                row = int(np.flatnonzero(codes)[0])
                break
        else:
            return number_chunk(ColumnKey(name, "numbers", dtype), rows, values)
    return row


def _words_or_numbers(cells: Fields, name: str, position: int) -> ColumnChunk:
    """Parse a column in which some cells are ``true``, ``false``, or spelled like nothing: bools or numbers, else texts."""
    buf, start, stop = cells.cells(position)
    found = find_words(buf, start, stop, _WORDS)
    bools, others = np.flatnonzero((found == 0) | (found == 1)), bool((found == NO_WORD).any())
    key = ColumnKey(name, "numbers", "bool")
    ends, nulls = without_nulls(buf, start, stop)
    if bools.size and not others:
        return replace(number_chunk(key, bools, found[bools] == 0), guess="bools", nulls=nulls)
    if not others:
        return replace(number_chunk(replace(key, dtype="int64"), bools, np.zeros(0, np.int64)), guess="nulls", nulls=nulls)
    parsed = 0 if bools.size else _numbers(name, buf, start, ends)
    if isinstance(parsed, ColumnChunk):
        return replace(parsed, guess="numbers", nulls=nulls)
    return texts(cells, name, position)


def has_null(buf: NDArray[np.uint8], start: Ints, stop: Ints, rows: Ints) -> bool:
    """Return whether the cell of one of these rows is spelled like nothing."""
    return rows.size > 0 and bool((find_words(buf, start[rows], stop[rows], _WORDS) >= _NUM_BOOLS).any())


def without_nulls(buf: NDArray[np.uint8], start: Ints, stop: Ints) -> tuple[Ints, Nulls]:
    """Empty the cells that are spelled like nothing. Returns the new stops, and how often each spelling occurs."""
    found = find_words(buf, start, stop, _WORDS)
    counts = np.bincount(found[found >= _NUM_BOOLS], minlength=len(_WORDS))[_NUM_BOOLS:]
    nulls = tuple((word, int(count)) for word, count in zip(NULLS, counts, strict=True) if count)
    return np.where(found >= _NUM_BOOLS, start, stop), nulls


def null_warnings(columns: Iterable[ColumnChunk], owner: str = "") -> dict[str, int]:
    """Say which cells are absent because they are spelled like nothing; ``owner`` names the type that has the columns."""
    found = {}
    for chunk in columns:
        for word, count in chunk.nulls:
            words = f"{owner}column {chunk.key.name!r}: {word!r} read as absent, as the column is no text"
            found[f"{words}; --column {chunk.key.name}=binary makes it one"] = count
    return found


def names(cells: Fields, position: int, say: Callable[[int, str], Wording]) -> RawTexts:
    """Copy a column of names, none of which may be empty; ``say`` words a fault, given its code and the text."""
    offsets, values, codes = delimited.gather_ids(*cells.cells(position))
    cells.blame_coded(position, codes, lambda _, code, found: say(code, found))
    return RawTexts(offsets, values)


def texts(cells: Fields, name: str, position: int) -> ColumnChunk:
    """Copy a column of texts."""
    rows, counts, values, codes = delimited.gather_texts(*cells.cells(position))
    cells.blame_coded(position, codes * (codes != EMPTY), lambda _, code, found: column_words(name, code, found, "binary"))
    return ColumnChunk(ColumnKey(name, "binary", "uint8"), rows, counts, values)
