"""The features that every partition of ``glt`` holds beside its own: those of the nodes that are asked for most."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from graphprep.exporters.formats.torch_pickle import TensorPieces
from graphprep.exporters.glt.top_rows import find_top_rows
from graphprep.exporters.view.graph import StoredGraph, slices
from graphprep.exporters.view.torch_features import FeatureMatrix
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import ColumnSchema, DegreeOrder
from graphprep.model.shown.texts import display_url
from graphprep.storage.faults import plain_words
from graphprep.storage.read.maps import map_file
from graphprep.storage.read.npy import MAX_HEADER_BYTES, parse_npy_header
from graphprep.store.assign import ORDERED
from graphprep.store.items import StoredArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
HotOrder = Literal[DegreeOrder, "score"]


class FeatureCache:
    """Finds the nodes of a type whose features are cached, and reads these."""

    def __init__(self, graph: StoredGraph, number: int, matrix: FeatureMatrix) -> None:
        self._graph = graph
        self._number = number
        self._matrix = matrix
        self._name = graph.metadata.node_types[number]
        self._size = graph.metadata.num_nodes_per_type[number]
        self._schema = graph.metadata.node_schemas[number]
        self._found: dict[int, Ints] = {}
        self._indptrs: dict[tuple[int, int], Ints] = {}

    def find(self, part: int, ratio: float, files: Sequence[str]) -> Ints:
        """Return the typed IDs of the nodes that a partition caches: int64[k], highest score first, ties by typed ID.

        Source: GLT, ``FrequencyPartitioner``: the share ``ratio`` of all nodes, its own ones among them. In a store that is
        ordered by hotness, the first ones of the partitions; without ``ratio`` those that it calls hot. Raises DataError
        where a file of scores does not fit.
        """
        if not ratio and self._schema.num_hot is not None:
            return self._hot()
        count = int(self._size * ratio)
        file = scores_of(files, self._name, self._graph.metadata.node_types)
        if not count or (files and file is None):
            return np.zeros(0, np.int64)
        scores = None if file is None else self._read_file(file)
        row = part if scores is not None and scores.ndim == 2 else 0
        if row not in self._found:
            self._found.clear()
            by_graph = self._ranks if self._schema.node_order in get_args(HotOrder) else self._degrees
            read = by_graph if scores is None else partial(self._listed, scores if scores.ndim == 1 else scores[row])
            self._found[row] = find_top_rows(read, self._size, count)
        return self._found[row]

    def features(self, typed: Ints) -> TensorPieces:
        """Return the features of nodes (typed IDs, any order): [k, …]."""

        def pieces() -> Iterator[NDArray[Any]]:
            step = self._graph.room.fit(self._matrix.row_bytes)
            for low, high in slices(typed.size, step):
                yield self._take(typed[low:high])

        return TensorPieces(self._matrix.dtype, (typed.size, *self._matrix.item_shape), pieces)

    def _take(self, typed: Ints) -> NDArray[Any]:
        out = None
        parts = np.searchsorted(self._offsets, typed, side="right") - 1
        for part in np.unique(parts).tolist():
            mine = np.flatnonzero(parts == part)
            values = self._matrix.join(
                [self._stored(part, column).take(typed[mine] - self._offsets[part]) for column in self._matrix.columns]
            )
            out = np.empty((typed.size, *values.shape[1:]), self._matrix.array_dtype) if out is None else out
            out[mine] = values
        assert out is not None  # of no nodes there is no piece
        return out

    def _stored(self, part: int, column: ColumnSchema) -> StoredArray:
        store = self._graph.store
        return store.array(part, f"{store.node_folder(self._number)}/{column.path}.npy")

    @cached_property
    def _offsets(self) -> Ints:
        return self._graph.node_offsets(self._number)

    def _hot(self) -> Ints:
        """Return the nodes that the store calls hot, the first ones of the partitions before their second ones."""
        num_hot = self._schema.num_hot or ()
        nodes = np.concatenate([first + np.arange(hot) for first, hot in zip(self._offsets[:-1], num_hot, strict=True)])
        return nodes[np.argsort(-self._ranks_of(nodes), kind="stable")]

    def _ranks(self, low: int, high: int) -> Floats:
        """Return scores of nodes [low, high) by which the first ones of the partitions are the highest."""
        return self._ranks_of(np.arange(low, high))

    def _ranks_of(self, typed: Ints) -> Floats:
        if self._graph.metadata.partition_by == ORDERED:
            return -typed.astype(np.float64)
        parts = np.searchsorted(self._offsets, typed, side="right") - 1
        return (self._offsets[parts] - typed).astype(np.float64)

    def _degrees(self, low: int, high: int) -> Floats:
        """Return the in-degrees of nodes [low, high) over all edge types that lead to them."""
        total = np.zeros(high - low, np.int64)
        for edge in range(len(self._graph.edge_names)):
            if self._graph.ends_of(edge)[1] != self._number:
                continue
            for part, first in enumerate(self._offsets[:-1].tolist()):
                start, stop = max(low, first), min(high, int(self._offsets[part + 1]))
                if start < stop:
                    total[start - low : stop - low] += np.diff(self._indptr(edge, part)[start - first : stop - first + 1])
        return total.astype(np.float64)

    def _indptr(self, edge: int, part: int) -> Ints:
        if (edge, part) not in self._indptrs:
            self._indptrs[edge, part] = self._graph.indptr(edge, "csc", part)
        return self._indptrs[edge, part]

    def _listed(self, scores: NDArray[Any], low: int, high: int) -> Floats:
        return scores[self._graph.to_ids(self._number, np.arange(low, high))].astype(np.float64)

    def _read_file(self, path: str) -> NDArray[Any]:
        """Map a file of scores: [n], or [P, n] where each partition has its own; by the IDs that trainers see."""
        scores = _map_scores(path)
        num_parts = self._graph.metadata.num_parts
        if scores.shape not in ((self._size,), (num_parts, self._size)) or scores.dtype.kind not in "biuf":
            raise DataError(
                f"expected {self._size} scores of nodes of type {self._name!r}, or that for each of {num_parts} partitions, "
                f"found {scores.dtype}{list(scores.shape)}",
                place=path,
                fix="write one number for each node, by the node IDs that the trainer sees",
            )
        return scores


def _map_scores(path: str) -> NDArray[Any]:
    """Map an array of numbers.

    Raises StorageError where it cannot be opened, DataError where it is none, or cut off.
    """
    with plain_words(path), Path(path).open("rb") as file:
        header = parse_npy_header(file.read(MAX_HEADER_BYTES + 12), display_url(path))
        num_bytes = file.seek(0, os.SEEK_END)
        if num_bytes < header.num_bytes:
            message = f"the array is truncated: {num_bytes} bytes of {header.num_bytes}"
            raise DataError(message, place=path, fix="write the scores with numpy.save")
        if not math.prod(header.shape):
            return np.empty(header.shape, header.dtype)
        flat = map_file(path, header.dtype, offset=header.data_start, shape=(math.prod(header.shape),))
    return np.asarray(flat).reshape(header.shape, order="F" if header.fortran_order else "C")


def scores_of(files: Sequence[str], name: str, node_types: Sequence[str]) -> str | None:
    """Return the file of scores of a node type; None where there is none."""
    return next((path for key, path in map(partial(_split, node_types), files) if key == name), None)


def check_scores(files: Sequence[str], node_types: Sequence[str]) -> None:
    """Raise UsageError where a file of scores belongs to no node type."""
    for text in files:
        if _split(node_types, text)[0] not in node_types:
            raise UsageError(
                f"option cache_scores: {text!r} names none of the node types",
                fix=f"write TYPE=FILE, of {', '.join(node_types)}",
            )


def _split(node_types: Sequence[str], text: str) -> tuple[str, str]:
    name, separator, path = text.partition("=")
    if separator:
        return name, path
    return (node_types[0] if len(node_types) == 1 else ""), text
