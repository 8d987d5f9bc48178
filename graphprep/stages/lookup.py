"""Convert IDs of a store between raw, typed, homo, part and local, for nodes and edges, in blocks and bounded memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.hash import hash_ints
from graphprep.model.errors import UsageError
from graphprep.model.ids import IDConverter, PartitionBook, PartSpace, TypedSpace
from graphprep.model.schema import edge_type_path, parse_edge_type, path_name
from graphprep.storage.arrays import ArrayReader, StoreReader
from graphprep.storage.urls import Storage

NodeSpace = Literal["raw", "typed", "homo", "part", "local"]
EdgeSpace = Literal["id", "row", "homo", "part", "local"]
NODE_SPACES: tuple[NodeSpace, ...] = ("raw", "typed", "homo", "part", "local")
EDGE_SPACES: tuple[EdgeSpace, ...] = ("id", "row", "homo", "part", "local")
_EDGE_NAMES = {"raw": "id", "typed": "row"}  # what nodes call them, where edges have the like
_SCAN = 1 << 20  # edge IDs read at once: 8 MiB
_BLOCK = 1 << 12  # entries read at once from a remote array: 32 KiB, about what a request costs anyway

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class FoundIds:
    """What IDs became, in the order in which they came.

    ``ids`` is uint64 for raw IDs, else int64; ``parts`` are the partitions of local IDs; ``types`` are type numbers. Where
    ``found`` is False the other numbers mean nothing.
    """

    ids: NDArray[np.int64] | NDArray[np.uint64]
    types: Ints
    found: Flags
    parts: Ints | None = None


class IdLookup:
    """Converts IDs of one store from one space to another.

    ``from_`` and ``to``: raw, typed, homo, part or local for nodes; id (edge ID), row (edge row), homo, part or local for
    edges.
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
        self._sources: dict[tuple[int, int], RowSource] = {}
        self._check_stored()

    @property
    def one_type(self) -> bool:
        """Return whether all IDs found are of one type, so that it need not be told."""
        return self.type_number is not None

    @property
    def scans(self) -> bool:
        """Return whether every call reads all edge IDs, so that large blocks pay."""
        return self.from_ == "id" and self.to != "id"

    def convert(self, ids: NDArray[np.uint64], parts: Ints | None = None) -> FoundIds:
        """Convert IDs (uint64[k]); ``parts`` (int64[k]) are their partitions where they are local."""
        types, typed, found = self._to_typed(ids, parts)
        if self.type_number is not None:
            found &= types == self.type_number
        return self._from_typed(types, typed, found)

    # ---- what is asked for

    def _find_type(self, name: str | None) -> int | None:
        names, word = self.type_names, "edge type" if self.edges else "node type"
        if name is not None:
            fix = f"use one of {', '.join(names) or '(there is none)'}"
            text = _edge_type_text(name, fix) if self.edges else name
            if text not in names:
                raise UsageError(f"unknown {word} {name!r}", fix=fix)
            return names.index(text)
        if len(names) == 1:
            return 0
        if self.from_ not in ("homo", "part"):
            raise UsageError(f"{self.from_} IDs do not tell their type", fix=f"add --type, one of {', '.join(names)}")
        return None

    def _check_stored(self) -> None:
        """Check that raw IDs and edge IDs that are asked for are stored."""
        spaces = (self.from_, self.to)
        numbers = range(len(self.type_names)) if self.type_number is None else (self.type_number,)
        for number in numbers:
            if self.edges and "id" in spaces and self._store.metadata.edge_schemas[number].edge_id_dtype is None:
                raise UsageError(
                    f"the store holds no edge IDs of {self.type_names[number]!r}", fix="convert without --no-edge-ids"
                )
            if not self.edges and "raw" in spaces and self._store.metadata.node_schemas[number].raw_ids == "string":
                raise UsageError(f"raw IDs of {self.type_names[number]!r} are texts, which are not looked up yet")

    # ---- to typed

    def _to_typed(self, ids: NDArray[np.uint64], parts: Ints | None) -> tuple[Ints, Ints, Flags]:
        """Return (type numbers, typed IDs, whether there is such an ID)."""
        if self.from_ in ("homo", "part"):
            limit = int(self._typed.offsets[-1])
            found = ids < np.uint64(limit)
            known = np.where(found, ids, 0).astype(np.int64)
            if not limit:
                return known, known.copy(), found
            types, typed = (self._typed.from_homo if self.from_ == "homo" else self._parted.from_part)(known)
            return types, typed, found
        number = self.type_number or 0
        types = np.full(ids.size, number, np.int64)
        if self.from_ in ("raw", "id"):
            typed = self._find_edge_ids(number, ids) if self.edges else self._find_raw(number, ids)
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

    def _find_raw(self, number: int, ids: NDArray[np.uint64]) -> Ints:
        """Return the typed IDs of raw ones, -1 where there is none."""
        if self._store.metadata.node_schemas[number].raw_ids == "identity":
            return np.where(ids < np.uint64(self._size(number)), ids, 0).astype(np.int64) - (
                ids >= np.uint64(self._size(number))
            )
        typed = np.full(ids.size, -1, np.int64)
        order = np.argsort(ids, kind="stable")
        ids = ids[order]
        home = self._home(number, ids)
        starts = self._parted.typed_starts[number]
        for part in range(self._parted.num_parts) if home is None else np.unique(home).tolist():
            mine = np.flatnonzero(typed < 0) if home is None else np.flatnonzero(home == part)
            if mine.size and starts[part] < starts[part + 1]:
                at = self._source(number, part).find(ids[mine])
                typed[mine[at >= 0]] = at[at >= 0] + starts[part]
        out = np.empty_like(typed)
        out[order] = typed
        return out

    def _home(self, number: int, ids: NDArray[np.uint64]) -> Ints | None:
        """Return the partition that each raw ID (ascending) must be in; None where only a search can tell."""
        method, num_parts = self._store.metadata.partition_by, self._parted.num_parts
        if method == "hash":
            return np.asarray(hash_ints(ids) % np.uint64(num_parts), np.int64)
        if method == "modulo":
            return (ids % np.uint64(num_parts)).astype(np.int64)
        if method != "range" or num_parts == 1:
            return None
        sizes = np.diff(self._parted.typed_starts[number])
        filled = np.flatnonzero(sizes)
        firsts = np.array([self._source(number, part).first for part in filled.tolist()], np.uint64)
        at = np.searchsorted(firsts, ids, side="right") - 1
        return np.asarray(filled[np.maximum(at, 0)] if filled.size else np.zeros(ids.size), np.int64)

    def _find_edge_ids(self, number: int, ids: NDArray[np.uint64]) -> Ints:
        """Return the edge rows of edge IDs, -1 where there is none. Edge IDs are in no order, so all are read."""
        wanted, inverse = np.unique(ids, return_inverse=True)
        rows = np.full(wanted.size, -1, np.int64)
        starts = self._parted.typed_starts[number]
        for part in range(self._parted.num_parts if wanted.size else 0):
            array = self._array(number, part)
            for start in range(0, int(starts[part + 1] - starts[part]), _SCAN):
                found = array.read(start, start + _SCAN).astype(np.uint64)
                at = np.minimum(np.searchsorted(wanted, found), wanted.size - 1)
                hits = np.flatnonzero(wanted[at] == found)
                rows[at[hits]] = hits + (starts[part] + start)
        return rows[inverse]

    # ---- from typed

    def _from_typed(self, types: Ints, typed: Ints, found: Flags) -> FoundIds:
        """Convert to the target space; only IDs that were found are looked at."""
        out: NDArray[Any] = np.zeros(typed.size, np.uint64 if self.to == "raw" else np.int64)
        parts = np.zeros(typed.size, np.int64) if self.to == "local" else None
        known, ids = types[found], typed[found]
        if self.to == "homo":
            out[found] = self._typed.to_homo(known, ids)
        elif self.to == "part":
            out[found] = self._parted.to_part(known, ids)
        elif parts is not None:
            parts[found], out[found] = self._parted.to_local(known, ids)
        elif self.to in ("raw", "id"):
            out[found] = self._stored(known, ids)
        else:
            out[found] = ids
        return FoundIds(out, types, found, parts)

    def _stored(self, types: Ints, typed: Ints) -> NDArray[Any]:
        """Return the raw IDs of nodes, or the edge IDs of edge rows."""
        out = np.zeros(typed.size, np.int64 if self.edges else np.uint64)
        for number in np.unique(types).tolist():
            mine = np.flatnonzero(types == number)
            if not self.edges and self._store.metadata.node_schemas[number].raw_ids == "identity":
                out[mine] = typed[mine]
                continue
            parts, local = self._parted.to_local(number, typed[mine])
            for part in np.unique(parts).tolist():
                here = parts == part
                out[mine[here]] = self._source(number, part).take(local[here]).astype(out.dtype)
        return out

    # ---- arrays

    def _source(self, number: int, part: int) -> RowSource:
        if (number, part) not in self._sources:
            array = self._array(number, part)
            self._sources[number, part] = RowSource(array, is_local=self._storage.is_local(array.url))
        return self._sources[number, part]

    def _array(self, number: int, part: int) -> ArrayReader:
        """Open the stored raw IDs or edge IDs of a type in a partition."""
        metadata = self._store.metadata
        if self.edges:
            folder = edge_type_path(metadata.edge_types[number])
            return self._store.array(part, f"edges/{folder}/{metadata.primary_layout}/edge_ids.npy")
        return self._store.array(part, f"nodes/{path_name(metadata.node_types[number])}/raw_ids.npy")


