"""``export``: a store as the files of a trainer. What the store lacks for it is made on the way."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from graphprep.derived.derive import derived_store
from graphprep.derived.messages import UNTIMED
from graphprep.derived.need import has_split
from graphprep.exporters.exporter import Exporter
from graphprep.exporters.registry import make_exporter
from graphprep.exporters.view.exported_columns import ExportedColumns, choose_columns, without_columns
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.ids import TrainerIds
from graphprep.exporters.view.missing import tell_missing
from graphprep.exporters.view.missing_times import find_missing_times, leave_missing_times
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportOptions, ExportPlan, ExportSummary, MessageEdges, StoreNeed
from graphprep.model.metadata import EXPORT_FORMAT, RECORD_NAME, GraphMetadata, dump_json
from graphprep.model.protocols import Reporter
from graphprep.plan.exports import about_bytes
from graphprep.rewrite.run import StoreRun, array_bytes
from graphprep.rewrite.stored_edges import derive_needs
from graphprep.storage.faults import display_url
from graphprep.storage.private import remove_leftovers
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import STDIN, Storage
from graphprep.storage.write.outputs import FolderOutput
from graphprep.storage.write.owned import export_files, find_files, is_export, read_json, refuse_foreign
from graphprep.storage.write.places import lies_in, refuse_overlap
from graphprep.storage.write.publish import is_left_over
from graphprep.storage.write.twins import TwinFinder
from graphprep.store.assign import check_partition_method, method_name
from graphprep.store.columns.densify import find_dense_shapes
from graphprep.store.columns.times import check_rule
from graphprep.store.room import num_part_files, refuse_parts

_COUNT_KEYS = (
    "graph_name",
    "node_type",
    "num_nodes_per_type",
    "num_nodes_per_chunk",
    "edge_type",
    "num_edges_per_type",
    "num_edges_per_chunk",
    "num_parts",
    "partition_by",
)


def export(
    store: str, out: str, target: str, options: ExportOptions | None = None, reporter: Reporter | None = None
) -> ExportSummary:
    """Write the store at ``store`` to ``out`` as the files that ``target`` loads.

    Raises the GraphprepErrors that the command line maps to its exit codes; then nothing is left at ``out``.
    """
    options = options or ExportOptions()
    with contextlib.ExitStack() as stack:
        run = stack.enter_context(StoreRun(store, out, options.run, reporter))
        check_places(run.storage, store, out, options=options)
        exporter, replaces = check_target(run.storage, target, out, options)
        remove_leftovers(run.tmp_dir or tempfile.gettempdir())  # of a killed run, which this one might need no folder to find
        source = run.open_store()
        if options.partitions is not None:
            refuse_parts(
                options.partitions, "", num_part_files(source.metadata), run.memory.working_bytes, run.out, run.tmp_dir
            )
        kept, left_out = without_columns(source.metadata, options.drop_columns)
        shapes = find_dense_shapes(source, kept, options.densify)
        kept = shapes.apply(kept)
        plan = check_graph(kept, exporter, options)  # what is refused is refused before anything is made
        find_times = find_missing_times if plan.hands_times else leave_missing_times
        times = find_times(source, kept, options.missing_time)
        need = replace(_need(plan, options, message_edges(exporter, source.metadata, options)), timed_edges=times.dropped)
        folder = stack.enter_context(_folder(run, exporter, options, replaces))
        room = run.room(source.metadata)
        run.ledger.begin("prepare", derive_needs(room), total_bytes=sum(array_bytes(source)))
        ready = stack.enter_context(derived_store(source, need, run.storage, room, run.reporter, run.tmp_dir))
        kept, _ = without_columns(ready.metadata, options.drop_columns)
        columns = replace(exported_columns(shapes.apply(kept), exporter, plan, options), times=times.stand_ins)
        is_reordered = any(schema.node_order is not None for schema in ready.metadata.node_schemas)
        in_order = plan.in_order and is_reordered and options.ids == "auto"
        wanted = "typed" if exporter.node_ids == "own" or in_order else options.ids
        ids = TrainerIds(ready, wanted, room.scratch)
        run.ledger.begin("export", derive_needs(room), total_bytes=_about_bytes(target, source))
        run.follow(folder)
        graph = StoredGraph(ready, ids, columns, room, run.reporter)
        folder.twins = TwinFinder.of(source, run.storage) if options.link else None
        dropped = (*left_out, *(one.text for one in (*plan.left_out, *plan.unsupported)))
        made = replace(plan, need=need, notes=(*plan.notes, *shapes.notes, *times.notes))
        later = _write(graph, exporter, made, dropped, folder)
        # What a trainer's numbers depend on comes first: a terminal shows few notes.
        notes = [*tell_missing(graph, made), *_tell_held_out(graph, exporter, made), *_tell_negatives(graph, exporter)]
        folder.publish()
        return _summary(run, source, graph, exporter, made, folder, dropped, (*notes, *made.notes, *later))


def check_graph(metadata: GraphMetadata, exporter: Exporter, options: ExportOptions) -> ExportPlan:
    """Return the plan of an export. Raises UsageError for what the target refuses of such a graph: names, columns, options."""
    plan = exporter.plan(_repartitioned(metadata.without_negatives()[0], options))
    _check_partitioning(exporter, plan, options)
    message_edges(exporter, metadata, options)
    exported_columns(metadata, exporter, plan, options)
    return plan


def check_foreseen(metadata: GraphMetadata, exports: Mapping[str, ExportOptions]) -> dict[str, tuple[str, ...]]:
    """Return what each target would leave out of a store that is to be. Raises what ``check_graph`` raises."""
    left_out = {}
    for target, options in exports.items():
        plan = check_graph(metadata, make_exporter(target, options.target_options), options)
        left_out[target] = tuple(one.text for one in (*plan.left_out, *plan.unsupported))
    return left_out


def _about_bytes(target: str, source: StoreReader) -> int | None:
    """Return about how large the files of a target become; None where nobody knows."""
    nodes, edges = sum(source.metadata.num_nodes_per_type), sum(source.metadata.num_edges_per_type)
    return about_bytes(target, nodes, edges, sum(array_bytes(source, "(?!.*/cs[cr]/)")))


def _folder(run: StoreRun, exporter: Exporter, options: ExportOptions, replaces: frozenset[str] | None) -> FolderOutput:
    """Return the folder of an export; entered, it is claimed by this run."""
    digest = getattr(exporter, "file_digest", None)
    return FolderOutput(
        run.storage, str(run.out), replaces=replaces, last=exporter.root_file, digest=digest, takes_over=options.overwrite
    )


def _summary(
    run: StoreRun,
    source: StoreReader,
    graph: StoredGraph,
    exporter: Exporter,
    plan: ExportPlan,
    folder: FolderOutput,
    dropped: tuple[str, ...],
    notes: Sequence[str],
) -> ExportSummary:
    metadata = graph.metadata
    return ExportSummary(
        **run.told(source, metadata, folder.num_bytes, graph.room),
        target=exporter.name,
        loads_in=exporter.loads_in,
        num_parts=metadata.num_parts,
        num_files=folder.num_files,
        num_linked=folder.num_linked,
        ids=_id_spaces(exporter, graph),
        dropped=dropped,
        message_edges=plan.need.message_edges,
        held_out=_held_out(graph),
        notes=tuple(notes),
    )


def check_places(storage: Storage, store: str, *outs: str, options: ExportOptions) -> None:
    """Raise UsageError where a place has no name, or one of ``outs`` is the store, lies in it, or in another one of them."""
    if not store:
        raise UsageError("the store has no name", fix="name the folder or URL of a store")
    for number, out in enumerate(outs):
        if not out:
            raise UsageError("the output has no name", fix="name the folder or URL to write")
        refuse_overlap(storage, [out], {"store": [store]}, options)
        for other in outs[:number]:
            if lies_in(out, other) or lies_in(other, out):
                places = [display_url(other)] if other == out else [display_url(other), display_url(out)]
                raise UsageError(f"two exports go to {' and '.join(places)}", fix="name different folders")


def check_target(storage: Storage, target: str, out: str, options: ExportOptions) -> tuple[Exporter, frozenset[str] | None]:
    """Return the exporter of a target, and the files of an earlier export that are to be replaced.

    Raises UsageError for an unknown target, options that it does not have or that make no sense, and a place that is taken.
    """
    exporter = make_exporter(target, options.target_options)
    check_rule(options.missing_time)
    if exporter.node_ids == "own" and options.ids != "auto":
        raise UsageError(f"--ids {options.ids}: target {exporter.name!r} has IDs of its own", fix="leave it out")
    if options.message_edges not in (None, "all") and getattr(exporter, "message_edges", None) is None:
        raise UsageError(
            f"--message-edges {options.message_edges}: target {exporter.name!r} holds all edges, by edge ID",
            fix="leave it out; where the target has columns, the split is one of them",
        )
    if options.partition_by is not None:
        check_partition_method(options.partition_by, storage)
    return exporter, _may_replace(storage, out, options.overwrite)


def message_edges(exporter: Exporter, metadata: GraphMetadata, options: ExportOptions) -> MessageEdges:
    """Return which edges of a split the graph is to have.

    Raises UsageError where some are asked for of a graph that has no such split.
    """
    own: MessageEdges | None = getattr(exporter, "message_edges", None)
    is_split = any(has_split(metadata, number) for number in range(len(metadata.edge_types)))
    wanted = options.message_edges
    if wanted is None or wanted == "all":
        return wanted or (own if own and is_split else "all")
    if not is_split:
        named = f"--message-edges {wanted}"
        raise UsageError(f"{named}: no edge type has a split", fix="leave it out, or make one: graphprep split")
    return wanted


def _held_out(graph: StoredGraph) -> dict[str, dict[str, int]]:
    """Return how many edges of each part the graph does not have, by edge type."""
    return {graph.edge_names[number]: dict(counts) for number, counts in graph.store.held_out.items()}


def _tell_held_out(graph: StoredGraph, exporter: Exporter, plan: ExportPlan) -> list[str]:
    """Say of each edge type with a split which of its edges the graph does not have, and where they are."""
    wanted, notes = plan.need.message_edges, []
    sets = getattr(exporter, "edge_sets", "") or f"{exporter.name} has no place for sets of edges: take them from the store"
    for number, counts in graph.store.held_out.items():
        listed = " and ".join(f"{count:,} {part}" for part, count in counts.items() if part != UNTIMED)
        if not listed:
            continue  # edges without a time have a note of their own
        is_carried = any(column.role == "split" for column in graph.edge_columns(number))
        where = sets if is_carried else "nor are they anywhere else, as the split is left out"
        name = graph.edge_names[number]
        notes.append(f"edge type {name!r}: the graph is without {listed} edges (--message-edges {wanted}); {where}")
    if wanted == "all" and (plan.need.layouts or plan.need.input_order):
        told = " (--message-edges all)" if getattr(exporter, "message_edges", None) else ""
        notes += [
            f"edge type {name!r}: the graph has its valid and test edges, too{told}"
            for number, name in enumerate(graph.edge_names)
            if has_split(graph.store.metadata, number)
        ]
    return notes


def _tell_negatives(graph: StoredGraph, exporter: Exporter) -> Iterator[str]:
    """Say of each edge type with negatives where these are."""
    where = getattr(exporter, "negatives", "") or f"left out: {exporter.name} has no place for them"
    for number, name in enumerate(graph.edge_names):
        if graph.negatives(number):
            is_carried = any(column.role == "split" for column in graph.edge_columns(number))
            yield f"edge type {name!r}: its negatives are {where if is_carried else 'left out, as the split is'}"


def exported_columns(metadata: GraphMetadata, exporter: Exporter, plan: ExportPlan, options: ExportOptions) -> ExportedColumns:
    """Return the columns that are written. Raises UsageError where others would be lost unasked."""
    return choose_columns(metadata, plan, options.feature_dtypes, target=exporter.name, drop=options.drop_unsupported)


def _write(graph: StoredGraph, exporter: Exporter, plan: ExportPlan, dropped: Sequence[str], folder: FolderOutput) -> list[str]:
    """Write what every export has, then the trainer's own files; return notes."""
    maps = [] if exporter.node_ids == "own" else graph.ids.write_maps(folder)
    record = _record(graph, exporter, plan, maps, dropped)

    def write_record(later: Sequence[str]) -> None:
        sizes: dict[str, int | None] = {**folder.sizes, **dict.fromkeys((*later, RECORD_NAME, exporter.root_file))}
        folder.write(RECORD_NAME, dump_json({**record, "files": dict(sorted(sizes.items()))}))

    if exporter.root_file != RECORD_NAME:
        folder.before_last = write_record
    exporter.export(graph, folder)
    if RECORD_NAME not in folder.sizes:
        write_record(())
    if not maps:
        return graph.notes
    return [*graph.notes, f"nodes go by typed IDs; {', '.join(maps)} {'have' if len(maps) > 1 else 'has'} the raw ones"]


