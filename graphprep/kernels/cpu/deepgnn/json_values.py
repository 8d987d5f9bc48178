"""Read feature values from the tape, one column at a time. A kernel never raises: it notes codes and tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.deepgnn.json_records import NOT_NUMBER, TOO_LARGE, read_float
from graphprep.kernels.cpu.deepgnn.json_tape import (
    ARRAY,
    BIG,
    ESCAPED,
    HUGE,
    NEGATIVE,
    NESTED,
    NULL,
    OK,
    UINT,
    Tape,
    after,
    kind_of,
    start_of,
    unescape,
)
from graphprep.kernels.cpu.deepgnn.slots import FLOAT_LIMITS

# Faults; they go on where those of json_records end.
NOT_INTEGER, BELOW, SURROGATE = range(50, 53)


def label_columns(keys: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the distinct rows of int64[n, k] in the order of their first occurrence.

    Returns each row's number and each number's first row.
    """
    labels = np.empty(len(keys), np.int64)
    firsts = np.empty(len(keys), np.int64)
    slots = np.full(max(64, 1 << (2 * len(keys) - 1).bit_length()), -1, np.int64)
    num_labels = _label(np.ascontiguousarray(keys), slots, labels, firsts)
    return labels, firsts[:num_labels]


@njit(cache=True, nogil=True)
def _label(keys, slots, labels, firsts):
    num_slots = slots.size
    num_labels = 0
    for row in range(keys.shape[0]):
        value = np.uint64(0)
        for i in range(keys.shape[1]):
            value = (value ^ np.uint64(keys[row, i])) * np.uint64(0x9E3779B97F4A7C15)
            value ^= value >> np.uint64(29)
        slot = np.int64(value & np.uint64(num_slots - 1))
        while slots[slot] >= 0 and not _equal_rows(keys, firsts[slots[slot]], row):
            slot = (slot + 1) & (num_slots - 1)
        if slots[slot] < 0:
            slots[slot] = num_labels
            firsts[num_labels] = row
            num_labels += 1
        labels[row] = slots[slot]
    return num_labels


@njit(cache=True, nogil=True)
def _equal_rows(keys, one, two):
    for i in range(keys.shape[1]):
        if keys[one, i] != keys[two, i]:
            return False
    return True


def read_numbers(tape: Tape, tokens: NDArray[np.int64], size: int, dtype: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
    """Read the numbers of the values at ``tokens`` (scalars, lists, nested lists), one after another.

    ``size`` is how many there are. Returns the values as ``dtype``, and the faults (see ``_bad``).
    """
    kind = np.dtype(dtype)
    faults = np.zeros((tokens.size, 2), np.int64)
    if kind.kind == "f":
        floats = np.empty(size, np.float32 if dtype == "float32" else np.float64)
        _read_floats(tape.words, tape.extra, tokens, FLOAT_LIMITS[dtype], floats, faults)
        return floats.astype(kind, copy=False), _bad(faults)
    bounds = np.iinfo(kind)
    integers = np.empty(size, np.int64)
    least, most = np.uint64(-int(bounds.min)), np.uint64(bounds.max)
    _read_integers(tape.words, tape.extra, tokens, least, most, integers, faults)
    return integers.view(kind) if dtype == "uint64" else integers.astype(kind, copy=False), _bad(faults)


def _bad(faults: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return int64[k, 3]: the position in ``tokens`` of each value that is faulty, and code and token of its first fault."""
    rows = np.flatnonzero(faults[:, 0])
    return np.column_stack((rows, faults[rows]))


@njit(cache=True, nogil=True)
def _read_floats(words, extra, tokens, limit, out, faults):
    at = 0
    for i in range(tokens.size):
        for token in range(tokens[i], after(words, extra, tokens[i])):
            kind = kind_of(words, token)
            code = OK
            value = np.nan
            if kind >= UINT:
                value = read_float(words, extra, token)
                if kind <= HUGE and abs(value) >= limit:
                    code = TOO_LARGE
            elif kind in (ARRAY, NESTED):
                continue
            elif kind != NULL:
                code = NOT_NUMBER
            if code != OK:
                faults[i, 0] = code
                faults[i, 1] = token
                break
            out[at] = value
            at += 1


@njit(cache=True, nogil=True)
def _read_integers(words, extra, tokens, least, most, out, faults):
    """Read integers from -``least`` to ``most`` (uint64 both) to their bits."""
    at = 0
    for i in range(tokens.size):
        for token in range(tokens[i], after(words, extra, tokens[i])):
            kind = kind_of(words, token)
            if kind in (ARRAY, NESTED):
                continue
            code = OK
            magnitude = np.uint64(extra[token])
            if kind not in (UINT, NEGATIVE):
                code = TOO_LARGE if kind == BIG else NOT_INTEGER
            elif magnitude > (most if kind == UINT else least):
                code = BELOW if kind == NEGATIVE and least == 0 else TOO_LARGE
            if code != OK:
                faults[i, 0] = code
                faults[i, 1] = token
                break
            out[at] = np.int64(magnitude) if kind == UINT else np.int64(~magnitude + np.uint64(1))
            at += 1


def read_texts(tape: Tape, tokens: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.uint8], NDArray[np.int64]]:
    """Read the texts at ``tokens``, escapes resolved: their sizes, their UTF-8 bytes, and the faults (see ``_bad``)."""
    sizes = np.empty(tokens.size, np.int64)
    out = np.empty(_room_for_texts(tape.words, tape.extra, tokens), np.uint8)
    faults = np.zeros((tokens.size, 2), np.int64)
    size = _read_texts(*tape, tokens, sizes, out, faults)
    return sizes, out[:size].copy() if size < out.size else out, _bad(faults)


@njit(cache=True, nogil=True)
def _room_for_texts(words, extra, tokens):
    size = 0
    for i in range(tokens.size):
        size += extra[tokens[i]] - start_of(words, tokens[i]) - 1
    return size


@njit(cache=True, nogil=True)
def _read_texts(buf, words, extra, tokens, sizes, out, faults):
    at = 0
    for i in range(tokens.size):
        start, stop = start_of(words, tokens[i]) + 1, extra[tokens[i]]
        before = at
        if kind_of(words, tokens[i]) == ESCAPED:
            at, lone = unescape(buf, start, stop, out, at)
            if lone:
                faults[i, 0] = SURROGATE
                faults[i, 1] = tokens[i]
        else:
            for j in range(start, stop):
                out[at] = buf[j]
                at += 1
        sizes[i] = at - before
    return at
