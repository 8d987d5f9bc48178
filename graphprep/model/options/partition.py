"""What a user can ask of ``partition``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, RunResult
from graphprep.model.shown.texts import count


@dataclass(frozen=True)
class PartitionOptions:
    """Options of ``partition``.

    ``by`` is a method, a file or folder of assignments, or ``python:module:function``. ``partitions`` None: as many as the
    store has, or the file says. Of methods that look at edges: ``passes`` (None: 5) over the nodes; ``balance`` (none: nodes)
    names what partitions have equal shares of, up to ``max_imbalance`` (None: 1.05) times the mean.
    ``assignment_only`` writes files of assignments in place of a store. ``halo_hops``: how far the halos of the report reach.
    """

    by: str = "range"
    partitions: int | None = None
    seed: int = 0
    passes: int | None = None
    balance: tuple[str, ...] = ()
    max_imbalance: float | None = None
    assignment_only: bool = False
    halo_hops: int = 1
    overwrite: bool = False
    run: RunOptions = field(default_factory=RunOptions)


@dataclass(frozen=True)
class PartitionCut:
    """What a partitioning costs, over all types and partitions.

    ``cut_edges`` have their ends in two partitions, ``halo_nodes`` are those of others that partitions need, each counted for
    each that needs it. ``communication_volume`` adds up over all nodes in how many other partitions there are neighbors. An
    imbalance is what the largest partition has of nodes, or owns of edges, over the mean.
    """

    cut_edges: int
    cut_share: float
    halo_nodes: int
    communication_volume: int
    node_imbalance: float
    edge_imbalance: float


@dataclass(frozen=True)
class PartitionReport:
    """How good a partitioning is, beside that of ``hash`` into as many partitions.

    ``nodes``, ``edges`` (those owned) and ``halo`` (within ``halo_hops`` hops) are by type, a number for each partition.
    """

    nodes: Mapping[str, tuple[int, ...]]
    edges: Mapping[str, tuple[int, ...]]
    cut_edges: Mapping[str, int]
    halo: Mapping[str, tuple[int, ...]]
    halo_hops: int
    total: PartitionCut
    hash: PartitionCut


@dataclass(frozen=True, repr=False)
class PartitionSummary(RunResult):
    """What ``partition`` did. Sizes in bytes, times in seconds; ``notes`` are sentences for the user.

    ``by`` is what metadata.json says of the method. ``spilled_bytes`` is what went through temporary files, as it was beyond
    the memory limit.
    """

    out: str
    by: str
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    report: PartitionReport
    input_bytes: int
    output_bytes: int
    elapsed_s: float
    peak_memory_bytes: int
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        cut = f"{count(self.report.total.cut_edges, 'edge')} cut, {count(self.report.hash.cut_edges, 'edge')} by hash"
        return self.card_of(f"{self.out}: {self.sizes_words()} by {self.by}", cut, self.work_words())
