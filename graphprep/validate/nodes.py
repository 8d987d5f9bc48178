"""Second part of ``validate``: raw IDs of nodes: order, uniqueness, and the partition that they are in."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.ledger import Need
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.store.paths import NodePaths, node_folder
from graphprep.validate.faults import Faults, check_ranges
from graphprep.validate.files import CheckedStore
from graphprep.validate.texts import check_text_ids, hash_window

_SLICE = 1 << 19  # IDs read at once: 4 MiB
_ROW_BYTES = 64  # of a row, with what is computed of it
_MIN_BLOCK = 1 << 10  # IDs of a partition held at once while many partitions are merged

RawSlice = tuple[int, NDArray[Any]]  # int64 or uint64, as the store holds them


def node_needs(num_nodes: int, window_bytes: int) -> Iterator[Need]:
    """Declare what checking node types takes, the largest of which has ``num_nodes``."""
    yield Need("window", min(window_bytes, _ROW_BYTES * num_nodes), "raw IDs of all partitions, merged, or marks of those seen")
    yield Need("slices", min(_SLICE, num_nodes) * _ROW_BYTES, f"{_SLICE} rows at a time, and what is computed of them")


def check_raw_ids(store: CheckedStore, node_type: int, faults: Faults, *, window_bytes: int) -> None:
    """Check a node type's raw IDs: ascending in each partition, each once in the type, each where ``partition_by`` puts it."""
    metadata = store.metadata
    kind = metadata.node_schemas[node_type].raw_ids
    if kind == "string":
        check_text_ids(store, node_type, faults, window_bytes=window_bytes)
        return
    before = faults.num
    if kind == "identity" and (metadata.num_parts == 1 or metadata.partition_by not in ("hash", "modulo")):
        return  # 0..n-1, however many the metadata says
    for part in range(metadata.num_parts):
        path = _raw_path(store, node_type, part)
        previous: int | None = None
        for start, ids in _read_ascending(store, node_type, part):
            previous = _check_ascending(path, start, ids, previous, faults)
            _check_part(store, part, path, start, ids, faults)
            if kind == "identity" and faults.num > before:
                return
    if kind == "identity" or faults.num > before:
        return  # ascending over all partitions by construction, or too much is wrong to compare partitions
    if metadata.partition_by == "range":
        check_ranges(_range_ends(store, node_type), str, faults)
    elif metadata.num_parts > 1 and metadata.partition_by not in ("hash", "modulo"):
        _check_unique(store, node_type, faults, window_bytes)


def read_raw_ids(store: CheckedStore, node_type: int, part: int, step: int = _SLICE) -> Iterator[RawSlice]:
    """Yield (index of the first, raw IDs) over a partition's nodes of a type; nothing where the file is faulty."""
    metadata = store.metadata
    if metadata.node_schemas[node_type].raw_ids == "identity":
        offset = sum(metadata.num_nodes_per_chunk[node_type][:part])
        for start in range(0, metadata.num_nodes_per_chunk[node_type][part], step):
            stop = min(start + step, metadata.num_nodes_per_chunk[node_type][part])
            yield start, np.arange(offset + start, offset + stop, dtype=np.uint64)
        return
    array = store.array(part, NodePaths(node_folder(metadata.node_types[node_type])).raw_ids)
    if array is not None:
        for start in range(0, array.num_rows, step):
            yield start, array.read(start, min(start + step, array.num_rows))


def _read_ascending(store: CheckedStore, node_type: int, part: int, step: int = _SLICE) -> Iterator[RawSlice]:
    """Yield a partition's raw IDs of a type in their own order: (rank of the first, raw IDs)."""
    if store.metadata.node_schemas[node_type].node_order is None:
        yield from read_raw_ids(store, node_type, part, step)
        return
    paths = NodePaths(node_folder(store.metadata.node_types[node_type]))
    array, raw_order = (store.array(part, path) for path in (paths.raw_ids, paths.raw_order))
    if array is not None and raw_order is not None:
        for start in range(0, array.num_rows, step):
            yield start, array.take(raw_order.read(start, min(start + step, array.num_rows)))


def read_hashes(store: CheckedStore, node_type: int, first: int, stop: int) -> NDArray[np.uint64] | None:
    """Return h of the raw IDs of typed IDs [first, stop); None where a file is faulty."""
    metadata = store.metadata
    kind = metadata.node_schemas[node_type].raw_ids
    if kind == "identity":
        return np.asarray(hash_ints(np.arange(first, stop, dtype=np.uint64)), np.uint64)
    pieces = [np.empty(0, np.uint64)]
    offset = 0
    for part, count in enumerate(metadata.num_nodes_per_chunk[node_type]):
        low, high = max(first, offset) - offset, min(stop, offset + count) - offset
        offset += count
        if low >= high:
            continue
        found = hash_window(store, node_type, part, low, high) if kind == "string" else None
        array = store.array(part, NodePaths(node_folder(metadata.node_types[node_type])).raw_ids)
        if array is not None:
            found = hash_ints(array.read(low, high))
        if found is None:
            return None
        pieces.append(found)
    return np.concatenate(pieces)


