"""A worker process: does the tasks that come through one pipe, and sends what they give through another."""

from __future__ import annotations

import io
import pickle
import signal
import struct
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

_SIZE = struct.Struct("<q")
_LEAST_COUNTED = 1 << 6


class _Pickler(pickle.Pickler):
    """Writes integers that count up by one, or are all the same, in a few bytes: numbers of rows, codes of types."""

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not np.ndarray or obj.ndim != 1 or obj.size < _LEAST_COUNTED or obj.dtype.kind not in "iu":
            return NotImplemented
        first, last = int(obj[0]), int(obj[-1])
        if last == first and (obj == obj[0]).all():
            return np.full, (obj.size, first, obj.dtype)
        if last - first == obj.size - 1 and (obj[1:] == obj[:-1] + obj.dtype.type(1)).all():
            return np.arange, (first, last + 1, 1, obj.dtype)
        return NotImplemented


def pack(message: object) -> list[memoryview]:
    """Return an object as bytes, its arrays among them, without copying these."""
    buffers: list[pickle.PickleBuffer] = []
    head = io.BytesIO()
    _Pickler(head, protocol=5, buffer_callback=buffers.append).dump(message)
    parts = [head.getbuffer(), *(buffer.raw() for buffer in buffers)]
    return [sizes_bytes(parts), *parts]


def sizes_bytes(parts: Sequence[memoryview]) -> memoryview:
    """Return what stands before the parts of an object: how many there are, and their sizes."""
    return memoryview(b"".join(map(_SIZE.pack, (len(parts), *(part.nbytes for part in parts)))))


def send(pipe: BinaryIO, message: object) -> None:
    """Write an object."""
    for part in pack(message):
        pipe.write(part)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read an object. Raises EOFError where there is none any more."""
    return unpack(receive_parts(pipe))


def receive_parts(pipe: BinaryIO, most_bytes: int = sys.maxsize) -> list[memoryview]:
    """Read an object's parts, which ``unpack`` takes. Raises EOFError where there are none, or more than ``most_bytes``."""
    (count,) = _SIZE.unpack(_read(pipe, _SIZE.size))
    if not 0 < count <= most_bytes // _SIZE.size:
        raise EOFError
    sizes = [size for (size,) in _SIZE.iter_unpack(_read(pipe, count * _SIZE.size))]
    if min(sizes) < 0 or sum(sizes) > most_bytes:
        raise EOFError
    return [_read(pipe, size) for size in sizes]


def unpack(parts: list[memoryview]) -> Any:
    """Return the object whose parts were received."""
    return pickle.loads(parts[0], buffers=parts[1:])


def _read(pipe: BinaryIO, size: int) -> memoryview:
    view = np.empty(size, np.uint8).data
    done = 0
    while done < size:
        count = pipe.readinto(view[done:])  # type: ignore[attr-defined]
        if not count:
            raise EOFError
        done += count
    return view


def main() -> None:
    """Work until nobody sends tasks any more. The first message is where modules are found."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who sends tasks ends in its own time, and this with it
    with open(int(sys.argv[1]), "rb") as tasks, open(int(sys.argv[2]), "wb") as results:  # noqa: PTH123 - descriptors
        sys.path[:] = receive(tasks)
        while True:
            try:
                task = receive(tasks)
            except EOFError:
                return
            try:
                result, is_done = task(), True
            except Exception as error:
                result, is_done = error, False
            try:
                send(results, (is_done, result))
            except (pickle.PicklingError, TypeError, AttributeError):
                send(results, (False, RuntimeError(f"cannot be sent: {result!r}")))


if __name__ == "__main__":
    main()