def _space(name: str, flag: str, *, edges: bool) -> str:
    spaces: tuple[str, ...] = EDGE_SPACES if edges else NODE_SPACES
    chosen = _EDGE_NAMES.get(name, name) if edges else name
    if chosen not in spaces:
        of = "edges" if edges else "nodes"
        raise UsageError(f"{flag} {name!r} is no ID space of {of}", fix=f"use one of {', '.join(spaces)}")
    return chosen


def _edge_type_text(name: str, fix: str) -> str:
    try:
        src, rel, dst = parse_edge_type(name)
    except ValueError as error:
        raise UsageError(f"--type: {error}", fix=fix) from None
    return ":".join(part.replace("%", "%25").replace(":", "%3A") for part in (src, rel, dst))


class RowSource:
    """Entries of a stored array by position, or by value where it ascends.

    A local file is mapped. A remote one is read in small blocks that are kept while one call lasts.
    """

    def __init__(self, array: ArrayReader, *, is_local: bool) -> None:
        self._array = array
        self._is_local = is_local
        self._size = array.shape[0]
        self._firsts: dict[int, Any] = {}

    @property
    def first(self) -> Any:
        """Return the first entry."""
        return self._first(0)

    def take(self, rows: Ints) -> NDArray[Any]:
        """Return the entries at ``rows`` (any order)."""
        if self._is_local:
            return np.asarray(self._array.map()[rows])
        out = np.empty(rows.size, self._array.dtype)
        blocks = rows // _BLOCK
        for block in np.unique(blocks).tolist():
            mine = blocks == block
            out[mine] = self._read(block)[rows[mine] - block * _BLOCK]
        return out

    def find(self, wanted: NDArray[np.uint64]) -> Ints:
        """Return the position of each wanted value (ascending) among the ascending entries, -1 where it is not there."""
        if self._is_local:
            return _find_sorted(self._array.map().view(np.uint64), wanted)
        out = np.full(wanted.size, -1, np.int64)
        todo = [(0, -(-self._size // _BLOCK), 0, wanted.size)]
        while todo:
            low, high, start, stop = todo.pop()
            if start == stop or low == high:
                continue
            if high - low == 1:
                at = _find_sorted(self._read(low).view(np.uint64), wanted[start:stop])
                out[start:stop] = np.where(at >= 0, at + low * _BLOCK, -1)
                continue
            middle = (low + high) // 2
            cut = start + int(np.searchsorted(wanted[start:stop], np.uint64(self._first(middle))))
            todo += [(low, middle, start, cut), (middle, high, cut, stop)]
        return out

    def _first(self, block: int) -> Any:
        if block not in self._firsts:
            self._firsts[block] = self._array.read(block * _BLOCK, block * _BLOCK + 1)[0]
        return self._firsts[block]

    def _read(self, block: int) -> NDArray[Any]:
        return self._array.read(block * _BLOCK, min((block + 1) * _BLOCK, self._size))


def _find_sorted(entries: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> Ints:
    if not entries.size:
        return np.full(wanted.size, -1, np.int64)
    at = np.searchsorted(entries, wanted)
    at[at == entries.size] = 0
    return np.where(entries[at] == wanted, at, -1)
