"""What trainers are given: which columns are features, with which dtypes, and what stands where a label is missing."""

from __future__ import annotations

import json

import numpy as np
import pytest
from clients.graphs import Edges, Graph, Nodes, make_store
from dgl_reader import read_tensors
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch_reader import read_chunks, read_naively

import graphprep
from graphprep.model.errors import DataError, UsageError
from graphprep.model.schema import ColumnSchema
from graphprep.store.columns.features import choose_features, why_no_feature

SIZE = 8
# Columns that are no features, by what they are: names that our own commands make, keys, codes, times, labels, masks.
NO_FEATURES = {
    **dict.fromkeys(("parent_id", "node_id", "edge_id", "eid", "user_id", "cityId", "order_key", "city", "n"), np.int64),
    **dict.fromkeys(("node_type", "edge_type", "zip_code", "category", "label", "y", "split"), np.int64),
    **dict.fromkeys(("timestamp", "created_at", "birth_date", "time"), np.int64),
    **dict.fromkeys(("train_mask", "val_mask", "test_mask"), np.bool_),
    "item_id": np.float64,  # as pandas writes keys of which some are missing
    "target": np.float64,
}
FEATURES = {
    "age": np.int64,
    "price": np.float64,
    "height": np.float32,
    "num_ids_seen": np.int16,
    "valid": np.bool_,
    "h": np.float16,
}


def values_of(rng, dtype):
    if dtype is np.bool_:
        return rng.random(SIZE) < 0.5
    if np.dtype(dtype).kind == "i":
        return rng.integers(1000, 2000, SIZE).astype(dtype)
    return rng.normal(size=SIZE).astype(dtype)


def tensors(path):
    return read_naively(path.read_bytes(), path.stem)


def graph_of(columns, edge_columns=()):
    """Return a graph of nodes of type city, in a ring."""
    ids = list(range(SIZE))
    edges = Edges(ids, [(one + 1) % SIZE for one in ids], dict(edge_columns))
    return Graph({"city": Nodes(ids, columns), "n": Nodes([0])}, {("city", "to", "city"): edges})


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
@pytest.mark.long
def test_no_id_key_code_time_or_label_is_a_feature(data, tmp_path_factory):
    """Over random schemas, ``x`` and ``edge_attr`` of PyG and GLT, files and ``to_pyg``, are the features, as float32, in order."""
    folder = tmp_path_factory.mktemp("schema")
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    known = {**NO_FEATURES, **FEATURES}
    names = data.draw(st.lists(st.sampled_from(sorted(known)), min_size=1, max_size=9, unique=True))
    columns = {name: values_of(rng, known[name]) for name in names}
    store = make_store(graph_of(columns, columns), folder)
    wanted = [columns[name].astype(np.float32) for name in names if name in FEATURES]
    graphprep.export(str(store), str(folder / "pyg"), "pyg")
    graphprep.export(str(store), str(folder / "glt"), "glt")
    data = tensors(folder / "pyg/data.pt")
    found = [data["city"].get("x"), data["city", "to", "city"].get("edge_attr")]
    for side, kind in (("node", "city"), ("edge", "city__to__city")):
        path = folder / f"glt/part0/{side}_feat/{kind}/feats.pkl"
        found.append(read_chunks(path.read_bytes())[0] if path.exists() else None)
    order = np.argsort(data["city", "to", "city"]["edge_id"])
    for at, x in enumerate(found):
        assert (x is None) == (not wanted)
        if wanted:
            assert x.dtype == np.float32
            np.testing.assert_array_equal(x[order] if at == 1 else x, np.stack(wanted, axis=1))


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (ColumnSchema("motto", "binary", "uint8"), "it holds texts or bytes"),
        (ColumnSchema("born", "dense", "int64", unit="day"), "it holds dates or times"),
        (ColumnSchema("job", "dense", "int64", categories=("a", "b")), "it holds codes of categories"),
        (ColumnSchema("job", "dense", "int64", role="label"), "its role is label"),
        (ColumnSchema("wave", "dense", "complex64"), "its numbers are complex"),
        (ColumnSchema("user", "dense", "int64"), "it is named like a node type, so it is taken for a key"),
        *(
            (ColumnSchema(name, "dense", "int64"), "")
            for name in ("age", "grid", "paid", "num_users", "heat", "year", "target_price")
        ),
        *((ColumnSchema(name, "dense", "float32"), "") for name in ("feat", "valid", "response_time", "src", "y")),
    ],
    ids=str,
)
def test_why_a_column_is_no_feature(column, reason):
    assert why_no_feature(column, ["user"]) == reason


