"""``transform`` over every golden store, against lists of rows in Python: nodes and edges by raw ID, with all their columns."""

import collections
import io
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from golden.golden_cases import load_cases, read_store

import graphprep
from graphprep.cli.main import run
from graphprep.model.errors import DataError, StorageError, UsageError
from graphprep.model.schema import edge_type_text
from graphprep.rewrite.transform import views
from graphprep.store import raw_merge, room

pytestmark = pytest.mark.usefixtures("flags_named")

STORES = {case.name: case.store for case in load_cases() if (case.store / "metadata.json").exists()}
SHOP = "shop_edgelist_both_parts"
BLANKS = {"weight": 1, "created_at": 0, "removed_at": -1, "created": False}  # of an edge that there was not


class Naive:
    """A graph as rows: nodes are (raw ID, columns) by type, edges (source, destination, columns) by edge ID."""

    def __init__(self, folder):
        graph = graphprep.load(str(folder))
        self.nodes = {name: self.node_rows(graph, name) for name in graph.node_types}
        self.edges = {name: self.edge_rows(graph, name) for name in graph.edge_types}

    @staticmethod
    def node_rows(graph, name):
        table = graph.to_arrow(name)
        key = table.column_names[0]
        return [(row.pop(key), tidy(row)) for row in table.to_pylist()]

    @staticmethod
    def edge_rows(graph, name):
        has_ids = graph.metadata.edge_schemas[graph.edge_types.index(name)].edge_id_dtype is not None
        table = graph.to_arrow(name, order="ids" if has_ids else "rows")
        keys = table.column_names[: 3 if has_ids else 2]
        rows = ([*[row.pop(key) for key in keys][:2], tidy(row)] for row in table.to_pylist())
        return [tuple(row) for row in rows]


def tidy(row):
    """Values that compare: NaN equals NaN, in lists, too."""
    return {name: repr(value) if isinstance(value, list | dict) or value != value else value for name, value in row.items()}


def transformed(store, tmp_path, operations, **options):
    out = tmp_path / "out"
    graphprep.transform(str(store), str(out), operations, **options)
    report = graphprep.validate(str(out))
    assert report.sound, report.faults
    graph = graphprep.load(str(out))
    check_form(graph)
    return Naive(out), graph


def without_parents(rows):
    return [(*row[:-1], {name: value for name, value in row[-1].items() if name != "parent_id"}) for row in rows]


def check(found, nodes, edges, *, ordered=True):
    assert {name: sorted(without_parents(rows), key=str) for name, rows in found.nodes.items()} == {
        name: sorted(rows, key=str) for name, rows in nodes.items()
    }
    order = (lambda rows: rows) if ordered else (lambda rows: sorted(rows, key=str))
    assert {name: order(without_parents(rows)) for name, rows in found.edges.items()} == {
        name: order(rows) for name, rows in edges.items()
    }


def has_ids(store):
    schema = json.loads((store / "metadata.json").read_text())["edge_schema"]
    return all(value["edge_id_dtype"] for value in schema.values())


@pytest.fixture(params=sorted(STORES))
def store(request):
    return STORES[request.param]


def test_edges_are_turned_round(store, tmp_path):
    old, (found, _) = Naive(store), transformed(store, tmp_path, "reverse")
    turned = {(t[2], t[1], t[0]): [(v, u, row) for u, v, row in rows] for t, rows in old.edges.items()}
    check(found, old.nodes, turned, ordered=has_ids(store))
    again = tmp_path / "again"
    graphprep.transform(str(tmp_path / "out"), str(again), "transpose")
    if has_ids(store):
        files = [
            path
            for path in sorted(store.rglob("*"))
            if path.is_file() and path.name not in ("provenance.json", "previous_ids.npy")
        ]
        old_schema = json.loads((store / "metadata.json").read_text())["node_schema"]
        assert {path.relative_to(store): path.read_bytes() for path in files} == {
            path.relative_to(store): (again / path.relative_to(store)).read_bytes() for path in files
        }, old_schema


def test_reverses_are_added_as_types(store, tmp_path):
    old, (found, _) = Naive(store), transformed(store, tmp_path, "add-reverse")
    edges = dict(old.edges)
    edges |= {(t[2], f"rev_{t[1]}", t[0]): [(v, u, row) for u, v, row in rows] for t, rows in old.edges.items()}
    check(found, old.nodes, edges, ordered=has_ids(store))


def is_homo(old):
    return all(src == dst for src, _, dst in old.edges)


def test_graphs_are_made_undirected(store, tmp_path):
    """Edge types between nodes of one type; others stay as they are."""
    old = Naive(store)
    if old.edges and all(src != dst for src, _, dst in old.edges):
        with pytest.raises(UsageError, match="lead from one node type to another"):
            graphprep.transform(str(store), str(tmp_path / "out"), "to-bidirected")
        return
    found, graph = transformed(store, tmp_path, "to-bidirected")
    edges = {}
    for name, rows in old.edges.items():
        if name[0] != name[2]:
            edges[name] = rows
            continue
        assert not graph.is_multigraph(name)
        both = rows + [(v, u, row) for u, v, row in rows if u != v]
        edges[name] = list({(u, v): (u, v, row) for u, v, row in reversed(both)}.values())
    if has_ids(store):
        check(found, old.nodes, edges, ordered=False)


def test_edge_types_that_are_named_become_undirected(tmp_path, capsys):
    """Of a heterogeneous graph; the command line, Python and convert say what stays as it is."""
    rows = {
        ("user", "knows", "user"): [(0, 1), (1, 0), (2, 2), (1, 2)],
        ("user", "likes", "user"): [(0, 2), (0, 2)],
        ("user", "buys", "item"): [(0, 0), (2, 1)],
    }
    tables = []
    for number, (name, edges) in enumerate(rows.items()):
        (tmp_path / f"{number}.csv").write_text("src,dst\n" + "".join(f"{u},{v}\n" for u, v in edges))
        tables += ["--edges", f"{':'.join(name)}={tmp_path / f'{number}.csv'}"]
    store = str(tmp_path / "store")
    assert run(["convert", store, *tables, "--quiet"]) == 0
    both = {name: list(dict.fromkeys([*edges, *((v, u) for u, v in edges if u != v)])) for name, edges in rows.items()}
    knows, likes, _ = rows
    stays = "edge types between different node types stay as they are: 1;"
    for words, changed in (
        (["to-bidirected", "user:knows:user"], [knows]),
        (["to-bidirected", "likes"], [likes]),
        (["symmetrize", "max", "user:knows:user", "likes"], [knows, likes]),
        (["symmetrize", "knows"], [knows]),
        (["to-bidirected"], [knows, likes]),
    ):
        capsys.readouterr()
        assert run(["transform", store, str(tmp_path / "out"), *words, "--overwrite"]) == 0
        assert (stays in " ".join(capsys.readouterr().out.split())) == (len(words) == 1)
        found = {name: [row[:2] for row in some] for name, some in Naive(tmp_path / "out").edges.items()}
        assert found == {name: both[name] if name in changed else rows[name] for name in rows}
    assert run(["convert", str(tmp_path / "made"), *tables, "--undirected"]) == 0
    assert stays in " ".join(capsys.readouterr().out.split())
    assert read_store(tmp_path / "made") == read_store(tmp_path / "out")
    for word, message in (
        ("user:buys:item", "edges of type 'user:buys:item' lead from one node type to another"),
        ("mean", "there is no edge type 'mean'"),
    ):
        with pytest.raises(UsageError, match=f"^{message}"):
            graphprep.transform(store, str(tmp_path / "no"), ["to-bidirected", word])


def merged(rows, merge, summed):
    groups = collections.defaultdict(list)
    for u, v, row in rows:
        groups[u, v].append(row)
    out = []
    for (u, v), some in groups.items():
        row = dict(some[-1 if merge == "last" else 0])
        if merge == "count":
            row["count"] = len(some)
        for name in summed if merge in ("sum", "max") else ():
            there = [one[name] for one in some if one[name] is not None]
            row[name] = None if not there else sum(there) if merge == "sum" else max(there)
        out.append((u, v, row))
    return out


@pytest.mark.parametrize("merge", ["first", "last", "sum", "max", "count"])
@pytest.mark.parametrize(
    "name", ["edges_weighted", "edges_plain", "shop_edgelist_both_parts", "dtypes_edgelist", "names_lesmis", "edges_timed"]
)
def test_parallel_edges_become_one(name, merge, tmp_path):
    """The golden graphs, every edge three times: weights differ."""
    store = STORES[name]
    old = Naive(store)
    found, graph = transformed(store, tmp_path, f"to-simple {merge}")
    summed = {
        edge_type: [
            column.name
            for column in graph.columns(edge_type)
            if column.kind == "dense"
            and not column.item_shape
            and column.role in (None, "weight")
            and column.dtype != "bool"
            and not column.categories
            and column.name not in ("count", "parent_id")
        ]
        for edge_type in old.edges
    }
    wanted = {edge_type: merged(rows, merge, summed[edge_type]) for edge_type, rows in old.edges.items()}
    assert {t: [row[:2] for row in rows] for t, rows in found.edges.items()} == {
        t: [row[:2] for row in rows] for t, rows in wanted.items()
    }
    for edge_type, rows in wanted.items():
        for (_, _, row), (_, _, own) in zip(rows, found.edges[edge_type], strict=True):
            for column, value in row.items():
                if merge in ("sum", "max") and str(value).startswith("["):  # vectors: below
                    continue
                assert own[column] == (pytest.approx(value, rel=1e-6) if isinstance(value, float) else value), column


