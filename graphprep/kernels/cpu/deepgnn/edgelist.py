"""Walk DeepGNN's EdgeList lines: the fixed columns become numbers, features are noted down as slots. A kernel never raises.

Source: ``EdgeListDecoder`` of DeepGNN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.deepgnn.slots import EDGE, NODE, NOT_SPARSE, TEXT_DTYPE, find_text, find_word, is_too_large, matches
from graphprep.kernels.cpu.deepgnn.walk import (
    BAD_FIELD,
    DONE,
    FAULT_COLUMNS,
    FAULT_COUNT,
    FAULT_DTYPE,
    FAULT_SLOT,
    FAULT_WIDTH,
    FIRST_OWN,
    MAX_TYPE,
    NODES,
    POS,
    SLOTS,
    SLOTS_BEFORE,
    Slots,
    note_slot,
    set_fault,
)
from graphprep.kernels.cpu.text.numbers import OK, find_line, parse_float, parse_int, parse_uint, skip_blanks, trim_blanks

# What may be wrong with a line, beside BAD_FIELD.
(MISSING_FIELD, UNKNOWN_DTYPE, BAD_LENGTH, BAD_TEXT_LENGTH, TOO_FEW_VALUES, AFTER_LAST_SLOT, OPEN_ESCAPE) = range(
    FIRST_OWN, FIRST_OWN + 7
)

# Fields, for FAULT_FIELD.
NODE_ID, SECOND, NODE_TYPE, NODE_WEIGHT, SRC, DST, EDGE_TYPE, EDGE_WEIGHT, CREATED_AT, REMOVED_AT, LENGTH, TEXT = range(12)

IN_LINE = -2  # in a default slot's dtype, length or width: it stands in the line


class Grammar(NamedTuple):
    """What the lines look like.

    ``delimiter``, ``length_delimiter``, ``escape``: uint8. ``words`` and ``word_stops`` (see ``find_word``) are the known
    dtypes, ``word_dtypes`` (int64) their codes. ``*_slots`` (int64[k, 3]): dtype, length and
    width of the first slots, or IN_LINE. The flags say which columns stand in the lines; ``weight_limit``: see ``is_too_large``
    """

    delimiter: NDArray[np.uint8]
    length_delimiter: NDArray[np.uint8]
    escape: NDArray[np.uint8]
    words: NDArray[np.uint8]
    word_stops: NDArray[np.int64]
    word_dtypes: NDArray[np.int64]
    node_slots: NDArray[np.int64]
    edge_slots: NDArray[np.int64]
    has_node_type: bool
    has_node_weight: bool
    has_edge_type: bool
    has_edge_weight: bool
    has_created_at: bool
    has_removed_at: bool
    weight_limit: float


class Owners(NamedTuple):
    """Where the fixed columns go: those of nodes to [NODE], those of edges to [EDGE], a row each.

    ``ids``: uint64[2, n, 2] (a node's ID; source, destination); ``at``: int64[2, n, 2], the byte that each stands at;
    ``types``: int32[2, n]; ``weights``: float64[2, n]; ``times``: int64[2, n, 2]; ``num_slots``: int32[2, n]. Columns that do
    not stand in the lines are left alone.
    """

    ids: NDArray[np.uint64]
    at: NDArray[np.int64]
    types: NDArray[np.int32]
    weights: NDArray[np.float64]
    times: NDArray[np.int64]
    num_slots: NDArray[np.int32]


# A cursor ``at`` <= stop stands at a column's first byte; the column may be empty. Behind the last one it is ``stop + 1``.
# Helpers are given the few arrays that they need: a tuple of many, passed for every line, costs more than all the parsing.


def walk(
    buf: NDArray[np.uint8],
    grammar: Grammar,
    owners: Owners,
    found: Slots,
    progress: NDArray[np.int64],
) -> int:
    """Read all lines from ``progress[POS]`` on, or up to a faulty one. ``owners`` has a row for every line.

    On FULL (grow ``found``) a further call goes on with the same line.
    """
    return int(_walk(buf, *grammar, *owners, *found, progress))


@njit(cache=True, nogil=True)
def _walk(
    buf, delimiter, length_delimiter, escape, words, word_stops, word_dtypes, node_slots, edge_slots, has_node_type,
    has_node_weight, has_edge_type, has_edge_weight, has_created_at, has_removed_at, weight_limit,
    ids, byte_of, types, weights, times, num_slots, slots, groups, buckets, progress,
):  # fmt: skip
    step = delimiter.size
    following = progress[POS]
    progress[SLOTS] = progress[SLOTS_BEFORE]  # a line that did not fit is read again; its groups may stay
    while following < buf.size:
        at = following
        progress[POS] = at
        progress[SLOTS_BEFORE] = progress[SLOTS]
        stop, following = find_line(buf, at)
        if skip_blanks(buf, at, stop) == stop:
            continue

        end = find_text(buf, at, stop, delimiter)
        code, value = parse_uint(buf, at, end)
        if end == stop:
            if code != OK:
                return set_fault(progress, BAD_FIELD, NODE_ID, at, end)
            return set_fault(progress, MISSING_FIELD, SECOND, stop, stop)
        second = end + step
        second_end = find_text(buf, second, stop, delimiter)
        second_code, number = parse_int(buf, second, second_end)
        is_node = second_code == OK and number == -1
        owner = NODE if is_node else EDGE
        row = progress[NODES + owner]
        if code != OK:
            return set_fault(progress, BAD_FIELD, NODE_ID if is_node else SRC, at, end)
        ids[owner, row, 0] = value
        byte_of[owner, row, 0] = at
        at = second_end + step if second_end < stop else stop + 1

        if is_node:
            if has_node_type:
                if at > stop:
                    return set_fault(progress, MISSING_FIELD, NODE_TYPE, stop, stop)
                end = find_text(buf, at, stop, delimiter)
                code, number = parse_int(buf, at, end)
                if code != OK or number < 0 or number > MAX_TYPE:
                    return set_fault(progress, BAD_FIELD, NODE_TYPE, at, end)
                types[owner, row] = number
                at = end + step if end < stop else stop + 1
        else:
            dst, end = second, second_end
            if has_edge_type:
                if second_code != OK or number < 0 or number > MAX_TYPE:
                    return set_fault(progress, BAD_FIELD, EDGE_TYPE, second, second_end)
                types[owner, row] = number
                if at > stop:
                    return set_fault(progress, MISSING_FIELD, DST, stop, stop)
                dst, end = at, find_text(buf, at, stop, delimiter)
                at = end + step if end < stop else stop + 1
            code, value = parse_uint(buf, dst, end)
            if code != OK:
                return set_fault(progress, BAD_FIELD, DST, dst, end)
            ids[owner, row, 1] = value
            byte_of[owner, row, 1] = dst

        if (is_node and has_node_weight) or (not is_node and has_edge_weight):
            field = NODE_WEIGHT if is_node else EDGE_WEIGHT
            if at > stop:
                return set_fault(progress, MISSING_FIELD, field, stop, stop)
            end = find_text(buf, at, stop, delimiter)
            code, weight = parse_float(buf, at, end)
            if code != OK or is_too_large(weight, weight_limit):
                return set_fault(progress, BAD_FIELD, field, at, end)
            weights[owner, row] = weight
            at = end + step if end < stop else stop + 1

        for column in range(2):
            if (column == 0 and has_created_at) or (column == 1 and has_removed_at):
                field = CREATED_AT if column == 0 else REMOVED_AT
                if at > stop:
                    return set_fault(progress, MISSING_FIELD, field, stop, stop)
                end = find_text(buf, at, stop, delimiter)
                code, number = parse_int(buf, at, end)
                if code != OK:
                    return set_fault(progress, BAD_FIELD, field, at, end)
                times[owner, row, column] = number
                at = end + step if end < stop else stop + 1

        # The features.
        num_defaults = node_slots.shape[0] if is_node else edge_slots.shape[0]
        slot = 0
        while at <= stop or slot < num_defaults:
            dtype, count, width = np.int64(IN_LINE), np.int64(IN_LINE), np.int64(NOT_SPARSE)
            if slot < num_defaults:
                if is_node:
                    dtype, count, width = node_slots[slot, 0], node_slots[slot, 1], node_slots[slot, 2]
                else:
                    dtype, count, width = edge_slots[slot, 0], edge_slots[slot, 1], edge_slots[slot, 2]
            progress[FAULT_SLOT] = slot
            if dtype == IN_LINE:
                if at > stop:
                    break
                end = find_text(buf, at, stop, delimiter)
                start = skip_blanks(buf, at, end)
                word_end = trim_blanks(buf, start, end)
                at = end + step if end < stop else stop + 1
                if start == word_end:  # a blank dtype ends the list
                    at = _skip_blank_columns(buf, at, stop, delimiter)
                    if at <= stop:
                        return set_fault(progress, AFTER_LAST_SLOT, 0, at, find_text(buf, at, stop, delimiter))
                    break
                word = find_word(buf, start, word_end, words, word_stops)
                if word < 0:
                    return set_fault(progress, UNKNOWN_DTYPE, 0, start, word_end)
                dtype = word_dtypes[word]
            progress[FAULT_DTYPE] = dtype
            blame = min(at, stop)
            blame_end = blame
            if count == IN_LINE:
                if at > stop:
                    return set_fault(progress, MISSING_FIELD, LENGTH, stop, stop)
                blame_end = find_text(buf, at, stop, delimiter)
                ok, count, width = _read_length(buf, at, blame_end, length_delimiter)
                if not ok:
                    return set_fault(progress, BAD_LENGTH, LENGTH, blame, blame_end)
                at = blame_end + step if blame_end < stop else stop + 1
            slot += 1
            if count == 0:
                continue

            progress[FAULT_COUNT] = count
            progress[FAULT_WIDTH] = width
            start = at
            size = count
            if dtype == TEXT_DTYPE:
                if count != 1 or width != NOT_SPARSE:
                    return set_fault(progress, BAD_TEXT_LENGTH, LENGTH, blame, blame_end)
                if at > stop:
                    return set_fault(progress, MISSING_FIELD, TEXT, stop, stop)
                size, end = _measure_text(buf, at, stop, delimiter, escape)
                if size < 0:
                    return set_fault(progress, OPEN_ESCAPE, TEXT, at, end)
            else:
                # No line has more columns than bytes + 1: so the product below cannot overflow.
                room = stop - min(at, stop) + 1
                needed = room + 1
                if count <= room and width <= room:
                    needed = count if width == NOT_SPARSE else count * (max(width, 1) + 1)
                num_columns, end = _skip_columns(buf, at, stop, delimiter, needed)
                if num_columns < needed:
                    progress[FAULT_COLUMNS] = num_columns
                    return set_fault(progress, TOO_FEW_VALUES, LENGTH, blame, blame_end)
            at = end + step if end < stop else stop + 1

            code = note_slot(owner, row, slot - 1, dtype, width, size, start, end, slots, groups, buckets, progress)
            if code != DONE:
                return code
        num_slots[owner, row] = slot
        progress[NODES + owner] += 1
    progress[POS] = following
    progress[SLOTS_BEFORE] = progress[SLOTS]
    return DONE


@njit(cache=True, nogil=True)
def _skip_columns(buf, at, stop, delimiter, num_columns):
    """Skip columns. Returns (how many there are, up to ``num_columns``; where the last one ends)."""
    end = at
    for i in range(num_columns):
        if at > stop:
            return i, end
        end = find_text(buf, at, stop, delimiter)
        at = end + delimiter.size if end < stop else stop + 1
    return num_columns, end


@njit(cache=True, nogil=True)
def _skip_blank_columns(buf, at, stop, delimiter):
    """Return the cursor of the first column that is not blank."""
    while at <= stop:
        end = find_text(buf, at, stop, delimiter)
        if skip_blanks(buf, at, end) < end:
            return at
        at = end + delimiter.size if end < stop else stop + 1
    return at


@njit(cache=True, nogil=True)
def _read_length(buf, start, stop, length_delimiter):
    """Read ``n`` or ``n/d`` to (ok, n, d); d is NOT_SPARSE where there is none."""
    middle = find_text(buf, start, stop, length_delimiter)
    code, count = parse_int(buf, start, middle)
    width = np.int64(NOT_SPARSE)
    if code == OK and middle < stop:
        code, width = parse_int(buf, middle + length_delimiter.size, stop)
        if width < 0:
            return False, count, width
    return code == OK and count >= 0, count, width


@njit(cache=True, nogil=True)
def _measure_text(buf, at, stop, delimiter, escape):
    """Measure a text: a column that ends with an odd number of escapes goes on in the next, the last escape for the delimiter.

    Returns (number of bytes, end of its last column); -1 bytes where the line ends with an open escape.
    """
    size = 0
    while True:
        end = find_text(buf, at, stop, delimiter)
        num_escapes = 0
        back = end - escape.size
        while back >= at and matches(buf, back, end, escape):
            num_escapes += 1
            back -= escape.size
        size += end - at
        if num_escapes % 2 == 0:
            return size, end
        if end == stop:
            return -1, end
        size += delimiter.size - escape.size
        at = end + delimiter.size
