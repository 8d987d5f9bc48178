"""``metis``: the ``.graph`` file of METIS, ParMETIS, KaHIP and their kin: undirected, without loops and parallel edges.

Source: G. Karypis, METIS 5.1.0 manual, section 4.1.1.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.local import map_ordered
from graphprep.exporters.formats.text_lines import count_fields
from graphprep.exporters.plain.parmetis import write_parmetis
from graphprep.exporters.unsupported import count_types, list_unsupported
from graphprep.exporters.view.graph import StoredGraph
from graphprep.exporters.view.single import WholeGraph, WholeRows
from graphprep.kernels.cpu.text.write_text import EDGES, INTEGER, SLACK_BYTES, Template, write_nodes
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.export import ExportPlan, MessageEdges, Side, StoreNeed
from graphprep.model.metadata import GraphMetadata
from graphprep.model.schema import ColumnSchema, Layout
from graphprep.rewrite.partition.neighbors import join_neighbors, number_by_type
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FolderOutput

Ints = NDArray[np.int64]
LAYOUTS: tuple[Layout, Layout] = ("csr", "csc")
_ENTRY_BYTES = 96  # of an entry while its row is put together: keys, their order, and weights
_MOST_ROWS = 1 << 16
_SLICE = 1 << 17


@dataclass(frozen=True)
class MetisExporter:
    """Writes ``graph.graph``: in the line of a node all that it has an edge to or from, ascending, each once.

    Weights of parallel edges add up, and of both directions the larger sum counts. Weights may be several a node. Nodes of
    several types have homogeneous IDs, type after type by raw ID, and a weight for each type, 1 for their own, as DGL's tools
    for ParMETIS have it.
    """

    name: ClassVar[str] = "metis"
    loads_in: ClassVar[str] = "METIS, ParMETIS, KaHIP, NetworKit"
    carries: ClassVar[str] = "all types as one, undirected; whole weights, of one type; no loops, directions and edge IDs"
    needs: ClassVar[str] = "edges by source and destination (csr and csc)"
    root_file: ClassVar[str] = "export.json"
    node_ids: ClassVar[Literal["dense", "own"]] = "dense"
    message_edges: ClassVar[MessageEdges | None] = "all"

    weight: Annotated[str, "edge column of edge weights, whole numbers from 1 on"] = ""
    node_weight: Annotated[str, "node column of node weights, whole numbers from 0 on"] = ""
    node_size: Annotated[str, "node column of node sizes, whole numbers from 0 on"] = ""
    parmetis: Annotated[bool, "graph_nodes.txt, graph_edges.txt and graph_stats.txt for DGL's pm_dglpart instead"] = False

    def plan(self, metadata: GraphMetadata) -> ExportPlan:
        """See ``Exporter``."""
        if self.parmetis or (len(metadata.node_types), len(metadata.edge_types)) != (1, 1):
            return self._plan_types(metadata)
        edges, nodes = metadata.edge_schemas[0].columns, metadata.node_schemas[0].columns
        _check_named("weight", self.weight, edges, 0)
        _check_named("node_weight", self.node_weight, nodes, 1)
        _check_named("node_size", self.node_size, nodes, 0)
        second: Layout = "csr" if metadata.primary_layout == "csc" else "csc"
        need = StoreNeed(LAYOUTS, second if self.weight else None)
        notes = ("edges are written without direction, parallel ones as one; loops are left out",)
        return ExportPlan(need, list_unsupported(metadata, self._why_not), notes)

    def _plan_types(self, metadata: GraphMetadata) -> ExportPlan:
        """Plan a graph of several types: by raw ID, so that what METIS says of a line holds for every store of the graph."""
        if self.weight or self.node_weight or self.node_size:
            words = f"METIS takes weights of one node type and one edge type, the graph has {count_types(metadata)}"
            words = "ParMETIS gets a weight for each node type" if self.parmetis else words
            raise UsageError(words, fix="leave options weight, node_weight and node_size out")
        in_order = metadata.num_parts == 1 or metadata.partition_by == "range"
        need = StoreNeed(is_fixed=True)
        if not in_order or any(schema.node_order is not None for schema in metadata.node_schemas):
            need = replace(need, num_parts=1, partition_by="hash" if metadata.partition_by == "range" else "range")
        lines = "nodes have homogeneous IDs, from 1: type after type, by raw ID; a weight for each node type"
        notes = ("edges are written without direction and type, parallel ones as one; loops are left out", lines)
        if self.parmetis:
            lines = lines.replace("from 1", "from 0")
            notes = ("loops, and edges whose ends an earlier one has, are in graph_removed_edges.txt", lines)
            need = replace(need, input_order=True)
        return ExportPlan(need, list_unsupported(metadata, lambda side, column: "METIS has no columns"), notes)

    def export(self, graph: StoredGraph, out: FolderOutput) -> None:
        """See ``Exporter``."""
        with graph.room.scratch.inner() as scratch:
            if self.parmetis:
                room = replace(graph.room, scratch=scratch)
                numbers = number_by_type(graph.store, room)
                write_parmetis(graph, out, numbers, join_neighbors(graph.store, numbers, room, "id"), scratch)
            else:
                self._write_graph(graph, out, scratch)
        graph.reporter.advance(records=sum(graph.metadata.num_edges_per_type))

    def _write_graph(self, graph: StoredGraph, out: FolderOutput, scratch: Scratch) -> None:
        adjacency: _Adjacency
        if (len(graph.metadata.node_types), len(graph.metadata.edge_types)) == (1, 1):
            values = [name for name in (self.node_size, self.node_weight) if name]
            columns = [_column(graph.node_columns(0), name) for name in values]
            adjacency = _Undirected(graph, self.weight, columns, scratch)
        else:
            adjacency = _Homogeneous(graph, scratch)
        lines = _Lines(graph, adjacency)
        with out.open("graph.graph") as file:
            file.write(self._head(graph, adjacency.count_entries() // 2))
            for piece in lines:
                file.write(piece)

    def _head(self, graph: StoredGraph, num_edges: int) -> bytes:
        num_types = len(graph.metadata.node_types)
        if num_types > 1:
            return f"{sum(graph.metadata.num_nodes_per_type)} {num_edges} 010 {num_types}\n".encode()
        fields = [str(graph.metadata.num_nodes_per_type[0]), str(num_edges)]
        flags = "".join("1" if name else "0" for name in (self.node_size, self.node_weight, self.weight))
        if "1" in flags:
            fields.append(flags)
        if self.node_weight and (shape := _column(graph.node_columns(0), self.node_weight).item_shape):
            fields.append(str(shape[0]))
        return " ".join(fields).encode() + b"\n"

    def _why_not(self, side: Side, column: ColumnSchema) -> str | None:
        if side == "edge":
            return None if column.name == self.weight else "METIS takes the one that --option weight=NAME names"
        taken = column.name in (self.node_weight, self.node_size)
        return None if taken else "METIS takes those that --option node_weight=NAME and node_size=NAME name"


class _Adjacency(ABC):
    """What each node has an edge to or from, without itself; ``indptrs`` bound the entries it is put together of."""

    def __init__(self, graph: StoredGraph, indptrs: Sequence[Ints], width: int, weight: ColumnSchema | None = None) -> None:
        self.width, self.weight = width, weight
        self.num_nodes = sum(graph.metadata.num_nodes_per_type)
        self.most = graph.room.fit(_ENTRY_BYTES)
        self._threads = graph.room.threads
        self._indptrs = indptrs

    def cut(self) -> Iterator[tuple[int, int]]:
        """Cut nodes into ranges of at most ``most`` entries, or of one node."""
        low = 0
        while low < self.num_nodes:
            stop = min(low + _MOST_ROWS, self.num_nodes)
            ends = sum(indptr[low + 1 : stop + 1] - indptr[low] for indptr in self._indptrs)
            high = low + max(1, int(np.searchsorted(ends, self.most, side="right")))
            yield low, high
            low = high

    def is_long(self, low: int, high: int) -> bool:
        """Return whether a range is one node with too many entries."""
        return sum(int(indptr[high] - indptr[low]) for indptr in self._indptrs) > self.most

    def count_entries(self) -> int:
        """Count the neighbors of all nodes."""
        total = 0
        for is_long, group in itertools.groupby(self.cut(), key=lambda one: self.is_long(*one)):
            if is_long:
                total += sum(ids.size for low, _ in group for ids, _ in self.long_row(low))
            else:
                total += sum(map_ordered(lambda one: self.rows(*one)[1].size, group, self._threads))
        return total

    @abstractmethod
    def rows(self, low: int, high: int) -> tuple[Ints, Ints, Ints | None]:
        """Return (offsets int64[k + 1], neighbors, their weights) of nodes [low, high), neighbors ascending, each once."""

    @abstractmethod
    def long_row(self, node: int) -> Iterator[tuple[Ints, Ints | None]]:
        """Yield the neighbors of one node and their weights, ascending, in pieces."""

    @abstractmethod
    def values(self, low: int, high: int) -> Ints:
        """Return the sizes and weights of nodes [low, high): int64[width, k]."""


class _Undirected(_Adjacency):
    """Both directions of all edges: what each node has an edge to or from, without itself, by nodes' IDs."""

    def __init__(self, graph: StoredGraph, weight: str, columns: Sequence[ColumnSchema], scratch: Scratch) -> None:
        self.columns, self.whole, self.scratch = columns, WholeGraph(graph), scratch
        self.sides = [self.whole.rows(0, layout, scratch) for layout in LAYOUTS]
        width = sum(math.prod(column.item_shape) for column in columns)
        column = _column(graph.edge_columns(0), weight) if weight else None
        super().__init__(graph, [side.indptr for side in self.sides], width, column)

    def rows(self, low: int, high: int) -> tuple[Ints, Ints, Ints | None]:
        """Return (offsets int64[k + 1], neighbors, their weights) of nodes [low, high), neighbors ascending."""
        found = [self._keys(side, low, high) for side in self.sides]
        keys = _distinct(np.concatenate([some for some, _ in found]))
        offsets = np.searchsorted(keys, np.arange(high - low + 1) * self.num_nodes)
        others = keys - np.repeat(np.arange(high - low) * self.num_nodes, np.diff(offsets))
        if self.weight is None:
            return offsets, others, None
        weights = np.zeros(keys.size, np.int64)
        for some, values in found:
            order = np.argsort(some, kind="stable")
            at = np.searchsorted(some[order], keys)
            sums = np.concatenate([np.zeros(1, np.int64), np.cumsum(values[order])])
            until = np.searchsorted(some[order], keys, side="right")
            np.maximum(weights, sums[until] - sums[at], out=weights)
        return offsets, others, weights

    def long_row(self, node: int) -> Iterator[tuple[Ints, Ints | None]]:
        """Yield the neighbors of one node and their weights, ascending, in pieces."""
        with self.scratch.inner() as scratch:
            sums = [scratch.zeros(self.num_nodes, np.uint8 if self.weight is None else np.int64) for _ in self.sides]
            for side, found in zip(self.sides, sums, strict=True):
                start, stop = int(side.indptr[node]), int(side.indptr[node + 1])
                for low in range(start, stop, self.most):
                    others, weights = self._entries(side, node, node + 1, low - start, min(self.most, stop - low))
                    if weights is None:
                        found[others] = 1
                    else:
                        np.add.at(found, others, weights)
                found[node] = 0
            for low in range(0, self.num_nodes, _SLICE):
                joined = np.maximum(*(found[low : low + _SLICE] for found in sums))
                ids = np.flatnonzero(joined)
                yield ids + low, None if self.weight is None else joined[ids]

    def _keys(self, side: WholeRows, low: int, high: int) -> tuple[Ints, Ints]:
        """Return (row · nodes + neighbor, weight) of the entries of nodes [low, high), but for loops."""
        others, weights = self._entries(side, low, high, 0, -1)
        rows = np.repeat(np.arange(high - low), np.diff(side.indptr[low : high + 1]))
        kept = others != rows + low
        keys = (rows * self.num_nodes + others)[kept]
        return keys, keys if weights is None else weights[kept]

    def _entries(self, side: WholeRows, low: int, high: int, skip: int, size: int) -> tuple[Ints, Ints | None]:
        others = side.others_of(low, high, skip, size)
        if self.weight is None:
            return others, None
        values = side.values_of(self.weight, low, high, skip, size)
        return others, _whole(values, 1, f"edge column {self.weight.name!r}")

    def values(self, low: int, high: int) -> Ints:
        """Return the sizes and weights of nodes [low, high): int64[width, k]."""
        found = [np.zeros((0, high - low), np.int64)]
        for column in self.columns:
            values = self.whole.node_values_of(0, column, low, high)
            found.append(_whole(values.reshape(high - low, -1), 0, f"node column {column.name!r}").T)
        return np.ascontiguousarray(np.concatenate(found))


