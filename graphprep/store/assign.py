"""Nodes to partitions, and with that to typed IDs: docs/store.md, "Partition functions" and "Typed order"."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.ids.hash import hash_ints, permute_range
from graphprep.kernels.cpu.ids.intervals import count_intervals, find_intervals
from graphprep.kernels.cpu.text.search import find_texts
from graphprep.kernels.cpu.text.texts import hash_texts, sort_texts, take_texts
from graphprep.model.errors import DataError, UsageError, one_of
from graphprep.model.plugins import import_named

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

ROUND_ROBIN = "round-robin"
PARTITION_METHODS = ("range", "hash", "modulo", "random", ROUND_ROBIN)
GRAPH_METHODS = ("ldg", "fennel", "metis")  # partitioners that look at edges
PYTHON_PREFIX = "python:"  # of a user's own function: python:module:function
ORDERED = "order"  # what ``partition_by`` says where nodes were ordered across partitions
Ints = NDArray[np.int64]


def method_name(given: str) -> str:
    """Return what metadata.json says of a method, a file or a function."""
    if given in (*PARTITION_METHODS, *GRAPH_METHODS):
        return given
    return "python" if given.startswith(PYTHON_PREFIX) else "file"


def check_partition_method(given: str, storage: Storage, option: str = "--partition-by") -> None:
    """Refuse a way to partition that is neither a method nor a file, before anything is read."""
    known = (*PARTITION_METHODS, *GRAPH_METHODS)
    if given.startswith(PYTHON_PREFIX):
        load_partition_function(given)
    elif given not in known and not storage.exists(given) and not storage.is_dir(given):
        raise UsageError(
            f"{option} {given!r} is neither a method nor a file",
            fix=f"{one_of(known, found=given)}, or name an existing file or folder",
        )


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


class RawBatch(NamedTuple):
    """Raw IDs of some nodes: numbers (uint64[n]; the bits of int64 where ``is_signed``), or ``texts`` (offsets, values).

    ``records`` (int64[n]) are the numbers of their records in the input, -1 for nodes without one; None: they are not known.
    """

    numbers: NDArray[np.uint64]
    is_signed: bool = False
    texts: tuple[Ints, NDArray[np.uint8]] | None = None
    records: Ints | None = None

    @property
    def size(self) -> int:
        """Return how many there are."""
        return int(self.numbers.size)

    def take(self, rows: Ints) -> RawBatch:
        """Return chosen ones."""
        texts = None if self.texts is None else take_texts(*self.texts, rows)
        records = None if self.records is None else self.records[rows]
        return RawBatch(self.numbers[rows], self.is_signed, texts, records)

    def hashes(self) -> NDArray[np.uint64]:
        """Return h of docs/store.md, "Hashes": uint64[n]."""
        return np.asarray(hash_ints(self.numbers) if self.texts is None else hash_texts(*self.texts))

    def text(self, row: int) -> str:
        """Return one that is a text."""
        assert self.texts is not None
        offsets, values = self.texts
        return bytes(values[offsets[row] : offsets[row + 1]]).decode(errors="replace")

    def words(self, row: int) -> str:
        """Return one, for messages."""
        if self.texts is not None:
            return repr(self.text(row))
        return str(int(self.numbers.view(np.int64)[row] if self.is_signed else self.numbers[row]))


class PartTable(NamedTuple):
    """The partitions of one node type as a file states them.

    ``parts``: int64, by rank of the raw ID. With ``ids`` (int64 or uint64, ascending) or ``texts`` (offsets, values, ascending)
    they belong to those raw IDs instead.
    """

    place: str
    parts: Ints
    ids: NDArray[np.int64] | NDArray[np.uint64] | None = None
    texts: tuple[Ints, NDArray[np.uint8]] | None = None

    def find(self, ids: RawBatch) -> Ints:
        """Return the row of every raw ID, which ascend, -1 where there is none: int64[n]."""
        if self.texts is not None and ids.texts is not None:
            return np.asarray(find_texts(*self.texts, *ids.texts), np.int64)
        if self.texts is not None:  # numbers ascend otherwise than their digits
            digits = as_texts(ids)
            order = sort_texts(*digits)
            rows = np.empty(ids.size, np.int64)
            rows[order] = find_texts(*self.texts, *take_texts(*digits, order))
            return rows
        assert self.ids is not None
        if ids.texts is not None or not self.ids.size:
            return np.full(ids.size, -1, np.int64)
        wanted_ids = ids.numbers.view(np.int64) if ids.is_signed else ids.numbers
        if self.ids.dtype != wanted_ids.dtype:  # one of them has no negative numbers: compare what both can hold
            fits = wanted_ids < 2**63 if wanted_ids.dtype == np.uint64 else wanted_ids >= 0
            found = np.searchsorted(self.ids, wanted_ids.astype(self.ids.dtype))
        else:
            fits = np.ones(ids.size, bool)
            found = np.searchsorted(self.ids, wanted_ids)
        at = np.minimum(found, self.ids.size - 1)
        return np.where(fits & (self.ids[at] == wanted_ids.astype(self.ids.dtype)), at, -1)


def as_texts(ids: RawBatch) -> tuple[Ints, NDArray[np.uint8]]:
    """Write numbers as decimal digits: (offsets, values)."""
    words = [ids.words(row).encode() for row in range(ids.size)]
    offsets = np.zeros(len(words) + 1, np.int64)
    np.cumsum([len(word) for word in words], out=offsets[1:])
    return offsets, np.frombuffer(b"".join(words), np.uint8)


def load_partition_function(given: str) -> Callable[[Any, str], Any]:
    """Return the function of ``python:module:function``. Raises UsageError."""
    path, form = given.removeprefix(PYTHON_PREFIX), "python:module:function"
    module, name = import_named(path, "a partition function", form, "the function")
    found = getattr(module, name, None)
    if not callable(found):
        message = f"a partition function {path}: module {module.__name__!r} has no function {name!r}"
        raise UsageError(message, fix="correct the name")
    return cast("Callable[[Any, str], Any]", found)


@dataclass(frozen=True)
class PartitionFunction:
    """Says which partition a node belongs to.

    ``method`` is range, hash, modulo, random, round-robin, file or python; ``tables`` holds the file's assignment by node type
    name, or ``homogeneous`` that of all types, one after another;
    ``ask`` is the user's own function, which gets raw IDs (int64 or uint64 array, or a list of texts) and the type's name.
    """

    method: str
    num_parts: int
    seed: int = 0
    tables: Mapping[str, PartTable] | None = None
    homogeneous: PartTable | None = None
    ask: Callable[[Any, str], Any] | None = None

    def with_sizes(self, type_names: Sequence[str], sizes: Sequence[int]) -> PartitionFunction:
        """Return the function for types of so many nodes. Raises DataError where one file does not assign all of them."""
        table, borders = self.homogeneous, np.cumsum([0, *sizes])
        if table is None:
            return self
        if table.parts.size != borders[-1]:
            raise DataError(
                f"{table.parts.size} assignments, but the graph has {borders[-1]} nodes",
                place=table.place,
                fix="write a line for each node, type after type, or name a folder of <type>.txt or <type>.parquet files",
            )
        cut = zip(type_names, pairwise(borders.tolist()), strict=True)
        return replace(self, tables={name: PartTable(table.place, table.parts[low:high]) for name, (low, high) in cut})

    def parts(self, ids: RawBatch, first_rank: int, num_nodes: int, type_number: int, type_name: str) -> Ints:
        """Return the partition of consecutive nodes of a type, in raw order: int64[k].

        ``ids`` are their raw IDs, ``first_rank`` the rank of the first among the type's ``num_nodes``. Raises DataError where
        the method cannot say.
        """
        if self.method == "hash":
            return np.asarray(ids.hashes() % np.uint64(self.num_parts), np.int64)
        if self.method == "modulo":
            return self._modulo(ids, type_name)
        if self.ask is not None:
            return self._asked(self.ask, ids, type_name)
        if self.method == "random":
            moved = permute_range(first_rank, ids.size, num_nodes, self.seed, type_number).astype(np.int64)
            return part_of_position(moved, num_nodes, self.num_parts)
        ranks = np.arange(first_rank, first_rank + ids.size, dtype=np.int64)
        if self.method == "file":
            return self._from_table(ids, ranks, num_nodes, type_name)
        dealt = ranks if ids.records is None else np.where(ids.records < 0, ranks, ids.records)
        is_dealt = self.method == ROUND_ROBIN
        return dealt % self.num_parts if is_dealt else part_of_position(ranks, num_nodes, self.num_parts)

    def _modulo(self, ids: RawBatch, type_name: str) -> Ints:
        if ids.texts is not None:
            raise UsageError(
                f"--partition-by modulo needs integer IDs, but those of node type {type_name!r} are strings",
                fix="use hash, range or random",
            )
        if ids.is_signed:
            return np.asarray(ids.numbers.view(np.int64) % np.int64(self.num_parts))
        return (ids.numbers % np.uint64(self.num_parts)).astype(np.int64)

    def _asked(self, ask: Callable[[Any, str], Any], ids: RawBatch, type_name: str) -> Ints:
        """Return what the user's function says, checked."""
        numbers = ids.numbers.view(np.int64) if ids.is_signed or (ids.numbers < 2**63).all() else ids.numbers
        given = numbers.copy() if ids.texts is None else [ids.text(row) for row in range(ids.size)]
        place = f"{ask.__module__}:{getattr(ask, '__qualname__', type(ask).__qualname__)}"  # a callable object has no name
        try:
            parts = np.asarray(ask(given, type_name))
        except (Exception, SystemExit) as error:
            words = f"the partition function raised {type(error).__name__}: {error}"
            raise DataError(words, place=place, fix="correct the function") from error
        if parts.shape != (ids.size,) or parts.dtype.kind not in "iu":
            found = f"{parts.dtype}{list(parts.shape)}"
            raise DataError(
                f"expected {ids.size} integers, found {found}", place=place, fix="return a partition for each raw ID"
            )
        bad = (parts < 0) | (parts >= self.num_parts)
        if bad.any():
            at = int(np.argmax(bad))
            words = f"partition {parts[at]} of node {ids.words(at)} of type {type_name!r} is outside [0, {self.num_parts})"
            raise DataError(words, place=place, fix="correct the function, or the number of partitions")
        return parts.astype(np.int64)

    def _from_table(self, ids: RawBatch, ranks: Ints, num_nodes: int, type_name: str) -> Ints:
        table = (self.tables or {}).get(type_name)
        if table is None:
            raise DataError(f"no assignment for node type {type_name!r}", fix=f"add {type_name}.txt or {type_name}.parquet")
        if table.parts.size != num_nodes:
            raise DataError(
                f"{table.parts.size} assignments, but node type {type_name!r} has {num_nodes} nodes",
                place=table.place,
                fix="give each node exactly one partition",
            )
        if table.ids is None and table.texts is None:
            return table.parts[ranks]
        found = table.find(ids)
        if (found < 0).any():
            raise DataError(
                f"no assignment for node {ids.words(int(np.argmax(found < 0)))} of type {type_name!r}",
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
