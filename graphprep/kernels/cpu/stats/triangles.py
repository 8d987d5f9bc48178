"""Triangles in the rows of a graph without directions. The caller allocates; the jitted functions fill."""

from __future__ import annotations

from typing import Any

from graphprep.kernels.compiler.jit import njit


def drop_repeats(indptr: Any, indices: Any) -> int:
    """Keep one of equal neighbours side by side, where they lie; return how many entries are left.

    ``indptr``: int64[n + 1]; ``indices``: int32[m] or int64[m], ascending in each row.
    """
    return int(_drop_repeats(indptr, indices))


def keep_higher(indptr: Any, indices: Any, degrees: Any) -> int:
    """Keep the neighbours that have a higher degree, or the same and a higher number; return how many entries are left.

    ``degrees``: int64[n]. Then a triangle is in the rows of two of its nodes, and no row is longer than sqrt(2 m). Source:
    Chiba, Nishizeki, "Arboricity and subgraph listing algorithms", SIAM J. Comput. 14 (1985); Latapy 2008.
    """
    return int(_keep_higher(indptr, indices, degrees))


def count_triangles(indptr: Any, indices: Any, low: int, high: int, counts: Any, marks: Any) -> None:
    """Add to ``counts`` (int64[n]) for each node the triangles whose lowest node, by ``keep_higher``, is in [low, high).

    ``marks``: bool[n], all false before and after.
    """
    _count_triangles(indptr, indices, low, high, counts, marks)


def has_edges(indptr: Any, indices: Any, rows: Any, others: Any, out: Any) -> None:
    """Write to ``out`` (bool[k]) whether ``others`` (int64[k]) are in ``rows`` (int64[k]), whose neighbours ascend."""
    _has_edges(indptr, indices, rows, others, out)


@njit(cache=True, nogil=True)
def _drop_repeats(indptr, indices):
    at, start = 0, indptr[0]
    for row in range(indptr.size - 1):
        stop = indptr[row + 1]
        before = -1
        for i in range(start, stop):
            if indices[i] != before:
                before = indices[i]
                indices[at] = before
                at += 1
        start = stop
        indptr[row + 1] = at
    return at


@njit(cache=True, nogil=True)
def _keep_higher(indptr, indices, degrees):
    at, start = 0, indptr[0]
    for row in range(indptr.size - 1):
        stop = indptr[row + 1]
        degree = degrees[row]
        for i in range(start, stop):
            other = indices[i]
            if degrees[other] > degree or (degrees[other] == degree and other > row):
                indices[at] = other
                at += 1
        start = stop
        indptr[row + 1] = at
    return at


@njit(cache=True, nogil=True)
def _count_triangles(indptr, indices, low, high, counts, marks):
    """Mark the neighbours of a node, and look which of theirs are marked: no branch depends on how two rows interleave."""
    for row in range(low, high):
        start, stop = indptr[row], indptr[row + 1]
        if stop - start < 2:
            continue
        for i in range(start, stop):
            marks[indices[i]] = True
        of_row = 0
        for i in range(start, stop):
            other = indices[i]
            found = 0
            for j in range(indptr[other], indptr[other + 1]):
                if marks[indices[j]]:
                    counts[indices[j]] += 1
                    found += 1
            counts[other] += found
            of_row += found
        counts[row] += of_row
        for i in range(start, stop):
            marks[indices[i]] = False


@njit(cache=True, nogil=True)
def _has_edges(indptr, indices, rows, others, out):
    for i in range(rows.size):
        low, high = indptr[rows[i]], indptr[rows[i] + 1]
        stop = high
        while low < high:
            middle = (low + high) >> 1
            if indices[middle] < others[i]:
                low = middle + 1
            else:
                high = middle
        out[i] = low < stop and indices[low] == others[i]
