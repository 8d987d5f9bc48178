"""``scipy``: a sparse matrix a file, as ``scipy.sparse.load_npz`` reads it, and what belongs to its nodes and entries.

Source: scipy 1.17, ``scipy.sparse.save_npz``: a ZIP archive of ``.npy`` files, which is written here without SciPy.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.arrow_files import ArrowSink
from graphprep.exporters.unsupported import list_unsupported, why_no_array
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.single import WholeGraph, WholeRows
from graphprep.kernels.cpu.ids.part_graph import number_rows
from graphprep.model.errors import UsageError, one_of
from graphprep.model.export import ExportPlan, MessageEdges, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, Layout, edge_type_path, path_name
from graphprep.rewrite.move_parts import array_pieces
from graphprep.storage.write.outputs import FileOutput, FolderOutput
from graphprep.storage.write.publish import npy_header

Array = NDArray[Any]
_DATE = (1980, 1, 1, 0, 0, 0)  # the first that ZIP knows: the same bytes at any time of day
_LEVEL = 6
_STEP = 1 << 17


@dataclass(frozen=True)
class Member:
    """An array of an archive."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    pieces: Iterable[Array]


@dataclass(frozen=True)
class ScipyExporter:
    """Writes a sparse matrix for each edge type, [sources, destinations]."""

    name: ClassVar[str] = "scipy"
    loads_in: ClassVar[str] = "scipy.sparse.load_npz; numpy.load for columns"
    carries: ClassVar[str] = "dense columns of nodes and edges, edge IDs; no texts, ragged, sparse and temporal columns"
    needs: ClassVar[str] = "edges by destination (csc), or source (csr) with format=csr; their columns in that order"
    root_file: ClassVar[str] = "export.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"
    message_edges: ClassVar[MessageEdges | None] = "all"

    format: Annotated[Literal["csc", "csr", "coo"], "of the matrices"] = "csc"
    weight: Annotated[str, "edge column of their values; else the weights, or ones"] = ""
    compressed: Annotated[bool, "deflate the archives"] = False

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""
        check_weight(metadata, self.weight)
        layout = self._layout
        return ExportPlan(
            StoreNeed(layouts=(layout,), edge_columns=layout),
            list_unsupported(metadata, why_no_array),
            note_weights(metadata),
            dtypes="files",
        )

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        whole = WholeGraph(graph)
        for number, name in enumerate(graph.metadata.node_types):
            size = graph.metadata.num_nodes_per_type[number]
            for column in graph.node_columns(number):
                stem = f"nodes/{path_name(name)}/{column.path.removeprefix('data/')}"
                out.write_npy(f"{stem}.npy", column.dtype, (size, *column.item_shape), whole.node_values(number, column))
                if column.optional:
                    out.write_npy(f"{stem}.present.npy", "bool", (size,), whole.node_present(number, column))
        for edge in range(len(graph.metadata.edge_types)):
            with graph.room.scratch.inner() as scratch:
                rows = whole.rows(edge, self._layout, scratch)
                self._write_matrix(graph, rows, out)
                self._write_columns(graph, rows, out)
            graph.reporter.advance(records=graph.metadata.num_edges_per_type[edge])

    @property
    def _layout(self) -> Layout:
        return "csc" if self.format == "coo" else self.format

    def _write_matrix(self, graph: StoredGraph, rows: WholeRows, out: FolderOutput) -> None:
        src, dst = graph.ends_of(rows.edge)
        shape = tuple(graph.metadata.num_nodes_per_type[number] for number in (src, dst))
        wide = max(rows.num_edges, *shape) >= 2**31
        dtype = "int64" if wide else "int32"
        weight = find_weight(graph.edge_columns(rows.edge), self.weight)
        values = Member("data", "float32", (rows.num_edges,), _ones(rows.num_edges))
        if weight is not None:
            values = Member("data", weight.dtype, (rows.num_edges,), rows.values(weight))
        members = [
            *self._index_members(rows, dtype),
            Member("format", "S3", (), [np.array(self.format.encode())]),
            Member("shape", "int64", (2,), [np.array(shape, np.int64)]),
            values,
            Member("_is_array", "bool", (), [np.array(True)]),
        ]
        with out.open(f"{edge_type_path(graph.metadata.edge_types[rows.edge])}.npz") as file:
            write_npz(file, members, compressed=self.compressed)

    def _index_members(self, rows: WholeRows, dtype: str) -> list[Member]:
        size = rows.num_edges
        others = (piece.astype(dtype) for piece in rows.others())
        if self.format != "coo":
            indptr = rows.indptr
            return [
                Member("indices", dtype, (size,), others),
                Member("indptr", dtype, indptr.shape, (some.astype(dtype) for some in array_pieces(indptr))),
            ]
        owners = (number_rows(rows.indptr, 0, low, min(low + _STEP, size)).astype(dtype) for low in range(0, size, _STEP))
        return [Member("row", dtype, (size,), others), Member("col", dtype, (size,), owners)]

    def _write_columns(self, graph: StoredGraph, rows: WholeRows, out: FolderOutput) -> None:
        """Write what belongs to the matrix's entries, in their order."""
        folder = f"edges/{edge_type_path(graph.metadata.edge_types[rows.edge])}"
        schema = graph.metadata.edge_schemas[rows.edge]
        if schema.edge_id_dtype is not None:
            out.write_npy(f"{folder}/edge_ids.npy", schema.edge_id_dtype, (rows.num_edges,), rows.edge_ids())
        weight = find_weight(graph.edge_columns(rows.edge), self.weight)
        for column in graph.edge_columns(rows.edge):
            stem = f"{folder}/{column.path.removeprefix('data/')}"
            if column != weight:
                out.write_npy(f"{stem}.npy", column.dtype, (rows.num_edges, *column.item_shape), rows.values(column))
            if column.optional:
                out.write_npy(f"{stem}.present.npy", "bool", (rows.num_edges,), rows.present(column))


