"""Scan plain EdgeList lines to rows, features included, in one go. A kernel never raises.

Plain is a line of columns behind delimiters of one byte, with dense features of numbers, and texts without an escape. Numbers
may be spelled in any way.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import (
    WORD,
    address_of,
    digits_at,
    digits_of_word,
    load_byte,
    load_word,
    non_digits,
    trailing_zeros,
)
from graphprep.kernels.cpu.deepgnn.plain_rows import (
    DONE,
    EDGES,
    FULL,
    NODES,
    ODD,
    POS,
    Room,
    keep_new,
    note_numbers,
    note_text,
    read_float_token,
    read_int_token,
    read_short,
    read_uint_token,
    start_row,
    token_end,
)
from graphprep.kernels.cpu.deepgnn.slots import EDGE, NODE, NOT_SPARSE, TEXT_DTYPE, is_too_large

# Bits of PlainGrammar.columns: which columns stand in the lines.
NODE_TYPE, NODE_WEIGHT, EDGE_TYPE, EDGE_WEIGHT, CREATED_AT, REMOVED_AT = (1 << i for i in range(6))
IN_LINE = -2  # in a default slot's dtype, length or width: it stands in the line
MOST_WORD = 8  # bytes of a dtype and the delimiter

_MAX_TYPE = (1 << 31) - 1
_LF, _CR = 10, 13
_USUAL = EDGE_TYPE | EDGE_WEIGHT
_U = np.uint64


class PlainGrammar(NamedTuple):
    """What the lines look like; default slots and ``weight_limit`` as ``edgelist.Grammar`` says.

    ``delimiter`` and ``escape`` are bytes; ``ends`` (uint8[256]) is 1 for the delimiter and LF, else 0. ``columns`` are bits.
    ``words`` (uint64[k, 4]) are dtypes: the dtype and the delimiter behind it, up to MOST_WORD bytes, as a number; a mask of
    the bytes that this takes; how many they are without the delimiter; and the dtype's code.
    """

    delimiter: int
    escape: int
    ends: NDArray[np.uint8]
    columns: int
    words: NDArray[np.uint64]
    node_slots: NDArray[np.int64]
    edge_slots: NDArray[np.int64]
    weight_limit: float


# A cursor is the address of a column's first byte, or of the delimiter, CR or LF behind it; -1 where the line is not plain.


def scan(buf: NDArray[np.uint8], last: int, grammar: PlainGrammar, room: Room, progress: NDArray[np.int64]) -> int:
    """Read the lines from ``progress[POS]`` on that begin before ``last`` to ``room``; says why it stopped.

    ``last`` begins a line; from there on, there are at least as many bytes as PADDING has.
    """
    return int(_scan(buf, last, *grammar, *room, progress))


@njit(cache=True, nogil=True)
def _scan(
    buf, last, delimiter, escape, ends, columns, words, node_slots, edge_slots, weight_limit,
    node_ids, node_types, node_weights, node_num_slots, node_times,
    edge_src, edge_dst, edge_types, edge_weights, edge_num_slots, edge_times,
    slots, groups, buckets, values, texts, progress,
):  # fmt: skip
    ends_at, base = address_of(ends), address_of(buf)
    last += base
    has_times = columns & (CREATED_AT | REMOVED_AT) != 0
    is_usual = columns & (_USUAL | CREATED_AT | REMOVED_AT) == _USUAL and edge_slots.shape[0] == 0
    num_nodes, num_edges = progress[NODES], progress[EDGES]
    line = base + progress[POS]
    code = DONE
    while line < last:
        is_node, created, removed = False, np.int64(0), np.int64(0)
        at, src, dst, kind, weight = line, _U(0), _U(0), np.int64(0), 0.0
        while is_usual and num_edges < edge_src.size:
            at, src, dst, kind, weight = _usual_edge(line, delimiter)
            if at == line or load_byte(at) != _LF:
                break
            row = _U(num_edges)
            edge_src[row] = src
            edge_dst[row] = dst
            edge_types[row] = kind
            edge_weights[row] = weight
            edge_num_slots[row] = 0
            num_edges += 1
            line = at = at + 1
            if line >= last:
                break
        if line >= last:
            break
        if num_edges == edge_src.size or num_nodes == node_ids.size:
            code = FULL
            break
        if at == line:
            if load_byte(line) == _LF:
                line += 1
                continue
            at, is_node, src, dst, kind, weight, created, removed = _fixed_columns(buf, base, line, delimiter, ends_at, columns)
        code = ODD
        if at < 0 or is_too_large(weight, weight_limit):
            break
        row = _U(num_nodes if is_node else num_edges)
        num_slots = 0
        defaults = node_slots if is_node else edge_slots
        if load_byte(at) == delimiter or defaults.shape[0]:
            start_row(progress)
            code, at, num_slots = _features(
                buf, base, at, NODE if is_node else EDGE, row, defaults, delimiter, escape, ends_at, words,
                slots, groups, buckets, values, texts, progress,
            )  # fmt: skip
            if code != DONE:
                break
            code = ODD
        at += load_byte(at) == _CR
        if load_byte(at) != _LF:
            break
        if is_node:
            node_ids[row] = src
            node_types[row] = kind
            node_weights[row] = weight
            node_num_slots[row] = num_slots
            if has_times:
                node_times[row, 0] = created
                node_times[row, 1] = removed
            num_nodes += 1
        else:
            edge_src[row] = src
            edge_dst[row] = dst
            edge_types[row] = kind
            edge_weights[row] = weight
            edge_num_slots[row] = num_slots
            if has_times:
                edge_times[row, 0] = created
                edge_times[row, 1] = removed
            num_edges += 1
        if num_slots:
            keep_new(progress)
        line = at + 1
        code = DONE
    progress[POS], progress[NODES], progress[EDGES] = line - base, num_nodes, num_edges
    return code


@njit(cache=True, nogil=True, forceinline=True)
def _usual_edge(at, delimiter):
    """Read ``1,0,2,0.5``, where 32 bytes hold it and what follows: (end, src, dst, type, weight).

    The end is ``at`` where it is something else. One look tells where all columns end, and there are no branches on how long
    they are.
    """
    others = non_digits(at)
    first = trailing_zeros(others)
    others &= others - _U(1)
    second = trailing_zeros(others)
    others &= others - _U(1)
    third = trailing_zeros(others)
    others &= others - _U(1)
    wrong = (load_byte(at + first) ^ delimiter) | (load_byte(at + second) ^ delimiter) | (load_byte(at + third) ^ delimiter)
    # As an unsigned number, a size of 0 is large, too, and so is one whose end the window does not show.
    longs = _U(first - 1) | _U(third - second - 2)
    if wrong != 0 or longs >= 2 * WORD or _U(second - first - 2) >= WORD:
        return at, _U(0), _U(0), np.int64(0), 0.0
    begin = at + third + 1
    size, weight = read_short(begin, others >> _U(third + 1))
    last = load_byte(begin + size)
    if size < 0 or ((last != _LF) & (last != delimiter) & (last != _CR)):
        return at, _U(0), _U(0), np.int64(0), 0.0
    src, dst = digits_at(at, first), digits_at(at + second + 1, third - second - 1)
    kind = np.int64(digits_of_word(load_word(at + first + 1), second - first - 1))
    return begin + size, src, dst, kind, weight


@njit(cache=True, nogil=True)
def _fixed_columns(buf, base, at, delimiter, ends, columns):
    """Read what is in front of the features: (end, is it a node, ID or source, dst, type, weight, created_at, removed_at)."""
    is_node, dst, kind, weight, created, removed = False, _U(0), np.int64(0), 0.0, np.int64(0), np.int64(0)
    at, src = read_uint_token(buf, base, at, ends)
    if at < 0 or load_byte(at) != delimiter:
        return np.int64(-1), is_node, src, dst, kind, weight, created, removed
    second = at + 1
    at, number = read_int_token(buf, base, second, ends)
    is_node = at >= 0 and number == -1
    if is_node:
        if columns & NODE_TYPE:
            at, kind = _int_behind(buf, base, at, delimiter, ends)
    else:
        if columns & EDGE_TYPE:
            kind = number
            second = at + 1 if at >= 0 and load_byte(at) == delimiter else -1
        at = np.int64(-1)
        if second >= 0:
            at, dst = read_uint_token(buf, base, second, ends)
    if kind < 0 or kind > _MAX_TYPE:
        at = np.int64(-1)
    if at >= 0 and columns & (NODE_WEIGHT if is_node else EDGE_WEIGHT):
        if load_byte(at) == delimiter:
            at, weight = read_float_token(buf, base, at + 1, ends)
        else:
            at = np.int64(-1)
    if columns & CREATED_AT:
        at, created = _int_behind(buf, base, at, delimiter, ends)
    if columns & REMOVED_AT:
        at, removed = _int_behind(buf, base, at, delimiter, ends)
    return at, is_node, src, dst, kind, weight, created, removed


@njit(cache=True, nogil=True)
def _int_behind(buf, base, at, delimiter, ends):
    """Read the integer behind the delimiter at ``at``: (end, int64)."""
    if at < 0 or load_byte(at) != delimiter:
        return np.int64(-1), np.int64(0)
    return read_int_token(buf, base, at + 1, ends)


@njit(cache=True, nogil=True, forceinline=True)
def _features(
    buf, base, at, owner, row, defaults, delimiter, escape, ends, words, slots, groups, buckets, values,
    texts, progress,
):  # fmt: skip
    """Read the features behind the fixed columns: (why it stopped, where the last one ends, number of slots)."""
    slot = 0
    while load_byte(at) == delimiter or slot < defaults.shape[0]:
        dtype, count, width = np.int64(IN_LINE), np.int64(IN_LINE), np.int64(NOT_SPARSE)
        if slot < defaults.shape[0]:
            dtype, count, width = defaults[slot, 0], defaults[slot, 1], defaults[slot, 2]
        if dtype == IN_LINE:
            if load_byte(at) != delimiter:
                break
            word = load_word(at + 1)
            for i in range(words.shape[0]):
                if word & words[i, 1] == words[i, 0]:
                    at += 1 + np.int64(words[i, 2])
                    dtype = np.int64(words[i, 3])
                    break
        if count == IN_LINE:
            size = trailing_zeros(non_digits(at + 1))
            if _U(size - 1) < WORD and load_byte(at + 1 + size) == delimiter and load_byte(at) == delimiter:
                count = np.int64(digits_of_word(load_word(at + 1), size))
                at += 1 + size
            else:
                at, count = _int_behind(buf, base, at, delimiter, ends)
        if dtype < 0 or at < 0 or count < 0 or width != NOT_SPARSE:
            return ODD, at, slot
        slot += 1
        if count == 0:
            continue
        if load_byte(at) != delimiter:
            return ODD, at, slot
        if dtype == TEXT_DTYPE:
            end = token_end(at + 1, ends)
            for i in range(at + 1, end):
                if load_byte(i) == escape:
                    return ODD, at, slot
            if count != 1:
                return ODD, at, slot
            code = note_text(at + 1, end, owner, row, slot - 1, slots, groups, buckets, texts, progress)
            at = end
        else:
            code, at = note_numbers(
                buf, base, at + 1, delimiter, count, ends, owner, row, slot - 1, dtype, slots, groups, buckets, values, progress
            )
        if code != DONE:
            return code, at, slot
    return DONE, at, slot
