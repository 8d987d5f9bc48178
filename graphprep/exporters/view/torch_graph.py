"""A stored graph as tensors: the edges of partitions, and what belongs to nodes by their IDs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.view.column_rows import Rows
from graphprep.exporters.view.graph import StoredGraph, slices
from graphprep.kernels.cpu.ids.part_graph import number_rows
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import ColumnSchema, Layout
from graphprep.store.columns.torch_rows import in_part, label_dtype, read_labels
from graphprep.store.items import FIX

Ints = NDArray[np.int64]
STEP = 1 << 17  # nodes or edges of a piece


# ---------------------------------------------------------------------------------------------- edges


def owners(graph: StoredGraph, edge: int, layout: Layout, part: int) -> TensorPieces:
    """Return the IDs of the ends that own a partition's edges, in the layout's row order: destinations in CSC."""
    number = _owner(graph, edge, layout)
    first = int(graph.node_offsets(number)[part])

    def pieces() -> Iterator[Ints]:
        indptr = graph.indptr(edge, layout, part)
        for low, high in slices(int(indptr[-1]), STEP):
            yield graph.to_ids(number, number_rows(indptr, first, low, high))

    return TensorPieces("int64", (graph.num_edges(edge, layout, part),), pieces)


def others(graph: StoredGraph, edge: int, layout: Layout, part: int) -> TensorPieces:
    """Return the IDs of the other ends of a partition's edges, in the layout's row order: sources in CSC."""
    src, dst = graph.ends_of(edge)
    number = src if layout == "csc" else dst

    def pieces() -> Iterator[Ints]:
        items = graph.indices(edge, layout, part)
        for low, high in slices(items.size, STEP):
            yield graph.to_ids(number, items.read(low, high))

    return TensorPieces("int64", (graph.num_edges(edge, layout, part),), pieces)


def edge_ids(graph: StoredGraph, edge: int, layout: Layout, part: int) -> TensorPieces:
    """Return the edge IDs of a partition's edges, in the layout's row order; edge rows where the store has none."""
    size = graph.num_edges(edge, layout, part)
    return TensorPieces("int64", (size,), lambda: (graph.edge_numbers(edge, layout, part, *cut) for cut in slices(size, STEP)))


def edge_book(
    graph: StoredGraph,
    edge: int,
    layout: Layout,
    ids_of: Callable[[StoredGraph, int, Layout, int], TensorPieces] = edge_ids,
    size: int | None = None,
) -> TensorPieces:
    """Return the partition of every edge, by edge ID: int64[size], None: of as many as there are; 0 where there is no edge."""
    size = graph.all_edges.metadata.num_edges_per_type[edge] if size is None else size
    dtype = np.min_scalar_type(max(0, graph.metadata.num_parts - 1))
    window = max(STEP, graph.room.held_bytes // dtype.itemsize)

    def pieces() -> Iterator[NDArray[Any]]:
        for low, high in slices(size, window):
            found = np.zeros(high - low, dtype)
            for part in range(1, graph.metadata.num_parts):
                for ids in ids_of(graph, edge, layout, part).pieces():
                    if ids.size and not 0 <= ids.min() <= ids.max() < size:
                        name = f"edge IDs of {graph.edge_names[edge]}, partition {part}"
                        raise DataError(f"they must be those of {size} edges, found {ids.max()}", place=name, fix=FIX)
                    inside = ids if high - low == size else ids[(ids >= low) & (ids < high)]
                    found[inside - low] = part
            yield from (found[start:stop] for start, stop in slices(found.size, STEP))

    return TensorPieces("int64", (size,), pieces)


def offsets_by_id(graph: StoredGraph, edge: int, layout: Layout, part: int) -> TensorPieces:
    """Return where the rows of all nodes begin among a partition's edges: int64[n + 1], rows by the IDs that trainers see.

    Nodes of other partitions have empty rows. Raises UsageError where the partition's rows are not in the order of these IDs.
    """
    number = _owner(graph, edge, layout)
    size = graph.metadata.num_nodes_per_type[number]
    make = _typed_offsets if graph.ids_are_typed(number) else _raw_offsets
    return TensorPieces("int64", (size + 1,), lambda: make(graph, number, graph.indptr(edge, layout, part), part))


def _typed_offsets(graph: StoredGraph, number: int, indptr: Ints, part: int) -> Iterator[Ints]:
    before, last = graph.node_offsets(number)[part : part + 2].tolist()
    yield from (np.zeros(high - low, np.int64) for low, high in slices(before, STEP))
    yield from (indptr[low:high] for low, high in slices(indptr.size, STEP))
    after = graph.metadata.num_nodes_per_type[number] - last
    yield from (np.full(high - low, indptr[-1]) for low, high in slices(after, STEP))


def _raw_offsets(graph: StoredGraph, number: int, indptr: Ints, part: int) -> Iterator[Ints]:
    with graph.room.scratch.inner() as scratch:
        offsets = scratch.zeros(graph.metadata.num_nodes_per_type[number] + 1, np.int64)
        row = 0
        for ids in graph.ids_in_part(number, part):
            offsets[ids + 1] = np.diff(indptr[row : row + ids.size + 1])
            row += ids.size
        total = 0
        for low, high in slices(offsets.size, STEP):
            some = np.cumsum(offsets[low:high]) + total
            total = int(some[-1])
            yield some


def joined_offsets(graph: StoredGraph, edge: int, layout: Layout) -> TensorPieces:
    """Return where the rows of all nodes begin among the edges of all partitions: int64[n + 1], rows in typed order."""
    size = graph.metadata.num_nodes_per_type[_owner(graph, edge, layout)]

    def pieces() -> Iterator[Ints]:
        first = np.int64(0)
        yield np.zeros(1, np.int64)
        for part in range(graph.metadata.num_parts):
            indptr = graph.indptr(edge, layout, part)
            for low, high in slices(indptr.size - 1, STEP):
                yield indptr[low + 1 : high + 1] + first
            first += indptr[-1]

    return TensorPieces("int64", (size + 1,), pieces)


def rows_ascend(graph: StoredGraph, number: int, parts: Iterable[int]) -> bool:
    """Return whether the nodes of some partitions, one after another, stand in the order of the IDs that trainers see."""
    if graph.ids_are_typed(number):
        return True
    last = -1
    for part in parts:
        for ids in graph.ids_in_part(number, part):
            if ids.size and (ids[0] <= last or (ids[1:] <= ids[:-1]).any()):
                return False
            last = int(ids[-1]) if ids.size else last
    return True


def check_rows_ascend(graph: StoredGraph, number: int, parts: Iterable[int], what: str) -> None:
    """Raise UsageError where the nodes of partitions do not stand in the order of their IDs, which ``what`` needs."""
    if not rows_ascend(graph, number, parts):
        name = graph.metadata.node_types[number]
        raise UsageError(
            f"{what} needs nodes in the order of their IDs, and those of type {name!r} are in another order",
            fix="give --ids typed: nodes are then numbered in the store's order",
        )


def _owner(graph: StoredGraph, edge: int, layout: Layout) -> int:
    src, dst = graph.ends_of(edge)
    return dst if layout == "csc" else src


# ---------------------------------------------------------------------------------------------- nodes


def by_id(
    graph: StoredGraph,
    number: int,
    dtype: str,
    item_shape: tuple[int, ...],
    read: Callable[[int, int, int], NDArray[Any]],
) -> TensorPieces:
    """Return what belongs to the nodes of a type, by the IDs that trainers see.

    ``read(part, low, high)`` returns it for the partition's nodes [low, high), in typed order.
    """
    counts = graph.metadata.num_nodes_per_chunk[number]
    size, width = sum(counts), math.prod(item_shape)
    step = max(1, STEP // max(1, width))

    def in_order() -> Iterator[NDArray[Any]]:
        for part, count in enumerate(counts):
            for low, high in slices(count, step):
                yield read(part, low, high)

    def scattered() -> Iterator[NDArray[Any]]:
        with graph.room.scratch.inner() as scratch:
            values = scratch.zeros(size * width, dtype).reshape(size, width)
            first = 0
            for piece in in_order():
                rows = len(piece)
                values[graph.to_ids(number, np.arange(first, first + rows))] = piece.reshape(rows, width)
                first += rows
            yield from (values[low:high] for low, high in slices(size, step))

    return TensorPieces(dtype, (size, *item_shape), in_order if graph.ids_are_typed(number) else scattered)


def node_book(graph: StoredGraph, number: int) -> TensorPieces:
    """Return the partition of every node, by the IDs that trainers see: int64[n]."""
    dtype = np.min_scalar_type(max(0, graph.metadata.num_parts - 1))
    book = by_id(graph, number, dtype.name, (), lambda part, low, high: np.full(high - low, part, dtype))
    return TensorPieces("int64", book.shape, book.pieces)


def ids_in_part(graph: StoredGraph, number: int, part: int) -> TensorPieces:
    """Return the IDs of a partition's nodes, in typed order."""
    shape = (graph.metadata.num_nodes_per_chunk[number][part],)
    return TensorPieces("int64", shape, lambda: graph.ids_in_part(number, part))