@pytest.mark.parametrize("merge", ["sum", "max"])
def test_vectors_are_merged_number_by_number(merge, tmp_path):
    src, dst = np.array([0, 1, 0, 0, 1]), np.array([1, 0, 1, 1, 0])
    vectors = np.arange(15, dtype=np.float32).reshape(5, 3)[::-1].copy()
    np.savez(tmp_path / "g.npz", src=src, dst=dst)
    np.save(tmp_path / "v.npy", vectors)
    graphprep.convert(str(tmp_path / "g.npz"), str(tmp_path / "store"), edge_data=[f"v={tmp_path / 'v.npy'}"])
    graphprep.transform(str(tmp_path / "store"), str(tmp_path / "out"), ["to-simple", merge])
    graph = graphprep.load(str(tmp_path / "out"))
    made = getattr(np, merge)
    found = np.asarray(graph.column(graph.edge_types[0], "v", order="ids"))
    assert found.tolist() == [made(vectors[[0, 2, 3]], axis=0).tolist(), made(vectors[[1, 4]], axis=0).tolist()]


def write_multigraph(tmp_path, num_edges=4000, num_nodes=60, seed=0, **options):
    """A multigraph with loops and a weight that is missing here and there, in two partitions and both layouts."""
    rng = np.random.default_rng(seed)
    src, dst = rng.integers(0, num_nodes, (2, num_edges))
    text = ["src,dst,weight,age"]
    text += [
        f"{u},{v},{rng.integers(1, 9)},{'' if rng.random() < 0.3 else rng.integers(0, 99)}"
        for u, v in zip(src, dst, strict=True)
    ]
    (tmp_path / "edges.csv").write_text("\n".join(text) + "\n")
    options = {"partitions": 2, "layout": "both", "decoder_options": {"weight_col": "weight"}, **options}
    graphprep.convert(str(tmp_path / "edges.csv"), str(tmp_path / "store"), **options)
    return tmp_path / "store"


@pytest.mark.parametrize("merge", ["first", "last", "sum", "max", "count"])
@pytest.mark.parametrize(
    "options",
    [{"neighbor_order": "weight"}, {"partition_by": "hash", "layout": "csr"}, {"neighbor_order": "id", "index_dtype": "int64"}],
)
def test_a_multigraph_becomes_simple(merge, options, tmp_path):
    store = write_multigraph(tmp_path, **options)
    old = Naive(store)
    found, graph = transformed(store, tmp_path, ["to-simple", merge])
    (name,) = old.edges
    check(found, old.nodes, {name: merged(old.edges[name], merge, ["weight", "age"])})
    assert graph.metadata.edge_schemas[0].neighbor_order == options.get("neighbor_order", "input")
    assert graph.metadata.partition_by == options.get("partition_by", "range")
    assert graph.adjacency().indices.dtype.name == options.get("index_dtype", "int32")


def test_maps_lead_to_the_merged_edges(tmp_path):
    store = write_multigraph(tmp_path)
    old = Naive(store)
    found, _ = transformed(store, tmp_path, "self-loops drop to-simple filter-degree 20:", maps=str(tmp_path / "maps"))
    (name,) = old.edges
    edges = np.load(tmp_path / "maps/edges" / f"{'__'.join(name)}.npy")
    nodes = np.load(tmp_path / "maps/nodes" / f"{name[0]}.npy")
    assert len(edges) == len(old.edges[name])
    assert len(nodes) == len(old.nodes[name[0]])
    for (u, v, _), new in zip(old.edges[name], edges.tolist(), strict=True):
        ends = [row[:2] for row in found.edges[name]]
        assert ends[new] == (u, v) if new >= 0 else (u, v) not in ends
    for (raw, _), new in zip(old.nodes[name[0]], nodes.tolist(), strict=True):
        assert found.nodes[name[0]][new][0] == raw if new >= 0 else raw not in dict(found.nodes[name[0]])
    assert set(nodes[nodes >= 0]) == set(range(len(found.nodes[name[0]])))


def test_weights_are_added_where_a_graph_is_made_symmetric(tmp_path):
    store = write_multigraph(tmp_path)
    old = Naive(store)
    (name,) = old.edges
    for weights in ("sum", "max", "keep"):
        found, _ = transformed(store, tmp_path, ["symmetrize", weights], overwrite=True)
        both = old.edges[name] + [(v, u, row) for u, v, row in old.edges[name] if u != v]
        check(found, old.nodes, {name: merged(both, "first" if weights == "keep" else weights, ["weight", "age"])})


def test_loops_go_and_come(store, tmp_path):
    old = Naive(store)
    found, _ = transformed(store, tmp_path, "self-loops drop")
    kept = {t: [row for row in rows if t[0] != t[2] or row[0] != row[1]] for t, rows in old.edges.items()}
    check(found, old.nodes, kept, ordered=has_ids(store))
    found, graph = transformed(store, tmp_path, "self-loops add", overwrite=True)
    for name, rows in found.edges.items():
        assert rows[: len(old.edges[name])] == old.edges[name] or not has_ids(store)
        if name[0] != name[2]:
            continue
        have = {u for u, v, _ in old.edges[name] if u == v}
        assert sorted((u, v) for u, v, _ in rows if u == v and u not in have) == sorted(
            (raw, raw) for raw, _ in old.nodes[name[0]] if raw not in have
        )
        for _, _, row in rows[len(old.edges[name]) :] if has_ids(store) else ():
            blanks = {column.name: BLANKS.get(column.role) for column in graph.columns(name)}
            assert row == {key: blanks[key] for key in row}


def induced(old, wanted):
    nodes = {name: [row for row in rows if name not in wanted or row[0] in wanted[name]] for name, rows in old.nodes.items()}
    kept = {name: {row[0] for row in rows} for name, rows in nodes.items()}
    edges = {t: [row for row in rows if row[0] in kept[t[0]] and row[1] in kept[t[2]]] for t, rows in old.edges.items()}
    return nodes, edges


def test_nodes_induce_a_subgraph(store, tmp_path):
    old = Naive(store)
    rng = np.random.default_rng(0)
    wanted, words = {}, []
    for number, (name, rows) in enumerate(old.nodes.items()):
        chosen = [raw for raw, _ in rows if rng.random() < 0.6]
        if number == 1 or not chosen or any("\n" in str(raw) for raw in chosen):
            continue
        wanted[name] = set(chosen)
        (tmp_path / f"{number}.txt").write_bytes(b"".join(f"{raw}\n".encode("utf-8", "surrogateescape") for raw in chosen))
        words.append(f"{name}={tmp_path / f'{number}.txt'}")
    if not words:
        return
    for others in ("keep", "drop"):
        if others == "drop":  # nothing stays of the others, as in DGL
            wanted = {name: wanted.get(name, set()) for name in old.nodes}
        out = {"other_types": others, "overwrite": True}
        found, graph = transformed(store, tmp_path, ["node-subgraph", *words], **out)
        nodes, edges = induced(old, wanted)
        check(found, nodes, edges, ordered=has_ids(store))
    before = graphprep.load(str(store))
    for name in graph.node_types:
        names = [column.name for column in graph.columns(name)]
        if "parent_id" in names:
            parents = np.asarray(graph.column(name, "parent_id"))
            assert [before.ids(name)[int(one)] for one in parents] == list(graph.ids(name)[: len(parents)])
    found, _ = transformed(store, tmp_path, ["node-subgraph", *words], ids="preserved", overwrite=True)
    check(found, old.nodes, edges, ordered=has_ids(store))


def test_a_list_of_edges_is_a_subgraph(tmp_path):
    store = write_multigraph(tmp_path)
    old = Naive(store)
    (name,) = old.edges
    ids = np.random.default_rng(1).permutation(4000)[:300]
    np.save(tmp_path / "ids.npy", ids)
    (tmp_path / "ids.txt").write_text("\n".join(map(str, ids)))
    kept = [row for at, row in enumerate(old.edges[name]) if at in set(ids.tolist())]
    ends = {one for row in kept for one in row[:2]}
    for file in ("ids.npy", "ids.txt"):
        found, _ = transformed(store, tmp_path, ["edge-subgraph", str(tmp_path / file)], overwrite=True)
        check(found, {name[0]: [row for row in old.nodes[name[0]] if row[0] in ends]}, {name: kept})
    found, _ = transformed(store, tmp_path, ["edge-subgraph", str(tmp_path / "ids.npy")], ids="preserved", overwrite=True)
    check(found, old.nodes, {name: kept})
    for text, words in (("4000", "there is no edge 4000: there are 4000"), ("x", "there is something else than edge IDs")):
        (tmp_path / "ids.txt").write_text(text)
        with pytest.raises(DataError, match=words):
            graphprep.transform(str(store), str(tmp_path / "other"), ["edge-subgraph", str(tmp_path / "ids.txt")])


