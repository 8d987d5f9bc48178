"""Memory: what users write, what the system leaves, who may have it."""

import contextlib
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from processes import started, wait_for

from graphprep.engine import budget
from graphprep.engine.budget import (
    MemoryLimit,
    PeakSampler,
    available_memory,
    count_memory,
    default_threads,
    format_size,
    memory_limit,
    memory_limits,
    parse_memory,
    private_bytes,
    total_memory,
    used_bytes,
)
from graphprep.model.errors import UsageError


@pytest.mark.parametrize(
    ("text", "num_bytes"),
    [
        ("1B", 1),
        ("1048576b", 1 << 20),
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
    monkeypatch.setattr(budget, "available_memory", lambda: 1 << 30)
    assert parse_memory("auto") == parse_memory("AUTO ") == 1 << 29
    monkeypatch.setattr(budget, "available_memory", lambda: 1000)
    assert parse_memory("auto") == 256 << 20  # others may hold nearly all
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


@pytest.mark.parametrize(("text", "number"), [("100", "100"), (" 2.5 ", "2.5"), ("268435456", "268435456")])
def test_numbers_without_a_unit(text, number):
    message = f"{text!r} has no unit\n  fix: write the unit: {number}MiB, or {number}B for bytes"
    with pytest.raises(UsageError) as caught:
        parse_memory(text)
    assert str(caught.value) == message
    with pytest.raises(UsageError) as caught:
        budget.parse_device_memory(text, 1 << 30)
    assert str(caught.value) == f"--device-memory-limit: {message}"


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
        memory__stat=f"anon 5\ninactive_file {1 << 29}\nactive_file {1 << 29}\nfile 7\n",
    )
    assert available_memory() == 2 << 30
    assert parse_memory("auto") == 1 << 30


def test_cgroup_2_throttles_above_high(system):
    (system / "proc/self/cgroup").write_text("0::/a/b/c\n")
    fill(system / "cgroup/a/b/c", memory__max="max\n", memory__high="max\n", memory__current="5\n")
    fill(system / "cgroup/a/b", memory__max=f"{4 << 30}\n", memory__high=f"{3 << 30}\n", memory__current=f"{1 << 30}\n")
    fill(system / "cgroup/a", memory__max="max\n", memory__current=f"{9 << 30}\n")
    fill(system / "cgroup", memory__stat="anon 1\n")  # the root has no limit
    assert available_memory() == 2 << 30


def test_the_tightest_level_decides(system):
    (system / "proc/self/cgroup").write_text("0::/a/b\n")
    fill(system / "cgroup/a/b", memory__max=f"{8 << 30}\n", memory__current=f"{1 << 30}\n")
    fill(system / "cgroup/a", memory__max=f"{20 << 30}\n", memory__current=f"{17 << 30}\n")
    assert available_memory() == 3 << 30


def test_both_versions_side_by_side(system):
    """Version 1 controls memory; version 2 is mounted beside its folders, or the other way round."""
    (system / "proc/self/cgroup").write_text("4:cpu:/\n0::/job\n")
    fill(system / "cgroup/unified/job", memory__max=f"{1 << 30}\n", memory__current="0\n")
    assert available_memory() == 1 << 30


def test_cgroup_1(system):
    (system / "proc/self/cgroup").write_text("9:name=systemd:/\n4:cpu,memory:/job\n0::/\n")
    fill(
        system / "cgroup/memory/job",
        **{
            "memory__limit_in_bytes": f"{1 << 30}\n",
            "memory__usage_in_bytes": f"{1 << 29}\n",
            "memory__stat": f"total_inactive_file {1 << 27}\ninactive_file 3\ntotal_active_file {1 << 27}\n",
        },
    )
    assert available_memory() == (1 << 29) + (1 << 28)


def test_cgroup_1_without_a_limit(system):
    (system / "proc/self/cgroup").write_text("4:memory:/job\n")
    files = {"memory__limit_in_bytes": "9223372036854771712\n", "memory__usage_in_bytes": "4096\n"}
    fill(system / "cgroup/memory/job", **files)
    assert available_memory() == 16 << 30


def test_a_container_that_sees_the_path_outside(system):
    (system / "proc/self/cgroup").write_text("0::/docker/0123\n")
    fill(system / "cgroup", memory__max=f"{1 << 30}\n", memory__current=f"{1 << 29}\n")
    assert available_memory() == 1 << 29


def test_a_cgroup_that_is_full(system):
    (system / "proc/self/cgroup").write_text("0::/\n")
    fill(system / "cgroup", memory__max="100\n", memory__current="200\n")
    assert available_memory() == 0
    assert memory_limit("auto") == 1


def test_all_there_is(system, monkeypatch):
    assert total_memory() == 32 << 30
    (system / "proc/meminfo").unlink()
    monkeypatch.setattr(
        budget.os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 20}[name], raising=False
    )
    assert total_memory() == available_memory() == 4 << 30
    monkeypatch.delattr(budget.os, "sysconf")
    assert total_memory() == 0
    assert available_memory() == 4 << 30  # what is taken for granted


