"""Orders that follow from walks over the whole graph, of all node types together: bfs, rcm and llp."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from graphprep.edges.moves import Ints, Workspace
from graphprep.kernels.cpu.ids.hash import permute_range
from graphprep.kernels.cpu.orders.communities import choose_labels
from graphprep.kernels.cpu.orders.walk import breadth_first
from graphprep.rewrite.keys import OrderRules, count_degrees
from graphprep.rewrite.neighbors import Neighbors, find_neighbors
from graphprep.store.items import StoredArrays

WALKS = ("bfs", "rcm", "llp")
_STEP = 1 << 19
_SHIFTS = (0, 2, 4, 6, 8)  # resolutions 1, 1/4 ... 1/256: communities in communities, each several times as large
_MOST_PASSES = 8  # of label propagation with one resolution
_SETTLED = 1000  # a pass that changes less than one label in so many is the last
_BLOCK_NODES = 64  # visited as they lie, that files are read in pieces; the blocks in random order


def walk_keys(store: StoredArrays, rules: OrderRules, room: Workspace) -> Ints:
    """Return the keys of all nodes, by homogeneous ID: int64[n], n - 1 down to 0 in the order of the walk.

    Raises DataError where the store's arrays are faulty.
    """
    metadata, size = store.metadata, sum(store.metadata.num_nodes_per_type)
    keys = room.scratch.zeros(size, np.int64)
    with room.scratch.inner() as scratch:
        room = replace(room, scratch=scratch)
        degrees, at = scratch.zeros(size, np.int64), 0
        for number, count in enumerate(metadata.num_nodes_per_type):
            with scratch.inner() as inner:
                degrees[at : at + count] = count_degrees(room.kernels, store, number, rules, inner)
            at += count
        if rules.by == "rcm":
            _number_from_ends(store, rules, degrees, room, keys)
            return keys  # a reversed order: numbers are keys
        labels = scratch.zeros(size, np.int64)
        _count_up(labels)
        found = find_neighbors(store, rules.edge_types, degrees, labels, room)
        if rules.by == "bfs":
            keys.fill(-1)
            breadth_first(found.indptr, found.labels, keys, labels)
        else:
            _number_communities(found, rules.seed, room, keys)
        np.subtract(size - 1, keys, out=keys)
    return keys


def _number_from_ends(store: StoredArrays, rules: OrderRules, degrees: Ints, room: Workspace, numbers: Ints) -> None:
    """Number nodes breadth first, from the lowest degrees on, each node's neighbours by degree; ties by ID.

    So labels are the nodes' ranks by degree. Source: Cuthill, McKee 1969; George 1971 for the reversal.
    """
    scratch, size = room.scratch, degrees.size
    ranks, order, spare = (scratch.zeros(size, np.int64) for _ in range(3))
    np.subtract(degrees.max(initial=0), degrees, out=numbers)
    order = room.kernels.order_descending(numbers, order, spare)
    room.kernels.invert(order, ranks)
    found = find_neighbors(store, rules.edge_types, degrees, ranks, room)
    places, queue = (scratch.zeros(size, np.int64) for _ in range(2))
    places.fill(-1)
    breadth_first(found.indptr, found.labels, places, queue)
    for start in range(0, size, _STEP):
        numbers[start : start + _STEP] = places[ranks[start : start + _STEP]]


def _number_communities(found: Neighbors, seed: int, room: Workspace, numbers: Ints) -> None:
    """Number nodes so that communities lie together: the coarsest, in these those of the next resolution, and so on."""
    scratch, size = room.scratch, numbers.size
    blocks = _shuffled_blocks(size, seed, scratch.zeros(-(-size // _BLOCK_NODES), np.int64))
    sequence, keys, order, spare, sizes = (scratch.zeros(size, np.int64) for _ in range(5))
    labels, counts = (scratch.zeros(size, found.labels.dtype) for _ in range(2))
    _count_up(numbers)
    _count_up(sequence)
    for shift in _SHIFTS:
        _count_up(labels)
        sizes.fill(1)
        for _ in range(_MOST_PASSES):
            changed = choose_labels(found.indptr, found.labels, blocks, _BLOCK_NODES, shift, labels, sizes, counts)
            if changed * _SETTLED < size:
                break
        for start in range(0, size, _STEP):  # who leads a community says where it stands
            keys[start : start + _STEP] = size - 1 - numbers[labels[sequence[start : start + _STEP]]]
        rows = room.kernels.order_descending(keys, order, spare)
        for start in range(0, size, _STEP):
            keys[start : start + _STEP] = sequence[rows[start : start + _STEP]]
        sequence[:] = keys
        room.kernels.invert(sequence, numbers)


def _shuffled_blocks(size: int, seed: int, blocks: Ints) -> Ints:
    """Fill ``blocks`` with 0, 1 … in the order of a seeded permutation."""
    for start in range(0, blocks.size, _STEP):
        count = min(_STEP, blocks.size - start)
        blocks[start : start + count] = permute_range(start, count, blocks.size, seed, 0).astype(np.int64)
    return blocks


def _count_up(array: Ints) -> None:
    for start in range(0, array.size, _STEP):
        stop = min(start + _STEP, array.size)
        array[start:stop] = np.arange(start, stop)
