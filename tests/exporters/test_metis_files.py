"""``metis``: a hand-written parser, NetworkX and our own decoder read the undirected graph."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections import Counter
from pathlib import Path

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


def homogeneous_rows(store):
    """The number of nodes of each type, and the neighbors of homogeneous IDs, by a naive loop over the chunked export."""
    graph = graphprep.load(str(store))
    names, near = list(graph.node_types), {}
    sizes = [int(graph.num_nodes(name)) for name in names]
    first = dict(zip(names, np.cumsum([0, *sizes]), strict=False))
    for edge_type in graph.edge_types:
        src, _, dst = edge_type
        for u, v in zip(*(one.tolist() for one in graph.edges(edge_type)[:2]), strict=True):
            one, other = first[src] + u, first[dst] + v
            if one != other:
                near.setdefault(one, set()).add(other)
                near.setdefault(other, set()).add(one)
    return sizes, near


@pytest.mark.parametrize("piece_bytes", [1 << 20, 512, 1])
@pytest.mark.parametrize("options", [{}, HASHED, BY_SOURCE], ids=str)
def test_a_graph_of_several_types_has_homogeneous_ids(options, piece_bytes, tmp_path, monkeypatch):
    """By raw ID, however the store is partitioned and ordered; a weight for each type."""
    from dataclasses import replace

    from graphprep.rewrite import run as store_run

    real = store_run.room_for
    monkeypatch.setattr(store_run, "room_for", lambda *given: replace(real(*given), piece_bytes=piece_bytes))
    (tmp_path / "flat").mkdir()
    sizes, near = homogeneous_rows(make_store(GRAPHS["heterogeneous"](), tmp_path / "flat"))
    store = make_store(GRAPHS["heterogeneous"](**options), tmp_path)
    graphprep.reorder(str(store), str(tmp_path / "hot"), by="degree")
    for place in (store, tmp_path / "hot"):
        graphprep.export(str(place), str(tmp_path / "out"), "metis", drop_unsupported=True, overwrite=True)
        path = tmp_path / "out" / "graph.graph"
        assert path.read_text().splitlines()[0].split()[2:] == ["010", str(len(sizes))]
        heads, rows = read_metis(path)
        assert heads == [
            [int(one == number) for one in range(len(sizes))] for number, size in enumerate(sizes) for _ in range(size)
        ]
        assert [set(row) for row in rows] == [near.get(node, set()) for node in range(sum(sizes))]


def test_several_edge_types_of_one_node_type_have_no_weights(tmp_path):
    (tmp_path / "t.txt").write_text("a r b\nb s a\nb s c\nc r c\na r b\n")
    graphprep.convert(str(tmp_path / "t.txt"), str(tmp_path / "store"), format="triples")
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "metis")
    assert (tmp_path / "out" / "graph.graph").read_text() == "3 2\n2\n1 3\n2\n"


def test_weights_are_of_one_type(tmp_path):
    store = str(make_store(GRAPHS["heterogeneous"](), tmp_path))
    with pytest.raises(UsageError) as caught:
        graphprep.export(store, str(tmp_path / "out"), "metis", weight="weight", drop_unsupported=True)
    assert str(caught.value) == (
        "METIS takes weights of one node type and one edge type, the graph has 3 node types and 4 edge types\n"
        "  fix: leave options weight, node_weight and node_size out"
    )
    with pytest.raises(UsageError, match="target 'metis' has one partition, by ID"):
        graphprep.export(store, str(tmp_path / "out"), "metis", partitions=2, drop_unsupported=True)


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_what_metis_says_of_lines_comes_back_to_nodes(name, tmp_path):
    """METIS itself reads the file, and partitions it; its numbers go to typed nodes, as IDConverter has it."""
    if shutil.which("gpmetis") is None:
        pytest.skip("METIS is not installed: apt install metis")
    store = make_store(GRAPHS[name](), tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "metis", drop_unsupported=True)
    graph = tmp_path / "out" / "graph.graph"
    for command in (["graphchk", str(graph)], ["gpmetis", str(graph), "3"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stdout
        assert "The format of the graph is correct!" in done.stdout or command[0] == "gpmetis"
    found = tmp_path / "out" / "graph.graph.part.3"
    parts = np.loadtxt(found, np.int64)
    graphprep.partition(store, tmp_path / "parts", by=found)
    kinds, typed = graphprep.IDConverter(json.loads((store / "metadata.json").read_text())).nid_hom2het(np.arange(parts.size))
    made = json.loads((tmp_path / "parts" / "metadata.json").read_text())
    for number, node_type in enumerate(made["node_type"]):
        raw = graphprep.ids(str(store), typed[kinds == number], from_="typed", to="raw", type_=node_type)
        moved = graphprep.ids(str(tmp_path / "parts"), raw, from_="raw", to="typed", type_=node_type)
        borders = np.cumsum(made["num_nodes_per_chunk"][number])
        assert np.searchsorted(borders, moved, side="right").tolist() == parts[kinds == number].tolist()


def test_columns_that_no_option_names_are_told_with_the_option(tmp_path):
    store = make_store(GRAPHS["homogeneous"](), tmp_path)
    with pytest.raises(UsageError) as caught:
        graphprep.export(str(store), str(tmp_path / "out"), "metis")
    told = str(caught.value).split("\n")
    assert "  edge column paper:cites:paper 'weight': METIS takes the one that --option weight=NAME names" in told
    assert "  node column paper 'feat': METIS takes those that --option node_weight=NAME and node_size=NAME name" in told


# ---- ParMETIS


def _table(path):
    return [tuple(map(int, line.split())) for line in path.read_text().splitlines()]


@pytest.mark.parametrize("piece_bytes", [None, 500])
@pytest.mark.parametrize("options", [{}, HASHED, BY_SOURCE])
@pytest.mark.parametrize("name", ["heterogeneous", "homogeneous", "multi_edge", "empty_type"])
def test_texts_for_parmetis(name, options, piece_bytes, tmp_path, monkeypatch):
    """What DGL's guide says of them, by naive loops over the graph: homogeneous IDs are type after type by raw ID."""
    if piece_bytes is not None:
        monkeypatch.setattr("graphprep.edges.moves.Workspace.fit", lambda room, size: max(1, piece_bytes // max(1, size)))
    graph = GRAPHS[name]()
    store = make_store(graph, tmp_path, **options)
    graphprep.export(store, tmp_path / "out", "metis", parmetis=True, drop_unsupported=True)
    metadata = json.loads((store / "metadata.json").read_text())
    sizes = metadata["num_nodes_per_type"]
    first = dict(zip(metadata["node_type"], np.cumsum([0, *sizes]).tolist(), strict=False))
    nodes = [
        (number, *(int(number == other) for other in range(len(sizes))), at)
        for number, size in enumerate(sizes)
        for at in range(size)
    ]
    assert _table(tmp_path / "out/graph_nodes.txt") == nodes
    ranks = {}
    for kind in metadata["node_type"]:
        ids = {
            one
            for (src, _, dst), some in graph.edges.items()
            for end, one_type in (("src", src), ("dst", dst))
            if one_type == kind
            for one in getattr(some, end)
        }
        ids |= set(graph.nodes[kind].ids)
        ranks[kind] = {raw: first[kind] + at for at, raw in enumerate(sorted(ids))}
    seen, kept, removed = set(), [], []
    for number, text in enumerate(metadata["edge_type"]):
        src, rel, dst = text.split(":")
        some = graph.edges[src, rel, dst]
        for at, (one, other) in enumerate(zip(some.src, some.dst, strict=True)):
            pair = ranks[src][one], ranks[dst][other]
            (removed if pair[0] == pair[1] or pair in seen else kept).append((*pair, at, number))
            seen.add(pair)
    assert _table(tmp_path / "out/graph_edges.txt") == kept
    assert _table(tmp_path / "out/graph_removed_edges.txt") == removed
    assert (tmp_path / "out/graph_stats.txt").read_text() == f"{len(nodes)} {len(kept)} {len(sizes)}\n"


def test_what_parmetis_says_comes_back_to_nodes(tmp_path):
    """``<homogeneous ID> <partition>`` lines, in any order, are what lines of partitions in order are."""
    store = make_store(GRAPHS["heterogeneous"](), tmp_path)
    num_nodes = sum(json.loads((store / "metadata.json").read_text())["num_nodes_per_type"])
    rng = np.random.default_rng(2)
    parts, order = rng.integers(0, 3, num_nodes), rng.permutation(num_nodes)
    np.savetxt(tmp_path / "plain", parts, "%d")
    np.savetxt(tmp_path / "graph_part.3", np.column_stack([order, parts[order]]), "%d")
    for name in ("plain", "graph_part.3"):
        graphprep.partition(store, tmp_path / f"by-{name}", by=tmp_path / name, assignment_only=True)
    files = [
        {path.name: path.read_bytes() for path in (tmp_path / f"by-{name}").iterdir()} for name in ("plain", "graph_part.3")
    ]
    assert files[0] == files[1]
    for lines, message in (
        ("0 1\n2 0\n", "expected a line for each of the nodes 0 to 1"),
        ("0 1\n1\n", "expected a partition number, found '1'"),
        ("0 1\n1 1 1\n", "expected a partition number, found '1 1 1'"),
        ("0 1\n1 x\n", "expected a partition number, found '1 x'"),
    ):
        (tmp_path / "bad").write_text(lines)
        with pytest.raises(DataError) as error:
            graphprep.partition(store, tmp_path / "out", by=tmp_path / "bad")
        assert error.value.message == message


def test_parmetis_has_no_weights_of_columns(tmp_path):
    store = make_store(GRAPHS["homogeneous"](), tmp_path)
    with pytest.raises(UsageError, match="ParMETIS gets a weight for each node type"):
        graphprep.export(store, tmp_path / "out", "metis", parmetis=True, weight="feat")
