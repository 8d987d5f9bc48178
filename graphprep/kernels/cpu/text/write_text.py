"""Columns of integers to lines of text, by a template that was compiled into steps.

A step is (kind, argument, size): of LITERAL up to eight bytes in an integer and their number, of FEATURES and EDGES the bytes
between two items, else the row of ``columns``. Steps write eight bytes at a time, so ``out`` needs SLACK_BYTES behind the end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import Intrinsic, ir, njit, types

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

LITERAL, INTEGER, MICRO, EIGHTHS, FEATURES, EDGES = range(6)  # steps
SLACK_BYTES = 8
_MOST_BYTES = {INTEGER: 19, MICRO: 8, EIGHTHS: 5, FEATURES: 0, EDGES: 0}
FEATURE_BYTES = 7

_ZEROS = np.uint64(0x3030303030303030)
_TEN_4, _TEN_8 = np.uint64(10**4), np.uint64(10**8)
_LAST_DIGIT, _WHOLE_BYTES = np.uint64(1 << 56), np.uint64(56)
_POINT = np.uint64(int.from_bytes(b"0.", "little"))


def _eighths() -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Tabulate the texts and lengths of 0, 1/8, … 8."""
    texts = [f"{eighth / 8:g}".encode() for eighth in range(65)]
    words = np.array([int.from_bytes(text, "little") for text in texts], np.uint64)
    return words, np.array([len(text) for text in texts], np.uint64)


_EIGHTHS_WORDS, _EIGHTHS_SIZES = _eighths()


