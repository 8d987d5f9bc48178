"""A mini-batch's layered graph in Python: ``NodeFlow``, under the names of DGL's proposal of it and of DGL 0.4."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from graphprep.graph.graph import Graph
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.export import Side
from graphprep.model.shown.results import Card, Showable
from graphprep.model.shown.texts import count
from graphprep.sample.flow.append import join_arrays
from graphprep.sample.flow.columns import FlowColumns, ParentColumns, by_name
from graphprep.sample.flow.parent import check_same
from graphprep.sample.flow.structure import FlowStructure
from graphprep.sample.flow.views import Flows, Layers, Part

Names = Sequence[Sequence[str]] | None | Literal["all"]


class NodeFlow(FlowStructure, Showable):
    """A layered graph: edges of block b lead from layer b to layer b + 1. The last layer holds the seeds.

    Nodes and edges have IDs within the flow, 0 to n-1, layer after layer and block after block; ``map_to_parent_nid`` and
    ``map_to_parent_eid`` tell those of the parent. A node may stand in several layers. Numbers of layers and blocks may be
    negative: -1 is the last. What names a node type or an edge type (``edge_types``; the relation alone will do) narrows all
    that comes back to it: positions in a layer then count its nodes of that type. Without it all types count, in their order.

    ``parent`` is the graph, for columns; where it is None, the flow has those that were copied with it (``columns``). Raises
    UsageError for layers, blocks and types that are not there. Source of names and meanings: DGL's NodeFlow, issue 368 there
    and release 0.4.
    """

    def card(self) -> Card:
        """See ``Showable``."""
        sizes = " -> ".join(f"{size:,}" for size in self.layer_sizes)
        edges = ", ".join(f"{size:,}" for size in self.flow_sizes)
        title = f"NodeFlow: {count(self.num_layers, 'layer')}"
        return Card(title, (("nodes", sizes, "", ""), ("edges", edges, "", "")) if self.num_layers else ())

    # ---- layers and flows, by the proposal's names

    @property
    def layers(self) -> Layers:
        """Return ``layers(i)``: IDs of a layer's nodes; ``layers[i].data["x"]``: a column of them."""
        return Layers(self)

    @property
    def flows(self) -> Flows:
        """Return ``flows(i, i + 1)``: IDs of the edges between two layers; ``flows[i, i + 1].data["w"]``: a column of them."""
        return Flows(self)

    @property
    def front(self) -> Part:
        """Return ``layers[0]``."""
        return self.layers[0]

    @property
    def back(self) -> Part:
        """Return ``layers[num_layers - 1]``."""
        return self.layers[self.num_layers - 1]

    def append(self, other: NodeFlow) -> NodeFlow:
        """Return a new flow, this one and then ``other``, whose first layer has to be the last one here.

        To the flow without layers, ``NodeFlow()``, any other one can be appended. Raises UsageError where the layers differ.
        """
        if not self.num_layers or not other.num_layers:
            return other if other.num_layers else self
        joined = join_arrays(self.arrays, other.arrays)
        check_same(self.parent, other.parent, self.arrays.direction)
        for one in (self, other):
            if one.parent is None and one.columns is not None:
                one._hold(one.columns)
        made = NodeFlow(joined, self.parent or other.parent, source=self.source or other.source)
        made.held.update(self.held)
        for (side, position, number, name), value in other.held.items():
            made.held[side, position + self.num_blocks, number, name] = value
        return made

    # ---- columns

    def copy_from_parent(
        self, node_embed_names: Names = "all", edge_embed_names: Names = "all", parent: Graph | None = None
    ) -> None:
        """Read columns of the parent for all layers and flows now, as copies that stay in ``data``.

        ``node_embed_names``: a list of names for each layer, ``edge_embed_names`` for each flow; ``all`` of them by default,
        None for none. Raises UsageError where the flow has no parent, or for lists of another length, DataError for a parent in
        which other nodes or edges have the flow's IDs.
        """
        check_same(self.parent, parent, self.arrays.direction)
        parent = parent or self.parent
        if parent is None:
            raise UsageError("the flow knows no parent", fix="pass parent=graphprep.load(store)")
        if self.source is not None:
            self.source.check_parent(parent)
        self.parent = parent
        sizes: dict[Side, int] = {"node": self.num_layers, "edge": self.num_blocks}
        for (side, total), names in zip(sizes.items(), (node_embed_names, edge_embed_names), strict=True):
            if names not in (None, "all") and len(names) != total:
                what = "layer" if side == "node" else "flow"
                raise UsageError(f"{len(names)} lists of names for {count(total, what)}", fix=f"pass one for each {what}")
        self._hold(ParentColumns(parent, self.arrays), node_embed_names, edge_embed_names)

    def _hold(self, source: FlowColumns, node_names: Names = "all", edge_names: Names = "all") -> None:
        """Read columns for all layers and blocks, and keep them."""
        for position, names in _each(node_names, self.num_layers):
            self._hold_some(source, "node", position, names)
        for position, names in _each(edge_names, self.num_blocks):
            self._hold_some(source, "edge", position, names)

    def _hold_some(self, source: FlowColumns, side: Side, position: int, names: Sequence[str] | None) -> None:
        total = len(self.node_types if side == "node" else self.edge_types)
        known = [by_name(source.schemas(side, number)) for number in range(total)]
        for name in names or ():
            if not any(name in some for some in known):
                raise DataError(
                    f"the graph has no column {name!r}", fix=one_of({one: 0 for some in known for one in some}, found=name)
                )
        for number, some in enumerate(known):
            at = self.layer_nid(position, number) if side == "node" else self.block_eid(position, number)
            for name, column in some.items():
                if names is None or name in names:
                    self.held[side, position, number, name] = source.values(side, number, column, at)

    # ---- in the form of trainers

    def to_dgl_blocks(self, columns: Sequence[str] | None = None, *, added_self_loops: bool = True) -> Any:
        """Return the list of ``dgl.DGLBlock``, outermost first, that DGL's models take.

        The first source nodes of each are its destination nodes: those that the layer lacks are put in front of it, without
        edges further out. ``dgl.NID`` and ``dgl.EID`` are the parent's IDs. ``columns`` (by default all that the flow has) are
        those of ``Graph.to_dgl``: of nodes in the first block's ``srcdata`` and the last block's ``dstdata``, of edges in the
        ``edata`` of each. Without ``added_self_loops``, loops that were added are left out; their nodes stay. Needs torch and
        DGL.
        """
        from graphprep.sample.flow.dgl_blocks import to_dgl_blocks

        return to_dgl_blocks(self, columns, added_self_loops=added_self_loops)

    def to_pyg(self, features: str | Sequence[str] = (), *, added_self_loops: bool = True) -> Any:
        """Return ``torch_geometric.data.Data``, ``HeteroData`` where there are several types, as ``NeighborLoader`` yields.

        All layers become one graph, seeds first, then hop after hop the nodes that are new: each node stands in it once, with
        the edges of the hop in which it was first met, as PyG expands a node once. ``n_id`` and ``e_id`` are the parent's IDs;
        ``batch_size`` is the number of seeds, ``input_id`` their positions, ``num_sampled_nodes`` and ``num_sampled_edges``
        count by hop. Columns are those of ``Graph.to_pyg``. Without ``added_self_loops``, loops that were added are left out.
        Needs torch and PyG.
        """
        from graphprep.sample.flow.pyg_data import to_pyg

        return to_pyg(self, features, added_self_loops=added_self_loops)


def _each(names: Names, total: int) -> list[tuple[int, Sequence[str] | None]]:
    """Return the names for each layer or block; None: all of them."""
    if names is None:
        return []
    return [(position, None if names == "all" else names[position]) for position in range(total)]
