"""The stages in order: what each command of the library does from its arguments to its result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphprep.context import Context
from graphprep.convert.build.write import StoreBuilder, StoreShape, TypedEdges, TypedNodes, build_needs, publish_need
from graphprep.convert.columns.roles import RoleFlag, match_types, owner_name
from graphprep.convert.columns.routes import StoredColumn
from graphprep.convert.decoded.amounts import Amounts
from graphprep.convert.decoded.rejects import Rejects
from graphprep.convert.decoded.rows import Decoded
from graphprep.convert.decoded.texts import KeyCollisionError
from graphprep.convert.disk_need import DiskRules, estimate_disk
from graphprep.convert.index.node_index import NodeIndex
from graphprep.convert.index.node_spaces import NodeRules
from graphprep.convert.index.nodes import BeyondError, index_needs, index_nodes
from graphprep.convert.read.decode import decode_all, decode_needs
from graphprep.convert.read.locate import Locator
from graphprep.convert.read.plan import Plan, Planned, decoded_bytes, plan
from graphprep.convert.resume import Tasks, journal_folder, tell_where_kept
from graphprep.convert.roles.settle import complete, settle
from graphprep.convert.run import Elsewhere, Run, decode_settings
from graphprep.convert.shuffle.route import Routed, Routing
from graphprep.convert.shuffle.route_edges import route_edges, route_needs
from graphprep.convert.units.cluster import OnCluster
from graphprep.convert.units.folder import refuse_workers
from graphprep.engine.budget import count_memory
from graphprep.engine.ledger import plan_memory
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DataError, UsageError
from graphprep.model.options.checks import parse_error_limit
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.options.recorded import recorded
from graphprep.model.protocols import Reporter, Sources
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count
from graphprep.storage.faults import display_url
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.journal import KeptFolder
from graphprep.storage.write.places import refuse_overlap
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.assign import PARTITION_METHODS, PartitionFunction
from graphprep.store.room import (
    CountRules,
    Outcome,
    check_outcome,
    check_parts,
    check_room,
    compare_with,
    find_folders,
    folder_beside,
    free_bytes,
    is_copied,
)
from graphprep.store.write import provenance

if TYPE_CHECKING:
    from graphprep.convert.memory.folder import InMemory
    from graphprep.convert.roles.role_columns import Parts
    from graphprep.model.metadata import GraphMetadata

_MOST_GROWTH = 16  # of output and temporary files together over text: ``1 2\n`` becomes two layouts
_MOST_PACKED = 20  # what compression makes of text at best, roughly


@dataclass(frozen=True, repr=False)
class InputReport(Showable):
    """What a checked input holds: counts by type, and every type's columns."""

    format: str
    num_nodes: dict[str, int]
    num_edges: dict[str, int]
    num_records: int
    num_skipped: int
    node_columns: dict[str, tuple[StoredColumn, ...]]
    edge_columns: dict[str, tuple[StoredColumn, ...]]
    notes: tuple[str, ...]

    def card(self) -> Card:
        """See ``Showable``."""
        columns = {name: [one.schema.name for one in some] for name, some in {**self.node_columns, **self.edge_columns}.items()}
        skipped = f", {self.num_skipped:,} skipped" if self.num_skipped else ""
        title = f"{self.format}: {count(self.num_records, 'record')}{skipped}"
        return Card(title, type_rows(self.num_nodes, self.num_edges, columns), tuple(f"note: {one}" for one in self.notes))


@dataclass(eq=False)
class Prepared:
    """An input that is decoded, indexed and scattered to buckets. ``most_bytes`` is the most that its rows may take."""

    planned: Planned
    decoded: Decoded
    index: NodeIndex
    routed: Routed
    nodes: list[TypedNodes]
    edges: list[TypedEdges]
    num_skipped: int
    most_bytes: int
    kernels: Kernels
    tasks: Tasks
    parts: tuple[Parts, ...] = ()
    role_notes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.num_nodes: dict[str, int] = {}
        self.num_edges: dict[str, int] = {}
        for node in self.nodes:
            self.num_nodes[node.name] = node.route.num_rows
        for edge in self.edges:
            self.num_edges[edge.name] = edge.route.num_edges


@dataclass(frozen=True, eq=False)
class Converted:
    """A store in a private folder, at ``url``, that is to be rewritten with ``writer``, and what that may take.

    ``notes`` are sentences for the user of how that went.
    """

    context: Context
    url: str
    writer: StoreWriter
    kernels: Kernels
    provenance: Callable[[], object]
    notes: list[str] = field(default_factory=list)


