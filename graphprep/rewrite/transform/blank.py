"""The columns of an edge type with one blank row behind them, for edges that a store did not have."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.model.metadata import ArrayEntry, GraphMetadata
from graphprep.model.schema import ColumnSchema
from graphprep.store.items import StoredArray, StoredArrays
from graphprep.store.paths import ColumnPaths, num_slots_path

Ints = NDArray[np.int64]


ALWAYS = ("weight", "created_at", "removed_at", "created")  # roles of columns that a new edge has, too


class BlankRow:
    """A whole store, in which an edge type's columns have one row more, a blank one.

    There a weight is 1, a creation at 0, a removal at -1 (never); other columns are not present.
    """

    def __init__(self, store: StoredArrays, folder: str, columns: tuple[ColumnSchema, ...]) -> None:
        self.metadata: GraphMetadata = store.metadata
        self._store = store
        self._kinds = {num_slots_path(folder): "zero"}
        self._all_present: dict[str, str] = {}
        for column in columns:
            stem = f"{folder}/{column.path}"
            paths = ColumnPaths(stem)
            own = {"dense": f"{stem}.npy", "temporal": paths.entry_offsets}.get(column.kind, paths.offsets)
            dense = {"weight": "one", "removed_at": "never"}.get(column.role or "", "zero")
            self._kinds[own] = dense if column.kind == "dense" else "offset"
            if column.optional:
                self._kinds[paths.present] = "one" if column.role in ALWAYS else "zero"
            else:
                self._all_present[paths.present] = own

    def has(self, part: int, path: str) -> bool:
        """See ``StoredArrays``."""
        return path in self._all_present or self._store.has(part, path)

    def array(self, part: int, path: str) -> StoredArray:
        """See ``StoredArrays``."""
        if path in self._all_present:
            own = self._all_present[path]
            return _WithBlank(self._store.array(part, own), "present", is_offsets=self._kinds[own] == "offset")
        array = self._store.array(part, path)
        return _WithBlank(array, self._kinds[path]) if path in self._kinds else array


class _WithBlank:
    """An array with one row more: a zero, a one, -1, the last offset again, or (``present``) all true but this."""

    is_local = False

    def __init__(self, array: StoredArray, kind: str, *, is_offsets: bool = False) -> None:
        self.url = array.url
        self._array = array
        self._size = size = array.shape[0] - is_offsets
        self._kind = kind
        self.dtype: np.dtype[Any] = np.dtype(np.bool_) if kind == "present" else array.dtype
        self.shape = (size + 1,) if kind == "present" else (size + 1, *array.shape[1:])
        self.entry = ArrayEntry(array.entry.path, self.dtype.name, self.shape, array.entry.num_bytes, "")

    def read(self, start: int = 0, stop: int | None = None) -> NDArray[Any]:
        """See ``StoredArray``."""
        start, stop, _ = slice(start, stop).indices(self._size + 1)
        return self.take(np.arange(start, max(start, stop)))

    def take(self, rows: Ints) -> NDArray[Any]:
        """See ``StoredArray``."""
        blank = rows >= self._size
        if self._kind == "present":
            return ~blank
        out = np.zeros((rows.size, *self.shape[1:]), self.dtype)
        out[~blank] = self._array.take(rows[~blank])
        if self._kind in ("one", "never"):
            out[blank] = 1 if self._kind == "one" else -1
        elif self._kind == "offset" and blank.any():
            out[blank] = self._array.read(self._size - 1, self._size)[0]
        return out

    def gather(self, starts: Ints, stops: Ints) -> NDArray[Any]:
        """See ``StoredArray``."""
        counts = stops - starts
        inner = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.take(np.repeat(starts, counts) + inner)

    def map(self) -> NDArray[Any]:
        """See ``StoredArray``."""
        return self.read()
