"""The settled columns of one node or edge type, and their values in buckets, while roles are given to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.build.write import TypedEdges, TypedNodes
from graphprep.convert.columns.roles import Owner, RoleFlag, missing_column, owner_name, owner_words
from graphprep.convert.columns.routes import ColumnRoute, Scatterer, StoredColumn
from graphprep.convert.shuffle.route import Routing
from graphprep.edges.buckets import BucketPlan, plan_buckets
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_schema import OwnerSchema
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema
from graphprep.storage.spill.runs import Runs
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]
_ROW_BYTES = 18  # of a row of a split in its bucket: row, part, and their sorted copies


@dataclass
class OwnerColumns:
    """The columns of one type.

    ``routes`` hold their values by key, ``plan`` says how new ones are cut into buckets. ``row_words(row, edge ID)`` names a
    node or an edge. ``elsewhere(name)`` lists how flags name columns of other types. ``schema`` is what the store must be like,
    where that is fixed beforehand. ``notes`` collects sentences for the user.
    """

    owner: Owner
    routing: Routing
    routes: dict[ColumnKey, ColumnRoute]
    num_rows: int
    plan: BucketPlan
    columns: list[StoredColumn]
    row_words: Callable[[int, int], str]
    elsewhere: Callable[[str], Sequence[str]]
    schema: OwnerSchema | None = None
    schema_place: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def words(self) -> str:
        """Name the type."""
        return owner_words(self.owner)

    @property
    def number(self) -> int:
        """Return the number of a node type."""
        return self.routing.index.type_names.index(owner_name(self.owner))

    def find(self, flag: RoleFlag, name: str) -> int:
        """Return the position of a column.

        Raises UsageError where there is none, or it has a role already.
        """
        for i, column in enumerate(self.columns):
            if column.schema.name == name and column.schema.role is None:
                return i
        taken = [column for column in self.columns if column.schema.name == name]
        if taken:
            raise UsageError(
                f"column {name!r} of {self.words} is its {taken[0].schema.role} already",
                place=flag.place,
                fix="use another one",
            )
        raise missing_column(flag, self.owner, name, free_names(self.columns), self.elsewhere(name))

    def refuse_name(self, flag: RoleFlag, name: str) -> None:
        """Raise UsageError where a column that is to be made has the name of another."""
        if any(column.schema.name == name for column in self.columns):
            raise UsageError(
                f"{self.words} has a column {name!r} already",
                place=flag.place,
                fix=f"drop or rename that column, or use it: --{flag.role} with its name",
            )

    def new_route(self, key: ColumnKey, plan: BucketPlan | None = None) -> ColumnRoute:
        """Return where the values of a new column go."""
        plan = plan or self.plan
        return self.routing.factory.column(self.routes, key, plan.num_rows, plan)

    def scatterer(self) -> Scatterer[Any]:
        """Make a scatterer of rows of this type, with runs of its own."""
        return Scatterer(Runs(self.routing.pool, self.plan.num_buckets), self.plan, self.routing.factory.write_buffer)

    def drain(self, column: StoredColumn) -> Iterator[tuple[ColumnKey, Ints, Ints | None, Cells]]:
        """Yield (key, rows, edge IDs, cells) of a column, bucket after bucket, and drop them."""
        routes = [(key, self.routes.pop(key)) for key in column.keys]
        for key, route in routes:
            if route.ordered is not None:  # of nodes alone: it has no rows of edges
                yield from ((key, rows, None, cells) for rows, cells in route.ordered.cells())
        for bucket in range(routes[0][1].plan.num_buckets):
            for key, route in routes:
                for one in route.runs.read(bucket):
                    yield key, one.rows, one.edge_ids, one.cells
                route.runs.free(bucket)
        for _, route in routes:
            route.close()

    def is_optional(self, name: str, num_absent: int) -> bool:
        """Return whether the schema of a new column says ``optional``.

        Raises DataError where a schema that is fixed forbids it.
        """
        columns = () if self.schema is None else self.schema.columns
        fixed: ColumnSchema | None = next((column for column in columns if column.name == name), None)
        if fixed is not None and num_absent and not fixed.optional:
            raise DataError(
                f"column {name!r} of {self.words} is missing from {num_absent} of {self.num_rows} rows",
                place=self.schema_place,
                fix='add the values, or say "optional": true in the schema',
            )
        return bool(num_absent) or (fixed is not None and fixed.optional)


def free_names(columns: Sequence[StoredColumn]) -> list[str]:
    """Return the names of the columns that have no role."""
    return [column.schema.name for column in columns if column.schema.role is None]


def columns_of_nodes(routing: Routing, node: TypedNodes, elsewhere: Callable[[str], Sequence[str]]) -> OwnerColumns:
    """Return the columns of a node type."""
    num_rows = node.route.num_rows

    def row_words(row: int, _: int) -> str:
        return f"node {_raw_id(routing, node.number, row)} of type {node.name!r}"

    return OwnerColumns(
        owner=node.name,
        routing=routing,
        routes=node.route.columns,
        num_rows=num_rows,
        plan=plan_buckets(num_rows, num_rows * _ROW_BYTES, routing.memory.bucket_bytes),
        columns=list(node.columns),
        row_words=row_words,
        elsewhere=elsewhere,
    )


def columns_of_edges(routing: Routing, edge: TypedEdges, elsewhere: Callable[[str], Sequence[str]]) -> OwnerColumns:
    """Return the columns of an edge type, which are cut into buckets as its edges are."""
    route = edge.route

    def row_words(_: int, edge_id: int) -> str:
        return f"edge {edge_id} of type {owner_name(edge.edge_type)!r}"

    return OwnerColumns(
        owner=edge.edge_type,
        routing=routing,
        routes=route.columns,
        num_rows=route.num_edges,
        plan=route.edges.plan,
        columns=list(edge.columns),
        row_words=row_words,
        elsewhere=elsewhere,
    )


def _raw_id(routing: Routing, number: int, typed: int) -> str:
    for batch, found in routing.index.raw(number):
        at = np.flatnonzero(found == typed)
        if at.size:
            return batch.words(int(at[0]))
    raise AssertionError("a node without a raw ID")
