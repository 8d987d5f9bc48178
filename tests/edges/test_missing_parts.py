"""What ``--device cuda`` says where a part of CUDA is missing: which one, and what helps. The driver and the toolkit are fakes."""

from __future__ import annotations

import ctypes
import re
import sys
from types import SimpleNamespace

import pytest
from golden.golden_cases import SAMPLE_DATA

import graphprep
from graphprep.cli.main import run
from graphprep.kernels.cuda import driver, frontend, probe
from graphprep.kernels.cuda.driver import Driver

NVVM = "libNVVM cannot be found. Do `conda install cudatoolkit`:\nlibnvvm.so: cannot open shared object file"
NVVM_SHORT = "libNVVM cannot be found. Do `conda install cudatoolkit`: libnvvm.so: cannot open shared object file"
NVRTC = 'Failure finding "libnvrtc.so.13"'
TOO_NEW = "[222] Call to cuLinkAddData results in CUDA_ERROR_UNSUPPORTED_PTX_VERSION"
FULL = "[2] Call to cuDevicePrimaryCtxRetain results in CUDA_ERROR_OUT_OF_MEMORY"
H100 = "NVIDIA H100 80GB HBM3"
D13, D12 = Driver((13, 0), (H100, "NVIDIA T4")), Driver((12, 4), (H100,))
FIX13, FIX12 = "pip install 'graphprep[cuda13]' 'cuda-toolkit<13.1'", "pip install 'graphprep[cuda12]'"
CPU = "or use --device cpu"


class Gpu:
    """Is what Numba has in ``cuda.gpus``: a context that yields nothing."""

    compute_capability = (9, 0)

    def __enter__(self):
        return None

    def __exit__(self, *_):
        return None


@pytest.fixture
def machine(monkeypatch):
    """Return a function that says what is installed, and how running a kernel fails."""

    def put(found, fails="", *, extra=True, imports=True):
        def run_one(cuda):
            if fails:
                raise RuntimeError(fails)

        monkeypatch.setattr(frontend, "cuda", SimpleNamespace(gpus=[Gpu()] * 8))
        monkeypatch.setattr(frontend, "IS_SIMULATED", False)
        monkeypatch.setattr(probe, "_FOUND", {})
        monkeypatch.setattr(probe, "read_driver", lambda: found)
        monkeypatch.setattr(probe, "find_spec", lambda name: object() if extra else None)
        monkeypatch.setattr(probe, "_run_one", run_one)
        if not imports:
            monkeypatch.setitem(sys.modules, "graphprep.kernels.cuda.frontend", None)
            monkeypatch.delattr("graphprep.kernels.cuda.frontend")

    return put


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    made = tmp_path_factory.mktemp("missing") / "store"
    graphprep.convert(SAMPLE_DATA / "karate" / "karate.csv", made)
    return made


def said(capsys, store, tmp_path, device):
    """Return the reason and the remedy that a command prints, which ends with 2 and writes nothing."""
    assert run(["reorder", str(store), str(tmp_path / "out"), "--by", "degree", "--device", device]) == 2
    assert not (tmp_path / "out").exists()
    return re.fullmatch(rf"error: --device {device}: (.*)\n  fix: (.*)\n", capsys.readouterr().err).groups()


@pytest.mark.parametrize(
    ("found", "fails", "options", "device", "reason", "fix"),
    [
        (None, NVVM, {"extra": False}, "cuda:7", "no NVIDIA driver is installed here", f"install it, {CPU}"),
        (
            Driver((13, 0), fault="CUDA_ERROR_NO_DEVICE"),
            NVVM,
            {"extra": False},
            "cuda",
            "the driver sees no device",
            f"check nvidia-smi and CUDA_VISIBLE_DEVICES, {CPU}",
        ),
        (Driver((13, 0)), "", {}, "cuda", "the driver sees no device", f"check nvidia-smi and CUDA_VISIBLE_DEVICES, {CPU}"),
        (
            Driver((13, 0), fault="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"),
            "",
            {},
            "cuda",
            "the NVIDIA driver does not start (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)",
            f"see what nvidia-smi says, restart after an update of the driver, {CPU}",
        ),
        (D13, NVVM, {"extra": False}, "cuda:2", "there is no device 2", f"use one of cuda:0 {H100}, cuda:1 NVIDIA T4"),
        (
            Driver((11, 8), (H100,)),
            NVVM,
            {"extra": False},
            "cuda",
            "the NVIDIA driver runs CUDA up to 11.8, and 12.0 is needed",
            f"install driver 525 or a newer one, {CPU}",
        ),
        (D13, NVVM, {"extra": False}, "cuda:1", f"the extra for CUDA is not installed ({NVVM_SHORT})", FIX13),
        (D12, NVVM, {"extra": False}, "cuda", f"the extra for CUDA is not installed ({NVVM_SHORT})", FIX12),
        (
            Driver((14, 1), (H100,)),
            NVVM,
            {"extra": False},
            "cuda",
            f"the extra for CUDA is not installed ({NVVM_SHORT})",
            "pip install 'graphprep[cuda13]'",
        ),
        (D13, NVRTC, {}, "cuda", f"a library of the CUDA toolkit is missing ({NVRTC})", FIX13),
        (D12, "libcudart.so.12 is not there", {}, "cuda", "a library of the CUDA toolkit is missing (libcudart.so.12 is not there)", FIX12),
        (D12, TOO_NEW, {}, "cuda", f"the CUDA toolkit is newer than the driver, which runs CUDA up to 12.4 ({TOO_NEW})", FIX12),
        (D13, TOO_NEW, {}, "cuda", f"the CUDA toolkit is newer than the driver, which runs CUDA up to 13.0 ({TOO_NEW})", FIX13),
        (
            D13,
            "nvJitLink: ptxas fatal: Unsupported .version 9.4; current version is '9.0'",
            {},
            "cuda",
            "the CUDA toolkit is newer than the driver, which runs CUDA up to 13.0 "
            "(nvJitLink: ptxas fatal: Unsupported .version 9.4; current version is '9.0')",
            FIX13,
        ),
        (D13, "[999] CUDA_ERROR_UNKNOWN", {}, "cuda", "[999] CUDA_ERROR_UNKNOWN", "use --device cpu"),
    ],
)  # fmt: skip
def test_the_most_useful_reason_is_told(found, fails, options, device, reason, fix, machine, store, tmp_path, capsys):
    machine(found, fails, **options)
    assert said(capsys, store, tmp_path, device) == (reason, fix)


