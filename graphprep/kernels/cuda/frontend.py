"""Numba's CUDA dialect, imported here and nowhere else: numba-cuda where it is installed, else what Numba itself ships.

Importing this module imports ``numba.cuda``. Rules for device kernels, which the simulator does not check: every global index
is int64; keys are unsigned; a shared array stands on a line of its own, of a size that is a global; nobody returns before a
barrier; a result never depends on the order in which atomics or blocks run; ``min`` and ``max`` do not compile everywhere.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba.cuda
import numpy as np
from numba import config
from xxhash import xxh3_128_hexdigest

from graphprep.kernels.compiler.kept import is_private_folder

IS_SIMULATED = bool(config.ENABLE_CUDASIM)


if IS_SIMULATED:
    from graphprep.kernels.cuda.simulation import SimulatedModule

    cuda: Any = SimulatedModule()
else:
    cuda = numba.cuda

# The simulator starts a thread of the operating system for each of a block's: few, and their number is neither HALF nor RADIX.
# ITEMS is odd: threads that read their items one after another meet no bank of shared memory twice. A digit is sorted in two
# halves, so that a counter for every thread and value fits shared memory. Numba lets an index of int64 count from the end where
# it is negative; U saves that.
THREADS, ITEMS, MOST_BLOCKS, LONG_GAP, HALF_BITS = (16, 3, 3, 4, 3) if IS_SIMULATED else (256, 7, 2048, 1024, 4)
TILE, TWICE_THREADS = THREADS * ITEMS, 2 * THREADS
DIGIT_BITS = 2 * HALF_BITS
HALF, RADIX = 1 << HALF_BITS, 1 << DIGIT_BITS
U = np.uint64
MOST_REGISTERS = 80  # of a thread: three blocks of 256 are at work at a time; only moving by digits wants more

_LAUNCHING = threading.Lock()  # the simulator runs one kernel at a time; else Numba's settings are changed for a moment


def device_kernel(function: Callable[..., None]) -> Any:
    """Make a kernel of a function that threads of a device run; its code is kept with Numba's."""
    if IS_SIMULATED:
        return cuda.jit(function)
    kernel = cuda.jit(max_registers=MOST_REGISTERS)(function)
    with contextlib.suppress(RuntimeError, OSError):  # no folder takes it
        _keep(kernel)
    return kernel


def device_function(function: Callable[..., Any]) -> Any:
    """Make a function that kernels call; every thread of a block calls it where it has a barrier."""
    return cuda.jit(function, device=True)


def launch(kernel: Any, blocks: int, stream: Any, *args: Any) -> None:
    """Run a kernel on ``blocks`` blocks, after what was asked of the stream before."""
    if IS_SIMULATED:
        with _LAUNCHING:
            kernel[blocks, THREADS, stream](*args)
    else:
        _configured(kernel, blocks, stream)(*args)


def _configured(kernel: Any, blocks: int, stream: Any) -> Any:
    """Return what runs a kernel on so many blocks; where these are few, Numba's warning would reach the user."""
    with _LAUNCHING:
        before, config.CUDA_LOW_OCCUPANCY_WARNINGS = config.CUDA_LOW_OCCUPANCY_WARNINGS, 0
        try:
            return kernel[blocks, THREADS, stream]
        finally:
            config.CUDA_LOW_OCCUPANCY_WARNINGS = before


def blocks_for(size: int) -> int:
    """Return how many blocks share so many items: a tile each, as long as there are few."""
    return max(1, min(MOST_BLOCKS, -(-size // TILE)))


def _keep(kernel: Any) -> None:
    """Let Numba keep a kernel's code, until any source of this folder changes: Numba by itself looks at the kernel's alone."""
    without = kernel._cache
    kernel.enable_caching()
    cache = kernel._cache
    if Path(cache._cache_path).exists() and not is_private_folder(Path(cache._cache_path)):
        kernel._cache = without
        raise OSError(f"others may write to {cache._cache_path}")
    files, where = cache._cache_file, cache._impl.filename_base
    cache._cache_file = type(files)(cache_path=cache._cache_path, filename_base=where, source_stamp=_digest())


@functools.cache
def _digest() -> str:
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return xxh3_128_hexdigest(b"\0".join(source.read_bytes() for source in sources))
