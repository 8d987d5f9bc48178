"""Columns, masks, files and fractions that become splits: int8, 0 train, 1 valid, 2 test, absent where a row is in no part."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.convert.columns.roles import NO_PART, PART_NAMES, RoleFlag
from graphprep.convert.columns.routes import ColumnRoute, FlatRows, StoredColumn
from graphprep.convert.columns.split_values import BAD, bad_value, mask_codes, split_codes
from graphprep.convert.roles.owner_columns import OwnerColumns
from graphprep.convert.shuffle.random_splits import SPLIT_KEY, add_parts
from graphprep.model.errors import DataError, UsageError
from graphprep.model.rows import ColumnKey
from graphprep.model.schema import ColumnSchema
from graphprep.storage.spill.runs import Runs
from graphprep.store.columns.cells import Cells

Ints = NDArray[np.int64]
Listed = Callable[[RoleFlag, str], Iterator[Ints]]  # the typed IDs of the nodes that a flag's file names


def give_split(own: OwnerColumns, flag: RoleFlag, listed: Listed) -> tuple[int, int, int, int]:
    """Make a type's split. Returns how many rows are in which part: train, valid, test, none.

    Raises UsageError for columns that are not there or not fit for it, DataError for values that name no part, and for a row
    that is in two.
    """
    if flag.rule is not None:
        return _random(own, flag)
    if flag.files:
        return _of_files(own, flag, listed)
    return _of_column(own, flag) if len(flag.columns) == 1 else _of_masks(own, flag)


def _of_column(own: OwnerColumns, flag: RoleFlag) -> tuple[int, int, int, int]:
    """Replace the values of a column by 0, 1 and 2."""
    at = own.find(flag, flag.columns[0])
    column = own.columns[at]
    if column.schema.dtype == "bool":
        raise UsageError(
            f"column {column.schema.name!r} of {own.words} is bool, so a mask",
            place=flag.place,
            fix="name three masks: TYPE:train_mask,valid_mask,test_mask",
        )
    key = ColumnKey(column.schema.name, "numbers", "int8", column.schema.slot, "split")
    route = own.new_route(key, own.routes[column.keys[0]].plan)
    counts = np.zeros(NO_PART, np.int64)
    for from_key, rows, ids, cells in own.drain(column):
        codes = split_codes(from_key, cells)
        _refuse_bad(own, flag, from_key, rows, ids, cells, codes, is_mask=False)
        add_parts(route, codes, rows, ids, counts)
    own.columns[at], found = _stored(own, key, counts)
    return found


def _of_masks(own: OwnerColumns, flag: RoleFlag) -> tuple[int, int, int, int]:
    """Replace masks by one column, in the place of the first."""
    positions = [(part, own.find(flag, name)) for part, name in enumerate(flag.columns) if name]
    masks = [(part, own.columns[at]) for part, at in positions]
    route = own.new_route(SPLIT_KEY)
    counts = np.zeros(NO_PART, np.int64)
    for part, column in masks:
        for key, rows, ids, cells in own.drain(column):
            codes = mask_codes(key, cells)
            _refuse_bad(own, flag, key, rows, ids, cells, codes, is_mask=True)
            add_parts(route, np.where(codes == 1, part, NO_PART).astype(np.int8), rows, ids, counts)
    _refuse_overlaps(own, flag, route)
    taken = [column for _, column in masks]
    own.columns[:] = [column for column in own.columns if column not in taken]
    own.refuse_name(flag, SPLIT_KEY.name)
    column, found = _stored(own, SPLIT_KEY, counts)
    own.columns.insert(min(at for _, at in positions), column)
    return found


def _of_files(own: OwnerColumns, flag: RoleFlag, listed: Listed) -> tuple[int, int, int, int]:
    """Make a column of three files of nodes."""
    own.refuse_name(flag, SPLIT_KEY.name)
    scatterer = own.scatterer()
    for part, file in enumerate(flag.files):
        for typed in listed(flag, file) if file else ():
            scatterer.add(FlatRows((typed, np.full(typed.size, part, np.int8))))
    scatterer.flush()
    route = own.new_route(SPLIT_KEY)
    counts = np.zeros(NO_PART, np.int64)
    for bucket in range(own.plan.num_buckets):
        for rows, parts in _distinct(scatterer.runs, bucket):
            add_parts(route, parts, rows, None, counts)
    scatterer.runs.close()
    _refuse_overlaps(own, flag, route)
    column, found = _stored(own, SPLIT_KEY, counts)
    own.columns.append(column)
    return found


def _random(own: OwnerColumns, flag: RoleFlag) -> tuple[int, int, int, int]:
    """Make a column of fractions; that of edges was scattered with them, as their ends' hashes were at hand."""
    assert flag.rule is not None
    own.refuse_name(flag, SPLIT_KEY.name)
    counts = np.zeros(NO_PART, np.int64)
    route = own.new_route(SPLIT_KEY)
    if isinstance(own.owner, str):
        for hashes, typed in own.routing.index.hashes(own.number):
            add_parts(route, flag.rule.parts(hashes), typed, None, counts)
    else:
        counts += own.routing.edge_parts.get(own.owner, 0)
    column, found = _stored(own, SPLIT_KEY, counts)
    own.columns.append(column)
    return found


