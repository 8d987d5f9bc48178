"""Part of ``validate``: nodes that were reordered: the permutations to what they were before, and to the order of raw IDs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.check import find_unset, mark_ids
from graphprep.store.paths import NodePaths, node_folder
from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedArray, CheckedStore

Ints = NDArray[np.int64]
_SLICE = 1 << 19  # IDs read at once: 4 MiB


def check_order(store: CheckedStore, node_type: int, faults: Faults, *, window_bytes: int) -> bool:
    """Check that ``previous_ids`` and ``raw_order`` of a node type are permutations inside each partition.

    Returns whether raw IDs can be read in their own order.
    """
    metadata = store.metadata
    if metadata.node_schemas[node_type].node_order is None:
        return True
    paths, offset, sound = NodePaths(node_folder(metadata.node_types[node_type])), 0, True
    for part, count in enumerate(metadata.num_nodes_per_chunk[node_type]):
        previous, raw_order = (store.array(part, path) for path in (paths.previous_ids, paths.raw_order))
        if previous is not None:
            _check_permutation(previous, offset, "typed ID", faults, window_bytes)
        sound &= raw_order is not None and _check_permutation(raw_order, 0, "local ID", faults, window_bytes)
        offset += count
    return sound


def _check_permutation(array: CheckedArray, lowest: int, what: str, faults: Faults, window_bytes: int) -> bool:
    """Check that an array of k numbers holds ``lowest`` to ``lowest + k - 1``, each once; return whether it does."""
    before, size = faults.num, array.num_rows
    window = max(_SLICE, window_bytes * 8 // 64 * 64)
    for first in range(0, size, window):
        bits = np.zeros((min(window, size - first) + 63) // 64, np.uint64)
        for start in range(0, size, _SLICE):
            found = array.read(start, min(start + _SLICE, size))
            if first == 0:
                bad = (found < lowest) | (found >= lowest + size)
                _add_outside(array.path, bad, start, found, (lowest, lowest + size), what, faults)
            repeats = np.zeros(found.size, np.bool_)
            repeats[mark_ids(found - lowest, first, min(window, size - first), bits)] = True
            _add_repeats(array.path, repeats, start, found, what, faults)
        missing, some = find_unset(bits, min(window, size - first), faults.limit)
        for number in some.tolist():
            faults.add(array.path, f"{what} {lowest + first + number} is missing")
        faults.num += missing - some.size
    return faults.num == before


def _add_outside(
    path: str, bad: NDArray[np.bool_], start: int, found: Ints, bounds: tuple[int, int], what: str, faults: Faults
) -> None:
    low, high = bounds
    faults.add_rows(path, bad, start, lambda i: f"expected a {what} in [{low}, {high}), found {found[i]}")


def _add_repeats(path: str, repeats: NDArray[np.bool_], start: int, found: Ints, what: str, faults: Faults) -> None:
    faults.add_rows(path, repeats, start, lambda i: f"{what} {found[i]} was there before")
