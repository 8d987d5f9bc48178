"""From noted feature slots to columns, for the formats whose features have only numbers. Used by edgelist and tsv."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.cells.row_numbers import every_row, one_a_row
from graphprep.decoders.looks.dtype_words import dtype_name
from graphprep.kernels.cpu.deepgnn import slots as kernels
from graphprep.kernels.cpu.deepgnn import walk
from graphprep.kernels.cpu.deepgnn.slots import DTYPES, FLOAT_LIMITS, TEXT_DTYPE
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.text.check import find_not_utf8
from graphprep.kernels.cpu.text.delimited import Codes, parse_numbers
from graphprep.model.errors import DecodeError, UsageError
from graphprep.model.rows import ColumnChunk, ColumnKey, RawEdges, RawNodes, Relation
from graphprep.model.schema import Role

_SHOWN_CHARS = 60
_COORDINATES = "must have integers from -2^63 to 2^63-1 as coordinates"
_FEW_TYPES = 1 << 12
_FIRST_GROUPS = 64
Ints = NDArray[np.int64]


def dtype_code(text: str) -> int:
    """Return the code of a dtype as NumPy spells it (``float32``, ``float``, ``<f4`` …), -1 where it is none of ours."""
    if text == "binary":
        return int(TEXT_DTYPE)
    name = dtype_name(text)
    return DTYPES.index(name) if name in DTYPES else -1


def show(text: bytes) -> str:
    """Quote what was found, on one line and not too long."""
    shown = text[: 4 * _SHOWN_CHARS].decode("utf-8", "backslashreplace")
    return repr(shown if len(shown) <= _SHOWN_CHARS else shown[:_SHOWN_CHARS] + "…")


def raise_first(faults: Sequence[DecodeError | None]) -> None:
    """Raise the fault that stands first in the block, if there is any."""
    found = [fault for fault in faults if fault is not None]
    if found:
        raise min(found, key=lambda fault: fault.at)


def first_of_lines(data: bytes, faults: Iterable[DecodeError]) -> list[DecodeError]:
    """Return the first fault of every faulty line, in input order."""
    by_line: dict[int, DecodeError] = {}
    for fault in sorted(faults, key=lambda fault: fault.at):
        by_line.setdefault(data.rfind(b"\n", 0, fault.at), fault)
    return list(by_line.values())


def check_weight(flag: str, value: float | None, dtype: str) -> None:
    """Raise UsageError for a weight that is no number, or does not fit the dtype of weights."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UsageError(f"{flag} must be a number, found {value!r}")
    if np.isfinite(value) and abs(value) >= FLOAT_LIMITS[dtype]:
        raise UsageError(f"{flag} {value!r} does not fit {dtype}", fix="use --weight-dtype float64")


def side_chunk(role: Role, dtype: str, values: NDArray[np.generic]) -> ColumnChunk:
    """Make the chunk of a column that every row has one number of: weight, created_at, removed_at."""
    rows, counts = every_row(values.shape[0]), one_a_row(values.shape[0])
    return ColumnChunk(key=ColumnKey(role, "numbers", dtype, role=role), rows=rows, counts=counts, values=values, item_shape=())


@dataclass(frozen=True)
class FixedColumns:
    """The columns of nodes, or of edges, besides their IDs and features: types as codes of names, ``side`` the others."""

    types: tuple[NDArray[np.int32], tuple[str, ...]]
    side: Sequence[ColumnChunk]
    num_slots: NDArray[np.int32]

    @classmethod
    def of(
        cls, types: NDArray[np.int32], weights: NDArray[np.float64], num_slots: NDArray[np.int32], weight_dtype: str
    ) -> FixedColumns:
        """Take type numbers and weights."""
        return cls(code_types(types), (side_chunk("weight", weight_dtype, weights.astype(weight_dtype)),), num_slots)

    def nodes(self, ids: NDArray[np.uint64], features: Sequence[ColumnChunk]) -> RawNodes:
        """Make nodes; IDs and numbers of slots are copied."""
        columns = (*self.side, *features)
        return RawNodes(ids.copy(), *self.types, columns, num_slots=self.num_slots.copy())

    def edges(self, src: NDArray[np.uint64], dst: NDArray[np.uint64], features: Sequence[ColumnChunk]) -> RawEdges:
        """Make edges; IDs and numbers of slots are copied."""
        types, names = self.types
        columns, num_slots = (*self.side, *features), self.num_slots.copy()
        return RawEdges(src.copy(), dst.copy(), types, tuple(map(Relation, names)), columns, num_slots=num_slots)


