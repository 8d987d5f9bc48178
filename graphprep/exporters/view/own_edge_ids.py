"""Edge IDs of the user's own: a column that trainers get in place of the edges' positions in the input."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.torch_features import FeatureMatrix
from graphprep.exporters.view.torch_graph import edge_ids
from graphprep.kernels.cpu.ids.check import mark_ids
from graphprep.model.errors import DataError
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, Layout, edge_type_text
from graphprep.store.columns.edge_ids import check_edge_id_columns, is_edge_id_column


def check_id_columns(metadata: GraphMetadata, wanted: Sequence[str]) -> None:
    """Raise UsageError where a name (``COL``, or ``SRC:REL:DST:COL``) is that of no column of IDs."""
    types = zip(map(edge_type_text, metadata.edge_types), metadata.edge_schemas, strict=True)
    check_edge_id_columns({name: schema.columns for name, schema in types}, wanted, "option edge_id_col")


def without_ids(name: str, columns: Sequence[ColumnSchema], wanted: Sequence[str]) -> tuple[ColumnSchema, ...]:
    """Return the columns of an edge type (``src:rel:dst``) that are not its IDs."""
    return tuple(column for column in columns if not is_edge_id_column(name, column, wanted))


def own_edge_ids(graph: StoredGraph, edge: int, layout: Layout, part: int, wanted: Sequence[str]) -> TensorPieces:
    """Return the IDs of a partition's edges in the layout's row order: int64[k], of the column if there is one."""
    name = edge_type_text(graph.metadata.edge_types[edge])
    column = next((column for column in graph.edge_columns(edge) if is_edge_id_column(name, column, wanted)), None)
    if column is None:
        return edge_ids(graph, edge, layout, part)
    found = FeatureMatrix((column,)).tensor(Rows.of_edges(graph, edge, layout, part))
    return TensorPieces("int64", found.shape[:1], lambda: (piece.reshape(-1).astype(np.int64) for piece in found.pieces()))


def check_each_once(graph: StoredGraph, edge: int, layout: Layout, wanted: Sequence[str]) -> None:
    """Raise DataError where IDs of edges are not among 0 to the number of edges - 1, or one is there twice."""
    name, size = edge_type_text(graph.metadata.edge_types[edge]), graph.all_edges.metadata.num_edges_per_type[edge]
    if len(without_ids(name, graph.edge_columns(edge), wanted)) == len(graph.edge_columns(edge)):
        return
    place, fix = f"edge type {name!r}, its column of edge IDs", "GLT looks edges up in a table by ID: number them from 0 on"
    with graph.room.scratch.inner() as scratch:
        bits = scratch.zeros(-(-size // 64), np.uint64)
        for part in range(graph.metadata.num_parts):
            for ids in own_edge_ids(graph, edge, layout, part, wanted).pieces():
                if ids.size and not 0 <= ids.min() <= ids.max() < size:
                    bad = int(ids[np.argmax((ids < 0) | (ids >= size))])
                    raise DataError(f"expected IDs in [0, {size}), found {bad}", place=place, fix=fix)
                repeats = mark_ids(ids, 0, size, bits)
                if repeats.size:
                    raise DataError(f"edge ID {ids[repeats[0]]} is there twice", place=place, fix=fix)