def convert(
    inputs: Sequence[str],
    out: str,
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    in_memory: InMemory | None = None,
    rewrite: Callable[[Converted], GraphMetadata] | None = None,
    elsewhere: Callable[[Run, Plan], Elsewhere] | None = None,
    journal: KeptFolder | None = None,
    check: Callable[[Run, Plan], None] | None = None,
) -> ConvertSummary:
    """Convert raw graph files to a store of CSR/CSC partitions and metadata.json.

    ``inputs``: paths, folders, globs or URLs (``-``: stdin), or names of what is ``in_memory``; ``out``: a path or URL that
    does not exist yet. With ``rewrite`` the store is made in a private folder, and what that makes of it is at ``out``.
    ``elsewhere`` is asked for the blocks of an input that others decode, for this output; ``journal`` is that of a run of which
    this is the first part. ``check`` may refuse what is planned, before anything is decoded. Raises the GraphprepErrors that
    the command line maps to its exit codes; then nothing is left at ``out``.
    """
    options = options or ConvertOptions()
    tmp_dir = options.run.tmp_dir or folder_beside(out)
    with contextlib.ExitStack() as stack:
        kept = journal or journal_folder(out, tmp_dir)
        run = stack.enter_context(Run(inputs, (out,), options, tmp_dir, reporter, kept if options.resume else None))
        ledger, memory = run.ledger, run.memory
        outs = [out] if options.bad_records is None else [out, options.bad_records]
        refuse_overlap(run.storage, outs, {"input": inputs}, options)
        resumes = options.resume or elsewhere is not None
        if elsewhere is None:
            refuse_workers(run.storage, out)
            elsewhere = stack.enter_context(OnCluster(out, options)) if options.on_cluster else None
        writer = target = stack.enter_context(
            StoreWriter(run.storage, out, options.overwrite, resumes=resumes, kept=None if rewrite else run.kept)
        )
        if options.resume:
            tell_where_kept(kept, target, ledger.reporter)
        if rewrite is not None:
            folder = PrivateFolder(tmp_dir)
            stack.callback(folder.remove)
            url = str(Path(folder.make()) / "store")
            writer = stack.enter_context(StoreWriter(run.storage, url, kept=run.kept))
        if in_memory is not None:
            ledger.begin("spool", in_memory.needs())
            in_memory.spool(run.storage)
        drops = options.on_missing_node == "drop"
        has_copy = rewrite is not None or (options.resume and is_copied(out, tmp_dir))
        disk = DiskRules(
            *(out, tmp_dir, memory.pool_bytes, len(options.layouts), options.edge_ids, drops, options.resume, has_copy)
        )
        prepared = _prepare(run, disk, target.replaced, elsewhere, check)
        urls = list(dict.fromkeys(map(attrgetter("url"), prepared.decoded.sources.spans)))

        def provenance_of() -> object:
            others = prepared.tasks.elsewhere
            workers = {} if others is None else others.lineage
            lineage = {} if in_memory is not None else {"convert": {**recorded(inputs, options), **workers}}
            return provenance(urls, run.storage, run.elapsed_s, run.device.name, lineage)

        metadata, notes = _build(run, prepared, writer, provenance_of), list[str]()
        if rewrite is not None:
            made = Converted(run, url, target, prepared.kernels, provenance_of)
            metadata, notes = rewrite(made), made.notes
        notes = [*notes, *_tell_renumbered(target.replaced, metadata)]
        ledger.end()
        if journal is None:
            kept.finish()
        summary = _summary(out, run, prepared, target.num_bytes, run.elapsed_s)
        if rewrite is not None:
            summary = replace(summary, num_nodes=metadata.num_nodes_by_type(), num_edges=metadata.num_edges_by_type())
        return replace(summary, notes=(*(in_memory.notes if in_memory is not None else ()), *summary.notes, *notes))


