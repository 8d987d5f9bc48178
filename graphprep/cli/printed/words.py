"""Numbers in the user's words, as commands print them, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence

from graphprep.model.shown.texts import count, duration, quantity, size

_GAP = 2  # blanks between columns
_CUT = "..."


def iso_time() -> str:
    """Return the time as lines of JSON have it: ``2026-01-31T12:00:00.000+00:00``."""
    from datetime import datetime

    return datetime.now().astimezone().isoformat(timespec="milliseconds")


def peak_memory(num_bytes: int) -> str:
    """Say how much memory was in use at most; 0 bytes: the system does not tell."""
    return f"peak memory {size(num_bytes)}" if num_bytes else "peak memory unknown on this system"


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


__all__ = ["count", "cut_cells", "duration", "peak_memory", "quantity", "size", "table"]
