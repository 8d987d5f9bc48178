"""Files of torch as any reader of ZIP and pickle sees them: bytes, sizes, alignment, checksums. No torch here."""

from __future__ import annotations

import contextlib
import io
import pickle
import pickletools
import shutil
import struct
import subprocess
import zipfile
import zlib
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch_reader import read_chunks, read_naively

from graphprep.exporters.formats import torch_zip
from graphprep.exporters.formats.torch_files import TorchFile, chunk_bytes, write_pt, write_tensor_chunks
from graphprep.exporters.formats.torch_pickle import (
    Call,
    Global,
    Instance,
    Pickler,
    TensorPieces,
    script_object,
    tensor,
    to_bfloat16,
)
from graphprep.exporters.formats.torch_zip import ZipEntry, zip_pieces, zip_size
from graphprep.exporters.view.torch_graph import rows_ascend

_DTYPES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64", "complex128")
_LATER = ("uint16", "uint32", "uint64")


class Folder(dict):
    """Files in memory; a file that says its size must have it."""

    @contextlib.contextmanager
    def open(self, path, num_bytes):
        sink = io.BytesIO()
        yield sink
        self[path] = sink.getvalue()
        assert num_bytes in (0, len(self[path]))


def pt(value, stem="archive"):
    out = Folder()
    write_pt(out, f"{stem}.pt", value)
    return out[f"{stem}.pt"]


@pytest.mark.parametrize("dtype", [*_DTYPES, *_LATER])
@pytest.mark.parametrize("shape", [(), (0,), (5,), (3, 4), (2, 0, 3)])
def test_tensors_come_back(dtype, shape):
    values = np.random.default_rng(0).integers(0, 100, shape).astype(dtype)
    found = read_naively(pt(tensor(values)))
    assert found.dtype == values.dtype
    assert found.shape == shape
    np.testing.assert_array_equal(found, values)


def test_plain_values_come_back():
    value = {
        "none": None, "yes": True, "no": False, ("user", "buys", "item"): [1, (2,), (), [], {}],
        "ints": [0, 255, 256, -1, 2**31 - 1, -(2**31), 2**31, 2**63, -(2**63), 2**64, 10**30],
        "floats": (0.5, -0.0, float("inf"), 1e300), "text": "Zoë \ud800", "longer": (1, 2, 3, 4, 5),
        "numpy": [np.int64(7), np.float32(0.5), np.bool_(True)], "": {1: {2: {3: "deep"}}},
    }  # fmt: skip
    data = zipfile.ZipFile(io.BytesIO(pt(value))).read("archive/data.pkl")
    assert pickle.loads(data) == value
    assert str(pickle.loads(data)["floats"][1]) == "-0.0"
    assert max(opcode.proto for opcode, _, _ in pickletools.genops(data)) == 2


_PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
_KEYS = st.text() | st.integers() | st.tuples(st.text(), st.text(), st.text())


@given(
    st.recursive(
        _PLAIN,
        lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(_KEYS, inner),
        max_leaves=20,
    )
)
def test_any_plain_value_comes_back(value):
    data = Pickler().dump(value)
    found = pickle.loads(data)
    assert found == value
    assert repr(found) == repr(value)


def test_only_what_torch_reads_is_written():
    for value in ({1, 2}, object(), b"bytes", np.zeros(2)):
        with pytest.raises(TypeError, match=f"cannot pickle {type(value).__name__} for torch"):
            TorchFile([value])
    with pytest.raises(TypeError, match="torch has no tensors of datetime64"):
        TorchFile(tensor(np.zeros(2, "datetime64[s]")))


def test_objects_are_calls_and_instances():
    value = [
        Call(Global("fractions", "Fraction"), (3, 4)),
        Instance(Global("types", "SimpleNamespace"), (), {"a": [1, 2]}),
        Call(Global("types", "SimpleNamespace"), (), {"b": (3,)}),
        Global("collections", "Counter"),
    ]
    one, two, three, four = pickle.loads(zipfile.ZipFile(io.BytesIO(pt(value))).read("archive/data.pkl"))
    assert (float(one), two.a, three.b, four.__name__) == (0.75, [1, 2], (3,), "Counter")
    made = script_object("__torch__.torch.classes.graph.Graph", {"x": 1})
    assert made == Instance(Global("torch", "ScriptObject"), (), ({"x": 1}, "__torch__.torch.classes.graph.Graph"))


def test_pieces_are_put_together_and_cast():
    pieces = [np.arange(4, dtype=np.int32).reshape(2, 2), np.zeros((0, 2), np.int32), np.arange(4, 6, dtype=np.int32)]
    found = read_naively(pt(TensorPieces("int64", (3, 2), lambda: pieces)))
    np.testing.assert_array_equal(found, np.arange(6).reshape(3, 2))
    strided = np.arange(12).reshape(3, 4)[:, ::2]
    np.testing.assert_array_equal(read_naively(pt(tensor(strided))), strided)


