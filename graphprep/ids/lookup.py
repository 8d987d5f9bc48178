"""Convert IDs of a store between raw, typed, homo, part, local and previous, for nodes and edges, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.kernels.cpu.text.search import rank_texts
from graphprep.kernels.cpu.text.texts import concat_texts, hash_texts, sort_texts
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.ids import IDConverter, PartitionBook, PartSpace, TypedSpace
from graphprep.model.rows import RawTexts
from graphprep.model.schema import RawIdKind, edge_type_text, parse_edge_type
from graphprep.storage.faults import display_url
from graphprep.storage.read.arrays import ArrayReader, StoreReader
from graphprep.storage.read.urls import Storage
from graphprep.store.paths import LayoutPaths, NodePaths, edge_folder, node_folder
from graphprep.store.raw_order import find_numbers, find_texts_by_order
from graphprep.store.text_source import TextSource, take_rows

NodeSpace = Literal["raw", "typed", "homo", "part", "local", "previous"]
EdgeSpace = Literal["id", "row", "homo", "part", "local"]
NODE_SPACES: tuple[NodeSpace, ...] = ("raw", "typed", "homo", "part", "local", "previous")
EDGE_SPACES: tuple[EdgeSpace, ...] = ("id", "row", "homo", "part", "local")
_EDGE_NAMES = {"raw": "id", "typed": "row"}  # what nodes call them, where edges have the like
_SCAN = 1 << 20  # edge IDs read at once: 8 MiB
_MOST_OPEN = 128  # arrays of a local store, and texts in two each: each holds a file descriptor

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
GivenIds = NDArray[np.uint64] | NDArray[np.int64] | RawTexts


@dataclass(frozen=True)
class FoundIds:
    """What IDs became, in the order in which they came.

    ``ids`` is int64; for raw IDs it is what the store holds: int64, uint64, or Python objects where there are strings among
    them, or both uint64 and int64. ``parts`` are the partitions of local IDs; ``types`` are type numbers. Where ``found`` is
    False the others mean nothing.
    """

    ids: NDArray[np.int64] | NDArray[np.uint64] | NDArray[np.object_]
    types: Ints
    found: Flags
    parts: Ints | None = None


class IdLookup:
    """Converts IDs of one store from one space to another.

    ``from_`` and ``to``: raw, typed, homo, part, local or previous (typed, before the store was reordered) for nodes; id (edge
    ID), row (edge row), homo, part or local for edges.
    ``type_`` is the type of IDs that do not tell it; it may be left out where there is only one. IDs of another type count
    as missing. Raises UsageError for unknown spaces and types, and where the store lacks what is asked for.
    """

    def __init__(
        self, storage: Storage, store: StoreReader, *, from_: str, to: str, type_: str | None = None, edges: bool = False
    ) -> None:
        self.edges = edges
        self.from_ = _space(from_, "--from", edges=edges)
        self.to = _space(to, "--to", edges=edges)
        self._storage = storage
        self._store = store
        converter, book = IDConverter(store.metadata), PartitionBook(store.metadata)
        self._typed: TypedSpace = converter.edges if edges else converter.nodes
        self._parted: PartSpace = book.edges if edges else book.nodes
        self.type_names = self._typed.types.names
        self.type_number = self._find_type(type_)
        stored = _StoredIds(storage, store, self._parted, self.type_names, edges)
        kept = lru_cache(_MOST_OPEN if storage.is_local(store.url) else None)
        self._array, self._text_source = kept(stored.array), kept(stored.texts)
        self._check_stored()

    @property
    def one_type(self) -> bool:
        """Return whether all IDs found are of one type, so that it need not be told."""
        return self.type_number is not None

    @property
    def scans(self) -> bool:
        """Return whether a call may read all that there is, so that large blocks pay."""
        if self.from_ in ("id", "previous"):
            return self.to != self.from_
        return self.from_ == "raw" and not self._storage.is_local(self._store.url)

    @property
    def given_kind(self) -> RawIdKind:
        """Return what the IDs to convert are: as the raw IDs of their type, or counted from 0 (``identity``)."""
        return self._raw_kind(self.type_number or 0) if self.from_ == "raw" and not self.edges else "identity"

    def convert(self, ids: GivenIds, parts: Ints | None = None) -> FoundIds:
        """Convert IDs (k of them); ``parts`` (int64[k]) are their partitions where they are local.

        They are uint64, raw IDs also int64, and texts where ``given_kind`` is ``string``.
        """
        types, typed, found = self._to_typed(ids, parts)
        if self.type_number is not None:
            found &= types == self.type_number
        return self._from_typed(types, typed, found)

    # ---- what is asked for

    def _find_type(self, name: str | None) -> int | None:
        names, word = self.type_names, "edge type" if self.edges else "node type"
        if name is not None:
            fix = one_of(names, found=name)
            text = _edge_type_text(name, fix) if self.edges else name
            if text not in names:
                raise UsageError(f"unknown {word} {name!r}", fix=fix)
            return names.index(text)
        if len(names) == 1:
            return 0
        if self.from_ not in ("homo", "part"):
            raise UsageError(f"{self.from_} IDs do not tell their type", fix=one_of(names, "add --type, one of"))
        return None

    def _check_stored(self) -> None:
        """Check that raw IDs and edge IDs that are asked for are stored."""
        spaces = (self.from_, self.to)
        numbers = range(len(self.type_names)) if self.type_number is None else (self.type_number,)
        if "previous" in spaces and all(map(self._is_first, range(len(self.type_names)))):
            raise UsageError("no nodes of the store were reordered, so there are no previous IDs", fix="use typed")
        for number in numbers:
            if self.edges and "id" in spaces and self._store.metadata.edge_schemas[number].edge_id_dtype is None:
                raise UsageError(
                    f"the store holds no edge IDs of {self.type_names[number]!r}", fix="convert without --no-edge-ids"
                )

    # ---- to typed

    def _is_first(self, number: int) -> bool:
        """Return whether the nodes of a type stand where they stood at first."""
        return self._store.metadata.node_schemas[number].node_order is None

    def _raw_kind(self, number: int) -> RawIdKind:
        return self._store.metadata.node_schemas[number].raw_ids

    def _to_typed(self, ids: GivenIds, parts: Ints | None) -> tuple[Ints, Ints, Flags]:
        """Return (type numbers, typed IDs, whether there is such an ID)."""
        number = self.type_number or 0
        if self.from_ == "raw" and not self.edges:
            typed = self._find_raw(number, ids)
            return np.full(ids.size, number, np.int64), typed, typed >= 0
        assert not isinstance(ids, RawTexts), "only raw IDs are texts"
        return self._count_to_typed(number, ids.astype(np.uint64, copy=False), parts)

    def _count_to_typed(self, number: int, ids: NDArray[np.uint64], parts: Ints | None) -> tuple[Ints, Ints, Flags]:
        if self.from_ in ("homo", "part"):
            limit = int(self._typed.offsets[-1])
            found = ids < np.uint64(limit)
            known = np.where(found, ids, 0).astype(np.int64)
            if not limit:
                return known, known.copy(), found
            types, typed = (self._typed.from_homo if self.from_ == "homo" else self._parted.from_part)(known)
            return types, typed, found
        types = np.full(ids.size, number, np.int64)
        if self.from_ == "id" or (self.from_ == "previous" and not self._is_first(number)):
            typed = self._find_by_scan(number, ids, self.from_)
            return types, typed, typed >= 0
        if self.from_ == "local":
            return types, *self._from_local(number, ids, np.zeros(ids.size, np.int64) if parts is None else parts)
        found = ids < np.uint64(self._size(number))
        return types, np.where(found, ids, 0).astype(np.int64), found

    def _size(self, number: int) -> int:
        return int(self._typed.offsets[number + 1] - self._typed.offsets[number])

    def _from_local(self, number: int, ids: NDArray[np.uint64], parts: Ints) -> tuple[Ints, Flags]:
        starts = self._parted.typed_starts[number]
        found = (parts >= 0) & (parts < self._parted.num_parts)
        known = np.where(found, parts, 0)
        found &= ids < np.diff(starts)[known].astype(np.uint64)
        return np.where(found, starts[known] + np.where(found, ids, 0).astype(np.int64), 0), found

    def _find_raw(self, number: int, ids: GivenIds) -> Ints:
        """Return the typed IDs of raw ones, -1 where there is none."""
        if isinstance(ids, RawTexts):
            return self._find_texts(number, ids)
        kind = self._raw_kind(number)
        if kind == "identity":
            found = (ids >= 0) & (ids < self._size(number))
            return np.where(found, ids, 0).astype(np.int64) - ~found
        dtype = np.dtype(np.int64 if kind == "int64" else np.uint64)
        typed = np.full(ids.size, -1, np.int64)
        # Where one is signed and the other is not, both hold the same numbers in all IDs but those with the highest bit.
        order = np.arange(ids.size) if ids.dtype == dtype else np.flatnonzero(ids.view(np.int64) >= 0)
        order = order[np.argsort(ids[order].astype(dtype), kind="stable")]
        typed[order] = self._find_numbers(number, ids[order].astype(dtype))
        return typed

    def _find_numbers(self, number: int, ids: NDArray[Any]) -> Ints:
        """Return the typed IDs of raw integers, which ascend."""

        def find(part: int, mine: Ints) -> Ints:
            array, raw_order = self._array(number, part), self._raw_order(number, part)
            return array.find_sorted(ids[mine]) if raw_order is None else find_numbers(array, raw_order, ids[mine])

        return self._search(number, ids, find)

    def _find_texts(self, number: int, ids: RawTexts) -> Ints:
        """Return the typed IDs of raw strings, which come in any order."""
        order: Ints = sort_texts(ids.offsets, ids.values)
        ids = take_rows(ids, order)

        def find(part: int, mine: Ints) -> Ints:
            texts, raw_order = self._text_source(number, part), self._raw_order(number, part)
            some = ids if mine.size == ids.size else take_rows(ids, mine)
            return texts.find(some) if raw_order is None else find_texts_by_order(texts, raw_order, some)

        out = np.empty(ids.size, np.int64)
        out[order] = self._search(number, ids, find)
        return out

    def _search(self, number: int, ids: NDArray[Any] | RawTexts, find: Callable[[int, Ints], Ints]) -> Ints:
        """Look for IDs (ascending) in their home, else in all partitions; ``find(part, which)`` returns local IDs, -1: none."""
        typed, home, starts = np.full(ids.size, -1, np.int64), self._home(number, ids), self._parted.typed_starts[number]
        for part in range(self._parted.num_parts) if home is None else np.unique(home).tolist():
            mine = np.flatnonzero(typed < 0) if home is None else np.flatnonzero(home == part)
            if mine.size and starts[part] < starts[part + 1]:
                at = find(part, mine)
                typed[mine] = np.where(at >= 0, at + starts[part], typed[mine])
        return typed

    def _home(self, number: int, ids: NDArray[Any] | RawTexts) -> Ints | None:
        """Return the partition that each raw ID (ascending) must be in; None where only a search can tell."""
        method, num_parts = self._store.metadata.partition_by, self._parted.num_parts
        if method == "hash":
            hashes = hash_texts(ids.offsets, ids.values) if isinstance(ids, RawTexts) else hash_ints(ids)
            return np.asarray(hashes % np.uint64(num_parts), np.int64)
        if method == "modulo" and not isinstance(ids, RawTexts):
            return np.asarray(ids % ids.dtype.type(num_parts), np.int64)
        filled = self._filled(number)
        if method != "range" or num_parts == 1 or not filled.size:
            return None
        rows = [(part, self._first(number, part)) for part in filled.tolist()]
        if isinstance(ids, RawTexts):
            texts = [self._text_source(number, part).take(row) for part, row in rows]
            ranks = rank_texts(*concat_texts([(one.offsets, one.values) for one in texts]), ids.offsets, ids.values)
        else:
            firsts = np.concatenate([self._array(number, part).take(row) for part, row in rows])
            ranks = np.searchsorted(firsts, ids, side="right")
        return np.asarray(filled[np.maximum(ranks - 1, 0)], np.int64)

    def _first(self, number: int, part: int) -> Ints:
        """Return the row of a partition's node with the lowest raw ID: int64[1]."""
        raw_order = self._raw_order(number, part)
        return np.zeros(1, np.int64) if raw_order is None else raw_order.read(0, 1)

    def _filled(self, number: int) -> Ints:
        """Return the partitions that hold nodes of a type."""
        return np.flatnonzero(np.diff(self._parted.typed_starts[number]))

    def _find_by_scan(self, number: int, ids: NDArray[np.uint64], name: str) -> Ints:
        """Return the edge rows of edge IDs, or the typed IDs of previous ones; -1 where there is none.

        They are in no order, so all are read.
        """
        wanted, inverse = np.unique(ids, return_inverse=True)
        rows = np.full(wanted.size, -1, np.int64)
        starts = self._parted.typed_starts[number]
        for part in range(self._parted.num_parts if wanted.size else 0):
            array = self._array(number, part, name)
            for start in range(0, int(starts[part + 1] - starts[part]), _SCAN):
                found = array.read(start, start + _SCAN).astype(np.uint64)
                at = np.minimum(np.searchsorted(wanted, found), wanted.size - 1)
                hits = np.flatnonzero(wanted[at] == found)
                rows[at[hits]] = hits + (starts[part] + start)
        return rows[inverse]

    # ---- from typed

    def _from_typed(self, types: Ints, typed: Ints, found: Flags) -> FoundIds:
        """Convert to the target space; only IDs that were found are looked at."""
        out: NDArray[Any] = np.zeros(typed.size, self._result_dtype())
        parts = np.zeros(typed.size, np.int64) if self.to == "local" else None
        known, ids = types[found], typed[found]
        if self.to == "homo":
            out[found] = self._typed.to_homo(known, ids)
        elif self.to == "part":
            out[found] = self._parted.to_part(known, ids)
        elif parts is not None:
            parts[found], out[found] = self._parted.to_local(known, ids)
        elif self.to in ("raw", "id", "previous"):
            out[found] = self._stored(known, ids, out.dtype)
        else:
            out[found] = ids
        return FoundIds(out, types, found, parts)

    def _result_dtype(self) -> np.dtype[Any]:
        """Return the dtype that holds every ID that may come out."""
        if self.edges or self.to != "raw":
            return np.dtype(np.int64)
        numbers = range(len(self.type_names)) if self.type_number is None else (self.type_number,)
        kinds = {self._raw_kind(number) for number in numbers} - {"identity"}
        return np.dtype(object if "string" in kinds or len(kinds) > 1 else kinds.pop() if kinds else np.int64)

    def _stored(self, types: Ints, typed: Ints, dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return the raw or previous IDs of nodes, or the edge IDs of edge rows."""
        out = np.zeros(typed.size, dtype)
        for number in np.unique(types).tolist():
            mine = np.flatnonzero(types == number)
            if not self.edges and self._is_typed(number):
                out[mine] = typed[mine]
                continue
            parts, local = self._parted.to_local(number, typed[mine])
            for part in np.unique(parts).tolist():
                here = parts == part
                out[mine[here]] = self._take(number, part, local[here])
        return out

    def _take(self, number: int, part: int, rows: Ints) -> NDArray[Any]:
        """Return the stored IDs at rows of a partition; strings as str."""
        if self.to != "raw" or self._raw_kind(number) != "string":
            return self._array(number, part, self.to).take(rows)
        texts = self._text_source(number, part).take(rows)
        out = np.empty(rows.size, object)
        out[:] = [text.decode(errors="replace") for text in texts.tolist()]
        return out

    def _is_typed(self, number: int) -> bool:
        """Return whether the stored IDs that are asked for would be the typed ones, so that there are none."""
        return self._raw_kind(number) == "identity" if self.to == "raw" else self._is_first(number)

    def _raw_order(self, number: int, part: int) -> ArrayReader | None:
        """Open the rows of a partition's nodes in the order of raw IDs; None where that is the order in which they stand."""
        return None if self._is_first(number) else self._array(number, part, "raw_order")


@dataclass(frozen=True)
class _StoredIds:
    """Opens the arrays of IDs of a store."""

    storage: Storage
    store: StoreReader
    parted: PartSpace
    type_names: tuple[str, ...]
    edges: bool

    def array(self, number: int, part: int, name: str = "raw") -> ArrayReader:
        """Open the stored raw IDs (``raw``), their order, previous IDs, or edge IDs (``id``) of a type in a partition."""
        metadata = self.store.metadata
        if self.edges:
            path = LayoutPaths(f"{edge_folder(metadata.edge_types[number])}/{metadata.primary_layout}").edge_ids
        else:
            paths = NodePaths(node_folder(self.type_names[number]))
            path = {"raw": paths.raw_ids, "raw_order": paths.raw_order, "previous": paths.previous_ids}[name]
        return self._sized(number, part, path)

    def _sized(self, number: int, part: int, path: str, num_more: int = 0) -> ArrayReader:
        """Open an array of a type. Raises DataError where it has another number of rows than the metadata says."""
        array, starts = self.store.array(part, path), self.parted.typed_starts[number]
        wanted = int(starts[part + 1] - starts[part]) + num_more
        if array.shape[:1] != (wanted,):
            message = f"expected {wanted} rows, by the metadata, found {array.dtype}{list(array.shape)}"
            raise DataError(message, place=display_url(array.url), fix="graphprep validate tells more about the store")
        return array

    def texts(self, number: int, part: int) -> TextSource:
        """Open the raw IDs of a type in a partition where they are strings."""
        paths = NodePaths(node_folder(self.type_names[number])).texts
        offsets, values = self._sized(number, part, paths.offsets, 1), self.store.array(part, paths.values)
        return TextSource(offsets, values, is_local=self.storage.is_local(offsets.url))


def _space(name: str, flag: str, *, edges: bool) -> str:
    spaces: tuple[str, ...] = EDGE_SPACES if edges else NODE_SPACES
    chosen = _EDGE_NAMES.get(name, name) if edges else name
    if chosen not in spaces:
        of = "edges" if edges else "nodes"
        raise UsageError(f"{flag} {name!r} is no ID space of {of}", fix=one_of(spaces, found=name))
    return chosen


def _edge_type_text(name: str, fix: str) -> str:
    try:
        return edge_type_text(parse_edge_type(name))
    except ValueError as error:
        raise UsageError(f"--type: {error}", fix=fix) from None
