"""Questions about the structure of a stored graph, and parts of it as graphs of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.adjacency import Adjacency
from graphprep.edges.arrays import build_adjacency
from graphprep.graph.libraries import load_library
from graphprep.graph.queries import GraphQueries
from graphprep.graph.rows import PartedRows
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.ids import EdgeTypeLike, IdLike, NodeTypeLike
from graphprep.model.schema import EdgeType, Layout, edge_type_text
from graphprep.model.shown.results import Card, Showable, type_rows

Ints = NDArray[np.int64]
Nodes = IdLike | Mapping[str, IdLike]
EdgeIds = IdLike | Mapping[EdgeTypeLike, IdLike]
OtherTypes = Literal["keep", "drop"]
_SORTED_AT_ONCE = 1 << 20  # entries


@dataclass(frozen=True)
class SubgraphEdges:
    """The edges of one type: ``src`` and ``dst`` are nodes of the subgraph, ``edge_ids`` the graph's own: int64[m] each.

    Without edge IDs in the store they are None.
    """

    src: Ints
    dst: Ints
    edge_ids: Ints | None


@dataclass(frozen=True, repr=False)
class Subgraph(Showable):
    """Some nodes and edges of a graph. ``node_ids``: of each node type, the graph's ID of node i: int64[n]."""

    node_ids: Mapping[str, Ints]
    edges: Mapping[EdgeType, SubgraphEdges]

    def adjacency(self, edge_type: EdgeType | None = None, layout: Layout = "csc") -> Adjacency:
        """Return the rows of an edge type; ``edge_ids`` there are positions in its ``edges``."""
        names = [name for name in self.edges if edge_type in (None, name)]
        if len(names) != 1:
            fix = one_of(map(edge_type_text, self.edges), found=edge_type_text(edge_type) if edge_type else "")
            raise DataError(f"unknown edge type {edge_type!r}" if edge_type else "there are several edge types", fix=fix)
        some, (src_type, _, dst_type) = self.edges[names[0]], names[0]
        return build_adjacency(some.src, some.dst, (self.node_ids[src_type].size, self.node_ids[dst_type].size), layout)

    def card(self) -> Card:
        """See ``Showable``."""
        nodes = {name: ids.size for name, ids in self.node_ids.items()}
        edges = {edge_type_text(name): some.src.size for name, some in self.edges.items()}
        return Card("Subgraph", type_rows(nodes, edges), ("node_ids and edge_ids are those of the graph",))


