"""Partitions for distributed training with DGL: what ``dgl.distributed.load_partition`` and ``DistGraph`` read.

Source: DGL 2.1, ``dgl.distributed`` and ``tools/dispatch_data.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.dgl.columns import dgl_edge_type, dgl_name, features_of, find_unsupported, plan_notes
from graphprep.exporters.dgl.graphbolt_graph import EDGE_ID, FUSED_NAME, NODE_ID, FusedGraph, fitting_dtype
from graphprep.exporters.dgl.part_edges import InEdges, by_destination, by_source
from graphprep.exporters.dgl.part_nodes import PartBook, PartGraph, counted, node_bits, repeated
from graphprep.exporters.formats.dgl_files import (
    GRAPH_FORMATS,
    CooMatrix,
    GraphFile,
    GraphFormat,
    Matrix,
    TensorFile,
)
from graphprep.exporters.formats.torch_files import write_pt
from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.edge_sets import edge_sets
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.own_edge_ids import check_id_columns, own_edge_ids, without_ids
from graphprep.exporters.view.torch_graph import ids_in_part
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, MessageEdges, StoreNeed
from graphprep.model.metadata import GraphMetadata, dump_json
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FolderOutput

CONFIG_NAME = "metadata.json"


@dataclass(frozen=True)
class DistDglExporter:
    """Writes partitions that DGL's distributed training loads."""

    name: ClassVar[str] = "distdgl"
    loads_in: ClassVar[str] = "dgl.distributed.load_partition, DistGraph"
    carries: ClassVar[str] = "all dense columns; splits as train_mask, val_mask, test_mask; no texts, no lists"
    needs: ClassVar[str] = "edges by destination (csc), their columns in that order"
    root_file: ClassVar[str] = CONFIG_NAME
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"
    message_edges: ClassVar[MessageEdges | None] = "train"
    edge_sets: ClassVar[str] = "edge_sets.dgl has the edges of each part"

    formats: Annotated[
        tuple[str, ...],
        "how edges are stored: some of coo, csr and csc; with csc, DGL need not sort them when a trainer starts",
    ] = ("coo",)
    graphbolt: Annotated[bool, "graphs for DistGraph(use_graphbolt=True) instead"] = False
    halo_hops: Annotated[int, "hops along in-edges to nodes of other partitions that each has, with the edges on the way"] = 1
    save_orig_nids: Annotated[bool, "original IDs of all nodes, 0..n-1 of each type, as orig_nids.dgl"] = True
    save_orig_eids: Annotated[bool, "edge IDs of all edges, as orig_eids.dgl"] = True
    edge_id_col: Annotated[
        tuple[str, ...], "columns that are the edge IDs: COL or SRC:REL:DST:COL; else positions in the input"
    ] = ()

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """Ask for edges by destination, which is DGL's rule, too.

        Raises UsageError for a graph without an edge type, which no partition book holds, and formats that DGL does not know.
        """
        if not metadata.edge_types:
            raise UsageError("the graph has no edge type, and DGL's partition book cannot be without", fix="add one")
        unknown = [name for name in self.formats if name not in GRAPH_FORMATS]
        if unknown or not self.formats:
            found = f"found {unknown[0]!r}" if unknown else "found none"
            raise UsageError(f"distdgl: formats must be some of coo, csr, csc, {found}", fix="correct the option")
        check_id_columns(metadata, self.edge_id_col)
        if self.halo_hops < 1:
            raise UsageError(f"distdgl: halo_hops must be 1 or more, found {self.halo_hops}", fix="correct the option")
        need = StoreNeed(layouts=("csc",), edge_columns="csc", split_edges=True)
        return ExportPlan(need, find_unsupported(metadata), plan_notes(metadata), dtypes="trainer")

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """Write ``part<i>/`` for every partition, then the partition config."""
        book = PartBook(graph)
        bits = node_bits(graph)
        for part in range(graph.metadata.num_parts):
            local = PartGraph(graph, book, part, bits, self.halo_hops)
            self._write_graph(local, out)
            for name, tensors in self._tensors(graph, part).items():
                TensorFile(tensors).write(out, f"part{part}/{name}.dgl")
        self._write_sets(graph, book, out)
        out.write(CONFIG_NAME, dump_json(_config(graph, book, self.halo_hops, graphbolt=self.graphbolt)))

    def _write_sets(self, graph: StoredGraph, book: PartBook, out: FolderOutput) -> None:
        """Write the edges of each part of a split as pairs of DGL's IDs, of which the graph may have some only."""
        tensors = {
            f"{dgl_edge_type(edge_type)}/{one.name}": one.ends(book.part_ids)
            for edge, edge_type in enumerate(graph.metadata.edge_types)
            for one in edge_sets(graph, edge)
        }
        if tensors:
            TensorFile(tensors).write(out, "edge_sets.dgl")

    def _write_graph(self, local: PartGraph, out: FolderOutput) -> None:
        with local.graph.room.scratch.inner() as scratch:
            if self.graphbolt:
                fused = _fused(local, scratch, find_edges="coo" in self.formats)
                write_pt(out, f"part{local.part}/{FUSED_NAME}", fused.value())
                return
            wanted = [name for name in GRAPH_FORMATS if name in self.formats]
            file = GraphFile(
                local.num_nodes,
                {name: _matrix(local, name, scratch) for name in wanted},
                _node_data(local),
                _edge_data(local),
            )
            file.write(out, f"part{local.part}/graph.dgl")

    def _tensors(self, graph: StoredGraph, part: int) -> dict[str, dict[str, TensorPieces]]:
        """Return the files of tensors of a partition, by name."""
        files = {"node_feat": _node_features(graph, part), "edge_feat": _edge_features(graph, part, self.edge_id_col)}
        if self.save_orig_nids:
            files["orig_nids"] = {
                dgl_name(name): ids_in_part(graph, number, part) for number, name in enumerate(graph.metadata.node_types)
            }
        if self.save_orig_eids:
            files["orig_eids"] = {
                dgl_edge_type(edge_type): own_edge_ids(graph, edge, "csc", part, self.edge_id_col)
                for edge, edge_type in enumerate(graph.metadata.edge_types)
            }
        return files


