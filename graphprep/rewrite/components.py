"""Weakly connected components of a store's nodes, over all types, by union and find: 8 bytes a node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.components import find_root, join_ends
from graphprep.model.metadata import GraphMetadata
from graphprep.storage.spill.scratch import Scratch

Ints = NDArray[np.int64]
_STEP = 1 << 16


class Components:
    """Joins the ends of edges; nodes are numbered type after type. Once all edges were seen, ``find``."""

    def __init__(self, metadata: GraphMetadata, scratch: Scratch) -> None:
        self.offsets: Ints = np.concatenate([np.zeros(1, np.int64), np.cumsum(metadata.num_nodes_per_type, dtype=np.int64)])
        self.roots: Ints = scratch.zeros(int(self.offsets[-1]), np.int64)
        for start in range(0, self.roots.size, _STEP):
            self.roots[start : start + _STEP] = np.arange(start, min(start + _STEP, self.roots.size))

    def number(self, node_type: int, ids: NDArray[Any]) -> Ints:
        """Return the numbers of nodes of a type: int64[k]."""
        return np.asarray(ids.astype(np.int64, copy=False) + self.offsets[node_type])

    def join(self, src: Ints, dst: Ints) -> None:
        """Take edges by the numbers of both ends."""
        join_ends(self.roots, src, dst)

    def find(self, scratch: Scratch) -> Ints:
        """Set ``roots`` to the first node of each node's component; return how many nodes there are by that: int64[n]."""
        find_root(self.roots)
        sizes: Ints = scratch.zeros(self.roots.size, np.int64)
        for start in range(0, self.roots.size, _STEP):
            np.add.at(sizes, self.roots[start : start + _STEP], 1)
        return sizes
