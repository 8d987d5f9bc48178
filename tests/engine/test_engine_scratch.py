"""Scratch arrays: memory is used again, by one at a time."""

from __future__ import annotations

import mmap

import numpy as np
import pytest

from graphprep.engine import ledger as heap
from graphprep.engine.ledger import plan_memory, release_scratch, scratch_array
from graphprep.model.run_options import RunOptions


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(heap, "_LEAST_SCRATCH", 1 << 16)
    monkeypatch.setattr(heap, "_MOST_SCRATCH", 1 << 20)
    release_scratch()
    yield
    release_scratch()


def address(array):
    return array.__array_interface__["data"][0]


@pytest.mark.skipif(not hasattr(mmap, "MADV_FREE"), reason="no MADV_FREE here")
def test_memory_is_used_again():
    with scratch_array(10_000, np.uint64) as first:
        first[:] = 7
        where = address(first)
    with scratch_array(9000, np.uint64) as second:
        assert address(second) == where
        assert second.size == 9000
        with scratch_array(9000, np.uint64) as other:  # nobody else gets it meanwhile
            other[:] = 1
            second[:] = 2
            assert (other == 1).all()
    with scratch_array(20_000, np.uint64) as larger:
        larger[:] = 3
    assert len(heap._kept) == 1
    release_scratch()
    assert not heap._kept


def test_small_and_very_large_arrays_are_not_kept():
    for count in (0, 10, 200_000):
        with scratch_array(count, np.uint64) as array:
            array[:] = 5
            assert array.size == count
            assert array.dtype == np.uint64
    assert not heap._kept


def test_what_fails_is_not_used_again():
    with pytest.raises(RuntimeError), scratch_array(10_000, np.uint64):
        raise RuntimeError
    assert not heap._kept


def test_no_memory():
    with pytest.raises(MemoryError), scratch_array(1 << 59, np.uint64):
        pass


def test_a_run_gets_back_what_is_kept():
    with scratch_array(10_000, np.uint64):
        pass
    assert heap._kept or not hasattr(mmap, "MADV_FREE")
    plan_memory(RunOptions())
    assert not heap._kept
