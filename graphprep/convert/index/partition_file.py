"""The partition function that a user names: a method, one in Python, or a file: docs/store.md, "Partition functions"."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cpu.text.texts import repeats_in_order, sort_texts
from graphprep.model.errors import DataError, StorageError
from graphprep.model.protocols import Span, TextBlock
from graphprep.model.schema import path_name
from graphprep.storage.read.spans import place_of, text_blocks
from graphprep.store.assign import (
    PARTITION_METHODS,
    PYTHON_PREFIX,
    PartitionFunction,
    PartTable,
    RawBatch,
    load_partition_function,
)

if TYPE_CHECKING:
    from graphprep.storage.read.urls import Storage

_FIX = "write one partition number >= 0 a line"
_COLUMNS_FIX = "give the file the columns id (raw ID) and part"
_LOOKED_AT = 4 << 20  # bytes of a file, where no more than its beginning is read


class Highest(NamedTuple):
    """The highest partition number that was found, and the file it is in; unless ``is_known``, there may be higher ones."""

    part: int
    place: str
    is_known: bool


def find_partition_function(
    storage: Storage, given: str, type_names: tuple[str, ...], num_parts: int | None, few: int, seed: int
) -> PartitionFunction:
    """Return the function that a user names, into ``num_parts`` partitions.

    None: as many as a file says, else ``few``. Raises UsageError for a function in Python that is not there, and what
    ``read_partition_file`` raises.
    """
    if given in PARTITION_METHODS:
        return PartitionFunction(given, num_parts or few, seed)
    if given.startswith(PYTHON_PREFIX):
        return PartitionFunction("python", num_parts or few, seed, ask=load_partition_function(given))
    return read_partition_file(storage, given, type_names, num_parts, seed)


def read_partition_file(
    storage: Storage, url: str, type_names: tuple[str, ...], num_parts: int | None, seed: int
) -> PartitionFunction:
    """Read an assignment for every node type. P is ``num_parts``, else the highest number + 1.

    One file of lines for several types has the nodes of all, type after type.

    Raises DataError for what is not a partition number, StorageError where there is no file.
    """
    tables: dict[str, PartTable] = {}
    homogeneous = None
    if storage.is_dir(url):
        for name in type_names:
            tables[name] = _read_table(storage, _type_file(storage, url, name))
    elif len(type_names) == 1:
        tables[type_names[0]] = _read_table(storage, url)
    elif type_names:
        homogeneous = _read_table(storage, url)
        if homogeneous.ids is not None or homogeneous.texts is not None:
            raise DataError(
                f"one table cannot assign {len(type_names)} node types",
                place=url,
                fix="name a folder of <type>.txt or <type>.parquet files",
            )
    every = [*tables.values(), *([] if homogeneous is None else [homogeneous])]
    highest = max((int(table.parts.max()) for table in every if table.parts.size), default=0)
    if num_parts is not None and highest >= num_parts:
        raise outside(highest, num_parts, next(one.place for one in every if one.parts.size and one.parts.max() == highest))
    return PartitionFunction("file", num_parts or highest + 1, seed, tables, homogeneous)


def outside(highest: int, num_parts: int, place: str) -> DataError:
    """Word that a file has a partition number that is too high."""
    return DataError(
        f"partition {highest} is outside [0, {num_parts})", place=place, fix="raise --partitions, or correct the file"
    )


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
    pieces: list[NDArray[np.int64]] = []
    for block in text_blocks(storage, Span(url)):
        pieces.append(_read_rows(block, pieces[0].shape[1] if pieces else 0))
    rows = np.concatenate(pieces) if pieces else np.zeros((0, 1), np.int64)
    return PartTable(url, rows[:, 0] if rows.shape[1] < 2 else _by_node(rows, url))


def _read_rows(block: TextBlock, width: int) -> NDArray[np.int64]:
    """Return the numbers of each line, ``width`` of them (0: as many as the first line has): int64[k, width]."""
    at, rows = 0, []
    for line in block.data.split(b"\n"):
        words = line.split()
        width = width or len(words)
        if words and all(map(bytes.isdigit, words)) and len(words) == width <= 2 and len(words[-1]) < 10 and len(words[0]) < 19:
            rows.append([int(word) for word in words])
        elif at < len(block.data):
            found = line.strip(b" \t\r").decode(errors="replace")
            raise DataError(f"expected a partition number, found {found!r}", place=place_of(block, at), fix=_FIX)
        at += len(line) + 1
    return np.array(rows, np.int64).reshape(-1, width)


def look_at_parts(storage: Storage, url: str, type_names: Iterable[str]) -> Highest:
    """Return the highest partition number of footers and of the first few MiB of texts. Raises what reading these raises."""
    files = [_type_file(storage, url, name) for name in type_names] if storage.is_dir(url) else [url]
    found = [_highest_of(storage, file) for file in files]
    top = max(found, key=lambda one: one.part, default=Highest(0, url, is_known=True))
    return top._replace(is_known=all(one.is_known for one in found))


def _highest_of(storage: Storage, url: str) -> Highest:
    if storage.head(url, 4) == b"PAR1":
        return _highest_of_parquet(storage, url)
    blocks = text_blocks(storage, Span(url), _LOOKED_AT)
    first = next(blocks, None)
    highest = 0 if first is None else int(_read_rows(first, 0)[:, -1].max(initial=0))
    return Highest(highest, url, is_known=next(blocks, None) is None)


def _highest_of_parquet(storage: Storage, url: str) -> Highest:
    import pyarrow.parquet as pq

    with storage.open(url) as handle:
        file = pq.ParquetFile(handle, buffer_size=_LOOKED_AT)
        if "part" not in file.schema_arrow.names:
            raise DataError("no column 'part'", place=url, fix=_COLUMNS_FIX)
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        parts = [group.column(at) for group in groups for at in range(group.num_columns)]
        told = [one.statistics for one in parts if one.path_in_schema == "part"]
        if all(one is not None and one.has_min_max for one in told):
            return Highest(max((int(one.max) for one in told), default=0), url, is_known=True)
        first = next(file.iter_batches(_LOOKED_AT // 8, columns=["part"]))
        highest = int(_parts(first.column(0), url).max(initial=0))
        return Highest(highest, url, is_known=len(first) == file.metadata.num_rows)


def _by_node(rows: NDArray[np.int64], url: str) -> NDArray[np.int64]:
    """Return the second number of each row by the first, a node's homogeneous ID, as ParMETIS writes them: int64[n]."""
    order = np.argsort(rows[:, 0], kind="stable")
    if not np.array_equal(rows[order, 0], np.arange(len(rows))):
        words = f"expected a line for each of the nodes 0 to {len(rows) - 1}"
        raise DataError(words, place=url, fix="number nodes from 0, type after type, and give each one line")
    return np.asarray(rows[order, 1])


