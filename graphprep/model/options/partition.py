"""What a user can ask of ``partition``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated

from graphprep.model.option import Option
from graphprep.model.run_options import RunOptions
from graphprep.model.shown.results import Card, RunResult
from graphprep.model.shown.texts import count

_of_partitions = partial(Option, "Partitions")
_of_store = partial(Option, "Store")


@dataclass(frozen=True)
class PartitionOptions:
    """Options of ``partition``.

    ``by`` is a method, a file or folder of assignments, or ``python:module:function``. ``partitions`` None: as many as the
    store has, or the file says. Of methods that look at edges: ``passes`` (None: 5) over the nodes; ``balance`` (none: nodes)
    names what partitions have equal shares of, up to ``max_imbalance`` (None: 1.05) times the mean.
    ``assignment_only`` writes files of assignments in place of a store. ``halo_hops``: how far the halos of the report reach.
    """

    by: Annotated[
        str,
        _of_partitions(
            "range, hash, modulo, random, round-robin; by edges ldg, fennel or metis; a file or folder of assignments; or "
            "python:MODULE:FUNCTION.",
            metavar="METHOD",
            is_required=True,
            words="range|hash|modulo|random|round-robin|ldg|fennel|metis",
        ),
    ] = "range"
    partitions: Annotated[
        int | None,
        _of_partitions(
            "Number of partitions.  [default: the store's, or the file's]",
            flags="--partitions -p",
            metavar="N",
            least=1,
            hint="give the number of partitions",
        ),
    ] = None
    seed: Annotated[int, _of_partitions("Seed of --by random.", metavar="N")] = 0
    passes: Annotated[
        int | None,
        _of_partitions(
            "Times that ldg and fennel place each node.  [default: 5]", metavar="N", least=1, hint="give the number of passes"
        ),
    ] = None
    balance: Annotated[
        tuple[str, ...],
        _of_partitions(
            "What methods by edges give equal shares of: nodes, edges, type (nodes of each type), or a node column: its "
            "sum, or, of bools, splits and categories, nodes of each value. May be repeated.  [default: nodes]",
            metavar="WHAT",
        ),
    ] = ()
    max_imbalance: Annotated[
        float | None, _of_partitions("What a partition may have of it, over the mean.  [default: 1.05]", metavar="X")
    ] = None
    halo_hops: Annotated[
        int,
        _of_partitions(
            "Hops from a partition's nodes to those of others that the report counts as its halo.",
            metavar="K",
            least=1,
            hint="give the number of hops",
        ),
    ] = 1
    assignment_only: Annotated[
        bool, _of_partitions("Write DGL's files of assignments in place of a store: TYPE.txt and partition_meta.json.")
    ] = False
    overwrite: Annotated[
        bool, _of_store("Replace OUT if it is what would be written; the old one stays until the new one is whole.")
    ] = False
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
