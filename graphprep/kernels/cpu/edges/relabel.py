"""Rebuild rows under new IDs, and sort rows. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.edges.coo import Rows, plan_digits, scatter_by_digit, scatter_to_rows, to_starts
from graphprep.model.dataclass import dataclass


@dataclass(frozen=True)
class Relabeling:
    """Rows as they were (arrays from ``as_input``) and their new IDs.

    ``edge_ids`` is empty where there are none. ``old_rows``: [n], the row that becomes row r; ``new_ids``: [n], what a
    neighbour's ID becomes. Both int32 or both int64.
    """

    indptr: NDArray[np.int64]
    indices: NDArray[Any]
    edge_ids: NDArray[Any]
    old_rows: NDArray[Any]
    new_ids: NDArray[Any]


def invert(order: NDArray[Any], inverse: NDArray[Any]) -> None:
    """Set ``inverse[order[i]] = i``."""
    _invert(order, inverse)


def relabel_rows(old: Relabeling, first: int, stop: int, new: Rows) -> None:
    """Fill new rows [first, stop), neighbours in the order they had. ``new.indptr`` is there already."""
    _relabel(
        old.indptr,
        old.indices,
        old.edge_ids,
        old.old_rows,
        old.new_ids,
        first,
        stop,
        new.indptr,
        new.indices,
        new.edge_ids,
    )


class SortedRelabel:
    """Fills new rows like ``relabel_rows``, neighbours ascending; equal ones keep their order. For one thread.

    ``num_others``: neighbours' IDs are below. ``id_bits``: bits of edge IDs, where they fit records beside row and neighbour;
    else 0. ``most_edges`` and ``most_rows``: of one call; holds four times the output of that many edges.
    """

    def __init__(self, old: Relabeling, num_others: int, id_bits: int, most_edges: int, most_rows: int) -> None:
        self._old = old
        self._other_bits = max(0, num_others - 1).bit_length()
        self._id_bits = id_bits
        digits, self._digit_bits = plan_digits(self._other_bits, most_edges)
        self._counts = np.empty((digits, 1 << self._digit_bits), np.int32 if most_edges < 2**31 else np.int64)
        self._scratch = np.empty((2, most_edges), np.uint64)
        is_apart = old.edge_ids.size > 0 and not id_bits
        self._scratch_ids = np.empty((2, most_edges if is_apart else 0), old.edge_ids.dtype)
        self._cursors = np.empty(most_rows, np.int64)

    def fill(self, first: int, stop: int, new: Rows) -> None:
        """Fill new rows [first, stop). ``new.indptr`` is there already."""
        old = self._old
        _relabel_sorted(
            old.indptr,
            old.indices,
            old.edge_ids,
            old.old_rows,
            old.new_ids,
            first,
            stop,
            self._other_bits,
            self._id_bits,
            self._digit_bits,
            self._counts,
            self._scratch,
            self._scratch_ids,
            self._cursors,
            new.indptr,
            new.indices,
            new.edge_ids,
        )


@njit(cache=True, nogil=True)
def _invert(order, inverse):
    for i in range(order.size):
        inverse[np.uint64(order[i])] = i


@njit(cache=True, nogil=True)
def fill_lengths(indptr, old_rows, new_indptr):
    """Set ``new_indptr`` to that of the rows ``indptr`` in their new order."""
    at = np.int64(0)
    new_indptr[0] = 0
    for row in range(old_rows.size):
        old = np.uint64(old_rows[row])
        at += indptr[old + np.uint64(1)] - indptr[old]
        new_indptr[row + 1] = at


@njit(cache=True, nogil=True)
def _relabel(indptr, indices, edge_ids, old_rows, new_ids, first, stop, new_indptr, new_indices, new_edge_ids):
    has_ids = edge_ids.size > 0
    for row in range(first, stop):
        old = np.uint64(old_rows[row])
        begin = indptr[old]
        to = new_indptr[row]
        size = new_indptr[row + 1] - to
        for i in range(size):
            new_indices[np.uint64(to + i)] = new_ids[np.uint64(indices[np.uint64(begin + i)])]
        if has_ids:
            for i in range(size):
                new_edge_ids[np.uint64(to + i)] = edge_ids[np.uint64(begin + i)]


@njit(cache=True, nogil=True)
def _gather(indptr, indices, edge_ids, old_rows, new_ids, first, stop, other_bits, id_bits, records, ids):
    """Gather records of (row, new neighbour, edge ID): nothing else, so that many loads are under way. Returns their number."""
    id_shift = np.uint64(id_bits)
    is_apart = ids.size > 0
    at = 0
    for row in range(first, stop):
        old = np.uint64(old_rows[row])
        begin = indptr[old]
        size = indptr[old + np.uint64(1)] - begin
        high = np.uint64(row - first) << np.uint64(other_bits)
        for i in range(size):
            other = np.uint64(new_ids[np.uint64(indices[np.uint64(begin + i)])])
            records[np.uint64(at + i)] = (high | other) << id_shift
        if is_apart:
            for i in range(size):
                ids[np.uint64(at + i)] = edge_ids[np.uint64(begin + i)]
        elif id_bits > 0:
            for i in range(size):
                records[np.uint64(at + i)] |= np.uint64(edge_ids[np.uint64(begin + i)])
        at += size
    return at


@njit(cache=True, nogil=True)
def _relabel_sorted(
    indptr,
    indices,
    edge_ids,
    old_rows,
    new_ids,
    first,
    stop,
    other_bits,
    id_bits,
    digit_bits,
    counts,
    scratch,
    scratch_ids,
    cursors,
    new_indptr,
    new_indices,
    new_edge_ids,
):
    """Gather records, sort them by the neighbour's digits, deal them to their rows."""
    id_shift = np.uint64(id_bits)
    row_shift = np.uint64(other_bits + id_bits)
    mask = (np.uint64(1) << np.uint64(digit_bits)) - np.uint64(1)
    width = np.uint64(digit_bits)
    num_digits = counts.shape[0]
    now = num_digits & 1  # so that the last digit leaves the records in scratch[0]
    size = _gather(
        indptr,
        indices,
        edge_ids,
        old_rows,
        new_ids,
        first,
        stop,
        other_bits,
        id_bits,
        scratch[now],
        scratch_ids[now],
    )
    for row in range(first, stop):
        cursors[row - first] = new_indptr[row]
    counts[:] = 0
    for i in range(size):
        counts[0, (scratch[now, i] >> id_shift) & mask] += 1
    shift = id_shift
    for digit in range(num_digits):
        to_starts(counts[digit], 0)
        next_shift = shift + width
        scatter_by_digit(
            scratch[now],
            scratch_ids[now],
            size,
            shift,
            mask,
            counts,
            digit,
            next_shift,
            scratch[1 - now],
            scratch_ids[1 - now],
        )
        now = 1 - now
        shift = next_shift
    scatter_to_rows(
        scratch[0], scratch_ids[0], size, row_shift, ~np.uint64(0), other_bits, id_bits, cursors, new_indices, new_edge_ids
    )
