"""The context of a conversion: what its stages work with, beside what the stage before made."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from graphprep.context import Context
from graphprep.engine.budget import record_bytes
from graphprep.engine.local import Engine, Threads
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Reporter
from graphprep.storage.spill.runs import SpillPool
from graphprep.storage.write.places import resume_folder

if TYPE_CHECKING:
    from graphprep.convert.decoded.rejects import Rejects
    from graphprep.kernels.edges import Kernels
    from graphprep.storage.spill.journal import KeptFolder
    from graphprep.storage.write.publish import StoreWriter

_AHEAD_BLOCKS = 4  # of a remote table, as stored, fetched while it is read


class Run(Context):
    """The context of a conversion of ``inputs`` to a store at ``out`` (None: nothing is written).

    ``kept`` holds what its stages make, where that is to outlive the run; ``rejects`` takes the records that are skipped;
    ``writer`` writes the store. ``from_memory``: the inputs are names of what was in memory.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        options: ConvertOptions,
        reporter: Reporter | None = None,
        out: str | None = None,
        journal: KeptFolder | None = None,
    ) -> None:
        """Open it. With ``--resume`` what is kept lies in ``journal``, or else in a folder of its own."""
        apart = options.engine == "processes"
        super().__init__(options.run, reporter, inputs, out, block_bytes=options.block_bytes, apart=apart)
        self.inputs = inputs
        self.options = options
        self.from_memory = False
        self.kept: KeptFolder | None = None
        if options.resume and out is not None:
            from graphprep.storage.spill.journal import KeptFolder

            self.kept = journal or KeptFolder(str(resume_folder(out, self.tmp_dir)))
        self.rejects: Rejects | None = None
        self.writer: StoreWriter
        self.storage.ahead_bytes = _AHEAD_BLOCKS * self.memory.block_bytes
        self.storage.record_bytes = record_bytes(self.memory.limit_bytes)
        self.found_kernels: Kernels | None = None
        self.pool = self.stack.enter_context(SpillPool(self.memory.pool_bytes, self.kept or self.tmp_dir))

    @cached_property
    def engine(self) -> Engine:
        """Return what decodes blocks: threads, or processes where that is asked for."""
        if self.options.engine != "processes":
            return Threads()
        from graphprep.engine.processes import Processes

        return self.stack.enter_context(contextlib.closing(Processes(self.memory.threads)))

    def kernels(self, num_edges: int) -> Kernels:
        """Return the kernels for so many edges, as they were found when that was asked first.

        Raises UsageError where the GPU that is asked for lacks the memory.
        """
        if self.found_kernels is None:
            self.found_kernels = self.device.kernels(num_edges, self.memory, self.ledger)
        return self.found_kernels
