"""The functions over arrays on a device: of arrays that lie there, and of arrays of the host that fit there, uploaded once."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import numpy as np

from graphprep.edges.adjacency import Adjacency
from graphprep.edges.array_rows import count_parts
from graphprep.edges.device.arrays import INTEGERS, SIGNED, DeviceArray, check_held, held_array
from graphprep.edges.device.cuda import failure_of
from graphprep.edges.device.guard import TooLargeError
from graphprep.kernels.cuda import elements, resident, rows
from graphprep.kernels.cuda.cccl import find_fast
from graphprep.kernels.cuda.frontend import blocks_for, cuda, launch
from graphprep.kernels.cuda.probe import NoDevice, find_device, is_out_of_memory
from graphprep.kernels.cuda.resident import ResidentRows
from graphprep.kernels.cuda.slots import NoRoomError, Room, Slots
from graphprep.model.errors import DataError, DeviceError, UsageError
from graphprep.model.schema import Layout

_MOST_EDGES, _MOST_NODES = 2**31 - 1, 2**32  # of what ``resident`` takes
_HALF = 32  # bits
_ON_HOST = "pass arrays of the host: what does not fit on the device at once passes through it piece by piece"


@functools.cache
def graphs_of(index: int) -> DeviceGraphs:
    """Return the functions over arrays that lie on a device."""
    return DeviceGraphs(index)


@functools.cache
def uploading_graphs_of(index: int) -> UploadingGraphs:
    """Return the functions over arrays of the host, computed on a device."""
    return UploadingGraphs(index)


class DeviceGraphs:
    """Functions over arrays that lie on one device; so do the arrays that they return. Results are the CPU's.

    Raises TooLargeError for what the device's memory does not hold at once.
    """

    def __init__(self, index: int) -> None:
        """Look at the device. Raises DeviceError where it cannot be used."""
        device = find_device(index, simulated=True)
        if isinstance(device, NoDevice):
            raise DeviceError(device.reason, fix=device.fix)
        self._index = index
        self._slots = Slots(index, 1, make_fast=find_fast(device))

    def build_adjacency(
        self,
        src: Any,
        dst: Any,
        num_nodes: int | tuple[int, int] | None,
        layout: Layout,
        sort_neighbors: bool,
        edge_ids: bool,
    ) -> Adjacency:
        """See ``edges.arrays.build_adjacency``."""
        with self._room() as room:
            ends = self._ends(src, dst)
            counts = _count_nodes(room, ends, num_nodes)
            own, other = (1, 0) if layout == "csc" else (0, 1)
            sides = (ends[own], ends[other], counts[own], counts[other])
            built = resident.build_rows(room, *sides, with_ids=edge_ids, sort_neighbors=sort_neighbors)
            return self._adjacency(room, layout, built, counts[other])

    def transpose(self, adjacency: Adjacency, layout: Layout, edge_ids: Literal["keep", "rows", "drop"]) -> Adjacency:
        """See ``edges.arrays.transpose``."""
        with self._room() as room:
            old = self._checked(room, adjacency)
            carry = edge_ids == "rows" or (edge_ids == "keep" and old.edge_ids is not None)
            if edge_ids != "keep":
                old = ResidentRows(old.indptr, old.indices)
            built = resident.transpose(room, old, adjacency.num_neighbors)
            if carry and old.edge_ids is not None and resident.find_limits(room, old.edge_ids)[1] < 2**31:
                built = ResidentRows(built.indptr, built.indices, _as_type(room, built.edge_ids, np.int32))
            rows_of = ResidentRows(built.indptr, built.indices, built.edge_ids if carry else None)
            return self._adjacency(room, layout, rows_of, adjacency.num_rows)

    def degrees(self, src: Any, dst: Any, num_nodes: int | tuple[int, int] | None) -> Any:
        """See ``edges.arrays.degrees``."""
        with self._room() as room:
            ends = self._ends(src, dst)
            counts = _count_nodes(room, ends, num_nodes)
            return self._all_shown(room, *(_count(room, end, count) for end, count in zip(ends, counts, strict=True)))

    def reorder_by_degree(
        self, adjacency: Adjacency, by: Literal["degree", "in-degree", "out-degree"], *, sort_neighbors: bool
    ) -> Any:
        """See ``edges.arrays.reorder_by_degree``."""
        with self._room() as room:
            old = self._checked(room, adjacency)
            num_nodes = adjacency.num_rows
            order = resident.order_descending(room, _degrees_of(room, adjacency, old, by))
            inverse = resident.invert(room, order)
            new = resident.relabel_rows(room, old, order, inverse)
            if sort_neighbors:
                new = resident.sort_rows(room, new, num_nodes)
            new_ids = _as_type(room, inverse, np.int64)
            return self._adjacency(room, adjacency.layout, new, num_nodes), *self._all_shown(room, new_ids)

    def sort_keys(self, keys: Any) -> Any:
        """See ``edges.sorted_arrays.sort_keys``."""
        with self._room() as room:
            return self._all_shown(room, resident.sort_keys(room, self._integers(keys, "keys")))[0]

    def rank_ids(self, ids: Any) -> Any:
        """See ``edges.sorted_arrays.rank_ids``."""
        with self._room() as room:
            return self._all_shown(room, *resident.rank_ids(room, self._integers(ids, "ids")))

    def sort_edges(self, src: Any, dst: Any, *, drop_repeats: bool) -> Any:
        """See ``edges.sorted_arrays.sort_edges`` and ``dedup_edges``."""
        with self._room() as room:
            ends = self._ends(src, dst)
            dtype = ends[0].dtype if ends[0].dtype == ends[1].dtype else np.int64
            sort = resident.drop_repeats if drop_repeats else resident.sort_edges
            *kept, stood = sort(room, *ends, *_count_nodes(room, ends, None))
            return self._all_shown(room, *(_as_type(room, end, dtype) for end in kept), stood)

    def split_by_partition(self, parts: Any, num_parts: int | None) -> Any:
        """See ``edges.sorted_arrays.split_by_partition``."""
        with self._room() as room:
            held = self._held(parts, "parts")
            _check_size(held.size, 0)
            count = count_parts(*resident.find_limits(room, held), num_parts)
            return self._all_shown(room, *resident.split(room, held, count))

    @contextlib.contextmanager
    def _room(self) -> Iterator[Room]:
        """Yield a room, and wait for what was done in it. Raises DeviceError where the device fails or is too small."""
        try:
            with self._slots.room() as room:
                yield room
                room.finish()
                room.clear()  # the memory is the caller's to use
        except NoRoomError as error:
            raise _too_large(error) from error
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            raise (_too_large(error) if is_out_of_memory(error) else failure) from error

    def _held(self, value: Any, name: str, kinds: tuple[str, ...] = SIGNED) -> Any:
        """Return an argument as an array on the device. Raises UsageError for what is none of these integers."""
        return held_array(value, name, kinds)

    def _shown(self, held: Any) -> Any:
        """Return a result, which is there, as the caller has it."""
        return DeviceArray(held, self._index)

    def _all_shown(self, room: Room, *held: Any) -> tuple[Any, ...]:
        room.finish()
        return tuple(map(self._shown, held))

    def _integers(self, value: Any, name: str) -> Any:
        held = self._held(value, name, INTEGERS)
        _check_size(held.size, 0)
        return held

    def _ends(self, src: Any, dst: Any) -> tuple[Any, Any]:
        """Return both ends of edges. Raises UsageError."""
        ends = self._held(src, "src"), self._held(dst, "dst")
        if ends[0].size != ends[1].size:
            raise UsageError(f"src has {ends[0].size} IDs, dst has {ends[1].size}", fix="pass one of each for every edge")
        _check_size(ends[0].size, 0)
        return ends

    def _adjacency(self, room: Room, layout: Layout, built: ResidentRows, num_neighbors: int) -> Adjacency:
        room.finish()
        ids = None if built.edge_ids is None else self._shown(built.edge_ids)
        return Adjacency(layout, self._shown(built.indptr), self._shown(built.indices), ids, num_neighbors)

    def _checked(self, room: Room, adjacency: Adjacency) -> ResidentRows:
        """Return the arrays of an adjacency. Raises DataError where they lead out of an array."""
        indptr, indices = self._held(adjacency.indptr, "indptr"), self._held(adjacency.indices, "indices")
        ids = None if adjacency.edge_ids is None else self._held(adjacency.edge_ids, "edge_ids")
        _check_size(indices.size, max(adjacency.num_rows, adjacency.num_neighbors))
        indptr = _as_type(room, indptr, np.int64)
        ends = [int(indptr[at : at + 1].copy_to_host()[0]) for at in (0, indptr.size - 1)] if indptr.size else []
        if ends != [0, indices.size] or resident.find_limits(room, resident.count_degrees(room, indptr))[0] < 0:
            raise DataError(f"indptr must ascend from 0 to {indices.size}", fix="pass what graphprep.build_adjacency returned")
        low, high = resident.find_limits(room, indices)
        if low < 0 or high >= adjacency.num_neighbors:
            raise DataError(
                f"indices must be in 0..{adjacency.num_neighbors - 1}, found {low if low < 0 else high}",
                fix="say in num_neighbors how many nodes the neighbors' side has",
            )
        if ids is not None and ids.size != indices.size:
            raise DataError(f"there are {indices.size} edges and {ids.size} edge IDs", fix="pass one for every edge, or None")
        if ids is not None and (low := resident.find_limits(room, ids)[0]) < 0:
            raise DataError(f"edge_ids must be at least 0, found {low}", fix="pass positions of edges")
        return ResidentRows(indptr, indices, ids)


class UploadingGraphs(DeviceGraphs):
    """The same over arrays of the host: one upload serves all that a call computes, and the results come back."""

    def _held(self, value: Any, name: str, kinds: tuple[str, ...] = SIGNED) -> Any:
        array = np.asarray(value)
        array = np.ascontiguousarray(array) if array.ndim == 1 else array
        check_held(array, name, kinds)
        return cuda.to_device(array)

    def _shown(self, held: Any) -> Any:
        return held.copy_to_host()


def _too_large(error: Exception) -> TooLargeError:
    return TooLargeError(f"the device's memory does not suffice: {error}", fix=_ON_HOST)


def _check_size(num_edges: int, num_nodes: int, most_edges: int = _MOST_EDGES) -> None:
    if num_edges > most_edges or num_nodes > _MOST_NODES:
        raise UsageError(f"{num_edges:,} edges of {num_nodes:,} nodes are too many to lie on a device", fix=_ON_HOST)


def _count_nodes(room: Room, ends: Sequence[Any], num_nodes: int | tuple[int, int] | None) -> tuple[int, int]:
    """Return how many nodes either side has. Raises DataError for an ID out of range."""
    limits = [resident.find_limits(room, end) for end in ends]
    highest = max(high for _, high in limits) + 1
    given = (highest, highest) if num_nodes is None else num_nodes
    counts = given if isinstance(given, tuple) else (given, given)
    for name, end, (low, high), count in zip(("src", "dst"), ends, limits, counts, strict=True):
        if end.size and (low < 0 or high >= count):
            wanted = f"expected IDs in 0..{count - 1}" if count else "there are no nodes"
            fix = "raise num_nodes" if low >= 0 else "count nodes from 0"
            raise DataError(f"{name}: {wanted}, found {low if low < 0 else high}", fix=fix)
        _check_size(end.size, count)
    return counts


def _count(room: Room, ids: Any, count: int) -> Any:
    """Return how often each ID occurs: int64[count]."""
    built = resident.build_rows(room, ids, ids, count, count, with_ids=False)
    return resident.count_degrees(room, built.indptr)


def _degrees_of(room: Room, adjacency: Adjacency, old: ResidentRows, by: str) -> Any:
    """Return each node's degree: int64[n]."""
    if by == ("in-degree" if adjacency.layout == "csc" else "out-degree"):
        return resident.count_degrees(room, old.indptr)
    if by != "degree":
        return _count(room, old.indices, adjacency.num_neighbors)
    size = old.indices.size
    _check_size(size, adjacency.num_rows, _MOST_EDGES // 2)  # both ends of each
    both = cuda.device_array(2 * size, np.int32 if adjacency.num_rows <= 2**31 else np.int64)
    if size:
        launch(rows.expand_rows, blocks_for(size), room.stream, old.indptr, _unsigned(both[:size]))
        both[size:].copy_to_device(_as_type(room, old.indices, both.dtype), stream=room.stream)
    return _count(room, both, adjacency.num_rows)


def _as_type(room: Room, ids: Any, dtype: Any) -> Any:
    """Return IDs, which fit it, as another type: themselves where they have it."""
    if ids.dtype == dtype:
        return ids
    out, blocks = cuda.device_array(ids.size, dtype), blocks_for(ids.size)
    if out.dtype.itemsize < ids.dtype.itemsize:
        launch(elements.shift_keys, blocks, room.stream, _unsigned(ids), 0, _unsigned(out))
        return out
    words, none = room.take("wide", ids.size, np.uint64), room.none(np.uint32)
    launch(elements.pack_edges, blocks, room.stream, _unsigned(ids), _unsigned(ids), none, 0, _HALF, 0, words)
    launch(elements.unpack_words, blocks, room.stream, words, _HALF, 0, room.none(np.uint64), _unsigned(out), none)
    return out


def _unsigned(array: Any) -> Any:
    return array.view(np.uint32 if array.dtype.itemsize == 4 else np.uint64)
