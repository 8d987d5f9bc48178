"""A worker process: does the tasks that come through one pipe, and sends what they give through another."""

from __future__ import annotations

import pickle
import signal
import struct
import sys
from typing import Any, BinaryIO

import numpy as np

_SIZE = struct.Struct("<q")


def send(pipe: BinaryIO, message: object) -> None:
    """Write an object, its arrays beside it, without copying them."""
    buffers: list[pickle.PickleBuffer] = []
    head = pickle.dumps(message, protocol=5, buffer_callback=buffers.append)
    parts = [memoryview(head), *(buffer.raw() for buffer in buffers)]
    pipe.write(b"".join(map(_SIZE.pack, (len(parts), *(part.nbytes for part in parts)))))
    for part in parts:
        pipe.write(part)
    pipe.flush()


def receive(pipe: BinaryIO) -> Any:
    """Read an object. Raises EOFError where there is none any more."""
    (count,) = _SIZE.unpack(_read(pipe, _SIZE.size))
    sizes = [_SIZE.unpack(_read(pipe, _SIZE.size))[0] for _ in range(count)]
    head, *buffers = [_read(pipe, size) for size in sizes]
    return pickle.loads(head, buffers=buffers)


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
