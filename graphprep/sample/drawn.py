"""What is drawn of some flows: how they are drawn, a layer of nodes, and the edges into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.sample.arrays import BlockType

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class WalkPlan:
    """How nodes are walked from: so many walks of ``length`` traversals, each over the rows of ``steps``, one after another.

    A walk ends before a traversal but the first where a word of 64 bits is less than ``ends_below``.
    """

    steps: tuple[BlockType, ...]
    num_walks: int
    length: int
    ends_below: int


@dataclass(frozen=True)
class FlowPlan:
    """How flows are drawn.

    ``fanouts[h][e]``: of block type e in hop h, counted from the seeds; -1 stands for all. ``layer_sizes`` (of each hop, else
    empty) are drawn by ``layer_method``. ``loops``: for each node type the block type under which its loops stand, -1: none.
    ``keep_positions``: where edges stand in their layout is kept, for columns. ``walk``: how neighbours are visited, of which
    ``fanouts`` says how many are kept; then there is one block type, of no edges of the store.
    """

    node_types: tuple[str, ...]
    num_nodes: tuple[int, ...]
    block_types: tuple[BlockType, ...]
    direction: str
    fanouts: tuple[tuple[int, ...], ...]
    seed: int = 0
    replace: bool = False
    layer_sizes: tuple[int, ...] = ()
    layer_method: str = "ladies"
    loops: tuple[int, ...] = ()
    keep_positions: bool = False
    walk: WalkPlan | None = None

    @property
    def num_hops(self) -> int:
        """Return how many blocks a flow has."""
        return len(self.fanouts)


@dataclass(frozen=True)
class FlowSeeds:
    """The seeds of a flow: types int32[n] and typed IDs int64[n], as given, with times int64[n] or None."""

    epoch: int
    batch: int
    types: NDArray[np.int32]
    nodes: Ints
    times: Ints | None = None


class Layer(NamedTuple):
    """A layer of some flows. By node type: nodes int64[n], flow after flow, their bounds int64[F + 1], and times, or None."""

    nodes: list[Ints]
    bounds: list[Ints]
    times: list[Ints | None]


@dataclass(frozen=True)
class Picks:
    """What was drawn of a block type: ``offsets`` int64[n + 1] by request; other ends, edge IDs and positions int64[m]."""

    offsets: Ints
    sources: Ints
    ids: Ints
    positions: Ints
    weights: NDArray[np.float32] | None = None


def rows_of(plan: FlowPlan, layer: Layer, number: int, flow: int) -> slice:
    """Return which requests of a block type are a flow's."""
    bounds = layer.bounds[plan.block_types[number].destination]
    return slice(int(bounds[flow]), int(bounds[flow + 1]))


def edges_of(plan: FlowPlan, layer: Layer, picks: Sequence[Picks], number: int, flow: int) -> slice:
    """Return which edges of a block type are a flow's."""
    rows, offsets = rows_of(plan, layer, number, flow), picks[number].offsets
    return slice(int(offsets[rows.start]), int(offsets[rows.stop]))


def drop_edges(picks: Picks, keep: NDArray[np.bool_], weights: NDArray[np.float32]) -> Picks:
    """Keep some edges; ``weights`` are those of the kept ones."""
    totals = np.concatenate([np.zeros(1, np.int64), np.cumsum(keep)])
    found = replace(picks, offsets=totals[picks.offsets], sources=picks.sources[keep], ids=picks.ids[keep])
    return replace(found, positions=picks.positions[keep], weights=weights)
