"""A stored graph as SciPy, NetworkX, PyG, DGL and GLT know graphs. Each library is imported when it is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.arrays import build_adjacency
from graphprep.edges.order_keys import order_keys, order_role
from graphprep.graph.columns import SparseColumn, TextColumn
from graphprep.graph.libraries import load_library
from graphprep.graph.queries import GraphQueries
from graphprep.model.errors import UsageError
from graphprep.model.export import Side
from graphprep.model.ids import EdgeTypeLike
from graphprep.model.schema import ColumnSchema, EdgeType, edge_type_text
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.densify import dense_shape
from graphprep.store.columns.times import check_rule, stand_in
from graphprep.store.columns.torch_rows import ColumnRows, fit, torch_dtype
from graphprep.store.columns.trainers import (
    Attribute,
    all_types,
    check_names,
    check_pyg_names,
    check_pyg_nodes,
    check_wanted,
    dgl_attributes,
    feature_names,
    is_homo,
    pyg_attributes,
    pyg_sparse,
    trainer_columns,
    why_not_pyg,
)

Ints = NDArray[np.int64]
Attributes = list[list[Attribute]]


def to_scipy(graph: GraphQueries, edge_type: EdgeTypeLike | None, weight: str | None) -> Any:
    """See ``Graph.to_scipy``."""
    sparse = load_library("scipy.sparse")
    rows = graph.adjacency(edge_type)
    values = np.ones(rows.num_edges, np.float32) if weight is None else _edge_numbers(graph, edge_type, weight)
    is_csc = rows.layout == "csc"
    shape = (rows.num_neighbors, rows.num_rows) if is_csc else (rows.num_rows, rows.num_neighbors)
    return (sparse.csc_array if is_csc else sparse.csr_array)((values, rows.indices, rows.indptr), shape=shape)


def to_glt_topology(graph: GraphQueries, edge_type: EdgeTypeLike | None, weight: str | None, edge_id_col: str | None) -> Any:
    """See ``Graph.to_glt_topology``."""
    topology = load_library("graphlearn_torch.data").Topology
    rows = graph.adjacency(edge_type)
    edge_ids, edge_id_col = rows.edge_ids, edge_id_col or graph.edge_id_column(edge_type)
    if edge_id_col is not None:
        edge_ids = _edge_numbers(graph, edge_type, edge_id_col)
        if edge_ids.dtype.kind not in "iu":
            raise UsageError(f"edge IDs must be integers, column {edge_id_col!r} has {edge_ids.dtype}", fix="name another one")
        edge_ids = edge_ids.astype(np.int64)
    arrays = (rows.indices, rows.indptr) if rows.layout == "csc" else (rows.indptr, rows.indices)
    layout = rows.layout.upper()
    return topology(
        tuple(as_tensor(array) for array in arrays),
        edge_ids=None if edge_ids is None else as_tensor(edge_ids),
        edge_weights=None if weight is None else as_tensor(_edge_numbers(graph, edge_type, weight)),
        input_layout=layout,
        layout=layout,
    )


# ---- NetworkX


def to_networkx(graph: GraphQueries, ids: Literal["raw", "typed"]) -> Any:
    """See ``Graph.to_networkx``."""
    made = load_library("networkx").MultiDiGraph(name=graph.metadata.graph_name)
    names: dict[str, list[Any]] = {}
    for node_type in graph.node_types:
        own = graph.ids(node_type).tolist() if ids == "raw" else list(range(graph.num_nodes(node_type)))
        names[node_type] = own if len(graph.node_types) == 1 else [(node_type, one) for one in own]
        made.add_nodes_from(zip(names[node_type], _attributes(graph, node_type), strict=True))
    for edge_type in graph.edge_types:
        src, dst, edge_ids = graph.edges(edge_type, order="rows")
        keys: list[Any] = list(range(src.size)) if edge_ids is None else edge_ids.tolist()
        if len(graph.edge_types) > 1:
            keys = [(edge_type_text(edge_type), key) for key in keys]
        sources = [names[edge_type[0]][node] for node in src.tolist()]
        destinations = [names[edge_type[2]][node] for node in dst.tolist()]
        made.add_edges_from(zip(sources, destinations, keys, _attributes(graph, edge_type), strict=True))
    return made


def _attributes(graph: GraphQueries, type_: str | EdgeType) -> list[dict[str, Any]]:
    """Return the columns of all nodes or edges as attributes, where there is a value: Python's own, or arrays."""
    count = graph.num_nodes(type_) if isinstance(type_, str) else graph.num_edges(type_)
    rows: list[dict[str, Any]] = [{} for _ in range(count)]
    for column in graph.columns(type_):
        values: Any = graph.column(type_, column.name)
        is_plain = isinstance(values, TextColumn) or (column.kind == "dense" and not column.item_shape)
        listed = values.tolist() if is_plain else [values[row] for row in range(count)]
        present = graph.present(type_, column.name)
        for row in range(count) if present is None else np.flatnonzero(present).tolist():
            rows[row][column.name] = listed[row]
    return rows


