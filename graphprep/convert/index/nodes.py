"""Which nodes there are, for every way in which formats name them: those of records, the ends of edges, or stated numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.amounts import Amounts
from graphprep.convert.decoded.rows import Batch, Decoded, IdRange, RawBatchEdges
from graphprep.convert.decoded.texts import KeyCollisionError
from graphprep.convert.index.node_index import ARANGE_ROWS, Assigner, NodeIndex
from graphprep.convert.index.node_spaces import NodeRules, SortedSpace, created_code, sort_spaces
from graphprep.convert.index.ranks import CREATED, SORT_BYTES
from graphprep.convert.index.resolve import NodeMap
from graphprep.convert.read.decode import Rows, decode
from graphprep.convert.read.locate import Locator
from graphprep.convert.run import Run
from graphprep.engine.budget import format_size
from graphprep.engine.ledger import Need
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.group import mark_bits
from graphprep.model.errors import DataError, MemoryLimitError, UsageError, one_of
from graphprep.model.options.convert import ConvertOptions
from graphprep.storage.faults import display_url
from graphprep.storage.spill.runs import Runs, SpillPool
from graphprep.store.assign import PARTITION_METHODS, PartitionFunction, cut_sizes, order_types

_BASE_HINT = "; every ID is >= 1 and the highest equals their number: --index-base 1 would count from 0"


def index_needs(amounts: Amounts, cap_bytes: int) -> Iterator[Need]:
    """Declare what indexing takes."""
    num_ids = amounts.num_node_rows + 2 * amounts.num_edges
    yield Need("raw IDs", min(cap_bytes, SORT_BYTES * num_ids), f"sorted, {SORT_BYTES} bytes for each that occurs")
    if amounts.has_texts:
        yield Need("texts", cap_bytes, "raw IDs that are texts, sorted")
    if amounts.by_ends:
        yield Need("marks", cap_bytes, "a bit for each ID that occurs, for each thread if that fits")


@dataclass(frozen=True, eq=False)
class Indexed(Rows):
    """What decoding and indexing made."""

    index: NodeIndex


def index(run: Run, rows: Rows) -> Indexed:
    """Index the nodes of a decoded input; decode it again with other keys, should two names have the same one.

    Raises what ``index_nodes`` raises, with the place of an end that lies beyond ``--num-nodes``.
    """
    plan = rows.plan
    while True:
        decoded = rows.decoded
        run.ledger.begin("index", (*index_needs(Amounts.of(decoded), run.memory.cap_bytes), run.memory.runs()))
        type_order = None if plan.schema is None else plan.schema.node_types
        rules = NodeRules(partial(_partition_function, run, rows), run.options, run.memory, type_order)
        try:
            return Indexed(plan, decoded, rows.settings, index_nodes(decoded, rules, run.pool))
        except BeyondError as error:
            place, found = Locator(decoded, run.storage, rows.settings).first_end_beyond(error.type_name, error.num_nodes)
            raise DataError(
                f"node {found} is outside [0, {error.num_nodes})",
                place=place,
                fix=f"raise --num-nodes to {error.highest + 1}, or correct the ID",
            ) from None
        except KeyCollisionError:
            decoded.close()
            rows = decode(run, plan, again=decoded)


def _partition_function(run: Run, rows: Rows, names: tuple[str, ...]) -> PartitionFunction:
    options = run.options
    if options.partition_by in PARTITION_METHODS:
        return PartitionFunction(options.partition_by, options.partitions or 1, options.seed)
    from graphprep.convert.index.partition_file import find_partition_function
    from graphprep.store.room import check_parts

    found = find_partition_function(run.storage, options.partition_by, names, options.partitions, 1, options.seed)
    if options.partitions is None and found.method == "file":
        by, places = display_url(options.partition_by), (run.out, run.tmp_dir)
        check_parts(found.num_parts, by, rows.decoded.sources, options, run.memory, places)
    return found


def index_nodes(decoded: Decoded, rules: NodeRules, pool: SpillPool) -> NodeIndex:
    """Index the nodes of a decoded input and give them typed IDs.

    Raises BeyondError for an end beyond a stated number of nodes, KeyCollisionError where two texts have one key.
    """
    ranges = find_ranges(decoded, rules) if decoded.sources.nodes == "ends" else {}
    dense = _dense_spaces(decoded, rules, ranges)
    seen = seen_bits(decoded, ranges, rules) if ranges else {}
    sorted_spaces: list[SortedSpace] = []
    duplicates = np.zeros(0, np.int64)
    to_sort = dict.fromkeys(map(decoded.spaces.of_type, decoded.node_types))
    if decoded.sources.nodes == "records":
        to_sort[""] = None
    for name in (*dense, *decoded.texts):
        to_sort.pop(name, None)
    if to_sort or decoded.texts:
        sorted_spaces, duplicates = sort_spaces(decoded, rules, pool, list(to_sort))
    names = _type_names(decoded, rules, sorted_spaces)
    numbers: dict[int, int] = {}
    of_codes = np.full(len(decoded.node_types), -1, np.int32)
    for code, name in enumerate(decoded.node_types):
        if name in names:
            numbers[code] = of_codes[code] = names.index(name)
    created = {created_code(code): number for code, number in numbers.items()} if sorted_spaces else {}
    if rules.options.missing_node_type in names:
        created[int(CREATED)] = names.index(str(rules.options.missing_node_type))
    spaces = tuple(map(decoded.spaces.of_type, names))
    sizes = list(map(dense.get, spaces, repeat(0)))
    for space in sorted_spaces:
        for code, number in {**numbers, **created}.items():
            sizes[number] += space.counts.get(code, 0)
    partition = rules.partition(tuple(names)).with_sizes(names, sizes)
    index = NodeIndex(
        type_names=tuple(names),
        partition=partition,
        numbers_of_codes=of_codes,
        space_of_type=spaces,
        part_offsets=[np.zeros(partition.num_parts + 1, np.int64)] * len(names),  # replaced, one by one
        raw_kinds=["identity"] * len(names),
        num_created=[0] * len(names),
        duplicates=duplicates,
    )
    for space in sorted_spaces:
        Assigner(index, space, numbers, created).run(pool, rules.memory.cap_bytes)
    for name, num_nodes in dense.items():
        _assign_dense(index, index.space_of_type.index(name), num_nodes, pool)
    index.num_nodes = list(map(int, map(itemgetter(-1), index.part_offsets)))
    if decoded.sources.nodes == "ends":
        _note_ends(index, ranges, seen, decoded)
    return index


def _dense_spaces(decoded: Decoded, rules: NodeRules, ranges: dict[str, EndRange]) -> dict[str, int]:
    """Return how many nodes the ID spaces have in which all of 0..n-1 are nodes.

    Raises DataError for one whose raw IDs are strings.
    """
    kind, dense = decoded.sources.nodes, {}
    for found in ranges.values():
        if found.num_nodes is not None:
            dense[found.space] = found.num_nodes
    if kind in ("records", "ends"):
        return dense
    numbers = rules.options.num_nodes
    for node in decoded.sources.node_types:
        given = node.num_nodes if node.has_records else numbers.get(node.name, numbers.get("", node.num_nodes))
        if kind == "identity" or (given is not None and not node.has_records):
            dense[decoded.spaces.of_type(node.name)] = given or 0
    for name, count in dense.items():
        if name in decoded.texts:
            raise DataError(
                f"node type {name!r} has nodes 0..{count - 1}, but raw IDs that are strings",
                fix="read them as integers, or drop the number of nodes",
            )
    return dense


def _type_names(decoded: Decoded, rules: NodeRules, spaces: list[SortedSpace]) -> list[str]:
    """Put the node types in order: those that the input lists first, as it lists them; what it only mentions by name."""
    listed = list(map(attrgetter("name"), decoded.sources.node_types))
    found = set(decoded.node_types) - set(listed)
    if rules.options.missing_node_type is not None and any(CREATED in space.counts for space in spaces):
        found |= {rules.options.missing_node_type} - set(listed)
    if rules.type_order is None:
        return listed + order_types(sorted(found)) if found else listed
    unknown = sorted({*listed, *found} - set(rules.type_order))
    if unknown:
        raise DataError(
            f"node type {unknown[0]!r} is not in the schema",
            fix=f"{one_of(rules.type_order, found=unknown[0])}, or add the type to the schema",
        )
    return list(rules.type_order)


def _note_ends(index: NodeIndex, ranges: dict[str, EndRange], seen: dict[str, NDArray[np.uint8]], decoded: Decoded) -> None:
    """Say how the nodes of types without records were found."""
    for node in decoded.sources.node_types:
        name, found = node.name, ranges.get(node.name)
        count = index.num_nodes[index.type_names.index(name)]
        if found is None:
            index.notes.append(f"node type {name!r}: the {count:,} names that occur are its nodes")
        else:
            index.notes.append(found.sparse_note(count) if found.num_nodes is None else found.dense_note(seen[name]))


def _assign_dense(index: NodeIndex, number: int, num_nodes: int, pool: SpillPool) -> None:
    name = index.space_of_type[number]
    if index.partition.method == "range":
        sizes = cut_sizes(num_nodes, index.partition.num_parts)
        index.spaces[name] = NodeMap(num_nodes, number)
        index.part_offsets[number] = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        return
    space = SortedSpace(name, Runs(pool, 1, coalesce=False))
    for start in range(0, num_nodes, ARANGE_ROWS):
        ids = np.arange(start, min(start + ARANGE_ROWS, num_nodes), dtype=np.uint64)
        space.append(ids, np.zeros(ids.size, np.int32), None, None)
    Assigner(index, space, {0: number}, {}).run(pool, 1 << 20)


# Types whose nodes are the ends of their edges: whether all of 0..max are nodes, or only the IDs that occur.


class BeyondError(Exception):
    """An end lies beyond the stated number of nodes; the caller finds its place."""

    def __init__(self, type_name: str, num_nodes: int, highest: int) -> None:
        super().__init__(type_name)
        self.type_name = type_name
        self.num_nodes = num_nodes
        self.highest = highest


class EndRange(NamedTuple):
    """What is known of a type whose nodes are the ends of its edges.

    IDs lie in [lowest, highest] (0 and -1 without any). ``num_nodes`` is the number of nodes where 0..n-1 are its nodes, None
    where only those are that occur; then ``note`` is not complete: their number is told by the index.
    """

    name: str
    space: str
    lowest: int
    highest: int
    num_nodes: int | None
    taken: str

    def dense_note(self, seen: NDArray[np.uint8]) -> str:
        """Say which nodes there are, where they are 0..n-1; ``seen`` has a bit for each ID that occurs."""
        if not self.num_nodes:
            return f"node type {self.name!r}: no ID occurs, so it has no nodes"
        idle = self.num_nodes - int(np.bitwise_count(seen).sum())
        edges = f"; {idle:,} of them {'has' if idle == 1 else 'have'} no edge" if idle else ""
        note = f"node type {self.name!r}: 0..{self.num_nodes - 1} are its nodes: --ids dense{self.taken}{edges}"
        return note + _BASE_HINT if idle == 1 and not seen[0] & 1 else note

    def sparse_note(self, count: int) -> str:
        """Say which nodes there are, where only the IDs that occur are."""
        note = f"node type {self.name!r}: the {count:,} IDs that occur are its nodes: --ids sparse{self.taken}"
        return note + _BASE_HINT if count and self.lowest >= 1 and count == self.highest else note


def find_ranges(decoded: Decoded, rules: NodeRules) -> dict[str, EndRange]:
    """Decide for each type whose IDs are numbers which of them are its nodes. By name.

    Raises BeyondError for an ID beyond a stated number of nodes, UsageError where the flags do not fit the IDs.
    """
    found: dict[str, IdRange] = {}
    stated: dict[str, int | None] = {}
    spaces: dict[str, str] = {}
    numbers = rules.options.num_nodes
    for node in decoded.sources.node_types:
        stated[node.name] = numbers.get(node.name, numbers.get("", node.num_nodes))
        spaces[node.name] = decoded.spaces.of_type(node.name)
        if spaces[node.name] not in decoded.texts:
            found[node.name] = IdRange(0, -1)
        elif rules.options.ids == "dense" or stated[node.name] is not None:
            flag = "--ids dense" if rules.options.ids == "dense" else "a number of nodes"
            raise UsageError(f"{flag}: raw IDs of node type {node.name!r} are strings", fix="drop it, or read integers")
    for batch in decoded.batches:
        if batch.ranges is not None:
            for (_, code), own in zip(decoded.end_spaces(batch.codes), batch.ranges, strict=True):
                name = decoded.node_types[code]
                if name in found:
                    found[name] = own if found[name].high < found[name].low else found[name].join(own)
    ranges = {}
    for name, own in found.items():
        limit_bytes = rules.memory.limit_bytes
        ranges[name] = settle_range(name, spaces[name], own, stated[name], decoded.num_edges, rules.options, limit_bytes)
    return ranges


def settle_range(
    name: str, space: str, found: IdRange, stated: int | None, num_edges: int, options: ConvertOptions, limit_bytes: int
) -> EndRange:
    """Decide which IDs of a type are its nodes, where its edges' ends lie in a range; raises what ``find_ranges`` does."""
    lowest, highest = found
    if stated is not None and (highest >= stated or lowest < 0):
        raise BeyondError(name, stated, highest)
    if lowest < 0 and options.ids == "dense":
        raise UsageError(f"--ids dense: node type {name!r} has the raw ID {lowest}", fix="use --ids sparse")
    num_nodes = highest + 1 if stated is None else stated
    auto = options.ids in (None, "auto") and lowest >= 0 and (stated is not None or num_nodes <= 2 * num_edges)
    is_dense = options.ids == "dense" or auto
    # One bit for each ID would take half of the memory limit.
    if is_dense and num_nodes // 8 > limit_bytes // 2:
        raise MemoryLimitError(
            f"node type {name!r}: dense IDs up to {num_nodes - 1} need {format_size(2 * (num_nodes // 8))} of memory",
            fix="use --ids sparse, or raise --memory-limit",
        )
    taken = "" if options.ids not in (None, "auto") or stated is not None else " (chosen by --ids auto)"
    return EndRange(name, space, lowest, highest, num_nodes if is_dense else None, taken)


