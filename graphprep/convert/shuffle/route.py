"""What scattering nodes and edges shares: options, targets, and the way to reject a record."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import Roles
from graphprep.convert.columns.routes import ColumnRoute, EdgeRoute, NodeRoute, RouteFactory
from graphprep.convert.decoded.amounts import Amounts
from graphprep.convert.decoded.rows import Batch, BatchCells, EndHashes, RawBatchEdges, wide_ids
from graphprep.convert.index.nodes import Indexed
from graphprep.convert.index.resolve import Resolved
from graphprep.convert.read.locate import Locator
from graphprep.convert.run import Run
from graphprep.edges.buckets import ROW_BYTES, BucketPlan, EdgeBuckets, plan_buckets
from graphprep.engine.ledger import EDGE_BYTES
from graphprep.kernels.cpu.ids.group import group_by_key
from graphprep.kernels.cpu.ids.hash import edge_checksum, hash_ints, pair_checksum
from graphprep.model.errors import BadRecord, DataError
from graphprep.model.rows import ColumnKey, Relation
from graphprep.model.schema import EdgeType, edge_type_text

if TYPE_CHECKING:
    from graphprep.model.graph_schema import GraphSchema

Ints = NDArray[np.int64]
TypeKey = tuple[int, int, int]  # relation, source type, destination type
_MOST_TYPE_CODES = 1 << 12  # with more canonical edge types than this, only those that occur in a batch are counted
_MOST_EDGE_BUCKET = 4 << 20  # 65,536 edges: what is written while they are put in order fits the cache


@dataclass(eq=False)
class Routed:
    """All rows in their buckets. ``edges`` goes by (relation, source type, destination type) in the order of discovery."""

    nodes: list[NodeRoute] = field(default_factory=list)
    edges: dict[TypeKey, EdgeRoute] = field(default_factory=dict)
    num_dropped_edges: int = 0


@dataclass(frozen=True, eq=False)
class BatchEdges:
    """The edges of one batch as they were decoded.

    ``hashes`` are h of the sources and of the destinations where these are texts, None where they are numbers or not known yet.
    ``keep`` says which edges stand on records that are kept (None: all). ``ends`` are resolved; None: not yet, or their types
    are known without looking.
    """

    batch: Batch
    raw: RawBatchEdges
    cells: BatchCells
    hashes: EndHashes | None = None
    keep: NDArray[np.bool_] | None = None
    ends: tuple[Resolved, Resolved] | None = None

    def end(self, side: int) -> Resolved:
        """Return the resolved sources (side 0) or destinations."""
        assert self.ends is not None
        return self.ends[side]

    def raw_ids(self, side: int) -> NDArray[np.uint64]:
        """Return the raw IDs of the sources (side 0) or of the destinations."""
        return wide_ids(self.raw.dst if side else self.raw.src)

    def raw_hashes(self, side: int, chosen: Ints | None) -> NDArray[np.uint64]:
        """Return h of the raw IDs at one end (0: the source) of chosen edges (None: all)."""
        pick = slice(None) if chosen is None else chosen
        hashes = None if self.hashes is None else self.hashes[side]
        return np.asarray(hash_ints(self.raw_ids(side)[pick])) if hashes is None else hashes[pick]

    def checksum(self, chosen: Ints | None) -> int:
        """Return the checksum of chosen edges (None: all): docs/store.md, "Hashes"."""
        if self.hashes is None or (self.hashes.src is None and self.hashes.dst is None):
            pick = slice(None) if chosen is None else chosen
            return edge_checksum(self.raw.src[pick], self.raw.dst[pick])
        return pair_checksum(self.raw_hashes(0, chosen), self.raw_hashes(1, chosen))

    def by_type(
        self, keep: NDArray[np.bool_] | None, num_relations: int, num_types: int
    ) -> Iterator[tuple[TypeKey, Ints | None]]:
        """Yield (relation, source type, destination type), ascending, and the positions of its edges; None stands for all."""
        types, relations = (self.end(0).types, self.end(1).types), self.raw.relations
        relation = self.batch.relation
        uniform = relation is not None and all((side == side[0]).all() for side in types)
        if keep is None and uniform and relation is not None:
            yield (relation, int(types[0][0]), int(types[1][0])), None
            return
        kept = slice(None) if keep is None else np.flatnonzero(keep)
        codes = types[0][kept].astype(np.int64) * num_types + types[1][kept]
        codes += (relation or 0) * num_types**2 if relations is None else relations[kept] * np.int64(num_types**2)
        names: Ints | None = None
        num_codes = num_relations * num_types**2
        if num_codes > _MOST_TYPE_CODES:
            names, codes = np.unique(codes, return_inverse=True)
            num_codes = names.size
        indptr, order = group_by_key(codes, num_codes)
        for code in np.flatnonzero(np.diff(indptr)).tolist():
            rest, dst_type = divmod(code if names is None else int(names[code]), num_types)
            rel, src_type = divmod(rest, num_types)
            chosen = order[indptr[code] : indptr[code + 1]]
            yield (rel, src_type, dst_type), chosen if isinstance(kept, slice) else kept[chosen]


class Routing:
    """What scattering shares: the decoded input, the nodes, options, and where rows go.

    ``schema`` is what rows are held to, where that is fixed beforehand; ``roles`` are those of their columns.
    """

    def __init__(self, run: Run, indexed: Indexed, roles: Roles) -> None:
        decoded, index, memory = indexed.decoded, indexed.index, run.memory
        self.plan = indexed.plan
        raw_id_bytes = sum(raw.num_bytes(0) for raw in index.raw_runs.values())
        self.amounts = replace(Amounts.of(decoded), num_nodes=sum(index.num_nodes), raw_id_bytes=raw_id_bytes)
        self.decoded = decoded
        self.index = index
        self.roles = roles
        self.schema = indexed.plan.schema
        self.kernels = run.kernels(decoded.num_edges)
        self.options = run.options
        self.memory = memory
        self.pool = run.pool
        self.reporter = run.reporter
        self.rejects = run.rejects
        self.primary = run.options.layouts[0]
        self.skips = run.options.on_error == "skip"
        self.locator = Locator(decoded, run.storage, indexed.settings)
        self.edge_parts: dict[EdgeType, Ints] = {}  # edges by the part of their random split
        self._plans: dict[tuple[TypeKey, bool], BucketPlan] = {}
        self.routed = Routed(nodes=list(map(NodeRoute, index.num_nodes)))
        self.factory = RouteFactory(run.pool, memory.bucket_bytes, decoded.column_bytes, index.partition.num_parts)
        self.record_dtype = np.uint32 if max(index.num_nodes, default=0) < 2**32 else np.uint64
        self.row_dtype = np.int32 if max(index.num_nodes, default=0) < 2**31 else np.int64
        self.edge_dtype = np.int32 if decoded.num_edges < 2**31 else np.int64
        self.dropped_nodes = index.duplicates

    def reject(self, error: DataError) -> None:
        """List a record that is skipped.

        Raises DataError where it is one too many.
        """
        assert self.rejects is not None, "records are skipped"
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
        key: TypeKey,
        batch: Batch | None = None,
        chosen: Ints | None = None,
        buckets: EdgeBuckets | None = None,
    ) -> EdgeRoute:
        """Return the route of a canonical edge type, made for its first edges: ``chosen`` of ``batch``.

        They are, or will be, in ``buckets`` (None: in new ones).
        """
        route = self.routed.edges.get(key)
        if route is None:
            pool, write_buffer = self.pool, self.factory.write_buffer
            if buckets is None:
                buckets = EdgeBuckets(self.kernels, pool, self.edge_plan(key), write_buffer, self.num_others(key))
            second = None
            if self.scatters_second:
                plan, num_others = self.edge_plan(key, second=True), self.num_others(key, second=True)
                second = EdgeBuckets(self.kernels, pool, plan, write_buffer, num_others)
            counts = np.zeros((2, self.index.partition.num_parts), np.int64)
            route = EdgeRoute(*key, buckets, counts[0], counts[1], second)
            if self.schema is not None:
                self._check_edge_type(self.schema, route, batch, chosen)
            self.routed.edges[key] = route
        return route

    def _check_edge_type(self, schema: GraphSchema, route: EdgeRoute, batch: Batch | None, chosen: Ints | None) -> None:
        edge_type = self.edge_type(route)
        if edge_type in schema.edges:
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
        if self.options.layout != "both" or self.schema is not None or self.roles.edge_types:
            return False
        aligned = any(isinstance(owner, Relation) for owner, _ in decoded.aligned)
        return not aligned and not any(batch.edge_columns for batch in decoded.batches)

    def edge_plan(self, key: TypeKey, *, second: bool = False) -> BucketPlan:
        """Cut an edge type, whose size is not known yet, as if it had four times its share of all edges."""
        plan = self._plans.get((key, second))
        if plan is None:
            owner_type = key[2] if (self.primary == "csc") != second else key[1]
            num_rows, relations = self.index.num_nodes[owner_type], max(1, len(self.decoded.relations))
            share = min(1.0, 4 / relations)
            edges = int(self.decoded.num_edges * EDGE_BYTES * share) + num_rows * ROW_BYTES
            columns = int(3 * max(self.decoded.column_bytes.values(), default=0) * share)
            of_edges = plan_buckets(num_rows, edges, min(self.memory.bucket_bytes, _MOST_EDGE_BUCKET))
            of_columns = plan_buckets(num_rows, columns, self.memory.bucket_bytes)
            plan = self._plans[key, second] = of_edges if of_edges.shift <= of_columns.shift else of_columns
        return plan

    def num_others(self, key: TypeKey, *, second: bool = False) -> int:
        """Return how many nodes there are at the other ends of an edge type's edges."""
        return self.index.num_nodes[key[1] if (self.primary == "csc") != second else key[2]]

    def edge_column(self, route: EdgeRoute, key: ColumnKey, scalar: bool = False) -> ColumnRoute:
        """Return where a column of an edge type goes: it is cut into buckets as the edges are."""
        column = route.columns.get(key)
        if column is None:
            has_roles = self.roles.owners and self.roles.of(self.edge_type(route)).flags
            kept = 0 if has_roles else self.memory.cap_bytes  # roles go by rows
            column = self.factory.column(route.columns, key, route.edges.plan.num_rows, route.edges.plan, kept)
        column.stats.scalar = column.stats.scalar or scalar
        return column
