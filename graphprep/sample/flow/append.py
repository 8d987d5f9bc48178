"""Two flows in a row as one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from graphprep.model.errors import UsageError
from graphprep.sample.arrays import FlowArrays

_FIX = "sample its hop from the seeds flow.layer_parent_nid(0)"


def join_arrays(one: FlowArrays, two: FlowArrays) -> FlowArrays:
    """Return the layers and blocks of one flow, and then those of another. Raises UsageError where they do not meet."""
    if (one.node_types, one.block_types) != (two.node_types, two.block_types):
        raise UsageError("the flows have other types", fix="append flows of one graph and direction")
    width = len(one.node_types)
    last, layer = one.layer_offsets[-width - 1 :], two.layer_offsets[: width + 1]
    if not _same_layer(one, two, int(last[0]), int(layer[-1])) or (np.diff(last) != np.diff(layer)).any():
        raise UsageError("the last layer of the flow and the first one of the other differ", fix=_FIX)
    shift = one.node_mapping.size - int(layer[-1])
    return replace(
        one,
        layer_offsets=np.concatenate([one.layer_offsets, two.layer_offsets[width + 1 :] + shift]),
        block_offsets=np.concatenate([one.block_offsets, two.block_offsets[1:] + one.block_offsets[-1]]),
        node_mapping=np.concatenate([one.node_mapping, two.node_mapping[layer[-1] :]]),
        node_times=_join(one.node_times, two.node_times, int(layer[-1])),
        edge_weights=_join(one.edge_weights, two.edge_weights),
        sources=np.concatenate([one.sources, two.sources]),
        indptr=np.concatenate([one.indptr, two.indptr]),
        edge_mapping=np.concatenate([one.edge_mapping, two.edge_mapping]),
    )


def _same_layer(one: FlowArrays, two: FlowArrays, start: int, size: int) -> bool:
    return all(
        (a is None) == (b is None) and (a is None or b is None or np.array_equal(a[start:], b[:size]))
        for a, b in ((one.node_mapping, two.node_mapping), (one.node_times, two.node_times))
    )


def _join(one: Any, two: Any, start: int = 0) -> Any:
    return None if one is None or two is None else np.concatenate([one, two[start:]])
