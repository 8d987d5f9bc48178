"""Build rows from dealt edges, a bucket at a time: counting sorts in cache. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.edges.partition import Packing
from graphprep.model.dataclass import dataclass

_MOST_DIGIT_BITS = 12  # 4096 cursors of 4 bytes: half of L1, and as many open lines fit L2


@dataclass(frozen=True)
class Dealt:
    """Edges as ``deal_pairs`` left them, chunk after chunk.

    ``chunk_at``: int64[chunks], where a chunk's records begin; ``starts``: int32[chunks, num_buckets + 2], see there.
    """

    packing: Packing
    records: NDArray[np.uint64]
    ids: NDArray[Any]
    chunk_at: NDArray[np.int64]
    starts: NDArray[np.int32]

    def bucket_sizes(self) -> NDArray[np.int64]:
        """Count the edges of every bucket: int64[num_buckets]."""
        return np.diff(self.starts[:, :-1].astype(np.int64).sum(axis=0))


@dataclass(frozen=True)
class Rows:
    """What is filled: ``indptr`` int64[n + 1], ``indices`` and ``edge_ids`` int32[m] or int64[m]; without IDs int32[0]."""

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    edge_ids: NDArray[Any]


def plan_digits(num_bits: int, num_records: int) -> tuple[int, int]:
    """Return (digits, bits of each) to sort by the ``num_bits`` of a neighbour: no more cursors than records need."""
    most = min(_MOST_DIGIT_BITS, max(4, num_records.bit_length() - 2))
    digits = max(1, -(-num_bits // most))
    return digits, max(1, -(-num_bits // digits))


def build_rows(dealt: Dealt, first: int, stop: int, at: int, rows: Rows) -> None:
    """Build buckets [first, stop): neighbours in input order. ``at`` is the position of the first one's edges in the output."""
    packing = dealt.packing
    _build(
        dealt.records,
        dealt.ids,
        dealt.chunk_at,
        dealt.starts,
        first,
        stop,
        at,
        packing.row_bits,
        packing.other_bits,
        packing.id_bits,
        rows.indptr,
        rows.indices,
        rows.edge_ids,
    )


def build_sorted_rows(dealt: Dealt, first: int, stop: int, at: int, rows: Rows, most: int, sort_bits: int) -> None:
    """Build buckets [first, stop) like ``build_rows``, neighbours ascending; equal ones stay in input order.

    ``most`` is the size of the largest of these buckets: twice its records are held. ``sort_bits``: those of the highest
    neighbour.
    """
    packing = dealt.packing
    digits, digit_bits = plan_digits(sort_bits, most)
    counts = np.empty((digits, 1 << digit_bits), np.int32 if most < 2**31 else np.int64)
    scratch = np.empty((2, most), np.uint64)
    scratch_ids = np.empty((2, most if packing.apart else 0), dealt.ids.dtype)
    _build_sorted(
        dealt.records,
        dealt.ids,
        dealt.chunk_at,
        dealt.starts,
        first,
        stop,
        at,
        packing.row_bits,
        packing.other_bits,
        packing.id_bits,
        digit_bits,
        counts,
        scratch,
        scratch_ids,
        rows.indptr,
        rows.indices,
        rows.edge_ids,
    )


@njit(cache=True, nogil=True)
def _count_rows(records, chunk_at, starts, bucket, row_shift, row_mask, cursors):
    """Count the edges of each row of a bucket."""
    for chunk in range(chunk_at.size):
        begin = chunk_at[chunk] + starts[chunk, bucket]
        end = chunk_at[chunk] + starts[chunk, bucket + 1]
        for i in range(begin, end):
            cursors[(records[i] >> row_shift) & row_mask] += 1


@njit(cache=True, nogil=True)
def to_starts(cursors, at):
    """Turn counts into starts from ``at`` on; returns the end."""
    for row in range(cursors.size):
        count = cursors[row]
        cursors[row] = at
        at += count
    return at


@njit(cache=True, nogil=True)
def _build(records, ids, chunk_at, starts, first, stop, at, row_bits, other_bits, id_bits, indptr, indices, edge_ids):
    """Use ``indptr[row + 1]`` as cursor of a row: it ends where the next row starts."""
    id_shift = np.uint64(id_bits)
    row_shift = np.uint64(other_bits + id_bits)
    row_mask = (np.uint64(1) << np.uint64(row_bits)) - np.uint64(1)
    other_mask = (np.uint64(1) << np.uint64(other_bits)) - np.uint64(1)
    id_mask = (np.uint64(1) << id_shift) - np.uint64(1)
    has_ids = id_bits > 0
    is_apart = ids.size > 0
    for bucket in range(first, stop):
        first_row = bucket << row_bits
        cursors = indptr[first_row + 1 : min(first_row + (1 << row_bits), indptr.size - 1) + 1]
        cursors[:] = 0
        _count_rows(records, chunk_at, starts, bucket, row_shift, row_mask, cursors)
        at = to_starts(cursors, at)
        for chunk in range(chunk_at.size):
            begin = chunk_at[chunk] + starts[chunk, bucket]
            end = chunk_at[chunk] + starts[chunk, bucket + 1]
            for i in range(begin, end):
                record = records[i]
                row = (record >> row_shift) & row_mask
                to = cursors[row]
                cursors[row] = to + 1
                indices[np.uint64(to)] = (record >> id_shift) & other_mask
                if has_ids:
                    edge_ids[np.uint64(to)] = record & id_mask
                elif is_apart:
                    edge_ids[np.uint64(to)] = ids[i]


