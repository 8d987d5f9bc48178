"""The memory limit holds for inputs larger than it: measured from outside, on a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from processes import watched

LIMIT = 192 << 20
LARGE = (pytest.mark.slow, pytest.mark.heavy)


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
        peak = peak_of(["in", out, "--memory-limit", f"{LIMIT}B", "-q", *options], tmp_path)
        assert (tmp_path / out / "metadata.json").exists()
        if peak < LIMIT:
            break
    assert 50 << 20 < peak < LIMIT, f"{peak >> 20} MiB"


def write_hub(path):
    """20 M edges of one node: 160 MB of records in one row, which is built in pieces."""
    with path.open("wb") as file:
        for _ in range(20):
            file.write(b"0 0\n" * 10**6)


def write_weighted_hub(path):
    """8 M edges from and to one node, with weights that repeat."""
    lines = b"".join(b"0,0,%d.5\n" % (i * 7919 % 1000) for i in range(10**5))
    with path.open("wb") as file:
        for _ in range(80):
            file.write(lines)


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (write_hub, []),
        pytest.param(write_hub, ["--layout", "both", "--neighbor-order", "id"], marks=pytest.mark.slow),
        pytest.param(write_hub, ["--layout", "csr", "--partitions", "2"], marks=LARGE),
        pytest.param(write_weighted_hub, ["--neighbor-order", "weight"], marks=pytest.mark.slow),
        pytest.param(write_weighted_hub, ["--layout", "both"], marks=LARGE),
        pytest.param(write_weighted_hub, ["--neighbor-order", "weight", "--layout", "both"], marks=LARGE),
    ],
    ids=["csc", "both, id", "csr", "weight", "columns", "weight, both"],
)
def test_the_limit_holds_for_a_hub(write, options, tmp_path):
    write(tmp_path / "in")
    for out in ("first", "second"):  # the first ever run compiles, in memory that nobody can bound
        peak = peak_of(["in", out, "--format", "edges", "--memory-limit", f"{LIMIT}B", "-q", *options], tmp_path)
        if peak < LIMIT:
            break
    assert peak < LIMIT, f"{peak >> 20} MiB"


def refused_within(args, folder):
    """Convert in vain, within the limit; return the exit code and what is said."""
    command = [sys.executable, "-m", "graphprep", "convert", *args, "--memory-limit", f"{LIMIT}B", "-q"]
    seen = [0]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with watched(command, lambda pid: seen.append(private_bytes(pid)), cwd=folder, **pipes) as process:
        errors = process.stderr.read()
    assert max(seen) < LIMIT, f"{max(seen) >> 20} MiB"
    return process.returncode, errors


@pytest.mark.parametrize("row", [0, 1000])
@pytest.mark.parametrize("size", [15_000_000, 100_000_000])
def test_one_stray_quote(row, size, tmp_path):
    lines = [f"{i},{i * 7 % 1000},0.5,note {i}\n" for i in range(100_000)]
    text = "".join(lines).encode()
    lines[row] = lines[row].replace("note", '"note')
    with (tmp_path / "in.csv").open("wb") as file:
        file.write(b"src,dst,weight,note\n" + "".join(lines).encode())
        while file.tell() < size:
            file.write(text)
    code, errors = refused_within(["out", "--edges", "a:r:a=in.csv"], tmp_path)
    assert code == 1
    column = lines[row].index('"') + 1
    assert errors.startswith(f"error: in.csv:{row + 2}:{column}: a quote does not close in the ")
    assert errors.endswith("\n  fix: close it; double the quotes inside a quoted field\n")


@pytest.mark.parametrize(
    ("name", "text", "num_bytes", "fix"),
    [
        (
            "graph.yaml",
            "nodes: [" + "1, " * 8_000_000 + "]",
            838860,
            "write it as JSON, which takes less, or raise --memory-limit",
        ),
        ("graph.json", '{"nodes": [' + "{}, " * 4_000_000 + "{}]}", 4194304, "raise --memory-limit"),
    ],
)
def test_a_config_of_megabytes(name, text, num_bytes, fix, tmp_path):
    (tmp_path / name).write_text(text)
    code, errors = refused_within([name, "out", "--format", "graph"], tmp_path)
    assert code == 4
    assert errors == (
        f"error: {name}: the document has more than the {num_bytes} bytes that the memory limit leaves\n  fix: {fix}\n"
    )


@pytest.mark.parametrize("begin", [b"", b"1 2\n2 3\n"], ids=["at once", "later"])
def test_one_line_of_300_mb(begin, tmp_path):
    with (tmp_path / "in").open("wb") as file:
        file.write(begin)
        for _ in range(300):
            file.write(b"7 " * 500_000)
    code, errors = refused_within(["in", "out", "--format", "edges"], tmp_path)
    assert code == 4
    if begin:
        assert errors.startswith(
            "error: in:3:1: the line has 300000000 bytes, and the memory limit leaves 8388608 for a line\n"
        )
    else:
        assert errors == (
            "error: in: no two records in the first 8.0 MiB, which is all that the memory limit leaves for one\n"
            "  fix: write a record a line; of data that is no edge list, name the --format, or raise --memory-limit\n"
        )


def peak_of(args, folder):
    """Convert in a process of its own; return the most private memory that it was seen to hold."""
    command = [sys.executable, "-m", "graphprep", "convert", *args]
    seen = [0]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with watched(command, lambda pid: seen.append(private_bytes(pid)), cwd=folder, **pipes) as process:
        assert process.returncode == 0, process.stderr.read()
    return max(seen)


def write_wide(path, kind, num_columns):
    """Write two rows of so many columns; the first two are IDs."""
    names = ["src", "dst", *(f"c{i}" for i in range(num_columns - 2))]
    if kind == "parquet":
        pq.write_table(pa.table({name: [1, 2] for name in names}), path)
        return
    if kind == "jsonl":
        rows = ["{" + ",".join(f'"{name}":{i}' for name in names) + "}" for i in (1, 2)]
    else:
        rows = [",".join(names), *(",".join(["1"] * num_columns) for _ in range(2))]
    path.write_text("\n".join(rows) + "\n")


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "args", "line"),
    [
        ("csv", ["in", "out", "--format", "edges"], ":1:1"),
        ("csv", ["--edges", "a:b:a=in", "out"], ":1:1"),
        ("jsonl", ["--edges", "a:b:a=in", "out"], ":1:1"),
        ("parquet", ["in", "out", "--format", "edges"], ""),
        ("parquet", ["--edges", "a:b:a=in", "out"], ""),
    ],
)
def test_more_columns_than_the_limit_leaves(kind, args, line, tmp_path):
    write_wide(tmp_path / "in", kind, 17_000)
    code, errors = refused_within(args, tmp_path)
    assert (code, errors) == (
        4,
        f"error: in{line}: 17,000 columns, but the memory limit leaves 16,384\n"
        "  fix: raise --memory-limit; or keep many numbers as one array, for --node-data or --edge-data NAME=FILE.npy\n",
    )


def test_a_long_text_is_one_column(tmp_path):
    (tmp_path / "in").write_text('src,dst,text\n1,2,"' + "word, " * 20_000 + '"\n')
    assert peak_of(["in", "out", "--format", "edges", "--memory-limit", f"{LIMIT}B", "-q"], tmp_path) < LIMIT
