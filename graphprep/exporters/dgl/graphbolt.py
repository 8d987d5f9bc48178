"""A dataset for GraphBolt that is preprocessed already: what ``OnDiskDataset`` reads when it need not preprocess.

Source: DGL 2.1, ``dgl.graphbolt.OnDiskDataset`` and what its preprocessing writes.
"""

from __future__ import annotations

import json
import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from hashlib import md5
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.dgl.columns import Feature, dgl_edge_type, dgl_name, features_of, find_unsupported, plan_notes
from graphprep.exporters.dgl.graphbolt_graph import FUSED_NAME, ORIGINAL_EDGE_ID, FusedGraph, fitting_dtype, type_dtype
from graphprep.exporters.dgl.graphbolt_tasks import write_tasks
from graphprep.exporters.dgl.part_nodes import out_of_range, step_of
from graphprep.exporters.formats.torch_files import write_pt
from graphprep.exporters.formats.torch_pickle import TensorPieces, tensor
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.joined_rows import JoinedBlock, JoinedRows, SingleGraph
from graphprep.exporters.view.torch_graph import concat, rows_ascend
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, MessageEdges, Side, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import SIDE_ROLES, ColumnSchema, edge_type_path, path_name
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.cells import Cells
from graphprep.store.paths import ColumnPaths

FOLDER = "preprocessed"
METADATA_NAME = f"{FOLDER}/metadata.yaml"
HASHES_NAME = f"{FOLDER}/dataset_hash_value.txt"
_IS_REMOVED = (
    f"OnDiskDataset removes the folder {FOLDER} unless it is opened with force_preprocess=False; with option opened_as=PATH it "
    "has hashes to know it by"
)


@dataclass(frozen=True)
class GraphBoltExporter:
    """Writes ``preprocessed/`` for ``OnDiskDataset(path, include_original_edge_id=…, force_preprocess=False)``.

    With ``opened_as`` hashes of all files are written.
    """

    name: ClassVar[str] = "graphbolt"
    loads_in: ClassVar[str] = "dgl.graphbolt.OnDiskDataset, FusedCSCSamplingGraph"
    carries: ClassVar[str] = "all dense columns; splits as train, validation and test sets with labels; no texts, no lists"
    needs: ClassVar[str] = "edges by destination (csc), their columns by edge ID; nodes in the order of raw IDs"
    root_file: ClassVar[str] = METADATA_NAME
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"
    message_edges: ClassVar[MessageEdges | None] = "train"
    edge_sets: ClassVar[str] = "the sets of the tasks have the edges of each part"
    negatives: ClassVar[str] = "in the sets of the task link_prediction, behind each edge, with labels and indexes"

    include_original_edge_id: Annotated[
        bool, "edges know their edge IDs, by which edge features are fetched; say the same to OnDiskDataset"
    ] = True
    in_memory: Annotated[bool, "features are read into memory when the dataset is opened, else mapped"] = True
    opened_as: Annotated[
        str | None, "path that OnDiskDataset is going to get, letter by letter; force_preprocess need not be given then"
    ] = None

    @property
    def file_digest(self) -> str | None:
        """Return the hash that GraphBolt knows files by, where hashes are written."""
        return "md5" if self.opened_as else None

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """Ask for one run of nodes by raw ID, edges by destination, and edge columns by edge ID.

        Raises UsageError for a graph without an edge type.
        """
        if not metadata.edge_types:
            raise UsageError("the graph has no edge type, and GraphBolt's graph cannot be without", fix="add one")
        need = StoreNeed(("csc",), "input", split_edges=True)
        if not _is_in_order(metadata):
            # One partition is by raw ID whatever the method; a store that has this one already would stay as it is.
            need = replace(need, num_parts=1, partition_by="hash" if metadata.partition_by == "range" else "range")
        notes = plan_notes(metadata) if self.opened_as else (*plan_notes(metadata), _IS_REMOVED)
        return ExportPlan(need, find_unsupported(metadata), notes, hands_times=True, dtypes="trainer")

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """Write the graph, features and sets, then their list."""
        import yaml

        _check_order(graph)
        whole = _NumberedGraph(graph)
        write_pt(out, f"{FOLDER}/{FUSED_NAME}", self._fused(whole).value())
        features = list(_features(graph, is_typed=whole.is_typed))
        for file in features:
            file.write(out)
        listed = {
            "dataset_name": graph.metadata.graph_name,
            "graph_topology": {"type": "FusedCSCSamplingGraph", "path": f"{FOLDER}/{FUSED_NAME}"},
            "include_original_edge_id": self.include_original_edge_id,
            "feature_data": [
                {**file.entry(), "format": "numpy", "in_memory": self.in_memory, "path": file.path} for file in features
            ],
            "tasks": write_tasks(graph, out, FOLDER, is_typed=whole.is_typed),
        }
        root = yaml.safe_dump(listed, sort_keys=False, allow_unicode=True).encode()
        if self.opened_as:
            out.tell_rest(HASHES_NAME)
            own = md5(root, usedforsecurity=False).hexdigest()
            out.write(HASHES_NAME, _hashes(self.opened_as, {**out.digests, METADATA_NAME: own}))
        out.write(METADATA_NAME, root)

    def _fused(self, whole: _NumberedGraph) -> FusedGraph:
        index, edge_index = fitting_dtype(whole.num_nodes), fitting_dtype(whole.joined.num_items)
        attributes = whole.edge_attributes()
        if self.include_original_edge_id:
            attributes[ORIGINAL_EDGE_ID] = whole.joined.tensor(edge_index, whole.edge_ids)
        return FusedGraph(
            TensorPieces(edge_index, (whole.num_nodes + 1,), whole.joined.indptr),
            whole.joined.tensor(index, whole.sources),
            node_attributes=whole.node_attributes(),
            edge_attributes=attributes,
            **(whole.types(index) if whole.is_typed else {}),
        )