# ---- PyG


def to_pyg(graph: GraphQueries, features: str | Sequence[str], missing_time: str) -> Any:
    """See ``Graph.to_pyg``."""
    check_rule(missing_time)
    data = load_library("torch_geometric.data")
    homo, features = is_homo(graph.metadata), features.split(",") if isinstance(features, str) else features
    nodes, edges = _pyg_attributes(graph, features, homo=homo)
    values: dict[str | EdgeType, dict[str, Any]] = {}
    for node_type, some in zip(graph.node_types, nodes, strict=True):
        values[node_type] = {"num_nodes": graph.num_nodes(node_type), **read_tensors(some, _LoadedRows(graph, node_type))}
        values[node_type] |= _sparse_tensors(graph, node_type, features)
    for edge_type, some in zip(graph.edge_types, edges, strict=True):
        src, dst, edge_ids, order = _edges_by_destination(graph, edge_type)
        kept, times = _missing_times(graph, edge_type, missing_time)
        if kept is not None:
            order = np.arange(src.size) if order is None else order
            src, dst, edge_ids, order = (one[kept[order]] for one in (src, dst, edge_ids, order))
        ends = {"edge_index": as_tensor(np.stack([src, dst])), "edge_id": as_tensor(edge_ids)}
        values[edge_type] = {**ends, **read_tensors(some, _LoadedRows(graph, edge_type, order, times))}
        values[edge_type] |= _sparse_tensors(graph, edge_type, features, order)
    if homo:
        check_pyg_nodes(nodes[0], graph.num_nodes(), values[graph.edge_types[0]]["edge_id"].numel())
        return data.Data.from_dict({name: one for some in values.values() for name, one in some.items()})
    return data.HeteroData.from_dict(values)


def _missing_times(graph: GraphQueries, edge_type: EdgeType, rule: str) -> tuple[NDArray[np.bool_] | None, float | None]:
    """Return which rows of an edge type stay (None: all), and the time of those that have none, by ``--missing-time``.

    Raises DataError where it refuses them, UsageError for what is no time.
    """
    column = next((one for one in graph.columns(edge_type) if one.role == "time" and one.optional), None)
    present = None if column is None else graph.present(edge_type, column.name)
    if column is None or present is None or present.all():
        return None, None
    value = stand_in(rule, edge_type_text(edge_type), column, int(np.count_nonzero(~present)))
    return (present, None) if value is None else (None, value)


def _pyg_attributes(graph: GraphQueries, features: Sequence[str], *, homo: bool) -> tuple[Attributes, Attributes]:
    """Return the tensors of each node type, and of each edge type.

    Raises UsageError for features that are not there, and where two tensors would have one name.
    """
    types = [
        (side, name, [column for column in columns if not why_not_pyg(column)])
        for side, name, columns in all_types(graph.metadata)
    ]
    check_wanted(features, [(name, columns) for _, name, columns in types])
    chosen = [feature_names(name, columns, features, graph.node_types) for _, name, columns in types]
    found = [
        (name, pyg_attributes(side, trainer_columns(columns, some), some))
        for (side, name, columns), some in zip(types, chosen, strict=True)
    ]
    every = all_types(graph.metadata)
    sparse = [pyg_sparse(side, columns, some) for (side, _, columns), some in zip(every, chosen, strict=True)]
    check_pyg_names([(name, [*some, *more]) for (name, some), more in zip(found, sparse, strict=True)], homo=homo)
    return _by_side(graph, [some for _, some in found])


