"""What a run did, for machines and for people."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import typer

from graphprep.cli.printed.colors import painted
from graphprep.cli.printed.words import iso_time, peak_memory, quantity, size, table
from graphprep.model.shown.results import MOST_TYPES, RunResult, largest_types
from graphprep.model.shown.texts import hide_secrets, json_text, lines_text, printable, shown, without_secrets

if TYPE_CHECKING:
    from graphprep.cli.options import ReportFlags

_COLUMNS = 80
_MOST_NOTE_LINES = 3  # notes are shorter than results
_UNIT = re.compile(r"(\d) (?=(?:[KMGTP]?B|s)\b)")
_NAMES = re.compile(r"'(?:[^'\\]|\\.)*'|\S+:\S+:\S+|[0-9][0-9,.]*")  # of types, and their numbers
_HANGING = 4  # blanks in front of what goes on, beside the line's own


def summary_json(summary: Any, exports: Sequence[Any] = ()) -> str:
    """Write a summary for machines: sizes in bytes, times in seconds; those of exports under ``exports``."""
    exported = {"exports": [_shown_values(one) for one in exports]} if exports else {}
    return json_text(_shown_values(summary) | exported)


def _shown_values(summary: Any) -> dict[str, Any]:
    values = dataclasses.asdict(summary)
    return values | {name: hide_secrets(values[name]) for name in ("out", "notes") if name in values}


def print_result(
    found: Any, to_json: Callable[[Any], str], to_text: Callable[..., str], flags: ReportFlags, *, as_json: bool
) -> None:
    """Print what a command did or found on stdout: for machines, or for people, unless these asked for quiet."""
    if as_json:
        typer.echo(to_json(found))
    elif not flags.quiet:
        text = painted(to_text(found, every=flags.verbose > 0), sys.stdout, has_head=True)
        typer.echo(text, color=True)


def print_told(text: str, flags: ReportFlags, *, event: str = "message") -> None:
    """Print on stderr what stands beside a result, such as a fault of a store: as text, or as a line of JSON."""
    if flags.log_format == "json":
        told = {"time": iso_time(), "event": event, "message" if event == "error" else "text": without_secrets(text)}
        typer.echo(json_text(told, indent=None), err=True)
    else:
        text = f"error: {shown(text)}" if event == "error" else lines_text(text.splitlines())
        typer.echo(painted(text, sys.stderr), err=True, color=True)


def note_lines(notes: Sequence[str], *, every: bool = False) -> list[str]:
    """Return a line for each note; unless ``every``, for the first that take three lines of the terminal, one at least."""
    lines: list[str] = []
    for note in notes:
        line, more = f"  note: {without_secrets(note)}", len(notes) - len(lines)
        most = _MOST_NOTE_LINES + (more == 1)  # the last one in place of the line that would count it
        if lines and not every and len(wrapped_text([*lines, line]).splitlines()) > most:
            return [*lines, f"  note: ... and {more:,} more; -v shows {'all' if more > 1 else 'it'}"]
        lines.append(line)
    return lines


def kind_lines(notes: Sequence[str], label: str, *, every: bool = False) -> list[str]:
    """Return a line for each of what a label is for; unless ``every``, for ten of those that say the same of many types."""
    kinds = [_NAMES.sub("", note) for note in notes]
    totals, met, lines = Counter(kinds), Counter[str](), []
    for note, kind in zip(notes, kinds, strict=True):
        met[kind] += 1
        if every or met[kind] <= MOST_TYPES:
            lines.append(f"  {label}: {without_secrets(note)}")
        if not every and met[kind] == MOST_TYPES < totals[kind]:
            lines.append(f"  {label}: ... and {totals[kind] - MOST_TYPES:,} more like these; -v shows all")
    return lines


def wrapped_text(lines: Sequence[str]) -> str:
    """Join lines, those of more than 80 columns broken between words, save the heads, which begin with a path."""
    import textwrap

    told = []
    for line in lines_text(lines).splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + _HANGING)
        wrapper = textwrap.TextWrapper(
            _COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, replace_whitespace=False
        )
        broken = len(line) > _COLUMNS and line[0] == " "
        told += wrapper.wrap(_UNIT.sub("\\1\xa0", line)) if broken else [line]  # a number stays with its unit
    return "\n".join(told).replace("\xa0", " ")


def types_lines(num_nodes: Mapping[str, int], num_edges: Mapping[str, int], *, every: bool = False) -> list[str]:
    """Return a line for each type, with its number of nodes or edges; unless ``every``, of many types for the largest."""
    kinds = [("nodes", num_nodes), ("edges", num_edges)]
    told = [(kind, counts, list(counts) if every else largest_types(counts)) for kind, counts in kinds]
    lines = table([(kind, printable(name), f"{counts[name]:,}") for kind, counts, names in told for name in names], right=(2,))
    last = 0
    for kind, counts, names in told:
        last += len(names)
        if len(names) < len(counts):
            lines.insert(last, more_line(kind, len(counts) - len(names)))
            last += 1
    return lines


def more_line(kind: str, number: int) -> str:
    """Say how many types a summary does not show."""
    return f"  {kind}  ... and {number:,} more; -v shows all"


def work_line(summary: RunResult, *, input_rate: bool = True) -> str:
    """Say what was read and written, and what that took; ``input_rate``: also how much a second was read."""
    seconds = max(summary.elapsed_s, 1e-3)
    rates = [f"{quantity(sum(summary.num_edges.values()) / seconds)} edges/s"]
    rates += [f"{size(summary.input_bytes / seconds)}/s"] if input_rate else []
    return f"  {summary.work_words()}: {', '.join(rates)}, {peak_memory(summary.peak_memory_bytes)}" + (
        f", spilled {size(summary.spilled_bytes)}" if summary.spilled_bytes else ""
    )
