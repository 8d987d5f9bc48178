"""The report of a partitioning against SciPy's matrices, and DGL's files of assignments."""

from __future__ import annotations

import json

import numpy as np
import pytest
from golden.golden_cases import SAMPLE_DATA, read_store

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import UsageError
from graphprep.model.schema import edge_type_path

scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

pytestmark = pytest.mark.usefixtures("flags_named")

KARATE = SAMPLE_DATA / "karate" / "karate.csv"
SHOP = SAMPLE_DATA / "shop" / "shop.jsonl"


def read_edges(store):
    """Yield (edge type, owner type, other type, owners, others) of a store of one partition, by typed IDs."""
    metadata = json.loads((store / "metadata.json").read_text())
    layout = metadata["layouts"][0]
    for text in metadata["edge_type"]:
        src, rel, dst = text.split(":")
        folder = store / "part-00000" / "edges" / edge_type_path((src, rel, dst)) / layout
        indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
        rows = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        yield (text, *((dst, src) if layout == "csc" else (src, dst)), rows, indices)


def scipy_quality(store, parts, num_parts, hops):
    """Return (cut, owned edges, halo, volume): matrices over all nodes, products for hops."""
    names = list(parts)
    sizes = [parts[name].size for name in names]
    first = dict(zip(names, np.cumsum([0, *sizes]), strict=False))
    part, size = np.concatenate([parts[name] for name in names]), sum(sizes)
    cut, owned = {}, {}
    needs = scipy.sparse.csr_matrix((size, size), dtype=bool)  # owner x other
    for text, owner, other, own_rows, own_others in read_edges(store):
        rows, others = own_rows + first[owner], own_others + first[other]
        cut[text] = int((part[rows] != part[others]).sum())
        owned[text] = tuple(np.bincount(part[rows], minlength=num_parts).tolist())
        needs += scipy.sparse.csr_matrix((np.ones(rows.size, bool), (rows, others)), (size, size))
    own = scipy.sparse.csr_matrix((np.ones(size, bool), (part, np.arange(size))), (num_parts, size))
    reach = own
    for _ in range(hops):
        reach = reach + reach @ needs
    found = reach.toarray() & ~own.toarray()
    halo = {name: tuple(found[:, first[name] : first[name] + parts[name].size].sum(axis=1).tolist()) for name in names}
    near = (own @ (needs + needs.T)).toarray() & ~own.toarray()
    return cut, owned, halo, int(near.sum())


@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize(("num_parts", "hops"), [(2, 1), (3, 2), (5, 3), (70, 1), (130, 2), (1, 1)])
@pytest.mark.parametrize("path", [KARATE, SHOP], ids=["karate", "shop"])
def test_the_report_is_that_of_matrices(path, num_parts, hops, layout, tmp_path):
    store = tmp_path / "store"
    graphprep.convert(path, store, layout=layout)
    given = {"by": "random", "partitions": num_parts, "seed": 3}
    summary = graphprep.partition(store, tmp_path / "parts", **given, assignment_only=True, halo_hops=hops)
    report, by_name = summary.report, {}
    for name, size in summary.num_nodes.items():
        by_name[name] = np.loadtxt(tmp_path / "parts" / f"{name}.txt", np.int64, ndmin=1)
        assert by_name[name].size == size
    cut, owned, halo, volume = scipy_quality(store, by_name, num_parts, hops)
    assert (report.cut_edges, report.edges, report.halo, report.halo_hops) == (cut, owned, halo, hops)
    assert report.nodes == {name: tuple(np.bincount(one, minlength=num_parts).tolist()) for name, one in by_name.items()}
    total, edges = report.total, sum(map(sum, owned.values()))
    assert (total.cut_edges, total.communication_volume) == (sum(cut.values()), volume)
    assert (total.cut_share, total.halo_nodes) == (sum(cut.values()) / edges, sum(map(sum, halo.values())))
    largest = max(map(sum, zip(*owned.values(), strict=True)))
    assert total.edge_imbalance == pytest.approx(largest * num_parts / edges)
    largest = max(map(sum, zip(*report.nodes.values(), strict=True)))
    assert total.node_imbalance == pytest.approx(largest * num_parts / sum(summary.num_nodes.values()))


