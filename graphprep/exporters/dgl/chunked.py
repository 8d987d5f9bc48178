"""The chunked graph format of DGL: a folder with metadata.json, and files of edges and features that it lists.

Source: DGL's user guide, chapter 7.1, and the tools that read it (``tools/distpartitioning``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.dgl.columns import Feature, check_names, dgl_name, features_of
from graphprep.exporters.formats.arrow_files import ArrowSink
from graphprep.exporters.formats.text_lines import LineWriter, TextColumn
from graphprep.exporters.unsupported import all_columns, list_unsupported, why_no_array
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, Side, StoreNeed
from graphprep.model.metadata import METADATA_NAME, GraphMetadata, dump_json
from graphprep.model.schema import ColumnSchema, edge_type_path, path_name
from graphprep.storage.read.arrow_arrays import arrow_array
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.trainers import labels_of
from graphprep.store.items import StoredItems

Blocks = dict[str, dict[str, object]]  # of a type's columns, by name
# Pieces, which are Parquet's row groups, too: the same ones for any memory limit.
_PIECE_BYTES = 1 << 20
_EDGE_ROWS = 1 << 15
_CELL_ROWS = 1 << 14  # of a column of lists or texts
_PARQUET: dict[str, Any] = {"compression": "none", "use_dictionary": False, "write_statistics": False}  # IDs hardly repeat
_EXTENSIONS = {"csv": "csv", "numpy": "npy", "parquet": "parquet"}


@dataclass(frozen=True)
class ChunkedExporter:
    """Writes a graph in chunks: edges by edge ID, nodes by the IDs that edges name them by."""

    name: ClassVar[str] = "dgl-chunked"
    loads_in: ClassVar[str] = "DGL's partition tools, graphprep convert"
    carries: ClassVar[str] = "dense columns, lists and texts; splits as train_mask, val_mask, test_mask"
    needs: ClassVar[str] = "edges in the order of edge IDs, nodes in that of raw IDs"
    root_file: ClassVar[str] = METADATA_NAME
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"

    chunks: Annotated[int, "number of files of each kind; a type of fewer nodes or edges has fewer"] = 1
    edges: Annotated[Literal["csv", "numpy", "parquet"], "format of edges; DGL's own tools read no numpy ones"] = "parquet"
    data: Annotated[Literal["numpy", "parquet"], "format of columns"] = "numpy"
    masks: Annotated[bool, "a split is three masks, else its column"] = True

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """Ask for everything in input order.

        Raises UsageError for a number of chunks below one.
        """
        if self.chunks < 1:
            raise UsageError(f"dgl-chunked: chunks must be 1 or more, found {self.chunks}", fix="correct the option")
        check_names(metadata, _why_not, _names)
        need = StoreNeed(edge_columns="input", input_order=True)
        return ExportPlan(need, list_unsupported(metadata, _why_not), tuple(_notes(metadata)), dtypes="labels")

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """Write the files, then their list."""
        metadata, writer = graph.metadata, _ChunkWriter(graph, out, self)
        node_chunks = [self._cut(size) for size in metadata.num_nodes_per_type]
        edge_chunks = [self._cut(size) for size in metadata.num_edges_per_type]
        value = {
            "graph_name": metadata.graph_name,
            "node_type": list(metadata.node_types),
            "num_nodes_per_type": list(metadata.num_nodes_per_type),
            "num_nodes_per_chunk": [_sizes(borders) for borders in node_chunks],
            "edge_type": list(graph.edge_names),
            "num_edges_per_type": list(metadata.num_edges_per_type),
            "num_edges_per_chunk": [_sizes(borders) for borders in edge_chunks],
            "edges": {name: writer.write_edges(edge, edge_chunks[edge]) for edge, name in enumerate(graph.edge_names)},
            "node_data": {name: writer.write_nodes(i, node_chunks[i]) for i, name in enumerate(metadata.node_types)},
            "edge_data": {name: writer.write_edge_data(i, edge_chunks[i]) for i, name in enumerate(graph.edge_names)},
        }
        out.write(METADATA_NAME, dump_json(value))

    def _cut(self, size: int) -> list[int]:
        """Return the borders of chunks: the first ``size`` mod ``chunks`` are one longer, none is empty but an only one."""
        chunks = max(1, min(self.chunks, size))
        each, more = divmod(size, chunks)
        return [chunk * each + min(chunk, more) for chunk in range(chunks + 1)]


class _ChunkWriter:
    """Writes the files of blocks, and returns what metadata.json says of each."""

    def __init__(self, graph: StoredGraph, out: FolderOutput, options: ChunkedExporter) -> None:
        self._graph = graph
        self._out = out
        self._options = options

    def write_edges(self, edge: int, borders: list[int]) -> dict[str, object]:
        """Write the ends of a type's edges."""
        style, graph = self._options.edges, self._graph
        folder = f"edges/{edge_type_path(graph.metadata.edge_types[edge])}"
        paths = [f"{folder}/{chunk}.{_EXTENSIONS[style]}" for chunk in range(len(borders) - 1)]
        for path, low, high in zip(paths, borders[:-1], borders[1:], strict=True):
            pieces = self._pairs(edge, low, high)
            if style == "numpy":
                self._out.write_npy(path, "int64", (high - low, 2), pieces)
            elif style == "csv":
                lines = LineWriter(" ")
                self._out.write(path, (lines.lines([TextColumn(some[:, 0]), TextColumn(some[:, 1])]) for some in pieces))
            else:
                self._write_table(path, _edge_schema(), (list(some.T) for some in pieces))
            graph.reporter.advance(records=high - low)
        delimiter = {"delimiter": " "} if style == "csv" else {}
        return {"format": {"name": style, **delimiter}, "data": paths}

    def write_nodes(self, number: int, borders: list[int]) -> Blocks:
        """Write the columns of a node type."""
        folder = f"node_data/{path_name(self._graph.metadata.node_types[number])}"
        runs = Rows.by_node_id(self._graph, number)
        return self._write_columns(folder, runs, self._graph.node_columns(number), borders)

    def write_edge_data(self, edge: int, borders: list[int]) -> Blocks:
        """Write the columns of an edge type."""
        folder = f"edge_data/{edge_type_path(self._graph.metadata.edge_types[edge])}"
        runs = [Rows.of_edges(self._graph, edge, "input", 0)]
        return self._write_columns(folder, runs, self._graph.edge_columns(edge), borders)

    def _write_columns(self, folder: str, runs: list[Rows], columns: Sequence[ColumnSchema], borders: list[int]) -> Blocks:
        blocks: Blocks = {}
        for column in columns:
            if column.kind != "dense":
                blocks[column.name] = self._write_cells(folder, runs, column, borders)
                continue
            features = features_of([column], exact=True, labels=labels_of(columns))
            if column.role == "split" and not self._options.masks:
                features = [Feature(column.name, column, is_exact=True)]
            for feature in features:
                blocks[feature.name] = self._write_feature(folder, runs, feature, borders)
        return blocks

    def _pairs(self, edge: int, low: int, high: int) -> Iterator[NDArray[np.int64]]:
        """Yield edges [low, high) as sources and destinations: int64 [k, 2]."""
        ends = list(zip(self._graph.ends_of(edge), map(StoredItems, self._graph.store.input_ends(edge)), strict=True))
        for start in range(low, high, _EDGE_ROWS):
            stop = min(start + _EDGE_ROWS, high)
            yield np.stack([self._graph.to_ids(number, items.read(start, stop)) for number, items in ends], axis=1)

    def _write_feature(self, folder: str, runs: list[Rows], feature: Feature, borders: list[int]) -> dict[str, object]:
        """Write a dense column; one that Parquet has no columns for is a numpy file always."""
        width, kind = prod(feature.item_shape), np.dtype(feature.dtype).kind
        style = "parquet" if self._options.data == "parquet" and width and kind != "c" else "numpy"
        paths = self._paths(folder, feature.name, style, borders)
        for path, low, high in zip(paths, borders[:-1], borders[1:], strict=True):
            step = max(1, _PIECE_BYTES // max(1, width * np.dtype(feature.dtype).itemsize))
            pieces = (feature.read(*cut) for cut in _cuts(runs, low, high, step))
            shape = (high - low, *feature.item_shape)
            if style == "numpy":
                self._out.write_npy(path, feature.dtype, shape, pieces)
            else:
                schema = _table_schema(feature.dtype, width, shape)
                self._write_table(path, schema, (list(np.ascontiguousarray(some.reshape(-1, width).T)) for some in pieces))
        return {"format": {"name": style}, "data": paths}

    def _write_cells(self, folder: str, runs: list[Rows], column: ColumnSchema, borders: list[int]) -> dict[str, object]:
        """Write lists or texts, missing ones as nulls."""
        import pyarrow as pa

        paths = self._paths(folder, column.name, "parquet", borders)
        kind = pa.large_binary() if column.kind == "binary" else pa.large_list(pa.from_numpy_dtype(np.dtype(column.dtype)))
        for path, low, high in zip(paths, borders[:-1], borders[1:], strict=True):
            pieces = (
                [_arrow_cells(rows.cells(column, *at), rows.present(column, *at), kind)]
                for rows, *at in _cuts(runs, low, high, _CELL_ROWS)
            )
            self._write_table(path, pa.schema([(column.name, kind)]), pieces)
        return {"format": {"name": "parquet"}, "data": paths}

    def _paths(self, folder: str, name: str, style: str, borders: list[int]) -> list[str]:
        stem = f"{folder}/{path_name(name, column=True)}"
        return [f"{stem}-{chunk}.{_EXTENSIONS[style]}" for chunk in range(len(borders) - 1)]

    def _write_table(self, path: str, schema: Any, pieces: Iterator[list[Any]]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._out.open(path) as file, pq.ParquetWriter(ArrowSink(file), schema, **_PARQUET) as writer:
            for columns in pieces:
                arrays = [some if isinstance(some, pa.Array) else arrow_array(some) for some in columns]
                writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=schema))


