"""Compressed files: content decides, several members are one, and every fault has words."""

import bz2
import gzip
import io
import lzma
import random
import zlib

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.model.errors import DataError
from graphprep.storage.read import streams
from graphprep.storage.read.streams import Decompressed, find_codec
from graphprep.storage.read.urls import Storage

COMPRESS = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstandard.ZstdCompressor().compress,
}
TEXT = b"".join(b"%d\t%d\n" % (i * 7919 % 104729, i) for i in range(40_000))


@pytest.fixture(params=["isal", "zlib"])
def gzip_library(request, monkeypatch):
    if request.param == "zlib":
        monkeypatch.setitem(__import__("sys").modules, "isal", None)
    return request.param


@pytest.mark.parametrize("name", COMPRESS)
def test_content_decides_the_compression_not_the_name(tmp_path, name):
    path = tmp_path / "a.csv"
    path.write_bytes(COMPRESS[name](TEXT))
    with Storage() as storage:
        assert storage.read_bytes(str(path)) == TEXT
        assert storage.head(str(path), 9) == TEXT[:9]
        assert storage.size(str(path)) == path.stat().st_size


@pytest.mark.parametrize("text", [b"", b"BZh9 is a word", b"BZ", b"\x1e\x8b", b"(\xb5/", b"Z*M\x17", b"\xfd7zXZ"])
def test_plain_text_is_plain(text):
    assert find_codec(text) is None


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("padding", [b"", b"\0" * 4, b"\0" * 300_000])
def test_several_members_are_one_and_zeros_may_follow(tmp_path, gzip_library, name, padding):
    path = tmp_path / "a"
    compress = COMPRESS[name]
    path.write_bytes(compress(TEXT) + compress(b"") + compress(b"tail") + padding)
    assert Storage().read_bytes(str(path)) == TEXT + b"tail"


