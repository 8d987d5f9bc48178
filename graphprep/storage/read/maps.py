"""Read-only maps of local files, and the end of a command one of whose mapped files is cut short while it reads it.

The system answers a read behind the end of a mapped file with SIGBUS, which Python cannot make an exception of: its own
handlers run between two instructions of Python, and this one never ends. So the handler here is one of C's. It is there only
where ``on_loss`` is set, which the command line does and a library must not. NumPy comes with the first map.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

on_loss: Callable[[str], None] | None = None  # gets the path of the file, "" where it is not known; need not return
_EXIT_STORAGE = 3
_sizes: dict[str, int] = {}  # bytes of each mapped file up to where its map ends
_handlers: list[Any] = []  # C knows their addresses only


def map_file(path: str, dtype: DTypeLike, *, offset: int = 0, shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Map a file for reading, from ``offset`` on; without a shape, to its end. Raises OSError, also for one too short."""
    import numpy as np

    try:
        mapped = np.memmap(path, dtype, "r", offset=offset, shape=shape)
    except ValueError as error:
        raise OSError(errno.EFAULT, str(error)) from None
    _sizes[path] = max(_sizes.get(path, 0), offset + mapped.nbytes)
    if on_loss is not None and not _handlers:
        _catch_loss()
    return mapped


def find_cut() -> str:
    """Return a mapped file that is shorter than its map by now, "" where there is none."""
    for path, num_bytes in _sizes.items():
        try:
            if Path(path).stat().st_size < num_bytes:
                return path
        except OSError:  # removed: what is mapped of it stays
            continue
    return ""


def _catch_loss() -> None:
    """Have C call ``on_loss``, in the thread that reads, at whatever instruction; then the process ends."""
    if not hasattr(signal, "SIGBUS"):
        return
    import ctypes

    def end(number: int) -> None:
        try:
            if on_loss is not None:
                on_loss(find_cut())
        finally:
            os._exit(_EXIT_STORAGE)

    _handlers.append(ctypes.CFUNCTYPE(None, ctypes.c_int)(end))
    ctypes.CDLL(None).signal(int(signal.SIGBUS), _handlers[0])