@pytest.mark.parametrize(
    ("words", "keeps"),
    [
        ("weight > 3", lambda row: row["weight"] > 3),
        ("age >= 50 and not weight == 8", lambda row: row["age"] is not None and row["age"] >= 50 and row["weight"] != 8),
        ("age in (1, 2, 3) or age > 90", lambda row: row["age"] is not None and (row["age"] in (1, 2, 3) or row["age"] > 90)),
        ("1 < weight <= 4", lambda row: 1 < row["weight"] <= 4),
        ("age % 2 == 1", lambda row: row["age"] is not None and row["age"] % 2 == 1),
        ("weight * 10 - age > -5", lambda row: row["age"] is not None and row["weight"] * 10 - row["age"] > -5),
    ],
)
def test_edges_are_filtered_by_their_columns(words, keeps, tmp_path):
    store = write_multigraph(tmp_path)
    old = Naive(store)
    (name,) = old.edges
    found, _ = transformed(store, tmp_path, ["filter", words])
    check(found, old.nodes, {name: [row for row in old.edges[name] if keeps(row[2])]})
    found, _ = transformed(store, tmp_path, ["filter", f"{':'.join(name)}: {words}"], overwrite=True)
    check(found, old.nodes, {name: [row for row in old.edges[name] if keeps(row[2])]})


def test_columns_and_splits_are_masks(tmp_path):
    (tmp_path / "nodes.csv").write_text(
        "id,seen,part,kind\n" + "".join(f"{i},{i % 3},{['train', 'valid', 'test'][i % 3]},{'xyz'[i % 2]}\n" for i in range(9))
    )
    (tmp_path / "edges.csv").write_text("src,dst\n" + "".join(f"{i},{(i * 2) % 9}\n" for i in range(9)))
    store = tmp_path / "store"
    options = {"splits": ["n:part"], "categories": ["n:kind"]}
    code = run(
        [
            "convert",
            str(store),
            "--nodes",
            f"n={tmp_path / 'nodes.csv'}",
            "--edges",
            f"n:to:n={tmp_path / 'edges.csv'}",
            "--split",
            "n:part",
            "--category",
            "n:kind",
        ]
    )
    assert code == 0, options
    old = Naive(store)
    for word, kept in (
        ("@seen", [i for i in range(9) if i % 3]),
        ("n:@seen=2", [2, 5, 8]),
        ("@part=valid", [1, 4, 7]),
        ("@kind=y", [1, 3, 5, 7]),
    ):
        found, _ = transformed(store, tmp_path, ["node-subgraph", word], overwrite=True)
        check(found, *induced(old, {"n": set(kept)}))
    found, _ = transformed(store, tmp_path, ["filter", "kind == 'x' and seen > 0"], overwrite=True)
    check(found, *induced(old, {"n": {2, 4, 8}}))


def test_hops_degrees_and_components_are_those_of_networkx(tmp_path):
    networkx = pytest.importorskip("networkx")
    store = write_multigraph(tmp_path, num_edges=70, num_nodes=90, seed=3)
    old = Naive(store)
    (name,) = old.edges
    graph = networkx.MultiDiGraph([row[:2] for row in old.edges[name]])
    graph.add_nodes_from(raw for raw, _ in old.nodes[name[0]])
    (tmp_path / "seeds").write_text("3\n40\n")
    for hops in (0, 1, 3):
        found, _ = transformed(store, tmp_path, ["khop-subgraph", str(tmp_path / "seeds"), str(hops)], overwrite=True)
        back = graph.reverse()
        wanted = {n for seed in (3, 40) for n in networkx.single_source_shortest_path_length(back, seed, cutoff=hops)}
        check(found, *induced(old, {name[0]: wanted}))
    for words, low, high in (("2:", 2, 999), (":1", 0, 1), ("1:2", 1, 2)):
        found, _ = transformed(store, tmp_path, ["filter-degree", words], overwrite=True)
        check(found, *induced(old, {name[0]: {n for n, d in graph.degree if low <= d <= high}}))
    found, _ = transformed(store, tmp_path, "largest-component", overwrite=True)
    check(found, *induced(old, {name[0]: max(networkx.weakly_connected_components(graph), key=len)}))


def test_a_component_spans_types(tmp_path):
    networkx = pytest.importorskip("networkx")
    store = STORES[SHOP]
    old = Naive(store)
    found, _ = transformed(store, tmp_path, "largest-component")
    graph = networkx.Graph([((t[0], u), (t[2], v)) for t, rows in old.edges.items() for u, v, _ in rows])
    graph.add_nodes_from((name, raw) for name, rows in old.nodes.items() for raw, _ in rows)
    largest = max(networkx.connected_components(graph), key=len)
    check(found, *induced(old, {name: {raw for of, raw in largest if of == name} for name in old.nodes}))


def test_hops_and_degrees_over_types(tmp_path):
    """Against loops over the edges of all types."""
    store = STORES[SHOP]
    old = Naive(store)
    pairs = [((t[0], u), (t[2], v)) for t, rows in old.edges.items() for u, v, _ in rows]
    every = [(name, raw) for name, rows in old.nodes.items() for raw, _ in rows]

    def by_type(nodes):
        return {name: {raw for of, raw in nodes if of == name} for name in old.nodes}

    reached = {("1", raw) for raw, _ in old.nodes["1"][:2]}
    (tmp_path / "seeds").write_text("".join(f"{raw}\n" for _, raw in sorted(reached)))
    for hops in (1, 2, 3):
        reached |= {u for u, v in pairs if v in reached}
        found, _ = transformed(store, tmp_path, ["khop-subgraph", f"1={tmp_path / 'seeds'}", str(hops)], overwrite=True)
        check(found, *induced(old, by_type(reached)))
    degrees = collections.Counter(end for pair in pairs for end in pair)
    for low, high in ((3, 6), (0, 4)):
        found, _ = transformed(store, tmp_path, ["filter-degree", f"{low}:{high}"], overwrite=True)
        check(found, *induced(old, by_type([node for node in every if low <= degrees[node] <= high])))


