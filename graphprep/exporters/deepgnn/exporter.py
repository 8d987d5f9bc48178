"""``deepgnn``: the binary files of the DeepGNN engine, byte for byte those of its own converter where that gets sorted input.

Source: DeepGNN 0.1.66 (PyPI ``deepgnn-ge``), binary data version v2.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import numpy as np

from graphprep.engine.local import map_ordered
from graphprep.exporters.deepgnn.blocks import read_blocks, read_long
from graphprep.exporters.deepgnn.edges import EdgeOrdering
from graphprep.exporters.deepgnn.files import EdgeBlock, PartFiles, PartSamplers, Totals
from graphprep.exporters.deepgnn.ids import EngineIds, TypeNumbers, name_all, unslotted
from graphprep.exporters.deepgnn.part import PartReader
from graphprep.exporters.deepgnn.times import find_lost_times
from graphprep.exporters.view.graph import StoredGraph
from graphprep.model.errors import UsageError
from graphprep.model.export import ExportPlan, MessageEdges, Side, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.storage.write.outputs import FolderOutput
from graphprep.store.columns.trainers import all_types

_NO_NODE_TIMES = "the engine has no times of nodes"
_NO_WATERMARK = "times of edges are written with --watermark"


@dataclass(frozen=True)
class DeepGnnExporter:
    """Writes the engine's files.

    ``edge_order``: ``time`` is by creation, removal, destination, as the engine's searches in temporal graphs want it.
    """

    name: ClassVar[str] = "deepgnn"
    loads_in: ClassVar[str] = "the DeepGNN engine: MemoryGraph, DistributedGraph (deepgnn-ge 0.1.60 and later)"
    carries: ClassVar[str] = "all columns of nodes and edges, as feature slots; times of edges with --watermark, none of nodes"
    needs: ClassVar[str] = "edges by source (csr), their columns in that order"
    root_file: ClassVar[str] = "meta.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "own"
    message_edges: ClassVar[MessageEdges | None] = "train"

    skip_node_sampler: Annotated[bool, "leave out the tables that the engine draws nodes from"] = False
    skip_edge_sampler: Annotated[bool, "leave out the tables that the engine draws edges from"] = False
    watermark: Annotated[int | None, "latest known time of a temporal graph; with it, edges have times"] = None
    edge_order: Annotated[
        Literal["auto", "destination", "time", "stored"],
        "of the edges of a node and type; auto: time with a watermark, else destination",
    ] = "auto"

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""
        if self.watermark is not None and not -(2**63) <= self.watermark < 2**63:
            words = f"--watermark must be a whole number of 64 bits, at most {2**63 - 1}, found {self.watermark}"
            raise UsageError(words, fix="name the latest time in the unit of the edges' times, seconds as a rule")
        need = StoreNeed(layouts=("csr",), edge_columns="csr")
        if self.watermark is not None and not -(2**63) <= self.watermark < 2**63:
            raise UsageError(f"deepgnn: watermark must fit int64, found {self.watermark}", fix="correct the option")
        notes, dated = list(TypeNumbers.of(metadata).notes), self.watermark is not None
        if any(unslotted(columns) for *_, columns in all_types(metadata)):
            notes.append("columns without a slot get the next free ones; types.json says which")
        return ExportPlan(
            need, tuple(find_lost_times(metadata, self._why_no_times)), tuple(notes), hands_times=dated, dtypes="files"
        )

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        ids, numbers = name_all(graph, out)
        found = [_write_part(self, graph, part, ids, numbers, out) for part in range(graph.metadata.num_parts)]
        node_types = _num_types(numbers.nodes, numbers.nodes_by_name, [one.nodes for one in found])
        edge_types = _num_types(numbers.edges, numbers.edges_by_name, [one.edges for one in found])
        self._write_empty_tables(found, node_types, edge_types, out)
        out.write(self.root_file, json.dumps(self._meta(found, node_types, edge_types)).encode())

    @property
    def ordering(self) -> EdgeOrdering:
        """Return how the edges of a node and type are ordered."""
        if self.edge_order == "auto":
            return "destination" if self.watermark is None else "time"
        return self.edge_order

    def _why_no_times(self, side: Side) -> str | None:
        if side == "node":
            return _NO_NODE_TIMES
        return _NO_WATERMARK if self.watermark is None else None

    def _write_empty_tables(self, found: list[PartTotals], node_types: int, edge_types: int, out: FolderOutput) -> None:
        """Write a table for each type that a partition has no elements of: the engine opens one for all."""
        for part, totals in enumerate(found):
            for prefix, count, tables in (("node", node_types, totals.node_tables), ("edge", edge_types, totals.edge_tables)):
                for number in sorted(set(range(count)) - tables) if not self._skips(prefix) else ():
                    out.write(f"{prefix}_{number}_{part}.alias", b"")

    def _skips(self, prefix: str) -> bool:
        return self.skip_node_sampler if prefix == "node" else self.skip_edge_sampler

    def _meta(self, found: list[PartTotals], node_types: int, edge_types: int) -> dict[str, Any]:
        """Return meta.json, keys in DeepGNN's order."""
        node_counts = [sum(int(one.nodes.counts[number]) for one in found) for number in range(node_types)]
        edge_counts = [sum(int(one.edges.counts[number]) for one in found) for number in range(edge_types)]
        return {
            "binary_data_version": "v2",
            "node_count": sum(node_counts),
            "edge_count": sum(edge_counts),
            "node_type_count": node_types,
            "edge_type_count": edge_types,
            "node_feature_count": max(one.nodes.most_slots for one in found),
            "edge_feature_count": max(one.edges.most_slots for one in found),
            "partitions": {
                str(part): {
                    "node_weight": one.nodes.weight_texts(node_types),
                    "edge_weight": one.edges.weight_texts(edge_types),
                }
                for part, one in enumerate(found)
            },
            "node_count_per_type": node_counts,
            "edge_count_per_type": edge_counts,
            "watermark": -1 if self.watermark is None else self.watermark,
        }