def test_the_same_tensor_twice_is_stored_once():
    one, other = tensor(np.arange(3)), tensor(np.arange(3))
    data = pt([one, one, other])
    names = zipfile.ZipFile(io.BytesIO(data)).namelist()
    assert names == ["archive/data.pkl", "archive/byteorder", "archive/data/0", "archive/data/1", "archive/version"]
    assert [part.tolist() for part in read_naively(data)] == [[0, 1, 2]] * 3


@pytest.mark.parametrize("short", [True, False])
def test_pieces_that_do_not_add_up_are_refused(short):
    pieces = [np.zeros(2 if short else 4)]
    with pytest.raises(RuntimeError, match=f"archive/data/0: {16 if short else 32} bytes written, 24 expected"):
        pt(TensorPieces("float64", (3,), lambda: pieces))


def test_bfloat16_is_rounded_to_nearest_even():
    rng = np.random.default_rng(0)
    bits = np.concatenate(
        [rng.integers(0, 2**32, 20_000).astype(np.uint32), np.array([0x3F808000, 0x3F818000, 0x7F7FFFFF], "u4")]
    )
    values = bits.view(np.float32)
    for value, found in zip(values.tolist(), to_bfloat16(values).tolist(), strict=True):
        low = struct.unpack("<I", struct.pack("<f", value))[0] >> 16
        if value != value:
            assert found == 0x7FC0
            continue
        exact = [struct.unpack("<f", struct.pack("<I", (near & 0xFFFF) << 16))[0] for near in (low, low + 1)]
        if abs(value) == float("inf") or (low & 0x7FFF) == 0x7F7F:
            assert found in (low, low + 1)
            continue
        gaps = [abs(near - value) for near in exact]
        nearest = low if gaps[0] < gaps[1] or (gaps[0] == gaps[1] and low % 2 == 0) else low + 1
        assert found == nearest, value
    assert to_bfloat16(np.float32(1)).shape == ()
    data = pt(
        [TensorPieces("bfloat16", (2,), lambda: [np.array([1.0, -2.5])]), TensorPieces("bfloat16", (1,), lambda: [found16])]
    )
    assert [part.tolist() for part in read_naively(data)] == [[0x3F80, 0xC020], [7]]


found16 = np.array([7], np.uint16)


# ---------------------------------------------------------------------------------------------- the archive


def test_the_archive_is_sound():
    value = {"a": tensor(np.arange(100)), "b": [tensor(np.zeros((3, 3), np.float32)), tensor(np.ones(1, bool))]}
    data = pt(value, "a long name, ö")
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert archive.testzip() is None
    assert archive.read("a long name, ö/version") == b"3\n"
    assert archive.read("a long name, ö/byteorder") == b"little"
    for info in archive.infolist():
        assert (info.compress_type, info.date_time, info.flag_bits) == (0, (1980, 1, 1, 0, 0, 0), 0x808)
        assert zlib.crc32(archive.read(info)) == info.CRC
        name_bytes, extra_bytes = struct.unpack_from("<HH", data, info.header_offset + 26)
        start = info.header_offset + 30 + name_bytes + extra_bytes
        assert start % 64 == 0
        assert data[start : start + info.file_size] == archive.read(info)
        tail = struct.unpack_from("<4sIII", data, start + info.file_size)
        assert tail == (b"PK\7\10", info.CRC, info.file_size, info.file_size)
    assert data == pt(value, "a long name, ö"), "the same value has other bytes"


@pytest.mark.skipif(shutil.which("unzip") is None, reason="there is no unzip")
def test_unzip_accepts_the_archive(tmp_path):
    (tmp_path / "file.pt").write_bytes(pt([tensor(np.arange(1000)), tensor(np.zeros(0))]))
    said = subprocess.run(["unzip", "-t", tmp_path / "file.pt"], capture_output=True, text=True, check=True).stdout
    assert "No errors detected" in said


def test_the_stem_is_the_name_of_the_file():
    out = Folder()
    write_pt(out, "part0/graph/rows.pt", tensor(np.arange(3)))
    assert zipfile.ZipFile(io.BytesIO(out["part0/graph/rows.pt"])).namelist()[0] == "rows/data.pkl"


def test_many_entries_need_zip64():
    entries = [ZipEntry(f"{k}", 1, lambda: (b"x",)) for k in range(1 << 16)]
    data = b"".join(zip_pieces(entries))
    assert len(data) == zip_size(entries)
    archive = zipfile.ZipFile(io.BytesIO(data))
    assert len(archive.namelist()) == 1 << 16
    assert archive.read("65535") == b"x"


