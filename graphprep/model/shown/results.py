"""How what functions return shows itself: a few lines of text in a shell, a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from graphprep.model.shown.texts import count, duration, printable, shown, size

MOST_TYPES = 10  # of nodes, and of edges: the largest
_GAP = "  "
_WIDTH = 80  # of lines of words
Row = tuple[str, str, str, str]


@dataclass(frozen=True)
class Card:
    """A title, rows of four cells, and sentences. The third cell of a row is a number, flush right."""

    title: str
    rows: tuple[Row, ...] = ()
    notes: tuple[str, ...] = ()

    def text(self) -> str:
        """Write lines of text."""
        rows = [tuple(map(printable, row)) for row in self.rows]
        sizes = [max((len(row[i]) for row in rows), default=0) for i in range(4)]
        pads = (str.ljust, str.ljust, str.rjust, str.ljust)
        lines = []
        for row in rows:
            cells = [pad(cell, size) for pad, cell, size in zip(pads, row, sizes, strict=True)]
            lines.append((_GAP + _GAP.join(cells)).rstrip())
        notes = [line for note in self.notes for line in _wrapped(shown(note))]
        return "\n".join([shown(self.title), *lines, *notes])

    def html(self) -> str:
        """Write a table."""
        from html import escape

        rows = "".join(
            f"<tr>{''.join(_cell(at, escape(printable(cell))) for at, cell in enumerate(row))}</tr>" for row in self.rows
        )
        notes = "".join(f"<div>{escape(shown(note))}</div>" for note in self.notes)
        table = f"<table>{rows}</table>" if rows else ""
        return f"<div><div><b>{escape(shown(self.title))}</b></div>{table}{notes}</div>"


def _wrapped(note: str) -> list[str]:
    """Break a sentence between words, and indent it."""
    from textwrap import wrap

    return wrap(note, _WIDTH, initial_indent=_GAP, subsequent_indent=2 * _GAP, break_long_words=False, break_on_hyphens=False)


class Showable:
    """Has ``card``, and shows it."""

    def card(self) -> Card:
        """Return what to show."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return self.card().text()

    def _repr_html_(self) -> str:
        return self.card().html()


class RunResult(Showable):
    """What a run that made something of a graph tells of it; its classes have these fields, each in its order."""

    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    input_bytes: int
    output_bytes: int
    elapsed_s: float
    peak_memory_bytes: int
    spilled_bytes: int
    notes: tuple[str, ...]

    def graph_words(self) -> str:
        """Say how large the graph is: ``34 nodes, 78 edges``."""
        return f"{count(sum(self.num_nodes.values()), 'node')}, {count(sum(self.num_edges.values()), 'edge')}"

    def sizes_words(self) -> str:
        """Say how large the graph is: ``34 nodes, 78 edges, 1 partition``."""
        return f"{self.graph_words()}, {count(self.num_parts, 'partition')}"

    def work_words(self) -> str:
        """Say what was read and written, and how long that took."""
        return f"read {size(self.input_bytes)}, wrote {size(self.output_bytes)} in {duration(self.elapsed_s)}"

    def card_of(self, title: str, *lines: str) -> Card:
        """Return a card with a row for each type, some lines, and the notes."""
        return Card(title, type_rows(self.num_nodes, self.num_edges), (*lines, *(f"note: {one}" for one in self.notes)))


def type_rows(
    nodes: Mapping[str, int | None], edges: Mapping[str, int | None], columns: Mapping[str, Sequence[str]] | None = None
) -> tuple[Row, ...]:
    """Return a row for each type with its number and, where ``columns`` are given, their names; of many types the largest."""
    return (*_rows("nodes", nodes, columns or {}), *_rows("edges", edges, columns or {}))


def largest_types(counts: Mapping[str, int | None]) -> list[str]:
    """Return the names of the largest types, in their order among all."""
    if len(counts) <= MOST_TYPES:
        return list(counts)
    kept = set(sorted(counts, key=lambda name: -(counts[name] or 0))[:MOST_TYPES])
    return [name for name in counts if name in kept]


def _rows(kind: str, counts: Mapping[str, int | None], columns: Mapping[str, Sequence[str]]) -> list[Row]:
    rows: list[Row] = []
    for name in largest_types(counts):
        number = counts[name]
        rows.append((kind, name, "?" if number is None else f"{number:,}", ", ".join(columns.get(name, ()))))
    more = len(counts) - len(rows)
    return [*rows, (kind, f"… and {more:,} more", "", "")] if more else rows


def _cell(at: int, text: str) -> str:
    side = "right" if at == 2 else "left"
    return f'<td style="text-align: {side}">{text}</td>'
