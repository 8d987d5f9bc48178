"""The nodes and edges of a stored graph as tables of Arrow and pandas, and a column of it as an array."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.graph.arrow import arrow_column
from graphprep.graph.libraries import load_library
from graphprep.graph.queries import EdgeOrder, GraphQueries
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.ids import EdgeTypeLike, NodeTypeLike
from graphprep.storage.read.arrow_arrays import arrow_array


def to_arrow(
    graph: GraphQueries,
    type_: NodeTypeLike | EdgeTypeLike,
    columns: Sequence[str] | None,
    order: EdgeOrder | None,
    ids: Literal["raw", "typed"],
) -> Any:
    """See ``Graph.to_arrow``."""
    import pyarrow as pa

    if ids not in ("raw", "typed"):
        raise UsageError(f"there are no ids {ids!r}", fix=one_of(("raw", "typed"), found=ids))
    schemas = {column.name: column for column in graph.columns(type_)}
    names = list(schemas) if columns is None else [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in schemas:
            raise DataError(f"{type_!r} has no column {name!r}", fix=one_of(schemas, found=name))
    is_node = isinstance(type_, str) and type_ in graph.node_types
    own = _node_keys(graph, str(type_), ids) if is_node else _edge_keys(graph, type_, "ids" if order is None else order, ids)
    order = "ids" if order is None and not is_node else order
    found = [
        arrow_column(schemas[name], graph.column(type_, name, order=order), graph.present(type_, name, order=order))
        for name in names
    ]
    return pa.table([*own.values(), *found], names=[*_free(list(own), names), *names])


def to_pandas(table: Any) -> Any:
    """Return a table as a DataFrame: integers and booleans of which some are missing have a dtype that knows NA."""
    import pyarrow as pa

    pd = load_library("pandas")
    nullable = {pa.bool_(): pd.BooleanDtype()}
    for bits in (8, 16, 32, 64):
        nullable[getattr(pa, f"int{bits}")()] = getattr(pd, f"Int{bits}Dtype")()
        nullable[getattr(pa, f"uint{bits}")()] = getattr(pd, f"UInt{bits}Dtype")()
    made = {
        name: column.to_pandas(types_mapper=nullable.get if column.null_count else None)
        for name, column in zip(table.column_names, table.columns, strict=True)
    }
    return pd.DataFrame(made)


def _node_keys(graph: GraphQueries, name: str, ids: str) -> dict[str, Any]:
    return {"id": _ids(graph, name, np.arange(graph.num_nodes(name)), ids)}


def _edge_keys(graph: GraphQueries, type_: Any, order: EdgeOrder, ids: str) -> dict[str, Any]:
    src_type, _, dst_type = graph.edge_types[graph._edge_number(type_)]
    src, dst, edge_ids = graph.edges(type_, order)
    keys = {"src": _ids(graph, src_type, src, ids), "dst": _ids(graph, dst_type, dst, ids)}
    return keys if edge_ids is None else {**keys, "edge_id": arrow_array(np.asarray(edge_ids, np.int64))}


def _ids(graph: GraphQueries, name: str, typed: NDArray[np.int64], ids: str) -> Any:
    """Return raw IDs of nodes, or their typed IDs."""
    raw = graph.ids(name) if ids == "raw" else None
    if raw is None:
        return arrow_array(typed)
    if isinstance(raw, np.ndarray):
        return arrow_array(raw[typed])
    return raw[typed].to_arrow()


def _free(keys: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names of the columns of IDs: underscores stand in front where a column has the same name."""
    found = []
    for key in keys:
        while key in names:
            key = f"_{key}"  # noqa: PLW2901 - until it is free
        found.append(key)
    return found
