"""Which nodes and edges of the store that a command was given those of a store on its way are: what ``parent_id`` says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphprep.model.metadata import GraphMetadata
from graphprep.rewrite.transform.recipe import EdgeRecipe, Ids, Ints, Origin, Recipe, copied, slices, take
from graphprep.storage.spill.scratch import Scratch


@dataclass(frozen=True)
class Parents:
    """The first typed ID of each node, and the first edge ID of each edge, by type number: -1, it had none; None: the same."""

    nodes: Sequence[Ids | None]
    edges: Sequence[Ids | None]

    @classmethod
    def at_first(cls, metadata: GraphMetadata) -> Parents:
        """Return those of the store that a command was given."""
        return cls((None,) * len(metadata.node_types), (None,) * len(metadata.edge_types))

    def of_nodes(self, recipe: Recipe, number: int, order: Ints | None, scratch: Scratch) -> Ids | None:
        """Return those of a node type that a recipe makes, of old nodes in this order (None: all as they are)."""
        views = None if recipe.store is None else recipe.origins[0]
        held = self.nodes[number] if views is None else self._of_view(views[number], scratch)
        return order if held is None else held if order is None else take(held, order, scratch)

    def of_edges(self, recipe: Recipe, edges: EdgeRecipe, scratch: Scratch) -> Ids | None:
        """Return those of an edge type that a recipe makes."""
        is_view = recipe.store is not None
        held = self._of_view(recipe.origins[1][edges.number], scratch) if is_view else self.edges[edges.number]
        if held is None or edges.old_ids is None:
            return edges.old_ids if held is None else held
        return self._of_view(Origin(edges.old_ids), scratch, [held])

    def after(
        self, recipe: Recipe, orders: Mapping[str, Ints | None], row_orders: Sequence[Ids | None], scratch: Scratch
    ) -> Parents:
        """Return those of the store that a recipe makes: ``orders`` are of its nodes, ``row_orders`` of edges without IDs."""
        nodes = [self.of_nodes(recipe, number, order, scratch) for number, order in enumerate(orders.values())]
        edges = []
        for one, rows in zip(recipe.edges, row_orders, strict=True):
            held = self.of_edges(recipe, one, scratch)
            edges.append(rows if held is None else held if rows is None else take(held, rows, scratch))
        return Parents([copied(one, scratch) for one in nodes], [copied(one, scratch) for one in edges])

    def _of_view(self, origin: Origin, scratch: Scratch, held: Sequence[Ids | None] | None = None) -> Ids:
        held = held or (self.nodes if origin.is_node else self.edges)
        if all(held[number] is None for number in origin.types[: len(held)]):
            return origin.ids
        out: Ints = scratch.zeros(origin.ids.size, np.int64)
        for at in slices(out.size):
            ids = out[at]
            ids[:] = origin.ids[at]
            for kind, old in enumerate(held[number] for number in origin.types):
                mine = ids >= 0 if origin.kinds is None else (ids >= 0) & (origin.kinds[at] == kind)
                if old is not None:
                    ids[mine] = old[origin.ids[at][mine]]
        return out
