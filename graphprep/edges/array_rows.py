"""Deal edges in memory to buckets, and build rows of them, on threads that share nothing they write."""

from __future__ import annotations

import bisect
import itertools
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.budget import default_threads
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.edges.coo import Dealt, Rows, build_rows, build_sorted_rows
from graphprep.kernels.cpu.edges.partition import Packing, bits_below, deal_pairs, plan_packing
from graphprep.kernels.cpu.edges.transpose import deal_columns
from graphprep.model.errors import DataError, UsageError

Ints = NDArray[Any]
Keys = NDArray[np.uint64]
Item = TypeVar("Item")

CHUNK = 1 << 19  # edges dealt at a time: long runs in every bucket, and few chunks to gather them from
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


def index_dtype(count: int) -> type[np.int32] | type[np.int64]:
    """Return the type of indices below ``count``."""
    return np.int32 if count <= 2**31 else np.int64


def deal_edges(
    rows: Ints, others: Ints, num_rows: int, num_others: int, records: Keys, *, edge_ids: bool, threads: int
) -> Dealt:
    """Deal edges to buckets of rows: into ``records``, one for each.

    ``rows`` and ``others`` come from ``as_input`` and are in range; IDs are positions.
    """
    packing = _plan(num_rows, num_others, rows.size, edge_ids=edge_ids)
    dealt = _room(packing, records)

    def deal(chunk: int) -> None:
        at = slice(chunk * CHUNK, (chunk + 1) * CHUNK)
        deal_pairs(rows[at], others[at], chunk * CHUNK, packing, dealt.records[at], _ids_at(dealt, at), dealt.starts[chunk])

    run_tasks(deal, range(len(dealt.starts)), threads)
    return dealt


def deal_entries(
    indptr: NDArray[np.int64],
    indices: Ints,
    edge_ids: Ints,
    num_columns: int,
    num_ids: int,
    records: Keys,
    *,
    carry: bool,
    threads: int,
) -> Dealt:
    """Deal the entries of rows to buckets of columns: into ``records``, one for each. Arrays come from ``as_input``.

    ``carry``: with ``edge_ids``, all below ``num_ids``, or, where these are empty, with positions.
    """
    packing = _plan(num_columns, indptr.size - 1, indices.size, num_ids=num_ids, edge_ids=carry)
    dealt = _room(packing, records)

    def deal(chunk: int) -> None:
        first, stop = chunk * CHUNK, min((chunk + 1) * CHUNK, indices.size)
        at = slice(first, stop)
        deal_columns(
            indptr, indices, edge_ids, first, stop, packing, dealt.records[at], _ids_at(dealt, at), dealt.starts[chunk]
        )

    run_tasks(deal, range(len(dealt.starts)), threads)
    return dealt


def build_dealt(
    dealt: Dealt, num_rows: int, num_others: int, *, num_ids: int | None, sort_neighbors: bool, threads: int
) -> Rows:
    """Build the rows of dealt edges. ``num_ids``: edge IDs are below; None: there are none."""
    sizes = dealt.bucket_sizes()
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    total = int(offsets[-1])
    ids = np.empty(0 if num_ids is None else total, index_dtype(num_ids or 0))
    rows = Rows(np.empty(num_rows + 1, np.int64), np.empty(total, index_dtype(num_others)), ids)
    rows.indptr[0] = 0

    def build(piece: tuple[int, int]) -> None:
        first, stop = piece
        if sort_neighbors:
            most = int(sizes[first:stop].max())
            build_sorted_rows(dealt, first, stop, int(offsets[first]), rows, most, bits_below(num_others))
        else:
            build_rows(dealt, first, stop, int(offsets[first]), rows)

    run_tasks(build, even_pieces(offsets, threads, 1 << dealt.packing.row_bits), threads)
    return rows


def _plan(num_rows: int, num_others: int, num_edges: int, *, edge_ids: bool, num_ids: int | None = None) -> Packing:
    packing = plan_packing(num_rows, num_others, num_edges, edge_ids=edge_ids, num_ids=num_ids)
    if packing is None:
        raise DataError(
            f"IDs of {num_rows} rows and {num_others} neighbors are too wide to build rows of",
            fix="give nodes IDs without gaps first, with graphprep.rank_ids",
        )
    return packing


def _room(packing: Packing, records: Keys) -> Dealt:
    """Make room for dealt edges, chunk after chunk."""
    num_edges = records.size
    num_chunks = -(-num_edges // CHUNK)
    ids = np.empty(num_edges if packing.apart else 0, packing.id_dtype)
    starts = np.empty((num_chunks, packing.num_buckets + 2), np.int32)
    return Dealt(packing, records, ids, np.arange(num_chunks, dtype=np.int64) * CHUNK, starts)


def _ids_at(dealt: Dealt, at: slice) -> Ints:
    return dealt.ids[at] if dealt.packing.apart else dealt.ids
