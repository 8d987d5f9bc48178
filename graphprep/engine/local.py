"""Ordered work on threads of this process, for functions that release the GIL; and what does a task for a thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


class Engine(Protocol):
    """Does tasks for threads that wait for it: functions without arguments that depend on nothing but what they hold.

    An engine of other processes (``is_apart``) takes tasks, and gives results, that can be pickled. ``num_workers`` tasks are
    done at a time; 0: as many as there are threads.
    """

    is_apart: bool
    num_workers: int

    def run(self, task: Callable[[], Result]) -> Result:
        """Return what a task gives, and raise what it raises."""

    def close(self) -> None:
        """End what does the tasks."""


class Threads:
    """Does a task on the thread that asks for it."""

    is_apart = False
    num_workers = 0

    def run(self, task: Callable[[], Result]) -> Result:
        """See ``Engine``."""
        return task()

    def close(self) -> None:
        """See ``Engine``."""


def map_ordered(
    fn: Callable[[Item], Result],
    items: Iterable[Item],
    threads: int,
    window: int = 0,
    cancel: Callable[[], None] | None = None,
) -> Iterator[Result]:
    """Yield ``fn(item)`` for every item, in item order, computed on ``threads`` threads.

    At most ``window`` items (default: twice the threads) are taken from ``items``, by the consuming thread, before their
    results were consumed. What fails first in item order is what is raised, whatever the number of threads: a failing
    ``items`` counts as its next item. Then, and when the consumer stops early or is interrupted, work that has not begun is
    dropped and work that has is awaited, which ``cancel`` can shorten; no thread is left. One thread means no thread: the work
    is done in the consumer's.
    """
    if threads <= 1:
        return (fn(item) for item in items)
    return _map_on_threads(fn, items, threads, window or 2 * threads, cancel)


def num_in_flight(threads: int, window: int = 0) -> int:
    """Return how many items ``map_ordered`` holds at a time, results and those that are consumed and taken included."""
    return 2 if threads <= 1 else (window or 2 * threads) + 2


def chain_ordered(sources: Iterable[Callable[[], Iterator[Item]]], threads: int, ahead: int = 2) -> Iterator[Item]:
    """Yield the items of one source after another, in order, while up to ``threads`` of them are read at a time.

    Each is read by one thread, which is at most ``ahead`` items ahead of the consumer. What fails first in the order of items
    is what is raised. When the consumer stops early, sources are closed; no thread is left. One thread means no thread.
    """
    if threads <= 1:
        for source in sources:
            yield from source()
        return
    lanes: list[_Lane[Item]] = []
    pool = ThreadPoolExecutor(threads, thread_name_prefix="graphprep-read")
    try:
        for source in sources:
            lanes.append(_Lane(source, ahead))
            pool.submit(lanes[-1].fill)
        for lane in lanes:
            yield from lane.drain()
    finally:
        for lane in lanes:
            lane.stop()
        pool.shutdown(wait=True, cancel_futures=True)


class _Lane(Generic[Item]):
    """The items of one source, on their way from the thread that reads it."""

    def __init__(self, source: Callable[[], Iterator[Item]], ahead: int) -> None:
        self._source = source
        self._ahead = ahead
        self._items: deque[Item] = deque()
        self._change = threading.Condition()
        self._is_done = False
        self._is_stopped = False
        self._failure: BaseException | None = None

    def fill(self) -> None:
        """Read the source to its end, or until nobody wants more."""
        try:
            items = self._source()
            try:
                for item in items:
                    if not self._put(item):
                        break
            finally:
                close = getattr(items, "close", None)
                if close is not None:
                    close()
        except BaseException as error:  # the consumer's to raise
            self._failure = error
        with self._change:
            self._is_done = True
            self._change.notify_all()

    def _put(self, item: Item) -> bool:
        with self._change:
            self._change.wait_for(lambda: len(self._items) < self._ahead or self._is_stopped)
            self._items.append(item)
            self._change.notify_all()
            return not self._is_stopped

    def drain(self) -> Iterator[Item]:
        """Yield all items, then raise what stopped the source."""
        while True:
            with self._change:
                self._change.wait_for(lambda: self._items or self._is_done)
                if not self._items:
                    break
                item = self._items.popleft()
                self._change.notify_all()
            yield item
            del item
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Let the thread end."""
        with self._change:
            self._is_stopped = True
            self._items.clear()
            self._change.notify_all()


def _map_on_threads(
    fn: Callable[[Item], Result], items: Iterable[Item], threads: int, window: int, cancel: Callable[[], None] | None
) -> Iterator[Result]:
    pool = ThreadPoolExecutor(threads, thread_name_prefix="graphprep")
    pending: deque[Future[Result]] = deque()
    failure: Exception | None = None
    source = iter(items)
    try:
        more = True
        while more or pending:
            while more and len(pending) < window:
                try:
                    item = next(source)
                except StopIteration:
                    more = False
                except Exception as error:  # results of the items before it come first
                    failure, more = error, False
                else:
                    pending.append(pool.submit(fn, item))
                    del item
            if pending:
                yield pending.popleft().result()
        if failure is not None:
            raise failure
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        if cancel is not None:
            cancel()
        pool.shutdown()
        close = getattr(source, "close", None)  # it may have threads, and the traceback of a failure keeps it alive
        if close is not None:
            close()
