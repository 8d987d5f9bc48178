"""Numba's CUDA simulator, mended where its threads get in each other's way: what ``frontend`` calls ``cuda`` where it is on.

Threads of a block take turns: each runs up to its next barrier, in every other block from the last thread to the first. Where a
barrier is missing, one of the two orders shows it; nothing shows that an atomic operation is missing.
"""

from __future__ import annotations

import itertools
import sys
import threading
from collections import deque
from typing import Any

import numba.cuda
import numpy as np
from numba.cuda.simulator.kernel import BlockManager, BlockThread, _get_kernel_context
from numba.np.numpy_support import as_dtype


class SimulatedModule:
    """Is ``numba.cuda``, and for the threads of a kernel what the simulator puts in its place.

    The simulator itself exchanges the name in the module of a device function while one thread calls it, for all of them.
    """

    def __getattr__(self, name: str) -> Any:
        return getattr(_get_kernel_context() if isinstance(threading.current_thread(), BlockThread) else numba.cuda, name)

    @property
    def shared(self) -> SimulatedModule:
        """Return what has ``array``."""
        return self

    def array(self, shape: int, dtype: Any) -> Any:
        """Return the block's array of the line that asks for one. Numba's own looks through the whole stack."""
        frame, arrays = sys._getframe(1), _get_kernel_context().shared._allocations
        place = frame.f_code.co_filename, frame.f_lineno
        if place not in arrays:
            arrays[place] = np.empty(shape, dtype if isinstance(dtype, np.dtype) else as_dtype(dtype))
        return arrays[place]


class TurnThread(BlockThread):
    """A thread of a block, which runs while it is the first of ``line``."""

    def __init__(self, block: BlockManager, grid_point: Any, point: Any, work: Any, line: deque[TurnThread]) -> None:
        super().__init__(work, block, grid_point, point, False)
        self._line = line
        self.turn = threading.Lock()
        self.turn.acquire()

    def run(self) -> None:
        """Run to the end, when it is this thread's turn."""
        self.turn.acquire()
        if not self.abort:
            super().run()
        self._line.popleft()
        if self.exception:
            for other in self._line:
                other.abort = True
        if self._line:
            self._line[0].turn.release()

    def syncthreads(self) -> None:
        """Let all others come up to here."""
        self._line.rotate(-1)
        if self._line[0] is not self:
            self._line[0].turn.release()
            self.turn.acquire()
        if self.abort:
            raise RuntimeError("another thread has failed")


_backwards = itertools.cycle((False, True))


def run_in_turns(block: BlockManager, grid_point: Any, *args: Any) -> None:
    """Run a block: ``BlockManager.run``. Raises what its first thread that fails raises."""
    points = list(np.ndindex(*block._block_dim))
    line: deque[TurnThread] = deque()
    for point in reversed(points) if next(_backwards) else points:
        line.append(TurnThread(block, grid_point, point, lambda: block._f(*args), line))
    threads = list(line)
    for thread in threads:
        thread.start()
    threads[0].turn.release()
    for thread in threads:
        thread.join()
    for thread in threads:
        if thread.exception and not thread.abort:
            raise thread.exception[0].with_traceback(thread.exception[1])


BlockManager.run = run_in_turns
