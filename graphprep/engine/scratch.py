"""Large scratch arrays that are used again: the first touch of fresh memory takes longer than what is then done with it."""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

_LEAST_BYTES = 16 << 20
_MOST_BYTES = 1 << 30

_lock = threading.Lock()
_kept: list[mmap.mmap] = []  # one at most


@contextlib.contextmanager
def scratch_array(count: int, dtype: DTypeLike) -> Iterator[NDArray[Any]]:
    """Lend an array that holds anything. Nobody may keep it.

    The memory of the last one, up to 1 GiB, stays with the process for the next, but the system may take it back at any time
    (``MADV_FREE``). Small ones, and all where the system knows no such thing, come and go.
    """
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    if size < _LEAST_BYTES or not hasattr(mmap, "MADV_FREE"):
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
    if len(block) > _MOST_BYTES:
        return
    with contextlib.suppress(OSError), _lock:
        block.madvise(mmap.MADV_FREE)
        _kept[:] = [max([*_kept, block], key=len)]
