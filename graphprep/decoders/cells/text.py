"""The fields of delimited text, and columns of them as chunks. Used by the decoders of edge lists and tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.cells.faults import Fault, Faults, Words, column_words, record_words, show, time_words, weight_words
from graphprep.decoders.looks.headers import NULLS
from graphprep.decoders.looks.quoted_records import Grammar
from graphprep.kernels.cpu.text import delimited, numbers
from graphprep.kernels.cpu.text.lists import NO_WORD, find_words
from graphprep.model.dataclass import dataclass
from graphprep.model.errors import DecodeError
from graphprep.model.protocols import TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawIds, RawTexts
from graphprep.storage.read.spans import record_ends_of

Ints = NDArray[np.int64]
Nulls = tuple[tuple[str, int], ...]  # see ``ColumnChunk``
_BACKSLASH = 92
_NUM_BOOLS = 2  # words in front of the null ones
_WORDS = (b"true", b"false", *(word.lower().encode() for word in NULLS))
TIME_SCALES = {None: 0, "s": 0, "ms": 3, "us": 6, "ns": 9}
TIME_KEY = ColumnKey("time", "numbers", "int64", role="time")


@dataclass(frozen=True)
class Cells:
    """Where the fields of a block's records stand, one row of ``start`` and ``stop`` a kept column; faults are collected.

    ``slots`` holds for each column of the file its row, or -1. ``buf`` is the block, with its fields without escapes.
    """

    buf: NDArray[np.uint8]
    start: Ints
    stop: Ints
    slots: Ints
    faults: Faults = field(default_factory=Faults)

    @property
    def num_rows(self) -> int:
        """Return the number of records."""
        return int(self.start.shape[1])

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
        self.faults.add(row, int(self.of(position)[0][row]), position, words)


def split_cells(buf: NDArray[np.uint8], at: int, grammar: Grammar, num_columns: int, kept: list[int]) -> Cells:
    """Find the fields of all records from ``at`` on, up to the first that cannot be split; ``kept`` are the columns to keep."""
    slots = np.full(num_columns, -1, np.int64)
    slots[kept] = np.arange(len(kept))
    texts = buf.copy() if grammar.escape else buf
    start, stop, (code, fault, found) = _split(buf, at, grammar, slots, texts)
    cells = Cells(texts, start, stop, slots)
    if code != numbers.OK:
        words = record_words(code, num_columns, found, grammar.across_lines)
        if code == delimited.AFTER_QUOTE and grammar.keep_tabs and not grammar.escape and buf[fault - 2] == _BACKSLASH:
            words = Words(words.message, f"{words.fix}; or pass --escape '\\' where backslashes escape")
        cells.faults.add(start.shape[1], fault, -1, words)
    return cells


def find_faults(
    block: TextBlock,
    at: int,
    split: Callable[[int], Cells],
    columns: Sequence[Callable[[Cells, bool], object]],
) -> list[DecodeError]:
    """Return the first fault of every faulty record from ``at`` on, in input order: what decoding them one by one would raise.

    ``split`` finds the fields of the records from a position on. Each of ``columns`` parses one column and notes its first
    fault; it is told whether the records begin with the first one.
    """
    ends = record_ends_of(block)
    some = [split(at)]
    found: list[Fault] = []
    while some[-1].faults.found:
        found += some[-1].faults.found
        at = int(ends[np.searchsorted(ends[:-1], found[-1].at, side="right")])
        some.append(split(at))
    start, stop = (np.concatenate([getattr(one, name) for one in some], axis=1) for name in ("start", "stop"))
    cells = Cells(some[0].buf, start, stop, some[0].slots)
    by_row: dict[int, Fault] = {}
    for parse in columns:
        for fault in _faults_of(cells, parse):
            known = by_row.get(fault.row, fault)
            by_row[fault.row] = min(fault, known, key=lambda one: (one.at, one.position))
    found = sorted([*found, *by_row.values()], key=lambda fault: fault.at)
    return [DecodeError(fault.words.message, at=fault.at, fix=fault.words.fix) for fault in found]


def _faults_of(cells: Cells, parse: Callable[[Cells, bool], object]) -> Iterator[Fault]:
    """Yield all faults of a column, which ``parse`` finds one by one."""
    row = 0
    while row < cells.num_rows:
        rest = Cells(cells.buf, cells.start[:, row:], cells.stop[:, row:], cells.slots)
        parse(rest, row == 0)
        if not rest.faults.found:
            return
        fault = rest.faults.found[0]
        yield Fault(row + fault.row, fault.at, fault.position, fault.words)
        row += fault.row + 1


def split_record(record: bytes, grammar: Grammar) -> tuple[list[bytes], tuple[int, Words] | None]:
    """Split one record of text with escapes, however many fields it has. Returns them, or the position and words of a fault."""
    buf = np.frombuffer(record, np.uint8)
    texts = buf.copy()
    *_, (code, fault, found) = _split(buf, 0, grammar, np.empty(0, np.int64), texts)
    if code != delimited.TOO_MANY:
        return [], (fault, record_words(code, 0, found, grammar.across_lines))
    start, stop, _ = _split(buf, 0, grammar, np.arange(found), texts)
    return [texts[first:last].tobytes() for first, last in zip(start[:, 0], stop[:, 0], strict=True)], None


def _split(
    buf: NDArray[np.uint8], at: int, grammar: Grammar, slots: Ints, texts: NDArray[np.uint8]
) -> tuple[Ints, Ints, tuple[int, int, int]]:
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


def parse_ids(kind: IdKind, buf: NDArray[np.uint8], start: Ints, stop: Ints, base: int) -> tuple[RawIds | RawTexts, int, int]:
    """Parse cells as IDs of a kind. Returns (IDs, code, row), row -1 where all is well."""
    if kind == "string":
        offsets, values, code, row = delimited.gather_ids(buf, start, stop)
        return RawTexts(offsets, values), code, row
    return delimited.parse_signed_ids(buf, start, stop, base) if kind == "int" else delimited.parse_ids(buf, start, stop, base)


def weights(cells: Cells, position: int, dtype: str) -> ColumnChunk:
    """Parse weights."""
    rows, values, code, row = parse_as(dtype, cells.buf, *cells.of(position))
    if row >= 0:
        cells.blame(position, row, weight_words(code, cells.found(position, row), dtype))
    return number_chunk(weight_key(dtype), rows, values)


def times(cells: Cells, position: int, unit: str | None, column: str | None = None) -> ColumnChunk:
    """Parse times in seconds to multiples of ``unit``, as they are where it is None; ``column`` is their name in a table."""
    rows, values, code, row = delimited.parse_times(cells.buf, *cells.of(position), TIME_SCALES[unit])
    if row >= 0:
        cells.blame(position, row, time_words(code, cells.found(position, row), unit, column))
    return number_chunk(TIME_KEY, rows, values)


def further(cells: Cells, name: str, position: int, dtype: str | None) -> ColumnChunk:
    """Parse a further column; where its dtype is open, to bools, or the narrowest of int64, float64 and binary."""
    if dtype == "binary":
        return texts(cells, name, position)
    if dtype is None:
        return _undecided(cells, name, position)
    nulls: Nulls = ()
    start, stop = cells.of(position)
    rows, values, code, row = parse_as(dtype, cells.buf, start, stop)
    if is_null(cells.buf, start, stop, row):
        ends, nulls = without_nulls(cells.buf, start, stop)
        rows, values, code, row = parse_as(dtype, cells.buf, start, ends)
    if row >= 0:
        cells.blame(position, row, column_words(name, code, cells.found(position, row), dtype))
    return replace(number_chunk(ColumnKey(name, "numbers", dtype), rows, values), nulls=nulls)


def _undecided(cells: Cells, name: str, position: int) -> ColumnChunk:
    start, stop = cells.of(position)
    # A -0 counts as a float: where a later block makes the column float64, it must be the same -0.0 for any cut into blocks.
    rows, values, _, row = delimited.parse_ints(cells.buf, start, stop, keep_sign=True)
    if row < 0:
        return number_chunk(ColumnKey(name, "numbers", "int64"), rows, values)
    rows, floats, _, row = delimited.parse_floats(cells.buf, start, stop)
    if row < 0:
        return number_chunk(ColumnKey(name, "numbers", "float64"), rows, floats)
    if find_words(cells.buf, start[row : row + 1], stop[row : row + 1], _WORDS)[0] == NO_WORD:
        return texts(cells, name, position)
    return _words_or_numbers(cells, name, position)


def _words_or_numbers(cells: Cells, name: str, position: int) -> ColumnChunk:
    """Parse a column in which some cells are ``true``, ``false``, or spelled like nothing: bools or numbers, else texts."""
    start, stop = cells.of(position)
    found = find_words(cells.buf, start, stop, _WORDS)
    bools, others = np.flatnonzero((found == 0) | (found == 1)), bool((found == NO_WORD).any())
    key = ColumnKey(name, "numbers", "bool")
    ends, nulls = without_nulls(cells.buf, start, stop)
    if bools.size and not others:
        return replace(number_chunk(key, bools, found[bools] == 0), guess="bools", nulls=nulls)
    if not others:
        return replace(number_chunk(replace(key, dtype="int64"), bools, np.zeros(0, np.int64)), guess="nulls", nulls=nulls)
    if not bools.size:
        rows, ints, _, row = delimited.parse_ints(cells.buf, start, ends, keep_sign=True)
        if row < 0:
            return replace(number_chunk(replace(key, dtype="int64"), rows, ints), guess="numbers", nulls=nulls)
        rows, floats, _, row = delimited.parse_floats(cells.buf, start, ends)
        if row < 0:
            return replace(number_chunk(replace(key, dtype="float64"), rows, floats), guess="numbers", nulls=nulls)
    return texts(cells, name, position)


def is_null(buf: NDArray[np.uint8], start: Ints, stop: Ints, row: int) -> bool:
    """Return whether a row's cell is spelled like nothing; row -1 is none."""
    return row >= 0 and bool(find_words(buf, start[row : row + 1], stop[row : row + 1], _WORDS)[0] >= _NUM_BOOLS)


