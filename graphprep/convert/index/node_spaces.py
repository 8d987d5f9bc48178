"""The nodes of every ID space in raw order: those that records declare, and those that only occur as ends of edges."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.rows import Batch, Decoded, wide_ids
from graphprep.convert.decoded.texts import UNKNOWN
from graphprep.convert.index.ranks import CREATED, SpaceIndexer
from graphprep.engine.ledger import MemoryPlan
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.assign import ROUND_ROBIN, PartitionFunction, RawBatch

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]
SIGN_BIT = np.uint64(1 << 63)  # flipped, it puts the bits of int64 in the order of their values

# Codes of nodes: a type's code in ``Decoded.node_types`` where the node has a record or the type needs none; CREATED (of the
# type for nodes that are missing) or ``created_code(type's code)`` for one that is created; MISSING is no node.
MISSING = -2


def created_code(code: int) -> int:
    """Return the code of a node of a type that is created because it has no record."""
    return -3 - code


@dataclass(frozen=True, eq=False)
class NodeRules:
    """How nodes come to be. ``partition`` makes the partition function once the node types are known."""

    partition: Callable[[tuple[str, ...]], PartitionFunction]
    options: ConvertOptions
    memory: MemoryPlan
    type_order: tuple[str, ...] | None = None


class SpaceNodes(NamedTuple):
    """Nodes of an ID space in raw order.

    ``numbers`` (uint64[n]) are raw IDs, or keys of texts, whose ``sizes`` (int64[n]) and ``values`` (uint8) are there then.
    ``codes`` are packed by ``pack_same``. ``records`` (int64[n]) are the numbers of their records, where these are asked for.
    """

    numbers: RawIds
    codes: NDArray[np.int32]
    sizes: Ints | None
    values: NDArray[np.uint8] | None
    records: Ints | None = None


@dataclass(eq=False)
class SortedSpace:
    """The nodes of an ID space in raw order. ``counts`` says how many have a code."""

    name: str
    runs: Runs[SpaceNodes]
    is_signed: bool = False
    counts: dict[int, int] = field(default_factory=dict)

    def append(
        self,
        numbers: RawIds,
        codes: NDArray[np.int32],
        sizes: Ints | None,
        values: NDArray[np.uint8] | None,
        records: Ints | None = None,
    ) -> None:
        """Add nodes that stand behind all others."""
        if not numbers.size:
            return
        packed = pack_same(codes)
        self.runs.append(0, SpaceNodes(numbers, packed, sizes, values, records))
        lowest = int(packed.min())
        counts = np.bincount(packed - lowest) if packed.size > 1 else np.array([codes.size])
        for at in np.flatnonzero(counts).tolist():
            self.counts[lowest + at] = self.counts.get(lowest + at, 0) + int(counts[at])

    def read(self) -> Iterator[tuple[NDArray[np.int32], RawBatch]]:
        """Yield (codes, raw IDs), chunk after chunk."""
        for chunk in self.runs.read(0):
            yield unpack_same(chunk.codes, chunk.numbers.size), raw_batch(chunk, self.is_signed)


def pack_same(array: NDArray[Any]) -> NDArray[Any]:
    """Return the first element alone where all are equal to it."""
    return array[:1].copy() if array.size > 1 and (array == array[0]).all() else array


def unpack_same(array: NDArray[Any], size: int) -> NDArray[Any]:
    """Undo ``pack_same``."""
    return array if array.size == size else np.broadcast_to(array, size)


def pack_steps(array: Ints) -> Ints:
    """Return the first element alone where each is one more than that before it."""
    return array[:1].copy() if array.size > 1 and (np.diff(array) == 1).all() else array


def unpack_steps(array: Ints, size: int) -> Ints:
    """Undo ``pack_steps``."""
    return array if array.size == size else np.arange(array[0], array[0] + size)


def raw_batch(nodes: SpaceNodes, is_signed: bool) -> RawBatch:
    """Return the raw IDs of nodes."""
    if nodes.sizes is None or nodes.values is None:
        return RawBatch(nodes.numbers, is_signed, records=nodes.records)
    offsets = np.zeros(nodes.sizes.size + 1, np.int64)
    np.cumsum(nodes.sizes, out=offsets[1:])
    return RawBatch(nodes.numbers, texts=(offsets, nodes.values), records=nodes.records)


class EndCodes:
    """Which code an ID gets that has no record, by the type that an end of an edge gives it."""

    def __init__(self, decoded: Decoded, rules: NodeRules) -> None:
        sources = decoded.sources
        without = {node.name for node in sources.node_types if not node.has_records}
        self._recordless = set() if sources.nodes == "records" else without
        self._creates = rules.options.on_missing_node == "create"
        self._has_missing_type = rules.options.missing_node_type is not None
        self._names = decoded.node_types

    def of(self, code: int) -> int:
        """Return the code for the type with a code (UNKNOWN: no type is known)."""
        if code != UNKNOWN and self._names[code] in self._recordless:
            return code
        if not self._creates:
            return MISSING
        if code != UNKNOWN:
            return created_code(code)
        return int(CREATED) if self._has_missing_type else MISSING

    def of_all(self) -> NDArray[np.int32]:
        """Return the codes for all types, and last that for UNKNOWN, so that -1 finds it."""
        return np.array([*map(self.of, range(len(self._names))), self.of(UNKNOWN)], np.int32)


def sort_spaces(decoded: Decoded, rules: NodeRules, pool: SpillPool, wanted: list[str]) -> tuple[list[SortedSpace], Ints]:
    """Sort the nodes of the ``wanted`` ID spaces, which hold numbers, and of those of texts.

    Returns them, and the records of repeated nodes, ascending. The texts that ``decoded`` holds are used up.
    """
    collector = _Collector(decoded, rules, pool, wanted)
    collector.add_records()
    collector.add_ends()
    spaces = []
    duplicates = []
    is_dealt = rules.options.partition_by == ROUND_ROBIN  # by the numbers of records, which else need not be kept
    for name, indexer in collector.indexers.items():
        flip = collector.flip(name)
        space = SortedSpace(name, Runs(pool, 1, coalesce=False), is_signed=bool(flip))
        for ids, types, records in indexer.sorted_rows():
            space.append(ids ^ flip, types, None, None, records if is_dealt else None)
        spaces.append(space)
        duplicates.append(indexer.duplicates)
    codes = collector.end_codes.of_all()
    for name, texts in decoded.texts.items():
        space = SortedSpace(name, Runs(pool, 1, coalesce=False))
        for rows in texts.sorted():
            own = np.where(rows.records >= 0, rows.types, codes[rows.types])
            space.append(rows.keys, own, np.diff(rows.offsets), rows.values, rows.records if is_dealt else None)
        spaces.append(space)
        duplicates.append(texts.duplicates)
    return spaces, np.sort(np.concatenate([*duplicates, np.zeros(0, np.int64)]))


class _Collector:
    """Scatters raw IDs that are numbers to the indexers of their spaces."""

    def __init__(self, decoded: Decoded, rules: NodeRules, pool: SpillPool, wanted: list[str]) -> None:
        self._decoded = decoded
        self._signed = frozenset(decoded.sources.signed_ids)
        self.end_codes = EndCodes(decoded, rules)
        self.indexers = {name: SpaceIndexer(pool, rules.memory.cap_bytes // max(1, len(wanted))) for name in wanted}

    def flip(self, space: str) -> np.uint64:
        """Return what puts the numbers of a space in order."""
        return SIGN_BIT if space in self._signed else np.uint64(0)

    def add_records(self) -> None:
        """Add all nodes that records declare."""
        for batch, ids, codes, rows, space in self._node_rows(declares=True):
            records = batch.first_node + rows
            self.indexers[space].add_rows(ids[rows] ^ self.flip(space), codes[rows], records)

    def add_ends(self) -> None:
        """Add all IDs that become nodes by standing at an end of an edge, or in rows that bring columns alone."""
        for _, ids, codes, rows, space in self._node_rows(declares=False):
            for code in np.flatnonzero(np.bincount(codes[rows])).tolist():
                self._add(space, code, ids[rows[codes[rows] == code]])
        decoded = self._decoded
        if not self.indexers or (self.end_codes.of_all() == MISSING).all():
            return
        for batch, edges in decoded.edge_batches():
            for ids, (space, code) in zip((edges.src, edges.dst), decoded.end_spaces(batch.codes), strict=True):
                self._add(space, code, wide_ids(ids))

    def _add(self, space: str, code: int, ids: RawIds) -> None:
        end_code = self.end_codes.of(code)
        if space in self.indexers and end_code != MISSING:
            self.indexers[space].add_ends(ids ^ self.flip(space), end_code)

    def _node_rows(self, declares: bool) -> Iterator[tuple[Batch, RawIds, NDArray[np.int32], Ints, str]]:
        """Yield (batch, IDs, codes of types, rows, their space) for every batch of nodes, and every space of numbers in it."""
        decoded = self._decoded
        if not any(batch.num_nodes and batch.declares == declares for batch in decoded.batches):
            return
        spaces = [decoded.spaces.of_type(name) for name in decoded.node_types]
        for batch, (ids, codes, _) in decoded.node_batches():
            if batch.declares != declares:
                continue
            own = dict.fromkeys(spaces[code] for code in np.flatnonzero(np.bincount(codes)).tolist())
            for space in own:
                if space in self.indexers:
                    of_space = np.array([name == space for name in spaces])
                    yield batch, ids, codes, np.arange(ids.size) if len(own) == 1 else np.flatnonzero(of_space[codes]), space
