"""Compressed texts several at a time: a thread reads each, and what comes before its turn waits with the runs of rows."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphprep.model.protocols import Span, TextBlock
from graphprep.storage.spill.runs import Runs, SpillPool

_READER_BYTES = 64 << 20  # of a decompressor at most: a dictionary of xz -9
_READER_SHARE = 4  # a reader more for so many times that in the pool
_TEXT_SHARE = 2  # of the pool for texts before their turn: the rest is for rows
_AHEAD = 2  # blocks of the text whose turn it is, before somebody takes them


class _Waiting(NamedTuple):
    """The bytes of a block."""

    data: NDArray[np.uint8]


def num_readers(pool: SpillPool, threads: int) -> int:
    """Return how many texts may be read at a time."""
    return min(threads, 1 + pool.cap_bytes // (_READER_SHARE * _READER_BYTES))


def read_several(
    texts: Sequence[Callable[[], Iterator[TextBlock]]], pool: SpillPool, num_readers: int
) -> Generator[tuple[int, TextBlock]]:
    """Yield (number, block) of one text after another, in order, while up to ``num_readers`` of them are read at a time.

    Blocks of later texts are read while the first one does not come fast enough, and wait in ``pool``, of which they take half
    at most. What fails first in the order of blocks is what is raised. No thread is left when the consumer stops.
    """
    held = _READER_BYTES * (num_readers - 1)
    readers = _Readers(texts, pool)
    with pool.lock:
        pool.account(held)
    executor = ThreadPoolExecutor(num_readers, thread_name_prefix="graphprep-read")
    try:
        for text in readers.texts:
            executor.submit(text.fill)
        for number, text in enumerate(readers.texts):
            for block in text.drain():
                yield number, block
    finally:
        readers.stop()
        executor.shutdown(wait=True, cancel_futures=True)
        for text in readers.texts:
            text.close()
        with pool.lock:
            pool.in_memory_bytes -= held


class _Readers:
    """What the threads share: whose turn it is, and how many bytes wait. All of it changes under ``change``."""

    def __init__(self, texts: Sequence[Callable[[], Iterator[TextBlock]]], pool: SpillPool) -> None:
        self.change = threading.Condition()
        self.texts = [_Text(self, number, source) for number, source in enumerate(texts)]
        self.turn = 0
        self.is_stopped = False
        self.pool = pool
        self.waiting_bytes = 0

    def has_room(self, num_bytes: int) -> bool:
        """Return whether a block may wait: there is room, and nobody else has a use for the processor."""
        first = self.texts[self.turn]
        is_late = len(first.blocks) < _AHEAD and not first.is_read
        return is_late and self.waiting_bytes + num_bytes <= self.pool.cap_bytes // _TEXT_SHARE

    def stop(self) -> None:
        """Let the threads end."""
        with self.change:
            self.is_stopped = True
            self.change.notify_all()


class _Text:
    """A text: what came of it before its turn, and behind that the blocks that the consumer takes as they come."""

    def __init__(self, readers: _Readers, number: int, source: Callable[[], Iterator[TextBlock]]) -> None:
        self.blocks: deque[TextBlock] = deque()
        self.is_read = False
        self._readers = readers
        self._number = number
        self._source = source
        self._waiting: Runs[_Waiting] | None = None
        self._places: deque[tuple[Span, int, bool, int]] = deque()  # of those that wait: their fields, and their sizes
        self._is_moving = False
        self._failure: BaseException | None = None

    def fill(self) -> None:
        """Read the text to its end, or until nobody wants more."""
        try:
            blocks: Any = self._source()
            try:
                for block in blocks:
                    if not self._put(block):
                        break
            finally:
                blocks.close()
        except BaseException as error:  # the consumer's to raise
            self._failure = error
        with self._readers.change:
            self.is_read, self._is_moving = True, False
            self._readers.change.notify_all()

    def _put(self, block: TextBlock) -> bool:
        """Hand a block over, or let it wait in the pool; False where nobody wants it any more."""
        readers = self._readers
        with readers.change:
            while not readers.is_stopped:
                if readers.turn == self._number:
                    if len(self.blocks) < _AHEAD:
                        self.blocks.append(block)
                        readers.change.notify_all()
                        return True
                elif readers.has_room(block.num_bytes):
                    self._is_moving = True
                    readers.waiting_bytes += block.num_bytes
                    break
                readers.change.wait()
            else:
                return False
        if self._waiting is None:
            self._waiting = Runs(readers.pool, coalesce=False)
        self._places.append((block.span, block.first_line, block.is_first, block.num_bytes))
        self._waiting.append(0, _Waiting(np.frombuffer(block.data, np.uint8)))
        with readers.change:
            self._is_moving = False
            readers.change.notify_all()
        return True

    def drain(self) -> Iterator[TextBlock]:
        """Yield all blocks, from now on those that come, then raise what stopped them."""
        readers = self._readers
        with readers.change:
            readers.turn = self._number
            readers.change.notify_all()
            readers.change.wait_for(lambda: not self._is_moving)
        if self._waiting is not None:
            for waiting in self._waiting.read(0, consume=True):
                span, first_line, is_first, num_bytes = self._places.popleft()
                with readers.change:
                    readers.waiting_bytes -= num_bytes
                    readers.change.notify_all()
                yield TextBlock(waiting.data.tobytes(), span, first_line, is_first)
            self.close()
        while True:
            with readers.change:
                readers.change.wait_for(lambda: self.blocks or self.is_read)
                if not self.blocks:
                    break
                block = self.blocks.popleft()
                readers.change.notify_all()
            yield block
            del block
        if self._failure is not None:
            raise self._failure

    def close(self) -> None:
        """Drop what waits."""
        if self._waiting is not None:
            self._waiting.close()
            self._waiting = None
