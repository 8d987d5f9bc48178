"""Work on threads comes out in order, and nothing is left behind."""

import os
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.engine.local import map_ordered


def ours():
    return [thread for thread in threading.enumerate() if thread.name.startswith("graphprep")]


@settings(deadline=None, max_examples=40)
@given(items=st.lists(st.integers(0, 3), max_size=30), threads=st.integers(1, 5), window=st.integers(0, 7))
def test_results_stand_in_item_order(items, threads, window):
    def work(item):
        for _ in range(item):
            os.sched_yield()  # others come first
        return item * item

    assert list(map_ordered(work, items, threads, window)) == [item * item for item in items]
    assert ours() == []


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("window", [0, 1, 3, 20])
def test_items_are_taken_only_as_the_window_allows(threads, window):
    taken = []
    me = threading.get_ident()

    def items():
        for i in range(40):
            assert threading.get_ident() == me
            taken.append(i)
            yield i

    allowed = 1 if threads == 1 else window or 2 * threads
    for done, _ in enumerate(map_ordered(lambda item: item, items(), threads, window)):
        assert len(taken) <= done + allowed
    assert len(taken) == 40


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_what_fails_first_in_order_is_raised(threads):
    six_failed = threading.Event()

    def work(item):
        if item == 5:
            assert threads == 1 or six_failed.wait(60)
            raise ValueError("five")
        if item == 6:
            six_failed.set()
            raise ValueError("six")
        return item

    results = map_ordered(work, range(100), threads)
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="five"):
        next(results)
    assert ours() == []


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_items_that_fail_come_after_the_results_before_them(threads):
    broken = threading.Event()

    def items():
        yield from range(3)
        broken.set()
        raise OSError("broken")

    def work(item):
        assert threads == 1 or broken.wait(60)
        return item

    seen = []
    with pytest.raises(OSError, match="broken"):
        seen.extend(map_ordered(work, items(), threads, 8))
    assert seen == [0, 1, 2]
    assert ours() == []


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_nothing_is_taken_behind_items_that_fail(threads):
    class Items:
        """Fails once, and would go on."""

        def __init__(self):
            self.numbers = iter(range(9))

        def __iter__(self):
            return self

        def __next__(self):
            if (number := next(self.numbers)) == 3:
                raise OSError("broken")
            return number

    items, seen = Items(), []
    with pytest.raises(OSError, match="broken"):
        seen.extend(map_ordered(lambda item: item, items, threads, 8))
    assert seen == [0, 1, 2]
    assert list(items) == [4, 5, 6, 7, 8]


@pytest.mark.parametrize("threads", [1, 3])
def test_stopping_early_leaves_no_thread(threads):
    started = []

    def work(item):
        started.append(item)
        return item

    results = map_ordered(work, range(1000), threads)
    assert next(results) == 0
    results.close()
    assert ours() == []
    assert len(started) <= 2 * threads + 1


def test_an_interrupt_leaves_no_thread():
    interrupted = threading.Event()

    def work(item):
        assert item < 6 or interrupted.wait(60)  # there is work in progress
        return item

    with pytest.raises(KeyboardInterrupt):
        for result in map_ordered(work, range(1000), 3):
            if result == 4:
                interrupted.set()
                raise KeyboardInterrupt
    del result
    import gc

    gc.collect()
    assert ours() == []


def test_an_interrupt_inside_the_items_is_raised_at_once():
    def items():
        yield from range(3)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        list(map_ordered(lambda item: item, items(), 2, 8))
    assert ours() == []


def test_one_thread_means_no_thread():
    assert list(map_ordered(lambda _: threading.get_ident(), range(3), 1)) == [threading.get_ident()] * 3


def test_threads_do_work_at_the_same_time():
    barrier = threading.Barrier(3, timeout=60)
    assert list(map_ordered(lambda item: barrier.wait() is not None, range(3), 3)) == [True] * 3
