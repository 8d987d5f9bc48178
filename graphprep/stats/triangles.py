"""Triangles and clustering of all types as one graph without directions, loops and repeats: counted, or from a sample."""

from __future__ import annotations

import math
import queue
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.engine.ledger import Need
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.kernels.cpu.stats.triangles import count_triangles, drop_repeats, has_edges, keep_higher
from graphprep.model.options.stats import StatsOptions, TriangleStats
from graphprep.rewrite.partition.neighbors import Neighbors, join_neighbors
from graphprep.rewrite.stored_edges import derive_needs
from graphprep.store.items import StoredArrays

Ints = NDArray[np.int64]
_STEP = 1 << 16
_NUM_SAMPLES = 1 << 17  # standard errors of at most 0.0014
_TASKS_A_THREAD = 16
_DIGITS = 12  # of shares: sums of floats may differ in the last ones


def triangle_needs(room: Workspace) -> Iterator[Need]:
    """Declare what they take."""
    yield from derive_needs(room)
    yield Need("sample", 12 * 8 * _NUM_SAMPLES, "paths that are looked at")


def find_triangles(store: StoredArrays, options: StatsOptions, room: Workspace) -> TriangleStats:
    """Count triangles, or estimate their number. Raises DataError where the store's arrays are faulty."""
    with room.scratch.inner() as scratch:
        room = replace(room, scratch=scratch)
        neighbors = join_neighbors(store, _numbers(store, room), room, "id")
        num_entries = drop_repeats(neighbors.indptr, neighbors.indices)
        degrees = room.scratch.zeros(neighbors.num_nodes, np.int64)
        for start in range(0, degrees.size, _STEP):
            degrees[start : start + _STEP] = np.diff(neighbors.indptr[start : start + _STEP + 1])
        held = num_entries * neighbors.indices.itemsize + (neighbors.num_nodes + 1) * (16 + 9 * room.threads)
        is_exact = options.triangles == "exact" or (options.triangles == "auto" and held <= room.scratch.cap_bytes)
        return _count(neighbors, degrees, room) if is_exact else _sample(neighbors, degrees, options.seed, room)


def _numbers(store: StoredArrays, room: Workspace) -> list[Ints]:
    """Number the nodes of all types, one type after another: int64[n] for each type."""
    found, first = [], 0
    for size in store.metadata.num_nodes_per_type:
        found.append(room.scratch.zeros(size, np.int64))
        for start in range(0, size, _STEP):
            found[-1][start : start + _STEP] = np.arange(first + start, first + min(start + _STEP, size))
        first += size
    return found


