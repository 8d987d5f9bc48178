"""Raw IDs to (node type, typed ID), stream by stream: in memory where the map fits, else by merge-joins over buckets."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.bitmap import Ranks
from graphprep.kernels.cpu.ids.group import group_by_key, mark_bits
from graphprep.kernels.cpu.ids.lookup import KeyTable, bucket_index, find_sorted, take_dense
from graphprep.storage.spill.runs import Runs, SpillPool

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]
_TABLE_ROW_BYTES = 20 + 8  # ID, type, typed ID, and the share of the search index
_TABLE_ENTRY_BYTES = 4
_NONE = np.uint64(0)
_MAPS = 2  # so many of the largest that fit may be in memory
_SPARSEST = 4  # bytes of bits for each node: 32 IDs that may be
_NOT_THERE = np.uint32(2**32 - 1)
_LEAST_ROWS = 1 << 12  # rows of a block of the map, however little memory there is


class MapRows(NamedTuple):
    """Raw IDs, the numbers of their types, and typed IDs (-1: not a node)."""

    ids: RawIds
    types: NDArray[np.int32]
    typed: Ints


class _Asked(NamedTuple):
    """Raw IDs, and their positions in the stream of all that are asked for."""

    ids: RawIds
    positions: Ints


class _Answers(NamedTuple):
    """What was found for the IDs at some positions of the stream."""

    positions: Ints
    types: NDArray[np.int32]
    typed: Ints


class Resolved(NamedTuple):
    """Where IDs went: the node type's number (int32[k]) and the typed ID (int64[k], -1 where there is no such node)."""

    types: NDArray[np.int32]
    typed: Ints


class Found(NamedTuple):
    """Typed IDs of nodes of one type, all of which are there: uint32[k], or uint64[k] where the type has more nodes."""

    type_number: int
    typed: NDArray[Any]


FindIds = Callable[[RawIds], Resolved]
FindQuickly = Callable[[NDArray[Any]], Found | None]  # IDs are uint32 or uint64


