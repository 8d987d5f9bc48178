"""Commands that make a store of a store: their stages in order."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import get_args

from graphprep.engine.budget import PeakSampler
from graphprep.model.errors import UsageError
from graphprep.model.metadata import METADATA_NAME, GraphMetadata
from graphprep.model.options import ConvertOptions
from graphprep.model.protocols import Reporter
from graphprep.model.reorder import ReorderOptions, ReorderSummary
from graphprep.model.schema import NodeOrder, edge_type_text
from graphprep.pipeline import MemoryPlan, SilentReporter, StageClock, folder_beside, plan_memory, provenance
from graphprep.stages.disk_need import DiskNeed, compare_disk
from graphprep.stages.moves import Room
from graphprep.stages.reorder import StoreReorderer
from graphprep.stages.reorder_order import OrderRules
from graphprep.storage.arrays import StoreReader
from graphprep.storage.faults import display_url
from graphprep.storage.publish import StoreWriter
from graphprep.storage.runs import SpillPool
from graphprep.storage.scratch import Scratch
from graphprep.storage.urls import Storage, local_path

_MOST_PIECE = 4 << 20  # stays in the cache from where it is made to where it is hashed and written


def reorder(store: str, out: str, options: ReorderOptions | None = None, reporter: Reporter | None = None) -> ReorderSummary:
    """Write the store at ``store`` again to ``out``, the nodes of each partition and type in the order of their degrees.

    Raises the GraphprepErrors that the command line maps to its exit codes; then nothing is left at ``out``.
    """
    options = options or ReorderOptions()
    clock = StageClock(reporter or SilentReporter())
    begin = time.perf_counter()
    with contextlib.ExitStack() as stack:
        sampler = stack.enter_context(PeakSampler())
        tmp_dir = options.run.tmp_dir or folder_beside(out)
        storage = stack.enter_context(Storage(options.run.storage_options, tmp_dir))
        storage.load_drivers((store, out))
        refuse_same(store, out)
        memory = plan_memory(ConvertOptions(run=options.run))
        source = StoreReader(storage, store)
        rules = _order_rules(source.metadata, options)
        compare_disk(out, tmp_dir, _disk_need(source, memory), clock.reporter)
        writer = stack.enter_context(StoreWriter(storage, out, options.overwrite))
        room = room_for(memory, tmp_dir, stack)
        step = StoreReorderer(source, writer, rules, room, clock.reporter)
        clock.stage("order")
        step.order()
        clock.stage("nodes")
        step.write_nodes()
        clock.stage("edges")
        step.write_edges()
        clock.stage("publish")
        metadata_url = storage.join(store, METADATA_NAME)
        metadata = step.finish(lambda: provenance([metadata_url], storage, time.perf_counter() - begin))
        clock.finish()
        return ReorderSummary(
            out=out,
            by=options.by,
            num_nodes=dict(zip(metadata.node_types, metadata.num_nodes_per_type, strict=True)),
            num_edges=dict(zip(map(edge_type_text, metadata.edge_types), metadata.num_edges_per_type, strict=True)),
            num_parts=metadata.num_parts,
            input_bytes=sum(array_bytes(source)),
            output_bytes=writer.num_bytes,
            elapsed_s=time.perf_counter() - begin,
            peak_memory_bytes=sampler.stop(),
            stage_s=dict(clock.seconds),
            spilled_bytes=room.pool.spilled_bytes,
            notes=tuple(_notes(source.metadata)),
        )


def refuse_same(store: str, out: str) -> None:
    """Refuse to write over the store that is read until the end, or into its folder.

    Raises UsageError.
    """
    if lies_in(out, store):
        words = "the output is the store itself" if lies_in(store, out) else "the output lies in the store"
        raise UsageError(words, place=display_url(out), fix="choose another name")


def lies_in(url: str, folder: str) -> bool:
    """Return whether a path or URL is a folder, or lies in it."""
    paths = local_path(url), local_path(folder)
    if None in paths:
        return f"{url.rstrip('/')}/".startswith(f"{folder.rstrip('/')}/")
    inner, outer = (Path(str(path)).resolve() for path in paths)
    return inner.is_relative_to(outer)


def _order_rules(metadata: GraphMetadata, options: ReorderOptions) -> OrderRules:
    """Check the options against the store.

    Raises UsageError.
    """
    if options.by not in get_args(NodeOrder):
        orders = ", ".join(get_args(NodeOrder))
        raise UsageError(f"--by must be one of {orders}, found {options.by!r}", fix="name one of these orders")
    if not 0 <= options.shuffle_ratio <= 1:
        raise UsageError(
            f"--shuffle-ratio must lie between 0 and 1, found {options.shuffle_ratio:g}",
            fix="give the share of nodes to shuffle",
        )
    names = [edge_type_text(edge_type) for edge_type in metadata.edge_types]
    for name in options.edge_types:
        if name not in names:
            fix = f"use one of {', '.join(names) or '(there is none)'}"
            raise UsageError(f"unknown edge type {name!r}", place="--edge-type", fix=fix)
    counted = tuple(number for number, name in enumerate(names) if not options.edge_types or name in options.edge_types)
    return OrderRules(options.by, counted, options.shuffle_ratio, options.seed)


def room_for(memory: MemoryPlan, tmp_dir: str | None, stack: contextlib.ExitStack) -> Room:
    """Share out the memory: a quarter each for runs, arrays by node, an array that is read as a whole, and pieces."""
    share = memory.pool_bytes // 2
    return Room(
        piece_bytes=max(1 << 16, min(_MOST_PIECE, memory.bucket_bytes // 4)),
        held_bytes=share,
        mapped_bytes=memory.limit_bytes,
        threads=memory.threads,
        pool=stack.enter_context(SpillPool(share, tmp_dir)),
        scratch=stack.enter_context(Scratch(2 * memory.cap_bytes, tmp_dir)),
    )


def _disk_need(store: StoreReader, memory: MemoryPlan) -> DiskNeed:
    """Say what a run takes at least: the store and two numbers a node, and what is beyond the memory limit."""
    sizes = array_bytes(store)
    num_nodes = sum(store.metadata.num_nodes_per_type)
    beyond = [size for size in sizes if size > memory.limit_bytes]
    return DiskNeed(max(0, max(beyond, default=0) - memory.pool_bytes), sum(sizes) + 16 * num_nodes)


def array_bytes(store: StoreReader) -> list[int]:
    """Return the sizes of a store's arrays in bytes."""
    parts = range(store.metadata.num_parts)
    return [entry.num_bytes for part in parts for entry in store.manifest(part).arrays]


def _notes(metadata: GraphMetadata) -> list[str]:
    """Say which node types have a file of raw IDs now that they had none before."""
    named = zip(metadata.node_types, metadata.node_schemas, strict=True)
    return [f"node type {name!r}: raw IDs are stored now" for name, schema in named if schema.raw_ids == "identity"]
