"""The report of ``plan`` for people."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence

from graphprep.cli.printed.summaries import more_line, note_lines, wrapped_text
from graphprep.cli.printed.words import count, duration, size, table
from graphprep.model.options.plan import Estimate, Guess, PlanReport
from graphprep.model.shown.results import largest_types
from graphprep.model.shown.texts import display_url, hide_secrets, json_text, printable

_MOST_VALUE = 18  # characters of what is assumed, in a column: lines with flags then fit a terminal


def report_text(report: PlanReport, *, every: bool = False) -> str:
    """Write the report; ``every``: with all types, and the entries of the memory ledger."""
    lines = [report.title(), f"  {_looked_at(report)}"]
    lines += [*_types(report, every), "", "  time, memory by stage", *_stages(report), f"  {_peak(report)}"]
    if every:
        lines += ["", "  memory ledger: likely, at most", *_ledger(report)]
    lines += ["", *_disk(report), *_kernels(report)]
    if report.guesses:
        lines += ["", "  assumed, and what fixes it", *_guesses(report.guesses)]
    lines += ["", *note_lines(report.notes, every=every)] if report.notes else []
    return wrapped_text(lines)


def report_json(report: PlanReport) -> str:
    """Write the report for machines: sizes in bytes, times in seconds."""
    totals: dict[str, float] = {"total_nodes": report.total_nodes, "total_edges": report.total_edges}
    totals |= {"output_bytes": report.output_bytes, "convert_s": report.convert_s}
    totals |= {"peak_memory_bytes": report.peak_stage.likely_bytes, "most_memory_bytes": report.most_memory_bytes}
    return json_text(hide_secrets(dataclasses.asdict(report) | totals))


def _looked_at(report: PlanReport) -> str:
    grown = "" if report.text_bytes <= report.input_bytes else f" ({size(report.text_bytes)} decompressed)"
    share = report.read_bytes / max(1, report.input_bytes)
    part = "all of it" if share >= 1 else f"{size(report.read_bytes)}, {100 * share:.2g}%"
    return (
        f"{report.format}, {count(report.num_files, 'file')}, {size(report.input_bytes)}{grown}; looked at {part} in "
        f"{duration(report.elapsed_s)}"
    )


def _types(report: PlanReport, every: bool) -> Iterator[str]:
    """Yield a line for each type: its number, how sure that is, and of nodes how many IDs occur."""
    rows: list[tuple[str, str, str, str]] = []
    more = []
    for kind, counts in (("nodes", report.num_nodes), ("edges", report.num_edges)):
        names = list(counts) if every else largest_types({name: one.value for name, one in counts.items()})
        rows += [(kind, printable(one), f"{counts[one].value:,}", _certainty(one, counts, report, kind)) for one in names]
        more += [more_line(kind, len(counts) - len(names))] if len(names) < len(counts) else []
    yield from table(rows, right=(2,))
    yield from more


def _certainty(name: str, counts: Mapping[str, Estimate], report: PlanReport, kind: str) -> str:
    one, words = counts[name], []
    if not one.is_exact:
        words.append(f"{one.low:,} to {one.high:,}")
    ids = report.distinct_ids.get(name) if kind == "nodes" else None
    if ids is not None and ids != one:
        span = "" if ids.is_exact else f" ({ids.low:,} to {ids.high:,})"
        words.append(f"{ids.value:,} IDs occur{span}")
    return "; ".join(words)


def _stages(report: PlanReport) -> Sequence[str]:
    rows = [(one.name, duration(one.elapsed_s), size(one.likely_bytes)) for one in report.stages]
    rows.append(("in all", duration(report.convert_s), size(report.peak_stage.likely_bytes)))
    return table(rows, right=(1, 2), indent="    ")


def _peak(report: PlanReport) -> str:
    at_most = size(report.most_memory_bytes)
    return (
        f"on {count(report.threads, 'thread')}; memory is at most {at_most}, under a limit of {size(report.memory_limit_bytes)}"
    )


def _ledger(report: PlanReport) -> Sequence[str]:
    rows = [
        (stage.name, one.name, size(one.likely_bytes), size(one.most_bytes)) for stage in report.stages for one in stage.needs
    ]
    return table(rows, right=(2, 3), indent="    ")


def _guesses(found: Sequence[Guess]) -> Iterator[str]:
    """Yield a line for each guess; long values stand out of their column, so that only their own lines are broken."""
    values = [printable(one.value) for one in found]
    first = max(len(one.what) for one in found)
    second = max((len(value) for value in values if len(value) <= _MOST_VALUE), default=0)
    for one, value in zip(found, values, strict=True):
        yield f"    {one.what:<{first}}  {value:<{second}}  {one.flags}"


def _disk(report: PlanReport) -> Iterator[str]:
    parts = ", ".join(f"{name} {size(number)}" for name, number in report.store_bytes.items())
    yield f"  store {size(report.output_bytes)}: {parts}"
    spilled = size(report.spill_bytes) if report.spill_bytes else "none"
    yield f"  temporary files: {spilled}"
    for room in report.disks:
        free = "nobody says what is free" if room.free_bytes is None else f"{size(room.free_bytes)} are free"
        yield f"  disk {display_url(room.folder)}: {size(room.need_bytes)}, {free}"
    for one in report.exports:
        yield f"  export {one.target}: " + ("not estimated" if one.num_bytes is None else f"about {size(one.num_bytes)}")
        yield from (f"    leaves out {text}" for text in one.left_out)


def _kernels(report: PlanReport) -> Iterator[str]:
    if report.compiled_s >= 0.1:
        yield f"  kernels: those that decode were compiled for this plan, in {duration(report.compiled_s)}, and are kept"
    if report.missing_kernels:
        number = count(len(report.missing_kernels), "kernel")
        yield f"  kernels: {number} still to compile, about {duration(report.compile_s)} more, once"
