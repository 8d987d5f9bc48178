"""Tables of JSON lines: one flat object a line, its keys the columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.cells.faults import Wording, column_words, show, time_words, weight_words
from graphprep.decoders.cells.row_numbers import ranges
from graphprep.decoders.cells.text import (
    TIME_KEY,
    TIME_SCALES,
    FieldFault,
    FieldFaults,
    TextFields,
    found_in,
    number_chunk,
    parse_ids,
    weight_key,
)
from graphprep.decoders.deepgnn import json_faults
from graphprep.decoders.looks.text_head import more_of_head
from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, IdField, TableLayout
from graphprep.decoders.tables.faults import key_words, name_words, type_words
from graphprep.decoders.tables.rows import RecordReader, parse_columns, table_rows
from graphprep.decoders.tables.types import OtherKeys, StoredType
from graphprep.decoders.tables.values import Faulty, check_size, common_shape, interleave, parse_texts
from graphprep.kernels.cpu.deepgnn import json_tape
from graphprep.kernels.cpu.deepgnn.json_records import TOO_LARGE
from graphprep.kernels.cpu.deepgnn.json_tables import label_keys, list_members, scalar_texts
from graphprep.kernels.cpu.deepgnn.json_tape import Tape, positions, tokenize
from graphprep.kernels.cpu.deepgnn.json_values import read_numbers
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.text import delimited, numbers
from graphprep.kernels.cpu.text.delimited import Codes
from graphprep.model.errors import DataError, DecodeError
from graphprep.model.protocols import InputStorage, Span, TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawIds, RawRows, RawTexts
from graphprep.storage.read.spans import place_of, read_blocks

Ints = NDArray[np.int64]
_HEAD_BYTES = 1 << 16
_TEXTS = (json_tape.TEXT, json_tape.ESCAPED)
_LISTS = (json_tape.ARRAY, json_tape.NESTED)
_INTEGERS = (json_tape.UINT, json_tape.NEGATIVE)
_KEYS = (*_TEXTS, *_INTEGERS, json_tape.BIG)
_FLAT = "write one flat object a line; leave a column out with --drop-column"
_NO_OBJECT = Wording("a record must be a JSON object", _FLAT)
_LONE_KEY = Wording("a key holds a lone surrogate", "write the key in valid Unicode")
_LONE_TEXT = Wording("a text holds a lone surrogate", "write it in valid Unicode")


@dataclass(frozen=True)
class Members:
    """Where the values of one key stand: the records that have it (int64[k], ascending), and the tokens of key and value.

    Of a key that stands twice in a record, this is the first.
    """

    records: Ints
    keys: Ints

    @property
    def values(self) -> Ints:
        """Return the tokens of the values."""
        return self.keys + 1


@dataclass(frozen=True)
class Lines:
    """The objects of some lines, by key. ``faults`` are what is wrong with other lines, and with keys."""

    data: bytes
    tape: Tape
    roots: Ints
    members: Mapping[str, Members]
    faults: tuple[FieldFault, ...] = ()

    @classmethod
    def of(cls, data: bytes, every: bool = False) -> Lines:
        """Read whole lines: up to the first that is no object, or all objects and ``every`` fault."""
        data = data if data.endswith(b"\n") else data + b"\n"
        tape, roots, malformed = tokenize(data, every)
        others = np.flatnonzero(tape.words[roots] >> json_tape.KIND_SHIFT != json_tape.OBJECT)
        found = [(at, json_faults.fault(data, code, at)) for code, at in malformed.tolist()]
        wrong = [(at, Wording(fault.message, fault.fix)) for at, fault in found]
        wrong += [(at, _NO_OBJECT) for at in positions(tape, roots[others if every else others[:1]]).tolist()]
        if others.size:
            roots = np.delete(roots, others) if every else roots[: others[0]]
        rows = np.searchsorted(positions(tape, roots), [at for at, _ in wrong]).tolist()
        faults = [FieldFault(row, at, -1, words) for row, (at, words) in zip(rows, wrong, strict=True)]
        lines = cls(data, tape, roots, {}, ())
        return dataclasses.replace(lines, members=lines._by_key(faults, every), faults=tuple(faults))

    def kinds(self, tokens: Ints) -> Ints:
        """Return the kinds of values."""
        return self.tape.words[tokens] >> json_tape.KIND_SHIFT

    def _by_key(self, faults: list[FieldFault], every: bool) -> dict[str, Members]:
        """Group members by their key; a key that stands twice in a record, or is no text, is a fault."""
        tape = self.tape
        records, keys = list_members(tape, self.roots)
        codes, firsts = label_keys(tape, records, keys)
        bounds, order = group_by_key(codes, firsts.size)
        found: dict[str, Members] = {}
        for number in range(firsts.size):
            rows = order[bounds[number] : bounds[number + 1]]
            owners, tokens = records[rows], keys[rows]
            _, spelled, lone = scalar_texts(tape, firsts[number : number + 1])
            name, words = spelled.tobytes(), _LONE_KEY
            bad = np.arange(rows.size) if lone.size else np.flatnonzero(owners[1:] == owners[:-1]) + 1
            if not lone.size:
                found[name.decode()] = Members(*(np.delete(part, bad) if bad.size else part for part in (owners, tokens)))
                words = Wording(f"key {show(name)} stands twice in one object", "keep one of them")
            bad = bad if every else bad[:1]
            places = positions(tape, tokens[bad]).tolist()
            faults += [FieldFault(row, at, 0, words) for row, at in zip(owners[bad].tolist(), places, strict=True)]
        return found


# ------------------------------------------------------------------------------------------------------ planning


@dataclass(frozen=True)
class JsonHead:
    """What the beginning of a file shows of its columns."""

    lines: Lines

    @property
    def names(self) -> tuple[str, ...]:
        """Return the keys, in the order in which they occur."""
        return tuple(self.lines.members)

    def held(self, name: str) -> IdKind | None:
        """Return what the values of an ID column are, None where there are none."""
        kinds = self._kinds(name)
        if np.isin(kinds, _TEXTS).any():
            return "string"
        return "uint" if kinds.size else None

    def stored(self, layout: TableLayout) -> dict[str, StoredType]:
        """Return which of the layout's columns hold lists."""
        found = {column.name: self._kinds(column.source) for column in layout.features if column.position >= 0}
        return {
            name: StoredType("any", is_list=bool(kinds[0] in _LISTS), shown=_shape(kinds[0]), is_open=True)
            for name, kinds in found.items()
            if kinds.size
        }

    def _kinds(self, name: str) -> Ints:
        kinds = self.lines.kinds(self.lines.members[name].values)
        return np.asarray(kinds[kinds != json_tape.NULL])


