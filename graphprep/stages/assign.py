"""Nodes to partitions, and with that to typed IDs: STORE.md, "Partition functions" and "Typed order"."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.hash import hash_ints, permute_range
from graphprep.kernels.cpu.intervals import count_intervals, find_intervals
from graphprep.model.errors import DataError

PARTITION_METHODS = ("range", "hash", "modulo", "random")
Ints = NDArray[np.int64]


def cut_sizes(num_nodes: int, num_parts: int) -> Ints:
    """Cut n nodes into P runs, the first n mod P one longer: int64[P]."""
    sizes = np.full(num_parts, num_nodes // num_parts, np.int64)
    sizes[: num_nodes % num_parts] += 1
    return sizes


def part_of_position(positions: Ints, num_nodes: int, num_parts: int) -> Ints:
    """Return the run of ``cut_sizes`` in which a position of 0..n-1 lies: int64[k]."""
    size, longer = divmod(num_nodes, num_parts)
    head = longer * (size + 1)
    in_head = positions // (size + 1)
    if size == 0:
        return in_head
    return np.where(positions < head, in_head, longer + (positions - head) // size)


@dataclass(frozen=True)
class PartTable:
    """The partitions of one node type as a file states them.

    ``parts``: int64, by rank of the raw ID. With ``ids`` (uint64, ascending) they belong to those raw IDs instead.
    """

    place: str
    parts: Ints
    ids: NDArray[np.uint64] | None = None


@dataclass(frozen=True)
class PartitionFunction:
    """Says which partition a node belongs to.

    ``method`` is range, hash, modulo, random or file; ``tables`` holds the file's assignment by node type name.
    """

    method: str
    num_parts: int
    seed: int = 0
    tables: Mapping[str, PartTable] | None = None

    def parts(self, ids: NDArray[np.uint64], first_rank: int, num_nodes: int, type_number: int, type_name: str) -> Ints:
        """Return the partition of consecutive nodes of a type, in raw order: int64[k].

        ``ids`` are their raw IDs, ``first_rank`` the rank of the first among the type's ``num_nodes``.
        """
        ranks = np.arange(first_rank, first_rank + ids.size, dtype=np.int64)
        if self.method == "hash":
            return np.asarray(hash_ints(ids) % np.uint64(self.num_parts), np.int64)
        if self.method == "modulo":
            return (ids % np.uint64(self.num_parts)).astype(np.int64)
        if self.method == "random":
            moved = permute_range(first_rank, ids.size, num_nodes, self.seed, type_number).astype(np.int64)
            return part_of_position(moved, num_nodes, self.num_parts)
        if self.method == "file":
            return self._from_table(ids, ranks, num_nodes, type_name)
        return part_of_position(ranks, num_nodes, self.num_parts)

    def _from_table(self, ids: NDArray[np.uint64], ranks: Ints, num_nodes: int, type_name: str) -> Ints:
        table = (self.tables or {}).get(type_name)
        if table is None:
            raise DataError(f"no assignment for node type {type_name!r}", fix=f"add {type_name}.txt or {type_name}.parquet")
        if table.parts.size != num_nodes:
            raise DataError(
                f"{table.parts.size} assignments, but node type {type_name!r} has {num_nodes} nodes",
                place=table.place,
                fix="give each node exactly one partition",
            )
        if table.ids is None:
            return table.parts[ranks]
        found = np.searchsorted(table.ids, ids)
        missing = (found >= table.ids.size) | (table.ids[np.minimum(found, table.ids.size - 1)] != ids)
        if missing.any():
            raise DataError(
                f"no assignment for node {int(ids[np.argmax(missing)])} of type {type_name!r}",
                place=table.place,
                fix="give each node exactly one partition",
            )
        return table.parts[found]


class TypedCounter:
    """Hands out typed IDs to a type's nodes as they come in raw order, partition after partition."""

    def __init__(self, part_sizes: Ints) -> None:
        self._next = np.concatenate([np.zeros(1, np.int64), np.cumsum(part_sizes)[:-1]])

    def take(self, parts: Ints) -> Ints:
        """Return the typed IDs of the next nodes, given their partitions: int64[k]."""
        if parts.size and (parts == parts[0]).all():
            part = int(parts[0])
            typed = np.arange(self._next[part], self._next[part] + parts.size, dtype=np.int64)
            self._next[part] += parts.size
            return typed
        order = np.argsort(parts, kind="stable")
        grouped = parts[order]
        counts = np.bincount(parts, minlength=self._next.size)
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)[:-1]])
        typed = np.empty(parts.size, np.int64)
        typed[order] = np.arange(parts.size) - starts[grouped] + self._next[grouped]
        self._next += counts
        return typed


def parts_of_rows(rows: Ints, offsets: Ints) -> Ints:
    """Return the partition in which each typed ID lies; ``offsets``: int64[P + 1]."""
    if offsets.size == 2:
        return np.zeros(rows.size, np.int64)
    return np.asarray(find_intervals(rows, offsets), np.int64)


def count_parts(rows: Ints, offsets: Ints) -> Ints:
    """Count typed IDs by the partition in which they lie: int64[P]; ``offsets``: int64[P + 1]."""
    if offsets.size == 2:
        return np.array([rows.size], np.int64)
    return np.asarray(count_intervals(rows, offsets), np.int64)


def order_types(names: Sequence[str]) -> list[str]:
    """Order type names: ascending by name, or by value where all are integers."""
    if all(name.isascii() and name.isdigit() for name in names):
        return sorted(names, key=int)
    return sorted(names)
