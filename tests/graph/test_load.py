"""``graphprep.load``: every answer against what a naive loop finds in the files of the store, or another library in them."""

import json
import sys
from collections import Counter, defaultdict
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tiny_store import BUYS, ITEMS, LIKES, USERS, WEIGHTS, TinyStore, build_layouts, sample_store

import graphprep
from graphprep.model.errors import DataError, UsageError

GOLDEN = Path(__file__).resolve().parent.parent / "golden"
NAMES = (
    "karate_csv",
    "karate_json_random",
    "karate_tsv_no_edge_ids",
    "shop_edgelist_both_parts",
    "shop_chunked_parts",
    "town_csr_parts",
    "people_tables_hash",
    "edges_empty",
)


class Naive:
    """Edges and columns of a store, straight from its files: ``edges`` are (src, dst, edge ID or None) in row order."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.metadata = json.loads((self.folder / "metadata.json").read_text())
        self.layout = "csc" if "csc" in self.metadata["layouts"] else "csr"
        self.num_nodes = dict(zip(self.metadata["node_type"], self.metadata["num_nodes_per_type"], strict=True))
        self.per_part = dict(zip(self.metadata["node_type"], self.metadata["num_nodes_per_chunk"], strict=True))
        self.edges = {name: self._edges(name) for name in self.metadata["edge_type"]}

    def files(self, path):
        return [np.load(self.folder / part["path"] / path) for part in self.metadata["parts"]]

    def _edges(self, name):
        src, _, dst = name.split(":")
        folder = "edges/" + name.replace(":", "__") + f"/{self.layout}"
        has_ids = self.metadata["edge_schema"][name]["edge_id_dtype"] is not None
        ids = self.files(f"{folder}/edge_ids.npy") if has_ids else None
        found, row = [], 0
        for part, (indptr, indices) in enumerate(
            zip(self.files(f"{folder}/indptr.npy"), self.files(f"{folder}/indices.npy"), strict=True)
        ):
            assert len(indptr) - 1 == self.per_part[dst if self.layout == "csc" else src][part]
            for local in range(len(indptr) - 1):
                for at in range(indptr[local], indptr[local + 1]):
                    ends = (int(indices[at]), row) if self.layout == "csc" else (row, int(indices[at]))
                    found.append((*ends, int(ids[part][at]) if has_ids else None))
                row += 1
        return found


def check_edges(graph, naive, name):
    edges = naive.edges[name]
    src, dst, ids = graph.edges(name, order="rows")
    assert list(zip(src.tolist(), dst.tolist(), [None] * len(edges) if ids is None else ids.tolist(), strict=True)) == edges
    assert graph.num_edges(name) == len(edges)
    if ids is None:
        return
    by_id = sorted((one, u, v) for u, v, one in edges)
    found = graph.edges(name)
    assert list(zip(found[2].tolist(), found[0].tolist(), found[1].tolist(), strict=True)) == by_id
    asked = np.random.default_rng(0).permutation(len(edges)).reshape(-1, 1)
    found = graph.find_edges(asked, name)
    assert [end.ravel().tolist() for end in found] == [[by_id[i][end] for i in asked[:, 0]] for end in (1, 2)]
    assert found[0].shape == asked.shape


def check_pairs(graph, naive, name):
    edges, (src_type, _, dst_type) = naive.edges[name], name.split(":")
    ids = defaultdict(list)
    for u, v, one in edges:
        ids[u, v].append(one)
    u, v = np.meshgrid(np.arange(naive.num_nodes[src_type]), np.arange(naive.num_nodes[dst_type]), indexing="ij")
    wanted = [[(a, b) in ids for b in range(u.shape[1])] for a in range(u.shape[0])]
    assert graph.has_edges(u, v, name).tolist() == wanted
    pairs = list(ids) * 2
    src, dst = ([pair[end] for pair in pairs] for end in (0, 1))
    if edges and edges[0][2] is not None:
        assert graph.edge_ids(src, dst, name).tolist() == [min(ids[pair]) for pair in pairs]
        every = graph.edge_ids(src, dst, name, return_uv=True)
        assert list(zip(*(end.tolist() for end in every), strict=True)) == [(*p, one) for p in pairs for one in sorted(ids[p])]


def check_neighbors(graph, naive, name):
    edges, (src_type, _, dst_type) = naive.edges[name], name.split(":")
    for ask, degrees, own, other, node_type in (
        (graph.predecessors, graph.in_degrees, 1, 0, dst_type),
        (graph.successors, graph.out_degrees, 0, 1, src_type),
    ):
        count, size = Counter(edge[own] for edge in edges), naive.num_nodes[node_type]
        assert degrees(edge_type=name).tolist() == [count[node] for node in range(size)]
        nodes = [*range(size), *range(size)][::-1]
        assert degrees(nodes, name).tolist() == [count[node] for node in nodes]
        found = ask(nodes, name)
        assert len(found) == len(nodes)
        for at, node in enumerate(nodes):
            wanted = [edge[other] for edge in edges if edge[own] == node]
            in_row_order = (naive.layout == "csc") == (own == 1)
            assert (found[at].tolist() if in_row_order else sorted(found[at].tolist())) == (
                wanted if in_row_order else sorted(wanted)
            )
        if size:
            assert degrees(size - 1, name) == count[size - 1]
            assert sorted(ask(size - 1, name).tolist()) == sorted(edge[other] for edge in edges if edge[own] == size - 1)


def check_matrix(graph, naive, name, weight=None):
    edges, (src_type, _, dst_type) = naive.edges[name], name.split(":")
    dense = np.zeros((naive.num_nodes[src_type], naive.num_nodes[dst_type]))
    weights = [1.0] * len(edges) if weight is None else graph.column(name, weight).tolist()
    for (u, v, _), value in zip(edges, weights, strict=True):
        dense[u, v] += value
    pytest.importorskip("scipy", reason="SciPy is not installed")
    made = graph.to_scipy(name, weight)
    assert (made.format, made.nnz) == (naive.layout, len(edges))
    np.testing.assert_allclose(made.toarray(), dense, rtol=1e-6)


@pytest.mark.parametrize("case", NAMES)
def test_answers_are_those_of_a_loop_over_the_files(case):
    graph, naive = graphprep.load(str(GOLDEN / case / "store")), Naive(GOLDEN / case / "store")
    assert graph.num_nodes() == sum(naive.num_nodes.values())
    assert graph.num_edges() == sum(len(edges) for edges in naive.edges.values())
    assert {name: graph.num_nodes(name) for name in graph.node_types} == naive.num_nodes
    for name in naive.edges:
        check_edges(graph, naive, name)
        check_pairs(graph, naive, name)
        check_neighbors(graph, naive, name)
        has_weight = any(column.name == "weight" for column in graph.columns(name))
        check_matrix(graph, naive, name, "weight" if has_weight else None)


def write_random(folder, sizes, edges, layouts, has_ids):
    """Write a store of two node types in as many partitions as there are sizes, and two edge types."""
    store = TinyStore()
    store.parts = [{} for _ in sizes["a"]]
    ranges = {name: list(zip(np.cumsum([0, *counts[:-1]]), np.cumsum(counts), strict=True)) for name, counts in sizes.items()}
    schemas, per_chunk = {}, []
    for name, pairs in edges.items():
        src, _, dst = name.split(":")
        numbered = [(u, v, i) for i, (u, v) in enumerate(pairs)]
        built = {
            "csc": build_layouts(numbered, lambda e: e[1], lambda e: e[0], ranges[dst], lambda e: e[2]),
            "csr": build_layouts(numbered, lambda e: e[0], lambda e: e[1], ranges[src], lambda e: e[2]),
        }
        for layout in layouts:
            for part, arrays in enumerate(built[layout]):
                names = ("indptr", "indices", "edge_ids") if has_ids else ("indptr", "indices")
                stem = f"edges/{name.replace(':', '__')}/{layout}/"
                store.parts[part] |= {f"{stem}{one}.npy": array for one, array in zip(names, arrays, strict=False)}
        per_chunk.append([len(arrays[1]) for arrays in built[layouts[0]]])
        schemas[name] = {"neighbor_order": "input", "index_dtype": "int32", "edge_id_dtype": "int32" if has_ids else None}
        schemas[name] |= {"multigraph": None, "checksum": "0" * 16, "columns": []}
    store.metadata = {
        "format": "graphprep-store",
        "format_version": 1,
        "graph_name": "random",
        "node_type": list(sizes),
        "num_nodes_per_type": [sum(counts) for counts in sizes.values()],
        "num_nodes_per_chunk": [list(counts) for counts in sizes.values()],
        "edge_type": list(edges),
        "num_edges_per_type": [len(pairs) for pairs in edges.values()],
        "num_edges_per_chunk": per_chunk,
        "num_parts": len(sizes["a"]),
        "partition_by": "range",
        "layouts": list(layouts),
        "node_schema": {name: {"raw_ids": "identity", "columns": []} for name in sizes},
        "edge_schema": schemas,
        "parts": [],
    }
    return store.write(folder)


@st.composite
def random_graphs(draw):
    num_parts = draw(st.integers(1, 4))
    sizes = {name: draw(st.lists(st.integers(0, 3), min_size=num_parts, max_size=num_parts)) for name in "ab"}
    edges = {}
    for name in ("a:to:b", "b:back:b"):
        ends = [sum(sizes[end]) for end in name.split(":")[::2]]
        pair = st.tuples(*(st.integers(0, max(0, end - 1)) for end in ends))
        edges[name] = draw(st.lists(pair, max_size=12 if all(ends) else 0))
    return sizes, edges, draw(st.sampled_from([("csc",), ("csr",), ("csc", "csr")])), draw(st.booleans())


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(random_graphs())
def test_random_graphs_answer_as_a_loop_does(tmp_path_factory, drawn):
    folder = write_random(tmp_path_factory.mktemp("random") / "store", *drawn)
    graph, naive = graphprep.load(str(folder)), Naive(folder)
    for name in naive.edges:
        check_edges(graph, naive, name)
        check_pairs(graph, naive, name)
        check_neighbors(graph, naive, name)
        check_matrix(graph, naive, name)


# ---- the sample: a column of every kind, two partitions


@pytest.fixture
def shop(tmp_path):
    return sample_store().write(tmp_path / "shop")


@pytest.fixture
def graph(shop):
    return graphprep.load(str(shop))


def test_what_there_is(graph, shop):
    assert graph.node_types == ("user", "item")
    assert graph.edge_types == (("user", "buys", "item"), ("user", "likes", "user"))
    assert (graph.num_nodes("item"), graph.num_edges("likes"), graph.num_edges(("user", "buys", "item"))) == (3, 3, 7)
    assert [column.name for column in graph.columns("buys")] == [
        c["name"] for c in graph.metadata.to_json()["edge_schema"]["user:buys:item"]["columns"]
    ]
    assert (
        repr(graph)
        == f"""\
