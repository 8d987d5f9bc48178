"""Numbers in the user's words: sizes, durations, counts."""

from __future__ import annotations

from collections.abc import Sequence

_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")
_QUANTITIES = ("", "k", "M", "G", "T")


def _scale(value: float, units: Sequence[str]) -> tuple[float, str]:
    for unit in units[:-1]:
        if abs(value) < 999.5:
            return value, unit
        value /= 1000
    return value, units[-1]


def size(num_bytes: float) -> str:
    """Write a size in powers of 1000: ``12 B``, ``3.4 MB``."""
    value, unit = _scale(num_bytes, _SIZES)
    return f"{value:.0f} {unit}" if unit == "B" or value >= 99.95 else f"{value:.1f} {unit}"


def quantity(number: float) -> str:
    """Write a number for reading at a glance: ``812``, ``3.4M``."""
    value, unit = _scale(number, _QUANTITIES)
    return f"{value:.0f}{unit}" if not unit or value >= 99.95 else f"{value:.1f}{unit}"


def count(number: int, noun: str, plural: str = "") -> str:
    """Write an exact number and its noun: ``1 node``, ``12,345 nodes``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def duration(seconds: float) -> str:
    """Write a duration: ``0.12 s``, ``45 s``, ``3:07``, ``2:03:07``."""
    if seconds < 59.5:
        return f"{seconds:.2f} s" if seconds < 9.995 else f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
