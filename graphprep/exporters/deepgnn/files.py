"""The files of one partition, as DeepGNN's engine loads them, written front to back from blocks of rows and of edges."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.deepgnn.ids import NodeIds
from graphprep.exporters.deepgnn.rows import Numbers
from graphprep.exporters.deepgnn.samplers import Sampler
from graphprep.exporters.deepgnn.slots import PackedSlots
from graphprep.kernels.cpu.bytes.place import add_by_type
from graphprep.storage.spill.scratch import Scratch
from graphprep.storage.write.outputs import FileOutput, FolderOutput

Ints = NDArray[np.int64]

_NODE = np.dtype([("id", "<u8"), ("row", "<u8"), ("type", "<i4")])
_EDGE = np.dtype([("dst", "<u8"), ("slot", "<u8"), ("type", "<i4"), ("weight", "<f4")])


@dataclass(frozen=True)
class RowBlock:
    """Rows one after another. ``weights``: float64[k], 0 for placeholders."""

    ids: NodeIds
    types: Numbers
    degrees: Ints
    weights: NDArray[np.float64]
    slots: PackedSlots


@dataclass(frozen=True)
class EdgeBlock:
    """Edges one after another. ``times``: int64[m, 2], None where they are not written."""

    src: NodeIds
    dst: NodeIds
    types: Numbers
    weights: NDArray[np.float64]
    slots: PackedSlots
    times: Ints | None


@dataclass
class Totals:
    """Sums of weights (in the order of the rows) and numbers of elements by type, and the most slots of an element."""

    weights: NDArray[np.float64]
    counts: Ints
    most_slots: int = 0

    @classmethod
    def of(cls, num_types: int) -> Totals:
        """Begin with nothing."""
        return cls(np.zeros(num_types), np.zeros(num_types, np.int64))

    def add(self, types: Numbers, weights: NDArray[np.float64], slots: PackedSlots) -> None:
        """Add elements."""
        add_by_type(types, weights, self.weights, self.counts)
        self.most_slots = max(self.most_slots, slots.most)

    def weight_texts(self, num_types: int) -> list[float | int]:
        """Return the sums as DeepGNN writes them: 0, not 0.0, where there was nothing to add."""
        return [float(w) if count else 0 for w, count in zip(self.weights[:num_types], self.counts, strict=False)]


class PartFiles:
    """Writes the files of a partition. As a context manager they are finished on leaving, unless that is by an error."""

    def __init__(self, out: FolderOutput, part: int, node_sizes: Ints, edge_sizes: Ints, watermark: int | None) -> None:
        """Take the most elements of each number of a type."""
        self._out = out
        self._part = part
        self._stack = contextlib.ExitStack()
        self._watermark = watermark
        self._num_rows = self._num_edges = 0
        self.nodes, self.edges = Totals.of(node_sizes.size), Totals.of(edge_sizes.size)
        num_edges = int(edge_sizes.sum())
        self._map = self._open("node_{}_0.map")
        self._neighbors = self._open("neighbors_{}_0.index")
        self._edge_index = self._open("edge_{}_0.index", (num_edges + 1) * _EDGE.itemsize)
        self._node_index = self._open("node_{}_0.index")
        self._node_slots = _SlotFiles(self._open("node_features_{}_0.index"), self._open("node_features_{}_0.data"))
        self._edge_slots = _SlotFiles(self._open("edge_features_{}_0.index"), self._open("edge_features_{}_0.data"))
        self._timestamps: FileOutput | None = None
        if watermark is not None:
            self._timestamps = self._open("edge_{}_0.timestamp", 8 + 16 * num_edges)

    def __enter__(self) -> PartFiles:
        if self._timestamps is not None:
            self._timestamps.write(np.array([self._watermark], "<i8"))
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None:
            self._node_index.write(np.array([self._node_slots.num_slots], "<u8"))
            self._neighbors.write(np.array([self._num_edges], "<u8"))
            self._edge_index.write(np.array([(0, self._edge_slots.num_slots, 0, -1)], _EDGE))
            self._node_slots.finish()
            self._edge_slots.finish()
        self._stack.__exit__(kind, error, trace)

    def add_rows(self, block: RowBlock) -> None:
        """Write rows; ``degrees`` says how many edges are then to come of each."""
        size = block.ids.size
        records = np.empty(size, _NODE)
        records["id"], records["type"] = block.ids, block.types
        records["row"] = np.arange(self._num_rows, self._num_rows + size)
        self._map.write(records)
        self._node_index.write(block.slots.firsts + self._node_slots.num_slots)
        self._neighbors.write(np.cumsum(block.degrees) - block.degrees + self._num_edges)
        self._node_slots.add(block.slots)
        self.nodes.add(block.types, block.weights, block.slots)
        self._num_rows += size
        self._num_edges += int(block.degrees.sum())

    def add_edges(self, block: EdgeBlock) -> None:
        """Write edges of the rows that were written."""
        records = np.empty(block.dst.size, _EDGE)
        records["dst"], records["type"] = block.dst, block.types
        records["slot"] = block.slots.firsts + self._edge_slots.num_slots
        with np.errstate(over="ignore"):
            records["weight"] = block.weights
        self._edge_index.write(records)
        self._edge_slots.add(block.slots)
        if self._timestamps is not None and block.times is not None:
            self._timestamps.write(block.times)
        self.edges.add(block.types, block.weights, block.slots)

    def _open(self, name: str, num_bytes: int = 0) -> FileOutput:
        return self._stack.enter_context(self._out.open(name.format(self._part), num_bytes))


class _SlotFiles:
    """Where slots begin, and what they hold."""

    def __init__(self, index: FileOutput, data: FileOutput) -> None:
        self._index = index
        self._data = data
        self.num_slots = 0

    def add(self, slots: PackedSlots) -> None:
        self._index.write(slots.begins + self._data.num_bytes)
        self._data.write(slots.data)
        self.num_slots += slots.begins.size

    def finish(self) -> None:
        self._index.write(np.array([self._data.num_bytes], "<u8"))


class PartSamplers:
    """The elements of a partition by type, on their way into tables. ``prefix``: ``node`` or ``edge``."""

    def __init__(self, prefix: str, sizes: Ints, width: int, scratch: Scratch) -> None:
        self._prefix = prefix
        self._samplers = {number: Sampler(size, width, scratch) for number, size in enumerate(sizes.tolist()) if size}

    def add(self, ids: tuple[NodeIds, ...], types: Numbers, weights: NDArray[np.float64]) -> None:
        """Add elements of any types; those of negative ones are left out."""
        counts = np.bincount(types + 1)  # PLACEHOLDER is -1
        found = np.flatnonzero(counts).tolist()
        for number in (one - 1 for one in found if one):
            if len(found) == 1:
                self._samplers[number].add(ids, weights)
                continue
            mine = np.flatnonzero(types == number)
            self._samplers[number].add(tuple(one[mine] for one in ids), weights[mine])

    def write(self, part: int, out: FolderOutput) -> set[int]:
        """Write a table for each type that has elements, and return which."""
        written = {number for number, sampler in self._samplers.items() if sampler.size}
        for number in sorted(written):
            with out.open(f"{self._prefix}_{number}_{part}.alias") as file:
                for records in self._samplers[number].table():
                    file.write(records)
        return written