Graph('{shop}'): 2 partitions, csc and csr
  nodes  user             5  weight, feat_0, feat_1, feat_2, feat_3, feat_4, label
  nodes  item             3
  edges  user:buys:item   7  weight
  edges  user:likes:user  3
  edges(): by edge ID; column() of edges: by destination, order="rows\""""
    )
    assert '<td style="text-align: right">7</td>' in graph._repr_html_()


def test_partitions_are_memory_maps_and_all_of_them_are_joined(graph, shop):
    for layout in ("csc", "csr"):
        whole = graph.adjacency("buys", layout=layout)
        parts = [graph.adjacency("buys", part, layout) for part in range(2)]
        assert whole.layout == layout
        for name in ("indices", "edge_ids"):
            assert getattr(whole, name).tolist() == [one for part in parts for one in getattr(part, name).tolist()]
            stored = np.load(shop / f"part-00001/edges/user__buys__item/{layout}/{name}.npy")
            assert getattr(parts[1], name).tolist() == stored.tolist()
            assert isinstance(getattr(parts[1], name).base, np.memmap)
            assert not getattr(parts[1], name).flags.writeable
        assert np.diff(whole.indptr).tolist() == [one for part in parts for one in np.diff(part.indptr).tolist()]
        assert (parts[0].num_rows, parts[0].num_neighbors) == ((2, 5) if layout == "csc" else (3, 3))
    one = graphprep.load(str(GOLDEN / "karate_csv" / "store")).adjacency()
    assert isinstance(one.indices.base, np.memmap)


