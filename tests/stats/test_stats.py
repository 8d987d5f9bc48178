"""``graphprep.stats`` against networkx, igraph, SciPy, pandas and naive loops."""

import dataclasses
import itertools
import json
import math
from collections import Counter
from importlib import import_module
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from golden.golden_cases import SAMPLE_DATA
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_store import sample_store

import graphprep
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.schema import edge_type_text
from graphprep.stats.power_law import fit_power_law

igraph = pytest.importorskip("igraph", reason="igraph is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")
scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
NAMES = (
    "karate_csv",
    "karate_json_random",
    "davis_bipartite",
    "shop_edgelist_both_parts",
    "shop_chunked_parts",
    "town_csr_parts",
    "people_tables_hash",
    "edges_empty",
    "edges_wide_ids",
    "lesmis_weight",
)
TIMES = ("elapsed_s", "peak_memory_bytes", "stage_s", "spilled_bytes", "path")


def store_of(name):
    return GOLDEN / name / "store"


def numbers(report):
    """Return what a report says, without what differs from run to run."""
    return {name: value for name, value in dataclasses.asdict(report).items() if name not in TIMES}


def whole_graph(store):
    """Return a store's edges as one nx.MultiDiGraph of (type, typed ID), each edge with the name of its type."""
    graph, loaded = nx.MultiDiGraph(), graphprep.load(store)
    for name in loaded.node_types:
        graph.add_nodes_from((name, i) for i in range(loaded.num_nodes(name)))
    for src_type, rel, dst_type in loaded.edge_types:
        src, dst, *_ = loaded.edges((src_type, rel, dst_type), order="rows")
        for u, v in zip(src.tolist(), dst.tolist(), strict=True):
            graph.add_edge((src_type, u), (dst_type, v), kind=edge_type_text((src_type, rel, dst_type)))
    return graph


def check_distribution(found, values):
    values = sorted(values)
    assert (found.count, found.min, found.max) == (len(values), min(values, default=0), max(values, default=0))
    assert found.mean == pytest.approx(sum(values) / max(1, len(values)))
    for name, value in found.percentiles.items():
        rank = -(-len(values) * int(float(name) * 10) // 1000)
        assert value == (values[max(0, rank - 1)] if values else 0)
    bins = Counter(value.bit_length() for value in values)
    assert [one.count for one in found.histogram] == [bins[k] for k in range(max(bins, default=-1) + 1)]
    assert all(sum(one.low <= value <= one.high for value in values) == one.count for one in found.histogram)


def check_report(report, graph):
    """Hold a report against a graph, most of it with networkx."""
    for node_type in report.nodes:
        nodes = [node for node in graph if node[0] == node_type.name]
        assert node_type.num_nodes == len(nodes)
        assert node_type.num_isolated == sum(node[0] == node_type.name for node in nx.isolates(graph))
        for found, degree in ((node_type.degrees, graph.degree), (node_type.in_degrees, graph.in_degree)):
            check_distribution(found, [n for _, n in degree(nodes)])
        check_distribution(node_type.out_degrees, [n for _, n in graph.out_degree(nodes)])
        highest = sorted(((-n, i) for (_, i), n in graph.degree(nodes) if n))[:10]
        assert [(-hub.degree, hub.typed_id) for hub in node_type.hubs] == highest
    for edge_type in report.edges:
        check_edge_type(edge_type, graph)
    sizes = [len(one) for one in nx.weakly_connected_components(graph)]
    assert (report.components.count, report.components.largest) == (len(sizes), max(sizes, default=0))
    check_distribution(report.components.sizes, sizes)
    simple = nx.Graph((u, v) for u, v, _ in graph.edges if u != v)
    simple.add_nodes_from(graph)
    found = report.triangles
    assert found.exact
    assert found.num_triangles == sum(nx.triangles(simple).values()) // 3
    assert found.num_paths == sum(math.comb(n, 2) for _, n in simple.degree)
    assert found.global_clustering == pytest.approx(nx.transitivity(simple))
    assert found.average_clustering == pytest.approx(nx.average_clustering(simple) if len(simple) else 0)


def check_edge_type(found, graph):
    src_type, _, dst_type = found.name.split(":")
    edges = [(u, v) for u, v, kind in graph.edges(data="kind") if kind == found.name]
    assert found.num_edges == len(edges)
    assert found.num_self_loops == sum(u == v for u, v in edges)
    assert found.num_repeated == len(edges) - len(set(edges))
    single = {(u, v) for u, v in edges if u != v}
    if src_type != dst_type or not single:
        assert found.reciprocity is None
    else:
        assert found.reciprocity == pytest.approx(nx.overall_reciprocity(nx.DiGraph(list(single))))
    for degrees, hubs, end, name in (
        (found.out_degrees, found.out_hubs, 0, src_type),
        (found.in_degrees, found.in_hubs, 1, dst_type),
    ):
        counts = Counter(edge[end] for edge in edges)
        check_distribution(degrees, [counts[node] for node in graph if node[0] == name])
        highest = sorted((-n, i) for (_, i), n in counts.items())[:10]
        assert [(-hub.degree, hub.typed_id) for hub in hubs] == highest


@pytest.mark.parametrize("name", NAMES)
def test_stores_agree_with_networkx(name):
    report = graphprep.stats(store_of(name), triangles="exact")
    check_report(report, whole_graph(store_of(name)))


@st.composite
def typed_graphs(draw):
    sizes = {name: draw(st.integers(1, 9)) for name in "ab"}
    edges = {}
    for name in ("a:to:b", "b:back:b", "a:next:a"):
        ends = [sizes[end] for end in name.split(":")[::2]]
        edges[name] = draw(st.lists(st.tuples(*(st.integers(0, end - 1) for end in ends)), max_size=25))
    return sizes, edges, draw(st.integers(1, 4)), draw(st.sampled_from(["csc", "csr", "both"]))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=typed_graphs())