def _build(run: Run, prepared: Prepared, writer: StoreWriter, provenance_of: Callable[[], object]) -> GraphMetadata:
    """Build the store, from where an earlier run left it, and publish it."""
    options, memory, ledger = run.options, run.memory, run.ledger
    shape = StoreShape.of(prepared.index.partition.num_parts, prepared.nodes, prepared.edges)
    runs = memory.runs(prepared.most_bytes)
    ledger.begin("build", (*build_needs(options, memory, shape, prepared.most_bytes), runs))
    fresh = StoreBuilder(writer, prepared.index, options, memory, run.pool, ledger.reporter)
    known = {"writer": writer, "index": prepared.index, "options": options, "memory": memory, "kernels": prepared.kernels}
    builder, keep = prepared.tasks.builder(fresh, prepared.most_bytes, **known)
    builder.write(prepared.nodes, prepared.edges, keep)
    ledger.begin("publish", (publish_need(options, shape), runs))
    graph_name = options.graph_name or prepared.planned.sources.graph_name or "graph"
    return builder.finish(graph_name, prepared.nodes, prepared.edges, provenance_of)


def check_input(inputs: Sequence[str], options: ConvertOptions | None = None, reporter: Reporter | None = None) -> InputReport:
    """Decode, index and resolve an input without writing anything; raise what ``convert`` would raise."""
    options = options or ConvertOptions()
    with Run(inputs, (), options, options.run.tmp_dir, reporter) as run:
        prepared = _prepare(run)
        run.storage.check_unchanged()
        return InputReport(
            format=prepared.planned.format,
            num_nodes=prepared.num_nodes,
            num_edges=prepared.num_edges,
            num_records=prepared.decoded.num_records,
            num_skipped=prepared.num_skipped,
            node_columns={node.name: node.columns for node in prepared.nodes},
            edge_columns={edge.name: edge.columns for edge in prepared.edges},
            notes=_notes(prepared),
        )


@contextlib.contextmanager
def decode_input(
    inputs: Sequence[str], options: ConvertOptions, reporter: Reporter | None = None
) -> Iterator[tuple[Decoded, Locator]]:
    """Decode an input that was read before, for those who look for some of its rows."""
    with Run(inputs, (), options, options.run.tmp_dir, reporter) as run:
        known = plan(run.inputs, options, run.storage, run.memory, run.ledger, (None, None))
        indexed = _index_input(Tasks(run, known, None))
        yield indexed.decoded, indexed.locator
        run.ledger.end()


def _prepare(
    run: Run,
    disk: DiskRules | None = None,
    replaced: Mapping[str, Any] | None = None,
    elsewhere: Callable[[Run, Plan], Elsewhere] | None = None,
    check: Callable[[Run, Plan], None] | None = None,
) -> Prepared:
    """Run the stages from plan to shuffle, and refuse an input that is not what was meant.

    Records that are rejected are written to --bad-records, also where a stage fails. ``disk`` is None where nothing is written;
    ``replaced`` is the metadata.json of a store that would be.
    """
    most_errors, _ = parse_error_limit(run.options.max_errors)
    stages = partial(_run_stages, run, disk=disk, elsewhere=elsewhere, check=check)
    prepared = stages(None) if run.options.on_error != "skip" else _run_skipping(run, most_errors, stages)
    found = Outcome(
        display_url(run.inputs[0]) if len(run.inputs) == 1 else "",  # the place of messages
        sum(prepared.num_nodes.values()),
        sum(prepared.num_edges.values()),
        prepared.decoded.num_records,
        prepared.num_skipped,
        prepared.routed.num_dropped_edges,
    )
    check_outcome(found, run.options, replaced)
    return prepared


def _run_skipping(run: Run, most_errors: int | None, stages: Callable[[Rejects], Prepared]) -> Prepared:
    from graphprep.storage.write.files import check_writable, write_pieces

    options, storage = run.options, run.storage
    url = options.bad_records
    if url is not None:
        if storage.is_file(url) and not (options.overwrite or options.resume):
            fix = "choose another name, or remove it by hand; convert --overwrite replaces it"
            raise UsageError("the file exists", place=f"--bad-records {display_url(url)}", fix=fix)
        check_writable(storage, url)
    with Rejects(most_errors, options.run.tmp_dir) as rejects:
        try:
            return stages(rejects)
        finally:
            if url is not None:
                write_pieces(storage, url, rejects.pieces())


