"""What NVIDIA's driver says by itself, without Numba: which CUDA it runs, its devices, how much of their memory is free."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Any

_DRIVER = "nvcuda.dll" if os.name == "nt" else "libcuda.so.1"
_MANAGEMENT = "nvml.dll" if os.name == "nt" else "libnvidia-ml.so.1"
_NAME_BYTES = 256
_DEVICE_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


@dataclass(frozen=True)
class Driver:
    """A driver: the newest CUDA that it runs, the names of its devices, and the name of the error where it does not start."""

    version: tuple[int, int]
    devices: tuple[str, ...] = ()
    fault: str = ""

    @property
    def runs(self) -> str:
        """Return the newest CUDA that it runs: ``13.0``."""
        return ".".join(map(str, self.version))


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_uint64), ("free", ctypes.c_uint64), ("used", ctypes.c_uint64))


def read_driver() -> Driver | None:
    """Ask the driver; None: none is installed. NUMBA_CUDA_DRIVER names its file, as for Numba."""
    try:
        library: Any = ctypes.CDLL(os.environ.get("NUMBA_CUDA_DRIVER") or _DRIVER)
    except OSError:
        return None
    number = ctypes.c_int(0)
    library.cuDriverGetVersion(ctypes.byref(number))
    version = number.value // 1000, number.value % 1000 // 10
    if code := library.cuInit(0):
        name = ctypes.c_char_p()
        library.cuGetErrorName(code, ctypes.byref(name))
        return Driver(version, fault=(name.value or str(code).encode()).decode())
    library.cuDeviceGetCount(ctypes.byref(number))
    return Driver(version, tuple(_name_of(library, index) for index in range(number.value)))


def _device(library: Any, index: int) -> ctypes.c_int:
    """Return what the driver calls a device by."""
    device = ctypes.c_int(index)
    library.cuDeviceGet(ctypes.byref(device), index)
    return device


def device_at(address: int) -> int | None:
    """Return the number of the device on which an address lies; None: the driver does not know it."""
    number = ctypes.c_int(-1)
    try:
        driver: Any = ctypes.CDLL(os.environ.get("NUMBA_CUDA_DRIVER") or _DRIVER)
    except OSError:
        return None
    code = driver.cuPointerGetAttribute(ctypes.byref(number), _DEVICE_ORDINAL, ctypes.c_uint64(address))
    return None if code else number.value


def _name_of(library: Any, index: int) -> str:
    text = ctypes.create_string_buffer(_NAME_BYTES)
    library.cuDeviceGetName(text, _NAME_BYTES, _device(library, index))
    return text.value.decode(errors="replace")


def read_memory(index: int) -> tuple[int, int] | None:
    """Return how many bytes of a device are free, and all there are, though CUDA itself finds no room; None: unknown."""
    try:
        driver: Any = ctypes.CDLL(os.environ.get("NUMBA_CUDA_DRIVER") or _DRIVER)
        management: Any = ctypes.CDLL(_MANAGEMENT)
    except OSError:
        return None
    place, handle, memory = ctypes.create_string_buffer(_NAME_BYTES), ctypes.c_void_p(), _Memory()
    codes = (
        driver.cuDeviceGetPCIBusId(place, _NAME_BYTES, _device(driver, index))
        or management.nvmlInit_v2()
        or management.nvmlDeviceGetHandleByPciBusId_v2(place, ctypes.byref(handle))
        or management.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
    )
    return None if codes else (memory.free, memory.total)
