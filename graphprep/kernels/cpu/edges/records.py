"""Edges as records of a few words: dealt out to buckets, and put in the order of their rows.

A record is a row of ``uint32[n, words]`` or ``uint64[n, words]``: owner row, other end, edge ID, then what travels along. One
array for all fields means one cache line for each bucket that is written to. Where the three take no more than 64 bits, they
are packed into one word: a third less to write and to read. The public functions allocate; the jitted ones fill what they are
given. Source: radix partitioning (Polychroniou and Ross 2014), propagation blocking (Beamer et al. 2017).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.model.dataclass import dataclass

OWNER, OTHER, EDGE_ID = 0, 1, 2
NUM_FIELDS = 3
_DIGIT_BITS = 11  # 2048 cursors fit L1
_LEAST_ID_BITS = 16  # with fewer, too few edges could be packed at a time
_U = np.uint64


@dataclass(frozen=True)
class Packing:
    """How a record is packed into uint64[n, 1]: low bits of the owner lowest, then the other end, then the edge ID.

    Of the owner there may be more bits than are needed to tell the rows of a bucket: those are the lowest ``local_bits``
    (None: all).
    """

    row_bits: int
    other_bits: int
    local_bits: int | None = None

    @property
    def mask(self) -> Any:
        """Return the bits of a record that tell the row within its bucket: uint64."""
        bits = self.row_bits if self.local_bits is None else min(self.row_bits, self.local_bits)
        return _U((1 << bits) - 1)

    @property
    def most_records(self) -> int:
        """Return how many edge IDs, counted from 0, there is room for."""
        return 1 << (64 - self.row_bits - self.other_bits)


def find_packing(shift: int, num_others: int) -> Packing | None:
    """Return how edges are packed whose buckets have 2^shift rows and whose other ends are below ``num_others``; None: not."""
    other_bits = max(1, (num_others - 1).bit_length())
    return Packing(shift, other_bits) if shift + other_bits + _LEAST_ID_BITS <= 64 else None


@dataclass(frozen=True)
class Block:
    """Records one segment after another: those of segment k lie in [starts[k], starts[k + 1]).

    ``bases[k]`` is to be added to their edge IDs, ``first_row`` to the owners of packed ones.
    """

    records: Any
    starts: Any
    bases: Any
    packing: Packing | None = None
    first_row: int = 0

    def edge_ids(self) -> Any:
        """Return the edge IDs of records that are not packed: int64[n]."""
        return self.records[:, EDGE_ID].astype(np.int64) + np.repeat(self.bases, np.diff(self.starts))

    def take(self, mask: Any) -> Block:
        """Return some of the records, which must not be packed."""
        counts = np.concatenate([np.zeros(1, np.int64), np.cumsum(mask)])
        return Block(self.records[mask], counts[self.starts], self.bases)

    def unpacked(self, dtype: Any) -> Block:
        """Return the same records with a word for each field."""
        if self.packing is None:
            return self
        records = np.empty((len(self.records), NUM_FIELDS), dtype)
        bits = self.packing
        _unpack(self.records[:, 0], bits.mask, bits.row_bits, bits.other_bits, self.first_row, records)
        return Block(records, self.starts, self.bases)


@njit(cache=True, nogil=True)
def _unpack(words, row_mask, row_bits, other_bits, first_row, records):
    other_mask = (np.uint64(1) << np.uint64(other_bits)) - np.uint64(1)
    for i in range(words.size):
        word = words[i]
        records[i, OWNER] = (word & row_mask) + np.uint64(first_row)
        records[i, OTHER] = (word >> np.uint64(row_bits)) & other_mask
        records[i, EDGE_ID] = word >> np.uint64(row_bits + other_bits)


def deal_packed(
    ends: Sequence[tuple[Any, Any]], packing: Packing, num_buckets: int, shift: int | None = None
) -> tuple[Any, Any]:
    """Deal out edges as ``deal_records`` does, packed; edge IDs count from 0. Returns (uint64[n, 1], offsets).

    Buckets have 2^``shift`` rows (None: as many as owners have bits).
    """
    shift = packing.row_bits if shift is None else shift
    offsets = np.zeros(num_buckets + 1, np.int64)
    for owners, _ in ends:
        _count_buckets(owners, shift, offsets)
    np.cumsum(offsets, out=offsets)
    cursors = offsets[:-1].copy()
    words = np.empty(int(offsets[-1]), np.uint64)
    first = 0
    for owners, others in ends:
        _deal_packed(owners, others, first, shift, packing.row_bits, packing.other_bits, cursors, words)
        first += owners.size
    return words.reshape(-1, 1), offsets


@njit(cache=True, nogil=True)
def _deal_packed(owners, others, first, shift, row_bits, other_bits, cursors, words):
    row_mask = (_U(1) << _U(row_bits)) - _U(1)
    for i in range(owners.size):
        owner = _U(owners[i])
        bucket = owner >> _U(shift)
        at = cursors[bucket]
        cursors[bucket] = at + 1
        high = (_U(first + i) << _U(other_bits)) | _U(others[i])
        words[_U(at)] = (high << _U(row_bits)) | (owner & row_mask)


def undeal_packed(words: Any, offsets: Any, packing: Packing, shift: int) -> tuple[Any, Any]:
    """Return the edges that ``deal_packed`` dealt out as they came: owners and others, uint32[n]."""
    owners, others = (np.empty(len(words), np.uint32) for _ in range(2))
    _undeal_packed(words[:, 0], offsets, shift, packing.row_bits, packing.other_bits, owners, others)
    return owners, others


@njit(cache=True, nogil=True)
def _undeal_packed(words, offsets, shift, row_bits, other_bits, owners, others):
    row_mask = (_U(1) << _U(min(shift, row_bits))) - _U(1)
    other_mask = (_U(1) << _U(other_bits)) - _U(1)
    for bucket in range(offsets.size - 1):
        first_row = _U(bucket) << _U(shift)
        for i in range(offsets[bucket], offsets[bucket + 1]):
            word = words[i]
            edge = word >> _U(row_bits + other_bits)
            owners[edge] = first_row | (word & row_mask)
            others[edge] = (word >> _U(row_bits)) & other_mask


def deal_records(ends: Sequence[tuple[Any, Any]], extra: Sequence[Any], ids: Any, shift: int, num_buckets: int) -> Any:
    """Deal edges out to buckets by the high bits of their owners; inside a bucket they keep their order.

    ``ends`` holds pieces (owners, others) of one dtype, uint32 or uint64; ``extra`` uint64 arrays that travel along, as long as
    all pieces together, two words each in uint32 records; ``ids`` (uint64) are the edge IDs, None: they count from 0. Bucket b
    holds the owners in [b << shift, (b + 1) << shift). Returns (records, offsets int64[num_buckets + 1]).
    """
    dtype = ends[0][0].dtype
    size = sum(owners.size for owners, _ in ends)
    words = NUM_FIELDS + len(extra) * (2 if dtype == np.uint32 else 1)
    offsets = np.zeros(num_buckets + 1, np.int64)
    for owners, _ in ends:
        _count_buckets(owners, shift, offsets)
    np.cumsum(offsets, out=offsets)
    cursors = offsets[:-1].copy()
    records = np.empty((size, words), dtype)
    first = 0
    for owners, others in ends:
        if extra or ids is not None:
            pick = slice(first, first + owners.size)
            more = np.column_stack([one[pick] for one in extra]) if extra else _NO_EXTRA
            _deal_all(owners, others, _NO_IDS if ids is None else ids[pick], more, first, shift, cursors, records)
        else:
            _deal(owners, others, first, shift, cursors, records)
        first += owners.size
    return records, offsets


_NO_EXTRA = np.zeros((0, 0), np.uint64)
_NO_IDS = np.zeros(0, np.uint64)


@njit(cache=True, nogil=True)
def _count_buckets(owners, shift, offsets):
    for i in range(owners.size):
        offsets[np.int64(owners[i] >> shift) + 1] += 1


@njit(cache=True, nogil=True)
def _deal(owners, others, first, shift, cursors, records):
    for i in range(owners.size):
        bucket = np.int64(owners[i] >> shift)
        at = cursors[bucket]
        cursors[bucket] = at + 1
        records[at, OWNER] = owners[i]
        records[at, OTHER] = others[i]
        records[at, EDGE_ID] = first + i


@njit(cache=True, nogil=True)
def _deal_all(owners, others, ids, extra, first, shift, cursors, records):
    """Deal out records whose edge IDs are given (else they count from ``first``) and that carry more words."""
    halves = records.itemsize == 4
    for i in range(owners.size):
        bucket = np.int64(owners[i] >> shift)
        at = cursors[bucket]
        cursors[bucket] = at + 1
        records[at, OWNER] = owners[i]
        records[at, OTHER] = others[i]
        records[at, EDGE_ID] = ids[i] if ids.size else first + i
        word = NUM_FIELDS
        for k in range(extra.shape[1] if extra.size else 0):
            records[at, word] = extra[i, k]
            if halves:
                records[at, word + 1] = extra[i, k] >> np.uint64(32)
                word += 1
            word += 1


def carried(records: Any, number: int) -> Any:
    """Return what travelled along as ``extra[number]``: uint64[n]."""
    if records.dtype == np.uint64:
        return records[:, NUM_FIELDS + number]
    word = NUM_FIELDS + 2 * number
    return records[:, word].astype(np.uint64) | (records[:, word + 1].astype(np.uint64) << np.uint64(32))


def place_records(
    blocks: Sequence[Block], low: int, num_rows: int, index_dtype: str, id_dtype: str | None, position: Any
) -> tuple[Any, Any, Any]:
    """Put records in the order of their rows ``low`` … ``low + num_rows - 1``; inside a row they keep their order.

    ``position`` (int64, as long as all records) is filled with the place to which each record goes; None: not wanted. Returns
    (lengths of the rows int64[num_rows], others, edge IDs or None).
    """
    counts = np.zeros(num_rows + 1, np.int64)
    for block in blocks:
        _count(block, low, counts)
    cursors = np.cumsum(counts)
    size = int(cursors[-1])
    others = np.empty(size, index_dtype)
    ids = np.empty(size if id_dtype else 0, id_dtype or "int32")
    first = 0
    for block in blocks:
        stop = first + len(block.records)
        places = _NO_PLACES if position is None else position[first:stop]
        if block.packing is None:
            _place(block.records, block.starts, block.bases, low, cursors, others, ids, places)
        else:
            bits = block.packing
            words, offset = block.records[:, 0], block.first_row - low
            layout = (bits.mask, bits.row_bits, bits.other_bits)
            _place_packed(words, block.starts, block.bases, *layout, offset, cursors, others, ids, places)
        first = stop
    return counts[1:], others, ids if id_dtype else None


_NO_PLACES = np.zeros(0, np.int64)


def _count(block: Block, low: int, counts: Any) -> None:
    if block.packing is None:
        _count_rows(block.records, low, counts)
    else:
        _count_packed(block.records[:, 0], block.packing.mask, block.first_row - low, counts)


def count_rows(block: Block, low: int, num_rows: int) -> Any:
    """Return the number of records of every row ``low`` … ``low + num_rows - 1``: int64[num_rows]."""
    counts = np.zeros(num_rows + 1, np.int64)
    _count(block, low, counts)
    return counts[1:]


@njit(cache=True, nogil=True)
def _count_rows(records, low, counts):
    for i in range(records.shape[0]):
        counts[np.int64(records[i, OWNER]) - low + 1] += 1


@njit(cache=True, nogil=True)
def _count_packed(words, row_mask, offset, counts):
    for i in range(words.size):
        counts[np.int64(words[i] & row_mask) + offset + 1] += 1


@njit(cache=True, nogil=True)
def _place(records, starts, bases, low, cursors, others, ids, places):
    for segment in range(bases.size):
        for i in range(starts[segment], starts[segment + 1]):
            row = np.int64(records[i, OWNER]) - low
            at = cursors[row]
            cursors[row] = at + 1
            others[at] = records[i, OTHER]
            if ids.size:
                ids[at] = bases[segment] + np.int64(records[i, EDGE_ID])
            if places.size:
                places[i] = at


@njit(cache=True, nogil=True)
def _place_packed(words, starts, bases, row_mask, row_bits, other_bits, offset, cursors, others, ids, places):
    other_mask = (np.uint64(1) << np.uint64(other_bits)) - np.uint64(1)
    for segment in range(bases.size):
        for i in range(starts[segment], starts[segment + 1]):
            word = words[i]
            row = np.int64(word & row_mask) + offset
            at = cursors[row]
            cursors[row] = at + 1
            high = word >> np.uint64(row_bits)
            others[at] = np.int64(high & other_mask)
            if ids.size:
                ids[at] = bases[segment] + np.int64(high >> np.uint64(other_bits))
            if places.size:
                places[i] = at


def sort_records(records: Any, field: int) -> Any:
    """Return records in ascending order of one field, records of equal fields in the order in which they were.

    Takes one pass for every 11 bits of the highest value.
    """
    if not len(records):
        return records
    highest = int(records[:, field].max())
    more = np.empty_like(records)
    for shift in range(0, highest.bit_length(), _DIGIT_BITS):
        cursors = np.zeros((1 << _DIGIT_BITS) + 1, np.int64)
        _count_digits(records, field, shift, cursors)
        np.cumsum(cursors, out=cursors)
        _scatter_digits(records, field, shift, cursors, more)
        records, more = more, records
    return records


@njit(cache=True, nogil=True)
def _count_digits(records, field, shift, counts):
    mask = np.uint64(counts.size - 2)
    for i in range(records.shape[0]):
        counts[np.int64((np.uint64(records[i, field]) >> np.uint64(shift)) & mask) + 1] += 1


@njit(cache=True, nogil=True)
def _scatter_digits(records, field, shift, cursors, out):
    mask = np.uint64(cursors.size - 2)
    words = records.shape[1]
    for i in range(records.shape[0]):
        digit = np.int64((np.uint64(records[i, field]) >> np.uint64(shift)) & mask)
        at = cursors[digit]
        cursors[digit] = at + 1
        for k in range(words):
            out[at, k] = records[i, k]


def has_repeats(counts: Any, others: Any) -> bool:
    """Return whether a row has two equal neighbours side by side; ``counts`` (int64) are the lengths of the rows."""
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
