"""The memory ledger: what a limit is shared into, what stages declare, and that they are held to it."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from processes import wait_for

from graphprep.engine import ledger as module
from graphprep.engine.budget import PeakSampler, count_memory, used_bytes
from graphprep.engine.ledger import Ledger, Need, plan_memory
from graphprep.model.errors import MemoryLimitError
from graphprep.model.run_options import RunOptions

MIB = 1 << 20


class Listener:
    """Keeps what it is told."""

    def __init__(self, *, details=True):
        self.details = details
        self.messages = []
        self.stages = []

    def message(self, text):
        self.messages.append(text)

    def stage(self, name, *, total_bytes=None, total_records=None):
        self.stages.append((name, total_bytes))


@pytest.fixture
def held(monkeypatch):
    """A process that holds 40 MiB in a place without other limits."""
    monkeypatch.setattr(module, "used_bytes", lambda: 40 * MIB)
    monkeypatch.setattr(module, "memory_limit", lambda text: int(text.removesuffix("MiB")) * MIB)
    monkeypatch.setattr(module, "bound_heap", lambda limit: None)


# ---- sharing out


@pytest.mark.parametrize(
    ("limit", "threads", "pool", "cap", "bucket", "task", "block"),
    [
        (128, 1, 7372, 3072, 2457, 2457, 170),
        (128, 64, 7372, 3072, 64, 64, 64),
        (256, 2, 46694, 19456, 9728, 9728, 648),
        (1024, 2, 282624, 117760, 32768, 58880, 3925),
        (1024, 16, 282624, 117760, 9420, 9420, 594),
        (16384, 8, 5001216, 2083840, 32768, 320590, 4096),
    ],
)
def test_what_a_limit_is_shared_into(limit, threads, pool, cap, bucket, task, block, held):
    """In MiB and KiB; of what is left beside 40 MiB and the code, 30 % are for runs and an eighth is for a sort."""
    plan = plan_memory(RunOptions(memory_limit=f"{limit}MiB", threads=threads))
    assert (plan.limit_bytes, plan.held_bytes, plan.threads) == (limit * MIB, 40 * MIB, threads)
    found = (plan.pool_bytes, plan.cap_bytes, plan.bucket_bytes, plan.task_bytes, plan.block_bytes)
    assert [num_bytes >> 10 for num_bytes in found] == [pool, cap, bucket, task, block]


def test_blocks_of_a_given_size(held):
    assert plan_memory(RunOptions(memory_limit="256MiB", threads=2), 1000).block_bytes == 1000


def test_a_limit_that_tasks_too_little(held):
    with pytest.raises(MemoryLimitError) as caught:
        plan_memory(RunOptions(memory_limit="127MiB"))
    assert str(caught.value) == (
        "the memory limit of 127 MiB leaves 23 MiB to work with\n  fix: raise --memory-limit to 129MiB or more"
    )


# ---- declaring

TWO = (Need("keys", 8 * MIB, "to sort"), Need("marks", 0, "none here"), Need("rows", 4 * MIB, "beside them"))


def test_a_stage_takes_the_sum_of_its_needs(held):
    listener = Listener()
    made = Ledger(256 * MIB, 30 * MIB, listener, PeakSampler())
    made.begin("index", iter(TWO))
    made.begin("build", [Need("build tasks", 500 * MIB, "many")], total_bytes=9)
    assert listener.stages == [("index", None), ("build", 9)]
    assert list(made.seconds) == ["index"]  # the other one still works
    kept = (10 + 3) * MIB  # 10 MiB are held beyond what was there before, and a quarter of 12 MiB may lie between arrays
    assert made.own_bytes("index") == 12 * MIB + kept
    assert made.peak_bytes("index") == (30 + 64 + 12) * MIB + kept
    assert made.peak_bytes("build") == 256 * MIB  # the limit is a promise, too
    assert listener.messages == [
        "memory: all stages: process 30.0 MiB (what it holds when it begins); "
        "code 64.0 MiB (kernels, pyarrow and other modules, as they are loaded)",
        "memory: index: 119.0 MiB at most: keys 8.0 MiB (to sort); rows 4.0 MiB (beside them); "
        "heap 13.0 MiB (what stages left, and what is free between arrays)",
        "memory: build: 256.0 MiB at most: build tasks 500.0 MiB (many); "
        "heap 16.0 MiB (what stages left, and what is free between arrays)",
    ]


def test_who_wants_no_details_is_told_nothing(held):
    listener = Listener(details=False)
    Ledger(256 * MIB, 30 * MIB, listener, PeakSampler()).begin("index", TWO)
    assert listener.messages == []


# ---- checking


@pytest.fixture
def check(monkeypatch):
    """Have stages held to what they declare, in a process that compiled nothing."""
    monkeypatch.setenv("GRAPHPREP_CHECK_MEMORY", "1")
    monkeypatch.delitem(sys.modules, "numba", raising=False)


def hold(num_bytes, then=lambda: None):
    """Hold so much in a stage that declares a mebibyte, beside its code and what the heap keeps."""
    with count_memory(), PeakSampler() as sampler:
        made = Ledger(1 << 40, used_bytes(), Listener(), sampler)
        made.begin("sort", [Need("keys", MIB, "to sort")])
        array = np.ones(num_bytes, np.uint8)
        wait_for(lambda: sampler.peak_bytes > num_bytes // 2)
        del array
        then()
        made.end()
        made.end()  # there is no stage any more


def test_a_stage_that_holds_more_than_it_declares(check):
    with pytest.raises(
        AssertionError, match=r"stage 'sort' held 2\d\d.\d MiB of memory, and declares \d\d.\d MiB: keys 1.0 MiB"
    ):
        hold(256 * MIB)


def test_a_stage_that_keeps_within(check):
    hold(16 * MIB)


def test_nothing_is_checked_unasked(check, monkeypatch):
    monkeypatch.setenv("GRAPHPREP_CHECK_MEMORY", "0")
    hold(256 * MIB)


def test_nothing_is_checked_where_kernels_are_compiled(check, monkeypatch):
    hold(256 * MIB, then=lambda: monkeypatch.setitem(sys.modules, "numba", object()))
