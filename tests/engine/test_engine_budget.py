"""Memory: what users write, what the system leaves, who may have it."""

import threading
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphprep.engine import budget
from graphprep.engine.budget import (
    MemoryBudget,
    PeakSampler,
    available_memory,
    default_threads,
    format_size,
    parse_memory,
    private_bytes,
)
from graphprep.model.errors import MemoryLimitError, UsageError


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("1", 1),
        ("1048576", 1 << 20),
        ("10B", 10),
        ("8GiB", 8 << 30),
        ("512MiB", 512 << 20),
        ("512 mib", 512 << 20),
        ("1GB", 10**9),
        ("1.5kB", 1500),
        ("0.5KiB", 512),
        ("2G", 2 << 30),
        ("1TiB", 1 << 40),
        (" 3M ", 3 << 20),
    ],
)
def test_sizes(text, num_bytes):
    assert parse_memory(text) == num_bytes


def test_shares(monkeypatch):
    monkeypatch.setattr(budget, "available_memory", lambda: 1000)
    assert parse_memory("auto") == parse_memory("AUTO ") == 500
    assert parse_memory("50%") == 500
    assert parse_memory("12.5 %") == 125
    assert parse_memory("100%") == 1000


@pytest.mark.parametrize(
    "text", ["", "0", "0GiB", "-1", "1e9", "8 GiBs", "GiB", "0%", "101%", "half", "1_000", "٣", "nan", "1.GiB", "50%%"]
)
def test_what_is_no_amount_of_memory(text):
    with pytest.raises(UsageError) as caught:
        parse_memory(text)
    assert (
        str(caught.value) == f"{text!r} is not an amount of memory\n  fix: write a size (8GiB, 512MiB), a share (50%) or auto"
    )
    assert caught.value.exit_code == 2


def test_format_size():
    assert [format_size(n) for n in (0, 1023, 1024, 1536 << 20, 5 << 40)] == ["0 B", "1023 B", "1.0 KiB", "1.5 GiB", "5.0 TiB"]


# ---- what the system leaves


@pytest.fixture
def system(tmp_path, monkeypatch):
    """A made-up /proc and /sys/fs/cgroup with 16 GiB free."""
    proc, cgroup = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True)
    cgroup.mkdir()
    (proc / "meminfo").write_text("MemTotal:  33554432 kB\nMemAvailable:   16777216 kB\n")
    (proc / "self" / "cgroup").write_text("")
    monkeypatch.setattr(budget, "_PROC", proc)
    monkeypatch.setattr(budget, "_CGROUP", cgroup)
    return tmp_path


def fill(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def test_no_cgroup(system):
    assert available_memory() == 16 << 30


def test_cgroup_2_counts_all_levels_and_forgives_cache(system):
    (system / "proc/self/cgroup").write_text("0::/a/b\n")
    fill(system / "cgroup/a/b", memory__max="max\n", memory__current="5\n")
    fill(
        system / "cgroup/a",
        memory__max=f"{4 << 30}\n",
        memory__current=f"{3 << 30}\n",
        memory__stat=f"anon 5\ninactive_file {1 << 30}\n",
    )
    assert available_memory() == 2 << 30


def test_cgroup_1(system):
    (system / "proc/self/cgroup").write_text("9:name=systemd:/\n4:cpu,memory:/job\n0::/\n")
    fill(
        system / "cgroup/memory/job",
        **{
            "memory__limit_in_bytes": f"{1 << 30}\n",
            "memory__usage_in_bytes": f"{1 << 29}\n",
            "memory__stat": f"total_inactive_file {1 << 28}\n",
        },
    )
    assert available_memory() == (1 << 29) + (1 << 28)


def test_a_container_that_sees_the_path_outside(system):
    (system / "proc/self/cgroup").write_text("0::/docker/0123\n")
    fill(system / "cgroup", memory__max=f"{1 << 30}\n", memory__current=f"{1 << 29}\n")
    assert available_memory() == 1 << 29


def test_a_cgroup_that_is_full(system):
    (system / "proc/self/cgroup").write_text("0::/\n")
    fill(system / "cgroup", memory__max="100\n", memory__current="200\n")
    assert available_memory() == 0
    assert parse_memory("auto") == 1


def test_threads_respect_the_quota(system, monkeypatch):
    monkeypatch.setattr(budget.os, "sched_getaffinity", lambda _: set(range(64)))
    monkeypatch.delattr(budget.os, "process_cpu_count", raising=False)
    assert default_threads() == 64
    (system / "proc/self/cgroup").write_text("0::/a\n")
    fill(system / "cgroup/a", cpu__max="250000 100000\n")
    assert default_threads() == 3
    fill(system / "cgroup/a", cpu__max="max 100000\n")
    assert default_threads() == 64


def test_the_real_system():
    assert 0 < available_memory() < 1 << 50
    assert default_threads() >= 1


# ---- leases


def test_a_lease_that_can_never_fit():
    with pytest.raises(MemoryLimitError) as caught, MemoryBudget(1 << 20).lease((1 << 20) + 1):
        pass
    assert str(caught.value) == (
        "a step needs 1.0 MiB, the memory limit is 1.0 MiB\n  fix: raise --memory-limit to 1048577 bytes or more"
    )
    assert caught.value.exit_code == 4


@settings(deadline=None, max_examples=15)
@given(sizes=st.lists(st.integers(0, 100), min_size=1, max_size=20), limit=st.integers(100, 150))
def test_leases_never_exceed_the_limit(sizes, limit):
    made = MemoryBudget(limit)
    seen = []

    def work(size):
        with made.lease(size):
            seen.append(made.leased_bytes)
            time.sleep(0.0005)

    threads = [threading.Thread(target=work, args=(size,)) for size in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == len(sizes)
    assert max(seen) <= limit
    assert made.leased_bytes == 0


def test_a_large_lease_is_not_starved_by_small_ones():
    made = MemoryBudget(10)
    order = []

    def work(name, size):
        with made.lease(size):
            order.append(name)

    with made.lease(6):
        large = threading.Thread(target=work, args=("large", 10))
        large.start()
        while not made._waiting:
            time.sleep(0.001)
        small = threading.Thread(target=work, args=("small", 1))
        small.start()
        while len(made._waiting) < 2:
            time.sleep(0.001)
        assert order == []
    large.join(5)
    small.join(5)
    assert order == ["large", "small"]


def test_a_lease_ends_with_its_context_whatever_happens():
    made = MemoryBudget(10)
    with pytest.raises(ValueError, match="x"), made.lease(10):
        raise ValueError("x")
    with made.lease(10):
        assert made.leased_bytes == 10


# ---- use


def test_private_bytes_see_memory_and_the_sampler_its_peak():
    before = private_bytes()
    assert before > 0
    with PeakSampler() as sampler:
        array = np.ones(8 << 20, np.float64)
        time.sleep(0.06)
        del array
    assert sampler.peak_private_bytes > before + (60 << 20)
    assert not [thread for thread in threading.enumerate() if thread.name == "graphprep-memory"]
    assert sampler.stop() == sampler.peak_private_bytes


def test_private_bytes_where_the_system_does_not_say(system):
    assert private_bytes() == 0
