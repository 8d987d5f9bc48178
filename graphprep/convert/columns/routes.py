"""Scatter nodes' columns and edges to buckets: runs of consecutive rows that fit the memory budget."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.file_columns import FileColumn
from graphprep.convert.decoded.rows import BatchCells, BatchColumn
from graphprep.edges.buckets import BucketPlan, EdgeBuckets, Ints, WriteBuffer, plan_buckets
from graphprep.edges.order_keys import missing_order_key, order_role
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema, NeighborOrder
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.assign import count_parts, parts_of_rows
from graphprep.store.columns.cells import Cells, concat_cells, scalar_cells

NUM_SLOTS = ColumnKey("num_slots", "numbers", "int32")
CREATED_KEY = ColumnKey("created", "numbers", "bool", role="created")


@dataclass(eq=False)
class ColumnStats:
    """What one owner type's values under one key look like. ``rows``, ``values`` and ``entries`` are int64[P], by partition.

    ``is_seen``: the input has such values, though perhaps not for this owner, or not in records that are kept. ``bounds`` are
    the least and the largest of sparse coordinates, by dimension: int64[2, width]; None: there are none.
    """

    num_parts: int
    scalar: bool = False
    is_seen: bool = False
    min_count: int = -1
    max_count: int = -1
    shape_codes: set[int] = field(default_factory=set)
    any_end: bool = False
    declared_shape: tuple[int, ...] | None = None
    bounds: Ints | None = None
    rows: Ints = field(init=False)
    values: Ints = field(init=False)
    entries: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.rows = np.zeros(self.num_parts, np.int64)
        self.values = np.zeros(self.num_parts, np.int64)
        self.entries = np.zeros(self.num_parts, np.int64)

    def add(self, cells: Cells, rows: Ints, offsets: Ints) -> None:
        """Count some rows; ``offsets`` (int64[P + 1]) are the borders of the partitions in ``rows``."""
        if not cells.num_rows:
            return
        if cells.counts is None:
            width = cells.values.shape[1]
            num_rows = count_parts(rows, offsets)
            self.rows += num_rows
            self.values += num_rows * width
            low = high = width
        else:
            counts = cells.value_counts
            self._count(cells, counts, parts_of_rows(rows, offsets))
            low, high = int(counts.min()), int(counts.max())
        self.min_count = low if self.min_count < 0 else min(low, self.min_count)
        self.max_count = max(high, self.max_count)
        self.shape_codes.update([0] if cells.shapes is None else np.unique(cells.shapes).tolist())

    def add_all(self, cells: Cells, num_rows: Ints) -> None:
        """Count rows that are like those of ``cells`` (dense, of one width); ``num_rows`` (int64[P]) are their numbers."""
        if cells.num_rows:
            self.add(cells, np.zeros(0, np.int64), np.zeros(self.num_parts + 1, np.int64))
            self.rows += num_rows
            self.values += num_rows * cells.values.shape[1]

    def _count(self, cells: Cells, counts: Ints, parts: Ints) -> None:
        self.rows += np.bincount(parts, minlength=self.num_parts)
        self.values += np.bincount(parts, counts, minlength=self.num_parts).astype(np.int64)
        if cells.entry_counts is not None:
            self.entries += np.bincount(parts, cells.entry_counts, minlength=self.num_parts).astype(np.int64)
        if cells.coords is not None and cells.coords.size:
            coords = cells.coords.reshape(cells.flat.size, -1)
            found = np.stack([coords.min(axis=0), coords.max(axis=0)])
            before = found if self.bounds is None else self.bounds
            self.bounds = np.stack([np.minimum(before[0], found[0]), np.maximum(before[1], found[1])])
        if cells.end is not None:
            self.any_end = self.any_end or bool((cells.end != -1).any())


@dataclass(frozen=True)
class StoredColumn:
    """A column of the store and the keys under which its values travel; ``fill`` is what rows without it hold."""

    schema: ColumnSchema
    keys: tuple[ColumnKey, ...]
    fill: float = 0


@dataclass(frozen=True, eq=False)
class FlatRows:
    """Rows of plain arrays that go to the bucket of their first array; None stands for an array that is not there."""

    parts: tuple[NDArray[Any] | None, ...]

    @property
    def rows(self) -> Ints:
        """Return what decides the bucket."""
        return np.asarray(self.parts[0])

    @property
    def num_bytes(self) -> int:
        """Return the size in bytes."""
        return sum(part.nbytes for part in self.parts if part is not None)

    def __iter__(self) -> Iterator[NDArray[Any] | None]:
        return iter(self.parts)

    @classmethod
    def _make(cls, arrays: Iterable[Any]) -> FlatRows:
        return cls(tuple(arrays))

    def take(self, chosen: Ints) -> FlatRows:
        """Return some rows."""
        return FlatRows(tuple(None if part is None else part[chosen] for part in self.parts))

    def is_like(self, other: FlatRows) -> bool:
        """Return whether the same parts are there."""
        return [part is None for part in self.parts] == [part is None for part in other.parts]

    @classmethod
    def concat(cls, pieces: Sequence[FlatRows]) -> FlatRows:
        """Put rows that are alike one after another."""
        columns = zip(*(piece.parts for piece in pieces), strict=True)
        return cls(tuple(None if column[0] is None else np.concatenate(column) for column in columns))


@dataclass(frozen=True, eq=False)
class CellRows:
    """Cells with the rows they belong to and, for edges, the edge IDs."""

    rows: Ints
    edge_ids: Ints | None
    cells: Cells

    @property
    def num_bytes(self) -> int:
        """Return the size in bytes."""
        return self.rows.nbytes + (0 if self.edge_ids is None else self.edge_ids.nbytes) + self.cells.num_bytes

    def __iter__(self) -> Iterator[NDArray[Any] | None]:
        return iter((self.rows, self.edge_ids, *self.cells))

    @classmethod
    def _make(cls, arrays: Iterable[Any]) -> CellRows:
        rows, edge_ids, *parts = arrays
        return cls(rows, edge_ids, Cells._make(parts))

    def take(self, chosen: Ints) -> CellRows:
        """Return some rows."""
        ids = None if self.edge_ids is None else self.edge_ids[chosen]
        return CellRows(self.rows[chosen], ids, self.cells.take(chosen))

    def is_like(self, other: CellRows) -> bool:
        """Return True: cells of one column can always be joined."""
        return (self.edge_ids is None) == (other.edge_ids is None)

    @classmethod
    def concat(cls, pieces: Sequence[CellRows]) -> CellRows:
        """Put rows one after another."""
        ids = [piece.edge_ids for piece in pieces if piece.edge_ids is not None]
        rows = np.concatenate([piece.rows for piece in pieces])
        return cls(rows, np.concatenate(ids) if ids else None, concat_cells([piece.cells for piece in pieces]))


class OrderedValues:
    """The values of rows 0, 1 … of a column, as long as every row has one and all are alike: of one width, dtype and shape.

    The first row that is missing, out of turn, or different ends it; what comes then is somebody else's. Rows are those of a
    node type, or the edge IDs of an edge type. At most ``most_bytes`` are taken.
    """

    def __init__(self, runs: Runs[tuple[NDArray[Any]]], most_bytes: int = sys.maxsize) -> None:
        self.num_rows = 0
        self.width = 0
        self.shape_code = 0
        self.dtype: np.dtype[Any] | None = None
        self.file: FileColumn | None = None
        self._runs = runs
        self._room = most_bytes
        self._closed = False

    def take_in(self, rows: Ints, cells: Cells) -> bool:
        """Append the cells of some rows; return False where they are not the next ones. Rows are distinct."""
        if not rows.size:
            return True
        code = 0 if cells.shapes is None else _shape_code(cells.shapes)
        self._closed = self._closed or not self._fits(rows, cells, code)
        if self._closed:
            return False
        if self.dtype is None:
            self.dtype, self.width, self.shape_code = cells.values.dtype, cells.values.shape[1], code
        self._runs.append(0, (cells.values,))
        self._room -= cells.values.nbytes
        self.num_rows += int(rows.size)
        return True

    def adopt(self, column: FileColumn) -> bool:
        """Let all values stay in their files; return False where there are others, or too many."""
        if self.num_rows or self._closed or column.num_rows * column.row_bytes > self._room:
            return False
        self.file, self._closed, column.is_left = column, True, True
        self.num_rows, self.width, self.dtype, self.shape_code = column.num_rows, column.width, column.dtype, column.shape_code
        return True

    def _fits(self, rows: Ints, cells: Cells, code: int) -> bool:
        if cells.counts is not None or cells.values.nbytes > self._room:
            return False
        first, last = self.num_rows, self.num_rows + rows.size - 1
        if int(rows[0]) != first or int(rows[-1]) != last or not (rows[1:] > rows[:-1]).all():
            return False
        if self.dtype is None:
            return code >= 0
        return cells.values.dtype == self.dtype and cells.values.shape[1] == self.width and code == self.shape_code

    def chunks(self) -> Iterator[NDArray[Any]]:
        """Return the values [k, width] of all rows, in order."""
        return map(itemgetter(0), self._runs.read(0)) if self.file is None else self.file.chunks()

    def cells(self) -> Iterator[tuple[Ints, Cells]]:
        """Yield (rows, cells) of all rows, in order."""
        row = 0
        for values in self.chunks():
            stop = row + len(values)
            shapes = np.full(len(values), self.shape_code, np.int32) if self.shape_code else None
            yield np.arange(row, stop), Cells(None, values, shapes=shapes)
            row = stop

    def load(self, dtype: str) -> NDArray[Any]:
        """Return the values of all rows, [num_rows, width], of a dtype."""
        values = np.empty((self.num_rows, self.width), dtype)
        row = 0
        for some in self.chunks():
            values[row : row + len(some)] = some
            row += len(some)
        return values

    def close(self) -> None:
        """Drop the values."""
        self._runs.close()
        self.file = None
        self.num_rows = 0
        self._closed = True


def _shape_code(shapes: NDArray[np.int32]) -> int:
    """Return the code of the shape that all cells have; -1 where there are several."""
    return int(shapes[0]) if (shapes == shapes[0]).all() else -1


Scattered = TypeVar("Scattered", FlatRows, CellRows)


class Scatterer(Generic[Scattered]):
    """Scatters rows to buckets. Small batches wait for each other: a chunk of a few rows costs as much as a large one."""

    def __init__(self, runs: Runs[Scattered], plan: BucketPlan, write_buffer: WriteBuffer) -> None:
        self.runs: Runs[Scattered] = runs
        self.plan = plan
        self._write_buffer = write_buffer
        self._held: list[Scattered] = []
        write_buffer.scatterers.append(self)

    def add(self, piece: Scattered) -> None:
        """Take rows; within a bucket they keep the order in which they came."""
        if self.plan.num_buckets == 1:
            self.runs.append(0, piece)
            return
        if self._held and not piece.is_like(self._held[-1]):
            self.flush()
        self._held.append(piece)
        self._write_buffer.hold(piece.num_bytes)

    def flush(self) -> None:
        """Scatter what is held back."""
        held, self._held = self._held, []
        if not held:
            return
        piece = held[0] if len(held) == 1 else type(held[0]).concat(held)
        for bucket, chosen in self.plan.split(piece.rows):
            self.runs.append(bucket, piece if chosen is None else piece.take(chosen))


@dataclass(eq=False)
class ColumnRoute:
    """The runs of one column of one owner type: chunks by bucket, and what was seen.

    ``ordered`` takes the values of the first rows, or edge IDs, that come in their order; those are not in the runs.
    """

    scatterer: Scatterer[CellRows]
    stats: ColumnStats
    ordered: OrderedValues | None = None

    @property
    def runs(self) -> Runs[CellRows]:
        """Return the chunks."""
        return self.scatterer.runs

    @property
    def plan(self) -> BucketPlan:
        """Return how rows are cut into buckets."""
        return self.scatterer.plan

    def close(self) -> None:
        """Drop the values."""
        if self.ordered is not None:
            self.ordered.close()
        self.scatterer.runs.close()

    def add(self, rows: Ints, edge_ids: Ints | None, cells: Cells, offsets: Ints) -> None:
        """Scatter the cells of some rows; ``offsets`` are the partitions' borders."""
        self.stats.add(cells, rows, offsets)
        self.scatter(rows, edge_ids, cells)

    def scatter(self, rows: Ints, edge_ids: Ints | None, cells: Cells) -> None:
        """Scatter cells of a column whose kind and shape are known: one number a row."""
        if self.ordered is None or not self.ordered.take_in(rows if edge_ids is None else edge_ids, cells):
            self.scatterer.add(CellRows(rows, edge_ids, cells))


