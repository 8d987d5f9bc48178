"""The nodes and edges of a stored graph as tables of Arrow and pandas, and a column of it as an array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.ids import EdgeTypeLike, NodeTypeLike
from graphprep.model.rows import RawTexts
from graphprep.model.schema import ColumnSchema
from graphprep.stages.arrow_columns import column_array, column_type, has_names, names_array, text_array
from graphprep.stages.cells import Cells
from graphprep.stages.graph_clients import load_library
from graphprep.stages.stored_columns import Column, RaggedColumn, SparseColumn, TemporalColumn, TextColumn
from graphprep.storage.arrow_arrays import arrow_array

if TYPE_CHECKING:
    from graphprep.stages.stored_graph import EdgeOrder, Graph

_CHUNK_ROWS = 1 << 16  # of a column: lists and texts count their values with 32 bits
Present = NDArray[np.bool_] | None


def to_arrow(
    graph: Graph,
    type_: NodeTypeLike | EdgeTypeLike,
    columns: Sequence[str] | None,
    order: EdgeOrder | None,
    ids: Literal["raw", "typed"],
) -> Any:
    """See ``Graph.to_arrow``."""
    import pyarrow as pa

    if ids not in ("raw", "typed"):
        raise UsageError(f"there are no ids {ids!r}", fix="use one of raw, typed")
    schemas = {column.name: column for column in graph.columns(type_)}
    names = list(schemas) if columns is None else [columns] if isinstance(columns, str) else list(columns)
    for name in names:
        if name not in schemas:
            raise DataError(f"{type_!r} has no column {name!r}", fix=one_of(schemas))
    is_node = isinstance(type_, str) and type_ in graph.node_types
    own = _node_keys(graph, str(type_), ids) if is_node else _edge_keys(graph, type_, order or "ids", ids)
    order = order if is_node else order or "ids"
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


def arrow_column(schema: ColumnSchema, column: Column, present: Present) -> Any:
    """Return a column as a chunked array: null where there is no value, names for the codes of a column that was text.

    Texts are strings, bytes where one of them is not UTF-8.
    """
    import pyarrow as pa

    texts = not isinstance(column, TextColumn) or _is_text(column)
    chunks = [
        column_array(schema, cells, None if present is None else np.asarray(present[low:high]), texts=texts)
        for low, high, cells in _pieces(schema, column)
    ]
    made = pa.chunked_array(chunks, column_type(schema, texts=texts))
    if not has_names(schema):
        return made
    return pa.chunked_array([names_array(schema, one) for one in made.chunks], pa.dictionary(pa.int32(), pa.string()))


def schema_of(column: RaggedColumn | TextColumn | SparseColumn | TemporalColumn) -> ColumnSchema:
    """Return what metadata.json would say of a column's kind and values."""
    if isinstance(column, TextColumn):
        return ColumnSchema("column", "binary", "uint8")
    dtype = column.values.dtype.name
    if isinstance(column, SparseColumn):
        return ColumnSchema("column", "sparse", dtype, column.coords.shape[1:])
    return ColumnSchema("column", "temporal" if isinstance(column, TemporalColumn) else "ragged", dtype)


def _pieces(schema: ColumnSchema, column: Any) -> Iterator[tuple[int, int, Cells]]:
    """Yield (first row, end, the values of these rows)."""
    for low in range(0, len(column), _CHUNK_ROWS):
        high = min(low + _CHUNK_ROWS, len(column))
        yield low, high, _cells(schema, column[low:high])


def _cells(schema: ColumnSchema, rows: Any) -> Cells:
    if isinstance(rows, np.ndarray):
        return Cells(None, rows.reshape(len(rows), int(np.prod(schema.item_shape, dtype=np.int64))))
    counts = np.diff(rows.offsets)
    if isinstance(rows, TemporalColumn):
        end = np.full(rows.start.size, -1) if rows.end is None else rows.end
        return Cells(counts, rows.values, entry_counts=np.diff(rows.entry_offsets), start=rows.start, end=end)
    return Cells(counts, rows.values, rows.coords if isinstance(rows, SparseColumn) else None)


def _is_text(column: TextColumn) -> bool:
    import pyarrow as pa

    try:
        text_array(RawTexts(column.offsets, column.values)).validate(full=True)
    except pa.ArrowInvalid:
        return False
    return True


def _node_keys(graph: Graph, name: str, ids: str) -> dict[str, Any]:
    return {"id": _ids(graph, name, np.arange(graph.num_nodes(name)), ids)}


def _edge_keys(graph: Graph, type_: Any, order: EdgeOrder, ids: str) -> dict[str, Any]:
    src_type, _, dst_type = graph.edge_types[graph._edge_number(type_)]
    src, dst, edge_ids = graph.edges(type_, order)
    keys = {"src": _ids(graph, src_type, src, ids), "dst": _ids(graph, dst_type, dst, ids)}
    return keys if edge_ids is None else {**keys, "edge_id": arrow_array(np.asarray(edge_ids, np.int64))}


def _ids(graph: Graph, name: str, typed: NDArray[np.int64], ids: str) -> Any:
    """Return raw IDs of nodes, or their typed IDs."""
    raw = graph.ids(name) if ids == "raw" else None
    if raw is None:
        return arrow_array(typed)
    if isinstance(raw, np.ndarray):
        return arrow_array(raw[typed])
    return arrow_column(schema_of(raw), raw[typed], None)


def _free(keys: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the names of the columns of IDs: underscores stand in front where a column has the same name."""
    found = []
    for key in keys:
        while key in names:
            key = f"_{key}"  # noqa: PLW2901 - until it is free
        found.append(key)
    return found


__all__ = ["arrow_column", "schema_of", "to_arrow", "to_pandas"]