def _sparse_tensors(
    graph: GraphQueries, type_: str | EdgeType, features: Sequence[str], order: Ints | None = None
) -> dict[str, Any]:
    """Return the sparse columns of a type as sparse tensors; ``order``: the row that stands in each place."""
    side: Side = "node" if isinstance(type_, str) else "edge"
    name, rows, found = type_ if isinstance(type_, str) else edge_type_text(type_), _LoadedRows(graph, type_, order), {}
    stored = graph.columns(type_)
    chosen = feature_names(name, [one for one in stored if not why_not_pyg(one)], features, graph.node_types)
    for one in pyg_sparse(side, trainer_columns(stored, chosen), chosen):
        column = graph.column(type_, one.column.name)
        assert isinstance(column, SparseColumn)
        column = column if order is None else column[order]
        coords = column.coords.reshape(-1, one.column.item_shape[0] if one.column.item_shape else 1)
        bounds = np.stack([coords.min(axis=0), coords.max(axis=0)]) if len(coords) else None
        shape = dense_shape(one.column.name, one.column.dtype, one.column.item_shape, [bounds])
        places = np.stack([np.repeat(np.arange(rows.size), np.diff(column.offsets)), *coords.T])
        values = fit(column.values, torch_dtype(one.column), one.column.name, 0)
        make = import_module("torch").sparse_coo_tensor
        found[one.name] = make(as_tensor(places), as_tensor(values), (rows.size, *shape), check_invariants=True)
        found |= read_tensors([one.present], rows) if one.present else {}
    return found


def _edges_by_destination(graph: GraphQueries, edge_type: EdgeType) -> tuple[Ints, Ints, Ints, Ints | None]:
    """Return sources, destinations, edge IDs, and the row of each edge (None: in the order of rows), as in CSC.

    Without edge IDs, rows stand in for them.
    """
    src, dst, edge_ids = graph.edges(edge_type, order="rows")
    ids = np.arange(src.size) if edge_ids is None else edge_ids.astype(np.int64)
    if graph.metadata.primary_layout == "csc":
        return src, dst, ids, None
    order = _invert(ids)
    keys = _neighbor_keys(graph, edge_type, src)
    if keys is not None:
        order = order[np.argsort(keys[order], kind="stable")]
    rows = build_adjacency(src[order], dst[order], (graph.num_nodes(edge_type[0]), graph.num_nodes(edge_type[2])))
    assert rows.edge_ids is not None
    order = order[rows.edge_ids]
    return rows.indices.astype(np.int64), dst[order], ids[order], order


def _neighbor_keys(graph: GraphQueries, edge_type: EdgeType, src: Ints) -> NDArray[Any] | None:
    """Return by what the edges of a destination are ordered, before their IDs, in row order; None: by these alone."""
    order = graph.metadata.edge_schemas[graph.edge_types.index(edge_type)].neighbor_order
    roles = {column.role: column.name for column in graph.columns(edge_type) if column.role is not None}
    role = order_role(order, roles)
    if role is None:
        return src if order == "id" else None
    return order_keys(role, np.asarray(graph.column(edge_type, roles[role])), graph.present(edge_type, roles[role]))


# ---- DGL


