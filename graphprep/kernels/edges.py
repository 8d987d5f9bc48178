"""What the edge engine asks of a device: records of edges, and the kernels that count, scatter, sort, place and move them.

``kernels.cpu.edges.kernels`` is one implementation, found by ``graphprep.edges.device`` and handed in. Three edges, a row and
another end each, become rows 0 to 2, whose entries stand in input order and name their edges:

>>> from graphprep.kernels.cpu.edges import kernels
>>> rows, others = np.array([2, 0, 2]), np.array([1, 3, 0])
>>> packing, shift = Packing(other_bits=2, id_bits=8), 2  # one bucket of 2^2 rows
>>> starts, records = np.empty(3, np.uint32), np.empty((3, packing.words), np.uint64)
>>> kernels.start_buckets([rows], shift, starts)
>>> kernels.scatter_edges(rows, others, packing, shift, starts, records, first=0)
>>> built = Rows(np.zeros(4, np.int64), np.empty(3, np.int32), np.empty(3, np.int32))
>>> kernels.place_edges(one_segment(records, packing, shift), 0, 1, built, most=3, most_ids=3)
>>> built.indptr, built.indices, built.edge_ids
(array([0, 1, 1, 3]), array([3, 1, 0], dtype=int32), array([1, 0, 2], dtype=int32))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.model.buffers import Buffers, hold_buffers

Ints = NDArray[np.int64]
Ids = NDArray[Any]  # int32, int64, uint32 or uint64
Records = NDArray[np.uint64]  # [n, words]

WORD_BITS = 64


class Packing(NamedTuple):
    """How an edge is packed into the first word of a record: from the top its row, its other end, its edge ID.

    So records sort as their edges do. Of the row there are the low bits that there is room for: at least those that tell the
    rows of a bucket. ``travels`` names the words behind the first. With ``id_bits`` 0 the edge ID, if there is one, travels
    first among these.
    """

    other_bits: int
    id_bits: int
    travels: tuple[str, ...] = ()

    @property
    def words(self) -> int:
        """Return the number of words of a record."""
        return 1 + len(self.travels)

    def word(self, name: str) -> int:
        """Return which word of a record is the one of this name."""
        return 1 + self.travels.index(name)

    @property
    def row_bits(self) -> int:
        """Return how many low bits of the row there are."""
        return WORD_BITS - self.other_bits - self.id_bits


@dataclass(frozen=True, eq=False)
class Segments:
    """Records in buckets of 2^``shift`` rows, segment after segment, where they lie.

    The records of segment k begin at word ``offsets[k]`` of the buffer ``numbers[k]`` (int64[k] both); those of bucket b are
    [starts[k, b], starts[k, b + 1]) (uint32 or int64) of these. ``bases[k]`` (int64) is to be added to their edge IDs;
    ``packings`` (int64[k, 3]) are other bits, ID bits and words.
    """

    buffers: Buffers
    numbers: Ints
    offsets: Ints
    starts: NDArray[Any]
    bases: Ints
    packings: Ints
    shift: int

    def sizes(self, first: int, stop: int) -> Ints:
        """Count the records of every bucket in [first, stop): int64[stop - first]."""
        borders: Ints = self.starts[:, first : stop + 1].sum(axis=0, dtype=np.int64)
        return np.diff(borders)


def pack_bits(packing: Packing, num_segments: int) -> Ints:
    """Return ``Segments.packings`` of segments that are packed alike."""
    return np.repeat(np.array([[packing.other_bits, packing.id_bits, packing.words]], np.int64), num_segments, axis=0)


def as_input(array: NDArray[Any]) -> NDArray[Any]:
    """Return an aligned, contiguous, read-only view (a copy where it must be): kernels compile once for all inputs."""
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def bits_below(count: int) -> int:
    """Return how many bits the integers 0..count-1 need."""
    return max(0, count - 1).bit_length()


def one_segment(records: Records, packing: Packing, shift: int) -> Segments:
    """Return the records of one bucket of 2^``shift`` rows."""
    zero, starts = np.zeros(1, np.int64), np.array([[0, len(records)]], np.uint32)
    return Segments(hold_buffers([records]), zero, zero, starts, zero, pack_bits(packing, 1), shift)


class Rows(NamedTuple):
    """What is filled: ``indptr`` int64[n + 1], ``indices`` and ``edge_ids`` int32[m] or int64[m]; without IDs int32[0]."""

    indptr: Ints
    indices: NDArray[Any]
    edge_ids: NDArray[Any]


class Relabeling(NamedTuple):
    """Rows as they were and their new IDs.

    ``edge_ids`` is empty where there are none. ``old_rows``: [n], the row that becomes row r; ``new_ids``: [n], what a
    neighbour's ID becomes. Both int32 or both int64.
    """

    indptr: Ints
    indices: Ids
    edge_ids: Ids
    old_rows: Ids
    new_ids: Ids


class ScatteredKeys(NamedTuple):
    """Keys (uint64[m]) less ``low``, chunk after chunk: of a chunk, bucket b holds those with ``key >> shift == b``.

    ``payload``: what travels along, int32[m] or int64[m], or empty. Chunk c begins at ``chunk_at[c]`` (int64[chunks]), and in
    it bucket b is [starts[c, b], starts[c, b + 1]) (int32[chunks, buckets + 2]).
    """

    low: int
    keys: NDArray[np.uint64]
    payload: Ids
    chunk_at: Ints
    starts: NDArray[np.int32]


class Kernels(Protocol):
    """The kernels of a device. A call is single-threaded; threads may make several at once. Twins agree bit for bit.

    Callers allocate what is returned in their arrays, have them contiguous, and check what the kernels trust: that IDs and rows
    are in range and sizes fit. Only what is named a position of a fault is looked for here. Every sort is stable.

    Other devices than the CPU may fail in a call, with an error of theirs. Then the call can be made again elsewhere: what is
    added to or moved on (``counts``, ``starts``, ``cursors``, the first number of an ``indptr``), and what is sorted where it
    lies (``sort_records``, ``sort_rows``), is as it was; what the call was to fill may hold anything; nothing else changed.
    """

    # ---- count

    def find_limits(self, ids: Ids) -> tuple[int, int]:
        """Return the lowest and the highest ID of int32[n] or int64[n], (0, -1) where there is none."""

    def count_ids(self, ids: Ids, counts: NDArray[Any]) -> int:
        """Add the number of times that each ID (int32[k] or int64[k]) occurs to ``counts`` (uint32[n] or int64[n]).

        Returns -1, or the position of the first ID outside [0, n); then counting ends there.
        """

    def order_descending(self, values: Ints, order: Ints, spare: Ints) -> Ints:
        """Put the positions of ``values`` (int64[n], at least 0) in the order of descending values, ties ascending.

        ``order`` and ``spare``: int64[n], overwritten. Returns the one that holds the result.
        """

    def has_repeats(self, counts: Ints, others: Ids) -> bool:
        """Return whether a row has two equal neighbours side by side; ``counts`` (int64[n]) are the lengths of the rows."""

    # ---- scatter

    def start_buckets(self, rows: Sequence[Ids], shift: int, starts: NDArray[np.uint32]) -> None:
        """Count the rows of all pieces in buckets of 2^``shift``: ``starts[b + 1]`` (uint32[buckets + 2]) is where b begins.

        Scattering moves it to the bucket's end, where b + 1 begins: in the end, bucket b is [starts[b], starts[b + 1]).
        """

    def scatter_edges(
        self,
        rows: Ids,
        others: Ids,
        packing: Packing,
        shift: int,
        starts: NDArray[np.uint32],
        records: Records,
        first: int,
        ids: Ids | None = None,
        more: Records | None = None,
    ) -> None:
        """Pack edges into ``records`` (uint64[n, words]), bucket after bucket, in the order given within a bucket.

        ``rows`` and ``others``: integers [k] that fit the packing. Edge IDs are ``ids`` (integers [k]), None: they count from
        ``first`` on; ``more`` (uint64[k, j]) are the words behind.
        """

    def scatter_entries(
        self,
        indptr: Ints,
        columns: Ids,
        first: int,
        packing: Packing,
        shift: int,
        starts: NDArray[np.uint32],
        records: Records,
        ids: Ids | None = None,
    ) -> None:
        """Scatter entries [first, first + k) of rows to buckets of their ``columns`` ([k]), as ``scatter_edges`` does.

        The other end of an entry is the row of ``indptr`` (int64[n + 1]) in which it stands. Without ``ids`` they count from 0.
        """

    def unpack_edges(
        self, records: Records, packing: Packing, shift: int, starts: NDArray[Any], owners: Ids, others: Ids, ids: Ids
    ) -> None:
        """Take records apart that lie in buckets [starts[b], starts[b + 1]), the first of which begins with row 0."""

    def gather_edges(
        self, records: Records, packing: Packing, shift: int, starts: NDArray[Any], owners: Ids, others: Ids
    ) -> None:
        """Write the ends of edges whose IDs are 0 to n - 1 in the order of these: what ``scatter_edges`` was given."""

    # ---- sort and place

    def count_rows(self, records: Records, packing: Packing, shift: int, low: int, counts: Ints) -> None:
        """Add the records of each row of a bucket to ``counts`` (int64[k]), which begin with its row ``low``."""

    def sort_records(self, records: Records, word: int, low: int, high: int) -> Records:
        """Return records in the order of the bits [low, high) of a word; the argument is overwritten."""

    def place_edges(
        self,
        segments: Segments,
        first: int,
        stop: int,
        rows: Rows,
        *,
        most: int,
        most_ids: int,
        at: int = 0,
        low: int = 0,
        sort_bits: int | None = None,
        arrival: Ints | None = None,
        position: Ints | None = None,
    ) -> None:
        """Put the records of buckets [first, stop) in the order of their rows, in a row in the order of segments.

        ``rows.indptr`` is that of these rows alone, its first number stays; entries are written from ``at`` on. Of a single
        bucket there may be the rows from ``low`` on alone. With ``sort_bits``, those of the highest neighbour, neighbours
        ascend. ``most`` are the records of the largest bucket; edge IDs are below ``most_ids``. Without ``sort_bits``,
        ``arrival`` and ``position`` (int64[records]) are filled with each record's edge ID and place.
        """

    # ---- sort keys

    def scatter_keys(
        self,
        keys: NDArray[np.uint64],
        first: int,
        low: int,
        shift: int,
        scattered: NDArray[np.uint64],
        payload: Ids,
        starts: NDArray[np.int32],
    ) -> None:
        """Scatter a chunk of ``keys`` (uint64[n]) less ``low`` to ``scattered`` (uint64[n]), in input order within a bucket.

        A key's bucket is what remains of it, less ``low``, without its ``shift`` low bits. Differences are those of 64 bits
        without a sign: with the lowest of them as ``low``, bits of int64 are sorted, too. ``payload``: int32[n] or int64[n], is
        set to the keys' positions, ``first``, ``first`` + 1 …; or empty. ``starts``: int32[buckets + 2], as in
        ``ScatteredKeys``; its last number is n, too.
        """

    def sort_buckets(
        self, scattered: ScatteredKeys, buckets: Sequence[int], offsets: Ints, keys: NDArray[np.uint64], payload: Ids
    ) -> None:
        """Fill ``keys`` with those of some buckets, ascending in a bucket, ``low`` added, and ``payload`` with what goes along.

        ``keys``: uint64[m], ``payload``: [m] or empty, as in ``scattered``; bucket b is [offsets[b], offsets[b + 1])
        (int64[buckets + 1]) of them. As much as the largest bucket is held beside.
        """

    def gather_bucket(self, scattered: ScatteredKeys, bucket: int, keys: NDArray[np.uint64], payload: Ids) -> None:
        """Fill ``keys`` (uint64[k]) and ``payload`` ([k] or empty) with a bucket's as they were scattered, less ``low``."""

    def first_of_runs(self, keys: NDArray[np.uint64], before: int | None, firsts: Ints) -> int:
        """Write the positions at which a key differs from the one before into ``firsts`` (int64[n]); return how many.

        ``before`` is the key in front of the first, None: there is none.
        """

    # ---- relabel

    def invert(self, order: Ids, inverse: Ids) -> None:
        """Set ``inverse[order[i]] = i``."""

    def relabel_ids(self, ids: Ids, new_ids: Ids, out: Ids) -> int:
        """Write the new ID of every ID to ``out``: [k] all, int32 or int64; ``new_ids`` is by old ID.

        Returns -1, or the position of the first ID that has none; then nothing is written from there on.
        """

    def fill_lengths(self, indptr: Ints, old_rows: Ids, new_indptr: Ints) -> None:
        """Set ``new_indptr`` to that of the rows ``indptr`` in their new order."""

    def relabel_rows(self, old: Relabeling, first: int, stop: int, new: Rows) -> None:
        """Fill new rows [first, stop), neighbours in the order they had. ``new.indptr`` is there already."""

    def relabel_sorted_rows(self, old: Relabeling, runs: Ints, num_others: int, num_ids: int, new: Rows) -> None:
        """Fill new rows like ``relabel_rows``, neighbours, all below ``num_others``, ascending; equal ones keep their order.

        Rows [runs[i, 0], runs[i, 1]) are sorted at a time; four times their output is held. ``num_ids``: edge IDs are below.
        """

    # ---- gather

    def copy_blocks(self, values: NDArray[Any], starts: Ints, stops: Ints, out: NDArray[Any]) -> None:
        """Copy blocks of rows [start, stop), one behind the other: arrays of one dtype and item shape."""

    def count_blocks(self, first: int, stop: int, bounds: Ints, buckets: NDArray[np.int32], counts: Ints) -> None:
        """Add the number of items of [first, stop) in each bucket to ``counts``; see ``scatter_blocks``."""

    def scatter_blocks(
        self,
        values: NDArray[Any],
        first: int,
        bounds: Ints,
        buckets: NDArray[np.int32],
        cursors: Ints,
        out: NDArray[Any],
    ) -> None:
        """Copy consecutive items to their rows' buckets, inside a bucket in the order in which they stand.

        ``values``: items [first, first + k) of an array whose row r owns the items [bounds[r], bounds[r + 1]); ``bounds``:
        int64[r + 1] of the rows that these items belong to; ``buckets``: int32[r]; ``cursors``: int64[buckets], where each
        begins in ``out``, moved on. ``out``: as ``values``.
        """

    def sort_rows(self, values: Ids, bounds: Ints, inner: Ids, spare_values: Ids, spare_inner: Ids) -> None:
        """Sort each row's values, ascending, and tell where each stood in its row.

        ``values``: int32[m] or int64[m], at least 0; ``bounds``: int64[n + 1], from 0 to m; ``inner``: int32[m] or int64[m],
        the position inside its row where each value stood. The spares are as long as the longest row or longer.
        """

    # ---- generate: docs/generate.md defines every bit; a draw is 64 bits of the stream of ``key`` (below 2^64)

    def fill_draws(self, key: int, first: int, size: int, out: Ints, add: int = 0) -> None:
        """Fill ``out`` (int64[k]) with numbers in [add, add + size), of draws ``first`` on; ``size`` is at most 2^32."""

    def rmat_edges(
        self,
        key: int,
        first: int,
        scale: int,
        limits: NDArray[np.uint64],
        rounds: NDArray[np.uint64] | None,
        src: Ints,
        dst: Ints,
    ) -> None:
        """Fill ``src`` and ``dst`` (int64[k]) with the R-MAT edges from ``first`` on.

        There are 2^scale nodes, ``scale`` at most 60. ``limits``: uint64[3], a, a + b and a + b + c in 2^-20. ``rounds``:
        uint64[8], an odd factor and a summand each, which label the nodes as Graph500 does; None: they keep their numbers.
        Source: Chakrabarti, Zhan, Faloutsos, R-MAT (2004).
        """

    def grid_edges(self, first: int, stop: int, rows: int, cols: int, torus: bool, src: Ints, dst: Ints) -> int:
        """Fill ``src`` and ``dst`` with the edges that leave nodes [first, stop) of a grid, and return their number.

        Both int64, with room for four edges a node: to the node above, left, right and below, where there is one. With
        ``torus`` there always is.
        """

    def first_edge(self, key: int, user: int, num_edges: int, num_users: int) -> int:
        """Return the first edge that leaves ``user`` or a later one; ``key`` is that of the sources."""

    def user_edges(
        self, keys: NDArray[np.uint64], first: int, num_edges: int, counts: Ints, src: Ints, relation: Ints, dst: Ints
    ) -> None:
        """Fill ``src``, ``relation`` and ``dst`` (int64[k]) with the edges from ``first`` on.

        Relation 0 follows a user, 1 buys an item. ``keys``: uint64[3], of the streams of sources, relations and destinations.
        ``first`` begins a user's edges, and the last one ends a user's. ``counts``: int64[2], users and items; ``dst`` counts
        within its type. A user's edges ascend by relation, then by destination.
        """
