"""Streaming partitioners: against plain Python, at all limits, and beside hash on generated and real graphs."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from golden.golden_cases import SAMPLE_DATA, read_store
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.streaming import stream, stream_order

import graphprep
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import edge_type_path

pytestmark = pytest.mark.usefixtures("flags_named")

KARATE = SAMPLE_DATA / "karate" / "karate.csv"
SHOP = SAMPLE_DATA / "shop" / "shop.jsonl"
METHODS = ("ldg", "fennel")


def assign(store, out, by, num_parts, **options):
    """Return (summary, partitions by type and raw rank)."""
    summary = graphprep.partition(store, out, by=by, partitions=num_parts, assignment_only=True, **options)
    return summary, [np.loadtxt(out / f"{name}.txt", np.int64, ndmin=1).tolist() for name in summary.num_nodes]


def read_pairs(store):
    """Edges of a store of one partition by raw order, as pairs of (type, rank), and the number of nodes of each type."""
    metadata = json.loads((store / "metadata.json").read_text())
    types, pairs = metadata["node_type"], []
    for text in metadata["edge_type"]:
        src, rel, dst = text.split(":")
        folder = store / "part-00000" / "edges" / edge_type_path((src, rel, dst)) / "csc"
        indptr, indices = np.load(folder / "indptr.npy"), np.load(folder / "indices.npy")
        for row in range(indptr.size - 1):
            pairs += [
                ((types.index(src), one), (types.index(dst), row)) for one in indices[indptr[row] : indptr[row + 1]].tolist()
            ]
    return metadata["num_nodes_per_type"], pairs


def same_class(sizes, weight=lambda node: 1, one=lambda node: 0):
    return {node: (one(node), weight(node)) for node in stream_order(sizes)}


def as_lists(parts, sizes):
    return [[parts[number, rank] for rank in range(size)] for number, size in enumerate(sizes)]


@pytest.mark.parametrize("by", METHODS)
@pytest.mark.parametrize(("num_parts", "passes"), [(2, 1), (3, 2), (5, 5), (40, 5), (1, 1)])
@pytest.mark.parametrize("path", [KARATE, SHOP], ids=["karate", "shop"])
def test_nodes_go_where_plain_loops_put_them(path, num_parts, passes, by, tmp_path):
    graphprep.convert(path, tmp_path / "store")
    sizes, pairs = read_pairs(tmp_path / "store")
    _, found = assign(tmp_path / "store", tmp_path / "parts", by, num_parts, passes=passes)
    assert found == as_lists(stream(by, sizes, pairs, num_parts, [same_class(sizes)], passes), sizes)


@pytest.mark.parametrize("by", METHODS)
@settings(max_examples=25, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), min_size=1, max_size=60),
    num_parts=st.integers(1, 6),
    most=st.sampled_from([1.0, 1.1, 2.5]),
)
def test_any_graph(edges, num_parts, most, by, tmp_path_factory):
    """Loops, parallel edges, nodes without edges."""
    folder = tmp_path_factory.mktemp("any")
    (folder / "edges.txt").write_text("".join(f"{src} {dst}\n" for src, dst in edges))
    graphprep.convert(folder / "edges.txt", folder / "store", format="edges", num_nodes={"": 12}, ids="dense")
    _, found = assign(folder / "store", folder / "parts", by, num_parts, max_imbalance=most)
    pairs = [((0, src), (0, dst)) for src, dst in edges]
    assert found == as_lists(stream(by, [12], pairs, num_parts, [same_class([12])], most=most), [12])
    assert max(np.bincount(found[0])) <= max(-(-12 // num_parts), int(12 / num_parts * most))


@pytest.mark.parametrize("by", METHODS)
def test_balances(by, tmp_path):
    """Edges, types, a column of numbers, masks, splits, categories; several at a time."""
    (tmp_path / "user.csv").write_text(
        "id,train,age,kind\n" + "".join(f"{i},{i % 3 == 0},{i % 7},{'abc'[i % 3]}\n" for i in range(40))
    )
    (tmp_path / "item.csv").write_text("id\n" + "".join(f"{i}\n" for i in range(25)))
    pairs = [((0, i % 40), (1, (i * i) % 25)) for i in range(150)]
    (tmp_path / "buys.csv").write_text("src,dst\n" + "".join(f"{one[1]},{other[1]}\n" for one, other in pairs))
    tables = {
        "nodes": {name: str(tmp_path / f"{name}.csv") for name in ("user", "item")},
        "edges": {("user", "buys", "item"): str(tmp_path / "buys.csv")},
    }
    graphprep.convert(
        **tables, out=tmp_path / "store", categories="user:kind", decoder_options={"src_col": "src", "dst_col": "dst"}
    )
    sizes, stored = read_pairs(tmp_path / "store")
    owned = [other for _, other in pairs]
    assert json.loads((tmp_path / "store" / "metadata.json").read_text())["node_type"] == ["user", "item"]

    def of_user(value):
        return {(number, rank): (0, 0) if number else value(rank) for number, rank in stream_order(sizes)}

    expected = {
        ("edges",): [same_class(sizes, weight=owned.count)],
        ("type",): [same_class(sizes, one=lambda node: node[0])],
        ("age",): [of_user(lambda i: (0, i % 7))],
        ("user:train",): [of_user(lambda i: (int(i % 3 == 0), 1))],
        ("kind", "nodes"): [of_user(lambda i: (i % 3, 1)), same_class(sizes)],
    }
    for number, (words, balances) in enumerate(expected.items()):
        _, found = assign(tmp_path / "store", tmp_path / f"parts{number}", by, 4, balance=words, max_imbalance=1.2)
        assert found == as_lists(stream(by, sizes, stored, 4, balances, most=1.2), sizes), words


@pytest.mark.parametrize("by", METHODS)
def test_the_same_bytes_from_everywhere(by, tmp_path):
    """From a store of any partitioning and order, by convert, on the way of an export, at any limit, on any threads."""
    graphprep.convert(SHOP, tmp_path / "store", partitions=3, partition_by="hash")
    graphprep.reorder(tmp_path / "store", tmp_path / "hot")
    graphprep.convert(SHOP, tmp_path / "flat", layout="csr")
    graphprep.convert(SHOP, tmp_path / "want", partitions=2, partition_by=by)
    metadata = json.loads((tmp_path / "want" / "metadata.json").read_text())
    assert (metadata["partition_by"], metadata["num_parts"]) == (by, 2)
    inputs = json.loads((tmp_path / "want" / "provenance.json").read_text())["inputs"]
    assert [one["url"] for one in inputs] == [str(SHOP)]
    for number, run in enumerate(({}, {"threads": 1, "memory_limit": "100MiB"})):
        for name in ("store", "hot"):
            out = tmp_path / f"out-{name}-{number}"
            graphprep.partition(tmp_path / name, out, by=by, partitions=2, **run)
            assert read_store(out) == read_store(tmp_path / "want")
    assert assign(tmp_path / "flat", tmp_path / "a", by, 2)[1] == assign(tmp_path / "hot", tmp_path / "b", by, 2)[1]
    export = {"target": "npy", "drop_unsupported": True}
    graphprep.export(tmp_path / "want", tmp_path / "npy-want", **export)
    graphprep.export(tmp_path / "hot", tmp_path / "npy", **export, partitions=2, partition_by=by)
    assert read_store(tmp_path / "npy") == read_store(tmp_path / "npy-want")
    report = graphprep.validate(tmp_path / "want")
    assert report.sound, report.faults


def test_convert_from_memory_and_over_a_store(tmp_path):
    """A DataFrame in; a store that is there stays, unless it is to be replaced, and is not by nothing."""
    pd = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pd.read_csv(KARATE)
    graphprep.convert(KARATE, tmp_path / "want", partitions=3, partition_by="fennel")
    graphprep.convert(table, tmp_path / "out", partitions=3, partition_by="fennel")
    assert read_store(tmp_path / "out") == read_store(tmp_path / "want")
    with pytest.raises(UsageError, match="the output exists"):
        graphprep.convert(table, tmp_path / "out", partition_by="ldg")
    (tmp_path / "empty.csv").write_text("")
    with pytest.raises(DataError, match="would replace a store of 34 nodes and 78 edges"):
        graphprep.convert(tmp_path / "empty.csv", tmp_path / "out", format="edges", partition_by="ldg", overwrite=True)
    assert read_store(tmp_path / "out") == read_store(tmp_path / "want")
    graphprep.convert(table, tmp_path / "out", partitions=2, partition_by="ldg", overwrite=True)
    assert json.loads((tmp_path / "out" / "metadata.json").read_text())["num_parts"] == 2
    assert {path.name for path in tmp_path.iterdir()} == {"out", "want", "empty.csv"}


def test_a_large_graph_at_little_memory(tmp_path):
    graphprep.generate("rmat", tmp_path / "rmat.txt", scale=14, seed=3)
    graphprep.convert(tmp_path / "rmat.txt", tmp_path / "store")
    found = [
        assign(tmp_path / "store", tmp_path / f"parts{number}", "fennel", 8, **run)
        for number, run in enumerate(({"threads": 1}, {"threads": 3, "memory_limit": "100MiB"}))
    ]
    assert found[0][1] == found[1][1]


SAMPLES = Path(os.environ.get("GRAPHPREP_SAMPLES", "/nowhere"))


@pytest.mark.parametrize("by", METHODS)
@pytest.mark.parametrize("name", ["rmat", "lesmis", "cora", "bitcoin_otc"])
def test_far_fewer_edges_are_cut_than_by_hash(name, by, tmp_path):
    graphprep.generate("rmat", tmp_path / "rmat.txt", scale=13, seed=1)
    paths = {
        "rmat": tmp_path / "rmat.txt",
        "lesmis": SAMPLE_DATA / "lesmis" / "lesmis.jsonl",
        "cora": SAMPLES / "gnnbench_npz" / "cora.npz",
        "bitcoin_otc": SAMPLES / "bitcoin_otc" / "edges.csv",
    }
    if not paths[name].exists():
        pytest.skip("GRAPHPREP_SAMPLES names no folder of samples")
    options = {"format": "edges", "decoder_options": {"header": "no"}} if name == "bitcoin_otc" else {}
    graphprep.convert(paths[name], tmp_path / "store", **options)
    report = assign(tmp_path / "store", tmp_path / "parts", by, 4)[0].report
    bound = {"rmat": 0.85, "lesmis": 0.4, "cora": 0.3, "bitcoin_otc": 0.5}[name]
    assert report.total.cut_edges <= bound * report.hash.cut_edges
    assert report.total.node_imbalance <= 1.05


def test_what_the_methods_do_not_have_is_refused(tmp_path):
    graphprep.convert(KARATE, tmp_path / "store")
    for options, kind, message in (
        ({"by": "hash", "passes": 2}, UsageError, "--passes belongs to --by ldg and fennel"),
        ({"by": "range", "balance": "edges"}, UsageError, "--balance belongs to --by ldg, fennel and metis"),
        ({"by": "ldg", "max_imbalance": 0.9}, UsageError, "--max-imbalance must be 1 or more, found 0.9"),
        ({"by": "ldg", "passes": 0}, UsageError, "--passes must be 1 or more, found 0"),
        ({"by": "ldg", "balance": "fame"}, UsageError, "--balance 'fame' is none of nodes, edges, type, nor a node column"),
    ):
        with pytest.raises(kind) as error:
            graphprep.partition(tmp_path / "store", tmp_path / "out", partitions=2, **options)
        assert error.value.message == message
    (tmp_path / "nodes.csv").write_text("id,debt,height\n" + "".join(f"{i},{i - 5},{i / 2}\n" for i in range(34)))
    graphprep.convert(nodes={"n": str(tmp_path / "nodes.csv")}, edges={("n", "e", "n"): str(KARATE)}, out=tmp_path / "more")
    for word, kind, message in (
        ("debt", DataError, "--balance takes numbers from 0 on, found -5"),
        ("n:height", UsageError, "--balance n:height: the column does not hold a whole number a node"),
    ):
        with pytest.raises(kind) as error:
            graphprep.partition(tmp_path / "more", tmp_path / "out", by="ldg", partitions=2, balance=word)
        assert error.value.message == message
    assert not (tmp_path / "out").exists()
