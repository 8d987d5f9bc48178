"""Finds a CUDA device, or says why there is none and what to do. Importing this module imports nothing of CUDA."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np

from graphprep.kernels.cuda.driver import Driver, read_driver, read_memory

LEAST_BYTES = 3 << 20  # of a device's memory, for the slots
_OLDEST, _OLDEST_DRIVER = (12, 0), 525
_TWELVE = "pip install 'graphprep[cuda12]'"
_PROBING = threading.Lock()
_FOUND: dict[int, Device | NoDevice] = {}


@dataclass(frozen=True)
class Device:
    """A device that runs kernels. ``capability`` is (major, minor)."""

    index: int
    name: str
    capability: tuple[int, int]
    is_simulated: bool = False

    def memory(self) -> tuple[int, int]:
        """Return the bytes that are free now, and all there are."""
        from graphprep.kernels.cuda.frontend import cuda

        with cuda.gpus[self.index]:
            return memory_of(cuda)


@dataclass(frozen=True)
class NoDevice:
    """Why there is no device, and what to do about it."""

    reason: str
    fix: str


def find_device(index: int = 0, *, simulated: bool = False) -> Device | NoDevice:
    """Return device number ``index`` once a kernel ran on it, or else the reason; a process asks once.

    The simulator is a device only where it is asked for, by tests.
    """
    with _PROBING:
        if index not in _FOUND:
            _FOUND[index] = _probe(index)
        found = _FOUND[index]
    if isinstance(found, Device) and found.is_simulated and not simulated:
        return NoDevice("NUMBA_ENABLE_CUDASIM is set: kernels would be simulated, not run", "unset NUMBA_ENABLE_CUDASIM")
    return found


def _probe(index: int) -> Device | NoDevice:
    """Look at one thing after the other that must be there; the first that is not is told.

    The driver, a device, this device, a CUDA that the driver runs, then all that compiling and running a kernel takes.
    """
    try:
        from graphprep.kernels.cuda import frontend
    except Exception as error:  # told where nothing else is missing
        failure: Exception | None = error
    else:
        failure = None
        if frontend.IS_SIMULATED:
            return Device(0, "simulator", (5, 2), is_simulated=True) if index == 0 else _no_such(index, ("simulator",))
    driver = read_driver()
    if driver is None:
        return NO_DRIVER
    missing = _missing_from(driver, index)
    if missing is not None:
        return missing
    try:
        if failure is not None:
            raise failure
        device = frontend.cuda.gpus[index]
        with device:
            _run_one(frontend.cuda)
        return Device(index, driver.devices[index], tuple(device.compute_capability))
    except Exception as error:
        return explain(error, driver, index)


NO_DRIVER = NoDevice("no NVIDIA driver is installed here", "install it, or use --device cpu")
_NO_GPU = NoDevice("the driver sees no device", "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu")


def _missing_from(driver: Driver, index: int) -> NoDevice | None:
    if "NO_DEVICE" in driver.fault or (not driver.fault and not driver.devices):
        return _NO_GPU
    if driver.fault:
        fix = "see what nvidia-smi says, restart after an update of the driver, or use --device cpu"
        return NoDevice(f"the NVIDIA driver does not start ({driver.fault})", fix)
    if not 0 <= index < len(driver.devices):
        return _no_such(index, driver.devices)
    if driver.version < _OLDEST:
        needed = ".".join(map(str, _OLDEST))
        fix = f"install driver {_OLDEST_DRIVER} or a newer one, or use --device cpu"
        return NoDevice(f"the NVIDIA driver runs CUDA up to {driver.runs}, and {needed} is needed", fix)
    return None


def _no_such(index: int, names: tuple[str, ...]) -> NoDevice:
    there = ", ".join(f"cuda:{one} {name}" for one, name in enumerate(names))
    return NoDevice(f"there is no device {index}", f"use one of {there}")


def _run_one(cuda: Any) -> None:
    """Compile a kernel, run it, and see what it did: nothing less tells whether driver and toolkit go together."""
    from graphprep.kernels.cuda.frontend import launch
    from graphprep.kernels.cuda.rows import count_up

    stream, there = cuda.stream(), cuda.device_array(3, np.uint32)
    launch(count_up, 1, stream, there)
    stream.synchronize()
    found = there.copy_to_host().tolist()
    if found != [0, 1, 2]:
        raise RuntimeError(f"a kernel that counts to three counted {found}")


def explain(error: Exception, driver: Driver | None = None, index: int = 0) -> NoDevice:
    """Say what an error of Numba, its libraries or the driver means. Several lines of it become one.

    ``driver``: the one that is there, where nothing ran on the device yet.
    """
    text = " ".join(str(error).split()) or type(error).__name__
    known = text.lower()
    if is_out_of_memory(error):
        needed = "" if driver is None else f"CUDA needs room for itself and {_mib(LEAST_BYTES)}, "
        reason = f"no memory is left on the device: {needed}{free_words(index)}"
        return NoDevice(reason, "end what else uses it, or use --device cpu")
    if "driver library cannot be found" in known or "libcuda.so" in known:
        return NO_DRIVER
    if "no_device" in known or "no cuda-capable device" in known:
        return _NO_GPU
    if any(one in known for one in _TOO_NEW):
        runs = "" if driver is None else f", which runs CUDA up to {driver.runs}"
        return NoDevice(f"the CUDA toolkit is newer than the driver{runs} ({text[:120]})", _install(driver))
    if isinstance(error, ImportError) or any(name in known for name in _LIBRARIES):
        has_extra = find_spec("numba_cuda") is not None
        what = "a library of the CUDA toolkit is missing" if has_extra else "the extra for CUDA is not installed"
        return NoDevice(f"{what} ({text[:120]})", _install(driver))
    return NoDevice(text[:200], "use --device cpu")


_TOO_NEW = ("unsupported_ptx", "unsupported toolchain", "unsupported .version", "insufficient_driver", "insufficient for")
_LIBRARIES = ("nvvm", "nvrtc", "nvjitlink", "libdevice", "cudart", "dynamiclibnotfound")


def _install(driver: Driver | None) -> str:
    """Return what installs the parts of a toolkit that a driver takes."""
    if driver is None:
        return f"pip install 'graphprep[cuda13]' for driver 580 or newer, else {_TWELVE}"
    major, minor = driver.version
    if major < 13:
        return _TWELVE
    return "pip install 'graphprep[cuda13]'" + (f" 'cuda-toolkit<13.{minor + 1}'" if major == 13 else "")


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / (1 << 20):,.1f} MiB"


def memory_of(cuda: Any) -> tuple[int, int]:
    """Return how many bytes of the current device are free, and all there are."""
    free, total = cuda.current_context().get_memory_info()
    return int(free), int(total)


def free_words(index: int = 0) -> str:
    """Say how much of a device's memory is free, as far as anybody knows."""
    try:
        from graphprep.kernels.cuda.frontend import cuda

        found: tuple[int, int] | None = memory_of(cuda)
    except Exception:  # there is no room for a context, or none any more
        found = read_memory(index)
    return "how much is free is not known" if found is None else f"{_mib(found[0])} of {_mib(found[1])} are free"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that the device's memory is full."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out_of_memory" in text or "out of memory" in text
