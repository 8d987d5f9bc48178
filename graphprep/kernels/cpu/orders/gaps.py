"""Gaps between the neighbours of a row. The caller allocates; the jitted function fills."""

from __future__ import annotations

from typing import Any

from graphprep.kernels.compiler.jit import njit


def fill_gaps(values: Any, bounds: Any, rows: Any, gaps: Any) -> None:
    """Write the gaps in front of ascending neighbours, each 1 or more.

    ``values`` (int32[m] or int64[m]) ascend in each row; ``bounds``: int64[n + 1], from 0 to m; ``rows``: int64[n], the IDs of
    the rows; ``gaps``: int64[m]. In front of a row's first neighbour it is 1 + 2 d where that is d above the row's ID, 2 d
    where it is d below; in front of others 1 + the difference from the one before.

    Source: Boldi, Vigna 2004, "The WebGraph Framework I", section 4, but that equal neighbours are counted.
    """
    _fill_gaps(values, bounds, rows, gaps)


@njit(cache=True, nogil=True)
def _fill_gaps(values, bounds, rows, gaps):
    for row in range(rows.size):
        start, stop = bounds[row], bounds[row + 1]
        if start < stop:
            distance = values[start] - rows[row]
            gaps[start] = 1 + 2 * distance if distance >= 0 else -2 * distance
        for i in range(start + 1, stop):
            gaps[i] = 1 + values[i] - values[i - 1]
