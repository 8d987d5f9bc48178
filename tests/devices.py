"""The devices that tests compute on: the CPU, a GPU where there is one, and CUDA's simulator in a process of its own.

``kernels/simulated.py`` makes such a process; in it, what is asked of ``cuda`` is simulated. With GRAPHPREP_REQUIRE_GPU=1 a GPU
that is missing is a failure.
"""

from __future__ import annotations

import functools
import os
import sys

import pytest


def is_simulated() -> bool:
    """Return whether this process simulates CUDA."""
    return "numba.cuda.simulator_init" in sys.modules


def check_device(name: str, suite: str, record_property) -> None:
    """Note which device a test of a suite is for, for the closing lines; a GPU must be there, or the test is skipped."""
    record_property(suite, "simulated" if name == "cuda" and is_simulated() else name)
    if name == "cuda" and not is_simulated():
        from graphprep.kernels.cuda.probe import NoDevice, find_device

        found = find_device()
        if isinstance(found, NoDevice):
            (pytest.fail if os.environ.get("GRAPHPREP_REQUIRE_GPU") == "1" else pytest.skip)(f"no CUDA device: {found.reason}")


def count_rooms(monkeypatch) -> list[object]:
    """Let the simulator count as a GPU. Returns a list that grows whenever something is computed on a GPU."""
    from graphprep.edges.device import cuda
    from graphprep.kernels.cuda import probe, slots

    rooms, room_of = [], slots.Slots.room

    def counted(self):
        rooms.append(self)
        return room_of(self)

    monkeypatch.setattr(slots.Slots, "room", counted)
    monkeypatch.setattr(cuda, "find_device", functools.partial(probe.find_device, simulated=True))
    return rooms
