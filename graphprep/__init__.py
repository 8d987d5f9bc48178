"""graphprep prepares graph data for graph learning: raw dumps in, CSR/CSC partitions out.

A function for each command, with the options of its dataclass as keywords:
    convert, merge, plan, info, validate     raw data to a store, and what both are like
    stats, ids, clean, generate              what a graph is like; IDs; what runs left; test graphs
    partition, reorder, transform, split     a store of a store
    sample, export, export_targets           flows and files for trainers
Stores in Python: load (a Graph), open_store, open_samples, neighbor_sampling, create_full_node_flow.
Edges in arrays: build_adjacency (an Adjacency), transpose, sort_edges, dedup_edges, degrees, reorder_by_degree, rank_ids,
sort_keys, split_by_partition; in files: read_edges, read_adjacency. IDs: IDConverter, PartitionBook.
Errors are GraphprepErrors. help(graphprep.convert) tells of a function, help(graphprep.ConvertOptions) of its options.
All are loaded on first use, so that importing the package costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from graphprep.model.version import __version__ as __version__

if TYPE_CHECKING:
    from graphprep.api import clean as clean
    from graphprep.api import convert as convert
    from graphprep.api import export as export
    from graphprep.api import export_targets as export_targets
    from graphprep.api import generate as generate
    from graphprep.api import ids as ids
    from graphprep.api import info as info
    from graphprep.api import load as load
    from graphprep.api import merge as merge
    from graphprep.api import open_store as open_store
    from graphprep.api import partition as partition
    from graphprep.api import plan as plan
    from graphprep.api import reorder as reorder
    from graphprep.api import sample as sample
    from graphprep.api import split as split
    from graphprep.api import stats as stats
    from graphprep.api import transform as transform
    from graphprep.api import validate as validate
    from graphprep.edges.adjacency import Adjacency as Adjacency
    from graphprep.edges.arrays import build_adjacency as build_adjacency
    from graphprep.edges.arrays import degrees as degrees
    from graphprep.edges.arrays import reorder_by_degree as reorder_by_degree
    from graphprep.edges.arrays import transpose as transpose
    from graphprep.edges.files import read_adjacency as read_adjacency
    from graphprep.edges.files import read_edges as read_edges
    from graphprep.edges.sorted_arrays import dedup_edges as dedup_edges
    from graphprep.edges.sorted_arrays import rank_ids as rank_ids
    from graphprep.edges.sorted_arrays import sort_edges as sort_edges
    from graphprep.edges.sorted_arrays import sort_keys as sort_keys
    from graphprep.edges.sorted_arrays import split_by_partition as split_by_partition
    from graphprep.graph.graph import Graph as Graph
    from graphprep.model.errors import GraphprepError as GraphprepError
    from graphprep.model.export import ExportOptions as ExportOptions
    from graphprep.model.export import ExportSummary as ExportSummary
    from graphprep.model.ids import IDConverter as IDConverter
    from graphprep.model.ids import PartitionBook as PartitionBook
    from graphprep.model.options.clean import CleanReport as CleanReport
    from graphprep.model.options.convert import ConvertOptions as ConvertOptions
    from graphprep.model.options.convert import ConvertSummary as ConvertSummary
    from graphprep.model.options.generate import GenerateOptions as GenerateOptions
    from graphprep.model.options.generate import GenerateSummary as GenerateSummary
    from graphprep.model.options.partition import PartitionOptions as PartitionOptions
    from graphprep.model.options.partition import PartitionSummary as PartitionSummary
    from graphprep.model.options.plan import PlanReport as PlanReport
    from graphprep.model.options.reorder import ReorderOptions as ReorderOptions
    from graphprep.model.options.reorder import ReorderSummary as ReorderSummary
    from graphprep.model.options.sample import SampleOptions as SampleOptions
    from graphprep.model.options.sample import SampleSummary as SampleSummary
    from graphprep.model.options.split import SplitOptions as SplitOptions
    from graphprep.model.options.split import SplitSummary as SplitSummary
    from graphprep.model.options.stats import StatsOptions as StatsOptions
    from graphprep.model.options.stats import StatsReport as StatsReport
    from graphprep.model.options.transform import TransformOptions as TransformOptions
    from graphprep.model.options.transform import TransformSummary as TransformSummary
    from graphprep.model.protocols import QuietReporter as QuietReporter
    from graphprep.model.run_options import RunOptions as RunOptions
    from graphprep.sample.arrays import FlowArrays as FlowArrays
    from graphprep.sample.flow.live import create_full_node_flow as create_full_node_flow
    from graphprep.sample.flow.live import neighbor_sampling as neighbor_sampling
    from graphprep.sample.flow.node_flow import NodeFlow as NodeFlow
    from graphprep.sample.flow.samples import Samples as Samples
    from graphprep.sample.flow.samples import open_samples as open_samples

# Without __all__, of which help() would tell every method.
_HOMES = {
    "api": (
        "clean convert export export_targets generate ids info load merge "
        "open_store partition plan reorder sample split stats transform validate"
    ),
    "edges.adjacency": "Adjacency",
    "edges.arrays": "build_adjacency degrees reorder_by_degree transpose",
    "edges.files": "read_adjacency read_edges",
    "edges.sorted_arrays": "dedup_edges rank_ids sort_edges sort_keys split_by_partition",
    "graph.graph": "Graph",
    "model.errors": "GraphprepError",
    "model.export": "ExportOptions ExportSummary",
    "model.ids": "IDConverter PartitionBook",
    "model.options.clean": "CleanReport",
    "model.options.convert": "ConvertOptions ConvertSummary",
    "model.options.generate": "GenerateOptions GenerateSummary",
    "model.options.partition": "PartitionOptions PartitionSummary",
    "model.options.plan": "PlanReport",
    "model.options.reorder": "ReorderOptions ReorderSummary",
    "model.options.sample": "SampleOptions SampleSummary",
    "model.options.split": "SplitOptions SplitSummary",
    "model.options.stats": "StatsOptions StatsReport",
    "model.options.transform": "TransformOptions TransformSummary",
    "model.protocols": "QuietReporter",
    "model.run_options": "RunOptions",
    "sample.arrays": "FlowArrays",
    "sample.flow.live": "create_full_node_flow neighbor_sampling",
    "sample.flow.node_flow": "NodeFlow",
    "sample.flow.samples": "Samples open_samples",
}
_MODULES = {name: f"graphprep.{module}" for module, names in _HOMES.items() for name in names.split()}

_ROOMS = ("clean", "convert", "export", "generate", "ids", "info", "plan", "sample", "stats", "validate")  # so are functions
for _room in _ROOMS:
    import_module(f"graphprep.{_room}")  # Python makes it an attribute of the package now, and never again
    del globals()[_room]


def __getattr__(name: str) -> Any:
    """Load a name from its home."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, loaded or not."""
    return sorted([*_MODULES, "__version__"])
