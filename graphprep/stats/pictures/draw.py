"""Panels as images, by matplotlib: the same bytes for the same report and version."""

from __future__ import annotations

import contextlib
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from graphprep.model.errors import UsageError
from graphprep.stats.pictures.panels import Panel

_COLUMNS = 2
_WIDTH, _HEIGHT = 4.6, 3.2  # of a panel, in inches
_LEFT, _RIGHT, _ABOVE, _BELOW = 0.85, 0.15, 0.35, 0.5  # in inches, around the axes of a panel
_DPI = 130
_STYLE = {
    "font.family": "DejaVu Sans",  # comes with matplotlib
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e2e8f0",
    "grid.linewidth": 0.6,
}


def load_matplotlib() -> Any:
    """Import matplotlib. Raises UsageError where it is not installed."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it tells of fonts that it looks for
    try:
        import matplotlib as library
        from matplotlib import figure  # noqa: F401 - an attribute of the library from now on
    except ImportError as error:
        raise UsageError(f"--plot needs matplotlib: {error}", fix="pip install 'graphprep[plots]'") from None
    return library


def draw(panels: Sequence[Panel], kind: Literal["svg", "png"], *, name: str = "graphprep", texts: bool = False) -> bytes:
    """Draw panels in two columns. ``name`` makes the names inside an SVG its own; ``texts``: leave texts to who shows it."""
    library = load_matplotlib()
    more = {"svg.hashsalt": name, "svg.fonttype": "none" if texts else "path"}
    with library.rc_context({**_STYLE, **more}), _quiet():
        columns, rows = min(_COLUMNS, len(panels)), -(-len(panels) // _COLUMNS)
        width, height = _WIDTH * columns, _HEIGHT * rows
        figure = library.figure.Figure(figsize=(width, height), dpi=_DPI)
        # By hand: the layout that matplotlib finds takes half of the time, most of it for texts that are as wide as ever.
        figure.subplots_adjust(
            **{"left": _LEFT / width, "right": 1 - _RIGHT / width, "bottom": _BELOW / height, "top": 1 - _ABOVE / height},
            wspace=(_LEFT + _RIGHT) / (_WIDTH - _LEFT - _RIGHT),
            hspace=(_ABOVE + _BELOW) / (_HEIGHT - _ABOVE - _BELOW),
        )
        for number, panel in enumerate(panels, 1):
            axes = figure.add_subplot(rows, columns, number)
            axes.set_title(panel.title)
            panel.draw(axes)
        out = io.BytesIO()
        nothing = {"Date": None, "Creator": None} if kind == "svg" else {"Software": None}
        figure.savefig(out, format=kind, metadata=nothing)
    return out.getvalue()


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Say nothing of letters that the font lacks."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