def find_weight(columns: Iterable[ColumnSchema], name: str) -> ColumnSchema | None:
    """Return the column of an edge type that is its weight: the one of this name, or without a name that of this role."""
    return next((one for one in columns if (one.name == name if name else one.role == "weight")), None)


def check_weight(metadata: GraphMetadata, name: str) -> None:
    """Raise UsageError where a column that is to be the weight is not there, or is no number."""
    if not name:
        return
    found = [column for schema in metadata.edge_schemas for column in schema.columns if column.name == name]
    if not found:
        names = sorted({column.name for schema in metadata.edge_schemas for column in schema.columns})
        raise UsageError(f"option weight: there is no edge column {name!r}", fix=one_of(names, found=name))
    for column in found:
        if column.kind != "dense" or column.item_shape:
            raise UsageError(f"option weight: {name!r} is not one number an edge", fix="name another column")


def note_weights(metadata: GraphMetadata) -> tuple[str, ...]:
    """Return notes on weights that some edges lack."""
    return tuple(
        f"edge type {':'.join(edge_type)!r}: some edges have no weight, and count as 0"
        for edge_type, schema in zip(metadata.edge_types, metadata.edge_schemas, strict=True)
        for column in schema.columns
        if column.role == "weight" and column.optional
    )


def write_npz(file: FileOutput, members: Iterable[Member], *, compressed: bool) -> None:
    """Write an archive of arrays front to back, as ``numpy.savez`` names them."""
    method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(_Stream(file), "w", method, compresslevel=_LEVEL) as archive:
        for member in members:
            info = zipfile.ZipInfo(f"{member.name}.npy", _DATE)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=True) as target:
                target.write(npy_header(member.dtype, member.shape))
                for piece in member.pieces:
                    target.write(np.ascontiguousarray(piece).reshape(-1).view(np.uint8).data)


class _Stream(ArrowSink):
    """A file of an export as ZipFile writes to it: it can neither be sought in nor told."""

    def tell(self) -> int:
        raise io.UnsupportedOperation("tell")


def _ones(size: int) -> Iterator[Array]:
    for low in range(0, size, _STEP):
        yield np.ones(min(_STEP, size - low), np.float32)
