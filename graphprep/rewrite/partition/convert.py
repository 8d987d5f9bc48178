"""``convert`` with a partitioner that looks at edges: a store first, in a private folder, then its partitions."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from graphprep.convert import pipeline
from graphprep.convert.hooks import Hooks
from graphprep.convert.resume import journal_folder, tell_where_kept
from graphprep.convert.units.folder import refuse_workers
from graphprep.model.metadata import PROVENANCE_NAME
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.options.partition import PartitionOptions, PartitionSummary
from graphprep.model.options.transform import TransformOptions, TransformSummary
from graphprep.model.protocols import QuietReporter, Reporter
from graphprep.rewrite.partition.command import partition
from graphprep.rewrite.partition.methods import load_pymetis
from graphprep.rewrite.transform.command import transform
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.places import folder_beside, refuse_overlap
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.room import Outcome, check_outcome

if TYPE_CHECKING:
    from graphprep.convert.memory.folder import InMemory


def convert_in_parts(
    inputs: Sequence[str],
    out: str,
    options: ConvertOptions,
    reporter: Reporter | None = None,
    in_memory: InMemory | None = None,
    *,
    hooks: Hooks = Hooks(),  # noqa: B008 - it cannot be changed
    operations: Sequence[str] = (),
) -> ConvertSummary:
    """Convert raw graph files with ``convert``, and partition what they are. Arguments and errors are those of that.

    ``operations`` are those of ``transform``, over the partitions. No workers may decode for ``out`` but those whose blocks
    ``hooks`` take over; what a run that was killed left there is replaced then, as with ``resume``.
    """
    of_workers = hooks.elsewhere is not None
    with contextlib.ExitStack() as stack:
        tmp_dir = options.run.tmp_dir or folder_beside(out)
        if options.partition_by == "metis":
            load_pymetis()
        storage = stack.enter_context(Storage(options.run.storage_options, tmp_dir))
        storage.load_drivers((out,))
        refuse_overlap(storage, [out], {"input": inputs}, options)
        if not of_workers:
            refuse_workers(storage, out)
        kept = journal_folder(out, tmp_dir)
        writer = stack.enter_context(StoreWriter(storage, out, options.overwrite, resumes=of_workers or options.resume))
        if options.resume:
            tell_where_kept(kept, writer, reporter or QuietReporter())
        folder = PrivateFolder(tmp_dir)
        stack.callback(folder.remove)
        store = storage.join(folder.make(), "store")
        whole = replace(options, partitions=1, partition_by="range")
        made = pipeline.convert(inputs, store, whole, reporter, in_memory, hooks._replace(journal=kept))
        origin = json.loads(storage.read_bytes(storage.join(store, PROVENANCE_NAME)))["inputs"]
        refuse_overlap(storage, [out], {"input": [one["url"] for one in origin]})
        num_nodes, num_edges = sum(made.num_nodes.values()), sum(made.num_edges.values())
        found = Outcome(out, num_nodes, num_edges, made.num_records, made.num_skipped, made.num_dropped_edges)
        check_outcome(found, options, writer.replaced)
        by = PartitionOptions(options.partition_by, options.partitions or 1, options.seed, run=options.run)
        if operations:
            parted = storage.join(folder.make(), "parted")
            made = _followed(made, partition(store, parted, by, reporter, origin))
            made = _followed(
                made, transform(parted, out, operations, TransformOptions(run=options.run), reporter, origin, writer)
            )
        else:
            made = _followed(made, partition(store, out, by, reporter, origin, writer))
        kept.finish()
        return made


def _followed(made: ConvertSummary, done: PartitionSummary | TransformSummary) -> ConvertSummary:
    """Return the summary of a conversion that went on."""
    return replace(
        made,
        out=done.out,
        num_nodes=done.num_nodes,
        num_edges=done.num_edges,
        num_parts=done.num_parts,
        output_bytes=done.output_bytes,
        elapsed_s=made.elapsed_s + done.elapsed_s,
        peak_memory_bytes=max(made.peak_memory_bytes, done.peak_memory_bytes),
        stage_s={**made.stage_s, **done.stage_s},
        spilled_bytes=made.spilled_bytes + done.spilled_bytes,
        notes=made.notes if isinstance(done, PartitionSummary) else (*made.notes, *done.notes),
    )
