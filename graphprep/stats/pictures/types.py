"""A picture of a graph's types: a circle for each node type, an arrow for each pair that edge types lead between."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from graphprep.model.options.stats import EdgeTypeStats, NodeTypeStats, StatsReport
from graphprep.model.shown.texts import printable, quantity

_WIDTH, _HEIGHT = 900, 460
_RX, _RY = 300, 150  # of the ellipse on which circles lie
_SMALL, _LARGE = 20, 40  # radius of a circle
_MOST_TYPES = 16
_MOST_NAMED = 3  # edge types between two node types
_MOST_NAME = 22
_LINE = 13  # from a line of text to the next
_LOOP = 60  # how far an arrow from a type to itself goes out
Point = tuple[float, float]


def draw_types(report: StatsReport) -> tuple[str, str]:
    """Return an SVG, and what it leaves out, if anything."""
    largest = sorted(report.nodes, key=lambda one: -one.num_nodes)[:_MOST_TYPES]
    nodes = [one for one in report.nodes if one in largest]
    at = {one.name: point for one, point in zip(nodes, _places(len(nodes)), strict=True)}
    groups: dict[tuple[str, str], list[EdgeTypeStats]] = {}
    for one in report.edges:
        groups.setdefault(_ends(one), []).append(one)
    shown = {ends: types for ends, types in groups.items() if at.keys() >= set(ends)}
    most = max((one.num_nodes for one in nodes), default=0)
    sizes = {one.name: _radius(one.num_nodes, most) for one in nodes}
    arrows = [_arrow(at, sizes, ends, types) for ends, types in shown.items()]
    circles = [_circle(one, at[one.name], sizes[one.name]) for one in nodes]
    lines, labels = [line for line, _ in arrows], [label for _, label in arrows]
    more = len(report.nodes) - len(nodes)
    left_out = f"{more:,} smaller node types and their edges are not drawn" if more else ""
    body = "\n".join([*lines, *circles, *labels])
    top, height = (_HEIGHT / 4, _HEIGHT / 2 + _LOOP / 2) if len(nodes) == 1 else (0, _HEIGHT)
    return f'<svg viewBox="0 {top:.0f} {_WIDTH} {height:.0f}" role="img" aria-label="types">\n{_MARKER}{body}\n</svg>', left_out


_MARKER = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="11" '
    'markerHeight="11" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#718096"></path></marker></defs>\n'
)


def _ends(one: EdgeTypeStats) -> tuple[str, str]:
    src, _, rest = one.name.partition(":")
    return src, rest.rpartition(":")[2]


def _relation(one: EdgeTypeStats) -> str:
    return one.name.partition(":")[2].rpartition(":")[0]


def _places(count: int) -> list[Point]:
    """Return where circles lie: one in the middle, more on an ellipse, from the left on."""
    if count == 1:
        return [(_WIDTH / 2, _HEIGHT / 2 + _LOOP / 2)]
    turns = [math.pi + 2 * math.pi * at / count for at in range(count)]
    return [(_WIDTH / 2 + _RX * math.cos(turn), _HEIGHT / 2 + _RY * math.sin(turn)) for turn in turns]


def _radius(count: int, most: int) -> float:
    return _SMALL + (_LARGE - _SMALL) * math.log1p(count) / max(1.0, math.log1p(most))


def _circle(one: NodeTypeStats, at: Point, radius: float) -> str:
    x, y = at
    label = _texts((x, y + radius + _LINE), [_short(one.name)], weight="600")
    inside = _texts((x, y + 4), [quantity(one.num_nodes).replace(".0", "")])
    title = f"<title>{_text(one.name)}: {one.num_nodes:,} nodes</title>"
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" fill="#bee3f8" stroke="#2b6cb0">{title}</circle>{inside}{label}'


def _arrow(
    at: dict[str, Point], sizes: dict[str, float], ends: tuple[str, str], types: Sequence[EdgeTypeStats]
) -> tuple[str, str]:
    """Return a curve from circle to circle, and its label: the largest edge types with their numbers."""
    most = sorted(types, key=lambda one: -one.num_edges)
    said = [f"{_short(_relation(one))}: {one.num_edges:,}" for one in most[:_MOST_NAMED]]
    if rest := most[_MOST_NAMED:]:
        said.append(f"and {len(rest):,} more: {sum(one.num_edges for one in rest):,}")
    (x1, y1), (x2, y2) = at[ends[0]], at[ends[1]]
    if ends[0] == ends[1]:
        up, radius = y1 - sizes[ends[0]], sizes[ends[0]]
        path = f"M{x1 - radius / 2:.1f},{up + 4:.1f} C{x1 - 50:.1f},{up - _LOOP:.1f} {x1 + 50:.1f},{up - _LOOP:.1f} "
        path += f"{x1 + radius / 2:.1f},{up + 4:.1f}"
        middle = x1, up - 0.8 * _LOOP - _LINE * (len(said) - 1)
    else:
        length = math.hypot(x2 - x1, y2 - y1)
        across = (y1 - y2) / length, (x2 - x1) / length  # to one side, so that there and back are two curves
        bend = 0.16 * length
        cx, cy = (x1 + x2) / 2 + across[0] * bend, (y1 + y2) / 2 + across[1] * bend
        start, end = _toward((x1, y1), (cx, cy), sizes[ends[0]]), _toward((x2, y2), (cx, cy), sizes[ends[1]] + 2)
        path = f"M{start[0]:.1f},{start[1]:.1f} Q{cx:.1f},{cy:.1f} {end[0]:.1f},{end[1]:.1f}"
        middle = (x1 + x2 + 2 * cx) / 4, (y1 + y2 + 2 * cy) / 4 - _LINE * (len(said) - 1) / 2 + 4
    width = 1 + min(4.0, math.log10(1 + sum(one.num_edges for one in types)) / 2)
    line = f'<path d="{path}" fill="none" stroke="#718096" stroke-width="{width:.1f}" marker-end="url(#tip)"></path>'
    return line, _texts(middle, said)


def _toward(start: Point, end: Point, by: float) -> Point:
    length = math.hypot(end[0] - start[0], end[1] - start[1]) or 1.0
    return start[0] + by * (end[0] - start[0]) / length, start[1] + by * (end[1] - start[1]) / length


def _texts(at: Point, lines: Sequence[str], *, weight: str = "400") -> str:
    """Write lines in the middle over a point, with a white edge that parts them from what they stand on."""
    x, y = at
    return "".join(
        f'<text x="{x:.1f}" y="{y + number * _LINE:.1f}" text-anchor="middle" font-size="11" font-weight="{weight}" '
        f'paint-order="stroke" stroke="white" stroke-width="3">{_text(line)}</text>'
        for number, line in enumerate(lines)
    )


def _short(name: str) -> str:
    text = printable(name)
    return text if len(text) <= _MOST_NAME else text[: _MOST_NAME - 1] + "…"


def _text(text: str) -> str:
    return escape(printable(text))
