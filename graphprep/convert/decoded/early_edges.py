"""Edges that are scattered to buckets as soon as they are decoded, in the hope that raw IDs will turn out to be typed IDs.

How many nodes there will be is not known then. So every segment has buckets of its own: the highest bits of its own highest
owner. Widths are powers of two, and buckets lie side by side: in the end those of the widest serve all, and no edge moves.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.keys import KeyedRows
from graphprep.edges.buckets import scatter_all
from graphprep.kernels.cpu.ids.group import mark_bits
from graphprep.kernels.cpu.ids.hash import edge_checksum
from graphprep.kernels.edges import Kernels, Packing
from graphprep.model.rows import RawTexts, Relation
from graphprep.storage.spill.records import RecordRuns
from graphprep.storage.spill.runs import SpillPool

Ints = NDArray[np.int64]
Ids = NDArray[np.uint32]
Ends = tuple[Ids, Ids]  # sources and destinations of a batch

_BUCKET_BITS = 10  # beyond 1024 streams of stores, scattering falls off the cache
_NO_IDS = np.zeros(0, np.uint32)
_SPARSE = 4  # nodes for each edge: --ids auto takes so few IDs for sparse


class EarlyRules(NamedTuple):
    """How edges are scattered while they are decoded.

    ``owner_side``: 1 where destinations own edges, else 0. ``group_bytes`` of text are decoded at a time, and scattered when
    they are ``most_edges``. ``mark_bytes`` bounds the bits that mark the IDs that occur. ``total_bytes`` are those of all
    input, 0 where that is not known.
    """

    kernels: Kernels
    owner_side: int
    group_bytes: int
    most_edges: int
    mark_bytes: int
    total_bytes: int = 0


class SegmentNote(NamedTuple):
    """What is known of a segment: batches of ``sizes`` edges, scattered to buckets of 2^``shift`` rows.

    ``highs`` are the highest IDs (of sources, of destinations).
    """

    packing: Packing
    shift: int
    sizes: tuple[int, ...]
    highs: tuple[int, int]


class Segment(NamedTuple):
    """The edges of some batches, bucket after bucket: ``offsets`` are the borders."""

    words: NDArray[np.uint64]
    offsets: NDArray[np.uint32]
    checksum: int
    note: SegmentNote


def plain_ends(keyed: KeyedRows | None, relation: Relation) -> Ends | None:
    """Return the ends of a block's edges; None where there is more than those, or they are of several relations, or wide."""
    rows = None if keyed is None else keyed.rows
    if rows is None or rows.nodes is not None or rows.aligned:
        return None
    edges = rows.edges
    if edges is None:
        return _NO_IDS, _NO_IDS
    if edges.columns or edges.num_slots is not None:
        return None
    src, dst = edges.src, edges.dst
    if edges.relation_names != (relation,) or isinstance(src, RawTexts) or isinstance(dst, RawTexts):
        return None
    if not src.size:
        return _NO_IDS, _NO_IDS
    return (src.view(np.uint32), dst.view(np.uint32)) if src.dtype == dst.dtype == np.uint32 else None


def without_edges(keyed: KeyedRows | None) -> KeyedRows | None:
    """Return a block's rows without its edges."""
    return None if keyed is None else replace(keyed, rows=replace(keyed.rows, edges=None))


