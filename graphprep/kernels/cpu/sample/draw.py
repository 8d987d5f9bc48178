"""Draw entries from rows. The caller allocates; the jitted functions fill. What is drawn of a row ascends.

A request is a node whose row is drawn from, in a flow, with a key for its random numbers. It has the words of the counters (0,
node mod 2^32, node div 2^32, salt), (1, ...) ... in order, whatever other requests there are; the salt stands for its time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy import uint64

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.sample.philox import philox_words, random_words

_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ZERO = np.uint64(0)
_ONE = np.uint64(1)
_TO_DOUBLE = 2.0**-53


def stream_keys(seed: int, epochs: Any, batches: Any, hop: int, stream: int) -> Any:
    """Return the key of each flow for the draws of a hop: uint64[n], two words of the counter (batch, epoch, hop, stream).

    ``epochs``, ``batches``: integers[n] below 2^32; ``stream`` tells apart what is drawn in the hop.
    """
    flows = np.array(batches, np.uint64) | (np.array(epochs, np.uint64) << _HALF)
    return random_words(seed, flows, hop | (stream << 32))


def find_bounds(order: Any, nodes: Any, indptr: Any, first: int, num_edges: int, starts: Any, degrees: Any) -> int:
    """Write where the rows of nodes begin and how long they are; return the number of one whose bounds are faulty, else -1.

    ``order``: which of the nodes, int64[k], None: all; ``indptr``: int64, that of the rows from ``first`` on.
    """
    return int(_find_bounds(order, nodes, indptr, first, num_edges, starts, degrees))


def draw_uniform(
    nodes: Any, times: Any, flows: Any, keys: Any, starts: Any, degrees: Any, offsets: Any, replace: bool, positions: Any
) -> None:
    """Write the positions of the entries that are drawn from each row, all with the same probability.

    ``flows``: int32[n], the flow of each request, None where there is one; ``keys``: uint64[flows]. ``offsets``: int64[n + 1],
    where each request writes to: with ``replace`` any number, without at most as many as the row has.
    """
    _draw_uniform(nodes, times, flows, keys, starts, degrees, offsets, replace, positions)


def draw_chosen(
    order: Any,
    at: Any,
    nodes: Any,
    times: Any,
    flows: Any,
    keys: Any,
    starts: Any,
    degrees: Any,
    offsets: Any,
    fanout: int,
    replace: bool,
    weights: Any,
    stamps: Any,
    held: Any,
    positions: Any,
    counts: Any,
) -> int:
    """Draw by weight, of entries before the request's time; return the position of a weight that is none, else -1.

    ``order``: which requests; ``at``: where in ``weights`` and ``stamps`` (each None: uniform, any time) their rows begin.
    ``held``: float64[4, k], anything, k the longest row. ``counts`` gets how many of those that ``offsets`` leave room for.
    """
    return int(
        _draw_chosen(
            order, at, nodes, times, flows, keys, starts, degrees, offsets, fanout, replace, weights, stamps, held,
            positions, counts,
        )
    )  # fmt: skip


def take_entries(order: Any, positions: Any, values: Any, first: int, out: Any) -> None:
    """Write the values at positions; ``values`` are those from position ``first`` on; ``order``: which, int64[k], None: all."""
    _take_entries(order, positions, values, first, out)


@njit(cache=True, nogil=True, error_model="numpy")
def _find_bounds(order, nodes, indptr, first, num_edges, starts, degrees):
    for j in range(nodes.size if order is None else order.size):
        i = j if order is None else order[j]
        row = nodes[i] - first
        start, stop = indptr[row], indptr[row + 1]
        if start < 0 or stop < start or stop > num_edges:
            return i
        starts[i] = start
        degrees[i] = stop - start
    return -1


@njit(cache=True, nogil=True, error_model="numpy")
def _take_entries(order, positions, values, first, out):
    if order is None:
        for i in range(positions.size):
            out[i] = values[positions[i] - first]
    else:
        for j in range(order.size):
            out[order[j]] = values[positions[order[j]] - first]


@njit(cache=True, nogil=True, inline="always")
def _salt(time):
    return (uint64(time) ^ (uint64(time) >> _HALF)) & _LOW


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_uniform(nodes, times, flows, keys, starts, degrees, offsets, replace, positions):
    """Floyd's algorithm; of a bounded number by Lemire's multiplication, that rejects what would not be uniform."""
    for i in range(nodes.size):
        begin = offsets[i]
        size = offsets[i + 1] - begin
        degree = degrees[i]
        start = starts[i]
        if size == degree and not replace:
            for j in range(size):
                positions[begin + j] = start + j
            continue
        key = keys[0] if flows is None else keys[flows[i]]
        node0, node1 = uint64(nodes[i]) & _LOW, uint64(nodes[i]) >> _HALF
        salt = _ZERO if times is None else _salt(times[i])
        block, have = _ZERO, 0
        word0, word1, word2, word3 = _ZERO, _ZERO, _ZERO, _ZERO
        for j in range(size):
            last = degree - 1 if replace else degree - size + j
            bound = uint64(last + 1)
            while True:
                if have == 0:
                    word0, word1, word2, word3 = philox_words(block, node0, node1, salt, key)
                    block += _ONE
                    have = 4
                product = word0 * bound
                word0, word1, word2 = word1, word2, word3
                have -= 1
                rest = product & _LOW
                if rest >= bound or rest >= ((_LOW - bound + _ONE) % bound):
                    break
            chosen = start + int(product >> _HALF)
            k = begin + j
            while k > begin and positions[k - 1] > chosen:
                k -= 1
            if not replace and k > begin and positions[k - 1] == chosen:
                positions[begin + j] = start + last
                continue
            for moved in range(begin + j, k, -1):
                positions[moved] = positions[moved - 1]
            positions[k] = chosen


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_chosen(
    order, at, nodes, times, flows, keys, starts, degrees, offsets, fanout, replace, weights, stamps, held, positions, counts
):
    for j in range(nodes.size if order is None else order.size):
        i = j if order is None else order[j]
        first, begin = at[j], offsets[i]
        num = 0
        for k in range(degrees[i]):
            if stamps is not None and not stamps[first + k] < times[i]:
                continue
            weight = 1.0
            if weights is not None:
                weight = float(weights[first + k])
                if not (weight >= 0.0 and weight < math.inf):
                    return starts[i] + k
                if weight == 0.0:
                    continue
            held[0, num] = k
            held[1, num] = weight
            num += 1
        size = num if fanout < 0 or (num <= fanout and not replace) else fanout
        if num == 0:
            size = 0
        counts[i] = size
        if size == num and (fanout < 0 or not replace):
            for k in range(num):
                positions[begin + k] = starts[i] + int(held[0, k])
            continue
        if size == 0:
            continue
        key = keys[0] if flows is None else keys[flows[i]]
        salt = _ZERO if times is None else _salt(times[i])
        if replace:
            _draw_by_alias(held, num, size, nodes[i], salt, key, starts[i], positions, begin)
        else:
            _draw_by_jumps(held, num, size, nodes[i], salt, key, starts[i], positions, begin)
        for k in range(begin + 1, begin + size):
            moved = positions[k]
            to = k
            while to > begin and positions[to - 1] > moved:
                positions[to] = positions[to - 1]
                to -= 1
            positions[to] = moved
    return -1


@njit(cache=True, nogil=True, inline="always")
def _uniform(draw, node, salt, key):
    """Return the request's number ``draw`` in (0, 1], of 53 bits: words 2 draw and 2 draw + 1, the first one above."""
    words = philox_words(uint64(draw >> 1), uint64(node) & _LOW, uint64(node) >> _HALF, salt, key)
    if draw & 1:
        high, low = words[2], words[3]
    else:
        high, low = words[0], words[1]
    return (float((high << uint64(21)) | (low >> uint64(11))) + 1.0) * _TO_DOUBLE


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_by_alias(held, num, size, node, salt, key, start, positions, begin):
    """Alias tables (Vose 1991): held[1] becomes the probability of each entry, held[2] its alias; held[3] is the stacks."""
    total = 0.0
    for k in range(num):
        total += held[1, k]
    num_small, large = 0, num
    for k in range(num):
        held[1, k] = held[1, k] / total * num
        held[2, k] = k
        if held[1, k] < 1.0:
            held[3, num_small] = k
            num_small += 1
        else:
            large -= 1
            held[3, large] = k
    while num_small > 0 and large < num:
        num_small -= 1
        one, other = int(held[3, num_small]), int(held[3, large])
        held[2, one] = other
        held[1, other] = held[1, other] + held[1, one] - 1.0
        if held[1, other] < 1.0:
            large += 1
            held[3, num_small] = other
            num_small += 1
    for k in range(num_small):
        held[1, int(held[3, k])] = 1.0
    for draw in range(size):
        at = (1.0 - _uniform(draw, node, salt, key)) * num
        entry = int(at)
        if entry >= num:
            entry = num - 1
        if at - entry >= held[1, entry]:
            entry = int(held[2, entry])
        positions[begin + draw] = start + int(held[0, entry])