@dataclass(eq=False)
class EdgeRoute:
    """The edges of one canonical edge type on their way.

    ``edges`` holds them by bucket of the primary layout, ``second`` by bucket of the other where that need not wait for the
    primary one. ``primary_counts`` and ``second_counts`` are int64[P]: edges by the partition of their owner in the primary and
    in the other layout.
    """

    relation: int
    src_type: int
    dst_type: int
    edges: EdgeBuckets
    primary_counts: Ints
    second_counts: Ints
    second: EdgeBuckets | None = None
    num_edges: int = 0
    checksum: int = 0
    extra_slots: bool = False
    columns: dict[ColumnKey, ColumnRoute] = field(default_factory=dict)


@dataclass(eq=False)
class NodeRoute:
    """The columns of one node type on their way."""

    num_rows: int
    columns: dict[ColumnKey, ColumnRoute] = field(default_factory=dict)
    extra_slots: bool = False


class RouteFactory:
    """Makes column routes, with as many buckets as the column's size asks for."""

    def __init__(self, pool: SpillPool, bucket_bytes: int, column_bytes: dict[ColumnKey, int], num_parts: int) -> None:
        self.pool = pool
        self.write_buffer = WriteBuffer(WriteBuffer.cap_of(bucket_bytes))
        self.bucket_bytes = bucket_bytes
        # An input column may travel under several keys, which must be cut alike.
        self.column_bytes: dict[tuple[str, int | None], int] = {}
        for key, size in column_bytes.items():
            self.column_bytes[key.name, key.slot] = self.column_bytes.get((key.name, key.slot), 0) + size
        self.num_parts = num_parts

    def column(
        self,
        routes: dict[ColumnKey, ColumnRoute],
        key: ColumnKey,
        num_rows: int,
        plan: BucketPlan | None = None,
        ordered_bytes: int = 0,
    ) -> ColumnRoute:
        """Return the route of a column, made where it does not exist yet.

        It keeps at most ``ordered_bytes`` of values in their order.
        """
        route = routes.get(key)
        if route is None:
            if plan is None:
                plan = plan_buckets(num_rows, 2 * self.column_bytes.get((key.name, key.slot), 0), self.bucket_bytes)
            stats = ColumnStats(self.num_parts, scalar=key.role is not None)
            runs: Runs[CellRows] = Runs(self.pool, plan.num_buckets)
            ordered = OrderedValues(Runs(self.pool), ordered_bytes) if ordered_bytes else None
            route = routes[key] = ColumnRoute(Scatterer(runs, plan, self.write_buffer), stats, ordered)
        return route


