"""Flows, grown hop by hop from their seeds: groups of them, of which each edge type's rows are asked once a hop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.sample.draw import draw_uniform, stream_keys
from graphprep.kernels.cpu.sample.number import Numbering
from graphprep.sample.arrays import FlowArrays
from graphprep.sample.drawn import FlowPlan, FlowSeeds, Layer, Picks, edges_of, rows_of
from graphprep.sample.layerwise import choose_layer
from graphprep.sample.rows import ENTRY_BYTES, Requests, Rows
from graphprep.sample.walks import draw_visits

Ints = NDArray[np.int64]
SEED_BYTES = 56  # of a seed of a flow: its type, ID and time, its slot in the numbering, and what is written
ROW_BYTES = 32  # of a node whose edges of a type are drawn: where its row lies, how long it is, and what is written
EDGE_BYTES = 96  # of an edge on its way: position, source, ID, their orders, its slot in the numbering, what is written


@dataclass(frozen=True)
class GrownFlow:
    """A flow, and where its edges stand in their layouts: int64[M], -1 for loops; None where nobody asked."""

    arrays: FlowArrays
    epoch: int
    batch: int
    positions: Ints | None


class TooLargeError(Exception):
    """The flows of a group would take ``num_bytes``, or more."""

    def __init__(self, num_bytes: int) -> None:
        super().__init__(num_bytes)
        self.num_bytes = num_bytes


class _Budget:
    """What the flows of a group may take, in bytes, and what is spent of it."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._spent_bytes = 0

    def check(self, num_bytes: int) -> None:
        """Raise TooLargeError where so many more are too many."""
        if self._spent_bytes + num_bytes > self._most_bytes:
            raise TooLargeError(self._spent_bytes + num_bytes)

    def spend(self, num_bytes: int) -> None:
        """Take some, negative ones back. Raises TooLargeError where they are too many."""
        self.check(num_bytes)
        self._spent_bytes += num_bytes


def grow_flows(plan: FlowPlan, rows: Sequence[Rows], group: Sequence[FlowSeeds], most_bytes: int) -> list[GrownFlow]:
    """Return the flows of some seeds: the same, whatever is grown beside them.

    ``rows`` are those of each block type, of walks those of each step; where ``plan.layer_method`` is ``fastgcn``, then the
    same the other way round. Raises TooLargeError before more than about ``most_bytes`` would be held, DataError where the
    store's arrays are faulty.
    """
    budget = _Budget(most_bytes)
    budget.spend(sum(one.nodes.size for one in group) * SEED_BYTES)
    layers, blocks = [_seed_layer(plan, group)], []
    for hop in range(plan.num_hops):
        picks = []
        for number, block_type in enumerate(plan.block_types):
            budget.spend(layers[-1].nodes[block_type.destination].size * ROW_BYTES)
            if plan.walk is None:
                picks.append(_draw(plan, rows[number], layers[-1], group, hop, number, budget))
            else:
                picks.append(draw_visits(plan, plan.walk, rows, layers[-1], group, hop, budget.spend))
                budget.spend(picks[-1].sources.size * EDGE_BYTES)
        if plan.layer_sizes:
            picks = choose_layer(plan, rows, layers[-1], picks, group, hop)
        for number, block_type in enumerate(plan.block_types):
            if plan.loops and plan.loops[block_type.destination] == number:
                picks[number] = _with_loops(picks[number], layers[-1].nodes[block_type.destination])
        layer, numbered = _number(plan, layers[-1], picks, len(group))
        layers.append(layer)
        blocks.append((picks, numbered))
    return [_assemble(plan, layers, blocks, seeds, at) for at, seeds in enumerate(group)]


