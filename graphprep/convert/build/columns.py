"""Put columns in the order of their rows and write them, kind by kind, piece by piece."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.routes import ColumnRoute, OrderedValues, StoredColumn
from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.edges.buckets import BucketPlan
from graphprep.edges.build import BuiltEdges
from graphprep.edges.tasks import BuildTask
from graphprep.engine.local import map_ordered
from graphprep.model.metadata import ArrayEntry
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import Cells, concat_cells, empty_cells
from graphprep.store.columns.densify import dense_cells
from graphprep.store.paths import ColumnPaths
from graphprep.store.write import PartedArray, PartedOffsets, PartList

Ints = NDArray[np.int64]
_DENSE_BYTES = 1 << 20  # of rows that were sparse
_FEW_ROWS = 1 << 12  # of a column: a thread takes longer to start, and there may be thousands of such columns


class ColumnPiece(NamedTuple):
    """A column's values for consecutive rows, and the rows that have one: int64[k], ascending, from 0; None: all."""

    num_rows: int
    rows: Ints | None
    cells: Cells


class ColumnTarget(NamedTuple):
    """Where a column goes: the path stem inside a partition, and the number of rows by partition (int64[P])."""

    column: StoredColumn
    stem: str
    row_sizes: Ints


class ColumnWriter:
    """Writes one column in every partition."""

    def __init__(self, parts: PartList, target: ColumnTarget, routes: Mapping[ColumnKey, ColumnRoute]) -> None:
        self.num_rows = self.num_pieces = 0  # that are written
        self._column = target.column
        schema, rows, stem = target.column.schema, target.row_sizes, target.stem
        self._present = PartedArray(parts, ColumnPaths(stem).present, "bool", rows) if schema.optional else None
        self._offsets: PartedOffsets | None = None
        self._entry_offsets: PartedOffsets | None = None
        self._extra: dict[str, PartedArray] = {}
        if schema.kind == "dense":
            self._values = PartedArray(parts, f"{stem}.npy", schema.dtype, rows, schema.item_shape)
            return
        stats = [routes[key].stats for key in target.column.keys]
        values = sum((stat.values for stat in stats), np.zeros(parts.num_parts, np.int64))
        entries = sum((stat.entries for stat in stats), np.zeros(parts.num_parts, np.int64))
        self._values = PartedArray(parts, ColumnPaths(stem).values, schema.dtype, values)
        if schema.kind == "temporal":
            self._entry_offsets = PartedOffsets(parts, ColumnPaths(stem).entry_offsets, rows)
            self._offsets = PartedOffsets(parts, ColumnPaths(stem).offsets, entries)
            for name in ("start", "end") if schema.end else ("start",):
                self._extra[name] = PartedArray(parts, f"{stem}.{name}.npy", "int64", entries)
            return
        self._offsets = PartedOffsets(parts, ColumnPaths(stem).offsets, rows)
        if schema.kind == "sparse":
            self._extra["coords"] = PartedArray(parts, ColumnPaths(stem).coords, "int64", values, schema.item_shape)

    def append(self, piece: ColumnPiece) -> None:
        """Write the next rows."""
        self.num_rows += piece.num_rows
        self.num_pieces += 1
        if self._present is not None:
            present = np.full(piece.num_rows, piece.rows is None)
            if piece.rows is not None:
                present[piece.rows] = True
            self._present.append(present)
        cells = piece.cells.cast(self._column.schema.dtype)
        if self._column.schema.kind == "dense" and cells.coords is not None:
            for part in _dense_pieces(ColumnPiece(piece.num_rows, piece.rows, cells), self._column.schema):
                self._append_dense(part, part.cells)
        elif self._column.schema.kind == "dense":
            self._append_dense(piece, cells)
        elif self._column.schema.kind == "temporal":
            self._append_temporal(piece, cells)
        else:
            self._append_ragged(piece, cells)

    def _append_dense(self, piece: ColumnPiece, cells: Cells) -> None:
        schema = self._column.schema
        values = cells.values.reshape(cells.num_rows, *schema.item_shape)
        if piece.rows is not None and piece.rows.size < piece.num_rows:
            some, values = values, np.full((piece.num_rows, *schema.item_shape), self._column.fill, np.dtype(schema.dtype))
            values[piece.rows] = some
        self._values.append(values)

    def _append_ragged(self, piece: ColumnPiece, cells: Cells) -> None:
        assert self._offsets is not None
        self._offsets.append(_all_counts(piece, cells.item_counts))
        self._values.append(cells.flat)
        if cells.coords is not None and "coords" in self._extra:
            self._extra["coords"].append(cells.coords.reshape(cells.values.size, *self._column.schema.item_shape))

    def _append_temporal(self, piece: ColumnPiece, cells: Cells) -> None:
        assert self._offsets is not None
        assert self._entry_offsets is not None
        assert cells.entry_counts is not None
        assert cells.start is not None
        assert cells.end is not None
        self._entry_offsets.append(_all_counts(piece, cells.entry_counts))
        entry_rows = np.repeat(np.arange(cells.entry_counts.size), cells.entry_counts)
        order = np.lexsort((cells.start, entry_rows))
        entries = Cells(cells.item_counts, cells.values).take(order)
        self._offsets.append(entries.item_counts)
        self._values.append(entries.values)
        self._extra["start"].append(cells.start[order])
        if "end" in self._extra:
            self._extra["end"].append(cells.end[order])

    def close(self) -> None:
        """Check that all partitions are complete."""
        for array in (self._present, self._offsets, self._entry_offsets, self._values, *self._extra.values()):
            if array is not None:
                array.close()


