"""What a user can ask of ``reorder``, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Annotated, Literal, get_args

from graphprep.model.errors import UsageError, one_of
from graphprep.model.option import OVERWRITE, Option
from graphprep.model.run_options import RunOptions
from graphprep.model.schema import NodeOrder
from graphprep.model.shown.results import Card, RunResult

_of_order = partial(Option, "Order")

_WITH_FILE = ("score", "permutation")


@dataclass(frozen=True)
class ReorderOptions:
    """Options of ``reorder``.

    ``by``: an order (``NodeOrder``; of those with a file ``score:FILE`` and ``permutation:FILE``), or ``previous``. ``scope``:
    whether nodes stay in their partitions or are ordered across them. ``edge_types`` (``src:rel:dst``) are those whose edges
    count; none stands for all. ``shuffle_ratio`` is the share of a partition's nodes, the first of the order, that change
    places among themselves, ``split_ratio`` the share that is hot. ``id2index``: write where each node went, and how many are
    hot, as GraphLearn-for-PyTorch's ``Feature`` takes them.
    """

    by: Annotated[
        str,
        _of_order(
            "What comes first: nodes of the most edges (degree), in-edges (in-degree) or out-edges (out-degree); hubs, by "
            "degree (hub-sort) or as they stand (hub-cluster); groups of like degree (dbg); what a search meets first, "
            "breadth first (bfs) or from the lowest degrees on and reversed (rcm); one community after another (llp); any, "
            "by the seed (random); the highest scores (score:FILE); what a file says (permutation:FILE); what did before "
            "any reorder (previous).",
            metavar="ORDER",
            is_required=True,
        ),
    ] = "degree"
    scope: Annotated[
        Literal["partition", "graph"],
        _of_order("Keep nodes in their partitions, or order them across partitions, which keep their numbers of nodes."),
    ] = "partition"
    edge_types: Annotated[
        tuple[str, ...],
        _of_order(
            "Count the edges of this type only; may be repeated.  [default: all edge types]",
            metavar="SRC:REL:DST",
            flags="--edge-type",
        ),
    ] = ()
    shuffle_ratio: Annotated[
        float, _of_order("Shuffle the first R x n of a partition's n nodes of a type, those that come first.", metavar="R")
    ] = 0.0
    split_ratio: Annotated[float, _of_order("Call the first R x n nodes of a partition hot, for --id2index.", metavar="R")] = (
        0.0
    )
    id2index: Annotated[
        bool, _of_order("Write id2index.npy, where each node went, and the number of hot nodes, for GraphLearn-for-PyTorch.")
    ] = False
    seed: Annotated[int, _of_order("Seed of --shuffle-ratio, random and llp.", metavar="N")] = 0
    overwrite: Annotated[bool, OVERWRITE] = False
    run: RunOptions = field(default_factory=RunOptions)


def parse_order(text: str) -> tuple[NodeOrder | None, str]:
    """Return an order and its file, which may be empty; None stands for ``previous``.

    Raises UsageError.
    """
    name, _, file = text.partition(":")
    orders: tuple[NodeOrder, ...] = get_args(NodeOrder)
    forms = {one: f"{one}:FILE" if one in _WITH_FILE else one for one in orders}
    fix = one_of([*forms.values(), "previous"], found="" if name in forms else name)
    if text == "previous":
        return None, ""
    for one in orders:
        if one == name:
            if bool(file) != (one in _WITH_FILE) or text == f"{name}:":
                raise UsageError(f"--by {name} is written {forms[one]}, found {text!r}", fix=fix)
            return one, file
    raise UsageError(f"--by: there is no order {text!r}", fix=fix)


@dataclass(frozen=True)
class GapCost:
    """What the neighbours of all rows cost, each told by the gap from the one before: docs/reorder.md, "What it is worth".

    ``mean_log2`` is the mean of the gaps' logarithms to base 2, ``bits_per_edge`` the mean length of their Elias gamma codes.
    """

    mean_log2: float
    bits_per_edge: float


@dataclass(frozen=True, repr=False)
class ReorderSummary(RunResult):
    """What ``reorder`` did. Sizes in bytes, times in seconds; ``notes`` are sentences for the user.

    ``num_hot``: hot rows of each node type, those of all partitions, with ``id2index``. ``gaps_before`` and ``gaps_after`` are
    those of the primary layout's rows with the old IDs and with the new ones.
    ``spilled_bytes`` is what went through temporary files, as it was beyond the memory limit.
    """

    out: str
    by: str
    num_nodes: Mapping[str, int]
    num_edges: Mapping[str, int]
    num_parts: int
    num_hot: Mapping[str, int]
    gaps_before: GapCost
    gaps_after: GapCost
    input_bytes: int
    output_bytes: int
    elapsed_s: float
    peak_memory_bytes: int
    stage_s: Mapping[str, float] = field(default_factory=dict)
    spilled_bytes: int = 0
    notes: tuple[str, ...] = ()

    def card(self) -> Card:
        """See ``Showable``."""
        return self.card_of(f"{self.out}: {self.graph_words()}, nodes by {self.by}", self.work_words(), self.gaps_line())

    def gaps_line(self) -> str:
        """Say what the order is worth."""
        before, after = self.gaps_before, self.gaps_after
        bits = f"bits per edge {before.bits_per_edge:.2f} to {after.bits_per_edge:.2f}"
        return f"gaps: {bits}, mean log2 {before.mean_log2:.2f} to {after.mean_log2:.2f}"
