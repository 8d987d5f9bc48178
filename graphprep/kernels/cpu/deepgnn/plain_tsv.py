"""Scan plain TSV rows to nodes and edges, features included, in one go. A kernel never raises.

Plain is a row without quoted cells, whose features are numbers or texts. Numbers may be spelled in any way.
"""

from __future__ import annotations

from typing import Any, NamedTuple

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
from graphprep.kernels.cpu.deepgnn.slots import EDGE, NODE, TEXT_DTYPE, is_too_large

_MAX_TYPE = (1 << 31) - 1
_TAB, _LF, _CR, _SPACE, _COMMA, _COLON, _SEMICOLON, _BAR = 9, 10, 13, 32, 44, 58, 59, 124
_ODD, _FULL = -1, -2  # in place of an address: the row is not plain; there is no room for it
_U = np.uint64


class PlainGrammar(NamedTuple):
    """What rows look like; made by ``make_grammar``.

    ``words`` (uint64[k, 4]) are feature codes: the code and the colon behind it as a number, a mask of the bytes that this
    takes, how many they are, and the code of the dtype. The others (uint8[256]) are 1 for the bytes that end a cell, a
    neighbour's field, and inside each of them a text and a number.
    """

    words: NDArray[np.uint64]
    cell_ends: NDArray[np.uint8]
    text_ends: NDArray[np.uint8]
    number_ends: NDArray[np.uint8]
    field_ends: NDArray[np.uint8]
    field_text_ends: NDArray[np.uint8]
    field_number_ends: NDArray[np.uint8]


def make_grammar(dtypes: dict[str, int]) -> PlainGrammar:
    """Make the grammar; ``dtypes``: each feature code's dtype code."""
    rows = []
    for code, dtype in dtypes.items():
        word = f"{code}:".encode()
        rows.append((int.from_bytes(word, "little"), (1 << 8 * len(word)) - 1, len(word), dtype))
    tables = [_table(text) for text in ("\t\n", "\t\n;", "\t\n; ", "\t\n,|", "\t\n,|;", "\t\n,|; ")]
    return PlainGrammar(np.array(rows, np.uint64), *tables)


def _table(text: str) -> NDArray[np.uint8]:
    table = np.zeros(256, np.uint8)
    table[list(text.encode())] = 1
    return table


def scan(buf: Any, last: int, weight_limit: float, no_weight: float, grammar: PlainGrammar, room: Room, progress: Any) -> int:
    """Read the rows from ``progress[POS]`` on that begin before ``last`` to ``room``; says why it stopped.

    ``last`` begins a line; from there on, there are at least as many bytes as PADDING has. ``no_weight`` is the weight of a
    node that states none.
    """
    return int(_scan(buf, last, weight_limit, no_weight, *grammar, *room, progress))


# Cursors are addresses; _ODD and _FULL say why there is none.


@njit(cache=True, nogil=True)
def _scan(
    buf, last, weight_limit, no_weight,
    words, cell_ends, text_ends, number_ends, field_ends, field_text_ends, field_number_ends,
    node_ids, node_types, node_weights, node_num_slots, node_times,
    edge_src, edge_dst, edge_types, edge_weights, edge_num_slots, edge_times,
    slots, groups, buckets, values, texts, progress,
):  # fmt: skip
    base = address_of(buf)
    last += base
    cells, texts_in_cell, numbers_in_cell = address_of(cell_ends), address_of(text_ends), address_of(number_ends)
    fields, texts_in_field, numbers_in_field = (
        address_of(field_ends),
        address_of(field_text_ends),
        address_of(field_number_ends),
    )
    num_nodes, num_edges = progress[NODES], progress[EDGES]
    line = base + progress[POS]
    at = line
    while line < last:
        if load_byte(line) == _LF:
            line += 1
            continue
        if num_nodes == node_ids.size:
            at = np.int64(_FULL)
            break
        start_row(progress)
        kind, weight, num_slots, row = np.int64(0), no_weight, 0, num_edges
        at, node_id = read_uint_token(buf, base, line, cells)
        if at >= 0 and load_byte(at) == _TAB:
            at += 1
            if not _is_end(at, cells):
                at, kind = read_int_token(buf, base, at, cells)
        if at >= 0 and load_byte(at) == _TAB:
            at += 1
            if not _is_end(at, cells):
                at, weight = read_float_token(buf, base, at, cells)
        if at >= 0 and load_byte(at) == _TAB:
            at, num_slots = _features(
                buf, base, at + 1, NODE, num_nodes, cells, texts_in_cell, numbers_in_cell, words,
                slots, groups, buckets, values, texts, progress,
            )  # fmt: skip
        if at >= 0 and load_byte(at) == _TAB:
            at += 1
            is_last = _is_end(at, cells)
            while not is_last:
                if row == edge_src.size:
                    at = np.int64(_FULL)
                    break
                end, dst, edge_kind, edge_weight = _usual_neighbor(at)
                edge_slots = 0
                if end == at:
                    at, dst, edge_kind, edge_weight = _neighbor(buf, base, at, fields)
                    if at >= 0 and load_byte(at) == _COMMA:
                        at += 1
                        while load_byte(at) == _SPACE:
                            at += 1
                        at, edge_slots = _features(
                            buf, base, at, EDGE, row, fields, texts_in_field, numbers_in_field, words,
                            slots, groups, buckets, values, texts, progress,
                        )  # fmt: skip
                    if at < 0 or is_too_large(edge_weight, weight_limit) or load_byte(at) == _COMMA:
                        at = np.int64(_ODD) if at != _FULL else at
                        break
                    end = at
                k = _U(row)
                edge_src[k] = node_id
                edge_dst[k] = dst
                edge_types[k] = edge_kind
                edge_weights[k] = edge_weight
                edge_num_slots[k] = edge_slots
                row += 1
                at = end
                is_last = load_byte(at) != _BAR
                at += not is_last
        if at < 0:
            break
        at += load_byte(at) == _CR
        if load_byte(at) != _LF or kind < 0 or kind > _MAX_TYPE or is_too_large(weight, weight_limit):
            at = np.int64(_ODD)
            break
        node_ids[num_nodes] = node_id
        node_types[num_nodes] = kind
        node_weights[num_nodes] = weight
        node_num_slots[num_nodes] = num_slots
        num_nodes += 1
        num_edges = row
        keep_new(progress)
        line = at + 1
    progress[POS], progress[NODES], progress[EDGES] = line - base, num_nodes, num_edges
    if at < 0:
        return FULL if at == _FULL else ODD
    return DONE