@pytest.mark.parametrize("others", ["keep", "drop"])
def test_a_list_of_edges_of_a_type(others, tmp_path):
    """Edges of other types, and what they join, stay or go."""
    store = STORES[SHOP]
    old = Naive(store)
    (tmp_path / "ids").write_text("0\n5\n17\n")
    found, _ = transformed(store, tmp_path, ["edge-subgraph", f"0:0:1={tmp_path / 'ids'}"], other_types=others)
    name = ("0", "0", "1")
    rest = old.edges if others == "keep" else {key: [] for key in old.edges}
    edges = rest | {name: [old.edges[name][at] for at in (0, 5, 17)]}
    ends = {(t[side], row[side // 2]) for t, rows in edges.items() for row in rows for side in (0, 2)}
    nodes = {kind: [row for row in rows if (kind, row[0]) in ends] for kind, rows in old.nodes.items()}
    check(found, nodes, edges)


@pytest.mark.parametrize("others", ["keep", "drop"])
def test_the_command_line_and_python_agree_on_types_that_are_not_named(others, tmp_path, capsys):
    store = STORES[SHOP]
    graph = graphprep.load(str(store))
    raws = graph.ids("0")[[0, 3, 4]]
    (tmp_path / "nodes").write_text("".join(f"{raw}\n" for raw in raws.tolist()))
    (tmp_path / "edges").write_text("0\n5\n17\n")
    edge_type = graph.edge_types[0]
    cases = {
        "node": (f"0={tmp_path / 'nodes'}", graph.node_subgraph({"0": [0, 3, 4]}, other_types=others)),
        "edge": (
            f"{edge_type_text(edge_type)}={tmp_path / 'edges'}",
            graph.edge_subgraph({edge_type: [0, 5, 17]}, other_types=others),
        ),
    }
    for kind, (word, wanted) in cases.items():
        out = tmp_path / kind
        assert run(["transform", str(store), str(out), f"{kind}-subgraph", word, "--other-types", others]) == 0
        found = graphprep.load(str(out))
        kept = graph.node_subgraph({"0": [0, 3, 4]}, other_types="keep").edges.items()
        gone = [some.src.size for name, some in kept if name[::2] != ("0", "0")]
        if kind == "edge":
            gone = [graph.num_edges(name) for name in graph.edge_types[1:]]
        told = f"{kind}-subgraph: what is not named went, {sum(gone)} edges of {len(gone)} types;"
        assert (told in " ".join(capsys.readouterr().out.split())) == (others == "drop")
        for name in graph.node_types:
            assert set(found.ids(name).tolist()) == set(graph.ids(name)[wanted.node_ids[name]].tolist())
        for name in graph.edge_types:
            some, (src, dst, _) = wanted.edges[name], found.edges(name)
            own = [graph.ids(name[side])[wanted.node_ids[name[side]][ends]] for side, ends in ((0, some.src), (2, some.dst))]
            pairs = zip(found.ids(name[0])[src].tolist(), found.ids(name[2])[dst].tolist(), strict=True)
            assert sorted(pairs) == sorted(zip(*(ends.tolist() for ends in own), strict=True))


def test_columns_are_dropped(store, tmp_path):
    """The first one of every store, of all types that have it; and all of them."""
    old, before = Naive(store), graphprep.load(str(store))
    names = [column.name for of in (*before.node_types, *before.edge_types) for column in before.columns(of)]
    names = [name for name in dict.fromkeys(names) if ":" not in name]
    if not names:
        return

    def without(rows, gone):
        return [(*row[:-1], {name: value for name, value in row[-1].items() if name not in gone}) for row in rows]

    for gone in ([names[0]], names):
        found, _ = transformed(store, tmp_path, ["drop-columns", *gone], overwrite=True)
        nodes, edges = ({of: without(rows, gone) for of, rows in some.items()} for some in (old.nodes, old.edges))
        check(found, nodes, edges, ordered=has_ids(store))


@pytest.mark.parametrize("flags", [{"layout": "csr"}, {"layout": "csc"}, {"neighbor_order": "id"}, {"index_dtype": "int64"}])
@pytest.mark.parametrize("name", [SHOP, "names_lesmis", "town_edgelist"])
def test_a_store_of_any_input_is_what_convert_makes_with_the_flag(name, flags, tmp_path):
    case = next(case for case in load_cases() if case.name == name)
    options = case.resolved_options() | flags
    graphprep.convert([str(path) for path in case.input_paths], str(tmp_path / "wanted"), **options)
    ((flag, value),) = flags.items()
    word = {"layout": "layout", "neighbor_order": "sort-neighbors", "index_dtype": "index-dtype"}[flag]
    graphprep.transform(str(case.store), str(tmp_path / "out"), [word, value])
    assert read_store(tmp_path / "out") == read_store(tmp_path / "wanted")


@pytest.mark.parametrize(
    "flags",
    [{"layout": "csr"}, {"layout": "both"}, {"neighbor_order": "id"}, {"neighbor_order": "weight"}, {"index_dtype": "int64"}],
)
def test_a_store_is_what_convert_makes_with_the_flag(flags, tmp_path):
    """Byte for byte, but provenance.json."""
    store = write_multigraph(tmp_path, layout="csc")
    options = {"decoder_options": {"weight_col": "weight"}, "partitions": 2, "layout": "csc", **flags}
    graphprep.convert(str(tmp_path / "edges.csv"), str(tmp_path / "wanted"), **options)
    ((flag, value),) = flags.items()
    word = {"layout": "layout", "neighbor_order": "sort-neighbors", "index_dtype": "index-dtype"}[flag]
    graphprep.transform(str(store), str(tmp_path / "out"), [word, value])
    files = {path.relative_to(tmp_path / "wanted") for path in (tmp_path / "wanted").rglob("*") if path.is_file()}
    assert files == {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for file in sorted(files):
        if file.name != "provenance.json":
            assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "wanted" / file).read_bytes(), file


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ({"undirected": True}, "to-bidirected"),
        ({"dedup": True}, "to-simple first"),
        ({"drop_self_loops": True, "dedup": True}, "self-loops drop to-simple"),
        ({"largest_component": True, "undirected": True}, "to-bidirected largest-component"),
        ({"largest_component": True, "partition_by": "ldg"}, "largest-component"),
        ({"largest_component": True, "partition_by": "fennel", "dedup": True}, "to-simple largest-component"),
        ({"undirected": True, "partition_by": "hash"}, "to-bidirected"),
    ],
)
def test_convert_does_the_common_ones_itself(flags, words, tmp_path):
    """With the same bytes in every file but provenance.json, which names the input."""
    by = {"partition_by": flags.get("partition_by", "range")}
    store = write_multigraph(tmp_path, num_edges=300, num_nodes=200, layout="both", **by)
    graphprep.transform(str(store), str(tmp_path / "wanted"), words)
    options = {"decoder_options": {"weight_col": "weight"}, "partitions": 2, "layout": "both", **flags}
    summary = graphprep.convert(str(tmp_path / "edges.csv"), str(tmp_path / "out"), **options)
    wanted = graphprep.load(str(tmp_path / "wanted"))
    assert (sum(summary.num_nodes.values()), sum(summary.num_edges.values())) == (wanted.num_nodes(), wanted.num_edges())
    files = {path.relative_to(tmp_path / "wanted") for path in (tmp_path / "wanted").rglob("*") if path.is_file()}
    assert files == {path.relative_to(tmp_path / "out") for path in (tmp_path / "out").rglob("*") if path.is_file()}
    for file in sorted(files):
        if file.name != "provenance.json":
            assert (tmp_path / "out" / file).read_bytes() == (tmp_path / "wanted" / file).read_bytes(), file
    made = json.loads((tmp_path / "out/provenance.json").read_text())
    assert [one["url"] for one in made["inputs"]] == [str(tmp_path / "edges.csv")]
    (tmp_path / "edges.csv").write_text("src,dst,weight,age\n")
    with pytest.raises(DataError, match="would replace a store"):
        graphprep.convert(str(tmp_path / "edges.csv"), str(tmp_path / "out"), overwrite=True, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["edges.csv", "out", "store", "wanted"]


@pytest.mark.parametrize(
    "ids",
    [
        [2**63 + 1, 2**63 - 1, 5, 7, 2**64 - 1, 9],  # of those that stay some are beyond int64, or
        [3, 5, 2**63, 8, 9, 2**64 - 1],  # none is, or
        [0, 1, 2**63, 2, 3, 2**64 - 1],  # they are typed IDs
        [0, 1, 7, 2, 3, 9],
    ],
)
@pytest.mark.parametrize("words", ["filter 'n: kept == 1'", "node-subgraph @kept largest-component"])
def test_what_stays_is_stored_as_convert_stores_it(ids, words, tmp_path):
    """Raw IDs in the form that they need, and columns without holes where the rows that lacked a value are gone."""
    kept, size = [1, 1, 0, 1, 1, 0], [1, 2, None, 3, 4, 5]
    nodes = {"id": pa.array(ids, pa.uint64()), "kept": kept, "size": size, "hole": [None, 1, 2, 3, 4, 5]}
    src, dst = [0, 1, 2, 3, 0, 5, 4], [1, 3, 3, 4, 4, 0, 2]
    edges = {"src": pa.array([ids[u] for u in src], pa.uint64()), "dst": pa.array([ids[v] for v in dst], pa.uint64())}
    edges |= {"since": [1.5, 2.5, None, 4.5, 5.5, None, 7.5], "gap": [None, 1, 2, 3, 4, 5, 6]}
    stays = [kept[u] and kept[v] for u, v in zip(src, dst, strict=True)]
    for name, rows, mask in (("n", nodes, kept), ("e", edges, stays)):
        pq.write_table(pa.table(rows), tmp_path / f"{name}.parquet")
        pq.write_table(pa.table(rows).filter(pa.array(mask).cast(pa.bool_())), tmp_path / f"{name}-kept.parquet")
    for kind in ("", "-kept"):
        tables = {
            "nodes": {"n": tmp_path / f"n{kind}.parquet"},
            "edges": {("n", "to", "n"): tmp_path / f"e{kind}.parquet"},
        }
        graphprep.convert(**tables, out=tmp_path / f"store{kind}")
    graphprep.transform(tmp_path / "store", tmp_path / "some", words)
    graphprep.transform(tmp_path / "some", tmp_path / "out", "drop-columns parent_id")
    assert read_store(tmp_path / "out") == read_store(tmp_path / "store-kept")
    assert graphprep.validate(str(tmp_path / "out")).sound


def test_merged_edges_lack_nothing(tmp_path):
    src, dst, size = [0, 0, 1, 1], [1, 1, 2, 2], [None, 2, 3, 4]
    pq.write_table(pa.table({"src": src, "dst": dst, "size": size}), tmp_path / "e.parquet")
    graphprep.convert(edges={("n", "to", "n"): tmp_path / "e.parquet"}, out=tmp_path / "store")
    _, graph = transformed(tmp_path / "store", tmp_path, "to-simple sum")
    assert graph.column(graph.edge_types[0], "size", order="ids").tolist() == [2, 7]


def test_times_have_ends_where_there_are_some(tmp_path):
    store = STORES["shop_temporal_json"]
    before = graphprep.load(str(store))
    rows = before.to_arrow("0").column("feat_4").to_pylist()
    for ends in (True, False):
        kept = [raw for raw, row in zip(before.ids("0").tolist(), rows, strict=True) if (row is not None) == ends]
        (tmp_path / "some").write_text("".join(f"{raw}\n" for raw in kept))
        _, graph = transformed(store, tmp_path, ["node-subgraph", f"0={tmp_path / 'some'}"], overwrite=True)
        (column,) = [column for column in graph.columns("0") if column.name == "feat_4"]
        assert (column.end, column.optional) == (ends, not ends)


def check_form(graph):
    """Raw IDs and columns of a store have the form that docs/store.md says."""
    for number, name in enumerate(graph.node_types):
        schema, raw = graph.metadata.node_schemas[number], graph.ids(name)
        if schema.raw_ids in ("int64", "uint64") and schema.node_order is None:
            assert raw.tolist() != list(range(len(raw)))
        assert schema.raw_ids != "uint64" or max(raw.tolist()) >= 2**63
    for owner in (*graph.node_types, *graph.edge_types):
        for column in graph.columns(owner):
            assert not column.optional or not graph.present(owner, column.name).all(), column
            if column.end:
                rows = graph.to_arrow(owner).column(column.name).to_pylist()
                assert any(entry["end"] not in (None, -1) for row in rows for entry in row or ()), column


@pytest.mark.parametrize("options", [{"threads": 4}, {"memory_limit": "128MiB"}])
def test_threads_and_memory_change_no_byte(options, tmp_path):
    store = write_multigraph(tmp_path, num_edges=20000)
    words = "to-bidirected self-loops add filter-degree 3: sort-neighbors weight to-simple sum"
    graphprep.transform(str(store), str(tmp_path / "one"), words, threads=1)
    graphprep.transform(str(store), str(tmp_path / "two"), words, **options)
    for path in sorted((tmp_path / "one").rglob("*.npy")):
        assert path.read_bytes() == (tmp_path / "two" / path.relative_to(tmp_path / "one")).read_bytes(), path


def test_all_types_become_one(store, tmp_path):
    """As DGL's ``to_homogeneous``: type after type, and columns that say which."""
    old = Naive(store)
    found, graph = transformed(store, tmp_path, "to-homogeneous")
    before = graphprep.load(str(store))
    converter = graphprep.IDConverter(before.metadata)
    assert graph.node_types == ("_N",)
    rows = dict(found.nodes["_N"])
    shared = set.intersection(*({c.name for c in before.columns(name)} for name in before.node_types))
    for _number, (name, nodes) in enumerate(old.nodes.items()):
        raws = [before.ids(name)[at] for at in range(len(nodes))]
        assert [raw for raw, _ in nodes] == list(raws)
        for typed, (_, row) in enumerate(nodes):
            own = rows.pop(converter.nid_het2hom(name, typed))
            assert (own["node_type"], own["node_id"]) == (name, typed)
            assert {key: own.get(key) for key in shared if key in own} == {key: row[key] for key in shared if key in own}
    assert not rows
    raw_of = {name: {raw: typed for typed, (raw, _) in enumerate(nodes)} for name, nodes in old.nodes.items()}
    wanted = [
        (converter.nid_het2hom(t[0], raw_of[t[0]][u]), converter.nid_het2hom(t[2], raw_of[t[2]][v]), ":".join(t), at)
        for t, edges in old.edges.items()
        for at, (u, v, _) in enumerate(edges)
    ]
    got = [(u, v, row["edge_type"], row["edge_id"]) for u, v, row in found.edges.get(("_N", "_E", "_N"), [])]
    if has_ids(store):
        assert [(*one[:2], one[3]) for one in got] == [(*one[:2], one[3]) for one in wanted]
    assert sorted(one[:2] for one in got) == sorted(one[:2] for one in wanted)
    kinds = {":".join(t): text for t, text in zip(old.edges, map(edge_type_text, old.edges), strict=True)}
    assert collections.Counter(one[2] for one in got) == collections.Counter(kinds[one[2]] for one in wanted)


def test_relations_become_one(tmp_path):
    store = STORES[SHOP]
    old = Naive(store)
    relations = sorted({t[1] for t in old.edges})
    found, _ = transformed(store, tmp_path, ["flatten", *relations])
    wanted = collections.defaultdict(list)
    for (src, _, dst), rows in old.edges.items():
        wanted[src, "+".join(relations), dst] += rows
    assert {t: [row[:2] for row in rows] for t, rows in found.edges.items()} == {
        t: [row[:2] for row in rows] for t, rows in wanted.items()
    }
    for t, rows in wanted.items():
        for (_, _, row), (_, _, own) in zip(rows, found.edges[t], strict=True):
            assert {key: value for key, value in own.items() if key in row} == {key: row[key] for key in own if key in row}


@pytest.fixture
def relations(tmp_path):
    """Users and items: a and b between users, a alone to items, and a+b between users under that very name."""
    rows = {
        ("u", "a", "u"): [(0, 1), (1, 2)],
        ("u", "b", "u"): [(2, 0), (0, 1)],
        ("u", "a", "i"): [(0, 0), (2, 1)],
        ("u", "a+b", "u"): [(1, 0)],
        ("u", "c", "i"): [(1, 1)],
    }
    for number, edges in enumerate(rows.values()):
        (tmp_path / f"{number}.csv").write_text("src,dst\n" + "".join(f"{u},{v}\n" for u, v in edges))
    tables = {name: tmp_path / f"{number}.csv" for number, name in enumerate(rows)}
    graphprep.convert(edges=tables, out=tmp_path / "store", partitions=2)
    return tmp_path / "store", rows


def test_a_relation_of_the_joined_name_is_not_joined_silently(relations, tmp_path):
    store, rows = relations
    with pytest.raises(UsageError, match="flatten: there is an edge type 'u:a\\+b:u' already"):
        graphprep.transform(str(store), str(tmp_path / "out"), "flatten a b")
    assert not (tmp_path / "out").exists()
    found, _ = transformed(store, tmp_path, "flatten a+b b")  # its name is a+b+b
    assert ("u", "a+b+b", "u") in found.edges
    assert found.edges["u", "a", "u"] == [(u, v, {}) for u, v in rows["u", "a", "u"]]
    found, _ = transformed(store, tmp_path, "flatten a", overwrite=True)
    assert [row[2] for row in found.edges["u", "a", "i"]] == [{"edge_type": "u:a:i", "edge_id": at} for at in range(2)]


def test_a_pair_of_types_with_one_of_the_relations_says_so_too(relations, tmp_path):
    store, rows = relations
    summary = graphprep.transform(str(store), str(tmp_path / "some"), "flatten b a")
    assert summary.notes == ("flatten makes an edge type for each pair of node types: 2; --into NAME makes one of all",)
    found = Naive(tmp_path / "some")
    wanted = [(*edge, {"edge_type": "u:a:i", "edge_id": at}) for at, edge in enumerate(rows["u", "a", "i"])]
    assert found.edges["u", "b+a", "i"] == wanted
    assert [row[:2] for row in found.edges["u", "b+a", "u"]] == rows["u", "a", "u"] + rows["u", "b", "u"]
    assert found.edges["u", "c", "i"] == [(1, 1, {})]


def test_relations_become_one_type_between_nodes_of_one(relations, tmp_path):
    store, rows = relations
    summary = graphprep.transform(str(store), str(tmp_path / "out"), "flatten a b", into="a+b")
    assert summary.notes == ("--into: edge types that are not named are left out: u:a+b:u, u:c:i",)
    found, before = Naive(tmp_path / "out"), graphprep.load(str(store))
    assert list(found.edges) == [("_N", "a+b", "_N")]
    assert len(found.nodes["_N"]) == before.num_nodes()
    homo = graphprep.IDConverter(before.metadata)
    raw = {name: {one: at for at, one in enumerate(before.ids(name).tolist())} for name in before.node_types}
    wanted = [
        (homo.nid_het2hom(t[0], raw[t[0]][u]), homo.nid_het2hom(t[2], raw[t[2]][v]), {"edge_type": ":".join(t), "edge_id": at})
        for t in before.edge_types
        if t[1] in ("a", "b")
        for at, (u, v) in enumerate(rows[t])
    ]
    assert sorted(found.edges["_N", "a+b", "_N"], key=str) == sorted(wanted, key=str)
    with pytest.raises(UsageError, match="--into does nothing without flatten"):
        graphprep.transform(str(store), str(tmp_path / "no"), "reverse", into="x")
    assert run(["transform", str(store), str(tmp_path / "line"), "flatten", "a", "b", "--into", "a+b", "--quiet"]) == 0
    assert read_store(tmp_path / "line") == read_store(tmp_path / "out")


@pytest.mark.parametrize(
    ("words", "taken"),
    [
        ("to-simple count", ("count",)),
        ("to-homogeneous", ("node_type", "node_id", "edge_type", "edge_id")),
        ("flatten to", ("edge_type", "edge_id")),
        ("reverse flatten to", ("edge_type", "edge_id")),
    ],
)
def test_columns_of_the_user_are_not_replaced(words, taken, tmp_path):
    """Each that an operation would make is refused where it is there, and is called as --as says."""
    for name in taken:
        nodes, edges = {"id": [0, 1]}, {"src": [0, 0, 1], "dst": [1, 1, 0]}
        (nodes if name.startswith("node") else edges)[name] = [7, 8, 9][: 2 if name.startswith("node") else 3]
        made = {"nodes": {"n": pa.table(nodes)}, "edges": {("n", "to", "n"): pa.table(edges)}}
        graphprep.convert(**made, out=tmp_path / "store", overwrite=True)
        with pytest.raises(UsageError, match=f"has a column '{name}' already\n  fix: .* --as {name}=NAME"):
            graphprep.transform(tmp_path / "store", tmp_path / "no", words)
        dropped, _ = transformed(tmp_path / "store", tmp_path, f"drop-columns {name} {words}", overwrite=True)
        found, graph = transformed(tmp_path / "store", tmp_path, words, as_=f"{name}=other%3D", overwrite=True)
        owner = graph.node_types[0] if name.startswith("node") else graph.edge_types[0]
        rows, plain = ((some.nodes if name.startswith("node") else some.edges)[owner] for some in (found, dropped))
        assert [row[-1]["other="] for row in rows] == [row[-1][name] for row in plain]
        assert {row[-1][name] for row in rows} <= {7, 8, 9}


@pytest.mark.parametrize(
    ("words", "names", "message"),
    [
        ("to-simple", "n", "--as: 'n' is the name of no single column\n  fix: leave --as out"),
        ("to-homogeneous", "n", "--as: 'n' is the name of no single column\n  fix: write COLUMN=NAME; COLUMN is one of"),
        ("to-simple count", "edge_id=n", "--as: no column 'edge_id' is made\n  fix: write COLUMN=NAME; COLUMN is one of count"),
        ("to-simple count", ("n", "m"), "--as: column 'count' needs one name"),
        ("flatten knows", "edge_id=edge_type", "--as: two columns are to be called 'edge_type'"),
    ],
)
def test_names_of_columns_that_nothing_makes(words, names, message, tmp_path):
    with pytest.raises(UsageError, match=message):
        graphprep.transform(str(STORES["karate_csv"]), str(tmp_path / "out"), words, as_=names)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_names_columns(tmp_path):
    assert run(["transform", str(STORES["karate_csv"]), str(tmp_path / "out"), "to-simple", "count", "--as", "times"]) == 0
    found = Naive(tmp_path / "out")
    assert {row[2]["times"] for rows in found.edges.values() for row in rows} == {1}


def test_one_type_becomes_one_again(tmp_path):
    """The columns that say which type it was are those of the first time, or of the second under other names."""
    with pytest.raises(UsageError, match="'_N' has a column 'node_type' already"):
        graphprep.transform(str(STORES[SHOP]), str(tmp_path / "no"), "to-homogeneous to-homogeneous")
    graphprep.transform(str(STORES[SHOP]), str(tmp_path / "one"), "to-homogeneous")
    names = [f"{name}=other_{name}" for name in ("node_type", "node_id", "edge_type", "edge_id")]
    found, _ = transformed(tmp_path / "one", tmp_path, "to-homogeneous", as_=names)
    assert {row["other_node_type"] for _, row in found.nodes["_N"]} == {"_N"}
    assert {row["node_type"] for _, row in found.nodes["_N"]} == set(graphprep.load(str(STORES[SHOP])).node_types)


@pytest.mark.parametrize("piece", [7, 1 << 16])
@pytest.mark.parametrize("words", [[], ["no-backtracking"]])
def test_line_graphs_are_those_of_networkx(words, piece, tmp_path, monkeypatch):
    """Also of more edges than are read at once: their IDs, which are raw IDs then, are in no order."""
    networkx = pytest.importorskip("networkx")
    monkeypatch.setattr(raw_merge, "_MOST_ROWS", piece)
    monkeypatch.setattr(views, "_LINE_BYTES", 1 << 20 if piece == 7 else 64)
    store = write_multigraph(tmp_path, num_edges=60, num_nodes=20, layout="both")
    old = Naive(store)
    (name,) = old.edges
    found, _ = transformed(store, tmp_path, ["line-graph", *words])
    assert [raw for raw, _ in sorted(found.nodes["_N"])] == list(range(60))
    assert dict(found.nodes["_N"]) == {at: row for at, (_, _, row) in enumerate(old.edges[name])}
    graph = networkx.MultiDiGraph()
    graph.add_edges_from((u, v, at) for at, (u, v, _) in enumerate(old.edges[name]))
    wanted = [(a[2], b[2]) for a, b in networkx.line_graph(graph).edges() if a != b and (not words or a[0] != b[1])]
    assert sorted(row[:2] for row in found.edges["_N", "_E", "_N"]) == sorted(wanted)


def write_star(tmp_path, size):
    """A node to which size others lead, and from which it leads back to all."""
    hub, rest = np.zeros(size, np.int64), np.arange(1, size + 1)
    np.savez(tmp_path / "star.npz", src=np.concatenate([hub, rest]), dst=np.concatenate([rest, hub]))
    graphprep.convert(tmp_path / "star.npz", tmp_path / "star")
    return tmp_path / "star"


def test_a_line_graph_that_no_disk_holds_is_refused_with_its_size(tmp_path, monkeypatch):
    star = write_star(tmp_path, 1000)
    monkeypatch.setattr(room, "free_bytes", lambda folder: 7_000_000)
    before = sorted(tmp_path.iterdir())
    with pytest.raises(
        StorageError, match=r"the line graph has 1,001,000 edges, which take at least 7\.6 MiB, and 6\.7 MiB are free"
    ):
        graphprep.transform(star, tmp_path / "out", "line-graph")
    assert sorted(tmp_path.iterdir()) == before
    monkeypatch.setattr(room, "free_bytes", lambda folder: 1 << 60)
    monkeypatch.setattr(room, "_most_file_bytes", lambda: 4_000_000)
    with pytest.raises(
        StorageError, match=r"has at most 1,001,000 edges, whose files are larger than the system allows: 3\.8 MiB"
    ):
        graphprep.transform(star, tmp_path / "out", "line-graph no-backtracking")
    assert sorted(tmp_path.iterdir()) == before


def test_a_metagraph_has_a_node_for_every_type(tmp_path):
    store = STORES[SHOP]
    old = Naive(store)
    found, _ = transformed(store, tmp_path, "metagraph")
    assert dict(found.nodes["type"]) == {name: {"num_nodes": len(rows)} for name, rows in old.nodes.items()}
    assert [(u, row["relation"], v, row["num_edges"]) for u, v, row in found.edges["type", "relation", "type"]] == [
        (*t, len(rows)) for t, rows in old.edges.items()
    ]


def test_operations_that_read_anew_see_what_those_before_made(tmp_path):
    store = write_multigraph(tmp_path, num_edges=60, num_nodes=20)
    (name,) = Naive(store).edges
    found, _ = transformed(store, tmp_path, "self-loops drop to-homogeneous line-graph")
    loops = sum(u == v for u, v, _ in Naive(store).edges[name])
    assert len(found.nodes["_N"]) == 60 - loops
    with pytest.raises(UsageError, match="maps cannot be followed"):
        graphprep.transform(str(store), str(tmp_path / "other"), "to-homogeneous", maps=str(tmp_path / "maps"))
    with pytest.raises(UsageError, match="a line graph is one of a single node type"):
        graphprep.transform(str(STORES["shop_edgelist"]), str(tmp_path / "other"), "line-graph")


@pytest.mark.parametrize("scope", ["partition", "graph"])
@pytest.mark.parametrize("words", ["self-loops drop", "largest-component", "filter-degree 10:100", "reverse", "to-homogeneous"])
def test_stores_in_another_order_go_through_it(words, scope, tmp_path):
    store = write_multigraph(tmp_path, num_edges=400, num_nodes=90, layout="both")
    graphprep.reorder(str(store), str(tmp_path / "hot"), by="degree", scope=scope, id2index=True, split_ratio=0.2)
    wanted, _ = transformed(store, tmp_path, words)
    found, _ = transformed(tmp_path / "hot", tmp_path, words, overwrite=True)
    if words != "to-homogeneous":  # whose raw IDs are typed ones
        check(
            found,
            {n: without_parents(rows) for n, rows in wanted.nodes.items()},
            {t: without_parents(rows) for t, rows in wanted.edges.items()},
        )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nothing"], "there is no operation 'nothing'"),
        (["self-loops"], "'self-loops' has 0 arguments\n  fix: write self-loops drop|add|keep"),
        (["self-loops", "some"], "'some' means nothing to self-loops\n  fix: use one of drop, add, keep"),
        (["to-simple", "mean"], "'mean' means nothing to to-simple"),
        (["filter-degree", "5"], "filter-degree: '5' are no degrees\n  fix: write MIN:MAX, such as 5: or 1:1000"),
        (["filter", "weight >"], "'weight >' is no expression"),
        (["filter", "size > 1"], "no type has the columns of 'size > 1'"),
        (["filter", "weight.real > 1"], "'weight.real' has no meaning"),
        (["filter", "`weight`[0] > 1"], "'`weight`[0]' has no meaning in '`weight`[0] > 1'"),
        (["filter", "`\udcff` > 1"], "no type has the columns of '`\\udcff` > 1'"),
        (["filter", "weight > 'x'"], "'x' is no value of column 'weight'"),
        (["drop-columns", "size"], "drop-columns: there is no column 'size'\n  fix: use one of weight"),
        (
            ["layout", "coo"],
            "layout: a store has rows, CSC or CSR; 'coo' is its edges one after another\n  fix: use graphprep export",
        ),
        (["node-subgraph", "@size"], "'_N' has no column 'size'"),
        (["khop-subgraph", "seeds", "x"], "khop-subgraph: 'x' is no number of hops"),
        (["edge-subgraph", "no:rel:no@weight"], "no:rel:no@weight"),
        (["khop-subgraph", "seeds", "²"], "khop-subgraph: '²' is no number of hops"),
        (["khop-subgraph", "seeds", "9" * 5000], "is no number of hops"),
        (["filter-degree", "²:"], "filter-degree: '²:' are no degrees"),
        (["filter-degree", ":" + "9" * 5000], "are no degrees"),
        (["filter", "weight > 1 % 0"], "'weight > 1 % 0' cannot be computed: "),
        (["filter", "(weight > 1) - (weight > 2) == 0"], "cannot be computed: numpy boolean subtract"),
        (["filter", "weight > " + "9" * 400], "cannot be computed: int too large to convert to float"),
        (["filter", "not " * 3000 + "weight > 1"], "is no expression"),
        (["filter", " + ".join(["weight"] * 20000) + " > 1"], "is no expression"),
        ([], "there is no operation"),
    ],
)
def test_what_cannot_be_done_is_told(words, message, tmp_path):
    with pytest.raises(Exception) as raised:
        graphprep.transform(str(STORES["karate_csv"]), str(tmp_path / "out"), words)
    assert message in str(raised.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("maps", "message"), [("", "the folder of the maps has no name"), ("out", "lie in a store"), ("out/maps", "lie in a store")]
)
def test_maps_have_a_place_of_their_own(maps, message, tmp_path):
    place = str(tmp_path / maps) if maps else ""
    with pytest.raises(UsageError, match=message):
        graphprep.transform(str(STORES["karate_csv"]), str(tmp_path / "out"), "reverse", maps=place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("words", ["sort-neighbors time", "drop-columns weight sort-neighbors weight"])
def test_an_order_without_its_column_is_that_of_the_input(words, tmp_path):
    transformed(STORES["karate_csv"], tmp_path, words)
    schema = json.loads((tmp_path / "out/metadata.json").read_text())["edge_schema"]
    assert {one["neighbor_order"] for one in schema.values()} == {"input"}


def test_hops_end_where_no_edge_leads_on(tmp_path):
    (tmp_path / "seeds").write_text("1\n")
    found, _ = transformed(STORES["karate_csv"], tmp_path, ["khop-subgraph", str(tmp_path / "seeds"), "9" * 18])
    (tmp_path / "few").mkdir()
    wanted, _ = transformed(STORES["karate_csv"], tmp_path / "few", ["khop-subgraph", str(tmp_path / "seeds"), "34"])
    assert len(wanted.nodes["_N"]) > 1
    assert (found.nodes, found.edges) == (wanted.nodes, wanted.edges)


def test_the_command_line_says_what_it_did(tmp_path, capsys):
    out = tmp_path / "out"
    assert run(["transform", str(STORES["karate_csv"]), str(out), "to-bidirected", "filter-degree", "8:", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["operations"] == ["to-bidirected", "filter-degree 8:"]
    assert summary["num_edges"] == {"_N:knows:_N": len(Naive(out).edges["_N", "knows", "_N"])}
    assert run(["transform", str(STORES["karate_csv"]), str(out), "reverse"]) == 2
    assert "--overwrite" in capsys.readouterr().err


# ---- names, paths and files that are hard to take


@pytest.fixture
def odd_names(tmp_path):
    """Ten nodes and nine edges with columns whose names operations would take apart."""
    columns = {"a=b": np.arange(10), "x:y": np.arange(10) % 2, "two: words": np.arange(10) % 3, "50%": np.arange(10)}
    nodes = pa.table({"id": np.arange(10), **columns})
    edges = pa.table({"src": np.arange(9), "dst": np.arange(1, 10), "a=b:c": np.arange(9)})
    pq.write_table(nodes, tmp_path / "n.parquet")
    pq.write_table(edges, tmp_path / "e.parquet")
    tables = {"nodes": {"p=q": tmp_path / "n.parquet"}, "edges": {("p=q", "to", "p=q"): tmp_path / "e.parquet"}}
    graphprep.convert(**tables, out=tmp_path / "store")
    return tmp_path / "store"


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["node-subgraph", "@a%3Db=4"], [4]),
        (["node-subgraph", "p%3Dq:@x%3Ay"], [1, 3, 5, 7, 9]),
        (["node-subgraph", "@x:y=1"], [1, 3, 5, 7, 9]),
        (["node-subgraph", "@two: words=2"], [2, 5, 8]),
        (["node-subgraph", "@50%=7"], [7]),
        (["node-subgraph", "@50%25=7"], [7]),
        (["filter", "`a=b` >= 8"], [8, 9]),
        (["filter", "p=q: `two: words` == 1 and `x:y` == 0"], [4]),
        (["filter", "`two: words` == 1 and `x:y` == 0"], [4]),
        (["drop-columns", "a=b", "x%3Ay", "p%3Dq:two%3A words", "filter", "`50%` < 1"], [0]),
    ],
)
def test_columns_of_any_name_are_reached(words, wanted, odd_names, tmp_path):
    graphprep.transform(odd_names, tmp_path / "out", words)
    assert graphprep.ids(tmp_path / "out", np.arange(len(wanted)), from_="typed", to="raw").tolist() == wanted
    with graphprep.load(tmp_path / "out") as graph:
        dropped = {"a=b", "x:y", "two: words"} if "drop-columns" in words else set()
        names = {column.name for column in graph.columns("p=q")}
        assert names == {"a=b", "x:y", "two: words", "50%", "parent_id"} - dropped


