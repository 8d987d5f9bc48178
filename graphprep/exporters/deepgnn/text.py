"""``deepgnn-edgelist``, ``deepgnn-json`` and ``deepgnn-tsv``: text for DeepGNN's decoders, sorted by node, type, destination.

Source: the decoders of DeepGNN 0.1.66 (PyPI ``deepgnn-ge``).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.exporters.deepgnn.edges import EdgeBatch
from graphprep.exporters.deepgnn.ids import NO_FEATURES, TypeNumbers, feature_slots, name_all
from graphprep.exporters.deepgnn.lines import EdgeListLines, Edges, JsonLines, LineFormat, Nodes, Places, SlotTexts, TsvLines
from graphprep.exporters.deepgnn.part import PartReader
from graphprep.exporters.deepgnn.rows import PLACEHOLDER, RowBatch, Run
from graphprep.exporters.deepgnn.texts import Texts, join_texts
from graphprep.exporters.deepgnn.times import find_lost_times, have_times, time_columns
from graphprep.exporters.unsupported import all_columns, list_unsupported
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.export import ExportPlan, MessageEdges, Side, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema
from graphprep.storage.write.outputs import FileOutput, FolderOutput

Ints = NDArray[np.int64]
TextOrder = Literal["destination", "stored"]

_NO_TIMES = "TSV has no times"
_DECLARED = "nodes that were created and have edges get a record, without which the format has no edges"
_TEMPORAL = "lines have times: DeepGNN's decoder needs is_temporal=True, graphprep convert --temporal"
_BOOLS = "DeepGNN's decoder takes every bool for true; --feature-dtype NAME=uint8 is read as it is meant"


@dataclass(frozen=True)
class _TextExporter:
    """What the three have in common; each has a line format, and says whether that has a line for every node, and times."""

    lines: ClassVar[LineFormat]
    always_declares: ClassVar[bool] = True
    with_times: ClassVar[bool] = True
    needs: ClassVar[str] = "edges by source (csr), their columns in that order; one partition"
    root_file: ClassVar[str]
    node_ids: ClassVar[Literal["dense", "own"]] = "own"
    message_edges: ClassVar[MessageEdges | None] = "train"

    edge_order: Annotated[TextOrder, "of the edges of a node and type"] = "destination"

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""

        def why_not(_: Side, column: ColumnSchema) -> str | None:
            return None if column.role in NO_FEATURES else self.lines.why_not(column)

        lost = find_lost_times(metadata, lambda _: None if self.with_times else _NO_TIMES)
        need = StoreNeed(layouts=("csr",), edge_columns="csr", num_parts=1, partition_by="range", is_fixed=True)
        notes = self._notes([column for *_, column in all_columns(metadata)])
        unsupported = (*lost, *list_unsupported(metadata, why_not))
        return ExportPlan(
            need, unsupported, (*TypeNumbers.of(metadata).notes, *notes), hands_times=self.with_times, dtypes="files"
        )

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        ids, numbers = name_all(graph, out)
        with out.open(self.root_file) as file:
            for part in range(graph.metadata.num_parts):
                reader = PartReader(graph, part, ids, numbers, self.edge_order)
                _LineReader(reader, self.lines, numbers, always_declares=self.always_declares).write(file)

    def _notes(self, columns: Sequence[ColumnSchema]) -> list[str]:
        return [_DECLARED] if any(column.role == "created" for column in columns) else []


@dataclass(frozen=True)
class EdgeListExporter(_TextExporter):
    """Writes ``graph.csv``, a line for every node and edge."""

    name: ClassVar[str] = "deepgnn-edgelist"
    loads_in: ClassVar[str] = "DeepGNN's converter (EdgeListDecoder); graphprep convert --format edgelist"
    carries: ClassVar[str] = "all columns as feature slots, and times; no features with dates"
    root_file: ClassVar[str] = "graph.csv"
    lines: ClassVar[LineFormat] = EdgeListLines()
    always_declares: ClassVar[bool] = False

    def _notes(self, columns: Sequence[ColumnSchema]) -> list[str]:
        notes = [_TEMPORAL] if have_times(columns) else []
        if any(column.dtype == "bool" and column.role not in NO_FEATURES for column in columns):
            notes.append(_BOOLS)
        return notes


@dataclass(frozen=True)
class JsonExporter(_TextExporter):
    """Writes ``graph.json``, a line for every node."""

    name: ClassVar[str] = "deepgnn-json"
    loads_in: ClassVar[str] = "DeepGNN's converter (JsonDecoder); graphprep convert --format json"
    carries: ClassVar[str] = "all columns but bool and complex ones as feature slots, and times"
    root_file: ClassVar[str] = "graph.json"
    lines: ClassVar[LineFormat] = JsonLines()


@dataclass(frozen=True)
class TsvExporter(_TextExporter):
    """Writes ``graph.tsv``, a line for every node.

    DeepGNN's decoder fails at neighbours of more than 131,072 characters.
    """

    name: ClassVar[str] = "deepgnn-tsv"
    loads_in: ClassVar[str] = "DeepGNN's converter (TsvDecoder); graphprep convert --format tsv"
    carries: ClassVar[str] = "numbers and texts as feature slots; no times, no sparse, bool or complex columns"
    root_file: ClassVar[str] = "graph.tsv"
    lines: ClassVar[LineFormat] = TsvLines()
    with_times: ClassVar[bool] = False


# ---------------------------------------------------------------------------------------------------- writing


class _LineReader:
    """Makes the lines of one partition."""

    def __init__(self, reader: PartReader, lines: LineFormat, numbers: TypeNumbers, *, always_declares: bool) -> None:
        self._reader = reader
        self._lines = lines
        self._numbers = numbers
        self._always_declares = always_declares
        self._weight_dtypes: dict[Side, str] = {side: self._weight_dtype(side) for side in ("node", "edge")}
        graph = reader.graph
        self._types: dict[Side, range] = {
            "node": range(len(graph.metadata.node_types)),
            "edge": range(len(graph.metadata.edge_types)),
        }
        self._is_dated = any(
            have_times(reader.columns(side, number)) for side, types in self._types.items() for number in types
        )

    def write(self, file: FileOutput) -> None:
        """Write all lines."""
        room = self._reader.graph.room
        for batch, pieces in map_ordered(self._read, self._reader.batches(), room.threads):
            for piece in self._long(batch, *pieces) if len(pieces) > 1 else pieces:
                file.write(piece.data)
            self._reader.graph.reporter.advance(records=batch.num_edges)

    def _read(self, batch: RowBatch) -> tuple[RowBatch, tuple[Texts, ...]]:
        """Make the lines of a batch; of a long row only what stands before and behind its edges."""
        nodes, tails = self._lines.heads(self._nodes(batch)), Texts.repeated(self._lines.tail, batch.ids.size)
        if self._reader.is_long(batch):
            return batch, (join_texts(nodes, size=1), join_texts(tails, size=1))
        edges = self._reader.edges(batch)
        is_first = np.append(True, edges.rows[1:] != edges.rows[:-1])[: edges.rows.size]
        texts = self._lines.edges(self._edges(batch, edges, is_first)).grouped(batch.degrees)
        return batch, (join_texts(nodes, texts, tails, size=batch.ids.size),)

    def _long(self, batch: RowBatch, head: Texts, tail: Texts) -> Iterator[Texts]:
        """Yield the line of a long row, or its lines, in pieces."""
        yield head
        with self._reader.graph.room.scratch.inner() as scratch:
            is_begin = True
            for edges in self._reader.long_edges(batch, scratch):
                is_first = np.zeros(edges.rows.size, bool)
                is_first[0] = is_begin
                is_begin = False
                yield self._lines.edges(self._edges(batch, edges, is_first))
        yield tail

    def _nodes(self, batch: RowBatch) -> Nodes:
        size = batch.ids.size
        types = batch.types.copy()
        is_created = types == PLACEHOLDER
        for run in batch.runs:
            kept = run.at[run.at >= 0]
            types[kept] = self._numbers.nodes[run.number]
        return Nodes(
            ids=batch.ids,
            types=types,
            weights=self._reader.weights("node", batch.runs, size).astype(self._weight_dtypes["node"]),
            times=self._times("node", batch.runs, size),
            features=self._features("node", batch.runs, size, lambda at: f"node {batch.ids[at]}"),
            is_declared=~is_created | self._always_declares,
        )

    def _edges(self, batch: RowBatch, edges: EdgeBatch, is_first: NDArray[np.bool_]) -> Edges:
        size = edges.dst.size
        src = batch.ids[edges.rows]
        return Edges(
            src=src,
            dst=edges.dst,
            types=edges.types,
            weights=self._reader.weights("edge", edges.runs, size).astype(self._weight_dtypes["edge"]),
            times=self._times("edge", edges.runs, size),
            features=self._features("edge", edges.runs, size, lambda at: f"edge from {src[at]} to {edges.dst[at]}"),
            is_first=is_first,
        )

    def _weight_dtype(self, side: Side) -> str:
        """Return the dtype as whose numbers weights are written: texts are as short as that allows."""
        metadata = self._reader.graph.metadata
        schemas: Sequence[Any] = metadata.node_schemas if side == "node" else metadata.edge_schemas
        dtypes = {column.dtype for schema in schemas for column in schema.columns if column.role == "weight"}
        return "float32" if dtypes <= {"float32"} else "float64"

    def _times(self, side: Side, runs: Sequence[Run], size: int) -> Ints | None:
        if not self._is_dated:
            return None
        out = np.empty((size, 2), np.int64)
        for run in runs:
            for at, column in enumerate(time_columns(self._reader.columns(side, run.number))):
                times = -at if column is None else self._reader.cells(side, run, column).flat[run.kept]
                out[run.target, at] = times
        return out

    def _features(self, side: Side, runs: Sequence[Run], size: int, place: Places) -> Texts:
        slots: list[SlotTexts] = []
        for run in runs:
            for one in feature_slots(self._reader.columns(side, run.number)):
                chosen = self._reader.chosen(side, run, one.column)
                cells = self._reader.cells(side, run, one.column)
                texts = self._lines.cells(one.column, cells, functools.partial(_place, place, run))
                slots.append(SlotTexts(one.column, one.slot, run.at[chosen], texts.take(chosen)))
        stated = self._reader.stated(side, runs, size)
        return self._lines.features(size, slots, np.zeros(size, np.int64) if stated is None else stated)


def _place(place: Places, run: Run, at: int) -> str:
    """Say what has the cell of an item of a run."""
    return place(int(run.at[at]))
