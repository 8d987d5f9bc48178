"""When free memory goes back to the system."""

from __future__ import annotations

import os
import sys
from typing import ClassVar

import pytest

from graphprep.engine import budget as heap

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


@pytest.mark.parametrize(
    ("limit", "calls"),
    [
        (64 * MIB, [("arenas", 1), ("trim", 4 * MIB), ("map", 1 * MIB)]),
        (2047 * MIB, [("arenas", 1), ("trim", 2047 * MIB // 16), ("map", 2047 * MIB // 64)]),
        (2048 * MIB, [("trim", 256 * MIB), ("map", 32 * MIB)]),
    ],
)
def test_what_the_heap_keeps_follows_the_limit(monkeypatch, limit, calls):
    """The numbers are those of malloc.h."""
    names = {-1: "trim", -3: "map", -8: "arenas"}
    found = []
    library = type("Library", (), {"mallopt": lambda self, name, value: found.append((names[name], value))})
    monkeypatch.setattr(heap, "_libc", library)
    monkeypatch.setattr(heap, "_let_arrow_share", lambda: None)
    heap.bound_heap(limit)
    assert found == calls
    monkeypatch.setattr(heap, "_libc", object)  # another C library
    heap.bound_heap(limit)


@pytest.mark.parametrize(("limit", "shares"), [(2047 * MIB, True), (2048 * MIB, False)])
@pytest.mark.parametrize("imported", [True, False])
def test_arrow_takes_memory_from_the_heap_where_the_limit_is_small(monkeypatch, limit, shares, imported):
    class Arrow:
        pools: ClassVar[list[str]] = []
        set_memory_pool = pools.append

        @staticmethod
        def system_memory_pool():
            return "system"

    monkeypatch.setattr(heap, "_libc", object)
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL", raising=False)
    if imported:
        monkeypatch.setitem(sys.modules, "pyarrow", Arrow)
    else:
        monkeypatch.delitem(sys.modules, "pyarrow", raising=False)
    heap.bound_heap(limit)
    assert Arrow.pools == (["system"] if shares and imported else [])
    assert os.environ.get("ARROW_DEFAULT_MEMORY_POOL") == ("system" if shares and not imported else None)
