"""When free memory goes back to the system."""

from __future__ import annotations

import pytest

from graphprep.engine import heap

MIB = 1 << 20


@pytest.mark.parametrize(
    ("limit", "held", "trims"),
    [
        (256 * MIB, 1 * MIB, 1),  # where the limit is small, always
        (8192 * MIB, 100 * MIB, 0),
        (8192 * MIB, 2048 * MIB, 1),
    ],
)
def test_a_stage_keeps_free_memory_while_the_limit_is_far(monkeypatch, limit, held, trims):
    calls = []

    class Library:
        def mallopt(self, *args):
            pass

        def malloc_trim(self, _pad):
            calls.append("trim")

    monkeypatch.setattr(heap, "_kept_below", 0)
    monkeypatch.setattr(heap, "_libc", Library)
    monkeypatch.setattr(heap, "used_bytes", lambda: held)
    heap.bound_heap(limit)
    heap.end_stage()
    assert len(calls) == trims
    heap.trim_heap()
    assert len(calls) == trims + 1
