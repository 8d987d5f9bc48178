"""Bytes, words and windows at addresses: unaligned loads, masks and counts of bits, for the kernels that read digits.

The functions are made to be called from other kernels. An address is an int64, ``address_of(buf)`` and a position: passing
arrays to helpers costs atomic counts of references in the middle of the loops that are to be fast. Nothing is checked: what is
read must be in the buffer, which somebody else holds. The first byte is the lowest, as on all machines that Numba is made for.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import Intrinsic, ir, njit, types

WINDOW = 32  # bytes that ``non_digits`` looks at
WORD = 8  # bytes that ``load_word`` and ``digits_at`` may read from an address on
MOST_DIGITS = 19  # of a number that fits uint64 whatever its digits are
SCRATCH_WORDS = 160  # what the longest comparison of decimals takes

_ZERO = 48
_ZEROS = np.uint64(0x3030303030303030)
_TEN_8 = np.uint64(10**8)
_U = np.uint64


def _load(builder: Any, arguments: Any, kind: ir.Type) -> Any:
    """Load a value of a type from an address, aligned or not."""
    return builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=1)


@Intrinsic
def address_of(typing_context, buf):
    """Return the address of an array's first byte."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        return builder.ptrtoint(array.data, ir.IntType(64))

    return types.int64(buf), generate


@Intrinsic
def load_byte(typing_context, address):
    """Return one byte as an int64."""

    def generate(context, builder, signature, arguments):
        return builder.zext(_load(builder, arguments, ir.IntType(8)), ir.IntType(64))

    return types.int64(types.int64), generate


@Intrinsic
def load_word(typing_context, address):
    """Return eight bytes as a uint64, the first one lowest."""

    def generate(context, builder, signature, arguments):
        return _load(builder, arguments, ir.IntType(64))

    return types.uint64(types.int64), generate


@Intrinsic
def non_digits(typing_context, address):
    """Return a uint64 whose bit i says that byte i is no decimal digit, i < 32; the bits above are 0."""

    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(ir.IntType(8), WINDOW)
        values = builder.sub(_load(builder, arguments, kind), ir.Constant(kind, [_ZERO] * WINDOW))
        others = builder.icmp_unsigned(">", values, ir.Constant(kind, [9] * WINDOW))
        return builder.zext(builder.bitcast(others, ir.IntType(WINDOW)), ir.IntType(64))

    return types.uint64(types.int64), generate


@Intrinsic
def marks(typing_context, address, first, second, third):
    """Return a uint64 whose bit i says that byte i is one of three (int64), i < 32; the bits above are 0."""

    def generate(context, builder, signature, arguments):
        kind = ir.VectorType(ir.IntType(8), WINDOW)
        window = _load(builder, arguments, kind)
        found = ir.Constant(ir.VectorType(ir.IntType(1), WINDOW), None)
        for byte in arguments[1:]:
            one = builder.insert_element(ir.Constant(kind, ir.Undefined), builder.trunc(byte, ir.IntType(8)), ir.IntType(32)(0))
            lanes = ir.Constant(ir.VectorType(ir.IntType(32), WINDOW), [0] * WINDOW)
            every = builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), lanes)
            found = builder.or_(found, builder.icmp_unsigned("==", window, every))
        return builder.zext(builder.bitcast(found, ir.IntType(WINDOW)), ir.IntType(64))

    return types.uint64(types.int64, types.int64, types.int64, types.int64), generate


@Intrinsic
def trailing_zeros(typing_context, bits):
    """Count the zero bits below the lowest one of a uint64: int64, 64 where there is none."""

    def generate(context, builder, signature, arguments):
        return builder.cttz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@Intrinsic
def leading_zeros(typing_context, bits):
    """Count the zero bits above the highest one of a uint64: int64, 64 where there is none."""

    def generate(context, builder, signature, arguments):
        return builder.ctlz(arguments[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), generate


@Intrinsic
def multiply(typing_context, a, b):
    """Multiply two uint64 to the upper and the lower half of 128 bits."""

    def generate(context, builder, signature, arguments):
        wide, word = ir.IntType(128), ir.IntType(64)
        product = builder.mul(*(builder.zext(argument, wide) for argument in arguments))
        high = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
        return context.make_tuple(builder, signature.return_type, (high, builder.trunc(product, word)))

    return types.UniTuple(types.uint64, 2)(types.uint64, types.uint64), generate


@Intrinsic
def scratch(typing_context):
    """Return SCRATCH_WORDS zeroed uint64 on the stack, as a pointer: arrays would take Numba's own memory management."""

    def generate(context, builder, signature, arguments):
        kind = ir.ArrayType(ir.IntType(64), SCRATCH_WORDS)
        with builder.goto_entry_block():
            place = builder.alloca(kind)
        builder.store(ir.Constant(kind, None), place)
        return builder.bitcast(place, ir.IntType(64).as_pointer())

    return types.CPointer(types.uint64)(), generate


@njit(cache=True, nogil=True)
def digits_of_word(word, size):
    """Return the number that the first ``size`` bytes of a word spell, all of them digits; 1 <= ``size`` <= 8."""
    word = (word ^ _ZEROS) << _U(64 - 8 * size)  # leading zeros take the place of what is missing
    word = (word * _U(1 + (10 << 8))) >> _U(8)  # pairs of digits, in every other byte
    word = ((word & _U(0x00FF00FF00FF00FF)) * _U(1 + (100 << 16))) >> _U(16)
    return ((word & _U(0x0000FFFF0000FFFF)) * _U(1 + (10000 << 32))) >> _U(32)


@njit(cache=True, nogil=True)
def digits_at(address, size):
    """Return the number that ``size`` bytes spell, all of them digits; 1 <= ``size`` <= 19."""
    if size <= WORD:
        return digits_of_word(load_word(address), size)
    last = digits_of_word(load_word(address + size - WORD), WORD)
    size -= WORD
    if size <= WORD:
        return digits_of_word(load_word(address), size) * _TEN_8 + last
    middle = digits_of_word(load_word(address + size - WORD), WORD)
    return (digits_of_word(load_word(address), size - WORD) * _TEN_8 + middle) * _TEN_8 + last