def test_columns_of_every_kind(graph, shop):
    stem = [shop / f"part-{part:05d}/nodes/user/data" for part in range(2)]
    for part in range(2):
        dense = graph.column("user", "feat_0", part)
        assert isinstance(dense.base, np.memmap)
        assert dense.tolist() == np.load(stem[part] / "feat_0.npy").tolist()
        assert graph.present("user", "feat_0", part).tolist() == np.load(stem[part] / "feat_0.present.npy").tolist()
    assert graph.column("user", "feat_0").tolist() == np.concatenate([np.load(one / "feat_0.npy") for one in stem]).tolist()
    assert graph.present("user", "feat_0").tolist() == [True, False, True, True, False]
    assert graph.present("user", "label") is None
    assert graph.column("user", "weight").dtype == np.float32
    assert graph.column("buys", "weight").tolist() == [WEIGHTS[i] for i in graph.edges("buys", order="rows")[2]]


def rows_of(column):
    return [column[row] for row in range(len(column))]


@pytest.mark.parametrize("name", ["feat_1", "feat_2", "feat_3", "feat_4"])
def test_a_row_of_all_partitions_is_the_row_of_its_partition(graph, shop, name):
    pieces = [one for part in range(2) for one in rows_of(graph.column("user", name, part))]
    found = rows_of(graph.column("user", name))
    np.testing.assert_equal(found, pieces)
    offsets, values = (
        [np.load(shop / f"part-{part:05d}/nodes/user/data/{name}.{piece}.npy") for part in range(2)]
        for piece in ("entry_offsets" if name == "feat_4" else "offsets", "values")
    )
    lengths = [size for one in offsets for size in np.diff(one).tolist()]
    assert sum(one.size for one in values) > 0
    if name == "feat_1":
        assert [row.tolist() for row in found] == [
            row.tolist() for part in range(2) for row in np.split(values[part], offsets[part][1:-1])
        ]
    elif name == "feat_2":
        assert [row[1].size for row in found] == lengths
        assert found[0][0].shape == (lengths[0], 2)
    elif name == "feat_3":
        texts = graph.column("user", name).tolist()
        assert (
            texts
            == found
            == ["".join(map(chr, row)) for part in range(2) for row in np.split(values[part], offsets[part][1:-1])]
        )
    else:
        assert [len(row) for row in found] == lengths
        start, end = (
            [int(one) for part in range(2) for one in np.load(shop / f"part-{part:05d}/nodes/user/data/{name}.{piece}.npy")]
            for piece in ("start", "end")
        )
        assert [entry[:2] for row in found for entry in row] == list(zip(start, end, strict=True))


