"""Lines of neighbours (METIS) to edges. The public function allocates; the jitted one fills what it is given."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.numbers import NEGATIVE, OK, OVERFLOW, find_line, parse_float, parse_uint, skip_blanks

# Codes beside those of ``numbers``.
OUT_OF_RANGE = 41  # a neighbour that is no node
NO_WEIGHT = 42  # a neighbour without the weight that must follow it
NO_VALUE = 43  # a node without all of the values that must stand before its neighbours
SURPLUS = 44  # a line behind that of the last node
BAD_WEIGHT = 45  # what follows a neighbour is no number

_LF, _SPACE, _TAB, _PERCENT, _ZERO = 10, 32, 9, 37, 48
_SAFE_DIGITS = 18  # 10^18 - 1 < 2^63


@dataclass(frozen=True)
class Adjacency:
    """Edges in the order of the text, and the values before every node's neighbours; ``at`` is the byte of each neighbour."""

    src: NDArray[np.uint64]
    dst: NDArray[np.uint64]
    weights: NDArray[np.float64]
    values: NDArray[np.int64]
    at: NDArray[np.int64]


@dataclass(frozen=True)
class Fault:
    """The first faulty field: why (a code), and its bytes [start, stop)."""

    code: int
    start: int
    stop: int


def parse_adjacency(
    buf: NDArray[np.uint8], first_node: int, num_nodes: int, num_values: int, weighted: bool
) -> Adjacency | Fault:
    """Parse the lines of nodes ``first_node``, ``first_node + 1`` …: ``num_values`` values, then neighbours counted from 1.

    Each neighbour is followed by its weight where ``weighted``. Comments are skipped, blank lines are nodes; behind node
    ``num_nodes - 1`` they are nothing. Values are int64[rows, num_values].
    """
    most_rows = max(0, min(int(np.count_nonzero(buf == _LF)) + 1, num_nodes - first_node))
    most_edges = int(_count_words(buf))
    src, dst, at = np.empty(most_edges, np.uint64), np.empty(most_edges, np.uint64), np.empty(most_edges, np.int64)
    weights = np.empty(most_edges if weighted else 0, np.float64)
    values = np.empty((most_rows, num_values), np.int64)
    rows, edges, code, start, stop = _parse(buf, first_node, num_nodes, weighted, src, dst, weights, values, at)
    if code != OK:
        return Fault(int(code), int(start), int(stop))
    return Adjacency(src[:edges], dst[:edges], weights[:edges], values[:rows], at[:edges])


@njit(cache=True, nogil=True)
def _count_words(buf):
    """Count the runs of bytes other than blanks."""
    if not buf.size:
        return np.int64(0)
    words = np.int64(buf[0] > _SPACE)
    before, byte = buf[:-1], buf[1:]
    for i in range(byte.size):
        words += (byte[i] > _SPACE) & (before[i] <= _SPACE)
    return words


@njit(cache=True, nogil=True)
def _word_stop(buf, start, stop):
    """Return the end of the word at ``start``."""
    while start < stop and buf[start] != _SPACE and buf[start] != _TAB:
        start += 1
    return start


@njit(cache=True, nogil=True)
def _parse_word(buf, start, stop):
    """Parse the word at ``start`` as an integer. Returns (code, uint64, its end)."""
    end = start
    number = np.uint64(0)
    while end < stop and np.uint8(buf[end] - _ZERO) < 10:
        number = number * np.uint64(10) + np.uint64(buf[end] - _ZERO)
        end += 1
    if start < end <= start + _SAFE_DIGITS and (end == stop or buf[end] == _SPACE or buf[end] == _TAB):
        return OK, number, end  # digits alone: nearly every word of nearly every file
    end = _word_stop(buf, start, stop)
    code, number = parse_uint(buf, start, end)
    return code, number, end


@njit(cache=True, nogil=True)
def _parse(buf, first_node, num_nodes, weighted, src, dst, weights, values, at_edge):
    """Fill the arrays. Returns (rows, edges, code, start, stop)."""
    num_values = values.shape[1]
    row = 0
    edge = 0
    at = 0
    while at < buf.size:
        line = at
        stop, at = find_line(buf, line)
        cursor = skip_blanks(buf, line, stop)
        if cursor < stop and buf[cursor] == _PERCENT:
            continue
        node = first_node + row
        if node >= num_nodes:
            if cursor < stop:
                return row, edge, SURPLUS, cursor, stop
            continue
        for i in range(num_values):
            end = _word_stop(buf, cursor, stop)
            if cursor == end:
                return row, edge, NO_VALUE, cursor, cursor
            code, number = parse_uint(buf, cursor, end)
            if code == OK and number >= np.uint64(1 << 63):
                code = OVERFLOW
            if code != OK:
                return row, edge, code, cursor, end
            values[row, i] = np.int64(number)
            cursor = skip_blanks(buf, end, stop)
        while cursor < stop:
            start = cursor
            code, number, end = _parse_word(buf, start, stop)
            if code in (NEGATIVE, OVERFLOW) or (code == OK and (number == 0 or number > np.uint64(num_nodes))):
                code = OUT_OF_RANGE
            if code != OK:
                return row, edge, code, start, end
            src[edge] = np.uint64(node)
            dst[edge] = number - np.uint64(1)
            at_edge[edge] = start
            cursor = skip_blanks(buf, end, stop)
            if weighted:
                if cursor == stop:
                    return row, edge, NO_WEIGHT, start, end
                end = _word_stop(buf, cursor, stop)
                code, weight = parse_float(buf, cursor, end)
                if code != OK:
                    return row, edge, BAD_WEIGHT, cursor, end
                weights[edge] = weight
                cursor = skip_blanks(buf, end, stop)
            edge += 1
        row += 1
    return row, edge, OK, 0, 0