def _read_parquet(storage: Storage, url: str) -> PartTable:
    import pyarrow.parquet as pq

    with storage.open(url) as handle:
        table = pq.read_table(handle)
    for column in ("id", "part"):
        if column not in table.column_names:
            raise DataError(f"no column {column!r}", place=url, fix=_COLUMNS_FIX)
    parts = _parts(table.column("part"), url)
    ids = _raw_ids(table.column("id"), url)
    order = ids.order()
    repeated = ids.repeated(order)
    if repeated >= 0:
        words = f"node {ids.batch.words(repeated)} is assigned twice"
        raise DataError(words, place=f"{url}: row {repeated}", fix="keep one row for each node")
    sorted_ids = ids.batch.take(order)
    numbers = sorted_ids.numbers.view(np.int64) if sorted_ids.is_signed else sorted_ids.numbers
    return PartTable(url, parts[order], None if sorted_ids.texts else numbers, sorted_ids.texts)


class _RawColumn(NamedTuple):
    """A column of raw IDs."""

    batch: RawBatch

    def order(self) -> NDArray[np.int64]:
        """Return the rows in raw order."""
        if self.batch.texts is not None:
            return np.asarray(sort_texts(*self.batch.texts), np.int64)
        numbers = self.batch.numbers.view(np.int64) if self.batch.is_signed else self.batch.numbers
        return np.argsort(numbers, kind="stable")

    def repeated(self, order: NDArray[np.int64]) -> int:
        """Return a row whose raw ID stands in an earlier row, -1 where there is none."""
        if self.batch.texts is not None:
            again = np.flatnonzero(repeats_in_order(*self.batch.texts, order))
        else:
            again = 1 + np.flatnonzero(np.diff(self.batch.numbers[order]) == 0)
        return int(order[again[0]]) if again.size else -1


def _raw_ids(column: Any, url: str) -> _RawColumn:
    """Read the column ``id``: integers, or strings."""
    import pyarrow as pa

    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if not column.null_count and (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        texts = column.cast(pa.large_binary()).combine_chunks()
        if isinstance(texts, pa.ChunkedArray):
            texts = pa.concat_arrays(texts.chunks) if texts.num_chunks else pa.nulls(0, pa.large_binary())
        offsets = np.frombuffer(texts.buffers()[1], np.int64, len(texts) + 1, 8 * texts.offset)
        values = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        keys = np.zeros(len(texts), np.uint64)
        return _RawColumn(RawBatch(keys, texts=(offsets - offsets[0], values[offsets[0] : offsets[-1]])))
    if column.null_count or not pa.types.is_integer(column.type):
        found = "a null" if column.null_count else str(column.type)
        raise DataError(f"column 'id' must hold integers or strings, found {found}", place=url, fix="write raw IDs")
    signed = pa.types.is_signed_integer(column.type)
    numbers = column.to_numpy().astype(np.int64 if signed else np.uint64)
    return _RawColumn(RawBatch(numbers.view(np.uint64), is_signed=signed))


def _parts(column: Any, url: str) -> NDArray[np.int64]:
    """Read the column ``part``."""
    import pyarrow as pa

    if column.null_count or not pa.types.is_integer(column.type):
        found = "a null" if column.null_count else str(column.type)
        raise DataError(f"column 'part' must hold integers, found {found}", place=url, fix="write whole numbers >= 0")
    values = column.to_numpy()
    if values.size and values.min() < 0:
        row = int(np.argmax(values < 0))
        raise DataError(
            f"column 'part' must be >= 0, found {int(values[row])}", place=f"{url}: row {row}", fix="write numbers >= 0"
        )
    return np.asarray(values, np.int64)