def _seed_layer(plan: FlowPlan, group: Sequence[FlowSeeds]) -> Layer:
    num_types = len(plan.node_types)
    nodes: list[list[Ints]] = [[] for _ in range(num_types)]
    times: list[list[Ints]] = [[] for _ in range(num_types)]
    for seeds in group:
        for number in range(num_types):
            mine = np.flatnonzero(seeds.types == number) if num_types > 1 else slice(None)
            ids = np.ascontiguousarray(seeds.nodes[mine])
            stamps = None if seeds.times is None else np.ascontiguousarray(seeds.times[mine])
            met = Numbering(ids.size, plan.num_nodes[number], timed=stamps is not None)
            met.add(ids, stamps, np.empty(ids.size, np.int32))
            nodes[number].append(met.nodes)
            if met.times is not None:
                times[number].append(met.times)
    return _joined(nodes, times)


def _joined(nodes: list[list[Ints]], times: list[list[Ints]]) -> Layer:
    bounds = [np.cumsum([0, *(one.size for one in some)], dtype=np.int64) for some in nodes]
    return Layer(list(map(_join, nodes)), bounds, [_join(some) if some else None for some in times])


def _join(arrays: list[Any]) -> Any:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _draw(
    plan: FlowPlan, rows: Rows, layer: Layer, group: Sequence[FlowSeeds], hop: int, number: int, budget: _Budget
) -> Picks:
    of = plan.block_types[number].destination
    nodes, fanout = layer.nodes[of], plan.fanouts[hop][number]
    if fanout == 0 or not nodes.size:
        nothing = np.zeros(0, np.int64)
        return Picks(np.zeros(nodes.size + 1, np.int64), nothing, nothing, nothing)
    starts, degrees = rows.bounds(nodes)
    if fanout < 0:
        sizes = degrees
    elif plan.replace:
        sizes = np.where(degrees > 0, fanout, 0)
    else:
        sizes = np.minimum(degrees, fanout)
    offsets = _offsets(sizes)
    budget.spend(int(offsets[-1]) * EDGE_BYTES)
    flows = None
    if len(group) > 1:
        flows = np.repeat(np.arange(len(group), dtype=np.int32), np.diff(layer.bounds[of]))
    keys = stream_keys(plan.seed, [one.epoch for one in group], [one.batch for one in group], hop, number)
    of_rows = Requests(nodes, layer.times[of], flows, keys)
    if rows.arrays.weights is None and (rows.arrays.times is None or layer.times[of] is None):
        positions = np.empty(int(offsets[-1]), np.int64)
        draw_uniform(*of_rows, starts, degrees, offsets, plan.replace and fanout > 0, positions)
    else:
        budget.check(int(degrees.max(initial=0)) * ENTRY_BYTES)
        positions, counts = rows.choose(of_rows, starts, degrees, offsets, fanout, replace=plan.replace)
        if (counts != sizes).any():
            budget.spend((int(counts.sum()) - int(offsets[-1])) * EDGE_BYTES)
            positions = positions[_kept(offsets, counts)]
            offsets = _offsets(counts)
    return Picks(offsets, *rows.take(positions), positions)


