"""A CUDA device as a device of the edge engine: found or refused in the user's words, opened within limits, failing as such."""

from __future__ import annotations

from dataclasses import dataclass

from graphprep.edges.device.guard import OpenDevice
from graphprep.engine.budget import format_size
from graphprep.engine.ledger import Need
from graphprep.kernels.cuda.probe import LEAST_BYTES, Device, NoDevice, explain, find_device
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DeviceError, UsageError

_SLOTS = 3  # one copies to the device, one computes, one copies back
_SIMULATED_BYTES = 1 << 30  # the simulator says infinity
_MODULES = ("numba.cuda.", "numba_cuda.", "cuda.", "graphprep.kernels.cuda.cccl.")  # whose errors are the device's


def find_cuda(index: int, place: str) -> CudaDevice:
    """Return a CUDA device by its number; ``place`` says who asks.

    Raises UsageError, with the reason and what to do, where there is none that can be used.
    """
    found = find_device(index)
    if isinstance(found, NoDevice):
        raise UsageError(found.reason, place=place, fix=found.fix)
    return CudaDevice(found, place)


@dataclass(frozen=True)
class CudaDevice:
    """A CUDA device that can be used: a ``FoundDevice``."""

    device: Device
    place: str

    @property
    def name(self) -> str:
        """See ``FoundDevice``."""
        return f"cuda:{self.device.index} {self.device.name}"

    @property
    def free_bytes(self) -> int:
        """See ``FoundDevice``."""
        if self.device.is_simulated:
            return _SIMULATED_BYTES
        try:
            return self.device.memory()[0]
        except Exception as error:
            if failure_of(error) is None:
                raise
            why = explain(error, index=self.device.index)
            raise UsageError(why.reason, place=self.place, fix=why.fix) from error

    def open(self, device_bytes: int, pinned_bytes: int, cpu: Kernels) -> OpenDevice:
        """See ``FoundDevice``."""
        if min(device_bytes, pinned_bytes) < LEAST_BYTES:
            need, free, *left = map(format_size, (LEAST_BYTES, self.free_bytes, device_bytes, pinned_bytes))
            raise UsageError(
                f"{need} of device memory are needed, {free} are free, and limits leave {left[0]}; as much of the process's "
                f"memory, and they leave {left[1]}",
                place=self.place,
                fix="raise --device-memory-limit or --memory-limit, end what else uses the device, or use --device cpu",
            )
        from graphprep.kernels.cuda.cccl import find_fast
        from graphprep.kernels.cuda.kernels import make_kernels
        from graphprep.kernels.cuda.slots import Slots

        slots = Slots(self.device.index, _SLOTS, device_bytes, pinned_bytes, find_fast(self.device))
        return OpenDevice(
            make_kernels(slots, cpu),
            failure_of,
            Need("device", device_bytes, f"{_SLOTS} slots of {format_size(device_bytes // _SLOTS)}: what is computed"),
            Need("pinned", pinned_bytes, f"{_SLOTS} slots of {format_size(pinned_bytes // _SLOTS)}: what is copied"),
            slots.tally.tell,
            self.device.index,
        )


def failure_of(error: Exception) -> DeviceError | None:
    """Return what a failure of the device is in words; None for another error."""
    if isinstance(error, MemoryError) or not any(f"{kind.__module__}.".startswith(_MODULES) for kind in type(error).__mro__):
        return None
    return DeviceError(explain(error).reason)
