"""Count repeated and reciprocal edges in sorted rows. The caller allocates; the jitted function fills."""

from __future__ import annotations

from typing import Any

from graphprep.kernels.compiler.jit import njit

NO_ROW = -1


def count_pairs(first: int, lengths: Any, others: Any, turned: bool, found: Any) -> None:
    """Go on counting in rows ``first`` on, whose ``lengths`` are int64[n]; ``others`` (int32[m] or int64[m]) ascend in a row.

    ``found``: int64[5], the row and the entry before (at first ``NO_ROW``), then the numbers of repeated edges, of edges that
    are no loop, each once, and of those of them whose reverse is there. Where edges are not ``turned``, entries are other ends,
    and only repeated ones are counted; else rows are the lower ends, and an entry is twice the higher end, + 1 where the edge
    leads down.
    """
    _count_pairs(first, lengths, others, turned, found)


@njit(cache=True, nogil=True)
def _count_pairs(first, lengths, others, turned, found):
    row_before, before, repeated, single, returned = found[0], found[1], found[2], found[3], found[4]
    at = 0
    for i in range(lengths.size):
        row = first + i
        for _ in range(lengths[i]):
            other = others[at]
            at += 1
            if row != row_before:
                row_before = row
                before = -2
            if other == before:
                repeated += 1
                continue
            if turned and (other >> 1) != row:
                single += 1
                if (other & 1) == 1 and before == other - 1:
                    returned += 2
            before = other
    found[0], found[1], found[2], found[3], found[4] = row_before, before, repeated, single, returned
