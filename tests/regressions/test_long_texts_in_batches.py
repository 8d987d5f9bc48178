"""Rows of long texts come in batches of a bounded number of bytes, however many rows a file keeps together."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from graphprep.decoders.cells.arrow import batch_bytes, parquet_batches
from graphprep.decoders.tables.arrow import _arrow_batches
from graphprep.model.protocols import Span

MAX_ROWS = 1024
DISTINCT = [f"{row:010d}" * 1000 for row in range(300)]
REPEATED = ["x" * 10_000] * 300


def batches_of(path, suffix, texts):
    table = pa.table({"id": texts, "n": list(range(len(texts)))})
    span = Span(str(path), start=5)
    if suffix == "parquet":
        pq.write_table(table, path, compression="zstd")
        with path.open("rb") as handle:
            return list(parquet_batches(handle, span, MAX_ROWS, ["id", "n"]))
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)
    with path.open("rb") as handle:
        return list(_arrow_batches(handle, span, MAX_ROWS, ["id", "n"]))


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("texts", [DISTINCT, REPEATED], ids=["distinct", "repeated"])
def test_batches_are_bounded_in_bytes(tmp_path, suffix, texts):
    batches = batches_of(tmp_path / f"t.{suffix}", suffix, texts)
    assert [row for batch in batches for row in batch["id"].to_pylist()] == texts[5:]
    assert [row for batch in batches for row in batch["n"].to_pylist()] == list(range(5, len(texts)))
    assert max(batch.nbytes for batch in batches) <= 2 * batch_bytes(MAX_ROWS)


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
def test_short_rows_come_as_many_at_a_time_as_before(tmp_path, suffix):
    batches = batches_of(tmp_path / f"t.{suffix}", suffix, ["ab"] * 2000)
    assert [batch.num_rows for batch in batches] in ([1024, 971], [1019, 976])


def test_numbers_of_rows_in_the_way_of_nothing(tmp_path):
    """A file without rows has one batch, which is empty and has the columns."""
    (batch,) = batches_of(tmp_path / "t.parquet", "parquet", [])
    assert (batch.num_rows, batch.schema.names) == (0, ["id", "n"])
