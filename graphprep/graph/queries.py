"""A store in Python: its arrays by type and name, and questions about its nodes and edges."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType
from typing import Any, Literal, NamedTuple, Self, overload

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.adjacency import Adjacency
from graphprep.graph.columns import Column, RaggedColumn, TextColumn, join_columns, map_array, map_column
from graphprep.graph.rows import PartedRows
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.ids import EdgeTypeLike, IDConverter, IdLike, NodeTypeLike, TypedSpace
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, EdgeType, EdgeTypeSchema, Layout, NodeTypeSchema, edge_type_text
from graphprep.model.shown.results import Card, Showable, type_rows
from graphprep.model.shown.texts import count
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.store.columns.edge_ids import is_edge_id_column
from graphprep.store.paths import ColumnPaths, LayoutPaths, NodePaths, edge_folder, node_folder
from graphprep.store.write import read_lineage

Ints = NDArray[np.int64]
EdgeOrder = Literal["ids", "rows", "srcdst", "eid", ""]
_ORDERS: tuple[EdgeOrder, ...] = ("ids", "rows", "srcdst")
_DGL_ORDERS: dict[str, EdgeOrder] = {"eid": "ids", "": "rows"}  # as DGL's ``edges`` has them
_ORDER_WORDS = {"ids": "by edge ID", "rows": "as rows lie", "srcdst": "by source, then destination"}


class GraphQueries(Showable):
    """What ``Graph`` knows without other libraries: see there."""

    def __init__(self, storage: Storage, url: str) -> None:
        self.url = url
        self._storage = storage
        self._store = StoreReader(storage, url)
        spaces = IDConverter(self._store.metadata)
        self._nodes: TypedSpace = spaces.nodes
        self._edges: TypedSpace = spaces.edges
        self._rows: dict[tuple[int, Layout], PartedRows] = {}
        self._positions: dict[int, NDArray[Any]] = {}
        self._coo: dict[int, Edges] = {}
        self._degrees: dict[tuple[int, Layout], Ints] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as what opens the store again."""
        return (type(self), (self._storage, self.url))

    def edge_id_column(self, edge_type: EdgeTypeLike | None = None) -> str | None:
        """Return the column that ``convert --edge-id-col`` named as the edges' own IDs, as provenance.json says; None: none."""
        number = self._edge_number(edge_type)
        told = read_lineage(self._storage, self.url).get("convert")
        options = told.get("options") if isinstance(told, dict) else None
        wanted = options.get("edge_id_col") if isinstance(options, dict) else None
        name, schema = edge_type_text(self.edge_types[number]), self.metadata.edge_schemas[number]
        wanted = tuple(wanted) if isinstance(wanted, list) else ()
        return next((column.name for column in schema.columns if is_edge_id_column(name, column, wanted)), None)

    def card(self) -> Card:
        """See ``Showable``."""
        metadata, names = self.metadata, self._edges.types.names
        schemas: Sequence[NodeTypeSchema | EdgeTypeSchema] = (*metadata.node_schemas, *metadata.edge_schemas)
        rows = type_rows(
            {name: self.num_nodes(name) for name in self.node_types},
            {name: self.num_edges(name) for name in names},
            {
                name: [column.name for column in schema.columns]
                for name, schema in zip((*self.node_types, *names), schemas, strict=True)
            },
        )
        layouts = " and ".join(metadata.layouts)
        side = "destination" if metadata.primary_layout == "csc" else "source"
        order = f'edges(): by edge ID; column() of edges: by {side}, order="rows"'
        title = f"Graph({display_url(self.url)!r}): {count(metadata.num_parts, 'partition')}, {layouts}"
        return Card(title, rows, (order,))

    def close(self) -> None:
        """Let go of connections and temporary files. Memory maps stay valid."""
        self._storage.close()

    # ---- what there is

    @property
    def metadata(self) -> GraphMetadata:
        """Return metadata.json."""
        return self._store.metadata

    @property
    def node_types(self) -> tuple[str, ...]:
        """Return the names of the node types."""
        return self.metadata.node_types

    @property
    def edge_types(self) -> tuple[EdgeType, ...]:
        """Return the edge types, as (source type, relation, destination type)."""
        return self.metadata.edge_types

    @property
    def reader(self) -> StoreReader:
        """Return what reads the arrays of the store."""
        return self._store

    def num_nodes(self, node_type: NodeTypeLike | None = None) -> int:
        """Return the number of nodes of a type, or of all types."""
        return self._count(self._nodes, None if node_type is None else self._nodes.types.id(node_type))

    def num_edges(self, edge_type: EdgeTypeLike | None = None) -> int:
        """Return the number of edges of a type, or of all types."""
        return self._count(self._edges, None if edge_type is None else self._edge_number(edge_type))

    # ---- arrays

    @overload
    def adjacency(
        self, edge_type: EdgeTypeLike | None = None, partition: int | None = None, layout: Layout | None = None
    ) -> Adjacency: ...
    @overload
    def adjacency(self, edge_type: EdgeTypeLike | None = None, partition: None = None, *, layout: Literal["coo"]) -> Edges: ...
    def adjacency(
        self,
        edge_type: EdgeTypeLike | None = None,
        partition: int | None = None,
        layout: Layout | Literal["coo"] | None = None,
    ) -> Adjacency | Edges:
        """Return the rows of an edge type, of one partition or of all; ``layout`` None: the primary one.

        A partition has the rows of its own nodes: row 0 is the first of them (``PartitionBook.node_range``). Neighbors are
        typed IDs everywhere. A layout that the store lacks is made in memory and kept (16 to 24 bytes an edge while it is
        made); its neighbors ascend. ``coo`` is ``edges()``, as rows lie where there are no edge IDs, and is kept, too.
        """
        edge, layout = self._edge_number(edge_type), layout or self.metadata.primary_layout
        if layout == "coo":
            if partition is not None:
                raise UsageError("coo is of all edges, not of a partition", fix="leave out partition")
            if edge not in self._coo:
                has_ids = self.metadata.edge_schemas[edge].edge_id_dtype is not None
                self._coo[edge] = self.edges(self.edge_types[edge], "ids" if has_ids else "rows")
            return self._coo[edge]
        if layout not in ("csc", "csr"):
            raise UsageError(f"there is no layout {layout!r}", fix=one_of(("coo", "csc", "csr"), found=layout))
        rows = self._rows_of(edge, layout, with_ids=True)
        if partition is None:
            return rows.join()
        partition = self._partition(partition)
        if layout in self.metadata.layouts:
            return rows.parts[partition]
        sizes = self.metadata.num_nodes_per_chunk[self._row_type(edge, layout)]
        return rows.parts[0].rows(sum(sizes[:partition]), sum(sizes[: partition + 1]))

    def edges(self, edge_type: EdgeTypeLike | None = None, order: EdgeOrder = "ids", columns: Sequence[str] = ()) -> Edges:
        """Return all edges of a type: ``src, dst, edge_ids = graph.edges()``, [m] each, by edge ID.

        ``order``: ``ids``, by edge ID; ``rows``, as rows of the primary layout lie, and with them what ``column`` returns; or
        ``srcdst``, by source, then destination, then edge ID. DGL's ``eid`` and ``""`` are the first two. ``columns`` are names
        of columns to have in the same order, as ``Edges.columns``. Edge IDs are None where the store holds none; then there is
        no order by them.
        """
        edge = self._edge_number(edge_type)
        order = check_order(order)
        rows = self._stored_rows(edge, self.metadata.primary_layout)
        positions = self._in_order(edge, order)
        if positions is None:
            ends = rows.all_rows(), rows.entries("indices").astype(np.int64)
            src, dst = ends[::-1] if self._is_csc(rows) else ends
            ids = rows.edge_ids()
        else:
            src, dst = self._ends_at(rows, positions)
            has_ids = rows.parts[0].edge_ids is not None
            ids = np.arange(positions.size) if order == "ids" else rows.take("edge_ids", positions) if has_ids else None
        type_ = self.edge_types[edge]
        names = [columns] if isinstance(columns, str) else columns
        found = {name: _ordered(self.column(type_, name), positions) for name in names}
        return Edges(src, dst, ids, order, found)

    def column(
        self,
        type_: NodeTypeLike | EdgeTypeLike,
        name: str,
        partition: int | None = None,
        order: EdgeOrder | None = None,
    ) -> Column:
        """Return a column of a node type, by node, or of an edge type, as rows lie: ``order="rows"``.

        ``order="ids"`` and ``order="srcdst"`` have the edges as ``edges`` has them with these; then all partitions are asked
        for. Dense: an array [n, ...]; texts: ``TextColumn``; else ``RaggedColumn``, ``SparseColumn`` or ``TemporalColumn``.
        Rows without a value are 0 or empty; ``present`` tells which. Weights and times are columns, too: ``weight``, ``time``.
        """
        folder, columns = self._owner(type_)
        column = _find_column(columns, name, type_)
        positions = self._column_order(type_, partition, order)
        joined: Column = join_columns([map_column(self._store, part, folder, column) for part in self._parts(partition)])
        ordered: Column = _ordered(joined, positions)
        return ordered

    def present(
        self,
        type_: NodeTypeLike | EdgeTypeLike,
        name: str,
        partition: int | None = None,
        order: EdgeOrder | None = None,
    ) -> NDArray[np.bool_] | None:
        """Return which rows have a value in a column, in the order of ``column``: bool[n], None where all have one."""
        folder, columns = self._owner(type_)
        column = _find_column(columns, name, type_)
        positions = self._column_order(type_, partition, order)
        if not column.optional:
            return None
        path = ColumnPaths(f"{folder}/{column.path}").present
        joined = np.asarray(join_columns([map_array(self._store, part, path) for part in self._parts(partition)]))
        return np.asarray(_ordered(joined, positions))

    def take(self, type_: NodeTypeLike | EdgeTypeLike, name: str, ids: IdLike) -> Column:
        """Return a column for some nodes (typed IDs) or edges (edge IDs; rows where the store holds none), in their order.

        Of a store at a URL only the parts of a dense column are read that hold them.
        """
        folder, columns = self._owner(type_)
        column = _find_column(columns, name, type_)

        def read(part: int, rows: Ints) -> Any:
            if column.kind == "dense":
                return self._store.array(part, f"{folder}/{column.path}.npy").take(rows)
            return map_column(self._store, part, folder, column)[rows]

        found: Column = self._take(type_, ids, read)
        return found

    def take_present(self, type_: NodeTypeLike | EdgeTypeLike, name: str, ids: IdLike) -> NDArray[np.bool_] | None:
        """Return which of some nodes or edges have a value in a column, as ``take`` has them: bool[k]; None where all have."""
        folder, columns = self._owner(type_)
        column = _find_column(columns, name, type_)
        if not column.optional:
            return None
        path = ColumnPaths(f"{folder}/{column.path}").present
        return np.asarray(self._take(type_, ids, lambda part, rows: self._store.array(part, path).take(rows)))

    def columns(self, type_: NodeTypeLike | EdgeTypeLike) -> tuple[ColumnSchema, ...]:
        """Return what columns a node type or an edge type has."""
        return self._owner(type_)[1]

    def ids(self, node_type: NodeTypeLike | None = None, partition: int | None = None) -> NDArray[Any] | TextColumn:
        """Return the raw IDs of the nodes of a type, in typed order: int64[n], uint64[n], or a ``TextColumn``."""
        number = self._node_number(node_type)
        counts = self.metadata.num_nodes_per_chunk[number]
        kind = self.metadata.node_schemas[number].raw_ids
        paths = NodePaths(node_folder(self.node_types[number]))
        parts = self._parts(partition)
        if kind == "identity":
            start = sum(counts[: parts[0]])
            return np.arange(start, start + sum(counts[part] for part in parts))
        if kind != "string":
            return np.asarray(join_columns([map_array(self._store, part, paths.raw_ids) for part in parts]))
        names = (paths.texts.offsets, paths.texts.values)
        texts = [TextColumn(*(map_array(self._store, part, name) for name in names)) for part in parts]
        joined: TextColumn = join_columns(texts)
        return joined

    def _take(self, type_: NodeTypeLike | EdgeTypeLike, ids: IdLike, read: Callable[[int, Ints], Any]) -> Any:
        """Read rows, partition after partition; ``read`` gets a partition and rows that count from its start."""
        if isinstance(type_, str) and type_ in self.node_types:
            number = self.node_types.index(type_)
            rows = self._nodes.check(number, ids)[0].ravel()
            counts = self.metadata.num_nodes_per_chunk[number]
        else:
            number = self._edge_number(type_)
            rows = self._edges.check(number, ids)[0].ravel()
            if self.metadata.edge_schemas[number].edge_id_dtype is not None:
                rows = self._positions_of(number)[rows].astype(np.int64, copy=False)
            counts = self.metadata.num_edges_per_chunk[number]
        starts = np.cumsum([0, *counts])
        parts = np.searchsorted(starts[1:-1], rows, side="right")
        order = np.argsort(parts, kind="stable")
        cuts = np.searchsorted(parts[order], np.arange(len(counts) + 1)).tolist()
        pieces = []
        for part, (low, high) in enumerate(pairwise(cuts)):
            if low < high or not part:  # the first one always: it has the dtype
                pieces.append(read(part, rows[order[low:high]] - starts[part]))
        joined = join_columns(pieces)
        return joined if len(pieces) == 1 else joined[np.argsort(order)]

    # ---- neighbors

    @overload
    def predecessors(self, nodes: int, edge_type: EdgeTypeLike | None = None, radius: int = 1) -> Ints: ...
    @overload
    def predecessors(self, nodes: IdLike, edge_type: EdgeTypeLike | None = None, radius: int = 1) -> Ints | RaggedColumn: ...
    def predecessors(self, nodes: IdLike, edge_type: EdgeTypeLike | None = None, radius: int = 1) -> Ints | RaggedColumn:
        """Return the sources of the edges that enter a node: int64[k]; a ``RaggedColumn`` for an array of nodes.

        A source stands there once for each edge, in the order of the row. With a ``radius`` above 1: the nodes that reach it
        over 1 to ``radius`` edges, each once, ascending. On a store without CSC the first call makes one in memory (8 to 16
        bytes an edge, and as much again while it does), whose neighbors ascend.
        """
        return self._neighbors(nodes, edge_type, "csc", radius)

    @overload
    def successors(self, nodes: int, edge_type: EdgeTypeLike | None = None, radius: int = 1) -> Ints: ...
    @overload
    def successors(self, nodes: IdLike, edge_type: EdgeTypeLike | None = None, radius: int = 1) -> Ints | RaggedColumn: ...
    def successors(self, nodes: IdLike, edge_type: EdgeTypeLike | None = None, radius: int = 1) -> Ints | RaggedColumn:
        """Return the destinations of the edges that leave a node: int64[k]; a ``RaggedColumn`` for an array of nodes.

        A destination stands there once for each edge, in the order of the row. With a ``radius`` above 1: the nodes that it
        reaches over 1 to ``radius`` edges, each once, ascending. On a store without CSR the first call makes one in memory (8
        to 16 bytes an edge, and as much again while it does), whose neighbors ascend.
        """
        return self._neighbors(nodes, edge_type, "csr", radius)

    def in_degrees(self, nodes: IdLike | None = None, edge_type: EdgeTypeLike | None = None) -> Any:
        """Return the number of edges that enter nodes, or all nodes: int64[k].

        On a store without CSC the first call reads all edges, and keeps 8 bytes a node.
        """
        return self._degrees_of(nodes, edge_type, "csc")

    def out_degrees(self, nodes: IdLike | None = None, edge_type: EdgeTypeLike | None = None) -> Any:
        """Return the number of edges that leave nodes, or all nodes: int64[k].

        On a store without CSR the first call reads all edges, and keeps 8 bytes a node.
        """
        return self._degrees_of(nodes, edge_type, "csr")

    # ---- edges

    def find_edges(self, edge_ids: IdLike, edge_type: EdgeTypeLike | None = None) -> tuple[Any, Any]:
        """Return (sources, destinations) of edge IDs: int64[k] each.

        The first call reads all edge IDs of the type, and keeps 4 or 8 bytes an edge. Raises UsageError where the store holds
        no edge IDs.
        """
        edge = self._edge_number(edge_type)
        ids, is_scalar = self._edges.check(edge, edge_ids)
        positions = self._positions_of(edge)[ids.ravel()].astype(np.int64, copy=False)
        src, dst = self._ends_at(self._stored_rows(edge, self.metadata.primary_layout), positions)
        return (int(src[0]), int(dst[0])) if is_scalar else (src.reshape(ids.shape), dst.reshape(ids.shape))

    def edge_ids(self, src: IdLike, dst: IdLike, edge_type: EdgeTypeLike | None = None, *, return_uv: bool = False) -> Any:
        """Return the edge ID of each pair of nodes, of several edges the lowest: int64[k].

        With ``return_uv``: (sources, destinations, edge IDs) of all edges between the pairs, pair after pair, by edge ID.
        Raises DataError for a pair without an edge, UsageError where the store holds no edge IDs.
        """
        edge = self._edge_number(edge_type)
        self._check_has_ids(edge)
        pairs = self._check_pairs(edge, src, dst)
        counts, positions, rows = self._find(edge, pairs)
        if not counts.all():
            at = int(np.argmin(counts))
            raise DataError(
                f"there is no edge from {pairs.src[at]} to {pairs.dst[at]} (position {at})",
                fix="has_edges tells where there is one",
            )
        which = np.repeat(np.arange(counts.size), counts)
        ids = rows.take("edge_ids", positions)
        order = np.lexsort((ids, which))
        if return_uv:
            return pairs.src[which], pairs.dst[which], ids[order]
        first = ids[order][np.cumsum(counts) - counts]
        return int(first[0]) if pairs.shape == () else first.reshape(pairs.shape)

    def has_edges(self, src: IdLike, dst: IdLike, edge_type: EdgeTypeLike | None = None) -> Any:
        """Return whether there is an edge between each pair of nodes: bool[k]."""
        edge = self._edge_number(edge_type)
        pairs = self._check_pairs(edge, src, dst)
        found = self._find(edge, pairs)[0] > 0
        return bool(found[0]) if pairs.shape == () else found.reshape(pairs.shape)

    has_edges_between = has_edges

    # ---- types

    def _node_number(self, node_type: NodeTypeLike | None) -> int:
        if node_type is None:
            return _only(self.node_types, "node type")
        return self._nodes.types.id(node_type)

    def _edge_number(self, edge_type: EdgeTypeLike | None) -> int:
        names = self._edges.types.names
        if edge_type is None:
            return _only(names, "edge type")
        same = self._with_relation(edge_type)
        if len(same) > 1:
            raise DataError(f"{edge_type!r} is several edge types", fix=one_of(names[i] for i in same))
        return same[0] if same else self._edges.types.id(edge_type)

    def _with_relation(self, name: object) -> list[int]:
        return [number for number, (_, relation, _) in enumerate(self.edge_types) if relation == name]

    def _owner(self, type_: NodeTypeLike | EdgeTypeLike) -> tuple[str, tuple[ColumnSchema, ...]]:
        """Return the folder and the columns of a node type, or else of an edge type."""
        if isinstance(type_, int | np.integer):
            raise UsageError(f"{int(type_)} may be a node type or an edge type", fix="pass its name")
        if isinstance(type_, str) and type_ in self.node_types:
            number = self.node_types.index(type_)
            return node_folder(type_), self.metadata.node_schemas[number].columns
        if isinstance(type_, str) and ":" not in type_ and not self._with_relation(type_):
            raise DataError(f"unknown type {type_!r}", fix=one_of([*self.node_types, *self._edges.types.names], found=type_))
        edge = self._edge_number(type_)
        return edge_folder(self.edge_types[edge]), self.metadata.edge_schemas[edge].columns

    def _count(self, space: TypedSpace, number: int | None) -> int:
        return int(space.offsets[-1] if number is None else space.offsets[number + 1] - space.offsets[number])

    def _partition(self, partition: int) -> int:
        count = self.metadata.num_parts
        if not 0 <= partition < count:
            raise DataError(
                f"partition {partition} is out of range: valid ones are in [0, {count})",
                fix="name one of these, or None for all",
            )
        return int(partition)

    def _parts(self, partition: int | None) -> list[int]:
        return list(range(self.metadata.num_parts)) if partition is None else [self._partition(partition)]

    # ---- rows

    def _stored_rows(self, edge: int, layout: Layout) -> PartedRows:
        """Map the rows of a layout that is stored."""
        if (edge, layout) not in self._rows:
            paths = LayoutPaths(f"{edge_folder(self.edge_types[edge])}/{layout}")
            has_ids = self.metadata.edge_schemas[edge].edge_id_dtype is not None
            src, _, dst = self.edge_types[edge]
            others = self.num_nodes(src if layout == "csc" else dst)
            parts = []
            for part in range(self.metadata.num_parts):
                indptr, indices = (map_array(self._store, part, path) for path in (paths.indptr, paths.indices))
                ids = map_array(self._store, part, paths.edge_ids) if has_ids else None
                parts.append(Adjacency(layout, indptr, indices, ids, others))
            self._rows[edge, layout] = PartedRows.of(tuple(parts))
        return self._rows[edge, layout]

    def _rows_of(self, edge: int, layout: Layout, *, with_ids: bool = False) -> PartedRows:
        """Map the rows of a layout, or make them in memory from the other one, with edge IDs where these are wanted."""
        if layout in self.metadata.layouts:
            return self._stored_rows(edge, layout)
        stored = self._stored_rows(edge, self.metadata.primary_layout)
        if (edge, layout) not in self._rows or (with_ids and stored.has_ids and not self._rows[edge, layout].has_ids):
            from graphprep.edges.arrays import transpose

            made = transpose(stored.join(), edge_ids="keep" if with_ids else "drop")
            self._rows[edge, layout] = PartedRows.of((made,))
        return self._rows[edge, layout]

    def _is_csc(self, rows: PartedRows) -> bool:
        return rows.parts[0].layout == "csc"

    def _row_type(self, edge: int, layout: Layout) -> int:
        """Return the node type that has the rows of a layout."""
        src, _, dst = self.edge_types[edge]
        return self.node_types.index(dst if layout == "csc" else src)

    def _neighbors(self, nodes: IdLike, edge_type: EdgeTypeLike | None, layout: Layout, radius: int) -> Ints | RaggedColumn:
        edge = self._edge_number(edge_type)
        if radius < 1:
            raise UsageError(f"radius must be at least 1, found {radius}", fix="count edges")
        src, _, dst = self.edge_types[edge]
        if radius > 1 and src != dst:
            raise UsageError(
                f"no path of {radius} edges leads from {src!r} to {dst!r}", fix="ask with radius=1, or another edge type"
            )
        ids, is_scalar = self._nodes.check(self._row_type(edge, layout), nodes)
        rows = self._rows_of(edge, layout)
        offsets, neighbors = rows.neighbors(ids.ravel()) if radius == 1 else rows.reach(ids.ravel(), radius)
        return neighbors if is_scalar else RaggedColumn(offsets, neighbors)

    def _degrees_of(self, nodes: IdLike | None, edge_type: EdgeTypeLike | None, layout: Layout) -> Any:
        edge = self._edge_number(edge_type)
        is_stored = layout in self.metadata.layouts
        if not is_stored and (edge, layout) not in self._degrees:
            self._degrees[edge, layout] = self._stored_rows(edge, self.metadata.primary_layout).count_neighbors()
        if nodes is None:
            return self._stored_rows(edge, layout).degrees() if is_stored else self._degrees[edge, layout].copy()
        ids, is_scalar = self._nodes.check(self._row_type(edge, layout), nodes)
        flat = ids.ravel()
        found = self._stored_rows(edge, layout).degrees(flat) if is_stored else self._degrees[edge, layout][flat]
        return int(found[0]) if is_scalar else found.reshape(ids.shape)

    # ---- edges

    def _check_has_ids(self, edge: int) -> None:
        if self.metadata.edge_schemas[edge].edge_id_dtype is None:
            name = self._edges.types.names[edge]
            raise UsageError(f"the store holds no edge IDs of {name!r}", fix="convert without --no-edge-ids")

    def _positions_of(self, edge: int) -> NDArray[Any]:
        """Return the position of every edge ID among the rows of the primary layout: int32[m] or int64[m], kept."""
        self._check_has_ids(edge)
        if edge not in self._positions:
            rows = self._stored_rows(edge, self.metadata.primary_layout)
            positions = np.empty(rows.num_edges, np.int32 if rows.num_edges < 2**31 else np.int64)
            for part, start in zip(rows.parts, rows.entry_starts.tolist(), strict=False):
                positions[part.edge_ids] = np.arange(start, start + part.num_edges, dtype=positions.dtype)
            self._positions[edge] = positions
        return self._positions[edge]

    def _in_order(self, edge: int, order: EdgeOrder) -> NDArray[Any] | None:
        """Return the position of each edge in an order, among the rows of the primary layout; None: as they are."""
        if order == "rows":
            return None
        if order == "ids":
            return self._positions_of(edge)
        from graphprep.edges.sorted_arrays import sort_edges

        has_ids = self.metadata.edge_schemas[edge].edge_id_dtype is not None
        src, dst, _ = self.edges(self.edge_types[edge], "ids" if has_ids else "rows")
        places = sort_edges(src, dst)[2]
        return self._positions_of(edge)[places] if has_ids else places

    def _column_order(
        self, type_: NodeTypeLike | EdgeTypeLike, partition: int | None, order: EdgeOrder | None
    ) -> NDArray[Any] | None:
        """Check the order that is asked for of a column, and return as ``_in_order`` does."""
        if order is None:
            return None
        order = check_order(order)
        if isinstance(type_, str) and type_ in self.node_types:
            raise UsageError(f"order belongs to edges: columns of {type_!r} lie by node", fix="leave out order")
        if partition is not None and order != "rows":
            raise UsageError(f"order {order!r} is one of all edges, not of a partition", fix="leave out partition, or order")
        return self._in_order(self._edge_number(type_), order)

    def _ends_at(self, rows: PartedRows, positions: NDArray[Any]) -> tuple[Ints, Ints]:
        ends = rows.rows_at(positions), rows.take("indices", positions)
        return ends[::-1] if self._is_csc(rows) else ends

    def _check_pairs(self, edge: int, src: IdLike, dst: IdLike) -> _Pairs:
        numbers = (self._row_type(edge, "csr"), self._row_type(edge, "csc"))
        (srcs, _), (dsts, _) = (self._nodes.check(number, ids) for number, ids in zip(numbers, (src, dst), strict=True))
        try:
            srcs, dsts = np.broadcast_arrays(srcs, dsts)
        except ValueError:
            raise UsageError(f"src has shape {srcs.shape}, dst {dsts.shape}", fix="pass one of each for every pair") from None
        return _Pairs(srcs.ravel(), dsts.ravel(), srcs.shape)

    def _find(self, edge: int, pairs: _Pairs) -> tuple[Ints, Ints, PartedRows]:
        """Return (the number of edges of each pair, their positions pair after pair, the rows in which they stand)."""
        rows = self._stored_rows(edge, self.metadata.primary_layout)
        own, other = (pairs.dst, pairs.src) if self._is_csc(rows) else (pairs.src, pairs.dst)
        firsts, inverse = _distinct(own, other)
        counts, positions = rows.find(own[firsts], other[firsts])
        starts, lengths = (np.cumsum(counts) - counts)[inverse], counts[inverse]
        at = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(int(lengths.sum()))
        return lengths, positions[at], rows


