"""Nodes: which exist, their types, typed IDs and partitions, for every way in which formats name them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphprep.engine.budget import format_size
from graphprep.kernels.cpu.group import mark_bits
from graphprep.model.errors import DataError, MemoryLimitError
from graphprep.model.rows import Relation
from graphprep.model.schema import RawIdKind
from graphprep.stages.assign import PartitionFunction, TypedCounter, cut_sizes, order_types
from graphprep.stages.decode import Decoded
from graphprep.stages.index import CREATED, SortedChunk, SpaceIndexer
from graphprep.stages.resolve import NodeMap
from graphprep.storage.runs import Runs, SpillPool

Ints = NDArray[np.int64]
RawIds = NDArray[np.uint64]
_ARANGE_ROWS = 1 << 16


@dataclass(frozen=True)
class NodeRules:
    """How nodes come to be. ``partition`` makes the partition function once the node types are known."""

    partition: Callable[[tuple[str, ...]], PartitionFunction]
    on_missing: Literal["error", "create", "drop"] = "error"
    missing_type: str | None = None
    ids: Literal["auto", "dense", "sparse"] = "auto"
    num_nodes: Mapping[str, int] = field(default_factory=dict)
    type_order: tuple[str, ...] | None = None
    cap_bytes: int = 1 << 30
    limit_bytes: int = 1 << 40


@dataclass
class NodeIndex:
    """All nodes. Lists go by type number.

    ``spaces`` maps a type's number to the map of its ID space; -1 stands for one space that all types share.
    ``part_offsets`` (int64[P + 1]) are the borders of the partitions in typed IDs. ``tables`` holds the spaces' tables,
    ``seen`` a bit for each ID of a dense space that occurs as an end, ``created`` the typed IDs of created nodes.
    """

    type_names: tuple[str, ...]
    partition: PartitionFunction
    numbers_of_codes: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    spaces: dict[int, NodeMap] = field(default_factory=dict)
    part_offsets: list[Ints] = field(default_factory=list)
    raw_kinds: list[RawIdKind] = field(default_factory=list)
    num_created: list[int] = field(default_factory=list)
    duplicates: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    tables: list[Runs] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seen: dict[int, NDArray[np.uint8]] = field(default_factory=dict)
    created: Runs | None = None

    @property
    def num_nodes(self) -> list[int]:
        """Return the number of nodes of each type."""
        return [int(offsets[-1]) for offsets in self.part_offsets]

    def space(self, type_number: int | None) -> NodeMap:
        """Return the map for ends of a type (None: the type is not known beforehand)."""
        return self.spaces[-1] if -1 in self.spaces else self.spaces[-1 if type_number is None else type_number]


def index_nodes(decoded: Decoded, rules: NodeRules, pool: SpillPool) -> NodeIndex:
    """Index the nodes of a decoded input and give them typed IDs."""
    kind = decoded.sources.nodes
    if kind == "records":
        return _from_records(decoded, rules, pool)
    if kind == "identity":
        counts = [declared.num_nodes or 0 for declared in decoded.sources.node_types]
        names = tuple(declared.name for declared in decoded.sources.node_types)
        return _from_counts(decoded, names, counts, rules, pool)
    return _from_ends(decoded, rules, pool)


# Nodes that records declare: one ID space, the type stands on the record.


def _from_records(decoded: Decoded, rules: NodeRules, pool: SpillPool) -> NodeIndex:
    indexer = SpaceIndexer(pool, rules.cap_bytes)
    first = 0
    for ids, types, _ in decoded.nodes.read(0):
        indexer.add_declared(ids, types, first)
        first += 0 if ids is None else ids.size
    if rules.on_missing == "create":
        for src, dst, *_ in decoded.edges.read(0):
            indexer.add_ends(np.concatenate([src, dst]))
    table = Runs(pool, 1, coalesce=False)
    counts = np.zeros(len(decoded.node_types) + 1, np.int64)  # the last one counts created nodes: their code is -1
    for chunk in indexer.sorted():
        table.append(0, (chunk.ids, chunk.types))
        counts += np.bincount(chunk.types % counts.size, minlength=counts.size)
    names = _record_types(decoded, rules, int(counts[-1]))
    numbers = np.array([names.index(name) for name in decoded.node_types], np.int32)
    created_number = names.index(rules.missing_type) if counts[-1] and rules.missing_type is not None else -1
    sizes = np.zeros(len(names), np.int64)
    np.add.at(sizes, numbers, counts[:-1])
    num_created = [0] * len(names)
    if created_number >= 0:
        sizes[created_number] += counts[-1]
        num_created[created_number] = int(counts[-1])
    all_numbers = np.append(numbers, np.int32(created_number))
    function = rules.partition(tuple(names))
    index = NodeIndex(tuple(names), function, numbers, num_created=num_created, duplicates=indexer.duplicates)

    def chunks() -> Iterator[SortedChunk]:
        for ids, types in table.read(0):
            yield SortedChunk(ids, all_numbers[types])

    _assign(index, -1, chunks, sizes, pool)
    if created_number >= 0:
        index.created = _created_rows(table, index.tables[-1], pool)
    table.close()
    return index


def _created_rows(sorted_codes: Runs, table: Runs, pool: SpillPool) -> Runs:
    """Collect the typed IDs of created nodes, in raw order."""
    created = Runs(pool, 1)
    for (_, codes), (_, _, typed) in zip(sorted_codes.read(0), table.read(0), strict=True):
        rows = np.flatnonzero(codes == CREATED)
        if rows.size:
            created.append(0, (typed[rows],))
    return created


def _record_types(decoded: Decoded, rules: NodeRules, num_created: int) -> list[str]:
    names = set(decoded.node_types)
    if num_created and rules.missing_type is not None:
        names.add(rules.missing_type)
    if rules.type_order is None:
        return order_types(sorted(names))
    unknown = sorted(names - set(rules.type_order))
    if unknown:
        raise DataError(
            f"node type {unknown[0]!r} is not in the schema",
            fix=f"use one of {', '.join(rules.type_order)}, or add the type to the schema",
        )
    return list(rules.type_order)


# Nodes that occur as ends of edges: one ID space for each type.


def _from_ends(decoded: Decoded, rules: NodeRules, pool: SpillPool) -> NodeIndex:
    names = tuple(declared.name for declared in decoded.sources.node_types)
    spans = [_end_span(decoded, name) for name in names]
    numbers = np.arange(len(names), dtype=np.int32)
    index = NodeIndex(names, rules.partition(names), numbers, num_created=[0] * len(names))
    for number, (name, (highest, num_edges)) in enumerate(zip(names, spans, strict=True)):
        stated = rules.num_nodes.get(name, rules.num_nodes.get(""))
        if stated is not None and highest >= stated:
            raise BeyondError(name, stated, highest)
        num_nodes = highest + 1 if stated is None else stated
        dense = rules.ids == "dense" or (rules.ids == "auto" and (stated is not None or num_nodes <= 2 * num_edges))
        if dense:
            _check_dense(name, num_nodes, rules)
            index.seen[number] = _seen_bits(decoded, name, num_nodes)
            _assign_dense(index, number, num_nodes, pool)
        else:
            _assign_sparse(index, number, decoded, rules, pool)
        index.notes.append(_ids_note(index, number, num_nodes, dense, explicit=rules.ids != "auto" or stated is not None))
    return index


class BeyondError(Exception):
    """An end lies beyond the stated number of nodes; the caller finds its place."""

    def __init__(self, type_name: str, num_nodes: int, highest: int) -> None:
        super().__init__(type_name)
        self.type_name = type_name
        self.num_nodes = num_nodes
        self.highest = highest


def ends_of_type(relation: Relation, name: str) -> tuple[bool, bool]:
    """Return whether a relation's sources and destinations are of a type."""
    return relation.src_type == name, relation.dst_type == name