# ------------------------------------------------------------------------------------------------------------- graph


def _node_data(local: PartGraph) -> dict[str, TensorPieces]:
    shape = (local.num_nodes,)
    return {
        "_ID": TensorPieces("int64", shape, local.node_ids),
        "_TYPE": TensorPieces("int32", shape, local.node_types),
        "inner_node": TensorPieces("uint8", shape, local.is_own),
    }


def _edge_data(local: PartGraph) -> dict[str, TensorPieces]:
    shape = (local.num_all_edges,)
    first, last = int(local.edge_starts[0]), int(local.edge_starts[-1])

    def ids() -> Iterator[NDArray[np.int64]]:
        yield from counted(first, last, local.step)
        yield from (edges for _, _, edges in local.halo_edges())

    def types() -> Iterator[NDArray[np.int32]]:
        yield from local.edge_types()
        yield from (local.types_of(edges) for _, _, edges in local.halo_edges())

    return {
        "_ID": TensorPieces("int64", shape, ids),
        "_TYPE": TensorPieces("int32", shape, types),
        "inner_edge": _inner_edges(local),
    }


def _inner_edges(local: PartGraph) -> TensorPieces:
    """Return 1 for each own edge, then 0 for each of other partitions."""

    def pieces() -> Iterator[NDArray[np.uint8]]:
        yield from repeated(1, local.num_edges, "uint8", local.step)
        yield from repeated(0, local.num_halo_edges, "uint8", local.step)

    return TensorPieces("uint8", (local.num_all_edges,), pieces)


def _matrix(local: PartGraph, name: GraphFormat, scratch: Scratch) -> Matrix:
    if name == "coo":
        shape = (local.num_all_edges,)
        rows, cols = (
            TensorPieces("int64", shape, partial(_all_edges, local, end, read))
            for end, read in enumerate((local.sources, local.destinations))
        )
        return CooMatrix(local.num_nodes, rows, cols)
    return (by_destination if name == "csc" else by_source)(local, scratch)


def _all_edges(local: PartGraph, end: int, read: Callable[[int], Iterator[NDArray[Any]]]) -> Iterator[NDArray[np.int64]]:
    """Yield one end of own edges, and of those of other partitions."""
    yield from _all_types(local, read)
    for ends in local.halo_edges():
        yield local.to_local(ends[end])