class _Ends(NamedTuple):
    """See ``Edges``."""

    src: Ints
    dst: Ints
    edge_ids: NDArray[np.integer[Any]] | None


class Edges(_Ends):
    """Edges in an ``order``: a tuple of sources, destinations (int64[m]) and edge IDs ([m], or None); ``columns`` by name."""

    order: EdgeOrder
    columns: Mapping[str, Column]

    def __new__(
        cls, src: Ints, dst: Ints, edge_ids: NDArray[Any] | None, order: EdgeOrder, columns: Mapping[str, Column]
    ) -> Edges:
        """Take the arrays, which are aligned."""
        made = super().__new__(cls, src, dst, edge_ids)
        made.order, made.columns = order, columns
        return made

    def __repr__(self) -> str:
        names = ["src", "dst", *(["edge_ids"] if self.edge_ids is not None else []), *self.columns]
        return f"Edges({self.src.size:,} {_ORDER_WORDS[self.order]} (order={self.order!r}): {', '.join(names)})"


def check_order(order: object) -> EdgeOrder:
    """Return an order of edges, also for DGL's word. Raises UsageError where there is none."""
    for known in _ORDERS:
        if order == known or (isinstance(order, str) and _DGL_ORDERS.get(order) == known):
            return known
    raise UsageError(f"there is no order {order!r}", fix=one_of(_ORDERS, found=order))


