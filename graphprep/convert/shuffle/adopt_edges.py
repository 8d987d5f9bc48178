"""Take edges as they were scattered while they were decoded, where raw IDs turned out to be typed IDs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.routes import EdgeRoute
from graphprep.convert.shuffle.route import Routing
from graphprep.edges.buckets import BucketPlan, EdgeBuckets
from graphprep.edges.tasks import EdgeRuns
from graphprep.model.rows import Relation

Ints = NDArray[np.int64]


def adopt_edges(routing: Routing) -> bool:
    """Make the route of the only edge type from edges that are scattered already; False where that cannot be."""
    decoded, early = routing.decoded, routing.decoded.early
    key = _only_type(routing)
    if early is None or key is None:
        return False
    plan = routing.edge_plan(key)
    shift = early.settle(plan.num_rows, plan.shift)
    if shift is None:
        return False
    decoded.early = None  # they are the route's from now on
    settled = BucketPlan(plan.num_rows, shift)
    buckets = EdgeBuckets(
        routing.kernels, routing.pool, settled, routing.factory.write_buffer, routing.num_others(key), early.runs
    )
    route = routing.edge_route(key, decoded.batches[0], buckets=buckets)
    route.num_edges = early.num_edges
    route.checksum = early.checksum
    route.primary_counts += _count_parts(route, routing.index.part_offsets[key[2] if early.owner_side else key[1]])
    routing.reporter.advance(records=early.num_edges)
    return True


def _only_type(routing: Routing) -> tuple[int, int, int] | None:
    """Return the type of all edges where they are as they were scattered; None where something is to be done with them."""
    decoded, index = routing.decoded, routing.index
    if decoded.early is None or not decoded.num_edges or not decoded.are_scattered or routing.options.layout == "both":
        return None
    if (routing.primary == "csc") != bool(decoded.early.owner_side) or routing.dropped_nodes.size:
        return None
    ends = [index.spaces.get(decoded.spaces.of_end(decoded.relations[0], side)) for side in range(2)]
    numbers = [space.type_number for space in ends if space is not None and space.rows is None]
    if len(numbers) < 2 or any(isinstance(owner, Relation) for owner, _ in decoded.aligned) or routing.roles.edge_types:
        return None
    return 0, numbers[0], numbers[1]


def _count_parts(route: EdgeRoute, offsets: Ints) -> Ints:
    """Count edges by the partition of their owner: int64[P]; ``offsets`` (int64[P + 1]) are the partitions' borders."""
    edges, plan = EdgeRuns(route.edges, "input", None), route.edges.plan
    before = np.concatenate([[0], np.cumsum(route.edges.runs.num_records)])
    buckets = offsets >> plan.shift
    behind = before[np.minimum(buckets, before.size - 1)]
    for bucket in np.unique(buckets[(offsets > buckets << plan.shift) & (buckets < plan.num_buckets)]).tolist():
        low, high = plan.bounds(bucket)
        ends = np.concatenate([[0], np.cumsum(edges.count_rows(bucket, low, high))])
        own = np.flatnonzero(buckets == bucket)
        behind[own] += ends[np.minimum(offsets[own], high) - low]
    return np.asarray(np.diff(behind), np.int64)
