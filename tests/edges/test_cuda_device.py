"""A CUDA device in the user's words: why there is none, what is opened on it, and which errors are failures of it."""

from __future__ import annotations

import pytest
from golden.golden_cases import SAMPLE_DATA

import graphprep
from graphprep.cli.main import run
from graphprep.edges.device import cuda
from graphprep.edges.device.cuda import CudaDevice, failure_of
from graphprep.edges.device.find import find_kernels
from graphprep.kernels.cuda import probe
from graphprep.kernels.cuda.probe import Device, NoDevice
from graphprep.model.errors import UsageError

MIB = 1 << 20
H100 = Device(1, "NVIDIA H100 80GB HBM3", (9, 0))


def error_of(module, text, base=Exception):
    """Return an error as a library raises it."""
    return type("CudaAPIError", (base,), {"__module__": module})(text)


DRIVER = "numba.cuda.cudadrv.driver"
EXTRA = "pip install 'graphprep[cuda13]'"


@pytest.mark.parametrize(
    ("text", "reason", "fix"),
    [
        ("Error at driver init:\nCUDA driver library cannot be found.", "no NVIDIA driver is installed here", "install it"),
        ("[100] Call to cuInit results in CUDA_ERROR_NO_DEVICE", "the driver sees no device", "check nvidia-smi"),
        ("libNVVM cannot be found. Do `conda install`", "the extra for CUDA is not installed (libNVVM cannot be", EXTRA),
        ("[222] CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the CUDA toolkit is newer than the driver ([222]", EXTRA),
        ("[2] CUDA_ERROR_OUT_OF_MEMORY", "no memory is left on the device: how much", "end what else uses it"),
    ],
)
def test_why_there_is_no_device(text, reason, fix, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(cuda, "find_device", lambda index: probe.explain(error_of(DRIVER, text)))
    store = tmp_path / "store"
    graphprep.convert(SAMPLE_DATA / "karate" / "karate.csv", store)
    assert run(["reorder", str(store), str(tmp_path / "out"), "--by", "degree", "--device", "cuda:1"]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"error: --device cuda:1: {reason}")
    assert said[1].startswith(f"  fix: {fix}")
    assert len(said) == 2
    with pytest.raises(UsageError) as caught:
        graphprep.sort_keys([1], device="cuda:1")
    assert caught.value.place == 'device="cuda:1"'
    assert "--" not in caught.value.fix


def test_a_device_that_is_lost_before_it_is_opened(monkeypatch):
    def fail(self):
        raise error_of(DRIVER, "[719] Call to cuMemGetInfo results in CUDA_ERROR_LAUNCH_FAILED")

    monkeypatch.setattr(Device, "memory", fail)
    with pytest.raises(UsageError) as caught:
        _ = CudaDevice(H100, "--device cuda:1").free_bytes
    assert str(caught.value) == (
        "--device cuda:1: [719] Call to cuMemGetInfo results in CUDA_ERROR_LAUNCH_FAILED\n  fix: use --device cpu"
    )


def test_what_is_opened(monkeypatch):
    monkeypatch.setattr(Device, "memory", lambda self: (60 << 30, 80 << 30))
    found = CudaDevice(H100, "--device cuda:1")
    assert (found.name, found.free_bytes) == ("cuda:1 NVIDIA H100 80GB HBM3", 60 << 30)
    opened = found.open(300 * MIB, 90 * MIB, find_kernels())
    assert (opened.device_need.num_bytes, opened.pinned_need.num_bytes) == (300 * MIB, 90 * MIB)
    assert opened.device_need.why == "3 slots of 100.0 MiB: what is computed"
    assert opened.pinned_need.why == "3 slots of 30.0 MiB: what is copied"
    assert opened.kernels._slots._caps == (100 * MIB, 30 * MIB)


@pytest.mark.parametrize(("device_mib", "pinned_mib"), [(2, 100), (100, 2)])
def test_too_little_memory(device_mib, pinned_mib, monkeypatch):
    monkeypatch.setattr(Device, "memory", lambda self: (4 * MIB, 80 << 30))
    with pytest.raises(UsageError) as caught:
        CudaDevice(H100, "--device cuda:1").open(device_mib * MIB, pinned_mib * MIB, find_kernels())
    assert str(caught.value) == (
        f"--device cuda:1: 3.0 MiB of device memory are needed, 4.0 MiB are free, and limits leave {device_mib}.0 MiB; "
        f"as much of the process's memory, and they leave {pinned_mib}.0 MiB\n"
        "  fix: raise --device-memory-limit or --memory-limit, end what else uses the device, or use --device cpu"
    )


@pytest.mark.parametrize("module", [DRIVER, "numba.cuda.cudadrv.nvvm", "cuda.core", "cuda.bindings.driver"])
def test_errors_of_cuda_are_failures(module):
    found = failure_of(error_of(module, "[700] CUDA_ERROR_ILLEGAL_ADDRESS\nmore"))
    assert found is not None
    assert found.message == "[700] CUDA_ERROR_ILLEGAL_ADDRESS more"
    assert failure_of(error_of(module, "cuMemHostAlloc: CUDA_ERROR_OUT_OF_MEMORY")).message.startswith("no memory is left")


@pytest.mark.parametrize("error", [ValueError("x"), MemoryError(), error_of("numba.core.errors", "x"), UsageError("x")])
def test_other_errors_are_none(error):
    assert failure_of(error) is None


def test_a_device_that_is_there_is_named(monkeypatch):
    monkeypatch.setattr(cuda, "find_device", lambda index: H100 if index == 1 else NoDevice("there is no device 0", "x"))
    assert cuda.find_cuda(1, "").name == "cuda:1 NVIDIA H100 80GB HBM3"
