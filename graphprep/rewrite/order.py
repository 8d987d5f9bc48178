"""The new order of a store's nodes: the permutation inside every partition that follows from their keys."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.hash import permute_range
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DataError
from graphprep.rewrite.keys import OrderRules, node_keys
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import ArrayReader
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import FIX, StoredArrays

Ints = NDArray[np.int64]
_STEP = 1 << 19  # numbers looked at at once


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


def order_nodes(
    kernels: Kernels, store: StoredArrays, number: int, rules: OrderRules, scratch: Scratch, walked: Ints | None = None
) -> NodePlaces:
    """Order the nodes of a type inside every partition by descending keys, ties by ID; shuffle the first of them if asked.

    The first ``int(n * shuffle_ratio)`` of a partition's n nodes change places among themselves, as in
    GraphLearn-for-PyTorch's ``sort_by_in_degree``: place i goes to perm(i), the seeded permutation of docs/store.md, "Partition
    functions", with type number ``number + part * num_types``; ``random`` shuffles all. ``walked`` are the keys
    that a walk found. Raises DataError where the store's arrays are faulty, or a file is.
    """
    name, counts = store.metadata.node_types[number], store.metadata.num_nodes_per_chunk[number]
    was_reordered = store.metadata.node_schemas[number].node_order is not None
    are_stated = was_reordered if rules.by is None else rules.by == "permutation" and name in rules.files
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)])
    size = int(offsets[-1])
    order = scratch.zeros(size, np.int64)
    new_ids = scratch.zeros(size, np.int32 if size < 2**31 else np.int64)
    places = NodePlaces(offsets, order, new_ids)
    with scratch.inner() as inner:
        keys = node_keys(kernels, store, number, rules, inner) if walked is None else walked
        spare = inner.zeros(max(counts, default=0), np.int64)
        for part in range(len(counts)):
            low, high = places.bounds(part)
            rows = kernels.order_descending(keys[low:high], order[low:high], spare[: high - low])
            num_hot = int((high - low) * (1.0 if rules.by == "random" else rules.shuffle_ratio))
            key = number + part * len(store.metadata.node_types)
            _put(rows, order[low:high])
            if are_stated:
                at = _find_unplaced(keys[low:high], order[low:high])
                if at >= 0:
                    raise _unplaced(low + at, rules.files.get(name))
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


def _find_unplaced(keys: Ints, order: Ints) -> int:
    """Return -1 where the keys of k nodes are k - 1 to 0, each once, else the first place to which no node comes."""
    for start in range(0, order.size, _STEP):
        rows = order[start : start + _STEP]
        bad = keys[rows] != np.arange(order.size - 1 - start, order.size - 1 - start - rows.size, -1)
        if bad.any():
            return start + int(np.argmax(bad))
    return -1


def _unplaced(at: int, file: ArrayReader | None) -> DataError:
    """Word a typed ID that no node gets."""
    if file is None:
        return DataError(f"typed ID {at} is nobody's previous ID, another is that of two nodes", fix=FIX)
    found = int(file.read(at, at + 1)[0])
    place, fix = f"{display_url(file.url)}[{at}]", "write the old typed ID of each new one, each once"
    return DataError(f"typed ID {found} stands there again", place=place, fix=fix)