def _offsets(sizes: Ints) -> Ints:
    offsets = np.zeros(sizes.size + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _kept(offsets: Ints, counts: Ints) -> Ints:
    """Return the places of the first so many of each request."""
    ends = np.cumsum(counts)
    return np.asarray(np.arange(int(ends[-1])) + np.repeat(offsets[:-1] - (ends - counts), counts))


def _with_loops(picks: Picks, nodes: Ints) -> Picks:
    """Put a loop at the head of each row."""
    loops = picks.offsets[:-1] + np.arange(nodes.size)
    others = np.ones(picks.sources.size + nodes.size, np.bool_)
    others[loops] = False

    def inserted(values: Ints, at_loops: Ints | int) -> Ints:
        out = np.empty(others.size, np.int64)
        out[loops], out[others] = at_loops, values
        return out

    offsets = picks.offsets + np.arange(nodes.size + 1)
    return Picks(offsets, inserted(picks.sources, nodes), inserted(picks.ids, -1), inserted(picks.positions, -1))


def _number(plan: FlowPlan, layer: Layer, picks: list[Picks], num_flows: int) -> tuple[Layer, list[NDArray[np.int32]]]:
    """Number the sources of every flow by type, in the order in which they are met: the next layer, and the numbers."""
    numbers = [np.empty(one.sources.size, np.int32) for one in picks]
    nodes: list[list[Ints]] = [[] for _ in plan.node_types]
    times: list[list[Ints]] = [[] for _ in plan.node_types]
    timed = layer.times[plan.block_types[0].destination] is not None if plan.block_types else False
    timed = timed or any(one is not None for one in layer.times)
    for flow in range(num_flows):
        for source in range(len(plan.node_types)):
            mine = [number for number, one in enumerate(plan.block_types) if one.source == source]
            edges = [edges_of(plan, layer, picks, number, flow) for number in mine]
            met = Numbering(sum(one.stop - one.start for one in edges), plan.num_nodes[source], timed=timed)
            for number, some in zip(mine, edges, strict=True):
                met.add(picks[number].sources[some], _times_of(plan, layer, picks, number, flow), numbers[number][some])
            nodes[source].append(met.nodes.copy())
            if met.times is not None:
                times[source].append(met.times.copy())
    return _joined(nodes, times), numbers


def _times_of(plan: FlowPlan, layer: Layer, picks: list[Picks], number: int, flow: int) -> Ints | None:
    """Return the times that the sources of a flow's edges have from their destinations."""
    times = layer.times[plan.block_types[number].destination]
    if times is None:
        return None
    rows = rows_of(plan, layer, number, flow)
    return np.repeat(times[rows], np.diff(picks[number].offsets[rows.start : rows.stop + 1]))


def _assemble(
    plan: FlowPlan,
    layers: list[Layer],
    blocks: list[tuple[list[Picks], list[NDArray[np.int32]]]],
    seeds: FlowSeeds,
    flow: int,
) -> GrownFlow:
    """Put the arrays of a flow together, the outermost layer first."""
    nodes, times, node_sizes = [], [], []
    for layer in reversed(layers):
        for number in range(len(plan.node_types)):
            some = slice(int(layer.bounds[number][flow]), int(layer.bounds[number][flow + 1]))
            nodes.append(layer.nodes[number][some])
            stamps = layer.times[number]
            if stamps is not None:
                times.append(stamps[some])
            node_sizes.append(nodes[-1].size)
    layer_offsets = _offsets(np.array(node_sizes, np.int64))
    sources, indptr, ids, positions, weights, edge_sizes = [], [], [], [], [], []
    for at in range(len(blocks)):
        hop = len(blocks) - 1 - at
        picks, numbered = blocks[hop]
        for number, block_type in enumerate(plan.block_types):
            edges = edges_of(plan, layers[hop], picks, number, flow)
            rows = rows_of(plan, layers[hop], number, flow)
            first = int(layer_offsets[at * len(plan.node_types) + block_type.source] - layer_offsets[at * len(plan.node_types)])
            sources.append(numbered[number][edges] + np.int32(first) if first else numbered[number][edges])
            indptr.append(picks[number].offsets[rows.start : rows.stop + 1] - edges.start)
            ids.append(picks[number].ids[edges])
            if plan.keep_positions:
                positions.append(picks[number].positions[edges])
            own = picks[number].weights
            if own is not None:
                weights.append(own[edges])
            edge_sizes.append(edges.stop - edges.start)
    arrays = FlowArrays(
        plan.node_types,
        plan.block_types,
        plan.direction,
        layer_offsets,
        np.concatenate(nodes),
        _offsets(np.array(edge_sizes, np.int64)),
        np.concatenate([np.zeros(0, np.int32), *sources]),
        np.concatenate([np.zeros(0, np.int64), *indptr]),
        np.concatenate([np.zeros(0, np.int64), *ids]),
        np.concatenate(times) if times else None,
        np.concatenate(weights) if weights else None,
    )
    kept = np.concatenate([np.zeros(0, np.int64), *positions]) if plan.keep_positions else None
    return GrownFlow(arrays, seeds.epoch, seeds.batch, kept)
