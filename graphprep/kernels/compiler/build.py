"""Compile many kernels in processes: a process compiles one at a time, for Numba holds a lock while it does."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

from graphprep.kernels.compiler import levels
from graphprep.kernels.compiler.kept import Code
from graphprep.kernels.compiler.shipped import Signature

Take = Callable[[Signature, Code | None], None]
_WORKER = "graphprep.kernels.compiler.worker"
_SOURCES = str(Path(__file__).parents[3])


def compile_behind(signatures: Iterable[Signature], jobs: int, take: Take, level: str | None = None) -> list[threading.Thread]:
    """Compile kernels in ``jobs`` processes and return their threads; ``take`` gets each one's code from one of these.

    It gets None where there is no code to be had. Code is made for processors of ``level``, or for this one. Kernels of one
    module go to one process, one after the other, since they share what they call; modules keep the order of the first of each.
    """
    groups: dict[str, list[Signature]] = defaultdict(list)
    for one in signatures:
        groups[one.module].append(one)
    pending: queue.SimpleQueue[list[Signature]] = queue.SimpleQueue()
    for group in groups.values():
        pending.put(group)
    arguments = (pending, take, level)
    threads = [threading.Thread(target=_compile, args=arguments, daemon=True) for _ in range(min(jobs, len(groups)))]
    for thread in threads:
        thread.start()
    return threads


def _compile(pending: queue.SimpleQueue[list[Signature]], take: Take, level: str | None) -> None:
    worker = None
    while True:
        try:
            group = pending.get_nowait()
        except queue.Empty:
            break
        for one in group:
            if worker is None or worker.poll() is not None:
                worker = _start(level)
            take(one, _ask(worker, one))
    if worker is not None:
        worker.communicate()


def _ask(worker: subprocess.Popen[bytes], signature: Signature) -> Code | None:
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(f"{signature}\n".encode())
        worker.stdin.flush()
        symbol, results, size = worker.stdout.readline().decode().split()
        data = worker.stdout.read(int(size))
    except (OSError, ValueError):  # it died: of memory, or by somebody's hand
        worker.kill()
        worker.wait()
        return None
    return Code(symbol, results.strip("-"), data) if data else None


def _start(level: str | None) -> subprocess.Popen[bytes]:
    environment = dict(os.environ) | ({} if level is None else {levels.VARIABLE: level})
    environment["PYTHONPATH"] = os.pathsep.join([_SOURCES, *filter(None, [os.environ.get("PYTHONPATH")])])
    return subprocess.Popen(
        [sys.executable, "-m", _WORKER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    )