@dataclass(frozen=True, eq=False)
class NodeMap:
    """The map of one ID space.

    Either raw IDs are 0..n-1 of one type and equal the typed IDs (``rows`` None), or ``rows()`` yields (ids, types, typed) in
    chunks, ascending by ID once the bits of ``flip`` are flipped in them. ``highest`` is the highest ID where all are of one
    type, else -1; ``are_ranks`` says that typed IDs then are ranks.
    """

    num_nodes: int
    type_number: int = 0
    rows: Callable[[], Iterator[MapRows]] | None = None
    flip: np.uint64 = _NONE
    highest: int = -1
    are_ranks: bool = True

    def map_bytes(self, cap_bytes: int) -> int:
        """Return what ``finder`` holds, where the map fits ``cap_bytes``."""
        if self.rows is None:
            return 0
        if self._fits_table(cap_bytes):
            return (self.highest + 1) * _TABLE_ENTRY_BYTES
        if self._fits_bits(cap_bytes):
            return (self.highest >> 3) * 5 // 4 + 1
        return self.num_nodes * _TABLE_ROW_BYTES

    def _fits_table(self, cap_bytes: int) -> bool:
        most = min(_SPARSEST * self.num_nodes, cap_bytes // _TABLE_ENTRY_BYTES, int(_NOT_THERE))
        return not self.are_ranks and 0 <= self.highest < most

    def _fits_bits(self, cap_bytes: int) -> bool:
        return self.are_ranks and 0 <= self.highest >> 3 < min(cap_bytes * 4 // 5, _SPARSEST * self.num_nodes)

    def finder(self, cap_bytes: int) -> FindIds | None:
        """Return a function that looks IDs up at once, None where the map takes more than ``cap_bytes``."""
        if self.rows is None:
            return self.find_same
        if self._fits_table(cap_bytes):
            return _Table(self.rows, self.highest).find
        if self._fits_bits(cap_bytes):
            return _Bits(self.rows, self.highest).find
        if self.num_nodes * _TABLE_ROW_BYTES <= cap_bytes:
            return _Block(list(self._flipped()), self.flip).find
        return None

    def quick_finder(self, cap_bytes: int, find: FindIds | None) -> FindQuickly | None:
        """Return a function that looks up IDs (uint32 or uint64) of one type quickly, None where there is no such way.

        ``find`` is what ``finder`` gave. The function returns None where an ID is not there.
        """
        owner = getattr(find, "__self__", None)
        if isinstance(owner, _Block):
            return owner.quick_finder(cap_bytes)
        return owner.find_quickly if isinstance(owner, _Bits | _Table) else None

    def resolve(self, chunks: Iterable[RawIds], pool: SpillPool, cap_bytes: int) -> Iterator[Resolved]:
        """Resolve chunk after chunk, in order."""
        find = self.finder(cap_bytes)
        if find is not None:
            return map(find, chunks)
        return _ExternalJoin(self._flipped, self.flip, pool, cap_bytes).run(chunks)

    def _flipped(self) -> Iterator[MapRows]:
        """Yield (ids, types, typed), ascending by ID, whose bits are flipped."""
        assert self.rows is not None
        for ids, types, typed in self.rows():
            yield MapRows(ids ^ self.flip if self.flip else ids, types, typed)

    def find_same(self, ids: RawIds) -> Resolved:
        """Look IDs up where raw IDs are typed IDs."""
        typed = ids.view(np.int64)
        beyond = ids >= np.uint64(self.num_nodes)
        if beyond.any():
            typed = np.where(beyond, -1, typed)
        return Resolved(np.full(ids.size, self.type_number, np.int32), typed)


class Finders:
    """Look raw IDs up, ID space by ID space.

    A map of up to ``cap_bytes`` is in memory, as long as all of them take no more than twice that, and so is a table that makes
    it quicker, of what they leave. The other maps are joined, which takes about ``cap_bytes`` for all together.
    """

    def __init__(self, spaces: Mapping[str, NodeMap], cap_bytes: int) -> None:
        self._spaces = defaultdict(lambda: NodeMap(0), spaces)  # a space that no node type has is empty
        self._cap = cap_bytes
        self._left = _MAPS * cap_bytes
        self._found: dict[str, FindIds | None] = {}
        self._held: dict[str, int] = {}

    @staticmethod
    def held_bytes(spaces: Mapping[str, NodeMap], cap_bytes: int) -> int:
        """Return what all take at most."""
        most = 0
        for one in spaces.values():
            most += 0 if one.rows is None else one.map_bytes(sys.maxsize) + KeyTable.num_bytes_of(one.num_nodes)
        return min((_MAPS + 1) * cap_bytes, most)

    def find(self, name: str) -> FindIds | None:
        """Return a function that looks IDs of a space up at once, None where its map does not fit."""
        if name not in self._found:
            most = min(self._cap, self._left)
            self._found[name] = found = self._spaces[name].finder(most)
            self._held[name] = 0 if found is None else self._spaces[name].map_bytes(most)
            self._left -= self._held[name]
        return self._found[name]

    def find_quickly(self, name: str) -> FindQuickly | None:
        """Return a function that looks IDs of a space up quickly; see ``NodeMap.quick_finder``."""
        find = self.find(name)
        quick = self._spaces[name].quick_finder(min(self._cap, self._held[name] + self._left), find)
        if isinstance(getattr(quick, "__self__", None), _Slots):
            self._left -= KeyTable.num_bytes_of(self._spaces[name].num_nodes)
        return quick

    def join(self, name: str, chunks: Iterable[RawIds], pool: SpillPool) -> Iterator[Resolved]:
        """Look chunk after chunk up, in order, where the map does not fit."""
        num_maps = len([one for one in self._spaces.values() if one.rows is not None])
        return self._spaces[name].resolve(chunks, pool, self._cap // max(1, num_maps))


class _Bits:
    """A map whose IDs are not much higher than their number: a bit for each that may be, and ranks."""

    def __init__(self, rows: Callable[[], Iterator[MapRows]], highest: int) -> None:
        bits = np.zeros((highest // 64 + 1) * 8, np.uint8)
        self._type = np.int32(0)
        for ids, types, _ in rows():
            mark_bits(bits, ids)
            self._type = types[0]
        self._ranks = Ranks(bits)

    def find(self, ids: RawIds) -> Resolved:
        """Look IDs up."""
        return Resolved(np.full(ids.size, self._type), self._ranks.find(ids))

    def find_quickly(self, ids: NDArray[Any]) -> Found | None:
        """Look IDs up; None where one is not there."""
        dtype = np.uint32 if self._ranks.count < 2**32 else np.uint64
        typed = self._ranks.find_all(ids, dtype)
        return None if typed is None else Found(int(self._type), typed)


class _Block:
    """Consecutive rows of the map, in memory. It is asked for IDs in which ``flip`` is still to be flipped."""

    def __init__(self, chunks: list[MapRows], flip: np.uint64) -> None:
        self.flip = flip
        self.ids = np.concatenate([chunk.ids for chunk in chunks]) if chunks else np.zeros(0, np.uint64)
        self.types = np.concatenate([chunk.types for chunk in chunks]) if chunks else np.zeros(0, np.int32)
        self.typed = np.concatenate([chunk.typed for chunk in chunks]) if chunks else np.zeros(0, np.int64)
        size = self.ids.size
        self._is_dense = bool(size) and int(self.ids[-1]) - int(self.ids[0]) == size - 1
        self.index = (0, self.ids) if self._is_dense or not size else bucket_index(self.ids)
        # Each array that need not be looked into saves a cache miss for every end of every edge.
        self._one_type = bool(self.ids.size) and bool((self.types == self.types[0]).all())
        self._all_there = bool((self.typed >= 0).all())
        self._in_order = bool(self.ids.size) and bool((np.diff(self.typed) == 1).all())

    def find(self, ids: RawIds) -> Resolved:
        """Look IDs up."""
        if not self.ids.size:
            return Resolved(np.zeros(ids.size, np.int32), np.full(ids.size, -1, np.int64))
        if self._is_dense:
            return Resolved(*take_dense(self.ids, ids, int(self.flip), self.types, self.typed))
        at = find_sorted(self.ids, self.index, ids ^ self.flip if self.flip else ids)
        found = at >= 0
        typed = at + self.typed[0] if self._in_order else self.typed[at]
        if not found.all():
            typed = np.where(found, typed, -1)
        return Resolved(np.full(ids.size, self.types[0]) if self._one_type else self.types[at], typed)

    def quick_finder(self, cap_bytes: int) -> FindQuickly | None:
        """Return a function that looks IDs of one type up in a table; None where they are of several, or it takes too much."""
        room = cap_bytes - self.ids.size * _TABLE_ROW_BYTES
        if not self._one_type or not self._all_there or self.ids.size >= _NOT_THERE:
            return None
        return _Slots(self).find_quickly if KeyTable.num_bytes_of(self.ids.size) <= room else None


class _Table:
    """A map whose IDs are not much higher than their number, in any order: the typed ID of each that may be."""

    def __init__(self, rows: Callable[[], Iterator[MapRows]], highest: int) -> None:
        self._typed = np.full(highest + 1, _NOT_THERE, np.uint32)
        self._type = np.int32(0)
        for ids, types, typed in rows():
            there = typed >= 0
            self._typed[ids[there]] = typed[there]
            self._type = types[0]

    def find(self, ids: RawIds) -> Resolved:
        """Look IDs up."""
        within = ids < np.uint64(self._typed.size)
        typed = self._typed[np.where(within, ids, 0)]
        found = within & (typed != _NOT_THERE)
        return Resolved(np.full(ids.size, self._type), np.where(found, typed.astype(np.int64), -1))

    def find_quickly(self, ids: NDArray[Any]) -> Found | None:
        """Look IDs up; None where one is not there."""
        if not ids.size or int(ids.max()) >= self._typed.size:
            return None
        typed = self._typed[ids]
        return None if (typed == _NOT_THERE).any() else Found(int(self._type), typed)


class _Slots:
    """The typed ID of every ID, in a hash table."""

    def __init__(self, block: _Block) -> None:
        self._table = KeyTable(block.ids ^ block.flip, block.typed)
        self._type = int(block.types[0])

    def find_quickly(self, ids: NDArray[Any]) -> Found | None:
        """Look IDs up; None where one is not there."""
        typed = self._table.find_all(ids.astype(np.uint64, copy=False))
        return None if typed is None else Found(self._type, typed)


class _ExternalJoin:
    """Scatter IDs to blocks of the map, look them up block by block, and bring the answers back into order."""

    def __init__(self, table: Callable[[], Iterator[MapRows]], flip: np.uint64, pool: SpillPool, cap_bytes: int) -> None:
        self.pool = pool
        self.flip = flip
        self.rows_at_once = max(_LEAST_ROWS, cap_bytes // _TABLE_ROW_BYTES)
        self.table = table

    def run(self, chunks: Iterable[RawIds]) -> Iterator[Resolved]:
        """Resolve a stream of chunks; answers come back chunk by chunk."""
        splitters = self._splitters()
        routed: Runs[_Asked] = Runs(self.pool, max(1, splitters.size))
        sizes = []
        position = 0
        for ids in chunks:
            ordered = ids ^ self.flip if self.flip else ids
            block = np.maximum(np.searchsorted(splitters, ordered, side="right") - 1, 0)
            indptr, rows = group_by_key(block, routed.num_buckets)
            for bucket in np.flatnonzero(np.diff(indptr)):
                chosen = rows[indptr[bucket] : indptr[bucket + 1]]
                routed.append(int(bucket), _Asked(ids[chosen], chosen + position))
            sizes.append(ids.size)
            position += ids.size
        answers = self._look_up(routed, position)
        routed.close()
        yield from self._in_order(answers, sizes, position)
        answers.close()

    def _splitters(self) -> RawIds:
        """Return the first ID of every block of the map."""
        first: list[np.uint64] = []
        room = 0
        for ids, _, _ in self.table():
            if ids.size and room < ids.size:
                first.append(ids[0])
                room = self.rows_at_once
            room -= ids.size
        return np.array(first, np.uint64)

    def _blocks(self) -> Iterator[_Block]:
        pending: list[MapRows] = []
        room = 0
        for chunk in self.table():
            size = chunk.ids.size
            if size and room < size:
                if pending:
                    yield _Block(pending, self.flip)
                pending = []
                room = self.rows_at_once
            pending.append(chunk)
            room -= size
        yield _Block(pending, self.flip)

    def _look_up(self, routed: Runs[_Asked], num_ids: int) -> Runs[_Answers]:
        answers: Runs[_Answers] = Runs(self.pool, num_ids // self.rows_at_once + 1)
        for bucket, block in enumerate(self._blocks()):
            for ids, positions in routed.read(bucket):
                found = block.find(ids)
                indptr, rows = group_by_key(positions // self.rows_at_once, answers.num_buckets)
                for target in np.flatnonzero(np.diff(indptr)):
                    chosen = rows[indptr[target] : indptr[target + 1]]
                    answers.append(int(target), _Answers(positions[chosen], found.types[chosen], found.typed[chosen]))
            routed.free(bucket)
        return answers

    def _in_order(self, answers: Runs[_Answers], sizes: list[int], num_ids: int) -> Iterator[Resolved]:
        types = np.zeros(0, np.int32)
        typed = np.zeros(0, np.int64)
        bucket = 0
        for size in sizes:
            while types.size < size:
                more = self._one_bucket(answers, bucket, num_ids)
                types, typed = np.concatenate([types, more.types]), np.concatenate([typed, more.typed])
                bucket += 1
            yield Resolved(types[:size], typed[:size])
            types, typed = types[size:], typed[size:]

    def _one_bucket(self, answers: Runs[_Answers], bucket: int, num_ids: int) -> Resolved:
        base = bucket * self.rows_at_once
        size = min(self.rows_at_once, num_ids - base)
        types = np.empty(size, np.int32)
        typed = np.empty(size, np.int64)
        for positions, some_types, some_typed in answers.read(bucket):
            types[positions - base] = some_types
            typed[positions - base] = some_typed
        answers.free(bucket)
        return Resolved(types, typed)
