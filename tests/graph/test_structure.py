"""Questions about the structure of a stored graph, and its subgraphs, against loops over the files of the store."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from test_load import GOLDEN, NAMES, Naive, random_graphs, write_random

import graphprep
from graphprep.model.errors import DataError, InvalidIdError, UnknownIdError, UsageError
from graphprep.model.schema import parse_edge_type

RANDOM = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def triples(src, dst, ids):
    return list(zip(src.tolist(), dst.tolist(), [None] * src.size if ids is None else ids.tolist(), strict=True))


def check_structure(graph, naive, draw):
    for name, edges in naive.edges.items():
        src_type, _, dst_type = name.split(":")
        for ask, own, node_type in ((graph.in_edges, 1, dst_type), (graph.out_edges, 0, src_type)):
            nodes = draw(naive.num_nodes[node_type])
            found = triples(*ask(nodes, name))
            assert [edge[own] for edge in found] == [n for n in nodes for edge in edges if edge[own] == n]
            assert sorted(found, key=str) == sorted((edge for n in nodes for edge in edges if edge[own] == n), key=str)
        pairs = [edge[:2] for edge in edges]
        assert graph.is_multigraph(name) == (len(set(pairs)) < len(pairs))
        check_layouts(graph, naive, name)
    assert graph.is_multigraph() == any(graph.is_multigraph(name) for name in naive.edges)


def check_layouts(graph, naive, name):
    """Every layout has the edges; a partition the rows of its nodes."""
    edges, (src_type, _, dst_type) = naive.edges[name], name.split(":")
    src, dst, ids = graph.adjacency(name, layout="coo")
    assert sorted(triples(src, dst, ids), key=str) == sorted(edges, key=str)
    assert graph.adjacency(name, layout="coo") is graph.adjacency(name, layout="coo")
    for layout, own, node_type in (("csc", 1, dst_type), ("csr", 0, src_type)):
        for part, size in [(None, naive.num_nodes[node_type]), *enumerate(naive.per_part[node_type])]:
            rows = graph.adjacency(name, part, layout)
            start = 0 if part is None else sum(naive.per_part[node_type][:part])
            assert (rows.layout, rows.num_rows, rows.indptr[0]) == (layout, size, 0)
            for row in range(size):
                at = slice(rows.indptr[row], rows.indptr[row + 1])
                found = [None] * (at.stop - at.start) if rows.edge_ids is None else rows.edge_ids[at].tolist()
                wanted = [(edge[1 - own], edge[2]) for edge in edges if edge[own] == start + row]
                assert sorted(zip(rows.indices[at].tolist(), found, strict=True), key=str) == sorted(wanted, key=str)
            few = rows.hypersparse()
            assert few.rows.tolist() == [row for row in range(size) if rows.indptr[row] < rows.indptr[row + 1]]
            assert [few.indices[few.indptr[i] : few.indptr[i + 1]].tolist() for i in range(few.rows.size)] == [
                rows.indices[rows.indptr[row] : rows.indptr[row + 1]].tolist() for row in few.rows
            ]


def check_star(graph, naive, wanted):
    for found, own in ((graph.in_subgraph(wanted), 2), (graph.out_subgraph(wanted), 0)):
        assert {name: ids.tolist() for name, ids in found.node_ids.items()} == {
            n: list(range(k)) for n, k in naive.num_nodes.items()
        }
        for name, edges in naive.edges.items():
            ends = parse_edge_type(name)
            kept = [edge for edge in edges if edge[1 if own else 0] in wanted.get(ends[own], ())]
            some = found.edges[ends]
            assert sorted(triples(some.src, some.dst, some.edge_ids), key=str) == sorted(kept, key=str)


def check_induced(graph, naive, wanted):
    found = graph.node_subgraph(wanted)
    assert {name: ids.tolist() for name, ids in found.node_ids.items()} == {n: wanted.get(n, []) for n in naive.num_nodes}
    for name, edges in naive.edges.items():
        src_type, _, dst_type = ends = parse_edge_type(name)
        places = [{node: at for at, node in enumerate(wanted.get(one, []))} for one in (src_type, dst_type)]
        kept = [(places[0][u], places[1][v], one) for u, v, one in edges if u in places[0] and v in places[1]]
        some = found.edges[ends]
        assert triples(some.src, some.dst, some.edge_ids) == kept
        rows = found.adjacency(ends, "csr")
        own = np.repeat(np.arange(rows.num_rows), np.diff(rows.indptr))
        assert sorted(zip(own.tolist(), rows.indices.tolist(), strict=True)) == sorted(edge[:2] for edge in kept)


def check_edge_subgraph(graph, naive, wanted):
    found, whole = graph.edge_subgraph(wanted), graph.edge_subgraph(wanted, relabel_nodes=False)
    nodes = {name: set() for name in naive.num_nodes}
    for name, ids in wanted.items():
        src_type, _, dst_type = ends = parse_edge_type(name)
        by_id = {one: (u, v) for u, v, one in naive.edges[name]}
        assert triples(whole.edges[ends].src, whole.edges[ends].dst, whole.edges[ends].edge_ids) == [
            (*by_id[i], i) for i in ids
        ]
        some = found.edges[ends]
        own = [
            (found.node_ids[src_type][u], found.node_ids[dst_type][v], i)
            for u, v, i in triples(some.src, some.dst, some.edge_ids)
        ]
        assert own == [(*by_id[i], i) for i in ids]
        nodes[src_type] |= {by_id[i][0] for i in ids}
        nodes[dst_type] |= {by_id[i][1] for i in ids}
    assert {name: ids.tolist() for name, ids in found.node_ids.items()} == {name: sorted(some) for name, some in nodes.items()}


@pytest.mark.parametrize("case", NAMES)
def test_golden_stores_answer_as_a_loop_does(case):
    graph, naive = graphprep.load(str(GOLDEN / case / "store")), Naive(GOLDEN / case / "store")
    rng = np.random.default_rng(0)
    check_structure(graph, naive, lambda size: rng.integers(0, size, min(size, 5)).tolist())
    wanted = {name: rng.permutation(size)[: size // 2 + 1].tolist() for name, size in naive.num_nodes.items()}
    check_star(graph, naive, wanted)
    check_induced(graph, naive, wanted)
    if all(edge[2] is not None for edges in naive.edges.values() for edge in edges):
        check_edge_subgraph(
            graph, naive, {name: rng.permutation(len(e))[: len(e) // 2].tolist() for name, e in naive.edges.items()}
        )


@RANDOM
@given(random_graphs(), st.data())
def test_random_graphs_answer_as_a_loop_does(tmp_path_factory, drawn, data):
    folder = write_random(tmp_path_factory.mktemp("random") / "store", *drawn)
    graph, naive = graphprep.load(str(folder)), Naive(folder)
    check_structure(graph, naive, lambda size: data.draw(st.lists(st.integers(0, size - 1), max_size=4)) if size else [])
    unique = {
        name: st.lists(st.integers(0, size - 1), unique=True) if size else st.just([]) for name, size in naive.num_nodes.items()
    }
    wanted = data.draw(st.fixed_dictionaries({}, optional=unique))
    check_star(graph, naive, wanted)
    check_induced(graph, naive, wanted)
    if drawn[3]:
        ids = {name: st.lists(st.integers(0, len(e) - 1), unique=True) if e else st.just([]) for name, e in naive.edges.items()}
        check_edge_subgraph(graph, naive, data.draw(st.fixed_dictionaries(ids)))


@RANDOM
@given(random_graphs(), st.integers(1, 4))
def test_a_radius_is_what_a_walk_reaches(tmp_path_factory, drawn, radius):
    folder = write_random(tmp_path_factory.mktemp("random") / "store", *drawn)
    graph, naive = graphprep.load(str(folder)), Naive(folder)
    nodes = list(range(naive.num_nodes["b"])) * 2
    for ask, own in ((graph.predecessors, 1), (graph.successors, 0)):
        found = ask(nodes, "back", radius)
        for at, node in enumerate(nodes):
            reached, front = set(), {node}
            for _ in range(radius):
                front = {edge[1 - own] for edge in naive.edges["b:back:b"] if edge[own] in front}
                reached |= front
            wanted = sorted(reached)
            assert (sorted(set(found[at].tolist())) if radius == 1 else found[at].tolist()) == wanted
            if radius > 1:
                assert ask(node, "back", radius=radius).tolist() == wanted


@pytest.fixture
def karate():
    return graphprep.load(str(GOLDEN / "karate_csv" / "store"))


@pytest.fixture
def town():
    return graphprep.load(str(GOLDEN / "town_csr_parts" / "store"))


def test_nodes_that_are_there(karate):
    assert karate.has_nodes(33) is True
    assert karate.has_nodes(34) is False
    assert karate.has_nodes([[0, -1], [33, 2**70]]).tolist() == [[True, False], [True, False]]
    with pytest.raises(UsageError, match="ids must be integers, found float64"):
        karate.has_nodes(0.5)


def test_a_mask_picks_nodes(karate):
    mask = np.zeros(34, bool)
    mask[[0, 3, 33]] = True
    found = karate.node_subgraph(mask)
    assert found.node_ids["_N"].tolist() == [0, 3, 33]
    assert "3" in repr(found)
    with pytest.raises(UsageError, match=r"the mask of '_N' has shape \(33,\), there are 34 nodes"):
        karate.node_subgraph(mask[1:])


def test_types_and_bits(karate, town):
    assert (karate.num_bits, town.num_bits) == (64, 32)
    pytest.importorskip("networkx")
    made = town.metagraph()
    assert list(made.nodes) == list(town.node_types)
    assert sorted((src, key, dst) for src, dst, key in made.edges(keys=True)) == sorted(town.edge_types)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda graph: graph.predecessors(0, radius=0), UsageError, "radius must be at least 1, found 0"),
        (lambda graph: graph.node_subgraph([3], other_types="some"), UsageError, "other_types: 'some' means nothing"),
        (lambda graph: graph.node_subgraph([3, 1, 3]), UsageError, "node 3 of '_N' is there twice"),
        (
            lambda graph: graph.node_subgraph([34]),
            DataError,
            "node id 34 of type '_N' is out of range: valid ids are in [0, 34)",
        ),
        (lambda graph: graph.edge_subgraph({"knows": [78]}), DataError, "edge id 78"),
        (lambda graph: graph.in_subgraph({"x": [0]}), DataError, "unknown node type 'x'"),
        (lambda graph: graph.adjacency(layout="coo", partition=0), UsageError, "coo is of all edges, not of a partition"),
        (lambda graph: graph.adjacency(layout="lil"), UsageError, "there is no layout 'lil'"),
        (lambda graph: graph.node_subgraph([0]).adjacency(("a", "b", "c")), DataError, "unknown edge type ('a', 'b', 'c')"),
    ],
)
def test_what_cannot_be_answered_is_told(karate, ask, error, message):
    with pytest.raises(error) as raised:
        ask(karate)
    assert message in str(raised.value)


def test_no_path_leaves_a_type_twice(tmp_path):
    graph = graphprep.load(str(write_random(tmp_path / "s", {"a": [1], "b": [1]}, {"a:to:b": [(0, 0)]}, ("csc",), True)))
    with pytest.raises(UsageError, match="no path of 2 edges leads from 'a' to 'b'"):
        graph.successors(0, radius=2)


def test_a_layout_is_made_with_edge_ids_even_after_it_was_made_without(tmp_path):
    folder = write_random(tmp_path / "s", {"a": [0], "b": [2]}, {"b:back:b": [(0, 1), (1, 0), (0, 1)]}, ("csc",), True)
    graph = graphprep.load(str(folder))
    assert graph.successors(0).tolist() == [1, 1]
    assert sorted(graph.adjacency(layout="csr").edge_ids.tolist()) == [0, 1, 2]
    assert graph.out_edges(0)[2].tolist() == [0, 2]


def test_a_converter_is_that_of_the_guide(karate):
    """DGL's guide: attributes by these names, errors that are ValueErrors."""
    converter = graphprep.IDConverter(
        {"node_type": ["A", "B"], "edge_type": ["A:r:B"], "num_nodes_per_chunk": [[2, 3], [4]], "num_edges_per_chunk": [[7]]}
    )
    assert (converter.node_type, converter.edge_type) == (["A", "B"], ["A:r:B"])
    assert (converter.ntype2id_map, converter.etype2id_map) == ({"A": 0, "B": 1}, {"A:r:B": 0})
    assert (converter.nid_offset.tolist(), converter.eid_offset.tolist()) == ([0, 5, 9], [0, 7])
    converter.nid_offset[:] = 0
    assert converter.nid_het2hom("B", 0) == 5
    for call, error in (
        (lambda: converter.nid_het2hom("A", 5), UnknownIdError),
        (lambda: converter.nid_hom2het(9), UnknownIdError),
        (lambda: converter.eid_hom2het(-1), UnknownIdError),
        (lambda: converter.nid_het2hom("C", 0), UnknownIdError),
        (lambda: converter.nid_het2hom("A", 0.5), InvalidIdError),
    ):
        with pytest.raises(error) as raised:
            call()
        assert isinstance(raised.value, ValueError)
