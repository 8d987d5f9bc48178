"""The least limit that a run names is enough, for every kind of input; less ends at once. Measured from outside.

Inside, every stage holds what it takes against what it declares.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys

import numpy as np
import pytest
from golden.golden_cases import SAMPLE_DATA
from processes import watched
from test_memory_limit import private_bytes

import graphprep

MIB = 1 << 20
CHECKED = {**os.environ, "GRAPHPREP_CHECK_MEMORY": "1"}


def convert(folder, *args, command="convert"):
    """Run a command and watch it; returns (exit code, peak in bytes, stderr, what --json says)."""
    command = [sys.executable, "-m", "graphprep", command, *map(str, args), "-q", "--json"]
    seen = [0]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": CHECKED}
    with watched(command, lambda pid: seen.append(private_bytes(pid)), cwd=folder, **pipes) as process:
        out, err = process.communicate()
    return process.returncode, max(seen), err, json.loads(out) if out else {}


def convert_within(folder, *options):
    """Convert the file ``in`` within the least limit that is named for it; returns what --json says."""
    limit = find_least(folder / "in", *options)
    for out in ("first", "second"):  # the first ever run compiles, in memory that nobody can bound
        code, peak, err, done = convert(folder, "in", out, *options, "--memory-limit", f"{limit}MiB")
        assert code == 0, err
        if peak < limit * MIB:
            break
    assert 20 * MIB < peak < limit * MIB, f"{peak / MIB:.0f} MiB of {limit}"
    return done


def find_least(path, *options):
    """Return the limit in MiB that a run names when it has too little: some options load more modules than others."""
    code, _, err, _ = convert(".", path, "never-written", *options, "--memory-limit", "16MiB")
    assert code == 4
    found = re.fullmatch(
        r"error: the memory limit of 16 MiB leaves 0 MiB to work with\n  fix: raise --memory-limit to (\d+)MiB or more\n", err
    )
    assert found, err
    return int(found[1])


def write_ids(path, ids, num_lines):
    """Write lines of two of the given IDs, at random but with hubs."""
    rng = np.random.default_rng(num_lines)
    picks = (rng.random((100_000, 2)) ** 3 * len(ids)).astype(np.int64)
    block = b"".join(b"%b %b\n" % (ids[a], ids[b]) for a, b in picks.tolist())
    with path.open("wb") as file:
        for _ in range(num_lines // 100_000):
            file.write(block)


def write_weighted(path):
    write_ids(path, [b"%d" % i for i in range(99_000)], 1_500_000)


def write_sparse(path):
    rng = np.random.default_rng(1)
    write_ids(path, [b"%d" % i for i in rng.integers(1 << 62, (1 << 63) - 1, 300_000).tolist()], 800_000)


def write_names(path):
    write_ids(path, [b"node/%d/%x" % (i, i * 7919) for i in range(300_000)], 600_000)


def write_features(path):
    values = ",".join(f"{x:.4f}" for x in np.random.default_rng(2).random(16)).encode()
    with path.open("wb") as file:
        for node in range(300_000):
            file.write(b"%d,-1,0,1,float32,16,%s\n%d,0,%d,1.5\n" % (node * 7, values, node * 7, node // 2 * 7))


def write_many_types(path):
    values = ",".join(f"{x:.4f}" for x in np.random.default_rng(2).random(16)).encode()
    with path.open("wb") as file:
        for node in range(200_000):
            kind = node % 61
            file.write(b"%d,-1,%d,1,float32,16,%s\n%d,%d,%d,1.5\n" % (node * 7, kind, values, node * 7, kind, node // 2 * 7))


@pytest.mark.parametrize(
    ("write", "options"),
    [
        (write_weighted, ["--format", "edges", "--layout", "both", "--partitions", "1000", "--neighbor-order", "id"]),
        (write_weighted, ["--format", "edges", "--partitions", "8", "--partition-by", "hash", "--threads", "4"]),
        (write_sparse, ["--format", "edges", "--ids", "sparse"]),
        (write_names, ["--format", "edges", "--id-type", "string", "--layout", "both"]),
        (write_features, ["--format", "edgelist", "--partitions", "3"]),
        pytest.param(write_many_types, ["--format", "edgelist", "--neighbor-order", "weight"], marks=pytest.mark.heavy),
    ],
    ids=["partitions", "threads", "sparse", "names", "features", "types"],
)
def test_the_least_limit_is_enough(write, options, tmp_path):
    write(tmp_path / "in")
    assert convert_within(tmp_path, *options)["spilled_bytes"] > MIB


@pytest.mark.heavy
def test_many_edges_whose_map_does_not_fit_are_scattered_out_within_the_limit(tmp_path):
    """A map of 1,000,000 IDs takes more than its share of 256 MiB, and 4 M edges have types and weights."""
    with (tmp_path / "in").open("wb") as file:
        for low in range(0, 1_000_000, 10_000):
            ids = np.arange(low, low + 10_000)
            nodes = [b"%d,-1,%d,1" % (node * 3, node % 2) for node in ids.tolist()]
            ends = np.random.default_rng(low).integers(0, 1_000_000, (ids.size, 4))
            edges = [
                b"%d,%d,%d,0.5" % (node * 3, end % 2, end * 3)
                for node, row in zip(ids.tolist(), ends.tolist(), strict=True)
                for end in row
            ]
            file.write(b"\n".join([*nodes, *edges, b""]))
    limit = ["--memory-limit", "256MiB"]
    code, peak, err, done = convert(tmp_path, "in", "out", "--format", "edgelist", "--layout", "csr", *limit)
    assert code == 0, err
    assert done["spilled_bytes"] > 100 * MIB
    assert peak < 256 * MIB, f"{peak / MIB:.0f} MiB"


@pytest.mark.heavy
def test_the_maps_of_many_node_types_are_within_the_limit_together(tmp_path):
    """A map of 240,000 IDs fits its share of 192 MiB, and those of 24 types would take 140 MiB."""
    rng = np.random.default_rng(4)
    ids = [np.unique(rng.integers(1 << 60, 1 << 62, 240_000)) for _ in range(24)]
    flags = []
    for number, (own, other) in enumerate(itertools.pairwise([*ids, ids[0]])):
        (tmp_path / f"n{number}.csv").write_text("id\n" + "\n".join(map(str, rng.permutation(own).tolist())) + "\n")
        ends = zip(rng.choice(own, 10_000).tolist(), rng.choice(other, 10_000).tolist(), strict=True)
        (tmp_path / f"e{number}.csv").write_text("src,dst\n" + "".join(f"{src},{dst}\n" for src, dst in ends))
        flags += ["--nodes", f"t{number}=n{number}.csv"]
        flags += ["--edges", f"t{number}:to:t{(number + 1) % 24}=e{number}.csv"]
    for out in ("first", "second"):
        code, peak, err, done = convert(tmp_path, out, *flags, "--memory-limit", "192MiB")
        assert code == 0, err
        if peak < 192 * MIB:
            break
    assert sum(done["num_nodes"].values()) == sum(map(len, ids))
    assert peak < 192 * MIB, f"{peak / MIB:.0f} MiB"


@pytest.mark.parametrize("format", ["parquet", "chunked"])
def test_what_arrow_reads_is_within_the_limit(format, tmp_path):
    """Arrow's own pool would keep what it held while it read, for the stages after that to bear."""
    made = tmp_path / "in"
    graphprep.generate("hetero", str(made), nodes=500_000, edges=5_000_000, format=format)
    given = made / "graph.yaml" if format == "parquet" else made
    flags = ["--layout", "both", "--partitions", "4", "--partition-by", "hash", "--memory-limit", "256MiB"]
    code, peak, err, _ = convert(tmp_path, given, "out", *flags)
    assert code == 0, err
    assert peak < 256 * MIB, f"{peak / MIB:.0f} MiB"


