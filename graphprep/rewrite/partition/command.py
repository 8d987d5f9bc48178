"""``partition``: a store in another partitioning, or the files that say which, and how good it is. The stages in order."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from graphprep.edges.moves import Workspace
from graphprep.model.metadata import METADATA_NAME, GraphMetadata
from graphprep.model.options.partition import PartitionOptions, PartitionReport, PartitionSummary
from graphprep.model.protocols import Reporter
from graphprep.model.schema import path_name
from graphprep.rewrite.move_parts import PartFiles
from graphprep.rewrite.partition.assign import assign_nodes
from graphprep.rewrite.partition.assignment import META_NAME, Assignment, ask_function, write_assignment
from graphprep.rewrite.partition.methods import GraphMethod, find_method
from graphprep.rewrite.partition.mover import Repartitioned, StorePartitioner
from graphprep.rewrite.partition.quality import make_report, measure
from graphprep.rewrite.run import StoreRun, array_bytes
from graphprep.rewrite.stored_edges import derive_needs
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.storage.write.outputs import FolderOutput, check_output
from graphprep.storage.write.places import refuse_overlap
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.assign import PartitionFunction, check_partition_method
from graphprep.store.items import check_arrays
from graphprep.store.room import DiskNeed, compare_disk, num_part_files, refuse_parts
from graphprep.store.write import finish_store


def partition(
    store: str,
    out: str,
    options: PartitionOptions,
    reporter: Reporter | None = None,
    origin: Sequence[Any] | None = None,
    writer: StoreWriter | None = None,
) -> PartitionSummary:
    """Write the store at ``store`` again to ``out``, its nodes in other partitions, or only which partition each node is in.

    Every file of the store but provenance.json has the bytes that ``convert`` would have written with these partitions. Raises
    the GraphprepErrors that the command line maps to its exit codes; then nothing is left at ``out``. ``origin`` is what
    provenance.json is to say of the inputs, where these are not the store; ``writer`` is what writes to ``out`` where that is
    claimed already.
    """
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(store, out, options.run, reporter))
        refuse_overlap(run.storage, [out], {"store": [store]}, options)
        check_partition_method(options.by, run.storage, "--by")
        source = run.open_store()
        sizes = array_bytes(source)
        target: StoreWriter | FolderOutput
        if options.assignment_only:
            owned = partial(_own_files, run.storage, out, source.metadata)
            replaces = check_output(run.storage, out, options.overwrite, owned, "partition --assignment-only")
            target = FolderOutput(run.storage, out, replaces=replaces, last=META_NAME, takes_over=options.overwrite)
        else:
            compare_disk(out, run.tmp_dir, DiskNeed(0, sum(sizes)), run.reporter)
            target = writer or StoreWriter(run.storage, out, options.overwrite)
        if writer is None:
            stack.enter_context(target)
        run.follow(target)
        step = _Partitioning(run, source, run.room(source.metadata), origin)
        method = find_method(source.metadata, run.storage, options)
        place = display_url(options.by) if options.partitions is None and method.method == "file" else ""
        refuse_parts(method.num_parts, place, num_part_files(source.metadata), run.memory.working_bytes, out, run.tmp_dir)
        assignment = step.assign(method)
        report = step.report(assignment, options.halo_hops)
        made = source.metadata
        if isinstance(target, StoreWriter):
            made = step.write_store(assignment, target)
        else:
            step.write_assignment(assignment, target)
        return PartitionSummary(
            **run.told(source, made, target.num_bytes, step.room),
            by=assignment.method,
            num_parts=assignment.num_parts,
            report=report,
            notes=tuple(_notes(source.metadata, made)),
        )


def _own_files(storage: Storage, out: str, metadata: GraphMetadata) -> set[str] | None:
    """Return the files of an assignment of this graph at ``out``, None where there is none."""
    has_own = storage.exists(storage.join(out, META_NAME))
    return {META_NAME, *(f"{path_name(name)}.txt" for name in metadata.node_types)} if has_own else None


@dataclass(frozen=True)
class _Partitioning:
    """The stages of a run."""

    run: StoreRun
    source: StoreReader
    room: Workspace
    origin: Sequence[Any] | None

    def assign(self, method: PartitionFunction | GraphMethod) -> Assignment:
        """Find the partition of every node."""
        passes = method.passes if isinstance(method, GraphMethod) else 1
        self._begin("assign", total_records=passes * sum(self.source.metadata.num_nodes_per_type))
        for part in range(self.source.metadata.num_parts):
            check_arrays(self.source, part)
        return assign_nodes(self.source, method, self.room, self.run.reporter)

    def report(self, assignment: Assignment, halo_hops: int) -> PartitionReport:
        """Measure the partitioning, and that of hash."""
        passes = halo_hops * -(-assignment.num_parts // 64) * (1 if assignment.method == "hash" else 2)
        self._begin("report", total_records=passes * sum(self.source.metadata.num_edges_per_type))
        quality = of_hash = measure(self.source, assignment, halo_hops, self.room)
        if assignment.method != "hash":
            with self.room.scratch.inner() as scratch:
                room = replace(self.room, scratch=scratch)
                by_hash = ask_function(self.source, PartitionFunction("hash", assignment.num_parts), room)
                of_hash = measure(self.source, by_hash, halo_hops, room)
        return make_report(self.source, quality, of_hash, halo_hops)

    def write_store(self, assignment: Assignment, writer: StoreWriter) -> GraphMetadata:
        """Write all arrays, and publish the store."""
        metadata = self.source.metadata
        files, edges = PartFiles(writer, assignment.num_parts), range(len(metadata.edge_types))
        mover = StorePartitioner(self.source, files, assignment, metadata.layouts, edges, self.room, self.run.reporter)
        self._begin("nodes", "nodes")
        mover.write_nodes()
        self._begin("edges", "edges")
        made = mover.write_edges()
        self._copy_cut(made, files)
        self._begin("publish")
        if self.origin is None:  # else it was just written
            self.run.check_source()
        return finish_store(writer, files.entries, made.metadata, lambda: self._provenance(assignment))

    def _provenance(self, assignment: Assignment) -> dict[str, Any]:
        urls = [self.run.storage.join(self.run.store, METADATA_NAME)] if self.origin is None else []
        told = self.run.provenance(urls)
        told |= {"partitioner": dict(assignment.versions)} if assignment.versions else {}
        return told if self.origin is None else {**told, "inputs": self.origin}

    def _copy_cut(self, made: Repartitioned, files: PartFiles) -> None:
        """Copy what stays in its order, cut to the partitions."""
        for (part, path), open_array in made.cut.items():
            array = open_array()
            rows = self.room.fit(array.entry.num_bytes // max(1, array.shape[0]))
            pieces = (array.read(start, start + rows) for start in range(0, array.shape[0], rows))
            files.write(part, path, array.entry.dtype, array.shape, pieces)

    def write_assignment(self, assignment: Assignment, out: FolderOutput) -> None:
        """Write files of assignments, and show them."""
        self._begin("publish")
        write_assignment(self.source, assignment, out, self.room)
        out.publish()

    def _begin(self, stage: str, written: str = "", *, total_records: int | None = None) -> None:
        total_bytes = sum(array_bytes(self.source, written)) if written else None
        needs = tuple(derive_needs(self.room))
        self.run.ledger.begin(stage, needs, total_bytes=total_bytes, total_records=total_records)


def _notes(old: GraphMetadata, new: GraphMetadata) -> list[str]:
    """Say of which node types the order or the files changed beside the partitions."""
    notes = []
    for name, was, now in zip(old.node_types, old.node_schemas, new.node_schemas, strict=True):
        if was.node_order != now.node_order:
            notes.append(f"node type {name!r}: nodes are in the order of their raw IDs again, not by {was.node_order}")
        if was.raw_ids == "identity" != now.raw_ids:
            notes.append(f"node type {name!r}: raw IDs are stored now")
    return notes
