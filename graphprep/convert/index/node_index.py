"""All nodes of an input; and how those of a sorted ID space get their typed IDs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.texts import KeyCollisionError
from graphprep.convert.index.node_spaces import (
    SIGN_BIT,
    SortedSpace,
    SpaceNodes,
    pack_same,
    pack_steps,
    raw_batch,
    unpack_same,
    unpack_steps,
)
from graphprep.convert.index.ranks import SpaceIndexer
from graphprep.convert.index.resolve import MapRows, NodeMap
from graphprep.model.schema import RawIdKind
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.assign import PartitionFunction, RawBatch, TypedCounter, cut_sizes

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]
ARANGE_ROWS = 1 << 16


@dataclass(eq=False)
class NodeIndex:
    """All nodes. Lists go by type number.

    ``spaces`` maps an ID space's name to its map, ``space_of_type`` a type's number to its space. ``part_offsets``
    (int64[P + 1]) are the borders of the partitions in typed IDs. ``raw_runs`` holds the nodes of a space in raw order, where
    they are not 0..n-1 of one type: (numbers, codes, counts of bytes or None, bytes or None), and ``typed_runs`` beside them,
    chunk by chunk: (types, typed), of which only the first is there where types are the same or typed IDs have no gaps.
    ``created`` holds the typed IDs of created nodes by type. ``duplicates`` are the records of nodes that an earlier record
    declares.
    """

    type_names: tuple[str, ...]
    partition: PartitionFunction
    numbers_of_codes: NDArray[np.int32]
    space_of_type: tuple[str, ...]
    part_offsets: list[Ints]
    raw_kinds: list[RawIdKind]
    num_created: list[int]
    num_nodes: list[int] = field(default_factory=list)
    spaces: dict[str, NodeMap] = field(default_factory=dict)
    duplicates: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    raw_runs: dict[str, Runs[SpaceNodes]] = field(default_factory=dict)
    typed_runs: dict[str, Runs[Places]] = field(default_factory=dict)
    created: dict[int, Runs[tuple[Ints]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def space(self, type_number: int) -> NodeMap:
        """Return the map for IDs of a type."""
        return self.spaces[self.space_of_type[type_number]]

    def raw(self, type_number: int) -> Iterator[tuple[RawBatch, Ints]]:
        """Yield (raw IDs, typed IDs) of a type's nodes, ascending by raw ID."""
        name = self.space_of_type[type_number]
        runs = self.raw_runs.get(name)
        if runs is None:
            num_nodes = self.num_nodes[type_number]
            for start in range(0, num_nodes, ARANGE_ROWS):
                ids = np.arange(start, min(start + ARANGE_ROWS, num_nodes), dtype=np.int64)
                yield RawBatch(ids.view(np.uint64)), ids
            return
        for nodes, places in zip(runs.read(0), self.typed_runs[name].read(0), strict=True):
            types, typed = places.unpack(nodes.numbers.size)
            batch = raw_batch(nodes, is_signed=bool(self.spaces[name].flip))
            own = np.flatnonzero((types == type_number) & (typed >= 0))
            if own.size:
                yield (batch, typed) if own.size == types.size else (batch.take(own), typed[own])

    def hashes(self, type_number: int) -> Iterator[tuple[RawIds, Ints]]:
        """Yield (h of the raw ID, typed ID) of a type's nodes, ascending by raw ID. h: docs/store.md, "Hashes"."""
        for batch, typed in self.raw(type_number):
            yield batch.hashes(), typed


@dataclass(eq=False)
class _TypeState:
    """What is known of a type while its nodes go by in raw order."""

    parts: Ints
    size: int = 0
    counter: TypedCounter | None = None
    rank: int = 0
    identity: bool = True
    highest: int = -1


class Places(NamedTuple):
    """The types (int32[n]) and typed IDs (int64[n]) of the nodes of a chunk of a space, packed where they are regular."""

    types: NDArray[np.int32]
    typed: Ints

    def unpack(self, size: int) -> tuple[NDArray[np.int32], Ints]:
        """Return (types, typed IDs) of all ``size`` nodes."""
        return unpack_same(self.types, size), unpack_steps(self.typed, size)


