"""The report of ``stats`` for people: tables, and a histogram of degrees."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from graphprep.cli.printed.summaries import wrapped_text
from graphprep.cli.printed.words import count, duration, peak_memory, size
from graphprep.model.shown.results import MOST_TYPES, largest_types
from graphprep.model.shown.texts import display_url, printable

if TYPE_CHECKING:
    from rich.table import Table

    from graphprep.model.options.stats import (
        ColumnStats,
        Distribution,
        EdgeTypeStats,
        NodeTypeStats,
        PartStats,
        StatsReport,
        TriangleStats,
    )

MOST_COLUMNS = 80  # of a report that is piped
_LEAST_COLUMNS = 60
_INDENT = 2
_GAP = 2  # between columns
_LEAST_NAME, _MOST_NAME = 8, 16  # characters of a name: however wide the numbers are, and over a histogram
_NAME_END = 4
_BAR = 36  # characters of the longest bar
_MOST_VALUES = 8  # of a label that are shown
_MOST_DIGITS = 6  # of a number
_SHOWN = ("50", "90", "99")


def report_text(report: StatsReport, *, width: int = MOST_COLUMNS, bar: str = "█", every: bool = False) -> str:
    """Write the report in ``width`` columns; ``every``: with all types and partitions, however many."""
    from rich.console import Console
    from rich.padding import Padding

    out = io.StringIO()
    told = Console(
        file=out,
        width=max(_LEAST_COLUMNS, width),
        color_system=None,
        markup=False,
        highlight=False,
        emoji=False,
        legacy_windows=False,
    )
    for part in _parts(report, bar, every):
        if isinstance(part, str):
            told.print(part, soft_wrap=True)
        else:
            told.print(Padding(_laid_out(part, told.width), (0, 0, 0, _INDENT)), width=max(told.width, part.least_width))
    return wrapped_text([line.rstrip() for line in out.getvalue().splitlines()])


def _parts(report: StatsReport, bar: str, every: bool) -> Iterator[str | _Rows]:
    """Yield lines, and tables that are indented; a title stands before each."""
    nodes, edges = sum(report.num_nodes.values()), sum(report.num_edges.values())
    counts = (count(nodes, "node"), count(edges, "edge"), count(report.num_parts, "partition"))
    yield f"{display_url(report.path)}: {', '.join(counts)}"
    shown = largest_types(report.num_nodes) + largest_types(report.num_edges)
    names = [*report.num_nodes, *report.num_edges] if every else shown
    yield from _type_parts(report, names, bar)
    yield from _component_parts(report)
    if report.triangles is not None:
        yield from ("", *_triangle_lines(report.triangles))
    if report.parts is not None:
        yield from _partition_parts(report.parts, report.num_parts, every)
    yield from _column_parts([(one.name, one.columns) for one in report.nodes if one.name in names])
    yield from _column_parts([(one.name, one.columns) for one in report.edges if one.name in names])
    yield ""
    spilled = f", spilled {size(report.spilled_bytes)}" if report.spilled_bytes else ""
    if report.plot is not None:
        yield f"  pictures in {display_url(report.plot)}"
    yield f"  looked at in {duration(report.elapsed_s)}, {peak_memory(report.peak_memory_bytes)}{spilled}"


def _type_parts(report: StatsReport, names: Collection[str], bar: str) -> Iterator[str | _Rows]:
    """Yield tables of the types of these names, and a histogram of each node type's degrees."""
    nodes = [one for one in report.nodes if one.name in names]
    edges = [one for one in report.edges if one.name in names]
    yield _table(("nodes", "", "isolated"), [(one.name, f"{one.num_nodes:,}", f"{one.num_isolated:,}") for one in nodes])
    yield from _more("node types", len(report.nodes) - len(nodes))
    if not edges:
        return
    yield ""
    yield _table(("edges", "", "self-loops", "repeated", "returned", "log2 gap"), list(map(_edge_cells, edges)))
    yield from _more("edge types", len(report.edges) - len(edges))
    yield ""
    degrees = [(name, found) for name, found in report.all_degrees() if name in names or name.rpartition(" ")[0] in names]
    yield _table(
        ("degrees", "min", "mean", *(f"{one}%" for one in _SHOWN), "max", "alpha", "from", "KS"),
        [(name, *_degree_cells(found)) for name, found in degrees],
    )
    for one in nodes:
        yield from _node_parts(one, bar)


