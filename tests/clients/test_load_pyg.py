"""``graphprep.load(store).to_pyg()`` against the file that ``export --to pyg`` writes, which PyG reads."""

from __future__ import annotations

import numpy as np
import pytest
from clients.gaps import AT, BUYS, DST, PYG, SRC, make_gaps
from clients.graphs import GRAPHS, Edges, Graph, Nodes, make_store, shared_store

import graphprep
from graphprep.model.errors import UsageError

torch = pytest.importorskip("torch", reason="torch is not installed")
pytest.importorskip("torch_geometric", reason="torch-geometric is not installed")

from torch_geometric.data import Data, HeteroData  # noqa: E402

pytestmark = pytest.mark.client("torch-geometric")


def exported(store, out, **given):
    """Return what PyG makes of the file."""
    graphprep.export(str(store), str(out), "pyg", form="data", drop_unsupported=True, **given)
    values = torch.load(out / "data.pt")
    return (HeteroData if any(isinstance(one, dict) for one in values.values()) else Data).from_dict(values)


def tensors(data):
    """Return all attributes: those of types by (type, name)."""
    return {
        (kind, name): value
        for kind, some in (data.to_dict().items() if isinstance(data, HeteroData) else [("", data.to_dict())])
        for name, value in some.items()
    }


def check_same(found, wanted):
    assert type(found) is type(wanted)
    found, wanted = tensors(found), tensors(wanted)
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        if not torch.is_tensor(value):
            assert found[name] == value, name
            continue
        assert (found[name].dtype, found[name].shape) == (value.dtype, value.shape), name
        assert torch.equal(found[name].nan_to_num(-7), value.nan_to_num(-7)), name


def check_same_by_raw_ids(graph, wanted):
    """Compare with a file in which nodes go by raw IDs: nodes by these, edges by edge ID."""
    found, wanted = tensors(graph.to_pyg()), tensors(wanted)
    assert list(found) == list(wanted)
    raw = {node_type: graph.ids(node_type) for node_type in graph.node_types}
    for kind, name in wanted:
        if name == "num_nodes":
            assert found[kind, name] == wanted[kind, name]
            continue
        own, value = (some[kind, name].numpy() for some in (found, wanted))
        assert own.dtype == value.dtype, name
        if not (isinstance(kind, tuple) or name.startswith("edge")):
            np.testing.assert_array_equal(own, value[raw[kind or graph.node_types[0]]], name)
            continue
        if name == "edge_index":
            src, _, dst = kind or graph.edge_types[0]
            own = np.stack([raw[src][own[0]], raw[dst][own[1]]])
        axis = 1 if name == "edge_index" else 0
        own_order, order = (some[kind, "edge_id"].argsort().numpy() for some in (found, wanted))
        np.testing.assert_array_equal(own.take(own_order, axis), value.take(order, axis), name)


@pytest.mark.parametrize("layout", ["csc", "csr", "both"])
@pytest.mark.parametrize("name", [name for name in GRAPHS if name != "empty_partition"])
def test_it_is_what_export_writes(name, layout, tmp_path):
    _, store = shared_store(name, layout=layout)
    data = graphprep.load(str(store)).to_pyg()
    data.validate()
    check_same(data, exported(store, tmp_path / "out"))


@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous", "empty_type", "temporal", "few_nodes"])
def test_nodes_have_typed_ids_with_any_partitions(name, tmp_path):
    _, store = shared_store(name, partitions=3, partition_by="hash")
    check_same_by_raw_ids(graphprep.load(str(store)), exported(store, tmp_path / "out"))


@pytest.mark.parametrize("order", ["input", "id", "time", "weight"])
@pytest.mark.parametrize("layout", ["csc", "csr"])
def test_neighbors_are_in_the_order_of_the_store(order, layout, tmp_path):
    store = make_store(GRAPHS["temporal"](), tmp_path, layout=layout, neighbor_order=order, partitions=3)
    check_same(graphprep.load(str(store)).to_pyg(), exported(store, tmp_path / "out"))


@pytest.mark.parametrize("layout", ["csc", "csr"])
@pytest.mark.parametrize("name", ["homogeneous", "heterogeneous"])
def test_without_edge_ids_rows_stand_in_for_them(name, layout, tmp_path):
    store = make_store(GRAPHS[name](), tmp_path, layout=layout, edge_ids=False, partitions=2)
    check_same(graphprep.load(str(store)).to_pyg(), exported(store, tmp_path / "out"))


@pytest.mark.parametrize("features", ["age", ("age", "user:feat"), "feat"])
def test_features_are_those_that_are_named(features, tmp_path):
    _, store = shared_store("heterogeneous")
    given = features if isinstance(features, str) else ",".join(features)
    check_same(graphprep.load(str(store)).to_pyg(features), exported(store, tmp_path / "out", features=given))


# ---------------------------------------------------------------------------------------------- gaps


