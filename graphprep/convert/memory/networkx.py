"""A graph of NetworkX as two tables, and the config that reads them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from graphprep.convert.memory.folder import InMemory, RowsTable, Source, TableSource
from graphprep.convert.memory.tables import EDGE, INPUTS, NODE, MemoryGraph, Settings
from graphprep.model.graph_config import EdgeTable, GraphConfig, NodeTable
from graphprep.model.shown.texts import count


def read_networkx(graph: Any, options: Mapping[str, Any]) -> MemoryGraph:
    """Return a graph's nodes and edges as two tables, with a column for each attribute; undirected edges in both directions."""
    settings = Settings(options, (NODE, EDGE), without=("id_col", "src_col", "dst_col"))
    node_names = _attributes(data for _, data in graph.nodes(data=True))
    edge_names = _attributes(data for _, _, data in graph.edges(data=True))
    id_col, (src_col, dst_col) = _free(["id"], node_names)[0], _free(["src", "dst"], edge_names)
    is_text = any(isinstance(node, str) for node in graph)
    is_signed = any(isinstance(node, int | np.integer) and node < 0 for node in graph)
    empty_type = "string" if is_text else "int64"
    nodes = RowsTable([id_col, *map(str, node_names)], partial(_node_rows, graph, node_names), empty_type)
    edges = RowsTable([src_col, dst_col, *map(str, edge_names)], partial(_edge_rows, graph, edge_names), empty_type)
    origin = f"networkx.{type(graph).__name__}"
    node_file, edge_file = f"{INPUTS}.nodes", f"{INPUTS}.edges"
    sources: dict[str, Source] = {
        node_file: TableSource(lambda _: nodes, f"{origin}, {count(len(graph), 'node')}"),
        edge_file: TableSource(lambda _: edges, f"{origin}, {count(graph.number_of_edges(), 'edge')}"),
    }
    edge_table = EdgeTable(
        *EDGE,
        settings.table(EDGE, (edge_file,), edge_file),
        src_col=src_col,
        dst_col=dst_col,
        weight_col=settings.of("weight_col", EDGE),
        time_col=settings.of("time_col", EDGE),
        time_unit=settings.of("time_unit", EDGE),
    )
    node_table = settings.table(NODE, (node_file,), node_file)
    weight_col = settings.of("weight_col", NODE, alone=True)
    columns, dropped = settings.everywhere()
    config = GraphConfig(
        (NodeTable(NODE, node_table, id_col=id_col, weight_col=weight_col),),
        (edge_table,),
        graph_name=str(graph.name) or None,
        id_type=settings.all("id_type") or ("int" if is_signed else None),
        columns=columns,
        dropped=dropped,
    )
    return MemoryGraph(InMemory(sources, tuple(_notes(graph))), graph=config)


def _notes(graph: Any) -> Iterator[str]:
    """Say what a store holds otherwise, and what it does not."""
    if not graph.is_directed():
        yield "the networkx graph has no directions: each edge is there in both"
    names = [str(name) for name in graph.graph if name != "name"]
    if names:
        yield f"left out: attributes of the graph itself: {', '.join(names)}"
    if graph.is_multigraph() and any(not isinstance(key, int) for _, _, key in graph.edges(keys=True)):
        yield "left out: the keys of edges"


def _attributes(rows: Iterable[Mapping[Any, Any]]) -> list[Any]:
    """Return the names of all attributes, in the order in which they occur first."""
    found: dict[Any, None] = {}
    for data in rows:
        for name in data:
            found.setdefault(name)
    return list(found)


def _free(wanted: Sequence[str], taken: Sequence[Any]) -> list[str]:
    """Return names that no attribute has."""
    names = []
    for name in wanted:
        while name in map(str, taken):
            name += "_"  # noqa: PLW2901 - until it is free
        names.append(name)
    return names


def _node_rows(graph: Any, names: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for node, data in graph.nodes(data=True):
        yield node, *(data.get(name) for name in names)


def _edge_rows(graph: Any, names: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    for src, neighbors in graph.adjacency():
        for dst, found in neighbors.items():
            for data in found.values() if graph.is_multigraph() else [found]:
                yield src, dst, *(data.get(name) for name in names)
