"""Read which partition each node belongs to from a file or folder: STORE.md, "Partition functions"."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphprep.model.errors import DataError, StorageError
from graphprep.model.protocols import Span
from graphprep.model.schema import path_name
from graphprep.stages.assign import PartitionFunction, PartTable
from graphprep.storage.spans import place_of, text_blocks

if TYPE_CHECKING:
    from graphprep.storage.urls import Storage

_BLOCK_BYTES = 1 << 20
_FIX = "write one partition number >= 0 a line"


def read_partition_file(
    storage: Storage, url: str, type_names: tuple[str, ...], num_parts: int | None, seed: int
) -> PartitionFunction:
    """Read an assignment for every node type. P is ``num_parts``, else the highest number + 1.

    Raises DataError for what is not a partition number, StorageError where there is no file.
    """
    tables: dict[str, PartTable] = {}
    if storage.is_dir(url):
        for name in type_names:
            tables[name] = _read_table(storage, _type_file(storage, url, name))
    elif len(type_names) == 1:
        tables[type_names[0]] = _read_table(storage, url)
    elif type_names:
        raise DataError(
            f"one file cannot assign {len(type_names)} node types",
            place=url,
            fix="name a folder of <type>.txt or <type>.parquet files",
        )
    highest = max((int(table.parts.max()) for table in tables.values() if table.parts.size), default=0)
    if num_parts is not None and highest >= num_parts:
        place = next(table.place for table in tables.values() if table.parts.size and table.parts.max() == highest)
        raise DataError(
            f"partition {highest} is outside [0, {num_parts})", place=place, fix="raise --partitions, or correct the file"
        )
    return PartitionFunction("file", num_parts or highest + 1, seed, tables)


def _type_file(storage: Storage, folder: str, name: str) -> str:
    for suffix in (".txt", ".parquet"):
        url = storage.join(folder, path_name(name) + suffix)
        if storage.exists(url):
            return url
    raise StorageError(
        f"no assignment for node type {name!r}", place=folder, fix=f"add {path_name(name)}.txt or {path_name(name)}.parquet"
    )


def _read_table(storage: Storage, url: str) -> PartTable:
    if storage.head(url, 4) == b"PAR1":
        return _read_parquet(storage, url)
    pieces = []
    for block in text_blocks(storage, Span(url), _BLOCK_BYTES):
        at = 0
        parts = []
        for line in block.data.split(b"\n"):
            text = line.strip(b" \t\r")
            if text.isdigit() and len(text) < 10:
                parts.append(int(text))
            elif at < len(block.data):
                found = text.decode(errors="replace")
                raise DataError(f"expected a partition number, found {found!r}", place=place_of(block, at), fix=_FIX)
            at += len(line) + 1
        pieces.append(np.array(parts, np.int64))
    return PartTable(url, np.concatenate(pieces) if pieces else np.zeros(0, np.int64))


def _read_parquet(storage: Storage, url: str) -> PartTable:
    import pyarrow.parquet as pq

    with storage.open(url) as handle:
        table = pq.read_table(handle)
    for column in ("id", "part"):
        if column not in table.column_names:
            raise DataError(f"no column {column!r}", place=url, fix="give the file the columns id (raw ID) and part")
    ids, parts = _whole(table.column("id"), url, "id"), _whole(table.column("part"), url, "part")
    order = np.argsort(ids, kind="stable")
    repeated = np.flatnonzero(ids[order][1:] == ids[order][:-1])
    if repeated.size:
        row = int(order[repeated[0] + 1])
        raise DataError(f"node {int(ids[row])} is assigned twice", place=f"{url}: row {row}", fix="keep one row for each node")
    return PartTable(url, parts[order].astype(np.int64), ids[order])


def _whole(column, url: str, name: str) -> NDArray[np.uint64]:  # type: ignore[no-untyped-def]
    import pyarrow as pa

    if column.null_count or not pa.types.is_integer(column.type):
        found = "a null" if column.null_count else str(column.type)
        raise DataError(f"column {name!r} must hold integers, found {found}", place=url, fix="write whole numbers >= 0")
    values = column.to_numpy()
    if values.size and values.min() < 0:
        row = int(np.argmax(values < 0))
        raise DataError(
            f"column {name!r} must be >= 0, found {int(values[row])}", place=f"{url}: row {row}", fix="write numbers >= 0"
        )
    return np.asarray(values, np.uint64)
