"""Draw negatives: for some edges of each row, other ends that the row does not have. The jitted functions fill what is given.

Rows are those of an adjacency whose ``others`` ascend in each row, repeats included; ``ids`` are edge IDs. What is drawn for
edge ``e`` follows from the key, ``e`` and the number of the draw alone, and stands in ``out`` from ``starts[e]`` on:
``counts[parts[e]]`` numbers, none where there is no such part. A row that has no candidate gets -1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy import int64, uint64
from numpy.typing import NDArray

from graphprep.kernels.compiler.jit import njit
from graphprep.kernels.cpu.sample.philox import below, philox

Ints = NDArray[np.int64]
NONE = -1
_TRIES = 64  # walks for a negative, before there is none
_NO_WEIGHTS = np.zeros(0, np.int64)


class Rows(NamedTuple):
    """An adjacency: ``indptr`` int64[n + 1]; ``others`` and ``ids`` int32[m] or int64[m]."""

    indptr: Ints
    others: NDArray[Any]
    ids: NDArray[Any]


class Wanted(NamedTuple):
    """What is drawn: ``parts`` int8[m] and ``starts`` int64[m] by edge ID, ``counts`` int64[k] by part, ``key`` below 2^64."""

    parts: NDArray[np.int8]
    starts: Ints
    counts: Ints
    key: int


def draw_others(
    rows: Rows,
    low: int,
    high: int,
    wanted: Wanted,
    *,
    num_others: int,
    is_one_type: bool,
    before: Ints | None,
    out: NDArray[Any],
) -> int:
    """Draw for the edges of rows [low, high) of the IDs 0 … num_others-1; return for how many draws there is no candidate.

    ``before`` (int64[num_others + 1], ascending from 0) are sums of weights: ID i is as likely as ``before[i + 1] - before[i]``
    says; None: all are. Where rows and other ends are of one type, the row itself is no candidate.

    A number x below the weight of all candidates stands for the candidate in which it falls when they lie side by side: what
    a row has is stepped over, so no draw is ever in vain.
    """
    longest = int(np.diff(rows.indptr[low : high + 1]).max(initial=0)) + 1
    own, sums = np.empty(longest, np.int64), np.empty(longest, np.int64)
    return int(
        _draw_others(
            *(rows.indptr, rows.others, rows.ids, low, high),
            *(wanted.parts, wanted.starts, wanted.counts, uint64(wanted.key)),
            *(num_others, is_one_type, _NO_WEIGHTS if before is None else before, own, sums, out),
        )
    )


def draw_walks(
    rows: Rows, back: Rows, low: int, high: int, wanted: Wanted, *, hops: int, is_one_type: bool, out: NDArray[Any]
) -> int:
    """Draw for the edges of rows [low, high) the ends of random walks; return how many draws have none.

    ``back`` are the same edges by their other ends. A walk begins at the row and takes 2 to ``hops`` steps over edges, in
    either direction, each of these as likely; where rows and other ends are of two types, 3, 5 … steps. One that ends where
    the row has an edge, or at the row, is followed by another one; after ``_TRIES`` there is none.
    """
    longest = int(np.diff(rows.indptr[low : high + 1]).max(initial=0)) + 1
    own = np.empty(longest, np.int64)
    return int(
        _draw_walks(
            *(rows.indptr, rows.others, rows.ids, low, high, back.indptr, back.others),
            *(wanted.parts, wanted.starts, wanted.counts, uint64(wanted.key)),
            *(hops, is_one_type, own, out),
        )
    )


@njit(cache=True, nogil=True, inline="always")
def _list_own(others, low, high, row, excludes_row, own):
    """List the distinct other ends of a row, ascending, and the row itself where it is none; return how many."""
    num = 0
    for at in range(low, high):
        other = int64(others[at])
        if excludes_row and other >= row:
            if other > row:
                own[num] = row
                num += 1
            excludes_row = False
        if num == 0 or own[num - 1] != other:
            own[num] = other
            num += 1
    if excludes_row:
        own[num] = row
        num += 1
    return num


@njit(cache=True, nogil=True, inline="always")
def _wants(ids, low, high, parts, counts):
    """Return whether something is drawn for some edge of a row."""
    for at in range(low, high):
        part = parts[ids[at]]
        if 0 <= part < counts.size and counts[part] > 0:
            return True
    return False


@njit(cache=True, nogil=True, inline="always")
def _place(x, own, sums, num, before):
    """Return the candidate in which ``x`` falls: behind as many of ``own`` as begin at or before it, not counting these."""
    is_weighted = before.size > 0
    low, high = 0, num
    while low < high:
        middle = (low + high) >> 1
        start = before[own[middle]] - sums[middle] if is_weighted else own[middle] - middle
        if start <= x:
            low = middle + 1
        else:
            high = middle
    if not is_weighted:
        return x + low
    if low > 0:
        last = own[low - 1]
        x += sums[low - 1] + before[last + 1] - before[last]
    first, stop = 0, before.size - 1
    while stop - first > 1:
        middle = (first + stop) >> 1
        if before[middle] <= x:
            first = middle
        else:
            stop = middle
    return first


@njit(cache=True, nogil=True)
def _draw_others(indptr, others, ids, low, high, parts, starts, counts, key, num_others, is_one_type, before, own, sums, out):
    is_weighted = before.size > 0
    missing = 0
    for row in range(low, high):
        start, stop = indptr[row], indptr[row + 1]
        if not _wants(ids, start, stop, parts, counts):
            continue
        num = _list_own(others, start, stop, row, is_one_type, own)
        weight = int64(num)
        if is_weighted:
            weight = int64(0)
            for i in range(num):
                sums[i] = weight
                weight += before[own[i] + 1] - before[own[i]]
        left = (before[num_others] if is_weighted else int64(num_others)) - weight
        for at in range(start, stop):
            edge = ids[at]
            part = parts[edge]
            count = counts[part] if 0 <= part < counts.size else 0
            missing += count if left == 0 else 0
            for draw in range(count):
                if left == 0:
                    out[starts[edge] + draw] = NONE
                else:
                    x = int64(below(philox(key, uint64(edge), uint64(draw)), uint64(left)))
                    out[starts[edge] + draw] = _place(x, own, sums, num, before)
    return missing


@njit(cache=True, nogil=True, inline="always")
def _has(own, num, wanted):
    low, high = 0, num
    while low < high:
        middle = (low + high) >> 1
        if own[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low < num and own[low] == wanted


@njit(cache=True, nogil=True)
def _draw_walks(
    indptr, others, ids, low, high, back_indptr, back_others, parts, starts, counts, key, hops, is_one_type, own, out
):
    missing = 0
    num_lengths = hops - 1 if is_one_type else (hops - 1) // 2
    for row in range(low, high):
        start, stop = indptr[row], indptr[row + 1]
        if not _wants(ids, start, stop, parts, counts):
            continue
        num = _list_own(others, start, stop, row, is_one_type, own)
        for at in range(start, stop):
            edge = ids[at]
            part = parts[edge]
            for draw in range(counts[part] if 0 <= part < counts.size else 0):
                found = int64(NONE)
                for attempt in range(_TRIES):
                    number = uint64(draw) | (uint64(attempt * 256) << uint64(32))
                    length = int64(below(philox(key, uint64(edge), number), uint64(num_lengths)))
                    length = length + 2 if is_one_type else 2 * length + 3
                    node = int64(row)
                    for step in range(length):
                        random = philox(key, uint64(edge), number + (uint64(step + 1) << uint64(32)))
                        ahead = int64(0) if step & 1 and not is_one_type else indptr[node + 1] - indptr[node]
                        behind = back_indptr[node + 1] - back_indptr[node] if step & 1 or is_one_type else int64(0)
                        x = int64(below(random, uint64(ahead + behind)))
                        node = int64(others[indptr[node] + x] if x < ahead else back_others[back_indptr[node] + x - ahead])
                    if not _has(own, num, node):
                        found = node
                        break
                out[starts[edge] + draw] = found
                missing += 1 if found == NONE else 0
    return missing
