"""Move blocks of a stored array to their rows' new places: in one step where it fits in memory, else through buckets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.budget import format_size
from graphprep.engine.ledger import RUNS_WHY, Need
from graphprep.engine.local import map_ordered, num_in_flight
from graphprep.kernels.cpu.ids.sort import stable_order
from graphprep.kernels.edges import Kernels
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.storage.spill.scratch import Scratch
from graphprep.store.items import Items

Ints = NDArray[np.int64]
Array = NDArray[Any]
Then = Callable[[Array], Array]

_MOST_ROWS = 1 << 17  # of a piece: what is computed of them takes 5 MiB
_FAN_OUT = 1 << 10  # buckets at a time: beyond, scattered writes cost more than another pass


def tell_nobody(num_edges: int) -> None:
    """Take a number of edges for what nobody shows."""


@dataclass(frozen=True)
class Workspace:
    """What moving may take, in bytes.

    ``piece_bytes`` is a piece that a thread makes; arrays of up to ``held_bytes`` are read as a whole, and local ones of up to
    ``mapped_bytes``, which take page cache only, through a map.
    """

    piece_bytes: int
    held_bytes: int
    mapped_bytes: int
    threads: int
    pool: SpillPool
    scratch: Scratch
    kernels: Kernels
    advance: Callable[[int], None] = tell_nobody  # is told of edges as they are read

    def fit(self, item_bytes: int) -> int:
        """Return how many items of so many bytes are a piece, one at least."""
        return max(1, self.piece_bytes // max(1, item_bytes))

    def needs(self) -> Iterator[Need]:
        """Declare it."""
        num_pieces = num_in_flight(self.threads)
        yield Need("pieces", num_pieces * self.piece_bytes, f"{num_pieces} at a time, of {format_size(self.piece_bytes)}")
        yield Need("array", self.held_bytes, "one that is read as a whole")
        yield Need("by node", self.scratch.cap_bytes, "orders, offsets and counts; what is more lies in mapped files")
        yield Need("runs", self.pool.cap_bytes, RUNS_WHY)


@dataclass(frozen=True)
class MovePiece:
    """New rows [low, high); of a single long row only the items [skip, skip + size) where ``size`` is not negative."""

    low: int
    high: int
    skip: int = 0
    size: int = -1


@dataclass(frozen=True)
class Blocks:
    """The blocks of an array: old row r owns the items [bounds[r], bounds[r + 1]), new row i is the old row order[i].

    All int64; ``bounds`` and ``new_bounds`` (those of the new rows) have one number more than ``order``. Both are None where
    row r is item r.
    """

    order: Ints
    bounds: Ints | None = None
    new_bounds: Ints | None = None

    @classmethod
    def of(cls, order: Ints, bounds: Ints, scratch: Scratch) -> Blocks:
        """Compute the bounds of the new rows."""
        new_bounds = scratch.zeros(bounds.size, np.int64)
        for low in range(0, order.size, _MOST_ROWS):
            rows = order[low : low + _MOST_ROWS]
            ends = new_bounds[low + 1 : low + 1 + rows.size]
            np.cumsum(bounds[rows + 1] - bounds[rows], out=ends)
            ends += new_bounds[low]
        return cls(order, bounds, new_bounds)

    @property
    def num_items(self) -> int:
        """Return the number of items."""
        return self.order.size if self.bounds is None else int(self.bounds[-1])

    def size(self, low: int, high: int) -> int:
        """Return the number of items of new rows [low, high)."""
        return high - low if self.new_bounds is None else int(self.new_bounds[high] - self.new_bounds[low])

    def spans(self, piece: MovePiece) -> tuple[Ints, Ints]:
        """Return where a piece's blocks begin and end."""
        rows = self.order[piece.low : piece.high]
        if self.bounds is None:
            return rows, rows + 1
        if piece.size < 0:
            return self.bounds[rows], self.bounds[rows + 1]
        start = self.bounds[rows] + piece.skip
        return start, start + piece.size

    def cut(self, most_items: int, most_rows: int = _MOST_ROWS) -> Iterator[tuple[int, int]]:
        """Cut the new rows into ranges of at most so many items and rows; a row of more items stands alone."""
        low, num_rows = 0, self.order.size
        while low < num_rows:
            high = min(low + most_rows, num_rows)
            if self.new_bounds is None:
                high = min(high, low + most_items)
            else:
                ends = self.new_bounds[low + 1 : high + 1]
                high = low + max(1, int(np.searchsorted(ends, self.new_bounds[low] + most_items, side="right")))
            yield low, high
            low = high

    def pieces(self, most_items: int) -> Iterator[MovePiece]:
        """Cut all items, the long rows too."""
        for low, high in self.cut(most_items):
            size = self.size(low, high)
            if size <= most_items:
                yield MovePiece(low, high)
                continue
            for skip in range(0, size, most_items):
                yield MovePiece(low, high, skip, min(most_items, size - skip))

    def among(self, low: int, high: int) -> Blocks:
        """Return the blocks of new rows [low, high) alone, in an array that holds nothing else, in the old order."""
        rows = self.order[low:high]
        by_old = stable_order(rows)
        order = np.empty(rows.size, np.int64)
        order[by_old] = np.arange(rows.size)
        if self.bounds is None or self.new_bounds is None:
            return Blocks(order)
        bounds = np.zeros(rows.size + 1, np.int64)
        np.cumsum((self.bounds[rows + 1] - self.bounds[rows])[by_old], out=bounds[1:])
        return Blocks(order, bounds, self.new_bounds[low : high + 1] - self.new_bounds[low])


