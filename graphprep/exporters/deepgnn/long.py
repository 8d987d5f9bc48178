"""The edges of one row that has too many of them to be held: in order already, or ordered in arrays that may be files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.edges import EdgeBatch, PartEdges, ascend
from graphprep.exporters.deepgnn.ids import NodeIds
from graphprep.exporters.deepgnn.rows import RowBatch, Run
from graphprep.kernels.cpu.ids.sort import order_by_key
from graphprep.storage.spill.scratch import Scratch

Ints = NDArray[np.int64]
Span = tuple[int, int, int]  # edge type, and which of its edges: [low, high)

_SIGN = np.uint64(1 << 63)


class LongRow:
    """Reads the edges of a batch of one row in pieces of ``most`` edges."""

    def __init__(self, edges: PartEdges, batch: RowBatch, most: int, scratch: Scratch) -> None:
        self._edges = edges
        self._most = most
        self._scratch = scratch
        self._spans = sorted(edges.spans(batch), key=lambda span: edges.number(span[0]))

    def pieces(self) -> Iterator[EdgeBatch]:
        """Yield the edges in order."""
        for _, group in groupby(self._spans, key=lambda span: self._edges.number(span[0])):
            spans = list(group)
            if len(spans) == 1 and self._ascends(spans[0]):
                yield from self._in_place(spans[0])
            else:
                yield from self._ordered(spans)

    def _cut(self, span: Span) -> Iterator[Span]:
        edge, low, high = span
        return ((edge, at, min(at + self._most, high)) for at in range(low, high, self._most))

    def _ascends(self, span: Span) -> bool:
        """Return whether edges are in order as they are; pieces overlap by one."""
        return all(
            not (keys := self._edges.keys(edge, low, self._edges.destinations(edge, low, min(high + 1, span[2]))))
            or ascend(keys)
            for edge, low, high in self._cut(span)
        )

    def _in_place(self, span: Span) -> Iterator[EdgeBatch]:
        for edge, low, high in self._cut(span):
            run = Run(edge, low, high, np.arange(high - low))
            yield self._batch(self._edges.destinations(edge, low, high), (run,))

    def _ordered(self, spans: Sequence[Span]) -> Iterator[EdgeBatch]:
        """Order the edges of several types that go by one number, or of one."""
        ends = np.cumsum([high - low for _, low, high in spans])
        dst, order = self._scratch.zeros(int(ends[-1]), np.uint64), self._order(spans, int(ends[-1]))
        for (edge, low, high), end in zip(spans, ends.tolist(), strict=True):
            for _, some, stop in self._cut((edge, low, high)):
                dst[end - high + some : end - high + stop] = self._edges.destinations(edge, some, stop)
        for at in range(0, order.size, self._most):
            positions = order[at : at + self._most]
            runs = []
            for (edge, low, high), end in zip(spans, ends.tolist(), strict=True):
                mine = np.flatnonzero((positions < end) & (positions >= end - (high - low)))
                if mine.size:
                    runs.append(Run(edge, low, high, mine, positions[mine] - end + high))
            yield self._batch(dst[positions], tuple(runs))

    def _order(self, spans: Sequence[Span], size: int) -> Ints:
        """Return the order of edges: positions among those of all spans, one behind the other."""
        order, more = (self._scratch.zeros(size, np.int64) for _ in range(2))
        for at in range(0, size, self._most):
            order[at : at + self._most] = np.arange(at, min(at + self._most, size))
        num_keys = len(self._edges.keys(spans[0][0], spans[0][1], np.zeros(0, np.uint64)))
        keys = self._scratch.zeros(size, np.uint64)
        for number in reversed(range(num_keys)):
            at = 0
            for span in spans:
                for edge, low, high in self._cut(span):
                    key = self._edges.keys(edge, low, self._edges.destinations(edge, low, high))[number]
                    keys[at : at + key.size] = key if key.dtype == np.uint64 else key.view(np.uint64) ^ _SIGN
                    at += key.size
            found = order_by_key(keys, order, more)
            order, more = found, more if found is order else order
        return order

    def _batch(self, dst: NodeIds, runs: tuple[Run, ...]) -> EdgeBatch:
        types = np.full(dst.size, self._edges.number(runs[0].number), np.int32)
        return EdgeBatch(np.zeros(dst.size, np.int64), dst, types, runs)