class EarlyScatterer:
    """Scatters the edges of a few batches. Threads share it."""

    def __init__(self, rules: EarlyRules, *, is_one_type: bool) -> None:
        self.rules = rules
        self.is_stopped = False  # as soon as something speaks against it
        sides = 1 if is_one_type else 2
        self._marks = tuple(Marks(rules.mark_bytes // sides) for _ in range(sides))

    def marks(self, side: int) -> Marks:
        """Return the IDs that occurred at one end (0: the source)."""
        return self._marks[side % len(self._marks)]

    def scatter(self, batches: Sequence[Ends], highs: tuple[int, int], num_bytes: int) -> Segment | None:
        """Scatter edges that were decoded from ``num_bytes`` of text; None where that is no use.

        ``highs`` are the highest IDs of sources and of destinations.
        """
        filled = [ends for ends in batches if ends[0].size]
        if not filled or self.is_stopped:
            return None
        size = sum(src.size for src, _ in filled)
        packing = None if max(highs) >= 2**31 else self._packing(highs, size)
        if packing is None or self._is_sparse(max(highs), size, num_bytes):
            self.is_stopped = True
            return None
        owner_high = highs[self.rules.owner_side]
        shift = _shift_of(owner_high)
        owners_first = [ends[::-1] if self.rules.owner_side else ends for ends in filled]
        words, offsets = scatter_all(self.rules.kernels, owners_first, packing, shift, (owner_high >> shift) + 1)
        for side in range(2):
            self.marks(side).add([ends[side] for ends in filled], highs[side])
        checksum = sum(edge_checksum(src, dst) for src, dst in filled) % 2**64
        note = SegmentNote(packing, shift, tuple(src.size for src, _ in filled), highs)
        return Segment(words, offsets, checksum, note)

    def _packing(self, highs: tuple[int, ...], size: int) -> Packing | None:
        """Pack an edge's number among ``size``, its other end, and bits of its owner; None where these are too few."""
        owner, other = highs[self.rules.owner_side], highs[1 - self.rules.owner_side]
        other_bits = max(1, other.bit_length())
        packing = Packing(other_bits, max(1, (size - 1).bit_length()))
        return packing if packing.row_bits >= max(1, _shift_of(owner)) else None

    def _is_sparse(self, high: int, size: int, num_bytes: int) -> bool:
        """Return whether IDs are surely too high for ``--ids auto`` to take all that are lower for nodes."""
        return 0 < self.rules.total_bytes * size * _SPARSE < high * num_bytes


def _shift_of(high: int) -> int:
    return max(0, high.bit_length() - _BUCKET_BITS)


class Marks:
    """A bit for each ID that occurs, as long as that takes no more than ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self.is_complete = True
        self._left_bytes = most_bytes
        self._free: list[NDArray[np.uint8]] = []  # threads mark bits of their own
        self._lock = threading.Lock()

    def add(self, batches: Sequence[NDArray[Any]], high: int) -> None:
        """Mark IDs, of which ``high`` is the highest."""
        bits = self._take(high // 8 + 1)
        if bits is None:
            return
        for ids in batches:
            mark_bits(bits, ids)
        with self._lock:
            self._free.append(bits)

    def merged(self, num_bytes: int) -> NDArray[np.uint8]:
        """Return the bits of all threads: uint8[num_bytes]."""
        out = np.zeros(num_bytes, np.uint8)
        for bits in self._free:
            size = min(num_bytes, bits.size)
            out[:size] |= bits[:size]
        return out

    def _take(self, num_bytes: int) -> NDArray[np.uint8] | None:
        with self._lock:
            bits = self._free.pop() if self._free else np.zeros(0, np.uint8)
            if bits.size < num_bytes:
                size = 1 << (num_bytes - 1).bit_length()
                self._left_bytes -= size - bits.size
                self.is_complete = self.is_complete and self._left_bytes >= 0
                if self.is_complete:
                    bits = np.concatenate([bits, np.zeros(size - bits.size, np.uint8)])
            if not self.is_complete:
                self._free.clear()
                return None
            return bits


@dataclass(eq=False)
class EarlyEdges:
    """All edges that were scattered while they were decoded, segment after segment."""

    scatterer: EarlyScatterer
    runs: RecordRuns
    notes: list[SegmentNote] = field(default_factory=list)
    checksum: int = 0
    num_edges: int = 0

    @classmethod
    def begin(cls, rules: EarlyRules, pool: SpillPool, *, is_one_type: bool) -> EarlyEdges:
        """Take edges from now on; ``is_one_type``: both their ends are nodes of one type."""
        return cls(EarlyScatterer(rules, is_one_type=is_one_type), RecordRuns(pool, 0))

    @property
    def owner_side(self) -> int:
        """Return which end owns edges: 0 the source, 1 the destination."""
        return self.scatterer.rules.owner_side

    def add(self, segment: Segment, first_edge: int) -> None:
        """Take a segment, whose first edge has the ID ``first_edge``."""
        self.runs.append(segment.words, segment.offsets, first_edge, segment.note.packing)
        self.notes.append(segment.note)
        self.checksum = (self.checksum + segment.checksum) % 2**64
        self.num_edges += len(segment.words)

    def read(self) -> Iterator[Ends]:
        """Yield (sources, destinations) of every batch that has edges, in input order."""
        for number, note in enumerate(self.notes):
            words, offsets = self.runs.segment(number)
            owners, others = np.empty(len(words), np.uint32), np.empty(len(words), np.uint32)
            self.scatterer.rules.kernels.gather_edges(words, note.packing, note.shift, offsets, owners, others)
            src, dst = (others, owners) if self.owner_side else (owners, others)
            for start, stop in itertools.pairwise([0, *itertools.accumulate(note.sizes)]):
                yield src[start:stop], dst[start:stop]

    def settle(self, num_rows: int, least_shift: int) -> int | None:
        """Give all segments the same buckets, of at least 2^``least_shift`` rows; return the logarithm of their width.

        None where a record lacks bits for that; then nothing changes.
        """
        shift: int = max([least_shift, *(one.shift for one in self.notes)])
        for one in self.notes:
            if one.packing.row_bits < min(shift, one.highs[self.owner_side].bit_length()):
                return None
        self.runs.regroup(max(1, -(-num_rows >> shift)), [1 << (shift - one.shift) for one in self.notes])
        return shift
