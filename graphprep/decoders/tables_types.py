"""What the files of a table store in their columns, and whether they agree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from graphprep.decoders.tables_columns import ColumnType
from graphprep.model.errors import DataError

Shape = Literal["value", "list"]


@dataclass(frozen=True)
class StoredType:
    """What a file's own types say of a column: NumPy's name or ``binary``, a unit for dates and times, and whether it is lists.

    ``dtype`` "" stands for nothing but nulls. ``is_open``: only that it holds lists, or none, is known.
    """

    dtype: str
    unit: str | None = None
    is_list: bool = False
    shown: str = ""
    is_open: bool = False


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
    if one.is_list != other.is_list or one.unit != other.unit:
        return None
    if one.dtype == other.dtype:
        return one
    if "binary" in (one.dtype, other.dtype) or "bool" in (one.dtype, other.dtype):
        return None
    dtype = np.result_type(one.dtype, other.dtype)
    if not (np.can_cast(one.dtype, dtype, "safe") and np.can_cast(other.dtype, dtype, "safe")):
        return None
    if dtype.kind == "f" and {np.dtype(one.dtype).kind, np.dtype(other.dtype).kind} == {"i", "u"}:
        return None  # NumPy calls int64 and uint64 to float64 safe
    return StoredType(dtype.name, one.unit, one.is_list, f"{one.shown} and {other.shown}")
