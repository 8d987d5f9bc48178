"""Negatives of the edges of a split: for each of them other ends that no edge of its type leads to."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.kernels.cpu.sample.negatives import Rows, Wanted, draw_others, draw_walks
from graphprep.kernels.cpu.text.texts import hash_texts
from graphprep.model.errors import UsageError
from graphprep.model.options.negatives import NegativeRule
from graphprep.model.rows import RawTexts
from graphprep.model.schema import ColumnSchema, EdgeType, edge_type_text
from graphprep.model.shown.texts import count
from graphprep.rewrite.transform.edge_ops import sorted_edges
from graphprep.rewrite.transform.recipe import EdgeRecipe, Ids, Ints, MadeColumn, narrow, read_edges, slices, take
from graphprep.store.items import StoredArrays

End = Literal["src", "dst"]
_ENTRY_BYTES = 32  # of an edge of a row while its negatives are drawn
_WEIGHT_BITS = 62  # of the sum of all weights
_MOST_WEIGHT_BITS = 20  # behind the binary point of a weight


@dataclass(frozen=True)
class Negatives:
    """The columns of negatives of an edge type; ``missing`` of ``total`` draws had no candidate."""

    columns: tuple[MadeColumn, ...]
    missing: int
    total: int

    def notes(self, name: str) -> list[str]:
        """Say how many there are of the edge type of this name."""
        missing = f", {self.missing:,} of them -1, as there was no candidate" if self.missing else ""
        return [f"edge type {name!r}: {count(self.total, 'negative')}{missing}"]


def draw_negatives(
    store: StoredArrays, number: int, parts: NDArray[np.int8], rule: NegativeRule, seed: int, room: Workspace
) -> Negatives:
    """Draw the negatives of an edge type: docs/split.md, "Negatives".

    ``parts`` (int8[m]) are 0, 1, 2, and others for an edge in no part; they, and the columns, are by edge row.
    Raises UsageError where ``khop`` asks for steps that lead to no candidate.
    """
    check_rule(rule, store.metadata.edge_types[number])
    offsets = _offsets(parts, rule, room)
    total = int(offsets[-1])
    with room.scratch.inner() as scratch:
        inner = replace(room, scratch=scratch)
        edges = read_edges(store, number, inner, with_rows=True)
        assert edges.rows is not None
        starts, parts = take(offsets[:-1], edges.rows, scratch), take(parts, edges.rows, scratch)
        drawers = {end: _Drawer(store, edges, end, inner) for end in (("src", "dst") if rule.hops else rule.ends)}
        columns, missing = [], 0
        for end in rule.ends:
            wanted = Wanted(parts, starts, np.array(rule.counts, np.int64), draw_key(seed, edges.edge_type, end))
            values = room.scratch.zeros(total, narrow(drawers[end].num_others))
            back = drawers["src" if end == "dst" else "dst"] if rule.hops else None
            missing += drawers[end].draw(wanted, rule, back, values)
            schema = ColumnSchema(f"negative_{end}", "ragged", values.dtype.name, role=f"negative_{end}")
            columns.append(MadeColumn(schema, values, offsets=offsets))
    return Negatives(tuple(columns), missing, total * len(rule.ends))


def check_rule(rule: NegativeRule, edge_type: EdgeType) -> None:
    """Raise UsageError where walks lead to no candidate."""
    if rule.hops == 2 and edge_type[0] != edge_type[2]:
        raise UsageError(
            f"khop:2: in {edge_type_text(edge_type)!r} two steps lead back to nodes of the first type",
            place="--negatives-by",
            fix="use khop:3 or more, or another method",
        )


def draw_key(seed: int, edge_type: tuple[str, str, str], end: End) -> int:
    """Return the key of all draws of an end of an edge type."""
    texts = RawTexts.of([edge_type_text(edge_type).encode(), f"negative_{end}".encode()])
    key = int(hash_ints(np.array([seed % 2**64], np.uint64))[0])
    for one in hash_texts(texts.offsets, texts.values).tolist():
        key = int(hash_ints(np.array([key ^ one], np.uint64))[0])
    return key


def _offsets(parts: NDArray[np.int8], rule: NegativeRule, room: Workspace) -> Ints:
    """Return where the negatives of each edge begin: int64[m + 1]."""
    out, total = room.scratch.zeros(parts.size + 1, np.int64), 0
    for at in slices(parts.size):
        ends = np.cumsum(np.select([parts[at] == part for part in range(3)], rule.counts, 0)) + total
        out[at.start + 1 : at.stop + 1] = ends
        total = int(ends[-1])
    return np.asarray(out)


class _Drawer:
    """Draws other ends in place of ``end``: the edges of a type by their heads and tails, which stay."""

    def __init__(self, store: StoredArrays, edges: EdgeRecipe, end: End, room: Workspace) -> None:
        src, relation, dst = edges.edge_type
        turned = edges if end == "dst" else replace(edges, edge_type=(dst, relation, src), src=edges.dst, dst=edges.src)
        sizes = store.metadata.num_nodes_by_type()
        self.num_rows, self.num_others = sizes[turned.edge_type[0]], sizes[turned.edge_type[2]]
        self._is_one_type = src == dst
        self._edges, self._room = turned, room
        self.rows = self._sort(store)

    def _sort(self, store: StoredArrays) -> Rows:
        """Put the edges in the order of their rows, then of their other ends."""
        edges, make = self._edges, self._room.scratch.zeros
        indptr = make(self.num_rows + 1, np.int64)
        rows = Rows(indptr, make(edges.size, narrow(self.num_others)), make(edges.size, narrow(edges.size)))
        at = 0
        for some, others, ids in sorted_edges(store, edges, self._room, lambda *found: found):
            stop = at + others.size
            rows.others[at:stop], rows.ids[at:stop] = others, ids
            if some.size:
                first = int(some[0])
                counts = np.bincount(some - first)
                indptr[first + 1 : first + 1 + counts.size] += counts
            at = stop
        total = 0
        for at_ in slices(self.num_rows):
            ends = np.cumsum(indptr[at_.start + 1 : at_.stop + 1]) + total
            indptr[at_.start + 1 : at_.stop + 1] = ends
            total = int(ends[-1])
        return rows

    def draw(self, wanted: Wanted, rule: NegativeRule, back: _Drawer | None, out: Ids) -> int:
        """Draw for all edges; return for how many draws there is no candidate."""
        before = self._weights(rule.exponent) if rule.exponent else None

        def draw(rows: tuple[int, int]) -> int:
            if back is not None:
                return draw_walks(self.rows, back.rows, *rows, wanted, hops=rule.hops, is_one_type=self._is_one_type, out=out)
            return draw_others(
                self.rows, *rows, wanted, num_others=self.num_others, is_one_type=self._is_one_type, before=before, out=out
            )

        return sum(map_ordered(draw, self._pieces(), self._room.threads))

    def _pieces(self) -> Iterator[tuple[int, int]]:
        """Cut the rows into pieces of some thousand edges; a row of more stands alone."""
        indptr, most, low = self.rows.indptr, self._room.fit(_ENTRY_BYTES), 0
        while low < self.num_rows:
            high = int(np.searchsorted(indptr, indptr[low] + most, side="right")) - 1
            high = min(max(low + 1, high), low + most)
            yield low, high
            low = high

    def _weights(self, exponent: float) -> Ints:
        """Return the sums of the weights of the other ends before each: their degrees to the power of ``exponent``.

        Weights are whole numbers of 2^-k, k as large as their sum allows.
        """
        degrees = self._room.scratch.zeros(self.num_others, np.int64)
        for at in slices(self._edges.size):
            np.add.at(degrees, self._edges.dst[at], 1)
        powers = (np.where(degrees[at] > 0, degrees[at].astype(np.float64) ** exponent, 0) for at in slices(degrees.size))
        most = math.ceil(math.log2(math.fsum(float(some.sum()) for some in powers) + 1))
        scale = 2.0 ** min(_MOST_WEIGHT_BITS, _WEIGHT_BITS - 1 - most)
        before, total = self._room.scratch.zeros(self.num_others + 1, np.int64), 0
        for at in slices(degrees.size):
            some = degrees[at]
            weights = np.where(some > 0, np.maximum(np.rint(some.astype(np.float64) ** exponent * scale), 1), 0)
            ends = np.cumsum(weights.astype(np.int64)) + total
            before[at.start + 1 : at.stop + 1] = ends
            total = int(ends[-1])
        return np.asarray(before)
