"""The stages in order: what each command of the library does from its arguments to its result."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphprep.convert.build.write import (
    StoreBuilder,
    TypedEdges,
    TypedNodes,
    WriteRules,
    build_needs,
    publish_needs,
)
from graphprep.convert.columns.observe import ColumnContext, StoredColumn, settle_columns
from graphprep.convert.columns.role_schema import input_schema
from graphprep.convert.columns.roles import RoleFlag, Roles, category_texts, check_declared, match_types, owner_name, read_flags
from graphprep.convert.columns.routes import ColumnRoute, EdgeRoute
from graphprep.convert.columns.schema_guard import load_schema, settle_by_schema
from graphprep.convert.decoded.early_edges import EarlyRules
from graphprep.convert.decoded.rejects import Rejects
from graphprep.convert.decoded.rows import Decoded
from graphprep.convert.decoded.texts import KeyCollisionError
from graphprep.convert.disk_need import DiskRules, check_disk
from graphprep.convert.index.node_index import NodeIndex
from graphprep.convert.index.node_spaces import NodeRules
from graphprep.convert.index.nodes import NODE_BYTES, BeyondError, index_needs, index_nodes
from graphprep.convert.index.partition_file import find_partition_function
from graphprep.convert.outcome import Outcome, check_outcome
from graphprep.convert.read.decode import DecodeSettings, decode_all, decode_needs
from graphprep.convert.read.locate import Locator
from graphprep.convert.read.plan import Planned, apply_schema, decoded_bytes, plan_input, plan_needs, with_dtypes
from graphprep.convert.roles.declare import complete
from graphprep.convert.roles.role_columns import Parts, RoleGiver
from graphprep.convert.shuffle.route import Routed, RouteRules, Routing
from graphprep.convert.shuffle.route_edges import route_edges, route_needs
from graphprep.convert.shuffle.route_nodes import route_nodes
from graphprep.edges.device.find import RunDevice, find_kernels
from graphprep.engine.budget import PeakSampler, count_memory, record_bytes
from graphprep.engine.ledger import EDGE_BYTES, Ledger, MemoryPlan, plan_memory
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_schema import GraphSchema, OwnerSchema
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.checks import parse_error_limit
from graphprep.model.options.convert import ConvertOptions, ConvertSummary
from graphprep.model.protocols import Reporter, Sources
from graphprep.model.quiet import QuietReporter
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import EdgeType, Layout, edge_type_text
from graphprep.model.shown.numbers import count
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.storage.faults import display_url
from graphprep.storage.private import PrivateFolder
from graphprep.storage.read.urls import Storage, local_path
from graphprep.storage.spill.runs import SpillPool
from graphprep.storage.write.files import check_writable, write_pieces
from graphprep.storage.write.publish import StoreWriter
from graphprep.store.assign import PartitionFunction, order_types
from graphprep.store.columns.densify import DenseNames
from graphprep.store.finish import provenance
from graphprep.store.stated_counts import CountRules, check_parts, check_room

if TYPE_CHECKING:
    from graphprep.convert.memory.folder import InMemory

_MOST_GROUP = 16 << 20  # of text whose edges are scattered at once: some 2^20, a thousand for every bucket
_LEAST_EARLY = 1 << 15  # edges
_AHEAD_BLOCKS = 4  # of a remote table, as stored, fetched while it is read


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


@dataclass
class Prepared:
    """An input that is decoded, indexed and scattered to buckets."""

    planned: Planned
    decoded: Decoded
    index: NodeIndex
    routed: Routed
    nodes: list[TypedNodes]
    edges: list[TypedEdges]
    num_skipped: int
    kernels: Kernels
    parts: tuple[Parts, ...] = ()
    role_notes: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()

    @property
    def most_bytes(self) -> int:
        """Return the most that its rows may take."""
        return _most_bytes(self.decoded, self.index)


@dataclass(frozen=True)
class Converted:
    """A store in a private folder, at ``url``, that is to be rewritten with ``writer``, and what that may take."""

    url: str
    writer: StoreWriter
    storage: Storage
    memory: MemoryPlan
    tmp_dir: str | None
    kernels: Kernels
    ledger: Ledger
    reporter: Reporter
    provenance: Callable[[], object]


def convert(
    inputs: Sequence[str],
    out: str,
    options: ConvertOptions | None = None,
    reporter: Reporter | None = None,
    in_memory: InMemory | None = None,
    rewrite: Callable[[Converted], GraphMetadata] | None = None,
) -> ConvertSummary:
    """Convert raw graph files to a store of CSR/CSC partitions and metadata.json.

    ``inputs``: paths, folders, globs or URLs (``-``: stdin), or names of what is ``in_memory``; ``out``: a path or URL that
    does not exist yet. With ``rewrite`` the store is made in a private folder, and what that makes of it is at ``out``.
    Raises the GraphprepErrors that the command line maps to its exit codes; then nothing is left at ``out``.
    """
    options = options or ConvertOptions()
    reporter = reporter or QuietReporter()
    begin = time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(count_memory())
        sampler = stack.enter_context(PeakSampler())
        tmp_dir = options.run.tmp_dir or folder_beside(out)
        storage = stack.enter_context(Storage(options.run.storage_options, tmp_dir))
        storage.load_drivers((*inputs, out))
        device = RunDevice(options.run, reporter)
        memory = plan_memory(options)
        ledger = Ledger(memory.limit_bytes, memory.held_bytes, reporter, sampler)
        storage.ahead_bytes = _AHEAD_BLOCKS * memory.block_bytes
        storage.record_bytes = record_bytes(memory.limit_bytes)
        writer = target = stack.enter_context(StoreWriter(storage, out, options.overwrite))
        if rewrite is not None:
            folder = PrivateFolder(tmp_dir)
            stack.callback(folder.remove)
            url = str(Path(folder.make()) / "store")
            writer = stack.enter_context(StoreWriter(storage, url))
        pool = stack.enter_context(SpillPool(memory.pool_bytes, tmp_dir))
        if in_memory is not None:
            ledger.begin("spool", in_memory.needs())
            in_memory.spool(storage)
        with _saved_rejects(storage, options) as rejects:
            disk = _disk_rules(out, tmp_dir, options, memory)
            prepared = _prepare(inputs, options, memory, storage, pool, ledger, rejects, device, disk)
        check_outcome(_outcome(inputs, prepared), options, target.replaced)
        rules = _write_rules(prepared, options, memory)
        most = prepared.most_bytes
        ledger.begin("build", (*build_needs(rules, prepared.nodes, prepared.edges, most), memory.runs(most)))
        builder = StoreBuilder(writer, prepared.index, rules, pool, reporter)
        for node in prepared.nodes:
            builder.write_nodes(node)
        for edge in prepared.edges:
            builder.write_edges(edge)
        ledger.begin("publish", (*publish_needs(rules, prepared.nodes, prepared.edges), memory.runs(most)))

        def provenance_of() -> object:
            return _provenance(prepared, storage, device, time.perf_counter() - begin)

        metadata = builder.finish(prepared.nodes, prepared.edges, provenance_of)
        if rewrite is not None:
            made = Converted(url, target, storage, memory, tmp_dir, prepared.kernels, ledger, reporter, provenance_of)
            metadata = rewrite(made)
        ledger.end()
        elapsed_s = time.perf_counter() - begin
        summary = _summary(out, prepared, ledger, target.num_bytes, pool.spilled_bytes, elapsed_s, sampler.stop())
        if rewrite is not None:
            summary = replace(
                summary,
                num_nodes=dict(zip(metadata.node_types, metadata.num_nodes_per_type, strict=True)),
                num_edges=dict(zip(map(edge_type_text, metadata.edge_types), metadata.num_edges_per_type, strict=True)),
            )
        return summary if in_memory is None else replace(summary, notes=(*in_memory.notes, *summary.notes))


def folder_beside(out: str) -> str | None:
    """Return the folder of a local OUT, where there is room for it and so for temporary files; None: the system's place."""
    path = local_path(out)
    folder = None if path is None else Path(path).absolute().parent
    return str(folder) if folder is not None and folder.is_dir() and os.access(folder, os.W_OK) else None


