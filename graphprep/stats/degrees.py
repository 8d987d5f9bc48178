"""How many edges lead from and to each node, by edge type and in all, and what else one pass over the edges tells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.kernels.edges import Kernels
from graphprep.model.options.stats import ComponentStats, Distribution, Hub, NodeTypeStats
from graphprep.model.rows import RawTexts
from graphprep.rewrite.components import Components
from graphprep.rewrite.stored_edges import EdgeSpan, end_types, map_edges
from graphprep.stats.distribution import describe, slices, tally
from graphprep.store.items import StoredArrays
from graphprep.store.raw_ids import RawLookup

Ints = NDArray[np.int64]
_STEP = 1 << 16


@dataclass(frozen=True)
class TypeDegrees:
    """The degrees of an edge type, its hubs, and its self-loops."""

    in_degrees: Distribution
    out_degrees: Distribution
    in_hubs: tuple[Hub, ...]
    out_hubs: tuple[Hub, ...]
    num_self_loops: int


class DegreeCounts:
    """Counts over the edges of a store, type after type; then nodes and components are known."""

    def __init__(self, store: StoredArrays, room: Workspace, top: int) -> None:
        sizes = store.metadata.num_nodes_per_type
        self._store = store
        self._room = room
        self._top = top
        self._ins, self._outs = ([room.scratch.zeros(size, np.int64) for size in sizes] for _ in range(2))
        self._components = Components(store.metadata, room.scratch)

    def count(self, number: int) -> TypeDegrees:
        """Count the edges of a type. Raises DataError where the store's arrays are faulty."""
        metadata = self._store.metadata
        src_type, dst_type = end_types(metadata, number, "csr")
        with self._room.scratch.inner() as scratch:
            outs, ins = (scratch.zeros(metadata.num_nodes_per_type[one], np.int64) for one in (src_type, dst_type))
            num_self_loops = self._count(number, outs, ins, replace(self._room, scratch=scratch))
            for totals, found in ((self._outs[src_type], outs), (self._ins[dst_type], ins)):
                for start in range(0, found.size, _STEP):
                    totals[start : start + _STEP] += found[start : start + _STEP]
            return TypeDegrees(
                describe(tally(slices(ins)), power_law=True),
                describe(tally(slices(outs)), power_law=True),
                self._hubs(dst_type, [ins]),
                self._hubs(src_type, [outs]),
                num_self_loops,
            )

    def _count(self, number: int, outs: Ints, ins: Ints, room: Workspace) -> int:
        metadata, layout, num_self_loops = self._store.metadata, self._store.metadata.primary_layout, 0
        row_type, other_type = end_types(metadata, number, layout)
        of_rows, of_others = (ins, outs) if layout == "csc" else (outs, ins)

        def look(span: EdgeSpan) -> tuple[EdgeSpan, Ints, Ints, int]:
            loops = int((span.rows == span.others).sum()) if row_type == other_type else 0
            numbers = self._components.number
            return span, numbers(row_type, span.rows), numbers(other_type, span.others), loops

        for span, rows, others, loops in map_edges(self._store, number, room, room.scratch, look, ids=False):
            _count_ids(room.kernels, span, of_rows, of_others)
            self._components.join(rows, others)
            num_self_loops += loops
        return num_self_loops

    def nodes(self, number: int) -> NodeTypeStats:
        """Return what is known of a node type, once all edges were counted."""
        ins, outs = self._ins[number], self._outs[number]
        pairs = list(zip(slices(ins), slices(outs), strict=True))
        degrees = tally(a + b for a, b in pairs)
        return NodeTypeStats(
            name=self._store.metadata.node_types[number],
            num_nodes=ins.size,
            num_isolated=int(degrees.counts[degrees.values == 0].sum()),
            degrees=describe(degrees, power_law=True),
            in_degrees=describe(tally(slices(ins))),
            out_degrees=describe(tally(slices(outs))),
            hubs=self._hubs(number, [ins, outs]),
        )

    def components(self) -> ComponentStats:
        """Return what is known of the components, once all edges were counted."""
        with self._room.scratch.inner() as scratch:
            sizes = self._components.find(scratch)
            found = describe(tally(piece[piece > 0] for piece in slices(sizes)))
        return ComponentStats(found.count, found.max, found.max / max(1, sizes.size), found)

    def _hubs(self, node_type: int, degrees: Sequence[Ints]) -> tuple[Hub, ...]:
        """Return the nodes of the highest degrees, which are the sums of arrays; of equal ones the first."""
        typed, found = find_highest(degrees, self._top)
        raw = RawLookup(self._store, node_type).of(typed) if typed.size else typed
        names = [raw.text(i) for i in range(typed.size)] if isinstance(raw, RawTexts) else raw.tolist()
        return tuple(Hub(*one) for one in zip(names, typed.tolist(), found.tolist(), strict=True))


def _count_ids(kernels: Kernels, span: EdgeSpan, of_rows: Ints, of_others: Ints) -> None:
    kernels.count_ids(span.rows, of_rows)
    kernels.count_ids(np.ascontiguousarray(span.others), of_others)


def find_highest(arrays: Sequence[Ints], most: int) -> tuple[Ints, Ints]:
    """Return the positions of the highest sums of arrays above 0, and these; descending, of equal ones the first."""
    at, highest = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for start in range(0, arrays[0].size, _STEP):
        some = sum((array[start : start + _STEP] for array in arrays[1:]), arrays[0][start : start + _STEP])
        least = int(highest[-1]) if highest.size == most and most else 0
        new = np.flatnonzero(some > least)
        values, places = np.concatenate([highest, some[new]]), np.concatenate([at, new + start])
        order = np.argsort(-values, kind="stable")[:most]
        at, highest = places[order], values[order]
    return at, highest
