"""Keep glibc's heap close to what is in use, so that a memory limit means something."""

from __future__ import annotations

import ctypes
import functools
import os
import sys

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
