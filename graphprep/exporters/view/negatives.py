"""The negatives of the edges of a part of a split, as trainers are asked: pairs of nodes, or other ends, by edge ID."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.edge_sets import EdgeSet, ToIds
from graphprep.model.errors import DataError
from graphprep.model.schema import ColumnSchema
from graphprep.store.items import FIX, StoredItems

Ints = NDArray[np.int64]
_ROW_BYTES = 64  # of an edge while it is looked at
_NEGATIVE_BYTES = 48  # of a negative


@dataclass(frozen=True)
class Queries:
    """Some edges with their negatives: IDs that a trainer sees, -1 for a negative that is not there.

    ``src`` and ``dst``: int64[k]; ``others`` [k, K] by role: what stands in place of the source or of the destination.
    """

    src: Ints
    dst: Ints
    others: dict[str, Ints]

    def pairs(self) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the pairs of each edge's negatives, destinations first: int64[k, K, 2], and which are there: bool[k, K]."""
        found = [np.zeros((self.src.size, 0, 2), np.int64)]
        for role in ("negative_dst", "negative_src"):
            if role in self.others:
                others = self.others[role]
                own = np.broadcast_to((self.src if role == "negative_dst" else self.dst)[:, None], others.shape)
                found.append(np.stack([own, others] if role == "negative_dst" else [others, own], axis=2))
        pairs = np.concatenate(found, axis=1)
        return pairs, np.asarray((pairs >= 0).all(axis=2))


class Negatives:
    """The negatives of a set of edges; ``counts`` says how many each edge has, by role."""

    def __init__(self, edges: EdgeSet, to_ids: ToIds) -> None:
        self._edges, self._to_ids = edges, to_ids
        self._columns = edges.graph.negatives(edges.edge)
        self.counts = {str(column.role): self._count(column) for column in self._columns}

    @property
    def per_edge(self) -> int:
        """Return how many negatives each edge has."""
        return sum(self.counts.values())

    def _count(self, column: ColumnSchema) -> int:
        for low, high, mask in self._edges.masks(_ROW_BYTES):
            if mask.any():
                cells = self._edges.rows.cells(column, low, high)
                return int(cells.value_counts[np.argmax(mask)])
        return 0

    def queries(self) -> Iterator[Queries]:
        """Yield all edges of the set. Raises DataError where they have not as many negatives each."""
        graph, edge = self._edges.graph, self._edges.edge
        src, dst = graph.ends_of(edge)
        ends = [(number, StoredItems(array)) for number, array in zip((src, dst), graph.store.input_ends(edge), strict=True)]
        for low, high, mask in self._edges.masks(_ROW_BYTES + _NEGATIVE_BYTES * self.per_edge):
            chosen = np.flatnonzero(mask)
            found = [self._to_ids(number, items.read(low, high)[mask].astype(np.int64)) for number, items in ends]
            others = {}
            for column in self._columns:
                count = self.counts[str(column.role)]
                cells = self._edges.rows.cells(column, low, high).take(chosen)
                if (cells.value_counts != count).any():
                    raise DataError(f"edges of a part have not as many negatives each, in {column.name}", fix=FIX)
                number = src if column.role == "negative_src" else dst
                others[str(column.role)] = self._ids(number, cells.flat.astype(np.int64)).reshape(chosen.size, count)
            yield Queries(found[0], found[1], others)

    def _ids(self, number: int, typed: Ints) -> Ints:
        out, there = np.full(typed.size, -1, np.int64), typed >= 0
        out[there] = self._to_ids(number, typed[there])
        return out

    def matrix(self, role: str) -> TensorPieces:
        """Return what stands in place of one end: int64[size, K]."""
        return TensorPieces(
            "int64", (self._edges.size, self.counts[role]), lambda: (some.others[role] for some in self.queries())
        )

    def num_pairs(self) -> int:
        """Count the negatives that are there."""
        return sum(int(some.pairs()[1].sum()) for some in self.queries()) if self.per_edge else 0

    def pairs(self) -> Iterator[tuple[Ints, Ints]]:
        """Yield the pairs of the negatives that are there, by edge: int64[j, 2], and how many each edge has: int64[k]."""
        for some in self.queries():
            pairs, there = some.pairs()
            yield pairs[there], there.sum(axis=1)
