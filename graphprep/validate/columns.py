"""Third part of ``validate``: the columns of nodes and edges, row by row, in slices."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.budget import format_size
from graphprep.engine.ledger import Need
from graphprep.model.schema import ColumnSchema
from graphprep.store.paths import num_slots_path
from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedArray, CheckedStore
from graphprep.validate.offsets import check_offsets

_SLICE_BYTES = 4 << 20
_SLICE_ROWS = 1 << 19  # of int64

Flags = NDArray[np.bool_]


def column_needs() -> Iterator[Need]:
    """Declare what checking columns takes."""
    yield Need("column", 4 * _SLICE_BYTES, f"{format_size(_SLICE_BYTES)} at a time, and what is compared of it")


def check_columns(
    store: CheckedStore, part: int, folder: str, columns: tuple[ColumnSchema, ...], *, num_slots: bool, faults: Faults
) -> None:
    """Check the columns of one type in one partition: offsets, presence, what absent rows hold, and number of slots.

    Where a file is faulty, what depends on it is left out: the fault of the file was reported.
    """
    slots = store.array(part, num_slots_path(folder)) if num_slots else None
    if slots is not None:
        for start, stop in _slices(slots):
            stated = slots.read(start, stop)
            faults.add_rows(slots.path, stated < 0, start, "expected a number of slots >= 0, found {}", stated)
    for column in columns:
        files = ColumnFiles(store, part, f"{folder}/{column.path}")
        present = files.get(".present") if column.optional else None
        if present is not None and not _check_bools(present, faults):
            present = None
        _check_values(column, files, present, faults)
        if column.role == "split":
            _check_codes(files, 3, "a part (0, 1 or 2)", faults)
        elif column.categories is not None:
            _check_codes(files, len(column.categories), f"a category below {len(column.categories)}", faults, present)
        if slots is not None and column.slot is not None and (present is not None or not column.optional):
            _check_num_slots(column, slots, present, faults)


class ColumnFiles:
    """The files of one column in one partition."""

    def __init__(self, store: CheckedStore, part: int, stem: str) -> None:
        self._store = store
        self._part = part
        self._stem = stem

    def get(self, suffix: str) -> CheckedArray | None:
        """Return the file with this suffix; None where a fault of it was reported."""
        return self._store.array(self._part, f"{self._stem}{suffix}.npy")


def _slices(array: CheckedArray) -> Iterator[tuple[int, int]]:
    """Cut the rows of an array into slices of a few MiB."""
    row_bytes = max(1, array.dtype.itemsize * int(np.prod(array.shape[1:], dtype=np.int64)))
    step = max(1, _SLICE_BYTES // row_bytes)
    for start in range(0, array.num_rows, step):
        yield start, min(start + step, array.num_rows)


def _check_bools(array: CheckedArray, faults: Faults) -> bool:
    """Check that every byte of a bool array is 0 or 1."""
    sound = True
    for start, stop in _slices(array):
        most = array.read(start, stop).reshape(stop - start, -1).view(np.uint8).max(axis=1, initial=0)
        sound &= not faults.add_rows(array.path, most > 1, start, "expected bytes 0 or 1 for bool, found {}", most)
    return sound


def _check_codes(files: ColumnFiles, limit: int, what: str, faults: Faults, present: CheckedArray | None = None) -> None:
    """Check that the values of a scalar column lie in [0, limit); rows without the column hold 0 whatever the limit."""
    array = files.get("")
    if array is None or array.shape[1:] or array.dtype.kind != "i":
        return
    for start, stop in _slices(array):
        values = array.read(start, stop)
        bad = (values < 0) | (values >= limit)
        if present is not None:
            bad &= present.read(start, stop)
        faults.add_rows(array.path, bad, start, "expected {}, found {}", what, values)


def _check_values(column: ColumnSchema, files: ColumnFiles, present: CheckedArray | None, faults: Faults) -> None:
    """Check the values of one column by its kind."""
    if column.kind == "dense":
        values = files.get("")
        if values is not None and column.dtype == "bool":
            _check_bools(values, faults)
        if values is not None and present is not None:
            _check_absent_zero(values, present, faults)
        return
    check = _check_temporal if column.kind == "temporal" else _check_lists
    rows = check(column, files, faults)
    if rows is not None and present is not None:
        _check_absent_empty(rows, present, faults)


def _check_lists(column: ColumnSchema, files: ColumnFiles, faults: Faults) -> CheckedArray | None:
    """Check ragged, sparse and binary columns; return the rows' offsets if they are sound."""
    offsets, values = files.get(".offsets"), files.get(".values")
    if values is not None and column.dtype == "bool":
        _check_bools(values, faults)
    if column.kind == "sparse":
        coords = files.get(".coords")
        if coords is not None and values is not None and coords.num_rows != values.num_rows:
            faults.add(coords.path, f"expected {values.num_rows} rows, as many as values, found {coords.num_rows}")
    if offsets is None or values is None:
        return None
    return offsets if check_offsets(offsets, values.num_rows, faults) else None


