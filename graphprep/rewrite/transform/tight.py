"""The form of what stays, by docs/store.md: how raw IDs are stored, and whether columns are optional and have ends."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import numpy as np

from graphprep.model.schema import ColumnSchema, RawIdKind
from graphprep.rewrite.transform.recipe import Ints, slices
from graphprep.store.items import StoredArrays
from graphprep.store.paths import ColumnPaths

_MOST_INT64 = np.uint64(2**63 - 1)


def raw_id_kind(store: StoredArrays, path: str, order: Ints) -> RawIdKind:
    """Return how raw IDs that are numbers are stored, those of the nodes ``order`` of a whole store."""
    array, are_typed = store.array(0, path), True
    for at in slices(order.size):
        raw = array.take(order[at])
        if array.dtype == np.uint64 and (raw > _MOST_INT64).any():
            return "uint64"
        are_typed = are_typed and np.array_equal(raw, np.arange(at.start, at.stop, dtype=raw.dtype))
    return "identity" if are_typed else "int64"


def tight_columns(
    store: StoredArrays, folder: str, columns: Iterable[ColumnSchema], rows: Callable[[], Iterator[Ints]]
) -> tuple[ColumnSchema, ...]:
    """Return columns that are optional, and have ends, only where some of the ``rows`` lacks a value, or has one."""

    def tight(column: ColumnSchema) -> ColumnSchema:
        paths = ColumnPaths(f"{folder}/{column.path}")
        if column.optional:
            present = store.array(0, paths.present)
            column = replace(column, optional=not all(present.take(some).all() for some in rows()))
        if column.end:
            offsets, ends = store.array(0, paths.entry_offsets), store.array(0, paths.end)
            found = (ends.gather(offsets.take(some), offsets.take(some + 1)) for some in rows())
            column = replace(column, end=any((some != -1).any() for some in found))
        return column

    return tuple(map(tight, columns))
