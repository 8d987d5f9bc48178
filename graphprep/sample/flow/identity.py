"""Which nodes of a flow are the same node of the parent."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.sample.flow.structure import FlowStructure

Ints = NDArray[np.int64]


def number_nodes(flow: FlowStructure, node_type: int) -> Ints:
    """Number the nodes of a type: int64[N], by ID within the flow, -1 for those of other types.

    Nodes of different layers have one number where they are one node of the parent (of a temporal flow: at one time).
    """
    at = np.concatenate([flow.layer_nid(layer, node_type) for layer in range(flow.num_layers)] or [np.zeros(0, np.int64)])
    _, numbers = np.unique(flow.node_mapping[at], return_inverse=True)
    times = flow.arrays.node_times
    if times is not None:
        _, of_times = np.unique(times[at], return_inverse=True)
        _, numbers = np.unique(numbers * (int(of_times.max(initial=0)) + 1) + of_times, return_inverse=True)
    out = np.full(flow.node_mapping.size, -1, np.int64)
    out[at] = numbers
    return out
