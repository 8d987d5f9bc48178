"""Cells of delimited text that hold lists, certain words, or nothing, on the CPU.

A list is its values, separated by commas or semicolons unless one byte is said to separate, perhaps in square brackets:
``[1, 2, 3]``, ``1;2;3``. ``[]`` is a list of no values, an empty cell is no list.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.text.numbers import skip_blanks, trim_blanks

Ints = NDArray[np.int64]
_COMMA, _SEMICOLON, _OPEN, _CLOSE = 44, 59, 91, 93
_EITHER = -1
NO_WORD, EMPTY = -1, -2


def split_lists(buf: NDArray[np.uint8], start: Ints, stop: Ints, separator: int | None) -> tuple[Ints, Ints, Ints, Ints]:
    """Find the values of the cells that are not empty; ``separator`` None: a comma or a semicolon.

    Returns (rows, counts, starts of the values, stops of the values).
    """
    rows, counts = np.empty(start.size, np.int64), np.empty(start.size, np.int64)
    byte = _EITHER if separator is None else separator
    num_rows, num_values = _count_values(buf, start, stop, byte, rows, counts)
    starts, stops = np.empty(num_values, np.int64), np.empty(num_values, np.int64)
    _find_values(buf, start, stop, byte, rows[:num_rows], starts, stops)
    return rows[:num_rows], counts[:num_rows], starts, stops


def blank_cells(buf: NDArray[np.uint8], start: Ints, stop: Ints, spellings: tuple[bytes, ...]) -> Ints:
    """Return ``stop`` with the cells emptied that are spelled like one of ``spellings``."""
    if not spellings:
        return stop
    ends = np.cumsum([len(spelling) for spelling in spellings], dtype=np.int64)
    out = stop.copy()
    _blank_cells(buf, start, out, np.frombuffer(b"".join(spellings), np.uint8), ends)
    return out


def find_words(buf: NDArray[np.uint8], start: Ints, stop: Ints, words: tuple[bytes, ...]) -> NDArray[np.int8]:
    """Return which of ``words`` (small letters) each cell is, in any case and with blanks around it.

    int8[n]: the word's position, NO_WORD for other cells, EMPTY for those of blanks alone.
    """
    found = np.empty(start.size, np.int8)
    ends = np.cumsum([len(word) for word in words], dtype=np.int64)
    _find_words(buf, start, stop, np.frombuffer(b"".join(words), np.uint8), ends, found)
    return found


@njit(cache=True, nogil=True)
def _find_words(buf, start, stop, words, ends, found):
    """Fill ``found``."""
    for row in range(start.size):
        end = stop[row]
        found[row] = NO_WORD
        if end < 0:  # quotes are doubled in it
            continue
        at = skip_blanks(buf, start[row], end)
        size = trim_blanks(buf, at, end) - at
        if size == 0:
            found[row] = EMPTY
            continue
        first = np.int64(0)
        for number in range(ends.size):
            if ends[number] - first == size and _is_word(buf, at, words, first, size):
                found[row] = number
                break
            first = ends[number]


@njit(cache=True, nogil=True)
def _is_word(buf, at, words, first, size):
    """Return whether bytes are those of a word, but for the case of letters."""
    for i in range(size):
        byte = buf[at + i]
        if (byte | 32 if 65 <= byte <= 90 else byte) != words[first + i]:
            return False
    return True


@njit(cache=True, nogil=True)
def _inside(buf, start, stop):
    """Return (start, stop) of what stands between the brackets, or without blanks around; and whether there are brackets."""
    end = stop if stop >= 0 else ~stop
    first = skip_blanks(buf, start, end)
    end = trim_blanks(buf, first, end)
    if end - first >= 2 and buf[first] == _OPEN and buf[end - 1] == _CLOSE:
        first = skip_blanks(buf, first + 1, end - 1)
        return first, trim_blanks(buf, first, end - 1), True
    return first, end, False


@njit(cache=True, nogil=True)
def _separates(byte, separator):
    return byte == separator or (separator == _EITHER and byte in (_COMMA, _SEMICOLON))


@njit(cache=True, nogil=True)
def _count_values(buf, start, stop, separator, rows, counts):
    """Fill ``rows`` and ``counts``. Returns the number of rows and of values."""
    num_rows = 0
    num_values = 0
    for row in range(start.size):
        at, end, bracketed = _inside(buf, start[row], stop[row])
        if at == end and not bracketed:
            continue
        count = np.int64(at < end)
        for i in range(at, end):
            count += _separates(buf[i], separator)
        rows[num_rows] = row
        counts[num_rows] = count
        num_rows += 1
        num_values += count
    return num_rows, num_values


@njit(cache=True, nogil=True)
def _find_values(buf, start, stop, separator, rows, starts, stops):
    """Fill ``starts`` and ``stops``."""
    value = 0
    for row in rows:
        at, end, _ = _inside(buf, start[row], stop[row])
        if at == end:
            continue
        starts[value] = at
        for i in range(at, end):
            if _separates(buf[i], separator):
                stops[value] = i
                value += 1
                starts[value] = i + 1
        stops[value] = end
        value += 1


@njit(cache=True, nogil=True)
def _blank_cells(buf, start, stop, spellings, ends):
    """Set the stop of cells to their start where they are spelled like one of the texts."""
    for row in range(start.size):
        size = stop[row] - start[row]
        first = np.int64(0)
        for last in ends:
            if last - first == size:
                same = True
                for i in range(size):
                    if buf[start[row] + i] != spellings[first + i]:
                        same = False
                        break
                if same:
                    stop[row] = start[row]
                    break
            first = last
