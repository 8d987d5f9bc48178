"""What every store is written with: arrays that lie cut into partitions, and what stands beside them at the end.

Pieces of an array come in order, and go to the partition whose turn it is. The end is a manifest for each partition,
provenance.json, and metadata.json, which publishes the store.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Any, TypeVar, cast

import numpy as np
import xxhash
from numpy.typing import NDArray

from graphprep.model.metadata import (
    MANIFEST_NAME,
    PROVENANCE_NAME,
    ArrayEntry,
    GraphMetadata,
    Manifest,
    PartEntry,
    dump_json,
    dump_store_json,
    part_name,
)
from graphprep.model.shown.texts import without_secrets
from graphprep.model.version import __version__
from graphprep.storage.faults import display_url
from graphprep.storage.read.urls import Storage
from graphprep.storage.spill.segments import Segment
from graphprep.storage.write.publish import ArrayWriter, StoreWriter

Ints = NDArray[np.int64]
T = TypeVar("T")
_LINEAGE = ("convert", "operations", "split")


class PartList:
    """Where the arrays of all partitions are written, and the manifest entries of those that are complete.

    Where ``keep`` records what is there by now, for a run that goes on, what is being written is an object that can be pickled.
    """

    def __init__(self, writer: StoreWriter, num_parts: int, folder: str = "") -> None:
        """Let partitions lie in ``folder`` of the store, which ends with a slash."""
        self.writer = writer
        self.num_parts = num_parts
        self.paths = list(map(folder.__add__, map(part_name, range(num_parts), repeat(num_parts))))
        self.entries: list[list[ArrayEntry]] = [[] for _ in range(num_parts)]
        self.keep: Callable[[], None] | None = None
        self._begun: dict[str, Any] = {}
        self._done: set[str] = set()

    def open(self, part: int, path: str, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> ArrayWriter:
        """Begin an array of a partition."""
        return self.writer.open_array(self.paths[part], path, dtype, shape)

    def going_on(self, name: str, begin: Callable[[], T]) -> T:
        """Return what writes ``name``, as an earlier run left it; else begin it."""
        if self.keep is None:
            return begin()
        if name not in self._begun:
            self._begun[name] = begin()
        return cast(T, self._begun[name])

    def once(self, name: str, write: Callable[[], None]) -> None:
        """Write ``name``, unless an earlier run did."""
        if name not in self._done:
            write()
        if self.keep is not None:
            self._done.add(name)

    def pause(self) -> None:
        """Let be recorded what is there by now, where that is wanted."""
        if self.keep is not None:
            self.keep()

    def forget(self) -> None:
        """Let go of all that was begun: it is done."""
        self._begun.clear()
        self._done.clear()

    def placed(self) -> dict[str, Segment]:
        """Return the files of the arrays that are complete, by path, where they are kept."""
        files: dict[str, Segment] = {}
        for path, entries in zip(self.paths, self.entries, strict=True):
            for entry in entries:
                files[f"{path}/{entry.path}"] = self.writer.placed[f"{path}/{entry.path}"]
        return files

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what belongs to the run."""
        return self.__dict__ | {"keep": None}


class PartedArray:
    """One array in every partition; ``sizes`` (int64[P]) are the lengths of the first axis."""

    def __init__(
        self, parts: PartList, path: str, dtype: np.dtype[np.generic] | str, sizes: Ints, item_shape: tuple[int, ...] = ()
    ) -> None:
        self._parts = parts
        self._path = path
        self._dtype = np.dtype(dtype)
        self._sizes = sizes
        self._item_shape = item_shape
        self._part = -1
        self._left = 0
        self._array: ArrayWriter | None = None  # of the partition whose turn it is, while it is not full

    def _begin(self) -> ArrayWriter:
        """Open the array of the next partition."""
        self._part += 1
        assert self._part < self._sizes.size, f"{self._path}: more values than the partitions hold"
        self._left = int(self._sizes[self._part])
        return self._parts.open(self._part, self._path, self._dtype, (self._left, *self._item_shape))

    def append(self, values: NDArray[np.generic]) -> None:
        """Write the next values; the first axis counts."""
        at = 0
        while at < len(values):
            array = self._array or self._begin()
            size = min(self._left, len(values) - at)
            if size:
                array.append(np.ascontiguousarray(values[at : at + size], self._dtype))
            self._left -= size
            at += size
            self._array = array if self._left else None
            if not self._left:
                self._parts.entries[self._part].append(array.close())

    def close(self) -> None:
        """Check that every partition is complete; the last ones may be empty."""
        assert self._array is None, f"{self._path}: values are missing"
        while self._part + 1 < self._sizes.size:
            self._parts.entries[self._part + 1].append(self._begin().close())


