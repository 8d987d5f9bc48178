"""Numbers in the user's words: sizes, durations, counts, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence

_SIZES = ("B", "KB", "MB", "GB", "TB", "PB")
_QUANTITIES = ("", "k", "M", "G", "T")
_GAP = 2  # blanks between columns
_CUT = "..."


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


def printable(text: str) -> str:
    """Write characters that a terminal would obey or not show (line ends, escape sequences) as Python writes them."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def cut_cells(rows: Sequence[Sequence[str]], width: int, *, least: int) -> list[list[str]]:
    """Cut the longest cells so that rows fit ``width`` characters in ``table``, none to less than ``least``."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    room = width - _GAP * (len(widths) - 1)
    limit = max(widths, default=0)
    while limit > least and sum(min(one, limit) for one in widths) > room:
        limit -= 1
    return [[cell if len(cell) <= limit else cell[: limit - len(_CUT)] + _CUT for cell in row] for row in rows]


def table(rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "  ") -> list[str]:
    """Lay out rows of equal length in columns; those whose numbers stand in ``right`` are flush right."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + (" " * _GAP).join(cells)).rstrip())
    return lines