@pytest.mark.slow
def test_random_graphs_agree_with_networkx(tmp_path_factory, drawn):
    sizes, edges, partitions, layout = drawn
    store = tmp_path_factory.mktemp("random") / "store"
    nodes = {name: pd.DataFrame({"id": np.arange(size)}) for name, size in sizes.items()}
    tables = {name: pd.DataFrame(pairs or np.zeros((0, 2), int), columns=["src", "dst"]) for name, pairs in edges.items()}
    graphprep.convert(
        nodes=nodes, edges=tables, out=store, partitions=partitions, layout=layout, partition_by="random", allow_empty=True
    )
    graph = whole_graph(store)
    report = graphprep.stats(store, triangles="exact")
    check_report(report, graph)
    check_parts(report, graph, store)


def check_parts(report, graph, store):
    metadata = graphprep.info(store)
    if metadata.num_parts == 1:
        assert report.parts is None
        return
    part, layout = {}, "csc" if "csc" in metadata.layouts else "csr"
    for one in metadata.node_types:
        parts = np.repeat(np.arange(metadata.num_parts), one.per_part).tolist()
        part |= {(one.name, i): p for i, p in enumerate(parts)}
    matrix, halos = Counter(), {}
    for u, v, _ in graph.edges:
        matrix[part[u], part[v]] += 1
        own, other = (v, u) if layout == "csc" else (u, v)
        if part[own] != part[other]:
            halos.setdefault((other[0], part[own]), set()).add(other)
    found, span = report.parts, range(metadata.num_parts)
    assert found.cut_matrix == tuple(tuple(matrix[p, q] for q in span) for p in span)
    assert found.total.cut_edges == sum(n for (p, q), n in matrix.items() if p != q) == sum(found.cut_edges.values())
    assert found.halo == {one.name: tuple(len(halos.get((one.name, p), ())) for p in span) for one in report.nodes}
    assert found.nodes == {one.name: one.per_part for one in metadata.node_types}
    assert found.edges == {one.name: one.per_part for one in metadata.edge_types}


@pytest.fixture(scope="module")
def rmat(tmp_path_factory):
    """An R-MAT graph of 4,096 nodes and 65,536 edges, in three partitions."""
    folder = tmp_path_factory.mktemp("rmat")
    graphprep.generate("rmat", folder / "edges.txt", scale=12, seed=5)
    graphprep.convert(folder / "edges.txt", folder / "store", format="edges", num_nodes=4200, partitions=3)
    return folder / "store"


