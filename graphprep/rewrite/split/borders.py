"""The keys at which parts end: those of the rows of given ranks, found digit by digit in passes over all keys."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import NO_PART
from graphprep.engine.local import map_ordered
from graphprep.rewrite.transform.recipe import slices

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]
_KEY_BITS = 64
_MOST_COUNTS = 1 << 18  # of rows by class and digit, of each thread in a pass: 2 MiB
_MOST_BITS = 16  # of a digit: counts stay in the cache
_LAST = np.uint64(2**64 - 1)


@dataclass(frozen=True)
class KeyedRows:
    """The rows of a type: ``keys`` uint64[n]; ``classes`` (int32[n]), -1 for a row that is in no part, None: all are in 0."""

    keys: Keys
    classes: NDArray[np.int32] | None = None

    @property
    def size(self) -> int:
        """Return the number of rows."""
        return self.keys.size

    def read(self, at: slice) -> tuple[Keys, NDArray[np.int32] | None]:
        """Return the keys and classes of those of some rows that have one."""
        if self.classes is None:
            return self.keys[at], None
        classes = self.classes[at]
        there = classes >= 0
        return self.keys[at][there], classes[there]


@dataclass(frozen=True)
class Borders:
    """Where parts end: ``last`` (uint64[classes, k]) are the last keys of part after part, ``is_none`` says that none is below.

    ``codes`` (k + 1) are the numbers of the parts, and of what lies behind them.
    """

    last: Keys
    is_none: NDArray[np.bool_]
    codes: NDArray[np.int8]

    def parts(self, rows: KeyedRows, at: slice) -> NDArray[np.int8]:
        """Return the parts of some rows: int8."""
        keys, found = rows.keys[at], np.zeros(at.stop - at.start, np.int64)
        classes = None if rows.classes is None else np.maximum(rows.classes[at], 0)
        for end in range(self.last.shape[1]):
            last, none = self.last[:, end], self.is_none[:, end]
            found += (keys > last[0]) | none[0] if classes is None else (keys > last[classes]) | none[classes]
        parts = self.codes[found]
        if rows.classes is not None:
            parts[rows.classes[at] < 0] = NO_PART
        return parts


def count_classes(rows: KeyedRows, num_classes: int) -> Ints:
    """Count the rows of each class: int64[classes]."""
    if rows.classes is None:
        return np.array([rows.size], np.int64)
    counts = np.zeros(num_classes, np.int64)
    for at in slices(rows.size):
        some = rows.classes[at]
        counts += np.bincount(some[some >= 0], minlength=num_classes)
    return counts


def find_borders(rows: list[KeyedRows], ends: Ints, sizes: Ints, parts: tuple[int, ...], threads: int) -> Borders:
    """Find the keys at which parts end, behind ``ends`` (int64[classes, k]) of the ``sizes`` rows of each class, of all types.

    Rows of one key are in one part: that of the first of them.
    """
    last = np.full(ends.shape, _LAST, np.uint64)
    for end in range(ends.shape[1]):
        if (ends[:, end] < sizes).any():
            select = _Select(rows, ends[:, end], threads)
            last[:, end] = np.where(ends[:, end] < sizes, select.run(), _LAST)
    return Borders(last, ends == 0, np.array([*parts, NO_PART], np.int8))


@dataclass
class _Select:
    """Finds the key of rank ``ends`` - 1 of each class."""

    rows: list[KeyedRows]
    ends: Ints
    threads: int
    _found: Keys = field(init=False)
    _ranks: Ints = field(init=False)

    def run(self) -> Keys:
        """Return the keys: uint64[classes]; of a class of which none is wanted, any."""
        self._found, self._ranks = np.zeros(self.ends.size, np.uint64), np.maximum(self.ends - 1, 0)
        bits = max(1, min(_MOST_BITS, (_MOST_COUNTS // max(1, self.ends.size)).bit_length() - 1))
        left = _KEY_BITS
        while left:
            step = min(bits, left)
            left -= step
            self._settle(self._count(left, step), step)
        return self._found

    def _settle(self, counts: Ints, bits: int) -> None:
        """Take the digit at which each class has its rank; ``counts`` are int64[classes, 2^bits]."""
        sums = np.cumsum(counts, axis=1)
        digits = np.minimum((sums <= self._ranks[:, None]).sum(axis=1), (1 << bits) - 1)
        below = np.take_along_axis(sums - counts, digits[:, None], axis=1)[:, 0]
        self._ranks -= np.minimum(below, self._ranks)
        self._found = self._found << np.uint64(bits) | digits.astype(np.uint64)

    def _count(self, left: int, bits: int) -> Ints:
        """Count rows by class and digit among those whose higher digits are those that were found."""
        size = self.ends.size << bits
        tasks = ((one, at) for one in self.rows for at in slices(one.size))

        def count(task: tuple[KeyedRows, slice]) -> Ints:
            keys, classes = task[0].read(task[1])
            heads = keys >> np.uint64(left)
            digits = (heads & np.uint64((1 << bits) - 1)).astype(np.int64)
            if classes is not None:
                digits += classes.astype(np.int64) << bits
            if left + bits < _KEY_BITS:
                digits = digits[heads >> np.uint64(bits) == (self._found[0] if classes is None else self._found[classes])]
            return np.bincount(digits, minlength=size)

        total = np.zeros(size, np.int64)
        for counts in map_ordered(count, tasks, self.threads if size <= _MOST_COUNTS else 1):
            total += counts
        return total.reshape(self.ends.size, 1 << bits)