def check_input(inputs: Sequence[str], options: ConvertOptions | None = None, reporter: Reporter | None = None) -> InputReport:
    """Decode, index and resolve an input without writing anything; raise what ``convert`` would raise."""
    options = options or ConvertOptions()
    with contextlib.ExitStack() as stack:
        stack.enter_context(count_memory())
        sampler = stack.enter_context(PeakSampler())
        storage = stack.enter_context(Storage(options.run.storage_options, options.run.tmp_dir))
        storage.load_drivers(inputs)
        device = RunDevice(options.run, reporter or QuietReporter())
        memory = plan_memory(options)
        ledger = Ledger(memory.limit_bytes, memory.held_bytes, reporter or QuietReporter(), sampler)
        storage.ahead_bytes = _AHEAD_BLOCKS * memory.block_bytes
        storage.record_bytes = record_bytes(memory.limit_bytes)
        pool = stack.enter_context(SpillPool(memory.pool_bytes, options.run.tmp_dir))
        with _saved_rejects(storage, options) as rejects:
            prepared = _prepare(inputs, options, memory, storage, pool, ledger, rejects, device)
        check_outcome(_outcome(inputs, prepared), options)
        return InputReport(
            format=prepared.planned.format,
            num_nodes={node.name: node.route.num_rows for node in prepared.nodes},
            num_edges={edge_type_text(edge.edge_type): edge.route.num_edges for edge in prepared.edges},
            num_records=prepared.decoded.num_records,
            num_skipped=prepared.num_skipped,
            node_columns={node.name: node.columns for node in prepared.nodes},
            edge_columns={edge_type_text(edge.edge_type): edge.columns for edge in prepared.edges},
            notes=_notes(prepared),
        )