def _check_temporal(column: ColumnSchema, files: ColumnFiles, faults: Faults) -> CheckedArray | None:
    """Check a temporal column; return the rows' offsets (into entries) if they are sound."""
    entries, start, offsets = files.get(".entry_offsets"), files.get(".start"), files.get(".offsets")
    values, end = files.get(".values"), files.get(".end") if column.end else None
    if values is not None and column.dtype == "bool":
        _check_bools(values, faults)
    if offsets is not None and values is not None and offsets.num_rows > 0:
        check_offsets(offsets, values.num_rows, faults)
    if start is None:
        return None
    for other, wanted in ((offsets, start.num_rows + 1), (end, start.num_rows)):
        if other is not None and other.num_rows != wanted:
            faults.add(other.path, f"expected {wanted} numbers for {start.num_rows} entries, found {other.num_rows}")
    if entries is None or not check_offsets(entries, start.num_rows, faults):
        return None
    _check_entry_order(entries, start, faults)
    return entries


def _check_entry_order(entries: CheckedArray, start: CheckedArray, faults: Faults) -> None:
    """Check that the entries of a row are in the order of their starts."""
    firsts = _FirstEntries(entries)
    previous = 0
    for low, high in _slices(start):
        times = start.read(low, high)
        before = np.concatenate([np.array([previous if low else times[0]], np.int64), times[:-1]])
        bad = (times < before) & ~firsts.mask(low, high)
        words = "expected a start >= {}, that of the row's entry before, found {}"
        faults.add_rows(start.path, bad, low, words, before, times)
        previous = int(times[-1])


class _FirstEntries:
    """Says which entries are the first of their row, for ascending ranges of entries, reading the offsets once."""

    def __init__(self, entries: CheckedArray) -> None:
        self._entries = entries
        self._row = 0
        self._offsets = np.empty(0, np.int64)

    def mask(self, low: int, high: int) -> NDArray[np.bool_]:
        """Return bool[high - low]."""
        out = np.zeros(high - low, np.bool_)
        while True:
            inside = self._offsets[(self._offsets >= low) & (self._offsets < high)]
            out[inside - low] = True
            if (self._offsets.size and self._offsets[-1] >= high) or self._row >= self._entries.num_rows:
                return out
            stop = min(self._row + _SLICE_ROWS, self._entries.num_rows)
            self._offsets = self._entries.read(self._row, stop)
            self._row = stop


def _check_absent_zero(values: CheckedArray, present: CheckedArray, faults: Faults) -> None:
    """Check that rows without the column are zero in every bit."""
    for start, stop in _slices(values):
        rows = np.ascontiguousarray(values.read(start, stop)).reshape(stop - start, -1).view(np.uint8)
        bad = rows.any(axis=1) & ~present.read(start, stop)
        faults.add_rows(values.path, bad, start, "expected zeros in a row without the column, found other values")


def _check_absent_empty(offsets: CheckedArray, present: CheckedArray, faults: Faults) -> None:
    """Check that rows without the column have no values."""
    for start in range(0, present.num_rows, _SLICE_ROWS):
        stop = min(start + _SLICE_ROWS, present.num_rows)
        counts = np.diff(offsets.read(start, stop + 1))
        bad = (counts > 0) & ~present.read(start, stop)
        faults.add_rows(offsets.path, bad, start, "expected no values in a row without the column, found {}", counts)


def _check_num_slots(column: ColumnSchema, slots: CheckedArray, present: CheckedArray | None, faults: Faults) -> None:
    """Check that a row states at least as many slots as its highest present one needs."""
    slot = column.slot or 0
    for start, stop in _slices(slots):
        stated = slots.read(start, stop)
        bad = stated <= slot
        if present is not None:
            bad &= present.read(start, stop)
        words = "expected at least {}, since slot {} is present, found {}"
        faults.add_rows(slots.path, bad, start, words, slot + 1, slot, stated)