def test_rmat_agrees_with_igraph_and_scipy(rmat):
    report = graphprep.stats(rmat, triangles="exact", top=5)
    src, dst, *_ = graphprep.load(rmat).edges(order="rows")
    edges, size = np.stack([src, dst], 1), 4200
    (found,) = report.edges
    directed = igraph.Graph(n=size, edges=edges, directed=True)
    check_distribution(found.in_degrees, directed.indegree())
    check_distribution(found.out_degrees, directed.outdegree())
    assert found.num_self_loops == sum(directed.is_loop())
    assert found.num_repeated == sum(directed.is_multiple())
    assert [hub.degree for hub in report.nodes[0].hubs] == sorted(directed.degree(), reverse=True)[:5]
    assert Counter(map(len, directed.connected_components("weak"))) == Counter(component_sizes(edges, size))
    assert report.components.count == len(directed.connected_components("weak"))
    simple = directed.copy().simplify()
    assert found.reciprocity == pytest.approx(simple.reciprocity())
    simple = simple.as_undirected(mode="collapse")
    assert report.triangles.num_triangles == len(simple.list_triangles())
    assert report.triangles.global_clustering == pytest.approx(simple.transitivity_undirected())
    assert report.triangles.average_clustering == pytest.approx(simple.transitivity_avglocal_undirected(mode="zero"))
    matrix = scipy.sparse.csr_matrix((np.ones(src.size, np.int64), (src, dst)), (size, size))
    both = ((matrix + matrix.T) > 0).astype(np.int64)
    both.setdiag(0)
    assert report.triangles.num_triangles == (both @ both).multiply(both).sum() // 6
    ends = matrix.indices - np.repeat(np.arange(size), np.diff(matrix.indptr))
    assert ends.size == found.num_edges - found.num_repeated


def component_sizes(edges, size):
    matrix = scipy.sparse.csr_matrix((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), (size, size))
    _, labels = scipy.sparse.csgraph.connected_components(matrix, directed=False)
    return np.bincount(labels).tolist()


def test_samples_are_near_what_is_counted(rmat):
    exact = graphprep.stats(rmat, triangles="exact").triangles
    drawn = [graphprep.stats(rmat, triangles="sampled", seed=seed).triangles for seed in range(6)]
    assert len({one.global_clustering for one in drawn}) == 6
    for name in ("num_triangles", "global_clustering", "average_clustering"):
        off = [(getattr(one, name) - getattr(exact, name)) / getattr(one, f"{name}_error") for one in drawn]
        assert max(map(abs, off)) < 4, name
        assert 0.2 < np.std(off) < 2.5, name  # the errors are what they say
    assert {one.num_paths for one in drawn} == {exact.num_paths}
    assert drawn[0].global_clustering_error == pytest.approx(
        math.sqrt(drawn[0].global_clustering * (1 - drawn[0].global_clustering) / drawn[0].num_samples)
    )


@pytest.mark.parametrize("triangles", ["exact", "sampled"])
def test_threads_and_memory_change_nothing(rmat, triangles):
    first = numbers(graphprep.stats(rmat, triangles=triangles, threads=1))
    for threads, limit in ((3, "auto"), (1, "300MiB"), (4, "260MiB")):
        assert numbers(graphprep.stats(rmat, triangles=triangles, threads=threads, memory_limit=limit)) == first


def test_rows_that_are_longer_than_a_task_are_counted_across_its_pieces(tmp_path, monkeypatch):
    """One node with 3,000 edges, most of them twice and back, in tasks of a hundred."""
    monkeypatch.setattr(import_module("graphprep.stats.pairs"), "EDGE_BYTES", 1 << 20)
    others = np.arange(1, 1001)
    src = np.concatenate([np.zeros(2000, int), others])
    dst = np.concatenate([others, others, np.zeros(1000, int)])
    order = np.random.default_rng(1).permutation(src.size)
    graphprep.convert(pd.DataFrame({"src": src[order], "dst": dst[order]}), tmp_path / "store")
    (found,) = graphprep.stats(tmp_path / "store").edges
    assert (found.num_repeated, found.reciprocity) == (1000, 1.0)