def _edge_cells(one: EdgeTypeStats) -> tuple[str, ...]:
    counts = (one.num_edges, one.num_self_loops, one.num_repeated)
    returned = "-" if one.reciprocity is None else f"{one.reciprocity:.1%}"
    return (one.name, *(f"{number:,}" for number in counts), returned, f"{one.locality.mean_log2:.2f}")


class _Rows(NamedTuple):
    """A table of printable cells: all but the columns ``left`` are flush right, and names, the first, may be cut."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int]

    @property
    def numbers_width(self) -> int:
        """Return what the columns behind the first take: they are never cut."""
        return sum(max(map(len, cells)) + _GAP for cells in zip(self.head, *self.rows, strict=True)) - self.names_width

    @property
    def names_width(self) -> int:
        """Return what the first column takes at most."""
        return max(len(row[0]) for row in (self.head, *self.rows)) + _GAP

    @property
    def least_width(self) -> int:
        """Return what it takes with names as short as can be."""
        return _INDENT + self.numbers_width + min(self.names_width, _LEAST_NAME + _GAP)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> _Rows:
    return _Rows(list(map(printable, head)), [list(map(printable, row)) for row in rows], left)


def _laid_out(some: _Rows, width: int) -> Table:
    """Lay out rows; names keep their ends, which say in or out."""
    from rich.table import Table

    table = Table(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_edge=False)
    for at, name in enumerate(some.head):
        side: Literal["left", "right"] = "left" if at in some.left else "right"
        least = max(len(row[at]) for row in (some.head, *some.rows)) if at else None
        table.add_column(name, justify=side, no_wrap=True, overflow="ellipsis", min_width=least)
    most = max(_LEAST_NAME, width - _INDENT - some.numbers_width)
    for name, *numbers in some.rows:
        table.add_row(name if len(name) <= most else f"{name[: most - _NAME_END - 1]}…{name[-_NAME_END:]}", *numbers)
    return table


def _more(what: str, number: int) -> Iterator[str]:
    if number:
        yield f"  ... and {number:,} more {what}; -v shows all"


def _degree_cells(found: Distribution) -> tuple[str, ...]:
    law = found.power_law
    fitted = ("-", "-", "-") if law is None else (f"{law.alpha:.2f}", f"{law.xmin:,}", f"{law.ks:.3f}")
    return (
        f"{found.min:,}",
        f"{found.mean:.2f}",
        *(f"{found.percentiles[one]:,}" for one in _SHOWN),
        f"{found.max:,}",
        *fitted,
    )


def _node_parts(one: NodeTypeStats, bar: str) -> Iterator[str | _Rows]:
    """Yield the histogram of a type's degrees, and its hubs."""
    yield ""
    name = one.name if len(one.name) <= _MOST_NAME else one.name[: _MOST_NAME - 1] + "…"
    yield _histogram(("degree", f"nodes of {name}"), one.degrees, bar)
    if one.hubs:
        yield from _listed("hubs", [(hub.raw_id, hub.degree) for hub in one.hubs])


def _histogram(head: tuple[str, str], found: Distribution, bar: str) -> _Rows:
    """Draw a bar for each bin, from the first that has something."""
    most, bins = max((one.count for one in found.histogram), default=0), list(found.histogram)
    while bins and not bins[0].count:
        del bins[0]
    rows = [
        (
            f"{one.low:,}" if one.low == one.high else f"{one.low:,}-{one.high:,}",
            f"{one.count:,}",
            bar * max(one.count > 0, round(_BAR * one.count / max(1, most))),
        )
        for one in bins
    ]
    return _table((*head, ""), rows, left=(0, 2))


