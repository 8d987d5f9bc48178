"""Tables of JSON lines: one flat object a line, its keys the columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.columns import IdKind
from graphprep.decoders.cells.faults import FieldFault, FieldFaults, Wording, column_words, show, time_words, weight_words
from graphprep.decoders.cells.text import TIME_KEY, TIME_SCALES, number_chunk, parse_as, parse_ids, weight_key
from graphprep.decoders.deepgnn import json_faults
from graphprep.decoders.looks.text_head import more_of_head
from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, IdField, TableLayout
from graphprep.decoders.tables.faults import key_words, name_words
from graphprep.decoders.tables.rows import read_numbered, table_rows
from graphprep.decoders.tables.types import OtherKeys, StoredType
from graphprep.decoders.tables.values import check_size, common_shape, parse_texts
from graphprep.kernels.cpu.deepgnn import json_tape
from graphprep.kernels.cpu.deepgnn.json_records import TOO_LARGE
from graphprep.kernels.cpu.deepgnn.json_tables import label_keys, list_members, scalar_texts
from graphprep.kernels.cpu.deepgnn.json_tape import Tape, Tokens, positions, tokenize
from graphprep.kernels.cpu.deepgnn.json_values import read_numbers
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.text import delimited, numbers
from graphprep.model.errors import DataError
from graphprep.model.protocols import InputStorage, Span, TextBlock
from graphprep.model.rows import ColumnChunk, ColumnKey, RawIds, RawRows, RawTexts
from graphprep.storage.read.spans import BLOCK_BYTES, place_of, read_blocks

Ints = NDArray[np.int64]
_HEAD_BYTES = 1 << 16
_TEXTS = (json_tape.TEXT, json_tape.ESCAPED)
_LISTS = (json_tape.ARRAY, json_tape.NESTED)
_INTEGERS = (json_tape.UINT, json_tape.NEGATIVE)
_FLAT = "write one flat object a line; leave a column out with --drop-column"


@dataclass(frozen=True)
class Members:
    """Where the values of one key stand: the records that have it (int64[k], ascending), and the tokens of key and value."""

    records: Ints
    keys: Ints

    @property
    def values(self) -> Ints:
        """Return the tokens of the values."""
        return self.keys + 1


@dataclass(frozen=True)
class Lines:
    """The records of some lines, by key. ``faults`` are what is wrong with whole records."""

    data: bytes
    tape: Tape
    roots: Ints
    members: Mapping[str, Members]
    faults: tuple[FieldFault, ...] = ()

    @classmethod
    def of(cls, data: bytes) -> Lines:
        """Read whole lines, as far as they are objects whose keys differ."""
        data = data if data.endswith(b"\n") else data + b"\n"
        tokens = tokenize(data)
        faults = []
        for code, at in tokens.faults.tolist():
            fault = json_faults.fault(data, code, at)
            faults.append(FieldFault(tokens.roots.size, at, -1, Wording(fault.message, fault.fix)))
        records, keys, bad = list_members(tokens)
        if bad >= 0:
            at = int(positions(tokens.tape, tokens.roots[bad : bad + 1])[0])
            faults.append(FieldFault(bad, at, -1, Wording("a record must be a JSON object", _FLAT)))
        members = _by_key(tokens, records, keys, faults)
        return cls(data, tokens.tape, tokens.roots, members, tuple(faults))

    def at(self, token: int) -> int:
        """Return the position of a value."""
        return int(positions(self.tape, np.array([token]))[0])

    def kinds(self, tokens: Ints) -> Ints:
        """Return the kinds of values."""
        return self.tape.words[tokens] >> json_tape.KIND_SHIFT


def _by_key(tokens: Tokens, records: Ints, keys: Ints, faults: list[FieldFault]) -> dict[str, Members]:
    """Group members by their key; a key that stands twice in a record, or is no text, is a fault."""
    tape = tokens.tape
    codes, firsts = label_keys(tape, records, keys)
    bounds, order = group_by_key(codes, firsts.size)
    found: dict[str, Members] = {}
    for number in range(firsts.size):
        rows = order[bounds[number] : bounds[number + 1]]
        _, spelled, lone = scalar_texts(tape, firsts[number : number + 1])
        name = spelled.tobytes()
        if lone >= 0:
            words = Wording("a key holds a lone surrogate", "write the key in valid Unicode")
            faults.append(FieldFault(int(records[rows[0]]), int(positions(tape, firsts[number : number + 1])[0]), -1, words))
            continue
        found[name.decode()] = Members(records[rows], keys[rows])
        twice = np.flatnonzero(np.diff(records[rows]) == 0)
        if twice.size:
            second = int(rows[twice[0] + 1])
            at = int(positions(tape, keys[second : second + 1])[0])
            words = Wording(f"key {show(name)} stands twice in one object", "keep one of them")
            faults.append(FieldFault(int(records[second]), at, -1, words))
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
class JsonReader:
    """Reads one file of JSON lines. ``lists`` are the keys of columns that hold lists."""

    layout: TableLayout
    lists: frozenset[str] = frozenset()
    others: OtherKeys = field(default_factory=OtherKeys)

    def decode(self, block: TextBlock, places: bool = False) -> RawRows:
        """Decode whole lines.

        Raises DecodeError for the first faulty record.
        """
        return self._rows(block, 0, places)

    def read(self, handle: BinaryIO, span: Span, max_rows: int, places: bool = False) -> Iterator[RawRows]:
        """Read a table whose rows are numbered. See ``read_numbered``."""
        blocks = read_blocks(handle, span, min(BLOCK_BYTES, 2 * max_rows))
        yield from read_numbered(blocks, self.layout.ids[0].first, lambda block, row: self._rows(block, row, places))

    def count(self, handle: BinaryIO, span: Span) -> int:
        """Count the records of a file, up to the first that is no JSON."""
        return sum(int(Lines.of(block.data).roots.size) for block in read_blocks(handle, span))

    def _rows(self, block: TextBlock, first_row: int, places: bool) -> RawRows:
        lines = Lines.of(block.data)
        known = {self.layout.names[position] for position in range(len(self.layout.names))}
        found = (self.others.column(name) for name in lines.members if name not in known)
        features = (*self.layout.features, *(column for column in found if column is not None))
        layout = dataclasses.replace(self.layout, features=features)
        return table_rows(JsonBatch(lines, layout, self.lists, first_row), layout, places)


@dataclass(frozen=True)
class JsonBatch:
    """The records of a block. See ``tables_rows.Batch``."""

    lines: Lines
    layout: TableLayout
    lists: frozenset[str]
    first_row: int
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
        tokens = self._keys(field.position)
        buf, start, stop = self._texts(np.arange(tokens.size), tokens)
        ids, code, row = parse_ids(field.kind, buf, start, stop, 0)
        if row >= 0:
            found = show(buf[start[row] : stop[row]].tobytes())
            self._blame(row, int(tokens[row]), key_words(field.name, code, found, field.kind))
        return ids

    def texts(self, position: int) -> RawTexts:
        """Read a column of names."""
        tokens = self._keys(position)
        buf, start, stop = self._texts(np.arange(tokens.size), tokens)
        offsets, values, code, row = delimited.gather_ids(buf, start, stop)
        if row >= 0:
            self._blame(row, int(tokens[row]), name_words(self.layout.names[position], code, ""))
        return RawTexts(offsets, values)

    def weights(self, position: int, dtype: str) -> ColumnChunk:
        """Read weights."""
        rows, tokens = self._present(self.layout.names[position])
        buf, start, stop = self._texts(rows, tokens)
        found, values, code, bad = parse_as(dtype, buf, start, stop)
        if bad >= 0:
            text = show(buf[start[bad] : stop[bad]].tobytes())
            self._blame(int(rows[bad]), int(tokens[bad]), weight_words(code, text, dtype))
        return number_chunk(weight_key(dtype), rows[found], values)

    def times(self, column: FeatureColumn, unit: str | None) -> ColumnChunk:
        """Read times: numbers in seconds, or dates and timestamps where that is declared."""
        rows, tokens = self._present(column.source)
        if column.type is not None and column.type.unit is not None:
            chunk = self._parse(column, column.type, rows, tokens)
            return dataclasses.replace(chunk, key=dataclasses.replace(TIME_KEY, unit=column.type.unit))
        buf, start, stop = self._texts(rows, tokens)
        found, values, code, bad = delimited.parse_times(buf, start, stop, TIME_SCALES[unit])
        if bad >= 0:
            text = show(buf[start[bad] : stop[bad]].tobytes())
            self._blame(int(rows[bad]), int(tokens[bad]), time_words(code, text, unit, column.source))
        return number_chunk(TIME_KEY, rows[found], values)

    def feature(self, column: FeatureColumn) -> ColumnChunk:
        """Read a column that is stored."""
        rows, tokens = self._present(column.source)
        kinds = self.lines.kinds(tokens)
        is_list = column.type.is_list if column.type else column.source in self.lists
        wrong = (kinds == json_tape.OBJECT) | (kinds == json_tape.NESTED) | ((kinds == json_tape.ARRAY) != is_list)
        if column.type is not None and is_list:
            wrong &= ~np.isin(kinds, _TEXTS)  # a list may be written as text
        if wrong.any():
            bad = int(wrong.argmax())
            self._blame(int(rows[bad]), int(tokens[bad]), _shape_words(column, is_list))
            rows, tokens, kinds = rows[:bad], tokens[:bad], kinds[:bad]
        if column.type is None:
            return self._list(column, rows, tokens) if is_list else self._undecided(column, rows, tokens, kinds)
        if column.type.dtype == "binary":
            return self._binary(column, rows, tokens)
        if is_list and not np.isin(kinds, _TEXTS).any():
            return self._list(column, rows, tokens)
        return self._parse(column, column.type, rows, tokens)

    def places(self, field: IdField) -> Ints:
        """Return the positions of the IDs in the block; of rows that are numbered, their numbers in the batch."""
        if field.position is None:
            return np.arange(self.num_rows, dtype=np.int64)
        return positions(self.lines.tape, self._keys(field.position))

    # ------------------------------------------------------------------------------------------------ values

    def _present(self, name: str) -> tuple[Ints, Ints]:
        """Return the records in which a key has a value that is not null, and the tokens of the values."""
        members = self.lines.members.get(name)
        if members is None:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        is_there = self.lines.kinds(members.values) != json_tape.NULL
        return members.records[is_there], members.values[is_there]

    def _keys(self, position: int) -> Ints:
        """Return the token of a key column's value in every record, up to the first where it is no text or integer."""
        name = self.layout.names[position]
        rows, tokens = self._present(name)
        kinds = self.lines.kinds(tokens)
        sound = min(rows.size, self.num_rows)
        bad = np.flatnonzero((rows != np.arange(rows.size)) | ~np.isin(kinds, (*_TEXTS, *_INTEGERS, json_tape.BIG)))
        if bad.size:
            sound = int(bad[0])
        if sound < rows.size and rows[sound] == sound:
            words = Wording(f"field {name!r} must be a string or an integer", "write keys as JSON strings or integers")
            self._blame(sound, int(tokens[sound]), words)
        elif sound < self.num_rows:
            self._blame(sound, int(self.lines.roots[sound]), key_words(name, numbers.EMPTY, "", "uint"))
        return tokens[:sound]

    def _texts(self, rows: Ints, tokens: Ints) -> tuple[NDArray[np.uint8], Ints, Ints]:
        """Return scalars as text: their bytes, and where each begins and ends; up to the first that is no Unicode."""
        offsets, values, lone = scalar_texts(self.lines.tape, tokens)
        if lone >= 0:
            self._blame(
                int(rows[lone]), int(tokens[lone]), Wording("a text holds a lone surrogate", "write it in valid Unicode")
            )
            offsets = offsets[: lone + 1]
        return values, offsets[:-1].copy(), offsets[1:].copy()

    def _parse(self, column: FeatureColumn, kind: ColumnType, rows: Ints, tokens: Ints) -> ColumnChunk:
        buf, start, stop = self._texts(rows, tokens)
        if kind.unit is not None and np.isin(self.lines.kinds(tokens), _INTEGERS).all():
            found, values, code, bad = parse_as("int64", buf, start, stop)
            faulty = iter([(bad, column_words(column.source, code, "", "int64"))] if bad >= 0 else [])
            chunk = number_chunk(ColumnKey(column.name, "numbers", "int64", unit=kind.unit), found, values)
        else:
            chunk, faulty = parse_texts(column, kind, buf, start, stop, self.layout.list_delimiter)
        for bad, words in islice(faulty, 1):
            self._blame(int(rows[bad]), int(tokens[bad]), words)
        return dataclasses.replace(chunk, rows=rows[chunk.rows])

    def _binary(self, column: FeatureColumn, rows: Ints, tokens: Ints) -> ColumnChunk:
        buf, start, stop = self._texts(rows, tokens)
        return ColumnChunk(
            ColumnKey(column.name, "binary", "uint8"), rows, stop - start, buf[: int(stop[-1]) if stop.size else 0]
        )

    def _undecided(self, column: FeatureColumn, rows: Ints, tokens: Ints, kinds: Ints) -> ColumnChunk:
        """Read scalars as what they are: texts if one is, else bools, else int64 or float64."""
        if np.isin(kinds, _TEXTS).any():
            return self._binary(column, rows, tokens)
        is_bool = np.isin(kinds, (json_tape.TRUE, json_tape.FALSE))
        key = ColumnKey(column.name, "numbers", "bool")
        if rows.size and is_bool.all():
            return number_chunk(key, rows, kinds == json_tape.TRUE)
        if not is_bool.any():
            buf, start, stop = self._texts(rows, tokens)
            _, ints, _, bad = delimited.parse_ints(buf, start, stop, keep_sign=True)
            if bad < 0:
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
        values = self._numbers(column, rows, tokens, dtype, size)
        if column.type is not None:
            for row, words in islice(check_size(column, column.type, rows, counts), 1):
                self._blame(row, int(tokens[np.searchsorted(rows, row)]), words)
        shape = common_shape(counts, column.type.size if column.type else None)
        return ColumnChunk(ColumnKey(column.name, "numbers", dtype), rows, counts, values, shape)

    def _numbers(
        self, column: FeatureColumn, rows: Ints, tokens: Ints, dtype: str, size: int | None = None
    ) -> NDArray[np.generic]:
        """Read numbers, of scalars or of lists."""
        values, faults = read_numbers(self.lines.tape, tokens, tokens.size if size is None else size, dtype)
        for number, code, bad in faults[:1].tolist():
            row = int(rows[number])
            words = column_words(column.source, numbers.OVERFLOW if code == TOO_LARGE else numbers.INVALID, "", dtype)
            found = json_faults.found_at(self.lines.data, self.lines.at(bad))
            if size is not None and found.startswith('"'):
                remedy = f"join the texts of a row to one, or pass --drop-column {column.source}"
                words = Wording(f"field {column.source!r} must be a list of numbers, found ", remedy)
            self._blame(row, bad, dataclasses.replace(words, message=words.message + found))
        return values

    def _blame(self, row: int, token: int, words: Wording) -> None:
        self.faults.add(row, self.lines.at(token), 0, words)


def _shape_words(column: FeatureColumn, is_list: bool) -> Wording:
    if is_list:
        return Wording(f"field {column.source!r} must be a list of numbers, as in the records before", _FLAT)
    fix = f"declare lists with --column {column.source}=list<float64>, or leave the column out with --drop-column"
    return Wording(f"field {column.source!r} must be one value, not a list or an object", fix)
