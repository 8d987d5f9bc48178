"""``npy``: plain NumPy arrays: ends of edges, rows in CSC and CSR, columns of every kind, and a file that says what is what."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.single import WholeGraph
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, StoreNeed
from graphprep.model.metadata import GraphMetadata, dump_json
from graphprep.model.schema import ColumnSchema, Layout, edge_type_path, path_name
from graphprep.rewrite.move_parts import array_pieces
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.torch_rows import read_present

Array = NDArray[Any]
Ints = NDArray[np.int64]
_STEP = 1 << 17
_ROWS = 1 << 14  # of a column that is not dense, read at once


@dataclass(frozen=True)
class NpyExporter:
    """Writes arrays for NumPy.

    Columns of nodes stand in the order of the nodes' IDs, columns of edges by edge ID.
    """

    name: ClassVar[str] = "npy"
    loads_in: ClassVar[str] = "numpy.load, also as memory maps"
    carries: ClassVar[str] = "everything: columns of all kinds, edge IDs"
    needs: ClassVar[str] = (
        "edges in the order of edge IDs, nodes in that of raw IDs; csc and csr arrays where layouts names them"
    )
    root_file: ClassVar[str] = "graph.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"

    layouts: Annotated[tuple[str, ...], "of edges: some of coo (both ends, by edge ID), csc and csr"] = ("coo",)
    hypersparse: Annotated[bool, "csc and csr have rows.npy, the nodes that have edges, and indptr of these alone"] = False

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""
        if not self.layouts or not set(self.layouts) <= {"coo", "csc", "csr"}:
            raise UsageError(f"option layouts: found {','.join(self.layouts)!r}", fix="use some of coo, csc, csr")
        if self.hypersparse and not self._compressed:
            raise UsageError("option hypersparse is of csc and csr", fix="name one of them in option layouts, or leave it out")
        return ExportPlan(StoreNeed(self._compressed, "input", input_order=True), dtypes="files")

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        whole, writer = WholeGraph(graph), _ArrayWriter(out)
        nodes, edges = {}, {}
        for number, name in enumerate(graph.metadata.node_types):
            nodes[name] = self._write_nodes(graph, number, writer)
        for edge, name in enumerate(graph.edge_names):
            edges[name] = self._write_edges(graph, whole, edge, writer)
            graph.reporter.advance(records=graph.metadata.num_edges_per_type[edge])
        out.write(self.root_file, dump_json({"format": "graphprep-npy", "nodes": nodes, "edges": edges}))

    @property
    def _compressed(self) -> tuple[Layout, ...]:
        return tuple(layout for layout in ("csc", "csr") if layout in self.layouts)

    def _write_nodes(self, graph: StoredGraph, number: int, writer: _ArrayWriter) -> dict[str, object]:
        metadata = graph.metadata
        folder, size = f"nodes/{path_name(metadata.node_types[number])}", metadata.num_nodes_per_type[number]
        rows = Rows.by_node_id(graph, number)
        columns = [writer.write_column(folder, rows, column) for column in graph.node_columns(number)]
        return {"num_nodes": size, "ids": graph.ids.spaces[number], "columns": columns}

    def _write_edges(self, graph: StoredGraph, whole: WholeGraph, edge: int, writer: _ArrayWriter) -> dict[str, object]:
        folder, size = f"edges/{edge_type_path(graph.metadata.edge_types[edge])}", graph.metadata.num_edges_per_type[edge]
        entry: dict[str, object] = {"num_edges": size}
        if "coo" in self.layouts:
            entry["coo"] = {
                "src": writer.write(f"{folder}/src.npy", "int64", (size,), _ends(graph, edge, "src")),
                "dst": writer.write(f"{folder}/dst.npy", "int64", (size,), _ends(graph, edge, "dst")),
            }
        for layout in self._compressed:
            entry[layout] = self._write_rows(graph, whole, edge, layout, writer)
        rows = [Rows.of_edges(graph, edge, "input", 0)]
        entry["columns"] = [writer.write_column(folder, rows, column) for column in graph.edge_columns(edge)]
        return entry

    def _write_rows(
        self, graph: StoredGraph, whole: WholeGraph, edge: int, layout: Layout, writer: _ArrayWriter
    ) -> dict[str, object]:
        folder = f"edges/{edge_type_path(graph.metadata.edge_types[edge])}/{layout}"
        schema = graph.metadata.edge_schemas[edge]
        with graph.room.scratch.inner() as scratch:
            rows = whole.rows(edge, layout, scratch)
            shape, indptr = (rows.num_edges,), rows.indptr
            indices = (piece.astype(schema.index_dtype) for piece in rows.others())
            entry = {}
            if self.hypersparse:
                size = sum(some.size for some in _filled(indptr))
                entry["rows"] = writer.write(f"{folder}/rows.npy", "int64", (size,), _filled(indptr))
                ends = itertools.chain([indptr[:1]], (indptr[some + 1] for some in _filled(indptr)))
                entry["indptr"] = writer.write(f"{folder}/indptr.npy", "int64", (size + 1,), ends)
            else:
                entry["indptr"] = writer.write(f"{folder}/indptr.npy", "int64", indptr.shape, array_pieces(indptr))
            entry["indices"] = writer.write(f"{folder}/indices.npy", schema.index_dtype, shape, indices)
            numbers = rows.edge_numbers()
            if numbers is not None:
                path, dtype = f"{folder}/edge_ids.npy", schema.edge_id_dtype or "int64"
                entry["edge_ids"] = writer.write(path, dtype, shape, numbers)
            return dict(entry)


class _ArrayWriter:
    """Writes arrays, and says of each where it is and what."""

    def __init__(self, out: FolderOutput) -> None:
        self._out = out

    def write(self, path: str, dtype: str, shape: tuple[int, ...], pieces: Iterator[Array]) -> dict[str, object]:
        """Write an array from pieces along its first axis."""
        self._out.write_npy(path, dtype, shape, pieces)
        return {"path": path, "dtype": dtype, "shape": list(shape)}

    def write_column(self, folder: str, rows: Sequence[Rows], column: ColumnSchema) -> dict[str, object]:
        """Write a column of any kind, of several runs of rows."""
        stem, size = f"{folder}/{column.path}", sum(some.size for some in rows)
        files = self._write_dense(stem, rows, column) if column.kind == "dense" else self._write_other(stem, rows, column)
        if column.optional:
            present = (read_present(some, column, low, high) for some in rows for low, high in some.slices(1))
            files["present"] = self.write(f"{stem}.present.npy", "bool", (size,), present)
        return {**column.to_json(), "arrays": files}

    def _write_dense(self, stem: str, rows: Sequence[Rows], column: ColumnSchema) -> dict[str, object]:
        row_bytes = np.dtype(column.dtype).itemsize * int(np.prod(column.item_shape, dtype=np.int64))
        pieces = (some.cells(column, low, high).values for some in rows for low, high in some.slices(row_bytes))
        shape = (sum(some.size for some in rows), *column.item_shape)
        return {"values": self.write(f"{stem}.npy", column.dtype, shape, pieces)}

    def _write_other(self, stem: str, rows: Sequence[Rows], column: ColumnSchema) -> dict[str, object]:
        """Write offsets and what they lead to; cells are read again for each array."""
        num_items, files = sum(some.size for some in rows), {}
        if column.kind == "temporal":
            entries = _Counted(_parts(rows, column, lambda cells: cells.entry_counts))
            files["entry_offsets"] = self.write(f"{stem}.entry_offsets.npy", "int64", (num_items + 1,), entries.offsets())
            num_items = entries.total
            for name in ("start", "end") if column.end else ("start",):
                dates = _parts(rows, column, lambda cells, name=name: getattr(cells, name))  # type: ignore[misc]
                files[name] = self.write(f"{stem}.{name}.npy", "int64", (num_items,), dates)
        counted = _Counted(_parts(rows, column, lambda cells: cells.counts))
        files["offsets"] = self.write(f"{stem}.offsets.npy", "int64", (num_items + 1,), counted.offsets())
        if column.kind == "sparse":
            shape = (counted.total, *column.item_shape)
            files["coords"] = self.write(f"{stem}.coords.npy", "int64", shape, _parts(rows, column, lambda cells: cells.coords))
        values = _parts(rows, column, lambda cells: cells.flat)
        files["values"] = self.write(f"{stem}.values.npy", column.dtype, (counted.total,), values)
        return dict(files)


class _Counted:
    """Turns counts into offsets, and adds them up."""

    def __init__(self, counts: Iterator[Array]) -> None:
        self._counts = counts
        self.total = 0

    def offsets(self) -> Iterator[Ints]:
        """Yield offsets from 0 on; ``total`` is the last of them afterwards."""
        yield np.zeros(1, np.int64)
        for counts in self._counts:
            offsets = np.cumsum(counts) + self.total
            self.total = int(offsets[-1]) if offsets.size else self.total
            yield offsets


def _filled(indptr: Ints) -> Iterator[Ints]:
    """Yield the rows that have entries, ascending."""
    for low in range(0, indptr.size - 1, _STEP):
        yield np.flatnonzero(np.diff(indptr[low : low + _STEP + 1])) + low


def _parts(rows: Sequence[Rows], column: ColumnSchema, take: Callable[[Cells], Array | None]) -> Iterator[Array]:
    """Yield one part of a column's cells."""
    for some in rows:
        for low in range(0, some.size, _ROWS):
            found = take(some.cells(column, low, min(low + _ROWS, some.size)))
            assert found is not None, "the kind of column has such a part"
            yield found


def _ends(graph: StoredGraph, edge: int, end: Literal["src", "dst"]) -> Iterator[Ints]:
    number = graph.ends_of(edge)[end == "dst"]
    for piece in graph.input_edges(edge):
        yield graph.to_ids(number, getattr(piece, end))