class _Homogeneous(_Adjacency):
    """The same of a graph of several types, whose nodes are numbered type after type; a weight for each node type."""

    def __init__(self, graph: StoredGraph, scratch: Scratch) -> None:
        sizes = graph.metadata.num_nodes_per_type
        self.borders = np.cumsum([0, *sizes], dtype=np.int64)
        room = replace(graph.room, scratch=scratch)
        self.neighbors = join_neighbors(graph.store, number_by_type(graph.store, room), room, "id")
        super().__init__(graph, [self.neighbors.indptr], len(sizes) if len(sizes) > 1 else 0)

    def rows(self, low: int, high: int) -> tuple[Ints, Ints, Ints | None]:
        """Return (offsets int64[k + 1], neighbors, None) of nodes [low, high), neighbors ascending, each once."""
        bounds = self.neighbors.indptr[low : high + 1] - self.neighbors.indptr[low]
        entries = self.neighbors.indices[self.neighbors.indptr[low] : self.neighbors.indptr[high]].astype(np.int64)
        is_first = np.ones(entries.size + 1, np.int64)
        np.not_equal(entries[1:], entries[:-1], out=is_first[1:-1])
        is_first[bounds] = 1
        kept = np.cumsum(is_first) - is_first
        return kept[bounds], entries[is_first[:-1].astype(np.bool_)], None

    def long_row(self, node: int) -> Iterator[tuple[Ints, Ints | None]]:
        """Yield the neighbors of one node, ascending, in pieces."""
        last = -1
        for low in range(int(self.neighbors.indptr[node]), int(self.neighbors.indptr[node + 1]), self.most):
            high = min(low + self.most, int(self.neighbors.indptr[node + 1]))
            entries = _distinct(self.neighbors.indices[low:high].astype(np.int64))
            yield entries[int(entries[0] == last) :], None
            last = int(entries[-1])

    def values(self, low: int, high: int) -> Ints:
        """Return the weights of nodes [low, high): int64[width, k]."""
        nodes = np.arange(low, high)
        found = [(nodes >= first) & (nodes < stop) for first, stop in itertools.pairwise(self.borders.tolist())]
        return np.array(found[: self.width], np.int64).reshape(self.width, high - low)


