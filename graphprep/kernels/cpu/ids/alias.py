"""Alias tables (Vose): draw one of n weighted elements with two random numbers. The caller allocates; jitted functions fill.

All numbers are float32 and the order of the two stacks is fixed, so that the same weights give the same table, bit for bit, as
DeepGNN's ``Vose`` does: elements come off the ends of the stacks, and what is left of a large one goes back on top.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphprep.kernels.compiler.jit import njit

_ONE = np.float32(1)


def scale_weights(weights: Any) -> None:
    """Scale weights (float32[n], in place) so that their mean is 1. Where all are zero, they become NaN.

    The sum is NumPy's pairwise sum of float32, which decides the last bits of every table.
    """
    with np.errstate(all="ignore"):
        np.multiply(weights, np.float32(weights.size) / np.sum(weights), out=weights)


def fill_alias(scaled: Any, aliases: Any, stack: Any) -> None:
    """Turn scaled weights (float32[n]) into probabilities, in place, and fill in ``aliases`` (int32[n] or int64[n]).

    Element i is to be taken with probability ``scaled[i]``, else ``aliases[i]``, which is -1 where the probability is 1.
    ``stack``: like ``aliases``, anything; its content is lost. NaN counts as large.
    """
    _fill_alias(scaled, aliases, stack)


def write_table(ids: Any, probabilities: Any, aliases: Any, low: int, out: Any) -> None:
    """Write the records of elements from ``low`` on: the ID, that of the alias (zeros where there is none), the probability.

    ``ids``: uint32[n, w], the words of each ID; ``probabilities`` float32[n]; ``out``: uint32[k, 2 * w + 1].
    """
    _write_table(ids, probabilities.view(np.uint32), aliases, low, out)


@njit(cache=True, nogil=True)
def _write_table(ids, probabilities, aliases, low, out):
    width = ids.shape[1]
    for i in range(out.shape[0]):
        other = aliases[low + i]
        for k in range(width):
            out[i, k] = ids[low + i, k]
            out[i, width + k] = ids[other, k] if other >= 0 else np.uint32(0)
        out[i, 2 * width] = probabilities[low + i]


@njit(cache=True, nogil=True)
def _fill_alias(scaled, aliases, stack):
    """Keep both stacks in one array, which never holds more than n: the small ones grow from the left."""
    num_small = 0
    large = scaled.size  # the top of the other stack
    for i in range(scaled.size):
        aliases[i] = -1
        if scaled[i] < _ONE:
            stack[num_small] = i
            num_small += 1
    for i in range(scaled.size):
        if not scaled[i] < _ONE:
            large -= 1
            stack[large] = i
    while num_small > 0 and large < scaled.size:
        num_small -= 1
        one, other = stack[num_small], stack[large]
        aliases[one] = other
        rest = np.float32(scaled[other] + scaled[one]) - _ONE
        scaled[other] = rest
        if rest < _ONE:
            large += 1
            stack[num_small] = other
            num_small += 1
    for i in range(large, scaled.size):
        scaled[stack[i]] = _ONE
    for i in range(num_small):
        scaled[stack[i]] = _ONE
