"""Any graph through every order, partitioner and operation: nothing is lost, and what can be undone is."""

import json

import numpy as np
import pytest
from golden.golden_cases import read_store
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphprep

ORDERS = ("degree", "in-degree", "out-degree", "hub-sort", "hub-cluster", "dbg", "bfs", "rcm", "llp", "random")
METHODS = ("range", "hash", "modulo", "random", "ldg", "fennel", "metis")
TWICE_IS_ONCE = (
    *("to-bidirected", "symmetrize max", "to-simple", "to-simple last", "to-simple max", "self-loops drop", "self-loops add"),
    *("largest-component", "filter-degree 0:", "layout both", "index-dtype int64", "sort-neighbors id"),
)
FOLDER = settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

graphs = st.fixed_dictionaries(
    {
        "num_nodes": st.integers(1, 12),
        "ends": st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11), st.integers(1, 9)), max_size=40),
        "partitions": st.integers(1, 3),
        "layout": st.sampled_from(["csc", "csr", "both"]),
    }
)


def convert(graph, folder):
    """Two node types, ``a`` and ``b``, and edges in each and between them, with weights."""
    size, ends = graph["num_nodes"], np.array(graph["ends"], np.int64).reshape(-1, 3)
    ends[:, :2] %= size
    edges = {}
    for number, edge_type in enumerate((("a", "x", "a"), ("a", "y", "b"), ("b", "z", "b"))):
        path = folder / f"{number}.csv"
        rows = "".join(f"{u},{v},{w}\n" for u, v, w in ends[number::3].tolist())
        path.write_text("src,dst,weight\n" + rows)
        edges[edge_type] = str(path)
    nodes = {}
    for name in "ab":
        (folder / f"{name}.csv").write_text("id\n" + "".join(f"{node}\n" for node in range(size)))
        nodes[name] = str(folder / f"{name}.csv")
    options = {"partitions": graph["partitions"], "partition_by": "hash", "layout": graph["layout"]}
    graphprep.convert(nodes=nodes, edges=edges, out=folder / "store", decoder_options={"weight_col": "weight"}, **options)
    return folder / "store"


def assert_sound(store):
    report = graphprep.validate(str(store))
    assert report.sound, report.faults


def edges_by_raw_id(store):
    """Rows of (type, raw source, raw destination, edge ID, weight): what no order and no partition changes."""
    graph = graphprep.load(str(store))
    return {edge_type: sorted(map(str, graph.to_arrow(edge_type, order="ids").to_pylist())) for edge_type in graph.edge_types}


@pytest.mark.heavy
@pytest.mark.parametrize("by", ORDERS)
@FOLDER
@given(graph=graphs, scope=st.sampled_from(["partition", "graph"]))
def test_an_order_is_a_bijection_that_can_be_undone(graph, scope, by, tmp_path_factory):
    folder = tmp_path_factory.mktemp("order")
    store = convert(graph, folder)
    graphprep.reorder(store, folder / "out", by=by, scope=scope, seed=5)
    assert_sound(folder / "out")
    metadata = json.loads((folder / "out/metadata.json").read_text())
    for name, size in zip(metadata["node_type"], metadata["num_nodes_per_type"], strict=True):
        if "node_order" in metadata["node_schema"][name]:
            paths = sorted(folder.glob(f"out/part-*/nodes/{name}/previous_ids.npy"))
            assert sorted(np.concatenate([np.load(path) for path in paths])) == list(range(size))
    assert edges_by_raw_id(folder / "out") == edges_by_raw_id(store)
    back = folder / "out"
    if any("node_order" in schema for schema in metadata["node_schema"].values()):
        graphprep.reorder(folder / "out", folder / "back", by="previous")
        back = folder / "back"
    assert read_store(back) == read_store(store)


@pytest.mark.parametrize("by", METHODS)
@FOLDER
@given(graph=graphs, num_parts=st.integers(1, 4))
def test_partitions_hold_every_node_and_edge_once(graph, num_parts, by, tmp_path_factory):
    if by == "metis":
        pytest.importorskip("pymetis", reason="pymetis is not installed: pip install pymetis")
    folder = tmp_path_factory.mktemp("parts")
    store = convert(graph, folder)
    graphprep.partition(store, folder / "out", by=by, partitions=num_parts)
    assert_sound(folder / "out")
    metadata = json.loads((folder / "out/metadata.json").read_text())
    assert metadata["num_parts"] == num_parts
    assert edges_by_raw_id(folder / "out") == edges_by_raw_id(store)
    old, new = graphprep.load(str(store)), graphprep.load(str(folder / "out"))
    for name in old.node_types:
        assert sorted(new.ids(name)) == sorted(old.ids(name))


@pytest.mark.heavy
@pytest.mark.parametrize("words", TWICE_IS_ONCE)
@FOLDER
@given(graph=graphs)
def test_once_more_changes_nothing(graph, words, tmp_path_factory):
    folder = tmp_path_factory.mktemp("twice")
    store = convert(graph, folder)
    if words.startswith(("to-bi", "symm")):
        words = f"to-homogeneous drop-columns edge_type edge_id node_type node_id {words}"
    graphprep.transform(store, folder / "once", words)
    assert_sound(folder / "once")
    last = " ".join(words.split()[-2:]) if "symm" in words else words.split()[-1] if "homo" in words else words
    graphprep.transform(folder / "once", folder / "again", last)
    assert edges_by_raw_id(folder / "again") == edges_by_raw_id(folder / "once")
    assert read_store(folder / "again") == read_store(folder / "once")


@FOLDER
@given(graph=graphs)
def test_what_is_turned_twice_is_as_it_was(graph, tmp_path_factory):
    """Also layouts and dtypes, to and fro."""
    folder = tmp_path_factory.mktemp("involution")
    store = convert(graph, folder)
    there_and_back = (
        ("reverse", "transpose"),
        ("layout csr", f"layout {graph['layout']}"),
        ("layout csc", f"layout {graph['layout']}"),
        ("index-dtype int64", "index-dtype int32"),
        ("sort-neighbors id", "sort-neighbors input"),
    )
    for number, (there, back) in enumerate(there_and_back):
        graphprep.transform(store, folder / f"there-{number}", there)
        graphprep.transform(folder / f"there-{number}", folder / f"back-{number}", back)
        assert read_store(folder / f"back-{number}") == read_store(store), there
