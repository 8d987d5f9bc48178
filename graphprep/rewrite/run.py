"""What commands that read a store have in common: the run with its storage and memory, and where it may write."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphprep.edges.device.find import RunDevice
from graphprep.edges.moves import Workspace
from graphprep.engine.budget import PeakSampler, count_memory
from graphprep.engine.ledger import Ledger, MemoryPlan, plan_memory
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.protocols import QuietReporter, Reporter
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.runs import SpillPool
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FolderOutput
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.checked_ids import CheckingStore
from graphprep.store.room import folder_beside
from graphprep.store.write import provenance, read_lineage

_MOST_PIECE = 4 << 20  # stays in the cache from where it is made to where it is hashed and written


class StoreRun:
    """A run from a store to ``out`` (None: it writes none): what it works with, closed with ``stack``, and what it takes."""

    def __init__(
        self, store: str, out: str | None, options: RunOptions, reporter: Reporter | None, stack: contextlib.ExitStack
    ) -> None:
        self.reporter = reporter or QuietReporter()
        self.device = RunDevice(options, self.reporter)
        self.ledger: Ledger  # once the memory is shared out
        self.source: CheckingStore  # once it is open
        self._begin = time.perf_counter()
        self._options = options
        self._stack = stack
        stack.enter_context(count_memory())
        self._sampler = stack.enter_context(PeakSampler())
        if not store:
            raise UsageError("the store has no name", fix="name the folder or URL of a store")
        self.store, self.out = store, out or ""
        self.tmp_dir = options.tmp_dir or (None if out is None else folder_beside(out))
        self.storage = stack.enter_context(Storage(options.storage_options, self.tmp_dir))
        self.storage.load_drivers((store,) if out is None else (store, out))

    def plan_memory(self) -> MemoryPlan:
        """Share out the memory limit.

        Raises MemoryLimitError where it leaves nothing to work with.
        """
        memory = plan_memory(ConvertOptions(run=self._options))
        self._threads = memory.threads
        self.ledger = Ledger(memory.limit_bytes, memory.held_bytes, self.reporter, self._sampler)
        return memory

    def follow(self, writer: StoreWriter | FolderOutput) -> None:
        """Report the bytes that a writer writes."""
        writer.on_write = lambda num_bytes: self.reporter.advance(num_bytes=num_bytes)

    def open_store(self) -> StoreReader:
        """Open the store."""
        self.source = CheckingStore(self.storage, self.store)
        return self.source

    def check_source(self) -> None:
        """Hold the arrays of the store, once they are read, against its manifests. Raises what ``check_files`` raises."""
        self.source.check_files(self._threads)

    def room(self, memory: MemoryPlan, metadata: GraphMetadata) -> Workspace:
        """Return what moving the rows of a store may take.

        Raises UsageError where the GPU that is asked for lacks the memory.
        """
        kernels = self.device.kernels(sum(metadata.num_edges_per_type), memory, self.ledger)
        room = room_for(memory, self.tmp_dir, self._stack, kernels)
        return replace(room, advance=lambda num_edges: self.reporter.advance(records=num_edges))

    def provenance(self, inputs: Sequence[str], **more: Sequence[str]) -> dict[str, Any]:
        """Tell how the run made its store, and from which input its source comes.

        ``more`` are the ``operations`` of transform, or the types to which ``split`` gave a column.
        """
        lineage = read_lineage(self.storage, self.store)
        for name, values in more.items():
            lineage[name] = list(dict.fromkeys([*lineage.get(name, ()), *values]))
        return provenance(inputs, self.storage, self.elapsed_s, self.device.name, lineage)

    @property
    def elapsed_s(self) -> float:
        """Return the seconds since the run began."""
        return time.perf_counter() - self._begin

    def finish(self) -> int:
        """End the last stage; return the most memory that was in use, in bytes."""
        self.ledger.end()
        return self._sampler.stop()

    def told(self, source: StoreReader, made: GraphMetadata, output_bytes: int, room: Workspace) -> dict[str, Any]:
        """End the last stage; return what every summary has of a run that made something of ``source``."""
        return {
            "out": self.out,
            "num_nodes": made.num_nodes_by_type(),
            "num_edges": made.num_edges_by_type(),
            "input_bytes": sum(array_bytes(source)),
            "output_bytes": output_bytes,
            "peak_memory_bytes": self.finish(),
            "elapsed_s": self.elapsed_s,
            "stage_s": dict(self.ledger.seconds),
            "spilled_bytes": room.pool.spilled_bytes,
        }


def room_for(memory: MemoryPlan, tmp_dir: str | None, stack: contextlib.ExitStack, kernels: Kernels) -> Workspace:
    """Share out the memory: a quarter each for runs, arrays by node, an array that is read as a whole, and pieces."""
    share = memory.pool_bytes // 2
    return Workspace(
        piece_bytes=max(1 << 16, min(_MOST_PIECE, memory.bucket_bytes // 4)),
        held_bytes=share,
        mapped_bytes=memory.limit_bytes,
        threads=memory.threads,
        pool=stack.enter_context(SpillPool(share, tmp_dir)),
        scratch=stack.enter_context(Scratch(2 * memory.cap_bytes, tmp_dir)),
        kernels=kernels,
    )


def array_bytes(store: StoreReader, pattern: str = "") -> list[int]:
    """Return the sizes of a store's arrays in bytes, of those with such a path."""
    arrays = (entry for part in range(store.metadata.num_parts) for entry in store.manifest(part).arrays)
    return [entry.num_bytes for entry in arrays if re.match(pattern, entry.path)]