def _end_chunks(decoded: Decoded, name: str) -> Iterator[RawIds]:
    """Yield every ID that occurs as an end of a type, in input order."""
    for batch, (src, dst, relations, _) in zip(decoded.batches, decoded.edges.read(0), strict=True):
        for code, relation in enumerate(decoded.relations):
            if batch.relation is not None and batch.relation != code:
                continue
            is_src, is_dst = ends_of_type(relation, name)
            chosen = slice(None) if relations is None else np.flatnonzero(relations == code)
            if is_src:
                yield src[chosen]
            if is_dst:
                yield dst[chosen]


def _end_span(decoded: Decoded, name: str) -> tuple[int, int]:
    """Return the highest ID of a type (-1 without any) and the number of edges."""
    highest = -1
    for ids in _end_chunks(decoded, name):
        if ids.size:
            highest = max(highest, int(ids.max()))
    return highest, decoded.num_edges


def _check_dense(name: str, num_nodes: int, rules: NodeRules) -> None:
    """Refuse IDs so high that one bit for each would take half of the memory limit."""
    need = num_nodes // 8
    if need > rules.limit_bytes // 2:
        raise MemoryLimitError(
            f"node type {name!r}: dense IDs up to {num_nodes - 1} need {format_size(2 * need)} of memory",
            fix="use --ids sparse, or raise --memory-limit",
        )


