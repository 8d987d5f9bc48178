"""What is looked for in texts: bytes that are no UTF-8, and order. Text r is ``values[offsets[r]:offsets[r + 1]]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.bytes.memory import is_ascii
from graphprep.kernels.cpu.bytes.words import address_of
from graphprep.kernels.cpu.text.delimited import is_utf8
from graphprep.kernels.cpu.text.texts import compare_bytes


def find_not_utf8(offsets: Any, values: Any) -> Any:
    """Return which texts are not UTF-8: bool[n]."""
    out = np.empty(offsets.size - 1, np.bool_)
    _find_not_utf8(offsets, values, out)
    return out


def find_not_above(offsets: Any, values: Any) -> Any:
    """Return which texts do not stand behind the one before them, in the order of their bytes: bool[n], the first False."""
    out = np.zeros(offsets.size - 1, np.bool_)
    _find_not_above(offsets, values, out)
    return out


@njit(cache=True, nogil=True)
def _find_not_utf8(offsets, values, out):
    base = address_of(values)
    for row in range(out.size):
        start, stop = offsets[row], offsets[row + 1]
        out[row] = not is_ascii(base + start, stop - start) and not is_utf8(values, start, stop)


@njit(cache=True, nogil=True)
def _find_not_above(offsets, values, out):
    for row in range(1, out.size):
        start, stop = offsets[row], offsets[row + 1]
        out[row] = compare_bytes(values, offsets[row - 1], start, values, start, stop) >= 0
