"""Files of a store that grow in a folder which outlives the run, and go to the store from there when they are finished."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from graphprep.storage.spill.segments import BrokenSegmentError, Segment, SegmentFile, SegmentFolder


class _Store(Protocol):
    """What the files are of; ``kept`` is where they grow."""

    kept: SegmentFolder | None

    def place(self, path: str, segment: Segment) -> None:
        """Let a finished file be one of the store."""


class KeptSink:
    """The file ``path`` of a store. Pickled, it is known by name, size and checksum, finished or not."""

    def __init__(self, store: _Store, folder: SegmentFolder, path: str) -> None:
        self._store = store
        self._path = path
        self._file = SegmentFile(folder)

    @property
    def hash(self) -> Any:
        """Return the xxh3 of what was written, to be updated."""
        return self._file.hash()

    def write(self, data: bytes | memoryview) -> None:
        """See ``Sink``."""
        with self._file.appending() as appender:
            appender.write(np.frombuffer(data, np.uint8))

    def commit(self) -> None:
        """See ``Sink``."""
        assert self._file.segment is not None
        self._store.place(self._path, self._file.segment)

    def discard(self) -> None:
        """See ``Sink``."""
        self._file.drop()

    def __getstate__(self) -> dict[str, Any]:
        """Return what the file is known by."""
        return {"_store": self._store, "_path": self._path, "_file": self._file.segment}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Open the file.

        Raises what ``SegmentFile.open`` raises, and BrokenSegmentError where a store has the file, which must not grow then.
        """
        self.__dict__ |= state
        kept = self._store.kept
        assert kept is not None
        self._file = SegmentFile.open(kept, state["_file"])
        if self._file.path is not None and self._file.path.stat().st_nlink > 1:
            raise BrokenSegmentError(str(self._file.path))
