"""Edges by edge ID and nodes by raw ID, over all partitions; where they stand so already, nothing is copied."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.intervals import find_intervals
from graphprep.model.errors import DataError
from graphprep.stages.build import settle_index_dtype
from graphprep.stages.joined import CountingArray, WholeStore
from graphprep.stages.move_parts import OnePart, PartMover, RenamedFiles
from graphprep.stages.moves import Blocks, Room, move
from graphprep.stages.raw_merge import nodes_by_raw_id
from graphprep.stages.ready_layouts import entry_spans
from graphprep.stages.ready_store import ReadyFiles, ReadyStore
from graphprep.stages.reorder_order import outside
from graphprep.stages.shuffle import Dealer, Desk, FlatRows, plan_buckets
from graphprep.stages.stored_files import StoredFile, column_files
from graphprep.stages.stored_items import FIX, Items, StoredItems, read_offsets
from graphprep.storage.faults import display_url
from graphprep.storage.runs import Runs

Ints = NDArray[np.int64]
Array = NDArray[Any]
_STEP = 1 << 17
_PAIR_BYTES = 32  # of an edge ID with its edge row while they are dealt out


def order_nodes(ready: ReadyStore, files: ReadyFiles, number: int, room: Room) -> None:
    """Write the nodes of a type in the order of their raw IDs: ``raw_order``, and their columns.

    Raises DataError where the store's arrays are faulty.
    """
    schema, folder = ready.metadata.node_schemas[number], ready.node_folder(number)
    with room.scratch.inner() as scratch:
        inner = replace(room, scratch=scratch)
        order, path = _raw_order(ready, number, inner), f"{folder}/input/raw_order.npy"
        if order is None:
            ready.add(0, path, partial(CountingArray, path, ready.metadata.num_nodes_per_type[number]))
        else:
            OnePart(files, 0).write(path, "int64", order.shape, _slices(order))
        columns = list(column_files(folder, schema.columns, num_slots=schema.num_slots))
        _write_columns(ready, files, folder, columns, order, inner)
    files.show(ready)


def order_edges(ready: ReadyStore, files: ReadyFiles, number: int, room: Room, *, ends: bool, columns: bool) -> None:
    """Write the edges of a type by edge ID, by edge row where none are stored: their ends, their columns.

    Raises DataError where the store's arrays are faulty.
    """
    schema, folder = ready.metadata.edge_schemas[number], ready.edge_folder(number)
    with room.scratch.inner() as scratch:
        inner = replace(room, scratch=scratch)
        order = _edge_order(ready, number, inner)
        if ends:
            _write_ends(ready, files, number, order, inner)
        if columns:
            found = list(column_files(folder, schema.columns, num_slots=schema.num_slots))
            _write_columns(ready, files, folder, found, order, inner)
    files.show(ready)


def _write_columns(
    ready: ReadyStore, files: ReadyFiles, folder: str, columns: list[StoredFile], order: Ints | None, room: Room
) -> None:
    """Write columns in an order, or show them where they stand so."""
    whole = WholeStore(ready)
    if order is not None:
        PartMover(whole, RenamedFiles(OnePart(files, 0), folder, f"{folder}/input"), 0, Blocks(order), room).write(columns)
        return
    for column in columns:
        ready.add(0, f"{folder}/input{column.path[len(folder) :]}", partial(whole.array, 0, column.path))


def _raw_order(ready: ReadyStore, number: int, room: Room) -> Ints | None:
    """Return the typed ID of the i-th node by raw ID: int64[n]; None where these count up."""
    metadata = ready.metadata
    schema, size = metadata.node_schemas[number], metadata.num_nodes_per_type[number]
    in_order = schema.node_order is None and (metadata.partition_by == "range" or metadata.num_parts == 1)
    if schema.raw_ids == "identity" or in_order:
        return None
    order, at, is_same = room.scratch.zeros(size, np.int64), 0, True
    for nodes in nodes_by_raw_id(ready, number, room.piece_bytes):
        order[at : at + nodes.typed.size] = nodes.typed
        is_same = is_same and bool((nodes.typed == np.arange(at, at + nodes.typed.size)).all())
        at += nodes.typed.size
    return None if is_same else order


def _edge_order(ready: ReadyStore, number: int, room: Room) -> Ints | None:
    """Return the edge row of the i-th edge by edge ID: int64[m]; None where these count up."""
    metadata = ready.metadata
    if metadata.edge_schemas[number].edge_id_dtype is None:
        return None
    path = f"{ready.edge_folder(number)}/{metadata.primary_layout}/edge_ids.npy"
    items = StoredItems(WholeStore(ready).array(0, path))
    items.check_size(metadata.num_edges_per_type[number])
    if all((ids == np.arange(start, start + ids.size)).all() for start, ids in _read_slices(items)):
        return None
    return invert(items, room)


def invert(items: StoredItems, room: Room) -> Ints:
    """Return where each of 0..n-1 stands in a stored permutation of them: int64[n].

    Raises DataError where it is none.
    """
    size = items.size
    plan = plan_buckets(size, 0 if 8 * size <= room.held_bytes else size * _PAIR_BYTES, room.piece_bytes)
    dealer: Dealer[FlatRows] = Dealer(Runs(room.pool, plan.num_buckets), plan, Desk(room.piece_bytes))
    behind = room.scratch.zeros(size, np.int64)  # one more than the place: 0 says that there was none
    try:
        for start, ids in _read_slices(items):
            bad = (ids < 0) | (ids >= size)
            if bad.any():
                at = int(np.argmax(bad))
                raise outside(items, start + at, int(ids[at]), size, "edge ID")
            places = np.arange(start + 1, start + ids.size + 1)
            if plan.num_buckets == 1:
                behind[ids] = places
            else:
                dealer.add(FlatRows((ids.astype(np.int64), places)))
        dealer.flush()
        for bucket in range(plan.num_buckets):
            for ids, places in dealer.runs.read(bucket, consume=True):
                behind[ids] = places
    finally:
        dealer.runs.close()
    for start in range(0, size, _STEP):
        some = behind[start : start + _STEP]
        if not some.all():
            missing = start + int(np.argmin(some != 0))
            raise DataError(f"edge ID {missing} is missing", place=display_url(items.reader.url), fix=FIX)
        some -= 1
    return behind


def _write_ends(ready: ReadyStore, files: ReadyFiles, number: int, order: Ints | None, room: Room) -> None:
    """Write both ends of all edges."""
    metadata, whole = ready.metadata, WholeStore(ready)
    folder, layout = ready.edge_folder(number), metadata.primary_layout
    indices = StoredItems(whole.array(0, f"{folder}/{layout}/indices.npy"))
    indptr = read_offsets(whole.array(0, f"{folder}/{layout}/indptr.npy"), indices.size, room.scratch)
    owners = OwnerItems(indptr)
    names = ("dst", "src") if layout == "csc" else ("src", "dst")
    for name, items in zip(names, (owners, indices), strict=True):
        path = f"{folder}/input/{name}.npy"
        if order is None and isinstance(items, StoredItems):
            ready.add(0, path, partial(whole.array, 0, f"{folder}/{layout}/indices.npy"))
            continue
        dtype = items.reader.dtype.name if isinstance(items, StoredItems) else owners.dtype.name
        pieces = (one for _, one in owners.pieces()) if order is None else move(items, Blocks(order), room)
        OnePart(files, 0).write(path, dtype, (indices.size,), pieces)


class OwnerItems:
    """The owner of every entry of rows: where an entry lies in ``indptr`` (int64[n + 1]). See ``Items``."""

    is_mapped = False

    def __init__(self, indptr: Ints) -> None:
        self._indptr = indptr
        self.dtype = np.dtype(settle_index_dtype("auto", indptr.size - 1))
        self.size = int(indptr[-1])
        self.item_bytes = self.dtype.itemsize

    @property
    def num_bytes(self) -> int:
        """See ``Items``."""
        return self.size * self.item_bytes

    def pieces(self) -> Iterator[tuple[int, Array]]:
        """Yield all owners: (entry of the first, owners)."""
        for span in entry_spans(self._indptr, _STEP):
            bounds = np.clip(self._indptr[span.low : span.high + 1], span.start, span.stop)
            yield span.start, np.repeat(np.arange(span.low, span.high, dtype=self.dtype), np.diff(bounds))

    def read(self, start: int, stop: int) -> Array:
        """See ``Items``."""
        return np.asarray(find_intervals(np.arange(start, stop), self._indptr), self.dtype)

    def whole(self) -> Array:
        """See ``Items``."""
        out = np.empty(self.size, self.dtype)
        for start, owners in self.pieces():
            out[start : start + owners.size] = owners
        return out

    def gather(self, starts: Ints, stops: Ints) -> Array:
        """See ``Items``."""
        entries = CountingArray("", self.size).gather(starts, stops)
        return np.asarray(find_intervals(entries, self._indptr), self.dtype)

    def check_size(self, wanted: int) -> None:
        """See ``Items``."""
        assert self.size == wanted


def _read_slices(items: Items) -> Iterator[tuple[int, Array]]:
    for start in range(0, items.size, _STEP):
        yield start, items.read(start, min(start + _STEP, items.size))


def _slices(array: Array) -> Iterator[Array]:
    for start in range(0, array.size, _STEP):
        yield array[start : start + _STEP]
