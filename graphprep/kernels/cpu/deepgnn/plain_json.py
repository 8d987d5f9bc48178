"""Scan plain records of DeepGNN's JSON to rows, features included, in one go. A kernel never raises.

Plain is a record with known keys alone, once each and without escapes, whose features are flat lists of numbers or texts, that
states no times, and whose ``edge`` and ``neighbor``, where both are there, list the same edges in the same order.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import (
    MOST_DIGITS,
    WORD,
    address_of,
    digits_at,
    load_byte,
    load_word,
    non_digits,
    trailing_zeros,
)
from graphprep.kernels.cpu.deepgnn.json_keys import (
    BINARY_GROUP,
    DENSE_GROUP,
    GROUP_DTYPES,
    KEY_DST_ID,
    KEY_EDGE,
    KEY_EDGE_TYPE,
    KEY_NEIGHBOR,
    KEY_NODE_ID,
    KEY_NODE_TYPE,
    KEY_NODE_WEIGHT,
    KEY_SRC_ID,
    KEY_WEIGHT,
    SPARSE_GROUP,
    name_between,
)
from graphprep.kernels.cpu.deepgnn.json_records import MAX_TYPE
from graphprep.kernels.cpu.deepgnn.plain_rows import (
    DONE,
    EDGES,
    FIRST_FLOAT,
    FULL,
    HIGHEST,
    LIMITS,
    LOWEST,
    NEW_VALUES,
    NODES,
    ODD,
    POS,
    UINT64,
    Room,
    keep_new,
    note_slot,
    note_text,
    read_floats,
    read_short,
    start_row,
)
from graphprep.kernels.cpu.deepgnn.slots import DTYPES, EDGE, NODE, TEXT_DTYPE, is_too_large
from graphprep.kernels.cpu.text.numbers import OK, parse_float, read_decimal

_TAB, _LF, _CR, _SPACE, _QUOTE, _PLUS, _COMMA, _MINUS, _POINT, _ZERO = 9, 10, 13, 32, 34, 43, 44, 45, 46, 48
_COLON, _OPEN_LIST, _BACKSLASH, _CLOSE_LIST, _OPEN_OBJECT, _CLOSE_OBJECT = 58, 91, 92, 93, 123, 125
_U = np.uint64
_ODD, _FULL = -1, -2  # in place of an address: the record is not plain; there is no room for it
_MOST_SLOTS = 1 << 12
_MOST_TYPES = 64  # of one record's ``neighbor``
_FEW_KEYS = 32  # compared with each other; more go through a hash table

_NODE_NEEDS = 1 << KEY_NODE_ID | 1 << KEY_NODE_TYPE | 1 << KEY_NODE_WEIGHT
_EDGE_NEEDS = 1 << KEY_SRC_ID | 1 << KEY_DST_ID | 1 << KEY_EDGE_TYPE | 1 << KEY_WEIGHT
_DTYPE_OF_GROUP = np.array(
    [DTYPES.index(dtype) for _, dtype in GROUP_DTYPES] + [-1] * (BINARY_GROUP - SPARSE_GROUP) + [TEXT_DTYPE], np.int64
)


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text, "little"))


_SRC, _DST, _WEIGHT, _EDGE_TY, _PE = (_word(text) for text in (b'src_id":', b'dst_id":', b'weight":', b"edge_typ", b'e":'))
# {"src_id": 0, "dst_id": 5, "edge_type": 1, "weight": 0.5: the words that begin and end what stands between the numbers
_OPEN_SRC, _SRC_END = _word(b'{"src_id'), _word(b'rc_id": ')
_OPEN_DST, _DST_END = _word(b', "dst_i'), _word(b'st_id": ')
_OPEN_TYPE, _TYPE_END = _word(b', "edge_'), _word(b'_type": ')
_OPEN_WEIGHT, _WEIGHT_END = _word(b', "weigh'), _word(b'eight": ')
_FLOAT_FE, _ATURE, _BEFORE_WEIGHT = _word(b"float_fe"), _word(b'ature":'), _word(b'": ')
_THREE_BYTES, _FOUR_BYTES, _SEVEN_BYTES = (_U((1 << 8 * size) - 1) for size in (3, 4, 7))
_NULL, _NAN = _word(b"null"), _word(b"NaN")


class Neighbors(NamedTuple):
    """Room for what ``neighbor`` says of a record, and what else a scan notes on the way.

    ``dst``, ``types`` and ``weights`` are as long as a room's edges; ``table`` (int64) is a power of two, at least four times
    as long; ``seen`` (int64[2^12]) says which owner had a slot last.
    """

    dst: NDArray[np.uint64]
    types: NDArray[np.int32]
    weights: NDArray[np.float64]
    table: NDArray[np.int64]
    seen: NDArray[np.int64]


def make_neighbors(num_edges: int) -> Neighbors:
    """Allocate; what is not written to is never touched."""
    table = np.empty(4 << max(num_edges - 1, 1).bit_length(), np.int64)
    return Neighbors(
        dst=np.empty(num_edges, np.uint64),
        types=np.empty(num_edges, np.int32),
        weights=np.empty(num_edges, np.float64),
        table=table,
        seen=np.empty(_MOST_SLOTS, np.int64),
    )


def scan(buf: Any, last: int, weight_limit: float, room: Room, neighbors: Neighbors, progress: Any) -> int:
    """Read the lines from ``progress[POS]`` on that begin before ``last`` to ``room``; says why it stopped.

    ``last`` begins a line; from there on, there are at least as many bytes as PADDING has.
    """
    return int(_scan(buf, last, weight_limit, *room, *neighbors, progress))


# Cursors are addresses; _ODD and _FULL say why there is none.


@njit(cache=True, nogil=True)
def _scan(
    buf, last, weight_limit,
    node_ids, node_types, node_weights, node_num_slots, node_times,
    edge_src, edge_dst, edge_types, edge_weights, edge_num_slots, edge_times,
    slots, groups, buckets, values, texts,
    others_dst, others_types, others_weights, table, seen, progress,
):  # fmt: skip
    base = address_of(buf)
    last += base
    num_nodes, num_edges = progress[NODES], progress[EDGES]
    line = base + progress[POS]
    seen[:] = -1
    owner = np.int64(0)  # nodes and edges with features are numbered
    at = line
    while line < last:
        at = _skip_blanks(line)
        if load_byte(at) == _LF:
            line = at + 1
            continue
        if num_nodes == node_ids.size:
            at = np.int64(_FULL)
            break
        start_row(progress)
        mask = 0
        node_id, kind, weight, num_slots = _U(0), _U(0), 0.0, np.int64(0)
        edge_end, num_others = num_edges, 0
        node_owner = owner
        owner += 1
        at = _open(at, _OPEN_OBJECT)
        while at >= 0:
            name, at = _key(at)
            if at < 0 or mask >> name & 1:
                at = np.int64(_ODD)
                break
            mask |= 1 << name
            if name == KEY_NODE_ID:
                at, node_id = _uint(at)
            elif name == KEY_NODE_TYPE:
                at, kind = _uint(at)
            elif name == KEY_NODE_WEIGHT:
                at, weight = _float(buf, base, at)
            elif name == KEY_EDGE:
                at, edge_end, owner = _edges(
                    buf, base, at, weight_limit, num_edges, owner, edge_src, edge_dst, edge_types, edge_weights, edge_num_slots,
                    slots, groups, buckets, values, texts, seen, progress,
                )  # fmt: skip
            elif name == KEY_NEIGHBOR:
                at, num_others = _neighbors(buf, base, at, weight_limit, others_dst, others_types, others_weights, table)
            elif name >= DENSE_GROUP:
                at, num_slots = _group(
                    buf, base, at, _DTYPE_OF_GROUP[name - DENSE_GROUP], NODE, num_nodes, node_owner, num_slots,
                    slots, groups, buckets, values, texts, seen, progress,
                )  # fmt: skip
            else:
                at = np.int64(_ODD)
            at, is_last = _behind_value(at, _CLOSE_OBJECT)
            if is_last:
                break
        if at < 0:
            break
        at = _skip_blanks(at)
        is_edge, is_neighbor = mask >> KEY_EDGE & 1, mask >> KEY_NEIGHBOR & 1
        if (
            load_byte(at) != _LF
            or mask & _NODE_NEEDS != _NODE_NEEDS
            or not (is_edge or is_neighbor)
            or kind > _U(MAX_TYPE)
            or is_too_large(weight, weight_limit)
        ):
            at = np.int64(_ODD)
            break
        if is_neighbor:
            edge_end = _take_neighbors(
                node_id, num_edges, edge_end, is_edge, num_others, edge_src, edge_dst, edge_types, edge_weights, edge_num_slots,
                others_dst, others_types, others_weights,
            )  # fmt: skip
            if edge_end < 0:
                at = edge_end
                break
        node_ids[num_nodes] = node_id
        node_types[num_nodes] = np.int64(kind)
        node_weights[num_nodes] = weight
        node_num_slots[num_nodes] = num_slots
        num_nodes += 1
        num_edges = edge_end
        keep_new(progress)
        line = at + 1
    progress[POS], progress[NODES], progress[EDGES] = line - base, num_nodes, num_edges
    if at < 0:
        return FULL if at == _FULL else ODD
    return DONE


@njit(cache=True, nogil=True, forceinline=True)
def _skip_blanks(at):
    byte = load_byte(at)
    while byte in (_SPACE, _TAB, _CR):
        at += 1
        byte = load_byte(at)
    return at


@njit(cache=True, nogil=True, forceinline=True)
def _open(at, bracket):
    """Return what follows an opening bracket."""
    return _skip_blanks(at + 1) if load_byte(at) == bracket else np.int64(_ODD)


@njit(cache=True, nogil=True, forceinline=True)
def _behind_value(at, bracket):
    """Pass what follows a value: (what follows, whether that is behind the closing bracket)."""
    if at < 0:
        return at, True
    at = _skip_blanks(at)
    byte = load_byte(at)
    if byte == _COMMA:
        return _skip_blanks(at + 1), False
    return at + 1 if byte == bracket else np.int64(_ODD), True


@njit(cache=True, nogil=True, forceinline=True)
def _colon(at):
    """Return where the value begins behind a key that ends at ``at``."""
    at = _skip_blanks(at)
    return _skip_blanks(at + 1) if load_byte(at) == _COLON else np.int64(_ODD)


@njit(cache=True, nogil=True)
def _key(at):
    """Read a key: (its name, where the value begins)."""
    if load_byte(at) != _QUOTE:
        return 0, np.int64(_ODD)
    start = at = at + 1
    byte = load_byte(at)
    while byte != _QUOTE:
        if byte == _BACKSLASH or byte < _SPACE:
            return 0, np.int64(_ODD)
        at += 1
        byte = load_byte(at)
    name = name_between(start, at)
    return (name, _colon(at + 1)) if name >= 0 else (0, np.int64(_ODD))


@njit(cache=True, nogil=True, forceinline=True)
def _uint(at):
    """Read an integer: (end, uint64). What may not follow it is not looked at."""
    size = trailing_zeros(non_digits(at))
    if size == 0 or size > MOST_DIGITS or (size > 1 and load_byte(at) == _ZERO):
        return np.int64(_ODD), _U(0)
    return at + size, digits_at(at, size)


@njit(cache=True, nogil=True, forceinline=True)
def _float(buf, base, at):
    """Read a number: (end, float64)."""
    first = at + (load_byte(at) == _MINUS)
    value, end = read_decimal(at)
    if end < 0 or (load_byte(first) == _ZERO and 0 <= load_byte(first + 1) - _ZERO <= 9):
        return _any_float(buf, base, at)
    return end, value


@njit(cache=True, nogil=True)
def _any_float(buf, base, at):
    """Read a number of any length, or NaN: (end, float64)."""
    if load_word(at) & _THREE_BYTES == _NAN:
        return at + 3, np.nan
    end = at + (load_byte(at) == _MINUS)
    size = _num_digits(end)
    if size == 0 or (size > 1 and load_byte(end) == _ZERO):
        return np.int64(_ODD), 0.0
    end += size
    if load_byte(end) == _POINT:
        size = _num_digits(end + 1)
        if size == 0:
            return np.int64(_ODD), 0.0
        end += 1 + size
    if load_byte(end) | 32 == 101:  # e
        end += 1
        end += load_byte(end) == _MINUS or load_byte(end) == _PLUS
        size = _num_digits(end)
        if size == 0:
            return np.int64(_ODD), 0.0
        end += size
    code, value = parse_float(buf, at - base, end - base)
    return end if code == OK else np.int64(_ODD), value


@njit(cache=True, nogil=True)
def _num_digits(at):
    size = 0
    while 0 <= load_byte(at + size) - _ZERO <= 9:
        size += 1
    return size


@njit(cache=True, nogil=True)
def _edges(
    buf, base, at, weight_limit, row, owner, edge_src, edge_dst, edge_types, edge_weights, edge_num_slots,
    slots, groups, buckets, values, texts, seen, progress,
):  # fmt: skip
    """Read a list of edges to the rows from ``row`` on: (what follows, the row behind the last one, the next owner)."""
    at = _open(at, _OPEN_LIST)
    if at >= 0 and load_byte(at) == _CLOSE_LIST:
        return at + 1, row, owner
    is_last = False
    while at >= 0 and not is_last:
        if row == edge_src.size:
            return np.int64(_FULL), row, owner
        mask = 0
        num_slots = np.int64(0)
        end, src, dst, kind, weight = _usual_edge(at)
        if end > at:
            mask = _EDGE_NEEDS
            at, is_last = _behind_value(end, _CLOSE_OBJECT)
        else:
            at, is_last = _open(at, _OPEN_OBJECT), False
        while at >= 0 and not is_last:
            word = load_word(at + 1)
            if load_byte(at) != _QUOTE:
                at = np.int64(_ODD)
                break
            if word == _SRC:
                name, at = KEY_SRC_ID, _skip_blanks(at + 9)
            elif word == _DST:
                name, at = KEY_DST_ID, _skip_blanks(at + 9)
            elif word == _WEIGHT:
                name, at = KEY_WEIGHT, _skip_blanks(at + 9)
            elif word == _EDGE_TY and load_word(at + 9) & _THREE_BYTES == _PE:
                name, at = KEY_EDGE_TYPE, _skip_blanks(at + 12)
            elif word == _FLOAT_FE and load_word(at + 9) & _SEVEN_BYTES == _ATURE:
                name, at = DENSE_GROUP, _skip_blanks(at + 16)
            else:
                name, at = _key(at)
                if at < 0:
                    break
            if mask >> name & 1:
                at = np.int64(_ODD)
                break
            mask |= 1 << name
            if name == KEY_SRC_ID:
                at, src = _uint(at)
            elif name == KEY_DST_ID:
                at, dst = _uint(at)
            elif name == KEY_EDGE_TYPE:
                at, kind = _uint(at)
            elif name == KEY_WEIGHT:
                at, weight = _float(buf, base, at)
            elif name >= DENSE_GROUP:
                at, num_slots = _group(
                    buf, base, at, _DTYPE_OF_GROUP[name - DENSE_GROUP], EDGE, row, owner, num_slots,
                    slots, groups, buckets, values, texts, seen, progress,
                )  # fmt: skip
            else:
                at = np.int64(_ODD)
            at, is_last = _behind_value(at, _CLOSE_OBJECT)
        if at >= 0 and (mask & _EDGE_NEEDS != _EDGE_NEEDS or kind > _U(MAX_TYPE) or is_too_large(weight, weight_limit)):
            at = np.int64(_ODD)
        if at < 0:
            break
        k = _U(row)
        edge_src[k] = src
        edge_dst[k] = dst
        edge_types[k] = np.int64(kind)
        edge_weights[k] = weight
        edge_num_slots[k] = num_slots
        row += 1
        owner += 1
        at, is_last = _behind_value(at, _CLOSE_LIST)
    return at, row, owner


@njit(cache=True, nogil=True, forceinline=True)
def _usual_edge(at):
    """Read an edge as ``json.dumps`` writes one, up to its weight: (where that ends, src, dst, type, weight).

    The end is ``at`` where it is written in another way.
    """
    none = (at, _U(0), _U(0), _U(0), 0.0)
    if load_word(at) != _OPEN_SRC or load_word(at + 3) != _SRC_END:
        return none
    end, src = _uint(at + 11)
    if end < 0 or load_word(end) != _OPEN_DST or load_word(end + 4) != _DST_END:
        return none
    end, dst = _uint(end + 12)
    if end < 0 or load_word(end) != _OPEN_TYPE or load_word(end + 7) != _TYPE_END:
        return none
    end, kind = _uint(end + 15)
    if end < 0 or load_word(end) != _OPEN_WEIGHT or load_word(end + 4) != _WEIGHT_END:
        return none
    end, weight = _usual_float(end + 12)
    return (at, _U(0), _U(0), _U(0), 0.0) if end < 0 else (end, src, dst, kind, weight)


@njit(cache=True, nogil=True, forceinline=True)
def _usual_float(at):
    """Read ``0.5``, where eight bytes hold it: (end, float64); the end is _ODD where it is something else."""
    size, value = read_short(at, non_digits(at))
    last = load_byte(at + size)
    # A zero in front of other digits is malformed.
    if size < 0 or last not in (_COMMA, _CLOSE_OBJECT) or (load_byte(at) == _ZERO and _is_digit(at + 1)):
        return np.int64(_ODD), 0.0
    return at + size, value


@njit(cache=True, nogil=True, forceinline=True)
def _is_digit(at):
    return 0 <= load_byte(at) - _ZERO <= 9


@njit(cache=True, nogil=True)
def _neighbors(buf, base, at, weight_limit, dst, types, weights, table):
    """Read ``{"<edge type>": {"<dst>": weight}}``: (what follows, number of neighbours)."""
    count = np.int64(0)
    at = _open(at, _OPEN_OBJECT)
    if at >= 0 and load_byte(at) == _CLOSE_OBJECT:
        return at + 1, count
    is_last = False
    last_kind = np.int64(-1)
    while at >= 0 and not is_last:
        at, number = _number_key(at)
        if at >= 0:
            # Types in another order may stand twice: rare.
            at = _open(at, _OPEN_OBJECT) if last_kind < np.int64(number) <= MAX_TYPE else np.int64(_ODD)
        if at < 0:
            break
        last_kind = np.int64(number)
        first = count
        ascending = True
        is_end = load_byte(at) == _CLOSE_OBJECT
        at += is_end
        while not is_end:
            if count == dst.size:
                return np.int64(_FULL), count
            k = _U(count)
            end, number, weights[k] = _usual_neighbor(at)
            if end == at:
                at, number = _number_key(at)
                if at < 0:
                    break
                end, weights[k] = _float(buf, base, at)
            at = end
            dst[k] = number
            types[k] = last_kind
            if at < 0 or is_too_large(weights[k], weight_limit):
                at = np.int64(_ODD)
                break
            if count > first and number <= dst[k - _U(1)]:
                ascending = False
            count += 1
            at, is_end = _behind_value(at, _CLOSE_OBJECT)
        if at >= 0 and not ascending and _has_twice(dst, first, count, table):
            at = np.int64(_ODD)
        at, is_last = _behind_value(at, _CLOSE_OBJECT)
    return at, count


@njit(cache=True, nogil=True)
def _take_neighbors(
    node_id, first, stop, are_listed, num_others, edge_src, edge_dst, edge_types, edge_weights, edge_num_slots,
    others_dst, others_types, others_weights,
):  # fmt: skip
    """Make neighbours the rows from ``first`` on, or compare them with those up to ``stop``: the row behind the last one."""
    if not are_listed:
        stop = first + num_others
        if stop > edge_src.size:
            return np.int64(_FULL)
        for i in range(num_others):
            k = _U(first + i)
            edge_src[k] = node_id
            edge_dst[k] = others_dst[_U(i)]
            edge_types[k] = others_types[_U(i)]
            edge_weights[k] = others_weights[_U(i)]
            edge_num_slots[k] = 0
        return stop
    differ = num_others != stop - first
    for i in range(0 if differ else num_others):
        k = _U(first + i)
        differ = (
            differ
            or edge_src[k] != node_id
            or edge_dst[k] != others_dst[_U(i)]
            or edge_types[k] != others_types[_U(i)]
            or edge_weights[k] != others_weights[_U(i)]
        )
    return np.int64(_ODD) if differ else stop


@njit(cache=True, nogil=True, forceinline=True)
def _usual_neighbor(at):
    """Read ``"2": 0.5``, where 32 bytes hold it and what follows: (end, dst, weight).

    The end is ``at`` where it is something else. One look tells where all ends, and there are no branches on how long it is.
    """
    others = non_digits(at) >> _U(1)  # behind the opening quote
    size = min(trailing_zeros(others), 2 * WORD + 1)
    first = at + size + 4
    num_chars, weight = read_short(first, others >> _U(size + 3))
    last = load_byte(first + num_chars)
    wrong = (load_byte(at) ^ _QUOTE) | np.int64((load_word(at + 1 + size) & _THREE_BYTES) ^ _BEFORE_WEIGHT)
    wrong |= (last != _COMMA) & (last != _CLOSE_OBJECT)
    wrong |= (load_byte(first) == _ZERO) & _is_digit(first + 1)
    # As an unsigned number, a size of 0 is large, too.
    if wrong != 0 or num_chars < 0 or _U(size - 1) >= 2 * WORD:
        return at, _U(0), 0.0
    return first + num_chars, digits_at(at + 1, size), weight


@njit(cache=True, nogil=True, forceinline=True)
def _number_key(at):
    """Read ``"12":``, an integer as a key: (where the value begins, uint64)."""
    size = trailing_zeros(non_digits(at + 1))
    if load_byte(at) != _QUOTE or size == 0 or size > MOST_DIGITS or load_byte(at + 1 + size) != _QUOTE:
        return np.int64(_ODD), _U(0)
    return _colon(at + 2 + size), digits_at(at + 1, size)


@njit(cache=True, nogil=True)
def _has_twice(numbers, start, stop, table):
    """Say whether a number stands twice in [start, stop)."""
    if stop - start <= _FEW_KEYS:
        for i in range(start, stop):
            for j in range(start, i):
                if numbers[i] == numbers[j]:
                    return True
        return False
    size = 64
    while size < 2 * (stop - start):
        size *= 2
    for i in range(size):
        table[i] = -1
    for i in range(start, stop):
        place = np.int64((numbers[i] * _U(0x9E3779B97F4A7C15)) >> _U(32)) & (size - 1)
        while table[place] >= 0:
            if numbers[table[place]] == numbers[i]:
                return True
            place = (place + 1) & (size - 1)
        table[place] = i
    return False


@njit(cache=True, nogil=True)
def _group(
    buf, base, at, dtype, owner_kind, row, owner, num_slots, slots, groups, buckets, values, texts, seen, progress
):  # fmt: skip
    """Read a feature group: (what follows, the number of slots of its node or edge)."""
    if load_word(at) & _FOUR_BYTES == _NULL:
        return at + 4, num_slots
    at = _open(at, _OPEN_OBJECT)
    if at >= 0 and load_byte(at) == _CLOSE_OBJECT:
        return at + 1, num_slots
    if dtype < 0:
        return np.int64(_ODD), num_slots
    is_last = False
    while at >= 0 and not is_last:
        at, number = _number_key(at)
        slot = np.int64(number)
        if at < 0 or number >= _U(_MOST_SLOTS) or seen[slot] == owner:
            return np.int64(_ODD), num_slots
        seen[slot] = owner
        num_slots = max(num_slots, slot + 1)
        if dtype == TEXT_DTYPE and load_byte(at) == _QUOTE:
            start = at + 1
            at = _text_end(start)
            code = DONE if at < 0 else note_text(start, at, owner_kind, row, slot, slots, groups, buckets, texts, progress)
            at += at >= 0
        else:
            first = progress[NEW_VALUES]
            size, at = _numbers(buf, base, at, dtype, values, first)
            code = DONE
            if at >= 0 and size > 0:
                progress[NEW_VALUES] = first + size
                code = note_slot(owner_kind, row, slot, dtype, size, first, slots, groups, buckets, progress)
        if code != DONE:
            return np.int64(_FULL), num_slots
        at, is_last = _behind_value(at, _CLOSE_OBJECT)
    return at, num_slots


@njit(cache=True, nogil=True)
def _text_end(at):
    """Return the closing quote of a text of printable ASCII without escapes."""
    byte = load_byte(at)
    while byte != _QUOTE:
        if byte < _SPACE or byte == _BACKSLASH or byte >= 128:
            return np.int64(_ODD)
        at += 1
        byte = load_byte(at)
    return at


@njit(cache=True, nogil=True)
def _numbers(buf, base, at, dtype, values, first):
    """Read a number, or a list of numbers: (how many, what follows)."""
    size = np.int64(0)
    most = values.size - first
    is_list = load_byte(at) == _OPEN_LIST
    if is_list:
        at = _skip_blanks(at + 1)
        if load_byte(at) == _CLOSE_LIST:
            return size, at + 1
    if dtype == TEXT_DTYPE:
        return size, np.int64(_ODD)
    limit = LIMITS[dtype - FIRST_FLOAT] if dtype >= FIRST_FLOAT else 0.0
    is_last = False
    while not is_last:
        if size == most:
            return size, np.int64(_FULL)
        end = np.int64(-1)
        if dtype >= FIRST_FLOAT:
            if is_list:
                size, at, end = read_floats(at, _COMMA, most, limit, True, values, first, size)
                if size == most:
                    return size, np.int64(_FULL)
            if end < 0:
                if load_word(at) & _FOUR_BYTES == _NULL:
                    end, value = at + 4, np.nan
                else:
                    end, value = _float(buf, base, at)
                if is_too_large(value, limit):
                    end = np.int64(_ODD)
                values[_U(first + size)] = np.float64(value).view(np.int64)
                size += 1
        else:
            negative = load_byte(at) == _MINUS
            end, magnitude = _uint(at + negative)
            number = np.int64(magnitude)
            if dtype == UINT64:
                if negative:
                    end = np.int64(_ODD)
            elif number < 0:
                end = np.int64(_ODD)
            else:
                number = -number if negative else number
                if number < LOWEST[dtype] or number > HIGHEST[dtype]:
                    end = np.int64(_ODD)
            values[_U(first + size)] = number
            size += 1
        if not is_list or end < 0:
            return size, end
        at, is_last = _behind_value(end, _CLOSE_LIST)
    return size, at