# Edge ID, by (source, destination): ties by edge ID. Edge 1 and 5 are one pair.
SORTED = sorted(range(len(BUYS)), key=lambda i: (BUYS[i], i))


@pytest.mark.parametrize("layouts", [("csc",), ("csr",), ("csc", "csr")])
@pytest.mark.parametrize(("order", "wanted"), [("ids", list(range(len(BUYS)))), ("srcdst", SORTED)])
def test_edges_and_columns_come_in_the_order_that_is_asked_for(tmp_path, layouts, order, wanted):
    graph = graphprep.load(str(sample_store(layouts).write(tmp_path / "shop")))
    edges = graph.edges("buys", order, columns=["weight"])
    src, dst, ids = edges
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == [BUYS[i] for i in wanted]
    assert ids.tolist() == wanted
    assert edges.columns["weight"].tolist() == [WEIGHTS[i] for i in wanted]
    assert graph.column("buys", "weight", order=order).tolist() == [WEIGHTS[i] for i in wanted]
    rows = graph.edges("buys", "rows", columns=["weight"])
    assert rows.columns["weight"].tolist() == graph.column("buys", "weight").tolist()
    assert rows.columns["weight"].tolist() == graph.column("buys", "weight", order="rows").tolist()
    at = {one: row for row, one in enumerate(rows.edge_ids.tolist())}
    present, found = graph.present("buys", "weight"), graph.present("buys", "weight", order=order)
    assert found.tolist() == [present[at[i]] for i in wanted]
    assert not found.all()
    words = {"ids": "by edge ID", "srcdst": "by source, then destination"}[order]
    assert repr(edges) == f"Edges(7 {words} (order='{order}'): src, dst, edge_ids, weight)"


def test_without_edge_ids_edges_are_sorted_by_their_ends_alone():
    karate = graphprep.load(str(GOLDEN / "karate_tsv_no_edge_ids" / "store"))
    src, dst, ids = karate.edges(order="srcdst")
    rows = karate.edges(order="rows")
    assert ids is None
    assert list(zip(src.tolist(), dst.tolist(), strict=True)) == sorted(zip(*(end.tolist() for end in rows[:2]), strict=True))


@pytest.mark.parametrize(("order", "ours"), [("eid", "ids"), ("", "rows")])
def test_orders_have_the_names_of_dgl_too(graph, order, ours):
    assert [ends.tolist() for ends in graph.edges("buys", order=order)] == [ends.tolist() for ends in graph.edges("buys", ours)]
    assert graph.edges("buys", order=order).order == ours
    assert graph.column("buys", "weight", order=order).tolist() == graph.column("buys", "weight", order=ours).tolist()
    assert graph.to_arrow("buys", order=order) == graph.to_arrow("buys", order=ours)


@pytest.mark.parametrize("order", ["id", "EID", "SRCDST", None, 1])
def test_an_order_that_there_is_not_is_refused(graph, order):
    near = {"id": "ids", "EID": "ids", "SRCDST": "srcdst"}.get(order)
    message = f"there is no order {order!r}\n  fix: {f'did you mean {near!r}? ' if near else ''}use one of ids, rows, srcdst"
    asks = [lambda: graph.edges("buys", order=order)]
    asks += [] if order is None else [lambda: graph.column("buys", "weight", order=order)]
    for ask in asks:
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == message


def test_nodes_and_partitions_have_one_order(graph):
    with pytest.raises(UsageError) as caught:
        graph.column("user", "weight", order="ids")
    assert str(caught.value) == "order belongs to edges: columns of 'user' lie by node\n  fix: leave out order"
    with pytest.raises(UsageError) as caught:
        graph.column("buys", "weight", 1, "ids")
    assert str(caught.value) == "order 'ids' is one of all edges, not of a partition\n  fix: leave out partition, or order"
    assert graph.column("buys", "weight", 1, "rows").tolist() == graph.column("buys", "weight", 1).tolist()


@pytest.mark.parametrize("name", ["feat_1", "feat_2", "feat_3", "feat_4"])
@pytest.mark.parametrize("key", [
    slice(1, 4), slice(None), slice(-2, None), slice(None, None, -2), slice(4, 1), slice(3, 99), [4, 0, 0, -1], [],
    np.array([True, False, True, True, False]),
])  # fmt: skip
def test_rows_of_columns_are_picked_as_those_of_a_list(graph, name, key):
    column = graph.column("user", name)
    wanted = [
        column[row] for row in np.arange(5)[key if isinstance(key, slice) else np.asarray(key, None if len(key) else int)]
    ]
    found = column[key]
    assert type(found) is type(column)
    np.testing.assert_equal(rows_of(found), wanted)
    np.testing.assert_equal(rows_of(found[:]), wanted)


