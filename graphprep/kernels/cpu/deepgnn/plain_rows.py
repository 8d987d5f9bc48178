"""Where the scanners of plain lines put rows, and how the values of a column are gathered there. A kernel never raises.

The scanners (``plain_edgelist``, ``plain_json``, ``plain_tsv``) read most lines in one go, numbers included. They stop before a
line that they do not know, at ODD: the walkers of any line, which know every spelling and every fault, take over there.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.words import (
    MOST_DIGITS,
    WINDOW,
    WORD,
    digits_at,
    digits_of_word,
    load_byte,
    load_word,
    non_digits,
    trailing_zeros,
)
from graphprep.kernels.cpu.deepgnn.slots import DTYPES, FLOAT_LIMITS, NOT_SPARSE, TEXT_DTYPE, find_group, is_too_large
from graphprep.kernels.cpu.text.numbers import DECIMAL_REACH, OK, parse_float, parse_int, parse_uint, read_decimal

# Why a scanner stopped: all is read; the line at POS is not plain; there is no room for its rows.
DONE, ODD, FULL = range(3)

# What ``progress`` counts: where the line to read begins, rows of each array that are filled, values and bytes of texts.
# NEW_* count the row at hand in, which may turn out not to be plain.
POS, NODES, EDGES, GROUPS, SLOTS, VALUES, TEXTS, NEW_SLOTS, NEW_VALUES, NEW_TEXTS = range(10)
NUM_PROGRESS = 10

# Columns of ``Room.slots``. START is the position of its first value in ``values`` (of its first byte in ``texts``).
GROUP, ROW, COUNT, START = range(4)

PADDING = b"\n" * (2 * DECIMAL_REACH)  # behind the last line, so that scanners may look beyond its end

_LF, _CR, _SPACE, _MINUS, _POINT, _ZERO = 10, 13, 32, 45, 46, 48
_U = np.uint64
_MOST_EXACT = _U(1 << 53)  # float64 holds every integer up to here, and the powers of ten up to 10^22
_EXACT_POWERS = 10.0 ** np.arange(23)
_POWERS = 10 ** np.arange(20, dtype=np.uint64)
_BOOL, UINT64, FIRST_FLOAT, LAST_FLOAT = (DTYPES.index(name) for name in ("bool", "uint64", "float16", "float64"))
_NOT_PLAIN, _NO_ROOM = -1, -2
_MOST_GROUPS = 1 << 10
_LEAST_ROOM = 1 << 10


class Room(NamedTuple):
    """Arrays with room for rows.

    ``types`` are numbers as written, ``num_slots`` the number of slots that a row mentions. ``times`` (int64[n, 2]) hold
    created_at and removed_at; without rows where the lines state no times. ``slots`` (int64[k, 4]) has the features, each with
    its group; ``groups`` and ``buckets`` as ``kernels.cpu.deepgnn.slots`` says. ``values`` (int64) are integers, or the bits
    of float64; ``texts`` (uint8) are texts one after another.
    """

    node_ids: NDArray[np.uint64]
    node_types: NDArray[np.int32]
    node_weights: NDArray[np.float64]
    node_num_slots: NDArray[np.int32]
    node_times: NDArray[np.int64]
    edge_src: NDArray[np.uint64]
    edge_dst: NDArray[np.uint64]
    edge_types: NDArray[np.int32]
    edge_weights: NDArray[np.float64]
    edge_num_slots: NDArray[np.int32]
    edge_times: NDArray[np.int64]
    slots: NDArray[np.int64]
    groups: NDArray[np.int64]
    buckets: NDArray[np.int64]
    values: NDArray[np.int64]
    texts: NDArray[np.uint8]


def make_room(num_nodes: int, num_edges: int, num_values: int, num_texts: int, has_times: bool) -> Room:
    """Allocate; what is not written to is never touched."""
    nodes, edges = max(num_nodes, _LEAST_ROOM), max(num_edges, _LEAST_ROOM)
    return Room(
        node_ids=np.empty(nodes, np.uint64),
        node_types=np.empty(nodes, np.int32),
        node_weights=np.empty(nodes, np.float64),
        node_num_slots=np.empty(nodes, np.int32),
        node_times=np.empty((nodes if has_times else 0, 2), np.int64),
        edge_src=np.empty(edges, np.uint64),
        edge_dst=np.empty(edges, np.uint64),
        edge_types=np.empty(edges, np.int32),
        edge_weights=np.empty(edges, np.float64),
        edge_num_slots=np.empty(edges, np.int32),
        edge_times=np.empty((edges if has_times else 0, 2), np.int64),
        slots=np.empty((nodes + edges, 4), np.int64),
        groups=np.empty((_MOST_GROUPS, 4), np.int64),
        buckets=np.empty(4 * _MOST_GROUPS, np.int64),
        values=np.empty(max(num_values, _LEAST_ROOM), np.int64),
        texts=np.empty(max(num_texts, _LEAST_ROOM), np.uint8),
    )


def gather_values(values: Any, starts: Any, counts: Any, dtype: np.dtype[np.generic]) -> Any:
    """Return ``counts[i]`` values from ``starts[i]`` on, one row after another, as a dtype.

    ``values``: int64, the bits of float64 for a floating dtype, else integers.
    """
    kind = np.dtype(np.float32) if dtype == np.float32 else np.dtype(np.float64 if dtype.kind == "f" else np.int64)
    out = np.empty(int(counts.sum()), kind)
    _gather(values.view(np.float64) if dtype.kind == "f" else values, starts, counts, out)
    return out.view(dtype) if dtype == np.uint64 else out.astype(dtype, copy=False)


def gather_texts(texts: Any, starts: Any, counts: Any) -> Any:
    """Return ``counts[i]`` bytes from ``starts[i]`` on, one row after another: uint8."""
    out = np.empty(int(counts.sum()), np.uint8)
    _gather(texts, starts, counts, out)
    return out


@njit(cache=True, nogil=True)
def _gather(values, starts, counts, out):
    k = i = 0
    while i < starts.size:
        first = starts[i]
        stop = first + counts[i]
        i += 1
        while i < starts.size and starts[i] == stop:  # rows that follow each other are copied at once
            stop += counts[i]
            i += 1
        some, target = values[first:stop], out[k : k + stop - first]
        for j in range(some.size):  # of slices, from 0 on: compiled to vector instructions
            target[j] = some[j]
        k += stop - first


def scatter_slots(slots: Any, num_groups: int) -> tuple[Any, Any, Any, Any]:
    """Scatter the rows of ``Room.slots`` out to their groups, in input order.

    Returns indptr int64[num_groups + 1], and by group ROW, COUNT and START, int64[k] each.
    """
    indptr = np.zeros(num_groups + 1, np.int64)
    rows, counts, starts = (np.empty(slots.shape[0], np.int64) for _ in range(3))
    _scatter(slots, indptr, rows, counts, starts)
    return indptr, rows, counts, starts


@njit(cache=True, nogil=True)
def _scatter(slots, indptr, rows, counts, starts):
    for i in range(slots.shape[0]):
        indptr[slots[i, GROUP] + 1] += 1
    for group in range(1, indptr.size):
        indptr[group] += indptr[group - 1]
    for i in range(slots.shape[0]):
        at = indptr[slots[i, GROUP]]
        indptr[slots[i, GROUP]] = at + 1
        rows[at] = slots[i, ROW]
        counts[at] = slots[i, COUNT]
        starts[at] = slots[i, START]
    for group in range(indptr.size - 1, 0, -1):
        indptr[group] = indptr[group - 1]
    indptr[0] = 0


def _bounds() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Tabulate the least and the largest value of the integer dtypes (uint64: of int64), by code."""
    kinds = [np.iinfo("uint8" if name == "bool" else "int64" if name == "uint64" else name) for name in DTYPES[:FIRST_FLOAT]]
    return np.array([kind.min for kind in kinds], np.int64), np.array([kind.max for kind in kinds], np.int64)


