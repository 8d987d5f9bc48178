"""What the data shows of its columns, owner type by owner type, and the stored columns that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.decoded.rows import ShapeList
from graphprep.model.errors import DataError
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema, Kind
from graphprep.store.assign import count_parts, parts_of_rows
from graphprep.store.columns.cells import Cells
from graphprep.store.columns.densify import DenseNames, dense_shape

Ints = NDArray[np.int64]
NUM_SLOTS = ColumnKey("num_slots", "numbers", "int32")
CREATED_KEY = ColumnKey("created", "numbers", "bool", role="created")
_ROLE_ORDER = ("weight", "time", "created_at", "removed_at", "created")


@dataclass(eq=False)
class ColumnStats:
    """What one owner type's values under one key look like. ``rows``, ``values`` and ``entries`` are int64[P], by partition.

    ``is_seen``: the input has such values, though perhaps not for this owner, or not in records that are kept. ``bounds`` are
    the least and the largest of sparse coordinates, by dimension: int64[2, width]; None: there are none.
    """

    num_parts: int
    scalar: bool = False
    is_seen: bool = False
    min_count: int = -1
    max_count: int = -1
    shape_codes: set[int] = field(default_factory=set)
    any_end: bool = False
    declared_shape: tuple[int, ...] | None = None
    bounds: Ints | None = None
    rows: Ints = field(init=False)
    values: Ints = field(init=False)
    entries: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.rows = np.zeros(self.num_parts, np.int64)
        self.values = np.zeros(self.num_parts, np.int64)
        self.entries = np.zeros(self.num_parts, np.int64)

    def add(self, cells: Cells, rows: Ints, offsets: Ints) -> None:
        """Count some rows; ``offsets`` (int64[P + 1]) are the borders of the partitions in ``rows``."""
        if not cells.num_rows:
            return
        if cells.counts is None:
            width = cells.values.shape[1]
            num_rows = count_parts(rows, offsets)
            self.rows += num_rows
            self.values += num_rows * width
            low = high = width
        else:
            counts = cells.value_counts
            self._count(cells, counts, parts_of_rows(rows, offsets))
            low, high = int(counts.min()), int(counts.max())
        self.min_count = low if self.min_count < 0 else min(low, self.min_count)
        self.max_count = max(high, self.max_count)
        self.shape_codes.update([0] if cells.shapes is None else np.unique(cells.shapes).tolist())

    def add_all(self, cells: Cells, num_rows: Ints) -> None:
        """Count rows that are like those of ``cells`` (dense, of one width); ``num_rows`` (int64[P]) are their numbers."""
        if cells.num_rows:
            self.add(cells, np.zeros(0, np.int64), np.zeros(self.num_parts + 1, np.int64))
            self.rows += num_rows
            self.values += num_rows * cells.values.shape[1]

    def _count(self, cells: Cells, counts: Ints, parts: Ints) -> None:
        self.rows += np.bincount(parts, minlength=self.num_parts)
        self.values += np.bincount(parts, counts, minlength=self.num_parts).astype(np.int64)
        if cells.entry_counts is not None:
            self.entries += np.bincount(parts, cells.entry_counts, minlength=self.num_parts).astype(np.int64)
        if cells.coords is not None and cells.coords.size:
            coords = cells.coords.reshape(cells.flat.size, -1)
            found = np.stack([coords.min(axis=0), coords.max(axis=0)])
            before = found if self.bounds is None else self.bounds
            self.bounds = np.stack([np.minimum(before[0], found[0]), np.maximum(before[1], found[1])])
        if cells.end is not None:
            self.any_end = self.any_end or bool((cells.end != -1).any())


@dataclass(frozen=True)
class StoredColumn:
    """A column of the store and the keys under which its values travel; ``fill`` is what rows without it hold."""

    schema: ColumnSchema
    keys: tuple[ColumnKey, ...]
    fill: float = 0


class ColumnContext(NamedTuple):
    """What is known of an owner type when its columns are settled. ``densify``: sparse columns that are stored dense."""

    num_rows: int
    stats: Mapping[ColumnKey, ColumnStats]
    shapes: Mapping[ColumnKey, ShapeList]
    always_weighted: bool = False
    created_weight: float = 0.0
    densify: DenseNames | None = None


def settle_columns(context: ColumnContext) -> tuple[StoredColumn, ...]:
    """Decide an owner type's stored columns: kinds, shapes, names. Order and names are those of docs/store.md, "Columns"."""
    plain: dict[str, list[ColumnKey]] = {}
    slots: dict[int, list[ColumnKey]] = {}
    roles: dict[str, list[ColumnKey]] = {}
    for key in context.stats:
        if key == NUM_SLOTS:
            continue
        if key.role is not None:
            roles.setdefault(key.role, []).append(key)
        elif key.slot is not None:
            slots.setdefault(key.slot, []).append(key)
        else:
            plain.setdefault(key.name, []).append(key)
    stored = [_role_column(context, role, roles[role]) for role in _ROLE_ORDER if role in roles]
    for slot in sorted(slots):
        stored.extend(_slot_columns(context, slots[slot]))
    for name, keys in plain.items():
        stored.append(settle_column(context, name, keys))
    return tuple(stored)