def _run_stages(
    run: Run,
    rejects: Rejects | None,
    disk: DiskRules | None,
    elsewhere: Callable[[Run, Plan], Elsewhere] | None,
    check: Callable[[Run, Plan], None] | None,
) -> Prepared:
    """Plan, decode and index the input, and scatter it to buckets."""
    memory, ledger = run.memory, run.ledger
    folders = (None, None) if disk is None else (disk.out, disk.tmp_dir)
    known = plan(run.inputs, run.options, run.storage, memory, ledger, folders)
    if disk is not None:
        refuse_overlap(run.storage, [disk.out], {"input": {span.url for span in known.input.sources.spans}})
        check_disk(known.input, run.storage, disk, ledger.reporter)
    if check is not None:
        check(run, known)
    decoded = None if elsewhere is None else elsewhere(run, known)
    known = known if decoded is None else decoded.known
    tasks = Tasks(run, known, rejects, decoded)
    indexed = cache(lambda: tasks.do("index", lambda: _index_input(tasks), ends=("decode",)))
    kernels = run.device.kernels(tasks.do("count", lambda: indexed().decoded.num_edges), memory, ledger)
    done = tasks.do("shuffle", lambda: _shuffle(tasks, indexed(), kernels), ends=("index",), kernels=kernels)
    # What was guessed of the input is in the summary where the reporter tells nobody.
    untold = known.input.sources.messages if getattr(ledger.reporter, "is_quiet", False) else ()
    num_skipped = 0 if rejects is None else rejects.num
    rows = (done.decoded, done.index, done.routed, done.nodes, done.edges)
    return Prepared(known.input, *rows, num_skipped, done.most_bytes, kernels, tasks, done.parts, done.role_notes, untold)


@dataclass(frozen=True, eq=False)
class _Indexed:
    """What decoding and indexing made."""

    decoded: Decoded
    index: NodeIndex
    locator: Locator


@dataclass(frozen=True, eq=False)
class _Shuffled:
    """What is there once all rows are in their buckets: see ``Prepared``."""

    decoded: Decoded
    index: NodeIndex
    routed: Routed
    nodes: list[TypedNodes]
    edges: list[TypedEdges]
    most_bytes: int
    parts: tuple[Parts, ...] = ()
    role_notes: tuple[str, ...] = ()


def _shuffle(tasks: Tasks, indexed: _Indexed, kernels: Kernels) -> _Shuffled:
    """Scatter all rows, settle types and columns, and give these their roles."""
    run, known = tasks.run, tasks.known
    options, memory, ledger, decoded, index = run.options, run.memory, run.ledger, indexed.decoded, indexed.index
    flags, roles = (*known.flags, *_format_flags(decoded)), known.roles
    if flags and known.fixed is None:
        roles = match_types(flags, index.type_names)
    routing = Routing(
        *(kernels, decoded, index, options, memory, run.pool, indexed.locator, ledger.reporter, tasks.rejects),
        *(known.schema, roles),
    )
    raw_id_bytes = sum(raw.num_bytes(0) for raw in index.raw_runs.values())
    amounts = replace(Amounts.of(decoded), num_nodes=sum(index.num_nodes), raw_id_bytes=raw_id_bytes)
    ledger.begin(
        "shuffle",
        (*route_needs(amounts, memory, index.spaces, has_roles=bool(roles.owners)), memory.runs(amounts.most_bytes)),
        total_records=amounts.num_edges,
    )
    if decoded.num_nodes or decoded.aligned:
        from graphprep.convert.shuffle.route_nodes import route_nodes

        route_nodes(routing)
    route_edges(routing)
    complete(routing)
    decoded.close()
    nodes, edges = settle(decoded, index, routing.routed, known.schema, options.densify)
    if options.edge_id_col:
        from graphprep.store.columns.edge_ids import check_edge_id_columns

        columns = {edge.name: [column.schema for column in edge.columns] for edge in edges}
        check_edge_id_columns(columns, options.edge_id_col, "--edge-id-col")
    done = _Shuffled(decoded, index, routing.routed, nodes, edges, amounts.most_bytes)
    if not roles.owners:
        return done
    from graphprep.convert.roles.role_columns import RoleGiver

    giver = RoleGiver(routing, run.storage, nodes, edges, known.fixed)
    giver.give(roles)
    return replace(done, nodes=giver.nodes, edges=giver.edges, parts=tuple(giver.parts), role_notes=tuple(giver.notes))