def _stored(own: OwnerColumns, key: ColumnKey, counts: Ints) -> tuple[StoredColumn, tuple[int, int, int, int]]:
    """Return the column, and how many rows are in which part."""
    train, valid, test = counts.tolist()
    none = own.num_rows - (train + valid + test)
    rest = f", {none:,} in no part" if none else ""
    own.notes.append(f"{own.words}: split {key.name!r}: {train:,} train, {valid:,} valid, {test:,} test{rest}")
    optional = own.is_optional(key.name, none)
    return StoredColumn(ColumnSchema(key.name, "dense", "int8", (), optional, key.slot, "split"), (key,)), (
        train,
        valid,
        test,
        none,
    )


def _distinct(runs: Runs[Any], bucket: int) -> Iterator[tuple[Ints, NDArray[np.int8]]]:
    """Yield a bucket's (rows, parts), each pair once."""
    found = [rows * 4 + parts for rows, parts in runs.read(bucket)]
    if found:
        pairs = np.unique(np.concatenate(found))
        yield pairs >> 2, (pairs & 3).astype(np.int8)


def _refuse_bad(
    own: OwnerColumns,
    flag: RoleFlag,
    key: ColumnKey,
    rows: Ints,
    ids: Ints | None,
    cells: Cells,
    codes: NDArray[np.int8],
    *,
    is_mask: bool,
) -> None:
    """Raise DataError for the first row whose value names no part. Most were found before, with their places."""
    bad = np.flatnonzero(codes == BAD)
    if bad.size:
        at = int(bad[np.argmin(rows[bad] if ids is None else ids[bad])])
        who = own.row_words(int(rows[at]), -1 if ids is None else int(ids[at]))
        raise DataError(
            f"{who}: {bad_value(key, cells, at, is_mask)}",
            place=flag.place,
            fix="correct the value, or leave it out where the row is in no part",
        )


def _refuse_overlaps(own: OwnerColumns, flag: RoleFlag, route: ColumnRoute) -> None:
    """Raise DataError for the first node or edge that is in two parts."""
    own.routing.factory.write_buffer.clear()
    found: list[tuple[int, int, int, int]] = []
    for bucket in range(route.plan.num_buckets):
        passes = max(1, -(-2 * route.runs.num_bytes(bucket) // max(1, own.routing.memory.cap_bytes)))
        for number in range(passes):
            found += _overlaps(route, bucket, number, passes)
    if found:
        edge_id, row, one, other = min(found)
        raise DataError(
            f"{own.row_words(row, edge_id)} is in two parts, {PART_NAMES[one]} and {PART_NAMES[other]}",
            place=flag.place,
            fix="keep it in one of them",
        )


def _overlaps(route: ColumnRoute, bucket: int, number: int, passes: int) -> Iterator[tuple[int, int, int, int]]:
    """Yield (name, row, part, other part) of the first that is there twice, of every ``passes``-th of a bucket.

    The name of an edge is its ID, that of a node its row.
    """
    pieces = []
    for one in route.runs.read(bucket):
        names = one.rows if one.edge_ids is None else one.edge_ids
        own = np.flatnonzero(names % passes == number)
        pieces.append((names[own].astype(np.int64), one.rows[own].astype(np.int64), one.cells.flat[own]))
    if not pieces:
        return
    names, rows, codes = (np.concatenate(column) for column in zip(*pieces, strict=True))
    order = np.argsort(names, kind="stable")
    again = np.flatnonzero(names[order][1:] == names[order][:-1])
    if again.size:
        one, other = order[again[0]], order[again[0] + 1]
        yield int(names[one]), int(rows[one]), int(codes[one]), int(codes[other])
