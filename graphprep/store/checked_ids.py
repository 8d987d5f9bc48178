"""A store whose edge IDs, edge rows and orders of raw IDs must be permutations as they are read, for what copies them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.model.errors import DataError
from graphprep.model.metadata import ArrayEntry
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import AGAIN, ArrayReader, BlockCache, Bounds, StoreReader, file_digest
from graphprep.storage.read.urls import Storage
from graphprep.store.items import FIX
from graphprep.store.paths import edge_folder

Array = NDArray[Any]
Tally = tuple[int, int]  # sum, sum of squares
_MODULUS = 1 << 64
_STEP = 1 << 18  # values looked at at once: 2 MiB at most
_WHATS = {"edge_ids": "edge ID", "edge_rows": "edge row"}


class CheckingStore(StoreReader):
    """Opens a store; a number of an edge that is none of 0..m-1 raises DataError when it is read.

    So does one that is there twice, once the arrays of all partitions are looked at: then their sum, or that of their squares,
    is not the one of 0..m-1.
    """

    def __init__(self, storage: Storage, url: str) -> None:
        super().__init__(storage, url)
        self._tallies: dict[str, dict[str, Tally]] = {}

    def note(self, path: str, url: str, size: int, tally: Tally) -> None:
        """Take what was found in the array ``path`` of a partition. Raises DataError where a number must be there twice."""
        if path not in self._limits:  # raw_order: a permutation in each partition
            if tally != _tally_of(size):
                message = f"expected every local ID of 0 to {size - 1} once"
                raise DataError(message, place=display_url(url), fix=FIX)
            return
        tallies = self._tallies.setdefault(path, {})
        tallies[url] = tally
        num_edges, what = self._limits[path]
        if len(tallies) == self.metadata.num_parts:
            found = tuple(sum(one) % _MODULUS for one in zip(*tallies.values(), strict=True))
            if found != _tally_of(num_edges):
                message = f"expected every {what} of 0 to {num_edges - 1} once, in all partitions together"
                raise DataError(message, place=display_url(url), fix=FIX)

    def check_files(self, threads: int) -> None:
        """Hold the bytes of all arrays of a local store against its manifests, on ``threads``.

        For what wrote their values again, under new hashes, so that no store looks whole that was made of a broken one. Raises
        DataError, StorageError.
        """
        parts = range(self.metadata.num_parts)
        entries = (
            (self._storage.join(self.part_url(part), one.path), one) for part in parts for one in self.manifest(part).arrays
        )
        for url, entry, found in map_ordered(self._digest, entries, threads) if self._storage.is_local(self.url) else ():
            if found != entry.xxh3:
                message = f"the bytes are not those that were written: expected xxh3 {entry.xxh3} (manifest), found {found}"
                raise DataError(message, place=display_url(url), fix=AGAIN)

    def _digest(self, file: tuple[str, ArrayEntry]) -> tuple[str, ArrayEntry, str]:
        return *file, file_digest(self._storage, file[0])

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

    def _open(self, url: str, entry: ArrayEntry, bounds: Bounds | None) -> ArrayReader:
        limit = self._limits.get(entry.path)
        if entry.path.endswith("/raw_order.npy") and len(entry.shape) == 1:
            limit = (entry.shape[0], "local ID")
        if limit is None:
            return super()._open(url, entry, bounds)
        return _CheckedNumbers(self, self._storage, url, entry, self._cache, *limit)


def _tally_of(num_edges: int) -> Tally:
    """Return the sum of 0..m-1, and of their squares."""
    m = num_edges
    return m * (m - 1) // 2 % _MODULUS, (m - 1) * m * (2 * m - 1) // 6 % _MODULUS


class _CheckedNumbers(ArrayReader):
    """Reads numbers that must lie in [0, limit). A local file is looked at once, from its beginning to its end."""

    def __init__(
        self, store: CheckingStore, storage: Storage, url: str, entry: ArrayEntry, cache: BlockCache, limit: int, what: str
    ) -> None:
        super().__init__(storage, url, entry, cache)
        self._store = store
        self._limit = limit
        self._what = what
        self._is_checked = False

    def read(self, start: int = 0, stop: int | None = None) -> Array:
        """See ``ArrayReader``."""
        if self.is_local:
            self._check_all()
            return super().read(start, stop)
        return self._check_values(super().read(start, stop), slice(start, stop).indices(self.shape[0])[0])

    def gather(self, starts: NDArray[np.int64], stops: NDArray[np.int64]) -> Array:
        """See ``ArrayReader``."""
        values = super().gather(starts, stops)
        return values if self.is_local else self._check_values(values, None)

    def map(self) -> Array:
        """See ``ArrayReader``."""
        if self.is_local:
            self._check_all()
            return super().map()
        values = super().map()
        self._note(values[start : start + _STEP] for start in range(0, values.size, _STEP))
        return values

    def _check_all(self) -> None:
        if not self._is_checked:
            size = self.shape[0]
            self._note(ArrayReader.read(self, start, start + _STEP) for start in range(0, size, _STEP))
            self._is_checked = True

    def _note(self, pieces: Iterable[Array]) -> None:
        """Check all values, one piece behind the other."""
        total, squares, first = 0, 0, 0
        for piece in pieces:
            some = self._check_values(piece, first).astype(np.uint64)
            total, squares, first = total + int(some.sum()), squares + int((some * some).sum()), first + some.size
        self._store.note(self.entry.path, self.url, self._limit, (total % _MODULUS, squares % _MODULUS))

    def _check_values(self, values: Array, first: int | None) -> Array:
        if values.size and (values.min() < 0 or values.max() >= self._limit):
            at = int(np.argmax((values < 0) | (values >= self._limit)))
            place = display_url(self.url) + ("" if first is None else f"[{first + at}]")
            raise DataError(
                f"expected a{'n' * self._what.startswith('edge')} {self._what} in [0, {self._limit}), found {values[at]}",
                place=place,
                fix=FIX,
            )
        return values
