"""graphprep prepares graph data for graph learning: raw dumps in, CSR/CSC partitions out.

One function per command: ``convert``, ``info``, ``validate``, ``ids``, ``reorder``, ``export``, ``generate``; ``load``, which
opens a store; functions over arrays in memory: ``build_adjacency``, ``rank_ids`` …; and what they work with. All are loaded on
first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphprep.api import (
        QuietReporter,
        convert,
        export,
        export_targets,
        generate,
        ids,
        info,
        load,
        open_store,
        reorder,
        validate,
    )
    from graphprep.model.adjacency import Adjacency
    from graphprep.model.errors import GraphprepError
    from graphprep.model.export import ExportOptions, ExportSummary
    from graphprep.model.generate import GenerateOptions, GenerateSummary
    from graphprep.model.ids import IDConverter, PartitionBook
    from graphprep.model.options import ConvertOptions, ConvertSummary, RunOptions
    from graphprep.model.reorder import ReorderOptions, ReorderSummary
    from graphprep.stages.edge_files import read_adjacency, read_edges
    from graphprep.stages.graph_arrays import build_adjacency, degrees, reorder_by_degree, transpose
    from graphprep.stages.sorted_arrays import dedup_edges, rank_ids, sort_edges, sort_keys
    from graphprep.stages.stored_graph import Graph

__version__ = "0.1.0"

__all__ = [
    "Adjacency",
    "ConvertOptions",
    "ConvertSummary",
    "ExportOptions",
    "ExportSummary",
    "GenerateOptions",
    "GenerateSummary",
    "Graph",
    "GraphprepError",
    "IDConverter",
    "PartitionBook",
    "QuietReporter",
    "ReorderOptions",
    "ReorderSummary",
    "RunOptions",
    "__version__",
    "build_adjacency",
    "convert",
    "dedup_edges",
    "degrees",
    "export",
    "export_targets",
    "generate",
    "ids",
    "info",
    "load",
    "open_store",
    "rank_ids",
    "read_adjacency",
    "read_edges",
    "reorder",
    "reorder_by_degree",
    "sort_edges",
    "sort_keys",
    "transpose",
    "validate",
]

_HOMES = {
    "Adjacency": "graphprep.model.adjacency",
    "ConvertOptions": "graphprep.model.options",
    "ConvertSummary": "graphprep.model.options",
    "ExportOptions": "graphprep.model.export",
    "ExportSummary": "graphprep.model.export",
    "GenerateOptions": "graphprep.model.generate",
    "GenerateSummary": "graphprep.model.generate",
    "Graph": "graphprep.stages.stored_graph",
    "GraphprepError": "graphprep.model.errors",
    "IDConverter": "graphprep.model.ids",
    "PartitionBook": "graphprep.model.ids",
    "QuietReporter": "graphprep.api",
    "ReorderOptions": "graphprep.model.reorder",
    "ReorderSummary": "graphprep.model.reorder",
    "RunOptions": "graphprep.model.options",
    "build_adjacency": "graphprep.stages.graph_arrays",
    "convert": "graphprep.api",
    "dedup_edges": "graphprep.stages.sorted_arrays",
    "degrees": "graphprep.stages.graph_arrays",
    "export": "graphprep.api",
    "export_targets": "graphprep.api",
    "generate": "graphprep.api",
    "ids": "graphprep.api",
    "info": "graphprep.api",
    "load": "graphprep.api",
    "open_store": "graphprep.api",
    "rank_ids": "graphprep.stages.sorted_arrays",
    "read_adjacency": "graphprep.stages.edge_files",
    "read_edges": "graphprep.stages.edge_files",
    "reorder": "graphprep.api",
    "reorder_by_degree": "graphprep.stages.graph_arrays",
    "sort_edges": "graphprep.stages.sorted_arrays",
    "sort_keys": "graphprep.stages.sorted_arrays",
    "transpose": "graphprep.stages.graph_arrays",
    "validate": "graphprep.api",
}


def __getattr__(name: str) -> Any:
    """Load a name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted({*globals(), *__all__})