def test_zeros_between_members_are_padding(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(gzip.compress(b"a") + b"\0" * 512 + gzip.compress(b"b"))
    assert Storage().read_bytes(str(path)) == b"ab"


def test_zstd_with_skippable_frames(tmp_path):
    path = tmp_path / "a"
    skippable = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"12345"
    frame = zstandard.ZstdCompressor().compress(TEXT)
    path.write_bytes(skippable + frame + skippable + frame)
    assert Storage().read_bytes(str(path)) == TEXT + TEXT


def test_zstd_output_is_bounded_however_much_the_input_expands():
    data = zstandard.ZstdCompressor(level=1).compress(bytes(1 << 28))
    stream = Decompressed(io.BytesIO(data), streams.CODECS[3], "a")
    total = largest = 0
    while not stream._ended:
        stream._advance()
        total += len(stream._output)
        largest = max(largest, len(stream._output))
        stream._output = memoryview(b"")
    assert total == 1 << 28
    assert largest <= 1 << 27


@pytest.mark.parametrize("name", COMPRESS)
def test_a_truncated_stream(tmp_path, gzip_library, name):
    data = COMPRESS[name](TEXT)
    path = tmp_path / "a.csv"
    for cut in [len(data) - 1, len(data) // 2, len(data) // 2 + 1, 20]:
        path.write_bytes(data[:cut])
        with pytest.raises(DataError) as caught:
            Storage().read_bytes(str(path))
        assert str(caught.value) == (
            f"{path}: the {name} stream is truncated\n  fix: the file is incomplete: copy or download it again"
        )
        assert caught.value.exit_code == 1


@pytest.mark.parametrize("name", COMPRESS)
def test_a_second_member_that_is_truncated(tmp_path, name):
    data = COMPRESS[name](TEXT)
    path = tmp_path / "a.csv"
    path.write_bytes(data + data[:-3])
    with pytest.raises(DataError, match="stream is truncated"):
        Storage().read_bytes(str(path))


@pytest.mark.parametrize("name", COMPRESS)
@pytest.mark.parametrize("tail", [b"tail", b"\0\0\0\0x", b"1\n" * 10])
def test_other_bytes_after_the_stream(tmp_path, gzip_library, name, tail):
    path = tmp_path / "a.csv"
    path.write_bytes(COMPRESS[name](TEXT) + tail)
    with pytest.raises(DataError) as caught:
        Storage().read_bytes(str(path))
    assert str(caught.value) == (
        f"{path}: the {name} stream is followed by bytes that do not belong to it\n"
        "  fix: cut off what follows, or copy the file again"
    )


@pytest.mark.parametrize("name", ["gzip", "bzip2", "xz"])
def test_a_corrupt_stream_never_reads_as_something_else(tmp_path, gzip_library, name):
    data = COMPRESS[name](TEXT)
    path = tmp_path / "a.csv"
    chance = random.Random(3)
    for _ in range(25):
        broken = bytearray(data)
        broken[chance.randrange(12, len(data))] ^= 1 << chance.randrange(8)
        path.write_bytes(broken)
        with pytest.raises(DataError) as caught:
            Storage().read_bytes(str(path))
        assert caught.value.place == str(path)
        assert f"the {name} stream is" in caught.value.message


def test_a_corrupt_zstd_stream_with_checksum(tmp_path):
    data = bytearray(zstandard.ZstdCompressor(write_checksum=True).compress(TEXT))
    data[-1] ^= 1
    path = tmp_path / "a.csv"
    path.write_bytes(data)
    with pytest.raises(DataError, match="the zstd stream is corrupt"):
        Storage().read_bytes(str(path))


def test_the_words_for_a_wrong_checksum(tmp_path):
    data = bytearray(gzip.compress(b"hello"))
    data[-6] ^= 1
    path = tmp_path / "a.gz"
    path.write_bytes(data)
    with pytest.raises(DataError) as caught:
        Storage().read_bytes(str(path))
    assert str(caught.value) == (
        f"{path}: the gzip stream is corrupt (Error -6 Incorrect checksum found)\n  fix: copy or download the file again"
    )


@settings(deadline=None, max_examples=40)
@given(
    data=st.binary(max_size=3000),
    sizes=st.lists(st.integers(1, 700), min_size=1, max_size=20),
    name=st.sampled_from(sorted(COMPRESS)),
)
def test_reads_of_any_size_give_the_content(data, sizes, name):
    codec = next(codec for codec in streams.CODECS if codec.name == name)
    stream = io.BufferedReader(Decompressed(io.BytesIO(COMPRESS[name](data)), codec, "a"), 64)
    out = b""
    for i in range(10_000):
        piece = stream.read(sizes[i % len(sizes)])
        if not piece:
            break
        out += piece
    assert out == data


@settings(deadline=None, max_examples=25)
@given(st.lists(st.tuples(st.integers(-50, 400_000), st.sampled_from([0, 1, 2]), st.integers(0, 999)), max_size=6))
def test_seeking_in_a_compressed_file_is_seeking_in_its_content(tmp_path_factory, moves):
    path = tmp_path_factory.mktemp("seek") / "a"
    path.write_bytes(gzip.compress(TEXT, 1))
    plain = io.BytesIO(TEXT)
    with Storage() as storage, storage.open(str(path)) as handle:
        assert handle.seekable()
        for offset, whence, size in moves:
            target = offset if whence == 0 else plain.tell() + offset if whence == 1 else len(TEXT) - offset
            if target < 0:
                continue
            assert handle.seek(-offset if whence == 2 else offset, whence) == plain.seek(
                -offset if whence == 2 else offset, whence
            )
            assert handle.read(size) == plain.read(size)
            assert handle.tell() == plain.tell()


def test_npy_and_parquet_in_a_compressed_file(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    npy, table = io.BytesIO(), io.BytesIO()
    np.save(npy, np.arange(1000))
    pq.write_table(pa.table({"a": range(10)}), table)
    (tmp_path / "npy").write_bytes(zstandard.ZstdCompressor().compress(npy.getvalue()))
    (tmp_path / "parquet").write_bytes(gzip.compress(table.getvalue()))
    with Storage(tmp_dir=str(tmp_path)) as storage:
        with storage.open(str(tmp_path / "npy")) as handle:
            assert np.array_equal(np.load(handle), np.arange(1000))
        with storage.open(str(tmp_path / "parquet")) as handle:
            assert pq.ParquetFile(handle).read().column("a").to_pylist() == list(range(10))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["npy", "parquet"]


def test_zlib_agrees_with_isal_on_every_level():
    for level in range(10):
        data = zlib.compress(TEXT, level, wbits=31)
        codec = streams.Codec("gzip", streams.CODECS[0].magic, streams._ZlibStream)
        assert io.BufferedReader(Decompressed(io.BytesIO(data), codec, "a")).read() == TEXT
        assert io.BufferedReader(Decompressed(io.BytesIO(data), streams.CODECS[0], "a")).read() == TEXT