def seen_bits(decoded: Decoded, ranges: dict[str, EndRange], rules: NodeRules) -> dict[str, NDArray[np.uint8]]:
    """Mark every ID that occurs, for the types whose nodes are 0..n-1: uint8[(n + 7) // 8] by name.

    Each thread marks bits of its own where there is room for them.
    """
    sizes: dict[str, int] = {}
    for found in ranges.values():
        if found.num_nodes is not None:
            sizes[found.name] = (found.num_nodes + 7) // 8
    early = decoded.early
    if early is not None and decoded.are_scattered and all(early.scatterer.marks(side).is_complete for side in range(2)):
        relation = decoded.relations[0]
        sides = {str(relation.src_type): 0, str(relation.dst_type): 1}
        return {name: early.scatterer.marks(sides[name]).merged(size) for name, size in sizes.items() if name in sides}
    threads = max(1, min(rules.memory.threads, rules.memory.cap_bytes // max(1, sum(sizes.values()))))
    every: list[dict[str, NDArray[np.uint8]]] = []
    while len(every) < threads:
        every.append(dict(zip(sizes, map(np.zeros, sizes.values(), repeat(np.uint8)), strict=True)))
    free = list(every)

    def mark(found: tuple[Batch, RawBatchEdges]) -> None:
        batch, edges = found
        bits = free.pop()  # there are as many as threads
        for (_, code), ids in zip(decoded.end_spaces(batch.codes), (edges.src, edges.dst), strict=True):
            if decoded.node_types[code] in bits:
                mark_bits(bits[decoded.node_types[code]], ids)
        free.append(bits)

    for _ in map_ordered(mark, decoded.edge_batches() if sizes else (), threads):
        pass
    for other in every[1:]:
        for name, bits in other.items():
            every[0][name] |= bits
    return every[0]
