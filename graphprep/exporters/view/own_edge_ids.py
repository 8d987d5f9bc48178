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

_MOST_PLACES, _MOST_EMPTY = 1 << 20, 16  # of a table by edge ID: so many in any case, and for each edge


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


def check_each_once(graph: StoredGraph, edge: int, layout: Layout, wanted: Sequence[str]) -> int:
    """Return the size of a table that has a place for each edge ID: one more than the highest, the number of edges at least.

    Raises DataError where an ID is there twice, is below 0, or so high that the table would be empty but for few places.
    """
    name, size = edge_type_text(graph.metadata.edge_types[edge]), graph.all_edges.metadata.num_edges_per_type[edge]
    if len(without_ids(name, graph.edge_columns(edge), wanted)) == len(graph.edge_columns(edge)):
        return size
    place = f"edge type {name!r}, its column of edge IDs"
    fix = "GLT looks edges up in tables by ID: give lower ones, or leave out --edge-id-col: IDs are positions in the input then"
    most, parts = _MOST_PLACES + _MOST_EMPTY * size, range(graph.metadata.num_parts)
    for ids in (ids for part in parts for ids in own_edge_ids(graph, edge, layout, part, wanted).pieces() if ids.size):
        if not 0 <= ids.min() <= ids.max() < most:
            bad = int(ids[np.argmax((ids < 0) | (ids >= most))])
            raise DataError(f"expected IDs in [0, {most}), found {bad}", place=place, fix=fix)
        size = max(size, int(ids.max()) + 1)
    with graph.room.scratch.inner() as scratch:
        bits = scratch.zeros(-(-size // 64), np.uint64)
        for part in parts:
            for ids in own_edge_ids(graph, edge, layout, part, wanted).pieces():
                repeats = mark_ids(ids, 0, size, bits)
                if repeats.size:
                    fix = "give each edge an ID of its own, or leave out --edge-id-col: IDs are positions in the input then"
                    raise DataError(f"edge ID {ids[repeats[0]]} is there twice", place=place, fix=fix)
    return size