# ---- power laws


def naive_fit(values):
    """Fit as section 3 of the paper says, with SciPy's zeta and its bounded search, at every start."""
    values, best = sorted(value for value in values if value), None
    for xmin in sorted(set(values))[:-1]:
        tail = np.array([value for value in values if value >= xmin])

        def cost(alpha, tail=tail, xmin=xmin):
            return tail.size * math.log(scipy.special.zeta(alpha, xmin)) + alpha * np.log(tail).sum()

        alpha = scipy.optimize.minimize_scalar(cost, bounds=(1.0001, 12), method="bounded", options={"xatol": 1e-9}).x
        at = np.arange(xmin, tail.max() + 1)
        law = 1 - scipy.special.zeta(alpha, at + 1.0) / scipy.special.zeta(alpha, xmin)
        shares = np.searchsorted(tail, at, side="right") / tail.size
        distance = np.abs(shares - law).max()
        if best is None or distance < best[2] - 1e-9:
            best = alpha, xmin, distance, tail.size
    return best


@pytest.mark.parametrize("seed", range(8))
def test_power_laws_agree_with_the_naive_fit(seed):
    rng = np.random.default_rng(seed)
    values = np.concatenate([rng.zipf(1.8 + seed / 4, 300), rng.integers(0, 9, 40 * (seed % 3))])
    values = values[values < 3000]
    found = fit_power_law(*np.unique(values, return_counts=True))
    alpha, xmin, distance, size = naive_fit(values.tolist())
    assert (found.xmin, found.num_tail) == (xmin, size)
    assert found.alpha == pytest.approx(alpha, abs=1e-5)
    assert found.ks == pytest.approx(distance, abs=1e-5)


@pytest.mark.parametrize("alpha", [1.6, 2.2, 2.5, 3.5])
def test_the_exponent_of_a_law_is_found(alpha):
    values = np.random.default_rng(3).zipf(alpha, 50_000)
    found = fit_power_law(*np.unique(values[values < 2**40], return_counts=True))
    assert abs(found.alpha - alpha) < 4 * found.alpha_error
    assert found.alpha_error == pytest.approx((alpha - 1) / math.sqrt(found.num_tail), rel=0.4)
    assert found.ks < 2 / math.sqrt(found.num_tail)


@pytest.mark.parametrize("values", [[], [0, 0], [4, 4, 4], [0, 7]])
def test_too_few_values_have_no_law(values):
    assert fit_power_law(*np.unique(np.array(values, np.int64), return_counts=True)) is None


def test_steep_tails_have_finite_exponents():
    """Almost all at the least value: the exponent is large, and a number."""
    found = fit_power_law(np.array([1000, 1001, 5000]), np.array([10**6, 1, 1]))
    assert found is not None
    assert math.isfinite(found.alpha)
    assert math.isfinite(found.ks)


# ---- columns


def by_name(report, node_type=0):
    return {column.name: column for column in report.nodes[node_type].columns}


def test_columns_agree_with_pandas(tmp_path):
    rng = np.random.default_rng(2)
    size = 5000
    table = pd.DataFrame(
        {
            "id": np.arange(size),
            "x": rng.normal(size=size),
            "big": rng.integers(-(2**62), 2**62, size),
            "age": pd.array(rng.integers(0, 90, size), "Int64"),
            "flag": rng.random(size) < 0.25,
            "name": [f"n{i % 700}" for i in range(size)],
        }
    )
    table.loc[::7, "age"] = pd.NA
    edges = pd.DataFrame({"src": [0], "dst": [1]})
    graphprep.convert(nodes={"user": table}, edges={"user:to:user": edges}, out=tmp_path / "store", partitions=3)
    found = by_name(graphprep.stats(tmp_path / "store"))
    for name in ("x", "big", "age", "flag"):
        column, values = found[name], table[name].dropna()
        assert column.num_rows == size, name
        assert column.num_missing == size - len(values), name
        assert (column.min, column.max) == (values.min(), values.max()), name
        assert column.mean == pytest.approx(float(values.astype(float).mean())), name
        assert (column.num_distinct, column.is_exact) == (values.nunique(), True), name
    assert found["big"].mean == pytest.approx(sum(table["big"].tolist()) / size, rel=1e-15)
    lengths = table["name"].str.len()
    assert (found["name"].min, found["name"].max) == (lengths.min(), lengths.max())
    assert found["name"].num_distinct == 700
    assert found["name"].mean == pytest.approx(lengths.mean())


