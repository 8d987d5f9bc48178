"""The new order of a store's nodes: their degrees, and the permutation inside every partition that follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.hash import permute_range
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DataError
from graphprep.model.schema import Layout, NodeOrder
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import FIX, StoredCounts, StoredItems
from graphprep.store.paths import LayoutPaths, edge_folder

Ints = NDArray[np.int64]
_STEP = 1 << 19  # numbers looked at at once


@dataclass(frozen=True)
class OrderRules:
    """What nodes are ordered by: ``edge_types`` are the numbers of those whose edges count."""

    by: NodeOrder
    edge_types: tuple[int, ...]
    shuffle_ratio: float = 0.0
    seed: int = 0


@dataclass(frozen=True)
class NodePlaces:
    """Where the nodes of a type go. ``offsets`` (int64[P + 1]) are the partitions' borders among typed IDs.

    ``order`` (int64[n]) is for every new typed ID the old local one, in the same partition; ``new_ids`` (int32 or int64 [n])
    for every old typed ID the new typed one.
    """

    offsets: Ints
    order: Ints
    new_ids: NDArray[np.int32] | NDArray[np.int64]

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes."""
        return self.order.size

    def bounds(self, part: int) -> tuple[int, int]:
        """Return the typed IDs [low, high) of a partition."""
        return int(self.offsets[part]), int(self.offsets[part + 1])

    def local_order(self, part: int) -> Ints:
        """Return for every new local ID of a partition the old one."""
        low, high = self.bounds(part)
        return self.order[low:high]

    def previous_ids(self, part: int) -> Iterator[Ints]:
        """Yield for every new local ID of a partition the old typed one."""
        low, high = self.bounds(part)
        for start in range(low, high, _STEP):
            yield self.order[start : min(start + _STEP, high)] + low

    def new_locals(self, part: int, old_locals: Iterator[Ints]) -> Iterator[Ints]:
        """Yield for old local IDs of a partition the new ones."""
        low, _ = self.bounds(part)
        for some in old_locals:
            yield self.new_ids[some + low].astype(np.int64) - low


def order_nodes(kernels: Kernels, store: StoreReader, number: int, rules: OrderRules, scratch: Scratch) -> NodePlaces:
    """Order the nodes of a type inside every partition by degree, descending, ties by ID; shuffle the first of them if asked.

    The first ``int(n * shuffle_ratio)`` of a partition's n nodes change places among themselves, as in
    GraphLearn-for-PyTorch's ``sort_by_in_degree``: place i goes to perm(i), the seeded permutation of docs/store.md, "Partition
    functions", with type number ``number + part * num_types``. Raises DataError where the store's arrays are faulty.
    """
    counts = store.metadata.num_nodes_per_chunk[number]
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    size = int(offsets[-1])
    order = scratch.zeros(size, np.int64)
    new_ids = scratch.zeros(size, np.int32 if size < 2**31 else np.int64)
    places = NodePlaces(offsets, order, new_ids)
    with scratch.inner() as inner:
        degrees, spare = count_degrees(kernels, store, number, rules, inner), inner.zeros(max(counts, default=0), np.int64)
        for part in range(len(counts)):
            low, high = places.bounds(part)
            rows = kernels.order_descending(degrees[low:high], order[low:high], spare[: high - low])
            num_hot = int((high - low) * rules.shuffle_ratio)
            key = number + part * len(store.metadata.node_types)
            _put(rows, order[low:high])
            if num_hot:
                spare[:num_hot] = order[low : low + num_hot]
                _shuffle(spare[:num_hot], order[low : low + num_hot], rules.seed, key)
            for start in range(low, high, _STEP):
                stop = min(start + _STEP, high)
                new_ids[order[start:stop] + low] = np.arange(start, stop, dtype=new_ids.dtype)
    return places


def _put(rows: Ints, out: Ints) -> None:
    if rows.ctypes.data != out.ctypes.data:
        out[:] = rows


def _shuffle(rows: Ints, out: Ints, seed: int, key: int) -> None:
    for start in range(0, rows.size, _STEP):
        some = rows[start : start + _STEP]
        out[permute_range(start, some.size, rows.size, seed, key).astype(np.int64)] = some


def count_degrees(kernels: Kernels, store: StoreReader, number: int, rules: OrderRules, scratch: Scratch) -> Ints:
    """Count the edges of every node of a type, over the edge types that count: int64[n].

    Its in-edges (``in-degree``), its out-edges (``out-degree``), or both (``degree``; a loop counts twice). Raises DataError
    where the store's arrays are faulty.
    """
    metadata = store.metadata
    name, degrees = metadata.node_types[number], scratch.zeros(metadata.num_nodes_per_type[number], np.int64)
    for edge_number in rules.edge_types:
        src, _, dst = metadata.edge_types[edge_number]
        if dst == name and rules.by in ("degree", "in-degree"):
            _add_degrees(kernels, store, edge_number, "csc", degrees, metadata.num_nodes_per_chunk[number])
        if src == name and rules.by in ("degree", "out-degree"):
            _add_degrees(kernels, store, edge_number, "csr", degrees, metadata.num_nodes_per_chunk[number])
    return degrees


def _add_degrees(
    kernels: Kernels, store: StoreReader, edge_number: int, layout: Layout, degrees: Ints, sizes: tuple[int, ...]
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


def check_ids(items: StoredItems, first: int | None, ids: NDArray[Any], limit: int, what: str = "typed ID") -> None:
    """Raise DataError where one of the IDs that stand from ``first`` on (None: that is lost) is not in [0, limit)."""
    if ids.size and (int(ids.min()) < 0 or int(ids.max()) >= limit):
        at = int(np.argmax((ids < 0) | (ids >= limit)))
        raise outside(items, None if first is None else first + at, int(ids[at]), limit, what)


def outside(items: StoredItems, at: int | None, found: int, limit: int, what: str = "typed ID") -> DataError:
    """Word an ID that is none; ``at`` is its position, None where that is lost."""
    place = display_url(items.reader.url) + ("" if at is None else f"[{at}]")
    return DataError(f"expected {'an' if what[0] == 'e' else 'a'} {what} in [0, {limit}), found {found}", place=place, fix=FIX)