def test_hash_stands_beside_and_a_store_has_what_the_report_says(tmp_path):
    graphprep.convert(SHOP, tmp_path / "store", layout="both")
    by_hash = graphprep.partition(tmp_path / "store", tmp_path / "hash", by="hash", partitions=3)
    other = graphprep.partition(tmp_path / "hash", tmp_path / "range", by="range", partitions=3)
    assert other.report.hash == by_hash.report.hash == by_hash.report.total
    assert other.report.total != other.report.hash
    metadata = json.loads((tmp_path / "range" / "metadata.json").read_text())
    assert [list(one) for one in other.report.nodes.values()] == metadata["num_nodes_per_chunk"]
    assert [list(one) for one in other.report.edges.values()] == metadata["num_edges_per_chunk"]


def test_little_memory_and_many_threads_tell_the_same(tmp_path):
    graphprep.generate("rmat", tmp_path / "rmat.txt", scale=12, seed=3)
    graphprep.convert(tmp_path / "rmat.txt", tmp_path / "store")
    given = {"by": "random", "partitions": 5, "assignment_only": True, "halo_hops": 2}
    found = [
        graphprep.partition(tmp_path / "store", tmp_path / f"out{number}", **given, **run).report
        for number, run in enumerate(({"threads": 1}, {"threads": 4, "memory_limit": "100MiB"}))
    ]
    assert found[0] == found[1]
    assert read_store(tmp_path / "out0") == read_store(tmp_path / "out1")


def test_assignments_are_read_back(tmp_path):
    """Of a store whose nodes are in another order: files are by raw ID."""
    graphprep.convert(SHOP, tmp_path / "store", partitions=2, partition_by="hash")
    graphprep.reorder(tmp_path / "store", tmp_path / "hot")
    given = {"by": "random", "partitions": 3, "seed": 1}
    graphprep.partition(tmp_path / "hot", tmp_path / "parts", **given, assignment_only=True)
    graphprep.partition(tmp_path / "hot", tmp_path / "want", **given)
    graphprep.partition(tmp_path / "store", tmp_path / "out", by=tmp_path / "parts", partitions=3)
    got, want = read_store(tmp_path / "out"), read_store(tmp_path / "want")
    assert got.pop("metadata.json") == want.pop("metadata.json").replace(b'"random"', b'"file"')
    assert got == want
    meta = json.loads((tmp_path / "parts" / "partition_meta.json").read_text())
    assert meta == {"version": "1.0.0", "num_parts": 3, "algo_name": "random"}


def test_assignments_replace_only_assignments(tmp_path):
    graphprep.convert(KARATE, tmp_path / "store")
    given = {"by": "hash", "partitions": 2, "assignment_only": True}
    graphprep.partition(tmp_path / "store", tmp_path / "parts", **given)
    meta = json.loads((tmp_path / "parts" / "partition_meta.json").read_text())
    assert meta["algo_name"] == "metis"  # DGL knows no other name
    with pytest.raises(UsageError, match="the output exists"):
        graphprep.partition(tmp_path / "store", tmp_path / "parts", **given)
    graphprep.partition(tmp_path / "store", tmp_path / "parts", **{**given, "partitions": 3}, overwrite=True)
    assert json.loads((tmp_path / "parts" / "partition_meta.json").read_text())["num_parts"] == 3
    (tmp_path / "parts" / "thesis.doc").write_text("")
    with pytest.raises(UsageError, match=r"holds files that graphprep did not write there: thesis\.doc;"):
        graphprep.partition(tmp_path / "store", tmp_path / "parts", **given, overwrite=True)
    assert (tmp_path / "parts" / "thesis.doc").exists()


def test_the_report_as_text(tmp_path, capsys):
    graphprep.convert(KARATE, tmp_path / "store")
    capsys.readouterr()
    assert run(["partition", str(tmp_path / "store"), str(tmp_path / "out"), "--by", "range", "-p", "12"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split() == ["part", "nodes", "edges", "halo"]
    assert lines[14] == "  ... and 2 more; -v shows all"
    assert lines[15].split() == ["range", "hash"]
    assert [line[:24].strip() for line in lines[16:21]] == [
        *("edges cut", "halo of 1 hop", "communication volume", "imbalance of nodes", "imbalance of edges"),
    ]


def test_a_halo_ends_where_no_edge_leads_on(tmp_path):
    graphprep.convert(KARATE, tmp_path / "store")
    given = {"by": "random", "partitions": 5, "assignment_only": True}
    reports = [
        graphprep.partition(tmp_path / "store", tmp_path / str(hops), **given, halo_hops=hops).report for hops in (100, 10**12)
    ]
    assert reports[0].halo == reports[1].halo