def _all_types(local: PartGraph, read: Callable[[int], Iterator[NDArray[Any]]]) -> Iterator[NDArray[Any]]:
    for edge in range(local.num_edge_types):
        yield from read(edge)


def _fused(local: PartGraph, scratch: Scratch, *, find_edges: bool) -> FusedGraph:
    """Return the graph as GraphBolt has it: without type borders, as other partitions' nodes are in no order of types.

    ``find_edges``: with what finds the ends of edges by their IDs, too.
    """
    graph, edges = local.graph, InEdges(local, scratch)
    nodes = (local.num_nodes,)
    index = fitting_dtype(max(local.book.num_nodes, local.book.num_edges))
    is_typed = len(graph.metadata.node_types) > 1 or local.num_edge_types > 1
    edge_names = map(dgl_edge_type, graph.metadata.edge_types)
    attributes = {EDGE_ID: edges.part_ids(), "inner_edge": _inner_edges(local)}
    if find_edges:
        attributes |= {"_dgl2gb_eid": edges.positions(), "_gb_dst_id": edges.destinations()}
    return FusedGraph(
        replace(edges.indptr(), dtype=index),
        replace(edges.sources(), dtype=index),
        type_per_edge=edges.types() if is_typed else None,
        node_type_to_id=_numbered(map(dgl_name, graph.metadata.node_types)) if is_typed else None,
        edge_type_to_id=_numbered(edge_names) if is_typed else None,
        node_attributes={
            NODE_ID: TensorPieces("int64", nodes, local.node_ids),
            "inner_node": TensorPieces("uint8", nodes, local.is_own),
        },
        edge_attributes=attributes,
    )


def _numbered(names: Iterable[str]) -> dict[str, int]:
    return {name: number for number, name in enumerate(names)}


# ---------------------------------------------------------------------------------------------------------- features


def _node_features(graph: StoredGraph, part: int) -> dict[str, TensorPieces]:
    return {
        f"{dgl_name(name)}/{feature.name}": feature.tensor(Rows.of_nodes(graph, number, part))
        for number, name in enumerate(graph.metadata.node_types)
        for feature in features_of(graph.node_columns(number))
    }


def _edge_features(graph: StoredGraph, part: int, edge_id_col: Sequence[str]) -> dict[str, TensorPieces]:
    return {
        f"{dgl_edge_type(edge_type)}/{feature.name}": feature.tensor(Rows.of_edges(graph, edge, "csc", part))
        for edge, edge_type in enumerate(graph.metadata.edge_types)
        for feature in features_of(without_ids(graph.edge_names[edge], graph.edge_columns(edge), edge_id_col))
    }


# ------------------------------------------------------------------------------------------------------------ config


def _config(graph: StoredGraph, book: PartBook, halo_hops: int, *, graphbolt: bool) -> dict[str, object]:
    """Return the partition config. Empty ranges repeat the end before, so that ranges never descend."""
    metadata = graph.metadata
    parts = range(metadata.num_parts)
    node_types = [dgl_name(name) for name in metadata.node_types]
    edge_types = [dgl_edge_type(edge_type) for edge_type in metadata.edge_types]
    graph_key, graph_file = ("part_graph_graphbolt", FUSED_NAME) if graphbolt else ("part_graph", "graph.dgl")
    return {
        "graph_name": metadata.graph_name,
        "num_nodes": book.num_nodes,
        "num_edges": book.num_edges,
        "part_method": metadata.partition_by,
        "num_parts": metadata.num_parts,
        "halo_hops": halo_hops,
        "node_map": {name: [book.nodes.part_range(part, i) for part in parts] for i, name in enumerate(node_types)},
        "edge_map": {name: [book.edges.part_range(part, i) for part in parts] for i, name in enumerate(edge_types)},
        "node_map_dtype": "int64",
        "edge_map_dtype": "int64",
        "ntypes": {name: i for i, name in enumerate(node_types)},
        "etypes": {name: i for i, name in enumerate(edge_types)},
        **{
            f"part-{part}": {
                "node_feats": f"part{part}/node_feat.dgl",
                "edge_feats": f"part{part}/edge_feat.dgl",
                graph_key: f"part{part}/{graph_file}",
            }
            for part in parts
        },
    }