@pytest.mark.parametrize("options", [{}, {"layout": "csr"}, {"partitions": 3}, {"layout": "both", "neighbor_order": "time"}])
def test_what_is_missing_is_no_class_and_no_value(options, tmp_path):
    store = make_gaps(tmp_path, **options)
    data, file = graphprep.load(str(store)).to_pyg(), exported(store, tmp_path / "out", message_edges="all")
    found = torch.load(tmp_path / "out/edge_sets.pt")[BUYS]
    for part, edges in (("train", [0]), ("val", [3]), ("test", [2])):  # sets of the edges of a split are of files alone
        sets = {name: found.pop(f"{part}_edge_label{name}").tolist() for name in ("", "_id", "_index", "_time")}
        assert sets["_id"] == edges
        assert sets["_index"] == [[ends[edge] for edge in edges] for ends in (SRC, DST)]
        assert (sets["_time"], sets[""]) == ([AT[edge] for edge in edges], [[0, -1, 2, 1, -1, 0][edge] for edge in edges])
    check_same(data, file)
    found = tensors(data)
    order = found[BUYS, "edge_id"].tolist()
    src, dst = found.pop((BUYS, "edge_index")).tolist()
    assert (src, dst) == ([SRC[one] for one in order], [DST[one] for one in order])
    del found[BUYS, "edge_id"], found["user", "num_nodes"], found["item", "num_nodes"]
    assert set(found) == {(kind, name) for kind, some in PYG.items() for name in some}
    for kind, some in PYG.items():
        for name, (dtype, values) in some.items():
            value = found[kind, name].numpy()
            assert value.dtype.name == dtype, name
            np.testing.assert_array_equal(value, [values[row] for row in order] if kind == BUYS else values, name)


def test_a_store_is_not_written_to(tmp_path):
    _, store = shared_store("homogeneous")
    before = graphprep.load(str(store)).column("paper", "feat").copy()
    data = graphprep.load(str(store)).to_pyg(features="feat")
    for value in tensors(data).values():
        if torch.is_tensor(value):
            value.zero_()
    np.testing.assert_array_equal(graphprep.load(str(store)).column("paper", "feat"), before)


@pytest.mark.parametrize(
    ("columns", "features", "message"),
    [
        (
            {"x": np.array([1, 2]), "feat": np.zeros((2, 3), np.float32)},
            ("feat",),
            "type 'n' has a column 'x', a name that PyG or",
        ),
        ({"feat": np.zeros((2, 3), np.float32)}, ("no",), "there is no feature 'no'\n  fix: use some of feat"),
    ],
)
def test_what_cannot_be_is_told(columns, features, message, tmp_path):
    store = make_store(Graph({"n": Nodes([0, 1], columns)}, {("n", "to", "n"): Edges([0], [1])}), tmp_path)
    with pytest.raises(UsageError) as caught:
        graphprep.load(str(store)).to_pyg(features)
    assert message in str(caught.value)


# ---------------------------------------------------------------------------------------------------- mini-batches


def ring(tmp_path, extra=""):
    """Convert a ring of six nodes with as many edges, all of which are train."""
    nodes = f"id,age,part{extra and ',' + extra}\n" + "".join(f"{i},{i + 40},train{extra and f',{i}'}\n" for i in range(6))
    (tmp_path / "n.csv").write_text(nodes)
    (tmp_path / "e.csv").write_text("src,dst,at,part\n" + "".join(f"{i},{(i + 1) % 6},{i + 7},train\n" for i in range(6)))
    graphprep.convert(
        [],
        tmp_path / "store",
        nodes={"n": tmp_path / "n.csv"},
        edges={"n:to:n": tmp_path / "e.csv"},
        splits=["n:part", "n:to:n:part"],
        decoder_options={"time_col": "at"},
    )
    return tmp_path / "store"


@pytest.mark.parametrize("typed", [False, True])
def test_loaders_choose_the_rows_of_nodes_and_edges_alone(tmp_path, typed):
    """What loaders do with a batch, 4 -> 5 -> 0: each tensor of the graph keeps the rows of its nodes and edges, and no other."""
    from torch_geometric.loader.utils import filter_data, filter_hetero_data

    graphprep.export(ring(tmp_path), tmp_path / "out", "pyg", graph_class="hetero" if typed else "auto")
    values, sets = torch.load(tmp_path / "out/data.pt"), torch.load(tmp_path / "out/edge_sets.pt")
    name = ("n", "to", "n")
    order = (values[name] if typed else values)["edge_id"].tolist()
    nodes, row, col = torch.tensor([4, 5, 0]), torch.tensor([0, 1]), torch.tensor([1, 2])
    edges = torch.tensor([order.index(4), order.index(5)])
    if typed:
        found = filter_hetero_data(HeteroData.from_dict(values), {"n": nodes}, {name: row}, {name: col}, {name: edges})
        batch, sets = {**found["n"].to_dict(), **found[name].to_dict()}, sets[name]
    else:
        batch = filter_data(Data.from_dict(values), nodes, row, col, edges).to_dict()
    assert batch["edge_time"].tolist() == [11, 12]
    sizes = {key: len(value) for key, value in batch.items() if torch.is_tensor(value) and key != "edge_index"}
    assert sizes == {key: 2 if key.startswith("edge") else 3 for key in sizes}
    assert sets["train_edge_label_index"].T.tolist() == [[i, (i + 1) % 6] for i in range(6)]
    assert not any("label" in key for key in batch)


def test_names_that_loaders_take_for_those_of_edges_are_refused(tmp_path):
    store = ring(tmp_path, "knowledge")
    options = {"features": "age"}
    for make in (
        lambda: graphprep.export(store, tmp_path / "out", "pyg", **options),
        lambda: graphprep.load(store).to_pyg(**options),
    ):
        with pytest.raises(UsageError, match="column 'knowledge' of nodes: PyG's loaders take it for one of edges"):
            make()
    graphprep.export(store, tmp_path / "out", "pyg", **options, graph_class="hetero")
