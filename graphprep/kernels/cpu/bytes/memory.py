"""Bytes at addresses: copy and compare them, and ask for them ahead of their use.

As in ``words``, the functions are made to be called from other kernels, and check nothing. What lies outside of the bytes that
are named is neither read nor written.
"""

from __future__ import annotations

import numpy as np

from graphprep.kernels.compiler.jit import Intrinsic, ir, njit, types
from graphprep.kernels.cpu.bytes.words import WORD, load_byte, load_word

AHEAD = 16  # rounds of a loop to ask ahead of: about as many lines as a core waits for at a time
_HIGH_BITS = np.uint64(0x8080808080808080)

_TO_READ, _IN_ALL_CACHES, _DATA = 0, 3, 1  # arguments of llvm.prefetch


@Intrinsic
def prefetch(typing_context, address):
    """Begin to bring the cache line at an address near; any address will do."""

    def generate(context, builder, signature, arguments):
        pointer, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [pointer, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [pointer], kind)
        place = builder.inttoptr(arguments[0], pointer)
        builder.call(function, [place, number(_TO_READ), number(_IN_ALL_CACHES), number(_DATA)])
        return context.get_dummy_value()

    return types.none(types.int64), generate


def _store(builder, arguments, size):
    """Store the low ``size`` bits of a uint64 at an address, aligned or not."""
    kind = ir.IntType(size)
    value = builder.trunc(arguments[1], kind) if size < 64 else arguments[1]
    builder.store(value, builder.inttoptr(arguments[0], kind.as_pointer()), align=1)


@Intrinsic
def store_byte(typing_context, address, value):
    """Write the low byte of a uint64."""

    def generate(context, builder, signature, arguments):
        _store(builder, arguments, 8)
        return context.get_dummy_value()

    return types.none(types.int64, types.uint64), generate


@Intrinsic
def store_word(typing_context, address, word):
    """Write a uint64 as eight bytes, the low one first."""

    def generate(context, builder, signature, arguments):
        _store(builder, arguments, 64)
        return context.get_dummy_value()

    return types.none(types.int64, types.uint64), generate


@njit(cache=True, nogil=True)
def copy_bytes(source, target, size):
    """Copy ``size`` bytes from one address to another; the two must not overlap."""
    if size < WORD:
        for i in range(size):
            store_byte(target + i, np.uint64(load_byte(source + i)))
    else:
        at = np.int64(0)
        while at + WORD <= size:
            store_word(target + at, load_word(source + at))
            at += WORD
        store_word(target + size - WORD, load_word(source + size - WORD))


@njit(cache=True, nogil=True)
def are_same(one, other, size):
    """Return whether ``size`` bytes at two addresses are the same."""
    if size < WORD:
        for i in range(size):
            if load_byte(one + i) != load_byte(other + i):
                return False
        return True
    at = np.int64(0)
    while at + WORD <= size:
        if load_word(one + at) != load_word(other + at):
            return False
        at += WORD
    return load_word(one + size - WORD) == load_word(other + size - WORD)


@njit(cache=True, nogil=True)
def is_ascii(address, size):
    """Return whether none of ``size`` bytes has its highest bit set."""
    some = np.uint64(0)
    if size < WORD:
        for i in range(size):
            some |= np.uint64(load_byte(address + i))
        return some < np.uint64(0x80)
    at = np.int64(0)
    while at + WORD <= size:
        some |= load_word(address + at)
        at += WORD
    some |= load_word(address + size - WORD)
    return some & _HIGH_BITS == np.uint64(0)
