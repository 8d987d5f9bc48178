"""Where the edge engine computes: the kernels of a device, found once by whoever begins a run, and handed in."""

from __future__ import annotations

from graphprep.kernels.edges import Kernels


def find_kernels() -> Kernels:
    """Return the kernels of the CPU."""
    from graphprep.kernels.cpu.edges import kernels

    return kernels