@Intrinsic
def _store_word(typing_context, out, at, word):
    """Store a uint64 at any byte of a uint8 array, the low byte first."""

    def generate(context, builder, signature, values):
        array = context.make_array(signature.args[0])(context, builder, values[0])
        pointer = builder.gep(array.data, [values[1]])
        builder.store(values[2], builder.bitcast(pointer, ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return types.void(out, types.int64, types.uint64), generate


@Intrinsic
def _trailing_zeros(typing_context, word):
    """Count the zero bits below the lowest one of a uint64 that is not 0."""

    def generate(context, builder, signature, values):
        return builder.cttz(values[0], ir.Constant(ir.IntType(1), 1))

    return types.uint64(types.uint64), generate


# ---- numbers


@njit(cache=True, nogil=True, inline="always")
def _digits_of(number):
    """Return the eight digits of a number below 10^8, one a byte, the first one lowest."""
    pairs = (number // _TEN_4) | (number % _TEN_4) << uint64(32)
    hundreds = (pairs * uint64(10486) >> uint64(20)) & uint64(0x7F0000007F)
    pairs = hundreds | (pairs - uint64(100) * hundreds) << uint64(16)
    tens = (pairs * uint64(103) >> uint64(10)) & uint64(0x000F000F000F000F)
    return tens | (pairs - uint64(10) * tens) << uint64(8)


@njit(cache=True, nogil=True, inline="always")
def _write_small(number, out, at):
    """Write a number below 10^8 and return the end."""
    digits = _digits_of(number)
    skipped = _trailing_zeros(digits | _LAST_DIGIT) & _WHOLE_BYTES  # bits of leading zeros; the last digit is written always
    _store_word(out, at, (digits | _ZEROS) >> skipped)
    return at + 8 - np.int64(skipped >> uint64(3))


@njit(cache=True, nogil=True, inline="always")
def _write_eight(number, out, at):
    """Write a number below 10^8 with all its eight digits."""
    _store_word(out, at, _digits_of(number) | _ZEROS)
    return at + 8


@njit(cache=True, nogil=True)
def _write_large(number, out, at):
    upper = number // _TEN_8
    at = (
        _write_small(upper, out, at)
        if upper < _TEN_8
        else _write_eight(upper % _TEN_8, out, _write_small(upper // _TEN_8, out, at))
    )
    return _write_eight(number % _TEN_8, out, at)


@njit(cache=True, nogil=True, inline="always")
def _write_integer(number, out, at):
    if number < _TEN_8:
        return _write_small(number, out, at)
    return _write_large(number, out, at)


@njit(cache=True, nogil=True, inline="always")
def _write_fraction(number, places, out, at):
    """Write ``0.`` and the last ``places`` of eight digits."""
    _store_word(out, at, _POINT)
    _store_word(out, at + 2, (_digits_of(number) | _ZEROS) >> (uint64(8 - places) << uint64(3)))
    return at + 2 + places


@njit(cache=True, nogil=True)
def _write_integers(numbers, sizes, out):
    at = 0
    for i in range(numbers.size):
        end = _write_integer(numbers[i], out, at)
        sizes[i] = end - at
        at = end
    return at


def write_integers(numbers: NDArray[np.uint64]) -> tuple[Bytes, Ints]:
    """Write numbers below 10^19 as decimal texts, one behind the other: their bytes, and the size of each."""
    sizes = np.empty(numbers.size, np.int64)
    out = np.empty(numbers.size * _MOST_BYTES[INTEGER] + SLACK_BYTES, np.uint8)
    return out[: _write_integers(numbers, sizes, out)], sizes


# ---- rows


@njit(cache=True, nogil=True, inline="always")
def _write_step(kind, argument, size, columns, row, out, at):
    if kind == LITERAL:
        _store_word(out, at, uint64(argument))
        return at + size
    number = uint64(columns[argument, row])
    if kind == INTEGER:
        return _write_integer(number, out, at)
    if kind == MICRO:
        return _write_fraction(number, 6, out, at)
    _store_word(out, at, _EIGHTHS_WORDS[number])
    return at + np.int64(_EIGHTHS_SIZES[number])


@njit(cache=True, nogil=True)
def _write_rows(steps, columns, first, stop, out, at):
    for row in range(first, stop):
        for step in range(steps.shape[0]):
            at = _write_step(steps[step, 0], steps[step, 1], steps[step, 2], columns, row, out, at)
    return at


@njit(cache=True, nogil=True)
def _write_features(features, row, separator, size, out, at):
    for column in range(features.shape[1]):
        if column:
            _store_word(out, at, uint64(separator))
            at += size
        at = _write_fraction(uint64(features[row, column]), 5, out, at)
    return at


@njit(cache=True, nogil=True)
def _write_nodes(steps, columns, features, edge_steps, edge_columns, offsets, out):
    """Write nodes and their edges: edges are put together as features are, each by ``edge_steps``."""
    at = 0
    for row in range(columns.shape[1]):
        for step in range(steps.shape[0]):
            kind, argument, size = steps[step, 0], steps[step, 1], steps[step, 2]
            if kind == FEATURES:
                at = _write_features(features, row, argument, size, out, at)
            elif kind == EDGES:
                for edge in range(offsets[row], offsets[row + 1]):
                    if edge > offsets[row]:
                        _store_word(out, at, uint64(argument))
                        at += size
                    at = _write_rows(edge_steps, edge_columns, edge, edge + 1, out, at)
            else:
                at = _write_step(kind, argument, size, columns, row, out, at)
    return at


# ---- templates


@dataclass(frozen=True)
class Template:
    """What a line looks like, as steps. ``row_bytes``: the most that a row takes, features and edges apart."""

    steps: Ints
    row_bytes: int

    @classmethod
    def parse(cls, text: str, fields: Mapping[str, tuple[int, int]]) -> Template:
        """Compile ``text`` (ASCII), in which ``<name>`` stands for a field: its kind, and its row of columns.

        ``<name:separator>`` is for FEATURES and EDGES, ``separator`` standing between two items.
        """
        steps: list[tuple[int, int, int]] = []
        row_bytes = 0
        for literal, name, separator in re.findall(r"([^<]*)(?:<([a-z]+)(?::([^>]*))?>)?", text):
            data = literal.encode()
            steps += [(LITERAL, *_word(data[at : at + 8])) for at in range(0, len(data), 8)]
            row_bytes += len(data)
            if name:
                kind, column = fields[name]
                steps.append((kind, *_word(separator.encode())) if kind in (FEATURES, EDGES) else (kind, column, 0))
                row_bytes += _MOST_BYTES[kind]
        return cls(np.array(steps, np.int64).reshape(-1, 3), row_bytes)


def _word(data: bytes) -> tuple[int, int]:
    return int.from_bytes(data, "little"), len(data)


def write_rows(template: Template, columns: Ints, count: int, out: Bytes) -> int:
    """Write the first ``count`` rows of columns, int64[width, rows], and return the number of bytes.

    ``out``: uint8, with room for ``template.row_bytes`` a row and SLACK_BYTES more.
    """
    return int(_write_rows(template.steps, columns, 0, count, out, 0))


def write_nodes(
    node: Template, columns: Ints, features: Ints, edge: Template, edge_columns: Ints, offsets: Ints, out: Bytes
) -> int:
    """Write nodes (columns int64[width, rows], features int64[rows, F]) and their edges, and return the number of bytes.

    The edges of node i are rows offsets[i]..offsets[i + 1] - 1 of ``edge_columns``; ``out`` has room for all of them.
    """
    return int(_write_nodes(node.steps, columns, features, edge.steps, edge_columns, offsets, out))
