"""``pyg``: a graph as PyTorch Geometric takes it: one file of tensors, or the partitions that its local stores read.

Source: torch_geometric 2.8, ``Data`` and ``HeteroData.from_dict``, ``distributed.LocalGraphStore`` and ``LocalFeatureStore``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_files import write_pt
from graphprep.exporters.formats.torch_pickle import BFLOAT16, TensorPieces
from graphprep.exporters.pyg.columns import tensor_by_id, to_bfloat16
from graphprep.exporters.pyg.negatives import with_negatives
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.edge_sets import edge_sets
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.negatives import Negatives
from graphprep.exporters.view.torch_features import GraphClass, check_file_names, check_homo
from graphprep.exporters.view.torch_graph import (
    check_rows_ascend,
    concat,
    edge_book,
    edge_ids,
    ids_in_part,
    joined_offsets,
    node_book,
    others,
    owners,
    rows_ascend,
)
from graphprep.exporters.view.torch_sparse import SparseRows
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, MessageEdges, Side, StoreNeed, Unsupported
from graphprep.model.metadata import GraphMetadata, dump_json
from graphprep.model.schema import ColumnSchema, edge_type_text
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.trainers import (
    Attribute,
    SparseAttribute,
    all_types,
    check_pyg_names,
    check_pyg_nodes,
    check_wanted,
    feature_names,
    is_homo,
    is_sparse,
    pyg_attributes,
    pyg_sparse,
    tell_features,
    why_not_pyg,
)

Ints = NDArray[np.int64]
_SPARSE_ROW_BYTES = 512  # of a sparse row, about


@dataclass(frozen=True)
class PygExporter:
    """Writes a graph for PyTorch Geometric.

    ``form``: ``data`` is one file, data.pt, that ``Data.from_dict`` or ``HeteroData.from_dict`` takes; ``parts`` are folders
    that ``LocalGraphStore.from_partition`` and ``LocalFeatureStore.from_partition`` read.
    """

    name: ClassVar[str] = "pyg"
    loads_in: ClassVar[str] = (
        "torch_geometric: Data and HeteroData.from_dict, LocalGraphStore and LocalFeatureStore.from_partition"
    )
    carries: ClassVar[str] = (
        "all dense columns, labels as y, splits and seeds as masks, weights, times; sparse columns in data.pt; no texts or "
        "ragged columns"
    )
    needs: ClassVar[str] = "edges by destination (csc), their columns in that order; for data.pt nodes in the order of raw IDs"
    root_file: ClassVar[str] = "export.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"
    message_edges: ClassVar[MessageEdges | None] = "train"
    edge_sets: ClassVar[str] = "edge_sets.pt has the edges of each part, train_edge_label_index and so on"
    negatives: ClassVar[str] = "behind the edges of each part in edge_sets.pt, with labels, train_edge_label and so on"

    form: Annotated[
        Literal["auto", "data", "parts"],
        "data.pt with the whole graph, or a folder for each partition; auto: data for one partition",
    ] = "auto"
    layout: Annotated[Literal["COO", "CSC"], "of data.pt: edge_index, or row and colptr; both ascend by destination"] = "COO"
    graph_class: GraphClass = "auto"
    features: Annotated[
        tuple[str, ...],
        "columns that make x and edge_attr: COL or TYPE:COL; else all numbers but IDs, keys, codes, times and labels",
    ] = ()
    bfloat16: Annotated[bool, "round x and edge_attr to bfloat16"] = False

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter.plan``."""
        types = list(all_types(metadata))
        check_wanted(self.features, ((name, columns) for _, name, columns in types))
        check_homo(metadata, self.graph_class)
        if not self._is_whole(metadata):
            if self.layout == "CSC":
                raise UsageError("option layout=CSC: partitions hold pairs of IDs", fix="give form=data, or leave it out")
            if not is_homo(metadata, self.graph_class):
                check_file_names(metadata, "PyG")
        unsupported = [
            Unsupported(side, name, column.name, reason)
            for side, name, columns in types
            for column in columns
            if (reason := why_not_pyg(column)) and not (self._is_whole(metadata) and is_sparse(column))
        ]
        features = {
            (side, name): feature_names(name, _held(columns), self.features, metadata.node_types)
            for side, name, columns in types
        }
        notes = [
            note
            for side, name, columns in types
            if (note := tell_features(side, name, _held(columns), features[side, name], metadata.node_types))
        ]
        notes += [
            f"{side} column {name} 'edge_id': it is edge_id_column, as edge_id are the edges' numbers"
            for side, name, columns in types
            if any(one.name == "edge_id" and one.name not in features[side, name] for one in columns)
        ]
        self._check_names(metadata, features)
        need = StoreNeed(layouts=("csc",), edge_columns="csc", split_edges=True)
        if self._is_whole(metadata) and metadata.num_parts > 1 and metadata.partition_by != "range":
            need = replace(need, num_parts=1, partition_by="range")
        return ExportPlan(
            need,
            tuple(unsupported),
            (*notes, *_time_notes(metadata)),
            in_order=True,
            hands_times=True,
            features=features,
            dtypes="trainer",
        )

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter.export``."""
        tables = PygTensors(graph, self.features, homo=is_homo(graph.metadata, self.graph_class), bfloat16=self.bfloat16)
        if self._is_whole(graph.metadata):
            write_pt(out, "data.pt", tables.whole(self.layout))
            graph.reporter.advance(records=sum(graph.metadata.num_edges_per_type))
        else:
            tables.write_parts(out)
        tables.write_edge_sets(out)

    def _is_whole(self, metadata: GraphMetadata) -> bool:
        return self.form == "data" or (self.form == "auto" and metadata.num_parts == 1)

    def _check_names(self, metadata: GraphMetadata, features: Mapping[tuple[Side, str], tuple[str, ...]]) -> None:
        """Raise UsageError where two tensors of a type, or of a graph without types, would have one name."""
        types: list[tuple[str, list[Attribute | SparseAttribute]]] = []
        for side, name, columns in all_types(metadata):
            chosen = features[side, name]
            sparse = pyg_sparse(side, columns, chosen) if self._is_whole(metadata) else []
            types.append((name, [*pyg_attributes(side, _held(columns), chosen), *sparse]))
        check_pyg_names(types, homo=is_homo(metadata, self.graph_class))


def _held(columns: Sequence[ColumnSchema]) -> list[ColumnSchema]:
    """Return the columns that are dense tensors."""
    return [column for column in columns if not why_not_pyg(column)]


def _time_notes(metadata: GraphMetadata) -> list[str]:
    return [
        f"edge type {edge_type_text(edge_type)!r} has times, and neighbours are not in their order, which temporal sampling "
        "needs: convert with --neighbor-order time"
        for edge_type, schema in zip(metadata.edge_types, metadata.edge_schemas, strict=True)
        if schema.neighbor_order != "time" and any(column.role in ("time", "created_at") for column in schema.columns)
    ]


class PygTensors:
    """A graph as values that ``write_pt`` takes."""

    def __init__(self, graph: StoredGraph, features: Sequence[str], *, homo: bool, bfloat16: bool) -> None:
        self._graph = graph
        self._metadata = graph.metadata
        self._parts = range(graph.metadata.num_parts)
        self._is_homo = homo
        self._has_bfloat16 = bfloat16
        self._nodes: list[list[Attribute]] = []
        self._edges: list[list[Attribute]] = []
        self._sparse: dict[Side, list[list[SparseAttribute]]] = {"node": [], "edge": []}
        for side, name, stored in all_types(graph.metadata):
            found = self._nodes if side == "node" else self._edges
            columns = graph.node_columns(len(found)) if side == "node" else graph.edge_columns(len(found))
            chosen = feature_names(name, _held(stored), features, graph.metadata.node_types)
            sparse = pyg_sparse(side, columns, chosen)
            self._sparse[side].append(sparse)
            attributes = pyg_attributes(side, [one for one in columns if not is_sparse(one)], chosen)
            attributes += [one.present for one in sparse if one.present]
            found.append([to_bfloat16(one) if bfloat16 else one for one in attributes])

    # ------------------------------------------------------------------------------------------ one file

    def whole(self, layout: str) -> dict[Any, Any]:
        """Return all nodes by ID, and all edges by destination.

        Raises UsageError where these are not in the order of their IDs.
        """
        nodes = {name: self._all_nodes(number) for number, name in enumerate(self._metadata.node_types)}
        edges = {edge_type: self._all_edges(edge, layout) for edge, edge_type in enumerate(self._metadata.edge_types)}
        if not self._is_homo:
            return {**nodes, **edges}
        named: list[Attribute | SparseAttribute] = [*self._nodes[0], *self._sparse["node"][0]]
        check_pyg_nodes(named, self._metadata.num_nodes_per_type[0], self._graph.metadata.num_edges_per_type[0])
        return {**next(iter(nodes.values())), **next(iter(edges.values()))}

    def _all_nodes(self, number: int) -> dict[str, Any]:
        values: dict[str, Any] = {"num_nodes": self._metadata.num_nodes_per_type[number]}
        values |= {one.name: tensor_by_id(one, self._graph, number) for one in self._nodes[number]}
        rows = [Rows.of_nodes(self._graph, number, part) for part in self._parts]
        return {**values, **self._sparse_tensors("node", number, rows, partial(self._graph.to_ids, number))}

    def _sparse_tensors(self, side: Side, number: int, parts: list[Rows], to_ids: Callable[[Ints], Ints]) -> dict[str, Any]:
        """Return sparse tensors of the rows of all partitions, one behind the other; ``to_ids`` says where each row goes."""

        def read(column: ColumnSchema) -> Iterator[tuple[Ints, Cells]]:
            first = 0
            for rows in parts:
                for low, high in rows.slices(_SPARSE_ROW_BYTES):
                    yield to_ids(np.arange(first + low, first + high)), rows.cells(column, low, high)
                first += rows.size

        found: dict[str, Any] = {}
        for one in self._sparse[side][number]:
            is_rounded = self._has_bfloat16 and one.name in ("x", "edge_attr") and np.dtype(one.column.dtype).kind == "f"
            some = SparseRows(one.column, sum(rows.size for rows in parts), partial(read, one.column))
            found[one.name] = some.tensor(BFLOAT16 if is_rounded else "")
        return found

    def _all_edges(self, edge: int, layout: str) -> dict[str, Any]:
        graph = self._graph
        check_rows_ascend(graph, graph.ends_of(edge)[1], self._parts, "form data")
        sources = [others(graph, edge, "csc", part) for part in self._parts]
        if layout == "COO":
            pairs = concat([*sources, *(owners(graph, edge, "csc", part) for part in self._parts)])
            shape = (2, self._metadata.num_edges_per_type[edge])
            values = {"edge_index": TensorPieces("int64", shape, pairs.pieces)}
        else:
            values = {"row": concat(sources), "colptr": joined_offsets(graph, edge, "csc")}
        values["edge_id"] = concat([edge_ids(graph, edge, "csc", part) for part in self._parts])
        rows = [Rows.of_edges(graph, edge, "csc", part) for part in self._parts]
        values |= {
            one.name: concat([some.tensor(one.dtype, one.item_shape, one.read) for some in rows]) for one in self._edges[edge]
        }
        values |= self._sparse_tensors("edge", edge, rows, lambda positions: positions)
        return values

    def write_edge_sets(self, out: FolderOutput) -> None:
        """Write the edges of each part of a split, where there is one, to a file of their own.

        As attributes of the graph PyG's loaders would take those that happen to be as many as its edges for one of each edge,
        and choose among them.
        """
        types = enumerate(self._metadata.edge_types)
        if sets := {edge_type: found for edge, edge_type in types if (found := self._edge_sets(edge))}:
            write_pt(out, "edge_sets.pt", next(iter(sets.values())) if self._is_homo else sets)

    def _edge_sets(self, edge: int) -> dict[str, TensorPieces]:
        """Return the edges of each part of the split, with what is asked of them: ends, edge IDs, labels, times."""
        found: dict[str, TensorPieces] = {}
        for one in edge_sets(self._graph, edge, timed=True):
            stem = f"{one.name}_edge_label"
            found |= {f"{stem}_index": one.ends(self._graph.to_ids), f"{stem}_id": one.edge_ids()}
            for attribute in self._edges[edge]:
                if attribute.name in ("edge_label", "edge_time"):
                    name = stem if attribute.name == "edge_label" else f"{stem}_time"
                    found[name] = one.values(attribute)
            negatives = Negatives(one, self._graph.to_ids)
            if negatives.per_edge:
                found |= with_negatives(found, stem, negatives)
        return found

    # ------------------------------------------------------------------------------------------ partitions

    def write_parts(self, out: FolderOutput) -> None:
        """Write a folder for each partition, the maps of nodes and edges to partitions, and META.json."""
        for number, name in enumerate(self._metadata.node_types):
            write_pt(out, self._map_path("node_map", name), node_book(self._graph, number))
        for edge, edge_type in enumerate(self._metadata.edge_types):
            write_pt(out, self._map_path("edge_map", "__".join(edge_type)), edge_book(self._graph, edge, "csc"))
        for part in self._parts:
            self._write_part(out, part)
            counts = (self._graph.num_edges(edge, "csc", part) for edge in range(len(self._metadata.edge_types)))
            self._graph.reporter.advance(records=sum(counts))
        out.write("META.json", dump_json(self._meta()))

    def _map_path(self, stem: str, name: str) -> str:
        return f"{stem}.pt" if self._is_homo else f"{stem}/{name}.pt"

    def _meta(self) -> dict[str, Any]:
        counts, homo = self._metadata.num_nodes_per_type, self._is_homo
        ends = {self._graph.ends_of(edge)[1] for edge in range(len(self._metadata.edge_types))}
        return {
            "num_parts": len(self._parts),
            "node_types": None if homo else list(self._metadata.node_types),
            "edge_types": None if homo else [list(edge_type) for edge_type in self._metadata.edge_types],
            "node_offset": None if homo else [sum(counts[:number]) for number in range(len(counts))],
            "is_hetero": not homo,
            "is_sorted": all(rows_ascend(self._graph, number, [part]) for number in ends for part in self._parts),
        }

    def _write_part(self, out: FolderOutput, part: int) -> None:
        """Write the files of a partition. PyG reads no features without rows and no types without edges: they are left out."""
        graph, folder = self._graph, f"part_{part}"
        edges = {
            edge_type: self._part_edges(edge, part)
            for edge, edge_type in enumerate(self._metadata.edge_types)
            if self._is_homo or graph.num_edges(edge, "csc", part)
        }
        write_pt(out, f"{folder}/graph.pt", next(iter(edges.values())) if self._is_homo else edges)
        nodes = {
            name: self._part_nodes(number, part)
            for number, name in enumerate(self._metadata.node_types)
            if self._metadata.num_nodes_per_chunk[number][part]
        }
        if nodes:
            write_pt(out, f"{folder}/node_feats.pt", next(iter(nodes.values())) if self._is_homo else nodes)
        features = {
            edge_type: self._part_edge_features(edge, part)
            for edge, edge_type in enumerate(self._metadata.edge_types)
            if self._edges[edge] and graph.num_edges(edge, "csc", part)
        }
        if features:
            write_pt(out, f"{folder}/edge_feats.pt", next(iter(features.values())) if self._is_homo else features)

    def _part_edges(self, edge: int, part: int) -> dict[str, Any]:
        src, dst = self._graph.ends_of(edge)
        counts = self._metadata.num_nodes_per_type
        return {
            "edge_id": edge_ids(self._graph, edge, "csc", part),
            "row": others(self._graph, edge, "csc", part),
            "col": owners(self._graph, edge, "csc", part),
            "size": (counts[src], counts[dst]),
        }

    def _part_nodes(self, number: int, part: int) -> dict[str, Any]:
        """Return the features of a type's nodes. Their global IDs are those of the type, as in the maps and the graph."""
        ids = ids_in_part(self._graph, number, part)
        rows = Rows.of_nodes(self._graph, number, part)
        found: dict[str, Any] = {"global_id": ids} if self._is_homo else {"global_id": ids, "id": ids}
        return {**found, "feats": {one.name: rows.tensor(one.dtype, one.item_shape, one.read) for one in self._nodes[number]}}

    def _part_edge_features(self, edge: int, part: int) -> dict[str, Any]:
        rows = Rows.of_edges(self._graph, edge, "csc", part)
        feats = {one.name: rows.tensor(one.dtype, one.item_shape, one.read) for one in self._edges[edge]}
        times = {"edge_time": feats.pop("edge_time")} if "edge_time" in feats else {}
        return {"global_id": edge_ids(self._graph, edge, "csc", part), "feats": feats, **times}