def test_dates_codes_and_texts_are_left_out_and_told(tmp_path):
    """Of tables: codes of categories, dates, keys and texts stay out of the matrix, and stop nothing; ``features`` takes them in."""
    rows = "".join(f"{i},{i + 20},2001-01-0{i + 1},{'ab'[i % 2]},said {i},{i},{i / 4}\n" for i in range(4))
    (tmp_path / "user.csv").write_text(f"id,age,born,job,motto,city_id,score\n{rows}")
    (tmp_path / "knows.csv").write_text("src,dst,parent_id\n0,1,5\n1,2,6\n3,0,7\n")
    (tmp_path / "graph.yaml").write_text(
        "nodes:\n  - {type: user, files: user.csv, id_col: id, columns: {born: date}}\n"
        "edges:\n  - {type: 'user:knows:user', files: knows.csv, src_col: src, dst_col: dst}\ncategories: user:job\n"
    )
    graphprep.convert(str(tmp_path / "graph.yaml"), str(tmp_path / "store"))
    summary = graphprep.export(str(tmp_path / "store"), str(tmp_path / "pyg"), "pyg")
    found = tensors(tmp_path / "pyg/data.pt")
    assert found["x"].tolist() == [[i + 20, i / 4] for i in range(4)]
    assert found["x"].dtype == np.float32
    assert found["born"].dtype == found["job"].dtype == found["city_id"].dtype == np.int64
    assert "edge_attr" not in found
    assert summary.dropped == ("node column user 'motto': PyG takes numbers only, and it holds texts or bytes",)
    assert summary.notes[:2] == (
        "node type 'user': its features are age, score, side by side; left out: born (it holds dates or times), job (it holds "
        "codes of categories), city_id (it is named like an ID or key); features=age,score,born,job,city_id takes them in",
        "edge type 'user:knows:user': it has no features; left out: parent_id (it is named like an ID or key); "
        "features=parent_id takes them in",
    )
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "glt"), "glt", features="born,city_id")
    [found] = read_chunks((tmp_path / "glt/part0/node_feat/feats.pkl").read_bytes())
    assert found.tolist() == [[11323 + i, i] for i in range(4)]


def test_one_dtype_for_all_features(tmp_path):
    columns = {"age": np.array([1, 2, 3] + [4] * 5), "price": np.arange(8) / 8, "city_id": np.arange(8)}
    store = make_store(graph_of(columns), tmp_path)
    graphprep.export(str(store), str(tmp_path / "out"), "pyg", feature_dtypes={"*": "float64"})
    found = tensors(tmp_path / "out/data.pt")["city"]
    assert (found["x"].dtype, found["city_id"].dtype) == (np.float64, np.int64)
    graphprep.export(str(store), str(tmp_path / "half"), "glt", feature_dtypes={"*": "float16"})
    [found] = read_chunks((tmp_path / "half/part0/node_feat/city/feats.pkl").read_bytes())
    assert found.dtype == np.float16


def test_numbers_that_float32_does_not_hold(tmp_path):
    """Whole ones are rounded, and told; what would be infinite is an error with a remedy that works."""
    store = make_store(graph_of({"count": np.array([2**24 + 1, *range(7)])}), tmp_path)
    summary = graphprep.export(str(store), str(tmp_path / "out"), "pyg")
    assert any("'count' has whole numbers that float32 rounds" in note for note in summary.notes)
    graphprep.export(str(store), str(tmp_path / "wide"), "pyg", feature_dtypes={"count": "float64"})
    assert tensors(tmp_path / "wide/data.pt")["city"]["x"][0, 0] == 2**24 + 1
    store = make_store(graph_of({"mass": np.array([1e300, *range(7)])}), tmp_path / "mass")
    with pytest.raises(DataError, match="1e\\+300 does not fit float32"):
        graphprep.export(str(store), str(tmp_path / "inf"), "pyg")
    pytest.importorskip("torch_geometric")
    with pytest.raises(DataError, match="1e\\+300 does not fit float32"):
        graphprep.load(str(store)).to_pyg()