@njit(cache=True, nogil=True, error_model="numpy")
def _draw_by_jumps(held, num, size, node, salt, key, start, positions, begin):
    """A-ExpJ: Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006; held[2] has the logarithms of keys."""
    draw = 0
    for k in range(size):
        held[2, k] = math.log(_uniform(draw, node, salt, key)) / held[1, k]
        draw += 1
        positions[begin + k] = start + int(held[0, k])
    lowest = 0
    for k in range(1, size):
        if held[2, k] < held[2, lowest]:
            lowest = k
    jump = math.log(_uniform(draw, node, salt, key)) / held[2, lowest] if held[2, lowest] < 0.0 else math.inf
    draw += 1
    for k in range(size, num):
        jump -= held[1, k]
        if jump > 0.0:
            continue
        least = math.exp(held[2, lowest] * held[1, k])
        number = least + (1.0 - least) * _uniform(draw, node, salt, key)
        draw += 1
        held[2, lowest] = math.log(number) / held[1, k]
        positions[begin + lowest] = start + int(held[0, k])
        for other in range(size):
            if held[2, other] < held[2, lowest]:
                lowest = other
        jump = math.log(_uniform(draw, node, salt, key)) / held[2, lowest] if held[2, lowest] < 0.0 else math.inf
        draw += 1
