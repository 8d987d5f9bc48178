"""Deal nodes' columns and edges out to buckets: runs of consecutive rows that fit the memory budget."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.group import group_by_key
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import NeighborOrder
from graphprep.stages.assign import parts_of_rows
from graphprep.stages.cells import Arrays, Cells, cells_from
from graphprep.stages.decode import BatchColumn
from graphprep.stages.observe import ColumnStats
from graphprep.storage.runs import Runs, SpillPool

Ints = NDArray[np.int64]
_CELL_PARTS = 7  # arrays in Cells.arrays()


@dataclass(frozen=True)
class BucketPlan:
    """How a type's rows are cut: bucket b holds rows [b * width, (b + 1) * width)."""

    num_rows: int
    width: int

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
        buckets = rows // self.width
        if buckets[0] == buckets[-1] and (buckets == buckets[0]).all():
            yield int(buckets[0]), None
            return
        indptr, order = group_by_key(buckets, self.num_buckets)
        for bucket in np.flatnonzero(np.diff(indptr)):
            yield int(bucket), order[indptr[bucket] : indptr[bucket + 1]]


def plan_buckets(num_rows: int, num_bytes: int, bucket_bytes: int, most: int = 1024) -> BucketPlan:
    """Cut rows so that their data, if spread evenly, takes ``bucket_bytes`` a bucket.

    At most 1024 buckets: beyond that scattered writes cost more than a second pass over the few that are too big.
    """
    wanted = max(1, min(most, -(-num_bytes // max(1, bucket_bytes)), max(1, num_rows)))
    return BucketPlan(num_rows, max(1, -(-num_rows // wanted)))


@dataclass
class ColumnRoute:
    """The runs of one column of one owner type: chunks (rows, [edge IDs], *cells) by bucket, and what was seen."""

    runs: Runs
    plan: BucketPlan
    stats: ColumnStats

    def add(self, rows: Ints, edge_ids: Ints | None, cells: Cells, offsets: Ints) -> None:
        """Deal out the cells of some rows; ``offsets`` are the partitions' borders."""
        self.stats.add(cells, parts_of_rows(rows, offsets))
        for bucket, chosen in self.plan.split(rows):
            if chosen is None:
                self.runs.append(bucket, (rows, edge_ids, *cells.arrays()))
            else:
                ids = None if edge_ids is None else edge_ids[chosen]
                self.runs.append(bucket, (rows[chosen], ids, *cells.take(chosen).arrays()))


@dataclass
class EdgeRoute:
    """The edges of one canonical edge type on their way.

    ``runs`` holds (owner rows, other ends, edge IDs, order keys or None) by bucket of the primary layout. ``primary_counts``
    and ``second_counts`` are int64[P]: edges by the partition of their owner in the primary and in the other layout.
    """

    relation: int
    src_type: int
    dst_type: int
    runs: Runs
    plan: BucketPlan
    num_parts: int
    num_edges: int = 0
    checksum: int = 0
    extra_slots: bool = False
    columns: dict[ColumnKey, ColumnRoute] = field(default_factory=dict)
    primary_counts: Ints = field(init=False)
    second_counts: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.primary_counts = np.zeros(self.num_parts, np.int64)
        self.second_counts = np.zeros(self.num_parts, np.int64)


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
        self.bucket_bytes = bucket_bytes
        self.column_bytes = column_bytes
        self.num_parts = num_parts

    def column(
        self, routes: dict[ColumnKey, ColumnRoute], key: ColumnKey, num_rows: int, plan: BucketPlan | None = None
    ) -> ColumnRoute:
        """Return the route of a column, made where it does not exist yet."""
        route = routes.get(key)
        if route is None:
            if plan is None:
                plan = plan_buckets(num_rows, 2 * self._bytes_of(key), self.bucket_bytes)
            stats = ColumnStats(self.num_parts, scalar=key.role is not None)
            route = routes[key] = ColumnRoute(Runs(self.pool, plan.num_buckets), plan, stats)
        return route

    def _bytes_of(self, key: ColumnKey) -> int:
        """Return the size of a column; an input column may travel under several keys, which must be cut alike."""
        return sum(size for other, size in self.column_bytes.items() if (other.name, other.slot) == (key.name, key.slot))


def batch_columns(columns: tuple[BatchColumn, ...], arrays: Arrays) -> Iterator[tuple[BatchColumn, Ints, Cells]]:
    """Take a batch's chunk of column runs apart: (column, rows in the batch, cells)."""
    step = 1 + _CELL_PARTS
    for i, column in enumerate(columns):
        rows = arrays[i * step]
        yield column, rows, cells_from(arrays[i * step + 1 : (i + 1) * step])


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


def highest_slots(columns: Iterator[tuple[ColumnKey, Ints]], num_rows: int) -> Ints:
    """Return for every row of a batch its highest present slot + 1."""
    highest = np.zeros(num_rows, np.int64)
    for key, rows in columns:
        if key.slot is not None:
            highest[rows] = np.maximum(highest[rows], key.slot + 1)
    return highest
