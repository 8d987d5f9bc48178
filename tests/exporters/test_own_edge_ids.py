"""Edge IDs of the user's own, from the raw input to what trainers load."""

from __future__ import annotations

import json

import numpy as np
import pytest
from exporters.dgl_reader import read_graph, read_tensors
from torch_reader import read_naively

from graphprep.cli import main

pytestmark = pytest.mark.usefixtures("flags_named")


@pytest.fixture
def run(capsys):
    """Return what runs a command line: (exit code, messages)."""

    def call(*words):
        code = main.run([*map(str, words), "--quiet"])
        return code, capsys.readouterr().err

    return call


@pytest.fixture
def rows(tmp_path):
    """Return 300 edges between 40 nodes with their own IDs, any order of 0 to 299, also written as edges.csv."""
    rng = np.random.default_rng(11)
    found = np.column_stack([rng.integers(0, 40, (300, 2)), rng.permutation(300)])
    np.savetxt(tmp_path / "edges.csv", found, "%d", ",", header="src,dst,bill", comments="")
    return {own: (src, dst) for src, dst, own in found.tolist()}


def of_glt(out, parts):
    found = {}
    for part in range(parts):
        src, dst, own = (
            read_naively((out / f"part{part}/graph/{name}.pt").read_bytes(), name) for name in ("rows", "cols", "eids")
        )
        found |= dict(zip(own.tolist(), zip(src.tolist(), dst.tolist(), strict=True), strict=True))
    return found


def of_dgl(out, parts):
    found = {}
    raw = [read_tensors((out / f"part{part}/orig_nids.dgl").read_bytes())["_N"] for part in range(parts)]
    raw = np.concatenate(raw)
    for part in range(parts):
        graph = read_graph((out / f"part{part}/graph.dgl").read_bytes())
        src, dst = (raw[graph.node_data["_ID"][ends]] for ends in graph.matrices["coo"][:2])
        own = read_tensors((out / f"part{part}/orig_eids.dgl").read_bytes())["_N:_E:_N"]
        found |= dict(zip(own.tolist(), zip(src.tolist(), dst.tolist(), strict=True), strict=True))
    return found


def test_they_go_all_the_way(rows, run, tmp_path):
    """Also through what rewrites the store; and ``convert --export`` hands them on."""
    targets = f"glt={tmp_path}/glt,distdgl={tmp_path}/dgl,npy={tmp_path}/npy"
    given = ("--edge-id-col", "bill", "--partitions", 2, "--partition-by", "hash", "--export", targets)
    assert run("convert", tmp_path / "edges.csv", tmp_path / "store", *given)[0] == 0
    assert of_glt(tmp_path / "glt", 2) == of_dgl(tmp_path / "dgl", 2) == rows
    run("partition", tmp_path / "store", tmp_path / "parts", "--by", "fennel", "-p", 3)
    run("reorder", tmp_path / "parts", tmp_path / "hot", "--by", "degree", "--scope", "graph")
    run("transform", tmp_path / "hot", tmp_path / "few", "filter", "bill < 200")
    for store, wanted in (("hot", rows), ("few", {own: ends for own, ends in rows.items() if own < 200})):
        for target, read in (("glt", of_glt), ("distdgl", of_dgl)):
            out = tmp_path / f"{store}-{target}"
            assert run("export", tmp_path / store, out, "--to", target, "--edge-id-col", "bill", "--ids", "raw") == (0, "")
            assert read(out, 3) == wanted


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("bil", "--edge-id-col: there is no column 'bil' of edges\n  fix: write COL, or SRC:REL:DST:COL\n"),
        ("w", "--edge-id-col: 'w' must hold an integer for each edge, found dense float64[]\n  fix: name another\n"),
        ("_N:_E:_N:gap", "found optional dense int64[]\n  fix: name another\n"),
    ],
)
def test_what_are_no_ids_is_told_at_once(flag, message, run, tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst,w,gap\n0,1,0.5,1\n1,2,1.5,\n")
    code, told = run("convert", tmp_path / "edges.csv", tmp_path / "store", "--edge-id-col", flag)
    assert code == 2
    assert told.endswith(message)
    assert not (tmp_path / "store").exists()


def test_of_several_types_one_may_have_them(run, tmp_path):
    (tmp_path / "buys.csv").write_text("src,dst,own\n0,1,8\n1,0,9\n")
    (tmp_path / "likes.csv").write_text("src,dst\n1,1\n")
    tables = [("--edges", f"u:{name}:i={tmp_path / name}.csv") for name in ("buys", "likes")]
    words = [word for table in tables for word in table]
    assert run("convert", *words, tmp_path / "store", "--edge-id-col", "u:buys:i:own")[0] == 0
    metadata = json.loads((tmp_path / "store/metadata.json").read_text())
    assert [column["dtype"] for column in metadata["edge_schema"]["u:buys:i"]["columns"]] == ["int64"]
