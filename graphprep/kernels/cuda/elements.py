"""Kernels that do one thing to every item: pack edges and take them apart, gather, invert, relabel."""

from __future__ import annotations

import numpy as np

from graphprep.kernels.cuda.frontend import U, cuda, device_kernel
from graphprep.kernels.cuda.rows import last_at_most

PIECE_FIELDS = 8  # a piece's first record, first word, first row; what to add to IDs; other bits, ID bits, row mask, words


@device_kernel
def pack_edges(rows, others, ids, first, other_bits, id_bits, words):
    """Pack row, other end and edge ID (``ids``, or if empty from ``first`` on); high bits of the row may be lost."""
    has_ids = ids.size > 0
    id_mask = (U(1) << U(id_bits)) - U(1)
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        pair = (U(rows[U(i)]) << U(other_bits)) | U(others[U(i)])
        if id_bits > 0:
            number = U(ids[U(i)]) if has_ids else U(first + i)
            pair = (pair << U(id_bits)) | (number & id_mask)
        words[U(i)] = pair


@device_kernel
def gather_records(pieces, records, low, other_bits, id_bits, words, ids):
    """Bring records of pieces together, packed alike, with rows less ``low``: IDs into the words, or else into ``ids``.

    ``pieces``: int64[PIECE_FIELDS * p], field after field; their records lie in ``records``, word after word.
    """
    number = np.int64(pieces.size) // PIECE_FIELDS
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        piece = last_at_most(pieces, number, np.int64(i))
        from_word = pieces[U(number + piece)]
        first_row = U(pieces[U(2 * number + piece)])
        base = U(pieces[U(3 * number + piece)])
        old_other_bits, old_id_bits = U(pieces[U(4 * number + piece)]), U(pieces[U(5 * number + piece)])
        row_mask = U(pieces[U(6 * number + piece)])
        num_words = pieces[U(7 * number + piece)]
        at = from_word + (np.int64(i) - pieces[U(piece)]) * num_words
        word = records[U(at)]
        row = first_row + ((word >> (old_other_bits + old_id_bits)) & row_mask) - U(low)
        other = (word >> old_id_bits) & ((U(1) << old_other_bits) - U(1))
        pair = (row << U(other_bits)) | other
        if id_bits > 0 or ids.size > 0:
            edge = base + (word & ((U(1) << old_id_bits) - U(1)))
            if old_id_bits == U(0):
                edge = base + records[U(at + 1)]
            if ids.size > 0:
                ids[U(i)] = edge
            else:
                pair = (pair << U(id_bits)) | edge
        words[U(i)] = pair


@device_kernel
def unpack_words(words, other_bits, id_bits, rows, others, ids):
    """Take words apart; of rows, other ends and IDs those that have room."""
    other_mask = (U(1) << U(other_bits)) - U(1)
    id_mask = (U(1) << U(id_bits)) - U(1)
    for i in range(cuda.grid(1), words.size, cuda.gridsize(1)):
        word = words[U(i)]
        if rows.size > 0:
            rows[U(i)] = word >> U(other_bits + id_bits)
        if others.size > 0:
            others[U(i)] = (word >> U(id_bits)) & other_mask
        if ids.size > 0:
            ids[U(i)] = word & id_mask


@device_kernel
def pair_up(values, pairs):
    """Put each value and its position, of 32 bits both, in a word."""
    for i in range(cuda.grid(1), pairs.size, cuda.gridsize(1)):
        pairs[U(i)] = (U(values[U(i)]) << U(32)) | U(i)


@device_kernel
def gather(values, order, out):
    """Set ``out[U(i)] = values[U(order[U(i)])]``."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        out[U(i)] = values[U(order[U(i)])]


@device_kernel
def gather_words(records, num_words, order, out):
    """Gather records of several words."""
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        row = np.int64(i) // num_words
        out[U(i)] = records[U(np.int64(order[U(row)]) * num_words + (np.int64(i) - row * num_words))]


@device_kernel
def take_column(records, num_words, word, out):
    """Set ``out`` to one word of every record."""
    for i in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[U(i)] = records[U(np.int64(i) * num_words + word)]


@device_kernel
def invert(order, inverse):
    """Set ``inverse[U(order[U(i)])] = i``."""
    for i in range(cuda.grid(1), order.size, cuda.gridsize(1)):
        inverse[U(order[U(i)])] = i


@device_kernel
def descending_keys(values, highest, keys):
    """Set keys that ascend as values descend."""
    for i in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        keys[U(i)] = U(highest - values[U(i)])


@device_kernel
def shift_keys(values, shift, keys):
    """Set keys to the values without their ``shift`` low bits: buckets."""
    for i in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        keys[U(i)] = U(values[U(i)]) >> U(shift)


@device_kernel
def find_inner(order, words, shift, bounds, inner):
    """Set where in its row each entry stood: ``order`` is where it stood among all, the row leads its word."""
    for i in range(cuda.grid(1), inner.size, cuda.gridsize(1)):
        inner[U(i)] = np.int64(order[U(i)]) - bounds[U(words[U(i)]) >> U(shift)]


@device_kernel
def find_lengths(indptr, old_rows, lengths):
    """Set how many entries each row has in its new place."""
    for row in range(cuda.grid(1), old_rows.size, cuda.gridsize(1)):
        old = np.int64(old_rows[U(row)])
        lengths[U(row)] = indptr[U(old + 1)] - indptr[U(old)]


@device_kernel
def find_sources(indptr, old_rows, new_indptr, sources):
    """Set where each entry of the rows in their new places stood."""
    for i in range(cuda.grid(1), sources.size, cuda.gridsize(1)):
        row = last_at_most(new_indptr, new_indptr.size, np.int64(i))
        sources[U(i)] = indptr[U(old_rows[U(row)])] + np.int64(i) - new_indptr[U(row)]


@device_kernel
def flip_bit(values, bit):
    """Flip one bit of every value: integers with a sign whose highest is flipped ascend as those without one do."""
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        values[U(i)] ^= U(1) << U(bit)


@device_kernel
def add(values, number):
    """Add a number to every value."""
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        values[U(i)] += U(number)