@pytest.mark.parametrize(("kind", "group_rows"), [("numbers", 20_000), ("texts", 20_000), ("numbers", 4_000)])
@pytest.mark.heavy
def test_tables_of_many_columns_are_within_the_limit(kind, group_rows, tmp_path):
    """One row group of 1,100 columns, decoded, takes 176 MB; what is noted of each column and batch took 150 MB more."""
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rng, num_rows = np.random.default_rng(1), 20_000
    table = {"src": np.arange(num_rows), "dst": np.arange(num_rows) * 7 % num_rows}
    texts = pa.array([f"t{row * 13 % 997}" for row in range(num_rows)])
    table |= {f"c{i}": texts if kind == "texts" and i % 4 == 0 else rng.random(num_rows) for i in range(1100)}
    pq.write_table(pa.table(table), tmp_path / "in", row_group_size=group_rows)
    code, peak, err, _ = convert(tmp_path, "in", "out", "--memory-limit", "256MiB")
    assert code == 0, err
    assert peak < 240 * MIB, f"{peak / MIB:.0f} MiB"


@pytest.mark.parametrize(
    "more", [[], ["--layout", "both"], ["--partitions", "3", "--neighbor-order", "id"]], ids=["one", "both", "id"]
)
def test_nodes_without_edges_take_memory_too(more, tmp_path):
    """30 M nodes and two edges."""
    (tmp_path / "in").write_text("0 29999999\n5 7\n")
    convert_within(tmp_path, "--format", "edges", "--ids", "dense", *more)


@pytest.mark.parametrize(
    "name", ["shop/shop.edgelist", "shop/shop.jsonl", "shop/shop.tsv", "shop/chunked", "people/graph.json"]
)
@pytest.mark.parametrize("limit", [1, 72])
def test_less_ends_at_once(name, limit, tmp_path):
    code, _, err, _ = convert(tmp_path, SAMPLE_DATA / name, tmp_path / "out", "--memory-limit", f"{limit}MiB")
    assert code == 4
    assert err.startswith(f"error: the memory limit of {limit} MiB leaves 0 MiB to work with\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("triangles", ["exact", "sampled"])
def test_statistics_are_found_within_the_limit(triangles, tmp_path):
    """1.5 M edges with a weight and columns of nodes, whose buckets, degrees and triangles do not fit 24 MiB."""
    write_weighted(tmp_path / "in")
    convert(tmp_path, "in", "store", "--format", "edges", "--partitions", "3")
    code, _, err, _ = convert(tmp_path, "store", "--memory-limit", "16MiB", command="stats")
    assert code == 4
    limit = int(re.search(r"raise --memory-limit to (\d+)MiB", err)[1])
    for _ in range(2):  # the first ever run compiles, in memory that nobody can bound
        options = ["--triangles", triangles, "--memory-limit", f"{limit}MiB"]
        code, peak, err, done = convert(tmp_path, "store", *options, command="stats")
        assert code == 0, err
        if peak < limit * MIB:
            break
    assert 20 * MIB < peak < limit * MIB, f"{peak / MIB:.0f} MiB of {limit}"
    assert done["spilled_bytes"] > MIB
    wanted = convert(tmp_path, "store", "--triangles", triangles, command="stats")[3]
    for name in ("nodes", "edges", "components", "triangles", "parts"):
        assert done[name] == wanted[name]