class GraphStructure(GraphQueries):
    """What DGL's ``GraphIndex`` answers of a graph's structure: see ``Graph``."""

    def has_nodes(self, nodes: IdLike, node_type: NodeTypeLike | None = None) -> Any:
        """Return whether there are nodes with these IDs: bool[k]."""
        found = self._nodes.has(self._node_number(node_type), nodes)
        return bool(found) if found.ndim == 0 else found

    def in_edges(self, nodes: IdLike, edge_type: EdgeTypeLike | None = None) -> tuple[Ints, Ints, Ints | None]:
        """Return (sources, destinations, edge IDs) of the edges that enter nodes: int64[m] each, node after node.

        Edge IDs are None where the store holds none. A store without CSC makes one, as ``adjacency`` does.
        """
        own, others, ids = self._edges_of(nodes, edge_type, "csc")
        return others, own, ids

    def out_edges(self, nodes: IdLike, edge_type: EdgeTypeLike | None = None) -> tuple[Ints, Ints, Ints | None]:
        """Return (sources, destinations, edge IDs) of the edges that leave nodes: int64[m] each, node after node.

        Edge IDs are None where the store holds none. A store without CSR makes one, as ``adjacency`` does.
        """
        return self._edges_of(nodes, edge_type, "csr")

    def is_multigraph(self, edge_type: EdgeTypeLike | None = None) -> bool:
        """Return whether two edges of a type (None: of any) have the same ends. Reads rows where the store does not say."""
        edges = range(len(self.edge_types)) if edge_type is None else [self._edge_number(edge_type)]
        stated = [self.metadata.edge_schemas[edge].multigraph for edge in edges]
        return any(stated) or any(
            _has_repeats(self._stored_rows(edge, self.metadata.primary_layout))
            for edge, known in zip(edges, stated, strict=True)
            if known is None
        )

    @property
    def num_bits(self) -> int:
        """Return how many bits the IDs in ``indices`` have: 64 where those of one type do, else 32."""
        return 64 if any(schema.index_dtype == "int64" for schema in self.metadata.edge_schemas) else 32

    def metagraph(self) -> Any:
        """Return the graph of the types, ``networkx.MultiDiGraph``: an edge for every edge type, its key is the relation."""
        made = load_library("networkx").MultiDiGraph(name=self.metadata.graph_name)
        made.add_nodes_from(self.node_types)
        made.add_edges_from((src, dst, relation) for src, relation, dst in self.edge_types)
        return made

    # ---- subgraphs

    def in_subgraph(self, nodes: Nodes) -> Subgraph:
        """Return all nodes, and the edges that enter ``nodes`` (IDs, or IDs by node type), by destination.

        Source: ``dgl.in_subgraph``.
        """
        return self._star(nodes, "csc")

    def out_subgraph(self, nodes: Nodes) -> Subgraph:
        """Return all nodes, and the edges that leave ``nodes`` (IDs, or IDs by node type), by source.

        Source: ``dgl.out_subgraph``.
        """
        return self._star(nodes, "csr")

    def node_subgraph(self, nodes: Nodes, *, other_types: OtherTypes = "drop") -> Subgraph:
        """Return the subgraph that nodes induce: these, in the order given, and the edges between them, as rows lie.

        ``nodes``: IDs or a mask, or, by node type, several of them; of a type that is not named there are none, or all
        (``other_types="keep"``). Raises UsageError for a node that is there twice. Source: ``dgl.node_subgraph``.
        """
        none: dict[str, Ints] = {name: np.zeros(0, np.int64) for name in self.node_types}
        picked = {**(self._all_nodes() if _keeps(other_types) else none), **self._by_node_type(nodes)}
        ranks = {name: _ranks(name, ids) for name, ids in picked.items()}
        edges = {}
        for number, (src_type, relation, dst_type) in enumerate(self.edge_types):
            rows = self._stored_rows(number, self.metadata.primary_layout)
            own_type, other_type = (dst_type, src_type) if self._is_csc(rows) else (src_type, dst_type)
            order, _ = ranks[own_type]
            offsets, positions = rows.positions_of(picked[own_type][order])
            own = np.repeat(order, np.diff(offsets))
            others = _find(ranks[other_type], rows.take("indices", positions))
            kept = np.flatnonzero(others >= 0)
            ids = rows.take("edge_ids", positions[kept]) if rows.has_ids else None
            ends = (own[kept], others[kept])
            edges[src_type, relation, dst_type] = SubgraphEdges(*(ends[::-1] if self._is_csc(rows) else ends), ids)
        return Subgraph(picked, edges)

    def edge_subgraph(self, edge_ids: EdgeIds, *, relabel_nodes: bool = True, other_types: OtherTypes = "drop") -> Subgraph:
        """Return edges, in the order given, and the nodes that they join, ascending; all nodes without ``relabel_nodes``.

        ``edge_ids``: of the only edge type, or by edge type; of a type that is not named there are none, or all
        (``other_types="keep"``). Raises UsageError where the store holds no edge IDs. Source: ``dgl.edge_subgraph``.
        """
        named = edge_ids if isinstance(edge_ids, Mapping) else {self.edge_types[self._edge_number(None)]: edge_ids}
        none = np.zeros(0, np.int64)
        found = dict.fromkeys(self.edge_types, (none, none, none))
        numbers = {self._edge_number(edge_type): ids for edge_type, ids in named.items()}
        if _keeps(other_types):
            sizes = self.metadata.num_edges_per_type
            numbers = {number: np.arange(size) for number, size in enumerate(sizes)} | numbers
        for number, ids in numbers.items():
            wanted = self._edges.check(number, ids)[0].ravel()
            found[self.edge_types[number]] = (*self.find_edges(wanted, number), wanted)
        if not relabel_nodes:
            return Subgraph(self._all_nodes(), {name: SubgraphEdges(*some) for name, some in found.items()})
        ends: dict[str, list[Ints]] = {name: [none] for name in self.node_types}
        for (src_type, _, dst_type), (src, dst, _) in found.items():
            ends[src_type].append(src)
            ends[dst_type].append(dst)
        kept = {name: np.unique(np.concatenate(some)) for name, some in ends.items()}
        return Subgraph(
            kept,
            {
                name: SubgraphEdges(np.searchsorted(kept[name[0]], src), np.searchsorted(kept[name[2]], dst), ids)
                for name, (src, dst, ids) in found.items()
            },
        )

    # ---- what they share

    def _edges_of(self, nodes: IdLike, edge_type: EdgeTypeLike | None, layout: Layout) -> tuple[Ints, Ints, Ints | None]:
        """Return (the nodes asked for, their neighbors, edge IDs) of the edges in the rows of nodes."""
        edge = self._edge_number(edge_type)
        asked = self._nodes.check(self._row_type(edge, layout), nodes)[0].ravel()
        rows = self._rows_of(edge, layout, with_ids=True)
        offsets, positions = rows.positions_of(asked)
        ids = rows.take("edge_ids", positions) if rows.has_ids else None
        return np.repeat(asked, np.diff(offsets)), rows.take("indices", positions), ids

    def _star(self, nodes: Nodes, layout: Layout) -> Subgraph:
        wanted, edges = self._by_node_type(nodes), {}
        for number, edge_type in enumerate(self.edge_types):
            asked = np.unique(wanted.get(edge_type[2 if layout == "csc" else 0], np.zeros(0, np.int64)))
            own, others, ids = self._edges_of(asked, number, layout)
            edges[edge_type] = SubgraphEdges(others, own, ids) if layout == "csc" else SubgraphEdges(own, others, ids)
        return Subgraph(self._all_nodes(), edges)

    def _all_nodes(self) -> dict[str, Ints]:
        return {name: np.arange(self.num_nodes(name)) for name in self.node_types}

    def _by_node_type(self, nodes: Nodes) -> dict[str, Ints]:
        """Return typed IDs, checked, by node type."""
        named = nodes if isinstance(nodes, Mapping) else {self.node_types[self._node_number(None)]: nodes}
        found = {}
        for name, some in named.items():
            number, ids = self._node_number(name), some
            if isinstance(some, np.ndarray) and some.dtype == np.bool_:
                if some.shape != (self.num_nodes(number),):
                    raise UsageError(
                        f"the mask of {name!r} has shape {some.shape}, there are {self.num_nodes(number)} nodes",
                        fix="pass one value for every node, or IDs",
                    )
                ids = np.flatnonzero(some)
            found[self.node_types[number]] = self._nodes.check(number, ids)[0].ravel()
        return found


