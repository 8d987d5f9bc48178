"""A stored graph as SciPy, NetworkX, PyG, DGL and GLT know graphs. Each library is imported when it is asked for."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import UsageError
from graphprep.model.ids import EdgeTypeLike
from graphprep.model.schema import ColumnSchema, EdgeType, edge_type_text
from graphprep.stages.stored_columns import TextColumn

if TYPE_CHECKING:
    from graphprep.stages.stored_graph import Graph

_MASKS = ("train_mask", "val_mask", "test_mask")


def to_scipy(graph: Graph, edge_type: EdgeTypeLike | None, weight: str | None) -> Any:
    """See ``Graph.to_scipy``."""
    sparse = _load("scipy.sparse", "scipy")
    rows = graph.adjacency(edge_type)
    values = np.ones(rows.num_edges, np.float32) if weight is None else _edge_numbers(graph, edge_type, weight)
    is_csc = rows.layout == "csc"
    shape = (rows.num_neighbors, rows.num_rows) if is_csc else (rows.num_rows, rows.num_neighbors)
    return (sparse.csc_array if is_csc else sparse.csr_array)((values, rows.indices, rows.indptr), shape=shape)


def to_glt_topology(graph: Graph, edge_type: EdgeTypeLike | None, weight: str | None) -> Any:
    """See ``Graph.to_glt_topology``."""
    topology = _load("graphlearn_torch.data", "torch graphlearn-torch").Topology
    rows = graph.adjacency(edge_type)
    arrays = (rows.indices, rows.indptr) if rows.layout == "csc" else (rows.indptr, rows.indices)
    layout = rows.layout.upper()
    return topology(
        tuple(_tensor(array) for array in arrays),
        edge_ids=None if rows.edge_ids is None else _tensor(rows.edge_ids),
        edge_weights=None if weight is None else _tensor(_edge_numbers(graph, edge_type, weight)),
        input_layout=layout,
        layout=layout,
    )


# ---- NetworkX


def to_networkx(graph: Graph, ids: Literal["raw", "typed"]) -> Any:
    """See ``Graph.to_networkx``."""
    made = _load("networkx", "networkx").MultiDiGraph(name=graph.metadata.graph_name)
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


def _attributes(graph: Graph, type_: str | EdgeType) -> list[dict[str, Any]]:
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


def to_pyg(graph: Graph) -> Any:
    """See ``Graph.to_pyg``."""
    data = _load("torch_geometric.data", "torch torch-geometric")
    is_plain = len(graph.node_types) == 1 and len(graph.edge_types) <= 1
    made = data.Data() if is_plain else data.HeteroData()
    for node_type in graph.node_types:
        target = made if is_plain else made[node_type]
        target.num_nodes = graph.num_nodes(node_type)
        for name, values in _pyg_columns(graph, node_type, "x"):
            target[name] = _tensor(values)
    for edge_type in graph.edge_types:
        target = made if is_plain else made[edge_type]
        src, dst, edge_ids = graph.edges(edge_type, order="rows")
        target["edge_index"] = _tensor(np.stack([src, dst]))
        for name, values in _pyg_columns(graph, edge_type, "edge_attr"):
            target[name] = _tensor(values)
        if edge_ids is not None:
            target["edge_id"] = _tensor(edge_ids.astype(np.int64))
    return made


def _pyg_columns(graph: Graph, type_: str | EdgeType, features: str) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield dense columns under the names that PyG's users know; those of edges begin with ``edge_``."""
    prefix = "" if isinstance(type_, str) else "edge_"
    found = list(_dense_columns(graph, type_))
    names = {column.name: column.name if column.name.startswith(prefix) else prefix + column.name for column, _ in found}
    wide = [column.name for column, values in found if column.role is None and values.ndim == 2]
    labels = [column.name for column, _ in found if column.role == "label"]
    for new, old in ((features, wide), ("edge_label" if prefix else "y", labels)):
        if len(old) == 1 and new not in names.values():
            names[old[0]] = new
    for column, values in found:
        if column.role == "split":
            yield from _masks(graph, type_, column, values)
        else:
            yield names[column.name], values


# ---- DGL


def to_dgl(graph: Graph) -> Any:
    """See ``Graph.to_dgl``."""
    dgl = _load("dgl", "torch dgl")
    ends = {edge_type: tuple(_tensor(end) for end in _edges_by_id(graph, edge_type)[:2]) for edge_type in graph.edge_types}
    made = dgl.heterograph(ends, num_nodes_dict={node_type: graph.num_nodes(node_type) for node_type in graph.node_types})
    for node_type in graph.node_types:
        for name, values in _dgl_columns(graph, node_type):
            made.nodes[node_type].data[name] = _tensor(values)
    for edge_type in graph.edge_types:
        order = _edges_by_id(graph, edge_type)[2]
        for name, values in _dgl_columns(graph, edge_type):
            made.edges[edge_type].data[name] = _tensor(values if order is None else values[order])
    return made


def _edges_by_id(graph: Graph, edge_type: EdgeType) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """Return sources and destinations by edge ID, and the row of each edge; None: in the order of rows, which have no IDs."""
    src, dst, edge_ids = graph.edges(edge_type, order="rows")
    if edge_ids is None:
        return src, dst, None
    order = np.empty(edge_ids.size, np.int64)
    order[edge_ids] = np.arange(edge_ids.size)
    return src[order], dst[order], order


def _dgl_columns(graph: Graph, type_: str | EdgeType) -> Iterator[tuple[str, NDArray[Any]]]:
    for column, values in _dense_columns(graph, type_):
        yield column.name, values
        if column.role == "split":
            yield from _masks(graph, type_, column, values)


# ---- what they share


def _dense_columns(graph: Graph, type_: str | EdgeType) -> Iterator[tuple[ColumnSchema, NDArray[Any]]]:
    for column in graph.columns(type_):
        values = graph.column(type_, column.name)
        if isinstance(values, np.ndarray):
            yield column, values


def _masks(
    graph: Graph, type_: str | EdgeType, column: ColumnSchema, split: NDArray[Any]
) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield the three masks of a split: 0 is train, 1 valid, 2 test."""
    present = graph.present(type_, column.name)
    for number, name in enumerate(_MASKS):
        mask = split == number
        yield name, mask if present is None else mask & present


def _edge_numbers(graph: Graph, edge_type: EdgeTypeLike | None, name: str) -> NDArray[Any]:
    """Return an edge column of one number an edge, in row order. Raises UsageError for another one."""
    owner = graph.edge_types[0] if edge_type is None else edge_type
    values = graph.column(owner, name)
    if not isinstance(values, np.ndarray) or values.ndim != 1:
        raise UsageError(f"column {name!r} is not one number for each edge", fix="name another one")
    return values


def _tensor(array: NDArray[Any]) -> Any:
    """Return a tensor of its own: one over a read-only memory map would end the process where it is written to."""
    return import_module("torch").from_numpy(np.array(array))


def _load(module: str, packages: str) -> Any:
    """Import a library. Raises UsageError that says what to install."""
    try:
        return import_module(module)
    except ImportError as error:
        raise UsageError(f"{module.partition('.')[0]} cannot be imported: {error}", fix=f"pip install {packages}") from None