LOWEST, HIGHEST = _bounds()
LIMITS = np.array([*FLOAT_LIMITS.values()])  # by dtype, from FIRST_FLOAT on


# Below, cursors are addresses, and so is ``ends``, that of a table: uint8[256], 1 for bytes that end a token, LF among them.
# ``buf`` is the text, ``base`` its address.


@njit(cache=True, nogil=True)
def token_end(at, ends):
    """Return where the token at ``at`` ends: at a byte of ``ends``, or at the CR before LF."""
    start = at
    while not load_byte(ends + load_byte(at)):
        at += 1
    if load_byte(at) == _LF and at > start and load_byte(at - 1) == _CR:
        return at - 1
    return at


@njit(cache=True, nogil=True, forceinline=True)
def _ends_here(at, ends):
    byte = load_byte(at)
    return load_byte(ends + byte) != 0 or (byte == _CR and load_byte(at + 1) == _LF)


@njit(cache=True, nogil=True)
def read_uint(at):
    """Read 1 to 19 digits to (end, uint64); ``end`` is ``at`` where there are none, or more."""
    size = trailing_zeros(non_digits(at))
    if size == 0 or size > MOST_DIGITS:
        return at, np.uint64(0)
    return at + size, digits_at(at, size)


@njit(cache=True, nogil=True)
def read_float_token(buf, base, at, ends):
    """Read a float that may be spelled in any way to (end, float64); ``end`` is -1 where it is none, or too large."""
    value, end = read_decimal(at)
    if end >= 0 and _ends_here(end, ends):
        return end, value
    return _read_any_float(buf, base, at, ends)


