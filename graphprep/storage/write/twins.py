"""Arrays that are written again as they are: found while they come, so that a hard link can stand for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.storage.faults import lost_file, plain_words
from graphprep.storage.read.arrays import StoreReader
from graphprep.storage.read.urls import Storage

Key = tuple[str, tuple[int, ...]]  # dtype's name, shape
Bytes = NDArray[np.uint8]
_PIECE_BYTES = 1 << 20


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
        twins = Twins(self._files.get((dtype.name, shape), ()))
        return twins if twins.follow(np.frombuffer(header, np.uint8)) else Twins(())


class Twins:
    """The files that begin with all bytes so far: ``size`` of them. They are read, not mapped: they may become shorter."""

    def __init__(self, files: Sequence[str]) -> None:
        self._files = files
        self.size = 0

    def __bool__(self) -> bool:
        return bool(self._files)

    @property
    def path(self) -> str:
        """Return one of them."""
        return self._files[0]

    def pieces(self, start: int) -> Iterator[Bytes]:
        """Yield the bytes so far, from ``start`` on."""
        for at in range(start, self.size, _PIECE_BYTES):
            piece = _read(self.path, at, min(_PIECE_BYTES, self.size - at))
            if piece.size < min(_PIECE_BYTES, self.size - at):
                raise lost_file(self.path)
            yield piece

    def follow(self, piece: Bytes) -> bool:
        """Add bytes, unless no file goes on with them: then return False."""
        kept = [path for path in self._files if np.array_equal(_read(path, self.size, piece.size), piece)]
        if kept:
            self._files, self.size = kept, self.size + piece.size
        return bool(kept)


def _read(path: str, start: int, size: int) -> Bytes:
    """Read bytes of a file; fewer where it ends before."""
    with plain_words(path):
        return np.fromfile(path, np.uint8, size, offset=start)
