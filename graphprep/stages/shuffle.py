"""Deal nodes' columns and edges out to buckets: runs of consecutive rows that fit the memory budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphprep.decoders.row_numbers import every_row
from graphprep.kernels.cpu.group import group_by_key
from graphprep.model.dataclass import dataclass
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import NeighborOrder
from graphprep.stages.cells import Arrays, Cells, cells_from, concat_cells
from graphprep.stages.decoded import BatchColumn
from graphprep.stages.observe import ColumnStats
from graphprep.stages.ordered import OrderedValues
from graphprep.storage.runs import Runs, SpillPool

if TYPE_CHECKING:
    from graphprep.stages.edge_buckets import EdgeBuckets
    from graphprep.storage.records import RecordRuns

Ints = NDArray[np.int64]
_CELL_PARTS = 7  # arrays in Cells.arrays()
ROW_BYTES = 8  # what building holds for each row of a bucket, whether it has edges or not
MOST_HELD_BYTES = 8 << 20  # beyond that, dealing out what was held back misses the cache: twice the time


@dataclass(frozen=True)
class BucketPlan:
    """How a type's rows are cut: bucket b holds rows [b * width, (b + 1) * width); ``width`` is 2^shift."""

    num_rows: int
    shift: int

    @property
    def width(self) -> int:
        """Return the number of rows of a bucket."""
        return 1 << self.shift

    @property
    def num_buckets(self) -> int:
        """Return the number of buckets, at least one."""
        return max(1, -(-self.num_rows // self.width))

    def bounds(self, bucket: int) -> tuple[int, int]:
        """Return the rows [low, high) of a bucket."""
        return bucket * self.width, min((bucket + 1) * self.width, self.num_rows)

    def split(self, rows: Ints) -> Iterator[tuple[int, Ints | None]]:
        """Yield (bucket, positions in ``rows``) for every bucket that occurs; None stands for all positions."""
        if self.num_buckets == 1 or not rows.size:
            yield 0, None
            return
        buckets = rows >> self.shift
        if buckets[0] == buckets[-1] and (buckets == buckets[0]).all():
            yield int(buckets[0]), None
            return
        indptr, order = group_by_key(buckets, self.num_buckets)
        for bucket in np.flatnonzero(np.diff(indptr)):
            yield int(bucket), order[indptr[bucket] : indptr[bucket + 1]]


def plan_buckets(num_rows: int, num_bytes: int, bucket_bytes: int, most: int = 1024) -> BucketPlan:
    """Cut rows so that their data, if spread evenly, takes at most ``bucket_bytes`` a bucket.

    At most 1024 buckets: beyond that scattered writes cost more than a second pass over the few that are too big.
    """
    wanted = max(1, min(most, -(-num_bytes // max(1, bucket_bytes)), max(1, num_rows)))
    shift = (max(1, num_rows) // wanted).bit_length() - 1 if wanted > 1 else max(0, num_rows - 1).bit_length()
    plan = BucketPlan(num_rows, shift)
    return plan if plan.num_buckets <= most else BucketPlan(num_rows, shift + 1)


@dataclass(frozen=True)
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

    def arrays(self) -> Arrays:
        """Return the parts, for ``Runs``."""
        return self.parts

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


@dataclass(frozen=True)
class CellRows:
    """Cells with the rows they belong to and, for edges, the edge IDs."""

    rows: Ints
    edge_ids: Ints | None
    cells: Cells

    @property
    def num_bytes(self) -> int:
        """Return the size in bytes."""
        return self.rows.nbytes + (0 if self.edge_ids is None else self.edge_ids.nbytes) + self.cells.num_bytes

    def arrays(self) -> Arrays:
        """Return the parts, for ``Runs``."""
        return (self.rows, self.edge_ids, *self.cells.arrays())

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


class HoldsBack(Protocol):
    """What holds rows back until there are enough of them."""

    def flush(self) -> None:
        """Deal them out."""


class Desk:
    """What dealers hold back, together: at most about ``cap_bytes``."""

    def __init__(self, cap_bytes: int) -> None:
        self.cap_bytes = cap_bytes
        self.held_bytes = 0
        self.dealers: list[HoldsBack] = []

    def hold(self, num_bytes: int) -> None:
        """Count bytes that are held back; deal everything out where it is too much."""
        self.held_bytes += num_bytes
        if self.held_bytes > self.cap_bytes:
            self.clear()

    def clear(self) -> None:
        """Deal out all that is held back."""
        for dealer in self.dealers:
            dealer.flush()
        self.held_bytes = 0


Dealt = TypeVar("Dealt", FlatRows, CellRows)


class Dealer(Generic[Dealt]):
    """Deals rows out to buckets. Small batches wait for each other: a chunk of a few rows costs as much as a large one."""

    def __init__(self, runs: Runs, plan: BucketPlan, desk: Desk) -> None:
        self.runs = runs
        self.plan = plan
        self._desk = desk
        self._held: list[Dealt] = []
        desk.dealers.append(self)

    def add(self, piece: Dealt) -> None:
        """Take rows; within a bucket they keep the order in which they came."""
        if self.plan.num_buckets == 1:
            self.runs.append(0, piece.arrays())
            return
        if self._held and not piece.is_like(self._held[-1]):
            self.flush()
        self._held.append(piece)
        self._desk.hold(piece.num_bytes)

    def flush(self) -> None:
        """Deal out what is held back."""
        held, self._held = self._held, []
        if not held:
            return
        piece = held[0] if len(held) == 1 else type(held[0]).concat(held)
        for bucket, chosen in self.plan.split(piece.rows):
            self.runs.append(bucket, (piece if chosen is None else piece.take(chosen)).arrays())


@dataclass
class ColumnRoute:
    """The runs of one column of one owner type: chunks (rows, [edge IDs], *cells) by bucket, and what was seen.

    ``ordered`` takes the values of the first rows, or edge IDs, that come in their order; those are not in the runs.
    """

    dealer: Dealer[CellRows]
    stats: ColumnStats
    ordered: OrderedValues | None = None

    @property
    def runs(self) -> Runs:
        """Return the chunks."""
        return self.dealer.runs

    @property
    def plan(self) -> BucketPlan:
        """Return how rows are cut into buckets."""
        return self.dealer.plan

    def close(self) -> None:
        """Drop the values."""
        self.runs.close()
        if self.ordered is not None:
            self.ordered.close()

    def add(self, rows: Ints, edge_ids: Ints | None, cells: Cells, offsets: Ints) -> None:
        """Deal out the cells of some rows; ``offsets`` are the partitions' borders."""
        self.stats.add(cells, rows, offsets)
        self.deal(rows, edge_ids, cells)

    def deal(self, rows: Ints, edge_ids: Ints | None, cells: Cells) -> None:
        """Deal out cells of a column whose kind and shape are known: one number a row."""
        if self.ordered is None or not self.ordered.take_in(rows if edge_ids is None else edge_ids, cells):
            self.dealer.add(CellRows(rows, edge_ids, cells))


@dataclass
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
    num_parts: int
    second: EdgeBuckets | None = None
    num_edges: int = 0
    checksum: int = 0
    extra_slots: bool = False
    columns: dict[ColumnKey, ColumnRoute] = field(default_factory=dict)
    primary_counts: Ints = field(init=False)
    second_counts: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.primary_counts = np.zeros(self.num_parts, np.int64)
        self.second_counts = np.zeros(self.num_parts, np.int64)

    @property
    def runs(self) -> RecordRuns:
        """Return the records."""
        return self.edges.runs

    @property
    def plan(self) -> BucketPlan:
        """Return how rows are cut into buckets."""
        return self.edges.plan


@dataclass
class NodeRoute:
    """The columns of one node type on their way."""

    num_rows: int
    columns: dict[ColumnKey, ColumnRoute] = field(default_factory=dict)
    extra_slots: bool = False


class RouteFactory:
    """Makes column routes, with as many buckets as the column's size asks for."""

    def __init__(self, pool: SpillPool, bucket_bytes: int, column_bytes: dict[ColumnKey, int], num_parts: int) -> None:
        self.pool = pool
        self.desk = Desk(min(bucket_bytes, MOST_HELD_BYTES))
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
            ordered = OrderedValues(self.pool, ordered_bytes) if ordered_bytes else None
            route = routes[key] = ColumnRoute(self.dealer(plan), stats, ordered)
        return route

    def dealer(self, plan: BucketPlan) -> Dealer[Any]:
        """Make a dealer with runs of its own."""
        return Dealer(Runs(self.pool, plan.num_buckets), plan, self.desk)


def batch_columns(columns: tuple[BatchColumn, ...], arrays: Arrays, num_rows: int) -> Iterator[tuple[BatchColumn, Ints, Cells]]:
    """Take a batch's chunk of column runs apart: (column, rows in the batch, cells)."""
    step = 1 + _CELL_PARTS
    for i, column in enumerate(columns):
        rows = arrays[i * step]
        yield column, every_row(num_rows) if rows is None else rows, cells_from(arrays[i * step + 1 : (i + 1) * step])


def order_role(order: NeighborOrder, roles: Collection[str]) -> str | None:
    """Return the role of the column that a neighbour order goes by: weight; time, else created_at. None: there is none."""
    wanted = {"weight": ("weight",), "time": ("time", "created_at")}.get(order, ())
    return next((role for role in wanted if role in roles), None)


def missing_order_key(role: str) -> int:
    """Return the order key of an edge without a value: a missing creation is 0, anything else that is missing comes last."""
    return 1 << 63 if role == "created_at" else 2**64 - 1


def time_keys(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Map int64 times to uint64 so that ascending keys are oldest first."""
    return values.astype(np.int64).view(np.uint64) ^ np.uint64(1 << 63)


def weight_keys(values: NDArray[np.generic]) -> NDArray[np.uint64]:
    """Map weights to uint64 so that ascending keys are heaviest first, then NaN; the highest key is left for absent ones."""
    weights = values.astype(np.float64) + 0.0  # -0.0 becomes 0.0: the two are equal
    bits = weights.view(np.uint64)
    ascending = np.where(bits >> np.uint64(63), ~bits, bits ^ np.uint64(1 << 63))
    keys = ~ascending
    keys[np.isnan(weights)] = np.uint64(2**64 - 2)
    return keys


def order_keys(role: str, values: NDArray[np.generic], present: NDArray[np.bool_] | None) -> NDArray[np.uint64]:
    """Return the order keys of edges (uint64[k], ascending) by a column of this role; ``present``: which have a value."""
    keys = weight_keys(values) if role == "weight" else time_keys(values)
    return keys if present is None else np.where(present, keys, np.uint64(missing_order_key(role)))


def highest_slots(columns: Iterator[tuple[ColumnKey, Ints]], num_rows: int) -> Ints:
    """Return for every row of a batch its highest present slot + 1."""
    highest = np.zeros(num_rows, np.int64)
    for key, rows in columns:
        if key.slot is not None and rows.size == num_rows:  # each once
            np.maximum(highest, key.slot + 1, out=highest)
        elif key.slot is not None:
            highest[rows] = np.maximum(highest[rows], key.slot + 1)
    return highest