def _prepare(
    inputs: Sequence[str],
    options: ConvertOptions,
    memory: MemoryPlan,
    storage: Storage,
    pool: SpillPool,
    ledger: Ledger,
    rejects: Rejects | None,
    device: RunDevice,
    disk: DiskRules | None = None,
) -> Prepared:
    """Run the stages from plan to shuffle."""
    plan = _plan(inputs, options, memory, storage, ledger, disk)
    settings = DecodeSettings(
        block_bytes=memory.block_bytes,
        limit_bytes=max(memory.block_bytes, record_bytes(memory.limit_bytes)),
        max_rows=max(1 << 10, memory.block_bytes // 16),
        threads=memory.threads,
        skip=options.on_error == "skip",
        text_bytes=memory.cap_bytes,
        early=None if plan.flags or plan.schema is not None else _early_rules(options, memory, plan.input.total_bytes),
    )
    decoded, index, locator = _index_input(
        plan.input, settings, plan.schema, options, memory, storage, pool, ledger, rejects, plan.room
    )
    flags, roles = (*plan.flags, *_format_flags(decoded)), plan.roles
    if flags and plan.fixed is None:
        roles = match_types(flags, index.type_names)
    rules = _route_rules(options, plan.schema, memory, index)
    kernels = device.kernels(decoded.num_edges, memory, ledger)
    routing = Routing(kernels, decoded, index, rules, pool, locator, ledger.reporter, rejects, roles)
    ledger.begin("shuffle", (*route_needs(routing), memory.runs(_most_bytes(decoded, index))))
    if decoded.num_nodes or decoded.aligned:
        route_nodes(routing)
    route_edges(routing)
    complete(routing, _has_times(decoded))
    decoded.close()
    nodes, edges = _settle(decoded, index, routing.routed, options, plan.schema)
    parts: tuple[Parts, ...] = ()
    notes: tuple[str, ...] = ()
    if roles.owners:
        giver = RoleGiver(routing, storage, nodes, edges, plan.fixed)
        giver.give(roles)
        nodes, edges, parts, notes = giver.nodes, giver.edges, tuple(giver.parts), tuple(giver.notes)
    # What was guessed of the input is in the summary where the reporter tells nobody.
    untold = plan.input.sources.messages if getattr(ledger.reporter, "is_quiet", False) else ()
    num_skipped = 0 if rejects is None else rejects.num
    return Prepared(plan.input, decoded, index, routing.routed, nodes, edges, num_skipped, kernels, parts, notes, untold)


@dataclass(frozen=True)
class _Plan:
    """What is known before anything is decoded.

    ``fixed`` is the schema that the user gave, ``schema`` what of it the input must look like, and ``roles`` what it says of
    columns; without one, ``flags`` say it once the types are known.
    """

    input: Planned
    room: CountRules
    flags: tuple[RoleFlag, ...]
    fixed: GraphSchema | None = None
    schema: GraphSchema | None = None
    roles: Roles = field(default_factory=Roles)


def _plan(
    inputs: Sequence[str],
    options: ConvertOptions,
    memory: MemoryPlan,
    storage: Storage,
    ledger: Ledger,
    disk: DiskRules | None,
) -> _Plan:
    """Look at what there is, hold it against options, flags and schema, and refuse what has no room."""
    flags: tuple[RoleFlag, ...] = ()
    if options.labels or options.splits or options.seeds or options.categories:
        flags = read_flags(options.labels, options.splits, options.seeds, options.seed, categories=options.categories)
    ledger.begin("plan", plan_needs(memory.working_bytes))
    planned = plan_input(inputs, options, storage, ledger.reporter)
    room = _count_rules(memory, disk)
    check_room(planned.sources, options, room)
    flags += _config_flags(planned, options.seed)
    if flags and options.missing_node_type is None:  # else there may be one more
        check_declared(flags, planned.sources, planned.graph)
    if options.schema is not None and options.densify:
        raise UsageError("--densify: the schema says how columns are stored", fix="leave one of them out")
    if options.schema is not None:
        fixed = load_schema(storage, options.schema)
        schema, roles = input_schema(fixed, match_types(flags, fixed.node_types))
        plan = _Plan(apply_schema(planned, schema), room, flags, fixed, schema, roles)
    elif flags:
        plan = _Plan(with_dtypes(planned, category_texts(flags, planned.sources)), room, flags)
    else:
        plan = _Plan(planned, room, flags)
    if disk is not None:
        check_disk(plan.input, storage, disk, ledger.reporter)
    return plan


def _most_bytes(decoded: Decoded, index: NodeIndex) -> int:
    """Return the most that rows may take on their way: twice what one stage holds, as they go from one to the next."""
    raw = sum(runs.num_bytes(0) for runs in index.raw_runs.values())
    rows = EDGE_BYTES * decoded.num_edges + NODE_BYTES * sum(index.num_nodes)
    return 2 * (rows + raw + 2 * sum(decoded.column_bytes.values()))


def _outcome(inputs: Sequence[str], prepared: Prepared) -> Outcome:
    """Count what was read. Its place is the input, where that is one."""
    return Outcome(
        display_url(inputs[0]) if len(inputs) == 1 else "",
        sum(node.route.num_rows for node in prepared.nodes),
        sum(edge.route.num_edges for edge in prepared.edges),
        prepared.decoded.num_records,
        prepared.num_skipped,
        prepared.routed.num_dropped_edges,
    )


def _config_flags(planned: Planned, seed: int) -> tuple[RoleFlag, ...]:
    """Read what a graph config says of labels, splits and seeds."""
    graph = planned.graph
    if graph is None:
        return ()
    return read_flags(graph.labels, graph.splits, graph.seeds, seed, graph.place, graph.base, graph.categories)


def _format_flags(decoded: Decoded) -> tuple[RoleFlag, ...]:
    """Say of each edge type that a column is its split or holds categories, where the format says so of all."""
    kinds = dict.fromkeys((str(one.src_type), one.name, str(one.dst_type)) for one in decoded.relations)
    split, category = decoded.sources.edge_split, decoded.sources.edge_category
    flags = [] if split is None else [RoleFlag("split", "the names of the files", kind, (split,)) for kind in kinds]
    flags += [] if category is None else [RoleFlag("category", "--relation-as column", kind, (category,)) for kind in kinds]
    return tuple(flags)


def _index_input(
    planned: Planned,
    settings: DecodeSettings,
    schema: GraphSchema | None,
    options: ConvertOptions,
    memory: MemoryPlan,
    storage: Storage,
    pool: SpillPool,
    ledger: Ledger,
    rejects: Rejects | None,
    room: CountRules,
) -> tuple[Decoded, NodeIndex, Locator]:
    """Decode and index; again with other keys, should two names have the same one."""
    decoder, sources, seed = planned.decoder, planned.sources, 0
    while True:
        most = decoded_bytes(planned)
        ledger.begin("decode", (*decode_needs(settings, most), memory.runs(most)), total_bytes=planned.total_bytes)
        decoded = decode_all(decoder, sources, storage, pool, settings, ledger.reporter, rejects, planned.replan, seed)
        locator = Locator(decoded, storage, settings)
        ledger.begin("index", (*index_needs(decoded, memory.cap_bytes), memory.runs()))
        try:
            return decoded, _index(decoded, options, schema, memory, storage, pool, locator, room), locator
        except KeyCollisionError:
            decoder, sources, seed = decoded.decoder, decoded.sources, decoded.text_seed + 1
            decoded.close()


def _index(
    decoded: Decoded,
    options: ConvertOptions,
    schema: GraphSchema | None,
    memory: MemoryPlan,
    storage: Storage,
    pool: SpillPool,
    locator: Locator,
    room: CountRules,
) -> NodeIndex:
    rules = NodeRules(
        partition=lambda names: _partition_function(decoded, options, storage, names, room),
        on_missing=options.on_missing_node,
        missing_type=options.missing_node_type,
        ids=options.ids or "auto",
        num_nodes=options.num_nodes,
        type_order=None if schema is None else schema.node_types,
        cap_bytes=memory.cap_bytes,
        limit_bytes=memory.limit_bytes,
        threads=memory.threads,
    )
    try:
        return index_nodes(decoded, rules, pool)
    except BeyondError as error:
        raise _beyond(decoded, locator, error) from None


def _beyond(decoded: Decoded, locator: Locator, error: BeyondError) -> DataError:
    """Word an end that lies beyond --num-nodes, with the place of the first."""
    place, found = locator.first_end_beyond(error.type_name, error.num_nodes)
    return DataError(
        f"node {found} is outside [0, {error.num_nodes})",
        place=place,
        fix=f"raise --num-nodes to {error.highest + 1}, or correct the ID",
    )


def _partition_function(
    decoded: Decoded, options: ConvertOptions, storage: Storage, names: tuple[str, ...], room: CountRules
) -> PartitionFunction:
    found = find_partition_function(storage, options.partition_by, names, options.partitions, 1, options.seed)
    if options.partitions is None and found.method == "file":
        check_parts(found.num_parts, display_url(options.partition_by), decoded.sources, options, room)
    return found


def _layouts(options: ConvertOptions) -> tuple[Layout, ...]:
    return ("csc", "csr") if options.layout == "both" else (options.layout,)


def check_stated(sources: Sources, options: ConvertOptions) -> None:
    """Refuse the numbers of nodes that take more memory than ``convert`` would have. Raises what ``check_room`` raises."""
    with count_memory():
        check_room(sources, options, _count_rules(plan_memory(options), None))


def _count_rules(memory: MemoryPlan, disk: DiskRules | None) -> CountRules:
    """Say what there is for what counts take; without ``disk`` nothing is written."""
    out, tmp_dir = (None, None) if disk is None else (disk.out, disk.tmp_dir)
    return CountRules(memory.limit_bytes, memory.working_bytes, memory.task_bytes, out, tmp_dir)


def _disk_rules(out: str, tmp_dir: str | None, options: ConvertOptions, memory: MemoryPlan) -> DiskRules:
    drops = options.on_missing_node == "drop"
    return DiskRules(out, tmp_dir, memory.pool_bytes, len(_layouts(options)), options.edge_ids, may_drop_edges=drops)


def _route_rules(options: ConvertOptions, schema: GraphSchema | None, memory: MemoryPlan, index: NodeIndex) -> RouteRules:
    return RouteRules(
        primary=_layouts(options)[0],
        both=options.layout == "both",
        neighbor_order=options.neighbor_order,
        weight_dtype=options.weight_dtype,
        on_missing=options.on_missing_node,
        skip=options.on_error == "skip",
        bucket_bytes=memory.bucket_bytes,
        cap_bytes=memory.cap_bytes,
        num_parts=index.partition.num_parts,
        threads=memory.threads,
        schema=schema,
    )


def _early_rules(options: ConvertOptions, memory: MemoryPlan, total_bytes: int | None) -> EarlyRules | None:
    """Say how edges may be scattered as soon as they are decoded; None where that is of no use."""
    if options.layout == "both" or options.ids == "sparse" or options.partition_by != "range":
        return None
    if total_bytes is not None and total_bytes < _LEAST_EARLY:  # not even one group of edges
        return None
    group = max(memory.block_bytes, min(_MOST_GROUP, memory.cap_bytes // 3))
    side = 1 if options.layout == "csc" else 0
    return EarlyRules(find_kernels(), side, group, max(_LEAST_EARLY, group // 8), memory.cap_bytes // 2, total_bytes or 0)


def _write_rules(prepared: Prepared, options: ConvertOptions, memory: MemoryPlan) -> WriteRules:
    partition = prepared.index.partition
    return WriteRules(
        graph_name=options.graph_name or prepared.planned.sources.graph_name or "graph",
        partition_by=partition.method,
        num_parts=partition.num_parts,
        layouts=_layouts(options),
        neighbor_order=options.neighbor_order,
        edge_ids=options.edge_ids,
        index_dtype=options.index_dtype,
        bucket_bytes=memory.bucket_bytes,
        task_bytes=memory.task_bytes,
        cap_bytes=memory.cap_bytes,
        threads=memory.threads,
    )


def _has_times(decoded: Decoded) -> bool:
    """Return whether created_at and removed_at exist: either, on any row, makes both on all types."""
    return decoded.sources.has_times or any(key.role in ("created_at", "removed_at") for key in decoded.column_bytes)


def _settle(
    decoded: Decoded, index: NodeIndex, routed: Routed, options: ConvertOptions, schema: GraphSchema | None
) -> tuple[list[TypedNodes], list[TypedEdges]]:
    """Settle all columns, and the numbers of the edge types."""
    shapes = {key: found.shapes for key, found in decoded.shapes.items()}
    created_weight = decoded.sources.created_weight
    densify = DenseNames(options.densify) if options.densify else None

    def columns(
        routes: dict[ColumnKey, ColumnRoute], num_rows: int, weight: float, name: str, owner: OwnerSchema | None, own: str
    ) -> tuple[StoredColumn, ...]:
        stats = {key: route.stats for key, route in routes.items()}
        context = ColumnContext(num_rows, stats, shapes, decoded.sources.always_weighted, weight, densify and densify.of(own))
        if schema is not None and owner is not None:
            return settle_by_schema(owner, name, context, schema.place)
        return settle_columns(context)

    nodes = []
    for number, name in enumerate(index.type_names):
        route = routed.nodes[number]
        node_schema = None if schema is None else schema.nodes[name]
        settled = columns(route.columns, route.num_rows, created_weight, f"node type {name!r}", node_schema, name)
        nodes.append(TypedNodes(name, number, route, settled))
    edges = []
    for edge_type, edge_route in _ordered_edge_types(decoded, index, routed, schema):
        edge_schema = None if schema is None else schema.edges[edge_type]
        own = edge_type_text(edge_type)
        settled = columns(edge_route.columns, edge_route.num_edges, 0.0, f"edge type {own!r}", edge_schema, own)
        edges.append(TypedEdges(edge_type, edge_route, settled))
    if densify is not None:
        densify.check()
    return nodes, edges


def _ordered_edge_types(
    decoded: Decoded, index: NodeIndex, routed: Routed, schema: GraphSchema | None
) -> Iterator[tuple[EdgeType, EdgeRoute]]:
    """Yield the edge types in the schema's order, else by (relation number, source type, destination type)."""
    names = [relation.name for relation in decoded.relations]

    def named(key: tuple[int, int, int]) -> EdgeType:
        return index.type_names[key[1]], names[key[0]], index.type_names[key[2]]

    if schema is not None:
        keys = sorted(routed.edges, key=lambda key: schema.edge_types.index(named(key)))
    elif decoded.sources.edge_types:
        keys = sorted(routed.edges)
    else:
        order = order_types(sorted(set(names)))
        keys = sorted(routed.edges, key=lambda key: (order.index(names[key[0]]), key[1], key[2]))
    for key in keys:
        yield named(key), routed.edges[key]


@contextlib.contextmanager
def _saved_rejects(storage: Storage, options: ConvertOptions) -> Iterator[Rejects | None]:
    """Collect rejected records, if there may be any; write them to --bad-records also when the run fails."""
    most_errors, _ = parse_error_limit(options.max_errors)
    if options.on_error != "skip":
        yield None
        return
    url = options.bad_records
    if url is not None:
        check_writable(storage, url)
    with Rejects(most_errors, options.run.tmp_dir) as rejects:
        try:
            yield rejects
        finally:
            if url is not None:
                write_pieces(storage, url, rejects.pieces())


def _notes(prepared: Prepared) -> tuple[str, ...]:
    notes = [*prepared.untold, *prepared.index.notes]
    notes += [text if count == 1 else f"{text} ({count} times)" for text, count in sorted(prepared.decoded.warnings.items())]
    notes += [note for columns in prepared.decoded.id_columns.values() if (note := columns.note) is not None]
    for kind in (prepared.nodes, prepared.edges):
        for owner in kind:
            notes += _split_slots(owner)
    notes += _detached(prepared)
    notes += prepared.role_notes
    return tuple(notes)


def _detached(prepared: Prepared) -> Iterator[str]:
    """Say which node types have columns, but no edge: mostly, edges name other IDs than these, or another type."""
    joined = {end for edge in prepared.edges if edge.route.num_edges for end in edge.edge_type[::2]}
    for node in prepared.nodes:
        own = [column.schema.name for column in node.columns if column.schema.role in (None, "label", "split")]
        if own and node.name not in joined and node.route.num_rows:
            columns = f"column {own[0]!r}" if len(own) == 1 else f"{len(own):,} columns"
            yield f"node type {node.name!r} has {columns}, but no edge begins or ends in it"


def _split_slots(owner: TypedNodes | TypedEdges) -> Iterator[str]:
    """Say where one feature slot became several columns."""
    slots: dict[int, list[str]] = {}
    for column in owner.columns:
        if column.schema.slot is not None:
            slots.setdefault(column.schema.slot, []).append(column.schema.name)
    name = owner.name if isinstance(owner, TypedNodes) else ":".join(owner.edge_type)
    for slot, names in slots.items():
        if len(names) > 1:
            yield f"{name}: slot {slot} became {', '.join(names)}; --schema fixes the kinds beforehand"


def _summary(
    out: str,
    prepared: Prepared,
    ledger: Ledger,
    output_bytes: int,
    spilled_bytes: int,
    elapsed_s: float,
    peak_bytes: int,
) -> ConvertSummary:
    return ConvertSummary(
        out=out,
        format=prepared.planned.format,
        format_flags=prepared.planned.flags,
        num_nodes={node.name: node.route.num_rows for node in prepared.nodes},
        num_edges={edge_type_text(edge.edge_type): edge.route.num_edges for edge in prepared.edges},
        num_parts=prepared.index.partition.num_parts,
        num_records=prepared.decoded.num_records,
        num_skipped=prepared.num_skipped,
        num_dropped_edges=prepared.routed.num_dropped_edges,
        num_created_nodes=sum(prepared.index.num_created),
        splits={owner_name(parts.owner): parts.counts for parts in prepared.parts},
        input_bytes=prepared.decoded.input_bytes,
        output_bytes=output_bytes,
        spilled_bytes=spilled_bytes,
        elapsed_s=elapsed_s,
        peak_memory_bytes=peak_bytes,
        stage_s=dict(ledger.seconds),
        notes=_notes(prepared),
    )


def _provenance(prepared: Prepared, storage: Storage, device: RunDevice, elapsed_s: float) -> dict[str, Any]:
    spans = prepared.decoded.sources.spans
    return provenance(list(dict.fromkeys(span.url for span in spans)), storage, elapsed_s, device.name)


__all__ = [
    "InputReport",
    "check_input",
    "convert",
    "folder_beside",
]
