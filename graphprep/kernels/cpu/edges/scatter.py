"""Edges to records in buckets of rows, and back. The caller allocates; the jitted functions fill.

Source: radix partitioning (Polychroniou and Ross 2014), propagation blocking (Beamer et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.edges import Packing

_U = np.uint64
_NO_IDS = np.zeros(0, np.uint64)
_NO_WORDS = np.zeros((0, 0), np.uint64)


def start_buckets(rows: Sequence[Any], shift: int, starts: Any) -> None:
    """See ``Kernels.start_buckets``."""
    starts[:] = 0
    for some in rows:
        _count(some, shift, starts)
    np.cumsum(starts, dtype=np.uint32, out=starts)


def scatter_edges(
    rows: Any,
    others: Any,
    packing: Packing,
    shift: int,
    starts: Any,
    records: Any,
    first: int,
    ids: Any = None,
    more: Any = None,
) -> None:
    """See ``Kernels.scatter_edges``."""
    ids = _NO_IDS if ids is None else ids
    where = (first, shift, packing.other_bits, packing.id_bits, starts)
    if packing.words == 1:
        _scatter(rows, others, ids, *where, records.reshape(-1))
    else:
        _scatter_words(rows, others, ids, _NO_WORDS if more is None else more, *where, records)


def scatter_entries(
    indptr: Any, columns: Any, first: int, packing: Packing, shift: int, starts: Any, records: Any, ids: Any = None
) -> None:
    """See ``Kernels.scatter_entries``."""
    row = int(np.searchsorted(indptr, first, "right")) - 1
    where = (first, row, shift, packing.other_bits, packing.id_bits, starts, records)
    _scatter_entries(indptr, columns, _NO_IDS if ids is None else ids, *where)


def unpack_edges(records: Any, packing: Packing, shift: int, starts: Any, owners: Any, others: Any, ids: Any) -> None:
    """See ``Kernels.unpack_edges``."""
    local_bits = min(shift, packing.row_bits)
    _unpack(records, packing.other_bits, packing.id_bits, shift, local_bits, starts, owners, others, ids)


def gather_edges(records: Any, packing: Packing, shift: int, starts: Any, owners: Any, others: Any) -> None:
    """See ``Kernels.gather_edges``."""
    local_bits = min(shift, packing.row_bits)
    _gather(records.reshape(-1), packing.other_bits, packing.id_bits, shift, local_bits, starts, owners, others)


@njit(cache=True, nogil=True)
def _count(rows, shift, starts):
    for i in range(rows.size):
        starts[(_U(rows[i]) >> _U(shift)) + _U(2)] += 1


@njit(cache=True, nogil=True)
def _scatter(rows, others, ids, first, shift, other_bits, id_bits, starts, words):
    id_mask = (_U(1) << _U(id_bits)) - _U(1)
    has_ids = ids.size > 0
    for i in range(rows.size):
        row = _U(rows[i])
        bucket = (row >> _U(shift)) + _U(1)
        at = starts[bucket]
        starts[bucket] = at + 1
        number = _U(ids[i]) if has_ids else _U(first + i)
        pair = (row << _U(other_bits)) | _U(others[i])
        words[_U(at)] = (pair << _U(id_bits)) | (number & id_mask)


@njit(cache=True, nogil=True)
def _scatter_entries(indptr, columns, ids, first, row, shift, other_bits, id_bits, starts, records):
    id_mask = (_U(1) << _U(id_bits)) - _U(1)
    has_ids, is_apart = ids.size > 0, records.shape[1] > 1
    begin = 0
    while begin < columns.size:
        stop = min(indptr[row + 1] - first, columns.size)
        other = _U(row)
        for i in range(begin, stop):
            column = _U(columns[_U(i)])
            bucket = (column >> _U(shift)) + _U(1)
            at = _U(starts[bucket])
            starts[bucket] += 1
            number = _U(ids[_U(i)]) if has_ids else _U(i)
            records[at, 0] = (((column << _U(other_bits)) | other) << _U(id_bits)) | (number & id_mask)
            if is_apart:
                records[at, 1] = number
        begin = stop
        row += 1


@njit(cache=True, nogil=True)
def _scatter_words(rows, others, ids, more, first, shift, other_bits, id_bits, starts, records):
    id_mask = (_U(1) << _U(id_bits)) - _U(1)
    for i in range(rows.size):
        row = _U(rows[i])
        bucket = (row >> _U(shift)) + _U(1)
        at = _U(starts[bucket])
        starts[bucket] += 1
        number = _U(ids[i]) if ids.size else _U(first + i)
        pair = (row << _U(other_bits)) | _U(others[i])
        records[at, 0] = (pair << _U(id_bits)) | (number & id_mask)
        word = 1
        if id_bits == 0:
            records[at, 1] = number
            word = 2
        for k in range(more.shape[1]):
            records[at, word + k] = more[i, k]


@njit(cache=True, nogil=True)
def _unpack(records, other_bits, id_bits, shift, local_bits, starts, owners, others, ids):
    row_shift = _U(other_bits + id_bits)
    row_mask = (_U(1) << _U(local_bits)) - _U(1)
    other_mask = (_U(1) << _U(other_bits)) - _U(1)
    id_mask = (_U(1) << _U(id_bits)) - _U(1)
    for bucket in range(starts.size - 1):
        first_row = _U(bucket) << _U(shift)
        for i in range(starts[bucket], starts[bucket + 1]):
            word = records[i, 0]
            owners[i] = first_row | ((word >> row_shift) & row_mask)
            others[i] = (word >> _U(id_bits)) & other_mask
            ids[i] = word & id_mask if id_bits > 0 else records[i, 1]


@njit(cache=True, nogil=True)
def _gather(words, other_bits, id_bits, shift, local_bits, starts, owners, others):
    row_shift = _U(other_bits + id_bits)
    row_mask = (_U(1) << _U(local_bits)) - _U(1)
    other_mask = (_U(1) << _U(other_bits)) - _U(1)
    id_mask = (_U(1) << _U(id_bits)) - _U(1)
    for bucket in range(starts.size - 1):
        first_row = _U(bucket) << _U(shift)
        for i in range(starts[bucket], starts[bucket + 1]):
            word = words[i]
            edge = word & id_mask
            owners[edge] = first_row | ((word >> row_shift) & row_mask)
            others[edge] = (word >> _U(id_bits)) & other_mask
