"""The raw IDs of a partition's nodes, as the store has them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from graphprep.store.columns.arrow import RawBlock
from graphprep.store.items import StoredArrays, StoredItems
from graphprep.store.paths import NodePaths, node_folder
from graphprep.store.text_source import TextSource

_STEP = 1 << 18


class RawIds:
    """Raw IDs of the nodes of a type in a partition, in typed order: int64 or uint64 arrays, or texts."""

    def __init__(self, store: StoredArrays, number: int, part: int) -> None:
        metadata = store.metadata
        folder = node_folder(metadata.node_types[number])
        self.kind = metadata.node_schemas[number].raw_ids
        self.size = metadata.num_nodes_per_chunk[number][part]
        self._first = sum(metadata.num_nodes_per_chunk[number][:part])
        self._numbers: StoredItems | None = None
        self._texts: TextSource | None = None
        if self.kind == "string":
            offsets, values = (
                store.array(part, NodePaths(folder).texts.offsets),
                store.array(part, NodePaths(folder).texts.values),
            )
            self._texts = TextSource(offsets, values, is_local=offsets.is_local)
        elif self.kind != "identity":
            self._numbers = StoredItems(store.array(part, NodePaths(folder).raw_ids))

    def take(self, rows: NDArray[np.int64]) -> RawBlock:
        """Return the raw IDs of nodes by their positions in the partition (any order)."""
        if self._texts is not None:
            return self._texts.take(rows)
        if self._numbers is not None:
            return self._numbers.whole()[rows] if self._numbers.is_mapped else self._numbers.reader.take(rows)
        return rows + self._first

    def pieces(self, low: int = 0, high: int | None = None) -> Iterator[RawBlock]:
        """Yield the raw IDs of nodes [low, high) in pieces of a few MiB."""
        high = self.size if high is None else high
        if self._texts is not None:
            for _, texts in self._texts.pieces(low, high):
                yield texts
            return
        for start in range(low, high, _STEP):
            stop = min(start + _STEP, high)
            if self._numbers is not None:
                yield self._numbers.read(start, stop)
            else:
                yield np.arange(start + self._first, stop + self._first)
