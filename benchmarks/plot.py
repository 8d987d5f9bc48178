"""Edges a second against size, as SVG: ``python benchmarks/plot.py [RESULTS] [SVG]``.

Takes the cases ``text-N`` of what run.py has written. Standard library only.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results" / "full.json"
PLOT = HERE.parent / "docs" / "images" / "speed.svg"

_WIDTH, _HEIGHT = 720, 400
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 150, 48, 52
_COLORS = ("#1f6feb", "#cf6a00", "#1a7f37", "#8250df", "#57606a")
_TEXT, _GRID = "#24292f", "#d0d7de"
_STYLE = "font-family: -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; font-size: 13px"


@dataclass(frozen=True)
class Line:
    """A side: its name, and (edges, million edges a second) by size."""

    name: str
    points: tuple[tuple[float, float], ...]


def main() -> None:
    """Draw what the command line names."""
    given = [Path(word) for word in sys.argv[1:]]
    draw_file(*given, *(RESULTS, PLOT)[len(given) :])


def draw_file(source: Path, target: Path) -> None:
    """Draw the results in a file into another one."""
    results = json.loads(source.read_text())
    lines = find_lines(results["cases"])
    if not lines:
        sys.exit(f"{source}: no cases text-N")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(draw(lines, f"{results['machine']['cores']} cores, {results['machine']['cpu']}"))


def find_lines(cases: list[dict]) -> list[Line]:
    """Gather the points of every side, in the order in which sides first come."""
    points: dict[str, list[tuple[float, float]]] = {}
    for case in cases:
        if case["name"].startswith("text-"):
            for name, side in case["sides"].items():
                points.setdefault(name, []).append((side["num_edges"], side["edges_per_s"] / 1e6))
    return [Line(name, tuple(sorted(found))) for name, found in points.items()]


def draw(lines: list[Line], machine: str) -> str:
    """Return the plot: edges on a logarithmic axis, edges a second on a linear one."""
    edges = [x for line in lines for x, _ in line.points]
    low, high = math.log2(min(edges)), math.log2(max(edges))
    top = nice_ceiling(max(y for line in lines for _, y in line.points))
    span = max(high - low, 1e-9)

    def place(x: float, y: float) -> tuple[float, float]:
        across = _LEFT + (math.log2(x) - low) / span * (_WIDTH - _LEFT - _RIGHT)
        return round(across, 1), round(_HEIGHT - _BOTTOM - y / top * (_HEIGHT - _TOP - _BOTTOM), 1)

    body = [
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" rx="6" fill="#ffffff"/>',
        _label(_LEFT, 22, "Text edge list to CSC store: million edges a second", weight="600"),
        _label(_LEFT, 38, f"whole process, {machine}", size=11),
        *_axes(sorted(set(edges)), top, place),
    ]
    ends = spread([place(*line.points[-1])[1] for line in lines], 17)
    for line, color, end in zip(lines, _COLORS, ends, strict=False):
        spots = [place(*point) for point in line.points]
        path = " ".join(f"{x},{y}" for x, y in spots)
        body.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2.5"/>')
        body += [f'<circle cx="{x}" cy="{y}" r="3.5" fill="{color}"/>' for x, y in spots]
        body.append(_label(_WIDTH - _RIGHT + 12, end + 4, line.name, color=color, weight="600"))
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" style="{_STYLE}">'
    title = "<title>Edges a second against the size of the input</title>"
    return "\n".join([head, title, *body, "</svg>"]) + "\n"


def _axes(edges: list[float], top: float, place) -> Iterator[str]:
    for step in range(6):
        value = top * step / 5
        _, y = place(edges[0], value)
        yield f'<line x1="{_LEFT}" y1="{y}" x2="{_WIDTH - _RIGHT}" y2="{y}" stroke="{_GRID}"/>'
        yield _label(_LEFT - 8, y + 4, f"{value:g}", anchor="end")
    for number in edges:
        x, y = place(number, 0)
        yield _label(x, y + 20, in_words(number), anchor="middle")
    yield _label((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 12, "edges (R-MAT, 16 a node)", anchor="middle")


def _label(
    x: float, y: float, text: str, *, anchor: str = "start", color: str = _TEXT, weight: str = "400", size: int = 13
) -> str:
    style = f'text-anchor="{anchor}" fill="{color}" font-weight="{weight}" font-size="{size}"'
    return f'<text x="{round(x, 1)}" y="{round(y, 1)}" {style}>{escape(text)}</text>'


def spread(heights: list[float], gap: float) -> list[float]:
    """Move labels apart that would stand on each other; their order stays."""
    order = sorted(range(len(heights)), key=lambda i: heights[i])
    found = list(heights)
    for before, after in itertools.pairwise(order):
        found[after] = max(found[after], found[before] + gap)
    return found


def nice_ceiling(value: float) -> float:
    """Return 1, 2, 2.5 or 5 times a power of ten, not below ``value``."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if step * power >= value)


def in_words(number: float) -> str:
    """Write a number of edges: ``1 M``."""
    return f"{number / 1e6:.0f} M" if number >= 1e6 else f"{number / 1e3:.0f} k"


if __name__ == "__main__":
    main()
