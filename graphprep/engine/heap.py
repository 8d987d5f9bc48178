"""Keep glibc's heap close to what is in use, so that a memory limit means something."""

from __future__ import annotations

import ctypes
import functools

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8
_SMALL_LIMIT_BYTES = 2 << 30
_TRIM_BYTES = 1 << 20
_KEPT_BYTES = 256 << 20
_MOST_IN_HEAP = 32 << 20  # as much as glibc allows


def bound_heap(limit_bytes: int) -> None:
    """Let all threads share one arena and give free memory back early, where the limit is small.

    Every thread's own arena keeps what was freed in it: with a limit of 256 MiB that was 60 MiB of nothing. One arena costs
    lock traffic. With generous limits, free memory is rather kept for the next array: what the system gives must be cleared, a
    page at a time, which was a fifth of all work. Does nothing where the C library is another one.
    """
    if not hasattr(_libc(), "mallopt"):
        return
    if limit_bytes < _SMALL_LIMIT_BYTES:
        _libc().mallopt(_M_ARENA_MAX, 1)
        _libc().mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
    else:
        _libc().mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        _libc().mallopt(_M_MMAP_THRESHOLD, _MOST_IN_HEAP)


def trim_heap() -> None:
    """Give free memory back to the system; between stages, since it takes milliseconds."""
    if hasattr(_libc(), "malloc_trim"):
        _libc().malloc_trim(0)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