def _repartitioned(metadata: GraphMetadata, options: ExportOptions) -> GraphMetadata:
    """Return the metadata with the number and the method of the partitions that are asked for; counts are still the store's."""
    method = metadata.partition_by if options.partition_by is None else method_name(options.partition_by)
    return replace(metadata, num_parts=options.partitions or metadata.num_parts, partition_by=method)


def _check_partitioning(exporter: Exporter, plan: ExportPlan, options: ExportOptions) -> None:
    """Raise UsageError where a partitioning is asked for that the target does not have."""
    if plan.need.is_fixed and (options.partitions not in (None, 1) or options.partition_by is not None):
        message = f"target {exporter.name!r} has one partition, by ID"
        raise UsageError(message, fix="leave --partitions and --partition-by out")


def _need(plan: ExportPlan, options: ExportOptions, wanted: MessageEdges) -> StoreNeed:
    need = replace(plan.need, message_edges=wanted)
    if options.partitions is None and options.partition_by is None:
        return need
    return replace(need, num_parts=options.partitions, partition_by=options.partition_by, seed=options.seed)


def _id_spaces(exporter: Exporter, graph: StoredGraph) -> dict[str, str]:
    spaces = [exporter.node_ids] * len(graph.ids.spaces) if exporter.node_ids == "own" else graph.ids.spaces
    return dict(zip(graph.metadata.node_types, spaces, strict=True))


