"""Walk DeepGNN's TSV rows: the fixed columns become numbers, features are noted down as slots. A kernel never raises.

Source: ``TsvDecoder`` of DeepGNN.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.deepgnn.slots import EDGE, NODE, NOT_SPARSE, TEXT_DTYPE, find_word, is_too_large
from graphprep.kernels.cpu.deepgnn.walk import (
    BAD_FIELD,
    DONE,
    EDGES,
    EDGES_BEFORE,
    FAULT_COUNT,
    FAULT_SLOT,
    FIRST_OWN,
    MAX_TYPE,
    NODES,
    POS,
    SLOTS,
    SLOTS_BEFORE,
    Slots,
    Words,
    note_slot,
    set_fault,
)
from graphprep.kernels.cpu.text.numbers import (
    EMPTY,
    OK,
    OVERFLOW,
    find_byte,
    find_line,
    parse_float,
    parse_int,
    parse_uint,
    skip_blanks,
)

# What may be wrong with a row, beside BAD_FIELD.
(OPEN_QUOTE, AFTER_QUOTE, EXTRA_COLUMN, NO_COLON, UNKNOWN_CODE, NO_VALUES) = range(FIRST_OWN, FIRST_OWN + 6)
EMPTY_NEIGHBOR, FEW_NEIGHBOR_FIELDS, MANY_NEIGHBOR_FIELDS = range(FIRST_OWN + 6, FIRST_OWN + 9)

# Fields, for FAULT_FIELD.
NODE_ID, NODE_TYPE, NODE_WEIGHT, DST, EDGE_TYPE, EDGE_WEIGHT = range(6)

NUM_COLUMNS = 5
_TAB, _QUOTE, _COMMA, _COLON, _SEMICOLON, _BAR, _SPACE = 9, 34, 44, 58, 59, 124, 32


class Nodes(NamedTuple):
    """Where nodes go, a row each; ``at`` is the byte that the ID stands at."""

    ids: NDArray[np.uint64]
    at: NDArray[np.int64]
    types: NDArray[np.int32]
    weights: NDArray[np.float64]
    num_slots: NDArray[np.int32]


class Edges(NamedTuple):
    """Where edges go, a row each; ``at`` is the byte that ``dst`` stands at, ``record`` the row of the node it stands with."""

    dst: NDArray[np.uint64]
    at: NDArray[np.int64]
    types: NDArray[np.int32]
    weights: NDArray[np.float64]
    num_slots: NDArray[np.int32]
    record: NDArray[np.int64]


def walk(
    buf: NDArray[np.uint8],
    weight_limit: float,
    no_weight: float,
    nodes: Nodes,
    edges: Edges,
    found: Slots,
    codes: Words,
    progress: NDArray[np.int64],
) -> int:
    """Read all rows from ``progress[POS]`` on, or up to a faulty one. ``codes`` are those that stand before values.

    ``no_weight`` is the weight of a node that states none. ``buf`` is written to: doubled quotes inside a quoted cell close
    ranks. ``nodes`` has a row for every line, ``edges`` one for every line and bar. On FULL (grow ``found``) a further call
    goes on with that row: it must find the text as it was before.
    """
    cells = np.empty((4, NUM_COLUMNS), np.int64)
    return int(_walk(buf, weight_limit, no_weight, *nodes, *edges, *found, *codes, *cells, progress))


@njit(cache=True, nogil=True)
def _walk(
    buf, weight_limit, no_weight, node_ids, node_at, node_types, node_weights, node_num_slots,
    edge_dst, edge_at, edge_types, edge_weights, edge_num_slots, record,
    slots, groups, buckets, words, word_stops, word_dtypes, field_starts, field_stops, starts, stops, progress,
):  # fmt: skip
    following = progress[POS]
    progress[SLOTS] = progress[SLOTS_BEFORE]
    progress[EDGES] = progress[EDGES_BEFORE]
    while following < buf.size:
        at = following
        progress[POS] = at
        progress[SLOTS_BEFORE] = progress[SLOTS]
        progress[EDGES_BEFORE] = progress[EDGES]
        stop, following = find_line(buf, at)
        if skip_blanks(buf, at, stop) == stop:
            continue
        code = _split_row(buf, at, stop, starts, stops, progress)
        if code != DONE:
            return code
        row = progress[NODES]

        code, value = parse_uint(buf, starts[0], stops[0])
        if code != OK:
            return set_fault(progress, BAD_FIELD, NODE_ID, starts[0], stops[0])
        node_ids[row] = value
        node_at[row] = starts[0]

        code, number = parse_int(buf, starts[1], stops[1])
        if code != EMPTY and (code != OK or number < 0 or number > MAX_TYPE):
            return set_fault(progress, BAD_FIELD, NODE_TYPE, starts[1], stops[1])
        node_types[row] = number

        code, weight = parse_float(buf, starts[2], stops[2])
        if code not in (EMPTY, OK) or is_too_large(weight, weight_limit):
            return set_fault(progress, BAD_FIELD, NODE_WEIGHT, starts[2], stops[2])
        node_weights[row] = no_weight if code == EMPTY else weight

        code, num_slots = _read_features(
            buf, starts[3], stops[3], NODE, row, words, word_stops, word_dtypes, slots, groups, buckets, progress
        )
        if code != DONE:
            return code
        node_num_slots[row] = num_slots
        if starts[4] < stops[4]:
            code = _read_neighbors(
                buf,
                starts[4],
                stops[4],
                value,
                row,
                weight_limit,
                field_starts,
                field_stops,
                edge_dst,
                edge_at,
                edge_types,
                edge_weights,
                edge_num_slots,
                record,
                words,
                word_stops,
                word_dtypes,
                slots,
                groups,
                buckets,
                progress,
            )
            if code != DONE:
                return code
        progress[NODES] += 1
    progress[POS] = following
    progress[SLOTS_BEFORE] = progress[SLOTS]
    progress[EDGES_BEFORE] = progress[EDGES]
    return DONE


@njit(cache=True, nogil=True)
def _split_row(buf, at, stop, starts, stops, progress):
    """Find the five cells: a cell that begins with a quote ends with one, and two inside stand for one (the rules of csv)."""
    for column in range(NUM_COLUMNS):
        starts[column] = stop
        stops[column] = stop
    column = 0
    while True:
        start = at
        if at < stop and buf[at] == _QUOTE:
            start += 1
            at += 1
            end = at
            while at < stop and (buf[at] != _QUOTE or (at + 1 < stop and buf[at + 1] == _QUOTE)):
                at += buf[at] == _QUOTE
                if end < at:
                    buf[end] = buf[at]
                end += 1
                at += 1
            if at >= stop:
                return set_fault(progress, OPEN_QUOTE, 0, start - 1, stop)
            at += 1
            if at < stop and buf[at] != _TAB:
                return set_fault(progress, AFTER_QUOTE, 0, at, find_byte(buf, at, stop, _TAB))
        else:
            at = find_byte(buf, at, stop, _TAB)
            end = at
        if column < NUM_COLUMNS:
            starts[column] = start
            stops[column] = end
        elif end > start:
            return set_fault(progress, EXTRA_COLUMN, 0, start, end)
        if at == stop:
            return DONE
        at += 1
        column += 1


@njit(cache=True, nogil=True)
def _read_features(buf, at, stop, owner, row, words, word_stops, word_dtypes, slots, groups, buckets, progress):
    """Note the slots of ``code:values;code:values``. Returns (code, number of slots)."""
    slot = 0
    if at == stop:
        return DONE, slot
    while True:
        end = find_byte(buf, at, stop, _SEMICOLON)
        if end > at:
            progress[FAULT_SLOT] = slot
            code = _read_slot(buf, at, end, owner, row, slot, words, word_stops, word_dtypes, slots, groups, buckets, progress)
            if code != DONE:
                return code, slot
        slot += 1
        if end == stop:
            return DONE, slot
        at = end + 1


@njit(cache=True, nogil=True)
def _read_slot(buf, at, end, owner, row, slot, words, word_stops, word_dtypes, slots, groups, buckets, progress):
    """Note one ``code:values``."""
    colon = find_byte(buf, at, end, _COLON)
    if colon == end:
        return set_fault(progress, NO_COLON, 0, at, end)
    word = find_word(buf, at, colon, words, word_stops)
    if word < 0:
        return set_fault(progress, UNKNOWN_CODE, 0, at, colon)
    dtype = word_dtypes[word]
    start = colon + 1
    count = end - start
    if dtype != TEXT_DTYPE:
        start += start < end and buf[start] == _SPACE
        if start == end:
            return set_fault(progress, NO_VALUES, 0, at, end)
        count = 1
        for i in range(start, end):
            count += buf[i] == _SPACE
    return note_slot(owner, row, slot, dtype, NOT_SPARSE, count, start, end, slots, groups, buckets, progress)


@njit(cache=True, nogil=True)
def _read_neighbors(
    buf,
    at,
    stop,
    node_id,
    row,
    weight_limit,
    field_starts,
    field_stops,
    edge_dst,
    edge_at,
    edge_types,
    edge_weights,
    edge_num_slots,
    record,
    words,
    word_stops,
    word_dtypes,
    slots,
    groups,
    buckets,
    progress,
):
    """Read ``dst,type,weight,features|…`` and, where a neighbour can be nothing else, ``src,dst,weight,type,features``."""
    while True:
        end = find_byte(buf, at, stop, _BAR)
        if at == end:
            return set_fault(progress, EMPTY_NEIGHBOR, DST, at, end)
        num_fields = 0
        field = at
        while True:
            field_end = find_byte(buf, field, end, _COMMA)
            if num_fields < NUM_COLUMNS:
                field_starts[num_fields] = field
                field_stops[num_fields] = field_end
            num_fields += 1
            if field_end == end:
                break
            field = field_end + 1
        progress[FAULT_COUNT] = num_fields
        if num_fields < 2:
            return set_fault(progress, FEW_NEIGHBOR_FIELDS, DST, at, end)
        dst, kind, weight, features = 0, 1, 2, 3
        if num_fields > 4:
            if num_fields > 5 or not _is_manual_form(buf, field_starts, field_stops, node_id):
                return set_fault(progress, MANY_NEIGHBOR_FIELDS, DST, at, end)
            dst, weight, kind, features = 1, 2, 3, 4

        k = progress[EDGES]
        code, value = parse_uint(buf, field_starts[dst], field_stops[dst])
        if code != OK:
            return set_fault(progress, BAD_FIELD, DST, field_starts[dst], field_stops[dst])
        edge_dst[k] = value
        edge_at[k] = field_starts[dst]
        record[k] = row
        code, number = parse_int(buf, field_starts[kind], field_stops[kind])
        if code != OK or number < 0 or number > MAX_TYPE:
            return set_fault(progress, BAD_FIELD, EDGE_TYPE, field_starts[kind], field_stops[kind])
        edge_types[k] = number
        edge_weights[k] = 0.0
        if num_fields > weight:
            code, weight_value = parse_float(buf, field_starts[weight], field_stops[weight])
            if code not in (EMPTY, OK) or is_too_large(weight_value, weight_limit):
                return set_fault(progress, BAD_FIELD, EDGE_WEIGHT, field_starts[weight], field_stops[weight])
            edge_weights[k] = weight_value
        edge_num_slots[k] = 0
        if num_fields > features:
            start = skip_blanks(buf, field_starts[features], field_stops[features])
            code, num_slots = _read_features(
                buf, start, field_stops[features], EDGE, k, words, word_stops, word_dtypes, slots, groups, buckets, progress
            )
            if code != DONE:
                return code
            edge_num_slots[k] = num_slots
        progress[EDGES] += 1
        if end == stop:
            return DONE
        at = end + 1


@njit(cache=True, nogil=True)
def _is_manual_form(buf, starts, stops, node_id):
    """Say whether five fields can only be source, destination, weight, type, features: as the manual of DeepGNN has it."""
    code, src = parse_uint(buf, starts[0], stops[0])
    kind_code, _ = parse_int(buf, starts[3], stops[3])
    return code == OK and src == node_id and kind_code in (OK, OVERFLOW)
