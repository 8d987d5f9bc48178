"""Put pieces of bytes where they belong, and write bytes in place of others. The caller allocates; jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.memory import copy_bytes
from graphprep.kernels.cpu.bytes.words import address_of

_LINE_ENDS = (b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9")  # U+0085, U+2028, U+2029: what Python cuts lines at, beside ASCII
_FIRST_OF_TWO, _SECOND_OF_TWO = _LINE_ENDS[0]
_FIRST_OF_THREE, _SECOND_OF_THREE, _THIRD_OF_THREE = _LINE_ENDS[1]


def place_bytes(source: Any, starts: Any, sizes: Any, out: Any, ats: Any) -> None:
    """Copy ``source[starts[i]:starts[i] + sizes[i]]`` to ``out[ats[i]:]`` for every i. Bytes uint8, all else int64[k]."""
    _place_bytes(source, starts, sizes, out, ats)


def add_by_type(types: Any, weights: Any, sums: Any, counts: Any) -> None:
    """Add ``weights`` (float64[k]) one after another to the sum of their type, and count them.

    ``types``: int32[k], -1 for what is not to be counted; ``sums`` float64[T] and ``counts`` int64[T] are added to.
    """
    _add_by_type(types, weights, sums, counts)


def replace_bytes(source: Any, starts: Any, sizes: Any, table: Any, widths: Any, line_ends: Any) -> tuple[Any, Any]:
    """Write every byte of texts as ``table`` says: (offsets int64[k + 1], bytes).

    Text i is ``source[starts[i]:starts[i] + sizes[i]]``; byte b becomes the first ``widths[b]`` bytes of ``table[b]``
    (uint8[256, 6], int64[256]). ``line_ends`` (uint8[3, 6]; empty: they stay) is for U+0085, U+2028 and U+2029.
    """
    offsets = np.zeros(starts.size + 1, np.int64)
    _measure_replaced(source, starts, sizes, widths, line_ends.shape[0] > 0, offsets[1:])
    np.cumsum(offsets, out=offsets)
    out = np.empty(int(offsets[-1]), np.uint8)
    _replace_bytes(source, starts, sizes, table, widths, line_ends, out)
    return offsets, out


@njit(cache=True, nogil=True)
def _place_bytes(source, starts, sizes, out, ats):
    begin, target = address_of(source), address_of(out)
    for i in range(starts.size):
        copy_bytes(begin + starts[i], target + ats[i], sizes[i])


@njit(cache=True, nogil=True)
def _add_by_type(types, weights, sums, counts):
    for i in range(types.size):
        number = types[i]
        if number >= 0:
            sums[number] += weights[i]
            counts[number] += 1


@njit(cache=True, nogil=True, inline="always")
def _line_end(source, at, stop):
    """Return which line end begins at a byte, 0..2; -1: none."""
    if source[at] == _FIRST_OF_TWO:
        return 0 if at + 1 < stop and source[at + 1] == _SECOND_OF_TWO else -1
    if source[at] == _FIRST_OF_THREE and at + 2 < stop and source[at + 1] == _SECOND_OF_THREE:
        if source[at + 2] == _THIRD_OF_THREE:
            return 1
        if source[at + 2] == _THIRD_OF_THREE + 1:
            return 2
    return -1


@njit(cache=True, nogil=True)
def _measure_replaced(source, starts, sizes, widths, with_line_ends, out):
    for i in range(starts.size):
        total, at, stop = 0, starts[i], starts[i] + sizes[i]
        while at < stop:
            number = _line_end(source, at, stop) if with_line_ends else -1
            if number >= 0:
                total += 6
                at += 2 if number == 0 else 3
            else:
                total += widths[source[at]]
                at += 1
        out[i] = total


@njit(cache=True, nogil=True)
def _replace_bytes(source, starts, sizes, table, widths, line_ends, out):
    to = 0
    for i in range(starts.size):
        at, stop = starts[i], starts[i] + sizes[i]
        while at < stop:
            number = _line_end(source, at, stop) if line_ends.shape[0] > 0 else -1
            if number >= 0:
                for k in range(6):
                    out[to + k] = line_ends[number, k]
                to += 6
                at += 2 if number == 0 else 3
            else:
                byte = source[at]
                for k in range(widths[byte]):
                    out[to + k] = table[byte, k]
                to += widths[byte]
                at += 1