def _paths(degrees: Ints) -> Ints:
    """Return how many paths of two edges have each node in their middle."""
    return np.asarray(degrees * (degrees - 1) // 2)


def _count(neighbors: Neighbors, degrees: Ints, room: Workspace) -> TriangleStats:
    keep_higher(neighbors.indptr, neighbors.indices, degrees)
    counts = _count_by_node(neighbors, room)
    num_triangles, num_paths, clustering = 0, 0, 0.0
    for start in range(0, degrees.size, _STEP):
        of_nodes, paths = counts[start : start + _STEP], _paths(degrees[start : start + _STEP])
        num_triangles += int(of_nodes.sum())
        num_paths += int(paths.sum())
        clustering += float((of_nodes / np.maximum(paths, 1)).sum())
    return TriangleStats(
        exact=True,
        num_triangles=num_triangles // 3,
        num_paths=num_paths,
        global_clustering=round(num_triangles / max(1, num_paths), _DIGITS),
        average_clustering=round(clustering / max(1, degrees.size), _DIGITS),
    )


def _count_by_node(neighbors: Neighbors, room: Workspace) -> Ints:
    """Count the triangles of each node: int64[n]. Every thread adds to an array of its own."""
    every = [room.scratch.zeros(neighbors.num_nodes, np.int64) for _ in range(max(1, room.threads))]
    free: queue.SimpleQueue[tuple[Ints, NDArray[np.bool_]]] = queue.SimpleQueue()
    for counts in every:
        free.put((counts, room.scratch.zeros(neighbors.num_nodes, np.bool_)))

    def count(rows: tuple[int, int]) -> None:
        arrays = free.get()
        count_triangles(neighbors.indptr, neighbors.indices, *rows, *arrays)
        free.put(arrays)

    for _ in map_ordered(count, _tasks(neighbors.indptr, room.threads), room.threads):
        pass
    for other in every[1:]:
        for start in range(0, other.size, _STEP):
            every[0][start : start + _STEP] += other[start : start + _STEP]
    return every[0]


def _tasks(indptr: Ints, threads: int) -> Iterator[tuple[int, int]]:
    """Cut rows into runs of about as many entries each."""
    wanted = np.linspace(0, int(indptr[-1]), _TASKS_A_THREAD * max(1, threads) + 1)
    borders = np.unique(np.concatenate([np.searchsorted(indptr, wanted), [0, indptr.size - 1]]))
    yield from zip(borders[:-1].tolist(), borders[1:].tolist(), strict=True)


def _sample(neighbors: Neighbors, degrees: Ints, seed: int, room: Workspace) -> TriangleStats:
    """Draw paths, of all with the same chance, and nodes, each with a path in whose middle it is; look whether they close.

    Source: Seshadhri, Pinar, Kolda, "Triadic measures on graphs: the power of wedge sampling", SDM 2013.
    """
    ends = room.scratch.zeros(degrees.size, np.int64)
    num_paths = 0
    for start in range(0, degrees.size, _STEP):
        some = ends[start : start + _STEP]
        some[:] = np.cumsum(_paths(degrees[start : start + _STEP])) + num_paths
        num_paths = int(some[-1])
    if not num_paths:
        return TriangleStats(True, 0, 0, 0.0, 0.0)  # nothing to draw from
    drawn = (_uniform(seed, 0) * num_paths).astype(np.int64)
    closed = _closed(neighbors, degrees, np.searchsorted(ends, drawn, side="right"), seed, 1)
    overall, overall_error = _share(closed)
    nodes = (_uniform(seed, 3) * degrees.size).astype(np.int64)
    average, average_error = _share(_closed(neighbors, degrees, nodes, seed, 4))
    return TriangleStats(
        exact=False,
        num_triangles=round(overall * num_paths / 3),
        num_paths=num_paths,
        global_clustering=overall,
        average_clustering=average,
        num_triangles_error=overall_error * num_paths / 3,
        global_clustering_error=overall_error,
        average_clustering_error=average_error,
        num_samples=_NUM_SAMPLES,
    )


def _share(closed: NDArray[np.bool_]) -> tuple[float, float]:
    """Return the share of paths that are closed, and its standard error."""
    share = float(closed.mean())
    return share, math.sqrt(share * (1 - share) / closed.size)


def _closed(neighbors: Neighbors, degrees: Ints, middles: Ints, seed: int, stream: int) -> NDArray[np.bool_]:
    """Draw two neighbours of each node, and return whether these have an edge; false where there are no two."""
    found = np.zeros(middles.size, np.bool_)
    able = np.flatnonzero(degrees[middles] > 1)
    some, sizes = middles[able], degrees[middles[able]]
    one = (_uniform(seed, stream)[able] * sizes).astype(np.int64)
    two = (_uniform(seed, stream + 1)[able] * (sizes - 1)).astype(np.int64)
    two += two >= one
    starts = neighbors.indptr[some]
    a, b = (neighbors.indices[starts + at].astype(np.int64) for at in (one, two))
    out = np.zeros(able.size, np.bool_)
    has_edges(neighbors.indptr, neighbors.indices, a, b, out)
    found[able] = out
    return found


def _uniform(seed: int, stream: int) -> NDArray[Any]:
    """Return a number in [0, 1) for each draw, that follows from the seed, the stream and the draw alone: float64."""
    key = hash_ints(np.array([seed % 2**64], np.uint64)) + np.uint64(stream)
    mixed = hash_ints(hash_ints(np.arange(_NUM_SAMPLES, dtype=np.uint64)) ^ hash_ints(key))
    return np.asarray((mixed >> np.uint64(11)) * 2.0**-53)
