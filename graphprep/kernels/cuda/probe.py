"""Finds a CUDA device, or says why there is none and what to do. Importing this module imports nothing of CUDA."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

_INSTALL = "pip install 'graphprep[cuda13]' (or cuda12, for a driver before 580)"
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
    try:
        from graphprep.kernels.cuda.frontend import IS_SIMULATED, cuda
    except ImportError as error:
        return NoDevice(f"numba.cuda cannot be imported: {error}", _INSTALL)
    try:
        count = len(cuda.gpus)
    except Exception as error:
        return explain(error)
    if not 0 <= index < count:
        names = ", ".join(f"cuda:{one} {_name(cuda, one)}" for one in range(count))
        return NoDevice(f"there is no device {index}", f"use one of {names}" if count else "use --device cpu")
    if IS_SIMULATED:
        return Device(0, "simulator", (5, 2), is_simulated=True)
    try:
        with cuda.gpus[index]:
            _run_one(cuda)
        return Device(index, _name(cuda, index), tuple(cuda.gpus[index].compute_capability))
    except Exception as error:
        return explain(error)


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


def _name(cuda: Any, index: int) -> str:
    if not hasattr(cuda.gpus[index], "name"):
        return "simulator"
    name = cuda.gpus[index].name
    return name.decode() if isinstance(name, bytes) else str(name)


def explain(error: Exception) -> NoDevice:
    """Say what an error of Numba, its libraries or the driver means. Several lines of it become one."""
    text = " ".join(str(error).split()) or type(error).__name__
    known = text.lower()
    if is_out_of_memory(error):
        return NoDevice(f"no memory left on the device ({text[:120]})", "wait for what uses it to end, or use --device cpu")
    if "driver library cannot be found" in known or "libcuda.so" in known:
        return NoDevice("no NVIDIA driver is installed here", "install it, or use --device cpu")
    if "no_device" in known or "no cuda-capable device" in known:
        return NoDevice("the driver sees no device", "check nvidia-smi and CUDA_VISIBLE_DEVICES, or use --device cpu")
    if any(one in known for one in ("unsupported_ptx", "unsupported toolchain", "insufficient_driver", "insufficient for")):
        fix = "pip install 'graphprep[cuda13]' 'cuda-toolkit==13.0.*' for driver 580, graphprep[cuda12] for an older one"
        return NoDevice(f"the CUDA toolkit is newer than the driver ({text[:120]})", fix)
    if any(name in known for name in ("nvvm", "nvrtc", "nvjitlink", "libdevice", "cudart")):
        return NoDevice(f"a library of the CUDA toolkit is missing ({text[:120]})", _INSTALL)
    return NoDevice(text[:200], "use --device cpu")


def memory_of(cuda: Any) -> tuple[int, int]:
    """Return how many bytes of the current device are free, and all there are."""
    free, total = cuda.current_context().get_memory_info()
    return int(free), int(total)


def free_words() -> str:
    """Say how much memory the current device has left, if it answers."""
    try:
        from graphprep.kernels.cuda.frontend import cuda

        free, total = memory_of(cuda)
        return f"{free:,} of {total:,} are free"
    except Exception:
        return "the device does not say how many are free"


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether an error says that the device's memory is full."""
    text = str(error).lower()
    return isinstance(error, MemoryError) or "out_of_memory" in text or "out of memory" in text