def code_types(types: NDArray[np.int32]) -> tuple[NDArray[np.int32], tuple[str, ...]]:
    """Turn type numbers into codes of their names, ascending by number."""
    if types.size == 0:
        return types, ()
    present = np.zeros(_FEW_TYPES, np.bool_)
    if kernels.mark_numbers(types, present):  # quicker than sorting
        numbers = np.flatnonzero(present)
        if int(numbers[-1]) == numbers.size - 1:  # 0, 1, 2 …: the usual case
            return types.copy(), tuple(map(str, numbers.tolist()))
        codes = np.cumsum(present, dtype=np.int32) - np.int32(1)
        return codes[types], tuple(map(str, numbers.tolist()))
    distinct, inverse = np.unique(types, return_inverse=True)
    return inverse.astype(np.int32), tuple(str(number) for number in distinct)


@dataclass(frozen=True)
class Noted:
    """What a walker finds wrong with a line: ``progress`` from ``walk.FAULT`` on."""

    code: int
    field: int
    at: int
    end: int
    slot: int
    dtype: int
    count: int
    width: int
    columns: int


class Walk:
    """A block on its way through a walker, up to the first faulty line or, with ``every``, to its end.

    ``noted`` has what is wrong with each faulty line.
    """

    def __init__(self, data: bytes, buf: NDArray[np.uint8], every: bool) -> None:
        self.data = data
        self.buf = buf
        self.every = every
        self.begin()

    def begin(self) -> None:
        """Forget what was found."""
        slots = np.empty((max(len(self.data) // 64, 256), 5), np.int64)
        groups = np.empty((_FIRST_GROUPS, 4), np.int64)
        self.slots = walk.Slots(slots, groups, np.full(4 * _FIRST_GROUPS, -1, np.int64))
        self.progress = np.zeros(walk.NUM_PROGRESS, np.int64)
        self.noted: list[Noted] = []

    def step(self) -> int:
        """Go on as far as the walker does, and return what it answers."""
        raise NotImplementedError

    def run(self) -> None:
        """Walk to the end, or to the first faulty line."""
        while (code := self.step()) != walk.DONE:
            if code == walk.FULL:
                self.grow()
                continue
            self.noted.append(Noted(*self.progress[walk.FAULT :].tolist()))
            if not self.every:
                return
            self.progress[walk.POS] = self.data.find(b"\n", self.progress[walk.POS]) + 1 or len(self.data)
            self.progress[walk.SLOTS_BEFORE] = self.progress[walk.SLOTS]

    def grow(self) -> None:
        """Double what is full."""
        slots, groups, buckets = self.slots
        if self.progress[walk.GROUPS] == groups.shape[0]:
            groups, buckets = kernels.grow_groups(groups, int(self.progress[walk.GROUPS]))
        if self.progress[walk.SLOTS] == slots.shape[0]:
            slots = np.concatenate((slots, np.empty_like(slots)))
        self.slots = walk.Slots(slots, groups, buckets)

    def found_slots(self, delimiter: NDArray[np.uint8], escape: NDArray[np.uint8]) -> FoundSlots:
        """Return what was noted so far."""
        buf = self.buf.view()
        buf.flags.writeable = False  # whatever the walker does to it: one compiled signature serves all
        slots, groups = self.slots.slots[: self.progress[walk.SLOTS]], self.slots.groups[: self.progress[walk.GROUPS]]
        return FoundSlots(buf, delimiter, escape, slots, groups)


@dataclass(frozen=True)
class FoundSlots:
    """What a walker noted of a block.

    ``buf`` (uint8) holds the text, ``delimiter`` (uint8) what stands between values; with ``escape`` (uint8, not empty), escape
    and delimiter inside a text stand for the delimiter. ``slots`` and ``groups`` as ``kernels.cpu.deepgnn.slots`` says.
    """

    buf: NDArray[np.uint8]
    delimiter: NDArray[np.uint8]
    escape: NDArray[np.uint8]
    slots: NDArray[np.int64]
    groups: NDArray[np.int64]

    def columns(self) -> tuple[tuple[ColumnChunk, ...], tuple[ColumnChunk, ...], DecodeError | None]:
        """Parse all values: the columns of nodes, those of edges, and the first value that is wrong."""
        by_owner: tuple[list[ColumnChunk], list[ColumnChunk]] = ([], [])
        first: DecodeError | None = None
        for owner, column in self._grouped():
            chunk, faults = column.parse()
            by_owner[owner].append(chunk)
            fault = next(faults, None)
            if fault is not None and (first is None or fault.at < first.at):
                first = fault
        return tuple(by_owner[kernels.NODE]), tuple(by_owner[kernels.EDGE]), first

    def faults(self) -> Iterator[DecodeError]:
        """Yield the values that are wrong: of each column the first one of every row."""
        for _, column in self._grouped():
            yield from column.parse()[1]

    def _grouped(self) -> Iterator[tuple[int, _Column]]:
        """Yield the owner of each column, and the column."""
        indptr, order = group_by_key(self.slots[:, kernels.GROUP], self.groups.shape[0])
        for i, (owner, slot, dtype, width) in enumerate(self.groups.tolist()):
            rows = self.slots[order[indptr[i] : indptr[i + 1]]]
            if rows.size:  # a line that did not fit, or a fault, left an empty group
                yield owner, _Column(self, slot, dtype, width, rows)


@dataclass(frozen=True)
class _Column:
    """One group of slots, its rows in input order."""

    found: FoundSlots
    slot: int
    dtype_code: int
    width: int
    slots: NDArray[np.int64]

    def parse(self) -> tuple[ColumnChunk, Iterator[DecodeError]]:
        """Parse the values, and tell the first of every row that is wrong. With a fault, the chunk is not to be used."""
        if self.dtype_code == TEXT_DTYPE:
            return self._parse_texts()
        counts = self.slots[:, kernels.COUNT]
        if self.width == kernels.NOT_SPARSE:
            starts, stops = self._find(counts)
            values, codes = self._parse_values(starts, stops)
            return self._chunk(values), self._faults(counts, starts, stops, codes)
        # Each row has its coordinates first, then its values.
        in_front = counts * max(self.width, 1)
        both = in_front + counts
        starts, stops = self._find(both)
        is_coordinate = np.arange(starts.size) - np.repeat(np.cumsum(both) - both, both) < np.repeat(in_front, both)
        codes = np.empty(starts.size, np.uint8)
        where = self.found.buf, starts[is_coordinate], stops[is_coordinate]
        coords, codes[is_coordinate] = parse_numbers("int64", *where)
        values, codes[~is_coordinate] = self._parse_values(starts[~is_coordinate], stops[~is_coordinate])
        return self._chunk(values, coords), self._faults(both, starts, stops, codes, is_coordinate)

    def _find(self, counts: Ints) -> tuple[Ints, Ints]:
        """Find where ``counts`` values a row begin and end."""
        starts, stops = (np.empty(int(counts.sum()), np.int64) for _ in range(2))
        counts = np.ascontiguousarray(counts)
        kernels.find_values(self.found.buf, self.found.delimiter, self.slots, counts, starts, stops)
        return starts, stops

    def _chunk(self, values: NDArray[np.generic], coords: NDArray[np.int64] | None = None) -> ColumnChunk:
        counts = self.slots[:, kernels.COUNT].copy()
        is_text = self.dtype_code == TEXT_DTYPE
        family = "binary" if is_text else "numbers" if coords is None else "sparse"
        is_dense = family == "numbers" and bool((counts == counts[0]).all())
        return ColumnChunk(
            key=ColumnKey(
                f"feat_{self.slot}",
                family,  # type: ignore[arg-type]
                "uint8" if is_text else DTYPES[self.dtype_code],
                slot=self.slot,
                width=max(self.width, 0),
            ),
            rows=self.slots[:, kernels.ROW].copy(),
            counts=counts,
            values=values,
            item_shape=(int(counts[0]),) if is_dense else None,
            coords=coords,
        )

    def _parse_values(self, starts: Ints, stops: Ints) -> tuple[NDArray[np.generic], Codes]:
        """Parse to the column's dtype: values and codes."""
        dtype = np.dtype(DTYPES[self.dtype_code])
        if dtype.kind != "c":
            return parse_numbers(dtype.name, self.found.buf, starts, stops)
        parts, codes = np.empty((starts.size, 2), np.float64), np.empty(starts.size, np.uint8)
        limit = FLOAT_LIMITS["float32" if dtype.itemsize == 8 else "float64"]
        kernels.parse_complexes(self.found.buf, starts, stops, limit, parts, codes)
        return parts.view(np.complex128).ravel().astype(dtype, copy=False), codes

    def _parse_texts(self) -> tuple[ColumnChunk, Iterator[DecodeError]]:
        """Copy the texts and check that they are UTF-8."""
        counts = self.slots[:, kernels.COUNT]
        out = np.empty(int(counts.sum()), np.uint8)
        kernels.copy_texts(self.found.buf, self.found.delimiter, self.found.escape, self.slots, out)
        return self._chunk(out), map(self._text_fault, invalid_texts(out, counts))

    def _text_fault(self, row: int) -> DecodeError:
        start, stop = self.slots[row, kernels.START], self.slots[row, kernels.STOP]
        return DecodeError(
            f"feature slot {self.slot} must hold UTF-8 text, found {show(self.found.buf[start:stop].tobytes())}",
            at=int(start),
            fix="write the file in UTF-8",
        )

    def _faults(
        self, counts: Ints, starts: Ints, stops: Ints, codes: Codes, is_coordinate: NDArray[np.bool_] | None = None
    ) -> Iterator[DecodeError]:
        """Word the first value of every row that is wrong; the rows have ``counts`` of them."""
        bad = np.flatnonzero(codes)
        _, firsts = np.unique(np.searchsorted(np.cumsum(counts), bad, side="right"), return_index=True)
        rule = f"must hold {_values_text(np.dtype(DTYPES[self.dtype_code]))}"
        for k in bad[firsts].tolist():
            text = self.found.buf[starts[k] : stops[k]].tobytes()
            is_value = is_coordinate is None or not is_coordinate[k]
            yield DecodeError(
                f"feature slot {self.slot} {rule if is_value else _COORDINATES}, found {show(text)}",
                at=int(starts[k]),
                fix="correct the value, or the slot's dtype or length",
            )


def _values_text(dtype: np.dtype[np.generic]) -> str:
    """Say what values of a dtype look like."""
    if dtype.kind == "b":
        return "bool values (0, 1, true, false)"
    if dtype.kind in "iu":
        info = np.iinfo(dtype)  # type: ignore[type-var]
        return f"{dtype.name} values ({info.min} to {info.max})"
    return f"{dtype.name} values"


def invalid_texts(data: NDArray[np.uint8], counts: Ints) -> list[int]:
    """Return which texts, ``counts`` bytes each and one after another in ``data``, are not UTF-8."""
    offsets = np.zeros(counts.size + 1, np.int64)
    np.cumsum(counts, out=offsets[1:])
    return np.flatnonzero(find_not_utf8(offsets, data)).tolist()