@njit(cache=True, nogil=True)
def _read_any_float(buf, base, at, ends):
    end = token_end(at, ends)
    code, value = parse_float(buf, at - base, end - base)
    return end if code == OK else np.int64(-1), value


@njit(cache=True, nogil=True)
def read_int_token(buf, base, at, ends):
    """Read an integer that may be spelled in any way to (end, int64); ``end`` is -1 where it is none, or too large."""
    negative = load_byte(at) == _MINUS
    end, magnitude = read_uint(at + negative)
    value = np.int64(magnitude)
    if end > at + negative and value >= 0 and _ends_here(end, ends):
        return end, -value if negative else value
    return _read_any_int(buf, base, at, ends)


@njit(cache=True, nogil=True)
def _read_any_int(buf, base, at, ends):
    end = token_end(at, ends)
    code, value = parse_int(buf, at - base, end - base)
    return end if code == OK else np.int64(-1), value


@njit(cache=True, nogil=True)
def read_uint_token(buf, base, at, ends):
    """Read an unsigned integer that may be spelled in any way to (end, uint64); ``end`` is -1 where it is none."""
    end, value = read_uint(at)
    if end > at and _ends_here(end, ends):
        return end, value
    return _read_any_uint(buf, base, at, ends)


@njit(cache=True, nogil=True)
def _read_any_uint(buf, base, at, ends):
    end = token_end(at, ends)
    code, value = parse_uint(buf, at - base, end - base)
    return end if code == OK else np.int64(-1), value


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def read_floats(at, separator, count, limit, is_json, values, first, size):
    """Read floats as they are mostly written, up to ``count`` of them, ``size`` of them read before.

    Returns (how many there are then, where the next token begins, where the last one ends); the latter is -1 where a separator
    follows and more are wanted. Stops before a token that is written in another way, or whose magnitude reaches ``limit``. In
    JSON, a space may follow the separator, and no digit a zero at the beginning.
    """
    end = np.int64(-1)
    others = _U(0)  # which of the bytes from ``at`` on are no digits; 0 behind what was looked at
    is_new = False
    while size < count:
        negative = others & _U(1)
        body = others ^ negative
        point = trailing_zeros(body)
        stop = point
        num_fraction = 0
        if point < 64 and load_byte(at + point) == _POINT:
            stop = trailing_zeros(body & (body - _U(1)))
            num_fraction = stop - point - 1
        if stop == 64:
            if is_new:
                break
            others = non_digits(at) | (non_digits(at + WINDOW) << _U(WINDOW))
            is_new = True
            continue
        begin = at + np.int64(negative)
        num_whole = point - np.int64(negative)
        num_chars = stop - np.int64(negative)
        if num_whole < 1 or num_whole + num_fraction > MOST_DIGITS or (negative and load_byte(at) != _MINUS):
            break
        if is_json and num_whole > 1 and load_byte(begin) == _ZERO:
            break
        if stop == point:
            mantissa = digits_at(begin, num_whole)
        elif num_fraction == 0:
            break
        elif num_chars <= WORD:  # closing ranks over the point
            word = load_word(begin)
            whole = (_U(1) << _U(8 * num_whole)) - _U(1)
            mantissa = digits_of_word((word & whole) | ((word >> _U(8)) & ~whole), num_chars - 1)
        elif num_whole == 1:
            mantissa = _U(load_byte(begin) - _ZERO) * _POWERS[_U(num_fraction)] + digits_at(at + point + 1, num_fraction)
        else:
            mantissa = digits_at(begin, num_whole) * _POWERS[_U(num_fraction)] + digits_at(at + point + 1, num_fraction)
        value = np.float64(np.int64(mantissa)) / _EXACT_POWERS[_U(num_fraction)]
        if mantissa > _MOST_EXACT:
            value, _ = read_decimal(begin)
        following = load_byte(at + stop)
        if value >= limit or following | 32 == 101:  # e
            break
        values[_U(first + size)] = np.float64(-value if negative else value).view(np.int64)
        size += 1
        at += stop
        if following != separator or size == count:
            end = at
            break
        at += 1
        others = (others >> _U(stop)) >> _U(1)
        if is_json and load_byte(at) == _SPACE:
            at += 1
            others >>= _U(1)
        is_new = False
    return size, at, end


