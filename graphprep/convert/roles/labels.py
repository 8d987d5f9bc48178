"""Columns that become labels or categories; texts become the numbers of their categories."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import RoleFlag
from graphprep.convert.columns.routes import StoredColumn
from graphprep.convert.roles.owner_columns import OwnerColumns
from graphprep.convert.shuffle.route import Routing
from graphprep.edges.buckets import BucketPlan
from graphprep.kernels.cpu.text.dictionary import TextDictionary
from graphprep.model.errors import DataError, MemoryLimitError, UsageError
from graphprep.model.rows import ColumnKey
from graphprep.storage.spill.runs import Runs
from graphprep.store.columns.cells import Cells, scalar_cells

Ints = NDArray[np.int64]

_NOUNS = {"label": "label", "category": "column"}
_PLURALS = {"label": "labels", "category": "categories"}
_MOST_CATEGORIES = 1 << 20
_MOST_NAME_BYTES = 64 << 20
_NAME_BYTES = 200  # what a category takes beside its name, in the dictionary, as Python's text and in metadata.json
_NAME_COPIES = 6  # of its bytes, on that way


def give_label(own: OwnerColumns, flag: RoleFlag) -> None:
    """Make a column a label.

    Raises UsageError for a column that is not there or not fit for it, DataError and MemoryLimitError for too many categories.
    """
    at = own.find(flag, flag.columns[0])
    column = own.columns[at]
    if column.schema.kind in ("sparse", "temporal"):
        raise UsageError(
            f"column {column.schema.name!r} of {own.words} is {column.schema.kind}",
            place=flag.place,
            fix="choose a column of numbers or texts",
        )
    if column.schema.kind == "binary":
        own.columns[at] = _categories(own, flag, column)
    else:
        own.columns[at] = replace(column, schema=replace(column.schema, role="label"))


def give_category(own: OwnerColumns, flag: RoleFlag) -> None:
    """Make numbers of a column's texts, and name them in the schema.

    Raises UsageError for a column that is not there or holds no texts, DataError and MemoryLimitError for too many categories.
    """
    at = own.find(flag, flag.columns[0])
    column = own.columns[at]
    if column.schema.kind != "binary":
        raise UsageError(
            f"column {column.schema.name!r} of {own.words} holds no texts, but {column.schema.kind} {column.schema.dtype}",
            place=flag.place,
            fix="leave out the flag: trainers take numbers as they are",
        )
    own.columns[at] = _categories(own, flag, column)


def _categories(own: OwnerColumns, flag: RoleFlag, column: StoredColumn) -> StoredColumn:
    """Replace texts by the numbers of their categories: those of the schema, else in name order."""
    name, fixed = column.schema.name, column.schema.categories
    met = TextDictionary() if fixed is None else TextDictionary.of([text.encode() for text in fixed])
    plan = own.routes[column.keys[0]].plan
    numbered = _Numbered(own.routing, plan)
    for _, rows, ids, cells in own.drain(column):
        codes = met.add(_offsets(cells), cells.flat.view(np.uint8))
        _check_size(own, flag, name, met)
        numbered.add(rows, ids, codes)
    texts = met.texts()
    order = sorted(range(len(texts)), key=texts.__getitem__) if fixed is None else list(range(len(texts)))
    ranks = np.empty(len(texts), np.int64)
    ranks[order] = np.arange(len(texts))
    role: Literal["label"] | None = "label" if flag.role == "label" else None
    key = ColumnKey(name, "numbers", "int64", column.schema.slot, role)
    route = own.new_route(key, plan)
    for rows, ids, codes in numbered.drain():
        route.scatter(rows, ids, scalar_cells(ranks[codes]))
    categories = tuple(_utf8(own, flag, name, texts[i]) for i in order)
    own.notes.append(
        f"{own.words}: {_NOUNS[flag.role]} {name!r} has {len(texts):,} {'category' if len(texts) == 1 else 'categories'}"
    )
    schema = replace(column.schema, kind="dense", dtype="int64", role=role, categories=categories)
    return StoredColumn(schema, (key,))


class _Numbers(NamedTuple):
    """The numbers of texts, with their rows and, of edges, the edge IDs."""

    rows: Ints
    edge_ids: Ints | None
    codes: NDArray[np.int32]


class _Numbered:
    """Numbers of texts, held back until the order of all texts is known."""

    def __init__(self, routing: Routing, plan: BucketPlan) -> None:
        self._runs: Runs[_Numbers] = Runs(routing.pool, plan.num_buckets)
        self._plan = plan

    def add(self, rows: Ints, ids: Ints | None, codes: NDArray[np.int32]) -> None:
        """Keep a chunk; all its rows lie in one bucket."""
        bucket = int(rows[0]) >> self._plan.shift if rows.size else 0
        self._runs.append(bucket, _Numbers(rows, ids, codes))

    def drain(self) -> Iterator[_Numbers]:
        """Yield all chunks, and drop them."""
        for bucket in range(self._plan.num_buckets):
            yield from self._runs.read(bucket)
            self._runs.free(bucket)
        self._runs.close()


def _offsets(cells: Cells) -> Ints:
    offsets = np.zeros(cells.num_rows + 1, np.int64)
    np.cumsum(cells.item_counts, out=offsets[1:])
    return offsets


def _check_size(own: OwnerColumns, flag: RoleFlag, name: str, met: TextDictionary) -> None:
    """Refuse more categories than metadata.json, or the memory, is to hold."""
    if met.count > _MOST_CATEGORIES or met.num_bytes > _MOST_NAME_BYTES:
        raise DataError(
            f"{_NOUNS[flag.role]} {name!r} of {own.words} has more than {_MOST_CATEGORIES:,} different texts, "
            f"or {_MOST_NAME_BYTES >> 20} MiB of them",
            place=flag.place,
            fix=f"number the {_PLURALS[flag.role]} in the data, or leave out the flag: then the column stays text",
        )
    need = _NAME_BYTES * met.count + _NAME_COPIES * met.num_bytes
    if need > 2 * own.routing.memory.cap_bytes:
        raise MemoryLimitError(
            f"the {met.count:,} or more categories of {_NOUNS[flag.role]} {name!r} of {own.words} do not fit the memory limit",
            place=flag.place,
            fix=f"raise --memory-limit, or number the {_PLURALS[flag.role]} in the data",
        )


def _utf8(own: OwnerColumns, flag: RoleFlag, name: str, text: bytes) -> str:
    try:
        return text.decode()
    except UnicodeDecodeError:
        raise DataError(
            f"{_NOUNS[flag.role]} {name!r} of {own.words} has a text that is not UTF-8: {text[:40]!r}",
            place=flag.place,
            fix=f"write the {_PLURALS[flag.role]} in UTF-8, or as numbers",
        ) from None
