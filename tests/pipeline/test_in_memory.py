"""Input in memory: the store has the bytes that the same data makes from files, and holds what other libraries hold."""

import datetime
import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import graphprep
from graphprep.convert.memory import folder as in_memory
from graphprep.model.errors import DataError, UsageError
from graphprep.model.graph_config import DataArray, EdgeTable, GraphConfig, NodeTable, TableConfig

pd = pytest.importorskip("pandas", reason="pandas is not installed")
scipy = pytest.importorskip("scipy", reason="SciPy is not installed")

nx = pytest.importorskip("networkx")


def bytes_of(folder):
    """Return every file of a store but the one that says how it was made."""
    files = (path for path in Path(folder).rglob("*") if path.is_file() and path.name != "provenance.json")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def users():
    return pd.DataFrame({
        "id": ["cy", "ann", "böb", "dee"],
        "age": [3.5, None, 4.0, float("nan")],
        "name": ["C", None, "", "née"],
        "size": pd.array([1, None, 3, 4], dtype="Int64"),
        "kind": pd.Categorical(["a", "b", None, "a"]),
        "when": pd.to_datetime(["2024-05-01", None, "2024-05-02", "1969-12-31"]),
        "vip": [True, False, True, True],
        "feat": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]],
        "tags": [[1], [], [2, 3], None],
        "small": np.array([1, 2, 3, 4], np.int8),
    })  # fmt: skip


def items():
    return pd.DataFrame({"id": np.array([20, 10, 30]), "price": [1.0, 2.0, 3.0]})


def buys():
    return pd.DataFrame({
        "user": ["ann", "cy", "ann", "dee", "ann"],
        "item": np.array([10, 20, 10, 30, 20], np.uint16),
        "stars": [5, 4, 3, None, 1],
        "note": ["x", None, "y", "z", ""],
    })  # fmt: skip


def config(folder, ending="parquet", *, tables=None, **settings):
    """Return the config of the same tables in files."""

    def table(name, frame):
        path = folder / f"{name}.{ending}"
        frame.to_csv(path, index=False) if ending == "csv" else pq.write_table(pa.Table.from_pandas(frame), path)
        return TableConfig((str(path),))

    made = tables or {"user": users(), "item": items(), "buys": buys()}
    return GraphConfig(
        (NodeTable("user", table("user", made["user"])), NodeTable("item", table("item", made["item"]))),
        (EdgeTable("user", "buys", "item", table("buys", made["buys"])),),
        **settings,
    )


KIND = ("user", "buys", "item")


