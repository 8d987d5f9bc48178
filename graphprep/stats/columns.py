"""What is in the columns of a store: least, mean and largest values, what is missing, how many differ, and how often."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.engine.ledger import Need
from graphprep.engine.local import map_ordered, num_in_flight
from graphprep.kernels.cpu.stats.distinct import MOST_EXACT, NUM_REGISTERS, NUM_SLOTS, note_words
from graphprep.kernels.cpu.text.texts import hash_texts
from graphprep.model.options.stats import Bin, ColumnStats, Number
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.stored import read_present
from graphprep.store.items import StoredArrays
from graphprep.store.paths import ColumnPaths
from graphprep.store.text_source import TextSource

Array = NDArray[Any]
_SLICE = 1 << 16  # values that are looked at at once: sums of floats are the same for any limit
_SLICE_BYTES = 6 << 20  # of such a slice, and of what is computed of it
_MOST_COUNTED = 1000  # values of a label
_NUM_BINS = 20
_CODES = ("label", "split", "key", "type")
_TIMES = ("time", "created_at", "removed_at")
_ID_NAMES = ("id", "parent_id", "node_id", "raw_id", "edge_id", "node_type", "edge_type")
_FIRST_S, _LAST_S = 10**8, 41 * 10**8  # 1973 and 2099, in seconds since 1970
_SPLIT_NAMES = ("train", "valid", "test")
_LOW_HALF = np.uint64(0xFFFFFFFF)
_HLL_BIAS = 0.7213 / (1 + 1.079 / NUM_REGISTERS)


def column_needs(room: Workspace) -> Iterator[Need]:
    """Declare what they take."""
    slices = num_in_flight(room.threads)
    yield Need("values", slices * _SLICE_BYTES, f"{slices} slices of {_SLICE} at a time, and what is computed of them")
    yield Need("distinct", NUM_REGISTERS + 8 * NUM_SLOTS, "a table of hashes")
    yield Need("pieces", slices * room.piece_bytes, "texts")


@dataclass(frozen=True)
class _Slice:
    """Some rows: how many there are and lack a value, the values, and words that differ where these do."""

    num_rows: int
    num_missing: int
    values: Array
    words: NDArray[np.uint64]


def describe_columns(
    store: StoredArrays, folder: str, columns: tuple[ColumnSchema, ...], room: Workspace, *, histograms: bool
) -> tuple[ColumnStats, ...]:
    """Describe the columns of a node type or edge type, whose arrays lie in ``folder`` of each partition.

    Raises DataError where the store's arrays are faulty.
    """
    return tuple(_describe(_ColumnRows(store, f"{folder}/{one.path}", one), room, histograms) for one in columns)


def _describe(rows: _ColumnRows, room: Workspace, histograms: bool) -> ColumnStats:
    column, found = rows.column, _Totals(_names(rows.column))
    for some, part in map_ordered(lambda read: _look(read()), rows.slices(), room.threads):
        found.add(some, part)
    low, high = found.min, found.max
    bins: tuple[Bin, ...] = ()
    if histograms and column.kind != "binary" and low is not None and high is not None and 0 < high - low < math.inf:
        bins = _histogram(rows, float(low), float(high), room)
    return ColumnStats(
        name=column.name,
        kind=column.kind,
        dtype=column.dtype,
        item_shape=column.item_shape,
        role=column.role,
        num_rows=found.num_rows,
        num_missing=found.num_missing,
        num_values=found.num_values,
        num_nan=found.num_nan,
        min=low,
        mean=found.mean() if _is_amount(column) else None,
        max=high,
        num_distinct=found.num_distinct(),
        is_exact=found.is_exact,
        counts=found.value_counts(),
        histogram=bins,
        unit=column.unit or _unit_of(column, low, high),
        is_amount=_is_amount(column),
    )


def _is_amount(column: ColumnSchema) -> bool:
    """Return whether values are amounts, and no codes, keys or IDs."""
    if column.kind == "binary":
        return True  # lengths
    is_code = column.role in _CODES or column.categories is not None or column.name in _ID_NAMES or column.name.endswith("_id")
    return not is_code or (column.dtype.startswith("float") and column.role == "label")


def _unit_of(column: ColumnSchema, low: Number | None, high: Number | None) -> str | None:
    """Return the unit of times whose column states none: that in which all of them lie between 1973 and 2100."""
    if column.role not in _TIMES or low is None or high is None:
        return None
    units = (("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9))
    return next((unit for unit, times in units if _FIRST_S * times <= low and high <= _LAST_S * times), None)


class _ColumnRows:
    """Reads a column's values in slices, those of all partitions."""

    def __init__(self, store: StoredArrays, stem: str, column: ColumnSchema) -> None:
        self.column = column
        self._store = store
        self._stem = stem
        self._paths = ColumnPaths(stem)

    def slices(self) -> Iterator[Any]:
        """Yield functions that read a slice each; texts are read on the way."""
        for part in range(self._store.metadata.num_parts):
            if self.column.kind == "dense":
                yield from self._dense(part)
            else:
                yield from self._absent(part)
                yield from self._texts(part) if self.column.kind == "binary" else self._lists(part)

    def _dense(self, part: int) -> Iterator[Any]:
        array = self._store.array(part, f"{self._stem}.npy")
        step = max(1, _SLICE // max(1, int(np.prod(self.column.item_shape, dtype=np.int64))))

        def read(low: int, high: int) -> _Slice:
            values, missing = array.read(low, high), 0
            present = read_present(self._store, part, self._stem, self.column, low, high)
            if present is not None:
                missing = int(present.size - present.sum())
                values = values[present] if missing else values
            flat = values.reshape(-1)
            return _Slice(high - low, missing, flat, _words(flat))

        size = array.shape[0]
        for low in range(0, size, step):
            yield lambda low=low: read(low, min(low + step, size))

    def _absent(self, part: int) -> Iterator[Any]:
        """Yield the rows without their values."""
        path = self._paths.entry_offsets if self.column.kind == "temporal" else self._paths.offsets
        size = self._store.array(part, path).shape[0] - 1
        none = np.zeros(0, np.float64)

        def read(low: int, high: int) -> _Slice:
            present = read_present(self._store, part, self._stem, self.column, low, high)
            missing = 0 if present is None else int(present.size - present.sum())
            return _Slice(high - low, missing, none, _words(none))

        for low in range(0, size, _SLICE):
            yield lambda low=low: read(low, min(low + _SLICE, size))

    def _lists(self, part: int) -> Iterator[Any]:
        array = self._store.array(part, self._paths.values)

        def read(low: int) -> _Slice:
            values = array.read(low, low + _SLICE)
            return _Slice(0, 0, values, _words(values))

        for low in range(0, array.shape[0], _SLICE):
            yield lambda low=low: read(low)

    def _texts(self, part: int) -> Iterator[Any]:
        """Yield lengths of texts, and their hashes for words."""
        offsets, values = self._store.array(part, self._paths.offsets), self._store.array(part, self._paths.values)
        first = 0
        for _, texts in TextSource(offsets, values, is_local=offsets.is_local).pieces(0, offsets.shape[0] - 1):
            present = read_present(self._store, part, self._stem, self.column, first, first + texts.size)
            lengths, words = np.diff(texts.offsets), hash_texts(texts.offsets, texts.values)
            first += texts.size
            kept = slice(None) if present is None else present
            yield lambda lengths=lengths[kept], words=words[kept]: _Slice(0, 0, lengths, words)


def _words(values: Array) -> NDArray[np.uint64]:
    """Return words that differ where values do; NaNs are left out."""
    if values.dtype.kind == "f":
        wide = values.astype(np.float64)
        return np.asarray(wide[~np.isnan(wide)] + 0.0).view(np.uint64)  # -0.0 is 0.0
    return (values if values.dtype == np.uint64 else values.astype(np.int64)).view(np.uint64)


@dataclass(frozen=True)
class _Part:
    """What is known of a slice: ``total`` is exact for integers."""

    num_nan: int
    low: Number | None
    high: Number | None
    total: Number


def _look(some: _Slice) -> tuple[_Slice, _Part]:
    """Look at a slice, on a thread."""
    values = some.values
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        is_nan = np.isnan(values)
        num_nan = int(is_nan.sum())
        values = values[~is_nan] if num_nan else values
        with np.errstate(all="ignore"):
            total: Number = float(values.sum())
    else:
        num_nan, total = 0, _exact_sum(values)
    if not values.size:
        return some, _Part(num_nan, None, None, 0)
    return some, _Part(num_nan, values.min().item() + 0, values.max().item() + 0, total)


def _exact_sum(values: Array) -> int:
    """Add up to 2^32 integers of any size: halves of words do not overflow."""
    if values.dtype.itemsize < 8:
        return int(values.sum(dtype=np.int64))
    high = values >> values.dtype.type(32)
    return (int(high.sum()) << 32) + int((values.view(np.uint64) & _LOW_HALF).sum())


@dataclass
class _Totals:
    """What is known of the slices so far. ``names`` are those of values that are counted; None: none are."""

    names: Mapping[Number, str] | None
    num_rows: int = 0
    num_missing: int = 0
    num_values: int = 0
    num_nan: int = 0
    min: Number | None = None
    max: Number | None = None
    _total: Number = 0
    _lost: float = 0.0  # of a sum of floats: what rounding took
    _counts: dict[Number, int] = field(default_factory=dict)
    _registers: NDArray[np.uint8] = field(default_factory=lambda: np.zeros(NUM_REGISTERS, np.uint8))
    _slots: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(NUM_SLOTS, np.uint64))
    _num_distinct: NDArray[np.int64] = field(default_factory=lambda: np.zeros(1, np.int64))

    def add(self, some: _Slice, part: _Part) -> None:
        """Take the next slice."""
        self.num_rows += some.num_rows
        self.num_missing += some.num_missing
        self.num_values += some.values.size
        self.num_nan += part.num_nan
        if part.low is not None and part.high is not None:
            self.min = part.low if self.min is None else min(self.min, part.low)
            self.max = part.high if self.max is None else max(self.max, part.high)
            self._add_up(part.total)
        note_words(some.words, self._registers, self._slots, self._num_distinct)
        if self.names is not None and len(self._counts) <= _MOST_COUNTED:
            for value, number in zip(*map(np.ndarray.tolist, np.unique(some.values, return_counts=True)), strict=True):
                if value == value:  # noqa: PLR0124 - no NaN
                    self._counts[value + 0] = self._counts.get(value, 0) + number

    def _add_up(self, more: Number) -> None:
        """Add to the total; of floats also what is lost (Neumaier 1974)."""
        before, self._total = self._total, self._total + more
        if isinstance(more, float) and math.isfinite(self._total):
            larger, smaller = (before, more) if abs(before) >= abs(more) else (more, before)
            self._lost += (larger - self._total) + smaller

    def mean(self) -> float | None:
        """Return the mean of the values that are numbers."""
        num = self.num_values - self.num_nan
        return (self._total + self._lost) / num if num else None

    @property
    def is_exact(self) -> bool:
        """Return whether the number of distinct values is no estimate."""
        return bool(self._num_distinct[0] <= MOST_EXACT)

    def num_distinct(self) -> int:
        """Return how many values differ."""
        if self.is_exact:
            return int(self._num_distinct[0])
        return round(_HLL_BIAS * NUM_REGISTERS**2 / float(np.exp2(-self._registers.astype(np.float64)).sum()))

    def value_counts(self) -> Mapping[str, int] | None:
        """Return how many rows have each value, by its name; None where that is not wanted, or there are too many values."""
        if self.names is None or len(self._counts) > _MOST_COUNTED:
            return None
        return {self.names.get(value, _shown(value)): self._counts[value] for value in sorted(self._counts)}


