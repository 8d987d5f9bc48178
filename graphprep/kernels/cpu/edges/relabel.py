"""Rebuild rows under new IDs. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.edges.place import sort_room, sort_to_rows
from graphprep.kernels.edges import WORD_BITS, Relabeling, Rows, bits_below


def invert(order: NDArray[Any], inverse: NDArray[Any]) -> None:
    """See ``Kernels.invert``."""
    _invert(order, inverse)


def relabel_ids(ids: NDArray[Any], new_ids: NDArray[Any], out: NDArray[Any]) -> int:
    """See ``Kernels.relabel_ids``."""
    return int(_relabel_ids(ids, new_ids, out))


def fill_lengths(indptr: NDArray[np.int64], old_rows: NDArray[Any], new_indptr: NDArray[np.int64]) -> None:
    """See ``Kernels.fill_lengths``."""
    _fill_lengths(indptr, old_rows, new_indptr)


def relabel_rows(old: Relabeling, first: int, stop: int, new: Rows) -> None:
    """See ``Kernels.relabel_rows``."""
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


def relabel_sorted_rows(old: Relabeling, runs: NDArray[np.int64], num_others: int, num_ids: int, new: Rows) -> None:
    """See ``Kernels.relabel_sorted_rows``."""
    sizes = new.indptr[runs[:, 1]] - new.indptr[runs[:, 0]]
    most_rows = int((runs[:, 1] - runs[:, 0]).max())
    other_bits, id_bits = max(1, bits_below(num_others)), bits_below(num_ids)
    is_apart = max(1, bits_below(most_rows)) + other_bits + id_bits > WORD_BITS
    _relabel_sorted(
        old.indptr,
        old.indices,
        old.edge_ids,
        old.old_rows,
        old.new_ids,
        runs,
        other_bits,
        0 if is_apart else id_bits,
        *sort_room(other_bits, int(sizes.max()), is_apart=is_apart),
        np.empty(most_rows, np.int64),
        np.empty(0, np.int64),
        new.indptr,
        new.indices,
        new.edge_ids,
    )


@njit(cache=True, nogil=True)
def _invert(order, inverse):
    for i in range(order.size):
        inverse[np.uint64(order[i])] = i


@njit(cache=True, nogil=True)
def _relabel_ids(ids, new_ids, out):
    for i in range(ids.size):
        one = ids[i]
        if one < 0 or one >= new_ids.size:
            return i
        out[i] = new_ids[one]
    return -1


@njit(cache=True, nogil=True)
def _fill_lengths(indptr, old_rows, new_indptr):
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
def _relabel_sorted(
    indptr,
    indices,
    edge_ids,
    old_rows,
    new_ids,
    runs,
    other_bits,
    id_bits,
    digit_bits,
    counts,
    words,
    apart,
    cursors,
    none,
    new_indptr,
    new_indices,
    new_edge_ids,
):
    for run in range(runs.shape[0]):
        first, stop = runs[run, 0], runs[run, 1]
        arrays = (indptr, indices, edge_ids, old_rows, new_ids)
        size = _pack(*arrays, first, stop, other_bits, id_bits, words[0], apart[0])
        for row in range(first, stop):
            cursors[row - first] = new_indptr[row]
        room = (digit_bits, counts, words, apart, cursors)
        sort_to_rows(size, other_bits, id_bits, *room, new_indices, new_edge_ids, none, none)


@njit(cache=True, nogil=True)
def _pack(indptr, indices, edge_ids, old_rows, new_ids, first, stop, other_bits, id_bits, words, apart):
    """Pack the entries of rows: gather, and nothing else, so that many loads are under way. Returns their number."""
    is_apart = apart.size > 0
    at = 0
    for row in range(first, stop):
        old = np.uint64(old_rows[row])
        begin = indptr[old]
        size = indptr[old + np.uint64(1)] - begin
        high = np.uint64(row - first) << np.uint64(other_bits)
        for i in range(size):
            other = np.uint64(new_ids[np.uint64(indices[np.uint64(begin + i)])])
            words[np.uint64(at + i)] = (high | other) << np.uint64(id_bits)
        if is_apart:
            for i in range(size):
                apart[np.uint64(at + i)] = edge_ids[np.uint64(begin + i)]
        elif id_bits > 0:
            for i in range(size):
                words[np.uint64(at + i)] |= np.uint64(edge_ids[np.uint64(begin + i)])
        at += size
    return at