def test_columns_of_edges_of_any_name_are_reached(odd_names, tmp_path):
    graphprep.transform(odd_names, tmp_path / "out", ["edge-subgraph", "@a%3Db%3Ac=5"], ids="preserved")
    with graphprep.load(tmp_path / "out") as graph:
        assert [ends.tolist() for ends in graph.edges()[:2]] == [[5], [6]]


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("+".join(["age"] * 500), "no type has the columns of"),
        ("(" * 300, "is no expression"),
        ("1 < " + "2 - " * 300 + "[3]", "has no meaning in"),
        ("'" + "x" * 500 + "' == 3", "is compared with no column in"),
    ],
)
def test_long_expressions_are_cut(expression, message, odd_names, tmp_path):
    with pytest.raises(UsageError) as error:
        graphprep.transform(
            odd_names, tmp_path / "out", ["filter", f"p=q: {expression}" if "age" not in expression else expression]
        )
    assert message in error.value.message
    assert "…" in error.value.message
    assert len(error.value.message) < 300


def test_arrays_that_claim_more_than_they_have(odd_names, tmp_path):
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<i8", "fortran_order": False, "shape": (10**15,)})
    (tmp_path / "ids.npy").write_bytes(header.getvalue() + bytes(80))
    with pytest.raises(DataError) as error:
        graphprep.transform(odd_names, tmp_path / "out", ["edge-subgraph", str(tmp_path / "ids.npy")])
    assert error.value.message == "the file ends after 208 bytes, its header says 8000000000000128"
    assert error.value.place == str(tmp_path / "ids.npy")