def check_disk(planned: Planned, storage: Storage, rules: DiskRules, reporter: Reporter) -> None:
    """Compare what the run takes at least with what is free; tell it to who wants details.

    Of remote places, and of streams, whose size nobody knows, nothing is said. Raises StorageError where there is too little.
    """
    folders = find_folders(rules.out, rules.tmp_dir)
    free, known = {}, []
    for folder in filter(None, folders):
        free[folder] = num_bytes = free_bytes(folder)
        known += [] if num_bytes is None else [num_bytes]
    if not known or planned.total_bytes is None:
        return
    # Most often there is room whatever the input holds, so that nobody need look.
    most = planned.total_bytes * _MOST_GROWTH * (_MOST_PACKED if planned.is_packed else 1) * (2 if rules.has_copy else 1)
    if getattr(reporter, "details", False) or most > min(known):
        compare_with(folders, free, estimate_disk(planned, storage, rules), reporter)


def _format_flags(decoded: Decoded) -> tuple[RoleFlag, ...]:
    """Say of each edge type that a column is its split or holds categories, where the format says so of all."""
    split, category = decoded.sources.edge_split, decoded.sources.edge_category
    if split is None and category is None:
        return ()
    kinds = dict.fromkeys((str(one.src_type), one.name, str(one.dst_type)) for one in decoded.relations)
    flags = [] if split is None else [RoleFlag("split", "the names of the files", kind, (split,)) for kind in kinds]
    flags += [] if category is None else [RoleFlag("category", "--relation-as column", kind, (category,)) for kind in kinds]
    return tuple(flags)


def _index_input(tasks: Tasks) -> _Indexed:
    """Decode and index; again with other keys, should two names have the same one."""
    run, known = tasks.run, tasks.known
    options, memory, ledger, planned = run.options, run.memory, run.ledger, known.input
    elsewhere = tasks.elsewhere
    settings = decode_settings(run, known, None if elsewhere is None else elsewhere.reading)
    decoder, sources, seed = planned.decoder, planned.sources, 0

    def decode() -> tuple[Decoded, Locator]:
        most = decoded_bytes(planned)
        ledger.begin("decode", (*decode_needs(settings, most), memory.runs(most)), total_bytes=planned.total_bytes)
        rows = (run.storage, run.pool, settings, ledger.reporter, tasks.rejects, planned.replan, seed)
        portions = None if seed else tasks.portions("decode in part", settings)
        blocks = None if elsewhere is None or seed else elsewhere.blocks
        decoded = decode_all(decoder, sources, *rows, portions, blocks)
        return decoded, Locator(decoded, run.storage, settings if portions is None else portions.settings)

    while True:
        decoded, locator = decode() if seed else tasks.do("decode", decode, ends=("decode in part",))
        ledger.begin("index", (*index_needs(Amounts.of(decoded), memory.cap_bytes), memory.runs()))
        type_order = None if known.schema is None else known.schema.node_types
        rules = NodeRules(partial(_partition_function, run, decoded, known.room), options, memory, type_order)
        try:
            return _Indexed(decoded, index_nodes(decoded, rules, run.pool), locator)
        except BeyondError as error:
            raise _beyond(decoded, locator, error) from None
        except KeyCollisionError:
            decoder, sources, seed = decoded.decoder, decoded.sources, decoded.text_seed + 1
            decoded.close()


def _beyond(decoded: Decoded, locator: Locator, error: BeyondError) -> DataError:
    """Word an end that lies beyond --num-nodes, with the place of the first."""
    place, found = locator.first_end_beyond(error.type_name, error.num_nodes)
    return DataError(
        f"node {found} is outside [0, {error.num_nodes})",
        place=place,
        fix=f"raise --num-nodes to {error.highest + 1}, or correct the ID",
    )


def _partition_function(run: Run, decoded: Decoded, room: CountRules, names: tuple[str, ...]) -> PartitionFunction:
    options = run.options
    if options.partition_by in PARTITION_METHODS:
        return PartitionFunction(options.partition_by, options.partitions or 1, options.seed)
    from graphprep.convert.index.partition_file import find_partition_function

    found = find_partition_function(run.storage, options.partition_by, names, options.partitions, 1, options.seed)
    if options.partitions is None and found.method == "file":
        check_parts(found.num_parts, display_url(options.partition_by), decoded.sources, options, room)
    return found


def check_stated(sources: Sources, options: ConvertOptions) -> None:
    """Refuse the numbers of nodes that take more memory than ``convert`` would have. Raises what ``check_room`` raises."""
    with count_memory():
        memory = plan_memory(options.run, options.block_bytes, apart=options.engine == "processes")
        check_room(sources, options, CountRules(memory.limit_bytes, memory.working_bytes, memory.task_bytes))