def test_missing_values_are_counted(tmp_path):
    columns = {"age": np.ma.masked_array(np.arange(8), [True, True, *[False] * 6]), "h": np.arange(8.0)}
    store = make_store(graph_of(columns), tmp_path)
    for target in ("pyg", "glt", "distdgl", "graphbolt"):
        notes = graphprep.export(str(store), str(tmp_path / target), target).notes
        assert "node type 'city': values are missing, and 0 stands there: age 2 of 8" in notes, target


# ---------------------------------------------------------------------------------------- labels


def labelled(tmp_path, dtype, *, values=(1, 0, 1, 0, 1, 0, 1, 0)):
    """Return a store of nodes in a ring, half of them train; nodes 0 and 4 have no label."""
    label = np.ma.masked_array(np.array(values, dtype), [i in (0, 4) for i in range(8)])
    ids = list(range(8))
    nodes = Nodes(ids, {"cls": label, "part": np.array([0, 0, 0, 0, 1, 1, 2, 2])}, "cls", "part")
    return make_store(Graph({"n": nodes}, {("n", "to", "n"): Edges(ids, ids[1:] + ids[:1])}), tmp_path)


WANTED = {"train": [1, 2, 3], "val": [5], "test": [6, 7]}


@pytest.mark.parametrize(("dtype", "held"), [("int8", "int64"), ("uint8", "int64"), ("float64", "float32")])
def test_a_missing_label_is_no_class(dtype, held, tmp_path):
    """-1, or NaN; such nodes are in no part, in any target, and labels are int64."""
    store = labelled(tmp_path, dtype)
    missing = np.nan if held == "float32" else -1
    wanted = np.array([missing, 0, 1, 0, missing, 0, 1, 0], held)

    def check(labels, parts):
        assert labels.dtype == held
        np.testing.assert_array_equal(labels, wanted)
        assert {part: np.asarray(ids).tolist() for part, ids in parts.items()} == WANTED

    def masks(found):
        return {part: np.flatnonzero(found[f"{part}_mask"]) for part in WANTED}

    for target in ("pyg", "glt", "distdgl", "graphbolt", "dgl-chunked"):
        summary = graphprep.export(str(store), str(tmp_path / target), target)
        assert (
            "node type 'n': 2 of its split lack the label, and are in no part: neither train, valid nor test" in summary.notes
        )
    found = tensors(tmp_path / "pyg/data.pt")
    check(found["y"], masks(found))
    seeds = {part: tensors(tmp_path / f"glt/{part}-partitions/partition0.pt") for part in WANTED}
    check(tensors(tmp_path / "glt/label/label.pt"), seeds)
    found = {
        name.partition("/")[2]: one
        for name, one in read_tensors((tmp_path / "distdgl/part0/node_feat.dgl").read_bytes()).items()
    }
    check(found["cls"], masks(found))
    folder = tmp_path / "graphbolt/preprocessed"
    kind = "regression" if held == "float32" else "classification"
    names = {"train": "train", "val": "validation", "test": "test"}
    parts = {part: np.load(folder / f"sets/node_{kind}/n-{name}-seeds.npy") for part, name in names.items()}
    check(np.load(folder / "node_data/n/cls.npy")[:, 0], parts)
    assert np.load(folder / f"sets/node_{kind}/n-train-labels.npy").dtype == held
    metadata = json.loads((tmp_path / "dgl-chunked/metadata.json").read_text())
    found = {name: np.load(tmp_path / "dgl-chunked" / one["data"][0]) for name, one in metadata["node_data"]["n"].items()}
    check(found["cls"].astype(held), masks(found))


