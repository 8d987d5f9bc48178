"""Compile many kernels in processes: a process compiles one at a time, for Numba holds a lock while it does."""

from __future__ import annotations

import queue
import subprocess
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable

from graphprep.kernels.compiler import levels
from graphprep.kernels.compiler.kept import Code, symbol_of
from graphprep.kernels.compiler.shipped import Signature
from graphprep.model.children import python_command, python_environment

Take = Callable[[Signature, Code | None], None]
THREADS = "graphprep-compile"  # what they are called
_WORKER = "graphprep.kernels.compiler.worker"


def compile_behind(signatures: Iterable[Signature], jobs: int, take: Take, level: str | None = None) -> list[threading.Thread]:
    """Compile kernels in ``jobs`` processes and return their threads; ``take`` gets each one's code from one of these.

    It gets None where there is no code to be had, whatever the reason. Code is made for processors of ``level``, or for this
    one. Kernels of one module go to one process, one after the other, since they share what they call; modules keep the order
    of the first of each.
    """
    groups: dict[str, list[Signature]] = defaultdict(list)
    for one in signatures:
        groups[one.module].append(one)
    pending: queue.SimpleQueue[list[Signature]] = queue.SimpleQueue()
    for group in groups.values():
        pending.put(group)
    arguments = (pending, take, level)
    threads = [
        threading.Thread(target=_compile, args=arguments, name=THREADS, daemon=True)
        for _ in range(max(1, min(jobs, len(groups))))
    ]
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
            code = None
            try:
                if worker is None or worker.poll() is not None:
                    worker = _start(level)
                code = _ask(worker, one, level)
            except Exception:  # no process can be started: somebody waits for an answer all the same
                worker = None
            take(one, code)
    if worker is not None:
        worker.communicate()


def _ask(worker: subprocess.Popen[bytes], signature: Signature, level: str | None) -> Code | None:
    """Return a kernel's code; None where it cannot be had, or is that of other sources, compilers or processors than these."""
    assert worker.stdin is not None
    assert worker.stdout is not None
    try:
        worker.stdin.write(f"{signature}\n".encode())
        worker.stdin.flush()
        symbol, results, size = worker.stdout.readline().decode().split()
        data = worker.stdout.read(int(size))
        if len(data) < int(size):
            raise EOFError
    except (OSError, ValueError, EOFError):  # it died: of memory, or by somebody's hand
        worker.kill()
        worker.wait()
        return None
    if not data or symbol != symbol_of(signature.load().py_func, signature.kinds, level):
        return None
    return Code(symbol, results.strip("-"), data)


def _start(level: str | None) -> subprocess.Popen[bytes]:
    environment = python_environment() | ({} if level is None else {levels.VARIABLE: level})
    command = python_command(_WORKER)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True)
