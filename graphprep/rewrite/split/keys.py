"""The keys of rows: hashes of raw IDs, times, and the classes of labels."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import split_key
from graphprep.edges.moves import Workspace
from graphprep.edges.order_keys import time_keys, weight_keys
from graphprep.kernels.cpu.ids.hash import hash_ints
from graphprep.kernels.cpu.ids.sums import mix_hashes
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import ColumnSchema
from graphprep.rewrite.split.borders import KeyedRows, Keys
from graphprep.rewrite.stored_edges import EdgeSpan, map_edges
from graphprep.rewrite.transform.recipe import slices
from graphprep.rewrite.transform.select import Owner
from graphprep.rewrite.transform.write import column_values, raw_hashes
from graphprep.store.items import StoredArrays
from graphprep.store.single import WholeStore

_MOST_CLASSES = 1 << 16  # more are no classes, and each takes a pass's counts
_DATE = re.compile(r"-?\d{4,}-\d\d(-\d\d(T\d\d(:\d\d(:\d\d(\.\d+)?)?)?Z?)?)?")
_SIGN = np.uint64(1 << 63)


# ---- hashes


@dataclass
class HashKeys:
    """Makes the keys of a random split. ``symmetric``: numbers of edge types of which both directions have one key."""

    store: StoredArrays
    room: Workspace
    seed: int
    symmetric: Collection[int] = ()
    _hashes: dict[str, Keys] = field(default_factory=dict)

    def of_nodes(self, owner: Owner) -> KeyedRows:
        """Return the keys of nodes, by typed ID."""
        hashes, keys = self._of_type(owner.name), self.room.scratch.zeros(owner.size, np.uint64)
        for at in slices(owner.size):
            keys[at] = self._mixed(hashes[at])
        return KeyedRows(keys)

    def of_edges(self, owner: Owner, *, is_reverse: bool = False) -> KeyedRows:
        """Return the keys of edges, by edge row. ``is_reverse``: they are those of the edges the other way round."""
        src, _, dst = self.store.metadata.edge_types[owner.number]
        sources, destinations = self._of_type(src), self._of_type(dst)
        keys = self.room.scratch.zeros(owner.size, np.uint64)

        def place(span: EdgeSpan) -> None:
            ends = (span.others, span.rows) if self.store.metadata.primary_layout == "csc" else (span.rows, span.others)
            first, second = sources[ends[0]], destinations[ends[1]]
            if is_reverse:
                first, second = second, first
            if owner.number in self.symmetric:
                first, second = np.minimum(first, second), np.maximum(first, second)
            keys[span.first_row : span.first_row + first.size] = self._mixed(mix_hashes(first, second))

        with self.room.scratch.inner() as inner:
            for _ in map_edges(self.store, owner.number, self.room, inner, place, ids=False):
                pass
        return KeyedRows(keys)

    def sample(self, number: int, share: float) -> tuple[Keys, Keys]:
        """Return h of about this share of an edge type's edges but loops, and of their reverses: each once, ascending.

        Which they are follows from both ends, whatever the direction, so that samples of two types can be compared.
        """
        src, _, dst = self.store.metadata.edge_types[number]
        sources, destinations = self._of_type(src), self._of_type(dst)
        most = np.uint64(min(int(share * 2**64), 2**64 - 1))

        def choose(span: EdgeSpan) -> Keys:
            ends = (span.others, span.rows) if self.store.metadata.primary_layout == "csc" else (span.rows, span.others)
            first, second = sources[ends[0]], destinations[ends[1]]
            kept = hash_ints(mix_hashes(np.minimum(first, second), np.maximum(first, second))) <= most
            if src == dst:
                kept &= first != second
            return np.unique(np.stack([first[kept], second[kept]], axis=1), axis=0)

        with self.room.scratch.inner() as inner:
            ends = np.concatenate(
                [np.zeros((0, 2), np.uint64), *map_edges(self.store, number, self.room, inner, choose, ids=False)]
            )
        first, second = np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])
        return np.unique(mix_hashes(first, second)), np.unique(mix_hashes(second, first))

    def _mixed(self, hashes: Keys) -> Keys:
        return np.asarray(hash_ints(hashes ^ np.uint64(split_key(self.seed))))

    def _of_type(self, node_type: str) -> Keys:
        """Return h of the raw IDs of a node type, by typed ID."""
        if node_type not in self._hashes:
            self._hashes[node_type] = raw_hashes(self.store, node_type, self.room)
        return self._hashes[node_type]


# ---- times


def find_time(owner: Owner, name: str | None) -> ColumnSchema | None:
    """Return the column of times of a type: that of a name, else of a role; None where there is none of these roles.

    Raises UsageError.
    """
    roles = {column.role: column for column in owner.columns}
    column = owner.column(name) if name is not None else roles.get("time", roles.get("created_at"))
    if column is not None:
        _check_numbers(owner, column)
    return column


def time_rows(store: StoredArrays, owner: Owner, column: ColumnSchema, room: Workspace) -> KeyedRows:
    """Return the keys of times: ascending, oldest first; rows without a time are in no class. Raises DataError for NaN."""
    with room.scratch.inner() as scratch:
        values, present = column_values(WholeStore(store), owner.folder, column, scratch)
        keys = room.scratch.zeros(owner.size, np.uint64)
        classes = None if present is None else room.scratch.zeros(owner.size, np.int32)
        for at in slices(owner.size):
            some = values[at].reshape(-1)
            if some.dtype.kind == "f":
                bad = np.isnan(some) if present is None else np.isnan(some) & present[at]
                if bad.any():
                    words = f"{type_words(owner)}: the time {column.name!r} of row {at.start + int(np.argmax(bad))} is NaN"
                    raise DataError(words, place=f"{owner.folder}/{column.path}", fix="leave the value out, or correct it")
            keys[at] = _time_keys(some)
            if classes is not None and present is not None:
                classes[at] = present[at].astype(np.int32) - 1
    return KeyedRows(keys, classes)


def _time_keys(times: NDArray[Any]) -> Keys:
    if times.dtype.kind == "f":
        return ~weight_keys(times)
    return times if times.dtype == np.uint64 else time_keys(times)


def parse_time(text: str, column: ColumnSchema) -> np.uint64:
    """Return the key of a border as it is written: a number, or a date where the column has a unit. Raises UsageError."""
    if column.unit is not None and _DATE.fullmatch(text):
        given = np.datetime64(text.removesuffix("Z"))
        border = given.astype(_date_dtype(column))
        if border != given:
            raise UsageError(f"{text} is finer than the unit of {column.name!r}, {column.unit}", place="--at", fix="round it")
        return np.uint64(time_keys(border.astype(np.int64).reshape(1))[0])
    is_float = np.dtype(column.dtype).kind == "f"
    whole = np.uint64 if column.dtype == "uint64" else np.int64
    try:
        values: NDArray[Any] = np.array([float(text)]) if is_float else np.array([int(text)], whole)
        if np.isnan(values[0]):
            raise ValueError
        return np.uint64(_time_keys(values)[0])
    except (ValueError, OverflowError):
        fix = "write a number" if column.unit is None else "write a number, or a date such as 2019-01-01"
        raise UsageError(f"{text!r} is no time of {column.name!r}", place="--at", fix=fix) from None


def time_text(key: int, column: ColumnSchema) -> str:
    """Return the time that a key stands for, as a date where the column has a unit."""
    if np.dtype(column.dtype).kind == "f":
        bits = np.uint64(key)
        value = np.array([bits ^ _SIGN if bits >> np.uint64(63) else ~bits], np.uint64).view(np.float64)[0]
        return f"{value:g}"
    number = key if column.dtype == "uint64" else key - (1 << 63)
    if column.unit is None:
        return str(number)
    return str(np.array(number).astype(_date_dtype(column)))


def _date_dtype(column: ColumnSchema) -> str:
    return f"datetime64[{'D' if column.unit == 'day' else column.unit}]"


# ---- labels


def find_label(owner: Owner, name: str | None) -> ColumnSchema | None:
    """Return the column of labels of a type: that of a name, else the one of the role; None where there is none.

    Raises UsageError where there are several.
    """
    if name is None:
        names = [column.name for column in owner.columns if column.role == "label"]
        if len(names) > 1:
            raise UsageError(
                f"{type_words(owner)} has several labels: {', '.join(names)}",
                place="--by label",
                fix="name one: --by label:COL",
            )
        if not names:
            return None
        name = names[0]
    column = owner.any_column(name)
    _check_numbers(owner, column)
    return column


@dataclass(frozen=True)
class Classes:
    """The class of each row (int32[n], -1: none), and what each class is called."""

    of_rows: NDArray[np.int32]
    values: NDArray[Any]
    categories: tuple[str, ...] | None

    def name(self, number: int) -> str:
        """Return the name of a class, as messages have it."""
        value = self.values[number].item()
        return (
            repr(self.categories[value])
            if self.categories is not None
            else f"{value:g}"
            if isinstance(value, float)
            else str(value)
        )


def find_classes(store: StoredArrays, owner: Owner, column: ColumnSchema, room: Workspace) -> Classes:
    """Return the classes of labels: their values, ascending. Rows without a label, or NaN, have none.

    Raises DataError where a label is no whole number, or there are too many classes.
    """
    out: NDArray[np.int32] = room.scratch.zeros(owner.size, np.int32)
    with room.scratch.inner() as scratch:
        values, present = column_values(WholeStore(store), owner.folder, column, scratch)
        known = np.zeros(0, values.dtype)
        for at in slices(owner.size):
            some, there = values[at].reshape(-1), _labelled(values[at], None if present is None else present[at])
            _check_whole(owner, column, some, there, at.start)
            known = np.union1d(known, some[there])
            if known.size > _MOST_CLASSES:
                raise _no_classes(owner, column, f"has more than {_MOST_CLASSES:,} classes")
        for at in slices(owner.size):
            there = _labelled(values[at], None if present is None else present[at])
            out[at] = np.where(there, np.searchsorted(known, values[at].reshape(-1)), -1)
    return Classes(out, known, column.categories)


def _labelled(values: NDArray[Any], present: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    some = values.reshape(-1)
    there = ~np.isnan(some) if some.dtype.kind == "f" else np.ones(some.size, np.bool_)
    return there if present is None else there & present


def _check_whole(owner: Owner, column: ColumnSchema, values: NDArray[Any], there: NDArray[np.bool_], first: int) -> None:
    """Raise DataError where a label, of rows from ``first`` on, is no whole number."""
    if values.dtype.kind == "f":
        bad = there & (values != np.floor(values))
        if bad.any():
            row = int(np.argmax(bad))
            raise _no_classes(owner, column, f"is not of whole numbers: row {first + row} has {values[row]:g}")


def _no_classes(owner: Owner, column: ColumnSchema, words: str) -> DataError:
    return DataError(
        f"{type_words(owner)}: label {column.name!r} {words}",
        place=f"{owner.folder}/{column.path}",
        fix="split by another column, or --by random",
    )


def _check_numbers(owner: Owner, column: ColumnSchema) -> None:
    """Raise UsageError where a column has not one number a row."""
    is_one = column.kind == "dense" and int(np.prod(column.item_shape, dtype=np.int64)) == 1
    if not is_one or np.dtype(column.dtype).kind not in "biuf":
        raise UsageError(f"column {column.name!r} of {owner.name!r} has no single number a row", fix="name another column")


def type_words(owner: Owner) -> str:
    """Name a type in a message."""
    return f"{'node' if owner.is_node else 'edge'} type {owner.name!r}"
