"""What can be read once only (stdin, FIFOs), copied into a file while it comes, so that reading and working overlap."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import select
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from graphprep.storage.faults import plain_words
from graphprep.storage.private import TMP_DIR_OPTION

_PIECE_BYTES = 1 << 20
_PIPE_BYTES = 1 << 20  # asked of the system for a pipe: sixteen times fewer switches between its two ends
_BUFFER_BYTES = 1 << 17
_LOOK_S = 0.5  # a signal that another thread got, or that came just before a wait, is seen when the wait ends
_SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ of Linux


class Spool:
    """A stream on its way into the file ``path``: a thread copies it as fast as it comes, readers follow.

    ``url`` is its name in messages. ``owned``: the stream is closed at the end. A failure to read names ``url``, one to write
    the folder; both are raised to whoever reads up to there.
    """

    def __init__(self, source: Any, url: str, path: Path, *, owned: bool) -> None:
        self.path = str(path)
        self.size = 0
        self._source = source
        self._url = url
        self._owned = owned
        self._failure: BaseException | None = None
        self._ended = False
        self._closed = False
        self._changed = threading.Condition()
        with plain_words(str(path.parent), TMP_DIR_OPTION):
            self._file = path.open("xb", buffering=0)
        self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="graphprep-spool", daemon=True)
        self._thread.start()

    @property
    def is_complete(self) -> bool:
        """Return whether all of the stream lies in the file."""
        with self._changed:
            return self._ended and self._failure is None

    def open(self) -> BinaryIO:
        """Open for reading from the beginning what has come, and what will come."""
        with plain_words(self._url):
            file = open(self.path, "rb", buffering=0)  # noqa: SIM115, PTH123 - the reader closes it
        return io.BufferedReader(_Follower(self, file), _BUFFER_BYTES)

    def wait(self, num_bytes: int | None = None, most_s: float | None = None) -> int:
        """Wait until there are ``num_bytes`` (None: until the end), or for ``most_s``; return how many there are.

        Raises StorageError where the stream or the copy failed before.
        """

        def is_there() -> bool:
            return self._ended or (num_bytes is not None and self.size >= num_bytes)

        with self._changed:
            while not self._changed.wait_for(is_there, _LOOK_S if most_s is None else most_s) and most_s is None:
                pass
            if self._failure is not None and (num_bytes is None or self.size < num_bytes):
                raise self._failure
            return self.size

    def close(self) -> None:
        """Stop copying. The file stays."""
        if self._closed:
            return
        self._closed = True
        os.write(self._wake[1], b"\0")
        self._thread.join()
        for descriptor in self._wake:
            os.close(descriptor)
        self._file.close()
        if self._owned:
            self._source.close()

    def _run(self) -> None:
        failure: BaseException | None = None
        try:
            self._copy()
        except BaseException as error:  # raised where it is waited for
            failure = error
        with self._changed:
            self._failure, self._ended = failure, True
            self._changed.notify_all()

    def _copy(self) -> None:
        ready = _Readiness(self._source, self._wake[0])
        read = getattr(self._source, "readinto1", None) or self._source.readinto
        piece = memoryview(bytearray(_PIECE_BYTES))
        pipe: int | None = None
        while not self._closed and ready.wait():
            count = None if pipe is None else self._move(pipe)
            if count is None:
                with plain_words(self._url):
                    count = read(piece)
                self._write(piece[: count or 0])
                # What a buffer of the stream held has been read now: from here on there is nothing but the pipe.
                pipe, ready.pipe = ready.pipe, None
            if not count:
                return
            with self._changed:
                self.size += count
                self._changed.notify_all()

    def _move(self, pipe: int) -> int | None:
        """Let the system copy a piece from a pipe to the file; None where it cannot."""
        with plain_words(str(Path(self.path).parent), TMP_DIR_OPTION):
            try:
                return os.splice(pipe, self._file.fileno(), _PIECE_BYTES)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOSYS):
                    raise
                return None

    def _write(self, data: memoryview) -> None:
        with plain_words(str(Path(self.path).parent), TMP_DIR_OPTION):
            while data:
                data = data[self._file.write(data) :]


class _Readiness:
    """Waits for a stream or for the order to stop: a thread that is blocked in reading would outlive the command."""

    def __init__(self, source: Any, stop: int) -> None:
        self._stop = stop
        self._poll: select.poll | None = None
        self.pipe: int | None = None  # the stream's descriptor, where the system can copy from it to a file
        with contextlib.suppress(OSError, AttributeError):  # a stream without a descriptor lies in memory
            descriptor = source.fileno()
            if stat.S_ISFIFO(os.fstat(descriptor).st_mode):
                self.pipe = descriptor if hasattr(os, "splice") else None
                _widen_pipe(descriptor)
            self._poll = select.poll()
            self._poll.register(descriptor, select.POLLIN)
            self._poll.register(stop, select.POLLIN)

    def wait(self) -> bool:
        """Wait until there is something to read, or the end; False: stop."""
        return self._poll is None or all(descriptor != self._stop for descriptor, _ in self._poll.poll())


def _widen_pipe(descriptor: int) -> None:
    if sys.platform == "linux":
        import fcntl

        with contextlib.suppress(OSError):
            fcntl.fcntl(descriptor, _SET_PIPE_SIZE, _PIPE_BYTES)


class _Follower(io.RawIOBase):
    """Reads a spool's file, waiting for what has not come yet."""

    def __init__(self, spool: Spool, file: io.FileIO) -> None:
        super().__init__()
        self._spool = spool
        self._file = file

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read at most ``len(buffer)`` bytes, at least one; 0 at the end."""
        at = self._file.tell()
        there = self._spool.wait(at + 1) - at
        if there <= 0:
            return 0
        return int(self._file.readinto(memoryview(buffer)[:there]) or 0)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a byte; seeking from the end waits for it."""
        if whence == io.SEEK_END:
            self._spool.wait()
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """Return the current byte."""
        return self._file.tell()

    def growing(self) -> tuple[int, Callable[[int, float | None], int]]:
        """Return the descriptor of the file, and ``Spool.wait``."""
        return self._file.fileno(), self._spool.wait

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def stored_stdin(source: Any) -> str | None:
    """Return a path that opens the regular file which is a process's standard input (``< edges.txt``), None for others.

    Also None where some of it was read, or where it cannot be opened again: then it must be copied.
    """
    try:
        descriptor = source.fileno()
        path = f"/proc/self/fd/{descriptor}"
        is_whole = stat.S_ISREG(os.fstat(descriptor).st_mode) and os.lseek(descriptor, 0, os.SEEK_CUR) == 0
        if not is_whole or not Path("/proc/self/fd").is_dir():
            return None
        with open(path, "rb"):  # noqa: PTH123
            return path
    except (OSError, AttributeError, ValueError):
        return None