class _Lines:
    """The lines of all nodes: sizes and weights, then neighbors, counted from 1, with weights."""

    def __init__(self, graph: StoredGraph, adjacency: _Adjacency) -> None:
        self._adjacency = adjacency
        self._threads = graph.room.threads
        self._width = adjacency.width
        head, fields = count_fields(self._width, " ")
        entry = "<id>" if adjacency.weight is None else "<id> <weight>"
        numbers = {"id": (INTEGER, 0), "weight": (INTEGER, 1)}
        self._node = Template.parse(f"{head}<edges:{'' if head else ' '}>\n", {**fields, "edges": (EDGES, 0)})
        self._start = Template.parse(head, fields)
        self._entry = Template.parse(f" {entry}" if head else entry, numbers)
        self._more = Template.parse(f" {entry}", numbers)

    def __iter__(self) -> Iterator[bytes | memoryview]:
        ranges = self._adjacency.cut()
        for is_long, group in itertools.groupby(ranges, key=lambda one: self._adjacency.is_long(*one)):
            if not is_long:
                yield from map_ordered(lambda one: self._short(*one), group, self._threads)
                continue
            for low, _ in group:
                yield from self._long(low)

    def _short(self, low: int, high: int) -> memoryview:
        offsets, others, weights = self._adjacency.rows(low, high)
        return _write(self._node, self._adjacency.values(low, high), self._entry, others, weights, offsets)

    def _long(self, node: int) -> Iterator[bytes | memoryview]:
        head = self._adjacency.values(node, node + 1)
        none = np.zeros(0, np.int64)
        skip = 0 if self._width else 1  # the blank in front of the first neighbor
        if self._width:
            yield _write(self._start, head, self._more, none, none, np.zeros(2, np.int64))
        for others, weights in self._adjacency.long_row(node):
            if others.size:
                edges = Template.parse("<edges:>", {"edges": (EDGES, 0)})
                offsets = np.array([0, others.size])
                yield _write(edges, np.zeros((0, 1), np.int64), self._more, others, weights, offsets)[skip:]
                skip = 0
        yield b"\n"


