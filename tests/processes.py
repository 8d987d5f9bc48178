"""What tests need of other processes and threads: an end to every wait, and nothing that outlives its test."""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any


def wait_for(condition: Callable[[], object], most_s: float = 60) -> None:
    """Look until ``condition()`` is true. Raises AssertionError where that takes longer than ``most_s`` seconds."""
    deadline = time.monotonic() + most_s
    while not condition():
        assert time.monotonic() < deadline, f"nothing happened for {most_s} s"
        time.sleep(0.005)


@contextlib.contextmanager
def started(command: list[str], **options: Any) -> Iterator[subprocess.Popen]:
    """Start a process, which is killed where the test ends before it does."""
    with subprocess.Popen(command, **options) as process:
        try:
            yield process
        finally:
            process.kill()


@contextlib.contextmanager
def watched(command: list[str], look: Callable[[int], None], **options: Any) -> Iterator[subprocess.Popen]:
    """Run a process to its end, and call ``look`` with its ID every few milliseconds."""
    with started(command, **options) as process:
        while process.poll() is None:
            look(process.pid)
            time.sleep(0.004)
        yield process
