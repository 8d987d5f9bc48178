"""``mtx``: Matrix Market files, as SciPy, Julia, MATLAB and SuiteSparse read them.

Source: R. F. Boisvert, R. Pozo, K. A. Remington, The Matrix Market Exchange Formats (NISTIR 5935).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np

from graphprep.engine.local import map_ordered
from graphprep.exporters.formats.text_lines import LineWriter, TextColumn
from graphprep.exporters.plain.scipy_files import check_weight, find_weight, note_weights
from graphprep.exporters.unsupported import list_unsupported
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.export import ExportPlan, Side, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, edge_type_path
from graphprep.storage.write.outputs import FolderOutput


@dataclass(frozen=True)
class MtxExporter:
    """Writes a matrix for each edge type, [sources, destinations], in coordinate format, its entries by edge ID.

    Whole numbers make an integer matrix.
    """

    name: ClassVar[str] = "mtx"
    loads_in: ClassVar[str] = "scipy.io.mmread, and whatever else reads Matrix Market files"
    carries: ClassVar[str] = "edges with one number each; no columns of nodes"
    needs: ClassVar[str] = "edges in the order of edge IDs"
    root_file: ClassVar[str] = "export.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"

    weight: Annotated[str, "edge column of the values; else the weights, or none: a pattern"] = ""

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""
        check_weight(metadata, self.weight)
        need = StoreNeed(edge_columns="input", input_order=True)
        return ExportPlan(need, list_unsupported(metadata, self._why_not), note_weights(metadata), dtypes="files")

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        for edge, edge_type in enumerate(graph.metadata.edge_types):
            weight = find_weight(graph.edge_columns(edge), self.weight)
            with out.open(f"{edge_type_path(edge_type)}.mtx") as file:
                file.write(_head(graph, edge, weight))
                for lines in map_ordered(LineWriter(" ").lines, _entries(graph, edge, weight), graph.room.threads):
                    file.write(lines)
            graph.reporter.advance(records=graph.metadata.num_edges_per_type[edge])

    def _why_not(self, side: Side, column: ColumnSchema) -> str | None:
        if side == "node":
            return "a matrix holds no columns of nodes"
        return None if find_weight([column], self.weight) else "an entry holds one number, which --option weight=NAME names"


def _head(graph: StoredGraph, edge: int, weight: ColumnSchema | None) -> bytes:
    field = "pattern" if weight is None else "real" if np.dtype(weight.dtype).kind == "f" else "integer"
    rows, columns = (graph.metadata.num_nodes_per_type[number] for number in graph.ends_of(edge))
    size = f"{rows} {columns} {graph.metadata.num_edges_per_type[edge]}"
    return f"%%MatrixMarket matrix coordinate {field} general\n{size}\n".encode()


def _entries(graph: StoredGraph, edge: int, weight: ColumnSchema | None) -> Iterator[list[TextColumn]]:
    """Yield blocks of entries: both ends counted from 1, and values."""
    src, dst = graph.ends_of(edge)
    for piece in graph.input_edges(edge):
        ends = [graph.to_ids(src, piece.src) + 1, graph.to_ids(dst, piece.dst) + 1]
        columns = [TextColumn(end) for end in ends]
        if weight is not None:
            columns.append(TextColumn(graph.input_edge_cells(edge, weight, piece.first, piece.last).flat))
        yield columns