def test_every_kind_of_column_is_described(tmp_path):
    """A store of a column of every kind, and half of the rows without them: its arrays say what is there."""
    store = sample_store().write(tmp_path / "shop")
    report, graph = graphprep.stats(store), graphprep.load(store)
    met = set()
    for one in report.nodes:
        for column in one.columns:
            stored = graph.column(one.name, column.name)
            values = np.asarray(getattr(stored, "values", stored)).ravel()
            met.add(column.kind)
            assert column.num_rows == one.num_nodes
            if column.kind == "binary":
                lengths = np.diff(stored.offsets)
                assert column.max == lengths.max()
            elif column.num_missing == 0:
                assert (column.num_values, column.min, column.max) == (values.size, values.min(), values.max())
                assert column.num_distinct == np.unique(values).size
    assert met == {"dense", "ragged", "sparse", "binary", "temporal"}


def test_nan_and_inf_are_told_apart(tmp_path):
    table = {"id": np.arange(5), "x": np.array([1.0, np.nan, -0.0, 0.0, np.nan], np.float32), "y": [np.inf, 1.0, 2.0, 2.0, 3.0]}
    graphprep.convert(
        nodes={"n": pd.DataFrame(table)}, edges={"n:to:n": pd.DataFrame({"src": [0], "dst": [1]})}, out=tmp_path / "s"
    )
    found = by_name(graphprep.stats(tmp_path / "s"))
    x, y = found["x"], found["y"]
    assert (x.num_nan + x.num_missing, x.num_distinct, x.min, x.max, x.mean) == (2, 2, 0.0, 1.0, pytest.approx(1 / 3))
    assert (y.max, y.mean, y.num_distinct) == (math.inf, math.inf, 4)


def test_many_distinct_values_are_estimated(tmp_path):
    size = 300_000
    table = pd.DataFrame(
        {"id": np.arange(size), "x": np.arange(size) * 3.5, "few": np.arange(size) % 65536, "y": np.arange(size) % 65537}
    )
    graphprep.convert(nodes={"n": table}, edges={"n:to:n": pd.DataFrame({"src": [0], "dst": [1]})}, out=tmp_path / "s")
    found = by_name(graphprep.stats(tmp_path / "s"))
    assert (found["few"].num_distinct, found["few"].is_exact) == (65536, True)
    for name, wanted in (("x", size), ("y", 65537)):
        assert not found[name].is_exact
        assert found[name].num_distinct == pytest.approx(wanted, rel=0.03)


def test_labels_splits_and_categories_are_counted(tmp_path):
    table = pd.DataFrame({"id": range(8), "y": [0, 1, 1, 2, 2, 2, None, 1], "city": list("abbaabba")})
    table["part"] = ["train"] * 4 + ["valid"] * 2 + ["test"] + [None]
    graphprep.convert(
        nodes={"n": table},
        edges={"n:to:n": pd.DataFrame({"src": [0], "dst": [1]})},
        out=tmp_path / "s",
        labels=("n:y",),
        splits=("n:part",),
        categories=("n:city",),
        partitions=2,
    )
    found = {column.role or column.name: column for column in graphprep.stats(tmp_path / "s").nodes[0].columns}
    assert found["label"].counts == {"0": 1, "1": 3, "2": 3}
    assert found["label"].num_missing == 1
    assert found["split"].counts == {"train": 4, "valid": 2, "test": 1}
    assert found["city"].counts == {"a": 4, "b": 4}