def _shape(kind: int) -> str:
    return "lists" if kind in _LISTS else "single values"


def look_at_json(storage: InputStorage, url: str) -> JsonHead | None:
    """Read the first records of a file; None where it has none.

    Raises DataError where already the first line is no object.
    """
    size = _HEAD_BYTES
    while True:
        head = storage.head(url, size)
        whole = head if len(head) < size else head[: head.rfind(b"\n") + 1]
        if whole or not head:
            break
        size = more_of_head(storage, url, size, "write a record a line")
    lines = Lines.of(whole)
    if lines.faults and not lines.members:
        first = min(lines.faults, key=lambda fault: fault.at)
        place = place_of(TextBlock(whole, Span(url)), first.at)
        raise DataError(first.words.message, place=place, fix=first.words.fix)
    return JsonHead(lines) if lines.roots.size else None


# ------------------------------------------------------------------------------------------------------ reading


@dataclass(frozen=True)
class JsonReader(RecordReader):
    """Reads one file of JSON lines. ``lists`` are the keys of columns that hold lists."""

    lists: frozenset[str] = frozenset()
    others: OtherKeys = field(default_factory=OtherKeys)

    def count(self, handle: BinaryIO, span: Span) -> int:
        """Count the records of a file, up to the first that is no JSON."""
        return sum(int(Lines.of(block.data).roots.size) for block in read_blocks(handle, span))

    def find_faults(self, block: TextBlock) -> list[DecodeError]:
        """Return what ``decode`` would raise for each faulty record on its own, in input order."""
        batch = self._batch(block, 0, finds_all=True)
        parse_columns(batch, batch.layout)
        return batch.faults.of_records()

    def _rows(self, block: TextBlock, first_row: int, places: bool) -> RawRows:
        batch = self._batch(block, first_row)
        return table_rows(batch, batch.layout, places)

    def _batch(self, block: TextBlock, first_row: int, finds_all: bool = False) -> JsonBatch:
        lines = Lines.of(block.data, finds_all)
        known = {self.layout.names[position] for position in range(len(self.layout.names))}
        found = (self.others.column(name) for name in lines.members if name not in known)
        features = (*self.layout.features, *(column for column in found if column is not None))
        layout = dataclasses.replace(self.layout, features=features)
        return JsonBatch(lines, layout, self.lists, first_row, finds_all)


@dataclass(frozen=True)
class _Texts:
    """Scalars of a column as text: their records and tokens, their bytes, and where each begins and ends."""

    rows: Ints
    tokens: Ints
    buf: NDArray[np.uint8]
    start: Ints
    stop: Ints

    @property
    def cells(self) -> TextFields:
        """Return what functions of ``delimited`` parse."""
        return self.buf, self.start, self.stop


