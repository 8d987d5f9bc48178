"""Streaming partitioners: ``ldg`` (Stanton and Kliot 2012) and ``fennel`` (Tsourakakis et al. 2014), in several passes.

A node goes where most of its neighbors are, unless it is full there. Memory: the partition of each node, beside rows of
neighbors that lie in files where they are many. The order of the stream is that of raw IDs, types alternating, so that neither
the number of threads nor how the store is partitioned decides anything.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace, tell_nobody
from graphprep.kernels.cpu.ids.stream_parts import StreamState, place_nodes
from graphprep.model.protocols import Reporter
from graphprep.rewrite.partition.assignment import Assignment
from graphprep.rewrite.partition.balance import Balances, find_balances
from graphprep.rewrite.partition.methods import GraphMethod
from graphprep.rewrite.partition.neighbors import alternate_types, join_neighbors
from graphprep.store.items import StoredArrays

Ints = NDArray[np.int64]
_STEP = 1 << 16


def stream_nodes(store: StoredArrays, method: GraphMethod, room: Workspace, reporter: Reporter) -> Assignment:
    """Place all nodes of a store, pass after pass, until none moves any more.

    Raises DataError where the store's arrays are faulty, UsageError for a balance that it does not have.
    """
    found = tuple(room.scratch.zeros(size, np.int32) for size in store.metadata.num_nodes_per_type)
    with room.scratch.inner() as scratch:
        inner = replace(room, scratch=scratch, advance=tell_nobody)
        numbers = alternate_types(store, inner)
        balances = find_balances(store, method.balance, numbers, inner)
        neighbors = join_neighbors(store, numbers, inner)
        parts = scratch.zeros(neighbors.num_nodes, np.int32)
        parts[:] = -1
        num_edges = neighbors.indices.size // 2
        state = _make_state(balances, parts, method, num_edges)
        for _ in range(method.passes):
            num_moved = 0
            for low in range(0, parts.size, _STEP):
                high = min(low + _STEP, parts.size)
                fennel = method.method == "fennel"
                num_moved += place_nodes(state, neighbors.indptr, neighbors.indices, low, high, fennel=fennel)
                reporter.advance(records=high - low)
            if not num_moved:
                break
        for by_type, those in zip(found, numbers, strict=True):
            for start in range(0, by_type.size, _STEP):
                by_type[start : start + _STEP] = parts[those[start : start + _STEP]]
    return Assignment(method.method, method.num_parts, found)


def _make_state(balances: Balances, parts: NDArray[np.int32], method: GraphMethod, num_edges: int) -> StreamState:
    """Begin with empty partitions. In a partition as full as the mean, a mean weight costs 1.5 · edges / nodes."""
    totals = balances.totals
    means = totals / method.num_parts
    most = np.floor(means * method.max_imbalance).astype(np.int64)
    mean_weights = np.divide(totals, balances.counts, out=np.ones(totals.size), where=totals > 0)
    return StreamState(
        parts,
        balances.classes,
        balances.weights,
        np.zeros((totals.size, method.num_parts), np.int64),
        np.maximum(-(-totals // method.num_parts), most),
        means,
        1.5 * (num_edges / max(1, parts.size)) / mean_weights,
        np.zeros(method.num_parts, np.int64),
    )
