"""The raw IDs of nodes, as a store has them: of a partition, or looked up by typed IDs over all."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.texts import concat_texts
from graphprep.model.rows import RawTexts
from graphprep.store.columns.arrow import RawBlock
from graphprep.store.items import StoredArrays, StoredItems, part_borders
from graphprep.store.paths import NodePaths, node_folder
from graphprep.store.text_source import TextSource, take_rows

_STEP = 1 << 18
_MOST_OPEN = 128  # partitions: each holds two file descriptors


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


def raw_pieces(store: StoredArrays, number: int) -> Iterator[RawBlock]:
    """Yield the raw IDs of all nodes of a type, in typed order, in pieces of a few MiB."""
    for part in range(store.metadata.num_parts):
        yield from RawIds(store, number, part).pieces()


def raw_numbers(store: StoredArrays, number: int) -> Iterator[NDArray[np.int64] | NDArray[np.uint64]]:
    """Yield those of ``raw_pieces`` where they are integers."""
    return (piece for piece in raw_pieces(store, number) if not isinstance(piece, RawTexts))


class RawLookup:
    """The raw IDs of a node type, by typed ID, over all partitions."""

    def __init__(self, store: StoredArrays, number: int) -> None:
        self._num_parts = store.metadata.num_parts
        self._part = lru_cache(_MOST_OPEN)(partial(RawIds, store, number))
        self._offsets = part_borders(store.metadata, number)

    def of(self, typed: NDArray[np.int64]) -> RawBlock:
        """Return the raw IDs of typed ones (int64[k], any order): int64[k] or uint64[k], or texts."""
        if self._num_parts == 1:
            return self._part(0).take(typed)
        parts = np.searchsorted(self._offsets[1:], typed, side="right")
        order = np.argsort(parts, kind="stable")
        cuts = np.searchsorted(parts[order], np.arange(self._num_parts + 1))
        found: list[Any] = []
        for part, low, high in zip(range(self._num_parts), cuts[:-1], cuts[1:], strict=True):
            if low < high or (part == 0 and not typed.size):
                found.append(self._part(part).take(typed[order[low:high]] - self._offsets[part]))
        places = np.empty(order.size, np.int64)
        places[order] = np.arange(order.size)
        if isinstance(found[0], RawTexts):
            return take_rows(RawTexts(*concat_texts([(some.offsets, some.values) for some in found])), places)
        joined: NDArray[np.int64] = np.concatenate(found)
        return joined[places]
