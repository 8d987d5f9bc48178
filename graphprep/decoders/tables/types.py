"""What the files of a table store in their columns, and whether they agree."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from graphprep.decoders.tables.columns import ColumnType, FeatureColumn, parse_type
from graphprep.model.errors import DataError
from graphprep.model.graph_config import TableConfig


@dataclass(frozen=True)
class StoredType:
    """What a file's own types say of a column: NumPy's name or ``binary``, a unit for dates and times, and whether it is lists.

    ``dtype`` "" stands for nothing but nulls. ``is_open``: only that it holds lists, or none, is known.
    ``records``: the lists hold records of these fields, which are sparse or dated values.
    """

    dtype: str
    unit: str | None = None
    is_list: bool = False
    shown: str = ""
    is_open: bool = False
    records: str = ""


def settle_types(files: Sequence[tuple[str, Mapping[str, StoredType]]]) -> dict[str, ColumnType]:
    """Settle the dtype of every column of which a file stores one; numbers widen where nothing is lost.

    Raises DataError where two files disagree, with both names.
    """
    settled: dict[str, tuple[str, StoredType]] = {}
    for url, stored in files:
        for name, kind in stored.items():
            if not kind.dtype:
                continue
            first = settled.get(name)
            common = kind if first is None else _common(first[1], kind)
            if first is not None and common is None:
                raise DataError(
                    f"column {name!r} holds {kind.shown}, but {first[1].shown} in {first[0]}",
                    place=url,
                    fix=f"write it alike in all files, or pass --drop-column {name}",
                )
            if common is not None:
                settled[name] = (url if first is None else first[0], common)
    return {name: ColumnType(kind.dtype, kind.unit, kind.is_list) for name, (_, kind) in settled.items() if not kind.is_open}


def _common(one: StoredType, other: StoredType) -> StoredType | None:
    """Return the type that holds both without loss, None where there is none."""
    if (one.is_list, one.unit, one.records) != (other.is_list, other.unit, other.records):
        return None
    if one.dtype == other.dtype or other.is_open:
        return one
    return other if one.is_open else _wider(one, other)


def _wider(one: StoredType, other: StoredType) -> StoredType | None:
    """Return the numbers that hold both without loss; int64 and floats become float64, as they do in text."""
    if {"binary", "bool"} & {one.dtype, other.dtype}:
        return None
    dtype = np.result_type(one.dtype, other.dtype)
    kinds = {np.dtype(one.dtype).kind, np.dtype(other.dtype).kind}
    if dtype.kind == "f" and kinds == {"i", "u"}:  # int64 and uint64
        return None
    return StoredType(dtype.name, one.unit, one.is_list, f"{one.shown} and {other.shown}", records=one.records)


@dataclass(frozen=True)
class OtherKeys:
    """What becomes of keys that only later JSON lines have: stored, unless they are dropped or others are kept.

    ``declared`` are dtypes by key, ``settled`` by the stored name.
    """

    dropped: tuple[str, ...] = ()
    are_stored: bool = True
    renamed: tuple[tuple[str, str], ...] = ()
    declared: tuple[tuple[str, ColumnType], ...] = ()
    settled: tuple[tuple[str, ColumnType], ...] = ()

    @classmethod
    def of(cls, table: TableConfig) -> OtherKeys:
        """Take what a table's options say."""
        declared = tuple((name, parse_type(name, dtype)) for name, dtype in table.columns)
        return cls(table.dropped, table.kept is None, table.renamed, declared)

    def with_types(self, types: Mapping[str, ColumnType]) -> OtherKeys:
        """Return the same with the dtypes of stored columns settled."""
        return dataclasses.replace(self, settled=tuple(types.items()))

    def column(self, key: str) -> FeatureColumn | None:
        """Return the column that a key becomes, None where it is left out."""
        if key in self.dropped or not self.are_stored or not key:
            return None
        name = dict(self.renamed).get(key, key)
        return FeatureColumn(name, key, -1, dict(self.declared).get(key) or dict(self.settled).get(name))
