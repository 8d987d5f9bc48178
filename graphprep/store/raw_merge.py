"""The nodes of a type in the order of their raw IDs, each partition having its own in order; or as they lie."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.texts import concat_texts, count_up_to, sort_texts
from graphprep.model.errors import DataError
from graphprep.storage.faults import display_url
from graphprep.store.assign import RawBatch
from graphprep.store.items import FIX, StoredArrays
from graphprep.store.paths import NodePaths, node_folder
from graphprep.store.text_source import TextSource

Ints = NDArray[np.int64]
_ROW_BYTES = 64  # of a node while it is merged: its raw ID, its typed ID, and their sorted copies
_LEAST_ROWS = 1 << 10  # of a partition read at once while many are merged
_MOST_ROWS = 1 << 16


@dataclass(frozen=True)
class OrderedNodes:
    """Nodes, ascending by raw ID or by typed ID: their raw IDs, and their typed ones (int64[k])."""

    raw: RawBatch
    typed: Ints


def nodes_by_raw_id(store: StoredArrays, number: int, piece_bytes: int) -> Iterator[OrderedNodes]:
    """Yield all nodes of a type, ascending by raw ID: integers by value, strings by their UTF-8 bytes.

    Raises DataError for a ``raw_order`` that is none.
    """
    metadata = store.metadata
    sizes = metadata.num_nodes_per_chunk[number]
    rows = min(_MOST_ROWS, max(1, piece_bytes // _ROW_BYTES))
    if metadata.node_schemas[number].raw_ids == "identity":
        yield from nodes_by_typed_id(store, number, piece_bytes)
        return
    filled = [part for part, size in enumerate(sizes) if size]
    rows = min(rows, max(_LEAST_ROWS, rows // max(1, len(filled))))
    yield from _merge([_PartNodes(store, number, part, rows) for part in filled])


def nodes_by_typed_id(store: StoredArrays, number: int, piece_bytes: int) -> Iterator[OrderedNodes]:
    """Yield all nodes of a type by typed ID, whatever the order of their raw IDs."""
    metadata = store.metadata
    sizes = metadata.num_nodes_per_chunk[number]
    rows = min(_MOST_ROWS, max(1, piece_bytes // _ROW_BYTES))
    if metadata.node_schemas[number].raw_ids == "identity":
        sizes = (sum(sizes),)
    for part, size in enumerate(sizes):
        nodes = _PartNodes(store, number, part, rows)
        for start in range(0, size, rows):
            yield nodes.read(np.arange(start, min(start + rows, size)))


class _PartNodes:
    """The nodes of a partition, ascending by raw ID, of which some are read and not taken yet."""

    def __init__(self, store: StoredArrays, number: int, part: int, rows: int) -> None:
        metadata = store.metadata
        folder, schema = node_folder(metadata.node_types[number]), metadata.node_schemas[number]
        self._rows = rows
        self._size = metadata.num_nodes_per_chunk[number][part]
        self._first = sum(metadata.num_nodes_per_chunk[number][:part])
        self._open = partial(store.array, part)  # for each piece again: with many partitions there are too many files
        self._folder = folder
        self._kind = schema.raw_ids
        self._is_ordered = schema.node_order is None
        self._at = 0
        self._held = OrderedNodes(RawBatch(np.empty(0, np.uint64)), np.empty(0, np.int64))

    def fill(self) -> bool:
        """Read on if nothing is left; return whether there is something."""
        if not self._held.typed.size and self._at < self._size:
            stop = min(self._at + self._rows, self._size)
            self._held = self.read(self._read_rows(self._at, stop))
            if not self._is_ordered:
                self._check_ascending(self._held.raw)
            self._at = stop
        return bool(self._held.typed.size)

    def _check_ascending(self, raw: RawBatch) -> None:
        """Raise DataError where raw IDs do not ascend along ``raw_order``."""
        if raw.texts is None:
            numbers = raw.numbers.view(np.int64) if raw.is_signed else raw.numbers
            bad = numbers[1:] <= numbers[:-1]
        else:
            bad = np.diff(np.asarray(sort_texts(*raw.texts), np.int64)) != 1
        if bad.any():
            place = f"{display_url(self._open(NodePaths(self._folder).raw_order).url)}[{self._at + int(np.argmax(bad)) + 1}]"
            raise DataError("expected raw IDs to ascend in this order", place=place, fix=FIX)

    @property
    def first(self) -> Any:
        """Return the lowest raw ID that is held: an int, or bytes."""
        return _value(self._held.raw, 0)

    @property
    def last(self) -> Any:
        """Return the highest raw ID that is held, None where nothing more is to be read."""
        return None if self._at == self._size else _value(self._held.raw, -1)

    def take(self, bound: Any) -> OrderedNodes:
        """Take the nodes up to a raw ID, all that are held for None."""
        held = self._held
        cut = held.typed.size if bound is None else _count_up_to(held.raw, bound)
        self._held = _slice(held, cut, held.typed.size)
        return _slice(held, 0, cut)

    def _read_rows(self, start: int, stop: int) -> Ints:
        if self._is_ordered:
            return np.arange(start, stop)
        order = self._open(NodePaths(self._folder).raw_order)
        rows = np.asarray(order.read(start, stop), np.int64)
        bad = (rows < 0) | (rows >= self._size)
        if bad.any():
            at = int(np.argmax(bad))
            place = f"{display_url(order.url)}[{start + at}]"
            raise DataError(f"expected a local ID in [0, {self._size}), found {rows[at]}", place=place, fix=FIX)
        return rows

    def read(self, rows: Ints) -> OrderedNodes:
        """Read some nodes, by local ID."""
        return OrderedNodes(self._read_raw(rows), rows + self._first)

    def _read_raw(self, rows: Ints) -> RawBatch:
        if self._kind == "identity":
            return RawBatch(rows.view(np.uint64))
        if self._kind == "string":
            paths = NodePaths(self._folder).texts
            offsets, values = self._open(paths.offsets), self._open(paths.values)
            texts = TextSource(offsets, values, is_local=offsets.is_local).take(rows)
            return RawBatch(np.zeros(rows.size, np.uint64), texts=(texts.offsets, texts.values))
        found = self._open(NodePaths(self._folder).raw_ids).take(rows)
        return RawBatch(found.view(np.uint64), is_signed=found.dtype == np.int64)


def _merge(parts: Sequence[_PartNodes]) -> Iterator[OrderedNodes]:
    """Merge what is held of the partitions, as far as all of it is known; read on; and so on."""
    while parts := [part for part in parts if part.fill()]:
        lasts = [part.last for part in parts]
        bound = min((last for last in lasts if last is not None), default=None)
        taken = [part.take(bound) for part in parts if bound is None or part.first <= bound]
        yield taken[0] if len(taken) == 1 else _sort(taken)


def _sort(pieces: Sequence[OrderedNodes]) -> OrderedNodes:
    typed, first = np.concatenate([piece.typed for piece in pieces]), pieces[0].raw
    numbers = np.concatenate([piece.raw.numbers for piece in pieces])
    if first.texts is None:
        order = np.argsort(numbers.view(np.int64) if first.is_signed else numbers, kind="stable")
        return OrderedNodes(RawBatch(numbers[order], first.is_signed), typed[order])
    batch = RawBatch(numbers, texts=concat_texts([piece.raw.texts for piece in pieces if piece.raw.texts is not None]))
    assert batch.texts is not None
    order = np.asarray(sort_texts(*batch.texts), np.int64)
    return OrderedNodes(batch.take(order), typed[order])


def _value(raw: RawBatch, at: int) -> Any:
    if raw.texts is None:
        return int((raw.numbers.view(np.int64) if raw.is_signed else raw.numbers)[at])
    offsets, values = raw.texts
    row = at % raw.size
    return values[offsets[row] : offsets[row + 1]].tobytes()


def _count_up_to(raw: RawBatch, bound: Any) -> int:
    if raw.texts is not None:
        return count_up_to(*raw.texts, bound)
    numbers = raw.numbers.view(np.int64) if raw.is_signed else raw.numbers
    return int(np.searchsorted(numbers, numbers.dtype.type(bound), side="right"))


def _slice(nodes: OrderedNodes, start: int, stop: int) -> OrderedNodes:
    texts = nodes.raw.texts
    if texts is not None:
        offsets, values = texts
        texts = offsets[start : stop + 1] - offsets[start], values[offsets[start] : offsets[stop]]
    return OrderedNodes(RawBatch(nodes.raw.numbers[start:stop], nodes.raw.is_signed, texts), nodes.typed[start:stop])
