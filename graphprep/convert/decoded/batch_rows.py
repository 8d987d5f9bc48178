"""What a batch of decoded rows is held as, until all of the input is decoded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]


class BatchNodes(NamedTuple):
    """The nodes of a batch: raw IDs (uint64[n]), codes of their types (int32[n]), and how many slots they state (int32[n])."""

    ids: RawIds
    types: NDArray[np.int32]
    num_slots: NDArray[np.int32] | None


class RawBatchEdges(NamedTuple):
    """The edges of a batch: raw IDs of both ends, uint32[m] where all are below 2^32, else uint64[m].

    ``relations`` are codes (int32[m]), None where there is but one; ``num_slots`` (int32[m]) is what the edges state, if
    anything.
    """

    src: NDArray[Any]
    dst: NDArray[Any]
    relations: NDArray[np.int32] | None = None
    num_slots: NDArray[np.int32] | None = None


class EndHashes(NamedTuple):
    """h of the raw IDs of sources and of destinations, None where these are numbers."""

    src: RawIds | None = None
    dst: RawIds | None = None


@dataclass(frozen=True)
class BatchCells:
    """The rows (None: all of the batch) and cells of each column of a batch."""

    columns: tuple[tuple[Ints | None, Cells], ...] = ()

    def __iter__(self) -> Iterator[NDArray[Any] | None]:
        for rows, cells in self.columns:
            yield rows
            yield from cells

    @classmethod
    def _make(cls, arrays: Iterable[Any]) -> BatchCells:
        parts, step = tuple(arrays), 1 + len(Cells._fields)
        return cls(tuple((parts[at], Cells._make(parts[at + 1 : at + step])) for at in range(0, len(parts), step)))