def _notes(prepared: Prepared) -> tuple[str, ...]:
    """Return the sentences for the user: of what may be a mistake, of decoding, of IDs, and of columns.

    A terminal shows the first ones alone.
    """
    doubts = [ids.note for ids in prepared.decoded.id_columns.values() if ids.note is not None]
    notes = [*prepared.untold, *prepared.index.notes]
    for text, times in sorted(prepared.decoded.warnings.items()):
        notes.append(text if times == 1 else f"{text} ({times} times)")
    joined: set[str] = set()
    for node in prepared.nodes:
        _note_slots(notes, node.name, node.columns)
    for edge in prepared.edges:
        _note_slots(notes, ":".join(edge.edge_type), edge.columns)
        joined.update(edge.edge_type[::2] if edge.route.num_edges else ())
    for node in prepared.nodes:  # mostly, edges name other IDs than these, or another type
        if node.columns and node.name not in joined and node.route.num_rows:
            own = [column.schema.name for column in node.columns if column.schema.role in (None, "label", "split")]
            columns = f"column {own[0]!r}" if len(own) == 1 else f"{len(own):,} columns"
            if own:
                doubts.append(f"node type {node.name!r} has {columns}, but no edge begins or ends in it")
    return (*doubts, *notes, *prepared.role_notes)


def _tell_renumbered(replaced: Mapping[str, Any] | None, made: GraphMetadata) -> Iterator[str]:
    """Say of which node types raw IDs may have other typed IDs than in the store that was replaced: its graph was another."""
    from graphprep.model.metadata import GraphMetadata

    try:
        before = made if replaced is None else GraphMetadata.from_json(dict(replaced))
    except (KeyError, TypeError, ValueError, AttributeError):  # it was no sound store
        return
    known = dict(zip(before.edge_types, before.edge_schemas, strict=True))
    others = [
        one
        for one, schema in zip(made.edge_types, made.edge_schemas, strict=True)
        if known.get(one, schema).checksum != schema.checksum
    ]
    touched = {end for edge_type in others for end in edge_type[::2]}
    nodes = [
        dict(zip(one.node_types, zip(one.num_nodes_per_chunk, one.node_schemas, strict=True), strict=True))
        for one in (before, made)
    ]
    for name, (parts, schema) in nodes[1].items():
        old_parts, old_schema = nodes[0].get(name, (parts, schema))
        has_raw = {schema.raw_ids, old_schema.raw_ids} != {"identity"}
        if name in nodes[0] and has_raw and (name in touched or list(old_parts) != list(parts)):
            yield (
                f"node type {name!r}: a raw ID may have another typed ID than in the store that was replaced; what is to last "
                "goes by raw IDs"
            )


def _note_slots(notes: list[str], owner: str, columns: Sequence[StoredColumn]) -> None:
    """Say where one feature slot became several columns."""
    slots: dict[int, list[str]] = {}
    for column in columns:
        if column.schema.slot is not None:
            slots.setdefault(column.schema.slot, []).append(column.schema.name)
    for slot, names in slots.items():
        if len(names) > 1:
            notes.append(f"{owner}: slot {slot} became {', '.join(names)}; --schema fixes the kinds beforehand")


def _summary(out: str, run: Run, prepared: Prepared, output_bytes: int, elapsed_s: float) -> ConvertSummary:
    splits = {}
    for parts in prepared.parts:
        splits[owner_name(parts.owner)] = parts.counts
    return ConvertSummary(
        out=out,
        format=prepared.planned.format,
        format_flags=prepared.planned.flags,
        num_nodes=prepared.num_nodes,
        num_edges=prepared.num_edges,
        num_parts=prepared.index.partition.num_parts,
        num_records=prepared.decoded.num_records,
        num_skipped=prepared.num_skipped,
        num_dropped_edges=prepared.routed.num_dropped_edges,
        num_created_nodes=sum(prepared.index.num_created),
        splits=splits,
        input_bytes=prepared.decoded.input_bytes,
        output_bytes=output_bytes,
        spilled_bytes=run.pool.spilled_bytes,
        elapsed_s=elapsed_s,
        peak_memory_bytes=run.finish(),
        stage_s=run.ledger.seconds,
        notes=_notes(prepared),
    )


__all__ = [
    "InputReport",
    "check_input",
    "convert",
    "decode_input",
]