class Assigner:
    """Gives typed IDs to the nodes of one sorted space, and writes its map to the index.

    ``numbers`` and ``created`` map a code to the number of its type, for nodes with and without a record.
    """

    def __init__(self, index: NodeIndex, space: SortedSpace, numbers: Mapping[int, int], created: Mapping[int, int]) -> None:
        self._index = index
        self._space = space
        codes = {code: number for code, number in {**numbers, **created}.items() if code in space.counts}
        self._lowest = min(space.counts, default=0)
        self._numbers = np.full(max(space.counts, default=0) - self._lowest + 1, -1, np.int32)
        self._is_created = np.zeros(self._numbers.size, bool)
        self._states: dict[int, _TypeState] = {}
        own = [number for number, name in enumerate(index.space_of_type) if name == space.name]
        for number in {*own, *codes.values()}:
            self._states[number] = _TypeState(np.zeros(index.partition.num_parts, np.int64))
        for code, number in codes.items():
            self._numbers[code - self._lowest] = number
            self._is_created[code - self._lowest] = code in created
            self._states[number].size += space.counts[code]

    def run(self, pool: SpillPool, cap_bytes: int) -> None:
        """Assign all nodes."""
        index, space = self._index, self._space
        self._count_parts()
        typed_runs: Runs[Places] = Runs(pool, 1, coalesce=False)
        is_text = False
        for codes, batch in space.read():
            types = self._types(codes)
            typed = self._typed(batch, types)
            self._note_created(codes, types, typed, pool)
            typed_runs.append(0, Places(pack_same(types), pack_steps(typed)))
            is_text = batch.texts is not None
        for number, state in self._states.items():
            index.part_offsets[number] = np.concatenate([np.zeros(1, np.int64), np.cumsum(state.parts)])
            kind: RawIdKind = "identity" if state.identity else "uint64" if state.highest >= 2**63 else "int64"
            index.raw_kinds[number] = "string" if is_text else kind
        if not is_text and len(self._states) == 1 and all(state.identity for state in self._states.values()):
            number, state = next(iter(self._states.items()))
            index.spaces[space.name] = NodeMap(state.size, number)
            space.runs.close()
            typed_runs.close()
            return
        index.raw_runs[space.name], index.typed_runs[space.name] = space.runs, typed_runs
        flip = SIGN_BIT if space.is_signed else np.uint64(0)
        rows = _by_key(space, typed_runs, pool, cap_bytes) if is_text else partial(_zipped, space.runs, typed_runs)
        states = list(self._states.items())
        highest = states[0][1].highest if not is_text and not space.is_signed and len(states) == 1 else -1
        are_ranks = index.partition.method == "range"
        num_nodes = sum(space.counts.values())
        index.spaces[space.name] = NodeMap(num_nodes, rows=rows, flip=flip, highest=highest, are_ranks=are_ranks)

    def _count_parts(self) -> None:
        """Count the nodes of each type by partition."""
        index = self._index
        if index.partition.method == "range":
            for state in self._states.values():
                state.parts = cut_sizes(state.size, index.partition.num_parts)
        else:
            for codes, batch in self._space.read():
                for number, _, parts in self._parts(batch, self._types(codes)):
                    self._states[number].parts += np.bincount(parts, minlength=index.partition.num_parts)
        for state in self._states.values():
            state.counter = TypedCounter(state.parts)
            state.rank = 0

    def _types(self, codes: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the numbers of types, -1 for what is not a node."""
        return np.asarray(self._numbers[codes - self._lowest], np.int32)

    def _parts(self, batch: RawBatch, types: NDArray[np.int32]) -> Iterator[tuple[int, Ints | None, Ints]]:
        """Yield (type number, rows or None for all, their partitions) for every type in a chunk; advances the types' ranks."""
        index = self._index
        found = [int(types[0])] if types.size and (types == types[0]).all() else _distinct(types)
        for number in found:
            if number < 0:
                continue
            rows = None if len(found) == 1 else np.flatnonzero(types == number)
            own = batch if rows is None else batch.take(rows)
            state = self._states[number]
            yield number, rows, index.partition.parts(own, state.rank, state.size, number, index.type_names[number])
            state.rank += own.size

    def _typed(self, batch: RawBatch, types: NDArray[np.int32]) -> Ints:
        """Return the typed IDs of a chunk, -1 for what is not a node."""
        typed = np.full(types.size, -1, np.int64)
        for number, rows, parts in self._parts(batch, types):
            state = self._states[number]
            assert state.counter is not None
            taken = state.counter.take(parts)
            ids = batch.numbers if rows is None else batch.numbers[rows]
            typed[slice(None) if rows is None else rows] = taken
            state.identity = state.identity and bool((taken.view(np.uint64) == ids).all())
            state.highest = max(state.highest, -1 if batch.is_signed else int(ids[-1]))
        return typed

    def _note_created(self, codes: NDArray[np.int32], types: NDArray[np.int32], typed: Ints, pool: SpillPool) -> None:
        """Keep the typed IDs of created nodes."""
        created = self._is_created[codes - self._lowest]
        for number in _distinct(types[created]):
            own = typed[created & (types == number)]
            self._index.created.setdefault(number, Runs(pool, 1)).append(0, (own,))
            self._index.num_created[number] += own.size


def _distinct(types: NDArray[np.int32]) -> list[int]:
    """Return which numbers of types occur, ascending; -1 may be one."""
    return [number - 1 for number in np.flatnonzero(np.bincount(types + 1)).tolist()]


def _zipped(raw: Runs[SpaceNodes], typed: Runs[Places]) -> Iterator[MapRows]:
    """Yield (numbers, types, typed IDs) of a space, in raw order."""
    for nodes, places in zip(raw.read(0), typed.read(0), strict=True):
        types, ids = places.unpack(nodes.numbers.size)
        yield MapRows(nodes.numbers, np.maximum(types, 0), ids)


def _by_key(space: SortedSpace, typed: Runs[Places], pool: SpillPool, cap_bytes: int) -> Callable[[], Iterator[MapRows]]:
    """Sort the nodes of a space of texts by their keys.

    Raises KeyCollisionError where two have one key.
    """
    indexer = SpaceIndexer(pool, cap_bytes)
    for rows in _zipped(space.runs, typed):
        indexer.add_rows(*rows)
    table: Runs[MapRows] = Runs(pool, 1, coalesce=False)
    num_rows = 0
    for keys, types, ids in indexer.sorted_rows():
        table.append(0, MapRows(keys, types, ids))
        num_rows += keys.size
    if num_rows < sum(space.counts.values()):
        raise KeyCollisionError
    return partial(table.read, 0)
