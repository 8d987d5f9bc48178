"""``metis``: METIS's multilevel k-way partitioner, by way of pymetis. It holds the whole graph in memory."""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.engine.budget import format_size
from graphprep.model.errors import GraphprepError, MemoryLimitError, UsageError
from graphprep.rewrite.partition.assignment import Assignment
from graphprep.rewrite.partition.balance import Balances, find_balances
from graphprep.rewrite.partition.methods import GraphMethod, load_pymetis
from graphprep.rewrite.partition.neighbors import Neighbors, join_neighbors, number_by_type
from graphprep.store.items import StoredArrays

Ints = NDArray[np.int64]
_METIS_OK = 1
_COPIES = 3  # of the graph: METIS's own, and the coarser ones, which are half of it and a quarter and so on


def run_metis(store: StoredArrays, method: GraphMethod, room: Workspace) -> Assignment:
    """Let METIS partition all nodes, by homogeneous ID; an edge weighs as much as there are parallel ones, in both directions.

    Raises UsageError where pymetis is not there, or does not show METIS's own call, which several balances take;
    MemoryLimitError where the graph is too large.
    """
    pymetis = load_pymetis()
    found = tuple(room.scratch.zeros(size, np.int32) for size in store.metadata.num_nodes_per_type)
    with room.scratch.inner() as scratch:
        inner = replace(room, scratch=scratch)
        numbers = number_by_type(store, inner)
        balances = find_balances(store, method.balance, numbers, inner)
        neighbors = join_neighbors(store, numbers, inner, "id")
        _check_memory(neighbors, balances.totals.size, room)
        graph, edge_weights = _joined(neighbors)
        options = pymetis.Options(seed=method.seed % 2**31, ufactor=max(1, round(1000 * (method.max_imbalance - 1))))
        weights = None if balances.weights.shape[1] == 1 else _weights(balances)
        if weights is None or weights.shape[1] == 1:
            adjacency = pymetis.CSRAdjacency(graph.indptr, graph.indices)
            given = {"eweights": edge_weights, "recursive": False, "options": options}
            with _no_prints():
                _, parts = pymetis.part_graph(method.num_parts, adjacency, vweights=weights, **given)
        else:
            with _no_prints():
                parts = part_graph(graph, weights, edge_weights, method.num_parts, options)
        every = np.asarray(parts, np.int32)
        for by_type, those in zip(found, numbers, strict=True):
            by_type[:] = every[those]
    return Assignment("metis", method.num_parts, found, {"pymetis": ".".join(map(str, pymetis.version_tuple))})


@contextlib.contextmanager
def _no_prints() -> Iterator[None]:
    """Let what C code prints go nowhere: METIS tells of partitions without nodes on stdout, where results stand."""
    sys.stdout.flush()
    flush = ctypes.CDLL(None).fflush
    flush(None)
    stdout, null = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        yield
        flush(None)
    finally:
        os.dup2(stdout, 1)
        os.close(stdout)
        os.close(null)


def part_graph(graph: Neighbors, weights: Ints, edge_weights: Ints, num_parts: int, options: Any) -> NDArray[Any]:
    """Call METIS itself, in pymetis's library: ``pymetis.part_graph`` passes one weight a node on, METIS takes several.

    ``weights``: int64[n, balances], ``edge_weights``: int64[entries], ``options``: pymetis's. Returns each node's partition.
    Source: METIS 5.1.0 manual, METIS_PartGraphKway.
    """
    from pymetis import _internal

    num_nodes, num_balances = weights.shape
    if num_parts == 1 or not num_nodes:
        return np.zeros(num_nodes, np.int32)
    try:
        call = ctypes.CDLL(_internal.__file__).METIS_PartGraphKway
        dtype = np.dtype(f"int{_internal._idx_type_width()}")
        values = [options._get(number) for number in range(type(options)._len())]
    except (OSError, AttributeError):
        raise UsageError(
            "this pymetis takes one --balance: nodes, edges, or a column of numbers",
            fix="choose one; or export --to metis, whose file has a weight for each node type, and run gpmetis",
        ) from None

    def pointer(values: Any) -> Any:
        held.append(np.ascontiguousarray(values, dtype))
        return held[-1].ctypes.data_as(ctypes.c_void_p)

    held: list[NDArray[Any]] = []
    found = np.zeros(num_nodes, dtype)
    status = call(
        pointer([num_nodes]),
        pointer([num_balances]),
        pointer(graph.indptr),
        pointer(graph.indices),
        pointer(weights),
        None,  # sizes of nodes
        pointer(edge_weights),
        pointer([num_parts]),
        None,  # equal shares
        None,  # the imbalance is that of the options
        pointer(values),
        pointer([0]),  # takes the cut
        found.ctypes.data_as(ctypes.c_void_p),
    )
    if status != _METIS_OK:
        raise GraphprepError(f"METIS ended with status {status}", fix="use --by fennel")
    return found


def _weights(balances: Balances) -> Ints:
    """Return a weight for each balance that some node has a part in: int64[n, balances], one at least."""
    kept = np.flatnonzero(balances.totals)
    column = np.full(balances.totals.size, -1)
    column[kept] = np.arange(kept.size)
    weights = np.zeros((balances.weights.shape[1], max(1, kept.size)), np.int64)
    nodes = np.arange(weights.shape[0])
    for classes, values in zip(balances.classes, balances.weights, strict=True):
        has = values > 0
        weights[nodes[has], column[classes[has]]] = values[has]
    return weights


def _check_memory(neighbors: Neighbors, num_balances: int, room: Workspace) -> None:
    need = 8 * _COPIES * (2 * neighbors.indices.size + (1 + num_balances) * neighbors.num_nodes)
    if need > room.mapped_bytes:
        raise MemoryLimitError(
            f"METIS holds the graph in memory, about {format_size(need)}, and the limit is {format_size(room.mapped_bytes)}",
            fix="raise --memory-limit, or use --by fennel, which does not",
        )


def _joined(neighbors: Neighbors) -> tuple[Neighbors, Ints]:
    """Return each neighbor once, as int64, and how often it was there; rows ascend."""
    indices = neighbors.indices.astype(np.int64)
    is_first = np.ones(indices.size, np.bool_)
    np.not_equal(indices[1:], indices[:-1], out=is_first[1:])
    starts = neighbors.indptr[:-1]
    is_first[starts[starts < indices.size]] = True
    at = np.flatnonzero(is_first)
    indptr = np.searchsorted(at, neighbors.indptr).astype(np.int64)
    return Neighbors(indptr, indices[at]), np.diff(at, append=indices.size)
