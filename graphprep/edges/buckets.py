"""Rows in buckets of consecutive ones: how they are cut, how few wait for more, and edges as records on their way between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.edges import Kernels, Packing, bits_below
from graphprep.model.errors import DataError
from graphprep.storage.spill.records import RecordPiece, RecordRuns
from graphprep.storage.spill.runs import SpillPool

Ints = NDArray[np.int64]
Words = NDArray[Any]  # uint32 or uint64
ROW_BYTES = 8  # what building holds for each row of a bucket, whether it has edges or not
_MOST_HELD_BYTES = 8 << 20  # beyond that, scattering what was held back misses the cache: twice the time
LEAST_SCATTERED = 1 << 15  # fewer edges wait for others: each segment costs some numbers for every bucket
_LEAST_ID_BITS = 16  # with fewer, too few edges could be packed at a time


class BucketPlan(NamedTuple):
    """How a type's rows are cut: bucket b holds rows [b * 2^shift, (b + 1) * 2^shift)."""

    num_rows: int
    shift: int

    @property
    def num_buckets(self) -> int:
        """Return the number of buckets, at least one."""
        return max(1, -(-self.num_rows >> self.shift))

    def bounds(self, bucket: int) -> tuple[int, int]:
        """Return the rows [low, high) of a bucket."""
        return bucket << self.shift, min((bucket + 1) << self.shift, self.num_rows)

    def split(self, rows: Ints) -> Iterator[tuple[int, Ints | None]]:
        """Yield (bucket, positions in ``rows``) for every bucket that occurs; None stands for all positions."""
        if self.num_buckets == 1 or not rows.size:
            yield 0, None
            return
        buckets = rows >> self.shift
        if buckets[0] == buckets[-1] and (buckets == buckets[0]).all():
            yield int(buckets[0]), None
            return
        indptr, order = group_by_key(buckets, self.num_buckets)
        for bucket in np.flatnonzero(np.diff(indptr)):
            yield int(bucket), order[indptr[bucket] : indptr[bucket + 1]]