def _dense_pieces(piece: ColumnPiece, schema: ColumnSchema) -> Iterator[ColumnPiece]:
    """Yield sparse values as dense rows, a few at a time: they take many times the room."""
    row_bytes = max(1, np.dtype(schema.dtype).itemsize * math.prod(schema.item_shape))
    rows = np.arange(piece.num_rows) if piece.rows is None else piece.rows
    for low in range(0, piece.num_rows, max(1, _DENSE_BYTES // row_bytes)):
        high = min(low + max(1, _DENSE_BYTES // row_bytes), piece.num_rows)
        first, last = np.searchsorted(rows, [low, high])
        cells = dense_cells(piece.cells.slice(first, last), schema.item_shape, schema.name, low)
        yield ColumnPiece(high - low, rows[first:last] - low, cells)


def _all_counts(piece: ColumnPiece, counts: Ints) -> Ints:
    """Return the counts of all rows of a piece; rows without a value have none."""
    if piece.rows is None:
        return counts
    every = np.zeros(piece.num_rows, np.int64)
    every[piece.rows] = counts
    return every


def _in_order(rows: Ints, cells: Cells, num_rows: int) -> tuple[Ints, Cells]:
    """Sort cells by the row of 0..num_rows-1 they belong to; a row has one cell at most, so no comparing is needed."""
    if rows.size < 2 or bool((rows[:-1] < rows[1:]).all()):
        return rows, cells
    cell_of = np.full(num_rows, -1, np.int64)
    cell_of[rows] = np.arange(rows.size)
    present = np.arange(num_rows) if rows.size == num_rows else np.flatnonzero(cell_of >= 0)
    return present, cells.take(cell_of[present])


def read_cells(
    routes: Sequence[ColumnRoute],
    keys: Sequence[ColumnKey],
    dtype: str,
    bucket: int,
    keep: Callable[[Ints, Ints | None], Ints | None],
) -> tuple[Ints, Ints, Cells]:
    """Read a bucket of a column: (rows, edge IDs, cells). ``keep(rows, ids)`` chooses positions, None all."""
    pieces: list[Cells] = []
    rows_of: list[Ints] = []
    ids_of: list[Ints] = []
    for route in routes:
        for rows, ids, cells in ((one.rows, one.edge_ids, one.cells) for one in route.runs.read(bucket)):
            chosen = keep(rows, ids)
            pieces.append((cells if chosen is None else cells.take(chosen)).cast(dtype))
            rows_of.append(rows if chosen is None else rows[chosen])
            if ids is not None:
                ids_of.append(ids if chosen is None else ids[chosen])
    if not pieces:
        none = np.zeros(0, np.int64)
        return none, none, empty_cells(keys[0]).cast(dtype)
    ids = np.concatenate(ids_of) if ids_of else np.zeros(0, np.int64)
    return np.concatenate(rows_of), ids, concat_cells(pieces)


def node_pieces(
    column: StoredColumn, routes: Sequence[ColumnRoute], num_rows: int, piece_bytes: int, writer: ColumnWriter
) -> Iterator[Callable[[], ColumnPiece]]:
    """Yield tasks that make the pieces of a node column that the writer lacks, in the order of rows.

    Values that came in it come before those that were scattered.
    """
    first = writer.num_rows
    for route in routes:
        if route.ordered is not None and first < route.ordered.num_rows:  # at most one has row 0, and so any
            row = 0
            for values in route.ordered.chunks():
                left = values[max(0, first - row) :]
                row += len(values)
                if len(left):
                    yield partial(ColumnPiece, len(left), None, Cells(None, left))
            first = route.ordered.num_rows
    plan = routes[0].plan
    for bucket in range(plan.num_buckets):
        low, high = plan.bounds(bucket)
        low = max(low, first)
        size = sum(route.runs.num_bytes(bucket) for route in routes)
        step = max(1, -(-(high - low) * piece_bytes // max(size, piece_bytes, 1)))
        for start in range(low, high, step):
            yield _NodePiece(column, tuple(routes), bucket, start, min(start + step, high), (low, high))


@dataclass(frozen=True, eq=False)
class _NodePiece:
    column: StoredColumn
    routes: tuple[ColumnRoute, ...]
    bucket: int
    low: int
    high: int
    bounds: tuple[int, int]

    def __call__(self) -> ColumnPiece:
        whole = (self.low, self.high) == self.bounds

        def keep(rows: Ints, _: Ints | None) -> Ints | None:
            return None if whole else np.flatnonzero((rows >= self.low) & (rows < self.high))

        rows, _, cells = read_cells(self.routes, self.column.keys, self.column.schema.dtype, self.bucket, keep)
        num_rows = self.high - self.low
        return ColumnPiece(num_rows, *_in_order(rows - self.low, cells, num_rows))


@dataclass(frozen=True, eq=False)
class _EdgePiece:
    """Makes one task's piece of an edge column: finds the place of every edge ID in the task.

    ``values`` ([k, width]) are those of edges 0..k-1, in the order of edge IDs; the others were scattered.
    """

    column: StoredColumn
    routes: tuple[ColumnRoute, ...]
    built: BuiltEdges
    number: int
    plan: BucketPlan
    values: NDArray[Any]

    def __call__(self) -> ColumnPiece:
        task = self.built.tasks[self.number]
        assert self.built.positions is not None
        arrival, position = _joined(self.built.positions.read(self.number))
        num_first = int(np.searchsorted(arrival, len(self.values)))
        first = Cells(None, self.values.take(arrival[:num_first], axis=0))
        if num_first == arrival.size:
            return ColumnPiece(arrival.size, *_in_order(position, first, arrival.size))
        keep = self._keep(task, arrival)
        _, ids, cells = read_cells(self.routes, self.column.keys, self.column.schema.dtype, task.bucket, keep)
        known = arrival[num_first:]
        at = position[num_first:]
        if ids.size != known.size or not (ids == known).all():
            at = at[np.searchsorted(known, ids)]
        if num_first:
            at, cells = np.concatenate([position[:num_first], at]), concat_cells([first, cells])
        return ColumnPiece(arrival.size, *_in_order(at, cells, arrival.size))

    def _keep(self, task: BuildTask, arrival: Ints) -> Callable[[Ints, Ints | None], Ints | None]:
        """Choose what belongs to the task: by row, and of a row that was cut by edge ID."""
        whole = (task.low, task.high) == self.plan.bounds(task.bucket) and task.row_counts is None

        def keep(rows: Ints, ids: Ints | None) -> Ints | None:
            if whole or ids is None:
                return None
            mask = (rows >= task.low) & (rows < task.high) & (arrival.size > 0)
            if task.row_counts is not None and arrival.size:
                at = np.minimum(np.searchsorted(arrival, ids), arrival.size - 1)
                mask &= arrival[at] == ids
            return np.flatnonzero(mask)

        return keep


def _joined(chunks: Iterator[tuple[NDArray[np.generic] | None, ...]]) -> tuple[Ints, Ints]:
    arrays = list(chunks)
    if not arrays:
        none = np.zeros(0, np.int64)
        return none, none
    first = np.concatenate([np.asarray(chunk[0], np.int64) for chunk in arrays])
    return first, np.concatenate([np.asarray(chunk[1], np.int64) for chunk in arrays])


def edge_pieces(
    column: StoredColumn, routes: Sequence[ColumnRoute], built: BuiltEdges, plan: BucketPlan, writer: ColumnWriter
) -> Iterator[Callable[[], ColumnPiece]]:
    """Yield tasks that make the pieces of an edge column that the writer lacks, in edge row order."""
    first = writer.num_pieces
    if first == len(built.tasks):
        return
    values: NDArray[Any] = np.zeros((0, 1), column.schema.dtype)  # of the first edges, in the order of edge IDs
    for route in routes:
        if route.ordered is not None and route.ordered.num_rows:  # of one route at most
            values = route.ordered.load(column.schema.dtype)
            break
    for number in range(first, len(built.tasks)):
        yield _EdgePiece(column, tuple(routes), built, number, plan, values)


class GatheredColumn(NamedTuple):
    """An edge column whose values all came in the order of edge IDs: written while the edges are built."""

    writer: ColumnWriter
    values: NDArray[Any]

    def gather(self, edge_ids: NDArray[Any]) -> Cells:
        """Return the values of some edges."""
        return Cells(None, self.values.take(edge_ids, axis=0))

    def append(self, cells: Cells) -> None:
        """Write the values of the next edge rows."""
        self.writer.append(ColumnPiece(cells.num_rows, None, cells))


def whole_in_order(column: StoredColumn, routes: Mapping[ColumnKey, ColumnRoute], num_edges: int) -> OrderedValues | None:
    """Return the values of a column that came in the order of edge IDs, all of them; None for other columns."""
    for key in column.keys:
        ordered = routes[key].ordered
        if ordered is not None and ordered.num_rows == num_edges > 0:
            return ordered
    return None


def write_column(
    parts: PartList,
    target: ColumnTarget,
    routes: Mapping[ColumnKey, ColumnRoute],
    pieces: Callable[[ColumnWriter], Iterator[Callable[[], ColumnPiece]]],
    threads: int,
) -> None:
    """Write a column from its pieces, those that a writer lacks."""
    writer = parts.going_on(target.stem, lambda: ColumnWriter(parts, target, routes))
    is_small = int(target.row_sizes.sum()) <= _FEW_ROWS
    for piece in map_ordered(_call, pieces(writer), 1 if is_small else threads):
        writer.append(piece)
        parts.pause()
    writer.close()


def plain_source(column: StoredColumn, routes: Sequence[ColumnRoute], num_rows: int) -> FileColumn | None:
    """Return the files that hold a column of nodes just as the store will; None where there are no such."""
    schema = column.schema
    for route in routes:
        file = None if route.ordered is None else route.ordered.file
        if file is not None and file.num_rows == num_rows and file.dtype == np.dtype(schema.dtype):
            return file if schema.kind == "dense" and not schema.optional else None
    return None


def copy_column(parts: PartList, target: ColumnTarget, source: FileColumn, threads: int) -> None:
    """Write a column from files that hold it, partition by partition."""
    schema, offsets = target.column.schema, np.concatenate([np.zeros(1, np.int64), np.cumsum(target.row_sizes)])

    def copy(part: int) -> ArrayEntry:
        start, stop = int(offsets[part]), int(offsets[part + 1])
        array = parts.open(part, f"{target.stem}.npy", np.dtype(schema.dtype), (stop - start, *schema.item_shape))
        for values in source.pieces(start, stop):
            array.append(values)
        return array.close()

    copied = parts.going_on(target.stem, _Copied)
    for entry in map_ordered(copy, range(copied.num_parts, parts.num_parts), threads):
        parts.entries[copied.num_parts].append(entry)
        copied.num_parts += 1
        parts.pause()


@dataclass
class _Copied:
    """A column on its way from files to those of the store."""

    num_parts: int = 0


def _call(task: Callable[[], ColumnPiece]) -> ColumnPiece:
    return task()
