"""graphprep prepares graph data for graph learning: raw dumps in, CSR/CSC partitions out.

One function per command: ``convert``, ``info``, ``validate``, ``stats``, ``ids``, ``partition``, ``reorder``, ``export`` …;
``load``, which opens a store; functions over arrays in memory: ``build_adjacency``, ``rank_ids`` …; and what they work with.
All are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphprep.model.version import __version__

if TYPE_CHECKING:
    from graphprep.api import (
        clean,
        convert,
        export,
        export_targets,
        generate,
        ids,
        info,
        load,
        merge,
        open_store,
        partition,
        plan,
        reorder,
        sample,
        split,
        stats,
        transform,
        validate,
    )
    from graphprep.edges.adjacency import Adjacency
    from graphprep.edges.arrays import build_adjacency, degrees, reorder_by_degree, transpose
    from graphprep.edges.files import read_adjacency, read_edges
    from graphprep.edges.sorted_arrays import dedup_edges, rank_ids, sort_edges, sort_keys, split_by_partition
    from graphprep.graph.graph import Graph
    from graphprep.model.errors import GraphprepError
    from graphprep.model.export import ExportOptions, ExportSummary
    from graphprep.model.ids import IDConverter, PartitionBook
    from graphprep.model.options.clean import CleanReport
    from graphprep.model.options.convert import ConvertOptions, ConvertSummary
    from graphprep.model.options.generate import GenerateOptions, GenerateSummary
    from graphprep.model.options.partition import PartitionOptions, PartitionSummary
    from graphprep.model.options.plan import PlanReport
    from graphprep.model.options.reorder import ReorderOptions, ReorderSummary
    from graphprep.model.options.sample import SampleOptions, SampleSummary
    from graphprep.model.options.split import SplitOptions, SplitSummary
    from graphprep.model.options.stats import StatsOptions, StatsReport
    from graphprep.model.options.transform import TransformOptions, TransformSummary
    from graphprep.model.protocols import QuietReporter
    from graphprep.model.run_options import RunOptions
    from graphprep.sample.arrays import FlowArrays
    from graphprep.sample.flow.live import create_full_node_flow, neighbor_sampling
    from graphprep.sample.flow.node_flow import NodeFlow
    from graphprep.sample.flow.samples import Samples, open_samples

__all__ = [
    "Adjacency",
    "CleanReport",
    "ConvertOptions",
    "ConvertSummary",
    "ExportOptions",
    "ExportSummary",
    "FlowArrays",
    "GenerateOptions",
    "GenerateSummary",
    "Graph",
    "GraphprepError",
    "IDConverter",
    "NodeFlow",
    "PartitionBook",
    "PartitionOptions",
    "PartitionSummary",
    "PlanReport",
    "QuietReporter",
    "ReorderOptions",
    "ReorderSummary",
    "RunOptions",
    "SampleOptions",
    "SampleSummary",
    "Samples",
    "SplitOptions",
    "SplitSummary",
    "StatsOptions",
    "StatsReport",
    "TransformOptions",
    "TransformSummary",
    "__version__",
    "build_adjacency",
    "clean",
    "convert",
    "create_full_node_flow",
    "dedup_edges",
    "degrees",
    "export",
    "export_targets",
    "generate",
    "ids",
    "info",
    "load",
    "merge",
    "neighbor_sampling",
    "open_samples",
    "open_store",
    "partition",
    "plan",
    "rank_ids",
    "read_adjacency",
    "read_edges",
    "reorder",
    "reorder_by_degree",
    "sample",
    "sort_edges",
    "sort_keys",
    "split",
    "split_by_partition",
    "stats",
    "transform",
    "transpose",
    "validate",
]

_HOMES = {
    "Adjacency": "graphprep.edges.adjacency",
    "CleanReport": "graphprep.model.options.clean",
    "ConvertOptions": "graphprep.model.options.convert",
    "ConvertSummary": "graphprep.model.options.convert",
    "ExportOptions": "graphprep.model.export",
    "ExportSummary": "graphprep.model.export",
    "GenerateOptions": "graphprep.model.options.generate",
    "GenerateSummary": "graphprep.model.options.generate",
    "Graph": "graphprep.graph.graph",
    "GraphprepError": "graphprep.model.errors",
    "IDConverter": "graphprep.model.ids",
    "FlowArrays": "graphprep.sample.arrays",
    "NodeFlow": "graphprep.sample.flow.node_flow",
    "PartitionBook": "graphprep.model.ids",
    "PartitionOptions": "graphprep.model.options.partition",
    "PartitionSummary": "graphprep.model.options.partition",
    "PlanReport": "graphprep.model.options.plan",
    "QuietReporter": "graphprep.model.protocols",
    "ReorderOptions": "graphprep.model.options.reorder",
    "ReorderSummary": "graphprep.model.options.reorder",
    "SampleOptions": "graphprep.model.options.sample",
    "SampleSummary": "graphprep.model.options.sample",
    "SplitOptions": "graphprep.model.options.split",
    "SplitSummary": "graphprep.model.options.split",
    "Samples": "graphprep.sample.flow.samples",
    "StatsOptions": "graphprep.model.options.stats",
    "StatsReport": "graphprep.model.options.stats",
    "TransformOptions": "graphprep.model.options.transform",
    "TransformSummary": "graphprep.model.options.transform",
    "RunOptions": "graphprep.model.options.convert",
    "build_adjacency": "graphprep.edges.arrays",
    "clean": "graphprep.api",
    "convert": "graphprep.api",
    "create_full_node_flow": "graphprep.sample.flow.live",
    "dedup_edges": "graphprep.edges.sorted_arrays",
    "degrees": "graphprep.edges.arrays",
    "export": "graphprep.api",
    "export_targets": "graphprep.api",
    "generate": "graphprep.api",
    "ids": "graphprep.api",
    "info": "graphprep.api",
    "load": "graphprep.api",
    "merge": "graphprep.api",
    "neighbor_sampling": "graphprep.sample.flow.live",
    "open_samples": "graphprep.sample.flow.samples",
    "open_store": "graphprep.api",
    "partition": "graphprep.api",
    "plan": "graphprep.api",
    "rank_ids": "graphprep.edges.sorted_arrays",
    "read_adjacency": "graphprep.edges.files",
    "read_edges": "graphprep.edges.files",
    "reorder": "graphprep.api",
    "sample": "graphprep.api",
    "stats": "graphprep.api",
    "transform": "graphprep.api",
    "reorder_by_degree": "graphprep.edges.arrays",
    "sort_edges": "graphprep.edges.sorted_arrays",
    "sort_keys": "graphprep.edges.sorted_arrays",
    "split": "graphprep.api",
    "split_by_partition": "graphprep.edges.sorted_arrays",
    "transpose": "graphprep.edges.arrays",
    "validate": "graphprep.api",
}

_ROOMS = ("clean", "convert", "export", "generate", "ids", "info", "plan", "sample", "stats", "validate")  # so are functions
for _room in _ROOMS:
    import_module(f"graphprep.{_room}")  # Python makes it an attribute of the package now, and never again
    del globals()[_room]


def __getattr__(name: str) -> Any:
    """Load a name from its home."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the names, loaded or not."""
    return sorted({*globals(), *__all__})