def _shown(value: Number) -> str:
    """Return a value's digits, all that it takes to tell it from others."""
    return str(value) if isinstance(value, int) else f"{value:.17g}"


def _names(column: ColumnSchema) -> Mapping[Number, str] | None:
    """Return the names of the values of a label, split or category; None for other columns."""
    if column.kind != "dense" or column.item_shape or np.dtype(column.dtype).kind not in "biuf":
        return None
    if column.categories is not None:
        return dict(enumerate(column.categories))
    return dict(enumerate(_SPLIT_NAMES if column.role == "split" else ())) if column.role in ("label", "split") else None


def _histogram(rows: _ColumnRows, low: float, high: float, room: Workspace) -> tuple[Bin, ...]:
    """Count values in bins of equal width; the last has ``high``, too. Fewer where float64 has too few numbers between."""
    edges = np.unique(np.linspace(low, high, _NUM_BINS + 1))
    counts = np.zeros(edges.size - 1, np.int64)
    bins = edges if counts.size < _NUM_BINS else _NUM_BINS

    def count(read: Any) -> NDArray[np.int64]:
        values = read().values.astype(np.float64)
        return np.histogram(values[~np.isnan(values)], bins, (low, high))[0]

    for found in map_ordered(count, rows.slices() if counts.size else (), room.threads):
        counts += found
    return tuple(Bin(*one) for one in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True))