def _raw_path(store: CheckedStore, node_type: int, part: int) -> str:
    """Return the array that names the raw IDs in their own order."""
    name = "raw_ids" if store.metadata.node_schemas[node_type].node_order is None else "raw_order"
    return f"{store.metadata.parts[part].path}/{node_folder(store.metadata.node_types[node_type])}/{name}.npy"


def _check_ascending(path: str, start: int, ids: NDArray[Any], previous: int | None, faults: Faults) -> int | None:
    """Check one slice against itself and the ID before it; return its last ID."""
    if not ids.size:
        return previous
    before = np.concatenate([np.array([ids[0] if previous is None else previous], ids.dtype), ids[:-1]])
    bad = before >= ids
    bad[0] &= previous is not None
    faults.add_rows(path, bad, start, "expected a raw ID above {}, the one before, found {}", before, ids)
    return int(ids[-1])


def _check_part(store: CheckedStore, part: int, path: str, start: int, ids: NDArray[Any], faults: Faults) -> None:
    method, num_parts = store.metadata.partition_by, store.metadata.num_parts
    if method not in ("hash", "modulo"):
        return
    numbers = hash_ints(ids) if method == "hash" else ids
    parts = numbers % numbers.dtype.type(num_parts)
    words = "raw ID {} belongs to partition {} (partition_by {}), found in {}"
    faults.add_rows(path, parts != part, start, words, ids, parts, method, part)


def _range_ends(store: CheckedStore, node_type: int) -> Iterator[tuple[str, int, int]]:
    """Yield the place of the raw IDs, the lowest and the highest, of every partition that has some."""
    for part, count in enumerate(store.metadata.num_nodes_per_chunk[node_type]):
        first = next(_read_ascending(store, node_type, part, 1), None)
        if first is not None and count:
            yield _raw_path(store, node_type, part), int(first[1][0]), _last_raw_id(store, node_type, part)


def _last_raw_id(store: CheckedStore, node_type: int, part: int) -> int:
    """Return the highest raw ID of a partition whose files are sound."""
    paths = NodePaths(node_folder(store.metadata.node_types[node_type]))
    array, raw_order = (store.array(part, path) for path in (paths.raw_ids, paths.raw_order))
    assert array is not None
    end = array.num_rows
    return int(array.read(end - 1, end)[0] if raw_order is None else array.take(raw_order.read(end - 1, end))[0])


def _check_unique(store: CheckedStore, node_type: int, faults: Faults, window_bytes: int) -> None:
    """Merge the partitions' sorted raw IDs block by block and look for one that stands in two of them."""
    num_parts = store.metadata.num_parts
    block = max(_MIN_BLOCK, min(_SLICE, window_bytes // (8 * 4 * num_parts)))
    streams = [_MergeStream(_read_ascending(store, node_type, part, block), part) for part in range(num_parts)]
    while streams := [stream for stream in streams if stream.fill()]:
        limit = min(int(stream.ids[-1]) for stream in streams)
        taken = [stream.take(limit) for stream in streams]
        ids = np.concatenate([ids for ids, _, _ in taken])
        order = np.argsort(ids, kind="stable")
        repeated = np.flatnonzero(ids[order][1:] == ids[order][:-1]) + 1
        if repeated.size:
            parts = np.concatenate([np.full(ids.size, part) for ids, part, _ in taken])
            index = np.concatenate([np.arange(start, start + ids.size) for ids, _, start in taken])
            for at in order[repeated].tolist():
                path = _raw_path(store, node_type, int(parts[at]))
                faults.add(f"{path}[{index[at]}]", f"raw ID {ids[at]} stands in another partition too")


class _MergeStream:
    """The raw IDs of one partition that were read and not yet merged."""

    def __init__(self, slices: Iterator[RawSlice], part: int) -> None:
        self._slices = slices
        self._part = part
        self._start = 0
        self.ids: NDArray[Any] = np.empty(0, np.uint64)

    def fill(self) -> bool:
        """Read on if nothing is left; return whether there is something."""
        while not self.ids.size:
            found = next(self._slices, None)
            if found is None:
                return False
            self._start, self.ids = found
        return True

    def take(self, limit: int) -> tuple[NDArray[Any], int, int]:
        """Take the IDs up to ``limit``: (IDs, partition, index of the first)."""
        cut = int(np.searchsorted(self.ids, self.ids.dtype.type(limit), side="right"))
        taken = (self.ids[:cut], self._part, self._start)
        self.ids, self._start = self.ids[cut:], self._start + cut
        return taken
