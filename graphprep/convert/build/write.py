"""Write the store: every array of every partition, the manifests, and metadata.json last."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.build.columns import (
    ColumnTarget,
    ColumnWriter,
    GatheredColumn,
    copy_column,
    edge_pieces,
    node_pieces,
    plain_source,
    whole_in_order,
    write_column,
)
from graphprep.convert.columns.routes import (
    NUM_SLOTS,
    ColumnRoute,
    EdgeRoute,
    NodeRoute,
    RouteFactory,
    StoredColumn,
    effective_order,
)
from graphprep.convert.decoded.rows import Decoded
from graphprep.convert.index.node_index import NodeIndex
from graphprep.convert.read.plan import Plan
from graphprep.convert.run import Run
from graphprep.edges.buckets import WriteBuffer
from graphprep.edges.build import (
    BuildRules,
    BuiltEdges,
    LayoutBuilder,
    LayoutFiles,
    SecondLayout,
    settle_index_dtype,
    write_layout,
)
from graphprep.edges.tasks import EdgeRuns
from graphprep.engine.budget import end_stage
from graphprep.engine.ledger import MemoryPlan, Need
from graphprep.engine.local import num_in_flight
from graphprep.model.metadata import GraphMetadata
from graphprep.model.options.convert import ConvertOptions
from graphprep.model.options.recorded import recorded
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema, EdgeType, EdgeTypeSchema, Layout, NeighborOrder, NodeTypeSchema, RawIdKind
from graphprep.storage.spill.segments import Segment, SegmentFile
from graphprep.store.columns.cells import Cells, scalar_cells
from graphprep.store.paths import edge_folder, node_folder
from graphprep.store.room import ENTRY_BYTES
from graphprep.store.write import PartedArray, PartList, finish_store, provenance

Ints = NDArray[np.int64]
_MOST_OPEN = 4  # arrays of a layout, or of a column
_MOST_GATHERED = 64  # columns that are written at once: each is an open file
_FILE_BYTES = 1 << 20  # what a file that is written may hold back
_SWAY = 0.9  # of the memory that building began with: as little is left of what ``auto`` finds when a run goes on


@dataclass(frozen=True, eq=False)
class TypedEdges:
    """One canonical edge type that is to be written, with its settled columns."""

    edge_type: EdgeType
    name: str  # the three names in one
    route: EdgeRoute
    columns: tuple[StoredColumn, ...]


@dataclass(frozen=True, eq=False)
class TypedNodes:
    """One node type that is to be written, with its settled columns."""

    name: str
    number: int
    route: NodeRoute
    columns: tuple[StoredColumn, ...]


@dataclass(frozen=True, eq=False)
class Settled:
    """What is to be written: rows in their buckets, their types and columns, ``most_bytes`` of them.

    ``splits`` counts rows by part, of the types that have a split; ``notes`` are sentences for the user, of roles.
    """

    plan: Plan
    decoded: Decoded
    index: NodeIndex
    nodes: list[TypedNodes]
    edges: list[TypedEdges]
    most_bytes: int
    num_dropped_edges: int = 0
    splits: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @cached_property
    def num_nodes(self) -> dict[str, int]:
        """Return how many nodes there are of each type."""
        return {one.name: one.route.num_rows for one in self.nodes}

    @cached_property
    def num_edges(self) -> dict[str, int]:
        """Return how many edges there are of each type."""
        return {one.name: one.route.num_edges for one in self.edges}

    @property
    def shape(self) -> StoreShape:
        """Count what is to be written."""
        return StoreShape.of(self.index.partition.num_parts, self.nodes, self.edges)


class Checkpoint(Protocol):
    """Goes on with a store that an earlier run has begun; see ``StoreBuilder``."""

    def __call__(self, fresh: StoreBuilder, settled: Settled, /) -> tuple[StoreBuilder, Callable[[], None]]:
        """Return what builds it, and what records how far that is."""


class Built(NamedTuple):
    """All arrays of a store, and what wrote them."""

    settled: Settled
    builder: StoreBuilder


def build(run: Run, settled: Settled, checkpoint: Checkpoint | None = None) -> Built:
    """Write all arrays of the store, from where an earlier run left it."""
    options, memory, most_bytes = run.options, run.memory, settled.most_bytes
    run.ledger.begin("build", (*build_needs(options, memory, settled.shape, most_bytes), memory.runs(most_bytes)))
    builder, keep = StoreBuilder(run, settled.index), None
    if checkpoint is not None:
        builder, keep = checkpoint(builder, settled)
    builder.write(settled.nodes, settled.edges, keep)
    return Built(settled, builder)


def publish(run: Run, built: Built) -> GraphMetadata:
    """Write the manifests, provenance.json and metadata.json; that publishes the store."""
    settled = built.settled
    run.ledger.begin("publish", (publish_need(run.options, settled.shape), run.memory.runs(settled.most_bytes)))
    graph_name = run.options.graph_name or settled.plan.input.sources.graph_name or "graph"
    return built.builder.finish(graph_name, settled.nodes, settled.edges, partial(provenance_of, run, settled))


def provenance_of(run: Run, settled: Settled) -> object:
    """Tell from what, and how, the store was made."""
    urls = list(dict.fromkeys(map(attrgetter("url"), settled.decoded.sources.spans)))
    others = settled.plan.elsewhere
    workers = {} if others is None else others.lineage
    lineage = {} if run.from_memory else {"convert": {**recorded(run.inputs, run.options), **workers}}
    return provenance(urls, run.storage, run.elapsed_s, run.device.name, lineage)


class StoreShape(NamedTuple):
    """How many partitions, node types, edge types, and columns of nodes and of edges a store has."""

    num_parts: int
    num_node_types: int
    num_edge_types: int
    num_node_columns: int
    num_edge_columns: int

    @classmethod
    def of(cls, num_parts: int, nodes: Sequence[TypedNodes], edges: Sequence[TypedEdges]) -> StoreShape:
        """Count what is to be written."""
        columns = [sum(map(len, map(attrgetter("columns"), types))) for types in (nodes, edges)]
        return cls(num_parts, len(nodes), len(edges), *columns)


def build_needs(options: ConvertOptions, memory: MemoryPlan, shape: StoreShape, most_bytes: int) -> Iterator[Need]:
    """Declare what building and writing takes of an input that takes ``most_bytes`` decoded."""
    num_tasks = num_in_flight(memory.threads)
    why = f"{num_tasks} at a time, of {{}}"
    yield Need("build tasks", min(most_bytes, num_tasks * memory.task_bytes), why, (memory.task_bytes,))
    if shape.num_edge_columns:
        yield Need("columns", min(most_bytes, memory.cap_bytes), "of edges, written beside them")
    if len(options.layouts) > 1:
        yield Need("write buffers", WriteBuffer.cap_of(memory.bucket_bytes), "edges on their way to the other layout")
    yield Need("files", _MOST_OPEN * _FILE_BYTES, "what the arrays of a layout hold back")
    yield publish_need(options, shape)


def publish_need(options: ConvertOptions, shape: StoreShape) -> Need:
    """Declare what the manifests take."""
    arrays = len(options.layouts) * shape.num_edge_types + shape.num_node_columns + shape.num_edge_columns
    num_files = shape.num_parts * (shape.num_node_types + _MOST_OPEN * arrays)
    return Need("manifests", num_files * ENTRY_BYTES, f"{ENTRY_BYTES} bytes for each array of each partition")


class StoreBuilder:
    """Writes all arrays of a store; can be pickled where these are kept."""

    def __init__(self, run: Run, index: NodeIndex) -> None:
        self.run = run
        self.index = index
        self.parts = PartList(run.writer, index.partition.num_parts)
        self.node_counts: list[tuple[int, ...]] = []  # by partition, of the types that are written
        self.edge_counts: list[tuple[int, ...]] = []
        self.node_schemas: list[NodeTypeSchema] = []
        self.edge_schemas: list[EdgeTypeSchema] = []
        self._room = run.memory.task_bytes, run.memory.cap_bytes
        self._placed: dict[str, Segment] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Note the files that are complete."""
        return self.__dict__ | {"_placed": self.parts.placed()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open these files. Raises what ``SegmentFile.open`` raises."""
        self.__dict__ |= state
        for segment in self._placed.values():
            assert self.run.writer.kept is not None
            SegmentFile.open(self.run.writer.kept, segment)

    def fits(self) -> bool:
        """Return whether what was begun can be gone on with in this run's memory: ``auto`` is never the same."""
        memory = self.run.memory
        return memory.task_bytes >= self._room[0] * _SWAY and memory.cap_bytes >= self._room[1] * _SWAY

    def go_on(self) -> None:
        """Let the store have the files that an earlier run completed. Raises StorageError."""
        self.run.writer.go_on(self._placed)

    def write(self, nodes: Sequence[TypedNodes], edges: Sequence[TypedEdges], keep: Callable[[], None] | None) -> None:
        """Write all types, those that were not written before; ``keep`` records what is there by now."""
        self.parts.keep = keep
        for one_of_nodes in nodes[len(self.node_schemas) :]:
            self.write_nodes(one_of_nodes)
            self.parts.forget()
        for one_of_edges in edges[len(self.edge_schemas) :]:
            self.write_edges(one_of_edges)
            self.parts.forget()

    # Nodes

    def write_nodes(self, nodes: TypedNodes) -> None:
        """Write one node type: raw IDs, columns, stated numbers of slots."""
        sizes = np.diff(self.index.part_offsets[nodes.number])
        folder = node_folder(nodes.name)
        kind = self.index.raw_kinds[nodes.number]
        if kind != "identity":
            path = f"{folder}/raw_ids"
            self.parts.once(path, partial(self._write_raw_ids, nodes.number, path, kind, sizes))
        for number, column in enumerate(_with_slots(nodes.columns, nodes.route.columns, nodes.route.extra_slots)):
            _end_group(number)
            target = ColumnTarget(column, f"{folder}/{column.schema.path}", sizes)
            self.parts.once(target.stem, partial(self._write_node_column, nodes.route, target))
            for key in column.keys:
                nodes.route.columns[key].close()
            self.run.reporter.advance(records=nodes.route.num_rows)
        self.node_counts.append(tuple(sizes.tolist()))
        schemas = tuple(map(attrgetter("schema"), nodes.columns))
        self.node_schemas.append(NodeTypeSchema(kind, schemas, nodes.route.extra_slots))

    def _write_node_column(self, route: NodeRoute, target: ColumnTarget) -> None:
        routes = [route.columns[key] for key in target.column.keys]
        source = plain_source(target.column, routes, route.num_rows)
        if source is not None:
            copy_column(self.parts, target, source, self.run.memory.threads)
            return

        pieces = partial(node_pieces, target.column, routes, route.num_rows, self.run.memory.bucket_bytes)
        write_column(self.parts, target, route.columns, pieces, self.run.memory.threads)

    def _write_raw_ids(self, number: int, path: str, kind: RawIdKind, sizes: Ints) -> None:
        if kind != "string" and self.index.partition.method == "range":
            array = PartedArray(self.parts, f"{path}.npy", kind, sizes)
            for ids, _ in self.index.raw(number):
                array.append(ids.numbers.view(kind))
            array.close()
            return
        is_text = kind == "string"
        key = ColumnKey("raw_ids", "binary", "uint8") if is_text else ColumnKey("raw_ids", "numbers", kind)
        num_bytes = 0
        for ids, _ in self.index.raw(number) if is_text else ():
            num_bytes += 0 if ids.texts is None else ids.texts[1].nbytes
        num_rows, num_parts = int(sizes.sum()), self.index.partition.num_parts
        factory = RouteFactory(self.run.pool, self.run.memory.bucket_bytes, {key: 48 * num_rows + num_bytes}, num_parts)
        routes: dict[ColumnKey, ColumnRoute] = {}
        route = factory.column(routes, key, num_rows)
        for ids, typed in self.index.raw(number):
            cells = Cells(np.diff(ids.texts[0]), ids.texts[1]) if ids.texts else scalar_cells(ids.numbers.view(kind))
            route.add(typed, None, cells, self.index.part_offsets[number])
        factory.write_buffer.clear()
        column = StoredColumn(_SideFile("raw_ids", "binary" if is_text else "dense", key.dtype), (key,))
        self._write_node_column(NodeRoute(num_rows, routes), ColumnTarget(column, path, sizes))
        route.close()

    # Edges

    def write_edges(self, edges: TypedEdges) -> None:
        """Write one edge type: its layouts, then its columns in the order of the primary one."""
        route, options, memory, folder = edges.route, self.run.options, self.run.memory, edge_folder(edges.edge_type)
        order, missing_key = effective_order(route, options.neighbor_order)
        num_src, num_dst = self.index.num_nodes[route.src_type], self.index.num_nodes[route.dst_type]
        primary, *other = options.layouts
        most_others = max(num_src, num_dst) if other else num_src if primary == "csc" else num_dst
        index_dtype = settle_index_dtype(options.index_dtype, most_others)
        id_dtype = settle_index_dtype(options.index_dtype, route.num_edges) if options.edge_ids else None
        build_rules = BuildRules(memory.task_bytes, memory.threads)
        second = None
        if other and (route.second is None or edges.columns):
            num_rows = self.index.num_nodes[_owner(route, other[0])]
            rest = self.run.pool, memory.bucket_bytes
            with_rows = bool(edges.columns)
            second = self.parts.going_on(
                f"{folder} turned",
                lambda: SecondLayout(route.edges, route.num_edges, num_rows, *rest, edge_rows=with_rows),
            )
        slots = route.extra_slots and NUM_SLOTS in route.columns
        gathered, scattered = self._split_columns(edges, folder, slots)
        built = write_layout(
            LayoutBuilder(
                EdgeRuns(route.edges, order, missing_key),
                index_dtype,
                id_dtype or (settle_index_dtype("auto", route.num_edges) if second is not None or gathered else None),
                keys=second is not None,
            ),
            LayoutFiles(f"{folder}/{primary}", index_dtype, id_dtype),
            self.parts,
            np.diff(self.index.part_offsets[_owner(route, primary)]),
            route.primary_counts,
            build_rules,
            self.run.pool,
            keep_positions=bool(scattered),
            second=second,
            columns=gathered,
        )
        for done in gathered:
            done.writer.close()
        route.edges.runs.close()
        self.run.reporter.advance(records=route.num_edges)
        if other:
            files = LayoutFiles(f"{folder}/{other[0]}", index_dtype, id_dtype, edge_rows=bool(edges.columns))
            self.parts.once(files.folder, partial(self._write_second, route, second, order, missing_key, files))
        self._write_scattered(route, scattered, built)
        self.edge_counts.append(tuple(route.primary_counts.tolist()))
        self.edge_schemas.append(
            EdgeTypeSchema(
                neighbor_order=order,
                index_dtype=index_dtype,
                edge_id_dtype=id_dtype,
                multigraph=built.repeated if order == "id" else None,
                checksum=f"{route.checksum:016x}",
                columns=tuple(map(attrgetter("schema"), edges.columns)),
                num_slots=slots,
            )
        )

    def _write_scattered(self, route: EdgeRoute, columns: list[ColumnTarget], built: BuiltEdges) -> None:
        """Write the columns of edges that were not written while these were built, in the order of the primary layout."""
        for number, target in enumerate(columns):
            _end_group(number)
            routes = [route.columns[key] for key in target.column.keys]
            pieces = partial(edge_pieces, target.column, routes, built, route.edges.plan)
            write = partial(write_column, self.parts, target, route.columns, pieces, self.run.memory.threads)
            self.parts.once(target.stem, write)
            for one in routes:
                one.close()
            self.run.reporter.advance(records=route.num_edges)

    def _split_columns(self, edges: TypedEdges, folder: str, slots: bool) -> tuple[list[GatheredColumn], list[ColumnTarget]]:
        """Return the columns to be written while the edges are built, loaded, and those to be written then."""
        route = edges.route
        gathered: list[GatheredColumn] = []
        scattered: list[ColumnTarget] = []
        columns = _with_slots(edges.columns, route.columns, slots)
        beside = self.parts.going_on(f"{folder} beside", lambda: self._columns_beside(route, columns))
        for number, column in enumerate(columns):
            target = ColumnTarget(column, f"{folder}/{column.schema.path}", route.primary_counts)
            ordered = whole_in_order(column, route.columns, route.num_edges) if number in beside else None
            if ordered is None:
                scattered.append(target)
                continue
            writer = self.parts.going_on(target.stem, partial(ColumnWriter, self.parts, target, route.columns))
            gathered.append(GatheredColumn(writer, ordered.load(column.schema.dtype)))
            for key in column.keys:
                route.columns[key].close()
            self.run.reporter.advance(records=route.num_edges)
        return gathered, scattered

    def _columns_beside(self, route: EdgeRoute, columns: Sequence[StoredColumn]) -> frozenset[int]:
        """Return the numbers of the columns that fit in memory to be written while the edges are built."""
        room = self.run.memory.cap_bytes
        beside: set[int] = set()
        for number, column in enumerate(columns):
            ordered = whole_in_order(column, route.columns, route.num_edges)
            size = 0 if ordered is None else route.num_edges * ordered.width * np.dtype(column.schema.dtype).itemsize
            need = size + min(size, _FILE_BYTES)
            if ordered is not None and need <= room and len(beside) < _MOST_GATHERED:
                room -= need
                beside.add(number)
        return frozenset(beside)

    def _write_second(
        self, route: EdgeRoute, second: SecondLayout | None, order: NeighborOrder, missing_key: int | None, files: LayoutFiles
    ) -> None:
        """Write the layout that is not the primary one: from what building the first left, or as it was scattered."""
        if second is not None:
            second.finish()
            edges = EdgeRuns(second.buckets, order, missing_key, by_arrival=False)
        else:
            assert route.second is not None
            edges = EdgeRuns(route.second, order, missing_key)
        write_layout(
            LayoutBuilder(edges, files.index_dtype, files.edge_id_dtype, edge_rows=files.edge_rows),
            files,
            self.parts,
            np.diff(self.index.part_offsets[_owner(route, self.run.options.layouts[1])]),
            route.second_counts,
            BuildRules(self.run.memory.task_bytes, self.run.memory.threads),
            self.run.pool,
            keep_positions=False,
        )
        edges.buckets.runs.close()

    # Manifests and metadata

    def finish(
        self, graph_name: str, nodes: list[TypedNodes], edges: list[TypedEdges], provenance: Callable[[], object]
    ) -> GraphMetadata:
        """Write the manifests, provenance.json and metadata.json; that publishes the store."""
        metadata = GraphMetadata(
            graph_name=graph_name,
            node_types=tuple(map(attrgetter("name"), nodes)),
            edge_types=tuple(map(attrgetter("edge_type"), edges)),
            num_nodes_per_chunk=tuple(self.node_counts),
            num_edges_per_chunk=tuple(self.edge_counts),
            num_parts=self.index.partition.num_parts,
            partition_by=self.index.partition.method,
            layouts=self.run.options.layouts,
            node_schemas=tuple(self.node_schemas),
            edge_schemas=tuple(self.edge_schemas),
            parts=(),
        )
        return finish_store(self.run.writer, self.parts.entries, metadata, provenance)


def _with_slots(
    columns: tuple[StoredColumn, ...], routes: dict[ColumnKey, ColumnRoute], extra: bool
) -> tuple[StoredColumn, ...]:
    if not extra or NUM_SLOTS not in routes:
        return columns
    # Not a column of the schema: it lies beside weight.npy, so it is written with the path of a side role.
    return (*columns, StoredColumn(_SideFile("num_slots", "dense", "int32"), (NUM_SLOTS,)))


def _owner(route: EdgeRoute, layout: Layout) -> int:
    """Return the number of the type whose nodes are the rows of a layout."""
    return route.dst_type if layout == "csc" else route.src_type


def _end_group(number: int) -> None:
    """Give back the memory of a group of columns before the next begins: what lies between those of others is of no use."""
    if number % _MOST_GATHERED == 0:
        end_stage()


class _SideFile(ColumnSchema):
    """A file that lies beside ``data/`` without being a column of the schema."""

    @property
    def path(self) -> str:
        """Return the name itself."""
        return self.name