def plan_buckets(num_rows: int, num_bytes: int, bucket_bytes: int, most: int = 1024) -> BucketPlan:
    """Cut rows so that their data, if spread evenly, takes at most ``bucket_bytes`` a bucket.

    At most 1024 buckets: beyond that scattered writes cost more than a second pass over the few that are too big.
    """
    wanted = max(1, min(most, -(-num_bytes // max(1, bucket_bytes)), max(1, num_rows)))
    shift = (max(1, num_rows) // wanted).bit_length() - 1 if wanted > 1 else max(0, num_rows - 1).bit_length()
    plan = BucketPlan(num_rows, shift)
    return plan if plan.num_buckets <= most else BucketPlan(num_rows, shift + 1)


class HoldsBack(Protocol):
    """What holds rows back until there are enough of them."""

    def flush(self) -> None:
        """Scatter them."""


class WriteBuffer:
    """What scatterers hold back, together: at most about ``cap_bytes``."""

    def __init__(self, cap_bytes: int) -> None:
        self.cap_bytes = cap_bytes
        self.held_bytes = 0
        self.scatterers: list[HoldsBack] = []

    @staticmethod
    def cap_of(bucket_bytes: int) -> int:
        """Return what is held back at most where buckets take ``bucket_bytes``."""
        return min(bucket_bytes, _MOST_HELD_BYTES)

    def hold(self, num_bytes: int) -> None:
        """Count bytes that are held back; scatter everything where it is too much."""
        self.held_bytes += num_bytes
        if self.held_bytes > self.cap_bytes:
            self.clear()

    def clear(self) -> None:
        """Scatter all that is held back."""
        for scatterer in self.scatterers:
            scatterer.flush()
        self.held_bytes = 0


class EdgeRows(NamedTuple):
    """Edges of one type, one after another: owners and other ends of one dtype, uint32 or uint64, and what goes with them.

    ``ids`` are their edge IDs (uint64); an int is the first of IDs that count up. ``keys`` (uint64) are those of the neighbour
    order, ``edge_rows`` (int64) the places in the primary layout; None where there are none.
    """

    owners: Words
    others: Words
    ids: int | NDArray[np.uint64] = 0
    keys: NDArray[np.uint64] | None = None
    edge_rows: Ints | None = None

    @property
    def travels(self) -> tuple[str, ...]:
        """Name what the edges carry."""
        return ("key",) * (self.keys is not None) + ("edge_row",) * (self.edge_rows is not None)

    @property
    def num_bytes(self) -> int:
        """Return the size in bytes."""
        return self.owners.nbytes * 2 + self.owners.size * (8 * len(self.travels) + 8)

    def words(self) -> NDArray[np.uint64] | None:
        """Return what the edges carry as words of their records: uint64[n, k]."""
        carried = [self.keys, None if self.edge_rows is None else self.edge_rows.view(np.uint64)]
        columns = [one for one in carried if one is not None]
        return np.column_stack(columns) if columns else None


class ScatteredRows(NamedTuple):
    """Edges of one type in the order of their buckets: ``offsets`` are the borders of these. Edge IDs count from ``base``."""

    records: NDArray[np.uint64]
    offsets: NDArray[np.uint32]
    packing: Packing


def scatter_all(
    kernels: Kernels,
    ends: Sequence[tuple[Words, Words]],
    packing: Packing,
    shift: int,
    num_buckets: int,
    ids: Sequence[Any] | None = None,
    more: Sequence[Any] | None = None,
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Scatter pieces (owners, others) to buckets of 2^``shift`` owners, in order within a bucket.

    Edge IDs count from 0, on from piece to piece, unless ``ids`` has them; ``more`` are the words behind. Returns (records
    uint64[n, words], borders of the buckets uint32[num_buckets + 1]).
    """
    starts = np.empty(num_buckets + 2, np.uint32)
    owners_of = list(map(itemgetter(0), ends))
    kernels.start_buckets(owners_of, shift, starts)
    records = np.empty((sum(map(len, owners_of)), packing.words), np.uint64)
    first = 0
    for number, (owners, others) in enumerate(ends):
        their = (None if ids is None else ids[number], None if more is None else more[number])
        kernels.scatter_edges(owners, others, packing, shift, starts, records, first, *their)
        first += owners.size
    return records, starts[:-1]


def scatter_rows(kernels: Kernels, pieces: Sequence[EdgeRows], plan: BucketPlan, num_others: int) -> ScatteredRows:
    """Scatter edges that carry the same and whose IDs, where they count up, go on from piece to piece.

    Other ends are below ``num_others``. Raises DataError where rows and other ends are too many for a word.
    """
    other_bits = max(1, bits_below(num_others))
    first = pieces[0]
    ends, ids, size, highest = [], [], 0, 0
    for piece in pieces:
        ends.append((piece.owners, piece.others))
        ids.append(piece.ids)
        size += piece.owners.size
        highest = size - 1 if isinstance(piece.ids, int) else max(highest, int(piece.ids.max(initial=0)))
    id_bits = 64 - max(1, plan.shift) - other_bits
    if id_bits < 0:
        raise DataError(f"{plan.num_rows} rows and {num_others} neighbors are too many to build rows of")
    apart = id_bits < _LEAST_ID_BITS or highest >> id_bits
    packing = Packing(other_bits, 0, ("id", *first.travels)) if apart else Packing(other_bits, id_bits, first.travels)
    stated = None if isinstance(first.ids, int) else ids
    more = list(map(EdgeRows.words, pieces)) if first.travels else None
    return ScatteredRows(*scatter_all(kernels, ends, packing, plan.shift, plan.num_buckets, stated, more), packing)


class EdgeBuckets:
    """Takes edges of one type, in the order in which they are to lie within a bucket."""

    def __init__(
        self,
        kernels: Kernels,
        pool: SpillPool,
        plan: BucketPlan,
        write_buffer: WriteBuffer,
        num_others: int,
        runs: RecordRuns | None = None,
    ) -> None:
        """Take edges, whose other ends are below ``num_others``, to ``runs`` (None: to new ones), which may hold some."""
        self.kernels = kernels
        self.plan = plan
        self.num_others = num_others
        self.runs = RecordRuns(pool, plan.num_buckets) if runs is None else runs
        self.dtype = np.dtype(np.uint32 if max(plan.num_rows, num_others) <= 2**32 else np.uint64)
        self._write_buffer = write_buffer
        self._held: list[EdgeRows] = []
        write_buffer.scatterers.append(self)

    def add(self, edges: EdgeRows) -> None:
        """Take edges; few of them wait for more."""
        if not edges.owners.size:
            return
        if self._held and not self._goes_on(self._held[-1], edges):
            self.flush()
        self._held.append(edges)
        self._write_buffer.hold(edges.num_bytes)

    def add_scattered(self, scattered: ScatteredRows, first_id: int) -> None:
        """Take edges that were scattered; their edge IDs count from ``first_id``."""
        self.flush()
        self.runs.append(scattered.records, scattered.offsets, first_id, scattered.packing)

    def flush(self) -> None:
        """Scatter what was held back."""
        held, self._held = self._held, []
        if held:
            scattered, first = scatter_rows(self.kernels, held, self.plan, self.num_others), held[0].ids
            self.runs.append(scattered.records, scattered.offsets, first if isinstance(first, int) else 0, scattered.packing)

    @staticmethod
    def _goes_on(last: EdgeRows, edges: EdgeRows) -> bool:
        if last.travels != edges.travels or isinstance(last.ids, int) != isinstance(edges.ids, int):
            return False
        return not isinstance(last.ids, int) or last.ids + last.owners.size == edges.ids


class EdgeFields(NamedTuple):
    """The fields of some records, as arrays; None where they carry no such thing."""

    owners: Words
    others: Words
    ids: NDArray[np.uint64]
    keys: NDArray[np.uint64] | None
    edge_rows: Ints | None

    def take(self, chosen: Any) -> EdgeFields:
        """Return some edges."""
        keys = None if self.keys is None else self.keys[chosen]
        edge_rows = None if self.edge_rows is None else self.edge_rows[chosen]
        return EdgeFields(self.owners[chosen], self.others[chosen], self.ids[chosen], keys, edge_rows)


def fields_of(
    kernels: Kernels, piece: RecordPiece, shift: int, first_row: int, dtype: Any, missing_key: int | None
) -> EdgeFields:
    """Take records of a bucket of 2^``shift`` rows from ``first_row`` on apart, with ends of ``dtype``.

    Without keys of their own they get ``missing_key`` (None: none).
    """
    records, packing = piece.records, piece.layout
    assert isinstance(packing, Packing)
    size = len(records)
    owners, others, ids = np.empty(size, dtype), np.empty(size, dtype), np.empty(size, np.uint64)
    kernels.unpack_edges(records, packing, shift, np.array([0, size]), owners, others, ids)
    owners += dtype.type(first_row)
    ids += np.repeat(piece.bases, np.diff(piece.starts)).view(np.uint64)
    keys = records[:, packing.word("key")] if "key" in packing.travels else None
    if keys is None and missing_key is not None:
        keys = np.full(size, missing_key, np.uint64)
    edge_rows = records[:, packing.word("edge_row")].view(np.int64) if "edge_row" in packing.travels else None
    return EdgeFields(owners, others, ids, keys, edge_rows)


def join_fields(parts: Iterator[EdgeFields], *, keyed: bool, with_rows: bool) -> EdgeFields:
    """Put edges one after another."""
    every = list(parts)
    none = np.zeros(0, np.uint64)
    return EdgeFields(
        np.concatenate([none.astype(np.uint32), *(part.owners for part in every)]) if every else none,
        np.concatenate([part.others for part in every]) if every else none,
        np.concatenate([part.ids for part in every]) if every else none,
        (np.concatenate([part.keys for part in every if part.keys is not None]) if every else none) if keyed else None,
        (np.concatenate([part.edge_rows for part in every if part.edge_rows is not None]) if every else none.view(np.int64))
        if with_rows
        else None,
    )
