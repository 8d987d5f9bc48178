"""The rows of a partition in DeepGNN's order: nodes by ID, whatever their types. A batch of them is what is written at a time.

Rows are cut into batches from IDs and numbers of edges alone, so that to read columns and edges of each is a task of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.ids import EngineIds, NodeIds, TypeNumbers
from graphprep.exporters.view.graph import StoredGraph
from graphprep.kernels.cpu.ids.sort import stable_order
from graphprep.model.schema import ColumnSchema

Ints = NDArray[np.int64]
Numbers = NDArray[np.int32]

PLACEHOLDER = -1  # the type of a row for edges whose source is not declared
_MOST_ROWS = 1 << 16  # looked at together
_CREATED = ColumnSchema("created", "dense", "bool", role="created")


@dataclass(frozen=True)
class Run:
    """Items [low, high) of a type in a partition. Item low + i is number ``at[i]`` of its batch; -1: it is left out.

    With ``items`` (int64[k]) it is only those, in any order: ``at`` belongs to them.
    """

    number: int
    low: int
    high: int
    at: Ints
    items: Ints | None = None

    @cached_property
    def kept(self) -> Ints | slice:
        """Return which items are not left out."""
        return slice(None) if self.at.size and int(self.at.min()) >= 0 else np.flatnonzero(self.at >= 0)

    @cached_property
    def target(self) -> Ints | slice:
        """Return which elements of the batch they are."""
        at = self.at[self.kept]
        if at.size and (at[1:] == at[:-1] + 1).all():
            return slice(int(at[0]), int(at[0]) + at.size)
        return at

    @cached_property
    def _last(self) -> Ints:
        """Return the highest number so far: of what is left out that of the item before."""
        return np.maximum.accumulate(self.at)

    def part(self, low: int, high: int) -> Run | None:
        """Return the items that are numbers [low, high) of the batch, counted from there, and those left out between them."""
        first, stop = np.searchsorted(self._last, [low, high]).tolist()
        if first == stop:
            return None
        at = self.at[first:stop]
        return Run(self.number, self.low + first, self.low + stop, np.where(at < 0, -1, at - low))


@dataclass(frozen=True)
class RowBatch:
    """Rows one after another: IDs, numbers of types (or PLACEHOLDER) and of edges. ``runs`` are the nodes, by node type."""

    ids: NodeIds
    types: Numbers
    degrees: Ints
    runs: tuple[Run, ...]

    @property
    def num_edges(self) -> int:
        """Return the number of edges."""
        return int(self.degrees.sum())

    def cut(self, edge_bytes: float, row_bytes: float, most_bytes: float) -> Iterator[RowBatch]:
        """Cut into batches of at most so many bytes, or of one row."""
        ends = np.cumsum(self.degrees * edge_bytes + row_bytes)
        low = 0
        while low < self.ids.size:
            done = ends[low - 1] if low else 0.0
            high = max(low + 1, int(np.searchsorted(ends, done + most_bytes, side="right")))
            runs = tuple(part for run in self.runs if (part := run.part(low, high)) is not None)
            yield RowBatch(self.ids[low:high], self.types[low:high], self.degrees[low:high], runs)
            low = high


class PartRows:
    """The rows of one partition. ``indptr`` is that of each edge type with edges in it, CSR."""

    def __init__(self, graph: StoredGraph, part: int, ids: EngineIds, numbers: TypeNumbers, indptr: dict[int, Ints]) -> None:
        self._graph = graph
        self._part = part
        self._ids = ids
        self._numbers = numbers
        sizes = [chunk[part] for chunk in graph.metadata.num_nodes_per_chunk]
        self._sizes = {number: size for number, size in enumerate(sizes) if size}
        self._first = {number: int(graph.node_offsets(number)[part]) for number in self._sizes}
        self._indptr: dict[int, list[Ints]] = {number: [] for number in self._sizes}
        for edge, bounds in indptr.items():
            self._indptr[graph.ends_of(edge)[0]].append(bounds)

    def windows(self) -> Iterator[RowBatch]:
        """Yield all rows in order, many at a time. Where the IDs of a type do not ascend, type after type."""
        if len(self._sizes) > 1 and self._ids.merge:
            yield from self._merged()
            return
        for number, size in self._sizes.items():
            for low in range(0, size, _MOST_ROWS):
                yield self._window([(number, low, self._node_ids(number, low, min(low + _MOST_ROWS, size)))])

    def _merged(self) -> Iterator[RowBatch]:
        """Merge types by ID: of each the next IDs are held, and given out up to the least of their last ones."""
        step = max(1 << 10, _MOST_ROWS // len(self._sizes))
        low = dict.fromkeys(self._sizes, 0)
        held = {number: self._node_ids(number, 0, min(step, size)) for number, size in self._sizes.items()}
        while held:
            more = [number for number, ids in held.items() if low[number] + ids.size < self._sizes[number]]
            border = min((held[number][-1] for number in more), default=None)
            taken = []
            for number, ids in list(held.items()):
                count = ids.size if border is None else int(np.searchsorted(ids, border, side="right"))
                if count:
                    taken.append((number, low[number], ids[:count]))
                    low[number] += count
                    held[number] = ids[count:]
                if count == ids.size:
                    held[number] = self._node_ids(number, low[number], min(low[number] + step, self._sizes[number]))
                if low[number] == self._sizes[number]:
                    del held[number]
            yield self._window(taken)

    def _node_ids(self, number: int, low: int, high: int) -> NodeIds:
        first = self._first[number]
        return self._ids.of(number, np.arange(first + low, first + high))

    def _window(self, pieces: Sequence[tuple[int, int, NodeIds]]) -> RowBatch:
        """Put nodes of several types in the order of their IDs. Those that were created and have no edges are left out."""
        ids = np.concatenate([own for _, _, own in pieces])
        facts = [self._facts(number, low, low + own.size) for number, low, own in pieces]
        types = np.concatenate([types for types, _ in facts])
        degrees = np.concatenate([degrees for _, degrees in facts])
        order = np.arange(ids.size) if len(pieces) == 1 else stable_order(ids)
        kept = (types != PLACEHOLDER) | (degrees > 0)
        at = np.empty(ids.size, np.int64)
        at[order] = np.cumsum(kept[order]) - 1
        at[~kept] = -1
        order = order[kept[order]]
        borders = np.cumsum([own.size for _, _, own in pieces])
        runs = (
            Run(number, low, low + own.size, at[end - own.size : end])
            for (number, low, own), end in zip(pieces, borders.tolist(), strict=True)
        )
        return RowBatch(ids[order], types[order], degrees[order], tuple(runs))

    def _facts(self, number: int, low: int, high: int) -> tuple[Numbers, Ints]:
        """Return the number of each node's type, PLACEHOLDER where it was created, and that of its edges."""
        types = np.full(high - low, self._numbers.nodes[number], np.int32)
        if any(column.role == "created" for column in self._graph.metadata.node_schemas[number].columns):
            created = self._graph.node_cells(number, self._part, _CREATED, low, high)
            types[created.flat.astype(bool)] = PLACEHOLDER
        degrees = np.zeros(high - low, np.int64)
        for bounds in self._indptr[number]:
            degrees += np.diff(bounds[low : high + 1])
        return types, degrees