def test_a_device_that_lacks_nothing_is_found(machine):
    machine(D13)
    assert probe.find_device(1) == probe.Device(1, "NVIDIA T4", (9, 0))


def test_numba_cuda_that_cannot_be_imported(machine, store, tmp_path, capsys):
    machine(D12, imports=False)
    reason, fix = said(capsys, store, tmp_path, "cuda")
    assert reason.startswith("a library of the CUDA toolkit is missing (import of graphprep")
    assert fix == FIX12


@pytest.mark.parametrize(
    ("free", "words"), [((12 << 20, 80 << 30), "12.0 MiB of 81,920.0 MiB are free"), (None, "how much is free is not known")]
)
def test_memory_that_is_taken_is_told_in_numbers(free, words, machine, store, tmp_path, capsys, monkeypatch):
    machine(D13, FULL)
    monkeypatch.setattr(probe, "read_memory", lambda index: free)
    reason, fix = said(capsys, store, tmp_path, "cuda:1")
    assert reason == f"no memory is left on the device: CUDA needs room for itself and 3.0 MiB, {words}"
    assert fix == f"end what else uses it, {CPU}"


# ---- the driver's own words


class FakeLibrary:
    """A driver and NVIDIA's management library, as ctypes calls them."""

    def __init__(self, code=0):
        self.code = code

    def cuDriverGetVersion(self, version):
        version._obj.value = 12080
        return 0

    def cuInit(self, flags):
        return self.code

    def cuGetErrorName(self, code, name):
        if code != 804:
            return 1
        name._obj.value = b"CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"
        return 0

    def cuDeviceGetCount(self, count):
        count._obj.value = 2
        return 0

    def cuDeviceGet(self, device, index):
        device._obj.value = 10 + index
        return 0

    def cuDeviceGetName(self, text, size, device):
        text.value = f"GPU number {device.value - 10}".encode()
        return 0

    def cuDeviceGetPCIBusId(self, place, size, device):
        place.value = f"0000:{device.value - 10}".encode()
        return 0

    def nvmlInit_v2(self):
        return self.code

    def nvmlDeviceGetHandleByPciBusId_v2(self, place, handle):
        handle._obj.value = int(place.value.decode()[-1])
        return 0

    def nvmlDeviceGetMemoryInfo(self, handle, memory):
        memory._obj.total, memory._obj.free, memory._obj.used = 900, 100 + handle.value, 700
        return 0


def no_library(name):
    raise OSError(name)


def test_what_a_driver_says(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: FakeLibrary())
    assert driver.read_driver() == Driver((12, 8), ("GPU number 0", "GPU number 1"))
    assert driver.read_memory(1) == (101, 900)
    monkeypatch.setattr(ctypes, "CDLL", lambda name: FakeLibrary(804))
    assert driver.read_driver() == Driver((12, 8), fault="CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE")
    assert driver.read_memory(1) is None
    monkeypatch.setattr(ctypes, "CDLL", lambda name: FakeLibrary(5))
    assert driver.read_driver() == Driver((12, 8), fault="5")
    monkeypatch.setattr(ctypes, "CDLL", no_library)
    assert driver.read_driver() is None
    assert driver.read_memory(0) is None


def test_numba_is_told_where_the_driver_lies_and_so_are_we(monkeypatch):
    asked = []
    monkeypatch.setattr(ctypes, "CDLL", lambda name: asked.append(name) or FakeLibrary())
    driver.read_driver()
    monkeypatch.setenv("NUMBA_CUDA_DRIVER", "/opt/cuda/libcuda.so")
    driver.read_driver()
    assert asked == [driver._DRIVER, "/opt/cuda/libcuda.so"]
