"""Sources read by threads: the items come in order, a few at a time, and no thread is left behind."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from processes import wait_for

from graphprep.engine.local import chain_ordered, map_ordered


def _names():
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("graphprep-read")]


@settings(max_examples=40, deadline=None)
@given(sizes=st.lists(st.integers(0, 7), max_size=8), threads=st.integers(1, 4), ahead=st.integers(1, 3))
def test_items_come_in_the_order_of_their_sources(sizes, threads, ahead):
    sources = [lambda at=at, size=size: iter([(at, item) for item in range(size)]) for at, size in enumerate(sizes)]
    found = list(chain_ordered(sources, threads, ahead))
    assert found == [(at, item) for at, size in enumerate(sizes) for item in range(size)]
    assert not _names()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_first_failure_in_order_is_raised_after_the_items_before_it(threads):
    second_failed = threading.Event()

    def failing(at):
        yield at
        if at == 0 and threads > 1:
            assert second_failed.wait(60)
        if at == 1:
            second_failed.set()
        if at < 2:
            raise ValueError(at)

    seen = []
    with pytest.raises(ValueError, match="0"):
        seen.extend(chain_ordered([lambda at=at: failing(at) for at in range(4)], threads))
    assert not _names()


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_nobody_reads_far_ahead_and_sources_are_closed(threads):
    taken, closed = [], []

    def source(at):
        try:
            for item in range(100):
                taken.append((at, item))
                yield at, item
        finally:
            closed.append(at)

    items = chain_ordered([lambda at=at: source(at) for at in range(8)], threads, 2)
    assert next(items) == (0, 0)
    most = threads * 3 + 1 if threads > 1 else 1  # what waits, what is to be put there, and the one that was taken
    wait_for(lambda: len(taken) >= most)
    items.close()
    assert len(taken) == most
    assert sorted(closed) == sorted({at for at, _ in taken})
    assert not _names()


def test_no_thread_outlives_a_failure_of_who_works_on_the_items():
    items = chain_ordered([lambda: iter(range(100)) for _ in range(4)], 2)
    with pytest.raises(ZeroDivisionError) as failure:
        list(map_ordered(lambda item: 1 // item, items, 2))
    assert failure.tb is not None  # which keeps the frames, and what they hold, alive
    assert not _names()