def _why_not(side: Side, column: ColumnSchema) -> str | None:
    return None if column.kind in ("ragged", "binary") else why_no_array(side, column)


def _names(columns: Sequence[ColumnSchema]) -> list[str]:
    dense = [column for column in columns if column.kind == "dense"]
    return [feature.name for feature in features_of(dense, exact=True)] + [
        column.name for column in columns if column.kind != "dense"
    ]


def _notes(metadata: GraphMetadata) -> Iterator[str]:
    """Tell what of the graph DGL's own tools do not take."""
    kinds = {column.kind for *_, column in all_columns(metadata)} & {"ragged", "binary"}
    if kinds:
        yield "columns of lists and texts are Parquet files that graphprep reads, and DGL's own tools do not"
    named = [*metadata.node_types, *(relation for _, relation, _ in metadata.edge_types)]
    named += [column.name for *_, column in all_columns(metadata)]
    if odd := sorted({name for name in named if dgl_name(name) != name}):
        yield f"DGL's own tools take names apart at ':' and '/': {', '.join(map(repr, odd))}"


def _sizes(borders: list[int]) -> list[int]:
    return [high - low for low, high in pairwise(borders)]


def _cuts(runs: Sequence[Rows], low: int, high: int, step: int) -> Iterator[tuple[Rows, int, int]]:
    """Cut rows [low, high) of all runs into pieces of at most ``step`` rows of one run each."""
    first = 0
    for rows in runs:
        last = min(high, first + rows.size)
        for start in range(max(low, first), last, step):
            yield rows, start - first, min(start + step, last) - first
        first += rows.size


def _edge_schema() -> Any:
    import pyarrow as pa

    return pa.schema([pa.field(name, pa.int64(), nullable=False) for name in ("src", "dst")])


def _table_schema(dtype: str, width: int, shape: tuple[int, ...]) -> Any:
    """Return a schema of columns "0", "1", … that says which array they are, as DGL's tools do."""
    import pyarrow as pa

    kind = pa.from_numpy_dtype(np.dtype(dtype))
    return pa.schema([pa.field(str(at), kind, nullable=False) for at in range(width)], metadata={"shape": str(shape)})


def _arrow_cells(cells: Cells, present: NDArray[np.bool_] | None, kind: Any) -> Any:
    """Return lists or texts as an array of pyarrow; rows without the column are null."""
    import pyarrow as pa

    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(cells.item_counts)])
    valid = None if present is None else pa.py_buffer(np.packbits(present, bitorder="little"))
    buffers = [valid, pa.py_buffer(offsets)]
    values = np.ascontiguousarray(cells.flat)
    if pa.types.is_large_binary(kind):
        return pa.Array.from_buffers(kind, offsets.size - 1, [*buffers, pa.py_buffer(values)])
    return pa.Array.from_buffers(kind, offsets.size - 1, buffers, children=[arrow_array(values)])
