"""The nodes and edges of a store with a hash each, of their raw IDs, and one for each of their cells; in bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.against.cells import HashedColumn
from graphprep.edges.moves import Workspace
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.kernels.cpu.ids.sums import Hashes, mix_hashes
from graphprep.kernels.cpu.text.texts import hash_texts
from graphprep.model.rows import RawTexts
from graphprep.rewrite.stored_edges import EdgeSpan, end_types, map_edges
from graphprep.store.columns.arrow import RawBlock
from graphprep.store.items import StoredArrays, part_borders
from graphprep.store.raw_ids import RawIds, RawLookup

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_ROW_BYTES = 64  # of a node while it is hashed: its raw ID, its hash and those of its cells


@dataclass(frozen=True, eq=False)
class HashedRows:
    """Some nodes or edges of a partition: their rows (int64[k]), hashes, and of each column the cells' (None: all have one).

    ``ends`` are the typed IDs of sources and destinations of edges, ``ids`` their edge IDs: int64[k].
    """

    part: int
    rows: Ints
    hashes: Hashes
    cells: tuple[tuple[Hashes, Flags | None], ...]
    ends: tuple[Ints, Ints] | None = None
    ids: Ints | None = None


@dataclass(frozen=True)
class OwnerRows:
    """The rows of one type in a store: nodes, or edges where ``edges``; ``columns`` are those to hash."""

    store: StoredArrays
    number: int
    edges: bool
    columns: Sequence[HashedColumn]

    def read(self, room: Workspace, wanted: Flags | None = None) -> Iterator[HashedRows]:
        """Yield all rows once, in any order; with ``wanted`` (bool, a power of two) those whose hash begins with such bits."""
        if self.edges:
            yield from self._edges(room, wanted)
            return
        for part, size in enumerate(self.store.metadata.num_nodes_per_chunk[self.number]):
            step = room.fit(_ROW_BYTES)
            spans = ((low, min(low + step, size)) for low in range(0, size, step))
            yield from map_ordered(partial(self._hash_nodes, part, wanted, room.piece_bytes), spans, room.threads)

    def _hash_nodes(self, part: int, wanted: Flags | None, most_bytes: int, span: tuple[int, int]) -> HashedRows:
        low, high = span
        hashes = np.concatenate(list(map(hash_raw, RawIds(self.store, self.number, part).pieces(low, high))))
        chosen = choose(hashes, wanted)
        return HashedRows(part, low + chosen, hashes[chosen], self._cells(part, low, high, chosen, most_bytes))

    def _cells(self, part: int, low: int, high: int, chosen: Ints, most_bytes: int) -> tuple[tuple[Hashes, Flags | None], ...]:
        if not chosen.size:
            return tuple((np.zeros(0, np.uint64), None) for _ in self.columns)
        found = (column.hash_rows(self.store, part, low, high, most_bytes) for column in self.columns)
        return tuple((hashes[chosen], None if present is None else present[chosen]) for hashes, present in found)

    def _edges(self, room: Workspace, wanted: Flags | None) -> Iterator[HashedRows]:
        """Hash edges, for as many nodes of the other end at a time as there is room for the hashes of."""
        metadata = self.store.metadata
        row_type, other_type = end_types(metadata, self.number, metadata.primary_layout)
        own = NodeHashes(self.store, row_type)
        for others in other_windows(self.store, other_type, room.held_bytes // 8):
            make = partial(self._hash_edges, own, others, wanted, room.piece_bytes)
            with room.scratch.inner() as scratch:
                yield from map_edges(self.store, self.number, room, scratch, make, ids=wanted is not None)

    def _hash_edges(
        self, own: NodeHashes, others: OtherHashes, wanted: Flags | None, most_bytes: int, span: EdgeSpan
    ) -> HashedRows:
        inside, other_hashes = others.of(span.others)
        rows = span.rows[inside]
        row_hashes = own.of_ascending(rows)
        is_csc = self.store.metadata.primary_layout == "csc"
        hashes = mix_hashes(other_hashes, row_hashes) if is_csc else mix_hashes(row_hashes, other_hashes)
        kept = choose(hashes, wanted)
        chosen = kept if isinstance(inside, slice) else inside[kept]
        cells = self._cells(span.part, span.start, span.stop, chosen, most_bytes)
        other_ids = np.asarray(span.others[chosen], np.int64)
        ends = (other_ids, span.rows[chosen]) if is_csc else (span.rows[chosen], other_ids)
        return HashedRows(span.part, span.start + chosen, hashes[kept], cells, ends, np.asarray(span.ids[chosen], np.int64))


def choose(hashes: Hashes, wanted: Flags | None) -> Ints:
    """Return the positions of hashes whose first bits are wanted; None: of all."""
    if wanted is None:
        return np.arange(hashes.size)
    shift = np.uint64(64 - (wanted.size.bit_length() - 1))
    return np.flatnonzero(wanted[(hashes >> shift).astype(np.int64)])


def hash_raw(ids: RawBlock) -> Hashes:
    """Return h of raw IDs (docs/store.md, "Hashes"): uint64[k]."""
    return np.asarray(hash_texts(ids.offsets, ids.values) if isinstance(ids, RawTexts) else hash_ints(ids))


class NodeHashes:
    """h of the raw IDs of a node type, by typed ID."""

    def __init__(self, store: StoredArrays, number: int) -> None:
        self._lookup = RawLookup(store, number)

    def of_ascending(self, typed: Ints) -> Hashes:
        """Return those of typed IDs that ascend, most of them several times: uint64[k]."""
        if not typed.size:
            return np.zeros(0, np.uint64)
        firsts = np.concatenate([np.zeros(1, np.int64), np.flatnonzero(np.diff(typed)) + 1])
        counts = np.diff(np.concatenate([firsts, [typed.size]]))
        return np.repeat(hash_raw(self._lookup.of(typed[firsts])), counts)


@dataclass(frozen=True, eq=False)
class OtherHashes:
    """h of the raw IDs of nodes [low, high) of a type; without ``hashes`` the raw IDs are the typed ones, of all nodes."""

    low: int
    high: int
    hashes: Hashes | None
    is_whole: bool

    def of(self, typed: NDArray[Any]) -> tuple[Ints | slice, Hashes]:
        """Return which of the typed IDs lie here (a slice: all), and their hashes."""
        if self.hashes is None:
            return slice(None), np.asarray(hash_ints(np.asarray(typed, np.int64)))
        if self.is_whole:
            return slice(None), self.hashes[typed]
        inside = np.flatnonzero((typed >= self.low) & (typed < self.high))
        return inside, self.hashes[typed[inside] - self.low]


def other_windows(store: StoredArrays, number: int, most: int) -> Iterator[OtherHashes]:
    """Yield the hashes of a type's nodes, ``most`` at a time."""
    size = store.metadata.num_nodes_per_type[number]
    if store.metadata.node_schemas[number].raw_ids == "identity":
        yield OtherHashes(0, size, None, is_whole=True)
        return
    borders, most = part_borders(store.metadata, number).tolist(), max(1, most)
    table = np.empty(min(size, most), np.uint64)
    for low in range(0, size, most):
        high, at = min(low + most, size), 0
        for part, first in enumerate(borders[:-1]):
            begin, end = max(low, first), min(high, borders[part + 1])
            if begin < end:
                for piece in RawIds(store, number, part).pieces(begin - first, end - first):
                    found = hash_raw(piece)
                    table[at : at + found.size] = found
                    at += found.size
        yield OtherHashes(low, high, table, is_whole=high - low == size)
