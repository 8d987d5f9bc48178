"""Deal edges to buckets of consecutive rows, a chunk at a time. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.model.dataclass import dataclass

_BUCKET_BITS = 16  # of 64 k edges and rows each: their records, cursors and output fit L2
_MOST_BUCKETS_BITS = 10  # beyond 1024 streams of stores the partition falls off the cache
_RECORD_BITS = 64


@dataclass(frozen=True)
class Packing:
    """How the edges of a bucket are packed: a record of 64 bits holds, from the top, local row, neighbour and edge ID.

    A bucket is ``2**row_bits`` consecutive rows. A record has these low bits of a row's number, and those above them that
    fit: who reads it masks them. ``id_bits`` 0: there is no edge ID in a record; ``apart``: IDs, of type ``id_dtype``, are in
    an array beside the records, since they do not fit.
    """

    row_bits: int
    num_buckets: int
    other_bits: int
    id_bits: int = 0
    apart: bool = False
    id_dtype: type[np.int32] | type[np.int64] = np.int32


def plan_packing(
    num_rows: int, num_others: int, num_edges: int, *, edge_ids: bool, num_ids: int | None = None
) -> Packing | None:
    """Choose buckets and bits for edges of ``num_rows`` rows with neighbours below ``num_others``.

    ``edge_ids``: each edge has an ID, below ``num_ids`` (None: ``num_edges``). Returns None where not even row and neighbour
    fit 64 bits.
    """
    row_bits = max(0, bits_below(num_rows) - plan_bucket_bits(max(num_rows, num_edges)))
    other_bits = bits_below(num_others)
    free_bits = _RECORD_BITS - other_bits
    if row_bits > free_bits:
        row_bits = max(free_bits, bits_below(num_rows) - _MOST_BUCKETS_BITS)
    if max(1, row_bits) > free_bits:  # no processor shifts by 64
        return None
    num_buckets = (max(0, num_rows - 1) >> row_bits) + 1
    most_ids = num_edges if num_ids is None else num_ids
    id_bits = max(1, bits_below(most_ids)) if edge_ids else 0
    apart = max(1, row_bits) + other_bits + id_bits > _RECORD_BITS
    return Packing(
        row_bits, num_buckets, other_bits, 0 if apart else id_bits, apart, np.int32 if most_ids <= 2**31 else np.int64
    )


def plan_bucket_bits(most: int) -> int:
    """Return the logarithm of how many buckets to have: ``most`` is the number of rows or of edges, whichever is higher."""
    return min(_MOST_BUCKETS_BITS, max(0, bits_below(most) - _BUCKET_BITS))


def bits_below(count: int) -> int:
    """Return how many bits the integers 0..count-1 need."""
    return max(0, count - 1).bit_length()


def as_input(array: NDArray[Any]) -> NDArray[Any]:
    """Return an aligned, contiguous, read-only view (a copy where it must be): kernels compile once for all inputs."""
    view = np.require(array, requirements=["C", "A"]).view()
    view.flags.writeable = False
    return view


def find_limits(ids: NDArray[Any]) -> tuple[int, int]:
    """Return the lowest and the highest ID of int32[n] or int64[n], (0, -1) where there is none."""
    low, high = _limits(ids)
    return int(low), int(high)


def deal_pairs(
    rows: NDArray[Any],
    others: NDArray[Any],
    first_id: int,
    packing: Packing,
    records: NDArray[np.uint64],
    ids: NDArray[Any],
    starts: NDArray[np.int32],
) -> None:
    """Pack a chunk of edges into ``records``, bucket after bucket, in input order within a bucket.

    ``rows`` and ``others``: int32[n] both or int64[n] both, n < 2^31, from ``as_input``, below the packing's limits. The ID
    of edge i is ``first_id + i``. ``ids``: [n] where the packing keeps IDs apart, else empty. ``starts``:
    int32[num_buckets + 2]; bucket b becomes ``records[starts[b]:starts[b + 1]]``.
    """
    count_buckets(rows, packing.row_bits, starts)
    if packing.apart:
        _deal_apart(rows, others, first_id, packing.row_bits, packing.other_bits, records, ids, starts)
    elif packing.id_bits:
        _deal_with_ids(rows, others, first_id, packing.row_bits, packing.other_bits, packing.id_bits, records, starts)
    else:
        _deal(rows, others, packing.row_bits, packing.other_bits, records, starts)


@njit(cache=True, nogil=True)
def _limits(ids):
    low = np.int64(0)
    high = np.int64(-1)
    if ids.size:
        low = high = np.int64(ids[0])
    for i in range(ids.size):
        low = min(low, np.int64(ids[i]))
        high = max(high, np.int64(ids[i]))
    return low, high


@njit(cache=True, nogil=True)
def count_buckets(rows, row_bits, starts):
    """Set ``starts[b + 1]`` to the start of bucket b: dealing moves it to the bucket's end, which is the start of b + 1."""
    starts[:] = 0
    shift = np.uint64(row_bits)
    for i in range(rows.size):
        starts[(np.uint64(rows[i]) >> shift) + np.uint64(2)] += 1
    for bucket in range(2, starts.size):
        starts[bucket] += starts[bucket - 1]


@njit(cache=True, nogil=True)
def _deal(rows, others, row_bits, other_bits, records, starts):
    shift, width = np.uint64(row_bits), np.uint64(other_bits)
    for i in range(rows.size):
        row = np.uint64(rows[i])
        bucket = (row >> shift) + np.uint64(1)
        at = starts[bucket]
        starts[bucket] = at + 1
        records[np.uint64(at)] = (row << width) | np.uint64(others[i])


@njit(cache=True, nogil=True)
def _deal_with_ids(rows, others, first_id, row_bits, other_bits, id_bits, records, starts):
    shift, width, id_width = np.uint64(row_bits), np.uint64(other_bits), np.uint64(id_bits)
    for i in range(rows.size):
        row = np.uint64(rows[i])
        bucket = (row >> shift) + np.uint64(1)
        at = starts[bucket]
        starts[bucket] = at + 1
        pair = (row << width) | np.uint64(others[i])
        records[np.uint64(at)] = (pair << id_width) | np.uint64(first_id + i)


@njit(cache=True, nogil=True)
def _deal_apart(rows, others, first_id, row_bits, other_bits, records, ids, starts):
    shift, width = np.uint64(row_bits), np.uint64(other_bits)
    for i in range(rows.size):
        row = np.uint64(rows[i])
        bucket = (row >> shift) + np.uint64(1)
        at = starts[bucket]
        starts[bucket] = at + 1
        records[np.uint64(at)] = (row << width) | np.uint64(others[i])
        ids[np.uint64(at)] = first_id + i
