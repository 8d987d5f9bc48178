"""A store whose edge IDs and edge rows are held against the number of edges as they are read, for what copies them."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError
from graphprep.model.metadata import ArrayEntry
from graphprep.stages.check_files import edge_folder
from graphprep.stages.stored_items import FIX
from graphprep.storage.arrays import ArrayReader, BlockCache, StoreReader
from graphprep.storage.faults import display_url
from graphprep.storage.urls import Storage

Array = NDArray[Any]
_STEP = 1 << 18  # values looked at at once: 2 MiB at most
_WHATS = {"edge_ids": "edge ID", "edge_rows": "edge row"}


class CheckingStore(StoreReader):
    """Opens a store; a number of an edge that is none of 0..m-1 raises DataError when it is read."""

    @cached_property
    def _limits(self) -> dict[str, tuple[int, str]]:
        """Return, for each path of such numbers, how many edges there are, and what the numbers are."""
        counts = zip(map(edge_folder, self.metadata.edge_types), self.metadata.num_edges_per_type, strict=True)
        return {
            f"{folder}/{layout}/{name}.npy": (num_edges, what)
            for folder, num_edges in counts
            for layout in self.metadata.layouts
            for name, what in _WHATS.items()
        }

    def _open(self, url: str, entry: ArrayEntry) -> ArrayReader:
        limit = self._limits.get(entry.path)
        if limit is None:
            return super()._open(url, entry)
        return _CheckedNumbers(self._storage, url, entry, self._cache, *limit)


class _CheckedNumbers(ArrayReader):
    """Reads numbers that must lie in [0, limit). A map is looked at once, from its beginning to its end."""

    def __init__(self, storage: Storage, url: str, entry: ArrayEntry, cache: BlockCache, limit: int, what: str) -> None:
        super().__init__(storage, url, entry, cache)
        self._limit = limit
        self._what = what
        self._checked: Array | None = None

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """See ``ArrayReader``."""
        values = super().read(start, stop)
        return values if self.is_local else self._check_values(values, slice(start, stop).indices(self.shape[0])[0])

    def gather(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Array:
        """See ``ArrayReader``."""
        values = super().gather(starts, stops)
        return values if self.is_local else self._check_values(values, None)

    def map(self) -> Array:
        """See ``ArrayReader``."""
        if self._checked is None:
            mapped = super().map()
            for start in range(0, mapped.size, _STEP):
                self._check_values(mapped[start : start + _STEP], start)
            if not self.is_local:
                return mapped
            self._checked = mapped
        return self._checked

    def _check_values(self, values: Array, first: int | None) -> Array:
        if values.size and (values.min() < 0 or values.max() >= self._limit):
            at = int(np.argmax((values < 0) | (values >= self._limit)))
            place = display_url(self.url) + ("" if first is None else f"[{first + at}]")
            raise DataError(f"expected an {self._what} in [0, {self._limit}), found {values[at]}", place=place, fix=FIX)
        return values
