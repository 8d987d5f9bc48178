"""Deal the entries of rows to buckets of columns, for a transpose. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.edges.partition import Packing, count_buckets


def deal_columns(
    indptr: NDArray[np.int64],
    indices: NDArray[Any],
    edge_ids: NDArray[Any],
    first: int,
    stop: int,
    packing: Packing,
    records: NDArray[np.uint64],
    ids: NDArray[Any],
    starts: NDArray[np.int32],
) -> None:
    """Pack entries [first, stop) of rows into ``records``, bucket after bucket of columns, rows ascending within a bucket.

    ``indptr`` int64[n + 1] and ``indices`` int32[m] or int64[m] from ``as_input``; ``edge_ids``: [m] the ID of each entry,
    empty: its position. ``records``, ``ids`` and ``starts`` are those of ``deal_pairs``, of stop - first entries.
    """
    columns = indices[first:stop]
    count_buckets(columns, packing.row_bits, starts)
    row = int(np.searchsorted(indptr, first, "right")) - 1
    _deal(
        indptr,
        columns,
        edge_ids,
        first,
        row,
        packing.row_bits,
        packing.other_bits,
        packing.id_bits,
        packing.apart,
        records,
        ids,
        starts,
    )


@njit(cache=True, nogil=True)
def _deal(indptr, columns, edge_ids, first, row, row_bits, other_bits, id_bits, is_apart, records, ids, starts):
    """Walk the rows; an entry's column is its record's row. Three loops, so that each has only what it needs."""
    shift, width, id_width = np.uint64(row_bits), np.uint64(other_bits), np.uint64(id_bits)
    has_ids = edge_ids.size > 0
    packs_ids = id_bits > 0
    at = first
    stop = first + columns.size
    while at < stop:
        end = min(indptr[row + 1], stop)
        other = np.uint64(row)
        if not packs_ids and not is_apart:
            for entry in range(at, end):
                column = np.uint64(columns[np.uint64(entry - first)])
                bucket = (column >> shift) + np.uint64(1)
                to = starts[bucket]
                starts[bucket] = to + 1
                records[np.uint64(to)] = (column << width) | other
        else:
            for entry in range(at, end):
                column = np.uint64(columns[np.uint64(entry - first)])
                bucket = (column >> shift) + np.uint64(1)
                to = starts[bucket]
                starts[bucket] = to + 1
                number = np.int64(edge_ids[np.uint64(entry)]) if has_ids else entry
                pair = (column << width) | other
                if packs_ids:
                    records[np.uint64(to)] = (pair << id_width) | np.uint64(number)
                else:
                    records[np.uint64(to)] = pair
                    ids[np.uint64(to)] = number
        at = end
        row += 1
