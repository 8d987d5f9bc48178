"""Part of ``validate``: nodes that were reordered: the permutations to what they were before, and to the order of raw IDs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.store.assign import ORDERED
from graphprep.store.paths import NodePaths, node_folder
from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedStore
from graphprep.validate.permutation import check_permutation

Ints = NDArray[np.int64]
_SLICE = 1 << 19  # IDs read at once: 4 MiB


def check_order(store: CheckedStore, node_type: int, faults: Faults, *, window_bytes: int) -> bool:
    """Check that ``previous_ids`` and ``raw_order`` of a node type are permutations, inside each partition.

    Where nodes are ordered across partitions, ``previous_ids`` of all of them are one.

    Returns whether raw IDs can be read in their own order.
    """
    metadata = store.metadata
    if metadata.node_schemas[node_type].node_order is None:
        return True
    paths, offset, sound = NodePaths(node_folder(metadata.node_types[node_type])), 0, True
    all_previous, is_global = [], metadata.partition_by == ORDERED
    for part, count in enumerate(metadata.num_nodes_per_chunk[node_type]):
        previous, raw_order = (store.array(part, path) for path in (paths.previous_ids, paths.raw_order))
        if previous is not None and is_global:
            all_previous.append(previous)
        elif previous is not None:
            check_permutation([previous], previous.num_rows, "typed ID", faults, window_bytes, lowest=offset)
        sound &= raw_order is not None and check_permutation([raw_order], count, "local ID", faults, window_bytes)
        offset += count
    if all_previous:
        check_permutation(all_previous, offset, "typed ID", faults, window_bytes)
    return sound
