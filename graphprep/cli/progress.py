"""Progress and messages on stderr: a bar on a terminal, plain lines elsewhere, JSON lines for machines, or nothing."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TextIO

from graphprep.cli.printed.words import duration, iso_time
from graphprep.model import protocols
from graphprep.model.shown.stage_progress import StageProgress
from graphprep.model.shown.texts import json_text, shown, without_secrets

if TYPE_CHECKING:
    from graphprep.cli.options import ReportFlags
    from graphprep.model.protocols import Reporter

_INTERVAL_S = 2.0  # between plain lines: enough to see that it lives, few enough for a log
_SHORT_S = 2.0  # a stage that took less is not worth a line
_REDRAW_S = 0.2
_CLEAR = "\r\x1b[K"  # to the first column, and the line empty
_BAR_COLUMNS, _LEAST_BAR = 24, 6
_USUAL_COLUMNS = 80


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
        self._write_raw(text + "\n")

    def _write_raw(self, text: str) -> None:
        with contextlib.suppress(OSError):  # nobody reads: no reason to stop
            self._stream.write(text)
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

    def stage(self, name: str, *, total_bytes: int | None = None, total_records: int | None = None) -> None:
        """End the stage before and begin this one."""
        with self._lock:
            self._end()
            self._now = StageProgress(name, total_bytes, total_records)
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
            total_records=stage.total_records,
            elapsed_s=round(stage.elapsed_s, 3),
        )

    def _write_json(self, **values: Any) -> None:
        self._write_line(json_text({"time": iso_time(), **values}, indent=None))


class BarReporter(MessageReporter):
    """Shows the stage at work in the last line of a terminal, redrawn by a thread; what is finished leaves no trace.

    ``details``: finished stages are told, too.
    """

    def __init__(self, stream: TextIO, *, verbose: bool = False, interval_s: float = _REDRAW_S) -> None:
        super().__init__(stream)
        self.details = verbose
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._now: StageProgress | None = None
        self._thread = threading.Thread(target=self._draw_on, name="graphprep-progress", daemon=True)
        self._thread.start()

    def stage(self, name: str, *, total_bytes: int | None = None, total_records: int | None = None) -> None:
        """End the stage before and begin this one."""
        with self._lock:
            self._end()
            self._now = StageProgress(name, total_bytes, total_records)

    def advance(self, *, records: int = 0, num_bytes: int = 0) -> None:
        """Count."""
        with self._lock:
            if self._now is not None:
                self._now.records += records
                self._now.num_bytes += num_bytes

    def message(self, text: str) -> None:
        """Write above the line."""
        with self._lock:
            self._write_line(f"{_CLEAR}{shown(text)}")

    def close(self) -> None:
        """Take the line away."""
        self._ended.set()
        self._thread.join()
        with self._lock:
            self._end()
            self._now = None
            self._write_raw(_CLEAR)

    def _end(self) -> None:
        if self._now is not None and self.details:
            self._write_line(f"{_CLEAR}{self._now.describe(done=True)}")

    def _draw_on(self) -> None:
        while not self._ended.wait(self._interval_s):
            with self._lock:
                if self._now is not None:
                    self._write_raw(_CLEAR + bar_line(self._now, _columns(self._stream) - 1, _marks(self._stream)))


def bar_line(stage: StageProgress, width: int, marks: str = "━─") -> str:
    """Return a line of at most ``width`` characters: how far a stage is, what of it fits, what matters most first."""
    from graphprep.model.shown import compilation

    share, left = stage.share, stage.remaining_s if stage.elapsed_s >= _REDRAW_S * 5 else None
    compiling = compilation.done.describe()
    told = [duration(stage.elapsed_s)] if share is None else [f"{min(99, int(100 * share)):3}%"]
    told += [compiling] if compiling else [f"{duration(left)} left"] if left is not None else []
    told += [] if compiling else reversed(stage.rates())  # bytes first: they grow steadily
    line = stage.name[:width]
    for one in told:
        line += f"  {one}" if len(line) + 2 + len(one) <= width else ""
    room = min(_BAR_COLUMNS, width - len(line) - 2)
    if share is None or room < _LEAST_BAR:
        return line
    bar = marks[0] * round(room * share)
    return f"{line}  {bar.ljust(room, marks[1])}"


def _columns(stream: TextIO) -> int:
    """Return how wide the terminal is now."""
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_COLUMNS
    except (OSError, ValueError):
        return _USUAL_COLUMNS


def _marks(stream: TextIO) -> str:
    """Return what the done and the open part of a bar are drawn with."""
    return "━─" if (stream.encoding or "").lower().replace("-", "").startswith("utf") else "#-"


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
    if flags.progress == "auto" and out.isatty() and os.environ.get("TERM") != "dumb":
        return BarReporter(out, verbose=verbose)
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
