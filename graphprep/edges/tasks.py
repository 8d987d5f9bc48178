"""Cut buckets that came out too big: by rows, and rows that are too long by the value they are ordered by, then by edge ID."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import EdgeBuckets, EdgeFields, fields_of
from graphprep.kernels.edges import Segments, pack_bits
from graphprep.model.buffers import hold_buffers
from graphprep.model.schema import NeighborOrder
from graphprep.storage.spill.records import RecordPiece

Ints = NDArray[np.int64]
_TOP = 1 << 64
_BINS = 1 << 12
_MOST_FILTERED = 1 << 16  # records that are looked through at a time, where a task is but a part of its bucket


class BuildTask(NamedTuple):
    """A piece of a bucket that is built at once: rows [low, high). Several buckets may be built at once as they are.

    Of a row that is too long it holds only the edges with an order value in ``values`` and an edge ID in ``ids`` (both
    [first, last)); ``row_counts`` then is the row's length on its first piece, nothing on the others, else None.
    """

    bucket: int
    low: int
    high: int
    values: tuple[int, int] = (0, _TOP)
    ids: tuple[int, int] = (0, _TOP)
    row_counts: Ints | None = None
    num_buckets: int = 1


@dataclass(frozen=True, eq=False)
class EdgeRuns:
    """The edges of one layout in buckets.

    ``missing_key`` is the key of edges that came without one; None where the order needs no keys. ``by_arrival`` says that
    edges come in the order of their edge IDs.
    """

    buckets: EdgeBuckets
    order: NeighborOrder
    missing_key: int | None
    by_arrival: bool = True

    @cached_property
    def packings(self) -> Ints:
        """Return how the records of every segment are packed, as ``Segments`` has it."""
        layouts = self.buckets.runs.layouts
        packings = np.empty((len(layouts), 3), np.int64)
        for number, one in enumerate(layouts):
            packings[number] = one.other_bits, one.id_bits, one.words
        return packings

    @contextlib.contextmanager
    def segments(self, task: BuildTask) -> Iterator[tuple[Segments, int]]:
        """Hold the records of a task, those of whole buckets where they lie. Yields them, and which bucket is the task's."""
        shift = self.buckets.plan.shift
        if self.is_whole(task):
            with self.buckets.runs.bucket_range(task.bucket, task.bucket + task.num_buckets) as some:
                where = (some.buffers, some.numbers, some.offsets, some.starts, some.bases)
                yield Segments(*where, self.packings, shift), task.bucket
            return
        pieces = list(self.pieces(task))
        numbers = np.repeat(np.arange(len(pieces)), [piece.bases.size for piece in pieces])
        borders = [np.column_stack([piece.starts[:-1], piece.starts[1:]]).astype(np.uint32) for piece in pieces]
        starts = np.concatenate([np.zeros((0, 2), np.uint32), *borders])
        bases = np.concatenate([np.zeros(0, np.int64), *(piece.bases for piece in pieces)])
        packings = np.concatenate([np.zeros((0, 3), np.int64), *(pack_bits(p.layout, p.bases.size) for p in pieces)])
        buffers = hold_buffers(piece.records for piece in pieces)
        yield Segments(buffers, numbers, np.zeros(numbers.size, np.int64), starts, bases, packings, shift), 0

    def pieces(self, task: BuildTask) -> Iterator[RecordPiece]:
        """Yield the records of a task that is but a part of its bucket, some at a time."""
        ids = task.ids if self.by_arrival and task.ids != (0, _TOP) else None
        for piece in self.buckets.runs.read(task.bucket, ids, _MOST_FILTERED):
            mask = self.inside(task, self.fields_of(task.bucket, piece))
            yield piece if mask.all() else piece.take(mask)

    def fields(self, task: BuildTask) -> Iterator[EdgeFields]:
        """Yield the edges of a task, keys filled in where the order needs them."""
        if not self.is_whole(task):
            yield from (self.fields_of(task.bucket, piece) for piece in self.pieces(task))
            return
        for bucket in range(task.bucket, task.bucket + task.num_buckets):
            yield from (self.fields_of(bucket, piece) for piece in self.buckets.runs.read(bucket))

    def fields_of(self, bucket: int, piece: RecordPiece) -> EdgeFields:
        """Take records of a bucket apart."""
        buckets = self.buckets
        first_row, _ = buckets.plan.bounds(bucket)
        return fields_of(buckets.kernels, piece, buckets.plan.shift, first_row, buckets.dtype, self.missing_key)

    def count_rows(self, bucket: int, low: int, high: int) -> Ints:
        """Count the edges of rows [low, high) of a bucket: int64[high - low]."""
        counts = np.zeros(high - low, np.int64)
        buckets = self.buckets
        first = low - buckets.plan.bounds(bucket)[0]
        for piece in buckets.runs.read(bucket, most_records=_MOST_FILTERED):  # all at once may be all edges of the graph
            buckets.kernels.count_rows(piece.records, piece.layout, buckets.plan.shift, first, counts)
        return counts

    def order_values(self, edges: EdgeFields) -> NDArray[np.uint64]:
        """Return what the edges of a row are ordered by, before the edge ID."""
        value = edges.others if self.order == "id" else edges.keys if self.missing_key is not None else None
        return np.zeros(edges.owners.size, np.uint64) if value is None else value.astype(np.uint64)

    def inside(self, task: BuildTask, edges: EdgeFields) -> NDArray[np.bool_]:
        """Return which edges of a bucket belong to a task."""
        mask = (edges.owners >= task.low) & (edges.owners < task.high)
        if task.row_counts is not None:
            mask &= _between(self.order_values(edges), task.values) & _between(edges.ids, task.ids)
        return np.asarray(mask)

    def is_whole(self, task: BuildTask) -> bool:
        """Return whether a task is its bucket."""
        low, high = self.buckets.plan.bounds(task.bucket)[0], self.buckets.plan.bounds(task.bucket + task.num_buckets - 1)[1]
        return (task.low, task.high) == (low, high) and task.row_counts is None