@pytest.mark.parametrize(("key", "message"), [
    ([0, 5], "row 5 of 5"),
    ([-6], "row -6 of 5"),
    ([True, False], "a mask of shape (2,) for 5 rows"),
    ([1.5], "rows are named by integers, a slice or a mask, found float64 of shape (1,)"),
])  # fmt: skip
def test_rows_that_are_not_there_are_told(graph, key, message):
    with pytest.raises(IndexError) as caught:
        graph.column("user", "feat_3")[key]
    assert str(caught.value) == message


def test_columns_and_adjacencies_are_short(graph):
    texts = graph.column("user", "feat_3")
    assert repr(texts) == f"TextColumn(5 rows, {texts[0]!r}, {texts[1]!r}, {texts[2]!r}, … 2 more)"
    assert texts._repr_html_().startswith("<pre>TextColumn(5 rows, ")
    assert repr(graph.column("user", "feat_3")[:1]) == f"TextColumn(1 row, {texts[0]!r})"
    assert (
        repr(graph.adjacency("buys"))
        == """\
Adjacency('csc'): 7 edges, by destination
  indptr    where the sources of each destination begin  4  int64
  indices   sources                                      7  int32
  edge_ids  edge IDs                                     7  int32
  3 destinations, 5 sources"""
    )


def test_a_graph_of_many_types_shows_the_largest(tmp_path):
    sizes = {"a": [2], **{f"n{i:02d}": [i] for i in range(30)}}
    edges = {f"a:r{i:02d}:a": [(0, 1)] * (i + 1) for i in range(30)}
    shown = repr(graphprep.load(str(write_random(tmp_path / "many", sizes, edges, ("csc",), True)))).splitlines()
    assert len(shown) == 1 + 11 + 11 + 1
    assert shown[1].split() == ["nodes", "n20", "20"]
    assert shown[11].strip() == "nodes  … and 21 more"
    assert shown[12].split() == ["edges", "a:r20:a", "21"]
    assert shown[22].strip() == "edges  … and 20 more"


def test_rows_of_columns_count_from_the_end_and_stop(graph):
    texts = graph.column("user", "feat_3")
    assert texts[-1] == texts.tolist()[-1]
    with pytest.raises(IndexError, match="row 5 of 5"):
        texts[5]
    assert list(texts) == texts.tolist()


def test_raw_ids_of_every_kind(graph):
    assert graph.ids("user").tolist() == [one for part in USERS for one in part]
    assert graph.ids("item", 1).tolist() == ITEMS[1]
    people = graphprep.load(str(GOLDEN / "people_tables_hash" / "store"))
    expected = graphprep.ids(people.url, range(10), from_="typed", to="raw", type_="person").tolist()
    assert people.ids("person").tolist() == expected
    parts = [people.ids("person", part).tolist() for part in range(people.metadata.num_parts)]
    assert [one for part in parts for one in part] == expected
    town = graphprep.load(str(GOLDEN / "town_csr_parts" / "store"))
    counts = town.metadata.num_nodes_per_chunk[0]
    assert [town.ids(partition=part).tolist() for part in range(len(counts))] == [
        list(range(sum(counts[:p]), sum(counts[: p + 1]))) for p in range(len(counts))
    ]


def test_scalars_in_scalars_out(graph):
    assert graph.find_edges(5, "buys") == BUYS[5]
    assert all(type(end) is int for end in graph.find_edges(np.int32(5), "buys"))
    assert graph.edge_ids(4, 2, "buys") == 1
    assert graph.has_edges(4, 2, "buys") is True
    assert graph.has_edges_between(0, 2, "buys") is False
    assert (graph.in_degrees(2, "buys"), graph.out_degrees(4, "buys")) == (2, 2)
    assert graph.predecessors(2, "buys").tolist() == [4, 4]
    assert graph.has_edges(4, [0, 2], "buys").tolist() == [False, True]
    assert graph.has_edges([], [], "buys").tolist() == []
    src, dst = graph.find_edges([], "buys")
    assert (src.dtype, src.size, dst.size) == (np.int64, 0, 0)


