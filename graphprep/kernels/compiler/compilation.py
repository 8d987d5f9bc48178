"""Whether kernels are being compiled, for whoever waits: it happens in the first run alone, and takes seconds a kernel."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(eq=False)
class Compilations:
    """What this process has compiled: kernels, and the seconds that they took."""

    num_kernels: int = 0
    elapsed_s: float = 0.0


done = Compilations()
_listener: Callable[[], None] | None = None


def announce(listener: Callable[[], None] | None) -> None:
    """Call a function when the next kernel is compiled, once, from the thread that needs it; None: no longer."""
    global _listener
    _listener = listener


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Count what the block compiles."""
    listener, begin = _listener, time.perf_counter()
    announce(None)
    if listener is not None:
        listener()
    try:
        yield
    finally:
        done.num_kernels += 1
        done.elapsed_s += time.perf_counter() - begin