def to_dgl(graph: GraphQueries) -> Any:
    """See ``Graph.to_dgl``."""
    dgl = load_library("dgl")
    found = [(name, dgl_attributes(columns)) for _, name, columns in all_types(graph.metadata)]
    for name, some in found:
        check_names(name, some, "DGL")
    nodes, edges = _by_side(graph, [some for _, some in found])
    ends = {edge_type: _edges_by_id(graph, edge_type) for edge_type in graph.edge_types}
    made = dgl.heterograph(
        {edge_type: (as_tensor(src), as_tensor(dst)) for edge_type, (src, dst, _) in ends.items()},
        num_nodes_dict={node_type: graph.num_nodes(node_type) for node_type in graph.node_types},
    )
    for node_type, some in zip(graph.node_types, nodes, strict=True):
        made.nodes[node_type].data.update(read_tensors(some, _LoadedRows(graph, node_type)))
    for edge_type, some in zip(graph.edge_types, edges, strict=True):
        made.edges[edge_type].data.update(read_tensors(some, _LoadedRows(graph, edge_type, ends[edge_type][2])))
    return made


def _edges_by_id(graph: GraphQueries, edge_type: EdgeType) -> tuple[Ints, Ints, Ints | None]:
    """Return sources and destinations by edge ID, and the row of each edge; None: in the order of rows, which have no IDs."""
    src, dst, edge_ids = graph.edges(edge_type, order="rows")
    if edge_ids is None:
        return src, dst, None
    order = _invert(edge_ids)
    return src[order], dst[order], order


# ---- what they share


def _invert(edge_ids: NDArray[Any]) -> Ints:
    """Return the row of every edge ID."""
    rows = np.empty(edge_ids.size, np.int64)
    rows[edge_ids] = np.arange(edge_ids.size)
    return rows


@dataclass(frozen=True)
class _LoadedRows:
    """The columns of a type; ``order``: the row that stands in each place, None: as they are.

    ``time`` is what rows get that have none in the column of times.
    """

    graph: GraphQueries
    type: str | EdgeType
    order: Ints | None = None
    time: float | None = None

    @property
    def size(self) -> int:
        """Return the number of rows."""
        if self.order is not None:
            return self.order.size
        return self.graph.num_nodes(self.type) if isinstance(self.type, str) else self.graph.num_edges(self.type)

    def cells(self, column: ColumnSchema, low: int, high: int, /) -> Cells:
        """See ``ColumnRows``."""
        values = self._take(np.asarray(self.graph.column(self.type, column.name)), low, high)
        values = values.reshape(high - low, math.prod(column.item_shape))
        present = self.present(column, low, high) if column.role == "time" else None
        if self.time is not None and present is not None:
            values = np.where(present[:, None], values, self.time)
        return Cells(None, values)

    def present(self, column: ColumnSchema, low: int, high: int, /) -> NDArray[np.bool_] | None:
        """See ``ColumnRows``."""
        found = self.graph.present(self.type, column.name)
        return None if found is None else np.asarray(self._take(found, low, high), np.bool_)

    def _take(self, values: NDArray[Any], low: int, high: int) -> NDArray[Any]:
        return values[low:high] if self.order is None else values[self.order[low:high]]


def _by_side(graph: GraphQueries, found: Attributes) -> tuple[Attributes, Attributes]:
    """Take apart what ``all_types`` listed: node types, edge types."""
    count = len(graph.node_types)
    return found[:count], found[count:]


class SizedRows(ColumnRows, Protocol):
    """Rows, and how many they are."""

    @property
    def size(self) -> int:
        """Return the number of rows."""


def read_tensors(attributes: Sequence[Attribute], rows: SizedRows) -> dict[str, Any]:
    """Return the tensors of all rows by name."""
    return {one.name: as_tensor(one.read(rows, 0, rows.size)) for one in attributes}


def _edge_numbers(graph: GraphQueries, edge_type: EdgeTypeLike | None, name: str) -> NDArray[Any]:
    """Return an edge column of one number an edge, in row order. Raises UsageError for another one."""
    owner = graph.edge_types[0] if edge_type is None else edge_type
    values = graph.column(owner, name)
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise UsageError(f"column {name!r} is not one number for each edge", fix="name another one")
    return values


def as_tensor(array: NDArray[Any]) -> Any:
    """Return a tensor of its own: one over a read-only memory map would end the process where it is written to."""
    return import_module("torch").from_numpy(np.array(array))
