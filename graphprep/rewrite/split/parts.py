"""The part of every row: train, valid, test or none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import NO_PART, PART_NAMES
from graphprep.edges.moves import Workspace
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import NEGATIVE_ROLES, ColumnSchema
from graphprep.rewrite.split.borders import Borders, KeyedRows, count_classes, find_borders
from graphprep.rewrite.split.keys import Classes, HashKeys, find_classes, parse_time, time_rows, time_text, type_words
from graphprep.rewrite.split.rules import SplitRules, is_replaced
from graphprep.rewrite.stored_edges import EdgeSpan, map_edges
from graphprep.rewrite.transform.recipe import slices
from graphprep.rewrite.transform.select import Owner
from graphprep.rewrite.transform.write import column_values
from graphprep.store.items import StoredArrays
from graphprep.store.single import WholeStore

Ints = NDArray[np.int64]
Parts = NDArray[np.int8]
_MOST_NAMED = 5  # classes in a note
_RANKS = np.array([0, 2, 3, 1], np.int8)  # of parts, by which the ends of an edge say its own: train, none, valid, test
_OF_RANKS = np.array([0, 3, 1, 2], np.int8)


@dataclass(frozen=True)
class SplitRows:
    """The rows of a type, and their parts: int8[n], by typed ID or edge row; ``is_new``: they are not stored as they are."""

    owner: Owner
    parts: Parts
    is_new: bool = True

    def replaces(self, column: ColumnSchema) -> bool:
        """Return whether a column of the type gives way to what is new."""
        return is_replaced(column) if self.is_new else column.role in NEGATIVE_ROLES

    def count(self) -> dict[str, int]:
        """Count the rows in each part."""
        counts = np.zeros(NO_PART + 1, np.int64)
        for at in slices(self.parts.size):
            counts += np.bincount(self.parts[at], minlength=NO_PART + 1)
        return dict(zip((*PART_NAMES, "none"), counts.tolist(), strict=True))


class PartFinder:
    """Finds the parts of all rows that are split; ``notes`` are sentences for the user."""

    def __init__(self, store: StoredArrays, rules: SplitRules, room: Workspace) -> None:
        self._store = store
        self._rules = rules
        self._room = room
        self._hashes = HashKeys(store, room, rules.seed, rules.symmetric)
        self.notes = list(rules.notes)

    def find(self) -> list[SplitRows]:
        """Return the rows of all types that are split. Raises DataError, UsageError."""
        match self._rules.by:
            case "time":
                return list(self._by_time())
            case "label":
                return [self._by_label(owner, column) for owner, column in (*self._columns(), *self._others())]
            case "keep":
                return [self._stored(owner) for owner in self._rules.owners]
            case "nodes":
                held_out = [self._by_hash(owner) for owner in self._rules.owners]
                return [*held_out, *self._edges_of(held_out)]
        return [found for owner in self._rules.owners for found in self._with_reverse(owner)]

    def _columns(self) -> Iterator[tuple[Owner, ColumnSchema]]:
        for owner, column in zip(self._rules.owners, self._rules.columns, strict=True):
            assert column is not None
            yield owner, column

    def _others(self) -> Iterator[tuple[Owner, ColumnSchema]]:
        """Yield the reverse types that nobody has named, with the columns by which they are split."""
        for first, second in self._rules.reverses:
            column = None if second in self._rules.owners else self._rules.column_like(first, second)
            if column is not None:
                yield second, column

    # ---- as they are

    def _stored(self, owner: Owner) -> SplitRows:
        column = next(one for one in owner.columns if one.role == "split")
        parts, present = column_values(WholeStore(self._store), owner.folder, column, self._room.scratch)
        if present is not None:
            for at in slices(parts.size):
                parts[at] = np.where(present[at], parts[at], NO_PART)
        return SplitRows(owner, parts, is_new=False)

    # ---- at random

    def _by_hash(self, owner: Owner) -> SplitRows:
        return self._cut(owner, *self._random(owner))

    def _random(self, owner: Owner) -> tuple[KeyedRows, Borders]:
        rows = self._hashes.of_nodes(owner) if owner.is_node else self._hashes.of_edges(owner)
        return rows, self._borders([owner], [rows], np.array([owner.size], np.int64))

    def _with_reverse(self, owner: Owner) -> Iterator[SplitRows]:
        """Yield a type, and behind it its reverse, at the same borders."""
        rows, borders = self._random(owner)
        yield self._cut(owner, rows, borders)
        for first, second in self._rules.reverses:
            if first == owner:
                yield self._cut(second, self._hashes.of_edges(second, is_reverse=True), borders)

    def _borders(self, owners: Sequence[Owner], rows: list[KeyedRows], sizes: Ints) -> Borders:
        """Find the borders of rows of so many in each class."""
        shares = self._rules.shares
        assert shares is not None
        wanted, there = sum(shares.counts), int(sizes.sum())
        if wanted > there:
            names = " and ".join(repr(owner.name) for owner in owners)
            what = {"time": " with a time", "label": " with a label"}.get(self._rules.by, "")
            raise UsageError(
                f"the counts add up to {wanted:,}, and {names} has {there:,} rows{what}", place="SHARES", fix="ask for fewer"
            )
        return find_borders(rows, shares.ends(sizes), sizes, shares.parts, self._room.threads)

    def _cut(self, owner: Owner, rows: KeyedRows, borders: Borders) -> SplitRows:
        parts: Parts = self._room.scratch.zeros(rows.size, np.int8)
        for at in slices(rows.size):
            parts[at] = borders.parts(rows, at)
        return SplitRows(owner, parts)

    # ---- by time

    def _by_time(self) -> Iterator[SplitRows]:
        columns = list(self._columns())
        rows = [time_rows(self._store, owner, column, self._room) for owner, column in columns]
        counts = [int(count_classes(one, 1)[0]) for one in rows]
        for (owner, column), one, count in zip(columns, rows, counts, strict=True):
            if not count and one.size:
                raise DataError(
                    f"{type_words(owner)}: no row has a time, {column.name!r} is empty",
                    fix="name another column: --by time:COL",
                )
            if count < one.size:
                self.notes.append(f"{type_words(owner)}: {one.size - count:,} rows have no {column.name!r}, and are in no part")
        owners, column = [owner for owner, _ in columns], columns[0][1]
        borders = self._at(column) if self._rules.at else self._borders(owners, rows, np.array([sum(counts)], np.int64))
        if not self._rules.at:
            self._note_borders(borders, column)
        for owner, one in zip(owners, rows, strict=True):
            yield self._cut(owner, one, borders)
        for owner, column in self._others():
            yield self._cut(owner, time_rows(self._store, owner, column, self._room), borders)

    def _at(self, column: ColumnSchema) -> Borders:
        """Return the borders that are given: a part's last key is the one before the border."""
        keys = [int(parse_time(text, column)) for text in self._rules.at]
        if keys != sorted(keys):
            raise UsageError(f"the borders descend: {'/'.join(self._rules.at)}", place="--at", fix="write the oldest first")
        last = np.array([[max(key, 1) - 1 for key in keys] + [2**64 - 1]], np.uint64)
        is_none = np.array([[key == 0 for key in keys] + [False]])
        return Borders(last, is_none, np.array([*self._rules.parts, NO_PART], np.int8))

    def _note_borders(self, borders: Borders, column: ColumnSchema) -> None:
        told = []
        for part, last, is_none in zip(self._rules.parts, borders.last[0], borders.is_none[0], strict=True):
            if not is_none and last != 2**64 - 1:
                told.append(f"{PART_NAMES[part]} until {time_text(int(last), column)}")
        if told:
            self.notes.append(f"{', '.join(told)}, by {column.name!r}")

    # ---- by label

    def _by_label(self, owner: Owner, column: ColumnSchema) -> SplitRows:
        classes = find_classes(self._store, owner, column, self._room)
        is_reverse = owner in {second for _, second in self._rules.reverses}
        hashes = self._hashes.of_nodes(owner) if owner.is_node else self._hashes.of_edges(owner, is_reverse=is_reverse)
        rows = replace(hashes, classes=classes.of_rows)
        sizes = count_classes(rows, classes.values.size)
        if not classes.values.size and owner.size:
            raise DataError(
                f"{type_words(owner)}: no row has a label, {column.name!r} is empty", fix="name another column: --by label:COL"
            )
        self._note_classes(owner, column, classes, sizes)
        return self._cut(owner, rows, self._borders([owner], [rows], sizes))

    def _note_classes(self, owner: Owner, column: ColumnSchema, classes: Classes, sizes: Ints) -> None:
        """Tell of rows without a label, and of classes that have fewer rows than there are parts."""
        if rest := owner.size - int(sizes.sum()):
            self.notes.append(f"{type_words(owner)}: {rest:,} rows have no {column.name!r}, and are in no part")
        small = np.flatnonzero(sizes < len(self._rules.parts))
        if small.size:
            named = [f"{classes.name(number)} ({sizes[number]:,})" for number in small[:_MOST_NAMED].tolist()]
            more = [f"{small.size - _MOST_NAMED:,} more"] if small.size > _MOST_NAMED else []
            words = f"classes of {column.name!r} with fewer rows than there are parts"
            self.notes.append(f"{type_words(owner)}: {words}: {', '.join([*named, *more])}")

    # ---- edges of nodes

    def _edges_of(self, held_out: Sequence[SplitRows]) -> Iterator[SplitRows]:
        """Yield the edge types at which node types stand that are split: an edge is in the higher of its ends' parts."""
        metadata = self._store.metadata
        parts_of = {split.owner.name: split.parts for split in held_out}
        for owner in self._rules.followers:
            src, _, dst = metadata.edge_types[owner.number]
            ends = (dst, src) if metadata.primary_layout == "csc" else (src, dst)
            yield self._edges_between(owner, [parts_of.get(name) for name in ends])

    def _edges_between(self, owner: Owner, ends: Sequence[Parts | None]) -> SplitRows:
        found: Parts = self._room.scratch.zeros(owner.size, np.int8)

        def place(span: EdgeSpan) -> None:
            ranks = np.zeros(span.rows.size, np.int8)
            for ids, parts in zip((span.rows, span.others), ends, strict=True):
                if parts is not None:
                    np.maximum(ranks, _RANKS[parts[ids]], out=ranks)
            found[span.first_row : span.first_row + ranks.size] = _OF_RANKS[ranks]

        with self._room.scratch.inner() as scratch:
            for _ in map_edges(self._store, owner.number, self._room, scratch, place, ids=False):
                pass
        return SplitRows(owner, found)