class _NumberedGraph:
    """All nodes of a graph in one run, types by name, and their in-edges, those of a node by type, types by name."""

    def __init__(self, graph: StoredGraph) -> None:
        self._graph = graph
        metadata = graph.metadata
        self.node_names = sorted((dgl_name(name), number) for number, name in enumerate(metadata.node_types))
        self.edge_names = sorted((dgl_edge_type(edge_type), edge) for edge, edge_type in enumerate(metadata.edge_types))
        sizes = [metadata.num_nodes_per_type[number] for _, number in self.node_names]
        self.offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        self._first = {number: int(self.offsets[at]) for at, (_, number) in enumerate(self.node_names)}
        self._type_ids = {edge: at for at, (_, edge) in enumerate(self.edge_names)}
        parts = range(metadata.num_parts)
        self.joined = SingleGraph(tuple(self._block(number, part) for _, number in self.node_names for part in parts))

    @property
    def is_typed(self) -> bool:
        """Return whether there are several types of nodes or edges: GraphBolt names types then, and only then."""
        return len(self.node_names) > 1 or len(self.edge_names) > 1

    @property
    def num_nodes(self) -> int:
        """Return the number of nodes of all types."""
        return int(self.offsets[-1])

    def types(self, index: str) -> dict[str, Any]:
        """Return what a graph of several types has besides."""
        return {
            "node_type_offset": tensor(self.offsets, index),
            "type_per_edge": self.joined.tensor(type_dtype(len(self.edge_names)), self._types),
            "node_type_to_id": {name: at for at, (name, _) in enumerate(self.node_names)},
            "edge_type_to_id": {name: at for at, (name, _) in enumerate(self.edge_names)},
        }

    def sources(self, part: int, edge: int, low: int, high: int) -> NDArray[np.int64]:
        """Return sources among all nodes.

        Raises DataError where one is no node.
        """
        number, metadata = self._graph.ends_of(edge)[0], self._graph.metadata
        typed = self._graph.indices(edge, "csc", part).read(low, high).astype(np.int64)
        wrong = (typed < 0) | (typed >= metadata.num_nodes_per_type[number])
        if wrong.any():
            raise out_of_range(int(typed[np.argmax(wrong)]), metadata.node_types[number])
        return typed + self._first[number]

    def edge_ids(self, part: int, edge: int, low: int, high: int) -> NDArray[np.int64]:
        """Return edge IDs."""
        return self._graph.edge_numbers(edge, "csc", part, low, high)

    def node_attributes(self) -> dict[str, TensorPieces]:
        """Return the weights and times that nodes of all types have."""
        numbers = [number for _, number in self.node_names]
        found = {}
        for column in _shared([self._graph.node_columns(number) for number in numbers]):
            parts = [(number, part) for number in numbers for part in range(self._graph.metadata.num_parts)]
            pieces = [Feature(column.name, column).tensor(Rows.of_nodes(self._graph, *at)) for at in parts]
            found[column.name] = concat(pieces)
        return found

    def edge_attributes(self) -> dict[str, TensorPieces]:
        """Return the weights and times that edges of all types have, in the order of the graph's edges."""
        graph = self._graph

        def read(column: ColumnSchema, part: int, edge: int, low: int, high: int) -> NDArray[Any]:
            if graph.metadata.primary_layout == "csc":
                return graph.edge_cells(edge, "csc", part, column, low, high).flat
            stem, ids = graph.store.edge_column_stem(edge, "input", column), graph.edge_numbers(edge, "csc", part, low, high)
            present = graph.store.array(0, ColumnPaths(stem).present).take(ids) if column.optional else None
            cells = Cells(None, graph.store.array(0, f"{stem}.npy").take(ids).reshape(-1, 1))
            return graph.with_times(cells, edge, column, present).flat

        shared = _shared([graph.edge_columns(edge) for _, edge in self.edge_names])
        return {one.name: self.joined.tensor(one.dtype, lambda *at, one=one: read(one, *at)) for one in shared}

    def _types(self, _: int, edge: int, low: int, high: int) -> NDArray[np.int64]:
        return np.full(high - low, self._type_ids[edge])

    def _block(self, number: int, part: int) -> JoinedBlock:
        graph = self._graph
        edges = tuple(edge for _, edge in self.edge_names if graph.ends_of(edge)[1] == number)
        tables = [graph.indptr(edge, "csc", part) for edge in edges]
        size = graph.metadata.num_nodes_per_chunk[number][part]
        return JoinedBlock(part, edges, JoinedRows(size, tables, step_of(graph), graph.room.threads))


