"""Edges to records in buckets of rows, and from there to the order of their rows.

Placing is a counting sort in cache, behind one by the digits of the other ends. The public functions allocate what they need
beside the output; the jitted ones fill what they are given. Source: radix partitioning (Polychroniou and Ross 2014),
propagation blocking (Beamer et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import load_word
from graphprep.kernels.edges import WORD_BITS, Packing, Rows, Segments

_MOST_DIGIT_BITS = 12  # 4096 cursors of 4 bytes: half of L1, and as many open lines fit L2
_SORT_DIGIT_BITS = 11
_WORD_BYTES = 8
_NO_IDS = np.zeros(0, np.uint64)
_NO_PLACES = np.zeros(0, np.int64)
_NO_WORDS = np.zeros((0, 0), np.uint64)
_U = np.uint64


# ---- edges to records, and back


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


# ---- records to rows


def plan_digits(num_bits: int, num_records: int) -> tuple[int, int]:
    """Return (digits, bits of each) to sort by the ``num_bits`` of a neighbour: no more cursors than records need."""
    most = min(_MOST_DIGIT_BITS, max(4, num_records.bit_length() - 2))
    digits = max(1, -(-num_bits // most))
    return digits, max(1, -(-num_bits // digits))


def sort_room(sort_bits: int | None, most: int, *, is_apart: bool) -> tuple[int, Any, Any, Any]:
    """Make room to sort ``most`` records by ``sort_bits`` of their other ends, None: not.

    Returns (digit bits, counts, words, apart), as ``sort_to_rows`` takes them.
    """
    digits, digit_bits = (0, 1) if sort_bits is None else plan_digits(sort_bits, most)
    counts = np.empty((digits, 1 << digit_bits), np.uint32 if most < 2**32 else np.uint64)
    slots = 2 if digits else 1
    return digit_bits, counts, np.empty((slots, most), np.uint64), np.empty((slots, most if is_apart else 0), np.uint64)


def place_edges(
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
    arrival: Any = None,
    position: Any = None,
) -> None:
    """See ``Kernels.place_edges``."""
    ats = segments.buffers.addresses[segments.numbers] + _WORD_BYTES * segments.offsets
    has_ids = rows.edge_ids.size > 0 or arrival is not None
    other_bits = int(segments.packings[:, 0].max(initial=1))
    row_bits = max(1, min(segments.shift, max(0, rows.indptr.size - 2).bit_length()))
    id_bits = max(1, (most_ids - 1).bit_length()) if has_ids else 0
    is_apart = has_ids and row_bits + other_bits + id_bits > WORD_BITS
    _place(
        ats,
        segments.starts,
        segments.bases,
        segments.packings,
        first,
        stop,
        segments.shift,
        low,
        at,
        other_bits,
        0 if is_apart else id_bits,
        *sort_room(sort_bits, most, is_apart=is_apart),
        rows.indptr,
        rows.indices,
        rows.edge_ids,
        _NO_PLACES if arrival is None else arrival,
        _NO_PLACES if position is None else position,
    )


def count_rows(records: Any, packing: Packing, shift: int, low: int, counts: Any) -> None:
    """See ``Kernels.count_rows``."""
    _count_rows(records, packing.other_bits + packing.id_bits, min(shift, packing.row_bits), low, counts)


@njit(cache=True, nogil=True)
def _count_rows(records, row_shift, local_bits, low, counts):
    row_mask = (_U(1) << _U(local_bits)) - _U(1)
    for i in range(records.shape[0]):
        row = np.int64((records[i, 0] >> _U(row_shift)) & row_mask) - low
        if 0 <= row < counts.size:
            counts[row] += 1


@njit(cache=True, nogil=True)
def _to_starts(cursors, at):
    """Turn counts into starts from ``at`` on; returns the end."""
    for row in range(cursors.size):
        count = cursors[row]
        cursors[row] = at
        at += np.int64(count)
    return at


@njit(cache=True, nogil=True)
def _place(
    ats,
    starts,
    bases,
    packings,
    first,
    stop,
    shift,
    low,
    to,
    other_bits,
    id_bits,
    digit_bits,
    counts,
    words,
    apart,
    indptr,
    others,
    ids,
    arrival,
    position,
):
    """Use ``indptr[row + 1]`` as cursor of a row: it ends where the next row starts."""
    done = 0
    for bucket in range(first, stop):
        first_row = (bucket - first) << shift
        cursors = indptr[first_row + 1 : min(first_row + (1 << shift), indptr.size - 1) + 1]
        cursors[:] = 0
        size = _collect(ats, starts, bases, packings, bucket, shift, low, other_bits, id_bits, words[0], apart[0], cursors)
        to = _to_starts(cursors, to)
        places = (arrival[done : done + size], position[done : done + size])
        sort_to_rows(size, other_bits, id_bits, digit_bits, counts, words, apart, cursors, others, ids, *places)
        done += size


@njit(cache=True, nogil=True)
def _collect(ats, starts, bases, packings, bucket, shift, low, other_bits, id_bits, words, apart, cursors):
    """Bring the records of a bucket together, packed alike, with rows from ``low`` on, and count these. Returns how many."""
    at = 0
    is_apart = apart.size > 0
    for k in range(ats.size):
        begin, size = np.int64(starts[k, bucket]), np.int64(starts[k, bucket + 1]) - np.int64(starts[k, bucket])
        if size == 0:
            continue
        other_shift, step = _U(packings[k, 1]), packings[k, 2] * _WORD_BYTES
        old_row_shift = _U(packings[k, 0]) + other_shift
        row_mask = (_U(1) << _U(min(shift, 64 - packings[k, 0] - packings[k, 1]))) - _U(1)
        other_mask = (_U(1) << _U(packings[k, 0])) - _U(1)
        id_mask = (_U(1) << other_shift) - _U(1)
        base = _U(bases[k])
        address = ats[k] + begin * step
        for i in range(size):
            word = load_word(address + i * step)
            row = ((word >> old_row_shift) & row_mask) - _U(low)
            cursors[row] += 1
            pair = (row << _U(other_bits)) | ((word >> other_shift) & other_mask)
            if is_apart:
                number = word & id_mask if other_shift > _U(0) else load_word(address + i * step + _WORD_BYTES)
                apart[_U(at + i)] = base + number
            elif id_bits > 0:
                number = word & id_mask if other_shift > _U(0) else load_word(address + i * step + _WORD_BYTES)
                pair = (pair << _U(id_bits)) | (base + number)
            words[_U(at + i)] = pair
        at += size
    return at


@njit(cache=True, nogil=True)
def sort_to_rows(size, other_bits, id_bits, digit_bits, counts, words, apart, cursors, others, ids, arrival, position):
    """Sort records by the digits of their other ends, the lowest first, then by row: each step keeps the order.

    They are the first ``size`` of ``words[0]``, and of ``apart[0]`` where IDs do not fit. The highest digit may reach into the
    row: records of a row lie together in the end, so that does no harm.
    """
    num_digits = counts.shape[0]
    now = 0
    if num_digits > 0:
        counts[:] = 0
        _count_digit(words[0], size, _U(id_bits), _U((1 << digit_bits) - 1), counts[0])
    for digit in range(num_digits):
        _to_starts(counts[digit], 0)
        shift = _U(id_bits + digit * digit_bits)
        _scatter_by_digit(words[now], apart[now], size, shift, digit_bits, counts, digit, words[1 - now], apart[1 - now])
        now = 1 - now
    row_shift = _U(other_bits + id_bits)
    _scatter_to_rows(words[now], apart[now], size, row_shift, other_bits, id_bits, cursors, others, ids, arrival, position)


@njit(cache=True, nogil=True)
def _count_digit(words, size, shift, mask, counts):
    for i in range(size):
        counts[(words[i] >> shift) & mask] += 1


@njit(cache=True, nogil=True)
def _scatter_by_digit(words, apart, size, shift, digit_bits, counts, digit, new_words, new_apart):
    """Move records to the cursors of a digit, in order: the sort is stable. Those of the next digit are counted on the way."""
    mask = (_U(1) << _U(digit_bits)) - _U(1)
    next_shift = shift + _U(digit_bits)
    is_apart = apart.size > 0
    has_next = digit + 1 < counts.shape[0]
    cursors = counts[digit]
    next_counts = counts[digit + 1 if has_next else digit]
    for i in range(size):
        word = words[i]
        key = (word >> shift) & mask
        to = cursors[key]
        cursors[key] = to + 1
        new_words[_U(to)] = word
        if is_apart:
            new_apart[_U(to)] = apart[i]
        if has_next:
            next_counts[(word >> next_shift) & mask] += 1


@njit(cache=True, nogil=True)
def _scatter_to_rows(words, apart, size, row_shift, other_bits, id_bits, cursors, others, ids, arrival, position):
    """Unpack records to the cursors of their rows, in order, and note each one's edge ID and place where that is wanted."""
    other_mask = (_U(1) << _U(other_bits)) - _U(1)
    id_mask = (_U(1) << _U(id_bits)) - _U(1)
    is_apart = apart.size > 0
    for i in range(size):
        word = words[i]
        row = word >> row_shift
        to = cursors[row]
        cursors[row] = to + 1
        others[_U(to)] = (word >> _U(id_bits)) & other_mask
        if ids.size > 0:
            ids[_U(to)] = apart[i] if is_apart else word & id_mask
        if position.size > 0:
            position[i] = to
            arrival[i] = apart[i] if is_apart else word & id_mask