def test_beyond_4_gib_sizes_and_offsets_need_zip64(tmp_path):
    """Zeros are skipped, so that the file is sparse; zipfile reads but the ends."""
    size = (1 << 32) + 4096
    block = memoryview(bytes(1 << 22))
    path = tmp_path / "sparse.pt"
    with path.open("wb") as file:
        for piece in zip_pieces(entries := _large_entries(size, block)):
            if piece is block:
                file.seek(len(piece), 1)
            else:
                file.write(piece)
    assert path.stat().st_size == zip_size(entries) > 2 * size
    assert path.stat().st_blocks * 512 < 1 << 20
    archive = zipfile.ZipFile(path)
    assert [info.file_size for info in archive.infolist()] == [1, size, 3, size, 2]
    offsets = [info.header_offset for info in archive.infolist()]
    assert all(
        after - before >= info.file_size for (before, after), info in zip(pairwise(offsets), archive.infolist(), strict=False)
    )
    assert [archive.read(name) for name in ("a", "c", "e")] == [b"1", b"two", b"33"]
    for name in ("b", "d"):
        with path.open("rb") as raw:
            raw.seek(archive.getinfo(name).header_offset)
            _, version, flags, *_, packed, plain, name_bytes, extra_bytes = struct.unpack("<4sHHHHHIIIHH", raw.read(30))
            assert (version, flags, packed, plain) == (45, 0x808, 0xFFFFFFFF, 0xFFFFFFFF)
            raw.seek(name_bytes + extra_bytes + size, 1)
            mark, crc, *sizes = struct.unpack("<4sIQQ", raw.read(24))
            assert (mark, crc, sizes) == (b"PK\7\10", archive.getinfo(name).CRC, [size, size])


def _large_entries(size, block):
    def zeros():
        for _ in range(size // len(block)):
            yield block
        yield bytes(size % len(block))

    small = [ZipEntry(name, len(data), lambda data=data: (data,)) for name, data in (("a", b"1"), ("c", b"two"), ("e", b"33"))]
    large = [ZipEntry(name, size, zeros) for name in ("b", "d")]
    return [small[0], large[0], small[1], large[1], small[2]]


def test_the_checksum_of_zeros_beyond_4_gib_is_true():
    """Of 2^32 + 4096 zero bytes, by squaring the matrix that one zero byte is: not by reading them."""
    entry = ZipEntry("z", (1 << 32) + 4096, lambda: _zeros((1 << 32) + 4096))
    *_, tail, end = zip_pieces([entry])
    assert struct.unpack_from("<I", tail, 4)[0] == _crc_of_zeros((1 << 32) + 4096)
    assert end.startswith(b"PK\1\2")
    assert torch_zip.ALIGNMENT == 64


def _zeros(count):
    block = memoryview(bytes(1 << 24))
    for _ in range(count >> 24):
        yield block
    yield bytes(count % (1 << 24))


def _crc_of_zeros(count):
    """Follow the register of CRC-32 over zero bytes: a linear map over bits."""

    def apply(matrix, vector):
        out = 0
        for bit in range(32):
            if vector >> bit & 1:
                out ^= matrix[bit]
        return out

    step = [zlib.crc32(b"\0", (1 << bit) ^ 0xFFFFFFFF) ^ 0xFFFFFFFF for bit in range(32)]
    register = 0xFFFFFFFF
    while count:
        if count & 1:
            register = apply(step, register)
        step = [apply(step, column) for column in step]
        count >>= 1
    return register ^ 0xFFFFFFFF


# ---------------------------------------------------------------------------------------------- tensors one after another


def test_chunks_are_pickles_one_after_another():
    chunks = [tensor(np.arange(6, dtype=np.float16).reshape(3, 2)), tensor(np.zeros((0, 2), np.float16))]
    out = Folder()
    write_tensor_chunks(out, "feats.pkl", chunks, sum(map(chunk_bytes, chunks)))
    assert [one.tolist() for one in read_chunks(out["feats.pkl"])] == [[[0, 1], [2, 3], [4, 5]], []]
    assert read_chunks(out["feats.pkl"])[1].shape == (0, 2)


@given(st.permutations(range(4)) | st.lists(st.integers(0, 9), max_size=6), st.data())
def test_ids_ascend_over_pieces_and_partitions_or_not(ids, data):
    """However they are cut, into pieces that may be empty."""

    class Graph:
        def ids_are_typed(self, number):
            return False

        def ids_in_part(self, number, part):
            return iter(parts[part])

    cuts = sorted(data.draw(st.lists(st.integers(0, len(ids)), max_size=4)))
    pieces = np.split(np.array(ids, np.int64), cuts)
    border = data.draw(st.integers(0, len(pieces)))
    parts = [pieces[:border], pieces[border:]]
    assert rows_ascend(Graph(), 0, range(2)) == all(one < other for one, other in pairwise(ids))