def _seen_bits(decoded: Decoded, name: str, num_nodes: int) -> NDArray[np.uint8]:
    bits = np.zeros((num_nodes + 7) // 8, np.uint8)
    for ids in _end_chunks(decoded, name):
        mark_bits(bits, ids)
    return bits


def _ids_note(index: NodeIndex, number: int, num_ids: int, dense: bool, explicit: bool) -> str:
    name = index.type_names[number]
    taken = "" if explicit else " (chosen by --ids auto)"
    hint = "; every ID is >= 1 and the highest equals their number: --index-base 1 would count from 0"
    if not dense:
        count = index.num_nodes[number]
        note = f"node type {name!r}: the {count} IDs that occur are its nodes: --ids sparse{taken}"
        return note + hint if count and count == num_ids - 1 and not _has_zero(index.tables[-1]) else note
    if not num_ids:
        return f"node type {name!r}: no ID occurs, so it has no nodes"
    idle = num_ids - int(np.bitwise_count(index.seen[number]).sum())
    edges = "all of them have edges" if not idle else f"{idle} of them {'has' if idle == 1 else 'have'} no edge"
    note = f"node type {name!r}: 0..{num_ids - 1} are its nodes: --ids dense{taken}; {edges}"
    if idle == 1 and not index.seen[number][0] & 1:
        note += hint
    return note


def _has_zero(table: Runs) -> bool:
    ids, *_ = next(table.read(0))
    return ids is not None and int(ids[0]) == 0


def _assign_sparse(index: NodeIndex, number: int, decoded: Decoded, rules: NodeRules, pool: SpillPool) -> None:
    indexer = SpaceIndexer(pool, rules.cap_bytes)
    for ids in _end_chunks(decoded, index.type_names[number]):
        indexer.add_ends(ids)
    table = Runs(pool, 1, coalesce=False)
    size = 0
    for chunk in indexer.sorted():
        table.append(0, (chunk.ids, np.full(chunk.ids.size, number, np.int32)))
        size += chunk.ids.size
    sizes = np.zeros(len(index.type_names), np.int64)
    sizes[number] = size

    def chunks() -> Iterator[SortedChunk]:
        for ids, types in table.read(0):
            yield SortedChunk(ids, types)

    _assign(index, number, chunks, sizes, pool)
    table.close()


# Nodes 0..n-1 of a type.


def _from_counts(decoded: Decoded, names: tuple[str, ...], counts: list[int], rules: NodeRules, pool: SpillPool) -> NodeIndex:
    numbers = np.arange(len(names), dtype=np.int32)
    index = NodeIndex(names, rules.partition(names), numbers, num_created=[0] * len(names))
    for number, count in enumerate(counts):
        _assign_dense(index, number, count, pool)
    return index


def _assign_dense(index: NodeIndex, number: int, num_nodes: int, pool: SpillPool) -> None:
    if index.partition.method == "range":
        sizes = cut_sizes(num_nodes, index.partition.num_parts)
        index.spaces[number] = NodeMap(num_nodes, number)
        index.part_offsets.append(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]))
        index.raw_kinds.append("identity")
        return

    def chunks() -> Iterator[SortedChunk]:
        for start in range(0, num_nodes, _ARANGE_ROWS):
            ids = np.arange(start, min(start + _ARANGE_ROWS, num_nodes), dtype=np.uint64)
            yield SortedChunk(ids, np.full(ids.size, number, np.int32))

    sizes = np.zeros(len(index.type_names), np.int64)
    sizes[number] = num_nodes
    _assign(index, number, chunks, sizes, pool)