def as_arrow(frame, chunks=2):
    table = pa.Table.from_pandas(frame, preserve_index=False)
    step = -(-table.num_rows // chunks)
    return pa.concat_tables([table.slice(at, step) for at in range(0, table.num_rows, step)])


class OwnFrame(pd.DataFrame):
    """What another library makes of pandas' class."""


class Exporting:
    """What another library hands over: nothing but Arrow's stream."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


@pytest.mark.parametrize("rows", [1, 2, 1 << 16])
@pytest.mark.parametrize("make", [
    lambda frame: frame,
    as_arrow,
    lambda frame: as_arrow(frame).to_reader(),
    lambda frame: as_arrow(frame, 1).combine_chunks().to_batches()[0],
    lambda frame: Exporting(as_arrow(frame)),
    lambda frame: OwnFrame(frame).set_index(frame.columns[0]),
    lambda frame: frame.astype({name: object for name in frame if frame[name].dtype == "str"}),
    lambda frame: [frame.iloc[:1], frame.iloc[1:]],
], ids=["pandas", "table", "reader", "batch", "stream", "index", "objects", "parts"])  # fmt: skip
def test_tables_make_the_bytes_that_parquet_makes(tmp_path, monkeypatch, make, rows):
    monkeypatch.setattr(in_memory, "_MOST_ROWS", rows)
    graphprep.convert([], tmp_path / "files", graph=config(tmp_path), partitions=2)
    summary = graphprep.convert(
        nodes={"user": make(users()), "item": make(items())}, edges={KIND: make(buys())}, out=tmp_path / "memory", partitions=2
    )
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")
    assert (summary.num_nodes, summary.num_edges) == ({"user": 4, "item": 3}, {"user:buys:item": 5})
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def columns_of(size):
    """Return strategies of columns of a size, by what pandas calls them."""

    def listed(values, *, missing=True):
        return st.lists(st.none() | values if missing else values, min_size=size, max_size=size)

    ints = st.integers(-100, 100)
    floats = st.floats(width=16, allow_nan=True)
    days = st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1))
    return st.one_of(
        st.sampled_from(["int8", "int32", "uint64"]).flatmap(
            lambda kind: listed(st.integers(0, 100), missing=False).map(lambda found: pd.Series(found, dtype=kind))
        ),
        st.sampled_from(["Int16", "UInt32", "Float32"]).flatmap(
            lambda kind: listed(st.integers(0, 100)).map(lambda found: pd.Series(found, dtype=kind))
        ),
        st.sampled_from(["float16", "float32", "float64"]).flatmap(
            lambda kind: listed(floats, missing=False).map(lambda found: pd.Series(found, dtype=kind))
        ),
        listed(ints).map(lambda found: pd.Series(found, dtype=object)),
        listed(ints | floats).map(lambda found: pd.Series(found, dtype=object)),
        listed(st.booleans()).map(lambda found: pd.Series(found, dtype=object)),
        listed(st.booleans()).map(lambda found: pd.Series(found, dtype="boolean")),
        listed(st.text('aé,\n\0"', max_size=4)).map(lambda found: pd.Series(found, dtype="str")),
        listed(st.text(max_size=4)).map(lambda found: pd.Series(found, dtype=object)),
        listed(st.sampled_from("abc")).map(lambda found: pd.Series(found, dtype="category")),
        listed(st.lists(ints, max_size=3)).map(lambda found: pd.Series(found, dtype=object)),
        listed(st.lists(floats, min_size=2, max_size=2)).map(lambda found: pd.Series(found, dtype=object)),
        listed(days).map(lambda found: pd.Series(found, dtype=object)),
        st.sampled_from(["s", "ms", "us", "ns"]).flatmap(
            lambda unit: listed(days).map(lambda found: pd.Series(found, dtype=f"datetime64[{unit}]"))
        ),
    )


@st.composite
def frames(draw):
    """Draw the IDs and columns of some nodes."""
    ids = draw(st.lists(st.integers(0, 2**63), unique=True, max_size=6))
    made = {f"c{at}": draw(columns_of(len(ids))) for at in range(draw(st.integers(0, 3)))}
    return pd.DataFrame({"id": np.array(ids, np.uint64), **made})


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(frame=frames(), rows=st.integers(1, 4))
def test_any_table_makes_the_bytes_that_parquet_makes(tmp_path_factory, frame, rows):
    folder = tmp_path_factory.mktemp("any")
    pq.write_table(pa.Table.from_pandas(frame, preserve_index=False), folder / "user.parquet")
    graph = GraphConfig((NodeTable("user", TableConfig((str(folder / "user.parquet"),))),))

    def outcome(name, *inputs, **options):
        try:
            graphprep.convert(*inputs, out=folder / name, **options)
        except DataError as error:
            return str(error).replace(str(folder / "user.parquet"), "inputs['user']")
        return bytes_of(folder / name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(in_memory, "_MOST_ROWS", rows)
        found = outcome("memory", {"user": frame})
    assert found == outcome("files", [], graph=graph)


def test_a_dict_of_tables_is_split_by_its_keys(tmp_path):
    graphprep.convert([], tmp_path / "files", graph=config(tmp_path))
    graphprep.convert({"user": users(), "user:buys:item": as_arrow(buys()), "item": items()}, tmp_path / "memory")
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


def test_plain_tables_make_the_bytes_that_csv_makes(tmp_path):
    tables = {
        "user": users()[["id", "age", "name"]].replace({"name": {"": None}}),  # CSV does not tell these apart
        "item": items(),
        "buys": buys().drop(columns="note"),
    }
    graphprep.convert([], tmp_path / "files", graph=config(tmp_path, "csv", tables=tables, id_type="auto"))
    made = {"user": tables["user"], "item": tables["item"], KIND: tables["buys"]}
    graphprep.convert(made, tmp_path / "memory", decoder_options={"id_type": "auto"})
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


def test_options_go_to_their_tables(tmp_path):
    found = config(tmp_path)
    nodes = tuple(
        NodeTable(one.type, TableConfig(one.table.files, dropped=("price",) if one.type == "item" else ()), id_col="id")
        for one in found.nodes
    )
    edges = EdgeTable(*KIND, found.edges[0].table, src_col="user", dst_col="item", weight_col="stars")
    labels = ("user:kind",)
    wanted = GraphConfig(nodes, (edges,), columns=(("size", "float32"),))
    graphprep.convert([], tmp_path / "files", graph=wanted, labels=labels)
    graphprep.convert(
        nodes={"user": users()[[*users().columns[1:], "id"]][list(users().columns)], "item": items()},
        edges={"user:buys:item": buys()},
        out=tmp_path / "memory",
        labels=labels,
        decoder_options={
            "id_col": "id",
            "src_col": {KIND: "user"},
            "dst_col": {"user:buys:item": "item"},
            "weight_col": "stars",
            "columns": {"size": "float32"},
            "drop_columns": ["item:price"],
        },
    )
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("memory_limit", ["auto", "300MiB"])
def test_bytes_do_not_depend_on_threads_and_memory(tmp_path, threads, memory_limit):
    rng = np.random.default_rng(5)
    edges = pd.DataFrame({"src": rng.integers(0, 500, 20_000), "dst": rng.integers(0, 300, 20_000), "w": rng.random(20_000)})
    edges.to_parquet(tmp_path / "edges.parquet")
    graphprep.convert(tmp_path / "edges.parquet", tmp_path / "files", decoder_options={"weight_col": "w"})
    run = graphprep.RunOptions(memory_limit=memory_limit, threads=threads)
    graphprep.convert(edges, tmp_path / "memory", decoder_options={"weight_col": "w"}, run=run)
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


# Run apart from the tests, whose own arrays come and go. Prints how far memory rose above what the table takes, in MiB.
RISE = """
import sys, threading, numpy as np, pandas as pd, graphprep, graphprep.convert.pipeline, graphprep.convert.memory.graph, pyarrow.parquet

def held():
    lines = (line.split() for line in open("/proc/self/status"))
    return sum(int(words[1]) for words in lines if words[0] in ("RssAnon:", "RssShmem:")) >> 10

rng = np.random.default_rng(0)
edges = pd.DataFrame({name: rng.integers(0, 1_000_000, 20_000_000) for name in ("src", "dst")})
before, peak, ended = held(), [0], threading.Event()

def watch():
    while not ended.wait(0.02):
        peak[0] = max(peak[0], held() - before)

watcher = threading.Thread(target=watch)
watcher.start()
graphprep.convert(edges, sys.argv[1], memory_limit="256MiB")
ended.set()
watcher.join()
print(peak[0])
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from Linux")
def test_a_large_table_is_read_within_the_limit(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", RISE, str(tmp_path / "store")], check=True, capture_output=True, text=True, timeout=500
    )
    assert int(done.stdout) < 256  # the table itself takes 305 MiB
    assert graphprep.load(tmp_path / "store").num_edges() == 20_000_000


def test_a_table_of_edges_alone_is_read_as_a_parquet_file_is(tmp_path):
    frames = [
        pd.DataFrame({"src": [3, 1], "dst": [1, 2], "w": [1.5, None]}),
        pd.DataFrame({"src": [2], "dst": [9], "w": [2.0]}),
    ]
    for at, frame in enumerate(frames):
        frame.to_parquet(tmp_path / f"{at}.parquet")
    graphprep.convert([tmp_path / "0.parquet", tmp_path / "1.parquet"], tmp_path / "files")
    graphprep.convert(frames, tmp_path / "memory")
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


def test_provenance_says_what_came_from_memory(tmp_path):
    made = {"user": users(), "item": as_arrow(items()), KIND: buys()}
    graphprep.convert(made, tmp_path / "store")
    inputs = json.loads((tmp_path / "store/provenance.json").read_text())["inputs"]
    assert [(one["url"], one["in_memory"]) for one in inputs] == [
        ("inputs['user']", "pandas.DataFrame, 4 rows, 10 columns"),
        ("inputs['item']", "pyarrow.Table"),
        ("inputs[('user', 'buys', 'item')]", "pandas.DataFrame, 5 rows, 4 columns"),
    ]
    assert all(one["bytes"] > 0 for one in inputs)


# ---- matrices


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok"])
@pytest.mark.parametrize("shape", [(7, 7), (5, 9)])
def test_a_matrix_makes_the_bytes_that_its_file_makes(tmp_path, kind, shape):
    matrix = scipy.sparse.random(*shape, 0.4, kind, random_state=1, dtype=np.float32)
    stored = matrix if kind in ("csr", "csc", "coo") else matrix.tocoo()
    scipy.sparse.save_npz(tmp_path / "m.npz", stored, compressed=False)
    types = ("user", "buys", "item") if shape[0] != shape[1] else ("n", "to", "n")
    graph = GraphConfig(edges=(EdgeTable(*types, TableConfig((str(tmp_path / "m.npz"),))),))
    graphprep.convert([], tmp_path / "files", graph=graph)
    graphprep.convert(edges={types: matrix}, out=tmp_path / "memory")
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")
    loaded = graphprep.load(tmp_path / "memory")
    found = loaded.to_scipy(weight="weight")
    assert found.shape == shape
    np.testing.assert_array_equal(found.toarray(), matrix.toarray())


def test_a_square_matrix_alone_is_a_graph_of_one_type(tmp_path):
    matrix = scipy.sparse.csr_array(np.array([[0, 2.0, 0], [0, 0, 1.0], [0.5, 0, 0]]))
    scipy.sparse.save_npz(tmp_path / "m.npz", matrix, compressed=False)
    graphprep.convert(tmp_path / "m.npz", tmp_path / "files")
    graphprep.convert(matrix, tmp_path / "memory")
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


# ---- NetworkX


def edges_of(graph, *, both):
    """Count (source, destination, attributes) of a graph of NetworkX; undirected ones in both directions."""
    found = Counter()
    for src, dst, data in graph.edges(data=True):
        words = tuple(sorted((name, np.asarray(value).tolist().__repr__()) for name, value in data.items()))
        found[src, dst, words] += 1
        if both and src != dst:
            found[dst, src, words] += 1
    return found


def random_graph(kind, names):
    rng = np.random.default_rng(7)
    graph = kind(name="random")
    for at in range(12):
        graph.add_node(names(at), **({"size": float(at)} if at % 3 else {}), **({"id": f"n{at}"} if at % 2 else {}))
    for number, (src, dst) in enumerate(rng.integers(0, 12, (30, 2)).tolist()):
        graph.add_edge(names(src), names(dst), weight=number / 2, **({"text": f"e{number}"} if number % 4 else {}))
    graph.add_edge(names(3), names(3), weight=9.0)
    return graph


@pytest.mark.parametrize("names", [lambda at: at, lambda at: at - 6, lambda at: f"n{at}", lambda at: 10**15 * at])
@pytest.mark.parametrize("kind", ["Graph", "DiGraph", "MultiGraph", "MultiDiGraph"])
def test_a_graph_of_networkx_comes_back(tmp_path, kind, names):
    graph = random_graph(getattr(nx, kind), names)
    summary = graphprep.convert(graph, tmp_path / "store")
    assert graphprep.validate(tmp_path / "store").sound
    found = graphprep.load(tmp_path / "store").to_networkx()
    assert dict(found.nodes(data=True)) == dict(graph.nodes(data=True))
    assert edges_of(found, both=False) == edges_of(graph, both=not graph.is_directed())
    assert found.name == "random"
    note = "the networkx graph has no directions: each edge is there in both"
    assert (note in summary.notes) == (not graph.is_directed())


def test_what_a_store_does_not_hold_of_networkx_is_told(tmp_path):
    graph = nx.MultiDiGraph(name="g", year=2024)
    graph.add_edge(np.int64(-1), 2, key="first")
    summary = graphprep.convert(graph, tmp_path / "store")
    assert summary.notes[:2] == ("left out: attributes of the graph itself: year", "left out: the keys of edges")
    assert graphprep.load(tmp_path / "store").ids().tolist() == [-1, 2]


def test_an_undirected_graph_is_the_matrix_that_networkx_makes_of_it(tmp_path):
    graph = nx.karate_club_graph()
    graphprep.convert(graph, tmp_path / "store")
    loaded = graphprep.load(tmp_path / "store")
    found = loaded.to_scipy(weight="weight").toarray()
    ids = loaded.ids()
    wanted = nx.to_scipy_sparse_array(graph, nodelist=ids.tolist()).toarray()
    np.testing.assert_array_equal(found, wanted)
    assert loaded.column("_N", "club").tolist() == [graph.nodes[node]["club"] for node in ids.tolist()]


def test_graphs_without_edges_and_nodes(tmp_path):
    graph = nx.DiGraph()
    assert sum(graphprep.convert(graph, tmp_path / "empty").num_nodes.values()) == 0
    graph.add_nodes_from("ab")
    summary = graphprep.convert(graph, tmp_path / "nodes")
    assert (summary.num_nodes, summary.num_edges) == ({"_N": 2}, {"_N:_E:_N": 0})


# ---- PyTorch Geometric


def test_data_of_pyg_comes_back(tmp_path):
    torch = pytest.importorskip("torch")
    pyg = pytest.importorskip("torch_geometric.data")
    generator = torch.Generator().manual_seed(1)
    data = pyg.Data(
        x=torch.rand(9, 4, generator=generator),
        y=torch.randint(0, 3, (9,), generator=generator),
        edge_index=torch.randint(0, 9, (2, 20), generator=generator),
        edge_weight=torch.rand(20, generator=generator),
    )
    part = torch.randint(0, 4, (9,), generator=generator)
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        data[name] = part == number
    data.title = "what is no tensor"
    summary = graphprep.convert(data, tmp_path / "store", partitions=2)
    assert "left out: inputs.title, str: not a row for each node or edge" in summary.notes
    loaded = graphprep.load(tmp_path / "store").to_pyg()
    assert torch.equal(loaded.x, data.x)
    assert torch.equal(loaded.y, data.y)
    for name in ("train_mask", "val_mask", "test_mask"):
        assert torch.equal(loaded[name], data[name])
    assert torch.equal(loaded.edge_index, data.edge_index[:, loaded.edge_id])
    assert torch.equal(loaded.edge_attr.ravel(), data.edge_weight[loaded.edge_id])


def hetero(torch, pyg):
    generator = torch.Generator().manual_seed(2)
    data = pyg.HeteroData()
    data["user"].x = torch.rand(5, 3, generator=generator)
    data["user"].year = torch.arange(5)
    data["item"].num_nodes = 4
    data["tag"].x = torch.rand(2, 2, 3, generator=generator).transpose(1, 2)
    data["user", "buys", "item"].edge_index = torch.stack([torch.randint(0, n, (12,), generator=generator) for n in (5, 4)])
    data["user", "buys", "item"].edge_attr = torch.rand(12, 2, generator=generator)
    data["user", "buys", "item"].time = torch.arange(12) * 10
    data["user", "knows", "user"].edge_index = torch.tensor([[0, 1, 4], [1, 1, 0]])
    data["item", "rev_buys", "user"].edge_index = torch.zeros(2, 0, dtype=torch.long)
    return data


def test_hetero_data_of_pyg_comes_back_and_has_the_bytes_of_its_arrays(tmp_path):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = hetero(torch, pyg)
    graphprep.convert(data, tmp_path / "memory")
    loaded = graphprep.load(tmp_path / "memory").to_pyg()
    assert (loaded.node_types, loaded.edge_types) == (data.node_types, data.edge_types)
    assert torch.equal(loaded["user"].x, data["user"].x)
    assert torch.equal(loaded["user"].year, data["user"].year)
    assert loaded["item"].num_nodes == 4
    for kind in data.edge_types:
        assert torch.equal(loaded[kind].edge_index, data[kind].edge_index[:, loaded[kind].edge_id])
    ids = loaded["user", "buys", "item"].edge_id
    assert torch.equal(loaded["user", "buys", "item"].edge_attr, data["user", "buys", "item"].edge_attr[ids])
    assert torch.equal(loaded["user", "buys", "item"].edge_time, data["user", "buys", "item"].time[ids])

    nodes, edges, beside = [], [], []
    for name in data.node_types:
        tensors = {key: value.numpy() for key, value in data[name].items() if key != "num_nodes"}
        np.savez(tmp_path / f"{name}.npz", **tensors)
        table = TableConfig((str(tmp_path / f"{name}.npz"),))
        nodes.append(NodeTable(name, table, row_ids=True) if tensors else NodeTable(name, num_nodes=4))
    for src, rel, dst in data.edge_types:
        store = data[src, rel, dst]
        np.savez(tmp_path / f"{rel}.npz", src=store.edge_index[0].numpy(), dst=store.edge_index[1].numpy())
        edges.append(EdgeTable(src, rel, dst, TableConfig((str(tmp_path / f"{rel}.npz"),))))
        for key in ("edge_attr", "time"):
            if key in store:
                np.save(tmp_path / f"{key}.npy", store[key].numpy())
                beside.append(DataArray(f"{src}:{rel}:{dst}", key.removeprefix("edge_"), str(tmp_path / f"{key}.npy")))
    graphprep.convert([], tmp_path / "files", graph=GraphConfig(tuple(nodes), tuple(edges), edge_data=tuple(beside)))
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


def test_labels_of_several_axes_are_no_features(tmp_path):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = pyg.Data(x=torch.rand(4, 3), y=torch.rand(4, 2), edge_index=torch.tensor([[0, 1], [1, 3]]))
    graphprep.convert(data, tmp_path / "store")
    loaded = graphprep.load(tmp_path / "store").to_pyg()
    assert torch.equal(loaded.x, data.x)
    assert torch.equal(loaded.y, data.y)


def test_a_type_of_pyg_that_only_edges_name_has_the_nodes_that_they_need(tmp_path):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = pyg.HeteroData()
    data["user"].x = torch.rand(3, 2)
    data["user", "buys", "item"].edge_index = torch.tensor([[0, 2], [5, 1]])
    data.title = "shop"
    summary = graphprep.convert(data, tmp_path / "store")
    assert summary.notes == (
        "left out: inputs.title, which is the graph's own",
        "num_nodes of 'item' is not set: taken as 6, by the highest index",
    )
    loaded = graphprep.load(tmp_path / "store").to_pyg()
    assert loaded["item"].num_nodes == 6
    kind = ("user", "buys", "item")
    assert torch.equal(loaded[kind].edge_index, data[kind].edge_index[:, loaded[kind].edge_id])


def test_a_column_of_pyg_that_is_called_id_is_a_column(tmp_path):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = pyg.HeteroData()
    data["user"].id, data["user"].x = torch.tensor([30, 10, 20]), torch.rand(3, 2)
    data["user", "knows", "user"].edge_index = torch.tensor([[2], [0]])
    graphprep.convert(data, tmp_path / "store")
    graph = graphprep.load(tmp_path / "store")
    assert graph.successors(2, "user:knows:user").tolist() == [0]
    assert torch.equal(graph.to_pyg().id, data["user"].id)


@pytest.mark.parametrize(("change", "message"), [
    (lambda torch, data: data.update({"x": torch.eye(3).to_sparse()}),
     "inputs.x: the tensor cannot be read: can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first.\n"
     "  fix: give a dense one of a dtype that NumPy knows, such as tensor.to_dense() or tensor.float()"),
    (lambda torch, data: data.update({"edge_index": torch.tensor([[0, 1], [1, 7]])}),
     "inputs.edge_index: row 1: the edge's destination 7 is not a node of type '_N'\n"
     '  fix: add its record, or use on_missing_node="create" or "drop"'),
    (lambda torch, data: data.update({"edge_index": torch.tensor([0, 1, 2])}),
     "inputs: edge_index has shape (3,)\n  fix: give [2, number of edges]"),
    (lambda torch, data: data.update({"x": np.array([{}, {}, {}], object)}),
     "inputs: x: the array holds objects\n  fix: convert it to a dtype of numbers"),
    (lambda torch, data: data.__delitem__("edge_index"),
     "inputs: there is no edge_index\n  fix: set edge_index to a tensor [2, number of edges]; adj_t is not read"),
])  # fmt: skip
def test_what_is_wrong_with_tensors_is_told(tmp_path, change, message):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = pyg.Data(x=torch.rand(3, 2), num_nodes=3, edge_index=torch.tensor([[0, 1], [1, 2]]))
    change(torch, data)
    with pytest.raises((DataError, UsageError)) as caught:
        graphprep.convert(data, tmp_path / "store")
    assert str(caught.value) == message


# ---- what is wrong


def with_user(**changes):
    return {"user": pd.DataFrame({"id": [5, 6, 7], **changes}), ("user", "r", "user"): pd.DataFrame({"a": [5, 6], "b": [7, 6]})}


def with_edges(**columns):
    return {"user": pd.DataFrame({"id": [5, 6, 7]}), ("user", "r", "user"): pd.DataFrame(columns)}


EDGES = "inputs[('user', 'r', 'user')]"
WRONG = {
    "an ID twice": (
        with_user(id=[5, 6, 6]),
        "inputs['user']: row 2, column 'id': node 6 is declared twice, first at inputs['user']: row 1, column 'id'\n"
        '  fix: keep one record for each node, or use on_error="skip" to keep the first',
    ),
    "a dangling key": (
        with_edges(a=[5, 6], b=[5, 9]),
        f"{EDGES}: row 1, column 'b': the edge's destination 9 is not a node of type 'user'\n"
        '  fix: add its record, or use on_missing_node="create" or "drop"',
    ),
    "no ID": (
        with_user(id=[5, None, 7]),
        "inputs['user']: row 1, column 'id': field 'id' is empty, and floats stand in the other rows\n"
        "  fix: give every row its keys, or leave the row out; then cast the column to int64",
    ),
    "no ID in Int64": (
        with_user(id=pd.array([5, None, 7], dtype="Int64")),
        "inputs['user']: row 1, column 'id': field 'id' is empty\n  fix: give every row its keys, or leave the row out",
    ),
    "no text for an ID": (
        with_edges(a=["x", None], b=["x", "x"]),
        f"{EDGES}: IDs of 'user' are strings here, but integers in inputs['user']\n"
        '  fix: write them alike, or pass decoder_options["id_type"]="string"',
    ),
    "floats as IDs": (
        with_user(id=[5.0, 6.0, 7.5]),
        "inputs['user']: column 'id': IDs must be integers or strings, found double\n  fix: cast it to int64 or string",
    ),
    "a column that is not there": (
        with_edges(a=[5]),
        f"{EDGES}: no column is left for the destination\n  fix: add the column",
    ),
    "several kinds of values": (
        with_user(city=["x", 3, "z"]),
        "inputs['user']: row 1, column 'city': found 3 (int), but string above\n"
        "  fix: give all values of the column one type: numbers, texts, or lists of numbers",
    ),
    "an object": (
        with_user(city=["x", "y", object]),
        "inputs['user']: row 2, column 'city': found <class 'object'> (type), but string above\n"
        "  fix: give all values of the column one type: numbers, texts, or lists of numbers",
    ),
    "a large integer among floats": (
        with_user(city=pd.Series([0.5, 2**60 + 1, None], dtype=object)),
        "inputs['user']: row 1, column 'city': 1152921504606846977 (int) is no double, as the others are\n"
        "  fix: give all values of the column one type",
    ),
    "a column twice": (
        {"user": pd.DataFrame([[5, 6]], columns=["id", "id"])},
        "inputs['user']: two columns are called 'id'\n  fix: give each column a name of its own",
    ),
    "an index of IDs": (
        {"user": pd.DataFrame({"age": [1, 2]}, index=["ann", "bob"])},
        "inputs['user']: the index holds str, and has no name\n"
        "  fix: frame.rename_axis('id') makes it the first column, frame.reset_index(drop=True) leaves it out",
    ),
    "what is no table": (
        {"user": 5},
        "inputs['user']: cannot read int\n  fix: give a path, a DataFrame or an Arrow table",
    ),
    "no table of edges": (
        {KIND: [buys(), 5]},
        "inputs[('user', 'buys', 'item')][1]: cannot read int\n"
        "  fix: give a path, a DataFrame or an Arrow table, a scipy.sparse matrix, or an array or tensor [2, edges]",
    ),
    "a matrix of nodes": (
        {"user": scipy.sparse.csr_array(np.eye(2))},
        "inputs['user']: cannot read scipy.sparse._csr.csr_array\n  fix: give a path, a DataFrame or an Arrow table",
    ),
    "a matrix of three dimensions": (
        scipy.sparse.coo_array(np.ones((2, 2, 2))),
        "inputs: a matrix of edges has two dimensions, found 3\n  fix: give one of sources x destinations",
    ),
    "an array": (
        np.arange(4),
        "inputs: edges must have shape (2, E) or (E, 2), found (4,)\n  fix: give edges as one array of 2 x E or E x 2 integers",
    ),
    "an input of no kind": (
        [items(), 5],
        "inputs[1]: cannot read int\n  fix: give paths, a DataFrame, an Arrow table, a scipy.sparse matrix, "
        "an array or tensor [2, edges], a dict of them, a networkx graph, or PyG's Data or HeteroData",
    ),
    "pairs": (
        ["edges.csv", (0, 1)],
        "inputs[1]: cannot read tuple\n  fix: give paths, a DataFrame, an Arrow table, a scipy.sparse matrix, "
        "an array or tensor [2, edges], a dict of them, a networkx graph, or PyG's Data or HeteroData",
    ),
    "complex numbers": (
        with_user(phase=np.array([1j, 2, 3])),
        "inputs['user']: column 'phase': a column must hold numbers, texts, dates or lists of numbers, found complex128\n"
        "  fix: convert it, or leave it out",
    ),
    "what Parquet does not hold": (
        {"user": pa.table({"id": [1], "span": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})},
        "inputs['user']: this is no table that can be read: Unhandled type for Arrow to Parquet schema conversion: "
        "month_day_nano_interval\n  fix: convert its columns first",
    ),
    "a column of Arrow": (
        {"user": pa.chunked_array([[1, 2]])},
        "inputs['user']: this ChunkedArray is no table: Cannot import schema: ArrowSchema describes non-struct type int64\n"
        "  fix: give a table",
    ),
    "a key that is no type": (
        {("user", "item"): items()},
        "('user', 'item') is no type\n  fix: name a node type 'user', an edge type ('user', 'buys', 'item')",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_with_its_frame_column_and_row(tmp_path, name):
    inputs, message = WRONG[name]
    with pytest.raises((DataError, UsageError)) as caught:
        graphprep.convert(inputs, tmp_path / "store")
    assert str(caught.value) == message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("arguments", "message"), [
    ({"nodes": {"user": 1}, "inputs": "a.csv"}, "nodes and edges are the input: there is none beside them\n  fix: leave out one of the two"),
    ({"nodes": {KIND: 1}}, "('user', 'buys', 'item') is an edge type\n  fix: put it into edges"),
    ({"edges": {"user": 1}}, "'user' is a node type\n  fix: put it into nodes"),
    ({"nodes": {"user": items()}, "format": "csv"}, "format says how files are read, not what is in memory\n  fix: leave out format"),
    ({"nodes": {"user": items()}, "num_nodes": {"item": 3}}, "num_nodes: there is no node type 'item'\n  fix: use one of user"),
    ({"nodes": {"user": items()}, "num_nodes": {"user": 3}},
     "num_nodes is for types without a table, not for 'user'\n  fix: leave out one of the two"),
    ({"nodes": {"user": items()}, "decoder_options": {"id_col": {"item": "id"}}},
     "decoder_options: id_col: no table is of type 'item'\n  fix: use one of user"),
    ({"nodes": {"user": items()}, "decoder_options": {"weight_col": 3.5}},
     "decoder_options: weight_col must be a text, found 3.5\n  fix: correct the value"),
    ({"nodes": {"user": items()}, "decoder_options": {"weight_col": {"user": ["w"]}}},
     "decoder_options: weight_col must be a text, found ['w']\n  fix: correct the value"),
    ({"nodes": {"user": items()}, "decoder_options": {"delimiter": ","}},
     "decoder_options: there is no option 'delimiter' for what is in memory\n"
     "  fix: use one of id_col, weight_col, id_type, src_col, dst_col, time_col, time_unit, columns, drop_columns"),
])  # fmt: skip
def test_arguments_that_contradict_each_other_are_refused(tmp_path, arguments, message):
    with pytest.raises(UsageError) as caught:
        graphprep.convert(**arguments, out=tmp_path / "store")
    assert str(caught.value) == message


def test_options_that_do_not_go_with_a_graph_are_refused(tmp_path):
    graph = nx.path_graph(3, nx.DiGraph)
    for options, message in (
        ({"num_nodes": {"_N": 3}}, "num_nodes does not go with a graph of networkx, which has its nodes\n  fix: leave out num_nodes"),
        ({"decoder_options": {"id_col": "id"}},
         "decoder_options: there is no option 'id_col' for what is in memory\n"
         "  fix: did you mean 'time_col'? use one of weight_col, id_type, time_col, time_unit, columns, drop_columns"),
    ):  # fmt: skip
        with pytest.raises(UsageError) as caught:
            graphprep.convert(graph, tmp_path / "store", **options)
        assert str(caught.value) == message
    pyg = pytest.importorskip("torch_geometric.data")
    with pytest.raises(UsageError) as caught:
        graphprep.convert(pyg.Data(num_nodes=2), tmp_path / "store", decoder_options={"weight_col": "w"})
    assert str(caught.value) == (
        "decoder_options does not go with data of PyG, which has its nodes and columns\n  fix: leave out decoder_options"
    )


def test_attributes_of_networkx_take_options(tmp_path):
    graph = nx.DiGraph()
    graph.add_node("a", size=1.5, note={"any": "thing"})
    graph.add_edge("a", "b", w=2, when=7)
    options = {"weight_col": "w", "time_col": "when", "drop_columns": "note", "columns": {"size": "float32"}}
    graphprep.convert(graph, tmp_path / "store", decoder_options=options)
    loaded = graphprep.load(tmp_path / "store")
    assert [column.name for column in loaded.columns("_N")] == ["size"]
    assert loaded.column("_N", "size").dtype == np.float32
    assert loaded.column(loaded.edge_types[0], "weight").tolist() == [2.0]
    assert loaded.column(loaded.edge_types[0], "time").tolist() == [7]


def test_files_stand_beside_tables_in_memory(tmp_path):
    graphprep.convert([], tmp_path / "files", graph=config(tmp_path))
    made = {"user": tmp_path / "user.parquet", "item": items(), KIND: [str(tmp_path / "buys.parquet")]}
    graphprep.convert(made, tmp_path / "memory")
    assert bytes_of(tmp_path / "memory") == bytes_of(tmp_path / "files")


def test_paths_may_come_one_by_one(tmp_path):
    for at in range(2):
        (tmp_path / f"{at}.csv").write_text(f"{at},{at + 1}\n")
    paths = sorted(tmp_path.glob("*.csv"))
    summary = graphprep.convert(iter(paths), tmp_path / "store", format="edges")
    assert summary.num_edges == {"_N:_E:_N": 2}


def test_a_place_is_needed():
    with pytest.raises(UsageError) as caught:
        graphprep.convert(nodes={"user": items()})
    assert str(caught.value) == "the output has no name\n  fix: name the folder or URL of the store"


def test_types_without_a_table_have_the_numbers_that_are_given(tmp_path):
    edges = {("a", "r", "b"): pd.DataFrame({"src": [0, 2], "dst": [1, 1]})}
    summary = graphprep.convert(edges=edges, out=tmp_path / "store", num_nodes={"a": 5, "b": 2})
    assert summary.num_nodes == {"a": 5, "b": 2}


def test_dates_of_python_are_dates(tmp_path):
    frame = pd.DataFrame({"id": [1, 2], "day": [datetime.date(1970, 1, 3), None]})
    graphprep.convert(nodes={"user": frame}, out=tmp_path / "store")
    loaded = graphprep.load(tmp_path / "store")
    assert loaded.columns("user")[0].unit == "day"
    assert loaded.column("user", "day").tolist() == [2, 0]
    assert loaded.present("user", "day").tolist() == [True, False]


def test_a_colon_in_the_name_of_a_node_type(tmp_path):
    """As it is, or percent-encoded as in ``src:rel:dst``: the type of the edges, not a second one."""
    users, edges = pa.table({"id": [0, 1], "age": [30, 40]}), pa.table({"src": [0, 1], "dst": [1, 0]})
    for number, (node, edge) in enumerate(
        [
            ("t:x", ("t:x", "r", "t:x")),
            ("t%3Ax", ("t:x", "r", "t:x")),
            ("t:x", "t%3Ax:r:t%3Ax"),
            ("t%3Ax", ("t%3Ax", "r", "t%3Ax")),
        ]
    ):
        summary = graphprep.convert(nodes={node: users}, edges={edge: edges}, out=tmp_path / str(number))
        assert summary.num_nodes == {"t%3Ax" if number == 3 else "t:x": 2}
    with pytest.raises(UsageError, match="'t%3Ax' and 't:x' are one node type"):
        graphprep.convert(nodes={"t:x": users, "t%3Ax": users}, out=tmp_path / "no")
    with pytest.raises(UsageError, match="'t:x' is no type of edges"):
        graphprep.convert(edges={"t:x": edges}, out=tmp_path / "no")


def test_tables_of_files_are_recorded_as_files_are(tmp_path):
    (tmp_path / "users.csv").write_text("id,age\n0,30\n1,40\n")
    (tmp_path / "knows.csv").write_text("src,dst\n0,1\n1,0\n")
    tables = {"nodes": {"user": tmp_path / "users.csv"}, "edges": {("user", "knows", "user"): tmp_path / "knows.csv"}}
    graphprep.convert(**tables, out=tmp_path / "store")
    told = json.loads((tmp_path / "store/provenance.json").read_text())
    assert sorted(one["url"] for one in told["inputs"]) == [str(tmp_path / "knows.csv"), str(tmp_path / "users.csv")]
    record = tmp_path / "store/provenance.json"
    assert graphprep.validate(tmp_path / "store", against=record).equal
    (tmp_path / "knows.csv").write_text("src,dst\n0,1\n1,1\n")
    assert not graphprep.validate(tmp_path / "store", against=record).equal


ENDS = np.array([[0, 1, 2, 3], [1, 2, 3, 0]])


def test_arrays_and_tensors_are_both_ends_of_edges(tmp_path):
    torch = pytest.importorskip("torch")
    np.save(tmp_path / "edges.npy", ENDS)
    graphprep.convert(tmp_path / "edges.npy", tmp_path / "file")
    for number, ends in enumerate((ENDS, torch.tensor(ENDS))):
        graphprep.convert(ends, tmp_path / f"store{number}")
        assert bytes_of(tmp_path / f"store{number}") == bytes_of(tmp_path / "file")
        graphprep.convert(edges={("a", "to", "b"): ends}, out=tmp_path / f"named{number}")
        assert np.array_equal(graphprep.load(tmp_path / f"named{number}").edges("a:to:b")[:2], ENDS)
    with pytest.raises(UsageError, match="the tensor is sparse"):
        graphprep.convert(torch.eye(3).to_sparse(), tmp_path / "out")


def test_a_dataset_of_pyg_stands_for_its_only_graph(tmp_path):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")

    class Graphs(pyg.InMemoryDataset):
        def __init__(self, graphs):
            super().__init__()
            self.data, self.slices = self.collate(graphs)

    data = pyg.Data(x=torch.rand(4, 2), edge_index=torch.tensor(ENDS))
    graphprep.convert(data, tmp_path / "graph")
    graphprep.convert(Graphs([data]), tmp_path / "dataset")
    assert bytes_of(tmp_path / "dataset") == bytes_of(tmp_path / "graph")
    with pytest.raises(UsageError) as caught:
        graphprep.convert(Graphs([data, data]), tmp_path / "out")
    assert str(caught.value) == (
        "inputs: this dataset of PyG has 2 graphs\n  fix: give one of them, such as dataset[0], each to a store of its own"
    )
    for graphs in ([data], (data, data), [nx.path_graph(3)]):
        with pytest.raises(UsageError, match="inputs: graphs are not taken in a list"):
            graphprep.convert(graphs, tmp_path / "out")


def mask(torch, *places):
    return torch.tensor([place in places for place in range(4)])


def test_masks_of_pyg(tmp_path):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    some = {"train_mask": mask(torch, 0, 1), "test_mask": mask(torch, 3)}
    told = graphprep.convert(pyg.Data(x=torch.rand(4, 2), edge_index=torch.tensor(ENDS), **some), tmp_path / "some").notes
    assert told == ("node type '_N': split 'split': 2 train, 0 valid, 1 test, 1 in no part",)
    loaded = graphprep.load(tmp_path / "some").to_pyg()
    assert torch.equal(loaded.train_mask, some["train_mask"])
    assert torch.equal(loaded.test_mask, some["test_mask"])
    over = some | {"val_mask": mask(torch, 1)}
    told = graphprep.convert(pyg.Data(x=torch.rand(4, 2), edge_index=torch.tensor(ENDS), **over), tmp_path / "over").notes
    words = "train_mask, val_mask, test_mask overlap or have several columns: they stay columns, and are no split"
    assert told == (f"inputs: {words}",)
    assert graphprep.load(tmp_path / "over").column("_N", "train_mask").tolist() == [1, 1, 0, 0]
    wide = {name: torch.stack([one, one], 1) for name, one in over.items()}
    told = graphprep.convert(pyg.Data(x=torch.rand(4, 2), edge_index=torch.tensor(ENDS), **wide), tmp_path / "wide").notes
    assert told == (f"inputs: {words}",)


@pytest.mark.parametrize("num_pairs", [2, 4])  # 4: as many as there are edges
def test_pairs_of_pyg_that_have_labels_are_no_edges(tmp_path, num_pairs):
    torch, pyg = pytest.importorskip("torch"), pytest.importorskip("torch_geometric.data")
    data = pyg.HeteroData()
    data["a"].x, data["b"].num_nodes = torch.rand(4, 2), 4
    data["a", "to", "b"].edge_index = torch.tensor(ENDS)
    data["a", "to", "b"].edge_label_index = torch.tensor([[3, 2, 1, 0], [0, 1, 1, 3]])[:, :num_pairs]
    data["a", "to", "b"].edge_label = torch.tensor([1, 0, 1, 0])[:num_pairs]
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        data["a", "to", "b"][name] = mask(torch, number)
    told = graphprep.convert(data, tmp_path / "out").notes
    assert "edge type 'a:to:b': split 'split': 1 train, 1 valid, 1 test, 1 in no part" in told
    graph = graphprep.load(tmp_path / "out")
    assert graph.column("a:to:b", "split", order="ids")[:3].tolist() == [0, 1, 2]
    pairs = graph.edges("a:to_label:b")
    assert np.array_equal(pairs[:2], [[3, 2, 1, 0][:num_pairs], [0, 1, 1, 3][:num_pairs]])
    assert graph.column("a:to_label:b", "label", order="ids").tolist() == [1, 0, 1, 0][:num_pairs]
