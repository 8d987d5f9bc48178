"""Edges and columns of generated graphs, from a seed and their number alone; docs/generate.md defines every bit.

Draw n of a stream is the n-th output of SplitMix64 seeded with the stream's key, so that any block can be made by itself.
"""

from __future__ import annotations

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.ids.hash import splitmix64

Ints = NDArray[np.int64]
Keys = NDArray[np.uint64]

_LANE_BITS, _LANE_STEP = 20, 21  # a draw has three lanes of 20 bits; the bit above each takes the result of a comparison
_LANES = np.uint64(1 | 1 << _LANE_STEP | 1 << 2 * _LANE_STEP)
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_ONE = np.uint64(1)
_LANE = np.uint64(_LANE_STEP)
_TOPS = _LANES << np.uint64(_LANE_BITS)
_HALF_WORD, _MANTISSA_SHIFT = np.uint64(32), np.uint64(11)
_UNIT = 2.0**-53
_BUYS = 0.4  # of a user's edges
_RELATION_SHIFT = 40  # a key sorts by relation, then by destination
_GAPS = np.array([1750, 701, 301, 132, 57, 23, 10, 4, 1])  # of Shell's sort; source: Ciura (2001)


# ---- draws


@njit(cache=True, nogil=True, inline="always")
def _draw(key, number):
    """Return 64 random bits."""
    return splitmix64(key + uint64(number) * _GOLDEN)


@njit(cache=True, nogil=True, inline="always")
def _draw_below(key, number, size):
    """Return a number below ``size``, which is at most 2^32."""
    return ((_draw(key, number) >> _HALF_WORD) * uint64(size)) >> _HALF_WORD


@njit(cache=True, nogil=True, inline="always")
def _draw_unit(key, number):
    """Return a float64 in [0, 1), a multiple of 2^-53."""
    return float(_draw(key, number) >> _MANTISSA_SHIFT) * _UNIT


@njit(cache=True, nogil=True)
def _fill_draws(key, first, size, add, out):
    for i in range(out.size):
        out[i] = add + np.int64(_draw_below(key, uint64(first) + uint64(i), size))


def fill_draws(key: int, first: int, size: int, out: Ints, add: int = 0) -> None:
    """See ``Kernels.fill_draws``."""
    _fill_draws(np.uint64(key), first, size, add, out)


# ---- R-MAT


@njit(cache=True, nogil=True)
def _rmat(key, first, scale, limits, src_ids, dst_ids):
    """Choose quadrants, three levels a draw at once: each 20-bit lane is compared by a subtraction that leaves its top bit."""
    num_draws = (scale + 2) // 3
    width = uint64(num_draws)
    field = (_ONE << width) - _ONE
    mask = (_ONE << uint64(scale)) - _ONE
    low, middle, high = _LANE - width, _LANE + _LANE - width, _LANE + _LANE + _LANE - width
    lower_limit, middle_limit, upper_limit = limits[0], limits[1], limits[2]
    state = key + uint64(first) * width * _GOLDEN
    for row in range(src_ids.size):
        src = uint64(0)
        dst = uint64(0)
        for draw in range(num_draws):
            bits = splitmix64(state + uint64(draw) * _GOLDEN) | _TOPS
            down = bits - middle_limit
            right = (bits - lower_limit) ^ down ^ (bits - upper_limit)
            shift = width - _ONE - uint64(draw)
            src |= (down & _TOPS) >> shift
            dst |= (right & _TOPS) >> shift
        state += width * _GOLDEN
        src = (src >> low & field) | (src >> middle & field) << width | (src >> high & field) << (width + width)
        dst = (dst >> low & field) | (dst >> middle & field) << width | (dst >> high & field) << (width + width)
        src_ids[row] = np.int64(src & mask)
        dst_ids[row] = np.int64(dst & mask)


