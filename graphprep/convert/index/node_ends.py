"""Types whose nodes are the ends of their edges: whether all of 0..max are nodes, or only the IDs that occur."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.rows import Decoded, wide_ids
from graphprep.convert.index.node_spaces import NodeRules
from graphprep.engine.budget import format_size
from graphprep.engine.local import map_ordered
from graphprep.kernels.cpu.ids.group import mark_bits
from graphprep.model.errors import MemoryLimitError, UsageError

_BASE_HINT = "; every ID is >= 1 and the highest equals their number: --index-base 1 would count from 0"


class BeyondError(Exception):
    """An end lies beyond the stated number of nodes; the caller finds its place."""

    def __init__(self, type_name: str, num_nodes: int, highest: int) -> None:
        super().__init__(type_name)
        self.type_name = type_name
        self.num_nodes = num_nodes
        self.highest = highest


@dataclass(frozen=True)
class EndRange:
    """What is known of a type whose nodes are the ends of its edges.

    IDs lie in [lowest, highest] (0 and -1 without any). ``num_nodes`` is the number of nodes where 0..n-1 are its nodes, None
    where only those are that occur; then ``note`` is not complete: their number is told by the index.
    """

    name: str
    lowest: int
    highest: int
    num_nodes: int | None
    taken: str

    def dense_note(self, seen: NDArray[np.uint8]) -> str:
        """Say which nodes there are, where they are 0..n-1; ``seen`` has a bit for each ID that occurs."""
        if not self.num_nodes:
            return f"node type {self.name!r}: no ID occurs, so it has no nodes"
        idle = self.num_nodes - int(np.bitwise_count(seen).sum())
        edges = "all of them have edges" if not idle else f"{idle:,} of them {'has' if idle == 1 else 'have'} no edge"
        note = f"node type {self.name!r}: 0..{self.num_nodes - 1} are its nodes: --ids dense{self.taken}; {edges}"
        return note + _BASE_HINT if idle == 1 and not seen[0] & 1 else note

    def sparse_note(self, count: int) -> str:
        """Say which nodes there are, where only the IDs that occur are."""
        note = f"node type {self.name!r}: the {count:,} IDs that occur are its nodes: --ids sparse{self.taken}"
        return note + _BASE_HINT if count and self.lowest >= 1 and count == self.highest else note


def find_ranges(decoded: Decoded, rules: NodeRules) -> list[EndRange]:
    """Decide for each type whose IDs are numbers which of them are its nodes.

    Raises BeyondError for an ID beyond a stated number of nodes, UsageError where the flags do not fit the IDs.
    """
    names = [node.name for node in decoded.sources.node_types]
    spans = {name: (0, -1) for name in names if decoded.spaces.of_type(name) not in decoded.texts}
    for name in names:
        if name not in spans and (rules.ids == "dense" or _stated(decoded, rules, name) is not None):
            flag = "--ids dense" if rules.ids == "dense" else "a number of nodes"
            raise UsageError(f"{flag}: raw IDs of node type {name!r} are strings", fix="drop it, or read integers")
    signed = {name for name in names if decoded.spaces.of_type(name) in decoded.sources.signed_ids}

    for name, lowest, highest in _limits(decoded, rules, signed):
        if name in spans:
            low, high = spans[name]
            spans[name] = (lowest, highest) if high < low else (min(low, lowest), max(high, highest))
    return [_range(decoded, rules, name, *span) for name, span in spans.items()]


def _limits(decoded: Decoded, rules: NodeRules, signed: set[str]) -> Iterator[tuple[str, int, int]]:
    """Yield (node type, lowest ID, highest ID) for both ends of all edges, piece by piece."""
    if decoded.early is not None and decoded.are_scattered:
        for side, name in enumerate(_types_of_ends(decoded)):
            low, high = decoded.early.limits(side)
            if low <= high:
                yield name, low, high
        return

    def span_of(chunk: tuple[str, NDArray[Any]]) -> tuple[str, int, int] | None:
        name, ids = chunk
        if not ids.size:
            return None
        values = wide_ids(ids).view(np.int64) if name in signed else ids
        return name, int(values.min()), int(values.max())

    for found in map_ordered(span_of, end_chunks(decoded), rules.threads):
        if found is not None:
            yield found


def _types_of_ends(decoded: Decoded) -> tuple[str, str]:
    """Return the node types of sources and destinations of the only relation."""
    relation = decoded.relations[0]
    return str(relation.src_type), str(relation.dst_type)


def _stated(decoded: Decoded, rules: NodeRules, name: str) -> int | None:
    declared = next(node.num_nodes for node in decoded.sources.node_types if node.name == name)
    return rules.num_nodes.get(name, rules.num_nodes.get("", declared))


def _range(decoded: Decoded, rules: NodeRules, name: str, lowest: int, highest: int) -> EndRange:
    stated = _stated(decoded, rules, name)
    if stated is not None and (highest >= stated or lowest < 0):
        raise BeyondError(name, stated, highest)
    if lowest < 0 and rules.ids == "dense":
        raise UsageError(f"--ids dense: node type {name!r} has the raw ID {lowest}", fix="use --ids sparse")
    num_nodes = highest + 1 if stated is None else stated
    auto = rules.ids == "auto" and lowest >= 0 and (stated is not None or num_nodes <= 2 * decoded.num_edges)
    is_dense = rules.ids == "dense" or auto
    if is_dense:
        _check_dense(name, num_nodes, rules)
    taken = "" if rules.ids != "auto" or stated is not None else " (chosen by --ids auto)"
    return EndRange(name, lowest, highest, num_nodes if is_dense else None, taken)


def _check_dense(name: str, num_nodes: int, rules: NodeRules) -> None:
    """Refuse IDs so high that one bit for each would take half of the memory limit."""
    need = num_nodes // 8
    if need > rules.limit_bytes // 2:
        raise MemoryLimitError(
            f"node type {name!r}: dense IDs up to {num_nodes - 1} need {format_size(2 * need)} of memory",
            fix="use --ids sparse, or raise --memory-limit",
        )


def seen_bits(decoded: Decoded, ranges: list[EndRange], rules: NodeRules) -> dict[str, NDArray[np.uint8]]:
    """Mark every ID that occurs, for the types whose nodes are 0..n-1: uint8[(n + 7) // 8] by name.

    Each thread marks bits of its own where there is room for them.
    """
    sizes = {found.name: (found.num_nodes + 7) // 8 for found in ranges if found.num_nodes is not None}
    early = decoded.early
    if early is not None and decoded.are_scattered and all(early.scatterer.marks(side).is_complete for side in range(2)):
        sides = {name: side for side, name in enumerate(_types_of_ends(decoded))}
        return {name: early.scatterer.marks(sides[name]).merged(size) for name, size in sizes.items() if name in sides}
    threads = max(1, min(rules.threads, rules.cap_bytes // max(1, sum(sizes.values()))))
    free = [{name: np.zeros(size, np.uint8) for name, size in sizes.items()} for _ in range(threads)]
    every = list(free)

    def mark(chunk: tuple[str, NDArray[Any]]) -> None:
        name, ids = chunk
        if name in sizes:
            bits = free.pop()  # there are as many as threads
            mark_bits(bits[name], ids)
            free.append(bits)

    for _ in map_ordered(mark, end_chunks(decoded), threads):
        pass
    for other in every[1:]:
        for name, bits in other.items():
            every[0][name] |= bits
    return every[0]


def end_chunks(decoded: Decoded) -> Iterator[tuple[str, NDArray[Any]]]:
    """Yield (node type, IDs that occur as an end: uint32 or uint64), in input order."""
    for batch, chunk in zip(decoded.batches, decoded.raw_edges(), strict=True):
        if batch.num_edges:
            for ids, (_, code) in zip((chunk.src, chunk.dst), decoded.end_spaces(batch), strict=True):
                yield decoded.node_types[code], ids
