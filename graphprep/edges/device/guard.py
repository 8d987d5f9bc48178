"""Kernels of a device that may fail in mid-run, and what computes instead."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from graphprep.edges.device.found import KERNEL_NAMES, OpenDevice
from graphprep.kernels.edges import Kernels
from graphprep.model.errors import DeviceError


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

    return cast(Kernels, SimpleNamespace(**{name: guard(name) for name in KERNEL_NAMES}))