def test_limits_have_names_and_places(system, monkeypatch):
    resource = pytest.importorskip("resource")
    unlimited = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    given = {resource.RLIMIT_AS: (8 << 30, unlimited[1]), resource.RLIMIT_DATA: (4 << 30, 4 << 30)}
    (system / "proc/self/cgroup").write_text("4:memory:/job\n0::/a\n")
    fill(system / "cgroup/unified/a", memory__max=f"{3 << 30}\n", memory__high="max\n", memory__current=f"{1 << 30}\n")
    fill(system / "cgroup/memory/job", memory__limit_in_bytes="9223372036854771712\n", memory__usage_in_bytes="4096\n")
    fill(system / "proc/self", status=f"VmSize: {1 << 20} kB\nVmData: {1 << 19} kB\n")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: unlimited)
    cgroup = MemoryLimit("cgroup", str(system / "cgroup/unified/a/memory.max"), 3 << 30, 2 << 30)
    assert memory_limits() == [cgroup]  # version 1 has none, and says so with a large number
    monkeypatch.setattr(resource, "getrlimit", given.get)
    assert memory_limits() == [
        cgroup,
        MemoryLimit("ulimit -v", "", 8 << 30, 7 << 30),
        MemoryLimit("ulimit -d", "", 4 << 30, (4 << 30) - (1 << 29)),
    ]


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


# ---- what would end in a kill


def test_a_size_is_cut_to_what_the_container_has(system):
    (system / "proc/self/cgroup").write_text("0::/\n")
    fill(system / "proc/self", status=f"RssAnon: {1 << 20} kB\n")
    assert memory_limit("64GiB") == 64 << 30  # no container: who asks for more than there is may have swap
    fill(system / "cgroup", memory__max=f"{4 << 30}\n", memory__current=f"{2 << 30}\n")
    assert memory_limit("64GiB") == (1 << 30) + int((2 << 30) * 0.9)
    assert memory_limit("2GiB") == 2 << 30
    assert memory_limit("auto") == 1 << 30
    fill(system / "cgroup", memory__current=f"{5 << 30}\n")
    assert memory_limit("64GiB") == 1 << 30
    with pytest.raises(UsageError):
        memory_limit("much")


_PROBE = "from graphprep.engine.budget import *; print(available_memory(), parse_memory('auto'), memory_limit('64GiB'))"


def probe(before="", **options):
    """Ask a process of its own for (available, auto, 64GiB) as it sees them, after Python code that comes before."""
    run = subprocess.run(
        [sys.executable, "-c", f"{before}\n{_PROBE}"], capture_output=True, text=True, check=True, timeout=60, **options
    )
    return [int(word) for word in run.stdout.split()]