@pytest.mark.client("torch-geometric")
@pytest.mark.long
def test_pyg_trains_on_what_it_is_given(tmp_path):
    """CSV floats and integers make ``x``; a class that is missing is not trained on: a step of SAGEConv goes through."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch_geometric")
    from torch_geometric.data import Data
    from torch_geometric.nn import SAGEConv

    rows = "".join(f"{i},{i % 7},{i / 8},{i % 5},{'abc'[i % 3] if i % 4 else ''},train\n" for i in range(24))
    (tmp_path / "n.csv").write_text(f"id,age,score,city_id,kind,part\n{rows}")
    (tmp_path / "e.csv").write_text("src,dst\n" + "".join(f"{i},{(i * 5 + 1) % 24}\n" for i in range(24)))
    graphprep.convert(
        out=str(tmp_path / "store"), nodes={"n": str(tmp_path / "n.csv")}, edges={"n:to:n": str(tmp_path / "e.csv")},
        labels="kind", splits="part",
    )  # fmt: skip
    graphprep.export(str(tmp_path / "store"), str(tmp_path / "out"), "pyg")
    for data in (Data.from_dict(torch.load(tmp_path / "out/data.pt")), graphprep.load(str(tmp_path / "store")).to_pyg()):
        assert (data.x.dtype, data.x.shape, int(data.train_mask.sum())) == (torch.float32, (24, 2), 18)
        model = SAGEConv(2, 3)
        loss = torch.nn.functional.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        loss.backward()
        assert torch.isfinite(loss)


def test_ids_may_be_named(tmp_path):
    """What users name is a feature, whatever it is; labels and splits are not, texts neither."""
    store = labelled(tmp_path, "int64")
    with pytest.raises(UsageError, match="option features: there is no feature 'cls'"):
        graphprep.export(str(store), str(tmp_path / "out"), "pyg", features="cls")


def test_flows_of_samples_follow_the_same_rule(tmp_path):
    """Without the store, the manifest says what was a date or a code."""
    pytest.importorskip("torch_geometric")
    rows = "".join(f"{i},{i + 20},2001-01-0{i + 1},{'ab'[i % 2]},{i / 4}\n" for i in range(4))
    (tmp_path / "user.csv").write_text(f"id,age,born,job,score\n{rows}")
    (tmp_path / "knows.csv").write_text("src,dst\n0,1\n1,2\n3,0\n2,3\n")
    (tmp_path / "graph.yaml").write_text(
        "nodes:\n  - {type: user, files: user.csv, id_col: id, columns: {born: date}}\n"
        "edges:\n  - {type: 'user:knows:user', files: knows.csv, src_col: src, dst_col: dst}\ncategories: user:job\n"
    )
    graphprep.convert(str(tmp_path / "graph.yaml"), str(tmp_path / "store"))
    names = ["age", "born", "job", "score"]
    (tmp_path / "seeds.txt").write_text("0\n1\n2\n3\n")
    asked = {"seeds": str(tmp_path / "seeds.txt"), "fanouts": [2], "batch_size": 4, "copy_columns": names}
    graphprep.sample(str(tmp_path / "store"), str(tmp_path / "flows"), **asked)
    for graph in (None, str(tmp_path / "store")):
        data = graphprep.open_samples(str(tmp_path / "flows"), graph=graph)[0].to_pyg()
        assert data.x.dtype.is_floating_point and data.x.shape == (4, 2)
        assert data.x[:, 0].tolist() == [one + 20 for one in data.n_id.tolist()]
        assert str(data.x.dtype) == "torch.float32"


def test_names_that_our_own_commands_make_are_taken(tmp_path):
    """``add-reverse`` of ``_E`` makes ``rev__E``, ``to-homogeneous`` makes ``edge_id``, ``node-subgraph`` ``parent_id``."""
    (tmp_path / "e.txt").write_text("0 1\n1 2\n2 0\n")
    graphprep.convert(str(tmp_path / "e.txt"), str(tmp_path / "store"), format="edges")
    for name, operation in (("reversed", ["add-reverse"]), ("homo", ["to-homogeneous"]), ("some", ["filter-degree", "1:"])):
        graphprep.transform(str(tmp_path / "store"), str(tmp_path / name), operation)
        for target, options in (
            ("glt", {}), ("glt", {"layout": "CSR"}), ("pyg", {"form": "parts"}), ("pyg", {}), ("distdgl", {}), ("graphbolt", {}),
            ("metis", {}) if name != "reversed" else ("npy", {}), ("mtx", {}),
        ):  # fmt: skip
            graphprep.export(str(tmp_path / name), str(tmp_path / f"{name}-{target}-{len(options)}"), target, **options)
    assert (tmp_path / "reversed-glt-0/part0/graph/_N__rev__E___N/rows.pt").exists()


def test_a_matrix_that_was_made_already_is_the_features():
    x, year = ColumnSchema("x", "dense", "float32", (3,)), ColumnSchema("year", "dense", "int64")
    assert choose_features("a", [x, year], ()) == (x,)
    assert choose_features("a", [x, year], ("year",)) == (year,)
    scalar = ColumnSchema("x", "dense", "float32")
    assert choose_features("a", [scalar, year], ()) == (scalar, year)