def batch_columns(
    columns: tuple[BatchColumn, ...], held: BatchCells, num_rows: int, num_slots: NDArray[np.int32] | None
) -> list[tuple[BatchColumn, Ints, Cells]]:
    """Return (column, rows in the batch, cells) of a batch's columns, the stated numbers of slots among them."""
    found, every = [], np.arange(num_rows)
    for column, (rows, cells) in zip(columns, held.columns, strict=True):
        found.append((column, every if rows is None else rows, cells))
    if num_slots is not None:
        column = BatchColumn(NUM_SLOTS, 0, scalar=True, has_values=True)
        found.append((column, every, scalar_cells(num_slots)))
    return found


def highest_slots(columns: Sequence[tuple[ColumnKey, Ints]], num_rows: int) -> Ints:
    """Return for every row of a batch its highest present slot + 1."""
    highest = np.zeros(num_rows, np.int64)
    for key, rows in columns:
        if key.slot is not None and rows.size == num_rows:  # each once
            np.maximum(highest, key.slot + 1, out=highest)
        elif key.slot is not None:
            highest[rows] = np.maximum(highest[rows], key.slot + 1)
    return highest


def excess_slots(columns: list[tuple[ColumnKey, Ints]], num_slots: NDArray[np.int32], num_rows: int) -> NDArray[np.bool_]:
    """Return which rows state more slots than their highest present one + 1."""
    return np.asarray(num_slots > highest_slots(columns, num_rows), np.bool_)


def effective_order(route: EdgeRoute, wanted: NeighborOrder) -> tuple[NeighborOrder, int | None]:
    """Return the order that an edge type gets, and the key of edges without a value; None where order needs no keys.

    An edge type without the column keeps ``input``.
    """
    if wanted not in ("time", "weight"):
        return wanted, None
    role = order_role(wanted, {key.role for key in route.columns if key.role is not None})
    return ("input", None) if role is None else (wanted, missing_order_key(role))
