"""Eight and thirty-two bytes at a time: unaligned loads, masks and counts of bits, for the kernels that read digits.

The functions are made to be called from other kernels. They check no bounds: what they read must be in ``buf``. Bytes are
counted as on all machines that Numba is made for, the first one lowest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

WINDOW = 32  # bytes that ``non_digits`` looks at
WORD = 8  # bytes that ``load_word`` and ``digits_at`` may read from a position on
MOST_DIGITS = 19  # of a number that fits uint64 whatever its digits are

_ZERO = 48
_ZEROS = np.uint64(0x3030303030303030)
_TEN_8 = np.uint64(10**8)
_U = np.uint64


def _at(context: Any, builder: Any, signature: Any, arguments: Any, kind: ir.Type) -> Any:
    """Load a value of a type from the bytes at a position, wherever they lie."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    pointer = builder.bitcast(builder.gep(array.data, [arguments[1]]), kind.as_pointer())
    return builder.load(pointer, align=1)


@intrinsic  # type: ignore[misc]
def load_word(typing_context, buf, at):
    """Return the eight bytes from ``at`` on as a uint64, the first one lowest."""

    def generate(context, builder, signature, arguments):
        return _at(context, builder, signature, arguments, ir.IntType(64))

    return types.uint64(buf, types.int64), generate


@intrinsic  # type: ignore[misc]
def non_digits(typing_context, buf, at):
    """Return a uint64 whose bit i says that byte ``at + i`` is no decimal digit, i < 32; the bits above are 0."""

    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(ir.IntType(8), WINDOW)
        window = _at(context, builder, signature, arguments, kind)
        digits = builder.sub(window, ir.Constant(kind, [_ZERO] * WINDOW))
        others = builder.icmp_unsigned(">", digits, ir.Constant(kind, [9] * WINDOW))
        return builder.zext(builder.bitcast(others, ir.IntType(WINDOW)), ir.IntType(64))

    return types.uint64(buf, types.int64), generate


@intrinsic  # type: ignore[misc]
def trailing_zeros(typing_context, bits):
    """Count the zero bits below the lowest one of a uint64: int64, 64 where there is none."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[misc]
def leading_zeros(typing_context, bits):
    """Count the zero bits above the highest one of a uint64: int64, 64 where there is none."""

    def generate(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@intrinsic  # type: ignore[misc]
def multiply(typing_context, a, b):
    """Multiply two uint64 to the upper and the lower half of 128 bits."""

    def generate(context, builder, signature, arguments):
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, word)))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


@njit(cache=True, nogil=True)
def digits_of_word(word, size):
    """Return the number that the first ``size`` bytes of a word spell, all of them digits; 1 <= ``size`` <= 8."""
    word = (word ^ _ZEROS) << _U(64 - 8 * size)  # leading zeros take the place of what is missing
    word = (word * _U(1 + (10 << 8))) >> _U(8)  # pairs of digits, in every other byte
    word = ((word & _U(0x00FF00FF00FF00FF)) * _U(1 + (100 << 16))) >> _U(16)
    return ((word & _U(0x0000FFFF0000FFFF)) * _U(1 + (10000 << 32))) >> _U(32)


@njit(cache=True, nogil=True)
def digits_at(buf, at, size):
    """Return the number that ``size`` bytes from ``at`` on spell, all of them digits; 1 <= ``size`` <= 19."""
    if size <= 8:
        return digits_of_word(load_word(buf, at), size)
    last = digits_of_word(load_word(buf, at + size - 8), 8)
    size -= 8
    if size <= 8:
        return digits_of_word(load_word(buf, at), size) * _TEN_8 + last
    middle = digits_of_word(load_word(buf, at + size - 8), 8)
    return (digits_of_word(load_word(buf, at), size - 8) * _TEN_8 + middle) * _TEN_8 + last