@njit(cache=True, nogil=True)
def _count_rows_and_digit(records, chunk_at, starts, bucket, row_shift, row_mask, id_shift, digit_mask, cursors, counts):
    """Count rows, and the lowest digits of neighbours, of a bucket. Returns the number of edges."""
    size = 0
    for chunk in range(chunk_at.size):
        begin = chunk_at[chunk] + starts[chunk, bucket]
        end = chunk_at[chunk] + starts[chunk, bucket + 1]
        size += end - begin
        for i in range(begin, end):
            record = records[i]
            cursors[(record >> row_shift) & row_mask] += 1
            counts[(record >> id_shift) & digit_mask] += 1
    return size


@njit(cache=True, nogil=True)
def _gather(records, ids, chunk_at, starts, bucket, shift, mask, counts, digit, next_shift, new_records, new_ids):
    """Move a bucket's edges from all chunks to the cursors of their lowest digit; see ``scatter_by_digit``."""
    is_apart = ids.size > 0
    has_next = digit + 1 < counts.shape[0]
    cursors = counts[digit]
    next_counts = counts[digit + 1 if has_next else digit]
    for chunk in range(chunk_at.size):
        begin = chunk_at[chunk] + starts[chunk, bucket]
        end = chunk_at[chunk] + starts[chunk, bucket + 1]
        for i in range(begin, end):
            record = records[i]
            key = (record >> shift) & mask
            to = cursors[key]
            cursors[key] = to + 1
            new_records[np.uint64(to)] = record
            if is_apart:
                new_ids[np.uint64(to)] = ids[i]
            if has_next:
                next_counts[(record >> next_shift) & mask] += 1


@njit(cache=True, nogil=True)
def _build_sorted(
    records,
    ids,
    chunk_at,
    starts,
    first,
    stop,
    at,
    row_bits,
    other_bits,
    id_bits,
    digit_bits,
    counts,
    scratch,
    scratch_ids,
    indptr,
    indices,
    edge_ids,
):
    """Sort a bucket by the digits of its neighbours, the lowest first, then by row: each step keeps the order before it.

    The highest digit may reach into the row: records of a row lie together in the end, so that does no harm.
    """
    id_shift = np.uint64(id_bits)
    row_shift = np.uint64(other_bits + id_bits)
    row_mask = (np.uint64(1) << np.uint64(row_bits)) - np.uint64(1)
    digit_mask = (np.uint64(1) << np.uint64(digit_bits)) - np.uint64(1)
    num_digits = counts.shape[0]
    for bucket in range(first, stop):
        first_row = bucket << row_bits
        cursors = indptr[first_row + 1 : min(first_row + (1 << row_bits), indptr.size - 1) + 1]
        cursors[:] = 0
        counts[:] = 0
        size = _count_rows_and_digit(
            records, chunk_at, starts, bucket, row_shift, row_mask, id_shift, digit_mask, cursors, counts[0]
        )
        at = to_starts(cursors, at)
        now = 0
        shift = id_shift
        for digit in range(num_digits):
            to_starts(counts[digit], 0)
            next_shift = shift + np.uint64(digit_bits)
            if digit == 0:
                _gather(
                    records,
                    ids,
                    chunk_at,
                    starts,
                    bucket,
                    shift,
                    digit_mask,
                    counts,
                    digit,
                    next_shift,
                    scratch[0],
                    scratch_ids[0],
                )
            else:
                scatter_by_digit(
                    scratch[now],
                    scratch_ids[now],
                    size,
                    shift,
                    digit_mask,
                    counts,
                    digit,
                    next_shift,
                    scratch[1 - now],
                    scratch_ids[1 - now],
                )
                now = 1 - now
            shift = next_shift
        scatter_to_rows(
            scratch[now], scratch_ids[now], size, row_shift, row_mask, other_bits, id_bits, cursors, indices, edge_ids
        )


@njit(cache=True, nogil=True)
def scatter_by_digit(records, ids, size, shift, mask, counts, digit, next_shift, new_records, new_ids):
    """Move ``size`` records, and their IDs where they have some, to the cursors of a digit, in order: the sort is stable.

    ``counts``: the cursors of each digit; those of the next one, which lies at ``next_shift``, are counted on the way.
    """
    is_apart = ids.size > 0
    has_next = digit + 1 < counts.shape[0]
    cursors = counts[digit]
    next_counts = counts[digit + 1 if has_next else digit]
    for i in range(size):
        record = records[i]
        key = (record >> shift) & mask
        to = cursors[key]
        cursors[key] = to + 1
        new_records[np.uint64(to)] = record
        if is_apart:
            new_ids[np.uint64(to)] = ids[i]
        if has_next:
            next_counts[(record >> next_shift) & mask] += 1


@njit(cache=True, nogil=True)
def scatter_to_rows(records, ids, size, row_shift, row_mask, other_bits, id_bits, cursors, indices, edge_ids):
    """Unpack ``size`` records to the cursors of their rows, in order."""
    id_shift = np.uint64(id_bits)
    other_mask = (np.uint64(1) << np.uint64(other_bits)) - np.uint64(1)
    id_mask = (np.uint64(1) << id_shift) - np.uint64(1)
    has_ids = id_bits > 0
    is_apart = ids.size > 0
    for i in range(size):
        record = records[i]
        row = (record >> row_shift) & row_mask
        to = cursors[row]
        cursors[row] = to + 1
        indices[np.uint64(to)] = (record >> id_shift) & other_mask
        if has_ids:
            edge_ids[np.uint64(to)] = record & id_mask
        elif is_apart:
            edge_ids[np.uint64(to)] = ids[i]
