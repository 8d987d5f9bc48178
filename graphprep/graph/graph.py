"""A store in Python, as ``load`` opens it: questions about its nodes and edges, and its form in other libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from graphprep.graph.queries import EdgeOrder
from graphprep.graph.structure import GraphStructure
from graphprep.model.ids import EdgeTypeLike, NodeTypeLike
from graphprep.model.options.words import python_words


class Graph(GraphStructure):
    """A store that is open for reading.

    Arrays are read-only memory maps where the store is local and one partition is asked for, or there is only one; else they
    are copies in memory. Nodes are typed IDs, 0 to n-1 of their type; ``ids`` tells their raw IDs, and ``graphprep.ids``
    converts. Edges are edge IDs, positions in the input order of their type. ``edges`` has them by edge ID, ``column`` of an
    edge type as rows lie (by destination, or by source where the store has no CSC), both also in the other's ``order``;
    ``edges(columns=[...])`` has both in one. A type may be left out where there is only one. An edge type is a triple,
    ``src:rel:dst``, or the relation alone where no other type has it.

    Questions take an ID, or an array of them; a scalar in gives a scalar out. Raises DataError for unknown types and for IDs
    that are not there, UsageError for what the store does not hold. Source of names and meanings: DGL's ``DGLGraph``.
    """

    # ---- as tables

    def to_arrow(
        self,
        type_: NodeTypeLike | EdgeTypeLike,
        columns: Sequence[str] | None = None,
        order: EdgeOrder | None = None,
        ids: Literal["raw", "typed"] = "raw",
    ) -> Any:
        """Return a ``pyarrow.Table`` of the nodes or edges of a type; columns of numbers are not copied.

        Nodes have ``id`` and their columns, by typed ID; edges ``src``, ``dst``, ``edge_id`` and theirs, by edge ID or in
        another ``order`` (see ``edges``). ``ids``: whether nodes are raw or typed IDs. ``columns``: which of them, None: all.
        What is missing is null, what was text before it became a number is a dictionary of the names.
        """
        from graphprep.graph import tables

        return tables.to_arrow(self, type_, columns, order, ids)

    def to_pandas(
        self,
        type_: NodeTypeLike | EdgeTypeLike,
        columns: Sequence[str] | None = None,
        order: EdgeOrder | None = None,
        ids: Literal["raw", "typed"] = "raw",
    ) -> Any:
        """Return a ``pandas.DataFrame`` of the nodes or edges of a type: what ``to_arrow`` returns, in pandas' types.

        Integers and booleans of which some are missing are ``Int64``, ``boolean`` …, which know NA. Needs pandas.
        """
        from graphprep.graph import tables

        return tables.to_pandas(self.to_arrow(type_, columns, order, ids))

    # ---- as graphs of other libraries

    def to_scipy(self, edge_type: EdgeTypeLike | None = None, weight: str | None = None) -> Any:
        """Return ``scipy.sparse.csc_array`` (``csr_array`` where the store has no CSC), [sources, destinations].

        Values are those of the edge column ``weight``, 0 where an edge has none, else ones (float32). Several edges between a
        pair stay apart; SciPy adds them up. Where IDs are int32, ``indices`` is a memory map. Needs SciPy.
        """
        from graphprep.graph import clients

        return clients.to_scipy(self, edge_type, weight)

    def to_networkx(self, ids: Literal["raw", "typed"] = "raw") -> Any:
        """Return ``networkx.MultiDiGraph``: for small graphs.

        Nodes are raw or typed IDs, of several node types (type, ID); keys of edges are edge IDs, of several edge types
        (``src:rel:dst``, ID). Columns are attributes, where there is a value. Needs NetworkX.
        """
        from graphprep.graph import clients

        return clients.to_networkx(self, ids)

    @python_words()
    def to_pyg(self, features: str | Sequence[str] = (), missing_time: str = "refuse") -> Any:
        """Return ``torch_geometric.data.Data``, ``HeteroData`` where there are several types; a copy in memory.

        It has the tensors of ``export --to pyg``, nodes by typed ID. ``features`` name the columns that make ``x`` and
        ``edge_attr``, in a list or with commas; by default all floats do, or where a type has none all whole numbers. The label
        is ``y``, -1 or NaN where there is none; a split ``train_mask``, ``val_mask`` and ``test_mask``, seeds ``seed_mask``.
        Other columns of numbers keep their names, those of edges behind ``edge_`` (``edge_weight``, ``edge_time``);
        ``NAME_present`` tells who has one that is optional. Edges ascend by destination, as ``NeighborLoader(is_sorted=True)``
        takes them; ``edge_id`` are their IDs. Edges without a time, of an edge type that has times, are an error:
        ``missing_time`` is ``"drop"``, or the time that they get. Raises UsageError where two tensors would have one name, and
        DataError for edges without a time. Needs torch and PyG.
        """
        from graphprep.graph import clients

        return clients.to_pyg(self, features, missing_time)

    def to_dgl(self) -> Any:
        """Return ``dgl.heterograph`` (of one type, DGL calls it homogeneous); a copy in memory.

        Types and edges keep their names and IDs. Columns of numbers have their names, and ``NAME_present`` beside them where
        rows may lack one; a label is -1 or NaN there. A split is ``train_mask``, ``val_mask`` and ``test_mask``. Raises
        UsageError where two tensors would have one name. Needs torch and DGL.
        """
        from graphprep.graph import clients

        return clients.to_dgl(self)

    def to_glt_topology(
        self, edge_type: EdgeTypeLike | None = None, weight: str | None = None, edge_id_col: str | None = None
    ) -> Any:
        """Return ``graphlearn_torch.data.Topology`` of an edge type, in the primary layout, with edge IDs; nothing is sorted.

        ``weight`` names the edge column of its weights, 0 where an edge has none. Edge IDs are those of the column
        ``edge_id_col``, else of the one that ``convert --edge-id-col`` named, else positions in the input. Needs
        GraphLearn-for-PyTorch.
        """
        from graphprep.graph import clients

        return clients.to_glt_topology(self, edge_type, weight, edge_id_col)
