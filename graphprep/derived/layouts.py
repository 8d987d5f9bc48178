"""Make a layout that a store lacks, from the one that it has."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.derived.store import DerivedFiles, DerivedStore
from graphprep.edges.buckets import EdgeRows
from graphprep.edges.build import BuildRules, LayoutBuilder, LayoutFiles, settle_index_dtype, write_layout
from graphprep.edges.moves import Workspace
from graphprep.edges.order_keys import missing_order_key, order_keys, order_role
from graphprep.edges.tasks import EdgeRuns
from graphprep.model.schema import EdgeTypeSchema, Layout
from graphprep.rewrite.stored_edges import EdgeSpan, bucket_bytes, end_types, make_buckets, map_edges
from graphprep.store.assign import count_parts
from graphprep.store.columns.stored import read_cells, read_present
from graphprep.store.items import part_borders

Ints = NDArray[np.int64]


def make_layout(ready: DerivedStore, files: DerivedFiles, number: int, layout: Layout, room: Workspace) -> None:
    """Write a layout of an edge type as ``convert`` would have, beside the primary one.

    Entries of a row follow the type's neighbour order, ties by edge ID, by edge row where none are stored. ``edge_rows`` are
    written where there are columns, or no edge IDs. Raises DataError where the store's arrays are faulty.
    """
    maker = _LayoutMaker(ready, number, layout, room)
    maker.scatter()
    maker.write(files)
    files.show(ready)


class _LayoutMaker:
    """Scatters the edges of the primary layout out to the rows of the other, and builds these."""

    def __init__(self, ready: DerivedStore, number: int, layout: Layout, room: Workspace) -> None:
        metadata = ready.metadata
        row_type, other_type = end_types(metadata, number, layout)
        self._ready = ready
        self._number = number
        self._schema = metadata.edge_schemas[number]
        self._layout = layout
        self._room = room
        self._borders = part_borders(metadata, row_type)
        self._num_others = metadata.num_nodes_per_type[other_type]
        self._edge_sizes = np.zeros(metadata.num_parts, np.int64)
        self._role = order_role(self._schema.neighbor_order, [one.role for one in self._schema.columns if one.role is not None])
        self._with_rows = bool(self._schema.columns) or self._schema.edge_id_dtype is None
        num_edges = metadata.num_edges_per_type[number]
        self._buckets = make_buckets(room, int(self._borders[-1]), num_edges, self._num_others)

    def scatter(self) -> None:
        """Scatter all edges."""
        with self._room.scratch.inner() as scratch:
            for rows, counts in map_edges(self._ready, self._number, self._room, scratch, self._turn):
                self._edge_sizes += counts
                self._buckets.add(rows)
        self._buckets.flush()

    def _turn(self, span: EdgeSpan) -> tuple[EdgeRows, Ints]:
        """Return edges as those of the other end's rows, and how many of these each partition owns."""
        dtype = self._buckets.dtype
        rows = EdgeRows(
            owners=span.others.astype(dtype),
            others=span.rows.astype(dtype),
            ids=span.ids.astype(np.uint64),
            keys=self._keys(span),
            edge_rows=span.edge_rows if self._with_rows else None,
        )
        return rows, count_parts(span.others, self._borders)

    def _keys(self, span: EdgeSpan) -> NDArray[np.uint64] | None:
        """Return the order keys of edges; None where they are ordered by their IDs or other ends."""
        if self._role is None:
            return None
        column = next(one for one in self._schema.columns if one.role == self._role)
        stem = f"{self._ready.edge_folder(self._number)}/{column.path}"
        values = read_cells(self._ready, span.part, stem, column, span.start, span.stop).flat
        return order_keys(self._role, values, read_present(self._ready, span.part, stem, column, span.start, span.stop))

    def write(self, files: DerivedFiles) -> None:
        """Build the layout from the edges that were scattered."""
        schema, room = self._schema, self._room
        folder, index_dtype = f"{self._ready.edge_folder(self._number)}/{self._layout}", _index_dtype(schema, self._num_others)
        missing_key = None if self._role is None else missing_order_key(self._role)
        edges = EdgeRuns(self._buckets, schema.neighbor_order, missing_key, by_arrival=False)
        write_layout(
            LayoutBuilder(edges, index_dtype, schema.edge_id_dtype, edge_rows=self._with_rows),
            LayoutFiles(folder, index_dtype, schema.edge_id_dtype, edge_rows=self._with_rows),
            files,
            np.diff(self._borders),
            self._edge_sizes,
            BuildRules(bucket_bytes(room), room.threads),
            room.pool,
            keep_positions=False,
        )
        edges.buckets.runs.close()


def _index_dtype(schema: EdgeTypeSchema, num_nodes: int) -> str:
    """Return the dtype of the layout's other ends: the type's own where they fit."""
    return schema.index_dtype if settle_index_dtype("auto", num_nodes) == "int32" else "int64"
