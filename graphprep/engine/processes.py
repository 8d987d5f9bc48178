"""Tasks in worker processes of this machine: for work that holds the interpreter, such as decoders written in Python."""

from __future__ import annotations

import contextlib
import os
import queue
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar, cast

from graphprep.engine.worker import receive, send
from graphprep.model.children import python_command, python_environment
from graphprep.model.errors import MemoryLimitError, StorageError

T = TypeVar("T")
_ATTEMPTS = 4  # at a task, the first one included
_KILLED = -9  # the exit code of what SIGKILL ended: a system without memory, mostly
_LAST_S = 5.0  # that a worker gets to end


class Processes:
    """So many worker processes, started when they are first needed. Threads share it.

    A task is picklable, and gives the same whenever it is done: where a worker dies, another does its task anew.
    """

    is_apart = True

    def __init__(self, num_workers: int) -> None:
        self.num_workers = num_workers
        self._workers = [_Worker() for _ in range(num_workers)]
        self._free: queue.LifoQueue[_Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._free.put(worker)

    def run(self, task: Callable[[], T]) -> T:
        """Return what a task gives, and raise what it raises; waits for a worker.

        Raises MemoryLimitError where worker after worker is killed at it, StorageError where they end otherwise.
        """
        worker = self._free.get()
        try:
            for _ in range(_ATTEMPTS):
                try:
                    is_done, result = worker.do(task)
                except (EOFError, BrokenPipeError):
                    code = worker.stop()
                    continue
                if is_done:
                    return cast(T, result)
                raise cast(Exception, result)
        finally:
            self._free.put(worker)
        if code == _KILLED:
            raise MemoryLimitError(
                f"{_ATTEMPTS} worker processes were killed at one task",
                fix="lower --memory-limit or --threads: the system may have no memory left",
            )
        raise StorageError(
            f"{_ATTEMPTS} worker processes ended at one task, the last one with exit code {code}",
            fix="use --engine threads, or look for what ends the process in the decoder",
        )

    def close(self) -> None:
        """End the workers."""
        for worker in self._workers:
            worker.stop()


class _Worker:
    """One process, used by one thread at a time."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def do(self, task: Callable[[], object]) -> tuple[bool, object]:
        """Return True and what a task gives, or False and what it raised.

        Raises EOFError or BrokenPipeError where the process ends before.
        """
        if self._process is None:
            self._start()
        send(self._tasks, task)
        return cast("tuple[bool, object]", receive(self._results))

    def _start(self) -> None:
        (tasks, send_end), (receive_end, results) = os.pipe(), os.pipe()
        command = [*python_command("graphprep.engine.worker"), str(tasks), str(results)]
        try:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=2, pass_fds=(tasks, results), env=python_environment()
            )
        finally:
            os.close(tasks)
            os.close(results)
        self._tasks, self._results = os.fdopen(send_end, "wb"), os.fdopen(receive_end, "rb")
        send(self._tasks, sys.path)

    def stop(self) -> int:
        """End the process, and return its exit code; 0 where there is none."""
        process, self._process = self._process, None
        if process is None:
            return 0
        for pipe in (self._tasks, self._results):
            with contextlib.suppress(OSError):  # what was not sent yet cannot be
                pipe.close()
        try:
            return process.wait(_LAST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()
