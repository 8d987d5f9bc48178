"""Which negatives are drawn for the edges of a split, as users say it."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from graphprep.model.errors import UsageError

Corrupt = Literal["tail", "head", "both"]
_PARTS = {"train": 0, "valid": 1, "val": 1, "validation": 1, "test": 2}
_MOST = 1 << 20  # of an edge
_MOST_HOPS = 64
_FIX = "give a number, such as 5, or one for some parts, such as train=1,val=50,test=50"
_BY_FIX = "use uniform, degree, degree:EXPONENT or khop:K"


@dataclass(frozen=True)
class NegativeRule:
    """How negatives are drawn: ``counts`` for an edge of each part (train, valid, test), of ``ends`` that others stand in for.

    Candidates are as likely as their degree to the power of ``exponent``; or, where ``hops`` is not 0, they are the ends of
    random walks of so many steps at most.
    """

    counts: tuple[int, int, int]
    ends: tuple[Literal["src", "dst"], ...]
    exponent: float = 0.0
    hops: int = 0


def negative_rule(negatives: str | None, by: str = "uniform", corrupt: Corrupt = "tail") -> NegativeRule | None:
    """Read ``--negatives``, ``--negatives-by`` and ``--corrupt``; None: none are drawn.

    Raises UsageError.
    """
    if negatives is None:
        for flag, value, default in (("--negatives-by", by, "uniform"), ("--corrupt", corrupt, "tail")):
            if value != default:
                raise UsageError(f"{flag} {value} does nothing without --negatives", fix="give --negatives, or leave it out")
        return None
    exponent, hops = _parse_method(by)
    counts = _parse_counts(negatives)
    if not any(counts):
        raise UsageError(f"--negatives {negatives!r}: none are drawn", fix="draw 1 or more for some part, or leave it out")
    ends: dict[Corrupt, tuple[Literal["src", "dst"], ...]] = {"tail": ("dst",), "head": ("src",), "both": ("src", "dst")}
    return NegativeRule(counts, ends[corrupt], exponent, hops)


def _parse_counts(text: str) -> tuple[int, int, int]:
    if "=" not in text:
        count = _parse_count(text)
        return count, count, count
    counts = [0, 0, 0]
    seen = set()
    for item in text.split(","):
        name, _, number = item.partition("=")
        part = _PARTS.get(name)
        if part is None or part in seen:
            words = f"{name!r} is no part" if part is None else f"{name!r} is there twice"
            raise UsageError(f"--negatives {text!r}: {words}", fix=_FIX)
        seen.add(part)
        counts[part] = _parse_count(number)
    return counts[0], counts[1], counts[2]


def _parse_count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) > _MOST:
        raise UsageError(f"--negatives: {text!r} is no number from 0 to {_MOST}", fix=_FIX)
    return int(text)


def _parse_method(text: str) -> tuple[float, int]:
    """Return the exponent of the degree, and the hops."""
    name, colon, value = text.partition(":")
    if text == "uniform":
        return 0.0, 0
    if name == "degree":
        try:
            exponent = float(value) if colon else 0.75
        except ValueError:
            exponent = math.nan
        if 0 <= exponent <= 4:
            return exponent, 0
        raise UsageError(f"--negatives-by {text!r}: {value!r} is no exponent from 0 to 4", fix=_BY_FIX)
    if name == "khop":
        if re.fullmatch("[0-9]{1,3}", value) and 2 <= int(value) <= _MOST_HOPS:
            return 0.0, int(value)
        raise UsageError(f"--negatives-by {text!r}: {value!r} is no number of hops from 2 to {_MOST_HOPS}", fix=_BY_FIX)
    raise UsageError(f"--negatives-by: there is no {text!r}", fix=_BY_FIX)
