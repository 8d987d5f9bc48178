"""The files of ``glt`` without GLT: what any export keeps, the names and forms of files, and what is refused."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from typing import ClassVar

import numpy as np
import pytest
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store
from torch_reader import read_chunks, read_naively

import graphprep
from graphprep.exporters.glt.top_rows import find_top_rows
from graphprep.model.errors import DataError, GraphprepError, StorageError, UsageError
from graphprep.testing.export_contract import ExporterContract


class TestGlt(ExporterContract):
    target = "glt"


class TestGltSorted(ExporterContract):
    target = "glt"
    options: ClassVar = {"layout": "CSC", "graph_class": "hetero"}


def files(out):
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path.name != "export.json")


def tensor(path):
    return read_naively(path.read_bytes(), path.stem)


def chunks(path):
    return read_chunks(path.read_bytes())


def export(store, out, **given):
    return graphprep.export(str(store), str(out), "glt", **given)


def small(**options):
    """Three nodes, 0 -> 1, 0 -> 2, 2 -> 0, 0 -> 1, with one feature each, in two partitions: 0 and 1, and 2."""
    nodes = Nodes([0, 1, 2], {"feat": np.array([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], np.float32)})
    edges = Edges([0, 0, 2, 0], [1, 2, 0, 1], {"w": np.array([0.5, 1.5, 2.5, 3.5], np.float32)}, "w")
    return Graph({"n": nodes}, {("n", "to", "n"): edges}, {"partitions": 2, **options})


def test_the_files_of_a_graph_without_types(tmp_path):
    store, out = make_store(small(), tmp_path), tmp_path / "out"
    summary = export(store, out)
    graph = ["cols.pt", "eids.pt", "rows.pt", "weights.pt"]
    assert files(out) == sorted(
        ["META", "node_pb.pt", "edge_pb.pt"]
        + [f"part{part}/graph/{name}" for part in (0, 1) for name in graph]
        + [f"part{part}/node_feat/{name}" for part in (0, 1) for name in ("feats.pkl", "ids.pkl")]
    )
    assert summary.num_parts == 2
    meta = (out / "META").read_bytes()
    assert pickle.loads(meta) == {"num_parts": 2, "data_cls": "homo", "node_types": None, "edge_types": None}
    assert meta[:2] == b"\x80\x02"
    found = {name: tensor(out / name).tolist() for name in files(out) if name.endswith(".pt")}
    assert (found["node_pb.pt"], found["edge_pb.pt"]) == ([0, 0, 1], [0, 0, 1, 0])
    assert [found[f"part0/graph/{name}"] for name in graph] == [[1, 2, 1], [0, 1, 3], [0, 0, 0], [0.5, 1.5, 3.5]]
    assert [found[f"part1/graph/{name}"] for name in graph] == [[0], [2], [2], [2.5]]
    assert [one.tolist() for one in chunks(out / "part0/node_feat/feats.pkl")] == [[[0, 0.5], [1, 1.5]]]
    assert [one.tolist() for one in chunks(out / "part0/node_feat/ids.pkl")] == [[0, 1]]


@pytest.mark.parametrize(
    ("layout", "rows", "cols"),
    [
        ("CSR", ([0, 3, 3, 3], [0, 0, 0, 1]), ([1, 2, 1], [0])),
        ("CSC", ([2, 0, 0], [0]), ([0, 1, 3, 3], [0, 0, 0, 1])),
    ],
)
def test_sorted_layouts_have_rows_for_all_nodes(layout, rows, cols, tmp_path):
    store, out = make_store(small(), tmp_path), tmp_path / "out"
    export(store, out, layout=layout)
    for part in (0, 1):
        assert tensor(out / f"part{part}/graph/rows.pt").tolist() == rows[part]
        assert tensor(out / f"part{part}/graph/cols.pt").tolist() == cols[part]


def test_types_have_folders_and_tuples(tmp_path):
    out = tmp_path / "out"
    export(make_store(GRAPHS["empty_type"](), tmp_path, partitions=2), out, features="feat")
    assert pickle.loads((out / "META").read_bytes()) == {
        "num_parts": 2,
        "data_cls": "hetero",
        "node_types": ["a", "none"],
        "edge_types": [("a", "to", "a"), ("a", "nowhere", "none"), ("a", "never", "a")],
    }
    assert tensor(out / "edge_pb/a__nowhere__none.pt").shape == tensor(out / "node_pb/none.pt").shape == (0,)
    for name in ("rows", "cols", "eids"):
        assert tensor(out / f"part1/graph/a__never__a/{name}.pt").shape == (0,)
    assert not (out / "part0/node_feat/none").exists()
    assert not (out / "part0/edge_feat/a__nowhere__none").exists()


def test_a_partition_without_nodes_has_a_row_that_nothing_asks_for(tmp_path):
    store, out = make_store(small(partitions=5), tmp_path), tmp_path / "out"
    export(store, out)
    assert tensor(out / "node_pb.pt").tolist() == [0, 1, 2]
    assert [one.tolist() for one in chunks(out / "part4/node_feat/ids.pkl")] == [[0]]
    assert [one.tolist() for one in chunks(out / "part4/node_feat/feats.pkl")] == [[[0, 0.5]]]


class Listener:
    """A reporter that keeps the messages."""

    def __init__(self):
        self.said = []

    def stage(self, name, *, total_bytes=None, total_records=None): ...

    def advance(self, *, records=0, num_bytes=0): ...

    def message(self, text):
        self.said.append(text)


def test_empty_partitions_are_told_where_coo_cannot_hold_them(tmp_path):
    store = make_store(small(), tmp_path, partition_by="modulo", partitions=3)

    def notes(**given):
        out = tmp_path / "-".join(map(str, given.values()))
        return [note for note in export(store, out, **given).notes if "COO" in note]

    def wanted(layout, where="1 of 3 partitions have no edges"):
        return [
            f"edge type 'n:to:n': {where}, and GLT fails to load COO then; give layout={layout}, and "
            f"input_layout='{layout}' to DistDataset.load"
        ]

    assert notes(layout="COO") == wanted("CSR")
    assert notes(layout="CSR") == notes(layout="COO", graph_caching=True) == []
    store = make_store(small(), tmp_path / "many", partitions=5)
    assert notes(layout="COO", edge_assign="by_dst") == wanted("CSC", "2 of 5 partitions have no edges")
    store = make_store(GRAPHS["no_edges"](), tmp_path / "none")
    assert notes(layout="COO", graph_caching=True, edge_ids=True)[0].startswith("edge type 'a:to:a': it has no edges, and ")


def test_features_are_written_in_chunks(tmp_path):
    """Chunks of a MiB: 131072 rows of 8 bytes."""
    size = 300_000
    nodes = Nodes(list(range(size)), {"feat": np.arange(2 * size, dtype=np.float32).reshape(size, 2)})
    graph = Graph({"n": nodes}, {("n", "to", "n"): Edges([0], [1])})
    export(make_store(graph, tmp_path), tmp_path / "out", chunk_mb=1)
    found = chunks(tmp_path / "out/part0/node_feat/feats.pkl")
    assert [len(one) for one in found] == [131_072, 131_072, 37_856]
    np.testing.assert_array_equal(np.concatenate(found), nodes.columns["feat"])


def test_columns_side_by_side(tmp_path):
    """Numbers make the features, and no IDs; these are left out and told, or taken where they are asked for."""
    columns = {
        "a": np.array([[0.5, 1.5], [2.5, 3.5], [4.5, 5.5]], np.float16),
        "k_id": np.array([7, 8, 9]),
        "b": np.array([0.25, 0.5, 0.75], np.float64),
        "age": np.array([1, 2, 3]),
    }
    graph = small()
    graph = Graph({"n": Nodes([0, 1, 2], columns)}, graph.edges, {})
    store = make_store(graph, tmp_path)
    summary = export(store, tmp_path / "one")
    assert summary.notes[0] == (
        "node type 'n': its features are a, b, age, side by side; left out: k_id (it is named like an ID or key); "
        "features=a,b,age,k_id takes them in"
    )
    assert summary.dropped == ("node column n 'k_id': it is named like an ID or key",)
    [found] = chunks(tmp_path / "one/part0/node_feat/feats.pkl")
    assert found.dtype == np.float32
    assert found.tolist() == [[0.5, 1.5, 0.25, 1], [2.5, 3.5, 0.5, 2], [4.5, 5.5, 0.75, 3]]
    export(store, tmp_path / "two", features="n:k_id", feature_dtypes={"k_id": "int64"})
    [found] = chunks(tmp_path / "two/part0/node_feat/feats.pkl")
    assert (found.dtype, found.tolist()) == (np.int64, [[7], [8], [9]])
    export(store, tmp_path / "three", features="b,a")
    [found] = chunks(tmp_path / "three/part0/node_feat/feats.pkl")
    assert found[0].tolist() == [0.25, 0.5, 1.5]
    with pytest.raises(UsageError, match="option features: there is no feature 'c'"):
        export(store, tmp_path / "four", features="c")


def test_another_dtype_makes_no_feature_lost(tmp_path):
    columns = {"a": np.array([[1, 2], [3, 4], [5, 6]], np.float32), "b": np.array([7, 8, 9], np.float32)}
    edges = {"c": np.arange(4), "d": np.arange(4, 8)}
    graph = Graph({"n": Nodes([0, 1, 2], columns)}, {("n", "to", "n"): Edges([0, 0, 2, 0], [1, 2, 0, 1], edges)})
    export(make_store(graph, tmp_path), tmp_path / "out", feature_dtypes={"a": "int16", "c": "float32"})
    [nodes], [edges] = (chunks(tmp_path / f"out/part0/{side}_feat/feats.pkl") for side in ("node", "edge"))
    assert nodes.tolist() == [[1, 2, 7], [3, 4, 8], [5, 6, 9]]
    assert sorted(edges.tolist()) == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_one_dtype_of_several_is_told(tmp_path):
    """Columns side by side have one dtype, whatever is asked for one of them."""
    columns = {"a": np.array([1, 2, 3], np.float32), "b": np.array([7, 8, 9], np.float32)}
    store = make_store(Graph({"n": Nodes([0, 1, 2], columns)}, small().edges, {}), tmp_path)
    reporter = Listener()
    export(store, tmp_path / "both", feature_dtypes={"a": "float16", "b": "float16"}, reporter=reporter)
    export(store, tmp_path / "wider", feature_dtypes={"a": "float64"}, features="a", drop_unsupported=True, reporter=reporter)
    assert reporter.said == []
    export(store, tmp_path / "one", feature_dtypes={"a": "float16"}, reporter=reporter)
    assert reporter.said == [
        "node type 'n': its features are float32, the dtype that has room for all of them: a float16, b float32"
    ]
    [found] = chunks(tmp_path / "one/part0/node_feat/feats.pkl")
    assert found.dtype == np.float32


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"layout": "CSR", "edge_assign": "by_dst"}, "option layout=CSR: rows of a partition would be cut into pieces"),
        ({"layout": "CSC", "edge_assign": "by_src"}, "option layout=CSC: rows of a partition would be cut into pieces"),
        ({"cache_ratio": 1.5}, "option cache_ratio must lie between 0 and 1, found 1.5"),
        ({"cache_scores": "n=scores.npy"}, "option cache_scores does nothing without cache_ratio"),
        ({"cache_ratio": 0.5, "cache_scores": "m=scores.npy"}, "option cache_scores: 'm=scores.npy' names none of the node"),
        ({"chunk_mb": 0}, "option chunk_mb must be 1 or more, found 0"),
        ({"layout": "csr"}, "layout"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        export(make_store(small(), tmp_path), tmp_path / "out", **given)
    assert not (tmp_path / "out").exists()


def test_files_of_scores_are_checked(tmp_path):
    store = make_store(small(), tmp_path)
    path = tmp_path / "scores.npy"

    def cached():
        export(store, tmp_path / "out", cache_ratio=0.5, cache_scores=str(path))

    with pytest.raises(StorageError, match=r"scores\.npy: no such file or folder"):
        cached()
    path.write_text("0.5\n")
    with pytest.raises(DataError, match=r"scores\.npy: not a \.npy file"):
        cached()
    np.save(path, np.zeros(3))
    os.truncate(path, 140)
    with pytest.raises(DataError, match=r"scores\.npy: the array is truncated: 140 bytes of 152"):
        cached()
    np.save(path, np.zeros(4))
    with pytest.raises(DataError, match=r"expected 3 scores of nodes of type 'n', .* found float64\[4\]"):
        cached()


@pytest.mark.parametrize("name", ["a/b", ".a"])
def test_names_that_are_no_files_are_refused(name, tmp_path):
    graph = small()
    graph = Graph({name: graph.nodes["n"], "m": Nodes([1])}, {(name, "to", name): graph.edges["n", "to", "n"]}, {})
    with pytest.raises(UsageError, match=f"the type name '{name}' cannot be part of GLT's file names"):
        export(make_store(graph, tmp_path), tmp_path / "out")


def test_a_graph_with_types_is_not_homogeneous(tmp_path):
    store = make_store(GRAPHS["heterogeneous"](), tmp_path)
    with pytest.raises(UsageError, match="graph_class=homo: the graph has 3 node types and 4 edge types"):
        export(store, tmp_path / "out", graph_class="homo", drop_unsupported=True)


def test_sorted_layouts_want_nodes_in_the_order_of_ids(tmp_path):
    """A reordered store with raw IDs: rows would not ascend. With typed IDs, which it gets by itself, they do."""
    store = make_store(GRAPHS["homogeneous"](), tmp_path)
    graphprep.reorder(str(store), str(tmp_path / "hot"), by="in-degree")
    with pytest.raises(UsageError, match="layout CSR needs nodes in the order of their IDs"):
        export(tmp_path / "hot", tmp_path / "out", ids="raw", layout="CSR", features="feat")
    found = set()
    for layout, owner in (("CSR", "rows"), ("CSC", "cols"), ("COO", "")):
        out = tmp_path / f"out-{layout}"
        export(tmp_path / "hot", out, layout=layout, features="feat")
        rows, cols = (tensor(out / f"part0/graph/{name}.pt") for name in ("rows", "cols"))
        if owner == "rows":
            assert (rows.size, rows[-1]) == (41, 200)
            rows = np.repeat(np.arange(40), np.diff(rows))
        if owner == "cols":
            cols = np.repeat(np.arange(40), np.diff(cols))
        eids = tensor(out / "part0/graph/eids.pt")
        found.add(tuple(zip(rows[np.argsort(eids)].tolist(), cols[np.argsort(eids)].tolist(), strict=True)))
    assert len(found) == 1


def test_cached_rows_follow_the_order_of_the_store(tmp_path):
    """By scores: the first rows, half of the ratio in each of two partitions; and those that the store calls hot."""
    store = make_store(GRAPHS["homogeneous"](), tmp_path, partitions=2)
    np.save(tmp_path / "scores.npy", np.random.default_rng(1).permutation(40))
    options = {"by": f"score:{tmp_path}/scores.npy", "id2index": True, "split_ratio": 0.1}
    graphprep.reorder(str(store), str(tmp_path / "hot"), **options)
    export(tmp_path / "hot", tmp_path / "ratio", features="feat", cache_ratio=0.2)
    export(tmp_path / "hot", tmp_path / "split", features="feat")
    for name, wanted in (("ratio", [0, 20, 1, 21, 2, 22, 3, 23]), ("split", [0, 20, 1, 21])):
        for part in (0, 1):
            assert tensor(tmp_path / f"{name}/part{part}/node_feat/cache_ids.pt").tolist() == wanted
    feats = tensor(tmp_path / "split/part1/node_feat/cache_feats.pt")
    own = [chunks(tmp_path / f"split/part{part}/node_feat/feats.pkl")[0] for part in (0, 1)]
    assert (feats == np.stack([own[0][0], own[1][0], own[0][1], own[1][1]])).all()


def test_two_exports_are_the_same_and_features_are_not_doubled(tmp_path):
    store = make_store(GRAPHS["heterogeneous"](), tmp_path, partitions=2)
    export(store, tmp_path / "out", features="feat", cache_ratio=0.2)
    before = {name: (tmp_path / "out" / name).read_bytes() for name in files(tmp_path / "out")}
    export(store, tmp_path / "out", features="feat", cache_ratio=0.2, overwrite=True)
    assert before == {name: (tmp_path / "out" / name).read_bytes() for name in files(tmp_path / "out")}
    for name, data in before.items():
        if name.endswith(".pt"):
            assert zipfile.ZipFile(io.BytesIO(data)).testzip() is None, name


# ---------------------------------------------------------------------------------------- edge IDs of the user's own


def numbered(tmp_path, ids, **options):
    """The small graph, whose edges have IDs of their own, reordered."""
    graph = small(**options)
    edges = graph.edges["n", "to", "n"]
    own = Edges(edges.src, edges.dst, {"w": edges.columns["w"], "own": np.array(ids)}, "w")
    store = make_store(Graph(graph.nodes, {("n", "to", "n"): own}, graph.options), tmp_path)
    graphprep.reorder(str(store), str(tmp_path / "hot"), by="random", seed=1, scope="graph")
    return tmp_path / "hot"


@pytest.mark.parametrize(("layout", "owners"), [("COO", "rows"), ("CSR", "rows"), ("CSC", "cols")])
def test_edges_keep_ids_of_the_users_own(layout, owners, tmp_path):
    store = numbered(tmp_path, [2, 0, 3, 1])
    export(store, tmp_path / "out", layout=layout, edge_id_col="own", ids="typed")
    raw = np.concatenate([np.load(store / f"part-0000{part}/nodes/n/raw_ids.npy") for part in (0, 1)])
    book, found = tensor(tmp_path / "out/edge_pb.pt"), {}
    for part in (0, 1):
        rows, cols, eids = (tensor(tmp_path / f"out/part{part}/graph/{name}.pt") for name in ("rows", "cols", "eids"))
        ends = {"rows": rows, "cols": cols}
        if layout != "COO":
            ends[owners] = np.repeat(np.arange(3), np.diff(ends[owners]))
        found |= dict(zip(eids.tolist(), zip(raw[ends["rows"]].tolist(), raw[ends["cols"]].tolist(), strict=True), strict=True))
        assert (book[eids] == part).all()
    assert found == {2: (0, 1), 0: (0, 2), 3: (2, 0), 1: (0, 1)}
    assert not list((tmp_path / "out/part0").glob("edge_feat*"))


def test_ids_of_the_users_own_may_have_gaps(tmp_path):
    """The table by edge ID has a place for each ID up to the highest."""
    own = [70, 50, 30, 10]
    store = numbered(tmp_path, own)
    export(store, tmp_path / "out", edge_id_col="own")
    book = tensor(tmp_path / "out/edge_pb.pt")
    assert book.size == 71
    found = [tensor(tmp_path / f"out/part{part}/graph/eids.pt").tolist() for part in (0, 1)]
    assert sorted(found[0] + found[1]) == sorted(own)
    assert np.flatnonzero(book).tolist() == sorted(found[1])


@pytest.mark.parametrize(
    ("ids", "given", "message"),
    [
        ([0, 1, 2, 2], {"edge_id_col": "own"}, "edge ID 2 is there twice"),
        ([0, 1, 2, -4], {"edge_id_col": "n:to:n:own"}, "expected IDs in [0, 1048640), found -4"),
        ([0, 1, 2, 10**9], {"edge_id_col": "own"}, "expected IDs in [0, 1048640), found 1000000000"),
        ([0, 1, 2, 3], {"edge_id_col": "none"}, "option edge_id_col: there is no column 'none' of edges"),
        (
            [0.5, 1, 2, 3],
            {"edge_id_col": "own"},
            "option edge_id_col: 'own' must hold an integer for each edge, found dense float",
        ),
    ],
)
def test_ids_of_the_users_own_that_do_not_fit(ids, given, message, tmp_path):
    with pytest.raises(GraphprepError) as caught:
        export(numbered(tmp_path, ids), tmp_path / "out", **given)
    assert message in str(caught.value)


# ---------------------------------------------------------------------------------------------- the highest scores


@pytest.mark.parametrize("count", [0, 1, 7, 50, 99, 100, 200])
@pytest.mark.parametrize("kind", ["degrees", "floats", "equal", "odd"])
def test_hot_rows_agree_with_sorting(kind, count):
    rng = np.random.default_rng(count)
    scores = {
        "degrees": rng.integers(0, 9, 100).astype(np.float64),
        "floats": rng.normal(size=100),
        "equal": np.full(100, -3.5),
        "odd": rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 5e-324, -5e-324], 100),
    }[kind]

    def key(row):
        value = scores[row]
        return (1, 0.0, row) if np.isnan(value) else (0, -value, row)

    found = find_top_rows(lambda low, high: scores[low:high], 100, count)
    assert found.tolist() == sorted(range(100), key=key)[:count]
