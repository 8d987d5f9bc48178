"""Layer-wise importance sampling: of the sources of all edges into a layer, some are drawn, and the edges of the others go.

LADIES: Zou, Hu, Wang, Jiang, Sun, Gu, "Layer-dependent importance sampling for training deep and large graph convolutional
networks", NeurIPS 2019. FastGCN: Chen, Ma, Xiao, "FastGCN: fast learning with graph convolutional networks via importance
sampling", ICLR 2018. The normalised adjacency is P[v, u] = 1 / (in-degree of v) for every edge from u to v.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.sample.draw import stream_keys
from graphprep.kernels.cpu.sample.number import Numbering
from graphprep.kernels.cpu.sample.philox import random_words
from graphprep.sample.drawn import FlowPlan, FlowSeeds, Layer, Picks, drop_edges, edges_of, rows_of
from graphprep.sample.rows import Rows

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
_OF_NODES = 1 << 31  # streams from here on are those of node types


def choose_layer(
    plan: FlowPlan, rows: Sequence[Rows], layer: Layer, picks: list[Picks], group: Sequence[FlowSeeds], hop: int
) -> list[Picks]:
    """Return of all edges into a layer those from the sources that are drawn, with their weights.

    Of each flow and node type, so many of the candidates (the sources) are drawn as ``plan.layer_sizes`` says, u with
    probability q[u]: with ``ladies`` proportional to the sum of P[v, u]^2 over the layer, with ``fastgcn`` to the number of
    edges that u is the source of in the whole graph. A drawn edge weighs P[v, u] / (n q[u]), n being how many were drawn; with
    ``ladies`` the weights of a row are then scaled to add up to 1.
    """
    keep = [np.zeros(one.sources.size, np.bool_) for one in picks]
    weights = [np.zeros(one.sources.size) for one in picks]
    for source in range(len(plan.node_types)):
        mine = [number for number, one in enumerate(plan.block_types) if one.source == source]
        keys = stream_keys(
            plan.seed, [one.epoch for one in group], [one.batch for one in group], hop, _OF_NODES + source
        )  # fmt: skip
        for flow in range(len(group) if mine else 0):
            edges = [edges_of(plan, layer, picks, number, flow) for number in mine]
            shares = [_shares(plan, layer, picks, number, flow) for number in mine]
            met = Numbering(sum(one.size for one in shares), plan.num_nodes[source], timed=False)
            numbers = [np.empty(one.size, np.int32) for one in shares]
            for number, some, out in zip(mine, edges, numbers, strict=True):
                met.add(picks[number].sources[some], None, out)
            wanted: Floats
            if plan.layer_method == "ladies":
                wanted = np.bincount(np.concatenate(numbers), np.concatenate(shares) ** 2, met.nodes.size).astype(
                    np.float64, copy=False
                )
            else:
                wanted = np.zeros(met.nodes.size)
                for number in mine:
                    wanted += rows[len(plan.block_types) + number].bounds(met.nodes)[1]
            times, scale = _draw_nodes(met.nodes, wanted, plan.layer_sizes[hop], int(keys[flow]), again=plan.replace)
            for number, some, out, share in zip(mine, edges, numbers, shares, strict=True):
                keep[number][some] = times[out] > 0
                weights[number][some] = share * scale[out]
    found = []
    for one, kept, weight in zip(picks, keep, weights, strict=True):
        fewer = drop_edges(one, kept, weight[kept].astype(np.float32))
        found.append(_scaled(fewer, weight[kept]) if plan.layer_method == "ladies" else fewer)
    return found


def _shares(plan: FlowPlan, layer: Layer, picks: list[Picks], number: int, flow: int) -> Floats:
    """Return P[v, u] of a flow's edges of a block type."""
    rows = rows_of(plan, layer, number, flow)
    degrees = np.diff(picks[number].offsets[rows.start : rows.stop + 1])
    return np.repeat(1.0 / np.maximum(degrees, 1), degrees)


def _draw_nodes(nodes: Ints, wanted: Floats, size: int, key: int, *, again: bool) -> tuple[Floats, Floats]:
    """Return how often each node is drawn, and by that what its edges' weights are multiplied with: float64[n] each.

    Without replacement those with the highest u^(1/q) are drawn, u being uniform in (0, 1] (Efraimidis, Spirakis 2006, A-Res).
    """
    times = np.zeros(nodes.size)
    if not nodes.size:
        return times, times
    chances = wanted / wanted.sum()
    if again:
        ends = np.cumsum(chances)
        drawn = np.searchsorted(ends, (1.0 - _uniform(np.arange(size), key)) * ends[-1], side="right")
        np.add.at(times, np.minimum(drawn, nodes.size - 1), 1.0)
    else:
        size = min(size, nodes.size)
        times[np.lexsort((nodes, -(np.log(_uniform(nodes, key)) / chances)))[:size]] = 1.0
    return times, times / (size * chances)


def _uniform(numbers: Ints, key: int) -> Floats:
    return np.asarray(((random_words(key, numbers.view(np.uint64), 0) >> np.uint64(11)).astype(np.float64) + 1.0) * 2.0**-53)


def _scaled(picks: Picks, weights: Floats) -> Picks:
    """Scale the weights of each row to add up to 1."""
    counts = np.diff(picks.offsets)
    owners = np.repeat(np.arange(counts.size), counts)
    sums = np.bincount(owners, weights, counts.size)
    return replace(picks, weights=(weights / sums[owners]).astype(np.float32))