def cut_tasks(edges: EdgeRuns, most: int) -> list[BuildTask]:
    """Cut all buckets into tasks of at most about ``2 * most`` edges and as many rows, in the order in which they are written.

    Rows take memory, too: where IDs are dense, there may be many more of them than edges.
    """
    tasks: list[BuildTask] = []
    for bucket in range(edges.buckets.plan.num_buckets):
        low, high = edges.buckets.plan.bounds(bucket)
        for start in range(low, max(high, low + 1), 2 * most):
            task = BuildTask(bucket, start, min(start + 2 * most, high))
            tasks.extend([task] if edges.buckets.runs.num_records[bucket] <= 2 * most else _cut_rows(edges, task, most))
    return tasks


def join_tasks(edges: EdgeRuns, tasks: list[BuildTask], most: int) -> Iterator[BuildTask]:
    """Let tasks that are whole buckets, one after another, be one, of at most ``most`` edges and as many rows."""
    held: list[BuildTask] = []
    size = rows = 0
    for task in tasks:
        more = int(edges.buckets.runs.num_records[task.bucket])
        whole = edges.is_whole(task)
        if held and (not whole or size + more > most or rows + task.high - task.low > most):
            yield BuildTask(held[0].bucket, held[0].low, held[-1].high, num_buckets=len(held))
            held, size, rows = [], 0, 0
        if whole:
            held.append(task)
            size, rows = size + more, rows + task.high - task.low
        else:
            yield task
    if held:
        yield BuildTask(held[0].bucket, held[0].low, held[-1].high, num_buckets=len(held))


def _cut_rows(edges: EdgeRuns, task: BuildTask, most: int) -> Iterator[BuildTask]:
    """Cut a task by its rows, and rows that are too long."""
    counts = edges.count_rows(task.bucket, task.low, task.high)
    for start, stop in _cut_by_count(counts, most):
        total = int(counts[start:stop].sum())
        piece = BuildTask(task.bucket, task.low + start, task.low + stop)
        yield from _cut_row(edges, piece, total, most) if total > 2 * most else [piece]


def _cut_by_count(counts: Ints, most: int) -> Iterator[tuple[int, int]]:
    """Cut greedily into runs of at most ``most`` edges; what is more stands alone."""
    start = 0
    room = most
    for at, count in enumerate(counts.tolist()):
        if count > room and at > start:
            yield start, at
            start, room = at, most
        room -= count
    yield start, counts.size


def _cut_row(edges: EdgeRuns, task: BuildTask, total: int, most: int) -> Iterator[BuildTask]:
    """Cut one row; its length goes with the first piece."""
    counts = np.array([total], np.int64)
    for piece in _cut_range(edges, task._replace(row_counts=counts), most, by_id=False):
        yield piece._replace(row_counts=counts)
        counts = np.zeros(0, np.int64)


def _cut_range(edges: EdgeRuns, task: BuildTask, most: int, by_id: bool) -> Iterator[BuildTask]:
    """Cut a task's range of order values, or of edge IDs, by a histogram; ranges that hold too much are cut again."""
    first, last = _bounds(edges, task, by_id)
    if not by_id and last - first == 1:
        yield from _cut_range(edges, task._replace(values=(first, last)), most, by_id=True)
        return
    width = -(-(last - first) // _BINS)
    bins = -(-(last - first) // width)
    counts = np.zeros(bins, np.int64)
    for values in _task_values(edges, task, by_id):
        counts += np.bincount(((values - np.uint64(first)) // np.uint64(width)).astype(np.int64), minlength=bins)
    for start, stop in _cut_by_count(counts, most):
        inner = (first + start * width, min(first + stop * width, last))
        piece = task._replace(ids=inner) if by_id else task._replace(values=inner)
        if counts[start:stop].sum() > 2 * most:
            yield from _cut_range(edges, piece, most, by_id)
        else:
            yield piece


def _bounds(edges: EdgeRuns, task: BuildTask, by_id: bool) -> tuple[int, int]:
    """Return the lowest value and one more than the highest."""
    low, high = _TOP, 0
    for values in _task_values(edges, task, by_id):
        if values.size:
            low, high = min(low, int(values.min())), max(high, int(values.max()) + 1)
    return low, high


def _task_values(edges: EdgeRuns, task: BuildTask, by_id: bool) -> Iterator[NDArray[np.uint64]]:
    for some in edges.fields(task):
        yield some.ids if by_id else edges.order_values(some)


def _between(values: NDArray[np.uint64], bounds: tuple[int, int]) -> NDArray[np.bool_]:
    first, last = bounds
    return np.asarray((values >= np.uint64(first)) & (values <= np.uint64(last - 1)))
