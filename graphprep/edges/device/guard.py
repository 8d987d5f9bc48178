"""A GPU that can be used, what is opened on it, and what computes where it fails in mid-run."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple, Protocol, cast

from graphprep.engine.ledger import Need
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DeviceError


class TooLargeError(DeviceError):
    """Something does not fit on the device at once."""


class OpenDevice(NamedTuple):
    """The kernels of a device, what they hold of its memory, and what of the process's.

    ``failure_of`` says of an error that a kernel raised how the device failed, None: that it did not. ``told`` says what was
    computed there since it was last asked, and what was not, "" for nothing. ``number`` is the CUDA device's; None: arrays are
    not uploaded to it but by its kernels.
    """

    kernels: Kernels
    failure_of: Callable[[Exception], DeviceError | None]
    device_need: Need
    pinned_need: Need
    told: Callable[[], str] = str
    number: int | None = None


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


def guarded(device: OpenDevice, instead: Callable[[DeviceError], Kernels]) -> Kernels:
    """Return kernels that compute on a device until it fails; that call is made again elsewhere, and all later ones are.

    ``instead`` is called with the first failure, once, however many threads are in a call then: it returns what computes from
    then on, or raises. What fails again while it decides is not told.
    """
    lock, found = threading.Lock(), list[Kernels]()

    def guard(name: str) -> Callable[..., Any]:
        on_device = getattr(device.kernels, name)

        def call(*given: Any, **named: Any) -> Any:
            if not found:
                try:
                    return on_device(*given, **named)
                except Exception as error:
                    failure = device.failure_of(error)
                    if failure is None:
                        raise
                    with lock:
                        if not found:
                            found.append(instead(failure))
            return getattr(found[0], name)(*given, **named)

        return call

    return cast(Kernels, SimpleNamespace(**{name: guard(name) for name in vars(Kernels) if not name.startswith("_")}))
