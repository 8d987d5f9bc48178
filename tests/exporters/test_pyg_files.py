"""The files of ``pyg`` without PyG: what any export keeps, the names and forms of files, and what is refused."""

from __future__ import annotations

import json
from typing import ClassVar

import numpy as np
import pytest
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store
from torch_reader import read_naively

import graphprep
from graphprep.model.errors import UsageError
from graphprep.testing.export_contract import ExporterContract

pytestmark = pytest.mark.usefixtures("flags_named")


class TestPyg(ExporterContract):
    target = "pyg"


class TestPygParts(ExporterContract):
    target = "pyg"
    options: ClassVar = {"form": "parts"}


class TestPygSorted(ExporterContract):
    target = "pyg"
    options: ClassVar = {"form": "data", "layout": "CSC", "graph_class": "hetero"}


def files(out):
    return sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file() and path.name != "export.json")


def tensors(path):
    return read_naively(path.read_bytes(), path.stem)


def plain(value):
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return value.tolist() if isinstance(value, np.ndarray) else value


def export(store, out, **given):
    return graphprep.export(str(store), str(out), "pyg", **given)


def small(**options):
    """Three nodes, 0 -> 1, 0 -> 2, 2 -> 0, 0 -> 1; a label that the second node lacks."""
    nodes = Nodes(
        [0, 1, 2],
        {
            "feat": np.array([[0.0, 0.5], [1.0, 1.5], [2.0, 2.5]], np.float32),
            "y": np.ma.masked_array([3, 0, 4], [False, True, False]),
            "part": np.ma.masked_array([0, 2, 0], [False, False, True]),
            "k": np.array([7, 8, 9], np.uint16),
        },
        "y",
        "part",
        [2],
    )
    edges = Edges(
        [0, 0, 2, 0], [1, 2, 0, 1], {"w": np.array([0.5, 1.5, 2.5, 3.5], np.float32), "t": np.array([4, 3, 2, 1])}, "w", "t"
    )
    return Graph({"n": nodes}, {("n", "to", "n"): edges}, options)


NODES = {
    "x": [[0, 0.5, 7], [1, 1.5, 8], [2, 2.5, 9]],
    "y": [3, -1, 4],
    "train_mask": [True, False, False],
    "val_mask": [False, False, False],
    "test_mask": [False, False, False],  # the second node, which has no label, is in no part
    "seed_mask": [False, False, True],
}
EDGES = {"edge_id": [2, 0, 3, 1], "edge_weight": [2.5, 0.5, 3.5, 1.5], "edge_time": [2, 4, 1, 3]}


def test_one_file_holds_all(tmp_path):
    store, out = make_store(small(), tmp_path), tmp_path / "out"
    summary = export(store, out)
    assert files(out) == ["data.pt"]
    found = tensors(out / "data.pt")
    assert plain(found) == {"num_nodes": 3, **NODES, "edge_index": [[2, 0, 0, 0], [0, 1, 1, 2]], **EDGES}
    dtypes = {name: values.dtype.name for name, values in found.items() if name != "num_nodes"}
    assert (dtypes["x"], dtypes["y"], dtypes["test_mask"]) == ("float32", "int64", "bool")
    assert {dtypes["edge_index"], dtypes["edge_id"], dtypes["edge_time"]} == {"int64"}
    assert any("convert with --neighbor-order time" in note for note in summary.notes)


def test_another_dtype_leaves_features_where_they_are(tmp_path):
    columns = {"a": np.array([[1, 2], [3, 4], [5, 6]], np.float32), "b": np.array([7, 8, 9], np.float32)}
    graph = Graph({"n": Nodes([0, 1, 2], columns)}, {("n", "to", "n"): Edges([0], [1])})
    export(make_store(graph, tmp_path), tmp_path / "out", feature_dtypes={"a": "int16"})
    found = plain(tensors(tmp_path / "out/data.pt"))
    assert found["x"] == [[1, 2, 7], [3, 4, 8], [5, 6, 9]]
    assert "a" not in found


def test_sorted_arrays_in_place_of_pairs(tmp_path):
    store, out = make_store(small(neighbor_order="time"), tmp_path), tmp_path / "out"
    summary = export(store, out, layout="CSC", graph_class="hetero")
    found = plain(tensors(out / "data.pt"))
    edges = {"edge_id": [2, 3, 0, 1], "edge_weight": [2.5, 3.5, 0.5, 1.5], "edge_time": [2, 1, 4, 3]}
    assert found == {
        "n": {"num_nodes": 3, **NODES},
        ("n", "to", "n"): {"row": [2, 0, 0, 0], "colptr": [0, 1, 3, 4], **edges},
    }
    assert not any("neighbor-order" in note for note in summary.notes)


