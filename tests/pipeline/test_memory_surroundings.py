"""Memory and disk that others bound: containers, ulimit, a disk that fills up, a run that is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import started, wait_for, watched
from test_memory_limit import private_bytes

MIB = 1 << 20
COMMAND = [sys.executable, "-m", "graphprep", "convert"]


def run(*args, **options):
    return subprocess.run([*COMMAND, *map(str, args)], capture_output=True, text=True, timeout=300, check=False, **options)


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    """3 M edges, 41 MB."""
    path = tmp_path_factory.mktemp("edges") / "edges.txt"
    rng = np.random.default_rng(3)
    lines = b"".join(b"%d %d\n" % (a, b) for a, b in rng.integers(0, 10**6, (100_000, 2)).tolist())
    path.write_bytes(lines * 30)
    return path


# ---- containers and ulimit


@pytest.fixture
def cgroup():
    """A cgroup of this machine, where we may make one: (folder, name of the file that holds the limit)."""
    root = Path("/sys/fs/cgroup")
    version_1 = (root / "memory/memory.limit_in_bytes").exists()
    lines = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    own = next((path for _, controllers, path in lines if controllers == ("memory" if version_1 else "")), "/")
    folder = (root / "memory" if version_1 else root) / own.lstrip("/") / f"graphprep-test-{os.getpid()}"
    limit = folder / ("memory.limit_in_bytes" if version_1 else "memory.max")
    made = False
    try:
        try:
            folder.mkdir()
            made = True
            limit.write_text(str(320 * MIB))
        except OSError as error:
            pytest.skip(f"no cgroup can be made here: {error}")
        yield folder
    finally:
        if made:
            with contextlib.suppress(OSError):
                folder.rmdir()


def test_a_container_that_is_smaller_than_what_is_asked_for(cgroup, edges, tmp_path):
    """Nothing is killed, whatever --memory-limit says."""
    done = run(
        *(edges, tmp_path / "out", "--format", "edges", "--layout", "both", "--memory-limit", "64GiB"),
        preexec_fn=lambda: (cgroup / "cgroup.procs").write_text(str(os.getpid())),
    )
    assert done.returncode == 0, done.stderr


def test_ulimit_leaves_less_than_what_is_asked_for(edges, tmp_path):
    import resource

    def limit_to(num_bytes):
        return lambda: resource.setrlimit(resource.RLIMIT_DATA, (num_bytes, num_bytes))

    args = (edges, tmp_path / "out", "--format", "edges", "--memory-limit", "64GiB")
    done = run(*args, preexec_fn=limit_to(600 * MIB))
    assert done.returncode == 0, done.stderr
    done = run(*args[:1], tmp_path / "none", *args[2:], preexec_fn=limit_to(120 * MIB))
    assert done.returncode == 4
    assert "MiB: raise its container's limit, or ulimit\n" in done.stderr
    assert not (tmp_path / "none").exists()


# ---- a process that holds much already

_NOTEBOOK = """
import sys
import numpy as np
import graphprep
from graphprep.engine import budget
held = np.ones(700 << 17)  # 700 MiB
budget._system_memory = lambda: 20 << 20  # of a neighbour that has taken the rest
before = budget.private_bytes()
options = graphprep.RunOptions(**({"memory_limit": sys.argv[3]} if sys.argv[3:] else {}))
done = graphprep.convert(sys.argv[1], sys.argv[2], format="edges", run=options)
report = graphprep.validate(sys.argv[2])
assert report.sound
graphprep.reorder(sys.argv[2], sys.argv[2] + "-hot", run=options)
graphprep.export(sys.argv[2], sys.argv[2] + "-glt", "glt", run=options)
assert held.all()
print(before, done.peak_memory_bytes)
"""


@pytest.mark.parametrize("limit", [[], ["256MiB"]], ids=["auto", "size"])
def test_a_call_from_python_does_not_answer_for_what_its_process_holds(edges, tmp_path, limit):
    """Measured from outside: 700 MiB of arrays, and no more than the limit beyond them; auto is 256 MiB where nothing is free."""
    limit_bytes = 256 * MIB
    for out in ("first", "second"):  # the first ever run compiles, in memory that nobody can bound
        command = [sys.executable, "-c", _NOTEBOOK, str(edges), str(tmp_path / out), *limit]
        seen = [0]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        with watched(command, lambda pid, seen=seen: seen.append(private_bytes(pid)), **pipes) as process:
            text, errors = process.communicate()
        peak = max(seen)
        assert process.returncode == 0, errors
        before, counted = map(int, text.split())
        if peak - before < limit_bytes:
            break
    assert before > 700 * MIB
    assert peak - before < limit_bytes
    assert 10 * MIB < counted < limit_bytes


def test_a_command_counts_all_from_its_start(edges, tmp_path, capsys):
    from graphprep.cli.main import run as command

    held = np.ones(300 * MIB, np.uint8)
    assert command(["convert", str(edges), str(tmp_path / "out"), "--format", "edges", "--memory-limit", "280MiB"]) == 4
    assert held.all()
    assert "leaves 0 MiB to work with" in capsys.readouterr().err


# ---- disks


@pytest.fixture
def small_disk(tmp_path):
    """A disk of 6 MiB, where we may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "none", folder], capture_output=True, text=True, check=False
    )
    if done.returncode:
        pytest.skip(f"nothing can be mounted here: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def spilling(edges, out, tmp_dir):
    """Return arguments with which a run spills more than the disk holds, but less than what is sure to be needed."""
    return (edges, out, "--format", "edges", "--memory-limit", "160MiB", "--tmp-dir", tmp_dir, "--layout", "both", "-q")


def test_a_disk_that_fills_up_while_runs_are_written(small_disk, edges, tmp_path):
    done = run(*spilling(edges, tmp_path / "out", small_disk))
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(f"error: {small_disk}/.graphprep-tmp-")
    assert done.stderr.endswith(": no space left on device\n  fix: free some space, or choose another place with --tmp-dir\n")
    assert list(small_disk.iterdir()) == []
    assert [path.name for path in tmp_path.iterdir()] == ["disk"]


def test_a_disk_that_fills_up_while_stdin_is_copied(small_disk, edges, tmp_path):
    with started(["cat", edges], stdout=subprocess.PIPE) as source:
        done = run("-", *spilling(edges, tmp_path / "out", small_disk)[1:], stdin=source.stdout)
        source.stdout.close()
    assert done.returncode == 3, done.stderr
    assert done.stderr.endswith(": no space left on device\n  fix: free some space, or choose another place with --tmp-dir\n")
    assert list(small_disk.iterdir()) == []


def test_a_disk_that_is_too_small_for_the_store_is_told_at_once(small_disk, edges, tmp_path):
    done = run(edges, small_disk / "out", "--format", "edges", "--tmp-dir", tmp_path, "-q")
    assert done.returncode == 3
    assert done.stderr == (
        f"error: {small_disk}: the store takes at least 11.4 MiB, and 6.0 MiB are free\n"
        "  fix: free some space, or choose another disk\n"
    )
    assert list(small_disk.iterdir()) == []


# ---- a run that is killed


def test_the_next_run_removes_what_a_killed_one_left(edges, tmp_path):
    tmp = tmp_path / "tmp"
    tmp.mkdir()
    args = ("-", str(tmp_path / "out"), "--format", "edges", "--tmp-dir", str(tmp))
    with started([*COMMAND, *args], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        process.stdin.write(b"1 2\n" * 1000)
        process.stdin.flush()
        wait_for(lambda: list(tmp.glob(".graphprep-tmp-*/*")))
        process.send_signal(signal.SIGKILL)
        assert process.wait(30) == -signal.SIGKILL
    assert len(list(tmp.iterdir())) == 1
    assert len(list(tmp_path.glob(".out.graphprep-*"))) == 1
    done = run(*args, input="1 2\n")
    assert done.returncode == 0, done.stderr
    assert list(tmp.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "tmp"]