def sort_records(records: Any, word: int, low: int, high: int) -> Any:
    """See ``Kernels.sort_records``."""
    more = np.empty_like(records)
    for shift in range(low, high if len(records) else low, _SORT_DIGIT_BITS):
        bits = min(_SORT_DIGIT_BITS, high - shift)
        cursors = np.zeros(1 << bits, np.int64)
        _count_digits(records, word, shift, cursors)
        if cursors.max() == len(records):
            continue
        _to_starts(cursors, 0)
        _scatter_digits(records, word, shift, cursors, more)
        records, more = more, records
    return records


@njit(cache=True, nogil=True)
def _count_digits(records, word, shift, counts):
    mask = _U(counts.size - 1)
    for i in range(records.shape[0]):
        counts[(records[i, word] >> _U(shift)) & mask] += 1


@njit(cache=True, nogil=True)
def _scatter_digits(records, word, shift, cursors, out):
    mask = _U(cursors.size - 1)
    words = records.shape[1]
    for i in range(records.shape[0]):
        digit = (records[i, word] >> _U(shift)) & mask
        at = cursors[digit]
        cursors[digit] = at + 1
        for k in range(words):
            out[at, k] = records[i, k]


def has_repeats(counts: Any, others: Any) -> bool:
    """See ``Kernels.has_repeats``."""
    return bool(_has_repeats(np.ascontiguousarray(counts), others))


@njit(cache=True, nogil=True)
def _has_repeats(counts, others):
    at = 0
    for row in range(counts.size):
        stop = at + counts[row]
        for i in range(at + 1, stop):
            if others[i] == others[i - 1]:
                return True
        at = stop
    return False