def without_nulls(buf: NDArray[np.uint8], start: Ints, stop: Ints) -> tuple[Ints, Nulls]:
    """Empty the cells that are spelled like nothing. Returns the new stops, and how often each spelling occurs."""
    found = find_words(buf, start, stop, _WORDS)
    counts = np.bincount(found[found >= _NUM_BOOLS], minlength=len(_WORDS))[_NUM_BOOLS:]
    nulls = tuple((word, int(count)) for word, count in zip(NULLS, counts, strict=True) if count)
    return np.where(found >= _NUM_BOOLS, start, stop), nulls


def null_warnings(columns: Iterable[ColumnChunk], owner: str = "") -> dict[str, int]:
    """Say which cells are absent because they are spelled like nothing; ``owner`` names the type that has the columns."""
    return {
        f"{owner}column {chunk.key.name!r}: {word!r} read as absent, as the column is no text; "
        f"--column {chunk.key.name}=binary makes it one": count
        for chunk in columns
        for word, count in chunk.nulls
    }


def texts(cells: Cells, name: str, position: int) -> ColumnChunk:
    """Copy a column of texts."""
    rows, counts, values, code, row = delimited.gather_texts(cells.buf, *cells.of(position))
    if row >= 0:
        cells.blame(position, row, column_words(name, code, cells.found(position, row), "binary"))
    return ColumnChunk(ColumnKey(name, "binary", "uint8"), rows, counts, values)


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