class PartedOffsets(PartedArray):
    """Offsets over partitioned rows: each partition's begin with 0 and have one number more than it has rows."""

    def __init__(self, parts: PartList, path: str, sizes: Ints) -> None:
        super().__init__(parts, path, np.dtype(np.int64), sizes + 1)
        self._total = 0

    def append(self, counts: NDArray[np.generic]) -> None:
        """Write the offsets behind the next rows; ``counts`` (int64) are their lengths."""
        at = 0
        while at < counts.size:
            if self._array is None:
                self._total = 0
                super().append(np.zeros(1, np.int64))
                continue
            size = min(self._left, counts.size - at)
            offsets = np.cumsum(counts[at : at + size]) + self._total
            super().append(offsets)
            self._total = int(offsets[-1])
            at += size

    def close(self) -> None:
        """Check that every partition is complete; the last ones may have no rows."""
        while self._array is None and self._part + 1 < self._sizes.size:
            super().append(np.zeros(1, np.int64))
        super().close()


def finish_store(
    writer: StoreWriter,
    entries: Sequence[Sequence[ArrayEntry]],
    metadata: GraphMetadata,
    provenance: Callable[[], object],
) -> GraphMetadata:
    """Write what stands beside the arrays, and publish the store; ``entries`` are its arrays, by partition.

    Returns ``metadata`` with the manifests. ``provenance`` is asked last.
    """
    parts = []
    for part, arrays in enumerate(entries):
        path = part_name(part, metadata.num_parts)
        data = dump_store_json(Manifest(part, tuple(arrays)).to_json())
        writer.write_file(f"{path}/{MANIFEST_NAME}", data)
        parts.append(PartEntry(path, len(data), xxhash.xxh3_64_hexdigest(data)))
    metadata = replace(metadata, parts=tuple(parts))
    writer.write_file(PROVENANCE_NAME, dump_json(provenance()))
    writer.publish(dump_store_json(metadata.to_json()))
    return metadata


def provenance(
    urls: Sequence[str], storage: Storage, elapsed_s: float, device: str = "", lineage: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Tell how a store was made; the only file in which the time, the host and the command line occur.

    ``device`` is what computed beside the CPU; ``lineage`` is from which input the graph comes, and how.
    """
    import platform
    import socket

    inputs = []
    for url in urls:
        origin = storage.origins.get(url)  # of what was in memory
        in_memory = {} if origin is None else {"in_memory": origin}
        inputs.append({"url": without_secrets(url), **in_memory, "bytes": storage.size(url)})
    return {
        "version": __version__,
        "command": _without_secrets(sys.argv),
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "seconds": round(elapsed_s, 3),
        "host": socket.gethostname(),
        "device": device or f"cpu ({platform.machine()}, {os.cpu_count()} cores)",
        "inputs": inputs,
        **(lineage or {}),
    }


def read_lineage(storage: Storage, store: str) -> dict[str, Any]:
    """Return from which input a store comes, as its provenance.json says; nothing where it does not."""
    url = storage.join(store, PROVENANCE_NAME)
    try:
        told = json.loads(storage.read_bytes(url)) if storage.exists(url) else {}
    except ValueError:
        return {}
    found = {key: told[key] for key in _LINEAGE if key in told} if isinstance(told, dict) else {}
    return {key: value for key, value in found.items() if _is_lineage(key, value)}


def _is_lineage(key: str, value: Any) -> bool:
    """Return whether a value is of the form that we write: what a user changed in the file says nothing."""
    if key == "convert":
        return isinstance(value, dict)
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _without_secrets(arguments: Sequence[str]) -> list[str]:
    """Return a command line without the values of storage options and without passwords in URLs."""
    shown = []
    is_value = False
    for argument in arguments:
        flag, equals, rest = argument.partition("=")
        if is_value:
            shown.append(f"{flag}=***")
        elif flag == "--storage-option" and equals:
            shown.append(f"{flag}={rest.partition('=')[0]}=***")
        else:
            shown.append(display_url(argument) if "://" in argument else argument)
        is_value = argument == "--storage-option"
    return shown