def _num_types(numbers: tuple[int, ...], by_name: bool, totals: list[Totals]) -> int:
    """Return the highest number of a type that has elements, and one; of types by position, their number."""
    some = np.flatnonzero(sum((one.counts for one in totals), start=np.zeros(1, np.int64)))
    return len(numbers) if not by_name else int(some[-1]) + 1 if some.size else 0


@dataclass(frozen=True)
class PartTotals:
    """What was written of a partition, and the numbers of the types that have a table."""

    nodes: Totals
    edges: Totals
    node_tables: set[int]
    edge_tables: set[int]


def _write_part(
    exporter: DeepGnnExporter, graph: StoredGraph, part: int, ids: EngineIds, numbers: TypeNumbers, out: FolderOutput
) -> PartTotals:
    """Write all files of a partition."""
    reader = PartReader(graph, part, ids, numbers, exporter.ordering)
    node_sizes, edge_sizes = reader.num_nodes_by_type(), reader.num_edges_by_type()
    with graph.room.scratch.inner() as scratch:
        nodes = PartSamplers("node", node_sizes * (not exporter.skip_node_sampler), 1, scratch)
        edges = PartSamplers("edge", edge_sizes * (not exporter.skip_edge_sampler), 2, scratch)
        read = functools.partial(read_blocks, reader, dated=exporter.watermark is not None)
        with PartFiles(out, part, node_sizes, edge_sizes, exporter.watermark) as files:

            def add_edges(block: EdgeBlock) -> None:
                files.add_edges(block)
                if not exporter.skip_edge_sampler:
                    edges.add((block.src, block.dst), block.types, block.weights)
                graph.reporter.advance(records=block.dst.size)

            for batch, rows, links in map_ordered(read, reader.batches(), graph.room.threads):
                files.add_rows(rows)
                if not exporter.skip_node_sampler:
                    nodes.add((rows.ids,), rows.types, rows.weights)
                for block in (
                    read_long(reader, batch, graph.room.scratch, dated=exporter.watermark is not None)
                    if links is None
                    else (links,)
                ):
                    add_edges(block)
        return PartTotals(files.nodes, files.edges, nodes.write(part, out), edges.write(part, out))