def move(items: Items, blocks: Blocks, room: Workspace, then: Then | None = None) -> Iterator[Array]:
    """Yield an array's items in the order of the new rows, in pieces; ``then`` is applied to each, on the threads."""
    if items.num_bytes <= (room.mapped_bytes if items.is_mapped else room.held_bytes):
        yield from _move_held(items.whole(), blocks, room, then)
        return
    step = room.fit(items.item_bytes)
    slices = (items.read(start, min(start + step, items.size)) for start in range(0, items.size, step))
    yield from _move_scattered(slices, items.read(0, 0), blocks, room, then or _same)


def _same(array: Array) -> Array:
    return array


def copy_spans(kernels: Kernels, values: Array, starts: Ints, stops: Ints) -> Array:
    """Return the items [start, stop) of all spans, one behind the other."""
    out = np.empty((int((stops - starts).sum()), *values.shape[1:]), values.dtype)
    kernels.copy_blocks(values, starts, stops, out)
    return out


def _move_held(values: Array, blocks: Blocks, room: Workspace, then: Then | None) -> Iterator[Array]:
    most, then = _most_items(values, room), then or _same
    return map_ordered(
        lambda piece: then(copy_spans(room.kernels, values, *blocks.spans(piece))), blocks.pieces(most), room.threads
    )


def _most_items(like: Array, room: Workspace) -> int:
    return room.fit(like.dtype.itemsize * int(np.prod(like.shape[1:], dtype=np.int64)))


# ---------------------------------------------------------------------------------------------------- through buckets


def _move_scattered(slices: Iterable[Array], none: Array, blocks: Blocks, room: Workspace, then: Then) -> Iterator[Array]:
    """Scatter the items to ranges of new rows, then put each range in order; one that is too large is scattered again.

    ``none`` are no items, of the same dtype and item shape.
    """
    most = _most_items(none, room)
    num_items, num_rows = blocks.num_items, blocks.order.size
    ranges = list(blocks.cut(max(most, -(-num_items // _FAN_OUT)), max(_MOST_ROWS, -(-num_rows // _FAN_OUT))))
    runs: Runs[tuple[Array]] = Runs(room.pool, max(1, len(ranges)))
    try:
        _scatter(slices, blocks, ranges, room, runs)
        for small, group in itertools.groupby(enumerate(ranges), lambda one: _is_small(blocks, one[1], most)):
            if small:
                yield from map_ordered(
                    lambda one: then(_put_in_order(room.kernels, runs, *one, blocks, none)), group, room.threads
                )
                continue
            for number, (low, high) in group:
                chunks = (chunk[0] for chunk in runs.read(number))
                if high == low + 1:
                    yield from map(then, chunks)
                else:
                    yield from _move_scattered(chunks, none, blocks.among(low, high), room, then)
                runs.free(number)
    finally:
        runs.close()


def _is_small(blocks: Blocks, rows: tuple[int, int], most_items: int) -> bool:
    return blocks.size(*rows) <= most_items and rows[1] - rows[0] <= _MOST_ROWS


def _put_in_order(
    kernels: Kernels, runs: Runs[tuple[Array]], number: int, rows: tuple[int, int], blocks: Blocks, none: Array
) -> Array:
    values = np.concatenate([none, *(chunk[0] for chunk in runs.read(number))])
    runs.free(number)
    inner = blocks.among(*rows)
    return copy_spans(kernels, values, *inner.spans(MovePiece(0, inner.order.size)))


def _scatter(
    slices: Iterable[Array], blocks: Blocks, ranges: list[tuple[int, int]], room: Workspace, runs: Runs[tuple[Array]]
) -> None:
    """Scatter the items to the buckets of their rows."""
    with room.scratch.inner() as scratch:
        buckets = scratch.zeros(blocks.order.size, np.int32)
        for number, (low, high) in enumerate(ranges):
            for start in range(low, high, _MOST_ROWS):
                buckets[blocks.order[start : min(start + _MOST_ROWS, high)]] = number
        first = 0
        for values in slices:
            _scatter_slice(room.kernels, values, first, blocks.bounds, buckets, runs)
            first += len(values)


def _scatter_slice(
    kernels: Kernels, values: Array, first: int, bounds: Ints | None, buckets: NDArray[np.int32], runs: Runs[tuple[Array]]
) -> None:
    stop = first + len(values)
    if bounds is None:
        low, high, own = first, stop, np.arange(first, stop + 1)
    else:
        low = int(np.searchsorted(bounds, first, side="right")) - 1
        high = int(np.searchsorted(bounds, stop, side="left"))
        own = bounds[low : high + 1]
    counts = np.zeros(runs.num_buckets, np.int64)
    kernels.count_blocks(first, stop, own, buckets[low:high], counts)
    ends = np.cumsum(counts)
    out = np.empty_like(values)
    kernels.scatter_blocks(values, first, own, buckets[low:high], ends - counts, out)
    for number in np.flatnonzero(counts).tolist():
        runs.append(number, (out[ends[number] - counts[number] : ends[number]],))
