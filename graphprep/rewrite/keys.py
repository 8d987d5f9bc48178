"""What nodes are ordered by: a key for each, int64 and at least 0, of which the highest comes first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DataError
from graphprep.model.schema import Layout, NodeOrder
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import ArrayReader
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import StoredArray, StoredArrays, StoredCounts, StoredItems, check_ids, outside
from graphprep.store.paths import LayoutPaths, NodePaths, edge_folder, node_folder

Ints = NDArray[np.int64]
_STEP = 1 << 19  # numbers looked at at once
_GROUP_BOUNDS = ((1, 2), (1, 1), (2, 1), (4, 1), (8, 1), (16, 1), (32, 1))  # of DBG: shares of the mean degree


@dataclass(frozen=True)
class OrderRules:
    """What nodes are ordered by, None for their previous order: ``edge_types`` are the numbers of those whose edges count.

    ``files`` are those of scores or of a permutation, by node type; types without one keep their order.
    """

    by: NodeOrder | None
    edge_types: tuple[int, ...]
    shuffle_ratio: float = 0.0
    seed: int = 0
    files: Mapping[str, ArrayReader] = field(default_factory=dict)
    is_global: bool = False  # nodes are ordered across partitions
    split_ratio: float | None = None  # the share of hot nodes, where ``id2index`` is written


def node_keys(kernels: Kernels, store: StoredArrays, number: int, rules: OrderRules, scratch: Scratch) -> Ints:
    """Return the keys of a type's nodes: int64[n]; of those with equal keys the lower ID comes first.

    Raises DataError where the store's arrays are faulty, or a file is.
    """
    metadata = store.metadata
    name, counts = metadata.node_types[number], metadata.num_nodes_per_chunk[number]
    bounds = np.cumsum([0, *counts]).tolist()
    if rules.by in ("score", "permutation", "random", None):
        keys = scratch.zeros(bounds[-1], np.int64)
        if rules.by == "score" and name in rules.files:
            _put_scores(rules.files[name], keys)
        elif rules.by == "permutation" and name in rules.files:
            for low, high in pairwise(bounds):
                _put_places(rules.files[name], low, high, len(counts), keys)
        elif rules.by is None and metadata.node_schemas[number].node_order is not None:
            for part, low in enumerate(bounds[:-1]):
                _put_previous(store.array(part, NodePaths(node_folder(name)).previous_ids), low, keys)
        return keys
    keys = count_degrees(kernels, store, number, rules, scratch)
    for low, high in pairwise(bounds):
        _group_hubs(keys[low:high], rules.by)
    return keys


# ---------------------------------------------------------------------------------------------------------- degrees


def count_degrees(kernels: Kernels, store: StoredArrays, number: int, rules: OrderRules, scratch: Scratch) -> Ints:
    """Count the edges of every node of a type, over the edge types that count: int64[n].

    Its in-edges (``in-degree``), its out-edges (``out-degree``), or else both; then a loop counts twice. Raises DataError
    where the store's arrays are faulty.
    """
    metadata = store.metadata
    name, degrees = metadata.node_types[number], scratch.zeros(metadata.num_nodes_per_type[number], np.int64)
    for edge_number in rules.edge_types:
        src, _, dst = metadata.edge_types[edge_number]
        if dst == name and rules.by != "out-degree":
            _add_degrees(kernels, store, edge_number, "csc", degrees, metadata.num_nodes_per_chunk[number])
        if src == name and rules.by != "in-degree":
            _add_degrees(kernels, store, edge_number, "csr", degrees, metadata.num_nodes_per_chunk[number])
    return degrees


def _add_degrees(
    kernels: Kernels, store: StoredArrays, edge_number: int, layout: Layout, degrees: Ints, sizes: tuple[int, ...]
) -> None:
    """Add what the layout compressed by these nodes says in its row lengths; where there is none, count the other's ends."""
    metadata = store.metadata
    folder = edge_folder(metadata.edge_types[edge_number])
    offset = 0
    for part in range(metadata.num_parts):
        if layout in metadata.layouts:
            counts = StoredCounts(store.array(part, LayoutPaths(f"{folder}/{layout}").indptr))
            for start in range(0, sizes[part], _STEP):
                stop = min(start + _STEP, sizes[part])
                degrees[offset + start : offset + stop] += counts.read(start, stop)
            offset += sizes[part]
            continue
        ends = StoredItems(store.array(part, LayoutPaths(f"{folder}/{metadata.primary_layout}").indices))
        for start in range(0, ends.size, _STEP):
            some = ends.read(start, min(start + _STEP, ends.size))
            bad = kernels.count_ids(some, degrees)
            if bad >= 0:
                raise outside(ends, start + bad, int(some[bad]), degrees.size)


