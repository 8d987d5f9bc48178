"""What a user can ask of ``convert``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from graphprep.model.graph_config import GraphConfig
from graphprep.model.run_options import RunOptions
from graphprep.model.schema import Layout, NeighborOrder
from graphprep.model.shown.results import Card, RunResult


@dataclass(frozen=True)
class ConvertOptions:
    """Options of ``convert``; the command line names each of them in its help.

    ``format`` None means: sniff. ``decoder`` is ``package.module:Class``. ``decoder_options`` are the decoder's own fields, as
    given. ``graph`` says which files are the tables of which types (``--nodes``, ``--edges``); ``node_data``, ``edge_data``,
    ``labels``, ``splits``, ``seeds`` and ``categories`` are the flags' texts (``TYPE:NAME=FILE``, ``TYPE:COL``, ``TYPE=FILE``).
    ``num_nodes`` maps a node type (``""`` for the only one) to its number of nodes. ``densify`` names sparse columns (``name``,
    or ``type:name``) that are stored as dense ones. ``schema`` is the URL of a schema file.
    ``max_errors`` is a number of records, or a share (``"5%"``); with fewer than ``min_nodes`` or ``min_edges`` in all the run
    fails, and with an empty input where a store would be replaced, unless ``allow_empty``. ``drop_self_loops``, ``dedup``,
    ``undirected`` and ``largest_component`` are operations of ``transform``, in this order. ``edge_id_col`` names columns that
    are the edges' own IDs, so that a run ends where one is not there, or has no whole number for each edge. ``resume`` goes on
    where an interrupted run of the same call stopped. ``engine`` says who decodes: threads of this process, as many processes,
    or workers of dask or Ray, at the address ``scheduler`` or started here. Worker ``worker_index`` (from 0) of
    ``worker_count`` decodes its share and leaves the rest to ``merge``.
    """

    format: str | None = None
    decoder: str | None = None
    decoder_options: Mapping[str, Any] = field(default_factory=dict)
    partitions: int | None = None
    partition_by: str = "range"
    layout: Literal["csc", "csr", "both"] = "csc"
    neighbor_order: NeighborOrder = "input"
    edge_ids: bool = True
    index_dtype: Literal["auto", "int32", "int64"] = "auto"
    weight_dtype: Literal["float32", "float64"] = "float32"
    ids: Literal["auto", "dense", "sparse"] | None = None
    num_nodes: Mapping[str, int] = field(default_factory=dict)
    on_missing_node: Literal["error", "create", "drop"] = "error"
    missing_node_type: str | None = None
    graph_name: str | None = None
    schema: str | None = None
    on_error: Literal["stop", "skip"] = "stop"
    bad_records: str | None = None
    max_errors: int | str | None = None
    min_nodes: int = 0
    min_edges: int = 0
    overwrite: bool = False
    allow_empty: bool = False
    seed: int = 0
    graph: GraphConfig | None = None
    node_data: tuple[str, ...] = ()
    edge_data: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    splits: tuple[str, ...] = ()
    seeds: tuple[str, ...] = ()
    densify: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    edge_id_col: tuple[str, ...] = ()
    block_bytes: int = 0
    undirected: bool = False
    dedup: bool = False
    drop_self_loops: bool = False
    largest_component: bool = False
    resume: bool = False
    engine: Literal["threads", "processes", "dask", "ray"] = "threads"
    scheduler: str | None = None
    worker_index: int | None = None
    worker_count: int | None = None
    run: RunOptions = field(default_factory=RunOptions)

    @property
    def on_cluster(self) -> bool:
        """Return whether the workers of a cluster decode."""
        return self.engine in ("dask", "ray")

    @cached_property
    def layouts(self) -> tuple[Layout, ...]:
        """Return the layouts of the edges, the primary one first."""
        return ("csc", "csr") if self.layout == "both" else (self.layout,)

    def operations(self) -> list[str]:
        """Return the operations of ``transform`` that the graph goes through, as words."""
        words = ["self-loops", "drop"] * self.drop_self_loops + ["to-simple", "first"] * self.dedup
        return words + ["to-bidirected"] * self.undirected + ["largest-component"] * self.largest_component


@dataclass(frozen=True, repr=False, kw_only=True)
class ConvertSummary(RunResult):
    """What ``convert`` did. Sizes in bytes, times in seconds; ``notes`` are sentences for the user.

    ``splits`` counts nodes or edges of a type by part: train, valid, test, none. ``spilled_bytes`` is what went through
    temporary files, as it was beyond the memory limit.
    """

    out: str
    format: str
    format_flags: tuple[str, ...]
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    num_records: int = 0
    num_skipped: int = 0
    num_dropped_edges: int = 0
    num_created_nodes: int = 0
    input_bytes: int = 0
    output_bytes: int = 0
    elapsed_s: float
    peak_memory_bytes: int
    splits: Mapping[str, tuple[int, int, int, int]] = field(default_factory=dict)
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        lost = [f"{self.num_skipped:,} records skipped"] if self.num_skipped else []
        lost += [f"{self.num_dropped_edges:,} edges dropped"] if self.num_dropped_edges else []
        lost += [f"{self.num_created_nodes:,} nodes created"] if self.num_created_nodes else []
        return self.card_of(f"{self.out}: {self.sizes_words()}", self.work_words(), *lost)
