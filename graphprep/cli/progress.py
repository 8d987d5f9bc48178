"""Progress and messages on stderr: a bar on a terminal, plain lines elsewhere, JSON lines for machines, or nothing."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from graphprep.cli.printed.words import duration, iso_time, quantity, size
from graphprep.model import protocols
from graphprep.model.shown.stage_progress import StageProgress
from graphprep.model.shown.texts import json_text, shown, without_secrets

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from graphprep.cli.options import ReportFlags
    from graphprep.model.protocols import Reporter

_INTERVAL_S = 2.0  # between plain lines: enough to see that it lives, few enough for a log
_SHORT_S = 2.0  # a stage that took less is not worth a line


class QuietReporter(protocols.QuietReporter):
    """Says nothing. ``details``: they are welcome, too."""

    details = False

    def close(self) -> None:
        """End the last stage."""


def log_stamp() -> str:
    """Return what a line of text begins with where it goes to a file or a pipe: the local time."""
    return time.strftime("%Y-%m-%d %H:%M:%S ")


class MessageReporter(QuietReporter):
    """Passes messages on and shows no progress."""

    is_quiet = False

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def message(self, text: str) -> None:
        """See ``Reporter.message``."""
        self._write(shown(text))

    def _write(self, text: str) -> None:
        self._write_line(text if self._stream.isatty() else f"{log_stamp()}{text}")

    def _write_line(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads: no reason to stop
            self._stream.write(text + "\n")
            self._stream.flush()


class PlainReporter(MessageReporter):
    """Writes a line when a stage ends, and one every few seconds while it lasts. Threads may call it at once."""

    def __init__(
        self, stream: TextIO, *, verbose: bool = False, details: bool = False, interval_s: float = _INTERVAL_S
    ) -> None:
        super().__init__(stream)
        self.details = details
        self._verbose = verbose
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._now: StageProgress | None = None
        self._said_s = 0.0

    def stage(self, name: str, *, total_bytes: int | None = None) -> None:
        """End the stage before and begin this one."""
        with self._lock:
            self._end()
            self._now = StageProgress(name, total_bytes)
            self._said_s = self._now.started_s

    def advance(self, *, records: int = 0, num_bytes: int = 0) -> None:
        """Count, and write a line if the last one is some time ago."""
        with self._lock:
            if self._now is None:
                return
            self._now.records += records
            self._now.num_bytes += num_bytes
            if time.monotonic() - self._said_s >= self._interval_s:
                self._said_s = time.monotonic()
                self._say(self._now, done=False)

    def close(self) -> None:
        """End the last stage."""
        with self._lock:
            self._end()
            self._now = None

    def _end(self) -> None:
        if self._now is not None and (self._verbose or self._now.elapsed_s >= _SHORT_S):
            self._say(self._now, done=True)

    def _say(self, stage: StageProgress, *, done: bool) -> None:
        from graphprep.model.shown import compilation

        compiling = "" if done else compilation.done.describe()
        self._write("; ".join(filter(None, (stage.describe(done=done), compiling))))


class JsonReporter(PlainReporter):
    """Writes one JSON object a line: events ``stage``, ``progress`` and ``message``, with numbers in plain units."""

    def message(self, text: str) -> None:
        """See ``Reporter.message``."""
        self._write_json(event="message", text=without_secrets(text))

    def _say(self, stage: StageProgress, *, done: bool) -> None:
        self._write_json(
            event="stage" if done else "progress",
            stage=stage.name,
            records=stage.records,
            bytes=stage.num_bytes,
            total_bytes=stage.total_bytes,
            elapsed_s=round(stage.elapsed_s, 3),
        )

    def _write_json(self, **values: Any) -> None:
        self._write_line(json_text({"time": iso_time(), **values}, indent=None))


class BarReporter:
    """Shows a bar for the stage at work on a terminal; finished stages leave no trace unless asked for."""

    def __init__(self, *, verbose: bool = False) -> None:
        self._progress: Progress = _make_progress()
        self.details = verbose
        self._verbose = verbose
        self._lock = threading.Lock()
        self._task: TaskID | None = None
        self._now: StageProgress | None = None
        self._progress.start()

    def stage(self, name: str, *, total_bytes: int | None = None) -> None:
        """End the stage before and begin this one."""
        with self._lock:
            self._end()
            self._now = StageProgress(name, total_bytes)
            self._task = self._progress.add_task(name, total=total_bytes, rate="")

    def advance(self, *, records: int = 0, num_bytes: int = 0) -> None:
        """Count; the bar is redrawn some times a second by a thread of its own."""
        with self._lock:
            if self._now is None or self._task is None:
                return
            self._now.records += records
            self._now.num_bytes += num_bytes
            seconds = max(self._now.elapsed_s, 1e-3)
            rates = [f"{quantity(self._now.records / seconds)} records/s"] if self._now.records else []
            rates += [f"{size(self._now.num_bytes / seconds)}/s"] if self._now.num_bytes else []
            rates += [f"{duration(left)} left"] if (left := self._now.remaining_s) is not None else []
            self._progress.update(self._task, advance=num_bytes, rate=", ".join(rates))

    def message(self, text: str) -> None:
        """Write above the bar."""
        self._progress.console.print(shown(text), markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        """Take the bar away."""
        with self._lock:
            self._end()
            self._now = None
        self._progress.stop()

    def _end(self) -> None:
        if self._now is None or self._task is None:
            return
        if self._verbose:
            self.message(self._now.describe(done=True))
        self._progress.remove_task(self._task)


def _make_progress() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskProgressColumn, TextColumn, TimeElapsedColumn
    from rich.text import Text

    from graphprep.model.shown import compilation

    class _Compiling(ProgressColumn):
        """That kernels are compiled right now, in place of the rates, which wait for them."""

        def render(self, task: Task) -> Text:
            return Text(compilation.done.describe() or task.fields["rate"])

    columns = (
        TextColumn("{task.description:<10}"),
        BarColumn(bar_width=24),
        TaskProgressColumn(),
        _Compiling(),
        TimeElapsedColumn(),
    )
    return Progress(*columns, console=Console(stderr=True), transient=True)


def make_reporter(flags: ReportFlags, stream: TextIO | None = None) -> Reporter:
    """Choose how to report: by the flags and by whether stderr is a terminal."""
    out = sys.stderr if stream is None else stream
    verbose = flags.verbose > 0
    if flags.quiet:
        return QuietReporter()
    if flags.log_format == "json":
        return JsonReporter(out, verbose=True, details=verbose)
    if flags.progress == "none":
        return MessageReporter(out)
    if flags.progress == "auto" and out.isatty():
        return BarReporter(verbose=verbose)
    return PlainReporter(out, verbose=verbose, details=verbose)


@contextlib.contextmanager
def reporting(flags: ReportFlags) -> Iterator[Reporter]:
    """Report while the block runs; the bar is gone when it ends, however it ends.

    Raises UsageError where the flags contradict each other.
    """
    from graphprep.model.errors import UsageError
    from graphprep.model.shown import compilation

    if flags.quiet and flags.verbose:
        raise UsageError("--quiet and --verbose contradict each other", fix="leave out one of them")
    reporter = make_reporter(flags)
    is_silent = flags.quiet or flags.progress == "none"
    try:
        with compilation.announcing(None if is_silent else reporter.message):
            yield reporter
    finally:
        close = getattr(reporter, "close", None)
        if close is not None:
            close()
