"""``metis``: a hand-written parser, NetworkX and our own decoder read the undirected graph."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import ClassVar

import networkx as nx
import numpy as np
import pytest
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.model.errors import DataError, UsageError
from graphprep.testing.export_contract import ExporterContract

pytestmark = pytest.mark.usefixtures("flags_named")

HASHED, BY_SOURCE = {"partitions": 3, "partition_by": "hash"}, {"layout": "csr", "partitions": 2}
OF_METIS = "5 4 111 2\n1 7 2 2 15 3 40\n1 2 0 1 15\n2 5 1 1 40 4 8\n1 1 9 3 8 5 3\n9 0 0 4 3\n"


class TestMetisContract(ExporterContract):
    target = "metis"
    refuses: ClassVar = ("heterogeneous",)


def read_metis(path: Path) -> tuple[list[list[int]], list[dict[int, int]]]:
    """What stands before the neighbors of each node, and its neighbors with their weights (1 without), counted from 0."""
    head, *lines = path.read_text().split("\n")
    assert lines.pop() == ""
    fields = head.split()
    num_nodes, num_edges, flags = int(fields[0]), int(fields[1]), fields[2] if len(fields) > 2 else "000"
    num_values = (flags[0] == "1") + (flags[1] == "1") * (int(fields[3]) if len(fields) > 3 else 1)
    assert len(lines) == num_nodes
    heads, rows = [], []
    for node, line in enumerate(lines):
        assert line == line.strip()
        numbers = list(map(int, line.split()))
        heads.append(numbers[:num_values])
        rest = numbers[num_values:]
        ids = rest[::2] if flags[2] == "1" else rest
        assert ids == sorted(set(ids)) and node + 1 not in ids
        rows.append(dict(zip([one - 1 for one in ids], rest[1::2] if flags[2] == "1" else [1] * len(ids), strict=True)))
    assert sum(map(len, rows)) == 2 * num_edges
    assert all(rows[other][node] == weight for node, row in enumerate(rows) for other, weight in row.items())
    return heads, rows


def undirected(src, dst, weights=None) -> dict[tuple[int, int], int]:
    """The neighbors of a naive loop: weights of parallel edges add up, the larger direction counts."""
    sums = Counter()
    for u, v, weight in zip(src, dst, [1] * len(src) if weights is None else weights, strict=True):
        if u != v:
            sums[u, v] += weight
    pairs = {*sums, *((v, u) for u, v in sums)}
    return {(u, v): 1 if weights is None else max(sums[u, v], sums[v, u]) for u, v in pairs}


@pytest.mark.parametrize("options", [HASHED, BY_SOURCE], ids=str)
@pytest.mark.parametrize("name", ["homogeneous", "multi_edge", "few_nodes", "empty_partition", "temporal", "no_edges"])
def test_the_graph_is_there_undirected(name, options, tmp_path):
    graph, out = GRAPHS[name](**options), tmp_path / "out"
    graphprep.export(str(make_store(graph, tmp_path)), str(out), "metis", drop_unsupported=True)
    heads, rows = read_metis(out / "graph.graph")
    (edges,), (node_type,) = graph.edges.values(), graph.nodes
    path = out / "id_map" / f"{node_type}.npy"
    raw = np.load(path).tolist() if path.exists() else list(range(len(graph.nodes[node_type].ids)))
    assert not any(heads)
    assert {(raw[u], raw[v]): weight for u, row in enumerate(rows) for v, weight in row.items()} == undirected(
        edges.src, edges.dst
    )


@pytest.mark.parametrize(("piece_bytes", "options"), [(1 << 20, {}), (1 << 10, HASHED), (64, HASHED), (64, BY_SOURCE)], ids=str)
def test_weights_of_nodes_and_edges(piece_bytes, options, tmp_path, monkeypatch):
    from dataclasses import replace

    from graphprep.rewrite import run as store_run

    real = store_run.room_for
    monkeypatch.setattr(store_run, "room_for", lambda *given: replace(real(*given), piece_bytes=piece_bytes))
    rng = np.random.default_rng(5)
    src, dst, weights = rng.integers(0, 12, 90), rng.integers(0, 6, 90), rng.integers(1, 2**40, 90)
    sizes, pairs = rng.integers(0, 9, 14), rng.integers(0, 99, (14, 2))
    nodes = Nodes(rng.permutation(14).tolist(), {"size": sizes, "load": pairs})
    graph = Graph({"n": nodes}, {("n", "to", "n"): Edges(src.tolist(), dst.tolist(), {"calls": weights})}, options)
    given = {"weight": "calls", "node_weight": "load", "node_size": "size"}
    graphprep.export(str(make_store(graph, tmp_path)), str(tmp_path / "out"), "metis", **given)
    assert (tmp_path / "out" / "graph.graph").read_text().splitlines()[0].split()[2:] == ["111", "2"]
    heads, rows = read_metis(tmp_path / "out" / "graph.graph")
    assert {(u, v): weight for u, row in enumerate(rows) for v, weight in row.items()} == undirected(src, dst, weights.tolist())
    order = np.argsort(nodes.ids)
    assert heads == np.concatenate([sizes[:, None], pairs], axis=1)[order].tolist()


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=40), st.integers(1, 3))
def test_any_graph_is_what_networkx_has(tmp_path_factory, pairs, partitions):
    folder = tmp_path_factory.mktemp("metis")
    (folder / "e.txt").write_text("".join(f"{u} {v}\n" for u, v in pairs))
    options = {"partitions": partitions, "partition_by": "random", "num_nodes": {"_N": 10}}
    graphprep.convert(str(folder / "e.txt"), str(folder / "store"), format="edges", **options)
    graphprep.export(str(folder / "store"), str(folder / "out"), "metis")
    made = nx.Graph(pairs)
    made.remove_edges_from(list(nx.selfloop_edges(made)))
    _, rows = read_metis(folder / "out" / "graph.graph")
    assert [sorted(row) for row in rows] == [sorted(made[node]) if node in made else [] for node in range(10)]


@pytest.mark.parametrize("options", [{}, {"partitions": 2, "layout": "both"}], ids=str)
@pytest.mark.parametrize(
    "text", [OF_METIS, "4 3\n2 3 4\n1\n1\n1\n", "3 0\n\n\n\n", "4 2 001\n2 9\n1 9 3 1\n2 1\n\n", "2 1 10\n0 2\n5 1\n"]
)
def test_a_store_of_metis_comes_back(text, options, tmp_path):
    (tmp_path / "first.graph").write_text(text)
    graphprep.convert(str(tmp_path / "first.graph"), str(tmp_path / "first"), format="metis", **options)
    graph = graphprep.load(str(tmp_path / "first"))
    names = {column.name for side in (graph.node_types[0], graph.edge_types[0]) for column in graph.columns(side)}
    given = {name: name for name in ("weight", "node_weight", "node_size") if name in names}
    graphprep.export(str(tmp_path / "first"), str(tmp_path / "out"), "metis", **given)
    assert (tmp_path / "out" / "graph.graph").read_text().split() == (
        text if " 10\n" not in text else text.replace(" 10\n", " 010\n")
    ).split()
    graphprep.convert(str(tmp_path / "out" / "graph.graph"), str(tmp_path / "again"), format="metis", **options)
    files = [
        {
            str(path.relative_to(store)): path.read_bytes()
            for path in store.rglob("*")
            if path.is_file() and path.name != "provenance.json"
        }
        for store in (tmp_path / "first", tmp_path / "again")
    ]
    assert files[0] == files[1]


def test_lines_in_another_order_come_back_sorted(tmp_path):
    """The same graph; as its lines are others, edges have other IDs."""
    (tmp_path / "first.graph").write_text("% a comment\n4 3 1\n3  9 2 1\n1 1\n4 5 1 9\n3 5 \n")
    graphprep.convert(str(tmp_path / "first.graph"), str(tmp_path / "first"), format="metis")
    graphprep.export(str(tmp_path / "first"), str(tmp_path / "out"), "metis", weight="weight")
    assert (tmp_path / "out" / "graph.graph").read_text() == "4 3 001\n2 1 3 9\n1 1\n1 9 4 5\n3 5\n"


def test_weights_that_metis_does_not_take(tmp_path):
    store = str(make_store(GRAPHS["homogeneous"](), tmp_path))
    (weight,) = [edges.weight for edges in GRAPHS["homogeneous"]().edges.values()]
    with pytest.raises(DataError, match="METIS takes whole numbers from 1 on, found 0") as caught:
        graphprep.export(store, str(tmp_path / "out"), "metis", weight=weight, drop_unsupported=True)
    assert caught.value.place == f"edge column {weight!r}"
    with pytest.raises(UsageError, match="option node_size: there is no column 'bytes'"):
        graphprep.export(store, str(tmp_path / "out"), "metis", node_size="bytes")
    with pytest.raises(UsageError, match="option node_size: column 'feat' does not hold one number a row"):
        graphprep.export(store, str(tmp_path / "out"), "metis", node_size="feat")


def test_a_graph_of_several_types_is_refused(tmp_path):
    store = str(make_store(GRAPHS["heterogeneous"](), tmp_path))
    with pytest.raises(UsageError) as caught:
        graphprep.export(store, str(tmp_path / "out"), "metis")
    assert str(caught.value) == (
        "METIS holds one node type and one edge type, the graph has 3 node types and 4 edge types\n"
        "  fix: export to mtx, a file each"
    )


def test_columns_that_no_option_names_are_told_with_the_option(tmp_path):
    store = make_store(GRAPHS["homogeneous"](), tmp_path)
    with pytest.raises(UsageError) as caught:
        graphprep.export(str(store), str(tmp_path / "out"), "metis")
    told = str(caught.value).split("\n")
    assert "  edge column paper:cites:paper 'weight': METIS takes the one that --option weight=NAME names" in told
    assert "  node column paper 'feat': METIS takes those that --option node_weight=NAME and node_size=NAME name" in told