@pytest.mark.parametrize("words", [["node-subgraph", ""], ["edge-subgraph", ""], ["khop-subgraph", "p%3Dq=", "1"]])
def test_files_without_a_name(words, odd_names, tmp_path):
    with pytest.raises(UsageError, match="names no file"):
        graphprep.transform(odd_names, tmp_path / "out", words)


@pytest.mark.parametrize("command", ["reorder", "partition", "transform"])
def test_a_store_without_a_name(command, tmp_path):
    given = {"reorder": {"by": "degree"}, "partition": {"by": "hash"}, "transform": {}}[command]
    words = ["reverse"] if command == "transform" else []
    with pytest.raises(UsageError) as error:
        getattr(graphprep, command)("", tmp_path / "out", *words, **given)
    assert (error.value.message, error.value.fix) == ("the store has no name", "name the folder or URL of a store")


# ---- several operations in one command


def write_loopless(tmp_path):
    """Five edges without a loop, weights 2 to 17, a column with a gap; and a type without edges."""
    (tmp_path / "e.csv").write_text("src,dst,weight,k\n0,1,2,1\n0,1,3,2\n1,2,5,\n2,0,7,3\n2,1,17,4\n")
    (tmp_path / "none.csv").write_text("src,dst,weight,k\n")
    edges = {("n", "has", "n"): tmp_path / "e.csv", ("n", "no", "n"): tmp_path / "none.csv"}
    graphprep.convert(edges=edges, out=tmp_path / "store", decoder_options={"weight_col": "weight"})
    return tmp_path / "store"


