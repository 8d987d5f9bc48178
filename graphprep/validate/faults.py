"""What ``validate`` finds: faults with their places, the first of them kept, all of them counted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

RawId = TypeVar("RawId", int, bytes)


@dataclass(frozen=True)
class Fault:
    """One thing that is wrong. ``place``: path inside the store and index (``part-00000/…/indices.npy[17]``)."""

    place: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.message}"


class Faults:
    """Collects faults; keeps the first ``limit`` in the order in which they are found, counts all."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.kept: list[Fault] = []
        self.num = 0

    def add(self, place: str, message: str) -> None:
        """Note one fault."""
        self.num += 1
        if len(self.kept) < self.limit:
            self.kept.append(Fault(place, message))

    def add_rows(self, path: str, bad: NDArray[np.bool_], first: int, words: str, *values: object) -> bool:
        """Note a fault for every True in ``bad``; element i stands at index ``first + i`` of the array ``path``.

        ``words`` have ``{}`` for each of ``values``: of an array its element i, of a function what it returns for i, which is
        asked only for faults that are kept. Returns whether there was one.
        """
        found = int(np.count_nonzero(bad))
        if not found:
            return False
        for i in np.flatnonzero(bad)[: max(self.limit - len(self.kept), 0)].tolist():
            self.kept.append(Fault(f"{path}[{first + i}]", words.format(*(_at(value, i) for value in values))))
        self.num += found
        return True


def _at(value: object, i: int) -> object:
    if callable(value):
        return value(i)
    return value[i] if isinstance(value, np.ndarray) else value


def check_ranges(parts: Iterable[tuple[str, RawId, RawId]], show: Callable[[RawId], str], faults: Faults) -> None:
    """Check that each partition, (place, lowest raw ID, highest), begins above the end of those before it."""
    last: RawId | None = None
    for path, first, end in parts:
        if last is not None and first <= last:
            what = f"expected a raw ID above {show(last)}, the last one of the partition before, found {show(first)}"
            faults.add(f"{path}[0]", what)
        last = end