def _ordered(column: Any, positions: NDArray[Any] | None) -> Any:
    return column if positions is None else column[positions]


@dataclass(frozen=True)
class _Pairs:
    """Sources and destinations (int64[k] each) of what was asked, and its shape, () for scalars."""

    src: Ints
    dst: Ints
    shape: tuple[int, ...]


def _distinct(own: Ints, other: Ints) -> tuple[Ints, Ints]:
    """Return where the distinct pairs stand, ascending, and the number of each pair among them."""
    order = np.lexsort((other, own))
    is_first = np.ones(order.size, np.bool_)
    is_first[1:] = (np.diff(own[order]) != 0) | (np.diff(other[order]) != 0)
    inverse = np.empty(order.size, np.int64)
    inverse[order] = np.cumsum(is_first) - 1
    return order[is_first], inverse


def _only(names: tuple[str, ...], word: str) -> int:
    if len(names) != 1:
        raise UsageError(f"there are {len(names)} {word}s", fix=one_of(names, "pass one of"))
    return 0


def _find_column(columns: tuple[ColumnSchema, ...], name: str, type_: object) -> ColumnSchema:
    for column in columns:
        if column.name == name:
            return column
    raise DataError(f"{type_!r} has no column {name!r}", fix=one_of((one.name for one in columns), found=name))