@pytest.mark.parametrize(
    ("kind", "ask", "message"),
    [
        (DataError, lambda g: g.num_nodes("shop"), "unknown node type 'shop'\n  fix: use one of user, item"),
        (
            DataError,
            lambda g: g.adjacency("user:sells:item"),
            "unknown edge type 'user:sells:item'\n  fix: did you mean 'user:buys:item'? use one of user:buys:item, user:likes:user",
        ),
        (
            UsageError,
            lambda g: g.adjacency(),
            "there are 2 edge types\n  fix: pass one of user:buys:item, user:likes:user",
        ),
        (UsageError, lambda g: g.ids(), "there are 2 node types\n  fix: pass one of user, item"),
        (
            DataError,
            lambda g: g.find_edges([6, 7], "buys"),
            "edge id 7 of type 'user:buys:item' is out of range: valid ids are in [0, 7) (position 1)",
        ),
        (DataError, lambda g: g.predecessors(-1, "buys"), "node id -1 of type 'item' is out of range: valid ids are in [0, 3)"),
        (DataError, lambda g: g.has_edges(5, 0, "buys"), "node id 5 of type 'user' is out of range: valid ids are in [0, 5)"),
        (
            DataError,
            lambda g: g.edge_ids([0, 0], [0, 2], "buys"),
            "there is no edge from 0 to 2 (position 1)\n  fix: has_edges tells where there is one",
        ),
        (
            UsageError,
            lambda g: g.in_degrees(1.5, "buys"),
            "ids must be integers, found float64\n  fix: convert them to int64 first",
        ),
        (
            UsageError,
            lambda g: g.has_edges([0, 1], [0, 1, 2], "buys"),
            "src has shape (2,), dst (3,)\n  fix: pass one of each for every pair",
        ),
        (
            DataError,
            lambda g: g.adjacency("buys", 2),
            "partition 2 is out of range: valid ones are in [0, 2)\n  fix: name one of these, or None for all",
        ),
        (
            DataError,
            lambda g: g.column("user", "age"),
            "'user' has no column 'age'\n  fix: use one of weight, feat_0, feat_1, feat_2, feat_3, feat_4, label",
        ),
        (
            DataError,
            lambda g: g.column("shop", "age"),
            "unknown type 'shop'\n  fix: use one of user, item, user:buys:item, user:likes:user",
        ),
        (UsageError, lambda g: g.column(0, "age"), "0 may be a node type or an edge type\n  fix: pass its name"),
    ],
)
def test_what_is_wrong_is_told(graph, kind, ask, message):
    with pytest.raises(kind) as caught:
        ask(graph)
    assert str(caught.value) == message


def test_what_the_store_does_not_hold_is_told(tmp_path):
    karate = graphprep.load(str(GOLDEN / "karate_tsv_no_edge_ids" / "store"))
    name = ":".join(karate.edge_types[0])
    for ask in (lambda: karate.find_edges(0), lambda: karate.edge_ids(0, 1), karate.edges):
        with pytest.raises(UsageError) as caught:
            ask()
        assert str(caught.value) == f"the store holds no edge IDs of {name!r}\n  fix: convert without --no-edge-ids"
    assert karate.has_edges(*karate.edges(order="rows")[:2]).all()
    only_csr = graphprep.load(str(sample_store(("csr",)).write(tmp_path / "csr")))
    assert only_csr.predecessors(2, "buys").tolist() == [4, 4]


def test_a_relation_of_several_edge_types_is_ambiguous():
    shop = graphprep.load(str(GOLDEN / "shop_edgelist_both_parts" / "store"))
    with pytest.raises(DataError) as caught:
        shop.num_edges("1")
    assert str(caught.value) == "'1' is several edge types\n  fix: use one of 0:1:0, 0:1:1, 1:1:2"


def test_weights_are_one_number_an_edge():
    pytest.importorskip("scipy", reason="SciPy is not installed")
    shop = graphprep.load(str(GOLDEN / "shop_edgelist_both_parts" / "store"))
    with pytest.raises(UsageError) as caught:
        shop.to_scipy("0:0:1", weight="feat_0")
    assert str(caught.value) == "column 'feat_0' is not one number for each edge\n  fix: name another one"


def test_a_remote_store_answers_alike(shop):
    fsspec = pytest.importorskip("fsspec")
    memory = fsspec.filesystem("memory")
    for path in shop.rglob("*"):
        if path.is_file():
            memory.pipe(f"/loaded/{path.relative_to(shop)}", path.read_bytes())
    with graphprep.load("memory://loaded") as remote:
        local = graphprep.load(str(shop))
        assert [end.tolist() for end in remote.find_edges(range(7), "buys")] == [
            end.tolist() for end in local.find_edges(range(7), "buys")
        ]
        assert remote.column("user", "feat_3").tolist() == local.column("user", "feat_3").tolist()
    memory.rm("/loaded", recursive=True)


# ---- other libraries


def test_networkx_has_the_nodes_edges_and_columns(graph):
    made = graph.to_networkx()
    assert made.is_multigraph()
    assert set(made) == {("user", one) for part in USERS for one in part} | {("item", one) for part in ITEMS for one in part}
    users, items = ([one for part in parts for one in part] for parts in (USERS, ITEMS))
    wanted = {(("user", users[u]), ("item", items[v]), ("user:buys:item", i)) for i, (u, v) in enumerate(BUYS)}
    wanted |= {(("user", users[u]), ("user", users[v]), ("user:likes:user", i)) for i, (u, v) in enumerate(LIKES)}
    assert set(made.edges(keys=True)) == wanted
    assert made.edges[("user", users[4]), ("item", items[2]), ("user:buys:item", 5)]["weight"] == 6.0
    assert "feat_0" not in made.nodes["user", users[1]]
    assert made.nodes["user", users[0]]["feat_0"].tolist() == graph.column("user", "feat_0")[0].tolist()