@dataclass(frozen=True)
class JsonBatch:
    """The records of a block. See ``tables_rows.Batch``.

    With ``finds_all``, all faults of a column are noted, not only the first.
    """

    lines: Lines
    layout: TableLayout
    lists: frozenset[str]
    first_row: int
    finds_all: bool = False
    faults: FieldFaults = field(default_factory=FieldFaults)

    def __post_init__(self) -> None:
        """Take over what is wrong with whole records."""
        self.faults.found.extend(self.lines.faults)

    @property
    def num_rows(self) -> int:
        """Return the number of records."""
        return int(self.lines.roots.size)

    def ids(self, field: IdField) -> RawIds | RawTexts:
        """Read raw IDs, or number the rows."""
        if field.position is None:
            return np.arange(self.first_row, self.first_row + self.num_rows, dtype=np.uint64)
        texts = self._keys(field.position)
        ids, codes = parse_ids(field.kind, *texts.cells, 0)
        self._blame_texts(texts, codes, lambda code, found: key_words(field.name, code, found, field.kind))
        return ids

    def texts(self, position: int) -> RawTexts:
        """Read a column of names."""
        texts = self._keys(position)
        offsets, values, codes = delimited.gather_ids(*texts.cells)
        self._blame_texts(texts, codes, lambda code, _: name_words(self.layout.names[position], code, ""))
        return RawTexts(offsets, values)

    def weights(self, position: int, dtype: str) -> ColumnChunk:
        """Read weights."""
        texts = self._texts(*self._present(self.layout.names[position]))
        found, values, codes = delimited.parse_column(dtype, *texts.cells)
        self._blame_texts(texts, codes, lambda code, text: weight_words(code, text, dtype))
        return number_chunk(weight_key(dtype), texts.rows[found], values)

    def times(self, column: FeatureColumn, unit: str | None) -> ColumnChunk:
        """Read times: numbers in seconds, or dates and timestamps where that is declared."""
        rows, tokens = self._present(column.source)
        if column.type is not None and column.type.unit is not None:
            chunk = self._declared(column, column.type, rows, tokens)
            return dataclasses.replace(chunk, key=dataclasses.replace(TIME_KEY, unit=column.type.unit))
        texts = self._texts(rows, tokens)
        found, values, codes = delimited.parse_times(*texts.cells, TIME_SCALES[unit])
        self._blame_texts(texts, codes, lambda code, text: time_words(code, text, unit, column.source))
        return number_chunk(TIME_KEY, texts.rows[found], values)

    def feature(self, column: FeatureColumn) -> ColumnChunk:
        """Read a column that is stored."""
        rows, tokens = self._present(column.source)
        kinds = self.lines.kinds(tokens)
        is_list = column.type.is_list if column.type else column.source in self.lists
        wrong = (kinds == json_tape.OBJECT) | (kinds == json_tape.NESTED) | ((kinds == json_tape.ARRAY) != is_list)
        if column.type is not None and is_list:
            wrong &= ~np.isin(kinds, _TEXTS)  # a list may be written as text
        if wrong.any():
            self._blame(rows[wrong], tokens[wrong], repeat(_shape_words(column, is_list)))
            rows, tokens, kinds = rows[~wrong], tokens[~wrong], kinds[~wrong]
        if column.type is None:
            return self._list(column, rows, tokens) if is_list else self._undecided(column, rows, tokens, kinds)
        if column.type.dtype == "binary":
            return self._binary(column, rows, tokens)
        return self._declared(column, column.type, rows, tokens)

    def places(self, field: IdField) -> Ints:
        """Return the positions of the IDs in the block; of rows that are numbered, their numbers in the batch."""
        if field.position is None:
            return np.arange(self.num_rows, dtype=np.int64)
        return positions(self.lines.tape, self._present(self.layout.names[field.position])[1])

    # ------------------------------------------------------------------------------------------------ values

    def _present(self, name: str) -> tuple[Ints, Ints]:
        """Return the records in which a key has a value that is not null, and the tokens of the values."""
        members = self.lines.members.get(name)
        if members is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        is_there = self.lines.kinds(members.values) != json_tape.NULL
        return members.records[is_there], members.values[is_there]

    def _keys(self, position: int) -> _Texts:
        """Return the texts and integers of a key column, which every record must have."""
        name = self.layout.names[position]
        rows, tokens = self._present(name)
        if rows.size < self.num_rows:
            missing = np.delete(np.arange(self.num_rows), rows)
            self._blame(missing, self.lines.roots[missing], repeat(key_words(name, numbers.EMPTY, "", "uint")))
        is_key = np.isin(self.lines.kinds(tokens), _KEYS)
        if not is_key.all():
            words = Wording(f"field {name!r} must be a string or an integer", "write keys as JSON strings or integers")
            self._blame(rows[~is_key], tokens[~is_key], repeat(words))
            rows, tokens = rows[is_key], tokens[is_key]
        return self._texts(rows, tokens)

    def _texts(self, rows: Ints, tokens: Ints) -> _Texts:
        """Return scalars as text, without those that are no Unicode."""
        offsets, values, lone = scalar_texts(self.lines.tape, tokens)
        texts = _Texts(rows, tokens, values, offsets[:-1].copy(), offsets[1:].copy())
        if not lone.size:
            return texts
        self._blame(rows[lone], tokens[lone], repeat(_LONE_TEXT))
        rows, tokens, start, stop = (np.delete(column, lone) for column in (rows, tokens, texts.start, texts.stop))
        return _Texts(rows, tokens, values, start, stop)

    def _declared(self, column: FeatureColumn, kind: ColumnType, rows: Ints, tokens: Ints) -> ColumnChunk:
        """Read a column of a declared dtype: of lists and of dates, some may be text and others not."""
        if not kind.is_list and kind.unit is None:
            return self._parse(column, kind, rows, tokens)
        kinds = self.lines.kinds(tokens)
        is_text = np.isin(kinds, _TEXTS) if kind.is_list else ~np.isin(kinds, _INTEGERS)
        if is_text.all() and rows.size:
            return self._parse(column, kind, rows, tokens)
        rest = rows[~is_text], tokens[~is_text]
        plain = self._list(column, *rest) if kind.is_list else self._counted(column, kind, *rest)
        if not is_text.any():
            return plain
        parsed = self._parse(column, kind, rows[is_text], tokens[is_text])
        if self.faults.found:
            return plain
        shape = common_shape(np.concatenate((plain.counts, parsed.counts)), kind.size) if kind.is_list else ()
        return interleave(plain, parsed, shape)

    def _counted(self, column: FeatureColumn, kind: ColumnType, rows: Ints, tokens: Ints) -> ColumnChunk:
        """Read dates and times that are counted from 1970-01-01, in the column's unit."""
        texts = self._texts(rows, tokens)
        found, values, codes = delimited.parse_column("int64", *texts.cells)
        self._blame_texts(texts, codes, lambda code, text: type_words(column.source, code, text, kind))
        return number_chunk(ColumnKey(column.name, "numbers", "int64", unit=kind.unit), rows[found], values)

    def _parse(self, column: FeatureColumn, kind: ColumnType, rows: Ints, tokens: Ints) -> ColumnChunk:
        texts = self._texts(rows, tokens)
        chunk, faulty = parse_texts(column, kind, *texts.cells, self.layout.list_delimiter)
        self._blame_some(texts.rows, texts.tokens, faulty)
        return dataclasses.replace(chunk, rows=texts.rows[chunk.rows])

    def _binary(self, column: FeatureColumn, rows: Ints, tokens: Ints) -> ColumnChunk:
        texts = self._texts(rows, tokens)
        return ColumnChunk(ColumnKey(column.name, "binary", "uint8"), texts.rows, texts.stop - texts.start, texts.buf)

    def _undecided(self, column: FeatureColumn, rows: Ints, tokens: Ints, kinds: Ints) -> ColumnChunk:
        """Read scalars as what they are: texts if one is, else bools, else int64 or float64.

        A number beyond float64 is a fault also beside texts, as they may stand in another block.
        """
        if np.isin(kinds, _TEXTS).any():
            is_huge = kinds == json_tape.HUGE
            self._numbers(column, rows[is_huge], tokens[is_huge], "float64")
            return self._binary(column, rows, tokens)
        is_bool = np.isin(kinds, (json_tape.TRUE, json_tape.FALSE))
        key = ColumnKey(column.name, "numbers", "bool")
        if rows.size and is_bool.all():
            return number_chunk(key, rows, kinds == json_tape.TRUE)
        if not is_bool.any():
            _, ints, codes = delimited.parse_column("int64", *self._texts(rows, tokens).cells, keep_sign=True)
            if not codes.any():
                return number_chunk(dataclasses.replace(key, dtype="int64"), rows, ints)
        values = np.empty(rows.size, np.float64)
        values[is_bool] = kinds[is_bool] == json_tape.TRUE
        values[~is_bool] = self._numbers(column, rows[~is_bool], tokens[~is_bool], "float64")
        return number_chunk(dataclasses.replace(key, dtype="float64"), rows, values)

    def _list(self, column: FeatureColumn, rows: Ints, tokens: Ints) -> ColumnChunk:
        """Read flat lists, to int64 or else float64 where the dtype is open."""
        tape = self.lines.tape
        counts = tape.extra[tokens] - tokens - 1
        size = int(counts.sum())
        dtype = column.type.dtype if column.type else "int64"
        if column.type is None and read_numbers(tape, tokens, size, "int64")[1].size:
            dtype = "float64"
        if dtype == "bool":
            values: NDArray[np.generic] = self._bools(column, rows, tokens, counts)
        else:
            values = self._numbers(column, rows, tokens, dtype, size)
        if column.type is not None:
            self._blame_some(rows, tokens, check_size(column, column.type, np.arange(rows.size), counts))
        shape = common_shape(counts, column.type.size if column.type else None)
        return ColumnChunk(ColumnKey(column.name, "numbers", dtype), rows, counts, values, shape)

    def _numbers(
        self, column: FeatureColumn, rows: Ints, tokens: Ints, dtype: str, size: int | None = None
    ) -> NDArray[np.generic]:
        """Read numbers, of scalars or, ``size`` of them, of lists."""
        values, faults = read_numbers(self.lines.tape, tokens, tokens.size if size is None else size, dtype)
        bad = faults[:, 2]
        found = zip(faults[:, 1].tolist(), positions(self.lines.tape, bad).tolist(), strict=True)
        words = (self._value_words(column, code == TOO_LARGE, at, dtype, size is not None) for code, at in found)
        self._blame(rows[faults[:, 0]], bad, words)
        return values

    def _bools(self, column: FeatureColumn, rows: Ints, tokens: Ints, counts: Ints) -> NDArray[np.bool_]:
        """Read the bools of lists: true, false, 0 and 1."""
        items = ranges(tokens + 1, counts)
        kinds, digits = self.lines.kinds(items), self.lines.tape.extra[items]
        is_one = (kinds == json_tape.TRUE) | ((kinds == json_tape.UINT) & (digits == 1))
        is_zero = (kinds == json_tape.FALSE) | ((kinds == json_tape.UINT) & (digits == 0))
        bad = np.flatnonzero(~(is_one | is_zero))
        places = positions(self.lines.tape, items[bad]).tolist()
        self._blame(
            np.repeat(rows, counts)[bad], items[bad], (self._value_words(column, False, at, "bool", True) for at in places)
        )
        return np.asarray(is_one, np.bool_)

    # ------------------------------------------------------------------------------------------------ faults

    def _value_words(self, column: FeatureColumn, too_large: bool, at: int, dtype: str, in_list: bool) -> Wording:
        found = json_faults.found_at(self.lines.data, at)
        if in_list and found.startswith('"'):
            remedy = f"join the texts of a row to one, or pass --drop-column {column.source}"
            return Wording(f"field {column.source!r} must be a list of numbers, found {found}", remedy)
        return column_words(column.source, numbers.OVERFLOW if too_large else numbers.INVALID, found, dtype)

    def _blame_texts(self, texts: _Texts, codes: Codes, say: Callable[[int, str], Wording]) -> None:
        """Note the texts whose code is a fault; ``say`` takes it, and what was found."""
        bad = np.flatnonzero(codes)
        words = (say(int(codes[row]), found_in(*texts.cells, row)) for row in bad.tolist())
        self._blame(texts.rows[bad], texts.tokens[bad], words)

    def _blame_some(self, rows: Ints, tokens: Ints, faulty: Iterator[Faulty]) -> None:
        """Note faults of some of a column's values, told by their positions in it."""
        found = list(islice(faulty, None if self.finds_all else 1))
        bad = np.array([number for number, _ in found], np.int64)
        self._blame(rows[bad], tokens[bad], (words for _, words in found))

    def _blame(self, rows: Ints, tokens: Ints, words: Iterable[Wording]) -> None:
        """Note faults of values in input order: all, or the first."""
        most = None if self.finds_all else 1
        places = positions(self.lines.tape, tokens[:most])
        for row, at, said in zip(rows[:most].tolist(), places.tolist(), words, strict=False):
            self.faults.add(row, at, 0, said)


def _shape_words(column: FeatureColumn, is_list: bool) -> Wording:
    if is_list:
        return Wording(f"field {column.source!r} must be a list of numbers, as in the records before", _FLAT)
    fix = f"declare lists with --column {column.source}=list<float64>, or leave the column out with --drop-column"
    return Wording(f"field {column.source!r} must be one value, not a list or an object", fix)