@njit(cache=True, nogil=True, forceinline=True, error_model="numpy")
def read_short(at, others):
    """Read ``0.5``, up to eight bytes of digits, perhaps with a point: (how many, float64), -1 where it is something else.

    ``others`` says which of the bytes from ``at`` on are no digits. There are no branches on how long the number is.
    """
    point = trailing_zeros(others)
    has_point = np.int64(load_byte(at + (point & 63)) == _POINT)
    size = trailing_zeros(others & (others - _U(1))) if has_point else point
    num_fraction = size - has_point - point
    # As an unsigned number, a size of 0 is large, too, and so is one whose end is not shown.
    if _U(size - 1) | _U(point - 1) | _U(num_fraction - has_point) >= WORD:
        return np.int64(-1), 0.0
    word = load_word(at)
    whole = (_U(1) << _U(8 * point & 63)) - _U(1)
    word = (word & whole) | ((word >> _U(8 * has_point)) & ~whole)  # closing ranks over the point
    return size, np.float64(np.int64(digits_of_word(word, size - has_point))) / _EXACT_POWERS[_U(num_fraction)]


@njit(cache=True, nogil=True, forceinline=True)
def start_row(progress):
    """Forget what was noted of a row that was not plain."""
    for i in range(NEW_SLOTS - SLOTS):
        progress[NEW_SLOTS + i] = progress[SLOTS + i]


@njit(cache=True, nogil=True, forceinline=True)
def keep_new(progress):
    """Keep what was noted of a row."""
    for i in range(NEW_SLOTS - SLOTS):
        progress[SLOTS + i] = progress[NEW_SLOTS + i]


@njit(cache=True, nogil=True, forceinline=True)
def note_numbers(buf, base, at, separator, count, ends, owner, row, slot, dtype, slots, groups, buckets, values, progress):
    """Read a slot's numbers, ``count`` of them or, with -1, as many as there are: (why it stopped, where the last one ends)."""
    first = progress[NEW_VALUES]
    size, at = _read_numbers(buf, base, at, separator, count, ends, dtype, values, first)
    if size < 0:
        return FULL if size == _NO_ROOM else ODD, at
    progress[NEW_VALUES] = first + size
    return note_slot(owner, row, slot, dtype, size, first, slots, groups, buckets, progress), at


@njit(cache=True, nogil=True, forceinline=True)
def note_text(at, end, owner, row, slot, slots, groups, buckets, texts, progress):
    """Copy a slot's text; says why it stopped."""
    first = progress[NEW_TEXTS]
    if first + end - at > texts.size:
        return FULL
    for i in range(end - at):
        texts[first + i] = load_byte(at + i)
    progress[NEW_TEXTS] = first + end - at
    return note_slot(owner, row, slot, TEXT_DTYPE, end - at, first, slots, groups, buckets, progress)


@njit(cache=True, nogil=True, forceinline=True)
def note_slot(owner, row, slot, dtype, size, first, slots, groups, buckets, progress):
    """Note where the values of a slot stand; says why it stopped."""
    k = progress[NEW_SLOTS]
    if k == slots.shape[0]:
        return FULL
    group = find_group(groups, progress[GROUPS], buckets, owner, slot, dtype, NOT_SPARSE)
    if group < 0:
        return FULL
    if group == progress[GROUPS]:
        progress[GROUPS] += 1
    slots[k, GROUP] = group
    slots[k, ROW] = row
    slots[k, COUNT] = size
    slots[k, START] = first
    progress[NEW_SLOTS] = k + 1
    return DONE


@njit(cache=True, nogil=True, forceinline=True)
def _read_numbers(buf, base, at, separator, count, ends, dtype, values, first):
    """Read numbers to ``values`` from ``first`` on: (how many, where the last one ends).

    There are _NOT_PLAIN of them where one is wrong or there are fewer than ``count``, _NO_ROOM where ``values`` ends.
    """
    size = np.int64(0)
    end = at
    most = values.size - first
    is_float = FIRST_FLOAT <= dtype <= LAST_FLOAT
    limit = LIMITS[dtype - FIRST_FLOAT] if is_float else 0.0
    while True:
        if is_float:
            size, at, end = read_floats(at, separator, count if 0 <= count < most else most, limit, False, values, first, size)
        if size == most and size != count:
            size = _NO_ROOM
            break
        if is_float and end >= 0:
            break
        if is_float:
            end, value = read_float_token(buf, base, at, ends)
            is_wrong = is_too_large(value, limit)
            values[first + size] = np.float64(value).view(np.int64)
        elif dtype == UINT64:
            end, magnitude = read_uint_token(buf, base, at, ends)
            is_wrong = False
            values[first + size] = np.int64(magnitude)
        else:
            end, number = read_int_token(buf, base, at, ends)
            is_wrong = dtype <= _BOOL or dtype > UINT64 or number < LOWEST[dtype] or number > HIGHEST[dtype]
            values[first + size] = number
        if end < 0 or is_wrong:
            size = _NOT_PLAIN
            break
        size += 1
        if size == count or load_byte(end) != separator:
            break
        at = end + 1
    if size >= 0 and size < count:
        size = _NOT_PLAIN
    return size, end
