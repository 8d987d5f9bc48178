"""Which pictures a report gives: of degrees, partitions and columns, each drawn on axes of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from graphprep.model.options.stats import ColumnStats, Distribution, EdgeTypeStats, PartStats, PowerLaw, StatsReport, time_text
from graphprep.model.shown.texts import printable, quantity
from graphprep.stats.power_law import scaled_zeta

BLUE, ORANGE, GREEN, GREY = "#2b6cb0", "#dd6b20", "#2f855a", "#a0aec0"
_MOST_TYPES = 6  # edge types that are drawn
_MOST_COLUMNS = 24
_MOST_BARS = 20  # values of a label
_MOST_NAME = 28  # characters of a name
_FEW = 50  # times the least: an axis of so few powers of ten has numbers between them
LEAST_TAIL = 50  # nodes to which a power law is fitted, where it is shown
_DATES = 4  # on an axis of times
_MOST_NUMBERED = 16  # partitions whose numbers stand in the matrix


class Panel(NamedTuple):
    """A picture: ``draw`` fills axes."""

    title: str
    draw: Callable[[Any], None]


NOTHING = Panel("no edges and no columns", lambda axes: axes.set_axis_off())


class Section(NamedTuple):
    """Pictures that belong together; ``left_out`` says what is not drawn, if anything."""

    title: str
    panels: tuple[Panel, ...]
    left_out: str = ""


def sections(report: StatsReport) -> tuple[Section, ...]:
    """Return what there is to draw."""
    found = (_degrees(report), _partitions(report), _columns(report))
    return tuple(section for section in found if section.panels)


def short(name: str) -> str:
    """Return a name as pictures show it: cut where it is long, and no formula."""
    text = printable(name)
    text = text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 1] + "…"
    return text.replace("$", r"\$")


# ---- degrees


def _degrees(report: StatsReport) -> Section:
    drawn = sorted((one for one in report.edges if one.num_edges), key=lambda one: -one.num_edges)
    panels = []
    for one in drawn[:_MOST_TYPES]:
        panels.append(Panel(f"degrees of {short(one.name)}", partial(_draw_density, one)))
        panels.append(Panel(f"nodes of a degree or more: {short(one.name)}", partial(_draw_tail, one)))
    return Section("Degrees", tuple(panels), _more("edge types", len(drawn) - _MOST_TYPES))


def _more(what: str, number: int) -> str:
    return f"{number:,} more {what} are not drawn" if number > 0 else ""


def _sides(one: EdgeTypeStats) -> Iterator[tuple[str, str, str, Distribution]]:
    yield "in", BLUE, "o", one.in_degrees
    yield "out", ORANGE, "s", one.out_degrees


def law_of(found: Distribution) -> PowerLaw | None:
    """Return the power law of degrees, unless it is fitted to so few that it says nothing."""
    law = found.power_law
    return None if law is None or law.num_tail < LEAST_TAIL else law


def _draw_density(one: EdgeTypeStats, axes: Any) -> None:
    """Draw the share of nodes at each degree, the mean of those of a bin, and the law."""
    for name, color, marker, found in _sides(one):
        bins = [bin for bin in found.histogram if bin.low and bin.count]
        at = [(bin.low * bin.high) ** 0.5 for bin in bins]
        shares = [bin.count / (bin.high - bin.low + 1) / found.count for bin in bins]
        axes.plot(at, shares, marker, color=color, ms=5, mfc="white", label=name)
        law = law_of(found)
        if law is not None:
            share = law.num_tail / found.count / _zeta(law.alpha, law.xmin)
            ends = np.array([law.xmin, found.max], np.float64)
            label = rf"$\alpha$ = {law.alpha:.2f} from {law.xmin:,}"
            axes.plot(ends, share * (ends / law.xmin) ** -law.alpha, "-", color=color, lw=1, label=label)
    _log_log(axes, "degree: in-edges or out-edges of a node", "share of nodes of that degree")


def _draw_tail(one: EdgeTypeStats, axes: Any) -> None:
    """Draw the share of nodes of each degree and more."""
    for name, color, marker, found in _sides(one):
        counts = np.array([bin.count for bin in found.histogram], np.int64)
        behind = np.cumsum(counts[::-1])[::-1] / max(1, found.count)
        lows = np.array([bin.low for bin in found.histogram])
        kept = (lows > 0) & (behind > 0)
        axes.plot(lows[kept], behind[kept], f"{marker}-", color=color, ms=4, lw=1, mfc="white", label=name)
    _log_log(axes, "degree: in-edges or out-edges of a node", "share of nodes of it or more")


def _zeta(alpha: float, least: int) -> float:
    return float(scaled_zeta(np.array([alpha]), np.array([float(least)]))[0])


def _log_log(axes: Any, x: str, y: str) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, limits, words in ((axes.xaxis, axes.get_xlim(), _count_words), (axes.yaxis, axes.get_ylim(), _share_words)):
        few = limits[0] > 0 and limits[1] < _FEW * limits[0]
        axis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if few else (1,), numticks=7))
        axis.set_minor_locator(NullLocator())  # ten times as many texts, to be measured and left out
        axis.set_major_formatter(FuncFormatter(words))
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, fontsize=7)


def _count_words(value: float, _: object) -> str:
    """Write a number of a logarithmic axis: 100, 10k, 10M."""
    return quantity(value).replace(".0", "") if value >= 1 else f"{value:g}"


def _share_words(value: float, _: object) -> str:
    return f"{100 * value:g}%"


# ---- partitions


def _partitions(report: StatsReport) -> Section:
    if report.parts is None:
        return Section("Partitions", ())
    panels = [Panel("sizes of partitions", partial(_draw_sizes, report.parts))]
    if report.parts.cut_matrix:
        panels.append(Panel("edges from partition to partition", partial(_draw_matrix, report.parts)))
    return Section("Partitions", tuple(panels), "" if report.parts.cut_matrix else _more("partitions", report.num_parts))


def _draw_sizes(parts: PartStats, axes: Any) -> None:
    """Draw what partitions have of nodes, edges and halos, over the mean of each."""
    for at, (color, (name, counts)) in enumerate(zip((BLUE, ORANGE, GREY), parts.sums().items(), strict=True)):
        mean = sum(counts) / len(counts)
        if mean:
            places = np.arange(len(counts)) + (at - 1) * 0.27
            axes.bar(places, np.array(counts) / mean, 0.25, color=color, label=f"{name}, mean {mean:,.0f}")
    axes.axhline(1, color="black", lw=0.6)
    axes.set_xlabel("partition")
    axes.set_ylabel("times the mean")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.margins(y=0.3)
    axes.legend(frameon=False, fontsize=6.5, ncols=3, loc="upper center", handlelength=1, columnspacing=1)


def _draw_matrix(parts: PartStats, axes: Any) -> None:
    """Draw edges from rows to columns; colors go by logarithms."""
    matrix = np.array(parts.cut_matrix, np.float64)
    axes.imshow(np.log1p(matrix), cmap="Blues", vmin=0.9 * np.log1p(matrix.min()))
    axes.set_xlabel("to partition")
    axes.set_ylabel("from partition")
    axes.grid(visible=False)
    for side in (axes.xaxis, axes.yaxis):
        side.get_major_locator().set_params(integer=True)
    if len(matrix) <= _MOST_NUMBERED:
        low, high = np.log1p([matrix.min(), matrix.max()])
        size = max(3, 9 - len(matrix) // 2)
        for row, col in np.ndindex(*matrix.shape):
            color = "white" if np.log1p(matrix[row, col]) > (low + high) / 2 else "black"
            axes.text(col, row, f"{int(matrix[row, col]):,}", ha="center", va="center", fontsize=size, color=color)


# ---- columns


def _columns(report: StatsReport) -> Section:
    drawn = [(name, one) for name, one in report.all_columns() if one.counts or (one.histogram and one.is_amount)]
    panels = tuple(
        Panel(f"{short(column.name)} of {short(name)}", partial(_draw_column, column)) for name, column in drawn[:_MOST_COLUMNS]
    )
    return Section("Columns", panels, _more("columns", len(drawn) - _MOST_COLUMNS))


def _draw_column(column: ColumnStats, axes: Any) -> None:
    if column.counts:
        _draw_counts(column.counts.items(), axes)
        return
    bins = column.histogram
    axes.stairs([bin.count for bin in bins], [*(bin.low for bin in bins), bins[-1].high], fill=True, color=BLUE)
    axes.set_ylabel("values")
    axes.yaxis.get_major_locator().set_params(integer=True)
    axes.set_xlabel(f"length of {short(column.name)} in bytes" if column.kind == "binary" else short(column.name))
    if column.unit is not None:
        places = np.linspace(bins[0].low, bins[-1].high, _DATES)
        axes.set_xticks(places, [time_text(value, str(column.unit)).partition(" ")[0] for value in places.tolist()])
        axes.set_xlabel(f"{short(column.name)}, UTC")


def _draw_counts(counts: Any, axes: Any) -> None:
    """Draw a bar for each value, of many for the most frequent."""
    most: Sequence[tuple[str, int]] = sorted(counts, key=lambda item: -item[1])[:_MOST_BARS]
    kept = [item for item in counts if item in set(most)]
    axes.barh(range(len(kept)), [number for _, number in kept], color=GREEN)
    axes.set_yticks(range(len(kept)), [short(value) for value, _ in kept], fontsize=7)
    axes.invert_yaxis()
    axes.set_xlabel(f"rows, of the {len(kept)} most frequent of {len(counts):,} values" if len(counts) > len(kept) else "rows")
