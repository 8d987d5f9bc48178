"""``edges``: text edge lists, a file for each edge type: ``source destination [columns …]``, raw IDs, by edge ID."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.exporters.formats.text_lines import LineWriter, TextColumn
from graphprep.exporters.unsupported import list_unsupported, why_no_cell
from graphprep.exporters.view.graph import EdgePiece, StoredGraph
from graphprep.kernels.cpu.bytes.blocks import copy_blocks
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, Side, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.rows import RawTexts
from graphprep.model.schema import ColumnSchema, edge_type_path
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.raw_ids import RawLookup

Delimiter = Literal["blank", "tab", "comma"]

_SEPARATORS = {"blank": " ", "tab": "\t", "comma": ","}
_ENDINGS = {"blank": "txt", "tab": "tsv", "comma": "csv"}
_LOST_NODES = "nodes without edges are not in the files"


@dataclass(frozen=True)
class EdgesExporter:
    """Writes ``source destination [columns …]`` lines, in the order of edge IDs.

    Between tabs and commas, texts that need it stand in double quotes, and a missing value is an empty cell.
    """

    name: ClassVar[str] = "edges"
    loads_in: ClassVar[str] = "text tools, networkx, igraph, SNAP; graphprep convert --format edges"
    carries: ClassVar[str] = "edges with raw IDs, columns of one number or text; no columns of nodes, no nodes without edges"
    needs: ClassVar[str] = "edges in the order of edge IDs"
    root_file: ClassVar[str] = "export.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "own"

    delimiter: Annotated[
        Literal["auto", "blank", "tab", "comma"], "auto: blanks where all cells are numbers and none is missing, else commas"
    ] = "auto"
    header: Annotated[bool, "the first line names the columns"] = False

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""
        if self.delimiter == "blank" and (reason := _why_no_blanks(metadata)):
            raise UsageError(f"option delimiter=blank: {reason}", fix="use tab or comma")
        need = StoreNeed(edge_columns="input", input_order=True)
        return ExportPlan(need, list_unsupported(metadata, _why_not), (_LOST_NODES,))

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        delimiter = self._delimiter(graph.metadata)
        separator = _SEPARATORS[delimiter]
        writer = LineWriter(separator, None if delimiter == "blank" else _QUOTING)
        ends = [RawLookup(graph.store, number) for number in range(len(graph.metadata.node_types))]
        for edge, edge_type in enumerate(graph.metadata.edge_types):
            columns = graph.edge_columns(edge)
            with out.open(f"{edge_type_path(edge_type)}.{_ENDINGS[delimiter]}") as file:
                if self.header:
                    file.write(writer.lines([_text(name) for name in column_names(("src", "dst"), columns)]))
                src, dst = (ends[number] for number in graph.ends_of(edge))
                write = partial(_lines, graph, edge, columns, src, dst, writer)
                for lines in map_ordered(write, graph.input_edges(edge), graph.room.threads):
                    file.write(lines)
            graph.reporter.advance(records=graph.metadata.num_edges_per_type[edge])
        if writer.has_breaks:
            graph.notes.append("some texts have line breaks, in double quotes: graphprep convert reads them with --quote")

    def _delimiter(self, metadata: GraphMetadata) -> Delimiter:
        if self.delimiter != "auto":
            return self.delimiter
        return "comma" if _why_no_blanks(metadata) else "blank"


def column_names(ends: Sequence[str], columns: Iterable[ColumnSchema]) -> list[str]:
    """Return the names of a table's columns: those of IDs get underscores in front where a column has the same name."""
    names = [column.name for column in columns]
    found = []
    for name in ends:
        while name in names:
            name = f"_{name}"  # noqa: PLW2901
        found.append(name)
    return [*found, *names]


def _why_not(side: Side, column: ColumnSchema) -> str | None:
    return "an edge list holds no columns of nodes" if side == "node" else why_no_cell(side, column)


def _why_no_blanks(metadata: GraphMetadata) -> str | None:
    """Say why cells cannot stand between blanks; None where they can."""
    if any(schema.raw_ids == "string" for schema in metadata.node_schemas):
        return "raw IDs are texts"
    for schema in metadata.edge_schemas:
        for column in schema.columns:
            if why_no_cell("edge", column) is not None:
                continue
            if column.kind == "binary" or column.categories is not None:
                return f"column {column.name!r} holds {'texts' if column.kind == 'binary' else 'names of categories'}"
            if column.optional:
                return f"some edges have no value in column {column.name!r}"
            if any(char in column.name for char in ' "\t'):
                return f"the name of column {column.name!r} has blanks or quotes"
    return None


# What texts that stand in quotes match: a line that begins with # or % would be a comment, a file that begins with U+FEFF be
# read without it, and a sign between other columns could be taken for the delimiter.
_QUOTING = '[,;|\t"\r\n\\x00]|^[#%\ufeff]|^$'


def _names_of(categories: Sequence[str], codes: NDArray[Any], present: NDArray[np.bool_] | None) -> RawTexts:
    """Return the names of categories by their numbers."""
    names = RawTexts.of([name.encode() for name in categories])
    rows = codes.astype(np.int64) if present is None else np.where(present, codes, 0).astype(np.int64)
    if not len(categories):
        return RawTexts(np.zeros(rows.size + 1, np.int64), names.values)
    starts, stops = names.offsets[rows], names.offsets[rows + 1]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(stops - starts)])
    values = np.empty(int(offsets[-1]), np.uint8)
    copy_blocks(names.values, starts, stops, values)
    return RawTexts(offsets, values)


def _text(name: str) -> TextColumn:
    return TextColumn(RawTexts.of([name.encode()]))


def _lines(
    graph: StoredGraph,
    edge: int,
    columns: Sequence[ColumnSchema],
    src: RawLookup,
    dst: RawLookup,
    writer: LineWriter,
    piece: EdgePiece,
) -> memoryview:
    cells = [TextColumn(src.of(piece.src)), TextColumn(dst.of(piece.dst))]
    for column in columns:
        found = graph.input_edge_cells(edge, column, piece.first, piece.last)
        present = graph.edge_present(edge, "input", 0, column, piece.first, piece.last)
        if column.categories is not None:
            cells.append(TextColumn(_names_of(column.categories, found.flat, present), present))
            continue
        if found.counts is None:
            cells.append(TextColumn(found.flat, present))
            continue
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(found.counts)])
        cells.append(TextColumn(RawTexts(offsets, found.values.view(np.uint8)), present))
    return writer.lines(cells)
