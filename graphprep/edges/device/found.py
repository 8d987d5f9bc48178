"""A GPU that can be used, and what is opened on it: what ``find`` and ``guard`` know of CUDA."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from graphprep.engine.ledger import Need
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DeviceError

KERNEL_NAMES = tuple(name for name in vars(Kernels) if not name.startswith("_"))


@dataclass(frozen=True, eq=False)
class OpenDevice:
    """The kernels of a device, what they hold of its memory, and what of the process's.

    ``failure_of`` says of an error that a kernel raised how the device failed, None: that it did not. ``told`` says what was
    computed there since it was last asked, and what was not, "" for nothing.
    """

    kernels: Kernels
    failure_of: Callable[[Exception], DeviceError | None]
    device_need: Need
    pinned_need: Need
    told: Callable[[], str] = str


class FoundDevice(Protocol):
    """A device that can be used."""

    @property
    def name(self) -> str:
        """Return what tells it apart for people: its number and its kind."""

    @property
    def free_bytes(self) -> int:
        """Return how much of its memory nobody holds. Raises UsageError where it does not answer any more."""

    def open(self, device_bytes: int, pinned_bytes: int, cpu: Kernels) -> OpenDevice:
        """Return its kernels, within so much of its memory and of the process's; what is no work for it, ``cpu`` does.

        Raises UsageError where that does not suffice.
        """
