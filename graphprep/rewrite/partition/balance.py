"""What partitions are to have equal shares of: nodes, edges, nodes of each type, or what a column says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.edges.moves import Workspace
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.schema import ColumnSchema
from graphprep.rewrite.stored_edges import end_types
from graphprep.store.columns.stored import read_cells, read_present
from graphprep.store.items import StoredArrays, StoredCounts
from graphprep.store.paths import LayoutPaths, edge_folder, node_folder

Ints = NDArray[np.int64]
WORDS = ("nodes", "edges", "type")
_STEP = 1 << 18


@dataclass(frozen=True)
class Balances:
    """G balances of n nodes: each puts a node into a class of its own, with a weight; C classes in all.

    ``classes``: int32[G, n], ``weights``: int64[G, n]; [G, 1] where all nodes have the same. ``totals`` (int64[C]) are the
    weights of classes, ``counts`` (int64[C]) the nodes with one.
    """

    classes: NDArray[np.int32]
    weights: Ints
    totals: Ints
    counts: Ints


@dataclass(frozen=True)
class _Balance:
    """One balance: how many classes it has, and the nodes' classes and weights; None: class 0, weight 1.

    ``fill`` gives (numbers, classes, weights) of nodes, some at a time.
    """

    num_classes: int
    fill: Callable[[], Iterator[tuple[Ints, Any, Any]]] | None = None


def find_balances(store: StoredArrays, words: Sequence[str], numbers: Sequence[Ints], room: Workspace) -> Balances:
    """Return the balances that ``words`` name; ``numbers`` (int64[n] by type) are those of the nodes.

    ``edges``: those that a node owns. A column ([TYPE:]COL) of bools, of a split or of categories: nodes of each value; of
    other whole numbers: their sum. Nodes without a value do not count. Raises UsageError for what is no such column, DataError
    for a number below 0.
    """
    found = [_find(store, word, numbers) for word in words]
    num_nodes = sum(store.metadata.num_nodes_per_type)
    width = num_nodes if any(one.fill for one in found) else 1
    classes = room.scratch.zeros(len(found) * width, np.int32).reshape(len(found), width)
    weights = room.scratch.zeros(len(found) * width, np.int64).reshape(len(found), width)
    totals, counts = np.zeros((2, sum(one.num_classes for one in found)), np.int64)
    first = 0
    for number, one in enumerate(found):
        classes[number] = first
        if one.fill is None:
            weights[number] = 1
            totals[first] = counts[first] = num_nodes
        else:
            for nodes, some_classes, some_weights in one.fill():
                classes[number, nodes] = some_classes + first
                weights[number, nodes] += some_weights
            for start in range(0, width, _STEP):
                those, some = classes[number, start : start + _STEP], weights[number, start : start + _STEP]
                totals += np.bincount(those, some, totals.size).astype(np.int64)
                counts += np.bincount(those, some > 0, totals.size).astype(np.int64)
        first += one.num_classes
    return Balances(classes, weights, totals, counts)


def _find(store: StoredArrays, word: str, numbers: Sequence[Ints]) -> _Balance:
    if word == "nodes":
        return _Balance(1)
    if word == "type":
        return _Balance(len(numbers), lambda: _types(numbers))
    if word == "edges":
        return _Balance(1, lambda: _owned_edges(store, numbers))
    return _of_column(store, word, numbers)


def _types(numbers: Sequence[Ints]) -> Iterator[tuple[Ints, Any, Any]]:
    for number, those in enumerate(numbers):
        for start in range(0, those.size, _STEP):
            yield those[start : start + _STEP], number, 1


def _owned_edges(store: StoredArrays, numbers: Sequence[Ints]) -> Iterator[tuple[Ints, Any, Any]]:
    """Yield, for each edge type that adds to it, how many edges nodes own."""
    metadata, layout = store.metadata, store.metadata.primary_layout
    for edge, edge_type in enumerate(metadata.edge_types):
        owner, first = end_types(metadata, edge, layout)[0], 0
        for part, size in enumerate(metadata.num_nodes_per_chunk[owner]):
            counts = StoredCounts(store.array(part, LayoutPaths(f"{edge_folder(edge_type)}/{layout}").indptr))
            for start in range(0, size, _STEP):
                stop = min(start + _STEP, size)
                yield numbers[owner][first + start : first + stop], 0, counts.read(start, stop)
            first += size


def _of_column(store: StoredArrays, word: str, numbers: Sequence[Ints]) -> _Balance:
    metadata = store.metadata
    columns = {
        number: column
        for number, (name, schema) in enumerate(zip(metadata.node_types, metadata.node_schemas, strict=True))
        for column in schema.columns
        if word in (column.name, f"{name}:{column.name}")
    }
    if not columns:
        names = sorted({column.name for schema in metadata.node_schemas for column in schema.columns})
        raise UsageError(
            f"--balance {word!r} is none of {', '.join(WORDS)}, nor a node column",
            fix=one_of((*WORDS, *names), found=word),
        )
    sizes = [_num_classes(word, column) for column in columns.values()]

    def fill() -> Iterator[tuple[Ints, Any, Any]]:
        for number, column in columns.items():
            yield from _values(store, number, column, numbers[number])

    return _Balance(max(sizes), fill)


def _num_classes(word: str, column: ColumnSchema) -> int:
    """Return how many values are balanced apart; 1 where numbers are added up."""
    if column.kind != "dense" or column.item_shape or np.dtype(column.dtype).kind not in "biu":
        raise UsageError(f"--balance {word}: the column does not hold a whole number a node", fix="name another column")
    if column.dtype == "bool":
        return 2
    return 3 if column.role == "split" else len(column.categories or ("",))


def _values(store: StoredArrays, number: int, column: ColumnSchema, numbers: Ints) -> Iterator[tuple[Ints, Any, Any]]:
    metadata = store.metadata
    name, first = metadata.node_types[number], 0
    stem, is_class = f"{node_folder(name)}/{column.path}", _num_classes("", column) > 1
    for part, size in enumerate(metadata.num_nodes_per_chunk[number]):
        for start in range(0, size, _STEP):
            stop = min(start + _STEP, size)
            values = read_cells(store, part, stem, column, start, stop).flat.astype(np.int64)
            present = read_present(store, part, stem, column, start, stop)
            if values.min(initial=0) < 0:
                raise DataError(
                    f"--balance takes numbers from 0 on, found {values.min()}", place=f"node column {column.name!r}"
                )
            weights = np.ones_like(values) if is_class else values
            weights = weights if present is None else np.where(present, weights, 0)
            yield numbers[first + start : first + stop], values if is_class else 0, weights
        first += size
