"""What the stages of a run work with: the memory shared out, storage, and how decoding works under that."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

from graphprep.context import Context
from graphprep.convert.decoded.early_edges import EarlyRules
from graphprep.convert.read.apart import FoundBlock, Reading
from graphprep.convert.read.decode import DecodeSettings
from graphprep.convert.read.plan import Plan
from graphprep.edges.device.find import find_kernels
from graphprep.engine.budget import record_bytes
from graphprep.engine.ledger import MemoryPlan
from graphprep.engine.local import Engine, Threads
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import Reporter
from graphprep.storage.spill.journal import KeptFolder
from graphprep.storage.spill.runs import SpillPool

_MOST_GROUP = 16 << 20  # of text whose edges are scattered at once: some 2^20, a thousand for every bucket
_LEAST_EARLY = 1 << 15  # edges
_AHEAD_BLOCKS = 4  # of a remote table, as stored, fetched while it is read


class Elsewhere(NamedTuple):
    """An input that others decode: its plan as they have it, how they read, and what yields their blocks in input order.

    ``lineage`` is what provenance.json says of them.
    """

    known: Plan
    reading: Reading
    blocks: Callable[[], Iterator[FoundBlock]]
    lineage: Mapping[str, object] = MappingProxyType({})


class Run(Context):
    """The context of a conversion, with its ``inputs`` and ``options``; ``outs`` are what it writes.

    ``kept`` holds what its tasks make, where that is to outlive the run.
    """

    def __init__(
        self,
        inputs: Sequence[str],
        outs: tuple[str, ...],
        options: ConvertOptions,
        tmp_dir: str | None,
        reporter: Reporter | None,
        kept: KeptFolder | None = None,
    ) -> None:
        apart = options.engine == "processes"
        super().__init__(options.run, reporter, (*inputs, *outs), tmp_dir, block_bytes=options.block_bytes, apart=apart)
        self.inputs = inputs
        self.options = options
        self.kept = kept
        self.storage.ahead_bytes = _AHEAD_BLOCKS * self.memory.block_bytes
        self.storage.record_bytes = record_bytes(self.memory.limit_bytes)

    @cached_property
    def pool(self) -> SpillPool:
        """Return the pool of the runs of rows."""
        return self.stack.enter_context(SpillPool(self.memory.pool_bytes, self.tmp_dir if self.kept is None else self.kept))

    @cached_property
    def engine(self) -> Engine:
        """Return what decodes blocks: threads, or processes where that is asked for."""
        if self.options.engine != "processes":
            return Threads()
        from graphprep.engine.processes import Processes

        return self.stack.enter_context(contextlib.closing(Processes(self.memory.threads)))


def decode_settings(run: Run, known: Plan, reading: Reading | None = None) -> DecodeSettings:
    """Say how an input is decoded under the memory limit, and read as others did where ``reading`` says that."""
    options, memory, total_bytes = run.options, run.memory, known.input.total_bytes
    settings = DecodeSettings(
        block_bytes=memory.block_bytes,
        limit_bytes=max(memory.block_bytes, run.storage.record_bytes),
        max_rows=max(1 << 10, memory.block_bytes // 16),
        threads=memory.threads,
        skip=options.on_error == "skip",
        text_bytes=memory.cap_bytes,
        early=None if known.flags or known.schema is not None else _early_rules(options, memory, total_bytes),
        engine=run.engine,
    )
    return settings if reading is None else replace(settings, **reading._asdict())


def _early_rules(options: ConvertOptions, memory: MemoryPlan, total_bytes: int | None) -> EarlyRules | None:
    """Say how edges may be scattered as soon as they are decoded; None where that is of no use."""
    if options.layout == "both" or options.ids == "sparse" or options.partition_by != "range":
        return None
    if total_bytes is not None and total_bytes < _LEAST_EARLY:  # not even one group of edges
        return None
    group = max(memory.block_bytes, min(_MOST_GROUP, memory.cap_bytes // 3))
    side = 1 if options.layout == "csc" else 0
    return EarlyRules(find_kernels(), side, group, max(_LEAST_EARLY, group // 8), memory.cap_bytes // 2, total_bytes or 0)