def _component_parts(report: StatsReport) -> Iterator[str | _Rows]:
    found = report.components
    if not found.count:
        return
    yield ""
    largest = f"the largest of {count(found.largest, 'node')} ({found.largest_share:.1%})"
    yield f"  {count(found.count, 'weakly connected component')}, {largest}"
    if found.count > 1:
        sizes = (
            f"{one.low:,}{'' if one.low == one.high else f'-{one.high:,}'}: {one.count:,}"
            for one in found.sizes.histogram
            if one.count
        )
        yield f"  components by number of nodes: {'; '.join(sizes)}"


def _triangle_lines(found: TriangleStats) -> list[str]:
    if found.exact:
        return [
            f"  {count(found.num_triangles, 'triangle')} in {count(found.num_paths, 'path')} of two edges",
            f"  clustering {found.global_clustering:.4f}, average by node {found.average_clustering:.4f}",
        ]
    return [
        f"  about {count(found.num_triangles, 'triangle')} (standard error {found.num_triangles_error:,.0f}), "
        f"from {found.num_samples:,} of {count(found.num_paths, 'path')}",
        f"  clustering {found.global_clustering:.4f} ({found.global_clustering_error:.4f}), "
        f"average by node {found.average_clustering:.4f} ({found.average_clustering_error:.4f})",
    ]


def _partition_parts(parts: PartStats, num_parts: int, every: bool) -> Iterator[str | _Rows]:
    shown = num_parts if every else min(num_parts, MOST_TYPES)
    rows = [
        (str(part), *(f"{number:,}" for number in numbers))
        for part, numbers in zip(range(shown), zip(*parts.sums().values(), strict=True), strict=False)
    ]
    yield ""
    yield _table((f"partitions by {parts.partition_by}", "nodes", "edges", "halo"), rows)
    yield from _more("partitions", num_parts - shown)
    total = parts.total
    yield f"  {count(total.cut_edges, 'edge')} cut ({total.cut_share:.1%}), halos of {count(total.halo_nodes, 'node')}"
    yield f"  largest over mean: nodes {total.node_imbalance:.3f}, edges {total.edge_imbalance:.3f}"


def _column_parts(types: Sequence[tuple[str, Sequence[ColumnStats]]]) -> Iterator[str | _Rows]:
    for name, columns in types:
        if not columns:
            continue
        yield ""
        rows = [
            (
                one.name,
                f"{one.dtype}{list(one.item_shape) if one.item_shape else ''}" if one.kind == "dense" else one.kind,
                f"{one.num_missing:,}" + (f"+{one.num_nan:,} NaN" if one.num_nan else ""),
                *(_value(one, value) for value in (one.min, one.mean, one.max)),
                f"{'' if one.is_exact else '~'}{one.num_distinct:,}",
            )
            for one in columns
        ]
        yield f"  columns of {printable(name)}"
        yield _table(("", "", "missing", "min", "mean", "max", "distinct"), rows, left=(0, 1))
        for one in columns:
            if one.counts:
                few = sorted(one.counts.items(), key=lambda item: -item[1])[:_MOST_VALUES]
                more = f", and {len(one.counts) - len(few):,} more" if len(one.counts) > len(few) else ""
                yield from _listed(one.name, few, more)


def _listed(label: str, items: Iterable[tuple[object, int]], more: str = "") -> Iterator[str]:
    """Yield lines of names, each with a number from which no line break parts it."""
    from textwrap import wrap

    words = [f"{printable(str(name))}\xa0({number:,})" for name, number in items]
    text = f"  {printable(label)}: {', '.join(words)}{more}"
    for line in wrap(text, MOST_COLUMNS, subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False):
        yield line.replace("\xa0", " ")


def _value(column: ColumnStats, value: float | None) -> str:
    """Write a value: a time as a date, whose day is enough beside others."""
    if value is None or column.unit is None:
        return _number(value)
    return str(column.words(value)).partition(" ")[0]


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    text = f"{value:,}" if isinstance(value, int) else f"{value:.{_MOST_DIGITS}g}"
    return text if len(text) <= 2 * _MOST_DIGITS else f"{value:.{_MOST_DIGITS - 1}g}"
