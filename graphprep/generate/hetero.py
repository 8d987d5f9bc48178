"""The generated graph of several types: users follow users and buy items; features, weights and labels on nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.generate.edges import check_range
from graphprep.generate.streams import Stream, stream_key
from graphprep.kernels.edges import Kernels

Ints = NDArray[np.int64]

NODE_TYPES = ("user", "item")
RELATIONS = ("follows", "buys")  # 0: user -> user, 1: user -> item
EDGE_TYPES = ("user:follows:user", "user:buys:item")
NUM_EIGHTHS = 64  # weights are 1/8, 2/8, … 8: sums are exact in any order
NUM_FEATURE_VALUES = 100_000  # five decimals
NUM_LABELS = 10
BLOCK_NODES = 4096
_MAX_NODES = 1 << 32
_MAX_EDGES = 1 << 40
_MAX_FEATURES = 4096
_MAX_CHUNKS = 10_000


@dataclass(frozen=True)
class NodeBlock:
    """Nodes first, first + 1, … of one type. ``columns``: int64[4, k], typed ID, type, weight in eighths, label.

    ``features``: int64[k, F], in hundred-thousandths.
    """

    first: int
    columns: Ints
    features: Ints


@dataclass(frozen=True)
class EdgeBlock:
    """Edges of consecutive users: ``columns``: int64[4, m], typed source, relation, typed destination, weight in eighths.

    Those of the block's user i are offsets[i]..offsets[i + 1] - 1 (int64[users + 1]).
    """

    columns: Ints
    offsets: Ints


@dataclass(frozen=True)
class HeteroGraph:
    """Users and items."""

    kernels: Kernels
    num_users: int
    num_items: int
    num_edges: int
    num_features: int
    seed: int

    @classmethod
    def of(cls, kernels: Kernels, values: dict[str, Any], seed: int) -> HeteroGraph:
        """Make the graph that options ask for: 60 % of the nodes are users. Raises UsageError where one is out of range."""
        check_range("nodes", values["nodes"], 2, _MAX_NODES)
        check_range("edges", values["edges"], 0, _MAX_EDGES)
        check_range("features", values["features"], 1, _MAX_FEATURES)
        check_range("chunks", values["chunks"], 1, _MAX_CHUNKS)
        users = max(1, values["nodes"] * 6 // 10)
        return cls(kernels, users, values["nodes"] - users, values["edges"], values["features"], seed)

    @property
    def counts(self) -> tuple[int, int]:
        """Return the number of users and that of items."""
        return self.num_users, self.num_items

    def _draw(self, stream: Stream, first: int, size: int, out: Ints, add: int = 0) -> None:
        self.kernels.fill_draws(stream_key(self.seed, stream), first, size, out, add)

    def nodes(self, type_number: int, first: int, stop: int) -> NodeBlock:
        """Make nodes first..stop-1 of a type. The draws are those of the nodes' numbers among all, users first."""
        start = first + type_number * self.num_users
        columns = np.empty((4, stop - first), np.int64)
        columns[0] = np.arange(first, stop)
        columns[1] = type_number
        self._draw(Stream.NODE_WEIGHTS, start, NUM_EIGHTHS, columns[2], 1)
        self._draw(Stream.LABELS, start, NUM_LABELS, columns[3])
        features = np.empty((stop - first, self.num_features), np.int64)
        self._draw(Stream.FEATURES, start * self.num_features, NUM_FEATURE_VALUES, features.reshape(-1))
        return NodeBlock(first, columns, features)

    def edges(self, first: int, stop: int) -> EdgeBlock:
        """Make the edges that leave users first..stop-1."""
        keys = [stream_key(self.seed, stream) for stream in (Stream.SOURCES, Stream.RELATIONS, Stream.ENDS)]
        low, high = (self.kernels.first_edge(keys[0], user, self.num_edges, self.num_users) for user in (first, stop))
        columns = np.empty((4, high - low), np.int64)
        counts = np.array(self.counts)
        self.kernels.user_edges(np.array(keys, np.uint64), low, self.num_edges, counts, columns[0], columns[1], columns[2])
        self._draw(Stream.WEIGHTS, low, NUM_EIGHTHS, columns[3], 1)
        return EdgeBlock(columns, np.searchsorted(columns[0], np.arange(first, stop + 1)))


def blocks_of(first: int, stop: int) -> list[tuple[int, int]]:
    """Cut a range of nodes into blocks."""
    return [(low, min(low + BLOCK_NODES, stop)) for low in range(first, stop, BLOCK_NODES)]
