"""Where a device computes: streams with buffers on both sides, which are kept and grow; a few threads use them in turn."""

from __future__ import annotations

import contextlib
import queue
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphprep.kernels.cuda.frontend import IS_SIMULATED, cuda
from graphprep.kernels.cuda.probe import free_words, is_out_of_memory
from graphprep.kernels.cuda.tally import Tally

Array = NDArray[Any]

_ROUNDED = 1 << 8  # bytes: what devices align memory to


class NoRoomError(Exception):
    """Something does not fit in the device memory that a slot may take."""


class Room:
    """A stream, and named buffers of its own on the device and, pinned, on the host: those grow and are used again.

    What is taken under a name is gone when the name is taken again. ``cap_bytes`` bounds the device's; None: its memory does.
    ``pinned_bytes`` bounds the host's. ``fast`` sorts and scans in place of ``radix`` and ``scan``: see
    ``cccl``. ``tally`` is told of buffers that cannot be pinned.
    """

    def __init__(
        self,
        cap_bytes: int | None = None,
        pinned_bytes: int | None = None,
        fast: Any = None,
        tally: Tally | None = None,
    ) -> None:
        self.stream = cuda.stream()
        self.cap_bytes = cap_bytes
        self.pinned_bytes = pinned_bytes
        self.fast = fast
        self.tally = tally
        self.held_bytes = 0
        self._buffers: dict[str, Any] = {}
        self._pinned: dict[str, Array] = {}
        self._empty: dict[np.dtype[Any], Any] = {}
        self._pending: list[tuple[Array, Array]] = []

    def take(self, name: str, size: int, dtype: Any) -> Any:
        """Return a device array, not filled. Raises NoRoomError."""
        dtype = np.dtype(dtype)
        if size == 0:
            return self.none(dtype)
        num_bytes = int(size) * dtype.itemsize
        if name not in self._buffers or self._buffers[name].size < num_bytes:
            self._grow(name, -(-num_bytes // _ROUNDED) * _ROUNDED)
        return self._buffers[name][:num_bytes].view(dtype)

    def none(self, dtype: Any) -> Any:
        """Return a device array of no items."""
        dtype = np.dtype(dtype)
        if dtype not in self._empty:
            self._empty[dtype] = cuda.device_array(0, dtype)
        return self._empty[dtype]

    def upload(self, name: str, *arrays: Array, dtype: Any = None) -> Any:
        """Copy arrays of one dtype to the device, one behind the other, through pinned memory; ``dtype`` reads their bits."""
        dtype = np.dtype(dtype or arrays[0].dtype)
        pinned = self._pin(name, sum(array.size for array in arrays), dtype)
        at = 0
        for array in arrays:
            pinned[at : at + array.size] = array.reshape(-1).view(dtype)
            at += array.size
        there = self.take(name, at, dtype)
        if at:
            there.copy_to_device(pinned, stream=self.stream)
        return there

    def download(self, there: Any, out: Array) -> None:
        """Copy a device array to ``out``, whose bits or values it holds, when ``finish`` is called."""
        if not out.size:
            return
        pinned = self._pin(f"out {len(self._pending)}", out.size, there.dtype)
        there.copy_to_host(pinned, stream=self.stream)
        self._pending.append((pinned.view(out.dtype) if pinned.itemsize == out.itemsize else pinned, out))

    def finish(self) -> None:
        """Wait for the stream, and fill what was to be downloaded."""
        self.stream.synchronize()
        pending, self._pending = self._pending, []
        for pinned, out in pending:
            out.reshape(-1)[:] = pinned

    def clear(self) -> None:
        """Give all memory back."""
        self.stream.synchronize()
        self._buffers.clear()
        self._pinned.clear()
        self._pending.clear()
        self.held_bytes = 0
        _free_now()

    def _grow(self, name: str, num_bytes: int) -> None:
        old = self._buffers.pop(name, None)
        self.held_bytes += num_bytes - (0 if old is None else old.size)
        if old is not None:
            old = None
            _free_now()
        try:
            if self.cap_bytes is not None and self.held_bytes > self.cap_bytes:
                raise NoRoomError(f"{self.held_bytes} of {self.cap_bytes} bytes")
            self._buffers[name] = cuda.device_array(num_bytes, np.uint8)
        except Exception as error:
            self.held_bytes = sum(buffer.size for buffer in self._buffers.values())
            if isinstance(error, NoRoomError) or not is_out_of_memory(error):
                raise
            raise NoRoomError(f"{num_bytes:,} bytes are needed, {free_words()}") from error

    def _pin(self, name: str, size: int, dtype: Any) -> Array:
        num_bytes = int(size) * np.dtype(dtype).itemsize
        if name not in self._pinned or self._pinned[name].size < num_bytes:
            if self._pinned.pop(name, None) is not None:
                _free_now()
            held = sum(array.size for array in self._pinned.values()) + num_bytes
            if self.pinned_bytes is not None and held > self.pinned_bytes:
                raise NoRoomError(f"{held} of {self.pinned_bytes} bytes of pinned memory")
            self._pinned[name] = self._host_array(max(1, num_bytes))
        pinned: Array = np.asarray(self._pinned[name])[:num_bytes].view(dtype)
        return pinned

    def _host_array(self, num_bytes: int) -> Array:
        """Return pinned memory; where the system grants no more, memory that is not, which is slower to copy, and no worse."""
        try:
            pinned: Array = cuda.pinned_array(num_bytes, np.uint8)
        except Exception as error:  # of a device that is lost, too: the next copy fails then
            if self.tally is not None:
                self.tally.note(f"buffer not pinned, so slower to copy ({' '.join(str(error).split())[:120]})")
            return np.empty(num_bytes, np.uint8)
        return pinned


def _free_now() -> None:
    """Free what nobody uses any more: Numba by itself waits for ten arrays or a fifth of the device's memory, pinned or not."""
    if not IS_SIMULATED:
        with contextlib.suppress(IndexError):  # another thread freed the last one meanwhile
            cuda.current_context().deallocations.clear()


class Slots:
    """A few rooms on one device, each for one thread at a time: while one computes, others copy."""

    def __init__(
        self,
        index: int = 0,
        count: int = 3,
        cap_bytes: int | None = None,
        pinned_bytes: int | None = None,
        make_fast: Callable[[], Any] | None = None,
    ) -> None:
        """``cap_bytes`` and ``pinned_bytes`` are what all of them may take together; ``make_fast`` makes a room's ``fast``."""
        self.index = index
        self.tally = Tally()
        self._free: queue.LifoQueue[Room | None] = queue.LifoQueue()
        self._caps = tuple(None if cap is None else cap // count for cap in (cap_bytes, pinned_bytes))
        self._make_fast = make_fast
        for _ in range(count):
            self._free.put(None)

    @contextlib.contextmanager
    def room(self) -> Iterator[Room]:
        """Wait for a room that nobody uses. One that something did not fit in gives its memory back."""
        room = self._free.get()
        try:
            with cuda.gpus[self.index]:
                room = Room(*self._caps, self._make_fast and self._make_fast(), self.tally) if room is None else room
                try:
                    yield room
                except BaseException:
                    with contextlib.suppress(Exception):  # of a device that is lost: what went wrong first is raised
                        room.clear()
                    raise
        finally:
            self._free.put(room)
