"""Build CSC and CSR, one bucket at a time, and put every array in its place in the partitions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import methodcaller
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.buckets import (
    ROW_BYTES,
    BucketPlan,
    EdgeBuckets,
    EdgeRows,
    WriteBuffer,
    join_fields,
    plan_buckets,
    scatter_rows,
)
from graphprep.edges.tasks import BuildTask, EdgeRuns, cut_tasks, join_tasks
from graphprep.engine.ledger import EDGE_BYTES
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.ids.sort import stable_order
from graphprep.kernels.edges import Rows, Segments, bits_below, one_segment
from graphprep.model.errors import UsageError
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.columns.cells import Cells
from graphprep.store.paths import LayoutPaths
from graphprep.store.write import PartedArray, PartedOffsets, PartList

Ints = NDArray[np.int64]
_JOINED_BYTES = 32  # the same where buckets are built from where they lie
_MOST_JOINED = 1 << 18  # edges built at a time: fewer, and handing them over takes as long as building them
_SCATTERED_ROWS = 1 << 18  # of a built task, so many are scattered at a time: they fit the cache


class BuildRules(NamedTuple):
    """How layouts are built."""

    task_bytes: int
    threads: int


class BuiltTask(NamedTuple):
    """A built piece: lengths of its rows, then for each entry the other end, its edge ID and, in a second layout, its edge row.

    ``lengths`` are those within the piece, ``counts`` those of whole rows where a row begins here. ``arrival`` (edge IDs,
    ascending) and ``position`` say where in the piece each edge ID lies, where that is wanted.
    """

    task: BuildTask
    counts: Ints
    lengths: Ints
    others: NDArray[Any]
    edge_ids: NDArray[Any] | None
    keys: NDArray[np.uint64] | None = None
    edge_rows: Ints | None = None
    arrival: Ints | None = None
    position: Ints | None = None
    repeated: bool = False

    def rows(self) -> Ints:
        """Return the row of every entry."""
        return np.repeat(np.arange(self.task.low, self.task.high), self.lengths)

    def ends(self) -> tuple[tuple[int, int], tuple[int, int]] | None:
        """Return (row, other end) of the first and of the last entry; None without any."""
        filled = np.flatnonzero(self.lengths)
        if not filled.size:
            return None
        low = self.task.low
        return (low + int(filled[0]), int(self.others[0])), (low + int(filled[-1]), int(self.others[-1]))


class LayoutBuilder(NamedTuple):
    """Builds one layout of one edge type; ``edge_rows`` says that edges bring their edge rows.

    ``id_dtype`` is that of the edge IDs, None where they are not wanted; ``keys`` says that order keys are.
    """

    edges: EdgeRuns
    index_dtype: str
    id_dtype: str | None
    edge_rows: bool = False
    keys: bool = False

    @property
    def is_direct(self) -> bool:
        """Return whether whole buckets are built from where their records lie."""
        return self.edges.missing_key is None and self.edges.by_arrival

    def build(self, task: BuildTask, *, positions: bool = True) -> BuiltTask:
        """Sort a task's edges by row, inside a row by the neighbour order, ties by edge ID."""
        if self.edges.missing_key is not None or (positions and not (self.is_direct and self.edges.order != "id")):
            return self._order(task, positions)
        if not self.is_direct:
            return self._sort(task)
        with self.edges.segments(task) as (segments, bucket):
            low = task.low - self.edges.buckets.plan.bounds(task.bucket)[0]
            return self._place(task, segments, bucket, low, self.edges.buckets.runs.num_ids, positions)

    def _place(
        self,
        task: BuildTask,
        segments: Segments,
        bucket: int,
        low: int,
        num_ids: int,
        positions: bool,
        *,
        is_sorted: bool = False,
    ) -> BuiltTask:
        """Put the records of a task in the order of their rows, and, unless they are sorted, of their other ends if need be."""
        sizes = segments.sizes(bucket, bucket + task.num_buckets)
        size, is_by_id = int(sizes.sum()), self.edges.order == "id"
        ids = np.empty(size if self.id_dtype else 0, self.id_dtype or "int32")
        rows = Rows(np.zeros(task.high - task.low + 1, np.int64), np.empty(size, self.index_dtype), ids)
        arrival, position = (np.empty(size, np.int64), np.empty(size, np.int64)) if positions else (None, None)
        self.edges.buckets.kernels.place_edges(
            segments,
            bucket,
            bucket + task.num_buckets,
            rows,
            most=int(sizes.max(initial=0)),
            low=low,
            sort_bits=bits_below(self.edges.buckets.num_others) if is_by_id and not is_sorted else None,
            most_ids=num_ids,
            arrival=arrival,
            position=position,
        )
        counts = np.diff(rows.indptr)
        return BuiltTask(
            task=task,
            counts=counts if task.row_counts is None else task.row_counts,
            lengths=counts,
            others=rows.indices,
            edge_ids=ids if self.id_dtype else None,
            arrival=arrival,
            position=position,
            repeated=is_by_id and self.edges.buckets.kernels.has_repeats(counts, rows.indices),
        )

    def _sort(self, task: BuildTask) -> BuiltTask:
        """Build from records that do not come in the order of their edge IDs."""
        fields = join_fields(self.edges.fields(task), keyed=False, with_rows=self.edge_rows)
        plan = BucketPlan(task.high - task.low, bits_below(task.high - task.low))
        rows = EdgeRows(fields.owners - fields.owners.dtype.type(task.low), fields.others, fields.ids, None, fields.edge_rows)
        scattered = scatter_rows(self.edges.buckets.kernels, [rows], plan, self.edges.buckets.num_others)
        records, packing, num_ids = scattered.records, scattered.packing, int(fields.ids.max(initial=0)) + 1
        kernels, id_word = self.edges.buckets.kernels, 0 if packing.id_bits else packing.word("id")
        records = kernels.sort_records(records, id_word, 0, bits_below(num_ids))
        if self.edges.order == "id":
            records = kernels.sort_records(records, 0, packing.id_bits, packing.id_bits + packing.other_bits)
        segments = one_segment(records, packing, plan.shift)
        built = self._place(task._replace(num_buckets=1), segments, 0, 0, num_ids, self.edge_rows, is_sorted=True)
        if built.position is None:
            return built
        edge_rows = np.empty(built.others.size, np.int64)
        edge_rows[built.position] = records[:, packing.word("edge_row")].view(np.int64)
        return built._replace(task=task, edge_rows=edge_rows, arrival=None, position=None)

    def _order(self, task: BuildTask, positions: bool) -> BuiltTask:
        """Build from arrays of the records' fields: for orders by a key, and what travels along."""
        keyed = self.edges.missing_key is not None
        edges = join_fields(self.edges.fields(task), keyed=keyed, with_rows=self.edge_rows)
        if not self.edges.by_arrival:
            edges = edges.take(stable_order(edges.ids))
        key = edges.others if self.edges.order == "id" else edges.keys
        by_key = None if key is None else stable_order(key)
        rows = edges.owners.astype(np.int64) - task.low
        indptr, order = group_by_key(rows if by_key is None else rows[by_key], task.high - task.low)
        order = order if by_key is None else by_key[order]
        position = None
        if positions:
            position = np.empty(order.size, np.int64)
            position[order] = np.arange(order.size)
        counts = np.diff(indptr)
        others = edges.others[order].astype(self.index_dtype)
        return BuiltTask(
            task=task,
            counts=counts if task.row_counts is None else task.row_counts,
            lengths=counts,
            others=others,
            edge_ids=None if self.id_dtype is None else edges.ids[order].astype(self.id_dtype),
            keys=edges.keys[order] if self.keys and edges.keys is not None else None,
            edge_rows=None if edges.edge_rows is None else edges.edge_rows[order],
            arrival=edges.ids.astype(np.int64) if positions else None,
            position=position,
            repeated=self.edges.order == "id" and self.edges.buckets.kernels.has_repeats(counts, others),
        )


