"""Commands that make a store of a store: their stages in order."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

from graphprep.edges.moves import Workspace
from graphprep.engine.ledger import MemoryPlan
from graphprep.model.errors import UsageError, one_of
from graphprep.model.metadata import METADATA_NAME, GraphMetadata
from graphprep.model.options.reorder import ReorderOptions, ReorderSummary, parse_order
from graphprep.model.protocols import Reporter
from graphprep.model.schema import edge_type_text
from graphprep.rewrite.keys import OrderRules
from graphprep.rewrite.node_files import open_node_files
from graphprep.rewrite.reorder import StoreReorderer
from graphprep.rewrite.run import StoreRun, array_bytes
from graphprep.rewrite.walks import WALKS
from graphprep.storage.read.arrays import ArrayReader, StoreReader
from graphprep.storage.write.places import refuse_overlap
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.room import DiskNeed, compare_disk


def reorder(store: str, out: str, options: ReorderOptions | None = None, reporter: Reporter | None = None) -> ReorderSummary:
    """Write the store at ``store`` again to ``out``, the nodes of each partition and type in another order.

    Raises the GraphprepErrors that the command line maps to its exit codes; then nothing is left at ``out``.
    """
    options = options or ReorderOptions()
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(store, out, options.run, reporter))
        refuse_overlap(run.storage, [out], {"store": [store]}, options)
        source = run.open_store()
        rules = _order_rules(source.metadata, options, run)
        compare_disk(out, run.tmp_dir, _disk_need(source, run.memory, rules), run.reporter)
        writer = stack.enter_context(StoreWriter(run.storage, out, options.overwrite))
        room = run.room(source.metadata)
        step = StoreReorderer(source, writer, rules, room, run.reporter)
        run.follow(writer)
        metadata = _reorder(step, run, room)
        gaps_before, gaps_after = step.gaps
        return ReorderSummary(
            **run.told(source, metadata, writer.num_bytes, room),
            by=options.by,
            num_parts=metadata.num_parts,
            num_hot={
                name: sum(schema.num_hot)
                for name, schema in zip(metadata.node_types, metadata.node_schemas, strict=True)
                if schema.num_hot is not None
            },
            gaps_before=gaps_before,
            gaps_after=gaps_after,
            notes=(*_file_notes(source.metadata, options.by), *_notes(source.metadata, metadata)),
        )


def _reorder(step: StoreReorderer, run: StoreRun, room: Workspace) -> GraphMetadata:
    """Run the stages."""
    needs = tuple(room.needs())
    run.ledger.begin("order", needs, total_records=sum(run.source.metadata.num_nodes_per_type))
    step.order()
    run.ledger.begin("gaps", needs)
    step.measure()
    run.ledger.begin("nodes", needs, total_bytes=sum(array_bytes(run.source, "nodes")))
    step.write_nodes()
    run.ledger.begin("edges", needs, total_bytes=sum(array_bytes(run.source, "edges")))
    step.write_edges()
    run.ledger.begin("publish", needs)
    run.check_source()
    metadata_url = run.storage.join(run.store, METADATA_NAME)
    return step.finish(lambda: run.provenance([metadata_url]))


def _order_rules(metadata: GraphMetadata, options: ReorderOptions, run: StoreRun) -> OrderRules:
    """Check the options against the store, and open their files.

    Raises UsageError, and what ``open_node_files`` raises.
    """
    by, file = parse_order(options.by)
    if by is None and all(schema.node_order is None for schema in metadata.node_schemas):
        raise UsageError(
            "--by previous: the nodes of the store were not reordered", fix="copy the store, or read one that reorder wrote"
        )
    for flag, value in (("--shuffle-ratio", options.shuffle_ratio), ("--id2index", options.id2index)):
        if by is None and value:
            raise UsageError(f"{flag} does nothing with --by previous", fix="leave it out")
    ratios = (("--shuffle-ratio", options.shuffle_ratio, "to shuffle"), ("--split-ratio", options.split_ratio, "that are hot"))
    for flag, ratio, what in ratios:
        if not 0 <= ratio <= 1:
            raise UsageError(f"{flag} must lie between 0 and 1, found {ratio:g}", fix=f"give the share of nodes {what}")
    if options.split_ratio and not options.id2index:
        raise UsageError("--split-ratio does nothing without --id2index", fix="give --id2index")
    names = [edge_type_text(edge_type) for edge_type in metadata.edge_types]
    for name in options.edge_types:
        if name not in names:
            fix = one_of(names, found=name)
            raise UsageError(f"unknown edge type {name!r}", place="--edge-type", fix=fix)
    counted = tuple(number for number, name in enumerate(names) if not options.edge_types or name in options.edge_types)
    files: Mapping[str, ArrayReader] = {}
    if file:
        kinds = "biuf" if by == "score" else "iu"
        files = open_node_files(run.storage, file, metadata.node_types, metadata.num_nodes_per_type, kinds)
    return OrderRules(
        by,
        counted,
        options.shuffle_ratio,
        options.seed,
        files,
        options.scope == "graph",
        options.split_ratio if options.id2index else None,
    )


def _disk_need(store: StoreReader, memory: MemoryPlan, rules: OrderRules) -> DiskNeed:
    """Say what a run takes at least: the store and two numbers a node, and what is beyond the memory limit.

    A walk has all edges once more, twice each.
    """
    sizes = array_bytes(store)
    num_nodes = sum(store.metadata.num_nodes_per_type)
    beyond = [size for size in sizes if size > memory.limit_bytes]
    beyond += [8 * sum(store.metadata.num_edges_per_type)] if rules.by in WALKS else []
    return DiskNeed(max(0, max(beyond, default=0) - memory.pool_bytes), sum(sizes) + 16 * num_nodes)


def _notes(old: GraphMetadata, new: GraphMetadata) -> list[str]:
    """Say which node types have a file of raw IDs now that they had none before."""
    named = zip(new.node_types, old.node_schemas, new.node_schemas, strict=True)
    return [
        f"node type {name!r}: raw IDs are stored now"
        for name, before, after in named
        if before.raw_ids == "identity" != after.raw_ids
    ]


def _file_notes(old: GraphMetadata, by: str) -> list[str]:
    """Say that a file's numbers are taken by typed ID, where these do not follow raw IDs: the file does not tell its order."""
    word, file = parse_order(by)
    orders = {one.node_order for one in old.node_schemas} - {None}
    if not file or not (orders or (old.num_parts > 1 and old.partition_by != "range")):
        return []
    how = f"reordered by {' and '.join(sorted(map(str, orders)))}" if orders else f"partitioned by {old.partition_by}"
    return [f"{word}:FILE is read by STORE's typed IDs, which were {how}: FILE must be of that order"]
