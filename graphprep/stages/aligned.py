"""The values of a column that stands apart from its nodes or edges, as they were decoded."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from graphprep.model.rows import AlignedColumn
from graphprep.stages.cells import Arrays, cells_from, cells_of
from graphprep.storage.runs import Runs, SpillPool


class AlignedRuns:
    """Cells of rows that ascend. Where a batch has no gaps, and most have none, its first row stands for all."""

    def __init__(self, pool: SpillPool) -> None:
        self._runs = Runs(pool, 1, coalesce=False)

    def append(self, aligned: AlignedColumn, shape_code: int) -> None:
        """Take the next rows."""
        rows = aligned.chunk.rows + aligned.start if aligned.chunk.rows.size < aligned.num_rows else None
        self._runs.append(0, (np.array([aligned.start]), rows, *cells_of(aligned.chunk, shape_code).arrays()))

    def read(self, bucket: int) -> Iterator[Arrays]:
        """Yield (rows, *cells), batch by batch, as ``Runs`` do; there is one bucket."""
        for first, rows, *parts in self._runs.read(bucket):
            if rows is None:
                rows = np.arange(first[0], first[0] + cells_from(parts).num_rows)  # noqa: PLW2901
            yield (rows, *parts)

    def close(self) -> None:
        """Drop the values."""
        self._runs.close()
