"""``glt``: the partitions that GraphLearn-for-PyTorch loads, already sorted where it is asked for.

Source: graphlearn_torch 0.2.4, ``partition.base`` (writer and ``load_partition``) and ``DistDataset.load``.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_files import chunk_bytes, write_pt, write_tensor_chunks
from graphprep.exporters.formats.torch_pickle import TensorPieces, tensor
from graphprep.exporters.glt.cache import FeatureCache, check_scores
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.edge_sets import edge_sets
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.own_edge_ids import check_each_once, check_id_columns, own_edge_ids, without_ids
from graphprep.exporters.view.torch_features import FeatureMatrix, GraphClass, check_file_names, check_homo
from graphprep.exporters.view.torch_graph import (
    check_rows_ascend,
    concat,
    edge_book,
    ids_in_part,
    joined_offsets,
    labels_by_id,
    node_book,
    nodes_where,
    offsets_by_id,
    others,
    owners,
)
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, MessageEdges, Side, StoreNeed, Unsupported
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, Layout
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.features import KINDS, can_be_feature, is_number, why_no_feature
from graphprep.store.columns.trainers import (
    all_types,
    check_wanted,
    feature_names,
    is_homo,
    labels_of,
    named,
    tell_features,
)

SPLITS = ("train", "val", "test")  # the parts 0, 1, 2 of a split


@dataclass(frozen=True)
class GltExporter:
    """Writes partitions for GraphLearn-for-PyTorch.

    ``layout``: CSR (by source) and CSC (by destination) go over the whole ID space; GLT takes them as they are. Without
    ``edge_ids`` types that have no edge features have no edge IDs and no book of edges either: only features are looked up by
    them.
    """

    name: ClassVar[str] = "glt"
    loads_in: ClassVar[str] = "graphlearn_torch: DistDataset.load, partition.load_partition"
    carries: ClassVar[str] = (
        "one feature matrix a type, edge weights, labels, splits and seeds of nodes; no times, no columns that are not dense"
    )
    needs: ClassVar[str] = (
        "edges by source (csr), or destination (csc) with layout=CSC or edge_assign=by_dst; their columns in that order"
    )
    root_file: ClassVar[str] = "META"
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"
    message_edges: ClassVar[MessageEdges | None] = "train"
    edge_sets: ClassVar[str] = "train-edges, val-edges and test-edges have the edges of each part"

    layout: Annotated[
        Literal["COO", "CSR", "CSC"], "what DistDataset.load(input_layout=...) is to be told; GLT sorts COO while it loads"
    ] = "COO"
    edge_assign: Annotated[
        Literal["auto", "by_src", "by_dst"],
        "in whose partition an edge is; auto: that of its destination with CSC, else of its source",
    ] = "auto"
    graph_class: GraphClass = "auto"
    features: Annotated[
        tuple[str, ...],
        "columns that make the feature matrices: COL or TYPE:COL; else all numbers but IDs, keys, codes, times and labels",
    ] = ()
    cache_ratio: Annotated[
        float,
        "share of a type's nodes whose features every partition caches: of the highest in-degrees, or scores, or the first of "
        "a store that is ordered by such",
    ] = 0.0
    cache_scores: Annotated[tuple[str, ...], "scores for cache_ratio: FILE.npy or TYPE=FILE.npy"] = ()
    chunk_mb: Annotated[int, "size of the pieces of feature files, in MiB"] = 64
    bfloat16: Annotated[bool, "round float features to bfloat16"] = False
    graph_caching: Annotated[bool, "write all edges once, for load(graph_caching=True), and none of a partition"] = False
    edge_id_col: Annotated[
        tuple[str, ...], "columns that are the edge IDs: COL or SRC:REL:DST:COL; else positions in the input"
    ] = ()
    edge_ids: Annotated[bool, "write edge IDs also where there are no edge features to look up by them"] = True

    @property
    def stored_layout(self) -> Layout:
        """Return the layout whose partitions own the edges that are to be in them."""
        if self.edge_assign == "auto":
            return "csc" if self.layout == "CSC" else "csr"
        return "csr" if self.edge_assign == "by_src" else "csc"

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter.plan``."""
        self._check_options(metadata)
        check_id_columns(metadata, self.edge_id_col)
        sides = [
            (side, name, without_ids(name, columns, self.edge_id_col) if side == "edge" else columns)
            for side, name, columns in all_types(metadata)
        ]
        check_wanted(self.features, ((name, columns) for _, name, columns in sides))
        unsupported: list[Unsupported] = []
        left_out: list[Unsupported] = []
        notes: list[str] = []
        features: dict[tuple[Side, str], tuple[str, ...]] = {}
        for side, name, columns in sides:
            chosen = features[side, name] = feature_names(name, columns, self.features, metadata.node_types)
            unsupported += _find_unsupported(side, name, columns)
            others = [
                one for one in columns if can_be_feature(one) and one.role in (None, "created") and one.name not in chosen
            ]
            left_out += [Unsupported(side, name, one.name, _why_left_out(one, metadata.node_types)) for one in others]
            if note := tell_features(side, name, columns, chosen, metadata.node_types):
                notes.append(note)
        layout = self.stored_layout
        by_degree = self.cache_ratio and not self.cache_scores
        layouts: tuple[Layout, ...] = (layout, "csc") if by_degree else (layout,)
        need = StoreNeed(layouts=tuple(dict.fromkeys(layouts)), edge_columns=layout, split_edges=True)
        return ExportPlan(
            need,
            tuple(unsupported),
            tuple(notes),
            in_order=True,
            left_out=tuple(left_out),
            features=features,
            dtypes="trainer",
        )

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter.export``."""
        GltFolder(self, graph, out).write()

    def _check_options(self, metadata: GraphMetadata) -> None:
        wanted = {"CSR": "csr", "CSC": "csc"}.get(self.layout, self.stored_layout)
        if wanted != self.stored_layout:
            raise UsageError(
                f"option layout={self.layout}: rows of a partition would be cut into pieces by edge_assign={self.edge_assign}",
                fix=f"leave out edge_assign, or use layout={'CSC' if self.layout == 'CSR' else 'CSR'} or layout=COO",
            )
        check_homo(metadata, self.graph_class)
        if not 0 <= self.cache_ratio <= 1:
            raise UsageError(
                f"option cache_ratio must lie between 0 and 1, found {self.cache_ratio:g}", fix="give a share of nodes"
            )
        if self.cache_scores and not self.cache_ratio:
            raise UsageError("option cache_scores does nothing without cache_ratio", fix="give the share of nodes to cache")
        if self.chunk_mb < 1:
            raise UsageError(f"option chunk_mb must be 1 or more, found {self.chunk_mb}", fix="leave it out")
        check_scores(self.cache_scores, metadata.node_types)
        if not is_homo(metadata, self.graph_class):
            check_file_names(metadata, "GLT")


def _find_unsupported(side: Side, name: str, columns: Sequence[ColumnSchema]) -> Iterator[Unsupported]:
    """Find the columns that no file can hold."""
    labels = 0
    for column in columns:
        reason = ""
        if column.kind != "dense":
            reason = f"GLT takes numbers only, and {KINDS[column.kind]}"
        elif column.role == "label" and side == "node" and is_number(column):
            labels += 1
            reason = "GLT has one label a type" if labels > 1 else ""
        elif column.role not in (None, "created", *(("split", "seeds") if side == "node" else ("split", "weight"))):
            reason = f"GLT has no {column.role} of {side}s"
        if reason:
            yield Unsupported(side, name, column.name, reason)


def _why_left_out(column: ColumnSchema, node_types: Sequence[str]) -> str:
    return why_no_feature(column, node_types) or "it is none of those that the option features names"


class GltFolder:
    """Writes all files of a graph."""

    def __init__(self, exporter: GltExporter, graph: StoredGraph, out: FolderOutput) -> None:
        self._options = exporter
        self._layout = exporter.stored_layout
        self._graph = graph
        self._out = out
        self._metadata = graph.metadata
        self._parts = range(graph.metadata.num_parts)
        self._is_homo = is_homo(graph.metadata, exporter.graph_class)

    def write(self) -> None:
        """Write everything, META last."""
        for number in range(len(self._metadata.node_types)):
            self._write_nodes(number)
        for edge in range(len(self._metadata.edge_types)):
            self._write_edges(edge)
        self._out.write("META", pickle.dumps(self._meta(), protocol=2))

    def _meta(self) -> dict[str, object]:
        homo = self._is_homo
        return {
            "num_parts": len(self._parts),
            "data_cls": "homo" if homo else "hetero",
            "node_types": None if homo else list(self._metadata.node_types),
            "edge_types": None if homo else list(self._metadata.edge_types),
        }

    def _folder(self, stem: str, name: str) -> str:
        """Return the folder of a type inside another."""
        return stem if self._is_homo else f"{stem}/{name}"

    def _chosen(self, name: str, columns: Sequence[ColumnSchema], stored: Sequence[ColumnSchema]) -> tuple[ColumnSchema, ...]:
        """Return the columns of a type's feature matrix, with the dtypes in which they are written."""
        return named(columns, feature_names(name, stored, self._options.features, self._metadata.node_types))

    # ------------------------------------------------------------------------------------------ nodes

    def _write_nodes(self, number: int) -> None:
        graph, name = self._graph, self._metadata.node_types[number]
        write_pt(self._out, f"{self._folder('node_pb', name)}.pt", node_book(graph, number))
        columns = graph.node_columns(number)
        stored = self._metadata.node_schemas[number].columns
        chosen = self._chosen(name, columns, stored)
        if chosen and self._metadata.num_nodes_per_type[number]:
            matrix = FeatureMatrix(chosen, self._options.bfloat16)
            self._tell_dtype("node", name, matrix, stored)
            rows = [Rows.of_nodes(graph, number, part) for part in self._parts]
            ids = [ids_in_part(graph, number, part) for part in self._parts]
            self._write_features("node_feat", name, matrix, rows, ids)
            self._write_cache(number, matrix)
        self._write_roles(number, columns)

    def _write_roles(self, number: int, columns: Sequence[ColumnSchema]) -> None:
        """Write the labels of all nodes, and for each partition the nodes of each part of the split, and the seeds."""
        graph, name = self._graph, self._metadata.node_types[number]
        for column in columns:
            if column.role == "label":
                write_pt(self._out, f"label/{'label' if self._is_homo else name}.pt", labels_by_id(graph, number, column))
            for value, split in enumerate(SPLITS if column.role == "split" else ()):
                self._write_seeds(number, column, split, value, labels_of(columns))
            if column.role == "seeds":
                self._write_seeds(number, column, "seeds", 1)

    def _write_seeds(
        self, number: int, column: ColumnSchema, what: str, value: int, labels: Sequence[ColumnSchema] = ()
    ) -> None:
        folder = self._folder(f"{what}-partitions", self._metadata.node_types[number])
        for part in self._parts:
            write_pt(self._out, f"{folder}/partition{part}.pt", nodes_where(self._graph, number, part, column, value, labels))

    def _write_cache(self, number: int, matrix: FeatureMatrix) -> None:
        cache = FeatureCache(self._graph, number, matrix)
        name = self._metadata.node_types[number]
        for part in self._parts:
            hot = cache.find(part, self._options.cache_ratio, self._options.cache_scores)
            if hot.size:
                folder = self._folder(f"part{part}/node_feat", name)
                write_pt(self._out, f"{folder}/cache_feats.pt", cache.features(hot))
                write_pt(self._out, f"{folder}/cache_ids.pt", tensor(self._graph.to_ids(number, hot)))

    # ------------------------------------------------------------------------------------------ edges

    def _write_edges(self, edge: int) -> None:
        graph, layout = self._graph, self._layout
        name = "__".join(self._metadata.edge_types[edge])
        stored = self._metadata.edge_schemas[edge].columns
        own = self._options.edge_id_col
        columns = without_ids(graph.edge_names[edge], graph.edge_columns(edge), own)
        chosen = self._chosen(graph.edge_names[edge], columns, without_ids(graph.edge_names[edge], stored, own))
        has_ids = self._options.edge_ids or bool(chosen)
        if self._options.graph_caching:
            self._write_graph(edge, self._folder("graph", name), self._parts, has_ids=has_ids)
        else:
            for part in self._parts:
                self._write_graph(edge, self._folder(f"part{part}/graph", name), [part], has_ids=has_ids)
        if self._options.layout == "COO":
            self._tell_empty(edge)
        if has_ids or self._is_homo:  # GLT loads no graph without types that has no such book, whatever is in it
            size = check_each_once(graph, edge, layout, own) if own and has_ids else None
            book = edge_book(graph, edge, layout, self._edge_ids, size) if has_ids else tensor([], "int64")
            write_pt(self._out, f"{self._folder('edge_pb', name)}.pt", book)
        if chosen and self._metadata.num_edges_per_type[edge]:
            matrix = FeatureMatrix(chosen, self._options.bfloat16)
            self._tell_dtype("edge", graph.edge_names[edge], matrix, stored)
            rows = [Rows.of_edges(graph, edge, layout, part) for part in self._parts]
            ids = [self._edge_ids(graph, edge, layout, part) for part in self._parts]
            self._write_features("edge_feat", name, matrix, rows, ids)
        for one in edge_sets(graph, edge):
            write_pt(self._out, f"{self._folder(f'{one.name}-edges', name)}.pt", one.ends(graph.to_ids))

    def _write_graph(self, edge: int, folder: str, parts: Sequence[int], *, has_ids: bool) -> None:
        """Write the edges of one partition, or those of all."""
        graph, layout = self._graph, self._layout
        neighbours = concat([others(graph, edge, layout, part) for part in parts])
        own = self._owners(edge, parts)
        rows, cols = (neighbours, own) if layout == "csc" else (own, neighbours)
        write_pt(self._out, f"{folder}/rows.pt", rows)
        write_pt(self._out, f"{folder}/cols.pt", cols)
        if has_ids:
            write_pt(self._out, f"{folder}/eids.pt", concat([self._edge_ids(graph, edge, layout, part) for part in parts]))
        weight = next((column for column in graph.edge_columns(edge) if column.role == "weight"), None)
        if weight is not None:
            matrix = FeatureMatrix((weight,))
            values = concat([matrix.tensor(Rows.of_edges(graph, edge, layout, part)) for part in parts])
            write_pt(self._out, f"{folder}/weights.pt", TensorPieces("float32", values.shape[:1], values.pieces))
        graph.reporter.advance(records=neighbours.size)

    def _edge_ids(self, graph: StoredGraph, edge: int, layout: Layout, part: int) -> TensorPieces:
        return own_edge_ids(graph, edge, layout, part, self._options.edge_id_col)

    def _owners(self, edge: int, parts: Sequence[int]) -> TensorPieces:
        """Return the ends that own the edges, or where each node's edges begin."""
        graph, layout = self._graph, self._layout
        if self._options.layout == "COO":
            return concat([owners(graph, edge, layout, part) for part in parts])
        check_rows_ascend(graph, graph.ends_of(edge)[layout == "csc"], parts, f"layout {self._options.layout}")
        return (
            joined_offsets(graph, edge, layout) if self._options.graph_caching else offsets_by_id(graph, edge, layout, *parts)
        )

    def _tell_empty(self, edge: int) -> None:
        """Say where GLT cannot load partitions, which it finds out by an error without words."""
        sizes = [self._graph.num_edges(edge, self._layout, part) for part in self._parts]
        empty, layout = sizes.count(0), "CSC" if self._layout == "csc" else "CSR"
        if any(sizes) and (not empty or self._options.graph_caching):
            return
        where = f"{empty} of {len(sizes)} partitions have no edges" if any(sizes) else "it has no edges"
        self._graph.notes.append(
            f"edge type {self._graph.edge_names[edge]!r}: {where}, and GLT fails to load COO then; give --option "
            f"layout={layout}, and input_layout={layout!r} to DistDataset.load"
        )

    # ------------------------------------------------------------------------------------------ features

    def _tell_dtype(self, side: Side, name: str, matrix: FeatureMatrix, stored: Sequence[ColumnSchema]) -> None:
        """Say where a column does not get the dtype that is asked for, as all columns of a matrix have one."""
        before = {column.name: column.dtype for column in stored}
        asked = [column for column in matrix.columns if column.dtype != before[column.name]]
        dtype = matrix.array_dtype
        if len(matrix.columns) > 1 and any(column.dtype != dtype for column in asked):
            listed = ", ".join(f"{column.name} {column.dtype}" for column in matrix.columns)
            self._graph.reporter.message(
                f"{side} type {name!r}: its features are {dtype}, the dtype that has room for all of them: {listed}"
            )

    def _write_features(
        self, stem: str, name: str, matrix: FeatureMatrix, rows: Sequence[Rows], ids: Sequence[TensorPieces]
    ) -> None:
        """Write the features of every partition, and the IDs of their rows.

        GLT cannot load features without rows. A partition that has none gets a copy of the first row there is, which nothing
        looks up there: the partition book sends its ID elsewhere.
        """
        filled = next(part for part in self._parts if rows[part].size)
        for part in self._parts:
            folder = self._folder(f"part{part}/{stem}", name)
            if rows[part].size:
                size = rows[part].size
                step = max(1, (self._options.chunk_mb << 20) // max(1, matrix.row_bytes))
                feats = [matrix.tensor(rows[part], low, min(low + step, size)) for low in range(0, size, step)]
                some = ids[part]
            else:
                feats = [matrix.tensor(rows[filled], 0, 1)]
                some = TensorPieces("int64", (1,), lambda: [_first(ids[filled])])
            write_tensor_chunks(self._out, f"{folder}/feats.pkl", feats, sum(map(chunk_bytes, feats)))
            write_tensor_chunks(self._out, f"{folder}/ids.pkl", [some], chunk_bytes(some))


def _first(ids: TensorPieces) -> NDArray[np.int64]:
    return next(np.asarray(piece[:1]) for piece in ids.pieces() if piece.size)