@njit(cache=True, nogil=True, forceinline=True)
def _is_end(at, ends):
    """Say whether a cell or field ends here."""
    byte = load_byte(at)
    return load_byte(ends + byte) != 0 or (byte == _CR and load_byte(at + 1) == _LF)


@njit(cache=True, nogil=True, forceinline=True)
def _usual_neighbor(at):
    """Read ``2,0,0.5``, where 32 bytes hold it and what follows: (end, dst, type, weight).

    The end is ``at`` where it is something else. One look tells where all fields end, and there are no branches on how long
    they are.
    """
    others = non_digits(at)
    first = trailing_zeros(others)
    others &= others - _U(1)
    second = trailing_zeros(others)
    others &= others - _U(1)
    wrong = (load_byte(at + first) ^ _COMMA) | (load_byte(at + second) ^ _COMMA)
    # As an unsigned number, a size of 0 is large, too, and so is one whose end the window does not show.
    if wrong != 0 or _U(first - 1) >= 2 * WORD or _U(second - first - 2) >= WORD:
        return at, _U(0), np.int64(0), 0.0
    begin = at + second + 1
    size, weight = read_short(begin, others >> _U(second + 1))
    last = load_byte(begin + size)
    if size < 0 or ((last != _BAR) & (last != _LF) & (last != _CR) & (last != _TAB)):
        return at, _U(0), np.int64(0), 0.0
    dst = digits_at(at, first)
    kind = np.int64(digits_of_word(load_word(at + first + 1), second - first - 1))
    return begin + size, dst, kind, weight


@njit(cache=True, nogil=True)
def _neighbor(buf, base, at, ends):
    """Read ``dst,type`` and perhaps ``,weight``: (end, dst, type, weight)."""
    kind, weight = np.int64(-1), 0.0
    at, dst = read_uint_token(buf, base, at, ends)
    if at >= 0 and load_byte(at) == _COMMA:
        at, kind = read_int_token(buf, base, at + 1, ends)
    if at < 0 or kind < 0 or kind > _MAX_TYPE:
        return np.int64(_ODD), dst, kind, weight
    if load_byte(at) == _COMMA:
        at += 1
        if not _is_end(at, ends):
            at, weight = read_float_token(buf, base, at, ends)
    return at, dst, kind, weight


@njit(cache=True, nogil=True)
def _features(
    buf, base, at, owner, row, ends, text_ends, number_ends, words, slots, groups, buckets, values, texts, progress
):  # fmt: skip
    """Read ``code:values;code:values``: (end, number of slots)."""
    slot = 0
    if _is_end(at, ends):
        return at, slot
    while True:
        byte = load_byte(at)
        if byte != _SEMICOLON and not _is_end(at, ends):
            word = load_word(at)
            dtype = np.int64(-1)
            for i in range(words.shape[0]):
                if word & words[i, 1] == words[i, 0]:
                    at += np.int64(words[i, 2])
                    dtype = np.int64(words[i, 3])
                    break
            if dtype < 0:
                return np.int64(_ODD), slot
            if dtype == TEXT_DTYPE:
                end = token_end(at, text_ends)
                code = note_text(at, end, owner, row, slot, slots, groups, buckets, texts, progress)
                at = end
            else:
                at += load_byte(at) == _SPACE
                code, at = note_numbers(
                    buf, base, at, _SPACE, -1, number_ends, owner, row, slot, dtype, slots, groups, buckets, values, progress
                )
            if code != DONE:
                return np.int64(_FULL if code == FULL else _ODD), slot
            byte = load_byte(at)
        slot += 1
        if byte != _SEMICOLON:
            return at if _is_end(at, ends) else np.int64(_ODD), slot
        at += 1