# Typed IDs for a sorted space, whatever it came from.


@dataclass
class _TypeState:
    """What is known of a type while its nodes go by in raw order."""

    parts: Ints
    counter: TypedCounter | None = None
    rank: int = 0
    identity: bool = True
    highest: int = -1


def _assign(index: NodeIndex, space: int, chunks: Callable[[], Iterable[SortedChunk]], sizes: Ints, pool: SpillPool) -> None:
    """Give typed IDs to the nodes of a space: ``chunks()`` yields them sorted, ``sizes`` counts them by type."""
    function = index.partition
    own = range(len(index.type_names)) if space == -1 else [space]
    states = {number: _TypeState(np.zeros(function.num_parts, np.int64)) for number in own}
    for number, _, parts in _parts_by_type(index, chunks(), states, sizes, function):
        states[number].parts += np.bincount(parts, minlength=function.num_parts)
    for state in states.values():
        state.counter = TypedCounter(state.parts)
        state.rank = 0
    table = Runs(pool, 1, coalesce=False)
    for chunk in chunks():
        typed = np.empty(chunk.ids.size, np.int64)
        for number, rows, parts in _parts_by_type(index, [chunk], states, sizes, function):
            state = states[number]
            assert state.counter is not None
            typed[rows] = state.counter.take(parts)
            ids = chunk.ids[rows]
            state.identity = state.identity and bool((typed[rows].view(np.uint64) == ids).all())
            state.highest = max(state.highest, int(ids[-1]))
        table.append(0, (chunk.ids, chunk.types, typed))
    for number in own:
        state = states[number]
        index.part_offsets.append(np.concatenate([np.zeros(1, np.int64), np.cumsum(state.parts)]))
        index.raw_kinds.append("identity" if state.identity else "uint64" if state.highest >= 2**63 else "int64")
    index.tables.append(table)
    index.spaces[space] = NodeMap(int(sizes.sum()), max(space, 0), table)


def _parts_by_type(
    index: NodeIndex, chunks: Iterable[SortedChunk], states: Mapping[int, _TypeState], sizes: Ints, function: PartitionFunction
) -> Iterator[tuple[int, Ints, Ints]]:
    """Yield (type number, rows in the chunk, their partitions) for every chunk and type in it; advances the types' ranks."""
    for chunk in chunks:
        first = int(chunk.types[0]) if chunk.types.size else -1
        numbers = [first] if chunk.types.size and (chunk.types == first).all() else np.unique(chunk.types)
        for number in numbers:
            rows = np.arange(chunk.ids.size) if len(numbers) == 1 else np.flatnonzero(chunk.types == number)
            if not rows.size:
                continue
            state = states[int(number)]
            name = index.type_names[int(number)]
            parts = function.parts(chunk.ids[rows], state.rank, int(sizes[number]), int(number), name)
            state.rank += rows.size
            yield int(number), rows, parts


def created_types(index: NodeIndex) -> list[int]:
    """Return the numbers of the types that got created nodes."""
    return [number for number, count in enumerate(index.num_created) if count]


__all__ = ["CREATED", "BeyondError", "NodeIndex", "NodeRules", "created_types", "ends_of_type", "index_nodes"]
