"""What is done where edges have no time, and a sampler is to draw by times: the rule of ``--missing-time``.

``refuse`` ends, ``drop`` leaves such edges out, and a number, or a date where the column has a unit, is the time that they get.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import ColumnSchema
from graphprep.store.items import StoredArray

REFUSE, DROP = "refuse", "drop"
_STEP = 1 << 20  # rows looked at at once


def check_rule(rule: str) -> None:
    """Raise UsageError where a rule is none."""
    if rule not in (REFUSE, DROP) and not rule[:1].isdigit() and not rule[1:2].isdigit():
        raise UsageError(f"--missing-time must be refuse, drop or a time, found {rule!r}", fix="use one of them")


def count_missing(present: StoredArray) -> int:
    """Return how many rows have no value, by the array that says which have one."""
    size = present.shape[0]
    return size - sum(int(np.count_nonzero(present.read(low, low + _STEP))) for low in range(0, size, _STEP))


def stand_in(rule: str, name: str, column: ColumnSchema, missing: int) -> float | None:
    """Return the time of the ``missing`` edges of type ``name`` that have none, as ``rule`` says: None where they are dropped.

    Raises DataError where these are refused, UsageError for what is no time of the column.
    """
    if rule == DROP:
        return None
    if rule == REFUSE:
        raise DataError(
            f"{edges_words(missing, name)} no time in {column.name!r}, and a sampler would take 0 for it",
            fix="leave such edges out with --missing-time drop, or give the time that they get, as --missing-time 0",
        )
    dtype = np.dtype(column.dtype)
    try:
        if column.unit is not None and rule[1:].strip("0123456789"):
            unit = "D" if column.unit == "day" else column.unit
            return int(np.datetime64(rule.removesuffix("Z")).astype(f"datetime64[{unit}]").astype(np.int64))
        if dtype.kind == "f":
            return float(rule)
        return int(dtype.type(int(rule)))  # OverflowError, if there is no room for it
    except (ValueError, OverflowError):
        fix = "write a number" if column.unit is None else "write a number, or a date such as 2019-01-01"
        raise UsageError(f"--missing-time: {rule!r} is no time of {column.name!r}", fix=fix) from None


def edges_words(missing: int, name: str) -> str:
    """Say that edges have, or one edge has."""
    return f"{missing:,} {'edge' if missing == 1 else 'edges'} of type {name!r} {'has' if missing == 1 else 'have'}"


class FilledTimes:
    """Times with another one where there is none: a ``StoredArray``. None: later than any, so that no seed comes after it."""

    is_local = False  # it is no file

    def __init__(self, times: StoredArray, present: StoredArray, value: float | None, missing: int) -> None:
        self._times, self._present, self.missing = times, present, missing
        self.url, self.shape = times.url, times.shape
        self.dtype: np.dtype[Any] = times.dtype if times.dtype.kind == "f" or times.dtype == np.uint64 else np.dtype(np.int64)
        last = np.inf if self.dtype.kind == "f" else np.iinfo(self.dtype).max
        self._value = self.dtype.type(last if value is None else value)
        self.entry = times.entry._replace(num_bytes=times.shape[0] * (self.dtype.itemsize + 1))

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See ``StoredArray``."""
        return self._filled(self._times.read(start, stop), self._present.read(start, stop))

    def take(self, rows: NDArray[np.int64]) -> NDArray[Any]:
        """See ``StoredArray``."""
        return self._filled(self._times.take(rows), self._present.take(rows))

    def gather(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> NDArray[Any]:
        """See ``StoredArray``."""
        return self._filled(self._times.gather(starts, stops), self._present.gather(starts, stops))

    def map(self) -> NDArray[Any]:
        """Return a copy of all."""
        return self.read()

    def _filled(self, times: NDArray[Any], present: NDArray[Any]) -> NDArray[Any]:
        return np.where(present.reshape(-1), times.reshape(-1).astype(self.dtype, copy=False), self._value)
