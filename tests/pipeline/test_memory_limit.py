"""The memory limit holds for inputs larger than it: measured from outside, on a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from processes import watched

LIMIT = 192 << 20


def private_bytes(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    return sum(int(found) << 10 for found in re.findall(r"^Rss(?:Anon|Shmem):\s+(\d+)", status, re.MULTILINE))


def write_edges(path):
    """Plain edges: 240 MB of the same 1 MB, so that hubs grow long."""
    rng = np.random.default_rng(1)
    lines = b"".join(b"%d %d\n" % (a, b) for a, b in zip(*(rng.integers(0, 10**6, 70_000) for _ in "ab"), strict=True))
    with path.open("wb") as file:
        for _ in range(240 * 10**6 // len(lines)):
            file.write(lines)


def write_features(path):
    """EdgeList: nodes with 200 floats each, 240 MB."""
    values = ",".join(f"{x:.4f}" for x in np.random.default_rng(2).random(200)).encode()
    with path.open("wb") as file:
        for node in range(240 * 10**6 // len(values)):
            file.write(b"%d,-1,0,1,float32,200,%s\n" % (node * 7, values))
            file.write(b"%d,0,%d,1.5\n" % (node * 7, node // 2 * 7))


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (write_edges, ["--format", "edges", "--layout", "both", "--neighbor-order", "id"]),
        (write_features, ["--format", "edgelist", "--partitions", "3", "--partition-by", "hash"]),
    ],
    ids=["edges", "features"],
)
def test_the_limit_holds_for_inputs_larger_than_it(write, options, tmp_path):
    write(tmp_path / "in")
    assert (tmp_path / "in").stat().st_size > LIMIT
    for out in ("first", "second"):  # the first ever run compiles, in memory that nobody can bound
        peak = peak_of(["in", out, "--memory-limit", str(LIMIT), "-q", *options], tmp_path)
        assert (tmp_path / out / "metadata.json").exists()
        if peak < LIMIT:
            break
    assert 50 << 20 < peak < LIMIT, f"{peak >> 20} MiB"


def peak_of(args, folder):
    """Convert in a process of its own; return the most private memory that it was seen to hold."""
    command = [sys.executable, "-m", "graphprep", "convert", *args]
    seen = [0]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with watched(command, lambda pid: seen.append(private_bytes(pid)), cwd=folder, **pipes) as process:
        assert process.returncode == 0, process.stderr.read()
    return max(seen)