def test_labels_beyond_float64_and_empty_categories_have_their_own_counts(tmp_path):
    graphprep.convert(
        nodes={"n": pd.DataFrame({"id": range(4), "y": [2**60, 2**60 + 1, 2**60 + 1, -1], "city": ["", "a", "", ""]})},
        edges={"n:to:n": pd.DataFrame({"src": [0], "dst": [1]})},
        out=tmp_path / "s",
        labels=("n:y",),
        categories=("n:city",),
    )
    found = {column.role or column.name: column for column in graphprep.stats(tmp_path / "s").nodes[0].columns}
    assert found["label"].counts == {"-1": 1, str(2**60): 1, str(2**60 + 1): 2}
    assert found["city"].counts == {"": 3, "a": 1}


# ---- inputs, options and faults


def test_raw_input_is_as_its_store_and_leaves_nothing_behind(tmp_path):
    path = SAMPLE_DATA / "lesmis" / "lesmis.jsonl"
    graphprep.convert(path, tmp_path / "store")
    (tmp_path / "tmp").mkdir()
    report = graphprep.stats(path, format="json", triangles="auto", tmp_dir=str(tmp_path / "tmp"))
    assert numbers(report) == numbers(graphprep.stats(tmp_path / "store", triangles="auto"))
    assert report.path == str(path)
    assert list((tmp_path / "tmp").iterdir()) == []


def test_raw_input_that_is_faulty_leaves_nothing_behind(tmp_path):
    (tmp_path / "edges.csv").write_text("1,2\n3,x\n")
    (tmp_path / "tmp").mkdir()
    with pytest.raises(DataError, match=r"edges.csv:2:3"):
        graphprep.stats(
            tmp_path / "edges.csv", format="edges", decoder_options={"id_type": "int"}, tmp_dir=str(tmp_path / "tmp")
        )
    assert list((tmp_path / "tmp").iterdir()) == []


def test_hubs_have_raw_ids(tmp_path):
    edges = pd.DataFrame({"src": ["eve", "bob", "cid", "bob"], "dst": ["ann", "ann", "ann", "eve"]})
    graphprep.convert(edges, tmp_path / "names")
    graphprep.reorder(tmp_path / "names", tmp_path / "hot", by="degree")
    for name in ("names", "hot"):
        (found,) = graphprep.stats(tmp_path / name, top=2).nodes
        assert [(hub.raw_id, hub.degree) for hub in found.hubs] == [("ann", 3), ("bob", 2)]


def test_locality_is_what_reorder_measures(tmp_path):
    store = store_of("karate_csv")
    (found,) = graphprep.stats(store).edges
    summary = graphprep.reorder(store, tmp_path / "bfs", by="bfs")
    assert found.locality == summary.gaps_before
    (after,) = graphprep.stats(tmp_path / "bfs").edges
    assert after.locality == summary.gaps_after


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"triangles": "many"}, "triangles must be one of auto, exact, sampled, found 'many'"),
        ({"top": -1}, "top must be 0 or more, found -1"),
        ({"sed": 1}, "there is no option 'sed'"),
    ],
)
def test_options_that_are_none_are_refused(given, message):
    with pytest.raises(UsageError) as caught:
        graphprep.stats(store_of("karate_csv"), **given)
    assert message in str(caught.value)


def test_options_of_raw_input_are_refused_for_a_store():
    with pytest.raises(UsageError, match="this is a store: raw input only takes format"):
        graphprep.stats(store_of("karate_csv"), format="edges")


def test_a_place_without_anything_is_told(tmp_path):
    with pytest.raises(StorageError):
        graphprep.stats(tmp_path / "nothing")


def test_faulty_stores_are_told(tmp_path):
    store = sample_store().write(tmp_path / "shop")
    path = next(Path(store).rglob("csc/indices.npy"))
    array = np.load(path)
    array[0] = 99
    np.save(path, array)
    with pytest.raises(DataError, match=r"indices.npy\[0\]: expected a typed ID in \[0, \d\), found 99"):
        graphprep.stats(store)


def test_a_report_shows_itself(rmat):
    shown = repr(graphprep.stats(rmat))
    assert "4,200 nodes, 65,536 edges, 3 partitions" in shown
    assert "components, the largest of" in shown


def test_the_report_is_json(rmat):
    text = json.dumps(dataclasses.asdict(graphprep.stats(rmat)))
    assert list(itertools.islice(json.loads(text), 4)) == ["path", "graph_name", "num_parts", "nodes"]