def test_networkx_of_one_type_has_plain_nodes(sample_data):
    karate = graphprep.load(str(GOLDEN / "karate_csv" / "store")).to_networkx()
    lines = [line.split(",") for line in (sample_data / "karate/karate.csv").read_text().splitlines()[1:]]
    assert sorted(karate.edges(keys=True)) == sorted((int(u), int(v), i) for i, (u, v, *_) in enumerate(lines))
    people = graphprep.load(str(GOLDEN / "people_tables_hash" / "store"))
    assert set(people.to_networkx("typed")) == {(name, i) for name in people.node_types for i in range(people.num_nodes(name))}


@pytest.fixture
def hide(monkeypatch):
    """Return what lets a package be one that is not installed. Importers that others add meanwhile stay."""
    added = []

    def hide_one(module):
        def find_spec(name, path=None, target=None):
            if name == module:
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

        for name in [one for one in sys.modules if one.partition(".")[0] == module]:
            monkeypatch.delitem(sys.modules, name)
        added.append(SimpleNamespace(find_spec=find_spec))
        sys.meta_path.insert(0, added[-1])

    yield hide_one
    for one in added:
        sys.meta_path.remove(one)


@pytest.mark.parametrize(("method", "module", "packages"), [
    ("to_scipy", "scipy", "scipy"),
    ("to_networkx", "networkx", "networkx"),
    ("to_pyg", "torch_geometric", "torch torch-geometric"),
    ("to_dgl", "dgl", "dgl"),
    ("to_glt_topology", "graphlearn_torch", "graphlearn-torch"),
])  # fmt: skip
def test_a_library_that_is_missing_is_named(hide, method, module, packages):
    hide(module)
    with pytest.raises(UsageError) as caught:
        getattr(graphprep.load(str(GOLDEN / "karate_csv" / "store")), method)()
    assert str(caught.value) == f"{module} is not installed\n  fix: pip install {packages}"