def _group_hubs(degrees: Ints, by: NodeOrder | None) -> None:
    """Turn degrees into the keys of the orders that tell hubs, of at least the mean degree, from other nodes, in place.

    Source: Faldu, Diamond, Grot 2019, "A Closer Look at Lightweight Graph Reordering" (IISWC), section II and table V.
    """
    if by not in ("hub-sort", "hub-cluster", "dbg"):
        return
    total, num_nodes = sum(int(degrees[at : at + _STEP].sum()) for at in range(0, degrees.size, _STEP)), degrees.size
    bounds = [-(-total * times // max(1, num_nodes * share)) for times, share in _GROUP_BOUNDS]
    mean = bounds[_GROUP_BOUNDS.index((1, 1))]
    for start in range(0, num_nodes, _STEP):
        some = degrees[start : start + _STEP]
        if by == "hub-sort":
            some[some < mean] = 0
        else:
            some[:] = some >= mean if by == "hub-cluster" else np.searchsorted(bounds, some, side="right")


# ------------------------------------------------------------------------------------------- files, and what was before


def _put_scores(scores: ArrayReader, keys: Ints) -> None:
    """Set the keys that order nodes as scores do: whole numbers themselves, the bits of floats, which ascend with them."""
    for start in range(0, keys.size, _STEP):
        some: NDArray[Any] = scores.read(start, start + _STEP)
        bad = ~(some >= 0) if some.dtype.kind == "f" else some.astype(np.int64, copy=False) < 0
        if bad.any():
            at = int(np.argmax(bad))
            place = f"{display_url(scores.url)}[{start + at}]"
            raise DataError(f"expected a score of 0 or more, found {some[at]}", place=place, fix="write counts or shares")
        floats = some.dtype.kind == "f"
        keys[start : start + some.size] = (some.astype(np.float64) + 0.0).view(np.int64) if floats else some


def _put_places(order: ArrayReader, low: int, high: int, num_parts: int, keys: Ints) -> None:
    """Set the keys of the nodes [low, high), which ``order`` (for every new typed ID the old one) puts in these places."""
    for start in range(low, high, _STEP):
        old = order.read(start, min(start + _STEP, high)).astype(np.int64, copy=False)
        bad = (old < low) | (old >= high)
        if bad.any():
            at = int(np.argmax(bad))
            fix = "" if num_parts == 1 else ", since each partition keeps its nodes"
            raise DataError(
                f"expected a typed ID in [{low}, {high}), found {old[at]}",
                place=f"{display_url(order.url)}[{start + at}]",
                fix=f"write the old typed ID of each new one{fix}",
            )
        keys[old] = np.arange(high - 1 - start, high - 1 - start - old.size, -1)


def _put_previous(previous: StoredArray, low: int, keys: Ints) -> None:
    """Set the keys of the nodes from ``low`` on so that each comes to its previous ID, which lies among these."""
    items = StoredItems(previous)
    for start in range(0, items.size, _STEP):
        some = items.read(start, min(start + _STEP, items.size))
        check_ids(items, start, some, (low, low + items.size))
        keys[low + start : low + start + some.size] = low + items.size - 1 - some