def _write(node: Template, values: Ints, entry: Template, others: Ints, weights: Ints | None, offsets: Ints) -> memoryview:
    columns = np.stack([others + 1] if weights is None else [others + 1, weights])
    rows = offsets.size - 1
    out = np.empty(rows * node.row_bytes + others.size * (entry.row_bytes + 1) + SLACK_BYTES, np.uint8)
    values = values if values.shape[1] == rows and values.shape[0] else np.zeros((1, rows), np.int64)
    return out[: write_nodes(node, values, np.zeros((rows, 0), np.int64), entry, columns, offsets, out)].data


def _distinct(keys: Ints) -> Ints:
    """Return the different keys, ascending."""
    keys.sort()
    is_first = np.ones(keys.size, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return keys[is_first]


def _column(columns: Sequence[ColumnSchema], name: str) -> ColumnSchema:
    return next(column for column in columns if column.name == name)


def _check_named(option: str, name: str, columns: Sequence[ColumnSchema], most_axes: int) -> None:
    """Raise UsageError where an option names a column that is not there or holds no numbers that METIS has."""
    if not name:
        return
    found = [column for column in columns if column.name == name]
    if not found:
        fix = one_of((column.name for column in columns), found=name)
        raise UsageError(f"option {option}: there is no column {name!r}", fix=fix)
    column = found[0]
    if column.kind != "dense" or len(column.item_shape) > most_axes or 0 in column.item_shape:
        what = "one number" if most_axes == 0 else "numbers"
        raise UsageError(f"option {option}: column {name!r} does not hold {what} a row", fix="name another column")


def _whole(values: NDArray[Any], least: int, place: str) -> Ints:
    """Return numbers as int64.

    Raises DataError for one that is not whole, or below ``least``.
    """
    with np.errstate(invalid="ignore"):
        whole = values.astype(np.int64)
        bad = (whole != values) | (whole < least) | (values >= 2**63)
    if bad.any():
        found = values.flat[int(np.argmax(bad))]
        raise DataError(f"METIS takes whole numbers from {least} on, found {found}", place=place, fix="leave the option out")
    return whole
