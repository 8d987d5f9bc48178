"""Arrays that are lent and taken by DLPack, as NumPy and PyTorch do it; and what lies on a device."""

from __future__ import annotations

import ctypes
import gc
import sys

import numpy as np
import pytest

import graphprep
from graphprep.edges.device import arrays, dlpack
from graphprep.edges.device.arrays import DeviceArray, lies_on_device
from graphprep.model.errors import UsageError

CPU = (1, 0)  # kDLCPU
UNKNOWN = (
    "an array does not say on which device it lies, and the driver does not know its address\n"
    "  fix: pass arrays that have __dlpack_device__, or arrays of the host"
)


class Lender:
    """Lends an array of the host as a device's are lent."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **_):
        return dlpack.give(self.array, self.array.ctypes.data, self.array.size, self.array.dtype, CPU)

    def __dlpack_device__(self):
        return CPU


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
def test_numpy_takes_what_is_lent(dtype):
    array = np.arange(7, dtype=dtype)
    taken = np.from_dlpack(Lender(array))
    assert (taken.dtype, taken.tolist(), taken.ctypes.data) == (array.dtype, array.tolist(), array.ctypes.data)


def test_torch_takes_what_is_lent():
    torch = pytest.importorskip("torch")
    array = np.arange(7)
    taken = torch.from_dlpack(Lender(array))
    taken[2] = 40
    assert array.tolist() == [0, 1, 40, 3, 4, 5, 6]


def test_what_is_lent_lives_as_long_as_it_is_used():
    before, array = len(dlpack._given), np.arange(7)
    size = sys.getrefcount(array)
    taken = np.from_dlpack(Lender(array))
    capsule = Lender(array).__dlpack__()
    assert len(dlpack._given) == before + 2
    assert sys.getrefcount(array) > size
    del taken, capsule  # one that was taken, and one that nobody took
    gc.collect()
    assert len(dlpack._given) == before
    assert sys.getrefcount(array) == size


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint64])
def test_what_numpy_lends_is_taken(dtype):
    array = np.arange(9, dtype=dtype)[2:]
    capsule = array.__dlpack__()
    lent = dlpack.take(capsule)
    assert (lent.address, lent.size, lent.dtype, lent.device) == (array.ctypes.data, 7, array.dtype, CPU)
    with pytest.raises(ValueError, match="PyCapsule_GetPointer"):
        dlpack.take(capsule)  # nobody else can
    uses = sys.getrefcount(array)
    lent.release()
    assert sys.getrefcount(array) == uses - 1


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2), np.int64), np.arange(6)[::2]], ids=["floats", "2d", "gaps"])
def test_other_arrays_are_refused(array):
    with pytest.raises(UsageError) as caught:
        dlpack.take(array.__dlpack__())
    words = "expected integers in one dimension, one beside the other\n  fix: pass a contiguous array of int64"
    assert str(caught.value) == words


class Held:
    """An array as Numba holds it."""

    def __init__(self, array):
        self.array, self.dtype, self.shape, self.size = array, array.dtype, array.shape, array.size
        data = (array.ctypes.data, False)
        self.__cuda_array_interface__ = {"shape": array.shape, "typestr": "<i8", "data": data, "stream": 7, "version": 3}

    def copy_to_host(self):
        return self.array.copy()


def test_an_array_on_a_device():
    array = DeviceArray(Held(np.arange(3)), 1)
    assert repr(array) == "DeviceArray(3 int64 on cuda:1)"
    assert (len(array), array.size, array.shape, array.ndim, array.dtype) == (3, 3, (3,), 1, np.int64)
    assert array.__cuda_array_interface__["stream"] is None  # nothing is left to wait for
    assert array.__dlpack_device__() == (dlpack.CUDA, 1)
    lent = dlpack.take(array.__dlpack__(stream=1))
    assert (lent.address, lent.size, lent.device) == (array.held.array.ctypes.data, 3, (2, 1))
    lent.release()
    assert array.copy_to_host().tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match=r"DeviceArray\(3 int64 on cuda:1\) is not in the host's memory: copy_to_host"):
        np.asarray(array)


def test_where_arrays_lie():
    array = DeviceArray(Held(np.arange(3)), 1)
    assert lies_on_device(array)
    assert not any(map(lies_on_device, (np.arange(3), [1, 2], (1,), Lender(np.arange(3)), None)))
    with pytest.raises(UsageError) as caught:
        graphprep.build_adjacency(array, array, device="cuda:2")
    assert str(caught.value) == 'device="cuda:2": the arrays lie on cuda:1\n  fix: leave device out, or move them'
    with pytest.raises(UsageError) as caught:
        graphprep.dedup_edges(array, DeviceArray(Held(np.arange(3)), 0))
    assert str(caught.value) == "arrays lie on cuda:0 and cuda:1\n  fix: move them"


class Bare:
    """An array on a device that says nothing but its address."""

    def __init__(self, address):
        self.__cuda_array_interface__ = {"shape": (3,), "typestr": "<i8", "data": (address, False), "version": 3}


class Driver:
    """Knows that addresses from 4,096 on lie on device 2, from 8,192 on on device 3, and no others."""

    def __init__(self, name):
        assert name == "libcuda.so.1"

    def cuPointerGetAttribute(self, found, attribute, address):
        assert attribute == 9
        found._obj.value = 2 + (address.value >= 8192)
        return 0 if address.value >= 4096 else 1


def test_arrays_that_do_not_say_where_they_lie(monkeypatch, tmp_path):
    monkeypatch.setattr(ctypes, "CDLL", Driver)
    assert arrays.device_of([Bare(5000), None, Bare(0)], None) == 2
    assert arrays.device_of([Bare(9000)], "cuda:3") == 3
    assert arrays.device_of([Bare(0)], "cuda:3") == 3
    assert arrays.device_of([Bare(0)], None) == 0
    for given, device, words in (
        ((5000, 9000), None, "arrays lie on cuda:2 and cuda:3\n  fix: move them"),
        ((5000,), "cuda", 'device="cuda": the arrays lie on cuda:2\n  fix: leave device out, or move them'),
        ((77,), None, UNKNOWN),
        ((77,), "cuda:0", UNKNOWN),
    ):
        with pytest.raises(UsageError) as caught:
            arrays.device_of(list(map(Bare, given)), device)
        assert str(caught.value) == words
    monkeypatch.undo()
    monkeypatch.setenv("NUMBA_CUDA_DRIVER", str(tmp_path / "none"))
    with pytest.raises(UsageError) as caught:
        arrays.device_of([Bare(77)], None)
    assert str(caught.value) == UNKNOWN
