"""Arrays that are written again as they are: found while they come, so that a hard link can stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.storage.arrays import StoreReader
from graphprep.storage.maps import map_file
from graphprep.storage.urls import Storage

Key = tuple[str, tuple[int, ...]]  # dtype's name, shape
Bytes = NDArray[np.uint8]


class TwinFinder:
    """Finds the stored files whose bytes are those of an array that is about to be written, piece by piece."""

    def __init__(self, files: Mapping[Key, Iterable[str]]) -> None:
        """Take the local ``.npy`` files that may be linked to, by dtype and shape."""
        self._files = {key: tuple(paths) for key, paths in files.items()}

    @classmethod
    def of(cls, store: StoreReader, storage: Storage) -> TwinFinder:
        """Look among all arrays of a store; one that is remote has none."""
        files: dict[Key, list[str]] = {}
        for part in range(store.metadata.num_parts):
            for entry in store.manifest(part).arrays:
                path = storage.local_path(storage.join(store.part_url(part), entry.path))
                if path is not None:
                    files.setdefault((entry.dtype, entry.shape), []).append(path)
        return cls(files)

    def start(self, dtype: np.dtype[Any], shape: tuple[int, ...], header: bytes) -> Twins:
        """Begin an array."""
        found = ((path, map_file(path, np.uint8)) for path in self._files.get((dtype.name, shape), ()))
        return Twins({path: data for path, data in found if bytes(data[: len(header)]) == header}, len(header))


class Twins:
    """The files that begin with all bytes so far: ``size`` of them."""

    def __init__(self, files: dict[str, Bytes], size: int) -> None:
        self._files = files
        self.size = size

    def __bool__(self) -> bool:
        return bool(self._files)

    @property
    def path(self) -> str:
        """Return one of them."""
        return next(iter(self._files))

    @property
    def data(self) -> Bytes:
        """Return the bytes so far."""
        return next(iter(self._files.values()))[: self.size]

    def follow(self, piece: Bytes) -> bool:
        """Add bytes, unless no file goes on with them: then return False."""
        stop = self.size + piece.size
        kept = {path: data for path, data in self._files.items() if np.array_equal(data[self.size : stop], piece)}
        if kept:
            self._files, self.size = kept, stop
        return bool(kept)