def _keeps(other_types: OtherTypes) -> bool:
    """Return whether subgraphs keep what is of a type that is not named. Raises UsageError."""
    if other_types not in get_args(OtherTypes):
        raise UsageError(f"other_types: {other_types!r} means nothing", fix=one_of(get_args(OtherTypes), found=other_types))
    return other_types == "keep"


def _ranks(name: str, ids: Ints) -> tuple[Ints, Ints]:
    """Return (the order in which IDs ascend, these). Raises UsageError where two are equal."""
    order = np.argsort(ids, kind="stable")
    ascending = ids[order]
    twice = np.flatnonzero(ascending[1:] == ascending[:-1])
    if twice.size:
        raise UsageError(f"node {ascending[twice[0]]} of {name!r} is there twice", fix="pass each node once")
    return order, ascending


def _find(ranks: tuple[Ints, Ints], ids: Ints) -> Ints:
    """Return where each ID stands among those of ``ranks``, -1 where it does not."""
    order, ascending = ranks
    if not ascending.size:
        return np.full(ids.size, -1)
    at = np.minimum(np.searchsorted(ascending, ids), ascending.size - 1)
    return np.where(ascending[at] == ids, order[at], -1)


def _has_repeats(rows: PartedRows) -> bool:
    """Return whether a row has a neighbor twice."""
    for part in rows.parts:
        first = 0
        while first < part.num_rows:
            stop = int(np.searchsorted(part.indptr, part.indptr[first] + _SORTED_AT_ONCE, "right")) - 1
            stop = max(stop, first + 1)
            own = np.repeat(np.arange(first, stop), np.diff(part.indptr[first : stop + 1]))
            others = part.indices[part.indptr[first] : part.indptr[stop]]
            order = np.lexsort((others, own))
            if ((np.diff(own[order]) == 0) & (np.diff(others[order]) == 0)).any():
                return True
            first = stop
    return False
