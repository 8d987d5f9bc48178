"""Columns that stay in their files: read in pieces from anywhere, and left only where that is right."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.convert.decoded import file_columns
from graphprep.convert.decoded.file_columns import find_plain
from graphprep.model.errors import StorageError
from graphprep.model.protocols import PlainArray, Span
from graphprep.model.rows import ColumnKey
from graphprep.storage.read.npy import MAGIC
from graphprep.storage.read.urls import Storage


def _save(folder, values, sizes):
    """Write an array in some files; return their spans."""
    spans, first = [], 0
    for number, size in enumerate(sizes):
        path = folder / f"{number}.npy"
        np.save(path, values[first : first + size])
        key = ColumnKey("x", "numbers", values.dtype.name)
        start = path.stat().st_size - values[first : first + size].nbytes
        array = PlainArray("n", key, values.shape[1:], first, size, start, MAGIC)
        spans.append(Span(str(path), "table", array=array))
        first += size
    return spans


@pytest.fixture
def storage():
    with Storage() as opened:
        yield opened


@settings(max_examples=60, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 9), min_size=1, max_size=5),
    shape=st.sampled_from([(), (3,), (2, 2), (0,)]),
    dtype=st.sampled_from(["float32", "int8", "bool", "uint64"]),
    piece=st.sampled_from([1, 7, 64, 1 << 20]),
    data=st.data(),
)
def test_pieces_are_slices(tmp_path_factory, sizes, shape, dtype, piece, data):
    values = np.random.default_rng(1).integers(0, 2, (sum(sizes), *shape)).astype(dtype)
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    with pytest.MonkeyPatch.context() as patch, Storage() as storage:
        patch.setattr(file_columns, "_PIECE_BYTES", piece)
        patch.setattr(file_columns, "_CHUNK_BYTES", piece)
        column = find_plain(storage, _save(tmp_path_factory.mktemp("files"), values, sizes))[0]
        flat = values.reshape(len(values), -1) if values.size else np.zeros((len(values), column.width), dtype)
        pieces = [some.copy() for some in column.pieces(start, stop)]
        assert np.array_equal(np.concatenate([flat[:0], *pieces]), flat[start:stop])
        assert all(len(some) for some in pieces)
        rows = [arrays[0] for arrays in column.read()]
        cells = [cells.values for _, cells in column.read()]
        assert np.array_equal(np.concatenate([np.zeros(0, np.int64), *rows]), np.arange(len(values)))
        assert np.array_equal(np.concatenate([flat[:0], *cells]), flat)


def test_files_that_are_not_as_they_should_be_do_not_stay(tmp_path, storage):
    spans = _save(tmp_path, np.arange(10, dtype=np.int32), [4, 6])
    assert find_plain(storage, spans).keys() == {0, 1}
    assert find_plain(storage, spans[::-1]) == {}  # out of order
    assert find_plain(storage, spans[1:]) == {}  # not from the first row
    path = tmp_path / "1.npy"
    data = path.read_bytes()
    path.write_bytes(data + b"x")
    storage.forget(str(path))
    assert find_plain(storage, spans) == {}
    path.write_bytes(gzip.compress(data).ljust(len(data), b"\0")[: len(data)])
    storage.forget(str(path))
    assert find_plain(storage, spans) == {}


def test_a_file_that_becomes_shorter(tmp_path, storage):
    spans = _save(tmp_path, np.arange(10, dtype=np.int32), [4, 6])
    column = find_plain(storage, spans)[0]
    path = tmp_path / "1.npy"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StorageError, match=r"1\.npy: the file changed while it was read \(152 bytes, now 151\)"):
        list(column.chunks())
