"""Numba's CUDA simulator, mended where its threads get in each other's way: what ``frontend`` calls ``cuda`` where it is on."""

from __future__ import annotations

import sys
import threading
from typing import Any

import numba.cuda
import numpy as np
from numba.cuda.simulator.kernel import BlockThread, _get_kernel_context
from numba.np.numpy_support import as_dtype


class SimulatedModule:
    """Is ``numba.cuda``, and for the threads of a kernel what the simulator puts in its place.

    The simulator itself exchanges the name in the module of a device function while one thread calls it, for all of them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def __getattr__(self, name: str) -> Any:
        return getattr(_get_kernel_context() if isinstance(threading.current_thread(), BlockThread) else numba.cuda, name)

    @property
    def shared(self) -> SimulatedModule:
        """Return what has ``array``."""
        return self

    def array(self, shape: int, dtype: Any) -> Any:
        """Return the block's array of the line that asks for one. Numba's own makes several where threads ask at once."""
        frame, arrays = sys._getframe(1), _get_kernel_context().shared._allocations
        place = frame.f_code.co_filename, frame.f_lineno
        with self._lock:
            if place not in arrays:
                arrays[place] = np.empty(shape, dtype if isinstance(dtype, np.dtype) else as_dtype(dtype))
            return arrays[place]
