"""Hold the data to a schema that was fixed beforehand: ``--schema``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.routes import NUM_SLOTS
from graphprep.kernels.cpu.text.dictionary import TextDictionary
from graphprep.model.graph_schema import GraphSchema, OwnerSchema
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema, Kind
from graphprep.store.columns.cells import Cells

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

Ints = NDArray[np.int64]
_FIX = "correct the record, or the schema"
_SHOWN = 40  # characters of a value in a message
_FAMILY_WORDS = {"numbers": "numbers", "sparse": "sparse values", "binary": "text", "temporal": "temporal values"}


class Misfit(NamedTuple):
    """A row that does not fit the schema: its position among the rows that were looked at, and what is wrong."""

    row: int
    message: str
    fix: str = _FIX


def load_schema(storage: Storage, url: str) -> GraphSchema:
    """Read a schema file: JSON with node_type, edge_type, node_schema and edge_schema, as metadata.json has them.

    Raises DataError with the key path where it is none.
    """
    from graphprep.storage.read.schemas import check_json, parse_json

    value = parse_json(storage.read_bytes(url), url)
    check_json(value, "schema-file", url)
    return GraphSchema.from_json(value, url)


def find_misfit(owner: OwnerSchema | None, name: str, key: ColumnKey, cells: Cells) -> Misfit | None:
    """Return the first row whose value under ``key`` the schema of type ``name`` does not allow; None: it has none."""
    if key == NUM_SLOTS or key.role == "created" or not cells.num_rows:
        return None
    column = None if owner is None else owner.column_for(key)
    if column is None:
        what = f"slot {key.slot}" if key.slot is not None else f"column {key.name!r}"
        found = f"{_FAMILY_WORDS[key.family]} of {key.dtype}"
        return Misfit(0, f"{what} with {found} is not in the schema of {name}")
    if column.role == "split":
        return None
    return _shape_misfit(column, cells) or _end_misfit(column, cells) or _category_misfit(column, cells)


def _shape_misfit(column: ColumnSchema, cells: Cells) -> Misfit | None:
    if column.kind != "dense":
        return None
    counts = cells.value_counts
    wrong = np.flatnonzero(counts != prod(column.item_shape))
    if not wrong.size:
        return None
    row = int(wrong[0])
    return Misfit(row, f"column {column.name!r} has {int(counts[row])} values, the schema says {list(column.item_shape)}")


def _end_misfit(column: ColumnSchema, cells: Cells) -> Misfit | None:
    if cells.end is None or cells.entry_counts is None or column.end or not (cells.end != -1).any():
        return None
    entry = int(np.argmax(cells.end != -1))
    row = int(np.searchsorted(np.cumsum(cells.entry_counts), entry, side="right"))
    return Misfit(row, f"column {column.name!r} has an end time, the schema says that it has none")


def _category_misfit(column: ColumnSchema, cells: Cells) -> Misfit | None:
    if column.categories is None:
        return None
    offsets = np.zeros(cells.num_rows + 1, np.int64)
    np.cumsum(cells.item_counts, out=offsets[1:])
    unknown = np.flatnonzero(categories_of(column.categories).find(offsets, cells.flat.view(np.uint8)) < 0)
    if not unknown.size:
        return None
    row = int(unknown[0])
    text = cells.take(unknown[:1]).flat.tobytes().decode("utf-8", "backslashreplace")
    return Misfit(row, f"column {column.name!r}: {text[:_SHOWN]!r} is none of the schema's {len(column.categories)} categories")


@lru_cache(maxsize=16)
def categories_of(names: tuple[str, ...]) -> TextDictionary:
    """Return the numbers of categories by their names."""
    return TextDictionary.of([name.encode() for name in names])


def key_of(column: ColumnSchema) -> ColumnKey:
    """Return the key under which a column's values travel."""
    families: Mapping[Kind, str] = {"dense": "numbers", "ragged": "numbers"}
    family = families.get(column.kind, column.kind)
    width = column.item_shape[0] if column.kind == "sparse" and column.item_shape else 0
    name = column.name if column.slot is None else f"feat_{column.slot}"
    return ColumnKey(name, family, column.dtype, column.slot, column.role, width, column.unit)  # type: ignore[arg-type]


def column_dtypes(owners: Sequence[OwnerSchema]) -> dict[str, str]:
    """Return the dtypes of input columns, for decoders that would else find them in the data.

    Decoders know columns by name; a name whose dtype differs between types is left to the data, and checked later.
    """
    found: dict[str, set[str]] = {}
    for owner in owners:
        for column in owner.columns:
            if column.slot is None and column.role is None and column.kind in ("dense", "binary"):
                found.setdefault(column.name, set()).add("binary" if column.kind == "binary" else column.dtype)
    return {name: dtypes.pop() for name, dtypes in found.items() if len(dtypes) == 1}
