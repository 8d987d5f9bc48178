"""How many rows go into each part: shares of them all, or counts."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import NEAR_ONE
from graphprep.model.errors import UsageError

Ints = NDArray[np.int64]
TRAIN, VALID, TEST = range(3)
_PARTS = {2: (TRAIN, TEST), 3: (TRAIN, VALID, TEST)}
_NUMBER = re.compile(r"\d{1,18}|\d*\.\d+|\d+\.")
_FIX = "write TRAIN/VALID/TEST or TRAIN/TEST: shares that add up to 1, such as 0.8/0.1/0.1, or counts, such as 140/500/1000"


@dataclass(frozen=True)
class Shares:
    """The parts, ascending, and behind which exact ``fractions`` of the rows they end, or else the ``counts`` of each."""

    parts: tuple[int, ...]
    fractions: tuple[Fraction, ...] = ()
    counts: tuple[int, ...] = ()

    def ends(self, sizes: Ints) -> Ints:
        """Return behind how many of its rows each part of each class ends: int64[classes, parts]; ``sizes`` are the classes'.

        Counts, which must not be more than there are rows, are shared out over classes in proportion to their rows.
        """
        if self.fractions:
            columns = [_rounded(sizes, share) for share in self.fractions]
        else:
            left, columns = sizes, []
            for count in self.counts:
                left = left - _apportion(count, left)
                columns.append(sizes - left)
        return np.stack(columns, axis=1)


def _rounded(sizes: Ints, share: Fraction) -> Ints:
    """Return a share of each of some sizes, halves rounded up."""
    over, half = 2 * share.numerator, share.denominator
    return np.asarray((_exact(sizes, over, half) * over + half) // (2 * half), np.int64)


def _apportion(count: int, sizes: Ints) -> Ints:
    """Share a count out in proportion to sizes: by largest remainders, ties to the first."""
    total = max(1, int(sizes.sum()))
    quotas = _exact(sizes, count, 0) * count
    found = np.asarray(quotas // total, np.int64)
    found[np.argsort(-(quotas % total), kind="stable")[: count - int(found.sum())]] += 1
    return found


def _exact(sizes: Ints, factor: int, more: int) -> NDArray[Any]:
    """Return sizes as numbers that hold their product with a factor, and more."""
    most = int(sizes.max(initial=0)) * factor + more
    return sizes if most < 2**63 and factor < 2**63 else sizes.astype(object)


def parse_shares(text: str) -> Shares:
    """Read ``0.8/0.1/0.1`` or ``140/500/1000``. Raises UsageError."""
    numbers = text.split("/")
    if len(numbers) not in _PARTS:
        raise UsageError(f"expected two or three shares, found {text!r}", place="SHARES", fix=_FIX)
    for number in numbers:
        if not _NUMBER.fullmatch(number):
            raise UsageError(f"{number!r} is no share", place="SHARES", fix=_FIX)
    parts = _PARTS[len(numbers)]
    if all(number.isdigit() for number in numbers):
        return Shares(parts, counts=tuple(map(int, numbers)))
    fractions = tuple(map(Fraction, numbers))
    total = sum(fractions, Fraction(0))
    if abs(total - 1) > NEAR_ONE:
        raise UsageError(f"the shares add up to {float(total):g}, not to 1", place="SHARES", fix=_FIX)
    ends = [min(sum(fractions[: at + 1], Fraction(0)), Fraction(1)) for at in range(len(parts) - 1)]
    return Shares(parts, (*ends, Fraction(1)))
