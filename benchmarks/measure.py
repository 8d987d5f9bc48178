"""Run one command in a fresh process and measure it: wall time, CPU time, peak memory of it and its children."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

_SAMPLE_S = 0.01
_STDERR_CHARS = 2000


@dataclass(frozen=True)
class Measured:
    """What one run took. ``cpu_s`` is user plus system time of the process and its awaited children.

    ``private_bytes`` is the highest sum of RssAnon and RssShmem over the process tree, sampled every 10 ms: what
    ``--memory-limit`` bounds. ``rss_bytes`` is the kernel's own high-water mark (ru_maxrss): it has mapped files in it too.
    """

    wall_s: float
    cpu_s: float
    private_bytes: int
    rss_bytes: int
    exit_code: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class Summary:
    """Medians over rounds, and the best and worst wall time; ``private_bytes`` and ``rss_bytes`` are the highest."""

    rounds: int
    wall_s: float
    wall_min_s: float
    wall_max_s: float
    cpu_s: float
    private_bytes: int
    rss_bytes: int

    def to_json(self) -> dict[str, float]:
        """Return the fields."""
        return asdict(self)


def summarize(runs: list[Measured]) -> Summary:
    """Summarize the runs of one side."""
    return Summary(
        rounds=len(runs),
        wall_s=round(statistics.median(run.wall_s for run in runs), 4),
        wall_min_s=round(min(run.wall_s for run in runs), 4),
        wall_max_s=round(max(run.wall_s for run in runs), 4),
        cpu_s=round(statistics.median(run.cpu_s for run in runs), 4),
        private_bytes=max(run.private_bytes for run in runs),
        rss_bytes=max(run.rss_bytes for run in runs),
    )


def measure(command: list[str], timeout_s: float = 3600.0) -> Measured:
    """Run a command to its end and measure it.

    The runner itself stays small and imports no array library: ru_maxrss of a child begins at its parent's size.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begin = time.perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, env=_environment())
        watch = _Watch(process.pid)
        killer = threading.Timer(timeout_s, process.kill)
        killer.start()
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        killer.cancel()
        watch.stop()
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return Measured(
        wall_s=wall_s,
        cpu_s=usage.ru_utime + usage.ru_stime,
        private_bytes=watch.peak_bytes,
        rss_bytes=usage.ru_maxrss * 1024,
        exit_code=process.returncode,
        stdout=texts[0],
        stderr=texts[1][-_STDERR_CHARS:],
    )


def _environment() -> dict[str, str]:
    """Return our environment, with byte code kept: compiling it anew at each start would be charged to every side."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class _Watch:
    """Samples the memory of a process and its descendants from a thread."""

    def __init__(self, root: int) -> None:
        self.peak_bytes = 0
        self._root = root
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End watching."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            self.peak_bytes = max(self.peak_bytes, sum(_private_bytes(number) for number in _tree(self._root)))
            if self._stopped.wait(_SAMPLE_S):
                return


def _tree(root: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [root]
    for number in found:
        try:
            for task in Path(f"/proc/{number}/task").iterdir():
                found += [int(word) for word in (task / "children").read_text().split()]
        except OSError:  # it ended meanwhile
            continue
    return found


def _private_bytes(number: int) -> int:
    try:
        lines = Path(f"/proc/{number}/status").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(("RssAnon:", "RssShmem:")))
