"""What scattering nodes and edges shares: rules, targets, and the way to reject a record."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import Roles
from graphprep.convert.columns.routes import ColumnRoute, EdgeRoute, NodeRoute, RouteFactory
from graphprep.convert.decoded.rejects import Rejects
from graphprep.convert.decoded.rows import Batch, Decoded
from graphprep.convert.index.nodes import NodeIndex
from graphprep.convert.read.locate import Locator
from graphprep.edges.bucket_plan import ROW_BYTES, BucketPlan, plan_buckets
from graphprep.edges.buckets import EdgeBuckets
from graphprep.engine.ledger import EDGE_BYTES
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import BadRecord, DataError
from graphprep.model.graph_schema import GraphSchema
from graphprep.model.protocols import Reporter
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import EdgeType, NeighborOrder, edge_type_text
from graphprep.storage.spill.runs import SpillPool

Ints = NDArray[np.int64]
_MOST_EDGE_BUCKET = 4 << 20  # 65,536 edges: what is written while they are put in order fits the cache


@dataclass(frozen=True)
class RouteRules:
    """How rows are scattered."""

    primary: Literal["csc", "csr"]
    both: bool
    neighbor_order: NeighborOrder
    weight_dtype: str
    on_missing: Literal["error", "create", "drop"]
    skip: bool
    bucket_bytes: int
    cap_bytes: int
    num_parts: int
    threads: int
    schema: GraphSchema | None = None


@dataclass
class Routed:
    """All rows in their buckets. ``edges`` goes by (relation, source type, destination type) in the order of discovery."""

    nodes: list[NodeRoute] = field(default_factory=list)
    edges: dict[tuple[int, int, int], EdgeRoute] = field(default_factory=dict)
    num_dropped_edges: int = 0


class Routing:
    """What scattering shares: the decoded input, the nodes, the rules, and where rows go."""

    def __init__(
        self,
        kernels: Kernels,
        decoded: Decoded,
        index: NodeIndex,
        rules: RouteRules,
        pool: SpillPool,
        locator: Locator,
        reporter: Reporter,
        rejects: Rejects,
        roles: Roles | None = None,
    ) -> None:
        self.kernels = kernels
        self.rejects = rejects
        self.roles = roles or Roles()
        self.edge_parts: dict[EdgeType, Ints] = {}  # edges by the part of their random split
        self.decoded = decoded
        self.index = index
        self.rules = rules
        self.pool = pool
        self.locator = locator
        self.reporter = reporter
        self.routed = Routed(nodes=[NodeRoute(count) for count in index.num_nodes])
        self.factory = RouteFactory(pool, rules.bucket_bytes, decoded.column_bytes, rules.num_parts)
        self.record_dtype = np.uint32 if max(index.num_nodes, default=0) < 2**32 else np.uint64
        self.row_dtype = np.int32 if max(index.num_nodes, default=0) < 2**31 else np.int64
        self.edge_dtype = np.int32 if decoded.num_edges < 2**31 else np.int64
        self.dropped_nodes = index.duplicates

    def reject(self, error: DataError) -> None:
        """List a record that is skipped.

        Raises DataError where it is one too many.
        """
        self.rejects.add([BadRecord(error.place, error.message)])

    def edge_type(self, route: EdgeRoute) -> EdgeType:
        """Return the names of a route's canonical edge type."""
        names = self.index.type_names
        return names[route.src_type], self.decoded.relations[route.relation].name, names[route.dst_type]

    def kept_nodes(self, batch: Batch) -> NDArray[np.bool_] | None:
        """Return which nodes of a batch are kept; None: all."""
        low, high = np.searchsorted(self.dropped_nodes, [batch.first_node, batch.first_node + batch.num_nodes])
        if low == high:
            return None
        keep = np.ones(batch.num_nodes, bool)
        keep[self.dropped_nodes[low:high] - batch.first_node] = False
        return keep

    def node_column(self, number: int, key: ColumnKey, scalar: bool = False) -> ColumnRoute:
        """Return where a column of a node type goes."""
        route = self.routed.nodes[number]
        column = self.factory.column(route.columns, key, route.num_rows, ordered_bytes=sys.maxsize)
        column.stats.scalar = column.stats.scalar or scalar
        return column

    def edge_route(
        self,
        key: tuple[int, int, int],
        batch: Batch | None = None,
        chosen: Ints | None = None,
        buckets: EdgeBuckets | None = None,
    ) -> EdgeRoute:
        """Return the route of a canonical edge type, made for its first edges: ``chosen`` of ``batch``.

        They are, or will be, in ``buckets`` (None: in new ones).
        """
        route = self.routed.edges.get(key)
        if route is None:
            second = self._edge_buckets(key, second=True) if self.scatters_second else None
            route = EdgeRoute(*key, buckets or self._edge_buckets(key), self.rules.num_parts, second)
            self._check_edge_type(route, batch, chosen)
            self.routed.edges[key] = route
        return route

    def _edge_buckets(self, key: tuple[int, int, int], *, second: bool = False) -> EdgeBuckets:
        plan = self.edge_plan(key, second=second)
        return EdgeBuckets(self.kernels, self.pool, plan, self.factory.write_buffer, self.num_others(key, second=second))

    def _check_edge_type(self, route: EdgeRoute, batch: Batch | None, chosen: Ints | None) -> None:
        schema = self.rules.schema
        edge_type = self.edge_type(route)
        if schema is None or edge_type in schema.edges:
            return
        first = 0 if chosen is None else int(chosen[0])
        raise DataError(
            f"edge type {edge_type_text(edge_type)!r} is not in the schema",
            place="" if batch is None else self.locator.edge_place(batch.first_edge + first, "src"),
            fix="correct the edge, or add the type to the schema",
        )

    @cached_property
    def scatters_second(self) -> bool:
        """Return whether edges are scattered for both layouts at once: where no column seems to need their rows in one."""
        decoded = self.decoded
        if not self.rules.both or self.rules.schema is not None or self.roles.edge_types:
            return False
        aligned = any(isinstance(owner, Relation) for owner, _ in decoded.aligned)
        return not aligned and not any(batch.edge_columns for batch in decoded.batches)

    def edge_plan(self, key: tuple[int, int, int], *, second: bool = False) -> BucketPlan:
        """Cut an edge type, whose size is not known yet, as if it had four times its share of all edges."""
        owner_type = key[2] if (self.rules.primary == "csc") != second else key[1]
        num_rows, relations = self.index.num_nodes[owner_type], max(1, len(self.decoded.relations))
        share = min(1.0, 4 / relations)
        edges = int(self.decoded.num_edges * EDGE_BYTES * share) + num_rows * ROW_BYTES
        columns = int(3 * max(self.decoded.column_bytes.values(), default=0) * share)
        of_edges = plan_buckets(num_rows, edges, min(self.rules.bucket_bytes, _MOST_EDGE_BUCKET))
        of_columns = plan_buckets(num_rows, columns, self.rules.bucket_bytes)
        return min(of_edges, of_columns, key=lambda plan: plan.shift)

    def num_others(self, key: tuple[int, int, int], *, second: bool = False) -> int:
        """Return how many nodes there are at the other ends of an edge type's edges."""
        return self.index.num_nodes[key[1] if (self.rules.primary == "csc") != second else key[2]]

    def edge_column(self, route: EdgeRoute, key: ColumnKey, scalar: bool = False) -> ColumnRoute:
        """Return where a column of an edge type goes: it is cut into buckets as the edges are."""
        has_roles = self.roles.owners and self.roles.of(self.edge_type(route)).flags
        kept = 0 if has_roles else self.rules.cap_bytes  # roles go by rows
        column = self.factory.column(route.columns, key, route.plan.num_rows, route.plan, kept)
        column.stats.scalar = column.stats.scalar or scalar
        return column
