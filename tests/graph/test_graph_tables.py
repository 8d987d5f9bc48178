"""``Graph.to_arrow`` and ``to_pandas``: the rows that the store's arrays hold, and those that pandas put in."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tiny_store import BUYS, ITEMS, USERS, WEIGHTS, sample_store

import graphprep
from graphprep.graph import arrow as graph_arrow
from graphprep.model.errors import DataError, UsageError

pd = pytest.importorskip("pandas", reason="pandas is not installed")

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
BY_ENDS = sorted(range(len(BUYS)), key=lambda i: (BUYS[i], i))


@pytest.fixture
def graph(tmp_path):
    return graphprep.load(str(sample_store().write(tmp_path / "shop")))


def plain(value):
    """Return a cell of a column of the store as Python has it."""
    if isinstance(value, tuple):
        return [{"at": at, "value": one} for at, one in zip(value[0].tolist(), value[1].tolist(), strict=True)]
    if isinstance(value, list):
        return [{"start": start, "end": None if end == -1 else end, "values": values.tolist()} for start, end, values in value]
    return value if isinstance(value, str) else np.asarray(value).tolist()


@pytest.mark.parametrize("chunk", [1, 2, 1 << 16])
def test_nodes_are_a_table_of_ids_and_columns_of_every_kind(graph, monkeypatch, chunk):
    monkeypatch.setattr(graph_arrow, "_CHUNK_ROWS", chunk)
    table = graph.to_arrow("user")
    names = [column.name for column in graph.columns("user")]
    assert table.column_names == ["id", *names]
    assert table["id"].to_pylist() == [one for part in USERS for one in part]
    for name in names:
        column, present = graph.column("user", name), graph.present("user", name)
        wanted = [plain(column[row]) if present is None or present[row] else None for row in range(5)]
        assert table[name].to_pylist() == wanted


@pytest.mark.parametrize(("order", "wanted"), [(None, range(7)), ("ids", range(7)), ("srcdst", BY_ENDS), ("rows", None)])
@pytest.mark.parametrize("ids", ["raw", "typed"])
def test_edges_are_a_table_of_ends_and_columns_in_an_order(graph, order, wanted, ids):
    wanted = list(graph.edges("buys", "rows")[2] if wanted is None else wanted)
    table = graph.to_arrow("buys", order=order, ids=ids)
    assert table.column_names == ["src", "dst", "edge_id", "weight"]
    raw = [[one for part in parts for one in part] if ids == "raw" else range(9) for parts in (USERS, ITEMS)]
    assert table["src"].to_pylist() == [raw[0][BUYS[i][0]] for i in wanted]
    assert table["dst"].to_pylist() == [raw[1][BUYS[i][1]] for i in wanted]
    assert table["edge_id"].to_pylist() == wanted
    present = graph.present("buys", "weight", order=order or "ids")
    assert table["weight"].to_pylist() == [WEIGHTS[i] if here else None for i, here in zip(wanted, present, strict=True)]


def test_named_columns_alone(graph):
    assert graph.to_arrow("user", ["label"]).column_names == ["id", "label"]
    assert graph.to_arrow("user", []).column_names == ["id"]
    assert graph.to_pandas("buys", columns=["weight"], order="srcdst")["edge_id"].tolist() == BY_ENDS


def test_columns_are_arrays_of_arrow_and_series(graph):
    for name in ("feat_1", "feat_2", "feat_3", "feat_4"):
        column = graph.column("user", name)
        assert column.to_arrow().to_pylist() == [plain(column[row]) for row in range(5)]
    texts = graph.column("user", "feat_3")
    assert texts.to_pandas().tolist() == texts.tolist()
    assert texts[[1]].to_arrow().to_pylist() == [texts[1]]


def test_texts_that_are_no_utf8_are_bytes(graph):
    texts = type(graph.column("user", "feat_3"))(np.array([0, 1, 3]), np.frombuffer(b"\xffab", np.uint8))
    assert texts.to_arrow().to_pylist() == [b"\xff", b"ab"]


def test_what_was_put_in_by_pandas_comes_back(tmp_path):
    users = pd.DataFrame({
        "id": ["ann", "bob", "cy"],
        "age": pd.array([2**60 + 1, None, 3], dtype="Int64"),
        "vip": pd.array([True, None, False], dtype="boolean"),
        "size": [1.5, None, 2.5],
        "name": ["A", None, "C"],
        "day": pd.to_datetime(["2024-05-01", None, "1969-12-31"]).astype("datetime64[us]"),
        "kind": ["b", None, "a"],
        "id_": np.arange(3, dtype=np.int8),
    })  # fmt: skip
    follows = pd.DataFrame({"src": ["ann", "ann"], "dst": ["cy", "bob"], "edge_id": [7, 8]})
    made = {"user": users, "user:follows:user": follows}
    graphprep.convert(made, tmp_path / "store", labels=("user:kind",))
    graph = graphprep.load(tmp_path / "store")
    found = graph.to_pandas("user")
    assert found["kind"].cat.categories.tolist() == ["a", "b"]
    pd.testing.assert_frame_equal(found.astype({"kind": "str"}), users.astype({"kind": "str"}))
    edges = graph.to_pandas("follows")
    assert edges.columns.tolist() == ["src", "dst", "_edge_id", "edge_id"]
    pd.testing.assert_frame_equal(edges[["src", "dst", "edge_id"]], follows)
    again = {"user": found, "user:follows:user": edges.drop(columns="_edge_id")}
    graphprep.convert(again, tmp_path / "again", labels=("user:kind",))
    assert graphprep.load(tmp_path / "again").to_arrow("user").equals(graph.to_arrow("user"))


def test_a_type_without_rows_and_a_store_without_edge_ids(tmp_path):
    empty = graphprep.load(str(GOLDEN / "edges_empty" / "store"))
    assert empty.to_arrow(empty.node_types[0]).num_rows == 0
    assert empty.to_arrow(empty.edge_types[0]).column_names[:2] == ["src", "dst"]
    karate = graphprep.load(str(GOLDEN / "karate_tsv_no_edge_ids" / "store"))
    table = karate.to_arrow(karate.edge_types[0], order="rows")
    assert "edge_id" not in table.column_names
    assert table.num_rows == karate.num_edges()


def test_numbers_are_not_copied(tmp_path):
    values = np.arange(100_000.0)
    np.save(tmp_path / "x.npy", values)
    (tmp_path / "edges.txt").write_text("0 1\n99998 99999\n")
    graphprep.convert(tmp_path / "edges.txt", tmp_path / "store", node_data=(f"_N:x={tmp_path}/x.npy",))
    graph = graphprep.load(tmp_path / "store")
    before = pa.total_allocated_bytes()
    table = graph.to_arrow("_N", ["x"])
    assert pa.total_allocated_bytes() - before < 1000
    np.testing.assert_array_equal(table["x"].to_numpy(), values)


@pytest.mark.parametrize(("kind", "ask", "message"), [
    (DataError, lambda g: g.to_arrow("user", ["age"]),
     "'user' has no column 'age'\n  fix: use one of weight, feat_0, feat_1, feat_2, feat_3, feat_4, label"),
    (UsageError, lambda g: g.to_pandas("user", ids="Raw"), "there are no ids 'Raw'\n  fix: did you mean 'raw'? use one of raw, typed"),
    (UsageError, lambda g: g.to_arrow("buys", order="id"), "there is no order 'id'\n  fix: did you mean 'ids'? use one of ids, rows, srcdst"),
    (UsageError, lambda g: g.to_arrow("user", order="ids"), "order belongs to edges: columns of 'user' lie by node\n  fix: leave out order"),
])  # fmt: skip
def test_what_is_wrong_is_told(graph, kind, ask, message):
    with pytest.raises(kind) as caught:
        ask(graph)
    assert str(caught.value) == message
