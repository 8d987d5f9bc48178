"""Edge columns that stand apart from their edges, read beside these, batch after batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.aligned import AlignedRuns, column_share
from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.convert.decoded.rows import Decoded
from graphprep.model.rows import ColumnKey, Relation
from graphprep.store.columns.cells import Cells, concat_cells, empty_cells

Ints = NDArray[np.int64]


class AlignedCursor:
    """Reads an edge column that stands apart from its edges, in the order of edge IDs."""

    def __init__(self, key: ColumnKey, runs: AlignedRuns | FileColumn, most_bytes: int) -> None:
        self.key = key
        self._chunks = runs.read(most_bytes)
        self._held: list[tuple[Ints, Cells]] = []

    def take(self, start: int, stop: int) -> tuple[Ints, Cells]:
        """Return the rows (edge IDs) in [start, stop) and their cells; calls go upwards."""
        while not self._held or self._held[-1][0][-1] < stop - 1:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            if chunk[0].size:
                self._held.append(chunk)
        taken = [(np.zeros(0, np.int64), empty_cells(self.key))]
        rest = []
        for rows, cells in self._held:
            cut = int(np.searchsorted(rows, stop))
            if cut:
                taken.append((rows[:cut], cells.slice(0, cut)))
            if cut < rows.size:
                rest.append((rows[cut:], cells.slice(cut, rows.size)))
        self._held = rest
        if len(taken) == 2:  # nearly always: no copy is made
            return taken[1]
        return np.concatenate([rows for rows, _ in taken]), concat_cells([cells for _, cells in taken])


def aligned_edges(decoded: Decoded, cap_bytes: int) -> dict[Relation, list[AlignedCursor]]:
    """Open all edge columns that stand apart from their edges, by relation, but for those that stay in their files.

    They are read side by side, and hold about ``cap_bytes`` together.
    """
    cursors: dict[Relation, list[AlignedCursor]] = {}
    share = column_share(cap_bytes, len(decoded.aligned))
    for (owner, key), runs in decoded.aligned.items():
        if isinstance(owner, Relation) and not (isinstance(runs, FileColumn) and runs.is_left):
            cursors.setdefault(owner, []).append(AlignedCursor(key, runs, share))
    return cursors