def has(graph, *names):
    columns = [np.asarray(graph.column(("n", "has", "n"), name, order="ids")).tolist() for name in names]
    return list(zip(*[ends.tolist() for ends in graph.edges(("n", "has", "n"), order="ids")[:2]], *columns, strict=True))


@pytest.mark.parametrize("words", ["to-simple sum", "to-simple max", "symmetrize sum", "symmetrize max"])
def test_new_loops_keep_their_own_values_where_edges_are_merged(words, tmp_path):
    found, graph = transformed(write_loopless(tmp_path), tmp_path, f"self-loops add {words}")
    assert [row for row in has(graph, "weight") if row[0] == row[1]] == [(0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]
    assert [row["k"] for u, v, row in found.edges["n", "has", "n"] if u == v] == [None] * 3
    assert [row["weight"] for _, _, row in found.edges["n", "no", "n"]] == [1.0] * 3


def test_new_loops_are_filtered_by_their_weight(tmp_path):
    _, graph = transformed(write_loopless(tmp_path), tmp_path, ["self-loops", "add", "filter", "n:has:n: weight <= 2"])
    assert has(graph, "weight") == [(0, 1, 2.0), (0, 0, 1.0), (1, 1, 1.0), (2, 2, 1.0)]


def test_parent_ids_are_those_of_the_store(tmp_path):
    _, graph = transformed(write_loopless(tmp_path), tmp_path, "to-simple filter-degree 3:")
    assert has(graph, "parent_id") == [(0, 1, 2), (1, 0, 4)]
    _, graph = transformed(tmp_path / "store", tmp_path, "to-simple last self-loops add filter-degree 1:", overwrite=True)
    loops = [(0, 0, -1), (1, 1, -1), (2, 2, -1)]
    assert has(graph, "parent_id") == [(0, 1, 1), (1, 2, 2), (2, 0, 3), (2, 1, 4), *loops]
    _, graph = transformed(tmp_path / "store", tmp_path, "to-homogeneous filter-degree 4: reverse", overwrite=True)
    assert np.asarray(graph.column(graph.node_types[0], "parent_id")).tolist() == [1]
    _, graph = transformed(tmp_path / "store", tmp_path, "metagraph filter-degree 1:", overwrite=True)
    assert np.asarray(graph.column("type", "parent_id")).tolist() == [-1]


def test_dropped_columns_are_gone_for_what_follows(tmp_path):
    _, graph = transformed(write_loopless(tmp_path), tmp_path, "drop-columns k to-simple sum")
    assert {column.name for column in graph.columns(("n", "has", "n"))} == {"weight"}
    for words in (["filter", "k > 2"], ["edge-subgraph", "has:@k"], ["drop-columns", "k"]):
        with pytest.raises(UsageError, match="column"):
            graphprep.transform(tmp_path / "store", tmp_path / "none", ["drop-columns", "k", *words])


def test_edge_ids_are_those_of_what_came_before(tmp_path):
    (tmp_path / "ids").write_text("0\n3\n")
    store = write_loopless(tmp_path)
    for before in ("to-simple", "to-simple last self-loops drop", "self-loops drop to-simple"):
        words = [*before.split(), "edge-subgraph", f"has={tmp_path / 'ids'}"]
        _, graph = transformed(store, tmp_path, words, overwrite=True)
        assert [row[:2] for row in has(graph)] == [(0, 1), (2, 1)], before
    words = ["edge-subgraph", "has:@k", "edge-subgraph", f"has={tmp_path / 'ids'}"]
    _, graph = transformed(store, tmp_path, words, overwrite=True)
    assert [row[:2] for row in has(graph)] == [(0, 1), (2, 1)]


def test_maps_and_parents_of_edges_without_ids_are_their_rows(tmp_path):
    """Rows stand otherwise in every store: those of STORE are meant, and in maps those of OUT."""
    store = write_multigraph(tmp_path, num_edges=50, num_nodes=9, edge_ids=False)
    graphprep.transform(str(store), str(tmp_path / "out"), "reverse to-simple filter-degree 7:", maps=str(tmp_path / "maps"))
    ((name, old),) = Naive(store).edges.items()
    ((_, new),) = Naive(tmp_path / "out").edges.items()
    before, after = ([row[:2] for row in rows] for rows in (old, new))
    assert [before[row["parent_id"]][::-1] for _, _, row in new] == after
    assert len(after) < len(set(before))
    maps = np.load(tmp_path / "maps/edges" / f"{'__'.join(name)}.npy").tolist()
    assert [one for one in maps if one >= 0] != sorted(one for one in maps if one >= 0)
    assert all(new < 0 or after[new] == (v, u) for (u, v), new in zip(before, maps, strict=True))
    assert {new for new in maps if new >= 0} == set(range(len(after)))


@pytest.mark.parametrize("words", ["node-subgraph b=FILE", "to-homogeneous", "filter-degree 3: to-homogeneous reverse"])
def test_stores_that_were_ordered_across_partitions_stay_sound(words, tmp_path):
    """Nodes of one type go, those of the other stand in the other partitions still, from where they find back."""
    rng = np.random.default_rng(0)
    (tmp_path / "ids").write_text("".join(f"{one}\n" for one in range(0, 30, 2)))
    edges = {}
    for number, edge_type in enumerate((("a", "x", "a"), ("b", "y", "a"))):
        rows = "".join(f"{u},{v}\n" for u, v in rng.integers(0, 30, (90, 2)))
        (tmp_path / f"{number}.csv").write_text("src,dst\n" + rows)
        edges[edge_type] = tmp_path / f"{number}.csv"
    graphprep.convert(edges=edges, out=tmp_path / "store", partitions=3)
    graphprep.reorder(tmp_path / "store", tmp_path / "hot", by="degree", scope="graph")
    words = words.replace("FILE", str(tmp_path / "ids"))
    _, graph = transformed(tmp_path / "hot", tmp_path, words, other_types="keep")
    if "node-subgraph" not in words:
        assert (graph.metadata.partition_by, graph.metadata.previous_partition_by) == ("file", None)
        return
    assert (graph.metadata.partition_by, graph.metadata.previous_partition_by) == ("order", "file")
    graphprep.reorder(tmp_path / "out", tmp_path / "back", by="previous")
    assert graphprep.validate(tmp_path / "back").sound
    back = graphprep.load(tmp_path / "back")
    assert back.metadata.partition_by == "file"
    assert back.ids("a").tolist() == graphprep.load(tmp_path / "store").ids("a").tolist()


def test_raw_ids_stay_as_a_column(store, tmp_path):
    """Numbers where all types have them, else texts."""
    found, graph = transformed(store, tmp_path, "to-homogeneous raw-ids", as_="raw_id=was%3D")
    before = graphprep.load(str(store))
    columns = {column.name: column for column in graph.columns("_N")}
    old = {name: list(before.ids(name)[: before.num_nodes(name)]) for name in before.node_types}
    is_text = columns["was="].kind == "binary"
    for _, row in found.nodes["_N"]:
        raw = old[row["node_type"]][row["node_id"]]
        assert row["was="] == (str(raw) if is_text else raw)


@pytest.mark.parametrize(
    ("first", "second", "wanted"),
    [
        (["2", str(2**64 - 1)], ["0"], "uint64"),
        (["ann", "bob"], ["7"], "uint8"),
        ([], ["7"], "int64"),
    ],
)
def test_raw_ids_of_several_kinds_become_one_column(first, second, wanted, tmp_path):
    for name, ids in (("a", first), ("b", second)):
        (tmp_path / f"{name}.csv").write_text("id\n" + "".join(f"{one}\n" for one in ids))
    (tmp_path / "e.csv").write_text("src,dst\n" + "".join(f"{one},{second[0]}\n" for one in first))
    nodes = {name: str(tmp_path / f"{name}.csv") for name in "ab"}
    is_text = not (first and first[0].isdigit()) and bool(first)
    options = {"decoder_options": {"id_type": "auto" if is_text else "uint"}}
    graphprep.convert([], tmp_path / "store", nodes=nodes, edges={"a:to:b": str(tmp_path / "e.csv")}, **options)
    found, graph = transformed(tmp_path / "store", tmp_path, "to-homogeneous raw-ids")
    assert [str(row["raw_id"]) for _, row in found.nodes["_N"]] == [*first, *second]
    assert next(column.dtype for column in graph.columns("_N") if column.name == "raw_id") == wanted
