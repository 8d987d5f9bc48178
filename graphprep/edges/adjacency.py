"""The edges of a graph, by row: CSC or CSR in memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.schema import Layout
from graphprep.model.shown.results import Card, Showable
from graphprep.model.shown.texts import count


@dataclass(frozen=True, repr=False)
class Adjacency(Showable):
    """Neighbours by row: row r has ``indices[indptr[r]:indptr[r + 1]]``.

    ``layout``: ``csc`` has a row for each destination, its neighbours are sources; ``csr`` the other way round. ``indptr``:
    int64[num_rows + 1]; ``indices``: [num_edges] int32 where the neighbours' side has at most 2^31 nodes, else int64;
    ``edge_ids``: [num_edges] int32 or int64, the ID of each edge, or None. ``num_neighbors``: how many nodes the
    neighbours' side has; of one node type, that is ``num_rows``.
    """

    layout: Layout
    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    edge_ids: NDArray[Any] | None
    num_neighbors: int

    @property
    def num_rows(self) -> int:
        """Return the number of nodes that have a row."""
        return self.indptr.size - 1

    @property
    def num_edges(self) -> int:
        """Return the number of edges."""
        return self.indices.size

    def card(self) -> Card:
        """See ``Showable``."""
        own, other = ("destination", "source") if self.layout == "csc" else ("source", "destination")
        title = f"Adjacency({self.layout!r}): {count(self.num_edges, 'edge')}, by {own}"
        arrays = [("indptr", f"where the {other}s of each {own} begin", self.indptr), ("indices", f"{other}s", self.indices)]
        arrays += [] if self.edge_ids is None else [("edge_ids", "edge IDs", self.edge_ids)]
        rows = tuple((name, words, f"{array.size:,}", array.dtype.name) for name, words, array in arrays)
        return Card(title, rows, (f"{count(self.num_rows, own)}, {count(self.num_neighbors, other)}",))

    def rows(self, first: int, stop: int) -> Adjacency:
        """Return rows [first, stop), without a copy of their entries."""
        low, high = int(self.indptr[first]), int(self.indptr[stop])
        ids = None if self.edge_ids is None else self.edge_ids[low:high]
        return Adjacency(self.layout, self.indptr[first : stop + 1] - low, self.indices[low:high], ids, self.num_neighbors)

    def hypersparse(self) -> Hypersparse:
        """Return the rows that have entries, for a graph of which few nodes have; entries are not copied."""
        rows = np.flatnonzero(np.diff(self.indptr))
        indptr = np.append(self.indptr[rows], self.indptr[-1:])
        return Hypersparse(self.layout, rows, indptr, self.indices, self.edge_ids, self.num_rows, self.num_neighbors)


@dataclass(frozen=True, repr=False)
class Hypersparse(Showable):
    """An ``Adjacency`` without its empty rows: row ``rows[i]`` has ``indices[indptr[i]:indptr[i + 1]]``.

    ``rows``: int64[k], ascending; ``indptr``: int64[k + 1]; of ``num_rows`` in all. Source: DCSR of Buluç and Gilbert, IPDPS
    2008.
    """

    layout: Layout
    rows: NDArray[np.int64]
    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    edge_ids: NDArray[Any] | None
    num_rows: int
    num_neighbors: int

    def card(self) -> Card:
        """See ``Showable``."""
        title = f"Hypersparse({self.layout!r}): {count(self.indices.size, 'edge')}"
        return Card(title, notes=(f"{self.rows.size:,} of {count(self.num_rows, 'row')} have entries",))