def _record(
    graph: StoredGraph, exporter: Exporter, plan: ExportPlan, maps: list[str], dropped: Sequence[str]
) -> dict[str, object]:
    """Say what an export is; the same for the same arguments."""
    metadata = graph.metadata
    fields: dict[str, object] = dataclasses.asdict(exporter) if dataclasses.is_dataclass(exporter) else {}
    return {
        "format": EXPORT_FORMAT,
        "format_version": 1,
        "target": exporter.name,
        "options": fields,
        "ids": _id_spaces(exporter, graph),
        "id_maps": maps,
        **_counts(graph, plan),
        "node_columns": {name: [one.to_json() for one in graph.node_columns(i)] for i, name in enumerate(metadata.node_types)},
        "edge_columns": {name: [one.to_json() for one in graph.edge_columns(i)] for i, name in enumerate(graph.edge_names)},
        "dropped": list(dropped),
    }


def _counts(graph: StoredGraph, plan: ExportPlan) -> Mapping[str, object]:
    """Return names and numbers under the keys of a store's metadata.json; edges are counted where the exporter reads them."""
    metadata = graph.metadata
    layout = plan.need.layouts[0] if plan.need.layouts else metadata.primary_layout
    value = metadata.to_json()
    value["num_edges_per_chunk"] = [
        [graph.num_edges(edge, layout, part) for part in range(metadata.num_parts)] for edge in range(len(metadata.edge_types))
    ]
    held_out = _held_out(graph)
    checksums = {name: value["edge_schema"][name]["checksum"] for name in value["edge_type"] if name not in held_out}
    counts = {**{key: value[key] for key in _COUNT_KEYS}, "edge_checksums": checksums}
    return {**counts, "message_edges": plan.need.message_edges, "held_out": held_out} if held_out else counts


def _may_replace(storage: Storage, out: str, overwrite: bool) -> frozenset[str] | None:
    """Return the files of an earlier export, whole or not, that is to be replaced at ``out``; None where nothing is there.

    Raises UsageError where something stands there without ``overwrite``, or something else.
    """
    if not storage.is_taken(out):
        return None
    place = display_url(out)
    if out == STDIN:
        raise UsageError("an export is a folder, and cannot go to stdout", place=out, fix="name the folder to write, or a URL")
    is_ours = is_export(read_json(storage, storage.join(out, RECORD_NAME)))
    is_left = not is_ours and is_left_over(storage, out)
    if not overwrite:
        is_known = is_ours or is_left
        fix = "choose another name" + (", or give --overwrite" if is_known else ": it is no export, and is never replaced")
        raise UsageError("the output exists", place=place, fix=fix)
    if is_left:
        return frozenset(find_files(storage, out))
    names = export_files(storage, out)
    if names is None:
        what = f"has no list of its files in {RECORD_NAME}" if is_ours else "is not what graphprep exported"
        raise UsageError(
            f"{what}; --overwrite replaces nothing else",
            place=place,
            fix="choose another name, or remove it by hand",
        )
    refuse_foreign(storage, out, names)
    return names
