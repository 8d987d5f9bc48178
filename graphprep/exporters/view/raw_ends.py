"""Raw IDs of the ends of edges: looked up by typed IDs, in any order, over all partitions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.view.graph import StoredGraph
from graphprep.kernels.cpu.text.texts import concat_texts
from graphprep.model.rows import RawTexts
from graphprep.store.columns.arrow import RawBlock
from graphprep.store.text_source import take_rows

Ints = NDArray[np.int64]


class RawEnds:
    """The raw IDs of a node type, by typed ID."""

    def __init__(self, graph: StoredGraph, number: int) -> None:
        self._parts = [graph.raw_ids(number, part) for part in range(graph.metadata.num_parts)]
        self._offsets = graph.node_offsets(number)

    def of(self, typed: Ints) -> RawBlock:
        """Return the raw IDs of typed ones (int64[k], any order): int64[k] or uint64[k], or texts."""
        if len(self._parts) == 1:
            return self._parts[0].take(typed)
        parts = np.searchsorted(self._offsets[1:], typed, side="right")
        order = np.argsort(parts, kind="stable")
        cuts = np.searchsorted(parts[order], np.arange(len(self._parts) + 1))
        found: list[Any] = []
        for part, low, high in zip(range(len(self._parts)), cuts[:-1], cuts[1:], strict=True):
            if low < high or (part == 0 and not typed.size):
                found.append(self._parts[part].take(typed[order[low:high]] - self._offsets[part]))
        places = np.empty(order.size, np.int64)
        places[order] = np.arange(order.size)
        if isinstance(found[0], RawTexts):
            return take_rows(RawTexts(*concat_texts([(some.offsets, some.values) for some in found])), places)
        joined: NDArray[np.int64] = np.concatenate(found)
        return joined[places]
