"""The context of a command: what all its stages work with, opened when it begins and closed when it ends."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from graphprep.edges.device.find import RunDevice
from graphprep.engine.budget import PeakSampler, count_memory
from graphprep.engine.ledger import Ledger, plan_memory
from graphprep.model.protocols import QuietReporter, Reporter
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.places import folder_beside


class Context:
    """Memory, storage, device, reporter and scratch space of a command, as a context manager.

    It reads ``urls`` and writes ``out`` (None: nothing); temporary files lie in ``tmp_dir`` (None: the system's place). What is
    entered into ``stack`` is closed with it. ``block_bytes`` and ``apart`` are those of ``plan_memory``.
    """

    def __init__(
        self,
        options: RunOptions,
        reporter: Reporter | None,
        urls: Sequence[str],
        out: str | None,
        *,
        block_bytes: int = 0,
        apart: bool = False,
    ) -> None:
        """Open the storage, and share out the memory limit.

        Raises MemoryLimitError where that leaves nothing to work with, UsageError for a device that is not there.
        """
        self._begin = time.perf_counter()
        self.reporter = reporter or QuietReporter()
        self.out = out
        self.tmp_dir = options.tmp_dir or (None if out is None else folder_beside(out))
        with contextlib.ExitStack() as stack:
            stack.enter_context(count_memory())
            self._sampler = stack.enter_context(PeakSampler())
            self.storage = stack.enter_context(Storage(options.storage_options, self.tmp_dir))
            self.storage.load_drivers(urls if out is None else (*urls, out))
            self.device = RunDevice(options, self.reporter)
            self.memory = plan_memory(options, block_bytes, apart=apart)
            self.ledger = Ledger(self.memory.limit_bytes, self.memory.held_bytes, self.reporter, self._sampler)
            self.stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.stack.__exit__(kind, error, trace)

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the command began."""
        return time.perf_counter() - self._begin

    def finish(self) -> int:
        """End the last stage; return the most memory that was in use, in bytes."""
        self.ledger.end()
        return self._sampler.stop()
