"""Make columns labels, splits and seeds, once they are scattered and settled, before they are written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.build.write import Settled, TypedEdges, TypedNodes
from graphprep.convert.columns.roles import Owner, OwnerRoles, RoleFlag, Roles, check_edge_types, owner_name
from graphprep.convert.columns.routes import FlatRows, StoredColumn
from graphprep.convert.roles.labels import give_category, give_label
from graphprep.convert.roles.owner_columns import OwnerColumns, columns_of_edges, columns_of_nodes, free_names
from graphprep.convert.roles.seeds import find_seeds
from graphprep.convert.roles.splits import give_split
from graphprep.convert.run import Run
from graphprep.convert.shuffle.route import Routing
from graphprep.model.graph_schema import GraphSchema
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.cells import scalar_cells

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

Ints = NDArray[np.int64]
SEEDS_KEY = ColumnKey("seeds", "numbers", "bool", role="seeds")


def give_roles(run: Run, routing: Routing, made: Settled) -> Settled:
    """Give the columns of all types the roles that are asked for; raises what ``RoleGiver.give`` raises."""
    giver = RoleGiver(routing, run.storage, made.nodes, made.edges, routing.plan.fixed)
    giver.give(routing.roles)
    return replace(made, nodes=giver.nodes, edges=giver.edges, splits=giver.splits, notes=tuple(giver.notes))


class RoleGiver:
    """Gives roles to the columns of all types. ``schema``: that of the store, where it is fixed beforehand."""

    def __init__(
        self,
        routing: Routing,
        storage: Storage,
        nodes: Sequence[TypedNodes],
        edges: Sequence[TypedEdges],
        schema: GraphSchema | None = None,
    ) -> None:
        self.routing = routing
        self.storage = storage
        self.schema = schema
        self.nodes = list(nodes)
        self.edges = list(edges)
        self.notes: list[str] = []
        self.splits: dict[str, tuple[int, int, int, int]] = {}

    def give(self, roles: Roles) -> None:
        """Give all roles.

        Raises UsageError for types and columns that are not there, or not fit for the role; DataError for values that are not.
        """
        check_edge_types(roles, [edge.edge_type for edge in self.edges])
        for i, node in enumerate(self.nodes):
            if node.name in roles.owners:
                own = columns_of_nodes(self.routing, node, partial(self._elsewhere, node.name))
                self.nodes[i] = replace(node, columns=self._give(own, roles.of(node.name)))
        for i, edge in enumerate(self.edges):
            if edge.edge_type in roles.owners:
                own = columns_of_edges(self.routing, edge, partial(self._elsewhere, edge.edge_type))
                self.edges[i] = replace(edge, columns=self._give(own, roles.of(edge.edge_type)))
        self.routing.factory.write_buffer.clear()

    def _give(self, own: OwnerColumns, roles: OwnerRoles) -> tuple[StoredColumn, ...]:
        """Give the roles of one type, and return its columns."""
        if self.schema is not None:
            own.schema = self.schema.nodes[own.owner] if isinstance(own.owner, str) else self.schema.edges[own.owner]
            own.schema_place = self.schema.place
        for flag in roles.labels:
            give_label(own, flag)
        for flag in roles.categories:
            give_category(own, flag)
        if roles.split is not None:
            self.splits[owner_name(own.owner)] = give_split(own, roles.split, partial(self._listed, own))
        if roles.seeds:
            self._give_seeds(own, roles.seeds)
        self.notes += own.notes
        return tuple(own.columns)

    def _give_seeds(self, own: OwnerColumns, flags: Sequence[RoleFlag]) -> None:
        """Mark the nodes that files name."""
        own.refuse_name(flags[0], SEEDS_KEY.name)
        scatterer = own.scatterer()
        for flag in flags:
            for typed in self._listed(own, flag, flag.files[0]):
                scatterer.add(FlatRows((typed,)))
        scatterer.flush()
        route, count = own.new_route(SEEDS_KEY), 0
        for bucket in range(own.plan.num_buckets):
            found = [rows for (rows,) in scatterer.runs.read(bucket)]
            rows = np.unique(np.concatenate(found)) if found else np.zeros(0, np.int64)
            route.scatter(rows, None, scalar_cells(np.ones(rows.size, bool)))
            count += rows.size
        scatterer.runs.close()
        own.notes.append(f"{own.words}: {count:,} seed{'' if count == 1 else 's'}")
        own.columns.append(StoredColumn(ColumnSchema(SEEDS_KEY.name, "dense", "bool", role="seeds"), (SEEDS_KEY,)))

    def _listed(self, own: OwnerColumns, flag: RoleFlag, file: str) -> Iterator[Ints]:
        """Yield the typed IDs of the nodes that a file names."""
        url = self.storage.join(flag.base, file) if flag.base else file
        return find_seeds(self.storage, url, self.routing.index, own.number, self.routing.memory.cap_bytes)

    def _elsewhere(self, owner: Owner, name: str) -> list[str]:
        """List how a flag would name a column of that name of other types."""
        types: list[tuple[Owner, tuple[StoredColumn, ...]]] = [(node.name, node.columns) for node in self.nodes]
        types += [(edge.edge_type, edge.columns) for edge in self.edges]
        return [f"{owner_name(other)}:{name}" for other, columns in types if other != owner and name in free_names(columns)]
