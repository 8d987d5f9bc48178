"""Ordered work on threads of this process, for functions that release the GIL."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def map_ordered(fn: Callable[[Item], Result], items: Iterable[Item], threads: int, window: int = 0) -> Iterator[Result]:
    """Yield ``fn(item)`` for every item, in item order, computed on ``threads`` threads.

    At most ``window`` items (default: twice the threads) are taken from ``items``, by the consuming thread, before their
    results were consumed. What fails first in item order is what is raised, whatever the number of threads: a failing
    ``items`` counts as its next item. Then, and when the consumer stops early or is interrupted, work that has not begun is
    dropped and work that has is awaited; no thread is left. One thread means no thread: the work is done in the consumer's.
    """
    if threads <= 1:
        return (fn(item) for item in items)
    return _map_on_threads(fn, items, threads, window or 2 * threads)


def _map_on_threads(fn: Callable[[Item], Result], items: Iterable[Item], threads: int, window: int) -> Iterator[Result]:
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
        pool.shutdown(wait=True, cancel_futures=True)