def _shared(columns: list[tuple[ColumnSchema, ...]]) -> list[ColumnSchema]:
    """Return the weights and times (scalars) that all types have with one dtype."""
    found = []
    for column in columns[0]:
        others = [next((one for one in some if (one.name, one.role) == (column.name, column.role)), None) for some in columns]
        kinds = {None if one is None else (one.kind, one.dtype, one.item_shape) for one in others}
        if column.role in SIDE_ROLES and kinds == {("dense", column.dtype, ())}:
            found.append(column)
    return found


@dataclass(frozen=True)
class _FeatureFile:
    """A feature of a type: where it goes, and its rows. ``type_name`` None: there is one type."""

    side: Side
    type_name: str | None
    name: str
    path: str
    values: TensorPieces

    def entry(self) -> dict[str, object]:
        """Return what the list of features says first."""
        typed = {} if self.type_name is None else {"type": self.type_name}
        return {"domain": self.side, **typed, "name": self.name}

    def write(self, out: FolderOutput) -> None:
        """Write it; a row of one number is [1], as GraphBolt wants two dimensions."""
        shape = self.values.shape if len(self.values.shape) > 1 else (*self.values.shape, 1)
        out.write_npy(self.path, self.values.dtype, shape, self.values.pieces())


def _features(graph: StoredGraph, *, is_typed: bool) -> Iterator[_FeatureFile]:
    """Yield nodes' features by node ID, and edges' by edge ID."""
    metadata = graph.metadata
    for number, name in enumerate(metadata.node_types):
        for feature in features_of(graph.node_columns(number), masks=False):
            rows = [Rows.of_nodes(graph, number, part) for part in range(metadata.num_parts)]
            path = f"{FOLDER}/node_data/{path_name(name)}/{path_name(feature.name, column=True)}.npy"
            values = concat([feature.tensor(one) for one in rows])
            yield _FeatureFile("node", dgl_name(name) if is_typed else None, feature.name, path, values)
    for edge, edge_type in enumerate(metadata.edge_types):
        for feature in features_of(graph.edge_columns(edge), masks=False):  # of all edges: their IDs find the rows
            path = f"{FOLDER}/edge_data/{edge_type_path(edge_type)}/{path_name(feature.name, column=True)}.npy"
            values = feature.tensor(Rows.of_edges(graph.all_edges, edge, "input", 0))
            yield _FeatureFile("edge", dgl_edge_type(edge_type) if is_typed else None, feature.name, path, values)


def _hashes(opened_as: str, digests: Mapping[str, str]) -> bytes:
    """Return what GraphBolt compares with the files that it finds, by their paths as it puts them together."""
    return json.dumps({posixpath.join(opened_as, path): digests[path] for path in sorted(digests)}, indent=4).encode()


def _is_in_order(metadata: GraphMetadata) -> bool:
    """Return whether nodes stand by raw ID, partition after partition."""
    is_cut_by_rank = metadata.partition_by == "range" or metadata.num_parts == 1
    return is_cut_by_rank and all(schema.node_order is None for schema in metadata.node_schemas)


def _check_order(graph: StoredGraph) -> None:
    """Raise UsageError where nodes do not lie by the IDs that trainers see, as their rows must."""
    for number, name in enumerate(graph.metadata.node_types):
        if not rows_ascend(graph, number, range(graph.metadata.num_parts)):
            raise UsageError(
                f"the nodes of type {name!r} are not in the order of their raw IDs, and GraphBolt's graph has no partitions",
                fix="leave out --partitions and --partition-by, or take typed IDs: --ids typed",
            )