def nodes_where(
    graph: StoredGraph, number: int, part: int, column: ColumnSchema, value: int, labels: Sequence[ColumnSchema] = ()
) -> TensorPieces:
    """Return the IDs of a partition's nodes whose column has a value, and that have the labels: int64[k], in typed order."""
    rows = Rows.of_nodes(graph, number, part)
    first = int(graph.node_offsets(number)[part])

    def found() -> Iterator[Ints]:
        for low, high in slices(rows.size, STEP):
            mask = in_part(rows, column, value, labels, low, high)
            yield graph.to_ids(number, np.flatnonzero(mask) + (first + low))

    return TensorPieces("int64", (sum(ids.size for ids in found()),), found)


def labels_by_id(graph: StoredGraph, number: int, column: ColumnSchema) -> TensorPieces:
    """Return the label of every node, by the IDs that trainers see."""
    parts = [Rows.of_nodes(graph, number, part) for part in range(graph.metadata.num_parts)]
    return by_id(
        graph,
        number,
        label_dtype(column),
        column.item_shape,
        lambda part, low, high: read_labels(parts[part], column, low, high),
    )


def concat(tensors: Sequence[TensorPieces]) -> TensorPieces:
    """Return tensors of one dtype and item shape, one behind the other."""
    shape = (sum(one.shape[0] for one in tensors), *tensors[0].shape[1:])
    return TensorPieces(tensors[0].dtype, shape, lambda: itertools.chain.from_iterable(one.pieces() for one in tensors))