class LayoutFiles(NamedTuple):
    """What a layout's arrays are called and typed like."""

    folder: str
    index_dtype: str
    edge_id_dtype: str | None
    edge_rows: bool = False


@dataclass(eq=False)
class BuiltEdges:
    """What building the primary layout leaves for the edge columns: per task (arrival, position).

    Under neighbour order ``id``, ``repeated`` says whether two edges have the same ends; ``last`` are those of the last edge.
    """

    tasks: list[BuildTask]
    positions: Runs[tuple[Ints | None, Ints | None]] | None
    repeated: bool = False
    last: tuple[int, int] = (-1, -1)

    def note_repeats(self, piece: BuiltTask) -> None:
        """Note whether two edges have the same ends, also where the cut between two pieces of a row parts them."""
        ends = piece.ends()
        if ends is not None:
            self.repeated = self.repeated or piece.repeated or ends[0] == self.last
            self.last = ends[1]


class RowColumn(Protocol):
    """A column of edges that can be made piece by piece."""

    def gather(self, edge_ids: NDArray[Any]) -> Cells:
        """Return the values of some edges. Called on several threads."""

    def append(self, cells: Cells) -> None:
        """Write the values of the next edge rows."""


def write_layout(
    builder: LayoutBuilder,
    files: LayoutFiles,
    parts: PartList,
    row_sizes: Ints,
    edge_sizes: Ints,
    rules: BuildRules,
    pool: SpillPool,
    keep_positions: bool,
    second: SecondLayout | None = None,
    columns: Sequence[RowColumn] = (),
) -> BuiltEdges:
    """Build a layout bucket by bucket and write its arrays; ``row_sizes`` and ``edge_sizes`` (int64[P]) are by partition.

    ``columns`` are written beside it.
    """

    def begin() -> _Layout:
        tasks = cut_tasks(builder.edges, max(1, rules.task_bytes // EDGE_BYTES))
        if builder.is_direct and not keep_positions:
            tasks = list(join_tasks(builder.edges, tasks, min(_MOST_JOINED, rules.task_bytes // _JOINED_BYTES)))
        built = BuiltEdges(tasks, Runs(pool, max(1, len(tasks))) if keep_positions else None)
        return _Layout(built, *_arrays(files, parts, row_sizes, edge_sizes))

    def build(task: BuildTask) -> tuple[BuiltTask, list[Cells]]:
        piece = builder.build(task, positions=keep_positions)
        return piece, [] if piece.edge_ids is None else list(map(methodcaller("gather", piece.edge_ids), columns))

    layout = parts.going_on(files.folder, begin)
    built = layout.built
    for piece, values in map_ordered(build, built.tasks[layout.num_tasks :], rules.threads):
        for column, cells in zip(columns, values, strict=True):
            column.append(cells)
        if builder.edges.order == "id":
            built.note_repeats(piece)
        if built.positions is not None:
            built.positions.append(layout.num_tasks, (piece.arrival, piece.position))
        if second is not None:
            second.add(piece, layout.num_edges)
        layout.append(piece)
        parts.pause()
    layout.close()
    return built


def _arrays(
    files: LayoutFiles, parts: PartList, row_sizes: Ints, edge_sizes: Ints
) -> tuple[PartedOffsets, PartedArray, PartedArray | None, PartedArray | None]:
    """Return the arrays of a layout: indptr, indices, edge IDs and edge rows."""
    paths = LayoutPaths(files.folder)
    indptr = PartedOffsets(parts, paths.indptr, row_sizes)
    indices = PartedArray(parts, paths.indices, files.index_dtype, edge_sizes)
    ids = PartedArray(parts, paths.edge_ids, files.edge_id_dtype, edge_sizes) if files.edge_id_dtype else None
    rows = PartedArray(parts, paths.edge_rows, "int64", edge_sizes) if files.edge_rows else None
    return indptr, indices, ids, rows


@dataclass(eq=False)
class _Layout:
    """A layout on its way to its files: what of it is done."""

    built: BuiltEdges
    indptr: PartedOffsets
    indices: PartedArray
    ids: PartedArray | None
    rows: PartedArray | None
    num_tasks: int = 0
    num_edges: int = 0

    def append(self, piece: BuiltTask) -> None:
        """Write the next task's piece."""
        self.indptr.append(piece.counts)
        self.indices.append(piece.others)
        if self.ids is not None and piece.edge_ids is not None:
            self.ids.append(piece.edge_ids)
        if self.rows is not None and piece.edge_rows is not None:
            self.rows.append(piece.edge_rows)
        self.num_tasks += 1
        self.num_edges += piece.others.size

    def close(self) -> None:
        """Check that all partitions are complete."""
        for array in (self.indptr, self.indices, self.ids, self.rows):
            if array is not None:
                array.close()


class SecondLayout:
    """Collects the edges of the finished primary layout for the other one, with their edge rows where these are wanted."""

    def __init__(
        self, primary: EdgeBuckets, num_edges: int, num_rows: int, pool: SpillPool, bucket_bytes: int, *, edge_rows: bool
    ) -> None:
        self.plan = plan_buckets(num_rows, num_edges * EDGE_BYTES + num_rows * ROW_BYTES, bucket_bytes)
        write_buffer = WriteBuffer(WriteBuffer.cap_of(bucket_bytes))
        self._edge_rows = edge_rows
        self._buckets = EdgeBuckets(primary.kernels, pool, self.plan, write_buffer, primary.plan.num_rows)

    @property
    def buckets(self) -> EdgeBuckets:
        """Return the edges."""
        return self._buckets

    def add(self, piece: BuiltTask, first_row: int) -> None:
        """Scatter a finished piece, whose first entry is edge row ``first_row``."""
        assert piece.edge_ids is not None
        rows, dtype = piece.rows(), self._buckets.dtype
        for start in range(0, piece.others.size, _SCATTERED_ROWS):
            some = slice(start, min(start + _SCATTERED_ROWS, piece.others.size))
            self._buckets.add(
                EdgeRows(
                    piece.others[some].astype(dtype),
                    rows[some].astype(dtype),
                    piece.edge_ids[some].astype(np.uint64),
                    None if piece.keys is None else piece.keys[some],
                    np.arange(first_row + start, first_row + some.stop) if self._edge_rows else None,
                )
            )

    def finish(self) -> None:
        """Scatter the last pieces."""
        self._buckets.flush()


def settle_index_dtype(wanted: Literal["auto", "int32", "int64"], size: int) -> str:
    """Return int32 where ``size`` is below 2^31, else int64, unless one is asked for.

    Raises UsageError where int32 is asked for and cannot hold 0..size-1.
    """
    if wanted == "int32" and size > 2**31:
        raise UsageError(f"--index-dtype int32 cannot hold IDs up to {size - 1}", fix="use --index-dtype auto or int64")
    if wanted != "auto":
        return wanted
    return "int32" if size < 2**31 else "int64"
