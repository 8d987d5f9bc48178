"""Progress in a notebook: a bar below the cell while a function works, and what it has to say.

The bar is HTML that the notebook's own IPython shows and replaces: it needs no widgets, which a notebook may lack.
"""

from __future__ import annotations

import sys
import threading
from importlib import import_module
from types import TracebackType
from typing import Any

from graphprep.model.options.words import in_words
from graphprep.model.shown import compilation
from graphprep.model.shown.stage_progress import StageProgress
from graphprep.model.shown.texts import count, duration, shown

_INTERVAL_S = 0.3  # between drawings
_MOST_MESSAGES = 20


def notebook_reporter() -> NotebookReporter | None:
    """Return a reporter for the notebook whose kernel this process is; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if getattr(shell, "kernel", None) is None else NotebookReporter()


class NotebookReporter:
    """Shows the stage at work, and kernels that are compiled meanwhile; when it ends, messages stay. See ``Reporter``.

    A thread of its own draws, so that a bar moves while kernels compile and whoever works only counts.
    """

    def __init__(self, interval_s: float = _INTERVAL_S) -> None:
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._now: StageProgress | None = None
        self._messages: list[str] = []
        self._before = compilation.done.num_kernels, compilation.done.elapsed_s
        self._handle: Any = None
        self._thread = threading.Thread(target=self._draw_on, name="graphprep-progress", daemon=True)

    def __enter__(self) -> NotebookReporter:
        display: Any = import_module("IPython.display").display
        self._handle = display(_Shown(""), display_id=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        num = compilation.done.num_kernels - self._before[0]
        if num:
            seconds = compilation.done.elapsed_s - self._before[1]
            self.message(f"compiled {count(num, 'kernel')} in {duration(seconds)}: that is done once")
        with self._lock:
            self._now = None
            self._handle.update(_Shown(self._html()))

    def stage(self, name: str, *, total_bytes: int | None = None, total_records: int | None = None) -> None:
        """Begin a stage."""
        with self._lock:
            self._now = StageProgress(name, total_bytes, total_records)

    def advance(self, *, records: int = 0, num_bytes: int = 0) -> None:
        """Count."""
        with self._lock:
            if self._now is not None:
                self._now.records += records
                self._now.num_bytes += num_bytes

    def message(self, text: str) -> None:
        """Show a line above the bar."""
        with self._lock:
            self._messages += map(shown, in_words((text,), decoder=True))

    def _draw_on(self) -> None:
        while not self._ended.wait(self._interval_s):
            with self._lock:
                self._handle.update(_Shown(self._html()))

    def _html(self) -> str:
        """Write messages and the bar."""
        from html import escape

        said = self._messages[-_MOST_MESSAGES:]
        more = len(self._messages) - len(said)
        lines = [f"… {count(more, 'line')} before"] * bool(more) + said
        pieces = [f"<div>{escape(line)}</div>" for line in lines]
        if self._now is not None:
            size = f' value="{self._now.share:.3f}"' if self._now.share else ""
            bar = f"<progress{size}></progress>"
            pieces.append(f"<div>{bar} {escape(self._now.describe(done=False))}{self._compiling()}</div>")
        return "".join(pieces)

    def _compiling(self) -> str:
        """Say that kernels are compiled right now."""
        said = compilation.done.describe()
        return f"; {said}, once" if said else ""


class _Shown:
    """HTML, and nothing in place of it where only text can be shown."""

    def __init__(self, html: str) -> None:
        self._html = html

    def __repr__(self) -> str:
        return ""

    def _repr_html_(self) -> str:
        return self._html