def test_the_partitions_of_a_graph_without_types(tmp_path):
    store, out = make_store(small(partitions=2), tmp_path), tmp_path / "out"
    export(store, out)
    names = ("edge_feats.pt", "graph.pt", "node_feats.pt")
    assert files(out) == sorted(
        ["META.json", "node_map.pt", "edge_map.pt"] + [f"part_{part}/{name}" for part in (0, 1) for name in names]
    )
    assert json.loads((out / "META.json").read_text()) == {
        "num_parts": 2, "node_types": None, "edge_types": None, "node_offset": None, "is_hetero": False, "is_sorted": True,
    }  # fmt: skip
    assert (plain(tensors(out / "node_map.pt")), plain(tensors(out / "edge_map.pt"))) == ([0, 0, 1], [0, 1, 0, 0])
    assert plain(tensors(out / "part_0/graph.pt")) == {"edge_id": [2, 0, 3], "row": [2, 0, 0], "col": [0, 1, 1], "size": (3, 3)}
    assert plain(tensors(out / "part_1/node_feats.pt")) == {
        "global_id": [2], "feats": {name: values[2:] for name, values in NODES.items()},
    }  # fmt: skip
    assert plain(tensors(out / "part_1/edge_feats.pt")) == {
        "global_id": [1], "feats": {"edge_weight": [1.5]}, "edge_time": [3],
    }  # fmt: skip


def test_the_partitions_of_types(tmp_path):
    """IDs are those of each type; what a partition has nothing of is left out."""
    out = tmp_path / "out"
    graph = GRAPHS["empty_type"]()
    export(make_store(graph, tmp_path, partitions=13), out)
    meta = json.loads((out / "META.json").read_text())
    assert (meta["node_types"], meta["node_offset"]) == (["a", "none"], [0, 12])
    assert meta["edge_types"] == [["a", "to", "a"], ["a", "nowhere", "none"], ["a", "never", "a"]]
    assert tensors(out / "edge_map/a__nowhere__none.pt").shape == tensors(out / "node_map/none.pt").shape == (0,)
    assert list(tensors(out / "part_3/node_feats.pt")) == ["a"]
    assert plain(tensors(out / "part_3/node_feats.pt")["a"]["global_id"]) == [3]
    books = {edge_type: tensors(out / f"edge_map/{'__'.join(edge_type)}.pt") for edge_type in graph.edges}
    for part in range(13):
        wanted = [edge_type for edge_type, book in books.items() if (book == part).any()]
        assert list(tensors(out / f"part_{part}/graph.pt")) == wanted
    assert sorted(path.name for path in (out / "part_12").iterdir()) == ["graph.pt"]


def test_data_of_a_partitioned_store_is_sorted_by_destination(tmp_path):
    """Whatever the store's partitions, nodes have their raw IDs, and destinations ascend."""
    stores = [
        make_store(GRAPHS["homogeneous"](), tmp_path / by, partitions=3, partition_by=by) for by in ("range", "hash", "random")
    ]
    for number, store in enumerate(stores):
        export(store, tmp_path / f"out{number}", form="data")
    found = [(tmp_path / f"out{number}" / "data.pt").read_bytes() for number in range(3)]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"form": "parts", "layout": "CSC"}, "option layout=CSC: partitions hold pairs of IDs"),
        ({"features": "nothing"}, "option features: there is no feature 'nothing'"),
        ({"form": "whole"}, "form"),
    ],
)
def test_options_that_do_not_fit_are_refused(given, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        export(make_store(small(), tmp_path), tmp_path / "out", **given)


def test_types_are_not_left_out(tmp_path):
    store = make_store(GRAPHS["heterogeneous"](), tmp_path)
    with pytest.raises(UsageError, match="graph_class=homo: the graph has 3 node types"):
        export(store, tmp_path / "out", graph_class="homo")


@pytest.mark.parametrize("name", ["x", "edge_index", "train_mask"])
def test_names_that_are_taken_are_refused(name, tmp_path):
    graph = small()
    columns = {**graph.nodes["n"].columns, name: np.array([1, 2, 3])}
    graph = Graph({"n": Nodes([0, 1, 2], columns, "y", "part")}, graph.edges)
    with pytest.raises(UsageError, match=f"type 'n' has a column '{name}', a name that PyG or another column has"):
        export(make_store(graph, tmp_path), tmp_path / "out", features="feat")


def test_what_pyg_cannot_hold_is_named(tmp_path):
    nodes = Nodes([0, 1], {"name": np.array(["a", "b"], object), "_k": np.array([1, 2])})
    store = make_store(Graph({"n": nodes}, {("n", "to", "n"): Edges([0], [1])}), tmp_path)
    with pytest.raises(UsageError) as caught:
        export(store, tmp_path / "out")
    assert "node column n '_k': PyG keeps names that begin with '_' to itself" in str(caught.value)
    assert "'name'" not in str(caught.value)
    summary = export(store, tmp_path / "out", drop_columns=["_k"])
    assert summary.dropped[1:] == ("node column n 'name': PyG takes numbers only, and it holds texts or bytes",)
    assert plain(tensors(tmp_path / "out" / "data.pt")) == {"num_nodes": 2, "edge_index": [[0], [1]], "edge_id": [0]}


def test_one_file_wants_nodes_in_the_order_of_ids(tmp_path):
    store = make_store(GRAPHS["homogeneous"](), tmp_path)
    graphprep.reorder(str(store), str(tmp_path / "hot"), by="in-degree")
    with pytest.raises(UsageError, match="form data needs nodes in the order of their IDs"):
        export(tmp_path / "hot", tmp_path / "out", ids="raw")
    summary = export(tmp_path / "hot", tmp_path / "out")
    assert any("nodes go by typed IDs; id_map/paper.npy has the raw ones" in note for note in summary.notes)
    assert (np.diff(tensors(tmp_path / "out/data.pt")["edge_index"][1]) >= 0).all()
