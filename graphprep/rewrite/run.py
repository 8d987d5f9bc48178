"""What commands that read a store have in common: the run with its storage and memory, and where it may write."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from graphprep.context import Context
from graphprep.edges.moves import Workspace
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import UsageError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.protocols import Reporter
from graphprep.model.run_options import RunOptions
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.spill.runs import SpillPool
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FolderOutput
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.checked_ids import CheckingStore
from graphprep.store.write import provenance, read_lineage

_MOST_PIECE = 4 << 20  # stays in the cache from where it is made to where it is hashed and written


class StoreRun(Context):
    """A run from a store to ``out`` (None: it writes none), and what summaries say of it."""

    def __init__(self, store: str, out: str | None, options: RunOptions, reporter: Reporter | None) -> None:
        if not store:
            raise UsageError("the store has no name", fix="name the folder or URL of a store")
        super().__init__(options, reporter, (store,), out)
        self.store = store
        self.source: CheckingStore  # once it is open

    def follow(self, writer: StoreWriter | FolderOutput) -> None:
        """Report the bytes that a writer writes."""
        writer.on_write = lambda num_bytes: self.reporter.advance(num_bytes=num_bytes)

    def open_store(self) -> StoreReader:
        """Open the store."""
        self.source = CheckingStore(self.storage, self.store)
        return self.source

    def check_source(self) -> None:
        """Hold the arrays of the store, once they are read, against its manifests. Raises what ``check_files`` raises."""
        self.source.check_files(self.memory.threads)

    def room(self, metadata: GraphMetadata) -> Workspace:
        """Return what moving the rows of a store may take.

        Raises UsageError where the GPU that is asked for lacks the memory.
        """
        room = room_for(self, self.device.kernels(sum(metadata.num_edges_per_type), self.memory, self.ledger))
        return replace(room, advance=lambda num_edges: self.reporter.advance(records=num_edges))

    def provenance(self, inputs: Sequence[str], **more: Sequence[str]) -> dict[str, Any]:
        """Tell how the run made its store, and from which input its source comes.

        ``more`` are the ``operations`` of transform, or the types to which ``split`` gave a column.
        """
        lineage = read_lineage(self.storage, self.store)
        for name, values in more.items():
            lineage[name] = list(dict.fromkeys([*lineage.get(name, ()), *values]))
        return provenance(inputs, self.storage, self.elapsed_s, self.device.name, lineage)

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


def room_for(context: Context, kernels: Kernels) -> Workspace:
    """Share out the memory: a quarter each for runs, arrays by node, an array that is read as a whole, and pieces."""
    memory, tmp_dir = context.memory, context.tmp_dir
    share = memory.pool_bytes // 2
    return Workspace(
        piece_bytes=max(1 << 16, min(_MOST_PIECE, memory.bucket_bytes // 4)),
        held_bytes=share,
        mapped_bytes=memory.limit_bytes,
        threads=memory.threads,
        pool=context.stack.enter_context(SpillPool(share, tmp_dir)),
        scratch=context.stack.enter_context(Scratch(2 * memory.cap_bytes, tmp_dir)),
        kernels=kernels,
    )


def array_bytes(store: StoreReader, pattern: str = "") -> list[int]:
    """Return the sizes of a store's arrays in bytes, of those with such a path."""
    arrays = (entry for part in range(store.metadata.num_parts) for entry in store.manifest(part).arrays)
    return [entry.num_bytes for entry in arrays if re.match(pattern, entry.path)]
