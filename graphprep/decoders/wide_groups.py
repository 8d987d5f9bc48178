"""Row groups of Parquet files that take more memory than there is: their columns are decoded some at a time."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import BinaryIO, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from graphprep.model.protocols import ReadingRoom
from graphprep.storage.faults import plain_words
from graphprep.storage.private import TMP_DIR_OPTION

_PAGE_BYTES = 5 << 18  # of a column that is decoded on and on: a page of 1 MiB, as most writers make them, and its dictionary
_LEAST_BUFFER = 1 << 16  # of the file, a column
_MOST_BUFFER = 4 << 20


def leaf_columns(group: pq.RowGroupMetaData, names: Sequence[str] | None) -> Iterator[tuple[str, pq.ColumnChunkMetaData]]:
    """Yield the stored columns of a row group that belong to ``names`` (None: all), each with its name there."""
    wanted = None if names is None else set(names)
    for number in range(group.num_columns):
        column = group.column(number)
        path = column.path_in_schema
        while wanted is not None and path not in wanted and "." in path:  # a list is stored as NAME.list.element
            path = path.rpartition(".")[0]
        if wanted is None or path in wanted:
            yield path, column


class RowGroup(NamedTuple):
    """The first ``num_rows`` rows of a row group of an open file."""

    handle: BinaryIO
    metadata: pq.FileMetaData
    number: int
    num_rows: int


def read_wide(group: RowGroup, names: Sequence[str], step: int, room: ReadingRoom) -> Iterator[pa.RecordBatch]:
    """Yield some columns of the rows of a group, or of a few rows more, in batches of at most ``step`` rows.

    A reader holds a page of every column that it reads. Where all these pages have no room beside a batch, in
    ``room.most_bytes``, some columns are decoded after others into a temporary file, which then is read with all of them side
    by side. Raises StorageError where that has no room.
    """
    most_bytes = room.most_bytes // 2
    sets = _share_out(group.metadata.row_group(group.number), names, most_bytes)
    streams = (_read_columns(group, columns, min(step, group.num_rows), most_bytes) for columns in sets)
    if len(sets) == 1:
        yield from next(streams)
        return
    with plain_words(room.folder, TMP_DIR_OPTION):
        file = tempfile.TemporaryFile(dir=room.folder)  # noqa: SIM115 - it has no name: nobody finds what a kill leaves
    with closing(file):
        stored = [_Stored(file, room.folder, stream) for stream in streams]
        yield from _join([iter(one) for one in stored])


def _share_out(group: pq.RowGroupMetaData, names: Sequence[str], most_bytes: int) -> list[list[str]]:
    """Scatter columns to sets, in order, that may be read at once."""
    costs = dict.fromkeys(names, 0)
    for name, column in leaf_columns(group, names):
        costs[name] += min(column.total_uncompressed_size, _PAGE_BYTES) + min(column.total_compressed_size, _LEAST_BUFFER)
    sets: list[list[str]] = [[]]
    left = most_bytes
    for name, cost in costs.items():
        if cost > left and sets[-1]:
            sets.append([])
            left = most_bytes
        sets[-1].append(name)
        left -= cost
    return sets


def _read_columns(group: RowGroup, names: Sequence[str], step: int, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Decode some columns on and on, reading the file a piece at a time, until all rows are there."""
    buffer = max(_LEAST_BUFFER, min(_MOST_BUFFER, most_bytes // len(names)))
    file = pq.ParquetFile(group.handle, metadata=group.metadata, buffer_size=buffer)
    left = group.num_rows
    for batch in file.iter_batches(batch_size=step, row_groups=[group.number], columns=list(names)):
        if batch.num_rows:
            yield batch
        left -= batch.num_rows
        if left <= 0:
            return


class _Stored:
    """Batches of some columns in a temporary file that others share."""

    def __init__(self, file: BinaryIO, folder: str, batches: Iterator[pa.RecordBatch]) -> None:
        self._file = file
        self._folder = folder
        self._places = [self._write(batch) for batch in batches]

    def _write(self, batch: pa.RecordBatch) -> tuple[int, int]:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:  # each with its schema: dictionaries differ between batches
            stream.write_batch(batch)
        data = sink.getvalue()
        with plain_words(self._folder, TMP_DIR_OPTION):
            at = self._file.seek(0, 2)
            self._file.write(data)
        return at, data.size

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for at, size in self._places:
            with plain_words(self._folder, TMP_DIR_OPTION):
                self._file.seek(at)
                data = self._file.read(size)
            yield pa.ipc.open_stream(data).read_next_batch()


def _join(streams: Sequence[Iterator[pa.RecordBatch]]) -> Iterator[pa.RecordBatch]:
    """Yield batches of the columns of all streams, which have equally many rows."""
    rests = [next(stream) for stream in streams]
    while True:
        count = min(rest.num_rows for rest in rests)
        arrays = [column for rest in rests for column in rest.slice(0, count).columns]
        yield pa.RecordBatch.from_arrays(arrays, schema=pa.schema([field for rest in rests for field in rest.schema]))
        following = [
            rest.slice(count) if rest.num_rows > count else next(stream, None)
            for rest, stream in zip(rests, streams, strict=True)
        ]
        rests = [rest for rest in following if rest is not None]
        if len(rests) < len(streams):
            return
