"""Feature slots as DeepGNN's engine reads them: contents one behind the other, and where each begins.

A row has as many slots as its highest one says, or more where it states so; a slot that is missing has no bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.bytes.place import place_bytes
from graphprep.model.errors import DataError
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

_MOST_SLOTS = 1 << 24  # of a row: a number in a file for each, filled or not


@dataclass(frozen=True)
class Part:
    """Bytes of many slots: ``source[starts[i]:starts[i] + sizes[i]]`` goes ``shifts[i]`` bytes behind the begin of slot i."""

    source: Bytes
    starts: Ints
    sizes: Ints
    shifts: Ints

    def take(self, rows: Ints) -> Part:
        """Return the part of some of the slots."""
        return Part(self.source, self.starts[rows], self.sizes[rows], self.shifts[rows])


@dataclass(frozen=True)
class Contents:
    """What stands in slot ``slot`` of the rows ``rows`` (int64[k], each once): ``sizes`` bytes, put together from parts.

    Where ``slot`` is an array, too, it is the slot ``slot[i]`` of row ``rows[i]``.
    """

    slot: int | Ints
    rows: Ints
    sizes: Ints
    parts: tuple[Part, ...]

    def at(self, chosen: Ints, rows: Ints) -> Contents:
        """Return the contents ``chosen`` (int64[j]), for other rows."""
        return Contents(self.slot, rows, self.sizes[chosen], tuple(part.take(chosen) for part in self.parts))


@dataclass(frozen=True)
class PackedSlots:
    """The slots of some rows: ``counts`` of each row, where each slot begins in ``data``, and the number of slots before a row.

    All int64: counts[k], begins[slots], firsts[k].
    """

    counts: Ints
    firsts: Ints
    begins: Ints
    data: Bytes

    @property
    def most(self) -> int:
        """Return the most slots that a row has."""
        return int(self.counts.max(initial=0))


def slot_contents(column: ColumnSchema, slot: int, cells: Cells) -> Contents:
    """Return what the slots of a column hold, for all rows of ``cells``, absent ones too.

    Numbers are raw values in C order, texts UTF-8. Sparse: uint32 number of coordinates, uint32 width, int64 coordinates,
    values. Temporal: see ``_temporal_parts``.
    Raises DataError where the numbers are not as many as the rows are said to have.
    """
    _check_counts(column, cells)
    rows = np.arange(cells.num_rows)
    if column.kind == "sparse":
        sizes, parts = _sparse_parts(column, cells)
    elif column.kind == "temporal":
        sizes, parts = _temporal_parts(cells)
    else:
        part = _part(cells.flat, cells.item_counts)
        sizes, parts = part.sizes, (part,)
    return Contents(slot, rows, sizes, parts)


def pack_slots(num_rows: int, contents: Sequence[Contents], stated: Ints | None = None) -> PackedSlots:
    """Put slots together, row by row. ``stated`` (int64[num_rows]) are slots that rows have at least."""
    counts = np.zeros(num_rows, np.int64) if stated is None else stated.copy()
    if not contents and stated is None:
        return PackedSlots(counts, counts, counts[:0], np.zeros(0, np.uint8))
    for one in contents:
        counts[one.rows] = np.maximum(counts[one.rows], one.slot + 1)
    if int(counts.max(initial=0)) > _MOST_SLOTS:
        raise DataError(f"a row has {int(counts.max())} feature slots", fix="number the features of the input from 0 on")
    firsts = np.cumsum(counts) - counts
    if len(contents) == 1 and _is_whole(contents[0], counts):
        return PackedSlots(counts, firsts, contents[0].parts[0].starts, contents[0].parts[0].source)
    sizes = _slot_sizes(contents, firsts, int(counts.sum()))
    begins = np.cumsum(sizes) - sizes
    data = np.zeros(int(sizes.sum()), np.uint8)
    for one in contents:
        ats = begins[firsts[one.rows] + one.slot]
        for part in one.parts:
            place_bytes(part.source, part.starts, part.sizes, data, ats + part.shifts)
    return PackedSlots(counts, firsts, begins, data)


def _slot_sizes(contents: Sequence[Contents], firsts: Ints, num_slots: int) -> Ints:
    """Return the bytes of every slot, those that are missing too.

    Raises DataError where two columns fill one slot of a row: bytes would be written over each other, or beyond the end.
    """
    sizes = np.full(num_slots, -1, np.int64)
    for one in contents:
        ats = firsts[one.rows] + one.slot
        if (sizes[ats] >= 0).any():
            raise DataError(f"two columns fill slot {one.slot} of one row", fix="graphprep validate tells more about the store")
        sizes[ats] = one.sizes
    return np.maximum(sizes, 0)


def _is_whole(contents: Contents, counts: Ints) -> bool:
    """Return whether the source of the only column is the data: every row has its slot, and nothing else, in order."""
    if (
        len(contents.parts) != 1
        or not np.array_equal(contents.slot, 0)
        or contents.rows.size != counts.size
        or counts.max(initial=1) != 1
    ):
        return False
    part = contents.parts[0]
    ends = part.starts + part.sizes
    in_order = bool((contents.rows[1:] > contents.rows[:-1]).all()) and bool((part.starts[1:] == ends[:-1]).all())
    return in_order and (not ends.size or (int(part.starts[0]) == 0 and int(ends[-1]) == part.source.size))


def _check_counts(column: ColumnSchema, cells: Cells) -> None:
    """Refuse what a damaged store may say: what is copied by counts must be there."""
    if cells.counts is None:
        return
    width = column.item_shape[0] if column.kind == "sparse" and column.item_shape else 1
    wanted = [(cells.counts, cells.flat.size, 1)]
    wanted += [] if cells.coords is None else [(cells.counts, cells.coords.size, width)]
    wanted += [] if cells.entry_counts is None else [(cells.entry_counts, cells.counts.size, 1)]
    for counts, size, each in wanted:
        if counts.min(initial=0) < 0 or int(counts.sum()) * each != size:
            message = f"column {column.name!r} has {size} numbers where its rows have {int(counts.sum()) * each}"
            raise DataError(message, fix="graphprep validate tells more about the store")


def _part(values: NDArray[np.generic], counts: Ints, shifts: Ints | int = 0) -> Part:
    """Return values, ``counts`` a slot, as bytes."""
    source = np.ascontiguousarray(values).reshape(-1)
    sizes = counts * source.itemsize
    return Part(source.view(np.uint8), np.cumsum(sizes) - sizes, sizes, np.broadcast_to(np.int64(shifts), sizes.shape))


def _sparse_parts(column: ColumnSchema, cells: Cells) -> tuple[Ints, tuple[Part, ...]]:
    """Put the head of each slot, its coordinates and its values behind each other; no values, no slot."""
    assert cells.coords is not None
    width = column.item_shape[0] if column.item_shape else 1
    counts = cells.item_counts
    filled = (counts > 0).astype(np.int64)
    heads = np.stack([counts * width, np.full(counts.size, width)], axis=1).astype(np.uint32)[counts > 0]
    head, coords = _part(heads, 2 * filled), _part(cells.coords, counts * width, 8)
    values = _part(cells.flat, counts, 8 + 8 * counts * width)
    return head.sizes + coords.sizes + values.sizes, (head, coords, values)


def _temporal_parts(cells: Cells) -> tuple[Ints, tuple[Part, ...]]:
    """Lay out dated values, n of them: int32 n; int64 starts[n]; int64 offsets[n + 1] in the slot; values; 8 zeros."""
    assert cells.entry_counts is not None
    entries, values = cells.entry_counts, _part(cells.flat, cells.value_counts)
    header = np.where(entries > 0, 4 + 8 * (2 * entries + 1), 0)
    item_bytes = cells.item_counts * cells.values.itemsize
    inner = np.concatenate([np.zeros(1, np.int64), np.cumsum(item_bytes)])  # where entries begin among all values
    firsts = np.cumsum(entries) - entries
    filled = np.flatnonzero(entries)
    # A row's offsets are those of its entries and one behind the last: as many numbers as entries, and one.
    ends = np.repeat(np.arange(entries.size)[filled], entries[filled] + 1)
    within = np.arange(ends.size) - np.repeat(np.cumsum(entries[filled] + 1) - entries[filled] - 1, entries[filled] + 1)
    offsets = inner[firsts[ends] + within] - inner[firsts[ends]] + header[ends]
    some = (entries > 0).astype(np.int64)
    head = _part(entries[filled].astype(np.int32), some)
    starts = _part(np.asarray(cells.start), entries, 4)
    borders = _part(offsets, entries + some, 4 + 8 * entries)
    placed = Part(values.source, values.starts, values.sizes, header)
    return header + values.sizes + 8 * some, (head, starts, borders, placed)
