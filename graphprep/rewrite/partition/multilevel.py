"""``metis``: METIS's multilevel k-way partitioner, by way of pymetis. It holds the whole graph in memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.engine.budget import format_size
from graphprep.model.errors import MemoryLimitError, UsageError
from graphprep.rewrite.partition.assignment import Assignment
from graphprep.rewrite.partition.balance import find_balances
from graphprep.rewrite.partition.methods import GraphMethod, load_pymetis
from graphprep.rewrite.partition.neighbors import Neighbors, join_neighbors, number_by_type
from graphprep.store.items import StoredArrays

Ints = NDArray[np.int64]
_COPIES = 3  # of the graph: METIS's own, and the coarser ones, which are half of it and a quarter and so on


def run_metis(store: StoredArrays, method: GraphMethod, room: Workspace) -> Assignment:
    """Let METIS partition all nodes, by homogeneous ID; an edge weighs as much as there are parallel ones, in both directions.

    Raises UsageError where pymetis is not there, and for balances of classes, which it does not take; MemoryLimitError where
    the graph is too large.
    """
    pymetis = load_pymetis()
    found = tuple(room.scratch.zeros(size, np.int32) for size in store.metadata.num_nodes_per_type)
    with room.scratch.inner() as scratch:
        inner = replace(room, scratch=scratch)
        numbers = number_by_type(store, inner)
        balances = find_balances(store, method.balance, numbers, inner)
        if balances.classes.shape[0] > 1 or balances.totals.size > 1:
            raise UsageError(
                f"--balance {' and '.join(method.balance)}: pymetis takes one: nodes, edges, or a column of numbers",
                fix="choose one; or export --to metis, whose file has a weight for each node type, and run gpmetis",
            )
        neighbors = join_neighbors(store, numbers, inner, "id")
        _check_memory(neighbors, room)
        graph, edge_weights = _joined(neighbors)
        weights = None if balances.weights.shape[1] == 1 else balances.weights[0]
        options = pymetis.Options(seed=method.seed % 2**31, ufactor=max(1, round(1000 * (method.max_imbalance - 1))))
        _, parts = pymetis.part_graph(
            method.num_parts,
            pymetis.CSRAdjacency(graph.indptr, graph.indices),
            vweights=weights,
            eweights=edge_weights,
            recursive=False,
            options=options,
        )
        every = np.asarray(parts, np.int32)
        for by_type, those in zip(found, numbers, strict=True):
            by_type[:] = every[those]
    return Assignment("metis", method.num_parts, found, {"pymetis": ".".join(map(str, pymetis.version_tuple))})


def _check_memory(neighbors: Neighbors, room: Workspace) -> None:
    need = 8 * _COPIES * (2 * neighbors.indices.size + 2 * neighbors.num_nodes)
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