@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process(kind):
    available, auto, most = probe(f"import resource; resource.setrlimit(resource.{kind}, (1 << 30, 1 << 30))")
    assert 1 << 29 < available < 1 << 30
    assert 0.95 < 2 * auto / available < 1.05
    assert available * 0.9 <= most < 1 << 30


@pytest.fixture
def real_cgroup():
    """A cgroup of this machine with 512 MiB, where we may make one; yields the file that takes process IDs."""
    root = Path("/sys/fs/cgroup")
    version_1 = (root / "memory/memory.limit_in_bytes").exists()
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next((path for _, controllers, path in lines if controllers == ("memory" if version_1 else "")), "/")
    folder = (root / "memory" if version_1 else root) / own.lstrip("/") / f"graphprep-test-{os.getpid()}"
    made = False
    try:
        try:
            folder.mkdir()
            made = True
            (folder / ("memory.limit_in_bytes" if version_1 else "memory.max")).write_text(str(512 << 20))
        except OSError as error:
            pytest.skip(f"no cgroup can be made here: {error}")
        yield folder / "cgroup.procs"
    finally:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def test_a_real_cgroup(real_cgroup):
    available, auto, most = probe(preexec_fn=lambda: real_cgroup.write_text(str(os.getpid())))
    assert 400 << 20 < available < 512 << 20
    assert 0.9 < 2 * auto / available < 1.1
    assert 0.85 * available < most < 512 << 20


# ---- use


def test_private_bytes_see_memory_and_the_sampler_its_peak():
    before = private_bytes()
    assert before > 0
    with PeakSampler() as sampler:
        array = np.ones(8 << 20, np.float64)
        wait_for(lambda: sampler.peak_bytes > before + (60 << 20))
        del array
    assert not [thread for thread in threading.enumerate() if thread.name == "graphprep-memory"]
    assert sampler.stop() == sampler.peak_bytes


def test_the_sampler_looks_at_once(monkeypatch):
    monkeypatch.setattr(budget, "_SAMPLE_S", 3600)
    with PeakSampler() as sampler:
        wait_for(lambda: sampler.peak_bytes > 0)


def test_private_bytes_count_children_and_theirs():
    inner = "import time; held = b'x' * (60 << 20); print('ready', flush=True); time.sleep(60)"
    outer = (
        "import subprocess, sys, time; held = b'x' * (60 << 20)\n"
        f"child = subprocess.Popen([sys.executable, '-c', {inner!r}], stdout=subprocess.PIPE)\n"
        "child.stdout.readline(); print('ready', flush=True); time.sleep(60)"
    )
    before = private_bytes()
    with started([sys.executable, "-c", outer], stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        counted = private_bytes()
        (inner_pid,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(inner_pid), 9)
        process.kill()
    assert 120 << 20 < counted - before < 200 << 20
    assert private_bytes() < before + (30 << 20)


def test_a_call_counts_what_it_takes_beyond_what_was_held(system):
    (system / "proc/self/cgroup").write_text("0::/\n")
    fill(system / "cgroup", memory__max=f"{12 << 30}\n", memory__current=f"{11 << 30}\n")

    def hold(mib):
        fill(system / "proc/self", status=f"RssAnon: {mib << 10} kB\n")

    hold(10_000)
    assert used_bytes() == 10_000 << 20
    with count_memory():
        assert used_bytes() == 0
        hold(10_100)
        with count_memory():  # a call in a call, or beside it in another thread
            assert used_bytes() == 100 << 20
        assert memory_limit("64GiB") == (100 << 20) + int((1 << 30) * 0.9)
        hold(9_000)  # the caller's own memory became free meanwhile
        assert used_bytes() == 0
    assert used_bytes() == 9_000 << 20
    with count_memory(0), count_memory():  # a command, and what it calls
        assert used_bytes() == 9_000 << 20


def test_private_bytes_where_the_system_does_not_say(system):
    assert private_bytes() == 0