@pytest.mark.parametrize(("code", "message", "fix"), [
    ("import torch", "torch is not installed", "pip install torch torch-geometric"),
    ("raise OSError('libcudart.so.12: cannot open')", "dgl is installed, but does not load: OSError: libcudart.so.12: cannot open", ""),
    ("raise ImportError('undefined symbol: _ZN3')", "dgl is installed, but does not load: ImportError: undefined symbol: _ZN3", ""),
    ("import nothing_of_this_name", "dgl is installed, but does not load: ModuleNotFoundError: No module named 'nothing_of_this_name'", ""),
    ("import dgl.nothing", "dgl is installed, but does not load: ModuleNotFoundError: No module named 'dgl.nothing'", ""),
])  # fmt: skip
def test_a_library_that_does_not_load_is_not_called_missing(monkeypatch, hide, tmp_path, code, message, fix):
    (tmp_path / "dgl").mkdir()
    (tmp_path / "dgl/__init__.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    hide("torch")
    monkeypatch.delitem(sys.modules, "dgl", raising=False)
    with pytest.raises(UsageError) as caught:
        graphprep.load(str(GOLDEN / "karate_csv" / "store")).to_dgl()
    assert caught.value.message == message
    assert caught.value.fix == (
        fix or "reinstall dgl with all that it needs, in a build for the Python, torch and CUDA that are here"
    )


@pytest.fixture(scope="module")
def citations(tmp_path_factory):
    """A graph with features, labels, a split and edge weights, in two partitions; and what it was made of."""
    folder = tmp_path_factory.mktemp("citations")
    rng = np.random.default_rng(3)
    made = SimpleNamespace(src=rng.integers(0, 20, 60), dst=rng.integers(0, 20, 60), weight=rng.random(60).astype(np.float32))
    made.feat, made.label = rng.random((20, 4)).astype(np.float32), rng.integers(0, 3, 20)
    made.split = rng.integers(0, 4, 20)
    np.savez(folder / "edges.npz", src=made.src, dst=made.dst, weight=made.weight)
    lines = "".join(f"{u} {v} {float(w)!r}\n" for u, v, w in zip(made.src, made.dst, made.weight, strict=True))
    (folder / "edges.txt").write_text(lines)
    np.save(folder / "feat.npy", made.feat)
    np.save(folder / "label.npy", made.label)
    for number, name in enumerate(("train", "valid", "test")):
        (folder / f"{name}.txt").write_text("".join(f"{node}\n" for node in np.flatnonzero(made.split == number)))
    graphprep.convert(
        str(folder / "edges.txt"),
        str(folder / "store"),
        decoder_options={"weight_col": 2},
        num_nodes={"_N": 20},
        partitions=2,
        partition_by="modulo",
        node_data=(f"_N:feat={folder}/feat.npy", f"_N:label={folder}/label.npy"),
        labels=("_N:label",),
        splits=(f"_N={folder}/train.txt,{folder}/valid.txt,{folder}/test.txt",),
    )
    made.store = str(folder / "store")
    return made


def test_pyg_has_features_labels_masks_and_edges(citations):
    pytest.importorskip("torch_geometric")
    graph = graphprep.load(citations.store)
    data = graph.to_pyg()
    data.validate()
    raw = graph.ids()
    assert (data.num_nodes, data.num_edges) == (20, 60)
    np.testing.assert_array_equal(data.x.numpy(), citations.feat[raw])
    np.testing.assert_array_equal(data.y.numpy(), citations.label[raw])
    for number, name in enumerate(("train_mask", "val_mask", "test_mask")):
        np.testing.assert_array_equal(data[name].numpy(), citations.split[raw] == number)
    src, dst = raw[data.edge_index.numpy()]
    ids = data.edge_id.numpy()
    np.testing.assert_array_equal(src, citations.src[ids])
    np.testing.assert_array_equal(dst, citations.dst[ids])
    np.testing.assert_array_equal(data.edge_weight.numpy(), citations.weight[ids])
    assert sorted(ids.tolist()) == list(range(60))
    assert (np.diff(data.edge_index[1].numpy()) >= 0).all()
    data.x[0] = 0  # a copy, not the store


def test_pyg_of_several_types_keeps_them_apart(graph):
    pytest.importorskip("torch_geometric")
    data = graph.to_pyg()
    data.validate()
    assert data.node_types == ["user", "item"]
    assert data.edge_types == [("user", "buys", "item"), ("user", "likes", "user")]
    found = list(
        zip(*data["user", "buys", "item"].edge_index.tolist(), data["user", "buys", "item"].edge_id.tolist(), strict=True)
    )
    assert sorted(found, key=lambda edge: edge[2]) == [(u, v, i) for i, (u, v) in enumerate(BUYS)]
    assert data["user", "buys", "item"].edge_weight.tolist() == [WEIGHTS[i] for _, _, i in found]
    numbers = [one.name for one in graph.columns("user") if one.kind == "dense" and one.role is None]
    assert data["user"].x.tolist() == np.column_stack([graph.column("user", name) for name in numbers]).tolist()


def test_glt_gets_rows_as_they_are(citations, monkeypatch):
    torch = pytest.importorskip("torch")
    calls = []
    fake = ModuleType("graphlearn_torch.data")
    fake.Topology = lambda edge_index, **named: calls.append((edge_index, named))
    monkeypatch.setitem(sys.modules, "graphlearn_torch", ModuleType("graphlearn_torch"))
    monkeypatch.setitem(sys.modules, "graphlearn_torch.data", fake)
    graph = graphprep.load(citations.store)
    graph.to_glt_topology(weight="weight")
    ((indices, indptr), named), rows = calls[0], graph.adjacency()
    assert (named["input_layout"], named["layout"]) == ("CSC", "CSC")
    assert torch.is_tensor(indices) and indices.tolist() == rows.indices.tolist() and indptr.tolist() == rows.indptr.tolist()
    assert named["edge_ids"].tolist() == rows.edge_ids.tolist()
    assert named["edge_weights"].tolist() == graph.column(graph.edge_types[0], "weight").tolist()


def test_glt_gets_the_edges_own_ids_where_the_store_has_them(tmp_path, monkeypatch):
    pytest.importorskip("torch")
    fake = ModuleType("graphlearn_torch.data")
    fake.Topology = lambda edge_index, **named: named["edge_ids"].tolist()
    monkeypatch.setitem(sys.modules, "graphlearn_torch", ModuleType("graphlearn_torch"))
    monkeypatch.setitem(sys.modules, "graphlearn_torch.data", fake)
    (tmp_path / "e.csv").write_text("src,dst,eid,other\n0,1,70,1\n2,0,50,2\n1,0,30,3\n0,2,10,4\n")
    for name, named in (("named", ["eid"]), ("plain", [])):
        graphprep.convert(tmp_path / "e.csv", tmp_path / name, edge_id_col=named)
    graphprep.transform(tmp_path / "named", tmp_path / "loops", "self-loops drop")
    by_row = [50, 30, 70, 10]  # by destination
    assert graphprep.load(tmp_path / "named").to_glt_topology() == by_row
    assert graphprep.load(tmp_path / "loops").to_glt_topology() == by_row
    plain = graphprep.load(tmp_path / "plain")
    assert plain.to_glt_topology() == [1, 2, 0, 3]
    assert plain.to_glt_topology(edge_id_col="eid") == by_row
    with pytest.raises(graphprep.GraphprepError, match="no column 'x'"):
        plain.to_glt_topology(edge_id_col="x")
