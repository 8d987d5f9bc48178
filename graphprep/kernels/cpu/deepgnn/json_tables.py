"""JSON lines as a table: the members of every record, and scalars as text. A kernel never raises."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.deepgnn.json_keys import hash_text, same_text, spelling_room
from graphprep.kernels.cpu.deepgnn.json_tape import ESCAPED, TEXT, Tape, after, kind_of, start_of, unescape

_FEW_SLOTS = 256
_TAB, _LF, _CR, _SPACE, _COMMA, _CLOSE_ARRAY, _CLOSE_OBJECT = 9, 10, 13, 32, 44, 93, 125


def list_members(tape: Tape, roots: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """List the members of all records, which are objects, in input order.

    Returns the number of each one's record and the token of its key (the value's is the next), both int64[n].
    """
    most = int((tape.extra[roots] - roots).sum()) // 2  # a member takes a key and a value at least
    records, keys = np.empty(most, np.int64), np.empty(most, np.int64)
    count = _find_members(tape.words, tape.extra, roots, records, keys)
    return records[:count], keys[:count]


def label_keys(tape: Tape, records: NDArray[np.int64], keys: NDArray[np.int64]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Number the distinct keys of members in the order in which they are met.

    Returns every key's number (int32[n]), and the token at which each number stands first (int64[k]).
    """
    codes, firsts = np.empty(keys.size, np.int32), np.empty(keys.size, np.int64)
    num_slots, spelled = _FEW_SLOTS, spelling_room(tape)
    while True:
        count = _label_keys(*tape, spelled, records, keys, np.full(num_slots, -1, np.int32), codes, firsts)
        if count >= 0:
            return codes, firsts[:count].copy()
        num_slots *= 16


def scalar_texts(tape: Tape, tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """Write scalars as text: texts without quotes and escapes, numbers and words as they stand.

    Returns offsets int64[n + 1], uint8 values, and the positions in ``tokens`` of texts with lone surrogates.
    """
    offsets = np.zeros(tokens.size + 1, np.int64)
    values = np.empty(_room(*tape, tokens), np.uint8)
    is_lone = np.zeros(tokens.size, np.bool_)
    size = _scalar_texts(*tape, tokens, offsets, values, is_lone)
    return offsets, values[:size], np.flatnonzero(is_lone)


@njit(cache=True, nogil=True)
def _find_members(words, extra, roots, records, keys):
    """Fill ``records`` and ``keys``. Returns the number of members."""
    count = 0
    for record in range(roots.size):
        key = roots[record] + 1
        while key < extra[roots[record]]:
            records[count] = record
            keys[count] = key
            count += 1
            key = after(words, extra, key + 1)
    return count


@njit(cache=True, nogil=True)
def _label_keys(buf, words, extra, spelled, records, keys, slots, codes, firsts):
    """Fill ``codes`` and ``firsts``. Returns the number of distinct keys, -1 where they fill more than half of the slots."""
    count = 0
    begin = 0  # of the record
    before = 0  # of the record before, whose keys most likely are the same ones
    for i in range(keys.size):
        if i > 0 and records[i] != records[i - 1]:
            before = begin
            begin = i
        guess = before + i - begin
        if guess < begin and same_text(buf, words, extra, spelled, keys[guess], keys[i]):
            codes[i] = codes[guess]
            continue
        slot = np.int64(hash_text(buf, words, extra, spelled, keys[i]) & np.uint64(slots.size - 1))
        while slots[slot] >= 0 and not same_text(buf, words, extra, spelled, firsts[slots[slot]], keys[i]):
            slot = (slot + 1) & (slots.size - 1)
        if slots[slot] < 0:
            if 2 * (count + 1) > slots.size:
                return -1
            slots[slot] = count
            firsts[count] = keys[i]
            count += 1
        codes[i] = slots[slot]
    return count


@njit(cache=True, nogil=True)
def _scalar_end(buf, at):
    """Return the position behind a number or word."""
    while buf[at] not in (_COMMA, _CLOSE_OBJECT, _CLOSE_ARRAY, _SPACE, _TAB, _CR, _LF):
        at += 1
    return at


@njit(cache=True, nogil=True)
def _room(buf, words, extra, tokens):
    """Return the bytes that texts and other scalars take at most."""
    size = 0
    for token in tokens:
        start = start_of(words, token)
        if kind_of(words, token) in (TEXT, ESCAPED):
            size += extra[token] - start - 1
        else:
            size += _scalar_end(buf, start) - start
    return size


@njit(cache=True, nogil=True)
def _scalar_texts(buf, words, extra, tokens, offsets, out, is_lone):
    """Fill ``offsets``, ``out`` and ``is_lone``. Returns the bytes."""
    at = 0
    for i in range(tokens.size):
        kind, start = kind_of(words, tokens[i]), start_of(words, tokens[i])
        if kind == ESCAPED:
            at, is_lone[i] = unescape(buf, start + 1, extra[tokens[i]], out, at)
        else:
            stop = extra[tokens[i]] if kind == TEXT else _scalar_end(buf, start)
            for j in range(start + (kind == TEXT), stop):
                out[at] = buf[j]
                at += 1
        offsets[i + 1] = at
    return at
