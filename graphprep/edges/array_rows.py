"""Scatter edges in memory to buckets, and build rows of them, on threads that share nothing they write."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.budget import default_threads
from graphprep.engine.local import map_ordered
from graphprep.kernels.edges import WORD_BITS, Kernels, Packing, Rows, Segments, bits_below, pack_bits
from graphprep.model.buffers import hold_buffers
from graphprep.model.errors import DataError, UsageError

Ints = NDArray[Any]
Words = NDArray[np.uint64]
Item = TypeVar("Item")

CHUNK = 1 << 19  # edges scattered at a time: long runs in every bucket, and few chunks to gather them from
_BUCKET_BITS = 16  # of 64 k edges and rows each: their records, cursors and output fit L2
_MOST_BUCKETS_BITS = 10  # beyond 1024 streams of stores the partition falls off the cache
_RECORD_BITS = WORD_BITS
_TASKS = 16  # for each thread: even loads, few calls


def count_threads(threads: int | None) -> int:
    """Return how many threads to use: as many as there are cores where none are given. Raises UsageError."""
    if threads is None:
        return default_threads()
    if threads < 1:
        raise UsageError(f"threads must be at least 1, found {threads}", fix="leave it out to use all cores")
    return threads


def run_tasks(fn: Callable[[Item], object], items: Iterable[Item], threads: int) -> None:
    """Call ``fn`` for every item, on threads."""
    todo = list(items)
    for _ in map_ordered(fn, todo, min(threads, len(todo)), window=len(todo)):
        pass


def even_pieces(offsets: NDArray[np.int64], threads: int, step: int = 1) -> list[tuple[int, int]]:
    """Cut items of ``step`` rows into runs [first, stop) of about the same work, the largest first.

    ``offsets``: int64[n + 1], the edges before each item. A row costs work of its own: where most are empty, edges alone would
    leave them to one thread. One item may be far larger than the others: nobody should wait for it in the end.
    """
    count = offsets.size - 1

    def work(item: int) -> int:
        return int(offsets[item]) + item * step

    pieces = threads * _TASKS
    cuts = [bisect.bisect_left(range(count), work(count) * cut // pieces, key=work) for cut in range(1, pieces)]
    runs = [(first, stop) for first, stop in itertools.pairwise([0, *cuts, count]) if first < stop]
    return sorted(runs, key=lambda run: work(run[0]) - work(run[1]))


def count_parts(low: int, high: int, num_parts: int | None) -> int:
    """Return how many partitions there are, items in ``low`` to ``high``. Raises DataError for one out of range."""
    count = high + 1 if num_parts is None else num_parts
    if low < 0 or high >= count:
        fix = "count partitions from 0" if low < 0 else "raise num_parts"
        raise DataError(f"parts: expected partitions below {count}, found {low if low < 0 else high}", fix=fix)
    return count


def index_dtype(count: int) -> type[np.int32] | type[np.int64]:
    """Return the type of indices below ``count``."""
    return np.int32 if count <= 2**31 else np.int64


@dataclass(frozen=True)
class RecordPlan:
    """How edges become records: packed so, in so many buckets of 2^``shift`` rows. ``num_ids``: edge IDs are below, 0: none."""

    packing: Packing
    shift: int
    num_buckets: int
    num_ids: int

    def num_words(self, num_edges: int) -> int:
        """Return how many words the records of edges take."""
        return num_edges * self.packing.words


def plan_records(num_rows: int, num_others: int, num_edges: int, num_ids: int = 0, *, count_up: bool = True) -> RecordPlan:
    """Choose buckets and bits for edges of ``num_rows`` rows with neighbours below ``num_others``.

    Edge IDs are below ``num_ids``, 0: there are none; those that ``count_up`` are numbers within their chunk. Raises DataError
    where not even row and neighbour fit a word.
    """
    other_bits, row_bits = max(1, bits_below(num_others)), bits_below(num_rows)
    shift = max(0, row_bits - plan_bucket_bits(max(num_rows, num_edges)))
    if shift > _RECORD_BITS - other_bits:
        shift = max(_RECORD_BITS - other_bits, row_bits - _MOST_BUCKETS_BITS)
    if max(1, shift) > _RECORD_BITS - other_bits:  # no processor shifts by 64
        raise DataError(
            f"IDs of {num_rows} rows and {num_others} neighbors are too wide to build rows of",
            fix="give nodes IDs without gaps first, with graphprep.rank_ids",
        )
    id_bits = max(1, bits_below(min(num_ids, CHUNK) if count_up else num_ids)) if num_ids else 0
    is_apart = max(1, shift) + other_bits + id_bits > _RECORD_BITS
    packing = Packing(other_bits, 0, ("id",)) if is_apart else Packing(other_bits, id_bits)
    return RecordPlan(packing, shift, (max(0, num_rows - 1) >> shift) + 1, num_ids)


def plan_bucket_bits(most: int) -> int:
    """Return the logarithm of how many buckets to have: ``most`` is the number of rows or of edges, whichever is higher."""
    return min(_MOST_BUCKETS_BITS, max(0, bits_below(most) - _BUCKET_BITS))


def scatter_edges(kernels: Kernels, rows: Ints, others: Ints, plan: RecordPlan, words: Words, threads: int) -> Segments:
    """Scatter edges to buckets of rows, into ``words``. ``rows`` and ``others`` come from ``as_input``; IDs are positions."""

    def scatter(at: slice, starts: NDArray[np.uint32], records: Words) -> None:
        kernels.start_buckets([rows[at]], plan.shift, starts)
        kernels.scatter_edges(rows[at], others[at], plan.packing, plan.shift, starts, records, 0)

    return _scatter_chunks(rows.size, scatter, plan, words, threads, count_up=True)


def scatter_entries(
    kernels: Kernels, indptr: NDArray[np.int64], indices: Ints, edge_ids: Ints, plan: RecordPlan, words: Words, threads: int
) -> Segments:
    """Scatter the entries of rows to buckets of columns, into ``words``. Arrays come from ``as_input``.

    The IDs of the entries are ``edge_ids``; where these are empty, their positions.
    """

    def scatter(at: slice, starts: NDArray[np.uint32], records: Words) -> None:
        kernels.start_buckets([indices[at]], plan.shift, starts)
        ids = edge_ids[at] if edge_ids.size else None
        kernels.scatter_entries(indptr, indices[at], at.start, plan.packing, plan.shift, starts, records, ids)

    return _scatter_chunks(indices.size, scatter, plan, words, threads, count_up=not edge_ids.size)


def _scatter_chunks(
    num_edges: int,
    scatter: Callable[[slice, NDArray[np.uint32], Words], None],
    plan: RecordPlan,
    words: Words,
    threads: int,
    *,
    count_up: bool,
) -> Segments:
    """Scatter edges, a chunk at a time."""
    packing, firsts = plan.packing, np.arange(0, num_edges, CHUNK)
    starts = np.empty((firsts.size, plan.num_buckets + 2), np.uint32)
    records = words.reshape(-1, packing.words)

    def run(chunk: int) -> None:
        at = slice(chunk * CHUNK, min((chunk + 1) * CHUNK, num_edges))
        scatter(at, starts[chunk], records[at])

    run_tasks(run, range(firsts.size), threads)
    return segments_of(words, packing.words * firsts, starts, firsts * count_up, plan)


def segments_of(
    words: Words, offsets: NDArray[np.int64], starts: NDArray[Any], bases: NDArray[np.int64], plan: RecordPlan
) -> Segments:
    """Return what lies in one buffer as segments."""
    numbers, packings = np.zeros(offsets.size, np.int64), pack_bits(plan.packing, offsets.size)
    return Segments(hold_buffers([words]), numbers, offsets, starts, bases, packings, plan.shift)


def build_rows(
    kernels: Kernels,
    segments: Segments,
    plan: RecordPlan,
    num_rows: int,
    num_others: int,
    *,
    sort_neighbors: bool,
    threads: int,
) -> Rows:
    """Build the rows of scattered edges."""
    sizes = segments.sizes(0, plan.num_buckets)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    total = int(offsets[-1])
    ids = np.empty(total if plan.num_ids else 0, index_dtype(plan.num_ids))
    rows = Rows(np.empty(num_rows + 1, np.int64), np.empty(total, index_dtype(num_others)), ids)
    rows.indptr[0] = 0

    def build(piece: tuple[int, int]) -> None:
        first, stop = piece
        indptr = rows.indptr[first << plan.shift : min(stop << plan.shift, num_rows) + 1]
        kernels.place_edges(
            segments,
            first,
            stop,
            Rows(indptr, rows.indices, rows.edge_ids),
            at=int(offsets[first]),
            most=int(sizes[first:stop].max()),
            most_ids=plan.num_ids,
            sort_bits=bits_below(num_others) if sort_neighbors else None,
        )

    run_tasks(build, even_pieces(offsets, threads, 1 << plan.shift), threads)
    return rows