def _role_column(context: ColumnContext, role: str, keys: Sequence[ColumnKey]) -> StoredColumn:
    fill = {"weight": context.created_weight, "removed_at": -1.0}.get(role, 0.0)
    present = _num_present(context, keys)
    may_lack = role == "time" or (role == "weight" and not context.always_weighted)
    optional = may_lack and present < context.num_rows
    schema = ColumnSchema(role, "dense", keys[0].dtype, (), optional, role=role, unit=_unit(role, keys))
    return StoredColumn(schema, tuple(keys), 0.0 if optional else fill)


def _unit(name: str, keys: Sequence[ColumnKey]) -> str | None:
    """Return the unit of a column's dates and times.

    Raises DataError where there are several.
    """
    units = set(map(attrgetter("unit"), keys))
    if len(units) > 1:
        named = ", ".join(sorted(unit or "none" for unit in units))
        raise DataError(
            f"column {name!r} has several units: {named}", fix="write all its values in one unit, or drop the column"
        )
    return keys[0].unit


def _num_present(context: ColumnContext, keys: Iterable[ColumnKey]) -> int:
    present = 0
    for key in keys:
        present += int(context.stats[key].rows.sum())
    return present


def _kind(context: ColumnContext, keys: Sequence[ColumnKey]) -> tuple[Kind, tuple[int, ...]]:
    """Settle the kind and item shape of values that lie under some keys of one family.

    Numbers are dense where all present rows have one length, else ragged.
    """
    key, family = keys[0], keys[0].family
    if family == "sparse":
        return "sparse", (key.width,) if key.width else ()
    if family in ("binary", "temporal"):
        return ("binary" if family == "binary" else "temporal"), ()
    lengths: set[int] = set()
    codes: set[int] = set()
    for one in keys:
        stats = context.stats[one]
        if stats.scalar:
            return "dense", ()
        if stats.max_count >= 0:
            lengths |= {stats.min_count, stats.max_count}
            codes |= stats.shape_codes
    if not lengths:
        declared = context.stats[key].declared_shape
        return "dense", (0,) if declared is None else declared
    if len(lengths) > 1:
        return "ragged", ()
    code = codes.pop() if len(codes) == 1 else 0
    return "dense", context.shapes[key].shapes[code - 1] if code else (lengths.pop(),)


def _slot_columns(context: ColumnContext, keys: Sequence[ColumnKey]) -> list[StoredColumn]:
    """Name the columns of one slot; several kinds, dtypes or widths of it become several columns."""
    groups: dict[tuple[str, str, int], ColumnKey] = {(key.family, key.dtype, key.width): key for key in keys}
    kinds = {(family, dtype) for family, dtype, _ in groups}
    widths = {width for family, _, width in groups if family == "sparse"}
    stored = []
    for (_, dtype, width), key in groups.items():
        kind, shape = _kind(context, [key])
        name = key.name
        if len(kinds) > 1:
            name += f"_{kind}_{dtype}"
        if kind == "sparse" and len(widths) > 1:
            name += f"_w{width}"
        stored.append(StoredColumn(_schema(context, name, kind, dtype, shape, [key]), (key,)))
    return sorted(stored, key=lambda column: column.schema.name)


def settle_column(context: ColumnContext, name: str, keys: Sequence[ColumnKey]) -> StoredColumn:
    """Settle an input column: int64 with float64 becomes float64, a column without values takes what the others are."""
    used = [key for key in keys if context.stats[key].is_seen or context.stats[key].rows.any()] or list(keys[:1])
    _unit(name, used)
    dtypes = set(map(attrgetter("dtype"), used))
    dtype = used[0].dtype if len(dtypes) == 1 else "float64"
    kind, shape = _kind(context, used)
    return StoredColumn(_schema(context, name, kind, dtype, shape, used), tuple(used))


def _schema(
    context: ColumnContext, name: str, kind: Kind, dtype: str, shape: tuple[int, ...], keys: Sequence[ColumnKey]
) -> ColumnSchema:
    if kind == "sparse" and context.densify is not None and context.densify.has(name):
        kind, shape = "dense", dense_shape(name, dtype, shape, [context.stats[key].bounds for key in keys])
    optional = _num_present(context, keys) < context.num_rows
    end = (any(context.stats[key].any_end for key in keys) or None) if kind == "temporal" else None
    return ColumnSchema(name, kind, dtype, shape, optional, slot=keys[0].slot, end=end, unit=keys[0].unit)
