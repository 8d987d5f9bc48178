"""Number nodes in the order in which they are met. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


class Numbering:
    """Numbers nodes, and the same node with another time as another one; ``most`` of them at most are given."""

    def __init__(self, most: int, num_nodes: int, *, timed: bool) -> None:
        bits = max(4, int(most + (most >> 1)).bit_length())
        self._shift = np.uint64(64 - bits)
        self._is_packed = not timed and num_nodes < 2**32 - 1
        self._table: Any = np.full(1 << bits, _EMPTY, np.uint64) if self._is_packed else np.full(1 << bits, -1, np.int32)
        self._nodes = np.empty(most, np.int64)
        self._times = np.empty(most, np.int64) if timed else None
        self._count = 0

    def add(self, nodes: Any, times: Any, out: Any) -> None:
        """Write the numbers of nodes (int64[n]) with their times (int64[n] or None) to ``out`` (int32[n])."""
        if self._is_packed:
            self._count = int(_number(nodes, self._table, self._shift, self._count, self._nodes, out))
        else:
            self._count = int(_number_wide(nodes, times, self._table, self._shift, self._count, self._nodes, self._times, out))

    @property
    def nodes(self) -> Any:
        """Return the nodes by number: int64[k]."""
        return self._nodes[: self._count]

    @property
    def times(self) -> Any:
        """Return their times: int64[k] or None."""
        return None if self._times is None else self._times[: self._count]


@njit(cache=True, nogil=True)
def _number(nodes, table, shift, count, found, out):
    """A slot of the table holds a node and its number, in 32 bits each."""
    mask = uint64(table.size - 1)
    for i in range(nodes.size):
        node = uint64(nodes[i])
        slot = (node * _GOLDEN) >> shift
        while True:
            word = table[slot]
            if word == _EMPTY:
                table[slot] = (node << _HALF) | uint64(count)
                found[count] = nodes[i]
                out[i] = count
                count += 1
                break
            if (word >> _HALF) == node:
                out[i] = word & _LOW
                break
            slot = (slot + uint64(1)) & mask
    return count


@njit(cache=True, nogil=True)
def _number_wide(nodes, times, table, shift, count, found, found_times, out):
    """A slot of the table holds a number."""
    mask = uint64(table.size - 1)
    for i in range(nodes.size):
        key = uint64(nodes[i]) * _GOLDEN
        if times is not None:
            key = (key ^ (key >> _HALF) ^ uint64(times[i])) * _GOLDEN
        slot = key >> shift
        while True:
            number = table[slot]
            if number < 0:
                table[slot] = count
                found[count] = nodes[i]
                if times is not None:
                    found_times[count] = times[i]
                out[i] = count
                count += 1
                break
            if found[number] == nodes[i] and (times is None or found_times[number] == times[i]):
                out[i] = number
                break
            slot = (slot + uint64(1)) & mask
    return count
