"""The heap, kept close to what is in use so that a memory limit means something; large scratch arrays are used again."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import mmap
import os
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from graphprep.engine.budget import used_bytes

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_SMALL_LIMIT_BYTES = 2 << 30
_KEPT_SHARE = 16  # of a small limit: 16 MiB of 256
_HEAP_SHARE = 64  # larger arrays have pages of their own, which go when they go
_KEPT_BYTES = 256 << 20
_MOST_IN_HEAP = 32 << 20  # as much as glibc allows
_SPARE_SHARE = 4  # of a generous limit: who holds less keeps what is free of it

_kept_below = 0

# Large scratch arrays are used again: the first touch of fresh memory takes longer than what is then done with it.
_LEAST_SCRATCH = 16 << 20
_MOST_SCRATCH = 1 << 30

_lock = threading.Lock()
_kept: list[mmap.mmap] = []  # one at most


def bound_heap(limit_bytes: int) -> None:
    """Keep some free memory for the next array; where the limit is small, little, and let all threads share one arena.

    What the system gives must be cleared, a page at a time, which was a fifth of all work. But every thread's own arena keeps
    what was freed in it: with a limit of 256 MiB that was 60 MiB of nothing. One arena costs lock traffic, which generous
    limits spare. Does nothing where the C library is another one. Arrow's own pool keeps 60 MiB of what was freed, too.
    """
    global _kept_below
    _kept_below = limit_bytes // _SPARE_SHARE if limit_bytes >= _SMALL_LIMIT_BYTES else 0
    if limit_bytes < _SMALL_LIMIT_BYTES:
        _let_arrow_share()
    if not hasattr(_libc(), "mallopt"):
        return
    if limit_bytes < _SMALL_LIMIT_BYTES:
        _libc().mallopt(_M_ARENA_MAX, 1)
        _libc().mallopt(_M_TRIM_THRESHOLD, limit_bytes // _KEPT_SHARE)
        _libc().mallopt(_M_MMAP_THRESHOLD, min(_MOST_IN_HEAP, limit_bytes // _HEAP_SHARE))
    else:
        _libc().mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        _libc().mallopt(_M_MMAP_THRESHOLD, _MOST_IN_HEAP)


def kept_bytes(limit_bytes: int) -> int:
    """Return how much free memory stays with the process at most."""
    return limit_bytes // (_KEPT_SHARE if limit_bytes < _SMALL_LIMIT_BYTES else _SPARE_SHARE)


def end_stage() -> None:
    """Give free memory back to the system, unless the limit is far: then the next stage has a use for it."""
    if not _kept_below or used_bytes() >= _kept_below:
        trim_heap()


def trim_heap() -> None:
    """Give free memory back to the system; it takes milliseconds."""
    if hasattr(_libc(), "malloc_trim"):
        _libc().malloc_trim(0)


def _let_arrow_share() -> None:
    """Let Arrow take its memory from the heap, where it is imported and where it will be."""
    arrow = sys.modules.get("pyarrow")
    if arrow is None:
        os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    else:
        arrow.set_memory_pool(arrow.system_memory_pool())


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


@contextlib.contextmanager
def scratch_array(count: int, dtype: DTypeLike) -> Iterator[NDArray[Any]]:
    """Lend an array that holds anything. Nobody may keep it.

    The memory of the last one, up to 1 GiB, stays with the process for the next, but the system may take it back at any time
    (``MADV_FREE``). Small ones, and all where the system knows no such thing, come and go.
    """
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    if size < _LEAST_SCRATCH or not hasattr(mmap, "MADV_FREE"):
        yield np.empty(count, kind)
        return
    block = _take(size)
    yield np.frombuffer(block, kind, count)
    _keep(block)  # not behind a failure: a thread may still write


def release_scratch() -> None:
    """Give back what is kept for the next array."""
    with _lock:
        _kept.clear()


def _take(size: int) -> mmap.mmap:
    """Return what is kept, if it is large enough, else fresh memory in huge pages."""
    with _lock:
        if _kept and len(_kept[0]) >= size:
            return _kept.pop()
        _kept.clear()
    try:
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise MemoryError(str(error)) from error
    with contextlib.suppress(OSError, AttributeError):
        block.madvise(mmap.MADV_HUGEPAGE)
    return block


def _keep(block: mmap.mmap) -> None:
    """Keep a block that the system may empty."""
    if len(block) > _MOST_SCRATCH:
        return
    with contextlib.suppress(OSError), _lock:
        block.madvise(mmap.MADV_FREE)
        _kept[:] = [max([*_kept, block], key=len)]
