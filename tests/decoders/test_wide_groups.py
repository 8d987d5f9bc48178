"""Parquet row groups that take more than a reader may hold give the rows that pyarrow gives, from a temporary file."""

from __future__ import annotations

import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphprep.decoders.cells.arrow import parquet_batches
from graphprep.model.errors import StorageError
from graphprep.model.protocols import ReadingRoom, Span

NUM_ROWS = 5_000


def make_table():
    rng = np.random.default_rng(1)
    columns = {f"c{i}": rng.random(NUM_ROWS) for i in range(40)}
    columns["a.b"] = pa.array([None if row % 7 == 0 else row for row in range(NUM_ROWS)])
    columns["text"] = pa.array([None if row % 5 == 0 else f"{row}" * (row % 9) for row in range(NUM_ROWS)])
    columns["kind"] = pa.array([f"k{row % 11 + row // 1000}" for row in range(NUM_ROWS)]).dictionary_encode()
    columns["list"] = pa.array([[row, row + 1][: row % 3] for row in range(NUM_ROWS)])
    columns["records"] = pa.array([[{"at": row, "value": 0.5}] for row in range(NUM_ROWS)])
    return pa.table(columns)


@pytest.mark.parametrize("room_bytes", [1, 400_000, 1 << 30])
@pytest.mark.parametrize("group_rows", [5_000, 1_700])
def test_rows_are_those_of_the_file(tmp_path, monkeypatch, room_bytes, group_rows):
    table = make_table()
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=group_rows)
    made = []
    new_file = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: made.append(dir) or new_file(dir=dir))
    names = [name for name in reversed(table.column_names) if name != "c7"]
    span = Span("t.parquet", "table", start=13, stop=NUM_ROWS - 2, room=ReadingRoom(room_bytes, str(tmp_path)))
    with (tmp_path / "t.parquet").open("rb") as handle:
        batches = list(parquet_batches(handle, span, 1 << 10, names))
    assert max(batch.num_rows for batch in batches) <= 1 << 10
    for name in names:
        assert [value for batch in batches for value in batch[name].to_pylist()] == table[name].to_pylist()[13:-2]
    assert made == ([] if room_bytes == 1 << 30 else [str(tmp_path)] * -(-NUM_ROWS // group_rows))
    assert [path.name for path in tmp_path.iterdir()] == ["t.parquet"]


def test_no_more_is_decoded_than_is_asked_for(tmp_path, monkeypatch):
    """A sample of a wide row group writes a few rows of it to the temporary file, not all."""
    table = make_table()
    pq.write_table(table, tmp_path / "t.parquet")
    files, sizes = [], []
    new_file = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda dir: files.append(new_file(dir=dir)) or files[-1])
    for num_rows in (50, NUM_ROWS):
        span = Span("t.parquet", "table", start=0, stop=num_rows, room=ReadingRoom(1, str(tmp_path)))
        with (tmp_path / "t.parquet").open("rb") as handle:
            batches = parquet_batches(handle, span, 1 << 10, table.column_names)
            first = next(batches)
            sizes.append(files[-1].seek(0, 2))
            assert first.to_pylist() == table.slice(0, first.num_rows).to_pylist()
            assert first.num_rows + sum(batch.num_rows for batch in batches) == num_rows
    assert sizes[0] * 20 < sizes[1]


def test_no_room_for_the_temporary_file_is_told(tmp_path):
    pq.write_table(make_table(), tmp_path / "t.parquet")
    room = ReadingRoom(1, str(tmp_path / "gone"))
    with (tmp_path / "t.parquet").open("rb") as handle, pytest.raises(StorageError) as raised:
        list(parquet_batches(handle, Span("t.parquet", "table", room=room), 1 << 10, ["c0", "c1"]))
    assert str(tmp_path / "gone") in str(raised.value)