@njit(cache=True, nogil=True)
def _permute(numbers, scale, ids):
    """Give nodes their labels, a bijection of 0..2^scale - 1: each round multiplies, adds, mixes high bits into low ones."""
    mask = (_ONE << uint64(scale)) - _ONE
    shift = uint64((scale + 1) // 2)
    f0, f1, f2, f3 = numbers[0], numbers[2], numbers[4], numbers[6]
    s0, s1, s2, s3 = numbers[1], numbers[3], numbers[5], numbers[7]
    for row in range(ids.size):
        label = (uint64(ids[row]) * f0 + s0) & mask
        label = ((label ^ (label >> shift)) * f1 + s1) & mask
        label = ((label ^ (label >> shift)) * f2 + s2) & mask
        label = ((label ^ (label >> shift)) * f3 + s3) & mask
        ids[row] = np.int64(label ^ (label >> shift))


def rmat_edges(key: int, first: int, scale: int, limits: Keys, rounds: Keys | None, src: Ints, dst: Ints) -> None:
    """See ``Kernels.rmat_edges``."""
    _rmat(np.uint64(key), first, scale, limits * _LANES, src, dst)
    if rounds is not None:
        _permute(rounds, scale, src)
        _permute(rounds, scale, dst)


# ---- grid


@njit(cache=True, nogil=True)
def _grid(first, stop, rows, cols, src, dst):
    """Link nodes first..stop-1 to the nodes above, left, right and below, and return the number of edges."""
    count = 0
    size = rows * cols
    for node in range(first, stop):
        row, col = node // cols, node % cols
        for near, there in (
            (node - cols, row > 0),
            (node - 1, col > 0),
            (node + 1, col < cols - 1),
            (node + cols, node + cols < size),
        ):
            if there:
                src[count] = node
                dst[count] = near
                count += 1
    return count


@njit(cache=True, nogil=True)
def _torus(first, stop, rows, cols, src, dst):
    """Link nodes first..stop-1 as ``_grid`` does, the borders to those on the other side."""
    count = 0
    size = rows * cols
    for node in range(first, stop):
        row, col = node // cols, node % cols
        dst[count] = node - cols if row > 0 else node - cols + size
        dst[count + 1] = node - 1 if col > 0 else node - 1 + cols
        dst[count + 2] = node + 1 if col < cols - 1 else node + 1 - cols
        dst[count + 3] = node + cols if row < rows - 1 else node + cols - size
        src[count : count + 4] = node
        count += 4
    return count


def grid_edges(first: int, stop: int, rows: int, cols: int, torus: bool, src: Ints, dst: Ints) -> int:
    """See ``Kernels.grid_edges``."""
    return int((_torus if torus else _grid)(first, stop, rows, cols, src, dst))


# ---- users and items


@njit(cache=True, nogil=True, inline="always")
def _user_of(key, edge, num_edges, num_users):
    """Return the source of an edge: it never descends, and early users have more."""
    share = (float(edge) + _draw_unit(key, edge)) / float(num_edges)
    return min(np.int64(share * np.sqrt(share) * float(num_users)), num_users - 1)


@njit(cache=True, nogil=True)
def _first_edge(key, user, num_edges, num_users):
    """Return the first edge whose source is ``user`` or a later one."""
    low, high = 0, num_edges
    while low < high:
        middle = (low + high) // 2
        if _user_of(key, middle, num_edges, num_users) < user:
            low = middle + 1
        else:
            high = middle
    return low


@njit(cache=True, nogil=True)
def _sort(keys, start, stop):
    for gap in _GAPS:
        for i in range(start + gap, stop):
            key = keys[i]
            at = i
            while at >= start + gap and keys[at - gap] > key:
                keys[at] = keys[at - gap]
                at -= gap
            keys[at] = key


@njit(cache=True, nogil=True)
def _user_edges(keys, first, num_edges, counts, src, relation, dst):
    """Draw the ends of edges, first in ``dst`` as keys that sort those of a user by relation and destination."""
    num_users, num_items = counts[0], counts[1]
    start = 0
    for i in range(src.size):
        edge = first + i
        src[i] = _user_of(keys[0], edge, num_edges, num_users)
        buys = _draw_unit(keys[1], edge) < _BUYS
        spread = _draw_unit(keys[2], edge)
        end = np.int64(spread * spread * float(num_items if buys else num_users))
        dst[i] = end | np.int64(buys) << _RELATION_SHIFT
        if src[i] != src[start]:
            _sort(dst, start, i)
            start = i
    _sort(dst, start, src.size)
    for i in range(src.size):
        relation[i] = dst[i] >> _RELATION_SHIFT
        dst[i] &= (1 << _RELATION_SHIFT) - 1


def first_edge(key: int, user: int, num_edges: int, num_users: int) -> int:
    """See ``Kernels.first_edge``."""
    return int(_first_edge(np.uint64(key), user, num_edges, num_users))


def user_edges(keys: Keys, first: int, num_edges: int, counts: Ints, src: Ints, relation: Ints, dst: Ints) -> None:
    """See ``Kernels.user_edges``."""
    _user_edges(keys, first, num_edges, counts, src, relation, dst)
