"""Part of ``validate``: nodes that were reordered: the permutations to what they were before, and to the order of raw IDs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.model.metadata import METADATA_NAME
from graphprep.store.assign import ORDERED
from graphprep.store.paths import NodePaths, node_folder
from graphprep.validate.faults import Faults
from graphprep.validate.files import CheckedArray, CheckedStore
from graphprep.validate.permutation import check_permutation

Ints = NDArray[np.int64]
_SLICE = 1 << 19  # IDs read at once: 4 MiB


def check_order(store: CheckedStore, node_type: int, faults: Faults, *, window_bytes: int) -> bool:
    """Check that ``previous_ids`` and ``raw_order`` of a node type are permutations, inside each partition.

    Where nodes are ordered across partitions, ``previous_ids`` of all of them are one.

    Returns whether raw IDs can be read in their own order.
    """
    metadata = store.metadata
    _check_hot(store, node_type, faults)
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
        has_order = raw_order is not None and check_permutation([raw_order], count, "local ID", faults, window_bytes)
        sound &= has_order
        offset += count
    if all_previous:
        check_permutation(all_previous, offset, "typed ID", faults, window_bytes)
    return sound


def check_agreement(store: CheckedStore, node_type: int, faults: Faults) -> None:
    """Check that the nodes of each partition, ascending by raw ID, ascend by previous ID: before, that was their order.

    ``check_order`` and ``check_raw_ids`` found no fault. Nodes that are ordered across partitions are in none.
    """
    metadata = store.metadata
    if metadata.node_schemas[node_type].node_order is None or metadata.partition_by == ORDERED:
        return
    paths, offset = NodePaths(node_folder(metadata.node_types[node_type])), 0
    for part, count in enumerate(metadata.num_nodes_per_chunk[node_type]):
        previous, raw_order = (store.array(part, path) for path in (paths.previous_ids, paths.raw_order))
        if previous is not None and raw_order is not None:
            _check_part(previous, raw_order, offset, faults)
        offset += count


def _check_part(previous: CheckedArray, raw_order: CheckedArray, offset: int, faults: Faults) -> None:
    for start in range(0, raw_order.num_rows, _SLICE):
        rows = raw_order.read(start, min(start + _SLICE, raw_order.num_rows))
        found, wanted = previous.take(rows), np.arange(offset + start, offset + start + rows.size)
        for i in np.flatnonzero(found != wanted)[: faults.limit].tolist():
            what = f"expected {wanted[i]}, the place of the node's raw ID in its partition (raw_order), found {found[i]}"
            faults.add(f"{previous.path}[{rows[i]}]", what)


def _check_hot(store: CheckedStore, node_type: int, faults: Faults) -> None:
    """Check that ``id2index`` leads from each node's previous ID to the node, and that there are as many nodes as are hot."""
    metadata = store.metadata
    name, schema, sizes = (
        metadata.node_types[node_type],
        metadata.node_schemas[node_type],
        metadata.num_nodes_per_chunk[node_type],
    )
    if schema.num_hot is None:
        return
    if len(schema.num_hot) != len(sizes) or any(hot > size for hot, size in zip(schema.num_hot, sizes, strict=False)):
        what = f"expected a number for each partition, at most {list(sizes)}, found {list(schema.num_hot)}"
        faults.add(f"{METADATA_NAME}: node_schema.{name}.num_hot", what)
    paths, borders = NodePaths(node_folder(name)), np.cumsum([0, *sizes])
    index = [store.array(part, paths.id2index) for part in range(metadata.num_parts)]
    for part, size in enumerate(sizes):
        previous = None if schema.node_order is None else store.array(part, paths.previous_ids)
        if schema.node_order is not None and previous is None:
            continue
        for start in range(0, size, _SLICE):
            new = np.arange(borders[part] + start, borders[part] + min(start + _SLICE, size))
            old = new if previous is None else previous.read(start, start + new.size)
            homes = np.searchsorted(borders, old, side="right") - 1
            for home in np.unique(homes).tolist():
                array = index[home] if 0 <= home < len(index) else None
                mine = np.flatnonzero(homes == home)
                if array is not None:
                    rows = old[mine] - borders[home]
                    found = array.take(rows)
                    for i in np.flatnonzero(found != new[mine])[: faults.limit].tolist():
                        what = f"expected {new[mine[i]]}, whose previous ID this is, found {found[i]}"
                        faults.add(f"{array.path}[{rows[i]}]", what)
