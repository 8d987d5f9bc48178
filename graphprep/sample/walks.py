"""Neighbours by random walks: of each node those that walks from it visit most often (PinSAGE).

Source: Ying et al., "Graph convolutional neural networks for web-scale recommender systems", KDD 2018; over metapaths as DGL's
``RandomWalkNeighborSampler`` and ``PinSAGESampler``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.sample.draw import stream_keys
from graphprep.kernels.cpu.sample.philox import random_words
from graphprep.sample.drawn import FlowPlan, FlowSeeds, Layer, Picks, WalkPlan
from graphprep.sample.rows import Rows

Ints = NDArray[np.int64]
_MOST_VISITS = 1 << 18  # that are counted at once
_VISIT_BYTES = 64  # of a visit: who walks, where to, and the orders by which it is counted
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def draw_visits(
    plan: FlowPlan,
    walk: WalkPlan,
    rows: Sequence[Rows],
    layer: Layer,
    group: Sequence[FlowSeeds],
    hop: int,
    spend: Callable[[int], None],
) -> Picks:
    """Return the neighbours of a layer's nodes: those visited most, by falling counts, equal ones by ID; weights are counts.

    ``rows`` are those of the steps of a traversal. ``spend`` is told of the bytes that visits take, negative ones given back.
    """
    nodes, bounds = layer.nodes[plan.block_types[0].destination], layer.bounds[plan.block_types[0].destination]
    keys = stream_keys(plan.seed, [one.epoch for one in group], [one.batch for one in group], hop, 0)
    step = max(1, _MOST_VISITS // (walk.num_walks * walk.length))
    sizes, found, counts = [np.zeros(1, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.float32)]
    for flow in range(len(group)):
        for start in range(int(bounds[flow]), int(bounds[flow + 1]), step):
            mine = nodes[start : min(start + step, int(bounds[flow + 1]))]
            num_bytes = mine.size * walk.num_walks * walk.length * _VISIT_BYTES
            spend(num_bytes)
            owners, visited, count = _most_visited(*_visits(walk, rows, int(keys[flow]), mine), plan.fanouts[hop][0])
            spend(-num_bytes)
            sizes.append(np.bincount(owners, minlength=mine.size))
            found.append(visited)
            counts.append(count.astype(np.float32))
    none = np.full(sum(one.size for one in found), -1, np.int64)
    return Picks(np.cumsum(np.concatenate(sizes)), np.concatenate(found), none, none, np.concatenate(counts))


def _visits(walk: WalkPlan, rows: Sequence[Rows], key: int, nodes: Ints) -> tuple[Ints, Ints]:
    """Walk from nodes; return where each traversal ended, and from which of ``nodes``: int64[visits] each.

    Walk w of a node has the counter ID * walks + w, and of each step two words: whether it ends before it, and where it goes.
    """
    owners = np.repeat(np.arange(nodes.size), walk.num_walks)
    counters = (nodes[:, None] * walk.num_walks + np.arange(walk.num_walks)).reshape(-1).view(np.uint64)
    at = nodes[owners]
    ends, visited = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for step in range(len(rows) * walk.length):
        if step and step % len(rows) == 0:
            goes = random_words(key, counters, 2 * step) >= np.uint64(walk.ends_below)
            owners, counters, at = owners[goes], counters[goes], at[goes]
        if not at.size:
            break
        starts, degrees = rows[step % len(rows)].bounds(at)
        goes = degrees > 0
        owners, counters = owners[goes], counters[goes]
        chosen = _below(random_words(key, counters, 2 * step + 1), degrees[goes].view(np.uint64)).view(np.int64)
        at = rows[step % len(rows)].take(starts[goes] + chosen)[0]
        if (step + 1) % len(rows) == 0:
            ends.append(owners)
            visited.append(at)
    return np.concatenate(ends), np.concatenate(visited)


def _most_visited(owners: Ints, visited: Ints, most: int) -> tuple[Ints, Ints, Ints]:
    """Return for each owner the nodes that it visited most, and how often; -1: all of them."""
    order = np.lexsort((visited, owners))
    owners, visited = owners[order], visited[order]
    firsts = np.flatnonzero(np.concatenate([np.ones(min(1, owners.size), np.bool_), _differ(owners) | _differ(visited)]))
    counts = np.diff(np.append(firsts, owners.size))
    owners, visited = owners[firsts], visited[firsts]
    order = np.lexsort((visited, -counts, owners))
    owners, visited, counts = owners[order], visited[order], counts[order]
    ranks = np.arange(owners.size) - np.searchsorted(owners, owners)
    kept = ranks < most if most >= 0 else slice(None)
    return owners[kept], visited[kept], counts[kept]


def _differ(values: Ints) -> NDArray[np.bool_]:
    return np.asarray(values[1:] != values[:-1])


def _below(words: NDArray[np.uint64], sizes: NDArray[np.uint64]) -> Any:
    """Return floor(word * size / 2^64): see ``philox.below``."""
    low, high = words & _LOW, words >> _HALF
    size_low, size_high = sizes & _LOW, sizes >> _HALF
    middle = high * size_low + ((low * size_low) >> _HALF)
    other = low * size_high + (middle & _LOW)
    return high * size_high + (middle >> _HALF) + (other >> _HALF)
