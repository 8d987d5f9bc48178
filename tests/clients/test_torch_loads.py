"""Files of torch as torch reads them: whole, weights only, and mapped."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

from graphprep.exporters.formats.torch_files import write_pt, write_tensor_chunks
from graphprep.exporters.formats.torch_pickle import TensorPieces, tensor
from graphprep.exporters.formats.torch_zip import ZipEntry, zip_pieces

pytestmark = pytest.mark.client("torch")

torch = pytest.importorskip("torch", reason="torch is not installed")

DTYPES = (
    *("bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
)


class Folder:
    """A folder on disk."""

    def __init__(self, path):
        self.path = path

    def open(self, name, num_bytes):
        return (self.path / name).open("wb")


@pytest.mark.parametrize("mmap", [False, True])
@pytest.mark.parametrize("weights_only", [False, True])
def test_torch_reads_nested_values(tmp_path, weights_only, mmap):
    arrays = {dtype: np.random.default_rng(0).integers(0, 2, (3, 2)).astype(dtype) for dtype in DTYPES}
    value = {
        ("user", "buys", "item"): {name: tensor(array) for name, array in arrays.items()},
        "empty": [tensor(np.zeros((0, 4), np.float32)), tensor(np.zeros(0, np.int64))],
        "scalar": tensor(np.int64(5)),
        "plain": (None, True, -3, 2**40, 0.5, "Zoë", [], {}),
    }
    write_pt(Folder(tmp_path), "value.pt", value)
    found = torch.load(tmp_path / "value.pt", weights_only=weights_only, mmap=mmap)
    for name, array in arrays.items():
        one = found["user", "buys", "item"][name]
        assert one.dtype == getattr(torch, name)
        assert one.is_contiguous()
        np.testing.assert_array_equal(one.numpy(), array)
    assert [tuple(one.shape) for one in found["empty"]] == [(0, 4), (0,)]
    assert (found["scalar"].item(), found["scalar"].shape) == (5, ())
    assert found["plain"] == value["plain"]


def test_torch_reads_what_torch_rounds(tmp_path):
    values = np.random.default_rng(0).normal(size=1000).astype(np.float32)
    values[:3] = np.nan, np.inf, -np.inf
    write_pt(Folder(tmp_path), "half.pt", TensorPieces("bfloat16", (1000,), lambda: [values[:10], values[10:]]))
    found = torch.load(tmp_path / "half.pt")
    assert found.dtype == torch.bfloat16
    assert torch.equal(found.view(torch.int16)[1:], torch.from_numpy(values).bfloat16().view(torch.int16)[1:])
    assert torch.isnan(found[0])


def test_what_we_write_is_what_torch_writes_apart_from_its_extras(tmp_path):
    values = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    torch.save({"a": [values, values]}, tmp_path / "torch.pt")
    one = tensor(values.numpy())
    write_pt(Folder(tmp_path), "ours.pt", {"a": [one, one]})
    for name in ("torch.pt", "ours.pt"):
        found = torch.load(tmp_path / name)["a"]
        assert torch.equal(found[0], values)
        assert found[0].data_ptr() == found[1].data_ptr()


def test_torch_maps_a_tensor_beyond_4_gib(tmp_path):
    """The file is sparse: zeros are skipped, and only the end of the tensor is not zero."""
    count = (1 << 29) + 1024
    blocks = [np.zeros(1 << 19, np.int64)] * (count >> 19) + [np.arange(count % (1 << 19))]

    class Sparse(io.FileIO):
        def write(self, data):
            if len(data) == 1 << 22:
                return self.seek(len(data), io.SEEK_CUR)
            return super().write(data)

    class SparseFolder:
        def open(self, name, num_bytes):
            return Sparse(tmp_path / name, "wb")

    write_pt(SparseFolder(), "large.pt", [tensor(np.arange(3)), TensorPieces("int64", (count,), lambda: blocks), tensor([7])])
    assert (tmp_path / "large.pt").stat().st_blocks * 512 < 1 << 20
    first, large, last = torch.load(tmp_path / "large.pt", mmap=True)
    assert (first.tolist(), last.tolist(), large.numel()) == ([0, 1, 2], [7], count)
    assert large[-3:].tolist() == [1021, 1022, 1023]
    assert int(large[:1000].sum()) == 0


def test_pickles_one_after_another_are_tensors(tmp_path):
    chunks = [tensor(np.arange(6, dtype=np.float16).reshape(3, 2)), tensor(np.zeros((0, 2), np.float16))]
    write_tensor_chunks(Folder(tmp_path), "feats.pkl", chunks)
    with (tmp_path / "feats.pkl").open("rb") as file:
        one, two = pickle.load(file), pickle.load(file)
        assert (one.dtype, one.tolist()) == (torch.float16, [[0, 1], [2, 3], [4, 5]])
        assert tuple(two.shape) == (0, 2)
        assert not file.read()


def test_torch_reads_our_archive_as_an_archive():
    """The reader of torch finds records by name and knows where their bytes begin."""
    data = b"".join(zip_pieces([ZipEntry("a/data.pkl", 3, lambda: (b"abc",)), ZipEntry("a/version", 2, lambda: (b"3\n",))]))
    reader = torch._C.PyTorchFileReader(io.BytesIO(data))
    assert reader.get_record("data.pkl") == b"abc"
    assert reader.get_record_offset("data.pkl") % 64 == 0
